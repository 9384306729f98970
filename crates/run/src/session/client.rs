//! Cells in which the client, not the server, set the pace.

use super::Session;
use crate::schedule::{VisitSchedule, cores_of_client};
use deltabench_compare::comparison::{Comparison, Metric};
use deltabench_compare::{analyse, words};
use deltabench_driver::{ClientLimit, ClientLoad, client_limited};
use deltabench_model::finding::{Finding, FindingKind, Severity};
use deltabench_model::plan::{Cell, CellId, Plan};
use deltabench_model::problem::Problem;
use deltabench_model::slice::Slice;
use deltabench_model::units::to_u64;
use deltabench_model::work::Work;
use deltabench_observe::own_affinity;

impl Session<'_> {
    /// Stores a finding for every cell that says more about the client than about the servers.
    ///
    /// Errors: a store that cannot be read or written.
    pub(super) fn record_client_limits(&mut self) -> Result<(), Problem> {
        let slices = &self.slices()?;
        let comparison = analyse(self.plan, slices, Vec::new());
        let mut findings = Vec::new();
        let cores = own_affinity().unwrap_or_default();
        for (id, cell) in CellId::each().zip(&self.plan.cells) {
            let own_cores = own_cores(self.plan, id, cell, &cores);
            let more = more_threads(self.plan, cell, own_cores, cores.len());
            let limit = client_limit(id, own_cores, slices, &comparison);
            findings.extend(limit.map(|limit| limited(self.plan, cell, &limit, more)));
        }
        self.keep_findings(&findings)
    }
}

/// Cores that only the client ran on, in a cell on a host with these `cores`: as many in every block.
fn own_cores(plan: &Plan, id: CellId, cell: &Cell, cores: &[usize]) -> u32 {
    if matches!(plan.work, Work::Insert(_)) {
        // Nothing is pinned. A thread has a core at most, and when it waits for no answer it is the limit.
        return plan.threads(cell);
    }
    let placed = VisitSchedule::of(plan, 0, id, cell, cores);
    let (client, server) = (placed.client_cores, placed.server_cores);
    match client.iter().any(|core| server.contains(core)) {
        true => 0,
        false => plan
            .threads(cell)
            .min(u32::try_from(client.len()).unwrap_or(u32::MAX)),
    }
}

/// A number of threads to ask for, with which this cell has more of them, and cores for them.
fn more_threads(plan: &Plan, cell: &Cell, own_cores: u32, cores: usize) -> Option<u32> {
    let shares = plan.work.insert().is_some_and(|setup| setup.shared_table);
    if plan.pins.is_some() || shares {
        return None;
    }
    // Not fewer than another cell has.
    let wanted = (2 * own_cores).max(plan.jobs.most);
    let room = u32::try_from(cores_of_client(plan, wanted, cores)).unwrap_or(u32::MAX);
    let has = own_cores.max(plan.threads(cell));
    (room.min(cell.clients) > has).then_some(room)
}

fn client_limit(
    id: CellId,
    own_cores: u32,
    slices: &[Slice],
    comparison: &Comparison,
) -> Option<ClientLimit> {
    let mine: Vec<&Slice> = slices
        .iter()
        .filter(|slice| slice.cell == id && slice.void.is_none())
        .collect();
    let mut lags: Vec<u64> = mine
        .iter()
        .filter_map(|slice| slice.schedule_lag_ns)
        .collect();
    lags.sort_unstable();
    let median_us = comparison
        .cells
        .iter()
        .filter(|found| found.cell == id)
        .flat_map(|found| &found.metrics)
        .find(|value| value.metric == Metric::LatencyP50)
        .map_or(0.0, |value| value.base);
    client_limited(&ClientLoad {
        duration_ns: mine.iter().map(|slice| slice.duration_ns).sum(),
        client_cpu_ns: mine.iter().map(|slice| slice.client_cpu_ns).sum(),
        own_cores,
        schedule_lag_ns: lags.get(lags.len() / 2).copied(),
        median_latency_ns: to_u64(median_us * 1e3),
    })
}

/// That the client was the limit of a cell; `more`: a number of threads that would help it.
fn limited(plan: &Plan, cell: &Cell, limit: &ClientLimit, more: Option<u32>) -> Finding {
    let more = match (limit, more) {
        (ClientLimit::Busy { .. }, Some(threads)) => {
            format!(" (--jobs {threads} gives it more threads)")
        }
        _ => String::new(),
    };
    Finding::new(
        FindingKind::ClientLimited,
        Severity::Confounder,
        format!(
            "{} at {}: {limit}; its throughput and latency hide differences between the servers{more}",
            cell.workload,
            words::workers(plan, cell.clients)
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planning::tests::plan_of;
    use deltabench_model::plan::Pins;
    use deltabench_model::threads::ClientThreads;
    use deltabench_model::work::insert::InsertSetup;
    use deltabench_testkit::small_insert;

    #[test]
    fn threads_of_the_insert_benchmark_are_the_limit_when_they_never_wait() {
        let mut plan = plan_of(&["a", "b"], 8);
        let mut setup = InsertSetup {
            clients: 8,
            steps: Vec::new(),
            ..small_insert()
        };
        plan.work = Work::Insert(setup.clone());
        plan.jobs = ClientThreads {
            most: 2,
            clients_each: 1,
        };
        let cell = plan.cells[7].clone();
        assert_eq!(own_cores(&plan, CellId(7), &cell, &[0, 1, 2, 3]), 2);
        assert_eq!(more_threads(&plan, &cell, 2, 16), Some(4));
        assert_eq!(more_threads(&plan, &cell, 2, 4), None, "no core is left");
        setup.shared_table = true;
        plan.work = Work::Insert(setup);
        assert_eq!(
            more_threads(&plan, &cell, 1, 16),
            None,
            "one table, one thread"
        );
    }

    #[test]
    fn what_it_says_has_one_client_or_several() {
        let plan = plan_of(&["a", "b"], 8);
        let late = ClientLimit::Late {
            lag_ns: 6_600_000,
            allowed_ns: 1_000_000,
        };
        let text = |cell: &Cell, limit| limited(&plan, cell, limit, Some(2)).text;
        let one = text(&plan.cells[0], &late);
        assert!(one.starts_with("point-query at 1 client: "), "{one}");
        assert!(!one.contains("--jobs"), "{one}");
        let busy = ClientLimit::Busy {
            share: 0.95,
            cores: 1,
        };
        let several = text(&plan.cells[7], &busy);
        assert!(
            several.starts_with("point-query at 8 clients: "),
            "{several}"
        );
        assert!(
            several.ends_with("(--jobs 2 gives it more threads)"),
            "{several}"
        );
    }

    #[test]
    fn more_threads_are_only_asked_for_where_the_cell_would_have_cores_for_them() {
        let mut plan = plan_of(&["a", "b"], 8);
        let (narrow, wide) = (plan.cells[0].clone(), plan.cells[7].clone());
        assert_eq!(more_threads(&plan, &wide, 1, 8), Some(2));
        assert_eq!(
            more_threads(&plan, &wide, 1, 2),
            None,
            "the servers need it"
        );
        assert_eq!(more_threads(&plan, &narrow, 1, 8), None, "one client");
        plan.jobs = ClientThreads {
            most: 4,
            clients_each: 4,
        };
        assert_eq!(
            more_threads(&plan, &wide, 2, 32),
            Some(4),
            "as many as others"
        );
        plan.pins = Some(Pins {
            server: vec![0],
            client: vec![1],
        });
        assert_eq!(
            more_threads(&plan, &wide, 1, 8),
            None,
            "cores given by hand"
        );
    }
}
