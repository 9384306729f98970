//! A comparison as a table for spreadsheets.

use crate::context::planned_cell;
use crate::published::published;
use crate::standing::Standing;
use crate::words;
use deltabench_compare::comparison::{CellComparison, Comparison, Metric};
use deltabench_model::plan::Plan;

/// Comma-separated values (RFC 4180, line breaks as LF): a header, then a line per cell, candidate and
/// metric; the placebo's lines come last.
///
/// Units: as the column `unit` says, for the published figures as `published_unit` says (they are on the
///        lines of throughput only); ratios are candidate / base; δ is a share. What is not known or does
///        not apply is an empty field.
#[must_use]
pub fn csv(comparison: &Comparison, plan: &Plan) -> String {
    let mut text = format!("{}\n", HEADER.join(","));
    for cell in comparison.cells.iter().chain(&comparison.placebo_cells) {
        for metric in Metric::ALL {
            if let Some(line) = line(cell, plan, metric) {
                text.push_str(&line.join(","));
                text.push('\n');
            }
        }
    }
    text
}

/// The columns; new ones come last, so that numbers of columns keep their meaning.
const HEADER: [&str; 28] = [
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
];

fn line(cell: &CellComparison, plan: &Plan, metric: Metric) -> Option<Vec<String>> {
    let planned = planned_cell(plan, cell.cell);
    let published = published(cell, plan).filter(|_| metric == Metric::Throughput);
    let value = words::metric(cell, metric)?;
    let ci95 = words::ci95(&value.ratio);
    let known = |value: f64| {
        if value.is_finite() {
            value.to_string()
        } else {
            String::new()
        }
    };
    let end = |end: Option<f64>| end.map(known).unwrap_or_default();
    Some(vec![
        field(&cell.workload),
        cell.group.word().to_owned(),
        cell.clients.to_string(),
        field(&cell.candidate_name),
        cell.verdict.word().to_owned(),
        field(&cell.reason),
        cell.blocks.to_string(),
        cell.rounds.to_string(),
        cell.void_rounds.to_string(),
        cell.base_errors.to_string(),
        cell.candidate_errors.to_string(),
        metric.key().to_owned(),
        metric.unit().to_owned(),
        known(value.base),
        known(value.candidate),
        known(value.ratio.estimate),
        end(ci95.map(|(low, _)| low)),
        end(ci95.map(|(_, high)| high)),
        planned.map_or_else(String::new, |planned| planned.state.word().to_owned()),
        end(planned.and_then(|planned| planned.rate)),
        known(cell.delta),
        end(cell.p_holm),
        end(cell.p_bh),
        Standing::of(cell).map_or_else(String::new, |standing| standing.word().to_owned()),
        cell.interference.disturbed_rounds.to_string(),
        end(published.as_ref().and_then(|published| published.base)),
        end(published.as_ref().and_then(|published| published.candidate)),
        published.map_or_else(String::new, |published| field(&published.unit)),
    ])
}

fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_with_commas_or_quotes_is_quoted() {
        assert_eq!(field("a,\"b\""), "\"a,\"\"b\"\"\"");
        assert_eq!(field("plain"), "plain");
    }
}
