//! The plans that measure what changed under other conditions: what a ratio depends on.

use deltabench_compare::comparison::Comparison;
use deltabench_model::plan::{
    Cell, CellId, Gate, Placement, Plan, PlannedServer, SensitivityPart, Stopping, Transport,
    Varied,
};
use deltabench_server::is_off;
use deltabench_workload::mix;
use std::collections::HashSet;

/// Blocks of each of these runs.
const BLOCKS: u32 = 8;

/// Makes the seed of each of these runs another one than that of its run.
const SENSITIVITY_SEED: u64 = 0x5e_75_17;

/// The setting that says whether commits wait.
const COMMITS: &str = "synchronous_commit";

/// The plans that measure the regressions and improvements of a finished run again, each with one condition
/// changed: those that the run had not already, on cells that it can matter to. None for an engine in its own
/// process and for servers that were there before; a client has a core of its own only if there are several
/// `cores`.
pub fn sensitivity(run: &str, plan: &Plan, comparison: &Comparison, cores: usize) -> Vec<Plan> {
    let elsewhere = |server: &PlannedServer| server.installation.remote.is_some();
    if plan.work.is_embedded() || plan.servers.iter().any(elsewhere) {
        return Vec::new();
    }
    let changed: HashSet<CellId> = { comparison.cells.iter() }
        .filter(|cell| cell.verdict.is_change())
        .map(|cell| cell.cell)
        .collect();
    let varied = |varied: Varied| {
        let cells = CellId::each().zip(&plan.cells);
        let cells: Vec<Cell> = cells
            .filter(|(id, cell)| changed.contains(id) && differs(varied, plan, cell))
            .map(|(_, cell)| cell.clone())
            .collect();
        (!cells.is_empty()).then(|| with(varied, cells, run, plan))
    };
    let possible = Varied::ALL.into_iter();
    let possible = possible.filter(|varied| *varied != Varied::OwnCore || cores > 1);
    possible.filter_map(varied).collect()
}

/// Whether a cell was measured otherwise.
fn differs(varied: Varied, plan: &Plan, cell: &Cell) -> bool {
    match varied {
        Varied::OwnCore => plan.placed(cell) == Some(Placement::SameCore),
        Varied::Tcp => plan.transport == Transport::Socket,
        Varied::Commits => {
            cell.writes && { plan.servers.iter() }.all(|server| is_lazy(server, plan))
        }
        Varied::Slices10 | Varied::Slices40 | Varied::Slices200 => {
            // Passes are not cut into slices, and a schedule makes them longer by itself.
            let sliced = !plan.work.has_passes() && cell.rate.is_none();
            sliced && varied.slice_ms() != Some(plan.timing.slice_ms)
        }
    }
}

/// Whether commits on a server do not wait: its own setting, the plan's, or that of its configuration.
fn is_lazy(server: &PlannedServer, plan: &Plan) -> bool {
    let asked = |settings: &[(String, String)]| {
        let mut found = settings.iter().rev();
        let found = found.find(|(name, _)| name.eq_ignore_ascii_case(COMMITS));
        found.map(|(_, value)| is_off(value))
    };
    asked(&server.settings)
        .or_else(|| asked(&plan.settings))
        .unwrap_or(server.configuration.is_none())
}

fn with(varied: Varied, cells: Vec<Cell>, run: &str, plan: &Plan) -> Plan {
    let mut other = plan.clone();
    other.cells = cells;
    let place = Varied::ALL.iter().position(|one| *one == varied);
    let place = deltabench_model::units::count(place.unwrap_or(0));
    other.seed = mix(plan.seed, &[SENSITIVITY_SEED, place]) >> 11;
    other.timing.blocks = BLOCKS;
    other.timing.deadline_seconds = None;
    other.stopping = Stopping::Fixed;
    other.gate = Gate::default();
    // Nobody reads counts for it, and what it depends on itself nobody asked.
    other.observing.counted_after = None;
    other.observing.sensitivity = false;
    other.observing.confirmed_after = None;
    other.sensitivity = Some(SensitivityPart {
        of: run.to_owned(),
        varied,
    });
    match varied {
        Varied::OwnCore => {
            (other.placement_single, other.placement_multi) = (Placement::Split, Placement::Split);
        }
        Varied::Tcp => other.transport = Transport::Tcp,
        Varied::Commits => {
            for server in &mut other.servers {
                let waits = (COMMITS.to_owned(), "on".to_owned());
                server.settings.push(waits);
            }
        }
        Varied::Slices10 | Varied::Slices40 | Varied::Slices200 => {
            other.timing.slice_ms = varied.slice_ms().unwrap_or(other.timing.slice_ms);
        }
    }
    other
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_compare::analyse;
    use deltabench_testkit::small_run;

    fn planned(change: impl Fn(&mut Plan)) -> Vec<Plan> {
        planned_on(2, change)
    }

    fn planned_on(cores: usize, change: impl Fn(&mut Plan)) -> Vec<Plan> {
        let mut plan = small_run::plan();
        change(&mut plan);
        let comparison = analyse(&plan, &small_run::slices([0.8, 1.0, 0.8]), Vec::new());
        assert_eq!(comparison.counts.regression, 2);
        sensitivity("r", &plan, &comparison, cores)
    }

    fn words(plans: &[Plan]) -> Vec<(&'static str, usize)> {
        let word = |plan: &Plan| {
            let part = plan.sensitivity.as_ref().unwrap();
            assert_eq!((part.of.as_str(), plan.timing.blocks), ("r", BLOCKS));
            (part.varied.word(), plan.cells.len())
        };
        plans.iter().map(word).collect()
    }

    #[test]
    fn changed_cells_are_measured_under_each_condition_that_was_another_one() {
        let all = planned(|_| {});
        let slices = [("slices-10", 2), ("slices-40", 2), ("slices-200", 2)];
        let with_slices = |first: &[(&'static str, usize)]| [first, &slices].concat();
        let three = [("own-core", 2), ("tcp", 2), ("commits", 1)];
        assert_eq!(words(&all), with_slices(&three));
        let one_core = planned_on(1, |_| {});
        assert_eq!(words(&one_core), with_slices(&three[1..]));
        let [split, tcp, commits, ..] = all.as_slice() else {
            panic!("six")
        };
        assert_eq!(split.placed(&split.cells[0]), Some(Placement::Split));
        assert_eq!(
            (tcp.transport, tcp.placed(&tcp.cells[0])),
            (Transport::Tcp, Some(Placement::SameCore))
        );
        assert_eq!(commits.cells[0].workload, "update-index");
        for server in &commits.servers {
            assert_eq!(server.settings.last().unwrap().1, "on");
        }
        assert!(split.seed != tcp.seed && split.seed != small_run::plan().seed);
        let there = planned(|plan| {
            plan.placement_single = Placement::Split;
            plan.settings = vec![(COMMITS.to_owned(), "on".to_owned())];
        });
        assert_eq!(words(&there), with_slices(&[("tcp", 2)]));
        let own = planned(|plan| {
            plan.transport = Transport::Tls;
            plan.servers[2].settings = vec![(COMMITS.to_owned(), "local".to_owned())];
        });
        assert_eq!(words(&own), with_slices(&[("own-core", 2)]));
        for off in ["off", "False", "0", "no"] {
            let lazy = planned(|plan| plan.settings = vec![(COMMITS.to_owned(), off.to_owned())]);
            assert_eq!(words(&lazy), with_slices(&three), "{off}");
        }
        let other = planned(|plan| plan.timing.slice_ms = 40);
        let found: Vec<u32> = other.iter().map(|plan| plan.timing.slice_ms).collect();
        assert_eq!(
            found,
            [40, 40, 40, 10, 200],
            "its own is no other condition"
        );
    }
}
