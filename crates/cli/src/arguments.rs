//! What the user can type. Nothing is computed here.

pub mod archive;
pub mod bisect;
pub mod capture;
pub mod catalogue;
pub mod conditions;
pub mod count;
pub mod experiment;
pub mod explain;
pub mod fleet;
pub mod global;
pub mod replay;
pub mod results;
pub mod selfcheck;
pub mod shape;
pub mod site;
pub mod trend;

use crate::failure::EXIT_CODES;
use crate::kinds;
use archive::{ArchiveArguments, ListArguments};
use bisect::BisectArguments;
use capture::CaptureArguments;
use catalogue::{ConfigsArguments, Fetch, Targets, Workloads};
use clap::{Args, Parser, Subcommand};
use count::Count;
use experiment::{ExtendArguments, Init, RunArguments};
use explain::Explain;
use fleet::FleetArguments;
use global::Global;
use replay::ReplayArguments;
use results::{
    Confirm, ExportArguments, InvalidateArguments, LedgerArguments, Notes, Report, Resume,
};
use selfcheck::{CalibrateArguments, CrosscheckArguments, DoctorArguments, Selfbench};
use site::{PublishArguments, WebArguments};
use std::path::PathBuf;
use trend::{
    AnchorArguments, AnnotateArguments, ChangesArguments, NightlyArguments, TrendArguments,
    TriageArguments,
};

/// Is this database slower than that one, where, by how much, and why - with error bars.
#[derive(Debug, Parser)]
#[command(
    name = "deltabench",
    version,
    help_expected = true,
    max_term_width = 110
)]
#[command(after_help = EXIT_CODES)]
pub struct Arguments {
    /// Options of every command.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// A benchmark on targets
    #[command(flatten)]
    Measure(kinds::Command),
    /// Count the instructions of an operation on each server: exact on any machine, but it does not measure
    /// time
    #[command(
        after_help = "Example: deltabench count postgres:17 postgres:18 --all\n         \
                      deltabench count postgres:17 path:/opt/patched -f my.sql --not-more-than 0.5%"
    )]
    Count(Box<Count>),
    /// Run an experiment file: targets x configurations x workloads x clients, and everything else that it
    /// varies
    #[command(
        after_help = "Example: deltabench run examples/small-server-cached.toml --scale tiny --dry-run"
    )]
    Run(Box<RunArguments>),
    /// Run an experiment file on many hosts, one measurement at a time on each, and gather the results
    #[command(after_help = "Example: deltabench fleet run study.toml --on lab.toml --dry-run")]
    Fleet(Box<FleetArguments>),
    /// Add a server to an execution of an experiment: measure it with the base and the newest version, and
    /// take the others from earlier runs
    #[command(after_help = "Example: deltabench extend last --with postgres:18.7 --dry-run")]
    Extend(ExtendArguments),
    /// Write a commented experiment file to start from
    #[command(after_help = "Example: deltabench init upgrade.toml")]
    Init(Init),
    /// Explain where in the server a difference went: functions and call paths, from counted instructions
    #[command(
        after_help = "Example: deltabench explain last --cell point-query\n         \
                      deltabench explain postgres:17 postgres:18 --only point-query"
    )]
    Explain(Box<Explain>),
    /// Find the commits or releases that made a cell slower or faster, by counted instructions
    #[command(
        after_help = "Example: deltabench bisect postgres:17.0..17.11 --only scan\n         \
                      deltabench bisect git:/src/postgres@v1..v2+o3 --only point-query\n         \
                      deltabench bisect last --cell point-query\n\n\
                      Exit codes: 0 a culprit is found, 2 bad request, 3 none is found, 5 could not build \
                      or measure, 130 interrupted."
    )]
    Bisect(Box<BisectArguments>),
    /// Take the statements of a server's log into a file, with values and weights; no server is needed
    #[command(
        after_help = "Example: deltabench capture --log log/*.json --out shop.capture\n         \
                      deltabench capture --log a.csv.gz --statements pgss.csv --out shop.capture\n\n\
                      The file holds values of your users: keep it like the data."
    )]
    Capture(CaptureArguments),
    /// Replay your own statements on servers with your tables: what fails on the candidate, which plans
    /// change, which results differ, what gets slower
    #[command(
        after_help = "Example: deltabench replay queries.sql postgres:17 postgres:18 --data shop.dump\n\n\
                      Exit codes: 0 nothing new fails and nothing is slower, 1 something fails that worked \
                      on the base or is slower, 2 bad request, 3 inconclusive, 4 host unfit, 5 could not \
                      load, ask or measure, 130 interrupted."
    )]
    Replay(Box<ReplayArguments>),
    /// Continue a run, an experiment or a bisection that was interrupted or killed
    #[command(after_help = "Example: deltabench resume last")]
    Resume(Resume),
    /// Measure the regressions and improvements of at most 5 % of a run again, on a fresh load; one that
    /// recurs is confirmed
    #[command(after_help = "Example: deltabench confirm last")]
    Confirm(Confirm),
    /// Analyse a run or an experiment again, without measuring, and print or write its report
    #[command(after_help = "Example: deltabench report last --format json")]
    Report(Report),
    /// Print every note on a run: what else differs between the sides, and what makes an answer less certain
    #[command(after_help = "Example: deltabench notes last")]
    Notes(Notes),
    /// Write the data of runs as plain tables for notebooks: raw, analysed, observed
    #[command(after_help = "Example: deltabench export last --out run.sqlite")]
    Export(ExportArguments),
    /// Withdraw a run or cells of it: nothing is deleted, and every later report says so
    #[command(
        after_help = "Example: deltabench invalidate last --cell point-query@1 --reason 'a backup ran'"
    )]
    Invalidate(InvalidateArguments),
    /// Move the slices of old runs from the store to sealed files: reports read them there, and stay the same
    #[command(
        after_help = "Example: deltabench archive --older 90d --dry-run\n         \
                      deltabench archive --restore 20261126-145558-0873"
    )]
    Archive(ArchiveArguments),
    /// Look at this host: what spoils measurements here, and how to fix it
    #[command(after_help = "Example: deltabench doctor")]
    Doctor(DoctorArguments),
    /// Count how often placebos on this host were called different: the false alarms so far
    #[command(after_help = "Example: deltabench ledger --json -")]
    Ledger(LedgerArguments),
    /// Show versions over time: levels relative to one of them, from all runs of a host, and where they
    /// changed
    #[command(after_help = "Example: deltabench trend scan --anchor postgres:17.0")]
    Trend(TrendArguments),
    /// List what changed between versions: suspected by a run, confirmed by later ones
    #[command(after_help = "Example: deltabench changes --json -")]
    Changes(ChangesArguments),
    /// Measure the newest version with an anchor and the version of the night before, and try again what
    /// seems to have changed
    #[command(
        after_help = "Example: deltabench nightly --anchor postgres:17.11 git:/src/pg@master+o2_aligned \
                      -- --quick\n\n\
                      Exit codes: 0 no regression is confirmed, 1 one is, 2 bad request, 3 something is \
                      suspected, 4 host unfit or other load disturbed all cells, 5 could not measure, \
                      130 interrupted."
    )]
    Nightly(NightlyArguments),
    /// Say of a change what it is: explained by something else, or expected
    #[command(
        after_help = "Example: deltabench triage 1a2b3c4d --explained 'the kernel was updated'"
    )]
    Triage(TriageArguments),
    /// Write down what you know of a version or a moment: trends show it
    #[command(after_help = "Example: deltabench annotate --version 18.4 'LTO on'")]
    Annotate(AnnotateArguments),
    /// List anchors, or let one follow another, so that levels go on
    #[command(after_help = "Example: deltabench anchor replace postgres:17.11 postgres:18.6")]
    Anchor(AnchorArguments),
    /// Compare a server with itself, or with a known slowdown, to see how often the verdict is right
    #[command(after_help = "Example: deltabench calibrate postgres:18 --runs 10 --inject 3%")]
    Calibrate(CalibrateArguments),
    /// Write the pages of this lab into a directory: a site that needs no server
    #[command(after_help = "Example: deltabench publish site")]
    Publish(PublishArguments),
    /// Show the pages of this lab in a browser on this machine, read only; it can never start a run
    #[command(after_help = "Example: deltabench web --port 7755")]
    Web(WebArguments),
    /// List the runs in the lab directory
    #[command(after_help = "Example: deltabench list --lab deltabench-lab")]
    List(ListArguments),
    /// List the servers and the libraries of RocksDB that are available here: prebuilt, cached, installed
    #[command(after_help = "Example: deltabench targets --all")]
    Targets(Targets),
    /// Download prebuilt servers and libraries of RocksDB now, and print their paths
    #[command(after_help = "Example: deltabench fetch postgres:17 postgres:18 rocksdb:10.2.1")]
    Fetch(Fetch),
    /// List the workloads, or show one with a sample of its SQL
    #[command(after_help = "Example: deltabench workloads show point-query")]
    Workloads(Workloads),
    /// List the named configurations, or show one as adapted to a version
    #[command(after_help = "Example: deltabench configs cx10a_c8r32 --target postgres:14")]
    Configs(ConfigsArguments),
    /// List the metrics: unit, whether lower or higher is better, source
    #[command(after_help = "Example: deltabench metrics")]
    Metrics,
    /// Send counters of this machine to a deltabench that runs elsewhere and asks over ssh
    #[command(
        after_help = "Started as `ssh HOST deltabench agent` for targets with agent=ssh:HOST"
    )]
    Agent,
    /// Load a library of RocksDB and work it for a run, which starts this and tells it what to do
    #[command(hide = true)]
    EngineWorker,
    /// Print the generated pages of docs/reference as JSON, or write the man pages
    #[command(hide = true)]
    Reference(ReferenceArguments),
    /// Print the completion script of a shell
    #[command(
        after_help = "Example: deltabench completions bash > /etc/bash_completion.d/deltabench"
    )]
    Completions(CompletionsArguments),
    /// Compare the built-in driver with sysbench's packaged scripts: same SQL, same counts, as fast?
    #[command(after_help = "Example: deltabench crosscheck --only point-query")]
    Crosscheck(CrosscheckArguments),
    /// Measure deltabench itself against the tools it replaces
    #[command(after_help = "Example: deltabench selfbench client --target postgres:18")]
    Selfbench(Selfbench),
}

/// What `deltabench reference` makes.
#[derive(Debug, Args)]
pub struct ReferenceArguments {
    /// Write man pages into this directory instead
    #[arg(long, value_name = "DIR")]
    pub man: Option<PathBuf>,
}

/// The shell that asks.
#[derive(Debug, Args)]
pub struct CompletionsArguments {
    /// The shell
    pub shell: clap_complete::Shell,
}
