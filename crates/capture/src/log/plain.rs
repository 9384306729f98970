//! `log_destination = stderr`: text, each entry behind a `log_line_prefix` that has at least a time (`%m`,
//! `%t` or `%n`) and the process (`%p`): the default `%m [%p] `, Debian's `%m [%p] %q%u@%d `, RDS's
//! `%t:%r:%u@%d:[%p]:`.

use super::entry::{Entry, Record, begins_with_time, decoded, time_of};
use super::lines::Lines;
use std::io;

/// Words before `:  ` that begin an entry.
const SEVERITIES: [&str; 12] = [
    "LOG", "ERROR", "FATAL", "PANIC", "WARNING", "NOTICE", "INFO", "DEBUG1", "DEBUG2", "DEBUG3",
    "DEBUG4", "DEBUG5",
];
/// Words that go on with the entry before.
const PARTS: [&str; 7] = [
    "DETAIL",
    "HINT",
    "QUERY",
    "CONTEXT",
    "LOCATION",
    "STATEMENT",
    "BACKTRACE",
];

/// A line with its prefix taken apart.
struct Prefixed<'a> {
    prefix: &'a str,
    /// `LOG`, `DETAIL` and so on.
    word: &'static str,
    text: &'a str,
}

impl<'a> Prefixed<'a> {
    fn of(line: &'a str) -> Option<Self> {
        if !begins_with_time(line) {
            return None;
        }
        // The first such word: messages have others inside.
        let words = SEVERITIES.iter().chain(&PARTS);
        let found = words.filter_map(|word| {
            let at = line.find(&format!("{word}:  "))?;
            let (prefix, rest) = line.split_at_checked(at)?;
            let text = rest.get(word.len() + 3..)?;
            let apart = prefix.ends_with([' ', ':', ']', ',', '>']);
            apart.then_some((at, Self { prefix, word, text }))
        });
        found.min_by_key(|(at, _)| *at).map(|(_, found)| found)
    }

    /// The number in brackets, before a `-` and the line's number in it.
    fn process(&self) -> Option<&'a str> {
        let brackets = self.prefix.split('[').skip(1);
        let inside = brackets.filter_map(|rest| rest.split_once(']').map(|(inside, _)| inside));
        let numbers = inside.filter_map(|inside| inside.split('-').next());
        let mut numbers = numbers
            .filter(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()));
        numbers.next()
    }

    /// `user@database` anywhere behind the time, or `user=…` and `db=…`. Absent if several words look like
    /// it: one of them may be the name of an application, which clients choose.
    fn user_and_database(&self) -> Option<(&'a str, &'a str)> {
        let words = || self.prefix.split([' ', ':', ',', '[']);
        let named = |key: &'static str| words().filter_map(move |word| word.strip_prefix(key));
        if let (Some(user), Some(database)) = (only(named("user=")), only(named("db="))) {
            return Some((user, database));
        }
        // Names may have an `@`, those of databases seldom.
        only(words().filter_map(|word| word.rsplit_once('@')))
    }

    /// The text without the SQLSTATE that `log_error_verbosity = verbose` writes before it.
    fn message(&self) -> &'a str {
        let state = self
            .text
            .get(..7)
            .and_then(|begin| begin.strip_suffix(": "));
        let is_state = |state: &str| {
            let mut letters = state.bytes();
            letters.all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
        };
        match state.filter(|state| is_state(state)) {
            Some(_) => self.text.get(7..).unwrap_or_default(),
            None => self.text,
        }
    }
}

/// The only one, if there is one and no other.
fn only<T>(mut all: impl Iterator<Item = T>) -> Option<T> {
    let first = all.next()?;
    all.next().is_none().then_some(first)
}

/// Whether a line is the first of an entry whose process is known.
pub(super) fn is_entry(line: &str) -> bool {
    Prefixed::of(line).is_some_and(|line| line.process().is_some())
}

/// The next entry with its details.
pub(super) fn next(lines: &mut Lines) -> io::Result<Option<Record>> {
    let Some((line, number)) = lines.next()? else {
        return Ok(None);
    };
    let (text, is_lossy) = decoded(&line);
    let Some(mut entry) = Prefixed::of(&text).and_then(|line| entry(&line)) else {
        return Ok(Some(Record::Unreadable(number)));
    };
    entry.is_lossy = is_lossy;
    let session = entry.session.clone();
    // To which of its texts a line without prefix belongs.
    let mut part = "message";
    while let Some((line, number)) = lines.next()? {
        let (text, is_lossy) = decoded(&line);
        match Prefixed::of(&text) {
            Some(next) if PARTS.contains(&next.word) && next.process() == Some(&session) => {
                part = next.word;
                add(&mut entry, part, next.text);
            }
            None if text.starts_with('\t') || text.is_empty() => {
                let more = text.strip_prefix('\t').unwrap_or(&text);
                add(&mut entry, part, &format!("\n{more}"));
            }
            _ => {
                lines.give_back(vec![(line, number)]);
                break;
            }
        }
        entry.is_lossy |= is_lossy;
    }
    Ok(Some(Record::Entry(Box::new(entry))))
}

fn entry(line: &Prefixed<'_>) -> Option<Entry> {
    if !SEVERITIES.contains(&line.word) {
        return None;
    }
    let both = line.user_and_database();
    let known = |text: &str| (!text.is_empty() && text != "[unknown]").then(|| text.to_owned());
    Some(Entry {
        time: time_of(line.prefix).to_owned(),
        user: both.and_then(|(user, _)| known(user)),
        database: both.and_then(|(_, database)| known(database)),
        session: line.process()?.to_owned(),
        severity: line.word.to_owned(),
        message: line.message().to_owned(),
        ..Entry::default()
    })
}

fn add(entry: &mut Entry, part: &str, text: &str) {
    match part {
        "message" => entry.message.push_str(text),
        "DETAIL" => entry.detail.get_or_insert_default().push_str(text),
        "CONTEXT" => entry.has_context = true,
        "STATEMENT" => entry.statement.get_or_insert_default().push_str(text),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefixed(line: &str) -> (String, Option<String>, Option<String>, String) {
        let entry = entry(&Prefixed::of(line).unwrap()).unwrap();
        (entry.time, entry.user, entry.database, entry.session)
    }

    #[test]
    fn an_sqlstate_is_no_part_of_the_message() {
        for state in ["", "00000: "] {
            let line = format!("2026-11-02 10:11:12.123 UTC [77] LOG:  {state}duration: 1 ms");
            assert_eq!(Prefixed::of(&line).unwrap().message(), "duration: 1 ms");
        }
    }

    #[test]
    fn usual_prefixes_are_understood() {
        let plain = prefixed("2026-11-02 10:11:12.123 UTC [77] LOG:  duration: 1 ms");
        assert_eq!(
            plain,
            (
                "2026-11-02 10:11:12.123 UTC".into(),
                None,
                None,
                "77".into()
            )
        );
        let debian = prefixed("2026-11-02 10:11:12.123 UTC [77] app@shop LOG:  x");
        let both = (Some("app".to_owned()), Some("shop".to_owned()));
        assert_eq!((debian.1, debian.2), both);
        let mail = prefixed("2026-11-02 10:11:12.123 UTC [77] ann@corp.org@shop LOG:  x");
        assert_eq!(mail.1.as_deref(), Some("ann@corp.org"));
        let two = "2026-11-02 10:11:12 UTC [77] bob@home.org app@shop LOG:  x";
        let two = prefixed(two);
        assert_eq!((two.1, two.2), (None, None));
        let two = "2026-11-02 10:11:12 UTC [77] app=x user=bob,user=app,db=shop LOG:  x";
        assert_eq!(prefixed(two).1, None);
        let rds = prefixed("2026-11-02 10:11:12 UTC:10.0.0.1(5):app@shop:[77]:LOG:  DETAIL:  x");
        assert_eq!(
            rds,
            (
                "2026-11-02 10:11:12 UTC".into(),
                both.0,
                both.1,
                "77".into()
            )
        );
        let badger =
            "2026-11-02 10:11:12 UTC [77]: [3-1] user=app,db=shop,app=psql,client=[local] LOG:  x";
        let badger = prefixed(badger);
        assert_eq!(
            (badger.1.as_deref(), badger.2.as_deref()),
            (Some("app"), Some("shop"))
        );
        assert_eq!(badger.3, "77");
        assert!(is_entry("2026-11-02 10:11:12 UTC [77-1] LOG:  x"));
        assert!(!is_entry("2026-11-02 10:11:12 UTC LOG:  no process"));
        assert!(!is_entry("LOG:  no time"));
        assert!(!is_entry("2026-11-02 10:11:12 UTC [77] hello"));
    }
}
