//! Many cells in one number.

use crate::comparison::{GroupSummary, PlaceboSummary, Ratio};
use crate::levels::Levels;
use crate::sample::BlockValue;
use crate::side::Side;
use deltabench_model::plan::{Group, Plan, ServerId};
use deltabench_model::units::{count, to_f64};
use deltabench_stats::student::t_quantile;
use deltabench_stats::summary::mean;
use std::collections::BTreeMap;

/// Geometric mean over cells, with an interval from their joint block values.
///
/// Cells of one block share a restart, so their values go together. Each block moves the mean by w(b) = Σ
/// over its cells (Z(c,b) − Z̄(c)) / (M·n(c)); blocks are independent, so the variance is Σ w². Where all
/// cells have the same blocks this is Student's t on the joint block means, to the digit. Where they have
/// not, the factor n/(n − 1) and the degrees of freedom n − 1 are those of the cell with the fewest blocks:
/// an interval that is too wide rather than too narrow.
///
/// Shape:  cells without a block are left out; `None` if none is left. No interval if a cell has one block.
/// Source: the variance that a joint block bootstrap estimates without its random part: Liang & Zeger
///         1986, clusters as sampling units; docs/sources/statistics.md#blocks.
pub(crate) fn joint_ratio<'a>(cells: impl Iterator<Item = &'a [BlockValue]>) -> Option<Ratio> {
    let of_cell = |cell: &[BlockValue]| {
        let values = cell.iter().map(|value| (value.block, value.log_ratio));
        values.collect()
    };
    joint(&cells.map(of_cell).collect::<Vec<_>>())
}

/// The same of log-ratios by block.
pub(crate) fn joint(cells: &[Vec<(u32, f64)>]) -> Option<Ratio> {
    let cells: Vec<&[(u32, f64)]> = { cells.iter() }
        .filter(|cell| !cell.is_empty())
        .map(Vec::as_slice)
        .collect();
    let means: Vec<f64> = cells
        .iter()
        .filter_map(|cell| mean(&cell.iter().map(|(_, log)| *log).collect::<Vec<_>>()))
        .collect();
    let centre = mean(&means)?;
    let fewest = to_f64(count(cells.iter().map(|cell| cell.len()).min()?));
    let mut moves: BTreeMap<u32, f64> = BTreeMap::new();
    for (cell, mean) in std::iter::zip(&cells, &means) {
        let weight = 1.0 / to_f64(count(cells.len() * cell.len()));
        for (block, log) in *cell {
            *moves.entry(*block).or_default() += weight * (log - mean);
        }
    }
    let squares: f64 = moves.values().map(|by| by.powi(2)).sum();
    let interval = |level: f64| {
        (fewest > 1.0).then(|| {
            let error = (squares * fewest / (fewest - 1.0)).sqrt();
            let half = t_quantile(0.5 + level / 2.0, fewest - 1.0) * error;
            ((centre - half).exp(), (centre + half).exp())
        })
    };
    Some(Ratio {
        estimate: centre.exp(),
        ci95: interval(Levels::FIXED.printed),
        ci90: interval(Levels::FIXED.equivalent),
    })
}

/// The means of a plan: for each candidate those of its groups in their order, then that of all cells.
pub(crate) fn places(plan: &Plan) -> Vec<(ServerId, Option<Group>)> {
    let mut groups: Vec<Option<Group>> = Vec::new();
    for cell in &plan.cells {
        if !groups.contains(&Some(cell.group)) {
            groups.push(Some(cell.group));
        }
    }
    groups.push(None);
    let candidates = plan.candidates().into_iter();
    let pairs = candidates.flat_map(|server| groups.iter().map(move |&group| (server, group)));
    pairs.collect()
}

/// For each candidate: each group in the plan's order, then all cells.
pub(crate) fn groups(plan: &Plan, sides: &[Side]) -> Vec<GroupSummary> {
    places(plan)
        .into_iter()
        .filter_map(|(server, group)| {
            let members: Vec<&Side> = sides
                .iter()
                .filter(|side| side.comparison.candidate == server)
                .filter(|side| group.is_none_or(|group| side.comparison.group == group))
                .collect();
            let speed = || members.iter().map(|side| side.sample.throughput.as_slice());
            let cost = members.iter().map(|side| side.sample.server_cpu.as_slice());
            Some(GroupSummary {
                candidate: server,
                candidate_name: plan.server_name(server),
                group,
                cells: number(speed().filter(|cell| !cell.is_empty()).count()),
                of: number(members.len()),
                throughput: joint_ratio(speed())?,
                server_cpu: joint_ratio(cost),
            })
        })
        .collect()
}

/// The placebo in one line; `None` when no cell has a block.
pub(crate) fn placebo(sides: &[Side]) -> Option<PlaceboSummary> {
    let flagged = { sides.iter() }.filter(|side| side.comparison.verdict.is_change());
    let judged = sides.iter().filter(|side| side.comparison.blocks > 0);
    Some(PlaceboSummary {
        throughput: joint_ratio(sides.iter().map(|side| side.sample.throughput.as_slice()))?,
        server_cpu: joint_ratio(sides.iter().map(|side| side.sample.server_cpu.as_slice())),
        flagged: number(flagged.count()),
        cells: number(judged.count()),
    })
}

fn number(cells: usize) -> u32 {
    u32::try_from(count(cells)).unwrap_or(u32::MAX)
}
