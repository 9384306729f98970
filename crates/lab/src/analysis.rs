//! Which analysis this is.

/// A hash of the sources that a judgement comes from (`build.rs`).
pub const ANALYSIS: &str = env!("DELTABENCH_ANALYSIS");
