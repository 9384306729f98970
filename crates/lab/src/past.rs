//! A run of a lab that may say something of other times.

use crate::analysis::ANALYSIS;
use crate::hosts::RunHost;
use crate::night::is_night;
use crate::pair::{Pair, pairs_of, version_key};
use crate::series::{stored, work};
use crate::store_problem;
use deltabench_model::plan::{PlannedServer, ServerId};
use deltabench_model::problem::Problem;
use deltabench_store::{FinishedRun, Kept, Store};
use serde::{Deserialize, Serialize};
use std::sync::OnceLock;

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
    /// What is done, in whichever way it was measured ([`work`]).
    pub(crate) work: String,
}

/// The name under which it is kept.
pub(crate) const KEPT: &str = "brief";

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
                    work: work(&one),
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
    /// `None` for a run that does not count. `kept`: what was kept of it.
    pub(crate) fn of(
        run: &FinishedRun,
        kept: Option<&Kept>,
        store: &Store,
    ) -> Result<Option<Self>, Problem> {
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
