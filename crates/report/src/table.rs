//! One table for every reader ([`deltabench_model::table::Table`]): its writers for terminal, Markdown, page
//! and spreadsheet.

pub(crate) mod markdown;
pub(crate) mod page;
mod separated;
pub(crate) mod terminal;

pub(crate) use separated::flat;
pub use separated::{comma_separated, number, optional, tab_separated};

use deltabench_compare::comparison::Verdict;
use deltabench_model::table::Tone;

/// The colour of a verdict.
pub fn tone(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Regression => Tone::Worse,
        Verdict::Improvement => Tone::Better,
        Verdict::NoChange => Tone::Same,
        Verdict::Inconclusive => Tone::Open,
        Verdict::Unfit => Tone::Void,
    }
}
