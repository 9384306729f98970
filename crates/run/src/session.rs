//! A run from its plan to its last slice; also the rest of a run that was killed.

pub mod benchmark;
mod blocks;
mod client;
mod keeping;
mod observed;
mod progress;
mod record;
mod set_up;

use crate::clock::Clock;
use crate::events::Observer;
use crate::host::Host;
use benchmark::{Benchmark, Blocks};
use deltabench_compare::Records;
use deltabench_model::fact::Fact;
use deltabench_model::plan::{CellId, Plan, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::slice::Slice;
use deltabench_store::Store;
use deltabench_workload::Library;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

pub use benchmark::BlockOrder;
pub use keeping::{LOSSES_MAX, Loss, comes_soon};
pub use observed::{postmasters, postmasters_of, series};
pub use progress::RunProgress;

/// How a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionEnd {
    /// Every block is done, or the deadline came.
    Finished,
    /// The user stopped it; `resume` goes on.
    Interrupted,
}

/// One session of a run: all of it, or what was left.
pub struct Session<'a> {
    pub plan: &'a Plan,
    /// What is special about its kind of benchmark.
    pub benchmark: &'a dyn Benchmark,
    /// The run's name.
    pub run: &'a str,
    /// Where slices go.
    pub store: &'a mut Store,
    /// Where servers live.
    pub host: &'a Host,
    /// The workload definitions.
    pub library: &'a Library,
    /// Whether to find out first how long an answer will take.
    pub pilot: bool,
    /// Set when the user wants to stop.
    pub interrupted: &'a AtomicBool,
    /// Who hears about progress.
    pub observer: &'a mut dyn Observer,
    pub clock: &'a dyn Clock,
    /// When the session began, by that clock.
    pub began: Duration,
}

impl Session<'_> {
    /// Sets everything up, measures all blocks that are not done, and takes it down again.
    ///
    /// Errors: anything that makes measuring impossible; what was measured before stays in the store.
    pub fn execute(&mut self) -> Result<SessionEnd, Problem> {
        let benchmark = self.benchmark;
        let mut blocks = benchmark.begin(self)?;
        let end = self.carry_out(&mut *blocks);
        let taken_down = blocks.take_down();
        let end = end?;
        taken_down.map(|()| end)
    }

    fn carry_out(&mut self, blocks: &mut dyn Blocks) -> Result<SessionEnd, Problem> {
        blocks.set_up(self)?;
        let slices = self.slices()?;
        let mut progress = RunProgress::new(blocks.done(self)?, slices);
        let end = self.blocks(blocks, &mut progress);
        blocks.conclude(self, &end)?;
        end
    }

    /// Whether a block that was begun then has taken longer than all the time that is allowed. Normally a run
    /// ends before a block that is longer than what is left; a candidate that is many times slower makes one
    /// that nobody foresaw.
    pub fn is_overdue(&self, block_began: Duration) -> bool {
        let deadline = self.plan.timing.deadline_seconds;
        deadline.is_some_and(|deadline| self.clock.since(block_began) > deadline)
    }

    /// All slices of the run so far, those that whole records stand for too.
    ///
    /// Errors: a store that cannot be read.
    pub fn slices(&self) -> Result<Vec<Slice>, Problem> {
        let mut slices = self.store.slices(self.run).map_err(store_problem)?;
        let reader = self.benchmark.reader();
        if reader.reads_too().records {
            let recorded = self.store.records(self.run).map_err(store_problem)?;
            let records = Records {
                records: &recorded,
                ..Records::default()
            };
            slices.append(&mut reader.read(self.plan, &records)?.slices);
        }
        Ok(slices)
    }

    /// Blocks and cells whose visits are durable.
    ///
    /// Errors: a store that cannot be read.
    pub fn completed_visits(&self) -> Result<Vec<(u32, CellId)>, Problem> {
        self.store.completed_visits(self.run).map_err(store_problem)
    }

    /// Stores a fact of the run, or of a server of it.
    ///
    /// Errors: a store that cannot be written.
    pub fn fact(&mut self, server: Option<ServerId>, fact: &impl Fact) -> Result<(), Problem> {
        self.store
            .add_fact(self.run, (server, None), fact)
            .map_err(store_problem)
    }
}

/// That results could not be stored.
pub fn store_problem(error: impl std::fmt::Display) -> Problem {
    Problem::new("the results could not be stored")
        .detail(error.to_string())
        .hint("committed results are safe; free some disk and run `deltabench resume`")
        .of_machine()
}
