//! Trends on seeded histories.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::as_conversions,
    clippy::panic
)]

mod networks;
mod nights;
mod pairs;
mod rules;
