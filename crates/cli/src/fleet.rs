//! `deltabench fleet`: an experiment on many hosts.

mod admission;
mod background;
mod carriage;
mod check;
mod commands;
mod disk;
mod hosts;
mod lane;
mod node;
mod outlook;
mod status;
mod stop;
mod stopped;
mod submit;
mod unit;
mod watch;

use crate::arguments::fleet::{FleetArguments, FleetCommand, FleetRun};
use crate::clock::now;
use crate::config::Config;
use crate::console::{print_stdout, say};
use crate::experiment;
use crate::failure::Failure;
use crate::host::check_fits;
use crate::store::{open_store, store_problem};
use deltabench_fleet::file::{Copying, FleetFile};
use deltabench_fleet::fixture::Fixture;
use deltabench_fleet::full::with_way_out;
use deltabench_fleet::lanes::{Lanes, Unit, lanes};
use deltabench_fleet::ship;
use deltabench_fleet::spool::Spool;
use deltabench_kinds::run_half;
use deltabench_model::plan::Plan;
use deltabench_model::problem::Problem;
use deltabench_model::units::to_f64;
use deltabench_run::estimate::estimate;
use deltabench_run::fleet::Host;
use deltabench_run::occupancy::Machine;
use deltabench_store::{Execution, RunState, Store, UnitRow};
use std::path::Path;
use submit::{Submitter, check_limits, options};
use watch::Watching;

/// Carries out a command of a fleet. Whichever write meets a full disk, it has one way out.
pub fn fleet(arguments: &FleetArguments, config: &Config) -> Result<u8, Failure> {
    carried_out(arguments, config).map_err(|failure| failure.said(with_way_out))
}

fn carried_out(arguments: &FleetArguments, config: &Config) -> Result<u8, Failure> {
    match &arguments.command {
        FleetCommand::Run(run) => begin(run, config),
        FleetCommand::Watch(watch) => commands::watch(watch, config),
        FleetCommand::Status(named) => status::status(&named.execution, config),
        FleetCommand::List => status::list(config),
        FleetCommand::Resume(resume) => commands::resume(resume, config),
        FleetCommand::Gather(named) => commands::gather(&named.execution, config),
        FleetCommand::Cancel(named) => commands::cancel(&named.execution, config),
        FleetCommand::Logs(named) => commands::logs(&named.execution, named.unit, config),
        FleetCommand::Check(arguments) => check::check(arguments, config),
        FleetCommand::Look(arguments) => check::look(arguments),
        FleetCommand::Hosts(fleet) => hosts::hosts(&fleet.on),
        FleetCommand::Drain(drain) => hosts::drain(drain),
        FleetCommand::NodeProlog => printed(&node::prolog()),
        FleetCommand::NodeEpilog => printed(&node::epilog()),
        FleetCommand::NodeHealth => printed(&node::health()),
        FleetCommand::Lane(lane) => lane::lane(lane, config),
        FleetCommand::After(after) => commands::after(&after.lanes, config),
    }
}

fn printed(script: &str) -> Result<u8, Failure> {
    print_stdout(script.trim_end())?;
    Ok(0)
}

/// Reads a fleet file.
///
/// Errors: one that cannot be read, or says what it cannot.
pub fn read_file(path: &Path) -> Result<(FleetFile, (String, String)), Failure> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::Refused(
            Problem::new(format!("cannot read {name}"))
                .detail(error.to_string())
                .hint("--on names a fleet file: docs/guide/fleet.md has one to start from"),
        )
    })?;
    let file = FleetFile::read(&name, &text).map_err(Failure::Refused)?;
    Ok((file, (name, text)))
}

/// `deltabench fleet run`.
fn begin(arguments: &FleetRun, config: &Config) -> Result<u8, Failure> {
    let (file, fleet) = read_file(&arguments.on)?;
    let fixture = { arguments.engine_fixture.as_deref() }.map(Fixture::read);
    let fixture = fixture.transpose().map_err(Failure::Refused)?;
    if arguments.run.machine.is_some() {
        return Err(Failure::Refused(
            Problem::new("--for is for experiments on one machine")
                .detail("the hosts of a fleet are those of its file")
                .hint("leave out --for, or use `deltabench run FILE --dry-run --for MACHINE`"),
        ));
    }
    let look = arguments.run.dry_run || fixture.is_some();
    let (study, planned, host) = experiment::prepare(&arguments.run, look, config)?;
    let mut planned =
        experiment::in_groups(&study, planned, &any_host()).map_err(Failure::Refused)?;
    if let Some(fixture) = &fixture {
        for (_, plan) in &mut planned.runs {
            plan.timing.blocks = fixture.blocks;
            plan.observing.counted_after = None;
        }
    } else if !look {
        for (_, plan) in &planned.runs {
            check_fits(plan, &host).map_err(Failure::Refused)?;
        }
    }
    let units = units(planned.runs, fixture.as_ref(), &host);
    let mut lanes = Lanes {
        execution: planned.execution,
        lab: config.lab.clone(),
        options: options(&file, &arguments.run.servers, config),
        fleet,
        fixture,
        lanes: lanes(&units, (file.by, file.on_loss), file.margin),
        units,
        ..Lanes::default()
    };
    if arguments.run.dry_run {
        lanes.binary_sha256 = ship::own_hash().map_err(Failure::Failed)?;
        return outlook::print(&file, &lanes);
    }
    let limits = submit::engine(&file).limits().map_err(Failure::Failed)?;
    check_limits(limits, &lanes)?;
    let store = ship_and_store(&file, &mut lanes, config)?;
    let spool = Spool::of(&file.shared, &lanes.execution);
    let submitter = Submitter::new(&file, &spool, &lanes);
    let all: Vec<u32> = lanes.lanes.iter().map(|lane| lane.lane).collect();
    submitter.submit(&all)?;
    say(&format!(
        "{}: {} handed in; `deltabench fleet watch` shows how they go on, \
         `deltabench fleet cancel` ends them",
        lanes.execution,
        outlook::counts(&lanes)
    ));
    if arguments.detach {
        return background::detach(&submitter, config);
    }
    let watching = (&submitter, Watching::ForSomebody);
    watch::watch((store, config), (&spool, &lanes), watching)
}

/// A host of which nobody knows the memory: only the file decides about groups of servers.
fn any_host() -> Machine {
    Machine {
        memory_bytes: None,
        ..Machine::here()
    }
}

/// Ships what hosts need, and keeps the execution in the spool and in the lab, before anything starts.
fn ship_and_store(file: &FleetFile, lanes: &mut Lanes, config: &Config) -> Result<Store, Failure> {
    let plans = || lanes.units.iter().map(|unit| &unit.plan);
    let (_, hash) = ship::program(&file.shared).map_err(Failure::Failed)?;
    if lanes.fixture.is_none() {
        lanes.shipped = ship::servers(&file.shared, plans()).map_err(Failure::Failed)?;
        if file.copy == Copying::Sbcast {
            ship::below_each_host(&mut lanes.shipped, &file.shared);
        }
    }
    lanes.binary_sha256 = hash;
    let mut store = open_store(config)?;
    // The spool first: what the lab knows of has one.
    let spool = Spool::of(&file.shared, &lanes.execution);
    spool.create(lanes).map_err(Failure::Refused)?;
    let runs: Vec<(&str, &Plan)> = { lanes.units.iter() }
        .map(|unit| (unit.run.as_str(), &unit.plan))
        .collect();
    let started = now().1;
    { store.create_runs(&runs, RunState::Planned, started) }.map_err(store_problem)?;
    let row = |unit: &Unit| UnitRow {
        unit: unit.unit,
        lane: lanes.lane_of(unit.unit).map_or(0, |lane| lane.lane),
        run: unit.run.clone(),
    };
    let rows: Vec<UnitRow> = lanes.units.iter().map(row).collect();
    let execution = Execution {
        name: lanes.execution.clone(),
        spool: spool.root().to_owned(),
        binary_sha256: lanes.binary_sha256.clone(),
        started_unix_ms: started,
    };
    { store.add_execution(&execution, &rows) }.map_err(store_problem)?;
    Ok(store)
}

/// The runs as units, with the time that each may take here.
fn units(runs: Vec<(String, Plan)>, fixture: Option<&Fixture>, host: &Host) -> Vec<Unit> {
    let unit = |(number, (run, plan)): (u32, (String, Plan))| {
        let seconds = match fixture {
            Some(fixture) => to_f64(fixture.milliseconds) / 1000.0 * f64::from(fixture.blocks),
            None => estimate(&plan, run_half(&plan.work), host)
                .map_or(0.0, |found| (found.set_up + found.measuring).as_secs_f64()),
        };
        Unit {
            unit: number,
            run,
            plan,
            seconds,
        }
    };
    (1..).zip(runs).map(unit).collect()
}
