//! Experiment files with pgbench and the Insert Benchmark, carried out on real servers.

use crate::lab::{Lab, text};
use deltabench_kinds::insert::steps;
use deltabench_model::finding::FindingKind;
use deltabench_model::plan::Role;
use deltabench_store::{RunState, Store};

const HEAD: &str = r#"
format = "deltabench.experiment"
version = 1
name = "study"

[[servers]]
target = ["postgres:14", "postgres:18"]
configuration = "mine"

[configurations.mine]
include = ["cx10a"]
set = { shared_buffers = "auto", min_wal_size = "80MB", max_wal_size = "1GB" }
"#;

/// Two scripts, one of them in a file, and a mix; two scales.
const PGBENCH: &str = r#"
[workloads]
clients = 2

[pgbench]
scripts = ["select", "own.sql", { name = "mix", scripts = ["select-only@3", "own.sql@1"] }]
mode = "prepared"
scale = [1, 2]
variables = { most = "5" }

[measurement]
blocks = 2
fixed = true
visit_seconds = 0.05
slice_ms = 3
seed = 7
"#;

const OWN: &str = r"\set n random(1, :most)
SELECT count(*) FROM pgbench_branches WHERE bid <= :n;
";

const INSERT: &str = r#"
[insert]
clients = 2
rows = 2000
write_rows = 500
rates = [100]
seconds = 1
settle_seconds = 0

[measurement]
blocks = 2
jobs = 2
seed = 7
"#;

const PROCEDURE: &str = r#"
[workloads]
only = ["delete", "scan", "update-index"]

[data]
rows = 1000
tables = 2

[measurement]
residence = "one"
visit_seconds = 1
write_seconds = 1
settle_seconds = 0
placebo = false
primary_key = false
seed = 7
"#;

/// Each server starts for its turns.
const ROTATED: &str = r#"
[workloads]
only = ["update-index"]

[data]
rows = 1000

[measurement]
residence = "rotated"
blocks = 1
fixed = true
visit_seconds = 0.1
write_seconds = 0.24
warmup = "1s"
seed = 7
"#;

/// Two candidates, of which one runs at a time beside the base and its copy.
const GROUPS: &str = r#"
[[servers]]
target = "postgres:18"
configuration = "mine"
settings = { work_mem = "8MB" }

[workloads]
only = ["point-query"]

[data]
rows = 1000

[measurement]
servers_at_once = 3
blocks = 2
fixed = true
visit_seconds = 0.05
slice_ms = 3
seed = 7
"#;

const RUN: [&str; 4] = ["run", "study.toml", "--huge-pages", "off"];

fn lab(rest: &str) -> Lab {
    let lab = Lab::new();
    std::fs::write(lab.path().join("study.toml"), format!("{HEAD}{rest}")).unwrap();
    std::fs::write(lab.path().join("own.sql"), OWN).unwrap();
    lab
}

/// Carries the file out without a verdict: the store, its runs, and the report in one line.
fn carried_out(lab: &Lab, more: &[&str]) -> (Store, Vec<String>, String) {
    let output = lab.run(&[&RUN[..], more].concat());
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert!(lab.servers().is_empty() && lab.workspaces().is_empty());
    let store = Store::open_existing(&lab.path().join("lab")).unwrap();
    let runs = store.runs().unwrap();
    assert!(runs.iter().all(|run| run.state == RunState::Finished));
    let names = runs.iter().map(|run| run.run.clone()).collect();
    let report = text(&output.stdout);
    let report = report.split_whitespace().collect::<Vec<_>>().join(" ");
    (store, names, report)
}

#[test]
fn scripts_of_pgbench_are_cells_and_each_scale_is_a_part() {
    let lab = lab(PGBENCH);
    let (store, runs, report) = carried_out(&lab, &[]);
    let mut scales = Vec::new();
    for run in &runs {
        let plan = store.plan(run).unwrap();
        let setup = plan.work.pgbench().unwrap();
        let part = plan.experiment.as_ref().unwrap();
        let scale = setup.tables.scale.to_string();
        assert_eq!(part.coordinates, [("scale".to_owned(), scale.clone())]);
        scales.push(scale);
        let cells: Vec<String> = plan
            .cells
            .iter()
            .map(|cell| format!("{}@{}", cell.workload, cell.clients))
            .collect();
        let wanted = ["pgbench-select-only", "own", "mix"];
        assert_eq!(cells, wanted.map(|name| format!("{name}@2")));
        let slices = store.slices(run).unwrap();
        let good = slices
            .iter()
            .filter(|slice| slice.operations > 0 && slice.failed == 0);
        assert_eq!(good.count(), slices.len(), "every slice did something");
        assert!(!slices.is_empty());
    }
    scales.sort();
    assert_eq!(scales, ["1", "2"]);
    assert!(report.contains("mix"), "{report}");
}

#[test]
fn steps_of_the_insert_benchmark_are_cells_and_passes_are_blocks() {
    let turns = INSERT.replace("[insert]", "[insert]\nturns = 2");
    let lab = lab(&turns.replace("blocks = 2", "blocks = 1"));
    let (store, runs, report) = carried_out(&lab, &["--only", "l.i1,qp100"]);
    assert_eq!(runs.len(), 1);
    let plan = store.plan(&runs[0]).unwrap();
    let cells: Vec<&str> = plan.cells.iter().map(|cell| &*cell.workload).collect();
    assert_eq!(cells, ["l.i0", "l.x", "l.i1", "l.i2", "qp100"]);
    assert_eq!(plan.jobs.of(2), 2, "threads of the client");
    assert!(
        plan.servers
            .iter()
            .any(|server| server.role == Role::Placebo)
    );
    let steps = steps(&store.records(&runs[0]).unwrap()).unwrap();
    // A pass on each of three servers.
    assert_eq!(steps.len(), 3 * cells.len());
    let title = "Relative throughput, one pass: no interval, no verdict";
    assert!(report.contains(title), "{report}");
    assert!(steps.iter().all(|step| step.void.is_none()));
    // Of both clients: 100 and 50 rows in a statement of l.i0 and l.i1.
    for (cell, statements) in [(0, 40), (2, 16)] {
        let mut of_cell = steps.iter().filter(|step| step.cell.0 == cell);
        assert!(of_cell.all(|step| step.operations == statements && step.clients.len() == 2));
    }
    let cut = steps.iter().map(|step| step.turns.len());
    assert!(cut.eq(cells.iter().flat_map(|name| match *name {
        "l.x" => [0; 3],
        _ => [2; 3],
    })));
    // That of the configuration, for each of three servers.
    let naptime = ("autovacuum_naptime".to_owned(), "30s".to_owned());
    assert!(
        plan.servers
            .iter()
            .all(|server| server.settings.contains(&naptime))
    );
    let extended = lab.run(&["extend", "study", "--with", "postgres:17", "--dry-run"]);
    let said = text(&extended.stderr);
    assert_eq!(extended.status.code(), Some(2), "{said}");
    assert!(said.contains("in turns are measured together"), "{said}");
}

#[test]
fn the_published_procedure_is_a_pass_on_one_server_at_a_time_and_says_that_nothing_is_paired() {
    let lab = lab(PROCEDURE);
    let (store, runs, report) = carried_out(&lab, &[]);
    let plan = store.plan(&runs[0]).unwrap();
    let cells: Vec<&str> = plan.cells.iter().map(|cell| &*cell.workload).collect();
    // In the published order, not in that of the file.
    assert_eq!(cells, ["update-index", "scan", "delete"]);
    assert!(plan.placebo().is_none() && plan.work.is_unpaired());
    let records = store.records(&runs[0]).unwrap();
    assert_eq!(records.len(), 2 * cells.len());
    // All tests of one server, then all of the other.
    let servers: Vec<u32> = records.iter().map(|record| record.server.0).collect();
    assert!(
        servers.chunk_by(|one, next| one == next).count() == 2,
        "{servers:?}"
    );
    assert!(
        report.contains("unpaired sequential runs") && report.contains("no interval, no verdict"),
        "{report}"
    );
}

#[test]
fn rotated_servers_do_the_same_rounds_one_server_at_a_time() {
    let lab = lab(ROTATED);
    let (store, runs, _) = carried_out(&lab, &[]);
    let plan = store.plan(&runs[0]).unwrap();
    assert!(plan.timing.rotated && plan.timing.warmup_chosen);
    let slices = store.slices(&runs[0]).unwrap();
    let rounds = |server: u32| -> Vec<u32> {
        let own = slices.iter().filter(|slice| slice.server.0 == server);
        own.map(|slice| slice.round).collect()
    };
    // 0.24 s in slices of 20 ms, on base, placebo and candidate.
    assert!(rounds(0).len() >= 6, "{}", rounds(0).len());
    assert!(rounds(0) == rounds(1) && rounds(1) == rounds(2));
    // One after another, three times.
    let mut by_time: Vec<(u64, u32)> = { slices.iter() }
        .map(|slice| (slice.started_ns, slice.server.0))
        .collect();
    by_time.sort_unstable();
    let turns = by_time.chunk_by(|one, next| one.1 == next.1).count();
    assert!((7..=9).contains(&turns), "{turns}");
    let kinds = store.findings(&runs[0]).unwrap();
    assert!(
        kinds
            .iter()
            .any(|finding| finding.kind == FindingKind::Rotated)
    );
}

#[test]
fn servers_that_do_not_run_at_a_time_are_measured_in_groups_with_the_base() {
    let lab = lab(GROUPS);
    let (store, runs, report) = carried_out(&lab, &[]);
    let mut candidates = Vec::new();
    for (number, run) in (1..).zip(&runs) {
        let plan = store.plan(run).unwrap();
        let part = plan.experiment.as_ref().unwrap();
        assert_eq!((part.part, part.group), (1, Some((number, 2))));
        let roles: Vec<Role> = plan.servers.iter().map(|server| server.role).collect();
        assert_eq!(roles, [Role::Base, Role::Placebo, Role::Candidate]);
        candidates.push(
            plan.servers[2]
                .settings
                .iter()
                .any(|(name, value)| (name.as_str(), value.as_str()) == ("work_mem", "8MB")),
        );
        let slices = store.slices(run).unwrap();
        assert!((0..3).all(|server| slices.iter().any(|slice| slice.server.0 == server)));
    }
    assert_eq!(candidates, [false, true]);
    assert!(report.contains("measured in 2 groups"), "{report}");
}

#[test]
fn a_run_without_a_placebo_is_one_that_the_file_asks_for() {
    let lab = lab(&INSERT.replace("seconds = 1\n", "seconds = 1\nplacebo = false\n"));
    let output = lab.run(&["run", "study.toml", "--dry-run"]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(!said.contains("placebo"), "{said}");
    assert!(
        said.contains("2 passes") && said.contains("2 x 2000"),
        "{said}"
    );
}

#[test]
fn what_is_wrong_with_scripts_and_steps_is_refused_before_anything_starts() {
    let refused = |text_of: String, only: &[&str], wanted: &str| {
        let lab = lab(&text_of);
        let output = lab.run(&[&RUN[..], only].concat());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(wanted), "{wanted}: {said}");
        assert!(!lab.path().join("lab").exists(), "{wanted}");
    };
    let pgbench = |from: &str, to: &str| PGBENCH.replace(from, to);
    refused(pgbench("\"select\"", "\"selct\""), &[], "selct");
    refused(
        pgbench("\"own.sql\", {", "\"other.sql\", {"),
        &[],
        "other.sql",
    );
    refused(pgbench("most", "more"), &[], "most");
    refused(PGBENCH.to_owned(), &["--only", "mx"], "did you mean mix?");
    let insert = |from: &str, to: &str| INSERT.replace(from, to);
    refused(
        insert("rates = [100]", "steps = [\"l.x\", \"l.i0\"]"),
        &[],
        "l.i0",
    );
    refused(insert("rates = [100]", "rates = [70]"), &[], "70");
    refused(
        INSERT.to_owned(),
        &["--only", "qp101"],
        "did you mean qp100?",
    );
    refused(
        insert("[insert]", "[insert]\nrow = 1"),
        &[],
        "did you mean `rows`?",
    );
}
