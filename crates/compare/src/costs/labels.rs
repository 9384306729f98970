//! Costs in words, as sentences need them.

use deltabench_model::metric::metric;
use std::borrow::Cow;

/// What a cost is called in a sentence, for example `user CPU`; an unknown key is its own label.
pub fn label(key: &str) -> Cow<'_, str> {
    if let Some(event) = key.strip_prefix("wait:") {
        return Cow::Owned(format!("wait for {event}"));
    }
    let known = WORDS.iter().find(|(of, _)| *of == key);
    match (known, metric(key)) {
        (Some((_, words)), _) => Cow::Borrowed(words),
        (None, Some(metric)) => Cow::Borrowed(metric.name),
        (None, None) => Cow::Borrowed(key),
    }
}

const WORDS: &[(&str, &str)] = &[
    ("throughput", "throughput"),
    ("server_cpu_us_per_op", "CPU"),
    ("latency_us_p50", "median latency"),
    ("latency_us_p99", "p99 latency"),
    ("machine_cpu_percent_per_op", "CPU of the machine"),
    ("context_switches_per_op", "context switches"),
    ("run_queue_wait_us_per_op", "run-queue wait"),
    ("client_cpu_us_per_op", "client CPU"),
    ("reads_per_op", "reads"),
    ("read_kb_per_op", "KB read"),
    ("writes_per_op", "writes"),
    ("write_kb_per_op", "KB written"),
    ("user_cpu_us_per_op", "user CPU"),
    ("system_cpu_us_per_op", "system CPU"),
    ("voluntary_switches_per_op", "voluntary context switches"),
    (
        "involuntary_switches_per_op",
        "involuntary context switches",
    ),
    ("minor_faults_per_op", "minor page faults"),
    ("major_faults_per_op", "major page faults"),
    ("process_read_kb_per_op", "KB read by its own processes"),
    ("process_write_kb_per_op", "KB written by its own processes"),
    ("instructions_per_op", "instructions"),
    ("cycles_per_op", "cycles"),
    ("branch_misses_per_op", "branch misses"),
    ("cache_misses_per_op", "cache misses"),
    ("dtlb_misses_per_op", "data TLB misses"),
    ("blocks_hit_per_op", "buffer hits"),
    ("blocks_read_per_op", "buffer reads"),
    ("block_read_us_per_op", "time of buffer reads"),
    ("block_write_us_per_op", "time of buffer writes"),
    ("transactions_per_op", "transactions"),
    ("rows_returned_per_op", "rows returned by scans"),
    ("rows_fetched_per_op", "rows fetched through indexes"),
    ("temp_kb_per_op", "KB of temporary files"),
    ("updates_per_op", "updates"),
    ("hot_updates_per_op", "HOT updates"),
    ("seq_scans_per_op", "sequential scans"),
    ("index_scans_per_op", "index scans"),
    ("wal_bytes_per_op", "WAL"),
    ("wal_lsn_bytes_per_op", "WAL"),
    ("wal_records_per_op", "WAL records"),
    ("wal_full_pages_per_op", "full-page images"),
    ("io_reads_per_op", "read calls"),
    ("io_writes_per_op", "write calls"),
    ("io_extends_per_op", "relation extensions"),
    ("io_evictions_per_op", "evictions"),
    (
        "checkpoint_buffers_per_op",
        "buffers written by checkpoints",
    ),
    (
        "bgwriter_buffers_per_op",
        "buffers written by the background writer",
    ),
    ("backend_buffers_per_op", "buffers written by backends"),
    ("wait_us_per_op", "waits"),
    ("server_pss_mb", "memory"),
    ("database_mb", "size of the database"),
    ("compaction_write_kb_per_op", "KB written by compactions"),
    ("compaction_read_kb_per_op", "KB read by compactions"),
    ("compaction_us_per_op", "time of compactions"),
    ("compaction_cpu_us_per_op", "CPU of compactions"),
    ("flush_kb_per_op", "KB flushed"),
    ("ingest_kb_per_op", "KB put"),
    ("log_write_kb_per_op", "KB of the write-ahead log"),
    ("stall_us_per_op", "write stalls"),
    ("stalls_per_op", "number of write stalls"),
    ("process_written_kb_per_op", "KB written by its process"),
    ("step_user_us_per_op", "user CPU of the step"),
    ("step_system_us_per_op", "system CPU of the step"),
    ("drain_us_per_op", "wait for compactions at the end"),
    ("block_cache_hits_per_op", "block cache hits"),
    ("block_cache_misses_per_op", "block cache misses"),
    ("key_comparisons_per_op", "key comparisons"),
    ("bloom_hits_per_op", "bloom filter hits"),
    ("memtable_hits_per_op", "memtable hits"),
    ("skipped_keys_per_op", "hidden entries stepped over"),
    ("lsm_mb", "size of the tree"),
    ("l0_files", "files in level 0"),
    ("block_cache_mb", "what the block cache holds"),
    ("largest_rss_mb", "largest memory"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_model::metric::METRICS;

    #[test]
    fn every_metric_has_words_and_no_words_are_left_over() {
        for metric in METRICS {
            assert!(
                WORDS.iter().any(|(key, _)| *key == metric.key),
                "{} has no words",
                metric.key
            );
        }
        assert!(WORDS.iter().all(|(key, _)| metric(key).is_some()));
        assert_eq!(label("wait:LWLock:WALWrite"), "wait for LWLock:WALWrite");
        assert_eq!(label("new_metric"), "new_metric");
    }
}
