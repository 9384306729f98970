//! Asks one server: the plan of every tuple, and the rows of those that may be executed.

use crate::results::{Reading, Rows};
use crate::said::{self, Known};
use crate::servers::{Member, ROLE, analyze, login, of_server};
use crate::session::{DISK_FULL, connect, disk_full, ends_the_rest, lacks_resources, query, run};
use crate::shape::{Roots, Shape};
use crate::work::{Job, TupleJob};
use deltabench_driver::admin::text_row;
use deltabench_driver::{Client, ServerError, WireError};
use deltabench_model::problem::Problem;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};

/// The first version that prints settings with a plan.
const FIRST_WITH_SETTINGS: u32 = 120_000;
/// SQLSTATE of a statement that took too long.
const TOO_LONG: &str = "57014";
/// Why a plan is not compared.
const UNREADABLE: &str = "EXPLAIN printed a plan that deltabench cannot read";
/// Settings of every session: nothing changes, nothing waits for ever, and values are printed alike: floats
/// with 15 digits, because the last ones depend on the order of a sum, and on the version before 12. What
/// values mean stays as it is configured: the order of day and month, the time zone.
const SESSION: &str = "SET default_transaction_read_only = on; SET lock_timeout = '5s'; \
    SET idle_in_transaction_session_timeout = '60s'; SET extra_float_digits = 0; SET datestyle = 'ISO'; \
    SET intervalstyle = 'postgres'; SET bytea_output = 'hex'; SET client_encoding = 'UTF8'";

/// What a server did with a tuple.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer<T> {
    Done(T),
    Failed {
        sqlstate: String,
        message: String,
    },
    /// It did not end in time.
    TooLong,
    /// The server cannot say, and why: no difference between the servers.
    Unknown(String),
}

impl<T> Answer<T> {
    /// What follows from an answer that is there.
    fn and_then<U>(self, follows: impl FnOnce(T) -> Answer<U>) -> Answer<U> {
        match self {
            Self::Done(done) => follows(done),
            Self::Failed { sqlstate, message } => Answer::Failed { sqlstate, message },
            Self::TooLong => Answer::TooLong,
            Self::Unknown(why) => Answer::Unknown(why),
        }
    }
}

/// The plans of all tuples of all statements, by their names.
pub type Plans = Vec<Vec<Answer<String>>>;

/// The rows of all tuples of all statements; absent where a tuple was not executed.
pub type AllRows = Vec<Vec<Option<Answer<Rows>>>>;

/// Shapes of plans by their names.
pub type Shapes = BTreeMap<String, Shape>;

/// How a server is asked.
pub struct Asking<'a> {
    pub member: &'a Member<'a>,
    pub roots: &'a Roots,
    /// Roles that may log in everywhere.
    pub roles: &'a BTreeSet<String>,
    pub timeout_seconds: u32,
    pub interrupted: &'a AtomicBool,
}

/// Who replays, with which path.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Who {
    role: String,
    search_path: Option<String>,
}

/// A connection of one role.
struct Connected {
    who: Who,
    client: Client,
}

impl<'a> Asking<'a> {
    /// Has new statistics drawn.
    ///
    /// Errors: what the server answers.
    pub fn analyze(&self) -> Result<(), Problem> {
        let client = self.member.superuser();
        // What is refused was refused after loading, too, and is told.
        client
            .and_then(|mut client| analyze(&mut client, "ANALYZE").map(drop))
            .map_err(|problem| self.named(problem))
    }

    /// Ends what the server does for us: a long statement does not hear of an interruption.
    pub fn end_sessions(&self) {
        let others = "SELECT pg_catalog.pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity \
                      WHERE pid <> pg_catalog.pg_backend_pid()";
        // Best effort: without it the statement ends at its time-out.
        let _ = self
            .member
            .superuser()
            .and_then(|mut client| query(&mut client, others));
    }

    /// Explains every tuple.
    ///
    /// Errors: a lost connection, an interruption.
    pub fn explain(&self, jobs: &[Job<'_>], shapes: &mut Shapes) -> Result<Plans, Problem> {
        let settings = match self.member.wish.installation.version_num >= FIRST_WITH_SETTINGS {
            true => ", SETTINGS",
            false => "",
        };
        let mut connected = None;
        let mut plans = Vec::with_capacity(jobs.len());
        for job in jobs {
            let mut answers = Vec::with_capacity(job.tuples.len());
            for tuple in &job.tuples {
                let sql = format!("EXPLAIN (FORMAT JSON, VERBOSE{settings}) {}", tuple.sql);
                let mut text = String::new();
                let answer = self.ask(&mut connected, job, (tuple, &sql), &mut |row| {
                    text.extend(text_row(row)?.into_iter().flatten());
                    Ok(())
                })?;
                answers.push(answer.and_then(|()| match Shape::read(&text, self.roots) {
                    Some(shape) => {
                        let id = shape.id();
                        shapes.entry(id.clone()).or_insert(shape);
                        Answer::Done(id)
                    }
                    None => Answer::Unknown(UNREADABLE.to_owned()),
                }));
            }
            plans.push(answers);
        }
        Ok(plans)
    }

    /// Executes the tuples that `may` allows, in a transaction that only reads.
    ///
    /// Errors: a lost connection, an interruption.
    pub fn execute(
        &self,
        jobs: &[Job<'_>],
        may: &(dyn Fn(usize, usize) -> bool + Sync),
    ) -> Result<AllRows, Problem> {
        let mut connected = None;
        let mut all = Vec::with_capacity(jobs.len());
        for (number, job) in jobs.iter().enumerate() {
            let mut answers = Vec::with_capacity(job.tuples.len());
            for (place, tuple) in job.tuples.iter().enumerate() {
                if !may(number, place) {
                    answers.push(None);
                    continue;
                }
                let mut reading = Reading::default();
                let answer = self.ask(&mut connected, job, (tuple, tuple.sql), &mut |row| {
                    reading.add(row);
                    Ok(())
                })?;
                answers.push(Some(answer.and_then(|()| Answer::Done(reading.end()))));
            }
            all.push(answers);
        }
        Ok(all)
    }

    /// Sends a statement in a transaction of its own, which changes nothing and is rolled back.
    fn ask(
        &self,
        connected: &mut Option<Connected>,
        job: &Job<'_>,
        (tuple, sql): (&TupleJob<'_>, &str),
        each: &mut dyn FnMut(&[u8]) -> Result<(), WireError>,
    ) -> Result<Answer<()>, Problem> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(Problem::new("interrupted"));
        }
        let who = self.who(job);
        let session = match connected.take().filter(|open| open.who == who) {
            Some(open) => open,
            None => match self.open(who)? {
                Ok(open) => open,
                Err(failed) => return Ok(failed),
            },
        };
        let session = connected.insert(session);
        let begun = session.client.execute("BEGIN TRANSACTION READ ONLY");
        begun.map_err(|error| self.lost(&error))?;
        // The server chooses the types, as for the clients of most drivers.
        let asked = session
            .client
            .with_values(sql, &[], &tuple.tuple.values, each);
        let answer = match asked {
            Ok(()) => Answer::Done(()),
            Err(WireError::Server(error)) => self.answered(&error, tuple)?,
            Err(error) => return Err(self.lost(&error)),
        };
        let ended = session.client.execute("ROLLBACK");
        ended.map_err(|error| self.lost(&error))?;
        Ok(answer)
    }

    fn answered(&self, error: &ServerError, tuple: &TupleJob<'_>) -> Result<Answer<()>, Problem> {
        if error.sqlstate == TOO_LONG {
            return Ok(Answer::TooLong);
        }
        if error.sqlstate == DISK_FULL {
            return Err(self.named(disk_full("while statements were executed")));
        }
        if let Some(why) = of_resources(error) {
            return Ok(Answer::Unknown(why));
        }
        if ends_the_rest(error) {
            return Err(self.lost(&WireError::Server(error.clone())));
        }
        Ok(failed(error, tuple))
    }

    fn who(&self, job: &Job<'_>) -> Who {
        let captured = job
            .statement
            .role
            .as_ref()
            .filter(|role| self.roles.contains(*role));
        Who {
            role: captured.map_or(ROLE, String::as_str).to_owned(),
            search_path: job.statement.search_path.clone(),
        }
    }

    /// A connection; or how a path that the server does not take is told.
    fn open(&self, who: Who) -> Result<Result<Connected, Answer<()>>, Problem> {
        let client = connect(&self.member.endpoint, &login(&who.role));
        let mut client = client.map_err(|problem| self.named(problem))?;
        let timeout = format!(
            "{SESSION}; SET statement_timeout = '{}s'",
            self.timeout_seconds
        );
        run(&mut client, &timeout).map_err(|problem| self.named(problem))?;
        if let Some(path) = &who.search_path {
            let set = format!("SET search_path = {path}");
            // One statement, whatever the capture says.
            match client.with_values(&set, &[], &[], &mut |_| Ok(())) {
                Ok(()) => {}
                Err(WireError::Server(error)) if !error.is_fatal() => {
                    return Ok(Err(Answer::Failed {
                        sqlstate: error.sqlstate.clone(),
                        message: said::message(&error, &Known::default()),
                    }));
                }
                Err(error) => return Err(self.lost(&error)),
            }
        }
        Ok(Ok(Connected { who, client }))
    }

    fn lost(&self, error: &WireError) -> Problem {
        let said = match error {
            WireError::Server(error) => format!(
                "{} {}",
                error.sqlstate,
                said::message(error, &Known::default())
            ),
            other => other.to_string(),
        };
        self.named(Problem::new("a server of the replay failed").detail(said))
    }

    fn named(&self, problem: Problem) -> Problem {
        of_server(problem, &self.member.wish.installation.resolved)
    }
}

/// Why a statement has no answer on this machine: no difference between servers.
fn of_resources(error: &ServerError) -> Option<String> {
    let said = || said::message(error, &Known::default());
    lacks_resources(error).then(|| format!("{} {}", error.sqlstate, said()))
}

/// An error of a statement, without its values and without the literals of its text.
fn failed<T>(error: &ServerError, tuple: &TupleJob<'_>) -> Answer<T> {
    let values = tuple.tuple.values.iter().flatten().map(String::as_str);
    let known = Known::of(tuple.sql, values);
    Answer::Failed {
        sqlstate: error.sqlstate.clone(),
        message: said::message(error, &known),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_memory_or_disk_is_no_difference_between_servers() {
        let error = |sqlstate: &str| ServerError {
            severity: "ERROR".to_owned(),
            sqlstate: sqlstate.to_owned(),
            message: "temporary file size exceeds temp_file_limit (1024kB)".to_owned(),
            detail: None,
            hint: None,
            routine: None,
        };
        let limit = "53400 temporary file size exceeds temp_file_limit (1024kB)";
        assert_eq!(of_resources(&error("53400")).as_deref(), Some(limit));
        assert_eq!(of_resources(&error("22012")), None);
    }
}
