//! The published procedure of an experiment, as a request has it.

use deltabench_experiment::{Chosen, Experiment};
use deltabench_model::plan::{CellOrder, Placement, Stopping, Timing};
use deltabench_model::problem::Problem;
use deltabench_model::work::Work;
use deltabench_model::work::procedure::{ProcedureSetup, WARMUP_SECONDS};
use deltabench_run::planning::{Request, Selection};
use deltabench_workload::{Library, published_order};

/// Passes of a file that does not say how many: as many as were published.
const PASSES: u32 = 1;

/// Tests on fresh tables that the published script still has; the others of their kind are switched off.
const BEFORE_WRITES: [&str; 2] = ["point-query.pre", "range-notcovered-si.pre"];

/// Gives a request what the file says of the published procedure, if it does.
///
/// Errors: no test is left.
pub fn apply(
    experiment: &Experiment,
    library: &Library,
    request: &mut Request,
) -> Result<(), Problem> {
    let Some(own) = experiment.measurement.procedure else {
        return Ok(());
    };
    request.selection = Selection::Named(tests(experiment, library)?);
    request.order = CellOrder::Published;
    request.stopping = Stopping::Fixed;
    request.placebo = own.placebo;
    request.timing = Timing {
        blocks: experiment.measurement.blocks.unwrap_or(PASSES),
        visit_seconds: f64::from(own.read_seconds),
        warmup_seconds: 0.0,
        connections_per_visit: 1,
        sustained: false,
        write_seconds: None,
        warmup_chosen: false,
        rotated: false,
        ..request.timing.clone()
    };
    if experiment.measurement.placement.is_none() {
        // As published: client and server share all cores.
        request.placement = (Placement::Free, Placement::Free);
    }
    request.work = Work::Procedure(ProcedureSetup {
        read_seconds: own.read_seconds,
        write_seconds: own.write_seconds,
        settle_seconds: own.settle_seconds,
        warmup_seconds: own.warmup_seconds.unwrap_or(WARMUP_SECONDS),
        primary_key: own.primary_key,
    });
    Ok(())
}

/// The tests that are wanted.
///
/// Errors: none is.
fn tests(experiment: &Experiment, library: &Library) -> Result<Vec<String>, Problem> {
    let named: Vec<String> = match &experiment.workloads.chosen {
        Chosen::Named(names) => names.clone(),
        Chosen::Quick => {
            let quick = library.quick();
            quick.iter().map(|test| test.name.clone()).collect()
        }
        Chosen::Published => {
            let measured = published_order().iter().filter_map(|step| step.measured());
            let on = |name: &&str| !name.ends_with(".pre") || BEFORE_WRITES.contains(name);
            measured.filter(on).map(str::to_owned).collect()
        }
    };
    let wanted: Vec<String> = named
        .into_iter()
        .filter(|name| experiment.wants_workload(name))
        .collect();
    match wanted.is_empty() {
        true => Err(Problem::new("no test is left").hint("name tests of sysbench in `only`")),
        false => Ok(wanted),
    }
}
