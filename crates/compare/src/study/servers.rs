//! Tables with a column for each server: what was measured side by side.

use super::collect::{Place, Set, Usable, number};
use super::figures::{ONE, absolutes, column, figure, level, ratios, row};
use super::places::Places;
use super::{Axis, Column, Figure, GroupSpread, StudyTable, spreads, via};
use crate::comparison::{CellComparison, Metric, Ratio, Verdict};
use crate::hours;
use crate::loads::{Judged, Loads};
use crate::placebo::{self, Suspicion};
use crate::side::cpu_bound;
use crate::study::notes;
use crate::thresholds::LISTED_FALSE;
use deltabench_model::plan::Group;
use deltabench_stats::multiplicity::benjamini_hochberg;
use deltabench_stats::summary::geometric_mean;

/// The metrics that get tables.
const METRICS: [Metric; 2] = [Metric::Throughput, Metric::ServerCpuPerOperation];

/// A figure of throughput before the others of its place have been asked.
struct Draft {
    figure: Figure,
    p: Option<f64>,
    /// What the placebos of several loads have against its verdict, if that holds among all cells.
    suspicion: Option<Suspicion>,
    /// Whether several loads were judged together.
    pooled: bool,
}

impl Draft {
    /// A figure of its cell as far as the placebos leave it its verdict.
    fn trusted(&self, figure: Figure) -> Figure {
        let off = self.suspicion.is_some() && figure.verdict != Some(Verdict::Inconclusive);
        Figure {
            verdict: if off {
                Some(Verdict::Unfit)
            } else {
                figure.verdict
            },
            ..figure
        }
    }
}

/// A row before that, with a draft for each candidate.
struct DraftRow<'s> {
    name: &'s str,
    group: Group,
    drafts: Vec<Option<Draft>>,
}

/// The tables of a place: for each number of clients throughput and CPU per operation, with what sums them
/// up.
pub(super) fn tables(places: &Places<'_>, set: &Set<'_>) -> Vec<(StudyTable, Vec<GroupSpread>)> {
    let names = set.servers();
    let Some((base, candidates)) = names.split_first().filter(|(_, rest)| !rest.is_empty()) else {
        return Vec::new();
    };
    let clients: Vec<u32> = set.clients().into_iter().collect();
    let mut speed: Vec<Vec<DraftRow<'_>>> = clients
        .iter()
        .map(|&clients| draft_rows(set, clients, candidates))
        .collect();
    distrust(&mut speed, candidates.len());
    let unlisted = settle(&mut speed);
    let mut tables = Vec::new();
    for ((clients, drafts), unlisted) in clients.into_iter().zip(speed).zip(unlisted) {
        for metric in METRICS {
            let rows = drafts.iter().filter_map(|draft| {
                let drafts = draft.drafts.iter().map(|d| d.as_ref().map(|d| d.figure));
                let figures = match metric {
                    Metric::Throughput => drafts.collect(),
                    _ => costs(set, draft, clients, candidates),
                };
                let first = base_figure(set, draft.name, clients, base, metric, &figures);
                row(draft.name, draft.group, [vec![first], figures].concat())
            });
            let mut table = StudyTable {
                axis: Axis::Servers,
                axis_name: set.subject().to_owned(),
                title: title(
                    metric,
                    base,
                    &set.workers(clients),
                    &places.words(&set.position, None),
                ),
                metric,
                worker: set.worker(),
                coordinates: [("clients".to_owned(), clients.to_string())]
                    .into_iter()
                    .chain(places.coordinates(&set.position, None))
                    .collect(),
                columns: columns(places, set, clients),
                base: 0,
                of_ratios: false,
                rows: rows.collect(),
                notes: Vec::new(),
            };
            if table.rows.is_empty() {
                continue;
            }
            table.notes = notes::of_servers(&table, set, clients, unlisted);
            via::insert(&mut table, set, clients);
            let spreads = spreads::spreads(&table, set, clients);
            tables.push((table, spreads));
        }
    }
    tables
}

/// A column for each server, with dates where not all are of one time.
fn columns(places: &Places<'_>, set: &Set<'_>, clients: u32) -> Vec<Column> {
    let head = |name: &str| Column {
        measured: match places.several_times {
            true => set.measured(name, clients),
            false => Vec::new(),
        },
        ..column(name)
    };
    set.servers().into_iter().map(head).collect()
}

fn title(metric: Metric, base: &str, workers: &str, place: &str) -> String {
    let what = match metric {
        Metric::Throughput => "throughput",
        _ => "CPU per operation",
    };
    format!("{what} relative to {base}, {workers}{place}")
}

fn draft_rows<'s>(set: &'s Set<'_>, clients: u32, candidates: &[&str]) -> Vec<DraftRow<'s>> {
    let rows = set.rows(Some(clients)).into_iter();
    rows.map(|(name, group)| DraftRow {
        name,
        group,
        drafts: candidates
            .iter()
            .map(|server| draft(set, name, clients, server))
            .collect(),
    })
    .collect()
}

/// Throughput of a server in a cell, by one run as that run says, by several as they say together.
fn draft(set: &Set<'_>, row: &str, clients: u32, server: &str) -> Option<Draft> {
    let metric = Metric::Throughput;
    let usable = set.usable(row, clients, server).with(metric);
    if let [one] = usable.places.as_slice() {
        let (cell, found) = (one.comparison()?, one.metric(metric)?);
        return Some(Draft {
            figure: Figure {
                verdict: Some(own(one, cell.verdict)),
                ..figure(found.ratio, found.candidate, loads_of(one, metric))
            },
            p: cell.p,
            suspicion: None,
            pooled: false,
        });
    }
    let figure = pooled(&usable, metric)?;
    let places = &usable.places;
    let bound = { places.iter() }.all(|place| place.planned().is_some_and(cpu_bound));
    let cells: Vec<&CellComparison> = places.iter().filter_map(Place::comparison).collect();
    let found = hours::verdict(bound, &cells, (delta(&usable), level(places)));
    Some(Draft {
        figure: Figure {
            verdict: figure.verdict.map(|verdict| match verdict {
                Verdict::Unfit => verdict,
                _ => found.verdict,
            }),
            ..figure
        },
        p: found.p,
        suspicion: suspicion(&usable),
        pooled: true,
    })
}

/// How many loads a run's own figure comes from.
fn loads_of(place: &Place<'_, '_>, metric: Metric) -> u32 {
    number(ratios(&[*place], metric).number())
}

/// What a run says of a cell, unless that was withdrawn.
fn own(place: &Place<'_, '_>, verdict: Verdict) -> Verdict {
    if place.withdrawn() {
        Verdict::Unfit
    } else {
        verdict
    }
}

/// δ may be each run's own, by its noise: the largest claims least.
fn delta(usable: &Usable<'_, '_>) -> f64 {
    let deltas = usable.places.iter().filter_map(|place| place.comparison());
    deltas.map(|cell| cell.delta).fold(0.0, f64::max)
}

fn judged(usable: &Usable<'_, '_>, metric: Metric) -> Judged {
    let places = &usable.places;
    ratios(places, metric).judge(metric, delta(usable), level(places))
}

/// What the placebos of these runs together have against verdicts, by the rule for one run.
fn suspicion(usable: &Usable<'_, '_>) -> Option<Suspicion> {
    let placebos = usable.places.iter().flat_map(|place| {
        let placebo = place
            .placebo()
            .and_then(|cell| cell.metric(Metric::Throughput));
        placebo.map_or_else(Vec::new, |found| found.by_session(place.sessions()))
    });
    let shares = usable.places.iter().map(Place::share_of_placebo);
    let share = shares.fold(0.0, f64::max);
    Loads::new(placebos).suspicion(share, delta(usable))
}

/// A figure of several loads with its verdict.
fn pooled(usable: &Usable<'_, '_>, metric: Metric) -> Option<Figure> {
    let places = &usable.places;
    let loads = ratios(places, metric);
    let found = places.iter().filter_map(|place| place.metric(metric));
    let absolute: Vec<f64> = found.map(|metric| metric.candidate).collect();
    let judged = judged(usable, metric);
    let figure = Figure {
        verdict: Some(if usable.void {
            Verdict::Unfit
        } else {
            judged.verdict
        }),
        ..figure(
            loads.ratio(level(places))?,
            geometric_mean(&absolute)?,
            number(loads.number()),
        )
    };
    Some(figure)
}

/// CPU per operation of every candidate: each judged alone.
fn costs(
    set: &Set<'_>,
    row: &DraftRow<'_>,
    clients: u32,
    candidates: &[&str],
) -> Vec<Option<Figure>> {
    let metric = Metric::ServerCpuPerOperation;
    let cost = |(server, draft): (&&str, &Option<Draft>)| {
        let usable = set.usable(row.name, clients, server).with(metric);
        if let [one] = usable.places.as_slice() {
            let (cell, found) = (one.comparison()?, one.metric(metric)?);
            let verdict = match cell.verdict {
                Verdict::Unfit => Some(Verdict::Unfit),
                _ => found.verdict.map(|verdict| own(one, verdict)),
            };
            return Some(Figure {
                verdict,
                ..figure(found.ratio, found.candidate, 1)
            });
        }
        let figure = pooled(&usable, metric)?;
        Some(match draft {
            Some(draft) => draft.trusted(figure),
            None => figure,
        })
    };
    std::iter::zip(candidates, &row.drafts).map(cost).collect()
}

/// The base beside candidates that have a figure.
fn base_figure(
    set: &Set<'_>,
    row: &str,
    clients: u32,
    base: &str,
    metric: Metric,
    candidates: &[Option<Figure>],
) -> Option<Figure> {
    let loads: Loads = absolutes(&set.usable(row, clients, base).places, metric);
    let most = candidates.iter().flatten().map(|figure| figure.repetitions);
    Some(figure(ONE, loads.centre()?.exp(), most.max()?))
}

/// Takes the verdicts where the placebos of several loads are off, as [`crate::analyse()`] does for those of
/// one: what holds among all cells, for each candidate.
fn distrust(tables: &mut [Vec<DraftRow<'_>>], candidates: usize) {
    for at in 0..candidates {
        let mut drafts: Vec<Option<&mut Draft>> = { tables.iter_mut().flatten() }
            .map(|row| row.drafts.get_mut(at)?.as_mut())
            .collect();
        let found = drafts.iter().map(|draft| draft.as_ref()?.suspicion);
        let found = placebo::among(found.collect());
        for (draft, off) in std::iter::zip(&mut drafts, found) {
            if let Some(draft) = draft {
                draft.suspicion = off;
                draft.figure = draft.trusted(draft.figure);
            }
        }
    }
}

/// Takes back the regressions and improvements of several loads that do not hold among so many, as
/// [`crate::multiple::adjust`] does for those of one; says how many, for each number of clients.
fn settle(tables: &mut [Vec<DraftRow<'_>>]) -> Vec<usize> {
    let all = |rows: &[Vec<DraftRow<'_>>]| -> Vec<f64> {
        let drafts = rows.iter().flatten().flat_map(|row| &row.drafts);
        drafts
            .map(|draft| draft.as_ref().and_then(|draft| draft.p).unwrap_or(1.0))
            .collect()
    };
    let mut listed = benjamini_hochberg(&all(tables)).into_iter();
    let mut counts = Vec::new();
    for table in tables {
        let mut unlisted = 0;
        for draft in table.iter_mut().flat_map(|row| &mut row.drafts) {
            let p = listed.next();
            let Some(draft) = draft.as_mut().filter(|draft| draft.pooled) else {
                continue;
            };
            let different = draft.figure.verdict.is_some_and(Verdict::is_change);
            if different && p.is_some_and(|p| p > LISTED_FALSE) {
                draft.figure.verdict = Some(Verdict::Inconclusive);
                unlisted += 1;
            }
        }
        counts.push(unlisted);
    }
    counts
}

/// The relative value of a server in a place, of all its loads together.
pub(super) fn relative(places: &[Place<'_, '_>]) -> Option<Ratio> {
    let found: Vec<_> = places
        .iter()
        .filter_map(|place| place.metric(Metric::Throughput))
        .collect();
    match found.as_slice() {
        [one] => Some(one.ratio),
        _ => ratios(places, Metric::Throughput).ratio(level(places)),
    }
}
