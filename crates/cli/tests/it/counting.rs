//! `deltabench count` on a real server under valgrind.

use crate::lab::{Lab, TINY, join, signal, text};
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
pub fn untested() -> bool {
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
fn a_count_that_valgrind_cannot_make_is_refused_before_anything_is_fetched() {
    let lab = Lab::new();
    let programs = lab.valgrind("exit 1");
    let targets = ["compare", "path:/nowhere/17", "path:/nowhere/18", "--count"];
    let output = lab
        .command(&targets)
        .env("PATH", &programs)
        .output()
        .unwrap();
    let said = text(&output.stderr);
    assert!(said.contains("valgrind does not run"), "{said}");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_server_counted_against_itself_has_the_same_numbers_and_a_killed_count_leaves_nothing() {
    if untested() {
        return;
    }
    let lab = Lab::new();
    let mut child = lab.start(&COUNT);
    // Not until it has counted a cell: a server needs a quarter of a minute to start under valgrind.
    lab.wait_for(&mut child, "under valgrind");
    lab.wait_for_servers(&mut child);
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
        // 0.000_23 were seen beside other load.
        assert!((ratio - 1.0).abs() < 0.000_5, "{counted}");
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
    let killed = runs.lines().find(|line| line.contains("stopped")).unwrap();
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
fn indexes_are_created_again_only_when_those_before_are_gone() {
    if untested() {
        return;
    }
    let lab = Lab::new();
    let few = [
        "--only", "l.x", "--rows", "1000", "--starts", "1", "--json", "-",
    ];
    let count = [
        "count",
        "postgres:18",
        "postgres:18",
        "--same-target",
        "--insert",
    ];
    let output = lab.run(&join(&count, &few));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let cells = report["cells"].as_array().unwrap();
    let names: Vec<_> = cells
        .iter()
        .map(|cell| cell["workload"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["l.i0", "l.x"]);
    for cell in cells {
        let counted = instructions(cell);
        let ratio = counted["ratio"].as_f64().unwrap();
        let each = counted["base"].as_f64().unwrap();
        assert!((ratio - 1.0).abs() < 0.001, "{counted}");
        assert!((1_000.0..100_000.0).contains(&each), "{counted}");
    }
}

/// A comparison whose count begins and fails: the `valgrind` that it finds knows only its version.
fn compared_without_its_count(lab: &Lab) -> String {
    let programs = lab.valgrind("[ \"$1\" = --version ] && echo valgrind-0.1");
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let compare = ["compare", "postgres:18", "postgres:18", "--same-target"];
    let fixed = [
        "--only",
        "point-query",
        "--blocks",
        "2",
        "--fixed",
        "--no-pilot",
        "--count",
    ];
    let command = &mut lab.command(&join(&join(&compare, &fixed), &TINY[1..]));
    let output = command.env("PATH", path).output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{said}");
    let runs = text(&lab.run(&["list"]).stdout);
    let measured = runs.lines().find(|line| line.contains("finished")).unwrap();
    let run = measured.split(' ').next().unwrap().to_owned();
    assert!(
        said.contains(&format!("`deltabench resume {run}` counts again")),
        "{said}"
    );
    run
}

#[test]
fn the_cells_of_a_comparison_are_counted_when_it_is_resumed() {
    if untested() {
        return;
    }
    let lab = Lab::new();
    let run = compared_without_its_count(&lab);
    let counts = || text(&lab.run(&["list"]).stdout).matches("-count").count();
    assert_eq!(counts(), 1, "the one that failed");
    let explain = ["explain", &run, "--cell", "point-query"];
    // Two restarts do not fit into it, and that is known before the count.
    let refused = lab.run(&join(&explain, &["--sample", "--budget", "1s"]));
    assert_eq!((refused.status.code(), counts()), (Some(2), 1));
    let mut child = lab.start(&explain);
    lab.wait_for(&mut child, ", seed 1");
    signal(child.id(), "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let said = std::fs::read_to_string(lab.path().join("stderr")).unwrap();
    let again = format!(
        "interrupted; `deltabench {}` counts again",
        explain.join(" ")
    );
    assert!(said.contains(&again) && !said.contains("resume"), "{said}");
    let resumed = lab.run(&["resume", &run]);
    let said = text(&resumed.stderr);
    assert!(
        [0, 1, 3].contains(&resumed.status.code().unwrap()),
        "{said}"
    );
    let report = lab.run(&["report", &run, "--format", "json"]);
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    let counted = instructions(&report["cells"][0]);
    let ratio = counted["ratio"].as_f64().unwrap();
    assert!((ratio - 1.0).abs() < 0.000_2, "{counted}");
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
    lab.wait_for(&mut child, "under valgrind");
    lab.wait_for_servers(&mut child);
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
