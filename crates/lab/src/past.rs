//! The runs of a lab that may say something of other times, read once for all who ask.

use crate::analysis::ANALYSIS;
use crate::hosts::RunHost;
use crate::night::is_night;
use crate::pair::{Hash, Pair, pairs_of, version_key};
use crate::placebos::Ledger;
use crate::series::stored;
use crate::store_problem;
use deltabench_model::plan::{PlannedServer, ServerId};
use deltabench_model::problem::Problem;
use deltabench_store::{FinishedRun, Kept, Store};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// A finished run that may count: it compares something, and does not count instructions, sample, or measure
/// under another condition on purpose.
#[derive(Debug)]
pub(crate) struct Past {
    pub(crate) name: String,
    pub(crate) brief: Brief,
    pub(crate) began_ms: i64,
    pub(crate) ended_ms: i64,
    /// As in [`FinishedRun`].
    pub(crate) stamp: String,
    pairs: OnceLock<Vec<Pair>>,
    versions: OnceLock<Vec<String>>,
}

/// What others read of a run beside what it told: kept beside the store, because a plan is long and most of
/// it is about how to measure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Brief {
    pub(crate) host: RunHost,
    /// Whether a night measured it.
    pub(crate) is_night: bool,
    /// The execution that it is a part of.
    pub(crate) execution: Option<String>,
    pub(crate) servers: Vec<PlannedServer>,
    pub(crate) base: ServerId,
    /// Whether a copy of the base is a control, too.
    pub(crate) has_second_control: bool,
    /// Whether each start of a server has a place in memory of its own.
    pub(crate) draws_executables: bool,
    pub(crate) cells: Vec<BriefCell>,
}

/// A cell of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct BriefCell {
    /// Key of its series.
    pub(crate) key: String,
    pub(crate) name: String,
}

/// The name under which it is kept.
const KEPT: &str = "brief";

impl Brief {
    /// `None` for a run that does not count.
    fn of(run: &FinishedRun, kept: Option<&Kept>, store: &Store) -> Result<Option<Self>, Problem> {
        let made_from = format!("{ANALYSIS} {}", run.stamp);
        let fits = kept.filter(|kept| kept.made_from == made_from);
        if let Some(brief) = fits.and_then(|kept| serde_json::from_str(&kept.value).ok()) {
            return Ok(brief);
        }
        let brief = Self::read(&run.run, store)?;
        if let Ok(value) = serde_json::to_string(&brief) {
            store.keep(KEPT, &run.run, &Kept { made_from, value });
        }
        Ok(brief)
    }

    fn read(run: &str, store: &Store) -> Result<Option<Self>, Problem> {
        let plan = store.plan(run).map_err(store_problem)?;
        let is_other = plan.observing.counting.is_some()
            || plan.sensitivity.is_some()
            || plan.samples.is_some();
        if is_other || plan.candidates().is_empty() {
            return Ok(None);
        }
        let Some(host) = RunHost::of(run, store).map_err(store_problem)? else {
            return Ok(None);
        };
        let cells = stored(run, &plan, store)?.into_iter();
        Ok(Some(Self {
            host,
            is_night: is_night(&plan.command),
            execution: plan.experiment.as_ref().map(|part| part.execution.clone()),
            base: plan.base(),
            has_second_control: plan.second_control().is_some(),
            draws_executables: plan.draws_executables(),
            cells: cells
                .map(|one| BriefCell {
                    key: one.key,
                    name: one.slug,
                })
                .collect(),
            servers: plan.servers,
        }))
    }

    pub(crate) fn server(&self, id: ServerId) -> Option<&PlannedServer> {
        self.servers.get(id.index())
    }
}

impl Past {
    /// `None` for a run that does not count.
    fn of(run: &FinishedRun, kept: Option<&Kept>, store: &Store) -> Result<Option<Self>, Problem> {
        let Some(began_ms) = run.began_unix_ms else {
            return Ok(None);
        };
        let brief = Brief::of(run, kept, store)?;
        Ok(brief.map(|brief| Self {
            name: run.run.clone(),
            brief,
            began_ms,
            ended_ms: run.ended_unix_ms,
            stamp: run.stamp.clone(),
            pairs: OnceLock::new(),
            versions: OnceLock::new(),
        }))
    }

    /// What its servers are, by content; in their order.
    pub(crate) fn versions(&self) -> &[String] {
        self.versions
            .get_or_init(|| self.brief.servers.iter().map(version_key).collect())
    }

    /// Its candidates in its cells.
    pub(crate) fn pairs(&self) -> &[Pair] {
        self.pairs.get_or_init(|| {
            let Brief {
                servers,
                base,
                draws_executables,
                cells,
                ..
            } = &self.brief;
            let keys: Vec<&str> = cells.iter().map(|cell| cell.key.as_str()).collect();
            pairs_of(servers, *base, &keys, *draws_executables)
        })
    }
}

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
}

/// The runs of a host.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunsOfHost {
    /// In the order in which they began.
    pub(crate) runs: Vec<Arc<Past>>,
    /// The places of those that made a comparison, each once.
    pub(crate) by_comparison: BTreeMap<Hash, Vec<usize>>,
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
        Self {
            runs,
            by_comparison,
        }
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

    pub(crate) fn all(&self) -> &[Arc<Past>] {
        &self.runs
    }

    /// A run by its name; `None` for one that does not count.
    pub(crate) fn of_run(&self, run: &str) -> Option<&Past> {
        self.known.get(run)?.1.as_deref()
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
