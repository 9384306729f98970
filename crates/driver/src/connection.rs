//! A connection of the measured path.

use crate::error::{ServerError, WireError};
use crate::inbox::Inbox;
use crate::request::{Request, Requests, message, parse, zero_ended};
use crate::scan::{Loss, Progress, Scanner, Transaction};
use crate::session::{BackendKey, Session};
use crate::sys::{self, Wait};
use crate::wire::Wire;
use deltabench_model::endpoint::{Endpoint, Login};
use deltabench_workload::executable::{Draws, Executable, Statement};
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

/// A connection with all statements prepared and one request template for each step.
#[derive(Debug)]
pub struct Connection {
    wire: Wire,
    inbox: Inbox,
    scanner: Scanner,
    requests: Requests,
    /// The steps of the operation drawn last.
    drawn: Range<usize>,
    /// Its number among the connections to its server, from 0.
    number: u32,
    rollback: Vec<u8>,
    key: BackendKey,
    /// Whether the server's process is on this machine.
    local: bool,
}

impl Connection {
    /// Connects and prepares.
    pub fn open(
        endpoint: &Endpoint,
        login: &Login,
        executable: &Executable,
        limit: Duration,
    ) -> Result<Self, WireError> {
        let mut session = Session::connect(endpoint, login, limit)?;
        let mut out = Vec::new();
        // One statement at a time: a server that refuses one is asked about it by name.
        for (index, statement) in executable.statements.iter().enumerate() {
            if !statement.prepared {
                continue;
            }
            out.clear();
            parse(&mut out, index, statement)?;
            message(&mut out, b'S', |_| {})?;
            session.send(&out, "preparing a statement")?;
            session.until_ready("preparing a statement", |message| match message.tag {
                b'1' => Ok(()),
                tag => Err(WireError::protocol(format!(
                    "message {:?} after Parse",
                    char::from(tag)
                ))),
            })?;
        }
        let requests = requests(executable)?;
        let mut rollback = Vec::new();
        message(&mut rollback, b'Q', |out| zero_ended(out, b"ROLLBACK"))?;
        let (wire, inbox, key) = session.into_parts();
        Ok(Self {
            wire,
            inbox,
            scanner: Scanner::new(),
            requests,
            drawn: 0..0,
            number: 0,
            rollback,
            key,
            local: endpoint.is_local(),
        })
    }

    /// The server's end.
    pub fn key(&self) -> BackendKey {
        self.key
    }

    /// Process id of the server's end, if that is on this machine: elsewhere the number is somebody else's.
    #[inline]
    pub fn local_pid(&self) -> Option<u32> {
        self.local.then_some(self.key.pid)
    }

    /// The socket.
    pub fn socket(&self) -> &Arc<OwnedFd> {
        self.wire.socket()
    }

    /// Rows since the last call.
    pub fn take_rows(&mut self) -> u64 {
        self.scanner.take_rows()
    }

    /// Tells the connections to a server apart: what belongs to one client goes by this number.
    pub fn with_number(mut self, number: u32) -> Self {
        self.number = number;
        self
    }

    /// Draws a whole operation, so that the stream does not depend on which answers come first.
    #[inline]
    pub fn draw(&mut self, executable: &Executable, draws: &mut Draws) {
        self.drawn = executable.draw(draws, self.number, &mut self.requests);
    }

    /// Sends a step of the operation drawn last; `false` if there is no such step.
    #[inline]
    pub fn send_step(&mut self, step: usize) -> Result<bool, Loss> {
        let place = self.drawn.start + step;
        let Some(request) = self.requests.get(place).filter(|_| place < self.drawn.end) else {
            return Ok(false);
        };
        if request.is_text() {
            self.scanner.expect_query();
        } else {
            self.scanner.expect_execution();
        }
        send_all(&mut self.wire, request.bytes())?;
        Ok(true)
    }

    /// The first request of the operation drawn last, as it is sent.
    pub fn first_request(&self) -> &[u8] {
        self.requests
            .get(self.drawn.start)
            .map_or(&[], |request| request.bytes())
    }

    /// Sends ROLLBACK.
    #[cold]
    pub fn send_rollback(&mut self) -> Result<(), Loss> {
        self.scanner.expect_command();
        send_all(&mut self.wire, &self.rollback)
    }

    /// Waits until the server is ready again; returns how often it had to.
    #[inline]
    pub fn answer(&mut self) -> Result<u64, Loss> {
        let mut waits = 0;
        loop {
            waits += 1;
            if let Err(error) = sys::wait_for_input(self.wire.socket().as_fd()) {
                return Err(Loss::Closed(format!("waiting: {error}")));
            }
            if self.receive()? == Progress::Ready {
                return Ok(waits);
            }
        }
    }

    /// Receives what is there and looks at it.
    #[inline]
    pub fn receive(&mut self) -> Result<Progress, Loss> {
        loop {
            let full = match self.inbox.receive(&mut self.wire, Wait::Never) {
                Ok(0) => return Err(Loss::Closed("the server closed the connection".to_owned())),
                // TLS may hold more that the socket will not tell of.
                Ok(_) => self.inbox.is_full() || !self.wire.is_plain(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(Progress::More);
                }
                Err(error) => return Err(Loss::Closed(format!("receiving: {error}"))),
            };
            let progress = self.scanner.scan(&mut self.inbox)?;
            if progress == Progress::Ready || !full {
                return Ok(progress);
            }
        }
    }

    /// The error of the last answer, if it was one.
    #[inline]
    pub fn take_error(&mut self) -> Option<Box<ServerError>> {
        self.scanner.take_error()
    }

    /// Whether the last answer left a transaction open.
    #[inline]
    pub fn in_transaction(&self) -> bool {
        self.scanner.transaction() != Transaction::Idle
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // Best effort, and never waiting: without it the server would log a lost connection.
        let _ = sys::set_timeout(self.wire.socket().as_fd(), Some(Duration::from_millis(1)));
        let _ = self.wire.send(b"X\0\0\0\x04");
    }
}

/// One template for each step; all candidates of a step must have the same slots.
fn requests(executable: &Executable) -> Result<Requests, WireError> {
    let wrong = |what: String| WireError::Workload {
        workload: executable.name.clone(),
        what,
    };
    let mut requests = Vec::with_capacity(executable.steps.len());
    for (number, step) in (1..).zip(&executable.steps) {
        let mut candidates = Vec::with_capacity(step.statements.len());
        for &index in &step.statements {
            let statement = executable.statements.get(index);
            let statement =
                statement.ok_or_else(|| wrong(format!("step {number} names statement {index}")))?;
            candidates.push((index, statement));
        }
        let Some(&(index, first)) = candidates.first() else {
            return Err(wrong(format!("step {number} has no statement")));
        };
        let same = |(_, other): &(usize, &Statement)| {
            other.slots == first.slots && other.prepared == first.prepared
        };
        if !candidates.iter().all(same) {
            return Err(wrong(format!(
                "the statements of step {number} differ in their placeholders"
            )));
        }
        requests.push(if first.prepared {
            Request::new(index, first)?
        } else {
            Request::text(&candidates)?
        });
    }
    if requests.is_empty() {
        return Err(wrong("it has no steps".to_owned()));
    }
    Ok(Requests::new(requests))
}

/// Sends all of `bytes`.
///
/// A peer that has closed is not an error yet: its last words may still be there to be received.
#[inline]
fn send_all(wire: &mut Wire, bytes: &[u8]) -> Result<(), Loss> {
    wire.send(bytes).or_else(|error| match error.kind() {
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => Ok(()),
        io::ErrorKind::WouldBlock => Err(Loss::Stalled),
        _ => Err(Loss::Closed(format!("sending: {error}"))),
    })
}
