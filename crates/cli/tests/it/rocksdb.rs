//! `deltabench rocksdb`: a whole run, a kill, an interrupt, a library that crashes, and what is refused.
//!
//! Libraries come from `DELTABENCH_TEST_ROCKSDB`, oldest first, else from the cache.

use crate::lab::{Lab, text};
use serde_json::Value;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// Enough to go through every part, far too little for a verdict.
const TINY: [&str; 10] = [
    "--keys",
    "20k",
    "--value-bytes",
    "100",
    "--blocks",
    "2",
    "--slice-ms",
    "20",
    "--seed",
    "5",
];

/// The libraries to test with, oldest first.
pub fn libraries() -> Vec<String> {
    let listed = std::env::var_os("DELTABENCH_TEST_ROCKSDB").unwrap_or_default();
    let files: Vec<String> = std::env::split_paths(&listed)
        .filter(|path| !path.as_os_str().is_empty())
        .map(|path| format!("rocksdb:path:{}", path.display()))
        .collect();
    match files.as_slice() {
        [] => ["rocksdb:6.29.5", "rocksdb:7.10.2", "rocksdb:10.2.1"]
            .map(str::to_owned)
            .to_vec(),
        _ => files,
    }
}

/// The oldest against the newest, with these steps of so many seconds.
fn arguments<'a>(
    libraries: &'a [String],
    (steps, seconds): (&'a str, &'a str),
    more: &[&'a str],
) -> Vec<&'a str> {
    let (first, last) = (&libraries[0], &libraries[libraries.len() - 1]);
    let mut arguments = vec![
        "rocksdb",
        first,
        last,
        "--steps",
        steps,
        "--seconds",
        seconds,
    ];
    arguments.extend(TINY);
    arguments.extend(more);
    arguments
}

fn query<T: rusqlite::types::FromSql>(lab: &Lab, sql: &str) -> Vec<T> {
    let store = rusqlite::Connection::open(lab.path().join("lab/deltabench.sqlite")).unwrap();
    let mut query = store.prepare(sql).unwrap();
    let rows = query.query_map([], |row| row.get(0)).unwrap();
    rows.map(Result::unwrap).collect()
}

fn visits(lab: &Lab) -> i64 {
    query(lab, "select count(*) from visit")[0]
}

fn send(pid: u32, signal: &str) -> bool {
    let mut kill = Command::new("kill");
    kill.args([signal, &pid.to_string()])
        .status()
        .unwrap()
        .success()
}

/// Waits until visits have been stored.
fn wait_for_visits(lab: &Lab, child: &mut Child, wanted: i64) {
    let limit = Instant::now() + Duration::from_secs(120);
    while !lab.path().join("lab/deltabench.sqlite").exists() || visits_if_any(lab) < wanted {
        let ended = child.try_wait().unwrap();
        let said = std::fs::read_to_string(lab.path().join("stderr")).unwrap();
        assert!(ended.is_none(), "ended with {ended:?}:\n{said}");
        assert!(Instant::now() < limit, "no visit in time:\n{said}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The tables may not have been made yet.
fn visits_if_any(lab: &Lab) -> i64 {
    let store = rusqlite::Connection::open(lab.path().join("lab/deltabench.sqlite")).unwrap();
    let count = store.query_row("select count(*) from visit", [], |row| row.get(0));
    count.unwrap_or(0)
}

fn is_clean(lab: &Lab) -> bool {
    lab.servers().is_empty() && lab.workspaces().is_empty()
}

#[test]
fn versions_are_compared_in_every_cell_and_nothing_is_left() {
    let (lab, libraries) = (Lab::new(), libraries());
    let steps = "fillseq,drain,readrandom,overwritesome,flush_mt_l0,overwriteandwait";
    let output = lab.run(&arguments(
        &libraries,
        (steps, "1"),
        &["--candidate-option", "max_open_files=500"],
    ));
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    let report = lab.report();
    let cells = report["cells"].as_array().unwrap();
    let names: Vec<&str> = cells
        .iter()
        .map(|cell| cell["workload"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["fillseq", "readrandom", "overwriteandwait"]);
    for cell in cells {
        assert_eq!(cell["blocks"], 2, "{cell}");
        assert!(
            cell["verdict"].is_string() && cell["metrics"]["throughput"]["verdict"].is_string(),
            "{cell}"
        );
    }
    assert_eq!(visits(&lab), 2 * 3);
    let loaded: Vec<i64> = query(
        &lab,
        "select sum(operations) from slice where cell = 0 group by block, server",
    );
    assert_eq!(loaded, [20_000; 6], "every database has all keys");
    let apart: Vec<i64> = query(
        &lab,
        "select count(distinct operations) from slice where cell = 1 group by block, round",
    );
    assert!(
        apart.iter().all(|different| *different == 1),
        "the same work in a round"
    );
    let idle: Vec<Option<i64>> = query(&lab, "select max(idle_cpu_ns) from slice");
    assert_eq!(idle, [Some(0)], "whoever is frozen uses no CPU");
    let of_engines: Vec<i64> = query(
        &lab,
        "select count(*) from fact where kind in ('engine', 'settings', 'build')",
    );
    assert_eq!(of_engines, [3 * 3]);
    let settings: Vec<String> = query(
        &lab,
        "select value from fact where kind = 'settings' order by server desc limit 1",
    );
    let settings: Value = serde_json::from_str(&settings[0]).unwrap();
    let asked = settings.as_array().unwrap().iter().find(|setting| {
        setting["name"]
            .as_str()
            .unwrap()
            .ends_with("max_open_files")
    });
    assert_eq!(asked.unwrap()["value"], "500");
    assert_eq!(asked.unwrap()["source"], "asked");
    let counters: Vec<i64> = query(&lab, "select count(*) from visit_counters");
    assert_eq!(counters, [3 * 3 * 2]);
    assert!(is_clean(&lab));
    let confirm = lab.run(&["confirm", "last"]);
    assert_eq!(confirm.status.code(), Some(2), "{}", text(&confirm.stderr));
}

#[test]
fn block_caches_of_one_version_are_compared_beside_a_writer() {
    let (lab, libraries) = (Lab::new(), libraries());
    let newest = libraries.last().unwrap();
    let mut arguments = vec!["rocksdb", newest, "--block-cache", "lru,hyper-clock"];
    arguments.extend(["--steps", "fillseq,readwhilewriting", "--seconds", "1"]);
    arguments.extend(["--no-placebo"]);
    arguments.extend(TINY);
    let output = lab.run(&arguments);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    let report = lab.report();
    let cells: Vec<(&str, i64)> = report["cells"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cell| {
            let name = cell["workload"].as_str().unwrap();
            (name, cell["blocks"].as_i64().unwrap())
        })
        .collect();
    assert_eq!(cells, [("fillseq", 2), ("readwhilewriting", 2)]);
    let counted: Vec<String> = query(&lab, "select counters from visit_counters where cell = 1");
    assert_eq!(counted.len(), 2 * 2);
    for counters in &counted {
        let counters: Value = serde_json::from_str(counters).unwrap();
        assert!(
            counters["block_cache_hits"].as_f64().unwrap() > 0.0,
            "{counters}"
        );
        assert!(
            counters["ingest_bytes"].as_f64().unwrap() > 0.0,
            "a writer has written: {counters}"
        );
    }
    let facts: Vec<String> = query(
        &lab,
        "select value from fact where kind = 'engine' order by server",
    );
    let caches: Vec<String> = facts
        .iter()
        .map(|fact| serde_json::from_str::<Value>(fact).unwrap()["cache"].to_string())
        .collect();
    let [lru, clock] = caches.as_slice() else {
        panic!("{caches:?}");
    };
    assert!(lru.contains("lru"), "{caches:?}");
    assert!(clock.to_lowercase().contains("hyper"), "{caches:?}");
    assert!(is_clean(&lab));
}

/// Waits until facts of the host are stored, and engines are about to start.
fn wait_for_the_host(lab: &Lab, child: &mut Child) {
    let stored = || {
        let place = lab.path().join("lab/deltabench.sqlite");
        let store = place
            .exists()
            .then(|| rusqlite::Connection::open(place).unwrap());
        let count = |store: rusqlite::Connection| {
            let count = "select count(*) from fact where kind = 'host'";
            store.query_row(count, [], |row| row.get::<_, i64>(0)).ok()
        };
        store.and_then(count).unwrap_or(0) > 0
    };
    let limit = Instant::now() + Duration::from_secs(120);
    while !stored() {
        assert!(child.try_wait().unwrap().is_none() && Instant::now() < limit);
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn kill(lab: &Lab, child: &mut Child) {
    assert!(send(child.id(), "-9"));
    child.wait().unwrap();
    lab.wait_until_no_servers();
}

#[test]
fn a_killed_run_goes_through_its_block_again_and_keeps_what_it_had() {
    let (lab, libraries) = (Lab::new(), libraries());
    let steps = "fillseq,drain,readrandom";
    let mut child = lab.start(&arguments(&libraries, (steps, "1"), &["--no-placebo"]));
    wait_for_the_host(&lab, &mut child);
    kill(&lab, &mut child);
    let mut child = lab.start(&["resume", "last"]);
    wait_for_visits(&lab, &mut child, 1);
    kill(&lab, &mut child);
    let before: Vec<i64> = query(&lab, "select started_ns from slice order by id");
    assert!(!before.is_empty());
    let output = lab.run(&["resume", "last"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("an interrupted block again"), "{said}");
    let after: Vec<i64> = query(&lab, "select started_ns from slice order by id");
    assert!(
        after.starts_with(&before),
        "what is stored stays and is not measured again"
    );
    assert_eq!(visits(&lab), 2 * 2);
    let loads: Vec<i64> = query(
        &lab,
        "select count(*) from slice where cell = 0 group by block, server",
    );
    assert_eq!(loads, [1; 2 * 2], "a load that is repeated is stored once");
    let prepared: Vec<i64> = query(
        &lab,
        "select count(*) from fact where kind = 'prepared' group by block, server",
    );
    assert_eq!(prepared, [1; 2 * 2], "so is what is not measured");
    let findings: Vec<i64> = query(
        &lab,
        "select count(*) from finding where kind like 'options-only-%' group by text",
    );
    assert!(
        !findings.is_empty() && findings.iter().all(|times| *times == 1),
        "what engines say is told once, however early the first kill came: {findings:?}"
    );
    assert!(is_clean(&lab));
}

#[test]
fn an_interrupt_is_heard_within_a_second_or_so_and_leaves_nothing() {
    let (lab, libraries) = (Lab::new(), libraries());
    let steps = "fillseq,drain,readrandom";
    let mut child = lab.start(&arguments(&libraries, (steps, "300"), &[]));
    wait_for_visits(&lab, &mut child, 1);
    let began = Instant::now();
    assert!(send(child.id(), "-INT"));
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(130));
    // Far more than it takes, because another test may have the cores, and far less than a step does.
    assert!(began.elapsed() < Duration::from_secs(100));
    assert!(is_clean(&lab));
    assert_eq!(visits(&lab), 1);
}

/// Ends a worker.
fn crash(lab: &Lab, signal: &str) {
    let crashed = lab.servers()[0];
    // The runtime of the worker takes the first fault for a guard page.
    let limit = Instant::now() + Duration::from_secs(120);
    while lab.servers().contains(&crashed) && send(crashed, signal) {
        assert!(Instant::now() < limit, "it does not end");
        std::thread::sleep(Duration::from_millis(30));
    }
}

#[test]
fn steps_before_one_that_always_crashes_have_their_values() {
    let (lab, libraries) = (Lab::new(), libraries());
    let steps = "fillseq,readrandom,multireadrandom";
    let more = ["--no-placebo", "--blocks", "5"];
    let mut asked = arguments(&libraries, (steps, "2"), &[]);
    let place = asked.iter().position(|word| *word == "--blocks").unwrap();
    asked.drain(place..place + 2);
    asked.extend(more);
    let mut child = lab.start(&asked);
    for (block, signal) in (0..).zip(["-SEGV", "-KILL", "-KILL"]) {
        // Each block has three visits when it is given up: the next is that of its load.
        wait_for_visits(&lab, &mut child, 3 * block + 1);
        crash(&lab, signal);
    }
    let status = child.wait().unwrap();
    let said = std::fs::read_to_string(lab.path().join("stderr")).unwrap();
    assert_eq!(status.code(), Some(5), "{said}");
    for words in [
        "signal 11 (segmentation fault)",
        "signal 9 (killed)",
        "deltabench skips the rest of this block",
        "engines were lost 3 times",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(!said.contains("memory limit"), "{said}");
    assert!(!said.contains("an interrupted block again"), "{said}");
    let lost: Vec<String> = query(&lab, "select text from finding where kind = 'server-lost'");
    assert_eq!(lost.len(), 3, "{lost:?}");
    let loads = "select count(*) from slice where cell = 0 and void is null";
    assert_eq!(query::<i64>(&lab, loads), [3 * 2]);
    let last = "select count(*) from slice where cell = 2";
    assert_eq!(query::<i64>(&lab, last), [0]);
    assert_eq!(visits(&lab), 3 * 3, "nothing of these blocks is left to do");
    let report = lab.report();
    assert_eq!(report["cells"][0]["workload"], "fillseq");
    assert_eq!(report["cells"][0]["blocks"], 3);
    assert!(is_clean(&lab));
}

#[test]
fn what_cannot_be_measured_is_refused_before_anything_is_fetched_or_started() {
    let lab = Lab::new();
    for (arguments, said) in [
        (
            &["compare", "postgres:18", "rocksdb:99.1.1"][..],
            "deltabench rocksdb",
        ),
        (
            &["insert", "rocksdb:99.1.1", "postgres:18"],
            "deltabench rocksdb",
        ),
        (
            &["pgbench", "rocksdb:99.1.1", "rocksdb:99.1.2"],
            "deltabench rocksdb",
        ),
        (
            &["rocksdb", "postgres:18", "rocksdb:99.1.1"],
            "is not RocksDB",
        ),
        (
            &["rocksdb", "rocksdb:99.1.1", "db_bench:/nowhere"],
            "cannot be compared",
        ),
        (
            &["rocksdb", "99.1.1", "99.1.2", "--keys", "10"],
            "--keys 1000",
        ),
        (
            &["rocksdb", "99.1.1", "99.1.2", "--steps", "readrandom"],
            "fillseq",
        ),
        (
            &[
                "rocksdb",
                "99.1.1",
                "99.1.2",
                "--steps",
                "fillseq,overwritesome,drain",
            ],
            "cannot come after",
        ),
        (
            &["rocksdb", "99.1.1", "99.1.2", "--threads", "0"],
            "--threads",
        ),
        (
            &["rocksdb", "99.1.1", "99.1.2", "--blocks", "0"],
            "zero blocks",
        ),
        (
            &[
                "rocksdb",
                "99.1.1",
                "99.1.2",
                "--option",
                "block_based_table_factory.no_block_cache=true",
            ],
            "cannot be chosen",
        ),
    ] {
        let output = lab.run(arguments);
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        assert!(errors.contains(said), "{arguments:?}: {errors}");
    }
    // A plan needs no library.
    let output = lab.run(&["rocksdb", "99.1.1", "99.1.2", "--quick", "--dry-run"]);
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    assert!(text(&output.stdout).contains("rocksdb:99.1.2"));
    assert!(lab.workspaces().is_empty());
}
