//! `deltabench insert`: a run that is killed in the middle of a pass, and what is refused.

use crate::lab::{Lab, text};
use std::process::Command;

/// Enough to go through every part, far too little for a verdict.
const TINY: [&str; 16] = [
    "--rows",
    "2k",
    "--write-rows",
    "1000",
    "--rates",
    "100",
    "--seconds",
    "1",
    "--settle-seconds",
    "1",
    "--passes",
    "2",
    "--huge-pages",
    "off",
    "--set",
    "shared_buffers=64MB",
];

fn steps(lab: &Lab) -> Vec<(u32, u32, u32)> {
    let store = rusqlite::Connection::open(lab.path().join("lab/deltabench.sqlite")).unwrap();
    let mut query = store
        .prepare("SELECT block, server, cell FROM record ORDER BY id")
        .unwrap();
    let rows = query
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .unwrap();
    rows.map(Result::unwrap).collect()
}

#[test]
fn a_run_that_is_killed_in_a_pass_begins_that_pass_again_and_says_it_cannot_tell() {
    let lab = Lab::new();
    let mut arguments = vec!["insert", "postgres:14", "postgres:18", "--seed", "5"];
    arguments.extend(TINY);
    let mut child = lab.start(&arguments);
    lab.wait_for(&mut child, "pass 2/2");
    let killed = Command::new("kill")
        .args(["-9", &child.id().to_string()])
        .status();
    assert!(killed.unwrap().success());
    child.wait().unwrap();
    let before = steps(&lab);
    let complete = before.iter().filter(|(block, ..)| *block == 0).count();
    assert_eq!(complete, 3 * 6);
    let output = lab.run(&["resume", "last", "--huge-pages", "off"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("interrupted passes"), "{said}");
    let after = steps(&lab);
    assert_eq!(after.len(), before.len() + 3 * 6, "the pass is begun again");
    let report = lab.report();
    let cells = report["cells"].as_array().unwrap();
    let names: Vec<&str> = cells
        .iter()
        .map(|cell| cell["workload"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["l.i0", "l.x", "l.i1", "l.i2", "qr100", "qp100"]);
    assert!(cells.iter().all(|cell| cell["blocks"] == 2), "{cells:?}");
    assert!(lab.servers().is_empty() && lab.workspaces().is_empty());
    let confirm = lab.run(&["confirm", "last"]);
    assert_eq!(confirm.status.code(), Some(2), "{}", text(&confirm.stderr));
}

/// In turns all servers are there at once, and all but one are stopped at any time.
#[test]
fn in_turns_a_killed_run_leaves_no_frozen_server_and_its_pass_begins_again() {
    let lab = Lab::new();
    let arguments = [
        "insert",
        "postgres:14",
        "postgres:18",
        "--seed",
        "5",
        "--turns",
        "3",
        "--clients",
        "2",
        "--jobs",
        "2",
        "--steps",
        "l.i0,l.x,l.i1,qr100",
        "--rows",
        "2k",
        "--write-rows",
        "1000",
        "--seconds",
        "2",
        "--settle-seconds",
        "0",
        "--passes",
        "2",
        "--huge-pages",
        "off",
        "--set",
        "shared_buffers=64MB",
    ];
    let mut child = lab.start(&arguments);
    lab.wait_for(&mut child, "pass 2/2");
    assert!(!lab.servers().is_empty());
    child.kill().unwrap();
    child.wait().unwrap();
    lab.wait_until_no_servers();
    let before = steps(&lab);
    let first: Vec<u32> = before.iter().take(3 * 4).map(|(.., cell)| *cell).collect();
    let in_step = [[0; 3], [1; 3], [2; 3], [3; 3]].concat();
    assert_eq!(
        first, in_step,
        "each step on all servers before the next one"
    );
    let output = lab.run(&["resume", "last", "--huge-pages", "off"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(lab.servers().is_empty() && lab.workspaces().is_empty());
    assert_eq!(
        steps(&lab).len(),
        before.len() + 3 * 4,
        "the pass is begun again"
    );
    let report = lab.report();
    let cells = report["cells"].as_array().unwrap();
    assert!(cells.iter().all(|cell| cell["blocks"] == 2), "{cells:?}");
    assert_eq!(report["insert"]["setup"]["turns"], 3);
    let shown = text(&lab.run(&["report", "last"]).stdout);
    assert!(shown.contains("each step in 3 turns"), "{shown}");
    assert_eq!(report["plan"]["client_threads"], 2);
    assert!(shown.contains("2 threads of the client"), "{shown}");
}

#[test]
fn what_makes_no_benchmark_is_refused_before_anything_is_started() {
    let lab = Lab::new();
    for (options, said) in [
        (&["--rows", "100"][..], "--rows 1000"),
        (&["--rows", "many"], "20M"),
        (&["--rates", "110"], "--rates 150"),
        (&["--write-rows", "7"], "--write-rows 250"),
        (&["--steps", "l.x,l.i0"], "begin --steps with l.i0"),
        (&["--steps", "l.i0,l.i1,l.x"], "l.x cannot come after l.i1"),
        (&["--steps", "l.i0,qr100"], "add l.x"),
        (&["--steps", "l.i0,l.y"], "there is no step"),
        (&["--long-transaction", "60"], "60s"),
        (&["--passes", "0"], "zero passes"),
        (&["--turns", "1001"], "--turns 20"),
        (&["--jobs", "0"], "from 1 to 1024"),
        (
            &["--jobs", "2", "--clients", "2", "--shared-table"],
            "leave out --jobs",
        ),
        (&["--clients", "40"], "max_connections"),
        (&["--cache-state", "cold"], "--cache-state"),
        (&["--delta", "90"], "out of range"),
    ] {
        let mut arguments = vec!["insert", "postgres:14", "postgres:18"];
        arguments.extend(options);
        let output = lab.run(&arguments);
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{options:?}: {errors}");
        assert!(errors.contains(said), "{options:?}: {errors}");
    }
    let remote = lab.run(&["insert", "postgres:14", "dsn:postgres://me@nowhere/db"]);
    assert_eq!(remote.status.code(), Some(2));
    assert!(text(&remote.stderr).contains("already runs"));
    assert!(lab.workspaces().is_empty());
}

#[test]
fn a_dry_run_says_how_long_it_takes_and_leaves_nothing() {
    let lab = Lab::new();
    let output = lab.run(&[
        "insert",
        "postgres:14",
        "postgres:18",
        "--quick",
        "--dry-run",
    ]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    for part in [
        "qp1000",
        "400,000",
        "3 on each of 3 servers",
        "min",
        "disk",
        "cannot tell",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let alone = [
        "insert",
        "postgres:14",
        "postgres:18",
        "--quick",
        "--dry-run",
        "--no-placebo",
    ];
    let said = text(&lab.run(&alone).stdout);
    assert!(
        said.contains("2 servers") && said.contains("without a placebo"),
        "{said}"
    );
    assert!(lab.workspaces().is_empty());
}
