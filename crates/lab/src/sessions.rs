//! The sessions of a comparison that is measured in several hours.

use crate::judged::Judged;
use crate::store_problem;
use crate::withdrawal::{cell_label, leave_out};
use deltabench_compare::comparison::{CellComparison, Comparison};
use deltabench_model::finding::Severity;
use deltabench_model::invalidation::Invalidation;
use deltabench_model::plan::{CellId, Plan};
use deltabench_model::problem::Problem;
use deltabench_report::SessionLine;
use deltabench_store::{RunState, Store};

/// The name of a session, from 1; the first has the name of the run that stands for all.
pub fn session_name(first: &str, number: u32) -> String {
    match number {
        0 | 1 => first.to_owned(),
        later => format!("{first}-s{later}"),
    }
}

/// The sessions of a run, the first included, as its reports list them, and what those say that count: judged
/// with the δ of the first, without what was withdrawn. None of them where only the first one counts, which
/// says the same by itself.
///
/// A session under way does not count: cells of few blocks would count as much as those of all. One of an
/// unfit host does not either.
///
/// Errors: the store cannot be read.
pub(crate) fn of(
    judged: &Judged,
    store: &Store,
) -> Result<(Vec<SessionLine>, Vec<Comparison>), Problem> {
    let (mut lines, mut counting) = (Vec::new(), Vec::new());
    let of = judged.plan().sessions();
    if of == 1 {
        return Ok((lines, counting));
    }
    for number in 1..=of {
        let run = session_name(judged.run(), number);
        let Some(reached) = store.reached(&run).map_err(store_problem)? else {
            continue;
        };
        let finished = reached.state == RunState::Finished;
        let mut line = SessionLine {
            counts: false,
            left_out: Vec::new(),
            state: reached.state.word().to_owned(),
            began_unix_ms: store.began_unix_ms(&run).map_err(store_problem)?,
            ended_unix_ms: finished.then_some(reached.state_unix_ms),
            run: run.clone(),
        };
        if finished || number == 1 {
            let withdrawn = store.invalidations(&run).map_err(store_problem)?;
            let mut comparison = match number {
                1 => judged.comparison.clone(),
                _ => later(&run, judged.plan(), store)?,
            };
            let compares = !comparison.cells.is_empty();
            leave_out(&mut comparison, &withdrawn);
            line.left_out = reasons(&comparison, judged.plan(), &withdrawn);
            line.counts = comparison.host_ok && compares != comparison.cells.is_empty();
            if line.counts {
                counting.push(comparison);
            }
        }
        lines.push(line);
    }
    if let ([_], Some(true)) = (counting.as_slice(), lines.first().map(|line| line.counts)) {
        counting.clear();
    }
    Ok((lines, counting))
}

/// What a later session says by itself, judged as the first one is.
fn later(run: &str, first: &Plan, store: &Store) -> Result<Comparison, Problem> {
    let mut plan = store.plan(run).map_err(store_problem)?;
    plan = plan.relative_to(first.base());
    plan.delta = first.delta;
    plan.delta_from_noise = first.delta_from_noise;
    Ok(Judged::of(run, &plan, store)?.into_comparison())
}

/// Why a session does not count, or which cells of it do not.
fn reasons(comparison: &Comparison, plan: &Plan, withdrawn: &[Invalidation]) -> Vec<String> {
    let unfit = comparison.findings.iter();
    let unfit = unfit.filter(|finding| finding.severity == Severity::Unfit);
    let unfit = unfit.map(|finding| format!("unfit host: {}", finding.text));
    let withdrawn = withdrawn.iter().map(|one| {
        let cell = one.cell.and_then(|cell| plan.cell(cell)).map(cell_label);
        let what = cell.map_or_else(String::new, |cell| format!("{cell} "));
        format!("{what}withdrawn: {}", one.reason)
    });
    unfit.chain(withdrawn).collect()
}

/// What is left of the withdrawals of a run where its sessions stand for each other: those of cells that no
/// session says anything of.
pub(crate) fn still_withdrawn(
    invalidations: Vec<Invalidation>,
    first: &Comparison,
    sessions: &[Comparison],
) -> Vec<Invalidation> {
    let is_said = |own: &CellComparison| {
        let cells = sessions.iter().flat_map(|session| &session.cells);
        let mut same =
            cells.filter(|cell| (cell.cell, cell.candidate) == (own.cell, own.candidate));
        same.any(CellComparison::says_something)
    };
    let mut gone: Vec<CellId> = { first.cells.iter() }
        .filter(|own| !is_said(own))
        .map(|own| own.cell)
        .collect();
    gone.dedup();
    let of = |one: Invalidation| {
        let cells = { gone.iter() }.filter(|cell| one.cell.is_none_or(|own| own == **cell));
        let cells = cells.map(|cell| Invalidation {
            cell: Some(*cell),
            ..one.clone()
        });
        cells.collect::<Vec<_>>()
    };
    invalidations.into_iter().flat_map(of).collect()
}
