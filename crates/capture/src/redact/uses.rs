//! What the literals of a text are for: some stay, because they are no values of users.

use super::shape::digits;
use crate::lexer::{Token, TokenKind};

/// Words before a number that says how many rows are wanted.
const COUNTED: [&str; 4] = ["limit", "offset", "first", "next"];
/// Digits of such a number: more rows than this nobody wants, and it may be something else.
const OF_COUNT: usize = 10;
/// Types that take numbers in brackets: `numeric(10, 2)`.
const MODIFIED: [&str; 11] = [
    "numeric",
    "decimal",
    "varchar",
    "char",
    "character",
    "varying",
    "bit",
    "float",
    "time",
    "timestamp",
    "interval",
];
/// Digits of such a number, and of a place in `ORDER BY 12`: more of them may be something else.
const SHORT: usize = 3;
/// Words behind a list of `ORDER BY` or `GROUP BY`.
const BEHIND_LIST: [&str; 14] = [
    "limit",
    "offset",
    "fetch",
    "for",
    "having",
    "window",
    "union",
    "intersect",
    "except",
    "order",
    "rows",
    "range",
    "groups",
    "returning",
];
/// Words behind an element of such a list.
const BEHIND_ELEMENT: [&str; 3] = ["asc", "desc", "nulls"];
/// Functions that take the name of a sequence, a setting or a table.
const NAMING: [&str; 5] = [
    "nextval",
    "currval",
    "setval",
    "current_setting",
    "to_regclass",
];

/// What becomes of the literal in a place of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// It is a number of rows, of a type or of a column, or the name of an object: it stays.
    Kept,
    /// It names a time zone.
    Zone,
    /// It may be a value of a user.
    Value,
}

/// For each token the use that its literal has.
pub fn uses(tokens: &[Token<'_>]) -> Vec<Use> {
    let mut lists = Lists::default();
    let places = 0..tokens.len();
    let found = places.map(|place| match lists.has_place(tokens, place) {
        true => Use::Kept,
        false => of(tokens, place),
    });
    found.collect()
}

fn of(tokens: &[Token<'_>], place: usize) -> Use {
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
    let zone = is_one(1, &["zone"]) && is_one(2, &["time"]);
    if counts || is_modifier(tokens, place) || (named || cast) && is_name(text) {
        Use::Kept
    // Not `timestamp with time zone '…'`, which is a time.
    } else if zone && is_one(3, &["at", "set", "session", "local"]) {
        Use::Zone
    } else {
        Use::Value
    }
}

/// Whether a literal is a short number of a type: of `(10)` or `(10, 2)`, which nothing else is in.
fn is_modifier(tokens: &[Token<'_>], place: usize) -> bool {
    let is = |at: Option<usize>, mark: &str| {
        at.and_then(|at| tokens.get(at))
            .is_some_and(|token| token.is_mark(mark))
    };
    let short = |at: Option<usize>| at.and_then(|at| tokens.get(at)).is_some_and(is_short);
    let back = |many: usize| place.checked_sub(many);
    let ahead = |many: usize| Some(place + many);
    let (bracket, ends) = if is(back(1), "(") {
        let goes_on = is(ahead(1), ",") && short(ahead(2)) && is(ahead(3), ")");
        (back(1), is(ahead(1), ")") || goes_on)
    } else {
        let is_second = is(back(1), ",") && short(back(2)) && is(back(3), "(");
        (back(3), is_second && is(ahead(1), ")"))
    };
    let name = bracket.and_then(|at| tokens.get(at.checked_sub(1)?));
    let is_type = name.is_some_and(|name| MODIFIED.iter().any(|word| name.is_word(word)));
    short(Some(place)) && ends && is_type
}

fn is_short(token: &Token<'_>) -> bool {
    token.kind == TokenKind::Literal && token.text.len() <= SHORT && digits(token.text)
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

/// The lists of `ORDER BY` and `GROUP BY` around a token.
#[derive(Default)]
struct Lists {
    /// For each bracket around it whether a list was begun outside of it.
    outside: Vec<bool>,
    is_list: bool,
}

impl Lists {
    /// Takes the next token, and says whether it is the number of a column: all that an element of a list is.
    fn has_place(&mut self, tokens: &[Token<'_>], place: usize) -> bool {
        let Some(token) = tokens.get(place) else {
            return false;
        };
        let before = |back: usize| place.checked_sub(back).and_then(|at| tokens.get(at));
        let is_by = |back: usize| {
            let lists = ["order", "group"];
            let list = before(back + 1);
            before(back).is_some_and(|token| token.is_word("by"))
                && list.is_some_and(|token| lists.iter().any(|word| token.is_word(word)))
        };
        let is_one =
            |token: &Token<'_>, words: &[&str]| words.iter().any(|word| token.is_word(word));
        let begins = is_by(1);
        if begins {
            self.is_list = true;
        }
        if token.is_mark("(") {
            self.outside.push(self.is_list);
            self.is_list = false;
        } else if token.is_mark(")") {
            self.is_list = self.outside.pop().unwrap_or(false);
        } else if token.is_mark(";") || is_one(token, &BEHIND_LIST) {
            self.is_list = false;
        }
        let follows = begins || before(1).is_some_and(|token| token.is_mark(","));
        let ends = tokens.get(place + 1).is_none_or(|next| {
            let is_mark = [",", ")", ";"].iter().any(|mark| next.is_mark(mark));
            is_mark || is_one(next, &BEHIND_LIST) || is_one(next, &BEHIND_ELEMENT)
        });
        self.is_list && follows && ends && is_short(token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexer::tokens;

    fn kept(text: &str) -> Vec<&str> {
        let found = tokens(text).tokens;
        let uses = uses(&found);
        let kept = found.iter().zip(uses);
        kept.filter(|(token, used)| token.kind == TokenKind::Literal && *used == Use::Kept)
            .map(|(token, _)| token.text)
            .collect()
    }

    #[test]
    fn numbers_of_types_stay_and_those_of_calls_do_not() {
        for (text, wanted) in [
            (
                "select a::numeric(10,2), b::varchar(255)",
                &["10", "2", "255"][..],
            ),
            (
                "select cast(a as character varying (40)), time(3) with time zone 'x'",
                &["40", "3"],
            ),
            ("select a::varchar(4711), f(100), a in (10, 20)", &[]),
            (
                "select a.numeric, (10), numeric(10 + 20), numeric(10, 20, 30)",
                &[],
            ),
            ("insert into char values (10, 20)", &[]),
        ] {
            assert_eq!(kept(text), wanted, "{text}");
        }
    }

    #[test]
    fn numbers_of_columns_stay_and_other_numbers_of_lists_do_not() {
        for (text, wanted) in [
            (
                "select a from t group by 11, 12 order by 13 desc, b, 14",
                &["11", "12", "13", "14"][..],
            ),
            (
                "select (select b from u order by 12), 13 from t order by f(14, 15), 16",
                &["12", "16"],
            ),
            (
                "select a from t order by a + 12, b = 13, 4711, '14', 15 + a",
                &[],
            ),
            (
                "select a from t order by 12 limit 500; select 13, 14",
                &["12", "500"],
            ),
            ("select a from t order by a for update; values (1), 12", &[]),
        ] {
            assert_eq!(kept(text), wanted, "{text}");
        }
    }

    #[test]
    fn only_at_and_set_make_a_zone() {
        for (text, wanted) in [
            ("select a at time zone 'x'", Use::Zone),
            ("set time zone 'x'", Use::Zone),
            ("set local time zone 'x'", Use::Zone),
            ("select timestamp with time zone 'x'", Use::Value),
            ("select time without time zone 'x'", Use::Value),
        ] {
            assert_eq!(uses(&tokens(text).tokens).last(), Some(&wanted), "{text}");
        }
    }
}
