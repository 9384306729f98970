//! What runs said, kept so that a further look judges only what is new.

use super::{Found, HostTrend};
use crate::past::Past;
use crate::past_runs::PastRuns;
use crate::store_problem;
use crate::threads::{further_threads, side_by_side};
use crate::told::{Told, ToldCell};
use crate::withdrawal::is_withdrawn;
use deltabench_compare::comparison::Metric;
use deltabench_model::installation::Installation;
use deltabench_model::invalidation::Invalidation;
use deltabench_model::plan::{CellId, ServerId};
use deltabench_model::problem::Problem;
use deltabench_store::{AnchorChange, Kept, Store};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Runs for which a further thread brings more than it costs.
const RUNS_OF_A_THREAD: usize = 100;

/// The number of a metric, a machine and its class.
type Place = (usize, String, String);

/// What was found of a host for a metric.
type Waiting = (Place, Found);

/// What a run says of itself.
#[derive(Debug)]
pub(super) struct JudgedRun {
    pub(super) said: Vec<Said>,
}

/// A candidate in a cell of a run.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) cell: CellId,
    pub(super) candidate: ServerId,
    pub(super) delta: f64,
    pub(super) interval_level: f64,
    pub(super) contended: bool,
    /// Of each metric that has two blocks or more.
    pub(super) values: BTreeMap<usize, Blocks>,
}

/// Log-ratios by number of block.
#[derive(Debug)]
pub(super) struct Blocks {
    /// Those that the answer rests on.
    pub(super) own: BTreeMap<u32, f64>,
    pub(super) others: BTreeMap<u32, f64>,
}

/// Which of the runs are judged that nobody has judged yet.
#[derive(Clone, Copy)]
pub enum Judging<'a> {
    /// All of them, on all cores.
    All,
    /// One after another, as long as this says so: somebody waits for a page.
    While(&'a dyn Fn() -> bool),
}

impl Judging<'_> {
    fn goes_on(self) -> bool {
        match self {
            Self::All => true,
            Self::While(goes_on) => goes_on(),
        }
    }
}

/// The runs of a lab with what each says of some metrics.
#[derive(Debug)]
pub struct KnownRuns {
    metrics: Vec<Metric>,
    runs: Vec<Arc<Past>>,
    /// By run, with the text of what it was judged from; `None` for one that does not count.
    judged: BTreeMap<String, (String, Option<JudgedRun>)>,
    anchors: Vec<AnchorChange>,
}

impl KnownRuns {
    /// Knows no run yet.
    pub fn new(metrics: &[Metric]) -> Self {
        Self {
            metrics: metrics.to_vec(),
            runs: Vec::new(),
            judged: BTreeMap::new(),
            anchors: Vec::new(),
        }
    }

    /// Judges runs that nobody has judged yet; returns how many are left.
    ///
    /// Errors: the store cannot be read.
    pub fn read(
        &mut self,
        past: &PastRuns,
        store: &Store,
        judging: Judging<'_>,
    ) -> Result<usize, Problem> {
        self.judge(past.all().to_vec(), store, judging)
    }

    /// The same of these runs.
    pub(super) fn judge(
        &mut self,
        runs: Vec<Arc<Past>>,
        store: &Store,
        judging: Judging<'_>,
    ) -> Result<usize, Problem> {
        self.runs = runs;
        self.anchors = store.anchors().map_err(store_problem)?;
        let mut before = std::mem::take(&mut self.judged);
        let mut left = 0;
        let mut all_withdrawn = store.all_invalidations().map_err(store_problem)?;
        // The first look is at all of them, later ones at a few.
        let kept = match (before.is_empty(), judging) {
            (true, Judging::All) => Told::keep_all(&self.runs, store)?,
            (true, Judging::While(_)) => Told::all_kept(store),
            (false, _) => BTreeMap::new(),
        };
        for past in &self.runs {
            let withdrawn = all_withdrawn.remove(&past.name).unwrap_or_default();
            let stamp = format!("{} {} {withdrawn:?}", past.ended_ms, past.stamp);
            let known = before.remove(&past.name).filter(|(of, _)| *of == stamp);
            let judged = match known {
                Some((_, judged)) => judged,
                None if !judging.goes_on() => {
                    left += 1;
                    continue;
                }
                None => {
                    let kept = kept.get(&past.name);
                    judged(past, (store, kept), &withdrawn, &self.metrics)?
                }
            };
            self.judged.insert(past.name.clone(), (stamp, judged));
        }
        Ok(left)
    }

    /// What they say over time, metric by metric, the host of the newest run first. `store`: beside which to
    /// keep what they made suspect, and where a part of that may be kept.
    pub fn trends(
        &self,
        store: Option<&Store>,
        places: &dyn Fn(&[&Installation]) -> Vec<String>,
    ) -> Vec<HostTrend> {
        let mut hosts: BTreeMap<Place, Found> = BTreeMap::new();
        for past in &self.runs {
            let judged = self.judged.get(&past.name);
            let Some(judged) = judged.and_then(|(_, judged)| judged.as_ref()) else {
                continue;
            };
            for at in 0..self.metrics.len() {
                let class = past.brief.host.class().clone();
                let key = (at, past.brief.host.machine(), format!("{class:?}"));
                let host = hosts.entry(key).or_insert_with(|| Found::new(class));
                host.add(past, judged, at);
            }
        }
        let mut found: Vec<Waiting> = { hosts.into_iter() }
            .filter(|(_, found)| !found.runs.is_empty())
            .collect();
        found.iter_mut().for_each(|(_, found)| found.place(places));
        let mut hosts = self.trends_of(found, store);
        let newest = |host: &HostTrend| host.runs.last().map(|run| run.began_unix_ms);
        hosts.sort_by_cached_key(|((at, machine, class), host)| {
            let newest = std::cmp::Reverse(newest(host));
            (*at, newest, machine.clone(), class.clone())
        });
        hosts.into_iter().map(|(_, host)| host).collect()
    }

    /// Each host and metric by itself, on all cores.
    fn trends_of(&self, found: Vec<Waiting>, store: Option<&Store>) -> Vec<(Place, HostTrend)> {
        let further = further_threads(self.runs.len(), RUNS_OF_A_THREAD);
        let further = further.min(found.len().saturating_sub(1));
        let waiting = Mutex::new(found);
        let next = || {
            let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.pop()
        };
        let work = |store: Option<&Store>| {
            let mut done = Vec::new();
            while let Some((place, found)) = next() {
                if let Some(metric) = self.metrics.get(place.0) {
                    let mut host = found.trend(*metric, place.1.clone(), store);
                    host.know(&self.anchors);
                    done.push((place, host));
                }
            }
            done
        };
        // Without a store nothing is kept, and a thread needs none.
        let stores = (0..further).map_while(|_| match store {
            Some(store) => store.again().map(Some),
            None => Some(None),
        });
        let others = stores.map(|store| {
            let work = &work;
            move || work(store.as_ref())
        });
        let others: Vec<_> = others.collect();
        { side_by_side(|| work(store), others).into_iter() }
            .flatten()
            .collect()
    }
}

/// What a run says by its own records; `None` for one that does not count.
fn judged(
    past: &Past,
    (store, kept): (&Store, Option<&Kept>),
    withdrawn: &[Invalidation],
    metrics: &[Metric],
) -> Result<Option<JudgedRun>, Problem> {
    if withdrawn.iter().any(|one| one.cell.is_none()) {
        return Ok(None);
    }
    let known = kept.and_then(|kept| Told::from_kept(past, metrics, kept));
    let mut told = match known {
        Some(told) => told,
        None => Told::of(past, metrics, store)?,
    };
    told.cells
        .retain(|cell| !is_withdrawn(withdrawn, cell.cell));
    Ok(told.host_ok.then(|| JudgedRun {
        said: said(&told, metrics),
    }))
}

/// What the cells say that the run's own report trusts.
fn said(told: &Told, metrics: &[Metric]) -> Vec<Said> {
    let of = |one: &ToldCell| {
        let values = |(at, metric): (usize, &Metric)| {
            let (blocks, numbers) = one.metric(*metric).filter(|(blocks, _)| blocks.len() > 1)?;
            let own = numbers.iter().copied().zip(blocks.iter().copied());
            let blocks = Blocks {
                own: own.collect(),
                others: one.others(*metric).iter().copied().collect(),
            };
            Some((at, blocks))
        };
        Said {
            cell: one.cell,
            candidate: one.candidate,
            delta: one.delta,
            interval_level: one.interval_level,
            contended: one.contended,
            values: metrics.iter().enumerate().filter_map(values).collect(),
        }
    };
    let trusted = told.cells.iter().filter(|one| !one.unfit);
    trusted.map(of).collect()
}
