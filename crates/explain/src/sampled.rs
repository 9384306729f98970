//! Sampled time by function: how much each differs, with an interval that holds over restarts.
//!
//! A block's samples say which share of the server's time a function has; the time of an operation itself
//! comes from slices without samples. Each function is judged on all blocks together, and all functions
//! together: of those that are called different, at most 5 % are not, on average. The placebo goes through
//! the same and says how much equal servers differ for good.

use crate::merged::plain;
use deltabench_model::explanation::{Explanation, Line, Place, TimeChange};
use deltabench_model::sampled::{FunctionTime, SampledStacks, SampledTime};
use deltabench_model::units::to_f64;
use deltabench_stats::multiplicity::benjamini_hochberg;
use deltabench_stats::shares::{PartDifference, Seen, difference, forecast, overdispersion};
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

/// Both sides of every block as counts of stacks of plain names.
#[derive(Debug, Clone)]
pub struct Samples<'a> {
    blocks: Vec<(Side<'a>, Side<'a>)>,
    overdispersion: f64,
    lasting: f64,
}

#[derive(Debug, Clone)]
struct Side<'a> {
    operation_ns: f64,
    all: f64,
    stacks: Vec<(Vec<&'a str>, f64)>,
}

/// Samples by function: own ones, and those with the function anywhere on the stack.
type Hits<'a> = (BTreeMap<&'a str, f64>, BTreeMap<&'a str, f64>);

/// Functions that are judged together.
type Family<'a> = Vec<(&'a str, PartDifference)>;

impl<'a> Side<'a> {
    fn of(side: &'a SampledSide) -> Self {
        let stacks = side.stacks.stacks().into_iter();
        Self {
            operation_ns: side.operation_ns,
            all: to_f64(side.stacks.samples()),
            stacks: stacks
                .map(|(names, seen)| (names.into_iter().map(plain).collect(), to_f64(seen)))
                .collect(),
        }
    }

    fn hits(&self) -> Hits<'a> {
        let (mut own, mut inclusive) = Hits::default();
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

impl<'a> Samples<'a> {
    /// From blocks in which both sides have samples; others are left out. `lasting` is that of the placebo,
    /// 0 for the placebo itself.
    #[must_use]
    pub fn of(blocks: &'a [SampledBlock], lasting: f64) -> Self {
        let sides = blocks
            .iter()
            .map(|(one, two)| (Side::of(one), Side::of(two)));
        let mut samples = Self {
            blocks: sides
                .filter(|(one, two)| one.all > 0.0 && two.all > 0.0)
                .collect(),
            overdispersion: 1.0,
            lasting,
        };
        let (own, _) = samples.parts();
        let parts: Vec<PartDifference> = own.into_iter().map(|(_, part)| part).collect();
        samples.overdispersion = overdispersion(&parts);
        samples
    }

    /// Every function that is judged, by own time and with what it calls.
    fn parts(&self) -> (Family<'a>, Family<'a>) {
        let hits: Vec<(Hits<'a>, Hits<'a>)> = self
            .blocks
            .iter()
            .map(|(one, two)| (one.hits(), two.hits()))
            .collect();
        let family = |of: &dyn Fn(&Hits<'a>) -> BTreeMap<&'a str, f64>| {
            let counts: Vec<_> = hits.iter().map(|(one, two)| (of(one), of(two))).collect();
            let names: BTreeSet<&str> = counts
                .iter()
                .flat_map(|(one, two)| one.keys().chain(two.keys()).copied())
                .collect();
            let count = |name: &str| -> Vec<(f64, f64)> {
                let at = |side: &BTreeMap<&str, f64>| side.get(name).copied().unwrap_or(0.0);
                counts.iter().map(|(one, two)| (at(one), at(two))).collect()
            };
            let judged = names
                .into_iter()
                .filter_map(|name| Some((name, self.part(&count(name))?)));
            judged.collect::<Family<'a>>()
        };
        (
            family(&|hits| hits.0.clone()),
            family(&|hits| hits.1.clone()),
        )
    }

    /// A part by its samples in each block; absent with too few of them, or of blocks.
    fn part(&self, hits: &[(f64, f64)]) -> Option<PartDifference> {
        let all: f64 = hits.iter().map(|(one, two)| one + two).sum();
        let pairs = self.blocks.iter().zip(hits);
        let pairs: Vec<(Seen, Seen)> = pairs
            .map(|((one, two), hits)| (one.seen(hits.0), two.seen(hits.1)))
            .collect();
        difference(&pairs).ok().filter(|_| all >= SAMPLES_MIN)
    }

    /// All functions, judged. `None` with fewer than two blocks.
    #[must_use]
    pub fn judged(&self) -> Option<SampledTime> {
        (self.blocks.len() >= 2).then_some(())?;
        let (own, inclusive) = self.parts();
        let sum = |of: fn(&(Side<'_>, Side<'_>)) -> f64| self.blocks.iter().map(of).sum::<f64>();
        let (base, other) = (sum(|(one, _)| one.all), sum(|(_, two)| two.all));
        let operation_ns = sum(|(one, _)| one.operation_ns) / sum(|_| 1.0);
        let cut = |(one, two): &(Side<'_>, Side<'_>)| truncated(one) + truncated(two);
        let squares =
            |of: &dyn Fn(&PartDifference) -> f64| own.iter().map(|(_, part)| of(part)).sum::<f64>();
        let excess = squares(&|part| part.excess(self.overdispersion));
        let sizes = squares(&|part| f64::midpoint(part.first, part.second).powi(2));
        Some(SampledTime {
            blocks: self.blocks.len(),
            samples: (
                deltabench_model::units::to_u64(base),
                deltabench_model::units::to_u64(other),
            ),
            complete: 1.0 - sum(cut) / (base + other),
            overdispersion: self.overdispersion,
            lasting: if sizes > 0.0 {
                (excess / sizes).max(0.0)
            } else {
                0.0
            },
            unseen_ns: forecast(0.01, 1.0, base.min(other)) * operation_ns,
            own: self.family(own),
            inclusive: self.family(inclusive),
        })
    }

    fn family(&self, parts: Family<'a>) -> Vec<FunctionTime> {
        let p: Vec<f64> = parts
            .iter()
            .map(|(_, part)| self.moderated(part).p())
            .collect();
        let mut judged: Vec<(f64, FunctionTime)> = parts
            .into_iter()
            .zip(std::iter::zip(benjamini_hochberg(&p), p))
            .map(|((name, part), (adjusted, p))| {
                let time = FunctionTime {
                    name: name.to_owned(),
                    change: self.change(&part),
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

    /// The time of all stacks that are `wanted`; absent where too few were seen to say.
    #[must_use]
    pub fn change_of(&self, wanted: impl Fn(&[&str]) -> bool) -> Option<TimeChange> {
        let hits = |side: &Side<'_>| -> f64 {
            let seen = side.stacks.iter().filter(|(stack, _)| wanted(stack));
            seen.map(|(_, seen)| seen).sum()
        };
        let hits: Vec<(f64, f64)> = self
            .blocks
            .iter()
            .map(|(one, two)| (hits(one), hits(two)))
            .collect();
        Some(self.change(&self.part(&hits)?))
    }

    /// Gives the lines of an explanation their sampled time.
    pub fn fill(&self, explanation: &mut Explanation) {
        for line in &mut explanation.lines {
            line.time = self.line(line);
            for inner in &mut line.inner {
                inner.time = self.line(inner);
            }
        }
    }

    /// Paths of lines begin below the root, as stacks of samples begin with it.
    fn line(&self, line: &Line) -> Option<TimeChange> {
        let last = line.names.last()?;
        let is_it = |name: &str| name == last || line.with.iter().any(|with| with == name);
        let follows = |stack: &[&str]| {
            let below = stack.get(1..).unwrap_or_default();
            below.len() >= line.names.len()
                && std::iter::zip(below, &line.names).all(|(a, b)| a == b)
        };
        self.change_of(|stack| match line.place {
            Place::Path => follows(stack),
            Place::Itself => stack.len() == line.names.len() + 1 && follows(stack),
            Place::Everywhere => stack.last().is_some_and(|name| is_it(name)),
        })
    }
}

fn truncated(side: &Side<'_>) -> f64 {
    let cut = side
        .stacks
        .iter()
        .filter(|(stack, _)| stack.first() == Some(&"[truncated]"));
    cut.map(|(_, seen)| seen).sum()
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
        let samples = Samples::of(&blocks, 0.0);
        let time = samples.judged().unwrap();
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
        let time = Samples::of(&blocks, 0.0).judged().unwrap();
        assert!(
            time.own
                .iter()
                .chain(&time.inclusive)
                .all(|f| !f.is_different())
        );
        assert!(time.lasting < 1e-3, "{}", time.lasting);
        assert!(Samples::of(&blocks[..1], 0.0).judged().is_none());
        assert!(Samples::of(&[], 0.0).judged().is_none());
    }

    #[test]
    fn what_equal_servers_differ_by_for_good_widens_intervals() {
        let blocks = blocks(1600);
        let width = |lasting| {
            let time = Samples::of(&blocks, lasting).judged().unwrap();
            time.own[0].change.high_ns - time.own[0].change.low_ns
        };
        // 10 % of some 3250 ns, twice, times the quantile.
        assert!(width(0.01) > width(0.0) + 500.0);
    }

    fn line(place: Place, names: &[&str], with: &[&str]) -> Line {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        Line {
            place,
            names: owned(names),
            with: owned(with),
            frames: Vec::new(),
            base: 0,
            candidate: 1,
            base_calls: 1,
            candidate_calls: 1,
            time: None,
            inner: Vec::new(),
        }
    }

    #[test]
    fn a_counted_line_gets_the_time_of_the_same_place() {
        let blocks = blocks(1600);
        let samples = Samples::of(&blocks, 0.0);
        let base = |place, names: &[&str], with: &[&str]| {
            let time = samples.line(&line(place, names, with));
            time.map(|time| (time.base_ns / 500.0).round() * 500.0)
        };
        let scan = ["exec_simple_query", "ExecScan"];
        assert_eq!(base(Place::Path, &scan, &[]), Some(7500.0));
        assert_eq!(base(Place::Itself, &scan, &[]), Some(2500.0));
        assert_eq!(
            base(Place::Everywhere, &["heap_getnext"], &[]),
            Some(5000.0)
        );
        assert_eq!(
            base(Place::Everywhere, &["heap_getnext"], &["ExecScan"]),
            Some(7500.0)
        );
        assert_eq!(base(Place::Path, &["no_such_function"], &[]), None);
    }

    #[test]
    fn stacks_that_are_cut_are_counted() {
        let cut: [(&[u32], u64); 2] = [(&[5, 3], 100), (&[0, 1], 900)];
        let blocks: Vec<SampledBlock> = (0..4)
            .map(|_| (side(1000.0, 0, &cut), side(1000.0, 0, &cut)))
            .collect();
        let time = Samples::of(&blocks, 0.0).judged().unwrap();
        assert!((time.complete - 0.9).abs() < 0.01, "{}", time.complete);
    }
}
