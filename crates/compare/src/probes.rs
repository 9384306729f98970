//! What blocks would say had the core been equally fast for all servers.
//!
//! A client that shares its server's core has measured that core between operations
//! ([`Slice::probe_ns`]). That is taken not to depend on the server, so it tells apart what the host changed
//! and what the server did. How much of a probe's slowness an operation shows is the slope of a regression
//! over rounds, each less the mean of its block: the block values themselves have no part in it. It is zero
//! where probes say nothing.
//!
//! Source: analysis of covariance with a covariate that the treatment does not change; Kohavi, Tang & Xu,
//! "Trustworthy Online Controlled Experiments", 2020, chapter 18 (CUPED). docs/decisions/0065.

use crate::comparison::{CellComparison, Metric, Probed};
use crate::pairing::{Block, Round};
use crate::thresholds::{PROBE_SLOPE_MAX, PROBED_CELLS, PROBED_FAR, PROBED_ROUNDS, PROBES_FALSE};
use crate::words;
use deltabench_model::finding::{Finding, FindingKind, Severity};
use deltabench_model::plan::{Plan, ServerId};
use deltabench_model::slice::Slice;
use deltabench_model::units::{count, to_f64};
use deltabench_stats::multiplicity::holm;
use deltabench_stats::student::{t_interval, t_test_p};
use deltabench_stats::summary::{geometric_mean, mean, median};
use std::collections::{BTreeMap, BTreeSet};

/// How a cost goes with the probes, from the rounds of one block and all before it: what a block says must
/// not depend on what comes later.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Slope {
    /// Sum of the products of both deviations.
    both: f64,
    /// Sum of the squares of the probes' deviations.
    probes: f64,
    /// Rounds, less one for each block.
    free: f64,
}

impl Slope {
    /// Adds the rounds of a block; `each` is the cost of an operation in a slice of it.
    pub(crate) fn add(&mut self, block: &Block<'_>, each: impl Fn(&Slice) -> Option<f64>) {
        let pair =
            |round: &Round<'_>| Some((round.against_base(probe)?, round.against_base(&each)?));
        let (probes, costs): (Vec<f64>, Vec<f64>) = block.rounds.iter().filter_map(pair).collect();
        if let (Some(probes), Some(costs)) = (deviations(&probes), deviations(&costs)) {
            let both = std::iter::zip(&probes, &costs).map(|(probe, cost)| probe * cost);
            self.both += both.sum::<f64>();
            self.probes += probes.iter().map(|probe| probe * probe).sum::<f64>();
            self.free += to_f64(count(probes.len())) - 1.0;
        }
    }

    /// By how much ln of the cost rises with ln of a probe; 0 while too few rounds tell it.
    pub(crate) fn value(&self) -> f64 {
        let known = self.free >= PROBED_ROUNDS && self.probes > 0.0;
        let slope = if known { self.both / self.probes } else { 0.0 };
        slope.clamp(0.0, PROBE_SLOPE_MAX)
    }
}

/// Values less their mean, of which none is farther from their middle than [`PROBED_FAR`] robust standard
/// deviations: a stall must not tell how an operation goes with the core. `None` for no value.
fn deviations(values: &[f64]) -> Option<Vec<f64>> {
    let middle = median(values)?;
    let off: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    // Rousseeuw & Croux 1993: of normal values.
    let far = PROBED_FAR * 1.4826 * median(&off)?;
    let near = values
        .iter()
        .map(|value| value.clamp(middle - far, middle + far));
    let near: Vec<f64> = near.collect();
    let mean = mean(&near)?;
    Some(near.iter().map(|value| value - mean).collect())
}

/// What the probes of a block tell.
pub(crate) struct Probes {
    /// ln(candidate / base) of each round.
    pub(crate) each: Vec<f64>,
    /// Their mean.
    pub(crate) mean: f64,
    /// The same against the base alone, without a second control.
    pub(crate) one_control: f64,
}

impl Probes {
    /// `None` unless all slices of the block have probes.
    pub(crate) fn of(block: &Block<'_>) -> Option<Self> {
        let rounds = block.rounds.iter();
        let each = rounds.clone().map(|round| round.against_base(probe));
        let each: Vec<f64> = each.collect::<Option<_>>()?;
        let alone = rounds.map(|round| Some((probe(round.candidate)? / probe(round.base)?).ln()));
        Some(Self {
            mean: mean(&each)?,
            one_control: mean(&alone.collect::<Option<Vec<f64>>>()?)?,
            each,
        })
    }
}

/// What a probe took, nanoseconds.
fn probe(slice: &Slice) -> Option<f64> {
    slice.probe_ns.filter(|taken| *taken > 0).map(to_f64)
}

/// What to say of the probes of a run: what they brought, and where they took longer beside one server.
pub(crate) fn findings(plan: &Plan, cells: &[CellComparison]) -> Vec<Finding> {
    let known = cells.iter().filter_map(|cell| {
        let throughput = cell.metric(Metric::Throughput)?;
        Some((cell, throughput.probed.as_ref()?))
    });
    let known: Vec<(&CellComparison, &Probed)> = known.collect();
    let p = known.iter().map(|(_, probed)| probed.p.unwrap_or(1.0));
    let differ = std::iter::zip(&known, holm(&p.collect::<Vec<f64>>()));
    let differ = differ.filter(|(_, p)| *p <= PROBES_FALSE);
    let differ = differ.map(|((cell, probed), _)| differs(plan, cell, probed));
    let candidates: BTreeSet<ServerId> = known.iter().map(|(cell, _)| cell.candidate).collect();
    let in_all = candidates
        .iter()
        .filter_map(|server| differs_in_all(plan, *server, &known));
    brought(&known)
        .into_iter()
        .chain(in_all)
        .chain(differ)
        .collect()
}

/// How much less blocks scatter for the probes.
fn brought(known: &[(&CellComparison, &Probed)]) -> Option<Finding> {
    let scatter = known.iter().filter_map(|(_, probed)| probed.scatter);
    // Values that are all equal have none to divide by.
    let scatter: Vec<f64> = scatter.filter(|times| times.is_finite()).collect();
    let text = format!(
        "probes of the core between operations tell how fast it was: throughput and CPU per operation are as \
         if it had been equally fast for all servers of a block; blocks scatter {:.2} times as much as they \
         did as timed (throughput, geometric mean of {} comparisons)",
        geometric_mean(&scatter)?,
        scatter.len(),
    );
    Some(Finding::new(FindingKind::Probes, Severity::Note, text))
}

/// That probes took longer, or less, beside a candidate in the mean of its cells; `None` where they did not
/// beyond chance. The sample are blocks: all cells of a block share the starts of its servers.
fn differs_in_all(
    plan: &Plan,
    server: ServerId,
    known: &[(&CellComparison, &Probed)],
) -> Option<Finding> {
    let of_server = known.iter().filter(|(cell, _)| cell.candidate == server);
    let cells: Vec<&[(u32, f64)]> = of_server
        .map(|(_, probed)| probed.in_blocks.as_slice())
        .collect();
    let logs = means_of_blocks(&cells);
    let found = t_interval(&logs, 0.95)
        .ok()
        .filter(|_| cells.len() >= PROBED_CELLS)?;
    let differs = t_test_p(&logs).is_ok_and(|p| p <= PROBES_FALSE);
    let text = format!(
        "a probe of the core took {} {} beside {} against the base, as mean of {} cells: the host hardly \
         does that, and ratios are moved by it, those of reads by half as much again",
        words::signed(mean(&logs)?.exp_m1()),
        words::ends((found.low.exp(), found.high.exp())),
        plan.server_name(server),
        cells.len(),
    );
    differs.then(|| Finding::new(FindingKind::ProbesDiffer, Severity::Confounder, text))
}

/// The mean of all cells in each block that half of them have: a block of few cells says little of all.
fn means_of_blocks(cells: &[&[(u32, f64)]]) -> Vec<f64> {
    let mut blocks: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for (block, log) in cells.iter().copied().flatten() {
        blocks.entry(*block).or_default().push(*log);
    }
    let full = blocks.values().filter(|logs| 2 * logs.len() >= cells.len());
    full.filter_map(|logs| mean(logs)).collect()
}

/// That the host alone does not explain what the probes of a cell took.
fn differs(plan: &Plan, cell: &CellComparison, probed: &Probed) -> Finding {
    let text = format!(
        "{}: a probe of the core took {} beside {}, against the base, over all blocks: the host hardly does \
         that, and the ratio is moved by it; it is {} as timed",
        words::cell(plan, cell),
        words::signed(probed.beside.estimate - 1.0),
        cell.candidate_name,
        words::signed(probed.timed.estimate - 1.0),
    );
    Finding::new(FindingKind::ProbesDiffer, Severity::Confounder, text)
}
