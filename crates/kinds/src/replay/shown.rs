//! A replay among other runs: its own report is made of the replay itself.

use super::Replay;
use crate::shown::{JudgedRun, Show, Shown};
use deltabench_model::plan::Plan;
use deltabench_model::problem::Problem;
use deltabench_store::Store;

impl Show for Replay {
    fn block(&self, plan: &Plan) -> String {
        format!(
            "{} captured statements with their values, in slices of {} ms that alternate between the servers",
            plan.cells.len(),
            plan.timing.slice_ms
        )
    }

    fn data(&self, plan: &Plan) -> String {
        let setup = plan.work.replay();
        let data = setup.and_then(|setup| setup.data.as_ref());
        data.map_or_else(
            || "as the servers have it".to_owned(),
            |data| data.path.clone(),
        )
    }

    fn shown(&self, _: &JudgedRun<'_>, _: &Store) -> Result<Shown, Problem> {
        Ok(Shown::default())
    }
}
