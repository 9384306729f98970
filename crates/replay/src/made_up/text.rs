//! Texts of `pg_stat_statements` as a server can prepare them, and what their words say of parameters.

use deltabench_capture::{Token, TokenKind, tokens};
use std::collections::{BTreeMap, BTreeSet};

/// Elements of a list: 18 folds lists of all lengths into one, and an array has as many.
pub const LIST: usize = 3;
/// Rows after `LIMIT` and `FETCH FIRST`: a page of a list.
const LIMIT: &str = "10";
/// Rows before it: the first page.
const OFFSET: &str = "0";
/// Types whose constants are written `interval '1 day'`, which no parameter can follow.
const TYPES: [&str; 6] = [
    "interval",
    "date",
    "timestamp",
    "timestamptz",
    "time",
    "numeric",
];

/// The number of a parameter.
pub fn number(token: &Token<'_>) -> Option<u32> {
    match token.kind {
        TokenKind::Parameter => token.text.strip_prefix('$')?.parse().ok(),
        _ => None,
    }
}

/// All parameters of a text.
pub fn parameters(text: &str) -> BTreeSet<u32> {
    tokens(text).tokens.iter().filter_map(number).collect()
}

/// The text with `$1::interval` for `interval $1`, and with elements for the list that 18 folds,
/// `IN ($1 /*, ... */)`.
pub fn preparable(text: &str) -> String {
    let found = tokens(text).tokens;
    let mut free = parameters(text).last().copied().unwrap_or(0);
    let mut out = String::with_capacity(text.len());
    let mut end = 0;
    for (place, token) in found.iter().enumerate() {
        let gap = text.get(end..token.at).unwrap_or_default();
        let is_folded = gap.contains("/*, ... */");
        end = token.at + token.text.len();
        let before = place.checked_sub(1).and_then(|at| found.get(at));
        let next = found.get(place + 1);
        if is_folded && before.is_some_and(|token| number(token).is_some()) {
            for _ in 1..LIST {
                free += 1;
                out.push_str(&format!(", ${free}"));
            }
        } else {
            out.push_str(gap);
        }
        let is_type = |token: &Token<'_>| TYPES.iter().any(|name| token.is_word(name));
        if is_type(token) && next.is_some_and(|token| number(token).is_some()) {
            continue;
        }
        out.push_str(token.text);
        if let Some(before) = before.filter(|before| is_type(before))
            && number(token).is_some()
        {
            out.push_str(&format!("::{}", before.text));
        }
    }
    out.push_str(text.get(end..).unwrap_or_default());
    out.trim_end().trim_end_matches(';').to_owned()
}

/// Values of parameters that say how many rows are wanted.
pub fn row_counts(text: &str) -> BTreeMap<u32, &'static str> {
    let found = tokens(text).tokens;
    let counts = found.windows(2).filter_map(|pair| {
        let [word, parameter] = pair else {
            return None;
        };
        let value = match word {
            word if word.is_word("offset") => OFFSET,
            word if ["limit", "first", "next"].iter().any(|it| word.is_word(it)) => LIMIT,
            _ => return None,
        };
        Some((number(parameter)?, value))
    });
    counts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_constants_and_folded_lists_can_be_prepared() {
        assert_eq!(
            preparable("select a from t where at > now() - interval $1 and b = $2;"),
            "select a from t where at > now() -  $1::interval and b = $2"
        );
        assert_eq!(
            preparable("select a from t where a IN ($1 /*, ... */) and b = $2"),
            "select a from t where a IN ($1, $3, $4) and b = $2"
        );
        let plain = "select date, \"x\" from t where a = $1 -- c";
        assert_eq!(preparable(plain), plain);
    }

    #[test]
    fn limits_are_known_by_the_word_before_them() {
        let counts = row_counts("select a from t where b = $1 limit $2 OFFSET $3");
        assert_eq!(counts, BTreeMap::from([(2, "10"), (3, "0")]));
    }
}
