//! What was counted beside the slices: raw, written once, never edited.

use crate::id::{CellId, ServerId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Counters of one server over one visit to a cell.
///
/// A key that is missing could not be read there; it is never stored as 0. Keys are those of
/// [`crate::metric::MetricInfo::counter`], and `wait:TYPE:EVENT` for sampled waits (nanoseconds).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VisitCounters {
    pub server: ServerId,
    pub cell: CellId,
    /// Restart block, from 0.
    pub block: u32,
    /// Operations between the two ends of the visit's connections: calibration and warm-up included. The
    /// divisor of [`crate::metric::Basis::Visit`].
    pub operations: u64,
    /// How far each counter moved; for a gauge, its value at the end of the visit.
    pub values: BTreeMap<String, f64>,
}

/// The host, and each server, at one moment: a line of the one-second series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// When, nanoseconds since the Unix epoch.
    pub at_ns: u64,
    /// Nanoseconds since the sample before: what rates are over.
    pub over_ns: u64,
    /// Rates and sizes by key, see [`SERIES`]; per server as `KEY@SERVER`.
    pub values: BTreeMap<String, f64>,
}

/// One column of the series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeriesInfo {
    pub key: &'static str,
    pub unit: &'static str,
    pub meaning: &'static str,
}

const fn series(key: &'static str, unit: &'static str, meaning: &'static str) -> SeriesInfo {
    SeriesInfo { key, unit, meaning }
}

/// The columns of the series.
pub const SERIES: &[SeriesInfo] = &[
    series("cpu_user", "%", "share of all cores outside the kernel"),
    series(
        "cpu_system",
        "%",
        "share of all cores in the kernel, interrupts included",
    ),
    series(
        "cpu_iowait",
        "%",
        "share of all cores idle while a read was awaited",
    ),
    series(
        "cpu_steal",
        "%",
        "share of all cores taken by the hypervisor",
    ),
    series("context_switches", "/s", "context switches of the host"),
    series(
        "pressure_cpu",
        "%",
        "time in which some task waited for a core",
    ),
    series(
        "pressure_io",
        "%",
        "time in which some task waited for a device",
    ),
    series(
        "pressure_memory",
        "%",
        "time in which some task waited for memory",
    ),
    series("memory_available", "MB", "memory that is still available"),
    series("page_cache", "MB", "page cache of the host"),
    series("dirty", "MB", "page cache that must still be written"),
    series("device_reads", "/s", "reads of the data's device"),
    series(
        "device_read_kb",
        "KB/s",
        "bytes read from the data's device",
    ),
    series("device_writes", "/s", "writes of the data's device"),
    series(
        "device_write_kb",
        "KB/s",
        "bytes written to the data's device",
    ),
    series("device_read_await", "ms", "mean time of a read"),
    series("device_write_await", "ms", "mean time of a write"),
    series("device_request_kb", "KB", "mean size of a request"),
    series("device_queue", "", "mean requests in flight"),
    series(
        "device_utilisation",
        "%",
        "time in which the device had a request",
    ),
    series(
        "network_received_kb",
        "KB/s",
        "bytes received, loopback included",
    ),
    series("network_sent_kb", "KB/s", "bytes sent, loopback included"),
    series("server_cpu", "%", "CPU of a server, of one core"),
    series(
        "server_rss",
        "MB",
        "resident memory of a server's main process",
    ),
];

/// Something that happened at a moment: a checkpoint, an autovacuum run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// When, nanoseconds since the Unix epoch.
    pub at_ns: u64,
    /// The server it happened on; absent for the run: a block that starts.
    pub server: Option<ServerId>,
    /// Kebab-case kind: `checkpoint`, `autovacuum`, `autoanalyze`, `block`.
    pub kind: String,
    /// The facts, short.
    pub text: String,
}
