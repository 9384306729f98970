//! What makes a script stop.

use crate::comparison::{CellComparison, Comparison, Hours, Metric, MetricComparison, Verdict};
use crate::tails::{self, TAILS};
use crate::thresholds::{GATE_FALSE, MIN_BLOCKS, log_delta};
use crate::words;
use deltabench_model::plan::{Gate, GatedMetric, Plan, Stopping};
use deltabench_model::units::index;
use deltabench_stats::multiplicity::holm;

/// What a cell is to the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateResult {
    /// Nothing against it.
    Passed,
    /// A loss is shown.
    Failed,
    /// No answer.
    Open,
    /// No answer, and fewer blocks than any verdict needs. A gate that lets open cells pass does not let
    /// these pass: the slower a candidate is, the fewer of its blocks fit into the time.
    Unmeasured,
    /// No answer, and more blocks would give none: nobody knows what the gate asks for, for example because a
    /// block has too few operations for a slow quantile of latency. The slower a candidate is, the fewer
    /// operations fit into a block, so these do not pass either.
    Unknown,
    /// Placebo or host say that it cannot be trusted.
    Untrusted,
}

/// The result of every candidate's cell, in the order of [`Comparison::cells`].
///
/// Three questions, by what the plan's gate asks:
/// - without a gate: is the cell listed as a regression?
/// - a gate: is it a regression that holds in the whole family (Holm)? One that only holds alone, or only in
///   the listing, is open; so is a cell that is as fast with more CPU per operation.
/// - a gate with a margin: is a loss beyond the margin excluded (the one-sided 95 % bound, which is the lower
///   end of the 90 % interval, lies above it; with looks, that of the 95 % interval)? It fails where such a
///   loss is shown, family-wise (Holm). Passing needs no correction: *every* cell has to pass
///   (intersection-union).
///
/// A gate on another hour asks the same of what a session in it would say, and without a margin of the
/// measured hours too: a cell fails if it is a regression in both, and passes if it is none in either. What
/// is not known of another hour, or in part assumed, is open.
///
/// A gate on more than throughput gives a cell the worst result of all that it asks for: of CPU per operation
/// and slow quantiles, a regression that holds by Holm among the cells fails, one that does not is open, and
/// one that nobody knows is unknown. The margin is one of throughput.
pub fn gate_results(comparison: &Comparison) -> Vec<GateResult> {
    let start = vec![GateResult::Passed; comparison.cells.len()];
    let all = asked(comparison).into_iter();
    let worst = all.fold(start, |worst, metric| {
        let both = std::iter::zip(worst, of(comparison, metric));
        both.map(|(one, other)| one.worse(other)).collect()
    });
    unmeasured(comparison, worst)
}

/// What the gate asks for: throughput, unless it names something else. A count has one question.
fn asked(comparison: &Comparison) -> Vec<Metric> {
    let named = &comparison.gate.metrics;
    if named.is_empty() || comparison.counted_alone().is_some() {
        return vec![Metric::Throughput];
    }
    named.iter().map(|metric| compared(*metric)).collect()
}

/// The result of one thing that the gate asks for, for every cell.
fn of(comparison: &Comparison, metric: Metric) -> Vec<GateResult> {
    match metric {
        Metric::Throughput => of_throughput(comparison),
        metric => of_metric(comparison, metric),
    }
}

/// The results, where open cells with fewer blocks than any verdict needs are unmeasured. A count needs none.
fn unmeasured(comparison: &Comparison, results: Vec<GateResult>) -> Vec<GateResult> {
    let few = |cell: &CellComparison| index(u64::from(cell.blocks)) < MIN_BLOCKS;
    let counted = comparison.counted_alone().is_some();
    let of = |(cell, result): (&CellComparison, GateResult)| match result {
        GateResult::Open | GateResult::Unknown if !counted && few(cell) => GateResult::Unmeasured,
        result => result,
    };
    std::iter::zip(&comparison.cells, results).map(of).collect()
}

impl GateResult {
    /// The one that weighs more: failed, untrusted, unknown, open, passed.
    fn worse(self, other: Self) -> Self {
        let order = [Self::Failed, Self::Untrusted, Self::Unknown, Self::Open];
        let found = order.into_iter().find(|one| [self, other].contains(one));
        found.unwrap_or(Self::Passed)
    }
}

fn compared(metric: GatedMetric) -> Metric {
    match metric {
        GatedMetric::Throughput => Metric::Throughput,
        GatedMetric::Cpu => Metric::ServerCpuPerOperation,
        GatedMetric::P95 => Metric::LatencyP95,
        GatedMetric::P99 => Metric::LatencyP99,
        GatedMetric::P999 => Metric::LatencyP999,
        GatedMetric::Longest => Metric::LatencyMax,
    }
}

/// The result of a metric that is judged beside throughput, for every cell.
fn of_metric(comparison: &Comparison, metric: Metric) -> Vec<GateResult> {
    let cells = &comparison.cells;
    let another = comparison.gate.another_hour;
    // Its verdict, that of the hours that are asked for, and the p of those.
    let asked = |cell: &CellComparison| {
        let found = cell.metric(metric)?;
        let verdict = verdict_of(cell, metric)?;
        if another {
            let hours = found.measured_hours()?;
            return Some((verdict, hours.verdict, hours.p));
        }
        Some((verdict, verdict, cell.p_of(metric)?))
    };
    let asked: Vec<_> = cells.iter().map(asked).collect();
    let p: Vec<f64> = { asked.iter() }
        .map(|asked| asked.map_or(1.0, |(.., p)| p))
        .collect();
    let result = |((cell, asked), p): ((&CellComparison, _), f64)| match asked {
        _ if cell.verdict == Verdict::Unfit => GateResult::Untrusted,
        Some((verdict, hours, _)) => in_both(verdict, hours, p),
        None if verdict_of(cell, metric).is_none() => GateResult::Unknown,
        None => GateResult::Open,
    };
    let cells = std::iter::zip(cells, asked);
    cells.zip(holm(&p)).map(result).collect()
}

/// What a metric of a cell says alone; `None` where nobody knows it, however many blocks there are.
fn verdict_of(cell: &CellComparison, metric: Metric) -> Option<Verdict> {
    cell.metric(metric)?.verdict
}

/// The result of two verdicts that both have to say it, and of the p of a loss within the family.
fn in_both(verdict: Verdict, hours: Verdict, p: f64) -> GateResult {
    let fine = |verdict| matches!(verdict, Verdict::Improvement | Verdict::NoChange);
    match (verdict, hours) {
        (Verdict::Regression, Verdict::Regression) if p <= GATE_FALSE => GateResult::Failed,
        (verdict, hours) if fine(verdict) && fine(hours) => GateResult::Passed,
        _ => GateResult::Open,
    }
}

fn of_throughput(comparison: &Comparison) -> Vec<GateResult> {
    let cells = &comparison.cells;
    let counted = comparison.counted_alone().is_some();
    if comparison.gate.another_hour && !counted {
        return another_hour(comparison);
    }
    if let Some(margin) = comparison.gate.not_worse_than.filter(|_| !counted) {
        return not_worse(comparison, margin);
    }
    let result = |cell: &CellComparison| match cell.verdict {
        Verdict::Unfit => GateResult::Untrusted,
        Verdict::Inconclusive => GateResult::Open,
        Verdict::NoChange if comparison.gate.on && is_dear(comparison, cell) => GateResult::Open,
        Verdict::Improvement | Verdict::NoChange => GateResult::Passed,
        Verdict::Regression if counted || !comparison.gate.on => GateResult::Failed,
        Verdict::Regression if cell.p_holm.is_none_or(|p| p <= GATE_FALSE) => GateResult::Failed,
        Verdict::Regression => GateResult::Open,
    };
    cells.iter().map(result).collect()
}

/// The same questions of what a session in another hour would say: a cell of which that is not known is open.
fn another_hour(comparison: &Comparison) -> Vec<GateResult> {
    let bound = comparison
        .gate
        .not_worse_than
        .map(|margin| (-margin).ln_1p());
    let known: Vec<Option<&MetricComparison>> = { comparison.cells.iter() }
        .map(|cell| cell.metric(Metric::Throughput))
        .collect();
    let shown = std::iter::zip(&comparison.cells, &known).map(|(cell, speed)| match bound {
        None => Some((*speed)?.measured_hours()?.p),
        Some(bound) => cell.another_p_below(bound),
    });
    let shown = holm(&shown.map(|p| p.unwrap_or(1.0)).collect::<Vec<f64>>());
    let above =
        |hours: &Hours, bound: f64| hours.another.ci90.is_some_and(|(low, _)| low.ln() > bound);
    let looks = matches!(comparison.stopping, Stopping::Sequential { .. });
    // What is open in the measured hour does not pass in another one.
    let passes = |(cell, hours): (&CellComparison, &Hours), bound| {
        excludes(cell, bound, looks) && above(hours, bound)
    };
    let result =
        |((cell, hours), shown): ((&CellComparison, Option<&Hours>), f64)| match (hours, bound) {
            _ if cell.verdict == Verdict::Unfit => GateResult::Untrusted,
            _ if index(u64::from(cell.blocks)) < MIN_BLOCKS => GateResult::Open,
            (None, _) => GateResult::Open,
            (Some(hours), Some(bound)) if passes((cell, hours), bound) => GateResult::Passed,
            (Some(_), Some(_)) if shown <= GATE_FALSE => GateResult::Failed,
            (Some(_), Some(_)) => GateResult::Open,
            (Some(_), None) if is_dear(comparison, cell) => GateResult::Open,
            (Some(hours), None) => in_both(cell.verdict, hours.verdict, shown),
        };
    let hours = known.iter().map(|speed| (*speed)?.measured_hours());
    let cells = comparison.cells.iter().zip(hours);
    cells.zip(shown).map(result).collect()
}

/// Whether a cell is as fast as the base with more CPU for each operation.
pub fn costs_more(cell: &CellComparison) -> bool {
    let cpu = cell.metric(Metric::ServerCpuPerOperation);
    let verdict = cpu.and_then(|found| found.verdict);
    cell.verdict == Verdict::NoChange && verdict == Some(Verdict::Regression)
}

/// Whether a price in CPU has to be weighed here: not where CPU has a say of its own.
fn is_dear(comparison: &Comparison, cell: &CellComparison) -> bool {
    costs_more(cell) && !comparison.gate.metrics.contains(&GatedMetric::Cpu)
}

fn not_worse(comparison: &Comparison, margin: f64) -> Vec<GateResult> {
    // A ratio, not a factor: a loss of 2 % is 0.98.
    let bound = (-margin).ln_1p();
    let cells = &comparison.cells;
    let shown: Vec<f64> = cells
        .iter()
        .map(|cell| cell.p_below(bound).unwrap_or(1.0))
        .collect();
    let looks = matches!(comparison.stopping, Stopping::Sequential { .. });
    let result = |(cell, shown): (&CellComparison, f64)| {
        if cell.verdict == Verdict::Unfit {
            GateResult::Untrusted
        } else if index(u64::from(cell.blocks)) < MIN_BLOCKS {
            GateResult::Open
        } else if excludes(cell, bound, looks) {
            GateResult::Passed
        } else if shown <= GATE_FALSE {
            GateResult::Failed
        } else {
            GateResult::Open
        }
    };
    std::iter::zip(cells, holm(&shown)).map(result).collect()
}

/// Whether a loss beyond the bound is excluded at 5 %.
///
/// With looks, "no change" has been tested several times, and the interval is of the look that was left. Both
/// ways together keep to 5 % if the interval has the stricter of the two levels (simulated in
/// tests/it/pipeline.rs).
fn excludes(cell: &CellComparison, bound: f64, looks: bool) -> bool {
    let ratio = cell.metric(Metric::Throughput).map(|found| found.ratio);
    let above = |ends: Option<(f64, f64)>| ends.is_some_and(|(low, _)| low.ln() > bound);
    if looks {
        let equal = cell.verdict == Verdict::NoChange && log_delta(cell.delta) <= -bound;
        equal || above(ratio.and_then(|ratio| ratio.ci95))
    } else {
        above(ratio.and_then(|ratio| ratio.ci90))
    }
}

/// Whether nothing stands against passing, if no cell fails.
pub(crate) fn passes(comparison: &Comparison, results: &[GateResult]) -> bool {
    let has = |wanted: GateResult| results.contains(&wanted);
    let open = has(GateResult::Open) && !comparison.gate.inconclusive_passes;
    let never = [
        GateResult::Untrusted,
        GateResult::Unmeasured,
        GateResult::Unknown,
    ];
    !comparison.unfinished && !open && !never.into_iter().any(has)
}

/// The gate in one line, for the end of a report; `None` where the plan has none.
///
/// Shape:  `gate passed: …`, `gate failed: …` with the cells that fail it, or `gate open: …`; what has no
/// answer is counted in each. The same answer as [`crate::exit_code`], which also knows unfit hosts and empty
///         runs.
pub fn gate_line(comparison: &Comparison, plan: &Plan) -> Option<String> {
    let Gate {
        on, not_worse_than, ..
    } = plan.gate;
    // A count always has a limit; it is a gate only where one was asked for.
    let counted = comparison.counted_alone().is_some();
    if !on && (counted || not_worse_than.is_none()) {
        return None;
    }
    let results = gate_results(comparison);
    let (all, failed) = (results.len(), number(&results, GateResult::Failed));
    let question = question(comparison);
    let mut parts = Vec::new();
    let word = if failed > 0 {
        let named: Vec<String> = std::iter::zip(&comparison.cells, &results)
            .filter(|(_, result)| **result == GateResult::Failed)
            .map(|(cell, _)| words::cell_on(plan, cell))
            .collect();
        parts.push(format!(
            "{question} in {failed} of {all} cells ({})",
            named.join(", ")
        ));
        "failed"
    } else if passes(comparison, &results) {
        "passed"
    } else {
        "open"
    };
    if failed == 0 {
        let shown = if counted { "takes" } else { "is shown to be" };
        parts.push(format!("none of {all} cells {shown} {question}"));
    }
    parts.extend(left_open(comparison, &results));
    Some(format!("gate {word}: {}", parts.join("; ")))
}

fn number(results: &[GateResult], wanted: GateResult) -> usize {
    results.iter().filter(|&&result| result == wanted).count()
}

/// How many cells have no answer, and why.
fn left_open(comparison: &Comparison, results: &[GateResult]) -> Vec<String> {
    let number = |wanted| number(results, wanted);
    let lenient = comparison.gate.inconclusive_passes;
    let (open, few) = (number(GateResult::Open), number(GateResult::Unmeasured));
    let dear = dear(comparison, results);
    let (unknown, untrusted) = (number(GateResult::Unknown), number(GateResult::Untrusted));
    let unanswered = match lenient {
        true => open - dear,
        false => open - dear + few,
    };
    let (passes, not) = match lenient {
        true => (", which passes", ", which do not pass"),
        false => ("", ""),
    };
    let mut parts = Vec::new();
    if comparison.unfinished {
        parts.push("the run is not finished".to_owned());
    }
    if unanswered > 0 {
        parts.push(format!("{unanswered} without an answer{passes}"));
    }
    if few > 0 && lenient {
        parts.push(format!(
            "{few} with fewer blocks than an answer needs ({MIN_BLOCKS}){not}"
        ));
    }
    if unknown > 0 {
        let what = unknown_metrics(comparison, results);
        parts.push(format!("{unknown} without a known {what}{not}"));
    }
    if dear > 0 {
        parts.push(format!("{dear} as fast with more CPU per operation"));
    }
    if untrusted > 0 {
        parts.push(format!("{untrusted} not trusted"));
    }
    parts
}

/// How many cells are open only because they are as fast with more CPU per operation.
fn dear(comparison: &Comparison, results: &[GateResult]) -> usize {
    let asked = asked(comparison);
    // A gate with a margin asks for throughput alone.
    if comparison.gate.not_worse_than.is_some() || !asked.contains(&Metric::Throughput) {
        return 0;
    }
    let others = asked.iter().filter(|metric| **metric != Metric::Throughput);
    let others: Vec<Vec<GateResult>> = others.map(|metric| of(comparison, *metric)).collect();
    let pass = |at: usize| {
        let mut at = others.iter().filter_map(|results| results.get(at));
        at.all(|result| *result == GateResult::Passed)
    };
    let cells = comparison.cells.iter().zip(results).enumerate();
    let dear = cells.filter(|(at, (cell, result))| {
        **result == GateResult::Open && is_dear(comparison, cell) && pass(*at)
    });
    dear.count()
}

/// What nobody knows of the cells that are unknown: `p99.9 latency (too few operations in a block)`.
fn unknown_metrics(comparison: &Comparison, results: &[GateResult]) -> String {
    let asked = asked(comparison).into_iter();
    let is_unknown = |metric: &Metric| {
        let mut cells = std::iter::zip(&comparison.cells, results);
        cells.any(|(cell, result)| {
            *result == GateResult::Unknown && verdict_of(cell, *metric).is_none()
        })
    };
    let unknown: Vec<Metric> = asked.filter(is_unknown).collect();
    let words: Vec<&str> = unknown.iter().map(|metric| metric.info().words).collect();
    let tails = unknown.iter().all(|metric| TAILS.contains(metric));
    format!("{}{}", words.join(" or "), if tails { TOO_FEW } else { "" })
}

/// Why a slow quantile is not known.
const TOO_FEW: &str = " (too few operations in a block)";

/// What the gate has against each cell, in words; nothing where the cell's own reason says it.
pub fn gate_reasons(comparison: &Comparison) -> Vec<Vec<String>> {
    let mut all = vec![Vec::new(); comparison.cells.len()];
    if comparison.counted_alone().is_some() {
        return all;
    }
    for metric in asked(comparison) {
        let results = unmeasured(comparison, of(comparison, metric));
        let cells = comparison.cells.iter().zip(results);
        for (texts, (cell, result)) in all.iter_mut().zip(cells) {
            let text = match metric {
                Metric::Throughput => against_throughput(comparison, cell, result),
                metric => against(comparison, (cell, metric), result),
            };
            texts.extend(text.filter(|text| !cell.reason.contains(text.as_str())));
        }
    }
    all
}

/// What the gate has against the throughput of a cell, beside what its verdict says.
fn against_throughput(
    comparison: &Comparison,
    cell: &CellComparison,
    result: GateResult,
) -> Option<String> {
    let gate = &comparison.gate;
    let hour = if gate.another_hour {
        " in another hour"
    } else {
        ""
    };
    if result != GateResult::Open {
        return None;
    }
    if let Some(margin) = gate.not_worse_than {
        let loss = words::threshold(margin);
        return Some(format!(
            "a loss of more than {loss} is neither shown nor excluded{hour}"
        ));
    }
    match cell.verdict {
        // Its reason says why.
        Verdict::Inconclusive | Verdict::Unfit => None,
        _ if is_dear(comparison, cell) => None,
        _ if gate.another_hour => Some("no answer in another hour".to_owned()),
        Verdict::Regression => Some(NOT_IN_FAMILY.to_owned()),
        Verdict::Improvement | Verdict::NoChange => None,
    }
}

/// A regression that does not hold when all cells are taken together.
const NOT_IN_FAMILY: &str = "not shown in the whole family of cells (Holm)";

/// What the gate has against CPU or a slow quantile of a cell: `p99 latency higher by 30 % to 61 %`.
fn against(
    comparison: &Comparison,
    (cell, metric): (&CellComparison, Metric),
    result: GateResult,
) -> Option<String> {
    // As the reasons of cells have it.
    let (name, higher) = match metric {
        Metric::ServerCpuPerOperation => ("CPU per operation", "CPU per operation:"),
        metric => (metric.info().words, metric.info().words),
    };
    let found = cell.metric(metric);
    match result {
        GateResult::Failed => Some(format!("{higher} {}", tails::ends(&found?.ratio)?)),
        GateResult::Unknown if TAILS.contains(&metric) => Some(format!("{name} unknown{TOO_FEW}")),
        GateResult::Unknown => Some(format!("{name} unknown")),
        GateResult::Open => {
            let hours = found?.measured_hours().map(|hours| hours.verdict);
            let here = verdict_of(cell, metric)?;
            let both = !comparison.gate.another_hour || hours == Some(Verdict::Regression);
            Some(match here {
                Verdict::Inconclusive => format!("{name}: no answer"),
                Verdict::Regression if both => format!("{name}: {NOT_IN_FAMILY}"),
                _ => format!("{name}: no answer in another hour"),
            })
        }
        GateResult::Passed | GateResult::Unmeasured | GateResult::Untrusted => None,
    }
}

/// What the gate asks of a cell, as the loss that fails it.
fn question(comparison: &Comparison) -> String {
    let gate = &comparison.gate;
    let slower = match gate.not_worse_than {
        Some(margin) if comparison.counted_alone().is_some() => {
            format!("more than {} more instructions", words::threshold(margin))
        }
        Some(margin) => format!("slower by more than {}", words::threshold(margin)),
        None => "slower".to_owned(),
    };
    let asked = gate.metrics.iter().map(|metric| match compared(*metric) {
        Metric::Throughput => slower.clone(),
        metric => format!("higher in {}", metric.info().words),
    });
    let asked: Vec<String> = asked.collect();
    let asked = if asked.is_empty() {
        slower
    } else {
        asked.join(" or ")
    };
    match gate.another_hour {
        true => format!("{asked} in another hour"),
        false => asked,
    }
}
