//! What a run told by itself, in short: the part of its judgement that trends and other hours rest on.
//!
//! It is kept beside the store, with what it was made from. Nothing that other runs say and nothing that
//! people withdrew is in it, so it holds as long as the run's own records and the analysis stay as they are.

use crate::analysis::ANALYSIS;
use crate::judged::Judged;
use crate::past::Past;
use crate::store_problem;
use crate::threads::{further_threads, side_by_side};
use deltabench_compare::comparison::{
    CellComparison, Comparison, Metric, MetricComparison, Verdict,
};
use deltabench_model::plan::{CellId, ServerId};
use deltabench_model::problem::Problem;
use deltabench_store::{Kept, Store};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What trends read of every run.
pub(crate) const PRIMARY: [Metric; 2] = [Metric::Throughput, Metric::ServerCpuPerOperation];

/// The names under which both parts are kept. Few runs are asked for their latencies.
const KEPT: &str = "told";
const KEPT_LATENCIES: &str = "told-latencies";

/// Runs to judge for which a further thread is started: it opens the lab once more.
const RUNS_OF_A_THREAD: usize = 4;

/// A run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Told {
    pub(crate) host_ok: bool,
    /// Those that say something.
    pub(crate) cells: Vec<ToldCell>,
}

/// A candidate in a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ToldCell {
    pub(crate) cell: CellId,
    pub(crate) candidate: ServerId,
    /// Whether the run's own report does not trust it.
    pub(crate) unfit: bool,
    pub(crate) delta: f64,
    pub(crate) interval_level: f64,
    pub(crate) contended: bool,
    metrics: Vec<ToldMetric>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct ToldMetric {
    key: String,
    /// Log-ratios of blocks.
    blocks: Vec<f64>,
    /// Their numbers.
    numbers: Vec<u32>,
    /// All other blocks, likewise: the answer does not rest on them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    others: Vec<(u32, f64)>,
}

impl Told {
    /// What a run tells of these metrics at least, judged if that is not known.
    ///
    /// Errors: the store cannot be read.
    pub(crate) fn of(past: &Past, metrics: &[Metric], store: &Store) -> Result<Self, Problem> {
        let made_from = made_from(past);
        if let Some(known) = known(&past.name, &made_from, metrics, store) {
            return Ok(known);
        }
        let plan = store.plan(&past.name).map_err(store_problem)?;
        let judged = Judged::of(&past.name, &plan, store)?;
        let told = Self::from(&judged.into_comparison());
        told.keep_as(past, &made_from, store);
        Ok(told)
    }

    /// What was kept of all runs but for their latencies, by run.
    pub(crate) fn all_kept(store: &Store) -> BTreeMap<String, Kept> {
        store.all_kept(KEPT)
    }

    /// Judges the runs of which nothing was kept that fits, on all cores, and keeps what they tell; returns
    /// what is kept then. Where nothing can be kept, whoever needs a run judges it.
    ///
    /// Errors: the store cannot be read.
    pub(crate) fn keep_all(
        runs: &[Arc<Past>],
        store: &Store,
    ) -> Result<BTreeMap<String, Kept>, Problem> {
        let kept = Self::all_kept(store);
        let fits = |past: &Past| {
            let known = kept.get(&past.name);
            known.is_some_and(|known| known.made_from == made_from(past))
        };
        let missing: Vec<&Past> = { runs.iter().map(|past| &**past) }
            .filter(|past| !fits(past))
            .collect();
        let further = further_threads(missing.len(), RUNS_OF_A_THREAD);
        if further == 0 || !store.keeps() {
            return Ok(kept);
        }
        let next = AtomicUsize::new(0);
        let work = |store: &Store| -> Result<(), Problem> {
            while let Some(past) = missing.get(next.fetch_add(1, Ordering::Relaxed)) {
                Self::of(past, &PRIMARY, store)?;
            }
            Ok(())
        };
        let stores = (0..further).map_while(|_| store.again());
        let others = stores.map(|store| {
            let work = &work;
            move || work(&store)
        });
        let others: Vec<_> = others.collect();
        { side_by_side(|| work(store), others).into_iter() }.collect::<Result<(), Problem>>()?;
        Ok(Self::all_kept(store))
    }

    /// What a run tells from that; `None` if it does not fit, or more is asked for.
    pub(crate) fn from_kept(past: &Past, metrics: &[Metric], kept: &Kept) -> Option<Self> {
        let is_enough = metrics.iter().all(|metric| PRIMARY.contains(metric));
        (is_enough && kept.made_from == made_from(past)).then_some(())?;
        serde_json::from_str(&kept.value).ok()
    }

    /// Keeps what a run tells, for whoever has judged it for something else.
    pub(crate) fn keep(past: &Past, comparison: &Comparison, store: &Store) {
        let made_from = made_from(past);
        if known(&past.name, &made_from, &PRIMARY, store).is_none() {
            Self::from(comparison).keep_as(past, &made_from, store);
        }
    }

    fn keep_as(&self, past: &Past, made_from: &str, store: &Store) {
        for (what, is_of) in [(KEPT, true), (KEPT_LATENCIES, false)] {
            let part = self.part(|metric| is_primary(metric) == is_of);
            // Numbers without end do not come back from JSON: then the run is judged each time.
            if let Ok(value) = serde_json::to_string(&part) {
                let made_from = made_from.to_owned();
                store.keep(what, &past.name, &Kept { made_from, value });
            }
        }
    }

    fn from(comparison: &Comparison) -> Self {
        let says = |one: &&CellComparison| one.says_something();
        let metric = |one: &MetricComparison| ToldMetric {
            key: one.metric.key().to_owned(),
            blocks: one.blocks.clone(),
            numbers: one.numbers.clone(),
            others: one.other_blocks.clone(),
        };
        let cell = |one: &CellComparison| ToldCell {
            cell: one.cell,
            candidate: one.candidate,
            unfit: one.verdict == Verdict::Unfit,
            delta: one.delta,
            interval_level: one.interval_level,
            contended: one.interference.contended,
            metrics: one.metrics.iter().map(metric).collect(),
        };
        Self {
            host_ok: comparison.host_ok,
            cells: comparison.cells.iter().filter(says).map(cell).collect(),
        }
    }

    fn part(&self, is_in: impl Fn(&ToldMetric) -> bool) -> Self {
        let mut part = self.clone();
        for cell in &mut part.cells {
            cell.metrics.retain(&is_in);
        }
        part
    }
}

impl ToldCell {
    /// The log-ratios of blocks, with the numbers of these.
    pub(crate) fn metric(&self, wanted: Metric) -> Option<(&[f64], &[u32])> {
        let found = self.told(wanted)?;
        Some((&found.blocks, &found.numbers))
    }

    /// The log-ratios of the blocks that its answer does not rest on, by their numbers.
    pub(crate) fn others(&self, wanted: Metric) -> &[(u32, f64)] {
        self.told(wanted).map_or(&[], |found| &found.others)
    }

    fn told(&self, wanted: Metric) -> Option<&ToldMetric> {
        self.metrics.iter().find(|one| one.key == wanted.key())
    }
}

fn is_primary(metric: &ToldMetric) -> bool {
    PRIMARY.iter().any(|known| known.key() == metric.key)
}

fn made_from(past: &Past) -> String {
    format!("{ANALYSIS} {}", past.stamp)
}

/// What was kept of a run, if that fits.
fn known(run: &str, made_from: &str, metrics: &[Metric], store: &Store) -> Option<Told> {
    let read = |what| serde_json::from_str::<Told>(&store.kept(what, run, made_from)?).ok();
    let mut told = read(KEPT)?;
    if metrics.iter().all(|metric| PRIMARY.contains(metric)) {
        return Some(told);
    }
    let more = read(KEPT_LATENCIES)?;
    if more.cells.len() != told.cells.len() {
        return None;
    }
    for (cell, more) in told.cells.iter_mut().zip(more.cells) {
        cell.metrics.extend(more.metrics);
    }
    Some(told)
}
