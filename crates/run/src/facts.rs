//! Facts of a run that nobody else reads as types yet: what each kind holds.

use crate::aging::AgingReport;
use crate::load::StateSize;
use crate::occupancy::Occupancy;
use deltabench_model::fact::{Fact, FactKind};
use deltabench_model::plan::CacheState;
use deltabench_observe::{AppliedLimits, MachineSources};
use serde::Serialize;

/// What the run could get.
#[derive(Debug, Clone, Serialize)]
pub struct Conditions {
    /// What only servers have.
    #[serde(flatten)]
    pub buffers: Option<Buffers>,
    /// How many servers run at a time.
    pub residence: Occupancy,
    pub limits: Vec<AppliedLimits>,
    /// What caches hold when a visit starts.
    pub cache: CacheState,
}

/// The buffers of servers.
#[derive(Debug, Clone, Serialize)]
pub struct Buffers {
    pub huge_pages: bool,
    /// Their size; absent without a server of our own.
    pub shared_buffers_mb: Option<u64>,
}

impl Fact for Conditions {
    const KIND: FactKind = FactKind::Conditions;
}

/// For each cell of the plan, the shapes of its statements' plans.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub(crate) struct StatementPlans<'a>(pub(crate) &'a [Vec<String>]);

impl Fact for StatementPlans<'_> {
    const KIND: FactKind = FactKind::Plans;
}

/// What a server holds, and how it came about.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ServerData<'a> {
    /// Rows and bytes of each state.
    pub(crate) sizes: &'a [StateSize],
    /// What made the aged state; absent without one.
    pub(crate) aging: Option<&'a AgingReport>,
    /// The server whose data directory this one has a copy of; absent for one that was loaded itself.
    pub(crate) copy_of: Option<usize>,
    /// Microseconds of the shortest statement, from here and back; absent without servers that were there
    /// before.
    pub(crate) round_trip_us: Option<f64>,
}

impl Fact for ServerData<'_> {
    const KIND: FactKind = FactKind::Data;
}

/// What the pilot found.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct PilotFacts {
    /// Names of the cells that it measured.
    pub(crate) workloads: Vec<String>,
    /// Standard deviation between blocks of the log-ratio placebo / base of throughput.
    pub(crate) sd_throughput: f64,
    /// Of CPU per operation, where known.
    pub(crate) sd_server_cpu: Option<f64>,
    /// Seconds that a block of the whole plan will take.
    pub(crate) seconds_per_block: f64,
}

impl Fact for PilotFacts {
    const KIND: FactKind = FactKind::Pilot;
}

/// Where the figures of each machine come from.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct Sources(pub Vec<MachineSources>);

impl Fact for Sources {
    const KIND: FactKind = FactKind::MeterSources;
}
