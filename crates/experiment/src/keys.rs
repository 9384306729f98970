//! Every key that a file may have.

/// Of the whole file.
pub(crate) const ROOT: [&str; 16] = [
    "format",
    "version",
    "name",
    "about",
    "source",
    "base",
    "servers",
    "configurations",
    "builds",
    "workloads",
    "pgbench",
    "insert",
    "rocksdb",
    "data",
    "limits",
    "measurement",
];
/// Of an entry of `[[servers]]`.
pub(crate) const SERVER: [&str; 6] = [
    "target",
    "configuration",
    "settings",
    "block_cache",
    "optional",
    "label",
];
/// Of `[configurations.NAME]`.
pub(crate) const CONFIGURATION: [&str; 3] = ["include", "set", "unset"];
/// Of `[builds.NAME]`.
pub(crate) const BUILD: [&str; 6] = [
    "system",
    "cflags",
    "ldflags",
    "options",
    "compiler",
    "environment",
];
/// Of `[workloads]`.
pub(crate) const WORKLOADS: [&str; 7] = [
    "set", "only", "files", "clients", "order", "state", "variant",
];
/// Of an entry of `[[workloads.variant]]`; its other keys are the workload's own.
pub(crate) const VARIANT: [&str; 1] = ["of"];
/// Of `[pgbench]`.
pub(crate) const PGBENCH: [&str; 14] = [
    "scripts",
    "mode",
    "scale",
    "fillfactor",
    "foreign_keys",
    "partitions",
    "partition_method",
    "unlogged",
    "server_side",
    "init",
    "variables",
    "max_tries",
    "latency_limit",
    "writes",
];
/// Of a mix of scripts of `[pgbench]`.
pub(crate) const MIX: [&str; 2] = ["name", "scripts"];
/// Of `[insert]`.
pub(crate) const INSERT: [&str; 11] = [
    "clients",
    "rows",
    "write_rows",
    "rates",
    "seconds",
    "steps",
    "shared_table",
    "pacing",
    "settle_seconds",
    "long_transaction",
    "placebo",
];
/// Of `[rocksdb]`.
pub(crate) const ROCKSDB: [&str; 11] = [
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
/// Of `[data]`.
pub(crate) const DATA: [&str; 2] = ["rows", "tables"];
/// Of `[limits]`.
pub(crate) const LIMITS: [&str; 4] = ["memory", "storage", "cache", "optional"];
/// Of `[measurement]`.
pub(crate) const MEASUREMENT: [&str; 15] = [
    "repetitions",
    "blocks",
    "fixed",
    "precision",
    "budget",
    "delta",
    "visit_seconds",
    "slice_ms",
    "rate",
    "transport",
    "checksums",
    "placement",
    "waits",
    "counters",
    "seed",
];

/// Every table of the format with its keys, for documents and tests: `("measurement", ["blocks", …])`. The
/// table of the whole file is `""`.
#[must_use]
pub fn known_keys() -> Vec<(&'static str, Vec<&'static str>)> {
    let mut root = ROOT.to_vec();
    root.push(crate::scale::SCALE);
    vec![
        ("", root),
        ("servers", SERVER.to_vec()),
        ("configurations", CONFIGURATION.to_vec()),
        ("builds", BUILD.to_vec()),
        ("workloads", WORKLOADS.to_vec()),
        ("workloads.variant", VARIANT.to_vec()),
        ("pgbench", PGBENCH.to_vec()),
        ("pgbench.scripts", MIX.to_vec()),
        ("insert", INSERT.to_vec()),
        ("rocksdb", ROCKSDB.to_vec()),
        ("data", DATA.to_vec()),
        ("limits", LIMITS.to_vec()),
        ("measurement", MEASUREMENT.to_vec()),
    ]
}
