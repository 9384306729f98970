//! Which thread does which operation of a slice.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The operations of a slice that nobody has taken yet. All that the threads of a lane share while a slice
/// is under way, so on a cache line of its own (two, because processors fetch them in pairs).
#[derive(Debug)]
#[repr(align(128))]
pub struct Claims {
    next: AtomicU64,
    operations: u64,
    lost: AtomicBool,
}

impl Claims {
    /// So many operations, none of them taken.
    pub fn new(operations: u64) -> Self {
        Self {
            next: AtomicU64::new(0),
            operations,
            lost: AtomicBool::new(false),
        }
    }

    /// Takes the next operation; returns its number in the slice, from 0. None: there is nothing left.
    #[inline]
    pub fn take(&self) -> Option<u64> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        (number < self.operations).then_some(number)
    }

    /// Operations of the slice.
    pub fn all(&self) -> u64 {
        self.operations
    }

    /// The slice is lost: nothing is left to take.
    pub fn stop(&self) {
        self.lost.store(true, Ordering::Relaxed);
        self.next.store(self.operations, Ordering::Relaxed);
    }

    /// Whether it is.
    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }
}
