//! A lab's runs, read back and analysed.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod hours;
mod large;
