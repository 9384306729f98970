//! Response times in the published buckets, and exactly.

use super::quartile::Quartile;
use super::record::StepRecord;
use deltabench_model::units::{micros, to_f64};
use deltabench_model::work::insert::{InsertRole, RoleTally};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;

/// Upper ends of the published buckets in nanoseconds, with their names; what is slower is `gt`.
///
/// Source: docs/sources/insert-benchmark.md#response-times.
pub const BUCKETS: [(&str, u64); 9] = [
    ("256us", 256_000),
    ("1ms", 1_000_000),
    ("4ms", 4_000_000),
    ("16ms", 16_000_000),
    ("64ms", 64_000_000),
    ("256ms", 256_000_000),
    ("1s", 1_000_000_000),
    ("4s", 4_000_000_000),
    ("16s", 16_000_000_000),
];

/// Percentiles that are told exactly.
pub const PERCENTILES: [f64; 4] = [50.0, 95.0, 99.0, 99.9];

/// Response times of one role in a step, all good passes and all clients together.
///
/// Units: microseconds; with a rate they count from the scheduled start.
#[derive(Debug, Clone, PartialEq)]
pub struct ResponseTimes {
    /// Whose statements.
    pub role: InsertRole,
    pub statements: u64,
    /// Percent of them in each of [`BUCKETS`], and then slower than all.
    pub percent: Vec<f64>,
    /// At [`PERCENTILES`].
    pub percentiles_us: Vec<f64>,
    pub max_us: f64,
    /// The slowest from sending to answer.
    pub max_service_us: f64,
    /// Where the slowest stands among the servers; absent for the placebo.
    pub quartile: Option<Quartile>,
}

/// By role; roles without a readable statement are not in it.
pub(super) fn response_times(records: &[&StepRecord]) -> Vec<ResponseTimes> {
    let of = |role: InsertRole| {
        let tallies: Vec<&RoleTally> = records
            .iter()
            .filter_map(|record| record.role(role))
            .collect();
        times(role, &tallies)
    };
    InsertRole::ALL.into_iter().filter_map(of).collect()
}

/// `None` without a statement, or if a histogram cannot be read: a part is not the whole.
fn times(role: InsertRole, tallies: &[&RoleTally]) -> Option<ResponseTimes> {
    let mut reader = Deserializer::new();
    let mut all: Histogram<u64> = Histogram::new(3).ok()?;
    for tally in tallies.iter().filter(|tally| tally.statements > 0) {
        let one: Histogram<u64> = reader
            .deserialize(&mut tally.latency_histogram.as_slice())
            .ok()?;
        all.add(one).ok()?;
    }
    if all.is_empty() {
        return None;
    }
    let total = to_f64(all.len());
    let mut below = 0_u64;
    let mut percent: Vec<f64> = BUCKETS
        .iter()
        .map(|(_, end)| {
            let now = all.count_between(0, *end);
            let share = 100.0 * to_f64(now - below) / total;
            below = now;
            share
        })
        .collect();
    percent.push(100.0 * to_f64(all.len() - below) / total);
    let service = tallies.iter().map(|tally| tally.max_service_ns).max();
    Some(ResponseTimes {
        role,
        statements: all.len(),
        percent,
        percentiles_us: PERCENTILES
            .iter()
            .map(|at| micros(all.value_at_percentile(*at)))
            .collect(),
        max_us: micros(all.max()),
        max_service_us: micros(service.unwrap_or(0)),
        quartile: None,
    })
}
