//! One statement with its sets of values on one connection: what is measured only sends.
//!
//! Each set of values is a finished message, made when the connection opens.

use crate::connection::{Connection, Expected};
use crate::error::WireError;
use crate::request::{TooLarge, message, statement_name, zero_ended};
use crate::scan::Loss;
use crate::session::{BackendKey, Session};
use crate::slice::Clock;
use crate::values::{bind, execute_and_sync, parse};
use deltabench_model::endpoint::{Endpoint, Login};
use std::time::Duration;

/// How a statement is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// One message with the whole text.
    Simple,
    /// Parse, Bind and Execute each time, of an unnamed statement.
    Extended,
    /// Bind and Execute of a statement that was prepared when the connection opened.
    Prepared,
}

/// A text with the values of `$1`, `$2` and so on; an absent one is NULL.
#[derive(Debug, Clone, Copy)]
pub struct TupleText<'a> {
    pub way: Way,
    pub sql: &'a str,
    pub values: &'a [Option<String>],
}

/// What is executed on a connection.
#[derive(Debug, Clone, Copy)]
pub struct TuplesSpec<'a> {
    /// What comes first, such as settings of the session: one statement each.
    pub before: &'a [String],
    pub tuples: &'a [TupleText<'a>],
    /// Places of tuples, in the order in which prepared statements plan them until their plan cache has
    /// decided: of each text the first ones.
    pub order: &'a [usize],
    /// Limit for connecting and preparing.
    pub limit: Duration,
    /// Limit for one part of an answer: more than the server's own limit of a statement, for a connection
    /// that is dead without a word.
    pub answer: Duration,
}

/// Plans after which the plan cache of a session has decided.
///
/// Source: plancache.c, `choose_custom_plan`: five custom plans, then the generic one is compared with them.
const UNTIL_CACHED: usize = 6;

/// Asks a server to give up what a connection has sent.
#[derive(Debug, Clone)]
pub struct Cancel {
    endpoint: Endpoint,
    key: BackendKey,
}

impl Cancel {
    /// Best effort: no answer is waited for.
    pub fn send(&self) {
        // A server that does not take this has other troubles, which the connection hears of.
        let _ = self.key.cancel(&self.endpoint);
    }
}

/// What an execution came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Executed {
    /// From before the first byte is sent to the end of the answer.
    pub duration_ns: u64,
    pub rows: u64,
}

/// A connection with a finished message for each tuple.
#[derive(Debug)]
pub struct Tuples {
    connection: Connection,
    requests: Vec<(Vec<u8>, Expected)>,
    clock: Clock,
    endpoint: Endpoint,
}

impl Tuples {
    /// Connects, and prepares what is sent as prepared: each text once. A prepared text is planned with its
    /// values, without executing it, until its plan cache has decided between custom and generic plans.
    ///
    /// Errors: those of the connection; the server's, of `before`, of Parse and of Bind; a message that is
    /// too large.
    pub fn open(
        endpoint: &Endpoint,
        login: &Login,
        spec: &TuplesSpec<'_>,
    ) -> Result<Self, WireError> {
        let mut session = Session::connect(endpoint, login, spec.limit)?;
        for sql in spec.before {
            let first = TupleText {
                way: Way::Extended,
                sql,
                values: &[],
            };
            session.send(&extended(&first)?, "setting up a session")?;
            session.until_ready("setting up a session", |_| Ok(()))?;
        }
        let requests = requests(&mut session, spec)?;
        session.set_limit(Some(spec.answer))?;
        Ok(Self {
            connection: Connection::plain(session, endpoint),
            requests,
            clock: Clock::start(),
            endpoint: endpoint.clone(),
        })
    }

    /// What another thread ends an execution with.
    pub fn cancel(&self) -> Cancel {
        Cancel {
            endpoint: self.endpoint.clone(),
            key: self.connection.key(),
        }
    }

    /// Executes the tuple in this place, and reads its answer to the end.
    ///
    /// Errors: the server's, after which the connection can be used again; a lost connection.
    #[inline]
    pub fn execute(&mut self, place: usize) -> Result<Executed, WireError> {
        let request = self.requests.get(place);
        let (request, expected) = request
            .map_or((&[][..], Expected::Query), |(request, expected)| {
                (request.as_slice(), *expected)
            });
        let started = self.clock.now();
        let answered = self.connection.round_trip(request, expected);
        let duration_ns = self.clock.now() - started;
        let rows = self.connection.take_rows();
        match answered {
            Ok(None) => Ok(Executed { duration_ns, rows }),
            Ok(Some(error)) => Err(WireError::Server(*error)),
            Err(Loss::Fatal(error)) => Err(WireError::Server(*error)),
            Err(loss) => Err(WireError::protocol(format!("{loss:?}"))),
        }
    }
}

fn simple(tuple: &TupleText<'_>) -> Result<Vec<u8>, TooLarge> {
    let mut out = Vec::new();
    message(&mut out, b'Q', |out| zero_ended(out, tuple.sql.as_bytes()))?;
    Ok(out)
}

fn extended(tuple: &TupleText<'_>) -> Result<Vec<u8>, TooLarge> {
    let mut out = Vec::new();
    parse(&mut out, b"", tuple.sql, &[])?;
    bind(&mut out, b"", tuple.values)?;
    execute_and_sync(&mut out)?;
    Ok(out)
}

/// How a tuple is sent: a text has no place for values.
fn way(tuple: &TupleText<'_>) -> Way {
    match tuple.way {
        Way::Simple if !tuple.values.is_empty() => Way::Extended,
        way => way,
    }
}

/// Makes all executions; prepares every text that is sent as prepared, and has it planned.
fn requests(
    session: &mut Session,
    spec: &TuplesSpec<'_>,
) -> Result<Vec<(Vec<u8>, Expected)>, WireError> {
    let mut texts: Vec<&str> = Vec::new();
    let mut of_tuples = Vec::with_capacity(spec.tuples.len());
    let mut requests = Vec::with_capacity(spec.tuples.len());
    for tuple in spec.tuples {
        let way = way(tuple);
        if way != Way::Prepared {
            requests.push(match way {
                Way::Simple => (simple(tuple)?, Expected::Query),
                _ => (extended(tuple)?, Expected::Parsed),
            });
            of_tuples.push(None);
            continue;
        }
        let known = texts.iter().position(|text| *text == tuple.sql);
        let text = known.unwrap_or(texts.len());
        let name = statement_name(text)?;
        if known.is_none() {
            texts.push(tuple.sql);
            let mut out = Vec::new();
            parse(&mut out, &name, tuple.sql, &[])?;
            ask(session, out, "preparing a statement")?;
        }
        let mut out = Vec::new();
        bind(&mut out, &name, tuple.values)?;
        execute_and_sync(&mut out)?;
        requests.push((out, Expected::Execution));
        of_tuples.push(Some(text));
    }
    plan(session, spec, (&texts, &of_tuples))?;
    Ok(requests)
}

/// Has prepared texts planned with their values until their plan caches have decided.
fn plan(
    session: &mut Session,
    spec: &TuplesSpec<'_>,
    (texts, of_tuples): (&[&str], &[Option<usize>]),
) -> Result<(), WireError> {
    for text in 0..texts.len() {
        let name = statement_name(text)?;
        let is_its = |place: &&usize| of_tuples.get(**place) == Some(&Some(text));
        let its: Vec<&usize> = spec.order.iter().filter(is_its).collect();
        for place in its.iter().cycle().take(UNTIL_CACHED) {
            let values = spec
                .tuples
                .get(**place)
                .map_or(&[][..], |tuple| tuple.values);
            let mut out = Vec::new();
            // A plan is chosen when values are bound.
            bind(&mut out, &name, values)?;
            ask(session, out, "planning a statement")?;
        }
    }
    Ok(())
}

/// Sends messages and waits until the server is ready again.
fn ask(session: &mut Session, mut messages: Vec<u8>, doing: &str) -> Result<(), WireError> {
    message(&mut messages, b'S', |_| {})?;
    session.send(&messages, doing)?;
    session.until_ready(doing, |_| Ok(()))
}
