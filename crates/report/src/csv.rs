//! A comparison as a table for spreadsheets.

use crate::confirmation::ConfirmationStatus;
use crate::context::ReportContext;
use crate::counts;
use crate::published::published;
use crate::table::{comma_separated, flat, number, optional};
use crate::{withdrawn, words};
use deltabench_compare::CountedCell;
use deltabench_compare::comparison::{
    CellComparison, Comparison, Cost, Hours, Metric, Ratio, Verdict,
};
use deltabench_model::metric::unit;
use deltabench_model::plan::Plan;

/// Comma-separated values (RFC 4180, line breaks as LF): a header, then a line per cell, candidate and
/// metric, those that are judged first and then the costs; the placebo's lines come last.
///
/// Units: as the column `unit` says, for the published figures as `published_unit` says (they are on the
///        lines of throughput only); ratios are candidate / base, differences candidate - base; δ is a
///        share. What is not known or does not apply is an empty field.
/// Shape: `verdict` and `reason` are the cell's, on each of its lines; `metric_verdict` is that of the line.
pub fn csv(comparison: &Comparison, plan: &Plan, context: &ReportContext) -> String {
    let mut lines = Vec::new();
    for cell in comparison.cells.iter().chain(&comparison.placebo_cells) {
        let judged = Metric::ALL
            .into_iter()
            .filter_map(|metric| value(cell, metric));
        let counted = comparison
            .instructions
            .as_ref()
            .and_then(|counts| counts.of_cell(cell.cell, cell.candidate))
            .map(counted);
        let known = |cost: &&Cost| Metric::ALL.iter().all(|metric| metric.key() != cost.key);
        let costs = cell.costs.iter().filter(known).map(cost);
        lines.extend(
            judged
                .chain(counted)
                .chain(costs)
                .map(|value| line(cell, plan, context, &value)),
        );
    }
    comma_separated(&flat(&HEADER, lines))
}

/// The columns; new ones come last, so that numbers of columns keep their meaning.
const HEADER: [&str; 43] = [
    "workload",
    "group",
    "clients",
    "candidate",
    "verdict",
    "reason",
    "blocks",
    "rounds",
    "void_rounds",
    "base_errors",
    "candidate_errors",
    "metric",
    "unit",
    "base",
    "candidate_value",
    "ratio",
    "ci95_low",
    "ci95_high",
    "state",
    "rate",
    "delta",
    "p_holm",
    "p_bh",
    "confirmed",
    "disturbed_rounds",
    "published_base",
    "published_candidate",
    "published_unit",
    "difference",
    "difference_ci95_low",
    "difference_ci95_high",
    "withdrawn",
    "difference_us",
    "difference_us_ci95_low",
    "difference_us_ci95_high",
    "typical_ratio",
    "typical_ci95_low",
    "typical_ci95_high",
    "another_hour_ci95_low",
    "another_hour_ci95_high",
    "another_hour_from",
    "another_hour_assumed",
    "metric_verdict",
];

/// What is in the line of one metric.
struct Value<'a> {
    key: &'a str,
    unit: &'static str,
    base: f64,
    candidate: f64,
    ratio: Option<Ratio>,
    difference: [Option<f64>; 3],
    /// Time of an operation, candidate less base, with its interval; microseconds.
    microseconds: [Option<f64>; 3],
    /// The ratio of the typical operation with its interval.
    typical: [Option<f64>; 3],
    /// What another hour would say: the ends of the interval, what it is known from, whether an assumption
    /// takes part.
    another_hour: [String; 4],
    /// The verdict of this metric alone.
    verdict: Option<Verdict>,
    blocks: u32,
}

/// An estimate and the ends of its interval.
fn with_ends(estimate: f64, ends: Option<(f64, f64)>) -> [Option<f64>; 3] {
    [
        Some(estimate),
        ends.map(|(low, _)| low),
        ends.map(|(_, high)| high),
    ]
}

fn another_hour(hours: &Hours) -> [String; 4] {
    let ends = words::ci95(&hours.another);
    [
        optional(ends.map(|(low, _)| low)),
        optional(ends.map(|(_, high)| high)),
        hours.from.word().to_owned(),
        hours.assumed.to_string(),
    ]
}

fn value(cell: &CellComparison, metric: Metric) -> Option<Value<'static>> {
    let value = words::metric(cell, metric)?;
    Some(Value {
        key: metric.key(),
        unit: metric.unit(),
        base: value.base,
        candidate: value.candidate,
        ratio: Some(value.ratio),
        difference: [None; 3],
        microseconds: value
            .difference_us
            .map_or([None; 3], |by| with_ends(by.estimate, by.ci95)),
        typical: value
            .typical
            .map_or([None; 3], |ratio| with_ends(ratio.estimate, ratio.ci95)),
        another_hour: value.hours.as_ref().map(another_hour).unwrap_or_default(),
        verdict: value.verdict,
        blocks: cell.blocks,
    })
}

fn counted(cell: &CountedCell) -> Value<'static> {
    Value {
        key: counts::KEY,
        unit: counts::UNIT,
        base: cell.base.per_op,
        candidate: cell.counted.per_op,
        ratio: Some(Ratio {
            estimate: cell.ratio,
            ci95: None,
            ci90: None,
        }),
        difference: [Some(cell.counted.per_op - cell.base.per_op), None, None],
        microseconds: [None; 3],
        typical: [None; 3],
        another_hour: Default::default(),
        verdict: Some(cell.verdict),
        blocks: cell.counted.starts,
    }
}

fn cost(cost: &Cost) -> Value<'_> {
    Value {
        key: &cost.key,
        unit: unit(&cost.key).0,
        base: cost.base,
        candidate: cost.candidate,
        ratio: cost.ratio,
        difference: with_ends(cost.difference.estimate, cost.difference.ci95),
        microseconds: [None; 3],
        typical: [None; 3],
        another_hour: Default::default(),
        verdict: None,
        blocks: cost.blocks,
    }
}

fn line(
    cell: &CellComparison,
    plan: &Plan,
    context: &ReportContext,
    value: &Value<'_>,
) -> Vec<String> {
    let planned = plan.cell(cell.cell);
    let published = published(cell, plan).filter(|_| value.key == Metric::Throughput.key());
    let ci95 = value.ratio.as_ref().and_then(words::ci95);
    let confirmed = ConfirmationStatus::of(cell).map_or_else(String::new, |s| s.word().to_owned());
    let [difference, difference_low, difference_high] = value.difference;
    let mut fields = vec![
        cell.workload.clone(),
        cell.group.word().to_owned(),
        cell.clients.to_string(),
        cell.candidate_name.clone(),
        cell.verdict.word().to_owned(),
        cell.reason.clone(),
        value.blocks.to_string(),
        cell.rounds.to_string(),
        cell.void_rounds.to_string(),
        cell.base_errors.to_string(),
        cell.candidate_errors.to_string(),
        value.key.to_owned(),
        value.unit.to_owned(),
        number(value.base),
        number(value.candidate),
        optional(value.ratio.map(|ratio| ratio.estimate)),
        optional(ci95.map(|(low, _)| low)),
        optional(ci95.map(|(_, high)| high)),
        planned.map_or_else(String::new, |planned| planned.state.word().to_owned()),
        optional(planned.and_then(|planned| planned.rate)),
        number(cell.delta),
        optional(cell.p_holm),
        optional(cell.p_bh),
        confirmed,
        cell.interference.disturbed_rounds.to_string(),
        optional(published.as_ref().and_then(|published| published.base)),
        optional(published.as_ref().and_then(|published| published.candidate)),
        published.map_or_else(String::new, |published| published.unit),
        optional(difference),
        optional(difference_low),
        optional(difference_high),
        withdrawn::of_cell(context, cell.cell).unwrap_or_default(),
    ];
    fields.extend(value.microseconds.map(optional));
    fields.extend(value.typical.map(optional));
    fields.extend(value.another_hour.iter().cloned());
    fields.push(
        value
            .verdict
            .map_or_else(String::new, |verdict| verdict.word().to_owned()),
    );
    fields
}
