//! The sentence that matters.

use crate::conditions::Conditions;
use crate::context::{ReportContext, resolved};
use crate::explained::counted_in_short;
use crate::{withdrawn, withheld, words};
use deltabench_compare::comparison::{
    CellComparison, Comparison, Metric, MetricComparison, Verdict,
};
use deltabench_compare::tails::has_longer_tail;
use deltabench_compare::{InstructionCounts, costs_more};
use deltabench_model::plan::{Plan, ServerId};

/// The result in one line for each candidate: how many cells got slower or faster, stayed, are open; then
/// placebo and host.
///
/// Shape: no line break at the end; several candidates are separated by line breaks.
pub fn summary(comparison: &Comparison, plan: &Plan) -> String {
    if let Some(counts) = comparison.counted_alone() {
        return crate::counts::summary(counts, plan);
    }
    let lines: Vec<String> = plan
        .candidates()
        .into_iter()
        .map(|candidate| sentence(comparison, plan, candidate, every_delta))
        .collect();
    lines.join("\n")
}

fn every_delta(cells: &[&CellComparison], delta: f64) -> String {
    format!(" beyond {}", unchanged_delta(cells, delta))
}

/// The head lines above a table that has the δ of each cell: the sentence names δ only where it is the same
/// for all cells without change.
pub(crate) fn headlines(comparison: &Comparison, plan: &Plan) -> Vec<String> {
    if let Some(counts) = comparison.counted_alone() {
        let lines = crate::counts::summary(counts, plan);
        return lines.lines().map(str::to_owned).collect();
    }
    let candidates = plan.candidates().into_iter();
    candidates
        .map(|candidate| sentence(comparison, plan, candidate, common_delta))
        .collect()
}

/// ` beyond ±2 %` where all cells without change have that δ, else nothing.
fn common_delta(cells: &[&CellComparison], _: f64) -> String {
    let same = cells
        .iter()
        .filter(|cell| cell.verdict == Verdict::NoChange);
    let mut deltas: Vec<String> = same.map(|cell| words::deltas([*cell])).collect();
    deltas.dedup();
    match deltas.as_slice() {
        [delta] => format!(" beyond {delta}"),
        _ => String::new(),
    }
}

/// How the δ of the cells without change is put, of cells and the plan's own δ.
type DeltaWords = fn(&[&CellComparison], f64) -> String;

fn sentence(
    comparison: &Comparison,
    plan: &Plan,
    candidate: ServerId,
    delta_words: DeltaWords,
) -> String {
    let cells: Vec<&CellComparison> = comparison
        .cells
        .iter()
        .filter(|cell| cell.candidate == candidate)
        .collect();
    let mut parts = Vec::new();
    if cells.iter().all(|cell| cell.blocks == 0) {
        parts.push("nothing measured".to_owned());
    } else {
        let delta = delta_words(&cells, comparison.delta);
        let instructions = comparison.instructions.as_ref();
        parts.push(counts(&cells, &Conditions::new(plan), instructions, &delta));
    }
    parts.push(placebo(comparison, plan));
    parts.push(
        if comparison.host_ok {
            "host ok"
        } else {
            "host unfit"
        }
        .to_owned(),
    );
    format!(
        "{} vs {}: {}",
        resolved(plan, candidate),
        resolved(plan, plan.base()),
        parts.join("; ")
    )
}

fn counts(
    cells: &[&CellComparison],
    conditions: &Conditions<'_>,
    instructions: Option<&InstructionCounts>,
    delta: &str,
) -> String {
    let of = |verdict: Verdict| cells.iter().filter(|cell| cell.verdict == verdict).count();
    let extreme =
        |verdict: Verdict, word: &str| match farthest(cells, conditions, instructions, verdict) {
            Some(text) => format!(" ({word} {text})"),
            None => String::new(),
        };
    let mut parts = vec![
        format!(
            "{} slower{}",
            of(Verdict::Regression),
            extreme(Verdict::Regression, "worst")
        ),
        format!(
            "{} faster{}",
            of(Verdict::Improvement),
            extreme(Verdict::Improvement, "best")
        ),
        format!("{} no change{delta}{}", of(Verdict::NoChange), but(cells)),
        format!("{} inconclusive", of(Verdict::Inconclusive)),
    ];
    if of(Verdict::Unfit) > 0 {
        parts.push(format!("{} unfit", of(Verdict::Unfit)));
    }
    parts.join(", ")
}

/// ` (2 with more CPU per operation, 1 with longer tail latency)`, or nothing.
fn but(cells: &[&CellComparison]) -> String {
    let with = |what: &str, which: fn(&CellComparison) -> bool| {
        let found = cells.iter().filter(|cell| which(cell)).count();
        (found > 0).then(|| format!("{found} with {what}"))
    };
    let parts = [
        with("more CPU per operation", costs_more),
        with("longer tail latency", has_longer_tail),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    match parts.is_empty() {
        true => String::new(),
        false => format!(" ({})", parts.join(", ")),
    }
}

/// What is said where no cell got slower (`found` is how that is put, without a full stop): no more than the
/// cells that have an answer allow.
pub(crate) fn nothing_found(
    found: &str,
    comparison: &Comparison,
    context: &ReportContext,
) -> String {
    let cells = &comparison.cells;
    if cells.iter().all(|cell| cell.blocks == 0) {
        return "Nothing was measured.".to_owned();
    }
    let (gone, kept): (Vec<_>, Vec<_>) = cells
        .iter()
        .partition(|cell| withdrawn::of_cell(context, cell.cell).is_some());
    let open = kept.iter().filter(|cell| !is_answered(cell)).count();
    let all = cells.len();
    let is = |count: usize| if count == 1 { "is" } else { "are" };
    let has = |count: usize| if count == 1 { "has" } else { "have" };
    let mut but = Vec::new();
    if gone.len() == all {
        return "All results are withdrawn, so there is no answer.".to_owned();
    }
    if !gone.is_empty() {
        but.push(format!(
            "{} of {all} cells {} withdrawn",
            gone.len(),
            is(gone.len())
        ));
    }
    if open > 0 {
        but.push(format!("{open} of {all} cells {} no answer", has(open)));
    }
    match but.as_slice() {
        [] => format!("{found}."),
        _ if gone.len() + open == all => format!("No cell has an answer: {}.", but.join(", ")),
        _ => format!("{found}, but {}.", but.join(" and ")),
    }
}

/// Whether a cell has an answer that may be used.
fn is_answered(cell: &CellComparison) -> bool {
    !matches!(cell.verdict, Verdict::Inconclusive | Verdict::Unfit)
}

/// The δ of the cells without change; the plan's where there is none.
pub(crate) fn unchanged_delta(cells: &[&CellComparison], delta: f64) -> String {
    let mut same = cells
        .iter()
        .copied()
        .filter(|cell| cell.verdict == Verdict::NoChange)
        .peekable();
    if same.peek().is_none() {
        format!("±{}", words::share(delta))
    } else {
        words::deltas(same)
    }
}

/// The cell with that verdict whose throughput is farthest from equal.
fn farthest(
    cells: &[&CellComparison],
    conditions: &Conditions<'_>,
    instructions: Option<&InstructionCounts>,
    verdict: Verdict,
) -> Option<String> {
    let size = |m: &MetricComparison| m.ratio.estimate.ln().abs();
    let (cell, metric) = cells
        .iter()
        .filter(|cell| cell.verdict == verdict)
        .filter_map(|cell| words::metric(cell, Metric::Throughput).map(|metric| (cell, metric)))
        .max_by(|(_, a), (_, b)| size(a).total_cmp(&size(b)))?;
    let counted = instructions.and_then(|counts| counts.of_cell(cell.cell, cell.candidate));
    let counted = counted.map_or_else(String::new, |found| {
        format!(", {}", counted_in_short(found, None))
    });
    Some(format!(
        "{}{} {}{counted}",
        conditions.label(cell),
        at_clients(conditions.plan(), cells, cell),
        words::change_interval(&metric.ratio)
    ))
}

/// ` at 4 clients`, where a workload was measured at more than one number of clients.
fn at_clients(plan: &Plan, cells: &[&CellComparison], cell: &CellComparison) -> String {
    let ambiguous = cells
        .iter()
        .any(|other| other.workload == cell.workload && other.clients != cell.clients);
    if ambiguous {
        format!(" at {}", words::workers(plan, cell.clients))
    } else {
        String::new()
    }
}

pub(crate) fn placebo(comparison: &Comparison, plan: &Plan) -> String {
    let Some(placebo) = &comparison.placebo else {
        return "no placebo".to_owned();
    };
    if !placebo.throughput.estimate.is_finite() {
        return "placebo unknown".to_owned();
    }
    let told = || words::change_interval(&placebo.throughput);
    let text = withheld::of_placebo(plan, comparison).unwrap_or_else(told);
    let text = format!("placebo {text}");
    if placebo.flagged == 0 {
        return text;
    }
    format!(
        "{text}, called different in {} of {}",
        placebo.flagged,
        words::plural(u64::from(placebo.cells), "cell")
    )
}
