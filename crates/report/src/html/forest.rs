//! The forest plot: a row per cell, throughput and CPU per operation side by side.

use super::mark;
use super::{cell_name, percent, reason, typeset, verdict};
use crate::context::resolved;
use crate::picture::{axis_limit, position, ticks};
use crate::words;
use deltabench_compare::comparison::{
    CellComparison, Comparison, Metric, MetricComparison, Ratio, Verdict,
};
use deltabench_model::plan::{Plan, ServerId};
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
    limit: f64,
}

pub(super) fn section(comparison: &Comparison, plan: &Plan) -> Markup {
    let forest = Forest {
        comparison,
        limit: axis_limit(comparison),
    };
    let base = resolved(plan, plan.base());
    html! {
        section {
            h2 { "Relative to " (base) }
            @for candidate in plan.candidates() {
                @if plan.candidates().len() > 1 { h3 { (resolved(plan, candidate)) } }
                (forest.table(candidate))
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
                    @let cells = self.cells(candidate, group.word());
                    @if !cells.is_empty() {
                        tbody {
                            tr.group { th colspan="6" scope="rowgroup" { (words::heading(group)) } }
                            @for cell in cells { (self.row(cell)) }
                        }
                    }
                }
            }
        }
    }

    fn cells(&self, candidate: ServerId, group: &str) -> Vec<&CellComparison> {
        let shown =
            |cell: &&CellComparison| cell.candidate == candidate && cell.group.word() == group;
        self.comparison.cells.iter().filter(shown).collect()
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
        html! {
            tr {
                th.name scope="row" { (cell_name(cell)) }
                td.verdict {
                    (verdict(cell.verdict))
                    @if !reason(cell).is_empty() { small { (reason(cell)) } }
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

    fn plot(&self, cell: &CellComparison, metric: &MetricComparison, column: &Column) -> Markup {
        let text = typeset(&words::change_interval(&metric.ratio));
        let placebo = self.placebo_cell(cell, column.metric);
        let nothing = placebo.map(|p| format!("; placebo {}", typeset(&words::change_interval(p))));
        let label = format!("{} {text}{}", column.name, nothing.unwrap_or_default());
        html! {
            td.plot {
                svg width="100%" height="38" role="img" aria-label=(label) {
                    (mark::background(self.limit, self.comparison.delta, self.placebo_band(column.metric)))
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
            Some(&placebo.throughput)
        } else {
            placebo.server_cpu.as_ref()
        }
    }

    fn legend(&self) -> Markup {
        let delta = words::share(self.comparison.delta);
        let key = |verdict| {
            html! { svg.key width="18" height="14" aria-hidden="true" {
                g class=(super::class(verdict)) { (mark::at("9", 7, mark::shape(verdict), "mark")) }
            } }
        };
        html! {
            p.legend {
                "Change of the candidate against the base with its 95 % interval over restart blocks. "
                "The axis ends at ±" (words::share(self.limit)) " and does not start at 0. "
                span { (key(Verdict::Regression)) "worse" } " "
                span { (key(Verdict::Improvement)) "better" } " "
                span { (key(Verdict::NoChange)) "no change beyond ±" (delta) } " "
                span { (key(Verdict::Inconclusive)) "open" } " "
                span { (key(Verdict::Unfit)) "not trusted" } " "
                span {
                    svg.key width="18" height="14" aria-hidden="true" { rect.delta width="18" height="14" {} }
                    "±" (delta)
                } " "
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
                    }
                }
            }
        }
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
