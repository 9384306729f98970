//! `report.tsv` as the scripts around `db_bench` write it, and their summary.

use super::tables;
use crate::rocksdb::{RocksdbReport, StepBlock, StepColumn, TargetFigures};
use deltabench_model::plan::{Plan, Role};
use deltabench_model::problem::Problem;
use deltabench_model::table::{Cell, Column, Line, Table};
use deltabench_model::work::rocksdb::{RocksdbSetup, RocksdbStep};
use deltabench_report::table::tab_separated;
use deltabench_report::words as house;

/// Whether a plan has steps of RocksDB.
///
/// Errors: for a run of anything else.
pub(super) fn check_rocksdb(plan: &Plan) -> Result<(), Problem> {
    if plan.work.is_embedded() {
        return Ok(());
    }
    Err(Problem::new("the run has no steps of RocksDB")
        .detail("this form has a line for each target, step and block of it")
        .hint("use --format csv for a line for each cell and metric"))
}

/// What is not known, as published.
const UNKNOWN: &str = "NA";
const GB: f64 = 1.0 / 1_073_741_824.0;

/// What a column says, in the words of the published file's head where it has some.
const HEAD: [&str; 21] = [
    "ops_sec - operations per second",
    "mb_sec - ops_sec * size-of-operation-in-MB",
    "lsm_sz - size of LSM tree",
    "blob_sz - size of BlobDB logs",
    "c_wgb - GB written by compaction",
    "w_amp - Write-amplification as published, (c_wgb + GB flushed) / GB ingested; c_wgb has flushes in it",
    "c_mbps - Average write rate for compaction",
    "c_wsecs - Wall clock seconds doing compaction",
    "c_csecs - CPU seconds doing compaction",
    "b_rgb, b_wgb - GB read and written by compaction of blobs",
    "usec_op - Microseconds per operation",
    "p50, p99, p99.9, p99.99 - percentiles of response time in usecs",
    "pmax - max response time in usecs",
    "uptime - seconds of the step in which the target was not frozen",
    "stall% - Percentage of time writes are stalled",
    "Nstall - Number of stalls",
    "u_cpu, s_cpu - #seconds/1000 of user and of system CPU",
    "rss - max RSS in GB",
    "test - Name of test",
    "version - RocksDB version",
    "job_id - run, target and block",
];

/// The columns, in the published order.
const COLUMNS: &str = "ops_sec\tmb_sec\tlsm_sz\tblob_sz\tc_wgb\tw_amp\tc_mbps\tc_wsecs\tc_csecs\tb_rgb\t\
                       b_wgb\tusec_op\tp50\tp99\tp99.9\tp99.99\tpmax\tuptime\tstall%\tNstall\tu_cpu\ts_cpu\t\
                       rss\ttest\tdate\tversion\tjob_id\tgithash";

/// Tab-separated values: comments with `#`, a header, a line for each target (the placebo too), step and
/// block, then as comments the summaries: operations per second by version and step, and relative to the
/// base. Empty for runs of anything else.
///
/// Units:  as the comments say. What is not known is `NA`.
/// Source: docs/sources/rocksdb-db-bench.md#reporttsv. Differences: `c_wgb`,
///         `c_wsecs`, `c_csecs`, `u_cpu`, `s_cpu` and `rss` have more digits, and `uptime` is that of a step
///         and not of a database, since here a database goes through all steps; `job_id` tells targets and
///         blocks apart; `githash` is never known.
pub fn rocksdb_tsv(run: &str, plan: &Plan, report: &RocksdbReport) -> String {
    let Some(setup) = plan.work.rocksdb() else {
        return String::new();
    };
    let mut heads = COLUMNS.split('\t');
    let mut table = Table {
        corner: heads.next().unwrap_or_default().to_owned(),
        columns: heads.map(Column::of).collect(),
        ..Table::default()
    };
    for (place, column) in report.steps.iter().enumerate() {
        for row in &report.targets {
            let blocks = row.steps.get(place).map_or(&[][..], |step| &step.blocks);
            let of = |block: &StepBlock| line(run, setup, row, column, block);
            table.lines.extend(blocks.iter().map(of));
        }
    }
    let mut lines: Vec<String> = HEAD.iter().map(|text| format!("# {text}")).collect();
    lines.extend(tab_separated(&table).lines().map(str::to_owned));
    let absolute = |row: &TargetFigures, place: usize| {
        let rate = row.steps.get(place)?.throughput?;
        Some(format!("{rate:.0}"))
    };
    lines.extend(summary(report, setup, "ops_sec by version", absolute));
    let relative = |row: &TargetFigures, place: usize| {
        let base = report.targets.iter().find(|row| row.role == Role::Base)?;
        let rate = |row: &TargetFigures| row.steps.get(place)?.throughput;
        Some(format!("{:.2}", rate(row)? / rate(base)?))
    };
    lines.extend(summary(
        report,
        setup,
        "ops_sec relative to the base",
        relative,
    ));
    lines.push(String::new());
    lines.join("\n")
}

fn line(
    run: &str,
    setup: &RocksdbSetup,
    row: &TargetFigures,
    column: &StepColumn,
    block: &StepBlock,
) -> Line {
    let digits = |value: Option<f64>, digits: usize| {
        value.map_or_else(|| UNKNOWN.to_owned(), |value| format!("{value:.digits$}"))
    };
    let scaled = |key: &str, scale: f64| block.figure(key).map(|value| value * scale);
    let latency = block.latency;
    // Without blobs nothing of them is read or written.
    let no_blobs = block.figure("blob_bytes").filter(|bytes| *bytes <= 0.0);
    let fields = [
        digits(block.megabytes_per_second(), 1),
        size(block.figure("lsm_bytes")),
        size(block.figure("blob_bytes")),
        digits(scaled("compaction_write_bytes", GB), 3),
        digits(block.published_write_amplification(), 1),
        digits(block.compaction_megabytes_per_second(), 1),
        digits(scaled("compaction_ns", 1e-9), 1),
        digits(scaled("compaction_cpu_ns", 1e-9), 1),
        digits(no_blobs, 0),
        digits(no_blobs, 0),
        digits(block.us_per_operation(), 1),
        digits(latency.map(|times| times.p50), 1),
        digits(latency.map(|times| times.p99), 0),
        digits(latency.map(|times| times.p99_9), 0),
        digits(latency.map(|times| times.p99_99), 0),
        digits(latency.map(|times| times.max), 0),
        digits(block.uptime_seconds(), 0),
        digits(block.stalled_share().map(|share| 100.0 * share), 1),
        digits(block.figure("stalls"), 0),
        digits(scaled("user_cpu_ns", 1e-12), 4),
        digits(scaled("system_cpu_ns", 1e-12), 4),
        digits(scaled("largest_rss_bytes", GB), 2),
        test(setup, column),
        date(block.started_ns),
        plain(&row.version),
        plain(&format!("{run}.{}.block{}", target(row), block.block + 1)),
        UNKNOWN.to_owned(),
    ];
    Line::row(
        digits(block.throughput(), 0),
        fields.into_iter().map(Cell::from).collect(),
    )
}

/// The name of a test as the scripts make it.
fn test(setup: &RocksdbSetup, column: &StepColumn) -> String {
    let name = column.step.name();
    match column.step {
        RocksdbStep::Fillseq => format!("fillseq.wal_disabled.v{}", setup.value_bytes),
        step if step.writes() => format!("{name}.t{}.s0", column.threads),
        _ => format!("{name}.t{}", column.threads),
    }
}

/// `873MB`, `4GB`: in the largest unit that gives 1, as the library prints it and the scripts round it.
fn size(bytes: Option<f64>) -> String {
    let Some(mut value) = bytes else {
        return UNKNOWN.to_owned();
    };
    let mut units = ["KB", "MB", "GB"].into_iter();
    let mut unit = "B";
    while value >= 1024.0
        && let Some(larger) = units.next()
    {
        value /= 1024.0;
        unit = larger;
    }
    format!("{value:.0}{unit}")
}

fn date(started_ns: u64) -> String {
    match i64::try_from(started_ns / 1_000_000) {
        Ok(unix_ms) if unix_ms > 0 => house::timestamp(unix_ms),
        _ => UNKNOWN.to_owned(),
    }
}

/// A target in a word: base, placebo, or its name.
fn target(row: &TargetFigures) -> String {
    match row.role {
        Role::Base => "base".to_owned(),
        _ => row.name.clone(),
    }
}

/// Text without what would end a field.
fn plain(text: &str) -> String {
    let text = text.replace(" = ", "=");
    let parts: Vec<&str> = text.split_whitespace().collect();
    parts.join("_")
}

/// A table of targets by step, as comments.
fn summary(
    report: &RocksdbReport,
    setup: &RocksdbSetup,
    title: &str,
    text: impl Fn(&TargetFigures, usize) -> Option<String>,
) -> Vec<String> {
    let tests: Vec<String> = report
        .steps
        .iter()
        .map(|column| test(setup, column))
        .collect();
    let mut lines = vec!["#".to_owned(), format!("# {title}\t{}", tests.join("\t"))];
    for row in tables::shown(report) {
        let texts: Vec<String> = (0..report.steps.len())
            .map(|place| text(row, place).unwrap_or_else(|| UNKNOWN.to_owned()))
            .collect();
        lines.push(format!("# {}\t{}", plain(&row.name), texts.join("\t")));
    }
    lines
}
