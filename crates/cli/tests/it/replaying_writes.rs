//! Writes of `deltabench replay` on copies of the tables, on real servers with the shop of `examples/replay`.

use crate::lab::{Lab, join, text};
use crate::replaying::{SECRET, answer, holding, prepared, shop};
use deltabench_capture::{Capture, Kind, Statement};
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;

fn write(id: &str, sql: &str, values: &[Vec<String>]) -> Statement {
    Statement {
        kind: Kind::Write,
        ..prepared(id, sql, values)
    }
}

/// A copy has the settings of its database.
const OWN_SETTING: &str = "ALTER ROLE shop_owner IN DATABASE shop SET shop.own = '4';\n";

/// Writes that can be repeated, that can be done once, that the dump has done already, and a lock.
fn capture(lab: &Lab) -> PathBuf {
    let customer = |number: u32| vec![number.to_string(), SECRET.to_owned()];
    let customers = |from: u32| (from..from + 8).map(customer).collect::<Vec<_>>();
    let ids = |from: u32| {
        (from..from + 8)
            .map(|id| vec![id.to_string()])
            .collect::<Vec<_>>()
    };
    let insert = "INSERT INTO customers (id, name) VALUES ($1, $2)";
    // Four of them are there.
    let places = customers(797);
    let lock = Statement {
        kind: Kind::Lock,
        ..prepared(
            "lock",
            "SELECT id FROM orders WHERE id = $1 FOR UPDATE",
            &ids(50),
        )
    };
    let statements = vec![
        write("insert", insert, &customers(9000)),
        write("known", insert, &customers(1)),
        write("half", insert, &places),
        write(
            "update",
            "UPDATE orders SET status = 3 WHERE id = $1",
            &ids(10),
        ),
        write("delete", "DELETE FROM orders WHERE id = $1", &ids(20)),
        write(
            "differs",
            "UPDATE customers SET city = $1 WHERE id <= current_setting('shop.many')::int",
            &[vec![SECRET.to_owned()]],
        ),
        write(
            "setting",
            "UPDATE customers SET city = $1 WHERE id <= current_setting('shop.own')::int",
            &[vec![SECRET.to_owned()]],
        ),
        write(
            "fails",
            "UPDATE customers SET city = $1 WHERE id = $1::text::int",
            &[vec![SECRET.to_owned()]],
        ),
        lock,
    ];
    let path = lab.path().join("writes.capture");
    let capture = Capture {
        statements,
        ..Capture::default()
    };
    capture.write(&path).unwrap();
    path
}

fn statement<'a>(answer: &'a Value, id: &str) -> &'a Value {
    let statements = answer["statements"].as_array().unwrap();
    statements.iter().find(|one| one["id"] == id).unwrap()
}

fn replay(lab: &Lab, capture: &str, dump: &str, more: &[&str]) -> std::process::Output {
    let replay = [
        "replay",
        capture,
        "postgres:18",
        "postgres:18",
        "--data",
        dump,
        "--draws",
        "1",
        "--same-target",
        "--set",
        "shop.many=3",
        "--json",
        "-",
    ];
    lab.run(&join(&replay, more))
}

#[test]
fn writes_work_on_copies_with_the_same_rows_everywhere_and_no_value_leaves() {
    let lab = Lab::new();
    let (dump, capture) = (shop(&lab), capture(&lab));
    let mut file = std::fs::OpenOptions::new()
        .append(true)
        .open(&dump)
        .unwrap();
    file.write_all(OWN_SETTING.as_bytes()).unwrap();
    let (dump, capture) = (dump.to_str().unwrap(), capture.to_str().unwrap());
    let more = [
        "--blocks",
        "2",
        "--budget",
        "15s",
        "--mix",
        "3",
        "--candidate-set",
        "shop.many=5",
    ];
    let output = replay(&lab, capture, dump, &more);
    let said = text(&output.stderr);
    assert!(
        lab.servers().is_empty() && lab.workspaces().is_empty(),
        "{said}"
    );
    let answer = answer(&output);
    let of = |id: &str| statement(&answer, id);
    let way = |once: bool, dropped: u64| json!({"once": once, "dropped": dropped});
    for (id, expected) in [
        ("insert", way(true, 0)),
        ("known", way(false, 8)),
        ("half", way(true, 4)),
        ("update", way(false, 0)),
        ("delete", way(true, 0)),
        ("lock", way(false, 0)),
    ] {
        assert_eq!(of(id)["write"], expected, "{id}");
    }
    let rows = |id: &str| {
        of(id)["servers"]
            .as_array()
            .unwrap()
            .iter()
            .map(|on| on["rows"].clone())
    };
    assert!(rows("delete").all(|rows| rows == 8) && rows("half").all(|rows| rows == 4));
    assert!(rows("setting").all(|rows| rows == 4));
    assert!(rows("known").all(|rows| rows.is_null()));
    let verdict = |id: &str| of(id)["verdicts"][0].clone();
    assert_eq!(verdict("differs")["results"], "rows-differ");
    assert_eq!(verdict("delete")["results"], "same");
    assert_eq!(verdict("fails")["errors"], "both");
    for id in ["insert", "half", "update", "delete", "lock"] {
        let time = &verdict(id)["time"];
        assert!(time["blocks"].as_u64().unwrap() >= 1, "{id}: {time}");
        assert_ne!(time["verdict"], "unfit", "{id}: {time}");
    }
    let why = verdict("differs")["time"]["why"].clone();
    assert_eq!(why, "it changes another number of rows");
    // A copy has the rows of the dump: else the second one would find them inserted, or deleted.
    let executions = |id: &str| verdict(id)["time"]["executions"].as_u64().unwrap();
    assert!(
        executions("delete") >= 12 && executions("insert") >= 12,
        "{answer}"
    );
    let known = verdict("known");
    assert!(
        known["causes"][0].as_str().unwrap().contains("(23505)"),
        "{known}"
    );
    // All but those that a copy takes once, and the one that differs.
    let mix = &answer["times"]["mix"];
    assert_eq!(
        (&mix["clients"], &mix["statements"]),
        (&json!(3), &json!(3)),
        "{mix}"
    );
    let times = [&mix["candidates"][0], &mix["placebo"]];
    for time in times {
        assert!(time["blocks"].as_u64().unwrap() >= 1, "{mix}");
        let speed = time["candidate_per_second"].as_f64().unwrap();
        assert!(speed > 50.0 && time["throughput"]["estimate"].as_f64().unwrap() > 0.1);
        assert!(time["p99"]["estimate"].as_f64().unwrap() > 0.01, "{mix}");
    }
    let lab_files = lab.path().join("lab");
    for format in ["text", "markdown", "html"] {
        let report = lab.run(&["report", "last", "--format", format]);
        let report = text(&report.stdout);
        assert!(report.contains("committed on a copy, which takes each set of values once"));
        assert!(
            report.contains("mix of 3 statements by 3 clients"),
            "{report}"
        );
        assert!(!report.contains(SECRET));
    }
    assert_eq!(holding(&lab_files, SECRET), [""; 0].map(PathBuf::from));
    assert!(!said.contains(SECRET) && !text(&output.stdout).contains(SECRET));
}

#[test]
fn writes_that_may_do_more_or_need_too_much_are_only_explained() {
    let lab = Lab::new();
    let (dump, capture) = (shop(&lab), capture(&lab));
    let capture = capture.to_str().unwrap();
    let cause = |dump: &PathBuf, more: &[&str]| {
        let more = join(&["--plans-only"], more);
        let output = replay(&lab, capture, dump.to_str().unwrap(), &more);
        let answer = answer(&output);
        let insert = statement(&answer, "insert");
        assert!(insert["write"].is_null() && insert["servers"][0]["rows"].is_null());
        insert["verdicts"][0]["causes"].to_string()
    };
    assert!(cause(&dump, &["--copy-limit", "1MB"]).contains("--copy-limit is 1 MB"));
    assert!(cause(&dump, &["--writes", "explain"]).contains("a write is only explained"));
    // Nobody owns it, so that the one who loads does.
    let function = "CREATE FUNCTION shop.trap() RETURNS trigger SECURITY DEFINER LANGUAGE plpgsql AS \
                    $$ BEGIN RETURN new; END $$;\n";
    let mut file = std::fs::OpenOptions::new()
        .append(true)
        .open(&dump)
        .unwrap();
    file.write_all(function.as_bytes()).unwrap();
    assert!(cause(&dump, &[]).contains("trap runs as a superuser"));
    for (more, error) in [
        (["--copy-limit", "much"], "`much` is not a size"),
        (["--writes", "much"], "invalid value 'much'"),
    ] {
        let refused = replay(&lab, capture, dump.to_str().unwrap(), &more);
        assert_eq!(refused.status.code(), Some(2));
        assert!(
            text(&refused.stderr).contains(error),
            "{}",
            text(&refused.stderr)
        );
    }
    let theirs = "dsn:postgres://replayer@127.0.0.1:1/shop";
    for option in [["--copy-limit", "1GB"], ["--mix", "2"]] {
        let refused = lab.run(&join(&["replay", capture, theirs, theirs], &option));
        assert_eq!(refused.status.code(), Some(2));
        let said = text(&refused.stderr);
        let words = format!("{} does not apply to servers that already run", option[0]);
        assert!(said.contains(&words) && said.contains("hint:"), "{said}");
    }
    let both = [
        "replay",
        capture,
        theirs,
        theirs,
        "--mix",
        "2",
        "--plans-only",
    ];
    assert_eq!(lab.run(&both).status.code(), Some(2));
}
