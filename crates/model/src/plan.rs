//! What a run is going to do, decided before it starts and stored first.
//!
//! The plan with its seed fixes every order, key and draw of the run; a killed run continues from the same
//! plan.

pub use crate::cell::{Cell, DataState, Group, PublishedRate, WorkloadSource};
use crate::counts::{CountedAfter, Counting};
pub use crate::id::{CellId, ServerId};
use crate::installation::{Engine, Installation};
pub use crate::part::{ExperimentPart, SensitivityPart, SessionPart, Varied};
use crate::threads::ClientThreads;
pub use crate::timing::Timing;
use crate::work::Work;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Name and version of the stored plan.
pub const PLAN_FORMAT: (&str, u32) = ("deltabench.plan", 2);

/// What a server is in the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The side that others are compared with.
    Base,
    /// A second copy of the base, treated like a candidate, so that the run measures its own false alarms.
    Placebo,
    /// A side whose change is in question.
    Candidate,
}

/// One server of the run: a role and the installation it runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedServer {
    /// Its place in the comparison.
    pub role: Role,
    pub installation: Installation,
    /// CPU that every message from a client costs this server on top, nanoseconds: a known slowdown, made on
    /// purpose to see whether it is found. Absent for a server as it is.
    #[serde(default)]
    pub burn_ns: Option<u64>,
    /// Settings asked for on this server only, in order; they win over the plan's.
    #[serde(default)]
    pub settings: Vec<(String, String)>,
    /// What tables call it; absent: what it runs with its settings.
    #[serde(default)]
    pub label: Option<String>,
    /// The named configuration it runs with instead of the steady one. [`PlannedServer::settings`] holds what
    /// it came to for this version.
    #[serde(default)]
    pub configuration: Option<ConfigurationUse>,
    /// Where it stands on the axes of an experiment, for example `("target", "postgres:18")`, `("io_workers",
    /// "4")`; empty outside of one.
    #[serde(default)]
    pub coordinates: Vec<(String, String)>,
}

/// A named configuration as one version of the server got it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ConfigurationUse {
    /// Its name: of a file in `configs/`, or one of the experiment's own.
    pub name: String,
    /// What had to be changed for this version.
    pub adapted: Vec<Adapted>,
}

/// A setting of a configuration that a version has under another name, in another unit, or not at all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adapted {
    /// As the configuration has it.
    pub asked: (String, String),
    /// What the server got instead; empty if it was dropped.
    pub became: Vec<(String, String)>,
    /// Why, in words: `18 has io_method, 17 does not`.
    pub why: String,
}

impl PlannedServer {
    /// A server as it comes: no settings, no label.
    pub fn new(role: Role, installation: Installation) -> Self {
        Self {
            role,
            installation,
            burn_ns: None,
            settings: Vec::new(),
            label: None,
            configuration: None,
            coordinates: Vec::new(),
        }
    }

    /// Its label, else what it runs with the settings of its own: `postgres:18.6`, `postgres:18.6 (jit =
    /// on)`.
    pub fn name(&self) -> String {
        if let Some(label) = &self.label {
            return label.clone();
        }
        let settings: Vec<String> = self
            .settings
            .iter()
            .map(|(name, value)| format!("{name} = {value}"))
            .collect();
        match settings.as_slice() {
            [] => self.installation.resolved.clone(),
            _ => format!("{} ({})", self.installation.resolved, settings.join(", ")),
        }
    }
}

/// Which cores do what during a visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// Client and server share one core, drawn at random for each visit. Best for one client
    /// (docs/sources/measuring-on-linux.md#cores).
    SameCore,
    /// The client has a core for each of its threads, the servers all others.
    Split,
    /// Nothing is pinned.
    Free,
}

impl Placement {
    /// Where the client side is, in words: `on its own core`.
    pub fn words(self) -> &'static str {
        match self {
            Self::SameCore => "on the server's core",
            Self::Split => "on its own core",
            Self::Free => "bound to no core",
        }
    }

    /// The word in files and arguments.
    pub fn word(self) -> &'static str {
        match self {
            Self::SameCore => "same-core",
            Self::Split => "split",
            Self::Free => "free",
        }
    }
}

/// When a cell has been measured enough.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stopping {
    /// Every cell gets all blocks.
    #[default]
    Fixed,
    /// Looks after these numbers of blocks, in rising order; a cell with an answer leaves the plan.
    Sequential { looks: Vec<u32> },
    /// A cell leaves the plan when its intervals of throughput and CPU per operation are narrow enough.
    Precision {
        /// Half-width of the interval to reach, as a share.
        half_width: f64,
    },
}

/// What makes a script stop.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Gate {
    /// Whether the exit code is that of a gate: family-wise over all cells.
    pub on: bool,
    /// Largest loss of throughput that passes, as a share: a test of non-inferiority. Absent: any
    /// regression fails.
    pub not_worse_than: Option<f64>,
    /// Whether cells without an answer pass.
    pub inconclusive_passes: bool,
    /// What may fail it; empty: throughput alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<GatedMetric>,
    /// Whether the answer has to hold in another hour, and not only in those that were measured.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub another_hour: bool,
}

/// What a gate may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GatedMetric {
    Throughput,
    /// CPU of the server for each operation.
    Cpu,
    /// 95th percentile of latency.
    P95,
    /// 99th percentile of latency.
    P99,
    /// 99.9th percentile of latency.
    #[serde(rename = "p99.9")]
    P999,
    /// The longest operation of a block.
    Longest,
}

impl GatedMetric {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Throughput,
        Self::Cpu,
        Self::P95,
        Self::P99,
        Self::P999,
        Self::Longest,
    ];

    /// The word in options and plans.
    pub fn word(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Cpu => "cpu",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::P999 => "p99.9",
            Self::Longest => "longest",
        }
    }
}

/// The order of cells inside a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CellOrder {
    /// Drawn for each block; no cell sees what another has written.
    #[default]
    Drawn,
    /// As published: one after another on the same tables, each with the debt of those before.
    Published,
}

/// How the client reaches the servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    #[default]
    Socket,
    /// TCP on the loopback address.
    Tcp,
    /// TLS over TCP on the loopback address.
    Tls,
}

/// Cores given by hand instead of drawn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pins {
    pub server: Vec<usize>,
    pub client: Vec<usize>,
}

/// Limits of the device that a server gets: a bought volume, made on the disk at hand.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StorageProfile {
    /// Name, for example `gp3-3000`.
    pub name: String,
    /// Reads per second; absent: no limit.
    pub read_iops: Option<u64>,
    /// Writes per second.
    pub write_iops: Option<u64>,
    /// Bytes read per second.
    pub read_bytes: Option<u64>,
    /// Bytes written per second.
    pub write_bytes: Option<u64>,
    /// What it costs, in the currency of the profile's file.
    #[serde(default)]
    pub cost_per_month: Option<f64>,
}

/// What the page cache and shared buffers hold when a visit starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheState {
    /// What the visits before have left, after warm-up.
    #[default]
    AsIs,
    /// Nothing of the data: its pages are dropped from the page cache and shared buffers are new.
    Cold,
    /// As much as fits: tables and indexes are read before.
    Prewarmed,
}

impl CacheState {
    /// The word used in files and tables.
    pub fn word(self) -> &'static str {
        match self {
            Self::AsIs => "as-is",
            Self::Cold => "cold",
            Self::Prewarmed => "prewarmed",
        }
    }
}

/// What a server may use of the machine.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Limits {
    /// Memory of each server with its page cache, bytes; absent: no limit.
    pub memory_bytes: Option<u64>,
    pub storage: Option<StorageProfile>,
    /// Whether to run, and say so, where the machine does not allow these limits.
    pub or_without: bool,
}

/// What is collected beside the slices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observing {
    /// Whether counters of each visit and a one-second series are collected.
    pub counters: bool,
    /// Samples of wait events per second, in slices of their own; 0: none.
    pub waits_per_second: u32,
    /// Samples of stacks, in slices of their own; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<ProfilePlan>,
    /// How instructions are counted; absent: they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counting: Option<Counting>,
    /// Whose instructions are counted once the run is over, as a run of its own; absent: nobody's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_after: Option<CountedAfter>,
    /// Whether what changed is measured again under other conditions once the run is over, each as a run of
    /// its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sensitivity: bool,
    /// Seconds after the end of the run from which on its differences are measured again, as a run of its
    /// own; absent: they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed_after: Option<u32>,
}

/// How the time of servers is sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfilePlan {
    /// Samples a second and core; fewer where they cost too much.
    pub rate: u32,
    /// Milliseconds of each visit, for each server.
    pub milliseconds: u32,
    /// Whether kernels are sampled that are known to hang.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forced: bool,
}

impl Default for Observing {
    fn default() -> Self {
        Self {
            counters: true,
            waits_per_second: 0,
            profile: None,
            counting: None,
            counted_after: None,
            sensitivity: false,
            confirmed_after: None,
        }
    }
}

/// The data every server is loaded with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataSize {
    pub tables: u32,
    pub rows: u64,
}

/// All that a run is going to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Always [`PLAN_FORMAT`]`.0`.
    pub format: String,
    /// Always [`PLAN_FORMAT`]`.1` when written by this version.
    pub version: u32,
    /// The one seed from which every order, key and draw comes.
    pub seed: u64,
    /// Base, placebo and candidates, in that order.
    pub servers: Vec<PlannedServer>,
    pub cells: Vec<Cell>,
    pub data: DataSize,
    /// Measurement shape.
    pub timing: Timing,
    /// Placement of client and server for cells with one client, and for cells with more.
    pub placement_single: Placement,
    /// Placement for cells with more than one client.
    pub placement_multi: Placement,
    /// The smallest change that matters, as a share: 0.03 is 3 %.
    pub delta: f64,
    /// Whether each cell gets a δ of its own from its placebo's noise; then `delta` is the largest.
    #[serde(default)]
    pub delta_from_noise: bool,
    /// Whether data checksums are on (`Some`) or left to each version's own default (`None`).
    pub checksums: Option<bool>,
    /// Settings asked for on every server, in order; later ones win.
    pub settings: Vec<(String, String)>,
    /// The command line, for the report.
    pub command: Vec<String>,
    /// When a cell has been measured enough.
    #[serde(default)]
    pub stopping: Stopping,
    /// What the exit code answers.
    #[serde(default)]
    pub gate: Gate,
    /// Order of the cells in a block.
    #[serde(default)]
    pub order: CellOrder,
    /// How the client reaches the servers.
    #[serde(default)]
    pub transport: Transport,
    /// Threads of the client.
    #[serde(default, skip_serializing_if = "ClientThreads::is_one")]
    pub jobs: ClientThreads,
    /// Cores given by hand; absent: drawn by placement.
    #[serde(default)]
    pub pins: Option<Pins>,
    /// The user's own workloads.
    #[serde(default)]
    pub workloads: Vec<WorkloadSource>,
    /// The run whose regressions this one measures again, if it does.
    #[serde(default)]
    pub confirms: Option<String>,
    /// The run whose cells this one counts the instructions of, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<String>,
    /// The bisection that this run belongs to: it counts a point of its history next to the base, or
    /// measures a culprit next to its parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bisects: Option<String>,
    /// The run of whose cells this one samples where the time goes, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<String>,
    /// Whether each start of a server has a new copy of its executable. Not in plans of versions before
    /// 23 November 2026; their runs go on as they began.
    #[serde(default)]
    pub own_executables: bool,
    /// Whether candidates are compared with base and placebo together. Not in plans from before it existed.
    #[serde(default)]
    pub two_controls: bool,
    /// Whether probes of the core run between operations, and servers are compared at equal speed of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub probes: bool,
    /// Which session of a comparison this run is, if it has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionPart>,
    /// The run whose changed cells this one measures under another condition, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sensitivity: Option<SensitivityPart>,
    /// What each server may use of the machine.
    #[serde(default)]
    pub limits: Limits,
    /// What caches hold when a visit starts.
    #[serde(default)]
    pub cache: CacheState,
    /// What is collected beside the slices. Runs from before it was collected have no counters stored.
    #[serde(default)]
    pub observing: Observing,
    /// The experiment that this run is a part of.
    #[serde(default)]
    pub experiment: Option<ExperimentPart>,
    /// The run of another execution that this part adds a server to: what that one measured stands beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extends: Option<String>,
    /// What is done: the kind of benchmark and its setup.
    pub work: Work,
}

/// A stored plan as this version writes it.
///
/// Version 1 had a key for each kind of benchmark, of which at most one was not null, in the place of `work`.
/// What is of no known version stays as it is.
pub fn upgraded(mut plan: Value) -> Value {
    let Some(fields) = plan.as_object_mut() else {
        return plan;
    };
    if fields.get("version").and_then(Value::as_u64) != Some(1) {
        return plan;
    }
    let mut work = Map::from_iter([("kind".to_owned(), Value::from("workloads"))]);
    for kind in ["pgbench", "insert", "rocksdb"] {
        match fields.remove(kind) {
            None | Some(Value::Null) => {}
            Some(setup) if kind == "pgbench" => {
                work.insert(kind.to_owned(), setup);
            }
            Some(setup) => {
                work = setup.as_object().cloned().unwrap_or_default();
                work.insert("kind".to_owned(), Value::from(kind));
            }
        }
    }
    fields.insert("work".to_owned(), Value::Object(work));
    fields.insert("version".to_owned(), Value::from(PLAN_FORMAT.1));
    plan
}

impl Plan {
    /// A plan with all choices left at their defaults: a fixed number of blocks over the local socket, no
    /// gate, δ of 3 %, the microbenchmarks.
    pub fn plain(
        seed: u64,
        servers: Vec<PlannedServer>,
        cells: Vec<Cell>,
        (data, timing): (DataSize, Timing),
    ) -> Self {
        Self {
            format: PLAN_FORMAT.0.to_owned(),
            version: PLAN_FORMAT.1,
            seed,
            servers,
            cells,
            data,
            timing,
            placement_single: Placement::SameCore,
            placement_multi: Placement::Split,
            delta: 0.03,
            delta_from_noise: false,
            checksums: None,
            settings: Vec::new(),
            command: Vec::new(),
            stopping: Stopping::default(),
            gate: Gate::default(),
            order: CellOrder::default(),
            transport: Transport::default(),
            jobs: ClientThreads::default(),
            pins: None,
            workloads: Vec::new(),
            confirms: None,
            counts: None,
            bisects: None,
            samples: None,
            own_executables: true,
            two_controls: false,
            probes: false,
            session: None,
            sensitivity: None,
            limits: Limits::default(),
            cache: CacheState::default(),
            observing: Observing::default(),
            experiment: None,
            extends: None,
            work: Work::default(),
        }
    }

    /// Whether a block has one slice of each server in a cell: a whole step, of minutes.
    pub fn has_whole_steps(&self) -> bool {
        let external = |server: &PlannedServer| server.installation.engine == Engine::DbBench;
        self.work.has_passes() || self.servers.iter().any(external)
    }

    /// The run or bisection that this one belongs to: it confirms that one, counts or samples for it,
    /// measures it under another condition, is a later session of it, or a part of the bisection.
    pub fn part_of(&self) -> Option<&str> {
        let session = self.session.as_ref().filter(|part| part.number > 1);
        self.confirms
            .as_deref()
            .or(self.counts.as_deref())
            .or(self.bisects.as_deref())
            .or(self.samples.as_deref())
            .or(self.sensitivity.as_ref().map(|part| part.of.as_str()))
            .or(session.map(|part| part.first.as_str()))
    }

    /// The run that this one belongs to, a bisection included: such a run is none of its own.
    pub fn belongs_to(&self) -> Option<&str> {
        self.part_of().or(self.bisects.as_deref())
    }

    /// Whether this run measures again what another did: then ports and environments are others, too.
    pub fn is_again(&self) -> bool {
        self.part_of().is_some() && self.counts.is_none() && self.bisects.is_none()
    }

    /// Sessions that this run stands for: all of its comparison for the first of them, else 1.
    pub fn sessions(&self) -> u32 {
        let first = self.session.as_ref().filter(|part| part.number == 1);
        first.map_or(1, |part| part.of)
    }

    /// Blocks of a cell at most, over all sessions that this run stands for.
    pub fn blocks(&self) -> u32 {
        self.timing.blocks.saturating_mul(self.sessions())
    }

    /// Index of the base server.
    pub fn base(&self) -> ServerId {
        self.find(Role::Base).unwrap_or_default()
    }

    /// Index of the placebo server, if the run has one.
    pub fn placebo(&self) -> Option<ServerId> {
        self.find(Role::Placebo)
    }

    /// Indices of the candidates, in the order asked for.
    pub fn candidates(&self) -> Vec<ServerId> {
        ServerId::each()
            .zip(&self.servers)
            .filter(|(_, s)| s.role == Role::Candidate)
            .map(|(id, _)| id)
            .collect()
    }

    /// A server by its id.
    pub fn server(&self, id: ServerId) -> Option<&PlannedServer> {
        self.servers.get(id.index())
    }

    /// A cell by its id.
    pub fn cell(&self, id: CellId) -> Option<&Cell> {
        self.cells.get(id.index())
    }

    /// What reports call a server: its own name, with a number if a server before it has the same one:
    /// `postgres:18.6 (2)`. The placebo is the base again and has no name of its own.
    pub fn called(&self, id: ServerId) -> String {
        let Some(server) = self.server(id) else {
            return "unknown".to_owned();
        };
        let name = server.name();
        let before = self.servers.iter().take(id.index());
        let same = before.filter(|one| one.role != Role::Placebo && one.name() == name);
        match (server.role, same.count()) {
            (Role::Placebo, _) | (_, 0) => name,
            (_, before) => format!("{name} ({})", before + 1),
        }
    }

    /// The name of a server in tables and files: `base`, `placebo` or what the candidate is called.
    pub fn server_name(&self, id: ServerId) -> String {
        match self.server(id) {
            Some(s) if s.role == Role::Candidate => self.called(id),
            Some(s) if s.role == Role::Placebo => "placebo".to_owned(),
            _ => "base".to_owned(),
        }
    }

    /// Threads of the client in a cell. A thread that opens a connection waits for it, so each client has one
    /// where each operation has a connection.
    pub fn threads(&self, cell: &Cell) -> u32 {
        match cell.reconnects {
            true => cell.clients.max(1),
            false => self.jobs.of(cell.clients),
        }
    }

    /// Placement of a cell.
    pub fn placement(&self, cell: &Cell) -> Placement {
        if cell.clients == 1 {
            self.placement_single
        } else {
            self.placement_multi
        }
    }

    /// How client and server of a cell share the cores, where the plan decides it by the cell: absent for
    /// named cores, for servers that were there before, and for an engine in its own process.
    pub fn placed(&self, cell: &Cell) -> Option<Placement> {
        let mut servers = self.servers.iter();
        let elsewhere = servers.any(|server| server.installation.remote.is_some());
        let decided = self.pins.is_none() && !elsewhere && !self.work.is_embedded();
        decided.then(|| self.placement(cell))
    }

    fn find(&self, role: Role) -> Option<ServerId> {
        ServerId::each()
            .zip(&self.servers)
            .find(|(_, s)| s.role == role)
            .map(|(id, _)| id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_of_version_1_says_what_is_done_in_one_place() {
        let one = |fields: &str| {
            let text = format!(r#"{{"format":"deltabench.plan","version":1,"seed":7{fields}}}"#);
            upgraded(serde_json::from_str(&text).unwrap())
        };
        let work = |fields: &str| one(fields).get("work").cloned().unwrap().to_string();
        assert_eq!(work(""), r#"{"kind":"workloads"}"#);
        let none = r#","pgbench":null,"insert":null,"rocksdb":null"#;
        assert_eq!(work(none), r#"{"kind":"workloads"}"#);
        let scripts = r#","pgbench":{"mode":"simple"},"insert":null"#;
        assert_eq!(
            work(scripts),
            r#"{"kind":"workloads","pgbench":{"mode":"simple"}}"#
        );
        let passes = one(r#","insert":{"clients":2}"#);
        assert_eq!(
            passes.get("work").unwrap().to_string(),
            r#"{"clients":2,"kind":"insert"}"#
        );
        assert_eq!(passes.get("version"), Some(&Value::from(PLAN_FORMAT.1)));
        assert!(passes.get("insert").is_none());
        let newer: Value = serde_json::from_str(r#"{"version":3}"#).unwrap();
        assert_eq!(upgraded(newer.clone()), newer, "what is not known stays");
    }

    #[test]
    fn a_plan_from_before_confirmations_were_stored_wants_none() {
        let stored = r#"{"counters":true,"waits_per_second":0}"#;
        let observing: Observing = serde_json::from_str(stored).unwrap();
        assert_eq!(observing, Observing::default());
        assert_eq!(serde_json::to_string(&observing).unwrap(), stored);
        let wanted = Observing {
            confirmed_after: Some(7200),
            ..observing
        };
        let text = serde_json::to_string(&wanted).unwrap();
        assert_eq!(serde_json::from_str::<Observing>(&text).unwrap(), wanted);
    }
}
