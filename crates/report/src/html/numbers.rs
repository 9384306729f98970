//! The table of absolute values.

use super::{cell_name, typeset};
use crate::conditions::Conditions;
use crate::words;
use deltabench_compare::comparison::{CellComparison, Comparison, Metric};
use deltabench_model::plan::Plan;
use maud::{Markup, html};

const HEADINGS: [(Metric, &str); 4] = [
    (Metric::Throughput, "throughput, ops/s"),
    (Metric::ServerCpuPerOperation, "server CPU, µs/op"),
    (Metric::LatencyP50, "latency p50, µs"),
    (Metric::LatencyP99, "latency p99, µs"),
];

pub(super) fn section(comparison: &Comparison, plan: &Plan) -> Markup {
    let several = plan.candidates().len() > 1;
    let conditions = Conditions::new(plan);
    html! {
        section {
            h2 { "Values" }
            div.scroll tabindex="0" role="region" aria-label="table of values" {
                table.numbers {
                    thead {
                        tr {
                            th scope="col" { "workload" }
                            @if several { th scope="col" { "candidate" } }
                            @for (_, heading) in HEADINGS {
                                th scope="col" { (heading) br; small { "base → candidate" } }
                            }
                            th scope="col" { "blocks" }
                            th scope="col" { "rounds" br; small { "void" } }
                            th scope="col" { "server errors" br; small { "base, candidate" } }
                        }
                    }
                    tbody { @for cell in &comparison.cells { (row(cell, &conditions, several)) } }
                }
            }
        }
    }
}

fn row(cell: &CellComparison, conditions: &Conditions<'_>, several: bool) -> Markup {
    html! {
        tr {
            th scope="row" { (cell_name(cell, conditions)) }
            @if several { td { (cell.candidate_name) } }
            @for (metric, _) in HEADINGS {
                td {
                    @match words::metric(cell, metric) {
                        Some(metric) => {
                            (words::from_to(metric)) br;
                            small { (typeset(&words::change_interval(&metric.ratio))) }
                        }
                        None => (words::UNKNOWN),
                    }
                }
            }
            td { (cell.blocks) }
            td { (cell.rounds) br; small { (cell.void_rounds) " void" } }
            td { (cell.base_errors) ", " (cell.candidate_errors) }
        }
    }
}
