//! What do these numbers say: pure maths on slices of `f64`.
//!
//! Summaries ([`summary`]), Student's t ([`student`]), the normal and chi-square distributions
//! ([`normal`], [`chi_square`]), counted shares ([`binomial`], in groups [`clustered`]), many tests
//! ([`multiplicity`]), repeated looks ([`spending`], [`early`]), means of skewed values ([`skewed`]), groups
//! of values with a luck of their own ([`between`]), comparisons that other hours repeat ([`repeated`]),
//! kinds of values in one series ([`serial`]), lines through points ([`line`](mod@line)), parts of a
//! whole that samples show ([`shares`]) and series that settle ([`steady`](mod@steady)). It knows no
//! database, does no I/O, draws no random numbers and holds no threshold: what counts as a regression is
//! decided in `compare`.
//!
//! Design decision: a quantity that does not exist (the mean of nothing, the interval of one value) is
//! `None` or [`TooFew`], never 0 or NaN. A level or share outside its range is an error of the programmer
//! and stops with a message. NaN in the values gives NaN in the result: callers pass finite numbers.
//!
//! ```
//! let blocks = [0.98_f64, 0.97, 0.99, 0.96, 0.98, 0.97].map(f64::ln);
//! let interval = deltabench_stats::student::t_interval(&blocks, 0.95)?;
//! assert!(interval.high < 0.0, "slower beyond chance");
//! # Ok::<(), deltabench_stats::TooFew>(())
//! ```

pub mod between;
pub mod binomial;
pub mod chi_square;
pub mod clustered;
pub mod early;
pub mod line;
pub mod multiplicity;
pub mod normal;
mod number;
pub mod repeated;
pub mod serial;
pub mod shares;
pub mod skewed;
pub mod spending;
pub mod steady;
pub mod student;
pub mod summary;

/// An interval; `low` ≤ `high`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// Half of its length.
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }

    /// Whether `value` lies in it, ends included.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

/// There are too few values for what was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{have} values, {need} needed")]
pub struct TooFew {
    pub have: usize,
    pub need: usize,
}
