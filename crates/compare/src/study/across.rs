//! Tables whose columns are different runs: sizes, memory, devices, machines.

use super::collect::{Set, number};
use super::figures::{ONE, absolutes, column, figure, level, ratios, row, unfit};
use super::places::{Dimension, Places};
use super::servers::relative;
use super::{Column, Figure, StudyRow, StudyTable, distinct};
use crate::comparison::{Metric, Ratio};
use crate::loads::Loads;
use crate::study::notes;
use crate::thresholds::LEVEL_DIFFERENT;
use deltabench_model::plan::Group;
use deltabench_stats::summary::geometric_mean;
use std::collections::BTreeSet;

/// The sets that differ on one dimension only, in the order of its values.
struct Line<'s, 'a> {
    places: &'s Places<'a>,
    dimension: usize,
    axis: &'s Dimension,
    sets: Vec<&'s Set<'a>>,
    columns: Vec<Column>,
}

/// For each dimension, holding the others: throughput of each server, and each candidate's relative
/// throughput, at each value relative to the first.
pub(super) fn tables(places: &Places<'_>, sets: &[Set<'_>]) -> Vec<StudyTable> {
    let mut tables = Vec::new();
    for line in lines(places, sets) {
        let clients: BTreeSet<u32> = line.sets.iter().flat_map(|set| set.clients()).collect();
        let servers = distinct(line.sets.iter().flat_map(|set| set.servers()));
        for &clients in &clients {
            for (at, server) in servers.iter().enumerate() {
                tables.extend(line.table(clients, server, None));
                if let Some(base) = servers.first().filter(|_| at > 0) {
                    tables.extend(line.table(clients, server, Some(base)));
                }
            }
        }
    }
    tables
}

fn lines<'s, 'a>(places: &'s Places<'a>, sets: &'s [Set<'a>]) -> Vec<Line<'s, 'a>> {
    let mut lines = Vec::new();
    for (dimension, axis) in places.dimensions.iter().enumerate() {
        let others = |set: &Set<'_>| -> Vec<usize> {
            let all = set.position.iter().enumerate();
            all.filter(|(at, _)| *at != dimension)
                .map(|(_, index)| *index)
                .collect()
        };
        for held in distinct(sets.iter().map(others)) {
            let mut along: Vec<&Set<'_>> = sets.iter().filter(|s| others(s) == held).collect();
            along.sort_by_key(|set| set.position.get(dimension).copied());
            if along.len() < 2 {
                continue;
            }
            let columns = along.iter().map(|set| Column {
                cost_per_month: cost(set),
                ..column(value(axis, set, dimension))
            });
            lines.push(Line {
                places,
                dimension,
                axis,
                columns: columns.collect(),
                sets: along,
            });
        }
    }
    lines
}

fn value(axis: &Dimension, set: &Set<'_>, dimension: usize) -> String {
    let index = set.position.get(dimension).copied().unwrap_or(0);
    axis.values.get(index).cloned().unwrap_or_default()
}

/// The price of a place, if all its runs have the same.
fn cost(set: &Set<'_>) -> Option<f64> {
    let prices = set.runs.iter().map(|run| {
        let storage = run.source.plan.limits.storage.as_ref();
        storage.and_then(|profile| profile.cost_per_month)
    });
    let mut prices = distinct(prices.map(|price| price.map(f64::to_bits)));
    let only = prices.pop().filter(|_| prices.is_empty())?;
    only.map(f64::from_bits).filter(|price| *price > 0.0)
}

impl Line<'_, '_> {
    /// Throughput of a server, or with a base its throughput relative to that, at each value relative to the
    /// first.
    fn table(&self, clients: u32, server: &str, base: Option<&str>) -> Option<StudyTable> {
        let first = self.sets.first()?;
        let names = self.sets.iter().flat_map(|set| set.rows(Some(clients)));
        let mut known = BTreeSet::new();
        let rows: Vec<StudyRow> = names
            .filter(|(name, _)| known.insert(*name))
            .filter_map(|row| self.row(clients, server, base.is_some(), row))
            .collect();
        if rows.is_empty() {
            return None;
        }
        let (axis, start) = (&self.axis.name, &self.columns.first()?.name);
        let place = self.places.words(&first.position, Some(self.dimension));
        let workers = first.workers(clients);
        let title = match base {
            None => {
                format!("throughput of {server} relative to {axis} {start}, {workers}{place}")
            }
            Some(base) => format!(
                "throughput of {server} relative to {base}, over that at {axis} {start}, \
                 {workers}{place}"
            ),
        };
        let here = [
            ("clients".to_owned(), clients.to_string()),
            ("server".to_owned(), server.to_owned()),
        ];
        let places = self
            .places
            .coordinates(&first.position, Some(self.dimension));
        Some(StudyTable {
            axis: self.axis.axis,
            axis_name: axis.clone(),
            title,
            metric: Metric::Throughput,
            worker: first.worker(),
            coordinates: here.into_iter().chain(places).collect(),
            columns: self.columns.clone(),
            base: 0,
            of_ratios: base.is_some(),
            notes: notes::of_runs(self.axis.axis, axis, base.is_some(), &rows),
            rows,
        })
    }

    fn row(
        &self,
        clients: u32,
        server: &str,
        of_ratios: bool,
        (name, group): (&str, Group),
    ) -> Option<StudyRow> {
        let cells: Vec<Cell> = self
            .sets
            .iter()
            .map(|set| Cell::new(set, clients, server, name, of_ratios))
            .collect();
        let first = cells.first()?;
        let figures = cells.iter().enumerate().map(|(at, cell)| {
            let ratio = if at == 0 {
                first.loads.centre().map(|_| ONE)?
            } else {
                cell.loads
                    .ratio_to(&first.loads, first.level.max(cell.level))?
            };
            let absolute = cell.absolute?;
            let price = self
                .columns
                .get(at)
                .and_then(|column| column.cost_per_month);
            let repetitions = first.loads.number().min(cell.loads.number());
            Some(Figure {
                verdict: unfit(cell.unfit || (at > 0 && first.unfit)),
                relative: cell.relative,
                per_cost: price.filter(|_| !of_ratios).map(|p| absolute / p),
                ..figure(ratio, absolute, number(repetitions))
            })
        });
        let figures: Vec<Option<Figure>> = figures.collect();
        let compared = figures.iter().skip(1).any(Option::is_some);
        row(name, group, figures).filter(|_| compared)
    }
}

/// A server in a cell at one value.
struct Cell {
    loads: Loads,
    level: f64,
    absolute: Option<f64>,
    relative: Option<Ratio>,
    unfit: bool,
}

impl Cell {
    fn new(set: &Set<'_>, clients: u32, server: &str, row: &str, of_ratios: bool) -> Self {
        let usable = set.usable(row, clients, server);
        if !of_ratios {
            let speed = absolutes(&usable.places, Metric::Throughput);
            return Self {
                level: LEVEL_DIFFERENT,
                absolute: speed.centre().map(f64::exp),
                loads: speed,
                relative: None,
                unfit: usable.void,
            };
        }
        let usable = usable.with(Metric::Throughput);
        let places = &usable.places;
        let found = places.iter().filter_map(|p| p.metric(Metric::Throughput));
        let absolute: Vec<f64> = found.map(|metric| metric.candidate).collect();
        Self {
            loads: ratios(places, Metric::Throughput),
            level: level(places),
            absolute: geometric_mean(&absolute),
            relative: relative(places),
            unfit: usable.unfit(),
        }
    }
}
