//! Is it a regression: records to paired log-ratios to verdicts.

pub mod comparison;
