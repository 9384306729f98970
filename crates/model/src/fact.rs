//! Facts: what is stored of a run beside its slices, each kind with one type and one spelling.
//!
//! Whoever writes a fact and whoever reads it use the same type, so that a field has one name. Types whose
//! data no other crate reads live where they are made; their kinds are named here all the same.

use crate::id::CellId;
use crate::installation::{Build, Setting};
use serde::{Deserialize, Serialize};

/// What a stored fact is about; the word is how the store spells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FactKind {
    /// The name of the machine that measured.
    Machine,
    /// That machine, as observed.
    Host,
    /// The machine of a server, as its agent observed it.
    ServerHost,
    /// The agent that tells of a server's machine.
    Agent,
    /// What the run could get: huge pages, shared buffers, limits.
    Conditions,
    /// Where the figures of slices come from.
    MeterSources,
    /// How a server was compiled.
    Build,
    /// Its settings as read back.
    Settings,
    /// The shapes of its statements' plans.
    Plans,
    /// Its rows and bytes, and how they came about.
    Data,
    /// What an embedded engine said of itself.
    Engine,
    Pilot,
    VisitStart,
    Settled,
    /// A step that was carried out and not measured.
    Prepared,
    /// The blocks that were done when the time was up.
    TimeUp,
    /// A night that said what this run found.
    Night,
}

impl FactKind {
    /// The store's word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Machine => "machine",
            Self::Host => "host",
            Self::ServerHost => "server_host",
            Self::Agent => "agent",
            Self::Conditions => "conditions",
            Self::MeterSources => "meter_sources",
            Self::Build => "build",
            Self::Settings => "settings",
            Self::Plans => "plans",
            Self::Data => "data",
            Self::Engine => "engine",
            Self::Pilot => "pilot",
            Self::VisitStart => "warm_up",
            Self::Settled => "settled",
            Self::Prepared => "prepared",
            Self::TimeUp => "time_up",
            Self::Night => "night",
        }
    }
}

/// A type whose values are stored as facts of one kind, as JSON.
pub trait Fact: Serialize {
    /// The kind.
    const KIND: FactKind;
}

/// The name of the machine that measured: the same words mean the same machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MachineName(pub String);

impl Fact for MachineName {
    const KIND: FactKind = FactKind::Machine;
}

/// What can be read of a host without root.
///
/// A fact that cannot be read is absent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HostFacts {
    /// Model name of the first core.
    pub cpu_model: Option<String>,
    pub online_cores: u64,
    /// Cores that this process may run on.
    pub allowed_cores: Option<u64>,
    /// Cores' worth of CPU time that its cgroups allow; absent without a limit.
    pub cpu_quota_cores: Option<f64>,
    pub kernel: Option<String>,
    /// Revision of the first core's microcode.
    pub microcode: Option<String>,
    /// Main memory, bytes.
    pub memory_bytes: Option<u64>,
    /// Memory that programs can still get without swapping, bytes.
    pub memory_available_bytes: Option<u64>,
    /// Swap space in use, bytes.
    pub swap_used_bytes: Option<u64>,
    /// Frequency governors in use, each once, ascending; empty where the host cannot change frequency.
    pub governors: Vec<String>,
    /// Whether cores may run above their nominal frequency.
    pub turbo: Option<bool>,
    /// Whether two hardware threads share a core.
    pub smt: Option<bool>,
    pub numa_nodes: Option<u64>,
    /// Setting of transparent huge pages: `always`, `madvise` or `never`.
    pub transparent_huge_pages: Option<String>,
    /// Huge pages reserved for programs that ask for them.
    pub huge_pages_total: Option<u64>,
    /// Of these, not yet in use.
    pub huge_pages_free: Option<u64>,
    /// Size of one of them, bytes.
    pub huge_page_bytes: Option<u64>,
    /// Whether this process may reserve more of them.
    pub huge_pages_reservable: Option<bool>,
    /// Whether this is a virtual machine (the `hypervisor` flag of the processor).
    pub virtual_machine: Option<bool>,
    /// Clock source of the kernel, for example `tsc`.
    pub clock_source: Option<String>,
    /// Whether the processor's event counters can be used (`perf`).
    pub hardware_counters: Option<bool>,
    /// Load average over one minute.
    pub load_1min: Option<f64>,
    /// Share of the last 10 s in which some task waited for a core, percent.
    pub pressure_cpu_some_avg10: Option<f64>,
    /// Share of time since boot that the hypervisor gave to others, percent of all cores' time.
    pub steal_percent_since_boot: Option<f64>,
}

impl Fact for HostFacts {
    const KIND: FactKind = FactKind::Host;
}

/// The machine of a server, as its agent observed it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ServerHost(pub HostFacts);

impl Fact for ServerHost {
    const KIND: FactKind = FactKind::ServerHost;
}

/// What is known of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentFacts {
    /// Host as ssh knows it.
    pub host: String,
    /// Its version of deltabench: the same as ours.
    pub version: String,
    /// Median time from a request to its answer, nanoseconds. The meters of a slice take two.
    pub round_trip_ns: u64,
    /// Whether it runs on this machine, so that the client's CPU is among the busy time of its host.
    pub same_machine: bool,
}

impl Fact for AgentFacts {
    const KIND: FactKind = FactKind::Agent;
}

impl Fact for Build {
    const KIND: FactKind = FactKind::Build;
}

/// A server's settings as read back.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Settings(pub Vec<Setting>);

impl Fact for Settings {
    const KIND: FactKind = FactKind::Settings;
}

/// How a visit began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VisitStart {
    pub cell: CellId,
    /// Its warm-up; absent where there was none.
    pub warm_up: Option<WarmUp>,
    /// How fast the servers' cores were; absent where they are not this machine's.
    pub core_speed: Option<CoreSpeed>,
}

impl Fact for VisitStart {
    const KIND: FactKind = FactKind::VisitStart;
}

/// The warm-up of a visit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WarmUp {
    /// Whether every server had become steady when it ended; otherwise the limit ended it.
    pub steady: bool,
    /// Wall time of an operation in each discarded round, microseconds; by server, in the plan's order.
    pub us_per_operation: Vec<Vec<f64>>,
}

/// A core's speed over a short look.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CoreSpeed {
    /// Time of a step of arithmetic that keeps several units of a core busy, nanoseconds: 5th percentile,
    /// median and 95th percentile over the look.
    pub arithmetic_ns: [f64; 3],
    /// Time of a random access to 64 MB, nanoseconds.
    pub memory_ns: f64,
}

impl CoreSpeed {
    /// How many times as long the slow moments of the look took as the fast ones.
    pub fn swing(&self) -> f64 {
        let [fast, _, slow] = self.arithmetic_ns;
        slow / fast
    }
}

/// What settling took on a server, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Settled {
    pub vacuum_seconds: f64,
    pub checkpoint_seconds: f64,
    /// All of it, with the wait at the end.
    pub seconds: f64,
}

impl Fact for Settled {
    const KIND: FactKind = FactKind::Settled;
}

/// The blocks that were done when the run's time was up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TimeUp(pub u32);

impl Fact for TimeUp {
    const KIND: FactKind = FactKind::TimeUp;
}

/// When a night said what this run found, milliseconds since 1970. A run of a night without it is of a night
/// that was stopped before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ToldByNight(pub i64);

impl Fact for ToldByNight {
    const KIND: FactKind = FactKind::Night;
}
