//! Several connections: one epoll set, one operation under way on each.

use super::Work;
use crate::connection::Connection;
use crate::scan::{Loss, Progress};
use crate::slice::Tally;
use crate::sys::Poller;
use deltabench_model::units::index;

/// What a connection is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing: not started, or done with its share.
    Idle,
    /// Waiting for the answer to this step of the operation that started then (nanoseconds).
    Step { number: usize, started_ns: u64 },
    /// Waiting for the answer to the ROLLBACK after a failed operation, sent then (nanoseconds).
    RollingBack { started_ns: u64 },
}

/// A slice under way.
struct Pool<'p, 't, 'h> {
    work: Work<'p>,
    tally: &'t mut Tally<'h>,
    phases: Vec<Phase>,
    in_flight: u32,
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
        work,
        tally,
        phases: vec![Phase::Idle; connections.len()],
        in_flight: 0,
    };
    for (at, connection) in connections.iter_mut().enumerate() {
        let now_ns = pool.tally.clock.now();
        let phase = pool.begin(connection, now_ns)?;
        pool.set(at, phase);
    }
    let mut checked_ns = pool.tally.clock.now();
    while pool.in_flight > 0 {
        let ready = poller
            .wait()
            .map_err(|error| Loss::Closed(format!("waiting: {error}")))?;
        let mut now_ns = checked_ns;
        for nth in 0..ready {
            let at = index(poller.ready(nth).unwrap_or(u64::MAX));
            if let (Some(connection), Some(&phase)) = (connections.get_mut(at), pool.phases.get(at))
            {
                let phase = pool.advance(connection, phase, &mut now_ns)?;
                pool.set(at, phase);
            }
        }
        // The watchdog sees a slice that stands still; this sees one connection that does while others go on.
        if now_ns - checked_ns > limit_ns / 4 {
            checked_ns = now_ns;
            pool.check_stalls(now_ns, limit_ns)?;
        }
    }
    Ok(())
}

impl Pool<'_, '_, '_> {
    fn set(&mut self, at: usize, phase: Phase) {
        if let Some(place) = self.phases.get_mut(at) {
            *place = phase;
        }
    }

    /// Starts the next operation on a free connection, if there is one left.
    fn begin(&mut self, connection: &mut Connection, now_ns: u64) -> Result<Phase, Loss> {
        if self.tally.sent == self.work.operations {
            return Ok(Phase::Idle);
        }
        connection.draw(self.work.executable, self.work.random);
        self.tally.sent += 1;
        self.work.watchdog.beat(self.tally.sent);
        self.in_flight += 1;
        self.tally.max_in_flight = self.tally.max_in_flight.max(self.in_flight);
        connection.send_step(0)?;
        Ok(Phase::Step {
            number: 0,
            started_ns: now_ns,
        })
    }

    /// Takes what has come on a connection, and sends what is next. `now_ns` is the last reading of the
    /// clock.
    fn advance(
        &mut self,
        connection: &mut Connection,
        phase: Phase,
        now_ns: &mut u64,
    ) -> Result<Phase, Loss> {
        if connection.receive()? == Progress::More {
            return Ok(phase);
        }
        match phase {
            // A notice or a changed setting; an end of file was an error already.
            Phase::Idle => Ok(Phase::Idle),
            Phase::RollingBack { .. } => {
                super::rolled_back(connection)?;
                *now_ns = self.tally.clock.now();
                self.in_flight -= 1;
                self.begin(connection, *now_ns)
            }
            Phase::Step { number, started_ns } => {
                let mut error = connection.take_error();
                if error.is_none() {
                    if connection.send_step(number + 1)? {
                        return Ok(Phase::Step {
                            number: number + 1,
                            started_ns,
                        });
                    }
                    error = super::left_open(connection);
                }
                *now_ns = self.tally.clock.now();
                match error {
                    None => self.tally.succeeded(now_ns.saturating_sub(started_ns)),
                    Some(error) => {
                        self.tally.failed(&error);
                        if connection.in_transaction() {
                            connection.send_rollback()?;
                            return Ok(Phase::RollingBack {
                                started_ns: *now_ns,
                            });
                        }
                    }
                }
                self.in_flight -= 1;
                self.begin(connection, *now_ns)
            }
        }
    }

    fn check_stalls(&self, now_ns: u64, limit_ns: u64) -> Result<(), Loss> {
        let stalled = self.phases.iter().any(|phase| match phase {
            Phase::Idle => false,
            Phase::Step { started_ns, .. } | Phase::RollingBack { started_ns } => {
                now_ns.saturating_sub(*started_ns) > limit_ns
            }
        });
        if stalled { Err(Loss::Stalled) } else { Ok(()) }
    }
}
