//! Experiment files, carried out on real servers.

use crate::lab::{Lab, text};
use deltabench_model::fact::Settings;
use deltabench_model::plan::ServerId;
use deltabench_store::{RunState, Store};
use serde_json::Value;

/// Two versions, a configuration, two client counts, two sizes: two runs of two cells.
const STUDY: &str = r#"
format = "deltabench.experiment"
version = 1
name = "study"
about = "as small as can be"

[[servers]]
target = "postgres:14"
configuration = "mine"

[[servers]]
target = "postgres:18"
configuration = "mine"
settings = { work_mem = ["4MB", "8MB"] }

[configurations.mine]
include = ["cx10a_c8r32"]
set = { shared_buffers = "auto", min_wal_size = "80MB", vacuum_buffer_usage_limit = "1MB" }

[workloads]
only = ["point-query"]
clients = [1, 2]

[data]
rows = [2000, 3000]

[measurement]
blocks = 2
fixed = true
visit_seconds = 0.05
slice_ms = 3
seed = 7
"#;

const RUN: [&str; 4] = ["run", "study.toml", "--huge-pages", "off"];

fn lab() -> Lab {
    let lab = Lab::new();
    std::fs::write(lab.path().join("study.toml"), STUDY).unwrap();
    lab
}

fn json(lab: &Lab, name: &str) -> Value {
    let output = lab.run(&["report", name, "--format", "json"]);
    assert!(!output.stdout.is_empty(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn axes(study: &Value) -> Vec<&str> {
    let tables = study["tables"].as_array().unwrap();
    let mut axes: Vec<&str> = tables
        .iter()
        .map(|table| table["axis"].as_str().unwrap())
        .collect();
    axes.sort_unstable();
    axes.dedup();
    axes
}

/// Killed in its first part and resumed: what a whole one leaves.
#[test]
fn a_killed_experiment_goes_on_and_its_report_has_a_table_along_each_axis() {
    let lab = lab();
    let mut child = lab.start(&RUN);
    lab.wait_for(&mut child, "block 1/2");
    child.kill().unwrap();
    child.wait().unwrap();
    lab.wait_until_no_servers();
    let states = || -> Vec<RunState> {
        let store = Store::open_existing(&lab.path().join("lab")).unwrap();
        let runs = store.runs().unwrap();
        runs.iter().map(|run| run.state).collect()
    };
    assert_eq!(states(), [RunState::Running, RunState::Planned]);
    let output = lab.run(&["resume", "last", "--huge-pages", "off"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    let store = Store::open_existing(&lab.path().join("lab")).unwrap();
    let runs = store.runs().unwrap();
    assert_eq!(runs.len(), 2);
    assert!(runs.iter().all(|run| run.state == RunState::Finished));
    let execution = runs[0].execution.clone().unwrap();
    let plan = store.plan(&runs[0].run).unwrap();
    let names: Vec<String> = plan.servers.iter().map(|server| server.name()).collect();
    assert!(names[0].starts_with("postgres:14."), "{names:?}");
    assert!(names[3].ends_with("work_mem=8MB"), "{names:?}");
    let adapted = |server: usize| {
        let used = plan.servers[server].configuration.as_ref().unwrap();
        used.adapted
            .iter()
            .map(|adapted| adapted.asked.0.as_str())
            .collect::<Vec<_>>()
    };
    assert_eq!(adapted(0), ["vacuum_buffer_usage_limit"], "14 has it not");
    assert!(adapted(2).is_empty(), "18 has it");
    let study = json(&lab, "last");
    assert_eq!(axes(&study), ["clients", "part", "servers"]);
    assert_eq!(study, json(&lab, &execution));
    let page = lab.path().join(format!("lab/{execution}.html"));
    assert!(
        std::fs::read_to_string(page)
            .unwrap()
            .contains("as small as can be")
    );
    // Each server has what its configuration and its own settings say.
    let facts = store.facts::<Settings>(&runs[0].run).unwrap();
    let of = |server: u32, name: &str| {
        let fact = facts
            .iter()
            .find(|fact| fact.server == Some(ServerId(server)))
            .unwrap();
        let mut settings = fact.fact.0.iter();
        settings
            .find(|setting| setting.name == name)
            .cloned()
            .unwrap()
            .value
    };
    assert_eq!(of(0, "autovacuum"), "on", "not the steady profile");
    assert_eq!(
        (of(2, "work_mem"), of(3, "work_mem")),
        ("4096".into(), "8192".into())
    );
    assert!(lab.servers().is_empty() && lab.workspaces().is_empty());
}

#[test]
fn an_outlook_says_what_would_be_done_and_does_nothing() {
    let lab = lab();
    let output = lab.run(&[
        "run",
        "study.toml",
        "--dry-run",
        "--only",
        "clients=2",
        "--only",
        "rows=3000",
    ]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(
        said.contains("1 cell: point-query") && said.contains("clients: 2"),
        "{said}"
    );
    assert!(
        said.contains("1 x 3000") && !said.contains("1 x 2000"),
        "{said}"
    );
    assert!(!lab.path().join("lab").exists() && lab.workspaces().is_empty());
}

#[test]
fn what_is_wrong_with_a_file_is_refused_with_its_place_before_anything_starts() {
    let lab = lab();
    let refused = |change: (&str, &str), wanted: &str| {
        let file = lab.path().join("bad.toml");
        std::fs::write(&file, STUDY.replace(change.0, change.1)).unwrap();
        let output = lab.run(&["run", "bad.toml"]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(wanted), "{wanted}: {said}");
        assert!(!lab.path().join("lab").exists(), "{wanted}");
    };
    refused(("visit_seconds", "visit_second"), "visit_seconds");
    refused(("cx10a_c8r32", "cx10a_c8r23"), "cx10a_c8r32");
    refused(("point-query", "point-qurey"), "point-query");
    refused(("work_mem = [", "wrok_mem = ["), "work_mem");
    refused(("\"8MB\"", "\"8 lightyears\""), "work_mem");
    let output = lab.run(&["run", "study.toml", "--scale", "huge"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
}

#[test]
fn probes_of_a_file_are_asked_for_as_those_of_the_command() {
    let lab = lab();
    let study = format!("{STUDY}probes = true\n");
    std::fs::write(lab.path().join("study.toml"), study).unwrap();
    let output = lab.run(&["run", "study.toml", "--dry-run", "--only", "clients=2"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("--probes has nothing to probe"), "{said}");
}

#[test]
fn the_file_that_init_writes_can_be_carried_out() {
    let lab = lab();
    assert_eq!(lab.run(&["init", "mine.toml"]).status.code(), Some(0));
    assert_eq!(
        lab.run(&["init", "mine.toml"]).status.code(),
        Some(2),
        "it is there"
    );
    let output = lab.run(&["run", "mine.toml", "--scale", "tiny", "--dry-run"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

/// Three versions, of which the oldest is no neighbour of anything.
const HISTORY: &str = r#"
format = "deltabench.experiment"
version = 1
name = "history"

[[servers]]
target = ["postgres:17", "postgres:9.6", "postgres:14"]

[workloads]
only = ["point-query"]

[data]
rows = 2000

[measurement]
blocks = 2
fixed = true
visit_seconds = 0.05
slice_ms = 3
"#;

#[test]
fn a_version_more_is_measured_with_the_anchor_and_the_newest_and_earlier_runs_stand_for_the_others()
{
    let lab = Lab::new();
    std::fs::write(lab.path().join("history.toml"), HISTORY).unwrap();
    let extend = |with: &str, more: &[&str]| {
        let words = ["extend", "last", "--with", with, "--huge-pages", "off"];
        lab.run(&[&words[..], more].concat())
    };
    let first = lab.run(&["run", "history.toml", "--huge-pages", "off"]);
    assert_eq!(first.status.code(), Some(3), "{}", text(&first.stderr));
    let known = extend("postgres:14", &[]);
    assert_eq!(known.status.code(), Some(2));
    assert!(text(&known.stderr).contains("is in the execution already"));
    let outlook = extend("postgres:18", &["--dry-run"]);
    let said = text(&outlook.stderr);
    assert_eq!(outlook.status.code(), Some(0), "{said}");
    assert!(
        said.contains("from earlier runs: postgres:9.6.24, 1 occasion"),
        "{said}"
    );
    let store = || Store::open_existing(&lab.path().join("lab")).unwrap();
    assert_eq!(store().runs().unwrap().len(), 1, "nothing was planned");
    let extended = extend("postgres:18", &[]);
    assert_eq!(
        extended.status.code(),
        Some(3),
        "{}",
        text(&extended.stderr)
    );
    let runs = store().runs().unwrap();
    let plan = store().plan(&runs[1].run).unwrap();
    let names: Vec<String> = plan.servers.iter().map(|server| server.name()).collect();
    assert_eq!(plan.extends.as_ref(), Some(&runs[0].run));
    assert_eq!(names.len(), 4, "{names:?}");
    assert!(
        names[2].starts_with("postgres:14.") && names[3].starts_with("postgres:18."),
        "{names:?}"
    );
    let study = json(&lab, "last");
    let table = &study["tables"][0];
    let columns: Vec<&str> = { table["columns"].as_array().unwrap().iter() }
        .map(|column| column["name"].as_str().unwrap())
        .collect();
    assert!(columns[0].starts_with("postgres:17."), "{columns:?}");
    assert!(
        columns[1].starts_with("postgres:9.6.24 via 17."),
        "{columns:?}"
    );
    assert!(
        columns[1].ends_with(" (1 occasion)") && columns.len() == 4,
        "{columns:?}"
    );
    // What the first run printed is within what one more would.
    let before = json(&lab, &runs[0].execution.clone().unwrap());
    let figure = |study: &Value, at: usize| study["tables"][0]["rows"][0]["figures"][at].clone();
    let (direct, via) = (figure(&before, 1), figure(&study, 1));
    assert_eq!(
        direct["ratio"].as_f64().is_some(),
        via["ratio"].as_f64().is_some()
    );
    assert!(
        via["verdict"].is_null(),
        "one occasion of a distant version: {via}"
    );
    // Both in one table: each version with its day, measured ones where there are any.
    let both: Vec<String> = { runs.iter() }
        .map(|run| run.execution.clone().unwrap())
        .collect();
    let grown = lab.run(&["report", &both[0], &both[1], "--format", "json"]);
    let grown: Value = serde_json::from_slice(&grown.stdout).unwrap();
    let columns = grown["tables"][0]["columns"].as_array().unwrap();
    let name = |at: usize| columns[at]["name"].as_str().unwrap();
    assert_eq!(
        (columns.len(), name(1)),
        (4, "postgres:9.6.24"),
        "{columns:?}"
    );
    let times = |at: usize| columns[at]["measured"].as_array().unwrap().len();
    assert_eq!([0, 1, 2, 3].map(times), [2, 1, 2, 1], "{columns:?}");
    let notes = grown["notes"].to_string();
    assert!(notes.contains("measured at 2 times: "), "{notes}");
    let again = extend("postgres:17.11", &["--remeasure", "--dry-run"]);
    assert_eq!(again.status.code(), Some(2), "{}", text(&again.stderr));
}
