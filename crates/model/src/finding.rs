//! Things worth knowing about a comparison that are not numbers of it: confounders, host facts, doubts.

use serde::{Deserialize, Serialize};

/// How much a finding matters to the conclusion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Good to know.
    Note,
    /// The comparison measures this difference too.
    Confounder,
    /// The numbers should not be used.
    Unfit,
}

/// One finding, kept with the run and printed with every report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Stable kebab-case key, for example `compiler-differs`.
    pub kind: String,
    pub severity: Severity,
    /// One sentence with the facts in it.
    pub text: String,
}

impl Finding {
    /// A new finding.
    pub fn new(kind: &str, severity: Severity, text: impl Into<String>) -> Self {
        Self {
            kind: kind.to_owned(),
            severity,
            text: text.into(),
        }
    }
}
