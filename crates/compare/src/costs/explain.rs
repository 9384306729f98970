//! What moved, in words, and what stayed the same.
//!
//! Every clause is a rule over intervals: "all of it" and "same" are said only where an interval allows, and
//! what is open is left out or called so.

use super::blocks::CostSample;
use super::labels::label;
use super::moved::{Shift, floor, operation_us, short};
use super::sources::{OneSide, Sampled};
use crate::comparison::{CellComparison, Cost, Difference, Metric, MetricComparison, Verdict};
use crate::levels::Levels;
use crate::thresholds::{MOST_SHARE, REST_SHARE, SAME_LADDER};
use crate::words;

const CPU: &str = "server_cpu_us_per_op";
const USER: &str = "user_cpu_us_per_op";
const SYSTEM: &str = "system_cpu_us_per_op";
/// The same of an embedded engine, whose whole step has what its turns have.
const STEP_USER: &str = "step_user_us_per_op";
const STEP_SYSTEM: &str = "step_system_us_per_op";
/// Explained with CPU, or not at all.
const CPU_FAMILY: [&str; 7] = [
    CPU,
    USER,
    SYSTEM,
    STEP_USER,
    STEP_SYSTEM,
    "machine_cpu_percent_per_op",
    "cycles_per_op",
];
const WAL_FAMILY: [&str; 4] = [
    "wal_bytes_per_op",
    "wal_lsn_bytes_per_op",
    "wal_records_per_op",
    "wal_full_pages_per_op",
];
/// What another plan moves: scans and the rows they meet.
const SCANS: [&str; 4] = [
    "seq_scans_per_op",
    "index_scans_per_op",
    "rows_returned_per_op",
    "rows_fetched_per_op",
];
const BUFFERS: [&str; 2] = ["blocks_hit_per_op", "blocks_read_per_op"];
/// Times in which a server does not work.
const WAITING: [&str; 5] = [
    "run_queue_wait_us_per_op",
    "stall_us_per_op",
    "block_read_us_per_op",
    "block_write_us_per_op",
    "wait_us_per_op",
];
/// Other moves that a sentence has room for.
const OTHERS: usize = 3;

/// What moved, in words; `None` where neither a cost nor throughput did and both sides time their reads
/// alike.
pub(super) fn explain(
    cell: &CellComparison,
    sampled: &Sampled,
    shifts: &[Shift],
    levels: Levels,
) -> Option<String> {
    let story = Story {
        cell,
        samples: &sampled.samples,
        shifts,
        levels,
    };
    let slower = story.throughput();
    // Throughput alone is told by the verdict.
    if sampled.samples.is_empty() {
        return None;
    }
    let mut explanation = Explanation::default();
    match (story.shift(CPU), slower) {
        (Some(_), speed) => {
            story.cpu(&mut explanation);
            if let Some(speed) = speed.filter(|speed| story.beyond_cpu(speed)) {
                let size = words::signed(speed.ratio.estimate - 1.0);
                explanation.add(format!("throughput {size}, more than CPU explains"), &[]);
                story.lost_time(speed, &mut explanation);
            }
        }
        (None, Some(speed)) => {
            story.without_cpu(speed, &mut explanation);
            story.lost_time(speed, &mut explanation);
        }
        (None, None) => {}
    }
    story.wal(&mut explanation);
    story.scans(&mut explanation);
    story.others(&mut explanation);
    if let Some(side) = sampled.times_reads {
        explanation.clauses.push(format!(
            "only {} times its reads (track_io_timing)",
            match side {
                OneSide::Base => "the base",
                OneSide::Candidate => "the candidate",
            }
        ));
    }
    if slower.is_some() || story.shift(CPU).is_some() {
        explanation.clauses.extend(story.unmoved());
    }
    (!explanation.clauses.is_empty()).then(|| explanation.clauses.join("; "))
}

/// The clauses so far, and the costs that they explain.
#[derive(Default)]
struct Explanation {
    clauses: Vec<String>,
    keys: Vec<String>,
}

impl Explanation {
    fn add(&mut self, clause: String, keys: &[&str]) {
        self.clauses.push(clause);
        self.keys.extend(keys.iter().map(|key| (*key).to_owned()));
    }
}

struct Story<'a> {
    cell: &'a CellComparison,
    samples: &'a [CostSample],
    shifts: &'a [Shift],
    levels: Levels,
}

/// How a cost that did not move compares.
enum Unmoved {
    /// Exactly nothing on either side.
    Nothing,
    /// Less than is worth a word on either side.
    HardlyAny,
    /// Equal within this share.
    Within(f64),
    /// Too noisy to say.
    Open,
}

impl Story<'_> {
    fn shift(&self, key: &str) -> Option<&Shift> {
        self.shifts.iter().find(|shift| shift.key() == key)
    }

    fn sample(&self, key: &str) -> Option<&CostSample> {
        self.samples.iter().find(|sample| sample.key == key)
    }

    fn cost(&self, key: &str) -> Option<Cost> {
        self.sample(key)?.cost(self.levels)
    }

    fn metric(&self, metric: Metric) -> Option<&MetricComparison> {
        self.cell
            .metrics
            .iter()
            .find(|found| found.metric == metric)
    }

    /// Throughput, if it differs.
    fn throughput(&self) -> Option<&MetricComparison> {
        let differs = |found: &&MetricComparison| found.verdict.is_some_and(Verdict::is_change);
        self.metric(Metric::Throughput).filter(differs)
    }

    /// CPU moved: by how much and which part. The size is that of the judged metric, which the table has too.
    fn cpu(&self, explanation: &mut Explanation) {
        let Some(cost) = self.cost(CPU) else { return };
        let judged = self.metric(Metric::ServerCpuPerOperation);
        let ratio = judged.map(|found| found.ratio).or(cost.ratio);
        let size = ratio.map_or_else(String::new, |ratio| words::signed(ratio.estimate - 1.0));
        let clause = format!("CPU {size} per operation{}", self.parts(&cost));
        explanation.add(clause, &CPU_FAMILY);
    }

    /// Which part of a move of CPU is the kernel's.
    fn parts(&self, whole: &Cost) -> String {
        let either = |keys: [&str; 2]| keys.into_iter().find_map(|key| self.cost(key));
        let parts = (either([USER, STEP_USER]), either([SYSTEM, STEP_SYSTEM]));
        let (Some(user), Some(system)) = parts else {
            return String::new();
        };
        let (user_by, system_by) = (user.difference, system.difference);
        let up = whole.difference.estimate > 0.0;
        let size_of_all = whole.difference.estimate.abs();
        let (limit, half) = (REST_SHARE * size_of_all, MOST_SHARE * size_of_all);
        let along = |by: Difference| clear(by) && (by.estimate > 0.0) == up;
        let size = |cost: &Cost| format!("{} time {}", part_word(cost), change(cost));
        match (along(user_by), along(system_by)) {
            (true, false) if inside(system_by, limit) => ", all of it user time".to_owned(),
            (false, true) if inside(user_by, limit) => ", all of it system time".to_owned(),
            (true, true) => {
                let both = user_by.estimate + system_by.estimate;
                let share = 100.0 * user_by.estimate / both;
                format!(", about {share:.0} % of it user time")
            }
            (true, false) if clear(system_by) => {
                format!(": {}, {}", size(&user), size(&system))
            }
            (false, true) if clear(user_by) => {
                format!(": {}, {}", size(&user), size(&system))
            }
            (true, false) if inside(system_by, half) => ", most of it user time".to_owned(),
            (false, true) if inside(user_by, half) => ", most of it system time".to_owned(),
            (true, false) => format!(": {}, system time open", size(&user)),
            (false, true) => format!(": {}, user time open", size(&system)),
            (false, false) => ", user and system time not separated".to_owned(),
        }
    }

    /// Throughput moved and CPU did not.
    fn without_cpu(&self, speed: &MetricComparison, explanation: &mut Explanation) {
        let size = words::signed(speed.ratio.estimate - 1.0);
        let cpu = match self.sample(CPU).map(|sample| self.unmoved_by(sample)) {
            Some(Unmoved::Within(share)) => format!(
                "throughput {size} with the same CPU per operation (±{})",
                words::threshold(share)
            ),
            Some(_) => format!("throughput {size}, CPU per operation open"),
            None => format!("throughput {size}, CPU not known"),
        };
        explanation.add(cpu, &CPU_FAMILY);
    }

    /// Microseconds that an operation takes longer: what the cell's row says, if it says something.
    fn longer(&self, speed: &MetricComparison) -> Option<f64> {
        match &speed.difference_us {
            Some(difference) => Some(difference.estimate),
            None => Some(operation_us(self.cell)? * (1.0 / speed.ratio.estimate - 1.0)),
        }
    }

    /// Whether it is clear that less than half of the time that an operation takes longer is CPU.
    fn beyond_cpu(&self, speed: &MetricComparison) -> bool {
        let cpu = self.cost(CPU).and_then(|cost| cost.difference.ci95);
        self.longer(speed)
            .zip(cpu)
            .is_some_and(|(more, (low, high))| {
                let most = if more > 0.0 { high } else { -low };
                most < MOST_SHARE * more.abs()
            })
    }

    /// Where the time of an operation went that is no CPU.
    fn lost_time(&self, speed: &MetricComparison, explanation: &mut Explanation) {
        let Some(more) = self.longer(speed) else {
            return;
        };
        let along = |shift: &&Shift| {
            let key = shift.key();
            let time = key.starts_with("wait:") || WAITING.contains(&key);
            time && shift.cost.difference.estimate * more > 0.0
        };
        let mut parts: Vec<&Shift> = self.shifts.iter().filter(along).collect();
        if parts.iter().any(|shift| shift.key().starts_with("wait:")) {
            parts.retain(|shift| shift.key() != "wait_us_per_op");
        }
        parts.sort_by(|a, b| {
            let size = |shift: &Shift| shift.cost.difference.estimate.abs();
            size(b).total_cmp(&size(a))
        });
        parts.truncate(OTHERS);
        let whole = match &speed.difference_us {
            Some(difference) => words::bare_microseconds(difference),
            None => format!("{:+}", short(more)),
        };
        let whole = format!("{whole} us per operation");
        let amounts: Vec<String> = parts
            .iter()
            .map(|shift| {
                let by = short(shift.cost.difference.estimate);
                format!("{by:+} us are {}", label(shift.key()))
            })
            .collect();
        let clause = if parts.is_empty() {
            format!("the counters do not show where {whole} went")
        } else {
            format!("of {whole}, {}", list(&amounts))
        };
        let sums = parts.iter().map(|shift| shift.key());
        explanation.add(
            clause,
            &sums.chain(["wait_us_per_op"]).collect::<Vec<&str>>(),
        );
    }

    /// WAL moved: records, images, or their size.
    fn wal(&self, explanation: &mut Explanation) {
        let volume = ["wal_bytes_per_op", "wal_lsn_bytes_per_op"];
        let Some(shift) = volume.iter().find_map(|key| self.shift(key)) else {
            return;
        };
        let stays = |key: &str| {
            self.sample(key)
                .map(|sample| self.unmoved_by(sample))
                .filter(|_| self.shift(key).is_none())
        };
        let images = stays("wal_full_pages_per_op");
        let some_images = matches!(images, Some(Unmoved::Within(_)));
        let moved = ["wal_records_per_op", "wal_full_pages_per_op"];
        let moved: Vec<String> = moved
            .iter()
            .filter_map(|key| Some(self.shift(key)?.short()))
            .collect();
        let size = if shift.by < 0.0 { "smaller" } else { "larger" };
        let why = match stays("wal_records_per_op") {
            Some(Unmoved::Within(_)) if some_images => format!(
                " in the same number of records and full-page images: each is {size}, as with \
                 wal_compression"
            ),
            Some(Unmoved::Within(_)) if moved.is_empty() && images.is_some() => {
                format!(" in the same number of records: each is {size}")
            }
            Some(Unmoved::Within(_)) if !moved.is_empty() => {
                format!(" in the same number of records: {}", list(&moved))
            }
            _ if !moved.is_empty() => format!(": {}", list(&moved)),
            _ => String::new(),
        };
        explanation.add(format!("{} per operation{why}", shift.short()), &WAL_FAMILY);
    }

    /// Buffers, scans or rows moved: the work that a plan asks for.
    fn scans(&self, explanation: &mut Explanation) {
        let moved = |keys: &[&str]| -> Vec<String> {
            let found = keys.iter().filter_map(|key| self.shift(key));
            found.map(Shift::short).collect()
        };
        let scans = moved(&SCANS);
        // Hits that became reads are no other plan.
        let buffers = self.buffers().is_some_and(|all| !self.stays(&all));
        let touched = if buffers { moved(&BUFFERS) } else { Vec::new() };
        if scans.is_empty() && touched.is_empty() {
            return;
        }
        let same_rows = SCANS.iter().all(|key| {
            let sample = self.sample(key);
            sample.is_none_or(|sample| self.stays(sample)) && self.shift(key).is_none()
        });
        let known = SCANS.iter().any(|key| self.sample(key).is_some());
        let why = if !scans.is_empty() && !touched.is_empty() {
            ", as with another plan"
        } else if scans.is_empty() && same_rows && known {
            " for the same scans and rows"
        } else {
            ""
        };
        let all: Vec<String> = touched.into_iter().chain(scans).collect();
        explanation.add(format!("{}{why}", list(&all)), &SCANS);
        if buffers {
            explanation.keys.extend(BUFFERS.map(str::to_owned));
        }
    }

    /// The most surprising of the rest, without what repeats something said.
    fn others(&self, explanation: &mut Explanation) {
        let listed = super::moved::listed(self.shifts);
        let rest: Vec<String> = self
            .shifts
            .iter()
            .filter(|shift| listed.iter().any(|other| other.key == shift.key()))
            .filter(|shift| !explanation.keys.iter().any(|key| key == shift.key()))
            .take(OTHERS)
            .map(Shift::short)
            .collect();
        if !rest.is_empty() {
            explanation.add(list(&rest), &[]);
        }
    }

    /// Every buffer that was touched, wherever it was found.
    fn buffers(&self) -> Option<CostSample> {
        let [hit, read] = BUFFERS.map(|key| self.sample(key));
        match (hit, read) {
            (Some(hit), Some(read)) => Some(hit.plus(read, "blocks_hit_per_op")),
            (one, other) => one.or(other).cloned(),
        }
    }

    fn faults(&self) -> Option<CostSample> {
        let minor = self.sample("minor_faults_per_op")?;
        Some(match self.sample("major_faults_per_op") {
            Some(major) => minor.plus(major, "minor_faults_per_op"),
            None => minor.clone(),
        })
    }

    /// What one would suspect and that stayed the same.
    fn unmoved(&self) -> Option<String> {
        let first = |keys: &[&str]| keys.iter().find_map(|key| self.sample(key)).cloned();
        // Beside the reads of an engine, which are its operations, it is said which ones are meant.
        let engine = self.sample("ingest_kb_per_op").is_some();
        let suspects = [
            (
                if engine {
                    "reads of the device"
                } else {
                    "reads"
                },
                first(&["reads_per_op", "process_read_kb_per_op", "io_reads_per_op"]),
            ),
            (
                "context switches",
                first(&["context_switches_per_op", "voluntary_switches_per_op"]),
            ),
            ("WAL", first(&["wal_bytes_per_op", "wal_lsn_bytes_per_op"])),
            ("buffers touched", self.buffers()),
            ("page faults", self.faults()),
            ("compaction", first(&["compaction_write_kb_per_op"])),
            ("write stalls", first(&["stall_us_per_op"])),
            ("block cache misses", first(&["block_cache_misses_per_op"])),
        ];
        let (mut same, mut none, mut hardly) = (Vec::new(), Vec::new(), Vec::new());
        let mut widest = 0.0_f64;
        for (name, sample) in suspects {
            let Some(sample) = sample.filter(|sample| self.shift(&sample.key).is_none()) else {
                continue;
            };
            match self.unmoved_by(&sample) {
                Unmoved::Nothing => none.push(name.to_owned()),
                Unmoved::HardlyAny => hardly.push(name.to_owned()),
                Unmoved::Within(share) => {
                    widest = widest.max(share);
                    same.push(name.to_owned());
                }
                Unmoved::Open => {}
            }
        }
        let within = words::threshold(widest);
        let clauses = [
            (!same.is_empty()).then(|| format!("same {} (±{within})", list(&same))),
            (!none.is_empty()).then(|| format!("no {}", alternatives(&none))),
            (!hardly.is_empty()).then(|| format!("hardly any {}", alternatives(&hardly))),
        ];
        let clauses: Vec<String> = clauses.into_iter().flatten().collect();
        (!clauses.is_empty()).then(|| clauses.join("; "))
    }

    fn stays(&self, sample: &CostSample) -> bool {
        !matches!(self.unmoved_by(sample), Unmoved::Open)
    }

    fn unmoved_by(&self, sample: &CostSample) -> Unmoved {
        let Some(cost) = sample.cost(self.levels) else {
            return Unmoved::Open;
        };
        let largest = cost.base.max(cost.candidate);
        if largest <= 0.0 {
            return Unmoved::Nothing;
        }
        let least = floor(&cost.key, operation_us(self.cell));
        let middle = f64::midpoint(cost.base, cost.candidate);
        let share = match cost.ratio {
            Some(ratio) => ratio.ci95.map(|(low, high)| (low - 1.0, high - 1.0)),
            None => cost
                .difference
                .ci95
                .map(|(low, high)| (low / middle, high / middle)),
        };
        let within = share.and_then(|(low, high)| {
            let mut ladder = SAME_LADDER.into_iter();
            ladder.find(|limit| -limit <= low && high <= *limit)
        });
        match within {
            _ if largest < least => Unmoved::HardlyAny,
            Some(share) => Unmoved::Within(share),
            None => Unmoved::Open,
        }
    }
}

/// Whether an interval leaves out zero.
fn clear(by: Difference) -> bool {
    by.ci95.is_some_and(|(low, high)| low > 0.0 || high < 0.0)
}

/// Whether an interval lies within ± a limit.
fn inside(by: Difference, limit: f64) -> bool {
    by.ci95
        .is_some_and(|(low, high)| -limit <= low && high <= limit)
}

fn part_word(cost: &Cost) -> &'static str {
    if [USER, STEP_USER].contains(&cost.key.as_str()) {
        "user"
    } else {
        "system"
    }
}

/// A change in percent, or in its unit where there is no ratio.
fn change(cost: &Cost) -> String {
    match cost.ratio {
        Some(ratio) => words::signed(ratio.estimate - 1.0),
        None => format!("{:+} us", short(cost.difference.estimate)),
    }
}

/// `a`, `a and b`, `a, b and c`.
fn list(items: &[String]) -> String {
    joined(items, "and")
}

/// `a`, `a or b`, `a, b or c`.
fn alternatives(items: &[String]) -> String {
    joined(items, "or")
}

fn joined(items: &[String], last: &str) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [rest @ .., end] => format!("{} {last} {end}", rest.join(", ")),
    }
}
