//! How people see a study: its tables for a terminal, as Markdown, CSV, JSON and one offline page.
//!
//! Pure functions as for a single run: nothing is computed or judged here that [`Study`] does not say.

pub(crate) mod context;
mod csv;
pub(crate) mod json;
pub(crate) mod lead;
mod markdown;
pub(crate) mod terminal;
pub(crate) mod words;

pub use context::{StudyContext, StudyRunFacts};

use crate::html;
use crate::json::JsonVersion;
use crate::render::Format;
use crate::terminal::TerminalOptions;
use deltabench_compare::study::Study;
use deltabench_model::problem::Problem;

/// A form of a study's report: those of [`Format`] that can hold tables of several runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StudyFormat {
    /// Tables for a terminal.
    Text,
    /// One offline page.
    Html,
    /// The JSON contract (`docs/reference/study.schema.json`), in a version.
    Json(JsonVersion),
    /// For a pull request or a blog post.
    Markdown,
    /// A line for each figure.
    Csv,
}

impl StudyFormat {
    /// All forms.
    pub const ALL: [Self; 5] = [
        Self::Text,
        Self::Html,
        Self::Json(JsonVersion::Two),
        Self::Markdown,
        Self::Csv,
    ];

    /// Its name on the command line.
    pub fn word(self) -> &'static str {
        Format::from(self).word()
    }
}

impl From<StudyFormat> for Format {
    fn from(format: StudyFormat) -> Self {
        match format {
            StudyFormat::Text => Self::Text,
            StudyFormat::Html => Self::Html,
            StudyFormat::Json(version) => Self::Json(version),
            StudyFormat::Markdown => Self::Markdown,
            StudyFormat::Csv => Self::Csv,
        }
    }
}

impl TryFrom<Format> for StudyFormat {
    type Error = Problem;

    /// Refuses the forms that know only cells of a single run.
    fn try_from(format: Format) -> Result<Self, Problem> {
        match format {
            Format::Text => Ok(Self::Text),
            Format::Html => Ok(Self::Html),
            Format::Json(version) => Ok(Self::Json(version)),
            Format::Markdown => Ok(Self::Markdown),
            Format::Csv => Ok(Self::Csv),
            Format::Junit | Format::Benchstat | Format::OfKind(_) => {
                let forms: Vec<&str> = Self::ALL.into_iter().map(Self::word).collect();
                Err(
                    Problem::new(format!("a study has no report as {}", format.word()))
                        .detail(format!(
                            "{} contains the cells of one run; a study has the forms {}",
                            format.word(),
                            forms.join(", ")
                        ))
                        .hint("name one of the study's runs instead: deltabench report RUN"),
                )
            }
        }
    }
}

/// The report of a study in one form; the same to the byte for the same arguments.
///
/// Shape: text has lines of at most `options.width` columns wherever names allow; the other forms do not look
///        at `options`.
pub fn render_study(
    format: StudyFormat,
    study: &Study,
    context: &StudyContext,
    options: TerminalOptions,
) -> String {
    match format {
        StudyFormat::Text => terminal::terminal(study, context, options),
        StudyFormat::Html => html::study(study, context),
        StudyFormat::Json(version) => json::json(version, study, context),
        StudyFormat::Markdown => markdown::markdown(study, context),
        StudyFormat::Csv => csv::csv(study),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_single_run_are_refused_with_the_forms_there_are() {
        for format in Format::ALL {
            match StudyFormat::try_from(format) {
                Ok(form) => assert_eq!(form.word(), format.word()),
                Err(problem) => {
                    assert!(matches!(
                        format,
                        Format::Junit | Format::Benchstat | Format::OfKind(_)
                    ));
                    assert!(problem.detail.unwrap().contains("text, html, json"));
                }
            }
        }
    }
}
