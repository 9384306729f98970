//! How many operations a cell gets: decided once, on the base, and the same for all servers and starts.

use std::sync::{Condvar, Mutex, PoisonError};

/// Instructions of a window: a sixth of a second under the counter, about.
const WINDOW: u64 = 10_000_000;
/// Most operations of a window: between any two the client waits for the server to sleep.
const MOST: u64 = 200;
/// Most operations of a warm-up: enough for a server that plans a statement anew five times before it keeps a
/// plan, twice over.
const WARM_UP_MOST: u64 = 12;
/// Instructions that warming up may take beside the first operation. An operation of more than these is not
/// probed, and counted once; so is one that has to be undone before it can be done again.
const WARM_UP: u64 = 60_000_000;

/// The operations of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// Before anything is counted.
    pub warm_up: u64,
    /// Then, to see how many make a window.
    pub probes: u64,
    /// In each window.
    pub window: u64,
    /// Windows, at most.
    pub windows: u32,
}

impl Quota {
    /// What the first operation says, before probes say how many make a window. It is cold, and takes several
    /// times what others take. `repeats` says whether another one can follow it as it is.
    pub fn by_first(first: u64, repeats: bool) -> Self {
        let once = first > WARM_UP || !repeats;
        let warm_up = (WARM_UP / first.max(1)).min(WARM_UP_MOST);
        Self {
            warm_up: if once { 0 } else { warm_up },
            probes: if once { 0 } else { 2 },
            window: 1,
            windows: if once { 1 } else { u32::MAX },
        }
    }
}

/// What a warm operation says about a window. Rounded to two digits, so that it is the same number from run
/// to run though the operation is not to the last instruction.
pub fn window(each: u64) -> u64 {
    let exact = (WINDOW / each.max(1)).clamp(1, MOST);
    let step = if exact >= 100 {
        50
    } else if exact >= 20 {
        10
    } else {
        1
    };
    (exact / step * step).max(1)
}

/// The quotas of all cells, as far as they are known.
#[derive(Debug, Default)]
pub struct Quotas {
    known: Mutex<Vec<Option<Quota>>>,
    changed: Condvar,
}

impl Quotas {
    /// None known yet, of so many cells.
    pub fn of(cells: usize) -> Self {
        Self {
            known: Mutex::new(vec![None; cells]),
            changed: Condvar::new(),
        }
    }

    /// Decides the quota of a cell.
    pub fn decide(&self, cell: usize, quota: Quota) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = known.get_mut(cell) {
            *entry = Some(quota);
        }
        self.changed.notify_all();
    }

    /// What is known of a cell.
    pub fn known(&self, cell: usize) -> Option<Quota> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(cell).copied().flatten()
    }

    /// The quota of a cell, which somebody else decides; none if `given_up` says that nobody will any more.
    pub fn wait(&self, cell: usize, given_up: impl Fn() -> bool) -> Option<Quota> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(quota) = known.get(cell).copied().flatten() {
                return Some(quota);
            }
            if given_up() {
                return None;
            }
            let waited = self
                .changed
                .wait_timeout(known, std::time::Duration::from_millis(100));
            known = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cheap_operations_are_many_and_dear_ones_one() {
        assert_eq!(window(44_140), 200);
        assert_eq!(window(316_200), 30);
        assert_eq!(window(419_400), 20);
        assert_eq!(window(2_000_000), 5);
        assert_eq!((window(3_000_000_000), window(0)), (1, 200));
        let before = |first| {
            let quota = Quota::by_first(first, true);
            (quota.warm_up, quota.probes, quota.windows)
        };
        assert_eq!(before(2_000_000), (12, 2, u32::MAX));
        assert_eq!(before(30_000_000), (2, 2, u32::MAX));
        assert_eq!(before(124_000_000), (0, 0, 1));
    }

    #[test]
    fn what_has_to_be_undone_is_done_once_after_the_first_however_cheap_it_is() {
        let once = Quota {
            warm_up: 0,
            probes: 0,
            window: 1,
            windows: 1,
        };
        assert_eq!(Quota::by_first(2_000_000, false), once);
        assert_eq!(Quota::by_first(9_000_000_000, false), once);
    }

    #[test]
    fn a_little_more_or_less_leaves_the_quota_as_it_is() {
        for each in [316_200_u64, 420_000, 111_300] {
            assert_eq!(window(each), window(each + each / 1000), "{each}");
        }
    }

    #[test]
    fn who_waits_gets_what_the_base_decides_or_gives_up_with_it() {
        let quotas = Quotas::of(2);
        let quota = Quota {
            warm_up: 12,
            probes: 2,
            window: 400,
            windows: 2,
        };
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| quotas.wait(1, || false));
            quotas.decide(1, quota);
            assert_eq!(waiting.join().unwrap(), Some(quota));
        });
        assert_eq!(quotas.known(1), Some(quota));
        assert_eq!(quotas.wait(0, || true), None);
    }
}
