//! Where the threads of a step begin, rest and end together.
//!
//! The first one is the calling thread. It alone ends turns: a turn is over when all threads have come to its
//! end.

use super::turns::{TurnFigures, Turns};
use crate::slice::Clock;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// What a thread, or all of them, have come to at the end of a turn.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rest {
    pub figures: TurnFigures,
    /// Whether batches are left for the next turn.
    pub is_held: bool,
    /// Whether the step has taken too long, so that no more batches are sent.
    pub cut_short: bool,
}

impl Rest {
    fn and(self, other: Self) -> Self {
        let (mine, others) = (self.figures, other.figures);
        let mut statements = mine.statements;
        for (sum, more) in statements.iter_mut().zip(others.statements) {
            *sum += more;
        }
        Self {
            figures: TurnFigures {
                ended_ns: mine.ended_ns.max(others.ended_ns),
                statements,
                client_cpu_ns: mine.client_cpu_ns + others.client_cpu_ns,
            },
            is_held: self.is_held || other.is_held,
            cut_short: self.cut_short || other.cut_short,
        }
    }
}

/// What follows the end of a turn.
#[derive(Debug, Clone, Copy)]
pub enum Next {
    /// The next turn, by this clock.
    Turn(Clock),
    End,
    /// The end, because the step of another thread has taken too long.
    CutShort,
    Interrupted,
    /// The end, because another thread cannot go on.
    Stopped,
}

/// Where the threads of a step meet.
#[derive(Debug)]
pub struct Crew {
    /// Batches of each client in a turn.
    batches: Option<u64>,
    stopped: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
    /// Wakes the first thread when all others have come to the end of a turn; absent if there are none.
    bell: Option<Bell>,
}

#[derive(Debug)]
struct State {
    /// Threads beside the first.
    others: usize,
    /// Those of them that wait for the start, or have come to the end of the turn.
    here: usize,
    /// What they have come to.
    rest: Rest,
    /// How often the first thread has said what is next: at the start, and at the end of each turn.
    said: u64,
    next: Next,
}

/// Two ends of a socket: the first thread waits for its other sockets at the same time.
#[derive(Debug)]
struct Bell {
    rope: UnixStream,
    ear: UnixStream,
}

impl Bell {
    fn new() -> io::Result<Self> {
        let (rope, ear) = UnixStream::pair()?;
        rope.set_nonblocking(true)?;
        ear.set_nonblocking(true)?;
        Ok(Self { rope, ear })
    }
}

impl Crew {
    /// For one thread, or for several; turns have so many batches of each client.
    ///
    /// Errors: no socket can be had.
    pub fn new(batches: Option<u64>, several: bool) -> io::Result<Self> {
        Ok(Self {
            batches,
            stopped: AtomicBool::new(false),
            state: Mutex::new(State {
                others: 0,
                here: 0,
                rest: Rest::default(),
                said: 0,
                next: Next::End,
            }),
            changed: Condvar::new(),
            bell: several.then(Bell::new).transpose()?,
        })
    }

    /// The first thread, beside which there are so many others.
    pub fn first<'c, 't>(&'c self, others: usize, turns: Option<Turns<'t>>) -> Member<'c, 't> {
        self.state().others = others;
        Member {
            crew: self,
            place: Seat::First(turns),
        }
    }

    /// Another thread.
    pub fn other(&self) -> Member<'_, 'static> {
        Member {
            crew: self,
            place: Seat::Other(0),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'s>(&self, state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        let woken = self.changed.wait(state);
        woken.unwrap_or_else(PoisonError::into_inner)
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Ends the step of all threads soon.
    pub fn stop(&self) {
        // Under the lock, so that nobody misses it between looking and waiting.
        let state = self.state();
        self.stopped.store(true, Ordering::Relaxed);
        self.changed.notify_all();
        drop(state);
        self.ring();
    }

    fn ring(&self) {
        if let Some(bell) = &self.bell {
            // If there is no room, there is something to hear already.
            let _ = (&bell.rope).write(&[0]);
        }
    }

    /// Says what is next.
    fn say(&self, mut state: MutexGuard<'_, State>, next: Next) -> Next {
        state.here = 0;
        state.rest = Rest::default();
        state.said += 1;
        state.next = next;
        self.changed.notify_all();
        next
    }

    /// Starts the clock as soon as all others are ready; none if they are not going to be.
    fn start(&self) -> Option<Clock> {
        let mut state = self.state();
        while state.here < state.others && !self.is_stopped() {
            state = self.wait(state);
        }
        if self.is_stopped() {
            return None;
        }
        let clock = Clock::start();
        self.say(state, Next::Turn(clock));
        Some(clock)
    }

    /// The end of a turn in the first thread, when all others have come to it.
    fn rest(&self, clock: Clock, own: Rest, turns: Option<&mut Turns<'_>>) -> Next {
        if let Some(bell) = &self.bell {
            // Everything, so that there is room for later.
            while matches!((&bell.ear).read(&mut [0; 64]), Ok(1..)) {}
        }
        let over = Instant::now();
        let all = self.state().rest.and(own);
        let next = match turns {
            _ if !all.is_held => Next::End,
            _ if all.cut_short => Next::CutShort,
            None => Next::End,
            // Nothing is under way: no time passes for the step while others have their turns.
            Some(turns) => match (turns.between)(&all.figures) {
                true => Next::Turn(clock.without(over.elapsed())),
                false => Next::Interrupted,
            },
        };
        self.say(self.state(), next)
    }

    /// Waits in another thread until the first one has said so often what is next.
    fn hear(&self, mut state: MutexGuard<'_, State>, often: u64) -> Next {
        while state.said < often && !self.is_stopped() {
            state = self.wait(state);
        }
        if state.said < often {
            return Next::Stopped;
        }
        state.next
    }
}

/// A thread of a step.
#[derive(Debug)]
pub struct Member<'c, 't> {
    crew: &'c Crew,
    place: Seat<'t>,
}

#[derive(Debug)]
enum Seat<'t> {
    First(Option<Turns<'t>>),
    /// How often it has heard what is next.
    Other(u64),
}

impl Member<'_, '_> {
    /// Batches of each client in a turn.
    pub fn batches(&self) -> Option<u64> {
        self.crew.batches
    }

    /// What tells the first thread that all others have come to the end of a turn.
    pub fn bell(&self) -> Option<BorrowedFd<'_>> {
        match &self.place {
            Seat::First(_) => self.crew.bell.as_ref().map(|bell| bell.ear.as_fd()),
            Seat::Other(_) => None,
        }
    }

    /// Waits until all threads are ready; the clock of all, or none if there is nothing to begin.
    pub fn start(&mut self) -> Option<Clock> {
        let said = match &mut self.place {
            Seat::First(_) => return self.crew.start(),
            Seat::Other(said) => said,
        };
        *said += 1;
        let mut state = self.crew.state();
        state.here += 1;
        self.crew.changed.notify_all();
        match self.crew.hear(state, *said) {
            Next::Turn(clock) => Some(clock),
            _ => None,
        }
    }

    /// Whether another thread cannot go on.
    pub fn is_stopped(&self) -> bool {
        self.crew.is_stopped()
    }

    /// Whether this thread may rest: the first one goes on with what has no end until all others rest.
    pub fn may_rest(&self) -> bool {
        match self.place {
            Seat::First(_) => {
                let state = self.crew.state();
                state.here >= state.others
            }
            Seat::Other(_) => true,
        }
    }

    /// Comes to the end of a turn, or of the step.
    pub fn rest(&mut self, clock: Clock, own: Rest) -> Next {
        let said = match &mut self.place {
            Seat::First(turns) => return self.crew.rest(clock, own, turns.as_mut()),
            Seat::Other(said) => said,
        };
        *said += 1;
        let mut state = self.crew.state();
        state.here += 1;
        state.rest = state.rest.and(own);
        if state.here == state.others {
            self.crew.ring();
        }
        match own.is_held {
            true => self.crew.hear(state, *said),
            false => Next::End,
        }
    }
}
