//! The forest plot: a row per cell, throughput and CPU per operation side by side.

use super::mark;
use super::{charts, link, percent, reason, typeset, verdict};
use crate::axis::{axis_limit, position, ticks};
use crate::conditions::Conditions;
use crate::confirmation::{self, CONTENDED, DRIFTING, notes};
use crate::context::{ReportContext, resolved};
use crate::{means, withdrawn, withheld, words};
use deltabench_compare::comparison::{
    CellComparison, Comparison, GroupSummary, Metric, MetricComparison, Ratio, Verdict,
};
use deltabench_model::plan::{Group, Plan, ServerId};
use maud::{Markup, html};

/// The two metrics that are judged, with what their directions mean.
const COLUMNS: [Column; 2] = [
    Column {
        metric: Metric::Throughput,
        name: "throughput",
        left: "slower",
        right: "faster",
    },
    Column {
        metric: Metric::ServerCpuPerOperation,
        name: "CPU/op",
        left: "less CPU",
        right: "more CPU",
    },
];

struct Column {
    metric: Metric,
    name: &'static str,
    left: &'static str,
    right: &'static str,
}

struct Forest<'a> {
    comparison: &'a Comparison,
    conditions: Conditions<'a>,
    context: &'a ReportContext,
    limit: f64,
}

pub(super) fn section(comparison: &Comparison, plan: &Plan, context: &ReportContext) -> Markup {
    let forest = Forest {
        comparison,
        conditions: Conditions::new(plan),
        context,
        limit: axis_limit(comparison),
    };
    let base = resolved(plan, plan.base());
    html! {
        section #cells {
            h2 { "Relative to " (base) }
            (charts::filters(comparison, plan))
            (charts::forest())
            div.static {
                @for candidate in plan.candidates() {
                    @if plan.candidates().len() > 1 { h3 { (resolved(plan, candidate)) } }
                    (forest.table(candidate))
                }
            }
            (forest.legend())
        }
    }
}

impl Forest<'_> {
    fn table(&self, candidate: ServerId) -> Markup {
        html! {
            table.forest {
                thead {
                    tr {
                        th.name scope="col" { "workload" }
                        th.verdict scope="col" { "verdict" }
                        @for column in &COLUMNS {
                            th.plot scope="col" { (self.axis(column)) }
                            th.value scope="col" { (column.name) br; small { "change [95 %]" } }
                        }
                    }
                }
                @for group in words::GROUPS {
                    @let cells = self.cells(candidate, group);
                    @let heading = words::heading_in(self.conditions.plan(), group);
                    @if !cells.is_empty() {
                        tbody {
                            tr.group { th colspan="6" scope="rowgroup" { (heading) } }
                            @for cell in cells { (self.row(cell)) }
                            (self.mean(candidate, Some(group)))
                        }
                    }
                }
                @let all = self.mean(candidate, None);
                @if !all.0.is_empty() {
                    tbody {
                        tr.group { th colspan="6" scope="rowgroup" { "All cells" } }
                        (all)
                    }
                }
            }
        }
    }

    fn cells(&self, candidate: ServerId, group: Group) -> Vec<&CellComparison> {
        let shown = |cell: &&CellComparison| cell.candidate == candidate && cell.group == group;
        self.comparison.cells.iter().filter(shown).collect()
    }

    /// The geometric mean of a group, or of all cells; nothing where it would only repeat a cell.
    fn mean(&self, candidate: ServerId, group: Option<Group>) -> Markup {
        let shown = means::shown(self.comparison, self.conditions.plan(), candidate);
        let Some(summary) = shown.into_iter().find(|summary| summary.group == group) else {
            return html! {};
        };
        html! {
            tr.mean {
                th.name scope="row" colspan="2" {
                    (means::name(summary, self.comparison, self.context))
                }
                @for column in &COLUMNS { (self.mean_plot(summary, column)) }
            }
        }
    }

    fn mean_plot(&self, summary: &GroupSummary, column: &Column) -> Markup {
        let ratio = if column.metric == Metric::Throughput {
            Some(&summary.throughput)
        } else {
            summary.server_cpu.as_ref()
        };
        let Some(ratio) = ratio else {
            return html! { td.plot {} td.value { small.label { (column.name) " " } (words::UNKNOWN) } };
        };
        let text = typeset(&words::change_interval(ratio));
        let label = format!("{} {text}", column.name);
        html! {
            td.plot {
                svg width="100%" height="24" role="img" aria-label=(label) {
                    (mark::background(self.limit, None, self.placebo_band(column.metric)))
                    (mark::mean(ratio, self.limit, 12))
                }
            }
            td.value { small.label { (column.name) " " } (in_parts(&text)) }
        }
    }

    fn axis(&self, column: &Column) -> Markup {
        html! {
            span.ends { span { "← " (column.left) } " " span { (column.right) " →" } }
            svg.axis width="100%" height="18" aria-hidden="true" {
                @for tick in ticks(self.limit) {
                    @let x = percent(position(tick, self.limit));
                    text x=(x) y="13" text-anchor="middle" { (tick_text(tick)) }
                }
            }
        }
    }

    fn row(&self, cell: &CellComparison) -> Markup {
        let gone = withdrawn::of_cell(self.context, cell.cell);
        html! {
            tr class=[gone.is_some().then_some("withdrawn")] {
                th.name scope="row" { (link(cell, &self.conditions)) }
                td.verdict {
                    (verdict(cell))
                    @let said = self.said(cell);
                    @if !said.is_empty() { small { (said) } }
                    (doubts(cell))
                    @if let Some(reason) = &gone { small.doubt { "withdrawn: " (reason) } }
                }
                @for column in &COLUMNS {
                    @match words::metric(cell, column.metric) {
                        Some(metric) => (self.plot(cell, metric, column)),
                        None => { td.plot {} td.value { small.label { (column.name) " " } (words::UNKNOWN) } }
                    }
                }
            }
        }
    }

    /// The reason, and how the difference was found and confirmed.
    fn said(&self, cell: &CellComparison) -> String {
        let mut texts = vec![reason(cell)];
        texts.extend(
            notes(cell, &self.comparison.stopping)
                .iter()
                .map(|note| typeset(note)),
        );
        texts.retain(|text| !text.is_empty());
        texts.join("; ")
    }

    fn plot(&self, cell: &CellComparison, metric: &MetricComparison, column: &Column) -> Markup {
        let withheld = withheld::of_cell(self.conditions.plan(), cell.blocks);
        if let Some(text) = withheld.filter(|_| column.metric == Metric::Throughput) {
            return html! { td.plot {} td.value { small.label { (column.name) " " } (text) } };
        }
        let text = typeset(&words::change_interval(&metric.ratio));
        let placebo = self.placebo_cell(cell, column.metric);
        let nothing = placebo.map(|p| format!("; placebo {}", typeset(&words::change_interval(p))));
        let label = format!("{} {text}{}", column.name, nothing.unwrap_or_default());
        html! {
            td.plot {
                svg width="100%" height="38" role="img" aria-label=(label) {
                    (mark::background(self.limit, Some(cell.delta), self.placebo_band(column.metric)))
                    (mark::interval(&metric.ratio, self.limit, shown_verdict(cell, metric), 14))
                    @if let Some(ratio) = placebo { (mark::placebo(ratio, self.limit, 30)) }
                }
            }
            td.value { small.label { (column.name) " " } (in_parts(&text)) }
        }
    }

    fn placebo_cell(&self, cell: &CellComparison, metric: Metric) -> Option<&Ratio> {
        let same = self
            .comparison
            .placebo_cells
            .iter()
            .find(|other| other.cell == cell.cell)?;
        words::metric(same, metric).map(|metric| &metric.ratio)
    }

    fn placebo_band(&self, metric: Metric) -> Option<&Ratio> {
        let placebo = self.comparison.placebo.as_ref()?;
        if metric == Metric::Throughput {
            let few = withheld::of_placebo(self.conditions.plan(), self.comparison);
            few.is_none().then_some(&placebo.throughput)
        } else {
            placebo.server_cpu.as_ref()
        }
    }

    fn legend(&self) -> Markup {
        let delta = words::deltas(&self.comparison.cells);
        let means = self
            .comparison
            .summaries
            .iter()
            .any(|summary| summary.of > 1);
        let key = |verdict| {
            html! { svg.key width="18" height="14" aria-hidden="true" {
                g class=(super::class(verdict)) { (mark::at("9", 7, mark::shape(verdict), "mark")) }
            } }
        };
        html! {
            p.legend {
                "Change of the candidate against the base with its 95 % interval over restart blocks. "
                @if let Some(text) = withheld::unpaired(self.conditions.plan()) { strong { (text) } ". " }
                @if let Some(text) = withheld::controls(self.conditions.plan()) { (text) ". " }
                @let limit = words::share(self.limit);
                span.static { "The axis goes from −" (limit) " to +" (limit) " and does not start at 0. " }
                span { (key(Verdict::Regression)) "worse" } " "
                span { (key(Verdict::Improvement)) "better" } " "
                span { (key(Verdict::NoChange)) "no change beyond " (delta) } " "
                span { (key(Verdict::Inconclusive)) "inconclusive" } " "
                span { (key(Verdict::Unfit)) "unfit: do not use" } " "
                span {
                    svg.key width="18" height="14" aria-hidden="true" { rect.delta width="18" height="14" {} }
                    (delta) @if delta.contains(" to ") { ", each cell its own" }
                } " "
                @if means {
                    span {
                        svg.key width="18" height="14" aria-hidden="true" {
                            g.same { (mark::at("9", 7, mark::MEAN, "mark")) }
                        }
                        "geometric mean"
                    } " "
                }
                @if self.comparison.placebo.is_some() {
                    span {
                        svg.key width="18" height="14" aria-hidden="true" {
                            rect.placebo width="18" height="14" {}
                        }
                        "placebo over all cells"
                    } " "
                    span {
                        svg.key width="18" height="14" aria-hidden="true" {
                            g.nothing { (mark::at("9", 7, mark::DIAMOND, "mark")) }
                        }
                        "placebo in this cell: a second copy of the base"
                    } " "
                }
                @for (mark, meaning) in confirmation::legend(&self.comparison.cells) {
                    span { (mark) " " (meaning) } " "
                }
                @let plan = self.conditions.plan();
                @if let Some(meaning) = means::legend(self.comparison, plan, self.context) {
                    span { (meaning) } " "
                }
            }
        }
    }
}

/// What weakens the verdict, as words with a mark.
fn doubts(cell: &CellComparison) -> Markup {
    let drifting = cell
        .drifting
        .as_ref()
        .map(|_| format!("{DRIFTING} drifting"));
    let contended = cell
        .interference
        .contended
        .then(|| format!("{CONTENDED} contended"));
    html! {
        @for text in [drifting, contended].into_iter().flatten() { small.doubt { (text) } }
    }
}

/// The cell's verdict is about throughput; CPU shows what it says alone, unless the cell is not trusted.
fn shown_verdict(cell: &CellComparison, metric: &MetricComparison) -> Verdict {
    if metric.metric == Metric::Throughput || cell.verdict == Verdict::Unfit {
        cell.verdict
    } else {
        metric.verdict.unwrap_or(Verdict::Inconclusive)
    }
}

/// Change and interval, each unbroken, with a break allowed between them.
fn in_parts(text: &str) -> Markup {
    match text.split_once(" [") {
        Some((change, interval)) => html! { span { (change) } " " span { "[" (interval) } },
        None => html! { span { (text) } },
    }
}

fn tick_text(ratio: f64) -> String {
    let text = words::share(ratio - 1.0);
    let text = text.trim_end_matches(" %");
    match text {
        "0" | "-0" => "0 %".to_owned(),
        text if text.starts_with('-') => typeset(text),
        text => format!("+{text}"),
    }
}
