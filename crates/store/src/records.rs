//! Whole pieces of work that a kind of benchmark records: each durable when it ends.

use crate::error::StoreError;
use crate::store::Store;
use deltabench_model::plan::{CellId, ServerId};
use deltabench_model::record::Record;
use deltabench_model::slice::VoidReason;

impl Store {
    /// Keeps a record; it is on disk when this returns.
    ///
    /// A piece of work that was cut short is begun again, so it may be recorded twice: the later one counts.
    ///
    /// Errors: `Misuse` while a visit is open, `UnknownRun`, `Full`, `Sqlite`.
    pub fn add_record(&mut self, run: &str, record: &Record) -> Result<(), StoreError> {
        const SQL: &str = "insert into record (run, kind, block, cell, server, void, payload) \
            values (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        if self.visit.is_some() {
            return Err(self.misuse("a record while a visit is open".to_owned()));
        }
        let values = (
            self.run_id(run)?,
            &record.kind,
            record.block,
            record.cell.0,
            record.server.0,
            record.void.as_ref().map(VoidReason::word),
            &record.payload,
        );
        self.execute(SQL, "add a record to", values)
    }

    /// The records of a run in the order they were measured; of two of the same place only the later one.
    ///
    /// Errors: `Damaged`, `UnknownRun`, `Sqlite`.
    pub fn records(&self, run: &str) -> Result<Vec<Record>, StoreError> {
        const SQL: &str = "select id, void, kind, server, cell, block, payload from record \
            where run = ?1 and id in \
            (select max(id) from record where run = ?1 group by kind, block, cell, server) order by id";
        let run = self.run_id(run)?;
        let rows: Vec<(i64, Option<String>, Record)> =
            self.collect_bulk(run, SQL, [run], |row| {
                let record = Record {
                    kind: row.get(2)?,
                    server: ServerId(row.get(3)?),
                    cell: CellId(row.get(4)?),
                    block: row.get(5)?,
                    void: None,
                    payload: row.get(6)?,
                };
                Ok((row.get(0)?, row.get(1)?, record))
            })?;
        let with_void = |(id, void, mut record): (i64, Option<String>, Record)| {
            record.void = self.void_reason(void, || format!("record {id}"))?;
            Ok(record)
        };
        rows.into_iter().map(with_void).collect()
    }

    /// The reason that a stored word stands for.
    pub(crate) fn void_reason(
        &self,
        word: Option<String>,
        what: impl Fn() -> String,
    ) -> Result<Option<VoidReason>, StoreError> {
        let known = |word: String| {
            VoidReason::from_word(&word).ok_or_else(|| {
                let what = what();
                self.damaged(format!("{what} is void for an unknown reason: `{word}`"))
            })
        };
        word.map(known).transpose()
    }
}
