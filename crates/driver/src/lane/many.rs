//! Several connections, or a schedule: one epoll set, at most one operation under way on each connection.

use super::Work;
use crate::connection::Connection;
use crate::scan::{Loss, Progress};
use crate::slice::Tally;
use crate::sys::{self, Poller};
use deltabench_model::units::{index, to_f64, to_u64};
use std::collections::VecDeque;
use std::time::Duration;

/// What a connection is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing: free, not started, or done with its share.
    Idle,
    /// Waiting for the answer to a step of an operation.
    Step(Operation),
    /// Waiting for the answer to the ROLLBACK after a failed operation, sent then (nanoseconds).
    RollingBack { sent_ns: u64 },
}

/// An operation under way; times in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Operation {
    /// The step that was sent last.
    step: usize,
    /// From when its latency counts: its scheduled start, or in a closed loop when it was sent.
    due_ns: u64,
    /// When its first step was sent.
    sent_ns: u64,
}

/// A slice under way.
struct Pool<'p, 't, 'h> {
    work: Work<'p>,
    tally: &'t mut Tally<'h>,
    phases: Vec<Phase>,
    in_flight: u32,
    schedule: Option<Schedule>,
}

/// The state of an open loop.
struct Schedule {
    start_ns: u64,
    period_ns: f64,
    /// Connections without work and since when, the longest idle one first.
    free: VecDeque<(usize, u64)>,
    /// Times that the loop woke with nothing under way; proves to the watchdog that it lives.
    idle_wakes: u64,
}

/// Does all operations, each on whichever connection is free; returns when the last has been answered.
pub fn run(
    connections: &mut [Connection],
    poller: &mut Poller,
    work: Work<'_>,
    tally: &mut Tally<'_>,
) -> Result<(), Loss> {
    let limit_ns = u64::try_from(work.limit.as_nanos()).unwrap_or(u64::MAX);
    let mut pool = Pool {
        schedule: work
            .rate
            .map(|rate| Schedule::start(rate, connections.len(), tally)),
        work,
        tally,
        phases: vec![Phase::Idle; connections.len()],
        in_flight: 0,
    };
    if pool.schedule.is_none() {
        for (at, connection) in connections.iter_mut().enumerate() {
            let now_ns = pool.tally.clock.now();
            pool.begin(connection, at, now_ns, now_ns)?;
        }
    }
    let mut checked_ns = pool.tally.clock.now();
    loop {
        let mut now_ns = checked_ns;
        let next = pool.send_due(connections, &mut now_ns)?;
        if pool.in_flight == 0 && pool.tally.sent == pool.work.operations {
            return Ok(());
        }
        let ready = match next {
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
    /// All connections free, the first operation due now.
    fn start(rate: f64, connections: usize, tally: &mut Tally<'_>) -> Self {
        sys::exact_timers();
        tally.schedule_lag_ns = Some(0);
        tally.longest_queue = Some(0);
        let start_ns = tally.clock.now();
        Self {
            start_ns,
            period_ns: 1e9 / rate,
            free: (0..connections).map(|at| (at, start_ns)).collect(),
            idle_wakes: 0,
        }
    }

    /// When an operation is due; they are counted from 0.
    fn due_ns(&self, operation: u64) -> u64 {
        self.start_ns + to_u64(to_f64(operation) * self.period_ns)
    }

    /// How many operations are due by then.
    fn due_by(&self, now_ns: u64) -> u64 {
        to_u64(to_f64(now_ns.saturating_sub(self.start_ns)) / self.period_ns) + 1
    }
}

impl Pool<'_, '_, '_> {
    /// Open loop: sends what is due on free connections; returns how long to wait for news at most. Nothing
    /// to do in a closed loop, which waits until there is some.
    fn send_due(
        &mut self,
        connections: &mut [Connection],
        now_ns: &mut u64,
    ) -> Result<Option<Duration>, Loss> {
        let Some(mut schedule) = self.schedule.take() else {
            return Ok(None);
        };
        *now_ns = self.tally.clock.now();
        let mut wait = self.work.limit / 4;
        while self.tally.sent < self.work.operations {
            let Some(&(at, free_ns)) = schedule.free.front() else {
                break;
            };
            let due_ns = schedule.due_ns(self.tally.sent);
            if due_ns > *now_ns {
                wait = wait.min(Duration::from_nanos(due_ns - *now_ns));
                break;
            }
            schedule.free.pop_front();
            let lag_ns = now_ns.saturating_sub(due_ns.max(free_ns));
            self.tally.schedule_lag_ns = self.tally.schedule_lag_ns.max(Some(lag_ns));
            let due = schedule.due_by(*now_ns).min(self.work.operations);
            // This one has waited too if it was due before the connection was free.
            let punctual = u64::from(due_ns >= free_ns);
            let waiting = due.saturating_sub(self.tally.sent + punctual);
            self.tally.longest_queue = self.tally.longest_queue.max(Some(waiting));
            if let Some(connection) = connections.get_mut(at) {
                self.begin(connection, at, due_ns, *now_ns)?;
            }
            *now_ns = self.tally.clock.now();
        }
        if self.in_flight == 0 {
            schedule.idle_wakes += 1;
            self.work
                .watchdog
                .beat(self.tally.sent + schedule.idle_wakes);
        }
        self.schedule = Some(schedule);
        Ok(Some(wait))
    }

    fn set(&mut self, at: usize, phase: Phase) {
        if let Some(place) = self.phases.get_mut(at) {
            *place = phase;
        }
    }

    /// Starts the next operation on a free connection, if there is one left.
    fn begin(
        &mut self,
        connection: &mut Connection,
        at: usize,
        due_ns: u64,
        now_ns: u64,
    ) -> Result<(), Loss> {
        if self.tally.sent == self.work.operations {
            self.set(at, Phase::Idle);
            return Ok(());
        }
        connection.draw(self.work.executable, self.work.draws);
        self.tally.sent += 1;
        let wakes = self
            .schedule
            .as_ref()
            .map_or(0, |schedule| schedule.idle_wakes);
        self.work.watchdog.beat(self.tally.sent + wakes);
        self.in_flight += 1;
        self.tally.max_in_flight = self.tally.max_in_flight.max(self.in_flight);
        connection.send_step(0)?;
        let operation = Operation {
            step: 0,
            due_ns,
            sent_ns: now_ns,
        };
        self.set(at, Phase::Step(operation));
        Ok(())
    }

    /// A connection has done its work: on to the next, or wait for the schedule.
    fn next(&mut self, connection: &mut Connection, at: usize, now_ns: u64) -> Result<(), Loss> {
        self.in_flight -= 1;
        match &mut self.schedule {
            None => self.begin(connection, at, now_ns, now_ns),
            Some(schedule) => {
                schedule.free.push_back((at, now_ns));
                self.set(at, Phase::Idle);
                Ok(())
            }
        }
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
            Phase::Idle => Ok(()),
            Phase::RollingBack { .. } => {
                super::rolled_back(connection)?;
                *now_ns = self.tally.clock.now();
                self.next(connection, at, *now_ns)
            }
            Phase::Step(operation) => {
                let mut error = connection.take_error();
                if error.is_none() {
                    let step = operation.step + 1;
                    if connection.send_step(step)? {
                        self.set(at, Phase::Step(Operation { step, ..operation }));
                        return Ok(());
                    }
                    error = super::left_open(connection);
                }
                *now_ns = self.tally.clock.now();
                match error {
                    None => self
                        .tally
                        .succeeded(now_ns.saturating_sub(operation.due_ns)),
                    Some(error) => {
                        self.tally.failed(&error);
                        if connection.in_transaction() {
                            connection.send_rollback()?;
                            self.set(at, Phase::RollingBack { sent_ns: *now_ns });
                            return Ok(());
                        }
                    }
                }
                self.next(connection, at, *now_ns)
            }
        }
    }

    fn check_stalls(&self, now_ns: u64, limit_ns: u64) -> Result<(), Loss> {
        let stalled = self.phases.iter().any(|phase| match phase {
            Phase::Idle => false,
            Phase::Step(Operation { sent_ns, .. }) | Phase::RollingBack { sent_ns } => {
                now_ns.saturating_sub(*sent_ns) > limit_ns
            }
        });
        if stalled { Err(Loss::Stalled) } else { Ok(()) }
    }
}
