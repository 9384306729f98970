//! Every block and every round of a cell, in order.

use super::mark::band_between;
use crate::axis::position;
use deltabench_compare::comparison::{
    CellComparison, DetectionOutcome, Metric, MetricComparison, RoundRatio,
};
use deltabench_model::units::{count, index, to_f64, to_u64};
use maud::{Markup, html};
use std::fmt::Write;

/// Dots in one strip; beyond it neighbours in a block are averaged, which the page says.
const DOTS: u32 = 1200;
/// Dots in all strips of a page, and the fewest in one: a page of a hundred cells stays small.
const ALL_DOTS: u64 = 60_000;
const FEWEST_DOTS: u64 = 240;

/// Size of a strip in its own units; the page stretches it.
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 100.0;

/// A metric that rounds have.
pub(super) type Value = fn(&RoundRatio) -> Option<f64>;

/// What a block is for its cell's figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// It is in the figures.
    Counted,
    /// It is in the figures, and was measured to confirm what a look had found.
    Fresh,
    /// It is behind what a look found, and not in the figures.
    Found,
    /// It was measured after the decision.
    Later,
}

impl Part {
    pub(super) fn class(self) -> Option<&'static str> {
        match self {
            Self::Counted => None,
            Self::Fresh => Some("fresh"),
            Self::Found | Self::Later => Some("found"),
        }
    }

    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Counted => "",
            Self::Fresh => " (fresh)",
            Self::Found => " (found the difference, not in the figures)",
            Self::Later => " (after the decision)",
        }
    }
}

/// A block of a cell.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Block {
    /// Its number in the run, from 0.
    pub(super) number: u32,
    /// ln(candidate / base).
    pub(super) value: f64,
    pub(super) part: Part,
    /// By round: the log-ratio, or nothing where the round does not count. Rounds without the metric are in
    /// neither form.
    rounds: Vec<(u32, Option<f64>)>,
}

/// The blocks of a cell in order, each with its rounds.
///
/// The sample's values are those of the comparison. For blocks outside it, which only pictures show, the
/// value is that of their totals.
pub(super) fn by_block(
    cell: &CellComparison,
    metric: &MetricComparison,
    value: Value,
) -> Vec<Block> {
    let visits: Vec<&[RoundRatio]> = cell
        .series
        .chunk_by(|a, b| a.block == b.block)
        .filter(|rounds| rounds.iter().any(|r| value(r).is_some_and(f64::is_finite)))
        .collect();
    let slots = cell.series.iter().map(|round| round.round + 1).max();
    // What a look found comes before the fresh blocks, and other sides may need blocks after them.
    let is_confirmed = is_confirmed(cell);
    let first = metric.numbers.iter().min().copied().unwrap_or(0);
    if visits.is_empty() {
        return only_values(metric);
    }
    let blocks = visits.into_iter().map(|visit| {
        let number = visit.first().map_or(0, |round| round.block);
        let mut sample = std::iter::zip(&metric.numbers, &metric.blocks);
        let known = sample.find_map(|(of, value)| (*of == number).then_some(value));
        Block {
            number,
            value: known
                .copied()
                .or_else(|| total(cell, metric.metric, number))
                .unwrap_or(0.0),
            part: match known {
                Some(_) if is_confirmed => Part::Fresh,
                Some(_) => Part::Counted,
                None if is_confirmed && number < first => Part::Found,
                None => Part::Later,
            },
            rounds: rounds(visit, slots.unwrap_or(0), value),
        }
    });
    blocks.collect()
}

/// Whether the figures are those of fresh blocks that had to confirm a look.
fn is_confirmed(cell: &CellComparison) -> bool {
    let found = cell.detection.as_ref();
    found.is_some_and(|found| !matches!(found.outcome, DetectionOutcome::Confirming { .. }))
}

/// Blocks whose rounds are not known.
fn only_values(metric: &MetricComparison) -> Vec<Block> {
    let blocks = (0..).zip(&metric.blocks);
    blocks
        .map(|(number, value)| Block {
            number,
            value: *value,
            part: Part::Counted,
            rounds: Vec::new(),
        })
        .collect()
}

fn rounds(visit: &[RoundRatio], slots: u32, value: Value) -> Vec<(u32, Option<f64>)> {
    let mut rounds = Vec::new();
    for slot in 0..slots {
        match visit.iter().find(|round| round.round == slot) {
            None => rounds.push((slot, None)),
            Some(round) => {
                if let Some(log) = value(round).filter(|log| log.is_finite()) {
                    rounds.push((slot, Some(log)));
                }
            }
        }
    }
    rounds
}

/// ln(candidate / base) of all rounds of a block together; `None` where it is not known.
fn total(cell: &CellComparison, metric: Metric, block: u32) -> Option<f64> {
    let rate = cell.rates.iter().find(|rate| rate.block == block)?;
    let (base, candidate) = match metric {
        Metric::ServerCpuPerOperation => rate.server_cpu_us?,
        _ => (rate.base, rate.candidate),
    };
    Some((candidate / base).ln())
}

/// The paths of one strip.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Strip {
    /// Rounds that have a dot, before folding.
    pub(super) total: u64,
    /// Rounds in one dot.
    pub(super) fold: u32,
    pub(super) dots: String,
    pub(super) parts: String,
    pub(super) levels: String,
    pub(super) gaps: String,
}

/// How many dots a strip may have on a page of so many cells, each with a strip for both metrics.
pub(super) fn dots(cells: usize) -> u32 {
    let each = ALL_DOTS / (2 * count(cells).max(1));
    u32::try_from(each.max(FEWEST_DOTS)).map_or(DOTS, |each| each.min(DOTS))
}

/// The metric of a round, if rounds have it.
pub(super) fn value_of(metric: Metric) -> Option<Value> {
    match metric {
        Metric::Throughput => Some(|round| Some(round.throughput)),
        Metric::ServerCpuPerOperation => Some(|round| round.server_cpu),
        _ => None,
    }
}

/// The slots of a visit and how many of them make one dot.
fn fold(blocks: &[Block], dots: u32) -> (u32, u32) {
    let slots = blocks.iter().flat_map(|block| &block.rounds);
    let slots = slots.map(|(slot, _)| slot + 1).max().unwrap_or(0);
    let all = slots.saturating_mul(u32::try_from(count(blocks.len())).unwrap_or(u32::MAX));
    (slots, all.div_ceil(dots.max(1)).max(1))
}

/// The strip of some blocks.
pub(super) fn strip(blocks: &[Block], limit: f64, dots: u32) -> Strip {
    let (slots, fold) = fold(blocks, dots);
    Strip::draw(blocks, slots, fold, limit)
}

/// What the dots of a strip say: rounds in each, then by block the log-ratio of every dot.
pub(super) fn folded(blocks: &[Block], dots: u32) -> (u32, Vec<Vec<Option<f64>>>) {
    let (slots, fold) = fold(blocks, dots);
    let columns = slots.div_ceil(fold);
    let of = |block: &Block| -> Vec<Option<f64>> {
        let mut all = vec![None; index(u64::from(columns))];
        for together in block.rounds.chunk_by(|(a, _), (b, _)| a / fold == b / fold) {
            let column = together.first().map_or(0, |(slot, _)| slot / fold);
            let logs: Vec<f64> = together.iter().filter_map(|(_, log)| *log).collect();
            if let Some(place) = all.get_mut(index(u64::from(column))) {
                *place = (!logs.is_empty()).then(|| mean(&logs));
            }
        }
        all
    };
    (fold, blocks.iter().map(of).collect())
}

impl Strip {
    pub(super) const VIEW: &str = "0 0 1000 100";

    fn draw(blocks: &[Block], slots: u32, fold: u32, limit: f64) -> Self {
        let columns = f64::from(slots.div_ceil(fold).max(1));
        let width = WIDTH / (columns * to_f64(count(blocks.len().max(1))));
        let mut strip = Self {
            fold,
            ..Self::default()
        };
        for (place, block) in blocks.iter().enumerate() {
            let left = width * columns * to_f64(count(place));
            if place > 0 {
                strip.part(to_u64(left));
            }
            if block.value.is_finite() {
                let right = to_u64(left + width * columns);
                strip.level(to_u64(left), right, height(block.value.exp(), limit));
            }
            for together in block.rounds.chunk_by(|(a, _), (b, _)| a / fold == b / fold) {
                let column = together.first().map_or(0, |(slot, _)| slot / fold);
                let x = to_u64(left + width * (f64::from(column) + 0.5));
                let logs: Vec<f64> = together.iter().filter_map(|(_, log)| *log).collect();
                strip.total += count(logs.len());
                if logs.len() < together.len() {
                    strip.gap(x);
                }
                if !logs.is_empty() {
                    strip.dot(x, height(mean(&logs).exp(), limit));
                }
            }
        }
        strip
    }

    /// The band of ±δ and the line at equal.
    pub(super) fn band(delta: f64, limit: f64) -> Markup {
        let (low, high) = band_between(delta);
        let (top, bottom) = (height(high, limit), height(low, limit));
        html! {
            rect.delta x="0" width=(WIDTH) y=(top) height=(bottom.saturating_sub(top)) {}
            path.equal d=(format!("M0 {}H{WIDTH}", height(1.0, limit))) {}
        }
    }

    // Writing to a string cannot fail.
    fn dot(&mut self, x: u64, y: u64) {
        let _ = write!(self.dots, "M{x} {y}h0");
    }

    fn part(&mut self, x: u64) {
        let _ = write!(self.parts, "M{x} 0V{HEIGHT}");
    }

    fn gap(&mut self, x: u64) {
        let _ = write!(self.gaps, "M{x} 88V{HEIGHT}");
    }

    fn level(&mut self, from: u64, to: u64, y: u64) {
        let _ = write!(
            self.levels,
            "M{} {y}H{}",
            from + 2,
            to.saturating_sub(2).max(from + 2)
        );
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / to_f64(count(values.len().max(1)))
}

/// Height of a ratio in a strip, from the top.
fn height(ratio: f64, limit: f64) -> u64 {
    to_u64(HEIGHT * (1.0 - position(ratio, limit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(value: f64, logs: &[Option<f64>]) -> Block {
        Block {
            number: 0,
            value,
            part: Part::Counted,
            rounds: (0..).zip(logs.iter().copied()).collect(),
        }
    }

    #[test]
    fn a_strip_has_a_dot_for_every_round_and_a_level_for_every_block() {
        let blocks = [
            block(0.05, &[Some(0.0), Some(0.1)]),
            block(-0.1, &[Some(-0.1), None]),
        ];
        let strip = strip(&blocks, 0.2, DOTS);
        assert_eq!((strip.total, strip.fold), (3, 1));
        assert_eq!(strip.dots.matches('M').count(), 3);
        assert_eq!(strip.levels.matches('M').count(), 2);
        assert_eq!(strip.parts, "M500 0V100");
        assert_eq!(strip.gaps, "M875 88V100");
    }

    #[test]
    fn dots_say_the_same_as_the_strip_and_know_what_is_left_out() {
        let blocks = [block(0.05, &[Some(0.0), Some(0.1), None, Some(0.2)])];
        let (fold, all) = folded(&blocks, 2);
        assert_eq!(fold, 2);
        assert_eq!(all[0], [Some(0.05), Some(0.2)]);
        assert_eq!(folded(&blocks, 4).1[0][2], None);
        assert_eq!((dots(1), dots(100), dots(10_000)), (1200, 300, 240));
    }

    #[test]
    fn folding_never_mixes_blocks() {
        let blocks = [
            block(f64::NAN, &[Some(0.0); 5]),
            block(f64::NAN, &[Some(0.2); 4]),
        ];
        let strip = Strip::draw(&blocks, 5, 3, 0.2);
        assert_eq!(strip.dots.matches('M').count(), 2 + 2);
        assert!(strip.levels.is_empty() && strip.gaps.is_empty());
    }
}
