//! The registry of metrics on the terminal, and the pages of `docs/reference`.
//!
//! The pages are made from what the program itself uses: its arguments, its registry, the schema of its
//! exports. `cargo xtask gen` writes them, and `cargo xtask gen --check` fails when one is stale.

use crate::arguments::Arguments;
use crate::console::{print_stdout, width};
use crate::export::schema;
use crate::failure::Failure;
use crate::text::paragraph;
use clap::CommandFactory;
use deltabench_model::counter::SERIES;
use deltabench_model::finding::FINDINGS;
use deltabench_model::metric::{Basis, METRICS, MetricInfo};
use deltabench_model::problem::Problem;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Widest line on the terminal.
const WIDEST: usize = 120;

/// Widest line of a page (`cargo xtask tidy` allows as many).
const PAGE: usize = 160;

/// Columns of the help on the page.
const HELP: usize = 100;

/// The first line of every page.
const MADE: &str =
    "`cargo xtask gen` writes this page from the program; make changes there, not here.";

/// `deltabench metrics`.
pub fn metrics() -> Result<u8, Failure> {
    let width = width().min(WIDEST);
    let mut lines = Vec::new();
    for metric in METRICS {
        let good = metric
            .better
            .map_or_else(String::new, |way| format!(", {} is better", way.word()));
        let unit = format!("{}{good}", metric.unit);
        lines.push(format!("{} ({}): {unit}", metric.key, metric.name));
        lines.extend(paragraph("    ", metric.meaning, width));
        let source = format!("from {}; {}", metric.source, metric.versions);
        lines.extend(paragraph("    ", &source, width));
    }
    print_stdout(&lines.join("\n"))?;
    Ok(0)
}

/// `deltabench reference`: a JSON object with the text of each page by its file name.
pub fn reference() -> Result<u8, Failure> {
    let pages = BTreeMap::from([
        ("benchmarks.md", benchmarks_page()),
        ("commands.md", commands_page()),
        ("metrics.md", metrics_page()),
        ("export.md", export_page()),
        ("findings.md", findings_page()),
    ]);
    let json = serde_json::to_string_pretty(&pages).map_err(|error| {
        let problem = Problem::new("the pages cannot be written as JSON");
        Failure::Failed(problem.detail(error.to_string()))
    })?;
    print_stdout(&json)?;
    Ok(0)
}

fn page(title: &str, text: &str) -> String {
    let mut page = format!("# {title}\n\n{MADE}\n\n");
    for line in paragraph("", text, PAGE) {
        page.push_str(&line);
        page.push('\n');
    }
    page
}

/// Commands with so many options that they have a separate page.
const BENCHMARKS: [&str; 6] = [
    "pgbench",
    "insert",
    "rocksdb",
    "orders",
    "crosscheck",
    "calibrate",
];

fn commands_page() -> String {
    let mut page = page(
        "Commands",
        "The help of every command, as `deltabench COMMAND --help` prints it, without its blank lines \
         and without the options that all of them have: `--lab`, `--cache` and `--offline`. Those of \
         `pgbench`, `insert`, `rocksdb`, `orders`, `crosscheck` and `calibrate` are on [a separate \
         page](benchmarks.md).",
    );
    let mut root = Arguments::command().term_width(HELP);
    root.build();
    let subcommands = root.clone();
    help(&mut page, "deltabench", root, 2);
    for command in subcommands.get_subcommands() {
        if !BENCHMARKS.contains(&command.get_name()) {
            commands(&mut page, "deltabench", command, 2);
        }
    }
    page
}

fn findings_page() -> String {
    let mut page = page(
        "Findings",
        "What a report says beside its numbers: how the sides differ, what is to be known of the host and \
         of the method. Each has a word, which JSON, stores and pages keep, and a text with the facts of its \
         run. [Reading a report](../guide/reading.md#the-notes) says in which order they come.",
    );
    for (title, findings) in [
        ("Of every run", FINDINGS),
        ("Of one kind of benchmark", &deltabench_kinds::FINDINGS),
    ] {
        let _ = write!(
            page,
            "\n## {title}\n\n| finding | what it says |\n|---|---|\n"
        );
        for (word, meaning) in findings {
            let _ = writeln!(page, "| `{word}` | {} |", meaning.trim());
        }
    }
    page
}

fn benchmarks_page() -> String {
    let mut page = page(
        "Commands: pgbench, the Insert Benchmark, RocksDB, crosscheck, calibrate",
        "The help of commands with many options, as on [the page of all others](commands.md).",
    );
    let mut root = Arguments::command().term_width(HELP);
    root.build();
    for name in BENCHMARKS {
        for command in root
            .get_subcommands()
            .filter(|command| command.get_name() == name)
        {
            commands(&mut page, "deltabench", command, 2);
        }
    }
    page
}

/// The help of a command and of those below it.
fn commands(page: &mut String, above: &str, command: &clap::Command, level: usize) {
    if command.is_hide_set() || command.get_name() == "help" {
        return;
    }
    let name = format!("{above} {}", command.get_name());
    let shared = ["lab", "cache", "offline", "help"];
    let own = command.clone().mut_args(|argument| {
        let hidden = shared.contains(&argument.get_id().as_str());
        if hidden {
            argument.hide(true)
        } else {
            argument
        }
    });
    help(page, &name, own, level);
    for below in command.get_subcommands() {
        commands(page, &name, below, level + 1);
    }
}

fn help(page: &mut String, name: &str, mut command: clap::Command, level: usize) {
    let text = command.render_long_help().to_string();
    let mut lines: Vec<&str> = Vec::new();
    let mut gap = false;
    for line in text.trim_end().lines().map(str::trim_end) {
        // Only parts are set apart, not single options: the page would be half as long again.
        if gap && !line.is_empty() && !line.starts_with(' ') {
            lines.push("");
        }
        gap = line.is_empty();
        lines.extend(Some(line).filter(|line| !line.is_empty()));
    }
    // Writing to a string cannot fail.
    let _ = write!(
        page,
        "\n{} {name}\n\n```text\n{}\n```\n",
        "#".repeat(level),
        lines.join("\n")
    );
}

fn metrics_page() -> String {
    let mut page = page(
        "Metrics",
        "Every figure that a report shows about a cell, and every series. `deltabench metrics` prints the \
         same. A value that a host or a version does not have is absent, never 0.",
    );
    let groups = [
        (
            Basis::Slices,
            "From the slices",
            "Fields of the slices, divided by the operations of the slices.",
        ),
        (
            Basis::SliceEnds,
            "Counted at the ends of slices",
            "Counters that all servers share, read at both ends of every slice and divided by the \
             operations of the slices.",
        ),
        (
            Basis::Requests(""),
            "For each request of the device",
            "Counters that all servers share, read at both ends of every slice and divided by the \
             requests of the device meanwhile.",
        ),
        (
            Basis::Visit,
            "Counted over a visit",
            "Counters of one server, read before a visit opens its connections and after it closes \
             them, divided by all operations of the visit with its warm-up.",
        ),
        (
            Basis::Gauge,
            "Sizes",
            "Sizes at the end of a visit, not divided.",
        ),
    ];
    for (basis, title, text) in groups {
        let _ = write!(page, "\n## {title}\n\n");
        for line in paragraph("", text, PAGE) {
            page.push_str(&line);
            page.push('\n');
        }
        for metric in METRICS.iter().filter(|metric| is_of(metric.basis, basis)) {
            metric_section(&mut page, metric);
        }
    }
    let _ = write!(
        page,
        "\n## Series\n\nOnce a second; those of a server are `KEY@SERVER`.\n\n"
    );
    page.push_str("| key | unit | what it says |\n|---|---|---|\n");
    for series in SERIES {
        let _ = writeln!(
            page,
            "| `{}` | {} | {} |",
            series.key, series.unit, series.meaning
        );
    }
    page
}

/// Whether two bases are of one kind: which requests they count does not matter.
fn is_of(basis: Basis, kind: Basis) -> bool {
    std::mem::discriminant(&basis) == std::mem::discriminant(&kind)
}

/// Not a table: its lines would be wider than a page.
fn metric_section(page: &mut String, metric: &MetricInfo) {
    let _ = write!(page, "\n### {}\n\n", metric.key);
    let good = metric
        .better
        .map_or("neither direction is better", |way| match way {
            deltabench_model::metric::Better::Higher => "higher is better",
            deltabench_model::metric::Better::Lower => "lower is better",
        });
    let unit = if metric.unit.is_empty() {
        "none"
    } else {
        metric.unit
    };
    let mut facts = vec![format!("`{}`: {}.", metric.name, metric.meaning)];
    facts.push(format!("Unit: {unit}; {good}."));
    facts.push(format!("Source: {}.", metric.source));
    facts.push(format!("Where: {}.", metric.versions));
    if !metric.counter.is_empty() {
        facts.push(format!("Counter: `{}`.", metric.counter));
    }
    for line in paragraph("", &facts.join(" "), PAGE) {
        page.push_str(&line);
        page.push('\n');
    }
}

fn export_page() -> String {
    let (format, version) = schema::FORMAT;
    let mut page = page(
        "Exported tables",
        &format!(
            "What `deltabench export` writes (`{format}` version {version}): one SQLite file, or a \
             directory with a CSV file for each table. Servers and cells are numbers from 0, in the order \
             of the plan; every table but `export` and `metrics` begins with the run, so that files of \
             several runs can be read together. What is not known or does not apply is null (in CSV an \
             empty field), never 0. The same run gives the same bytes. [Notebooks](../guide/notebooks.md) \
             has examples."
        ),
    );
    for table in schema::tables() {
        section(&mut page, table.name, table.meaning);
        page.push_str("| column | type | meaning |\n|---|---|---|\n");
        for column in table.columns {
            let _ = writeln!(
                page,
                "| `{}` | {} | {} |",
                column.name,
                column.kind.word(),
                column.meaning
            );
        }
    }
    for view in schema::VIEWS {
        section(
            &mut page,
            view.name,
            &format!("A view, only in an SQLite file. {}", view.meaning),
        );
        let _ = write!(page, "```sql\n{}\n```\n", view.sql);
    }
    page
}

fn section(page: &mut String, name: &str, meaning: &str) {
    let _ = write!(page, "\n## {name}\n\n");
    for line in paragraph("", meaning, PAGE) {
        page.push_str(&line);
        page.push('\n');
    }
    page.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_command_that_is_shown_is_on_the_page_with_its_options() {
        let page = commands_page() + &benchmarks_page();
        for command in Arguments::command().get_subcommands() {
            let heading = format!("\n## deltabench {}\n", command.get_name());
            assert_eq!(page.contains(&heading), !command.is_hide_set(), "{heading}");
        }
        assert!(page.contains("\n### deltabench workloads show\n"));
        assert!(page.contains("--reason <TEXT>") && page.contains("--lab <DIR>"));
    }

    #[test]
    fn every_metric_and_series_is_on_the_page() {
        let page = metrics_page();
        for metric in METRICS {
            assert!(
                page.contains(&format!("\n### {}\n", metric.key)),
                "{}",
                metric.key
            );
        }
        for series in SERIES {
            assert!(
                page.contains(&format!("| `{}` |", series.key)),
                "{}",
                series.key
            );
        }
    }

    #[test]
    fn pages_keep_the_width_of_documents() {
        for page in [commands_page(), metrics_page(), export_page()] {
            for line in page.lines() {
                assert!(line.chars().count() <= PAGE, "{line}");
            }
        }
    }

    #[test]
    fn tables_and_columns_of_an_export_have_names_of_their_own() {
        let views = schema::VIEWS.iter().map(|view| view.name);
        let names: Vec<&str> = schema::tables()
            .iter()
            .map(|table| table.name)
            .chain(views)
            .collect();
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
        for table in schema::tables() {
            let columns: HashSet<&str> = table.columns.iter().map(|column| column.name).collect();
            assert_eq!(columns.len(), table.columns.len(), "{}", table.name);
        }
    }
}
