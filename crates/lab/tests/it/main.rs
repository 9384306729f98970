//! A lab's runs, read back and analysed.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod counted;
mod hours;
mod large;
mod sampled;
