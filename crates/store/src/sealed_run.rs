//! A run in a file of its own: a packed store with that run alone, named by its content.

use crate::bulk::{BULK, REST, copy};
use crate::kill_points::reached;
use crate::migrations::migrate;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use rusqlite::Connection;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// The directory beside the store's file in which sealed files lie.
pub(crate) const DIRECTORY: &str = "archive";

const ENDING: &str = ".sqlite.gz";

/// How the name of a file begins until the file is whole. A random number follows: several labs may share one
/// directory of sealed files, from several machines.
const UNFINISHED: &str = ".sealing-";

/// The file of a lab that names the unfinished file which the lab is writing: only that one is its own.
const OWN_DRAFT: &str = "archive.draft";

/// A sealed file, not yet written.
pub(crate) struct Packed {
    pub(crate) bytes: Vec<u8>,
    /// SHA-256 of `bytes`, lower-case hex.
    pub(crate) sha256: String,
}

/// Makes a sealed file of a run: the same rows make the same bytes.
pub(crate) fn pack(store: &Connection, run: i64) -> Result<Packed, String> {
    let done = || -> Result<Vec<u8>, Box<dyn std::error::Error>> {
        let mut sealed = Connection::open_in_memory()?;
        migrate(&mut sealed, Path::new("a sealed file"))?;
        // Rows come table by table, whatever they refer to.
        sealed.pragma_update(None, "foreign_keys", false)?;
        let step = sealed.transaction()?;
        for part in REST.iter().chain(&BULK) {
            copy((store, &*step), part, run, 0)?;
        }
        step.commit()?;
        let plain = sealed.serialize("main")?;
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(&plain)?;
        Ok(encoder.finish()?)
    };
    let bytes = done().map_err(|error| error.to_string())?;
    let sha256 = format!("{:x}", Sha256::digest(&bytes));
    Ok(Packed { bytes, sha256 })
}

/// Where the sealed file with this hash lies in a lab.
pub(crate) fn path_of(lab: &Path, sha256: &str) -> PathBuf {
    lab.join(DIRECTORY).join(format!("{sha256}{ENDING}"))
}

impl Packed {
    /// Writes it to its place in a lab: whole and durable, or not at all.
    pub(crate) fn write(&self, lab: &Path) -> io::Result<PathBuf> {
        let path = path_of(lab, &self.sha256);
        let directory = lab.join(DIRECTORY);
        std::fs::create_dir_all(&directory)?;
        let (mut file, beside) = begin(lab)?;
        reached("begun");
        file.write_all(&self.bytes)?;
        reached("written");
        file.sync_all()?;
        drop(file);
        reached("durable");
        std::fs::rename(&beside, &path)?;
        reached("named");
        // The names have to be durable too: that of the file, and that of its directory.
        File::open(&directory)?.sync_all()?;
        File::open(lab)?.sync_all()?;
        // Left over it names a file that is not there.
        std::fs::remove_file(lab.join(OWN_DRAFT)).ok();
        Ok(path)
    }
}

/// Makes a file of a name that nothing has, after the lab has noted that name.
fn begin(lab: &Path) -> io::Result<(File, PathBuf)> {
    let name = format!("{UNFINISHED}{:016x}", random());
    let note = lab.join(OWN_DRAFT);
    std::fs::write(&note, &name)?;
    reached("noted");
    let beside = lab.join(DIRECTORY).join(name);
    let made = File::options().write(true).create_new(true).open(&beside);
    if made.is_err() {
        // What has this name is somebody else's.
        std::fs::remove_file(&note).ok();
    }
    Ok((made?, beside))
}

/// Another number at each call and in each process: the standard library's keys of hash tables are random.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Removes the file that a killed process of this lab has not finished. The caller holds the lab's lock, so
/// nobody is writing it. Files of other labs stay.
pub(crate) fn sweep(lab: &Path) {
    let note = lab.join(OWN_DRAFT);
    let name = std::fs::read_to_string(&note).unwrap_or_default();
    if name.starts_with(UNFINISHED) && !name.contains('/') {
        // What cannot be removed is in nobody's way.
        std::fs::remove_file(lab.join(DIRECTORY).join(name)).ok();
    }
    std::fs::remove_file(&note).ok();
}

/// Why a sealed file is of no use, if that shows without reading it.
pub(crate) fn fault_at_sight(path: &Path, bytes: u64) -> Option<String> {
    match std::fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some("it is missing".to_owned()),
        Err(error) => Some(error.to_string()),
        Ok(found) if found.len() != bytes => {
            Some(format!("it has {} bytes instead of {bytes}", found.len()))
        }
        Ok(_) => None,
    }
}

/// Reads a sealed file into memory, brought to the newest schema.
///
/// Errors: why it is of no use.
pub(crate) fn open(path: &Path, sha256: &str, bytes: u64) -> Result<Connection, String> {
    if let Some(fault) = fault_at_sight(path, bytes) {
        return Err(fault);
    }
    let packed = std::fs::read(path).map_err(|error| error.to_string())?;
    if format!("{:x}", Sha256::digest(&packed)) != sha256 {
        return Err("its content is not what its name says".to_owned());
    }
    let unpack = || -> Result<Connection, Box<dyn std::error::Error>> {
        let mut plain = Vec::new();
        GzDecoder::new(packed.as_slice()).read_to_end(&mut plain)?;
        let mut sealed = Connection::open_in_memory()?;
        sealed.deserialize_read_exact("main", plain.as_slice(), plain.len(), false)?;
        migrate(&mut sealed, path)?;
        Ok(sealed)
    };
    unpack().map_err(|error| error.to_string())
}
