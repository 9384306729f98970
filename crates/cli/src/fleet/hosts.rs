//! The hosts of a fleet: listed, avoided, used again.

use super::read_file;
use super::submit::{Submitter, drained, engine};
use crate::arguments::fleet::Drain;
use crate::console::{print_stdout, say};
use crate::failure::Failure;
use deltabench_fleet::file::{EngineWord, FleetFile};
use deltabench_fleet::spool::{Avoided, HostName, Spool};
use deltabench_model::problem::{Problem, nearest};
use std::path::Path;

/// `deltabench fleet hosts`.
pub fn hosts(on: &Path) -> Result<u8, Failure> {
    let (file, _) = read_file(on)?;
    let nodes = engine(&file).nodes().map_err(Failure::Failed)?;
    let drained = drained(&file);
    let mut lines = Vec::new();
    for node in nodes {
        let ours = drained.iter().find(|one| one.host.node == node.name);
        let state = ours.map_or(node.state, |_| "drained by us".to_owned());
        let reason = ours.map_or(node.reason, |one| one.why.clone());
        let features = node.features.join(",");
        lines.push(format!(
            "{:<16} {:<14} {:>4} cores {:>8} MiB  {features}  {reason}",
            node.name, state, node.cores, node.memory_mib
        ));
    }
    print_stdout(
        &lines
            .iter()
            .map(|line| line.trim_end())
            .collect::<Vec<_>>()
            .join("\n"),
    )?;
    Ok(0)
}

/// `deltabench fleet drain`.
pub fn drain(arguments: &Drain) -> Result<u8, Failure> {
    let (file, _) = read_file(&arguments.on)?;
    if arguments.undo {
        return undrain(&file, &arguments.host);
    }
    let Some(reason) = &arguments.reason else {
        return Err(Failure::Refused(
            Problem::new(format!("why is {} to be avoided?", arguments.host))
                .hint("name the reason after the host: people who look after it see it"),
        ));
    };
    check_known(&file, &arguments.host)?;
    let avoided = Avoided {
        host: HostName {
            uid: arguments.host.clone(),
            node: arguments.host.clone(),
        },
        why: reason.clone(),
    };
    let place = Spool::at(&file.shared);
    place.avoid(&avoided).map_err(Failure::Failed)?;
    say(&format!(
        "{} is avoided from now on; lanes that run there go on",
        arguments.host
    ));
    if file.engine == EngineWord::Slurm
        && let Err(problem) = engine(&file).drain(&arguments.host, reason)
    {
        say(&format!(
            "Slurm itself goes on giving it to others: {}",
            problem.error
        ));
    }
    Ok(0)
}

/// Refuses a host that the engine does not have.
fn check_known(file: &FleetFile, host: &str) -> Result<(), Failure> {
    let nodes = engine(file).nodes().map_err(Failure::Failed)?;
    if nodes.iter().any(|node| node.name == host) {
        return Ok(());
    }
    let names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
    let problem = Problem::new(format!("there is no host {host}"))
        .detail(format!("hosts: {}", names.join(", ")));
    let near = nearest(host, names.iter().copied());
    Err(Failure::Refused(match near {
        Some(near) => problem.hint(format!("did you mean {near}?")),
        None => problem,
    }))
}

/// `deltabench fleet drain --undo`: in the fleet file, and in each execution that found the host unfit.
fn undrain(file: &FleetFile, host: &str) -> Result<u8, Failure> {
    let mut executions = Vec::new();
    for spool in Spool::all(&file.shared) {
        if spool.forgive(host).map_err(Failure::Failed)? {
            executions.push(spool);
        }
    }
    let ours =
        { drained(file).into_iter() }.find(|one| one.host.node == host || one.host.uid == host);
    let was = Spool::at(&file.shared)
        .forgive(host)
        .map_err(Failure::Failed)?;
    if !was && executions.is_empty() {
        check_known(file, host)?;
        say(&format!("{host} was not avoided"));
        return Ok(0);
    }
    say(&format!("{host} is used again"));
    if file.engine == EngineWord::Slurm
        && let Some(ours) = ours
        && let Err(problem) = engine(file).undrain(host, &ours.why)
    {
        say(&format!(
            "Slurm itself still holds it back: {}",
            problem.error
        ));
    }
    for spool in executions {
        let name = spool.execution();
        // One of another version has no lanes that wait here.
        if let Ok(lanes) = spool.lanes() {
            Submitter::new(file, &spool, &lanes).avoid()?;
        }
        say(&format!(
            "{name} may use it, too; `deltabench fleet resume {name}` hands in what is left"
        ));
    }
    Ok(0)
}
