//! `log_destination = jsonlog`, from 15 on: an object on each line.
//!
//! Source: PostgreSQL documentation, "Using JSON-Format Log Output".

use super::entry::{Entry, Record, decoded};
use super::lines::Lines;
use serde::Deserialize;
use std::io;

#[derive(Deserialize)]
struct Object {
    timestamp: String,
    user: Option<String>,
    dbname: Option<String>,
    pid: Option<u64>,
    session_id: Option<String>,
    ps: Option<String>,
    error_severity: String,
    state_code: Option<String>,
    message: Option<String>,
    detail: Option<String>,
    context: Option<String>,
    statement: Option<String>,
    query_id: Option<i64>,
}

/// The entry on the next line.
pub(super) fn next(lines: &mut Lines) -> io::Result<Option<Record>> {
    let Some((line, number)) = lines.next()? else {
        return Ok(None);
    };
    let (text, is_lossy) = decoded(&line);
    let Ok(object) = serde_json::from_str::<Object>(&text) else {
        return Ok(Some(Record::Unreadable(number)));
    };
    let session = object.session_id;
    Ok(Some(Record::Entry(Box::new(Entry {
        time: object.timestamp,
        user: object.user,
        database: object.dbname,
        session: session
            .or(object.pid.map(|pid| pid.to_string()))
            .unwrap_or_default(),
        tag: object.ps,
        severity: object.error_severity,
        state: object.state_code,
        message: object.message.unwrap_or_default(),
        detail: object.detail,
        has_context: object.context.is_some(),
        statement: object.statement,
        query_id: object.query_id.filter(|id| *id != 0),
        is_lossy,
    }))))
}
