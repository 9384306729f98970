//! One cost on both sides, block by block.

use crate::comparison::{Cost, Difference};
use crate::levels::Levels;
use crate::sample::{Values, ratio};
use deltabench_model::units::count;
use deltabench_stats::student::t_interval;
use deltabench_stats::summary::mean;

/// What one side counted in one block.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Part {
    /// In the metric's unit, not yet divided.
    pub(super) counted: f64,
    /// Operations; 1 for a size.
    pub(super) over: f64,
}

impl Part {
    pub(super) fn value(self) -> f64 {
        self.counted / self.over
    }
}

/// What the base counted in one block, and its second copy where candidates are compared with both.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Controls {
    pub(super) base: Part,
    pub(super) second: Option<Part>,
}

impl Controls {
    /// Both copies as one: what they counted over what they did.
    fn together(self) -> Part {
        let second = self.second.unwrap_or(Part {
            counted: 0.0,
            over: 0.0,
        });
        Part {
            counted: self.base.counted + second.counted,
            over: self.base.over + second.over,
        }
    }

    /// Mean of the logarithms of both values; absent unless all are above zero.
    fn log(self) -> Option<f64> {
        let values = [Some(self.base), self.second].into_iter().flatten();
        let logs: Vec<f64> = values.map(|part| part.value().ln()).collect();
        mean(&logs).filter(|log| log.is_finite())
    }
}

/// Both sides of one block.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct BlockCost {
    pub(super) block: u32,
    controls: Controls,
    pub(super) candidate: Part,
    /// ln(candidate / base), of the base the mean of its copies' logarithms; absent unless all are above 0.
    pub(super) log_ratio: Option<f64>,
}

impl BlockCost {
    /// From what each server counted in all.
    pub(super) fn pooled(block: u32, controls: Controls, candidate: Part) -> Self {
        let own = Some(candidate.value().ln()).filter(|log| log.is_finite());
        Self {
            block,
            controls,
            candidate,
            log_ratio: own
                .zip(controls.log())
                .map(|(candidate, base)| candidate - base),
        }
    }

    /// What the base counted, both copies as one.
    pub(super) fn base(&self) -> Part {
        self.controls.together()
    }

    fn difference(&self) -> f64 {
        self.candidate.value() - self.base().value()
    }
}

/// One cost of a cell: a value for each block that has it on both sides.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CostSample {
    pub(super) key: String,
    pub(super) blocks: Vec<BlockCost>,
}

impl CostSample {
    /// The cost with its intervals over blocks; `None` without a block.
    pub(super) fn cost(&self, levels: Levels) -> Option<Cost> {
        let differences = self.differences();
        Some(Cost {
            key: self.key.clone(),
            base: self.level(BlockCost::base)?,
            candidate: self.level(|block| block.candidate)?,
            difference: Difference {
                estimate: mean(&differences)?,
                ci95: t_interval(&differences, levels.printed)
                    .ok()
                    .map(|interval| (interval.low, interval.high)),
            },
            ratio: self
                .log_ratios()
                .and_then(|logs| ratio(&Values::plain(logs), levels)),
            blocks: u32::try_from(count(self.blocks.len())).unwrap_or(u32::MAX),
        })
    }

    /// All blocks of one side together; `None` without a block.
    pub(super) fn level(&self, side: impl Fn(&BlockCost) -> Part) -> Option<f64> {
        let parts = self.blocks.iter().map(side);
        let (counted, over) = parts.fold((0.0, 0.0), |(counted, over), part| {
            (counted + part.counted, over + part.over)
        });
        (over > 0.0).then(|| counted / over)
    }

    /// Operations that the candidate's cost of a block is over, in the mean of blocks; 0 without a block.
    pub(super) fn operations(&self) -> f64 {
        let over: Vec<f64> = self
            .blocks
            .iter()
            .map(|block| block.candidate.over)
            .collect();
        mean(&over).unwrap_or(0.0)
    }

    /// `None` unless every block has one.
    pub(super) fn log_ratios(&self) -> Option<Vec<f64>> {
        self.blocks.iter().map(|block| block.log_ratio).collect()
    }

    pub(super) fn differences(&self) -> Vec<f64> {
        self.blocks.iter().map(BlockCost::difference).collect()
    }

    /// How far it moved in each block, as a share, so that cells can be compared: the log-ratio, or where a
    /// block has none the difference over the mean of both sides and all blocks.
    ///
    /// `None` where nothing was counted on either side.
    pub(super) fn moves(&self) -> Option<Vec<f64>> {
        if let Some(logs) = self.log_ratios() {
            return Some(logs).filter(|logs| !logs.is_empty());
        }
        let middles = self.blocks.iter();
        let middles: Vec<f64> = middles
            .map(|block| f64::midpoint(block.base().value(), block.candidate.value()))
            .collect();
        let middle = mean(&middles).filter(|middle| *middle > 0.0)?;
        let differences = self.differences().into_iter();
        Some(differences.map(|by| by / middle).collect())
    }

    /// Both costs together, in the blocks that have both.
    pub(super) fn plus(&self, other: &Self, key: &str) -> Self {
        let add = |a: Part, b: Part| Part {
            counted: a.value() + b.value(),
            over: 1.0,
        };
        let blocks = self.blocks.iter().filter_map(|one| {
            let two = other.blocks.iter().find(|two| two.block == one.block)?;
            let seconds = one.controls.second.zip(two.controls.second);
            let controls = Controls {
                base: add(one.controls.base, two.controls.base),
                second: seconds.map(|(one, two)| add(one, two)),
            };
            let candidate = add(one.candidate, two.candidate);
            Some(BlockCost::pooled(one.block, controls, candidate))
        });
        Self {
            key: key.to_owned(),
            blocks: blocks.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(values: &[(f64, f64)]) -> CostSample {
        let part = |counted| Part { counted, over: 2.0 };
        let blocks = (0..).zip(values);
        CostSample {
            key: "reads_per_op".to_owned(),
            blocks: blocks
                .map(|(block, &(base, candidate))| {
                    let base = part(base);
                    BlockCost::pooled(block, Controls { base, second: None }, part(candidate))
                })
                .collect(),
        }
    }

    #[test]
    fn nothing_against_nothing_is_no_difference_and_no_ratio() {
        let cost = sample(&[(0.0, 0.0); 6]).cost(Levels::FIXED).unwrap();
        assert_eq!((cost.base, cost.candidate), (0.0, 0.0));
        assert_eq!(cost.difference.ci95, Some((0.0, 0.0)));
        assert_eq!((cost.ratio, cost.blocks), (None, 6));
        assert_eq!(sample(&[(0.0, 0.0); 6]).moves(), None);
    }

    #[test]
    fn one_block_without_a_count_leaves_the_difference_and_takes_the_ratio() {
        let cost = sample(&[(2.0, 4.0), (0.0, 2.0)])
            .cost(Levels::FIXED)
            .unwrap();
        assert_eq!((cost.base, cost.candidate, cost.ratio), (0.5, 1.5, None));
        assert!((cost.difference.estimate - 1.0).abs() < 1e-12);
        let moves = sample(&[(2.0, 4.0), (0.0, 2.0)]).moves().unwrap();
        assert!(moves.iter().all(|by| (by - 1.0).abs() < 1e-12), "{moves:?}");
    }

    #[test]
    fn of_two_copies_ratios_take_the_mean_of_logarithms_and_differences_that_of_counts() {
        let part = |counted| Part { counted, over: 2.0 };
        let of = |second| CostSample {
            key: "reads_per_op".to_owned(),
            blocks: vec![BlockCost::pooled(
                0,
                Controls {
                    base: part(2.0),
                    second: Some(part(second)),
                },
                part(8.0),
            )],
        };
        let cost = of(8.0).cost(Levels::FIXED).unwrap();
        assert!((cost.ratio.unwrap().estimate - 2.0).abs() < 1e-12);
        assert_eq!(
            (cost.base, cost.candidate, cost.difference.estimate),
            (2.5, 4.0, 1.5)
        );
        // A copy that counted nothing takes the ratio, and stays in the difference.
        let cost = of(0.0).cost(Levels::FIXED).unwrap();
        assert_eq!((cost.ratio, cost.difference.estimate), (None, 3.5));
        let sum = of(8.0).plus(&of(0.0), "both");
        assert!((sum.blocks[0].base().value() - 3.0).abs() < 1e-12);
    }

    #[test]
    fn no_block_is_no_cost() {
        assert_eq!(sample(&[]).cost(Levels::FIXED), None);
        assert_eq!(sample(&[]).moves(), None);
    }

    #[test]
    fn sums_are_taken_block_by_block() {
        let (one, two) = (sample(&[(2.0, 4.0), (4.0, 4.0)]), sample(&[(2.0, 2.0)]));
        let sum = one.plus(&two, "both");
        assert_eq!(sum.blocks.len(), 1);
        assert!((sum.blocks[0].candidate.value() - 3.0).abs() < 1e-12);
    }
}
