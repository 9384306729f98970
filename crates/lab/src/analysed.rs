//! A run with everything that its reports say.

use crate::explained::{explained_by, is_changed};
use crate::judged::Judged;
use crate::past_runs::PastRuns;
use crate::placebos::Ledger;
use crate::records::Records;
use crate::sessions::still_withdrawn;
use crate::told::Told;
use crate::withdrawal::{leave_out, of_confirmation, withdraw};
use crate::{history, sampled, sensitivity, sessions, store_problem};
use deltabench_compare::comparison::Comparison;
use deltabench_compare::study::{Grid, StudyRun, grids_of};
use deltabench_compare::{absolute, add_apart, combine, confirm};
use deltabench_explain::LINES;
use deltabench_kinds::shown;
use deltabench_kinds::shown::{JudgedRun, Shown};
use deltabench_model::counter::VisitCounters;
use deltabench_model::explanation::ExplainedCell;
use deltabench_model::fact::{FactKind, MachineName, Settings, WarmUp};
use deltabench_model::plan::{CellId, Plan, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::slice::Slice;
use deltabench_model::units::to_f64;
use deltabench_report::{
    CellWarmUp, ConfirmationWithdrawn, LedgerLine, ReportContext, ServerFacts, counted_in_short,
};
use deltabench_store::{RunState, Store, StoreError};
use std::collections::BTreeMap;

/// A run, analysed.
#[derive(Debug)]
pub struct Analysed {
    /// What was asked of it.
    pub plan: Plan,
    /// What the data say.
    pub comparison: Comparison,
    /// What the reports need beside it.
    pub context: ReportContext,
    /// What the kind of benchmark shows; its figures are in the context.
    pub shown: Shown,
    /// All slices, those that whole records stand for too.
    pub slices: Vec<Slice>,
    /// What was counted in visits, and in records that stand for them.
    pub counters: Vec<VisitCounters>,
}

/// Analyses what the store has of a run, and of the run that confirms it, by this plan.
///
/// Errors: the store cannot be read.
pub fn analyse(run: &str, plan: &Plan, store: &Store) -> Result<Analysed, Problem> {
    Analysed::of(Judged::of(run, plan, store)?, None, store)
}

/// The same, by the run's own plan, for whoever analyses many runs, and has read those of the lab.
///
/// Errors: the store cannot be read.
pub fn analyse_among(
    run: &str,
    plan: &Plan,
    store: &Store,
    past: &PastRuns,
) -> Result<Analysed, Problem> {
    let judged = Judged::of(run, plan, store)?;
    if let Some(known) = past.of_run(run) {
        Told::keep(known, &judged.comparison, store);
    }
    Analysed::with(judged, None, store, Elsewhere::Known(past))
}

/// What other runs are asked for.
#[derive(Clone, Copy)]
enum Elsewhere<'a> {
    /// Nothing.
    Ignored,
    /// Other hours and other conditions, from runs that have to be read first.
    Read,
    /// The same from these.
    Known(&'a PastRuns),
}

/// The same without what other runs of the host say of another hour, and runs under other conditions of this
/// one: that is the analysis of a dozen more runs, and studies do not show it.
///
/// Errors: the store cannot be read.
pub fn analyse_this_hour(run: &str, plan: &Plan, store: &Store) -> Result<Analysed, Problem> {
    let judged = Judged::of(run, plan, store)?;
    Analysed::with(judged, None, store, Elsewhere::Ignored)
}

impl Analysed {
    /// Brings together a run, the run that confirms it, and what was withdrawn of both. A confirming run that
    /// is not given is looked for in the store.
    ///
    /// Errors: the store cannot be read.
    pub fn of(judged: Judged, confirming: Option<Judged>, store: &Store) -> Result<Self, Problem> {
        Self::with(judged, confirming, store, Elsewhere::Read)
    }

    /// Relative to another base than planned no other run says anything: they were asked about the planned
    /// one.
    fn with(
        mut judged: Judged,
        confirming: Option<Judged>,
        store: &Store,
        elsewhere: Elsewhere<'_>,
    ) -> Result<Self, Problem> {
        let mut context = context(&judged, store)?;
        context.ledger = ledger(&judged.run, elsewhere, store)?;
        let is_rebased = context.planned_base.is_some();
        let is_asked = !is_rebased && !matches!(elsewhere, Elsewhere::Ignored);
        let (lines, sessions) = sessions::of(&judged, store)?;
        context.sessions = lines;
        if is_asked && sessions.is_empty() {
            add_history(&mut judged, elsewhere, store)?;
        }
        let confirming = match confirming {
            None if !is_rebased => stored_confirmation(&judged.run, store)?,
            given => given,
        };
        let Judged {
            run,
            plan,
            mut comparison,
            records,
            counters,
        } = judged;
        add_sessions(
            &mut comparison,
            &sessions,
            (&run, &plan, &mut context),
            store,
        )?;
        if plan.confirms.is_some() {
            // By itself it cannot say whether anything came again.
            { comparison.cells.iter_mut() }.for_each(|cell| cell.confirmation = None);
        }
        if let Some(second) = confirming {
            context.confirmation_withdrawn = withdrawn_confirmations(&run, store)?;
            add_confirmation(&mut comparison, &run, second, store)?;
        }
        withdraw(&mut comparison, &context.invalidations);
        comparison.unfinished = !["", RunState::Finished.word()].contains(&context.state.as_str());
        context.sampled = sampled::of_run(&run, &records, &plan, store)?;
        let read = (&plan, &comparison, context.sampled.as_slice());
        context.explained = explained_by(&records.counted, read, store, &[], LINES)?;
        add_apart(&mut comparison, &plan);
        add_instructions(&mut comparison, &context.explained);
        context.grids = grids(&run, &plan, &comparison, &context)?;
        let judged = JudgedRun {
            run: &run,
            plan: &plan,
            records: records.of_kind(),
            comparison: &comparison,
            results: &context.results,
            cores: records.machines.first().and_then(|machine| machine.cores),
        };
        let mut shown = shown(&judged, store)?;
        context.figures = std::mem::take(&mut shown.figures);
        if is_asked {
            sensitivity::add(&run, (&plan, &comparison), store, &mut context.figures)?;
        }
        Ok(Self {
            plan,
            comparison,
            context,
            shown,
            slices: records.slices,
            counters,
        })
    }
}

/// Adds what a run found that measured the differences of this one again.
fn add_confirmation(
    comparison: &mut Comparison,
    run: &str,
    second: Judged,
    store: &Store,
) -> Result<(), Problem> {
    let later = seconds_later(run, &second.run, store)?;
    confirm(comparison, &without_withdrawn(second, store)?, later);
    Ok(())
}

/// Makes a comparison the result of these sessions of a run, if it has any.
fn add_sessions(
    comparison: &mut Comparison,
    sessions: &[Comparison],
    (run, plan, context): (&str, &Plan, &mut ReportContext),
    store: &Store,
) -> Result<(), Problem> {
    if sessions.is_empty() {
        return Ok(());
    }
    let withdrawn = std::mem::take(&mut context.invalidations);
    context.invalidations = still_withdrawn(withdrawn, comparison, sessions);
    combine(comparison, sessions, plan);
    history::add_slow_hours(comparison, (run, plan), &context.session_times(), store)
}

/// Adds what other hours say.
fn add_history(
    judged: &mut Judged,
    elsewhere: Elsewhere<'_>,
    store: &Store,
) -> Result<(), Problem> {
    match elsewhere {
        Elsewhere::Ignored => Ok(()),
        Elsewhere::Read => history::add(judged, &PastRuns::read(store)?, store),
        Elsewhere::Known(past) => history::add(judged, past, store),
    }
}

/// Says of the cells that changed what happened to their work.
fn add_instructions(comparison: &mut Comparison, explained: &[ExplainedCell]) {
    let Some(counts) = comparison.counted_beside().cloned() else {
        return;
    };
    for cell in &mut comparison.cells {
        let changed = is_changed(cell);
        if let Some(counted) = counts
            .of_cell(cell.cell, cell.candidate)
            .filter(|_| changed)
        {
            let mut found = explained.iter();
            let found = found.find(|one| (one.cell, one.candidate) == (cell.cell, cell.candidate));
            cell.reason.push_str("; ");
            cell.reason.push_str(&counted_in_short(counted, found));
        }
    }
}

/// The newest run that confirms this one: an earlier one was withdrawn.
fn stored_confirmation(run: &str, store: &Store) -> Result<Option<Judged>, Problem> {
    let Some(again) = store.confirming(run).map_err(store_problem)?.pop() else {
        return Ok(None);
    };
    let plan = store.plan(&again).map_err(store_problem)?;
    Judged::of(&again, &plan, store).map(Some)
}

/// From the end of a run to the start of another; `None` where a clock was set back.
fn seconds_later(first: &str, second: &str, store: &Store) -> Result<Option<f64>, Problem> {
    let ended = store.reached(first).map_err(store_problem)?;
    let began = store.began_unix_ms(second).map_err(store_problem)?;
    let between = ended
        .zip(began)
        .map(|(ended, began)| began - ended.state_unix_ms);
    let milliseconds = between.and_then(|between| u64::try_from(between).ok());
    Ok(milliseconds.map(|milliseconds| to_f64(milliseconds) / 1e3))
}

/// A confirming run without its withdrawn cells.
fn without_withdrawn(second: Judged, store: &Store) -> Result<Comparison, Problem> {
    let withdrawn = store.invalidations(&second.run).map_err(store_problem)?;
    let mut comparison = second.comparison;
    leave_out(&mut comparison, &withdrawn);
    Ok(comparison)
}

/// What was withdrawn of the runs that confirm this one, the oldest first.
fn withdrawn_confirmations(
    run: &str,
    store: &Store,
) -> Result<Vec<ConfirmationWithdrawn>, Problem> {
    let mut told = Vec::new();
    for name in store.confirming(run).map_err(store_problem)? {
        let withdrawn = store.invalidations(&name).map_err(store_problem)?;
        let plan = store.plan(&name).map_err(store_problem)?;
        told.extend(of_confirmation(&name, &plan, &withdrawn));
    }
    Ok(told)
}

fn grids(
    run: &str,
    plan: &Plan,
    comparison: &Comparison,
    context: &ReportContext,
) -> Result<Vec<Grid>, Problem> {
    // A run that confirms another shows that one's cells again.
    if context.results.is_empty() {
        return Ok(Vec::new());
    }
    grids_of(StudyRun {
        run,
        plan,
        comparison,
        results: &context.results,
        host: "",
        withdrawn: &context.invalidations,
        began_unix_ms: None,
        via: &[],
    })
}

fn context(judged: &Judged, store: &Store) -> Result<ReportContext, Problem> {
    let Judged {
        run, plan, records, ..
    } = judged;
    let read = || -> Result<ReportContext, StoreError> {
        let reached = store.reached(run)?;
        let mut servers = Vec::new();
        for (server, _) in ServerId::each().zip(&plan.servers) {
            servers.push(server_facts(run, server, store)?);
        }
        let json = |kind| Ok::<_, StoreError>(store.last_json(run, kind)?.unwrap_or_default());
        let planned_base = store.plan(run)?.base();
        Ok(ReportContext {
            planned_base: Some(planned_base).filter(|base| *base != plan.base()),
            run: run.clone(),
            state: reached.map_or(String::new(), |reached| reached.state.word().to_owned()),
            started_unix_ms: reached.map(|reached| reached.started_unix_ms),
            deltabench_version: env!("CARGO_PKG_VERSION").to_owned(),
            host: json(FactKind::Host)?,
            conditions: json(FactKind::Conditions)?,
            servers,
            warm_up: warm_up(records),
            invalidations: store.invalidations(run)?,
            samples: store.samples(run)?,
            marks: store.marks(run)?,
            results: match absolute::is_shown(plan) {
                true => absolute::results(&records.slices),
                false => Vec::new(),
            },
            ..ReportContext::default()
        })
    };
    read().map_err(store_problem)
}

fn server_facts(run: &str, server: ServerId, store: &Store) -> Result<ServerFacts, StoreError> {
    let settings = store.last_fact(run, Some(server))?;
    Ok(ServerFacts {
        server,
        build: store.last_fact(run, Some(server))?,
        settings: settings.map_or_else(Vec::new, |Settings(settings)| settings),
    })
}

/// What the placebos of the run's host had said by the run's end.
fn ledger(
    run: &str,
    elsewhere: Elsewhere<'_>,
    store: &Store,
) -> Result<Option<LedgerLine>, Problem> {
    let Some(reached) = store.reached(run).map_err(store_problem)? else {
        return Ok(None);
    };
    let machine = store.last_fact(run, None).map_err(store_problem)?;
    let machine = machine.map_or_else(String::new, |MachineName(name)| name);
    let read;
    let known = match elsewhere {
        Elsewhere::Known(past) => past.ledger(store)?,
        Elsewhere::Ignored | Elsewhere::Read => {
            read = Ledger::of(&store.placebo_results().map_err(store_problem)?);
            &read
        }
    };
    Ok(known.so_far(run, &machine, reached.state_unix_ms))
}

/// The warm-ups of the cells.
fn warm_up(records: &Records) -> Vec<CellWarmUp> {
    let mut cells: BTreeMap<CellId, CellWarmUp> = BTreeMap::new();
    for visit in &records.visits {
        let shown = cells.entry(visit.cell).or_default();
        shown.cell = visit.cell;
        if let Some(WarmUp {
            steady,
            us_per_operation,
        }) = &visit.warm_up
        {
            shown.visits += 1;
            shown.steady += u32::from(*steady);
            // The last visit stands for the others: its servers have seen the cell most often.
            shown.us_per_operation.clone_from(us_per_operation);
        }
    }
    cells.into_values().collect()
}
