//! The receive buffer of a connection.

use crate::sys::Wait;
use crate::wire::Wire;
use std::io;

/// One receive takes at most this much: eight of the server's 8 KiB send buffers.
const ROOM: usize = 64 * 1024;

/// Received bytes that nobody has looked at yet.
#[derive(Debug)]
pub struct Inbox {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Inbox {
    /// An empty buffer.
    pub fn new() -> Self {
        Self {
            bytes: vec![0; ROOM],
            start: 0,
            end: 0,
        }
    }

    /// What has not been consumed.
    pub fn pending(&self) -> &[u8] {
        self.bytes.get(self.start..self.end).unwrap_or(&[])
    }

    /// Whether all has been consumed.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Consumes all but the last `left` bytes, and makes room for at least `wanted` bytes counted from there.
    pub fn keep(&mut self, left: usize, wanted: usize) {
        let start = self.end.saturating_sub(left).max(self.start);
        if start == self.end {
            self.start = 0;
            self.end = 0;
            return;
        }
        self.start = start;
        if start + wanted > self.bytes.len() || self.end == self.bytes.len() {
            self.bytes.copy_within(start..self.end, 0);
            self.end -= start;
            self.start = 0;
            if wanted > self.bytes.len() {
                self.bytes.resize(wanted, 0);
            }
        }
    }

    /// Whether the last receive may have left bytes behind.
    pub fn is_full(&self) -> bool {
        self.end == self.bytes.len()
    }

    /// Receives once; 0 means that the peer closed.
    #[inline]
    pub fn receive(&mut self, wire: &mut Wire, wait: Wait) -> io::Result<usize> {
        let room = self.bytes.get_mut(self.end..).unwrap_or(&mut []);
        let count = wire.receive(room, wait)?;
        self.end += count;
        Ok(count)
    }

    /// Takes as many of `bytes` as there is room for, as if they had been received.
    #[cfg(test)]
    pub fn push(&mut self, bytes: &[u8]) -> usize {
        let count = bytes.len().min(self.bytes.len() - self.end);
        self.bytes[self.end..self.end + count].copy_from_slice(&bytes[..count]);
        self.end += count;
        count
    }
}
