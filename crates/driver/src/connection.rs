//! A connection of the measured path.

use crate::error::{ServerError, WireError};
use crate::inbox::Inbox;
use crate::performer::{Performer, Turn};
use crate::request::{Request, Requests, message, parse, zero_ended};
use crate::scan::{Loss, Progress, Scanner, Transaction};
use crate::session::{BackendKey, Session};
use crate::sys::{self, Wait};
use crate::wire::Wire;
use deltabench_model::endpoint::{Endpoint, Login};
use deltabench_workload::executable::{Draws, Executable, Statement};
use deltabench_workload::pgbench::Program;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

/// As much can be sent without receiving meanwhile: it fits into what the kernel keeps for a socket.
const SENT_AT_ONCE: usize = 32 * 1024;

/// What answers a request that is sent as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// Of a simple query.
    Query,
    /// Of Bind, Execute and Sync.
    Execution,
    /// The same with a Parse before.
    Parsed,
}

/// A connection with all statements prepared.
#[derive(Debug)]
pub struct Connection {
    wire: Wire,
    inbox: Inbox,
    scanner: Scanner,
    part: Part,
    rollback: Vec<u8>,
    key: BackendKey,
    /// Whether the server's process is on this machine.
    local: bool,
}

/// What the connection does of a workload.
#[derive(Debug)]
enum Part {
    Steps(Steps),
    Program(Box<Performer>),
}

/// Steps, with a request template for each.
#[derive(Debug)]
struct Steps {
    requests: Requests,
    /// The steps of the operation drawn last.
    drawn: Range<usize>,
    next: usize,
    /// The connection's number among those to its server, from 0.
    client: u32,
}

impl Connection {
    /// Connects and prepares. `client` tells the connections to a server apart, from 0: what belongs to one
    /// client goes by this number.
    pub fn open(
        endpoint: &Endpoint,
        login: &Login,
        executable: &Executable,
        client: u32,
        limit: Duration,
    ) -> Result<Self, WireError> {
        let mut session = Session::connect(endpoint, login, limit)?;
        let part = match &executable.program {
            None => Part::Steps(Steps::prepare(&mut session, executable, client)?),
            Some(program) => {
                let mut performer = Performer::new(program, client)?;
                prepare(&mut session, program, &mut performer)?;
                Part::Program(Box::new(performer))
            }
        };
        let mut rollback = Vec::new();
        message(&mut rollback, b'Q', |out| zero_ended(out, b"ROLLBACK"))?;
        let (wire, inbox, key) = session.into_parts();
        Ok(Self {
            wire,
            inbox,
            scanner: Scanner::new(),
            part,
            rollback,
            key,
            local: endpoint.is_local(),
        })
    }

    /// A connection that sends what it is given, and has no operations of its own.
    pub fn plain(session: Session, endpoint: &Endpoint) -> Self {
        let (wire, inbox, key) = session.into_parts();
        Self {
            wire,
            inbox,
            scanner: Scanner::new(),
            part: Part::Steps(Steps {
                requests: Requests::new(Vec::new()),
                drawn: 0..0,
                next: 0,
                client: 0,
            }),
            rollback: Vec::new(),
            key,
            local: endpoint.is_local(),
        }
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

    /// Draws a whole operation, so that the stream does not depend on which answers come first.
    #[inline]
    pub fn draw(&mut self, executable: &Executable, draws: &mut Draws) {
        match (&mut self.part, &executable.program) {
            (Part::Steps(steps), _) => {
                steps.drawn = executable.draw(draws, steps.client, &mut steps.requests);
                steps.next = steps.drawn.start;
            }
            (Part::Program(performer), Some(program)) => performer.draw(program, draws),
            (Part::Program(_), None) => {}
        }
    }

    /// The script of the operation drawn last, of a program.
    #[inline]
    pub fn script(&self) -> usize {
        match &self.part {
            Part::Steps(_) => 0,
            Part::Program(performer) => performer.script(),
        }
    }

    /// Begins the operation drawn last, or goes on with it: the answer that it needed is complete, the time
    /// has passed. Sends what is next.
    #[inline]
    pub fn go_on(&mut self, executable: &Executable) -> Result<Turn, Loss> {
        match (&mut self.part, &executable.program) {
            (Part::Steps(steps), _) => {
                if let Some(error) = self.scanner.take_error() {
                    return Ok(Turn::Failed(error));
                }
                if let Some(request) = steps.take() {
                    if request.is_text() {
                        self.scanner.expect_query();
                    } else {
                        self.scanner.expect_execution();
                    }
                    send_all(&mut self.wire, request.bytes())?;
                    return Ok(Turn::Answer);
                }
                Ok(self.done())
            }
            (Part::Program(_), Some(program)) => self.go_on_with(program),
            (Part::Program(_), None) => Ok(Turn::Done),
        }
    }

    /// Begins the operation drawn last once more, from the same state. Only programs are tried again.
    #[cold]
    pub fn start_again(&mut self, executable: &Executable) -> Result<Turn, Loss> {
        if let (Part::Program(performer), Some(program)) = (&mut self.part, &executable.program) {
            performer.retry(program);
        }
        self.go_on(executable)
    }

    #[inline]
    fn go_on_with(&mut self, program: &Program) -> Result<Turn, Loss> {
        let Part::Program(performer) = &mut self.part else {
            return Ok(Turn::Done);
        };
        let answered = match self.scanner.take_error() {
            Some(error) => Err(error),
            None => performer.answered(program, &self.scanner),
        };
        let turn = match answered {
            Ok(()) => performer.go_on(program, &mut self.scanner),
            Err(error) => Turn::Failed(error),
        };
        match turn {
            Turn::Answer if performer.bytes().len() > SENT_AT_ONCE => {
                let bytes = performer.take_bytes();
                self.send_large(&bytes)?;
                Ok(Turn::Answer)
            }
            Turn::Answer => {
                send_all(&mut self.wire, performer.bytes())?;
                Ok(Turn::Answer)
            }
            Turn::Done => Ok(self.done()),
            Turn::Failed(error) => {
                performer.give_up();
                Ok(Turn::Failed(error))
            }
            Turn::Rest(time) => Ok(Turn::Rest(time)),
        }
    }

    /// Sends a long pipeline, and receives meanwhile: a server that cannot get rid of its answers would not
    /// take more of it, and both would wait for ever.
    #[cold]
    fn send_large(&mut self, bytes: &[u8]) -> Result<(), Loss> {
        let mut rest = bytes;
        while !rest.is_empty() {
            match self.wire.send_some(rest) {
                Ok(sent) => rest = rest.get(sent..).unwrap_or(&[]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    sys::wait_for_either(self.wire.socket().as_fd())
                        .map_err(|error| Loss::Closed(format!("waiting: {error}")))?;
                    self.receive()?;
                }
                Err(error) => return lost(&error),
            }
        }
        // What TLS still holds is a record or two.
        send_all(&mut self.wire, &[])
    }

    /// The end of an operation that met no error: one that leaves its transaction open is a mistake in the
    /// workload.
    #[inline]
    fn done(&self) -> Turn {
        if !self.in_transaction() {
            return Turn::Done;
        }
        Turn::Failed(Box::new(ServerError {
            severity: "ERROR".to_owned(),
            sqlstate: "25001".to_owned(),
            message: "the operation left a transaction open".to_owned(),
            detail: None,
            hint: None,
            routine: None,
        }))
    }

    /// The first request of the operation drawn last, as it is sent.
    pub fn first_request(&mut self, executable: &Executable) -> &[u8] {
        match (&mut self.part, &executable.program) {
            (Part::Steps(steps), _) => {
                let request = steps.requests.get(steps.drawn.start);
                request.map_or(&[], Request::bytes)
            }
            (Part::Program(performer), Some(program)) => performer.first_bytes(program),
            (Part::Program(_), None) => &[],
        }
    }

    /// Sends ROLLBACK.
    #[cold]
    pub fn send_rollback(&mut self) -> Result<(), Loss> {
        self.scanner.expect_command();
        send_all(&mut self.wire, &self.rollback)
    }

    /// Sends a statement as text and waits for the end of its answer; its rows are nobody's.
    ///
    /// Errors: the connection is lost, the server's own error.
    #[cold]
    pub fn ask(&mut self, sql: &str) -> Result<(), WireError> {
        let mut request = Vec::new();
        message(&mut request, b'Q', |out| zero_ended(out, sql.as_bytes()))?;
        let error = self
            .round_trip(&request, Expected::Query)
            .map_err(|loss| WireError::protocol(format!("asking `{sql}`: {loss:?}")))?;
        self.scanner.take_rows();
        match error {
            Some(error) => Err(WireError::Server(*error)),
            None => Ok(()),
        }
    }

    /// Sends a finished request and waits for the end of its answer; its rows are counted
    /// ([`take_rows`](Self::take_rows)).
    ///
    /// Shape:  the server's error, after which the connection can be used again.
    /// Errors: the connection is lost.
    #[inline]
    pub fn round_trip(
        &mut self,
        request: &[u8],
        expected: Expected,
    ) -> Result<Option<Box<ServerError>>, Loss> {
        match expected {
            Expected::Query => self.scanner.expect_query(),
            Expected::Execution => self.scanner.expect_execution(),
            Expected::Parsed => self.scanner.expect_described(1, 1),
        }
        send_all(&mut self.wire, request)?;
        self.answer()?;
        Ok(self.scanner.take_error())
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

    /// Makes sure that a ROLLBACK did what it is for.
    #[cold]
    pub fn rolled_back(&mut self) -> Result<(), Loss> {
        if let Some(error) = self.scanner.take_error() {
            return Err(Loss::Nonsense(format!("ROLLBACK failed: {error}")));
        }
        if self.in_transaction() {
            return Err(Loss::Nonsense(
                "a transaction is still open after ROLLBACK".to_owned(),
            ));
        }
        Ok(())
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

impl Steps {
    /// Prepares all statements.
    fn prepare(
        session: &mut Session,
        executable: &Executable,
        client: u32,
    ) -> Result<Self, WireError> {
        let mut out = Vec::new();
        // One statement at a time: a server that refuses one is asked about it by name.
        for (index, statement) in executable.statements.iter().enumerate() {
            if !statement.prepared {
                continue;
            }
            out.clear();
            parse(&mut out, index, statement)?;
            message(&mut out, b'S', |_| {})?;
            prepare_one(session, &out)?;
        }
        Ok(Self {
            requests: requests(executable)?,
            drawn: 0..0,
            next: 0,
            client,
        })
    }

    /// The request that is next.
    #[inline]
    fn take(&mut self) -> Option<&Request> {
        if self.next >= self.drawn.end {
            return None;
        }
        let request = self.requests.get(self.next);
        self.next += 1;
        request
    }
}

/// Prepares what can be prepared before the script runs.
///
/// pgbench prepares a statement where a script first comes to it, inside the measured time. Here that is
/// left for those that the server does not know how to read yet: in a program that makes something itself,
/// and where a statement may never be sent.
fn prepare(
    session: &mut Session,
    program: &Program,
    performer: &mut Performer,
) -> Result<(), WireError> {
    let later = program.statements().iter().any(|statement| {
        let sql = statement.sql.to_ascii_lowercase();
        ["create", "alter", "into", "search_path"]
            .iter()
            .any(|word| sql.contains(word))
    });
    for index in 0..program.statements().len() {
        let Some(message) = performer.preparation(index) else {
            continue;
        };
        match prepare_one(session, &message) {
            Ok(()) => performer.prepared(index),
            Err(error)
                if (later || is_optional(program, index))
                    && error.sqlstate().is_some_and(is_missing) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Whether a statement may never be sent: inside of an `\if`, or in a script that is never drawn.
fn is_optional(program: &Program, index: usize) -> bool {
    program.statements().get(index).is_some_and(|statement| {
        let script = program.scripts.get(statement.script);
        statement.conditional || script.is_some_and(|script| script.weight == 0)
    })
}

/// Whether that is the error of a table, column, function, type or schema that is not there.
fn is_missing(sqlstate: &str) -> bool {
    matches!(
        sqlstate,
        "42P01" | "42703" | "42883" | "42704" | "3F000" | "26000"
    )
}

/// Sends Parse and Sync.
fn prepare_one(session: &mut Session, message: &[u8]) -> Result<(), WireError> {
    const DOING: &str = "preparing a statement";
    session.send(message, DOING)?;
    session.until_ready(DOING, |message| match message.tag {
        b'1' => Ok(()),
        tag => Err(WireError::protocol(format!(
            "message {:?} after Parse",
            char::from(tag)
        ))),
    })
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
    wire.send(bytes).or_else(|error| lost(&error))
}

/// What a failed send means.
#[cold]
fn lost(error: &io::Error) -> Result<(), Loss> {
    match error.kind() {
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => Ok(()),
        io::ErrorKind::WouldBlock => Err(Loss::Stalled),
        _ => Err(Loss::Closed(format!("sending: {error}"))),
    }
}
