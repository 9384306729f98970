//! The tables, in words: rows are steps, columns are targets.

use crate::insert::words::{Line, NOTHING};
use crate::words;
use deltabench_compare::rocksdb::{
    CachePair, RocksdbReport, StepBlock, StepColumn, TargetRow, TargetStep,
};
use deltabench_model::plan::{Plan, Role};
use deltabench_model::rocksdb::{MULTI_READ_BATCH, RocksdbSetup, RocksdbStep};

/// How the table of throughput is read, whatever the steps.
const THROUGHPUT: &str = "\
    operations per second of the turns that count, geometric mean over the blocks; of a range a seek with \
    its nexts is one; a writer beside the readers and waiting for compactions are not in it";
/// How the table of relative throughput is read, whatever the steps.
const RELATIVE: &str = "\
    target / base, 2 decimals as published; ▼ slower, ▲ faster, = no change, ? cannot tell, × not judged";
/// How the table of caches is read.
pub(crate) const CACHES: &str = "\
    throughput with HyperClock / with LRU, 95 % interval over blocks, everything else alike";
/// How the table of steps is read.
pub(crate) const FIGURES: &str = "\
    mean over the blocks of whole steps, waiting for compactions included; comp: compactions, flushes \
    counted among them; write amp: bytes that they wrote for a byte put; stall%: time in which writes were \
    held up; RSS: largest of the step";

/// How the table of throughput is read.
pub(crate) fn throughput_legend(report: &RocksdbReport) -> String {
    let mut steps = report.steps.iter();
    if steps.any(|column| column.step == RocksdbStep::Multireadrandom) {
        return format!(
            "{THROUGHPUT}; of multireadrandom a key is one, and its latency that of its look-up of \
             {MULTI_READ_BATCH}"
        );
    }
    THROUGHPUT.to_owned()
}

/// How the table of relative throughput is read: of which steps it is no quotient of the table above.
pub(crate) fn relative_legend(report: &RocksdbReport) -> String {
    let trimmed = report.steps.iter().filter(|column| column.trimmed);
    let mut names: Vec<&str> = trimmed.map(|column| column.step.name()).collect();
    names.dedup();
    if names.is_empty() {
        return RELATIVE.to_owned();
    }
    format!(
        "{RELATIVE}; of {} it is the trimmed mean of paired turns, not the quotient of the throughputs",
        names.join(", ")
    )
}

/// Who is shown in the tables: all but the placebo, which the verdicts rest on and nobody asks about.
pub(crate) fn shown(report: &RocksdbReport) -> Vec<&TargetRow> {
    let all = report.targets.iter();
    all.filter(|row| row.role != Role::Placebo).collect()
}

/// The heads of the columns of targets.
pub(crate) fn heads(rows: &[&TargetRow]) -> Vec<String> {
    rows.iter().map(|row| row.name.clone()).collect()
}

/// A step with its threads, where the plan has several numbers of them.
pub(crate) fn step(report: &RocksdbReport, column: &StepColumn) -> String {
    let mut all = report.steps.iter().filter(|other| !other.step.single());
    let first = all.next().map(|other| other.threads);
    let several = all.any(|other| Some(other.threads) != first);
    if several {
        let threads = words::plural(u64::from(column.threads), "thread");
        format!("{}, {threads}", column.step.name())
    } else {
        column.step.name().to_owned()
    }
}

/// What was asked for: `byrx: 100000 keys of 20 bytes with values of 400, …`.
pub(crate) fn setup(setup: &RocksdbSetup) -> String {
    let megabytes = |bytes: u64| words::number(words::megabytes(bytes));
    let threads: Vec<String> = setup.threads.iter().map(u32::to_string).collect();
    let mut text = format!(
        "{}: {} keys of {} bytes with values of {} ({} MB), block cache of {} MB, threads {}, {} s a step",
        setup.workload.word(),
        setup.keys,
        setup.key_bytes,
        setup.value_bytes,
        megabytes(setup.raw_bytes()),
        megabytes(setup.cache_bytes),
        threads.join(", "),
        setup.seconds,
    );
    if setup.steps.iter().any(|step| step.beside_a_writer()) {
        text.push_str(&format!(
            ", {} MB/s put beside the readers",
            megabytes(setup.writer_bytes_per_second)
        ));
    }
    text
}

/// How many blocks there are, for the head of every form.
pub(crate) fn head(plan: &Plan, report: &RocksdbReport) -> String {
    let asked = plan.work.rocksdb().map(setup).unwrap_or_default();
    let steps = report.targets.iter().flat_map(|row| &row.steps);
    let measured = steps.map(|step| step.blocks.len()).max().unwrap_or(0);
    format!("{asked}; {measured} of {} blocks", plan.timing.blocks)
}

/// A row for each step with a text for each target.
pub(crate) fn lines(
    report: &RocksdbReport,
    rows: &[&TargetRow],
    text: impl Fn(&TargetRow, &TargetStep) -> String,
) -> Vec<Line> {
    let steps = report.steps.iter().enumerate();
    steps
        .map(|(place, column)| Line {
            head: step(report, column),
            server: None,
            texts: rows
                .iter()
                .map(|row| {
                    let figures = row.steps.get(place);
                    figures.map_or_else(|| NOTHING.to_owned(), |figures| text(row, figures))
                })
                .collect(),
        })
        .collect()
}

/// Throughput.
pub(crate) fn throughput(_: &TargetRow, step: &TargetStep) -> String {
    step.throughput
        .map_or_else(|| NOTHING.to_owned(), words::number)
}

/// Relative throughput: `1.00` for the base, `0.97 ▼` for others.
pub(crate) fn relative(row: &TargetRow, step: &TargetStep) -> String {
    if row.role == Role::Base {
        let measured = step.throughput.is_some();
        return if measured { "1.00" } else { NOTHING }.to_owned();
    }
    step.relative.map_or_else(
        || NOTHING.to_owned(),
        |relative| {
            format!(
                "{:.2} {}",
                relative.ratio.estimate,
                words::sign(relative.verdict)
            )
        },
    )
}

/// One cache against the other: a row for each step, a column for each pair.
pub(crate) fn caches(report: &RocksdbReport) -> Vec<Line> {
    let steps = report.steps.iter().enumerate();
    steps
        .map(|(place, column)| Line {
            head: step(report, column),
            server: None,
            texts: report
                .caches
                .iter()
                .map(|pair| cache(pair, place))
                .collect(),
        })
        .collect()
}

/// The ratio of a pair in a step.
pub(crate) fn cache(pair: &CachePair, place: usize) -> String {
    let ratio = pair.ratios.get(place).and_then(Option::as_ref);
    ratio.map_or_else(|| NOTHING.to_owned(), words::ratio_interval)
}

/// The heads of the pairs.
pub(crate) fn pairs(report: &RocksdbReport) -> Vec<String> {
    report.caches.iter().map(|pair| pair.name.clone()).collect()
}

/// A figure of what a step did: head, decimals, and the value of a block in the unit of the head.
type Figure = (&'static str, usize, fn(&StepBlock) -> Option<f64>);

const GB: f64 = 1.0 / 1_073_741_824.0;

/// The most telling first: a terminal has no room for all.
const SHOWN: [Figure; 10] = [
    ("write amp", 2, StepBlock::write_amplification),
    ("stall%", 1, |block| Some(100.0 * block.stalled_share()?)),
    ("drain s", 2, |block| Some(1e-9 * block.figure("drain_ns")?)),
    ("comp GB", 3, |block| {
        Some(GB * block.figure("compaction_write_bytes")?)
    }),
    ("comp s", 2, |block| {
        Some(1e-9 * block.figure("compaction_ns")?)
    }),
    ("comp cpu s", 2, |block| {
        Some(1e-9 * block.figure("compaction_cpu_ns")?)
    }),
    ("LSM GB", 3, |block| Some(GB * block.figure("lsm_bytes")?)),
    ("RSS GB", 3, |block| {
        Some(GB * block.figure("largest_rss_bytes")?)
    }),
    ("user s", 2, |block| {
        Some(1e-9 * block.figure("user_cpu_ns")?)
    }),
    ("system s", 2, |block| {
        Some(1e-9 * block.figure("system_cpu_ns")?)
    }),
];

/// What each step did on each target, a row for each of those `of_interest`; figures that nobody knows are
/// left out.
pub(crate) fn figures(
    report: &RocksdbReport,
    of_interest: impl Fn(&StepColumn) -> bool,
) -> (Vec<String>, Vec<Line>) {
    let rows = shown(report);
    let known = |(_, _, of): &&Figure| {
        let mut steps = rows.iter().flat_map(|row| &row.steps);
        steps.any(|step| step.mean(of).is_some())
    };
    let columns: Vec<&Figure> = SHOWN.iter().filter(known).collect();
    let mut lines = Vec::new();
    let steps = report.steps.iter().enumerate();
    for (place, column) in steps.filter(|(_, column)| of_interest(column)) {
        for row in &rows {
            let Some(figures) = row.steps.get(place).filter(|step| !step.blocks.is_empty()) else {
                continue;
            };
            let texts = columns.iter().map(|(_, decimals, of)| {
                let mean = figures.mean(of);
                mean.map_or_else(|| NOTHING.to_owned(), |mean| format!("{mean:.decimals$}"))
            });
            lines.push(Line {
                head: format!("{} {}", step(report, column), row.name),
                server: Some(row.server),
                texts: texts.collect(),
            });
        }
    }
    if columns.is_empty() {
        lines.clear();
    }
    let heads = columns.iter().map(|(head, _, _)| (*head).to_owned());
    (heads.collect(), lines)
}
