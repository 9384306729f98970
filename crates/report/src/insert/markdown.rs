//! The tables in Markdown.

use super::words::{self, Line};
use crate::context::{ReportContext, resolved};
use crate::markdown::escape;
use crate::markdown::section::Section;
use deltabench_compare::insert::{INSERT_METRICS, InsertReport};
use deltabench_model::plan::Plan;

/// The summary, open; the metrics line, folded. Nothing for runs of anything else.
pub(crate) fn sections(plan: &Plan, context: &ReportContext) -> Vec<Section> {
    let Some(report) = &context.insert else {
        return Vec::new();
    };
    let names: Vec<String> = report.steps.iter().map(|step| step.name.clone()).collect();
    let mut sections = vec![table(
        &format!(
            "### Insert Benchmark\n\n{}\n\n**Throughput**: {}; {}\n",
            escape(&words::head(plan, report)),
            escape(words::THROUGHPUT),
            words::QUARTILES
        ),
        &names,
        &words::absolute(report),
    )];
    let base = escape(&resolved(plan, plan.base()));
    sections.push(table(
        &format!(
            "**Relative throughput**, server / {base}: {}\n",
            words::RELATIVE
        ),
        &names,
        &words::relative(report, false),
    ));
    if report.steps.iter().any(|step| step.target.is_some()) {
        let title = format!("**Background inserts**: {}\n", words::service_legend());
        sections.push(table(&title, &names, &words::service(report)));
    }
    if let Some(text) = words::settled(report) {
        sections.push(Section {
            rows: vec![format!("{}\n", escape(&text))],
            ..Section::default()
        });
    }
    sections.push(Section::list(
        "**What to mind**\n",
        report.notes.iter().cloned(),
        "note",
    ));
    sections.push(metrics(report));
    sections
}

fn table(title: &str, names: &[String], rows: &[Line]) -> Section {
    let line = |head: &str, texts: &[String]| format!("| {} | {} |", head, texts.join(" | "));
    let rules = vec!["--:".to_owned(); names.len()];
    Section {
        head: vec![title.to_owned(), line("", names), line("---", &rules)],
        rows: rows
            .iter()
            .map(|row| line(&escape(&row.head), &row.texts))
            .collect(),
        foot: vec![String::new()],
        what: "server",
    }
}

fn metrics(report: &InsertReport) -> Section {
    let keys: Vec<String> = INSERT_METRICS
        .iter()
        .filter(|metric| metric.published)
        .map(|metric| metric.key.to_owned())
        .collect();
    let mut rows = Vec::new();
    for (place, step) in report.steps.iter().enumerate() {
        for row in &report.servers {
            let figures = row
                .steps
                .get(place)
                .filter(|figures| figures.throughput.is_some());
            rows.extend(figures.map(|figures| Line {
                head: format!("{} {}", step.name, row.name),
                server: Some(row.server),
                texts: keys.iter().map(|key| words::metric(figures, key)).collect(),
            }));
        }
    }
    let mut section = table(
        "<details><summary>Metrics of each step, as published; CPU of the server alone</summary>\n",
        &keys,
        &rows,
    );
    section.foot = vec!["\n</details>\n".to_owned()];
    section.what = "line";
    section
}
