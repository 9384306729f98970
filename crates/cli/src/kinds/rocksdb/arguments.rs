//! `deltabench rocksdb`.

use crate::arguments::conditions::Output;
use crate::arguments::shape::InconclusiveWord;
use clap::{Args, ValueEnum};
use deltabench_model::work::rocksdb::RocksdbWorkload;
use deltabench_model::work::rocksdb::VALUE_BYTES;
use std::path::PathBuf;

/// `deltabench rocksdb`.
#[derive(Debug, Args)]
pub struct RocksdbArguments {
    /// The base: rocksdb:6.29.5 (or only 6.29.5), rocksdb:path:LIB.so or db_bench:PATH
    pub base: String,
    /// The candidates; without one, the base is measured alone, with its placebo, or its block caches are
    /// compared
    pub candidates: Vec<String>,
    /// What is done with them
    #[command(flatten)]
    pub work: ChainArguments,
    /// How exactly, and how
    #[command(flatten, next_help_heading = "How it measures and ends")]
    pub exactness: Exactness,
    /// What targets may use, and where databases live
    #[command(flatten, next_help_heading = "On this machine")]
    pub databases: Databases,
    /// Where the results go
    #[command(flatten, next_help_heading = "Output")]
    pub output: Output,
}

/// What is done with all targets.
#[derive(Debug, Args)]
pub struct ChainArguments {
    /// A small benchmark: 200k keys, steps of 2 s, 6 blocks; it prints how long that takes
    #[arg(long, conflicts_with = "published")]
    pub quick: bool,
    /// Sizes of a published study
    #[arg(long, value_enum, value_name = "SIZES")]
    pub published: Option<PublishedWord>,
    /// Whether the database fits into memory, and how it is read
    #[arg(long, value_enum, default_value_t = WorkloadWord::Byrx)]
    pub workload: WorkloadWord,
    /// Keys, for example 20M [default: 1M, with --quick 200k]
    #[arg(long, value_name = "N")]
    pub keys: Option<String>,
    /// Bytes of a value; compression can halve them
    #[arg(long, value_name = "BYTES", default_value_t = VALUE_BYTES)]
    pub value_bytes: u32,
    /// Threads of all steps except fillseq; a list makes a cell for each [default: 1]
    #[arg(long, value_name = "N,N", value_delimiter = ',')]
    pub threads: Vec<u32>,
    /// Seconds of each timed step, for each target and block [default: 5, with --quick 2]
    #[arg(long, value_name = "SECONDS")]
    pub seconds: Option<u32>,
    /// Writes per second of the writer in steps that read and write
    #[arg(long, value_name = "SIZE", default_value = "2MB")]
    pub writer_rate: String,
    /// Only these steps, in order, for example fillseq,drain,readrandom [default: the published ones]
    #[arg(long, value_name = "STEP,STEP", value_delimiter = ',')]
    pub steps: Vec<String>,
    /// Also measure readrandom, fwdrange and multireadrandom, which read without a writer
    #[arg(long, conflicts_with = "steps")]
    pub all_steps: bool,
    /// The block cache: lru, hyper-clock, or best (hyper-clock if the version has it); with a list, each
    /// target is measured with each, and the base has the first
    #[arg(
        long,
        value_enum,
        value_name = "CACHE,CACHE",
        value_delimiter = ',',
        default_value = "lru"
    )]
    pub block_cache: Vec<BlockCacheWord>,
    /// Size of the block cache [default: byrx twice the data, else an eighth of it]
    #[arg(long, value_name = "SIZE")]
    pub cache_size: Option<String>,
    /// Threads for flushes and compactions [default: 2]
    #[arg(long, value_name = "N")]
    pub background_jobs: Option<u32>,
    /// A RocksDB option of every target, by its name in option files; may be repeated
    #[arg(long = "option", value_name = "NAME=VALUE")]
    pub options: Vec<String>,
    /// An option of the candidates only, to measure what it changes; may be repeated
    #[arg(long = "candidate-option", value_name = "NAME=VALUE")]
    pub candidate_options: Vec<String>,
}

/// How exactly is measured, and how.
#[derive(Debug, Args)]
pub struct Exactness {
    /// Blocks: a new process and a new database for each target; an interval needs 2, a verdict 6 [default:
    /// 8, with --quick or --published 6]
    #[arg(long, value_name = "N")]
    pub blocks: Option<u32>,
    /// Target length of a turn [default: 100, with --published 1000]
    #[arg(long, value_name = "MS")]
    pub slice_ms: Option<u32>,
    /// Leave out the second copy of the base: it saves a third of the time, but the run cannot show false
    /// alarms
    #[arg(long)]
    pub no_placebo: bool,
    /// The smallest change that matters [default: 2 % to 5 %, for each step what its placebo's noise allows]
    #[arg(long, value_name = "PERCENT")]
    pub delta: Option<String>,
    /// Measure all blocks of every cell; by default the run ends at the planned look that answers all cells
    #[arg(long)]
    pub fixed: bool,
    /// End a cell when the half-width of its interval is this small
    #[arg(long, value_name = "PERCENT", conflicts_with = "fixed")]
    pub precision: Option<String>,
    /// Start no block that would end after this time with the set-up, for example 30m
    #[arg(long, value_name = "TIME")]
    pub budget: Option<String>,
    /// Act as a gate: exit code 1 only for regressions that still hold when all cells are taken together
    #[arg(long)]
    pub gate: bool,
    /// Act as a gate that passes only if every cell excludes a loss of more than this
    #[arg(long, value_name = "PERCENT")]
    pub not_worse_than: Option<String>,
    /// What a gate does with cells that have no answer
    #[arg(long, value_enum, default_value_t = InconclusiveWord::Fail)]
    pub on_inconclusive: InconclusiveWord,
    /// Seed of all random choices [default: from the clock; it is printed and stored]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Compare a target with itself on purpose (an A/A run)
    #[arg(long)]
    pub same_target: bool,
    /// Print what would be measured, how long it would take and how much disk it needs, and stop
    #[arg(long)]
    pub dry_run: bool,
}

/// What targets may use of the machine, where databases live and who works them.
#[derive(Debug, Args)]
pub struct Databases {
    /// Memory of each target with its page cache, for example 512MB; data beyond it is read from the disk
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,
    /// Leave out a limit that this machine does not allow; the report says so
    #[arg(long)]
    pub limits_optional: bool,
    /// Unprivileged user that runs the workers when deltabench is root [default: postgres, else nobody]
    #[arg(long, value_name = "USER")]
    pub server_user: Option<String>,
    /// Directory for databases, which are removed at the end [default: in the lab, for root in /var/tmp]
    #[arg(long, value_name = "DIR")]
    pub cluster_dir: Option<PathBuf>,
}

/// How the database lies to memory, and how it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WorkloadWord {
    /// In the block cache; not compressed.
    Byrx,
    /// In the page cache, with a small block cache; not compressed.
    Byos,
    /// Larger than memory, through the page cache; lz4.
    Iobuf,
    /// Larger than memory, past the page cache; lz4.
    Iodir,
}

impl From<WorkloadWord> for RocksdbWorkload {
    fn from(word: WorkloadWord) -> Self {
        match word {
            WorkloadWord::Byrx => Self::Byrx,
            WorkloadWord::Byos => Self::Byos,
            WorkloadWord::Iobuf => Self::Iobuf,
            WorkloadWord::Iodir => Self::Iodir,
        }
    }
}

/// Which block cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BlockCacheWord {
    /// LRU lists with locks; every version has it.
    Lru,
    /// Without locks, from 8.1 on (db_bench from 7.7).
    HyperClock,
    /// As published: hyper-clock where the version has it, else lru.
    Best,
}

/// Sizes of the published study.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PublishedWord {
    /// 1 thread, 20M keys, cache of 20 GB, steps of 30 minutes: 8 cores, 32 GB.
    Small,
    /// 16 threads, 40M keys, cache of 48 GB: 24 cores, 64 GB.
    #[value(name = "large-24")]
    Large24,
    /// 24 threads, 50M keys, cache of 90 GB: 32 cores, 128 GB.
    #[value(name = "large-32")]
    Large32,
}
