//! A statement of the workload with the values that it was executed with.

use crate::lexer::tokens;
use crate::parts::statements;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How a client sent a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// One message with the whole text, its values written into it.
    Simple,
    /// Parse, Bind and Execute each time, of an unnamed statement.
    Extended,
    /// Bind and Execute of a statement that was prepared under a name.
    Prepared,
}

impl Protocol {
    /// The word in reports and files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Simple => "simple",
            Self::Extended => "extended",
            Self::Prepared => "prepared",
        }
    }
}

/// What a statement does, as far as its text says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Returns rows and changes nothing.
    Read,
    /// Locks rows, or takes an advisory lock.
    Lock,
    /// Changes rows of tables, or a sequence.
    Write,
    /// Changes definitions or settings, or maintains tables.
    Utility,
    /// Begins or ends a transaction or a part of one.
    Transaction,
    /// Uses a temporary table.
    Temporary,
    /// Declares, reads or closes a cursor.
    Cursor,
    /// Copies rows to or from the client or a file.
    Copy,
    /// Calls a procedure or runs a block of code.
    Call,
}

impl Kind {
    /// Whether statements of this kind are replayed; all others are only counted.
    pub fn is_replayed(self) -> bool {
        matches!(self, Self::Read | Self::Lock | Self::Write)
    }

    /// The word in reports and files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Lock => "lock",
            Self::Write => "write",
            Self::Utility => "utility",
            Self::Transaction => "transaction",
            Self::Temporary => "temporary",
            Self::Cursor => "cursor",
            Self::Copy => "copy",
            Self::Call => "call",
        }
    }
}

/// Where the calls and times of a statement come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Weight {
    /// Counted in the log, multiplied by the sampling.
    #[default]
    Log,
    /// Counted in the log. Most executions have no duration there, so the time is a lower bound.
    #[serde(rename = "at-least")]
    AtLeast,
    /// `pg_stat_statements`.
    Statistics,
    /// Written in a file of statements, or 1.
    File,
}

/// Values of the parameters of a statement, as an execution had them.
///
/// Values are secrets: `Debug` does not show them.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Tuple {
    /// The whole text of this execution, if it is not the statement's [`text`](Statement::text): its literals
    /// or the length of its lists differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Values of `$1`, `$2` and so on in text form; absent is NULL.
    #[serde(rename = "v", default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<Option<String>>,
    /// Mean duration of the executions with these values that were chosen, in milliseconds; absent if the log
    /// has no durations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ms: Option<f64>,
    /// Executions that this tuple stands for. Its share of the statement's tuples counts, not the number:
    /// the sum may differ from [`calls`](Statement::calls).
    pub n: f64,
}

impl fmt::Debug for Tuple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tuple")
            .field("values", &self.values.len())
            .field("ms", &self.ms)
            .field("n", &self.n)
            .finish_non_exhaustive()
    }
}

/// Executions in the log that cannot be executed again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Unusable {
    /// Executions with a value that was cut by `log_parameter_max_length`.
    pub cut: u64,
    /// Executions with parameters whose values are not in the log.
    pub without_values: u64,
    /// Executions whose text is not whole, or has strings of `standard_conforming_strings = off`.
    pub broken: u64,
}

impl Unusable {
    /// All of them.
    pub fn sum(self) -> u64 {
        self.cut + self.without_values + self.broken
    }

    fn is_none(&self) -> bool {
        self.sum() == 0
    }
}

/// Why a statement cannot be replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Obstacle {
    /// Statements of its kind are only counted.
    Kind(Kind),
    /// It is several statements in one message. Each has a plan of its own, and what replays sends one at a
    /// time.
    Several,
    /// Every execution had a value that was cut.
    Cut,
    /// It has parameters, and their values are not in the log.
    NoValues,
    /// Its text is not whole, or has strings of `standard_conforming_strings = off`.
    Broken,
    /// Only `pg_stat_statements` has it, which has no values.
    NotInLog,
}

impl Obstacle {
    /// The word in files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Kind(kind) => kind.word(),
            Self::Several => "several",
            Self::Cut => "cut-values",
            Self::NoValues => "no-values",
            Self::Broken => "broken-text",
            Self::NotInLog => "not-in-log",
        }
    }

    /// What such statements are or have, for people.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Kind(Kind::Transaction) => "control of transactions",
            Self::Kind(Kind::Temporary) => "temporary tables",
            Self::Kind(Kind::Cursor) => "cursors of SQL",
            Self::Kind(Kind::Copy) => "COPY",
            Self::Kind(Kind::Call) => {
                "procedures, and functions that act outside of the transaction"
            }
            // Reads, locks and writes are replayed.
            Self::Kind(_) => "definitions, settings, maintenance, EXECUTE of SQL",
            Self::Several => "several statements in one message",
            Self::Cut => "values that log_parameter_max_length cut",
            Self::NoValues => "parameters whose values are not in the log",
            Self::Broken => {
                "text or values that are not whole, or strings of standard_conforming_strings = off"
            }
            Self::NotInLog => "in pg_stat_statements only, which has no values",
        }
    }
}

/// A statement of the workload: all executions with one normalised text, sent in one way by one role to one
/// database.
///
/// Text and values are secrets: `Debug` shows the normalised text only, and so do all reports.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Statement {
    /// Known by this in every capture: 16 hexadecimal digits of what the executions have in common.
    pub id: String,
    /// Its name, if it was written in a file: that of the file, with a number if the file has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The text without values, for people.
    pub normalised: String,
    /// The text as it was sent, with `$1`, or in the simple protocol with the values of one execution. The
    /// normalised one if the statement cannot be replayed, and if no values can be made up for it.
    pub text: String,
    /// How it was sent.
    pub protocol: Protocol,
    /// Who sent it, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// To which database, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// The `search_path` that its session had set, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search_path: Option<String>,
    /// What it does.
    pub kind: Kind,
    /// Executions in the workload.
    pub calls: u64,
    /// Time of all executions with planning, in milliseconds; absent if not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_ms: Option<f64>,
    /// Time of parsing and planning in it, in milliseconds; absent if not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_ms: Option<f64>,
    /// Mean rows of an execution; absent if not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<f64>,
    /// Where calls and times come from.
    pub weight: Weight,
    /// Functions in it whose answer depends on the moment, on luck or on the session, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volatile: Vec<String>,
    /// Its identifiers on the captured server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub query_ids: Vec<i64>,
    /// Executions that ended with an error. They are not in `calls`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub errors: u64,
    /// Executions in the log that cannot be executed again. They are in `calls`.
    #[serde(default, skip_serializing_if = "Unusable::is_none")]
    pub unusable: Unusable,
    /// What it is executed with; one without values if it has no parameters. Empty if it cannot be replayed
    /// as it was captured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tuples: Vec<Tuple>,
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

impl Statement {
    /// The text to send for a tuple of this statement.
    pub fn sent<'a>(&'a self, tuple: &'a Tuple) -> &'a str {
        tuple.text.as_deref().unwrap_or(&self.text)
    }

    /// Whether it only lacks values, and may be replayed with others: it reads or locks rows. Rows that a
    /// write would change or add are not chosen by chance.
    pub fn lacks_values(&self) -> bool {
        matches!(self.kind, Kind::Read | Kind::Lock)
            && matches!(
                self.obstacle(),
                Some(Obstacle::NotInLog | Obstacle::NoValues | Obstacle::Cut)
            )
    }

    /// Whether its text is more than one statement.
    fn is_several(&self) -> bool {
        // Most have no semicolon but at the end: they need no look at their words.
        let text = self.normalised.trim_end_matches([';', ' ']);
        text.contains(';') && statements(&tokens(text).tokens).len() > 1
    }

    /// Why it cannot be replayed; absent if it can.
    pub fn obstacle(&self) -> Option<Obstacle> {
        if !self.kind.is_replayed() {
            return Some(Obstacle::Kind(self.kind));
        }
        if self.is_several() {
            return Some(Obstacle::Several);
        }
        if !self.tuples.is_empty() {
            return None;
        }
        Some(match self.unusable {
            unusable if unusable.sum() == 0 => Obstacle::NotInLog,
            unusable if unusable.broken == unusable.sum() => Obstacle::Broken,
            unusable if unusable.cut == 0 => Obstacle::NoValues,
            _ => Obstacle::Cut,
        })
    }
}

impl fmt::Debug for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Statement")
            .field("id", &self.id)
            .field("normalised", &self.normalised)
            .field("protocol", &self.protocol)
            .field("kind", &self.kind)
            .field("calls", &self.calls)
            .field("tuples", &self.tuples)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn statement() -> Statement {
        Statement {
            id: "7f3a000000000000".to_owned(),
            name: None,
            normalised: "select * from orders where customer = ?".to_owned(),
            text: "SELECT * FROM orders WHERE customer = $1".to_owned(),
            protocol: Protocol::Prepared,
            role: Some("app".to_owned()),
            database: Some("shop".to_owned()),
            search_path: None,
            kind: Kind::Read,
            calls: 812_334,
            total_ms: Some(94_120.4),
            plan_ms: None,
            rows: Some(9.8),
            weight: Weight::Log,
            volatile: vec!["now".to_owned()],
            query_ids: vec![-7],
            errors: 0,
            unusable: Unusable::default(),
            tuples: vec![Tuple {
                text: None,
                values: vec![Some("secret".to_owned()), None],
                ms: Some(0.12),
                n: 3.0,
            }],
        }
    }

    #[test]
    fn what_is_printed_for_developers_has_no_values() {
        let mut statement = statement();
        statement.text = "select 'secret'".to_owned();
        statement.tuples[0].text = Some("select 'secret'".to_owned());
        let shown = format!("{statement:?} {statement:#?}");
        assert!(!shown.contains("secret"), "{shown}");
        assert!(shown.contains("customer = ?"), "{shown}");
    }

    #[test]
    fn the_obstacle_is_the_reason_that_most_explains() {
        let mut statement = statement();
        assert_eq!(statement.obstacle(), None);
        statement.tuples.clear();
        assert_eq!(statement.obstacle(), Some(Obstacle::NotInLog));
        statement.unusable.broken = 2;
        assert_eq!(statement.obstacle(), Some(Obstacle::Broken));
        statement.unusable.without_values = 1;
        assert_eq!(statement.obstacle(), Some(Obstacle::NoValues));
        statement.unusable.cut = 1;
        assert_eq!(statement.obstacle(), Some(Obstacle::Cut));
        statement.kind = Kind::Copy;
        assert_eq!(statement.obstacle(), Some(Obstacle::Kind(Kind::Copy)));
    }

    #[test]
    fn several_statements_in_one_text_are_an_obstacle_of_their_own() {
        let mut statement = statement();
        for (text, several) in [
            ("select ?; select * from orders where customer = ?", true),
            ("select ?; ;", false),
            (
                "create rule r as on insert to t do (select ?; select ?)",
                false,
            ),
            ("select \"a;b\" from t", false),
        ] {
            statement.normalised = text.to_owned();
            let found = statement.obstacle();
            assert_eq!(found, several.then_some(Obstacle::Several), "{text}");
        }
        statement.normalised = "select ?; select $1".to_owned();
        statement.tuples.clear();
        assert!(!statement.lacks_values(), "no values are made up for it");
        statement.kind = Kind::Transaction;
        assert_eq!(
            statement.obstacle(),
            Some(Obstacle::Kind(Kind::Transaction))
        );
    }

    #[test]
    fn a_tuple_with_a_text_of_its_own_sends_that() {
        let mut statement = statement();
        assert_eq!(statement.sent(&statement.tuples[0]), statement.text);
        statement.tuples[0].text = Some("select 2".to_owned());
        assert_eq!(statement.sent(&statement.tuples[0]), "select 2");
    }
}
