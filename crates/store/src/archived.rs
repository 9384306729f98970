//! Runs whose bulk lies in sealed files beside the store: putting it there, reading it there, taking it back.

use crate::bulk::{self, BULK};
use crate::error::StoreError;
use crate::kill_points::reached;
use crate::opened::{SealedRun, collect_from};
use crate::runs::RunState;
use crate::sealed_run::{self, path_of};
use crate::store::Store;
use deltabench_model::finding::{Finding, FindingKind, Severity};
use deltabench_model::units::count;
use rusqlite::{Connection, Params, Row, Transaction, TransactionBehavior};
use std::path::{Path, PathBuf};

const INSERT: &str = "insert into archived (run, state, sha256, bytes, row_count, blocks_done, \
    visits_done, at_unix_ms, written_by) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";

const SELECT_NEWEST: &str = "select state, sha256, bytes, row_count, blocks_done, visits_done, id \
    from archived where run = ?1 order by id desc limit 1";

const SELECT_ARCHIVED: &str = "select r.name from run r where 'archived' = \
    (select state from archived where run = r.id order by id desc limit 1) \
    order by r.started_unix_ms, r.id";

impl Store {
    /// The sealed file of a run that is archived; `None` for one whose bulk is in the store.
    ///
    /// Errors: `UnknownRun`, `Sqlite`.
    pub fn archived(&self, run: &str) -> Result<Option<SealedRun>, StoreError> {
        self.sealed_file(self.run_id(run)?)
    }

    /// The runs that are archived, oldest first.
    ///
    /// Errors: `Sqlite`.
    pub fn archived_runs(&self) -> Result<Vec<String>, StoreError> {
        self.collect(SELECT_ARCHIVED, [], |row| row.get(0))
    }

    /// The archived runs whose sealed files are not there as they were written. Nothing is read.
    ///
    /// Errors: `Sqlite`.
    pub fn lost_archives(&self) -> Result<Vec<String>, StoreError> {
        let mut lost = Vec::new();
        for run in self.archived_runs()? {
            let file = self.archived(&run)?;
            let is_lost =
                |file: &SealedRun| sealed_run::fault_at_sight(&file.path, file.bytes).is_some();
            if file.as_ref().is_some_and(is_lost) {
                lost.push(run);
            }
        }
        Ok(lost)
    }

    pub(crate) fn sealed_file(&self, run: i64) -> Result<Option<SealedRun>, StoreError> {
        Ok(self.place_of(run)?.1)
    }

    /// Where the bulk of a run is: the sealed file, if it is archived, and how often it has moved so far, as
    /// the number of its newest move.
    fn place_of(&self, run: i64) -> Result<(i64, Option<SealedRun>), StoreError> {
        let rows: Vec<(i64, String, SealedRun)> = self.collect(SELECT_NEWEST, [run], |row| {
            let sha256: String = row.get(1)?;
            let file = SealedRun {
                path: path_of(&self.lab, &sha256),
                sha256,
                bytes: row.get(2)?,
                rows: row.get(3)?,
                done: (row.get(4)?, row.get(5)?),
            };
            Ok((row.get(6)?, row.get(0)?, file))
        })?;
        let newest = rows.into_iter().next();
        Ok(newest.map_or((0, None), |(nth, state, file)| {
            (nth, (state == ARCHIVED).then_some(file))
        }))
    }

    /// Reads the bulk of a run where it is, all with one connection: `read` gets it with the path of its
    /// file. If another process moves the run meanwhile, it reads again, because rows have other numbers in
    /// another place.
    pub(crate) fn with_bulk<T: Default>(
        &self,
        run: i64,
        mut read: impl FnMut(&Connection, &Path) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        loop {
            let place = self.place_of(run)?;
            let found = match &place.1 {
                None => read(&self.connection, &self.path)?,
                Some(file) => (self.opened).read(file, |sealed| read(sealed, &file.path))?,
            };
            if self.place_of(run)? == place {
                return Ok(found);
            }
        }
    }

    /// As [`Store::collect`], from where the bulk of a run is.
    pub(crate) fn collect_bulk<T>(
        &self,
        run: i64,
        sql: &str,
        values: impl Params + Clone,
        mut read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        self.with_bulk(run, |from, path| {
            collect_from(from, path, sql, values.clone(), &mut read)
        })
    }

    /// What is to be said of a run whose sealed file cannot be read.
    pub(crate) fn archive_finding(&self, run: i64) -> Result<Option<Finding>, StoreError> {
        let Some(file) = self.sealed_file(run)? else {
            return Ok(None);
        };
        Ok(self.opened.fault(&file).map(|why| {
            let path = sealed_run::path_of(Path::new(""), &file.sha256);
            let text = format!(
                "the run is archived, and its sealed file cannot be used, so that nothing is known of its \
                 slices: {} of the lab: {why}; put the file back from a copy of the lab",
                path.display()
            );
            Finding::new(FindingKind::ArchiveUnreadable, Severity::Unfit, text)
        }))
    }

    /// Whether the sealed file of an archived run can be read and is what it was; why not.
    ///
    /// Errors: `UnknownRun`, `Sqlite`.
    pub fn fault_of_archive(&self, run: &str) -> Result<Option<String>, StoreError> {
        let Some(file) = self.archived(run)? else {
            return Ok(None);
        };
        Ok(sealed_run::open(&file.path, &file.sha256, file.bytes).err())
    }

    /// How large the sealed file of a run would be. Nothing is written.
    ///
    /// Errors: `UnknownRun`, `Sqlite`, `Damaged`.
    pub fn sealed_bytes(&self, run: &str) -> Result<u64, StoreError> {
        let packed = sealed_run::pack(&self.connection, self.run_id(run)?);
        let packed =
            packed.map_err(|why| self.damaged(format!("{run} cannot be sealed: {why}")))?;
        Ok(count(packed.bytes.len()))
    }

    /// Moves the bulk of a finished run into a sealed file: the file is durable and was read back before
    /// anything is deleted, all in one transaction. Killed at any moment it loses nothing, and can be
    /// repeated. What is deleted becomes free for new records; [`Store::give_back`] shortens the file.
    ///
    /// Nobody else may archive meanwhile: the caller holds the lab's lock.
    ///
    /// Errors: `Misuse` for a run that is not finished or is archived, `Archive` for a file that cannot be
    /// written or read back, `UnknownRun`, `Full`, `Sqlite`.
    pub fn archive(&mut self, run: &str, unix_ms: i64) -> Result<SealedRun, StoreError> {
        let id = self.run_id(run)?;
        self.check_archivable(run)?;
        let done = self.progress_of(id, &self.plan(run)?)?;
        sealed_run::sweep(&self.lab);
        let packed = sealed_run::pack(&self.connection, id)
            .map_err(|why| self.damaged(format!("{run} cannot be sealed: {why}")))?;
        let wanted = path_of(&self.lab, &packed.sha256);
        let (sha256, bytes) = (packed.sha256.clone(), count(packed.bytes.len()));
        let failed = |path: &PathBuf, why: String| StoreError::Archive {
            path: path.clone(),
            run: run.to_owned(),
            why,
        };
        let path = packed
            .write(&self.lab)
            .map_err(|error| failed(&wanted, error.to_string()))?;
        drop(packed);
        let sealed = sealed_run::open(&path, &sha256, bytes).map_err(|why| failed(&path, why))?;
        let (read_back, rows) = self.digest_of(&sealed, id)?;
        drop(sealed);
        reached("read back");
        let file = SealedRun {
            path,
            sha256,
            bytes,
            rows,
            done,
        };
        let moved = self.in_one_step("archive a run of", |step| {
            if bulk::digest(step, id, true)?.0 != read_back {
                return Ok(false);
            }
            step.execute(INSERT, row(id, ARCHIVED, &file, unix_ms))?;
            reached("recorded");
            for part in &BULK {
                bulk::delete(step, part, id)?;
                reached(part.table);
            }
            Ok(true)
        })?;
        match moved {
            true => Ok(file),
            false => Err(failed(
                &file.path,
                "it does not hold what the store holds".to_owned(),
            )),
        }
    }

    /// Takes the bulk of an archived run back into the store. The sealed file stays.
    ///
    /// Errors: `Misuse` for a run that is not archived, `Archive` for a file that cannot be read,
    /// `UnknownRun`, `Full`, `Sqlite`.
    pub fn restore(&mut self, run: &str, unix_ms: i64) -> Result<SealedRun, StoreError> {
        let id = self.run_id(run)?;
        let Some(file) = self.sealed_file(id)? else {
            return Err(self.misuse(format!("the bulk of {run}, which is not archived")));
        };
        let failed = |why: String| StoreError::Archive {
            path: file.path.clone(),
            run: run.to_owned(),
            why,
        };
        let sealed = sealed_run::open(&file.path, &file.sha256, file.bytes).map_err(&failed)?;
        reached("read back");
        let back = self.in_one_step("restore a run of", |step| {
            step.execute(INSERT, row(id, RESTORED, &file, unix_ms))?;
            reached("recorded");
            let places: (&Connection, &Connection) = (&sealed, step);
            // Errors of slices belong to them, and are numbered as they are.
            let mut of_slices = 0;
            for part in BULK.iter().rev() {
                let raised = match part.table {
                    "slice_error" => of_slices,
                    _ => bulk::raise(places, part, id)?,
                };
                if part.table == "slice" {
                    of_slices = raised;
                }
                bulk::copy(places, part, id, raised)?;
                reached(part.table);
            }
            Ok(bulk::digest(step, id, false)? == bulk::digest(&sealed, id, false)?)
        })?;
        match back {
            true => Ok(file),
            false => Err(failed("it does not fit into the store".to_owned())),
        }
    }

    /// Shortens the store's file by what is free in it; says by how many bytes.
    ///
    /// Errors: `Full`, `Sqlite`: what is free stays free.
    pub fn give_back(&mut self) -> Result<u64, StoreError> {
        let path = self.path.clone();
        let fail = |source| StoreError::sqlite(&path, "shorten", source);
        let (before, _) = self.file_bytes()?;
        // The copy that it makes has the size of the lab: on disk, and not in memory.
        let on_disk = "pragma temp_store = file; pragma cache_spill = on; vacuum; \
                       pragma cache_spill = off; pragma temp_store = memory";
        self.connection.execute_batch(on_disk).map_err(fail)?;
        reached("shortened");
        // The log has the whole file now; without a reader it is emptied.
        self.connection
            .query_row("pragma wal_checkpoint(truncate)", [], |_| Ok(()))
            .map_err(fail)?;
        let (after, _) = self.file_bytes()?;
        Ok(before.saturating_sub(after))
    }

    /// Bytes of the store's file, and those of them that are free: [`Store::give_back`] gives these back.
    ///
    /// Errors: `Sqlite`.
    pub fn file_bytes(&self) -> Result<(u64, u64), StoreError> {
        const SQL: &str = "select page_count * page_size, freelist_count * page_size \
            from pragma_page_count, pragma_freelist_count, pragma_page_size";
        let found = self.collect(SQL, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(found.into_iter().next().unwrap_or_default())
    }

    fn check_archivable(&self, run: &str) -> Result<(), StoreError> {
        if self.visit.is_some() {
            return Err(self.misuse("an archive with an open visit".to_owned()));
        }
        if self.archived(run)?.is_some() {
            return Err(self.misuse(format!("the archive of {run} for a second time")));
        }
        match self.reached(run)? {
            Some(reached) if reached.state == RunState::Finished => Ok(()),
            _ => Err(self.misuse(format!("the archive of {run}, which is not finished"))),
        }
    }

    fn digest_of(&self, sealed: &Connection, run: i64) -> Result<(String, u64), StoreError> {
        bulk::digest(sealed, run, true)
            .map_err(|source| StoreError::sqlite(&self.path, "read a sealed run of", source))
    }

    /// Does all of it, or nothing where it says `false` or fails.
    fn in_one_step(
        &mut self,
        action: &'static str,
        act: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<bool>,
    ) -> Result<bool, StoreError> {
        let path = self.path.clone();
        let fail = |source| StoreError::sqlite(&path, action, source);
        let step = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(fail)?;
        let done = act(&step).map_err(fail)?;
        reached("compared");
        if done {
            step.commit().map_err(fail)?;
            reached("committed");
        }
        Ok(done)
    }
}

const ARCHIVED: &str = "archived";
const RESTORED: &str = "restored";

fn row<'a>(run: i64, state: &'a str, file: &'a SealedRun, unix_ms: i64) -> impl Params + use<'a> {
    let (blocks, visits) = file.done;
    (
        run,
        state,
        &file.sha256,
        file.bytes,
        file.rows,
        blocks,
        visits,
        unix_ms,
        env!("CARGO_PKG_VERSION"),
    )
}
