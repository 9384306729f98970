//! Signals to a lane: what is measured now is finished, then it stops.

use crate::failure::Failure;
use deltabench_model::exit;
use deltabench_model::problem::Problem;
use deltabench_run::session::comes_soon;
use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How many times SIGTERM may come; one more ends the process. Slurm sends it when a lane has to go, and
/// again when the time for that is over.
const TERMS: u32 = 2;
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
    /// Listens from now on. SIGUSR1 comes some time before a time limit: the visit under way is finished.
    /// SIGTERM comes at a cancellation or when another job takes the host, and servers get it, too: that
    /// visit is given up.
    ///
    /// Errors: signals that cannot be handled.
    pub fn listen() -> Result<Self, Failure> {
        let stop = Self::default();
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGUSR1]).map_err(|error| {
            Failure::Failed(Problem::new("signals cannot be handled").detail(error.to_string()))
        })?;
        let heard = stop.clone();
        std::thread::spawn(move || {
            let mut terms = 0;
            for signal in signals.forever() {
                if heard.hear(signal, &mut terms).is_break() {
                    std::process::exit(i32::from(exit::INTERRUPTED));
                }
            }
        });
        Ok(stop)
    }

    /// Does what a signal means; breaks if it ends the process. `terms` counts.
    fn hear(&self, signal: i32, terms: &mut u32) -> ControlFlow<()> {
        self.ask();
        if signal == SIGUSR1 {
            return ControlFlow::Continue(());
        }
        self.now.store(true, Ordering::SeqCst);
        *terms += 1;
        match *terms > TERMS {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    /// Stops after the visit under way, or now if there is none.
    pub fn ask(&self) {
        self.asked.store(true, Ordering::SeqCst);
        if !self.visiting.load(Ordering::SeqCst) {
            self.now.store(true, Ordering::SeqCst);
        }
    }

    /// Whether somebody stops the lane who broke what it does: that may be seen before the signal.
    pub fn is_asked_soon(&self) -> bool {
        comes_soon(|| self.is_asked())
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

    fn in_a_visit() -> Stop {
        let stop = Stop::default();
        stop.set_visiting(true);
        stop
    }

    fn is_now(stop: &Stop) -> bool {
        stop.now.load(Ordering::SeqCst)
    }

    #[test]
    fn a_visit_is_finished_before_a_time_limit_and_given_up_at_term() {
        let (stop, mut terms) = (in_a_visit(), 0);
        for _ in 0..3 {
            assert!(stop.hear(SIGUSR1, &mut terms).is_continue());
        }
        assert!(stop.is_asked() && !is_now(&stop));
        stop.set_visiting(false);
        assert!(is_now(&stop));
        let stop = in_a_visit();
        assert!(stop.hear(SIGTERM, &mut terms).is_continue());
        assert!(stop.is_asked() && is_now(&stop));
    }

    /// It ended the lane, so that its unit counted as silent.
    #[test]
    fn a_second_term_lets_the_lane_say_how_it_ended() {
        let (stop, mut terms) = (in_a_visit(), 0);
        let mut hears = |signal| stop.hear(signal, &mut terms).is_continue();
        assert!(hears(SIGUSR1));
        stop.set_visiting(false);
        assert!(hears(SIGTERM) && hears(SIGTERM), "the lane writes its end");
        assert!(!hears(SIGTERM));
    }

    #[test]
    fn the_signal_may_come_after_what_it_breaks() {
        let stop = in_a_visit();
        let later = stop.clone();
        let sent = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(30));
            later.hear(SIGTERM, &mut 0)
        });
        assert!(stop.is_asked_soon());
        assert!(sent.join().unwrap().is_continue());
        assert!(!in_a_visit().is_asked_soon(), "nobody stops it");
    }
}
