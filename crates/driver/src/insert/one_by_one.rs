//! The statements of a step on one connection, each when it is asked for.
//!
//! A counter of instructions counts one backend, between moments that its client chooses. So one connection
//! inserts and deletes, and what a step does at a rate beside its queries is left out.

use super::answer::touched;
use super::client::{POINT, range_name};
use super::link::{Width, look_up, parse, run, write_execution};
use crate::error::WireError;
use crate::request::{message, zero_ended};
use crate::session::Session;
use deltabench_model::endpoint::{Endpoint, Login};
use deltabench_model::work::insert::InsertStep;
use deltabench_workload::insert::{
    Calendar, Filler, POINT_KEYS, Partitions, Queries, RangeQuery, Rows, create_sql,
    drop_index_sql, index_sql, max_sql, min_sql, point_sql, write_delete,
};
use std::time::Duration;

/// The only table.
const TABLE: u32 = 1;

/// The only client.
const CLIENT: u32 = 0;

/// What is being done when an answer does not come.
const DOING: &str = "counting a step of the Insert Benchmark";

/// Whose statements.
#[derive(Debug, Clone, Copy)]
pub struct OneByOneSpec<'a> {
    pub step: InsertStep,
    /// How the table is cut.
    pub partitions: Option<Partitions>,
    /// Where the server listens.
    pub endpoint: &'a Endpoint,
    /// Who we are to it. The table is made in the first schema of the session's `search_path`.
    pub login: &'a Login,
    /// Seed of all rows and keys.
    pub seed: u64,
    /// Steps before this one: each has rows and keys of its own.
    pub steps: u32,
    /// Seconds of the calendar that are over.
    pub second: u64,
    /// How long one statement may take.
    pub op_timeout: Duration,
    /// Called with the process of the backend before each statement is sent.
    pub before_send: fn(u32),
}

/// A connection that does the operations of a step.
pub struct OneByOne {
    session: Session,
    step: InsertStep,
    rows: Rows,
    queries: Queries,
    calendar: Calendar,
    /// Inserts so far.
    batches: u64,
    /// From where the next delete looks for rows.
    next_delete: i64,
    newest: i64,
    indexed: bool,
    before_send: fn(u32),
    request: Vec<u8>,
}

impl OneByOne {
    /// Connects, makes the table where the step is the first load, looks keys up and prepares statements.
    ///
    /// Errors: what the server or the system refused.
    pub fn connect(spec: OneByOneSpec<'_>) -> Result<Self, WireError> {
        let OneByOneSpec { step, seed, .. } = spec;
        let mut session = Session::connect(spec.endpoint, spec.login, spec.op_timeout)?;
        let (mut oldest, mut newest) = (0, 0);
        match step {
            InsertStep::LoadRows => {
                for sql in create_sql(TABLE, spec.partitions) {
                    run(&mut session, &sql)?;
                }
            }
            InsertStep::Index => {}
            InsertStep::WriteMany | InsertStep::WriteFew | InsertStep::Point(_) => {
                oldest = look_up(&mut session, &min_sql(TABLE))?.unwrap_or(0);
                newest = look_up(&mut session, &max_sql(TABLE))?.unwrap_or(0);
            }
            InsertStep::Range(_) => {}
        }
        prepare(&mut session, step)?;
        Ok(Self {
            session,
            step,
            rows: Rows::new(seed, CLIENT, spec.steps, Filler::new(seed)),
            queries: Queries::new(seed, CLIENT, spec.steps),
            calendar: Calendar::new(step, spec.second),
            batches: 0,
            next_delete: oldest,
            newest,
            indexed: false,
            before_send: spec.before_send,
            request: Vec::new(),
        })
    }

    /// The backend's process.
    pub fn pid(&self) -> u32 {
        self.session.pid()
    }

    /// Where the calendar of the next step begins.
    pub fn second(&self) -> u64 {
        self.calendar.end(self.batches)
    }

    /// Does so many operations; rows inserted, deleted or returned. An operation is an insert with the delete
    /// that belongs to it, a query, or the creation of all indexes.
    ///
    /// Errors: any of them failed.
    pub fn work(&mut self, operations: u64) -> Result<u64, WireError> {
        let mut rows = 0;
        for _ in 0..operations {
            rows += self.operation()?;
        }
        Ok(rows)
    }

    /// Removes the indexes that an operation has made; whether it did.
    ///
    /// Errors: whatever the server answered.
    pub fn undo(&mut self) -> Result<bool, WireError> {
        if !std::mem::take(&mut self.indexed) {
            return Ok(false);
        }
        for sql in drop_index_sql(TABLE) {
            self.ask(&sql)?;
        }
        Ok(true)
    }

    /// Executes a statement that is none of the step's.
    ///
    /// Errors: whatever the server answered.
    pub fn ask(&mut self, sql: &str) -> Result<(), WireError> {
        self.text(|out| out.extend_from_slice(sql.as_bytes()))
            .map(drop)
    }

    fn operation(&mut self) -> Result<u64, WireError> {
        let batch = self.step.batch();
        match self.step {
            InsertStep::LoadRows => self.insert(batch),
            InsertStep::WriteMany | InsertStep::WriteFew => {
                let inserted = self.insert(batch)?;
                let from = self.next_delete;
                self.next_delete += i64::from(batch);
                let deleted = self.text(|out| write_delete(out, TABLE, from, batch))?;
                Ok(inserted + deleted)
            }
            InsertStep::Index => {
                self.indexed = true;
                for sql in index_sql(TABLE) {
                    self.ask(&sql)?;
                }
                Ok(0)
            }
            InsertStep::Range(_) => {
                let (query, value) = self.queries.range();
                self.execution(range_name(query), Width::Four, &[i64::from(value)])
            }
            InsertStep::Point(_) => {
                let keys = self.queries.point(self.next_delete, self.newest);
                self.execution(POINT, Width::Four, &keys)
            }
        }
    }

    fn insert(&mut self, batch: u32) -> Result<u64, WireError> {
        let second = self.calendar.second(self.batches);
        self.batches += 1;
        let mut sql = Vec::new();
        self.rows.write_insert(&mut sql, TABLE, batch, second);
        self.text(|out| out.extend_from_slice(&sql))
    }

    /// Sends a simple query with the text that `text` appends.
    fn text(&mut self, text: impl FnOnce(&mut Vec<u8>)) -> Result<u64, WireError> {
        self.request.clear();
        message(&mut self.request, b'Q', |out| {
            text(out);
            zero_ended(out, b"");
        })?;
        self.answer()
    }

    fn execution(&mut self, name: &str, width: Width, values: &[i64]) -> Result<u64, WireError> {
        self.request.clear();
        write_execution(&mut self.request, name, width, values)?;
        self.answer()
    }

    /// Sends the request when the backend is ready for it; rows that it touched.
    fn answer(&mut self) -> Result<u64, WireError> {
        (self.before_send)(self.session.pid());
        self.session.send(&self.request, DOING)?;
        let mut rows = 0;
        self.session.until_ready(DOING, |message| {
            if message.tag == b'C' {
                rows += touched(&message.body);
            }
            Ok(())
        })?;
        Ok(rows)
    }
}

/// Prepares the queries of a step.
fn prepare(session: &mut Session, step: InsertStep) -> Result<(), WireError> {
    match step {
        InsertStep::Range(_) => RangeQuery::ALL.into_iter().try_for_each(|query| {
            let sql = query.sql(TABLE);
            parse(session, range_name(query), &sql, (Width::Four, 1))
        }),
        InsertStep::Point(_) => {
            let sql = point_sql(TABLE);
            parse(session, POINT, &sql, (Width::Four, POINT_KEYS))
        }
        _ => Ok(()),
    }
}
