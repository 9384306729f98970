//! What a report says besides the comparison and the plan.

use deltabench_compare::SessionTimes;
use deltabench_compare::absolute::CellResult;
use deltabench_compare::ledger::Coverage;
use deltabench_compare::study::Grid;
use deltabench_model::counter::{Mark, Sample};
use deltabench_model::explanation::ExplainedCell;
use deltabench_model::figures::Figures;
use deltabench_model::installation::{Build, Setting};
use deltabench_model::invalidation::Invalidation;
use deltabench_model::plan::{CellId, Plan, ServerId};
use deltabench_model::sampled::SampledCell;

/// Facts recorded with the run, for the report's provenance.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReportContext {
    /// The run's name.
    pub run: String,
    /// How far the run has come: `finished`, `interrupted`, …
    pub state: String,
    /// Start, milliseconds since 1970; absent when not known.
    pub started_unix_ms: Option<i64>,
    /// Version of deltabench that makes the report.
    pub deltabench_version: String,
    /// The host as observed, any JSON; null when not known.
    pub host: serde_json::Value,
    /// What the run could get: huge pages, shared buffers and the like, any JSON; null when not known.
    pub conditions: serde_json::Value,
    /// What each started server said of itself.
    pub servers: Vec<ServerFacts>,
    /// What runs on this host had said about their placebos by the end of this run, this one included; absent
    /// when nothing is kept.
    pub ledger: Option<LedgerLine>,
    /// The warm-ups of the cells, as far as they are known.
    pub warm_up: Vec<CellWarmUp>,
    /// Withdrawals of the run or of its cells, in the order they were made.
    pub invalidations: Vec<Invalidation>,
    /// Withdrawals of the run that confirmed this one, or of its cells, in the order they were made.
    pub confirmation_withdrawn: Vec<ConfirmationWithdrawn>,
    /// The δ that was chosen for this report instead of the plan's; absent for the plan's own.
    pub delta_chosen: Option<DeltaChosen>,
    /// The base of the plan, where the report is relative to another server.
    pub planned_base: Option<ServerId>,
    /// The one-second series of the host, in order; empty where none was collected.
    pub samples: Vec<Sample>,
    /// What happened at a moment: blocks, checkpoints, autovacuum; in order.
    pub marks: Vec<Mark>,
    /// What each server did in each cell in absolute numbers; empty where no report shows it.
    pub results: Vec<CellResult>,
    /// Workloads over numbers of clients; empty where none has several and none is shown in absolute numbers.
    pub grids: Vec<Grid>,
    /// What the kind of benchmark shows beside the verdicts.
    pub figures: Figures,
    /// Where the servers' time went, in cells of which it was sampled.
    pub sampled: Vec<SampledCell>,
    /// Where instructions went, in the cells that were explained.
    pub explained: Vec<ExplainedCell>,
    /// The sessions of a comparison that has several, in their order; else empty.
    pub sessions: Vec<SessionLine>,
}

/// A session of a comparison that has several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionLine {
    pub run: String,
    /// How far it has come: `planned`, `running`, `finished`, …
    pub state: String,
    /// When it was first measured, milliseconds since 1970; absent before that.
    pub began_unix_ms: Option<i64>,
    /// When it was finished, milliseconds since 1970; absent before that.
    pub ended_unix_ms: Option<i64>,
    /// Whether the result rests on it: finished, on a fit host, and not withdrawn.
    pub counts: bool,
    /// Why it does not count, or which cells of it do not, in words; empty where nothing is left out.
    pub left_out: Vec<String>,
}

/// A withdrawal of a confirming run: it neither confirms nor refutes any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfirmationWithdrawn {
    pub run: String,
    /// The cell of it, in the words of the confirming run's plan; absent for the whole run.
    pub cell: Option<String>,
    /// Why, in the words of who did it.
    pub reason: String,
    /// When, milliseconds since 1970.
    pub at_unix_ms: i64,
}

/// A δ chosen after the measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DeltaChosen {
    /// What the report judges with, as a share.
    pub chosen: f64,
    /// What the run planned, as a share; absent where each cell had one from its noise.
    pub planned: Option<f64>,
}

/// The placebo cells of all runs on this host, counted.
#[derive(Debug, Clone, PartialEq)]
pub struct LedgerLine {
    /// Cells in which the placebo was called slower or faster.
    pub flagged: u64,
    /// Placebo cells judged.
    pub total: u64,
    /// Upper bound of the rate of false alarms, as a share; its level is the caller's.
    pub upper_bound: f64,
    /// How often their intervals hold 0; empty where that is not known.
    pub coverage: Vec<Coverage>,
}

/// How the servers of a cell became warm.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CellWarmUp {
    pub cell: CellId,
    /// Visits whose warm-up is known.
    pub visits: u32,
    /// Visits that began with every server steady.
    pub steady: u32,
    /// The discarded rounds of one visit that stands for the others: microseconds per operation, in order;
    /// by server, in the plan's order.
    pub us_per_operation: Vec<Vec<f64>>,
}

/// What one started server said of itself.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerFacts {
    pub server: ServerId,
    pub build: Option<Build>,
    /// Its settings as read back.
    pub settings: Vec<Setting>,
}

impl ReportContext {
    /// How a server was compiled: from the running server, else from the plan.
    pub(crate) fn build<'a>(&'a self, plan: &'a Plan, id: ServerId) -> Option<&'a Build> {
        let told = self.facts(id).and_then(|facts| facts.build.as_ref());
        told.or_else(|| {
            plan.server(id)
                .and_then(|server| server.installation.build.as_ref())
        })
    }

    pub(crate) fn facts(&self, id: ServerId) -> Option<&ServerFacts> {
        self.servers.iter().find(|facts| facts.server == id)
    }

    pub(crate) fn sampled(&self, cell: CellId, candidate: ServerId) -> Option<&SampledCell> {
        let mut cells = self.sampled.iter();
        cells.find(|found| found.cell == cell && found.candidate == candidate)
    }

    pub(crate) fn explained(&self, cell: CellId, candidate: ServerId) -> Option<&ExplainedCell> {
        let mut cells = self.explained.iter();
        cells.find(|found| found.cell == cell && found.candidate == candidate)
    }

    /// The finished sessions on which the result rests, in their order.
    pub(crate) fn counting_sessions(&self) -> Vec<&SessionLine> {
        let counts = |line: &&SessionLine| line.counts && line.ended_unix_ms.is_some();
        self.sessions.iter().filter(counts).collect()
    }

    /// When the sessions were measured on which the result rests, in their order.
    pub fn session_times(&self) -> Vec<SessionTimes> {
        let counting = self.sessions.iter().filter(|line| line.counts);
        let times = counting.filter_map(|line| {
            let began_ms = line.began_unix_ms?;
            Some(SessionTimes {
                began_ms,
                ended_ms: line.ended_unix_ms.unwrap_or(began_ms),
            })
        });
        times.collect()
    }

    pub(crate) fn warm_up(&self, cell: CellId) -> Option<&CellWarmUp> {
        self.warm_up.iter().find(|warm_up| warm_up.cell == cell)
    }
}

/// The resolved target of a server, with the settings that it alone has, for sentences; with a number if a
/// server before it has the same name.
pub fn resolved(plan: &Plan, id: ServerId) -> String {
    plan.called(id)
}
