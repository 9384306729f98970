//! Servers of a run that does not have a base, relative to it: other runs connect both.

use crate::hosts::RunHost;
use crate::pair::version_key;
use crate::reused::{Ask, Reused, of_servers, other_cells, short};
use crate::series::stored;
use crate::store_problem;
use deltabench_model::fact::Settings;
use deltabench_model::occasion::MEASUREMENT_VERSION;
use deltabench_model::plan::{Plan, PlannedServer, Role};
use deltabench_model::problem::Problem;
use deltabench_store::Store;

/// Why the hosts of two runs are not known to be one; absent if they are.
fn hosts_differ<T: PartialEq>(own: Option<&T>, other: Option<&T>) -> Option<&'static str> {
    match (own, other) {
        (Some(own), Some(other)) if own == other => None,
        (Some(_), Some(_)) => Some("it was measured on another host"),
        (None, _) => Some("the host of the first run did not identify itself"),
        (_, None) => Some("its host did not identify itself"),
    }
}

/// The servers of `other`, as columns for a run that has the base; or why nothing leads from one to the
/// other. All runs of the lab count that had ended by `until_ms` (milliseconds since 1970), so that a report
/// of the same runs stays the same.
///
/// Errors: the store cannot be read.
pub fn through(
    (run, plan): (&str, &Plan),
    (other, theirs): (&str, &Plan),
    until_ms: i64,
    store: &Store,
) -> Result<Result<Reused, String>, Problem> {
    let host = RunHost::of(run, store).map_err(store_problem)?;
    let there = RunHost::of(other, store).map_err(store_problem)?;
    let (machine, measured) = match host {
        Some(RunHost::Identified { host, measured }) => (Some((host.uid, host.class)), measured),
        _ => (None, MEASUREMENT_VERSION),
    };
    let machine_there = match there {
        Some(RunHost::Identified { host, .. }) => Some((host.uid, host.class)),
        _ => None,
    };
    if let Some(why) = hosts_differ(machine.as_ref(), machine_there.as_ref()) {
        return Ok(Err(why.to_owned()));
    }
    let settings = store.last_fact::<Settings>(run, Some(plan.base()));
    let ask = Ask {
        plan,
        extends: other,
        series: stored(run, plan, store)?,
        machine,
        measured,
        before_ms: until_ms,
        settings: settings.map_err(store_problem)?.map(|Settings(all)| all),
    };
    let series = stored(other, theirs, store)?;
    if !series
        .iter()
        .any(|one| ask.series.iter().any(|own| own.key == one.key))
    {
        let why = other_cells(&ask, &series);
        return Ok(Err(
            why.unwrap_or_else(|| "it has none of the cells".to_owned())
        ));
    }
    let wanted: Vec<PlannedServer> = { sides(theirs).filter(|one| !is_in(plan, one)) }
        .cloned()
        .collect();
    let by = connecting(plan, theirs);
    let mut reused = Reused::default();
    for server in of_servers(wanted, &ask, &|_| true, store)? {
        let name = server.planned.name();
        if server.why_not.is_some() {
            let note = format!("{name} of {other} is not shown: no run leads from it to the base");
            reused.notes.push(note);
            continue;
        }
        reused.columns.push(server.column(&by));
    }
    Ok(match reused.columns.is_empty() {
        true => Err("no server that both have leads from one to the other".to_owned()),
        false => Ok(reused),
    })
}

/// All but placebos and what was made slower on purpose.
fn sides(plan: &Plan) -> impl Iterator<Item = &PlannedServer> {
    let servers = plan.servers.iter();
    servers.filter(|one| one.role != Role::Placebo && one.burn_ns.is_none())
}

fn is_in(plan: &Plan, wanted: &PlannedServer) -> bool {
    let key = version_key(wanted);
    sides(plan).any(|one| version_key(one) == key)
}

/// What both plans have, in a word.
fn connecting(plan: &Plan, theirs: &Plan) -> String {
    let mut both = sides(theirs).filter(|one| is_in(plan, one));
    both.next().map_or_else(|| "other runs".to_owned(), short)
}
