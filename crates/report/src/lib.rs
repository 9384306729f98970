//! How people see a comparison: terminal, JSON, HTML, Markdown, CSV, JUnit and Go's benchmark format; and the
//! tables of a study of several runs or many servers ([`render_study`]).
//!
//! Pure functions from a [`Comparison`], its [`Plan`] and a [`ReportContext`] to text: no clock, no network,
//! no order that changes between two calls. Nothing is judged here; every verdict and reason comes from the
//! comparison. A value that is not known is left out or called unknown, never 0.
//!
//! The JSON is a contract (`docs/reference/report.schema.json`): fields are added, never renamed.

mod again;
mod axis;
mod benchstat;
mod bisected;
mod conditions;
mod confirmation;
mod context;
mod costs;
mod counts;
mod csv;
mod differences;
mod explained;
mod figures;
mod grids;
mod hours;
mod html;
mod json;
mod junit;
mod ledger;
mod lines;
mod markdown;
mod means;
mod notes;
mod origin;
mod placed;
mod published;
mod remarks;
mod render;
mod replayed;
mod sampled;
mod study;
mod summary;
pub mod table;
mod terminal;
mod typesetting;
mod weight;
mod withdrawn;
mod withheld;
pub mod words;

pub use axis::interval_bar;
pub use benchstat::benchstat;
pub use bisected::{
    BISECTED_FORMAT, BaseAlone, Bisected, BisectedLook, BisectedPoint, By, Culprit, InTime,
    LikelyInterval, OpenInterval, Quiet, SuspectPoint, TimeChange, TimeSays, Timed, WithoutCulprit,
    bisected_json, bisected_text,
};
pub use context::{
    CellWarmUp, ConfirmationWithdrawn, DeltaChosen, LedgerLine, ReportContext, ServerFacts,
    SessionLine, resolved,
};
pub use costs::costs_table;
pub use csv::csv;
pub use explained::{counted_in_short, explained_markdown, explained_text, explanation_lines};
pub use hours::note as another_hour;
pub use html::{bisected_html, html, html_with_script_at, script, style};
pub use json::{JsonVersion, explained_json, json, of_no_run};
pub use junit::junit;
pub use ledger::{coverage_json, metric_word, narrow_words};
pub use lines::{unbroken, wrapped};
pub use markdown::markdown;
pub use notes::notes_text;
pub use render::{Format, render};
pub use replayed::{replayed_json, replayed_markdown, replayed_page, replayed_text};
pub use sampled::{sampled_markdown, sampled_text};
pub use study::{StudyContext, StudyFormat, StudyRunFacts, render_study};
pub use summary::summary;
pub use terminal::{TerminalOptions, terminal};
pub use withheld::CANNOT_TELL;
pub use words::timestamp;

#[cfg(doc)]
use deltabench_compare::comparison::Comparison;
#[cfg(doc)]
use deltabench_model::plan::Plan;
