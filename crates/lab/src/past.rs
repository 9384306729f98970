//! The runs of a lab that may say something of other times, read once for all who ask.

use crate::hosts::RunHost;
use crate::pair::{Pair, pairs};
use crate::store_problem;
use deltabench_model::plan::Plan;
use deltabench_model::problem::Problem;
use deltabench_store::{FinishedRun, Store};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// A finished run that may count: it compares something, and does not count instructions, sample, or measure
/// under another condition on purpose.
#[derive(Debug)]
pub(crate) struct Past {
    pub(crate) name: String,
    pub(crate) plan: Plan,
    pub(crate) host: RunHost,
    pub(crate) began_ms: i64,
    pub(crate) ended_ms: i64,
    /// As in [`FinishedRun`].
    pub(crate) stamp: String,
    pairs: OnceLock<Vec<Pair>>,
}

impl Past {
    /// `None` for a run that does not count.
    fn of(run: &FinishedRun, store: &Store) -> Result<Option<Self>, Problem> {
        let Some(began_ms) = run.began_unix_ms else {
            return Ok(None);
        };
        let plan = store.plan(&run.run).map_err(store_problem)?;
        let is_other = plan.observing.counting.is_some()
            || plan.sensitivity.is_some()
            || plan.samples.is_some();
        if is_other || plan.candidates().is_empty() {
            return Ok(None);
        }
        let host = RunHost::of(&run.run, store).map_err(store_problem)?;
        Ok(host.map(|host| Self {
            name: run.run.clone(),
            plan,
            host,
            began_ms,
            ended_ms: run.ended_unix_ms,
            stamp: run.stamp.clone(),
            pairs: OnceLock::new(),
        }))
    }

    /// Its candidates in its cells.
    ///
    /// Errors: the store cannot be read.
    pub(crate) fn pairs(&self, store: &Store) -> Result<&[Pair], Problem> {
        if self.pairs.get().is_none() {
            let found = pairs(&self.name, &self.plan, store)?;
            // Of two who ask at once both have found the same.
            let _ = self.pairs.set(found);
        }
        Ok(self.pairs.get().map_or(&[], Vec::as_slice))
    }
}

/// All of them, in the order in which they ended. A run that was interrupted says what it says when it has
/// ended.
#[derive(Debug, Default)]
pub struct PastRuns {
    runs: Vec<Arc<Past>>,
    /// Finished runs with their stamps; those that do not count have none.
    known: BTreeMap<String, (String, Option<Arc<Past>>)>,
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
        for run in store.finished().map_err(store_problem)? {
            let stamp = format!("{} {}", run.ended_unix_ms, run.stamp);
            let known = before.remove(&run.run).filter(|(of, _)| *of == stamp);
            let past = match known {
                Some((_, past)) => past,
                None => Past::of(&run, store)?.map(Arc::new),
            };
            self.runs.extend(past.clone());
            self.known.insert(run.run, (stamp, past));
        }
        Ok(())
    }

    pub(crate) fn all(&self) -> &[Arc<Past>] {
        &self.runs
    }
}
