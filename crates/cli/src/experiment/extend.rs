//! `deltabench extend`: a server more for an execution, measured with the anchor and the newest version;
//! earlier runs stand for the others.

use super::servers::Found;
use super::{Planned, begin, outlook, plan, requests};
use crate::arguments::experiment::ExtendArguments;
use crate::config::Config;
use crate::console::say;
use crate::failure::Failure;
use crate::host::{self, swept_host};
use crate::store::{open, open_to_read, store_problem};
use crate::targets::known_or_named;
use deltabench_experiment::Experiment;
use deltabench_kinds::run_half;
use deltabench_lab::{Ask, EarlierServer, earlier_servers, series_of, version_key};
use deltabench_model::occasion::MEASUREMENT_VERSION;
use deltabench_model::plan::{Cell, ExperimentPart, Plan, PlannedServer};
use deltabench_model::problem::Problem;
use deltabench_model::target::TargetSpec;
use deltabench_observe::host_identity;
use deltabench_store::{Found as Named, RunState, Store};
use deltabench_workload::Library;
use std::path::Path;

/// An execution, as it is stored.
struct Stored {
    name: String,
    /// Its runs with their plans.
    runs: Vec<(String, Plan)>,
    part: ExperimentPart,
}

/// A server that a plan is to have: how it is asked for, its label, and which build it has to be.
#[derive(Clone)]
struct Wanted {
    target: TargetSpec,
    label: Option<String>,
    /// Absent for the new one.
    key: Option<String>,
}

/// Plans a server more, and measures it.
pub fn extend(arguments: &ExtendArguments, config: &Config) -> Result<u8, Failure> {
    let new: TargetSpec = arguments.with.parse().map_err(Failure::Refused)?;
    if matches!(new, TargetSpec::Dsn(_)) {
        return Err(Failure::Refused(
            Problem::new("a server that already runs cannot extend an execution")
                .detail("nobody knows whether it is the same build tomorrow")
                .hint("name a version, a directory or a commit"),
        ));
    }
    let store = match arguments.dry_run {
        true => open_to_read(config)?,
        false => open(config)?,
    };
    let stored = stored(&arguments.execution, &store)?;
    let earlier = all_earlier(&stored, &store)?;
    let host = match arguments.dry_run {
        true => host::host(&arguments.servers, config).map_err(Failure::Refused)?,
        false => swept_host(&arguments.servers, config)?,
    };
    check_new(&new, &stored, &earlier, config).map_err(Failure::Refused)?;
    let (base, newest) = anchor_and_newest(&stored).map_err(Failure::Refused)?;
    let mut wanted = vec![base];
    let rest: Vec<PlannedServer> = match arguments.remeasure {
        true => earlier.clone(),
        false => Vec::new(),
    };
    let again = |planned: &PlannedServer| wanted_of(planned).map_err(Failure::Refused);
    for planned in &rest {
        wanted.push(again(planned)?);
    }
    if let Some(newest) = newest.filter(|newest| !wanted.iter().any(|one| one.key == newest.key)) {
        wanted.push(newest);
    }
    let new = Wanted {
        target: new,
        label: None,
        key: None,
    };
    let make = |wanted: &[Wanted]| planned(&stored, wanted, &new, arguments.dry_run, config);
    let (mut experiment, mut found) = make(&wanted).map_err(Failure::Refused)?;
    let lost = lost(&found, &store)?;
    if !lost.is_empty() {
        for one in &lost {
            let why = one.why_not.as_deref().unwrap_or_default();
            say(&format!("{} is measured again: {why}", one.planned.name()));
            wanted.push(again(&one.planned)?);
        }
        (experiment, found) = make(&wanted).map_err(Failure::Refused)?;
    }
    say(&told(&stored, &found, &store)?);
    drop(store);
    match arguments.dry_run {
        true => outlook::print(&experiment, &found.runs, (&host, None)),
        false => begin(&found, host, !arguments.no_pilot, config),
    }
}

/// The execution of this name, all of it measured.
fn stored(name: &str, store: &Store) -> Result<Stored, Failure> {
    let refused = |problem: Problem| Err(Failure::Refused(problem));
    let (name, runs) = match store.find_any(name).map_err(Failure::Refused)? {
        Named::Execution(name, runs) => (name, runs),
        Named::Run(name) | Named::Bisection(name) => {
            return refused(
                Problem::new(format!("{name} is no execution of an experiment"))
                    .detail("an experiment file says what all its servers have in common")
                    .hint("`deltabench init` writes one, `deltabench run FILE` carries it out"),
            );
        }
    };
    if !store.units(&name).map_err(store_problem)?.is_empty() {
        return refused(
            Problem::new(format!("{name} was measured by a fleet"))
                .hint("add the server to its file, and run it again with `deltabench fleet run`"),
        );
    }
    let mut all = Vec::new();
    for run in runs {
        let reached = store.reached(&run).map_err(store_problem)?;
        if reached.is_none_or(|reached| reached.state != RunState::Finished) {
            return refused(
                Problem::new(format!("{run} of {name} is not finished"))
                    .hint(format!("`deltabench resume {name}` continues it")),
            );
        }
        let plan = store.plan(&run).map_err(store_problem)?;
        let kind = run_half(&plan.work);
        kind.check_extendable(&plan).map_err(Failure::Refused)?;
        all.push((run, plan));
    }
    let part = all.first().and_then(|(_, plan)| plan.experiment.clone());
    if part.as_ref().is_some_and(|part| part.group.is_some()) {
        return refused(
            Problem::new(format!("{name} was measured in groups of servers"))
                .detail("a new server would stand beside one group only")
                .hint("add the server to its file, and run it again: deltabench run FILE"),
        );
    }
    match part {
        Some(part) => Ok(Stored {
            name,
            runs: all,
            part,
        }),
        None => refused(Problem::new(format!(
            "{name} is no execution of an experiment"
        ))),
    }
}

/// The servers of an execution beside its base, with those that it extends itself.
fn all_earlier(stored: &Stored, store: &Store) -> Result<Vec<PlannedServer>, Failure> {
    let mut all: Vec<PlannedServer> = Vec::new();
    let mut next = stored.runs.first().map(|(_, plan)| plan.clone());
    while let Some(plan) = next {
        let known = plan
            .candidates()
            .into_iter()
            .filter_map(|id| plan.server(id));
        for one in known.filter(|one| one.burn_ns.is_none()) {
            if !all
                .iter()
                .any(|other| version_key(other) == version_key(one))
            {
                all.push(one.clone());
            }
        }
        next = match &plan.extends {
            Some(run) => Some(store.plan(run).map_err(store_problem)?),
            None => None,
        };
    }
    Ok(all)
}

/// The base of an execution, and of its candidates the newest.
///
/// Errors: a server that already runs: nobody knows what it is today.
fn anchor_and_newest(stored: &Stored) -> Result<(Wanted, Option<Wanted>), Problem> {
    let plan = stored.runs.first().map(|(_, plan)| plan);
    let base = plan.and_then(|plan| plan.server(plan.base()));
    let (Some(plan), Some(base)) = (plan, base) else {
        return Err(Problem::new(format!("{} has no servers", stored.name)));
    };
    let candidates = plan.candidates();
    let newest = { candidates.into_iter() }
        .filter_map(|id| plan.server(id))
        .max_by_key(|planned| planned.installation.version_num);
    let newest = newest.map(wanted_of).transpose()?;
    Ok((wanted_of(base)?, newest))
}

/// A stored server, asked for by the exact version or place that it had.
fn wanted_of(planned: &PlannedServer) -> Result<Wanted, Problem> {
    let build = &planned.installation;
    if build.remote.is_some() {
        return Err(
            Problem::new(format!("{} already ran by itself", planned.name()))
                .detail("nobody knows whether it is the same build today")
                .hint("measure it with `deltabench compare`"),
        );
    }
    // A build from source is known by what was asked for; whether it is the same shows its hash.
    let parsed = |text: &String| text.parse::<TargetSpec>();
    let target = match parsed(&build.resolved) {
        Ok(target) if build.recipe.is_none() => target,
        _ => parsed(&build.asked)?,
    };
    Ok(Wanted {
        target,
        label: planned.label.clone(),
        key: Some(version_key(planned)),
    })
}

/// The runs of an execution with these servers and the new one.
fn planned(
    stored: &Stored,
    wanted: &[Wanted],
    new: &Wanted,
    look: bool,
    config: &Config,
) -> Result<(Experiment, Planned), Problem> {
    let ExperimentPart { source, scale, .. } = &stored.part;
    let experiment = Experiment::read(&source.file, &source.text, scale.as_deref())?;
    let mut experiment = as_often(experiment, stored.part.of)?;
    // A load of its own.
    experiment.measurement.seed = None;
    let all: Vec<(TargetSpec, Option<String>)> = { wanted.iter().chain([new]) }
        .map(|one| (one.target.clone(), one.label.clone()))
        .collect();
    let experiment = experiment.with_targets(&all)?;
    let directory = Path::new(&source.file).parent().unwrap_or(Path::new(""));
    let library = Library::builtin()?;
    let old = |number: u32| {
        let is = |plan: &Plan| {
            plan.experiment
                .as_ref()
                .is_some_and(|part| part.part == number)
        };
        stored.runs.iter().find(move |(_, plan)| is(plan))
    };
    let mut requests = requests(&experiment, (directory, &library), None)?;
    requests.retain(|(part, _)| old(part.number).is_some());
    Found::check(&experiment, directory)?;
    let found = match look {
        true => Found::look(&experiment, directory, config),
        false => Found::find(&experiment, directory, config)?,
    };
    let mut planned = plan(
        source.clone(),
        &experiment,
        stored.part.of,
        requests,
        &found,
    )?;
    for (_, plan) in &mut planned.runs {
        let number = plan.experiment.as_ref().map_or(0, |part| part.part);
        if let Some((run, before)) = old(number) {
            plan.extends = Some(run.clone());
            // What was left out of the execution by hand stays out.
            let key = |cell: &Cell| (cell.workload.clone(), cell.clients);
            let known: Vec<(String, u32)> = before.cells.iter().map(key).collect();
            plan.cells.retain(|cell| known.contains(&key(cell)));
        }
        check_builds(plan, wanted)?;
    }
    drop(found);
    Ok((experiment, planned))
}

/// With as many repetitions as an execution of so many parts had: `--repetitions` may have said another
/// number than the file, and numbers of parts follow from it.
fn as_often(experiment: Experiment, parts: u32) -> Result<Experiment, Problem> {
    let once = experiment.clone().repeated(1)?.parts().len();
    let once = u32::try_from(once).unwrap_or(u32::MAX);
    match parts.checked_div(once) {
        Some(repetitions) if repetitions > 0 => experiment.repeated(repetitions),
        _ => Ok(experiment),
    }
}

/// Every server that is measured again has to be the build that it was.
fn check_builds(plan: &Plan, wanted: &[Wanted]) -> Result<(), Problem> {
    let is_there = |key: &String| plan.servers.iter().any(|one| version_key(one) == *key);
    // Before anything is fetched nobody knows what it will be.
    if { plan.servers.iter() }.any(|one| one.installation.binary_sha256.is_empty()) {
        return Ok(());
    }
    for one in wanted {
        if let Some(key) = one.key.as_ref().filter(|key| !is_there(key)) {
            let hash: String = key.chars().take(12).collect();
            return Err(Problem::new(format!(
                "{} is another build or has other settings now",
                one.target
            ))
            .detail(format!(
                "the execution measured the one with SHA-256 {hash}…"
            ))
            .hint("carry out the whole experiment again: `deltabench run FILE`"));
        }
    }
    Ok(())
}

/// Servers that no earlier run stands for in some part.
fn lost(planned: &Planned, store: &Store) -> Result<Vec<EarlierServer>, Failure> {
    let mut lost: Vec<EarlierServer> = Vec::new();
    for (_, plan) in &planned.runs {
        for server in of_plan(plan, store)? {
            let key = version_key(&server.planned);
            let known = lost.iter().any(|other| version_key(&other.planned) == key);
            if server.why_not.is_some() && !known {
                lost.push(server);
            }
        }
    }
    Ok(lost)
}

/// What earlier runs say for a plan that is not measured yet.
fn of_plan(plan: &Plan, store: &Store) -> Result<Vec<EarlierServer>, Failure> {
    let Some(extends) = plan.extends.as_deref() else {
        return Ok(Vec::new());
    };
    let library = Library::of_plan(plan).map_err(Failure::Failed)?;
    let text = |name: &str| Some(library.get(name).ok()?.text().to_owned());
    let ask = Ask {
        plan,
        extends,
        series: series_of(plan, text),
        machine: host_identity().map(|host| (host.uid, host.class)),
        measured: MEASUREMENT_VERSION,
        before_ms: i64::MAX,
        settings: None,
    };
    earlier_servers(&ask, store).map_err(Failure::Failed)
}

/// Errors: the new server is one of the execution, as far as that shows before it is fetched or built.
fn check_new(
    new: &TargetSpec,
    stored: &Stored,
    earlier: &[PlannedServer],
    config: &Config,
) -> Result<(), Problem> {
    let new = known_or_named(new, config);
    let is_same = |known: &&PlannedServer| {
        let known = &known.installation;
        match new.binary_sha256.is_empty() {
            true => known.resolved == new.resolved,
            false => known.binary_sha256 == new.binary_sha256,
        }
    };
    let base = stored
        .runs
        .first()
        .and_then(|(_, plan)| plan.server(plan.base()));
    match earlier.iter().chain(base).find(is_same) {
        Some(known) => Err(Problem::new(format!(
            "{} is in the execution already",
            known.name()
        ))
        .detail("its servers differ in their targets alone, and this one has the same executable")
        .hint("name another server; `deltabench run FILE` measures all of them again")),
        None => Ok(()),
    }
}

/// What is measured, and what earlier runs stand for.
fn told(stored: &Stored, planned: &Planned, store: &Store) -> Result<String, Failure> {
    let mut lines = vec![format!("{} extends {}", planned.execution, stored.name)];
    let Some((_, plan)) = planned.runs.first() else {
        return Ok(lines.concat());
    };
    let measured: Vec<String> = { plan.candidates().into_iter() }
        .filter_map(|id| plan.server(id).map(PlannedServer::name))
        .collect();
    let base = plan.server(plan.base()).map(PlannedServer::name);
    lines.push(format!(
        "  measured: {} with a copy, {}",
        base.unwrap_or_default(),
        measured.join(", ")
    ));
    for server in of_plan(plan, store)? {
        let (least, most) = server.occasions;
        let count = match least == most {
            true => most.to_string(),
            false => format!("{least} to {most}"),
        };
        let noun = if most == 1 { "occasion" } else { "occasions" };
        lines.push(format!(
            "  from earlier runs: {}, {count} {noun}",
            server.planned.name()
        ));
    }
    Ok(lines.join("\n"))
}
