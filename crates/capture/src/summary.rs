//! What a capture holds, in numbers.

use crate::capture::Capture;
use crate::statement::{Kind, Obstacle, Statement, Weight};
use deltabench_model::units::{count, to_f64};
use serde::Serialize;
use std::collections::BTreeMap;

/// What shares are shares of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// Time of the executions.
    Time,
    /// Executions: the time of too many is not known.
    Calls,
}

/// Statements that are not replayed for one reason.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LeftOut {
    /// The reason as a word: a kind, `cut-values`, `no-values`, `broken-text` or `not-in-log`.
    pub reason: &'static str,
    /// What such statements are or have.
    pub meaning: String,
    /// Statements.
    pub statements: u64,
    /// Their share of the workload, 0 to 1.
    pub share: f64,
}

/// The numbers of a capture.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// All statements.
    pub statements: u64,
    /// All their executions.
    pub calls: u64,
    /// Their time with planning, in milliseconds; absent if not known.
    pub total_ms: Option<f64>,
    /// What shares are shares of.
    pub basis: Basis,
    /// The fewest statements with 99 % of the workload.
    pub most: u64,
    /// Of [`most`](Self::most) those that write.
    pub most_write: u64,
    /// Statements that can be replayed.
    pub replayed: u64,
    /// Their share of the workload, 0 to 1.
    pub replayed_share: f64,
    /// Of the statements that can be replayed those with fewer than five tuples of more executions.
    pub few_tuples: u64,
    /// Of the statements that can be replayed those with functions that depend on the moment, on luck or on
    /// the session.
    pub volatile: u64,
    /// Executions that cannot be executed again, of statements of which others can.
    pub unusable: u64,
    /// Why others are not replayed, the largest share first.
    pub left_out: Vec<LeftOut>,
}

/// How much of the workload "most statements" have.
const MOST: f64 = 0.99;
/// Shares are of the executions if the time of more of them than this is not known.
const UNKNOWN: f64 = 0.1;
/// Fewer tuples than these say little of a statement.
const FEW: usize = 5;

impl Summary {
    /// The numbers of a capture.
    pub fn of(capture: &Capture) -> Self {
        let statements = &capture.statements;
        let times = statements.iter().filter_map(|statement| statement.total_ms);
        let total_ms: f64 = times.sum();
        let calls: u64 = statements.iter().map(|statement| statement.calls).sum();
        let unknown = statements.iter().filter(|statement| !is_known(statement));
        let unknown: u64 = unknown.map(|statement| statement.calls).sum();
        let basis = if total_ms > 0.0 && to_f64(unknown) <= UNKNOWN * to_f64(calls) {
            Basis::Time
        } else {
            Basis::Calls
        };
        let shares = Shares::of(statements, basis);
        let (most, most_write) = shares.most(statements);
        let replayed = || {
            statements
                .iter()
                .filter(|statement| statement.obstacle().is_none())
        };
        let few = |statement: &&Statement| {
            let tuples = statement.tuples.len();
            tuples < FEW && statement.calls > count(tuples) && takes_values(statement)
        };
        Self {
            statements: count(statements.len()),
            calls,
            total_ms: (basis == Basis::Time).then_some(total_ms),
            basis,
            most,
            most_write,
            replayed: count(replayed().count()),
            // A sum of nothing is -0.
            replayed_share: 0.0 + replayed().map(|one| shares.share(one)).sum::<f64>(),
            few_tuples: count(replayed().filter(few).count()),
            volatile: count(
                replayed()
                    .filter(|statement| !statement.volatile.is_empty())
                    .count(),
            ),
            unusable: replayed().map(|statement| statement.unusable.sum()).sum(),
            left_out: left_out(statements, &shares),
        }
    }

    /// The share of a statement of the capture that this is the summary of, 0 to 1; absent if shares are of
    /// the time and that of the statement is not known, or if nothing has a weight.
    pub fn share(&self, statement: &Statement) -> Option<f64> {
        let all = self.total_ms.unwrap_or(to_f64(self.calls));
        share(statement, self.basis, all)
    }
}

/// Whether the log has the time of a statement.
fn is_known(statement: &Statement) -> bool {
    statement.total_ms.is_some() && statement.weight != Weight::AtLeast
}

/// Whether executions can differ: a statement without values has one tuple.
fn takes_values(statement: &Statement) -> bool {
    let mut tuples = statement.tuples.iter();
    tuples.any(|tuple| !tuple.values.is_empty() || tuple.text.is_some())
}

fn weight(statement: &Statement, basis: Basis) -> Option<f64> {
    match basis {
        Basis::Time => statement.total_ms,
        Basis::Calls => Some(to_f64(statement.calls)),
    }
}

fn share(statement: &Statement, basis: Basis, all: f64) -> Option<f64> {
    let weight = weight(statement, basis)?;
    (all > 0.0).then(|| weight / all)
}

struct Shares {
    basis: Basis,
    all: f64,
}

impl Shares {
    fn of(statements: &[Statement], basis: Basis) -> Self {
        let all = statements
            .iter()
            .filter_map(|statement| weight(statement, basis))
            .sum();
        Self { basis, all }
    }

    fn share(&self, statement: &Statement) -> f64 {
        share(statement, self.basis, self.all).unwrap_or(0.0)
    }

    /// The fewest statements with most of the workload, and how many of them write.
    fn most(&self, statements: &[Statement]) -> (u64, u64) {
        let mut largest: Vec<&Statement> = statements.iter().collect();
        largest.sort_by(|a, b| self.share(b).total_cmp(&self.share(a)));
        let mut covered = 0.0;
        let (mut number, mut write) = (0, 0);
        for statement in largest {
            if covered >= MOST {
                break;
            }
            covered += self.share(statement);
            number += 1;
            write += u64::from(statement.kind == Kind::Write);
        }
        (number, write)
    }
}

fn left_out(statements: &[Statement], shares: &Shares) -> Vec<LeftOut> {
    let mut sums: BTreeMap<Obstacle, (u64, f64)> = BTreeMap::new();
    for statement in statements {
        if let Some(obstacle) = statement.obstacle() {
            let (number, share) = sums.entry(obstacle).or_default();
            *number += 1;
            *share += shares.share(statement);
        }
    }
    let mut left_out: Vec<LeftOut> = sums
        .into_iter()
        .map(|(obstacle, (statements, share))| LeftOut {
            reason: obstacle.word(),
            meaning: obstacle.meaning().to_owned(),
            statements,
            share,
        })
        .collect();
    left_out.sort_by(|a, b| b.share.total_cmp(&a.share));
    left_out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::tests::statement;

    fn capture(times: &[(Kind, Option<f64>)]) -> Capture {
        let statements = times.iter().map(|(kind, ms)| Statement {
            kind: *kind,
            total_ms: *ms,
            calls: 10,
            ..statement()
        });
        Capture {
            statements: statements.collect(),
            ..Capture::default()
        }
    }

    #[test]
    fn the_numbers_are_those_of_the_time() {
        let capture = capture(&[
            (Kind::Read, Some(60.0)),
            (Kind::Write, Some(30.0)),
            (Kind::Transaction, Some(9.5)),
            (Kind::Read, Some(0.5)),
        ]);
        let summary = Summary::of(&capture);
        assert_eq!((summary.most, summary.most_write), (3, 1));
        assert_eq!(
            (summary.statements, summary.replayed, summary.calls),
            (4, 3, 40)
        );
        assert!((summary.replayed_share - 0.905).abs() < 1e-9);
        assert_eq!(summary.left_out.len(), 1);
        assert_eq!(summary.left_out[0].reason, "transaction");
        assert_eq!((summary.few_tuples, summary.volatile), (3, 3));
        assert!((summary.share(&capture.statements[1]).unwrap() - 0.3).abs() < 1e-9);
    }

    #[test]
    fn without_times_calls_count() {
        let summary = Summary::of(&capture(&[(Kind::Read, None), (Kind::Copy, None)]));
        assert_eq!((summary.basis, summary.total_ms), (Basis::Calls, None));
        assert!((summary.replayed_share - 0.5).abs() < 1e-9);
    }

    #[test]
    fn what_has_no_weight_has_no_share() {
        let mut some = capture(&[(Kind::Read, Some(10.0)), (Kind::Read, None)]);
        some.statements[1].calls = 1;
        let summary = Summary::of(&some);
        let shares = some
            .statements
            .iter()
            .map(|statement| summary.share(statement));
        assert_eq!(shares.collect::<Vec<_>>(), [Some(1.0), None]);
        for statement in &mut some.statements {
            (statement.calls, statement.total_ms) = (0, None);
        }
        let summary = Summary::of(&some);
        assert_eq!(summary.share(&some.statements[0]), None);
        assert!(summary.replayed_share.abs() < 1e-9);
    }

    #[test]
    fn calls_count_if_times_are_lower_bounds() {
        let mut capture = capture(&[(Kind::Read, Some(1000.0)), (Kind::Copy, Some(1.0))]);
        assert_eq!(Summary::of(&capture).basis, Basis::Time);
        capture.statements[0].weight = Weight::AtLeast;
        let summary = Summary::of(&capture);
        assert_eq!((summary.basis, summary.total_ms), (Basis::Calls, None));
        assert!((summary.share(&capture.statements[1]).unwrap() - 0.5).abs() < 1e-9);
    }
}
