//! Sizes that hold where nothing else is asked for.

use super::arguments::PublishedWord;
use deltabench_model::work::rocksdb;

/// Sizes of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    /// Threads of the steps that are not single.
    pub threads: u32,
    pub keys: u64,
    /// Seconds of a timed step.
    pub seconds: u32,
    /// Bytes of the block cache; absent: what the workload and the keys make of it.
    pub cache_bytes: Option<u64>,
    /// Threads for flushes and compactions.
    pub background_jobs: u32,
    pub blocks: u32,
    /// Length of a turn.
    pub slice_ms: u32,
}

/// Length of a turn, ms: a hundred in ten seconds, and long beside what it takes to let a process go on.
pub const SLICE_MS: u32 = 100;

/// Less than half an hour in all.
const USUAL: Preset = Preset {
    threads: 1,
    keys: rocksdb::KEYS,
    seconds: rocksdb::STEP_SECONDS,
    cache_bytes: None,
    background_jobs: rocksdb::BACKGROUND_JOBS,
    blocks: 8,
    slice_ms: SLICE_MS,
};

/// Minutes in all.
const QUICK: Preset = Preset {
    keys: 200_000,
    seconds: 2,
    blocks: 6,
    ..USUAL
};

/// Turns are longer: those of half an hour would be tens of thousands of slices.
///
/// Source: docs/sources/rocksdb-db-bench.md#workloads-and-sizes.
const PUBLISHED: Preset = Preset {
    threads: 1,
    keys: 20_000_000,
    seconds: 1800,
    cache_bytes: Some(20 << 30),
    background_jobs: 4,
    blocks: 6,
    slice_ms: 1000,
};

/// The published block cache of a database that is in the page cache.
///
/// Source: docs/sources/rocksdb-db-bench.md#workloads-and-sizes.
pub const PUBLISHED_SMALL_CACHE: u64 = 1 << 30;

impl Preset {
    /// The sizes of `--quick`, of a published study, or those that are usual.
    pub fn of(quick: bool, published: Option<PublishedWord>) -> Self {
        match published {
            None if quick => QUICK,
            None => USUAL,
            Some(PublishedWord::Small) => PUBLISHED,
            Some(PublishedWord::Large24) => Self {
                threads: 16,
                keys: 40_000_000,
                cache_bytes: Some(48 << 30),
                background_jobs: 12,
                ..PUBLISHED
            },
            Some(PublishedWord::Large32) => Self {
                threads: 24,
                keys: 50_000_000,
                cache_bytes: Some(90 << 30),
                background_jobs: 8,
                ..PUBLISHED
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::defaults::help::{self, says};

    #[test]
    fn help_says_what_is_usual_and_what_quick() {
        let (usual, quick) = (USUAL, QUICK);
        help::says_delta("rocksdb", "step");
        let keys = (usual.keys / 1_000_000, quick.keys / 1000);
        says(
            "rocksdb",
            "keys",
            &format!("{}M, with --quick {}k", keys.0, keys.1),
        );
        says("rocksdb", "threads", &usual.threads.to_string());
        let seconds = format!("{}, with --quick {}", usual.seconds, quick.seconds);
        says("rocksdb", "seconds", &seconds);
        says(
            "rocksdb",
            "background_jobs",
            &usual.background_jobs.to_string(),
        );
        assert_eq!(quick.blocks, PUBLISHED.blocks);
        let blocks = format!(
            "{}, with --quick or --published {}",
            usual.blocks, quick.blocks
        );
        says("rocksdb", "blocks", &blocks);
        let turn = format!(
            "{}, with --published {}",
            usual.slice_ms, PUBLISHED.slice_ms
        );
        says("rocksdb", "slice_ms", &turn);
    }
}
