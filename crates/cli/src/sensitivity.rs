//! `--sensitivity`: the cells that changed, measured again under other conditions.

use crate::amounts::span;
use crate::bench::Bench;
use crate::console::say;
use crate::failure::Failure;
use crate::follow_up::FollowUp;
use crate::store::store_problem;
use deltabench_kinds::run_half;
use deltabench_lab::{Judged, sensitivity_name};
use deltabench_model::plan::{Plan, Varied};
use deltabench_run::estimate::estimate;
use deltabench_run::planning;
use deltabench_run::session::SessionEnd;
use deltabench_store::RunState;
use deltabench_workload::Library;

/// Measures what is left of the conditions of a run, if it was planned with them.
pub fn wanted(bench: &mut Bench, judged: &Judged, library: &Library) -> FollowUp {
    match judged.plan().observing.sensitivity {
        true => FollowUp::of(measure(bench, judged, library)),
        false => FollowUp::Finished,
    }
}

/// Says how long it takes, and measures a run for each condition that the run had not. Those that are there
/// are continued.
fn measure(bench: &mut Bench, judged: &Judged, library: &Library) -> Result<SessionEnd, Failure> {
    let run = judged.run();
    let comparison = judged.standing(&bench.store).map_err(Failure::Failed)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let plans = planning::sensitivity(run, judged.plan(), &comparison, cores);
    let mut left: Vec<(String, Plan, Option<RunState>)> = Vec::new();
    for plan in plans {
        let Some(part) = &plan.sensitivity else {
            continue;
        };
        let name = sensitivity_name(run, part.varied);
        let reached = bench.store.reached(&name).map_err(store_problem)?;
        let state = reached.map(|reached| reached.state);
        if state != Some(RunState::Finished) {
            left.push((name, plan, state));
        }
    }
    if left.is_empty() {
        say("sensitivity: nothing changed, or nothing is left to measure");
        return Ok(SessionEnd::Finished);
    }
    say(&outlook(bench, left.iter().map(|(_, plan, _)| plan))?);
    for (name, plan, state) in left {
        let measured = match state {
            None => bench.measure_new(&plan, library, Some(name), false)?,
            Some(_) => {
                let plan = bench.store.plan(&name).map_err(store_problem)?;
                bench.go_on(&name, &plan, library, false)?
            }
        };
        if measured.end == SessionEnd::Interrupted {
            say(&format!(
                "`deltabench resume {run}` continues, with the conditions that are left"
            ));
            return Ok(measured.end);
        }
    }
    Ok(SessionEnd::Finished)
}

/// What is measured, and the time that it takes at most.
fn outlook<'a>(bench: &Bench, plans: impl Iterator<Item = &'a Plan>) -> Result<String, Failure> {
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
