//! A condition of a plan without values and without names that only the planner gives.
//!
//! Two servers print one condition in different ways: 17 and later write `(InitPlan 1).col1` where older ones
//! have `$0`, and a hashed subplan with its comparison. What is left here is the same on all.

use crate::spelling::{closing, respelled, split};
use deltabench_capture::{Token, TokenKind, tokens};

/// Words that go on with the name of a type: `timestamp with time zone`.
const OF_TYPES: [&str; 8] = [
    "precision",
    "varying",
    "with",
    "without",
    "time",
    "zone",
    "to",
    "second",
];
/// What stands for a plan within a condition.
const SUBPLAN: &str = "SubPlan";

/// A condition in one way of writing: conjuncts in order, `?` for constants and parameters, names without
/// qualifiers. That a column is not null is left out: from 17 on the planner itself does so where it must
/// hold.
pub fn condition(text: &str) -> String {
    let found = tokens(text).tokens;
    let pieces = respelled(&pieces(&found));
    let mut all: Vec<String> = conjuncts(&pieces).into_iter().map(written).collect();
    all.retain(|one| !is_not_null(one));
    all.sort_unstable();
    all.dedup();
    if all.len() > 1 {
        for one in all.iter_mut().filter(|one| one.contains(" OR ")) {
            *one = format!("({one})");
        }
    }
    all.join(" AND ")
}

/// Whether a condition only says that a column is not null.
fn is_not_null(condition: &str) -> bool {
    let column = condition.strip_suffix(" IS NOT NULL");
    column.is_some_and(|column| !column.contains(' '))
}

/// A key of a sort or a group, without values.
pub fn key(text: &str) -> String {
    let found = tokens(text).tokens;
    written(unwrapped(&respelled(&pieces(&found))))
}

fn pieces(tokens: &[Token<'_>]) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    let mut rest = tokens;
    while let Some((token, after)) = rest.split_first() {
        if let Some((piece, behind)) = subplan(rest) {
            pieces.push(piece.to_owned());
            rest = behind;
            continue;
        }
        rest = after;
        let qualifies = is_name(token)
            && matches!(after, [point, name, ..]
                if point.is_mark(".") && (is_name(name) || name.text == "*"));
        if qualifies {
            rest = after.get(1..).unwrap_or_default();
            continue;
        }
        if is_constant(token, pieces.last()) {
            rest = beyond_type(after);
            pieces.push("?".to_owned());
            continue;
        }
        pieces.push(token.text.to_owned());
    }
    pieces
}

fn is_name(token: &Token<'_>) -> bool {
    matches!(token.kind, TokenKind::Word | TokenKind::Quoted)
}

fn is_constant(token: &Token<'_>, before: Option<&String>) -> bool {
    match token.kind {
        TokenKind::Literal | TokenKind::Parameter => true,
        TokenKind::Word => {
            let literal = ["null", "true", "false"]
                .iter()
                .any(|word| token.is_word(word));
            let tested = before.is_some_and(|word| matches!(word.as_str(), "IS" | "NOT"));
            literal && !tested
        }
        _ => false,
    }
}

/// Behind the types that a constant is cast to: `::timestamp with time zone`, `::numeric(10,2)[]`.
fn beyond_type<'a, 'b>(tokens: &'a [Token<'b>]) -> &'a [Token<'b>] {
    let mut rest = tokens;
    while let [cast, name, after @ ..] = rest {
        if !cast.is_mark("::") || !is_name(name) {
            break;
        }
        rest = after;
        while let [point, name, after @ ..] = rest {
            if !point.is_mark(".") || !is_name(name) {
                break;
            }
            rest = after;
        }
        while let [word, after @ ..] = rest {
            if !OF_TYPES.iter().any(|known| word.is_word(known)) {
                break;
            }
            rest = after;
        }
        rest = beyond_brackets(rest, ("(", ")"));
        rest = beyond_brackets(rest, ("[", "]"));
    }
    rest
}

fn beyond_brackets<'a, 'b>(
    tokens: &'a [Token<'b>],
    (open, close): (&str, &str),
) -> &'a [Token<'b>] {
    let opens = tokens.first().is_some_and(|token| token.is_mark(open));
    let end = tokens.iter().position(|token| token.is_mark(close));
    match end {
        Some(end) if opens => tokens.get(end + 1..).unwrap_or_default(),
        _ => tokens,
    }
}

/// A reference to a subplan, and what is behind it: `(InitPlan 1).col1`, `(hashed SubPlan 2)`.
fn subplan<'a, 'b>(tokens: &'a [Token<'b>]) -> Option<(&'static str, &'a [Token<'b>])> {
    let [open, inside @ ..] = tokens else {
        return None;
    };
    let inside = match inside {
        [hashed, rest @ ..] if hashed.is_word("hashed") || hashed.is_word("alternatives") => rest,
        _ => inside,
    };
    let inside = match inside {
        [colon, rest @ ..] if colon.text == ":" => rest,
        _ => inside,
    };
    let [kind, ..] = inside else {
        return None;
    };
    let piece = match kind.text {
        "InitPlan" => "?",
        "SubPlan" => SUBPLAN,
        _ => return None,
    };
    let end = inside.iter().position(|token| token.is_mark(")"))?;
    let behind = inside.get(end + 1..).unwrap_or_default();
    let behind = match behind {
        [point, column, rest @ ..] if point.is_mark(".") && is_name(column) => rest,
        _ => behind,
    };
    open.is_mark("(").then_some((piece, behind))
}

/// Pieces without the brackets around all of them.
fn unwrapped(pieces: &[String]) -> &[String] {
    let mut pieces = pieces;
    while let [open, inside @ .., close] = pieces {
        let around = open == "(" && close == ")" && closing(pieces) == Some(pieces.len() - 1);
        if !around {
            break;
        }
        pieces = inside;
    }
    pieces
}

/// What has to hold, one by one.
fn conjuncts(pieces: &[String]) -> Vec<&[String]> {
    match split(unwrapped(pieces), &["AND"]).as_slice() {
        [one] => vec![*one],
        several => several.iter().copied().flat_map(conjuncts).collect(),
    }
}

fn written(pieces: &[String]) -> String {
    let pieces = unwrapped(pieces);
    if pieces.iter().any(|piece| piece == SUBPLAN) {
        return SUBPLAN.to_owned();
    }
    let mut text = String::new();
    for piece in pieces {
        let tight = matches!(piece.as_str(), ")" | "]" | "," | "::" | "[" | ".");
        let after = text.ends_with(['(', '[', '.']) || text.ends_with("::");
        // Keywords are printed in capitals.
        let called = piece == "("
            && text.ends_with(|last: char| {
                last.is_lowercase() || last.is_ascii_digit() || last == '_'
            });
        if !(text.is_empty() || tight || after || called) {
            text.push(' ');
        }
        text.push_str(piece);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_never_matter() {
        let wanted = "customer = ?";
        for text in [
            "(orders.customer = 17)",
            "(o.customer = '-17'::integer)",
            "(o.customer = $1)",
            "(orders_1.customer = '17'::bigint)",
            "((o.customer = '2026-11-02 10:11:12+00'::timestamp with time zone))",
            "(o.customer = 'x'::shop.\"My Type\")",
            "(o.customer = '1.50'::numeric(10,2))",
            "(o.customer = $0)",
            "(o.customer = (InitPlan 1).col1)",
        ] {
            assert_eq!(condition(text), wanted, "{text}");
        }
        assert_eq!(condition("(a = ANY ('{1,2}'::integer[]))"), "a = ANY (?)");
        assert_eq!(condition("(a IS NULL)"), "a IS NULL");
        assert_eq!(condition("((t.a IS NOT NULL) AND (b = 1))"), "b = ?");
        assert_eq!(condition("(a IS NOT NULL)"), "");
        let expression = condition("((a + b) IS NOT NULL)");
        assert_eq!(expression, "(a + b) IS NOT NULL", "no column");
        assert_eq!(condition("(a = true)"), "a = ?");
    }

    #[test]
    fn operators_columns_and_functions_do() {
        let different = [
            "(a > 1)",
            "(a < 1)",
            "(b < 1)",
            "(lower(a) < 1)",
            "((a + 1) < 1)",
        ];
        let mut found: Vec<String> = different.iter().map(|text| condition(text)).collect();
        found.sort();
        found.dedup();
        assert_eq!(found.len(), different.len());
        assert_eq!(
            condition("((lower((t.a)::text) = 'x'::text))"),
            "lower((a)::text) = ?"
        );
    }

    #[test]
    fn the_order_of_what_has_to_hold_does_not() {
        let one = condition("((o.a = 1) AND (o.b > 2) AND ((o.c = 3) OR (o.d = 4)))");
        let other = condition("((p.b > 7) AND ((p.c = 3) OR (p.d = 4)) AND (p.a = 9))");
        assert_eq!(one, other);
        assert_eq!(one, "((c = ?) OR (d = ?)) AND a = ? AND b > ?");
    }

    #[test]
    fn subplans_are_alike_however_a_version_prints_them() {
        let old = condition("((NOT (hashed SubPlan 1)) AND (a = 1))");
        let new = condition("((NOT (ANY (a = (hashed SubPlan 1).col1))) AND (a = 2))");
        assert_eq!(old, new);
        assert_eq!(condition("(a > (SubPlan 2))"), "SubPlan");
        assert_eq!(
            condition("(alternatives: SubPlan 1 or hashed SubPlan 2)"),
            "SubPlan"
        );
    }

    #[test]
    fn keys_keep_their_direction() {
        assert_eq!(key("o.at DESC NULLS LAST"), "at DESC NULLS LAST");
        assert_eq!(key("(count(*)) DESC"), "(count(*)) DESC");
        assert_eq!(key("(date_trunc('day'::text, o.at))"), "date_trunc(?, at)");
    }
}
