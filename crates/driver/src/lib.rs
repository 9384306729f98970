//! When to send it and how long it took: the wire, slices, histograms.
//!
//! A [`Lane`] has connections to several servers, and one thread or more. [`Lane::run_slice`] does a fixed
//! number of operations on one of them and returns what they cost; the connections to the others stay open
//! and idle meanwhile, so that a caller can alternate between servers every few milliseconds. A [`Client`] is
//! the slow, convenient way over the same wire, for set-up work. The steps of the Insert Benchmark, whose
//! clients have several connections and wait for each other, have a loop of their own in [`insert`]. A
//! statement of a user's with its values is executed by [`tuples`].
//!
//! What it refuses to do: pipelining that the workload does not ask for, building result rows on the measured
//! path that nobody wants, and asking the clock more than once for an operation that does not rest. The
//! price of speaking the protocol ourselves is the code in this crate; what it buys is a client that costs
//! about what its two system calls cost (docs of [`lane`]).
//!
//! Source: PostgreSQL manual, chapter "Frontend/Backend Protocol", version 3.0.

pub mod admin;
mod connection;
pub mod crosscheck;
mod error;
mod inbox;
pub mod insert;
mod kept;
pub mod lane;
mod limit;
pub mod passwords;
pub mod peer;
mod performer;
mod request;
mod scan;
pub mod selfbench;
mod session;
mod slice;
mod sys;
mod tls;
pub mod tuples;
mod values;
mod watchdog;
mod wire;

pub use admin::Client;
pub use error::{ServerError, WireError};
pub use lane::{Lane, LaneSpec, Stops};
pub use limit::{ClientLimit, ClientLoad, client_limited};
pub use slice::{SliceOutcome, SliceRequest};
pub use tls::TlsFailure;
