//! In what two plans differ.

use super::distinct;
use deltabench_model::plan::{Cell, Plan, PlannedServer, Role};

/// Something in which two plans differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Difference {
    /// `settings of postgres:18.6`.
    pub(super) what: String,
    /// Whether it makes the servers do other work, and not only measures the same work otherwise.
    pub(super) other_work: bool,
}

/// What differs besides the seed, the command and which servers and cells there are.
pub(super) fn differences(first: &Plan, second: &Plan) -> Vec<Difference> {
    let mut found = Vec::new();
    let mut look = |differs: bool, what: &str, other_work: bool| {
        if differs {
            found.push(Difference {
                what: what.to_owned(),
                other_work,
            });
        }
    };
    look(first.data != second.data, "data", true);
    look(first.settings != second.settings, "settings", true);
    look(first.checksums != second.checksums, "checksums", true);
    look(first.limits != second.limits, "limits", true);
    look(first.cache != second.cache, "state of caches", true);
    look(first.transport != second.transport, "transport", true);
    look(first.order != second.order, "order of cells", true);
    look(first.workloads != second.workloads, "own workloads", true);
    look(first.work != second.work, first.work.title(), true);
    look(other_rates(first, second), "scheduled rate", true);
    look(
        first.draws_executables() != second.draws_executables(),
        "executables (a copy for each start, or the installed file)",
        false,
    );
    look(
        first.two_controls != second.two_controls,
        "the control (both copies of the base and CPU between slices, or the base alone)",
        false,
    );
    look(first.probes != second.probes, "probes of the core", false);
    look(first.timing != second.timing, "timing", false);
    look(first.stopping != second.stopping, "stopping", false);
    look(
        (first.delta.to_bits(), first.delta_from_noise)
            != (second.delta.to_bits(), second.delta_from_noise),
        "smallest change that matters",
        false,
    );
    look(
        (first.placement_single, first.placement_multi, &first.pins)
            != (
                second.placement_single,
                second.placement_multi,
                &second.pins,
            ),
        "placement",
        false,
    );
    look(first.observing != second.observing, "observing", false);
    let placebo = |plan: &Plan| plan.placebo().is_some();
    look(placebo(first) != placebo(second), "placebo", false);
    let shown = |plan: &'_ Plan| -> Vec<PlannedServer> {
        let all = plan.servers.iter();
        all.filter(|server| server.role != Role::Placebo)
            .cloned()
            .collect()
    };
    let others = shown(second);
    for one in shown(first) {
        let name = one.name();
        let same = |two: &&PlannedServer| two.role == one.role && two.name() == name;
        if let Some(two) = others.iter().find(same) {
            of_server(&one, two, &mut found);
        }
    }
    // Base and candidate of one name may differ in the same thing.
    distinct(found.into_iter())
}

/// Whether a workload was sent at another rate; several rates of one are rows of their own.
fn other_rates(first: &Plan, second: &Plan) -> bool {
    let same = |one: &Cell, two: &Cell| {
        (&one.workload, one.clients, one.state) == (&two.workload, two.clients, two.state)
    };
    first.cells.iter().any(|one| {
        let mut others = second.cells.iter().filter(|two| same(one, two));
        let mut peers = first.cells.iter().filter(|two| same(one, two));
        peers.nth(1).is_none() && others.any(|two| two.rate != one.rate)
    })
}

fn of_server(one: &PlannedServer, two: &PlannedServer, found: &mut Vec<Difference>) {
    let mut look = |differs: bool, what: &str| {
        if differs {
            found.push(Difference {
                what: format!("{what} of {}", one.name()),
                other_work: true,
            });
        }
    };
    let (a, b) = (&one.installation, &two.installation);
    look(
        (a.version_num, &a.binary_sha256) != (b.version_num, &b.binary_sha256),
        "build",
    );
    look(
        (&one.settings, &one.configuration) != (&two.settings, &two.configuration),
        "settings",
    );
    look(one.burn_ns != two.burn_ns, "known slowdown");
}
