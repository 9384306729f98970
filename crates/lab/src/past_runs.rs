//! The runs of a lab that may say something of other times, read once for all who ask.

use crate::hosts::RunHost;
use crate::pair::Hash;
use crate::past::{KEPT, Past};
use crate::placebos::Ledger;
use crate::store_problem;
use crate::told::Told;
use deltabench_compare::comparison::Metric;
use deltabench_compare::thresholds::HOUR_APART_MS;
use deltabench_model::problem::Problem;
use deltabench_store::Store;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, OnceLock};

/// All of them, in the order in which they ended. A run that was interrupted says what it says when it has
/// ended.
#[derive(Debug, Clone, Default)]
pub struct PastRuns {
    runs: Vec<Arc<Past>>,
    /// Finished runs with their stamps; those that do not count have none.
    known: BTreeMap<String, (String, Option<Arc<Past>>)>,
    /// The same by host, once somebody has asked.
    by_host: OnceLock<Vec<(RunHost, RunsOfHost)>>,
    /// What their placebos said, once somebody has asked.
    ledger: OnceLock<Ledger>,
    /// What runs told that somebody asked for last, by name and stamp; all threads share it.
    told: Arc<Mutex<Remembered>>,
}

/// Runs of which it is remembered what they told: those that follow each other ask for the same.
const REMEMBERED: usize = 64;

/// What runs told, those that were asked for last at the front.
#[derive(Debug, Default)]
struct Remembered(VecDeque<(String, Arc<Told>)>);

impl Remembered {
    fn find(&mut self, key: &str) -> Option<Arc<Told>> {
        let place = self.0.iter().position(|(of, _)| of == key)?;
        let found = self.0.remove(place)?;
        let told = Arc::clone(&found.1);
        self.0.push_front(found);
        Some(told)
    }

    /// Another thread may have added it meanwhile.
    fn add(&mut self, key: String, told: &Arc<Told>) {
        self.0.retain(|(of, _)| *of != key);
        self.0.truncate(REMEMBERED - 1);
        self.0.push_front((key, Arc::clone(told)));
    }
}

/// The runs of a host.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunsOfHost {
    /// In the order in which they began.
    pub(crate) runs: Vec<Arc<Past>>,
    /// The places of those that made a comparison, each once.
    pub(crate) by_comparison: BTreeMap<Hash, Vec<usize>>,
    /// The place of each, by name.
    pub(crate) by_name: BTreeMap<String, usize>,
    /// For each the place of the last one up to it that begins an hour: all before it had ended ten minutes
    /// before it began.
    hours: Vec<usize>,
}

impl RunsOfHost {
    fn of(mut runs: Vec<Arc<Past>>) -> Self {
        runs.sort_by_key(|past| past.began_ms);
        let mut by_comparison: BTreeMap<Hash, Vec<usize>> = BTreeMap::new();
        for (at, past) in runs.iter().enumerate() {
            for pair in past.pairs() {
                let places = by_comparison.entry(pair.same).or_default();
                if places.last() != Some(&at) {
                    places.push(at);
                }
            }
        }
        let names = runs.iter().enumerate();
        let by_name = names.map(|(at, past)| (past.name.clone(), at)).collect();
        let (mut ended, mut hour) = (None, 0);
        let begun = |(at, past): (usize, &Arc<Past>)| {
            if ended.is_none_or(|ended: i64| past.began_ms - ended >= HOUR_APART_MS) {
                hour = at;
            }
            ended = ended.max(Some(past.ended_ms));
            hour
        };
        Self {
            hours: runs.iter().enumerate().map(begun).collect(),
            runs,
            by_comparison,
            by_name,
        }
    }

    /// The place of a run up to this one that begins an hour, whichever of the runs count.
    pub(crate) fn hour_of(&self, at: usize) -> usize {
        self.hours.get(at).copied().unwrap_or(0)
    }
}

impl PastRuns {
    /// Those of a lab.
    ///
    /// Errors: the store cannot be read.
    pub fn read(store: &Store) -> Result<Self, Problem> {
        let mut all = Self::default();
        all.refresh(store)?;
        Ok(all)
    }

    /// Looks again, and reads what is new.
    ///
    /// Errors: the store cannot be read.
    pub fn refresh(&mut self, store: &Store) -> Result<(), Problem> {
        let mut before = std::mem::take(&mut self.known);
        self.runs.clear();
        self.by_host.take();
        self.ledger.take();
        // The first look is at all of them, later ones at a few.
        let kept = match before.is_empty() {
            true => store.all_kept(KEPT),
            false => BTreeMap::new(),
        };
        for run in store.finished().map_err(store_problem)? {
            let stamp = format!("{} {}", run.ended_unix_ms, run.stamp);
            let known = before.remove(&run.run).filter(|(of, _)| *of == stamp);
            let past = match known {
                Some((_, past)) => past,
                None => Past::of(&run, kept.get(&run.run), store)?.map(Arc::new),
            };
            self.runs.extend(past.clone());
            self.known.insert(run.run, (stamp, past));
        }
        Ok(())
    }

    /// Whether one of them measured a commit, whose place among others is not in the lab.
    pub fn has_commits(&self) -> bool {
        let servers = self.runs.iter().flat_map(|past| &past.brief.servers);
        let mut builds = servers.map(|server| &server.installation);
        builds.any(|build| build.recipe.is_some() || build.asked.starts_with("git:"))
    }

    pub(crate) fn all(&self) -> &[Arc<Past>] {
        &self.runs
    }

    /// A run by its name; `None` for one that does not count.
    pub(crate) fn of_run(&self, run: &str) -> Option<&Past> {
        self.known.get(run)?.1.as_deref()
    }

    /// What one of them told, of all metrics.
    ///
    /// Errors: the store cannot be read.
    pub(crate) fn told(&self, past: &Past, store: &Store) -> Result<Arc<Told>, Problem> {
        let key = format!("{} {}", past.name, past.stamp);
        let known = self.told.lock().map(|mut known| known.find(&key));
        if let Some(told) = known.unwrap_or_default() {
            return Ok(told);
        }
        // Nobody waits meanwhile.
        let told = Arc::new(Told::of(past, &Metric::ALL, store)?);
        if let Ok(mut known) = self.told.lock() {
            known.add(key, &told);
        }
        Ok(told)
    }

    /// What the placebos of the lab said.
    ///
    /// Errors: the store cannot be read.
    pub(crate) fn ledger(&self, store: &Store) -> Result<&Ledger, Problem> {
        if let Some(known) = self.ledger.get() {
            return Ok(known);
        }
        let found = Ledger::of(&store.placebo_results().map_err(store_problem)?);
        Ok(self.ledger.get_or_init(|| found))
    }

    /// Those of a host; `None` for one without.
    pub(crate) fn of_host(&self, host: &RunHost) -> Option<&RunsOfHost> {
        let all = self.by_host.get_or_init(|| {
            let mut found: Vec<(RunHost, Vec<Arc<Past>>)> = Vec::new();
            for past in &self.runs {
                let here = &past.brief.host;
                match found.iter_mut().find(|(known, _)| known == here) {
                    Some((_, runs)) => runs.push(Arc::clone(past)),
                    None => found.push((here.clone(), vec![Arc::clone(past)])),
                }
            }
            let of = |(host, runs)| (host, RunsOfHost::of(runs));
            found.into_iter().map(of).collect()
        });
        let own = all.iter().find(|(known, _)| known == host);
        own.map(|(_, runs)| runs)
    }
}
