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
    /// The side that the others are compared with: rocksdb:6.29.5 (or only 6.29.5), rocksdb:path:LIB.so or
    /// db_bench:PATH
    pub base: String,
    /// The sides in question; without one the base is measured alone, with its placebo, or its block caches
    /// are compared
    pub candidates: Vec<String>,
    /// What is done with them
    #[command(flatten)]
    pub work: ChainArguments,
    /// How exactly, and how
    #[command(flatten)]
    pub exactness: Exactness,
    /// What targets may use, and where databases live
    #[command(flatten)]
    pub databases: Databases,
    /// Where the results go
    #[command(flatten)]
    pub output: Output,
}

/// What is done with all targets.
#[derive(Debug, Args)]
pub struct ChainArguments {
    /// Everything scaled down: 200k keys, steps of 2 s, 6 blocks. It says how long that takes
    #[arg(long, conflicts_with = "published")]
    pub quick: bool,
    /// Sizes of a published study
    #[arg(long, value_enum, value_name = "SIZES")]
    pub published: Option<PublishedWord>,
    /// How the database lies to memory
    #[arg(long, value_enum, default_value_t = WorkloadWord::Byrx)]
    pub workload: WorkloadWord,
    /// Keys, for example 20M [default: 1M, with --quick 200k]
    #[arg(long, value_name = "N")]
    pub keys: Option<String>,
    /// Bytes of a value; half of them can be compressed away
    #[arg(long, value_name = "BYTES", default_value_t = VALUE_BYTES)]
    pub value_bytes: u32,
    /// Threads of the steps but fillseq; a list makes a cell for each [default: 1]
    #[arg(long, value_name = "N,N", value_delimiter = ',')]
    pub threads: Vec<u32>,
    /// Seconds of each timed step, for each target and block [default: 5, with --quick 2]
    #[arg(long, value_name = "SECONDS")]
    pub seconds: Option<u32>,
    /// What the writer beside readers puts per second
    #[arg(long, value_name = "SIZE", default_value = "2MB")]
    pub writer_rate: String,
    /// Only these steps, in order, for example fillseq,drain,readrandom [default: the published ones]
    #[arg(long, value_name = "STEP,STEP", value_delimiter = ',')]
    pub steps: Vec<String>,
    /// readrandom, fwdrange and multireadrandom too: reads of a database that nobody writes to
    #[arg(long, conflicts_with = "steps")]
    pub all_steps: bool,
    /// The block cache: lru, hyper-clock, or best (the better one that a version has); of a list each target
    /// is measured with each, the first is the base's
    #[arg(
        long,
        value_enum,
        value_name = "CACHE,CACHE",
        value_delimiter = ',',
        default_value = "lru"
    )]
    pub block_cache: Vec<BlockCacheWord>,
    /// Bytes of the block cache [default: byrx twice the data, else an eighth of it]
    #[arg(long, value_name = "SIZE")]
    pub cache_size: Option<String>,
    /// Threads for flushes and compactions [default: 2]
    #[arg(long, value_name = "N")]
    pub background_jobs: Option<u32>,
    /// An option of RocksDB for every target, by its name in option files; may be repeated
    #[arg(long = "option", value_name = "NAME=VALUE")]
    pub options: Vec<String>,
    /// An option for the candidates only; may be repeated: the question is then what it does
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
    /// Aim for the length of one turn [default: 100, with --published 1000]
    #[arg(long, value_name = "MS")]
    pub slice_ms: Option<u32>,
    /// Do not measure the base twice: a third of the time saved, and false alarms are not seen
    #[arg(long)]
    pub no_placebo: bool,
    /// The smallest change that matters [default: 2 % to 5 %, for each step what its placebo's noise allows]
    #[arg(long, value_name = "PERCENT")]
    pub delta: Option<String>,
    /// Every cell gets all blocks; without it, looks in between end the run when all have their answers
    #[arg(long)]
    pub fixed: bool,
    /// End a cell when its interval is this narrow
    #[arg(long, value_name = "PERCENT", conflicts_with = "fixed")]
    pub precision: Option<String>,
    /// Begin no block that would end past this time, for example 30m, set-up included
    #[arg(long, value_name = "TIME")]
    pub budget: Option<String>,
    /// The exit code is that of a gate: 1 only for regressions that hold over all cells together
    #[arg(long)]
    pub gate: bool,
    /// The gate passes unless a loss of more than this cannot be excluded
    #[arg(long, value_name = "PERCENT")]
    pub not_worse_than: Option<String>,
    /// What the gate does with cells that have no answer
    #[arg(long, value_enum, default_value_t = InconclusiveWord::Fail)]
    pub on_inconclusive: InconclusiveWord,
    /// Seed of every order, key and draw [default: from the clock; it is printed and stored]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Compare a target with itself on purpose (an A/A run)
    #[arg(long)]
    pub same_target: bool,
    /// Say what would be done, how long it takes and what room it needs, and do nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// What targets may use of the machine, where databases live and who works them.
#[derive(Debug, Args)]
pub struct Databases {
    /// Memory of each target, page cache included, for example 512MB: what does not fit is really read
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,
    /// Run without the limit that this machine does not allow, and say so in the report
    #[arg(long)]
    pub limits_optional: bool,
    /// Unprivileged user that runs the workers when deltabench is root [default: postgres, else nobody]
    #[arg(long, value_name = "USER")]
    pub server_user: Option<String>,
    /// Directory for databases, removed afterwards [default: in the lab, for root in /var/tmp]
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
    /// Lists with locks; every version has it.
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
