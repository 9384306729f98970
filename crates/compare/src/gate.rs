//! What makes a script stop.

use crate::comparison::{CellComparison, Comparison, Hours, Metric, MetricComparison, Verdict};
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
/// and slow quantiles, a regression that holds by Holm among the cells fails, one that does not is open. The
/// margin is one of throughput.
pub fn gate_results(comparison: &Comparison) -> Vec<GateResult> {
    let asked = &comparison.gate.metrics;
    let counted = comparison.counted_alone().is_some();
    if asked.is_empty() || counted {
        return unmeasured(comparison, of_throughput(comparison));
    }
    let of = |metric: &GatedMetric| match compared(*metric) {
        Metric::Throughput => of_throughput(comparison),
        metric => of_metric(comparison, metric),
    };
    let start = vec![GateResult::Passed; comparison.cells.len()];
    let worst = asked.iter().map(of).fold(start, |worst, results| {
        let both = std::iter::zip(worst, results);
        both.map(|(one, other)| one.worse(other)).collect()
    });
    unmeasured(comparison, worst)
}

/// The results, where open cells with fewer blocks than any verdict needs are unmeasured. A count needs none.
fn unmeasured(comparison: &Comparison, results: Vec<GateResult>) -> Vec<GateResult> {
    let few = |cell: &CellComparison| index(u64::from(cell.blocks)) < MIN_BLOCKS;
    let counted = comparison.counted_alone().is_some();
    let of = |(cell, result): (&CellComparison, GateResult)| match result {
        GateResult::Open if !counted && few(cell) => GateResult::Unmeasured,
        result => result,
    };
    std::iter::zip(&comparison.cells, results).map(of).collect()
}

impl GateResult {
    /// The one that weighs more: failed, untrusted, open, passed.
    fn worse(self, other: Self) -> Self {
        let order = [Self::Failed, Self::Untrusted, Self::Open];
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
        let verdict = found.verdict?;
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
        None => GateResult::Open,
    };
    let cells = std::iter::zip(cells, asked);
    cells.zip(holm(&p)).map(result).collect()
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
    let never = [GateResult::Untrusted, GateResult::Unmeasured];
    !comparison.unfinished && !open && !never.into_iter().any(has)
}

/// The gate in one line, for the end of a report; `None` where the plan has none.
///
/// Shape:  `gate passed: …`, `gate failed: …` with the cells that fail it, or `gate open: …`; what has no
/// answer is counted in each. The same answer as [`crate::exit_code`], which also knows unfit hosts and empty
///         runs.
pub fn gate_line(comparison: &Comparison, plan: &Plan) -> Option<String> {
    let Gate {
        on,
        not_worse_than,
        inconclusive_passes,
        ..
    } = plan.gate;
    // A count always has a limit; it is a gate only where one was asked for.
    let counted = comparison.counted_alone().is_some();
    if !on && (counted || not_worse_than.is_none()) {
        return None;
    }
    let results = gate_results(comparison);
    let number = |result| results.iter().filter(|&&s| s == result).count();
    let (all, failed) = (results.len(), number(GateResult::Failed));
    let open = number(GateResult::Open);
    let untrusted = number(GateResult::Untrusted);
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
        parts.push(format!("none of {all} cells is shown to be {question}"));
    }
    let both = std::iter::zip(&comparison.cells, &results);
    let dear = both.filter(|(cell, result)| **result == GateResult::Open && costs_more(cell));
    // A gate with a margin asks for throughput alone.
    let dear = not_worse_than.map_or_else(|| dear.count(), |_| 0);
    let few = number(GateResult::Unmeasured);
    let unanswered = match inconclusive_passes {
        true => open - dear,
        false => open - dear + few,
    };
    if comparison.unfinished {
        parts.push("the run is not finished".to_owned());
    }
    if unanswered > 0 {
        let passes = if inconclusive_passes {
            ", which passes"
        } else {
            ""
        };
        parts.push(format!("{unanswered} without an answer{passes}"));
    }
    if few > 0 && inconclusive_passes {
        parts.push(format!(
            "{few} with fewer blocks than an answer needs ({MIN_BLOCKS}), which do not pass"
        ));
    }
    if dear > 0 {
        parts.push(format!("{dear} as fast with more CPU per operation"));
    }
    if untrusted > 0 {
        parts.push(format!("{untrusted} not trusted"));
    }
    Some(format!("gate {word}: {}", parts.join("; ")))
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
