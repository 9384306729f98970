//! The same for many, on all cores.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Below this, threads cost more than they bring.
const FEW: usize = 32;

/// What a function makes of each item, in their order, whatever thread does which.
pub(crate) fn map<T: Sync, U: Send>(items: &[T], make: impl Fn(&T) -> U + Sync) -> Vec<U> {
    // Who asks for the number of cores has files of the kernel read, so few items do not ask.
    let threads = match items.len() {
        ..FEW => 1,
        _ => std::thread::available_parallelism().map_or(1, usize::from),
    };
    if threads == 1 {
        return items.iter().map(make).collect();
    }
    let next = AtomicUsize::new(0);
    let work = || {
        let mut made = Vec::new();
        loop {
            let nth = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(nth) else {
                return made;
            };
            made.push((nth, make(item)));
        }
    };
    let mut all = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut all = work();
        for other in others {
            match other.join() {
                Ok(made) => all.extend(made),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        all
    });
    all.sort_unstable_by_key(|(nth, _)| *nth);
    all.into_iter().map(|(_, made)| made).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_made_once_and_in_order() {
        for many in [0, 1, FEW - 1, FEW, 1000] {
            let items: Vec<usize> = (0..many).collect();
            let expected: Vec<usize> = items.iter().map(|item| item * item).collect();
            assert_eq!(map(&items, |item| item * item), expected);
        }
    }
}
