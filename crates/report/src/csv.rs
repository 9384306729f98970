//! A comparison as a table for spreadsheets.

use crate::words;
use deltabench_compare::comparison::{CellComparison, Comparison, Metric};

/// Comma-separated values (RFC 4180, line breaks as LF): a header, then a line per cell, candidate and
/// metric; the placebo's lines come last.
///
/// Units: as the column `unit` says; ratios are candidate / base. What is not known is an empty field.
#[must_use]
pub fn csv(comparison: &Comparison) -> String {
    let header = "workload,group,clients,candidate,verdict,reason,blocks,rounds,void_rounds,base_errors,\
                  candidate_errors,metric,unit,base,candidate_value,ratio,ci95_low,ci95_high";
    let mut text = format!("{header}\n");
    for cell in comparison.cells.iter().chain(&comparison.placebo_cells) {
        for metric in Metric::ALL {
            if let Some(line) = line(cell, metric) {
                text.push_str(&line.join(","));
                text.push('\n');
            }
        }
    }
    text
}

fn line(cell: &CellComparison, metric: Metric) -> Option<Vec<String>> {
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
