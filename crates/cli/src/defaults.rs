//! Numbers that hold where nothing else is asked for. Those of a kind of benchmark stand with it
//! (`kinds/*/sizes.rs`), and those that experiment files have too in the crates that both use.

pub use deltabench_experiment::DEFAULT_ROWS as ROWS;

/// Most blocks of a cell.
pub const BLOCKS: u32 = 24;
/// The same of a quick run.
pub const QUICK_BLOCKS: u32 = 14;
/// The same of a cell that is measured until its interval is narrow: half the width of 24 blocks.
pub const PRECISION_BLOCKS: u32 = 100;

/// The same in each of several sessions: what differs between hours is not in a session, so more say little.
pub const SESSION_BLOCKS: u32 = 12;
/// The same of a quick run.
pub const QUICK_SESSION_BLOCKS: u32 = 8;

/// Rows of each table of a quick run, and of what checks deltabench itself.
pub const QUICK_ROWS: u64 = 200_000;
/// Rows of each table where instructions are counted: each start loads them, under a counter.
pub const COUNTED_ROWS: u64 = 20_000;

/// Seconds of a visit.
pub const VISIT_SECONDS: f64 = 1.5;
/// Seconds of a visit of a quick run.
pub const QUICK_VISIT_SECONDS: f64 = 0.5;
/// Seconds of a visit of a run that goes on until intervals are narrow: starts and connections are worth more
/// of its time than longer visits (docs/decisions/0059).
pub const PRECISION_VISIT_SECONDS: f64 = 0.6;
/// Seconds of a visit under a memory limit.
pub const SQUEEZED_VISIT_SECONDS: f64 = 3.0;
/// Seconds of a visit under a device limit.
pub const THROTTLED_VISIT_SECONDS: f64 = 8.0;

/// Length of a slice, ms. The speed of a virtual machine changes within 100 ms: at 40 ms rounds scattered
/// with twice the variance (docs/decisions/0056).
pub const SLICE_MS: u32 = 20;
/// The same under a memory limit, where what one server reads and writes back lasts into the next slice.
pub const SQUEEZED_SLICE_MS: u32 = 40;
/// The same under a device limit, which works in windows of 100 ms and lets bursts through: at 100 ms a
/// server that reads 10 % more looked 62 % slower, at 1 s 11 % (docs/guide/storage.md).
pub const THROTTLED_SLICE_MS: u32 = 1000;
/// Random part of a slice's length, as a share.
pub const SLICE_JITTER: f64 = 0.2;

/// Discarded seconds at the start of a visit, at least: the first 0.1 s of a server are 2 to 4 % slower than
/// the rest, and the next 0.1 s by 1 % (docs/decisions/0059, 0068).
pub const WARMUP_SECONDS: f64 = 0.2;
/// Reads settle only when the page cache is full and turned over: seconds of warm-up under a memory limit.
pub const SQUEEZED_WARMUP_SECONDS: f64 = 5.0;
/// Connections of a visit, one after another.
pub const CONNECTIONS_PER_VISIT: u32 = 2;

/// A quick run stops after the block that would end past this many seconds, set-up included.
pub const QUICK_DEADLINE_SECONDS: f64 = 560.0;

/// What help says of them.
#[cfg(test)]
pub mod help {
    use super::*;
    use crate::arguments::Arguments;
    use clap::{Arg, CommandFactory, Parser};
    use deltabench_compare::thresholds::DELTA_LADDER;
    use deltabench_run::planning::DELTA_WIDEST;

    fn argument(command: &str, option: &str) -> Arg {
        let root = Arguments::command();
        let command = root.find_subcommand(command).unwrap();
        let mut all = command.get_arguments();
        all.find(|one| one.get_id() == option).unwrap().clone()
    }

    /// The help of an option, on one line.
    pub fn of(command: &str, option: &str) -> String {
        let found = argument(command, option);
        let text = found.get_help().unwrap().to_string();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// What clap takes where an option is not given.
    pub fn default(command: &str, option: &str) -> String {
        let found = argument(command, option);
        let values = found.get_default_values().iter();
        values.map(|value| value.to_str().unwrap()).collect()
    }

    /// Asserts that this is what help calls the default of an option.
    pub fn says(command: &str, option: &str, wanted: &str) {
        let help = of(command, option);
        let wanted = format!("[default: {wanted}]");
        assert!(help.ends_with(&wanted), "{command} --{option}: {help}");
    }

    /// Asserts that help says which δ noise may choose.
    pub fn says_delta(command: &str, each: &str) {
        let (least, most) = (DELTA_LADDER[0] * 100.0, DELTA_WIDEST * 100.0);
        let allowed = format!("for each {each} what its placebo's noise allows");
        says(
            command,
            "delta",
            &format!("{least} % to {most} %, {allowed}"),
        );
    }

    #[test]
    fn help_calls_default_what_is_one() {
        let quick = format!("{QUICK_BLOCKS} with --quick, else {BLOCKS}");
        let blocks = format!("{PRECISION_BLOCKS} with --precision, {quick}");
        let sessions =
            format!("with --sessions {SESSION_BLOCKS} each, {QUICK_SESSION_BLOCKS} with --quick");
        says("compare", "blocks", &format!("{blocks}; {sessions}"));
        let quick = format!("{QUICK_VISIT_SECONDS} with --quick, else {VISIT_SECONDS}");
        let quick = format!("{PRECISION_VISIT_SECONDS} with --precision, {quick}");
        let limited = format!(
            "{SQUEEZED_VISIT_SECONDS} with --memory, {THROTTLED_VISIT_SECONDS} with --storage"
        );
        says("compare", "visit_seconds", &format!("{quick}; {limited}"));
        let slice = format!(
            "{SLICE_MS}, {SQUEEZED_SLICE_MS} with --memory, {THROTTLED_SLICE_MS} with --storage"
        );
        says("compare", "slice_ms", &slice);
        let rows = format!("{QUICK_ROWS} with --quick, else {ROWS}");
        says("compare", "rows", &rows);
        says_delta("compare", "cell");
        says_delta("calibrate", "cell");
        let rate = deltabench_observe::profile::DEFAULT_RATE;
        assert!(of("compare", "sample").contains(&format!("{rate} per second")));
        let parsed = Arguments::try_parse_from(["deltabench", "compare", "a", "b", "--sample"]);
        assert!(
            format!("{parsed:?}").contains(&format!("sample: Some({rate})")),
            "{parsed:?}"
        );
    }
}
