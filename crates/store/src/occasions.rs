//! Where and when runs were measured, and what their cells are over all runs.

use crate::error::StoreError;
use crate::store::Store;
use deltabench_model::occasion::{HostIdentity, Occasion, Series};
use deltabench_model::plan::CellId;
use rusqlite::{Transaction, TransactionBehavior};

const SELECT_HOST: &str = "select id from host where uid = ?1 and class = ?2 and kernel is ?3 and \
    microcode is ?4";
const INSERT_HOST: &str = "insert into host (uid, class, kernel, microcode, from_unix_ms) \
    values (?1, ?2, ?3, ?4, ?5)";
const INSERT_OCCASION: &str = "insert into occasion (run, host, uid, boot_id, measurement_version, \
    at_unix_ms) values (?1, ?2, ?3, ?4, ?5, ?6)";
const INSERT_SERIES: &str = "insert or ignore into series (key, slug, content) values (?1, ?2, ?3)";
const INSERT_CELL: &str = "insert or ignore into cell_series (run, cell, series) \
    select ?1, ?2, id from series where key = ?3";
const HAS_OCCASION: &str = "select exists (select 1 from occasion where run = ?1)";
const HAS_SERIES: &str = "select exists (select 1 from cell_series where run = ?1)";
const HAS_BEGUN: &str = "select exists (select 1 from visit where run = ?1) \
    or exists (select 1 from record where run = ?1)";
const SELECT_OCCASIONS: &str = "select h.uid, h.class, h.kernel, h.microcode, o.uid, o.boot_id, \
    o.measurement_version, o.at_unix_ms from occasion o join host h on h.id = o.host \
    where o.run = ?1 order by o.id";

impl Store {
    /// Records that a run is measured on a host from now on, and the series of its cells, in their order. A
    /// host that is not known as it is now gets a row; the series of a run stay what they were at its start.
    ///
    /// Nothing is recorded of a run of which a part was measured when nothing was: nobody knows where, and
    /// with which texts of its workloads.
    ///
    /// Errors: `Misuse` while a visit is open, `UnknownRun`, `Full`, `Sqlite`.
    pub fn add_occasion(
        &mut self,
        run: &str,
        occasion: &Occasion,
        series: &[Series],
    ) -> Result<(), StoreError> {
        let class = serde_json::to_string(&occasion.host.class)
            .map_err(|error| self.misuse(format!("class of a host: {error}")))?;
        self.begin(run, |step, run| {
            keep_series(step, run, series)?;
            if is_late(step, run, HAS_OCCASION)? {
                return Ok(());
            }
            let host = host_id(step, occasion, &class)?;
            let values = (
                run,
                host,
                &occasion.uid,
                &occasion.boot_id,
                occasion.measurement_version,
                occasion.at_unix_ms,
            );
            step.execute(INSERT_OCCASION, values).map(drop)
        })
    }

    /// Records the series of a run's cells alone, where its host is not known.
    ///
    /// Errors: as [`Store::add_occasion`].
    pub fn add_series(&mut self, run: &str, series: &[Series]) -> Result<(), StoreError> {
        self.begin(run, |step, run| keep_series(step, run, series))
    }

    /// Does something about a run before it is measured, in one transaction.
    fn begin(
        &mut self,
        run: &str,
        keep: impl FnOnce(&Transaction<'_>, i64) -> rusqlite::Result<()>,
    ) -> Result<(), StoreError> {
        if self.visit.is_some() {
            return Err(self.misuse("an occasion with an open visit".to_owned()));
        }
        let run = self.run_id(run)?;
        let path = self.path.clone();
        let fail = |source| StoreError::sqlite(&path, "store an occasion in", source);
        let step = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(fail)?;
        keep(&step, run).map_err(fail)?;
        step.commit().map_err(fail)
    }

    /// Where and when a run was measured, the first time first; empty for runs of versions before.
    ///
    /// Errors: `UnknownRun`, `Damaged`, `Sqlite`.
    pub fn occasions(&self, run: &str) -> Result<Vec<Occasion>, StoreError> {
        let rows: Vec<(String, Occasion)> =
            self.collect(SELECT_OCCASIONS, [self.run_id(run)?], |row| {
                let host = HostIdentity {
                    uid: row.get(0)?,
                    class: Default::default(),
                    kernel: row.get(2)?,
                    microcode: row.get(3)?,
                };
                let occasion = Occasion {
                    host,
                    uid: row.get(4)?,
                    boot_id: row.get(5)?,
                    measurement_version: row.get(6)?,
                    at_unix_ms: row.get(7)?,
                };
                Ok((row.get(1)?, occasion))
            })?;
        let with_class = |(class, mut occasion): (String, Occasion)| {
            occasion.host.class = serde_json::from_str(&class)
                .map_err(|error| self.damaged(format!("class of a host: {error}")))?;
            Ok(occasion)
        };
        rows.into_iter().map(with_class).collect()
    }

    /// The series of a run's cells, in their order; empty for runs of versions before.
    ///
    /// Errors: `UnknownRun`, `Sqlite`.
    pub fn series(&self, run: &str) -> Result<Vec<Series>, StoreError> {
        const SQL: &str = "select s.key, s.slug, s.content from cell_series c \
            join series s on s.id = c.series where c.run = ?1 order by c.cell";
        self.collect(SQL, [self.run_id(run)?], |row| {
            Ok(Series {
                key: row.get(0)?,
                slug: row.get(1)?,
                content: row.get(2)?,
            })
        })
    }
}

fn keep_series(step: &Transaction<'_>, run: i64, series: &[Series]) -> rusqlite::Result<()> {
    if is_late(step, run, HAS_SERIES)? {
        return Ok(());
    }
    for (cell, series) in CellId::each().zip(series) {
        step.execute(INSERT_SERIES, (&series.key, &series.slug, &series.content))?;
        step.execute(INSERT_CELL, (run, cell.0, &series.key))?;
    }
    Ok(())
}

/// Whether a part of a run was measured when this was not kept of it yet.
fn is_late(step: &Transaction<'_>, run: i64, has: &str) -> rusqlite::Result<bool> {
    let has: bool = step.query_row(has, [run], |row| row.get(0))?;
    Ok(!has && step.query_row(HAS_BEGUN, [run], |row| row.get(0))?)
}

fn host_id(step: &Transaction<'_>, occasion: &Occasion, class: &str) -> rusqlite::Result<i64> {
    let host = &occasion.host;
    let known = step
        .prepare_cached(SELECT_HOST)?
        .query_map((&host.uid, class, &host.kernel, &host.microcode), |row| {
            row.get(0)
        })?
        .next()
        .transpose()?;
    if let Some(id) = known {
        return Ok(id);
    }
    let began = occasion.at_unix_ms;
    let values = (&host.uid, class, &host.kernel, &host.microcode, began);
    step.execute(INSERT_HOST, values)?;
    Ok(step.last_insert_rowid())
}
