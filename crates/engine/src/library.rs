//! RocksDB behind its C interface: what deltabench needs of it, as types that cannot be misused.
//!
//! A library stays loaded until its process ends, because it keeps things of each thread and of its own
//! threads. What an older version lacks is told when it is asked for.

mod database;
mod interface;

pub use database::{Database, Lookup, ReadOptions, WriteOptions};

use interface::{ErrorPlace, Interface, RawCache, RawContext, RawOptions};
use libc::{c_char, c_int};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::marker::PhantomData;
use std::path::Path;
use std::ptr;

/// Levels of the performance context: nothing is counted; counts but no times.
const COUNT_NOTHING: c_int = 1;
const COUNT_EVENTS: c_int = 2;

/// Numbers of the performance context's metrics: blocks found in the cache, blocks read from files.
const BLOCK_CACHE_HITS: c_int = 1;
const BLOCK_READS: c_int = 2;

/// Bits that say how many shards a block cache has (`cache_numshardbits`).
///
/// Source: docs/sources/rocksdb-db-bench.md#flags.
pub const SHARD_BITS: c_int = 6;

/// A loaded library.
pub struct Library {
    interface: Interface,
}

impl Library {
    /// Loads one, for the rest of the process's life.
    ///
    /// Errors: the loader's words: no such file, not a library, a function that is missing.
    pub fn load(path: &Path) -> Result<&'static Self, String> {
        // SAFETY: the initialisers of the library run here, in a process that exists for nothing else and
        // that has no other thread yet.
        let library = unsafe { libloading::Library::new(path) };
        let library = library.map_err(|error| error.to_string())?;
        let interface = Interface::of(&library).map_err(|error| {
            format!("{} is not a known RocksDB library: {error}", path.display())
        })?;
        std::mem::forget(library);
        Ok(Box::leak(Box::new(Self { interface })))
    }

    /// Whether keys of one look-up can share reads of files.
    pub fn looks_up_batches(&self) -> bool {
        self.interface.batched_multi_get_cf.is_some()
    }

    /// Makes a call that tells failures in words.
    fn checked<T>(&self, call: impl FnOnce(ErrorPlace) -> T) -> Result<T, String> {
        let mut error: *mut c_char = ptr::null_mut();
        let result = call(&raw mut error);
        if error.is_null() {
            return Ok(result);
        }
        // SAFETY: the library put a string of its own there.
        Err(unsafe { self.taken(error) })
    }

    /// Copies a string of the library's and gives its memory back.
    ///
    /// # Safety
    ///
    /// It is a string that the library made and nobody has given back.
    unsafe fn taken(&self, text: *mut c_char) -> String {
        // SAFETY: it is a string that ends, says the caller.
        let copied = unsafe { CStr::from_ptr(text) }
            .to_string_lossy()
            .into_owned();
        // SAFETY: nobody has given it back, says the caller, and nobody uses it from here on.
        unsafe { (self.interface.free)(text.cast()) };
        copied
    }
}

/// A text for the library.
fn c_string(text: &str) -> Result<CString, String> {
    CString::new(text).map_err(|_| format!("`{text}` contains a zero byte"))
}

/// Options of a database.
pub struct Options {
    library: &'static Library,
    raw: *mut RawOptions,
}

impl Options {
    /// Those that the library begins with, and a database is made where there is none.
    pub fn new(library: &'static Library) -> Self {
        // SAFETY: takes nothing; what it makes is ours until it is dropped.
        let raw = unsafe { (library.interface.options_create)() };
        // SAFETY: made just now.
        unsafe { (library.interface.options_set_create_if_missing)(raw, 1) };
        Self { library, raw }
    }

    /// These, changed by options as option files write them: `name=value;name=value`.
    ///
    /// Errors: the library's words: a name that it does not know, a value that it cannot read.
    pub fn with(&self, text: &str) -> Result<Self, String> {
        let written = c_string(text)?;
        let changed = Self::new(self.library);
        let library = self.library;
        library.checked(|error| {
            // SAFETY: both options are alive, the text ends with zero, the place of the error is ours.
            unsafe {
                (library.interface.get_options_from_string)(
                    self.raw,
                    written.as_ptr(),
                    changed.raw,
                    error,
                );
            }
        })?;
        Ok(changed)
    }

    /// Gives the tables a block cache of our making; their other options begin anew.
    pub fn set_block_cache(&mut self, cache: &Cache) {
        let interface = &self.library.interface;
        // SAFETY: the table options live from their making to their end in these lines; the library copies
        // them, and shares the cache by count.
        unsafe {
            let table = (interface.block_based_options_create)();
            (interface.block_based_options_set_block_cache)(table, cache.raw);
            (interface.options_set_block_based_table_factory)(self.raw, table);
            (interface.block_based_options_destroy)(table);
        }
    }

    /// Memtables are plain vectors, for loads in order.
    pub fn set_vector_memtables(&mut self) {
        // SAFETY: the options are alive.
        unsafe { (self.library.interface.options_set_memtable_vector_rep)(self.raw) };
    }
}

impl Drop for Options {
    fn drop(&mut self) {
        // SAFETY: ours, and given back once.
        unsafe { (self.library.interface.options_destroy)(self.raw) };
    }
}

/// A block cache that cannot be described by a string.
pub struct Cache {
    library: &'static Library,
    raw: *mut RawCache,
}

impl Cache {
    /// A HyperClock cache of so many bytes, for entries of so many bytes; 0 lets it find out by itself, which
    /// versions before 8.7 cannot.
    ///
    /// Errors: the library has none.
    pub fn hyper_clock(
        library: &'static Library,
        capacity: u64,
        entry_bytes: u64,
    ) -> Result<Self, String> {
        let interface = &library.interface;
        let (Some(create), Some(destroy), Some(set_shards), Some(make)) = (
            interface.hyper_clock_cache_options_create,
            interface.hyper_clock_cache_options_destroy,
            interface.hyper_clock_cache_options_set_num_shard_bits,
            interface.cache_create_hyper_clock_opts,
        ) else {
            return Err("this version has no HyperClock cache in its C interface".to_owned());
        };
        let size = |bytes: u64| {
            usize::try_from(bytes).map_err(|_| format!("{bytes} bytes are too many for a cache"))
        };
        let (capacity, entry_bytes) = (size(capacity)?, size(entry_bytes)?);
        // SAFETY: the options live from their making to their end in these lines; the cache is ours.
        let raw = unsafe {
            let options = create(capacity, entry_bytes);
            set_shards(options, SHARD_BITS);
            let cache = make(options);
            destroy(options);
            cache
        };
        if raw.is_null() {
            return Err("the library made no HyperClock cache".to_owned());
        }
        Ok(Self { library, raw })
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        // SAFETY: ours, and given back once; options and databases keep counts of their own.
        unsafe { (self.library.interface.cache_destroy)(self.raw) };
    }
}

/// What the library counts of this thread's calls, while this lives. It never leaves its thread.
pub struct Counting {
    library: &'static Library,
    raw: *mut RawContext,
    /// Counts are those of one thread.
    _stays: PhantomData<*mut ()>,
}

impl Counting {
    /// Begins to count at nothing.
    pub fn begin(library: &'static Library) -> Self {
        let interface = &library.interface;
        // SAFETY: they act on what the library keeps for this thread; the handle is ours until dropped.
        let raw = unsafe {
            (interface.set_perf_level)(COUNT_EVENTS);
            let raw = (interface.perfcontext_create)();
            (interface.perfcontext_reset)(raw);
            raw
        };
        Self {
            library,
            raw,
            _stays: PhantomData,
        }
    }

    /// Blocks that were looked at so far, in the cache or in files.
    pub fn blocks(&self) -> u64 {
        let metric = self.library.interface.perfcontext_metric;
        // SAFETY: the handle is alive, and the numbers are those of metrics that every version has.
        unsafe { metric(self.raw, BLOCK_CACHE_HITS) + metric(self.raw, BLOCK_READS) }
    }

    /// All counts that are not 0, by their names.
    pub fn counts(&self) -> BTreeMap<String, u64> {
        // SAFETY: the handle is alive; the string is the library's own making.
        let text = unsafe {
            let text = (self.library.interface.perfcontext_report)(self.raw, 1);
            if text.is_null() {
                return BTreeMap::new();
            }
            self.library.taken(text)
        };
        counts(&text)
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        // SAFETY: the handle is ours and given back once; the level is this thread's.
        unsafe {
            (self.library.interface.perfcontext_destroy)(self.raw);
            (self.library.interface.set_perf_level)(COUNT_NOTHING);
        }
    }
}

/// The counts of a report, `name = 5, other_name = 6, `; what is no plain count (those by level) is left out.
fn counts(report: &str) -> BTreeMap<String, u64> {
    report
        .split(',')
        .filter_map(|entry| entry.split_once('='))
        .filter_map(|(name, count)| Some((name.trim().to_owned(), count.trim().parse().ok()?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_of_a_performance_context_is_read() {
        let report =
            "user_key_comparison_count = 12, block_cache_hit_count = 3, bloom = 1@level0, , x = ";
        let read = counts(report);
        assert_eq!(read.get("user_key_comparison_count"), Some(&12));
        assert_eq!(read.get("block_cache_hit_count"), Some(&3));
        assert_eq!(read.len(), 2, "{read:?}");
    }

    #[test]
    fn what_is_no_library_or_not_rocksdb_is_refused_with_the_loaders_words() {
        let refused = |path: &str| Library::load(Path::new(path)).err().unwrap();
        assert!(refused("/nowhere/librocksdb.so").contains("/nowhere/librocksdb.so"));
        assert!(refused("libc.so.6").contains("rocksdb_free"));
    }
}
