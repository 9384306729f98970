//! A capture without the values of users: each is replaced by another of its shape.
//!
//! Equal values stay equal, in texts and in parameters. What stays as it is: docs/guide/replay.md, "Without
//! values".

mod shape;

use crate::capture::Capture;
use crate::lexer::{Token, TokenKind, tokens};
use crate::statement::Statement;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use sha2::{Digest, Sha256};
use shape::Shape;
use std::collections::{BTreeMap, BTreeSet};

/// Draws for a value before one is taken that another value has, too: short numbers are few.
const TRIES: u32 = 64;
/// Words before a number that says how many rows are wanted: it is no value of a user.
const COUNTED: [&str; 4] = ["limit", "offset", "first", "next"];

/// Functions that take the name of a sequence, a setting or a table.
const NAMING: [&str; 5] = [
    "nextval",
    "currval",
    "setval",
    "current_setting",
    "to_regclass",
];

/// Replaces the values of all statements. `key` decides by what; whoever has it, and guesses a value, can
/// check the guess: draw it anew, and keep it nowhere.
pub fn redact(capture: &mut Capture, key: [u8; 32]) {
    let mut values = Values {
        key,
        originals: BTreeSet::new(),
        used: BTreeSet::new(),
        known: BTreeMap::new(),
    };
    for statement in &capture.statements {
        values.collect(statement);
    }
    for statement in &mut capture.statements {
        values.replace_in(statement);
    }
    capture.header.redacted = true;
}

/// Whether the literal in this place says how many rows are wanted, or names an object.
fn is_no_value(tokens: &[Token<'_>], place: usize) -> bool {
    let before = |back: usize| place.checked_sub(back).and_then(|at| tokens.get(at));
    let is_one = |back: usize, words: &[&str]| {
        before(back).is_some_and(|token| words.iter().any(|word| token.is_word(word)))
    };
    let after = |ahead: usize| tokens.get(place + ahead);
    let named = before(1).is_some_and(|token| token.is_mark("(")) && is_one(2, &NAMING);
    let cast = after(1).is_some_and(|token| token.is_mark("::"))
        && after(2).is_some_and(|token| token.is_word("regclass"));
    is_one(1, &COUNTED) || named || cast
}

/// What replaces what.
struct Values {
    key: [u8; 32],
    /// All values of the capture that are replaced.
    originals: BTreeSet<String>,
    used: BTreeSet<String>,
    known: BTreeMap<String, String>,
}

impl Values {
    fn collect(&mut self, statement: &Statement) {
        let texts = statement
            .tuples
            .iter()
            .filter_map(|tuple| tuple.text.as_deref());
        for text in texts.chain([statement.text.as_str()]) {
            let found = tokens(text);
            let literals = found
                .tokens
                .iter()
                .filter(|token| token.kind == TokenKind::Literal);
            self.originals
                .extend(literals.map(|token| Literal::of(token.text).inner.to_owned()));
        }
        let values = statement.tuples.iter().flat_map(|tuple| &tuple.values);
        self.originals.extend(values.flatten().cloned());
    }

    fn replace_in(&mut self, statement: &mut Statement) {
        statement.text = self.text(&statement.text);
        for tuple in &mut statement.tuples {
            tuple.text = tuple.text.as_deref().map(|text| self.text(text));
            for value in tuple.values.iter_mut().flatten() {
                *value = self.value(value);
            }
        }
    }

    /// A text with other literals, and without comments: tools write values of requests into them.
    fn text(&mut self, text: &str) -> String {
        let found = tokens(text);
        let mut out = String::with_capacity(text.len());
        let mut end = 0;
        for (place, token) in found.tokens.iter().enumerate() {
            let gap = text.get(end..token.at).unwrap_or_default();
            // Strings on two lines are one.
            out.push_str(match (gap.contains('\n'), gap.is_empty()) {
                (true, _) => "\n",
                (false, true) => "",
                (false, false) => " ",
            });
            match token.kind {
                TokenKind::Literal if !is_no_value(&found.tokens, place) => {
                    out.push_str(&self.literal(token.text));
                }
                _ => out.push_str(token.text),
            }
            end = token.at + token.text.len();
        }
        out
    }

    fn literal(&mut self, text: &str) -> String {
        let Literal {
            before,
            inner,
            after,
        } = Literal::of(text);
        let digits = match before.chars().next() {
            Some('b' | 'B') => Some(2),
            Some('x' | 'X') => Some(16),
            _ => None,
        };
        let replaced = match digits {
            Some(base) => Shape::Digits(base).draw(inner, &mut self.random(inner, 0)),
            None => self.value(inner),
        };
        format!("{before}{replaced}{after}")
    }

    /// What stands for a value everywhere.
    fn value(&mut self, value: &str) -> String {
        if let Some(known) = self.known.get(value) {
            return known.clone();
        }
        let Some(shape) = Shape::of(value) else {
            return value.to_owned();
        };
        let mut drawn = String::new();
        for attempt in 0..TRIES {
            drawn = shape.draw(value, &mut self.random(value, attempt));
            if !self.originals.contains(&drawn) && !self.used.contains(&drawn) {
                break;
            }
        }
        self.used.insert(drawn.clone());
        self.known.insert(value.to_owned(), drawn.clone());
        drawn
    }

    fn random(&self, value: &str, attempt: u32) -> Xoshiro256PlusPlus {
        let mut hash = Sha256::new();
        hash.update(self.key);
        hash.update(attempt.to_be_bytes());
        hash.update(value);
        Xoshiro256PlusPlus::from_seed(hash.finalize().into())
    }
}

/// A literal with what encloses its value: `E'`, `'`; `$x$`, `$x$`; nothing for a number.
struct Literal<'a> {
    before: &'a str,
    inner: &'a str,
    after: &'a str,
}

impl<'a> Literal<'a> {
    fn of(text: &'a str) -> Self {
        let whole = Self {
            before: "",
            inner: text,
            after: "",
        };
        let cut = |from: usize, to: usize| {
            let (before, rest) = text.split_at_checked(from)?;
            let (inner, after) = rest.split_at_checked(to.checked_sub(from)?)?;
            Some(Self {
                before,
                inner,
                after,
            })
        };
        let parts = match (text.find('\''), text.starts_with('$')) {
            // The second dollar ends the opening tag, which is as long as the closing one.
            (_, true) => text
                .get(1..)
                .and_then(|rest| rest.find('$'))
                .and_then(|at| {
                    let tag = at + 2;
                    cut(tag, text.len().checked_sub(tag)?)
                }),
            (Some(quote), _) => cut(quote + 1, text.len() - usize::from(text.ends_with('\''))),
            (None, _) => None,
        };
        parts.unwrap_or(whole)
    }
}

#[cfg(test)]
mod tests;
