//! What a host's own earlier runs say of how much a ratio moves from hour to hour.
//!
//! Runs that compared the same builds with the same work some minutes apart are repetitions: what their
//! ratios differ by, beyond what their blocks explain, is what the hour does. Nothing is kept for this:
//! it follows from the records, as everything does.

use crate::hosts::RunHost;
use crate::judged::Judged;
use crate::pair::{Hash, Kind, Pair, pairs};
use crate::past::Past;
use crate::past_runs::{PastRuns, RunsOfHost};
use crate::store_problem;
use crate::told::{Told, ToldCell};
use crate::withdrawal::is_withdrawn;
use deltabench_compare::comparison::{Comparison, Metric};
use deltabench_compare::thresholds::HOUR_APART_MS;
use deltabench_compare::{
    Earlier, EarlierRun, Repeated, SessionTimes, allow_for_slow_hours, foretell,
};
use deltabench_model::invalidation::Invalidation;
use deltabench_model::plan::Plan;
use deltabench_model::problem::Problem;
use deltabench_store::Store;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Runs that are read at most, the newest: each that is not known has to be judged.
const MOST: usize = 12;

/// What the runs of one comparison found in a cell, each with the number of its hour.
type Found<'a> = Vec<(usize, &'a ToldCell)>;

/// That by kind and series, and in it by comparison.
type Figures<'a> = BTreeMap<(Kind, Hash), BTreeMap<Hash, Found<'a>>>;

/// Adds to a run of one session what another hour would say, by the runs that its host had finished before it
/// began. Later runs change nothing, so that a report stays the same.
///
/// Errors: the store cannot be read.
pub(crate) fn add(judged: &mut Judged, past: &PastRuns, store: &Store) -> Result<(), Problem> {
    let own = pairs(&judged.run, &judged.plan, store)?;
    let host = RunHost::of(&judged.run, store).map_err(store_problem)?;
    let is_virtual = is_virtual(host.as_ref());
    let mut repetitions = Vec::new();
    for repetition in earlier(judged, &own, (past, host.as_ref()), store)? {
        let run = &repetition.past;
        let withdrawn = store.invalidations(&run.name).map_err(store_problem)?;
        let told = past.told(run, store)?;
        repetitions.push((repetition, told, withdrawn));
    }
    let mut figures = Figures::new();
    for (repetition, told, withdrawn) in &repetitions {
        repetition.add_to(&mut figures, told, withdrawn);
    }
    let metrics = Metric::ALL.iter();
    let scattered: BTreeMap<&str, Scattered<'_>> = metrics
        .map(|metric| (metric.key(), scattered(*metric, &figures)))
        .collect();
    foretell(&mut judged.comparison, |cell, metric| {
        let pair = own.iter().find(|pair| pair.is(cell));
        let cells = scattered.get(metric.key());
        { pair.zip(cells) }.map_or_else(Earlier::default, |(pair, cells)| Earlier {
            is_unsteady: is_virtual && pair.is_far(),
            ..known_of(pair, metric, &figures, cells)
        })
    });
    Ok(())
}

/// Allows for slow hours in what the sessions of a run say of another hour, in the cells and of the
/// candidates that such hours may move; `times` are those of the sessions that count.
///
/// Errors: the store cannot be read.
pub(crate) fn add_slow_hours(
    comparison: &mut Comparison,
    (run, plan): (&str, &Plan),
    times: &[SessionTimes],
    store: &Store,
) -> Result<(), Problem> {
    let host = RunHost::of(run, store).map_err(store_problem)?;
    if !is_virtual(host.as_ref()) {
        return Ok(());
    }
    let own = pairs(run, plan, store)?;
    allow_for_slow_hours(comparison, times, |cell| {
        own.iter().any(|pair| pair.is(cell) && pair.is_far())
    });
    Ok(())
}

fn is_virtual(host: Option<&RunHost>) -> bool {
    host.is_some_and(|host| host.class().virtual_machine == Some(true))
}

/// How the comparisons of each cell scattered, by kind and series.
type Scattered<'a> = BTreeMap<&'a (Kind, Hash), Arc<Repeated>>;

fn scattered<'a>(metric: Metric, figures: &'a Figures<'_>) -> Scattered<'a> {
    let of = |sets: &BTreeMap<Hash, Found<'_>>| {
        let sets = sets.values().map(|set| values(set, metric).collect());
        Arc::new(Repeated::of(sets))
    };
    figures
        .iter()
        .map(|(cell, sets)| (cell, of(sets)))
        .collect()
}

/// What runs found of a metric: the hour of each, and its blocks.
fn values<'a>(set: &'a Found<'_>, metric: Metric) -> impl Iterator<Item = (usize, &'a [f64])> {
    let blocks = move |(hour, cell): &(usize, &'a ToldCell)| {
        let (blocks, _) = cell.metric(metric)?;
        Some((*hour, blocks))
    };
    set.iter().filter_map(blocks)
}

/// What these figures are for a pair: of itself, of its cell, and of the other cells.
fn known_of(pair: &Pair, metric: Metric, figures: &Figures<'_>, cells: &Scattered<'_>) -> Earlier {
    let cell = (pair.kind, pair.key);
    let others = { cells.iter() }.filter(|(other, _)| other.0 == pair.kind && ***other != cell);
    let mut known = Earlier {
        others: others.map(|(_, scattered)| Arc::clone(scattered)).collect(),
        ..Earlier::default()
    };
    for (same, set) in figures.get(&cell).into_iter().flatten() {
        let runs = values(set, metric).map(|(hour, blocks)| EarlierRun {
            hour,
            blocks: blocks.to_vec(),
        });
        match *same == pair.same {
            true => known.pair = runs.collect(),
            false => known.cell.push(runs.collect()),
        }
    }
    known
}

/// A run that repeats a comparison, or is repeated.
struct Repetition {
    past: Arc<Past>,
    /// The comparisons of it that count.
    same: BTreeSet<Hash>,
    /// As [`EarlierRun::hour`].
    hour: usize,
}

impl Repetition {
    /// Adds what it told. Of two candidates that are one build the first counts.
    fn add_to<'a>(&self, figures: &mut Figures<'a>, told: &'a Told, withdrawn: &[Invalidation]) {
        let mut same = self.same.clone();
        for pair in self.past.pairs().iter().filter(|_| told.host_ok) {
            if !same.remove(&pair.same) {
                continue;
            }
            let is = |cell: &&ToldCell| (cell.cell, cell.candidate) == (pair.cell, pair.candidate);
            let mut cells = told.cells.iter().filter(is);
            let cell = cells.find(|cell| !is_withdrawn(withdrawn, cell.cell));
            let sets = figures.entry((pair.kind, pair.key)).or_default();
            let found = cell.map(|cell| (self.hour, cell));
            sets.entry(pair.same).or_default().extend(found);
        }
    }
}

/// Numbers hours: runs that follow each other within 10 minutes have one, whatever they compared.
#[derive(Default)]
pub(crate) struct Hour {
    number: usize,
    ended_unix_ms: Option<i64>,
}

impl Hour {
    /// That of a run, later than those before; 0 if it ended just before this moment.
    pub(crate) fn of(&mut self, (began, ended): (i64, i64), now: i64) -> usize {
        if now - ended < HOUR_APART_MS {
            return 0;
        }
        let last = self.ended_unix_ms;
        if last.is_none_or(|last| began - last >= HOUR_APART_MS) {
            self.number += 1;
        }
        self.ended_unix_ms = last.max(Some(ended));
        self.number
    }
}

/// The newest runs that this host had finished before a run began, and that repeat a comparison of one of its
/// kinds in different hours, or are themselves repeated by it; oldest first.
fn earlier(
    judged: &Judged,
    own: &[Pair],
    (past, host): (&PastRuns, Option<&RunHost>),
    store: &Store,
) -> Result<Vec<Repetition>, Problem> {
    let began = store.began_unix_ms(&judged.run).map_err(store_problem)?;
    let (Some(began), Some(host)) = (began.filter(|_| !own.is_empty()), host) else {
        return Ok(Vec::new());
    };
    let Some(known) = past.of_host(host) else {
        return Ok(Vec::new());
    };
    let mut look = Look::new((judged, own, began), known);
    let kinds: BTreeSet<Kind> = own.iter().map(|pair| pair.kind).collect();
    let mut kept: Vec<(usize, BTreeSet<Hash>)> = Vec::new();
    for (at, past) in known.runs.iter().enumerate().take(look.until).rev() {
        if kept.len() == MOST {
            break;
        }
        if !look.may_count(at) {
            continue;
        }
        let (mut same, mut repeats) = (BTreeSet::new(), false);
        let pairs = past.pairs().iter();
        for pair in pairs.filter(|pair| kinds.contains(&pair.kind)) {
            let counted = look.counted(&pair.same);
            if counted.runs.binary_search(&at).is_ok() {
                repeats |= counted.number > 1;
                same.insert(pair.same);
            }
        }
        if repeats {
            kept.push((at, same));
        }
    }
    let places: Vec<usize> = kept.iter().map(|(at, _)| *at).collect();
    let hours = look.hours(&places);
    let repetition = |(at, same): (usize, BTreeSet<Hash>)| {
        Some(Repetition {
            past: Arc::clone(known.runs.get(at)?),
            same,
            hour: *hours.get(&at)?,
        })
    };
    Ok(kept.into_iter().rev().filter_map(repetition).collect())
}

/// The runs of a host, as a run sees them that began later.
struct Look<'a> {
    known: &'a RunsOfHost,
    /// How many of them began before it: later ones have not ended, whatever a clock that was set back says.
    until: usize,
    /// The place of the run itself.
    own: Option<usize>,
    /// That of the run that it measures again: that one was selected by what it found.
    selected: Option<usize>,
    began: i64,
    repeated: BTreeSet<Hash>,
    counted: BTreeMap<Hash, Counted>,
}

/// The runs that count for a comparison.
#[derive(Default)]
struct Counted {
    /// By their places, in order.
    runs: Vec<usize>,
    /// How many there are, with the run that looks.
    number: usize,
}

impl<'a> Look<'a> {
    fn new((judged, own, began): (&Judged, &[Pair], i64), known: &'a RunsOfHost) -> Self {
        let place = |name: &String| known.by_name.get(name).copied();
        Self {
            known,
            until: known.runs.partition_point(|past| past.began_ms < began),
            own: place(&judged.run),
            selected: judged.plan.confirms.as_ref().and_then(place),
            began,
            repeated: own.iter().map(|pair| pair.same).collect(),
            counted: BTreeMap::new(),
        }
    }

    /// Whether it is another run that had ended, and nothing selected it.
    fn may_count(&self, at: usize) -> bool {
        let is_other = self.selected != Some(at) && self.own != Some(at);
        let past = self.known.runs.get(at).filter(|_| is_other);
        past.is_some_and(|past| past.ended_ms < self.began)
    }

    /// The runs that count for a comparison: of those in one hour the first, because they share its luck.
    fn counted(&mut self, same: &Hash) -> &Counted {
        if !self.counted.contains_key(same) {
            let mut counted = Counted {
                runs: Vec::new(),
                number: usize::from(self.repeated.contains(same)),
            };
            let mut last: Option<i64> = None;
            let all = self.known.by_comparison.get(same).into_iter().flatten();
            let all = all.take_while(|at| **at < self.until);
            for at in all.filter(|at| self.may_count(**at)) {
                let Some(past) = self.known.runs.get(*at) else {
                    continue;
                };
                let near = last.is_some_and(|end| past.began_ms - end < HOUR_APART_MS);
                let repeated = self.repeated.contains(same);
                let here = repeated && self.began - past.ended_ms < HOUR_APART_MS;
                if !near && !here {
                    last = Some(past.ended_ms);
                    counted.runs.push(*at);
                    counted.number += 1;
                }
            }
            self.counted.insert(*same, counted);
        }
        self.counted.entry(*same).or_default()
    }

    /// The hours of these runs, by their places. They are counted from the last one that surely begins before
    /// the first of these.
    fn hours(&self, wanted: &[usize]) -> BTreeMap<usize, usize> {
        let mut hour = Hour::default();
        let last = wanted.iter().max().map_or(0, |last| last + 1);
        let first = wanted
            .iter()
            .min()
            .map_or(last, |first| self.known.hour_of(*first));
        let runs = self.known.runs.iter().enumerate().take(last);
        runs.skip(first)
            .filter(|(at, _)| self.may_count(*at))
            .map(|(at, past)| (at, hour.of((past.began_ms, past.ended_ms), self.began)))
            .filter(|(at, _)| wanted.contains(at))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_testkit::{labs, year};

    #[test]
    fn runs_that_follow_each_other_have_one_hour_whatever_they_compare() {
        let mut hour = Hour::default();
        let minute = 60_000;
        let mut of = |began: i64| hour.of((began * minute, (began + 2) * minute), 100 * minute);
        let found = [0, 5, 10, 40, 45, 60, 85, 92].map(&mut of);
        assert_eq!(found, [1, 1, 1, 2, 2, 3, 4, 0]);
    }

    #[test]
    fn hours_that_are_counted_from_a_place_are_those_that_are_counted_from_the_first_run() {
        let place = tempfile::tempdir().unwrap();
        let mut store = Store::open(place.path()).unwrap();
        // Each takes ten minutes: some begin before others have ended.
        let minutes = [0, 12, 15, 40, 61, 62, 63, 75, 200, 205, 219, 230, 251, 500];
        for (number, minute) in (0_u32..).zip(minutes) {
            let name = labs::run_name(number);
            let at = year::after(0) + minute * 60_000;
            year::add_night(&mut store, (&name, number), at, 1);
        }
        let past = PastRuns::read(&store).unwrap();
        let known = past.of_host(&past.all()[0].brief.host).unwrap();
        assert_eq!(known.runs.len(), minutes.len());
        let mut begins_later = 0;
        for own in 0..known.runs.len() {
            let began = known.runs[own].began_ms;
            let look = Look {
                known,
                until: own,
                own: Some(own),
                selected: own.checked_sub(2),
                began,
                repeated: BTreeSet::new(),
                counted: BTreeMap::new(),
            };
            let runs = known.runs.iter().enumerate();
            let ended = runs.filter(|(at, _)| look.may_count(*at));
            let mut hour = Hour::default();
            let from_first: Vec<(usize, usize)> = ended
                .map(|(at, past)| (at, hour.of((past.began_ms, past.ended_ms), began)))
                .collect();
            for first in 0..from_first.len() {
                let wanted: Vec<usize> = from_first[first..].iter().map(|(at, _)| *at).collect();
                let found = look.hours(&wanted);
                begins_later += usize::from(known.hour_of(wanted[0]) > 0);
                for pair in from_first[first..].windows(2) {
                    let [(one, before), (other, after)] = pair else {
                        continue;
                    };
                    let apart = (found[other] > found[one], found[other] == 0);
                    assert_eq!(apart, (after > before, *after == 0), "{own} {pair:?}");
                }
            }
        }
        assert!(begins_later > 30, "{begins_later}");
    }
}
