//! A δ for each cell from what its placebo shows of the noise.

use crate::history::History;
use crate::looks::Rules;
use crate::sample::log_ratios;
use crate::thresholds::{
    BLOCKS_OF_NOISE, DELTA_LADDER, DELTA_POWER, LEVEL_EQUIVALENT, MIN_BLOCKS, RESOLVED_WIDTHS,
    SD_LEVEL, log_delta,
};
use deltabench_model::plan::{Plan, Stopping};
use deltabench_model::units::{count, to_f64};
use deltabench_stats::chi_square::sd_at_most;
use deltabench_stats::student::t_quantile;
use deltabench_stats::summary::sample_sd;

/// δ of a cell, as a share: the plan's, or with `delta_from_noise` the smallest step of the ladder that the
/// planned blocks can resolve, and at most the plan's and the gate's margin.
///
/// It knows the first [`MIN_BLOCKS`] block values of the placebo's throughput and how many visits these took,
/// so it cannot follow what a candidate shows, and does not move when more is measured. Until they are there
/// it is the plan's. As many of the planned blocks are taken to count as did of these visits.
///
/// Resolved means: if nothing has changed, the interval of the last look lies within ±δ with probability
/// [`DELTA_POWER`], that is (t(1−α; B−1) + t(1−β/2; B−1))·σ/√B ≤ ln(1+δ), with the level α of the last look
/// and σ the upper limit of the sd at [`SD_LEVEL`]: for 24 blocks, a 90 % half-width of about 0.5 δ.
/// Source: power of two one-sided tests at equality, Julious 2004; the sd of a candidate's blocks is that of
///         the placebo's as both are pairs of one model
///         (docs/sources/statistics.md#paired-log-ratios), times `sd_of_candidates`.
pub(crate) fn cell_delta(plan: &Plan, placebo: Option<&History<'_>>, sd_of_candidates: f64) -> f64 {
    let Some(placebo) = placebo.filter(|_| plan.delta_from_noise) else {
        return plan.delta;
    };
    // As few visits as give the first blocks: later rounds must not move what counts in them.
    let first = (MIN_BLOCKS..=placebo.visits())
        .map(|visits| (visits, log_ratios(&placebo.sample(0..visits).throughput)))
        .find(|(_, logs)| logs.len() >= MIN_BLOCKS);
    let known =
        first.and_then(|(visits, logs)| Some((visits, count(logs.len()), sample_sd(&logs)?)));
    let Some((visits, counted, sd)) = known else {
        return plan.delta;
    };
    let share = to_f64(counted) / to_f64(count(visits));
    let resolved = resolved(plan, sd * sd_of_candidates, share);
    DELTA_LADDER
        .into_iter()
        .find(|&delta| log_delta(delta) >= resolved)
        .unwrap_or(plan.delta)
        .min(plan.delta)
        // A cell that is equal within more than the margin has not answered the question about it.
        .min(plan.gate.not_worse_than.unwrap_or(plan.delta))
}

/// The smallest change, on the log scale, that the planned blocks can exclude if this share of them counts.
fn resolved(plan: &Plan, sd: f64, share: f64) -> f64 {
    let (blocks, alpha) = match &plan.stopping {
        Stopping::Sequential { looks } => (
            share * f64::from(looks.iter().copied().max().unwrap_or(0)),
            Rules::of(looks).last_equivalent(),
        ),
        _ => (
            (share * f64::from(plan.timing.blocks)).min(f64::from(BLOCKS_OF_NOISE)),
            (1.0 - LEVEL_EQUIVALENT) / 2.0,
        ),
    };
    let blocks = blocks.floor().max(to_f64(count(MIN_BLOCKS)));
    let sigma = sd_at_most(sd, to_f64(count(MIN_BLOCKS - 1)), SD_LEVEL);
    let miss = (1.0 - DELTA_POWER) / 2.0;
    let t = |p: f64| t_quantile(p, blocks - 1.0);
    let resolved = (t(1.0 - alpha) + t(1.0 - miss)) * sigma / blocks.sqrt();
    match &plan.stopping {
        // It ends at that width, however much more its blocks could resolve.
        Stopping::Precision { half_width } => resolved.max(RESOLVED_WIDTHS * half_width.ln_1p()),
        _ => resolved,
    }
}
