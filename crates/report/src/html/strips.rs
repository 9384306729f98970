//! What the intervals are made of: every block and every round.

use super::mark::background;
use super::{cell_name, percent, typeset, verdict};
use crate::picture::{axis_limit, position, round_limit};
use crate::words;
use deltabench_compare::comparison::{
    CellComparison, Comparison, Metric, MetricComparison, RoundRatio,
};
use deltabench_model::plan::Plan;
use deltabench_model::units::{count, to_f64, to_u64};
use maud::{Markup, html};
use std::fmt::Write;

/// Dots in one strip; beyond it neighbours in a block are averaged, which the page says.
const DOTS: usize = 1200;

/// Size of a strip in its own units; the page stretches it.
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 100.0;

/// A metric that rounds have.
type Value = fn(&RoundRatio) -> Option<f64>;

struct Strips<'a> {
    comparison: &'a Comparison,
    blocks: f64,
    rounds: f64,
}

pub(super) fn section(comparison: &Comparison, plan: &Plan) -> Markup {
    let strips = Strips {
        comparison,
        blocks: axis_limit(comparison),
        rounds: round_limit(comparison),
    };
    let several = plan.candidates().len() > 1;
    html! {
        section {
            h2 { "Blocks and rounds" }
            p.legend {
                "In each card, first the restart blocks: one dot for each, left is less, on an axis of ±"
                (words::share(strips.blocks)) " around equal. Their spread makes the interval. "
                "Then every round in the order measured, up is more, ±" (words::share(strips.rounds))
                " around equal; a thin line parts blocks, a short bar is the block's value. "
                "Rounds outside are drawn on the edge."
            }
            div.cards { @for cell in &comparison.cells { (strips.card(cell, several)) } }
        }
    }
}

impl Strips<'_> {
    fn card(&self, cell: &CellComparison, several: bool) -> Markup {
        html! {
            article {
                h3 { (cell_name(cell)) " " (verdict(cell.verdict)) }
                @if several { p.muted { (cell.candidate_name) } }
                @if let Some(metric) = words::metric(cell, Metric::Throughput) {
                    (self.metric(cell, metric, "throughput", |round| Some(round.throughput)))
                }
                @if let Some(metric) = words::metric(cell, Metric::ServerCpuPerOperation) {
                    (self.metric(cell, metric, "CPU/op", |round| round.server_cpu))
                }
                @if cell.metrics.is_empty() { p { "nothing measured" } }
            }
        }
    }

    fn metric(
        &self,
        cell: &CellComparison,
        metric: &MetricComparison,
        name: &str,
        value: Value,
    ) -> Markup {
        let change = typeset(&words::change_interval(&metric.ratio));
        let label = format!(
            "{name} of {}",
            words::plural(count(metric.blocks.len()), "block")
        );
        html! {
            p.metric { (name) " " (change) }
            svg.blocks width="100%" height="26" role="img" aria-label=(label) {
                (background(self.blocks, self.comparison.delta, None))
                @for (place, log) in metric.blocks.iter().enumerate() {
                    @if log.is_finite() { (self.dot(place, metric.blocks.len(), log.exp())) }
                }
            }
            (self.rounds(cell, metric, name, value))
        }
    }

    fn dot(&self, place: usize, blocks: usize, ratio: f64) -> Markup {
        // Spread downwards in order of time, so that equal blocks do not hide each other.
        let y = 5.0 + 16.0 * to_f64(count(place)) / to_f64(count(blocks.saturating_sub(1).max(1)));
        html! {
            circle cx=(percent(position(ratio, self.blocks))) cy=(format!("{y:.1}")) r="3.5" {
                title { "block " (place + 1) ": " (typeset(&words::change(ratio))) }
            }
        }
    }

    fn rounds(
        &self,
        cell: &CellComparison,
        metric: &MetricComparison,
        name: &str,
        value: Value,
    ) -> Markup {
        let blocks = by_block(&cell.series, value);
        let total: usize = blocks.iter().map(Vec::len).sum();
        if total == 0 {
            return html! {};
        }
        let fold = total.div_ceil(DOTS);
        let strip = Strip::draw(&blocks, &metric.blocks, fold, self.rounds);
        let label = format!(
            "{name} of {} in order",
            words::plural(count(total), "round")
        );
        let delta = |sign: f64| height(1.0 + sign * self.comparison.delta, self.rounds);
        let (top, bottom) = (delta(1.0), delta(-1.0));
        let view = format!("0 0 {WIDTH} {HEIGHT}");
        html! {
            svg.rounds width="100%" height="72" viewBox=(view) preserveAspectRatio="none" role="img"
                aria-label=(label) {
                rect.delta x="0" width=(WIDTH) y=(top) height=(bottom.saturating_sub(top)) {}
                path.equal d=(format!("M0 {}H{WIDTH}", height(1.0, self.rounds))) {}
                path.part d=(strip.parts) {}
                path.round d=(strip.dots) {}
                path.level d=(strip.levels) {}
            }
            @if fold > 1 { p.muted { "each dot is the mean of " (fold) " rounds" } }
        }
    }
}

/// The rounds' log-ratios, block by block, in order.
fn by_block(series: &[RoundRatio], value: Value) -> Vec<Vec<f64>> {
    let blocks = series.chunk_by(|a, b| a.block == b.block);
    blocks
        .map(|rounds| {
            rounds
                .iter()
                .filter_map(value)
                .filter(|log| log.is_finite())
                .collect()
        })
        .filter(|rounds: &Vec<f64>| !rounds.is_empty())
        .collect()
}

/// The paths of one strip.
#[derive(Default)]
struct Strip {
    dots: String,
    parts: String,
    levels: String,
}

impl Strip {
    fn draw(blocks: &[Vec<f64>], means: &[f64], fold: usize, limit: f64) -> Self {
        let folded: Vec<Vec<f64>> = blocks
            .iter()
            .map(|rounds| rounds.chunks(fold).map(mean).collect())
            .collect();
        let total: usize = folded.iter().map(Vec::len).sum();
        let column =
            |place: usize| to_u64(WIDTH * (to_f64(count(place)) + 0.5) / to_f64(count(total)));
        let border = |place: usize| to_u64(WIDTH * to_f64(count(place)) / to_f64(count(total)));
        let mut strip = Self::default();
        let mut place = 0;
        for (block, rounds) in folded.iter().enumerate() {
            let (from, to) = (border(place), border(place + rounds.len()));
            if block > 0 {
                strip.part(from);
            }
            // Where blocks are left out of the sample, which level belongs to which block is not known here.
            if let Some(log) = means
                .get(block)
                .filter(|log| means.len() == folded.len() && log.is_finite())
            {
                strip.level(from, to, height(log.exp(), limit));
            }
            for log in rounds {
                strip.dot(column(place), height(log.exp(), limit));
                place += 1;
            }
        }
        strip
    }

    // Writing to a string cannot fail.
    fn dot(&mut self, x: u64, y: u64) {
        let _ = write!(self.dots, "M{x} {y}h0");
    }

    fn part(&mut self, x: u64) {
        let _ = write!(self.parts, "M{x} 0V{HEIGHT}");
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

    #[test]
    fn a_strip_has_a_dot_for_every_round_and_a_level_for_every_block() {
        let strip = Strip::draw(&[vec![0.0, 0.1], vec![-0.1]], &[0.05, -0.1], 1, 0.2);
        assert_eq!(strip.dots.matches('M').count(), 3);
        assert_eq!(strip.levels.matches('M').count(), 2);
        assert_eq!(strip.parts, "M667 0V100");
    }

    #[test]
    fn folding_never_mixes_blocks() {
        let strip = Strip::draw(&[vec![0.0; 5], vec![0.2; 4]], &[], 3, 0.2);
        assert_eq!(strip.dots.matches('M').count(), 2 + 2);
        assert!(strip.levels.is_empty());
    }
}
