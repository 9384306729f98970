//! Lines from a pipe, each within a time limit.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// Longest line, bytes: more is no line of ours.
const LONGEST: usize = 8 << 20;

/// Read at once, bytes.
const CHUNK: usize = 64 << 10;

/// Why there is no further line.
#[derive(Debug)]
pub(crate) enum End {
    /// The other side has closed.
    Closed,
    /// It said nothing for too long.
    Silent,
    /// It says something else.
    Nonsense,
    Failed,
}

/// The lines of a pipe, socket or terminal.
#[derive(Debug)]
pub(crate) struct Lines {
    file: File,
    buffer: Vec<u8>,
    /// So much of the buffer holds no end of a line.
    searched: usize,
}

impl Lines {
    pub(crate) fn new(from: impl Into<OwnedFd>) -> Self {
        Self {
            file: File::from(from.into()),
            buffer: Vec::new(),
            searched: 0,
        }
    }

    /// The next line without its end, waited for as long as `limit` in all. A last line without an end counts
    /// for nothing.
    pub(crate) fn next(&mut self, limit: Duration) -> Result<String, End> {
        let until = Instant::now() + limit;
        loop {
            if let Some(line) = self.buffered()? {
                return Ok(line);
            }
            self.wait(until)?;
            let filled = self.buffer.len();
            self.buffer.resize(filled + CHUNK, 0);
            let free = self.buffer.get_mut(filled..).unwrap_or_default();
            let read = self.file.read(free);
            self.buffer.truncate(filled + *read.as_ref().unwrap_or(&0));
            match read {
                Ok(0) => return Err(End::Closed),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Err(End::Failed),
            }
        }
    }

    /// A whole line that has been read already.
    fn buffered(&mut self) -> Result<Option<String>, End> {
        let unsearched = self.buffer.get(self.searched..).unwrap_or_default();
        let Some(end) = unsearched.iter().position(|&byte| byte == b'\n') else {
            self.searched = self.buffer.len();
            return match self.searched {
                0..=LONGEST => Ok(None),
                _ => Err(End::Nonsense),
            };
        };
        let mut line: Vec<u8> = self.buffer.drain(..=self.searched + end).collect();
        self.searched = 0;
        line.pop();
        String::from_utf8(line).map(Some).map_err(|_| End::Nonsense)
    }

    /// Waits until there is something to read, or the end.
    fn wait(&self, until: Instant) -> Result<(), End> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            // Rounded up, or the last part of a millisecond would be spent asking again and again.
            let left = i32::try_from(left.as_millis().saturating_add(1)).unwrap_or(i32::MAX);
            let mut poll = libc::pollfd {
                fd: self.file.as_raw_fd(),
                events: libc::POLLIN,
                revents: 0,
            };
            // SAFETY: poll reads and writes the one pollfd that it is given, which lives through the call.
            let ready = unsafe { libc::poll(&raw mut poll, 1, left) };
            match ready {
                1.. => return Ok(()),
                0 if Instant::now() >= until => return Err(End::Silent),
                0 => {}
                _ if std::io::Error::last_os_error().kind() == ErrorKind::Interrupted => {}
                _ => return Err(End::Failed),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    const LONG: Duration = Duration::from_secs(60);

    fn pipe() -> (Lines, std::io::PipeWriter) {
        let (reader, writer) = std::io::pipe().unwrap();
        (Lines::new(reader), writer)
    }

    #[test]
    fn lines_come_one_by_one_however_they_were_written() {
        let (mut lines, mut writer) = pipe();
        writer.write_all(b"one\ntwo\nth").unwrap();
        assert_eq!(lines.next(LONG).unwrap(), "one");
        assert_eq!(lines.next(LONG).unwrap(), "two");
        let rest = std::thread::spawn(move || writer.write_all(b"ree\n\nlost").unwrap());
        assert_eq!(lines.next(LONG).unwrap(), "three");
        assert_eq!(lines.next(LONG).unwrap(), "");
        rest.join().unwrap();
        assert!(matches!(lines.next(LONG), Err(End::Closed)));
    }

    #[test]
    fn a_line_longer_than_the_pipe_arrives_whole() {
        let (mut lines, mut writer) = pipe();
        let long = "x".repeat(1_000_000);
        let text = format!("{long}\n");
        let thread = std::thread::spawn(move || writer.write_all(text.as_bytes()).unwrap());
        assert_eq!(lines.next(LONG).unwrap(), long);
        thread.join().unwrap();
    }

    #[test]
    fn silence_ends_the_wait_and_what_came_before_is_kept() {
        let (mut lines, mut writer) = pipe();
        writer.write_all(b"ha").unwrap();
        let short = Duration::from_millis(20);
        assert!(matches!(lines.next(short), Err(End::Silent)));
        writer.write_all(b"lf\n").unwrap();
        assert_eq!(lines.next(LONG).unwrap(), "half");
    }

    #[test]
    fn what_is_no_text_or_never_ends_is_nonsense() {
        let (mut lines, mut writer) = pipe();
        writer.write_all(b"\xff\xfe\n").unwrap();
        assert!(matches!(lines.next(LONG), Err(End::Nonsense)));
        let thread = std::thread::spawn(move || {
            let endless = vec![b'x'; LONGEST + 2 * CHUNK];
            // The other side stops reading.
            let _ = writer.write_all(&endless);
        });
        assert!(matches!(lines.next(LONG), Err(End::Nonsense)));
        drop(lines);
        thread.join().unwrap();
    }
}
