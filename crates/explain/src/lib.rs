//! Where did it go: in which functions, and on which call paths, a candidate does more than the base.
//!
//! [`callgrind`] reads what the counter wrote into a [`Profile`](deltabench_model::profile::Profile).
//! [`explain()`] lays two of them on each other and finds the few lines that say most of the difference.
//! [`sampled`] judges what was sampled of their time. Nothing here runs a program, opens a file or asks
//! the clock: files come as text, results leave as data.

pub mod callgrind;
mod lines;
mod merged;
pub mod sampled;
#[cfg(test)]
mod testing;

pub use lines::{LINES, explain};
pub use merged::plain;
