//! Every number that decides something.
//!
//! All are fixed before data are seen; changing one changes verdicts, so it belongs in the changelog under
//! "Measurement".

/// Blocks that any verdict other than inconclusive takes.
///
/// With fewer, t is so wide that only gross changes pass, and the interval rests on an sd that is known to
/// no better than −40…+150 % (chi-square, 5 degrees of freedom).
/// Source: measurement.md 3.6.
pub const MIN_BLOCKS: usize = 6;

/// Counted rounds that a block needs to give a value.
///
/// With one or two, a single disturbed slice is the block's value and nothing can tell.
pub const MIN_ROUNDS: usize = 3;

/// Share of a block's round log-ratios that is cut from each end before the mean.
///
/// A burst of other load hits a few rounds; cut, it costs little, and without bursts nearly nothing is lost.
/// Source: floor.md 1 and 2 (sd between restarts 1.05 % against 1.21 % with plain means). It was chosen
///         after seeing those data and is fixed for all later ones.
pub const TRIM: f64 = 0.2;

/// Level of the interval for "different": two-sided, so each direction is wrongly called in at most 2.5 %.
pub const LEVEL_DIFFERENT: f64 = 0.95;

/// Level of the interval for "equal within ±δ": two one-sided tests at 5 % each (Schuirmann 1987).
pub const LEVEL_EQUIVALENT: f64 = 0.90;

/// A placebo is suspect below this p.
///
/// Source: measurement.md 3.2.
pub const PLACEBO_P: f64 = 0.01;

/// A suspect placebo makes its cell unfit only if it is off by more than this share of δ.
///
/// A quiet host resolves placebo offsets of 0.1 %; they are real (data placement of that copy) and harmless
/// to a question about 3 %. An offset of a third of δ could carry an estimate from "well inside" to the
/// edge.
pub const PLACEBO_RELEVANCE: f64 = 1.0 / 3.0;

/// Blocks beyond which a forecast is not worth a number.
pub const FORECAST_LIMIT: usize = 1000;

/// Share by which the size of the relations may differ before it is a finding.
pub const SIZE_TOLERANCE: f64 = 0.01;

/// δ on the log scale: ln(1 + δ), used as ±.
///
/// Symmetric in the factor, so base and candidate can change places, and throughput and time per operation
/// of the same change get the same verdict: the band is 1/(1+δ) … 1+δ. For δ = 3 % its lower end is −2.91 %,
/// so "no change beyond ±3 %" is never said of a loss of more than 2.91 %.
/// Source: as the 0.80 … 1.25 band of bioequivalence; measurement.md 3.0 and 3.8.
#[must_use]
pub fn log_delta(delta: f64) -> f64 {
    delta.ln_1p()
}
