//! Instructions counted.

use crate::error::StoreError;
use crate::store::Store;
use deltabench_model::counts::CountRecord;
use deltabench_model::plan::{CellId, ServerId};
use deltabench_model::profile::Profile;
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use std::io::{Read, Write};

const INSERT_COUNT: &str = "insert into instruction_count \
     (run, server, cell, start, window, operations, instructions, of_marks, of_clock, rows, failed, \
     beside) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
const SELECT_COUNTS: &str = "select server, cell, start, window, operations, instructions, of_marks, \
     of_clock, rows, failed, beside from instruction_count where run = ?1 \
     order by cell, server, start, window, id";
const INSERT_PROFILE: &str =
    "insert into instruction_profile (run, server, cell, profile) values (?1, ?2, ?3, ?4)";
const SELECT_PROFILE: &str = "select profile from instruction_profile \
     where run = ?1 and server = ?2 and cell = ?3 order by id desc limit 1";

/// Runs that may count for another, or sample, by their names: those that begin so come before those with the
/// next letter. A comparison finds them in the index of names, a pattern would read all of these.
const SELECT_COUNTING: &str = "select name from run \
     where name >= ?1 || '-count' and name < ?1 || '-counu' \
     and plan ->> '$.counts' = ?1 order by id";
const SELECT_SAMPLING: &str = "select name from run \
     where name >= ?1 || '-sample' and name < ?1 || '-samplf' \
     and plan ->> '$.samples' = ?1 order by id";

/// Runs that may confirm another, by their names.
const SELECT_CONFIRMING: &str = "select name from run \
     where name >= ?1 || '-confirm' and name < ?1 || '-confirn' \
     and plan ->> '$.confirms' = ?1 order by id";

impl Store {
    /// The runs that count the instructions of another one's cells, oldest first.
    ///
    /// Errors: `Sqlite`.
    pub fn counting_for(&self, run: &str) -> Result<Vec<String>, StoreError> {
        self.collect(SELECT_COUNTING, [run], |row| row.get(0))
    }

    /// The runs that sample the time of another one's cells, oldest first.
    ///
    /// Errors: `Sqlite`.
    pub fn sampling_for(&self, run: &str) -> Result<Vec<String>, StoreError> {
        self.collect(SELECT_SAMPLING, [run], |row| row.get(0))
    }

    /// The runs that confirm another one, oldest first. All but the last are withdrawn.
    ///
    /// Errors: `Sqlite`.
    pub fn confirming(&self, run: &str) -> Result<Vec<String>, StoreError> {
        self.collect(SELECT_CONFIRMING, [run], |row| row.get(0))
    }

    /// Records windows of counted instructions, all or none; they are on disk when this returns.
    ///
    /// Errors: `Misuse` for a number above 2^63 - 1, `UnknownRun`, `Full`, `Sqlite`.
    pub fn add_counts(&mut self, run: &str, counts: &[CountRecord]) -> Result<(), StoreError> {
        let run = self.run_id(run)?;
        self.insert_all("add counts to", |step| {
            let mut insert = step.prepare_cached(INSERT_COUNT)?;
            for count in counts {
                insert.execute((
                    run,
                    count.server.0,
                    count.cell.0,
                    count.start,
                    count.window,
                    count.operations,
                    count.instructions,
                    count.of_marks,
                    count.of_clock,
                    count.rows,
                    count.failed,
                    count.beside,
                ))?;
            }
            Ok(())
        })
    }

    /// The counts of a run, by cell, server, start and window; none if nothing was counted.
    ///
    /// Errors: `UnknownRun`, `Sqlite`.
    pub fn counts(&self, run: &str) -> Result<Vec<CountRecord>, StoreError> {
        self.collect(SELECT_COUNTS, [self.run_id(run)?], |row| {
            Ok(CountRecord {
                server: ServerId(row.get(0)?),
                cell: CellId(row.get(1)?),
                start: row.get(2)?,
                window: row.get(3)?,
                operations: row.get(4)?,
                instructions: row.get(5)?,
                of_marks: row.get(6)?,
                of_clock: row.get(7)?,
                rows: row.get(8)?,
                failed: row.get(9)?,
                beside: row.get(10)?,
            })
        })
    }

    /// Records where the counted instructions of a server went in a cell.
    ///
    /// Errors: `Misuse` for a profile that has no form in JSON, `UnknownRun`, `Full`, `Sqlite`.
    pub fn add_count_profile(
        &mut self,
        run: &str,
        (server, cell): (ServerId, CellId),
        profile: &Profile,
    ) -> Result<(), StoreError> {
        let run = self.run_id(run)?;
        let text =
            serde_json::to_string(profile).map_err(|error| self.misuse(error.to_string()))?;
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        let packed = encoder
            .write_all(text.as_bytes())
            .and_then(|()| encoder.finish())
            .map_err(|error| self.misuse(format!("a profile that cannot be packed: {error}")))?;
        self.insert_all("add a profile to", |step| {
            step.execute(INSERT_PROFILE, (run, server.0, cell.0, &packed))
                .map(drop)
        })
    }

    /// Where the counted instructions of a server went in a cell; none if that was not counted.
    ///
    /// Errors: `Damaged`, `UnknownRun`, `Sqlite`.
    pub fn count_profile(
        &self,
        run: &str,
        (server, cell): (ServerId, CellId),
    ) -> Result<Option<Profile>, StoreError> {
        let run = self.run_id(run)?;
        let packed: Vec<Vec<u8>> =
            self.collect_bulk(run, SELECT_PROFILE, (run, server.0, cell.0), |row| {
                row.get(0)
            })?;
        let Some(packed) = packed.into_iter().next() else {
            return Ok(None);
        };
        let what = |why: String| {
            self.damaged(format!(
                "the profile of cell {cell}, server {server}: {why}"
            ))
        };
        let mut text = String::new();
        ZlibDecoder::new(packed.as_slice())
            .read_to_string(&mut text)
            .map_err(|error| what(error.to_string()))?;
        serde_json::from_str(&text)
            .map(Some)
            .map_err(|error| what(error.to_string()))
    }
}
