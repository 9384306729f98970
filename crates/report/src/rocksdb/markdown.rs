//! The tables in Markdown.

use super::words;
use crate::context::ReportContext;
use crate::insert::words::Line;
use crate::markdown::escape;
use crate::markdown::section::Section;
use deltabench_model::plan::Plan;

/// Targets by step and the caches, open; what the steps did, folded. Nothing for runs of anything else.
pub(crate) fn sections(plan: &Plan, context: &ReportContext) -> Vec<Section> {
    let Some(report) = &context.rocksdb else {
        return Vec::new();
    };
    let rows = words::shown(report);
    let heads = words::heads(&rows);
    let mut sections = vec![
        table(
            &format!(
                "### RocksDB\n\n{}\n\n**Throughput**: {}\n",
                escape(&words::head(plan, report)),
                words::throughput_legend(report)
            ),
            &heads,
            &words::lines(report, &rows, words::throughput),
        ),
        table(
            &format!(
                "**Relative throughput**: {}\n",
                words::relative_legend(report)
            ),
            &heads,
            &words::lines(report, &rows, words::relative),
        ),
    ];
    if !report.caches.is_empty() {
        sections.push(table(
            &format!("**HyperClock against LRU**: {}\n", words::CACHES),
            &words::pairs(report),
            &words::caches(report),
        ));
    }
    let (heads, figures) = words::figures(report, |_| true);
    if !figures.is_empty() {
        let title = format!(
            "<details><summary>What a step did: {}</summary>\n",
            escape(words::FIGURES)
        );
        let mut section = table(&title, &heads, &figures);
        section.foot = vec!["\n</details>\n".to_owned()];
        sections.push(section);
    }
    sections
}

fn table(title: &str, heads: &[String], rows: &[Line]) -> Section {
    let line = |head: &str, texts: &[String]| {
        let texts: Vec<String> = texts.iter().map(|text| escape(text)).collect();
        format!("| {} | {} |", escape(head), texts.join(" | "))
    };
    let rules = vec!["--:"; heads.len()];
    Section {
        head: vec![
            title.to_owned(),
            line("", heads),
            format!("| --- | {} |", rules.join(" | ")),
        ],
        rows: rows.iter().map(|row| line(&row.head, &row.texts)).collect(),
        foot: vec![String::new()],
        what: "step",
    }
}
