//! Grids: a row for each number of clients, absolute figures, a column for each server or machine.

use super::collect::{Place, Set, Usable, number};
use super::figures::{absolutes, unfit};
use super::places::Places;
use super::{Absolute, Axis, Grid, GridColumn, GridPoint, StudyTable, distinct, notes};
use crate::absolute::{CellResult, Latency, Tally};
use crate::comparison::{Metric, Ratio, Verdict};
use crate::loads::Loads;
use crate::segments::{Point, segments};
use crate::thresholds::LEVEL_DIFFERENT;
use deltabench_model::plan::Group;
use deltabench_stats::summary::mean;
use std::collections::BTreeMap;

/// For each workload of each place that has several numbers of clients, or is a mix of scripts: the servers
/// beside each other; then for each server the machines, where there are several.
pub(super) fn grids(places: &Places<'_>, sets: &[Set<'_>], tables: &[StudyTable]) -> Vec<Grid> {
    let mut grids = Vec::new();
    for set in sets {
        for (name, group) in set.rows(None) {
            grids.extend(of_servers(places, set, (name, group), tables));
        }
    }
    let host = places
        .dimensions
        .iter()
        .position(|dimension| dimension.axis == Axis::Host);
    let Some(host) = host else { return grids };
    for line in lines(sets, host) {
        let rows = distinct(line.iter().flat_map(|set| set.rows(None)));
        let servers = distinct(line.iter().flat_map(|set| set.servers()));
        for row in rows {
            let of = servers.iter();
            grids.extend(of.filter_map(|server| of_hosts(places, &line, host, row, server)));
        }
    }
    grids
}

/// Sets that differ in the machine alone.
fn lines<'s, 'a>(sets: &'s [Set<'a>], host: usize) -> Vec<Vec<&'s Set<'a>>> {
    let others = |set: &Set<'_>| {
        let mut position = set.position.clone();
        position.remove(host);
        position
    };
    let all = distinct(sets.iter().map(others)).into_iter();
    all.map(|held| sets.iter().filter(|set| others(set) == held).collect())
        .filter(|line: &Vec<_>| line.len() > 1)
        .collect()
}

/// The numbers of clients of a row, if it makes a grid.
fn clients<'s>(sets: impl Iterator<Item = &'s Set<'s>> + Clone, row: &str) -> Vec<u32> {
    let all = sets.clone().flat_map(Set::clients);
    let mut found: Vec<u32> = all
        .filter(|&clients| sets.clone().any(|set| set.has(row, clients)))
        .collect();
    found.sort_unstable();
    found.dedup();
    let scripts = || sets.clone().any(|set| set.is_of_scripts(row));
    if found.len() > 1 || scripts() {
        found
    } else {
        Vec::new()
    }
}

fn of_servers(
    places: &Places<'_>,
    set: &Set<'_>,
    (name, group): (&str, Group),
    tables: &[StudyTable],
) -> Option<Grid> {
    let clients = clients(std::iter::once(set), name);
    let (alike, apart) = set.by_placement(Some(name), &clients);
    let coordinates: Vec<_> = places.coordinates(&set.position, None).collect();
    let servers = set.servers();
    let columns = servers.iter().enumerate().map(|(at, server)| {
        let points = clients.iter().map(|&clients| {
            let usable = set.usable(name, clients, server);
            let judged = judged(tables, &coordinates, clients, name, server);
            let (relative, verdict) = judged.filter(|_| at > 0).unzip();
            let point = point(&usable)?;
            Some(GridPoint {
                relative,
                verdict: point.verdict.or(verdict.flatten()),
                ..point
            })
        });
        column(server, (&clients, &apart), points.collect())
    });
    let columns: Vec<GridColumn> = columns.collect();
    grid(Grid {
        axis: Axis::Servers,
        axis_name: "server".to_owned(),
        title: format!(
            "{name} by {}s{}",
            set.worker(),
            places.words(&set.position, None)
        ),
        workload: name.to_owned(),
        worker: set.worker(),
        group,
        coordinates,
        placement: placement(set, name, &alike, &apart),
        clients,
        apart,
        columns,
    })
}

/// Where client and server of a row ran; nothing where it has one number of clients.
fn placement(set: &Set<'_>, row: &str, alike: &[u32], apart: &[u32]) -> Option<String> {
    let several = alike.len() + apart.len() > 1;
    several.then(|| notes::of_placement(set, Some(row), alike, apart))?
}

fn of_hosts(
    places: &Places<'_>,
    line: &[&Set<'_>],
    host: usize,
    (name, group): (&str, Group),
    server: &str,
) -> Option<Grid> {
    let first = line.first()?;
    let clients = clients(line.iter().copied(), name);
    let by_set = { line.iter() }.map(|set| set.by_placement(Some(name), &clients).1);
    let apart: Vec<u32> = distinct(by_set.flatten());
    let alike = clients.iter().copied().filter(|one| !apart.contains(one));
    let placement = placement(first, name, &alike.collect::<Vec<u32>>(), &apart);
    let hosts = &places.dimensions.get(host)?.values;
    let speed = |usable: &Usable<'_, '_>| absolutes(&usable.places, Metric::Throughput);
    let columns = line.iter().enumerate().map(|(at, set)| {
        let points = clients.iter().map(|&clients| {
            let usable = set.usable(name, clients, server);
            let base = speed(&first.usable(name, clients, server));
            let relative = speed(&usable).ratio_to(&base, LEVEL_DIFFERENT);
            Some(GridPoint {
                relative: relative.filter(|_| at > 0),
                ..point(&usable)?
            })
        });
        let index = set.position.get(host).copied().unwrap_or(0);
        let name = hosts.get(index).map_or("", String::as_str);
        column(name, (&clients, &apart), points.collect())
    });
    let columns: Vec<GridColumn> = columns.collect();
    let place = places.words(&first.position, Some(host));
    grid(Grid {
        axis: Axis::Host,
        axis_name: "host".to_owned(),
        title: format!("{name} by {}s and host, {server}{place}", first.worker()),
        workload: name.to_owned(),
        worker: first.worker(),
        group,
        coordinates: std::iter::once(("server".to_owned(), server.to_owned()))
            .chain(places.coordinates(&first.position, Some(host)))
            .collect(),
        placement,
        clients,
        apart,
        columns,
    })
}

/// A grid with something in it.
fn grid(grid: Grid) -> Option<Grid> {
    let mut points = grid.columns.iter().flat_map(|column| &column.points);
    points.any(Option::is_some).then_some(grid)
}

/// `apart` are the numbers of clients with another placement: its segments go without.
fn column(
    name: &str,
    (clients, apart): (&[u32], &[u32]),
    points: Vec<Option<GridPoint>>,
) -> GridColumn {
    let line: Vec<Point> = clients
        .iter()
        .zip(&points)
        .filter(|(clients, _)| !apart.contains(clients))
        .filter_map(|(&clients, point)| {
            let point = point.as_ref()?;
            (point.verdict != Some(Verdict::Unfit)).then_some(Point {
                clients,
                tps: point.throughput.estimate,
                ci95: point.throughput.ci95,
                samples: point.samples,
            })
        })
        .collect();
    GridColumn {
        name: name.to_owned(),
        points,
        segments: segments(&line),
    }
}

/// What the table of servers says of a server: relative throughput and verdict.
fn judged(
    tables: &[StudyTable],
    place: &[(String, String)],
    clients: u32,
    row: &str,
    server: &str,
) -> Option<(Ratio, Option<Verdict>)> {
    let clients = ("clients".to_owned(), clients.to_string());
    let table = tables.iter().find(|table| {
        let here = std::iter::once(&clients).chain(place);
        table.axis == Axis::Servers
            && table.metric == Metric::Throughput
            && here.eq(&table.coordinates)
    })?;
    let column = table.columns.iter().position(|one| one.name == server)?;
    let row = table.rows.iter().find(|one| one.name == row)?;
    let figure = row.figures.get(column)?.as_ref()?;
    Some((figure.ratio, figure.verdict))
}

/// A server in a cell without what it is relative to.
fn point(usable: &Usable<'_, '_>) -> Option<GridPoint> {
    let speed = absolutes(&usable.places, Metric::Throughput);
    let latency = |of: fn(&Latency) -> f64| {
        let loads = |place: &Place<'_, '_>| {
            let copies = place.results().into_iter();
            let copies: Vec<BTreeMap<u32, f64>> =
                copies.map(|result| latencies(result, of)).collect();
            let first = copies.first().into_iter().flatten();
            let values = first.filter_map(|(block, _)| {
                let logs = copies.iter().map(|copy| copy.get(block).copied());
                Some((*block, mean(&logs.collect::<Option<Vec<f64>>>()?)?))
            });
            place.loads(values)
        };
        absolute(&Loads::new(usable.places.iter().flat_map(loads)))
    };
    Some(GridPoint {
        throughput: absolute(&speed)?,
        samples: number(if speed.number() > 1 {
            speed.number()
        } else {
            speed.blocks()
        }),
        relative: None,
        verdict: unfit(usable.void),
        average_us: latency(|latency| latency.average_us),
        p50_us: latency(|latency| latency.p50_us),
        p95_us: latency(|latency| latency.p95_us),
        p99_us: latency(|latency| latency.p99_us),
        repetitions: number(speed.number()),
    })
}

/// ln of a latency of a server by block.
fn latencies(result: &CellResult, of: fn(&Latency) -> f64) -> BTreeMap<u32, f64> {
    let latency = |(block, tally): &(u32, Tally)| Some((*block, of(tally.latency.as_ref()?)));
    let known = result.blocks.iter().filter_map(latency);
    known
        .filter(|(_, value)| *value > 0.0)
        .map(|(block, value)| (block, value.ln()))
        .collect()
}

/// exp of the mean of logarithms, with its interval.
fn absolute(loads: &Loads) -> Option<Absolute> {
    let found = loads.ratio(LEVEL_DIFFERENT)?;
    Some(Absolute {
        estimate: found.estimate,
        ci95: found.ci95,
    })
}
