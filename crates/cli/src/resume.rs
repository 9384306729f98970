//! `deltabench resume` and `confirm`: going on with what is in the lab.

use crate::afterwards::{conclude, follow};
use crate::arguments::results::{Confirm, Resume};
use crate::bench::{Bench, Measured, library_of};
use crate::config::Config;
use crate::console::say;
use crate::failure::Failure;
use crate::follow_up::FollowUp;
use crate::host::{check_fits, swept_host};
use crate::output::Destinations;
use crate::request::pause;
use crate::store::{open, store_problem};
use crate::targets::hold_binaries;
use crate::{bisect, experiment, interrupt, replay, sessions};
use deltabench_lab::Judged;
use deltabench_model::plan::Plan;
use deltabench_model::problem::Problem;
use deltabench_run::session::SessionEnd;
use deltabench_store::{Found, RunState, Store};

/// Continues a run, the runs of an experiment, or a bisection.
pub fn resume(arguments: &Resume, config: &Config) -> Result<u8, Failure> {
    let store = open(config)?;
    let destinations = Destinations::check(&arguments.output, config).map_err(Failure::Refused)?;
    let host = swept_host(&arguments.servers, config)?;
    let found = store.find_any(&arguments.run).map_err(Failure::Refused)?;
    let mut bench = Bench {
        store,
        host,
        interrupted: interrupt::flag()?,
    };
    let run = match found {
        Found::Run(run) => run,
        Found::Execution(execution, runs) => {
            if arguments.output.json.is_some() || arguments.output.html.is_some() {
                return Err(Failure::Refused(
                    Problem::new("--json and --html apply to one run")
                        .detail(format!("{execution} is an experiment; its reports are in the lab"))
                        .hint("`deltabench report NAME --format json --out FILE` writes them elsewhere"),
                ));
            }
            not_of_fleet(&execution, &bench.store)?;
            return experiment::carry_out(&mut bench, &execution, &runs, false, config);
        }
        Found::Bisection(name) => {
            drop(bench);
            let files = (arguments.output.json.clone(), arguments.output.html.clone());
            return bisect::resume(&name, &arguments.servers, files, config);
        }
    };
    let plan = bench.store.plan(&run).map_err(store_problem)?;
    if let Some(part) = &plan.experiment {
        not_of_fleet(&part.execution, &bench.store)?;
    }
    if plan.work.replay().is_some() {
        return replay::timed::resume(&run, &plan, arguments, (bench, config));
    }
    if let Some(part) = &plan.session {
        return sessions::go_on(&mut bench, &part.first, false, &destinations);
    }
    let (run, plan) = whole(run, plan, &bench.store)?;
    let library = library_of(&plan)?;
    let reached = bench.store.reached(&run).map_err(store_problem)?;
    if reached.is_some_and(|reached| reached.state == RunState::Finished) {
        say(&format!("{run} is finished"));
        let judged = Judged::of(&run, &plan, &bench.store).map_err(Failure::Failed)?;
        let end = SessionEnd::Finished;
        return follow(&mut bench, judged, &library, end, &destinations);
    }
    check_fits(&plan, &bench.host).map_err(Failure::Refused)?;
    let Measured { end, judged } = bench.go_on(&run, &plan, &library, false)?;
    follow(&mut bench, judged, &library, end, &destinations)
}

/// What a run depends on, and what confirms it, is a part of that run, which says what came of it. A
/// confirmation that was withdrawn, and has another after it, is no part of it any more.
fn whole(run: String, plan: Plan, store: &Store) -> Result<(String, Plan), Failure> {
    if let Some(part) = &plan.sensitivity {
        let mut first = store.plan(&part.of).map_err(store_problem)?;
        first.observing.sensitivity = true;
        return Ok((part.of.clone(), first));
    }
    let Some(confirmed) = &plan.confirms else {
        return Ok((run, plan));
    };
    let newest = store.confirming(confirmed).map_err(store_problem)?.pop();
    if newest.is_none_or(|newest| newest != run) {
        return Ok((run, plan));
    }
    let mut first = store.plan(confirmed).map_err(store_problem)?;
    first.observing.confirmed_after.get_or_insert(0);
    Ok((confirmed.clone(), first))
}

/// Units of a fleet are measured by its hosts, which may be at it now.
fn not_of_fleet(execution: &str, store: &Store) -> Result<(), Failure> {
    let units = store.units(execution).map_err(store_problem)?;
    if units.is_empty() {
        return Ok(());
    }
    Err(Failure::Refused(
        Problem::new(format!("{execution} is measured by a fleet"))
            .detail(format!("it has {} units", units.len()))
            .hint(format!("`deltabench fleet resume {execution}` goes on")),
    ))
}

/// `deltabench confirm`: measures the differences that a finished run found again.
pub fn confirm(arguments: &Confirm, config: &Config) -> Result<u8, Failure> {
    let gap_seconds = arguments.gap.as_deref().map_or(Ok(0.0), pause);
    let gap_seconds = gap_seconds.map_err(Failure::Refused)?;
    let store = open(config)?;
    let destinations = Destinations::check(&arguments.output, config).map_err(Failure::Refused)?;
    let host = swept_host(&arguments.servers, config)?;
    let run = store.find(&arguments.run).map_err(Failure::Refused)?;
    let plan = store.plan(&run).map_err(store_problem)?;
    let library = library_of(&plan)?;
    hold_binaries(&plan).map_err(Failure::Refused)?;
    let mut bench = Bench {
        store,
        host,
        interrupted: interrupt::flag()?,
    };
    let judged = Judged::of(&run, &plan, &bench.store).map_err(Failure::Failed)?;
    let (end, again) = bench.confirm(&judged, &library, gap_seconds)?;
    let analysed = bench.analysed(judged, again)?;
    let ends = (SessionEnd::Finished, FollowUp::of(Ok(end)));
    conclude(&mut bench, analysed, ends, &destinations)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::conditions::{HugePagesWord, Output, Servers};
    use deltabench_acquire::Sources;
    use deltabench_model::exit;

    #[test]
    fn a_run_that_was_to_be_confirmed_is_confirmed_by_resume() {
        let place = tempfile::tempdir().unwrap();
        let config = Config {
            lab: place.path().to_owned(),
            cache: place.path().to_owned(),
            sources: Sources::default(),
        };
        let mut store = Store::open(place.path()).unwrap();
        let mut plan = deltabench_testkit::small_run::plan();
        for (run, gap_seconds) in [("plain", None), ("twice", Some(0))] {
            plan.observing.confirmed_after = gap_seconds;
            store.create_run(run, &plan, RunState::Running, 1).unwrap();
            deltabench_testkit::small_run::keep(&mut store, run, [0.96, 1.0, 1.0]);
            store.finish_run(run, RunState::Finished, 2).unwrap();
        }
        plan.observing.confirmed_after = None;
        plan.confirms = Some("plain".to_owned());
        let begun = store.create_run("plain-confirm", &plan, RunState::Interrupted, 3);
        begun.unwrap();
        drop(store);
        let code = |run: &str| {
            let arguments = Resume {
                run: run.to_owned(),
                servers: Servers {
                    server_user: None,
                    cluster_dir: Some(place.path().to_owned()),
                    huge_pages: HugePagesWord::Off,
                },
                output: Output {
                    json_version: 2,
                    ..Output::default()
                },
            };
            resume(&arguments, &config).unwrap()
        };
        assert_eq!(code("plain"), exit::REGRESSION);
        // Its servers are not here, so that what was asked for is not measured.
        assert_eq!(code("twice"), exit::NOT_MEASURED);
        // What confirms another run is a part of that one, whose reports are written.
        let report = place.path().join("plain.json");
        std::fs::remove_file(&report).unwrap();
        assert_eq!(code("plain-confirm"), exit::NOT_MEASURED);
        assert!(report.exists());
    }
}
