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
    /// Probe the core that one client shares with its server between operations, and compare servers at equal
    /// speed of the core
    #[arg(long)]
    pub probes: bool,
    /// Sample the wait events of backends this often, in slices that do not count
    #[arg(long, value_name = "PER SECOND", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub waits: Option<u32>,
    /// Sample the functions in which the servers spend their time [default rate: 997 per second]
    #[arg(long, value_name = "PER SECOND", num_args = 0..=1, require_equals = true,
        default_missing_value = "997", value_parser = clap::value_parser!(u32).range(50..=4000))]
    pub sample: Option<u32>,
    /// Sample even on Linux 6.16 and 6.17, which can hang during it
    #[arg(long, requires = "sample")]
    pub force: bool,
    /// Whose instructions are counted afterwards
    #[command(flatten)]
    pub counts: CountArguments,
    /// Cores of client and server [default: same-core for one client, split for more]
    #[arg(long, value_enum)]
    pub placement: Option<PlacementWord>,
    /// Threads of the client: a number, or auto for one per four clients; with servers on this machine on at
    /// most a third of the cores [default: auto]
    #[arg(short = 'j', long, value_name = "N", value_parser = jobs)]
    pub jobs: Option<JobsWord>,
    /// Your own choice of cores, for example server=0,client=1 or server=2-5,client=0-1
    #[arg(long, value_name = "CORES", conflicts_with = "placement")]
    pub pin: Option<String>,
    /// Seconds that a cell is measured on each server in one block [default: 0.6 with --precision, 0.5 with
    /// --quick, else 1.5; 3 with --memory, 8 with --storage]
    #[arg(long, value_name = "SECONDS")]
    pub visit_seconds: Option<f64>,
    /// The same for cells that write; published studies measured them for twice as long [default: as
    /// --visit-seconds]
    #[arg(long, value_name = "SECONDS")]
    pub write_seconds: Option<f64>,
    /// Warm up each visit for this long on each server, for example 10m [default: until servers are
    /// steady against each other, from 0.2 s on; each by itself from 5 s on with --memory]
    #[arg(long, value_name = "TIME")]
    pub warmup: Option<String>,
    /// Target length of a slice [default: 20, 40 with --memory, 1000 with --storage]
    #[arg(long, value_name = "MS")]
    pub slice_ms: Option<u32>,
    /// How the measurement ends and what its exit code answers
    #[command(flatten, next_help_heading = "How it ends, and gates")]
    pub ending: Ending,
    /// In how many hours
    #[command(flatten, next_help_heading = "Several hours")]
    pub sessions: SessionArguments,
}

/// Whose instructions are counted once a comparison is over.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct CountArguments {
    /// After the run, count the instructions of all cells with valgrind [default: of the cells that changed,
    /// in 90 s at most]
    #[arg(long, conflicts_with = "no_count")]
    pub count: bool,
    /// Count no instructions after the run
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

/// In how many hours, and under which conditions, a comparison is measured.
#[derive(Debug, Default, Args)]
pub struct SessionArguments {
    /// Measure in N sessions, each with a fresh load, and say what to expect in another hour
    #[arg(long, value_name = "N", conflicts_with = "confirm",
        value_parser = clap::value_parser!(u32).range(2..=100))]
    pub sessions: Option<u32>,
    /// Shortest pause between sessions, or between the run and the one that confirms it, for example 45m
    /// [default: 45m with --sessions, else 0s]
    #[arg(long, value_name = "TIME")]
    pub gap: Option<String>,
    /// Measure what changed again with the client on its own core, over TCP, with commits that wait, and
    /// in slices of 10, 40 and 200 ms, and say on which of these the ratio depends
    #[arg(long, conflicts_with = "sessions")]
    pub sensitivity: bool,
    /// In which hours the answer of the gate must hold: the measured ones, or also another one
    #[arg(long, value_enum, default_value_t = HoursWord::Measured)]
    pub gate_hours: HoursWord,
    /// Print what would be measured and how long it would take, and measure nothing; servers are downloaded
    #[arg(long, help_heading = "How it measures")]
    pub dry_run: bool,
}

/// Hours in which the gate's answer has to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum HoursWord {
    /// The measured ones.
    #[default]
    Measured,
    /// Another one too.
    Another,
}

/// How a measurement ends and what its exit code answers.
#[derive(Debug, Args)]
pub struct Ending {
    /// Measure all blocks of every cell; by default a cell ends at the planned look that answers it
    #[arg(long)]
    pub fixed: bool,
    /// End a cell when its throughput and its CPU per operation are known to within this much (half of the
    /// 95 % interval)
    #[arg(long, value_name = "PERCENT", conflicts_with = "fixed")]
    pub precision: Option<String>,
    /// Most time of the run with its set-up, for example 15m or 2h; `resume` allows as much again
    #[arg(long, value_name = "TIME")]
    pub budget: Option<String>,
    /// Leave out the pilot, which measures for half a minute and says how long answers will take; a run of at
    /// most 10 minutes has none
    #[arg(long)]
    pub no_pilot: bool,
    /// Measure regressions and improvements of at most 5 % again, on a fresh load with other ports; those
    /// that do not recur do not count
    #[arg(long)]
    pub confirm: bool,
    /// Act as a gate: exit code 1 only for regressions that still hold when all cells are taken together
    #[arg(long)]
    pub gate: bool,
    /// Act as a gate on these metrics: throughput, cpu, p95, p99, p99.9, longest [default: throughput]
    #[arg(long, value_name = "METRIC,METRIC", value_delimiter = ',', value_parser = gated)]
    pub gate_on: Vec<GatedMetric>,
    /// Act as a gate that passes only if every cell excludes a loss of more than this
    #[arg(long, value_name = "PERCENT")]
    pub not_worse_than: Option<String>,
    /// What a gate, and the exit code without one, do with cells that have no answer
    #[arg(long, value_enum, default_value_t = InconclusiveWord::Fail)]
    pub on_inconclusive: InconclusiveWord,
}

/// Placement of client and server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PlacementWord {
    /// One shared core.
    SameCore,
    /// The client has its own cores, one for each thread.
    Split,
    /// Nothing is pinned.
    Free,
}

/// Threads of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobsWord {
    Auto,
    Count(u32),
}

/// Reads a number of threads.
pub fn jobs(word: &str) -> Result<JobsWord, String> {
    match word.parse() {
        _ if word == "auto" => Ok(JobsWord::Auto),
        Ok(count @ 1..=1024) => Ok(JobsWord::Count(count)),
        _ => Err("write auto or a number of threads from 1 to 1024".to_owned()),
    }
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
