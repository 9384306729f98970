//! What comes before a step: tables, connections, prepared statements, where deletes stand.

use super::client::{Client, POINT, Querying, range_name};
use super::indexing::Indexing;
use super::link::{Link, Width, look_up, parse, run};
use super::long::Long;
use super::pace::Pace;
use super::station::Station;
use super::table::InsertTable;
use super::tally::StepTally;
use super::traffic::Traffic;
use super::{StepSpec, Work, deletes};
use crate::error::WireError;
use crate::session::Session;
use crate::slice::Clock;
use crate::sys::Poller;
use deltabench_model::units::index;
use deltabench_model::work::insert::{InsertRole, InsertSetup, InsertStep};
use deltabench_workload::insert::{
    self as benchmark, Calendar, Filler, POINT_KEYS, Partitions, Queries, RangeQuery, Rows,
};
use std::time::Duration;

/// The server's ends of connections, with their roles.
type Pids = Vec<(Option<InsertRole>, u32)>;

/// How the tables of a setup are cut.
pub fn partitions(setup: &InsertSetup) -> Option<Partitions> {
    setup.rows_per_partition().map(|rows| Partitions {
        number: setup.partitions,
        rows,
    })
}

/// Opens everything that a step needs.
pub fn set_up(spec: &StepSpec<'_>, tally: &mut StepTally) -> Result<(Work, Pids), WireError> {
    let mut set_up = SetUp {
        spec,
        pids: Pids::new(),
        filler: Filler::new(spec.seed),
    };
    let work = match spec.step {
        InsertStep::Index => Work::Indexing(set_up.indexing()?),
        _ => set_up.traffic(tally)?,
    };
    Ok((work, set_up.pids))
}

struct SetUp<'s, 'a> {
    spec: &'s StepSpec<'a>,
    pids: Pids,
    filler: Filler,
}

impl SetUp<'_, '_> {
    fn open(&mut self, role: Option<InsertRole>) -> Result<Session, WireError> {
        let spec = self.spec;
        let session = Session::connect(spec.endpoint, spec.login, spec.op_timeout)?;
        self.pids.push((role, session.pid()));
        Ok(session)
    }

    fn indexing(&mut self) -> Result<Indexing, WireError> {
        let setup = self.spec.setup;
        let mut links = Vec::new();
        for _ in 0..setup.tables() {
            links.push(Link::new(self.open(Some(InsertRole::Insert))?));
        }
        let rows = (0..setup.clients).map(|client| self.rows(client)).collect();
        Indexing::new(setup, links, rows, self.calendar())
    }

    fn traffic(&mut self, tally: &mut StepTally) -> Result<Work, WireError> {
        let (setup, step) = (self.spec.setup, self.spec.step);
        if step == InsertStep::LoadRows {
            let mut session =
                Session::connect(self.spec.endpoint, self.spec.login, self.spec.op_timeout)?;
            for table in 1..=setup.tables() {
                for sql in benchmark::create_sql(table, partitions(setup)) {
                    run(&mut session, &sql)?;
                }
            }
        }
        // Where deletes of a shared table stand is nothing that threads could share.
        let jobs = match setup.shared_table {
            true => 1,
            false => self.spec.jobs.clamp(1, setup.clients.max(1)),
        };
        let first = self.part(0, jobs, tally)?;
        let others = (1..jobs).map(|job| self.part(job, jobs, tally));
        let others = others.collect::<Result<Vec<Traffic>, WireError>>()?;
        Ok(Work::Traffic(Box::new(first), others))
    }

    /// The part of a thread, from 0: every `jobs`-th client and, where each has its own, its table. Those of
    /// a thread one after the other, so that what they allocate lies together: two threads that write to one
    /// cache line slow each other down.
    fn part(&mut self, job: u32, jobs: u32, tally: &mut StepTally) -> Result<Traffic, WireError> {
        let (setup, step) = (self.spec.setup, self.spec.step);
        let opened = self.pids.len();
        let every = index(u64::from(jobs));
        let mut tables = Vec::new();
        let mut newest = Vec::new();
        for number in (1..=setup.tables())
            .skip(index(u64::from(job)))
            .step_by(every)
        {
            let (table, max) = self.table(number, tally)?;
            tables.push(table);
            newest.push(max);
        }
        let mut clients = Vec::new();
        for client in (job..setup.clients).step_by(every) {
            let place = match setup.shared_table {
                true => 0,
                false => clients.len(),
            };
            let number = tables.get(place).map_or(1, |table| table.number);
            let max = newest.get(place).copied().unwrap_or(0);
            clients.push(self.client(client, (place, number), max)?);
        }
        let long = match setup.long_transaction_seconds {
            Some(seconds) if deletes(step) && job == 0 => {
                let link = Link::new(self.open(None)?);
                Some(Long::new(link, Duration::from_secs(u64::from(seconds))))
            }
            _ => None,
        };
        // And one place for the news of other threads.
        let poller = Poller::new(self.pids.len() - opened + 1)
            .map_err(|error| WireError::transfer("watching the connections", error, None))?;
        Traffic::new(step, self.calendar(), clients, tables, long, poller)
    }

    /// A table, from 1, and its newest key.
    fn table(
        &mut self,
        number: u32,
        tally: &mut StepTally,
    ) -> Result<(InsertTable, i64), WireError> {
        let step = self.spec.step;
        if !deletes(step) {
            return Ok((InsertTable::new(number, None, 0), 0));
        }
        let mut session = self.open(None)?;
        let mut ask = |sql: &str| {
            let clock = Clock::start();
            let found = look_up(&mut session, sql)?;
            tally.look_ups.add(clock.now());
            Ok::<_, WireError>(found.unwrap_or(0))
        };
        let oldest = ask(&benchmark::min_sql(number))?;
        let newest = match step {
            InsertStep::Point(_) => ask(&benchmark::max_sql(number))?,
            _ => 0,
        };
        let table = InsertTable::new(number, Some(Link::new(session)), oldest);
        Ok((table, newest))
    }

    /// A client, from 0, on the table in this place of its thread's, with this number from 1, whose newest
    /// key is `max`.
    fn client(
        &mut self,
        client: u32,
        (place, table): (usize, u32),
        max: i64,
    ) -> Result<Client, WireError> {
        let (setup, step) = (self.spec.setup, self.spec.step);
        let insert = self.station(InsertRole::Insert)?;
        let deletes = deletes(step).then(|| self.station(InsertRole::Delete));
        let delete = deletes.transpose()?;
        let queries = step.queries();
        let query = queries.then(|| self.querying(client, table, max));
        Ok(Client {
            table: place,
            pace: Pace::new(setup, step, client),
            rows: self.rows(client),
            insert,
            spelled: false,
            delete,
            query: query.transpose()?,
            wake_ns: None,
            is_over: false,
            end_ns: 0,
            inserted: 0,
        })
    }

    fn station(&mut self, role: InsertRole) -> Result<Station, WireError> {
        let session = self.open(Some(role))?;
        Ok(Station::new(Link::new(session), role))
    }

    fn querying(&mut self, client: u32, table: u32, max: i64) -> Result<Querying, WireError> {
        let mut session = self.open(Some(InsertRole::Query))?;
        // As published, keys are `int` while they can be. Ids are handed out a thousand at a time.
        let setup = self.spec.setup;
        let batch = u64::from(self.spec.step.batch());
        let inserted = setup.rows_of(self.spec.step).saturating_add(batch + 1000);
        let inserted = inserted.saturating_mul(u64::from(setup.clients));
        let last = max.saturating_add(i64::try_from(inserted).unwrap_or(i64::MAX));
        let width = match i32::try_from(last) {
            Ok(_) => Width::Four,
            Err(_) => Width::Eight,
        };
        if matches!(self.spec.step, InsertStep::Point(_)) {
            let sql = benchmark::point_sql(table);
            parse(&mut session, POINT, &sql, (width, POINT_KEYS))?;
        } else {
            for query in RangeQuery::ALL {
                let name = range_name(query);
                parse(&mut session, name, &query.sql(table), (Width::Four, 1))?;
            }
        }
        let station = Station::new(Link::new(session), InsertRole::Query);
        let queries = Queries::new(self.spec.seed, client, self.spec.position.steps);
        Ok(Querying::new(station, queries, max, width))
    }

    fn rows(&self, client: u32) -> Rows {
        let step = self.spec.position.steps;
        Rows::new(self.spec.seed, client, step, self.filler.clone())
    }

    fn calendar(&self) -> Calendar {
        Calendar::new(self.spec.step, self.spec.position.second)
    }
}
