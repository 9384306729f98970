//! What a slice is asked to do, and what it came to.

use crate::error::ServerError;
use crate::error::{DEADLOCK, SERIALIZATION};
use crate::scan::Loss;
use deltabench_model::slice::{ErrorCount, ScriptTally, VoidReason};
use deltabench_model::units::to_f64;
use deltabench_workload::pgbench::Program;
use hdrhistogram::Histogram;
use std::time::{Duration, Instant};

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
/// asked for, less those that `scripts` say were skipped; the histogram holds exactly `operations` values. In
/// a void slice, operations without an answer count as failed. The operations of `scripts` add up to
/// `operations`, their failures to `failed`.
#[derive(Debug, Clone, PartialEq)]
pub struct SliceOutcome {
    /// First send to last answer, nanoseconds.
    pub duration_ns: u64,
    pub operations: u64,
    /// Operations that ended with a server error.
    pub failed: u64,
    /// Rows that came back, those of failed operations included.
    pub rows: u64,
    /// CPU of the lane's threads between first send and last answer, nanoseconds, without probes.
    pub client_cpu_ns: u64,
    /// What a probe of the core took, nanoseconds: the mean without the slowest tenth. Absent without probes.
    pub probe_ns: Option<u64>,
    /// What all probes took, nanoseconds, which is not in `duration_ns`.
    pub probing_ns: u64,
    /// Latency of each succeeded operation in nanoseconds, three significant digits, as an hdrhistogram (V2
    /// format).
    pub latency_histogram: Vec<u8>,
    /// By script, for workloads that are pgbench scripts; else empty.
    pub scripts: Vec<ScriptTally>,
    /// Server errors, by SQLSTATE; a failed operation adds one.
    ///
    /// From the driver itself come SQLSTATE 25001 with the message "the operation left a transaction open",
    /// and of pgbench scripts PB001 (an expression, a variable or a pipeline that cannot be) and PB002
    /// (`\gset` without exactly one row).
    pub errors: Vec<ErrorCount>,
    /// Why it does not count; absent for a good slice.
    pub void: Option<VoidReason>,
    /// The facts behind `void`, for people.
    pub void_detail: Option<String>,
    /// Open loop only: the longest that an operation was sent after its scheduled start although a
    /// connection was free, nanoseconds: the client's own lag.
    pub schedule_lag_ns: Option<u64>,
}

impl SliceOutcome {
    /// CPU of the lane's threads between first send and last answer, nanoseconds, with that of probes.
    pub fn all_client_cpu_ns(&self) -> u64 {
        self.client_cpu_ns.saturating_add(self.probing_ns)
    }

    /// A void slice in which nothing was sent.
    pub(crate) fn not_started(
        histogram: Vec<u8>,
        program: Option<&Program>,
        detail: String,
    ) -> Self {
        Self {
            duration_ns: 0,
            operations: 0,
            failed: 0,
            rows: 0,
            client_cpu_ns: 0,
            probe_ns: None,
            probing_ns: 0,
            latency_histogram: histogram,
            scripts: counts(program)
                .into_iter()
                .map(|count| count.tally)
                .collect(),
            errors: Vec::new(),
            void: Some(VoidReason::ServerLost),
            void_detail: Some(detail),
            schedule_lag_ns: None,
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

    /// The same clock as if so much time had not passed.
    #[must_use]
    pub fn without(self, pause: Duration) -> Self {
        Self {
            base: self.base + pause,
        }
    }
}

/// Counts of a slice under way, or of one thread's share of it.
#[derive(Debug)]
pub struct Tally<'a> {
    pub clock: Clock,
    /// When it was over.
    ended_ns: u64,
    /// Operations begun.
    pub sent: u64,
    /// Operations that were due too late to be begun.
    pub skipped: u64,
    /// The client's lag behind the schedule, if there is one.
    pub schedule_lag_ns: Option<u64>,
    operations: u64,
    failed: u64,
    errors: Vec<ErrorCount>,
    histogram: &'a mut Histogram<u64>,
    /// By script, of a program.
    scripts: Vec<ScriptCount>,
    /// What takes longer is late.
    latency_limit_ns: u64,
}

/// What became of the operations of one script.
#[derive(Debug)]
struct ScriptCount {
    begun: u64,
    tally: ScriptTally,
}

/// Nothing yet, for each script.
fn counts(program: Option<&Program>) -> Vec<ScriptCount> {
    let scripts = program.map_or(0, |program| program.scripts.len());
    let zero = |script| ScriptCount {
        begun: 0,
        tally: ScriptTally {
            script,
            ..ScriptTally::default()
        },
    };
    (0..).take(scripts).map(zero).collect()
}

impl<'a> Tally<'a> {
    /// All zero.
    pub fn new(histogram: &'a mut Histogram<u64>, program: Option<&Program>) -> Self {
        histogram.reset();
        Self {
            clock: Clock::start(),
            ended_ns: 0,
            sent: 0,
            skipped: 0,
            schedule_lag_ns: None,
            operations: 0,
            failed: 0,
            errors: Vec::new(),
            histogram,
            scripts: counts(program),
            latency_limit_ns: program
                .and_then(|program| program.latency_limit_ns)
                .unwrap_or(u64::MAX),
        }
    }

    /// An operation was begun. `script` is that of a program; else it does not matter.
    #[inline]
    pub fn begun(&mut self, script: usize) {
        self.sent += 1;
        if let Some(count) = self.scripts.get_mut(script) {
            count.begun += 1;
        }
    }

    /// An operation was due too late to be begun.
    #[cold]
    pub fn skip(&mut self, script: usize) {
        self.skipped += 1;
        if let Some(count) = self.scripts.get_mut(script) {
            count.tally.skipped += 1;
        }
    }

    /// An operation is tried once more, after so many tries.
    #[cold]
    pub fn tried_again(&mut self, script: usize, tries: u32) {
        if let Some(count) = self.scripts.get_mut(script) {
            count.tally.retries += 1;
            count.tally.retried += u64::from(tries == 1);
        }
    }

    /// An operation succeeded.
    #[inline]
    pub fn succeeded(&mut self, script: usize, latency_ns: u64) {
        self.operations += 1;
        self.histogram.saturating_record(latency_ns);
        if let Some(ScriptCount { tally, .. }) = self.scripts.get_mut(script) {
            let latency_us = to_f64(latency_ns) / 1e3;
            tally.operations += 1;
            tally.late += u64::from(latency_ns > self.latency_limit_ns);
            tally.latency_sum_us += latency_us;
            tally.latency_square_sum_us2 += latency_us * latency_us;
        }
    }

    /// An operation failed.
    #[cold]
    pub fn failed(&mut self, script: usize, error: &ServerError) {
        self.failed += 1;
        self.count_error(error);
        if let Some(ScriptCount { tally, .. }) = self.scripts.get_mut(script) {
            match error.sqlstate.as_str() {
                SERIALIZATION => tally.serialization_failures += 1,
                DEADLOCK => tally.deadlock_failures += 1,
                _ => tally.other_failures += 1,
            }
        }
    }

    /// The last answer is there.
    pub fn end(&mut self) {
        self.ended_ns = self.clock.now();
    }

    /// Adds the share of another thread, whose clock began with this one.
    pub fn add(&mut self, other: Self) {
        self.ended_ns = self.ended_ns.max(other.ended_ns);
        self.sent += other.sent;
        self.skipped += other.skipped;
        self.schedule_lag_ns = self.schedule_lag_ns.max(other.schedule_lag_ns);
        self.operations += other.operations;
        self.failed += other.failed;
        for theirs in other.errors {
            match self.known_error(&theirs.sqlstate) {
                Some(known) => known.count += theirs.count,
                None => self.errors.push(theirs),
            }
        }
        let added = self.histogram.add(&*other.histogram);
        assert!(added.is_ok(), "histograms of equal bounds can be added");
        for (count, theirs) in self.scripts.iter_mut().zip(&other.scripts) {
            count.add(theirs);
        }
    }

    /// The outcome but for rows, CPU time and histogram, which the lane adds.
    pub fn outcome(mut self, end: Result<(), Loss>) -> SliceOutcome {
        let duration_ns = self.ended_ns;
        let nothing = self.operations == 0 && self.failed + self.skipped > 0;
        let mut void = nothing.then_some(VoidReason::NothingDone);
        let mut void_detail = nothing.then(|| match self.errors.first() {
            Some(error) => format!("{} ({})", error.first_message, error.sqlstate),
            None => "every operation was due too late to start".to_owned(),
        });
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
            self.scripts.iter_mut().for_each(ScriptCount::fail_the_rest);
        }
        SliceOutcome {
            duration_ns,
            operations: self.operations,
            failed: self.failed,
            rows: 0,
            client_cpu_ns: 0,
            probe_ns: None,
            probing_ns: 0,
            latency_histogram: Vec::new(),
            scripts: self.scripts.into_iter().map(|count| count.tally).collect(),
            errors: self.errors,
            void,
            void_detail,
            schedule_lag_ns: self.schedule_lag_ns,
        }
    }

    fn known_error(&mut self, sqlstate: &str) -> Option<&mut ErrorCount> {
        let mut known = self.errors.iter_mut();
        known.find(|known| known.sqlstate == sqlstate)
    }

    fn count_error(&mut self, error: &ServerError) {
        match self.known_error(&error.sqlstate) {
            Some(known) => known.count += 1,
            None => self.errors.push(ErrorCount {
                sqlstate: error.sqlstate.clone(),
                count: 1,
                first_message: error.message.clone(),
            }),
        }
    }
}

impl ScriptCount {
    fn add(&mut self, other: &Self) {
        self.begun += other.begun;
        let (mine, theirs) = (&mut self.tally, &other.tally);
        mine.operations += theirs.operations;
        mine.late += theirs.late;
        mine.skipped += theirs.skipped;
        mine.retries += theirs.retries;
        mine.retried += theirs.retried;
        mine.latency_sum_us += theirs.latency_sum_us;
        mine.latency_square_sum_us2 += theirs.latency_square_sum_us2;
        mine.serialization_failures += theirs.serialization_failures;
        mine.deadlock_failures += theirs.deadlock_failures;
        mine.other_failures += theirs.other_failures;
    }

    /// What has no answer counts as failed.
    fn fail_the_rest(&mut self) {
        let tally = &mut self.tally;
        let known = tally.serialization_failures + tally.deadlock_failures;
        tally.other_failures = self.begun - tally.operations - known;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_in_which_nothing_succeeded_says_what_the_server_said_first() {
        let mut histogram = Histogram::new(3).unwrap();
        let mut tally = Tally::new(&mut histogram, None);
        for message in ["division by zero", "another"] {
            tally.begun(0);
            let error = ServerError {
                severity: "ERROR".to_owned(),
                sqlstate: "22012".to_owned(),
                message: message.to_owned(),
                detail: None,
                hint: None,
                routine: None,
            };
            tally.failed(0, &error);
        }
        let outcome = tally.outcome(Ok(()));
        assert_eq!(outcome.void, Some(VoidReason::NothingDone));
        let detail = outcome.void_detail.as_deref();
        assert_eq!(detail, Some("division by zero (22012)"));
    }
}
