//! Runs of several executions in one report: the base that they have in common, and what leads to the others.

use crate::failure::Failure;
use crate::rebased::relative_to;
use crate::store::{open_lab, store_problem};
use deltabench_lab::{through, version_key};
use deltabench_model::plan::{Plan, PlannedServer, Role, ServerId};
use deltabench_model::problem::Problem;
use deltabench_site::Loaded;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// A run that was named, or is a part of what was named.
pub struct Named {
    pub lab: PathBuf,
    pub run: String,
    pub plan: Plan,
}

impl Named {
    fn execution(&self) -> &str {
        let part = self.plan.experiment.as_ref();
        part.map_or(&self.run, |part| &part.execution)
    }
}

/// The plans of these runs relative to one base; `None` for a run that does not have it, if its execution is
/// another one than that of a run which has.
///
/// Errors: a base that no run has, or that is missing in a run of an execution that has it.
pub fn relative(runs: &[Named], asked: Option<&str>) -> Result<Vec<Option<Plan>>, Problem> {
    let Some(target) = asked else {
        return Ok(relative_to_common(runs));
    };
    let found: Vec<Result<Plan, Problem>> = { runs.iter() }
        .map(|one| {
            relative_to(&one.plan, target)
                .map_err(|problem| problem.detail(format!("the run is {}", one.run)))
        })
        .collect();
    let having = runs.iter().zip(&found).filter(|(_, plan)| plan.is_ok());
    let having: BTreeSet<&str> = having.map(|(one, _)| one.execution()).collect();
    let each = runs.iter().zip(found).map(|(one, plan)| match plan {
        Ok(plan) => Ok(Some(plan)),
        Err(_) if !having.is_empty() && !having.contains(one.execution()) => Ok(None),
        Err(problem) => Err(problem),
    });
    each.collect()
}

/// Relative to the first run's base if all have it, else to the first of its servers that all have, else to
/// its base for those that have it. Bases of one name are taken to be the same, and what differs is looked
/// for later.
fn relative_to_common(runs: &[Named]) -> Vec<Option<Plan>> {
    let base = |one: &Named| one.plan.server(one.plan.base()).map(PlannedServer::name);
    let first = runs.first().and_then(base);
    if runs.iter().all(|one| base(one) == first) {
        return runs.iter().map(|one| Some(one.plan.clone())).collect();
    }
    let Some(one) = runs.first() else {
        return Vec::new();
    };
    let own = one.plan.base();
    let others = sides(&one.plan).map(|(id, _)| id).filter(|id| *id != own);
    let keys: Vec<String> = std::iter::once(own)
        .chain(others)
        .filter_map(|id| one.plan.server(id).map(version_key))
        .collect();
    let in_all = |key: &&String| runs.iter().all(|one| place(&one.plan, key).is_some());
    let Some(key) = keys.iter().find(in_all).or(keys.first()) else {
        return Vec::new();
    };
    let plan = |one: &Named| place(&one.plan, key).map(|id| one.plan.relative_to(id));
    runs.iter().map(plan).collect()
}

/// All servers but placebos.
fn sides(plan: &Plan) -> impl Iterator<Item = (ServerId, &PlannedServer)> {
    let servers = ServerId::each().zip(&plan.servers);
    servers.filter(|(_, server)| server.role != Role::Placebo)
}

fn place(plan: &Plan, key: &str) -> Option<ServerId> {
    let mut all = sides(plan);
    let found = all.find(|(_, server)| version_key(server) == key);
    found.map(|(id, _)| id)
}

/// Gives runs that have the base the columns of those that do not have it.
///
/// Errors: a run to which nothing leads; a store that cannot be read.
pub fn connect(loaded: &mut [Loaded], named: &[Named]) -> Result<(), Failure> {
    let elsewhere: Vec<usize> = { loaded.iter().enumerate() }
        .filter(|(_, one)| one.is_elsewhere)
        .map(|(at, _)| at)
        .collect();
    for at in elsewhere {
        let why = connect_one(loaded, at, named)?;
        if let (Some(why), Some(one), Some(first)) = (why, loaded.get(at), named.first()) {
            return Err(Failure::Refused(
                Problem::new(format!(
                    "{} and {} have no base in common",
                    first.run, one.run
                ))
                .detail(why.join("\n"))
                .hint(
                    "measure a server of both in one more run of the same cells on the same host, or make \
                     a report of each",
                ),
            ));
        }
    }
    Ok(())
}

/// Why no run leads to this one, if none does.
fn connect_one(
    loaded: &mut [Loaded],
    at: usize,
    named: &[Named],
) -> Result<Option<Vec<String>>, Failure> {
    let Some(own) = named.get(at) else {
        return Ok(None);
    };
    let store = open_lab(&own.lab)?;
    let mut until_ms = i64::MIN;
    for one in named.iter().filter(|one| one.lab == own.lab) {
        let reached = store.reached(&one.run).map_err(store_problem)?;
        until_ms = until_ms.max(reached.map_or(i64::MIN, |reached| reached.state_unix_ms));
    }
    let (mut why_not, mut is_connected) = (Vec::new(), false);
    for (there, theirs) in loaded.iter_mut().zip(named) {
        if there.is_elsewhere {
            continue;
        }
        if theirs.lab != own.lab {
            why_not.push(format!("{}: it is in another lab", there.run));
            continue;
        }
        let base = (there.run.as_str(), &there.plan);
        let found = through(base, (&own.run, &own.plan), until_ms, &store);
        match found.map_err(Failure::Failed)? {
            Ok(found) => {
                is_connected = true;
                for column in found.columns {
                    if !there
                        .reused
                        .columns
                        .iter()
                        .any(|one| one.name == column.name)
                    {
                        there.reused.columns.push(column);
                    }
                }
                there.reused.notes.extend(found.notes);
            }
            Err(why) => why_not.push(format!("{}: {why}", there.run)),
        }
    }
    Ok((!is_connected).then_some(why_not))
}
