//! `l.x`: a last batch of rows for each client, then three indexes for each table, one after the other; all
//! tables at the same time.

use super::link::Link;
use super::tally::{Fault, StepTally, Timing};
use super::{End, LOOK, StepSpec, waiting};
use crate::error::WireError;
use crate::scan::Loss;
use crate::session::BackendKey;
use crate::slice::Clock;
use crate::sys::{self, Poller};
use deltabench_model::units::{count, index, seconds, to_f64};
use deltabench_model::work::insert::{InsertRole, InsertSetup, InsertStep};
use deltabench_workload::insert::{Calendar, Rows, index_sql, table_name};
use std::sync::atomic::Ordering;

/// All tables of the step.
#[derive(Debug)]
pub struct Indexing {
    tables: Vec<IndexedTable>,
    poller: Poller,
}

/// One table.
#[derive(Debug)]
struct IndexedTable {
    link: Link,
    number: u32,
    /// What is to be sent, the next one last.
    left: Vec<(Kind, Vec<u8>)>,
    /// What is under way, and since when.
    under_way: Option<(Kind, u64)>,
    inserted: u64,
    end_ns: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Insert,
    Index,
}

impl Indexing {
    /// One connection for each table, the rows of each client.
    pub fn new(
        setup: &InsertSetup,
        links: Vec<Link>,
        mut rows: Vec<Rows>,
        calendar: Calendar,
    ) -> Result<Self, WireError> {
        let failed = |error| WireError::transfer("watching the connections", error, None);
        let mut poller = Poller::new(links.len()).map_err(failed)?;
        let mut tables = Vec::new();
        let shared = rows.len();
        for (number, link) in (1..).zip(links) {
            poller
                .add(link.socket(), count(tables.len()))
                .map_err(failed)?;
            let mine = if setup.shared_table { shared } else { 1 };
            let mut left: Vec<(Kind, Vec<u8>)> = Vec::new();
            for mut rows in rows.drain(..mine.min(rows.len())) {
                let mut sql = Vec::new();
                let batch = InsertStep::Index.batch();
                rows.write_insert(&mut sql, number, batch, calendar.second(0));
                left.push((Kind::Insert, sql));
            }
            let indexes = index_sql(number).into_iter();
            left.extend(indexes.map(|sql| (Kind::Index, sql.into_bytes())));
            left.reverse();
            tables.push(IndexedTable {
                link,
                number,
                left,
                under_way: None,
                inserted: 0,
                end_ns: 0,
            });
        }
        Ok(Self { tables, poller })
    }

    /// Does it all.
    pub fn run(&mut self, spec: &StepSpec<'_>, tally: &mut StepTally) -> End {
        let cpu_before_ns = sys::thread_cpu_ns();
        let clock = Clock::start();
        let mut interrupted = false;
        let mut fault = self.start(&clock).err();
        while fault.is_none() && self.tables.iter().any(|table| table.under_way.is_some()) {
            if spec.interrupted.load(Ordering::Relaxed) {
                interrupted = true;
                break;
            }
            fault = self.turn(&clock, spec, tally).err();
        }
        let tables = self.tables.iter();
        let kept_up = tables.zip(spec.position.rows()).map(|(table, before)| {
            let rows = to_f64(before.saturating_add(table.inserted));
            rows / seconds(table.end_ns.max(1))
        });
        End {
            duration_ns: clock.now(),
            client_cpu_ns: sys::thread_cpu_ns().saturating_sub(cpu_before_ns),
            clients: kept_up.collect(),
            cut_short: false,
            interrupted,
            indexed: fault.is_none() && !interrupted,
            fault,
            unanswered: self
                .tables
                .iter()
                .filter_map(IndexedTable::unanswered)
                .collect(),
            inserted: self.tables.iter().map(|table| table.inserted).collect(),
            deleted: Vec::new(),
        }
    }

    fn start(&mut self, clock: &Clock) -> Result<(), Fault> {
        for table in &mut self.tables {
            table.next(clock.now())?;
        }
        Ok(())
    }

    /// Waits for answers, takes them, and sends what is next.
    fn turn(
        &mut self,
        clock: &Clock,
        spec: &StepSpec<'_>,
        tally: &mut StepTally,
    ) -> Result<(), Fault> {
        let ready = self.poller.wait_for(LOOK).map_err(waiting)?;
        for nth in 0..ready {
            let at = index(self.poller.ready(nth).unwrap_or(u64::MAX));
            if let Some(table) = self.tables.get_mut(at) {
                table.answer(clock, tally)?;
            }
        }
        let now_ns = clock.now();
        let limit_ns = u64::try_from(spec.op_timeout.as_nanos()).unwrap_or(u64::MAX);
        let stalled = |table: &&IndexedTable| {
            let since = table.under_way.map(|(_, sent_ns)| sent_ns);
            since.is_some_and(|sent_ns| now_ns.saturating_sub(sent_ns) > limit_ns)
        };
        match self.tables.iter().find(stalled) {
            Some(table) => Err(Fault::lost(&table.name(), &Loss::Stalled)),
            None => Ok(()),
        }
    }
}

impl IndexedTable {
    fn name(&self) -> String {
        format!("making the indexes of {}", table_name(self.number))
    }

    fn unanswered(&self) -> Option<BackendKey> {
        self.under_way.map(|_| self.link.key())
    }

    /// Sends what is next, if anything.
    fn next(&mut self, now_ns: u64) -> Result<(), Fault> {
        self.end_ns = now_ns;
        self.under_way = None;
        let Some((kind, sql)) = self.left.pop() else {
            return Ok(());
        };
        let sent = self
            .link
            .prepare_text(|out| out.extend_from_slice(&sql))
            .and_then(|()| self.link.send_next());
        sent.map_err(|loss| Fault::lost(&self.name(), &loss))?;
        self.under_way = Some((kind, now_ns));
        Ok(())
    }

    /// Takes what has come.
    fn answer(&mut self, clock: &Clock, tally: &mut StepTally) -> Result<(), Fault> {
        let received = self.link.receive();
        let received = received.map_err(|loss| Fault::lost(&self.name(), &loss))?;
        let (Some(answer), Some((kind, sent_ns))) = (received, self.under_way) else {
            return Ok(());
        };
        let now_ns = clock.now();
        match (kind, &answer.error) {
            // Half of the indexes is no state to go on from.
            (Kind::Index, Some(error)) => return Err(Fault::refused(&self.name(), error)),
            (Kind::Index, None) => {}
            (Kind::Insert, _) => {
                let timing = Timing {
                    due_ns: None,
                    sent_ns,
                    now_ns,
                };
                self.inserted += tally.answered(InsertRole::Insert, timing, &answer)?;
            }
        }
        self.next(now_ns)
    }
}
