//! `deltabench count`: instructions per operation on two servers or more.

use crate::afterwards::SEED;
use crate::arguments::count::Count;
use crate::config::Config;
use crate::failure::Failure;
use crate::kinds::ready_to_count;
use crate::kinds::workloads::files;
use crate::ready::Ready;
use crate::request::{held, percent, settings, small};
use deltabench_model::counts::Counting;
use deltabench_model::plan::{Gate, Observing, Plan, Stopping};
use deltabench_model::problem::Problem;
use deltabench_model::target::TargetSpec;
use deltabench_run::planning::{Request, Selection, check_share};
use deltabench_server::Counter;

/// Counts as a new run.
pub fn count(arguments: &Count, config: &Config) -> Result<u8, Failure> {
    ready(arguments, config)?.measure(false, config)
}

/// A count that can be carried out here.
pub fn ready(arguments: &Count, config: &Config) -> Result<Ready, Failure> {
    let request = checked(arguments).map_err(Failure::Refused)?;
    Counter::find().map_err(Failure::Refused)?;
    let ready = ready_to_count(arguments, request, config)?;
    deltabench_kinds::check_counted(&ready.plan).map_err(Failure::Refused)?;
    Ok(ready)
}

/// The plan of a count that may never be carried out: what only counting needs may be missing here.
pub fn planned(arguments: &Count, config: &Config) -> Result<Plan, Failure> {
    let request = checked(arguments).map_err(Failure::Refused)?;
    Ok(ready_to_count(arguments, request, config)?.plan)
}

fn checked(arguments: &Count) -> Result<Request, Problem> {
    let request = request(arguments)?;
    check(arguments, &request)?;
    Ok(request)
}

/// Refuses what cannot be counted on any server, before anything is looked for.
fn check(arguments: &Count, request: &Request) -> Result<(), Problem> {
    let mut targets = std::iter::once(&arguments.base).chain(&arguments.candidates);
    if let Some(target) = targets.find(|target| target.starts_with("dsn:")) {
        // First, because it refuses a password, and does not repeat it.
        target.parse::<TargetSpec>()?;
        return Err(deltabench_counting::not_ours(target));
    }
    if arguments.clients != 1 {
        return Err(deltabench_counting::several_clients(arguments.clients));
    }
    let Request {
        limits,
        cache,
        transport,
        ..
    } = request;
    deltabench_counting::check_conditions(limits, *cache, *transport)?;
    let own = settings(&arguments.conditions.candidate_settings)?;
    deltabench_counting::check_settings(&request.settings, Some("--set"))?;
    deltabench_counting::check_settings(&own, Some("--candidate-set"))
}

/// The request that the arguments stand for.
///
/// Errors: a percentage, setting or file that cannot be read.
fn request(arguments: &Count) -> Result<Request, Problem> {
    let (sources, work) = files(&arguments.workloads)?;
    let asked = arguments.not_more_than.as_deref();
    let limit = percent(asked.unwrap_or(LIMIT))?;
    check_share("limit", "--not-more-than", limit)?;
    let seed = arguments.conditions.seed;
    let small = small(
        Vec::new(),
        arguments.rows,
        arguments.starts,
        seed.unwrap_or(SEED),
    );
    let mut request = held(small, &arguments.conditions)?;
    request.data.tables = arguments.tables;
    Ok(Request {
        selection: selection(arguments),
        sources,
        work,
        stopping: Stopping::Fixed,
        placebo: false,
        gate: Gate {
            on: asked.is_some(),
            not_worse_than: Some(limit),
            inconclusive_passes: false,
            metrics: Vec::new(),
            another_hour: false,
        },
        observing: Observing {
            counters: false,
            counting: Some(Counting {
                starts: arguments.starts,
                ..Counting::default()
            }),
            ..Observing::default()
        },
        ..request
    })
}

/// More instructions than this are a regression where no other limit is asked for.
const LIMIT: &str = "1%";

fn selection(arguments: &Count) -> Selection {
    match (arguments.all, arguments.workloads.is_empty()) {
        _ if !arguments.only.is_empty() => Selection::Named(arguments.only.clone()),
        (true, _) => Selection::All,
        (false, false) => Selection::Named(Vec::new()),
        (false, true) => Selection::Quick,
    }
}
