//! Values that were computed from runs, by run.

use crate::store::Store;
use rusqlite::OptionalExtension;
use std::collections::BTreeMap;

const SELECT: &str = "select value from kept where what = ?1 and run = ?2 and made_from = ?3";
const SELECT_ALL: &str = "select run, made_from, value from kept where what = ?1";
const INSERT: &str =
    "insert or replace into kept (what, run, made_from, value) values (?1, ?2, ?3, ?4)";

/// A value that was kept of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// What it was made from.
    pub made_from: String,
    pub value: String,
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

    /// Whether values are kept here at all.
    pub fn keeps(&self) -> bool {
        self.derived.file(&self.lab).is_some()
    }

    /// From now on computes everything: neither reads nor writes what was kept.
    #[must_use]
    pub fn without_kept(self) -> Self {
        self.derived.is_broken.set(true);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DERIVED_NAME;
    use crate::derived::APPLICATION_ID;
    use rusqlite::Connection;

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
        // A second reader of the same lab keeps what the first one does.
        let beside = again.again().unwrap();
        assert_eq!(beside.kept("judged", "r", "2").as_deref(), Some("two"));
        assert!(beside.keeps() && !without.keeps());
        assert!(!without.again().unwrap().keeps());
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
