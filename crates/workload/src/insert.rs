//! The Insert Benchmark: its tables, statements and data.
//!
//! Statements name tables without their schema, which the session's `search_path` gives.
//!
//! Differs from the published client:
//! * All rows, keys and the choice of queries come from one seed, so that every server gets the same.
//! * `dateandtime` is a calendar, not the wall clock ([`Calendar`]): a slower server gets the same rows.
//! * Queries are prepared and executed with messages of the protocol, not with `PREPARE` and `EXECUTE`: the
//!   server parses neither statement nor numbers again and plans as before (the plan cache is the same).
//!   Their rows come back as text, as there.
//!
//! Source: docs/sources/insert-benchmark.md.

mod calendar;
mod queries;
mod rows;

pub use calendar::Calendar;
pub use queries::{POINT_KEYS, Queries, RangeQuery, point_sql};
pub use rows::{Filler, Rows};

use std::io::Write as _;

/// Rows that one query returns.
pub const ROWS_PER_QUERY: u32 = 10;
/// Cash registers are 0 to one less.
const CASH_REGISTERS: u32 = 1000;
/// Products are 0 to one less.
const PRODUCTS: u32 = 10_000;
/// Customers are 0 to one less.
const CUSTOMERS: u32 = 100_000;
/// Prices are 0 to one less.
const PRICES: u32 = 500;

/// The name of a table, from 1: `pi1`.
pub fn table_name(table: u32) -> String {
    format!("pi{table}")
}

/// What makes a table: it has a primary key and no other index.
pub fn create_sql(table: u32) -> [String; 2] {
    let name = table_name(table);
    [
        format!(
            "CREATE TABLE {name} (transactionid bigserial PRIMARY KEY, \
             dateandtime timestamp without time zone, cashregisterid int NOT NULL, \
             customerid int NOT NULL, productid int NOT NULL, price int NOT NULL, data varchar(4000))"
        ),
        format!("ALTER SEQUENCE {name}_transactionid_seq CACHE 1000"),
    ]
}

/// The secondary indexes with their columns, in order.
const INDEXES: [(&str, &str); 3] = [
    ("marketsegment", "productid, customerid, price"),
    ("registersegment", "cashregisterid, customerid, price"),
    ("pdc", "price, dateandtime, customerid"),
];

/// What makes its three secondary indexes, in order.
pub fn index_sql(table: u32) -> [String; 3] {
    let name = table_name(table);
    INDEXES.map(|(index, columns)| format!("CREATE INDEX {name}_{index} ON {name} ({columns})"))
}

/// What removes them again.
pub fn drop_index_sql(table: u32) -> [String; 3] {
    let name = table_name(table);
    INDEXES.map(|(index, _)| format!("DROP INDEX {name}_{index}"))
}

/// What asks for the oldest row's key.
pub fn min_sql(table: u32) -> String {
    format!("SELECT min(transactionid) FROM {}", table_name(table))
}

/// What asks for the newest row's key.
pub fn max_sql(table: u32) -> String {
    format!("SELECT max(transactionid) FROM {}", table_name(table))
}

/// What a long transaction reads.
pub fn glance_sql(table: u32) -> String {
    format!("SELECT * FROM {} LIMIT 1", table_name(table))
}

/// Appends the statement that deletes the oldest `rows` rows, looked for from key `from` on.
pub fn write_delete(out: &mut Vec<u8>, table: u32, from: i64, rows: u32) {
    // Writing to a Vec cannot fail.
    let _ = write!(
        out,
        "DELETE FROM pi{table} WHERE transactionid IN (SELECT transactionid FROM pi{table} \
         WHERE transactionid >= {from} ORDER BY transactionid ASC LIMIT {rows})"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_the_published_ones() {
        assert_eq!(
            index_sql(3)[2],
            "CREATE INDEX pi3_pdc ON pi3 (price, dateandtime, customerid)"
        );
        assert_eq!(
            create_sql(2)[1],
            "ALTER SEQUENCE pi2_transactionid_seq CACHE 1000"
        );
        let mut out = b"x".to_vec();
        write_delete(&mut out, 12, 1001, 50);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "xDELETE FROM pi12 WHERE transactionid IN (SELECT transactionid FROM pi12 \
             WHERE transactionid >= 1001 ORDER BY transactionid ASC LIMIT 50)"
        );
    }
}
