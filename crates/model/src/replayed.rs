//! What servers did with the statements of a workload: plans, results, errors, and times if measured.
//!
//! Nothing here holds a value of the user: texts are normalised, plans have `?` for constants.

use crate::problem::Problem;
use crate::units::to_f64;
use serde::{Deserialize, Serialize};

/// Name and version of the JSON.
pub const REPLAYED_FORMAT: (&str, u32) = ("deltabench.replayed", 1);

/// A replay with its answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Replayed {
    pub format: String,
    pub version: u32,
    pub name: String,
    /// Where the statements are from.
    pub capture: ReplayedFile,
    /// Where the tables are from; absent if the servers had them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<ReplayedData>,
    /// The base first, then the candidates.
    pub servers: Vec<ReplayedServer>,
    /// How many statistics each server drew by `ANALYZE`; 1 with those that were there.
    pub draws: u32,
    /// How candidates that were used as they are differ from the base, in words: tables, sizes, settings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<String>,
    /// The time of day that the servers had; absent where no statement asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<ReplayedClock>,
    /// Whether reads were executed, and not only explained.
    pub executed: bool,
    pub covered: Covered,
    /// Objects and rows of the dump that a server refused.
    pub load_failures: Vec<ReplayedLoadFailure>,
    /// Those that were replayed, the most expensive first.
    pub statements: Vec<ReplayedStatement>,
    /// Every plan that the statements name.
    pub plans: Vec<ReplayedPlan>,
    /// What was not replayed, and why.
    pub left_out: Vec<LeftOut>,
    /// What the reader should know besides.
    pub notes: Vec<String>,
    /// Absent where no time was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<ReplayTimes>,
}

/// The time of day that servers had, the same on all of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayedClock {
    /// Where their clocks begin at each start, seconds since 1970; absent: they had that of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<i64>,
    /// Why it is that time.
    pub why: String,
    /// Statements whose text asks for the time.
    pub statements: u64,
}

/// A file that was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayedFile {
    pub path: String,
    /// In hexadecimal; absent for a directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

impl ReplayedFile {
    /// Without its path, if its content is known without.
    #[must_use]
    pub(crate) fn content_only(&self) -> Self {
        let path = match self.sha256 {
            Some(_) => String::new(),
            None => self.path.clone(),
        };
        Self {
            path,
            sha256: self.sha256.clone(),
        }
    }
}

/// A dump that was loaded, or a data directory that was copied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayedData {
    pub path: String,
    /// Of the uncompressed text, or of the `pg_control` of a directory, in hexadecimal.
    pub sha256: String,
    /// Of the uncompressed text, or of the directory on disk.
    pub bytes: u64,
    /// Version of the dumped server, if the dump says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dumped_from: Option<String>,
    /// Absent for a dump.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<ReplayedDirectory>,
}

/// A data directory of which each server had a copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayedDirectory {
    /// The version that made it: `17`.
    pub major: String,
    /// What tells it, and its last checkpoint, from others.
    pub identity: String,
    /// The database that was replayed on.
    pub database: String,
    /// Places of the servers whose copy `pg_upgrade` made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub upgraded: Vec<usize>,
}

/// A server of a replay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayedServer {
    /// The target as it was resolved: `postgres:18.6`.
    pub name: String,
    /// As the server says it.
    pub server_version: String,
    /// SHA-256 of its executable; absent for a server that already ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binary_sha256: Option<String>,
    /// Settings that the user asked for.
    pub settings: Vec<(String, String)>,
    /// Bytes of its data directory after loading, or of the database if it already ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_bytes: Option<u64>,
}

/// How much of the workload could be compared.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Covered {
    /// Statements that at least one server did not refuse, with some values.
    pub statements: u64,
    /// Statements of the capture.
    pub of: u64,
    /// Sets of values with which at least one server did not refuse them.
    pub tuples: u64,
    /// Share of the workload that these sets of values are, 0 to 1; absent if the capture has no weights.
    pub share: Option<f64>,
    pub weighted_by: WeightedBy,
}

/// What a statement's share of the workload is measured by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WeightedBy {
    /// The time of all calls.
    Time,
    /// The number of calls: the capture has no times.
    Calls,
}

impl WeightedBy {
    /// `of the time`, `of the calls`.
    pub fn words(self) -> &'static str {
        match self {
            Self::Time => "of the time",
            Self::Calls => "of the calls",
        }
    }
}

/// A statement of the dump that servers refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayedLoadFailure {
    /// Places of the servers that refused it.
    pub servers: Vec<usize>,
    /// Line of the dump.
    pub line: u64,
    /// Its first words.
    pub what: String,
    pub sqlstate: String,
    pub message: String,
}

/// A statement of the workload, with what each server did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplayedStatement {
    /// As the capture has it.
    pub id: String,
    /// Its name, if it was written in a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The text without values.
    pub text: String,
    /// `read`, `lock`, `write`.
    pub kind: String,
    pub calls: u64,
    /// Share of the workload, 0 to 1; absent if the capture has no weight for it.
    pub share: Option<f64>,
    /// Sets of values that it was replayed with.
    pub tuples: u64,
    /// Absent if the capture has its values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_up: Option<MadeUpValues>,
    /// How it was executed on copies of the tables; absent for reads, and if it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<ReplayedWrite>,
    /// In the order of the servers.
    pub servers: Vec<OnServer>,
    /// One for each candidate.
    pub verdicts: Vec<ReplayVerdict>,
}

/// Values that were made up from the tables of the base, and how much they find.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MadeUpValues {
    /// Mean rows of an execution in the capture; absent if it does not say.
    pub captured_rows: Option<f64>,
    /// With these values on the base; absent if it was not executed.
    pub base_rows: Option<f64>,
}

/// A write or lock that was executed on copies of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayedWrite {
    /// Tuples that are left out because a constraint refuses them on the base: their rows are in the dump.
    pub dropped: u64,
    /// Whether a copy takes each tuple only once: executed again it fails, or changes another number of rows.
    pub once: bool,
}

/// What a server did with a statement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct OnServer {
    pub failures: Vec<ReplayFailure>,
    /// Plans with their shares, the largest first.
    pub plans: Vec<PlanShare>,
    /// Tuples whose plan differs from one draw of statistics to another.
    pub unstable: u64,
    /// Rows of all tuples; absent if it was not executed.
    pub rows: Option<u64>,
    /// Tuples that did not end within the time-out.
    #[serde(default)]
    pub too_long: u64,
    /// Why the server has no answer for some tuples.
    #[serde(default)]
    pub unknown: Vec<String>,
}

/// An error of a statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayFailure {
    pub sqlstate: String,
    pub message: String,
    /// Tuples that ended with it.
    pub tuples: u64,
}

/// How often a server chose a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanShare {
    /// Of a [`ReplayedPlan`].
    pub plan: String,
    /// Tuples that had it in any draw of statistics.
    pub tuples: u64,
    /// Share of the statement's time, or else of its calls, over all draws, 0 to 1.
    pub share: f64,
}

/// How a candidate differs from the base in a statement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplayVerdict {
    /// Place of the candidate among the servers.
    pub server: usize,
    pub errors: ErrorVerdict,
    pub plans: PlanVerdict,
    /// Tuples with another plan.
    pub changed: u64,
    /// Share of the statement that they are, by time or else by calls, 0 to 1.
    pub changed_share: f64,
    /// From which plan to which, the most tuples first.
    pub changes: Vec<PlanChange>,
    pub results: ResultVerdict,
    /// Tuples with another result.
    pub differing: u64,
    /// What may explain another result, or why there is none.
    pub causes: Vec<String>,
    /// Absent where its time was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<StatementTime>,
    /// The candidate with the plans of the base; absent where nobody asked, and where no plan changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_plan: Option<OldPlan>,
}

/// A candidate with the plans of the base.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OldPlan {
    /// Settings of a session that bring them back for all sets of values; none if nothing that was tried
    /// does.
    pub settings: Vec<(String, String)>,
    /// Settings, and pairs of them, that were tried.
    pub tried: u64,
    /// Time of the candidate with them / of the base; absent where it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<TimeRatio>,
    pub cause: PlanCause,
}

/// What makes a statement with another plan slower or faster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlanCause {
    /// With the old plan it takes as long as on the base.
    Planner,
    /// With the old plan it takes as long as with the new one.
    Executor,
    /// Each has a part.
    Both,
    /// The blocks are too few, or it was not measured.
    Open,
}

/// Tuples that went from one plan to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanChange {
    pub from: String,
    pub to: String,
    pub tuples: u64,
}

/// Where a statement fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorVerdict {
    None,
    /// With tuples that worked on the base.
    New,
    /// Some tuples end within the time-out on the base only.
    TooLong,
    /// On both, with different SQLSTATEs.
    Differs,
    /// As on the base.
    Both,
    /// The candidate can do what the base cannot.
    Resolved,
    /// A server has no answer for some tuples: the base did not end in time, or resources ran out.
    Unknown,
}

/// How plans differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlanVerdict {
    Same,
    /// Some tuples have a plan on the candidate that no draw gave on the base.
    Changed,
    /// Some tuples have several plans on the base already.
    UnstableBase,
    /// Some tuples have several plans on the candidate only, that of the base among them.
    UnstableCandidate,
    /// One side has none.
    Unknown,
}

/// How results differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResultVerdict {
    Same,
    /// Another number of rows.
    RowsDiffer,
    /// As many rows with other values.
    ResultsDiffer,
    /// The same rows in another order.
    OrderDiffers,
    /// Two executions on the base differ, too.
    NotRepeatable,
    /// The servers agree, but the data or the time are not those of the capture: too few rows to tell.
    Moved,
    /// It was not executed.
    NotExecuted,
}

/// What the times of a replay say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplayTimes {
    /// Blocks that were measured: all servers restart in each.
    pub blocks: u32,
    /// Blocks that were planned.
    pub planned_blocks: u32,
    /// Statements that were measured and do the same work on all servers.
    pub statements: u64,
    /// Share of the workload that they are, 0 to 1; absent if the capture has no times.
    pub share: Option<f64>,
    /// Below this share of the workload a statement does not matter.
    pub impact: f64,
    /// The whole workload, one for each candidate.
    pub workload: Vec<WorkloadTime>,
    /// The same of a second copy of the base, which shows how often the replay is wrong.
    pub placebo: Option<WorkloadTime>,
    /// Statements of the placebo that were called different.
    pub placebo_different: u64,
    /// Statements that failed while they were timed, on candidates only.
    #[serde(default)]
    pub failed_on_candidates: u64,
    /// All statements at once by many clients; absent where nobody asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mix: Option<ReplayedMix>,
    /// What the reader should know besides.
    pub notes: Vec<String>,
}

/// A mix: clients that send statements by their calls, at the same time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplayedMix {
    pub name: String,
    pub clients: u32,
    /// Statements in it: those that do the same work on all servers and can be executed again and again.
    pub statements: u64,
    /// Statements that were measured.
    pub of: u64,
    /// Share of the calls of these that are in the mix, 0 to 1.
    pub share_of_calls: f64,
    /// One for each candidate.
    pub candidates: Vec<MixTime>,
    pub placebo: Option<MixTime>,
}

/// How a server does the mix, relative to the base.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MixTime {
    /// Place of the candidate among the servers; absent for the placebo.
    pub server: Option<usize>,
    pub verdict: TimeVerdict,
    /// In words, where there is no verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The smallest change that matters, as a share.
    pub delta: f64,
    /// Statements per second, candidate / base.
    pub throughput: TimeRatio,
    pub base_per_second: f64,
    pub candidate_per_second: f64,
    /// CPU of the server for a statement, candidate / base; absent where the host cannot tell.
    pub cpu: Option<TimeRatio>,
    /// 99th percentile of the latency, candidate / base.
    pub p99: Option<TimeRatio>,
    /// Share of the statements that another client was in the way of, on the base and on this server, 0 to 1.
    #[serde(default)]
    pub base_failed: f64,
    #[serde(default)]
    pub failed: f64,
    pub blocks: u32,
}

/// Server time of the workload on a server, relative to the base.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkloadTime {
    /// Place of the candidate among the servers; absent for the placebo.
    pub server: Option<usize>,
    pub verdict: TimeVerdict,
    /// Server time on the candidate / on the base.
    pub ratio: TimeRatio,
    /// The smallest change of the workload that matters, as a share.
    #[serde(default)]
    pub delta: f64,
    /// Statements that do the same work on this server as on the base.
    #[serde(default)]
    pub statements: u64,
    /// Share of the workload that they are, 0 to 1; absent if the capture has no times.
    #[serde(default)]
    pub share: Option<f64>,
}

/// Server time on a candidate / on the base, with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TimeRatio {
    pub estimate: f64,
    /// Absent with fewer than two blocks.
    pub low: Option<f64>,
    pub high: Option<f64>,
}

/// How the time of a statement differs on a candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StatementTime {
    pub verdict: TimeVerdict,
    /// In words, where there is no verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Total time of its tuples, weighted by their executions.
    pub ratio: TimeRatio,
    /// What it adds to the time of the workload, as a share of it: share x (ratio - 1).
    pub impact: Option<TimeRatio>,
    /// The smallest change that matters here, as a share.
    pub delta: f64,
    /// Mean of an execution on the base, milliseconds.
    pub base_ms: f64,
    /// The same on the candidate.
    pub candidate_ms: f64,
    pub blocks: u32,
    /// Executions on the candidate.
    pub executions: u64,
    /// Tuples with another plan, and those with the same one; absent where all have the same, or none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<TimeParts>,
}

/// The time of a statement by plan, without intervals.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TimeParts {
    /// Time of the tuples with another plan, candidate / base.
    pub changed: f64,
    pub changed_tuples: u64,
    /// Time of the others.
    pub same: f64,
}

/// What the times of a statement say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimeVerdict {
    Slower,
    Faster,
    /// Tested to be within the smallest change that matters.
    NoChange,
    Inconclusive,
    /// At the far end of its interval it moves the workload by less than the limit.
    DoesNotMatter,
    /// Host, placebo or the statement itself do not allow a verdict.
    Unfit,
}

/// A plan without values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayedPlan {
    /// From its shape.
    pub id: String,
    pub lines: Vec<PlanLine>,
}

/// A node of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanLine {
    /// Nodes above it.
    pub depth: u32,
    /// `Index Scan using i on t`.
    pub node: String,
    /// Conditions and keys.
    pub details: Vec<String>,
}

/// Statements that were not replayed for one reason.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LeftOut {
    pub why: String,
    pub statements: u64,
    /// Share of the workload, 0 to 1; absent if the capture has no weights for them.
    pub share: Option<f64>,
    /// Some of them, normalised, the most expensive first.
    pub examples: Vec<String>,
}

impl ReplayVerdict {
    /// Whether a result differs, with or without a known cause.
    pub fn results_differ(&self) -> bool {
        matches!(
            self.results,
            ResultVerdict::RowsDiffer | ResultVerdict::ResultsDiffer
        )
    }
}

/// Statements that fail on the base and on a candidate: nothing of them is compared.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NotCompared {
    /// Those that fail with some of their values or with all.
    pub statements: u64,
    /// All statements; of servers that already run, all reads.
    pub of: u64,
    /// Their share of the capture, by time or else by calls, 0 to 1; absent if the capture has neither.
    pub share: Option<f64>,
    /// The error of the most tuples of a statement.
    pub failure: Option<ReplayFailure>,
}

/// What a note begins with that says why a replay could not go on.
const BROKEN_OFF: &str = "broken-off: ";

impl Replayed {
    /// Notes why the replay could not go on.
    pub fn break_off(&mut self, problem: &Problem) {
        let detail = problem.detail.as_ref();
        let detail = detail.map_or_else(String::new, |detail| {
            format!(": {}", detail.replace('\n', ", "))
        });
        let note = format!("{BROKEN_OFF}{}{detail}", problem.error);
        self.notes.insert(0, note);
    }

    /// Forgets why it could not: it goes on.
    pub fn go_on(&mut self) {
        self.notes.retain(|note| !note.starts_with(BROKEN_OFF));
    }

    /// Whether a server did not refuse any statement: else there is nothing to compare.
    pub fn has_answer(&self) -> bool {
        self.covered.statements > 0
    }

    /// What fails on the base and on this candidate, if it is so much that a reader must know it first.
    pub fn not_compared(&self, place: usize) -> Option<NotCompared> {
        /// A capture has mistakes of its users, which fail everywhere. A fifth is more than that: a role, a
        /// schema or a right is missing here.
        const MUCH: f64 = 0.2;
        let failed = |on: Option<&OnServer>| {
            let failures = on.into_iter().flat_map(|on| &on.failures);
            failures.map(|failure| failure.tuples).sum::<u64>()
        };
        let mut found = NotCompared::default();
        let (mut parts, mut share) = (0.0, 0.0);
        let mut most: Option<&ReplayFailure> = None;
        // A role that may only read, as servers that already run should have one, cannot even explain writes.
        let counts = |one: &&ReplayedStatement| self.data.is_some() || one.kind == "read";
        for statement in self.statements.iter().filter(counts) {
            found.of += 1;
            let on = |place: usize| statement.servers.get(place);
            let tuples = failed(on(0)).min(failed(on(place))).min(statement.tuples);
            if tuples == 0 {
                continue;
            }
            let part = to_f64(tuples) / to_f64(statement.tuples);
            found.statements += 1;
            parts += part;
            share += statement.share.unwrap_or(0.0) * part;
            let failures = on(0).into_iter().flat_map(|on| &on.failures);
            most = failures.chain(most).max_by_key(|failure| failure.tuples);
        }
        let all = to_f64(found.of);
        found.share = self.covered.share.map(|_| share);
        found.failure = most.cloned();
        (found.statements > 0 && (share >= MUCH || parts >= all * MUCH)).then_some(found)
    }

    /// Whether a statement, or the whole workload, takes longer on a candidate.
    pub fn has_slower(&self) -> bool {
        let statements = self
            .statements
            .iter()
            .flat_map(|statement| &statement.verdicts);
        let of_statements = statements.filter_map(|verdict| Some(verdict.time.as_ref()?.verdict));
        let whole = self.times.iter().flat_map(|times| &times.workload);
        let mixes = self.times.iter().filter_map(|times| times.mix.as_ref());
        let mixes = mixes.flat_map(|mix| &mix.candidates).map(|mix| mix.verdict);
        let whole = whole.map(|whole| whole.verdict);
        let mut all = of_statements.chain(whole).chain(mixes);
        all.any(|verdict| verdict == TimeVerdict::Slower)
    }

    /// Whether something fails on a candidate that worked on the base, or no longer ends in time: a
    /// statement, or an object of the dump.
    pub fn has_new_failures(&self) -> bool {
        let mut verdicts = self
            .statements
            .iter()
            .flat_map(|statement| &statement.verdicts);
        let of_load = |failure: &ReplayedLoadFailure| !failure.servers.contains(&0);
        verdicts.any(|verdict| matches!(verdict.errors, ErrorVerdict::New | ErrorVerdict::TooLong))
            || self.load_failures.iter().any(of_load)
    }
}
