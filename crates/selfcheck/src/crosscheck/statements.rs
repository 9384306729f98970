//! What a server says it was sent, and whether two sides sent the same.
//!
//! Source: PostgreSQL manual, "pg_stat_statements". A `queryid` is a hash of the parse tree: equal ids on one
//! server mean the same statement over the same tables with parameters of the same types, whatever its
//! blanks and constants.

use deltabench_compare::thresholds::CROSSCHECK_COUNTS;
use deltabench_model::units::{count, to_f64};
use std::collections::BTreeMap;

/// A row of `pg_stat_statements`.
#[derive(Debug, Clone, PartialEq)]
pub struct StatementCount {
    /// `queryid`.
    pub id: String,
    /// The normalised text, blanks made one.
    pub text: String,
    pub calls: u64,
    pub rows: u64,
    /// Time of execution, milliseconds.
    pub time_ms: f64,
    /// `plans`; absent before version 13.
    pub plans: Option<u64>,
}

/// What a server counted while one side ran.
#[derive(Debug, Clone, PartialEq)]
pub struct Counted {
    /// Operations that the side did.
    pub operations: u64,
    pub statements: Vec<StatementCount>,
    /// Transactions of the database; absent where they were not looked at.
    pub transactions: Option<u64>,
}

impl Counted {
    /// Time of execution of all statements, milliseconds.
    pub fn time_ms(&self) -> f64 {
        self.statements
            .iter()
            .map(|statement| statement.time_ms)
            .sum()
    }

    fn find(&self, id: &str) -> Option<&StatementCount> {
        self.statements.iter().find(|statement| statement.id == id)
    }
}

/// What one side sends: for each operation, and once for each connection.
///
/// A short run and a long one differ in operations and in nothing else, so what does not grow with them
/// belongs to the connection.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// Statements that grow with the operations, by text.
    pub statements: Vec<StatementRate>,
    /// Texts of the others.
    pub once: Vec<String>,
    pub transactions: Option<f64>,
}

/// A statement of an operation.
#[derive(Debug, Clone, PartialEq)]
pub struct StatementRate {
    /// `queryid`.
    pub id: String,
    /// The normalised text, blanks made one.
    pub text: String,
    pub calls: f64,
    /// Rows for each call in each long run; empty for a statement that was not called.
    pub rows: Vec<f64>,
    /// Plans made for each call; absent before version 13.
    pub plans: Option<f64>,
}

impl Profile {
    /// The profile from one short run and some longer ones, each on a connection of its own.
    pub fn of(short: &Counted, long: &[Counted]) -> Self {
        let mut ids: BTreeMap<&str, &str> = BTreeMap::new();
        for statement in long.iter().flat_map(|run| &run.statements) {
            ids.insert(&statement.id, &statement.text);
        }
        let operations = long.iter().map(|run| run.operations).sum::<u64>();
        let grown = Grown {
            short,
            long,
            operations: operations.saturating_sub(short.operations * count(long.len())),
        };
        let mut profile = Self {
            statements: Vec::new(),
            once: Vec::new(),
            transactions: grown.transactions(),
        };
        for (id, text) in ids {
            match grown.rate(id, text) {
                Some(rate) => profile.statements.push(rate),
                None => profile.once.push(text.to_owned()),
            }
        }
        profile.statements.sort_by(|a, b| a.text.cmp(&b.text));
        profile.once.sort();
        profile
    }

    /// Calls of all statements for each operation.
    pub fn calls(&self) -> f64 {
        self.statements
            .iter()
            .map(|statement| statement.calls)
            .sum()
    }
}

/// What longer runs have more than as many short ones.
struct Grown<'a> {
    short: &'a Counted,
    long: &'a [Counted],
    operations: u64,
}

impl Grown<'_> {
    fn more(&self, of: impl Fn(&StatementCount) -> u64, id: &str) -> u64 {
        let all = self
            .long
            .iter()
            .filter_map(|run| run.find(id))
            .map(&of)
            .sum::<u64>();
        let once = self.short.find(id).map_or(0, &of);
        all.saturating_sub(once * count(self.long.len()))
    }

    fn rate(&self, id: &str, text: &str) -> Option<StatementRate> {
        let calls = self.more(|statement| statement.calls, id);
        if calls == 0 {
            return None;
        }
        let of_run = |run: &Counted| {
            let statement = run.find(id).filter(|statement| statement.calls > 0)?;
            Some(to_f64(statement.rows) / to_f64(statement.calls))
        };
        let mut counts = self.long.iter().filter_map(|run| run.find(id));
        let planned = counts.all(|statement| statement.plans.is_some());
        let plans = self.more(|statement| statement.plans.unwrap_or(0), id);
        Some(StatementRate {
            id: id.to_owned(),
            text: text.to_owned(),
            calls: to_f64(calls) / to_f64(self.operations.max(1)),
            rows: self.long.iter().filter_map(of_run).collect(),
            plans: planned.then(|| to_f64(plans) / to_f64(calls)),
        })
    }

    fn transactions(&self) -> Option<f64> {
        let short = self.short.transactions?;
        let counted = self.long.iter().filter(|run| run.transactions.is_some());
        let (mut more, mut operations) = (0, 0);
        for run in counted {
            more += run.transactions.unwrap_or(0).saturating_sub(short);
            operations += run.operations.saturating_sub(self.short.operations);
        }
        (operations > 0).then(|| to_f64(more) / to_f64(operations))
    }
}

/// How two sides differ in what they send.
#[derive(Debug, Clone, PartialEq)]
pub enum Difference {
    /// Only one side sends this statement.
    OnlyOn {
        /// Whether it is our own client.
        own: bool,
        text: String,
    },
    /// The same text, but not the same statement to the server: other types of parameters.
    OtherTypes { text: String },
    /// A statement is sent more often for each operation by one side.
    Calls {
        text: String,
        /// Our own client's calls.
        own: f64,
        /// The other tool's.
        peer: f64,
    },
    /// An operation is a different number of transactions.
    Transactions {
        /// Our own client's.
        own: f64,
        /// The other tool's.
        peer: f64,
    },
}

impl Difference {
    /// Whether it is one of numbers, not of SQL.
    pub fn is_of_counts(&self) -> bool {
        matches!(self, Self::Calls { .. } | Self::Transactions { .. })
    }
}

/// What two sides do not send alike; empty if they send the same.
pub fn differences(own: &Profile, peer: &Profile) -> Vec<Difference> {
    let mut found = Vec::new();
    for statement in &own.statements {
        let text = statement.text.clone();
        match find(peer, statement) {
            Some(other) if other.id != statement.id => found.push(Difference::OtherTypes { text }),
            Some(other) if (other.calls - statement.calls).abs() > CROSSCHECK_COUNTS => {
                found.push(Difference::Calls {
                    text,
                    own: statement.calls,
                    peer: other.calls,
                });
            }
            Some(_) => {}
            None => found.push(Difference::OnlyOn { own: true, text }),
        }
    }
    for statement in &peer.statements {
        if find(own, statement).is_none() {
            let text = statement.text.clone();
            found.push(Difference::OnlyOn { own: false, text });
        }
    }
    if let (Some(own), Some(peer)) = (own.transactions, peer.transactions)
        && (own - peer).abs() > CROSSCHECK_COUNTS
    {
        found.push(Difference::Transactions { own, peer });
    }
    found
}

/// The same statement on the other side: by id, else by text.
pub fn find<'a>(profile: &'a Profile, wanted: &StatementRate) -> Option<&'a StatementRate> {
    let statements = || profile.statements.iter();
    statements()
        .find(|statement| statement.id == wanted.id)
        .or_else(|| statements().find(|statement| statement.text == wanted.text))
}

/// A text with every run of blanks made one.
pub(crate) fn one_line(text: &str) -> String {
    text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(operations: u64, transactions: u64, rows: &[(&str, &str, u64, u64)]) -> Counted {
        let statement = |&(id, text, calls, rows): &(&str, &str, u64, u64)| StatementCount {
            id: id.to_owned(),
            text: one_line(text),
            calls,
            rows,
            time_ms: 0.5,
            plans: Some(calls.min(6)),
        };
        Counted {
            operations,
            statements: rows.iter().map(statement).collect(),
            transactions: Some(transactions),
        }
    }

    /// As version 18 counts `oltp_read_write` of one table: BEGIN and COMMIT once for each connection.
    fn sysbench() -> Profile {
        const POINT: &str = "SELECT c FROM sbtest1 WHERE id=$1";
        const RANGE: &str = "SELECT c FROM sbtest1 WHERE id BETWEEN $1 AND $2";
        let short = counted(
            1,
            8,
            &[
                ("1", POINT, 10, 10),
                ("2", RANGE, 1, 100),
                ("3", "BEGIN", 1, 0),
            ],
        );
        let long = counted(
            201,
            208,
            &[
                ("1", POINT, 2010, 2010),
                ("2", RANGE, 201, 20_000),
                ("3", "BEGIN", 1, 0),
            ],
        );
        Profile::of(&short, &[long.clone(), long])
    }

    #[test]
    fn what_does_not_grow_with_the_operations_belongs_to_the_connection() {
        let profile = sysbench();
        assert_eq!(profile.once, ["BEGIN"]);
        let rates: Vec<(&str, f64)> = profile
            .statements
            .iter()
            .map(|statement| (statement.id.as_str(), statement.calls))
            .collect();
        assert_eq!(rates, [("2", 1.0), ("1", 10.0)]);
        assert!((profile.calls() - 11.0).abs() < 1e-12);
        assert_eq!(profile.transactions, Some(1.0));
    }

    #[test]
    fn rows_are_for_each_call_of_each_long_run() {
        let profile = sysbench();
        assert_eq!(profile.statements[0].rows, [20_000.0 / 201.0; 2]);
        assert_eq!(profile.statements[1].rows, [1.0; 2]);
    }

    #[test]
    fn plans_of_the_connection_are_not_counted_for_the_operations() {
        // Six plans each of two long runs, one and six of each short one.
        let plans: Vec<f64> = sysbench()
            .statements
            .iter()
            .filter_map(|s| s.plans)
            .collect();
        assert_eq!(plans, [10.0 / 400.0, 0.0]);
    }

    #[test]
    fn a_profile_agrees_with_itself() {
        assert_eq!(differences(&sysbench(), &sysbench()), []);
    }

    #[test]
    fn blanks_do_not_matter_but_types_do() {
        let mut own = sysbench();
        own.statements[1].text = one_line("SELECT c\n  FROM sbtest1\n  WHERE id=$1 ");
        assert_eq!(differences(&own, &sysbench()), []);
        own.statements[1].id = "-77".to_owned();
        let text = own.statements[1].text.clone();
        assert_eq!(
            differences(&own, &sysbench()),
            [Difference::OtherTypes { text }]
        );
    }

    #[test]
    fn a_statement_on_one_side_only_is_found_from_either_side() {
        let mut own = sysbench();
        let gone = own.statements.remove(0).text;
        let only = |own| Difference::OnlyOn {
            own,
            text: gone.clone(),
        };
        assert_eq!(differences(&own, &sysbench()), [only(false)]);
        assert_eq!(differences(&sysbench(), &own), [only(true)]);
    }

    #[test]
    fn other_counts_are_found() {
        let mut own = sysbench();
        own.statements[1].calls = 9.0;
        own.transactions = Some(12.0);
        let found = differences(&own, &sysbench());
        assert!(found.iter().all(Difference::is_of_counts));
        assert_eq!(
            found,
            [
                Difference::Calls {
                    text: own.statements[1].text.clone(),
                    own: 9.0,
                    peer: 10.0
                },
                Difference::Transactions {
                    own: 12.0,
                    peer: 1.0
                },
            ]
        );
    }
}
