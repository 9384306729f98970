//! Sealing: a unit's lab as one finished file, named by its hash.

use crate::spool::{Attempt, SEALED};
use crate::whole_file::{failed, sha256, sync_directory_of};
use deltabench_model::problem::Problem;
use deltabench_store::{FILE_NAME, Store};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Seals a lab into the directory of an attempt: packed beside, durable, then named by its hash.
///
/// Errors: a lab that cannot be read; a directory that cannot be written.
pub fn seal(store: &Store, local: &Path, attempt: &Attempt) -> Result<PathBuf, Problem> {
    let plain = local.join("sealing.sqlite");
    // What an earlier try left.
    std::fs::remove_file(&plain).ok();
    let store_failed = |error: deltabench_store::StoreError| Problem::of(&error).of_machine();
    store.copy_to(&plain).map_err(store_failed)?;
    let packed = attempt
        .directory()
        .join(format!("sealing-{}", std::process::id()));
    let pack = || -> io::Result<()> {
        let mut encoder = GzEncoder::new(File::create(&packed)?, Compression::default());
        io::copy(&mut File::open(&plain)?, &mut encoder)?;
        encoder.finish()?.sync_all()
    };
    pack().map_err(|error| failed("write", &packed, &error))?;
    std::fs::remove_file(&plain).ok();
    let hash = sha256(&packed)?;
    let sealed = attempt
        .directory()
        .join(format!("{}{hash}{}", SEALED.0, SEALED.1));
    std::fs::rename(&packed, &sealed)
        .and_then(|()| sync_directory_of(&sealed))
        .map_err(|error| failed("write", &sealed, &error))?;
    Ok(sealed)
}

/// The hash in the name of a sealed file.
pub fn named_hash(sealed: &Path) -> Option<&str> {
    let name = sealed.file_name()?.to_str()?;
    name.strip_prefix(SEALED.0)?.strip_suffix(SEALED.1)
}

/// Unpacks a sealed file into a directory of its own, as a lab.
///
/// Errors: a file whose content is not what its name says, or is no archive.
pub fn unseal(sealed: &Path, into: &Path) -> Result<(), Problem> {
    let hash = sha256(sealed)?;
    if named_hash(sealed) != Some(hash.as_str()) {
        return Err(Problem::new(format!("{} is damaged", sealed.display()))
            .detail(format!("its name says another content: SHA-256 is {hash}")));
    }
    let unpack = || -> io::Result<()> {
        std::fs::create_dir_all(into)?;
        let mut plain = File::create(into.join(FILE_NAME))?;
        io::copy(&mut GzDecoder::new(File::open(sealed)?), &mut plain)?;
        Ok(())
    };
    unpack().map_err(|error| failed("unpack", sealed, &error))
}
