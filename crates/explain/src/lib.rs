//! Where did it go: in which functions, and on which call paths, a candidate does more than the base.
//!
//! [`callgrind`] reads what the counter wrote into a [`Profile`](deltabench_model::profile::Profile). Nothing
//! here runs a program, opens a file or asks the clock: files come as text, results leave as data.

pub mod callgrind;
