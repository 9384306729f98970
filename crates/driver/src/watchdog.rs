//! Notices a server that does not answer, at no cost to the measured thread.
//!
//! A time limit inside `poll` or `epoll_wait` costs a timer to arm and to cancel: 0.5 of 5 µs per operation
//! where this was measured. Here a measured thread only counts its operations in memory; another thread
//! looks a few times per time limit, and shuts the sockets down when the count of one has stood still. To the
//! measured threads that is an end of file.

use crate::sys;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Looks per time limit; a stall is noticed within the limit and one more period.
const LOOKS: u32 = 8;

/// Sockets of one server.
pub type Sockets = Arc<[Arc<OwnedFd>]>;

/// The socket that a thread has right now, if it opens one after the other.
pub type Changing = Arc<Mutex<Option<Arc<OwnedFd>>>>;

/// A thread that watches one lane.
#[derive(Debug)]
pub struct Watchdog {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// Changes with every operation of one thread; on a cache line of its own (two, because processors fetch
/// them in pairs).
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Pulse(AtomicU64);

impl Pulse {
    /// Something was achieved: `count` differs from the last one given.
    #[inline]
    pub fn beat(&self, count: u64) {
        self.0.store(count, Ordering::Relaxed);
    }

    /// The thread is through with the slice.
    pub fn rest(&self) {
        self.0.store(RESTS, Ordering::Relaxed);
    }
}

/// The count of a thread that is through.
const RESTS: u64 = u64::MAX;

#[derive(Debug)]
struct Shared {
    /// One of each thread that measures.
    pulses: Box<[Pulse]>,
    /// Slices begun. Without it, slices of one operation, which all beat once, would look like a standstill.
    slices: AtomicU64,
    /// Whether the present slice was cut off.
    tripped: AtomicBool,
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Sockets of the slice under way.
    watched: Option<(Sockets, Vec<Changing>)>,
    ending: bool,
}

impl Watchdog {
    /// Starts watching so many threads that measure: nothing yet.
    pub fn start(limit: Duration, threads: usize) -> Self {
        let shared = Arc::new(Shared {
            pulses: (0..threads).map(|_| Pulse::default()).collect(),
            slices: AtomicU64::new(0),
            tripped: AtomicBool::new(false),
            state: Mutex::default(),
            ended: Condvar::new(),
        });
        let watching = Arc::clone(&shared);
        let thread = std::thread::spawn(move || watching.watch(limit));
        Self {
            shared,
            thread: Some(thread),
        }
    }

    /// A slice begins; its time limit counts from now.
    pub fn arm(&self, sockets: &Sockets, changing: Vec<Changing>) {
        let mut state = self.shared.lock();
        state.watched = Some((Arc::clone(sockets), changing));
        self.shared.tripped.store(false, Ordering::Relaxed);
        self.pulses().iter().for_each(|pulse| pulse.beat(0));
        self.shared.slices.fetch_add(1, Ordering::Relaxed);
    }

    /// The slice is over; returns whether it was cut off.
    pub fn disarm(&self) -> bool {
        self.shared.lock().watched = None;
        self.shared.tripped.load(Ordering::Relaxed)
    }

    /// What the threads show their progress with, one each.
    pub fn pulses(&self) -> &[Pulse] {
        &self.shared.pulses
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.shared.lock().ending = true;
        self.shared.ended.notify_all();
        if let Some(thread) = self.thread.take() {
            // A watchdog that panicked has nothing left to clean up.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Slices begun, and what a thread achieved in this one.
    fn progress(&self, pulse: &Pulse) -> (u64, u64) {
        (
            self.slices.load(Ordering::Relaxed),
            pulse.0.load(Ordering::Relaxed),
        )
    }

    fn watch(&self, limit: Duration) {
        let period = (limit / LOOKS).max(Duration::from_millis(1));
        let seen = |pulse| (self.progress(pulse), Instant::now());
        let mut last: Vec<_> = self.pulses.iter().map(seen).collect();
        let mut state = self.lock();
        while !state.ending {
            let woken = self.ended.wait_timeout(state, period);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
            let now = Instant::now();
            let mut stalled = false;
            for (pulse, last) in self.pulses.iter().zip(&mut last) {
                let progress = self.progress(pulse);
                if state.watched.is_none() || last.0 != progress || progress.1 == RESTS {
                    *last = (progress, now);
                }
                stalled |= now.duration_since(last.1) >= limit;
            }
            let is_over = stalled || self.tripped.load(Ordering::Relaxed);
            // At every look from then on: a thread may have opened another connection meanwhile.
            if let Some((sockets, changing)) = state.watched.as_ref().filter(|_| is_over) {
                self.tripped.store(true, Ordering::Relaxed);
                let present = changing.iter().filter_map(|changing| {
                    let socket = changing.lock().unwrap_or_else(PoisonError::into_inner);
                    socket.as_ref().map(Arc::clone)
                });
                let all = sockets.iter().map(Arc::clone).chain(present);
                all.for_each(|socket| sys::shut_down(socket.as_fd()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::Wait;
    use std::os::unix::net::UnixStream;

    /// Longer than a busy machine keeps a thread waiting.
    const BUSY_MACHINE: Duration = Duration::from_millis(600);

    fn pair() -> (Sockets, UnixStream) {
        let (near, far) = UnixStream::pair().unwrap();
        (Arc::from([Arc::new(OwnedFd::from(near))]), far)
    }

    #[test]
    fn a_slice_without_progress_is_cut_off() {
        let (sockets, _far) = pair();
        let watchdog = Watchdog::start(Duration::from_millis(20), 1);
        watchdog.arm(&sockets, Vec::new());
        sys::wait_for_input(sockets[0].as_fd()).unwrap();
        assert_eq!(
            sys::receive(sockets[0].as_fd(), &mut [0; 8], Wait::Never).unwrap(),
            0
        );
        assert!(watchdog.disarm());
        // The next slice starts with a clean record.
        watchdog.arm(&sockets, Vec::new());
        assert!(!watchdog.disarm());
    }

    #[test]
    fn the_socket_that_a_thread_has_by_then_is_cut_off_too() {
        let (near, _far) = UnixStream::pair().unwrap();
        let near = Arc::new(OwnedFd::from(near));
        let changing = Changing::default();
        let watchdog = Watchdog::start(Duration::from_millis(20), 1);
        watchdog.arm(&Sockets::from([]), vec![Arc::clone(&changing)]);
        *changing.lock().unwrap() = Some(Arc::clone(&near));
        sys::wait_for_input(near.as_fd()).unwrap();
        assert!(watchdog.disarm());
    }

    #[test]
    fn slices_of_one_operation_each_are_progress() {
        let (sockets, _far) = pair();
        let limit = BUSY_MACHINE;
        let watchdog = Watchdog::start(limit, 1);
        let started = Instant::now();
        while started.elapsed() < limit * 3 {
            watchdog.arm(&sockets, Vec::new());
            watchdog.pulses()[0].beat(1);
            std::thread::sleep(limit / 50);
            assert!(!watchdog.disarm(), "after {:?}", started.elapsed());
        }
    }

    #[test]
    fn progress_and_idleness_are_left_alone() {
        let (sockets, _far) = pair();
        let limit = BUSY_MACHINE;
        let watchdog = Watchdog::start(limit, 1);
        watchdog.arm(&sockets, Vec::new());
        let started = Instant::now();
        let mut count = 0;
        while started.elapsed() < limit * 2 {
            count += 1;
            watchdog.pulses()[0].beat(count);
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(!watchdog.disarm());
        std::thread::sleep(limit * 2);
        watchdog.arm(&sockets, Vec::new());
        assert!(!watchdog.disarm());
    }
}
