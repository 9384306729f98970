//! Units that stand for measurements, to test the machinery around them: they sleep, fail, hang, and store
//! slices that follow from the plan's seed.

use deltabench_model::plan::{CellId, Plan, Role, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::slice::Slice;
use deltabench_model::units::{to_f64, to_u64};
use deltabench_store::Store;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::ops::ControlFlow;
use std::time::Duration;

/// Slices of a server in a visit.
const ROUNDS: u32 = 4;
/// Operations of a slice.
const OPERATIONS: u64 = 1000;
/// How much slower a candidate is.
const SLOWER: f64 = 0.9;

/// What units do.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Fixture {
    pub blocks: u32,
    /// How long a visit takes.
    pub milliseconds: u64,
    /// Units that fail in their second block.
    pub fail: Vec<u32>,
    /// Units that hang in their second block.
    pub hang: Vec<u32>,
    /// Units that find their host unfit, on their first attempt.
    pub unfit: Vec<u32>,
}

impl Fixture {
    /// Reads `blocks=3,ms=200,fail=2,hang=5,unfit=1`.
    ///
    /// Errors: a word that is none of these.
    pub fn read(text: &str) -> Result<Self, Problem> {
        let mut fixture = Self {
            blocks: 3,
            milliseconds: 100,
            ..Self::default()
        };
        for word in text.split(',').filter(|word| !word.is_empty()) {
            let bad = || Problem::new(format!("bad fixture `{word}`"));
            let (name, value) = word.split_once('=').ok_or_else(bad)?;
            let value: u32 = value.parse().map_err(|_| bad())?;
            match name {
                "blocks" => fixture.blocks = value,
                "ms" => fixture.milliseconds = u64::from(value),
                "fail" => fixture.fail.push(value),
                "hang" => fixture.hang.push(value),
                "unfit" => fixture.unfit.push(value),
                _ => return Err(bad()),
            }
        }
        Ok(fixture)
    }

    /// Stores what is left of a run. After each visit `go_on` hears the block and says whether to.
    ///
    /// Errors: a unit that is to fail; a store that cannot be written.
    pub fn carry_out(
        &self,
        store: &mut Store,
        (run, unit, plan): (&str, u32, &Plan),
        go_on: &mut dyn FnMut(u32) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, Problem> {
        let failed = |error| Problem::of(&error).of_machine();
        let done = store.completed_visits(run).map_err(failed)?;
        for block in 0..self.blocks {
            for cell in CellId::each().take(plan.cells.len()) {
                if done.contains(&(block, cell)) {
                    continue;
                }
                if block > 0 && self.fail.contains(&unit) {
                    return Err(Problem::new("this unit fails, as was asked"));
                }
                while block > 0 && self.hang.contains(&unit) {
                    std::thread::sleep(Duration::from_secs(1));
                }
                store.begin_visit(run, cell, block).map_err(failed)?;
                std::thread::sleep(Duration::from_millis(self.milliseconds));
                for slice in slices(plan, block, cell) {
                    store.append(run, &slice).map_err(failed)?;
                }
                store.commit_visit(run, cell, block).map_err(failed)?;
                if go_on(block).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

fn slices(plan: &Plan, block: u32, cell: CellId) -> Vec<Slice> {
    let mut slices = Vec::new();
    for round in 0..ROUNDS {
        for (position, server) in (0..).zip(&plan.servers) {
            let luck = luck(plan.seed, (block, cell.0, round, position));
            let speed = match server.role {
                Role::Candidate => SLOWER * luck,
                Role::Base | Role::Placebo => luck,
            };
            slices.push(slice((cell, block, round, position), speed));
        }
    }
    slices
}

/// 0.995 to 1.005, by the seed.
fn luck(seed: u64, place: (u32, u32, u32, u32)) -> f64 {
    let hash: [u8; 32] = Sha256::digest(format!("{seed} {place:?}")).into();
    let byte = hash.first().copied().unwrap_or(0);
    0.995 + f64::from(byte) / 25_600.0
}

fn slice((cell, block, round, position): (CellId, u32, u32, u32), speed: f64) -> Slice {
    Slice {
        server: ServerId(position),
        cell,
        block,
        round,
        position,
        connection: 0,
        started_ns: 1_763_721_780_000_000_000 + u64::from(block),
        duration_ns: to_u64(1e5 * to_f64(OPERATIONS) / speed),
        operations: OPERATIONS,
        failed: 0,
        rows: OPERATIONS,
        server_cpu_ns: Some(to_u64(5e4 * to_f64(OPERATIONS) / speed)),
        run_queue_wait_ns: None,
        client_cpu_ns: 0,
        foreign_cpu_ns: Some(0),
        steal_ns: Some(0),
        idle_cpu_ns: None,
        background_cpu_ns: None,
        probe_ns: None,
        probing_ns: None,
        switches: None,
        cpu_pressure_ns: None,
        schedule_lag_ns: None,
        latency_histogram: Vec::new(),
        scripts: Vec::new(),
        errors: Vec::new(),
        void: None,
        void_detail: None,
    }
}
