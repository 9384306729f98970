//! The service level of a step: its background inserts must keep their rate.

use super::record::StepRecord;
use deltabench_compare::reading::Unfit;
use deltabench_compare::words;
use deltabench_model::plan::{CellId, Plan, ServerId};
use deltabench_model::units::{count, seconds, to_f64};
use deltabench_model::work::insert::{InsertRole, InsertSetup, InsertStep, SLA_SHARE};
use deltabench_stats::summary::mean;

/// Background inserts of a step on a server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Service {
    /// Rows inserted per second, all clients together, mean over the passes.
    pub rate: f64,
    /// Rows per second that were asked for.
    pub target: f64,
    /// Whether the rate is at least 95 % of that.
    pub met: bool,
    /// Passes that were below by themselves.
    pub short_passes: u32,
    pub passes: u32,
}

impl Service {
    /// From the rates of the passes; `None` without one.
    pub(super) fn of(rates: &[f64], target: f64) -> Option<Self> {
        let rate = mean(rates)?;
        let number = |found: usize| u32::try_from(count(found)).unwrap_or(u32::MAX);
        let short = rates.iter().filter(|rate| !kept(**rate, target));
        Some(Self {
            rate,
            target,
            met: kept(rate, target),
            short_passes: number(short.count()),
            passes: number(rates.len()),
        })
    }

    /// Rate / target.
    pub fn share(&self) -> f64 {
        self.rate / self.target
    }
}

/// A rounding error must not fail who did exactly 95 %.
pub(super) fn kept(rate: f64, target: f64) -> bool {
    rate >= SLA_SHARE * target * (1.0 - 1e-9)
}

/// Rows per second that all clients are to insert; `None` for steps without a rate.
pub(super) fn target(setup: &InsertSetup, step: InsertStep) -> Option<f64> {
    step.rate()
        .map(|rate| f64::from(rate) * f64::from(setup.clients))
}

/// Rows inserted per second in a step that has a rate.
pub(super) fn background(step: InsertStep, record: &StepRecord) -> Option<f64> {
    step.rate()?;
    let rows = record
        .role(InsertRole::Insert)
        .map_or(0, |tally| tally.rows);
    (record.duration_ns > 0).then(|| to_f64(rows) / seconds(record.duration_ns))
}

/// Every comparison with a side that missed its service level, and which one did.
///
/// The mean over the passes decides, as the published table prints it; a single slow pass is told of.
pub(super) fn missed(plan: &Plan, setup: &InsertSetup, steps: &[StepRecord]) -> Unfit {
    let service = |cell: CellId, server: ServerId, step: InsertStep| {
        let of = steps.iter().filter(|record| {
            (record.cell, record.server) == (cell, server) && record.void.is_none()
        });
        let rates: Vec<f64> = of.filter_map(|record| background(step, record)).collect();
        Service::of(&rates, target(setup, step)?).filter(|service| !service.met)
    };
    let mut unfit = Unfit::new();
    for (cell, planned) in CellId::each().zip(&plan.cells) {
        let Some(step) = InsertStep::from_name(&planned.workload) else {
            continue;
        };
        for (server, _) in ServerId::each()
            .zip(&plan.servers)
            .filter(|(id, _)| *id != plan.base())
        {
            let base = plan.compared_with(server);
            let late = [
                (base, service(cell, base, step)),
                (server, service(cell, server, step)),
            ];
            let texts: Vec<String> = late
                .into_iter()
                .filter_map(|(id, service)| Some(text(&plan.server_name(id), &service?)))
                .collect();
            if !texts.is_empty() {
                unfit.insert((cell, server), format!("SLA missed: {}", texts.join("; ")));
            }
        }
    }
    unfit
}

fn text(name: &str, service: &Service) -> String {
    format!(
        "{name} inserted {:.0} of {:.0} rows/s ({}, needs {})",
        service.rate,
        service.target,
        words::percent(service.share()),
        words::threshold(SLA_SHARE)
    )
}
