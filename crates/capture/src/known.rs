//! What is known of a text; many executions share it.

use crate::fingerprint::Fingerprint;
use crate::kind::{Nature, in_common, temporary_made_by};
use crate::lexer::{Token, TokenKind, tokens};
use crate::session::path_set_by;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

/// A text, read once.
pub(crate) struct Known {
    pub text: Rc<str>,
    pub fingerprint: Fingerprint,
    pub nature: Nature,
    /// Whether it ends inside a string or comment.
    pub is_cut: bool,
    /// The highest `$n` in it.
    pub parameters: usize,
    /// The `search_path` that it sets for its session.
    pub path: Option<Option<String>>,
    /// The temporary table that it makes.
    pub temporary: Option<String>,
}

impl Known {
    pub(crate) fn of(text: &str) -> Self {
        let found = tokens(text);
        let nature = Nature::of(&found.tokens);
        let parameters = found
            .tokens
            .iter()
            .filter(|token| token.kind == TokenKind::Parameter);
        // Where a string does not end, words that follow may be values.
        let is_safe = |token: &&Token<'_>| !found.is_cut || token.kind != TokenKind::Literal;
        let safe: Vec<Token<'_>> = found.tokens.iter().take_while(is_safe).copied().collect();
        let numbers = parameters.filter_map(|token| token.text.strip_prefix('$')?.parse().ok());
        Self {
            text: text.into(),
            fingerprint: Fingerprint::of(&in_common(&safe)),
            is_cut: found.is_cut,
            parameters: numbers.max().unwrap_or(0),
            path: path_set_by(&found.tokens),
            temporary: temporary_made_by(&found.tokens),
            nature,
        }
    }

    /// Whether one of these tables is in the text.
    pub(crate) fn uses(&self, tables: &BTreeSet<String>) -> bool {
        !tables.is_empty()
            && tokens(&self.text).tokens.iter().any(|token| {
                token.kind == TokenKind::Word && tables.contains(&token.text.to_ascii_lowercase())
            })
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
    fn words_of_a_string_that_does_not_end_are_not_shown() {
        let known = Known::of("select a from t where b = 'it\\'s secret'");
        assert!(known.is_cut);
        assert_eq!(known.fingerprint.normalised, "select a from t where b =");
        let known = Known::of("select 'secret");
        assert_eq!(known.fingerprint.normalised, "select");
    }
}
