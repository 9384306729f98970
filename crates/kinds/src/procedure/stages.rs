//! What is done in a pass, in order.

use deltabench_model::plan::{CellId, Plan};
use deltabench_model::units::to_f64;
use deltabench_model::work::procedure::ProcedureSetup;
use deltabench_workload::{
    PublishedStep, StepLength, WarmUpClients, published_order, settle_seconds,
};

/// Rows that sysbench's statements load in a second: assumed.
const LOADED_PER_SECOND: f64 = 50_000.0;

/// Seconds of a new data directory, start and stop.
const RESTART_SECONDS: f64 = 5.0;

/// A part of a pass after the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Load that nothing is reported of.
    WarmUp {
        workload: &'static str,
        clients: u32,
        seconds: u32,
    },
    /// Vacuum, checkpoint, sleep.
    Settle,
    /// A test of the plan.
    Test { cell: CellId, seconds: u32 },
}

/// All parts of a pass but the load. Warm-ups of tests that are not in the plan are left out, and so is the
/// settling after writes that are not.
pub(super) fn stages(plan: &Plan, setup: &ProcedureSetup) -> Vec<Stage> {
    let seconds = |length: StepLength| match length {
        StepLength::Read => setup.read_seconds,
        StepLength::Write => setup.write_seconds,
        // Of short tests on a small scale the warm-up is no longer than they are.
        StepLength::Seconds(seconds) => seconds.min(setup.read_seconds),
    };
    let most = plan
        .cells
        .iter()
        .map(|cell| cell.clients)
        .max()
        .unwrap_or(1);
    let order = published_order();
    let mut stages = Vec::new();
    let (mut has_settled, mut has_written) = (false, false);
    for (place, step) in order.iter().enumerate() {
        match *step {
            PublishedStep::WarmUp {
                workload,
                clients,
                length,
            } => {
                let later = order.get(place..).unwrap_or_default().iter();
                let next = later.clone().find_map(|step| step.measured());
                let first = clients == WarmUpClients::OnePerTable;
                if first || next.is_some_and(|name| cells_of(plan, name).next().is_some()) {
                    stages.push(Stage::WarmUp {
                        workload,
                        clients: if first { plan.data.tables } else { most },
                        seconds: seconds(length),
                    });
                }
            }
            PublishedStep::PostWrite if has_settled && !has_written => {}
            PublishedStep::PostWrite => {
                has_settled = true;
                stages.push(Stage::Settle);
            }
            PublishedStep::Measure { workload, length } => {
                for cell in cells_of(plan, workload) {
                    has_written |= plan.cell(cell).is_some_and(|cell| cell.writes);
                    stages.push(Stage::Test {
                        cell,
                        seconds: seconds(length),
                    });
                }
            }
        }
    }
    stages
}

/// The cells of a test, one for each number of clients.
fn cells_of<'a>(plan: &'a Plan, workload: &'a str) -> impl Iterator<Item = CellId> + 'a {
    let all = CellId::each().zip(&plan.cells);
    all.filter(move |(_, cell)| cell.workload == workload)
        .map(|(id, _)| id)
}

/// Seconds of a test before it counts: no more than those that do.
pub(super) fn warmup(setup: &ProcedureSetup, seconds: u32) -> u32 {
    setup.warmup_seconds.min(seconds)
}

/// Seconds that settling takes at least.
pub(super) fn settling(plan: &Plan, setup: &ProcedureSetup) -> u64 {
    setup
        .settle_seconds
        .map_or(settle_seconds(&plan.data), u64::from)
}

/// Seconds of one pass on one server, about.
pub fn pass_seconds(plan: &Plan, setup: &ProcedureSetup) -> f64 {
    let of = |stage: &Stage| match stage {
        Stage::WarmUp { seconds, .. } => f64::from(*seconds),
        Stage::Test { seconds, .. } => f64::from(*seconds + warmup(setup, *seconds)),
        Stage::Settle => to_f64(settling(plan, setup)),
    };
    let rows = to_f64(plan.data.rows) * f64::from(plan.data.tables);
    let work: f64 = stages(plan, setup).iter().map(of).sum();
    work + rows / LOADED_PER_SECOND + RESTART_SECONDS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::plan_of;
    use Stage::{Settle, Test, WarmUp};

    fn named(names: &[(&str, bool)]) -> Plan {
        let mut plan = plan_of(&["a", "b"], u32::try_from(names.len()).unwrap());
        for (cell, (name, writes)) in plan.cells.iter_mut().zip(names) {
            (*name).clone_into(&mut cell.workload);
            cell.writes = *writes;
            cell.clients = 1;
        }
        plan.data.tables = 8;
        plan
    }

    fn setup() -> ProcedureSetup {
        ProcedureSetup {
            read_seconds: 300,
            write_seconds: 600,
            settle_seconds: None,
            warmup_seconds: 5,
            primary_key: true,
        }
    }

    #[test]
    fn tests_come_in_the_published_order_with_warm_ups_and_one_settling_after_writes() {
        let plan = named(&[
            ("update-index", true),
            ("write-only", true),
            ("scan", false),
        ]);
        let test = |cell, seconds| Test {
            cell: CellId(cell),
            seconds,
        };
        let warm = |workload, clients, seconds| WarmUp {
            workload,
            clients,
            seconds,
        };
        assert_eq!(
            stages(&plan, &setup()),
            [
                warm("point-query", 8, 300),
                Settle,
                test(0, 600),
                // For the time of a read test, as published.
                test(1, 300),
                Settle,
                warm("scan", 1, 60),
                test(2, 300),
            ]
        );
    }

    #[test]
    fn without_writes_there_is_one_settling_and_short_tests_have_short_warm_ups() {
        let plan = named(&[("scan", false)]);
        let short = ProcedureSetup {
            read_seconds: 2,
            write_seconds: 4,
            settle_seconds: Some(1),
            warmup_seconds: 5,
            primary_key: true,
        };
        assert_eq!((warmup(&short, 2), warmup(&short, 300)), (2, 5));
        let found = stages(&plan, &short);
        assert_eq!(found.iter().filter(|stage| **stage == Settle).count(), 1);
        assert!(pass_seconds(&plan, &short) < 60.0);
        let seconds = |stage: &Stage| match stage {
            WarmUp { seconds, .. } | Test { seconds, .. } => *seconds,
            Settle => 0,
        };
        assert!(found.iter().all(|stage| seconds(stage) <= 2));
    }
}
