//! Counts of a step under way.

use super::LookUps;
use super::answer::Answer;
use crate::error::ServerError;
use crate::scan::Loss;
use deltabench_model::slice::{ErrorCount, VoidReason};
use deltabench_model::units::index;
use deltabench_model::work::insert::{InsertRole, InsertSecond, RoleTally};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2Serializer};

/// Largest latency that is told from larger ones, nanoseconds: an hour. A server that cannot keep its rate
/// is later and later.
const LONGEST_NS: u64 = 3_600_000_000_000;
/// Significant decimal digits of a latency.
const DIGITS: u8 = 3;
/// So many statements of one role that fail in a row, in one thread, end the step.
const FAILED_IN_A_ROW: u64 = 100;
/// A second, nanoseconds.
const SECOND_NS: u64 = 1_000_000_000;

/// Why a step cannot go on.
#[derive(Debug)]
pub struct Fault {
    pub void: VoidReason,
    pub detail: String,
}

impl Fault {
    /// A connection cannot go on.
    pub fn lost(whose: &str, loss: &Loss) -> Self {
        let void = match loss {
            Loss::Stalled => VoidReason::Stalled,
            _ => VoidReason::ServerLost,
        };
        Self {
            void,
            detail: format!("{whose}: {loss}"),
        }
    }

    /// The server refuses what the step cannot do without.
    pub fn refused(whose: &str, error: &ServerError) -> Self {
        Self {
            void: VoidReason::NothingDone,
            detail: format!("{whose}: {error}"),
        }
    }
}

/// A statement and its answer; times in nanoseconds since the start of the step.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// When it was to be sent, if there is a schedule.
    pub due_ns: Option<u64>,
    /// When it was sent first.
    pub sent_ns: u64,
    /// When its answer had come.
    pub now_ns: u64,
}

/// Counts of one role.
#[derive(Debug)]
pub struct RoleCount {
    role: InsertRole,
    statements: u64,
    rows: u64,
    failed: u64,
    in_a_row: u64,
    retries: u64,
    histogram: Histogram<u64>,
    max_service_ns: u64,
    schedule_lag_ns: Option<u64>,
    missed: u64,
    errors: Vec<ErrorCount>,
}

impl RoleCount {
    fn new(role: InsertRole) -> Option<Self> {
        Some(Self {
            role,
            statements: 0,
            rows: 0,
            failed: 0,
            in_a_row: 0,
            retries: 0,
            histogram: Histogram::new_with_bounds(1, LONGEST_NS, DIGITS).ok()?,
            max_service_ns: 0,
            schedule_lag_ns: None,
            missed: 0,
            errors: Vec::new(),
        })
    }

    /// Adds the counts of another thread.
    fn add(&mut self, other: Self) {
        self.statements += other.statements;
        self.rows += other.rows;
        self.failed += other.failed;
        self.retries += other.retries;
        let added = self.histogram.add(other.histogram);
        assert!(added.is_ok(), "histograms of equal bounds can be added");
        self.max_service_ns = self.max_service_ns.max(other.max_service_ns);
        self.schedule_lag_ns = self.schedule_lag_ns.max(other.schedule_lag_ns);
        self.missed += other.missed;
        for error in other.errors {
            let mut known = self.errors.iter_mut();
            match known.find(|known| known.sqlstate == error.sqlstate) {
                Some(known) => known.count += error.count,
                None => self.errors.push(error),
            }
        }
    }

    fn finished(self) -> RoleTally {
        let mut latency_histogram = Vec::with_capacity(4096);
        let written = V2Serializer::new().serialize(&self.histogram, &mut latency_histogram);
        assert!(
            written.is_ok(),
            "a histogram of fixed bounds always fits its format"
        );
        RoleTally {
            role: self.role,
            statements: self.statements,
            rows: self.rows,
            failed: self.failed,
            retries: self.retries,
            latency_histogram,
            max_service_ns: self.max_service_ns,
            schedule_lag_ns: self.schedule_lag_ns,
            missed: self.missed,
            errors: self.errors,
        }
    }

    fn count_error(&mut self, error: &ServerError) {
        let mut known = self.errors.iter_mut();
        match known.find(|known| known.sqlstate == error.sqlstate) {
            Some(known) => known.count += 1,
            None => self.errors.push(ErrorCount {
                sqlstate: error.sqlstate.clone(),
                count: 1,
                first_message: error.message.clone(),
            }),
        }
    }
}

/// Counts of a step, all clients together, or those of one thread.
#[derive(Debug)]
pub struct StepTally {
    roles: Vec<RoleCount>,
    seconds: Vec<InsertSecond>,
    /// Deletes that removed another number of rows than they were to.
    pub short_deletes: u64,
    /// Look-ups of the oldest and newest key.
    pub look_ups: LookUps,
    /// Long transactions that were committed.
    pub long_transactions: u64,
}

impl StepTally {
    /// All zero.
    pub fn new(roles: &[InsertRole]) -> Self {
        Self {
            roles: roles
                .iter()
                .filter_map(|role| RoleCount::new(*role))
                .collect(),
            seconds: Vec::new(),
            short_deletes: 0,
            look_ups: LookUps::default(),
            long_transactions: 0,
        }
    }

    /// Adds the counts of another thread of the step.
    pub fn add(&mut self, other: Self) {
        for count in other.roles {
            if let Some(known) = self.role(count.role) {
                known.add(count);
            }
        }
        let seconds = self.seconds.len().max(other.seconds.len());
        self.seconds.resize(seconds, InsertSecond::default());
        for (second, more) in self.seconds.iter_mut().zip(other.seconds) {
            second.inserted += more.inserted;
            second.deleted += more.deleted;
            second.queries += more.queries;
            second.max_insert_us = second.max_insert_us.max(more.max_insert_us);
            second.max_delete_us = second.max_delete_us.max(more.max_delete_us);
            second.max_query_us = second.max_query_us.max(more.max_query_us);
        }
        self.short_deletes += other.short_deletes;
        self.look_ups.count += other.look_ups.count;
        self.look_ups.total_ns += other.look_ups.total_ns;
        self.look_ups.max_ns = self.look_ups.max_ns.max(other.look_ups.max_ns);
        self.long_transactions += other.long_transactions;
    }

    /// A statement is sent for the first time.
    pub fn sent(&mut self, role: InsertRole, due_ns: Option<u64>, now_ns: u64) {
        if let (Some(due_ns), Some(count)) = (due_ns, self.role(role)) {
            let lag_ns = now_ns.saturating_sub(due_ns);
            count.schedule_lag_ns = count.schedule_lag_ns.max(Some(lag_ns));
        }
    }

    /// A statement is sent again.
    #[cold]
    pub fn retried(&mut self, role: InsertRole) {
        if let Some(count) = self.role(role) {
            count.retries += 1;
        }
    }

    /// A statement has its answer, for good; returns the rows that it inserted, deleted or returned.
    pub fn answered(
        &mut self,
        role: InsertRole,
        timing: Timing,
        answer: &Answer,
    ) -> Result<u64, Fault> {
        let Some(count) = self.role(role) else {
            return Ok(0);
        };
        if let Some(error) = &answer.error {
            count.failed += 1;
            count.in_a_row += 1;
            count.count_error(error);
            if count.in_a_row >= FAILED_IN_A_ROW {
                let whose = format!("{FAILED_IN_A_ROW} statements in a row failed, the last with");
                return Err(Fault::refused(&whose, error));
            }
            return Ok(0);
        }
        let from_ns = timing.due_ns.unwrap_or(timing.sent_ns);
        let latency_ns = timing.now_ns.saturating_sub(from_ns);
        let service_ns = timing.now_ns.saturating_sub(timing.sent_ns);
        count.in_a_row = 0;
        count.statements += 1;
        count.rows += answer.touched;
        count.histogram.saturating_record(latency_ns);
        count.max_service_ns = count.max_service_ns.max(service_ns);
        if let Some(second) = self.second(timing.now_ns) {
            let (done, more, longest_us) = match role {
                InsertRole::Insert => (
                    &mut second.inserted,
                    answer.touched,
                    &mut second.max_insert_us,
                ),
                InsertRole::Delete => (
                    &mut second.deleted,
                    answer.touched,
                    &mut second.max_delete_us,
                ),
                InsertRole::Query => (&mut second.queries, 1, &mut second.max_query_us),
            };
            *done += more;
            *longest_us = (*longest_us).max(latency_ns / 1000);
        }
        Ok(answer.touched)
    }

    /// Statements that were never sent.
    pub fn missed(&mut self, role: InsertRole, batches: u64) {
        if let Some(count) = self.role(role) {
            count.missed += batches;
        }
    }

    /// Statements of a role that succeeded.
    pub fn statements(&self, role: InsertRole) -> u64 {
        let count = self.roles.iter().find(|count| count.role == role);
        count.map_or(0, |count| count.statements)
    }

    /// Tallies of the roles and all seconds of a step that took so long.
    pub fn finished(mut self, duration_ns: u64) -> (Vec<RoleTally>, Vec<InsertSecond>) {
        let seconds = index(duration_ns.div_ceil(SECOND_NS)).max(self.seconds.len());
        self.seconds.resize(seconds, InsertSecond::default());
        let roles = self.roles.into_iter().map(RoleCount::finished);
        (roles.collect(), self.seconds)
    }

    fn role(&mut self, role: InsertRole) -> Option<&mut RoleCount> {
        self.roles.iter_mut().find(|count| count.role == role)
    }

    /// The second of a time; those before it are made.
    fn second(&mut self, now_ns: u64) -> Option<&mut InsertSecond> {
        let at = index(now_ns / SECOND_NS);
        if at >= self.seconds.len() {
            self.seconds.resize(at + 1, InsertSecond::default());
        }
        self.seconds.get_mut(at)
    }
}
