//! Options as the published studies set them, then those of the setup, then those of the target.
//!
//! All are written as option files write them and read by the library itself, one by one, so that each can be
//! refused or left out in its own words. Those of the studies that a version does not know are left out and
//! told, as `db_bench --undefok` does; those that a user gave are refused.
//!
//! Source: docs/sources/rocksdb-db-bench.md; defaults of `db_bench` that are not those of the library:
//! `tools/db_bench_tool.cc`, the same in 6.29 and 10.2.

use crate::library::{Cache, Library, Options, SHARD_BITS};
use crate::protocol::OpenOrder;
use deltabench_model::work::rocksdb::{BLOCK_CACHE, BlockCache};
use std::collections::BTreeMap;
use std::path::Path;

/// Bytes of a block.
const BLOCK_BYTES: u64 = 8192;

/// Levels of the tree.
const LEVELS: usize = 8;

/// The first level whose blocks are compressed, but for loads, where all are.
const MIN_LEVEL_TO_COMPRESS: usize = 3;

/// Word of the option that holds those of the tables.
const TABLES: &str = "block_based_table_factory";

/// First version whose HyperClock cache finds the size of its entries by itself.
///
/// Source: docs/sources/rocksdb-db-bench.md#block-caches, RocksDB's HISTORY of 8.7.0.
const CLOCK_SIZES_ITSELF: (u32, u32) = (8, 7);

/// What a database is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The load in order: vector memtables, one writer, all levels compressed.
    Loading,
    /// All that comes after it.
    Working,
}

/// Options that a library took.
pub struct Taken {
    pub options: Options,
    /// Those that it does not know, with its words.
    pub left_out: Vec<(String, String)>,
    /// Which block cache, in words.
    pub cache: String,
}

/// Makes the options of a database.
///
/// Errors: an option of a user's that the library does not know or cannot read, in its words; a block cache
///         that it does not have.
pub fn take(
    library: &'static Library,
    order: &OpenOrder,
    purpose: Purpose,
    version: (u32, u32),
) -> Result<Taken, String> {
    let mut taken = Taken {
        options: Options::new(library),
        left_out: Vec::new(),
        cache: BlockCache::Lru.word().to_owned(),
    };
    let mut cache_text = None;
    match order.cache {
        BlockCache::Lru => cache_text = Some(lru(order.setup.cache_bytes)),
        BlockCache::HyperClock => {
            let entry_bytes = if version < CLOCK_SIZES_ITSELF {
                BLOCK_BYTES
            } else {
                0
            };
            let cache = Cache::hyper_clock(library, order.setup.cache_bytes, entry_bytes)?;
            taken.options.set_block_cache(&cache);
            taken.cache = match entry_bytes {
                0 => "hyper-clock (sized by itself)".to_owned(),
                bytes => format!("hyper-clock (entries of {bytes} bytes)"),
            };
        }
    }
    for (name, value) in tables(order).into_iter().chain(cache_text) {
        taken.try_one(&name, &format!("{TABLES}={{{name}={value}}}"));
    }
    for (name, value) in published(order, purpose) {
        taken.try_one(&name, &format!("{name}={value}"));
    }
    for (name, value) in of_users(order) {
        taken.options = user_one(&taken.options, name, value)?;
    }
    if let Some(levels) = compression_by_level(order, purpose) {
        taken.try_one(
            "compression_per_level",
            &format!("compression_per_level={levels}"),
        );
    }
    if purpose == Purpose::Loading {
        taken.options = taken
            .options
            .with("allow_concurrent_memtable_write=false")?;
        taken.options.set_vector_memtables();
    }
    Ok(taken)
}

impl Taken {
    /// Sets one option of ours, or leaves it out. Its value is right in the versions that have it, so that a
    /// refusal, worded differently by each, says that this one has not.
    fn try_one(&mut self, name: &str, text: &str) {
        match self.options.with(text) {
            Ok(options) => self.options = options,
            Err(words) => self.left_out.push((name.to_owned(), words)),
        }
    }
}

/// Sets an option of a user's: of the database, else of its tables.
fn user_one(options: &Options, name: &str, value: &str) -> Result<Options, String> {
    let braced = match value.contains([';', '=']) && !value.starts_with('{') {
        true => format!("{{{value}}}"),
        false => value.to_owned(),
    };
    let text = match name.split_once('.') {
        Some((holder, part)) => format!("{holder}={{{part}={braced}}}"),
        None => format!("{name}={braced}"),
    };
    let words = match options.with(&text) {
        Ok(options) => return Ok(options),
        Err(words) => words,
    };
    if !name.contains('.') {
        match options.with(&format!("{TABLES}={{{name}={braced}}}")) {
            Ok(options) => return Ok(options),
            Err(of_tables) if tells_nothing(&words) && !tells_nothing(&of_tables) => {
                return Err(told(name, value, &of_tables));
            }
            Err(_) => {}
        }
    }
    Err(told(name, value, &words))
}

/// A refusal of a user's option.
fn told(name: &str, value: &str, words: &str) -> String {
    format!("option {name}={value}: {words}")
}

/// Whether these words of some version say only that it does not know an option, or not even that.
fn tells_nothing(words: &str) -> bool {
    [
        "Unrecognized option",
        "not recognized",
        "Could not find option",
        "Cannot find option",
        "Can't parse option",
    ]
    .iter()
    .any(|told| words.contains(told))
}

/// Options of users, later ones winning; the cache is said elsewhere.
fn of_users(order: &OpenOrder) -> impl Iterator<Item = (&str, &str)> {
    order
        .setup
        .options
        .iter()
        .chain(&order.options)
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .filter(|(name, value)| *name != BLOCK_CACHE || BlockCache::from_word(value).is_none())
}

/// The cache that every version has.
///
/// Source: docs/sources/rocksdb-db-bench.md#flags; half of it is kept for indexes and filters first.
fn lru(bytes: u64) -> (String, String) {
    let text = format!(
        "{{capacity={bytes};num_shard_bits={SHARD_BITS};strict_capacity_limit=false;high_pri_pool_ratio=0.5}}"
    );
    (BLOCK_CACHE.to_owned(), text)
}

/// Options of the tables.
fn tables(order: &OpenOrder) -> Vec<(String, String)> {
    let mut options = vec![
        ("block_size", BLOCK_BYTES.to_string()),
        ("filter_policy", "bloomfilter:10:false".to_owned()),
        ("cache_index_and_filter_blocks", "true".to_owned()),
        (
            "cache_index_and_filter_blocks_with_high_priority",
            "true".to_owned(),
        ),
        (
            "pin_l0_filter_and_index_blocks_in_cache",
            "false".to_owned(),
        ),
    ];
    if order.setup.workload.direct() {
        options.push(("prepopulate_block_cache", "kFlushOnly".to_owned()));
    }
    owned(options)
}

/// Options of the database and of its column family.
fn published(order: &OpenOrder, purpose: Purpose) -> Vec<(String, String)> {
    const MIB: u64 = 1 << 20;
    let setup = &order.setup;
    let direct = setup.workload.direct();
    owned(vec![
        ("write_buffer_size", (16 * MIB).to_string()),
        ("target_file_size_base", (16 * MIB).to_string()),
        ("max_bytes_for_level_base", (64 * MIB).to_string()),
        ("max_bytes_for_level_multiplier", "8".to_owned()),
        ("num_levels", LEVELS.to_string()),
        ("level_compaction_dynamic_level_bytes", "true".to_owned()),
        ("level0_file_num_compaction_trigger", "4".to_owned()),
        ("level0_slowdown_writes_trigger", "20".to_owned()),
        ("level0_stop_writes_trigger", "30".to_owned()),
        ("max_write_buffer_number", "8".to_owned()),
        ("compression", compression(order)),
        ("max_open_files", "-1".to_owned()),
        ("max_subcompactions", "1".to_owned()),
        ("max_background_jobs", setup.background_jobs.to_string()),
        ("bytes_per_sync", if direct { 0 } else { MIB }.to_string()),
        (
            "delete_obsolete_files_period_micros",
            (60 * MIB).to_string(),
        ),
        ("use_direct_reads", direct.to_string()),
        ("use_direct_io_for_flush_and_compaction", direct.to_string()),
        ("enable_pipelined_write", "true".to_owned()),
        ("delayed_write_rate", (8 * MIB).to_string()),
        ("table_cache_numshardbits", "4".to_owned()),
        (
            "allow_concurrent_memtable_write",
            (purpose == Purpose::Working).to_string(),
        ),
    ])
}

/// Names and values that can be joined by others.
fn owned(options: Vec<(&str, String)>) -> Vec<(String, String)> {
    options
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// What a user says last about an option.
fn said<'a>(order: &'a OpenOrder, wanted: &str) -> Option<&'a str> {
    of_users(order)
        .filter(|(name, _)| *name == wanted)
        .map(|(_, value)| value)
        .last()
}

/// How blocks are compressed that are compressed.
fn compression(order: &OpenOrder) -> String {
    let ours = match order.setup.workload.compresses() {
        true => "kLZ4Compression",
        false => "kNoCompression",
    };
    said(order, "compression").unwrap_or(ours).to_owned()
}

/// How each level is compressed, unless a user says so.
fn compression_by_level(order: &OpenOrder, purpose: Purpose) -> Option<String> {
    if said(order, "compression_per_level").is_some() {
        return None;
    }
    let levels = said(order, "num_levels").and_then(|levels| levels.parse().ok());
    let first = match purpose {
        Purpose::Loading => 0,
        Purpose::Working => MIN_LEVEL_TO_COMPRESS,
    };
    let compression = compression(order);
    let by_level: Vec<&str> = (0..levels.unwrap_or(LEVELS))
        .map(|level| match level < first {
            true => "kNoCompression",
            false => compression.as_str(),
        })
        .collect();
    Some(by_level.join(":"))
}

/// All options in force, from the newest option file beside a database: by `SECTION.name`.
///
/// Errors: there is none, or it cannot be read.
pub fn in_force(directory: &Path) -> Result<BTreeMap<String, String>, String> {
    let unreadable = |error: std::io::Error| format!("{}: {error}", directory.display());
    let mut newest = None;
    for entry in std::fs::read_dir(directory).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("OPTIONS-"));
        newest = newest.max(number.and_then(|number| number.parse::<u64>().ok()));
    }
    let newest = newest.ok_or_else(|| format!("{}: no option file", directory.display()))?;
    let text = std::fs::read_to_string(directory.join(format!("OPTIONS-{newest:06}")));
    Ok(parsed(&text.map_err(unreadable)?))
}

/// The lines of an option file.
fn parsed(text: &str) -> BTreeMap<String, String> {
    let mut section = String::new();
    let mut options = BTreeMap::new();
    for line in text.lines().map(str::trim) {
        if let Some(header) = line
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            let word = header.split_whitespace().next().unwrap_or_default();
            section = word.to_owned();
        } else if let Some((name, value)) = line.split_once('=').filter(|_| !line.starts_with('#'))
        {
            options.insert(
                format!("{section}.{}", name.trim()),
                value.trim().to_owned(),
            );
        }
    }
    options
}

/// The version that wrote an option file, as its first two numbers.
///
/// Errors: the file does not say.
pub fn version(in_force: &BTreeMap<String, String>) -> Result<(u32, u32), String> {
    let text = in_force
        .get("Version.rocksdb_version")
        .map_or("", String::as_str);
    let mut parts = text.split('.').map(str::parse);
    match (parts.next(), parts.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => Ok((major, minor)),
        _ => Err(format!(
            "the library reports an unreadable version: `{text}`"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_model::work::rocksdb::{RocksdbSetup, RocksdbWorkload};

    fn order(workload: RocksdbWorkload, options: &[(&str, &str)]) -> OpenOrder {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        OpenOrder {
            library: "librocksdb.so".into(),
            directory: "db".into(),
            setup: RocksdbSetup {
                workload,
                keys: 1000,
                key_bytes: 20,
                value_bytes: 400,
                threads: vec![1],
                seconds: 1,
                writer_bytes_per_second: 0,
                steps: Vec::new(),
                cache_bytes: 1 << 20,
                background_jobs: 3,
                options: options.iter().map(owned).collect(),
            },
            cache: BlockCache::Lru,
            options: Vec::new(),
        }
    }

    #[test]
    fn levels_are_compressed_as_published_or_as_users_say() {
        let levels = |options: &[(&str, &str)], purpose| {
            compression_by_level(&order(RocksdbWorkload::Iobuf, options), purpose)
        };
        assert_eq!(
            levels(&[("num_levels", "5")], Purpose::Working).unwrap(),
            "kNoCompression:kNoCompression:kNoCompression:kLZ4Compression:kLZ4Compression"
        );
        assert_eq!(
            levels(
                &[("num_levels", "2"), ("compression", "kZSTD")],
                Purpose::Loading
            )
            .unwrap(),
            "kZSTD:kZSTD"
        );
        assert_eq!(
            levels(&[("compression_per_level", "kZSTD")], Purpose::Working),
            None
        );
        let none = order(RocksdbWorkload::Byrx, &[]);
        assert!(
            !compression_by_level(&none, Purpose::Working)
                .unwrap()
                .contains("LZ4")
        );
    }

    #[test]
    fn past_the_page_cache_nothing_is_synced_bit_by_bit() {
        let of = |workload| published(&order(workload, &[]), Purpose::Working);
        let find = |workload, wanted: &str| {
            let found = of(workload).into_iter().find(|(name, _)| name == wanted);
            found.unwrap().1
        };
        assert_eq!(find(RocksdbWorkload::Iodir, "bytes_per_sync"), "0");
        assert_eq!(find(RocksdbWorkload::Iodir, "use_direct_reads"), "true");
        assert_eq!(find(RocksdbWorkload::Iobuf, "bytes_per_sync"), "1048576");
        assert_eq!(find(RocksdbWorkload::Iobuf, "use_direct_reads"), "false");
    }

    #[test]
    fn an_option_file_is_read_by_section() {
        let read = parsed(
            "# comment\n[Version]\n  rocksdb_version=10.2.1\n\
             [CFOptions \"default\"]\n  write_buffer_size=16777216\n",
        );
        assert_eq!(read.get("CFOptions.write_buffer_size").unwrap(), "16777216");
        assert_eq!(version(&read), Ok((10, 2)));
        assert!(version(&BTreeMap::new()).is_err());
    }
}
