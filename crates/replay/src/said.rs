//! What a server said about an error, without the values of the user.
//!
//! A message may quote a value anywhere, also with quotes in it, and a function of the database may write
//! anything. So a quoted piece stays only if it is an identifier of the statement.

use deltabench_capture::{TokenKind, executed_tokens};
use deltabench_driver::ServerError;
use std::collections::BTreeSet;

/// Data exceptions: what they quote is most often a value.
const OF_DATA: &str = "22";
/// Classes whose messages the server itself writes.
///
/// Source: PostgreSQL manual, "PostgreSQL Error Codes".
const OF_THE_SERVER: [&str; 20] = [
    "08", "0A", "22", "23", "25", "26", "28", "2B", "34", "3B", "3D", "3F", "40", "42", "53", "54",
    "55", "57", "58", "XX",
];
/// Beginnings of the names of functions that pass on what somebody else wrote: languages of functions, other
/// servers.
const PASSED_ON: [&str; 8] = [
    "exec_stmt_raise",
    "exec_stmt_assert",
    "plperl_",
    "PLy_",
    "throw_tcl_error",
    "plv8",
    "dblink_",
    "pgfdw_",
];
const LEFT_OUT: &str = "(message left out: a function may have written values into it)";
/// Shorter values are nobody's secret and part of many words.
const LEAST: usize = 2;

/// What a message may name, and what it must not show.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Known {
    /// Identifiers of the statement.
    names: BTreeSet<String>,
    /// Values, the longest first: one may hold another.
    values: Vec<String>,
}

impl Known {
    /// The identifiers of a statement; its literals and these values.
    pub fn of<'a>(sql: &'a str, values: impl Iterator<Item = &'a str>) -> Self {
        let mut known = Self::default();
        known.values.extend(values.map(str::to_owned));
        let found = executed_tokens(sql);
        for token in found.certain() {
            known.names.extend(token.name());
            if token.kind == TokenKind::Word {
                known.names.insert(token.text.to_owned());
            }
        }
        // As they are written, and as a message would quote them.
        let literals = found.tokens.iter();
        for token in literals.filter(|token| token.kind == TokenKind::Literal) {
            known.values.push(token.text.to_owned());
            known.values.extend(token.string());
        }
        known.values.retain(|value| value.chars().count() >= LEAST);
        known
            .values
            .sort_by_key(|value| std::cmp::Reverse(value.len()));
        known
    }

    /// Whether a quoted piece is no value: an identifier of the statement, or a sign such as `)`.
    fn allows(&self, piece: &str) -> bool {
        let sign = piece.len() <= LEAST && piece.bytes().all(|byte| byte.is_ascii_punctuation());
        let plain = !piece.is_empty() && !piece.contains(['"', '\n']);
        let mut parts = piece.split('.');
        sign || self.names.contains(piece) || plain && parts.all(|part| self.names.contains(part))
    }

    fn hidden(&self, text: &str, wanted: impl Fn(&str) -> bool) -> String {
        let values = self.values.iter().filter(|value| wanted(value));
        values.fold(text.to_owned(), |text, value| text.replace(value, "?"))
    }
}

/// The message of an error without values.
pub fn message(error: &ServerError, known: &Known) -> String {
    let class = error.sqlstate.get(..2).unwrap_or_default();
    let routine = error.routine.as_deref().unwrap_or_default();
    let passed_on = PASSED_ON.iter().any(|start| routine.starts_with(start));
    if passed_on || !OF_THE_SERVER.contains(&class) {
        return LEFT_OUT.to_owned();
    }
    let of_data = class == OF_DATA;
    let whole = known.hidden(&error.message, |value| value.contains('"'));
    let mut text = String::new();
    let mut rest = whole.as_str();
    while let Some((before, inside)) = rest.split_once('"') {
        text.push_str(&known.hidden(before, |_| true));
        let ended = inside.split_once('"').filter(|(piece, after)| {
            let ends = !after.starts_with(|next: char| next.is_alphanumeric() || next == '"');
            ends && !of_data && known.allows(piece)
        });
        rest = match ended {
            Some((piece, after)) => {
                text.push_str(&format!("\"{piece}\""));
                after
            }
            // A value may have quotes of its own: everything up to the last one may belong to it.
            None => {
                text.push_str("\"?\"");
                inside.rsplit_once('"').map_or("", |(_, after)| after)
            }
        };
    }
    text.push_str(&known.hidden(rest, |_| true));
    let line = text.lines().next().unwrap_or_default();
    if of_data {
        without_bytes(line)
    } else {
        line.to_owned()
    }
}

/// Bytes of data, as `0xe4`, as `?`.
fn without_bytes(line: &str) -> String {
    let shown = |word: &'_ str| if word.starts_with("0x") { "?" } else { word }.to_owned();
    line.split(' ').map(shown).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(sqlstate: &str, text: &str, sql: &str, values: &[&str]) -> String {
        message(
            &error(sqlstate, text),
            &Known::of(sql, values.iter().copied()),
        )
    }

    fn error(sqlstate: &str, message: &str) -> ServerError {
        ServerError {
            severity: "ERROR".to_owned(),
            sqlstate: sqlstate.to_owned(),
            message: message.to_owned(),
            detail: Some("secret".into()),
            hint: None,
            routine: None,
        }
    }

    #[test]
    fn only_identifiers_of_the_statement_are_quoted() {
        let bad = "invalid input syntax for type integer: \"secret\"";
        let hidden = "invalid input syntax for type integer: \"?\"";
        assert_eq!(said("22P02", bad, "select secret from t", &[]), hidden);
        let near = "syntax error at or near \"secret\"";
        assert_eq!(
            said("42601", near, "select 1", &[]),
            "syntax error at or near \"?\""
        );
        let bracket = "syntax error at or near \")\"";
        assert_eq!(said("42601", bracket, "select 1)", &[]), bracket);
        let table = "relation \"shop.orders\" does not exist";
        assert_eq!(
            said("42P01", table, "SELECT * FROM Shop.ORDERS", &[]),
            table
        );
        assert_eq!(
            said("42P01", table, "select $1::regclass", &["shop.orders"]),
            "relation \"?\" does not exist"
        );
        let quoted = "column \"Order No\" does not exist";
        assert_eq!(said("42703", quoted, "select \"Order No\"", &[]), quoted);
    }

    #[test]
    fn a_value_with_quotes_leaves_nothing() {
        for value in [
            "a\"secret-77\"b",
            "t\" secret-77 \"t",
            "secret-77\"",
            "t\"\nsecret-77",
        ] {
            for (sqlstate, start) in [
                ("22P02", "invalid value: "),
                ("42601", "syntax error near "),
            ] {
                let text = format!("{start}\"{value}\"");
                let (sent, written) = (&[value][..], format!("select t, '{value}'"));
                let found = [
                    said(sqlstate, &text, "select t", sent),
                    said(sqlstate, &text, &written, &[]),
                ];
                for found in found {
                    assert!(!found.contains("secret"), "{found}");
                    assert!(found.starts_with(start), "{found}");
                }
            }
        }
        let unquoted = "near secret-77, found";
        for written in [
            "select N'secret-77'",
            "select E'secret-77'",
            "select $x$secret-77$x$",
            "select $$secret-77$$",
            r"select E'\x73ecret-\u00377'",
            r"select U&'\0073ecret-77'",
        ] {
            assert_eq!(said("42601", unquoted, written, &[]), "near ?, found");
        }
    }

    #[test]
    fn words_of_strings_with_backslashes_are_no_names() {
        let near = "syntax error at or near \"secret\"";
        for written in [
            r"select a where b = 'it\'s secret' and c = 'd\'e'",
            "select 'it' secret ' b",
            r"select 'a' secret \ 'b'",
        ] {
            assert_eq!(
                said("42601", near, written, &[]),
                "syntax error at or near \"?\"",
                "{written}"
            );
        }
    }

    #[test]
    fn a_value_within_another_hides_nothing_of_it() {
        let found = said("42601", "near abcdef", "select 1", &["bc", "abcdef"]);
        assert_eq!(found, "near ?");
        let bytes = "invalid byte sequence for encoding \"UTF8\": 0xe4 0x20";
        let hidden = "invalid byte sequence for encoding \"?\": ? ?";
        assert_eq!(said("22021", bytes, "select 1", &[]), hidden);
    }

    #[test]
    fn what_a_function_wrote_is_left_out() {
        for sqlstate in ["P0001", "P0004", "HV000", "38000", "ZZ001", ""] {
            assert_eq!(said(sqlstate, "secret", "select f()", &[]), LEFT_OUT);
        }
        let mut raised = error("22023", "customer secret");
        raised.routine = Some("exec_stmt_raise".into());
        assert_eq!(message(&raised, &Known::default()), LEFT_OUT);
    }
}
