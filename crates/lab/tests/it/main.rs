//! A lab's runs, read back and analysed.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod counted;
mod hours;
mod large;
mod later_runs;
mod reused;
mod sampled;
mod trends;

use deltabench_model::plan::Plan;
use deltabench_store::{RunState, Store};
use deltabench_testkit::small_run;

/// A lab with the finished run `r` of this plan.
fn lab_of_r() -> (tempfile::TempDir, Store, Plan) {
    let place = tempfile::tempdir().unwrap();
    let mut store = Store::open(place.path()).unwrap();
    let plan = small_run::plan();
    store.create_run("r", &plan, RunState::Running, 1).unwrap();
    small_run::keep(&mut store, "r", [1.0, 1.0, 0.8]);
    store.finish_run("r", RunState::Finished, 2).unwrap();
    (place, store, plan)
}
