//! The command line of `db_bench`: which flags it knows, and which are given to it.
//!
//! Source: docs/sources/rocksdb-db-bench.md, for leveled compaction.

use deltabench_model::work::rocksdb::{
    BLOCK_CACHE, BlockCache, MULTI_READ_BATCH, RocksdbSetup, RocksdbStep, SEEK_NEXTS,
};
use std::collections::BTreeSet;

/// What `db_bench --help` tells.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Known {
    flags: BTreeSet<String>,
    words: BTreeSet<String>,
}

impl Known {
    /// Reads the help text: flags are `-NAME (what it is) type: …`, benchmarks are the first words of their
    /// lines.
    pub(super) fn of_help(help: &str) -> Self {
        let first_words = || {
            help.lines()
                .filter_map(|line| line.split_ascii_whitespace().next())
        };
        let flag = |word: &str| {
            let name = word.trim_start_matches('-');
            (word.starts_with('-') && !name.is_empty()).then(|| name.to_owned())
        };
        Self {
            flags: first_words().filter_map(flag).collect(),
            words: first_words().map(str::to_owned).collect(),
        }
    }

    /// Whether it is the help of a `db_bench` at all.
    pub(super) fn is_usable(&self) -> bool {
        ["benchmarks", "db", "num", "use_existing_db", "key_size"]
            .iter()
            .all(|name| self.flag(name))
    }

    fn flag(&self, name: &str) -> bool {
        self.flags.contains(name)
    }

    fn benchmark(&self, name: &str) -> bool {
        self.words.contains(name)
    }
}

/// Flags that make a step what it is, and that no option of a target can change.
const OWN: [&str; 24] = [
    "batch_size",
    "benchmark_write_rate_limit",
    "benchmarks",
    "db",
    "disable_wal",
    "duration",
    "histogram",
    "key_size",
    "multiread_batched",
    "num",
    "reads",
    "reverse_iterator",
    "seed",
    "seek_nexts",
    "statistics",
    "stats_interval_seconds",
    "stats_per_interval",
    "sync",
    "threads",
    "use_existing_db",
    "value_size",
    "wal_dir",
    "writes",
    "cache_type",
];

/// Flags with their values, in order; a flag that is set again has its last value.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Flags(Vec<(String, String)>);

impl Flags {
    fn set(&mut self, name: &str, value: impl ToString) {
        let value = value.to_string();
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some(entry) => entry.1 = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    /// As arguments, without what is not known; those are told.
    pub(super) fn arguments(&self, known: &Known) -> Vec<String> {
        let usable = self.0.iter().filter(|(name, _)| known.flag(name));
        usable
            .map(|(name, value)| format!("--{name}={value}"))
            .collect()
    }

    /// The names that it does not know.
    fn unknown(&self, known: &Known) -> impl Iterator<Item = &str> {
        self.0
            .iter()
            .map(|(name, _)| name.as_str())
            .filter(|name| !known.flag(name))
    }
}

/// The flags of all steps.
///
/// Errors: an option of the user's that this `db_bench` has no flag for, or that would change what is
/// measured; a cache that it does not have.
pub(super) fn common(
    setup: &RocksdbSetup,
    cache: BlockCache,
    options: &[(String, String)],
    known: &Known,
    version_num: u32,
) -> Result<Flags, String> {
    let mut flags = published(setup);
    match cache {
        BlockCache::Lru if !known.flag("cache_type") => {}
        BlockCache::Lru => flags.set("cache_type", "lru_cache"),
        BlockCache::HyperClock if !known.flag("cache_type") => {
            return Err(
                "this db_bench has no flag --cache_type, so no hyper-clock cache".to_owned(),
            );
        }
        BlockCache::HyperClock => flags.set("cache_type", hyper_clock(version_num)),
    }
    for (name, value) in setup.options.iter().chain(options) {
        if name == BLOCK_CACHE {
            continue;
        }
        let name = match name.as_str() {
            "compression" => "compression_type",
            other => other,
        };
        if OWN.contains(&name) {
            return Err(format!("option {name} would change what a step is"));
        }
        if !known.flag(name) {
            return Err(format!("this db_bench has no flag --{name}"));
        }
        flags.set(name, value);
    }
    Ok(flags)
}

/// Source: docs/sources/rocksdb-db-bench.md#block-caches.
pub(super) fn hyper_clock(version_num: u32) -> &'static str {
    if version_num < 80_600 {
        "hyper_clock_cache"
    } else {
        "auto_hyper_clock_cache"
    }
}

fn published(setup: &RocksdbSetup) -> Flags {
    let mut flags = Flags::default();
    let sizes: [(&str, u64); 27] = [
        ("num", setup.keys),
        ("key_size", u64::from(setup.key_bytes)),
        ("value_size", u64::from(setup.value_bytes)),
        ("block_size", 8192),
        ("cache_size", setup.cache_bytes),
        ("cache_numshardbits", 6),
        ("cache_index_and_filter_blocks", 1),
        ("pin_l0_filter_and_index_blocks_in_cache", 1),
        (
            "bytes_per_sync",
            if setup.workload.direct() { 0 } else { 1 << 20 },
        ),
        ("write_buffer_size", 16 << 20),
        ("target_file_size_base", 16 << 20),
        ("max_bytes_for_level_base", 64 << 20),
        ("max_bytes_for_level_multiplier", 8),
        ("compaction_style", 0),
        ("num_levels", 8),
        ("level_compaction_dynamic_level_bytes", 1),
        ("level0_file_num_compaction_trigger", 4),
        ("level0_slowdown_writes_trigger", 20),
        ("level0_stop_writes_trigger", 30),
        ("max_background_jobs", u64::from(setup.background_jobs)),
        ("max_write_buffer_number", 8),
        ("subcompactions", 1),
        ("verify_checksum", 1),
        ("delete_obsolete_files_period_micros", 60 << 20),
        ("sync", 0),
        ("bloom_bits", 10),
        ("statistics", 0),
    ];
    for (name, value) in sizes {
        flags.set(name, value);
    }
    flags.set("open_files", "-1");
    flags.set("cache_high_pri_pool_ratio", "0.5");
    flags.set("cache_low_pri_pool_ratio", "0");
    flags.set("compression_ratio", "0.5");
    flags.set("memtablerep", "skip_list");
    flags.set("histogram", 1);
    flags.set("stats_per_interval", 1);
    flags.set("stats_interval_seconds", 20);
    if setup.workload.compresses() {
        flags.set("compression_type", "lz4");
        flags.set("min_level_to_compress", 3);
    } else {
        flags.set("compression_type", "none");
    }
    if setup.workload.direct() {
        flags.set("use_direct_reads", 1);
        flags.set("use_direct_io_for_flush_and_compaction", 1);
        flags.set("prepopulate_block_cache", 1);
    }
    flags
}

/// The flags of one step, over the common ones.
pub(super) fn of_step(
    common: &Flags,
    setup: &RocksdbSetup,
    step: RocksdbStep,
    threads: u32,
    seed: u64,
    known: &Known,
) -> Flags {
    let mut flags = common.clone();
    flags.set("benchmarks", benchmarks(step, known));
    flags.set("use_existing_db", u32::from(step != RocksdbStep::Fillseq));
    flags.set("threads", threads);
    // It is signed there, and 0 stands for the time.
    flags.set("seed", (seed >> 1).max(1));
    match step {
        RocksdbStep::Fillseq => {
            flags.set("disable_wal", 1);
            flags.set("memtablerep", "vector");
            flags.set("allow_concurrent_memtable_write", "false");
            if setup.workload.compresses() {
                flags.set("min_level_to_compress", 0);
            }
        }
        RocksdbStep::Overwritesome => {
            let each = setup.keys / u64::from(threads.max(1)) / 10;
            flags.set("writes", each.max(1));
        }
        RocksdbStep::FlushMtL0 => {}
        RocksdbStep::Drain if known.benchmark("waitforcompaction") => {}
        _ => flags.set("duration", setup.seconds),
    }
    match step {
        RocksdbStep::Multireadrandom => {
            flags.set("batch_size", MULTI_READ_BATCH);
            flags.set("multiread_batched", 1);
        }
        RocksdbStep::Fwdrange | RocksdbStep::Fwdrangewhilewriting => {
            flags.set("seek_nexts", SEEK_NEXTS);
        }
        RocksdbStep::Revrangewhilewriting => {
            flags.set("seek_nexts", SEEK_NEXTS);
            flags.set("reverse_iterator", 1);
        }
        _ => {}
    }
    if step.beside_a_writer() {
        flags.set("benchmark_write_rate_limit", setup.writer_bytes_per_second);
    }
    flags
}

/// The flags of a database of ten keys, in which the common ones are in force.
pub(super) fn of_probe(common: &Flags) -> Flags {
    let mut flags = common.clone();
    flags.set("benchmarks", "fillseq,stats");
    flags.set("num", 10);
    flags
}

/// The list of benchmarks that a step is; `stats` last, so that what is told is of all of it.
fn benchmarks(step: RocksdbStep, known: &Known) -> String {
    let wanted: &[&str] = match step {
        RocksdbStep::Fillseq => &["fillseq"],
        // What the published scripts do is to read a little for a while, which is left for those that
        // cannot wait.
        RocksdbStep::Drain if known.benchmark("waitforcompaction") => &["waitforcompaction"],
        RocksdbStep::Drain => &["seekrandom"],
        RocksdbStep::Readrandom => &["readrandom"],
        RocksdbStep::Fwdrange => &["seekrandom"],
        RocksdbStep::Multireadrandom => &["multireadrandom"],
        RocksdbStep::Overwritesome => &["overwrite"],
        RocksdbStep::FlushMtL0 => &[
            "levelstats",
            "flush",
            "waitforcompaction",
            "compact0",
            "waitforcompaction",
            "memstats",
            "levelstats",
        ],
        RocksdbStep::Revrangewhilewriting | RocksdbStep::Fwdrangewhilewriting => {
            &["seekrandomwhilewriting"]
        }
        RocksdbStep::Readwhilewriting => &["readwhilewriting"],
        RocksdbStep::Overwriteandwait => &["overwrite", "waitforcompaction"],
    };
    let usable = wanted
        .iter()
        .filter(|name| !SOMETIMES_MISSING.contains(name) || known.benchmark(name));
    let mut list: Vec<&str> = usable.copied().collect();
    list.push("stats");
    list.join(",")
}

/// Benchmarks that old versions do not have; multireadrandom and others are not in the help of versions that
/// have them.
const SOMETIMES_MISSING: [&str; 4] = ["flush", "waitforcompaction", "compact0", "memstats"];

/// What this `db_bench` cannot do of what the steps ask for, with what that means.
pub(super) fn left_out(
    common: &Flags,
    setup: &RocksdbSetup,
    known: &Known,
) -> Vec<(String, String)> {
    let mut names: Vec<(String, String)> = Vec::new();
    let mut tell = |name: &str, why: &str| {
        if !names.iter().any(|(told, _)| told == name) {
            names.push((name.to_owned(), why.to_owned()));
        }
    };
    for &step in &setup.steps {
        let flags = of_step(common, setup, step, 1, 1, known);
        for name in flags.unknown(known) {
            tell(name, "this db_bench has no such flag");
        }
        let waits = matches!(
            step,
            RocksdbStep::Drain | RocksdbStep::FlushMtL0 | RocksdbStep::Overwriteandwait
        );
        if waits && !known.benchmark("waitforcompaction") {
            tell(
                "waitforcompaction",
                "this db_bench cannot wait for compactions",
            );
        }
        if step == RocksdbStep::FlushMtL0 {
            for name in ["flush", "compact0"] {
                if !known.benchmark(name) {
                    tell(
                        name,
                        "this db_bench cannot bring its levels into a known shape",
                    );
                }
            }
        }
    }
    names
}
