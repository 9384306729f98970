//! All forms of a report under one name.

use crate::context::ReportContext;
use crate::terminal::{TerminalOptions, terminal};
use crate::{benchstat, csv, html, json, junit, markdown, pgbench, rocksdb_tsv, steps_csv};
use deltabench_compare::comparison::Comparison;
use deltabench_model::plan::Plan;

/// A form of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// The table for a terminal.
    Text,
    /// One offline page.
    Html,
    /// The JSON contract.
    Json,
    /// For a pull request or a blog post.
    Markdown,
    /// A line for each cell and metric.
    Csv,
    /// JUnit's XML, for CI.
    Junit,
    /// Go's benchmark format.
    Benchstat,
    /// What pgbench prints at the end of a run; empty for runs without its scripts
    /// ([`crate::check_pgbench`]).
    Pgbench,
    /// A line for each server, step and pass of the Insert Benchmark; empty for other runs
    /// ([`crate::check_steps`]).
    Steps,
    /// `report.tsv` of the scripts around `db_bench`; empty for other runs ([`crate::check_rocksdb`]).
    Rocksdb,
}

impl Format {
    /// All forms.
    pub const ALL: [Self; 10] = [
        Self::Text,
        Self::Html,
        Self::Json,
        Self::Markdown,
        Self::Csv,
        Self::Junit,
        Self::Benchstat,
        Self::Pgbench,
        Self::Steps,
        Self::Rocksdb,
    ];

    /// Its name on the command line.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Html => "html",
            Self::Json => "json",
            Self::Markdown => "markdown",
            Self::Csv => "csv",
            Self::Junit => "junit",
            Self::Benchstat => "benchstat",
            Self::Pgbench => "pgbench",
            Self::Steps => "steps",
            Self::Rocksdb => "rocksdb",
        }
    }
}

/// The report in one form; the same to the byte for the same arguments.
#[must_use]
pub fn render(
    format: Format,
    comparison: &Comparison,
    plan: &Plan,
    context: &ReportContext,
    options: TerminalOptions,
) -> String {
    match format {
        Format::Text => terminal(comparison, plan, context, options),
        Format::Html => html(comparison, plan, context),
        Format::Json => json(comparison, plan, context),
        Format::Markdown => markdown(comparison, plan, context),
        Format::Csv => csv(comparison, plan, context),
        Format::Junit => junit(comparison, plan, context),
        Format::Benchstat => benchstat(comparison, plan, context),
        Format::Pgbench => pgbench(plan, context, None),
        Format::Steps => steps_csv(context),
        Format::Rocksdb => rocksdb_tsv(plan, context),
    }
}
