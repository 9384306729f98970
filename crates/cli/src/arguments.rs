//! What the user can type. Nothing is computed here.

use crate::calibrate::CalibrateArguments;
use crate::doctor::DoctorArguments;
use crate::ledger::LedgerArguments;
use crate::limits::LimitArguments;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Is this database slower than that one, where, by how much, and why - with error bars.
#[derive(Debug, Parser)]
#[command(
    name = "deltabench",
    version,
    help_expected = true,
    max_term_width = 110
)]
#[command(
    after_help = "Exit codes: 0 no regression, 1 regression, 2 bad request, 3 inconclusive, 4 host unfit, \
                        5 could not measure, 130 interrupted."
)]
pub struct Arguments {
    /// Options of every command.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Options of every command.
#[derive(Debug, Args)]
pub struct Global {
    /// Directory that keeps the results
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        default_value = "deltabench-lab"
    )]
    pub lab: PathBuf,
    /// Directory that keeps downloaded servers [default: /var/cache/deltabench for root, else the user's
    /// cache]
    #[arg(long, global = true, value_name = "DIR")]
    pub cache: Option<PathBuf>,
    /// Never use the network
    #[arg(long, global = true)]
    pub offline: bool,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Compare servers: which workloads got slower, by how much, with error bars
    #[command(after_help = "Example: deltabench compare postgres:17 postgres:18 --quick")]
    Compare(Box<Compare>),
    /// Compare servers with pgbench's scripts: your own files or the built-in ones, on tables as `pgbench -i`
    /// makes them
    #[command(
        after_help = "Example: deltabench pgbench postgres:17 postgres:18 -c 1,4 -b select-only\n         \
                      deltabench pgbench postgres:17 postgres:18 -f my.sql@3 -b simple-update@1"
    )]
    Pgbench(Box<crate::pgbench::PgbenchArguments>),
    /// Compare servers with the Insert Benchmark: load, indexes, writes, then queries beside a fixed rate of
    /// inserts and deletes
    #[command(
        after_help = "Example: deltabench insert postgres:17 postgres:18 --quick\n         \
                      deltabench insert postgres:17 postgres:18 --rows 20M --passes 6 --dry-run"
    )]
    Insert(Box<crate::insert::InsertArguments>),
    /// Compare versions of RocksDB, or its block caches, with the steps of db_bench in alternating turns
    #[command(
        after_help = "Example: deltabench rocksdb rocksdb:6.29.5 rocksdb:10.2.1 --quick\n         \
                      deltabench rocksdb rocksdb:10.2.1 --block-cache lru,hyper-clock --threads 1,4"
    )]
    Rocksdb(Box<crate::rocksdb::RocksdbArguments>),
    /// Carry out an experiment file: targets x configurations x workloads x clients, and whatever else it
    /// varies
    #[command(
        after_help = "Example: deltabench run examples/small-server-cached.toml --scale tiny --dry-run"
    )]
    Run(Box<crate::experiment::RunArguments>),
    /// Write a commented experiment file to start from
    #[command(after_help = "Example: deltabench init upgrade.toml")]
    Init(Init),
    /// Go on with a run, or an experiment, that was interrupted or killed
    #[command(after_help = "Example: deltabench resume last")]
    Resume(Resume),
    /// Measure the regressions of a run again, on a fresh load; only what recurs is confirmed
    #[command(after_help = "Example: deltabench confirm last")]
    Confirm(Confirm),
    /// Analyse a run or an experiment again, without measuring, and print or write its report
    #[command(after_help = "Example: deltabench report last --format json")]
    Report(Report),
    /// Write the data of runs as plain tables for notebooks: raw, analysed, observed
    #[command(after_help = "Example: deltabench export last --out run.sqlite")]
    Export(crate::export::ExportArguments),
    /// Withdraw a run or cells of it: nothing is deleted, every report says so from then on
    #[command(
        after_help = "Example: deltabench invalidate last --cell point-query@1 --reason 'a backup ran'"
    )]
    Invalidate(crate::invalidate::InvalidateArguments),
    /// Look at this host: what spoils measurements here, and how to mend it
    #[command(after_help = "Example: deltabench doctor")]
    Doctor(DoctorArguments),
    /// How often this host's placebos were called different: the false alarms so far
    #[command(after_help = "Example: deltabench ledger --json -")]
    Ledger(LedgerArguments),
    /// Compare a server with itself, or with a known slowdown, to see how often the verdict is right
    #[command(after_help = "Example: deltabench calibrate postgres:18 --runs 10 --inject 3%")]
    Calibrate(CalibrateArguments),
    /// List the runs in the lab directory
    #[command(after_help = "Example: deltabench list --lab deltabench-lab")]
    List,
    /// List the servers and the libraries of RocksDB that can be had here: prebuilt, cached, installed
    #[command(after_help = "Example: deltabench targets --all")]
    Targets(Targets),
    /// Fetch prebuilt servers and libraries of RocksDB now, and print where they are
    #[command(after_help = "Example: deltabench fetch postgres:17 postgres:18 rocksdb:10.2.1")]
    Fetch(Fetch),
    /// List the workloads, or show one with a sample of its SQL
    #[command(after_help = "Example: deltabench workloads show point-query")]
    Workloads(Workloads),
    /// List the named configurations, or show one as a version gets it
    #[command(after_help = "Example: deltabench configs cx10a_c8r32 --target postgres:14")]
    Configs(crate::configs::ConfigsArguments),
    /// List the metrics: unit, which way is good, where they come from
    #[command(after_help = "Example: deltabench metrics")]
    Metrics,
    /// Tell counters of this machine to a deltabench that runs elsewhere and asks over ssh
    #[command(
        after_help = "Started as `ssh HOST deltabench agent` for targets with agent=ssh:HOST"
    )]
    Agent,
    /// Load a library of RocksDB and work it for a run, which starts this and tells it what to do
    #[command(hide = true)]
    EngineWorker,
    /// Print the generated pages of docs/reference as JSON, for `cargo xtask gen`
    #[command(hide = true)]
    Reference,
    /// Compare the built-in driver with sysbench's packaged scripts: same SQL, same counts, as fast?
    #[command(after_help = "Example: deltabench crosscheck --only point-query")]
    Crosscheck(crate::crosscheck::CrosscheckArguments),
    /// Measure deltabench itself against the tools it replaces
    #[command(after_help = "Example: deltabench selfbench client --target postgres:18")]
    Selfbench(Selfbench),
}

/// `deltabench compare`.
#[derive(Debug, Args)]
pub struct Compare {
    /// The side that the others are compared with, for example postgres:17
    pub base: String,
    /// The sides in question, for example postgres:18 or path:/opt/pg18
    #[arg(required = true)]
    pub candidates: Vec<String>,
    /// A first answer within 10 minutes: small tables, short visits, 14 blocks
    #[arg(long)]
    pub quick: bool,
    /// All 32 sysbench microbenchmarks of the published studies
    #[arg(long, conflicts_with_all = ["quick", "only"])]
    pub all: bool,
    /// Tables
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub tables: u32,
    /// Rows of each table [default: 200000 with --quick, else 1000000]
    #[arg(long, value_name = "N")]
    pub rows: Option<u64>,
    /// Concurrent connections; a list makes a cell for each
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_value = "1")]
    pub clients: Vec<u32>,
    /// Only these workloads [default: the eight quick ones]
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',')]
    pub only: Vec<String>,
    /// A workload file of your own, or a script for pgbench (.sql); may be repeated, and is measured beside
    /// --only
    #[arg(long = "workload", value_name = "FILE")]
    pub workloads: Vec<PathBuf>,
    /// Tables as loaded, or after the published write phase
    #[arg(long, value_enum, default_value_t = StateWord::Fresh)]
    pub state: StateWord,
    /// Cells in random order on tables of their own, or one after another as published
    #[arg(long, value_enum, default_value_t = OrderWord::Drawn)]
    pub order: OrderWord,
    /// Open loop: so many operations per second over all clients of a server
    #[arg(long, value_name = "PER SECOND")]
    pub rate: Option<f64>,
    /// How exactly, and how
    #[command(flatten)]
    pub shape: Shape,
    /// What is held on all servers
    #[command(flatten)]
    pub conditions: Conditions,
}

/// How exactly is measured, and how.
#[derive(Debug, Args)]
pub struct Shape {
    /// Most restart blocks of a cell; an interval needs 2, a verdict 6 [default: 100 with --precision,
    /// 14 with --quick, else 24]
    #[arg(long, value_name = "N")]
    pub blocks: Option<u32>,
    /// The smallest change that matters [default: 2 % to 5 %, for each cell what its placebo's noise allows]
    #[arg(long, value_name = "PERCENT")]
    pub delta: Option<String>,
    /// How the measurement ends and what its exit code answers
    #[command(flatten)]
    pub ending: Ending,
    /// Sample what backends wait for so many times a second, in slices that do not count
    #[arg(long, value_name = "PER SECOND", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub waits: Option<u32>,
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

/// What is held on all servers, and where the results go.
#[derive(Debug, Args)]
pub struct Conditions {
    /// How the client reaches the servers
    #[arg(long, value_enum, default_value_t = TransportWord::Socket)]
    pub transport: TransportWord,
    /// Seed of every order, key and draw [default: from the clock; it is printed and stored]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Compare a target with itself on purpose (an A/A run)
    #[arg(long)]
    pub same_target: bool,
    /// A setting for every server; may be repeated
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub settings: Vec<String>,
    /// A named configuration for every server instead of the steady one: see `deltabench configs`, or a .conf
    /// file
    #[arg(long = "config", value_name = "NAME|FILE")]
    pub configuration: Option<String>,
    /// A named configuration for the candidates only; the question is then what it does
    #[arg(long = "candidate-config", value_name = "NAME|FILE")]
    pub candidate_configuration: Option<String>,
    /// A setting for the candidates only; may be repeated: the question is then what it does
    #[arg(long = "candidate-set", value_name = "NAME=VALUE")]
    pub candidate_settings: Vec<String>,
    /// What servers may use of the machine, and what their caches hold
    #[command(flatten)]
    pub limits: LimitArguments,
    /// Collect no counters and no one-second series
    #[arg(long)]
    pub no_counters: bool,
    /// Data checksums: the same on every server, or each version's own default
    #[arg(long, value_enum, default_value_t = Checksums::On)]
    pub checksums: Checksums,
    /// How servers run here
    #[command(flatten)]
    pub servers: Servers,
    /// Where the results go
    #[command(flatten)]
    pub output: Output,
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
    /// Measure regressions of at most 5 % again, on a fresh load with other ports; only what recurs counts
    #[arg(long)]
    pub confirm: bool,
    /// The exit code is that of a gate: 1 only for regressions that hold over all cells together
    #[arg(long)]
    pub gate: bool,
    /// The gate passes unless a loss of more than this cannot be excluded
    #[arg(long, value_name = "PERCENT")]
    pub not_worse_than: Option<String>,
    /// What the gate does with cells that have no answer
    #[arg(long, value_enum, default_value_t = InconclusiveWord::Fail)]
    pub on_inconclusive: InconclusiveWord,
}

/// How servers run here.
#[derive(Debug, Clone, Args)]
pub struct Servers {
    /// Unprivileged user that runs the servers when deltabench is root [default: postgres, else nobody]
    #[arg(long, value_name = "USER")]
    pub server_user: Option<String>,
    /// Directory for data directories and sockets, removed afterwards [default: in the lab, for root in
    /// /var/tmp]
    #[arg(long, value_name = "DIR")]
    pub cluster_dir: Option<PathBuf>,
    /// Huge pages for shared buffers: they halve the spread between restarts
    #[arg(long, value_enum, default_value_t = HugePagesWord::Try)]
    pub huge_pages: HugePagesWord,
}

/// Where the results go.
#[derive(Debug, Default, Args)]
pub struct Output {
    /// Write the JSON report here; `-` is stdout [default: in the lab directory]
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the HTML report here [default: in the lab directory]
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// `deltabench resume`.
#[derive(Debug, Args)]
pub struct Resume {
    /// The run, or the beginning of its name, or `last`
    #[arg(default_value = "last")]
    pub run: String,
    /// How servers run here
    #[command(flatten)]
    pub servers: Servers,
    /// Where the results go
    #[command(flatten)]
    pub output: Output,
}

/// `deltabench confirm`.
#[derive(Debug, Args)]
pub struct Confirm {
    /// The run, or the beginning of its name, or `last`
    #[arg(default_value = "last")]
    pub run: String,
    /// How servers run here
    #[command(flatten)]
    pub servers: Servers,
    /// Where the results go
    #[command(flatten)]
    pub output: Output,
}

/// `deltabench init`.
#[derive(Debug, Args)]
pub struct Init {
    /// The file to write; it must not be there
    #[arg(value_name = "FILE", default_value = "experiment.toml")]
    pub file: PathBuf,
}

/// `deltabench report`.
#[derive(Debug, Args)]
pub struct Report {
    /// Runs or experiments, or the beginning of a name, or `last`; LAB:RUN is one of another lab. Several are
    /// put into one report
    #[arg(default_value = "last", value_name = "RUN")]
    pub runs: Vec<String>,
    /// Only the tables along this axis
    #[arg(long, value_enum)]
    pub by: Option<By>,
    /// Form of the report
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Write it here instead of stdout
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// What each operation cost (CPU, context switches, reads, KB read and written), as a table
    #[arg(long)]
    pub costs: bool,
    /// Judge with another smallest change that matters
    #[arg(long, value_name = "PERCENT")]
    pub delta: Option<String>,
    /// With --format pgbench: a progress line for each so many seconds of measured time
    #[arg(long, value_name = "SECONDS")]
    pub progress: Option<f64>,
}

/// `deltabench targets`.
#[derive(Debug, Args)]
pub struct Targets {
    /// Every prebuilt point release, not only the newest of each major
    #[arg(long)]
    pub all: bool,
}

/// `deltabench workloads`.
#[derive(Debug, Args)]
pub struct Workloads {
    /// What to show; without it all are listed
    #[command(subcommand)]
    pub what: Option<WorkloadsCommand>,
}

/// `deltabench workloads …`.
#[derive(Debug, Subcommand)]
pub enum WorkloadsCommand {
    /// The definition of a workload and a sample of its SQL with real parameters
    Show {
        /// Its name
        name: String,
    },
}

/// `deltabench selfbench`.
#[derive(Debug, Args)]
pub struct Selfbench {
    /// What to measure
    #[command(subcommand)]
    pub what: SelfbenchCommand,
}

/// `deltabench selfbench …`.
#[derive(Debug, Subcommand)]
pub enum SelfbenchCommand {
    /// Client CPU per operation and throughput against sysbench and pgbench, as paired ratios
    Client(SelfbenchClient),
    /// How often identical servers are called different: sysbench on A then on B, and deltabench
    Verdict(SelfbenchVerdict),
    /// What the one-second series costs: throughput with and without it, as a paired ratio
    Collecting(SelfbenchCollecting),
}

/// `deltabench selfbench collecting`.
#[derive(Debug, Args)]
pub struct SelfbenchCollecting {
    /// Server to run against
    #[arg(long, value_name = "TARGET", default_value = "postgres:18")]
    pub target: String,
    /// Pairs of slices
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub pairs: u32,
    /// Seconds of a slice
    #[arg(long, value_name = "SECONDS", default_value_t = 3.0)]
    pub seconds: f64,
    /// How servers run here
    #[command(flatten)]
    pub servers: Servers,
}

/// `deltabench selfbench verdict`.
#[derive(Debug, Args)]
pub struct SelfbenchVerdict {
    /// The server that is compared with itself
    #[arg(long, value_name = "TARGET", default_value = "postgres:18")]
    pub target: String,
    /// Pairs of identical servers
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub pairs: u32,
    /// Seconds of sysbench on each server; deltabench gets twice that in all, loading included
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub seconds: u32,
    /// Rows of the table
    #[arg(long, value_name = "N", default_value_t = 200_000)]
    pub rows: u64,
    /// Write JSON to this file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// How servers run here
    #[command(flatten)]
    pub servers: Servers,
}

/// `deltabench selfbench client`.
#[derive(Debug, Args)]
pub struct SelfbenchClient {
    /// Server to run against
    #[arg(long, value_name = "TARGET", default_value = "postgres:18")]
    pub target: String,
    /// Concurrent connections; a list makes a row for each
    #[arg(
        long,
        value_name = "N,N",
        value_delimiter = ',',
        default_value = "1,4,16"
    )]
    pub clients: Vec<u32>,
    /// Paired rounds of each row
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub rounds: u32,
    /// Seconds of each client in a round
    #[arg(long, value_name = "SECONDS", default_value_t = 1.5)]
    pub seconds: f64,
    /// Print JSON to this file; `-` is stdout
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// How servers run here
    #[command(flatten)]
    pub servers: Servers,
}

/// State of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StateWord {
    /// Just loaded.
    Fresh,
    /// After the published write phase at fixed work.
    Aged,
}

/// Order of the cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OrderWord {
    /// Drawn anew for each block.
    Drawn,
    /// As in the published scripts.
    Published,
}

/// How the client reaches the servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TransportWord {
    /// Local socket.
    Socket,
    /// TCP on the loopback address.
    Tcp,
    /// TLS over TCP on the loopback address.
    Tls,
}

/// What a gate does with cells that have no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum InconclusiveWord {
    /// They pass.
    Pass,
    /// They fail, with exit code 3.
    Fail,
}

/// Data checksums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Checksums {
    /// On for every server.
    On,
    /// Off for every server.
    Off,
    /// Each version's own default.
    Default,
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

/// Huge pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum HugePagesWord {
    /// Where the machine gives them.
    Try,
    /// Or refuse.
    On,
    /// Never.
    Off,
}

/// What the columns of a study's table stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// Versions, builds, configurations, settings.
    Server,
    /// Numbers of clients.
    Clients,
    /// What only another run can vary: rows, memory, storage.
    Part,
    /// Machines.
    Host,
}

impl By {
    /// The word on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Clients => "clients",
            Self::Part => "part",
            Self::Host => "host",
        }
    }
}

impl From<By> for deltabench_compare::study::Axis {
    fn from(by: By) -> Self {
        match by {
            By::Server => Self::Servers,
            By::Clients => Self::Clients,
            By::Part => Self::Part,
            By::Host => Self::Host,
        }
    }
}

/// Form of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Table for a terminal.
    #[value(alias = "terminal")]
    Text,
    /// The JSON contract.
    Json,
    /// One offline page.
    Html,
    /// For a pull request or a blog post.
    Markdown,
    /// A row for each cell and metric.
    Csv,
    /// Test cases for CI: JUnit's XML.
    Junit,
    /// Go's benchmark format, for benchstat.
    Benchstat,
    /// What pgbench prints at the end of a run, for each server and cell.
    Pgbench,
    /// A row for each server, step and pass of the Insert Benchmark.
    Steps,
    /// report.tsv of the scripts around db_bench: a row for each target, step and block of RocksDB.
    Rocksdb,
}

impl From<Format> for deltabench_report::Format {
    fn from(format: Format) -> Self {
        match format {
            Format::Text => Self::Text,
            Format::Json => Self::Json,
            Format::Html => Self::Html,
            Format::Markdown => Self::Markdown,
            Format::Csv => Self::Csv,
            Format::Junit => Self::Junit,
            Format::Benchstat => Self::Benchstat,
            Format::Pgbench => Self::Pgbench,
            Format::Steps => Self::Steps,
            Format::Rocksdb => Self::Rocksdb,
        }
    }
}

/// `deltabench fetch`.
#[derive(Debug, Args)]
pub struct Fetch {
    /// What to fetch, for example postgres:17 postgres:18 rocksdb:10.2.1
    #[arg(required = true)]
    pub targets: Vec<String>,
}
