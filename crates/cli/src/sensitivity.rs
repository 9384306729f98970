//! `--sensitivity`: the cells that changed, measured again under other conditions.

use crate::amounts::span;
use crate::bench::Bench;
use crate::console::say;
use crate::failure::Failure;
use crate::store::store_problem;
use deltabench_kinds::run_half;
use deltabench_lab::{Judged, sensitivity_name};
use deltabench_model::plan::{Plan, Varied};
use deltabench_run::estimate::estimate;
use deltabench_run::planning;
use deltabench_run::session::SessionEnd;
use deltabench_workload::Library;

/// Says how long it takes, and measures a run for each condition that the run had not.
pub fn measure(
    bench: &mut Bench,
    judged: &Judged,
    library: &Library,
) -> Result<SessionEnd, Failure> {
    let run = judged.run();
    let comparison = judged.standing(&bench.store).map_err(Failure::Failed)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let plans = planning::sensitivity(run, judged.plan(), &comparison, cores);
    let mut named: Vec<(String, &Plan)> = Vec::new();
    for (plan, part) in plans
        .iter()
        .filter_map(|plan| Some((plan, plan.sensitivity.as_ref()?)))
    {
        let name = sensitivity_name(run, part.varied);
        if bench.store.reached(&name).map_err(store_problem)?.is_none() {
            named.push((name, plan));
        }
    }
    if named.is_empty() {
        say(
            "sensitivity: nothing to measure, because no cell changed or the run already had these \
             conditions",
        );
        return Ok(SessionEnd::Finished);
    }
    say(&outlook(bench, &plans)?);
    for (name, plan) in named {
        let measured = bench.measure_new(plan, library, Some(name.clone()), false)?;
        if measured.end == SessionEnd::Interrupted {
            say(&format!(
                "`deltabench resume {name}` continues this condition"
            ));
            return Ok(measured.end);
        }
    }
    Ok(SessionEnd::Finished)
}

/// What is measured, and the time that it takes at most.
fn outlook(bench: &Bench, plans: &[Plan]) -> Result<String, Failure> {
    let mut seconds = 0.0;
    let mut words = Vec::new();
    for plan in plans {
        let found = estimate(plan, run_half(&plan.work), &bench.host).map_err(Failure::Refused)?;
        seconds += (found.set_up + found.measuring).as_secs_f64();
        let varied = plan.sensitivity.as_ref().map(|part| part.varied);
        let cells = plan.cells.len();
        words.push(format!("{} ({cells})", varied.map_or("", Varied::words)));
    }
    Ok(format!(
        "sensitivity: changed cells again, by condition: {}; at most {} in all",
        words.join(", "),
        span(seconds)
    ))
}
