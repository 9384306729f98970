//! A capture without the values of users: each is replaced by another of its shape.
//!
//! Equal values stay equal, in texts and in parameters. What stays as it is: docs/guide/replay.md, "Without
//! values".

mod draw;
mod parts;
mod shape;
mod uses;

use crate::capture::Capture;
use crate::lexer::{TokenKind, tokens};
use crate::statement::Statement;
use parts::{Part, parts};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use sha2::{Digest, Sha256};
use shape::{Shape, stays};
use std::collections::{BTreeMap, BTreeSet};
use uses::{Use, uses};

/// Draws for a value before one is taken that another value has, too: short numbers are few.
const TRIES: u32 = 64;
/// What all servers take for a time zone.
const ZONE: &str = "UTC";
/// The tag of strings in dollars; a longer one if the value has it in it.
const TAG: &str = "d";
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
        // Hashes without a key, of texts with values if they are those of DDL and settings.
        statement.query_ids.clear();
    }
    capture.header.redacted = true;
}

/// What replaces what.
struct Values {
    key: [u8; 32],
    /// All values of the capture that are replaced.
    originals: BTreeSet<String>,
    used: BTreeSet<String>,
    /// By notation and value.
    known: BTreeMap<(Notation, String), String>,
}

/// How a value is written, where its digits are of another kind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Notation {
    /// As a value, in a parameter or a string.
    Value,
    /// As a number in a program: `0x1F`, `007`, `1_000`.
    Number,
    /// In `B'…'` or `X'…'`: digits to this base.
    Digits(u32),
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
                .extend(values.map(|value| signed(value.trim_matches(BLANKS)).1.to_owned()));
        }
        let values = statement.tuples.iter().flat_map(|tuple| &tuple.values);
        let values = values.flatten().map(|value| value.trim_matches(BLANKS));
        self.originals
            .extend(values.map(|value| signed(value).1.to_owned()));
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
        for (token, used) in found.tokens.iter().zip(uses(&found.tokens)) {
            let gap = text.get(end..token.at).unwrap_or_default();
            // Strings on two lines are one.
            out.push_str(match (gap.contains('\n'), gap.is_empty()) {
                (true, _) => "\n",
                (false, true) => "",
                (false, false) => " ",
            });
            match token.kind {
                TokenKind::Literal => match used {
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
                format!("{before}{}'", self.digits(2, inner))
            }
            Some('x' | 'X') if inner.chars().all(|c| c.is_ascii_hexdigit()) => {
                format!("{before}{}'", self.digits(16, inner))
            }
            Some('$') => {
                let replaced = self.value(&value);
                let tag = tag(if before == "$$" { "" } else { TAG }, &replaced);
                format!("{tag}{replaced}{tag}")
            }
            Some('\'' | 'n' | 'N') => {
                let replaced = self.value(&value).replace('\'', "''");
                format!("{before}{replaced}'")
            }
            // Escapes are of the notation; those of U& are letters in digits.
            Some('u' | 'U') => {
                let replaced = self.value(&value.replace('\\', ""));
                format!("{before}{}'", enclosed(&replaced, false))
            }
            Some(first) => {
                let escapes = matches!(first, 'e' | 'E');
                format!("{before}{}'", enclosed(&self.value(&value), escapes))
            }
        }
    }

    fn digits(&mut self, base: u32, value: &str) -> String {
        self.other(Notation::Digits(base), value, |value, random| {
            draw::digits_of(base, value, random)
        })
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
        let number = self.other(Notation::Number, bare, |value, random| {
            draw::number(value, random)
        });
        format!("{sign}{number}")
    }

    /// Another value of the same shape, always the same one. Numbers with a sign are as those without:
    /// in texts the sign is an operator.
    fn drawn(&mut self, value: &str) -> String {
        let (sign, bare) = signed(value);
        let shape = Shape::of(bare);
        let drawn = self.other(Notation::Value, bare, |value, random| {
            shape.draw(value, random)
        });
        format!("{sign}{drawn}")
    }

    /// What `draw` makes of a value: another one, which none has had yet if there is one.
    fn other(
        &mut self,
        notation: Notation,
        value: &str,
        draw: impl Fn(&str, &mut Xoshiro256PlusPlus) -> String,
    ) -> String {
        if draw::is_fixed(value) {
            return value.to_owned();
        }
        let key = (notation, value.to_owned());
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        // One that is only another value, and one that stands for no other value, too.
        let (mut other, mut unused) = (None, None);
        let mut drawn = String::new();
        for attempt in 0..TRIES {
            drawn = draw(value, &mut self.random(value, attempt));
            if drawn == value {
                continue;
            }
            if !self.used.contains(&drawn) {
                if !self.originals.contains(&drawn) {
                    unused = Some(drawn.clone());
                    break;
                }
                unused.get_or_insert_with(|| drawn.clone());
            }
            other.get_or_insert_with(|| drawn.clone());
        }
        let drawn = unused.or(other).unwrap_or(drawn);
        self.used.insert(drawn.clone());
        self.known.insert(key, drawn.clone());
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

/// A number without its sign, and the sign; other values have none.
fn signed(value: &str) -> (&str, &str) {
    let (sign, bare) = match value.starts_with(['-', '+']) {
        true => value.split_at(1),
        false => ("", value),
    };
    match Shape::of(bare) {
        Shape::Integer | Shape::Decimal => (sign, bare),
        _ => ("", value),
    }
}

/// A tag that the value does not end.
fn tag(name: &str, value: &str) -> String {
    let mut tag = format!("${name}$");
    while format!("{value}{tag}").find(&tag) != Some(value.len()) {
        tag.insert_str(1, TAG);
    }
    tag
}

/// A value between quotes: those in it are doubled, and no backslash escapes the last one.
fn enclosed(value: &str, escapes: bool) -> String {
    let mut out = String::with_capacity(value.len());
    let mut rest = value.chars().peekable();
    while let Some(c) = rest.next() {
        out.push(c);
        if escapes && c == '\\' {
            out.push(rest.next().unwrap_or('\\'));
        } else if c == '\'' {
            rest.next_if_eq(&'\'');
            out.push('\'');
        }
    }
    out
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
