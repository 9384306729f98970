//! The file of a redacted capture, as a whole: nothing that users or clients chose is in it.

use crate::recorded::captured;
use deltabench_capture::{Capture, redact};
use std::path::Path;

/// What clients choose: values, the names of applications, messages of functions.
const SECRETS: [&str; 9] = [
    "Zacharias",
    "4929123456",
    "pricetag",
    "badgerapp",
    "mailbox@cinnamon",
    "whispered",
    "hostname",
    "10.77.88.99",
    "7086312345678901234",
];
/// Shorter pieces may be drawn by chance, and are in the words of the file.
const PIECE: usize = 4;

/// Pieces of the secrets that are in a text.
fn shown(text: &str) -> Vec<String> {
    let text = text.to_lowercase();
    let mut found = Vec::new();
    for secret in SECRETS {
        let letters: Vec<char> = secret.to_lowercase().chars().collect();
        let pieces = letters.windows(PIECE).map(|piece| piece.iter().collect());
        found.extend(pieces.filter(|piece: &String| text.contains(piece.as_str())));
    }
    found
}

/// The bytes of the file of a log that is redacted, and the capture.
fn redacted(log: &str) -> (String, Capture) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("log");
    std::fs::write(&file, log).unwrap();
    let mut capture = captured(&[Path::new(&file)]);
    redact(&mut capture, [3; 32]);
    let out = directory.path().join("capture");
    capture.write(&out).unwrap();
    (std::fs::read_to_string(&out).unwrap(), capture)
}

/// The executions that all logs have, and what is none: its words, its detail, its context.
fn entries() -> [(&'static str, Option<&'static str>, Option<&'static str>); 6] {
    [
        (
            "duration: 0.1 ms  statement: select a from t where b = 'Zacharias' and c = -4929123456",
            None,
            None,
        ),
        (
            "duration: 0.1 ms  execute <unnamed>: select a from t where b = $1",
            Some("Parameters: $1 = '{\"pricetag\": \"Zacharias\"}'"),
            None,
        ),
        (
            "duration: 0.1 ms  statement: create function f() returns int set a.b = pricetag as 'Zacharias'",
            None,
            None,
        ),
        (
            "statement: whispered whispered, pricetag",
            None,
            Some("PL/pgSQL function f() line 3 at RAISE"),
        ),
        (
            "duration: 9.0 ms  execute x: whispered $1",
            Some("Parameters: $1 = 'pricetag'"),
            Some("PL/pgSQL function f() line 3 at RAISE"),
        ),
        (
            "parameter \"work_mem\" changed to \"whispered\"",
            None,
            Some("PL/pgSQL function f() line 3 at RAISE"),
        ),
    ]
}

fn check(name: &str, log: &str) -> Capture {
    let (file, capture) = redacted(log);
    assert_eq!(shown(&file), [""; 0], "{name}: {file}");
    assert_eq!(capture.statements.len(), 3, "{name}: {file}");
    assert_eq!(capture.header.counted.executions, 3, "{name}");
    assert_eq!(capture.header.counted.unreadable, 0, "{name}");
    capture
}

#[test]
fn a_text_log_shows_nothing_of_its_prefix() {
    for (prefix, time, role) in [
        (
            "2026-11-02 10:11:12.123 UTC badgerapp [77] ",
            "2026-11-02 10:11:12.123 UTC",
            None,
        ),
        (
            "2026-11-02 10:11:12 badgerapp [77] ",
            "2026-11-02 10:11:12",
            None,
        ),
        (
            "2026-11-02 10:11:12 UTC [77] app@shop hostname mailbox@cinnamon ",
            "2026-11-02 10:11:12 UTC",
            None,
        ),
        (
            "2026-11-02 10:11:12 UTC:10.77.88.99(5):app@shop:[77]:",
            "2026-11-02 10:11:12 UTC",
            Some("app"),
        ),
        (
            "1762078272.123 badgerapp 10.77.88.99 [77] ",
            "1762078272.123",
            None,
        ),
        (
            "2026-11-02 10:11:12 +0330 [77]: user=app,db=shop,app=badgerapp,client=hostname ",
            "2026-11-02 10:11:12 +0330",
            Some("app"),
        ),
    ] {
        let mut log = String::new();
        for (message, detail, context) in entries() {
            log += &format!("{prefix}LOG:  {message}\n");
            for (word, part) in [("DETAIL", detail), ("CONTEXT", context)] {
                log += &part.map_or_else(String::new, |part| format!("{prefix}{word}:  {part}\n"));
            }
        }
        let capture = check(prefix, &log);
        let header = &capture.header;
        assert_eq!(
            (header.from.as_deref(), header.to.as_deref()),
            (Some(time), Some(time))
        );
        let roles = capture
            .statements
            .iter()
            .map(|statement| statement.role.as_deref());
        assert!(roles.into_iter().all(|found| found == role), "{prefix}");
    }
}

#[test]
fn logs_of_columns_and_of_json_show_neither_hashes_nor_messages_of_functions() {
    let (mut columns, mut json) = (String::new(), String::new());
    for (message, detail, context) in entries() {
        let quoted = |text: &str| match text {
            "" => String::new(),
            text => format!("\"{}\"", text.replace('"', "\"\"")),
        };
        let (detail, context) = (detail.unwrap_or_default(), context.unwrap_or_default());
        columns += &format!(
            "2026-11-02 10:11:12.123 UTC,\"app\",\"shop\",77,\"hostname:5\",abc.1,1,\"SELECT\",\
             2026-11-02 10:00:00 UTC,3/4,0,LOG,00000,{},{},,,,{},,,,\"badgerapp\",\"client backend\",,\
             7086312345678901234\n",
            quoted(message),
            quoted(detail),
            quoted(context)
        );
        let mut object = serde_json::json!({
            "timestamp": "2026-11-02 10:11:12.123 UTC", "user": "app", "dbname": "shop", "pid": 77,
            "remote_host": "hostname", "session_id": "abc.1", "ps": "SELECT", "error_severity": "LOG",
            "state_code": "00000", "message": message, "application_name": "badgerapp",
            "query_id": 7_086_312_345_678_901_234_i64,
        });
        for (key, part) in [("detail", detail), ("context", context)] {
            if !part.is_empty() {
                object[key] = part.into();
            }
        }
        json += &format!("{object}\n");
    }
    for (name, log) in [("csv", columns), ("json", json)] {
        let capture = check(name, &log);
        assert_eq!(
            capture.header.from.as_deref(),
            Some("2026-11-02 10:11:12.123 UTC")
        );
    }
}
