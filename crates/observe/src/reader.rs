//! Small kernel files that are read again and again without opening or allocating.

use crate::error::ObserveError;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A kernel file kept open. `SIZE` is how much of it is read: what is wanted must stand in its first `SIZE`
/// bytes.
#[derive(Debug)]
pub(crate) struct KernelFile<const SIZE: usize> {
    file: File,
}

impl<const SIZE: usize> KernelFile<SIZE> {
    pub(crate) fn open(path: &Path) -> Result<Self, ObserveError> {
        let file = File::open(path).map_err(|source| ObserveError::file("open", path, source))?;
        Ok(Self { file })
    }

    /// Reads from the start and hands the bytes to `parse`.
    pub(crate) fn read<T>(&self, parse: impl FnOnce(&[u8]) -> Option<T>) -> std::io::Result<T> {
        let mut buffer = [0_u8; SIZE];
        let length = self.file.read_at(&mut buffer, 0)?;
        let invalid = || std::io::Error::from(std::io::ErrorKind::InvalidData);
        parse(buffer.get(..length).unwrap_or(&[])).ok_or_else(invalid)
    }
}

/// A kernel file kept open and read as a whole, whatever its size.
#[derive(Debug)]
pub(crate) struct WholeFile {
    file: File,
    buffer: Vec<u8>,
}

impl WholeFile {
    pub(crate) fn open(path: &Path) -> Result<Self, ObserveError> {
        let file = File::open(path).map_err(|source| ObserveError::file("open", path, source))?;
        Ok(Self {
            file,
            buffer: vec![0; 4096],
        })
    }

    /// Reads from the start and hands the bytes to `parse`.
    pub(crate) fn read<T>(&mut self, parse: impl FnOnce(&[u8]) -> Option<T>) -> std::io::Result<T> {
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
pub(crate) fn numbers(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    bytes
        .split(|byte| byte.is_ascii_whitespace())
        .filter(|word| !word.is_empty())
        .map_while(|word| std::str::from_utf8(word).ok()?.parse().ok())
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
    fn a_file_of_any_length_is_read_whole_and_anew_each_time() {
        let path =
            std::env::temp_dir().join(format!("deltabench-observe-whole-{}", std::process::id()));
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
            std::env::temp_dir().join(format!("deltabench-observe-reader-{}", std::process::id()));
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
