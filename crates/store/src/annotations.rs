//! What people know of a lab that its runs do not say: annotations, and which anchor follows which.

use crate::error::StoreError;
use crate::store::Store;
use std::collections::BTreeSet;

/// What an annotation is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnnotationKind {
    /// A change that is wanted, or known and accepted.
    Expected,
    /// Something about the machine or its surroundings.
    Environment,
    Note,
}

impl AnnotationKind {
    const ALL: [Self; 3] = [Self::Expected, Self::Environment, Self::Note];

    /// The word in the store and in files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Expected => "expected",
            Self::Environment => "environment",
            Self::Note => "note",
        }
    }

    /// A word of a later version is a note.
    fn of(word: &str) -> Self {
        let mut all = Self::ALL.into_iter();
        all.find(|kind| kind.word() == word).unwrap_or(Self::Note)
    }
}

/// What somebody wrote beside a version, or a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Annotation {
    pub kind: AnnotationKind,
    pub text: String,
    /// The version that it is about, as people call it.
    pub version: Option<String>,
    /// The moment that it is about, milliseconds since 1970.
    pub at_unix_ms: Option<i64>,
    /// The machine that it is about; absent for all.
    pub host: Option<String>,
    /// The cell that it is about, by name; absent for all.
    pub cell: Option<String>,
    pub said_unix_ms: i64,
}

/// An anchor that another one follows, on a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnchorChange {
    /// The machine.
    pub host: String,
    /// Identity of the version that was the anchor.
    pub before: String,
    /// Identity of the version that is.
    pub after: String,
    pub at_unix_ms: i64,
}

impl Store {
    /// Records, durably, an annotation; returns its number.
    ///
    /// Errors: `Misuse` while a visit is open, and without a text; `Full`, `Sqlite`.
    pub fn annotate(&mut self, annotation: &Annotation) -> Result<i64, StoreError> {
        self.add_annotation(annotation, None)
    }

    /// Takes an annotation back, for a stated reason. It stays in the store, and no list has it any more.
    ///
    /// Errors: as [`Store::annotate`].
    pub fn take_back(
        &mut self,
        number: i64,
        reason: &str,
        at_unix_ms: i64,
    ) -> Result<(), StoreError> {
        let reason = Annotation {
            kind: AnnotationKind::Note,
            text: reason.to_owned(),
            version: None,
            at_unix_ms: None,
            host: None,
            cell: None,
            said_unix_ms: at_unix_ms,
        };
        self.add_annotation(&reason, Some(number)).map(|_| ())
    }

    fn add_annotation(
        &mut self,
        annotation: &Annotation,
        takes_back: Option<i64>,
    ) -> Result<i64, StoreError> {
        const SQL: &str = "insert into annotation \
            (kind, text, version, at_unix_ms, host, cell, takes_back, said_unix_ms) \
            values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
        if self.visit.is_some() {
            return Err(self.misuse("an annotation while a visit is open".to_owned()));
        }
        let Annotation {
            kind,
            text,
            version,
            at_unix_ms,
            host,
            cell,
            said_unix_ms,
        } = annotation;
        if text.trim().is_empty() {
            return Err(self.misuse("an annotation without a text".to_owned()));
        }
        let row = (
            kind.word(),
            text,
            version,
            at_unix_ms,
            host,
            cell,
            takes_back,
            said_unix_ms,
        );
        self.execute(SQL, "store an annotation in", row)?;
        let newest: Vec<i64> =
            self.collect("select max(id) from annotation", [], |row| row.get(0))?;
        Ok(newest.into_iter().next().unwrap_or_default())
    }

    /// Annotations that nobody took back, with their numbers, in the order in which they were written.
    ///
    /// Errors: `Sqlite`.
    pub fn annotations(&self) -> Result<Vec<(i64, Annotation)>, StoreError> {
        let all: Vec<(i64, Option<i64>, Annotation)> = self.collect(
            "select id, takes_back, kind, text, version, at_unix_ms, host, cell, said_unix_ms \
             from annotation order by id",
            [],
            |row| {
                let kind: String = row.get(2)?;
                let annotation = Annotation {
                    kind: AnnotationKind::of(&kind),
                    text: row.get(3)?,
                    version: row.get(4)?,
                    at_unix_ms: row.get(5)?,
                    host: row.get(6)?,
                    cell: row.get(7)?,
                    said_unix_ms: row.get(8)?,
                };
                Ok((row.get(0)?, row.get(1)?, annotation))
            },
        )?;
        let gone: BTreeSet<i64> = all.iter().filter_map(|(_, back, _)| *back).collect();
        let stands = |(number, back, _): &(i64, Option<i64>, Annotation)| {
            back.is_none() && !gone.contains(number)
        };
        let standing = all.into_iter().filter(stands);
        Ok(standing.map(|(number, _, one)| (number, one)).collect())
    }

    /// Records, durably, that one anchor follows another.
    ///
    /// Errors: `Misuse` while a visit is open; `Full`, `Sqlite`.
    pub fn replace_anchor(&mut self, change: &AnchorChange) -> Result<(), StoreError> {
        const SQL: &str =
            "insert into anchor (host, before, after, at_unix_ms) values (?1, ?2, ?3, ?4)";
        if self.visit.is_some() {
            return Err(self.misuse("another anchor while a visit is open".to_owned()));
        }
        let AnchorChange {
            host,
            before,
            after,
            at_unix_ms,
        } = change;
        self.execute(SQL, "store an anchor in", (host, before, after, at_unix_ms))
    }

    /// Which anchor follows which, in the order in which that was said.
    ///
    /// Errors: `Sqlite`.
    pub fn anchors(&self) -> Result<Vec<AnchorChange>, StoreError> {
        self.collect(
            "select host, before, after, at_unix_ms from anchor order by id",
            [],
            |row| {
                Ok(AnchorChange {
                    host: row.get(0)?,
                    before: row.get(1)?,
                    after: row.get(2)?,
                    at_unix_ms: row.get(3)?,
                })
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_back_is_in_no_list() {
        let lab = tempfile::tempdir().unwrap();
        let mut store = Store::open(lab.path()).unwrap();
        let annotation = |text: &str| Annotation {
            kind: AnnotationKind::Environment,
            text: text.to_owned(),
            version: Some("18.4".to_owned()),
            at_unix_ms: None,
            host: None,
            cell: Some("scan@1".to_owned()),
            said_unix_ms: 7,
        };
        let first = store.annotate(&annotation("LTO on")).unwrap();
        let second = store.annotate(&annotation("a new kernel")).unwrap();
        assert!(matches!(
            store.annotate(&annotation(" ")),
            Err(StoreError::Misuse { .. })
        ));
        store.take_back(first, "it was off", 8).unwrap();
        drop(store);
        let store = Store::open(lab.path()).unwrap();
        let all = store.annotations().unwrap();
        assert_eq!(all, [(second, annotation("a new kernel"))]);
    }

    #[test]
    fn anchors_stay_in_order() {
        let lab = tempfile::tempdir().unwrap();
        let mut store = Store::open(lab.path()).unwrap();
        let change = |before: &str, after: &str| AnchorChange {
            host: "h".to_owned(),
            before: before.to_owned(),
            after: after.to_owned(),
            at_unix_ms: 1,
        };
        let all = [change("a", "b"), change("b", "c")];
        for one in &all {
            store.replace_anchor(one).unwrap();
        }
        assert_eq!(store.anchors().unwrap(), all);
    }
}
