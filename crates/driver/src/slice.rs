//! What a slice is asked to do, and what it came to.

use crate::error::ServerError;
use crate::scan::Loss;
use deltabench_model::pgbench::ScriptTally;
use deltabench_model::slice::{ErrorCount, VoidReason};
use hdrhistogram::Histogram;
use std::time::Instant;

/// The work of one slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SliceRequest {
    /// Operations to do, neither more nor fewer.
    pub operations: u64,
    /// Seed of the parameter stream; the same seed gives the same operations on every server.
    pub seed: u64,
    /// Operations that every server has done of this cell since its tables were last restored: where
    /// sequences go on.
    pub first_operation: u64,
}

/// What a slice came to.
///
/// Identity: `operations + failed` = the operations sent, which for a slice that is not void are those
/// asked for; the histogram holds exactly `operations` values. In a void slice, operations without an
/// answer count as failed.
#[derive(Debug, Clone, PartialEq)]
pub struct SliceOutcome {
    /// First send to last answer, nanoseconds.
    pub duration_ns: u64,
    /// Operations that succeeded.
    pub operations: u64,
    /// Operations that ended with a server error.
    pub failed: u64,
    /// Rows that came back, those of failed operations included.
    pub rows: u64,
    /// CPU of this thread between first send and last answer, nanoseconds.
    pub client_cpu_ns: u64,
    /// Latency of each succeeded operation in nanoseconds, three significant digits, as an hdrhistogram (V2
    /// format).
    pub latency_histogram: Vec<u8>,
    /// By script, for workloads that are pgbench scripts; else empty.
    pub scripts: Vec<ScriptTally>,
    /// Server errors, by SQLSTATE; a failed operation adds one.
    ///
    /// SQLSTATE 25001 with the message "the operation left a transaction open" comes from the driver itself.
    pub errors: Vec<ErrorCount>,
    /// Why it does not count; absent for a good slice.
    pub void: Option<VoidReason>,
    /// The facts behind `void`, for people.
    pub void_detail: Option<String>,
    /// Latency of the operation that succeeded first, nanoseconds: the price of a switch to a cold server.
    pub first_op_ns: Option<u64>,
    /// Most operations that were under way at once.
    pub max_in_flight: u32,
    /// Open loop only: the longest that an operation was sent after its scheduled start although a
    /// connection was free, nanoseconds: the client's own lag.
    pub schedule_lag_ns: Option<u64>,
    /// Open loop only: most operations that were due and waited for a free connection.
    pub longest_queue: Option<u64>,
}

impl SliceOutcome {
    /// A void slice in which nothing was sent.
    pub(crate) fn not_started(histogram: Vec<u8>, detail: String) -> Self {
        Self {
            duration_ns: 0,
            operations: 0,
            failed: 0,
            rows: 0,
            client_cpu_ns: 0,
            latency_histogram: histogram,
            scripts: Vec::new(),
            errors: Vec::new(),
            void: Some(VoidReason::ServerLost),
            void_detail: Some(detail),
            first_op_ns: None,
            max_in_flight: 0,
            schedule_lag_ns: None,
            longest_queue: None,
        }
    }
}

/// Nanoseconds since the start of a slice.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    base: Instant,
}

impl Clock {
    /// Starts at 0.
    pub fn start() -> Self {
        Self {
            base: Instant::now(),
        }
    }

    /// Nanoseconds since the start.
    pub fn now(self) -> u64 {
        let passed = self.base.elapsed();
        passed.as_secs() * 1_000_000_000 + u64::from(passed.subsec_nanos())
    }
}

/// Counts of a slice under way.
#[derive(Debug)]
pub struct Tally<'a> {
    /// Clock of the slice.
    pub clock: Clock,
    /// Operations begun.
    pub sent: u64,
    /// Most operations that were under way at once.
    pub max_in_flight: u32,
    /// The client's lag behind the schedule, if there is one.
    pub schedule_lag_ns: Option<u64>,
    /// Most operations that waited for a connection, if there is a schedule.
    pub longest_queue: Option<u64>,
    operations: u64,
    failed: u64,
    first_op_ns: Option<u64>,
    errors: Vec<ErrorCount>,
    histogram: &'a mut Histogram<u64>,
}

impl<'a> Tally<'a> {
    /// All zero.
    pub fn new(histogram: &'a mut Histogram<u64>) -> Self {
        histogram.reset();
        Self {
            clock: Clock::start(),
            sent: 0,
            max_in_flight: 0,
            schedule_lag_ns: None,
            longest_queue: None,
            operations: 0,
            failed: 0,
            first_op_ns: None,
            errors: Vec::new(),
            histogram,
        }
    }

    /// An operation succeeded.
    pub fn succeeded(&mut self, latency_ns: u64) {
        if self.operations == 0 {
            self.first_op_ns = Some(latency_ns);
        }
        self.operations += 1;
        self.histogram.saturating_record(latency_ns);
    }

    /// An operation failed.
    #[cold]
    pub fn failed(&mut self, error: &ServerError) {
        self.failed += 1;
        self.count_error(error);
    }

    /// The outcome but for rows, CPU time and histogram, which the lane adds.
    pub fn outcome(mut self, end: Result<(), Loss>) -> SliceOutcome {
        let duration_ns = self.clock.now();
        let mut void = (self.operations == 0 && self.failed > 0).then_some(VoidReason::NothingDone);
        let mut void_detail = None;
        if let Err(loss) = end {
            if let Loss::Fatal(error) = &loss {
                self.count_error(error);
            }
            void = Some(if loss == Loss::Stalled {
                VoidReason::Stalled
            } else {
                VoidReason::ServerLost
            });
            void_detail = Some(loss.to_string());
            self.failed = self.sent - self.operations;
        }
        SliceOutcome {
            duration_ns,
            operations: self.operations,
            failed: self.failed,
            rows: 0,
            client_cpu_ns: 0,
            latency_histogram: Vec::new(),
            scripts: Vec::new(),
            errors: self.errors,
            void,
            void_detail,
            first_op_ns: self.first_op_ns,
            max_in_flight: self.max_in_flight,
            schedule_lag_ns: self.schedule_lag_ns,
            longest_queue: self.longest_queue,
        }
    }

    fn count_error(&mut self, error: &ServerError) {
        match self
            .errors
            .iter_mut()
            .find(|known| known.sqlstate == error.sqlstate)
        {
            Some(known) => known.count += 1,
            None => self.errors.push(ErrorCount {
                sqlstate: error.sqlstate.clone(),
                count: 1,
                first_message: error.message.clone(),
            }),
        }
    }
}
