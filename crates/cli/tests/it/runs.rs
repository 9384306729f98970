//! Whole comparisons at tiny scale on real servers.

use crate::lab::{Lab, TINY, join, text};
use serde_json::Value;

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is not a number"))
}

#[test]
fn oldest_middle_and_newest_majors_are_compared_in_one_run() {
    let lab = Lab::new();
    let arguments = [
        "compare",
        "postgres:9.6",
        "postgres:14",
        "postgres:18",
        "--blocks",
        "2",
        "--clients",
        "3",
        "--json",
        "-",
    ];
    let output = lab.run(&join(&arguments, &TINY));
    let errors = text(&output.stderr);
    // Two blocks are too few for a verdict, and must be said to be.
    assert_eq!(output.status.code(), Some(3), "{errors}");
    let state = lab.state().join("host-uid");
    assert!(state.exists(), "tests have a machine of their own");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["format"], "deltabench.report");
    let cells = report["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 8 * 2, "8 workloads, 2 candidates");
    let mut counted = 0;
    for cell in cells {
        assert_eq!(cell["verdict"], "inconclusive", "{cell}");
        // A block in which other load left too few rounds does not count, and one block has no interval.
        let blocks = cell["blocks"].as_u64().unwrap();
        assert!(blocks <= 2, "{cell}");
        if blocks < 2 {
            continue;
        }
        counted += 1;
        for metric in [
            "throughput",
            "server_cpu_us_per_op",
            "latency_us_p50",
            "latency_us_p99",
        ] {
            let value = &cell["metrics"][metric];
            assert!(
                number(&value["base"]) > 0.0 && number(&value["candidate"]) > 0.0,
                "{cell}"
            );
            let (low, high) = (
                number(&value["ci95"]["low"]),
                number(&value["ci95"]["high"]),
            );
            let ratio = number(&value["ratio"]);
            assert!(low <= ratio && ratio <= high, "{metric} of {cell}");
        }
    }
    assert!(counted > 0, "no cell has two blocks");
    let kinds: Vec<&str> = report["fairness"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| finding["kind"].as_str().unwrap())
        .collect();
    assert!(
        kinds.iter().any(|kind| kind.contains("compiler")),
        "9.6 has another compiler: {kinds:?}"
    );
    assert!(report["placebo"].is_object());
    assert!(lab.servers().is_empty(), "servers are left");
    assert!(
        lab.workspaces().is_empty(),
        "directories are left: {:?}",
        lab.workspaces()
    );
}

#[test]
fn a_target_may_be_compared_with_itself_when_said_and_a_report_says_so() {
    let lab = Lab::new();
    let arguments = [
        "compare",
        "postgres:18",
        "postgres:18",
        "--same-target",
        "--blocks",
        "6",
        "--only",
        "point-query",
        "--seed",
        "5",
        "--not-worse-than",
        "50%",
        "--no-pilot",
    ];
    // Long enough to be worth a look at the core first.
    let visits = TINY.map(|word| if word == "0.03" { "0.3" } else { word });
    let output = lab.run(&join(&arguments, &visits));
    let code = output.status.code().unwrap();
    // It is not half as fast as itself; but a placebo may be off on a busy machine, and then nothing passes.
    assert!([0, 3, 4].contains(&code), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    let passed = table.contains("gate passed: none of 1 cells");
    assert!(code == 4 || passed == (code == 0), "{code}: {table}");
    assert!(
        table.contains("point-query") && table.contains("placebo"),
        "{table}"
    );
    let report = lab.report();
    assert_eq!(report["cells"].as_array().unwrap().len(), 1);
    assert_eq!(report["seed"], "5");
    // Both the page and the JSON were written where the run said.
    let run = report["run"].as_str().unwrap().to_owned();
    for kind in ["json", "html"] {
        assert!(
            lab.path()
                .join("lab")
                .join(format!("{run}.{kind}"))
                .is_file()
        );
    }
    // A report of the same data is the same to the byte.
    assert_eq!(lab.report(), report);
    let looks = facts(&lab, "warm_up");
    assert_eq!(looks.len(), 6, "one for each visit");
    for look in looks {
        let speed = &look["core_speed"];
        assert!(
            number(&speed["arithmetic_ns"][1]) > 0.0 && number(&speed["memory_ns"]) > 0.0,
            "{look}"
        );
    }
    let listed = text(&lab.run(&["list"]).stdout);
    assert!(
        listed.contains(&run) && listed.contains("finished") && listed.contains("6/6 blocks"),
        "{listed}"
    );
}

/// Facts of a kind, in the order they were stored.
fn facts(lab: &Lab, kind: &str) -> Vec<Value> {
    let store = rusqlite::Connection::open(lab.path().join("lab/deltabench.sqlite")).unwrap();
    let mut query = store
        .prepare("SELECT value FROM fact WHERE kind = ?1 ORDER BY id")
        .unwrap();
    let found = query
        .query_map([kind], |row| row.get::<_, String>(0))
        .unwrap();
    found
        .map(|json| serde_json::from_str(&json.unwrap()).unwrap())
        .collect()
}

#[test]
fn settings_are_applied_to_every_server_and_a_bad_one_is_named() {
    let lab = Lab::new();
    let arguments = [
        "compare",
        "postgres:14",
        "postgres:18",
        "--blocks",
        "1",
        "--only",
        "point-query",
        "--no-pilot",
    ];
    let good = join(&arguments, &["--set", "work_mem=77MB"]);
    let output = lab.run(&join(&good, &TINY));
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    let settings = facts(&lab, "settings");
    let values: Vec<Value> = settings
        .iter()
        .flat_map(|of_server| of_server.as_array().unwrap())
        .filter(|setting| setting["name"] == "work_mem")
        .map(|setting| setting["value"].clone())
        .collect();
    assert_eq!(
        values, ["78848"; 3],
        "77 MB in kB, read back from three servers"
    );
    let bad = join(&arguments, &["--set", "wokr_mem=77MB"]);
    let output = lab.run(&join(&bad, &TINY));
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(
        errors.contains("wokr_mem") && errors.contains("did you mean work_mem?"),
        "{errors}"
    );
    assert!(lab.servers().is_empty() && lab.workspaces().is_empty());
}

#[test]
fn the_same_target_twice_is_refused_before_anything_starts() {
    let lab = Lab::new();
    let output = lab.run(&join(&["compare", "postgres:18", "postgres:18"], &TINY));
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("--same-target"), "{errors}");
    assert!(lab.workspaces().is_empty());
}

#[test]
fn a_host_without_room_is_a_refusal() {
    let lab = Lab::new();
    let much = [
        "compare",
        "postgres:14",
        "postgres:18",
        "--rows",
        "2000000000",
    ];
    let output = lab.run(&much);
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("not enough"), "{errors}");
    let deep = lab.path().join("x".repeat(120));
    let arguments = ["compare", "postgres:14", "postgres:18"];
    let output = lab
        .command_in(&deep, &join(&arguments, &TINY))
        .output()
        .unwrap();
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("socket"), "{errors}");
    assert!(!deep.exists());
}
