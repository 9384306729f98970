//! The one-second series and what happened at a moment.

use super::number::Number;
use super::words_unit;
use deltabench_model::counter::{Mark, SERIES, Sample, SeriesInfo};
use deltabench_model::plan::ServerId;
use deltabench_model::units::{seconds, to_f64};
use serde::Serialize;

/// Digits of a value of a series, which is drawn and read in a tooltip.
const DIGITS: usize = 4;
/// Points of one column: an hour of seconds and a half. Longer series are shown by the mean of neighbours.
const POINTS: usize = 5400;

#[derive(Serialize)]
pub(super) struct Series {
    /// The first sample, milliseconds since 1970.
    start: u64,
    /// Samples in one point.
    fold: usize,
    /// Seconds since the first.
    at: Vec<Option<Number>>,
    columns: Vec<Column>,
}

#[derive(Serialize)]
struct Column {
    key: String,
    server: Option<ServerId>,
    name: String,
    unit: String,
    meaning: String,
    values: Vec<Option<Number>>,
}

/// Seconds since the first sample, kind, server, text.
#[derive(Serialize)]
pub(super) struct MarkAt(Option<Number>, String, Option<ServerId>, String);

/// All columns that some sample has, in the registry's order, servers (by their names) in the plan's; nothing
/// without samples.
pub(super) fn series(servers: &[String], samples: &[Sample]) -> Option<Series> {
    let first = samples.first()?;
    let fold = samples.len().div_ceil(POINTS).max(1);
    let at = samples.chunks(fold).filter_map(|chunk| chunk.first());
    let columns = SERIES
        .iter()
        .flat_map(|info| columns(servers, info, samples, fold));
    Some(Series {
        start: first.at_ns / 1_000_000,
        fold,
        at: at.map(|sample| since(first, sample.at_ns)).collect(),
        columns: columns.collect(),
    })
}

fn columns(servers: &[String], info: &SeriesInfo, samples: &[Sample], fold: usize) -> Vec<Column> {
    let each = ServerId::each().zip(servers).map(Some);
    let places = std::iter::once(None).chain(each);
    let all = places.filter_map(|server| {
        let key = match server {
            Some((id, _)) => format!("{}@{id}", info.key),
            None => info.key.to_owned(),
        };
        let values: Vec<Option<Number>> = samples
            .chunks(fold)
            .map(|chunk| mean(&key, chunk))
            .collect();
        values.iter().any(Option::is_some).then(|| Column {
            name: name(info, server.map(|(_, name)| name)),
            key,
            server: server.map(|(id, _)| id),
            unit: words_unit(info.unit),
            meaning: info.meaning.to_owned(),
            values,
        })
    });
    all.collect()
}

fn name(info: &SeriesInfo, server: Option<&String>) -> String {
    let name = info.key.replace('_', " ");
    match server {
        Some(server) => format!("{name} of {server}"),
        None => name,
    }
}

fn mean(key: &str, chunk: &[Sample]) -> Option<Number> {
    let values: Vec<f64> = chunk
        .iter()
        .filter_map(|sample| sample.values.get(key).copied())
        .filter(|value| value.is_finite())
        .collect();
    let count = to_f64(deltabench_model::units::count(values.len()));
    (!values.is_empty())
        .then(|| values.iter().sum::<f64>() / count)
        .and_then(|value| Number::new(value, DIGITS))
}

/// The marks, in the seconds of the series; without a series they have no place.
pub(super) fn marks(samples: &[Sample], marks: &[Mark]) -> Vec<MarkAt> {
    let Some(first) = samples.first() else {
        return Vec::new();
    };
    let placed = marks.iter().map(|mark| {
        MarkAt(
            since(first, mark.at_ns),
            mark.kind.clone(),
            mark.server,
            mark.text.clone(),
        )
    });
    placed.collect()
}

/// Seconds between the first sample and a moment, to the tenth.
fn since(first: &Sample, at_ns: u64) -> Option<Number> {
    let sign = if at_ns < first.at_ns { -1.0 } else { 1.0 };
    let tenths = (10.0 * seconds(at_ns.abs_diff(first.at_ns))).round();
    Number::new(sign * tenths / 10.0, 9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_series_are_shown_by_means_and_what_is_missing_stays_missing() {
        let sample = |second: u32| Sample {
            at_ns: 5_000_000_000 + u64::from(second) * 1_000_000_000,
            over_ns: 1_000_000_000,
            values: [("cpu_user".to_owned(), f64::from(second % 2))].into(),
        };
        let mut samples: Vec<Sample> = (0..8000).map(sample).collect();
        for sample in samples.iter_mut().take(2) {
            sample.values.clear();
        }
        let series = series(&[], &samples).unwrap();
        assert_eq!((series.fold, series.at.len()), (2, 4000));
        assert_eq!(series.columns.len(), 1);
        let values = &series.columns[0].values;
        assert_eq!((values[0], values[1]), (None, Number::new(0.5, DIGITS)));
        assert_eq!(series.at[1], Number::new(2.0, 9));
    }

    #[test]
    fn a_mark_before_the_first_sample_has_a_negative_time() {
        let samples = [Sample {
            at_ns: 2_000_000_000,
            over_ns: 1,
            values: Default::default(),
        }];
        let mark = Mark {
            at_ns: 1_500_000_000,
            server: None,
            kind: "block".to_owned(),
            text: String::new(),
        };
        let placed = marks(&samples, &[mark]);
        assert_eq!(placed.first().and_then(|mark| mark.0), Number::new(-0.5, 9));
    }
}
