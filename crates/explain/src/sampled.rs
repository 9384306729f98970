//! Sampled time by function: how much each differs, with an interval that holds over restarts.
//!
//! A block's samples say which share of the server's time a function has; the time of an operation itself
//! comes from slices without samples. Each function is judged on all blocks together, and all functions
//! together: of those that are called different, at most 5 % are not, on average. The placebo goes through
//! the same and says how much equal servers differ for good.

use crate::merged::plain;
use deltabench_model::explanation::TimeChange;
use deltabench_model::sampled::{FunctionTime, SampledStacks, SampledTime};
use deltabench_model::units::to_f64;
use deltabench_stats::multiplicity::benjamini_hochberg;
use deltabench_stats::shares::{PartDifference, Seen, difference, forecast, overdispersion};
use deltabench_stats::summary::median;
use std::collections::{BTreeMap, BTreeSet};

/// Samples of both sides together that a function needs to be judged: below, it is seen in too few blocks.
const SAMPLES_MIN: f64 = 80.0;

/// How sure intervals are.
const LEVEL: f64 = 0.95;

/// One server in one block.
#[derive(Debug, Clone, PartialEq)]
pub struct SampledSide {
    /// CPU of an operation in slices without samples, nanoseconds.
    pub operation_ns: f64,
    /// What was sampled.
    pub stacks: SampledStacks,
}

/// Both sides of a block, the base first.
pub type SampledBlock = (SampledSide, SampledSide);

/// Judges every function on these blocks; those in which a side has no samples are left out. `lasting` is
/// that of the placebo, 0 for the placebo itself. `None` with fewer than two blocks.
pub fn judged(blocks: &[SampledBlock], lasting: f64) -> Option<SampledTime> {
    let sides = blocks
        .iter()
        .map(|(one, two)| (Side::of(one), Side::of(two)));
    let blocks: Vec<(Side<'_>, Side<'_>)> = sides
        .filter(|(one, two)| one.all > 0.0 && two.all > 0.0)
        .collect();
    (blocks.len() >= 2).then(|| Samples::of(blocks, lasting).judged())
}

/// What sampling added to the CPU of an operation, as a share: the median over blocks.
pub fn cost(blocks: &[SampledBlock]) -> Option<f64> {
    let costs = blocks.iter().filter_map(|(base, _)| base.stacks.taken.cost);
    median(&costs.collect::<Vec<_>>())
}

/// Both sides of every block as counts of stacks of plain names, and the functions that are judged.
struct Samples<'a> {
    blocks: Vec<(Side<'a>, Side<'a>)>,
    /// By own time.
    own: Family<'a>,
    /// With what they call.
    inclusive: Family<'a>,
    overdispersion: f64,
    lasting: f64,
}

struct Side<'a> {
    operation_ns: f64,
    all: f64,
    truncated: f64,
    stacks: Vec<(Vec<&'a str>, f64)>,
}

/// Samples by function.
type Hits<'a> = BTreeMap<&'a str, f64>;

/// Functions that are judged together.
type Family<'a> = Vec<(&'a str, PartDifference)>;

impl<'a> Side<'a> {
    fn of(side: &'a SampledSide) -> Self {
        let stacks = side.stacks.stacks().into_iter();
        Self {
            operation_ns: side.operation_ns,
            all: to_f64(side.stacks.samples()),
            truncated: to_f64(side.stacks.taken.truncated),
            stacks: stacks
                .map(|(names, seen)| (names.into_iter().map(plain).collect(), to_f64(seen)))
                .collect(),
        }
    }

    /// Own samples, and those with the function anywhere on the stack.
    fn hits(&self) -> (Hits<'a>, Hits<'a>) {
        let (mut own, mut inclusive) = (Hits::new(), Hits::new());
        for (stack, seen) in &self.stacks {
            if let Some(last) = stack.last() {
                *own.entry(*last).or_default() += seen;
            }
            // A function that calls itself is on the stack once.
            for name in stack.iter().copied().collect::<BTreeSet<&str>>() {
                *inclusive.entry(name).or_default() += seen;
            }
        }
        (own, inclusive)
    }

    fn seen(&self, hits: f64) -> Seen {
        Seen {
            hits,
            samples: self.all,
            whole: self.operation_ns,
        }
    }
}

/// Every function of which there are samples enough to judge it, by those of both sides in each block.
fn family<'a>(blocks: &[(Side<'a>, Side<'a>)], hits: &[(Hits<'a>, Hits<'a>)]) -> Family<'a> {
    let names: BTreeSet<&str> = hits
        .iter()
        .flat_map(|(one, two)| one.keys().chain(two.keys()).copied())
        .collect();
    let part = |name: &str| {
        let at = |side: &Hits<'_>| side.get(name).copied().unwrap_or(0.0);
        let all: f64 = hits.iter().map(|(one, two)| at(one) + at(two)).sum();
        let pairs = std::iter::zip(blocks, hits);
        let pairs: Vec<(Seen, Seen)> = pairs
            .map(|(block, hits)| (block.0.seen(at(&hits.0)), block.1.seen(at(&hits.1))))
            .collect();
        difference(&pairs).ok().filter(|_| all >= SAMPLES_MIN)
    };
    let judged = names
        .into_iter()
        .filter_map(|name| Some((name, part(name)?)));
    judged.collect()
}

impl<'a> Samples<'a> {
    fn of(blocks: Vec<(Side<'a>, Side<'a>)>, lasting: f64) -> Self {
        let hits = blocks.iter().map(|(one, two)| (one.hits(), two.hits()));
        let (own, inclusive): (Vec<_>, Vec<_>) = hits
            .map(|(one, two)| ((one.0, two.0), (one.1, two.1)))
            .unzip();
        let own = family(&blocks, &own);
        let parts: Vec<PartDifference> = own.iter().map(|(_, part)| *part).collect();
        Self {
            inclusive: family(&blocks, &inclusive),
            blocks,
            own,
            overdispersion: overdispersion(&parts),
            lasting,
        }
    }

    fn judged(&self) -> SampledTime {
        let sum = |of: fn(&(Side<'_>, Side<'_>)) -> f64| self.blocks.iter().map(of).sum::<f64>();
        let (base, other) = (sum(|(one, _)| one.all), sum(|(_, two)| two.all));
        let operation_ns = sum(|(one, _)| one.operation_ns) / sum(|_| 1.0);
        let squares = |of: &dyn Fn(&PartDifference) -> f64| {
            self.own.iter().map(|(_, part)| of(part)).sum::<f64>()
        };
        let excess = squares(&|part| part.excess(self.overdispersion));
        let sizes = squares(&|part| f64::midpoint(part.first, part.second).powi(2));
        SampledTime {
            blocks: self.blocks.len(),
            samples: (
                deltabench_model::units::to_u64(base),
                deltabench_model::units::to_u64(other),
            ),
            complete: 1.0 - sum(|(one, two)| one.truncated + two.truncated) / (base + other),
            overdispersion: self.overdispersion,
            lasting: if sizes > 0.0 {
                (excess / sizes).max(0.0)
            } else {
                0.0
            },
            unseen_ns: forecast(0.01, 1.0, base.min(other)) * operation_ns,
            own: self.judged_together(&self.own),
            inclusive: self.judged_together(&self.inclusive),
        }
    }

    fn judged_together(&self, parts: &Family<'a>) -> Vec<FunctionTime> {
        let p: Vec<f64> = parts
            .iter()
            .map(|(_, part)| self.moderated(part).p())
            .collect();
        let mut judged: Vec<(f64, FunctionTime)> = parts
            .iter()
            .zip(std::iter::zip(benjamini_hochberg(&p), p))
            .map(|((name, part), (adjusted, p))| {
                let time = FunctionTime {
                    name: (*name).to_owned(),
                    change: self.change(part),
                    p: adjusted,
                };
                (p, time)
            })
            .collect();
        judged.sort_by(|(p, a), (q, b)| p.total_cmp(q).then_with(|| a.name.cmp(&b.name)));
        judged.into_iter().map(|(_, time)| time).collect()
    }

    fn moderated(&self, part: &PartDifference) -> deltabench_stats::shares::Moderated {
        let size = f64::midpoint(part.first, part.second);
        part.moderated(self.overdispersion, self.lasting * size.powi(2))
    }

    fn change(&self, part: &PartDifference) -> TimeChange {
        let interval = self.moderated(part).interval(LEVEL);
        TimeChange {
            base_ns: part.first,
            candidate_ns: part.second,
            low_ns: interval.low,
            high_ns: interval.high,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_model::sampled::Taken;

    const NAMES: [&str; 6] = [
        "PostgresMain",
        "exec_simple_query",
        "ExecScan.isra.0",
        "heap_getnext",
        "[sendto]",
        "[truncated]",
    ];

    /// Stacks by the places of their names; counts wobble by the block, alike on no two sides.
    fn side(operation_ns: f64, salt: u64, stacks: &[(&[u32], u64)]) -> SampledSide {
        let wobble = |at: usize, seen: u64| {
            let turn = (salt * 7 + to_u64_place(at) * 3) % 5;
            seen + seen / 100 * turn
        };
        let stacks: BTreeMap<Vec<u32>, u64> = stacks
            .iter()
            .enumerate()
            .map(|(at, (stack, seen))| (stack.to_vec(), wobble(at, *seen)))
            .collect();
        let name = |number: u32| NAMES.get(usize::try_from(number).unwrap()).copied();
        SampledSide {
            operation_ns,
            stacks: SampledStacks::of(Taken::default(), &stacks, name),
        }
    }

    fn to_u64_place(at: usize) -> u64 {
        u64::try_from(at).unwrap()
    }

    fn blocks(scan: u64) -> Vec<SampledBlock> {
        let of = |operation_ns, salt, scan| {
            let stacks: [(&[u32], u64); 4] = [
                (&[0, 1], 1500),
                (&[0, 1, 2], scan),
                (&[0, 1, 2, 3], 2000),
                (&[0, 4], 500),
            ];
            side(operation_ns, salt, &stacks)
        };
        let whole = |scan: u64| 2.5 * to_f64(4000 + scan);
        (0..8)
            .map(|b| (of(whole(1000), b, 1000), of(whole(scan), b + 3, scan)))
            .collect()
    }

    #[test]
    fn a_function_that_takes_longer_is_called_different_and_the_others_are_not() {
        let blocks = blocks(1600);
        let time = judged(&blocks, 0.0).unwrap();
        assert_eq!(time.blocks, 8);
        let first = &time.own[0];
        assert_eq!(first.name, "ExecScan", "without what the compiler appended");
        assert!(first.is_different() && time.own[1..].iter().all(|f| !f.is_different()));
        let change = first.change;
        assert!((change.base_ns - 2500.0).abs() < 100.0, "{change:?}");
        assert!(change.low_ns < 1500.0 && change.high_ns > 1500.0 && change.low_ns > 1000.0);
        let with = time
            .inclusive
            .iter()
            .find(|f| f.name == "ExecScan")
            .unwrap();
        assert!((with.change.base_ns - 7500.0).abs() < 200.0);
        assert!((time.complete - 1.0).abs() < 1e-12);
    }

    #[test]
    fn equal_servers_differ_in_nothing_and_one_block_says_nothing() {
        let blocks = blocks(1000);
        let time = judged(&blocks, 0.0).unwrap();
        assert!(
            time.own
                .iter()
                .chain(&time.inclusive)
                .all(|f| !f.is_different())
        );
        assert!(time.lasting < 1e-3, "{}", time.lasting);
        assert!(judged(&blocks[..1], 0.0).is_none());
        assert!(judged(&[], 0.0).is_none());
    }

    #[test]
    fn what_equal_servers_differ_by_for_good_widens_intervals() {
        let blocks = blocks(1600);
        let width = |lasting| {
            let time = judged(&blocks, lasting).unwrap();
            time.own[0].change.high_ns - time.own[0].change.low_ns
        };
        // 10 % of some 3250 ns, twice, times the quantile.
        assert!(width(0.01) > width(0.0) + 500.0);
    }

    #[test]
    fn stacks_that_are_cut_are_counted() {
        let stacks: [(&[u32], u64); 2] = [(&[5, 3], 100), (&[0, 1], 900)];
        let mut cut = side(1000.0, 0, &stacks);
        cut.stacks.taken.truncated = 100;
        let costs = [None, Some(0.01), Some(0.03), None];
        let blocks = costs.map(|cost| {
            cut.stacks.taken.cost = cost;
            (cut.clone(), cut.clone())
        });
        assert!((cost(&blocks).unwrap() - 0.02).abs() < 1e-12);
        let time = judged(&blocks, 0.0).unwrap();
        assert!((time.complete - 0.9).abs() < 0.01, "{}", time.complete);
    }
}
