//! One thread with connections to several servers.
//!
//! With one client per server a slice is a chain of send, poll and receive; with more it is one epoll set,
//! one operation under way on each connection, and the set drained at the end. Either way an operation
//! costs one send, at least one wait and one receive, one reading of the clock and one histogram entry. A
//! second thread wakes a few times per time limit to see whether the server still answers.
//!
//! With a rate, operations are scheduled at a constant distance and their latency counts from the schedule,
//! also when no connection was free: a server that stands still for a second shows that second in every
//! operation that was due in it. What is due is sent late, in order; nothing is skipped, but by a program
//! with a latency limit.
//!
//! A program of pgbench scripts is carried out as pgbench does it (tries after serialization failures and
//! deadlocks, rests, the latency limit with a rate), with two differences: operations are due at a constant
//! distance, not at random ones; and an error that is not tried again, be it of the server or of the
//! script, fails the operation, and the client goes on, where pgbench gives the client up.

mod many;
mod single;
mod turns;

use self::turns::Turns;
use crate::connection::Connection;
use crate::error::{ServerError, WireError};
use crate::scan::Loss;
use crate::slice::{SliceOutcome, SliceRequest, Tally};
use crate::sys::{self, Poller};
use crate::watchdog::{Sockets, Watchdog};
use deltabench_model::endpoint::{Endpoint, Login};
use deltabench_model::slice::VoidReason;
use deltabench_workload::executable::{Draws, Executable};
use deltabench_workload::pgbench::Program;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2Serializer};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

/// Largest latency that is told from larger ones, nanoseconds: 60 s.
const LONGEST_NS: u64 = 60_000_000_000;
/// Significant decimal digits of a latency.
const DIGITS: u8 = 3;

/// What a lane connects to, and with what.
#[derive(Debug, Clone, Copy)]
pub struct LaneSpec<'a> {
    /// The servers, in an order of the caller's choice.
    pub servers: &'a [(Endpoint, Login)],
    /// What is going to be sent; prepared on every connection.
    pub executable: &'a Executable,
    /// Connections to each server, at least 1.
    pub clients: u32,
    /// How long one operation may take before the server counts as stalled; also the limit of each step of
    /// connecting.
    pub op_timeout: Duration,
    /// Operations per second over all connections to a server, scheduled at a constant distance whatever the
    /// server does (open loop); absent for a closed loop, in which the end of an operation starts the next.
    pub rate: Option<f64>,
}

/// One thread's connections to all servers of a comparison, open across slices.
pub struct Lane {
    executable: Executable,
    clients: u32,
    op_timeout: Duration,
    rate: Option<f64>,
    links: Vec<Link>,
    histogram: Histogram<u64>,
    serializer: V2Serializer,
    watchdog: Watchdog,
    turns: Turns,
    before_send: Option<BeforeSend>,
}

/// What is done before something is sent to a server's process, which is named.
pub type BeforeSend = Box<dyn FnMut(u32) + Send>;

/// The connections to one server; none while the server is not usable.
#[derive(Debug)]
struct Link {
    endpoint: Endpoint,
    login: Login,
    connections: Vec<Connection>,
    pids: Vec<u32>,
    poller: Option<Poller>,
    /// Sockets of the connections, for the watchdog.
    sockets: Sockets,
}

impl Lane {
    /// Connects to every server and prepares all statements.
    ///
    /// Errors: [`WireError::At`] with the server's index; connections made so far are closed.
    /// [`WireError::Workload`] for a rate that is none, and a program that could be tried again for ever.
    pub fn connect(spec: &LaneSpec<'_>) -> Result<Self, WireError> {
        if let Some(rate) = spec.rate.filter(|rate| !(rate.is_finite() && *rate > 0.0)) {
            return Err(WireError::Workload {
                workload: spec.executable.name.clone(),
                what: format!("a rate of {rate} operations per second"),
            });
        }
        let endless =
            |program: &Program| program.max_tries == 0 && program.latency_limit_ns.is_none();
        if spec.executable.program.as_ref().is_some_and(endless) {
            return Err(WireError::Workload {
                workload: spec.executable.name.clone(),
                what: "any number of tries without a latency limit".to_owned(),
            });
        }
        let histogram = Histogram::new_with_bounds(1, LONGEST_NS, DIGITS)
            .map_err(|error| WireError::protocol(format!("histogram: {error}")))?;
        let links = spec.servers.iter().map(|(endpoint, login)| Link {
            endpoint: endpoint.clone(),
            login: login.clone(),
            connections: Vec::new(),
            pids: Vec::new(),
            poller: None,
            sockets: Sockets::from([]),
        });
        let mut lane = Self {
            executable: spec.executable.clone(),
            clients: spec.clients.max(1),
            op_timeout: spec.op_timeout,
            rate: spec.rate,
            links: links.collect(),
            histogram,
            serializer: V2Serializer::new(),
            watchdog: Watchdog::start(spec.op_timeout),
            turns: Turns::default(),
            before_send: None,
        };
        for server in 0..lane.links.len() {
            lane.reconnect(server)?;
        }
        Ok(lane)
    }

    /// Closes the connections to a server and opens new ones.
    ///
    /// Errors: [`WireError::At`]; the server is not usable then.
    pub fn reconnect(&mut self, server: usize) -> Result<(), WireError> {
        let (clients, limit) = (self.clients, self.op_timeout);
        let polled = clients > 1 || self.rate.is_some();
        let Some(link) = self.links.get_mut(server) else {
            return Err(WireError::protocol(format!(
                "the lane has no server {server}"
            )));
        };
        link.close();
        link.open(&self.executable, clients, limit)
            .and_then(|()| if polled { link.watch() } else { Ok(()) })
            .map_err(|error| {
                link.close();
                WireError::At {
                    server,
                    endpoint: link.endpoint.to_string(),
                    error: Box::new(error),
                }
            })
    }

    /// Process ids of the server processes behind the connections; empty while the server is not usable.
    pub fn backend_pids(&self, server: usize) -> &[u32] {
        self.links.get(server).map_or(&[], |link| &link.pids)
    }

    /// Has something done before each send of a lane with one client, each step of an operation and each
    /// [`Lane::ask`]: a counter of instructions wants the server to sleep by then.
    pub fn before_send(&mut self, done: BeforeSend) {
        self.before_send = Some(done);
    }

    /// Sends a statement over the first connection to a server, outside of any slice, and waits for the end
    /// of its answer.
    ///
    /// Errors: the connection is lost, the server's own error.
    pub fn ask(&mut self, server: usize, sql: &str) -> Result<(), WireError> {
        let link = self.links.get_mut(server);
        let Some(connection) = link.and_then(|link| link.connections.first_mut()) else {
            return Err(WireError::protocol(format!(
                "server {server} is not connected"
            )));
        };
        if let (Some(done), Some(pid)) = (&mut self.before_send, connection.local_pid()) {
            done(pid);
        }
        connection.ask(sql)
    }

    /// Whether the server has open connections that can be used.
    pub fn is_usable(&self, server: usize) -> bool {
        self.links
            .get(server)
            .is_some_and(|link| !link.connections.is_empty())
    }

    /// Does exactly `request.operations` operations on one server.
    ///
    /// A server that stalls, closes or answers nonsense makes the slice void and loses its connections; it
    /// can be used again after [`reconnect`](Self::reconnect). A server without connections gives a void
    /// slice at once.
    pub fn run_slice(&mut self, server: usize, request: SliceRequest) -> SliceOutcome {
        let Some(link) = self
            .links
            .get_mut(server)
            .filter(|link| !link.connections.is_empty())
        else {
            self.histogram.reset();
            return SliceOutcome::not_started(
                self.serialized(),
                self.executable.program.as_ref(),
                format!("server {server} is not connected"),
            );
        };
        let last = request.first_operation.saturating_add(request.operations);
        if let Some(most) = self.executable.operations_max.filter(|most| last > *most) {
            let name = &self.executable.name;
            let detail = format!("{name} ends after {most} operations: a sequence is used up");
            self.histogram.reset();
            let mut outcome = SliceOutcome::not_started(self.serialized(), None, detail);
            outcome.void = Some(VoidReason::NothingDone);
            return outcome;
        }
        let mut draws = Draws::new(request.seed, request.first_operation);
        let cpu_before_ns = sys::thread_cpu_ns();
        let program = self.executable.program.as_ref();
        let mut tally = Tally::new(&mut self.histogram, program);
        let work = Work {
            executable: &self.executable,
            draws: &mut draws,
            operations: request.operations,
            rate: self.rate,
            limit: self.op_timeout,
            watchdog: &self.watchdog,
            turns: &mut self.turns,
            before_send: self.before_send.as_mut(),
        };
        work.turns.begin();
        self.watchdog.arm(&link.sockets);
        let end = match (&mut link.poller, link.connections.as_mut_slice()) {
            (Some(poller), connections) => many::run(connections, poller, work, &mut tally),
            (None, [connection, ..]) => single::run(connection, work, &mut tally),
            (None, []) => Ok(()),
        };
        self.turns.end();
        let cut_off = self.watchdog.disarm();
        let end = if cut_off { Err(Loss::Stalled) } else { end };
        let lost = end.is_err();
        let mut outcome = tally.outcome(end);
        outcome.client_cpu_ns = sys::thread_cpu_ns().saturating_sub(cpu_before_ns);
        outcome.rows = link.connections.iter_mut().map(Connection::take_rows).sum();
        if lost {
            if outcome.void == Some(VoidReason::Stalled) {
                link.cancel();
            }
            link.close();
        }
        outcome.latency_histogram = self.serialized();
        outcome
    }

    /// Latencies of the last slice.
    pub fn histogram(&self) -> &Histogram<u64> {
        &self.histogram
    }

    fn serialized(&mut self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(4096);
        let written = self.serializer.serialize(&self.histogram, &mut bytes);
        assert!(
            written.is_ok(),
            "a histogram of fixed bounds always fits its format"
        );
        bytes
    }
}

impl std::fmt::Debug for Lane {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lane")
            .field("clients", &self.clients)
            .field("links", &self.links)
            .finish_non_exhaustive()
    }
}

impl Link {
    fn close(&mut self) {
        self.poller = None;
        self.sockets = Sockets::from([]);
        self.pids.clear();
        self.connections.clear();
    }

    fn open(
        &mut self,
        executable: &Executable,
        clients: u32,
        limit: Duration,
    ) -> Result<(), WireError> {
        for client in 0..clients {
            let (endpoint, login) = (&self.endpoint, &self.login);
            let connection = Connection::open(endpoint, login, executable, client, limit)?;
            self.pids.push(connection.key().pid);
            self.connections.push(connection);
        }
        self.sockets = self
            .connections
            .iter()
            .map(|connection| Arc::clone(connection.socket()))
            .collect();
        Ok(())
    }

    /// Makes the set that tells which connections have answers.
    fn watch(&mut self) -> Result<(), WireError> {
        let failed = |error| WireError::transfer("watching the connections", error, None);
        let mut poller = Poller::new(self.connections.len()).map_err(failed)?;
        for (token, connection) in (0..).zip(&self.connections) {
            poller
                .add(connection.socket().as_fd(), token)
                .map_err(failed)?;
        }
        self.poller = Some(poller);
        Ok(())
    }

    /// Asks the server to give up what these connections have sent, so that it does not work on for nobody.
    fn cancel(&self) {
        for connection in &self.connections {
            // A server that does not even take this has other troubles, and the slice is void already.
            let _ = connection.key().cancel(&self.endpoint);
        }
    }
}

/// What a loop has to do.
struct Work<'a> {
    executable: &'a Executable,
    draws: &'a mut Draws,
    operations: u64,
    rate: Option<f64>,
    limit: Duration,
    watchdog: &'a Watchdog,
    turns: &'a mut Turns,
    before_send: Option<&'a mut BeforeSend>,
}

impl Work<'_> {
    /// Whether an operation that failed so is to be tried again, which was tried so often and is so old.
    #[cold]
    fn tries_again(&self, error: &ServerError, tries: u32, age_ns: u64) -> bool {
        let Some(program) = &self.executable.program else {
            return false;
        };
        error.is_transient()
            && (program.max_tries == 0 || tries < program.max_tries)
            && program.latency_limit_ns.is_none_or(|limit| age_ns <= limit)
    }

    /// How late an operation may be begun in an open loop.
    fn latency_limit_ns(&self) -> Option<u64> {
        self.executable.program.as_ref()?.latency_limit_ns
    }
}
