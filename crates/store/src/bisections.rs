//! Bisections: a question, and what happened since, each durable when it is told.

use crate::error::StoreError;
use crate::store::Store;
use deltabench_model::bisection::{BISECTION_FORMAT, Bisection, Happened, Question};

const INSERT: &str = "insert into bisection (name, question, started_unix_ms, written_by) \
     values (?1, ?2, ?3, ?4) on conflict (name) do nothing";
const INSERT_EVENT: &str = "insert into bisection_event (bisection, event, at_unix_ms) \
     select id, ?2, ?3 from bisection where name = ?1";
const SELECT_EVENTS: &str = "select event from bisection_event where bisection = \
     (select id from bisection where name = ?1) order by id";

impl Store {
    /// Stores a new bisection, durably, before anything of it is measured.
    ///
    /// Errors: `Taken` for a name that the store has, `Full`, `Sqlite`.
    pub fn create_bisection(
        &mut self,
        name: &str,
        question: &Question,
        started_unix_ms: i64,
    ) -> Result<(), StoreError> {
        let text = serde_json::to_string(question)
            .map_err(|error| self.misuse(format!("question: {error}")))?;
        let written_by = env!("CARGO_PKG_VERSION");
        self.execute(
            INSERT,
            "store a bisection in",
            (name, text, started_unix_ms, written_by),
        )?;
        match self.connection.changes() {
            0 => Err(StoreError::Taken {
                path: self.path.clone(),
                what: "bisection",
                name: name.to_owned(),
            }),
            _ => Ok(()),
        }
    }

    /// Records that something happened; it is on disk when this returns.
    ///
    /// Errors: `UnknownRun`, `Full`, `Sqlite`.
    pub fn add_to_bisection(
        &mut self,
        name: &str,
        happened: &Happened,
        at_unix_ms: i64,
    ) -> Result<(), StoreError> {
        if self.bisection_question(name)?.is_none() {
            return Err(self.unknown_bisection(name));
        }
        let text = serde_json::to_string(happened)
            .map_err(|error| self.misuse(format!("event: {error}")))?;
        self.execute(
            INSERT_EVENT,
            "add to a bisection in",
            (name, text, at_unix_ms),
        )
    }

    /// A bisection with all that happened.
    ///
    /// Errors: `UnknownRun`, `Damaged`, `Newer`, `Sqlite`.
    pub fn bisection(&self, name: &str) -> Result<Bisection, StoreError> {
        let question = self.bisection_question(name)?;
        let question = question.ok_or_else(|| self.unknown_bisection(name))?;
        let events: Vec<String> = self.collect(SELECT_EVENTS, [name], |row| row.get(0))?;
        let read = |text: String| {
            serde_json::from_str(&text)
                .map_err(|error| self.damaged(format!("event of bisection {name}: {error}")))
        };
        Ok(Bisection {
            name: name.to_owned(),
            question,
            happened: events.into_iter().map(read).collect::<Result<_, _>>()?,
        })
    }

    /// The names of all bisections, oldest first.
    ///
    /// Errors: `Sqlite`.
    pub fn bisections(&self) -> Result<Vec<String>, StoreError> {
        self.collect(
            "select name from bisection order by started_unix_ms, id",
            [],
            |row| row.get(0),
        )
    }

    fn bisection_question(&self, name: &str) -> Result<Option<Question>, StoreError> {
        const SQL: &str = "select question from bisection where name = ?1";
        let found: Vec<String> = self.collect(SQL, [name], |row| row.get(0))?;
        let Some(text) = found.into_iter().next() else {
            return Ok(None);
        };
        let bad = |error: serde_json::Error| self.damaged(format!("bisection {name}: {error}"));
        let value: serde_json::Value = serde_json::from_str(&text).map_err(bad)?;
        let version = value.get("version").and_then(serde_json::Value::as_u64);
        let found = version.and_then(|version| u32::try_from(version).ok());
        let found = found.unwrap_or(0);
        if found > BISECTION_FORMAT.1 {
            return Err(StoreError::Newer {
                path: self.path.clone(),
                found,
                known: BISECTION_FORMAT.1,
            });
        }
        serde_json::from_value(value).map(Some).map_err(bad)
    }

    fn unknown_bisection(&self, name: &str) -> StoreError {
        StoreError::UnknownRun {
            path: self.path.clone(),
            run: name.to_owned(),
        }
    }
}
