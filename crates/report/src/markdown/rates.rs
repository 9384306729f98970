//! The published tables: relative throughput, a column per version, a table per group.

use super::fenced;
use super::section::Section;
use crate::conditions::Conditions;
use crate::context::{ReportContext, resolved};
use crate::withdrawn::is_void;
use crate::{withheld, words};
use deltabench_compare::comparison::{CellComparison, Comparison, Metric, Verdict};
use deltabench_model::plan::{CellId, Group, Plan, ServerId};

/// One table for each group, in text as it is published: legend, `col-n`, a row per workload.
///
/// Source: docs/sources/sysbench-microbenchmarks.md#tables-of-results.
pub(super) fn section(comparison: &Comparison, plan: &Plan, context: &ReportContext) -> Section {
    let groups = words::GROUPS.into_iter();
    let rows: Vec<String> = groups
        .filter_map(|group| table(comparison, plan, context, group))
        .collect();
    if rows.is_empty() {
        return Section::default();
    }
    let mut legend = vec![format!("Relative to: {}", resolved(plan, plan.base()))];
    legend.extend(withheld::unpaired(plan).map(str::to_owned));
    let candidates = (1..).zip(plan.candidates());
    legend.extend(
        candidates
            .map(|(column, id): (u32, ServerId)| format!("col-{column} : {}", resolved(plan, id))),
    );
    if comparison.cells.iter().any(|cell| is_void(cell, context)) {
        legend.push(format!(
            "{} : unfit or withdrawn, do not use",
            words::sign(Verdict::Unfit)
        ));
    }
    Section {
        head: vec![
            "### Relative throughput\n".to_owned(),
            fenced("text", &legend.join("\n")),
        ],
        rows,
        foot: Vec::new(),
        what: "group",
    }
}

fn table(
    comparison: &Comparison,
    plan: &Plan,
    context: &ReportContext,
    group: Group,
) -> Option<String> {
    let all = comparison.cells.iter();
    let cells: Vec<&CellComparison> = all.filter(|cell| cell.group == group).collect();
    let mut ids: Vec<CellId> = cells.iter().map(|cell| cell.cell).collect();
    ids.dedup();
    let conditions = Conditions::new(plan);
    let candidates = plan.candidates();
    let clients = plan.cells.iter().map(|cell| cell.clients);
    let several = clients.clone().max() != clients.min();
    let heads = (1..=candidates.len()).map(|column| format!("{:<7}", format!("col-{column}")));
    let mut lines = vec![heads.collect::<String>().trim_end().to_owned()];
    for id in ids {
        let of = |candidate: ServerId| {
            let mut cells = cells.iter();
            cells.find(|cell| cell.cell == id && cell.candidate == candidate)
        };
        let figures = candidates
            .iter()
            .map(|candidate| relative(of(*candidate), conditions.plan(), context));
        let figures: String = figures.map(|text| format!("{text:<7}")).collect();
        let Some(any) = cells.iter().find(|cell| cell.cell == id) else {
            continue;
        };
        let name = if several {
            conditions.name(any)
        } else {
            conditions.label(any)
        };
        lines.push(format!("{figures}{name}"));
    }
    (lines.len() > 1).then(|| {
        format!(
            "{}\n\n{}",
            words::heading_in(conditions.plan(), group),
            fenced("text", &lines.join("\n"))
        )
    })
}

/// Two decimals, as published; the intervals are in the table of every cell. None where no table has a ratio.
fn relative(cell: Option<&&CellComparison>, plan: &Plan, context: &ReportContext) -> String {
    let told = cell.filter(|cell| withheld::of_cell(plan, cell.blocks).is_none());
    let known = told.and_then(|cell| Some((cell, words::metric(cell, Metric::Throughput)?)));
    known.map_or_else(
        || "-".to_owned(),
        |(cell, metric)| {
            let void = if is_void(cell, context) {
                words::sign(Verdict::Unfit)
            } else {
                ""
            };
            format!("{:.2}{void}", metric.ratio.estimate)
        },
    )
}
