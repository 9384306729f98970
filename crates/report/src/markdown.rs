//! A comparison for a pull request or a blog post.

mod changed;
pub(crate) mod quoting;
mod rates;
pub(crate) mod section;
pub(crate) mod table;

use crate::again;
use crate::conditions::Conditions;
use crate::confirmation::legend;
use crate::context::{ReportContext, resolved};
use crate::remarks::{remarks, totals, troubles};
use crate::summary::summary;
use crate::table::markdown::{heads, rows};
use crate::{
    costs, counts, differences, explained, figures, grids, means, origin, sampled, withdrawn,
    withheld, words,
};
use deltabench_compare::comparison::Comparison;
use deltabench_compare::gate_line;
use deltabench_model::finding::Severity;
use deltabench_model::plan::Plan;
use quoting::Fence;
pub(crate) use quoting::{escape, fenced};
use section::{LIMIT, Section, fit};
use table::{CellTable, RATIOS};

/// Columns of the table of costs: as wide as a page shows without scrolling.
const COSTS_WIDTH: usize = 120;

/// Markdown (GitHub's dialect): what is withdrawn, the sentence, what changed and what moved with it, the
/// published tables, every figure, costs, what the verdicts rest on, findings, how to make it again.
///
/// Shape: at most 65 000 characters: the longest lists are cut, and say so. Long parts are folded. Columns
///        that would be empty or say the usual in every row are left out.
pub fn markdown(comparison: &Comparison, plan: &Plan, context: &ReportContext) -> String {
    let counted = counts::tables(comparison, plan);
    if comparison.counted_alone().is_some() {
        let mut sections = vec![opening(comparison, plan, context)];
        sections.extend(counted.iter().map(crate::table::markdown::section));
        sections.extend(explained::sections(context, plan));
        sections.extend([found(comparison), again(plan, context)]);
        return fit(sections, LIMIT);
    }
    let mut sections = vec![
        opening(comparison, plan, context),
        changed::section(comparison, plan, context),
    ];
    sections.extend(counted.iter().map(crate::table::markdown::section));
    sections.extend(figures::markdown(&context.figures));
    if context.figures.grids_in_text {
        sections.extend(grids::markdown(&context.grids));
    }
    sections.extend(explained::sections(context, plan));
    sections.extend(sampled::sections(&context.sampled, plan));
    sections.extend([
        rates::section(comparison, plan, context),
        cells(comparison, plan, context),
        cost_table(comparison, plan),
        rest(comparison, plan, context),
        found(comparison),
        again(plan, context),
    ]);
    fit(sections, LIMIT)
}

/// What is withdrawn, the sentence of each candidate, the conditions.
fn opening(comparison: &Comparison, plan: &Plan, context: &ReportContext) -> Section {
    let mut rows: Vec<String> = withdrawn::sentences(plan, context)
        .iter()
        .map(|text| format!("**{}**\n", escape(text)))
        .collect();
    let sentences = summary(comparison, plan);
    rows.extend(
        sentences
            .lines()
            .map(|line| format!("**{}**\n", escape(line))),
    );
    let unusual = Conditions::new(plan).unusual();
    if !unusual.is_empty() {
        rows.push(format!("conditions: {}\n", escape(&unusual.join("; "))));
    }
    let gate = gate_line(comparison, plan);
    rows.extend(gate.map(|line| format!("{}\n", escape(&line))));
    Section {
        rows,
        what: "line",
        ..Section::default()
    }
}

/// A row per cell, folded.
fn cells(comparison: &Comparison, plan: &Plan, context: &ReportContext) -> Section {
    let table = CellTable::new(comparison, plan, context);
    let mut reading =
        "Throughput and CPU/op are candidate / base with 95 % interval over restart blocks"
            .to_owned();
    let has_difference = |(_, _, metric)| differences::any(comparison, metric, plan);
    if RATIOS.into_iter().any(has_difference) {
        reading.push_str(
            "; Δ is candidate - base for an operation: its time (beside throughput), its CPU (beside CPU/op)",
        );
    }
    for (mark, meaning) in legend(&comparison.cells) {
        reading.push_str(&format!("; {mark} {meaning}"));
    }
    for text in [withheld::unpaired(plan), withheld::controls(plan)]
        .into_iter()
        .flatten()
    {
        reading.push_str(&format!("; {text}"));
    }
    if let Some(meaning) = means::legend(comparison, plan, context) {
        reading.push_str(&format!("; {meaning}"));
    }
    let table = table.table();
    let summary =
        "<details><summary>Every cell: throughput, CPU and latency with intervals</summary>\n";
    let mut head = vec![summary.to_owned()];
    head.extend(heads(&table));
    Section {
        head,
        rows: rows(&table),
        foot: vec![format!("\n{reading}.\n\n</details>\n")],
        what: table.row_noun,
    }
}

/// The published table of counters, folded; nothing where none was collected.
fn cost_table(comparison: &Comparison, plan: &Plan) -> Section {
    if comparison.cells.iter().all(|cell| cell.costs.is_empty()) {
        return Section::default();
    }
    let blocks = costs::blocks(comparison, plan, COSTS_WIDTH);
    let names = costs::names(plan).join("\n");
    let fence = Fence::around(blocks.iter().flatten().chain([&names]));
    let legend = costs::legend(comparison, plan, COSTS_WIDTH);
    let legend: Vec<String> = legend
        .iter()
        .map(|line| format!("- {}", escape(line)))
        .collect();
    Section {
        head: vec![
            "<details><summary>What each operation cost</summary>\n".to_owned(),
            format!("{}{}", fence.begin("text"), before(&fence.text(&names))),
        ],
        rows: blocks
            .iter()
            .map(|lines| fence.text(&lines.join("\n")) + "\n")
            .collect(),
        foot: vec![
            fence.end().to_owned(),
            format!("\n{}\n\n</details>\n", legend.join("\n")),
        ],
        what: "cell",
    }
}

/// What the verdicts rest on.
fn rest(comparison: &Comparison, plan: &Plan, context: &ReportContext) -> Section {
    let gate = gate_line(comparison, plan);
    let sentences = remarks(comparison, plan, context)
        .into_iter()
        .filter(|text| gate.as_ref() != Some(text))
        .chain(totals(comparison, plan, context))
        .chain(troubles(comparison, plan, context));
    Section::list("### What this rests on\n", sentences, "line")
}

/// The findings, those that matter most first.
fn found(comparison: &Comparison) -> Section {
    let by = |severity: Severity| {
        let of = comparison.findings.iter();
        of.filter(move |finding| finding.severity == severity)
    };
    let ordered = [Severity::Unfit, Severity::Confounder, Severity::Note]
        .into_iter()
        .flat_map(by)
        .map(|finding| format!("{}: {}", words::severity(finding.severity), finding.text));
    Section::list("### Findings\n", ordered, "finding")
}

/// How to make it again.
fn again(plan: &Plan, context: &ReportContext) -> Section {
    let sides = std::iter::once(plan.base()).chain(plan.candidates());
    let sides = sides.filter_map(|id| {
        let server = plan.server(id)?;
        let side = if id == plan.base() {
            "base"
        } else {
            "candidate"
        };
        let sha256 = &server.installation.binary_sha256;
        // Only a remote server has none.
        let binary = if sha256.is_empty() {
            String::new()
        } else {
            let what = server.installation.engine.file();
            format!(", SHA-256 of its {what} {}", escape(sha256))
        };
        let mut lines = vec![format!("- {side}: {}{binary}", escape(&resolved(plan, id)))];
        let facts = origin::facts(server).into_iter();
        // The name stands above.
        let facts = facts.filter(|(name, _)| *name != "called");
        lines.extend(facts.map(|(name, value)| format!("  - {name}: {}", escape(&value))));
        Some(lines.join("\n"))
    });
    Section {
        head: vec![
            "### How to repeat it\n".to_owned(),
            fenced("sh", &again::lines(plan, context).join("\n")),
        ],
        rows: sides.collect(),
        foot: vec![format!(
            "\n{}",
            escape(&format!(
                "run {}, seed {}, deltabench {}",
                context.run, plan.seed, context.deltabench_version
            ))
        )],
        what: "side",
    }
}

/// On a line of its own, with an empty one after it; nothing where there is none.
fn before(text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!("\n{text}\n")
    }
}
