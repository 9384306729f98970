//! What is asked for: a request, and the servers that it is about.

use crate::remote::same_server;
use deltabench_model::installation::Installation;
use deltabench_model::plan::{
    CacheState, CellOrder, ConfigurationUse, DataSize, DataState, Gate, Limits, Observing, Pins,
    Placement, PlannedServer, Role, Stopping, Timing, Transport, WorkloadSource,
};
use deltabench_model::work::Work;

/// What a user asks of `deltabench compare` besides the targets.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Whether comparing a target with itself is meant.
    pub same_target: bool,
    pub selection: Selection,
    /// The user's own workloads; measured beside the selection.
    pub sources: Vec<WorkloadSource>,
    /// State of the tables, but for workloads that fix their own.
    pub state: DataState,
    /// Order of the cells in a block.
    pub order: CellOrder,
    /// Scheduled operations per second of an open loop.
    pub rate: Option<f64>,
    /// How the client reaches the servers.
    pub transport: Transport,
    /// Cores given by hand.
    pub pins: Option<Pins>,
    /// Threads of the client.
    pub jobs: Jobs,
    pub clients: Vec<u32>,
    pub data: DataSize,
    /// Shape of the measurement.
    pub timing: Timing,
    /// Placement for one client and for several.
    pub placement: (Placement, Placement),
    /// Smallest change that matters, as a share; absent: each cell gets one from its placebo's noise.
    pub delta: Option<f64>,
    /// When a cell has been measured enough.
    pub stopping: Stopping,
    /// What the exit code answers.
    pub gate: Gate,
    /// Data checksums on every server, or each version's default.
    pub checksums: Option<bool>,
    /// Settings for every server.
    pub settings: Vec<(String, String)>,
    /// What each server may use of the machine.
    pub limits: Limits,
    /// What caches hold when a visit starts.
    pub cache: CacheState,
    /// What is collected beside the slices.
    pub observing: Observing,
    /// Whether probes of the core run between operations.
    pub probes: bool,
    /// The kind of benchmark; scripts of pgbench are measured besides the selection.
    pub work: Work,
    /// Whether the base has a placebo beside it. Without one a run does not see its own false alarms.
    pub placebo: bool,
    /// Seed of every draw.
    pub seed: u64,
    /// Command line, for the report.
    pub command: Vec<String>,
}

/// How many threads the client has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Jobs {
    /// As many as the clients need (docs/guide/client.md), as far as so many cores go.
    Auto {
        cores: u32,
    },
    Count(u32),
}

/// Which workloads are measured.
#[derive(Debug, Clone, PartialEq)]
pub enum Selection {
    /// The few that stand for the rest.
    Quick,
    /// All of the published studies.
    All,
    Named(Vec<String>),
}

/// A server as it was asked for: base or candidate.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerWish {
    pub installation: Installation,
    /// What tables call it; absent: what it runs with its settings.
    pub label: Option<String>,
    /// The named configuration it runs with; its settings are the first of `settings`.
    pub configuration: Option<ConfigurationUse>,
    /// Settings of its own, in order.
    pub settings: Vec<(String, String)>,
    /// Where it stands on the axes of an experiment.
    pub coordinates: Vec<(String, String)>,
}

impl ServerWish {
    /// A server as it comes.
    pub fn plain(installation: Installation) -> Self {
        Self {
            installation,
            label: None,
            configuration: None,
            settings: Vec::new(),
            coordinates: Vec::new(),
        }
    }

    /// Whether comparing the two is comparing a server with itself.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let (one, two) = (&self.installation, &other.installation);
        same_server(one, two)
            && self.settings == other.settings
            && self.configuration_name() == other.configuration_name()
    }

    fn configuration_name(&self) -> Option<&str> {
        self.configuration.as_ref().map(|used| used.name.as_str())
    }

    pub(crate) fn planned(&self, role: Role) -> PlannedServer {
        PlannedServer {
            settings: self.settings.clone(),
            label: self.label.clone(),
            configuration: self.configuration.clone(),
            coordinates: self.coordinates.clone(),
            ..PlannedServer::new(role, self.installation.clone())
        }
    }
}

/// The largest client count of a request.
pub fn most_clients(request: &Request) -> u32 {
    request.clients.iter().copied().max().unwrap_or(0)
}
