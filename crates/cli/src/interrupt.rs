//! Ctrl-C and termination as a flag that the run looks at between slices.

use std::sync::atomic::{AtomicBool, Ordering};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

extern "C" fn note(_signal: libc::c_int) {
    // A second signal means "now": leave without clean-up; the servers end with us (PDEATHSIG) and the next start
    // sweeps what is left.
    if INTERRUPTED.swap(true, Ordering::Relaxed) {
        // SAFETY: _exit is async-signal-safe.
        unsafe { libc::_exit(130) };
    }
}

/// Installs the handlers and returns the flag.
pub fn flag() -> &'static AtomicBool {
    let handler: extern "C" fn(libc::c_int) = note;
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the handler only touches an atomic and calls _exit, both async-signal-safe.
        unsafe {
            libc::signal(
                signal,
                std::mem::transmute::<extern "C" fn(libc::c_int), libc::sighandler_t>(handler),
            )
        };
    }
    &INTERRUPTED
}
