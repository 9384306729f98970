//! The bulk of a run: the rows that make a store large, and that its lists and tables do without.

use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, params_from_iter};
use sha2::{Digest, Sha256};

/// A table, the rows of it that are meant, and their order.
pub(crate) struct Part {
    pub(crate) table: &'static str,
    /// A condition; `?1` is the run.
    pub(crate) rows: &'static str,
    order: &'static str,
    /// The column that numbers its rows, or names the rows that they belong to.
    pub(crate) number: &'static str,
}

const fn part(table: &'static str, rows: &'static str) -> Part {
    Part {
        table,
        rows,
        order: "id",
        number: "id",
    }
}

const OF_RUN: &str = "run = ?1";

/// Kinds of facts that are bulk: all settings as read back, and what each visit began with.
pub(crate) const FACTS: [&str; 2] = ["settings", "warm_up"];

/// The bulk. Rows that others refer to come last, so that it can be deleted in this order.
pub(crate) const BULK: [Part; 8] = [
    Part {
        table: "slice_error",
        rows: "slice in (select id from slice where run = ?1)",
        order: "slice, ordinal",
        number: "slice",
    },
    part("slice", OF_RUN),
    part("sample", OF_RUN),
    part("visit_counters", OF_RUN),
    part("mark", OF_RUN),
    part("record", OF_RUN),
    part("instruction_profile", OF_RUN),
    part("fact", "run = ?1 and kind in ('settings', 'warm_up')"),
];

/// The rest of what belongs to a run: a sealed file has it too, so that it is a store by itself.
pub(crate) const REST: [Part; 12] = [
    part("run", "id = ?1"),
    part("run_state", OF_RUN),
    part("visit", OF_RUN),
    part("fact", "run = ?1 and kind not in ('settings', 'warm_up')"),
    part("finding", OF_RUN),
    part("placebo_result", OF_RUN),
    part("invalidation", OF_RUN),
    part("instruction_count", OF_RUN),
    part("host", "id in (select host from occasion where run = ?1)"),
    part("occasion", OF_RUN),
    part(
        "series",
        "id in (select series from cell_series where run = ?1)",
    ),
    Part {
        table: "cell_series",
        rows: OF_RUN,
        order: "cell",
        number: "cell",
    },
];

/// Copies these rows of a run, each number raised by this much; says how many there were.
pub(crate) fn copy(
    (from, to): (&Connection, &Connection),
    part: &Part,
    run: i64,
    raised_by: i64,
) -> rusqlite::Result<u64> {
    let mut select = from.prepare(&select(part))?;
    let columns: Vec<String> = select
        .column_names()
        .into_iter()
        .map(str::to_owned)
        .collect();
    let marks = vec!["?"; columns.len()].join(", ");
    let names = columns.join(", ");
    let mut insert = to.prepare(&format!(
        "insert into {} ({names}) values ({marks})",
        part.table
    ))?;
    let mut rows = select.query([run])?;
    let mut copied = 0;
    while let Some(row) = rows.next()? {
        let mut values: Vec<Value> = Vec::with_capacity(columns.len());
        for (at, name) in columns.iter().enumerate() {
            values.push(match (row.get(at)?, name == part.number) {
                (Value::Integer(number), true) => Value::Integer(number + raised_by),
                (value, _) => value,
            });
        }
        insert.execute(params_from_iter(values))?;
        copied += 1;
    }
    Ok(copied)
}

/// How much the numbers of these rows have to rise so that none of them is taken in a store.
pub(crate) fn raise(
    (from, to): (&Connection, &Connection),
    part: &Part,
    run: i64,
) -> rusqlite::Result<i64> {
    let Part {
        table,
        rows,
        number,
        ..
    } = part;
    let mut numbers = from.prepare(&format!(
        "select {number} from {table} where {rows} order by 1"
    ))?;
    let numbers: Vec<i64> = numbers
        .query_map([run], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let Some(first) = numbers.first() else {
        return Ok(0);
    };
    let mut taken = to.prepare(&format!(
        "select exists (select 1 from {table} where {number} = ?1)"
    ))?;
    for at in &numbers {
        if taken.query_row([at], |row| row.get(0))? {
            let last: i64 =
                to.query_row(&format!("select max({number}) from {table}"), [], |row| {
                    row.get(0)
                })?;
            return Ok(last + 1 - first);
        }
    }
    Ok(0)
}

/// Deletes these rows of a run; says how many there were.
pub(crate) fn delete(from: &Connection, part: &Part, run: i64) -> rusqlite::Result<u64> {
    let Part { table, rows, .. } = part;
    let deleted = from.execute(&format!("delete from {table} where {rows}"), [run])?;
    Ok(deltabench_model::units::count(deleted))
}

/// SHA-256 over every value of the bulk of a run, and how many rows that is. Without numbers, equal rows that
/// are numbered otherwise have the same.
pub(crate) fn digest(
    of: &Connection,
    run: i64,
    with_numbers: bool,
) -> rusqlite::Result<(String, u64)> {
    let mut hash = Sha256::new();
    let mut all = 0;
    for part in &BULK {
        let mut select = of.prepare(&select(part))?;
        let columns: Vec<String> = select
            .column_names()
            .into_iter()
            .map(str::to_owned)
            .collect();
        let mut rows = select.query([run])?;
        while let Some(row) = rows.next()? {
            hash.update(part.table);
            for (at, name) in columns.iter().enumerate() {
                if with_numbers || name != part.number {
                    hash.update([0]);
                    hash.update(name);
                    add(&mut hash, row.get_ref(at)?);
                }
            }
            all += 1;
        }
    }
    Ok((format!("{:x}", hash.finalize()), all))
}

/// A value with its type and length, so that no two rows read alike.
fn add(hash: &mut Sha256, value: ValueRef<'_>) {
    let mut bytes = |kind: u8, bytes: &[u8]| {
        hash.update([kind]);
        hash.update(deltabench_model::units::count(bytes.len()).to_le_bytes());
        hash.update(bytes);
    };
    match value {
        ValueRef::Null => bytes(1, &[]),
        ValueRef::Integer(value) => bytes(2, &value.to_le_bytes()),
        ValueRef::Real(value) => bytes(3, &value.to_bits().to_le_bytes()),
        ValueRef::Text(text) => bytes(4, text),
        ValueRef::Blob(blob) => bytes(5, blob),
    }
}

fn select(part: &Part) -> String {
    let Part {
        table, rows, order, ..
    } = part;
    format!("select * from {table} where {rows} order by {order}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;
    use deltabench_model::fact::FactKind;
    use std::collections::BTreeSet;

    #[test]
    fn a_sealed_file_has_every_table_of_a_run() {
        let lab = tempfile::tempdir().unwrap();
        let store = Store::open(lab.path()).unwrap();
        let tables: BTreeSet<String> = store
            .collect(
                "select m.name from sqlite_schema m, pragma_table_info(m.name) c \
                 where m.type = 'table' and c.name = 'run' and m.name <> 'archived'",
                [],
                |row| row.get(0),
            )
            .unwrap()
            .into_iter()
            .collect();
        let parts = BULK.iter().chain(&REST).map(|part| part.table.to_owned());
        let mut sealed: BTreeSet<String> = parts.collect();
        for of_others in ["run", "slice_error", "host", "series"] {
            assert!(sealed.remove(of_others), "{of_others}");
        }
        assert_eq!(tables, sealed, "a new table must be sealed too");
    }

    #[test]
    fn the_facts_that_are_bulk_are_those_of_the_schema() {
        let words = [FactKind::Settings.word(), FactKind::VisitStart.word()];
        assert_eq!(words, FACTS);
        let listed = format!("('{}', '{}')", words[0], words[1]);
        let (.., guards) = crate::migrations::MIGRATIONS[16];
        assert!(guards.contains(&listed));
        assert_eq!(
            BULK.iter()
                .filter(|part| part.rows.contains(&listed))
                .count(),
            1
        );
    }
}
