//! The file: opening it, and what is stored beside slices.

use crate::bulk;
use crate::derived::Derived;
use crate::error::StoreError;
use crate::migrations::{is_newest, migrate};
use crate::opened::{OpenedFiles, collect_from};
use crate::read_only::{BUSY, LabCopy, cannot_be_written, read_only};
use deltabench_model::fact::{Fact, FactKind};
use deltabench_model::finding::{Finding, Severity};
use deltabench_model::plan::{self, CellId, PLAN_FORMAT, Plan, ServerId};
use rusqlite::Connection;
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};

/// Name of the file in the lab directory.
pub const FILE_NAME: &str = "deltabench.sqlite";

const ADD_FINDING: &str = "insert into finding (run, kind, severity, text) values (?1, ?2, ?3, ?4)";

/// Pages kept in memory while a visit is open, KiB: one visit never spills to disk before its commit.
const CACHE_KIB: i64 = 65_536;

/// A fact as it was recorded beside the slices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded<T> {
    /// The server it is about, if about one.
    pub server: Option<ServerId>,
    /// The block it was true in, if not for the whole run.
    pub block: Option<u32>,
    pub fact: T,
}

/// The open visit: slices appended now belong to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OpenVisit {
    pub(crate) run: String,
    pub(crate) run_id: i64,
    pub(crate) cell: CellId,
    pub(crate) block: u32,
    pub(crate) slices: u64,
}

/// The lab's file.
#[derive(Debug)]
pub struct Store {
    pub(crate) connection: Connection,
    pub(crate) path: PathBuf,
    pub(crate) lab: PathBuf,
    pub(crate) visit: Option<OpenVisit>,
    /// What the connection reads, if not the lab's own file; dropped after it.
    pub(crate) copy: Option<LabCopy>,
    /// Sealed files of archived runs.
    pub(crate) opened: OpenedFiles,
    /// What was computed from the runs.
    pub(crate) derived: Derived,
}

impl Store {
    /// Opens the lab, making directory and file where they are missing, and brings the schema up to date.
    ///
    /// Errors: `Directory`, `Newer`, `Foreign`, `Full`, `Sqlite`.
    pub fn open(lab: &Path) -> Result<Self, StoreError> {
        std::fs::create_dir_all(lab).map_err(|source| StoreError::Directory {
            path: lab.to_owned(),
            source,
        })?;
        let path = lab.join(FILE_NAME);
        let fail = |source| StoreError::sqlite(&path, "open", source);
        let mut connection = Connection::open(&path).map_err(fail)?;
        // Every query is prepared once; the default of 16 is just enough and easily outgrown.
        connection.set_prepared_statement_cache_capacity(32);
        connection.busy_timeout(BUSY).map_err(fail)?;
        migrate(&mut connection, &path)?;
        configure(&connection, &path)?;
        Ok(Self {
            connection,
            path,
            lab: lab.to_owned(),
            visit: None,
            copy: None,
            opened: OpenedFiles::default(),
            derived: Derived::default(),
        })
    }

    /// Opens a lab that must already be there: for commands that only look. Of one that cannot be written, a
    /// copy in the directory for temporary files; that takes nothing more.
    ///
    /// Errors: `Missing`, otherwise as [`Store::open`].
    pub fn open_existing(lab: &Path) -> Result<Self, StoreError> {
        let path = lab.join(FILE_NAME);
        if !path.is_file() {
            return Err(StoreError::Missing { path });
        }
        match Self::open(lab) {
            Err(error) if cannot_be_written(&error) => Self::open_copy(lab),
            opened => opened,
        }
    }

    /// Opens a lab that must already be there to read it alone: nothing in it changes, not even its schema.
    /// Of one with an older schema, or of a directory that cannot be written, a copy is read.
    ///
    /// Errors: as [`Store::open_existing`].
    pub fn open_to_read(lab: &Path) -> Result<Self, StoreError> {
        match Self::open_in_place(lab)? {
            Some(store) => Ok(store),
            None => Self::open_copy(lab),
        }
    }

    /// Opens the lab's own file to read it alone; `None` where only a copy can be read.
    fn open_in_place(lab: &Path) -> Result<Option<Self>, StoreError> {
        let path = lab.join(FILE_NAME);
        if !path.is_file() {
            return Err(StoreError::Missing { path });
        }
        let fail = |source| StoreError::sqlite(&path, "open", source);
        let connection = read_only(&path).map_err(fail)?;
        match is_newest(&connection, &path) {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(error) if cannot_be_written(&error) => return Ok(None),
            Err(error) => return Err(error),
        }
        connection.set_prepared_statement_cache_capacity(32);
        Ok(Some(Self {
            connection,
            path,
            lab: lab.to_owned(),
            visit: None,
            copy: None,
            opened: OpenedFiles::default(),
            derived: Derived::default(),
        }))
    }

    /// Opens the lab again if a copy of it is read and somebody has written to the lab since.
    /// [`Store::data_version`] changes with it. A copy that was made a moment ago is kept for a while.
    ///
    /// Errors: as [`Store::open_to_read`]; then the old copy is still read.
    pub fn renew(&mut self) -> Result<(), StoreError> {
        let Some(copy) = self.copy.as_ref().filter(|copy| copy.is_outdated()) else {
            return Ok(());
        };
        let renewed = match Self::open_in_place(&self.lab)? {
            Some(store) => store,
            None if copy.has_rested() => Self::open_copy(&self.lab)?,
            None => return Ok(()),
        };
        renewed.derived.is_broken.set(self.derived.is_broken.get());
        *self = renewed;
        Ok(())
    }

    /// The same lab once more, for a thread that reads beside this one. `None` where that is not worth it: a
    /// copy would be copied again, and a lab that cannot be opened again is read by one thread.
    #[must_use]
    pub fn again(&self) -> Option<Self> {
        if self.copy.is_some() {
            return None;
        }
        let again = Self::open_to_read(&self.lab).ok()?;
        if again.copy.is_some() {
            return None;
        }
        again.derived.is_broken.set(self.derived.is_broken.get());
        Some(again)
    }

    /// The directory of the lab.
    pub fn lab(&self) -> &Path {
        &self.lab
    }

    pub(crate) fn open_copy(lab: &Path) -> Result<Self, StoreError> {
        let path = lab.join(FILE_NAME);
        let copy = LabCopy::of(&path)?;
        let mut store = Self::open(copy.directory())?;
        store.copy = Some(copy);
        { store.connection.pragma_update(None, "query_only", true) }
            .map_err(|source| StoreError::sqlite(&path, "open", source))?;
        (store.path, store.lab) = (path, lab.to_owned());
        Ok(store)
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Refuses to let the file grow beyond this many pages of 4 KiB: a quota for the lab.
    ///
    /// Past it, writing fails as on a full disk. Lasts until this store is closed. Errors: `Sqlite`.
    pub fn limit_pages(&mut self, pages: u32) -> Result<(), StoreError> {
        let fail = |source| StoreError::sqlite(&self.path, "limit the size of", source);
        self.connection
            .pragma_update(None, "max_page_count", pages)
            .map_err(fail)
    }

    /// Records a fact. Inside an open visit it becomes durable with the visit, otherwise at once.
    ///
    /// Server and block are absent for facts about the whole run. Errors: `UnknownRun`, `Full`, `Sqlite`.
    pub fn add_fact<T: Fact>(
        &mut self,
        run: &str,
        (server, block): (Option<ServerId>, Option<u32>),
        fact: &T,
    ) -> Result<(), StoreError> {
        const SQL: &str =
            "insert into fact (run, server, block, kind, value) values (?1, ?2, ?3, ?4, ?5)";
        let kind = T::KIND.word();
        let json = serde_json::to_string(fact).map_err(|error| {
            self.misuse(format!("a fact `{kind}` that cannot be written: {error}"))
        })?;
        let run = self.run_id(run)?;
        self.execute(
            SQL,
            "add a fact to",
            (run, server.map(|id| id.0), block, kind, json),
        )
    }

    /// The facts of one kind, in the order they were recorded.
    ///
    /// Errors: `UnknownRun`, `Damaged`, `Sqlite`.
    pub fn facts<T: Fact + DeserializeOwned>(
        &self,
        run: &str,
    ) -> Result<Vec<Recorded<T>>, StoreError> {
        const SQL: &str =
            "select server, block, value from fact where run = ?1 and kind = ?2 order by id";
        let rows: Vec<(Option<u32>, Option<u32>, String)> =
            self.collect_facts(run, T::KIND, SQL, |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })?;
        let recorded = |(server, block, json): (Option<u32>, _, String)| {
            Ok(Recorded {
                server: server.map(ServerId),
                block,
                fact: self.parse_fact(T::KIND, &json)?,
            })
        };
        rows.into_iter().map(recorded).collect()
    }

    /// What was recorded last of one kind about a server, or about the whole run.
    ///
    /// Errors: `UnknownRun`, `Damaged`, `Sqlite`.
    pub fn last_fact<T: Fact + DeserializeOwned>(
        &self,
        run: &str,
        server: Option<ServerId>,
    ) -> Result<Option<T>, StoreError> {
        let json = self.last_value(run, server, T::KIND)?;
        json.map(|json| self.parse_fact(T::KIND, &json)).transpose()
    }

    /// What was recorded last of one kind about the whole run, as it stands in the file: for whoever only
    /// shows it.
    ///
    /// Errors: `UnknownRun`, `Damaged`, `Sqlite`.
    pub fn last_json(
        &self,
        run: &str,
        kind: FactKind,
    ) -> Result<Option<serde_json::Value>, StoreError> {
        let json = self.last_value(run, None, kind)?;
        json.map(|json| self.parse_fact(kind, &json)).transpose()
    }

    fn last_value(
        &self,
        run: &str,
        server: Option<ServerId>,
        kind: FactKind,
    ) -> Result<Option<String>, StoreError> {
        const SQL: &str = "select value from fact where run = ?1 and kind = ?2 and server is ?3 \
            order by id desc limit 1";
        let run = self.run_id(run)?;
        let values = (run, kind.word(), server.map(|id| id.0));
        let found: Vec<String> = match bulk::FACTS.contains(&kind.word()) {
            true => self.collect_bulk(run, SQL, values, |row| row.get(0))?,
            false => self.collect(SQL, values, |row| row.get(0))?,
        };
        Ok(found.into_iter().next())
    }

    /// Facts of one kind, from where they are: large ones leave the store with an archived run.
    fn collect_facts<T>(
        &self,
        run: &str,
        kind: FactKind,
        sql: &str,
        read: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        let run = self.run_id(run)?;
        match bulk::FACTS.contains(&kind.word()) {
            true => self.collect_bulk(run, sql, (run, kind.word()), read),
            false => self.collect(sql, (run, kind.word()), read),
        }
    }

    fn parse_fact<T: DeserializeOwned>(&self, kind: FactKind, json: &str) -> Result<T, StoreError> {
        serde_json::from_str(json)
            .map_err(|error| self.damaged(format!("fact `{}`: {error}", kind.word())))
    }

    /// Records a finding. Inside an open visit it becomes durable with the visit, otherwise at once.
    ///
    /// Errors: `UnknownRun`, `Full`, `Sqlite`.
    pub fn add_finding(&mut self, run: &str, finding: &Finding) -> Result<(), StoreError> {
        let severity = severity_word(finding.severity);
        let run = self.run_id(run)?;
        self.execute(
            ADD_FINDING,
            "add a finding to",
            (run, finding.kind.word(), severity, &finding.text),
        )
    }

    /// Records several findings, all or none, as [`Store::add_finding`] does one.
    ///
    /// Errors: those of [`Store::add_finding`].
    pub fn add_findings(&mut self, run: &str, findings: &[Finding]) -> Result<(), StoreError> {
        let run = self.run_id(run)?;
        self.insert_all("add findings to", |step| {
            let mut insert = step.prepare_cached(ADD_FINDING)?;
            for finding in findings {
                let severity = severity_word(finding.severity);
                insert.execute((run, finding.kind.word(), severity, &finding.text))?;
            }
            Ok(())
        })
    }

    /// The findings of a run, in the order they were recorded. Of an archived run whose sealed file cannot be
    /// read, that comes first: its slices and samples read as if there were none.
    ///
    /// Errors: `Damaged` for an unknown severity, `Sqlite`.
    pub fn findings(&self, run: &str) -> Result<Vec<Finding>, StoreError> {
        let id = self.run_id(run)?;
        let rows: Vec<(String, String, String)> = self.collect(
            "select kind, severity, text from finding where run = ?1 order by id",
            [id],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )?;
        let stored =
            rows.into_iter()
                .map(|(kind, severity, text)| match severity_from(&severity) {
                    Some(severity) => Ok(Finding::new(kind.into(), severity, text)),
                    None => {
                        Err(self
                            .damaged(format!("unknown severity `{severity}` of finding `{kind}`")))
                    }
                });
        let first = self.archive_finding(id)?.map(Ok);
        first.into_iter().chain(stored).collect()
    }

    /// The plan of a run.
    ///
    /// Errors: `Newer` for a plan of a later format, `UnknownKind`, `Damaged`, `Sqlite`.
    pub fn plan(&self, run: &str) -> Result<Plan, StoreError> {
        let fail = |source| StoreError::sqlite(&self.path, "read a plan from", source);
        let text: String = self
            .connection
            .query_row(
                "select plan from run where id = ?1",
                [self.run_id(run)?],
                |row| row.get(0),
            )
            .map_err(fail)?;
        self.parse_plan(&text)
    }

    /// The number of the run with exactly this name.
    pub(crate) fn run_id(&self, run: &str) -> Result<i64, StoreError> {
        if let Some(open) = self.visit.as_ref().filter(|open| open.run == run) {
            return Ok(open.run_id);
        }
        let ids = self.collect("select id from run where name = ?1", [run], |row| {
            row.get(0)
        })?;
        let unknown = || StoreError::UnknownRun {
            path: self.path.clone(),
            run: run.to_owned(),
        };
        ids.first().copied().ok_or_else(unknown)
    }

    pub(crate) fn parse_plan(&self, text: &str) -> Result<Plan, StoreError> {
        // Nearly all plans are of this version, and need not be looked through first.
        match serde_json::from_str::<Plan>(text) {
            Ok(plan) if (plan.format.as_str(), plan.version) == PLAN_FORMAT => Ok(plan),
            _ => self.parse_any_plan(text),
        }
    }

    /// The same of a plan of any version, with what is wrong about it.
    fn parse_any_plan(&self, text: &str) -> Result<Plan, StoreError> {
        let bad = |error: serde_json::Error| self.damaged(format!("plan: {error}"));
        let value: serde_json::Value = serde_json::from_str(text).map_err(bad)?;
        let version = value.get("version").and_then(serde_json::Value::as_u64);
        let found = version
            .and_then(|version| u32::try_from(version).ok())
            .unwrap_or(0);
        if found > PLAN_FORMAT.1 {
            return Err(StoreError::Newer {
                path: self.path.clone(),
                found,
                known: PLAN_FORMAT.1,
            });
        }
        let kind = value.pointer("/work/kind").and_then(|kind| kind.as_str());
        let kind = kind.map(str::to_owned);
        let plan = serde_json::from_value(plan::upgraded(value));
        let plan: Plan = plan.map_err(|error| match kind {
            // A newer version wrote it: kinds of work come without a new format.
            Some(kind)
                if error
                    .to_string()
                    .starts_with(&format!("unknown variant `{kind}`")) =>
            {
                StoreError::UnknownKind {
                    path: self.path.clone(),
                    kind,
                }
            }
            _ => bad(error),
        })?;
        if plan.format != PLAN_FORMAT.0 || plan.version != PLAN_FORMAT.1 {
            return Err(self.damaged(format!("plan of format {} {}", plan.format, plan.version)));
        }
        Ok(plan)
    }

    pub(crate) fn damaged(&self, what: String) -> StoreError {
        StoreError::Damaged {
            path: self.path.clone(),
            what,
        }
    }

    pub(crate) fn misuse(&self, what: String) -> StoreError {
        StoreError::Misuse {
            path: self.path.clone(),
            what,
        }
    }

    pub(crate) fn execute(
        &mut self,
        sql: &str,
        action: &'static str,
        values: impl rusqlite::Params,
    ) -> Result<(), StoreError> {
        let done = self
            .connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute(values));
        match done {
            Ok(_) => Ok(()),
            Err(source) => Err(self.failed(action, source)),
        }
    }

    /// Turns a failure into ours. After some (I/O errors) SQLite rolls back by itself: the visit is gone.
    pub(crate) fn failed(&mut self, action: &'static str, source: rusqlite::Error) -> StoreError {
        if self.connection.is_autocommit() {
            self.visit = None;
        }
        StoreError::sqlite(&self.path, action, source)
    }

    pub(crate) fn collect<T>(
        &self,
        sql: &str,
        values: impl rusqlite::Params,
        read: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        collect_from(&self.connection, &self.path, sql, values, read)
    }
}

fn configure(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let fail = |source| StoreError::sqlite(path, "open", source);
    let mode: String = connection
        .query_row("pragma journal_mode = wal", [], |row| row.get(0))
        .map_err(fail)?;
    if mode != "wal" {
        let what = format!("its file system allows no write-ahead log (journal mode is {mode})");
        return Err(StoreError::Misuse {
            path: path.to_owned(),
            what,
        });
    }
    connection
        .pragma_update(None, "synchronous", "full")
        .map_err(fail)?;
    connection
        .pragma_update(None, "foreign_keys", true)
        .map_err(fail)?;
    connection
        .pragma_update(None, "cache_size", -CACHE_KIB)
        .map_err(fail)?;
    // The undo log of a savepoint stays in memory too.
    connection
        .pragma_update(None, "temp_store", "memory")
        .map_err(fail)?;
    // Dirty pages must not go to disk while a slice is being measured.
    connection
        .pragma_update(None, "cache_spill", false)
        .map_err(fail)
}

fn severity_word(severity: Severity) -> &'static str {
    match severity {
        Severity::Note => "note",
        Severity::Confounder => "confounder",
        Severity::Unfit => "unfit",
    }
}

fn severity_from(word: &str) -> Option<Severity> {
    [Severity::Note, Severity::Confounder, Severity::Unfit]
        .into_iter()
        .find(|severity| severity_word(*severity) == word)
}
