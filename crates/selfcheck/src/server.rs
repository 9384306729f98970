//! One server of our own, for what is not a run.

use deltabench_model::installation::Installation;
use deltabench_model::plan::{Cell, DataSize, Plan, PlannedServer, Role, Timing};

/// A plan of one server, so that a fleet can be made of it.
pub(crate) fn plan(
    installation: &Installation,
    cells: Vec<Cell>,
    data: DataSize,
    seed: u64,
) -> Plan {
    Plan {
        checksums: Some(true),
        ..Plan::plain(
            seed,
            vec![PlannedServer::new(Role::Base, installation.clone())],
            cells,
            (
                data,
                Timing {
                    blocks: 1,
                    slice_ms: 40,
                    slice_jitter: 0.0,
                    visit_seconds: 1.0,
                    warmup_seconds: 0.0,
                    connections_per_visit: 1,
                    sustained: false,
                    write_seconds: None,
                    warmup_chosen: false,
                    rotated: false,
                    deadline_seconds: None,
                },
            ),
        )
    }
}
