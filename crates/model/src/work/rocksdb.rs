//! RocksDB measured with the steps of `db_bench`, as the published studies chain them.
//!
//! Source: docs/sources/rocksdb-db-bench.md; docs/studies/rocksdb-6-to-10.md.

use crate::cell::{Cell, DataState, Group, PublishedRate};
use crate::id::CellId;
use crate::installation::Engine;
use crate::problem::Problem;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Setting of a server that says which block cache it has: a word of [`BlockCache`].
pub const BLOCK_CACHE: &str = "block_cache";

/// Keys where nothing is said.
pub const KEYS: u64 = 1_000_000;
/// Bytes of a value then.
pub const VALUE_BYTES: u32 = 400;
/// Seconds of a timed step then.
pub const STEP_SECONDS: u32 = 5;
/// Threads for flushes and compactions then.
pub const BACKGROUND_JOBS: u32 = 2;

/// Bytes per second that the writer beside the readers puts.
pub const WRITER_BYTES_PER_SECOND: u64 = 2 << 20;

/// Keys of one look-up of `multireadrandom`.
pub const MULTI_READ_BATCH: u32 = 10;

/// Nexts or prevs after each seek.
pub const SEEK_NEXTS: u32 = 10;

/// A block cache has 64 shards, each of which has to hold a few blocks.
const CACHE_MIN_BYTES: u64 = 8 << 20;

/// Options that say where files are: that is for deltabench to decide.
const PLACES: [&str; 5] = ["db_log_dir", "wal_dir", "db_paths", "cf_paths", "env"];

/// Options without which a chain is something else, and why.
const NEEDED: [(&str, &str); 4] = [
    (
        "no_block_cache",
        "every target has the requested block cache",
    ),
    (
        "disable_auto_compactions",
        "steps wait until nothing is left to compact, and without compactions they never end",
    ),
    (
        "error_if_exists",
        "deltabench knows whether a database exists",
    ),
    (
        "create_if_missing",
        "deltabench knows whether a database exists",
    ),
];

/// Refuses what cannot be the name of an option that users give, whatever the version.
///
/// Errors: no name at all, the block cache, a place of files, an option without which a chain is another.
pub fn check_option(name: &str) -> Result<(), Problem> {
    let part = |part: &str| {
        let mut letters = part.chars();
        letters.next().is_some_and(|c| c.is_ascii_lowercase())
            && letters.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    if !name.split('.').all(part) {
        return Err(
            Problem::new(format!("`{name}` is not the name of an option of RocksDB"))
                .detail("names are those of option files: lower case, words joined by `_`")
                .hint("write for example write_buffer_size=33554432"),
        );
    }
    // `block_based_table_factory.block_cache` is `block_cache` of a section.
    let option = name.rsplit('.').next().unwrap_or(name);
    if option == BLOCK_CACHE {
        return Err(Problem::new("an option cannot choose the block cache")
            .hint("on the command line use --block-cache, in [[servers]] `block_cache`"));
    }
    if PLACES.contains(&option) {
        return Err(Problem::new(format!("option `{name}` cannot be chosen"))
            .detail("deltabench decides where databases and their files are")
            .hint(format!("leave out {name}")));
    }
    if let Some((_, why)) = NEEDED.iter().find(|(needed, _)| *needed == option) {
        return Err(Problem::new(format!("option `{name}` cannot be chosen"))
            .detail(*why)
            .hint(format!("leave out {name}")));
    }
    Ok(())
}

/// How the database lies to memory, and how it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RocksdbWorkload {
    /// In the block cache; not compressed.
    #[default]
    Byrx,
    /// In the page cache, with a small block cache; not compressed.
    Byos,
    /// Larger than memory, through the page cache; lz4.
    Iobuf,
    /// Larger than memory, past the page cache; lz4.
    Iodir,
}

impl RocksdbWorkload {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Byrx, Self::Byos, Self::Iobuf, Self::Iodir];

    /// The published name.
    pub fn word(self) -> &'static str {
        match self {
            Self::Byrx => "byrx",
            Self::Byos => "byos",
            Self::Iobuf => "iobuf",
            Self::Iodir => "iodir",
        }
    }

    /// Whether blocks are compressed with lz4.
    pub fn compresses(self) -> bool {
        matches!(self, Self::Iobuf | Self::Iodir)
    }

    /// Whether files are read and written past the page cache.
    pub fn direct(self) -> bool {
        self == Self::Iodir
    }
}

/// The cache of uncompressed blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BlockCache {
    /// Sharded lists with a lock each; every version has it.
    #[default]
    Lru,
    /// Lock-free, from 7.x or 8.x on; sized by itself where the version can (8.7 on).
    HyperClock,
}

impl BlockCache {
    /// The word in files, options and tables.
    pub fn word(self) -> &'static str {
        match self {
            Self::Lru => "lru",
            Self::HyperClock => "hyper-clock",
        }
    }

    /// Whether an engine of that version has it. A version of 0 is not known and may.
    ///
    /// Source: docs/sources/rocksdb-db-bench.md#block-caches: `hyper_clock_cache` is a word of `db_bench`
    /// from 7.7 on; the C interface makes one from 8.1.1 on.
    pub fn is_in(self, engine: Engine, version_num: u32) -> bool {
        let since = match (self, engine) {
            (Self::Lru, _) => 0,
            (Self::HyperClock, Engine::DbBench) => 70_700,
            (Self::HyperClock, _) => 80_100,
        };
        version_num == 0 || version_num >= since
    }

    /// The cache with that word.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Lru, Self::HyperClock]
            .into_iter()
            .find(|cache| cache.word() == word)
    }
}

/// A step of the chain that every database goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RocksdbStep {
    /// Loads all keys in order, by one thread, without a write-ahead log.
    Fillseq,
    /// As [`RocksdbStep::FlushMtL0`], after a load: what reads meet is no chance of the load's compactions.
    Drain,
    /// Gets of random keys.
    Readrandom,
    /// A seek to a random key and nexts.
    Fwdrange,
    /// Gets of [`MULTI_READ_BATCH`] random keys at once.
    Multireadrandom,
    /// Overwrites a tenth of the keys, at random, by as many threads as any other step has.
    Overwritesome,
    /// Flushes, moves all of level 0 down and waits: the tree has a known shape after it.
    FlushMtL0,
    /// A seek to a random key and prevs, beside a writer.
    Revrangewhilewriting,
    /// A seek to a random key and nexts, beside a writer.
    Fwdrangewhilewriting,
    /// Gets of random keys, beside a writer.
    Readwhilewriting,
    /// Overwrites random keys, then waits until nothing is left to compact.
    Overwriteandwait,
}

impl RocksdbStep {
    /// All of them, in the order of the chain.
    pub const ALL: [Self; 11] = [
        Self::Fillseq,
        Self::Drain,
        Self::Readrandom,
        Self::Fwdrange,
        Self::Multireadrandom,
        Self::Overwritesome,
        Self::FlushMtL0,
        Self::Revrangewhilewriting,
        Self::Fwdrangewhilewriting,
        Self::Readwhilewriting,
        Self::Overwriteandwait,
    ];

    /// The published name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fillseq => "fillseq",
            Self::Drain => "drain",
            Self::Readrandom => "readrandom",
            Self::Fwdrange => "fwdrange",
            Self::Multireadrandom => "multireadrandom",
            Self::Overwritesome => "overwritesome",
            Self::FlushMtL0 => "flush_mt_l0",
            Self::Revrangewhilewriting => "revrangewhilewriting",
            Self::Fwdrangewhilewriting => "fwdrangewhilewriting",
            Self::Readwhilewriting => "readwhilewriting",
            Self::Overwriteandwait => "overwriteandwait",
        }
    }

    /// The step with that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|step| step.name() == name)
    }

    /// Whether it is measured, or only brings the database into a state.
    pub fn is_measured(self) -> bool {
        !matches!(self, Self::Drain | Self::Overwritesome | Self::FlushMtL0)
    }

    /// Whether its own operations are writes.
    pub fn writes(self) -> bool {
        matches!(
            self,
            Self::Fillseq | Self::Overwritesome | Self::Overwriteandwait
        )
    }

    /// Whether a writer works beside its readers, at [`WRITER_BYTES_PER_SECOND`] and outside the count.
    pub fn beside_a_writer(self) -> bool {
        matches!(
            self,
            Self::Revrangewhilewriting | Self::Fwdrangewhilewriting | Self::Readwhilewriting
        )
    }

    /// Whether only one thread does it, however many are asked for.
    pub fn single(self) -> bool {
        matches!(self, Self::Fillseq | Self::Drain | Self::FlushMtL0)
    }

    /// The family it is reported with.
    pub fn group(self) -> Group {
        match self {
            Self::Readrandom | Self::Multireadrandom | Self::Readwhilewriting => Group::Point,
            Self::Fwdrange | Self::Revrangewhilewriting | Self::Fwdrangewhilewriting => {
                Group::Range
            }
            _ => Group::Write,
        }
    }

    /// The steps whose results are published, with those that bring the database into their states.
    pub fn published() -> Vec<Self> {
        Self::ALL
            .into_iter()
            .filter(|step| {
                !matches!(
                    step,
                    Self::Readrandom | Self::Fwdrange | Self::Multireadrandom
                )
            })
            .collect()
    }
}

/// What is done with RocksDB. All bytes are of one database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RocksdbSetup {
    /// How the database lies to memory.
    pub workload: RocksdbWorkload,
    pub keys: u64,
    pub key_bytes: u32,
    /// Bytes of a value; half of them can be compressed away.
    pub value_bytes: u32,
    /// Thread counts of the steps that are not [`RocksdbStep::single`]: each has a cell for each of them.
    pub threads: Vec<u32>,
    /// Measured seconds of each timed step on each target in a block.
    pub seconds: u32,
    /// What the writer beside readers puts, bytes per second.
    pub writer_bytes_per_second: u64,
    pub steps: Vec<RocksdbStep>,
    /// Bytes of the block cache.
    pub cache_bytes: u64,
    /// Threads for flushes and compactions.
    pub background_jobs: u32,
    /// Options of the library for every target, by their names in option files; later ones win.
    pub options: Vec<(String, String)>,
}

/// One link of the chain: a step by so many threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainLink {
    pub step: RocksdbStep,
    pub threads: u32,
    /// The cell that it is; absent for steps that only make a state.
    pub cell: Option<CellId>,
}

impl RocksdbSetup {
    /// All links, in the order in which a database goes through them.
    pub fn chain(&self) -> Vec<ChainLink> {
        let mut chain = Vec::new();
        let mut ids = CellId::each();
        let most = self.threads.iter().copied().max().unwrap_or(1);
        for &step in &self.steps {
            let threads: &[u32] = match self.threads.as_slice() {
                all if step.is_measured() && !step.single() => all,
                // A state is made once.
                _ if step == RocksdbStep::Overwritesome => &[most],
                _ => &[1],
            };
            for &threads in threads {
                let cell = if step.is_measured() { ids.next() } else { None };
                chain.push(ChainLink {
                    step,
                    threads,
                    cell,
                });
            }
        }
        chain
    }

    /// The cells of the measured links, in order: [`ChainLink::cell`] is their index.
    pub fn cells(&self) -> Vec<Cell> {
        let measured = self.chain().into_iter().filter(|link| link.cell.is_some());
        measured
            .map(|link| Cell {
                workload: link.step.name().to_owned(),
                group: link.step.group(),
                clients: link.threads,
                writes: link.step.writes(),
                statements_per_operation: 1,
                state: DataState::Fresh,
                rate: None,
                reconnects: false,
                published: PublishedRate {
                    per_operation: 1.0,
                    unit: "ops/s".to_owned(),
                },
            })
            .collect()
    }

    /// The block cache where nothing else is asked for: all data with room to spare, or an eighth of them.
    ///
    /// Source: published, byrx has all data in it; the others have 20 to 90 GB beside a database of several
    /// times that (docs/sources/rocksdb-db-bench.md#workloads-and-sizes).
    pub fn usual_cache_bytes(&self) -> u64 {
        match self.workload {
            RocksdbWorkload::Byrx => self.raw_bytes() * 2,
            _ => self.raw_bytes() / 8,
        }
        .max(CACHE_MIN_BYTES)
    }

    /// Bytes of all keys and values.
    pub fn raw_bytes(&self) -> u64 {
        self.keys * u64::from(self.key_bytes + self.value_bytes)
    }
}

/// What moved in a step on one target; also what its report says. Keys that a target cannot tell are missing.
///
/// Keys, all from the first turn that was not counted to the end of the step (gauges at its end):
/// `compaction_write_bytes`, `compaction_read_bytes`, `compaction_ns` (wall, over its threads),
/// `compaction_cpu_ns` (in these four the library counts a flush as a compaction to level 0), `flush_bytes`,
/// `ingest_bytes`,
/// `wal_write_bytes`, `stall_ns`, `stalls`, `active_ns` (time in which it was not frozen), `user_cpu_ns`,
/// `system_cpu_ns` (of the whole step, waiting included), `drain_ns` (of waiting for compactions at the end),
/// `finish_cpu_ns` (CPU after the last turn: waiting for compactions, the flush of a load),
/// `process_written_bytes` (all that it wrote), `process_read_bytes` (that came from the device);
/// gauges `lsm_bytes`, `blob_bytes`, `l0_files`, `largest_rss_bytes`, `block_cache_bytes`;
/// and, counted in turns of their own and scaled to all operations in that time, `block_cache_hits`,
/// `block_cache_misses`, `key_comparisons`, `bloom_hits`, `memtable_hits`, `skipped_keys`.
pub type StepFigures = BTreeMap<String, f64>;

#[cfg(test)]
mod tests {
    use super::*;

    fn setup(threads: &[u32], steps: Vec<RocksdbStep>) -> RocksdbSetup {
        RocksdbSetup {
            workload: RocksdbWorkload::Byrx,
            keys: 1000,
            key_bytes: 20,
            value_bytes: 400,
            threads: threads.to_vec(),
            seconds: 1,
            writer_bytes_per_second: WRITER_BYTES_PER_SECOND,
            steps,
            cache_bytes: 1 << 20,
            background_jobs: 2,
            options: Vec::new(),
        }
    }

    #[test]
    fn every_measured_step_is_a_cell_for_each_thread_count() {
        let setup = setup(&[1, 4], RocksdbStep::published());
        let cells = setup.cells();
        let told: Vec<String> = cells
            .iter()
            .map(|cell| format!("{} {}", cell.workload, cell.clients))
            .collect();
        assert_eq!(
            told,
            [
                "fillseq 1",
                "revrangewhilewriting 1",
                "revrangewhilewriting 4",
                "fwdrangewhilewriting 1",
                "fwdrangewhilewriting 4",
                "readwhilewriting 1",
                "readwhilewriting 4",
                "overwriteandwait 1",
                "overwriteandwait 4",
            ]
        );
        let numbered: Vec<CellId> = setup.chain().iter().filter_map(|link| link.cell).collect();
        assert_eq!(numbered, CellId::each().take(9).collect::<Vec<_>>());
        assert_eq!(setup.chain().len(), 9 + 3);
        let states: Vec<(RocksdbStep, u32)> = setup
            .chain()
            .iter()
            .filter(|link| link.cell.is_none())
            .map(|link| (link.step, link.threads))
            .collect();
        use RocksdbStep::{Drain, FlushMtL0, Overwritesome};
        assert_eq!(states, [(Drain, 1), (Overwritesome, 4), (FlushMtL0, 1)]);
    }

    #[test]
    fn steps_and_caches_are_found_by_their_names() {
        for step in RocksdbStep::ALL {
            assert_eq!(RocksdbStep::from_name(step.name()), Some(step));
        }
        assert_eq!(RocksdbStep::from_name("fillrandom"), None);
        assert_eq!(
            BlockCache::from_word("hyper-clock"),
            Some(BlockCache::HyperClock)
        );
        assert_eq!(BlockCache::from_word("clock"), None);
    }

    #[test]
    fn options_have_names_and_are_no_places() {
        for good in ["write_buffer_size", "block_based_table_factory.block_size"] {
            check_option(good).unwrap();
        }
        for bad in [
            "",
            "Write_Buffer",
            "a b",
            "a..b",
            "1a",
            "wal_dir",
            "block_cache",
            "block_based_table_factory.block_cache",
            "block_based_table_factory.no_block_cache",
            "disable_auto_compactions",
            "error_if_exists",
            "create_if_missing",
            "env.wal_dir",
        ] {
            assert!(check_option(bad).unwrap_err().hint.is_some(), "{bad}");
        }
    }

    #[test]
    fn a_version_has_only_the_caches_that_it_can_make() {
        let has = |engine, version| BlockCache::HyperClock.is_in(engine, version);
        assert!(BlockCache::Lru.is_in(Engine::Rocksdb, 62_905));
        assert!(!has(Engine::Rocksdb, 71_002) && has(Engine::Rocksdb, 81_104));
        assert!(!has(Engine::Rocksdb, 80_000) && has(Engine::Rocksdb, 80_101));
        assert!(has(Engine::DbBench, 70_803) && !has(Engine::DbBench, 70_600));
        assert!(has(Engine::Rocksdb, 0), "a library that does not tell");
    }
}
