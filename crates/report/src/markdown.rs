//! A comparison for a pull request.

use crate::context::ReportContext;
use crate::summary::summary;
use crate::words;
use deltabench_compare::comparison::{CellComparison, Comparison, Metric};
use deltabench_model::plan::Plan;

/// Markdown with a table (GitHub's dialect): summary, a row per cell, findings.
#[must_use]
pub fn markdown(comparison: &Comparison, plan: &Plan, context: &ReportContext) -> String {
    let several = plan.candidates().len() > 1;
    let mut lines: Vec<String> = summary(comparison, plan)
        .lines()
        .map(|line| format!("**{}**\n", escape(line)))
        .collect();
    let candidate = if several { " candidate |" } else { "" };
    lines.push(format!(
        "| workload | clients |{candidate} throughput | CPU/op | p50 µs | p99 µs | verdict |"
    ));
    lines.push(format!(
        "|---|--:|{}---|---|---|---|---|",
        if several { "---|" } else { "" }
    ));
    lines.extend(comparison.cells.iter().map(|cell| row(cell, several)));
    lines.push(String::new());
    lines.push(
        "Throughput and CPU/op are candidate / base with 95 % interval over restart blocks."
            .to_owned(),
    );
    if !comparison.findings.is_empty() {
        lines.push(String::new());
        let finding = |f: &deltabench_model::finding::Finding| {
            format!("- {}: {}", words::severity(f.severity), escape(&f.text))
        };
        lines.extend(comparison.findings.iter().map(finding));
    }
    lines.push(String::new());
    let made = format!(
        "run {}, deltabench {}",
        context.run, context.deltabench_version
    );
    lines.push(format!(
        "{}: {}",
        escape(&made),
        escape(&words::shell(&plan.command))
    ));
    lines.join("\n") + "\n"
}

fn row(cell: &CellComparison, several: bool) -> String {
    let relative = |metric| words::metric(cell, metric).map(|m| words::ratio_interval(&m.ratio));
    let absolute = |metric| words::metric(cell, metric).map(words::from_to);
    let known = |text: Option<String>| text.unwrap_or_else(|| words::UNKNOWN.to_owned());
    let mut fields = vec![escape(&cell.workload), cell.clients.to_string()];
    if several {
        fields.push(escape(&cell.candidate_name));
    }
    fields.extend([
        known(relative(Metric::Throughput)),
        known(relative(Metric::ServerCpuPerOperation)),
        known(absolute(Metric::LatencyP50)),
        known(absolute(Metric::LatencyP99)),
        format!(
            "{} {}",
            words::sign(cell.verdict),
            escape(&words::judged(cell))
        ),
    ]);
    format!("| {} |", fields.join(" | "))
}

/// Text that Markdown shows as it is.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '&' => escaped.push_str("&amp;"),
            '\n' | '\r' => escaped.push(' '),
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' | '~' => {
                escaped.push('\\');
                escaped.push(c);
            }
            c => escaped.push(c),
        }
    }
    escaped
}
