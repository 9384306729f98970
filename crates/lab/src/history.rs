//! What a host's own earlier runs say of how much a ratio moves from hour to hour.
//!
//! Runs that compared the same builds with the same work some minutes apart are repetitions: what their
//! ratios differ by, beyond what their blocks explain, is what the hour does. Nothing is kept for this:
//! it follows from the records, as everything does.

use crate::hosts::RunHost;
use crate::judged::Judged;
use crate::series::stored;
use crate::store_problem;
use crate::withdrawal::leave_out;
use deltabench_compare::comparison::{CellComparison, Metric};
use deltabench_compare::thresholds::HOUR_APART_MS;
use deltabench_compare::{Earlier, EarlierRun, foretell};
use deltabench_model::installation::Installation;
use deltabench_model::occasion::Series;
use deltabench_model::plan::{CellId, Plan, PlannedServer, ServerId};
use deltabench_model::problem::Problem;
use deltabench_store::{RunState, Store};
use std::collections::{BTreeMap, BTreeSet};

/// Runs that are read at most, the newest: each is judged anew.
const MOST: usize = 12;

/// How much two servers have in common: the less, the more their ratio moves from hour to hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kin {
    /// One build with the same settings.
    Copy,
    /// One branch, made alike.
    Near,
    Far,
}

/// How much two servers have in common.
fn kin(base: &PlannedServer, candidate: &PlannedServer) -> Kin {
    let (one, other) = (&base.installation, &candidate.installation);
    let variant = |of: &Installation| of.recipe.as_ref().map(|made| made.variant.clone());
    if version_key(base) == version_key(candidate) {
        Kin::Copy
    } else if (one.engine, one.origin, branch(one)) == (other.engine, other.origin, branch(other))
        && variant(one) == variant(other)
    {
        Kin::Near
    } else {
        Kin::Far
    }
}

/// The number of its branch: 18 of 18.6, 906 of 9.6.24.
pub(crate) fn branch(installation: &Installation) -> u32 {
    match installation.version_num {
        old @ ..100_000 => old / 100,
        new => new / 10_000,
    }
}

/// Pairs that may stand for each other: as much alike, and with the same luck of where executables lie. What
/// a place for the whole run added to the hours is in the intervals of runs that draw it.
type Kind = (Kin, bool);

/// What the runs of one comparison found in a cell, each with the number of its hour.
type Found = Vec<(usize, CellComparison)>;

/// That by kind and series, and in it by comparison.
type Figures = BTreeMap<(Kind, String), BTreeMap<String, Found>>;

/// Adds to a run of one session what another hour would say, by the runs that its host had finished before it
/// began. Later runs change nothing, so that a report stays the same.
///
/// Errors: the store cannot be read.
pub(crate) fn add(judged: &mut Judged, store: &Store) -> Result<(), Problem> {
    let own = pairs(&judged.run, &judged.plan, store)?;
    let mut figures = Figures::new();
    for Repetition {
        run,
        plan,
        mut same,
        hour,
    } in earlier(judged, &own, store)?
    {
        let withdrawn = store.invalidations(&run).map_err(store_problem)?;
        let mut found = Judged::of(&run, &plan, store)?.into_comparison();
        leave_out(&mut found, &withdrawn);
        let known = pairs(&run, &plan, store)?.into_iter();
        for pair in known.filter(|_| found.host_ok) {
            // Of two candidates that are one build the first counts.
            if !same.remove(&pair.same) {
                continue;
            }
            let cells = found.cells.iter().find(|cell| pair.is(cell));
            let cells = cells.filter(|cell| cell.says_something());
            let sets = figures.entry((pair.kind, pair.key)).or_default();
            let found = cells.cloned().map(|cell| (hour, cell));
            sets.entry(pair.same).or_default().extend(found);
        }
    }
    foretell(&mut judged.comparison, |cell, metric| {
        let pair = own.iter().find(|pair| pair.is(cell));
        pair.map_or_else(Earlier::default, |pair| known_of(pair, metric, &figures))
    });
    Ok(())
}

/// What these figures are for a pair: of itself, of its cell, and of the other cells.
fn known_of(pair: &Pair, metric: Metric, figures: &Figures) -> Earlier {
    let blocks = |(hour, cell): &(usize, CellComparison)| {
        let (hour, blocks) = (*hour, cell.metric(metric)?.blocks.clone());
        Some(EarlierRun { hour, blocks })
    };
    let values = |set: &Found| set.iter().filter_map(blocks).collect::<Vec<EarlierRun>>();
    let mut known = Earlier::default();
    for ((_, key), sets) in figures.iter().filter(|((kind, _), _)| *kind == pair.kind) {
        if *key != pair.key {
            known.others.push(sets.values().map(values).collect());
            continue;
        }
        for (same, set) in sets {
            match *same == pair.same {
                true => known.pair = values(set),
                false => known.cell.push(values(set)),
            }
        }
    }
    known
}

/// A run that repeats a comparison, or is repeated.
struct Repetition {
    run: String,
    plan: Plan,
    /// The comparisons of it that count, as [`Pair::same`].
    same: BTreeSet<String>,
    /// As [`EarlierRun::hour`].
    hour: usize,
}

/// A candidate in a cell of a plan.
struct Pair {
    cell: CellId,
    candidate: ServerId,
    /// Key of the cell's series.
    key: String,
    kind: Kind,
    /// What two runs must have in common for this to be the same comparison in both.
    same: String,
}

impl Pair {
    fn is(&self, cell: &CellComparison) -> bool {
        self.cell == cell.cell && self.candidate == cell.candidate
    }
}

fn pairs(run: &str, plan: &Plan, store: &Store) -> Result<Vec<Pair>, Problem> {
    let Some(base) = plan.server(plan.base()) else {
        return Ok(Vec::new());
    };
    // What was made slower on purpose is a copy of its base, and no version.
    let candidates: Vec<(ServerId, &PlannedServer)> = { plan.candidates().into_iter() }
        .filter_map(|id| Some((id, plan.server(id)?)))
        .filter(|(_, planned)| planned.burn_ns.is_none())
        .collect();
    let series = stored(run, plan, store)?;
    let cells = CellId::each().zip(&series);
    let of_cell = |(id, Series { key, .. }): (CellId, &Series)| {
        let pair = |(candidate, planned): &(ServerId, &PlannedServer)| Pair {
            cell: id,
            candidate: *candidate,
            key: key.clone(),
            kind: (kin(base, planned), plan.draws_executables()),
            same: format!("{} {} {key}", version_key(base), version_key(planned)),
        };
        candidates.iter().map(pair).collect::<Vec<Pair>>()
    };
    Ok(cells.flat_map(of_cell).collect())
}

/// What a server is, by content: its binary, wherever it lies, and what it runs with. Of a server that was
/// there before only its address is known.
pub fn version_key(planned: &PlannedServer) -> String {
    let build = &planned.installation;
    let binary = match build.binary_sha256.as_str() {
        "" => build.resolved.as_str(),
        hash => hash,
    };
    format!("{binary} {:?} {:?}", planned.settings, planned.burn_ns)
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

/// A run that this host had finished, with its plan and when it was measured.
struct Past {
    run: String,
    plan: Plan,
    began_unix_ms: i64,
    ended_unix_ms: i64,
}

/// The newest runs that this host had finished before a run began, and that repeat a comparison of one of its
/// kinds in different hours, or are themselves repeated by it; oldest first.
fn earlier(judged: &Judged, own: &[Pair], store: &Store) -> Result<Vec<Repetition>, Problem> {
    let began = store.began_unix_ms(&judged.run).map_err(store_problem)?;
    let Some(began) = began.filter(|_| !own.is_empty()) else {
        return Ok(Vec::new());
    };
    // Of runs in one hour only the first counts: they share its luck.
    let mut last: BTreeMap<String, i64> = BTreeMap::new();
    let mut number: BTreeMap<String, usize> = BTreeMap::new();
    let repeated = |same: &str| own.iter().any(|pair| pair.same == same);
    for pair in own {
        number.insert(pair.same.clone(), 1);
    }
    let mut kept: Vec<Repetition> = Vec::new();
    let mut hour = Hour::default();
    for past in past(judged, began, store)? {
        let mut same = BTreeSet::new();
        let known = pairs(&past.run, &past.plan, store)?.into_iter();
        for pair in known.filter(|pair| own.iter().any(|own| own.kind == pair.kind)) {
            let after = last.get(&pair.same);
            let near = after.is_some_and(|end| past.began_unix_ms - end < HOUR_APART_MS);
            let here = repeated(&pair.same) && began - past.ended_unix_ms < HOUR_APART_MS;
            if !near && !here {
                last.insert(pair.same.clone(), past.ended_unix_ms);
                *number.entry(pair.same.clone()).or_default() += 1;
                same.insert(pair.same);
            }
        }
        kept.push(Repetition {
            hour: hour.of((past.began_unix_ms, past.ended_unix_ms), began),
            run: past.run,
            plan: past.plan,
            same,
        });
    }
    let repeats = |same: &String| number.get(same).is_some_and(|number| *number > 1);
    kept.retain(|one| one.same.iter().any(repeats));
    let skip = kept.len().saturating_sub(MOST);
    Ok(kept.into_iter().skip(skip).collect())
}

/// The runs that may say something of other hours: of the same host, finished before this moment, in the
/// order in which they began. Another condition is another question, what samples or counts is no
/// measurement, and a run that is measured again was selected by what it found.
fn past(judged: &Judged, began: i64, store: &Store) -> Result<Vec<Past>, Problem> {
    let read = || {
        let Some(host) = RunHost::of(&judged.run, store)? else {
            return Ok(Vec::new());
        };
        let mut runs = Vec::new();
        for summary in store.runs()? {
            let finished = summary.state == RunState::Finished && summary.state_unix_ms < began;
            let selected = judged.plan.confirms.as_ref() == Some(&summary.run);
            if !finished || selected || summary.run == judged.run || summary.candidates.is_empty() {
                continue;
            }
            let begun = store.began_unix_ms(&summary.run)?;
            let here = RunHost::of(&summary.run, store)?.is_some_and(|of| of == host);
            let Some(begun) = begun.filter(|_| here) else {
                continue;
            };
            let plan = store.plan(&summary.run)?;
            let other = plan.observing.counting.is_some()
                || plan.sensitivity.is_some()
                || plan.samples.is_some();
            if !other {
                runs.push(Past {
                    run: summary.run,
                    plan,
                    began_unix_ms: begun,
                    ended_unix_ms: summary.state_unix_ms,
                });
            }
        }
        Ok::<_, deltabench_store::StoreError>(runs)
    };
    let mut runs = read().map_err(store_problem)?;
    runs.sort_by_key(|past| past.began_unix_ms);
    Ok(runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_follow_each_other_have_one_hour_whatever_they_compare() {
        let mut hour = Hour::default();
        let minute = 60_000;
        let mut of = |began: i64| hour.of((began * minute, (began + 2) * minute), 100 * minute);
        let found = [0, 5, 10, 40, 45, 60, 85, 92].map(&mut of);
        assert_eq!(found, [1, 1, 1, 2, 2, 3, 4, 0]);
    }
}
