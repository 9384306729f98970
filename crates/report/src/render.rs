//! All forms of a report under one name.

use crate::context::ReportContext;
use crate::json::{JsonVersion, json};
use crate::terminal::{TerminalOptions, terminal};
use crate::{benchstat, csv, html, junit, markdown};
use deltabench_compare::comparison::Comparison;
use deltabench_model::plan::Plan;

/// A form of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// The table for a terminal.
    Text,
    /// One offline page.
    Html,
    /// The JSON contract, in a version.
    Json(JsonVersion),
    /// For a pull request or a blog post.
    Markdown,
    /// A line for each cell and metric.
    Csv,
    /// JUnit's XML, for CI.
    Junit,
    /// Go's benchmark format.
    Benchstat,
    /// A form that only some kind of benchmark has, by its name; empty for runs of anything else.
    OfKind(&'static str),
}

impl Format {
    /// All forms that every run has.
    pub const ALL: [Self; 7] = [
        Self::Text,
        Self::Html,
        Self::Json(JsonVersion::Two),
        Self::Markdown,
        Self::Csv,
        Self::Junit,
        Self::Benchstat,
    ];

    /// Its name on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Html => "html",
            Self::Json(_) => "json",
            Self::Markdown => "markdown",
            Self::Csv => "csv",
            Self::Junit => "junit",
            Self::Benchstat => "benchstat",
            Self::OfKind(name) => name,
        }
    }
}

/// The report in one form; the same to the byte for the same arguments.
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
        Format::Json(version) => json(version, comparison, plan, context),
        Format::Markdown => markdown(comparison, plan, context),
        Format::Csv => csv(comparison, plan, context),
        Format::Junit => junit(comparison, plan, context),
        Format::Benchstat => benchstat(comparison, plan, context),
        Format::OfKind(name) => {
            let mut formats = context.figures.formats.iter();
            let found = formats.find(|(known, _)| *known == name);
            found.map_or_else(String::new, |(_, text)| text.clone())
        }
    }
}
