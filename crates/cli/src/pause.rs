//! The pause between two runs that shall lie in different hours.

use crate::amounts::span;
use crate::clock::now;
use crate::console::say;
use deltabench_model::units::to_u64;
use deltabench_run::session::SessionEnd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often a pause looks whether it shall end.
const LOOK: Duration = Duration::from_millis(200);

/// Waits until a time after the end of a run, unless the user wants to stop; `what` begins then. After a stop
/// `command` measures it.
pub fn pause(
    ended_unix_ms: i64,
    gap_seconds: f64,
    (what, command): (&str, &str),
    interrupted: &AtomicBool,
) -> SessionEnd {
    let until = ended_unix_ms.saturating_add_unsigned(to_u64(gap_seconds * 1e3));
    let left = |now: i64| Duration::from_millis(u64::try_from(until - now).unwrap_or(0));
    let pause = left(now().1);
    if pause > LOOK {
        say(&format!(
            "{what} begins in {}; Ctrl-C stops, `{command}` continues",
            span(pause.as_secs_f64())
        ));
    }
    loop {
        if interrupted.load(Ordering::Relaxed) {
            return SessionEnd::Interrupted;
        }
        match left(now().1) {
            Duration::ZERO => return SessionEnd::Finished,
            rest => std::thread::sleep(rest.min(LOOK)),
        }
    }
}
