//! What a kind shows of a run beside the verdicts.

use crate::insert::{self, InsertReport};
use crate::{pgbench, rocksdb};
use deltabench_compare::Records;
use deltabench_compare::absolute::CellResult;
use deltabench_compare::comparison::Comparison;
use deltabench_model::fact;
use deltabench_model::figures::Figures;
use deltabench_model::plan::Plan;
use deltabench_model::problem::Problem;
use deltabench_store::{Store, StoreError};
use std::collections::BTreeMap;

/// What a kind makes of a run's records.
#[derive(Debug, Default)]
pub struct Shown {
    /// Its figures, for every form of the report.
    pub figures: Figures,
    /// The steps of the Insert Benchmark, for exports; absent for runs of anything else.
    pub insert: Option<InsertReport>,
}

/// A run that was judged.
#[derive(Debug, Clone, Copy)]
pub struct JudgedRun<'a> {
    pub run: &'a str,
    pub plan: &'a Plan,
    pub records: Records<'a>,
    pub comparison: &'a Comparison,
    /// What its servers did in absolute numbers; empty where no report shows it.
    pub results: &'a [CellResult],
    /// Cores of the machine of the first server, if known.
    pub cores: Option<u32>,
}

/// What the run's kind shows of it.
///
/// Errors: the store, or a record in it, cannot be read.
pub fn shown(judged: &JudgedRun<'_>, store: &Store) -> Result<Shown, Problem> {
    let JudgedRun {
        run,
        plan,
        records,
        comparison,
        results,
        cores,
    } = *judged;
    if plan.work.has_passes() {
        let steps = insert::steps(records.records)?;
        let mut report = insert::insert_report(plan, &steps, comparison, cores);
        if let Some(report) = &mut report {
            report.settled = settled(run, store).map_err(Problem::from)?;
        }
        return Ok(Shown {
            figures: report.as_ref().map_or_else(Figures::default, |report| {
                insert::shown::figures(plan, report)
            }),
            insert: report,
        });
    }
    let figures = if plan.work.is_embedded() {
        rocksdb::rocksdb_report(plan, records.slices, records.counters, comparison)
            .map(|report| rocksdb::shown::figures(run, plan, &report))
    } else if plan.work.pgbench().is_some() {
        Some(pgbench::shown::figures(plan, results))
    } else {
        None
    };
    Ok(Shown {
        figures: figures.unwrap_or_default(),
        insert: None,
    })
}

/// What settling took in each pass. Of a pass that was begun again the last time counts.
fn settled(run: &str, store: &Store) -> Result<Vec<insert::Settled>, StoreError> {
    let mut passes = BTreeMap::new();
    for found in store.facts::<fact::Settled>(run)? {
        let (Some(server), Some(pass)) = (found.server, found.block) else {
            continue;
        };
        let settled = insert::Settled {
            server,
            pass,
            vacuum_seconds: found.fact.vacuum_seconds,
            checkpoint_seconds: found.fact.checkpoint_seconds,
            seconds: found.fact.seconds,
        };
        passes.insert((pass, server), settled);
    }
    Ok(passes.into_values().collect())
}
