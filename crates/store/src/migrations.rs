//! The schema, as the list of steps that made it.
//!
//! Each step runs in its own transaction and is recorded with its SQL. A released step is never edited: a
//! change is a new step.

mod guards;

use crate::error::StoreError;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior};
use std::path::Path;

/// Marks the file as ours (`pragma application_id`): "DLTB".
pub(crate) const APPLICATION_ID: i32 = 0x444C_5442;

/// The steps: number, name, SQL.
pub(crate) const MIGRATIONS: [(u32, &str, &str); 19] = [
    (1, "first", include_str!("migrations/0001-first.sql")),
    (
        2,
        "neighbours",
        include_str!("migrations/0002-neighbours.sql"),
    ),
    (
        3,
        "placebo-ledger",
        include_str!("migrations/0003-placebo-ledger.sql"),
    ),
    (4, "observed", include_str!("migrations/0004-observed.sql")),
    (5, "steps", include_str!("migrations/0005-steps.sql")),
    (
        6,
        "void-detail",
        include_str!("migrations/0006-void-detail.sql"),
    ),
    (7, "records", include_str!("migrations/0007-records.sql")),
    (8, "counts", include_str!("migrations/0008-counts.sql")),
    (
        9,
        "placebo-p",
        include_str!("migrations/0009-placebo-p.sql"),
    ),
    (
        10,
        "bisections",
        include_str!("migrations/0010-bisections.sql"),
    ),
    (
        11,
        "occasions",
        include_str!("migrations/0011-occasions.sql"),
    ),
    (12, "units", include_str!("migrations/0012-units.sql")),
    (13, "triage", include_str!("migrations/0013-triage.sql")),
    (
        14,
        "background",
        include_str!("migrations/0014-background.sql"),
    ),
    (
        15,
        "annotations",
        include_str!("migrations/0015-annotations.sql"),
    ),
    (16, "archived", include_str!("migrations/0016-archived.sql")),
    (17, "guards", guards::SQL),
    (
        18,
        "told-nights",
        include_str!("migrations/0018-told-nights.sql"),
    ),
    (19, "probes", include_str!("migrations/0019-probes.sql")),
];

/// Brings the file to the newest schema; refuses a file that is newer than this program or not ours.
pub(crate) fn migrate(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let known = MIGRATIONS
        .iter()
        .map(|(number, ..)| *number)
        .max()
        .unwrap_or(0);
    let fail = |source| StoreError::sqlite(path, "open", source);
    let found = newest(connection, path)?;
    if found > known {
        return Err(StoreError::Newer {
            path: path.to_owned(),
            found,
            known,
        });
    }
    for (number, name, sql) in MIGRATIONS.iter().filter(|(number, ..)| *number > found) {
        // Immediate: of two processes that open a new lab at once, the second waits and finds the step done.
        let step = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(fail)?;
        if newest(&step, path)? >= *number {
            continue;
        }
        step.execute_batch(CREATE_MIGRATION).map_err(fail)?;
        step.pragma_update(None, "application_id", APPLICATION_ID)
            .map_err(fail)?;
        step.execute_batch(sql).map_err(fail)?;
        step.execute(
            "insert into migration (number, name, sql, applied_by) values (?1, ?2, ?3, ?4)",
            (number, name, sql, env!("CARGO_PKG_VERSION")),
        )
        .map_err(fail)?;
        step.commit().map_err(fail)?;
    }
    Ok(())
}

const CREATE_MIGRATION: &str = "create table if not exists migration (
    number     integer primary key,
    name       text not null,
    sql        text not null,
    applied_by text not null
) strict;";

/// Whether the file has the newest schema. Errors: a file that is newer than this program or not ours.
pub(crate) fn is_newest(connection: &Connection, path: &Path) -> Result<bool, StoreError> {
    let found = newest(connection, path)?;
    let known = MIGRATIONS.iter().map(|(number, ..)| *number).max();
    let known = known.unwrap_or(0);
    match found > known {
        true => Err(StoreError::Newer {
            path: path.to_owned(),
            found,
            known,
        }),
        false => Ok(found == known),
    }
}

/// Number of the newest step in the file; 0 when it is empty.
fn newest(connection: &Connection, path: &Path) -> Result<u32, StoreError> {
    let fail = |source| StoreError::sqlite(path, "open", source);
    let tables: u32 = connection
        .query_row("select count(*) from sqlite_schema", [], |row| row.get(0))
        .map_err(fail)?;
    if tables == 0 {
        return Ok(0);
    }
    let id: i32 = connection
        .query_row("pragma application_id", [], |row| row.get(0))
        .map_err(fail)?;
    if id != APPLICATION_ID {
        return Err(StoreError::Foreign {
            path: path.to_owned(),
        });
    }
    let newest = connection
        .query_row("select max(number) from migration", [], |row| {
            row.get::<_, Option<u32>>(0)
        })
        .optional()
        .map_err(fail)?;
    Ok(newest.flatten().unwrap_or(0))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{FILE_NAME, Store};
    use deltabench_model::plan::{CellId, ServerId};
    use deltabench_model::slice::VoidReason;
    use std::path::PathBuf;

    /// A file of format 1 with a run `r` of three steps, the first of them recorded twice.
    pub fn format_1(lab: &Path) -> PathBuf {
        let path = lab.join(FILE_NAME);
        let raw = Connection::open(&path).unwrap();
        raw.execute_batch(CREATE_MIGRATION).unwrap();
        raw.pragma_update(None, "application_id", APPLICATION_ID)
            .unwrap();
        for (number, name, sql) in &MIGRATIONS[..6] {
            raw.execute_batch(sql).unwrap();
            let row = (number, name, sql);
            raw.execute("insert into migration values (?1, ?2, ?3, '0')", row)
                .unwrap();
        }
        raw.execute_batch(
            r#"insert into run values (3, 'r', '{}', 0, '0');
               insert into step values (7, 3, 0, 1, 2, '{"void":"stalled","operations":1}');
               insert into step values (8, 3, 0, 0, 2, '{"void":null,"operations":2}');
               insert into step values (9, 3, 0, 1, 2, '{"operations":3}');"#,
        )
        .unwrap();
        path
    }

    #[test]
    fn steps_of_format_1_become_records() {
        let lab = tempfile::tempdir().unwrap();
        let path = format_1(lab.path());
        let store = Store::open(lab.path()).unwrap();
        let records = store.records("r").unwrap();
        let found: Vec<_> = records
            .iter()
            .map(|one| (one.kind.as_str(), one.cell, one.server, &*one.payload))
            .collect();
        let expected = [
            (
                "insert-step",
                CellId(0),
                ServerId(2),
                r#"{"void":null,"operations":2}"#,
            ),
            ("insert-step", CellId(1), ServerId(2), r#"{"operations":3}"#),
        ];
        assert_eq!(found, expected, "the later one counts");
        assert!(records.iter().all(|one| one.void.is_none()));
        let raw = Connection::open(path).unwrap();
        let word: String = raw
            .query_row("select void from record where id = 7", [], |row| row.get(0))
            .unwrap();
        assert_eq!(VoidReason::from_word(&word), Some(VoidReason::Stalled));
        let format: u32 = raw
            .query_row("pragma user_version", [], |row| row.get(0))
            .unwrap();
        assert_eq!(format, 2);
        assert!(raw.execute("update record set cell = 5", []).is_err());
    }

    #[test]
    fn every_migration_is_recorded_with_its_sql_and_runs_once() {
        let lab = tempfile::tempdir().unwrap();
        drop(Store::open(lab.path()).unwrap());
        drop(Store::open(lab.path()).unwrap());
        let raw = Connection::open(lab.path().join(FILE_NAME)).unwrap();
        let rows: Vec<(u32, String, String)> = raw
            .prepare("select number, name, sql from migration order by number")
            .unwrap()
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        let expected: Vec<_> = MIGRATIONS
            .iter()
            .map(|(n, name, sql)| (*n, (*name).to_owned(), (*sql).to_owned()))
            .collect();
        assert_eq!(rows, expected);
    }

    #[test]
    fn a_newer_file_is_refused_and_left_alone() {
        let lab = tempfile::tempdir().unwrap();
        drop(Store::open(lab.path()).unwrap());
        let raw = Connection::open(lab.path().join(FILE_NAME)).unwrap();
        raw.execute(
            "insert into migration values (999, 'future', 'x', '9.9')",
            [],
        )
        .unwrap();
        let error = Store::open(lab.path()).unwrap_err();
        assert!(
            matches!(error, StoreError::Newer { found: 999, .. }),
            "{error}"
        );
        assert!(
            error
                .to_string()
                .ends_with("was written by a newer deltabench; upgrade")
        );
    }

    #[test]
    fn a_foreign_file_is_refused() {
        let lab = tempfile::tempdir().unwrap();
        let path = lab.path().join(FILE_NAME);
        Connection::open(&path)
            .unwrap()
            .execute_batch("create table x (y)")
            .unwrap();
        assert!(matches!(
            Store::open(lab.path()),
            Err(StoreError::Foreign { .. })
        ));
        std::fs::write(
            &path,
            "a text file, long enough to be looked at as a database header ".repeat(9),
        )
        .unwrap();
        assert!(matches!(
            Store::open(lab.path()),
            Err(StoreError::Foreign { .. })
        ));
    }

    #[test]
    fn the_schema_page_names_every_table_and_column() {
        let page = include_str!("../../../docs/store.md");
        let lab = tempfile::tempdir().unwrap();
        drop(Store::open(lab.path()).unwrap());
        let raw = Connection::open(lab.path().join(FILE_NAME)).unwrap();
        let columns: Vec<(String, String)> = raw
            .prepare(
                "select m.name, c.name from sqlite_schema m, pragma_table_info(m.name) c \
                 where m.type = 'table'",
            )
            .unwrap()
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        assert!(columns.len() > 40);
        for (table, column) in columns {
            let section = page
                .split("\n## ")
                .find(|part| part.starts_with(&format!("`{table}`")));
            let section = section.unwrap_or_else(|| panic!("no section for {table}"));
            assert!(
                section.contains(&format!("`{column}`")),
                "{table}.{column} is not described"
            );
        }
    }
}
