//! Signals to a lane: what is measured now is finished, then it stops.

use crate::failure::Failure;
use crate::interrupt;
use deltabench_model::problem::Problem;
use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long a visit may go on after SIGTERM. Slurm sends SIGKILL after its KillWait, 30 s by default, and
/// then directories and control groups would stay: the rest of that time is for servers to end. A visit of a
/// benchmark that loads tables may take hours.
const GRACE: Duration = Duration::from_secs(15);

/// Whether a lane is to stop, and when.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    /// A signal came, or somebody else said so.
    asked: Arc<AtomicBool>,
    /// A visit is under way.
    visiting: Arc<AtomicBool>,
    /// What measures looks at this.
    pub now: Arc<AtomicBool>,
}

impl Stop {
    /// Listens from now on: SIGUSR1 comes some time before a time limit, SIGTERM at a cancellation or when
    /// another job takes the host.
    ///
    /// A second signal of the same visit means now, and a third ends the process.
    ///
    /// Errors: signals that cannot be handled.
    pub fn listen() -> Result<Self, Failure> {
        let stop = Self::default();
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGUSR1]).map_err(|error| {
            Failure::Failed(Problem::new("signals cannot be handled").detail(error.to_string()))
        })?;
        let heard = stop.clone();
        std::thread::spawn(move || {
            let mut is_urgent = false;
            for signal in signals.forever() {
                if signal == SIGUSR1 {
                    heard.ask();
                } else if !heard.asked.load(Ordering::SeqCst) {
                    heard.ask_within(GRACE);
                } else if is_urgent {
                    std::process::exit(i32::from(interrupt::STATUS));
                } else {
                    // The end of a visit sets `now`, too, and then the lane still has to say how it ended.
                    is_urgent = true;
                    heard.now.store(true, Ordering::SeqCst);
                }
            }
        });
        Ok(stop)
    }

    /// Stops after the visit under way, or now if there is none.
    pub fn ask(&self) {
        self.asked.store(true, Ordering::SeqCst);
        if !self.visiting.load(Ordering::SeqCst) {
            self.now.store(true, Ordering::SeqCst);
        }
    }

    /// Stops after the visit under way, or in the middle of it if it takes longer than this.
    fn ask_within(&self, grace: Duration) {
        self.ask();
        let later = self.clone();
        std::thread::spawn(move || {
            std::thread::sleep(grace);
            later.now.store(true, Ordering::SeqCst);
        });
    }

    /// Whether somebody wants it to stop.
    pub fn is_asked(&self) -> bool {
        self.asked.load(Ordering::SeqCst)
    }

    /// Says that a visit begins or ends.
    pub fn set_visiting(&self, visiting: bool) {
        self.visiting.store(visiting, Ordering::SeqCst);
        // It came in between.
        if self.is_asked() && !visiting {
            self.now.store(true, Ordering::SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_visit_may_end_but_not_take_longer_than_the_grace() {
        let stop = Stop::default();
        stop.set_visiting(true);
        stop.ask_within(Duration::from_millis(100));
        let is_now = || stop.now.load(Ordering::SeqCst);
        assert!(stop.is_asked() && !is_now());
        let began = Instant::now();
        while !is_now() {
            assert!(began.elapsed() < Duration::from_secs(20));
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(began.elapsed() >= Duration::from_millis(90));
        // One that ends before is the end.
        let stop = Stop::default();
        stop.set_visiting(true);
        stop.ask_within(Duration::from_secs(3600));
        stop.set_visiting(false);
        assert!(stop.now.load(Ordering::SeqCst));
    }
}
