//! The writer beside readers: random keys at a rate, for as long as the readers of a turn read.

use super::hand::{Kit, Moment};
use crate::keys::Source;
use deltabench_model::units::to_f64;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time between two looks at what is due: short beside a slice, long beside a put.
const TICK: Duration = Duration::from_millis(1);

/// Writes that a stall kept it from are made up for in this time's amount, and forgotten above.
///
/// Source: the rate limiter of `db_bench` fills up for 100 ms at most.
const LARGEST_DEBT_SECONDS: f64 = 0.1;

/// What it did in a turn.
#[derive(Debug, Default)]
pub struct Written {
    /// Puts that succeeded.
    pub operations: u64,
    /// Puts that the library refused.
    pub failed: u64,
    pub first_error: Option<String>,
}

/// The writer of a step.
pub struct Writer {
    kit: Arc<Kit>,
    source: Source,
    thread: u32,
    per_second: f64,
    /// Puts that were due in turns before and not done.
    owed: f64,
}

impl Writer {
    /// Beside so many readers.
    pub fn new(kit: &Arc<Kit>, readers: u32) -> Self {
        let setup = &kit.setup;
        let entry_bytes = to_f64(u64::from(setup.key_bytes) + u64::from(setup.value_bytes));
        Self {
            kit: Arc::clone(kit),
            source: kit.source(),
            thread: readers,
            per_second: to_f64(setup.writer_bytes_per_second) / entry_bytes,
            owed: 0.0,
        }
    }

    /// Writes until the readers are done.
    pub fn write(&mut self, moment: &Moment) -> Written {
        self.source.begin(moment.seed, moment.number, self.thread);
        let mut written = Written::default();
        let mut last = Instant::now();
        while !moment.is_over() {
            let now = Instant::now();
            self.owed += (now - last).as_secs_f64() * self.per_second;
            self.owed = self.owed.min(LARGEST_DEBT_SECONDS * self.per_second);
            last = now;
            while self.owed >= 1.0 && !moment.is_over() {
                self.owed -= 1.0;
                let (key, value) = self.source.any_entry();
                match self.kit.database.put(&self.kit.writes, key, value) {
                    Ok(()) => written.operations += 1,
                    Err(words) => {
                        written.failed += 1;
                        written.first_error.get_or_insert(words);
                    }
                }
            }
            std::thread::sleep(TICK);
        }
        written
    }
}
