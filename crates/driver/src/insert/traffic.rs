//! Steps in which all clients insert, and most of which delete and query besides.

use super::client::Client;
use super::long::Long;
use super::station::Station;
use super::table::{Ask, InsertTable};
use super::tally::{Fault, StepTally};
use super::turns::{TurnFigures, Turns};
use super::{End, LOOK, StepSpec, waiting};
use crate::error::WireError;
use crate::scan::Loss;
use crate::session::BackendKey;
use crate::slice::Clock;
use crate::sys::{self, Poller};
use deltabench_model::units::{count, index};
use deltabench_model::work::insert::{InsertRole, InsertStep};
use deltabench_workload::insert::Calendar;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// A step of queries ends when it has taken so many times as long as its rate needs.
const LONGEST: u32 = 4;
/// Places that each client has among the tokens of the poller: its roles.
const ROLES: u64 = 3;

/// What follows the end of a turn.
enum Next {
    Turn,
    End,
    Interrupted,
}

/// All connections of a step.
#[derive(Debug)]
pub struct Traffic {
    step: InsertStep,
    calendar: Calendar,
    clients: Vec<Client>,
    tables: Vec<InsertTable>,
    long: Option<Long>,
    poller: Poller,
    clock: Clock,
    /// Turns that are over.
    turns: u64,
    /// CPU of the thread before the first one.
    cpu_before_ns: u64,
}

impl Traffic {
    /// Everything at rest. Tokens of the poller: those of the clients' stations, then those of the tables,
    /// then the long transaction's.
    pub fn new(
        step: InsertStep,
        calendar: Calendar,
        clients: Vec<Client>,
        tables: Vec<InsertTable>,
        long: Option<Long>,
        mut poller: Poller,
    ) -> Result<Self, WireError> {
        let failed = |error| WireError::transfer("watching the connections", error, None);
        for (client, first) in clients.iter().zip((0_u64..).step_by(index(ROLES))) {
            let query = client.query.as_ref().map(|query| &query.station);
            let roles = [Some(&client.insert), client.delete.as_ref(), query];
            for (station, token) in roles.into_iter().zip(first..) {
                if let Some(station) = station {
                    poller.add(station.link.socket(), token).map_err(failed)?;
                }
            }
        }
        let first = count(clients.len()) * ROLES;
        for (table, token) in tables.iter().zip(first..) {
            if let Some(socket) = table.socket() {
                poller.add(socket, token).map_err(failed)?;
            }
        }
        if let Some(long) = &long {
            let token = first + count(tables.len());
            poller.add(long.socket(), token).map_err(failed)?;
        }
        Ok(Self {
            step,
            calendar,
            clients,
            tables,
            long,
            poller,
            clock: Clock::start(),
            turns: 0,
            cpu_before_ns: 0,
        })
    }

    /// Does the step, in turns if there are any.
    pub fn run(
        &mut self,
        spec: &StepSpec<'_>,
        tally: &mut StepTally,
        mut turns: Option<Turns<'_>>,
    ) -> End {
        if self.step.rate().is_some() {
            sys::exact_timers();
        }
        let planned = Duration::from_secs(u64::from(spec.setup.query_seconds)) * LONGEST;
        let longest_ns = u64::try_from(planned.as_nanos()).unwrap_or(u64::MAX);
        let limit_ns = u64::try_from(spec.op_timeout.as_nanos()).unwrap_or(u64::MAX);
        self.hold(turns.as_ref());
        self.cpu_before_ns = sys::thread_cpu_ns();
        self.clock = Clock::start();
        let (mut cut_short, mut interrupted) = (false, false);
        let mut looked_ns = 0;
        let mut fault = self.start(tally).err();
        while fault.is_none() {
            if spec.interrupted.load(Ordering::Relaxed) {
                interrupted = true;
                break;
            }
            fault = match self.turn(tally) {
                Ok(true) => match self.next_turn(turns.as_mut(), tally) {
                    Ok(Next::Turn) => None,
                    Ok(Next::End) => break,
                    Ok(Next::Interrupted) => {
                        interrupted = true;
                        break;
                    }
                    Err(fault) => Some(fault),
                },
                Ok(false) => None,
                Err(fault) => Some(fault),
            };
            let now_ns = self.clock.now();
            if fault.is_none() && now_ns - looked_ns > limit_ns.min(400_000_000) / 4 {
                looked_ns = now_ns;
                fault = self.stalled(now_ns, limit_ns);
                if self.step.queries() && now_ns > longest_ns && !cut_short {
                    cut_short = true;
                    self.clients
                        .iter_mut()
                        .for_each(|client| client.pace.stop());
                }
            }
        }
        self.end(tally, (cut_short, interrupted), fault)
    }

    fn start(&mut self, tally: &mut StepTally) -> Result<(), Fault> {
        for at in 0..self.clients.len() {
            self.write(at, tally)?;
            self.query(at, tally)?;
        }
        match &mut self.long {
            Some(long) => long.begin(self.clock.now()),
            None => Ok(()),
        }
    }

    /// Holds all clients at the end of the turn.
    fn hold(&mut self, turns: Option<&Turns<'_>>) {
        let Some(turns) = turns else {
            return;
        };
        let held = (self.turns + 1).saturating_mul(turns.batches);
        for client in &mut self.clients {
            client.pace.hold_at(held);
            client.is_over = false;
        }
    }

    /// All clients have come to the end of their turn: waits for the next one, if batches are left.
    fn next_turn(
        &mut self,
        turns: Option<&mut Turns<'_>>,
        tally: &mut StepTally,
    ) -> Result<Next, Fault> {
        let held = self.clients.iter().any(|client| client.pace.is_held());
        let (Some(turns), true) = (turns, held) else {
            return Ok(Next::End);
        };
        let over = Instant::now();
        let ended_ns = self.clients.iter().map(|client| client.end_ns).max();
        let figures = TurnFigures {
            ended_ns: ended_ns.unwrap_or(0),
            statements: InsertRole::ALL.map(|role| tally.statements(role)),
            client_cpu_ns: sys::thread_cpu_ns().saturating_sub(self.cpu_before_ns),
        };
        if !(turns.between)(&figures) {
            return Ok(Next::Interrupted);
        }
        self.turns += 1;
        self.hold(Some(&*turns));
        // Nothing is under way: no time passes for the step while others have their turns.
        self.clock = self.clock.without(over.elapsed());
        for at in 0..self.clients.len() {
            self.write(at, tally)?;
            self.query(at, tally)?;
        }
        Ok(Next::Turn)
    }

    /// Waits for answers and times, and acts on them; returns whether the turn, or all, is done.
    fn turn(&mut self, tally: &mut StepTally) -> Result<bool, Fault> {
        let mut now_ns = self.clock.now();
        let mut wait_ns = u64::try_from(LOOK.as_nanos()).unwrap_or(u64::MAX);
        let mut finished = true;
        for at in 0..self.clients.len() {
            let wake_ns = self.clients.get(at).and_then(|client| client.wake_ns);
            if wake_ns.is_some_and(|wake_ns| wake_ns <= now_ns) {
                self.write(at, tally)?;
                now_ns = self.clock.now();
            }
            if let Some(client) = self.clients.get_mut(at) {
                client.is_over = client.pace.is_over(now_ns, client.done());
                finished = finished && client.is_finished();
                let wake_ns = client.wake_ns.unwrap_or(u64::MAX);
                wait_ns = wait_ns.min(wake_ns.saturating_sub(now_ns));
            }
        }
        if finished {
            return Ok(true);
        }
        if let Some(long) = &mut self.long {
            wait_ns = wait_ns.min(long.wait_ns(now_ns)?);
        }
        let ready = self.poller.wait_for(Duration::from_nanos(wait_ns));
        for nth in 0..ready.map_err(waiting)? {
            let token = self.poller.ready(nth).unwrap_or(u64::MAX);
            self.news(token, tally)?;
        }
        Ok(false)
    }

    /// Something has come on a connection.
    fn news(&mut self, token: u64, tally: &mut StepTally) -> Result<(), Fault> {
        let clients = count(self.clients.len()) * ROLES;
        if let Some(table) = token.checked_sub(clients) {
            let at = index(table);
            if at < self.tables.len() {
                return self.looked_up(at, tally);
            }
            return match &mut self.long {
                Some(long) => long.news(self.clock.now(), tally),
                None => Ok(()),
            };
        }
        let at = index(token / ROLES);
        match token % ROLES {
            0 => self.inserted(at, tally),
            1 => self.deleted(at, tally),
            _ => self.queried(at, tally),
        }
    }

    fn inserted(&mut self, at: usize, tally: &mut StepTally) -> Result<(), Fault> {
        let Some(client) = self.clients.get_mut(at) else {
            return Ok(());
        };
        let Some((_, rows, now_ns)) = client.insert.receive(self.clock, tally)? else {
            return Ok(());
        };
        client.inserted += rows;
        client.end_ns = now_ns;
        if let Some(table) = self.tables.get_mut(client.table) {
            table.inserted += rows;
        }
        self.write(at, tally)
    }

    fn deleted(&mut self, at: usize, tally: &mut StepTally) -> Result<(), Fault> {
        let Some(client) = self.clients.get_mut(at) else {
            return Ok(());
        };
        let Some(delete) = &mut client.delete else {
            return Ok(());
        };
        let Some((answer, rows, now_ns)) = delete.receive(self.clock, tally)? else {
            return Ok(());
        };
        client.end_ns = now_ns;
        if answer.error.is_none() && rows != u64::from(self.step.batch()) {
            tally.short_deletes += 1;
        }
        let table_at = client.table;
        let Some(table) = self.tables.get_mut(table_at) else {
            return Ok(());
        };
        if table.deleted(rows) {
            // This client may have no more deletes; others on the table wait for the look-up.
            return self.write_all(table_at, tally);
        }
        self.write(at, tally)
    }

    fn queried(&mut self, at: usize, tally: &mut StepTally) -> Result<(), Fault> {
        let Some(client) = self.clients.get_mut(at) else {
            return Ok(());
        };
        let Some(query) = &mut client.query else {
            return Ok(());
        };
        let Some((.., now_ns)) = query.station.receive(self.clock, tally)? else {
            return Ok(());
        };
        client.end_ns = now_ns;
        self.query(at, tally)
    }

    /// A look-up of a table may have its answer.
    fn looked_up(&mut self, at: usize, tally: &mut StepTally) -> Result<(), Fault> {
        let now_ns = self.clock.now();
        let Some(table) = self.tables.get_mut(at) else {
            return Ok(());
        };
        match table.receive(now_ns, tally)? {
            None => Ok(()),
            Some((Ask::Oldest, key)) => {
                table.looked_up(key);
                self.write_all(at, tally)
            }
            Some((Ask::Newest(client), key)) => {
                let found = self.clients.get_mut(client);
                if let Some(query) = found.and_then(|client| client.query.as_mut()) {
                    query.looked_up(key);
                }
                self.query(client, tally)
            }
        }
    }

    /// Sends what all clients of a table may insert and delete.
    fn write_all(&mut self, table: usize, tally: &mut StepTally) -> Result<(), Fault> {
        for at in 0..self.clients.len() {
            if self.clients.get(at).map(|client| client.table) == Some(table) {
                self.write(at, tally)?;
            }
        }
        Ok(())
    }

    /// Sends what a client may insert and delete.
    fn write(&mut self, at: usize, tally: &mut StepTally) -> Result<(), Fault> {
        let Some(client) = self.clients.get_mut(at) else {
            return Ok(());
        };
        let Some(table) = self.tables.get_mut(client.table) else {
            return Ok(());
        };
        let now_ns = self.clock.now();
        client.wake_ns = client.pace.issue(now_ns, client.done());
        let issued = client.pace.issued();
        if client.insert.is_free() && client.insert.started < issued {
            client.spell(self.step, &self.calendar, table.number)?;
            let due_ns = client.pace.due_ns(client.insert.started);
            client.spelled = false;
            client.insert.send(due_ns, self.clock.now(), tally)?;
        }
        if let Some(delete) = &mut client.delete
            && delete.is_free()
            && delete.started < issued
            && table.may_delete(now_ns)?
        {
            let due_ns = client.pace.due_ns(delete.started);
            delete
                .link
                .prepare_text(|out| table.write_delete(out, self.step.batch()))
                .map_err(|loss| delete.fault(&loss))?;
            delete.send(due_ns, self.clock.now(), tally)?;
        }
        // While the server is at work.
        client.spell(self.step, &self.calendar, table.number)
    }

    /// Sends a client's next query, or has a key looked up for it, as long as the client writes.
    fn query(&mut self, at: usize, tally: &mut StepTally) -> Result<(), Fault> {
        let Some(client) = self.clients.get_mut(at) else {
            return Ok(());
        };
        let (Some(query), Some(table)) = (&mut client.query, self.tables.get_mut(client.table))
        else {
            return Ok(());
        };
        if client.is_over || query.looking_up || !query.station.is_free() {
            return Ok(());
        }
        let now_ns = self.clock.now();
        let points = matches!(self.step, InsertStep::Point(_));
        if points && query.is_look_up_due() {
            query.looking_up = true;
            return table.ask(Ask::Newest(at), now_ns);
        }
        query.send(self.step, table.next_delete, now_ns, tally)
    }

    /// What has had no answer for too long.
    fn stalled(&self, now_ns: u64, limit_ns: u64) -> Option<Fault> {
        let late = |sent_ns: u64| now_ns.saturating_sub(sent_ns) > limit_ns;
        for station in self.clients.iter().flat_map(Client::stations) {
            if station.sent_ns().is_some_and(late) {
                return Some(station.fault(&Loss::Stalled));
            }
        }
        for table in &self.tables {
            if table.unanswered().is_some_and(|(_, sent_ns)| late(sent_ns)) {
                return Some(table.fault(&Loss::Stalled));
            }
        }
        let long = self.long.as_ref()?;
        long.sent_ns()
            .is_some_and(late)
            .then(|| Fault::lost("the long transaction", &Loss::Stalled))
    }

    fn end(
        &self,
        tally: &mut StepTally,
        (cut_short, interrupted): (bool, bool),
        fault: Option<Fault>,
    ) -> End {
        for client in &self.clients {
            for role in [InsertRole::Insert, InsertRole::Delete] {
                tally.missed(role, client.pace.missed());
            }
        }
        let ended_ns = self.clients.iter().map(|client| client.end_ns).max();
        let complete = fault.is_none() && !interrupted;
        let duration_ns = ended_ns.filter(|_| complete);
        End {
            duration_ns: duration_ns.unwrap_or_else(|| self.clock.now()),
            clients: self.clients.iter().map(Client::kept_up).collect(),
            cut_short,
            interrupted,
            fault,
            unanswered: self.unanswered(),
            indexed: false,
            inserted: self.tables.iter().map(|table| table.inserted).collect(),
            deleted: self.tables.iter().map(|table| table.deleted).collect(),
        }
    }

    fn unanswered(&self) -> Vec<BackendKey> {
        let stations = self.clients.iter().flat_map(Client::stations);
        let look_ups = self.tables.iter().filter_map(InsertTable::unanswered);
        stations
            .filter_map(Station::unanswered)
            .chain(look_ups.map(|(key, _)| key))
            .collect()
    }
}
