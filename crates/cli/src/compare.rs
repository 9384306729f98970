//! `deltabench compare`, `resume` and `confirm`: from the request to the exit code.

use crate::Failure;
use crate::arguments::{Compare, Conditions, Confirm, Ending, Resume};
use crate::bench::{
    Bench, check_fits, check_still_there, library_of, open_store, resolve_servers, swept_host,
};
use crate::config::Config;
use crate::configs::Chooser;
use crate::output::{Destinations, say, store_problem};
use crate::request::{request, settings};
use crate::{experiment, interrupt, listing};
use deltabench_model::installation::Installation;
use deltabench_model::plan::Plan;
use deltabench_model::problem::Problem;
use deltabench_model::target::TargetSpec;
use deltabench_run::fleet::Host;
use deltabench_run::planning::{self, Request, ServerWish};
use deltabench_run::session::SessionEnd;
use deltabench_server::check_settings;
use deltabench_store::{Found, RunState, RunSummary};
use deltabench_workload::Library;
use std::path::Path;

/// The servers that a command is about, and what is held on them.
pub struct Sides<'a> {
    /// The side that the others are compared with, as asked for.
    pub base: &'a str,
    /// The sides in question; may be none where the command allows it.
    pub candidates: &'a [String],
    /// What is held.
    pub conditions: &'a Conditions,
}

impl<'a> Sides<'a> {
    fn targets(&self) -> impl Iterator<Item = &'a str> {
        let candidates = self.candidates.iter().map(String::as_str);
        std::iter::once(self.base).chain(candidates)
    }
}

/// Runs a new comparison.
pub fn compare(arguments: &Compare, config: &Config) -> Result<u8, Failure> {
    let sides = Sides {
        base: &arguments.base,
        candidates: &arguments.candidates,
        conditions: &arguments.conditions,
    };
    let request = request(arguments).map_err(Failure::Refused)?;
    carry_out(request, &sides, &arguments.shape.ending, config)
}

/// Checks a request, finds its servers, measures and publishes.
pub fn carry_out(
    request: Request,
    sides: &Sides<'_>,
    ending: &Ending,
    config: &Config,
) -> Result<u8, Failure> {
    Ready::of(request, sides, config)?.measure(!ending.no_pilot, ending.confirm, config)
}

/// A plan that can be carried out here.
pub struct Ready {
    /// What is going to be done.
    pub plan: Plan,
    /// Where its servers live.
    pub host: Host,
    library: Library,
    destinations: Destinations,
}

impl Ready {
    /// Checks a request, finds its servers and makes the plan.
    pub fn of(request: Request, sides: &Sides<'_>, config: &Config) -> Result<Self, Failure> {
        let conditions = sides.conditions;
        let destinations =
            Destinations::check(&conditions.output, config).map_err(Failure::Refused)?;
        let library = Library::builtin().map_err(Failure::Failed)?;
        let library = library
            .with_sources(&request.sources)
            .and_then(|library| library.with_pgbench(request.pgbench.as_ref()))
            .map_err(Failure::Refused)?;
        planning::check(&request, &library).map_err(Failure::Refused)?;
        check_clients(&request, sides).map_err(Failure::Refused)?;
        settings(&conditions.candidate_settings)
            .and_then(|settings| check_settings(&settings))
            .map_err(Failure::Refused)?;
        let host = swept_host(&conditions.servers, config)?;
        let plan = make_plan(request, sides, config, &library).map_err(Failure::Refused)?;
        check_fits(&plan, &host).map_err(Failure::Refused)?;
        Ok(Self {
            plan,
            host,
            library,
            destinations,
        })
    }

    /// A plan that was checked, and where it is carried out.
    pub fn made(plan: Plan, host: Host, library: Library, destinations: Destinations) -> Self {
        Self {
            plan,
            host,
            library,
            destinations,
        }
    }

    /// Measures and publishes.
    pub fn measure(self, pilot: bool, confirm: bool, config: &Config) -> Result<u8, Failure> {
        let Self {
            plan,
            host,
            library,
            destinations,
        } = self;
        let mut bench = Bench {
            store: open_store(config)?,
            host,
            interrupted: interrupt::flag()?,
        };
        let (run, end) = bench.measure_new(&plan, &library, None, pilot)?;
        if end == SessionEnd::Finished && confirm {
            bench.confirm(&run, &plan, &library)?;
        }
        bench.publish(&run, &plan, end, &destinations)
    }
}

/// Goes on with a run, or with the runs of an experiment.
pub fn resume(arguments: &Resume, config: &Config) -> Result<u8, Failure> {
    let destinations = Destinations::check(&arguments.output, config).map_err(Failure::Refused)?;
    let host = swept_host(&arguments.servers, config)?;
    let store = listing::open(config)?;
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
                    Problem::new("--json and --html are about one run")
                        .detail(format!("{execution} is an experiment; its reports go into the lab"))
                        .hint("`deltabench report NAME --format json --out FILE` writes them elsewhere"),
                ));
            }
            return experiment::carry_out(&mut bench, &execution, &runs, false, config);
        }
    };
    let plan = bench.store.plan(&run).map_err(store_problem)?;
    let library = library_of(&plan)?;
    let known = bench.store.runs().map_err(store_problem)?;
    let is_finished = |summary: &&RunSummary| summary.state == RunState::Finished;
    if known
        .iter()
        .filter(is_finished)
        .any(|summary| summary.run == run)
    {
        say(&format!("{run} is finished"));
        return bench.publish(&run, &plan, SessionEnd::Finished, &destinations);
    }
    check_fits(&plan, &bench.host).map_err(Failure::Refused)?;
    let end = bench.go_on(&run, &plan, &library, false)?;
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

/// Refuses too many clients before anything is fetched, where servers of ours and no configuration decide.
fn check_clients(request: &Request, sides: &Sides<'_>) -> Result<(), Problem> {
    let targets = sides.targets();
    let mut own = targets.filter(|target| !target.starts_with("dsn:"));
    let configured = sides.conditions.configuration.is_some()
        || sides.conditions.candidate_configuration.is_some();
    if configured || own.next().is_none() {
        return Ok(());
    }
    planning::check_connections(request, &[])
}

/// What a server with a named configuration is called: its version, and what sets it apart from the others.
fn label(found: &Installation, name: Option<&str>, own: &[(String, String)]) -> String {
    let settings = own.iter().map(|(name, value)| format!("{name} = {value}"));
    let words: Vec<String> = name
        .map(str::to_owned)
        .into_iter()
        .chain(settings)
        .collect();
    match words.as_slice() {
        [] => found.resolved.clone(),
        _ => format!("{} ({})", found.resolved, words.join(", ")),
    }
}

fn make_plan(
    request: Request,
    sides: &Sides<'_>,
    config: &Config,
    library: &Library,
) -> Result<Plan, Problem> {
    let specs = sides
        .targets()
        .map(|text| text.parse::<TargetSpec>())
        .collect::<Result<Vec<_>, _>>()?;
    let here = Path::new("");
    let of_base = sides.conditions.configuration.as_deref();
    let of_candidates = sides
        .conditions
        .candidate_configuration
        .as_deref()
        .or(of_base);
    let mut chooser = Chooser::new(&[], request.limits.memory_bytes)?;
    for name in [of_base, of_candidates].into_iter().flatten() {
        chooser = chooser.knowing(name, here)?;
    }
    let own = settings(&sides.conditions.candidate_settings)?;
    let wish = |name: Option<&str>, own: &[(String, String)], found: &Installation| {
        let fitted = chooser.fitted(name, own, &request.settings, found)?;
        Ok(ServerWish {
            label: name.map(|name| label(found, (of_base != of_candidates).then_some(name), own)),
            configuration: fitted.configuration,
            settings: fitted.settings,
            ..ServerWish::plain(found.clone())
        })
    };
    match resolve_servers(&specs, config)?.as_slice() {
        [base, candidates @ ..] => {
            let base = wish(of_base, &[], base)?;
            let candidates = candidates
                .iter()
                .map(|candidate| wish(of_candidates, &own, candidate))
                .collect::<Result<Vec<_>, Problem>>()?;
            planning::plan(request, &base, &candidates, library)
        }
        [] => Err(Problem::new("no base given")),
    }
}
