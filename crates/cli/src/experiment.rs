//! `deltabench run` and `init`: an experiment file, carried out part by part.

mod extend;
mod groups;
mod machine;
mod outlook;
mod servers;

use crate::afterwards::{all_counted, checked, counted};
use crate::arguments::conditions::Output;
use crate::arguments::experiment::{Init, RunArguments};
use crate::bench::{Bench, Measured, interrupted, library_of};
use crate::clock::{now, run_name, run_names, seed_from_clock};
use crate::config::Config;
use crate::console::{check_writable, say, write_file};
use crate::failure::Failure;
use crate::follow_up::FollowUp;
use crate::host::{self, check_fits, swept_host};
use crate::output::{Destinations, analyse_run};
use crate::store::{open_store, store_problem};
use crate::study;
use crate::{interrupt, kinds};
use deltabench_experiment::{Experiment, Part, STARTER};
use deltabench_kinds::run_half;
use deltabench_model::exit;
use deltabench_model::plan::{ExperimentPart, Plan, Timing, WorkloadSource};
use deltabench_model::problem::Problem;
use deltabench_run::fleet::Host;
use deltabench_run::occupancy::Machine;
use deltabench_run::planning::{self, Request};
use deltabench_run::session::SessionEnd;
use deltabench_site::Loaded;
use deltabench_store::RunState;
use deltabench_workload::{Library, mix};
use servers::Found;
use std::path::Path;

pub use extend::extend;
pub use groups::in_groups;

/// An experiment with all its runs planned.
pub struct Planned {
    pub execution: String,
    /// What that name is made of: the experiment's, seconds since 1970, the seed of the first run.
    named: (String, u64, u64),
    /// Runs by name, in the order of their parts.
    pub runs: Vec<(String, Plan)>,
}

impl Planned {
    /// The name of the execution, then those of later seconds, for a lab that has the first already.
    fn names(&self) -> impl Iterator<Item = String> {
        let (experiment, seconds, seed) = &self.named;
        run_names(*seconds, *seed).map(move |name| format!("{experiment}-{name}"))
    }

    /// The runs of the execution, if this is its name.
    fn runs_of(&self, execution: &str) -> Vec<(String, Plan)> {
        let renamed = |(run, plan): &(String, Plan)| {
            let (run, mut plan) = (run.replacen(&self.execution, execution, 1), plan.clone());
            if let Some(part) = &mut plan.experiment {
                part.execution = execution.to_owned();
            }
            (run, plan)
        };
        self.runs.iter().map(renamed).collect()
    }
}

/// `deltabench init`.
pub fn init(arguments: &Init) -> Result<u8, Failure> {
    let path = &arguments.file;
    if path.exists() {
        return Err(Failure::Refused(
            Problem::new(format!("{} already exists", path.display()))
                .hint("name another file: deltabench init other.toml"),
        ));
    }
    check_writable(path).map_err(Failure::Refused)?;
    write_file(path, STARTER)?;
    say(&format!(
        "wrote {0}; `deltabench run {0} --scale tiny --dry-run` shows what it would do",
        path.display()
    ));
    Ok(0)
}

/// Plans all runs of an experiment file. If servers are only looked at, nothing is fetched or built.
///
/// Errors: what the file asks for and cannot be.
pub fn prepare(
    arguments: &RunArguments,
    look: bool,
    config: &Config,
) -> Result<(Experiment, Planned, Host), Failure> {
    let (source, experiment, parts_of_all) = read(arguments).map_err(Failure::Refused)?;
    let library = Library::builtin().map_err(Failure::Failed)?;
    let directory = arguments.file.parent().unwrap_or(Path::new(""));
    let machine = machine_of(arguments).map_err(Failure::Refused)?;
    let requests =
        requests(&experiment, (directory, &library), machine.as_ref()).map_err(Failure::Refused)?;
    Found::check(&experiment, directory).map_err(Failure::Refused)?;
    let host = if look {
        host::host(&arguments.servers, config).map_err(Failure::Refused)?
    } else {
        swept_host(&arguments.servers, config)?
    };
    let found = if look {
        Found::look(&experiment, directory, config)
    } else {
        Found::find(&experiment, directory, config).map_err(Failure::Refused)?
    };
    let found = found.on(machine);
    let planned =
        plan(source, &experiment, parts_of_all, requests, &found).map_err(Failure::Refused)?;
    Ok((experiment, planned, host))
}

/// `deltabench run`.
pub fn run(arguments: &RunArguments, config: &Config) -> Result<u8, Failure> {
    let (experiment, planned, host) = prepare(arguments, arguments.dry_run, config)?;
    let machine = machine_of(arguments).map_err(Failure::Refused)?;
    let place = machine.unwrap_or_else(Machine::here);
    let planned = in_groups(&experiment, planned, &place).map_err(Failure::Refused)?;
    if arguments.dry_run {
        return outlook::print(&experiment, &planned.runs, (&host, machine.as_ref()));
    }
    begin(&planned, host, !arguments.no_pilot, config)
}

/// Stores all runs of an execution, and measures them.
fn begin(planned: &Planned, host: Host, pilot: bool, config: &Config) -> Result<u8, Failure> {
    for (_, plan) in &planned.runs {
        check_fits(plan, &host).map_err(Failure::Refused)?;
    }
    let mut bench = Bench {
        store: open_store(config)?,
        host,
        interrupted: interrupt::flag()?,
    };
    // All of them before the first is measured: a killed execution knows what is left of it.
    let state = (RunState::Planned, now().1);
    let runs = |name: &str| planned.runs_of(name);
    let (execution, lock) = bench.store_new(planned.names(), state, runs)?;
    drop(lock);
    let runs = planned.runs_of(&execution).into_iter();
    let names: Vec<String> = runs.map(|(run, _)| run).collect();
    carry_out(&mut bench, &execution, &names, pilot, config)
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
    let mut failed = false;
    let mut known = Vec::new();
    for run in runs {
        let reached = bench.store.reached(run).map_err(store_problem)?;
        let plan = bench.store.plan(run).map_err(store_problem)?;
        let part = if reached.is_some_and(|reached| reached.state == RunState::Finished) {
            if all_counted(run, &plan, &bench.store)? {
                continue;
            }
            analyse_run(run, &plan, &bench.store)?
        } else {
            let Measured { end, judged } = match measure_part(bench, (execution, run), &plan, pilot)
            {
                Ok(measured) => measured,
                // The others may do; this one is tried again by `resume`.
                Err(Failure::Failed(problem)) => {
                    say(&problem.to_string());
                    failed = true;
                    continue;
                }
                Err(refused) => return Err(refused),
            };
            // The parts are alike: the first says enough.
            pilot = false;
            if end == SessionEnd::Interrupted {
                return Ok(interrupted(&plan));
            }
            bench.analysed(judged, None)?
        };
        let (part, counted) = counted(bench, part)?;
        // A server on its own has nothing to be compared with but itself at other client counts.
        if !plan.candidates().is_empty() {
            bench.publish(&part, SessionEnd::Finished, &destinations)?;
        }
        known.push(Loaded::of(&config.lab, part, &bench.store).map_err(Failure::Failed)?);
        if counted == FollowUp::Interrupted {
            return Ok(interrupted(&plan));
        }
        failed |= counted == FollowUp::Failed;
    }
    let code = study::publish(execution, runs, known, config)?;
    Ok(if failed { exit::NOT_MEASURED } else { code })
}

/// Measures a part of an execution, or what is left of it.
fn measure_part(
    bench: &mut Bench,
    (execution, run): (&str, &str),
    plan: &Plan,
    pilot: bool,
) -> Result<Measured, Failure> {
    if let Some(part) = &plan.experiment {
        let (number, of) = (part.part, part.of);
        say(&format!(
            "{execution}: part {number} of {of}{}",
            described(part)
        ));
    }
    let library = library_of(plan)?;
    check_fits(plan, &bench.host).map_err(Failure::Refused)?;
    bench.go_on(run, plan, &library, pilot)
}

/// `, group 2 of 3, rows 1000000, storage gp3-3000, repetition 2`.
fn described(part: &ExperimentPart) -> String {
    let mut text = String::new();
    if let Some((group, of)) = part.group {
        text.push_str(&format!(", group {group} of {of}"));
    }
    for (axis, value) in &part.coordinates {
        text.push_str(&format!(", {axis} {value}"));
    }
    if part.repetition > 1 {
        text.push_str(&format!(", repetition {}", part.repetition));
    }
    text
}

/// The file, what it says as far as it is wanted, and the number of its parts wanted or not.
fn read(arguments: &RunArguments) -> Result<(WorkloadSource, Experiment, u32), Problem> {
    let file = arguments.file.display().to_string();
    let text = std::fs::read_to_string(&arguments.file).map_err(|error| {
        Problem::new(format!("cannot read {file}"))
            .detail(error.to_string())
            .hint("`deltabench init` writes an experiment file to start from")
    })?;
    let mut experiment = Experiment::read(&file, &text, arguments.scale.as_deref())?;
    if let Some(repetitions) = arguments.repetitions {
        experiment = experiment.repeated(repetitions)?;
    }
    let of = u32::try_from(experiment.parts().len()).unwrap_or(u32::MAX);
    let mut experiment = experiment.only(&arguments.only)?;
    if arguments.seed.is_some() {
        experiment.measurement.seed = arguments.seed;
    }
    Ok((WorkloadSource { file, text }, experiment, of))
}

/// The machine that `--for` describes, if it is there.
fn machine_of(arguments: &RunArguments) -> Result<Option<Machine>, Problem> {
    arguments
        .machine
        .as_deref()
        .map(machine::machine)
        .transpose()
}

/// A request for each part, checked as far as can be without the servers.
fn requests(
    experiment: &Experiment,
    (directory, library): (&Path, &Library),
    machine: Option<&Machine>,
) -> Result<Vec<(Part, Request)>, Problem> {
    let seed = seed_of(experiment);
    let mut requests = Vec::new();
    let mut parts = experiment.parts();
    // Repetitions are spread over the whole time, so that what changes with time is between them.
    parts.sort_by_key(|part| part.repetition);
    for part in parts {
        let seed = seed(part.number);
        let mut request = kinds::request_of(experiment, &part, seed, directory, library)?;
        if let Some(machine) = machine {
            machine::fit(machine, &part, &mut request)?;
        }
        let library = library.clone();
        let library = library.extended(&request.sources, &request.work)?;
        let kind = run_half(&request.work);
        let cells = kind.cells(&request, &library)?;
        let mut names: Vec<&str> = cells.iter().map(|cell| cell.workload.as_str()).collect();
        names.dedup();
        experiment.check_workloads(&names)?;
        kind.check(&request, &library)?;
        requests.push((part, request));
    }
    alike(requests.iter_mut().map(|(_, request)| &mut request.timing));
    Ok(requests)
}

/// The seed of a part: the first has the experiment's own, so that a file of one part is a `compare` with
/// that seed.
fn seed_of(experiment: &Experiment) -> impl Fn(u32) -> u64 + use<> {
    let first = experiment.measurement.seed.unwrap_or_else(seed_from_clock);
    move |part| match part {
        0 | 1 => first,
        // As wide as seeds from the clock: readers of JSON keep 53 bits.
        part => mix(first, &[u64::from(part)]) >> 11,
    }
}

/// Gives all parts the longest slices, visits and warm-up that one of them needs: what is compared along an
/// axis must not differ in how it was measured.
fn alike<'a>(timings: impl Iterator<Item = &'a mut Timing>) {
    let mut timings: Vec<&mut Timing> = timings.collect();
    let longest = |of: fn(&Timing) -> f64, all: &[&mut Timing]| {
        all.iter().map(|timing| of(timing)).fold(0.0, f64::max)
    };
    let visit = longest(|timing| timing.visit_seconds, &timings);
    let warmup = longest(|timing| timing.warmup_seconds, &timings);
    let slice = timings
        .iter()
        .map(|timing| timing.slice_ms)
        .max()
        .unwrap_or(0);
    for timing in &mut timings {
        timing.visit_seconds = visit;
        timing.warmup_seconds = warmup;
        timing.slice_ms = slice;
    }
}

fn plan(
    source: WorkloadSource,
    experiment: &Experiment,
    of: u32,
    requests: Vec<(Part, Request)>,
    found: &Found<'_>,
) -> Result<Planned, Problem> {
    let (seconds, _) = now();
    let first = requests.first().map_or(0, |(_, request)| request.seed);
    let named = (experiment.name.clone(), seconds, first);
    let execution = format!("{}-{}", experiment.name, run_name(seconds, first));
    let mut planned = Planned {
        execution: execution.clone(),
        named,
        runs: Vec::new(),
    };
    for (part, request) in requests {
        let number = part.number;
        let library = Library::builtin()?.extended(&request.sources, &request.work)?;
        let (wishes, left_out) = found.wishes(request.limits.memory_bytes, &request.settings)?;
        let [base, candidates @ ..] = wishes.as_slice() else {
            return Err(Problem::new("no server is left"));
        };
        if candidates.is_empty() && request.clients.len() < 2 {
            return Err(Problem::new("there is nothing to compare")
                .detail("one server at one client count is left")
                .hint("name another server, several `clients`, or less in --only"));
        }
        let kind = run_half(&request.work);
        let mut plan = checked(planning::plan(request, kind, (base, candidates), &library)?)?;
        // Steps were picked before: those that others need stay.
        if !plan.work.has_passes() && !plan.work.is_embedded() {
            plan.cells
                .retain(|cell| experiment.wants_workload(&cell.workload));
        }
        plan.experiment = Some(ExperimentPart {
            execution: execution.clone(),
            experiment: experiment.name.clone(),
            source: source.clone(),
            scale: experiment.scale.clone(),
            part: number,
            of,
            group: None,
            repetition: part.repetition,
            coordinates: kinds::coordinates(&part, &plan.work),
            left_out,
        });
        planned.runs.push((format!("{execution}-{number}"), plan));
    }
    Ok(planned)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The only part of an execution of an experiment `study`.
    pub(crate) fn part_of(execution: &str) -> ExperimentPart {
        ExperimentPart {
            execution: execution.to_owned(),
            experiment: "study".to_owned(),
            source: WorkloadSource {
                file: "study.toml".to_owned(),
                text: String::new(),
            },
            scale: None,
            part: 1,
            of: 1,
            group: None,
            repetition: 1,
            coordinates: Vec::new(),
            left_out: Vec::new(),
        }
    }

    #[test]
    fn executions_of_one_second_and_one_seed_have_names_of_their_own() {
        let mut plan = deltabench_testkit::small_run::plan();
        plan.experiment = Some(part_of("study-20261121-112059-0007"));
        let planned = Planned {
            execution: "study-20261121-112059-0007".to_owned(),
            named: ("study".to_owned(), 1_795_260_059, 7),
            runs: vec![("study-20261121-112059-0007-1".to_owned(), plan.clone())],
        };
        let names: Vec<String> = planned.names().take(2).collect();
        let [first, second] = names.as_slice() else {
            panic!("{names:?}");
        };
        assert_eq!(*first, planned.execution);
        assert_eq!(planned.runs_of(first), planned.runs);
        assert_eq!(second, "study-20261121-112100-0007");
        let renamed = planned.runs_of(second);
        assert_eq!(renamed[0].0, "study-20261121-112100-0007-1");
        let part = renamed[0].1.experiment.as_ref().unwrap();
        assert_eq!(part.execution, *second);
    }
}
