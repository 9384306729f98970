//! The published procedure: one server at a time, started once, all tests of sysbench in the published order
//! on the same tables, each for minutes, without a break or a restore between them.
//!
//! A block is one pass of all tests on each server, one server after another
//! ([`pass_order`](deltabench_run::schedule::pass_order)), on tables that are loaded as published. Tests
//! depend on each other, so a pass that was cut short is begun again. Nothing ties the passes of two servers,
//! so they are judged as two samples ([`Work::is_unpaired`]).

mod blocks;
mod pass;
mod reading;
mod record;
mod stages;

use crate::passes::{self, PassBlocks};
use crate::shown::{JudgedRun, Show, Shown};
use crate::workloads::cells;
use blocks::Tests;
use deltabench_compare::Reader;
use deltabench_model::finding::{Finding, FindingKind, Severity};
use deltabench_model::plan::{CacheState, Cell, CellId, CellOrder, DataState, Plan, Stopping};
use deltabench_model::problem::Problem;
use deltabench_model::slice::Slice;
use deltabench_model::units::{count, to_f64, to_u64};
use deltabench_model::work::Work;
use deltabench_model::work::procedure::ProcedureSetup;
use deltabench_run::benchmark::{Benchmark, Blocks};
use deltabench_run::occupancy::{
    AtOnce, DISK_BESIDE, MEMORY_BESIDE, Needs, Occupancy, PlannedTime, fitting_mb, wal_max,
};
use deltabench_run::planning::{self, Request, ServerWish};
use deltabench_run::session::Session;
use deltabench_store::Store;
use deltabench_workload::{Library, Sbtest};
pub use reading::ProcedureReader;
pub use stages::pass_seconds;

/// Tables at the end of a pass against loaded ones: ten minutes of inserts at 10,000 a second are beside what
/// updates leave. Assumed.
const GROWTH: f64 = 2.5;

/// Seconds of set-up: empty clusters, and a copy of each.
const SET_UP_SECONDS: f64 = 10.0;

/// The published procedure.
pub struct Procedure;

/// The setup of a plan or request of this kind.
fn setup_of(work: &Work) -> Result<&ProcedureSetup, Problem> {
    work.procedure()
        .ok_or_else(|| Problem::new("the plan is not one of the published procedure"))
}

/// Why its instructions are not counted.
pub(crate) fn not_counted() -> Problem {
    Problem::new("the instructions of the published procedure cannot be counted")
        .detail("each of its tests runs for minutes on what the tests before it left")
        .hint("count the workloads by themselves: deltabench count BASE CANDIDATE --only NAME")
}

impl Show for Procedure {
    fn block(&self, plan: &Plan) -> String {
        let setup = plan.work.procedure();
        let (reads, writes) = setup.map_or((0, 0), |s| (s.read_seconds, s.write_seconds));
        let warm = match setup.map_or(0, |setup| setup.warmup_seconds) {
            0 => String::new(),
            seconds => format!(", after {seconds} s of warm-up"),
        };
        let keys = match setup.is_some_and(|setup| !setup.primary_key) {
            true => "; tables have no primary key",
            false => "",
        };
        let passes = match plan.timing.blocks {
            1 => "1 pass".to_owned(),
            several => format!("{several} passes"),
        };
        format!(
            "{passes} of these tests on each server, {reads} s of each that reads and {writes} s of each \
             that writes{warm}; one server runs at a time, and is started once; no paired interval{keys}"
        )
    }

    fn data(&self, plan: &Plan) -> String {
        format!("{} x {}", plan.data.tables, plan.data.rows)
    }

    fn shown(&self, _: &JudgedRun<'_>, _: &Store) -> Result<Shown, Problem> {
        Ok(Shown::default())
    }
}

impl Benchmark for Procedure {
    fn check(&self, request: &Request, library: &Library) -> Result<(), Problem> {
        setup_of(&request.work)?;
        let alone = request.state == DataState::Fresh
            && request.order == CellOrder::Published
            && request.cache == CacheState::AsIs
            && request.stopping == Stopping::Fixed
            && request.rate.is_none()
            && request.sources.is_empty()
            && request.observing.profile.is_none();
        if !alone {
            return Err(Problem::new(
                "the published procedure has its own order, tables, times and state of caches",
            )
            .hint("leave out state, order, rate, caches, precision and workloads of your own"));
        }
        self.cells(request, library)?;
        planning::check_shape(request)?;
        planning::check_load(request)
    }

    fn check_servers(&self, request: &Request, wishes: &[&ServerWish]) -> Result<(), Problem> {
        crate::targets::check_wishes(wishes, false)?;
        wishes.iter().try_for_each(|wish| {
            planning::check_server(request, self, wish)?;
            match &wish.installation.remote {
                None => Ok(()),
                Some(_) => Err(Problem::new(format!(
                    "{} cannot run the published procedure",
                    wish.installation.resolved
                ))
                .detail("each pass needs an empty server that deltabench starts and stops")
                .hint("name a version or a build, for example postgres:18 or path:/opt/pg18")),
            }
        })
    }

    fn cells(&self, request: &Request, library: &Library) -> Result<Vec<Cell>, Problem> {
        cells::cells(request, library)
    }

    /// The first warm-up has a connection for each table.
    fn connections(&self, request: &Request) -> u32 {
        let most = request.clients.iter().copied().max().unwrap_or(1);
        most.max(request.data.tables)
    }

    /// A server has tables and their WAL only while it is its turn, and what it begins with lies beside it
    /// once more.
    fn needs(&self, plan: &Plan) -> Result<Needs, Problem> {
        let loaded = Sbtest::estimate_bytes(&plan.data);
        let data = to_u64(to_f64(loaded) * GROWTH);
        let needs = Needs::holding(plan, loaded)?;
        // Buffers are not touched before there is something to hold in them.
        let memory_bytes = fitting_mb(data).min(needs.largest_buffers_mb) << 20;
        Ok(Needs {
            memory_bytes: plan
                .limits
                .memory_bytes
                .unwrap_or(memory_bytes + MEMORY_BESIDE),
            disk_bytes: DISK_BESIDE,
            disk_once_bytes: data.saturating_add(wal_max(plan)),
            at_once: AtOnce::One,
            ..needs
        })
    }

    fn time(&self, plan: &Plan, _: Occupancy, _: u64) -> Result<PlannedTime, Problem> {
        let servers = to_f64(count(plan.servers.len()));
        let pass = pass_seconds(plan, setup_of(&plan.work)?);
        Ok(PlannedTime {
            set_up: SET_UP_SECONDS,
            measuring: f64::from(plan.timing.blocks) * servers * pass,
        })
    }

    fn findings(&self, plan: &Plan) -> Vec<Finding> {
        let text = match plan.timing.blocks {
            1 => {
                "unpaired sequential runs: each server ran alone for hours, one after another, and once: no \
                 interval, no verdict; drift of the machine between them is in every ratio"
            }
            _ => {
                "unpaired sequential runs: each server ran alone for hours, one after another; drift of the \
                 machine between them is in every ratio, and intervals are those of two samples, not of pairs"
            }
        };
        let kind = FindingKind::own("unpaired-runs");
        vec![Finding::new(kind, Severity::Confounder, text.to_owned())]
    }

    fn open_cells(&self, plan: &Plan, block: u32, _: &[Slice]) -> Vec<CellId> {
        passes::open_cells(plan, block)
    }

    fn reader(&self) -> &'static dyn Reader {
        &ProcedureReader
    }

    fn done(&self, _: usize, tests: usize) -> String {
        format!("{tests} tests are done; deltabench measures the tests of interrupted passes again")
    }

    fn check_confirmable(&self) -> Result<(), Problem> {
        Err(
            Problem::new("`confirm` does not apply to the published procedure")
                .detail("each of its passes already has a fresh load")
                .hint("measure it again with more passes, or another seed"),
        )
    }

    fn begun_again(&self) -> &'static str {
        "passes that lost their server start again"
    }

    fn begin<'a>(&self, session: &mut Session<'a>) -> Result<Box<dyn Blocks + 'a>, Problem> {
        let setup = setup_of(&session.plan.work)?;
        Ok(Box::new(PassBlocks::create(Tests::new(setup), session)?))
    }
}
