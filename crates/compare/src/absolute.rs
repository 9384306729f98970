//! What each server did in each cell in absolute numbers, as pgbench counts it: transactions, latency,
//! scripts.
//!
//! Nothing is compared here. Every slice that is not void counts, disturbed or not: these are counts of what
//! was sent, where a comparison leaves some out. So throughput here and there differs a little.

use crate::histograms::merge;
use deltabench_model::plan::{CellId, Plan, ServerId};
use deltabench_model::slice::{ErrorCount, ScriptTally, Slice};
use deltabench_model::units::{micros, seconds, to_f64};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use std::collections::BTreeMap;

/// What a server did in a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct CellResult {
    pub cell: CellId,
    pub server: ServerId,
    pub total: Tally,
    /// By restart block, in order.
    pub blocks: Vec<(u32, Tally)>,
    /// By script, in the order of the mix; empty where it is no mix of scripts.
    pub scripts: Vec<ScriptTally>,
    /// Slice by slice, in the order of time.
    pub series: Vec<Moment>,
    /// Why operations failed, by SQLSTATE, the most frequent first.
    pub errors: Vec<ErrorCount>,
}

/// Counts and latency of some slices.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Tally {
    /// Measured time: the sum over slices.
    pub seconds: f64,
    pub operations: u64,
    /// Operations that ended with a server error.
    pub failed: u64,
    /// Latency of those that succeeded; absent where a histogram cannot be read.
    pub latency: Option<Latency>,
}

impl Tally {
    /// Operations per second; absent where no time was measured.
    pub fn per_second(&self) -> Option<f64> {
        (self.seconds > 0.0).then(|| to_f64(self.operations) / self.seconds)
    }
}

/// Latency, microseconds, from histograms: exact to a thousandth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Latency {
    pub average_us: f64,
    /// Standard deviation.
    pub stddev_us: f64,
    pub p50_us: f64,
    /// 95th percentile.
    pub p95_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
}

/// A slice in a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moment {
    /// Start, nanoseconds since the Unix epoch.
    pub started_ns: u64,
    pub seconds: f64,
    pub operations: u64,
    /// Operations that ended with a server error.
    pub failed: u64,
    /// Sum of the latencies of those that succeeded, microseconds.
    pub latency_sum_us: f64,
    /// Sum of the squares of these latencies.
    pub latency_square_sum_us2: f64,
    /// Transactions that were tried more than once.
    pub retried: u64,
    /// Tries beyond the first.
    pub retries: u64,
    /// Transactions that were not begun since they would have been too late.
    pub skipped: u64,
}

/// What was done in an interval of measured time.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Progress {
    /// Measured seconds at its end, from the beginning of the cell's first slice.
    pub at_seconds: f64,
    /// Its length, seconds: at least what was asked for, but for the last.
    pub seconds: f64,
    pub operations: u64,
    /// Operations that ended with a server error.
    pub failed: u64,
    /// Mean latency, microseconds; absent without an operation.
    pub average_us: Option<f64>,
    /// Standard deviation of latency; absent without an operation.
    pub stddev_us: Option<f64>,
    /// Transactions that were tried more than once.
    pub retried: u64,
    /// Tries beyond the first.
    pub retries: u64,
    /// Transactions that were not begun since they would have been too late.
    pub skipped: u64,
}

/// Whether reports of a plan show absolute numbers: it has scripts, or some workload at several
/// numbers of clients. Those of passes are shown in their own way.
pub fn is_shown(plan: &Plan) -> bool {
    let mut known: BTreeMap<&str, u32> = BTreeMap::new();
    let several_clients = plan.cells.iter().any(|cell| {
        let first = known.entry(cell.workload.as_str()).or_insert(cell.clients);
        *first != cell.clients
    });
    !plan.work.has_passes() && (plan.work.has_scripts() || several_clients)
}

/// Slices by block and round.
type Rounds<'a> = BTreeMap<(u32, u32), &'a Slice>;

/// What each server did in each cell, ordered by cell and server.
///
/// Shape: slices in any order; of two slices of the same place the later one counts, as in
///        [`crate::analyse()`].
pub fn results(slices: &[Slice]) -> Vec<CellResult> {
    let mut places: BTreeMap<(CellId, ServerId), Rounds<'_>> = BTreeMap::new();
    for slice in slices {
        let place = places.entry((slice.cell, slice.server)).or_default();
        place.insert((slice.block, slice.round), slice);
    }
    let results = places.into_iter().filter_map(|((cell, server), slices)| {
        let good = slices
            .into_values()
            .filter(|slice| slice.void.is_none() && slice.duration_ns > 0);
        result(cell, server, &good.collect::<Vec<_>>())
    });
    results.collect()
}

fn result(cell: CellId, server: ServerId, slices: &[&Slice]) -> Option<CellResult> {
    let mut reader = Deserializer::new();
    let mut blocks = Vec::new();
    let mut all: Option<Histogram<u64>> = None;
    let mut readable = true;
    for block in slices.chunk_by(|one, two| one.block == two.block) {
        let with_latency = block.iter().filter(|slice| slice.operations > 0);
        let histograms = with_latency.map(|slice| slice.latency_histogram.as_slice());
        let merged = merge(&mut reader, histograms);
        let number = block.first()?.block;
        blocks.push((number, tally(block, merged.as_ref())));
        readable &= merged.is_some() || block.iter().all(|slice| slice.operations == 0);
        match (&mut all, merged) {
            (Some(all), Some(block)) => readable &= all.add(block).is_ok(),
            (None, merged) => all = merged,
            (Some(_), None) => {}
        }
    }
    let mut series: Vec<Moment> = slices
        .iter()
        .map(|slice| moment(&mut reader, slice))
        .collect();
    series.sort_by_key(|moment| moment.started_ns);
    Some(CellResult {
        cell,
        server,
        total: tally(slices, all.as_ref().filter(|_| readable)),
        blocks: blocks.into_iter().collect(),
        scripts: scripts(slices),
        series: if slices.is_empty() {
            return None;
        } else {
            series
        },
        errors: errors(slices),
    })
}

fn tally(slices: &[&Slice], histogram: Option<&Histogram<u64>>) -> Tally {
    Tally {
        seconds: slices.iter().map(|slice| seconds(slice.duration_ns)).sum(),
        operations: slices.iter().map(|slice| slice.operations).sum(),
        failed: slices.iter().map(|slice| slice.failed).sum(),
        latency: histogram.map(|histogram| Latency {
            average_us: histogram.mean() / 1e3,
            stddev_us: histogram.stdev() / 1e3,
            p50_us: micros(histogram.value_at_quantile(0.5)),
            p95_us: micros(histogram.value_at_quantile(0.95)),
            p99_us: micros(histogram.value_at_quantile(0.99)),
        }),
    }
}

/// The sums of a slice: its scripts' own where it has them, which are exact, else its histogram's.
fn moment(reader: &mut Deserializer, slice: &Slice) -> Moment {
    let sum = |of: fn(&ScriptTally) -> u64| slice.scripts.iter().map(of).sum::<u64>();
    let (latency, squares) = if slice.scripts.is_empty() {
        let read = merge(reader, std::iter::once(slice.latency_histogram.as_slice()));
        read.map_or((0.0, 0.0), |histogram| {
            let (n, mean) = (to_f64(histogram.len()), histogram.mean() / 1e3);
            let variance = (histogram.stdev() / 1e3).powi(2);
            (n * mean, n * (variance + mean.powi(2)))
        })
    } else {
        let all = slice.scripts.iter();
        all.fold((0.0, 0.0), |(sum, squares), script| {
            (
                sum + script.latency_sum_us,
                squares + script.latency_square_sum_us2,
            )
        })
    };
    Moment {
        started_ns: slice.started_ns,
        seconds: seconds(slice.duration_ns),
        operations: slice.operations,
        failed: slice.failed,
        latency_sum_us: latency,
        latency_square_sum_us2: squares,
        retried: sum(|script| script.retried),
        retries: sum(|script| script.retries),
        skipped: sum(|script| script.skipped),
    }
}

/// The tallies of all slices, by script.
fn scripts(slices: &[&Slice]) -> Vec<ScriptTally> {
    let mut scripts: BTreeMap<u32, ScriptTally> = BTreeMap::new();
    for tally in slices.iter().flat_map(|slice| &slice.scripts) {
        match scripts.get_mut(&tally.script) {
            Some(sum) => add(sum, tally),
            None => {
                scripts.insert(tally.script, tally.clone());
            }
        }
    }
    scripts.into_values().collect()
}

/// The errors of all slices, by SQLSTATE.
fn errors(slices: &[&Slice]) -> Vec<ErrorCount> {
    let mut errors: Vec<ErrorCount> = Vec::new();
    for error in slices.iter().flat_map(|slice| &slice.errors) {
        match errors
            .iter_mut()
            .find(|known| known.sqlstate == error.sqlstate)
        {
            Some(known) => known.count += error.count,
            None => errors.push(error.clone()),
        }
    }
    errors.sort_by_key(|error| std::cmp::Reverse(error.count));
    errors
}

/// Adds the counts and sums of a tally to another's; its script stays.
pub fn add(sum: &mut ScriptTally, tally: &ScriptTally) {
    sum.operations += tally.operations;
    sum.serialization_failures += tally.serialization_failures;
    sum.deadlock_failures += tally.deadlock_failures;
    sum.other_failures += tally.other_failures;
    sum.retried += tally.retried;
    sum.retries += tally.retries;
    sum.skipped += tally.skipped;
    sum.late += tally.late;
    sum.latency_sum_us += tally.latency_sum_us;
    sum.latency_square_sum_us2 += tally.latency_square_sum_us2;
}

/// Mean and standard deviation from a count and two sums, as pgbench makes them; absent without a value.
pub fn mean_and_stddev(operations: u64, sum: f64, squares: f64) -> Option<(f64, f64)> {
    let n = to_f64(operations);
    (operations > 0).then(|| {
        let mean = sum / n;
        // Rounding may make it a little negative.
        (mean, (squares / n - mean.powi(2)).max(0.0).sqrt())
    })
}

/// A series in intervals of at least `every` seconds of measured time; slices are never cut.
pub fn progress(series: &[Moment], every: f64) -> Vec<Progress> {
    let mut done = Vec::new();
    let mut at = 0.0;
    let mut length = 0.0;
    let mut current: Vec<&Moment> = Vec::new();
    for (place, moment) in series.iter().enumerate() {
        current.push(moment);
        length += moment.seconds;
        // Sums of slices miss a whole number by rounding alone.
        if length >= every - 1e-9 || place + 1 == series.len() {
            at += length;
            done.push(interval(&current, at, length));
            current.clear();
            length = 0.0;
        }
    }
    done
}

fn interval(moments: &[&Moment], at_seconds: f64, seconds: f64) -> Progress {
    let sum = |of: fn(&Moment) -> u64| moments.iter().map(|moment| of(moment)).sum::<u64>();
    let sums = |of: fn(&Moment) -> f64| moments.iter().map(|moment| of(moment)).sum::<f64>();
    let operations = sum(|moment| moment.operations);
    let latency = mean_and_stddev(
        operations,
        sums(|moment| moment.latency_sum_us),
        sums(|moment| moment.latency_square_sum_us2),
    );
    Progress {
        at_seconds,
        seconds,
        operations,
        failed: sum(|moment| moment.failed),
        average_us: latency.map(|(mean, _)| mean),
        stddev_us: latency.map(|(_, stddev)| stddev),
        retried: sum(|moment| moment.retried),
        retries: sum(|moment| moment.retries),
        skipped: sum(|moment| moment.skipped),
    }
}
