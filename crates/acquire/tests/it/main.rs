//! Tests of acquire that use the package clients: a real fetch, processes side by side, a mirror.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod child;
mod fetch;
mod mirror;
mod package;
