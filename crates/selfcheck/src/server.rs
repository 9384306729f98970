//! One server of our own, for what is not a run.

use deltabench_model::installation::Installation;
use deltabench_model::plan::{
    CacheState, Cell, DataSize, Limits, Observing, PLAN_FORMAT, Placement, Plan, PlannedServer,
    Role, Timing,
};
use deltabench_model::work::Work;

/// A plan of one server, so that a fleet can be made of it.
pub(crate) fn plan(
    installation: &Installation,
    cells: Vec<Cell>,
    data: DataSize,
    seed: u64,
) -> Plan {
    Plan {
        format: PLAN_FORMAT.0.to_owned(),
        version: PLAN_FORMAT.1,
        seed,
        servers: vec![PlannedServer::new(Role::Base, installation.clone())],
        cells,
        data,
        timing: Timing {
            blocks: 1,
            slice_ms: 40,
            slice_jitter: 0.0,
            visit_seconds: 1.0,
            warmup_seconds: 0.0,
            connections_per_visit: 1,
            deadline_seconds: None,
        },
        placement_single: Placement::SameCore,
        placement_multi: Placement::Split,
        delta: 0.03,
        checksums: Some(true),
        settings: Vec::new(),
        command: Vec::new(),
        stopping: Default::default(),
        gate: Default::default(),
        order: Default::default(),
        transport: Default::default(),
        pins: None,
        workloads: Vec::new(),
        confirms: None,
        session: None,
        limits: Limits::default(),
        cache: CacheState::AsIs,
        observing: Observing::default(),
        experiment: None,
        work: Work::default(),
        delta_from_noise: false,
    }
}
