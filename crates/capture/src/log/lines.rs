//! Lines of a file, packed or not, with their numbers.

use flate2::read::MultiGzDecoder;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::Path;

/// A line without its end, and its number from 1.
pub(crate) type Line = (Vec<u8>, u64);

/// The lines of a file.
pub(crate) struct Lines {
    from: Box<dyn BufRead>,
    read: u64,
    /// Lines that somebody gave back.
    again: VecDeque<Line>,
    is_cut: bool,
    /// Whether lines end in `\r\n`, as on Windows. Elsewhere a `\r` is part of a statement.
    ends_in_return: bool,
}

impl Lines {
    /// Opens a file; `-` is stdin.
    ///
    /// Errors: a file that cannot be read, or that is packed by another program than gzip.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let from: Box<dyn Read> = if path.as_os_str() == "-" {
            Box::new(io::stdin())
        } else {
            Box::new(File::open(path)?)
        };
        let mut from = BufReader::with_capacity(1 << 18, from);
        let from: Box<dyn BufRead> = match from.fill_buf()? {
            [0x1f, 0x8b, ..] => {
                Box::new(BufReader::with_capacity(1 << 18, MultiGzDecoder::new(from)))
            }
            [0x28, 0xb5, 0x2f, 0xfd, ..] => return Err(packed("zstd")),
            [0xfd, b'7', b'z', b'X', b'Z', ..] => return Err(packed("xz")),
            [b'B', b'Z', b'h', ..] => return Err(packed("bzip2")),
            _ => Box::new(from),
        };
        Ok(Self {
            from,
            read: 0,
            again: VecDeque::new(),
            is_cut: false,
            ends_in_return: false,
        })
    }

    /// The next line. A packed file that was cut ends with the last bytes that can be unpacked.
    ///
    /// Errors: of reading, or damaged packing.
    pub(crate) fn next(&mut self) -> io::Result<Option<Line>> {
        if let Some(line) = self.again.pop_front() {
            return Ok(Some(line));
        }
        if self.is_cut {
            return Ok(None);
        }
        let mut line = Vec::new();
        match self.from.read_until(b'\n', &mut line) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => self.is_cut = true,
            other => {
                other?;
            }
        }
        if line.is_empty() {
            return Ok(None);
        }
        if line.last() == Some(&b'\n') {
            line.pop();
        }
        self.read += 1;
        if self.read == 1 {
            if line.starts_with(b"\xef\xbb\xbf") {
                line.drain(..3);
            }
            self.ends_in_return = line.last() == Some(&b'\r');
        }
        if self.ends_in_return && line.last() == Some(&b'\r') {
            line.pop();
        }
        Ok(Some((line, self.read)))
    }

    /// Gives lines back, in order: they come next.
    pub(crate) fn give_back(&mut self, lines: Vec<Line>) {
        for line in lines.into_iter().rev() {
            self.again.push_front(line);
        }
    }

    /// Lines read so far.
    pub(crate) fn read(&self) -> u64 {
        self.read
    }
}

fn packed(by: &str) -> io::Error {
    io::Error::new(
        ErrorKind::Unsupported,
        format!("it is packed by {by}; deltabench unpacks gzip"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    fn lines(bytes: &[u8]) -> io::Result<Vec<(String, u64)>> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        std::fs::write(&path, bytes).unwrap();
        let mut lines = Lines::open(&path)?;
        let mut all = Vec::new();
        while let Some((line, number)) = lines.next()? {
            all.push((String::from_utf8(line).unwrap(), number));
        }
        Ok(all)
    }

    fn packed_by_gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn packed_files_have_the_same_lines_even_in_several_parts() {
        let wanted = [("a".to_owned(), 1), (String::new(), 2), ("b".to_owned(), 3)];
        assert_eq!(lines(b"a\n\nb").unwrap(), wanted);
        assert_eq!(lines(b"\xef\xbb\xbfa\n\nb\n").unwrap(), wanted);
        assert_eq!(lines(b"a\r\n\r\nb\r\n").unwrap(), wanted);
        assert_eq!(lines(b"a\nb\r\n").unwrap()[1].0, "b\r");
        let mut parts = packed_by_gzip(b"a\n\n");
        parts.extend(packed_by_gzip(b"b\n"));
        assert_eq!(lines(&parts).unwrap(), wanted);
    }

    #[test]
    fn a_packed_file_that_was_cut_ends_early() {
        let text: String = (0..20_000).map(|n| format!("{}\n", n * 7919)).collect();
        let packed = packed_by_gzip(text.as_bytes());
        let found = lines(&packed[..packed.len() / 2]).unwrap();
        assert!(
            found.len() > 1000 && found.len() < 20_000,
            "{}",
            found.len()
        );
    }

    #[test]
    fn other_packing_is_refused_by_name() {
        for (bytes, name) in [(b"\x28\xb5\x2f\xfdxxxx", "zstd"), (b"\xfd7zXZ\0\0\0", "xz")] {
            assert!(lines(bytes).unwrap_err().to_string().contains(name));
        }
    }
}
