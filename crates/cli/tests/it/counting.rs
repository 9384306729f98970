//! `deltabench count` on a real server under valgrind.

use crate::lab::{Lab, join, signal, text};
use crate::rocksdb::libraries;
use serde_json::Value;
use std::path::Path;

/// Shortest useful count.
const COUNT: [&str; 10] = [
    "count",
    "postgres:18",
    "postgres:18",
    "--same-target",
    "--only",
    "point-query,update-index",
    "--rows",
    "2000",
    "--starts",
    "1",
];

/// Whether scripts/test could not get valgrind and says so in its last line. Without that variable a missing
/// valgrind fails the tests.
fn untested() -> bool {
    let untested = std::env::var_os("DELTABENCH_WITHOUT_VALGRIND").is_some();
    assert!(
        untested || Path::new("/usr/bin/valgrind").is_file(),
        "valgrind is not installed: run scripts/install-peers.sh valgrind (as root)"
    );
    untested
}

fn instructions(cell: &Value) -> &Value {
    &cell["metrics"]["instructions_per_op"]
}

#[test]
fn a_server_counted_against_itself_has_the_same_numbers_and_a_killed_count_leaves_nothing() {
    if untested() {
        return;
    }
    let lab = Lab::new();
    let mut child = lab.start(&COUNT);
    lab.wait_for(&mut child, "point-query on");
    assert!(!lab.servers().is_empty());
    child.kill().unwrap();
    child.wait().unwrap();
    lab.wait_until_no_servers();
    let output = lab.run(&join(&COUNT, &["--json", "-"]));
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("removed "), "the killed one is swept: {said}");
    assert!(lab.servers().is_empty() && lab.workspaces().is_empty());
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let cells = report["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 2);
    for cell in cells {
        let counted = instructions(cell);
        let ratio = counted["ratio"].as_f64().unwrap();
        // 17.11 and 18.6, optimised or not, have 40 000 to 130 000.
        let each = counted["base"].as_f64().unwrap();
        assert!((ratio - 1.0).abs() < 0.000_2, "{counted}");
        assert!((10_000.0..1_000_000.0).contains(&each), "{counted}");
        assert_eq!(cell["verdict"], "no-change");
    }
    assert_eq!(lab.report()["cells"], report["cells"], "from the store");
    let table = text(&lab.run(&["report", "last"]).stdout);
    assert!(table.contains("user instructions per operation"), "{table}");
    let output = lab.run(&[
        "explain",
        "last",
        "--cell",
        "point-query",
        "--format",
        "json",
    ]);
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    let explain = &told["cells"][0]["explain"];
    let counted = cells.iter().find(|cell| cell["workload"] == "point-query");
    let counted = instructions(counted.unwrap())["base"].as_f64().unwrap();
    let ratio = explain["base"].as_f64().unwrap() / counted;
    assert!((ratio - 1.0).abs() < 0.01, "{explain}");
    assert!(
        explain["functions"]["all"].as_u64().unwrap() > 100,
        "{explain}"
    );
    let runs = text(&lab.run(&["list"]).stdout);
    let killed = runs.lines().find(|line| line.contains("running")).unwrap();
    let refused = lab.run(&["resume", killed.split(' ').next().unwrap()]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("count again"));
}

#[test]
fn an_interrupted_explanation_explains_nothing() {
    if untested() {
        return;
    }
    let lab = Lab::new();
    let mut child = lab.start(&join(&["explain"], &COUNT[1..6]));
    lab.wait_for(&mut child, ", seed 1");
    signal(child.id(), "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let said = std::fs::read_to_string(lab.path().join("stderr")).unwrap();
    assert!(said.contains("interrupted; count again"), "{said}");
    assert!(lab.servers().is_empty() && lab.workspaces().is_empty());
}

#[test]
fn a_library_counted_against_itself_has_the_same_numbers_and_an_interrupted_count_leaves_nothing() {
    if untested() {
        return;
    }
    let lab = Lab::new();
    let library = libraries().pop().unwrap();
    let count = [
        "count",
        &library,
        &library,
        "--same-target",
        "--starts",
        "1",
    ];
    let count = join(&count, &["--only", "readrandom", "--rows", "10000"]);
    let mut child = lab.start(&count);
    lab.wait_for(&mut child, "fillseq on");
    signal(child.id(), "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(lab.workspaces().is_empty());
    let output = lab.run(&join(&count, &["--json", "-"]));
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(lab.workspaces().is_empty());
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let cells = report["cells"].as_array().unwrap();
    for (cell, (name, each)) in cells.iter().zip([
        ("fillseq", 2_000.0..20_000.0),
        ("readrandom", 5_000.0..60_000.0),
    ]) {
        assert_eq!(cell["workload"], name);
        let counted = instructions(cell);
        let ratio = counted["ratio"].as_f64().unwrap();
        assert!((ratio - 1.0).abs() < 0.005, "{counted}");
        assert!(
            each.contains(&counted["base"].as_f64().unwrap()),
            "{counted}"
        );
    }
    let explained = text(&lab.run(&["explain", "last", "--cell", "readrandom"]).stdout);
    assert!(
        explained.contains("instructions per operation"),
        "{explained}"
    );
    let refused = lab.run(&["count", "rocksdb:10.2.1", "rocksdb:7.10.2", "--all"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("--only names steps"));
}
