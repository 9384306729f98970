//! A capture without the values of users: each is replaced by another of its shape.
//!
//! Equal values stay equal, in texts and in parameters. What stays as it is: docs/guide/replay.md, "Without
//! values".

mod draw;
mod parts;
mod shape;

use crate::capture::Capture;
use crate::lexer::{Token, TokenKind, tokens};
use crate::statement::Statement;
use parts::{Part, parts};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use sha2::{Digest, Sha256};
use shape::{Shape, digits, stays};
use std::collections::{BTreeMap, BTreeSet};

/// Draws for a value before one is taken that another value has, too: short numbers are few.
const TRIES: u32 = 64;
/// Words before a number that says how many rows are wanted: it is no value of a user.
const COUNTED: [&str; 4] = ["limit", "offset", "first", "next"];
/// Digits of such a number: more rows than this nobody wants, and it may be something else.
const OF_COUNT: usize = 10;
/// Functions that take the name of a sequence, a setting or a table.
const NAMING: [&str; 5] = [
    "nextval",
    "currval",
    "setval",
    "current_setting",
    "to_regclass",
];
/// What all servers take for a time zone.
const ZONE: &str = "UTC";
/// The tag of all strings in dollars.
const TAG: &str = "$d$";
/// Blanks that types pass over before and behind a value.
const BLANKS: [char; 4] = [' ', '\t', '\n', '\r'];

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

/// What becomes of the literal in a place of a text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// It says how many rows are wanted, or names an object: it stays.
    Kept,
    /// It names a time zone.
    Zone,
    Value,
}

impl Use {
    fn of(tokens: &[Token<'_>], place: usize) -> Self {
        let before = |back: usize| place.checked_sub(back).and_then(|at| tokens.get(at));
        let is_one = |back: usize, words: &[&str]| {
            before(back).is_some_and(|token| words.iter().any(|word| token.is_word(word)))
        };
        let after = |ahead: usize| tokens.get(place + ahead);
        let text = tokens.get(place).map_or("", |token| token.text);
        let counts = is_one(1, &COUNTED) && digits(text) && text.len() <= OF_COUNT;
        let named = before(1).is_some_and(|token| token.is_mark("(")) && is_one(2, &NAMING);
        let cast = after(1).is_some_and(|token| token.is_mark("::"))
            && after(2).is_some_and(|token| token.is_word("regclass"));
        match counts || (named || cast) && is_name(text) {
            true => Self::Kept,
            false if is_one(1, &["zone"]) && is_one(2, &["time"]) => Self::Zone,
            false => Self::Value,
        }
    }
}

/// Whether a literal is a plain string with a name in it: `'shop.orders_id_seq'`.
fn is_name(literal: &str) -> bool {
    let bare = literal
        .strip_prefix('\'')
        .and_then(|rest| rest.strip_suffix('\''));
    bare.is_some_and(|name| {
        name.chars()
            .all(|c| c.is_ascii_alphanumeric() || "_.$\"".contains(c))
            && !name.starts_with(|c: char| c.is_ascii_digit())
    })
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
            let values = literals.map(|token| Literal::of(token.text).value());
            self.originals
                .extend(values.map(|value| value.trim_matches(BLANKS).to_owned()));
        }
        let values = statement.tuples.iter().flat_map(|tuple| &tuple.values);
        let values = values.flatten().map(|value| value.trim_matches(BLANKS));
        self.originals.extend(values.map(str::to_owned));
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
                TokenKind::Literal => match Use::of(&found.tokens, place) {
                    Use::Kept => out.push_str(token.text),
                    Use::Zone => out.push_str(&format!("'{ZONE}'")),
                    Use::Value => out.push_str(&self.literal(token.text)),
                },
                _ => out.push_str(token.text),
            }
            end = token.at + token.text.len();
        }
        out
    }

    fn literal(&mut self, text: &str) -> String {
        let literal = Literal::of(text);
        let Literal { before, inner, .. } = literal;
        let value = literal.value();
        match before.chars().next() {
            None => self.number(&value, false),
            Some('b' | 'B') if inner.chars().all(|c| c.is_digit(2)) => {
                let digits = draw::digits_of(2, inner, &mut self.random(inner, 0));
                format!("{before}{digits}'")
            }
            Some('x' | 'X') if inner.chars().all(|c| c.is_ascii_hexdigit()) => {
                let digits = draw::digits_of(16, inner, &mut self.random(inner, 0));
                format!("{before}{digits}'")
            }
            Some('$') => {
                let tag = if before == "$$" { before } else { TAG };
                format!("{tag}{}{tag}", self.value(&value))
            }
            Some('\'' | 'n' | 'N') => {
                let replaced = self.value(&value).replace('\'', "''");
                format!("{before}{replaced}'")
            }
            // Escapes are of the notation; those of U& are letters in digits.
            Some('u' | 'U') => format!("{before}{}'", self.value(&value.replace('\\', ""))),
            Some(_) => format!("{before}{}'", self.value(&value)),
        }
    }

    /// What stands for a value everywhere.
    fn value(&mut self, value: &str) -> String {
        match stays(value.trim_matches(BLANKS)) {
            true => value.to_owned(),
            false => self.inside(value),
        }
    }

    /// What stands for a value that may be a part of another one: no word of it stays.
    fn inside(&mut self, value: &str) -> String {
        let bare = value.trim_matches(BLANKS);
        let from = value.find(bare).unwrap_or(0);
        let (before, rest) = value.split_at_checked(from).unwrap_or(("", value));
        let after = rest.get(bare.len()..).unwrap_or_default();
        if bare.is_empty() {
            return value.to_owned();
        }
        let replaced = match parts(bare) {
            Some(parts) => parts.into_iter().map(|part| self.part(part)).collect(),
            None => self.drawn(bare),
        };
        format!("{before}{replaced}{after}")
    }

    fn part(&mut self, part: Part<'_>) -> String {
        match part {
            Part::Kept(text) => text.to_owned(),
            Part::Value(value) => self.inside(value),
            Part::Number(value) => self.number(value, true),
            Part::Json(text) => {
                let text = self.inside(&text);
                // A string: there is nothing that JSON cannot hold.
                serde_json::to_string(&text).unwrap_or_default()
            }
        }
    }

    /// A number as programs write it, which has to stay one.
    fn number(&mut self, value: &str, is_part: bool) -> String {
        if !is_part && stays(value) {
            return value.to_owned();
        }
        let shape = Shape::of(value);
        if shape == Shape::Integer || shape == Shape::Decimal {
            return self.drawn(value);
        }
        let (sign, bare) = match value.strip_prefix('-') {
            Some(bare) => ("-", bare),
            None => ("", value),
        };
        format!("{sign}{}", draw::number(bare, &mut self.random(bare, 0)))
    }

    /// Another value of the same shape, always the same one.
    fn drawn(&mut self, value: &str) -> String {
        if let Some(known) = self.known.get(value) {
            return known.clone();
        }
        let shape = Shape::of(value);
        let mut drawn = String::new();
        for attempt in 0..TRIES {
            drawn = shape.draw(value, &mut self.random(value, attempt));
            let is_other = drawn != value && !self.originals.contains(&drawn);
            if is_other && !self.used.contains(&drawn) {
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
#[derive(Clone, Copy)]
struct Literal<'a> {
    before: &'a str,
    inner: &'a str,
}

impl<'a> Literal<'a> {
    fn of(text: &'a str) -> Self {
        let whole = Self {
            before: "",
            inner: text,
        };
        let cut = |from: usize, to: usize| {
            let (before, rest) = text.split_at_checked(from)?;
            let (inner, _) = rest.split_at_checked(to.checked_sub(from)?)?;
            Some(Self { before, inner })
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

    /// The value: of a plain string without doubled quotes, so that a parameter can be equal.
    fn value(&self) -> String {
        match self.before {
            "'" | "n'" | "N'" => self.inner.replace("''", "'"),
            _ => self.inner.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests;
