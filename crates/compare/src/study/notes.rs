//! What a reader must know before comparing figures.

use super::collect::Set;
use super::differences::differences;
use super::places::Places;
use super::{Axis, Figure, StudyRow, StudyTable, distinct};
use crate::comparison::{Metric, Verdict};
use deltabench_model::plan::{Cell, CellId, CellOrder, ExperimentPart, Plan};
use std::collections::{BTreeMap, BTreeSet};

fn things(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Figures of all columns but the base.
fn compared(base: usize, rows: &[StudyRow]) -> impl Iterator<Item = &Figure> {
    rows.iter().flat_map(move |row| {
        let others = row.figures.iter().enumerate();
        others
            .filter(move |(column, _)| *column != base)
            .filter_map(|(_, figure)| figure.as_ref())
    })
}

/// `3 of 64 figures are …`, if any are.
fn counted(
    figures: &[&Figure],
    of: impl Fn(&Figure) -> bool,
    one: &str,
    many: &str,
    rest: &str,
) -> Option<String> {
    let found = figures.iter().filter(|figure| of(figure)).count();
    let verb = if found == 1 { one } else { many };
    (found > 0).then(|| {
        format!(
            "{found} of {} {verb} {rest}",
            things(figures.len(), "figure", "figures")
        )
    })
}

/// What is to be said of any table's figures.
fn of_figures(figures: &[&Figure]) -> Vec<String> {
    let no_interval = |figure: &Figure| figure.ratio.ci95.is_none();
    let unfit = |figure: &Figure| figure.verdict == Some(Verdict::Unfit);
    let all = [
        counted(
            figures,
            unfit,
            "is",
            "are",
            "unfit or withdrawn: do not use them; no average includes them",
        ),
        counted(
            figures,
            no_interval,
            "has",
            "have",
            "no interval: fewer than two blocks",
        ),
    ];
    all.into_iter().flatten().collect()
}

pub(super) fn of_servers(
    table: &StudyTable,
    set: &Set<'_>,
    clients: u32,
    unlisted: usize,
) -> Vec<String> {
    let figures: Vec<&Figure> = compared(table.base, &table.rows).collect();
    let mut notes = Vec::new();
    let loads = || figures.iter().map(|figure| figure.repetitions);
    if let (Some(least), Some(most)) = (loads().min(), loads().max().filter(|&most| most > 1)) {
        let how_many = if least == most { "" } else { "up to " };
        let wide = if most == 2 {
            "; two loads say little about how loads differ, so it is wide"
        } else {
            ""
        };
        notes.push(format!(
            "each figure comes from {how_many}{most} loads of the data: its interval includes how \
             loads differ{wide}"
        ));
        let single = |figure: &Figure| figure.repetitions == 1;
        let rest = "on one load: its interval includes only how restarts differ";
        notes.extend(counted(&figures, single, "rests", "rest", rest));
    }
    let open = |figure: &Figure| figure.verdict == Some(Verdict::Inconclusive);
    let rest = "inconclusive: no claim";
    notes.extend(counted(&figures, open, "is", "are", rest));
    if table.metric == Metric::Throughput && unlisted > 0 {
        notes.push(format!(
            "{} different alone, but not among so many: inconclusive",
            if unlisted == 1 {
                "1 of them is".to_owned()
            } else {
                format!("{unlisted} of them are")
            }
        ));
    }
    if table.metric == Metric::ServerCpuPerOperation {
        notes.push("verdicts on CPU per operation are not corrected for their number".to_owned());
    }
    notes.extend(of_figures(&figures));
    let scheduled = |cell: &&Cell| cell.clients == clients && cell.rate.is_some();
    let mut cells = set.runs.iter().flat_map(|run| &run.source.plan.cells);
    if table.metric == Metric::Throughput && cells.any(|cell| scheduled(&cell)) {
        notes.push(SCHEDULED.to_owned());
    }
    notes
}

const SCHEDULED: &str =
    "operations were sent at a fixed rate: throughput only says whether a server kept up";

pub(super) fn of_scaleup(set: &Set<'_>, clients: &[u32], apart: &[u32]) -> Vec<String> {
    let plans = || set.runs.iter().map(|run| run.source.plan);
    let mut notes = vec![
        "both rates of a figure come from the same blocks, but from different visits: both include the \
         chance of the restart, and the interval includes how the machine drifts between visits"
            .to_owned(),
    ];
    if plans().any(|plan| plan.order == CellOrder::Published) {
        notes.push(
            "cells ran one after another in the same order in every block: the effect of that order is \
             in the figures, but not in the intervals"
                .to_owned(),
        );
    }
    notes.extend(of_placement(set, None, clients, apart));
    let mut cells = plans().flat_map(|plan| &plan.cells);
    if cells.any(|cell| cell.rate.is_some()) {
        notes.push(SCHEDULED.to_owned());
    }
    notes
}

/// Where client and server ran over these numbers of clients, and which others are no part of the line;
/// nothing where no plan decides it.
pub(super) fn of_placement(
    set: &Set<'_>,
    row: Option<&str>,
    clients: &[u32],
    apart: &[u32],
) -> Option<String> {
    let worker = set.worker();
    let side = |clients: u32| match set.placed(row, clients).as_slice() {
        [] | [None] => None,
        [Some(one)] => Some(one.words()),
        _ => Some("placed by run"),
    };
    let here = side(*clients.last()?)?;
    let Some(first) = apart.first() else {
        return Some(format!(
            "the client side is {here} at every number of {worker}s"
        ));
    };
    let elsewhere = side(*first).unwrap_or("placed in another way");
    let few = match apart {
        [1] => format!("1 {worker}"),
        apart => {
            let numbers: Vec<String> = apart.iter().map(u32::to_string).collect();
            format!("{} {worker}s", numbers.join(", "))
        }
    };
    Some(format!(
        "at {few} the client side is {elsewhere}, at the others {here}: no segment and no scaleup \
         connects them, because placement causes part of that step"
    ))
}

pub(super) fn of_runs(axis: Axis, name: &str, of_ratios: bool, rows: &[StudyRow]) -> Vec<String> {
    let figures: Vec<&Figure> = compared(0, rows).collect();
    let mut notes = Vec::new();
    notes.push(match (axis, of_ratios) {
        (Axis::Host, false) => "confounded: hosts differ in machine, kernel and time of measuring; the \
             figure does not show which of them is the cause"
            .to_owned(),
        (_, false) => format!(
            "each column is a separate run: the figure includes all that changed between runs besides \
             {name}: the load of the data, the time, other guests of the host"
        ),
        (_, true) => "a run measures both sides together, so an effect on both cancels; an effect of \
             one load of the data on one side does not"
            .to_owned(),
    });
    let least = figures.iter().map(|figure| figure.repetitions).min();
    notes.push(match least {
        Some(loads) if loads > 1 => {
            format!(
                "each column comes from at least {loads} loads of the data: intervals include how \
                     loads differ"
            )
        }
        _ => "at least one of the columns comes from one load of the data: intervals include how \
              restarts differ, but not how loads differ"
            .to_owned(),
    });
    if of_ratios {
        notes.push(
            "these figures have no verdicts: each interval is computed alone, and about one of twenty \
             without a difference leaves out 1"
                .to_owned(),
        );
    }
    notes.extend(of_figures(&figures));
    notes
}

/// What is to be said of the whole study.
pub(super) fn of_study(
    places: &Places<'_>,
    sets: &[Set<'_>],
    tables: &[StudyTable],
) -> Vec<String> {
    let mut notes = missing(places);
    notes.extend(missing_groups(places));
    notes.extend(groups(places));
    notes.extend(left_out(places));
    if !places.unmeasured.is_empty() {
        let runs = places.unmeasured.iter().map(|run| run.run);
        notes.push(format!(
            "nothing is measured yet in {}",
            runs.collect::<Vec<_>>().join(", ")
        ));
    }
    notes.extend(unpaired(sets));
    notes.extend(withdrawn(sets));
    notes.extend(loads(sets));
    notes.extend(unfit_hosts(sets));
    notes.extend(unmeasured(sets));
    notes.extend(different_plans(places));
    let mut hosts = tables.iter().filter(|table| table.axis == Axis::Host);
    if hosts.any(|table| !table.of_ratios) {
        notes.push(
            "between hosts compare only ratios of ratios: absolute throughput depends on machine, \
             kernel and time"
                .to_owned(),
        );
    }
    notes
}

/// The runs that belong to others.
fn left_out(places: &Places<'_>) -> Option<String> {
    let named: Vec<&str> = places.parts.iter().map(|run| run.run).collect();
    let belong = match named.len() {
        0 => return None,
        1 => "belongs to another run",
        _ => "belong to other runs",
    };
    let known = places.runs.iter().map(|(run, _)| run);
    let known: BTreeSet<&str> = { known.chain(&places.unmeasured) }
        .map(|run| run.run)
        .collect();
    let mut sessions = { places.parts.iter() }.filter_map(|part| part.plan.session.as_ref());
    let stands = match sessions.any(|part| known.contains(part.first.as_str())) {
        true => "; the first of several sessions stands for all of them",
        false => "",
    };
    Some(format!(
        "left out: {}, which {belong}{stands}",
        named.join(", ")
    ))
}

/// Parts of the experiment without a run here.
fn missing(places: &Places<'_>) -> Vec<String> {
    let mut executions: BTreeMap<(&str, &str), (u32, BTreeSet<u32>)> = BTreeMap::new();
    let measured = places.runs.iter().map(|(run, _)| run);
    for run in measured.chain(&places.unmeasured) {
        if let Some(part) = &run.plan.experiment {
            let ExperimentPart { execution, .. } = part;
            let known = executions.entry((run.host, execution)).or_default();
            known.0 = known.0.max(part.of);
            known.1.insert(part.part);
        }
    }
    let several = executions.len() > 1;
    let note = |((host, execution), (of, known)): ((&str, &str), (u32, BTreeSet<u32>))| {
        let gone: Vec<String> = (1..=of)
            .filter(|part| !known.contains(part))
            .map(|part| part.to_string())
            .collect();
        let whose = if several {
            format!(" of {execution} on {host}")
        } else {
            String::new()
        };
        (!gone.is_empty()).then(|| {
            format!(
                "missing: {} of {of} parts{whose}: {}",
                gone.len(),
                gone.join(", ")
            )
        })
    };
    executions.into_iter().filter_map(note).collect()
}

/// Groups of servers of a part without a run here.
fn missing_groups(places: &Places<'_>) -> Vec<String> {
    let mut parts: BTreeMap<(&str, &str, u32), (u32, BTreeSet<u32>)> = BTreeMap::new();
    let measured = places.runs.iter().map(|(run, _)| run);
    for run in measured.chain(&places.unmeasured) {
        let Some(part) = &run.plan.experiment else {
            continue;
        };
        if let Some((group, of)) = part.group {
            let place = (run.host, part.execution.as_str(), part.part);
            let known = parts.entry(place).or_insert((of, BTreeSet::new()));
            known.1.insert(group);
        }
    }
    let note = |((_, execution, part), (of, known)): ((&str, &str, u32), (u32, BTreeSet<u32>))| {
        let gone: Vec<String> = (1..=of)
            .filter(|group| !known.contains(group))
            .map(|group| group.to_string())
            .collect();
        (!gone.is_empty()).then(|| {
            format!(
                "missing: {} of {of} groups of servers of part {part} of {execution}: {}",
                gone.len(),
                gone.join(", ")
            )
        })
    };
    parts.into_iter().filter_map(note).collect()
}

/// Which group of servers a run has, and of how many.
fn group_of(plan: &Plan) -> Option<(u32, u32)> {
    plan.experiment.as_ref()?.group
}

/// What groups of servers mean for the columns.
fn groups(places: &Places<'_>) -> Option<String> {
    let all = places.runs.iter();
    let of = all
        .filter_map(|(run, _)| Some(group_of(run.plan)?.1))
        .max()?;
    Some(format!(
        "not all servers ran at a time: they were measured in {of} groups, one after another, each with its \
         own load and its own copies of the base; a ratio is one of its group, and the base's figures are \
         of all groups"
    ))
}

/// `withdrawn: r2 (wrong machine)`, `withdrawn: 2 cells of r2 (…)`.
fn withdrawn(sets: &[Set<'_>]) -> Vec<String> {
    let runs = sets.iter().flat_map(|set| &set.runs);
    let note = |run: &super::collect::Collected<'_>| {
        let all = run.source.withdrawn;
        let first = all.iter().find(|one| one.cell.is_none()).or(all.first())?;
        let cells = distinct(all.iter().map(|one| one.cell)).len();
        let what = match first.cell {
            None => run.source.run.to_owned(),
            Some(_) => format!("{} of {}", things(cells, "cell", "cells"), run.source.run),
        };
        let reasons = distinct(all.iter().map(|one| one.reason.as_str()));
        Some(format!("withdrawn: {what} ({})", reasons.join("; ")))
    };
    runs.filter_map(note).collect()
}

/// That nothing ties the servers of a run.
fn unpaired(sets: &[Set<'_>]) -> Option<String> {
    let mut runs = sets.iter().flat_map(|set| &set.runs);
    runs.any(|run| run.source.plan.work.is_unpaired()).then(|| {
        "unpaired sequential runs: each server ran alone for hours, one after another; drift of the machine \
         between them is in every figure, and no interval is one of pairs"
            .to_owned()
    })
}

/// On how many loads figures rest.
fn loads(sets: &[Set<'_>]) -> Option<String> {
    // Groups of servers are no repetitions: the first stands for them.
    let of_set = |set: &Set<'_>| {
        let runs = set.runs.iter().map(|run| run.source);
        let first = runs.filter(|run| group_of(run.plan).is_none_or(|(group, _)| group == 1));
        let loads = first.map(|run| {
            run.comparison
                .sessions
                .map_or(1, |sessions| sessions.number)
        });
        loads.sum::<u32>().max(1)
    };
    let most = sets.iter().map(of_set).max()?;
    let single = sets.iter().filter(|set| of_set(set) == 1).count();
    if most == 1 {
        return Some(
            "every figure comes from one load of the data: another load, or another hour, may differ \
             by more than the intervals say; with repetitions the intervals include that"
                .to_owned(),
        );
    }
    (single > 0).then(|| {
        format!(
            "{} of {} places on the axes have one load of the data, others up to {most}",
            single,
            sets.len()
        )
    })
}

fn unfit_hosts(sets: &[Set<'_>]) -> Option<String> {
    let runs = sets.iter().flat_map(|set| &set.runs);
    let unfit: Vec<&str> = runs
        .filter(|run| !run.source.comparison.host_ok)
        .map(|run| run.source.run)
        .collect();
    (!unfit.is_empty()).then(|| {
        format!(
            "the host was unfit in {}: do not use these figures",
            unfit.join(", ")
        )
    })
}

/// Runs with cells in which nothing was measured.
fn unmeasured(sets: &[Set<'_>]) -> Vec<String> {
    let runs = sets.iter().flat_map(|set| &set.runs);
    let note = |run: &super::collect::Collected<'_>| {
        let comparison = run.source.comparison;
        let mut sides = comparison.cells.iter();
        let mut measured: BTreeSet<CellId> = BTreeSet::new();
        let both = sides.by_ref().chain(&comparison.placebo_cells);
        measured.extend(both.filter(|side| side.blocks > 0).map(|side| side.cell));
        let planned = run.source.plan.cells.len();
        let empty = planned.saturating_sub(measured.len());
        (empty > 0).then(|| {
            format!(
                "{}: nothing measured in {empty} of {}",
                run.source.run,
                things(planned, "cell", "cells")
            )
        })
    };
    runs.filter_map(note).collect()
}

/// Plans that should be alike and are not: in the same place except for the host.
fn different_plans(places: &Places<'_>) -> Vec<String> {
    let host = places.dimensions.len().saturating_sub(1);
    let held = |position: &[usize]| -> Vec<usize> { position.iter().take(host).copied().collect() };
    let mut notes: Vec<(String, Vec<&str>)> = Vec::new();
    for (at, (run, position)) in places.runs.iter().enumerate() {
        let mut before = places.runs.iter().take(at);
        let alike = before.find(|(_, other)| held(other) == held(position));
        let Some((first, _)) = alike else { continue };
        let mut what: Vec<String> = differences(first.plan, run.plan)
            .into_iter()
            .map(|difference| difference.what)
            .collect();
        what.extend(servers(first.plan, run.plan));
        what.extend(cells(first.plan, run.plan));
        if what.is_empty() {
            continue;
        }
        let text = format!("differs from {} in {}", first.run, what.join(", "));
        match notes.iter_mut().find(|(known, _)| *known == text) {
            Some((_, runs)) => runs.push(run.run),
            None => notes.push((text, vec![run.run])),
        }
    }
    let line = |(text, runs): (String, Vec<&str>)| {
        let listed = runs.join(", ");
        if runs.len() == 1 {
            format!("{listed} {text}")
        } else {
            format!("{listed}: each {text}")
        }
    };
    notes.into_iter().map(line).collect()
}

fn servers(first: &Plan, second: &Plan) -> Option<String> {
    // Of groups that is known.
    if group_of(first) != group_of(second) {
        return None;
    }
    let names = |plan: &Plan| -> BTreeSet<String> {
        let all = plan.candidates().into_iter();
        all.map(|server| plan.server_name(server)).collect()
    };
    (names(first) != names(second)).then(|| format!("its {}s", first.work.subject()))
}

fn cells(first: &Plan, second: &Plan) -> Option<String> {
    let names = |plan: &Plan| -> BTreeSet<(String, u32, &str)> {
        let cells = plan.cells.iter();
        cells
            .map(|cell| (cell.workload.clone(), cell.clients, cell.state.word()))
            .collect()
    };
    (names(first) != names(second)).then(|| "its cells".to_owned())
}
