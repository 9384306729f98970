//! Figures of a study in words, alike in every report.

use crate::words;
use deltabench_compare::comparison::{Metric, Ratio, Verdict};
use deltabench_compare::study::{
    Axis, Column, Figure, GroupSpread, Spread, SpreadOf, Study, StudyRow, StudyTable,
};
use deltabench_compare::thresholds::{BAND_HIGH, BAND_LOW};
use deltabench_model::metric::Better;
use deltabench_model::plan::Group;

/// The name of an axis' kind in files.
pub(crate) fn axis(axis: Axis) -> &'static str {
    match axis {
        Axis::Servers => "servers",
        Axis::Clients => "clients",
        Axis::Part => "part",
        Axis::Host => "host",
    }
}

/// Where a table stands, in a sentence: ` at 4 clients, storage gp3-3000`; empty for a table without
/// coordinates.
pub(crate) fn at_coordinates(table: &StudyTable) -> String {
    let texts: Vec<String> = table
        .coordinates
        .iter()
        .map(|(axis, value)| match (axis.as_str(), value.parse()) {
            ("clients", Ok(number)) => words::plural(number, table.worker),
            ("server", _) if table.worker == "thread" => format!("target {value}"),
            _ => format!("{axis} {value}"),
        })
        .collect();
    if texts.is_empty() {
        String::new()
    } else {
        format!(" at {}", texts.join(", "))
    }
}

/// A ratio with three digits after the point, fewer where it is large: `0.972`, `12.40`, `147.3`.
pub(crate) fn ratio(value: f64) -> String {
    if value.abs() >= 100.0 {
        format!("{value:.1}")
    } else if value.abs() >= 10.0 {
        format!("{value:.2}")
    } else {
        format!("{value:.3}")
    }
}

/// Half of the 95 % interval in percent of the estimate: `0.4`, `12`; absent where there is no interval.
pub(crate) fn half(value: &Ratio) -> Option<String> {
    let (low, high) = words::ci95(value)?;
    let percent = 100.0 * (high - low) / 2.0 / value.estimate;
    percent.is_finite().then(|| {
        if percent >= 9.95 {
            format!("{percent:.0}")
        } else {
            format!("{percent:.1}")
        }
    })
}

/// `±0.4`, or that there is no interval.
pub(crate) fn plus_minus(value: &Ratio) -> String {
    half(value).map_or_else(|| NO_INTERVAL.to_owned(), |half| format!("±{half}"))
}

/// What stands where a figure has no interval.
pub(crate) const NO_INTERVAL: &str = "±?";

/// A colour band of published tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Band {
    /// At or below [`BAND_LOW`].
    Low,
    Middle,
    /// At or above [`BAND_HIGH`].
    High,
}

impl Band {
    /// An arrow for what lies outside of the middle.
    pub(crate) fn sign(self) -> &'static str {
        match self {
            Self::Low => "↓",
            Self::Middle => "",
            Self::High => "↑",
        }
    }

    /// Whether it is the bad end for a metric, or the good one; neither in the middle.
    pub(crate) fn is_bad(self, metric: Metric) -> Option<bool> {
        match (self, metric.better()) {
            (Self::Middle, _) => None,
            (Self::Low, better) => Some(better == Better::Higher),
            (Self::High, better) => Some(better == Better::Lower),
        }
    }
}

/// The band of a figure; absent for the base column and where ratios are not meant to be near 1.
pub(crate) fn band(table: &StudyTable, column: usize, figure: &Figure) -> Option<Band> {
    if table.axis == Axis::Clients || column == table.base {
        return None;
    }
    Some(match figure.ratio.estimate {
        ratio if ratio <= BAND_LOW => Band::Low,
        ratio if ratio >= BAND_HIGH => Band::High,
        _ => Band::Middle,
    })
}

/// Whether a figure may be quoted as a result: it is not, where its verdict is open or void.
pub(crate) fn is_claim(figure: &Figure) -> bool {
    !matches!(figure.verdict, Some(Verdict::Inconclusive | Verdict::Unfit))
}

/// The figures of a row with their columns; those that are not numbers are left out.
pub(crate) fn figures(row: &StudyRow) -> impl Iterator<Item = (usize, &Figure)> {
    row.figures
        .iter()
        .enumerate()
        .filter_map(|(place, figure)| Some((place, figure.as_ref()?)))
        .filter(|(_, figure)| figure.ratio.estimate.is_finite())
}

/// The figure of a row in a column, if it is a number.
pub(crate) fn figure(row: &StudyRow, column: usize) -> Option<&Figure> {
    let figure = row.figures.get(column)?.as_ref()?;
    figure.ratio.estimate.is_finite().then_some(figure)
}

/// The rows of a group, by the table's order.
pub(crate) fn rows_of(table: &StudyTable, group: Group) -> Vec<&StudyRow> {
    table.rows.iter().filter(|row| row.group == group).collect()
}

/// The spreads of a table that say more than its rows, in report order: groups of several rows, then all.
pub(crate) fn spreads_of<'a>(study: &'a Study, table: &StudyTable) -> Vec<&'a GroupSpread> {
    if table.axis != Axis::Servers {
        return Vec::new();
    }
    let of = study
        .spreads
        .iter()
        .filter(|spread| spread.table == table.title)
        .filter(|spread| {
            spread
                .columns
                .iter()
                .flatten()
                .any(|column| column.count > 1)
        });
    let mut of: Vec<&GroupSpread> = of.collect();
    // Stable: within a group the order is the study's.
    of.sort_by_key(|spread| SpreadOf::EACH.iter().position(|one| *one == spread.of));
    of
}

/// The spread of a group in a table; of all rows for none.
pub(crate) fn spread<'a>(
    spreads: &[&'a GroupSpread],
    group: Option<Group>,
) -> Option<&'a GroupSpread> {
    let of = group.map_or(SpreadOf::All, SpreadOf::Group);
    spreads.iter().copied().find(|one| one.of == of)
}

/// The spread in a column.
pub(crate) fn column_spread(spread: &GroupSpread, column: usize) -> Option<&Spread> {
    spread.columns.get(column)?.as_ref()
}

/// A group's heading; `All workloads` for none.
pub(crate) fn group_heading(worker: &str, group: Option<Group>) -> &'static str {
    spread_heading(worker, group.map_or(SpreadOf::All, SpreadOf::Group))
}

/// The heading of what a spread sums up, where the work is done by these ([`StudyTable::worker`]).
pub(crate) fn spread_heading(worker: &str, of: SpreadOf) -> &'static str {
    match (of, worker) {
        (SpreadOf::All, _) => "All workloads",
        (SpreadOf::Ranges, _) => "Range queries, both groups",
        (SpreadOf::Group(group), "thread") => words::embedded_heading(group),
        (SpreadOf::Group(group), _) => words::heading(group),
    }
}

/// The five figures of published spreads: average, median, smallest, largest, deviation.
pub(crate) const SPREAD_HEADS: [&str; 5] = ["average", "median", "min", "max", "stddev"];

/// The same of one column.
pub(crate) fn spread_figures(spread: &Spread) -> [String; 5] {
    [
        ratio(spread.average),
        ratio(spread.median),
        ratio(spread.min),
        ratio(spread.max),
        spread
            .stddev
            .map_or_else(String::new, |stddev| format!("{stddev:.3}")),
    ]
}

/// A share of the linear scaleup: `98 %`.
pub(crate) fn efficiency(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// A figure beside the ratio that some tables have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beside {
    /// Candidate / base at the column, in a table of ratios of ratios.
    Relative,
    /// CPU per operation, relative.
    Cpu,
    /// Context switches per operation, relative.
    Switches,
    /// Operations per second for each unit of monthly cost.
    PerCost,
}

impl Beside {
    pub(crate) const ALL: [Self; 4] = [Self::Relative, Self::Cpu, Self::Switches, Self::PerCost];

    /// What it is called, for the heading of a table of its own.
    pub(crate) fn title(self, table: &StudyTable) -> String {
        match self {
            Self::Relative => "candidate / base at each, the source of these figures".to_owned(),
            Self::Cpu => format!("CPU per operation relative to {}", reference(table)),
            Self::Switches => {
                format!(
                    "context switches per operation relative to {}",
                    reference(table)
                )
            }
            Self::PerCost => "operations per second for each unit of monthly cost".to_owned(),
        }
    }

    /// Its text in a column's cell; absent where the figure has none. What is 1 by definition has no
    /// interval.
    pub(crate) fn text(self, table: &StudyTable, column: usize, figure: &Figure) -> Option<String> {
        let words = |value: Option<Ratio>| {
            let value = value.filter(|value| value.estimate.is_finite())?;
            let text = ratio(value.estimate);
            Some(if self.is_one(table, column) {
                text
            } else {
                format!("{text} {}", plus_minus(&value))
            })
        };
        match self {
            Self::Relative => words(figure.relative),
            Self::Cpu => words(figure.cpu),
            Self::Switches => words(figure.switches),
            Self::PerCost => figure.per_cost.map(words::figure),
        }
    }

    /// Whether some figure of the table has it.
    pub(crate) fn is_in(self, table: &StudyTable) -> bool {
        let mut all = table.rows.iter().flat_map(figures);
        all.any(|(column, figure)| {
            // The base alone says nothing.
            self.text(table, column, figure).is_some() && !self.is_one(table, column)
        })
    }

    /// Whether it is 1 by definition in this column.
    fn is_one(self, table: &StudyTable, column: usize) -> bool {
        matches!(self, Self::Cpu | Self::Switches) && column == table.base
    }
}

/// What the column that is 1 stands for: `1 client`, `rows 100k`.
fn reference(table: &StudyTable) -> String {
    let base = base_name(table);
    match base.parse() {
        Ok(count) if table.axis == Axis::Clients => words::plural(count, table.worker),
        _ => format!("{} {base}", table.axis_name),
    }
}

/// The head of the column that is 1.
pub(crate) fn base_name(table: &StudyTable) -> &str {
    table
        .columns
        .get(table.base)
        .map_or(words::UNKNOWN, |column| column.name.as_str())
}

/// A column's head, with its price and its dates where it has any: `gp3-3000 (442.32 a month)`,
/// `postgres:18.6, 2026-11-24`.
pub(crate) fn column_name(column: &Column) -> String {
    let name = match column.cost_per_month {
        Some(cost) => format!("{} ({cost:.2} a month)", column.name),
        None => column.name.clone(),
    };
    match days(column) {
        Some(days) => format!("{name}, {days}"),
        None => name,
    }
}

/// The days on which a column was measured: `2026-11-24`, `2026-11-20 and 2026-11-24`, or the first and the
/// last of more.
pub(crate) fn days(column: &Column) -> Option<String> {
    let began = { column.measured.iter() }.filter_map(|one| one.began_unix_ms);
    let mut days: Vec<String> = began.map(words::day).collect();
    days.sort();
    days.dedup();
    Some(match days.as_slice() {
        [] => return None,
        [one] => one.clone(),
        [one, two] => format!("{one} and {two}"),
        [first, .., last] => format!("{first} to {last}, {} days", days.len()),
    })
}

/// What signs in the tables mean: only those that occur.
pub(crate) fn legend(study: &Study) -> Vec<String> {
    let all = || {
        study
            .tables
            .iter()
            .flat_map(|table| table.rows.iter().map(move |row| (table, row)))
            .flat_map(|(table, row)| figures(row).map(move |(column, one)| (table, column, one)))
            .filter(|(table, column, _)| *column != table.base)
    };
    let has = |verdict| all().any(|(_, _, figure)| figure.verdict == Some(verdict));
    let mut list = vec![
        "each figure is relative to the column that is 1, with half of its 95 % interval in %"
            .to_owned(),
    ];
    for verdict in [Verdict::Regression, Verdict::Improvement, Verdict::NoChange] {
        if has(verdict) {
            list.push(format!("{} {}", words::sign(verdict), meaning(verdict)));
        }
    }
    if has(Verdict::Inconclusive) {
        list.push("(…)? inconclusive: no answer".to_owned());
    }
    if has(Verdict::Unfit) {
        list.push("(…)× unfit: do not use".to_owned());
    }
    if all().any(|(_, _, figure)| figure.verdict.is_none()) {
        list.push("no sign: not judged".to_owned());
    }
    if all().any(|(_, _, figure)| figure.efficiency.is_some()) {
        list.push(format!(
            "over {}s: efficiency, the share of linear growth in %",
            study.worker()
        ));
    }
    if all().any(|(_, _, figure)| half(&figure.ratio).is_none()) {
        list.push(format!("{NO_INTERVAL} no interval"));
    }
    let banded =
        |wanted| all().any(|(table, column, one)| band(table, column, one) == Some(wanted));
    if banded(Band::Low) {
        list.push(format!("↓ at or below {BAND_LOW}"));
    }
    if banded(Band::High) {
        list.push(format!("↑ at or above {BAND_HIGH}"));
    }
    if banded(Band::Low) || banded(Band::High) {
        list.push("arrows show the bands of published tables, not verdicts".to_owned());
    }
    list
}

fn meaning(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Regression => "worse by more than chance",
        Verdict::Improvement => "better by more than chance",
        other => words::verdict(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_and_halves_keep_the_digits_that_can_be_read() {
        assert_eq!(
            [0.9718, 1.0, 12.404, 147.31].map(ratio),
            ["0.972", "1.000", "12.40", "147.3"]
        );
        let of = |low, high| {
            half(&Ratio {
                estimate: 1.0,
                ci95: Some((low, high)),
                ci90: None,
            })
        };
        assert_eq!(of(0.996, 1.004).as_deref(), Some("0.4"));
        assert_eq!(of(0.88, 1.12).as_deref(), Some("12"));
        assert_eq!(of(f64::NAN, 1.12), None);
    }

    #[test]
    fn more_cpu_is_the_bad_band() {
        assert_eq!(Band::High.is_bad(Metric::ServerCpuPerOperation), Some(true));
        assert_eq!(Band::High.is_bad(Metric::Throughput), Some(false));
        assert_eq!(Band::Middle.is_bad(Metric::Throughput), None);
    }
}
