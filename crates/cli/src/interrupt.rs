//! Ctrl-C and termination as a flag that the run looks at between rounds.

use crate::failure::Failure;
use deltabench_model::exit;
use deltabench_model::problem::Problem;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Signals within this time of the first one are the same: `timeout` sends one to the process and one to its
/// group, and schedulers do so, too.
const SAME: Duration = Duration::from_secs(1);

/// Installs the handlers and returns the flag.
///
/// A signal a second or more after the first one means "now": the process leaves without clean-up; its
/// servers end with it (the parent-death signal), and the next start sweeps what is left.
///
/// Errors: signals that cannot be handled.
pub fn flag() -> Result<Arc<AtomicBool>, Failure> {
    install().map_err(|error| {
        Failure::Failed(Problem::new("signals cannot be handled").detail(error.to_string()))
    })
}

fn install() -> io::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    let signals = Arc::new(Signals::new());
    // Not SIGHUP: `nohup` has it ignored, and a closed terminal is as good as a kill: servers end with us,
    // and the next start sweeps.
    for signal in [SIGINT, SIGTERM] {
        let (flag, signals) = (Arc::clone(&flag), Arc::clone(&signals));
        let handle = move || match signals.is_another(signals.began.elapsed()) {
            true => low_level::exit(i32::from(exit::INTERRUPTED)),
            false => flag.store(true, Ordering::SeqCst),
        };
        // SAFETY: it reads the clock, changes atomics and may end the process: all of that is allowed in a
        // signal handler. It allocates nothing, takes no lock and cannot panic.
        unsafe { low_level::register(signal, handle) }?;
    }
    Ok(flag)
}

/// The signals that have come.
struct Signals {
    began: Instant,
    /// Nanoseconds from `began` to the first of them; `NONE` before.
    first: AtomicU64,
}

impl Signals {
    const NONE: u64 = u64::MAX;

    fn new() -> Self {
        Self {
            began: Instant::now(),
            first: AtomicU64::new(Self::NONE),
        }
    }

    /// Takes in a signal, so long after the beginning; says whether it is not the first one once more.
    fn is_another(&self, after: Duration) -> bool {
        let after = u64::try_from(after.as_nanos()).unwrap_or(Self::NONE);
        let known =
            self.first
                .compare_exchange(Self::NONE, after, Ordering::SeqCst, Ordering::SeqCst);
        known.is_err_and(|first| Duration::from_nanos(after.saturating_sub(first)) >= SAME)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_of_one_moment_are_one_signal() {
        let flag = install().unwrap();
        assert!(!flag.load(Ordering::SeqCst));
        // The second one must not end this process.
        for signal in [SIGTERM, SIGTERM, SIGINT] {
            low_level::raise(signal).unwrap();
        }
        assert!(flag.load(Ordering::SeqCst));
    }

    #[test]
    fn a_signal_a_second_after_the_first_is_another_one() {
        let signals = Signals::new();
        let said = [5_000, 5_001, 5_999, 6_000, 9_000];
        let said = said.map(|ms| signals.is_another(Duration::from_millis(ms)));
        assert_eq!(said, [false, false, false, true, true]);
    }
}
