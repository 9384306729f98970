//! What a statement returns, as a number of rows and two hashes: values are not kept.

use deltabench_capture::Token;
use sha2::{Digest, Sha256};

/// Rows of one execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rows {
    pub count: u64,
    /// Sum of the hashes of all rows: their order does not matter.
    unordered: u128,
    /// Hash of all rows in their order.
    ordered: [u8; 32],
}

/// Rows that are coming in.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    count: u64,
    unordered: u128,
    ordered: Sha256,
}

impl Reading {
    /// Takes in a row as the server sends it.
    pub fn add(&mut self, row: &[u8]) {
        let hash = Sha256::digest(row);
        self.count += 1;
        let first = hash.first_chunk::<16>().copied().unwrap_or_default();
        self.unordered = self.unordered.wrapping_add(u128::from_be_bytes(first));
        self.ordered.update(hash);
    }

    /// All rows.
    pub fn end(self) -> Rows {
        Rows {
            count: self.count,
            unordered: self.unordered,
            ordered: self.ordered.finalize().into(),
        }
    }
}

/// How two results differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Difference {
    Order,
    Values,
    Rows,
}

impl Rows {
    /// So many rows that were changed.
    pub fn changed(count: u64) -> Self {
        Self {
            count,
            unordered: 0,
            ordered: [0; 32],
        }
    }

    /// How another execution differs; `orders` says whether the statement asks for an order.
    pub fn difference(&self, other: &Self, orders: bool) -> Option<Difference> {
        if self.count != other.count {
            Some(Difference::Rows)
        } else if self.unordered != other.unordered {
            Some(Difference::Values)
        } else {
            (orders && self.ordered != other.ordered).then_some(Difference::Order)
        }
    }
}

/// What a statement says about its own result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Promises {
    /// It has an ORDER BY of its own, outside of parentheses.
    pub orders: bool,
    /// It has a LIMIT, a FETCH or an OFFSET anywhere.
    pub limits: bool,
    /// A LIMIT, FETCH or OFFSET stands where no ORDER BY does.
    pub limits_unordered: bool,
    /// It calls an aggregate that depends on the order of rows.
    pub aggregates: bool,
    /// It has DISTINCT ON.
    pub distinct_on: bool,
}

/// Functions whose answer depends on the order in which rows come.
const ORDERED_AGGREGATES: [&str; 15] = [
    "array_agg",
    "string_agg",
    "json_agg",
    "jsonb_agg",
    "json_object_agg",
    "jsonb_object_agg",
    "xmlagg",
    "first_value",
    "row_number",
    "last_value",
    "nth_value",
    "lag",
    "lead",
    "ntile",
    "json_arrayagg",
];

impl Promises {
    /// What the text of a statement promises.
    pub fn of(tokens: &[Token<'_>]) -> Self {
        let mut promises = Self::default();
        // Of each open bracket: whether ORDER BY and LIMIT were there.
        let mut levels = vec![(false, false)];
        for (at, token) in tokens.iter().enumerate() {
            let next_is = |word: &str| tokens.get(at + 1).is_some_and(|next| next.is_word(word));
            let called = tokens.get(at + 1).is_some_and(|next| next.is_mark("("));
            if token.is_mark("(") {
                levels.push((false, false));
            } else if token.is_mark(")") && levels.len() > 1 {
                promises.close(levels.pop());
            } else if token.is_word("distinct") && next_is("on") {
                promises.distinct_on = true;
            } else if token.is_word("order") && next_is("by") {
                promises.orders |= levels.len() == 1;
                if let Some(level) = levels.last_mut() {
                    level.0 = true;
                }
            } else if ["limit", "fetch", "offset"]
                .iter()
                .any(|word| token.is_word(word))
                && !called
            {
                if let Some(level) = levels.last_mut() {
                    level.1 = true;
                }
            } else if called {
                promises.aggregates |= ORDERED_AGGREGATES.iter().any(|name| token.is_word(name));
            }
        }
        while let Some(level) = levels.pop() {
            promises.close(Some(level));
        }
        promises
    }

    fn close(&mut self, level: Option<(bool, bool)>) {
        if let Some((orders, true)) = level {
            self.limits = true;
            self.limits_unordered |= !orders;
        }
    }

    /// What may explain another result.
    pub fn causes(self, volatile: &[String]) -> Vec<String> {
        let mut causes = Vec::new();
        if !volatile.is_empty() {
            causes.push(format!("it calls {}", volatile.join(", ")));
        }
        if self.limits_unordered {
            causes.push("it has a LIMIT without ORDER BY".to_owned());
        } else if self.limits {
            causes.push(
                "rows that are equal in ORDER BY may be on either side of its LIMIT".to_owned(),
            );
        }
        if self.distinct_on {
            causes.push("DISTINCT ON keeps any of the rows that are equal in ORDER BY".to_owned());
        }
        if self.aggregates {
            causes.push("it has a function that depends on the order of rows".to_owned());
        }
        causes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_capture::tokens;

    fn rows(rows: &[&str]) -> Rows {
        let mut reading = Reading::default();
        for row in rows {
            reading.add(row.as_bytes());
        }
        reading.end()
    }

    #[test]
    fn order_counts_only_where_it_is_asked_for() {
        let (one, other) = (rows(&["a", "b"]), rows(&["b", "a"]));
        assert_eq!(one.difference(&other, false), None);
        assert_eq!(one.difference(&other, true), Some(Difference::Order));
        assert_eq!(one.difference(&one.clone(), true), None);
    }

    #[test]
    fn repeated_rows_count_and_values_differ() {
        let base = rows(&["a", "a", "b"]);
        assert_eq!(
            base.difference(&rows(&["a", "b", "b"]), false),
            Some(Difference::Values)
        );
        assert_eq!(
            base.difference(&rows(&["a", "b"]), false),
            Some(Difference::Rows)
        );
        assert_eq!(rows(&[]).difference(&rows(&[]), true), None);
    }

    #[test]
    fn an_order_of_a_subquery_or_a_window_is_not_that_of_the_statement() {
        let of = |text: &str| Promises::of(&tokens(text).tokens);
        assert!(of("select a from t order by a").orders);
        assert!(!of("select a from (select a from t order by a) s").orders);
        assert!(!of("select rank() over (order by a) from t").orders);
        let top = of("select a from t limit 3");
        assert!(top.limits && top.limits_unordered);
        let ordered = of("select a from t order by a limit 3");
        assert!(ordered.limits && !ordered.limits_unordered);
        assert!(of("select * from (select a from t limit 1) s order by a").limits_unordered);
        assert!(!of("select \"limit\" from t").limits);
        assert!(of("select distinct on (a) b from t").distinct_on);
        assert!(!of("select distinct a from t").distinct_on);
        assert!(of("select lag(a) over () from t").aggregates);
        assert_eq!(
            of("select 1").causes(&["random".to_owned()]),
            ["it calls random"]
        );
    }
}
