//! Ctrl-C and termination as a flag that the run looks at between rounds.

use crate::failure::Failure;
use deltabench_model::exit;
use deltabench_model::problem::Problem;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::{register, register_conditional_shutdown};
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Installs the handlers and returns the flag.
///
/// A second signal means "now": the process leaves without clean-up; its servers end with it (the
/// parent-death signal), and the next start sweeps what is left.
///
/// Errors: signals that cannot be handled.
pub fn flag() -> Result<Arc<AtomicBool>, Failure> {
    install().map_err(|error| {
        Failure::Failed(Problem::new("signals cannot be handled").detail(error.to_string()))
    })
}

fn install() -> io::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    // Not SIGHUP: `nohup` has it ignored, and a closed terminal is as good as a kill: servers end with us,
    // and the next start sweeps.
    for signal in [SIGINT, SIGTERM] {
        // Registered first, so that it sees the flag as earlier signals left it.
        register_conditional_shutdown(signal, i32::from(exit::INTERRUPTED), Arc::clone(&flag))?;
        register(signal, Arc::clone(&flag))?;
    }
    Ok(flag)
}
