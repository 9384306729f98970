//! Visits: the unit of durability.

use crate::error::StoreError;
use crate::rows::{INSERT_ERROR, INSERT_SLICE};
use crate::store::{OpenVisit, Store};
use deltabench_model::plan::CellId;
use deltabench_model::slice::Slice;
use rusqlite::OptionalExtension;

impl Store {
    /// Begins the visit of a block to a cell; slices appended from now on belong to it.
    ///
    /// Errors: `Misuse` when a visit is open or this one was completed before, `UnknownRun`, `Sqlite`.
    pub fn begin_visit(&mut self, run: &str, cell: CellId, block: u32) -> Result<(), StoreError> {
        if let Some(open) = &self.visit {
            return Err(self.misuse(format!(
                "block {}, cell {} is still open",
                open.block, open.cell
            )));
        }
        let run_id = self.run_id(run)?;
        let fail = |source| StoreError::sqlite(&self.path, "begin a visit in", source);
        // Immediate: a second writer is met here, not between two slices.
        self.connection
            .execute_batch("begin immediate")
            .map_err(fail)?;
        let known = self
            .connection
            .query_row(
                "select 1 from visit where run = ?1 and block = ?2 and cell = ?3",
                (run_id, block, cell.0),
                |_| Ok(()),
            )
            .optional();
        let known = match known {
            Ok(known) => known.is_some(),
            Err(source) => return Err(self.undone("begin a visit in", source)),
        };
        if known {
            self.roll_back();
            return Err(self.misuse(format!("block {block}, cell {cell} was visited before")));
        }
        self.visit = Some(OpenVisit {
            run: run.to_owned(),
            run_id,
            cell,
            block,
            slices: 0,
        });
        Ok(())
    }

    /// Appends a slice to the open visit. Nothing reaches the disk before the visit is committed.
    ///
    /// Errors: `Misuse` for a slice of another visit or a number above 2^63 - 1, `Full`, `Sqlite`. A slice is
    /// stored whole or not at all.
    pub fn append(&mut self, run: &str, slice: &Slice) -> Result<(), StoreError> {
        let Some(run_id) = self
            .open_visit(run, CellId(slice.cell.0), slice.block)
            .map(|open| open.run_id)
        else {
            let (block, cell) = (slice.block, slice.cell);
            return Err(self.misuse(format!(
                "a slice of block {block}, cell {cell}, which is not open"
            )));
        };
        if let Err(source) = self.insert(run_id, slice) {
            return Err(match source {
                rusqlite::Error::ToSqlConversionFailure(_) => {
                    self.misuse("a number of the slice does not fit into 63 bits".to_owned())
                }
                source => self.failed("append a slice to", source),
            });
        }
        if let Some(open) = &mut self.visit {
            open.slices += 1;
        }
        Ok(())
    }

    pub(crate) fn open_visit(&self, run: &str, cell: CellId, block: u32) -> Option<&OpenVisit> {
        self.visit
            .as_ref()
            .filter(|open| open.run == run && (open.cell, open.block) == (cell, block))
    }

    fn insert(&mut self, run_id: i64, slice: &Slice) -> rusqlite::Result<()> {
        // A savepoint, so that a slice whose errors cannot be stored is not stored either.
        let scripts = scripts(slice)?;
        let step = self.connection.savepoint()?;
        step.prepare_cached(INSERT_SLICE)?
            .execute(rusqlite::params![
                run_id,
                slice.block,
                slice.cell.0,
                slice.round,
                slice.position,
                slice.server.0,
                slice.connection,
                slice.started_ns,
                slice.duration_ns,
                slice.operations,
                slice.failed,
                slice.rows,
                slice.server_cpu_ns,
                slice.run_queue_wait_ns,
                slice.client_cpu_ns,
                slice.foreign_cpu_ns,
                slice.steal_ns,
                slice.latency_histogram,
                slice
                    .void
                    .as_ref()
                    .map(deltabench_model::slice::VoidReason::word),
                slice.idle_cpu_ns,
                slice.switches,
                slice.cpu_pressure_ns,
                slice.schedule_lag_ns,
                scripts,
                slice.void_detail,
                slice.background_cpu_ns,
                slice.probe_ns,
                slice.probing_ns,
            ])?;
        let id = step.last_insert_rowid();
        for (ordinal, error) in (0_u32..).zip(&slice.errors) {
            step.prepare_cached(INSERT_ERROR)?.execute((
                id,
                ordinal,
                &error.sqlstate,
                error.count,
                &error.first_message,
            ))?;
        }
        step.commit()
    }

    /// Ends the open visit. When this returns, its slices are on disk.
    ///
    /// Errors: `Misuse` when another or no visit is open, `Full`, `Sqlite`; the visit is then not stored.
    pub fn commit_visit(&mut self, run: &str, cell: CellId, block: u32) -> Result<(), StoreError> {
        let Some(open) = self.open_visit(run, cell, block) else {
            return Err(self.misuse(format!("block {block}, cell {cell} is not open")));
        };
        let done = self
            .connection
            .execute(
                "insert into visit (run, block, cell, slices) values (?1, ?2, ?3, ?4)",
                (open.run_id, block, cell.0, open.slices),
            )
            .and_then(|_| self.connection.execute_batch("commit"));
        if let Err(source) = done {
            return Err(self.undone("commit a visit to", source));
        }
        self.visit = None;
        Ok(())
    }

    /// Gives up the open visit: its slices, and all that was recorded since it began, are forgotten.
    /// Does nothing when none is open.
    ///
    /// Errors: `Sqlite`.
    pub fn abandon_visit(&mut self) -> Result<(), StoreError> {
        if self.visit.take().is_none() || self.connection.is_autocommit() {
            return Ok(());
        }
        let fail = |source| StoreError::sqlite(&self.path, "give up a visit in", source);
        self.connection.execute_batch("rollback").map_err(fail)
    }

    /// The completed visits of a run as (block, cell), in the order they were made.
    ///
    /// Errors: `UnknownRun`, `Sqlite`.
    pub fn completed_visits(&self, run: &str) -> Result<Vec<(u32, CellId)>, StoreError> {
        self.visits_of(self.run_id(run)?)
    }

    pub(crate) fn visits_of(&self, run_id: i64) -> Result<Vec<(u32, CellId)>, StoreError> {
        self.collect(
            "select block, cell from visit where run = ?1 order by id",
            [run_id],
            |row| Ok((row.get(0)?, CellId(row.get(1)?))),
        )
    }

    fn undone(&mut self, action: &'static str, source: rusqlite::Error) -> StoreError {
        self.roll_back();
        StoreError::sqlite(&self.path, action, source)
    }

    fn roll_back(&mut self) {
        // Fails only when SQLite has rolled back already, which is what is wanted.
        let _ = self.connection.execute_batch("rollback");
        self.visit = None;
    }
}

/// The scripts of a slice as they are stored; most slices have none.
fn scripts(slice: &Slice) -> rusqlite::Result<Option<String>> {
    if slice.scripts.is_empty() {
        return Ok(None);
    }
    serde_json::to_string(&slice.scripts)
        .map(Some)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}
