//! Costs, rates and latency of a cell in the JSON report.

use super::{finite, interval};
use crate::costs::unit;
use crate::format::{BlockRate, Cost, Estimate, Latency, Moved};
use deltabench_compare::comparison::{self, Better, LatencyCurves};

pub(super) fn better(better: Better) -> &'static str {
    match better {
        Better::Higher => "higher",
        Better::Lower => "lower",
    }
}

pub(super) fn cost(cost: &comparison::Cost) -> Cost {
    let (unit, good) = unit(cost);
    let ratio = cost.ratio.as_ref();
    Cost {
        key: cost.key.clone(),
        unit,
        better: good.map(better),
        base: finite(cost.base),
        candidate: finite(cost.candidate),
        difference: estimate(cost.difference.estimate, cost.difference.ci95),
        ratio: ratio.and_then(|ratio| estimate(ratio.estimate, ratio.ci95)),
        blocks: cost.blocks,
    }
}

pub(super) fn estimate(value: f64, ci95: Option<(f64, f64)>) -> Option<Estimate> {
    Some(Estimate {
        estimate: finite(value)?,
        ci95: interval(ci95),
    })
}

pub(super) fn moved(moved: &comparison::Moved) -> Moved {
    Moved {
        key: moved.key.clone(),
        surprise: finite(moved.surprise),
        p: finite(moved.p),
        text: moved.text.clone(),
    }
}

pub(super) fn block_rate(rate: &comparison::BlockRate) -> BlockRate {
    BlockRate {
        block: rate.block,
        base: finite(rate.base),
        candidate: finite(rate.candidate),
        server_cpu_us: rate
            .server_cpu_us
            .and_then(|(base, candidate)| Some([finite(base)?, finite(candidate)?])),
    }
}

/// Points that are numbers on both sides; absent where there is none.
pub(super) fn latency(curves: &LatencyCurves) -> Option<Latency> {
    let sides = std::iter::zip(&curves.base_us, &curves.candidate_us);
    let points: Vec<(f64, f64, f64)> = std::iter::zip(&curves.percentiles, sides)
        .map(|(percentile, (base, candidate))| (*percentile, *base, *candidate))
        .filter(|(at, base, candidate)| at.is_finite() && base.is_finite() && candidate.is_finite())
        .collect();
    (!points.is_empty()).then(|| Latency {
        percentiles: points.iter().map(|point| point.0).collect(),
        base_us: points.iter().map(|point| point.1).collect(),
        candidate_us: points.iter().map(|point| point.2).collect(),
    })
}
