//! Runs and cells that somebody withdrew.

use crate::error::StoreError;
use crate::store::Store;
use deltabench_model::invalidation::Invalidation;
use deltabench_model::plan::CellId;
use std::collections::BTreeMap;

impl Store {
    /// Records, durably, that a run or a cell of it is withdrawn. Nothing is deleted.
    ///
    /// Errors: `Misuse` while a visit is open, for a cell that the plan does not have and for an empty
    /// reason; `UnknownRun`, `Full`, `Sqlite`.
    pub fn invalidate(&mut self, run: &str, invalidation: &Invalidation) -> Result<(), StoreError> {
        const SQL: &str =
            "insert into invalidation (run, cell, reason, at_unix_ms) values (?1, ?2, ?3, ?4)";
        if self.visit.is_some() {
            return Err(self.misuse("a withdrawal while a visit is open".to_owned()));
        }
        if invalidation.reason.trim().is_empty() {
            return Err(self.misuse("a withdrawal without a reason".to_owned()));
        }
        let cells = self.plan(run)?.cells.len();
        if let Some(cell) = invalidation.cell.filter(|cell| cell.index() >= cells) {
            return Err(self.misuse(format!("a withdrawal of cell {cell}: {run} has {cells}")));
        }
        let run = self.run_id(run)?;
        self.execute(
            SQL,
            "store a withdrawal in",
            (
                run,
                invalidation.cell.map(|id| id.0),
                &invalidation.reason,
                invalidation.at_unix_ms,
            ),
        )
    }

    /// The withdrawals of all runs that have any, as [`Store::invalidations`].
    ///
    /// Errors: `Sqlite`.
    pub fn all_invalidations(&self) -> Result<BTreeMap<String, Vec<Invalidation>>, StoreError> {
        const SQL: &str = "select r.name, i.cell, i.reason, i.at_unix_ms from invalidation i \
            join run r on r.id = i.run order by i.id";
        let rows: Vec<(String, Invalidation)> = self.collect(SQL, [], |row| {
            let withdrawn = Invalidation {
                cell: row.get::<_, Option<u32>>(1)?.map(CellId),
                reason: row.get(2)?,
                at_unix_ms: row.get(3)?,
            };
            Ok((row.get(0)?, withdrawn))
        })?;
        let mut runs: BTreeMap<String, Vec<Invalidation>> = BTreeMap::new();
        for (run, withdrawn) in rows {
            runs.entry(run).or_default().push(withdrawn);
        }
        Ok(runs)
    }

    /// The withdrawals of a run and of its cells, in the order they were made.
    ///
    /// Errors: `UnknownRun`, `Sqlite`.
    pub fn invalidations(&self, run: &str) -> Result<Vec<Invalidation>, StoreError> {
        self.collect(
            "select cell, reason, at_unix_ms from invalidation where run = ?1 order by id",
            [self.run_id(run)?],
            |row| {
                Ok(Invalidation {
                    cell: row.get::<_, Option<u32>>(0)?.map(CellId),
                    reason: row.get(1)?,
                    at_unix_ms: row.get(2)?,
                })
            },
        )
    }
}
