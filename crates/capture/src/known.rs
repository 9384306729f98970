//! What is known of a text; many executions share it.

use crate::fingerprint::Fingerprint;
use crate::kind::{Nature, in_common};
use crate::lexer::{Token, TokenKind, executed_tokens};
use crate::parts::statements;
use crate::session::{Effect, effects};
use crate::statement::Kind;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// A text, read once.
pub(crate) struct Known {
    pub text: Rc<str>,
    pub fingerprint: Fingerprint,
    pub nature: Nature,
    /// Whether it ends inside a string or comment.
    pub is_cut: bool,
    /// Whether its strings are those of `standard_conforming_strings = off`.
    pub escapes: bool,
    /// The highest `$n` in it.
    pub parameters: usize,
    /// What it changes in its session.
    pub effects: Vec<Effect>,
    /// Whether it is several statements: the server's identifier is then that of the last one.
    pub is_several: bool,
}

impl Known {
    pub(crate) fn of(text: &str) -> Self {
        let found = executed_tokens(text);
        let nature = Nature::of(&found.tokens);
        let parameters = found
            .tokens
            .iter()
            .filter(|token| token.kind == TokenKind::Parameter);
        let numbers = parameters.filter_map(|token| token.text.strip_prefix('$')?.parse().ok());
        Self {
            text: text.into(),
            fingerprint: Fingerprint::of(&in_common(found.certain())),
            is_cut: found.is_cut,
            escapes: found.escapes,
            parameters: numbers.max().unwrap_or(0),
            effects: effects(&found.tokens),
            is_several: statements(&found.tokens).len() > 1,
            nature,
        }
    }

    /// Whether it can be replayed if somebody makes values up for its parameters.
    pub(crate) fn may_get_values(&self) -> bool {
        let reads = matches!(self.nature.kind, Kind::Read | Kind::Lock);
        reads && !self.is_cut && !self.escapes && !self.is_several
    }

    /// Whether one of these tables is in the text.
    pub(crate) fn uses(&self, tables: &BTreeMap<String, bool>) -> bool {
        if tables.is_empty() {
            return false;
        }
        // Texts come again and again: most of them have no such name anywhere, whatever their tokens are.
        let text = self.text.to_ascii_lowercase();
        let written = |table: &String| table.to_ascii_lowercase().replace('"', "\"\"");
        let may_use =
            text.contains("u&\"") || tables.keys().any(|table| text.contains(&written(table)));
        let names = |token: &Token<'_>| token.name().is_some_and(|name| tables.contains_key(&name));
        may_use && executed_tokens(&self.text).tokens.iter().any(names)
    }
}

/// Texts that were read lately: prepared statements come again and again.
#[derive(Default)]
pub(crate) struct Texts {
    known: HashMap<Rc<str>, Rc<Known>>,
    /// Bytes of them.
    bytes: usize,
}

/// More texts than these are simple ones with values in them, which do not come again.
const MOST: usize = 10_000;
const MOST_BYTES: usize = 16 << 20;

impl Texts {
    pub(crate) fn known(&mut self, text: &str) -> Rc<Known> {
        if let Some(known) = self.known.get(text) {
            return known.clone();
        }
        let known = Rc::new(Known::of(text));
        self.bytes += text.len();
        if self.known.len() >= MOST || self.bytes > MOST_BYTES {
            self.known.clear();
            self.bytes = text.len();
        }
        self.known.insert(known.text.clone(), known.clone());
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_strings_with_backslashes_are_not_shown() {
        let shown = |text: &str| {
            let known = Known::of(text);
            (known.fingerprint.normalised, known.is_cut)
        };
        let wanted = |text: &str| (text.to_owned(), false);
        let cases = [
            (
                "select a from t where b = 'it\\'s secret' and c = 'd\\'e'",
                "select a from t where b = ? and c = ?",
            ),
            ("select E'a'\n'b\\'c secret'", "select ?"),
            ("select 'a'\n  'b'", "select ?"),
            ("select 'C:\\' || 'd'", "select ? || ?"),
        ];
        for (text, normalised) in cases {
            assert_eq!(shown(text), wanted(normalised), "{text}");
        }
        // No reading has an end for each string.
        assert_eq!(shown("select \\ 'secret"), ("select".to_owned(), true));
        assert_eq!(
            shown("select 'a\\' secret \\ ''"),
            ("select".to_owned(), true)
        );
    }

    #[test]
    fn a_text_uses_a_table_however_it_is_spelled() {
        let uses = |text: &str| {
            let names = ["scratch", "My \"table\""];
            let tables = names.iter().map(|name| ((*name).to_owned(), false));
            Known::of(text).uses(&tables.collect())
        };
        for text in [
            "select * from SCRATCH",
            "select * from pg_temp.\"scratch\"",
            "select * from \"My \"\"table\"\"\"",
            "select * from U&\"scr\\0061tch\"",
        ] {
            assert!(uses(text), "{text}");
        }
        for text in [
            "select * from scratches",
            "select 'scratch'",
            "select 1 -- scratch",
            "select * from \"Scratch\"",
        ] {
            assert!(!uses(text), "{text}");
        }
    }

    #[test]
    fn words_of_a_string_that_does_not_end_are_not_shown() {
        let known = Known::of("select a from t where b = 'it\\'s secret'");
        assert!(known.is_cut);
        assert_eq!(known.fingerprint.normalised, "select a from t where b =");
        let known = Known::of("select 'secret");
        assert_eq!(known.fingerprint.normalised, "select");
    }
}
