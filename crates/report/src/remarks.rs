//! What the verdicts of a run rest on, one sentence each.

use crate::conditions::Conditions;
use crate::confirmation::DRIFTING;
use crate::context::ReportContext;
use crate::weight::Weight;
use crate::{hours, ledger, placed, withheld, words};
use deltabench_compare::comparison::{
    CellComparison, Comparison, Estimates, Metric, Ratio, Verdict,
};
use deltabench_compare::gate_line;
use deltabench_compare::thresholds::{GATE_FALSE, LISTED_FALSE};
use deltabench_model::plan::{Plan, Role, Stopping};
use deltabench_model::units::{count, to_f64};
use std::collections::BTreeSet;

/// Beyond this share of its interval, what left-out rounds do to an estimate is said.
const TELLING: f64 = 0.1;

/// Beyond this share of its operations, failures of a server in a cell are told with their reason.
const FAILED_TELLING: f64 = 0.001;

/// What the layout of the code alone can do to throughput, as a share (docs/measuring.md).
pub(crate) const LAYOUT: f64 = 0.01;

/// Letters of a server's message that are told.
const MESSAGE_MAX: usize = 200;

/// All of them, in reading order.
pub(crate) fn remarks(
    comparison: &Comparison,
    plan: &Plan,
    context: &ReportContext,
) -> Vec<String> {
    let conditions = Conditions::new(plan);
    let mut list: Vec<String> = gate_line(comparison, plan).into_iter().collect();
    // The rest is about time: a count has no placebo, no sample, and none of what layout does.
    if comparison.counted_alone().is_some() {
        return list;
    }
    list.extend(multiplicity(comparison));
    list.extend(hours::doubts(plan, context));
    list.extend(hours::unknown(comparison, plan, context));
    list.extend(hours::meaning(comparison, context));
    list.extend(placed::large_changes(comparison, plan));
    list.extend(placed::over_clients(context));
    list.extend(placebo(comparison, plan));
    list.extend(ledger::false_alarms(context));
    list.extend(ledger::too_narrow(context));
    list.extend(left_out(comparison, plan));
    list.extend(moved(comparison, &conditions, true));
    list.extend(moved(comparison, &conditions, false));
    list.extend(drifting(comparison, &conditions));
    list.extend(layout(plan));
    list
}

/// Sentences of one kind, with what they change for the reader.
pub(crate) struct Remark {
    pub(crate) weight: Weight,
    pub(crate) texts: Vec<String>,
}

/// All that is not said by table, gate and findings, with what it changes for the reader.
pub(crate) fn weighed(
    comparison: &Comparison,
    plan: &Plan,
    context: &ReportContext,
) -> Vec<Remark> {
    let conditions = Conditions::new(plan);
    let flagged = comparison
        .placebo
        .as_ref()
        .map_or(0, |placebo| placebo.flagged);
    let of_placebo = if flagged > 0 {
        Weight::Answer
    } else {
        Weight::Method
    };
    let of_layout = if comparison.cells.iter().any(may_be_layout) {
        Weight::Doubt
    } else {
        Weight::Figures
    };
    let one = |text: Option<String>| text.into_iter().collect::<Vec<_>>();
    let list = [
        (Weight::Answer, failing(plan, context)),
        (Weight::Answer, hours::doubts(plan, context)),
        (Weight::Answer, moved(comparison, &conditions, true)),
        (Weight::Figures, hours::meaning(comparison, context)),
        (Weight::Doubt, one(placed::large_changes(comparison, plan))),
        (
            Weight::Figures,
            placed::over_clients(context).into_iter().collect(),
        ),
        (of_placebo, one(placebo(comparison, plan))),
        (Weight::Doubt, one(drifting(comparison, &conditions))),
        (
            Weight::Doubt,
            one(hours::unknown(comparison, plan, context)),
        ),
        (of_layout, one(layout(plan))),
        (Weight::Doubt, troubled(comparison, plan)),
        (Weight::Method, one(multiplicity(comparison))),
        (Weight::Doubt, one(ledger::too_narrow(context))),
        (Weight::Method, one(ledger::false_alarms(context))),
        (Weight::Method, one(left_out(comparison, plan))),
        (Weight::Method, moved(comparison, &conditions, false)),
        (Weight::Method, one(totals(comparison, plan, context))),
    ];
    let remarks = list
        .into_iter()
        .map(|(weight, texts)| Remark { weight, texts });
    remarks.filter(|remark| !remark.texts.is_empty()).collect()
}

/// Whether a change is so small that the layout of the code can explain it.
fn may_be_layout(cell: &CellComparison) -> bool {
    let throughput = words::metric(cell, Metric::Throughput);
    let ends = throughput.and_then(|metric| words::ci95(&metric.ratio));
    let near = |(low, high): (f64, f64)| (low - 1.0).max(1.0 - high);
    changed(cell) && ends.is_some_and(|ends| near(ends) < LAYOUT)
}

/// What moved in each cell that got slower or faster, as far as anything did.
pub(crate) fn explanations(comparison: &Comparison, plan: &Plan) -> Vec<String> {
    let conditions = Conditions::new(plan);
    let several = plan.candidates().len() > 1;
    let mut cells: Vec<_> = { comparison.cells.iter() }
        .filter(|cell| changed(cell))
        .collect();
    let size = |cell: &CellComparison| {
        let speed = cell.metric(Metric::Throughput);
        speed.map_or(0.0, |speed| speed.ratio.estimate.ln().abs())
    };
    cells.sort_by(|a, b| size(b).total_cmp(&size(a)));
    let texts = cells.into_iter().filter_map(|cell| {
        let on = if several {
            format!(" on {}", cell.candidate_name)
        } else {
            String::new()
        };
        Some(format!(
            "what moved: {}{on}: {}",
            conditions.name(cell),
            cell.explanation.as_ref()?
        ))
    });
    texts.collect()
}

/// Whether a cell got slower or faster.
pub(crate) fn changed(cell: &CellComparison) -> bool {
    cell.verdict.is_change()
}

fn placebo(comparison: &Comparison, plan: &Plan) -> Option<String> {
    let placebo = comparison.placebo.as_ref()?;
    let ratio = |ratio| words::ratio_interval(ratio);
    let cpu = placebo
        .server_cpu
        .as_ref()
        .map_or_else(|| words::UNKNOWN.to_owned(), ratio);
    Some(format!(
        "placebo (a second copy of the base): throughput {}, CPU/op {cpu}; called different in {} of {}",
        withheld::of_placebo(plan, comparison).unwrap_or_else(|| ratio(&placebo.throughput)),
        placebo.flagged,
        words::plural(u64::from(placebo.cells), "cell"),
    ))
}

/// How many verdicts were given at once, and what was done about it.
pub(crate) fn multiplicity(comparison: &Comparison) -> Option<String> {
    let judged = comparison.cells.iter().filter(|cell| cell.blocks > 0);
    let (mut cells, mut sides) = (BTreeSet::new(), BTreeSet::new());
    for cell in judged {
        cells.insert(cell.cell);
        sides.insert(cell.candidate);
    }
    if cells.len() * sides.len() < 2 {
        return None;
    }
    let of = if sides.len() > 1 {
        format!(" × {} candidates", sides.len())
    } else {
        String::new()
    };
    let gated = comparison.gate.on || comparison.gate.not_worse_than.is_some();
    let of_each = if comparison.gate.metrics.len() > 1 {
        " for each metric of the gate"
    } else {
        ""
    };
    let gate = if gated {
        format!(
            "; the gate fails by chance in at most {} of runs{of_each} (Holm)",
            words::share(GATE_FALSE)
        )
    } else {
        String::new()
    };
    Some(format!(
        "{}{of}: on average at most {} of the listed regressions and improvements are false \
         (Benjamini-Hochberg){gate}",
        words::plural(count(cells.len()), "cell"),
        words::share(LISTED_FALSE),
    ))
}

/// Rounds that other load disturbed and that were left out, over all cells.
pub(crate) fn left_out(comparison: &Comparison, plan: &Plan) -> Option<String> {
    let cells = comparison.cells.iter();
    let counted: u64 = cells.clone().map(|cell| cell.rounds).sum();
    let left_out: u64 = cells.map(|cell| cell.interference.left_out).sum();
    (left_out > 0).then(|| {
        format!(
            "other load: {left_out} of {} left out (steal, a {} kept off its core, one that should have \
             been idle, foreign CPU where clients have cores of their own); what they measured has no say",
            words::plural(counted + left_out, "round"),
            words::server(plan)
        )
    })
}

/// Cells whose estimates depend on the disturbed rounds: those whose answer `hangs` on them, or the others.
fn moved(comparison: &Comparison, conditions: &Conditions<'_>, hangs: bool) -> Vec<String> {
    let cells = comparison.cells.iter();
    let texts = cells
        .filter(|cell| hangs_on_disturbed(cell) == hangs)
        .filter_map(|cell| {
            let texts = telling(cell);
            (!texts.is_empty()).then(|| format!("{}: {}", conditions.name(cell), texts.join("; ")))
        });
    texts.collect()
}

/// Whether the disturbed rounds would take a cell's answer away: a change that is none with them, or an
/// estimate that leaves the interval.
fn hangs_on_disturbed(cell: &CellComparison) -> bool {
    let seen = &cell.interference;
    let Some((with, without)) = seen.with_voided.zip(seen.without_voided) else {
        return false;
    };
    let holds = |ratio: &Ratio, value: f64| {
        words::ci95(ratio).is_none_or(|(low, high)| low <= value && value <= high)
    };
    let answered = changed(cell) || cell.verdict == Verdict::NoChange;
    let gone = changed(cell) && holds(&with.throughput, 1.0);
    answered && (gone || !holds(&without.throughput, with.throughput.estimate))
}

/// Estimates with and without disturbed rounds, where they differ by more than [`TELLING`] or the answer
/// hangs on them.
pub(crate) fn telling(cell: &CellComparison) -> Vec<String> {
    let (Some(with), Some(without)) = (
        cell.interference.with_voided,
        cell.interference.without_voided,
    ) else {
        return Vec::new();
    };
    let pairs = [
        ("throughput", Some((with.throughput, without.throughput))),
        ("CPU/op", cpu(&with).zip(cpu(&without))),
    ];
    let hangs = hangs_on_disturbed(cell);
    let texts = pairs.into_iter().filter_map(|(name, pair)| {
        let tells = |(with, without): &(Ratio, Ratio)| {
            differ(with, without) || (hangs && name == "throughput")
        };
        let (with, without) = pair.filter(tells)?;
        Some(format!(
            "{name} {} with the disturbed rounds, {} without",
            words::ratio_interval(&with),
            words::ratio_interval(&without)
        ))
    });
    texts.collect()
}

fn cpu(estimates: &Estimates) -> Option<Ratio> {
    estimates.server_cpu
}

fn differ(with: &Ratio, without: &Ratio) -> bool {
    let Some((low, high)) = words::ci95(without).or(words::ci95(with)) else {
        return false;
    };
    (with.estimate / without.estimate).ln().abs() > TELLING * (high / low).ln()
}

fn drifting(comparison: &Comparison, conditions: &Conditions<'_>) -> Option<String> {
    let cells = comparison.cells.iter();
    let mut texts: Vec<String> = cells
        .filter_map(|cell| {
            Some(format!(
                "{} ({})",
                conditions.name(cell),
                cell.drifting.as_ref()?
            ))
        })
        .collect();
    texts.dedup();
    (!texts.is_empty()).then(|| format!("{DRIFTING} drifting: {}", texts.join(", ")))
}

/// What restarts cannot average; absent where all sides run the same binary.
pub(crate) fn layout(plan: &Plan) -> Option<String> {
    let hash = |id| {
        plan.server(id)
            .map(|server| &server.installation.binary_sha256)
    };
    let base = hash(plan.base());
    let candidates = plan.candidates();
    let other = candidates.iter().filter(|id| hash(**id) != base).count();
    let library = plan
        .server(plan.base())
        .is_some_and(|server| server.installation.engine.is_library());
    let whose = match (other, candidates.len()) {
        (0, _) => return None,
        (_, 1) if library => "both libraries'",
        (_, 1) => "both binaries'",
        _ if library => "each library's",
        _ => "each binary's",
    };
    Some(format!(
        "{whose} own code layout is the same in every restart: differences below about 1 % can come \
         from layout, not from the change"
    ))
}

/// How far the run came: blocks, rounds, errors, seed.
pub(crate) fn totals(
    comparison: &Comparison,
    plan: &Plan,
    context: &ReportContext,
) -> Option<String> {
    let cells = &comparison.cells;
    let blocks = cells.iter().map(|cell| cell.blocks).max()?;
    let rounds: u64 = cells.iter().map(|cell| cell.rounds).sum();
    let void: u64 = cells.iter().map(|cell| cell.void_rounds).sum();
    let errors: u64 = cells
        .iter()
        .map(|cell| cell.base_errors + cell.candidate_errors)
        .sum();
    Some(format!(
        "run {}: {blocks} of {}{}, {}, {}, {void} void, {}; seed {}",
        context.run,
        words::plural(u64::from(plan.blocks()), "block"),
        stopping(comparison),
        words::plural(count(plan.cells.len()), "cell"),
        words::plural(rounds, "round"),
        words::plural(errors, words::error(plan)),
        plan.seed,
    ))
}

/// When cells stop, in brackets; nothing where all blocks are measured.
fn stopping(comparison: &Comparison) -> String {
    match &comparison.stopping {
        Stopping::Fixed => String::new(),
        Stopping::Sequential { looks } => {
            let looks: Vec<String> = looks.iter().map(ToString::to_string).collect();
            format!(" (looks after {})", looks.join(", "))
        }
        Stopping::Precision { half_width } => {
            let all = comparison.cells.iter();
            let wide = all.filter(|cell| !cell.is_within(*half_width)).count();
            let missed = match wide {
                0 => String::new(),
                _ => format!(", not reached in {}", words::plural(count(wide), "cell")),
            };
            format!(" (each cell until ±{}{missed})", words::share(*half_width))
        }
    }
}

/// Cells with void rounds or server errors, one sentence each; then the servers on which operations failed.
pub(crate) fn troubles(
    comparison: &Comparison,
    plan: &Plan,
    context: &ReportContext,
) -> Vec<String> {
    let mut texts = troubled(comparison, plan);
    texts.extend(failing(plan, context));
    texts
}

/// Cells with void rounds or server errors, one sentence each.
fn troubled(comparison: &Comparison, plan: &Plan) -> Vec<String> {
    let conditions = Conditions::new(plan);
    let troubled =
        |cell: &&CellComparison| cell.void_rounds + cell.base_errors + cell.candidate_errors > 0;
    let cells = comparison.cells.iter().filter(troubled);
    let texts = cells.map(|cell| {
        format!(
            "{}: {}, {}s {} on the base, {} on {}",
            conditions.name(cell),
            words::plural(cell.void_rounds, "void round"),
            words::error(plan),
            cell.base_errors,
            cell.candidate_errors,
            cell.candidate_name,
        )
    });
    texts.collect()
}

/// Why operations failed, for each cell and server where more than [`FAILED_TELLING`] did, one sentence each.
///
/// The placebo's are left out: it is the base again.
fn failing(plan: &Plan, context: &ReportContext) -> Vec<String> {
    let results = context.results.iter();
    let texts = results.filter_map(|result| {
        let server = plan.server(result.server)?;
        let cell = plan.cell(result.cell)?;
        let all = result.total.operations + result.total.failed;
        let share = to_f64(result.total.failed) / to_f64(all.max(1));
        if server.role == Role::Placebo || share <= FAILED_TELLING {
            return None;
        }
        let first = result.errors.first()?;
        // What a server says may have lines, and be long.
        let message: Vec<&str> = first.first_message.split_whitespace().collect();
        let message: String = message.join(" ").chars().take(MESSAGE_MAX).collect();
        let code = match plan.work.is_embedded() {
            true => first.sqlstate.clone(),
            false => format!("SQLSTATE {}", first.sqlstate),
        };
        let more = match result.errors.len() {
            0 | 1 => String::new(),
            several => format!(" (the most frequent of {several} kinds of errors)"),
        };
        Some(format!(
            "failed: {}, {}, on {}: {:.1} % of the operations ({} of {all}) failed and do not count: \
             {code}: {message}{more}",
            cell.workload,
            words::workers(plan, cell.clients),
            server.name(),
            100.0 * share,
            result.total.failed,
        ))
    });
    texts.collect()
}
