//! What the cells of a plan send.

use deltabench_model::plan::Plan;
use deltabench_model::problem::Problem;
use deltabench_workload::Library;
use deltabench_workload::executable::Executable;

/// The workloads of all cells, compiled for the plan's data.
///
/// Errors: a workload that is not there.
pub fn compile(plan: &Plan, library: &Library) -> Result<Vec<Executable>, Problem> {
    if plan.work.has_passes() {
        // Its steps are no workloads of the library.
        return Ok(Vec::new());
    }
    plan.cells
        .iter()
        .map(|cell| {
            let mut executable = library.get(&cell.workload)?.compile(&plan.data)?;
            if let Some(most) = plan.work.operations_max(&cell.workload) {
                executable.operations_max = Some(most);
            }
            Ok(executable)
        })
        .collect()
}
