//! What is measured of a replay: servers that are loaded already, and a block of all open statements.

use super::blocks::{Loaded, ReplayBlocks};
use super::reading::ReplayReader;
use super::{budget, setup_of};
use deltabench_compare::Reader;
use deltabench_model::plan::{Cell, CellId, Plan};
use deltabench_model::problem::Problem;
use deltabench_model::slice::Slice;
use deltabench_run::benchmark::{Benchmark, Blocks};
use deltabench_run::occupancy::{Needs, Occupancy, PlannedTime};
use deltabench_run::planning::{Request, ServerWish};
use deltabench_run::session::Session;
use deltabench_workload::Library;
use std::sync::{Mutex, PoisonError};

/// A replay whose servers are loaded, or one that is only read.
pub struct Replay {
    loaded: Mutex<Option<Loaded>>,
}

impl Replay {
    /// One whose records are read; it cannot be measured.
    pub const fn unloaded() -> Self {
        Self {
            loaded: Mutex::new(None),
        }
    }

    /// One that is measured, once, with these servers.
    pub fn with(loaded: Loaded) -> Self {
        Self {
            loaded: Mutex::new(Some(loaded)),
        }
    }
}

/// Nothing asks for a replay by a request: it follows from a capture.
fn by_capture() -> Problem {
    Problem::new("a replay is measured from its capture")
        .hint("`deltabench replay CAPTURE BASE CANDIDATE --data DUMP`")
}

impl Benchmark for Replay {
    fn check(&self, _: &Request, _: &Library) -> Result<(), Problem> {
        Err(by_capture())
    }

    fn check_servers(&self, _: &Request, _: &[&ServerWish]) -> Result<(), Problem> {
        Err(by_capture())
    }

    fn cells(&self, _: &Request, _: &Library) -> Result<Vec<Cell>, Problem> {
        Err(by_capture())
    }

    fn needs(&self, plan: &Plan) -> Result<Needs, Problem> {
        Needs::holding(plan, 0)
    }

    fn time(&self, plan: &Plan, _: Occupancy, _: u64) -> Result<PlannedTime, Problem> {
        Ok(PlannedTime {
            set_up: 0.0,
            measuring: plan.timing.deadline_seconds.unwrap_or(0.0),
        })
    }

    fn open_cells(&self, plan: &Plan, block: u32, before: &[Slice]) -> Vec<CellId> {
        setup_of(&plan.work).map_or_else(
            |_| Vec::new(),
            |setup| budget::open_cells(plan, setup, block, before),
        )
    }

    fn reader(&self) -> &'static dyn Reader {
        &ReplayReader
    }

    fn check_confirmable(&self) -> Result<(), Problem> {
        Err(Problem::new("`confirm` does not apply to a replay")
            .hint("replay again: it loads the dump afresh"))
    }

    fn begin<'a>(&self, session: &mut Session<'a>) -> Result<Box<dyn Blocks + 'a>, Problem> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let loaded = loaded.take().ok_or_else(by_capture)?;
        let setup = setup_of(&session.plan.work)?;
        Ok(Box::new(ReplayBlocks::new(setup, loaded)))
    }
}
