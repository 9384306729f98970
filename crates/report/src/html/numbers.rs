//! The table of values: one row for each cell and candidate, which the page's script sorts and filters.

use super::{anchor, link, typeset, verdict};
use crate::conditions::Conditions;
use crate::context::ReportContext;
use crate::{counts, differences, withdrawn, withheld, words};
use deltabench_compare::comparison::{CellComparison, Comparison, Metric, MetricComparison};
use deltabench_compare::{CountedCell, InstructionCounts};
use deltabench_model::plan::Plan;
use maud::{Markup, html};

/// Counted instructions of both sides.
fn counted(found: Option<&CountedCell>) -> Markup {
    html! {
        @match found {
            Some(found) => td data-value=(found.ratio) {
                (counts::grouped(found.base.per_op)) " → " (counts::grouped(found.counted.per_op)) br;
                small { (typeset(&found.change())) }
            },
            None => td data-value="NaN" { "not counted" },
        }
    }
}

const HEADINGS: [(Metric, &str); 4] = [
    (Metric::Throughput, "throughput, ops/s"),
    (Metric::ServerCpuPerOperation, "server CPU, µs/op"),
    (Metric::LatencyP50, "latency p50, µs"),
    (Metric::LatencyP99, "latency p99, µs"),
];

struct ValueTable<'a> {
    conditions: Conditions<'a>,
    context: &'a ReportContext,
    counts: Option<&'a InstructionCounts>,
    several: bool,
}

pub(super) fn section(comparison: &Comparison, plan: &Plan, context: &ReportContext) -> Markup {
    let table = ValueTable {
        conditions: Conditions::new(plan),
        context,
        counts: comparison.instructions.as_ref(),
        several: plan.candidates().len() > 1,
    };
    html! {
        section #values {
            h2 { "Values" }
            p.legend {
                "Below the values is the change of the candidate against the base and, for throughput and "
                "CPU, what an operation takes more (of time, of CPU), with 95 % intervals. "
                "The microseconds are about the same in another placement, but the change is not."
            }
            p.legend.scripted {
                "Click a column header to sort. The filters above apply here, too. Point at a row, or move "
                "the focus to its name, to see exact values."
            }
            div.scroll tabindex="0" role="region" aria-label="table of values" {
                table.numbers {
                    thead { (table.head()) }
                    tbody { @for cell in &comparison.cells { (table.row(cell)) } }
                }
            }
        }
    }
}

impl ValueTable<'_> {
    fn change(&self, cell: &CellComparison, metric: &MetricComparison) -> String {
        withheld::of_cell(self.conditions.plan(), cell.blocks)
            .filter(|_| metric.metric == Metric::Throughput)
            .unwrap_or_else(|| words::change_interval(&metric.ratio))
    }

    fn head(&self) -> Markup {
        html! {
            tr {
                th scope="col" data-sort="name" { "workload" }
                @if self.several { th scope="col" data-sort="candidate" { "candidate" } }
                th scope="col" data-sort="verdict" { "verdict" }
                @for (metric, heading) in HEADINGS {
                    th scope="col" data-sort=(metric.key()) {
                        (self.heading(metric, heading)) br; small { "base → candidate" }
                    }
                }
                @if self.counts.is_some() {
                    th scope="col" data-sort=(counts::KEY) {
                        "instructions/op" br; small { "base → candidate" }
                    }
                }
                th scope="col" data-sort="blocks" { "blocks" }
                th scope="col" data-sort="rounds" { "rounds" br; small { "void" } }
                th scope="col" data-sort="errors" {
                    (words::error(self.conditions.plan())) "s" br; small { "base, candidate" }
                }
            }
        }
    }

    /// An embedded engine is no server.
    fn heading(&self, metric: Metric, heading: &'static str) -> &'static str {
        match metric {
            Metric::ServerCpuPerOperation if self.conditions.plan().work.is_embedded() => {
                "CPU, µs/op"
            }
            _ => heading,
        }
    }

    fn row(&self, cell: &CellComparison) -> Markup {
        let gone = withdrawn::of_cell(self.context, cell.cell);
        html! {
            tr data-cell=(anchor(cell)) class=[gone.is_some().then_some("withdrawn")] {
                th scope="row" {
                    (link(cell, &self.conditions))
                    @if let Some(reason) = &gone { br; small.doubt { "withdrawn: " (reason) } }
                }
                @if self.several { td { (cell.candidate_name) } }
                td { (verdict(cell)) }
                @for (metric, _) in HEADINGS {
                    td {
                        @match words::metric(cell, metric) {
                            Some(metric) => {
                                (words::from_to(metric)) br;
                                small { (typeset(&self.change(cell, metric))) }
                                @let plan = self.conditions.plan();
                                @if let Some(text) = differences::written(cell, metric.metric, plan) {
                                    br; small { (typeset(&text)) }
                                }
                            }
                            None => (words::UNKNOWN),
                        }
                    }
                }
                @if let Some(counts) = self.counts { (counted(counts.of_cell(cell.cell, cell.candidate))) }
                td data-value=(cell.blocks) { (cell.blocks) }
                td data-value=(cell.rounds) { (cell.rounds) br; small { (cell.void_rounds) " void" } }
                td data-value=(cell.base_errors + cell.candidate_errors) {
                    (cell.base_errors) ", " (cell.candidate_errors)
                }
            }
        }
    }
}
