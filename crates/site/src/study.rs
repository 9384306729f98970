//! The runs of a study with what their lab says of them, and the tables that they make together.

use crate::placed::{self, Placed};
use crate::times::{self, Circumstances, Timed};
use deltabench_compare::absolute::CellResult;
use deltabench_compare::comparison::Comparison;
use deltabench_compare::study::{Study, StudyRun, study};
use deltabench_experiment::Experiment;
use deltabench_lab::{Analysed, Reused, reused, store_problem};
use deltabench_model::fact::MachineName;
use deltabench_model::invalidation::Invalidation;
use deltabench_model::occasion::HostIdentity;
use deltabench_model::plan::Plan;
use deltabench_model::problem::Problem;
use deltabench_report::{StudyContext, StudyRunFacts, resolved};
use deltabench_store::{RunState, Store};
use std::path::Path;

/// A run with what its lab says of it.
#[derive(Debug)]
pub struct Loaded {
    pub run: String,
    pub plan: Plan,
    pub comparison: Comparison,
    pub results: Vec<CellResult>,
    pub host: String,
    /// Of a unit of a fleet: its lane, and where it was measured, if it was.
    pub placed: Option<(u32, Option<HostIdentity>)>,
    pub state: String,
    /// Its own page, relative to the lab.
    pub page: Option<String>,
    pub withdrawn: Vec<Invalidation>,
    /// The base that it was planned with, if it is judged relative to another one.
    pub planned_base: Option<String>,
    /// What earlier runs say beside it, if it extends one.
    pub reused: Reused,
    /// When it was first measured, milliseconds since 1970.
    pub began_unix_ms: Option<i64>,
    /// What may differ between two times.
    pub circumstances: Circumstances,
    /// Whether it does not have the base of the tables: columns of other runs show its servers.
    pub is_elsewhere: bool,
}

impl Loaded {
    /// What a study needs of a run; slices and counters are given back.
    ///
    /// Errors: a store that cannot be read.
    pub fn of(lab: &Path, analysed: Analysed, store: &Store) -> Result<Self, Problem> {
        let Analysed {
            plan,
            comparison,
            context,
            ..
        } = analysed;
        let page = format!("{}.html", context.run);
        // Relative to another base than the anchor nothing leads to them.
        let reused = match context.planned_base {
            None => reused(&context.run, &plan, store)?,
            Some(_) => Reused::default(),
        };
        let circumstances = Circumstances::of(&context, &plan, store)?;
        Ok(Self {
            host: host_of(&context.run, lab, store)?,
            placed: placed_of(&context.run, &plan, store)?,
            state: context.state,
            // It is relative to the planned base.
            page: (context.planned_base.is_none() && lab.join(&page).is_file()).then_some(page),
            withdrawn: context.invalidations,
            reused,
            planned_base: context.planned_base.map(|base| resolved(&plan, base)),
            began_unix_ms: store.began_unix_ms(&context.run).map_err(store_problem)?,
            circumstances,
            is_elsewhere: false,
            run: context.run,
            plan,
            comparison,
            results: context.results,
        })
    }
}

/// Places parts that have not begun: they will be measured where the others are.
pub fn place_unbegun(loaded: &mut [Loaded]) {
    for place in 0..loaded.len() {
        if let Some(host) = unbegun(loaded, place)
            && let Some(run) = loaded.get_mut(place)
        {
            run.host = host;
        }
    }
}

/// The lane of a unit of a fleet, and where it was measured last.
fn placed_of(
    run: &str,
    plan: &Plan,
    store: &Store,
) -> Result<Option<(u32, Option<HostIdentity>)>, Problem> {
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
fn host_of(run: &str, lab: &Path, store: &Store) -> Result<String, Problem> {
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

/// The tables of a study of these runs.
///
/// Errors: runs that cannot be in one study.
pub fn tables_of(loaded: &[Loaded]) -> Result<Study, Problem> {
    // Repetitions on different hosts are repetitions: hosts of one execution are no axis of it.
    let fleet = "the hosts of a fleet";
    let shown = loaded.iter().filter(|loaded| !loaded.is_elsewhere);
    let runs: Vec<StudyRun<'_>> = shown
        .map(|loaded| StudyRun {
            run: &loaded.run,
            plan: &loaded.plan,
            comparison: &loaded.comparison,
            results: &loaded.results,
            host: match loaded.placed {
                Some(_) => fleet,
                None => &loaded.host,
            },
            withdrawn: &loaded.withdrawn,
            began_unix_ms: loaded.began_unix_ms,
            via: &loaded.reused.columns,
        })
        .collect();
    let mut study = study(&runs)?;
    for note in loaded.iter().flat_map(|loaded| &loaded.reused.notes) {
        if !study.notes.contains(note) {
            study.notes.push(note.clone());
        }
    }
    let timed: Vec<Timed<'_>> = loaded.iter().map(timed).collect();
    study.notes.extend(times::notes(&timed));
    study.notes.extend(left_out(loaded));
    study.notes.extend(placed::notes(&placed(loaded)));
    Ok(study)
}

fn timed(loaded: &Loaded) -> Timed<'_> {
    Timed {
        run: &loaded.run,
        plan: &loaded.plan,
        comparison: &loaded.comparison,
        host: &loaded.host,
        began_unix_ms: loaded.began_unix_ms,
        is_elsewhere: loaded.is_elsewhere,
        circumstances: &loaded.circumstances,
    }
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
                withdrawn: &one.withdrawn,
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

/// What the report says besides its tables.
pub fn study_context(loaded: &[Loaded]) -> StudyContext {
    let mut executions: Vec<&str> = { loaded.iter() }
        .filter_map(|one| one.plan.experiment.as_ref())
        .map(|part| part.execution.as_str())
        .collect();
    executions.dedup();
    // No command makes several of them again.
    let is_one = executions.len() <= 1;
    let first = loaded.first().filter(|_| is_one);
    let part = first.and_then(|first| first.plan.experiment.as_ref());
    let heading = part.and_then(|part| {
        let scale = part.scale.as_deref();
        Experiment::read(&part.source.file, &part.source.text, scale).ok()
    });
    StudyContext {
        deltabench_version: env!("CARGO_PKG_VERSION").to_owned(),
        execution: executions.join(" and "),
        about: heading.as_ref().and_then(Experiment::subject),
        source: heading.and_then(|heading| heading.source),
        scale: part.and_then(|part| part.scale.clone()),
        command: first.map_or_else(Vec::new, |first| first.plan.command.clone()),
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
        group: part.and_then(|part| part.group),
        repetition: part.map_or(0, |part| part.repetition),
        coordinates: part
            .map(|part| part.coordinates.clone())
            .unwrap_or_default(),
        host: loaded.host.clone(),
        began_unix_ms: loaded.began_unix_ms,
        page: loaded.page.clone(),
        withdrawn: whole.map(|one| one.reason.clone()),
    }
}
