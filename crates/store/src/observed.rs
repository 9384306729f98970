//! What was observed beside the slices: counters of visits, the series of the host, marks.

use crate::error::StoreError;
use crate::store::Store;
use deltabench_model::counter::{Mark, Sample, VisitCounters};
use deltabench_model::plan::{CellId, ServerId};
use rusqlite::Savepoint;
use std::collections::BTreeMap;

impl Store {
    /// Records the counters of one server over a visit. Inside an open visit they become durable with it, and
    /// are forgotten when it is abandoned; for a completed visit they are stored at once.
    ///
    /// Errors: `Misuse` for a visit that is neither open nor complete, for a server that has counters of this
    /// visit already, and for values that are not finite; `UnknownRun`, `Full`, `Sqlite`.
    pub fn add_counters(&mut self, run: &str, counters: &VisitCounters) -> Result<(), StoreError> {
        let VisitCounters {
            server,
            cell,
            block,
            operations,
            values,
        } = counters;
        let run_id = self.run_id(run)?;
        let open = self.open_visit(run, *cell, *block).is_some();
        if !open && !self.visits_of(run_id)?.contains(&(*block, *cell)) {
            return Err(self.misuse(format!(
                "counters of block {block}, cell {cell}, which is not open"
            )));
        }
        let known: Vec<i64> = self.collect(
            "select id from visit_counters where run = ?1 and block = ?2 and cell = ?3 and server = ?4",
            (run_id, block, cell.0, server.0),
            |row| row.get(0),
        )?;
        if !known.is_empty() {
            return Err(self.misuse(format!(
                "counters of block {block}, cell {cell}, server {server} for a second time"
            )));
        }
        let text = self.json(values)?;
        self.insert_all("add counters to", |step| {
            step.prepare_cached(INSERT_COUNTERS)?
                .execute((run_id, block, cell.0, server.0, operations, text))
                .map(drop)
        })
    }

    /// The counters of all visits that are complete, in the order they were recorded.
    ///
    /// Errors: `Damaged`, `UnknownRun`, `Sqlite`.
    pub fn counters(&self, run: &str) -> Result<Vec<VisitCounters>, StoreError> {
        let run = self.run_id(run)?;
        let rows: Vec<(VisitCounters, String)> = self.collect_bulk(
            run,
            "select server, cell, block, operations, counters from visit_counters where run = ?1 order by id",
            [run],
            |row| {
                let counters = VisitCounters {
                    server: ServerId(row.get(0)?),
                    cell: CellId(row.get(1)?),
                    block: row.get(2)?,
                    operations: row.get(3)?,
                    values: BTreeMap::new(),
                };
                Ok((counters, row.get(4)?))
            },
        )?;
        rows.into_iter()
            .map(|(counters, text)| {
                let values = self.parse_values("counters", &text)?;
                Ok(VisitCounters { values, ..counters })
            })
            .collect()
    }

    /// Records samples of the series, all or none. Inside an open visit they become durable with it,
    /// otherwise at once.
    ///
    /// Errors: `Misuse` for values that are not finite, `UnknownRun`, `Full`, `Sqlite`.
    pub fn add_samples(&mut self, run: &str, samples: &[Sample]) -> Result<(), StoreError> {
        let run = self.run_id(run)?;
        let texts = samples
            .iter()
            .map(|sample| self.json(&sample.values))
            .collect::<Result<Vec<String>, StoreError>>()?;
        self.insert_all("add samples to", |step| {
            let mut insert = step.prepare_cached(INSERT_SAMPLE)?;
            for (sample, text) in samples.iter().zip(texts) {
                insert.execute((run, sample.at_ns, sample.over_ns, text))?;
            }
            Ok(())
        })
    }

    /// The series of a run, in order of time.
    ///
    /// Errors: `Damaged`, `UnknownRun`, `Sqlite`.
    pub fn samples(&self, run: &str) -> Result<Vec<Sample>, StoreError> {
        let run = self.run_id(run)?;
        let rows: Vec<(u64, u64, String)> = self.collect_bulk(
            run,
            "select at_ns, over_ns, series from sample where run = ?1 order by at_ns, id",
            [run],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )?;
        rows.into_iter()
            .map(|(at_ns, over_ns, text)| {
                Ok(Sample {
                    at_ns,
                    over_ns,
                    values: self.parse_values("series", &text)?,
                })
            })
            .collect()
    }

    /// Records marks, all or none; those that are stored already are left out, so that a log can be read
    /// again. Inside an open visit they become durable with it, otherwise at once.
    ///
    /// Errors: `UnknownRun`, `Full`, `Sqlite`, `Misuse` for a time above 2^63 - 1.
    pub fn add_marks(&mut self, run: &str, marks: &[Mark]) -> Result<(), StoreError> {
        let run = self.run_id(run)?;
        self.insert_all("add marks to", |step| {
            let mut insert = step.prepare_cached(INSERT_MARK)?;
            for mark in marks {
                insert.execute((
                    run,
                    mark.at_ns,
                    mark.server.map(|id| id.0),
                    &mark.kind,
                    &mark.text,
                ))?;
            }
            Ok(())
        })
    }

    /// The marks of a run, in order of time.
    ///
    /// Errors: `UnknownRun`, `Sqlite`.
    pub fn marks(&self, run: &str) -> Result<Vec<Mark>, StoreError> {
        let run = self.run_id(run)?;
        self.collect_bulk(
            run,
            "select at_ns, server, kind, text from mark where run = ?1 order by at_ns, id",
            [run],
            |row| {
                Ok(Mark {
                    at_ns: row.get(0)?,
                    server: row.get::<_, Option<u32>>(1)?.map(ServerId),
                    kind: row.get(2)?,
                    text: row.get(3)?,
                })
            },
        )
    }

    /// Inserts all or nothing: in a transaction of its own, or as a part of the open visit.
    pub(crate) fn insert_all(
        &mut self,
        action: &'static str,
        insert: impl FnOnce(&Savepoint<'_>) -> rusqlite::Result<()>,
    ) -> Result<(), StoreError> {
        let done = self.connection.savepoint().and_then(|step| {
            insert(&step)?;
            step.commit()
        });
        match done {
            Ok(()) => Ok(()),
            Err(rusqlite::Error::ToSqlConversionFailure(_)) => {
                Err(self.misuse("a number does not fit into 63 bits".to_owned()))
            }
            Err(source) => Err(self.failed(action, source)),
        }
    }

    /// The values as JSON, which knows no infinities.
    fn json(&self, values: &BTreeMap<String, f64>) -> Result<String, StoreError> {
        if let Some((key, value)) = values.iter().find(|(_, value)| !value.is_finite()) {
            return Err(self.misuse(format!("{key} is {value}")));
        }
        serde_json::to_string(values).map_err(|error| self.misuse(error.to_string()))
    }

    fn parse_values(&self, what: &str, text: &str) -> Result<BTreeMap<String, f64>, StoreError> {
        serde_json::from_str(text).map_err(|error| self.damaged(format!("{what}: {error}")))
    }
}

const INSERT_COUNTERS: &str = "insert into visit_counters (run, block, cell, server, operations, counters) \
    values (?1, ?2, ?3, ?4, ?5, ?6)";

const INSERT_SAMPLE: &str =
    "insert into sample (run, at_ns, over_ns, series) values (?1, ?2, ?3, ?4)";

const INSERT_MARK: &str = "insert into mark (run, at_ns, server, kind, text) values (?1, ?2, ?3, ?4, ?5) \
    on conflict do nothing";
