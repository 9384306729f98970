//! Steps in which all clients insert, and most of which delete and query besides.

use super::client::Client;
use super::long::Long;
use super::meeting::{Member, Next, Rest};
use super::station::Station;
use super::table::{Ask, InsertTable};
use super::tally::{Fault, StepTally};
use super::turns::TurnFigures;
use super::{End, LOOK, StepSpec, waiting};
use crate::error::WireError;
use crate::scan::Loss;
use crate::session::BackendKey;
use crate::slice::Clock;
use crate::sys::{self, Poller};
use deltabench_model::units::{count, index};
use deltabench_model::work::insert::{InsertRole, InsertStep};
use deltabench_workload::insert::Calendar;
use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A step of queries ends when it has taken so many times as long as its rate needs.
const LONGEST: u32 = 4;
/// Places that each client has among the tokens of the poller: its roles.
const ROLES: u64 = 3;

/// Why the work of a thread is over.
enum Over {
    Done,
    Interrupted,
    /// Another thread cannot go on.
    Elsewhere,
    Fault(Fault),
}

/// All connections of a step, or those of one of its threads.
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
    /// Whether it has taken too long, so that no more batches are sent.
    cut_short: bool,
    /// CPU of the thread before the first turn.
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
            cut_short: false,
            cpu_before_ns: 0,
        })
    }

    /// Does the step, or the part of a thread, in turns if there are any.
    pub fn run(
        &mut self,
        spec: &StepSpec<'_>,
        tally: &mut StepTally,
        mut member: Member<'_, '_>,
    ) -> End {
        if self.step.rate().is_some() {
            sys::exact_timers();
        }
        let listens = self.listen(&member);
        self.hold(member.batches());
        let clock = match &listens {
            Ok(()) => member.start(),
            Err(_) => None,
        };
        self.cpu_before_ns = sys::thread_cpu_ns();
        self.clock = clock.unwrap_or(self.clock);
        let over = match (listens, clock) {
            (Err(error), _) => Over::Fault(waiting(error)),
            (Ok(()), None) => Over::Elsewhere,
            (Ok(()), Some(_)) => self.work(spec, tally, &mut member),
        };
        self.end(tally, over)
    }

    /// What it comes to if it cannot begin.
    pub fn not_begun(&self, fault: Fault) -> End {
        self.end_of(Over::Fault(fault), 0)
    }

    /// Hears when all other threads have come to the end of a turn.
    fn listen(&mut self, member: &Member<'_, '_>) -> io::Result<()> {
        let token = count(self.clients.len()) * ROLES + count(self.tables.len()) + 1;
        match member.bell() {
            Some(bell) => self.poller.add(bell, token),
            None => Ok(()),
        }
    }

    fn work(
        &mut self,
        spec: &StepSpec<'_>,
        tally: &mut StepTally,
        member: &mut Member<'_, '_>,
    ) -> Over {
        let planned = Duration::from_secs(u64::from(spec.setup.query_seconds)) * LONGEST;
        let longest_ns = u64::try_from(planned.as_nanos()).unwrap_or(u64::MAX);
        let limit_ns = u64::try_from(spec.op_timeout.as_nanos()).unwrap_or(u64::MAX);
        let mut looked_ns = 0;
        if let Err(fault) = self.start(tally) {
            return Over::Fault(fault);
        }
        loop {
            if spec.interrupted.load(Ordering::Relaxed) {
                return Over::Interrupted;
            }
            if member.is_stopped() {
                return Over::Elsewhere;
            }
            let over = match self.turn(tally, member) {
                Ok(true) => self.rest(tally, member),
                Ok(false) => Ok(None),
                Err(fault) => Err(fault),
            };
            match over {
                Ok(None) => {}
                Ok(Some(over)) => return over,
                Err(fault) => return Over::Fault(fault),
            }
            let now_ns = self.clock.now();
            if now_ns.saturating_sub(looked_ns) > limit_ns.min(400_000_000) / 4 {
                looked_ns = now_ns;
                if let Some(fault) = self.stalled(now_ns, limit_ns) {
                    return Over::Fault(fault);
                }
                if self.step.queries() && now_ns > longest_ns {
                    self.cut();
                }
            }
        }
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
    fn hold(&mut self, batches: Option<u64>) {
        let Some(batches) = batches else {
            return;
        };
        let held = (self.turns + 1).saturating_mul(batches);
        for client in &mut self.clients {
            client.pace.hold_at(held);
            client.is_over = false;
        }
    }

    /// Sends no more batches.
    fn cut(&mut self) {
        if std::mem::replace(&mut self.cut_short, true) {
            return;
        }
        for client in &mut self.clients {
            client.pace.stop();
        }
    }

    /// All clients have come to the end of their turn: waits for the next one, if batches are left; whether
    /// all is over.
    fn rest(
        &mut self,
        tally: &mut StepTally,
        member: &mut Member<'_, '_>,
    ) -> Result<Option<Over>, Fault> {
        let ended_ns = self.clients.iter().map(|client| client.end_ns).max();
        let rest = Rest {
            figures: TurnFigures {
                ended_ns: ended_ns.unwrap_or(0),
                statements: InsertRole::ALL.map(|role| tally.statements(role)),
                client_cpu_ns: self.cpu_ns(),
            },
            is_held: self.clients.iter().any(|client| client.pace.is_held()),
            cut_short: self.cut_short,
        };
        self.clock = match member.rest(self.clock, rest) {
            Next::Turn(clock) => clock,
            Next::End => return Ok(Some(Over::Done)),
            Next::CutShort => {
                self.cut();
                return Ok(Some(Over::Done));
            }
            Next::Interrupted => return Ok(Some(Over::Interrupted)),
            Next::Stopped => return Ok(Some(Over::Elsewhere)),
        };
        self.turns += 1;
        self.hold(member.batches());
        for at in 0..self.clients.len() {
            self.write(at, tally)?;
            self.query(at, tally)?;
        }
        Ok(None)
    }

    /// CPU of the thread since the start.
    fn cpu_ns(&self) -> u64 {
        sys::thread_cpu_ns().saturating_sub(self.cpu_before_ns)
    }

    /// Waits for answers and times, and acts on them; returns whether the turn, or all, is done.
    fn turn(&mut self, tally: &mut StepTally, member: &Member<'_, '_>) -> Result<bool, Fault> {
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
        if finished && member.may_rest() {
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
                Some(long) if at == self.tables.len() => long.news(self.clock.now(), tally),
                // All other threads have come to the end of the turn.
                _ => Ok(()),
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

    fn end(&self, tally: &mut StepTally, over: Over) -> End {
        let client_cpu_ns = self.cpu_ns();
        for client in &self.clients {
            for role in [InsertRole::Insert, InsertRole::Delete] {
                tally.missed(role, client.pace.missed());
            }
        }
        self.end_of(over, client_cpu_ns)
    }

    fn end_of(&self, over: Over, client_cpu_ns: u64) -> End {
        let ended_ns = self.clients.iter().map(|client| client.end_ns).max();
        let duration_ns = ended_ns.filter(|_| matches!(over, Over::Done));
        End {
            duration_ns: duration_ns.unwrap_or_else(|| self.clock.now()),
            client_cpu_ns,
            clients: self.clients.iter().map(Client::kept_up).collect(),
            cut_short: self.cut_short,
            interrupted: matches!(over, Over::Interrupted),
            fault: match over {
                Over::Fault(fault) => Some(fault),
                Over::Done | Over::Interrupted | Over::Elsewhere => None,
            },
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
