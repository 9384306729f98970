//! What is stored of engines and of steps that are not measured.

use deltabench_model::fact::{Fact, FactKind};
use deltabench_model::work::rocksdb::StepFigures;
use serde::{Deserialize, Serialize};

/// What an engine took and what it left out.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct EngineSaid {
    /// Options that were left out, with its own words.
    pub(super) left_out: Vec<(String, String)>,
    /// The cache that was made, in words.
    pub(super) cache: String,
    /// What makes its figures doubtful.
    pub(super) warnings: Vec<String>,
}

impl Fact for EngineSaid {
    const KIND: FactKind = FactKind::Engine;
}

/// A step that was carried out and not measured.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct PreparedStep {
    pub(super) step: String,
    /// How long it took, nanoseconds.
    pub(super) duration_ns: u64,
    pub(super) figures: StepFigures,
}

impl Fact for PreparedStep {
    const KIND: FactKind = FactKind::Prepared;
}
