//! Slices in, comparison out.

use crate::comparison::{CellComparison, Comparison, HostSpeed, Verdict, VerdictCounts};
use crate::history::{History, Sample};
use crate::host_speed::{self, host_speed, witnesses};
use crate::multiple::adjust;
use crate::noise::cell_delta;
use crate::pace::seconds_per_block;
use crate::pairing::{CellRounds, Index, share_of_placebo};
use crate::parallel;
use crate::placebo::{self, Suspicion};
use crate::probes;
use crate::reading::{Reading, Unfit};
use crate::sample::Values;
use crate::side::Side;
use crate::stalls;
use crate::stopping::StoppingInput;
use crate::summaries;
use crate::tails;
use crate::turns;
use crate::words;
use deltabench_model::finding::{Finding, FindingKind, Severity};
use deltabench_model::plan::{CellId, Plan, ServerId};
use deltabench_model::slice::Slice;
use std::collections::BTreeSet;

/// Compares every candidate, and the placebo, with the base in every cell of the plan.
///
/// It can be called on the slices of a run that is not finished: every answer is about what is there. A
/// cell without data is inconclusive, never left out. Verdicts follow the plan's stopping rule as
/// [`crate::progress()`] does, and are then corrected for the number of cells and candidates.
///
/// The placebo is judged once, on all blocks that its cell has: it has no looks of its own, since it is not
/// measured on for its own sake. That flags it at least as often as a candidate without a difference.
///
/// Shape:  slices in any order; slices of cells or servers that the plan does not have are ignored. The
///         result is ordered by cell, then by candidate. The same slices give the same result to the bit.
///         `reading` is what the kind of benchmark knows beside them; findings alone are one, too.
/// Units:  as in [`CellComparison`]. `ratio` is the paired estimate of totals and is the one to quote; `base`
///         and `candidate` are means over blocks of the same totals, so their quotient is near `ratio` but
///         not equal to it.
/// Source: docs/sources/statistics.md; the formulas are in docs/measuring.md.
pub fn analyse(plan: &Plan, slices: &[Slice], reading: impl Into<Reading>) -> Comparison {
    let Reading {
        mut findings,
        unfit,
        ..
    } = reading.into();
    let host_ok = findings
        .iter()
        .all(|finding| finding.severity != Severity::Unfit);
    let index = Index::new(plan, slices);
    let mut sides = Vec::new();
    let mut placebo_sides = Vec::new();
    let ids: Vec<CellId> = CellId::each().take(plan.cells.len()).collect();
    let cells = parallel::map(&ids, |id| CellSides::new(plan, &index, *id));
    let off = placebo::among(cells.iter().map(|cell| cell.suspicion).collect());
    for (cell, off) in std::iter::zip(cells, off) {
        let suspicion = off.map(|off| off.why());
        let suspicion = suspicion.as_deref();
        sides.extend(cell.candidates.into_iter().map(|side| Side {
            comparison: trust(side.comparison, suspicion, host_ok),
            ..side
        }));
        placebo_sides.extend(cell.placebo);
    }
    for side in sides.iter_mut().chain(&mut placebo_sides) {
        leave_out(side, &unfit);
    }
    settle(&mut sides);
    settle(&mut placebo_sides);
    let summaries = summaries::groups(plan, &sides);
    let placebo = summaries::placebo(&placebo_sides);
    let mut cells = comparisons(sides);
    let mut placebo_cells = comparisons(placebo_sides);
    tails::settle(&mut placebo_cells);
    forecast(&mut cells, slices);
    tails::settle(&mut cells);
    stalls::settle(&mut cells);
    stalls::settle(&mut placebo_cells);
    // Those of placebos are told with their cells only.
    findings.extend(stalls::findings(plan, &cells));
    findings.extend(contended(plan, &cells));
    findings.extend(index.neighbours());
    findings.extend(probes::findings(plan, &cells));
    findings.extend(turns::finding(plan, slices));
    findings.extend(host_speed::findings(plan, &cells));
    Comparison {
        delta: plan.delta,
        stopping: plan.stopping.clone(),
        gate: plan.gate.clone(),
        counts: counts(&cells),
        placebo,
        summaries,
        cells,
        placebo_cells,
        host_ok,
        unfinished: false,
        findings,
        instructions: None,
        sessions: None,
    }
}

/// Everything about one cell.
struct CellSides {
    candidates: Vec<Side>,
    placebo: Option<Side>,
    /// What the placebo has against verdicts, if it holds among all cells.
    suspicion: Option<Suspicion>,
}

impl CellSides {
    fn new(plan: &Plan, index: &Index<'_>, id: CellId) -> Self {
        let rounds = index.rounds(id);
        let pair = |server| History::new(index, &rounds, id, plan.compared_with(server), server);
        let placebo = plan.placebo().map(|server| (server, pair(server)));
        let of_placebo = placebo.as_ref().map(|(_, history)| history);
        let delta = cell_delta(plan, of_placebo, index.sd_of_candidates(id));
        let side = |server: ServerId, history: &History<'_>, once: bool| {
            let input = StoppingInput {
                plan,
                history,
                delta,
            };
            let state = if once { input.fixed() } else { input.state() };
            let mut side = Side::new(&input, state, id, server)?;
            side.comparison.host_speed =
                pace_of_others(plan, index, &rounds, (id, server), history);
            Some(side)
        };
        let candidates = plan.candidates().into_iter();
        Self {
            suspicion: placebo
                .as_ref()
                .and_then(|(_, history)| suspect(history, share_of_placebo(plan, id), delta)),
            candidates: candidates
                .filter_map(|server| side(server, &pair(server), false))
                .collect(),
            placebo: placebo.and_then(|(server, history)| side(server, &history, true)),
        }
    }
}

/// How fast the host was for a pair, as the servers outside of it tell.
fn pace_of_others(
    plan: &Plan,
    index: &Index<'_>,
    rounds: &CellRounds,
    (cell, server): (CellId, ServerId),
    history: &History<'_>,
) -> Option<HostSpeed> {
    let visits = history.visits();
    let none = BTreeSet::new();
    let excluded = if history.keeps_disturbed(visits) {
        &none
    } else {
        &rounds.disturbed
    };
    let paces: Vec<_> = witnesses(plan, plan.compared_with(server), server)
        .into_iter()
        .map(|witness| index.paces(cell, witness, excluded))
        .filter(|paces| !paces.is_empty())
        .collect();
    host_speed(&paces, &history.sample(0..visits))
}

fn comparisons(sides: Vec<Side>) -> Vec<CellComparison> {
    sides.into_iter().map(|side| side.comparison).collect()
}

/// Takes the verdict from a side that is known to be unfit.
fn leave_out(side: &mut Side, unfit: &Unfit) {
    let cell = &mut side.comparison;
    if let Some(why) = unfit.get(&(cell.cell, cell.candidate)) {
        cell.verdict = Verdict::Unfit;
        cell.reason = why.clone();
        cell.p = None;
        cell.blocks_to_verdict = None;
        side.sample = Sample::default();
    }
}

/// Keeps what each side says alone, and corrects for their number.
fn settle(sides: &mut [Side]) {
    let mut cells: Vec<&mut CellComparison> =
        sides.iter_mut().map(|side| &mut side.comparison).collect();
    for cell in &mut cells {
        cell.alone = cell.verdict;
    }
    adjust(&mut cells);
}

/// Minutes that the missing blocks of open cells would take at the pace of this run.
fn forecast(cells: &mut [CellComparison], slices: &[Slice]) {
    let Some(pace) = seconds_per_block(slices) else {
        return;
    };
    for cell in cells {
        cell.minutes_to_verdict = cell
            .blocks_to_verdict
            .map(|blocks| f64::from(blocks) * pace / 60.0);
    }
}

/// What to say of cells in which most rounds were disturbed.
fn contended(plan: &Plan, cells: &[CellComparison]) -> Option<Finding> {
    let of = |left_out: bool| {
        let mut names: Vec<String> = cells
            .iter()
            .filter(|cell| cell.interference.contended)
            .filter(|cell| left_out == (cell.interference.left_out > 0))
            .map(|cell| words::cell(plan, cell))
            .collect();
        names.dedup();
        let what = match left_out {
            true => "they are left out, because intervals are wider without them",
            false => "none was left out",
        };
        (!names.is_empty()).then(|| format!("{}; {what}", words::first_of(&names)))
    };
    let parts: Vec<String> = [of(false), of(true)].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| {
        let text = format!(
            "contended: other load disturbed more than half of the rounds of {}",
            parts.join("; and of ")
        );
        Finding::new(FindingKind::Contended, Severity::Note, text)
    })
}

/// What a cell's placebo has against its verdicts.
fn suspect(placebo: &History<'_>, share: f64, delta: f64) -> Option<Suspicion> {
    let values = Values::of(&placebo.sample(0..placebo.visits()).throughput);
    let found = values.mean()?;
    Suspicion::of(found.p(), (found.centre, share), values.logs.len(), delta)
}

/// Withholds the verdict where the placebo or the host forbids it. What is inconclusive stays so.
pub(crate) fn trust(
    mut cell: CellComparison,
    suspicion: Option<&str>,
    host_ok: bool,
) -> CellComparison {
    let why = if host_ok {
        suspicion
    } else {
        Some("host unfit")
    };
    if let Some(why) = why.filter(|_| cell.verdict != Verdict::Inconclusive) {
        cell.verdict = Verdict::Unfit;
        cell.reason = format!("{why}; not trusted: {}", cell.reason);
    }
    cell
}

pub(crate) fn counts(cells: &[CellComparison]) -> VerdictCounts {
    let mut counts = VerdictCounts::default();
    for cell in cells {
        match cell.verdict {
            Verdict::Regression => counts.regression += 1,
            Verdict::Improvement => counts.improvement += 1,
            Verdict::NoChange => counts.no_change += 1,
            Verdict::Inconclusive => counts.inconclusive += 1,
            Verdict::Unfit => counts.unfit += 1,
        }
    }
    counts
}
