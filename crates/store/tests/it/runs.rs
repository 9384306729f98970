use crate::data::{plan, slice};
use deltabench_model::fact::{FactKind, HostFacts, TimeUp};
use deltabench_model::finding::{Finding, FindingKind, Severity};
use deltabench_model::plan::{
    CellId, ExperimentPart, Plan, SensitivityPart, ServerId, SessionPart, Varied, WorkloadSource,
};
use deltabench_model::problem::Problem;
use deltabench_store::{FILE_NAME, Found, Reached, Recorded, RunState, Store, StoreError};
use rusqlite::Connection;

#[test]
fn a_plan_comes_back_as_it_was_and_before_anything_is_measured() {
    let lab = tempfile::tempdir().unwrap();
    Store::open(lab.path())
        .unwrap()
        .create_run("one", &plan(), RunState::Running, 5)
        .unwrap();
    let store = Store::open_existing(lab.path()).unwrap();
    assert_eq!(store.plan("one").unwrap(), plan());
    assert_eq!(store.runs().unwrap()[0].state, RunState::Running);
}

#[test]
fn a_name_is_given_once_and_last_never() {
    let lab = tempfile::tempdir().unwrap();
    let mut store = Store::open(lab.path()).unwrap();
    store
        .create_run("one", &plan(), RunState::Running, 5)
        .unwrap();
    for name in ["", "last"] {
        assert!(
            matches!(
                store.create_run(name, &plan(), RunState::Running, 6),
                Err(StoreError::Misuse { .. })
            ),
            "{name}"
        );
    }
    // All of them or none.
    let both = [("two", &plan()), ("one", &plan())];
    match store.create_runs(&both, RunState::Planned, 6) {
        Err(StoreError::Taken { name, .. }) => assert_eq!(name, "one"),
        other => panic!("{other:?}"),
    }
    assert!(matches!(
        store.plan("two"),
        Err(StoreError::UnknownRun { .. })
    ));
}

#[test]
fn a_kind_of_work_of_a_newer_version_is_named_with_the_way_out() {
    let lab = tempfile::tempdir().unwrap();
    let mut store = Store::open(lab.path()).unwrap();
    store
        .create_run("one", &plan(), RunState::Running, 5)
        .unwrap();
    drop(store);
    let raw = Connection::open(lab.path().join(FILE_NAME)).unwrap();
    // Nothing changes a plan, so the newer version is played by a store without this rule.
    let rule = "select name from sqlite_master where type = 'trigger' and tbl_name = 'run' \
                and sql like '%update%'";
    let rules: Vec<String> = raw
        .prepare(rule)
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    for rule in rules {
        raw.execute(&format!("drop trigger {rule}"), []).unwrap();
    }
    let sql = "update run set plan = json_set(plan, '$.work', json('{\"kind\": \"telepathy\"}'))";
    assert_eq!(raw.execute(sql, []).unwrap(), 1);
    drop(raw);
    let store = Store::open_existing(lab.path()).unwrap();
    let problem = Problem::from(store.plan("one").unwrap_err());
    assert!(
        problem.error.ends_with("does not know: telepathy"),
        "{problem}"
    );
    assert!(problem.hint.unwrap().starts_with("upgrade deltabench"));
}

#[test]
fn a_plan_of_a_newer_format_is_refused() {
    let lab = tempfile::tempdir().unwrap();
    let mut store = Store::open(lab.path()).unwrap();
    let mut newer = plan();
    newer.version += 1;
    store
        .create_run("one", &newer, RunState::Running, 5)
        .unwrap();
    let error = store.plan("one").unwrap_err();
    assert!(matches!(error, StoreError::Newer { .. }), "{error}");
}

#[test]
fn a_summary_counts_whole_blocks_and_has_the_newest_state() {
    let lab = tempfile::tempdir().unwrap();
    let mut store = Store::open(lab.path()).unwrap();
    store
        .create_run("one", &plan(), RunState::Running, 5)
        .unwrap();
    for (block, cell) in [(0, 1), (0, 0), (1, 0)] {
        store.begin_visit("one", CellId(cell), block).unwrap();
        store.append("one", &slice(cell, block, 0)).unwrap();
        store.commit_visit("one", CellId(cell), block).unwrap();
    }
    store.finish_run("one", RunState::Interrupted, 9).unwrap();
    store.finish_run("one", RunState::Running, 10).unwrap();
    store.finish_run("one", RunState::Finished, 11).unwrap();
    let summary = &store.runs().unwrap()[0];
    assert_eq!(
        (
            summary.state,
            summary.started_unix_ms,
            summary.state_unix_ms
        ),
        (RunState::Finished, 5, 11)
    );
    assert_eq!(
        (
            summary.blocks_done,
            summary.blocks_planned,
            summary.visits_done,
            summary.cells
        ),
        (1, 4, 3, 2)
    );
    let reached = Reached {
        state: summary.state,
        started_unix_ms: 5,
        state_unix_ms: 11,
    };
    assert_eq!(store.reached("one").unwrap(), Some(reached));
    assert_eq!(store.reached("on").unwrap(), None);
    assert_eq!(summary.base, "postgres:17.11");
    assert_eq!(summary.candidates, ["postgres:18.6"]);
}

#[test]
fn facts_and_findings_come_back_in_order_and_by_run() {
    let lab = tempfile::tempdir().unwrap();
    let mut store = Store::open(lab.path()).unwrap();
    store
        .create_run("one", &plan(), RunState::Running, 5)
        .unwrap();
    store
        .create_run("two", &plan(), RunState::Running, 6)
        .unwrap();
    let whole = (None, None);
    store.add_fact("one", whole, &HostFacts::default()).unwrap();
    store
        .add_fact("one", (Some(ServerId(2)), Some(3)), &TimeUp(1))
        .unwrap();
    store
        .add_fact("one", (Some(ServerId(0)), None), &TimeUp(0))
        .unwrap();
    store.add_fact("two", whole, &TimeUp(7)).unwrap();
    let fact = |server, block, blocks| Recorded {
        server,
        block,
        fact: TimeUp(blocks),
    };
    assert_eq!(
        store.facts("one").unwrap(),
        [
            fact(Some(ServerId(2)), Some(3), 1),
            fact(Some(ServerId(0)), None, 0)
        ]
    );
    assert_eq!(
        store.last_fact("one", Some(ServerId(0))).unwrap(),
        Some(TimeUp(0))
    );
    assert_eq!(store.last_fact::<TimeUp>("one", None).unwrap(), None);
    let json = store.last_json("one", FactKind::Host).unwrap().unwrap();
    assert_eq!(json["online_cores"], 0);
    let findings = [Severity::Note, Severity::Confounder, Severity::Unfit]
        .map(|severity| Finding::new(FindingKind::own("k"), severity, "text"));
    for finding in &findings {
        store.add_finding("one", finding).unwrap();
    }
    assert_eq!(store.findings("one").unwrap(), findings);
    assert!(store.findings("two").unwrap().is_empty());
}

#[test]
fn a_run_that_belongs_to_another_is_found_by_its_full_name_only() {
    let lab = tempfile::tempdir().unwrap();
    let mut store = Store::open(lab.path()).unwrap();
    store
        .create_run("one", &plan(), RunState::Running, 5)
        .unwrap();
    let one = || "one".to_owned();
    let session = |number| SessionPart {
        first: one(),
        number,
        of: 2,
        gap_seconds: 0.0,
    };
    let varied = SensitivityPart {
        of: one(),
        varied: Varied::Tcp,
    };
    let changed = |change: &dyn Fn(&mut Plan)| {
        let mut part = plan();
        change(&mut part);
        part
    };
    let parts = [
        ("one-confirm", changed(&|plan| plan.confirms = Some(one()))),
        ("one-count", changed(&|plan| plan.counts = Some(one()))),
        ("one-1", changed(&|plan| plan.bisects = Some(one()))),
        ("one-sample", changed(&|plan| plan.samples = Some(one()))),
        (
            "one-tcp",
            changed(&|plan| plan.sensitivity = Some(varied.clone())),
        ),
        ("one-s2", changed(&|plan| plan.session = Some(session(2)))),
    ];
    for (name, part) in parts {
        assert_eq!(part.part_of(), Some("one"), "{name}");
        store.create_run(name, &part, RunState::Running, 6).unwrap();
        for wanted in ["last", "one", "o"] {
            assert_eq!(store.find(wanted).unwrap(), "one", "{wanted}");
        }
        assert_eq!(store.find(name).unwrap(), name);
    }
    assert_eq!(store.counting_for("one").unwrap(), ["one-count"]);
    assert_eq!(store.sampling_for("one").unwrap(), ["one-sample"]);
    let mut first = plan();
    first.session = Some(session(1));
    assert_eq!(first.part_of(), None);
}

#[test]
fn a_run_is_found_by_name_beginning_or_last() {
    let lab = tempfile::tempdir().unwrap();
    let mut store = Store::open(lab.path()).unwrap();
    let empty: Problem = store.find("last").unwrap_err();
    assert!(empty.error.contains("no runs"), "{empty}");
    // The newest by its start, not by its name or number.
    for (name, start) in [
        ("20251121-a", 30),
        ("20251121-b", 20),
        ("20251122-a", 10),
        ("2025", 1),
    ] {
        store
            .create_run(name, &plan(), RunState::Running, start)
            .unwrap();
    }
    assert_eq!(store.find("last").unwrap(), "20251121-a");
    assert_eq!(store.find("20251122").unwrap(), "20251122-a");
    assert_eq!(store.find("2025").unwrap(), "2025");
    let several = store.find("20251121").unwrap_err();
    assert_eq!(several.detail.unwrap(), "20251121-b\n20251121-a");
    let typo = store.find("20251211-a").unwrap_err();
    assert_eq!(typo.hint.unwrap(), "did you mean 20251121-a?");
    assert!(store.find("").is_err());
}

#[test]
fn a_lab_that_is_only_looked_at_is_not_made() {
    let lab = tempfile::tempdir().unwrap();
    let error = Store::open_existing(lab.path()).unwrap_err();
    assert!(matches!(error, StoreError::Missing { .. }), "{error}");
    assert!(!lab.path().join(FILE_NAME).exists());
}

#[test]
fn a_lab_that_cannot_be_made_is_named() {
    let lab = tempfile::tempdir().unwrap();
    let file = lab.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let error = Store::open(&file.join("lab")).unwrap_err();
    assert!(matches!(error, StoreError::Directory { .. }), "{error}");
    assert!(Problem::from(error).error.contains("file/lab"));
}

#[test]
fn records_can_be_neither_changed_nor_deleted() {
    let lab = tempfile::tempdir().unwrap();
    let mut store = Store::open(lab.path()).unwrap();
    store
        .create_run("one", &plan(), RunState::Running, 5)
        .unwrap();
    store.add_fact("one", (None, None), &TimeUp(1)).unwrap();
    store
        .add_finding(
            "one",
            &Finding::new(FindingKind::own("k"), Severity::Note, "text"),
        )
        .unwrap();
    store.begin_visit("one", CellId(0), 0).unwrap();
    let mut failing = slice(0, 0, 0);
    failing.errors.push(deltabench_model::slice::ErrorCount {
        sqlstate: "40001".to_owned(),
        count: 1,
        first_message: "could not serialize".to_owned(),
    });
    store.append("one", &failing).unwrap();
    store.commit_visit("one", CellId(0), 0).unwrap();
    let raw = Connection::open(lab.path().join(FILE_NAME)).unwrap();
    for (table, column) in [
        ("run", "name"),
        ("run_state", "state"),
        ("visit", "slices"),
        ("slice", "rows"),
        ("slice_error", "count"),
        ("fact", "value"),
        ("finding", "text"),
    ] {
        for sql in [
            format!("update {table} set {column} = {column}"),
            format!("delete from {table}"),
        ] {
            let error = raw.execute_batch(&sql).unwrap_err();
            assert!(
                error.to_string().contains("records are never"),
                "{sql}: {error}"
            );
        }
    }
}

#[test]
fn the_parts_of_an_experiment_are_found_together_by_the_name_of_their_execution() {
    let lab = tempfile::tempdir().unwrap();
    let mut store = Store::open(lab.path()).unwrap();
    let part = |execution: &str, part| {
        let mut plan = plan();
        plan.experiment = Some(ExperimentPart {
            execution: execution.to_owned(),
            experiment: "study".to_owned(),
            source: WorkloadSource {
                file: "study.toml".to_owned(),
                text: String::new(),
            },
            scale: None,
            part,
            of: 2,
            group: None,
            repetition: 1,
            coordinates: Vec::new(),
            left_out: Vec::new(),
        });
        plan
    };
    let planned = RunState::Planned;
    store
        .create_run("alone", &plan(), RunState::Running, 1)
        .unwrap();
    for (execution, start) in [("study-a", 2), ("study-b", 4)] {
        for number in [1, 2] {
            let run = format!("{execution}-{number}");
            let plan = part(execution, number);
            store
                .create_run(&run, &plan, planned, start + i64::from(number))
                .unwrap();
        }
    }
    let mut again = part("study-a", 1);
    again.confirms = Some("study-a-1".to_owned());
    store
        .create_run("study-a-1-confirm", &again, planned, 3)
        .unwrap();
    let found = |wanted: &str| store.find_any(wanted);
    let runs = |name: &str| vec![format!("{name}-1"), format!("{name}-2")];
    let execution = |name: &str| Found::Execution(name.to_owned(), runs(name));
    assert_eq!(found("study-a").unwrap(), execution("study-a"));
    assert_eq!(
        found("study-b-2").unwrap(),
        Found::Run("study-b-2".to_owned())
    );
    assert!(found("study").is_err() && store.find("study-a").is_err());
    // Nothing of the experiments was started.
    assert_eq!(found("last").unwrap(), Found::Run("alone".to_owned()));
    assert_eq!(
        store.runs().unwrap()[1].execution.as_deref(),
        Some("study-a")
    );
    store.finish_run("study-a-2", RunState::Running, 9).unwrap();
    let found = store.find_any("last").unwrap();
    assert_eq!(found, execution("study-a"));
}
