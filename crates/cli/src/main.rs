//! The `deltabench` binary: arguments, progress, exit codes.
//!
//! Data goes to stdout, everything else to stderr. Exit codes: 0 no regression, 1 regression, 2 bad request,
//! 3 inconclusive, 4 host unfit, 5 could not measure, 130 interrupted.

mod afterwards;
mod agent;
mod amounts;
mod archive;
mod arguments;
mod bench;
mod bisect;
mod calibrate;
mod capture;
mod clock;
mod cluster_dirs;
mod config;
mod configs;
mod console;
mod count;
mod crosscheck;
mod defaults;
mod doctor;
mod engine_worker;
mod experiment;
mod explain;
mod export;
mod failure;
mod fleet;
mod follow_up;
mod host;
mod interrupt;
mod invalidate;
mod joined;
mod kinds;
mod ledger;
mod limits;
mod listing;
mod nightly;
mod output;
mod packaging;
mod pause;
mod progress;
mod ready;
mod rebased;
mod reference;
mod replay;
mod request;
mod resume;
mod selfbench;
mod sensitivity;
mod sessions;
mod site;
mod store;
mod study;
mod targets;
mod text;
mod trend;
mod workloads;

use arguments::global::{Global, words};
use arguments::{Arguments, Command};
use clap::Parser;
use console::say;
use failure::Failure;
use std::process::ExitCode;

fn main() -> ExitCode {
    match dispatch(Arguments::parse()) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            say(&failure.problem().to_string());
            ExitCode::from(failure.code())
        }
    }
}

fn dispatch(arguments: Arguments) -> Result<u8, Failure> {
    Global::check_once(&words()).map_err(Failure::Refused)?;
    let config = config::Config::load(&arguments.global).map_err(Failure::Refused)?;
    match arguments.command {
        Command::Measure(kind) => kinds::measure(kind, &config),
        Command::Count(count) => count::count(&count, &config),
        Command::Run(run) => experiment::run(&run, &config),
        Command::Fleet(fleet) => fleet::fleet(&fleet, &config),
        Command::Extend(extend) => experiment::extend(&extend, &config),
        Command::Init(init) => experiment::init(&init),
        Command::Explain(explain) => explain::explain(*explain, &config),
        Command::Bisect(bisect) => bisect::bisect(&bisect, &config),
        Command::Capture(capture) => capture::capture(&capture),
        Command::Replay(replay) => replay::replay(&replay, &config),
        Command::Resume(resume) => resume::resume(&resume, &config),
        Command::Confirm(confirm) => resume::confirm(&confirm, &config),
        Command::Report(report) => listing::report(&report, &config),
        Command::Notes(notes) => listing::notes(&notes, &config),
        Command::Calibrate(calibrate) => calibrate::calibrate(&calibrate, &config),
        Command::Doctor(doctor) => doctor::doctor(&doctor, &config),
        Command::Ledger(ledger) => ledger::ledger(&ledger, &config),
        Command::Trend(trend) => trend::trend(&trend, &config),
        Command::Changes(changes) => trend::changes(&changes, &config),
        Command::Nightly(nightly) => nightly::nightly(&nightly, &config),
        Command::Triage(triage) => trend::triage(&triage, &config),
        Command::Annotate(annotate) => trend::annotate::annotate(&annotate, &config),
        Command::Anchor(anchor) => trend::anchors::anchor(&anchor, &config),
        Command::Invalidate(invalidate) => invalidate::invalidate(&invalidate, &config),
        Command::Export(export) => export::export(&export, &config),
        Command::Publish(publish) => site::publish(&publish, &config),
        Command::Web(web) => site::web(&web, &config),
        Command::Archive(archive) => archive::archive(&archive, &config),
        Command::List(list) if list.sizes => archive::sizes(&config),
        Command::List(_) => listing::runs(&config),
        Command::Targets(targets) => listing::targets(&targets, &config),
        Command::Fetch(fetch) => listing::fetch(&fetch, &config),
        Command::Workloads(workloads) => workloads::workloads(&workloads),
        Command::Configs(configs) => configs::configs(&configs, &config),
        Command::Agent => agent::agent(),
        Command::EngineWorker => engine_worker::engine_worker(),
        Command::Metrics => reference::metrics(),
        Command::Reference(arguments) => packaging::reference(&arguments),
        Command::Completions(arguments) => packaging::completions(&arguments),
        Command::Crosscheck(crosscheck) => crosscheck::crosscheck(&crosscheck, &config),
        Command::Selfbench(selfbench) => selfbench::selfbench(&selfbench, &config),
    }
}
