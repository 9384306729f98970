//! One SQL command: where its variables stand, and whether it changes data.

use super::parser::is_name_letter;
use super::scan::{Opaque, Sql, name_length};
use deltabench_model::work::pgbench::QueryMode;

/// An SQL command of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlStatement {
    /// With `$1 …` where variables stand in the extended and prepared modes; in simple mode as the script has
    /// it ([`super::Player::write_sql`] puts values in).
    pub sql: String,
    /// How many parameters it has; none in simple mode.
    pub parameters: usize,
    /// Statements that are sent at once, joined by `\;`. More than one only in simple mode.
    pub parts: u32,
    /// What becomes of its rows.
    pub capture: Option<Capture>,
    /// Which script it belongs to, of [`super::Program::scripts`].
    pub script: usize,
    /// Whether it stands between `\startpipeline` and `\endpipeline`. pgbench prepares all of these when the
    /// pipeline starts.
    pub pipelined: bool,
    /// Whether it stands inside of an `\if`, so that it may never be sent.
    pub conditional: bool,
}

/// Variables that are set from a result; `\gset` and `\aset`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capture {
    /// `\aset`: of each part that has rows, the last row. Otherwise the last part must have exactly one row.
    pub all: bool,
    /// What variables' names begin with, before the names of columns.
    pub prefix: String,
}

/// Parameters of one statement, as in pgbench.
pub(crate) const MOST_PARAMETERS: usize = 255;

/// Part of a command.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Piece {
    Text(String),
    /// `:name`.
    Variable {
        variable: usize,
        written: String,
    },
}

/// A command with the places of its variables.
///
/// Shape: as pgbench, variables are found in quotes and comments too.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Template {
    pub(crate) pieces: Vec<Piece>,
    /// The variables of its pieces, in order.
    pub(crate) variables: Vec<usize>,
    /// The first variable that stands where no parameter can.
    pub(crate) hidden: Option<(String, Opaque)>,
}

impl Template {
    pub(crate) fn of(sql: &Sql, intern: &mut dyn FnMut(&str) -> usize) -> Self {
        let mut template = Self {
            pieces: Vec::new(),
            variables: Vec::new(),
            hidden: None,
        };
        let (mut start, mut at) = (0, 0);
        while let Some(colon) = sql.text.get(at..).and_then(|rest| rest.find(':')) {
            let colon = at + colon;
            let after = sql.text.get(colon + 1..).unwrap_or_default();
            let named = after
                .starts_with(|letter: char| is_name_letter(letter) && !letter.is_ascii_digit());
            if !named {
                let colons = after.find(|letter| letter != ':').unwrap_or(after.len());
                at = colon + 1 + colons;
                continue;
            }
            at = colon + 1 + name_length(after);
            template.text(sql.text.get(start..colon));
            let written = sql.text.get(colon..at).unwrap_or_default();
            let hides = |(range, _): &&(std::ops::Range<usize>, Opaque)| range.contains(&colon);
            if let (None, Some((_, kind))) = (&template.hidden, sql.opaque.iter().find(hides)) {
                template.hidden = Some((written.to_owned(), *kind));
            }
            let variable = intern(written.get(1..).unwrap_or_default());
            template.variables.push(variable);
            template.pieces.push(Piece::Variable {
                variable,
                written: written.to_owned(),
            });
            start = at;
        }
        template.text(sql.text.get(start..));
        template
    }

    fn text(&mut self, text: Option<&str>) {
        match text {
            None | Some("") => {}
            Some(text) => self.pieces.push(Piece::Text(text.to_owned())),
        }
    }

    /// What is sent in a mode: with `$1 …` in the place of variables, or as it was written.
    pub(crate) fn sql(&self, mode: QueryMode) -> String {
        let mut sql = String::new();
        let mut number = 0;
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => sql.push_str(text),
                Piece::Variable { written, .. } if mode == QueryMode::Simple => {
                    sql.push_str(written)
                }
                Piece::Variable { .. } => {
                    number += 1;
                    sql.push_str(&format!("${number}"));
                }
            }
        }
        sql
    }
}

/// Whether a statement changes data, as far as its words, in lower case, tell.
///
/// Shape: queries, settings and the ends of transactions read; a query that locks rows, fills a table or
/// moves a sequence writes. What a function does is not seen.
pub(crate) fn writes(words: &[String]) -> bool {
    const READS: [&str; 24] = [
        "select",
        "values",
        "table",
        "with",
        "show",
        "set",
        "reset",
        "begin",
        "start",
        "commit",
        "end",
        "rollback",
        "abort",
        "savepoint",
        "release",
        "declare",
        "fetch",
        "move",
        "close",
        "explain",
        "discard",
        "deallocate",
        "listen",
        "unlisten",
    ];
    const CHANGES: [&str; 8] = [
        "insert", "update", "delete", "merge", "truncate", "into", "nextval", "setval",
    ];
    // A query may begin with a bracket.
    let mut first = words.iter().skip_while(|word| *word == "(");
    match first.next() {
        None => false,
        // The query of an `explain` that is not carried out counts all the same.
        Some(first) if READS.contains(&first.as_str()) => {
            let is_query = matches!(
                first.as_str(),
                "select" | "values" | "table" | "with" | "declare" | "explain" | "("
            );
            is_query
                && (words.iter().any(|word| CHANGES.contains(&word.as_str())) || locks_rows(words))
        }
        Some(_) => true,
    }
}

/// `for update`, `for no key update`, `for share`, `for key share`.
fn locks_rows(words: &[String]) -> bool {
    words.windows(2).any(|pair| match pair {
        [word, strength] => {
            word == "for" && matches!(strength.as_str(), "update" | "no" | "share" | "key")
        }
        _ => false,
    })
}

/// Whether a statement copies from or to the client, which pgbench cannot.
pub(crate) fn copies_to_client(words: &[String]) -> bool {
    words.first().is_some_and(|word| word == "copy")
        && words.iter().any(|word| word == "stdin" || word == "stdout")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pgbench::scan::{Scanner, Source};

    fn sql(text: &str) -> Sql {
        let mut scanner = Scanner::new(Source { file: "f", text });
        scanner.command().unwrap().0
    }

    fn parameters(text: &str) -> (String, Vec<String>) {
        let mut names = Vec::new();
        let template = Template::of(&sql(text), &mut |name| {
            names.push(name.to_owned());
            0
        });
        assert_eq!(template.sql(QueryMode::Simple), text);
        (template.sql(QueryMode::Prepared), names)
    }

    #[test]
    fn each_variable_is_a_parameter_wherever_it_stands() {
        for (text, sent, names) in [
            ("select :a, :b_2;", "select $1, $2;", vec!["a", "b_2"]),
            ("select :a, :a;", "select $1, $2;", vec!["a", "a"]),
            (
                "select x::int, :a::int;",
                "select x::int, $1::int;",
                vec!["a"],
            ),
            ("select a[1:2], y := 1;", "select a[1:2], y := 1;", vec![]),
            ("select ':a';", "select '$1';", vec!["a"]),
            ("select :ä;", "select $1;", vec!["ä"]),
            ("select 1", "select 1", vec![]),
        ] {
            assert_eq!(
                parameters(text),
                (
                    sent.to_owned(),
                    names.iter().map(|&n| n.to_owned()).collect()
                )
            );
        }
        let hidden = |text: &str| Template::of(&sql(text), &mut |_| 0).hidden;
        assert_eq!(
            hidden("select :a, ':b'"),
            Some((":b".to_owned(), Opaque::Quotes))
        );
        assert_eq!(
            hidden("select 1 -- :c"),
            Some((":c".to_owned(), Opaque::Comment))
        );
        assert_eq!(hidden("select '1:2', :d"), None);
    }

    #[test]
    fn queries_read_and_all_else_writes() {
        let changes = |text: &str| sql(text).statements.iter().any(|words| writes(words));
        for text in [
            "select abalance from pgbench_accounts where aid = 1;",
            "SELECT 'insert', \"update\" FROM t -- delete\n;",
            "(select 1) union (select 2);",
            "with a as (select 1) select * from a;",
            "begin;",
            "end;",
            "set local work_mem = '1MB';",
            "set transaction isolation level serializable;",
            "show work_mem;",
            "values (1);",
            "explain select 1;",
            "fetch 10 from c;",
            "",
            ";",
        ] {
            assert!(!changes(text), "{text}");
        }
        for text in [
            "insert into t values (1);",
            "Update t set a = 1;",
            "select 1 \\; delete from t;",
            "select * from t for update;",
            "select * from t for no key update skip locked;",
            "select nextval('s');",
            "select 1 into t;",
            "with a as (delete from t returning *) select * from a;",
            "explain analyze insert into t values (1);",
            "call p();",
            "vacuum t;",
            "copy t from '/f';",
            "do $$ $$;",
        ] {
            assert!(changes(text), "{text}");
        }
    }
}
