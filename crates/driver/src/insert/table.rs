//! A table: where its deletes stand, and the connection that looks up its oldest and newest keys.

use super::link::Link;
use super::tally::{Fault, StepTally};
use crate::scan::Loss;
use crate::session::BackendKey;
use deltabench_workload::insert::{max_sql, min_sql, table_name, write_delete};
use std::collections::VecDeque;
use std::os::fd::BorrowedFd;

/// Deletes of a table after which its oldest key is looked up.
const DELETES_PER_LOOK_UP: u32 = 1000;

/// A table.
#[derive(Debug)]
pub struct InsertTable {
    /// Its number, from 1.
    pub number: u32,
    look_up: Option<LookUp>,
    /// From where the next delete looks for rows.
    pub next_delete: i64,
    since_look_up: u32,
    /// Deletes under way.
    deleting: u32,
    /// Whether deletes wait for a look-up.
    looking_up: bool,
    pub inserted: u64,
    pub deleted: u64,
}

/// The connection that looks keys up.
#[derive(Debug)]
struct LookUp {
    link: Link,
    /// What is asked; the first one is under way.
    asked: VecDeque<Ask>,
    sent_ns: u64,
}

/// What is looked up.
#[derive(Debug, Clone, Copy)]
pub enum Ask {
    Oldest,
    /// The newest key, for a client.
    Newest(usize),
}

impl InsertTable {
    /// A table, from 1, whose oldest row has that key.
    pub fn new(number: u32, look_up: Option<Link>, oldest: i64) -> Self {
        Self {
            number,
            look_up: look_up.map(|link| LookUp {
                link,
                asked: VecDeque::new(),
                sent_ns: 0,
            }),
            next_delete: oldest,
            since_look_up: 0,
            deleting: 0,
            looking_up: false,
            inserted: 0,
            deleted: 0,
        }
    }

    /// Its look-ups cannot go on.
    pub fn fault(&self, loss: &Loss) -> Fault {
        Fault::lost(
            &format!("looking up keys of {}", table_name(self.number)),
            loss,
        )
    }

    /// Looks up, as soon as what was asked before has its answer.
    pub fn ask(&mut self, ask: Ask, now_ns: u64) -> Result<(), Fault> {
        let Some(look_up) = &mut self.look_up else {
            return Ok(());
        };
        look_up.asked.push_back(ask);
        if look_up.asked.len() > 1 {
            return Ok(());
        }
        self.send_ask(now_ns)
    }

    /// Sends the first of what is asked.
    fn send_ask(&mut self, now_ns: u64) -> Result<(), Fault> {
        let number = self.number;
        let Some(look_up) = &mut self.look_up else {
            return Ok(());
        };
        let sql = match look_up.asked.front() {
            None => return Ok(()),
            Some(Ask::Oldest) => min_sql(number),
            Some(Ask::Newest(_)) => max_sql(number),
        };
        look_up.sent_ns = now_ns;
        let link = &mut look_up.link;
        let sent = link
            .prepare_text(|out| out.extend_from_slice(sql.as_bytes()))
            .and_then(|()| link.send_next());
        sent.map_err(|loss| self.fault(&loss))
    }

    /// Takes what has come; what was asked, and its answer.
    pub fn receive(
        &mut self,
        now_ns: u64,
        tally: &mut StepTally,
    ) -> Result<Option<(Ask, Option<i64>)>, Fault> {
        let Some(look_up) = &mut self.look_up else {
            return Ok(None);
        };
        let answer = match look_up.link.receive() {
            Err(loss) => return Err(self.fault(&loss)),
            Ok(None) => return Ok(None),
            Ok(Some(answer)) => answer,
        };
        let Some(ask) = look_up.asked.pop_front() else {
            return Ok(None);
        };
        tally.look_ups.add(now_ns.saturating_sub(look_up.sent_ns));
        if let Some(error) = &answer.error {
            let whose = format!("looking up keys of {}", table_name(self.number));
            return Err(Fault::refused(&whose, error));
        }
        self.send_ask(now_ns)?;
        Ok(Some((ask, answer.key)))
    }

    /// The socket of the look-ups.
    pub fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.look_up.as_ref().map(|look_up| look_up.link.socket())
    }

    /// The server's end of the look-up under way, and when that was sent.
    pub fn unanswered(&self) -> Option<(BackendKey, u64)> {
        let look_up = self.look_up.as_ref();
        let look_up = look_up.filter(|look_up| !look_up.asked.is_empty())?;
        Some((look_up.link.key(), look_up.sent_ns))
    }

    /// The oldest key has been looked up; a table without rows has none.
    pub fn looked_up(&mut self, key: Option<i64>) {
        self.looking_up = false;
        self.since_look_up = 0;
        self.next_delete = key.unwrap_or(self.next_delete);
    }

    /// Appends a delete of the oldest `rows` rows, which is going to be sent.
    pub fn write_delete(&mut self, out: &mut Vec<u8>, rows: u32) {
        write_delete(out, self.number, self.next_delete, rows);
        self.next_delete += i64::from(rows);
        self.since_look_up += 1;
        self.deleting += 1;
    }

    /// A delete is over; returns whether the oldest key is to be looked up, for which none may be under way.
    pub fn deleted(&mut self, rows: u64) -> bool {
        self.deleted += rows;
        self.deleting = self.deleting.saturating_sub(1);
        self.deleting == 0 && self.is_look_up_due()
    }

    fn is_look_up_due(&self) -> bool {
        self.since_look_up >= DELETES_PER_LOOK_UP
    }

    /// Whether deletes may go on; has the oldest key looked up when it is time, as soon as none is under
    /// way.
    pub fn may_delete(&mut self, now_ns: u64) -> Result<bool, Fault> {
        if !self.is_look_up_due() {
            return Ok(true);
        }
        if self.deleting == 0 && !self.looking_up {
            self.looking_up = true;
            self.ask(Ask::Oldest, now_ns)?;
        }
        Ok(false)
    }
}
