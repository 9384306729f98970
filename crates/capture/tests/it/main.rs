//! Logs of real servers: read here, and recorded in `tests/data`.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod client;
mod recorded;
mod redacted;
mod servers;
mod workload;
