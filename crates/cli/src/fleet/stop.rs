//! Signals to a lane: what is measured now is finished, then it stops.

use crate::failure::Failure;
use crate::interrupt;
use deltabench_model::problem::Problem;
use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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
    /// Listens from now on: SIGUSR1 comes some time before a time limit, SIGTERM at a cancellation.
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
            for signal in signals.forever() {
                if signal == SIGUSR1 || !heard.asked.load(Ordering::SeqCst) {
                    heard.ask();
                } else if heard.now.swap(true, Ordering::SeqCst) {
                    std::process::exit(i32::from(interrupt::STATUS));
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
