//! The times of `deltabench replay` on real servers, with the shop of `examples/replay`.

use crate::lab::{Lab, join, text};
use crate::replaying::{SECRET, answer, holding, prepared, shop};
use deltabench_capture::Capture;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Six blocks of two statements.
const SHORT: [&str; 6] = ["--blocks", "6", "--budget", "60s", "--draws", "1"];

/// Orders of 64 customers, which an index finds, and customers by a column without one.
fn capture(lab: &Lab) -> PathBuf {
    let values = |number: u32| vec![(number + 1).to_string(), "2026-01-01".to_owned()];
    let customers: Vec<Vec<String>> = (0..64).map(values).collect();
    let sql = "SELECT total FROM orders WHERE customer_id = $1 AND at > $2";
    let by_customer = prepared("by_customer", sql, &customers);
    let names = [vec![SECRET.to_owned()], vec!["Customer 3".to_owned()]];
    let sql = "SELECT id FROM customers WHERE name = $1 OR city = 'secret-customer-77'";
    let mut by_name = prepared("by_name", sql, &names);
    // None of them may be there.
    by_name.rows = None;
    let capture = Capture {
        statements: vec![by_customer, by_name],
        ..Capture::default()
    };
    let path = lab.path().join("shop.capture");
    capture.write(&path).unwrap();
    path
}

/// The only run of a lab.
fn name(lab: &Path) -> String {
    let mut files = std::fs::read_dir(lab)
        .unwrap()
        .map(|file| file.unwrap().path());
    let json = files.find(|path| path.extension().is_some_and(|end| end == "json"));
    json.unwrap()
        .file_stem()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned()
}

fn time<'a>(answer: &'a Value, id: &str) -> &'a Value {
    let statements = answer["statements"].as_array().unwrap();
    let statement = statements.iter().find(|one| one["id"] == id).unwrap();
    &statement["verdicts"][0]["time"]
}

#[test]
fn a_statement_that_loses_its_index_is_slower_by_its_share_of_the_workload() {
    let lab = Lab::new();
    let (dump, capture) = (shop(&lab), capture(&lab));
    let replay = [
        "replay",
        capture.to_str().unwrap(),
        "postgres:18",
        "postgres:18",
        "--data",
        dump.to_str().unwrap(),
        "--candidate-set",
        "enable_indexscan=off",
        "--candidate-set",
        "enable_bitmapscan=off",
        "--json",
        "-",
    ];
    let output = lab.run(&join(&replay, &SHORT));
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(lab.servers().is_empty() && lab.workspaces().is_empty());
    let answer = answer(&output);
    let slower = time(&answer, "by_customer");
    assert_eq!(slower["verdict"], "slower", "{answer}");
    assert!(slower["ratio"]["low"].as_f64().unwrap() > 1.5, "{slower}");
    let (impact, ratio) = (&slower["impact"]["estimate"], &slower["ratio"]["estimate"]);
    let half = 0.5 * (ratio.as_f64().unwrap() - 1.0);
    assert!(
        (impact.as_f64().unwrap() - half).abs() < 1e-9,
        "its share is a half"
    );
    assert_ne!(time(&answer, "by_name")["verdict"], "slower");
    let times = &answer["times"];
    assert_eq!(
        (&times["blocks"], &times["statements"]),
        (&6.into(), &2.into())
    );
    assert_eq!(times["share"], 1.0, "{answer}");
    assert_eq!(times["workload"][0]["verdict"], "slower");
    assert!(times["placebo"]["ratio"]["estimate"].as_f64().unwrap() < 1.5);
    // Neither the store nor a report has a value.
    assert_eq!(
        holding(&lab.path().join("lab"), SECRET),
        [""; 0].map(PathBuf::from)
    );
    assert!(!said.contains(SECRET) && !text(&output.stdout).contains(SECRET));
    let again = lab.run(&["report", "last"]);
    let report = text(&again.stdout);
    assert_eq!(again.status.code(), Some(1), "{}", text(&again.stderr));
    assert!(report.contains("server time of the workload (100.0 % of the captured time) +"));
    let line = report
        .lines()
        .find(|line| line.starts_with("▼ by_customer"));
    assert!(
        line.is_some_and(|line| line.contains("changed")),
        "{report}"
    );
}

#[test]
fn a_replay_that_is_killed_in_a_block_goes_on_there() {
    let lab = Lab::new();
    let (dump, capture) = (shop(&lab), capture(&lab));
    let replay = [
        "replay",
        capture.to_str().unwrap(),
        "postgres:18",
        "postgres:18",
        "--data",
        dump.to_str().unwrap(),
    ];
    let mut child = lab.start(&join(&replay, &SHORT));
    lab.wait_for(&mut child, "block 2/6");
    child.kill().unwrap();
    child.wait().unwrap();
    lab.wait_until_no_servers();
    let name = name(&lab.path().join("lab"));
    let half = lab.run(&["report", &name, "--format", "json"]);
    let blocks = &answer(&half)["times"]["blocks"];
    assert!(
        blocks.as_u64().unwrap() >= 2,
        "what was measured is there: {blocks}"
    );
    let output = lab.run(&["resume", &name, "--json", "-"]);
    let said = text(&output.stderr);
    assert!(said.contains("visits of servers are done"), "{said}");
    let whole = answer(&output);
    assert_eq!(whole["times"]["blocks"], 6);
    for id in ["by_customer", "by_name"] {
        assert_eq!(time(&whole, id)["blocks"], 6, "{whole}");
    }
    assert!(lab.servers().is_empty() && lab.workspaces().is_empty());
    std::fs::write(&dump, "SELECT 1;").unwrap();
    let finished = lab.run(&["resume", &name]);
    assert!(
        text(&finished.stderr).contains("is finished"),
        "{}",
        text(&finished.stderr)
    );
}
