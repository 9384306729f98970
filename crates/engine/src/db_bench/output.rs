//! What `db_bench` prints of a benchmark.

use deltabench_model::units;

/// The result of one benchmark.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Outcome {
    /// Operations that its threads did; those of a writer beside them are not among them.
    pub(super) operations: u64,
    /// First operation to the end of the last one.
    pub(super) seconds: f64,
    /// Operations per second, as printed.
    pub(super) operations_per_second: f64,
    /// `MB/s` as printed, where it is.
    pub(super) megabytes_per_second: Option<f64>,
    /// Keys found, where it tells: it tells it of one of its threads, and the others are taken to find as
    /// many.
    pub(super) found: u64,
    /// Percentiles and maximum of its latencies, microseconds, by the names of [`PERCENTILES`].
    pub(super) latencies: Vec<(&'static str, f64)>,
}

/// Percentiles, as printed and as told.
const PERCENTILES: [(&str, &str); 4] = [
    ("P50:", "latency_p50_us"),
    ("P99:", "latency_p99_us"),
    ("P99.9:", "latency_p99_9_us"),
    ("P99.99:", "latency_p99_99_us"),
];

/// The last result of benchmark `name` in the text; absent when it printed none. `batch` is how many
/// operations one entry of its histogram stands for.
///
/// ```text
/// readrandom   :       3.345 micros/op 298934 ops/sec 2.006 seconds 599660 operations;  125.7 MB/s (…)
/// readrandom   :       3.345 micros/op 298934 ops/sec;  125.7 MB/s (20000 of 20000 found)
/// ```
///
/// Source: `db_bench` 7.8.3; the second form is that of versions up to 6, where operations come from the
/// histogram and the time from both.
pub(super) fn outcome(text: &str, name: &str, batch: u64) -> Option<Outcome> {
    let is_result = |line: &&str| {
        let named = line.split_once(':').map(|(head, _)| head.trim());
        named == Some(name) && line.contains("micros/op") && line.contains("ops/sec")
    };
    let mut rest = text.lines();
    let mut result = None;
    let mut histogram: Vec<&str> = Vec::new();
    while let Some(line) = rest.next() {
        if is_result(&line) {
            result = Some(line);
            histogram = rest.clone().take_while(|line| !is_result(line)).collect();
        }
    }
    let line = result?;
    let per_second = before(line, "ops/sec")?;
    let histogram = read_histogram(&histogram);
    let counted = histogram.count.map(|count| count * batch);
    let operations = before(line, "operations").map(units::to_u64).or(counted)?;
    let printed = before(line, "seconds");
    let told = units::to_f64(operations);
    // The rate has more digits than the time, unless it is slow.
    let by_rate = (per_second >= 1000.0).then(|| told / per_second);
    let seconds = by_rate
        .or(printed)
        .or_else(|| (per_second > 0.0).then(|| told / per_second))?;
    Some(Outcome {
        operations,
        seconds,
        operations_per_second: per_second,
        megabytes_per_second: before(line, "MB/s"),
        found: found(line).map_or(0, |share| units::to_u64(told * share)),
        latencies: histogram.latencies,
    })
}

#[derive(Default)]
struct Histogram {
    count: Option<u64>,
    latencies: Vec<(&'static str, f64)>,
}

/// The first one after a result: with a writer beside the readers, theirs.
fn read_histogram(lines: &[&str]) -> Histogram {
    let mut histogram = Histogram::default();
    for line in lines {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match words.first() {
            Some(&"Count:") if histogram.count.is_some() => break,
            Some(&"Count:") => histogram.count = after(&words, "Count:").map(units::to_u64),
            Some(&"Min:") if histogram.count.is_some() => {
                let most = after(&words, "Max:");
                histogram
                    .latencies
                    .extend(most.map(|most| ("latency_max_us", most)));
            }
            Some(&"Percentiles:") if histogram.count.is_some() => {
                let told = PERCENTILES.iter();
                let found = told.filter_map(|(mark, key)| Some((*key, after(&words, mark)?)));
                histogram.latencies.extend(found);
                break;
            }
            _ => {}
        }
    }
    histogram
}

/// The number after a word.
fn after(words: &[&str], mark: &str) -> Option<f64> {
    let place = words.iter().position(|word| *word == mark)?;
    words.get(place + 1)?.parse().ok()
}

/// The number right before a word.
fn before(line: &str, mark: &str) -> Option<f64> {
    let (head, _) = line.split_once(mark)?;
    head.split_ascii_whitespace().next_back()?.parse().ok()
}

/// `(20000 of 30000 found)`: the share.
fn found(line: &str) -> Option<f64> {
    let (_, inside) = line.rsplit_once('(')?;
    let (number, rest) = inside.split_once(" of ")?;
    let (all, _) = rest.split_once(" found")?;
    let (number, all): (f64, f64) = (number.trim().parse().ok()?, all.trim().parse().ok()?);
    (all > 0.0).then_some(number / all)
}

/// Lines in which it doubts itself, each once, without the word before them.
pub(super) fn warnings(text: &str) -> Vec<String> {
    let mut warnings: Vec<String> = Vec::new();
    for line in text.lines() {
        if let Some(warning) = line.trim().strip_prefix("WARNING:") {
            let warning = warning.trim().to_owned();
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
    }
    warnings
}

/// The version in what `--version` prints: `db_bench version 7.8.3`; absent where it names none.
pub(super) fn version(text: &str) -> Option<u32> {
    let (_, rest) = text.split_once(" version ")?;
    let numbers: Result<Vec<u32>, _> = rest
        .split_ascii_whitespace()
        .next()?
        .split('.')
        .map(str::parse)
        .collect();
    match numbers.ok()?.as_slice() {
        [major, minor] => Some(major * 10_000 + minor * 100),
        [major, minor, patch, ..] => Some(major * 10_000 + minor * 100 + patch),
        _ => None,
    }
}
