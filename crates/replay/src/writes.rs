//! Writes on a copy of the tables: how many rows they change, and whether they can be executed again.
//!
//! One transaction for each statement: its tuples follow each other, and all of it is rolled back. So each
//! statement finds the rows of the dump.

use crate::asking::{AllRows, Answer, Asking};
use crate::dump::reaching_out;
use crate::reach::{Reach, Tables};
use crate::request::Request;
use crate::results::{Reading, Rows};
use crate::session::{query, violates};
use crate::work::{Job, TupleJob};
use deltabench_capture::Kind;
use deltabench_driver::{Client, WireError};
use deltabench_model::problem::Problem;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Functions of the dump that would run with all rights, whoever calls them.
const WITH_ALL_RIGHTS: &str = "SELECT p.proname FROM pg_catalog.pg_proc p
  JOIN pg_catalog.pg_roles r ON r.oid = p.proowner
  JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
  WHERE p.prosecdef AND r.rolsuper AND n.nspname NOT IN ('pg_catalog', 'information_schema')
  ORDER BY 1 LIMIT 1";
/// Tables that a foreign key changes with the rights of their owner, a superuser, and that have a trigger: it
/// would run with all rights.
const CASCADES_WITH_ALL_RIGHTS: &str = "SELECT c.relname FROM pg_catalog.pg_trigger t
  JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid
  JOIN pg_catalog.pg_roles r ON r.oid = c.relowner
  WHERE NOT t.tgisinternal AND r.rolsuper AND EXISTS (SELECT 1 FROM pg_catalog.pg_constraint k
    WHERE k.conrelid = c.oid AND k.contype = 'f'
      AND (k.confdeltype NOT IN ('a', 'r') OR k.confupdtype NOT IN ('a', 'r')))
  ORDER BY 1 LIMIT 1";
/// With what statements may reach other machines.
const EXTENSIONS: &str = "SELECT extname FROM pg_catalog.pg_extension";
const FOREIGN_SERVERS: &str =
    "SELECT 'the foreign server ' || srvname FROM pg_catalog.pg_foreign_server";
/// Size of the database that is copied.
const SIZE: &str = "SELECT pg_catalog.pg_database_size(pg_catalog.current_database())";

/// What a server did with the writes.
#[derive(Debug, Default)]
pub struct Written {
    pub rows: AllRows,
    /// Statements and tuples that a constraint refused, with the SQLSTATE; of the base only.
    pub violations: BTreeMap<(usize, usize), String>,
    /// Statements that do something else when they are executed again; of the base only.
    pub once: BTreeSet<usize>,
}

/// What came of one tuple.
struct Probe {
    answer: Answer<Rows>,
    took: Duration,
    /// SQLSTATE of a constraint that refused it.
    violated: Option<String>,
    /// Whether it changes as many rows when it is executed again.
    repeats: bool,
}

/// Why no write is committed on copies; absent if writes may be.
///
/// Errors: what the base answers.
pub fn obstacle(request: &Request<'_>, base: &Reach) -> Result<Option<String>, Problem> {
    if !base.is_ours() {
        return Ok(Some(
            "nothing is written on servers that already run".to_owned(),
        ));
    }
    let mut client = base.own()?;
    let first = |rows: Vec<Vec<Option<String>>>| rows.into_iter().flatten().flatten().next();
    let size = first(query(&mut client, SIZE)?).and_then(|size| size.parse::<u64>().ok());
    if let Some(size) = size.filter(|size| *size > request.copy_limit) {
        return Ok(Some(format!(
            "writes are left out: a copy would have {} MB, and --copy-limit is {} MB",
            size >> 20,
            request.copy_limit >> 20
        )));
    }
    if request.consent.functions {
        return Ok(None);
    }
    let names = |rows: Vec<Vec<Option<String>>>| rows.into_iter().flatten().flatten().collect();
    let mut extensions: BTreeSet<String> = names(query(&mut client, EXTENSIONS)?);
    let mut foreign_servers: BTreeSet<String> = names(query(&mut client, FOREIGN_SERVERS)?);
    let mut of = "database";
    if let Some((_, survey)) = request.data.dump() {
        (extensions, foreign_servers) = (survey.extensions.clone(), survey.foreign_servers.clone());
        of = "dump";
    }
    let reaching = reaching_out(&extensions, &foreign_servers);
    if !reaching.is_empty() {
        return Ok(Some(format!(
            "writes are left out: the {of} has {}, with which its triggers and defaults may reach other \
             machines; --allow-functions executes them",
            reaching.join(", ")
        )));
    }
    if let Some(name) = first(query(&mut client, WITH_ALL_RIGHTS)?) {
        return Ok(Some(format!(
            "writes are left out: {name} runs as a superuser (SECURITY DEFINER), and triggers may call it; \
             dump with owners (without -O), or add --allow-functions"
        )));
    }
    let table = first(query(&mut client, CASCADES_WITH_ALL_RIGHTS)?);
    Ok(table.map(|name| {
        format!(
            "writes are left out: a foreign key would run triggers of {name} as a superuser; dump with \
             owners (without -O), or add --allow-functions"
        )
    }))
}

impl Asking<'_> {
    /// Executes the writes and locks that `may` allows, on the copy, and rolls all of it back. `first` says
    /// whether it is the base, which decides what can be executed.
    ///
    /// Errors: a lost connection, an interruption.
    pub fn write(
        &self,
        jobs: &[Job<'_>],
        may: &(dyn Fn(usize, usize) -> bool + Sync),
        first: bool,
    ) -> Result<Written, Problem> {
        let mut written = Written::default();
        for (number, job) in jobs.iter().enumerate() {
            let places = 0..job.tuples.len();
            let wanted: Vec<bool> = places.map(|place| may(number, place)).collect();
            let probes = match wanted.contains(&true) {
                true => self.write_one(job, &wanted, first)?,
                false => wanted.iter().map(|_| None).collect(),
            };
            let mut answers = Vec::with_capacity(probes.len());
            for (place, probe) in probes.into_iter().enumerate() {
                let answer = probe.and_then(|probe| {
                    if !probe.repeats {
                        written.once.insert(number);
                    }
                    match probe.violated.filter(|_| first) {
                        Some(sqlstate) => {
                            written.violations.insert((number, place), sqlstate);
                            None
                        }
                        None => Some((probe.answer, probe.took)),
                    }
                });
                answers.push(answer);
            }
            written.rows.push(answers);
        }
        Ok(written)
    }

    /// The tuples of a statement that are wanted, in one transaction.
    fn write_one(
        &self,
        job: &Job<'_>,
        wanted: &[bool],
        first: bool,
    ) -> Result<Vec<Option<Probe>>, Problem> {
        let mut client = match self.open(self.who(job), job, Tables::Copy)? {
            Ok(connected) => connected.client,
            Err(failed) => {
                let probe = |wanted: &bool| wanted.then(|| Probe::without_rows(&failed));
                return Ok(wanted.iter().map(probe).collect());
            }
        };
        self.own(&mut client, job, "BEGIN")?;
        let mut probes = Vec::with_capacity(wanted.len());
        for (tuple, wanted) in job.tuples.iter().zip(wanted) {
            self.check_interruption()?;
            probes.push(match wanted {
                true => Some(self.probe(&mut client, (job, tuple), first)?),
                false => None,
            });
        }
        self.own(&mut client, job, "ROLLBACK")?;
        Ok(probes)
    }

    /// One tuple, whose effects stay for those behind it.
    fn probe(
        &self,
        client: &mut Client,
        (job, tuple): (&Job<'_>, &TupleJob<'_>),
        first: bool,
    ) -> Result<Probe, Problem> {
        self.own(client, job, "SAVEPOINT tuple")?;
        let began = Instant::now();
        let sent = send(client, job, tuple);
        let took = began.elapsed();
        let (answer, violated) = match sent {
            Ok(rows) => (Answer::Done(rows), None),
            Err(WireError::Server(error)) if !error.is_fatal() => {
                let answer = self.answered(&error, (job, tuple))?;
                self.own(client, job, "ROLLBACK TO SAVEPOINT tuple")?;
                let violated = violates(&error.sqlstate).then(|| error.sqlstate.clone());
                (answer.without_rows(), violated)
            }
            Err(error) => return Err(self.lost(&error, job)),
        };
        let mut repeats = true;
        if let (Answer::Done(rows), true) = (&answer, first) {
            self.own(client, job, "SAVEPOINT again")?;
            repeats = match send(client, job, tuple) {
                Ok(again) => again.count == rows.count,
                Err(WireError::Server(error)) if !error.is_fatal() => false,
                Err(error) => return Err(self.lost(&error, job)),
            };
            self.own(client, job, "ROLLBACK TO SAVEPOINT again")?;
        }
        Ok(Probe {
            answer,
            took,
            violated,
            repeats,
        })
    }

    /// A statement of ours in the transaction.
    fn own(&self, client: &mut Client, job: &Job<'_>, sql: &str) -> Result<(), Problem> {
        let done = client.execute(sql);
        done.map_err(|error| self.lost(&error, job))
    }
}

impl Probe {
    fn without_rows(answer: &Answer<()>) -> Self {
        Self {
            answer: answer.clone().without_rows(),
            took: Duration::ZERO,
            violated: None,
            repeats: true,
        }
    }
}

/// Executes a tuple with all constraints checked. Of a write only the number of rows counts: what it returns
/// may come from a sequence or a clock.
fn send(client: &mut Client, job: &Job<'_>, tuple: &TupleJob<'_>) -> Result<Rows, WireError> {
    let mut reading = Reading::default();
    let sent = client.with_values(tuple.sql, &[], &tuple.tuple.values, &mut |row| {
        reading.add(row);
        Ok(())
    });
    let changed = sent?;
    client.execute("SET CONSTRAINTS ALL IMMEDIATE")?;
    Ok(match job.statement.kind {
        Kind::Lock => reading.end(),
        _ => Rows::changed(changed),
    })
}
