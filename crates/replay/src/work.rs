//! What is replayed: statements with their tuples, as they are sent.

use crate::results::Promises;
use crate::substitutes::MadeUp;
use deltabench_capture::{Basis, Capture, Kind, Obstacle, Statement, Summary, Tuple, tokens};
use deltabench_model::replayed::{LeftOut, WeightedBy};
use deltabench_model::units::{count, to_f64};
use std::collections::{BTreeMap, BTreeSet};

/// Examples of what was left out for one reason.
const EXAMPLES: usize = 3;
/// Characters of an example in words.
const EXAMPLE_SHOWN: usize = 80;

/// A statement that is replayed.
pub struct Job<'a> {
    pub statement: &'a Statement,
    /// Share of the workload; absent without a weight.
    pub share: Option<f64>,
    /// Whether the capture has no values, and these were made up.
    pub made_up: bool,
    pub tuples: Vec<TupleJob<'a>>,
    pub promises: Promises,
}

/// A tuple of a statement.
pub struct TupleJob<'a> {
    pub tuple: &'a Tuple,
    /// The text that is sent, without a semicolon at its end.
    pub sql: &'a str,
    /// Share of the statement, 0 to 1.
    pub weight: f64,
}

impl<'a> Job<'a> {
    /// A statement without tuples.
    pub fn bare(statement: &'a Statement) -> Self {
        Self::of(statement, None, &[])
    }

    fn of(statement: &'a Statement, share: Option<f64>, tuples: &'a [Tuple]) -> Self {
        let timed = tuples.iter().all(|tuple| tuple.ms.is_some());
        let weight = |tuple: &Tuple| match tuple.ms {
            Some(ms) if timed => tuple.n * ms,
            _ => tuple.n,
        };
        let sum: f64 = tuples.iter().map(weight).sum();
        let even = 1.0 / to_f64(count(tuples.len()).max(1));
        let share_of = |tuple: &Tuple| if sum > 0.0 { weight(tuple) / sum } else { even };
        let has_values = |tuple: &Tuple| !tuple.values.is_empty();
        let made_up = statement.tuples.is_empty() && tuples.iter().any(has_values);
        let tuples = tuples.iter().map(|tuple| TupleJob {
            tuple,
            sql: statement.sent(tuple).trim_end().trim_end_matches(';'),
            weight: share_of(tuple),
        });
        Self {
            statement,
            share,
            made_up,
            tuples: tuples.collect(),
            promises: Promises::of(&tokens(&statement.text).tokens),
        }
    }
}

/// All statements of a capture: those that are replayed, and those that are not.
pub struct Work<'a> {
    pub jobs: Vec<Job<'a>>,
    pub left_out: Vec<LeftOut>,
    pub weighted_by: WeightedBy,
    /// Share of the workload that the jobs are; absent if nothing has a weight.
    pub share: Option<f64>,
}

impl<'a> Work<'a> {
    /// Sorts the statements of a capture with values of its own, the most expensive first.
    pub fn of(capture: &'a Capture) -> Self {
        Self::with(capture, None)
    }

    /// The same with those whose values were made up.
    pub fn with(capture: &'a Capture, made_up: Option<&'a MadeUp>) -> Self {
        let summary = Summary::of(capture);
        let weighted_by = match summary.basis {
            Basis::Time => WeightedBy::Time,
            Basis::Calls => WeightedBy::Calls,
        };
        let statements = capture.statements.iter();
        let mut sorted: Vec<(&Statement, Option<f64>)> = statements
            .map(|statement| (statement, summary.share(statement)))
            .collect();
        sorted.sort_by(|(_, one), (_, other)| other.unwrap_or(0.0).total_cmp(&one.unwrap_or(0.0)));
        let mut jobs = Vec::new();
        let mut left: BTreeMap<String, LeftOut> = BTreeMap::new();
        let mut named: BTreeSet<String> = BTreeSet::new();
        for (statement, share) in sorted {
            let Some(obstacle) = statement.obstacle() else {
                jobs.push(Job::of(statement, share, &statement.tuples));
                continue;
            };
            if let Some(tuples) = made_up.and_then(|made| made.tuples(statement)) {
                jobs.push(Job::of(statement, share, tuples));
                continue;
            }
            let why = why(statement, obstacle, made_up);
            if made_up.is_some_and(|made| made.why_not(statement).is_some()) {
                named.insert(why.clone());
            }
            let entry = left.entry(why.clone()).or_insert_with(|| LeftOut {
                why,
                statements: 0,
                share: None,
                examples: Vec::new(),
            });
            entry.statements += 1;
            if let Some(share) = share {
                *entry.share.get_or_insert(0.0) += share;
            }
            if entry.examples.len() < EXAMPLES {
                entry.examples.push(statement.normalised.clone());
            }
        }
        let shares: Vec<f64> = jobs.iter().filter_map(|job| job.share).collect();
        let mut left_out: Vec<LeftOut> = left.into_values().collect();
        for left in &mut left_out {
            if named.contains(&left.why) {
                left.why.push_str(&examples(left));
            }
        }
        left_out.sort_by(|one, other| {
            other
                .share
                .unwrap_or(0.0)
                .total_cmp(&one.share.unwrap_or(0.0))
        });
        Self {
            share: (!shares.is_empty()).then(|| shares.iter().sum()),
            jobs,
            left_out,
            weighted_by,
        }
    }
}

/// `: TEXT; TEXT; and 4 more`.
fn examples(left: &LeftOut) -> String {
    let begin = |text: &String| text.chars().take(EXAMPLE_SHOWN).collect::<String>();
    let mut texts: Vec<String> = left.examples.iter().map(begin).collect();
    let more = left.statements.saturating_sub(count(texts.len()));
    if more > 0 {
        texts.push(format!("and {more} more"));
    }
    format!(": {}", texts.join("; "))
}

/// Why a statement is not replayed, also with values that are made up.
fn why(statement: &Statement, obstacle: Obstacle, made_up: Option<&MadeUp>) -> String {
    let words = words(obstacle);
    let lacks = matches!(
        obstacle,
        Obstacle::NotInLog | Obstacle::NoValues | Obstacle::Cut
    );
    match made_up.map(|made| made.why_not(statement)) {
        Some(Some(reason)) => format!("{words}, and none can be made up: {reason}"),
        Some(None) if lacks && statement.kind == Kind::Write => {
            format!("{words}; none are made up for writes, because rows are not changed by chance")
        }
        _ => words.to_owned(),
    }
}

/// Why statements are not replayed.
fn words(obstacle: Obstacle) -> &'static str {
    match obstacle {
        Obstacle::Kind(kind) => match kind {
            Kind::Utility => "changes definitions or settings, or maintains tables",
            Kind::Transaction => "begins or ends a transaction",
            Kind::Temporary => "uses a temporary table",
            Kind::Cursor => "uses a cursor",
            Kind::Copy => "copies rows",
            Kind::Call => "calls a procedure or runs a block of code",
            Kind::Read | Kind::Lock | Kind::Write => "cannot be replayed",
        },
        Obstacle::Several => "is several statements in one message",
        Obstacle::Cut => "all its values were cut in the log (log_parameter_max_length)",
        Obstacle::NoValues => "its values are not in the log",
        Obstacle::Broken => {
            "its text is not whole in the log, or has strings of standard_conforming_strings = off"
        }
        Obstacle::NotInLog => "is in pg_stat_statements only, which has no values",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_capture::Weight;

    fn capture() -> Capture {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.sql");
        let text = "-- weight: 3\nselect 1;\nselect 2 from t;\n-- weight: 6\ncommit;";
        std::fs::write(&path, text).unwrap();
        Capture::open(&path).unwrap()
    }

    #[test]
    fn calls_count_where_times_are_lower_bounds() {
        let mut capture = capture();
        for (statement, ms) in capture.statements.iter_mut().zip([1.0, 9.0, 10.0]) {
            (statement.total_ms, statement.weight) = (Some(ms), Weight::Log);
        }
        let shares = |work: &Work<'_>| -> Vec<(String, Option<f64>)> {
            let jobs = work.jobs.iter();
            jobs.map(|job| (job.statement.text.clone(), job.share))
                .collect()
        };
        let work = Work::of(&capture);
        assert_eq!(work.weighted_by, WeightedBy::Time);
        assert_eq!(
            shares(&work),
            [
                ("select 2 from t".to_owned(), Some(0.45)),
                ("select 1".to_owned(), Some(0.05))
            ]
        );
        capture.statements[0].weight = Weight::AtLeast;
        let work = Work::of(&capture);
        assert_eq!(work.weighted_by, WeightedBy::Calls);
        assert_eq!(
            shares(&work),
            [
                ("select 1".to_owned(), Some(0.3)),
                ("select 2 from t".to_owned(), Some(0.1))
            ]
        );
        assert_eq!((work.share, work.left_out[0].share), (Some(0.4), Some(0.6)));
    }
}
