//! A connection of the measured path.

use crate::error::{ServerError, WireError};
use crate::inbox::Inbox;
use crate::request::{Request, message, parse, zero_ended};
use crate::scan::{Loss, Progress, Scanner, Transaction};
use crate::session::Session;
use crate::sys::{self, Wait};
use deltabench_model::endpoint::{Endpoint, Login};
use deltabench_workload::executable::{Executable, Random};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

/// A connection with all statements prepared and one request template for each step.
#[derive(Debug)]
pub struct Connection {
    socket: Arc<OwnedFd>,
    inbox: Inbox,
    scanner: Scanner,
    requests: Vec<Request>,
    rollback: Vec<u8>,
    pid: u32,
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
        let (socket, inbox, pid) = session.into_parts();
        Ok(Self {
            socket: Arc::new(socket),
            inbox,
            scanner: Scanner::new(),
            requests,
            rollback,
            pid,
        })
    }

    /// Process id of the server's end.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The socket.
    pub fn socket(&self) -> &Arc<OwnedFd> {
        &self.socket
    }

    /// Rows since the last call.
    pub fn take_rows(&mut self) -> u64 {
        self.scanner.take_rows()
    }

    /// Draws the parameters of a whole operation, so that the stream does not depend on which answers come
    /// first.
    #[inline]
    pub fn draw(&mut self, executable: &Executable, random: &mut Random) {
        let mut table = 0;
        for (step, request) in executable.steps.iter().zip(&mut self.requests) {
            if step.draws_table {
                table = executable.draw_table(random);
            }
            if let Some(statement) = step.statement(table) {
                request.select(statement);
            }
            step.fill(random, request);
        }
    }

    /// Sends a step of the operation drawn last; `false` if there is no such step.
    #[inline]
    pub fn send_step(&mut self, step: usize) -> Result<bool, Loss> {
        let Some(request) = self.requests.get(step) else {
            return Ok(false);
        };
        self.scanner.expect_execution();
        send_all(self.socket.as_fd(), request.bytes())?;
        Ok(true)
    }

    /// Sends ROLLBACK.
    #[cold]
    pub fn send_rollback(&mut self) -> Result<(), Loss> {
        self.scanner.expect_command();
        send_all(self.socket.as_fd(), &self.rollback)
    }

    /// Waits until the server is ready again.
    #[inline]
    pub fn answer(&mut self) -> Result<(), Loss> {
        loop {
            if let Err(error) = sys::wait_for_input(self.socket.as_fd()) {
                return Err(Loss::Closed(format!("waiting: {error}")));
            }
            if self.receive()? == Progress::Ready {
                return Ok(());
            }
        }
    }

    /// Receives what is there and looks at it.
    #[inline]
    pub fn receive(&mut self) -> Result<Progress, Loss> {
        loop {
            let full = match self.inbox.receive(self.socket.as_fd(), Wait::Never) {
                Ok(0) => return Err(Loss::Closed("the server closed the connection".to_owned())),
                Ok(_) => self.inbox.is_full(),
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
        let _ = sys::set_timeout(self.socket.as_fd(), Some(Duration::from_millis(1)));
        let _ = sys::send(self.socket.as_fd(), b"X\0\0\0\x04");
    }
}

/// One template for each step; all candidates of a step must have the same slots.
fn requests(executable: &Executable) -> Result<Vec<Request>, WireError> {
    let wrong = |what: String| WireError::Workload {
        workload: executable.name.clone(),
        what,
    };
    let mut requests = Vec::with_capacity(executable.steps.len());
    for (number, step) in (1..).zip(&executable.steps) {
        let mut slots = None;
        for &index in &step.statements {
            let statement = executable.statements.get(index);
            let statement =
                statement.ok_or_else(|| wrong(format!("step {number} names statement {index}")))?;
            if slots.is_some_and(|slots| slots != &statement.slots) {
                return Err(wrong(format!(
                    "the statements of step {number} differ in their placeholders"
                )));
            }
            slots = Some(&statement.slots);
            if slots.is_some() && requests.len() < number {
                requests.push(Request::new(index, statement)?);
            }
        }
        if slots.is_none() {
            return Err(wrong(format!("step {number} has no statement")));
        }
    }
    if requests.is_empty() {
        return Err(wrong("it has no steps".to_owned()));
    }
    Ok(requests)
}

/// Sends all of `bytes`.
///
/// A peer that has closed is not an error yet: its last words may still be there to be received.
#[inline]
fn send_all(socket: BorrowedFd<'_>, bytes: &[u8]) -> Result<(), Loss> {
    let mut rest = bytes;
    while !rest.is_empty() {
        match sys::send(socket, rest) {
            Ok(sent) => rest = rest.get(sent..).unwrap_or(&[]),
            Err(error) => {
                return match error.kind() {
                    io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => Ok(()),
                    io::ErrorKind::WouldBlock => Err(Loss::Stalled),
                    _ => Err(Loss::Closed(format!("sending: {error}"))),
                };
            }
        }
    }
    Ok(())
}
