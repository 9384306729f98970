//! Work on many runs, on all cores: each thread reads the lab with a connection of its own.

use std::thread;

/// Threads that are worth starting beside this one, for so many things: a further one for each `least`.
pub fn further_threads(things: usize, least: usize) -> usize {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    cores.saturating_sub(1).min(things / least.max(1))
}

/// Does work on this thread and on others; returns what each says, this one first.
pub fn side_by_side<R: Send, F: FnOnce() -> R + Send>(
    own: impl FnOnce() -> R,
    others: impl IntoIterator<Item = F>,
) -> Vec<R> {
    thread::scope(|scope| {
        let others: Vec<_> = { others.into_iter() }
            .map(|work| scope.spawn(work))
            .collect();
        let mut all = vec![own()];
        for other in others {
            match other.join() {
                Ok(said) => all.push(said),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        all
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn each_thing_is_done_once_whoever_does_it() {
        let next = AtomicUsize::new(0);
        let work = || {
            let mut done = Vec::new();
            loop {
                match next.fetch_add(1, Ordering::Relaxed) {
                    at @ ..100 => done.push(at),
                    _ => return done,
                }
            }
        };
        let mut done = side_by_side(work, [work, work]).concat();
        done.sort_unstable();
        assert_eq!(done, (0..100).collect::<Vec<usize>>());
    }

    #[test]
    fn a_few_things_need_no_further_thread() {
        assert_eq!(further_threads(7, 8), 0);
        assert!(further_threads(usize::MAX, 8) < 10_000);
    }
}
