//! What an operation cost, on real servers, and what moved.

use crate::lab::{Lab, join, text};
use serde_json::Value;

/// Visits long enough to be much alike: how many full-page images an operation has depends on their length.
const STEADY: [&str; 9] = [
    "--no-count",
    "--rows",
    "20000",
    "--visit-seconds",
    "0.4",
    "--slice-ms",
    "20",
    "--huge-pages",
    "off",
];

/// Visits that are over before they have written every page: then each operation writes a page for the first
/// time, and all of it to the WAL, however many there are on a busy machine.
const FIRST_WRITES: [&str; 9] = [
    "--no-count",
    "--rows",
    "100000",
    "--visit-seconds",
    "0.2",
    "--slice-ms",
    "20",
    "--huge-pages",
    "off",
];

fn run(lab: &Lab, arguments: &[&str], size: &[&str]) -> Value {
    let output = lab.run(&join(arguments, size));
    let errors = text(&output.stderr);
    assert!(
        [0, 1, 3].contains(&output.status.code().unwrap()),
        "{errors}"
    );
    lab.report()
}

/// The cell of a workload against the candidate.
fn cell<'a>(report: &'a Value, workload: &str) -> &'a Value {
    report["cells"]
        .as_array()
        .unwrap()
        .iter()
        .find(|cell| cell["workload"] == workload)
        .unwrap_or_else(|| panic!("no {workload}"))
}

fn cost<'a>(cell: &'a Value, key: &str) -> Option<&'a Value> {
    cell["costs"]
        .as_array()
        .unwrap()
        .iter()
        .find(|cost| cost["key"] == key)
}

/// Both sides of a cost.
fn sides(cell: &Value, key: &str) -> [f64; 2] {
    let found = cost(cell, key).unwrap_or_else(|| panic!("{key} is missing: {}", cell["costs"]));
    ["base", "candidate"].map(|side| found[side].as_f64().unwrap())
}

#[test]
fn what_reads_and_writes_cost_is_counted_on_an_old_and_a_new_server() {
    let lab = Lab::new();
    let report = run(
        &lab,
        &[
            "compare",
            "postgres:14",
            "postgres:18",
            "--blocks",
            "3",
            "--fixed",
            "--no-pilot",
            "--waits",
            "50",
            "--probes",
            "--only",
            "point-query,update-nonindex",
        ],
        &STEADY,
    );
    let (read, write) = (
        cell(&report, "point-query"),
        cell(&report, "update-nonindex"),
    );
    for probed in [read, write] {
        let probes = &probed["metrics"]["throughput"]["probes"];
        let beside = probes["beside"]["ratio"].as_f64().unwrap();
        assert!((0.5..2.0).contains(&beside), "{probes}");
    }
    for side in sides(read, "transactions_per_op") {
        assert!((0.98..1.1).contains(&side), "one transaction each: {side}");
    }
    for side in sides(read, "blocks_hit_per_op") {
        assert!((2.0..10.0).contains(&side), "root to heap: {side}");
    }
    for side in sides(read, "wal_bytes_per_op") {
        assert!(side < 20.0, "a read writes no WAL: {side}");
    }
    for side in sides(write, "updates_per_op") {
        assert!((0.98..1.02).contains(&side), "one row each: {side}");
    }
    let counted = sides(write, "wal_bytes_per_op");
    let positions = sides(write, "wal_lsn_bytes_per_op");
    for (counted, position) in counted.into_iter().zip(positions) {
        assert!(counted > 50.0, "{counted} bytes of WAL for an update");
        // Positions have page heads and what a checkpoint at the edge wrote in them.
        let ratio = position / counted;
        assert!((0.95..1.5).contains(&ratio), "{position} against {counted}");
    }
    let user = sides(write, "user_cpu_us_per_op");
    let system = sides(write, "system_cpu_us_per_op");
    for (user, system) in user.into_iter().zip(system) {
        // Which of the two it is the kernel only samples: on a busy machine one of them may have been missed.
        assert!(user + system > 0.0);
    }
    assert!(
        cost(read, "io_reads_per_op").is_none(),
        "14 has no pg_stat_io: absent, not 0"
    );
    // The series has the host and all three servers, and a mark for each block.
    let marks = report["marks"].as_array().unwrap();
    let blocks = marks.iter().filter(|mark| mark["kind"] == "block").count();
    assert_eq!(blocks, 3, "{marks:?}");
}

#[test]
fn less_wal_is_what_moved_when_it_is_compressed_and_the_candidate_says_why() {
    let lab = Lab::new();
    let report = run(
        &lab,
        &[
            "compare",
            "postgres:14",
            "postgres:14",
            "--candidate-set",
            "wal_compression=on",
            "--blocks",
            "6",
            "--fixed",
            "--no-pilot",
            "--only",
            "update-index",
        ],
        &FIRST_WRITES,
    );
    let cell = cell(&report, "update-index");
    assert!(
        cell["candidate"]
            .as_str()
            .unwrap()
            .contains("wal_compression = on"),
        "{}",
        cell["candidate"]
    );
    let [base, candidate] = sides(cell, "wal_bytes_per_op");
    assert!(candidate < 0.99 * base, "{candidate} of {base} bytes");
    let moved = cell["moved"].as_array().map_or(&[][..], Vec::as_slice);
    assert!(
        moved.iter().any(|moved| moved["key"] == "wal_bytes_per_op"),
        "{moved:?} of {:?}",
        cost(cell, "wal_bytes_per_op")
    );
}
