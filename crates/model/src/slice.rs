//! The unit of everything: one server doing one piece of work.

use crate::id::{CellId, ServerId};
use serde::{Deserialize, Serialize};

/// Why a slice does not count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VoidReason {
    /// The server went away or answered nonsense.
    ServerLost,
    /// No answer within the time limit.
    Stalled,
    /// Every operation failed.
    NothingDone,
}

impl VoidReason {
    /// The word stored and printed.
    pub fn word(&self) -> &'static str {
        match self {
            Self::ServerLost => "server-lost",
            Self::Stalled => "stalled",
            Self::NothingDone => "nothing-done",
        }
    }

    /// The reason with that word.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::ServerLost, Self::Stalled, Self::NothingDone]
            .into_iter()
            .find(|reason| reason.word() == word)
    }
}

/// Server errors of one SQLSTATE.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorCount {
    /// Five characters, for example `40001`.
    pub sqlstate: String,
    /// How often it came.
    pub count: u64,
    /// The first message seen with it.
    pub first_message: String,
}

/// One server doing one piece of work. Raw: written once, never edited.
///
/// Identity: `operations + failed` = the operations sent; the histogram holds exactly `operations` values.
#[derive(Debug, Clone, PartialEq)]
pub struct Slice {
    pub server: ServerId,
    pub cell: CellId,
    /// Restart block, from 0.
    pub block: u32,
    /// Round inside the visit, from 0. Every server has one slice in a round, with the same parameters.
    pub round: u32,
    /// Position inside the round, from 0.
    pub position: u32,
    /// Connection set inside the visit, from 0.
    pub connection: u32,
    /// Start, nanoseconds since the Unix epoch.
    pub started_ns: u64,
    /// First send to last answer, nanoseconds.
    pub duration_ns: u64,
    pub operations: u64,
    /// Operations that ended with a server error.
    pub failed: u64,
    /// Rows that came back.
    pub rows: u64,
    /// CPU of all processes of this server, nanoseconds; absent where the host cannot tell.
    pub server_cpu_ns: Option<u64>,
    /// Time those processes waited for a core, nanoseconds.
    pub run_queue_wait_ns: Option<u64>,
    /// CPU of the client's threads, nanoseconds.
    pub client_cpu_ns: u64,
    /// Busy time of the whole host less all servers and the client, nanoseconds: other load. Resolution: that
    /// of the host's counter, a nanosecond to a clock tick (fact `meter_sources`).
    pub foreign_cpu_ns: Option<u64>,
    /// Time stolen by the hypervisor, nanoseconds. Resolution: one clock tick.
    pub steal_ns: Option<u64>,
    /// CPU of all other servers of the run during this slice, nanoseconds: what should be nothing.
    pub idle_cpu_ns: Option<u64>,
    /// CPU of all processes of this server between its slice before, over the same connections, and this one,
    /// nanoseconds: background work, which its operations caused. Absent where nobody read it.
    pub background_cpu_ns: Option<u64>,
    /// What a probe of the core took on average between operations of the slice, nanoseconds, without the
    /// slowest tenth: how fast the core was, whatever the server did. Absent where there were none.
    pub probe_ns: Option<u64>,
    /// CPU of all probes of the slice, nanoseconds. It is in neither `duration_ns` nor `client_cpu_ns`; what
    /// the host and other processes did meanwhile is in their figures.
    pub probing_ns: Option<u64>,
    /// Times that a process of this server was given a core.
    pub switches: Option<u64>,
    /// Time in which some task of the host waited for a core (pressure stall information), nanoseconds.
    pub cpu_pressure_ns: Option<u64>,
    /// Open loop only: the longest that an operation was sent after its scheduled start although a
    /// connection was free, nanoseconds: the client's own lag.
    pub schedule_lag_ns: Option<u64>,
    /// Latency of each succeeded operation in nanoseconds, as a serialized hdrhistogram (V2). In an open loop
    /// it counts from the scheduled start.
    pub latency_histogram: Vec<u8>,
    /// By script, for workloads that are pgbench scripts; else empty.
    pub scripts: Vec<ScriptTally>,
    /// Server errors, by SQLSTATE.
    pub errors: Vec<ErrorCount>,
    /// Why it does not count; absent for a good slice.
    pub void: Option<VoidReason>,
    /// The facts behind that, where there are some, in words.
    pub void_detail: Option<String>,
}

impl Slice {
    /// Its duration with its probes, nanoseconds: the time in which others are counted.
    pub fn whole_ns(&self) -> u64 {
        self.duration_ns
            .saturating_add(self.probing_ns.unwrap_or(0))
    }
}

/// What the transactions of one script of a mix came to in a slice.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ScriptTally {
    /// Its place in the mix.
    pub script: u32,
    /// Transactions that succeeded.
    pub operations: u64,
    /// Transactions that failed for serialization, after all tries.
    pub serialization_failures: u64,
    /// Transactions that failed for a deadlock, after all tries.
    pub deadlock_failures: u64,
    /// Transactions that failed otherwise.
    pub other_failures: u64,
    /// Transactions that were tried more than once.
    pub retried: u64,
    /// Tries beyond the first.
    pub retries: u64,
    /// Transactions that were due too late to meet the latency limit, and were not begun.
    pub skipped: u64,
    /// Transactions that took longer than the latency limit; the skipped ones are not in it.
    pub late: u64,
    /// Sum of the latencies of those that succeeded, microseconds.
    pub latency_sum_us: f64,
    /// Sum of the squares of these latencies.
    pub latency_square_sum_us2: f64,
}
