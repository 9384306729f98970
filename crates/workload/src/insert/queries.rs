//! The queries and what they ask for.

use super::{CASH_REGISTERS, PRICES, PRODUCTS, ROWS_PER_QUERY, table_name};
use crate::seed::{Random, stream, uniform};

/// Keys of one point query.
pub const POINT_KEYS: usize = 10;
/// Tells a client's queries from its rows.
const QUERIES: u64 = 1;

/// One of the range queries; index-only scans where the server sees fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RangeQuery {
    Market,
    Register,
    /// By price, date and customer.
    Pdc,
}

impl RangeQuery {
    /// All of them; each is asked equally often.
    pub const ALL: [Self; 3] = [Self::Market, Self::Register, Self::Pdc];

    /// The statement; its parameter is an `int`.
    pub fn sql(self, table: u32) -> String {
        let (columns, condition) = match self {
            Self::Market => ("productid, customerid, price", "productid >= $1"),
            Self::Register => ("cashregisterid, customerid, price", "cashregisterid > $1"),
            Self::Pdc => ("price, dateandtime, customerid", "price >= $1"),
        };
        let name = table_name(table);
        format!(
            "SELECT {columns} FROM {name} WHERE {condition} ORDER BY {columns} LIMIT {ROWS_PER_QUERY}"
        )
    }

    /// Number of values that its parameter can have, from 0.
    fn values(self) -> u32 {
        match self {
            Self::Market => PRODUCTS,
            Self::Register => CASH_REGISTERS,
            Self::Pdc => PRICES,
        }
    }
}

/// The point query: [`POINT_KEYS`] keys.
pub fn point_sql(table: u32) -> String {
    let keys: Vec<String> = (1..=POINT_KEYS).map(|key| format!("${key}")).collect();
    format!(
        "SELECT transactionid, productid, data FROM {} WHERE transactionid IN ({})",
        table_name(table),
        keys.join(", ")
    )
}

/// What a client asks for, in order.
#[derive(Debug, Clone)]
pub struct Queries {
    random: Random,
}

impl Queries {
    /// The queries of a client, from 0, in the step with that number in the order of the benchmark.
    pub fn new(seed: u64, client: u32, step: u32) -> Self {
        let parts = [u64::from(client), u64::from(step), QUERIES];
        Self {
            random: stream(seed, &parts),
        }
    }

    /// The next range query and its parameter.
    pub fn range(&mut self) -> (RangeQuery, i32) {
        let [market, register, pdc] = RangeQuery::ALL;
        let query = match uniform(&mut self.random, 0, 2) {
            0 => market,
            1 => register,
            _ => pdc,
        };
        let value = uniform(&mut self.random, 0, i64::from(query.values()) - 1);
        // Small: every domain ends far below.
        (query, i32::try_from(value).unwrap_or(i32::MAX))
    }

    /// The keys of the next point query, uniform from `min` to one less than `max`; `min` where that is none.
    pub fn point(&mut self, min: i64, max: i64) -> [i64; POINT_KEYS] {
        let last = max.saturating_sub(1).max(min);
        std::array::from_fn(|_| uniform(&mut self.random, min, last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn statements_are_the_published_ones() {
        assert_eq!(
            RangeQuery::Register.sql(1),
            "SELECT cashregisterid, customerid, price FROM pi1 WHERE cashregisterid > $1 \
             ORDER BY cashregisterid, customerid, price LIMIT 10"
        );
        assert_eq!(
            point_sql(2),
            "SELECT transactionid, productid, data FROM pi2 WHERE transactionid IN \
             ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
        );
    }

    #[test]
    fn range_queries_are_equally_frequent_and_uniform_over_their_domain() {
        let mut queries = Queries::new(1, 0, 4);
        let mut seen: BTreeMap<RangeQuery, Vec<i32>> = BTreeMap::new();
        for _ in 0..30_000 {
            let (query, value) = queries.range();
            seen.entry(query).or_default().push(value);
        }
        for query in RangeQuery::ALL {
            let values = &seen[&query];
            assert!((9_600..10_400).contains(&values.len()), "{query:?}");
            let domain = f64::from(query.values());
            assert!(values.iter().all(|value| (0..10_000).contains(value)));
            assert!(f64::from(*values.iter().max().unwrap()) > domain * 0.99 - 1.0);
            assert!(f64::from(*values.iter().max().unwrap()) < domain);
            let sum: f64 = values.iter().map(|value| f64::from(*value)).sum();
            let mean = sum / f64::from(u32::try_from(values.len()).unwrap());
            assert!((mean / domain - 0.5).abs() < 0.02, "{query:?}: mean {mean}");
        }
    }

    #[test]
    fn point_queries_ask_for_keys_of_rows_that_are_there() {
        let mut queries = Queries::new(1, 0, 5);
        let keys: Vec<i64> = (0..1000).flat_map(|_| queries.point(500, 600)).collect();
        assert_eq!(keys.iter().min(), Some(&500));
        assert_eq!(keys.iter().max(), Some(&599));
        assert_eq!(queries.point(7, 7), [7; POINT_KEYS], "an empty table");
        assert_eq!(queries.point(7, 3), [7; POINT_KEYS]);
    }

    #[test]
    fn every_server_is_asked_the_same_and_every_client_and_step_something_else() {
        let drawn = |seed, client, step| {
            let mut queries = Queries::new(seed, client, step);
            (queries.range(), queries.point(1, 1 << 40))
        };
        assert_eq!(drawn(9, 1, 4), drawn(9, 1, 4));
        for other in [(8, 1, 4), (9, 2, 4), (9, 1, 5)] {
            assert_ne!(drawn(9, 1, 4), drawn(other.0, other.1, other.2));
        }
    }
}
