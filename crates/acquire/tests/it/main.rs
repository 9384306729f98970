//! Tests of acquire that use the package clients: a real fetch, processes side by side, a mirror;
//! and of a build from source that is killed.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod child;
mod fetch;
mod killed;
mod mirror;
mod package;
