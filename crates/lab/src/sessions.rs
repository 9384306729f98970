//! The sessions of a comparison that is measured in several hours.

use crate::judged::Judged;
use crate::store_problem;
use crate::withdrawal::leave_out;
use deltabench_compare::comparison::Comparison;
use deltabench_model::problem::Problem;
use deltabench_report::SessionLine;
use deltabench_store::{RunState, Store};

/// The name of a session, from 1; the first has the name of the run that stands for all.
pub fn session_name(first: &str, number: u32) -> String {
    match number {
        0 | 1 => first.to_owned(),
        later => format!("{first}-s{later}"),
    }
}

/// The sessions of a run, the first included, as its reports list them, and what the later ones say that are
/// finished: judged with the δ of the first, without what was withdrawn. Nothing for a run of one session.
///
/// A session under way does not count: cells of few blocks would count as much as those of all.
///
/// Errors: the store cannot be read.
pub(crate) fn of(
    judged: &Judged,
    store: &Store,
) -> Result<(Vec<SessionLine>, Vec<Comparison>), Problem> {
    let (mut lines, mut others) = (Vec::new(), Vec::new());
    let part = judged.plan().session.as_ref();
    let Some(part) = part.filter(|part| part.number == 1) else {
        return Ok((lines, others));
    };
    let known = store.runs().map_err(store_problem)?;
    for number in 1..=part.of {
        let run = session_name(judged.run(), number);
        let Some(summary) = known.iter().find(|summary| summary.run == run) else {
            continue;
        };
        let finished = summary.state == RunState::Finished;
        lines.push(SessionLine {
            counts: finished || number == 1,
            state: summary.state.word().to_owned(),
            began_unix_ms: store.began_unix_ms(&run).map_err(store_problem)?,
            ended_unix_ms: finished.then_some(summary.state_unix_ms),
            run: run.clone(),
        });
        if number > 1 && finished {
            let mut plan = store.plan(&run).map_err(store_problem)?;
            plan.delta = judged.plan().delta;
            plan.delta_from_noise = judged.plan().delta_from_noise;
            let withdrawn = store.invalidations(&run).map_err(store_problem)?;
            let mut comparison = Judged::of(&run, &plan, store)?.into_comparison();
            leave_out(&mut comparison, &withdrawn);
            others.push(comparison);
        }
    }
    Ok((lines, others))
}
