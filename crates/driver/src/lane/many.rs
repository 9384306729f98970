//! Several connections of a thread, or a schedule: one epoll set, at most one operation under way on each
//! connection.

use super::Work;
use super::single::nanoseconds;
use crate::connection::Connection;
use crate::performer::Turn;
use crate::scan::{Loss, Progress};
use crate::slice::Tally;
use crate::sys::{self, Poller};
use deltabench_model::units::{index, to_f64, to_u64};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

/// A thread that waits for the end of a schedule looks this often whether another has lost the slice.
const LOOK: Duration = Duration::from_millis(100);

/// What a connection is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing: free, not started, or done with its share.
    Idle,
    /// Waiting for an answer.
    Working(Operation),
    /// Letting time pass that the script asked for.
    Resting(Operation),
    /// Waiting for the answer to the ROLLBACK after an operation failed, which is then tried again or over.
    RollingBack {
        operation: Operation,
        /// Whether it is tried again.
        again: bool,
    },
}

/// An operation under way; times in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Operation {
    /// From when its latency counts: its scheduled start, or in a closed loop when it was sent.
    due_ns: u64,
    /// When its first step was sent, or that after the last rest or try: from when it can be stalled.
    sent_ns: u64,
    /// How often it was begun.
    tries: u32,
}

/// A slice under way.
struct Pool<'p, 't, 'h> {
    work: Work<'p>,
    tally: &'t mut Tally<'h>,
    phases: Vec<Phase>,
    in_flight: u32,
    schedule: Option<Schedule>,
    /// Number of the operation that this thread took and has not begun yet: it is not due.
    claimed: Option<u64>,
    /// Whether there is nothing left to take.
    exhausted: bool,
    /// When rests end and on which connection, the first to end on top.
    rests: BinaryHeap<Reverse<(u64, usize)>>,
    /// What happened besides operations being begun; proves to the watchdog that the loop lives.
    beats: u64,
}

/// The state of an open loop.
struct Schedule {
    period_ns: f64,
    /// Connections without work and since when, the longest idle one first.
    free: VecDeque<(usize, u64)>,
    /// What would begin later than this after it was due is skipped.
    latency_limit_ns: Option<u64>,
}

/// Takes operations, each for whichever connection is free, until all are taken; returns when the last of its
/// own has been answered.
pub fn run(
    connections: &mut [Connection],
    poller: &mut Poller,
    work: Work<'_>,
    tally: &mut Tally<'_>,
) -> Result<(), Loss> {
    let limit_ns = nanoseconds(work.limit);
    let latency_limit_ns = work.latency_limit_ns();
    let mut pool = Pool {
        schedule: work
            .rate
            .map(|rate| Schedule::new(rate, connections.len(), latency_limit_ns, tally)),
        claimed: None,
        exhausted: false,
        work,
        tally,
        phases: vec![Phase::Idle; connections.len()],
        in_flight: 0,
        rests: BinaryHeap::new(),
        beats: 0,
    };
    if pool.schedule.is_none() {
        for (at, connection) in connections.iter_mut().enumerate() {
            let now_ns = pool.tally.clock.now();
            pool.begin_next(connection, at, now_ns)?;
        }
    }
    let mut checked_ns = pool.tally.clock.now();
    loop {
        let mut now_ns = checked_ns;
        let wait = pool.attend(connections, &mut now_ns)?;
        if pool.in_flight == 0 && pool.exhausted {
            pool.await_end();
            return Ok(());
        }
        let ready = match wait {
            None => poller.wait(),
            Some(limit) => poller.wait_for(limit),
        };
        let ready = ready.map_err(|error| Loss::Closed(format!("waiting: {error}")))?;
        for nth in 0..ready {
            let at = index(poller.ready(nth).unwrap_or(u64::MAX));
            if let Some(connection) = connections.get_mut(at) {
                pool.advance(connection, at, &mut now_ns)?;
            }
        }
        // The watchdog sees a slice that stands still; this sees one connection that does while others go on.
        if now_ns - checked_ns > limit_ns / 4 {
            checked_ns = now_ns;
            pool.check_stalls(now_ns, limit_ns)?;
        }
    }
}

impl Schedule {
    /// All connections free, the first operation due when the slice starts.
    fn new(
        rate: f64,
        connections: usize,
        latency_limit_ns: Option<u64>,
        tally: &mut Tally<'_>,
    ) -> Self {
        sys::exact_timers();
        tally.schedule_lag_ns = Some(0);
        Self {
            period_ns: 1e9 / rate,
            free: (0..connections).map(|at| (at, 0)).collect(),
            latency_limit_ns,
        }
    }

    /// When an operation is due; they are counted from 0.
    fn due_ns(&self, operation: u64) -> u64 {
        to_u64(to_f64(operation) * self.period_ns)
    }
}

impl Pool<'_, '_, '_> {
    /// Open loop: waits until the time of the last operation is over. Without it the first operation would
    /// come for nothing, and the throughput of a few operations would be above their rate.
    fn await_end(&mut self) {
        let Some(schedule) = &self.schedule else {
            return;
        };
        let end_ns = schedule.due_ns(self.work.claims.all());
        loop {
            let left_ns = end_ns.saturating_sub(self.tally.clock.now());
            if left_ns == 0 || self.work.claims.is_lost() {
                return;
            }
            self.beats += 1;
            self.beat();
            let look = LOOK.min(self.work.limit / 4);
            std::thread::sleep(Duration::from_nanos(left_ns).min(look));
        }
    }

    /// Does what time asks for; returns how long to wait for news at most. Without schedule and rests there
    /// is nothing to do but to wait until there is some.
    #[inline]
    fn attend(
        &mut self,
        connections: &mut [Connection],
        now_ns: &mut u64,
    ) -> Result<Option<Duration>, Loss> {
        if self.schedule.is_none() && self.rests.is_empty() {
            return Ok(None);
        }
        *now_ns = self.tally.clock.now();
        self.end_rests(connections, now_ns)?;
        let mut wait = self.send_due(connections, now_ns)?;
        if let Some(Reverse((until_ns, _))) = self.rests.peek() {
            wait = wait.min(Duration::from_nanos(until_ns.saturating_sub(*now_ns)));
        }
        if index(u64::from(self.in_flight)) == self.rests.len() {
            self.beats += 1;
            self.beat();
        }
        Ok(Some(wait))
    }

    /// Goes on where a rest is over.
    fn end_rests(&mut self, connections: &mut [Connection], now_ns: &mut u64) -> Result<(), Loss> {
        while let Some(&Reverse((until_ns, at))) = self.rests.peek() {
            if until_ns > *now_ns {
                break;
            }
            self.rests.pop();
            let phase = self.phases.get(at).copied();
            if let (Some(Phase::Resting(operation)), Some(connection)) =
                (phase, connections.get_mut(at))
            {
                let turn = connection.go_on(self.work.executable)?;
                let operation = Operation {
                    sent_ns: *now_ns,
                    ..operation
                };
                self.carry_on(connection, at, operation, turn, now_ns)?;
            }
        }
        Ok(())
    }

    /// Open loop: sends what is due on free connections; returns how long to wait for news at most.
    fn send_due(
        &mut self,
        connections: &mut [Connection],
        now_ns: &mut u64,
    ) -> Result<Duration, Loss> {
        let mut wait = self.work.limit / 4;
        loop {
            let free = |schedule: &Schedule| schedule.free.front().copied();
            let Some((at, free_ns)) = self.schedule.as_ref().and_then(free) else {
                break;
            };
            // Taken only by a thread that has a connection for it, so it waits where it could be sent.
            let Some(number) = self.claim() else {
                break;
            };
            let (Some(schedule), Some(connection)) = (&mut self.schedule, connections.get_mut(at))
            else {
                break;
            };
            let due_ns = schedule.due_ns(number);
            if due_ns > *now_ns {
                self.claimed = Some(number);
                wait = wait.min(Duration::from_nanos(due_ns - *now_ns));
                break;
            }
            let late = |limit| due_ns.saturating_add(limit) < *now_ns;
            if schedule.latency_limit_ns.is_some_and(late) {
                // Which script it would have been.
                self.work.draw(connection, number);
                self.tally.skip(connection.script());
                continue;
            }
            schedule.free.pop_front();
            let lag_ns = now_ns.saturating_sub(due_ns.max(free_ns));
            self.tally.schedule_lag_ns = self.tally.schedule_lag_ns.max(Some(lag_ns));
            let (operation, turn) = self.begin(connection, number, due_ns, *now_ns)?;
            self.carry_on(connection, at, operation, turn, now_ns)?;
            *now_ns = self.tally.clock.now();
        }
        Ok(wait)
    }

    #[inline]
    fn set(&mut self, at: usize, phase: Phase) {
        if let Some(place) = self.phases.get_mut(at) {
            *place = phase;
        }
    }

    #[inline]
    fn beat(&self) {
        self.work.pulse.beat(self.tally.sent + self.beats);
    }

    /// The next operation that nobody has taken, or the one that waits for its time.
    #[inline]
    fn claim(&mut self) -> Option<u64> {
        if let Some(number) = self.claimed.take() {
            return Some(number);
        }
        if self.exhausted {
            return None;
        }
        let taken = self.work.claims.take();
        self.exhausted = taken.is_none();
        taken
    }

    /// Starts an operation on a free connection.
    // With the call of this and of `next`, an operation costs 5 % more instructions.
    #[inline(always)]
    fn begin(
        &mut self,
        connection: &mut Connection,
        number: u64,
        due_ns: u64,
        now_ns: u64,
    ) -> Result<(Operation, Turn), Loss> {
        self.work.draw(connection, number);
        self.tally.begun(connection.script());
        self.beat();
        self.in_flight += 1;
        let operation = Operation {
            due_ns,
            sent_ns: now_ns,
            tries: 1,
        };
        Ok((operation, connection.go_on(self.work.executable)?))
    }

    /// Closed loop: starts the next operation, if there is one left, on a free connection.
    fn begin_next(
        &mut self,
        connection: &mut Connection,
        at: usize,
        mut now_ns: u64,
    ) -> Result<(), Loss> {
        let Some(number) = self.claim() else {
            return Ok(());
        };
        let (operation, turn) = self.begin(connection, number, now_ns, now_ns)?;
        self.carry_on(connection, at, operation, turn, &mut now_ns)
    }

    /// Goes on from a turn of an operation until the connection has to wait or is free: to the next operation
    /// and so on, because one that sends nothing is done at once. `now_ns` is the last reading of the clock.
    #[inline]
    fn carry_on(
        &mut self,
        connection: &mut Connection,
        at: usize,
        mut operation: Operation,
        mut turn: Turn,
        now_ns: &mut u64,
    ) -> Result<(), Loss> {
        loop {
            match turn {
                Turn::Answer => {
                    self.set(at, Phase::Working(operation));
                    return Ok(());
                }
                Turn::Rest(time) => {
                    self.rest(at, operation, time, now_ns);
                    return Ok(());
                }
                Turn::Done => {
                    *now_ns = self.tally.clock.now();
                    let latency_ns = now_ns.saturating_sub(operation.due_ns);
                    self.tally.succeeded(connection.script(), latency_ns);
                }
                Turn::Failed(error) => {
                    *now_ns = self.tally.clock.now();
                    let age_ns = now_ns.saturating_sub(operation.due_ns);
                    let again = self.work.tries_again(&error, operation.tries, age_ns);
                    if !again {
                        self.tally.failed(connection.script(), &error);
                    }
                    if connection.in_transaction() {
                        connection.send_rollback()?;
                        operation.sent_ns = *now_ns;
                        self.set(at, Phase::RollingBack { operation, again });
                        return Ok(());
                    }
                    if again {
                        turn = self.try_again(connection, &mut operation, *now_ns)?;
                        continue;
                    }
                }
            }
            match self.next(connection, at, *now_ns)? {
                Some(next) => (operation, turn) = next,
                None => return Ok(()),
            }
        }
    }

    /// A connection has done its work: on to the next operation, or wait for the schedule.
    #[inline(always)]
    fn next(
        &mut self,
        connection: &mut Connection,
        at: usize,
        now_ns: u64,
    ) -> Result<Option<(Operation, Turn)>, Loss> {
        self.in_flight -= 1;
        if let Some(schedule) = &mut self.schedule {
            schedule.free.push_back((at, now_ns));
        } else if let Some(number) = self.claim() {
            return self.begin(connection, number, now_ns, now_ns).map(Some);
        }
        self.set(at, Phase::Idle);
        Ok(None)
    }

    #[cold]
    fn try_again(
        &mut self,
        connection: &mut Connection,
        operation: &mut Operation,
        now_ns: u64,
    ) -> Result<Turn, Loss> {
        self.tally.tried_again(connection.script(), operation.tries);
        operation.tries += 1;
        operation.sent_ns = now_ns;
        self.beats += 1;
        self.beat();
        connection.start_again(self.work.executable)
    }

    #[cold]
    fn rest(&mut self, at: usize, operation: Operation, time: Duration, now_ns: &mut u64) {
        sys::exact_timers();
        *now_ns = self.tally.clock.now();
        let until_ns = now_ns.saturating_add(nanoseconds(time));
        self.rests.push(Reverse((until_ns, at)));
        self.set(at, Phase::Resting(operation));
    }

    /// Takes what has come on a connection, and sends what is next. `now_ns` is the last reading of the
    /// clock.
    fn advance(
        &mut self,
        connection: &mut Connection,
        at: usize,
        now_ns: &mut u64,
    ) -> Result<(), Loss> {
        if connection.receive()? == Progress::More {
            return Ok(());
        }
        match self.phases.get(at).copied().unwrap_or(Phase::Idle) {
            // A notice or a changed setting; an end of file was an error already.
            Phase::Idle | Phase::Resting(_) => Ok(()),
            Phase::Working(operation) => {
                let turn = connection.go_on(self.work.executable)?;
                self.carry_on(connection, at, operation, turn, now_ns)
            }
            Phase::RollingBack {
                mut operation,
                again,
            } => {
                connection.rolled_back()?;
                *now_ns = self.tally.clock.now();
                let next = if again {
                    let turn = self.try_again(connection, &mut operation, *now_ns)?;
                    Some((operation, turn))
                } else {
                    self.next(connection, at, *now_ns)?
                };
                match next {
                    Some((operation, turn)) => {
                        self.carry_on(connection, at, operation, turn, now_ns)
                    }
                    None => Ok(()),
                }
            }
        }
    }

    fn check_stalls(&self, now_ns: u64, limit_ns: u64) -> Result<(), Loss> {
        let stalled = self.phases.iter().any(|phase| match phase {
            Phase::Idle | Phase::Resting(_) => false,
            Phase::Working(operation) | Phase::RollingBack { operation, .. } => {
                now_ns.saturating_sub(operation.sent_ns) > limit_ns
            }
        });
        if stalled { Err(Loss::Stalled) } else { Ok(()) }
    }
}
