//! Files of the kernel, kept open or read once, and the two shapes that their text has.

use crate::error::ProcError;
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The first program of a name in directories as `PATH` lists them; none without that variable.
pub fn program(name: &str, path: Option<&OsStr>) -> Option<PathBuf> {
    let runs = |found: Metadata| found.is_file() && found.permissions().mode() & 0o111 != 0;
    std::env::split_paths(path?)
        .map(|directory| directory.join(name))
        .find(|program| program.metadata().is_ok_and(runs))
}

/// A kernel file kept open. `SIZE` is how much of it is read: what is wanted must stand in its first `SIZE`
/// bytes.
#[derive(Debug)]
pub struct KernelFile<const SIZE: usize> {
    file: File,
}

impl<const SIZE: usize> KernelFile<SIZE> {
    /// Opens it.
    ///
    /// Errors: `File`.
    pub fn open(path: &Path) -> Result<Self, ProcError> {
        let file = File::open(path).map_err(|source| ProcError::file("open", path, source))?;
        Ok(Self { file })
    }

    /// Reads from the start and hands the bytes to `parse`.
    ///
    /// # Errors
    /// The file cannot be read, or `parse` finds nothing in it.
    pub fn read<T>(&self, parse: impl FnOnce(&[u8]) -> Option<T>) -> std::io::Result<T> {
        let mut buffer = [0_u8; SIZE];
        let length = self.file.read_at(&mut buffer, 0)?;
        let invalid = || std::io::Error::from(std::io::ErrorKind::InvalidData);
        parse(buffer.get(..length).unwrap_or(&[])).ok_or_else(invalid)
    }
}

/// A kernel file kept open and read as a whole, whatever its size.
#[derive(Debug)]
pub struct WholeFile {
    file: File,
    buffer: Vec<u8>,
}

impl WholeFile {
    /// Opens it.
    ///
    /// Errors: `File`.
    pub fn open(path: &Path) -> Result<Self, ProcError> {
        let file = File::open(path).map_err(|source| ProcError::file("open", path, source))?;
        Ok(Self {
            file,
            buffer: vec![0; 4096],
        })
    }

    /// Reads from the start and hands the bytes to `parse`.
    ///
    /// # Errors
    /// The file cannot be read, or `parse` finds nothing in it.
    pub fn read<T>(&mut self, parse: impl FnOnce(&[u8]) -> Option<T>) -> std::io::Result<T> {
        // The kernel hands out less than asked for now and then, but nothing only at the end. A buffer that
        // holds everything at once makes it one state of the kernel.
        let mut length = 0;
        loop {
            if length == self.buffer.len() {
                self.buffer.resize(2 * length, 0);
                length = 0;
            }
            let free = self.buffer.get_mut(length..).unwrap_or_default();
            let offset = u64::try_from(length).unwrap_or(u64::MAX);
            match self.file.read_at(free, offset)? {
                0 => break,
                read => length += read,
            }
        }
        let invalid = || std::io::Error::from(std::io::ErrorKind::InvalidData);
        parse(self.buffer.get(..length).unwrap_or(&[])).ok_or_else(invalid)
    }
}

/// The blank-separated unsigned numbers of `bytes`, up to the first word that is none.
pub fn numbers(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    bytes
        .split(|byte| byte.is_ascii_whitespace())
        .filter(|word| !word.is_empty())
        .map_while(|word| std::str::from_utf8(word).ok()?.parse().ok())
}

/// The words of the line that begins with `name`, which a colon or a blank must follow: `MemFree:  12 kB`,
/// `oom_kill 3`.
pub fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let rest = line.strip_prefix(name)?;
        Some(rest.strip_prefix([':', ' '])?.trim())
    })
}

/// The number of such a line: kibibytes (`kB`) become bytes, counts stay counts.
pub fn number(text: &str, name: &str) -> Option<u64> {
    let mut words = field(text, name)?.split_ascii_whitespace();
    let number: u64 = words.next()?.parse().ok()?;
    match words.next() {
        Some("kB") => number.checked_mul(1024),
        Some(_) => None,
        None => Some(number),
    }
}

/// What a file of one word says.
pub fn word_in(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned()).filter(|word| !word.is_empty())
}

/// What a file of one number says.
pub fn number_in(path: &Path) -> Option<u64> {
    word_in(path)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_skip_blanks_and_stop_at_words() {
        assert_eq!(numbers(b" 12  7\t9\nx 5").collect::<Vec<_>>(), [12, 7, 9]);
        assert_eq!(numbers(b"").count(), 0);
        assert_eq!(numbers(b"-1 2").count(), 0);
    }

    #[test]
    fn lines_are_found_by_whole_name_and_kibibytes_become_bytes() {
        let text = "MemAvailableX: 1 kB\nMemAvailable:   24 kB\nHugePages_Total:  3\nodd: 1 MB\n";
        assert_eq!(number(text, "MemAvailable"), Some(24 * 1024));
        assert_eq!(number(text, "HugePages_Total"), Some(3));
        assert_eq!(number(text, "odd"), None);
        assert_eq!(
            number("oom_kill_disable 0\noom_kill 3\n", "oom_kill"),
            Some(3)
        );
        assert_eq!(field("Name:\tpostgres\n", "Name"), Some("postgres"));
        assert_eq!(number("VmHWM:\t   5120 kB\n", "VmHWM"), Some(5120 * 1024));
        assert_eq!(number("rchar: 1\nwchar: 22\n", "wchar"), Some(22));
    }

    #[test]
    fn a_file_of_any_length_is_read_whole_and_anew_each_time() {
        let path =
            std::env::temp_dir().join(format!("deltabench-proc-whole-{}", std::process::id()));
        std::fs::write(&path, "x".repeat(10_000)).unwrap();
        let mut file = WholeFile::open(&path).unwrap();
        let mut length = || file.read(|bytes| Some(bytes.len())).unwrap();
        assert_eq!(length(), 10_000);
        std::fs::write(&path, "").unwrap();
        assert_eq!(length(), 0);
        std::fs::write(&path, "x".repeat(16_384)).unwrap();
        assert_eq!(length(), 16_384);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_kernel_file_is_read_anew_each_time() {
        let path =
            std::env::temp_dir().join(format!("deltabench-proc-reader-{}", std::process::id()));
        std::fs::write(&path, "1 2\n").unwrap();
        let file = KernelFile::<64>::open(&path).unwrap();
        let first = |bytes: &[u8]| numbers(bytes).next();
        assert_eq!(file.read(first).unwrap(), 1);
        std::fs::write(&path, "3 4\n").unwrap();
        assert_eq!(file.read(first).unwrap(), 3);
        std::fs::write(&path, "nonsense\n").unwrap();
        assert!(file.read(first).is_err());
        std::fs::remove_file(&path).unwrap();
    }
}
