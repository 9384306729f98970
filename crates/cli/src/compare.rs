//! `deltabench compare`, `resume` and `confirm`: from the request to the exit code.

use crate::Failure;
use crate::arguments::{Compare, Confirm, Resume};
use crate::bench::{Bench, check_still_there, library_of, now, open_store, resolve, swept_host};
use crate::config::Config;
use crate::output::{self, Destinations, say, store_problem};
use crate::request::{request, settings};
use crate::{interrupt, listing};
use deltabench_model::plan::Plan;
use deltabench_model::problem::Problem;
use deltabench_model::target::TargetSpec;
use deltabench_model::units::count;
use deltabench_run::limits;
use deltabench_run::planning::{self, Request, ServerWish};
use deltabench_run::residence::residence;
use deltabench_run::session::SessionEnd;
use deltabench_server::check_settings;
use deltabench_store::RunState;
use deltabench_workload::Library;

/// Runs a new comparison.
pub fn compare(arguments: Compare, config: &Config) -> Result<u8, Failure> {
    let library = Library::builtin().map_err(Failure::Failed)?;
    let destinations = Destinations::check(&arguments.output, config).map_err(Failure::Refused)?;
    let request = request(&arguments).map_err(Failure::Refused)?;
    let library = library
        .with_sources(&request.sources)
        .map_err(Failure::Refused)?;
    planning::check(&request, &library).map_err(Failure::Refused)?;
    settings(&arguments.candidate_settings)
        .and_then(|settings| check_settings(&settings))
        .map_err(Failure::Refused)?;
    let host = swept_host(&arguments.servers, config)?;
    let plan = make_plan(request, &arguments, config, &library).map_err(Failure::Refused)?;
    residence(&plan, &host).map_err(Failure::Refused)?;
    limits::check(&plan.limits, &host.workspaces).map_err(Failure::Refused)?;
    let mut bench = Bench {
        store: open_store(config)?,
        host,
        interrupted: interrupt::flag()?,
    };
    let pilot = !arguments.ending.no_pilot;
    let (run, end) = bench.measure_new(&plan, &library, None, pilot)?;
    if end == SessionEnd::Finished && arguments.ending.confirm {
        bench.confirm(&run, &plan, &library)?;
    }
    bench.publish(&run, &plan, end, &destinations)
}

/// Goes on with a run.
pub fn resume(arguments: &Resume, config: &Config) -> Result<u8, Failure> {
    let destinations = Destinations::check(&arguments.output, config).map_err(Failure::Refused)?;
    let host = swept_host(&arguments.servers, config)?;
    let store = listing::open(config)?;
    let run = store.find(&arguments.run).map_err(Failure::Refused)?;
    let lock = store.lock_run(&run).map_err(Failure::Refused)?;
    let plan = store.plan(&run).map_err(store_problem)?;
    let library = library_of(&plan)?;
    let finished = store
        .runs()
        .map_err(store_problem)?
        .iter()
        .any(|summary| summary.run == run && summary.state == RunState::Finished);
    if finished {
        say(&format!("{run} is finished"));
        return output::publish(&run, &plan, &store, &destinations);
    }
    check_still_there(&plan).map_err(Failure::Refused)?;
    residence(&plan, &host).map_err(Failure::Refused)?;
    limits::check(&plan.limits, &host.workspaces).map_err(Failure::Refused)?;
    let mut bench = Bench {
        store,
        host,
        interrupted: interrupt::flag()?,
    };
    bench
        .store
        .finish_run(&run, RunState::Running, now().1)
        .map_err(store_problem)?;
    let done = count(
        bench
            .store
            .completed_visits(&run)
            .map_err(store_problem)?
            .len(),
    );
    let said = format!("resuming {run}: {done} visits are done");
    let end = bench.measure(&run, &plan, &library, lock, false, &said)?;
    bench.publish(&run, &plan, end, &destinations)
}

/// `deltabench confirm`: measures the regressions of a finished run again.
pub fn confirm(arguments: &Confirm, config: &Config) -> Result<u8, Failure> {
    let destinations = Destinations::check(&arguments.output, config).map_err(Failure::Refused)?;
    let host = swept_host(&arguments.servers, config)?;
    let store = listing::open(config)?;
    let run = store.find(&arguments.run).map_err(Failure::Refused)?;
    let plan = store.plan(&run).map_err(store_problem)?;
    let library = library_of(&plan)?;
    check_still_there(&plan).map_err(Failure::Refused)?;
    let mut bench = Bench {
        store,
        host,
        interrupted: interrupt::flag()?,
    };
    let end = bench.confirm(&run, &plan, &library)?;
    bench.publish(&run, &plan, end, &destinations)
}

fn make_plan(
    request: Request,
    arguments: &Compare,
    config: &Config,
    library: &Library,
) -> Result<Plan, Problem> {
    let specs = std::iter::once(&arguments.base)
        .chain(&arguments.candidates)
        .map(|text| text.parse::<TargetSpec>())
        .collect::<Result<Vec<_>, _>>()?;
    let own = settings(&arguments.candidate_settings)?;
    let wishes: Vec<ServerWish> = resolve(&specs, config)?
        .into_iter()
        .map(ServerWish::plain)
        .collect();
    match wishes.as_slice() {
        [base, candidates @ ..] => {
            let candidates: Vec<ServerWish> = candidates
                .iter()
                .map(|wish| ServerWish {
                    settings: own.clone(),
                    ..wish.clone()
                })
                .collect();
            planning::plan(request, base, &candidates, library)
        }
        [] => Err(Problem::new("no base given")),
    }
}
