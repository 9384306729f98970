//! What an entry of the log says of an execution.
//!
//! Source: PostgreSQL's documentation of `log_statement`, `log_duration` and `log_min_duration_statement`;
//! logs of 14, 17 and 18 (`tests/data`) have these texts.

use crate::statement::Protocol;

/// What an entry says.
#[derive(Clone, PartialEq)]
pub(crate) enum Said<'a> {
    /// An execution that ended, with its text.
    Executed { ms: f64, sent: Sent<'a> },
    /// Rows that were fetched later of an execution: more time of it.
    Fetched { ms: f64, sent: Sent<'a> },
    /// Parsing or planning that ended.
    Planned { ms: f64, sent: Sent<'a> },
    /// An execution that begins; its duration may follow.
    Begins(Sent<'a>),
    /// Rows are fetched of an execution that began before; its duration may follow.
    BeginsFetch(Sent<'a>),
    /// The duration of something that was said before.
    Ended { ms: f64 },
    /// A setting of the server; without a value it is the default again.
    Setting {
        name: &'a str,
        value: Option<&'a str>,
    },
    /// The version of the server.
    Version(&'a str),
    /// A session begins or ends.
    Connects,
    /// The server was started, or started again.
    Ready,
    /// Nothing of an execution.
    Other,
}

/// A text and how it was sent.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Sent<'a> {
    pub protocol: Protocol,
    pub text: &'a str,
}

/// Reads a message of severity `LOG`.
pub(crate) fn said(message: &str) -> Said<'_> {
    if let Some(rest) = message.strip_prefix("duration: ") {
        return timed(rest).unwrap_or(Said::Other);
    }
    match step(message) {
        Some((Step::Statement | Step::Execute, sent)) => Said::Begins(sent),
        Some((Step::Fetch, sent)) => Said::BeginsFetch(sent),
        _ => other(message),
    }
}

/// `0.123 ms`, and perhaps `  statement: …`.
fn timed(rest: &str) -> Option<Said<'_>> {
    let (number, rest) = rest.split_once(" ms")?;
    let ms: f64 = number.parse().ok()?;
    if rest.trim().is_empty() {
        return Some(Said::Ended { ms });
    }
    let (step, sent) = step(rest.trim_start())?;
    Some(match step {
        Step::Statement | Step::Execute => Said::Executed { ms, sent },
        Step::Fetch => Said::Fetched { ms, sent },
        Step::Plan => Said::Planned { ms, sent },
    })
}

enum Step {
    Statement,
    Execute,
    Fetch,
    Plan,
}

/// `statement: TEXT`, `execute NAME: TEXT` and their like.
fn step(text: &str) -> Option<(Step, Sent<'_>)> {
    if let Some(text) = text.strip_prefix("statement: ") {
        let protocol = Protocol::Simple;
        return Some((Step::Statement, Sent { protocol, text }));
    }
    let steps = [
        ("execute fetch from ", Step::Fetch),
        ("execute ", Step::Execute),
        ("parse ", Step::Plan),
        ("bind ", Step::Plan),
    ];
    let (step, rest) = steps
        .into_iter()
        .find_map(|(word, step)| Some((step, text.strip_prefix(word)?)))?;
    let (name, text) = rest.split_once(": ")?;
    // The portal follows the name behind a slash.
    let unnamed = name == "<unnamed>" || name.starts_with("<unnamed>/");
    let protocol = if unnamed {
        Protocol::Extended
    } else {
        Protocol::Prepared
    };
    Some((step, Sent { protocol, text }))
}

fn other(message: &str) -> Said<'_> {
    let connects = [
        "disconnection: ",
        "connection received: ",
        "connection authorized: ",
    ];
    if connects.iter().any(|begin| message.starts_with(begin)) {
        return Said::Connects;
    }
    if message.starts_with("database system is ready to accept") {
        return Said::Ready;
    }
    if let Some(rest) = message.strip_prefix("starting PostgreSQL ") {
        return Said::Version(rest.split([' ', ',']).next().unwrap_or(rest));
    }
    let setting = || {
        let rest = message.strip_prefix("parameter \"")?;
        if let Some((name, rest)) = rest.split_once("\" removed from ") {
            return rest.ends_with("reset to default").then_some((name, None));
        }
        let (name, rest) = rest.split_once("\" changed to \"")?;
        Some((name, Some(rest.strip_suffix('"')?)))
    };
    setting().map_or(Said::Other, |(name, value)| Said::Setting { name, value })
}

/// Whether a message looks like one of a duration in another language: `Dauer: 0.123 ms  Anweisung: …`, a
/// decimal and a short unit behind the first colon, which may be Chinese.
pub(crate) fn is_foreign_duration(message: &str) -> bool {
    if message.starts_with("duration: ") {
        return false;
    }
    let Some((_, rest)) = message.split_once([':', '：']) else {
        return false;
    };
    let rest = rest.trim_start_matches(' ');
    let number = rest.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, rest) = rest.split_at(number.unwrap_or(rest.len()));
    let rest = rest.strip_prefix(' ').unwrap_or(rest);
    let (unit, rest) = rest.split_at(rest.find(' ').unwrap_or(rest.len()));
    let is_unit = (1..=4).contains(&unit.chars().count()) && unit.chars().all(char::is_alphabetic);
    let is_end = rest.is_empty() || rest.starts_with("  ");
    number.contains('.') && number.parse::<f64>().is_ok() && is_unit && is_end
}

/// The values of an execution.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Values {
    /// All of them; none if the entry names none.
    Whole(Vec<Option<String>>),
    /// At least one ends in `...`: as whole as the others, or cut by `log_parameter_max_length`.
    Dotted(Vec<Option<String>>),
    /// They cannot be read.
    Broken,
}

/// Reads `Parameters: $1 = 'a''b', $2 = NULL` of an entry's detail.
pub(crate) fn values(detail: Option<&str>) -> Values {
    let listed = detail.and_then(|detail| {
        let rest = detail.strip_prefix("parameters: ");
        rest.or_else(|| detail.strip_prefix("Parameters: "))
    });
    let Some(mut rest) = listed else {
        return Values::Whole(Vec::new());
    };
    let mut values = Vec::new();
    let mut cut = false;
    loop {
        let Some((value, after)) = value(rest, values.len() + 1) else {
            return Values::Broken;
        };
        cut |= value.as_deref().is_some_and(|value| value.ends_with("..."));
        values.push(value);
        match after.strip_prefix(", ") {
            Some(next) => rest = next,
            None if after.is_empty() => break,
            None => return Values::Broken,
        }
    }
    if cut {
        Values::Dotted(values)
    } else {
        Values::Whole(values)
    }
}

/// `$1 = 'value'` or `$1 = NULL`, and what follows.
fn value(text: &str, number: usize) -> Option<(Option<String>, &str)> {
    let rest = text.strip_prefix(&format!("${number} = "))?;
    if let Some(after) = rest.strip_prefix("NULL") {
        return Some((None, after));
    }
    let inside = rest.strip_prefix('\'')?;
    let mut from = 0;
    loop {
        let at = from + inside.get(from..)?.find('\'')?;
        let after = inside.get(at + 1..)?;
        if after.starts_with('\'') {
            from = at + 2;
            continue;
        }
        return Some((Some(inside.get(..at)?.replace("''", "'")), after));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_values_come_back_as_the_server_wrote_them(
            sent in proptest::collection::vec(proptest::option::of("[^\u{0}]{0,20}"), 1..12)
        ) {
            let written = |(value, number): (&Option<String>, usize)| match value {
                None => format!("${number} = NULL"),
                Some(text) => format!("${number} = '{}'", text.replace('\'', "''")),
            };
            let written: Vec<String> = sent.iter().zip(1..).map(written).collect();
            let found = values(Some(&format!("Parameters: {}", written.join(", "))));
            let is_dotted = sent.iter().flatten().any(|value| value.ends_with("..."));
            let wanted = if is_dotted { Values::Dotted(sent) } else { Values::Whole(sent) };
            prop_assert!(found == wanted);
        }
    }

    fn shown(message: &str) -> String {
        let sent = |sent: Sent<'_>| format!("{:?} {}", sent.protocol, sent.text);
        match said(message) {
            Said::Executed { ms, sent: text } => format!("executed {ms} {}", sent(text)),
            Said::Fetched { ms, sent: text } => format!("fetched {ms} {}", sent(text)),
            Said::Planned { ms, sent: text } => format!("planned {ms} {}", sent(text)),
            Said::Begins(text) => format!("begins {}", sent(text)),
            Said::BeginsFetch(text) => format!("begins fetch {}", sent(text)),
            Said::Ended { ms } => format!("ended {ms}"),
            Said::Setting { name, value } => format!("{name}={}", value.unwrap_or("default")),
            Said::Version(version) => format!("version {version}"),
            Said::Connects => "connects".to_owned(),
            Said::Ready => "ready".to_owned(),
            Said::Other => "other".to_owned(),
        }
    }

    #[test]
    fn messages_say_what_was_executed_and_how() {
        let cases = [
            (
                "duration: 0.5 ms  statement: SELECT 1",
                "executed 0.5 Simple SELECT 1",
            ),
            (
                "duration: 0.5 ms  execute <unnamed>: SELECT\n$1",
                "executed 0.5 Extended SELECT\n$1",
            ),
            (
                "duration: 0.5 ms  execute <unnamed>/C_1: a",
                "executed 0.5 Extended a",
            ),
            (
                "duration: 0.5 ms  execute S_1: a: b",
                "executed 0.5 Prepared a: b",
            ),
            (
                "duration: 0.5 ms  execute fetch from S_1/C_2: a",
                "fetched 0.5 Prepared a",
            ),
            ("duration: 0.5 ms  bind S_1: a", "planned 0.5 Prepared a"),
            (
                "duration: 0.5 ms  parse <unnamed>: a",
                "planned 0.5 Extended a",
            ),
            ("duration: 0.5 ms", "ended 0.5"),
            ("duration: 0.5 ms  plan:\nQuery Text: a", "other"),
            ("duration: x ms  statement: a", "other"),
            ("statement: a", "begins Simple a"),
            ("execute S_1: a", "begins Prepared a"),
            ("execute fetch from S_1/C: a", "begins fetch Prepared a"),
            ("parameter \"work_mem\" changed to \"4MB\"", "work_mem=4MB"),
            (
                "parameter \"log_statement_sample_rate\" removed from configuration file, reset to default",
                "log_statement_sample_rate=default",
            ),
            ("starting PostgreSQL 18.1 on x86_64", "version 18.1"),
            ("starting PostgreSQL 14.2 (Debian 1), x", "version 14.2"),
            ("disconnection: session time: 0:00", "connects"),
            ("connection authorized: user=a", "connects"),
            ("database system is ready to accept connections", "ready"),
            ("checkpoint starting: time", "other"),
        ];
        for (message, wanted) in cases {
            assert_eq!(shown(message), wanted, "{message}");
        }
        for foreign in [
            "Dauer: 0.123 ms  Anweisung: select 1",
            "durée : 0.123 ms",
            "продолжительность: 0.123 мс  оператор: select 1",
            "期間: 0.123 ミリ秒  文: select 1",
            "执行时间：0.123 毫秒",
        ] {
            assert!(is_foreign_duration(foreign), "{foreign}");
        }
        assert!(!is_foreign_duration("checkpoint complete: 0.5 of it"));
        assert!(!is_foreign_duration("duration: 0.123 ms"));
        assert!(!is_foreign_duration("checkpoint complete: wrote"));
    }

    #[test]
    fn values_are_what_the_client_sent() {
        let whole = |values: &[Option<&str>]| {
            Values::Whole(
                values
                    .iter()
                    .map(|value| value.map(str::to_owned))
                    .collect(),
            )
        };
        let found = values(Some(
            "parameters: $1 = 'it''s, $2 = ''x''', $2 = NULL, $3 = '', $4 = 'a\nb'",
        ));
        assert!(found == whole(&[Some("it's, $2 = 'x'"), None, Some(""), Some("a\nb")]));
        assert!(values(Some("Parameters: $1 = '{a,NULL}'")) == whole(&[Some("{a,NULL}")]));
        assert!(values(None) == whole(&[]));
        assert!(values(Some("prepare: PREPARE p AS SELECT 1")) == whole(&[]));
        let dotted = values(Some("Parameters: $1 = 'abc...', $2 = '1'"));
        assert!(matches!(dotted, Values::Dotted(values) if values.len() == 2));
        for broken in ["$1 = 'a", "$2 = 'a'", "$1 = 'a' $2 = 'b'", "$1 = x", ""] {
            assert!(
                values(Some(&format!("Parameters: {broken}"))) == Values::Broken,
                "{broken}"
            );
        }
    }
}
