//! A connection of the benchmark.

use super::answer::{Answer, Reader};
use crate::error::WireError;
use crate::inbox::Inbox;
use crate::request::{TooLarge, message, zero_ended};
use crate::scan::Loss;
use crate::session::{BackendKey, Session};
use crate::sys::{self, Wait};
use crate::wire::Wire;
use std::io;
use std::os::fd::AsFd;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// OID of `integer`.
const INTEGER: u32 = 23;
/// OID of `bigint`.
const BIGINT: u32 = 20;

/// Width of an integer parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// `integer`.
    Four,
    /// `bigint`.
    Eight,
}

/// A connection that sends one statement at a time.
#[derive(Debug)]
pub struct Link {
    wire: Wire,
    inbox: Inbox,
    reader: Reader,
    key: BackendKey,
    /// What was sent last, or is about to be.
    request: Vec<u8>,
    /// What comes after it, made while the server is at work.
    next: Vec<u8>,
}

impl Link {
    /// A connection that is ready for commands.
    pub fn new(session: Session) -> Self {
        let (wire, inbox, key) = session.into_parts();
        Self {
            wire,
            inbox,
            reader: Reader::default(),
            key,
            request: Vec::new(),
            next: Vec::new(),
        }
    }

    /// The server's end.
    pub fn key(&self) -> BackendKey {
        self.key
    }

    /// The socket.
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.wire.socket().as_fd()
    }

    /// Makes the next request; it is a simple query with the text that `text` appends.
    pub fn prepare_text(&mut self, text: impl FnOnce(&mut Vec<u8>)) -> Result<(), Loss> {
        self.next.clear();
        let query = |out: &mut Vec<u8>| {
            text(out);
            out.push(0);
        };
        message(&mut self.next, b'Q', query).map_err(too_large)
    }

    /// Makes the next request: a statement of [`parse`] with some parameters, whose rows come as text.
    pub fn prepare_execution(
        &mut self,
        name: &str,
        width: Width,
        values: &[i64],
    ) -> Result<(), Loss> {
        self.next.clear();
        write_execution(&mut self.next, name, width, values).map_err(too_large)
    }

    /// Sends the request that was made last.
    pub fn send_next(&mut self) -> Result<(), Loss> {
        std::mem::swap(&mut self.request, &mut self.next);
        self.resend()
    }

    /// Sends the last request, once more.
    pub fn resend(&mut self) -> Result<(), Loss> {
        self.reader.expect();
        self.wire
            .send(&self.request)
            .or_else(|error| match error.kind() {
                // Its last words may still be there to be received.
                io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => Ok(()),
                io::ErrorKind::WouldBlock => Err(Loss::Stalled),
                _ => Err(Loss::Closed(format!("sending: {error}"))),
            })
    }

    /// Receives all that is there; the answer once it is complete.
    pub fn receive(&mut self) -> Result<Option<Answer>, Loss> {
        let mut found = None;
        loop {
            let full = match self.inbox.receive(&mut self.wire, Wait::Never) {
                Ok(0) => return Err(closed()),
                // TLS may hold more that the socket will not tell of.
                Ok(_) => self.inbox.is_full() || !self.wire.is_plain(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(found),
                // It did so before it had read all that was sent.
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                    return Err(closed());
                }
                Err(error) => return Err(Loss::Closed(format!("receiving: {error}"))),
            };
            found = self.reader.read(&mut self.inbox)?.or(found);
            if !full {
                return Ok(found);
            }
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // Best effort, and never waiting: without it the server would log a lost connection.
        let _ = sys::set_timeout(self.socket(), Some(Duration::from_millis(1)));
        let _ = self.wire.send(b"X\0\0\0\x04");
    }
}

/// Appends the execution of a statement of [`parse`] with some parameters, whose rows come as text.
pub fn write_execution(
    out: &mut Vec<u8>,
    name: &str,
    width: Width,
    values: &[i64],
) -> Result<(), TooLarge> {
    let count = u16::try_from(values.len()).map_err(|_| TooLarge::Placeholders)?;
    let bind = |out: &mut Vec<u8>| {
        // The unnamed portal; one format for all parameters: binary.
        out.push(0);
        zero_ended(out, name.as_bytes());
        out.extend_from_slice(&[0, 1, 0, 1]);
        out.extend_from_slice(&count.to_be_bytes());
        for value in values {
            match width {
                Width::Four => {
                    out.extend_from_slice(&4_i32.to_be_bytes());
                    // The caller has chosen a width that is enough.
                    let value = i32::try_from(*value).unwrap_or(i32::MAX);
                    out.extend_from_slice(&value.to_be_bytes());
                }
                Width::Eight => {
                    out.extend_from_slice(&8_i32.to_be_bytes());
                    out.extend_from_slice(&value.to_be_bytes());
                }
            }
        }
        // No format for results: text.
        out.extend_from_slice(&[0, 0]);
    };
    message(out, b'B', bind)?;
    // Unnamed portal, no row limit.
    let execute = |out: &mut Vec<u8>| out.extend_from_slice(&[0, 0, 0, 0, 0]);
    message(out, b'E', execute)?;
    message(out, b'S', |_| {})
}

fn closed() -> Loss {
    Loss::Closed("the server closed the connection".to_owned())
}

fn too_large(error: TooLarge) -> Loss {
    Loss::Nonsense(error.to_string())
}

/// Runs a statement before the measurement.
pub fn run(session: &mut Session, sql: &str) -> Result<(), WireError> {
    look_up(session, sql).map(|_| ())
}

/// Runs a statement before the measurement that returns a number.
pub fn look_up(session: &mut Session, sql: &str) -> Result<Option<i64>, WireError> {
    const DOING: &str = "preparing a step of the Insert Benchmark";
    let mut out = Vec::new();
    message(&mut out, b'Q', |out| zero_ended(out, sql.as_bytes()))?;
    session.send(&out, DOING)?;
    let mut found = None;
    session.until_ready(DOING, |message| {
        if message.tag == b'D' {
            found = super::answer::first_number(&message.body);
        }
        Ok(())
    })?;
    Ok(found)
}

/// Prepares a statement under a name.
pub fn parse(
    session: &mut Session,
    name: &str,
    sql: &str,
    (width, parameters): (Width, usize),
) -> Result<(), WireError> {
    const DOING: &str = "preparing a statement";
    let count = u16::try_from(parameters).map_err(|_| TooLarge::Placeholders)?;
    let oid = match width {
        Width::Four => INTEGER,
        Width::Eight => BIGINT,
    };
    let mut out = Vec::new();
    message(&mut out, b'P', |out| {
        zero_ended(out, name.as_bytes());
        zero_ended(out, sql.as_bytes());
        out.extend_from_slice(&count.to_be_bytes());
        for _ in 0..count {
            out.extend_from_slice(&oid.to_be_bytes());
        }
    })?;
    message(&mut out, b'S', |_| {})?;
    session.send(&out, DOING)?;
    session.until_ready(DOING, |_| Ok(()))
}
