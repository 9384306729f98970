//! A run in a file of its own: a packed store with that run alone, named by its content.

use crate::bulk::{BULK, REST, copy};
use crate::migrations::migrate;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use rusqlite::Connection;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// The directory beside the store's file in which sealed files lie.
pub(crate) const DIRECTORY: &str = "archive";

const ENDING: &str = ".sqlite.gz";

/// What a file is called until it is whole.
const UNFINISHED: &str = ".sealing-";

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
        let name = format!("{UNFINISHED}{}", std::process::id());
        let beside = directory.join(name);
        let mut file = File::create(&beside)?;
        file.write_all(&self.bytes)?;
        file.sync_all()?;
        drop(file);
        std::fs::rename(&beside, &path)?;
        // The names have to be durable too: that of the file, and that of its directory.
        File::open(&directory)?.sync_all()?;
        File::open(lab)?.sync_all()?;
        Ok(path)
    }
}

/// Removes what a killed process has not finished. Nobody else may be writing.
pub(crate) fn sweep(lab: &Path) {
    let entries = std::fs::read_dir(lab.join(DIRECTORY)).into_iter().flatten();
    for entry in entries.flatten() {
        let name = entry.file_name();
        if name.to_string_lossy().starts_with(UNFINISHED) {
            // What cannot be removed is in nobody's way.
            std::fs::remove_file(entry.path()).ok();
        }
    }
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
