//! `[rocksdb]`: what is done with RocksDB, in place of workloads.

use crate::excludes::{Excluded, excludes};
use crate::settings;
use deltabench_document::Section;
use deltabench_document::amounts;
use deltabench_model::installation::Engine;
use deltabench_model::problem::Problem;
use deltabench_model::target::TargetSpec;
use deltabench_model::work::rocksdb::{
    self, BLOCK_CACHE, BlockCache, RocksdbStep, RocksdbWorkload, WRITER_BYTES_PER_SECOND,
    check_option,
};

/// Of `[rocksdb]`.
pub(crate) const KEYS: [&str; 11] = [
    "workload",
    "keys",
    "value_bytes",
    "threads",
    "seconds",
    "writer_rate",
    "steps",
    "cache_size",
    "background_jobs",
    "options",
    "placebo",
];
/// Keys of a database.
pub(crate) const KEY_COUNT: std::ops::RangeInclusive<i64> = 1000..=100_000_000_000;
/// Bytes of a value.
const VALUE_BYTES: std::ops::RangeInclusive<i64> = 8..=1_048_576;
/// Threads of a step.
const THREADS: std::ops::RangeInclusive<i64> = 1..=1024;
/// Seconds of a step.
const SECONDS: std::ops::RangeInclusive<i64> = 1..=86_400;
/// Threads for flushes and compactions.
const BACKGROUND_JOBS: std::ops::RangeInclusive<i64> = 1..=1024;

/// All of `[rocksdb]` but the keys, which are an axis of parts.
#[derive(Debug, Clone, PartialEq)]
pub struct Rocksdb {
    /// How the database lies to memory.
    pub workload: RocksdbWorkload,
    pub value_bytes: u32,
    /// Thread counts, as written; those that are wanted are the clients of the workloads.
    pub threads: Vec<u32>,
    /// Seconds of each timed step.
    pub seconds: u32,
    /// What the writer beside readers puts per second.
    pub writer_bytes_per_second: u64,
    pub steps: Vec<RocksdbStep>,
    /// Bytes of the block cache; absent: by workload and keys.
    pub cache_bytes: Option<u64>,
    /// Threads for flushes and compactions.
    pub background_jobs: u32,
    /// Options for every target, in the order of the file.
    pub options: Vec<(String, String)>,
    /// Whether the base runs twice.
    pub placebo: bool,
}

/// Reads `[rocksdb]`; `None` when the file has none.
pub(crate) fn rocksdb(root: &Section<'_>) -> Result<Option<Rocksdb>, Problem> {
    let Some(section) = root.section("rocksdb", "[rocksdb]")? else {
        return Ok(None);
    };
    section.allow(&KEYS)?;
    excludes(root, &EXCLUDED)?;
    let workloads = RocksdbWorkload::ALL.map(|workload| (workload.word(), workload));
    Ok(Some(Rocksdb {
        workload: section.word("workload", &workloads)?.unwrap_or_default(),
        value_bytes: section
            .number("value_bytes", VALUE_BYTES)?
            .unwrap_or(rocksdb::VALUE_BYTES),
        threads: section.numbers("threads", THREADS)?.unwrap_or(vec![1]),
        seconds: section
            .number("seconds", SECONDS)?
            .unwrap_or(rocksdb::STEP_SECONDS),
        writer_bytes_per_second: size(&section, "writer_rate")?.unwrap_or(WRITER_BYTES_PER_SECOND),
        steps: steps(&section)?,
        cache_bytes: size(&section, "cache_size")?,
        background_jobs: section
            .number("background_jobs", BACKGROUND_JOBS)?
            .unwrap_or(rocksdb::BACKGROUND_JOBS),
        options: options(&section)?,
        placebo: section.flag("placebo")?.unwrap_or(true),
    }))
}

/// `64MB` as bytes.
fn size(section: &Section<'_>, key: &str) -> Result<Option<u64>, Problem> {
    let Some((text, at)) = section.text(key)? else {
        return Ok(None);
    };
    match amounts::bytes(text) {
        Some(bytes) => Ok(Some(bytes)),
        None => Err(section
            .problem_at(at, format!("`{key}` is \"{text}\", which is not a size"))
            .hint(format!("write for example {key} = \"64MB\" or \"2GB\""))),
    }
}

fn steps(section: &Section<'_>) -> Result<Vec<RocksdbStep>, Problem> {
    let Some(named) = section.list_of_texts("steps")? else {
        return Ok(RocksdbStep::published());
    };
    if let ([], Some((_, at))) = (named.as_slice(), section.value("steps")) {
        return Err(section.problem_at(at, "`steps` is an empty list"));
    }
    let known = RocksdbStep::ALL.map(RocksdbStep::name);
    let read = |(name, at): (&str, usize)| {
        let found = RocksdbStep::from_name(name);
        found.ok_or_else(|| section.unknown_word(at, "step", name, &known))
    };
    named.into_iter().map(read).collect()
}

fn options(section: &Section<'_>) -> Result<Vec<(String, String)>, Problem> {
    let Some(options) = section.section("options", "`options` of [rocksdb]")? else {
        return Ok(Vec::new());
    };
    let fixed = settings::fixed(&options, settings::Booleans::Words)?;
    for (name, _) in &fixed {
        check_option(name).map_err(|problem| options.wrap(options.place(), problem))?;
    }
    Ok(fixed)
}

/// What has no meaning beside RocksDB.
const EXCLUDED: Excluded = Excluded {
    by: "[rocksdb]",
    sections: &[
        (
            "workloads",
            "its steps are the workloads, `threads` of [rocksdb] the clients: leave [workloads] out",
        ),
        ("pgbench", "write two experiments"),
        ("insert", "write two experiments"),
        (
            "data",
            "its sizes are `keys` and `value_bytes` of [rocksdb]: leave [data] out",
        ),
        (
            "configurations",
            "its options are `options` of [rocksdb] and `settings` of [[servers]]",
        ),
    ],
    keys: &[
        (
            "measurement",
            "sustained",
            "its steps are not interrupted: leave this key out",
        ),
        (
            "measurement",
            "visit_seconds",
            "how long a step is measured is `seconds` of [rocksdb]",
        ),
        (
            "measurement",
            "write_seconds",
            "how long a step is measured is `seconds` of [rocksdb]",
        ),
        (
            "measurement",
            "warmup",
            "how long a step warms up follows from `seconds` of [rocksdb]",
        ),
        (
            "measurement",
            "rate",
            "no step has a rate: leave this key out",
        ),
        (
            "measurement",
            "transport",
            "a library has no connections: leave this key out",
        ),
        (
            "measurement",
            "checksums",
            "blocks have the checksums of RocksDB: leave this key out",
        ),
        (
            "measurement",
            "placement",
            "the caller of a library runs on the same cores: leave this key out",
        ),
        (
            "measurement",
            "jobs",
            "the threads of db_bench are `clients` of [workloads]: leave this key out",
        ),
        (
            "measurement",
            "probes",
            "probes go between operations of a connection: leave this key out",
        ),
        (
            "measurement",
            "waits",
            "a library has no wait events: leave this key out",
        ),
        (
            "limits",
            "cache",
            "a step starts from what earlier steps left",
        ),
    ],
};

/// Refuses targets that the file does not measure, and keys that they do not have; `wanted`: whether it
/// measures RocksDB.
pub(crate) fn check_targets(
    section: &Section<'_>,
    targets: &[TargetSpec],
    wanted: bool,
) -> Result<(), Problem> {
    let strange = |target: &&TargetSpec| (target.engine() != Engine::Postgres) != wanted;
    let at = |key: &str| section.value(key).map(|(_, at)| at);
    match (targets.iter().find(strange), at("target")) {
        (Some(target), Some(at)) if wanted => {
            return Err(section
                .problem_at(
                    at,
                    format!("{target} is a server, but this file measures [rocksdb]"),
                )
                .hint("write for example target = \"rocksdb:10.2.1\", or leave [rocksdb] out"));
        }
        (Some(target), Some(at)) => {
            return Err(section
                .problem_at(at, format!("{target} is not a server"))
                .hint("use [rocksdb] instead of [workloads] to measure RocksDB"));
        }
        _ => {}
    }
    if let (true, Some(at)) = (wanted, at("configuration")) {
        return Err(section
            .problem_at(at, "`configuration` applies only to servers")
            .hint("options of RocksDB are `options` of [rocksdb] and `settings` of [[servers]]"));
    }
    if let (false, Some(at)) = (wanted, at(BLOCK_CACHE)) {
        return Err(section.problem_at(at, "`block_cache` applies only to targets of RocksDB"));
    }
    Ok(())
}

/// The block caches and options of an entry of RocksDB: the cache varies slowest.
pub(crate) fn of_servers(
    section: &Section<'_>,
    targets: &[TargetSpec],
) -> Result<Vec<settings::Swept>, Problem> {
    let words = match section.texts(BLOCK_CACHE)? {
        None => vec![BlockCache::Lru.word().to_owned()],
        Some(words) => {
            for (word, at) in &words {
                check_cache(section, word, targets, *at)?;
            }
            words.iter().map(|(word, _)| (*word).to_owned()).collect()
        }
    };
    let own = settings::own(section, settings::Booleans::Words)?;
    for (name, _) in &own {
        check_option(name).map_err(|problem| section.wrap(section.place(), problem))?;
    }
    let mut all = vec![(BLOCK_CACHE.to_owned(), words)];
    all.extend(own);
    Ok(all)
}

/// The block cache's word, and whether the targets can have it as far as they tell their versions.
///
/// Errors: a word that is none, a target that is too old for it.
fn check_cache(
    section: &Section<'_>,
    word: &str,
    targets: &[TargetSpec],
    at: usize,
) -> Result<(), Problem> {
    let Some(cache) = BlockCache::from_word(word) else {
        let known = [BlockCache::Lru.word(), BlockCache::HyperClock.word()];
        return Err(section.unknown_word(at, "block cache", word, &known));
    };
    let without = |target: &&TargetSpec| !cache.is_in(target.engine(), target.rocksdb_version());
    match targets.iter().find(without) {
        None => Ok(()),
        Some(target) => Err(section
            .problem_at(at, format!("{target} has no block cache \"{word}\""))
            .hint("give targets that have it a separate entry")),
    }
}
