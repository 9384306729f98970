//! `stats` against SciPy, and against itself on seeded random data.

// Clippy knows test functions, not the helpers that they share.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod below;
mod between;
mod coverage;
mod early;
mod hosts;
mod hours;
mod properties;
mod reference;
mod shares;
