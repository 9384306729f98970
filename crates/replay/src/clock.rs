//! The time of day of servers of our own: `now()` of a statement finds little in the dump of last week.
//!
//! All servers of a start have the same time: that which was asked for, and what has gone by since the first
//! of them started.

use crate::session::query;
use deltabench_capture::Statement;
use deltabench_driver::Client;
use deltabench_model::problem::Problem;
use deltabench_server::Clock;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// What a text has that asks for the time, as a capture lists it. The session's time zone has no part in it.
const ASKING: [&str; 14] = [
    "now",
    "current_date",
    "current_timestamp",
    "current_time",
    "localtime",
    "localtimestamp",
    "clock_timestamp",
    "statement_timestamp",
    "transaction_timestamp",
    "age",
    "'now'",
    "'today'",
    "'tomorrow'",
    "'yesterday'",
];

/// What a cause begins with where the time is not that of the capture.
pub const CLOCK_MOVED: &str = "clock-moved";
/// What it begins with where the data are not.
pub const DATA_MOVED: &str = "data-moved";

/// Seconds that a server's answer may be away from the time that it was given: it is busy, or its machine is.
const TOLERANCE: i64 = 5;

/// Whether the text of a statement asks for the time.
#[must_use]
pub fn asks_for_time(statement: &Statement) -> bool {
    let names = statement.volatile.iter();
    names.map(String::as_str).any(|name| ASKING.contains(&name))
}

/// The time of day that servers of our own are wanted to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClockWish {
    /// Where it begins at each start, seconds since 1970; absent: they have that of the machine.
    pub at: Option<i64>,
    /// Why so, in words.
    pub why: String,
    /// Whether servers that cannot have it are a reason to stop.
    pub required: bool,
}

/// The clock that servers start with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetClock {
    library: Clock,
    /// Seconds since 1970.
    pub at: i64,
}

/// What a server's environment has for its clock, and how far that is ahead.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ahead {
    pub environment: Vec<(String, String)>,
    /// Nanoseconds.
    ns: i64,
}

impl SetClock {
    /// The clock that is wanted, if one is; its library goes into this directory.
    ///
    /// Errors: those of [`Clock::install`].
    pub fn of(wish: &ClockWish, directory: &Path) -> Result<Option<Self>, Problem> {
        let set = |at| {
            let library = Clock::install(directory)?;
            Ok(Self { library, at })
        };
        wish.at.map(set).transpose()
    }

    /// For servers that start now.
    pub fn ahead(&self) -> Ahead {
        let ns = self
            .at
            .saturating_mul(SECOND_NS)
            .saturating_sub(machine_ns());
        Ahead {
            environment: self.library.environment(ns),
            ns,
        }
    }
}

impl Ahead {
    /// For servers that start now, with this clock or with that of the machine.
    pub fn of(clock: Option<&SetClock>) -> Self {
        clock.map_or_else(Self::default, SetClock::ahead)
    }

    /// Makes sure that a server has this time.
    ///
    /// Errors: it has another one; what it answers.
    pub fn check(&self, client: &mut Client) -> Result<(), Problem> {
        if self.environment.is_empty() {
            return Ok(());
        }
        let rows = query(
            client,
            "SELECT floor(extract(epoch FROM pg_catalog.clock_timestamp()))::bigint",
        )?;
        let said = rows.into_iter().flatten().flatten().next();
        let said = said.and_then(|said| said.parse::<i64>().ok());
        let wanted = machine_ns().saturating_add(self.ns) / SECOND_NS;
        match said {
            Some(said) if said.abs_diff(wanted) <= TOLERANCE.unsigned_abs() => Ok(()),
            _ => Err(
                Problem::new("a server does not have the time that it was given")
                    .detail("its time of day is another one")
                    .hint("add --clock now"),
            ),
        }
    }
}

/// Nanoseconds of a second.
const SECOND_NS: i64 = 1_000_000_000;

/// The time of the machine, nanoseconds since 1970.
fn machine_ns() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    i64::try_from(now.unwrap_or_default().as_nanos()).unwrap_or(i64::MAX)
}
