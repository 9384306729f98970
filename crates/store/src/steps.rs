//! Steps of the Insert Benchmark: each durable when it ends.

use crate::error::StoreError;
use crate::store::Store;
use deltabench_model::insert::StepRecord;

impl Store {
    /// Records a step; it is on disk when this returns.
    ///
    /// A pass that was cut short is begun again, so a step may be recorded twice: the later one counts.
    ///
    /// Errors: `Misuse` while a visit is open or for a record that cannot be written as JSON, `UnknownRun`,
    /// `Full`, `Sqlite`.
    pub fn add_step(&mut self, run: &str, record: &StepRecord) -> Result<(), StoreError> {
        if self.visit.is_some() {
            return Err(self.misuse("a step while a visit is open".to_owned()));
        }
        let run_id = self.run_id(run)?;
        let text = serde_json::to_string(record)
            .map_err(|error| self.misuse(format!("a step that cannot be written: {error}")))?;
        self.connection
            .execute(
                "insert into step (run, block, cell, server, record) values (?1, ?2, ?3, ?4, ?5)",
                (run_id, record.block, record.cell, record.server, text),
            )
            .map(drop)
            .map_err(|source| StoreError::sqlite(&self.path, "add a step to", source))
    }

    /// The steps of a run in the order they were measured; of two of the same place only the later one.
    ///
    /// Errors: `Damaged`, `UnknownRun`, `Sqlite`.
    pub fn steps(&self, run: &str) -> Result<Vec<StepRecord>, StoreError> {
        let rows: Vec<(i64, String)> = self.collect(
            "select id, record from step where run = ?1 and id in \
             (select max(id) from step where run = ?1 group by block, cell, server) order by id",
            [self.run_id(run)?],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        rows.into_iter()
            .map(|(id, text)| {
                serde_json::from_str(&text)
                    .map_err(|error| self.damaged(format!("step {id}: {error}")))
            })
            .collect()
    }
}
