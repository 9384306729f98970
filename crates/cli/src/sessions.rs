//! A comparison in several sessions: one after another with a pause between, and one result over all.

use crate::afterwards::{SECONDS, conclude};
use crate::amounts::span;
use crate::bench::{Bench, library_of};
use crate::clock::{now, run_name};
use crate::console::say;
use crate::failure::Failure;
use crate::follow_up::FollowUp;
use crate::host::check_fits;
use crate::kinds::outlook::sides;
use crate::output::Destinations;
use crate::pause::pause;
use crate::store::store_problem;
use deltabench_kinds::{run_half, show_half};
use deltabench_lab::{Judged, session_name};
use deltabench_model::counts::CountedAfter;
use deltabench_model::plan::Plan;
use deltabench_model::problem::Problem;
use deltabench_run::estimate::estimate;
use deltabench_run::fleet::Host;
use deltabench_run::planning;
use deltabench_run::session::SessionEnd;
use deltabench_store::RunState;

/// Seconds between two sessions where the user names none: what moves with the hour has time to.
pub const GAP_SECONDS: f64 = 2700.0;

/// The command that continues an interrupted run.
const GO_ON: &str = "deltabench resume";

/// Stores the plans of all sessions, so that a killed run knows what is left, and measures them.
pub fn measure(
    bench: &mut Bench,
    plan: &Plan,
    (of, gap_seconds): (u32, f64),
    pilot: bool,
    destinations: &Destinations,
) -> Result<u8, Failure> {
    let (seconds, created) = now();
    let first = run_name(seconds, plan.seed);
    let plans = planning::sessions(&first, plan, of, gap_seconds);
    let names: Vec<String> = (1..=of)
        .map(|number| session_name(&first, number))
        .collect();
    let runs: Vec<(&str, &Plan)> = names.iter().map(String::as_str).zip(&plans).collect();
    let lock = bench.store.lock_run(&first).map_err(Failure::Refused)?;
    bench
        .store
        .create_runs(&runs, RunState::Planned, created)
        .map_err(store_problem)?;
    drop(lock);
    go_on(bench, &first, pilot, destinations)
}

/// Measures those sessions of a run that are not finished, then publishes the result over all.
pub fn go_on(
    bench: &mut Bench,
    first: &str,
    pilot: bool,
    destinations: &Destinations,
) -> Result<u8, Failure> {
    let plan = bench.store.plan(first).map_err(store_problem)?;
    let (of, gap_seconds) = plan
        .session
        .as_ref()
        .map_or((1, 0.0), |part| (part.of, part.gap_seconds));
    let (mut end, mut after) = (SessionEnd::Finished, FollowUp::Finished);
    let mut before: Option<i64> = None;
    for number in 1..=of {
        let run = session_name(first, number);
        let known = bench.store.runs().map_err(store_problem)?;
        let summary = known.iter().find(|summary| summary.run == run);
        if let Some(done) = summary.filter(|summary| summary.state == RunState::Finished) {
            before = Some(done.state_unix_ms);
            continue;
        }
        // One that was begun does not pause again.
        let begun = summary.is_some_and(|summary| summary.state != RunState::Planned);
        let what = format!("session {number} of {of}");
        if let Some(ended) = before.filter(|_| !begun)
            && pause(ended, gap_seconds, (&what, GO_ON), &bench.interrupted)
                == SessionEnd::Interrupted
        {
            end = SessionEnd::Interrupted;
            break;
        }
        say(&what);
        let plan = bench.store.plan(&run).map_err(store_problem)?;
        let library = library_of(&plan)?;
        let measured = check_fits(&plan, &bench.host)
            .map_err(Failure::Refused)
            .and_then(|()| bench.go_on(&run, &plan, &library, pilot && number == 1));
        match measured {
            Ok(measured) if measured.end == SessionEnd::Interrupted => {
                end = measured.end;
                break;
            }
            Ok(_) => before = Some(now().1),
            // The sessions before it have a result.
            Err(failure) => {
                after = FollowUp::of(Err(failure));
                break;
            }
        }
    }
    let judged = Judged::of(first, &plan, &bench.store).map_err(Failure::Failed)?;
    let analysed = bench.analysed(judged, None)?;
    conclude(bench, analysed, (end, after), destinations)
}

/// What would be measured, in lines.
///
/// Errors: it does not fit on this host.
pub fn outlook(
    plan: &Plan,
    host: &Host,
    sessions: Option<(u32, f64)>,
) -> Result<Vec<String>, Problem> {
    let found = estimate(plan, run_half(&plan.work), host)?;
    if let Some(lacking) = found.lacks {
        return Err(lacking);
    }
    let one = (found.set_up + found.measuring).as_secs_f64();
    let cells = plan.cells.len();
    let mut lines = vec![
        sides(plan),
        format!(
            "  cells     {cells}, at most {} blocks each; {}",
            plan.timing.blocks,
            show_half(&plan.work).block(plan)
        ),
        format!(
            "  run       set-up about {}, measuring at most {}",
            span(found.set_up.as_secs_f64()),
            span(found.measuring.as_secs_f64())
        ),
    ];
    if let Some((of, gap)) = sessions {
        let all = f64::from(of) * one + f64::from(of.saturating_sub(1)) * gap;
        lines.push(format!(
            "  sessions  {of}, each such a run with a fresh load; {} from the end of one to the start of the \
             next",
            span(gap)
        ));
        lines.push(format!("  time      at most {} in all", span(all)));
    } else {
        lines.push(format!("  time      at most {}", span(one)));
    }
    lines.extend(plan.observing.counted_after.map(|wanted| match wanted {
        CountedAfter::Changed => {
            format!("  then      instructions of the cells that changed, at most {SECONDS} s")
        }
        CountedAfter::All => "  then      instructions of all cells".to_owned(),
    }));
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::conditions::Output;
    use crate::bench::tests::bench;
    use crate::config::Config;
    use crate::failure::NOT_MEASURED;
    use deltabench_acquire::Sources;
    use deltabench_store::Store;
    use deltabench_testkit::small_run;

    #[test]
    fn a_session_that_fails_leaves_the_result_of_those_before_it() {
        let place = tempfile::tempdir().unwrap();
        let mut store = Store::open(place.path()).unwrap();
        let plans = planning::sessions("r", &small_run::plan(), 2, 0.0);
        let runs: Vec<(&str, &Plan)> = ["r", "r-s2"].into_iter().zip(&plans).collect();
        store.create_runs(&runs, RunState::Planned, 1).unwrap();
        small_run::keep(&mut store, "r", [0.8, 1.0, 1.0]);
        store.finish_run("r", RunState::Finished, 2).unwrap();
        let config = Config {
            lab: place.path().to_owned(),
            cache: place.path().to_owned(),
            sources: Sources::default(),
        };
        let destinations = Destinations::check(&Output::default(), &config).unwrap();
        let mut bench = bench(place.path(), store, false);
        // The programs of its servers are not there.
        let code = go_on(&mut bench, "r", false, &destinations).unwrap();
        assert_eq!(code, NOT_MEASURED);
        let json = std::fs::read_to_string(place.path().join("r.json")).unwrap();
        assert!(json.contains("\"regression\": 1"), "{json}");
    }
}
