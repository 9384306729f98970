//! Geometric means over the cells of several sessions.
//!
//! A session's mean is over the cells that it has. Where another session lacks one of them, both means would
//! differ by what that cell differs from the others, and so would the mean over sessions from its own table.
//! So it is over the cells that all sessions have, and says how many these are.

use super::number;
use crate::comparison::{
    CellComparison, Comparison, GroupSummary, Metric, MetricComparison, PlaceboSummary, Ratio,
};
use crate::loads::pooled;
use crate::summaries::{joint, places};
use deltabench_model::plan::{CellId, Plan};
use std::collections::BTreeSet;

/// The means of each candidate: those of its groups, then that of all cells. One without a cell that all
/// sessions have is absent; where no session says anything it stays as `first` has it.
pub(super) fn groups(
    first: &[GroupSummary],
    sessions: &[Comparison],
    plan: &Plan,
) -> Vec<GroupSummary> {
    let of = |(server, group)| {
        let same = |one: &&GroupSummary| one.candidate == server && one.group == group;
        let own = sessions.iter().map(|one| one.summaries.iter().find(same));
        let own: Vec<Option<&GroupSummary>> = own.collect();
        let Some(known) = own.iter().copied().flatten().next() else {
            return first.iter().find(same).cloned();
        };
        let is_in = |cell: &&CellComparison| {
            cell.candidate == server && group.is_none_or(|group| cell.group == group)
        };
        let members: Vec<Vec<&CellComparison>> = { sessions.iter() }
            .map(|one| one.cells.iter().filter(is_in).collect())
            .collect();
        let ratios = |of: fn(&GroupSummary) -> Option<Ratio>| -> Vec<Ratio> {
            own.iter().copied().flatten().filter_map(of).collect()
        };
        let speed = Mean::of(Metric::Throughput, &members);
        let cost = Mean::of(Metric::ServerCpuPerOperation, &members);
        Some(GroupSummary {
            cells: speed.fewer.unwrap_or(known.cells),
            throughput: speed.over(&ratios(|one| Some(one.throughput)))?,
            server_cpu: cost.over(&ratios(|one| one.server_cpu)),
            ..known.clone()
        })
    };
    places(plan).into_iter().filter_map(of).collect()
}

/// The placebo in one line, where `together` are its cells over all sessions; `None` where none of them is in
/// all sessions.
pub(super) fn placebo(
    together: &[CellComparison],
    sessions: &[Comparison],
) -> Option<PlaceboSummary> {
    let own: Vec<&PlaceboSummary> = { sessions.iter() }
        .filter_map(|one| one.placebo.as_ref())
        .collect();
    let members: Vec<Vec<&CellComparison>> = { sessions.iter() }
        .map(|one| one.placebo_cells.iter().collect())
        .collect();
    let speed: Vec<Ratio> = own.iter().map(|one| one.throughput).collect();
    let cost: Vec<Ratio> = own.iter().filter_map(|one| one.server_cpu).collect();
    let flagged = together.iter().filter(|cell| cell.verdict.is_change());
    let judged = together.iter().filter(|cell| cell.blocks > 0);
    Some(PlaceboSummary {
        throughput: Mean::of(Metric::Throughput, &members).over(&speed)?,
        server_cpu: Mean::of(Metric::ServerCpuPerOperation, &members).over(&cost),
        flagged: number(flagged.count()),
        cells: number(judged.count()),
    })
}

/// A mean over cells of several sessions.
struct Mean {
    /// How many cells all sessions have, where a session lacks one that another has.
    fewer: Option<u32>,
    /// The means of the sessions over these.
    of_common: Vec<Ratio>,
}

impl Mean {
    fn of(metric: Metric, sessions: &[Vec<&CellComparison>]) -> Self {
        let ids = |cells: &Vec<&CellComparison>| -> BTreeSet<CellId> {
            let known = cells.iter().filter(|cell| said(metric, cell).is_some());
            known.map(|cell| cell.cell).collect()
        };
        let each: Vec<BTreeSet<CellId>> = sessions.iter().map(ids).collect();
        let any: BTreeSet<CellId> = each.iter().flatten().copied().collect();
        let is_common = |id: &CellId| each.iter().all(|one| one.contains(id));
        let common: BTreeSet<CellId> = any.iter().copied().filter(is_common).collect();
        let is_in = |cell: &&&CellComparison| common.contains(&cell.cell);
        let of_session = |cells: &Vec<&CellComparison>| {
            let known = cells
                .iter()
                .filter(is_in)
                .filter_map(|cell| said(metric, cell));
            let logs = known.map(|found| {
                let blocks = std::iter::zip(&found.numbers, &found.blocks);
                blocks.map(|(block, log)| (*block, *log)).collect()
            });
            joint(&logs.collect::<Vec<_>>())
        };
        Self {
            fewer: (common.len() < any.len()).then(|| number(common.len())),
            of_common: sessions.iter().filter_map(of_session).collect(),
        }
    }

    /// The mean over sessions, of which each says this over its own cells.
    fn over(&self, own: &[Ratio]) -> Option<Ratio> {
        match self.fewer {
            Some(_) => pooled(&self.of_common),
            None => pooled(own),
        }
    }
}

/// A metric of a cell that says something of it.
fn said(metric: Metric, cell: &CellComparison) -> Option<&MetricComparison> {
    let found = cell.metric(metric).filter(|_| cell.says_something())?;
    (!found.blocks.is_empty()).then_some(found)
}
