//! Tables with a column for each number of clients: what was measured in the same blocks.

use super::collect::{Block, Place, Set, Usable, number};
use super::figures::{ONE, absolutes, column, figure, row, unfit};
use super::places::Places;
use super::{Axis, Figure, StudyRow, StudyTable};
use crate::comparison::Metric;
use crate::loads::Loads;
use crate::study::notes;
use crate::thresholds::LEVEL_DIFFERENT;
use deltabench_model::plan::Group;
use std::collections::BTreeMap;

/// For each server its throughput at each number of clients, relative to the smallest of one placement.
pub(super) fn tables(places: &Places<'_>, set: &Set<'_>) -> Vec<StudyTable> {
    let clients: Vec<u32> = set.clients().into_iter().collect();
    let (clients, apart) = set.by_placement(None, &clients);
    let Some((&least, more)) = clients.split_first().filter(|(_, more)| !more.is_empty()) else {
        return Vec::new();
    };
    let tables = set.servers().into_iter().map(|server| StudyTable {
        axis: Axis::Clients,
        axis_name: format!("{}s", set.worker()),
        title: format!(
            "throughput of {server} relative to {}{}",
            set.workers(least),
            places.words(&set.position, None)
        ),
        metric: Metric::Throughput,
        worker: set.worker(),
        coordinates: [("server".to_owned(), server.to_owned())]
            .into_iter()
            .chain(places.coordinates(&set.position, None))
            .collect(),
        columns: clients.iter().map(|n| column(n.to_string())).collect(),
        base: 0,
        of_ratios: false,
        rows: set
            .rows(Some(least))
            .into_iter()
            .filter_map(|(name, group)| scaled(set, server, (name, group), least, more))
            .collect(),
        notes: notes::of_scaleup(set, &clients, &apart),
    });
    tables.filter(|table| !table.rows.is_empty()).collect()
}

fn scaled(
    set: &Set<'_>,
    server: &str,
    (name, group): (&str, Group),
    least: u32,
    more: &[u32],
) -> Option<StudyRow> {
    let Usable {
        places: first,
        void,
    } = set.usable(name, least, server);
    let speed = absolutes(&first, Metric::Throughput);
    let base = Figure {
        verdict: unfit(void),
        efficiency: Some(1.0),
        cpu: absolutes(&first, Metric::ServerCpuPerOperation)
            .centre()
            .map(|_| ONE),
        switches: has_switches(&first).then_some(ONE),
        ..figure(ONE, speed.centre()?.exp(), number(speed.number()))
    };
    let at = |&clients: &u32| {
        let here = set.usable(name, clients, server);
        let pairs = pairs(&first, &here.places);
        let ratios = |of: fn(&Block) -> Option<f64>| {
            let loads = |(place, first, here): &Pair<'_, '_>| place.loads(shared(first, here, of));
            Loads::new(pairs.iter().flat_map(loads))
        };
        let speed = ratios(|block| Some(block.rate));
        let ratio = speed.ratio(LEVEL_DIFFERENT)?;
        let absolute = absolutes(&here.places, Metric::Throughput).centre()?.exp();
        Some(Figure {
            verdict: unfit(void || here.void),
            efficiency: Some(ratio.estimate * f64::from(least) / f64::from(clients)),
            cpu: ratios(|block| block.cpu).ratio(LEVEL_DIFFERENT),
            switches: ratios(|block| block.switches).ratio(LEVEL_DIFFERENT),
            ..figure(ratio, absolute, number(speed.number()))
        })
    };
    let figures: Vec<Option<Figure>> = more.iter().map(at).collect();
    let any = figures.iter().any(Option::is_some);
    let all = [vec![Some(base)], figures].concat();
    row(name, group, all).filter(|_| any)
}

/// Whether some block knows its context switches.
fn has_switches(places: &[Place<'_, '_>]) -> bool {
    let mut blocks = places.iter().flat_map(Place::blocks);
    blocks.any(|block| block.switches.is_some())
}

/// Two cells of a run: where the first is, and the blocks of both.
type Pair<'s, 'a> = (Place<'s, 'a>, &'s [Block], &'s [Block]);

/// Both cells of each run that has both.
fn pairs<'s, 'a>(first: &[Place<'s, 'a>], second: &[Place<'s, 'a>]) -> Vec<Pair<'s, 'a>> {
    let both = first.iter().filter_map(|one| {
        let name = one.run.source.run;
        let two = second.iter().find(|two| two.run.source.run == name)?;
        Some((*one, one.blocks(), two.blocks()))
    });
    both.collect()
}

/// ln(here / first) of the blocks that both have, with their numbers.
fn shared(
    first: &[Block],
    here: &[Block],
    of: fn(&Block) -> Option<f64>,
) -> impl Iterator<Item = (u32, f64)> {
    let known: BTreeMap<u32, &Block> = first.iter().map(|block| (block.block, block)).collect();
    here.iter().filter_map(move |block| {
        let before = of(known.get(&block.block)?)?;
        Some((block.block, of(block)? - before))
    })
}
