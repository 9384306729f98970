//! How exactly is measured, how a measurement ends, and what its exit code answers.

use clap::{Args, ValueEnum};
use deltabench_model::counts::CountedAfter;
use deltabench_model::plan::GatedMetric;

/// How exactly is measured, and how.
#[derive(Debug, Args)]
pub struct Shape {
    /// Most restart blocks of a cell; an interval needs 2, a verdict 6 [default: 100 with --precision,
    /// 14 with --quick, else 24; with --sessions 12 each, 8 with --quick]
    #[arg(long, value_name = "N")]
    pub blocks: Option<u32>,
    /// The smallest change that matters [default: 2 % to 5 %, for each cell what its placebo's noise allows]
    #[arg(long, value_name = "PERCENT")]
    pub delta: Option<String>,
    /// How the measurement ends and what its exit code answers
    #[command(flatten)]
    pub ending: Ending,
    /// In how many hours
    #[command(flatten)]
    pub sessions: SessionArguments,
    /// Sample what backends wait for so many times a second, in slices that do not count
    #[arg(long, value_name = "PER SECOND", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub waits: Option<u32>,
    /// Sample in which functions the time goes, 997 times a second or so often
    #[arg(long, value_name = "PER SECOND", num_args = 0..=1, require_equals = true,
        default_missing_value = "997", value_parser = clap::value_parser!(u32).range(50..=4000))]
    pub sample: Option<u32>,
    /// Sample on kernels that may hang then, too: Linux 6.16 and 6.17
    #[arg(long, requires = "sample")]
    pub force: bool,
    /// Whose instructions are counted afterwards
    #[command(flatten)]
    pub counts: CountArguments,
    /// Where client and server run: one shared core, split cores, or unpinned [default: same-core for one
    /// client, split for more]
    #[arg(long, value_enum)]
    pub placement: Option<PlacementWord>,
    /// Cores by hand, for example server=0,client=1 or server=2-5,client=0-1
    #[arg(long, value_name = "CORES", conflicts_with = "placement")]
    pub pin: Option<String>,
    /// Seconds measured on each server in one visit to a cell [default: 0.8 with --quick, else 1.5; 3 with
    /// --memory, 8 with --storage]
    #[arg(long, value_name = "SECONDS")]
    pub visit_seconds: Option<f64>,
    /// Aim for the length of one slice [default: 40, 1000 with --storage]
    #[arg(long, value_name = "MS")]
    pub slice_ms: Option<u32>,
}

/// Whose instructions are counted once a comparison is over.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct CountArguments {
    /// Count the instructions of all cells afterwards, under valgrind [default: of the cells that changed, in
    /// 90 s at most]
    #[arg(long, conflicts_with = "no_count")]
    pub count: bool,
    /// Count no instructions
    #[arg(long)]
    pub no_count: bool,
}

impl CountArguments {
    /// Whose; absent if the user wants none.
    pub fn wanted(self) -> Option<CountedAfter> {
        let wanted = if self.count {
            CountedAfter::All
        } else {
            CountedAfter::Changed
        };
        (!self.no_count).then_some(wanted)
    }
}

/// In how many hours a comparison is measured.
#[derive(Debug, Default, Args)]
pub struct SessionArguments {
    /// Measure in so many sessions, each with a fresh load, and say what another hour would say
    #[arg(long, value_name = "N", conflicts_with = "confirm",
        value_parser = clap::value_parser!(u32).range(2..=100))]
    pub sessions: Option<u32>,
    /// At least so long from the end of a session to the start of the next, or from the run to the one that
    /// confirms it, for example 45m or 0s [default: 45m with --sessions, else 0s]
    #[arg(long, value_name = "TIME")]
    pub gap: Option<String>,
    /// In which hours the gate's answer has to hold: those that were measured, or another one
    #[arg(long, value_enum, default_value_t = HoursWord::Measured)]
    pub gate_hours: HoursWord,
    /// Say what would be measured and how long it takes, and measure nothing; servers are fetched
    #[arg(long)]
    pub dry_run: bool,
}

/// Hours in which the gate's answer has to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum HoursWord {
    /// Those that were measured.
    #[default]
    Measured,
    /// A session in another hour would say so, too.
    Another,
}

/// How a measurement ends and what its exit code answers.
#[derive(Debug, Args)]
pub struct Ending {
    /// Every cell gets all blocks; without it, looks in between end a cell that has its answer
    #[arg(long)]
    pub fixed: bool,
    /// End a cell when its interval is this narrow
    #[arg(long, value_name = "PERCENT", conflicts_with = "fixed")]
    pub precision: Option<String>,
    /// End after this time, for example 15m or 2h, set-up included
    #[arg(long, value_name = "TIME")]
    pub budget: Option<String>,
    /// Do not measure first how long an answer will take
    #[arg(long)]
    pub no_pilot: bool,
    /// Measure regressions and improvements of at most 5 % again, on a fresh load with other ports; what does
    /// not recur does not count
    #[arg(long)]
    pub confirm: bool,
    /// The exit code is that of a gate: 1 only for regressions that hold over all cells together
    #[arg(long)]
    pub gate: bool,
    /// A gate on these: throughput, cpu, p95, p99, p99.9, longest; may be a list [default: throughput]
    #[arg(long, value_name = "METRIC,METRIC", value_delimiter = ',', value_parser = gated)]
    pub gate_on: Vec<GatedMetric>,
    /// The gate passes unless a loss of more than this cannot be excluded
    #[arg(long, value_name = "PERCENT")]
    pub not_worse_than: Option<String>,
    /// What the gate does with cells that have no answer
    #[arg(long, value_enum, default_value_t = InconclusiveWord::Fail)]
    pub on_inconclusive: InconclusiveWord,
}

/// Placement of client and server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PlacementWord {
    /// One shared core.
    SameCore,
    /// The client has a core of its own.
    Split,
    /// Nothing is pinned.
    Free,
}

/// What a gate does with cells that have no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum InconclusiveWord {
    /// They pass.
    Pass,
    /// They fail, with exit code 3.
    Fail,
}

fn gated(word: &str) -> Result<GatedMetric, String> {
    let mut known = GatedMetric::ALL.into_iter();
    let words = || GatedMetric::ALL.map(GatedMetric::word).join(", ");
    let found = known.find(|metric| metric.word() == word);
    found.ok_or_else(|| format!("a gate can ask for {}", words()))
}
