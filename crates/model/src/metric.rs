//! The registry of metrics: every figure that a report shows about a cell, with its name, unit and source.
//!
//! One table feeds help, glossary, JSON and reports; a kind of benchmark whose steps have figures of their
//! own keeps rows of the same type. A metric is a cost: something counted, divided by operations. What is
//! counted is kept raw, per visit and server ([`crate::counter::VisitCounters`]), under
//! [`MetricInfo::counter`].

use Better::{Higher, Lower};

/// Which way a metric gets better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    Higher,
    Lower,
}

impl Better {
    /// The word in files and on pages.
    pub fn word(self) -> &'static str {
        match self {
            Self::Higher => "higher",
            Self::Lower => "lower",
        }
    }
}

/// How the figures of several passes of steps become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fold {
    Mean,
    Max,
    Sum,
}

/// Where the raw figure of a metric comes from, and what it is divided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// Fields of the slices themselves, over the operations of the slices.
    Slices,
    /// Counted at the two ends of every slice and added up over a visit, over the operations of the slices.
    /// For what all servers share: a device.
    SliceEnds,
    /// Counted as for [`Basis::SliceEnds`], over the requests of the device that another counter has.
    Requests(&'static str),
    /// Counted over a visit's connections (processes while they are open, statistics from before they are
    /// opened to after they are closed), over all operations
    /// of the visit, warm-up included. For what only this server moves: its processes, its own statistics.
    /// Of an embedded engine: over a whole step, waiting at its end included.
    Visit,
    /// A size at the end of a visit, divided by nothing.
    Gauge,
    /// A figure of a whole step, and how several passes of it become one.
    Pass(Fold),
}

/// One metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MetricInfo {
    /// Key in JSON, CSV and the store.
    pub key: &'static str,
    /// Column head, for example `cs/o`.
    pub name: &'static str,
    pub unit: &'static str,
    /// What a sentence calls it, for example `user CPU`; empty where none does.
    pub words: &'static str,
    /// Which way is good; absent where neither is.
    pub better: Option<Better>,
    /// How the value is made.
    pub basis: Basis,
    /// Key of the raw counter; empty for what is computed from several fields of the slices.
    pub counter: &'static str,
    /// Value = counter / operations x this.
    pub scale: f64,
    pub source: &'static str,
    /// Versions of PostgreSQL, engines or hosts that have it.
    pub versions: &'static str,
    /// What it says, in a sentence.
    pub meaning: &'static str,
}

impl MetricInfo {
    /// A figure of a whole step; `source` is empty where no published report prints it.
    pub const fn of_step(
        key: &'static str,
        unit: &'static str,
        fold: Fold,
        source: &'static str,
        meaning: &'static str,
    ) -> Self {
        Self {
            key,
            name: key,
            unit,
            words: "",
            better: None,
            basis: Basis::Pass(fold),
            counter: "",
            scale: 1.0,
            source,
            versions: "all",
            meaning,
        }
    }
}

/// The unit of a cost and which way is good. That of a sampled wait, `wait:TYPE:EVENT`, is that of all waits.
pub fn unit(key: &str) -> (&'static str, Option<Better>) {
    let row = metric(key).or_else(|| metric("wait_us_per_op"));
    row.map_or(("", None), |row| (row.unit, row.better))
}

/// The metric with that key.
pub fn metric(key: &str) -> Option<&'static MetricInfo> {
    METRICS.iter().find(|metric| metric.key == key)
}

/// A row: key, name, unit, words, which way is good; basis, counter, scale; source; versions; meaning.
macro_rules! row {
    ($key:literal $name:literal $unit:literal $words:literal $better:expr;
     $basis:ident $(($over:literal))? $counter:literal $scale:expr; $source:expr; $versions:expr;
     $meaning:expr) => {
        MetricInfo {
            key: $key,
            name: $name,
            unit: $unit,
            words: $words,
            better: $better,
            basis: Basis::$basis $(($over))?,
            counter: $counter,
            scale: $scale,
            source: $source,
            versions: $versions,
            meaning: $meaning,
        }
    };
}

/// Rows with a name of their own, then others.
macro_rules! rows {
    ($($named:ident)+; $($key:literal $name:literal $unit:literal $words:literal $better:expr;
     $basis:ident $(($over:literal))? $counter:literal $scale:expr; $source:expr; $versions:expr;
     $meaning:expr;)+) => {
        &[$($named,)+ $(row!($key $name $unit $words $better;
            $basis $(($over))? $counter $scale; $source; $versions; $meaning)),+]
    };
}

const KB: f64 = 1.0 / 1024.0;
const MB: f64 = KB / 1024.0;
const US: f64 = 1e-3;
const MILLIS: f64 = 1e-6;
const PROC_STAT: &str = "/proc/PID/stat of all processes of the server";
const PROC_STATUS: &str = "/proc/PID/status of all processes of the server";
const PROC_IO: &str = "/proc/PID/io of all processes of the server";
const PERF: &str = "perf_event_open(2) on the backends";
const PMU: &str = "hosts with hardware counters";
const DISKSTATS: &str = "/sys/class/block/*/stat of the device that holds the data";
const DATABASE: &str = "pg_stat_database";
const TABLES: &str = "pg_stat_user_tables";
const WAL: &str = "pg_stat_wal";
const IO: &str = "pg_stat_io, relations only";
const LIBRARY: &str = "RocksDB";
const COMPACTIONS: &str = "rocksdb.stats, rocksdb.cfstats";
const PROPERTIES: &str = "properties of the database; rocksdb.stats of a db_bench";
const RUSAGE: &str = "getrusage(2) of its process";
const PERF_CONTEXT: &str = "perf context of the library, in separate turns that are not measured";

/// Operations per second.
pub const THROUGHPUT: MetricInfo = row! {
    "throughput" "ops/s" "ops/s" "throughput" Some(Higher);
        Slices "" 1.0; "operations and duration of the slices"; "all";
        "operations per second of the measured slices"
};
/// CPU of the server for an operation.
pub const SERVER_CPU: MetricInfo = row! {
    "server_cpu_us_per_op" "cpu us/o" "us/op" "CPU" Some(Lower);
        Slices "" 1.0; "schedstat or cgroup of all processes of the server"; "all";
        "CPU time of the server for an operation, with what it did between its slices because of them"
};
/// Median latency.
pub const LATENCY_P50: MetricInfo = row! {
    "latency_us_p50" "p50" "us" "median latency" Some(Lower);
        Slices "" 1.0; "histogram of the slices"; "all"; "median latency"
};
/// 95th percentile of latency.
pub const LATENCY_P95: MetricInfo = row! {
    "latency_us_p95" "p95" "us" "p95 latency" Some(Lower);
        Slices "" 1.0; "histogram of the slices"; "all"; "95th percentile of latency"
};
/// 99th percentile of latency.
pub const LATENCY_P99: MetricInfo = row! {
    "latency_us_p99" "p99" "us" "p99 latency" Some(Lower);
        Slices "" 1.0; "histogram of the slices"; "all"; "99th percentile of latency"
};
/// 99.9th percentile of latency.
pub const LATENCY_P999: MetricInfo = row! {
    "latency_us_p99_9" "p99.9" "us" "p99.9 latency" Some(Lower);
        Slices "" 1.0; "histogram of the slices"; "all"; "99.9th percentile of latency"
};
/// The longest operation of a block.
pub const LATENCY_MAX: MetricInfo = row! {
    "latency_us_max" "longest" "us" "longest operation" Some(Lower);
        Slices "" 1.0; "histogram of the slices"; "all"; "longest operation of a block"
};

/// Every cost and what a cell is judged by, in the order of reports.
pub const METRICS: &[MetricInfo] = rows! {
    THROUGHPUT SERVER_CPU LATENCY_P50 LATENCY_P95 LATENCY_P99 LATENCY_P999 LATENCY_MAX;
    "machine_cpu_percent_per_op" "cpu/o" "% of machine x s / published unit" "CPU of the machine" Some(Lower);
        Slices "" 1.0; "busy time of the host during the slices: servers, client and all else";
        "all";
        "published cpu/o: percent of all cores over the published rate; not comparable between machines";
    "context_switches_per_op" "cs/o" "/op" "context switches" Some(Lower);
        Slices "" 1.0; "schedstat of all processes of the server"; "all";
        "times that a process of the server got a core; the published cs/o counts the whole host";
    "run_queue_wait_us_per_op" "rq us/o" "us/op" "run-queue wait" Some(Lower);
        Slices "" 1.0; "schedstat of all processes of the server"; "all";
        "time that the server was ready to run and had no core";
    "background_cpu_us_per_op" "bg us/o" "us/op" "CPU between slices" Some(Lower);
        Slices "" 1.0; "schedstat or cgroup of all processes of the server"; "all";
        "the part of cpu us/o that the server used between its slices; what its processes do by the clock \
         counts for the time of all servers";
    "client_cpu_us_per_op" "client us/o" "us/op" "client CPU" Some(Lower);
        Slices "" 1.0; "CPU clock of the driver's thread"; "all"; "CPU time of the client for an operation";
    "reads_per_op" "r/o" "/op" "reads" Some(Lower);
        SliceEnds "device_reads" 1.0; DISKSTATS; "all"; "read requests that reached the device";
    "read_kb_per_op" "rKB/o" "KB/op" "KB read" Some(Lower);
        SliceEnds "device_read_bytes" KB; DISKSTATS; "all"; "bytes read from the device";
    "writes_per_op" "w/o" "/op" "writes" Some(Lower);
        SliceEnds "device_writes" 1.0; DISKSTATS; "all";
        "write requests that reached the device, of all processes";
    "write_kb_per_op" "wKB/o" "KB/op" "KB written" Some(Lower);
        SliceEnds "device_write_bytes" KB; DISKSTATS; "all";
        "bytes written to the device by all processes";
    "read_await_ms" "rawait" "ms" "time of a read" Some(Lower);
        Requests("device_reads") "device_read_ns" MILLIS; DISKSTATS; "all";
        "mean time of a read request of the device, waiting included, as iostat has it";
    "write_await_ms" "wawait" "ms" "time of a write" Some(Lower);
        Requests("device_writes") "device_write_ns" MILLIS; DISKSTATS; "all";
        "mean time of a write request of the device, of all processes";
    "user_cpu_us_per_op" "user us/o" "us/op" "user CPU" Some(Lower);
        Visit "process_user_ns" US; PROC_STAT; "all"; "CPU time of the server outside the kernel";
    "system_cpu_us_per_op" "sys us/o" "us/op" "system CPU" Some(Lower);
        Visit "process_system_ns" US; PROC_STAT; "all"; "CPU time of the server inside the kernel";
    "short_lived_cpu_us_per_op" "short us/o" "us/op" "CPU of short-lived processes" Some(Lower);
        Visit "process_short_ns" US; PROC_STAT; "all";
        "the part of user and sys of processes that started or ended during a visit (autovacuum, parallel \
         workers); cpu us/o lacks it, unless its source is a cgroup";
    "voluntary_switches_per_op" "vcs/o" "/op" "voluntary context switches" Some(Lower);
        Visit "process_voluntary_switches" 1.0; PROC_STATUS; "all";
        "times that a process of the server gave up its core to wait";
    "involuntary_switches_per_op" "ics/o" "/op" "involuntary context switches" Some(Lower);
        Visit "process_involuntary_switches" 1.0; PROC_STATUS; "all";
        "times that a process of the server lost its core to another";
    "minor_faults_per_op" "minflt/o" "/op" "minor page faults" Some(Lower);
        Visit "process_minor_faults" 1.0; PROC_STAT; "all"; "page faults that read nothing from disk";
    "major_faults_per_op" "majflt/o" "/op" "major page faults" Some(Lower);
        Visit "process_major_faults" 1.0; PROC_STAT; "all"; "page faults that read from disk";
    "process_read_kb_per_op" "own rKB/o" "KB/op" "KB read by its own processes" Some(Lower);
        Visit "process_read_bytes" KB; PROC_IO; "where /proc/PID/io may be read";
        "bytes that this server's processes made the device read";
    "process_write_kb_per_op" "own wKB/o" "KB/op" "KB written by its own processes" Some(Lower);
        Visit "process_write_bytes" KB; PROC_IO; "where /proc/PID/io may be read";
        "bytes that this server's processes dirtied for the device";
    "instructions_per_op" "instr/o" "/op" "instructions" Some(Lower);
        Visit "perf_instructions" 1.0; PERF; PMU; "instructions of the backends";
    "cycles_per_op" "cycles/o" "/op" "cycles" Some(Lower);
        Visit "perf_cycles" 1.0; PERF; PMU; "cycles of the backends";
    "branch_misses_per_op" "brmiss/o" "/op" "branch misses" Some(Lower);
        Visit "perf_branch_misses" 1.0; PERF; PMU; "mispredicted branches of the backends";
    "cache_misses_per_op" "llcmiss/o" "/op" "cache misses" Some(Lower);
        Visit "perf_cache_misses" 1.0; PERF; PMU; "last-level cache misses of the backends";
    "dtlb_misses_per_op" "dtlb/o" "/op" "data TLB misses" Some(Lower);
        Visit "perf_dtlb_misses" 1.0; PERF; PMU; "data TLB load misses of the backends";
    "blocks_hit_per_op" "hit/o" "/op" "buffer hits" None;
        Visit "database_blocks_hit" 1.0; DATABASE; "all"; "buffers found in shared buffers";
    "blocks_read_per_op" "read/o" "/op" "buffer reads" Some(Lower);
        Visit "database_blocks_read" 1.0; DATABASE; "all";
        "buffers requested from the operating system, which may have them";
    "block_read_us_per_op" "read us/o" "us/op" "time of buffer reads" Some(Lower);
        Visit "database_block_read_ns" US; DATABASE; "track_io_timing = on";
        "time backends spent reading buffers";
    "block_write_us_per_op" "write us/o" "us/op" "time of buffer writes" Some(Lower);
        Visit "database_block_write_ns" US; DATABASE; "track_io_timing = on";
        "time backends spent writing buffers";
    "transactions_per_op" "xact/o" "/op" "transactions" None;
        Visit "database_transactions" 1.0; DATABASE; "all"; "transactions ended";
    "rows_returned_per_op" "ret/o" "/op" "rows returned by scans" None;
        Visit "database_rows_returned" 1.0; DATABASE; "all"; "rows and index entries read by scans";
    "rows_fetched_per_op" "fetch/o" "/op" "rows fetched through indexes" None;
        Visit "database_rows_fetched" 1.0; DATABASE; "all"; "rows fetched through indexes";
    "temp_kb_per_op" "temp KB/o" "KB/op" "KB of temporary files" Some(Lower);
        Visit "database_temp_bytes" KB; DATABASE; "all"; "bytes written to temporary files";
    "updates_per_op" "upd/o" "/op" "updates" None;
        Visit "tables_updates" 1.0; TABLES; "all"; "rows updated";
    "hot_updates_per_op" "hot/o" "/op" "HOT updates" None;
        Visit "tables_hot_updates" 1.0; TABLES; "all"; "rows updated without a new index entry";
    "seq_scans_per_op" "seqscan/o" "/op" "sequential scans" None;
        Visit "tables_seq_scans" 1.0; TABLES; "all"; "sequential scans started";
    "index_scans_per_op" "idxscan/o" "/op" "index scans" None;
        Visit "tables_index_scans" 1.0; TABLES; "all"; "index scans started";
    "wal_bytes_per_op" "wal B/o" "B/op" "WAL" Some(Lower);
        Visit "wal_bytes" 1.0; WAL; "14+"; "bytes of WAL generated";
    "wal_lsn_bytes_per_op" "lsn B/o" "B/op" "WAL" Some(Lower);
        Visit "wal_lsn_bytes" 1.0; "pg_current_wal_insert_lsn(), pg_current_xlog_insert_location() before 10";
        "all"; "growth of the WAL, with page headers and the visit's own checkpoint records";
    "wal_records_per_op" "wal rec/o" "/op" "WAL records" Some(Lower);
        Visit "wal_records" 1.0; WAL; "14+"; "WAL records generated";
    "wal_full_pages_per_op" "fpi/o" "/op" "full-page images" Some(Lower);
        Visit "wal_full_pages" 1.0; WAL; "14+"; "full-page images in WAL";
    "io_reads_per_op" "io r/o" "/op" "read calls" Some(Lower);
        Visit "io_reads" 1.0; IO; "16+";
        "blocks read by all processes; 18 counts bytes, given here as blocks";
    "io_writes_per_op" "io w/o" "/op" "write calls" Some(Lower);
        Visit "io_writes" 1.0; IO; "16+";
        "blocks written by all processes; 18 counts bytes, given here as blocks";
    "io_extends_per_op" "extend/o" "/op" "relation extensions" Some(Lower);
        Visit "io_extends" 1.0; IO; "16+"; "relation extensions";
    "io_evictions_per_op" "evict/o" "/op" "evictions" Some(Lower);
        Visit "io_evictions" 1.0; IO; "16+"; "buffers evicted to make room";
    "checkpoint_buffers_per_op" "ckpt buf/o" "/op" "buffers written by checkpoints" Some(Lower);
        Visit "checkpoint_buffers" 1.0; "pg_stat_checkpointer, pg_stat_bgwriter before 17"; "all";
        "buffers written by checkpoints";
    "bgwriter_buffers_per_op" "bgw buf/o" "/op" "buffers written by the background writer" Some(Lower);
        Visit "bgwriter_buffers" 1.0; "pg_stat_bgwriter"; "all"; "buffers written by the background writer";
    "backend_buffers_per_op" "backend buf/o" "/op" "buffers written by backends" Some(Lower);
        Visit "backend_buffers" 1.0; "pg_stat_bgwriter"; "up to 16"; "buffers written by backends";
    "wait_us_per_op" "wait us/o" "us/op" "waits" Some(Lower);
        Visit "wait_ns" US; "pg_stat_activity, sampled in separate slices"; "all, on request";
        "time that backends waited for anything but the client";
    "server_pss_mb" "PSS MB" "MB" "memory" Some(Lower);
        Gauge "memory_pss_bytes" MB; "/proc/PID/smaps_rollup of all processes of the server"; "Linux 4.14+";
        "memory of the server, shared pages divided by their users, without huge pages";
    "database_mb" "db MB" "MB" "size of the database" Some(Lower);
        Gauge "database_bytes" MB; "pg_database_size()"; "all";
        "size of the cell's database at the end of a visit";
    "compaction_write_kb_per_op" "compw KB/o" "KB/op" "KB written by compactions" Some(Lower);
        Visit "compaction_write_bytes" KB; COMPACTIONS; LIBRARY; "bytes that flushes and compactions wrote";
    "compaction_read_kb_per_op" "compr KB/o" "KB/op" "KB read by compactions" Some(Lower);
        Visit "compaction_read_bytes" KB; COMPACTIONS; LIBRARY; "bytes that compactions read";
    "compaction_us_per_op" "comp us/o" "us/op" "time of compactions" Some(Lower);
        Visit "compaction_ns" US; COMPACTIONS; LIBRARY;
        "time that flushes and compactions took, added up over their threads";
    "compaction_cpu_us_per_op" "comp cpu us/o" "us/op" "CPU of compactions" Some(Lower);
        Visit "compaction_cpu_ns" US; COMPACTIONS; LIBRARY; "CPU of flushes and compactions";
    "flush_kb_per_op" "flush KB/o" "KB/op" "KB flushed" Some(Lower);
        Visit "flush_bytes" KB; COMPACTIONS; LIBRARY; "bytes that flushes of memtables wrote";
    "ingest_kb_per_op" "ingest KB/o" "KB/op" "KB put" None;
        Visit "ingest_bytes" KB; COMPACTIONS; LIBRARY;
        "bytes that were put, with those of a concurrent writer";
    "log_write_kb_per_op" "log KB/o" "KB/op" "KB of the write-ahead log" Some(Lower);
        Visit "wal_write_bytes" KB; COMPACTIONS; LIBRARY; "bytes written to the write-ahead log";
    "stall_us_per_op" "stall us/o" "us/op" "write stalls" Some(Lower);
        Visit "stall_ns" US; COMPACTIONS; LIBRARY;
        "time in which writes were delayed or stopped until compactions had caught up";
    "stalls_per_op" "stalls/o" "/op" "number of write stalls" Some(Lower);
        Visit "stalls" 1.0; COMPACTIONS; LIBRARY; "times that writes were delayed or stopped";
    "process_written_kb_per_op" "written KB/o" "KB/op" "KB written by its process" Some(Lower);
        Visit "process_written_bytes" KB; "/proc/PID/io of its process; ru_oublock of a db_bench"; LIBRARY;
        "bytes that its process wrote, to the page cache or past it";
    "step_user_us_per_op" "step user us/o" "us/op" "user CPU of the step" Some(Lower);
        Visit "user_cpu_ns" US; RUSAGE; LIBRARY;
        "CPU of the whole step outside the kernel, with its wait for compactions";
    "step_system_us_per_op" "step sys us/o" "us/op" "system CPU of the step" Some(Lower);
        Visit "system_cpu_ns" US; RUSAGE; LIBRARY;
        "CPU of the whole step inside the kernel, with its wait for compactions";
    "drain_us_per_op" "drain us/o" "us/op" "wait for compactions at the end" Some(Lower);
        Visit "drain_ns" US; "clock of its process"; LIBRARY;
        "time that the step waited for compactions at its end";
    "block_cache_hits_per_op" "bc hit/o" "/op" "block cache hits" None;
        Visit "block_cache_hits" 1.0; PERF_CONTEXT; LIBRARY; "blocks found in the block cache";
    "block_cache_misses_per_op" "bc miss/o" "/op" "block cache misses" Some(Lower);
        Visit "block_cache_misses" 1.0; PERF_CONTEXT; LIBRARY; "blocks that were read from files";
    "key_comparisons_per_op" "cmp/o" "/op" "key comparisons" Some(Lower);
        Visit "key_comparisons" 1.0; PERF_CONTEXT; LIBRARY; "comparisons of keys";
    "bloom_hits_per_op" "bloom/o" "/op" "bloom filter hits" None;
        Visit "bloom_hits" 1.0; PERF_CONTEXT; LIBRARY; "files that a bloom filter let a key look into";
    "memtable_hits_per_op" "mem hit/o" "/op" "memtable hits" None;
        Visit "memtable_hits" 1.0; PERF_CONTEXT; LIBRARY; "keys found in a memtable";
    "skipped_keys_per_op" "skip/o" "/op" "hidden entries stepped over" Some(Lower);
        Visit "skipped_keys" 1.0; PERF_CONTEXT; LIBRARY;
        "entries that an iterator stepped over because newer ones hide them";
    "lsm_mb" "LSM MB" "MB" "size of the tree" Some(Lower);
        Gauge "lsm_bytes" MB; PROPERTIES; LIBRARY; "size of all table files at the end of a step";
    "l0_files" "L0 files" "files" "files in level 0" Some(Lower);
        Gauge "l0_files" 1.0; PROPERTIES; LIBRARY;
        "files in level 0 at the end of a step: each is one more file to search";
    "block_cache_mb" "bc MB" "MB" "contents of the block cache" None;
        Gauge "block_cache_bytes" MB; "property of the block cache"; LIBRARY;
        "contents of the block cache at the end of a step";
    "largest_rss_mb" "RSS MB" "MB" "largest memory" Some(Lower);
        Gauge "largest_rss_bytes" MB; "/proc/PID/status of its process"; LIBRARY;
        "largest memory of its process so far";
};

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn keys_names_and_counters_are_unique() {
        let unique = |of: fn(&MetricInfo) -> &'static str| {
            let all: Vec<_> = METRICS.iter().map(of).filter(|t| !t.is_empty()).collect();
            assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
        };
        unique(|metric| metric.key);
        unique(|metric| metric.name);
        unique(|metric| metric.counter);
        assert!(METRICS.iter().all(|metric| !metric.words.is_empty()));
        assert_eq!(metric("reads_per_op").map(|found| found.name), Some("r/o"));
    }

    #[test]
    fn what_is_counted_has_a_counter_and_what_comes_from_slices_has_none() {
        for metric in METRICS {
            let from_slices = metric.basis == Basis::Slices;
            assert_eq!(from_slices, metric.counter.is_empty(), "{}", metric.key);
        }
    }
}
