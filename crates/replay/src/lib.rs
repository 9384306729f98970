//! What would these servers do with my statements: fail, plan, return?
//!
//! A [`replay`] loads a dump into servers of its own, or copies a data directory for them, or takes servers
//! as they are, explains every statement
//! of a capture with all its values on each of them, executes what only reads, and says how the candidates
//! differ from the base. Writes work on copies that are thrown away. No time is measured.
//!
//! Values are secrets: what leaves this crate has plans without constants, messages without values, and
//! hashes of results in place of rows.
//!
//! ```no_run
//! # fn demo(request: &deltabench_replay::Request<'_>) -> Result<(), deltabench_replay::Stopped> {
//! let end = deltabench_replay::replay(request, &mut |text| eprintln!("{text}"));
//! println!("{} plans", end.answer?.replayed.plans.len());
//! # Ok(())
//! # }
//! ```

mod adopted;
mod asked;
mod asking;
mod clause;
mod clock;
mod consent;
mod dump;
mod made_up;
mod reach;
mod replay;
mod request;
mod results;
mod safety;
mod said;
mod servers;
mod session;
mod shape;
mod spelling;
mod substitutes;
mod theirs;
mod timed;
mod verdict;
mod watched;
mod why;
mod work;
mod writes;

pub use adopted::check_versions;
pub use clock::{ClockWish, asks_for_time};
pub use consent::Consent;
pub use dump::{DumpError, DumpFile, LoadFailure, Loaded, Loading, Skipped, Survey, load, survey};
pub use reach::is_of_sessions;
pub use replay::{Answer, End, Kept, Stopped, load_again, replay};
pub use request::{Data, DirectoryData, Request, Wish};
pub use servers::is_ours;
pub use session::{ErrorClass, gone, is_conflict, violates};
pub use substitutes::wanting;
pub use timed::{MixedLines, Start, TimedJob, TimedServers, sent_sha256};
pub use watched::watched;
pub use work::{Job, Work};
