//! How fast the core is while a slice runs.
//!
//! On a virtual machine a core changes its speed by a tenth and more within a few slices. Where one client
//! shares the core with its server, the client measures it: between two operations it sends a few bytes to
//! itself and takes the time. That is the work of a kernel and its sockets, which a neighbour slows about as
//! much as a server's; loops of arithmetic do not show it (docs/decisions/0065-probes-of-the-core.md).
//!
//! The time is the thread's own CPU time. The server may still be about to sleep, or one of its processes may
//! take the core in a probe: that makes the probe no longer, and its time stays in the slice.

use crate::slice::Tally;
use crate::sys::{self, Wait};
use deltabench_model::units::count;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// From one probe to the next, nanoseconds: about a hundred in a slice, for 5 % of its time.
const EVERY_NS: u64 = 200_000;
/// Most probes that are made up for at once after a long operation.
const AT_ONCE: u64 = 20;
/// Exchanges before those that are timed: they bring the probe's own code and data back into caches, whatever
/// the server has left there.
const UNTIMED: usize = 2;
/// Exchanges that are timed.
const TIMED: usize = 6;
/// Bytes of an exchange, about those of a short statement.
const BYTES: usize = 100;

/// Probes of one thread.
#[derive(Debug)]
pub struct Probe {
    left: UnixStream,
    right: UnixStream,
    room: [u8; 2 * BYTES],
    /// When the next is due, by the clock of the slice.
    due_ns: u64,
    /// CPU that the timed part of each took in the slice, nanoseconds.
    taken_ns: Vec<u64>,
    /// CPU that all took in the slice, nanoseconds: it is taken out of it.
    paused_ns: u64,
}

impl Probe {
    /// Errors: the machine has no descriptors left.
    pub fn new() -> io::Result<Self> {
        let (left, right) = UnixStream::pair()?;
        Ok(Self {
            left,
            right,
            room: [0; 2 * BYTES],
            due_ns: 0,
            taken_ns: Vec::with_capacity(1024),
            paused_ns: 0,
        })
    }

    /// A slice begins.
    pub fn begin(&mut self) {
        self.due_ns = 0;
        self.paused_ns = 0;
        self.taken_ns.clear();
    }

    /// Probes the core if it is time, at this point of the slice, and takes that out of its clock. After a
    /// long operation it makes up for the probes that were due meanwhile.
    #[inline]
    pub fn at(&mut self, now_ns: u64, tally: &mut Tally<'_>) {
        if now_ns >= self.due_ns {
            self.make_up(now_ns, tally);
        }
    }

    fn make_up(&mut self, now_ns: u64, tally: &mut Tally<'_>) {
        let due = 1 + (now_ns - self.due_ns) / EVERY_NS;
        let pause_ns: u64 = (0..due.min(AT_ONCE)).map(|_| self.probe()).sum();
        self.due_ns = now_ns + EVERY_NS;
        self.paused_ns += pause_ns;
        tally.clock = tally.clock.without(Duration::from_nanos(pause_ns));
    }

    /// CPU that it took, nanoseconds.
    fn probe(&mut self) -> u64 {
        let began_ns = sys::thread_cpu_ns();
        // A socket pair in one process does not fail. If it ever does, there is one probe less.
        let ready = self.exchange(UNTIMED);
        let timed_from_ns = sys::thread_cpu_ns();
        let done = self.exchange(TIMED);
        let ended_ns = sys::thread_cpu_ns();
        if ready.and(done).is_ok() {
            self.taken_ns.push(ended_ns.saturating_sub(timed_from_ns));
        }
        ended_ns.saturating_sub(began_ns)
    }

    fn exchange(&mut self, times: usize) -> io::Result<()> {
        for _ in 0..times {
            let bytes = self.room.get(..BYTES).unwrap_or_default();
            sys::send(self.left.as_fd(), bytes, Wait::Never)?;
            sys::receive(self.right.as_fd(), &mut self.room, Wait::Never)?;
        }
        Ok(())
    }

    /// What a probe took in the slice, nanoseconds: the mean without the slowest tenth, which interrupts and
    /// cold caches make slow. `None` where there was none.
    fn typical_ns(&mut self) -> Option<u64> {
        self.taken_ns.sort_unstable();
        let kept = self.taken_ns.len() - self.taken_ns.len() / 10;
        let fast = self.taken_ns.get(..kept)?;
        fast.iter().sum::<u64>().checked_div(count(fast.len()))
    }

    /// What a probe took in the slice, and what all took, nanoseconds.
    pub fn told(&mut self) -> (Option<u64>, u64) {
        (self.typical_ns(), self.paused_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_probe_took_leaves_out_the_slowest_tenth() {
        let mut probe = Probe::new().unwrap();
        assert_eq!(probe.typical_ns(), None, "no probe");
        probe.taken_ns = vec![7, 3];
        assert_eq!(probe.typical_ns(), Some(5));
        probe.taken_ns = vec![10, 10, 10, 10, 10, 10, 10, 10, 1_000_000, 20];
        assert_eq!(probe.typical_ns(), Some(11));
        probe.begin();
        assert_eq!((probe.typical_ns(), probe.paused_ns), (None, 0));
    }

    #[test]
    fn the_time_of_probes_is_not_in_the_slice() {
        let before = std::time::Instant::now();
        let mut histogram = hdrhistogram::Histogram::new(3).unwrap();
        let mut tally = Tally::new(&mut histogram, None);
        let mut probe = Probe::new().unwrap();
        let mut until = |now_ns: u64| {
            probe.at(now_ns, &mut tally);
            probe.taken_ns.len()
        };
        let made: Vec<usize> = [0, 1, EVERY_NS - 1, EVERY_NS, EVERY_NS + 1]
            .map(&mut until)
            .into();
        assert_eq!(made, [1, 1, 1, 2, 2], "the second is due after a while");
        assert_eq!(
            until(4 * EVERY_NS),
            5,
            "after an operation of three times as long"
        );
        assert_eq!(
            until(1_000 * EVERY_NS),
            25,
            "after one that takes a thousand times as long"
        );
        assert!(probe.taken_ns.iter().all(|taken| *taken > 0));
        let timed: u64 = probe.taken_ns.iter().sum();
        assert!(probe.paused_ns >= timed);
        let in_slice = tally.clock.now();
        let passed = crate::lane::single::nanoseconds(before.elapsed());
        assert!(in_slice + probe.paused_ns <= passed);
    }
}
