//! The tables on a terminal.

use super::words;
use crate::context::ReportContext;
use crate::insert::grid;
use crate::lines::wrapped;
use deltabench_model::plan::Plan;

/// Figures of what a step did that a terminal shows; page, Markdown and JSON have all.
const COLUMNS: usize = 8;

/// The tables, with a line for how each is read; nothing for runs of anything else.
pub(crate) fn lines(plan: &Plan, context: &ReportContext, width: usize) -> Vec<String> {
    let Some(report) = &context.rocksdb else {
        return Vec::new();
    };
    let mut lines = vec![String::new()];
    let say = |lines: &mut Vec<String>, text: &str| lines.extend(wrapped(text, width, 0, 2));
    say(
        &mut lines,
        &format!("RocksDB, {}", words::head(plan, report)),
    );
    let rows = words::shown(report);
    let heads = words::heads(&rows);
    say(
        &mut lines,
        &format!("Throughput: {}", words::throughput_legend(report)),
    );
    let throughput = words::lines(report, &rows, words::throughput);
    lines.extend(grid(&heads, &throughput, width));
    say(
        &mut lines,
        &format!("Relative throughput: {}", words::relative_legend(report)),
    );
    let relative = words::lines(report, &rows, words::relative);
    lines.extend(grid(&heads, &relative, width));
    if !report.caches.is_empty() {
        say(
            &mut lines,
            &format!("HyperClock against LRU: {}", words::CACHES),
        );
        lines.extend(grid(&words::pairs(report), &words::caches(report), width));
    }
    let (heads, figures) = words::figures(report, |column| column.step.writes());
    if !figures.is_empty() {
        say(
            &mut lines,
            &format!("What a step that writes did: {}", words::FIGURES),
        );
        let heads: Vec<String> = heads.into_iter().take(COLUMNS).collect();
        lines.extend(grid(&heads, &figures, width));
    }
    lines.push(String::new());
    lines
}
