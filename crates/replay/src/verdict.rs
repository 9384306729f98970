//! How a candidate differs from the base in a statement: errors, plans, results.
//!
//! Statistics are drawn several times, so a tuple has a set of plans on each server. Its plan has changed if
//! the two sets have nothing in common; what flips on the base already is unstable there, and no change.

use crate::asking::Answer;
use crate::results::{Difference, Rows};
use crate::work::Job;
use deltabench_model::replayed::{
    ErrorVerdict, OnServer, PlanChange, PlanShare, PlanVerdict, ReplayFailure, ReplayVerdict,
    ResultVerdict,
};
use deltabench_model::units::{count, to_f64};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What a server did with a tuple in all draws, and when it executed it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outcome {
    /// How many draws gave which plan.
    pub plans: BTreeMap<String, u32>,
    /// SQLSTATE and message.
    pub failed: Option<(String, String)>,
    pub too_long: bool,
    /// Why the server could not say.
    pub unknown: Option<String>,
    pub rows: Option<Rows>,
    /// How long it was executed.
    pub took: Option<Duration>,
}

impl Outcome {
    /// Takes in what EXPLAIN said in a draw.
    pub fn explained(&mut self, answer: &Answer<String>) {
        match answer {
            Answer::Done(plan) => *self.plans.entry(plan.clone()).or_default() += 1,
            other => self.not_done(other),
        }
    }

    /// Takes in what came of executing it.
    pub fn executed(&mut self, (answer, took): (Answer<Rows>, Duration)) {
        self.took = Some(took);
        match answer {
            Answer::Done(rows) => self.rows = Some(rows),
            other => self.not_done(&other),
        }
    }

    fn not_done<T>(&mut self, answer: &Answer<T>) {
        match answer {
            Answer::Failed { sqlstate, message } => {
                self.failed
                    .get_or_insert((sqlstate.clone(), message.clone()));
            }
            Answer::TooLong => self.too_long = true,
            Answer::Unknown(why) => {
                self.unknown.get_or_insert(why.clone());
            }
            Answer::Done(_) => {}
        }
    }

    /// The plan of most draws.
    fn usual(&self) -> Option<&String> {
        let most = self.plans.iter().max_by_key(|(_, times)| **times);
        most.map(|(plan, _)| plan)
    }

    /// Whether there is something to compare: a plan, and no error.
    pub fn is_answered(&self) -> bool {
        self.failed.is_none() && self.unknown.is_none() && !self.plans.is_empty()
    }

    fn is_unstable(&self) -> bool {
        self.plans.len() > 1
    }

    /// How its plans are those of the base.
    pub fn plan_verdict(&self, base: &Self) -> PlanVerdict {
        if base.plans.is_empty() || self.plans.is_empty() {
            return PlanVerdict::Unknown;
        }
        let common = self.plans.keys().any(|plan| base.plans.contains_key(plan));
        match (common, base.is_unstable(), self.is_unstable()) {
            (false, _, _) => PlanVerdict::Changed,
            (true, true, _) => PlanVerdict::UnstableBase,
            (true, false, true) => PlanVerdict::UnstableCandidate,
            (true, false, false) => PlanVerdict::Same,
        }
    }
}

/// A tuple that both servers can plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    pub tuple: usize,
    /// Its plans on the base.
    pub plans: BTreeSet<String>,
    /// Whether the candidate has another one.
    pub changed: bool,
}

/// What a server did with all tuples of a statement.
pub fn on_server(job: &Job<'_>, outcomes: &[Outcome]) -> OnServer {
    let mut failures: Vec<ReplayFailure> = Vec::new();
    let mut shares: BTreeMap<&String, (u64, f64)> = BTreeMap::new();
    for (tuple, outcome) in job.tuples.iter().zip(outcomes) {
        if let Some((sqlstate, message)) = &outcome.failed {
            let same = |known: &&mut ReplayFailure| {
                known.sqlstate == *sqlstate && known.message == *message
            };
            match failures.iter_mut().find(same) {
                Some(known) => known.tuples += 1,
                None => failures.push(ReplayFailure {
                    sqlstate: sqlstate.clone(),
                    message: message.clone(),
                    tuples: 1,
                }),
            }
        }
        let draws: u32 = outcome.plans.values().sum();
        for (plan, times) in &outcome.plans {
            let entry = shares.entry(plan).or_default();
            entry.0 += 1;
            entry.1 += tuple.weight * f64::from(*times) / f64::from(draws.max(1));
        }
    }
    let share = |(plan, (tuples, share)): (&String, (u64, f64))| PlanShare {
        plan: plan.clone(),
        tuples,
        share,
    };
    let mut plans: Vec<PlanShare> = shares.into_iter().map(share).collect();
    plans.sort_by(|one, other| other.share.total_cmp(&one.share));
    let reasons = outcomes
        .iter()
        .filter_map(|outcome| outcome.unknown.as_ref());
    let reasons: BTreeSet<&String> = reasons.collect();
    let rows = outcomes.iter().filter_map(|outcome| outcome.rows.as_ref());
    let executed = outcomes.iter().any(|outcome| outcome.rows.is_some());
    OnServer {
        failures,
        plans,
        unstable: count(
            outcomes
                .iter()
                .filter(|outcome| outcome.is_unstable())
                .count(),
        ),
        rows: executed.then(|| rows.map(|rows| rows.count).sum()),
        too_long: count(outcomes.iter().filter(|outcome| outcome.too_long).count()),
        unknown: reasons.into_iter().cloned().collect(),
    }
}

/// How a candidate differs from the base. `again` says whether a tuple's result differs between two
/// executions on the base, too.
pub fn verdict(
    job: &Job<'_>,
    (base, candidate): (&[Outcome], &[Outcome]),
    server: usize,
    (again, objections): (&dyn Fn(usize) -> bool, &[String]),
) -> ReplayVerdict {
    let pairs = || base.iter().zip(candidate);
    let plans = Plans::of(job, base, candidate);
    let mut results = ResultVerdict::NotExecuted;
    let mut differing = 0;
    for (place, (base, candidate)) in pairs().enumerate() {
        let found = result(job, (base, candidate), || again(place));
        differing += u64::from(!matches!(
            found,
            ResultVerdict::Same | ResultVerdict::NotExecuted
        ));
        results = worse(results, found);
    }
    let mut causes = match results {
        ResultVerdict::Same => Vec::new(),
        ResultVerdict::NotExecuted => objections.to_vec(),
        _ => job.promises.causes(&job.statement.volatile),
    };
    if results == ResultVerdict::OrderDiffers {
        causes.insert(
            0,
            "rows that are equal in ORDER BY have no order".to_owned(),
        );
    }
    if pairs().any(|(base, candidate)| base.too_long || candidate.too_long) {
        causes.push("some of its values did not end within the time-out".to_owned());
    }
    ReplayVerdict {
        server,
        errors: errors(base, candidate),
        plans: plans.verdict,
        changed: plans.changed,
        changed_share: plans.share,
        changes: plans.changes,
        results,
        differing,
        causes,
        time: None,
        old_plan: None,
    }
}

/// How plans of a statement changed.
struct Plans {
    verdict: PlanVerdict,
    changed: u64,
    share: f64,
    changes: Vec<PlanChange>,
}

impl Plans {
    fn of(job: &Job<'_>, base: &[Outcome], candidate: &[Outcome]) -> Self {
        let mut found = Self {
            verdict: PlanVerdict::Unknown,
            changed: 0,
            share: 0.0,
            changes: Vec::new(),
        };
        // The first of these that any tuple has is the statement's.
        let ranks = [
            PlanVerdict::Changed,
            PlanVerdict::UnstableBase,
            PlanVerdict::UnstableCandidate,
            PlanVerdict::Same,
            PlanVerdict::Unknown,
        ];
        let rank = |verdict: PlanVerdict| ranks.iter().position(|known| *known == verdict);
        for ((tuple, base), candidate) in job.tuples.iter().zip(base).zip(candidate) {
            let verdict = candidate.plan_verdict(base);
            if rank(verdict) < rank(found.verdict) {
                found.verdict = verdict;
            }
            if verdict != PlanVerdict::Changed {
                continue;
            }
            found.changed += 1;
            found.share += tuple.weight;
            let (Some(from), Some(to)) = (base.usual(), candidate.usual()) else {
                continue;
            };
            let same = |known: &&mut PlanChange| known.from == *from && known.to == *to;
            match found.changes.iter_mut().find(same) {
                Some(known) => known.tuples += 1,
                None => found.changes.push(PlanChange {
                    from: from.clone(),
                    to: to.clone(),
                    tuples: 1,
                }),
            }
        }
        found
            .changes
            .sort_by_key(|change| std::cmp::Reverse(change.tuples));
        found
    }
}

/// The worst that any tuple has.
fn errors(base: &[Outcome], candidate: &[Outcome]) -> ErrorVerdict {
    let ranks = [
        ErrorVerdict::New,
        ErrorVerdict::TooLong,
        ErrorVerdict::Differs,
        ErrorVerdict::Both,
        ErrorVerdict::Unknown,
        ErrorVerdict::Resolved,
        ErrorVerdict::None,
    ];
    let rank = |verdict: &ErrorVerdict| ranks.iter().position(|known| known == verdict);
    let pairs = base.iter().zip(candidate);
    let worst = pairs.map(|(base, candidate)| error(base, candidate));
    worst.min_by_key(rank).unwrap_or(ErrorVerdict::None)
}

/// How a tuple ended on the candidate, if it ended at all on the base.
fn error(base: &Outcome, candidate: &Outcome) -> ErrorVerdict {
    let open = |outcome: &Outcome| outcome.failed.is_none() && outcome.unknown.is_some();
    if base.too_long || open(base) || open(candidate) {
        return ErrorVerdict::Unknown;
    }
    match (&base.failed, &candidate.failed, candidate.too_long) {
        (None, Some(_), _) => ErrorVerdict::New,
        (None, None, true) => ErrorVerdict::TooLong,
        (Some((one, _)), Some((other, _)), _) if one != other => ErrorVerdict::Differs,
        (Some(_), Some(_), _) => ErrorVerdict::Both,
        (Some(_), None, true) => ErrorVerdict::Unknown,
        (Some(_), None, false) => ErrorVerdict::Resolved,
        (None, None, false) => ErrorVerdict::None,
    }
}

fn result(
    job: &Job<'_>,
    (base, candidate): (&Outcome, &Outcome),
    again: impl Fn() -> bool,
) -> ResultVerdict {
    let (Some(rows), Some(other)) = (&base.rows, &candidate.rows) else {
        return ResultVerdict::NotExecuted;
    };
    match rows.difference(other, job.promises.orders) {
        None => ResultVerdict::Same,
        Some(_) if again() => ResultVerdict::NotRepeatable,
        Some(Difference::Order) => ResultVerdict::OrderDiffers,
        Some(Difference::Values) => ResultVerdict::ResultsDiffer,
        Some(Difference::Rows) => ResultVerdict::RowsDiffer,
    }
}

fn worse(one: ResultVerdict, other: ResultVerdict) -> ResultVerdict {
    let rank = |verdict: ResultVerdict| match verdict {
        ResultVerdict::NotExecuted => 0,
        ResultVerdict::Same => 1,
        ResultVerdict::Moved => 2,
        ResultVerdict::NotRepeatable => 3,
        ResultVerdict::OrderDiffers => 4,
        ResultVerdict::ResultsDiffer => 5,
        ResultVerdict::RowsDiffer => 6,
    };
    if rank(other) > rank(one) { other } else { one }
}

/// Rows of an execution in the mean, over the tuples that were executed.
pub fn mean_rows(job: &Job<'_>, outcomes: &[Outcome]) -> Option<f64> {
    let executed = job
        .tuples
        .iter()
        .zip(outcomes)
        .filter_map(|(tuple, outcome)| {
            let rows = outcome.rows.as_ref()?;
            Some((tuple.tuple.n, to_f64(rows.count)))
        });
    let (weights, rows) = executed.fold((0.0, 0.0), |(weights, sum), (n, rows)| {
        (weights + n, sum + n * rows)
    });
    (weights > 0.0).then(|| rows / weights)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plans(names: &[&str]) -> Outcome {
        let mut outcome = Outcome::default();
        for name in names {
            outcome.explained(&Answer::Done((*name).to_owned()));
        }
        outcome
    }

    #[test]
    fn a_plan_that_flips_on_the_base_is_no_change() {
        let verdict =
            |base: &[&str], candidate: &[&str]| plans(candidate).plan_verdict(&plans(base));
        assert_eq!(verdict(&["a", "a"], &["a", "a"]), PlanVerdict::Same);
        assert_eq!(verdict(&["a", "a"], &["b", "b"]), PlanVerdict::Changed);
        assert_eq!(verdict(&["a", "b"], &["b", "b"]), PlanVerdict::UnstableBase);
        assert_eq!(verdict(&["a", "b"], &["c", "c"]), PlanVerdict::Changed);
        assert_eq!(
            verdict(&["a", "a"], &["a", "b"]),
            PlanVerdict::UnstableCandidate
        );
        assert_eq!(verdict(&["a", "a"], &["c", "b"]), PlanVerdict::Changed);
        assert_eq!(verdict(&[], &["b"]), PlanVerdict::Unknown);
    }

    #[test]
    fn one_tuple_that_fails_newly_makes_the_statement_fail() {
        let failed = || Outcome {
            failed: Some(("42883".to_owned(), "no".to_owned())),
            ..Outcome::default()
        };
        let fine = Outcome::default;
        assert_eq!(
            errors(&[fine(), fine()], &[fine(), failed()]),
            ErrorVerdict::New
        );
        assert_eq!(
            errors(&[failed(), fine()], &[failed(), fine()]),
            ErrorVerdict::Both
        );
        assert_eq!(errors(&[failed()], &[fine()]), ErrorVerdict::Resolved);
        assert_eq!(errors(&[fine()], &[fine()]), ErrorVerdict::None);
        let other = Outcome {
            failed: Some(("42703".to_owned(), "no".to_owned())),
            ..Outcome::default()
        };
        assert_eq!(errors(&[failed()], &[other]), ErrorVerdict::Differs);
    }

    #[test]
    fn a_time_out_on_the_candidate_alone_is_a_finding_and_one_on_the_base_leaves_all_open() {
        let ended = |answer: Answer<Rows>| {
            let mut outcome = plans(&["a"]);
            outcome.executed((answer, Duration::ZERO));
            outcome
        };
        let late = || ended(Answer::TooLong);
        let failed = || {
            ended(Answer::Failed {
                sqlstate: "42883".to_owned(),
                message: String::new(),
            })
        };
        let open = || ended(Answer::Unknown("53200".to_owned()));
        let fine = || plans(&["a"]);
        let of = |base: Outcome, candidate: Outcome| errors(&[base, fine()], &[candidate, fine()]);
        assert_eq!(of(fine(), late()), ErrorVerdict::TooLong);
        assert_eq!(of(late(), fine()), ErrorVerdict::Unknown);
        assert_eq!(of(late(), failed()), ErrorVerdict::Unknown);
        assert_eq!(of(late(), late()), ErrorVerdict::Unknown);
        assert_eq!(of(open(), failed()), ErrorVerdict::Unknown);
        assert_eq!(of(fine(), open()), ErrorVerdict::Unknown);
        assert!(!open().is_answered() && !failed().is_answered() && fine().is_answered());
    }

    #[test]
    fn the_plan_of_most_draws_is_the_usual_one() {
        assert_eq!(plans(&["a", "b", "b"]).usual().unwrap(), "b");
        assert!(plans(&["a", "b"]).is_unstable());
    }
}
