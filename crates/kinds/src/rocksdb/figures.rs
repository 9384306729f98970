//! The published figures of RocksDB, with what the comparison says of them.

use super::caches::{self, CachePair};
use super::column::StepColumn;
use super::step_blocks::{self, StepBlock};
use deltabench_compare::comparison::{
    CellComparison, Comparison, Metric, MetricComparison, Ratio, Verdict,
};
use deltabench_model::counter::VisitCounters;
use deltabench_model::plan::{CellId, Plan, PlannedServer, Role, ServerId};
use deltabench_model::slice::Slice;
use deltabench_model::units::{count, to_f64};
use deltabench_model::work::rocksdb::{BLOCK_CACHE, RocksdbStep};
use deltabench_stats::summary::geometric_mean;
use std::collections::BTreeMap;

/// All figures of a run of RocksDB.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RocksdbReport {
    /// The measured steps, in the plan's order.
    pub steps: Vec<StepColumn>,
    /// Base, placebo and candidates, in the plan's order.
    pub targets: Vec<TargetFigures>,
    /// HyperClock against LRU, wherever two targets differ in nothing else.
    pub caches: Vec<CachePair>,
}

/// One target.
#[derive(Debug, Clone, PartialEq)]
pub struct TargetFigures {
    /// Its number in the plan.
    pub server: ServerId,
    pub role: Role,
    /// Its name in tables: what it runs in short, with the options that not all have: `10.2.1 hyper-clock`;
    /// `placebo` for that.
    pub name: String,
    pub version: String,
    /// By step, as [`RocksdbReport::steps`].
    pub steps: Vec<TargetStep>,
}

/// What a target did in a step.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TargetStep {
    /// By block, in order.
    pub blocks: Vec<StepBlock>,
    /// Operations per second: geometric mean over the blocks, of the turns behind `relative`; for the base
    /// those behind that of the target with most of them. Of all good turns where nothing was compared, and
    /// absent where there are none.
    pub throughput: Option<f64>,
    /// Against the base; absent for the base itself, and where nothing was compared.
    pub relative: Option<RelativeStep>,
}

/// A step against the base.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RelativeStep {
    /// Throughput, candidate / base.
    pub ratio: Ratio,
    pub verdict: Verdict,
    pub blocks: u32,
}

impl TargetStep {
    /// Mean of a figure over the blocks that have it.
    pub fn mean(&self, of: impl Fn(&StepBlock) -> Option<f64>) -> Option<f64> {
        let known: Vec<f64> = self.blocks.iter().filter_map(of).collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / to_f64(count(known.len())))
    }
}

/// The figures of a run; `None` for a plan that has nothing to do with RocksDB.
///
/// Shape:  slices and counters in any order; those of cells and servers that the plan does not have are
///         ignored, of two of the same place the later counts. Void slices are in no figure. `comparison` is
///         that of [`deltabench_compare::analyse()`].
/// Source: docs/sources/rocksdb-db-bench.md#reporttsv.
pub fn rocksdb_report(
    plan: &Plan,
    slices: &[Slice],
    counters: &[VisitCounters],
    comparison: &Comparison,
) -> Option<RocksdbReport> {
    let setup = plan.work.rocksdb()?;
    let steps: Vec<StepColumn> = CellId::each()
        .zip(&plan.cells)
        .filter_map(|(cell, planned)| {
            Some(StepColumn {
                cell,
                step: RocksdbStep::from_name(&planned.workload)?,
                threads: planned.clients,
            })
        })
        .collect();
    let mut blocks = step_blocks::by_place(setup, &steps, slices, counters);
    let targets = ServerId::each()
        .zip(&plan.servers)
        .map(|(server, planned)| TargetFigures {
            server,
            role: planned.role,
            name: short_name(plan, planned),
            version: planned.installation.version.clone(),
            steps: steps
                .iter()
                .map(|step| target_step(&mut blocks, comparison, step.cell, server))
                .collect(),
        });
    Some(RocksdbReport {
        targets: targets.collect(),
        caches: caches::pairs(plan, slices, &steps, comparison),
        steps,
    })
}

/// Without what all targets have, and without what a table of RocksDB says anyway.
fn short_name(plan: &Plan, planned: &PlannedServer) -> String {
    if planned.role == Role::Placebo {
        return "placebo".to_owned();
    }
    let bare = |name: &str| name.strip_prefix("rocksdb:").unwrap_or(name).to_owned();
    if let Some(label) = &planned.label {
        return bare(label);
    }
    let mut words = vec![bare(&planned.installation.resolved)];
    for setting in &planned.settings {
        let (name, value) = setting;
        if plan
            .servers
            .iter()
            .all(|other| other.settings.contains(setting))
        {
            continue;
        }
        words.push(match name.as_str() {
            BLOCK_CACHE => value.clone(),
            _ => format!("{name}={value}"),
        });
    }
    words.join(" ")
}

fn target_step(
    blocks: &mut BTreeMap<(ServerId, CellId), Vec<StepBlock>>,
    comparison: &Comparison,
    cell: CellId,
    server: ServerId,
) -> TargetStep {
    let blocks = blocks.remove(&(server, cell)).unwrap_or_default();
    let all = || comparison.cells.iter().chain(&comparison.placebo_cells);
    let here = || all().filter(|one| one.cell == cell);
    let found = here().find(|one| one.candidate == server);
    // Only the base is compared with nobody.
    let compared = match all().any(|one| one.candidate == server) {
        true => found.and_then(speed).map(|speed| speed.candidate),
        false => here()
            .max_by_key(|one| (one.rounds, std::cmp::Reverse(one.candidate)))
            .and_then(speed)
            .map(|speed| speed.base),
    };
    let rates: Vec<f64> = blocks.iter().filter_map(StepBlock::throughput).collect();
    TargetStep {
        throughput: compared.or_else(|| geometric_mean(&rates)),
        relative: found.and_then(relative),
        blocks,
    }
}

fn speed(cell: &CellComparison) -> Option<&MetricComparison> {
    let mut metrics = cell.metrics.iter();
    metrics.find(|metric| metric.metric == Metric::Throughput)
}

fn relative(cell: &CellComparison) -> Option<RelativeStep> {
    Some(RelativeStep {
        ratio: speed(cell)?.ratio,
        verdict: cell.verdict,
        blocks: cell.blocks,
    })
}
