//! `deltabench bisect` over real servers: a step between two releases, with one in the middle that does not
//! run.

use crate::counting::untested;
use crate::lab::{Lab, TINY, join, signal, text};
use crate::schema::breaches;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;

/// A tree that says it is a server, and fails as soon as a cluster is made.
fn broken(directory: &Path) -> String {
    let bin = directory.join("broken/bin");
    std::fs::create_dir_all(&bin).unwrap();
    for (name, script) in [
        ("postgres", "echo 'postgres (PostgreSQL) 17.99'"),
        ("initdb", "echo 'initdb: no cluster today' >&2; exit 1"),
    ] {
        let path = bin.join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    format!("path:{}", directory.join("broken").display())
}

/// Where the tree of a release is.
pub fn prebuilt(lab: &Lab, release: &str) -> PathBuf {
    let fetched = text(&lab.run(&["fetch", release]).stdout);
    let bin = fetched.split('\t').nth(1).unwrap();
    Path::new(bin).parent().unwrap().to_owned()
}

/// The tree of a release, as a target of its own.
fn tree(lab: &Lab, release: &str) -> String {
    format!("path:{}", prebuilt(lab, release).display())
}

pub fn answer(output: &Output) -> Value {
    let schema = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/bisection.schema.json"
    );
    let schema: Value = serde_json::from_slice(&std::fs::read(schema).unwrap()).unwrap();
    let said = text(&output.stderr);
    let answer: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
    assert_eq!(breaches(&schema, &answer), [""; 0]);
    answer
}

pub const OPTIONS: [&str; 6] = [
    "--only",
    "point-query",
    "--rows",
    "1000",
    "--huge-pages",
    "off",
];

#[test]
fn a_step_behind_a_server_that_does_not_run_is_one_of_two_and_a_killed_search_goes_on() {
    if untested() {
        return;
    }
    let lab = Lab::new();
    let (old, new) = (tree(&lab, "postgres:17"), tree(&lab, "postgres:18"));
    let base = lab.path().join("base");
    let found = prebuilt(&lab, "postgres:17");
    let base_is_here = || std::os::unix::fs::symlink(&found, &base).unwrap();
    base_is_here();
    let points = [
        &format!("path:{}", base.display()),
        &old,
        &broken(lab.path()),
        &new,
        "postgres:18",
    ];
    let command = [&["bisect", "--count-only"][..], &points, &OPTIONS].concat();
    // The ends are counted, and then the time is up: as the report says later.
    let short = lab.run(&[&command[..], &["--budget", "1s", "--json", "-"]].concat());
    assert_eq!(short.status.code(), Some(3), "{}", text(&short.stderr));
    let ends = answer(&short);
    assert_eq!(ends["end"], "undecided");
    assert_eq!(lab.report()["end"], "undecided");
    assert_eq!(ends["looks"].as_array().unwrap().len(), 2);
    let told = text(&lab.run(&["report", "last"]).stdout);
    assert!(
        told.contains("the same command with a larger --budget"),
        "{told}"
    );
    // Without its base the search ends, and no point is blamed.
    std::fs::remove_file(&base).unwrap();
    let without_base = lab.run(&["resume", "last"]);
    let said = text(&without_base.stderr);
    assert_eq!(without_base.status.code(), Some(5), "{said}");
    assert!(said.contains("goes on"), "{said}");
    assert_eq!(lab.report()["looks"], ends["looks"]);
    base_is_here();
    let mut child = lab.start(&command);
    lab.wait_for(&mut child, "look  1");
    child.kill().unwrap();
    child.wait().unwrap();
    lab.wait_until_no_servers();
    let killed = lab.report();
    let killed = killed["looks"].as_array().unwrap();
    assert_eq!(killed[..2], ends["looks"].as_array().unwrap()[..]);
    assert!(killed.len() > 2, "the first look is stored when it is told");
    let output = lab.run(&["resume", "last", "--json", "-"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(
        answer(&output)["looks"].as_array().unwrap()[..killed.len()],
        killed[..],
        "what is known is not measured again"
    );
    assert!(lab.servers().is_empty() && lab.workspaces().is_empty());
    let found = answer(&output);
    // 17 and 18 differ by more than a percent, built as they are.
    assert!(found["change"].as_f64().unwrap().abs() > 0.01, "{found:#}");
    let [culprit] = found["culprits"].as_array().unwrap().as_slice() else {
        panic!("{found:#}")
    };
    let one_of: Vec<&str> = culprit["one_of"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["target"].as_str().unwrap())
        .collect();
    assert_eq!(one_of, points[2..4], "the broken one is not blamed alone");
    assert_eq!(culprit["parent"]["target"], points[1]);
    assert!(
        culprit["one_of"][0]["skipped"]
            .as_str()
            .unwrap()
            .starts_with("does not run: ")
    );
    assert!(!culprit["functions"].as_array().unwrap().is_empty());
    let outcomes: Vec<&str> = found["looks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|look| look["outcome"].as_str().unwrap())
        .collect();
    assert_eq!(outcomes[..3], ["counted", "counted", "skipped"]);
    assert!(
        outcomes[3..].iter().all(|outcome| *outcome == "same"),
        "{outcomes:?}"
    );

    // Everything is known: the same command measures nothing, nor does a report.
    let again = lab.run(&[&command[..], &["--json", "-"]].concat());
    assert!(
        text(&again.stderr).contains("continuing bisect-"),
        "{}",
        text(&again.stderr)
    );
    assert_eq!(answer(&again)["looks"], found["looks"]);
    assert_eq!(lab.report()["culprits"], found["culprits"]);
    let table = text(&lab.run(&["report", "last"]).stdout);
    assert!(table.contains("one of these 2"), "{table}");
    let page = text(&lab.run(&["report", "last", "--format", "html"]).stdout);
    let name = found["name"].as_str().unwrap();
    let kept = lab.path().join(format!("lab/{name}.html"));
    assert_eq!(page.trim(), std::fs::read_to_string(kept).unwrap().trim());
    assert_eq!(page.matches("<tr id=\"look-").count(), outcomes.len());
    let listed = text(&lab.run(&["list"]).stdout);
    assert!(
        listed
            .lines()
            .any(|line| line.starts_with("bisect-") && line.contains("5 points")),
        "{listed}"
    );
}

#[test]
fn a_server_against_itself_is_nothing_to_bisect_and_last_is_a_run() {
    if untested() {
        return;
    }
    let lab = Lab::new();
    // Two blocks say nothing, and are a run between two releases.
    let compare = [
        "compare",
        "postgres:17",
        "postgres:18",
        "--only",
        "point-query",
        "--blocks",
        "2",
    ];
    let compared = lab.run(&join(&compare, &TINY));
    assert_ne!(
        compared.status.code(),
        Some(2),
        "{}",
        text(&compared.stderr)
    );
    let same = tree(&lab, "postgres:17");
    let command = [
        &["bisect", "postgres:17", &same, "--json", "-"][..],
        &OPTIONS,
    ]
    .concat();
    let output = lab.run(&command);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert_eq!(answer(&output)["end"], "same-server");
    let report = lab.run(&["report", "last", "--format", "json"]);
    assert_eq!(report.status.code(), Some(3), "as the search ended");
    assert_eq!(answer(&report), answer(&output));
    let html = lab.run(&["resume", "last", "--html", "x.html"]);
    assert_eq!(html.status.code(), Some(3), "{}", text(&html.stderr));
    let page = std::fs::read_to_string(lab.path().join("x.html")).unwrap();
    assert!(page.contains("both ends are the same server"), "{page}");
    let other = lab.run(&["report", "last", "--format", "csv"]);
    assert_eq!(other.status.code(), Some(2));
    assert!(text(&other.stderr).contains("three forms"));

    // The newest thing in the lab is a bisection; the last run is the comparison still.
    let bisect = ["bisect", "last", "--cell", "point-query"];
    let again = lab.run(&join(&bisect, &["--dry-run"]));
    assert_eq!(again.status.code(), Some(0), "{}", text(&again.stderr));
    let rows = lab.run(&join(&bisect, &["--rows", "1000"]));
    assert_eq!(rows.status.code(), Some(2));
    assert!(text(&rows.stderr).contains("--rows is for a range"));
}

#[test]
fn a_look_waits_for_another_command_of_the_lab() {
    if untested() {
        return;
    }
    let lab = Lab::new();
    let (old, new) = (tree(&lab, "postgres:17"), tree(&lab, "postgres:18"));
    std::fs::create_dir_all(lab.path().join("lab")).unwrap();
    let lock = std::fs::File::create(lab.path().join("lab/run.lock")).unwrap();
    lock.lock().unwrap();
    let command = [&["bisect", &old, &new][..], &OPTIONS].concat();
    let mut child = lab.start(&command);
    lab.wait_for(&mut child, "waiting: ");
    signal(child.id(), "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(lab.servers().is_empty() && lab.workspaces().is_empty());
}
