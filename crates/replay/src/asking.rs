//! Asks one server: the plan of every tuple, and the rows of those that may be executed.

use crate::reach::{COMPARABLE, Reach, Tables, Who, session};
use crate::results::{Reading, Rows};
use crate::said::{self, Known};
use crate::session::{ErrorClass, answer_limit, connect, disk_full, gone, refused, run, set};
use crate::shape::{Roots, Shape};
use crate::work::{Job, TupleJob};
use deltabench_driver::admin::text_row;
use deltabench_driver::{Client, ServerError, WireError};
use deltabench_model::problem::Problem;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The first version that prints settings with a plan.
const FIRST_WITH_SETTINGS: u32 = 120_000;
/// Begins what changes nothing.
const BEGIN: &str = "BEGIN TRANSACTION READ ONLY";
/// Why a plan is not compared.
const UNREADABLE: &str = "EXPLAIN printed a plan that deltabench cannot read";
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
    pub fn and_then<U>(self, follows: impl FnOnce(T) -> Answer<U>) -> Answer<U> {
        match self {
            Self::Done(done) => follows(done),
            Self::Failed { sqlstate, message } => Answer::Failed { sqlstate, message },
            Self::TooLong => Answer::TooLong,
            Self::Unknown(why) => Answer::Unknown(why),
        }
    }
}

impl Answer<()> {
    /// The same for something that would have rows.
    pub fn without_rows(self) -> Answer<Rows> {
        self.and_then(|()| Answer::Done(Rows::changed(0)))
    }
}

/// The plans of all tuples of all statements, by their names.
pub type Plans = Vec<Vec<Answer<String>>>;

/// The rows of all tuples of all statements, and how long each took; absent where a tuple was not executed.
pub type AllRows = Vec<Vec<Option<(Answer<Rows>, Duration)>>>;

/// Shapes of plans by their names.
pub type Shapes = BTreeMap<String, Shape>;

/// How a server is asked.
pub struct Asking<'a> {
    pub reach: &'a Reach,
    pub version_num: u32,
    pub roots: &'a Roots,
    /// Roles that may log in everywhere.
    pub roles: &'a BTreeSet<String>,
    pub timeout_seconds: u32,
    pub interrupted: &'a AtomicBool,
}

/// A connection of one role.
pub struct Connected {
    pub who: Who,
    pub client: Client,
}

impl Asking<'_> {
    /// Explains every tuple.
    ///
    /// Errors: a lost connection, an interruption.
    pub fn explain(&self, jobs: &[Job<'_>], shapes: &mut Shapes) -> Result<Plans, Problem> {
        let mut connected = None;
        let mut plans = Vec::with_capacity(jobs.len());
        for job in jobs {
            let mut answers = Vec::with_capacity(job.tuples.len());
            for tuple in &job.tuples {
                let shape = self.shape(&mut connected, job, (tuple, &[]))?;
                answers.push(shape.and_then(|shape| {
                    let id = shape.id();
                    shapes.entry(id.clone()).or_insert(shape);
                    Answer::Done(id)
                }));
            }
            plans.push(answers);
        }
        Ok(plans)
    }

    /// The plan of a tuple in a session with these settings.
    ///
    /// Errors: a lost connection, an interruption.
    pub fn shape(
        &self,
        connected: &mut Option<Connected>,
        job: &Job<'_>,
        (tuple, settings): (&TupleJob<'_>, &[(String, String)]),
    ) -> Result<Answer<Shape>, Problem> {
        let with = match self.version_num >= FIRST_WITH_SETTINGS {
            true => ", SETTINGS",
            false => "",
        };
        let sql = format!("EXPLAIN (FORMAT JSON, VERBOSE{with}) {}", tuple.sql);
        let local = settings
            .iter()
            .map(|setting| format!("; {}", set("SET LOCAL", setting)));
        let begin: String = std::iter::once(BEGIN.to_owned()).chain(local).collect();
        let mut text = String::new();
        let answer = self.ask_in(&begin, connected, job, (tuple, &sql), &mut |row| {
            text.extend(text_row(row)?.into_iter().flatten());
            Ok(())
        })?;
        Ok(answer.and_then(|()| match Shape::read(&text, self.roots) {
            Some(shape) => Answer::Done(shape),
            None => Answer::Unknown(UNREADABLE.to_owned()),
        }))
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
                let began = Instant::now();
                let answer = self.ask(&mut connected, job, (tuple, tuple.sql), &mut |row| {
                    reading.add(row);
                    Ok(())
                })?;
                let rows = answer.and_then(|()| Answer::Done(reading.end()));
                answers.push(Some((rows, began.elapsed())));
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
        what: (&TupleJob<'_>, &str),
        each: &mut dyn FnMut(&[u8]) -> Result<(), WireError>,
    ) -> Result<Answer<()>, Problem> {
        self.ask_in(BEGIN, connected, job, what, each)
    }

    /// The same in a transaction that begins so.
    fn ask_in(
        &self,
        begin: &str,
        connected: &mut Option<Connected>,
        job: &Job<'_>,
        (tuple, sql): (&TupleJob<'_>, &str),
        each: &mut dyn FnMut(&[u8]) -> Result<(), WireError>,
    ) -> Result<Answer<()>, Problem> {
        self.check_interruption()?;
        let who = self.who(job);
        let session = match connected.take().filter(|open| open.who == who) {
            Some(open) => open,
            None => match self.open(who, job, Tables::Kept)? {
                Ok(open) => open,
                Err(failed) => return Ok(failed),
            },
        };
        let session = connected.insert(session);
        let begun = session.client.execute(begin);
        begun.map_err(|error| self.lost(&error, job))?;
        // The server chooses the types, as for the clients of most drivers.
        let asked = session
            .client
            .with_values(sql, &[], &tuple.tuple.values, each);
        let answer = match asked {
            Ok(_) => Answer::Done(()),
            Err(WireError::Server(error)) => {
                let answer = self.answered(&error, (job, tuple))?;
                if error.is_fatal() {
                    // It was the last one of its session.
                    *connected = None;
                    return Ok(answer);
                }
                answer
            }
            Err(error) => return Err(self.lost(&error, job)),
        };
        match session.client.execute("ROLLBACK") {
            Ok(()) => Ok(answer),
            // A standby ends sessions, too, that hold a lock while they wait for their client.
            Err(WireError::Server(error)) if ErrorClass::of(&error) == ErrorClass::Conflict => {
                *connected = None;
                Ok(answer)
            }
            Err(error) => Err(self.lost(&error, job)),
        }
    }

    /// Who sends a statement.
    pub fn who(&self, job: &Job<'_>) -> Who {
        Who::of(job.statement, self.roles)
    }

    /// Errors: the user wants to stop.
    pub fn check_interruption(&self) -> Result<(), Problem> {
        match self.interrupted.load(Ordering::Relaxed) {
            true => Err(Problem::new("interrupted")),
            false => Ok(()),
        }
    }

    /// What an error of a statement says.
    ///
    /// Errors: the server is of no use any more, or the disk is full.
    pub fn answered(
        &self,
        error: &ServerError,
        (job, tuple): (&Job<'_>, &TupleJob<'_>),
    ) -> Result<Answer<()>, Problem> {
        match ErrorClass::of(error) {
            ErrorClass::Statement => Ok(failed(error, tuple)),
            ErrorClass::TooLong => Ok(Answer::TooLong),
            ErrorClass::Resources | ErrorClass::Conflict => Ok(Answer::Unknown(format!(
                "{} {}",
                error.sqlstate,
                said::message(error, &Known::default())
            ))),
            ErrorClass::DiskFull => Err(self
                .reach
                .named(disk_full("while statements were executed"))),
            ErrorClass::Useless => Err(self.lost(&WireError::Server(error.clone()), job)),
        }
    }

    /// A connection; or how a path that the server does not take is told.
    ///
    /// Errors: the server cannot be reached.
    pub fn open(
        &self,
        who: Who,
        job: &Job<'_>,
        tables: Tables,
    ) -> Result<Result<Connected, Answer<()>>, Problem> {
        let named = |problem| self.reach.named(problem);
        let client = connect(&self.reach.endpoint, &self.reach.login(&who, tables));
        let mut client = client.map_err(named)?;
        let limit = Some(answer_limit(self.timeout_seconds));
        let limited = client.set_timeout(limit);
        limited.map_err(|error| named(refused(&error)))?;
        let settings = session(self.timeout_seconds, tables).join("; ");
        run(&mut client, &format!("{settings}; {COMPARABLE}")).map_err(named)?;
        if let Some(set) = who.set_path() {
            // One statement, whatever the capture says.
            match client.with_values(&set, &[], &[], &mut |_| Ok(())) {
                Ok(_) => {}
                Err(WireError::Server(error)) if ErrorClass::of(&error) != ErrorClass::Useless => {
                    return Ok(Err(Answer::Failed {
                        sqlstate: error.sqlstate.clone(),
                        message: said::message(&error, &Known::default()),
                    }));
                }
                Err(error) => return Err(self.lost(&error, job)),
            }
        }
        Ok(Ok(Connected { who, client }))
    }

    /// A server that is gone, and the statement that it had last.
    pub fn lost(&self, error: &WireError, job: &Job<'_>) -> Problem {
        let name = job.statement.name.as_ref().unwrap_or(&job.statement.id);
        gone(error, &self.reach.name, name)
    }
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
