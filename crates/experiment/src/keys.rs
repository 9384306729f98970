//! Every key that a file may have; those of a kind of benchmark are with it.

use crate::kinds::TABLES;

/// Of the whole file.
pub(crate) const ROOT: [&str; 17] = [
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
    "orders",
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
pub(crate) const WORKLOADS: [&str; 8] = [
    "set", "also", "only", "files", "clients", "order", "state", "variant",
];
/// Of an entry of `[[workloads.variant]]`; its other keys are the workload's own.
pub(crate) const VARIANT: [&str; 1] = ["of"];
/// Of `[data]`.
pub(crate) const DATA: [&str; 2] = ["rows", "tables"];
/// Of `[limits]`.
pub(crate) const LIMITS: [&str; 4] = ["memory", "storage", "cache", "optional"];
/// Of `[measurement]`.
pub(crate) const MEASUREMENT: [&str; 26] = [
    "repetitions",
    "blocks",
    "fixed",
    "precision",
    "budget",
    "delta",
    "visit_seconds",
    "write_seconds",
    "warmup",
    "sustained",
    "residence",
    "servers_at_once",
    "primary_key",
    "settle_seconds",
    "placebo",
    "slice_ms",
    "rate",
    "transport",
    "checksums",
    "placement",
    "jobs",
    "probes",
    "waits",
    "counters",
    "count",
    "seed",
];

/// Every table of the format with its keys, for documents and tests: `("measurement", ["blocks", …])`. The
/// table of the whole file is `""`.
pub fn known_keys() -> Vec<(&'static str, Vec<&'static str>)> {
    let mut root = ROOT.to_vec();
    root.push(crate::scale::SCALE);
    let mut known = vec![
        ("", root),
        ("servers", SERVER.to_vec()),
        ("configurations", CONFIGURATION.to_vec()),
        ("builds", BUILD.to_vec()),
        ("workloads", WORKLOADS.to_vec()),
        ("workloads.variant", VARIANT.to_vec()),
    ];
    known.extend(TABLES.map(|(table, keys)| (table, keys.to_vec())));
    known.extend([
        ("data", DATA.to_vec()),
        ("limits", LIMITS.to_vec()),
        ("measurement", MEASUREMENT.to_vec()),
    ]);
    known
}
