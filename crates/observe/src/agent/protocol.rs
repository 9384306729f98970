//! What the two sides of an agent say to each other: one line of JSON each, a request and its answer.

use crate::slice_meters::{MeterSources, SliceCosts};
use deltabench_model::counter::Sample;
use deltabench_model::fact::HostFacts;
use deltabench_model::plan::ServerId;
use deltabench_model::problem::Problem;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Number of this protocol. The two sides must also be of the same version of deltabench: their readings have
/// to mean the same.
pub(crate) const PROTOCOL: u32 = 2;

/// Version of deltabench.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Samples in one answer, so that a line stays below a megabyte.
pub(crate) const SAMPLES_AT_ONCE: usize = 500;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    /// Comes back with the answer.
    pub(crate) id: u64,
    pub(crate) ask: Ask,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Reply {
    pub(crate) id: u64,
    // Its name on the wire stays, so that a far side of another version can say which it is.
    #[serde(rename = "told")]
    pub(crate) answer: Answer,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ask {
    /// Must come first.
    Hello {
        protocol: u32,
        version: String,
    },
    /// Keeps the far side waiting for more.
    Ping,
    /// Facts about the host.
    Facts,
    /// The main process of the server that has these backends.
    Postmaster(Backends),
    /// A main process and all below it.
    Processes {
        postmaster: u32,
    },
    OpenMeters {
        postmasters: Vec<u32>,
        device: bool,
    },
    /// Marks the start of a slice.
    Start {
        meters: u64,
    },
    /// What happened since.
    End {
        meters: u64,
        active: u64,
        client_cpu_ns: u64,
    },
    CloseMeters {
        meters: u64,
    },
    /// Counts a server's processes from now on.
    OpenCounters {
        postmaster: u32,
        backends: Vec<u32>,
    },
    /// A last reading.
    FinishCounters {
        counters: u64,
    },
    /// Samples the host and these servers from now on, and no others.
    Watch {
        servers: Vec<(ServerId, u32)>,
        interval_ms: u64,
    },
    /// Samples since they were asked for last.
    Samples,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    Hello(Hello),
    /// Nothing to say but that it was done.
    Done,
    Facts(Box<HostFacts>),
    Postmaster(u32),
    Processes(Vec<u32>),
    Meters {
        meters: u64,
        sources: MeterSources,
    },
    /// Absent: there is no such server.
    Costs(Option<SliceCosts>),
    Counters(u64),
    Values(BTreeMap<String, f64>),
    Samples(Samples),
    Refused(Problem),
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) protocol: u32,
    pub(crate) version: String,
    /// Differs from one start of a kernel to the next; absent where it cannot be read.
    pub(crate) boot: Option<String>,
}

/// Backends of one server, by what it says of them itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Backends {
    /// Process ids, as the server counts them.
    pub(crate) pids: Vec<u32>,
    /// The role that they work for.
    pub(crate) user: String,
    /// The database that they work in.
    pub(crate) database: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Samples {
    /// The clock that the samples were taken by, now. Nanoseconds since the Unix epoch.
    pub(crate) now_ns: u64,
    /// In order of time.
    pub(crate) samples: Vec<Sample>,
    pub(crate) more: bool,
}
