//! How published tables sum up a group of rows.

use super::collect::{Place, Set, block_values, number};
use super::figures::ONE;
use super::{GroupSpread, Spread, SpreadOf, StudyTable};
use crate::comparison::{Metric, Ratio, Verdict};
use crate::loads::pooled;
use crate::sample::BlockValue;
use crate::summaries::joint_ratio;
use deltabench_model::plan::Group;
use deltabench_stats::summary::{geometric_mean, mean, median, sample_sd};

/// Of each group of a table along servers, of all ranges where they are in two groups, then of all rows.
pub(super) fn spreads(table: &StudyTable, set: &Set<'_>, clients: u32) -> Vec<GroupSpread> {
    let has = |group: Group| table.rows.iter().any(|row| row.group == group);
    let present = SpreadOf::EACH.into_iter().filter(|of| match of {
        SpreadOf::Group(group) => has(*group),
        SpreadOf::Ranges => has(Group::Range) && has(Group::RangeAgg),
        SpreadOf::All => true,
    });
    present
        .map(|of| GroupSpread {
            table: table.title.clone(),
            of,
            columns: (0..table.columns.len())
                .map(|column| spread(table, set, clients, of, column))
                .collect(),
        })
        .collect()
}

fn spread(
    table: &StudyTable,
    set: &Set<'_>,
    clients: u32,
    of: SpreadOf,
    column: usize,
) -> Option<Spread> {
    let rows = table.rows.iter().filter(|row| of.has(row.group));
    let figures: Vec<(&str, f64)> = rows
        .filter_map(|row| {
            let figure = row.figures.get(column)?.as_ref()?;
            let fit = figure.verdict != Some(Verdict::Unfit);
            fit.then_some((row.name.as_str(), figure.ratio.estimate))
        })
        .collect();
    let values: Vec<f64> = figures.iter().map(|(_, value)| *value).collect();
    let names: Vec<&str> = figures.iter().map(|(name, _)| *name).collect();
    let server = table.columns.get(column)?;
    Some(Spread {
        count: number(values.len()),
        average: mean(&values)?,
        median: median(&values)?,
        min: values.iter().copied().fold(f64::INFINITY, f64::min),
        max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        stddev: sample_sd(&values),
        geometric: if column == table.base {
            Some(ONE)
        } else {
            let found = geometric(set, &names, clients, &server.name, table.metric);
            found.or_else(|| geometric_via(set, &names, clients, &server.name, table.metric))
        },
    })
}

/// The geometric mean over rows, if each run that is behind one of them is behind all of them.
fn geometric(
    set: &Set<'_>,
    rows: &[&str],
    clients: u32,
    server: &str,
    metric: Metric,
) -> Option<Ratio> {
    let cells: Vec<Vec<(LoadName<'_>, Vec<BlockValue>)>> = rows
        .iter()
        .map(|row| {
            let places = set.usable(row, clients, server).places;
            let values = places.iter().flat_map(|place| of_run(place, metric));
            values.collect()
        })
        .collect();
    let runs: Vec<LoadName<'_>> = cells.first()?.iter().map(|(run, _)| *run).collect();
    let complete =
        |cell: &Vec<(LoadName<'_>, _)>| cell.iter().map(|(run, _)| *run).eq(runs.iter().copied());
    if !cells.iter().all(complete) {
        return None;
    }
    let loads: Option<Vec<Ratio>> = (0..runs.len())
        .map(|run| {
            let of_run = cells.iter().filter_map(|cell| cell.get(run));
            joint_ratio(of_run.map(|(_, values)| values.as_slice()))
        })
        .collect();
    pooled(&loads?)
}

/// The geometric mean over rows that earlier runs stand for. Nobody knows how their errors go together, so
/// the interval is as wide as if all rows erred in one direction: half its logarithm is the mean of theirs.
fn geometric_via(
    set: &Set<'_>,
    rows: &[&str],
    clients: u32,
    server: &str,
    metric: Metric,
) -> Option<Ratio> {
    let ratios: Option<Vec<Ratio>> = rows
        .iter()
        .map(|row| Some(set.via_figure(server, (row, clients), metric)?.ratio))
        .collect();
    let ratios = ratios?;
    let over = |of: &dyn Fn(&Ratio) -> Option<f64>| {
        let values: Option<Vec<f64>> = ratios.iter().map(of).collect();
        geometric_mean(&values?)
    };
    let low = over(&|ratio| Some(ratio.ci95?.0));
    let high = over(&|ratio| Some(ratio.ci95?.1));
    Some(Ratio {
        estimate: over(&|ratio| Some(ratio.estimate))?,
        ci95: low.zip(high),
        ci90: None,
    })
}

/// A load: a run, and which of its sessions.
type LoadName<'a> = (&'a str, u32);

/// What a run says in each of its loads.
fn of_run<'a>(place: &Place<'_, 'a>, metric: Metric) -> Vec<(LoadName<'a>, Vec<BlockValue>)> {
    let values = place.metric(metric).map_or_else(Vec::new, block_values);
    let loads = place.loads(values.into_iter().map(|value| (value.block, value)));
    let session = |load: &[BlockValue]| {
        let first = load.first().map_or(0, |value| value.block);
        place.sessions().map_or(0, |all| all.of_block(first))
    };
    let named = loads
        .into_iter()
        .map(|load| ((place.run.source.run, session(&load)), load));
    named.collect()
}
