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

/// How a table is cut into ranges of its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Partitions {
    /// How many.
    pub number: u32,
    /// Keys of each but the last, which has no end.
    pub rows: u64,
}

/// What makes a table: it has a primary key and no other index.
pub fn create_sql(table: u32, partitions: Option<Partitions>) -> Vec<String> {
    let name = table_name(table);
    let by = match partitions {
        Some(_) => " PARTITION BY RANGE (transactionid)",
        None => "",
    };
    let mut sql = vec![format!(
        "CREATE TABLE {name} (transactionid bigserial PRIMARY KEY, \
         dateandtime timestamp without time zone, cashregisterid int NOT NULL, \
         customerid int NOT NULL, productid int NOT NULL, price int NOT NULL, data varchar(4000)){by}"
    )];
    sql.extend(partitions.into_iter().flat_map(|all| parts(&name, all)));
    sql.push(format!(
        "ALTER SEQUENCE {name}_transactionid_seq CACHE 1000"
    ));
    sql
}

/// The partitions of a table, as published.
fn parts(name: &str, Partitions { number, rows }: Partitions) -> impl Iterator<Item = String> {
    let name = name.to_owned();
    (0..number).map(move |part| {
        let low = u64::from(part).saturating_mul(rows);
        let high = match part + 1 == number {
            true => "MAXVALUE".to_owned(),
            false => low.saturating_add(rows).to_string(),
        };
        format!(
            "CREATE TABLE {name}_p{part} PARTITION OF {name} FOR VALUES FROM ({low}) TO ({high})"
        )
    })
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
            create_sql(2, None)[1],
            "ALTER SEQUENCE pi2_transactionid_seq CACHE 1000"
        );
        let cut = Partitions {
            number: 2,
            rows: 500,
        };
        let cut = create_sql(2, Some(cut));
        assert!(cut[0].ends_with("data varchar(4000)) PARTITION BY RANGE (transactionid)"));
        assert_eq!(
            cut[1..3],
            [
                "CREATE TABLE pi2_p0 PARTITION OF pi2 FOR VALUES FROM (0) TO (500)",
                "CREATE TABLE pi2_p1 PARTITION OF pi2 FOR VALUES FROM (500) TO (MAXVALUE)",
            ]
        );
        assert_eq!(cut.len(), 4);
        let mut out = b"x".to_vec();
        write_delete(&mut out, 12, 1001, 50);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "xDELETE FROM pi12 WHERE transactionid IN (SELECT transactionid FROM pi12 \
             WHERE transactionid >= 1001 ORDER BY transactionid ASC LIMIT 50)"
        );
    }
}
