//! The report of several runs: the parts of an experiment, or runs of several hosts.

use crate::arguments::results::{By, Report};
use crate::config::Config;
use crate::console::{self, print_stdout, say, write_file};
use crate::failure::Failure;
use crate::output::analyse_this_hour;
use crate::placed::{self, Placed};
use crate::rebased::relative_to;
use crate::replay::only_reported;
use crate::store::store_problem;
use crate::text::colour;
use deltabench_compare::absolute::CellResult;
use deltabench_compare::comparison::{Comparison, Verdict};
use deltabench_compare::study::{Axis, Study, StudyRun, StudyTable, study};
use deltabench_experiment::Experiment;
use deltabench_lab::Analysed;
use deltabench_model::fact::MachineName;
use deltabench_model::invalidation::Invalidation;
use deltabench_model::occasion::HostIdentity;
use deltabench_model::plan::Plan;
use deltabench_model::problem::Problem;
use deltabench_report::{
    JsonVersion, StudyContext, StudyFormat, StudyRunFacts, TerminalOptions, render_study, resolved,
};
use deltabench_store::{Found, RunState, Store};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A run with what its lab says of it.
pub struct Loaded {
    run: String,
    plan: Plan,
    comparison: Comparison,
    results: Vec<CellResult>,
    host: String,
    /// Of a unit of a fleet: its lane, and where it was measured, if it was.
    placed: Option<(u32, Option<HostIdentity>)>,
    state: String,
    /// Its own page, relative to the lab.
    page: Option<String>,
    withdrawn: Vec<Invalidation>,
    /// The base that it was planned with, if it is judged relative to another one.
    planned_base: Option<String>,
}

/// What the names of a `report` stand for.
pub enum Wanted {
    /// One run, by its own report.
    Run(String),
    /// A bisection.
    Bisection(String),
    /// Runs of one or more labs, as a study.
    Study(Vec<(PathBuf, String)>),
}

/// What `deltabench report NAME…` asks for. `LAB:NAME` is a run of another lab.
///
/// Errors: a lab that is not there, a name that is none or several.
pub fn wanted(names: &[String], by: Option<By>, config: &Config) -> Result<Wanted, Failure> {
    let mut runs = Vec::new();
    let mut executions = 0;
    for name in names {
        let (lab, name) = lab_and_name(name, config);
        let store = open(&lab)?;
        match store.find_any(name).map_err(Failure::Refused)? {
            Found::Run(run) => runs.push((lab, run)),
            Found::Bisection(name) if names.len() == 1 && by.is_none() && lab == config.lab => {
                return Ok(Wanted::Bisection(name));
            }
            Found::Bisection(name) => {
                return Err(Failure::Refused(
                    Problem::new(format!(
                        "{name} is a bisection, and has a report of its own"
                    ))
                    .hint(format!("name it alone: `deltabench report {name}`")),
                ));
            }
            Found::Execution(_, parts) => {
                executions += 1;
                runs.extend(parts.into_iter().map(|run| (lab.clone(), run)));
            }
        }
    }
    match runs.as_slice() {
        [(lab, run)] if executions == 0 && by.is_none() && *lab == config.lab => {
            Ok(Wanted::Run(run.clone()))
        }
        _ => Ok(Wanted::Study(runs)),
    }
}

/// Splits `LAB:NAME`; without a lab it is the one of the options.
fn lab_and_name<'a>(text: &'a str, config: &Config) -> (PathBuf, &'a str) {
    match text.rsplit_once(':') {
        Some((lab, name)) if !lab.is_empty() => (PathBuf::from(lab), name),
        _ => (config.lab.clone(), text),
    }
}

fn open(lab: &Path) -> Result<Store, Failure> {
    Store::open_existing(lab).map_err(|error| {
        Failure::Refused(
            Problem::new(format!("there is no lab in {}", lab.display()))
                .detail(error.to_string())
                .hint("write LAB:RUN for a run of another lab, or --lab DIR for all of them"),
        )
    })
}

/// `deltabench report` of a study.
pub fn report(runs: &[(PathBuf, String)], arguments: &Report) -> Result<u8, Failure> {
    if arguments.costs || arguments.delta.is_some() {
        return Err(Failure::Refused(
            Problem::new("--costs and --delta apply to one run")
                .detail(format!("you named {} runs", runs.len()))
                .hint("name one run; `deltabench list` shows them"),
        ));
    }
    let format = StudyFormat::try_from(arguments.form()).map_err(Failure::Refused)?;
    let loaded = load(runs, Vec::new(), arguments.base.as_deref())?;
    let mut study = tables(&loaded, arguments.by)?;
    study.notes.extend(rebased(&loaded));
    let options = TerminalOptions {
        width: console::width(),
        colour: arguments.out.is_none() && colour(),
        verbose: arguments.verbose,
    };
    let text = rendered(&study, &loaded, format, options);
    match &arguments.out {
        Some(path) => write_file(path, &text)?,
        None => print_stdout(text.trim_end_matches('\n'))?,
    }
    Ok(exit_code(&study, &loaded))
}

/// Prints the tables of an execution and writes its page and its JSON; returns the exit code.
pub fn publish(
    execution: &str,
    runs: &[String],
    known: Vec<Loaded>,
    config: &Config,
) -> Result<u8, Failure> {
    let runs: Vec<(PathBuf, String)> = runs
        .iter()
        .map(|run| (config.lab.clone(), run.clone()))
        .collect();
    let loaded = load(&runs, known, None)?;
    let study = tables(&loaded, None)?;
    let options = TerminalOptions {
        width: console::width(),
        colour: colour(),
        verbose: false,
    };
    let text = rendered(&study, &loaded, StudyFormat::Text, options);
    print_stdout(text.trim_end_matches('\n'))?;
    for format in [StudyFormat::Html, StudyFormat::Json(JsonVersion::default())] {
        let path = config.lab.join(format!("{execution}.{}", format.word()));
        write_file(&path, &rendered(&study, &loaded, format, options))?;
        say(&format!("wrote {}", path.display()));
    }
    Ok(exit_code(&study, &loaded))
}

impl Loaded {
    /// What a study needs of a run; slices and counters are given back.
    ///
    /// Errors: a store that cannot be read.
    pub fn of(lab: &Path, analysed: Analysed, store: &Store) -> Result<Self, Failure> {
        let Analysed {
            plan,
            comparison,
            context,
            ..
        } = analysed;
        let page = format!("{}.html", context.run);
        Ok(Self {
            host: host_of(&context.run, lab, store)?,
            placed: placed_of(&context.run, &plan, store)?,
            state: context.state,
            // It is relative to the planned base.
            page: (context.planned_base.is_none() && lab.join(&page).is_file()).then_some(page),
            withdrawn: context.invalidations,
            planned_base: context.planned_base.map(|base| resolved(&plan, base)),
            run: context.run,
            plan,
            comparison,
            results: context.results,
        })
    }
}

/// Loads these runs, but those that are known, relative to another base than the planned one if it is named.
fn load(
    runs: &[(PathBuf, String)],
    known: Vec<Loaded>,
    base: Option<&str>,
) -> Result<Vec<Loaded>, Failure> {
    let mut known: BTreeMap<String, Loaded> = known
        .into_iter()
        .map(|one| (one.run.clone(), one))
        .collect();
    let mut loaded = Vec::new();
    for (lab, run) in runs {
        loaded.push(match known.remove(run) {
            Some(known) => known,
            None => {
                let store = open(lab)?;
                let mut plan = store.plan(run).map_err(store_problem)?;
                only_reported(run, &plan, "a study")?;
                if let Some(base) = base {
                    plan = relative_to(&plan, base).map_err(|problem| {
                        Failure::Refused(problem.detail(format!("the run is {run}")))
                    })?;
                }
                Loaded::of(lab, analyse_this_hour(run, &plan, &store)?, &store)?
            }
        });
    }
    // A part that has not begun will be measured where the others are.
    for place in 0..loaded.len() {
        if let Some(host) = unbegun(&loaded, place)
            && let Some(run) = loaded.get_mut(place)
        {
            run.host = host;
        }
    }
    Ok(loaded)
}

/// The lane of a unit of a fleet, and where it was measured last.
fn placed_of(
    run: &str,
    plan: &Plan,
    store: &Store,
) -> Result<Option<(u32, Option<HostIdentity>)>, Failure> {
    let Some(part) = &plan.experiment else {
        return Ok(None);
    };
    let units = store.units(&part.execution).map_err(store_problem)?;
    let Some(unit) = units.iter().find(|unit| unit.run == run) else {
        return Ok(None);
    };
    let occasion = store.occasions(run).map_err(store_problem)?.pop();
    Ok(Some((unit.lane, occasion.map(|occasion| occasion.host))))
}

/// The machine of another part of the same execution, for one that has not begun.
fn unbegun(loaded: &[Loaded], place: usize) -> Option<String> {
    let execution = |one: &Loaded| Some(one.plan.experiment.as_ref()?.execution.clone());
    let this = loaded.get(place)?;
    let planned = RunState::Planned.word();
    let mut others = loaded.iter().filter(|other| other.state != planned);
    (this.state == planned)
        .then(|| others.find(|other| execution(other) == execution(this)))
        .flatten()
        .map(|other| other.host.clone())
}

/// The machine that a run was measured on: as the ledger calls it, since it stays when the machine changes.
///
/// A run that never had a placebo cell is in no ledger: its lab stands for its machine.
fn host_of(run: &str, lab: &Path, store: &Store) -> Result<String, Failure> {
    if let Some(MachineName(name)) = store.last_fact(run, None).map_err(store_problem)? {
        return Ok(name);
    }
    let lines = store.placebo_results().map_err(store_problem)?;
    let known = lines.into_iter().rev().find(|line| line.run == run);
    Ok(known.map_or_else(
        || format!("the machine of {}", lab.display()),
        |line| line.result.host,
    ))
}

fn tables(loaded: &[Loaded], by: Option<By>) -> Result<Study, Failure> {
    // Repetitions on different hosts are repetitions: hosts of one execution are no axis of it.
    let fleet = "the hosts of a fleet";
    let runs: Vec<StudyRun<'_>> = loaded
        .iter()
        .map(|loaded| StudyRun {
            run: &loaded.run,
            plan: &loaded.plan,
            comparison: &loaded.comparison,
            results: &loaded.results,
            host: if loaded.placed.is_some() {
                fleet
            } else {
                &loaded.host
            },
            withdrawn: &loaded.withdrawn,
        })
        .collect();
    let mut study = study(&runs).map_err(Failure::Refused)?;
    study.notes.extend(left_out(loaded));
    study.notes.extend(placed::notes(&placed(loaded)));
    let Some(by) = by else { return Ok(study) };
    let axis = Axis::from(by);
    study.tables.retain(|table| table.axis == axis);
    if study.tables.is_empty() {
        return Err(Failure::Refused(
            Problem::new(format!("nothing varies along {}", by.word()))
                .detail(format!("deltabench looked at {} runs", loaded.len()))
                .hint("leave out --by to see all tables"),
        ));
    }
    let kept: Vec<String> = study
        .tables
        .iter()
        .map(|table| table.title.clone())
        .collect();
    study.spreads.retain(|spread| kept.contains(&spread.table));
    Ok(study)
}

/// The units of a fleet that were measured.
fn placed(loaded: &[Loaded]) -> Vec<Placed<'_>> {
    loaded
        .iter()
        .filter_map(|one| {
            let (lane, identity) = one.placed.as_ref()?;
            Some(Placed {
                plan: &one.plan,
                comparison: &one.comparison,
                identity: identity.as_ref()?,
                machine: &one.host,
                lane: *lane,
            })
        })
        .collect()
}

/// The servers that were left out, each once, with why.
fn left_out(loaded: &[Loaded]) -> Vec<String> {
    let mut notes: Vec<String> = loaded
        .iter()
        .filter_map(|loaded| loaded.plan.experiment.as_ref())
        .flat_map(|part| &part.left_out)
        .map(|(server, why)| format!("left out the optional server {server}: {why}"))
        .collect();
    notes.sort();
    notes.dedup();
    notes
}

/// That the runs are relative to another server than they were planned for.
fn rebased(loaded: &[Loaded]) -> Vec<String> {
    let mut notes: Vec<String> = loaded
        .iter()
        .filter_map(|loaded| {
            let base = resolved(&loaded.plan, loaded.plan.base());
            let planned = loaded.planned_base.as_ref()?;
            Some(format!(
                "relative to {base}, chosen for this report; planned relative to {planned}, which \
                 decided when cells had enough blocks"
            ))
        })
        .collect();
    notes.sort();
    notes.dedup();
    notes
}

fn rendered(
    study: &Study,
    loaded: &[Loaded],
    format: StudyFormat,
    options: TerminalOptions,
) -> String {
    render_study(format, study, &context(loaded), options)
}

/// What the report says besides its tables.
fn context(loaded: &[Loaded]) -> StudyContext {
    let part = loaded
        .first()
        .and_then(|first| first.plan.experiment.as_ref());
    let heading = part.and_then(|part| {
        let scale = part.scale.as_deref();
        Experiment::read(&part.source.file, &part.source.text, scale).ok()
    });
    StudyContext {
        deltabench_version: env!("CARGO_PKG_VERSION").to_owned(),
        execution: part.map(|part| part.execution.clone()).unwrap_or_default(),
        about: heading.as_ref().and_then(|heading| heading.about.clone()),
        source: heading.and_then(|heading| heading.source),
        scale: part.and_then(|part| part.scale.clone()),
        command: loaded
            .first()
            .map(|first| first.plan.command.clone())
            .unwrap_or_default(),
        file: part.map(|part| part.source.clone()),
        runs: loaded.iter().map(facts).collect(),
    }
}

fn facts(loaded: &Loaded) -> StudyRunFacts {
    let part = loaded.plan.experiment.as_ref();
    let whole = loaded.withdrawn.iter().find(|one| one.cell.is_none());
    StudyRunFacts {
        run: loaded.run.clone(),
        state: loaded.state.clone(),
        part: part.map(|part| (part.part, part.of)),
        repetition: part.map_or(0, |part| part.repetition),
        coordinates: part
            .map(|part| part.coordinates.clone())
            .unwrap_or_default(),
        host: loaded.host.clone(),
        page: loaded.page.clone(),
        withdrawn: whole.map(|one| one.reason.clone()),
    }
}

/// The exit code of a study: 1 if its tables say that something is slower, 4 if all of it is unfit, 3 if
/// something is open or not measured yet, else 0. What several loads say together counts, not what one of
/// them said alone. A study of servers on their own has no verdicts: the worst code of its runs counts.
fn exit_code(study: &Study, loaded: &[Loaded]) -> u8 {
    let judged = |table: &&StudyTable| table.axis == Axis::Servers;
    let verdicts: Vec<Verdict> = study
        .tables
        .iter()
        .filter(judged)
        .flat_map(|table| &table.rows)
        .flat_map(|row| row.figures.iter().flatten())
        .filter_map(|figure| figure.verdict)
        .collect();
    let codes: Vec<u8> = loaded
        .iter()
        .map(|loaded| deltabench_compare::exit_code(&loaded.comparison))
        .collect();
    if verdicts.is_empty() {
        let worst = [1, 5, 4, 3].into_iter().find(|code| codes.contains(code));
        return worst.unwrap_or(0);
    }
    let any = |verdict: Verdict| verdicts.contains(&verdict);
    let unfinished = codes.contains(&5);
    if any(Verdict::Regression) {
        1
    } else if verdicts.iter().all(|verdict| *verdict == Verdict::Unfit) {
        4
    } else if unfinished || any(Verdict::Inconclusive) || any(Verdict::Unfit) {
        3
    } else {
        0
    }
}
