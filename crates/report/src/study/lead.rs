//! The sentence that a study's reports begin with.

use super::words as study_words;
use crate::words;
use deltabench_compare::comparison::{Metric, Verdict};
use deltabench_compare::study::{Axis, Figure, Study, StudyRow, StudyTable};
use deltabench_model::units::count;

/// How often each verdict was given in the tables of servers, by throughput.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    pub(crate) regression: u64,
    pub(crate) improvement: u64,
    pub(crate) no_change: u64,
    /// Inconclusive, or not judged.
    pub(crate) open: u64,
    pub(crate) unfit: u64,
}

impl Counts {
    fn add(&mut self, verdict: Option<Verdict>) {
        let place = match verdict {
            Some(Verdict::Regression) => &mut self.regression,
            Some(Verdict::Improvement) => &mut self.improvement,
            Some(Verdict::NoChange) => &mut self.no_change,
            Some(Verdict::Unfit) => &mut self.unfit,
            Some(Verdict::Inconclusive) | None => &mut self.open,
        };
        *place += 1;
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.regression += other.regression;
        self.improvement += other.improvement;
        self.no_change += other.no_change;
        self.open += other.open;
        self.unfit += other.unfit;
    }

    pub(crate) fn total(self) -> u64 {
        self.regression + self.improvement + self.no_change + self.open + self.unfit
    }

    /// In the order of their weight: verdict and how often; only what occurs.
    pub(crate) fn list(self) -> Vec<(Verdict, u64)> {
        let all = [
            (Verdict::Regression, self.regression),
            (Verdict::Improvement, self.improvement),
            (Verdict::NoChange, self.no_change),
            (Verdict::Inconclusive, self.open),
            (Verdict::Unfit, self.unfit),
        ];
        all.into_iter().filter(|(_, times)| *times > 0).collect()
    }
}

/// A figure with its place.
struct Place<'a> {
    table: &'a StudyTable,
    row: &'a StudyRow,
    column: usize,
    figure: &'a Figure,
}

impl Place<'_> {
    fn words(&self) -> String {
        let column = self.table.columns.get(self.column);
        let mut texts = vec![self.row.name.clone()];
        texts.extend(column.map(|column| format!("on {}", column.name)));
        format!(
            "{}{} {}",
            texts.join(" "),
            study_words::at_coordinates(self.table),
            words::change_interval(&self.figure.ratio)
        )
    }
}

fn of_servers(study: &Study) -> impl Iterator<Item = Place<'_>> {
    let tables = study
        .tables
        .iter()
        .filter(|table| table.axis == Axis::Servers && table.metric == Metric::Throughput);
    tables.flat_map(|table| table.rows.iter().flat_map(move |row| places(table, row)))
}

fn places<'a>(table: &'a StudyTable, row: &'a StudyRow) -> impl Iterator<Item = Place<'a>> {
    let others = study_words::figures(row).filter(|(column, _)| *column != table.base);
    others.map(move |(column, figure)| Place {
        table,
        row,
        column,
        figure,
    })
}

/// How often each verdict was given on throughput in the tables of servers.
pub(crate) fn counts(study: &Study) -> Counts {
    let mut counts = Counts::default();
    for place in of_servers(study) {
        counts.add(place.figure.verdict);
    }
    counts
}

/// The same in one column of a table.
pub(crate) fn column_counts(table: &StudyTable, column: usize) -> Counts {
    let mut counts = Counts::default();
    for row in &table.rows {
        if let Some(figure) = study_words::figure(row, column) {
            counts.add(figure.verdict);
        }
    }
    counts
}

/// What the study says, in one line: verdicts between servers; else how throughput grows with clients; else
/// what there is.
pub(crate) fn sentence(study: &Study) -> String {
    let said = between_servers(study)
        .or_else(|| over_clients(study))
        .unwrap_or_else(|| match study.tables.len() {
            0 => "nothing can be compared yet".to_owned(),
            tables => format!(
                "{}, none of which is judged",
                words::plural(count(tables), "table")
            ),
        });
    format!("{}: {said}", study.name)
}

fn between_servers(study: &Study) -> Option<String> {
    let counts = counts(study);
    if counts.total() == 0 {
        return None;
    }
    let mut texts: Vec<String> = counts
        .list()
        .into_iter()
        .map(|(verdict, times)| match verdict {
            Verdict::Inconclusive => format!("{times} without an answer"),
            other => format!("{times} {}", words::verdict(other)),
        })
        .collect();
    if counts.regression == 0 {
        texts.insert(0, "nothing slower".to_owned());
    }
    Some(format!(
        "of {}, {}",
        words::plural(counts.total(), "comparison of throughput")
            .replace("comparison of throughputs", "comparisons of throughput"),
        texts.join(", ")
    ))
}

/// What got slower and faster most, a line each.
pub(crate) fn extremes(study: &Study) -> Vec<String> {
    let of = [
        (Verdict::Regression, "slower most"),
        (Verdict::Improvement, "faster most"),
    ];
    of.into_iter()
        .filter_map(|(verdict, word)| {
            Some(format!("{word}: {}", farthest(study, verdict)?.words()))
        })
        .collect()
}

/// The figure with that verdict farthest from equal.
fn farthest(study: &Study, verdict: Verdict) -> Option<Place<'_>> {
    let size = |place: &Place<'_>| place.figure.ratio.estimate.ln().abs();
    of_servers(study)
        .filter(|place| place.figure.verdict == Some(verdict))
        .max_by(|a, b| size(a).total_cmp(&size(b)))
}

fn over_clients(study: &Study) -> Option<String> {
    let tables: Vec<&StudyTable> = study
        .tables
        .iter()
        .filter(|table| table.axis == Axis::Clients && table.metric == Metric::Throughput)
        .collect();
    let first = tables.first()?;
    let last = first.columns.len().checked_sub(1)?;
    let (from, to) = (
        study_words::base_name(first),
        &first.columns.get(last)?.name,
    );
    let mut ratios: Vec<f64> = tables
        .iter()
        .filter(|table| table.columns.len() == first.columns.len())
        .flat_map(|table| &table.rows)
        .filter_map(|row| study_words::figure(row, last))
        .map(|figure| figure.ratio.estimate)
        .collect();
    ratios.sort_by(f64::total_cmp);
    let (low, high) = (ratios.first()?, ratios.last()?);
    let worker = first.worker;
    let party = match worker {
        "thread" => "target",
        _ => "server",
    };
    let servers = match tables.len() {
        1 => String::new(),
        several => format!(" on {}", words::plural(count(several), party)),
    };
    let range = match ratios.len() {
        1 => study_words::ratio(*low),
        _ => format!(
            "{} to {}",
            study_words::ratio(*low),
            study_words::ratio(*high)
        ),
    };
    Some(format!(
        "throughput at {to} {worker}s is {range} times that at {from}, over {}{servers}",
        words::plural(count(first.rows.len()), "workload")
    ))
}
