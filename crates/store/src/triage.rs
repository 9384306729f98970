//! What people said of changes that the runs of a lab show.

use crate::error::StoreError;
use crate::store::Store;

/// What a change is, as somebody says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TriageState {
    /// It comes from something else than the versions.
    Explained,
    /// It is wanted, or known and accepted.
    Expected,
    /// Nothing is said of it any more.
    Open,
}

impl TriageState {
    const ALL: [Self; 3] = [Self::Explained, Self::Expected, Self::Open];

    /// The word in the store and in files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Explained => "explained",
            Self::Expected => "expected",
            Self::Open => "open",
        }
    }

    fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.word() == word)
    }
}

/// Something that was said of a change; the newest counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Triage {
    /// Identifier of the change.
    pub change: String,
    pub state: TriageState,
    pub text: String,
    pub at_unix_ms: i64,
}

impl Store {
    /// Records, durably, what somebody says of a change.
    ///
    /// Errors: `Misuse` while a visit is open, and without a text; `Full`, `Sqlite`.
    pub fn add_triage(&mut self, triage: &Triage) -> Result<(), StoreError> {
        const SQL: &str =
            "insert into triage (change, state, text, at_unix_ms) values (?1, ?2, ?3, ?4)";
        if self.visit.is_some() {
            return Err(self.misuse("a triage while a visit is open".to_owned()));
        }
        if triage.text.trim().is_empty() {
            return Err(self.misuse("a triage without a text".to_owned()));
        }
        let Triage {
            change,
            state,
            text,
            at_unix_ms,
        } = triage;
        self.execute(
            SQL,
            "store a triage in",
            (change, state.word(), text, at_unix_ms),
        )
    }

    /// What was said of changes, in the order in which it was said. A word of a later version counts as open.
    ///
    /// Errors: `Sqlite`.
    pub fn triages(&self) -> Result<Vec<Triage>, StoreError> {
        self.collect(
            "select change, state, text, at_unix_ms from triage order by id",
            [],
            |row| {
                let word: String = row.get(1)?;
                Ok(Triage {
                    change: row.get(0)?,
                    state: TriageState::of(&word).unwrap_or(TriageState::Open),
                    text: row.get(2)?,
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
    fn what_is_said_stays_in_order() {
        let lab = tempfile::tempdir().unwrap();
        let mut store = Store::open(lab.path()).unwrap();
        let said = |state, text: &str, at_unix_ms| Triage {
            change: "ab12".to_owned(),
            state,
            text: text.to_owned(),
            at_unix_ms,
        };
        let all = [
            said(TriageState::Explained, "a new kernel", 1),
            said(TriageState::Open, "no, it is not", 2),
        ];
        for one in &all {
            store.add_triage(one).unwrap();
        }
        assert!(matches!(
            store.add_triage(&said(TriageState::Expected, " ", 3)),
            Err(StoreError::Misuse { .. })
        ));
        drop(store);
        assert_eq!(Store::open(lab.path()).unwrap().triages().unwrap(), all);
    }
}
