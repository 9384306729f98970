//! Sealing: a unit's lab as one finished file, named by its hash.

use crate::spool::{Attempt, PACKING, SEALED};
use crate::whole_file::{failed, left_over, remove, sha256, sync_directory_of};
use deltabench_model::problem::Problem;
use deltabench_store::{FILE_NAME, Store};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Why a lab was not sealed. It stays where it is, whole.
#[derive(Debug)]
pub enum Unsealed {
    /// The disk of this host takes no copy of it.
    Host(Problem),
    /// The spool does not take it.
    Spool(Problem),
}

/// Seals a lab into the directory of an attempt: packed beside, durable, then named by its hash.
///
/// Errors: a lab that cannot be read; a directory that cannot be written.
pub fn seal(store: &Store, local: &Path, attempt: &Attempt) -> Result<PathBuf, Unsealed> {
    let plain = local.join("sealing.sqlite");
    // What an earlier try left.
    remove(&plain);
    store.copy_to(&plain).map_err(|error| {
        remove(&plain);
        Unsealed::Host(Problem::of(&error).of_machine())
    })?;
    let sealed = packed(&plain, attempt);
    remove(&plain);
    sealed.map_err(Unsealed::Spool)
}

fn packed(plain: &Path, attempt: &Attempt) -> Result<PathBuf, Problem> {
    let packed = attempt
        .directory()
        .join(format!("{PACKING}{}", std::process::id()));
    let pack = || -> io::Result<()> {
        let mut encoder = GzEncoder::new(File::create(&packed)?, Compression::default());
        io::copy(&mut File::open(plain)?, &mut encoder)?;
        encoder.finish()?.sync_all()
    };
    pack().map_err(|error| left_over("write", (&packed, &packed), &error))?;
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

/// Why a sealed file was not unpacked.
#[derive(Debug)]
pub enum Unsealing {
    /// Its content is wrong, and stays wrong.
    Damaged(Problem),
    /// It cannot be read, or the copy cannot be written.
    Failed(Problem),
}

/// Unpacks a sealed file into a directory of its own, as a lab.
///
/// Errors: a file whose content is not what its name says, or is no archive; a disk that is full.
pub fn unseal(sealed: &Path, into: &Path) -> Result<(), Unsealing> {
    let hash = sha256(sealed).map_err(Unsealing::Failed)?;
    let damaged = |why: String| {
        let problem = Problem::new(format!("{} is damaged", sealed.display()));
        Unsealing::Damaged(problem.detail(why))
    };
    if named_hash(sealed) != Some(hash.as_str()) {
        return Err(damaged(format!(
            "its name says another content: SHA-256 is {hash}"
        )));
    }
    let unpack = || -> io::Result<()> {
        std::fs::create_dir_all(into)?;
        let mut plain = File::create(into.join(FILE_NAME))?;
        io::copy(&mut GzDecoder::new(File::open(sealed)?), &mut plain)?;
        Ok(())
    };
    unpack().map_err(|error| match error.kind() {
        ErrorKind::InvalidData | ErrorKind::InvalidInput | ErrorKind::UnexpectedEof => {
            damaged(error.to_string())
        }
        _ => Unsealing::Failed(failed("unpack", sealed, &error)),
    })
}
