//! One way of writing for what versions print in different ways.
//!
//! From 14 on, a plan has the syntax of SQL where older ones have the function behind it: `EXTRACT(year FROM
//! at)` was `date_part('year'::text, at)`. 18 has the name of a window where 15 to 17 have `OVER (?)`. A name
//! that is a keyword has quotes, and keywords differ, too.

/// Functions that have a syntax of their own, with the words between their arguments.
///
/// Source: `get_func_sql_syntax` in PostgreSQL's ruleutils.c.
const SYNTAX: [(&str, &str, &[&str]); 5] = [
    ("EXTRACT", "date_part", &["FROM"]),
    (
        "SUBSTRING",
        "substring",
        &["FROM", "FOR", "SIMILAR", "ESCAPE"],
    ),
    ("OVERLAY", "overlay", &["PLACING", "FROM", "FOR"]),
    ("POSITION", "position", &["IN"]),
    ("TRIM", "btrim", &["FROM"]),
];

/// Pieces of a condition, as functions.
pub fn respelled(pieces: &[String]) -> Vec<String> {
    let mut found = Vec::with_capacity(pieces.len());
    let mut rest = pieces;
    while let Some((first, after)) = rest.split_first() {
        let bracket = |pieces: &'_ [String]| match pieces.first() {
            Some(open) if open == "(" => closing(pieces),
            _ => None,
        };
        if first == "OVER" {
            found.push(first.clone());
            let window = bracket(after).map_or(1, |end| end + 1);
            rest = after.get(window..).unwrap_or_default();
        } else if let Some(end) = bracket(rest) {
            found.extend(group(&respelled(rest.get(1..end).unwrap_or_default())));
            rest = rest.get(end + 1..).unwrap_or_default();
        } else if let Some((syntax, end)) = syntax(first).zip(bracket(after)) {
            let inside = respelled(after.get(1..end).unwrap_or_default());
            found.extend(call(syntax, &inside));
            rest = after.get(end + 1..).unwrap_or_default();
        } else {
            found.push(unquoted(first).to_owned());
            rest = after;
        }
    }
    found
}

/// Where the first bracket is closed.
pub fn closing(pieces: &[String]) -> Option<usize> {
    let mut depth = 0_usize;
    pieces.iter().position(|piece| {
        deepen(&mut depth, piece);
        depth == 0
    })
}

fn deepen(depth: &mut usize, piece: &str) {
    match piece {
        "(" | "[" => *depth += 1,
        ")" | "]" => *depth = depth.saturating_sub(1),
        _ => {}
    }
}

fn syntax(word: &str) -> Option<(&'static str, &'static str, &'static [&'static str])> {
    SYNTAX.into_iter().find(|(known, _, _)| *known == word)
}

/// A name in lower case without its quotes.
fn unquoted(piece: &str) -> &str {
    let inner = piece
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    let plain = |name: &&str| {
        name.bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
            && name.starts_with(|first: char| !first.is_ascii_digit())
    };
    inner.filter(plain).unwrap_or(piece)
}

/// What stands in brackets, which may be an operator in words.
fn group(inside: &[String]) -> Vec<String> {
    if let [value, zone] = split(inside, &["AT"]).as_slice()
        && let [time, word, zone @ ..] = *zone
        && time == "TIME"
        && word == "ZONE"
    {
        return called("timezone", &[zone, value]);
    }
    let mut pieces = vec!["(".to_owned()];
    pieces.extend_from_slice(inside);
    pieces.push(")".to_owned());
    pieces
}

fn call((word, name, between): (&str, &str, &[&str]), inside: &[String]) -> Vec<String> {
    let value = ["?".to_owned()];
    let arguments = split(inside, between);
    match (word, arguments.as_slice()) {
        ("EXTRACT", [_field, from]) => called(name, &[&value, from]),
        ("POSITION", [part, whole]) => called(name, &[bare(whole), bare(part)]),
        ("TRIM", [[side, what @ ..], from]) => {
            let name = match side.as_str() {
                "LEADING" => "ltrim",
                "TRAILING" => "rtrim",
                _ => name,
            };
            match what {
                [] => called(name, &[from]),
                what => called(name, &[from, what]),
            }
        }
        (_, arguments) => called(name, arguments),
    }
}

/// Without the brackets that only the syntax has.
fn bare(pieces: &[String]) -> &[String] {
    match pieces {
        [open, inside @ .., _] if open == "(" && closing(pieces) == Some(pieces.len() - 1) => {
            inside
        }
        _ => pieces,
    }
}

fn called(name: &str, arguments: &[&[String]]) -> Vec<String> {
    let mut pieces = vec![name.to_owned(), "(".to_owned()];
    pieces.extend(arguments.join(&",".to_owned()));
    pieces.push(")".to_owned());
    pieces
}

/// What is between these words, outside of brackets; all of it without one.
pub fn split<'a>(pieces: &'a [String], words: &[&str]) -> Vec<&'a [String]> {
    let mut depth = 0_usize;
    let parts = pieces.split(|piece| {
        deepen(&mut depth, piece);
        depth == 0 && words.contains(&piece.as_str())
    });
    parts.collect()
}

#[cfg(test)]
mod tests {
    use crate::clause::{condition, key};

    #[test]
    fn sql_syntax_of_14_is_the_function_of_older_versions() {
        for (new, old) in [
            (
                "(EXTRACT(year FROM o.at) = '2026'::numeric)",
                "(date_part('year'::text, at) = '2026'::double precision)",
            ),
            (
                "(SUBSTRING(c.name FROM 1 FOR 3) = 'Cus'::text)",
                "(\"substring\"(c.name, 1, 3) = 'Cus'::text)",
            ),
            (
                "(SUBSTRING(name FROM 'x'::text) = 'x')",
                "(\"substring\"(name, 'x'::text) = 'x')",
            ),
            (
                "(TRIM(BOTH FROM name) = 'a'::text)",
                "(btrim(name) = 'a'::text)",
            ),
            (
                "(TRIM(LEADING 'x'::text FROM (name || 'b'::text)) = 'a'::text)",
                "(ltrim((name || 'b'::text), 'x'::text) = 'a'::text)",
            ),
            (
                "(POSITION(('x'::text) IN (name)) > 0)",
                "(\"position\"(name, 'x'::text) > 0)",
            ),
            (
                "(OVERLAY(name PLACING 'x'::text FROM 1) = 'a')",
                "(\"overlay\"(name, 'x'::text, 1) = 'a')",
            ),
            (
                "(((at AT TIME ZONE 'UTC'::text))::date = '2026-01-01'::date)",
                "((timezone('UTC'::text, at))::date = '2026-01-01'::date)",
            ),
        ] {
            assert_eq!(condition(new), condition(old));
        }
        assert_ne!(
            condition("(EXTRACT(year FROM a) = 1)"),
            condition("(EXTRACT(year FROM b) = 1)")
        );
        assert_ne!(
            condition("(TRIM(BOTH FROM a) = 1)"),
            condition("(TRIM(LEADING FROM a) = 1)")
        );
    }

    #[test]
    fn a_window_has_no_name() {
        let named = "(row_number() OVER w1 <= 3)";
        assert_eq!(condition("(row_number() OVER (?) <= 5)"), condition(named));
        assert_eq!(condition(named), "row_number() OVER <= ?");
        assert_eq!(key("(rank() OVER (?)) DESC"), key("(rank() OVER w2) DESC"));
    }

    #[test]
    fn a_keyword_of_one_version_is_a_name_of_another() {
        assert_eq!(
            condition("(t.\"system_user\" = 1)"),
            condition("(system_user = 1)")
        );
        assert_ne!(condition("(\"Name\" = 1)"), condition("(name = 1)"));
    }
}
