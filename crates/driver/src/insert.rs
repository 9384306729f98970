//! The Insert Benchmark: one step of it on one server.
//!
//! [`StepRunner::connect`] opens all connections and prepares what is prepared; [`StepRunner::run`] does the
//! step and closes them. Each client has a connection that inserts, in most steps one that deletes and in
//! steps of queries one that queries; each table has one that looks up its oldest and newest key. One epoll
//! set serves those of a thread, with at most one statement under way on each.
//!
//! * An insert and the delete that belongs to it are a *batch*. Batches go to both connections through
//!   queues of [`DRIFT`] places, so that deletes and inserts are at most so many batches apart.
//! * In steps without queries batches follow each other at once; in those with queries they have a rate
//!   ([`Pacing`](deltabench_model::work::insert::Pacing)), and latency counts from when they were due.
//! * Deletes go on from the key where the last one of the table began plus its rows. That key is looked up
//!   before the step and again after every thousand deletes of a table, because the sequences leave gaps.
//! * Point queries ask for keys from there to the newest one, which is looked up before the step and after
//!   every hundred queries of a client.
//! * The queries of a client end with its inserts and deletes.
//! * A statement that fails with a serialization failure or a deadlock is sent again.
//! * Threads have clients of their own, dealt out one by one. What a client sends does not depend on the
//!   number of threads. Clients that share a table need one thread, and so does making indexes.
//!
//! Differs from the published client, besides what [`deltabench_workload::insert`] lists:
//! * Threads and no processes; look-ups on a connection that stays (the published client made one for
//!   each until June 2025, which measured connecting).
//! * A table's oldest key is looked up when its deletes are at rest, not while some are in a queue.
//! * Clients that share a table share where deletes stand; there, each had its own and they met.
//! * Clients begin together, not one second apart.
//! * One session, on the first table, holds long transactions, not one of each client. As published it reads
//!   one row at the default isolation level and waits: under READ COMMITTED that keeps a lock on the table,
//!   which stops vacuum from giving back its end, but no snapshot.
//!
//! Source: docs/sources/insert-benchmark.md.

mod answer;
mod client;
mod crew;
mod indexing;
mod link;
mod long;
mod meeting;
mod one_by_one;
mod pace;
mod set_up;
mod station;
mod table;
mod tally;
mod traffic;
mod turns;

pub use self::one_by_one::{OneByOne, OneByOneSpec};

use self::indexing::Indexing;
pub use self::set_up::partitions;
pub use self::turns::{TurnFigures, Turns};

use self::set_up::set_up;
use self::tally::{Fault, StepTally};
use self::traffic::Traffic;
use crate::error::WireError;
use crate::scan::Loss;
use crate::session::BackendKey;
use deltabench_model::endpoint::{Endpoint, Login};
use deltabench_model::slice::VoidReason;
use deltabench_model::work::insert::{
    InsertRole, InsertSecond, InsertSetup, InsertStep, RoleTally,
};
use deltabench_workload::insert::Calendar;
use std::io;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Batches by which deletes and inserts of a client may differ, in either direction.
pub const DRIFT: u64 = 8;
/// How often a step looks at least whether it is interrupted or a statement stalls.
const LOOK: Duration = Duration::from_millis(100);

/// One step on one server.
#[derive(Debug)]
pub struct StepSpec<'a> {
    pub setup: &'a InsertSetup,
    pub step: InsertStep,
    /// Where the server listens.
    pub endpoint: &'a Endpoint,
    /// Who we are to it. Tables are made in the first schema of the session's `search_path`.
    pub login: &'a Login,
    /// Threads that the clients are dealt out to, at least 1; no more than there are clients, and one for a
    /// shared table.
    pub jobs: u32,
    /// Seed of all rows and keys: the same for every server that is compared.
    pub seed: u64,
    /// How long one statement may take before the server counts as stalled; also the limit of connecting.
    pub op_timeout: Duration,
    /// Ends the step when it becomes true.
    pub interrupted: &'a AtomicBool,
    /// What the steps before this one left behind. After a step that is void or was interrupted it is of no
    /// use any more.
    pub position: &'a mut InsertPosition,
}

/// Where the benchmark stands on one server; survives from step to step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InsertPosition {
    /// Steps done: gives each step, of whatever kind, rows and keys of its own.
    steps: u32,
    /// Seconds of the calendar that are over.
    second: u64,
    rows: Vec<u64>,
}

impl InsertPosition {
    /// Rows in each table: inserted and not deleted.
    pub fn rows(&self) -> &[u64] {
        &self.rows
    }

    fn move_on(&mut self, setup: &InsertSetup, step: InsertStep, end: &End) {
        // As planned, even if the step was cut short: the next one has the same rows on every server.
        let batches = setup.rows_of(step).div_ceil(u64::from(step.batch()));
        self.second = Calendar::new(step, self.second).end(batches);
        self.steps += 1;
        self.rows.resize(self.rows.len().max(end.inserted.len()), 0);
        for (rows, inserted) in self.rows.iter_mut().zip(&end.inserted) {
            *rows = rows.saturating_add(*inserted);
        }
        for (rows, deleted) in self.rows.iter_mut().zip(&end.deleted) {
            *rows = rows.saturating_sub(*deleted);
        }
    }
}

/// Look-ups of the oldest and newest keys of tables, those before the step included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LookUps {
    pub count: u64,
    /// How long all of them took, nanoseconds.
    pub total_ns: u64,
    /// How long the slowest took, nanoseconds.
    pub max_ns: u64,
}

impl LookUps {
    fn add(&mut self, took_ns: u64) {
        self.count += 1;
        self.total_ns += took_ns;
        self.max_ns = self.max_ns.max(took_ns);
    }
}

/// What a step came to.
#[derive(Debug, Clone, PartialEq)]
pub struct StepOutcome {
    /// First send to last answer, nanoseconds.
    pub duration_ns: u64,
    /// Operations: insert statements, queries, or 1 for the indexes.
    pub operations: u64,
    /// CPU of the client's threads between first send and last answer, nanoseconds.
    pub client_cpu_ns: u64,
    /// By role; roles that the step does not have are not in it.
    pub roles: Vec<RoleTally>,
    /// Every second from the start; the last one may be cut short. Responses are latencies as in the roles'
    /// histograms: with a rate from when they were due.
    pub seconds: Vec<InsertSecond>,
    /// What each client kept up until its own end, per second: rows inserted, or queries in steps that have
    /// them. For the indexes: rows indexed per second, by table.
    pub clients: Vec<f64>,
    /// Deletes that removed another number of rows than they were to.
    pub short_deletes: u64,
    /// Look-ups of oldest and newest keys.
    pub look_ups: LookUps,
    /// Long transactions that were committed.
    pub long_transactions: u64,
    /// Whether the step was ended because it took four times as long as its rate needs. Not void: its rate
    /// shows it.
    pub cut_short: bool,
    /// Why it does not count; absent for a good step.
    pub void: Option<VoidReason>,
    /// The facts behind `void`, for people.
    pub void_detail: Option<String>,
    /// Whether it was interrupted; it is incomplete then, and void or not does not matter.
    pub interrupted: bool,
}

/// Connections that a step opens at most, those for look-ups and a long transaction included.
pub fn connections(setup: &InsertSetup, step: InsertStep) -> u32 {
    let roles = u32::try_from(roles(step).len()).unwrap_or(u32::MAX);
    let deletes = deletes(step);
    let links = match step {
        InsertStep::Index => setup.tables(),
        _ => setup.clients.saturating_mul(roles),
    };
    let look_ups = if deletes { setup.tables() } else { 0 };
    let long = u32::from(deletes && setup.long_transaction_seconds.is_some());
    links.saturating_add(look_ups).saturating_add(long)
}

/// Roles that a step has.
fn roles(step: InsertStep) -> &'static [InsertRole] {
    match step {
        InsertStep::LoadRows | InsertStep::Index => &[InsertRole::Insert],
        InsertStep::WriteMany | InsertStep::WriteFew => &[InsertRole::Insert, InsertRole::Delete],
        InsertStep::Range(_) | InsertStep::Point(_) => &InsertRole::ALL,
    }
}

/// Whether a step deletes.
fn deletes(step: InsertStep) -> bool {
    roles(step).contains(&InsertRole::Delete)
}

/// A step whose connections are open.
#[derive(Debug)]
pub struct StepRunner<'a> {
    spec: StepSpec<'a>,
    work: Work,
    tally: StepTally,
    pids: Vec<(Option<InsertRole>, u32)>,
}

/// What a step does.
#[derive(Debug)]
enum Work {
    /// Of the calling thread and of all others.
    Traffic(Box<Traffic>, Vec<Traffic>),
    Indexing(Indexing),
}

/// How the work of a step, or of a thread, ended.
struct End {
    duration_ns: u64,
    client_cpu_ns: u64,
    /// What each client kept up.
    clients: Vec<f64>,
    cut_short: bool,
    interrupted: bool,
    fault: Option<Fault>,
    /// Server's ends of statements without an answer.
    unanswered: Vec<BackendKey>,
    /// Whether all indexes are there.
    indexed: bool,
    /// Rows inserted into each table.
    inserted: Vec<u64>,
    /// Rows deleted from each table, where the step deletes.
    deleted: Vec<u64>,
}

impl End {
    /// That of all threads, in their order: they have the clients and tables in turns.
    fn of_all(threads: Vec<Self>) -> Self {
        let mut all = Self {
            duration_ns: 0,
            client_cpu_ns: 0,
            clients: dealt_back(&threads, |end| &end.clients),
            cut_short: false,
            interrupted: false,
            fault: None,
            unanswered: Vec::new(),
            indexed: false,
            inserted: dealt_back(&threads, |end| &end.inserted),
            deleted: dealt_back(&threads, |end| &end.deleted),
        };
        for thread in threads {
            all.duration_ns = all.duration_ns.max(thread.duration_ns);
            all.client_cpu_ns += thread.client_cpu_ns;
            all.cut_short |= thread.cut_short;
            all.interrupted |= thread.interrupted;
            all.fault = all.fault.or(thread.fault);
            all.unanswered.extend(thread.unanswered);
        }
        all
    }
}

/// What each client or table has, in their order, from what threads have.
fn dealt_back<T: Copy>(threads: &[End], of: impl Fn(&End) -> &Vec<T>) -> Vec<T> {
    let longest = threads.iter().map(|end| of(end).len()).max().unwrap_or(0);
    let mut all = Vec::new();
    for place in 0..longest {
        all.extend(threads.iter().filter_map(|end| of(end).get(place)));
    }
    all
}

/// Why there is nothing to wait for.
fn waiting(error: io::Error) -> Fault {
    Fault::lost("waiting", &Loss::Closed(error.to_string()))
}

impl<'a> StepRunner<'a> {
    /// Opens all connections, prepares statements and looks up keys; makes the tables where the step is the
    /// first load. None of it is part of what is measured.
    ///
    /// Errors: what the server or the system refused; connections made so far are closed.
    pub fn connect(spec: StepSpec<'a>) -> Result<Self, WireError> {
        let mut tally = StepTally::new(roles(spec.step));
        let (work, pids) = set_up(&spec, &mut tally)?;
        Ok(Self {
            spec,
            work,
            tally,
            pids,
        })
    }

    /// Process ids of the server's ends of all connections.
    pub fn backend_pids(&self) -> Vec<u32> {
        self.pids.iter().map(|(_, pid)| *pid).collect()
    }

    /// Process ids of the server's ends of one role's connections. Those for look-ups have no role; the
    /// indexes are made by those that insert.
    pub fn backend_pids_of(&self, role: InsertRole) -> Vec<u32> {
        let of_role = |(of, pid): &(Option<InsertRole>, u32)| (*of == Some(role)).then_some(*pid);
        self.pids.iter().filter_map(of_role).collect()
    }

    /// Does the step, and disconnects.
    pub fn run(self) -> StepOutcome {
        self.run_and_then(None, |_| {})
    }

    /// As [`StepRunner::run`], cut into turns if the step can be cut. Between the last answer and the end of
    /// the connections, whose processes take what the kernel counts of them along, `counted` hears the CPU of
    /// the client's threads, nanoseconds.
    pub fn run_and_then(self, turns: Option<Turns<'_>>, counted: impl FnOnce(u64)) -> StepOutcome {
        let Self {
            spec,
            mut work,
            mut tally,
            ..
        } = self;
        let end = match &mut work {
            Work::Traffic(first, others) => crew::run(first, others, &spec, (&mut tally, turns)),
            Work::Indexing(indexing) => indexing.run(&spec, &mut tally),
        };
        counted(end.client_cpu_ns);
        drop(work);
        for key in &end.unanswered {
            // Best effort, so that the server does not work on for nobody.
            let _ = key.cancel(spec.endpoint);
        }
        spec.position.move_on(spec.setup, spec.step, &end);
        let operations = match spec.step {
            InsertStep::Index => u64::from(end.indexed),
            step if step.queries() => tally.statements(InsertRole::Query),
            _ => tally.statements(InsertRole::Insert),
        };
        let (short_deletes, look_ups) = (tally.short_deletes, tally.look_ups);
        let long_transactions = tally.long_transactions;
        let (roles, seconds) = tally.finished(end.duration_ns);
        let nothing = operations == 0 && roles.iter().any(|role| role.failed > 0);
        let nothing = nothing.then(|| Fault {
            void: VoidReason::NothingDone,
            detail: "every statement failed".to_owned(),
        });
        let (void, void_detail) = match end.fault.or(nothing) {
            Some(fault) => (Some(fault.void), Some(fault.detail)),
            None => (None, None),
        };
        StepOutcome {
            duration_ns: end.duration_ns,
            operations,
            client_cpu_ns: end.client_cpu_ns,
            roles,
            seconds,
            clients: end.clients,
            short_deletes,
            look_ups,
            long_transactions,
            cut_short: end.cut_short,
            void,
            void_detail,
            interrupted: end.interrupted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_model::work::insert::Pacing;
    use deltabench_testkit::small_insert;

    #[test]
    fn a_step_that_was_cut_short_changes_rows_and_not_the_calendar() {
        let setup = InsertSetup {
            clients: 2,
            rows: 100,
            write_rows: 100,
            query_seconds: 10,
            steps: Vec::new(),
            pacing: Pacing::Burst,
            ..small_insert()
        };
        let after = |inserted: u64| {
            let mut position = InsertPosition {
                steps: 3,
                second: 100,
                rows: vec![1000, 1000],
            };
            let end = End {
                duration_ns: 1,
                client_cpu_ns: 0,
                clients: Vec::new(),
                cut_short: inserted < 1000,
                interrupted: false,
                fault: None,
                unanswered: Vec::new(),
                indexed: false,
                inserted: vec![inserted, 1000],
                deleted: vec![1000, 1000],
            };
            position.move_on(&setup, InsertStep::Range(100), &end);
            position
        };
        let (whole, cut) = (after(1000), after(400));
        assert_eq!(
            (whole.rows(), cut.rows()),
            (&[1000, 1000][..], &[400, 1000][..])
        );
        assert_eq!((whole.steps, whole.second), (4, 110));
        assert_eq!((cut.steps, cut.second), (whole.steps, whole.second));
    }

    #[test]
    fn connections_are_those_of_the_roles_and_one_for_look_ups_of_each_table() {
        let setup = InsertSetup {
            clients: 20,
            rows: 1,
            write_rows: 1,
            steps: Vec::new(),
            long_transaction_seconds: Some(60),
            ..small_insert()
        };
        let of = |setup: &InsertSetup| {
            let steps = InsertStep::published(&[100]);
            let all = steps.iter().map(|step| connections(setup, *step));
            all.collect::<Vec<u32>>()
        };
        assert_eq!(of(&setup), [20, 20, 61, 61, 81, 81]);
        let shared = InsertSetup {
            shared_table: true,
            long_transaction_seconds: None,
            ..setup
        };
        assert_eq!(of(&shared), [20, 1, 41, 41, 61, 61]);
    }
}
