//! What can go wrong on the wire.

use crate::tls::TlsFailure;
use deltabench_model::problem::Problem;
use std::fmt;
use std::io;
use std::time::Duration;

/// SQLSTATE of a serialization failure.
pub(crate) const SERIALIZATION: &str = "40001";
/// SQLSTATE of a deadlock.
pub(crate) const DEADLOCK: &str = "40P01";

/// An error that the server reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerError {
    /// `ERROR`, `FATAL` or `PANIC`, untranslated where the server says so (9.6 and later).
    pub severity: String,
    /// Five characters, for example `42P01`.
    pub sqlstate: String,
    pub message: String,
    /// The server's detail, if any.
    pub detail: Option<Box<str>>,
    /// The server's hint, if any.
    pub hint: Option<Box<str>>,
    /// The function of the server's source that reported it, if the server says so.
    pub routine: Option<Box<str>>,
}

impl ServerError {
    /// Reads the body of an ErrorResponse; fields that are missing or not UTF-8 come out empty or replaced.
    pub(crate) fn parse(body: &[u8]) -> Self {
        let mut error = Self {
            severity: String::new(),
            sqlstate: "XXXXX".to_owned(),
            message: String::new(),
            detail: None,
            hint: None,
            routine: None,
        };
        for field in body.split(|byte| *byte == 0) {
            let Some((kind, text)) = field.split_first() else {
                break;
            };
            let text = String::from_utf8_lossy(text).into_owned();
            match kind {
                b'S' if error.severity.is_empty() => error.severity = text,
                b'V' => error.severity = text,
                b'C' => error.sqlstate = text,
                b'M' => error.message = text,
                b'D' => error.detail = Some(text.into()),
                b'H' => error.hint = Some(text.into()),
                b'R' => error.routine = Some(text.into()),
                _ => {}
            }
        }
        error
    }

    /// Whether the same work may succeed another time: a serialization failure or a deadlock.
    pub fn is_transient(&self) -> bool {
        matches!(self.sqlstate.as_str(), SERIALIZATION | DEADLOCK)
    }

    /// Whether the server ends the connection after it.
    pub fn is_fatal(&self) -> bool {
        matches!(self.severity.as_str(), "FATAL" | "PANIC")
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (SQLSTATE {})", self.message, self.sqlstate)
    }
}

/// Failure of a connection or of a command on it.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// No connection.
    #[error("cannot connect to {endpoint}: {source}")]
    Connect {
        endpoint: String,
        /// The system's reason.
        source: io::Error,
    },
    /// A connection, but not encrypted as it was asked for.
    #[error("cannot connect to {endpoint}: {failure}")]
    Tls {
        endpoint: String,
        /// What is in the way.
        failure: TlsFailure,
    },
    /// The server refused or failed a command.
    #[error("{0}")]
    Server(ServerError),
    /// The server closed the connection.
    #[error("the server closed the connection while {doing}")]
    Closed { doing: String },
    /// The connection broke.
    #[error("the connection failed while {doing}: {source}")]
    Io {
        doing: String,
        /// The system's reason.
        source: io::Error,
    },
    /// Nothing came in time.
    #[error("no answer within {limit:?} while {doing}")]
    Timeout { doing: String, limit: Duration },
    /// The server's answer is not the protocol.
    #[error("the server sent an invalid answer: {what}")]
    Protocol { what: String },
    /// The server wants a password and there is none, or a method that we do not speak.
    #[error("cannot authenticate: {what}")]
    Authentication {
        /// What the server asked for.
        what: String,
    },
    /// The session has another `search_path` than was asked for with the start-up message.
    #[error("search_path is {found}, not {asked} as requested at log-in")]
    SearchPath {
        endpoint: String,
        asked: String,
        found: String,
    },
    /// The workload itself cannot be sent.
    #[error("workload {workload}: {what}")]
    Workload {
        workload: String,
        /// What is wrong with it.
        what: String,
    },
    /// An error with the server it belongs to.
    #[error("server {server} ({endpoint}): {error}")]
    At {
        /// Index in [`LaneSpec::servers`](crate::LaneSpec::servers).
        server: usize,
        endpoint: String,
        error: Box<WireError>,
    },
}

impl WireError {
    /// The SQLSTATE, when a server reported the error.
    pub fn sqlstate(&self) -> Option<&str> {
        match self {
            Self::Server(error) => Some(&error.sqlstate),
            Self::At { error, .. } => error.sqlstate(),
            _ => None,
        }
    }

    /// The same as a [`Problem`] that starts with `what` could not be done.
    pub fn problem(&self, what: &str) -> Problem {
        let problem = Problem::new(what.to_owned()).detail(self.to_string());
        match self.server_error().and_then(|error| error.hint.as_deref()) {
            Some(hint) => problem.hint(hint.to_owned()),
            None => problem,
        }
    }

    fn server_error(&self) -> Option<&ServerError> {
        match self {
            Self::Server(error) => Some(error),
            Self::At { error, .. } => error.server_error(),
            _ => None,
        }
    }

    pub(crate) fn protocol(what: impl Into<String>) -> Self {
        Self::Protocol { what: what.into() }
    }

    /// The error of a failed send or receive.
    pub(crate) fn transfer(doing: &str, source: io::Error, limit: Option<Duration>) -> Self {
        let doing = doing.to_owned();
        match (source.kind(), limit) {
            (io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut, Some(limit)) => {
                Self::Timeout { doing, limit }
            }
            (io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset, _) => {
                Self::Closed { doing }
            }
            _ => Self::Io { doing, source },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_response_gives_its_fields() {
        let body = b"SFEHLER\0VERROR\0C42P01\0Mrelation \"x\" does not exist\0Hcreate it\0\0";
        let error = ServerError::parse(body);
        assert_eq!(
            (error.severity.as_str(), error.sqlstate.as_str()),
            ("ERROR", "42P01")
        );
        assert_eq!(error.hint.as_deref(), Some("create it"));
        assert!(!error.is_fatal());
        assert!(ServerError::parse(b"SFATAL\0C57P01\0Mbye\0\0").is_fatal());
    }

    #[test]
    fn a_mangled_error_response_is_still_an_error() {
        assert_eq!(ServerError::parse(b"").sqlstate, "XXXXX");
        assert_eq!(ServerError::parse(b"\0\0C42P01").sqlstate, "XXXXX");
        assert_eq!(
            ServerError::parse(b"C\xff\xfe").sqlstate,
            "\u{fffd}\u{fffd}"
        );
    }

    #[test]
    fn a_server_index_does_not_hide_the_sqlstate() {
        let inner = WireError::Server(ServerError::parse(b"C53300\0Mtoo many clients\0\0"));
        let error = WireError::At {
            server: 1,
            endpoint: "x".into(),
            error: Box::new(inner),
        };
        assert_eq!(error.sqlstate(), Some("53300"));
        assert!(error.to_string().contains("server 1"));
    }
}
