//! A slice by one thread, or by several that begin and end together.

use super::fresh::Door;
use super::single::Alone;
use super::{Work, fresh, many, single};
use crate::connection::Connection;
use crate::scan::Loss;
use crate::slice::{Clock, Tally};
use crate::sys::{self, Poller};
use crate::watchdog::Sockets;
use std::io;
use std::os::fd::AsFd;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, ScopedJoinHandle};

/// The connections of one thread to a server.
#[derive(Debug, Default)]
pub struct Part {
    pub connections: Vec<Connection>,
    /// Which of them have answers; without it, there is one connection and no schedule.
    pub poller: Option<Poller>,
    /// What opens a connection for each operation, where none is kept.
    pub door: Option<Door>,
}

impl Part {
    /// Rows since the last call.
    pub fn take_rows(&mut self) -> u64 {
        let kept = self.connections.iter_mut().map(Connection::take_rows);
        kept.sum::<u64>() + self.door.as_mut().map_or(0, Door::take_rows)
    }
}

/// One thread's part in a slice.
pub struct Member<'a> {
    pub part: &'a mut Part,
    pub work: Work<'a>,
    pub tally: Tally<'a>,
}

/// What a thread, or all of them, came to.
pub struct Share<'h> {
    pub tally: Tally<'h>,
    /// CPU of the threads, nanoseconds.
    pub cpu_ns: u64,
    pub end: Result<(), Loss>,
}

impl<'a> Member<'a> {
    /// The whole slice in the calling thread.
    pub fn work_alone(mut self, alone: Alone<'_>) -> Share<'a> {
        let cpu_before_ns = sys::thread_cpu_ns();
        self.tally.clock = Clock::start();
        let Part {
            connections,
            poller,
            door,
        } = self.part;
        let end = match (door, poller, connections.as_mut_slice()) {
            (Some(door), ..) => fresh::run(door, self.work, &mut self.tally),
            (None, Some(poller), connections) => {
                many::run(connections, poller, self.work, &mut self.tally)
            }
            (None, None, [connection, ..]) => {
                single::run(connection, self.work, alone, &mut self.tally)
            }
            (None, None, []) => Ok(()),
        };
        Share::of(self.tally, end, cpu_before_ns)
    }

    /// A share of the slice; the clock is that of all, and so are the sockets.
    fn work_beside(mut self, clock: Clock, sockets: &Sockets) -> Share<'a> {
        let cpu_before_ns = sys::thread_cpu_ns();
        self.tally.clock = clock;
        let (claims, pulse) = (self.work.claims, self.work.pulse);
        let Part {
            connections,
            poller,
            door,
        } = self.part;
        let end = match (door, poller) {
            (Some(door), _) => fresh::run(door, self.work, &mut self.tally),
            (None, Some(poller)) => many::run(connections, poller, self.work, &mut self.tally),
            (None, None) => Ok(()),
        };
        pulse.rest();
        if end.is_err() {
            claims.stop();
            // The slice is lost. Others may wait for a lock of a connection that nobody serves any more.
            sockets
                .iter()
                .for_each(|socket| sys::shut_down(socket.as_fd()));
        }
        Share::of(self.tally, end, cpu_before_ns)
    }
}

impl<'h> Share<'h> {
    fn of(mut tally: Tally<'h>, end: Result<(), Loss>, cpu_before_ns: u64) -> Self {
        tally.end();
        Self {
            tally,
            cpu_ns: sys::thread_cpu_ns().saturating_sub(cpu_before_ns),
            end,
        }
    }

    /// Adds that of another thread. Of two losses the one that says more stays: after the first, all sockets
    /// are shut down, which the other threads see as an end of their connections.
    fn add(&mut self, other: Self) {
        self.tally.add(other.tally);
        self.cpu_ns += other.cpu_ns;
        let says_more = match (&self.end, &other.end) {
            (_, Ok(())) => false,
            (Ok(()), Err(_)) => true,
            (Err(Loss::Closed(_)), Err(other)) => !matches!(other, Loss::Closed(_)),
            (Err(Loss::Stalled), Err(Loss::Fatal(_))) => true,
            _ => false,
        };
        if says_more {
            self.end = other.end;
        }
    }
}

/// Where threads wait for each other before a slice.
#[derive(Default)]
struct Start {
    state: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    ready: usize,
    /// The clock of the slice, once it runs.
    clock: Option<Clock>,
}

impl Start {
    fn state(&self) -> MutexGuard<'_, Waiting> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the clock.
    fn ready(&self) -> Clock {
        let mut state = self.state();
        state.ready += 1;
        self.changed.notify_all();
        loop {
            if let Some(clock) = state.clock {
                return clock;
            }
            let woken = self.changed.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until so many others are ready, and starts the clock.
    fn go(&self, others: usize) -> Clock {
        let mut state = self.state();
        while state.ready < others {
            let woken = self.changed.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
        let clock = Clock::start();
        state.clock = Some(clock);
        self.changed.notify_all();
        clock
    }
}

/// Whether so many threads can be had at a time.
pub fn try_out(threads: u32) -> io::Result<()> {
    let end = Mutex::new(());
    std::thread::scope(|scope| {
        // They live until the last has begun.
        let _all = end.lock();
        (1..threads).try_for_each(|_| {
            let begun = Builder::new().spawn_scoped(scope, || drop(end.lock()));
            begun.map(drop)
        })
    })
}

/// The slice in the calling thread and one more for each other member, on one of these cores each, if there
/// are some. `sockets` are those of all members.
///
/// A thread that cannot be had makes the slice a lost one.
pub fn work_together<'a>(
    (first, others): (Member<'a>, Vec<Member<'a>>),
    cores: &[usize],
    sockets: &Sockets,
) -> Share<'a> {
    let mut places = cores.iter().copied();
    let own = places.next();
    let before = own.map(|_| sys::own_cores());
    let start = Start::default();
    let claims = first.work.claims;
    let mut refused = None;
    let mut all = std::thread::scope(|scope| {
        let mut threads = Vec::with_capacity(others.len());
        for member in others {
            let (start, core) = (&start, places.next());
            let begun = Builder::new().spawn_scoped(scope, move || {
                pin(core);
                member.work_beside(start.ready(), sockets)
            });
            match begun {
                Ok(thread) => threads.push(thread),
                Err(error) => refused = Some(error),
            }
        }
        if refused.is_some() {
            claims.stop();
        }
        pin(own);
        let mut all = first.work_beside(start.go(threads.len()), sockets);
        for thread in threads {
            all.add(joined(thread));
        }
        all
    });
    if let Some(before) = before {
        // It had them a moment ago.
        let _ = sys::pin_thread(&before);
    }
    if let Some(error) = refused {
        all.end = Err(Loss::Closed(format!("a thread of the client: {error}")));
    }
    all
}

/// One core for this thread alone. Without it the slice is the same, only less even.
fn pin(core: Option<usize>) {
    if let Some(core) = core {
        let _ = sys::pin_thread(&[core]);
    }
}

/// What a thread came to; a panic in it goes on in this one.
fn joined<'a>(thread: ScopedJoinHandle<'_, Share<'a>>) -> Share<'a> {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
