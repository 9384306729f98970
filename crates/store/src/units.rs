//! An experiment on several hosts: its units, and what became of them.

use crate::error::StoreError;
use crate::store::Store;
use rusqlite::TransactionBehavior;
use std::path::PathBuf;

/// An execution on several hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Execution {
    pub name: String,
    /// The directory in which hosts leave what they measured.
    pub spool: PathBuf,
    /// SHA-256 of the deltabench that all its units use, lower-case hex.
    pub binary_sha256: String,
    /// When it was planned, milliseconds since 1970.
    pub started_unix_ms: i64,
}

/// A unit of an execution: one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitRow {
    /// Its number, from 1.
    pub unit: u32,
    /// The lane that it is in, from 0.
    pub lane: u32,
    /// Its run.
    pub run: String,
}

/// What became of an attempt at a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitEvent {
    pub unit: u32,
    pub attempt: u32,
    /// The state's word.
    pub state: String,
    /// Where.
    pub host: String,
    /// Milliseconds since 1970.
    pub at_unix_ms: i64,
    /// Why, in words.
    pub text: String,
}

const INSERT_EVENT: &str = "insert or ignore into unit_event (unit, attempt, state, host, at_unix_ms, text) \
    select u.id, ?3, ?4, ?5, ?6, ?7 from unit u join execution e on e.id = u.execution \
    where e.name = ?1 and u.unit = ?2";

impl Store {
    /// Stores an execution with its units, before any of them is measured.
    ///
    /// Errors: `Full`, `Sqlite`; one of that name is there.
    pub fn add_execution(
        &mut self,
        execution: &Execution,
        units: &[UnitRow],
    ) -> Result<(), StoreError> {
        let path = self.path.clone();
        let fail = |source| StoreError::sqlite(&path, "store an execution in", source);
        let step = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(fail)?;
        let spool = execution.spool.display().to_string();
        step.execute(
            "insert into execution (name, spool, binary_sha256, started_unix_ms) values (?1, ?2, ?3, ?4)",
            (
                &execution.name,
                spool,
                &execution.binary_sha256,
                execution.started_unix_ms,
            ),
        )
        .map_err(fail)?;
        let id = step.last_insert_rowid();
        for unit in units {
            step.execute(
                "insert into unit (execution, unit, lane, name) values (?1, ?2, ?3, ?4)",
                (id, unit.unit, unit.lane, &unit.run),
            )
            .map_err(fail)?;
        }
        step.commit().map_err(fail)
    }

    /// Whether a sealed file with this hash was merged into this store.
    ///
    /// Errors: `Sqlite`.
    pub fn has_sealed(&self, sha256: &str) -> Result<bool, StoreError> {
        Ok(self.sealed_as(sha256)?.is_some())
    }

    /// The run that a sealed file with this hash became in this store.
    ///
    /// Errors: `Sqlite`.
    pub fn sealed_as(&self, sha256: &str) -> Result<Option<String>, StoreError> {
        const SQL: &str = "select name from archive where sha256 = ?1";
        let names: Vec<String> = self.collect(SQL, [sha256], |row| row.get(0))?;
        Ok(names.into_iter().next())
    }

    /// The executions on several hosts, oldest first.
    ///
    /// Errors: `Sqlite`.
    pub fn executions(&self) -> Result<Vec<Execution>, StoreError> {
        self.collect(
            "select name, spool, binary_sha256, started_unix_ms from execution order by id",
            [],
            |row| {
                Ok(Execution {
                    name: row.get(0)?,
                    spool: row.get::<_, String>(1)?.into(),
                    binary_sha256: row.get(2)?,
                    started_unix_ms: row.get(3)?,
                })
            },
        )
    }

    /// The units of an execution, by number; none if there is no such execution.
    ///
    /// Errors: `Sqlite`.
    pub fn units(&self, execution: &str) -> Result<Vec<UnitRow>, StoreError> {
        self.collect(
            "select u.unit, u.lane, u.name from unit u join execution e on e.id = u.execution \
             where e.name = ?1 order by u.unit",
            [execution],
            |row| {
                Ok(UnitRow {
                    unit: row.get(0)?,
                    lane: row.get(1)?,
                    run: row.get(2)?,
                })
            },
        )
    }

    /// Stores what became of an attempt; the same a second time is nothing new.
    ///
    /// Errors: `Full`, `Sqlite`.
    pub fn add_unit_event(&mut self, execution: &str, event: &UnitEvent) -> Result<(), StoreError> {
        let values = (
            execution,
            event.unit,
            event.attempt,
            &event.state,
            &event.host,
            event.at_unix_ms,
            &event.text,
        );
        self.execute(INSERT_EVENT, "store an event in", values)
    }

    /// What became of the attempts at an execution's units, as it was learnt.
    ///
    /// Errors: `Sqlite`.
    pub fn unit_events(&self, execution: &str) -> Result<Vec<UnitEvent>, StoreError> {
        self.collect(
            "select u.unit, v.attempt, v.state, v.host, v.at_unix_ms, v.text from unit_event v \
             join unit u on u.id = v.unit join execution e on e.id = u.execution \
             where e.name = ?1 order by v.id",
            [execution],
            |row| {
                Ok(UnitEvent {
                    unit: row.get(0)?,
                    attempt: row.get(1)?,
                    state: row.get(2)?,
                    host: row.get(3)?,
                    at_unix_ms: row.get(4)?,
                    text: row.get(5)?,
                })
            },
        )
    }
}
