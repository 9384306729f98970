//! Work on all servers at the same time, which the user can stop.

use deltabench_model::problem::Problem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

/// How often the threads are looked at.
const PAUSE: Duration = Duration::from_millis(20);
/// How often work is ended again: it may have opened another connection.
const AGAIN: Duration = Duration::from_secs(1);

/// Does something with each of `all` on a thread of its own, and waits for the end.
///
/// `end` is called when the user interrupts, and again each second until all threads have ended: a long
/// statement does not hear of an interruption.
///
/// Shape:  the results are in the order of `all`.
pub fn watched<I: Send, T: Send>(
    all: impl IntoIterator<Item = I>,
    interrupted: &AtomicBool,
    what: impl Fn(I) -> Result<T, Problem> + Sync,
    mut end: impl FnMut(),
) -> Vec<Result<T, Problem>> {
    let what = &what;
    thread::scope(|scope| {
        let all = all.into_iter();
        let threads: Vec<_> = all.map(|one| scope.spawn(move || what(one))).collect();
        let mut ended: Option<Instant> = None;
        while !threads.iter().all(ScopedJoinHandle::is_finished) {
            thread::sleep(PAUSE);
            let again = ended.is_none_or(|at| at.elapsed() >= AGAIN);
            if again && interrupted.load(Ordering::Relaxed) {
                end();
                ended = Some(Instant::now());
            }
        }
        let died = |_| Err(Problem::new("a thread of the replay ended too early"));
        let ends = threads.into_iter();
        ends.map(|thread| thread.join().unwrap_or_else(died))
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn work_that_waits_is_ended_once_the_user_interrupts() {
        let interrupted = AtomicBool::new(false);
        let (sender, receiver) = mpsc::sync_channel(1);
        let receiver = std::sync::Mutex::new(receiver);
        let wait = |number: u32| {
            if number == 0 {
                // The user interrupts while the other one waits.
                interrupted.store(true, Ordering::Relaxed);
                return Ok(number);
            }
            let told = receiver.lock().unwrap().recv();
            told.map_err(|_| Problem::new("not ended"))?;
            Err(Problem::new("ended"))
        };
        let ends = watched([0, 1], &interrupted, wait, || sender.send(()).unwrap());
        assert_eq!(ends.len(), 2);
        assert!(matches!(ends[0], Ok(0)));
        assert_eq!(ends[1].as_ref().unwrap_err().error, "ended");
    }
}
