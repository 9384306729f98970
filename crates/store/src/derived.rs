//! What was computed from runs, kept so that it is computed once: a file of its own beside the store.
//!
//! No record is in it, and it may be deleted at any time. Each value names what it was made from, so one that
//! does not fit any more is not used. A file that cannot be opened, read or written makes things slower and
//! nothing else.

use crate::store::Store;
use rusqlite::{Connection, ErrorCode, OptionalExtension};
use std::cell::{Cell, OnceCell};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Name of the file in the lab directory.
pub const DERIVED_NAME: &str = "history.sqlite";

/// What SQLite calls the kind of the file: "DLTH".
const APPLICATION_ID: i64 = 0x444C_5448;
/// Its format. A file of another one is emptied, because everything in it can be computed again.
const FORMAT: i64 = 1;
/// How long to wait for another process. Nobody keeps the file for longer than a value takes to write.
const BUSY: Duration = Duration::from_millis(500);
/// In KiB: rows of one analysis are next to each other and read once.
const CACHE_KIB: i64 = 8_192;

const CREATE: &str = "create table if not exists kept (what text not null, run text not null, \
    made_from text not null, value text not null, primary key (what, run))";
const SELECT: &str = "select value from kept where what = ?1 and run = ?2 and made_from = ?3";
const SELECT_ALL: &str = "select run, made_from, value from kept where what = ?1";
const INSERT: &str =
    "insert or replace into kept (what, run, made_from, value) values (?1, ?2, ?3, ?4)";

/// The file, opened when it is needed first.
#[derive(Debug, Default)]
pub(crate) struct Derived {
    file: OnceCell<Option<Connection>>,
    /// Whether it has failed once. Then it is left alone, because each further try may wait.
    is_broken: Cell<bool>,
}

/// A value that was kept of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// What it was made from.
    pub made_from: String,
    pub value: String,
}

impl Derived {
    fn file(&self, lab: &Path) -> Option<&Connection> {
        if self.is_broken.get() {
            return None;
        }
        let file = self.file.get_or_init(|| open(&lab.join(DERIVED_NAME)));
        file.as_ref()
    }

    /// The result, or none of a file that is not used any more.
    fn done<T>(&self, result: rusqlite::Result<T>) -> Option<T> {
        if result.is_err() {
            self.is_broken.set(true);
        }
        result.ok()
    }
}

impl Store {
    /// What was kept of a run under this name, if it was made from the same.
    pub fn kept(&self, what: &str, run: &str, made_from: &str) -> Option<String> {
        let file = self.derived.file(&self.lab)?;
        let found = file.prepare_cached(SELECT).and_then(|mut select| {
            select
                .query_row((what, run, made_from), |row| row.get(0))
                .optional()
        });
        self.derived.done(found).flatten()
    }

    /// What was kept under this name, by run, whatever it was made from.
    pub fn all_kept(&self, what: &str) -> BTreeMap<String, Kept> {
        let Some(file) = self.derived.file(&self.lab) else {
            return BTreeMap::new();
        };
        let read = || -> rusqlite::Result<BTreeMap<String, Kept>> {
            let mut select = file.prepare_cached(SELECT_ALL)?;
            let rows = select.query_map([what], |row| {
                let kept = Kept {
                    made_from: row.get(1)?,
                    value: row.get(2)?,
                };
                Ok((row.get(0)?, kept))
            })?;
            rows.collect()
        };
        self.derived.done(read()).unwrap_or_default()
    }

    /// Keeps a value of a run in place of the one before.
    pub fn keep(&self, what: &str, run: &str, kept: &Kept) {
        let Some(file) = self.derived.file(&self.lab) else {
            return;
        };
        let done = file
            .prepare_cached(INSERT)
            .and_then(|mut insert| insert.execute((what, run, &kept.made_from, &kept.value)));
        self.derived.done(done);
    }

    /// From now on computes everything: neither reads nor writes what was kept.
    #[must_use]
    pub fn without_kept(self) -> Self {
        self.derived.is_broken.set(true);
        self
    }
}

/// Opens the file, made anew if it is damaged; `None` where it cannot be used.
fn open(path: &Path) -> Option<Connection> {
    match prepared(path) {
        Ok(file) => file,
        Err(error) if is_damaged(&error) => {
            for ending in ["", "-wal", "-shm"] {
                let mut name = path.as_os_str().to_owned();
                name.push(ending);
                let _ = std::fs::remove_file(name);
            }
            prepared(path).ok().flatten()
        }
        Err(_) => None,
    }
}

fn is_damaged(error: &rusqlite::Error) -> bool {
    let damaged = [ErrorCode::NotADatabase, ErrorCode::DatabaseCorrupt];
    error
        .sqlite_error_code()
        .is_some_and(|code| damaged.contains(&code))
}

/// `None` for a file of somebody else, and of a version that is newer.
fn prepared(path: &Path) -> rusqlite::Result<Option<Connection>> {
    let file = Connection::open(path)?;
    file.busy_timeout(BUSY)?;
    let number = |name: &str| file.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let tables: i64 = file.query_row("select count(*) from sqlite_master", [], |row| row.get(0))?;
    let (id, format) = (number("application_id")?, number("user_version")?);
    if (tables > 0 && id != APPLICATION_ID) || format > FORMAT {
        return Ok(None);
    }
    // What is lost with the power is computed again; the file stays whole.
    file.query_row("pragma journal_mode = wal", [], |_| Ok(()))?;
    file.pragma_update(None, "synchronous", "normal")?;
    file.pragma_update(None, "cache_size", -CACHE_KIB)?;
    if format < FORMAT {
        file.execute_batch("drop table if exists kept")?;
        file.pragma_update(None, "application_id", APPLICATION_ID)?;
        file.pragma_update(None, "user_version", FORMAT)?;
    }
    file.execute_batch(CREATE)?;
    Ok(Some(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(made_from: &str, value: &str) -> Kept {
        Kept {
            made_from: made_from.to_owned(),
            value: value.to_owned(),
        }
    }

    #[test]
    fn a_value_is_found_as_long_as_it_was_made_from_the_same() {
        let lab = tempfile::tempdir().unwrap();
        let store = Store::open(lab.path()).unwrap();
        assert_eq!(store.kept("judged", "r", "1"), None);
        store.keep("judged", "r", &kept("1", "one"));
        store.keep("other", "r", &kept("1", "else"));
        let again = Store::open_to_read(lab.path()).unwrap();
        assert_eq!(again.kept("judged", "r", "1").as_deref(), Some("one"));
        assert_eq!(again.kept("judged", "r", "2"), None);
        again.keep("judged", "r", &kept("2", "two"));
        assert_eq!(store.kept("judged", "r", "1"), None);
        let all = store.all_kept("judged");
        assert_eq!(all, BTreeMap::from([("r".to_owned(), kept("2", "two"))]));
        let without = Store::open(lab.path()).unwrap().without_kept();
        assert_eq!(without.kept("judged", "r", "2"), None);
        without.keep("judged", "r", &kept("3", "three"));
        assert_eq!(store.kept("judged", "r", "2").as_deref(), Some("two"));
    }

    #[test]
    fn a_file_that_is_damaged_is_made_anew_and_one_of_somebody_else_is_left_alone() {
        let lab = tempfile::tempdir().unwrap();
        let file = lab.path().join(DERIVED_NAME);
        std::fs::write(&file, "no database ".repeat(99)).unwrap();
        let store = Store::open(lab.path()).unwrap();
        store.keep("judged", "r", &kept("1", "one"));
        assert_eq!(store.kept("judged", "r", "1").as_deref(), Some("one"));
        for (id, version) in [("application_id", 5), ("user_version", 9)] {
            let other = tempfile::tempdir().unwrap();
            let theirs = Connection::open(other.path().join(DERIVED_NAME)).unwrap();
            theirs.execute_batch("create table mine (a)").unwrap();
            theirs
                .pragma_update(None, "application_id", APPLICATION_ID)
                .unwrap();
            theirs.pragma_update(None, id, version).unwrap();
            let store = Store::open(other.path()).unwrap();
            store.keep("judged", "r", &kept("1", "one"));
            assert_eq!(store.kept("judged", "r", "1"), None, "{id}");
            let tables: i64 = theirs
                .query_row("select count(*) from sqlite_master", [], |row| row.get(0))
                .unwrap();
            assert_eq!(tables, 1, "{id}");
        }
    }

    #[test]
    fn where_nothing_can_be_written_nothing_is_kept() {
        let lab = tempfile::tempdir().unwrap();
        // A directory in its place: root can write to any file.
        std::fs::create_dir(lab.path().join(DERIVED_NAME)).unwrap();
        let store = Store::open(lab.path()).unwrap();
        store.keep("judged", "r", &kept("1", "one"));
        assert_eq!(store.kept("judged", "r", "1"), None);
        assert!(store.all_kept("judged").is_empty());
    }
}
