//! Cells in which the client, not the server, set the pace.

use super::Session;
use deltabench_compare::analyse;
use deltabench_compare::comparison::{Comparison, Metric};
use deltabench_driver::{ClientLoad, client_limited};
use deltabench_model::finding::{Finding, FindingKind, Severity};
use deltabench_model::plan::{Cell, CellId, Placement};
use deltabench_model::problem::Problem;
use deltabench_model::slice::Slice;
use deltabench_model::units::to_u64;

impl Session<'_> {
    /// Stores a finding for every cell that says more about the client than about the servers.
    ///
    /// Errors: a store that cannot be read or written.
    pub(super) fn record_client_limits(&mut self) -> Result<(), Problem> {
        let slices = &self.slices()?;
        let comparison = analyse(self.plan, slices, Vec::new());
        let mut findings = Vec::new();
        for (id, cell) in CellId::each().zip(&self.plan.cells) {
            let own_core = match &self.plan.pins {
                Some(pins) => pins.client.iter().all(|core| !pins.server.contains(core)),
                None => self.plan.placement(cell) == Placement::Split,
            };
            findings.extend(client_finding(id, cell, own_core, slices, &comparison));
        }
        self.keep_findings(&findings)
    }
}

fn client_finding(
    id: CellId,
    cell: &Cell,
    own_core: bool,
    slices: &[Slice],
    comparison: &Comparison,
) -> Option<Finding> {
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
    let limit = client_limited(&ClientLoad {
        duration_ns: mine.iter().map(|slice| slice.duration_ns).sum(),
        client_cpu_ns: mine.iter().map(|slice| slice.client_cpu_ns).sum(),
        own_core,
        schedule_lag_ns: lags.get(lags.len() / 2).copied(),
        median_latency_ns: to_u64(median_us * 1e3),
    })?;
    Some(Finding::new(
        FindingKind::ClientLimited,
        Severity::Confounder,
        format!(
            "{} at {} clients: {limit}; its throughput and latency hide differences between the \
             servers",
            cell.workload, cell.clients
        ),
    ))
}
