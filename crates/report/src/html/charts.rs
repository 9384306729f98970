//! Places that the page's script fills: controls, and charts that have no static form.
//!
//! Without a script all of it stays hidden.

use crate::context::ReportContext;
use crate::words;
use deltabench_compare::comparison::{Comparison, Verdict};
use deltabench_model::plan::{Group, Plan};
use maud::{Markup, html};

/// The filters, which act on the forest, the table and the cards alike.
pub(super) fn filters(comparison: &Comparison, plan: &Plan) -> Markup {
    let has = |verdict| comparison.cells.iter().any(|cell| cell.verdict == verdict);
    let groups = words::GROUPS.into_iter();
    let groups: Vec<Group> = groups
        .filter(|group| comparison.cells.iter().any(|cell| cell.group == *group))
        .collect();
    let verdicts = [
        Verdict::Regression,
        Verdict::Improvement,
        Verdict::Inconclusive,
        Verdict::NoChange,
        Verdict::Unfit,
    ];
    html! {
        form.controls.scripted #filters role="search" aria-label="filter the cells" {
            label { span { "find" } input #find type="search" placeholder="workload" autocomplete="off"; }
            @if groups.len() > 1 {
                label { span { "group" } select #group {
                    option value="" { "all" }
                    @for group in groups { option value=(group.word()) { (words::heading_in(plan, group)) } }
                } }
            }
            @if plan.candidates().len() > 1 {
                label { span { "candidate" } select #candidate {
                    option value="" { "all" }
                    @for id in plan.candidates() {
                        option value=(id) { (crate::context::resolved(plan, id)) }
                    }
                } }
            }
            fieldset #verdicts aria-label="verdicts shown" {
                @for verdict in verdicts.into_iter().filter(|verdict| has(*verdict)) {
                    label class={ "toggle " (super::class(verdict)) } {
                        input type="checkbox" value=(verdict.word()) checked;
                        span aria-hidden="true" { (words::sign(verdict)) } " " (words::verdict(verdict))
                    }
                }
            }
            output #shown aria-live="polite" {}
        }
    }
}

/// The forest plot that the script draws in place of the static one.
pub(super) fn forest() -> Markup {
    html! {
        div.scripted #forest {
            div.controls {
                label { span { "metric" } select #metric {} }
                label { span { "order" } select #order {
                    option value="group" { "by group, as planned" }
                    option value="effect" { "by effect, worst first" }
                    option value="name" { "by name" }
                    option value="verdict" { "by verdict" }
                } }
                button type="button" data-save="forest-chart" { "save as image" }
            }
            p.ends #forest-ends { span {} span {} }
            div.chart #forest-chart {}
            p.legend #forest-note {}
        }
    }
}

/// Relative throughput as published, over clients and over candidates.
pub(super) fn published(comparison: &Comparison, plan: &Plan) -> Markup {
    let clients = comparison.cells.iter().any(|cell| {
        let others = comparison.cells.iter();
        others
            .into_iter()
            .any(|other| other.workload == cell.workload && other.clients != cell.clients)
    });
    html! {
        section.scripted #charts {
            h2 { "Charts" }
            h3 { "Relative throughput by group" }
            p.legend {
                "Throughput of the candidate / base, as published comparisons show it. " span #bars-note {}
            }
            div.columns #bars {}
            @if clients {
                h3 { "Over " (words::worker(plan)) "s" }
                div.controls { label { span { "workload" } select #clients-of {} } }
                (chart("clients", "clients", 320))
            }
            @if plan.candidates().len() > 1 {
                h3 { "Over candidates" }
                (chart("candidates", "candidates", 340))
            }
        }
    }
}

/// The one-second series of the host.
pub(super) fn host(context: &ReportContext) -> Markup {
    html! {
        @if !context.samples.is_empty() {
            section.scripted #host {
                h2 { "The host, second by second" }
                p.legend {
                    "All charts show the same time. Use the slider below a chart, or Ctrl and the mouse \
                     wheel, to zoom all charts. Click a name in the legend to hide or show it. "
                    span #host-note {}
                }
                div.columns #series {}
            }
        }
    }
}

fn chart(id: &str, kind: &str, height: u32) -> Markup {
    html! {
        figure.plot {
            div.chart id=(id) data-chart=(kind) style={ "height:" (height) "px" } {}
            figcaption.legend {
                span.note {} " " button type="button" data-save=(id) { "save as image" }
            }
        }
    }
}
