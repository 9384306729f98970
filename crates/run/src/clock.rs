//! Time as sessions and visits see it.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A clock that only goes forward.
pub trait Clock {
    /// Time since some moment that stays the same.
    fn now(&self) -> Duration;

    /// Seconds since a reading.
    fn since(&self, before: Duration) -> f64 {
        self.now().saturating_sub(before).as_secs_f64()
    }
}

/// The clock of this machine.
pub struct MachineClock(Instant);

impl MachineClock {
    /// A clock that begins now.
    pub fn begin() -> Self {
        Self(Instant::now())
    }
}

impl Clock for MachineClock {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }
}

/// Nanoseconds since the Unix epoch.
pub fn now_ns() -> u64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}
