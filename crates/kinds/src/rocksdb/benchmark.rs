//! RocksDB: a database for each target in each block, and a chain of steps that all of them go through in
//! turns.
//!
//! A block begins with a new process and an empty database for each target. A link of the chain that is not
//! measured is carried out on one after another. A measured one is a visit to its cell: all targets begin the
//! step, then rounds follow in which each of them does the same operations, in an order that is drawn for
//! each round; a step that writes has one round, with all of its work. While one works, all others are
//! frozen: what a database owes to its compactions is worked off in its own time. At the end of the block all
//! databases are removed.

use super::blocks::BlockState;
use super::check;
use super::outlook::outlook;
use super::reading::RocksdbReader;
use deltabench_compare::Reader;
use deltabench_model::plan::{Cell, Plan};
use deltabench_model::problem::Problem;
use deltabench_model::units::count;
use deltabench_model::work::Work;
use deltabench_model::work::rocksdb::RocksdbSetup;
use deltabench_run::benchmark::{Benchmark, Blocks};
use deltabench_run::occupancy::{AtOnce, Needs, Occupancy, PlannedTime};
use deltabench_run::planning::{self, Request, ServerWish};
use deltabench_run::session::Session;
use deltabench_workload::Library;

/// What to ask for where a plan does not fit.
const SMALLER: &str = "ask for fewer --keys, a smaller --cache-size or fewer targets at a time";

/// Versions of RocksDB, or programs built with it.
pub struct Rocksdb;

/// The setup of a plan or request of this kind.
fn setup_of(work: &Work) -> Result<&RocksdbSetup, Problem> {
    work.rocksdb()
        .ok_or_else(|| Problem::new("the plan is not one of RocksDB"))
}

impl Benchmark for Rocksdb {
    fn check(&self, request: &Request, _: &Library) -> Result<(), Problem> {
        planning::check_shape(request)?;
        check::check_request(setup_of(&request.work)?, request)
    }

    fn check_servers(&self, _: &Request, wishes: &[&ServerWish]) -> Result<(), Problem> {
        crate::targets::check_wishes(wishes, true)?;
        wishes.iter().try_for_each(|wish| check::check_server(wish))
    }

    fn cells(&self, request: &Request, _: &Library) -> Result<Vec<Cell>, Problem> {
        Ok(setup_of(&request.work)?.cells())
    }

    /// What each target takes for its database of one block. All of them are there at a time, each working in
    /// its turns.
    fn needs(&self, plan: &Plan) -> Result<Needs, Problem> {
        let found = outlook(plan);
        let targets = count(plan.servers.len()).max(1);
        Ok(Needs {
            shared_buffers_mb: 0,
            largest_buffers_mb: 0,
            memory_bytes: found.memory_bytes / targets,
            disk_bytes: found.disk_bytes / targets,
            disk_once_bytes: 0,
            at_once: AtOnce::All(SMALLER),
        })
    }

    /// A database is loaded in its block, and that is measured.
    fn time(&self, plan: &Plan, _: Occupancy, _: u64) -> Result<PlannedTime, Problem> {
        Ok(PlannedTime {
            set_up: 0.0,
            measuring: f64::from(plan.timing.blocks) * outlook(plan).seconds_per_block,
        })
    }

    fn reader(&self) -> &'static dyn Reader {
        &RocksdbReader
    }

    fn done(&self, visits: usize, _: usize) -> String {
        format!("{visits} visits are done; deltabench measures an interrupted block again")
    }

    fn check_confirmable(&self) -> Result<(), Problem> {
        Err(Problem::new("`confirm` does not apply to RocksDB")
            .detail("each of its blocks already has fresh databases, and no step can be left out")
            .hint("measure it again with more --blocks, or another --seed"))
    }

    fn begin<'a>(&self, session: &mut Session<'a>) -> Result<Box<dyn Blocks + 'a>, Problem> {
        let setup = setup_of(&session.plan.work)?;
        Ok(Box::new(BlockState::create(setup, session)?))
    }
}
