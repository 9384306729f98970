//! Whether a lab is the one that it was, by all that it holds.

use crate::error::StoreError;
use crate::sizes::TABLES;
use crate::store::Store;
use rusqlite::types::ValueRef;
use sha2::{Digest, Sha256};

/// Tables with a row for each run or more, of which the number of the last row says whether there are new
/// ones: nothing in them is ever changed, and what an archive takes out is in `archived`. With those that
/// [`TABLES`] names; all others are read.
const OF_RUNS: [&str; 3] = ["run", "slice_error", "step"];

/// A table of runs whose rows are read nevertheless: a few, with words that people wrote.
const READ: &str = "invalidation";

/// The errors of a slice come and go with it, and have no numbers.
const UNNUMBERED: &str = "slice_error";

impl Store {
    /// A hash that differs if any record of this lab does. What single runs are is in their stamps
    /// ([`Store::stamps`]): two labs whose runs have other names may have the same hash.
    ///
    /// Errors: `Sqlite`.
    pub fn content(&self) -> Result<String, StoreError> {
        let sql = "select name from sqlite_schema where type = 'table' order by name";
        let tables: Vec<String> = self.collect(sql, [], |row| row.get(0))?;
        let mut hash = Sha256::new();
        for table in tables {
            hash.update(&table);
            let is_of_runs = OF_RUNS.contains(&table.as_str())
                || TABLES
                    .iter()
                    .any(|(name, _)| *name == table && table != READ);
            if table == UNNUMBERED {
                continue;
            }
            let sql = match is_of_runs {
                true => format!("select max(rowid) from \"{table}\""),
                false => format!("select * from \"{table}\""),
            };
            for row in self.collect(&sql, [], row_as_bytes)? {
                hash.update(row);
            }
        }
        Ok(format!("{:x}", hash.finalize()))
    }
}

/// The values of a row, each with its kind and its length: two rows that differ have other bytes.
fn row_as_bytes(row: &rusqlite::Row<'_>) -> rusqlite::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let columns = row.as_ref().column_count();
    for column in 0..columns {
        let mut put = |kind: u8, value: &[u8]| {
            bytes.push(kind);
            bytes.extend(value.len().to_le_bytes());
            bytes.extend(value);
        };
        match row.get_ref(column)? {
            ValueRef::Null => put(0, &[]),
            ValueRef::Integer(value) => put(1, &value.to_le_bytes()),
            ValueRef::Real(value) => put(2, &value.to_le_bytes()),
            ValueRef::Text(value) => put(3, value),
            ValueRef::Blob(value) => put(4, value),
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Annotation, AnnotationKind, RunState, Triage, TriageState};
    use deltabench_model::invalidation::Invalidation;

    fn triage(text: &str) -> Triage {
        Triage {
            change: "0123abcd".to_owned(),
            state: TriageState::Explained,
            text: text.to_owned(),
            at_unix_ms: 5,
        }
    }

    #[test]
    fn whatever_is_stored_changes_it_and_looking_does_not() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = Store::open(directory.path()).unwrap();
        let mut seen = vec![store.content().unwrap()];
        let mut is_new = |store: &Store, what: &str| {
            let content = store.content().unwrap();
            assert_eq!(content, store.content().unwrap(), "{what}");
            assert!(!seen.contains(&content), "{what}");
            seen.push(content);
        };
        let plan = deltabench_testkit::small_run::plan();
        store.create_run("r", &plan, RunState::Running, 1).unwrap();
        is_new(&store, "a run");
        store.add_triage(&triage("a kernel")).unwrap();
        is_new(&store, "a triage");
        let note = Annotation {
            kind: AnnotationKind::Note,
            text: "the host moved".to_owned(),
            version: None,
            at_unix_ms: Some(7),
            host: None,
            cell: None,
            said_unix_ms: 8,
        };
        let number = store.annotate(&note).unwrap();
        is_new(&store, "a note");
        store.take_back(number, "it did not", 9).unwrap();
        is_new(&store, "a note that is taken back");
        let withdrawal = Invalidation {
            cell: None,
            reason: "a backup ran".to_owned(),
            at_unix_ms: 5,
        };
        store.invalidate("r", &withdrawal).unwrap();
        is_new(&store, "a withdrawal");
        // In words alone, where all numbers of rows are the same.
        for text in ["one", "two"] {
            let other = tempfile::tempdir().unwrap();
            let mut other = Store::open(other.path()).unwrap();
            other.add_triage(&triage(text)).unwrap();
            is_new(&other, text);
        }
    }
}
