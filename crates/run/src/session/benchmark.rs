//! What a run asks of a kind of benchmark: what can be measured, what it takes, and one block of it.
//!
//! A kind registers in `deltabench-kinds`, which is handed in from above: nothing in this crate knows which
//! kinds there are.

use super::progress::RunProgress;
use super::{Session, SessionEnd};
use crate::occupancy::{Needs, Occupancy, PlannedTime};
use crate::request::{Request, ServerWish, most_clients};
use deltabench_compare::{CellProgress, Reader, progress};
use deltabench_driver::admin::Client;
use deltabench_model::finding::Finding;
use deltabench_model::plan::{Cell, CellId, Plan};
use deltabench_model::problem::Problem;
use deltabench_model::slice::Slice;
use deltabench_workload::Library;
use std::fmt::Debug;
use std::sync::Arc;

/// The half of a kind of benchmark that measures.
pub trait Benchmark: Sync {
    /// Refuses what is wrong with a request whatever its targets are, before anything is downloaded.
    ///
    /// Errors: what cannot be measured so, with a way out.
    fn check(&self, request: &Request, library: &Library) -> Result<(), Problem>;

    /// Refuses targets that cannot be measured as they are wished, the base first.
    ///
    /// Errors: the first of them.
    fn check_servers(&self, request: &Request, wishes: &[&ServerWish]) -> Result<(), Problem>;

    /// The cells of a request, in the order of reports.
    ///
    /// Errors: workloads that are not there.
    fn cells(&self, request: &Request, library: &Library) -> Result<Vec<Cell>, Problem>;

    /// Connections that a server has at a time.
    fn connections(&self, request: &Request) -> u32 {
        most_clients(request)
    }

    /// What each of the plan's servers takes.
    ///
    /// Errors: memory limits that leave a server no room to work.
    fn needs(&self, plan: &Plan) -> Result<Needs, Problem>;

    /// How long a plan takes, about, with so many servers loaded at a time.
    ///
    /// Errors: workloads whose tables cannot be loaded together.
    fn time(&self, plan: &Plan, held: Occupancy, at_once: u64) -> Result<PlannedTime, Problem>;

    /// Fits the settings of a plan to its servers, once these are known. `most` is how many servers the
    /// largest run has that it is compared with side by side, this one included: such runs have equal
    /// settings.
    fn fit_to_servers(&self, plan: &mut Plan, most: u64) {
        let _ = (plan, most);
    }

    /// Tables of the kind's own, loaded beside those of the workloads.
    ///
    /// Errors: SQL of the user's that cannot be read.
    fn own_tables(&self, plan: &Plan) -> Result<Option<Arc<dyn OwnTables>>, Problem> {
        let _ = plan;
        Ok(None)
    }

    /// Findings that follow from the plan alone.
    fn findings(&self, plan: &Plan) -> Vec<Finding> {
        let _ = plan;
        Vec::new()
    }

    /// The cells that `block` measures: those without an answer from the slices of the blocks before it. None
    /// if the run is at its end.
    ///
    /// It depends on the plan and on what is stored only, so a resumed run goes the way it would have gone.
    fn open_cells(&self, plan: &Plan, block: u32, before: &[Slice]) -> Vec<CellId> {
        let _ = block;
        undecided(plan, before)
    }

    /// How its records are read, while it goes on and in its report.
    fn reader(&self) -> &'static dyn Reader;

    /// What is done of a run that is gone on with, in words.
    fn done(&self, visits: usize, records: usize) -> String {
        let _ = records;
        format!("{visits} visits are done")
    }

    /// Refuses to measure one server more for a run that is finished.
    ///
    /// Errors: why its figures would not stand beside those of the run.
    fn check_extendable(&self, plan: &Plan) -> Result<(), Problem> {
        let _ = plan;
        Ok(())
    }

    /// What is said before postponed blocks are begun again.
    fn begun_again(&self) -> &'static str {
        "visits that lost their server start again"
    }

    /// Refuses to measure the regressions of a run again by themselves.
    ///
    /// Errors: why that would say nothing new.
    fn check_confirmable(&self) -> Result<(), Problem> {
        Ok(())
    }

    /// Makes what a session measures, empty: servers, data directories, control groups.
    ///
    /// Errors: what this host does not give.
    fn begin<'a>(&self, session: &mut Session<'a>) -> Result<Box<dyn Blocks + 'a>, Problem>;
}

/// The cells without an answer from these slices.
pub fn undecided(plan: &Plan, before: &[Slice]) -> Vec<CellId> {
    CellId::each()
        .zip(progress(plan, before))
        .filter(|(_, state)| *state != CellProgress::Decided)
        .map(|(cell, _)| cell)
        .collect()
}

/// Tables that a kind of benchmark makes beside those of the workloads.
pub trait OwnTables: Debug + Send + Sync {
    /// Whether the tables that most workloads use are wanted too.
    fn needs_usual(&self) -> bool;

    /// Rows whose number is known before they are made.
    fn rows(&self) -> u64;

    /// Bytes of tables and indexes, as far as they are known.
    fn bytes(&self) -> u64;

    /// Makes and fills them in a schema, which is the search path.
    ///
    /// Errors: whatever the server answered, with the statement.
    fn load(&self, client: &mut Client, schema: &str) -> Result<(), Problem>;

    /// Statements that make them anew; `fill` gives the one that fills a table, by its name.
    ///
    /// Errors: those of `fill`; tables that the version cannot have.
    fn anew_sql(
        &self,
        version_num: u32,
        fill: &mut dyn FnMut(&str) -> Result<String, Problem>,
    ) -> Result<Vec<String>, Problem>;

    /// Refuses to go on with tables that a crash has emptied.
    ///
    /// Errors: they are empty.
    fn check_crash(&self, client: &mut Client) -> Result<(), Problem>;

    /// What must hold of them after any workload and does not; empty where nothing is promised.
    ///
    /// Errors: whatever the server answered.
    fn broken(&self, client: &mut Client) -> Result<Vec<String>, Problem> {
        let _ = client;
        Ok(Vec::new())
    }

    /// The shapes of the plans of a workload's statements, where its definition does not have them.
    ///
    /// Errors: a lost connection, a script that does not read.
    fn plans(&self, client: &mut Client, seed: u64, workload: &str)
    -> Result<Vec<String>, Problem>;
}

/// What a session measures with, and one block of it. The loop over all blocks is [`Session::execute`]'s.
pub trait Blocks {
    /// Prepares everything for the first block, and stores what it is.
    ///
    /// Errors: anything that makes measuring impossible.
    fn set_up(&mut self, session: &mut Session<'_>) -> Result<(), Problem>;

    /// Places of blocks and cells that are done, by what is stored.
    ///
    /// Errors: a store that cannot be read.
    fn done(&self, session: &Session<'_>) -> Result<Vec<(u32, CellId)>, Problem> {
        session.completed_visits()
    }

    /// Measures a block as far as its open cells are not done, until all are or a server is lost. What is
    /// done, or given up, is noted in `progress`.
    ///
    /// Errors: anything that makes going on impossible.
    fn block(
        &mut self,
        session: &mut Session<'_>,
        order: BlockOrder<'_>,
        progress: &mut RunProgress,
    ) -> Result<BlockEnd, Problem>;

    /// Stores what has come out since the set-up; `end` is how the blocks ended.
    ///
    /// Errors: a store that cannot be written.
    fn conclude(
        &mut self,
        session: &mut Session<'_>,
        end: &Result<SessionEnd, Problem>,
    ) -> Result<(), Problem> {
        let (_, _) = (session, end);
        Ok(())
    }

    /// Takes everything down again; nothing is left but what is stored.
    ///
    /// Errors: what could not be stopped or removed.
    fn take_down(self: Box<Self>) -> Result<(), Problem>;
}

/// What is to be measured in a block.
#[derive(Debug, Clone, Copy)]
pub struct BlockOrder<'a> {
    /// Which one, from 0.
    pub block: u32,
    /// Cells without an answer from the blocks before it.
    pub open: &'a [CellId],
}

/// How a block ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockEnd {
    /// It was gone through as far as servers went; what is open of it is measured now.
    GoneThrough,
    /// What is open of it is measured after the last block.
    Postponed,
    /// The time allowed was up before all of it was gone through.
    TimeUp,
    /// The user wants to stop.
    Interrupted,
}
