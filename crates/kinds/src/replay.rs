//! Reads of a captured workload, with their values, on servers that have its tables.
//!
//! A cell is a statement. `deltabench-replay` loads the servers and asks for plans and results first, and
//! hands them in here; the loop over blocks is that of all kinds (decision 0025).

mod benchmark;
mod blocks;
mod budget;
mod failures;
mod mix;
mod mixed;
mod plan;
mod reading;
mod record;
mod rounds;
mod shown;
mod times;
mod turn;
mod visit;

pub use benchmark::Replay;
pub use blocks::Loaded;
pub use budget::LEAST_SECONDS;
pub use mix::{MixRecord, MixSlice};
pub use plan::{PlanWish, plan};
pub use record::{SliceTimes, TupleTimes, VisitRecord};
pub use times::{NO_MEMBERS, add_times};

use deltabench_model::problem::Problem;
use deltabench_model::work::Work;
use deltabench_model::work::replay::ReplaySetup;

/// That the instructions of captured statements are not counted.
pub(crate) fn not_counted() -> Problem {
    Problem::new("the instructions of a replay cannot be counted")
        .detail("a count has workloads of its own")
        .hint("write the statement into a workload file, and count that")
}

/// The setup of a plan of this kind.
fn setup_of(work: &Work) -> Result<&ReplaySetup, Problem> {
    work.replay()
        .ok_or_else(|| Problem::new("the plan is not one of a replay"))
}
