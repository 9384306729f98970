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
use deltabench_stats::summary::{mean, median};
use std::collections::{BTreeMap, BTreeSet};
use std::slice;

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

/// Both sides of a block.
#[derive(Debug, Clone, PartialEq)]
pub struct SampledBlock {
    /// All copies of the base that the other side is compared with.
    pub base: Vec<SampledSide>,
    pub other: SampledSide,
}

/// Judges every function on these blocks; those in which a side has no samples are left out. `lasting` is
/// that of the placebo, 0 for the placebo itself. `None` with fewer than two blocks.
pub fn judged(blocks: &[SampledBlock], lasting: f64) -> Option<SampledTime> {
    let sides = blocks.iter().map(|block| {
        (
            Side::of(&block.base),
            Side::of(slice::from_ref(&block.other)),
        )
    });
    let blocks: Vec<(Side<'_>, Side<'_>)> = sides
        .filter(|(one, two)| one.all > 0.0 && two.all > 0.0)
        .collect();
    (blocks.len() >= 2).then(|| Samples::of(blocks, lasting).judged())
}

/// What sampling added to the CPU of an operation, as a share: the median over blocks.
pub fn cost(blocks: &[SampledBlock]) -> Option<f64> {
    let bases = blocks.iter().flat_map(|block| &block.base);
    let costs = bases.filter_map(|base| base.stacks.taken.cost);
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
    /// Copies of one server as one; nothing if one of them has no samples.
    fn of(copies: &'a [SampledSide]) -> Self {
        let stacks = copies.iter().flat_map(|copy| copy.stacks.stacks());
        let samples = || copies.iter().map(|copy| copy.stacks.samples());
        let known = samples().all(|samples| samples > 0);
        let each = copies.iter().map(|copy| copy.operation_ns);
        Self {
            operation_ns: mean(&each.collect::<Vec<f64>>()).unwrap_or(0.0),
            all: if known { to_f64(samples().sum()) } else { 0.0 },
            truncated: { copies.iter() }
                .map(|copy| to_f64(copy.stacks.taken.truncated))
                .sum(),
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
            .map(|b| SampledBlock {
                base: vec![of(whole(1000), b, 1000)],
                other: of(whole(scan), b + 3, scan),
            })
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
    fn two_copies_of_the_base_are_one_side() {
        let (plain, slower) = (blocks(1000), blocks(1600));
        // One copy scans longer, the other does not, and the candidate does as both do together.
        let all = std::iter::zip(&plain, &slower).map(|(plain, slower)| SampledBlock {
            base: vec![plain.base[0].clone(), slower.other.clone()],
            other: blocks(1300)[0].other.clone(),
        });
        let mut all: Vec<SampledBlock> = all.collect();
        let time = judged(&all, 0.0).unwrap();
        let scan = time.own.iter().find(|one| one.name == "ExecScan").unwrap();
        assert!((scan.change.base_ns - 3250.0).abs() < 100.0, "{scan:?}");
        assert!(!scan.is_different(), "{scan:?}");
        assert!(time.samples.0 > 19 * time.samples.1 / 10, "{time:?}");
        // A copy without samples leaves its block out.
        all[0].base[1] = side(1000.0, 0, &[]);
        assert_eq!(judged(&all, 0.0).unwrap().blocks, 7);
    }

    #[test]
    fn stacks_that_are_cut_are_counted() {
        let stacks: [(&[u32], u64); 2] = [(&[5, 3], 100), (&[0, 1], 900)];
        let mut cut = side(1000.0, 0, &stacks);
        cut.stacks.taken.truncated = 100;
        let costs = [None, Some(0.01), Some(0.03), None];
        let blocks = costs.map(|cost| {
            cut.stacks.taken.cost = cost;
            SampledBlock {
                base: vec![cut.clone()],
                other: cut.clone(),
            }
        });
        assert!((cost(&blocks).unwrap() - 0.02).abs() < 1e-12);
        let time = judged(&blocks, 0.0).unwrap();
        assert!((time.complete - 0.9).abs() < 0.01, "{}", time.complete);
    }
}
