//! A client: its connections, and what it sends on them.

use super::link::Width;
use super::pace::Pace;
use super::station::Station;
use super::tally::{Fault, StepTally};
use deltabench_model::units::{seconds, to_f64};
use deltabench_model::work::insert::InsertStep;
use deltabench_workload::insert::{Calendar, Queries, RangeQuery, Rows};

/// Point queries of a client after which it has the newest key looked up.
const QUERIES_PER_LOOK_UP: u32 = 100;
/// Name of the prepared point query.
pub const POINT: &str = "point";

/// Name of a prepared range query.
pub fn range_name(query: RangeQuery) -> &'static str {
    match query {
        RangeQuery::Market => "market",
        RangeQuery::Register => "register",
        RangeQuery::Pdc => "pdc",
    }
}

/// A client.
#[derive(Debug)]
pub struct Client {
    /// Its table, by the place among those of its thread.
    pub table: usize,
    /// When its batches are due.
    pub pace: Pace,
    pub rows: Rows,
    pub insert: Station,
    /// Whether the next insert has been spelled out.
    pub spelled: bool,
    /// Deletes, if the step has them.
    pub delete: Option<Station>,
    /// Queries, if the step has them.
    pub query: Option<Querying>,
    /// When a batch is due if nothing happens before.
    pub wake_ns: Option<u64>,
    /// Whether its batches and their time are over.
    pub is_over: bool,
    /// When its last answer came.
    pub end_ns: u64,
    pub inserted: u64,
}

/// The queries of a client.
#[derive(Debug)]
pub struct Querying {
    pub station: Station,
    queries: Queries,
    /// The newest key that it knows.
    max: i64,
    since_look_up: u32,
    /// Whether it waits for a look-up.
    pub looking_up: bool,
    width: Width,
}

impl Client {
    /// Batches that are over on both connections.
    pub fn done(&self) -> u64 {
        match &self.delete {
            Some(delete) => self.insert.done.min(delete.done),
            None => self.insert.done,
        }
    }

    /// Whether it has nothing under way and nothing left.
    pub fn is_finished(&self) -> bool {
        let querying = self.query.as_ref();
        self.is_over && querying.is_none_or(|query| query.station.is_free() && !query.looking_up)
    }

    /// Its connections.
    pub fn stations(&self) -> impl Iterator<Item = &Station> {
        let query = self.query.as_ref().map(|query| &query.station);
        [Some(&self.insert), self.delete.as_ref(), query]
            .into_iter()
            .flatten()
    }

    /// What it kept up per second: queries, or else rows inserted.
    pub fn kept_up(&self) -> f64 {
        let done = match &self.query {
            Some(query) => query.station.done,
            None => self.inserted,
        };
        to_f64(done) / seconds(self.end_ns.max(1))
    }

    /// Spells the next insert out, if there is one.
    pub fn spell(
        &mut self,
        step: InsertStep,
        calendar: &Calendar,
        table: u32,
    ) -> Result<(), Fault> {
        if self.spelled || self.insert.started >= self.pace.batches() {
            return Ok(());
        }
        self.spelled = true;
        let second = calendar.second(self.insert.started);
        let rows = &mut self.rows;
        let spelled = self
            .insert
            .link
            .prepare_text(|out| rows.write_insert(out, table, step.batch(), second));
        spelled.map_err(|loss| self.insert.fault(&loss))
    }
}

impl Querying {
    /// At rest; `max` is the newest key.
    pub fn new(station: Station, queries: Queries, max: i64, width: Width) -> Self {
        Self {
            station,
            queries,
            max,
            since_look_up: 0,
            looking_up: false,
            width,
        }
    }

    /// Whether the newest key is to be looked up before the next query.
    pub fn is_look_up_due(&self) -> bool {
        self.since_look_up >= QUERIES_PER_LOOK_UP
    }

    /// The newest key has been looked up; a table without rows has none.
    pub fn looked_up(&mut self, key: Option<i64>) {
        self.looking_up = false;
        self.since_look_up = 0;
        self.max = key.unwrap_or(self.max);
    }

    /// Sends the next query; keys begin at `min`.
    pub fn send(
        &mut self,
        step: InsertStep,
        min: i64,
        now_ns: u64,
        tally: &mut StepTally,
    ) -> Result<(), Fault> {
        let link = &mut self.station.link;
        let prepared = if matches!(step, InsertStep::Point(_)) {
            let keys = self.queries.point(min, self.max);
            link.prepare_execution(POINT, self.width, &keys)
        } else {
            let (query, value) = self.queries.range();
            link.prepare_execution(range_name(query), Width::Four, &[i64::from(value)])
        };
        prepared.map_err(|loss| self.station.fault(&loss))?;
        self.since_look_up += 1;
        self.station.send(None, now_ns, tally)
    }
}
