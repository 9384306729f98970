//! The times of `deltabench replay` on real servers, with the shop of `examples/replay`.

use crate::lab::{Lab, join, signal, text};
use crate::replaying::{SECRET, answer, holding, prepared, shop};
use deltabench_capture::Capture;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Six blocks of two statements.
const SHORT: [&str; 6] = ["--blocks", "6", "--budget", "24s", "--draws", "1"];

/// Orders of 64 customers, which an index finds, and customers by a column without one.
fn capture(lab: &Lab) -> PathBuf {
    let values = |number: u32| vec![(number + 1).to_string(), "2026-01-01".to_owned()];
    let customers: Vec<Vec<String>> = (0..64).map(values).collect();
    let sql = "SELECT total FROM orders WHERE customer_id = $1 AND at > $2";
    let by_customer = prepared("by_customer", sql, &customers);
    let names = [vec![SECRET.to_owned()], vec!["Customer 3".to_owned()]];
    let sql = "SELECT id FROM customers WHERE name = $1 OR city = 'secret-customer-77'";
    let mut by_name = prepared("by_name", sql, &names);
    // None of them may be there.
    by_name.rows = None;
    let capture = Capture {
        statements: vec![by_customer, by_name],
        ..Capture::default()
    };
    let path = lab.path().join("shop.capture");
    capture.write(&path).unwrap();
    path
}

/// A replay of these statements on two servers of one version.
fn on_two<'a>(capture: &'a Path, dump: &'a Path) -> Vec<&'a str> {
    let data = dump.to_str().unwrap();
    let replay = [
        "replay",
        capture.to_str().unwrap(),
        "postgres:18",
        "postgres:18",
        "--data",
        data,
        "--same-target",
    ];
    join(&replay, &SHORT)
}

/// The only run of a lab.
pub fn name(lab: &Path) -> String {
    let mut files = std::fs::read_dir(lab)
        .unwrap()
        .map(|file| file.unwrap().path());
    let json = files.find(|path| path.extension().is_some_and(|end| end == "json"));
    json.unwrap()
        .file_stem()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned()
}

fn time<'a>(answer: &'a Value, id: &str) -> &'a Value {
    let statements = answer["statements"].as_array().unwrap();
    let statement = statements.iter().find(|one| one["id"] == id).unwrap();
    &statement["verdicts"][0]["time"]
}

#[test]
fn a_statement_that_loses_its_index_is_slower_by_its_share_of_the_workload() {
    let lab = Lab::new();
    let (dump, capture) = (shop(&lab), capture(&lab));
    let changed = [
        "--candidate-set",
        "enable_indexscan=off",
        "--candidate-set",
        "enable_bitmapscan=off",
        "--why",
        "--json",
        "-",
    ];
    let output = lab.run(&join(&on_two(&capture, &dump), &changed));
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(lab.servers().is_empty() && lab.workspaces().is_empty());
    let answer = answer(&output);
    let slower = time(&answer, "by_customer");
    assert_eq!(slower["verdict"], "slower", "{answer}");
    assert!(slower["ratio"]["low"].as_f64().unwrap() > 1.5, "{slower}");
    let (impact, ratio) = (&slower["impact"]["estimate"], &slower["ratio"]["estimate"]);
    let half = 0.5 * (ratio.as_f64().unwrap() - 1.0);
    assert!(
        (impact.as_f64().unwrap() - half).abs() < 1e-9,
        "its share is a half"
    );
    // The settings of the base bring its plan back, and the time with it.
    let by_customer = answer["statements"].as_array().unwrap().iter();
    let mut by_customer = by_customer.filter(|one| one["id"] == "by_customer");
    let old = &by_customer.next_back().unwrap()["verdicts"][0]["old_plan"];
    let settings = old["settings"].to_string();
    assert!(
        settings.contains("enable_") && settings.contains("on"),
        "{old}"
    );
    let with_it = old["ratio"]["high"].as_f64().unwrap();
    assert!(with_it < slower["ratio"]["low"].as_f64().unwrap(), "{old}");
    let cause = old["cause"].as_str().unwrap();
    assert!(
        ["planner", "both"].contains(&cause),
        "never the executor alone: {old}"
    );
    // Its plan is the same. That no noise makes it a few percent slower is no promise of a test machine.
    let by_name = time(&answer, "by_name");
    assert!(by_name["ratio"]["low"].as_f64().unwrap() < 1.5, "{by_name}");
    let times = &answer["times"];
    assert_eq!(
        (&times["blocks"], &times["statements"]),
        (&6.into(), &2.into())
    );
    assert_eq!(times["share"], 1.0, "{answer}");
    assert_eq!(times["workload"][0]["verdict"], "slower");
    assert!(times["placebo"]["ratio"]["estimate"].as_f64().unwrap() < 1.5);
    // Neither the store nor a report has a value.
    assert_eq!(
        holding(&lab.path().join("lab"), SECRET),
        [""; 0].map(PathBuf::from)
    );
    assert!(!said.contains(SECRET) && !text(&output.stdout).contains(SECRET));
    let again = lab.run(&["report", "last"]);
    let report = text(&again.stdout);
    assert_eq!(again.status.code(), Some(1), "{}", text(&again.stderr));
    assert!(report.contains("server time of the workload (100.0 % of the captured time) +"));
    let line = report
        .lines()
        .find(|line| line.starts_with("▼ by_customer"));
    assert!(
        line.is_some_and(|line| line.contains("changed")),
        "{report}"
    );
}

#[test]
fn a_replay_that_is_killed_in_a_block_goes_on_there() {
    let lab = Lab::new();
    let (dump, capture) = (shop(&lab), capture(&lab));
    let mut child = lab.start(&on_two(&capture, &dump));
    lab.wait_for(&mut child, "block 2/6");
    child.kill().unwrap();
    child.wait().unwrap();
    lab.wait_until_no_servers();
    let name = name(&lab.path().join("lab"));
    let half = lab.run(&["report", &name, "--format", "json"]);
    let blocks = &answer(&half)["times"]["blocks"];
    assert!(
        blocks.as_u64().unwrap() >= 2,
        "what was measured is there: {blocks}"
    );
    let output = lab.run(&["resume", &name, "--json", "-"]);
    let said = text(&output.stderr);
    let done = said.split(" visits of servers are done").next().unwrap();
    let done: u32 = done.rsplit(' ').next().unwrap().parse().unwrap();
    assert!(
        done >= 12,
        "two statements on three servers in two blocks: {said}"
    );
    assert!(!said.contains("block 1/6"), "not measured again: {said}");
    let whole = answer(&output);
    assert_eq!(whole["times"]["blocks"], 6);
    for id in ["by_customer", "by_name"] {
        assert_eq!(time(&whole, id)["blocks"], 6, "{whole}");
    }
    assert!(lab.servers().is_empty() && lab.workspaces().is_empty());
    std::fs::write(&dump, "SELECT 1;").unwrap();
    let finished = lab.run(&["resume", &name]);
    assert!(
        text(&finished.stderr).contains("is finished"),
        "{}",
        text(&finished.stderr)
    );
    let tables = lab.path().join("tables");
    for other in [
        vec!["notes", &name],
        vec!["explain", &name],
        vec!["export", &name, "--out", tables.to_str().unwrap()],
    ] {
        let refused = lab.run(&other);
        let said = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{other:?}: {said}");
        assert!(
            said.contains("does not apply to a replay"),
            "{other:?}: {said}"
        );
        assert!(
            said.contains("hint: `deltabench report replay-"),
            "{other:?}: {said}"
        );
    }
    assert!(!tables.exists());
}

/// A statement that calls a function, and a dump of the function, which does something at a certain time.
fn odd_function(lab: &Lab, condition: &str, does: &str) -> (PathBuf, PathBuf) {
    let dump = format!(
        "CREATE FUNCTION odd() RETURNS int STABLE LANGUAGE plpgsql AS $$ BEGIN
           IF {condition} THEN PERFORM {does}; END IF; RETURN 1; END $$;"
    );
    let paths = ["odd.sql", "odd.dump"].map(|name| lab.path().join(name));
    std::fs::write(&paths[0], "-- name: odd\nSELECT odd();").unwrap();
    std::fs::write(&paths[1], dump).unwrap();
    let [statements, dump] = paths;
    (statements, dump)
}

/// Floats have 15 digits where results are compared.
const COMPARED: &str = "current_setting('extra_float_digits') = '0'";
const TIMED: &str = "current_setting('extra_float_digits') <> '0'";

/// Waits until a server of the lab has executed one statement for a while.
fn wait_for_a_long_statement(lab: &Lab) {
    let busy = || {
        let title = |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/cmdline"));
        let selects = |pid: &u32| title(pid).is_ok_and(|title| title.contains("SELECT"));
        lab.servers().into_iter().find(selects)
    };
    for _ in 0..600 {
        let before = busy();
        std::thread::sleep(std::time::Duration::from_millis(500));
        if before.is_some() && before == busy() {
            return;
        }
    }
    panic!("no statement runs");
}

#[test]
fn an_interruption_ends_the_statement_that_is_timed() {
    let lab = Lab::new();
    let (statements, dump) = odd_function(&lab, TIMED, "pg_sleep(100000)");
    let limit = ["--timeout", "100000s"];
    let mut child = lab.start(&join(&on_two(&statements, &dump), &limit));
    lab.wait_for(&mut child, "measuring 1 statements");
    wait_for_a_long_statement(&lab);
    signal(child.id(), "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(lab.servers().is_empty() && lab.workspaces().is_empty());
}

#[test]
fn what_is_known_is_told_if_a_server_ends_while_it_is_asked_or_timed() {
    let lab = Lab::new();
    for (condition, stage) in [(COMPARED, "asked"), (TIMED, "timed")] {
        let (statements, dump) =
            odd_function(&lab, condition, "pg_terminate_backend(pg_backend_pid())");
        let output = lab.run(&join(&on_two(&statements, &dump), &["--json", "-"]));
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(5), "{stage}: {said}");
        assert!(
            said.contains("error: a server of the replay failed"),
            "{stage}: {said}"
        );
        assert!(said.contains("while it had"), "{stage}: {said}");
        let answer = answer(&output);
        let note = answer["notes"][0].as_str().unwrap();
        assert!(
            note.starts_with("broken-off: a server of the replay failed"),
            "{note}"
        );
        let plans = &answer["statements"][0]["servers"][0]["plans"];
        assert_eq!(plans.as_array().unwrap().len(), 1, "{stage}: {answer}");
        let results = &answer["statements"][0]["verdicts"][0]["results"];
        let known = if stage == "timed" {
            "same"
        } else {
            "not-executed"
        };
        assert_eq!(results, known, "{answer}");
        assert!(lab.servers().is_empty() && lab.workspaces().is_empty());
    }
}
