//! One connection: send, wait, receive; the end of one operation being the start of the next.

use super::probe::Probe;
use super::turns::Turns;
use super::{BeforeSend, Work};
use crate::connection::Connection;
use crate::error::ServerError;
use crate::performer::Turn;
use crate::scan::Loss;
use crate::slice::Tally;
use crate::sys;
use deltabench_model::units::count;
use std::time::Duration;

/// What only a lane with one client has.
pub struct Alone<'a> {
    pub turns: &'a mut Turns,
    pub before_send: Option<&'a mut BeforeSend>,
    pub probe: Option<&'a mut Probe>,
}

/// Does all operations, one after the other.
pub fn run(
    connection: &mut Connection,
    work: Work<'_>,
    alone: Alone<'_>,
    tally: &mut Tally<'_>,
) -> Result<(), Loss> {
    let mut single = Single::new(work, alone, tally);
    let mut started_ns = single.tally.clock.now();
    for _ in 0..single.work.claims.all() {
        single.probe(started_ns);
        connection.draw(single.work.executable, &mut single.work.draws);
        single.tally.begun(connection.script());
        single.beat();
        started_ns = single.operation(connection, started_ns)?;
    }
    // A long operation has a probe at either end.
    single.probe(started_ns);
    Ok(())
}

/// A slice under way.
pub struct Single<'w, 't, 'h> {
    pub work: Work<'w>,
    alone: Alone<'w>,
    pub tally: &'t mut Tally<'h>,
    /// Proves to the watchdog that something goes on.
    beats: u64,
    /// Round trips of the operation, and how often they had to wait.
    trips: usize,
    waits: u64,
    /// How often it was tried, and since when.
    tries: u32,
    started_ns: u64,
}

/// Where an operation is.
#[derive(Debug, Clone, Copy)]
pub enum Stage {
    /// It needs an answer.
    Waits,
    /// It ended then, nanoseconds.
    Over(u64),
}

impl<'w, 't, 'h> Single<'w, 't, 'h> {
    /// At its beginning.
    pub fn new(work: Work<'w>, alone: Alone<'w>, tally: &'t mut Tally<'h>) -> Self {
        Self {
            work,
            alone,
            tally,
            beats: 0,
            trips: 0,
            waits: 0,
            tries: 1,
            started_ns: 0,
        }
    }

    /// The operation drawn last; returns when it was over.
    #[inline]
    pub fn operation(&mut self, connection: &mut Connection, started_ns: u64) -> Result<u64, Loss> {
        let mut stage = self.begin(connection, started_ns)?;
        loop {
            stage = match stage {
                Stage::Waits => {
                    let waits = connection.answer()?;
                    self.answered(connection, waits)?
                }
                Stage::Over(now_ns) => return Ok(now_ns),
            };
        }
    }

    /// Begins the operation drawn last.
    #[inline]
    pub fn begin(&mut self, connection: &mut Connection, started_ns: u64) -> Result<Stage, Loss> {
        (self.trips, self.waits, self.tries) = (0, 0, 1);
        self.started_ns = started_ns;
        self.before_send(connection);
        let turn = connection.go_on(self.work.executable)?;
        self.follow(connection, turn)
    }

    /// Goes on with it: the answer is complete, for which it had to wait so often.
    #[inline]
    pub fn answered(&mut self, connection: &mut Connection, waits: u64) -> Result<Stage, Loss> {
        self.trips += 1;
        self.waits += waits;
        self.before_send(connection);
        let turn = connection.go_on(self.work.executable)?;
        self.follow(connection, turn)
    }

    #[inline]
    fn follow(&mut self, connection: &mut Connection, mut turn: Turn) -> Result<Stage, Loss> {
        loop {
            turn = match turn {
                Turn::Answer => return Ok(Stage::Waits),
                Turn::Rest(time) => {
                    self.rest(time);
                    connection.go_on(self.work.executable)?
                }
                Turn::Done => {
                    let (trips, waits) = (count(self.trips), self.waits);
                    self.alone.turns.note(trips, waits, connection.local_pid());
                    let now_ns = self.tally.clock.now();
                    self.tally
                        .succeeded(connection.script(), now_ns - self.started_ns);
                    return Ok(Stage::Over(now_ns));
                }
                Turn::Failed(error) => match self.failed(connection, &error)? {
                    Some(again) => again,
                    None => return Ok(Stage::Over(self.tally.clock.now())),
                },
            };
        }
    }

    /// Takes note of an error; what comes next if the operation is tried again.
    #[cold]
    fn failed(
        &mut self,
        connection: &mut Connection,
        error: &ServerError,
    ) -> Result<Option<Turn>, Loss> {
        let script = connection.script();
        let age_ns = nanoseconds(self.age());
        let again = self.work.tries_again(error, self.tries, age_ns);
        if !again {
            self.tally.failed(script, error);
        }
        if connection.in_transaction() {
            connection.send_rollback()?;
            connection.answer()?;
            connection.rolled_back()?;
        }
        if !again {
            return Ok(None);
        }
        self.tally.tried_again(script, self.tries);
        self.tries += 1;
        self.beat();
        connection.start_again(self.work.executable).map(Some)
    }

    /// Time since the operation began.
    pub fn age(&self) -> Duration {
        Duration::from_nanos(self.tally.clock.now() - self.started_ns)
    }

    /// Measures the core if it is time, which is no part of the slice.
    #[inline]
    fn probe(&mut self, now_ns: u64) {
        if let Some(probe) = &mut self.alone.probe {
            probe.at(now_ns, self.tally);
        }
    }

    #[inline]
    fn before_send(&mut self, connection: &Connection) {
        if let (Some(done), Some(pid)) = (&mut self.alone.before_send, connection.local_pid()) {
            done(pid);
        }
    }

    /// Shows the watchdog that something goes on.
    pub fn beat(&mut self) {
        self.beats += 1;
        self.work.pulse.beat(self.beats);
    }

    /// Waits, which is no stall however long it takes.
    #[cold]
    fn rest(&mut self, time: Duration) {
        sys::exact_timers();
        let end_ns = self.tally.clock.now().saturating_add(nanoseconds(time));
        loop {
            let left = end_ns.saturating_sub(self.tally.clock.now());
            if left == 0 {
                break;
            }
            std::thread::sleep(Duration::from_nanos(left).min(self.work.limit / 4));
            self.beat();
        }
    }
}

/// More than 584 years are 584 years.
pub fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
