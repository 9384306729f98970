//! Values made of others: JSON, arrays and ranges.

use super::shape::Shape;
use serde::de::IgnoredAny;

/// What the bounds of a range are.
const BOUNDS: [Shape; 3] = [Shape::Integer, Shape::Decimal, Shape::Moment];

/// A piece of such a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part<'a> {
    /// Brackets, commas, blanks, and what types insist on.
    Kept(&'a str),
    /// A value.
    Value(&'a str),
    /// A number of JSON.
    Number(&'a str),
    /// A string of JSON, without its quotes and escapes.
    Json(String),
}

/// The pieces of a value; absent if it is none of these.
pub fn parts(value: &str) -> Option<Vec<Part<'_>>> {
    json(value)
        .or_else(|| array(value))
        .or_else(|| range(value))
}

/// The pieces of an object or an array of JSON.
fn json(value: &str) -> Option<Vec<Part<'_>>> {
    let valid: Result<IgnoredAny, _> = serde_json::from_str(value);
    if valid.is_err() || !value.starts_with(['{', '[']) {
        return None;
    }
    let mut parts = Vec::new();
    let mut rest = value;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => end_of_string(rest),
            '-' | '0'..='9' => run(rest, |c| c.is_ascii_alphanumeric() || "+-.".contains(c)),
            // `true`, `false` and `null`, as the text is valid.
            'a'..='z' => run(rest, |c| c.is_ascii_lowercase()),
            _ => run(rest, |c| "{}[],: \t\r\n".contains(c)).max(first.len_utf8()),
        };
        let (piece, after) = rest.split_at_checked(length)?;
        parts.push(match first {
            '"' => Part::Json(serde_json::from_str(piece).ok()?),
            '-' | '0'..='9' => Part::Number(piece),
            _ => Part::Kept(piece),
        });
        rest = after;
    }
    Some(parts)
}

/// The pieces of `{1,NULL,"a b",{…}}`.
fn array(value: &str) -> Option<Vec<Part<'_>>> {
    if !value.starts_with('{') || !value.ends_with('}') {
        return None;
    }
    let mut parts = Vec::new();
    let mut rest = value;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => end_of_string(rest),
            '{' | '}' | ',' => 1,
            _ => run(rest, |c| !"{},\"".contains(c)),
        };
        let (piece, after) = rest.split_at_checked(length)?;
        match piece {
            "{" | "}" | "," | "NULL" | "t" | "f" => parts.push(Part::Kept(piece)),
            piece => parts.extend(quoted(piece)),
        }
        rest = after;
    }
    Some(parts)
}

/// A value that may have quotes.
fn quoted(piece: &str) -> [Part<'_>; 3] {
    let bare = piece
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    let quote = Part::Kept(if bare.is_some() { "\"" } else { "" });
    [quote.clone(), Part::Value(bare.unwrap_or(piece)), quote]
}

/// The pieces of `[1,5)`, whose bounds are numbers, dates or times, perhaps in quotes.
fn range(value: &str) -> Option<Vec<Part<'_>>> {
    let bounds = value.strip_prefix(['[', '('])?.strip_suffix([']', ')'])?;
    let (lower, upper) = bounds.split_once(',')?;
    let mut parts = vec![Part::Kept(value.get(..1)?)];
    for (bound, after) in [(lower, ","), (upper, value.get(value.len() - 1..)?)] {
        let [before, bare, behind] = quoted(bound);
        let is_bound = |text: &str| text.is_empty() || BOUNDS.contains(&Shape::of(text));
        if !matches!(bare, Part::Value(text) if is_bound(text)) {
            return None;
        }
        parts.extend([before, bare, behind, Part::Kept(after)]);
    }
    Some(parts)
}

/// Bytes of the string at the beginning, with both quotes.
fn end_of_string(text: &str) -> usize {
    let mut escapes = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '"' if !escapes => return at + 1,
            _ => escapes = c == '\\' && !escapes,
        }
    }
    text.len()
}

/// Bytes at the beginning that are these characters.
fn run(text: &str, wanted: impl Fn(char) -> bool) -> usize {
    text.find(|c: char| !wanted(c)).unwrap_or(text.len())
}
