//! What moved in a step: differences of two readings, gauges at its end, and counts of counted turns.

use super::hand::FOUND_IN_MEMTABLES;
use super::{idle, meters};
use crate::library::Database;
use crate::stats_text::{self, StatsText};
use deltabench_model::units::to_f64;
use deltabench_model::work::rocksdb::StepFigures;
use std::collections::BTreeMap;

/// All that adds up, at one moment.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    stats: StatsText,
    written_and_read: Option<(u64, u64)>,
    user_ns: u64,
    system_ns: u64,
    active_ns: u64,
    suspended_job_ns: u64,
    /// Flushes and compactions under way.
    jobs: u64,
}

/// What a worker knows of itself at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Own {
    /// Time in which the process was not frozen, nanoseconds.
    pub active_ns: u64,
    /// Time, summed over flushes and compactions, for which they were frozen, nanoseconds. The library takes
    /// it for work.
    pub suspended_job_ns: u64,
    pub answer_bytes: u64,
}

impl Reading {
    /// Reads everything.
    pub fn of(database: &Database, own: Own) -> Self {
        // Asked first: what ends from here on is in the times of jobs.
        let jobs = idle::jobs(database);
        let written_and_read = meters::written_and_read();
        let text = database.property("rocksdb.stats").unwrap_or_default();
        let (user_ns, system_ns) = meters::user_and_system_cpu();
        Self {
            stats: stats_text::parse(&text),
            written_and_read: written_and_read
                .map(|(written, read)| (written.saturating_sub(own.answer_bytes), read)),
            user_ns,
            system_ns,
            active_ns: own.active_ns,
            suspended_job_ns: own.suspended_job_ns,
            jobs,
        }
    }

    /// What moved since `before`; what either does not know is left out.
    pub fn since(&self, before: &Self) -> StepFigures {
        const NS: f64 = 1e9;
        let suspended = to_f64(
            self.suspended_job_ns
                .saturating_sub(before.suspended_job_ns),
        );
        let (now, then) = (&self.stats, &before.stats);
        let moved = |now: Option<f64>, then: Option<f64>, unit: f64| {
            now.zip(then)
                .map(|(now, then)| ((now - then) * unit).max(0.0))
        };
        // The library books a job when it ends, with all the time for which it was frozen: of one that goes
        // over an end of the step nobody knows which part of that is in it.
        let jobs = moved(now.compaction_seconds, then.compaction_seconds, NS)
            .filter(|_| self.jobs == 0 && before.jobs == 0);
        let bytes = self.written_and_read.zip(before.written_and_read);
        let difference = |now: u64, then: u64| Some(to_f64(now.saturating_sub(then)));
        let all = [
            (
                "compaction_write_bytes",
                moved(now.compaction_write_bytes, then.compaction_write_bytes, 1.0),
            ),
            (
                "compaction_read_bytes",
                moved(now.compaction_read_bytes, then.compaction_read_bytes, 1.0),
            ),
            (
                "compaction_ns",
                jobs.map(|jobs| (jobs - suspended).max(0.0)),
            ),
            (
                "compaction_cpu_ns",
                moved(now.compaction_cpu_seconds, then.compaction_cpu_seconds, NS),
            ),
            ("flush_bytes", moved(now.flush_bytes, then.flush_bytes, 1.0)),
            (
                "ingest_bytes",
                moved(now.ingest_bytes, then.ingest_bytes, 1.0),
            ),
            (
                "wal_write_bytes",
                moved(now.wal_write_bytes, then.wal_write_bytes, 1.0),
            ),
            ("stall_ns", moved(now.stall_seconds, then.stall_seconds, NS)),
            ("stalls", moved(now.stalls, then.stalls, 1.0)),
            ("active_ns", difference(self.active_ns, before.active_ns)),
            ("user_cpu_ns", difference(self.user_ns, before.user_ns)),
            (
                "system_cpu_ns",
                difference(self.system_ns, before.system_ns),
            ),
            (
                "process_written_bytes",
                bytes.and_then(|(now, then)| difference(now.0, then.0)),
            ),
            (
                "process_read_bytes",
                bytes.and_then(|(now, then)| difference(now.1, then.1)),
            ),
        ];
        told(all)
    }
}

/// Sizes as they are now, and the largest memory if it is that of the step.
pub fn gauges(database: &Database, knows_rss: bool) -> StepFigures {
    let number = |name: &str| database.number(name).map(to_f64);
    told([
        ("lsm_bytes", number("rocksdb.live-sst-files-size")),
        ("blob_bytes", number("rocksdb.live-blob-file-size")),
        ("l0_files", idle::level_0_files(database).map(to_f64)),
        ("block_cache_bytes", number("rocksdb.block-cache-usage")),
        (
            "largest_rss_bytes",
            meters::largest_rss().filter(|_| knows_rss).map(to_f64),
        ),
    ])
}

/// What counted turns of a step did, and what the library counted in them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counted {
    pub operations: u64,
    /// Entries that cursors went over; 0 for steps without.
    pub moves: u64,
    /// Counts that were not 0, by name.
    pub counts: BTreeMap<String, u64>,
}

/// Counts, scaled to the operations of the step.
///
/// Shape:  what is not in the counts is 0, but for keys found in memtables, which not every step can tell.
/// Source: `perf_context.h` of RocksDB: an entry that a cursor leaves counts as skipped too, and is taken
/// off.
pub fn scaled(counted: &Counted, operations: u64) -> StepFigures {
    if counted.operations == 0 || operations == 0 {
        return StepFigures::new();
    }
    let scale = to_f64(operations) / to_f64(counted.operations);
    let counts = &counted.counts;
    let count = |name: &str| counts.get(name).copied().unwrap_or(0);
    let figure = |number: u64| Some(to_f64(number) * scale);
    let hidden = count("internal_key_skipped_count").saturating_sub(counted.moves);
    let skipped = hidden + count("internal_delete_skipped_count");
    told([
        ("block_cache_hits", figure(count("block_cache_hit_count"))),
        ("block_cache_misses", figure(count("block_read_count"))),
        (
            "key_comparisons",
            figure(count("user_key_comparison_count")),
        ),
        ("bloom_hits", figure(count("bloom_sst_hit_count"))),
        (
            "memtable_hits",
            counts.get(FOUND_IN_MEMTABLES).copied().and_then(figure),
        ),
        ("skipped_keys", figure(skipped)),
    ])
}

fn told<const N: usize>(all: [(&str, Option<f64>); N]) -> StepFigures {
    all.into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_for_which_jobs_were_frozen_is_no_time_of_theirs() {
        let reading = |seconds: f64, suspended_job_ns: u64| Reading {
            stats: StatsText {
                compaction_seconds: Some(seconds),
                ..StatsText::default()
            },
            suspended_job_ns,
            ..Reading::default()
        };
        let moved = reading(7.5, 5_000_000_000).since(&reading(1.0, 1_000_000_000));
        assert_eq!(moved.get("compaction_ns"), Some(&2.5e9));
        assert_eq!(moved.get("stall_ns"), None, "not known is not 0");
        let clamped = reading(1.0, 5_000_000_000).since(&reading(1.0, 0));
        assert_eq!(clamped.get("compaction_ns"), Some(&0.0));
        let busy = Reading {
            jobs: 1,
            ..reading(7.5, 0)
        };
        assert_eq!(busy.since(&reading(1.0, 0)).get("compaction_ns"), None);
        assert_eq!(reading(9.0, 0).since(&busy).get("compaction_ns"), None);
    }

    #[test]
    fn counts_are_scaled_to_the_operations_that_were_measured() {
        let counted = Counted {
            operations: 10,
            moves: 100,
            counts: BTreeMap::from([
                ("block_cache_hit_count".to_owned(), 30),
                ("internal_key_skipped_count".to_owned(), 105),
                ("internal_delete_skipped_count".to_owned(), 1),
            ]),
        };
        let figures = scaled(&counted, 1000);
        assert_eq!(figures.get("block_cache_hits"), Some(&3000.0));
        assert_eq!(figures.get("block_cache_misses"), Some(&0.0));
        assert_eq!(figures.get("skipped_keys"), Some(&600.0));
        assert_eq!(
            figures.get("memtable_hits"),
            None,
            "not every step can tell"
        );
        assert!(scaled(&Counted::default(), 1000).is_empty());
    }
}
