//! `deltabench insert`: a run that is killed in the middle of a pass, and what is refused.

use crate::lab::{Lab, join, text};
use deltabench_model::finding::{Finding, FindingKind};
use deltabench_store::{RunState, Store};
use serde_json::Value;
use std::process::Command;

/// Enough to go through every part, far too little for a verdict.
const TINY: [&str; 15] = [
    "insert",
    "postgres:14",
    "postgres:18",
    "--seed",
    "5",
    "--rows",
    "2k",
    "--write-rows",
    "1000",
    "--passes",
    "2",
    "--huge-pages",
    "off",
    "--set",
    "shared_buffers=64MB",
];

const RESUME: [&str; 4] = ["resume", "last", "--huge-pages", "off"];

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

/// Starts a run, and kills it in its second pass.
fn killed_in_the_second_pass(lab: &Lab, more: &[&str]) {
    let mut child = lab.start(&join(&TINY, more));
    lab.wait_for(&mut child, "pass 2/2");
    assert!(!lab.servers().is_empty());
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Goes on to the end of the run, which has this many steps on its three servers; its report.
fn resumed(lab: &Lab, steps_of_a_pass: usize) -> Value {
    let before = steps(lab);
    let complete = before.iter().filter(|(block, ..)| *block == 0).count();
    assert_eq!(complete, 3 * steps_of_a_pass);
    let output = lab.run(&RESUME);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("interrupted passes"), "{said}");
    assert!(lab.servers().is_empty() && lab.workspaces().is_empty());
    let again = before.len() + 3 * steps_of_a_pass;
    assert_eq!(steps(lab).len(), again, "the pass is begun again");
    let report = lab.report();
    let cells = report["cells"].as_array().unwrap();
    assert!(cells.iter().all(|cell| cell["blocks"] == 2), "{cells:?}");
    report
}

#[test]
fn a_run_that_is_killed_in_a_pass_begins_that_pass_again_and_says_it_cannot_tell() {
    let lab = Lab::new();
    let short = ["--rates", "100", "--seconds", "1", "--settle-seconds", "1"];
    killed_in_the_second_pass(&lab, &short);
    let report = resumed(&lab, 6);
    let cells = report["cells"].as_array().unwrap().iter();
    let names: Vec<&str> = cells
        .map(|cell| cell["workload"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["l.i0", "l.x", "l.i1", "l.i2", "qr100", "qp100"]);
    let confirm = lab.run(&["confirm", "last"]);
    assert_eq!(confirm.status.code(), Some(2), "{}", text(&confirm.stderr));
}

/// In turns all servers are there at once, and all but one are stopped at any time.
#[test]
fn in_turns_a_run_that_ends_leaves_no_frozen_server_and_its_pass_begins_again() {
    let lab = Lab::new();
    let short = ["--seconds", "2", "--settle-seconds", "0"];
    let threads = ["--clients", "2", "--jobs", "2"];
    let turns = ["--turns", "3", "--steps", "l.i0,l.x,l.i1,qr100"];
    killed_in_the_second_pass(&lab, &join(&join(&turns, &short), &threads));
    lab.wait_until_no_servers();
    terminated_in_the_second_pass(&lab);
    let first = steps(&lab).into_iter().take(3 * 4);
    let in_step = [[0; 3], [1; 3], [2; 3], [3; 3]].concat();
    assert_eq!(
        first.map(|(.., cell)| cell).collect::<Vec<_>>(),
        in_step,
        "each step on all servers before the next one"
    );
    let report = resumed(&lab, 4);
    assert_eq!(report["insert"]["setup"]["turns"], 3);
    let shown = text(&lab.run(&["report", "last"]).stdout);
    assert!(shown.contains("each step in 3 turns"), "{shown}");
    assert_eq!(report["plan"]["client_threads"], 2);
    assert!(shown.contains("2 threads of the client"), "{shown}");
}

/// Whoever ends a job of a cluster sends TERM to all of its processes, the servers first and those too that
/// are frozen. That is no loss of a server.
fn terminated_in_the_second_pass(lab: &Lab) {
    let before = steps(lab).len();
    let mut child = lab.start(&RESUME);
    lab.wait_for(&mut child, "pass 2/2");
    // At once, as a cluster does it: a program for each signal takes so long that deltabench misses a server
    // before its own signal comes. One process may have ended by the signal to its main process.
    let all = lab.servers().into_iter().chain([child.id()]);
    let all: Vec<String> = all.map(|pid| pid.to_string()).collect();
    let _ = Command::new("kill").arg("-TERM").args(&all).status();
    let ended = child.wait().unwrap();
    let said = std::fs::read_to_string(lab.path().join("stderr")).unwrap();
    assert_eq!(ended.code(), Some(130), "{said}");
    assert!(lab.servers().is_empty() && lab.workspaces().is_empty());
    let store = Store::open_existing(&lab.path().join("lab")).unwrap();
    let run = store.runs().unwrap().remove(0);
    assert_eq!(run.state, RunState::Interrupted, "{said}");
    let lost = |one: &Finding| one.kind == FindingKind::ServerLost;
    assert!(
        !store.findings(&run.run).unwrap().iter().any(lost),
        "{said}"
    );
    assert!(steps(lab).len() > before, "a step had ended: {said}");
    let records = store.records(&run.run).unwrap();
    assert!(records.iter().all(|record| record.void.is_none()), "{said}");
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
