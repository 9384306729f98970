//! `deltabench capture` over logs that real servers wrote (`crates/capture/tests/data`).

use crate::lab::{Lab, text};
use crate::schema::breaches;
use serde_json::Value;
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
