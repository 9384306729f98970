//! A card for each cell: what the intervals are made of, how the servers warmed up, and every figure.

use super::mark::background;
use super::strips::{Block, Strip, by_block, dots, strip, value_of};
use super::{anchor, cell_name, lead, percent, typeset, verdict, warm_up};
use crate::axis::{axis_limit, position, round_limit};
use crate::conditions::Conditions;
use crate::confirmation::{ConfirmationStatus, look, more_minutes};
use crate::context::ReportContext;
use crate::published::published;
use crate::remarks::{changed, telling};
use crate::{differences, withdrawn, withheld, words};
use deltabench_compare::comparison::{
    CellComparison, Comparison, Detection, DetectionOutcome, Metric, MetricComparison, Verdict,
};
use deltabench_compare::words::more;
use deltabench_model::finding::FindingKind;
use deltabench_model::plan::{Plan, Stopping};
use deltabench_model::units::{count, index, to_f64};
use maud::{Markup, html};

struct Cards<'a> {
    comparison: &'a Comparison,
    plan: &'a Plan,
    context: &'a ReportContext,
    conditions: Conditions<'a>,
    blocks: f64,
    rounds: f64,
    dots: u32,
    /// Whether cards without a change are open too.
    open: bool,
}

/// On a page with more cells only the cards of changes are open.
const OPEN: usize = 8;

pub(super) fn section(comparison: &Comparison, plan: &Plan, context: &ReportContext) -> Markup {
    let cards = Cards {
        comparison,
        plan,
        context,
        conditions: Conditions::new(plan),
        blocks: axis_limit(comparison),
        rounds: round_limit(comparison),
        dots: dots(comparison.cells.len()),
        open: comparison.cells.len() <= OPEN,
    };
    html! {
        section #cards {
            h2 { "Cell by cell" }
            (cards.legend())
            div.cards { @for cell in &comparison.cells { (cards.card(cell)) } }
        }
    }
}

impl Cards<'_> {
    fn legend(&self) -> Markup {
        let any = |has: fn(&CellComparison) -> bool| self.comparison.cells.iter().any(has);
        let fresh = any(|cell| cell.detection.is_some());
        let left_out = any(|cell| cell.interference.left_out + cell.void_rounds > 0);
        html! {
            p.legend {
                "Each card first shows one dot for each restart block, the first block at the top. "
                "Dots further left are lower. The axis goes " (ends(self.blocks)) ". "
                "The interval comes from the spread of the dots. "
                "Below, it shows every round in the order of measuring. Higher dots are higher values; "
                "the axis goes " (ends(self.rounds)) ". Rounds outside of it are on its edge. "
                "Thin lines separate blocks. A short bar is the value of a block. "
                @if matches!(self.comparison.stopping, Stopping::Sequential { .. }) {
                    span { svg.key width="18" height="14" aria-hidden="true" {
                        line.look x1="0" x2="18" y1="7" y2="7" {}
                    } "a look" } " "
                }
                @if fresh {
                    span { svg.key width="18" height="14" aria-hidden="true" {
                        circle.found cx="9" cy="7" r="3.5" {}
                    } "blocks that found the difference; the figures do not use them" } " "
                    span { svg.key width="18" height="14" aria-hidden="true" {
                        circle.fresh cx="9" cy="7" r="3.5" {}
                    } "fresh blocks" } " "
                }
                @if left_out {
                    span { svg.key width="18" height="14" aria-hidden="true" {
                        path.gap d="M5 2V12M9 2V12M13 2V12" {}
                    } "rounds left out" }
                }
            }
        }
    }

    fn card(&self, cell: &CellComparison) -> Markup {
        let several = self.plan.candidates().len() > 1;
        let gone = withdrawn::of_cell(self.context, cell.cell);
        html! {
            article id=(anchor(cell)) data-cell=(anchor(cell)) class=[gone.is_some().then_some("withdrawn")] {
                details open[self.open || changed(cell)] {
                    summary {
                        h3 {
                            (cell_name(cell, &self.conditions))
                            @if several { " " small { "on " (cell.candidate_name) } }
                        }
                        (verdict(cell))
                        @if let Some(metric) = words::metric(cell, Metric::Throughput) {
                            " " span.change { (self.change(cell, metric)) }
                        }
                    }
                    @if let Some(reason) = gone { p.doubt { b.worse { "withdrawn" } ": " (reason) } }
                    (lead::moved(cell))
                    (self.plans(cell))
                    div.panels { (self.panels(cell)) }
                    (self.figures(cell))
                }
            }
        }
    }

    fn change(&self, cell: &CellComparison, metric: &MetricComparison) -> String {
        let withheld = withheld::of_cell(self.plan, cell.blocks);
        let withheld = withheld.filter(|_| metric.metric == Metric::Throughput);
        typeset(&withheld.unwrap_or_else(|| words::change_interval(&metric.ratio)))
    }

    fn panels(&self, cell: &CellComparison) -> Markup {
        html! {
            @if let Some(metric) = words::metric(cell, Metric::Throughput) {
                (self.metric(cell, metric, "throughput"))
            }
            @if let Some(metric) = words::metric(cell, Metric::ServerCpuPerOperation) {
                (self.metric(cell, metric, "CPU/op"))
            }
            @if cell.metrics.is_empty() { p { "nothing measured" } }
            @if cell.latency.as_ref().is_some_and(|curves| curves.percentiles.len() > 1) {
                (drawn(cell, "latency", "latency by percentile"))
            }
            @if cell.rates.len() > 1 { (drawn(cell, "rates", "throughput of each block")) }
            @if let Some(known) = self.context.warm_up(cell.cell) {
                div.panel { (warm_up::chart(known, self.plan)) }
            }
            @if !cell.costs.is_empty() {
                div.panel.wide.scripted {
                    details.costs-of {
                        summary { "What each operation cost (" (cell.costs.len()) ")" }
                        div data-costs=(anchor(cell)) {}
                    }
                }
            }
        }
    }

    /// How the servers plan the statements of this cell, where they do it differently.
    fn plans(&self, cell: &CellComparison) -> Markup {
        let clients = format!("{} at {} client", cell.workload, cell.clients);
        let findings = self.comparison.findings.iter();
        let own = findings.filter(|finding| {
            finding.kind == FindingKind::PlanDiffers && finding.text.starts_with(&clients)
        });
        html! {
            @for finding in own { p.moved { b.open { "plan differs" } " " (typeset(&finding.text)) } }
        }
    }

    fn metric(&self, cell: &CellComparison, metric: &MetricComparison, name: &str) -> Markup {
        let Some(value) = value_of(metric.metric) else {
            return html! {};
        };
        let change = self.change(cell, metric);
        let difference = differences::written(cell, metric.metric, self.plan);
        let blocks = by_block(cell, metric, value);
        let label = format!("{name} of {}", words::plural(count(blocks.len()), "block"));
        html! {
            div.panel data-metric=(metric.metric.key()) {
                p.metric {
                    (name) " " (change)
                    @if let Some(text) = difference { br; small { (typeset(&text)) } }
                }
                svg.blocks width="100%" height="30" role="img" aria-label=(label) {
                    (background(self.blocks, Some(cell.delta), None))
                    (self.looks(&blocks))
                    @for (place, block) in blocks.iter().enumerate() {
                        @if block.value.is_finite() { (self.dot(place, blocks.len(), block)) }
                    }
                }
                (self.rounds(cell, &blocks, name))
            }
        }
    }

    fn dot(&self, place: usize, blocks: usize, block: &Block) -> Markup {
        let ratio = block.value.exp();
        let y = format!("{:.1}", line_of(place, blocks));
        let number = block.number + 1;
        let change = typeset(&words::change(ratio));
        html! {
            circle class=[block.part.class()] cx=(percent(position(ratio, self.blocks))) cy=(y) r="3.5" {
                title { "block " (number) (block.part.words()) ": " (change) }
            }
        }
    }

    /// Lines between the blocks of one look and those of the next.
    fn looks(&self, blocks: &[Block]) -> Markup {
        let Stopping::Sequential { looks } = &self.comparison.stopping else {
            return html! {};
        };
        let places = looks.iter().map(|look| index(u64::from(*look)));
        html! {
            @for place in places.filter(|place| (1..blocks.len()).contains(place)) {
                @let above = line_of(place - 1, blocks.len());
                @let y = format!("{:.1}", f64::midpoint(above, line_of(place, blocks.len())));
                line.look x1="0" x2="100%" y1=(y) y2=(y) {}
            }
        }
    }

    fn rounds(&self, cell: &CellComparison, blocks: &[Block], name: &str) -> Markup {
        let Strip {
            total,
            fold,
            parts,
            dots,
            levels,
            gaps,
        } = strip(blocks, self.rounds, self.dots);
        if total == 0 {
            return html! {};
        }
        let label = format!("{name} of {} in order", words::plural(total, "round"));
        html! {
            svg.rounds data-limit=(self.rounds) width="100%" height="72" viewBox=(Strip::VIEW)
                preserveAspectRatio="none" role="img" aria-label=(label) {
                (Strip::band(cell.delta, self.rounds))
                path.part d=(parts) {}
                @if !gaps.is_empty() { path.gap d=(gaps) {} }
                path.round d=(dots) {}
                path.level d=(levels) {}
            }
            @if fold > 1 { p.muted { "each dot is the mean of " (fold) " rounds" } }
        }
    }

    /// All that is known of a cell besides its plots.
    fn figures(&self, cell: &CellComparison) -> Markup {
        let mut rows = self.conditions_of(cell);
        rows.extend(self.tests(cell));
        rows.extend(disturbances(cell));
        html! {
            details {
                summary { "Figures" }
                dl { @for (name, value) in rows { div { dt { (name) } dd { (typeset(&value)) } } } }
            }
        }
    }

    fn conditions_of(&self, cell: &CellComparison) -> Vec<(&'static str, String)> {
        let mut rows = Vec::new();
        let planned = self.plan.cell(cell.cell);
        if let Some(planned) = planned {
            rows.push(("tables", planned.state.word().to_owned()));
            if let Some(rate) = planned.rate {
                rows.push((
                    "scheduled",
                    format!("{} ops/s (open loop)", words::number(rate)),
                ));
            }
        }
        if let Some(figure) = published(cell, self.plan) {
            rows.push(("published figure", figure.words()));
        }
        rows
    }

    fn tests(&self, cell: &CellComparison) -> Vec<(&'static str, String)> {
        let mut rows = vec![("δ", format!("±{}", words::share(cell.delta)))];
        let p = [
            ("p", cell.p),
            ("p, Holm", cell.p_holm),
            ("p, Benjamini-Hochberg", cell.p_bh),
        ];
        rows.extend(
            p.into_iter()
                .filter_map(|(name, p)| Some((name, words::p_value(p?)))),
        );
        if taken_back(cell) {
            rows.push((
                "verdict without the other cells",
                words::verdict(cell.alone).to_owned(),
            ));
        }
        if (cell.interval_level - 0.95).abs() > 1e-9 {
            let level = words::share(cell.interval_level);
            let stop = match self.comparison.stopping {
                Stopping::Sequential { .. } => "early, at a clear difference",
                _ => "at a width",
            };
            rows.push((
                "level of the intervals",
                format!("{level}, because measuring stopped {stop}"),
            ));
        }
        if let Some(decided) = cell.decided_at {
            rows.push(("decided at look", look(decided, &self.comparison.stopping)));
        }
        if let Some(found) = &cell.detection {
            rows.push(("found", self.found(found)));
            rows.push(("fresh blocks", outcome(found.outcome)));
        }
        if let Some(status) = ConfirmationStatus::of(cell).filter(|_| cell.confirmation.is_some()) {
            rows.push(("measured again", status.phrase().to_owned()));
        }
        if cell.verdict == Verdict::Inconclusive {
            rows.extend(to_verdict(cell, self.plan));
        }
        rows
    }

    fn found(&self, found: &Detection) -> String {
        format!(
            "{}, p {}, at look {} from {} (too large on average, because the look stopped when it found \
             this)",
            words::change_interval(&found.throughput),
            words::p_value(found.p),
            look(found.look, &self.comparison.stopping),
            words::plural(u64::from(found.blocks), "block"),
        )
    }
}

/// `from −5 % to +5 %`.
fn ends(limit: f64) -> String {
    let limit = words::share(limit);
    typeset(&format!("from -{limit} to +{limit}"))
}

/// The place of a chart that the page's script draws when it comes into view.
fn drawn(cell: &CellComparison, kind: &str, title: &str) -> Markup {
    let id = format!("{kind}-{}", anchor(cell));
    html! {
        figure.panel.plot.scripted {
            p.metric { (title) }
            div.chart id=(id) data-chart=(kind) data-of=(anchor(cell)) style="height:190px" {}
            figcaption.legend {
                span.note {} " " button type="button" data-save=(id) { "save as image" }
            }
        }
    }
}

/// Whether it would be listed if it were the only cell.
fn taken_back(cell: &CellComparison) -> bool {
    cell.alone.is_change() && cell.verdict == Verdict::Inconclusive && cell.confirmation.is_none()
}

fn outcome(outcome: DetectionOutcome) -> String {
    match outcome {
        DetectionOutcome::Confirming { blocks_left } => format!("{blocks_left} left"),
        DetectionOutcome::Recurred { p } => {
            format!("it recurred (one-sided p {})", words::p_value(p))
        }
        DetectionOutcome::DidNotRecur { p } => {
            format!("it did not recur (one-sided p {})", words::p_value(p))
        }
    }
}

fn to_verdict(cell: &CellComparison, plan: &Plan) -> Option<(&'static str, String)> {
    let blocks = cell.blocks_to_verdict?;
    let blocks = more(index(u64::from(blocks)), plan.work.repeat());
    let minutes = cell
        .minutes_to_verdict
        .filter(|minutes| minutes.is_finite());
    let text = match minutes {
        Some(minutes) => format!("about {blocks}, {}", more_minutes(minutes)),
        None => format!("about {blocks}"),
    };
    Some(("to a verdict", text))
}

fn disturbances(cell: &CellComparison) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    if let Some(drifting) = &cell.drifting {
        rows.push(("drifting", drifting.clone()));
    }
    let seen = &cell.interference;
    if seen.disturbed_rounds > 0 {
        let what = match (seen.contended, seen.left_out) {
            (true, 0) => "disturbed, more than half, so all of them count",
            (true, _) => {
                "disturbed, more than half; left out, as the interval is wider without them"
            }
            (false, 0) => "disturbed; all of them count",
            (false, _) => "left out",
        };
        let rounds = words::plural(seen.disturbed_rounds, "round");
        rows.push(("other load", format!("{rounds} {what}")));
    }
    rows.extend(
        telling(cell)
            .into_iter()
            .map(|text| ("estimates with and without these rounds", text)),
    );
    rows
}

/// Height of a block's dot: spread downwards in order of time, so that equal blocks do not hide each other.
fn line_of(place: usize, blocks: usize) -> f64 {
    5.0 + 20.0 * to_f64(count(place)) / to_f64(count(blocks.saturating_sub(1).max(1)))
}
