//! A comparison in several sessions: one after another with a pause between, and one result over all.

use crate::afterwards::conclude;
use crate::bench::{Bench, library_of};
use crate::clock::{now, run_names};
use crate::console::say;
use crate::failure::Failure;
use crate::follow_up::FollowUp;
use crate::host::check_fits;
use crate::output::Destinations;
use crate::pause::pause;
use crate::store::store_problem;
use deltabench_lab::{Judged, session_name};
use deltabench_model::plan::Plan;
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
    let runs = |first: &str| {
        let plans = planning::sessions(first, plan, of, gap_seconds);
        let names = (1..=of).map(|number| session_name(first, number));
        names.zip(plans).collect()
    };
    let state = (RunState::Planned, created);
    let (first, lock) = bench.store_new(run_names(seconds, plan.seed), state, runs)?;
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
    let mut measured = false;
    for number in 1..=of {
        let run = session_name(first, number);
        let reached = bench.store.reached(&run).map_err(store_problem)?;
        if let Some(done) = reached.filter(|reached| reached.state == RunState::Finished) {
            before = Some(done.state_unix_ms);
            continue;
        }
        // One that was begun does not pause again.
        let begun = reached.is_some_and(|reached| reached.state != RunState::Planned);
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
        let session = check_fits(&plan, &bench.host)
            .map_err(Failure::Refused)
            .and_then(|()| bench.go_on(&run, &plan, &library, pilot && number == 1));
        match session {
            Ok(session) if session.end == SessionEnd::Interrupted => {
                end = session.end;
                break;
            }
            Ok(_) => (before, measured) = (Some(now().1), true),
            Err(refused @ Failure::Refused(_)) if !measured => return Err(refused),
            Err(failure) if before.is_none() => return Err(failure),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::conditions::Output;
    use crate::bench::tests::bench;
    use crate::config::Config;
    use deltabench_acquire::Sources;
    use deltabench_model::exit;
    use deltabench_store::Store;
    use deltabench_testkit::small_run;
    use std::path::Path;

    /// Two planned sessions of servers whose program cannot be started.
    fn sessions(place: &Path) -> Store {
        let mut store = Store::open(place).unwrap();
        let mut plan = small_run::plan();
        let binary = place.join("postgres");
        std::fs::write(&binary, "").unwrap();
        for server in &mut plan.servers {
            server.installation.bin_dir = place.to_owned();
            server.installation.binary_sha256 = deltabench_acquire::sha256_of(&binary).unwrap();
        }
        let plans = planning::sessions("r", &plan, 2, 0.0);
        let runs: Vec<(&str, &Plan)> = ["r", "r-s2"].into_iter().zip(&plans).collect();
        store.create_runs(&runs, RunState::Planned, 1).unwrap();
        store
    }

    fn destinations(place: &Path) -> Destinations {
        let config = Config {
            lab: place.to_owned(),
            cache: place.to_owned(),
            sources: Sources::default(),
        };
        Destinations::check(&Output::default(), &config).unwrap()
    }

    #[test]
    fn a_first_session_that_fails_has_no_result() {
        let place = tempfile::tempdir().unwrap();
        let mut bench = bench(place.path(), sessions(place.path()), false);
        let failed = go_on(&mut bench, "r", false, &destinations(place.path()));
        assert!(matches!(failed, Err(Failure::Failed(_))), "{failed:?}");
        assert!(!place.path().join("r.json").exists());
    }

    #[test]
    fn a_session_that_fails_leaves_the_result_of_those_before_it() {
        let place = tempfile::tempdir().unwrap();
        let mut store = sessions(place.path());
        small_run::keep(&mut store, "r", [0.8, 1.0, 1.0]);
        store.finish_run("r", RunState::Finished, 2).unwrap();
        let destinations = destinations(place.path());
        let mut bench = bench(place.path(), store, false);
        let code = go_on(&mut bench, "r", false, &destinations).unwrap();
        assert_eq!(code, exit::NOT_MEASURED);
        let json = std::fs::read_to_string(place.path().join("r.json")).unwrap();
        assert!(json.contains("\"regression\": 1"), "{json}");
        // What is refused before anything starts has no new result.
        std::fs::remove_file(place.path().join("postgres")).unwrap();
        let refused = go_on(&mut bench, "r", false, &destinations);
        assert!(matches!(refused, Err(Failure::Refused(_))), "{refused:?}");
    }
}
