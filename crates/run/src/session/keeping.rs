//! Visits made durable, findings stored once, and servers that are lost.

use super::{RunProgress, Session, store_problem};
use crate::fleet::Fleet;
use crate::schedule::BlockSchedule;
use crate::visit::{Cause, VisitEnd, VisitReport};
use deltabench_model::fact::VisitStart;
use deltabench_model::finding::{Finding, FindingKind, Severity};
use deltabench_model::plan::{CellId, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::record::Record;
use deltabench_model::sampled;
use deltabench_model::slice::VoidReason;
use deltabench_observe::Series;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// After this many lost servers in one session the run ends.
pub const LOSSES_MAX: u32 = 3;

/// How long the loss of a server may be ahead of the signal to us: one signal goes to one process after
/// another.
const AHEAD: Duration = Duration::from_millis(500);
/// How often to look meanwhile.
const PAUSE: Duration = Duration::from_millis(10);

/// Whether a signal that says why something broke has come, or comes now.
pub fn comes_soon(has_come: impl Fn() -> bool) -> bool {
    let began = Instant::now();
    while !has_come() && began.elapsed() < AHEAD {
        std::thread::sleep(PAUSE);
    }
    has_come()
}

/// A server that was lost.
#[derive(Debug)]
pub struct Loss {
    /// In words, with the place.
    pub message: String,
    /// The end of its log.
    pub tail: String,
    /// What is missing for it.
    pub void: &'static str,
    /// What to say if it was one too many.
    pub give_up: Problem,
}

impl Session<'_> {
    /// Makes a visit durable with its warm-up, or forgets it.
    ///
    /// Errors: that of the visit; a store that cannot be written.
    pub fn keep_visit(
        &mut self,
        block: u32,
        cell: CellId,
        report: Result<VisitReport, Problem>,
        series: Option<&mut Series>,
    ) -> Result<VisitEnd, Problem> {
        let is_lost = { report.as_ref() }.is_ok_and(|one| matches!(one.end, VisitEnd::Lost(..)));
        if is_lost && self.ends_now() {
            self.store.abandon_visit().map_err(store_problem)?;
            return Ok(VisitEnd::Interrupted);
        }
        match report {
            Ok(VisitReport {
                end: end @ (VisitEnd::Complete | VisitEnd::Lost(..)),
                warm_up,
                counters,
                core_speed,
                profiles,
            }) => {
                self.keep_observed(&counters, series)?;
                let (store, run) = (&mut *self.store, self.run);
                let start = VisitStart {
                    cell,
                    warm_up,
                    core_speed,
                };
                store
                    .add_fact(run, (None, Some(block)), &start)
                    .and_then(|()| store.commit_visit(run, cell, block))
                    .map_err(store_problem)?;
                // Records are outside of visits: a kill here loses a block of samples.
                for (server, sampled) in profiles {
                    let record = Record {
                        kind: sampled::KIND.to_owned(),
                        server,
                        cell,
                        block,
                        void: None,
                        payload: sampled.payload(),
                    };
                    self.store
                        .add_record(self.run, &record)
                        .map_err(store_problem)?;
                }
                Ok(end)
            }
            other => {
                self.store.abandon_visit().map_err(store_problem)?;
                other.map(|report| report.end)
            }
        }
    }

    /// Whether somebody ends the run, so that the loss of a server says nothing of it: whoever ends a job of
    /// a cluster sends a signal to all of its processes. Servers may get it first.
    pub fn ends_now(&self) -> bool {
        comes_soon(|| self.interrupted.load(Ordering::Relaxed))
    }

    /// Stores those findings that are not stored yet.
    ///
    /// Errors: a store that cannot be written.
    pub fn keep_findings(&mut self, findings: &[Finding]) -> Result<(), Problem> {
        let known = self.store.findings(self.run).map_err(store_problem)?;
        for finding in findings.iter().filter(|found| !known.contains(found)) {
            self.store
                .add_finding(self.run, finding)
                .map_err(store_problem)?;
        }
        Ok(())
    }

    /// Tells, and stores, that a server was lost in a cell of a block, and counts it.
    ///
    /// Errors: it was one loss too many.
    pub fn note_loss(
        &mut self,
        (block, cell, server): (u32, CellId, ServerId),
        cause: &Cause,
        schedule: &BlockSchedule,
        fleet: &Fleet<'_>,
        progress: &mut RunProgress,
    ) -> Result<(), Problem> {
        let name = self.plan.server_name(server);
        let cell = self.plan.cell(cell);
        let workload = cell.map_or("?", |cell| cell.workload.as_str());
        let killed = fleet.killed_by_limit(schedule, server);
        let place = format!("in block {block} at {workload}");
        let message = cause.message(&name, &place, &killed.unwrap_or_default());
        // What a server refuses is no news of the server.
        let failing = cause.reason == VoidReason::NothingDone && cause.detail.is_some();
        let tail = if failing {
            String::new()
        } else {
            fleet.log_tail(schedule, server)
        };
        let log = if tail.is_empty() {
            String::new()
        } else {
            format!("; its log ends:\n{tail}")
        };
        self.observer.note(&format!("{message}{log}"));
        let what = if failing {
            format!("nothing of {workload} succeeded; giving up")
        } else {
            format!("servers were lost {LOSSES_MAX} times; giving up")
        };
        let hint = cause
            .hint()
            .unwrap_or("deltabench kept what it measured: `deltabench report` shows it");
        let loss = Loss {
            message,
            tail,
            // Where a slice was under way it is void; else it was lost before one, or between two.
            void: "the rest of that visit is missing",
            give_up: Problem::new(what).hint(hint),
        };
        self.count_loss(loss, progress)
    }

    /// Stores that a server was lost, and counts it.
    ///
    /// Errors: it was one loss too many.
    pub fn count_loss(&mut self, loss: Loss, progress: &mut RunProgress) -> Result<(), Problem> {
        progress.losses += 1;
        let text = format!("{}; {}", loss.message, loss.void);
        let finding = Finding::new(FindingKind::ServerLost, Severity::Confounder, text.clone());
        self.store
            .add_finding(self.run, &finding)
            .map_err(store_problem)?;
        if progress.losses >= LOSSES_MAX {
            let detail = format!("{text}\n{}", loss.tail);
            return Err(loss.give_up.detail(detail.trim_end()));
        }
        Ok(())
    }
}
