//! How many instructions does an operation take?
//!
//! A server runs under callgrind ([`deltabench_server::Counter`]), one backend works through windows of a
//! fixed number of operations, and marks in the stream of its statements part the windows. What
//! the marks themselves cost is taken off. The same work on a freshly started server takes the same number
//! of instructions to a few millionths, so two starts of each server do where time would need hours, on any
//! machine, whatever else runs there.
//!
//! What it refuses: servers that were there before, several clients, work that other processes do for the
//! backend ([`check()`]). What it cannot say, and what it comes to, is in `deltabench_compare::counts`.

mod allocator;
mod asleep;
mod check;
mod clock;
mod marks;
mod quota;
mod session;
mod starts;
mod visit;
mod wal_writer;

pub use asleep::until_asleep;
pub use check::{check, check_conditions, check_settings, not_ours, several_clients};
pub use marks::{OfLibrary, of_library};
pub use session::{count, count_servers};
pub use starts::{Client, Counted, Targets, all_starts};
pub use visit::{AtRest, Sends, Visit};
