//! A simple client for set-up work, over the same wire as the measured one.

use crate::error::WireError;
use crate::request::{TooLarge, message, zero_ended};
use crate::session::{Message, Session};
use crate::values::{bind, execute_and_sync, parse};
use deltabench_model::endpoint::{Endpoint, Login};
use std::time::Duration;

/// Rows of text; a null is `None`.
pub type TextRows = Vec<Vec<Option<String>>>;

/// One blocking connection that sends simple queries and COPY data.
#[derive(Debug)]
pub struct Client {
    session: Session,
}

impl Client {
    /// Connects and authenticates.
    ///
    /// `timeout` holds for start-up only: set-up commands may take as long as they need (see
    /// [`set_timeout`](Self::set_timeout)).
    pub fn connect(
        endpoint: &Endpoint,
        login: &Login,
        timeout: Duration,
    ) -> Result<Self, WireError> {
        let mut session = Session::connect(endpoint, login, timeout)?;
        session.set_limit(None)?;
        Ok(Self { session })
    }

    /// Limits how long one send or receive of later commands may take; `None` means for ever.
    pub fn set_timeout(&mut self, timeout: Option<Duration>) -> Result<(), WireError> {
        self.session.set_limit(timeout)
    }

    /// Runs one or more statements and returns the rows of the last one that has a result set.
    pub fn query(&mut self, sql: &str) -> Result<TextRows, WireError> {
        self.ask(sql.as_bytes())?;
        let mut rows = TextRows::new();
        self.session.until_ready("running a query", |message| {
            match message.tag {
                b'T' => rows.clear(),
                b'D' => rows.push(text_row(&message.body)?),
                b'C' | b'I' => {}
                _ => return Err(unexpected(message)),
            }
            Ok(())
        })?;
        Ok(rows)
    }

    /// Runs one or more statements and ignores their rows.
    pub fn execute(&mut self, sql: &str) -> Result<(), WireError> {
        self.execute_bytes(sql.as_bytes())
    }

    /// As [`execute`](Self::execute), for statements in the encoding of the session.
    pub fn execute_bytes(&mut self, sql: &[u8]) -> Result<(), WireError> {
        self.ask(sql)?;
        self.session
            .until_ready("running a command", |message| match message.tag {
                b'T' | b'D' | b'C' | b'I' => Ok(()),
                _ => Err(unexpected(message)),
            })
    }

    /// Runs a `COPY … FROM STDIN` and returns the number of rows the server took.
    ///
    /// `feed` appends data to the emptied buffer it is given and returns whether there is more to come;
    /// pieces of 64 KiB or so are best. It is not called again once the server has reported an error.
    pub fn copy_in(
        &mut self,
        sql: &str,
        feed: &mut dyn FnMut(&mut Vec<u8>) -> bool,
    ) -> Result<u64, WireError> {
        self.copy_in_bytes(sql.as_bytes(), feed)
    }

    /// As [`copy_in`](Self::copy_in), for a statement in the encoding of the session.
    pub fn copy_in_bytes(
        &mut self,
        sql: &[u8],
        feed: &mut dyn FnMut(&mut Vec<u8>) -> bool,
    ) -> Result<u64, WireError> {
        self.ask(sql)?;
        let first = self.session.answer("starting a COPY")?;
        if first.tag != b'G' {
            return Err(self.not_copying(&first));
        }
        let mut more = true;
        let mut data = Vec::new();
        let mut out = Vec::new();
        while more {
            if let Some(early) = self.session.early_answer("sending COPY data")? {
                return Err(self.not_copying(&early));
            }
            data.clear();
            more = feed(&mut data);
            if !data.is_empty() {
                out.clear();
                message(&mut out, b'd', |out| out.extend_from_slice(&data))?;
                self.session.send(&out, "sending COPY data")?;
            }
        }
        out.clear();
        message(&mut out, b'c', |_| {})?;
        self.session.send(&out, "ending a COPY")?;
        let mut rows = 0;
        self.session
            .until_ready("ending a COPY", |message| match message.tag {
                b'C' => {
                    rows = counted(&message.body);
                    Ok(())
                }
                _ => Err(unexpected(message)),
            })?;
        Ok(rows)
    }

    /// Process id of the server process behind this connection.
    pub fn backend_pid(&self) -> u32 {
        self.session.pid()
    }

    /// Runs one statement by the extended protocol, with these values in text form for `$1`, `$2` and so on,
    /// and gives each row to `each` as it comes: rows are not kept. `types` are the OIDs of the values; the
    /// server chooses where one is missing or 0.
    ///
    /// Shape:  a row is the body of a DataRow, which [`text_row`] reads; the result is the number of rows
    ///         that the server says it returned or changed.
    /// Errors: the server's, those of `each`, more than 65535 values.
    pub fn with_values(
        &mut self,
        sql: &str,
        types: &[u32],
        values: &[Option<String>],
        each: &mut dyn FnMut(&[u8]) -> Result<(), WireError>,
    ) -> Result<u64, WireError> {
        let out = parse_bind_execute(sql, types, values)?;
        self.session.send(&out, "sending a statement")?;
        let mut rows = 0;
        self.session
            .until_ready("running a statement", |message| match message.tag {
                b'D' => each(&message.body),
                b'C' => {
                    rows = counted(&message.body);
                    Ok(())
                }
                // ParseComplete, BindComplete, an empty statement.
                b'1' | b'2' | b'I' => Ok(()),
                _ => Err(unexpected(message)),
            })?;
        Ok(rows)
    }

    fn ask(&mut self, sql: &[u8]) -> Result<(), WireError> {
        let mut out = Vec::with_capacity(sql.len() + 6);
        message(&mut out, b'Q', |out| zero_ended(out, sql))?;
        self.session.send(&out, "sending a command")
    }

    /// The error of a COPY that did not start or ended early; leaves the connection ready where that can be
    /// done.
    fn not_copying(&mut self, first: &Message) -> WireError {
        let error = match first.tag {
            b'E' => WireError::Server(crate::error::ServerError::parse(&first.body)),
            _ => WireError::protocol(format!(
                "message {:?} instead of a COPY",
                char::from(first.tag)
            )),
        };
        match self.session.until_ready("ending a failed COPY", |_| Ok(())) {
            Ok(()) | Err(WireError::Server(_)) => error,
            Err(worse) if matches!(error, WireError::Protocol { .. }) => worse,
            Err(_) => error,
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Best effort: without it the server would log a lost connection.
        let _ = self.session.set_limit(Some(Duration::from_millis(100)));
        let _ = self.session.send(b"X\0\0\0\x04", "saying goodbye");
    }
}

fn unexpected(message: &Message) -> WireError {
    WireError::protocol(format!(
        "message {:?} in an answer",
        char::from(message.tag)
    ))
}

/// Parse, Bind, Execute and Sync of an unnamed statement with values as text.
fn parse_bind_execute(
    sql: &str,
    types: &[u32],
    values: &[Option<String>],
) -> Result<Vec<u8>, TooLarge> {
    let mut out = Vec::with_capacity(sql.len() + 64);
    parse(&mut out, b"", sql, types)?;
    bind(&mut out, b"", values)?;
    execute_and_sync(&mut out)?;
    Ok(out)
}

/// The number at the end of `COPY 1000`, `INSERT 0 7`, `UPDATE 3`.
fn counted(tag: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(tag);
    text.trim_end_matches('\0')
        .rsplit(' ')
        .next()
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}

/// The fields of a DataRow in text format; a null is `None`.
///
/// Errors: a row that ends early.
pub fn text_row(body: &[u8]) -> Result<Vec<Option<String>>, WireError> {
    let cut = || WireError::protocol("a row that ends early");
    let (count, mut rest) = body.split_first_chunk::<2>().ok_or_else(cut)?;
    let mut row = Vec::new();
    for _ in 0..u16::from_be_bytes(*count) {
        let (length, after) = rest.split_first_chunk::<4>().ok_or_else(cut)?;
        // A length of -1 is a null.
        let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
            row.push(None);
            rest = after;
            continue;
        };
        let (field, after) = after.split_at_checked(length).ok_or_else(cut)?;
        row.push(Some(String::from_utf8_lossy(field).into_owned()));
        rest = after;
    }
    Ok(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_gives_its_fields_and_nulls() {
        let body = b"\0\x03\0\0\0\x02hi\xff\xff\xff\xff\0\0\0\0";
        assert_eq!(
            text_row(body).unwrap(),
            [Some("hi".to_owned()), None, Some(String::new())]
        );
    }

    #[test]
    fn a_row_cut_anywhere_is_an_error() {
        let body = b"\0\x02\0\0\0\x02hi\0\0\0\x01x";
        for length in 0..body.len() {
            assert!(text_row(&body[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn values_go_as_text_and_nulls_without_bytes() {
        let values = [Some("ab".to_owned()), None];
        let out = parse_bind_execute("q", &[23], &values).unwrap();
        let parse = b"P\0\0\0\x0d\0q\0\0\x01\0\0\0\x17";
        let bind = b"B\0\0\0\x16\0\0\0\0\0\x02\0\0\0\x02ab\xff\xff\xff\xff\0\0";
        let end = b"E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04";
        assert_eq!(out, [&parse[..], &bind[..], &end[..]].concat());
        let many = vec![None; 65_536];
        assert!(parse_bind_execute("q", &[], &many).is_err());
    }

    #[test]
    fn the_tag_of_a_command_gives_the_rows() {
        assert_eq!(counted(b"COPY 1000\0"), 1000);
        assert_eq!(counted(b"INSERT 0 7\0"), 7);
        assert_eq!(counted(b"SELECT\0"), 0);
    }
}
