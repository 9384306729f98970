//! `deltabench crosscheck`: what sysbench's packaged scripts send, and what the driver sends.

use crate::lab::{Lab, join, text};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Output;

/// Shortest useful comparison.
const TINY: [&str; 7] = [
    "--seconds",
    "0.02",
    "--rows",
    "2000",
    "--huge-pages",
    "off",
    "--cluster-dir",
];

/// Where sysbench is. A missing one fails the test: it is what deltabench is compared with.
fn sysbench() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    std::env::split_paths(&path)
        .map(|directory| directory.join("sysbench"))
        .find(|program| program.is_file())
        .unwrap_or_else(|| {
            panic!("sysbench is not installed: run scripts/install-peers.sh (as root)")
        })
}

/// Whether scripts/test could not get sysbench and says so in its last line. Without that variable a missing
/// sysbench fails the tests.
fn untested() -> bool {
    std::env::var_os("DELTABENCH_WITHOUT_SYSBENCH").is_some()
}

/// The binary with these arguments, and another sysbench if one is given.
fn run(lab: &Lab, arguments: &[&str], path: Option<PathBuf>) -> Output {
    let clusters = lab.clusters();
    let arguments = join(
        &join(&["crosscheck"], arguments),
        &join(&TINY, &[clusters.to_str().unwrap()]),
    );
    let mut command = lab.command(&arguments);
    if let Some(first) = path {
        let rest = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{rest}", first.display()));
    }
    command.output().unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)))
}

/// A directory with a sysbench whose arguments have been through `sed`.
fn bent(lab: &Lab, sed: &str) -> PathBuf {
    let directory = lab.path().join("bent");
    std::fs::create_dir(&directory).unwrap();
    let program = directory.join("sysbench");
    // No argument has a blank in it.
    let script = format!(
        "#!/bin/sh\nexec {} $(printf '%s\\n' \"$@\" | sed '{sed}')\n",
        sysbench().display()
    );
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    directory
}

#[test]
fn the_driver_sends_what_every_packaged_script_of_sysbench_sends() {
    if untested() {
        return;
    }
    sysbench();
    let lab = Lab::new();
    let output = run(&lab, &["--rounds", "2", "--json", "-"], None);
    let found = json(&output);
    crate::schema::assert_check(&found);
    assert_eq!(output.status.code(), Some(0), "{found:#}");
    let rows = found["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 35);
    let with_script: Vec<&Value> = rows
        .iter()
        .filter(|row| row["script"].is_string())
        .collect();
    assert_eq!(with_script.len(), 18);
    for row in with_script {
        assert_eq!(row["differences"], Value::Array(Vec::new()), "{row:#}");
        let statements = row["statements"].as_array().unwrap();
        assert!(!statements.is_empty(), "{row:#}");
        for statement in statements {
            let ids =
                [&statement["deltabench"], &statement["sysbench"]].map(|side| &side["query_id"]);
            assert!(ids[0].is_string() && ids[0] == ids[1], "{row:#}");
        }
        assert!(row["throughput_ratio"].as_f64().unwrap() > 0.0, "{row:#}");
    }
    for row in rows.iter().filter(|row| row["script"].is_null()) {
        assert!(row["no_script"].is_string(), "{row:#}");
    }
    assert_eq!(lab.workspaces(), [""; 0].map(PathBuf::from));
}

#[test]
fn an_operation_of_sixteen_statements_is_one_transaction_on_both_sides() {
    if untested() {
        return;
    }
    sysbench();
    let lab = Lab::new();
    let output = run(
        &lab,
        &["--rounds", "2", "--only", "read-only-10", "--json", "-"],
        None,
    );
    let row = &json(&output)["rows"][0];
    for side in ["deltabench", "sysbench"] {
        assert_eq!(row["transactions_per_operation"][side], 1.0, "{row:#}");
        // This server counts prepared transaction statements once for each connection.
        assert_eq!(row["calls_per_operation"][side], 14.0, "{row:#}");
        let once: Vec<&str> = row["once_per_connection"][side]
            .as_array()
            .unwrap()
            .iter()
            .map(|text| text.as_str().unwrap())
            .collect();
        assert_eq!(once, ["BEGIN", "COMMIT"]);
    }
}

#[test]
fn other_sql_other_counts_and_other_rows_are_found() {
    if untested() {
        return;
    }
    let cases = [
        (
            "s/^run$/--point_selects=9\\nrun/",
            "read-only-10",
            "10.00 calls per operation, sysbench 9.00: SELECT c FROM sbtest1 WHERE id=$1",
        ),
        (
            "s/^run$/--skip_trx=on\\nrun/",
            "read-only-10",
            "1.00 transactions per operation, sysbench 14.00",
        ),
        (
            "s/range_size=10$/range_size=50/",
            "read-only-10",
            "rows per call, sysbench",
        ),
        (
            "s/^oltp_update_index$/oltp_update_non_index/",
            "update-index",
            "only sysbench sends: UPDATE sbtest1 SET c=$1 WHERE id=$2",
        ),
    ];
    for (sed, workload, expected) in cases {
        let lab = Lab::new();
        let path = bent(&lab, sed);
        let output = run(&lab, &["--rounds", "4", "--only", workload], Some(path));
        let said = text(&output.stdout);
        assert_eq!(
            output.status.code(),
            Some(1),
            "{sed}: {said}{}",
            text(&output.stderr)
        );
        assert!(said.contains(expected), "{sed}: {said}");
        assert!(said.contains("DIFFER"), "{sed}: {said}");
    }
}

#[test]
fn a_script_that_fails_is_no_measurement() {
    if untested() {
        return;
    }
    let lab = Lab::new();
    let path = bent(&lab, "s/^oltp_point_select$/oltp_nothing/");
    let output = run(&lab, &["--only", "point-query"], Some(path));
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(said.contains("error: sysbench failed"), "{said}");
    assert!(said.contains("oltp_nothing"), "{said}");
    assert_eq!(lab.workspaces(), [""; 0].map(PathBuf::from));
}

#[test]
fn without_sysbench_nothing_is_started() {
    let lab = Lab::new();
    let output = lab
        .command(&["crosscheck"])
        .env("PATH", lab.path())
        .output()
        .unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("error: sysbench is not installed"), "{said}");
    assert!(
        said.contains("hint: run scripts/install-peers.sh"),
        "{said}"
    );
}

#[test]
fn what_cannot_be_measured_is_refused() {
    if untested() {
        return;
    }
    sysbench();
    let cases = [
        (["--rounds", "1"], "an interval needs at least two rounds"),
        (["--seconds", "0"], "--seconds 0 is out of range"),
        (["--rows", "10"], "--rows 10 is out of range"),
        (["--only", "point-qery"], "did you mean `point-query`?"),
        (["--target", "postgres18"], "postgres18"),
    ];
    for (arguments, expected) in cases {
        let lab = Lab::new();
        let output = lab.run(&join(&["crosscheck"], &arguments));
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
}
