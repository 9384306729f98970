//! Which statements are measured: those that all servers have executed.

use crate::clock::{CLOCK_MOVED, DATA_MOVED};
use crate::work::{Job, Work};
use deltabench_capture::Kind;
use deltabench_model::replayed::{ReplayVerdict, Replayed, ResultVerdict};
use deltabench_model::work::replay::{
    OldPlanSettings, TimedStatement, TimedTuple, TimedWrite, plan_place,
};
use std::time::Duration;

/// What servers did with a tuple.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TupleFacts {
    /// Whether all of them have executed it.
    pub worked: bool,
    /// Candidates with another plan, by their places in the report.
    pub changed: Vec<usize>,
    /// Whether it has a plan with workers on any of them.
    pub parallel: bool,
    /// Whether a copy takes it only once.
    pub once: bool,
    /// Its longest execution on any of them.
    pub slowest: Option<Duration>,
}

/// The statements to measure, in the order of the report; `facts` are those of a tuple of a statement.
pub fn statements(
    work: &Work<'_>,
    replayed: &Replayed,
    facts: impl Fn(usize, usize) -> TupleFacts,
) -> Vec<TimedStatement> {
    let jobs = work.jobs.iter().zip(&replayed.statements).enumerate();
    let timed = jobs.filter_map(|(number, (job, statement))| {
        let places = (0..job.tuples.len()).map(|place| (place, facts(number, place)));
        let worked: Vec<_> = places.filter(|(_, facts)| facts.worked).collect();
        let tuples: Vec<TimedTuple> = worked
            .iter()
            .map(|(place, facts)| tuple(job, *place, facts))
            .collect();
        let weight: f64 = tuples
            .iter()
            .filter_map(|tuple| job.tuples.get(usize::try_from(tuple.place).ok()?))
            .map(|tuple| tuple.weight)
            .sum();
        let unfit = |verdict: &ReplayVerdict| {
            Some((in_plan(verdict.server), not_comparable(job, verdict)?))
        };
        (!tuples.is_empty()).then(|| TimedStatement {
            id: job.statement.id.clone(),
            place: number_of(number),
            share: job.share.map(|share| share * weight),
            calls: job.statement.calls,
            write: (job.statement.kind != Kind::Read).then(|| TimedWrite {
                once: worked.iter().any(|(_, facts)| facts.once),
            }),
            parallel: worked.iter().any(|(_, facts)| facts.parallel),
            old_plans: match job.statement.kind {
                Kind::Read => statement.verdicts.iter().filter_map(old_plan).collect(),
                _ => Vec::new(),
            },
            unfit: statement.verdicts.iter().filter_map(unfit).collect(),
            tuples,
        })
    });
    timed.collect()
}

/// Settings with which a candidate has the plans of the base.
fn old_plan(verdict: &ReplayVerdict) -> Option<OldPlanSettings> {
    let settings = &verdict.old_plan.as_ref()?.settings;
    (!settings.is_empty()).then(|| OldPlanSettings {
        server: in_plan(verdict.server),
        settings: settings.clone(),
    })
}

fn tuple(job: &Job<'_>, place: usize, facts: &TupleFacts) -> TimedTuple {
    TimedTuple {
        place: number_of(place),
        weight: job.tuples.get(place).map_or(0.0, |tuple| tuple.tuple.n),
        changed: facts.changed.iter().copied().map(in_plan).collect(),
        slowest_seconds: facts.slowest.map(|took| took.as_secs_f64()),
    }
}

/// Why times would not be of the same work.
fn not_comparable(job: &Job<'_>, verdict: &ReplayVerdict) -> Option<String> {
    match verdict.results {
        ResultVerdict::RowsDiffer => Some(format!(
            "it {} another number of rows",
            match job.statement.kind {
                Kind::Write => "changes",
                _ => "returns",
            }
        )),
        // Whatever else differs: it is other work than that of production.
        _ => {
            let moved =
                |cause: &&String| cause.starts_with(CLOCK_MOVED) || cause.starts_with(DATA_MOVED);
            verdict.causes.iter().find(moved).cloned()
        }
    }
}

fn in_plan(server: usize) -> u32 {
    number_of(plan_place(server))
}

fn number_of(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}
