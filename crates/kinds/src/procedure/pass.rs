//! One pass: load, and all tests on one server.

use super::record::TestRecord;
use crate::insert::pass::long_work;
use crate::insert::watch::{Used, Watch};
use crate::settling::{SettleEnd, Settling};
use deltabench_compare::histograms::merge;
use deltabench_driver::{Lane, LaneSpec, SliceOutcome, SliceRequest};
use deltabench_model::plan::{CellId, Plan, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::slice::{ErrorCount, VoidReason};
use deltabench_model::units::{seconds as in_seconds, to_f64, to_u64};
use deltabench_run::admin::{connect, run};
use deltabench_run::schedule::pass_seed;
use deltabench_run::visit::Address;
use deltabench_workload::executable::Executable;
use deltabench_workload::{Sbtest, mix};
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// No answer for this long voids a test. Long, since stalls are part of what is measured.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(600);

/// Seconds of work that the client is given at a time: a point of the throughput over time.
const PIECE_SECONDS: f64 = 1.0;

/// A piece has at most so many times the operations of the one before it.
const PIECE_GROWTH: u64 = 8;

/// What a warm-up's operations are drawn with in the place of a cell's number.
const WARM_UP: u64 = u64::MAX;

/// One pass on one server.
pub(super) struct Pass<'a> {
    pub(super) plan: &'a Plan,
    pub(super) block: u32,
    pub(super) server: ServerId,
    /// Place of this server's pass in the block.
    pub(super) position: u32,
    /// The running server, with the login of the database that the tables go into.
    pub(super) address: &'a Address,
    pub(super) data_dir: PathBuf,
    /// Cores of the client; empty: unpinned.
    pub(super) client_cores: Vec<usize>,
    pub(super) interrupted: &'a AtomicBool,
}

/// Who sends what, and how long.
#[derive(Clone, Copy)]
pub(super) struct Load<'a> {
    pub(super) executable: &'a Executable,
    pub(super) clients: u32,
    pub(super) jobs: u32,
    /// Before it counts.
    pub(super) warmup_seconds: u32,
    pub(super) seconds: u32,
    /// The test; absent for a warm-up.
    pub(super) cell: Option<CellId>,
}

/// How a load ended.
pub(super) enum LoadEnd {
    /// To be stored, good or void.
    Recorded(Box<TestRecord>),
    /// The user wants to stop; it does not count.
    Interrupted,
    /// The server is gone before it began.
    Lost(VoidReason),
}

/// What the pieces of a load came to together.
#[derive(Default)]
struct Sum {
    duration_ns: u64,
    operations: u64,
    failed: u64,
    rows: u64,
    client_cpu_ns: u64,
    histograms: Vec<Vec<u8>>,
    errors: Vec<ErrorCount>,
    seconds: Vec<(u64, u64)>,
    void: Option<VoidReason>,
    void_detail: Option<String>,
}

impl Sum {
    fn add(&mut self, outcome: SliceOutcome) {
        self.duration_ns += outcome.duration_ns;
        self.operations += outcome.operations;
        self.failed += outcome.failed;
        self.rows += outcome.rows;
        self.client_cpu_ns += outcome.client_cpu_ns;
        self.histograms.push(outcome.latency_histogram);
        self.seconds.push((outcome.operations, outcome.duration_ns));
        for error in outcome.errors {
            let same = |known: &&mut ErrorCount| known.sqlstate == error.sqlstate;
            match self.errors.iter_mut().find(same) {
                Some(known) => known.count += error.count,
                None => self.errors.push(error),
            }
        }
        self.void = outcome.void;
        self.void_detail = outcome.void_detail;
    }

    /// All latencies, as those of a slice.
    fn histogram(&self) -> Vec<u8> {
        let all = self.histograms.iter().map(Vec::as_slice);
        let mut bytes = Vec::new();
        if let Some(merged) = merge(&mut Deserializer::new(), all) {
            // Writing to a Vec cannot fail.
            let _ = V2Serializer::new().serialize(&merged, &mut bytes);
        }
        bytes
    }
}

impl Pass<'_> {
    /// Loads all tables as sysbench does: one connection, one table after another, and the index on `k` of
    /// each behind its rows. Seconds that it took; nothing if the user wants to stop.
    ///
    /// Errors: whatever the server answered.
    pub(super) fn load(&self, primary_key: bool) -> Result<Option<f64>, Problem> {
        let started = Instant::now();
        let data = Sbtest::new(self.plan.data.clone(), pass_seed(self.plan, self.block));
        let mut client = connect(&self.address.endpoint, &self.address.login)?;
        for table in 1..=self.plan.data.tables {
            for sql in data.published_create_sql(table, primary_key) {
                run(&mut client, &sql)?;
            }
            for sql in data.inserts(table) {
                if self.interrupted.load(Ordering::Relaxed) {
                    return Ok(None);
                }
                run(&mut client, &sql).map_err(shortened)?;
            }
            run(&mut client, &data.published_index_sql(table))?;
        }
        Ok(Some(started.elapsed().as_secs_f64()))
    }

    /// Settles all tables as published.
    ///
    /// Errors: whatever the server answered.
    pub(super) fn settle(&self, seconds: u64) -> Result<SettleEnd, Problem> {
        let data = &self.plan.data;
        let server = self.plan.server(self.server);
        let settling = Settling {
            address: self.address,
            version_num: server.map_or(0, |server| server.installation.version_num),
            tables: (1..=data.tables)
                .map(|table| format!("sbtest{table}"))
                .collect(),
            seconds,
            limit: long_work(data.rows.saturating_mul(u64::from(data.tables))),
            interrupted: self.interrupted,
        };
        settling.settle()
    }

    /// Sends the load for its time, without a break.
    ///
    /// Errors: the host does not tell the CPU of processes; the server refuses connections or statements.
    pub(super) fn send(&self, load: Load<'_>, load_seconds: f64) -> Result<LoadEnd, Problem> {
        let servers = [(self.address.endpoint.clone(), self.address.login.clone())];
        let lane = Lane::connect(&LaneSpec {
            servers: &servers,
            executable: load.executable,
            clients: load.clients,
            jobs: load.jobs,
            cores: &self.client_cores,
            op_timeout: STATEMENT_TIMEOUT,
            rate: None,
        });
        let mut lane = lane.map_err(|error| {
            Problem::new(format!(
                "cannot prepare {} on a server",
                load.executable.name
            ))
            .detail(error.to_string())
        })?;
        let warmed = self.pieces(
            &mut lane,
            Load {
                seconds: load.warmup_seconds,
                cell: None,
                ..load
            },
        );
        if self.interrupted.load(Ordering::Relaxed) {
            return Ok(LoadEnd::Interrupted);
        }
        if let Some(reason) = warmed.void {
            return Ok(LoadEnd::Lost(reason));
        }
        let postmaster = self.address.own_pid()?;
        let watch = Watch::start(postmaster, &self.data_dir, &[]).map_err(|error| {
            Problem::new("the CPU time of servers cannot be read on this host")
                .detail(error.to_string())
        })?;
        let started = SystemTime::now();
        let sum = self.pieces(&mut lane, load);
        // While the connections are open: what the kernel counts of a process goes with it.
        let used = watch.finish(sum.client_cpu_ns);
        Ok(match load.cell {
            _ if self.interrupted.load(Ordering::Relaxed) => LoadEnd::Interrupted,
            None => match sum.void {
                Some(reason) => LoadEnd::Lost(reason),
                None => LoadEnd::Recorded(Box::new(self.record(
                    CellId::default(),
                    started,
                    &sum,
                    &used,
                    load_seconds,
                ))),
            },
            Some(cell) => {
                let record = self.record(cell, started, &sum, &used, load_seconds);
                LoadEnd::Recorded(Box::new(record))
            }
        })
    }

    /// Pieces of about a second, until the time is over, the server is lost or the user wants to stop.
    fn pieces(&self, lane: &mut Lane, load: Load<'_>) -> Sum {
        let mut sum = Sum::default();
        let end = Instant::now() + Duration::from_secs(u64::from(load.seconds));
        let mut operations = u64::from(load.clients.max(1));
        let cell = load.cell.map_or(WARM_UP, |cell| u64::from(cell.0));
        for piece in 0.. {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || self.interrupted.load(Ordering::Relaxed) {
                break;
            }
            let key = [u64::from(self.block), cell, piece];
            let outcome = lane.run_slice(
                0,
                SliceRequest {
                    operations,
                    seed: mix(self.plan.seed, &key),
                    first_operation: sum.operations + sum.failed,
                },
            );
            let rate = to_f64(outcome.operations.max(1)) / in_seconds(outcome.duration_ns.max(1));
            let wanted = to_u64(rate * left.as_secs_f64().min(PIECE_SECONDS));
            operations = wanted
                .min(operations.saturating_mul(PIECE_GROWTH))
                .max(u64::from(load.clients.max(1)));
            sum.add(outcome);
            if sum.void.is_some() {
                break;
            }
        }
        sum
    }

    fn record(
        &self,
        cell: CellId,
        started: SystemTime,
        sum: &Sum,
        used: &Used,
        load_seconds: f64,
    ) -> TestRecord {
        let started = started.duration_since(UNIX_EPOCH).unwrap_or_default();
        TestRecord {
            server: self.server,
            cell,
            block: self.block,
            position: self.position,
            started_ns: u64::try_from(started.as_nanos()).unwrap_or(u64::MAX),
            duration_ns: sum.duration_ns,
            operations: sum.operations,
            failed: sum.failed,
            rows: sum.rows,
            server_cpu_ns: used.server_cpu_ns,
            run_queue_wait_ns: used.costs.and_then(|costs| costs.server.run_queue_wait_ns),
            switches: used.costs.and_then(|costs| costs.server.switches),
            client_cpu_ns: sum.client_cpu_ns,
            foreign_cpu_ns: used.foreign_cpu_ns(),
            steal_ns: used.costs.map(|costs| costs.steal_ns),
            cpu_pressure_ns: used.costs.and_then(|costs| costs.cpu_pressure_ns),
            latency_histogram: sum.histogram(),
            errors: sum.errors.clone(),
            seconds: sum.seconds.clone(),
            values: match self.plan.observing.counters {
                true => used.values(),
                false => Default::default(),
            },
            load_seconds,
            void: sum.void.clone(),
            void_detail: sum.void_detail.clone(),
        }
    }
}

/// A problem without the half megabyte of its statement.
fn shortened(problem: Problem) -> Problem {
    let detail = problem.detail.clone().unwrap_or_default();
    let start: String = detail.chars().take(200).collect();
    problem.detail(start)
}
