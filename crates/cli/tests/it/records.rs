//! What is done with a run afterwards: exports and withdrawals.

use crate::lab::{Lab, TINY, join, text};
use rusqlite::Connection;

fn number(file: &Connection, sql: &str) -> i64 {
    file.query_row(sql, [], |row| row.get(0))
        .unwrap_or_else(|error| panic!("{sql}: {error}"))
}

#[test]
fn a_run_is_exported_and_then_withdrawn() {
    let lab = Lab::new();
    let arguments = [
        "compare",
        "postgres:14",
        "postgres:18",
        "--blocks",
        "2",
        "--only",
        "point-query,update-index",
        "--clients",
        "1,2",
        "--no-pilot",
    ];
    let output = lab.run(&join(&arguments, &TINY));
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    exported(&lab);
    withdrawn(&lab);
}

fn exported(lab: &Lab) {
    for out in ["one.sqlite", "two.sqlite"] {
        let output = lab.run(&["export", "last", "--out", out]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    }
    let [one, two] = ["one.sqlite", "two.sqlite"].map(|name| lab.path().join(name));
    assert_eq!(std::fs::read(&one).unwrap(), std::fs::read(two).unwrap());
    let store = Connection::open(lab.path().join("lab/deltabench.sqlite")).unwrap();
    let file = Connection::open(one).unwrap();
    for (table, of) in [
        ("slices", "slice"),
        ("marks", "mark"),
        ("findings", "finding"),
    ] {
        let (found, stored) = (
            number(&file, &format!("select count(*) from {table}")),
            number(&store, &format!("select count(*) from {of}")),
        );
        assert!(
            found >= stored,
            "{found} rows in {table}, {stored} in the store"
        );
    }
    assert_eq!(number(&file, "select count(*) from cells"), 4);
    assert_eq!(number(&file, "select count(*) from verdicts"), 8);
    assert_eq!(
        number(&file, "select count(distinct server) from slices"),
        3
    );
    // Every good slice has a latency, and its median is below its 99th percentile.
    let odd = "select count(*) from slices where void is null \
               and (latency_us_p50 is null or latency_us_p50 > latency_us_p99)";
    assert_eq!(number(&file, odd), 0);
    // Operations of a visit hold those of its slices: warm-up comes on top.
    let lost = "select count(*) from counters c where operations < (select sum(s.operations) from slices s \
                where s.cell = c.cell and s.block = c.block and s.server = c.server)";
    assert_eq!(number(&file, lost), 0);
    let again = lab.run(&["export", "last", "--out", "one.sqlite"]);
    assert_eq!(again.status.code(), Some(2), "{}", text(&again.stderr));
    assert!(
        text(&again.stderr).contains("--force"),
        "{}",
        text(&again.stderr)
    );
    let csv = lab.run(&["export", "--format", "csv-dir", "--out", "tables"]);
    assert_eq!(csv.status.code(), Some(0), "{}", text(&csv.stderr));
    let slices = std::fs::read_to_string(lab.path().join("tables/slices.csv")).unwrap();
    let rows = number(&file, "select count(*) from slices");
    assert_eq!(slices.lines().count(), usize::try_from(rows).unwrap() + 1);
}

fn withdrawn(lab: &Lab) {
    let why = ["--reason", "a backup ran"];
    let cell = lab.run(&join(
        &["invalidate", "last", "--cell", "point-query@2"],
        &why,
    ));
    assert_eq!(cell.status.code(), Some(0), "{}", text(&cell.stderr));
    assert!(text(&lab.run(&["list"]).stdout).contains("1 cell withdrawn"));
    let report = lab.report();
    let unfit: Vec<bool> = report["cells"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cell| cell["verdict"] == "unfit")
        .collect();
    assert_eq!(unfit.iter().filter(|unfit| **unfit).count(), 1);
    assert_eq!(report["exit_code"], 3);
    let wrong = lab.run(&join(
        &["invalidate", "last", "--cell", "point-qurey"],
        &why,
    ));
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong.stderr).contains("did you mean `point-query`?"));
    let run = lab.run(&join(&["invalidate", "last"], &why));
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    assert!(text(&lab.run(&["list"]).stdout).contains("withdrawn: a backup ran"));
    let output = lab.run(&["report", "last", "--format", "json"]);
    assert_eq!(output.status.code(), Some(4));
    assert!(text(&output.stdout).contains("a backup ran"));
}
