use crate::data::plan;
use deltabench_model::plan::CellId;
use deltabench_store::{FILE_NAME, PlaceboResult, RecordedRatio, RunState, Store, StoreError};
use rusqlite::Connection;

fn result(cell: u32, verdict: &str) -> PlaceboResult {
    PlaceboResult {
        cell: CellId(cell),
        workload: "point-query".to_owned(),
        clients: 1,
        state: "fresh".to_owned(),
        verdict: verdict.to_owned(),
        throughput: Some(RecordedRatio {
            estimate: 0.998,
            ci95: Some((0.991, 1.005)),
            p: Some(0.3),
        }),
        server_cpu: Some(RecordedRatio {
            estimate: 1.001,
            ci95: None,
            p: None,
        }),
        blocks: 14,
        stopping: "sequential".to_owned(),
        host: "host-a".to_owned(),
        finished_unix_ms: 50,
    }
}

fn store(lab: &std::path::Path) -> Store {
    let mut store = Store::open(lab).unwrap();
    for (run, started) in [("late", 9), ("early", 5)] {
        store
            .create_run(run, &plan(), RunState::Running, started)
            .unwrap();
    }
    store
}

#[test]
fn placebo_results_come_back_as_they_were_oldest_run_first() {
    let lab = tempfile::tempdir().unwrap();
    let mut store = store(lab.path());
    let bare = PlaceboResult {
        throughput: None,
        server_cpu: None,
        host: "host-b".to_owned(),
        finished_unix_ms: 90,
        ..result(1, "unfit")
    };
    store
        .add_placebo_results("late", &[result(0, "no-change"), bare.clone()])
        .unwrap();
    store
        .add_placebo_results("early", &[result(0, "regression")])
        .unwrap();
    let lines = store.placebo_results().unwrap();
    let runs: Vec<&str> = lines.iter().map(|line| line.run.as_str()).collect();
    assert_eq!(runs, ["early", "late", "late"]);
    assert_eq!(lines[0].result, result(0, "regression"));
    assert_eq!(lines[2].result, bare);
    assert_eq!(lines[0].written_by, env!("CARGO_PKG_VERSION"));
}

#[test]
fn a_new_analysis_counts_in_place_of_the_old_one_which_stays_in_the_file() {
    let lab = tempfile::tempdir().unwrap();
    let mut store = store(lab.path());
    store
        .add_placebo_results("early", &[result(0, "regression"), result(1, "no-change")])
        .unwrap();
    store
        .add_placebo_results("early", &[result(0, "no-change")])
        .unwrap();
    store.add_placebo_results("early", &[]).unwrap();
    let lines = store.placebo_results().unwrap();
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0].result.verdict, "no-change");
    let raw = Connection::open(lab.path().join(FILE_NAME)).unwrap();
    let kept: u32 = raw
        .query_row("select count(*) from placebo_result", [], |row| row.get(0))
        .unwrap();
    assert_eq!(kept, 3);
    for sql in [
        "delete from placebo_result",
        "update placebo_result set verdict = 'no-change'",
    ] {
        assert!(raw.execute(sql, []).is_err(), "{sql}");
    }
}

#[test]
fn unknown_runs_and_open_visits_are_refused() {
    let lab = tempfile::tempdir().unwrap();
    let mut store = store(lab.path());
    assert!(matches!(
        store.add_placebo_results("never", &[result(0, "unfit")]),
        Err(StoreError::UnknownRun { .. })
    ));
    store.begin_visit("early", CellId(0), 0).unwrap();
    assert!(matches!(
        store.add_placebo_results("early", &[result(0, "unfit")]),
        Err(StoreError::Misuse { .. })
    ));
}
