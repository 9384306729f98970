//! `deltabench run` and `init`: an experiment file, carried out part by part.

mod outlook;
mod request;
mod servers;

use crate::Failure;
use crate::arguments::{Init, Output, Servers};
use crate::bench::{Bench, now, open_store, run_name, swept_host};
use crate::config::Config;
use crate::output::{Destinations, say, store_problem, write_file};
use crate::{interrupt, study};
use clap::Args;
use deltabench_experiment::{Experiment, Part, STARTER};
use deltabench_model::plan::{ExperimentPart, Plan, WorkloadSource};
use deltabench_model::problem::Problem;
use deltabench_run::limits;
use deltabench_run::planning::{self, Request};
use deltabench_run::residence::residence;
use deltabench_run::session::SessionEnd;
use deltabench_store::RunState;
use deltabench_workload::Library;
use request::{request_of, seed_of};
use servers::Found;
use std::path::{Path, PathBuf};

/// `deltabench run`.
#[derive(Debug, Args)]
pub struct RunArguments {
    /// The experiment file; `deltabench init` writes one to start from
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Lay the file's section of this name over it, for example tiny, small or paper
    #[arg(long, value_name = "NAME")]
    pub scale: Option<String>,
    /// Only these: a workload, or server=NAME, clients=N, rows=N, memory=SIZE, storage=NAME, repetition=N; `*`
    /// stands for anything
    #[arg(long, value_name = "WHAT,WHAT", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Print what would be done and how long it would take, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Do not measure first how long an answer will take
    #[arg(long)]
    pub no_pilot: bool,
    /// How servers run here
    #[command(flatten)]
    pub servers: Servers,
}

/// An experiment with all its runs planned.
struct Planned {
    /// Name of this execution.
    execution: String,
    /// Runs by name, in the order of their parts.
    runs: Vec<(String, Plan)>,
}

/// `deltabench init`.
pub fn init(arguments: &Init) -> Result<u8, Failure> {
    let path = &arguments.file;
    if path.exists() {
        return Err(Failure::Refused(
            Problem::new(format!("{} is there already", path.display()))
                .hint("name another file: deltabench init other.toml"),
        ));
    }
    write_file(path, STARTER)?;
    say(&format!(
        "wrote {0}; `deltabench run {0} --scale tiny --dry-run` says what it would do",
        path.display()
    ));
    Ok(0)
}

/// `deltabench run`.
pub fn run(arguments: &RunArguments, config: &Config) -> Result<u8, Failure> {
    let (source, experiment) = read(arguments).map_err(Failure::Refused)?;
    let library = Library::builtin().map_err(Failure::Failed)?;
    let directory = arguments.file.parent().unwrap_or(Path::new(""));
    let requests = requests(&experiment, directory, &library).map_err(Failure::Refused)?;
    let host = swept_host(&arguments.servers, config)?;
    let found = if arguments.dry_run {
        Found::look(&experiment, directory, config)
    } else {
        Found::find(&experiment, directory, config).map_err(Failure::Refused)?
    };
    let planned = plan(source, &experiment, requests, &found).map_err(Failure::Refused)?;
    if arguments.dry_run {
        return outlook::print(&experiment, &planned.runs, &host);
    }
    for (_, plan) in &planned.runs {
        residence(plan, &host).map_err(Failure::Refused)?;
        limits::check(&plan.limits, &host.workspaces).map_err(Failure::Refused)?;
    }
    let mut bench = Bench {
        store: open_store(config)?,
        host,
        interrupted: interrupt::flag()?,
    };
    // All of them before the first is measured: a killed execution knows what is left of it.
    let (_, started) = now();
    for (number, (run, plan)) in (0..).zip(&planned.runs) {
        bench
            .store
            .create_run(run, plan, RunState::Planned, started + number)
            .map_err(store_problem)?;
    }
    let names: Vec<String> = planned.runs.iter().map(|(run, _)| run.clone()).collect();
    carry_out(
        &mut bench,
        &planned.execution,
        &names,
        !arguments.no_pilot,
        config,
    )
}

/// Measures those runs of an execution that are not finished, and publishes each and then all of them.
pub fn carry_out(
    bench: &mut Bench,
    execution: &str,
    runs: &[String],
    pilot: bool,
    config: &Config,
) -> Result<u8, Failure> {
    let destinations = Destinations::check(&Output::default(), config).map_err(Failure::Refused)?;
    let mut pilot = pilot;
    for (number, run) in (1..).zip(runs) {
        let summaries = bench.store.runs().map_err(store_problem)?;
        let state = summaries.iter().find(|summary| summary.run == *run);
        if state.is_some_and(|summary| summary.state == RunState::Finished) {
            continue;
        }
        let plan = bench.store.plan(run).map_err(store_problem)?;
        let part = plan.experiment.as_ref();
        let place = part.map_or(String::new(), |part| described(part));
        say(&format!(
            "{execution}: part {number} of {}{place}",
            runs.len()
        ));
        let library = crate::bench::library_of(&plan)?;
        let end = bench.go_on(run, &plan, &library, pilot)?;
        // The parts are alike: the first says enough.
        pilot = false;
        if end == SessionEnd::Interrupted {
            say("interrupted; `deltabench resume` goes on");
            return Ok(interrupt::STATUS);
        }
        bench.publish(run, &plan, end, &destinations)?;
    }
    study::publish(execution, runs, config)
}

/// `, rows 1000000, storage gp3-3000, repetition 2`.
fn described(part: &ExperimentPart) -> String {
    let mut text = String::new();
    for (axis, value) in &part.coordinates {
        text.push_str(&format!(", {axis} {value}"));
    }
    if part.repetition > 1 {
        text.push_str(&format!(", repetition {}", part.repetition));
    }
    text
}

fn read(arguments: &RunArguments) -> Result<(WorkloadSource, Experiment), Problem> {
    let file = arguments.file.display().to_string();
    let text = std::fs::read_to_string(&arguments.file).map_err(|error| {
        Problem::new(format!("cannot read {file}"))
            .detail(error.to_string())
            .hint("`deltabench init` writes an experiment file to start from")
    })?;
    let experiment = Experiment::read(&file, &text, arguments.scale.as_deref())?;
    let experiment = experiment.only(&arguments.only)?;
    Ok((WorkloadSource { file, text }, experiment))
}

/// A request for each part, checked as far as can be without the servers.
fn requests(
    experiment: &Experiment,
    directory: &Path,
    library: &Library,
) -> Result<Vec<(Part, Request)>, Problem> {
    let seed = seed_of(experiment);
    let mut requests = Vec::new();
    let mut parts = experiment.parts();
    // Repetitions are spread over the whole time, so that what changes with time is between them.
    parts.sort_by_key(|part| part.repetition);
    for part in parts {
        let request = request_of(experiment, &part, seed(part.number), directory, library)?;
        let library = library.clone().with_sources(&request.sources)?;
        planning::check(&request, &library)?;
        requests.push((part, request));
    }
    Ok(requests)
}

fn plan(
    source: WorkloadSource,
    experiment: &Experiment,
    requests: Vec<(Part, Request)>,
    found: &Found<'_>,
) -> Result<Planned, Problem> {
    let (seconds, _) = now();
    let first = requests.first().map_or(0, |(_, request)| request.seed);
    let execution = format!("{}-{}", experiment.name, run_name(seconds, first));
    let of = u32::try_from(requests.len()).unwrap_or(u32::MAX);
    let mut planned = Planned {
        execution: execution.clone(),
        runs: Vec::new(),
    };
    for (part, request) in requests {
        let number = part.number;
        let library = Library::builtin()?.with_sources(&request.sources)?;
        let wishes = found.wishes(request.limits.memory_bytes, &request.settings)?;
        let [base, candidates @ ..] = wishes.as_slice() else {
            return Err(Problem::new("no server is left"));
        };
        let mut plan = planning::plan(request, base, candidates, &library)?;
        let workloads: Vec<&str> = plan.cells.iter().map(|cell| &*cell.workload).collect();
        experiment.check_workloads(&workloads)?;
        plan.cells
            .retain(|cell| experiment.wants_workload(&cell.workload));
        plan.experiment = Some(ExperimentPart {
            execution: execution.clone(),
            experiment: experiment.name.clone(),
            source: source.clone(),
            scale: experiment.scale.clone(),
            part: number,
            of,
            repetition: part.repetition,
            coordinates: part.coordinates,
        });
        planned.runs.push((format!("{execution}-{number}"), plan));
    }
    Ok(planned)
}
