//! Connections to several servers, and the threads that keep them busy.
//!
//! With one client per server a slice is a chain of send, poll and receive; with more it is one epoll set for
//! each thread, one operation under way on each connection, and the set drained at the end. Either way an
//! operation costs one send, at least one wait and one receive, one reading of the clock and one histogram
//! entry. Another thread wakes a few times per time limit to see whether the server still answers.
//!
//! Threads have connections of their own and share one number: that of the next operation. Whichever is
//! free takes it, so all are done at the same time, and the operations are the same for any number of
//! threads.
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

mod claims;
mod crew;
mod fresh;
mod interleaved;
mod many;
mod probe;
mod single;
mod turns;

use self::claims::Claims;
use self::crew::{Member, Part};
use self::fresh::Door;
pub use self::interleaved::Stops;
use self::probe::Probe;
use self::single::Alone;
use self::turns::Turns;
use crate::connection::Connection;
use crate::error::{ServerError, WireError};
use crate::scan::Loss;
use crate::slice::{SliceOutcome, SliceRequest, Tally};
use crate::sys::Poller;
use crate::watchdog::{Pulse, Sockets, Watchdog};
use deltabench_model::endpoint::{Endpoint, Login};
use deltabench_model::slice::VoidReason;
use deltabench_model::units::index;
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
    /// Threads that the connections are spread over, at least 1; no more than there are clients.
    pub jobs: u32,
    /// The cores of the threads: one each if there are as many, else for all of them what the calling thread
    /// may use.
    pub cores: &'a [usize],
    /// How long one operation may take before the server counts as stalled; also the limit of each step of
    /// connecting.
    pub op_timeout: Duration,
    /// Operations per second over all connections to a server, scheduled at a constant distance whatever the
    /// server does (open loop); absent for a closed loop, in which the end of an operation starts the next.
    pub rate: Option<f64>,
}

/// The connections to all servers of a comparison, open across slices.
pub struct Lane {
    executable: Executable,
    clients: u32,
    jobs: u32,
    /// One for each thread, or none.
    cores: Vec<usize>,
    op_timeout: Duration,
    rate: Option<f64>,
    links: Vec<Link>,
    /// One for each thread; after a slice, the first has the latencies of all.
    histograms: Vec<Own>,
    serializer: V2Serializer,
    watchdog: Watchdog,
    turns: Turns,
    before_send: Option<BeforeSend>,
    probe: Option<Probe>,
}

/// A thread's histogram on cache lines of its own (pairs, because processors fetch them so).
#[repr(align(128))]
struct Own(Histogram<u64>);

/// What is done before something is sent to a server's process, which is named.
pub type BeforeSend = Box<dyn FnMut(u32) + Send>;

/// The connections to one server; none while the server is not usable.
#[derive(Debug)]
struct Link {
    endpoint: Endpoint,
    login: Login,
    /// One for each thread.
    parts: Vec<Part>,
    pids: Vec<u32>,
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
        if let (true, Some(_)) = (spec.executable.reconnects, spec.rate) {
            return Err(WireError::Workload {
                workload: spec.executable.name.clone(),
                what: "a rate, and a connection for each operation".to_owned(),
            });
        }
        if spec.executable.program.as_ref().is_some_and(endless) {
            return Err(WireError::Workload {
                workload: spec.executable.name.clone(),
                what: "any number of tries without a latency limit".to_owned(),
            });
        }
        let clients = spec.clients.max(1);
        // A thread that opens a connection waits for it, so it can serve nobody else.
        let jobs = match spec.executable.reconnects {
            true => clients,
            false => spec.jobs.clamp(1, clients),
        };
        let histogram = || Histogram::new_with_bounds(1, LONGEST_NS, DIGITS);
        let histograms = (0..jobs)
            .map(|_| histogram().map(Own))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| WireError::protocol(format!("histogram: {error}")))?;
        crew::try_out(jobs).map_err(|error| {
            WireError::transfer("starting the threads of the client", error, None)
        })?;
        let links = spec.servers.iter().map(|(endpoint, login)| Link {
            endpoint: endpoint.clone(),
            login: login.clone(),
            parts: Vec::new(),
            pids: Vec::new(),
            sockets: Sockets::from([]),
        });
        let mut lane = Self {
            executable: spec.executable.clone(),
            clients,
            jobs,
            cores: match spec.cores.len() == histograms.len() {
                true => spec.cores.to_vec(),
                false => Vec::new(),
            },
            op_timeout: spec.op_timeout,
            rate: spec.rate,
            links: links.collect(),
            watchdog: Watchdog::start(spec.op_timeout, histograms.len()),
            histograms,
            serializer: V2Serializer::new(),
            turns: Turns::default(),
            before_send: None,
            probe: None,
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
        let (clients, jobs, limit) = (self.clients, self.jobs, self.op_timeout);
        let polled = clients > 1 || self.rate.is_some();
        let Some(link) = self.links.get_mut(server) else {
            return Err(WireError::protocol(format!(
                "the lane has no server {server}"
            )));
        };
        link.close();
        let opened = match self.executable.reconnects {
            true => link.open_doors(&self.executable, clients, limit),
            false => link.open(&self.executable, (clients, jobs), limit),
        };
        let polled = polled && !self.executable.reconnects;
        opened
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

    /// Has the speed of the core measured between the operations of a closed loop with one client that keeps
    /// its connection: what the client measures is the server's core if they share one. Other lanes measure
    /// nothing.
    ///
    /// Errors: the machine has no descriptors left.
    pub fn probe_core(&mut self) -> Result<(), WireError> {
        let failed = |error| WireError::transfer("making the probe of the core", error, None);
        self.probe = Some(Probe::new().map_err(failed)?);
        Ok(())
    }

    /// Sends a statement over the first connection to a server, outside of any slice, and waits for the end
    /// of its answer.
    ///
    /// Errors: the connection is lost, the server's own error.
    pub fn ask(&mut self, server: usize, sql: &str) -> Result<(), WireError> {
        let link = self.links.get_mut(server);
        let Some(connection) = link.and_then(|link| link.connections_mut().next()) else {
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
            .is_some_and(|link| !link.parts.is_empty())
    }

    /// Does exactly `request.operations` operations on one server.
    ///
    /// A server that stalls, closes or answers nonsense makes the slice void and loses its connections; it
    /// can be used again after [`reconnect`](Self::reconnect). A server without connections gives a void
    /// slice at once.
    pub fn run_slice(&mut self, server: usize, request: SliceRequest) -> SliceOutcome {
        if let Some(refused) = self.refused(server, request) {
            return refused;
        }
        let Some(link) = self.links.get_mut(server) else {
            return self.not_connected(server);
        };
        let program = self.executable.program.as_ref();
        let changing = link.doors().map(Door::socket).collect();
        let claims = Claims::new(request.operations);
        let work = |pulse| Work {
            executable: &self.executable,
            claims: &claims,
            draws: Draws::new(request.seed, request.first_operation),
            rate: self.rate,
            limit: self.op_timeout,
            pulse,
        };
        let mut members = link
            .parts
            .iter_mut()
            .zip(&mut self.histograms)
            .zip(self.watchdog.pulses())
            .map(|((part, histogram), pulse)| Member {
                part,
                work: work(pulse),
                tally: Tally::new(&mut histogram.0, program),
            });
        let Some(first) = members.next() else {
            return self.not_connected(server);
        };
        let others: Vec<Member<'_>> = members.collect();
        self.turns.begin();
        self.probe.iter_mut().for_each(Probe::begin);
        self.watchdog.arm(&link.sockets, changing);
        let share = match others.is_empty() {
            true => first.work_alone(Alone {
                turns: &mut self.turns,
                before_send: self.before_send.as_mut(),
                probe: self.probe.as_mut(),
            }),
            false => crew::work_together((first, others), &self.cores, &link.sockets),
        };
        self.turns.end();
        let cut_off = self.watchdog.disarm();
        let end = if cut_off {
            Err(Loss::Stalled)
        } else {
            share.end
        };
        let mut outcome = SliceOutcome {
            client_cpu_ns: share.cpu_ns,
            ..share.tally.outcome(end)
        };
        link.conclude(&mut outcome);
        (outcome.probe_ns, outcome.probing_ns) =
            (self.probe.as_mut()).map_or((None, 0), Probe::told);
        outcome.client_cpu_ns = outcome.client_cpu_ns.saturating_sub(outcome.probing_ns);
        outcome.latency_histogram = self.serialized();
        outcome
    }

    /// What a slice of a server comes to that cannot begin.
    fn refused(&mut self, server: usize, request: SliceRequest) -> Option<SliceOutcome> {
        if !self.is_usable(server) {
            return Some(self.not_connected(server));
        }
        let detail = self.used_up(request)?;
        Some(SliceOutcome {
            void: Some(VoidReason::NothingDone),
            ..self.not_started(detail)
        })
    }

    fn not_connected(&mut self, server: usize) -> SliceOutcome {
        self.not_started(format!("server {server} is not connected"))
    }

    /// That there is not so much to do, if a sequence ends before.
    fn used_up(&self, request: SliceRequest) -> Option<String> {
        let last = request.first_operation.saturating_add(request.operations);
        let most = self.executable.operations_max.filter(|most| last > *most)?;
        let name = &self.executable.name;
        Some(format!(
            "{name} ends after {most} operations: a sequence is used up"
        ))
    }

    fn not_started(&mut self, detail: String) -> SliceOutcome {
        self.histograms.iter_mut().for_each(|own| own.0.reset());
        let histogram = self.serialized();
        SliceOutcome::not_started(histogram, self.executable.program.as_ref(), detail)
    }

    fn serialized(&mut self) -> Vec<u8> {
        let all = self.histograms.first();
        let bytes = all.map(|all| serialized(&mut self.serializer, &all.0));
        assert!(bytes.is_some(), "a lane has a thread");
        bytes.unwrap_or_default()
    }
}

/// A histogram of fixed bounds, as it is stored.
fn serialized(serializer: &mut V2Serializer, histogram: &Histogram<u64>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(4096);
    let written = serializer.serialize(histogram, &mut bytes);
    assert!(
        written.is_ok(),
        "a histogram of fixed bounds always fits its format"
    );
    bytes
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
        self.sockets = Sockets::from([]);
        self.pids.clear();
        self.parts.clear();
    }

    /// A slice is over: its rows are counted, and connections that it has lost are closed.
    fn conclude(&mut self, outcome: &mut SliceOutcome) {
        outcome.rows = self.parts.iter_mut().map(Part::take_rows).sum();
        match outcome.void {
            None | Some(VoidReason::NothingDone) => {}
            Some(VoidReason::Stalled) => {
                self.cancel();
                self.close();
            }
            Some(_) => self.close(),
        }
    }

    fn connections(&self) -> impl Iterator<Item = &Connection> {
        self.parts.iter().flat_map(|part| &part.connections)
    }

    fn doors(&self) -> impl Iterator<Item = &Door> {
        self.parts.iter().filter_map(|part| part.door.as_ref())
    }

    fn connections_mut(&mut self) -> impl Iterator<Item = &mut Connection> {
        self.parts.iter_mut().flat_map(|part| &mut part.connections)
    }

    /// Opens so many connections for so many threads.
    fn open(
        &mut self,
        executable: &Executable,
        (clients, jobs): (u32, u32),
        limit: Duration,
    ) -> Result<(), WireError> {
        for job in 0..jobs {
            let mut part = Part::default();
            // Those of a thread one after the other, so that what they allocate lies together: two threads
            // that write to one cache line slow each other down.
            for client in (job..clients).step_by(index(u64::from(jobs))) {
                let (endpoint, login) = (&self.endpoint, &self.login);
                let connection = Connection::open(endpoint, login, executable, client, limit)?;
                self.pids.push(connection.key().pid);
                part.connections.push(connection);
            }
            self.parts.push(part);
        }
        self.sockets = self
            .connections()
            .map(|connection| Arc::clone(connection.socket()))
            .collect();
        Ok(())
    }

    /// Tries one connection for each client, and keeps none: operations open their own.
    fn open_doors(
        &mut self,
        executable: &Executable,
        clients: u32,
        limit: Duration,
    ) -> Result<(), WireError> {
        for client in 0..clients {
            let (endpoint, login) = (&self.endpoint, &self.login);
            drop(Connection::open(
                endpoint, login, executable, client, limit,
            )?);
            self.parts.push(Part {
                door: Some(Door::new(endpoint, login, client)),
                ..Part::default()
            });
        }
        Ok(())
    }

    /// Makes the sets that tell which connections have answers.
    fn watch(&mut self) -> Result<(), WireError> {
        let failed = |error| WireError::transfer("watching the connections", error, None);
        for part in &mut self.parts {
            let mut poller = Poller::new(part.connections.len()).map_err(failed)?;
            for (token, connection) in (0..).zip(&part.connections) {
                poller
                    .add(connection.socket().as_fd(), token)
                    .map_err(failed)?;
            }
            part.poller = Some(poller);
        }
        Ok(())
    }

    /// Asks the server to give up what these connections have sent, so that it does not work on for nobody.
    fn cancel(&self) {
        let fresh = self.doors().filter_map(Door::key);
        for key in self.connections().map(Connection::key).chain(fresh) {
            // A server that does not even take this has other troubles, and the slice is void already.
            let _ = key.cancel(&self.endpoint);
        }
    }
}

/// What the loop of one thread has to do.
struct Work<'a> {
    executable: &'a Executable,
    /// Whose turn it is: shared by all threads of the lane.
    claims: &'a Claims,
    draws: Draws,
    rate: Option<f64>,
    limit: Duration,
    pulse: &'a Pulse,
}

impl Work<'_> {
    /// Draws the operation of this number in the slice.
    #[inline]
    fn draw(&mut self, connection: &mut Connection, number: u64) {
        self.draws.go_to(number);
        connection.draw(self.executable, &mut self.draws);
    }

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
