//! `log_destination = csvlog`: values between commas, an entry on one line or on several.
//!
//! Source: PostgreSQL documentation, "Using CSV-Format Log Output". 9.0 to 12 write 23 columns, 13 adds the
//! type of the backend, 14 the leader of a parallel group and the query's identifier.

use super::entry::{Entry, Record, begins_with_time, decoded, present};
use super::lines::{Line, Lines};
use crate::csv::{fields, is_open};
use std::io;

/// Columns of every version.
const FEWEST: usize = 22;
/// An entry larger than this is a quote without end.
const LARGEST: usize = 256 << 20;

/// The next entry. After something that is none, reading goes on at the next line that begins like one.
pub(super) fn next(lines: &mut Lines) -> io::Result<Option<Record>> {
    let Some(first) = lines.next()? else {
        return Ok(None);
    };
    let number = first.1;
    let mut record: Vec<Line> = vec![first];
    let mut open = record.first().is_some_and(|(line, _)| is_open(line, false));
    let mut size = 0;
    while open && size < LARGEST {
        let Some(line) = lines.next()? else {
            break;
        };
        open = is_open(&line.0, true);
        size += line.0.len();
        record.push(line);
    }
    let whole = record.iter().map(|(line, _)| line.as_slice());
    let whole: Vec<&[u8]> = whole.collect();
    let bytes = whole.join(&b'\n');
    let (text, is_lossy) = decoded(&bytes);
    if let Some(entry) = (!open).then(|| entry(&text, is_lossy)).flatten() {
        return Ok(Some(Record::Entry(Box::new(entry))));
    }
    let rest = record.into_iter().skip(1);
    let rest = rest.skip_while(|(line, _)| !begins_with_time(&decoded(line).0));
    lines.give_back(rest.collect());
    Ok(Some(Record::Unreadable(number)))
}

fn entry(text: &str, is_lossy: bool) -> Option<Entry> {
    let fields = fields(text)?;
    let field = |at: usize| fields.get(at).map_or("", |field| field.as_ref());
    if fields.len() < FEWEST || !begins_with_time(field(0)) {
        return None;
    }
    let session = if field(5).is_empty() {
        field(3)
    } else {
        field(5)
    };
    let query_id = field(25).parse().ok().filter(|id| *id != 0);
    Some(Entry {
        time: field(0).to_owned(),
        user: present(field(1)),
        database: present(field(2)),
        session: session.to_owned(),
        tag: present(field(7)),
        severity: field(11).to_owned(),
        state: present(field(12)),
        message: field(13).to_owned(),
        detail: present(field(14)),
        has_context: !field(18).is_empty(),
        statement: present(field(19)),
        query_id,
        is_lossy,
    })
}
