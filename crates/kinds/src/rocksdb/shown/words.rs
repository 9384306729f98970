//! How the tables are read, and what was asked for.

use crate::rocksdb::{RocksdbReport, StepColumn};
use deltabench_model::plan::Plan;
use deltabench_model::work::rocksdb::{MULTI_READ_BATCH, RocksdbSetup, RocksdbStep};
use deltabench_report::words;

/// How the table of throughput is read, whatever the steps.
const THROUGHPUT: &str = "operations per second of the turns that count, geometric mean over the \
    blocks; in ranges a seek with its nexts is one operation; the concurrent writer and the wait for \
    compactions are not included";
/// How the table of relative throughput is read.
pub(crate) const RELATIVE: &str = "\
    target / base, 2 decimals as published; ▼ slower, ▲ faster, = no change, ? inconclusive, × unfit";
/// How the table of caches is read.
pub(crate) const CACHES: &str = "throughput with HyperClock / with LRU, 95 % interval over blocks, all \
    else equal";
/// How the table of steps is read.
pub(crate) const FIGURES: &str = "mean over the blocks of whole steps with their wait for compactions; \
    comp: compactions with flushes; write amp: bytes that they wrote for each byte put; stall%: time \
    in which writes were delayed or stopped; RSS: largest of the step";

/// How the table of throughput is read.
pub(crate) fn throughput_legend(report: &RocksdbReport) -> String {
    let mut steps = report.steps.iter();
    if steps.any(|column| column.step == RocksdbStep::Multireadrandom) {
        return format!(
            "{THROUGHPUT}; in multireadrandom a key is one operation, with the latency of its look-up \
             of {MULTI_READ_BATCH} keys"
        );
    }
    THROUGHPUT.to_owned()
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
            ", {} MB/s written during reads",
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

/// What was asked for, name and value; nothing for a plan of anything else.
pub(super) fn setup_rows(plan: &Plan) -> Vec<(&'static str, String)> {
    let Some(asked) = plan.work.rocksdb() else {
        return Vec::new();
    };
    let steps: Vec<&str> = asked.steps.iter().map(|step| step.name()).collect();
    let options: Vec<String> = asked
        .options
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let turns = if plan.has_whole_steps() {
        "whole steps, one target after another".to_owned()
    } else {
        format!("about {} ms, all targets in turn", plan.timing.slice_ms)
    };
    let mut rows = vec![
        ("seed", plan.seed.to_string()),
        (
            "smallest change that matters",
            format!("±{}", words::share(plan.delta)),
        ),
        ("blocks", plan.timing.blocks.to_string()),
        ("what is done", setup(asked)),
        ("chain of steps", steps.join(", ")),
        ("turns", turns),
        (
            "threads for flushes and compactions",
            asked.background_jobs.to_string(),
        ),
        (
            "placement",
            plan.pins.as_ref().map_or_else(
                || "not pinned".to_owned(),
                |pins| {
                    let cores: Vec<String> = pins.server.iter().map(usize::to_string).collect();
                    format!("cores {}", cores.join(","))
                },
            ),
        ),
    ];
    if !options.is_empty() {
        rows.push(("options of all targets", options.join("; ")));
    }
    rows
}
