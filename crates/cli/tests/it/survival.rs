//! Kills, interrupts and dying servers: nothing measured is lost, nothing is left behind.

use crate::lab::{Lab, TINY, join, signal, text};
use std::collections::HashSet;
use std::os::unix::fs::PermissionsExt;
use std::process::Child;

const RUN: [&str; 12] = [
    "compare",
    "postgres:14",
    "postgres:18",
    "--blocks",
    "2",
    "--only",
    "point-query,update-index",
    "--seed",
    "11",
    "--clients",
    "1,2",
    "--no-pilot",
];

fn slices(lab: &Lab) -> Vec<(i64, i64, i64)> {
    let store = rusqlite::Connection::open(lab.path().join("lab/deltabench.sqlite")).unwrap();
    let mut query = store
        .prepare("SELECT block, cell, started_ns FROM slice ORDER BY started_ns")
        .unwrap();
    let rows = query
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .unwrap();
    rows.map(Result::unwrap).collect()
}

/// Visits that have slices. Not the blocks of a report: one in which other load left too few rounds does not
/// count there.
fn visited(lab: &Lab) -> usize {
    let visits: HashSet<(i64, i64)> = slices(lab)
        .iter()
        .map(|(block, cell, _)| (*block, *cell))
        .collect();
    visits.len()
}

fn finish(lab: &Lab) {
    let output = lab.run(&["resume", "last", "--huge-pages", "off"]);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    let report = lab.report();
    let cells = report["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 4);
    assert_eq!(visited(lab), 4 * 2);
    assert!(lab.servers().is_empty() && lab.workspaces().is_empty());
}

#[test]
fn a_cluster_dir_that_cannot_be_used_is_refused_before_anything_is_made() {
    let lab = Lab::new();
    let place = |name: &str| lab.path().join(name);
    std::fs::write(place("file"), "").unwrap();
    std::fs::create_dir(place("open")).unwrap();
    std::fs::set_permissions(place("open"), std::fs::Permissions::from_mode(0o1777)).unwrap();
    std::fs::write(place("t.dump"), "CREATE TABLE t (a int);\n").unwrap();
    std::fs::write(place("q.sql"), "SELECT a FROM t;\n").unwrap();
    let replay = "replay q.sql postgres:17 postgres:18 --plans-only --data t.dump";
    for arguments in ["compare postgres:17 postgres:18", replay] {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        for (name, why) in [
            ("file", "it is not a directory"),
            ("file/below", "file is not a directory"),
            ("open", "others can write to it"),
        ] {
            let refused = lab.command_in(&place(name), &arguments).output().unwrap();
            let said = text(&refused.stderr);
            assert_eq!(refused.status.code(), Some(2), "{name}: {said}");
            assert!(
                said.contains(why) && said.contains("hint:"),
                "{name}: {said}"
            );
        }
    }
    // Refused for another reason, after its place was found good.
    let missing: Vec<&str> = "compare path:/nowhere postgres:18".split(' ').collect();
    let refused = lab
        .command_in(&place("new/one"), &missing)
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    assert!(!place("new").exists());
}

fn started(lab: &Lab) -> Child {
    let mut child = lab.start(&join(&RUN, &TINY));
    lab.wait_for(&mut child, "block 1/2");
    child
}

#[test]
fn a_killed_run_goes_on_where_it_was_and_its_servers_die_with_it() {
    let lab = Lab::new();
    let mut child = started(&lab);
    child.kill().unwrap();
    child.wait().unwrap();
    lab.wait_until_no_servers();
    let before = slices(&lab);
    assert!(
        before.iter().any(|(block, _, _)| *block == 0),
        "block 1 was durable when it was reported"
    );
    finish(&lab);
    let after = slices(&lab);
    assert_eq!(
        &after[..before.len()],
        &before[..],
        "what was measured before the kill is untouched"
    );
    assert!(after.len() > before.len());
}

/// Whether a process is stopped.
fn is_stopped(pid: &u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ")
        .next()
        .is_some_and(|rest| rest.starts_with('T'))
}

#[test]
fn processes_that_wait_for_their_turn_in_a_long_operation_die_with_a_killed_run() {
    let lab = Lab::new();
    let arguments = [
        "compare",
        "postgres:14",
        "postgres:18",
        "--blocks",
        "2",
        "--only",
        "scan",
        "--rows",
        "100k",
        "--slice-ms",
        "2",
        "--visit-seconds",
        "60",
        "--huge-pages",
        "off",
        "--no-pilot",
    ];
    let mut child = lab.start(&arguments);
    let limit = std::time::Instant::now() + std::time::Duration::from_secs(120);
    while !lab.servers().iter().any(is_stopped) {
        assert!(
            std::time::Instant::now() < limit,
            "no server waits for its turn"
        );
        assert!(child.try_wait().unwrap().is_none(), "the run is over");
    }
    child.kill().unwrap();
    child.wait().unwrap();
    lab.wait_until_no_servers();
}

#[test]
fn nobody_else_can_go_on_with_a_run_on_its_way_and_an_interrupt_cleans_up_at_once() {
    let lab = Lab::new();
    let mut child = started(&lab);
    let output = lab.run(&["resume", "last", "--huge-pages", "off"]);
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("error:"), "{errors}");
    signal(child.id(), "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(lab.servers().is_empty(), "servers are left");
    assert!(lab.workspaces().is_empty(), "directories are left");
}

/// A server process that serves a connection of the driver, once all three servers have one: in mid-visit.
/// None that sets up: without that one there is no run.
fn backend(lab: &Lab) -> u32 {
    let serves = |pid: &u32| {
        let title = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let sets_up = title.contains("CREATE") || title.contains(" postgres [local]");
        title.contains("deltabench_") && title.contains("[local]") && !sets_up
    };
    let limit = std::time::Instant::now() + std::time::Duration::from_secs(120);
    loop {
        let serving: Vec<u32> = lab.servers().into_iter().filter(serves).collect();
        if serving.len() >= 3 {
            return serving[0];
        }
        assert!(std::time::Instant::now() < limit, "no visit is under way");
    }
}

#[test]
fn a_server_that_dies_in_mid_run_is_told_and_the_run_goes_on() {
    let lab = Lab::new();
    let arguments = [
        "compare",
        "postgres:14",
        "postgres:18",
        "--blocks",
        "4",
        "--only",
        "point-query,update-index",
    ];
    let longer = [
        "--rows",
        "2000",
        "--visit-seconds",
        "0.5",
        "--huge-pages",
        "off",
        "--no-pilot",
    ];
    let mut child = lab.start(&join(&arguments, &longer));
    lab.wait_for(&mut child, "block 1/4");
    // The profile has restart_after_crash off: a killed backend takes its server down.
    signal(backend(&lab), "-KILL");
    let code = child.wait().unwrap().code();
    let said = std::fs::read_to_string(lab.path().join("stderr")).unwrap();
    assert_eq!(code, Some(3), "{said}");
    assert!(
        said.contains("was lost") && said.contains("was terminated by signal 9"),
        "{said}"
    );
    assert!(lab.servers().is_empty() && lab.workspaces().is_empty());
    let report = lab.report();
    let findings = report["fairness"].as_array().unwrap();
    assert!(
        findings
            .iter()
            .any(|finding| finding["kind"] == "server-lost"),
        "{findings:?}"
    );
    assert_eq!(visited(&lab), 2 * 4, "every block was gone through");
}
