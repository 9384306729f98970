//! `deltabench capture` over logs that real servers wrote (`crates/capture/tests/data`).

use crate::lab::{Lab, join, text};
use crate::schema::breaches;
use deltabench_capture::{Capture, Statement, TokenKind, tokens};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::process::Output;

fn recorded(name: &str) -> String {
    format!(
        "{}/../capture/tests/data/{name}",
        env!("CARGO_MANIFEST_DIR")
    )
}

/// Values of the recorded workload: none of them may be said.
const SECRETS: [&str; 5] = ["dead00", "it's", "a'b", "01234", "\"two\""];

fn assert_no_secret(said: &[u8]) {
    let said = text(said);
    for secret in SECRETS {
        assert!(!said.contains(secret), "{secret} in {said}");
    }
}

fn refusal(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(output.stdout.is_empty());
    let said = text(&output.stderr);
    assert!(
        said.starts_with("error: ") && said.contains("hint: "),
        "{said}"
    );
    said
}

/// A schema that also refuses what it does not name.
fn closed(mut schema: Value) -> Value {
    let inner = match &mut schema {
        Value::Object(members) => {
            if members.contains_key("properties") {
                members.insert("additionalProperties".to_owned(), Value::Bool(false));
            }
            members.values_mut().collect::<Vec<_>>()
        }
        Value::Array(members) => members.iter_mut().collect(),
        _ => Vec::new(),
    };
    for inner in inner {
        *inner = closed(inner.take());
    }
    schema
}

#[test]
fn a_log_becomes_a_file_of_statements_that_only_its_owner_reads() {
    let lab = Lab::new();
    let log = recorded("18.json");
    let command = [
        "capture",
        "--log",
        &log,
        "--out",
        "shop.capture",
        "--json",
        "-",
    ];
    let output = lab.run(&command);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_no_secret(&output.stdout);
    assert_no_secret(&output.stderr);
    let file = lab.path().join("shop.capture");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let captured = std::fs::read_to_string(&file).unwrap();
    assert!(captured.contains("dead00"), "the capture has the values");
    let numbers: Value = serde_json::from_slice(&output.stdout).unwrap();
    let schema = format!(
        "{}/../../docs/reference/captured.schema.json",
        env!("CARGO_MANIFEST_DIR")
    );
    let schema: Value = serde_json::from_slice(&std::fs::read(schema).unwrap()).unwrap();
    assert_eq!(breaches(&closed(schema), &numbers), [""; 0]);
    let statements = numbers["summary"]["statements"].as_u64().unwrap();
    assert_eq!(
        captured.lines().count(),
        usize::try_from(statements).unwrap() + 1
    );
    assert!(
        numbers["header"]["server_version"]
            .as_str()
            .unwrap()
            .starts_with("18.")
    );

    assert!(refusal(&lab.run(&command)).contains("shop.capture already exists"));
    let again = lab.run(&["capture", "--log", &log, "--out", "shop.capture", "--force"]);
    assert_eq!(again.status.code(), Some(0));
    assert!(text(&again.stdout).starts_with("captured "));
    assert_no_secret(&again.stdout);
    assert_eq!(
        std::fs::read_to_string(&file).unwrap(),
        captured,
        "the same log, the same choice"
    );
}

#[test]
fn what_cannot_be_captured_is_refused_and_leaves_nothing() {
    let lab = Lab::new();
    let files: [(&str, &[u8]); 6] = [
        ("empty.log", b""),
        ("other.txt", b"hello\nworld\n"),
        ("packed.zst", b"\x28\xb5\x2f\xfdxxxxxxxx"),
        (
            "bare.log",
            b"2026-11-02 10:00:00 UTC LOG:  duration: 1 ms\n",
        ),
        (
            "times.log",
            b"2026-11-02 10:00:00.000 UTC [7] LOG:  duration: 1 ms\n\
              2026-11-02 10:00:01.000 UTC [7] LOG:  checkpoint\n",
        ),
        (
            "german.log",
            b"2026-11-02 10:00:00.000 UTC [7] LOG:  Dauer: 1.000 ms  Anweisung: select 1\n",
        ),
    ];
    for (name, bytes) in files {
        std::fs::write(lab.path().join(name), bytes).unwrap();
    }
    std::fs::copy(recorded("18.json"), lab.path().join("copy.json")).unwrap();
    let refused = |log: &[&str]| {
        let command = [&["capture", "--out", "new.capture", "--log"], log].concat();
        let said = refusal(&lab.run(&command));
        assert!(!lab.path().join("new.capture").exists());
        said
    };
    assert!(refused(&["nowhere.json"]).contains("cannot read nowhere.json"));
    assert!(refused(&["empty.log"]).contains("no log to read"));
    assert!(refused(&["other.txt"]).contains("log_min_duration_sample = 0"));
    assert!(refused(&["packed.zst"]).contains("packed by zstd"));
    assert!(refused(&["bare.log"]).contains("log_line_prefix has no time or no process"));
    assert!(refused(&["times.log"]).contains("log_duration logs times alone"));
    assert!(refused(&["german.log"]).contains("another language"));
    assert!(refused(&[&recorded("18.json"), &recorded("18.csv")]).contains("two formats"));
    assert!(refused(&[&recorded("18.json"), "copy.json"]).contains("begin with the same entry"));
    let log = recorded("18.json");
    for (options, wanted) in [
        (["--sample-rate", "2"], "not a share of the executions"),
        (["--always-above", "much"], "is not a time"),
        (["--always-above", "250"], "is not a time"),
        (["--statements", &log], "is no CSV of pg_stat_statements"),
        (["--json", "new.capture"], "name the same file"),
        (["--json", "no/where.json"], "cannot write no/where.json"),
    ] {
        let said = refused(&[&[log.as_str()][..], &options].concat());
        assert!(said.contains(wanted), "{said}");
        assert_no_secret(said.as_bytes());
    }
    let to_stdout = lab.run(&["capture", "--log", &log, "--out", "-"]);
    assert!(refusal(&to_stdout).contains("not written to stdout"));
    let device = lab.run(&["capture", "--log", &log, "--out", "/dev/null", "--force"]);
    assert!(refusal(&device).contains("/dev/null is no file"));
    let itself = lab.run(&[
        "capture",
        "--log",
        "copy.json",
        "--out",
        "copy.json",
        "--force",
    ]);
    assert!(refusal(&itself).contains("a file that is read"));
}

/// Values and literals of a capture, and what of them its texts show to everybody.
fn values_of(capture: &Capture) -> (BTreeSet<String>, String) {
    let statements = capture.statements.iter();
    let tuples = statements.clone().flat_map(|statement| &statement.tuples);
    let values = tuples
        .clone()
        .flat_map(|tuple| tuple.values.iter().flatten().cloned());
    let texts = tuples.filter_map(|tuple| tuple.text.as_deref());
    let texts = texts.chain(statements.clone().map(|statement| statement.text.as_str()));
    let literals = texts.flat_map(|text| {
        let literals = tokens(text).tokens.into_iter();
        let literals = literals.filter(|token| token.kind == TokenKind::Literal);
        literals
            .map(|token| token.text.trim_matches('\'').to_owned())
            .collect::<Vec<_>>()
    });
    let shown = |statement: &Statement| {
        format!(
            "{} {:?} {:?}",
            statement.normalised, statement.role, statement.search_path
        )
    };
    (
        values.chain(literals).collect(),
        statements.map(shown).collect(),
    )
}

#[test]
fn a_redacted_capture_has_no_value_of_the_log_and_is_for_plans_only() {
    let lab = Lab::new();
    let entry = |message: &str, detail: &str| {
        json!({
            "timestamp": "2026-11-02 10:00:00.000 UTC", "user": "app", "dbname": "shop", "pid": 7,
            "session_id": "6907.7", "line_num": 1, "ps": "SELECT", "error_severity": "LOG",
            "message": message, "detail": detail, "backend_type": "client backend"
        })
        .to_string()
    };
    let own = [
        entry(
            "duration: 0.1 ms  statement: SELECT 1 FROM t WHERE name = 'Zacharias' /* user:Zacharias */",
            "",
        ),
        entry(
            "duration: 0.1 ms  execute s: INSERT INTO t VALUES ($1, $2)",
            "Parameters: $1 = 'Zacharias', $2 = '4929123456789012'",
        ),
    ];
    std::fs::write(lab.path().join("own.json"), own.join("\n")).unwrap();
    for log in [
        "own.json".to_owned(),
        recorded("18.json"),
        recorded("14.csv"),
    ] {
        let capture = |out: &str, more: &[&str]| {
            let command = ["capture", "--force", "--log", &log, "--out", out];
            let output = lab.run(&join(&command, more));
            assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
            let file = lab.path().join(out);
            (
                Capture::open(&file).unwrap(),
                std::fs::read_to_string(&file).unwrap(),
            )
        };
        let (open, _) = capture("open.capture", &[]);
        let (closed, file) = capture("closed.capture", &["--redact"]);
        let (again, _) = capture("again.capture", &["--redact"]);
        assert!(closed.header.redacted && !open.header.redacted);
        let (values, shown) = values_of(&open);
        // Short numbers are few, and words of types stay.
        let secret = |value: &&String| value.len() > 5 && !shown.contains(value.as_str());
        let secrets: Vec<&String> = values.iter().filter(secret).collect();
        assert!(secrets.len() > 1, "{log}: {values:?}");
        for secret in secrets {
            let escaped = serde_json::to_string(secret).unwrap();
            assert!(
                !file.contains(escaped.trim_matches('"')),
                "{secret} in {log}"
            );
        }
        let texts = |capture: &Capture| {
            let statements = capture.statements.iter();
            statements
                .map(|one| one.normalised.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(texts(&open), texts(&closed));
        let tuples = |capture: &Capture| {
            capture
                .statements
                .iter()
                .map(|one| one.tuples.len())
                .sum::<usize>()
        };
        assert_eq!(tuples(&open), tuples(&closed));
        assert_ne!(
            values_of(&closed).0,
            values_of(&again).0,
            "each has a key of its own"
        );
    }
    std::fs::write(
        lab.path().join("t.dump"),
        "CREATE TABLE t (a text, b bigint);\n",
    )
    .unwrap();
    let replay = [
        "replay",
        "closed.capture",
        "postgres:18",
        "postgres:18",
        "--data",
        "t.dump",
    ];
    assert!(refusal(&lab.run(&replay)).contains("made up (capture --redact)"));
}
