//! The registry of metrics: every figure that a report shows about a cell, with its name, unit and source.
//!
//! One table feeds help, glossary, JSON and reports. A metric is a cost: something counted, divided by
//! operations. What is counted is kept raw, per visit and server ([`crate::counter::VisitCounters`]), under
//! [`MetricInfo::counter`].

/// Which way a metric gets better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    Higher,
    Lower,
}

/// Where the raw figure of a metric comes from, and what it is divided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// Fields of the slices themselves, over the operations of the slices.
    Slices,
    /// Counted at the two ends of every slice and added up over a visit, over the operations of the slices.
    /// For what all servers share: a device.
    SliceEnds,
    /// Counted over a visit's connections (processes while they are open, statistics from before they are
    /// opened to after they are closed), over all operations
    /// of the visit, warm-up included. For what only this server moves: its processes, its own statistics.
    /// Of an embedded engine: over a whole step, waiting at its end included.
    Visit,
    /// A size at the end of a visit, divided by nothing.
    Gauge,
}

/// One metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MetricInfo {
    /// Key in JSON, CSV and the store.
    pub key: &'static str,
    /// Column head, for example `cs/o`.
    pub name: &'static str,
    pub unit: &'static str,
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

/// The metric with that key.
pub fn metric(key: &str) -> Option<&'static MetricInfo> {
    METRICS.iter().find(|metric| metric.key == key)
}

const fn slices(
    key: &'static str,
    name: &'static str,
    unit: &'static str,
    better: Better,
    source: &'static str,
    meaning: &'static str,
) -> MetricInfo {
    MetricInfo {
        key,
        name,
        unit,
        better: Some(better),
        basis: Basis::Slices,
        counter: "",
        scale: 1.0,
        source,
        versions: "all",
        meaning,
    }
}

const fn counted(
    basis: Basis,
    (key, name, unit): (&'static str, &'static str, &'static str),
    (counter, scale): (&'static str, f64),
    source: &'static str,
    versions: &'static str,
    meaning: &'static str,
) -> MetricInfo {
    MetricInfo {
        key,
        name,
        unit,
        better: Some(Better::Lower),
        basis,
        counter,
        scale,
        source,
        versions,
        meaning,
    }
}

/// Says nothing about good or bad.
const fn neutral(info: MetricInfo) -> MetricInfo {
    MetricInfo {
        better: None,
        ..info
    }
}

const KB: f64 = 1.0 / 1024.0;
const MB: f64 = KB / 1024.0;
const US: f64 = 1e-3;
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
const PERF_CONTEXT: &str =
    "perf context of the library, in turns of their own that are not measured";

/// Every metric, in the order of reports.
pub const METRICS: &[MetricInfo] = &[
    slices(
        "throughput",
        "ops/s",
        "ops/s",
        Better::Higher,
        "operations and duration of the slices",
        "operations per second of the measured slices",
    ),
    slices(
        "server_cpu_us_per_op",
        "cpu us/o",
        "us/op",
        Better::Lower,
        "schedstat or cgroup of all processes of the server",
        "CPU time of the server for an operation, background processes included while its slice ran",
    ),
    slices(
        "latency_us_p50",
        "p50",
        "us",
        Better::Lower,
        "histogram of the slices",
        "median latency",
    ),
    slices(
        "latency_us_p99",
        "p99",
        "us",
        Better::Lower,
        "histogram of the slices",
        "99th percentile of latency",
    ),
    slices(
        "machine_cpu_percent_per_op",
        "cpu/o",
        "% of machine x s / published unit",
        Better::Lower,
        "busy time of the host during the slices: servers, client and everything else",
        "published cpu/o: percent of all cores over the published rate; not comparable between machines",
    ),
    slices(
        "context_switches_per_op",
        "cs/o",
        "/op",
        Better::Lower,
        "schedstat of all processes of the server",
        "times that a process of the server was given a core; the published cs/o counts the whole host",
    ),
    slices(
        "run_queue_wait_us_per_op",
        "rq us/o",
        "us/op",
        Better::Lower,
        "schedstat of all processes of the server",
        "time that the server was ready to run and had no core",
    ),
    slices(
        "client_cpu_us_per_op",
        "client us/o",
        "us/op",
        Better::Lower,
        "CPU clock of the driver's thread",
        "CPU time of the client for an operation",
    ),
    counted(
        Basis::SliceEnds,
        ("reads_per_op", "r/o", "/op"),
        ("device_reads", 1.0),
        DISKSTATS,
        "all",
        "read requests that reached the device",
    ),
    counted(
        Basis::SliceEnds,
        ("read_kb_per_op", "rKB/o", "KB/op"),
        ("device_read_bytes", KB),
        DISKSTATS,
        "all",
        "bytes read from the device",
    ),
    counted(
        Basis::SliceEnds,
        ("writes_per_op", "w/o", "/op"),
        ("device_writes", 1.0),
        DISKSTATS,
        "all",
        "write requests that reached the device, whoever had written",
    ),
    counted(
        Basis::SliceEnds,
        ("write_kb_per_op", "wKB/o", "KB/op"),
        ("device_write_bytes", KB),
        DISKSTATS,
        "all",
        "bytes written to the device, whoever had written",
    ),
    counted(
        Basis::Visit,
        ("user_cpu_us_per_op", "user us/o", "us/op"),
        ("process_user_ns", US),
        PROC_STAT,
        "all",
        "CPU time of the server outside the kernel",
    ),
    counted(
        Basis::Visit,
        ("system_cpu_us_per_op", "sys us/o", "us/op"),
        ("process_system_ns", US),
        PROC_STAT,
        "all",
        "CPU time of the server inside the kernel",
    ),
    counted(
        Basis::Visit,
        ("voluntary_switches_per_op", "vcs/o", "/op"),
        ("process_voluntary_switches", 1.0),
        PROC_STATUS,
        "all",
        "times that a process of the server gave its core up to wait",
    ),
    counted(
        Basis::Visit,
        ("involuntary_switches_per_op", "ics/o", "/op"),
        ("process_involuntary_switches", 1.0),
        PROC_STATUS,
        "all",
        "times that a process of the server lost its core to another",
    ),
    counted(
        Basis::Visit,
        ("minor_faults_per_op", "minflt/o", "/op"),
        ("process_minor_faults", 1.0),
        PROC_STAT,
        "all",
        "page faults without reading",
    ),
    counted(
        Basis::Visit,
        ("major_faults_per_op", "majflt/o", "/op"),
        ("process_major_faults", 1.0),
        PROC_STAT,
        "all",
        "page faults that read",
    ),
    counted(
        Basis::Visit,
        ("process_read_kb_per_op", "own rKB/o", "KB/op"),
        ("process_read_bytes", KB),
        PROC_IO,
        "where /proc/PID/io may be read",
        "bytes that this server's processes made the device read",
    ),
    counted(
        Basis::Visit,
        ("process_write_kb_per_op", "own wKB/o", "KB/op"),
        ("process_write_bytes", KB),
        PROC_IO,
        "where /proc/PID/io may be read",
        "bytes that this server's processes dirtied for the device",
    ),
    counted(
        Basis::Visit,
        ("instructions_per_op", "instr/o", "/op"),
        ("perf_instructions", 1.0),
        PERF,
        PMU,
        "instructions of the backends",
    ),
    counted(
        Basis::Visit,
        ("cycles_per_op", "cycles/o", "/op"),
        ("perf_cycles", 1.0),
        PERF,
        PMU,
        "cycles of the backends",
    ),
    counted(
        Basis::Visit,
        ("branch_misses_per_op", "brmiss/o", "/op"),
        ("perf_branch_misses", 1.0),
        PERF,
        PMU,
        "mispredicted branches of the backends",
    ),
    counted(
        Basis::Visit,
        ("cache_misses_per_op", "llcmiss/o", "/op"),
        ("perf_cache_misses", 1.0),
        PERF,
        PMU,
        "last-level cache misses of the backends",
    ),
    counted(
        Basis::Visit,
        ("dtlb_misses_per_op", "dtlb/o", "/op"),
        ("perf_dtlb_misses", 1.0),
        PERF,
        PMU,
        "data TLB load misses of the backends",
    ),
    neutral(counted(
        Basis::Visit,
        ("blocks_hit_per_op", "hit/o", "/op"),
        ("database_blocks_hit", 1.0),
        DATABASE,
        "all",
        "buffers found in shared buffers",
    )),
    counted(
        Basis::Visit,
        ("blocks_read_per_op", "read/o", "/op"),
        ("database_blocks_read", 1.0),
        DATABASE,
        "all",
        "buffers asked from the operating system, which may have them",
    ),
    counted(
        Basis::Visit,
        ("block_read_us_per_op", "read us/o", "us/op"),
        ("database_block_read_ns", US),
        DATABASE,
        "track_io_timing = on",
        "time backends spent reading buffers",
    ),
    counted(
        Basis::Visit,
        ("block_write_us_per_op", "write us/o", "us/op"),
        ("database_block_write_ns", US),
        DATABASE,
        "track_io_timing = on",
        "time backends spent writing buffers",
    ),
    neutral(counted(
        Basis::Visit,
        ("transactions_per_op", "xact/o", "/op"),
        ("database_transactions", 1.0),
        DATABASE,
        "all",
        "transactions ended",
    )),
    neutral(counted(
        Basis::Visit,
        ("rows_returned_per_op", "ret/o", "/op"),
        ("database_rows_returned", 1.0),
        DATABASE,
        "all",
        "rows and index entries read by scans",
    )),
    neutral(counted(
        Basis::Visit,
        ("rows_fetched_per_op", "fetch/o", "/op"),
        ("database_rows_fetched", 1.0),
        DATABASE,
        "all",
        "rows fetched through indexes",
    )),
    counted(
        Basis::Visit,
        ("temp_kb_per_op", "temp KB/o", "KB/op"),
        ("database_temp_bytes", KB),
        DATABASE,
        "all",
        "bytes written to temporary files",
    ),
    neutral(counted(
        Basis::Visit,
        ("updates_per_op", "upd/o", "/op"),
        ("tables_updates", 1.0),
        TABLES,
        "all",
        "rows updated",
    )),
    neutral(counted(
        Basis::Visit,
        ("hot_updates_per_op", "hot/o", "/op"),
        ("tables_hot_updates", 1.0),
        TABLES,
        "all",
        "rows updated without a new index entry",
    )),
    neutral(counted(
        Basis::Visit,
        ("seq_scans_per_op", "seqscan/o", "/op"),
        ("tables_seq_scans", 1.0),
        TABLES,
        "all",
        "sequential scans started",
    )),
    neutral(counted(
        Basis::Visit,
        ("index_scans_per_op", "idxscan/o", "/op"),
        ("tables_index_scans", 1.0),
        TABLES,
        "all",
        "index scans started",
    )),
    counted(
        Basis::Visit,
        ("wal_bytes_per_op", "wal B/o", "B/op"),
        ("wal_bytes", 1.0),
        WAL,
        "14+",
        "bytes of WAL generated",
    ),
    counted(
        Basis::Visit,
        ("wal_lsn_bytes_per_op", "lsn B/o", "B/op"),
        ("wal_lsn_bytes", 1.0),
        "pg_current_wal_insert_lsn(), pg_current_xlog_insert_location() before 10",
        "all",
        "how far the end of WAL moved, page heads and the visit's own checkpoint records included",
    ),
    counted(
        Basis::Visit,
        ("wal_records_per_op", "wal rec/o", "/op"),
        ("wal_records", 1.0),
        WAL,
        "14+",
        "WAL records generated",
    ),
    counted(
        Basis::Visit,
        ("wal_full_pages_per_op", "fpi/o", "/op"),
        ("wal_full_pages", 1.0),
        WAL,
        "14+",
        "full-page images in WAL",
    ),
    counted(
        Basis::Visit,
        ("io_reads_per_op", "io r/o", "/op"),
        ("io_reads", 1.0),
        IO,
        "16+",
        "blocks read by all processes; 18 counts bytes, given here as blocks",
    ),
    counted(
        Basis::Visit,
        ("io_writes_per_op", "io w/o", "/op"),
        ("io_writes", 1.0),
        IO,
        "16+",
        "blocks written by all processes; 18 counts bytes, given here as blocks",
    ),
    counted(
        Basis::Visit,
        ("io_extends_per_op", "extend/o", "/op"),
        ("io_extends", 1.0),
        IO,
        "16+",
        "relation extensions",
    ),
    counted(
        Basis::Visit,
        ("io_evictions_per_op", "evict/o", "/op"),
        ("io_evictions", 1.0),
        IO,
        "16+",
        "buffers thrown out to make room",
    ),
    counted(
        Basis::Visit,
        ("checkpoint_buffers_per_op", "ckpt buf/o", "/op"),
        ("checkpoint_buffers", 1.0),
        "pg_stat_checkpointer, pg_stat_bgwriter before 17",
        "all",
        "buffers written by checkpoints",
    ),
    counted(
        Basis::Visit,
        ("bgwriter_buffers_per_op", "bgw buf/o", "/op"),
        ("bgwriter_buffers", 1.0),
        "pg_stat_bgwriter",
        "all",
        "buffers written by the background writer",
    ),
    counted(
        Basis::Visit,
        ("backend_buffers_per_op", "backend buf/o", "/op"),
        ("backend_buffers", 1.0),
        "pg_stat_bgwriter",
        "up to 16",
        "buffers written by backends",
    ),
    counted(
        Basis::Visit,
        ("wait_us_per_op", "wait us/o", "us/op"),
        ("wait_ns", US),
        "pg_stat_activity, sampled in slices of their own",
        "all, where asked for",
        "time that backends waited for anything but the client",
    ),
    counted(
        Basis::Gauge,
        ("server_pss_mb", "PSS MB", "MB"),
        ("memory_pss_bytes", MB),
        "/proc/PID/smaps_rollup of all processes of the server",
        "Linux 4.14+",
        "memory of the server, shared pages divided by their users; huge pages are not in it",
    ),
    counted(
        Basis::Gauge,
        ("database_mb", "db MB", "MB"),
        ("database_bytes", MB),
        "pg_database_size()",
        "all",
        "size of the cell's database at the end of a visit",
    ),
    counted(
        Basis::Visit,
        ("compaction_write_kb_per_op", "compw KB/o", "KB/op"),
        ("compaction_write_bytes", KB),
        COMPACTIONS,
        LIBRARY,
        "bytes that flushes and compactions wrote",
    ),
    counted(
        Basis::Visit,
        ("compaction_read_kb_per_op", "compr KB/o", "KB/op"),
        ("compaction_read_bytes", KB),
        COMPACTIONS,
        LIBRARY,
        "bytes that compactions read",
    ),
    counted(
        Basis::Visit,
        ("compaction_us_per_op", "comp us/o", "us/op"),
        ("compaction_ns", US),
        COMPACTIONS,
        LIBRARY,
        "time that flushes and compactions took, added up over their threads",
    ),
    counted(
        Basis::Visit,
        ("compaction_cpu_us_per_op", "comp cpu us/o", "us/op"),
        ("compaction_cpu_ns", US),
        COMPACTIONS,
        LIBRARY,
        "CPU of flushes and compactions",
    ),
    counted(
        Basis::Visit,
        ("flush_kb_per_op", "flush KB/o", "KB/op"),
        ("flush_bytes", KB),
        COMPACTIONS,
        LIBRARY,
        "bytes that flushes of memtables wrote",
    ),
    neutral(counted(
        Basis::Visit,
        ("ingest_kb_per_op", "ingest KB/o", "KB/op"),
        ("ingest_bytes", KB),
        COMPACTIONS,
        LIBRARY,
        "bytes that were put, those of a writer beside the readers included",
    )),
    counted(
        Basis::Visit,
        ("log_write_kb_per_op", "log KB/o", "KB/op"),
        ("wal_write_bytes", KB),
        COMPACTIONS,
        LIBRARY,
        "bytes written to the write-ahead log",
    ),
    counted(
        Basis::Visit,
        ("stall_us_per_op", "stall us/o", "us/op"),
        ("stall_ns", US),
        COMPACTIONS,
        LIBRARY,
        "time in which writes were delayed or stopped until compactions had caught up",
    ),
    counted(
        Basis::Visit,
        ("stalls_per_op", "stalls/o", "/op"),
        ("stalls", 1.0),
        COMPACTIONS,
        LIBRARY,
        "times that writes were delayed or stopped",
    ),
    counted(
        Basis::Visit,
        ("process_written_kb_per_op", "written KB/o", "KB/op"),
        ("process_written_bytes", KB),
        "/proc/PID/io of its process; ru_oublock of a db_bench",
        LIBRARY,
        "bytes that its process wrote, to the page cache or past it",
    ),
    counted(
        Basis::Visit,
        ("step_user_us_per_op", "step user us/o", "us/op"),
        ("user_cpu_ns", US),
        RUSAGE,
        LIBRARY,
        "CPU of the whole step outside the kernel, its wait for compactions included",
    ),
    counted(
        Basis::Visit,
        ("step_system_us_per_op", "step sys us/o", "us/op"),
        ("system_cpu_ns", US),
        RUSAGE,
        LIBRARY,
        "CPU of the whole step inside the kernel, its wait for compactions included",
    ),
    counted(
        Basis::Visit,
        ("drain_us_per_op", "drain us/o", "us/op"),
        ("drain_ns", US),
        "clock of its process",
        LIBRARY,
        "time that the step waited for compactions at its end",
    ),
    neutral(counted(
        Basis::Visit,
        ("block_cache_hits_per_op", "bc hit/o", "/op"),
        ("block_cache_hits", 1.0),
        PERF_CONTEXT,
        LIBRARY,
        "blocks found in the block cache",
    )),
    counted(
        Basis::Visit,
        ("block_cache_misses_per_op", "bc miss/o", "/op"),
        ("block_cache_misses", 1.0),
        PERF_CONTEXT,
        LIBRARY,
        "blocks that had to be read from files",
    ),
    counted(
        Basis::Visit,
        ("key_comparisons_per_op", "cmp/o", "/op"),
        ("key_comparisons", 1.0),
        PERF_CONTEXT,
        LIBRARY,
        "comparisons of keys",
    ),
    neutral(counted(
        Basis::Visit,
        ("bloom_hits_per_op", "bloom/o", "/op"),
        ("bloom_hits", 1.0),
        PERF_CONTEXT,
        LIBRARY,
        "files that a bloom filter let a key look into",
    )),
    neutral(counted(
        Basis::Visit,
        ("memtable_hits_per_op", "mem hit/o", "/op"),
        ("memtable_hits", 1.0),
        PERF_CONTEXT,
        LIBRARY,
        "keys found in a memtable",
    )),
    counted(
        Basis::Visit,
        ("skipped_keys_per_op", "skip/o", "/op"),
        ("skipped_keys", 1.0),
        PERF_CONTEXT,
        LIBRARY,
        "entries that an iterator stepped over because newer ones hide them",
    ),
    counted(
        Basis::Gauge,
        ("lsm_mb", "LSM MB", "MB"),
        ("lsm_bytes", MB),
        PROPERTIES,
        LIBRARY,
        "size of all table files at the end of a step",
    ),
    counted(
        Basis::Gauge,
        ("l0_files", "L0 files", "files"),
        ("l0_files", 1.0),
        PROPERTIES,
        LIBRARY,
        "files in level 0 at the end of a step: each is one more to look into",
    ),
    neutral(counted(
        Basis::Gauge,
        ("block_cache_mb", "bc MB", "MB"),
        ("block_cache_bytes", MB),
        "property of the block cache",
        LIBRARY,
        "what the block cache holds at the end of a step",
    )),
    counted(
        Basis::Gauge,
        ("largest_rss_mb", "RSS MB", "MB"),
        ("largest_rss_bytes", MB),
        "/proc/PID/status of its process",
        LIBRARY,
        "largest memory of its process so far",
    ),
];

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
