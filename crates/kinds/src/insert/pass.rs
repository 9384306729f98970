//! One pass: all steps of the benchmark on one server.

use super::baton::{Baton, TurnEnds};
use super::record::StepRecord;
use super::setup::inserted;
use super::sizes::sizes;
use super::statistics::Statistics;
use super::watch::{Used, Watch};
use crate::settling::{SettleEnd, Settling};
use deltabench_driver::WireError;
use deltabench_driver::insert::{
    InsertPosition, StepOutcome, StepRunner, StepSpec, TurnFigures, Turns,
};
use deltabench_model::plan::{CellId, Plan, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::slice::VoidReason;
use deltabench_model::units::to_f64;
use deltabench_model::work::insert::{InsertRole, InsertSetup, InsertStep};
use deltabench_run::schedule::pass_seed;
use deltabench_run::visit::Address;
use deltabench_workload::insert::table_name;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// No answer for this long voids a step that inserts, deletes and queries.
/// Long, since stalls are what the benchmark shows.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(600);

/// No answer for this long voids the step that makes indexes, or settling, however small the tables.
const INDEX_TIMEOUT_MIN: Duration = Duration::from_secs(600);

/// Rows for which an index, or settling, may take a second before the server counts as stalled: a tenth of
/// what a slow disk is assumed to do.
const INDEXED_PER_SECOND: u64 = 20_000;

/// One pass: all steps on one server.
pub(crate) struct Pass<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) setup: &'a InsertSetup,
    pub(crate) block: u32,
    pub(crate) server: ServerId,
    /// Place of this server's pass in the block.
    pub(crate) position: u32,
    /// The running server, with the login of the database that the tables go into.
    pub(crate) address: &'a Address,
    pub(crate) data_dir: PathBuf,
    pub(crate) log: PathBuf,
    pub(crate) interrupted: &'a AtomicBool,
    /// Where inserts and deletes stand.
    pub(crate) tables: InsertPosition,
}

/// How a step ended.
pub(crate) enum StepEnd {
    /// To be stored, good or void.
    Recorded(Box<StepRecord>),
    /// The user wants to stop; the step does not count.
    Interrupted,
    /// The server is gone before the step began.
    Lost(VoidReason),
}

impl Pass<'_> {
    /// Carries a step out and says what it came to. With a baton it is cut into turns.
    ///
    /// Errors: the host does not tell the CPU of processes; the server refuses connections or tables.
    pub(crate) fn step(
        &mut self,
        cell: CellId,
        step: InsertStep,
        baton: Option<&Baton>,
    ) -> Result<StepEnd, Problem> {
        let postmaster = self.address.own_pid()?;
        let collects = self.plan.observing.counters;
        let version_num = self.version_num();
        let before = collects
            .then(|| Statistics::before(self.address, version_num, &self.log))
            .flatten();
        let spec = StepSpec {
            setup: self.setup,
            step,
            endpoint: &self.address.endpoint,
            login: &self.address.login,
            jobs: self.plan.jobs.of(self.setup.clients),
            seed: pass_seed(self.plan, self.block),
            op_timeout: self.timeout(step),
            interrupted: self.interrupted,
            position: &mut self.tables,
        };
        let runner = match StepRunner::connect(spec) {
            Ok(runner) => runner,
            Err(WireError::Server(error)) => return Err(refused(step, &error.to_string())),
            Err(_) => return Ok(StepEnd::Lost(VoidReason::ServerLost)),
        };
        let backends = roles(&runner);
        let watch = Watch::start(postmaster, &self.data_dir, &backends).map_err(unobservable)?;
        let pids = runner.backend_pids();
        let started = SystemTime::now();
        let mut used = Used::default();
        // While the connections are open: what the kernel counts of a process goes with it.
        let watch = RefCell::new(Some(watch));
        let mut ends = TurnEnds::new(step);
        let mut between = |turn: &TurnFigures| ends.rest(&watch, baton, turn);
        let turns = self.setup.batches_of_turn(step).filter(|_| baton.is_some());
        let turns = turns.map(|batches| Turns {
            batches,
            between: &mut between,
        });
        let outcome = runner.run_and_then(turns, |client_cpu_ns| {
            let watch = watch.take();
            used = watch.map_or_else(Used::default, |watch| watch.finish(client_cpu_ns));
        });
        if outcome.interrupted {
            return Ok(StepEnd::Interrupted);
        }
        let mut values = BTreeMap::new();
        if collects && outcome.void.is_none() {
            values = used.values();
            values.extend(before.map_or_else(BTreeMap::new, |b| b.moved(self.address, &pids)));
            values.extend(sizes(self.address, &self.data_dir));
        }
        let mut record = self.record(cell, started, outcome, &used, values);
        record.turns = ends.turns(&record, used.costs.map(|costs| costs.server.cpu_ns));
        Ok(StepEnd::Recorded(Box::new(record)))
    }

    fn version_num(&self) -> u32 {
        let server = self.plan.server(self.server);
        server.map_or(0, |server| server.installation.version_num)
    }

    fn timeout(&self, step: InsertStep) -> Duration {
        if step != InsertStep::Index {
            return STATEMENT_TIMEOUT;
        }
        long_work(self.setup.loaded_rows())
    }

    fn record(
        &self,
        cell: CellId,
        started: SystemTime,
        outcome: StepOutcome,
        used: &Used,
        mut values: BTreeMap<String, f64>,
    ) -> StepRecord {
        values.extend(counted(&outcome));
        let started = started.duration_since(UNIX_EPOCH).unwrap_or_default();
        StepRecord {
            server: self.server,
            cell,
            block: self.block,
            position: self.position,
            started_ns: u64::try_from(started.as_nanos()).unwrap_or(u64::MAX),
            duration_ns: outcome.duration_ns,
            operations: outcome.operations,
            server_cpu_ns: used.server_cpu_ns,
            run_queue_wait_ns: used.costs.and_then(|costs| costs.server.run_queue_wait_ns),
            switches: used.costs.and_then(|costs| costs.server.switches),
            client_cpu_ns: outcome.client_cpu_ns,
            foreign_cpu_ns: used.foreign_cpu_ns(),
            steal_ns: used.costs.map(|costs| costs.steal_ns),
            cpu_pressure_ns: used.costs.and_then(|costs| costs.cpu_pressure_ns),
            roles: outcome.roles,
            seconds: outcome.seconds,
            clients: outcome.clients,
            values,
            turns: Vec::new(),
            void: outcome.void,
            void_detail: outcome.void_detail,
        }
    }

    /// Settles all tables ([`Settling::settle`]).
    ///
    /// Errors: whatever the server answered.
    pub(crate) fn settle(&self) -> Result<SettleEnd, Problem> {
        let settling = Settling {
            address: self.address,
            version_num: self.version_num(),
            tables: (1..=self.setup.tables()).map(table_name).collect(),
            seconds: self.setup.settle_seconds(),
            limit: long_work(inserted(self.setup)),
            interrupted: self.interrupted,
        };
        settling.settle()
    }
}

/// How long work on so many rows may take before the server counts as stalled.
pub(crate) fn long_work(rows: u64) -> Duration {
    Duration::from_secs(rows / INDEXED_PER_SECOND).max(INDEX_TIMEOUT_MIN)
}

/// What the client counted of a step beside its roles.
fn counted(outcome: &StepOutcome) -> [(String, f64); 6] {
    let look_ups = outcome.look_ups;
    [
        ("short_deletes", outcome.short_deletes),
        ("cut_short", u64::from(outcome.cut_short)),
        ("look_ups", look_ups.count),
        ("look_up_ns", look_ups.total_ns),
        ("look_up_max_ns", look_ups.max_ns),
        ("long_transactions", outcome.long_transactions),
    ]
    .map(|(key, count)| (key.to_owned(), to_f64(count)))
}

/// The server's ends of connections, by role.
fn roles(runner: &StepRunner<'_>) -> Vec<(InsertRole, u32)> {
    let of = |role| {
        let pids = runner.backend_pids_of(role).into_iter();
        pids.map(move |pid| (role, pid))
    };
    InsertRole::ALL.into_iter().flat_map(of).collect()
}

fn refused(step: InsertStep, answer: &str) -> Problem {
    Problem::new(format!("a server refused to start {}", step.name())).detail(answer)
}

fn unobservable(error: deltabench_observe::ObserveError) -> Problem {
    Problem::new("the CPU time of servers cannot be read on this host").detail(error.to_string())
}

/// The steps of a pass with their cells, in order.
pub(crate) fn steps(setup: &InsertSetup) -> impl Iterator<Item = (CellId, InsertStep)> + '_ {
    CellId::each().zip(setup.steps.iter().copied())
}
