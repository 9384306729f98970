use crate::data::{plan, slice};
use deltabench_model::counter::{Mark, Sample, VisitCounters};
use deltabench_model::invalidation::Invalidation;
use deltabench_model::plan::{CellId, ServerId};
use deltabench_store::{FILE_NAME, RunState, Store, StoreError};
use rusqlite::Connection;
use std::collections::BTreeMap;

fn opened() -> (tempfile::TempDir, Store) {
    let lab = tempfile::tempdir().unwrap();
    let mut store = Store::open(lab.path()).unwrap();
    store
        .create_run("one", &plan(), RunState::Running, 5)
        .unwrap();
    store
        .create_run("two", &plan(), RunState::Running, 6)
        .unwrap();
    (lab, store)
}

fn values(pairs: &[(&str, f64)]) -> BTreeMap<String, f64> {
    pairs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), *value))
        .collect()
}

fn counters(cell: u32, block: u32, server: u32) -> VisitCounters {
    VisitCounters {
        server: ServerId(server),
        cell: CellId(cell),
        block,
        operations: 12_345,
        values: values(&[
            ("wal_bytes", 9_007_199_254_740_991.0),
            ("wait:IO:DataFileRead", 0.5),
            ("io_reads", 0.0),
        ]),
    }
}

fn sample(at_ns: u64) -> Sample {
    Sample {
        at_ns,
        over_ns: 1_000_000_000,
        values: values(&[("cpu_user", 12.5), ("server_cpu@2", 100.25)]),
    }
}

fn mark(at_ns: u64, server: Option<ServerId>) -> Mark {
    Mark {
        at_ns,
        server,
        kind: "checkpoint".to_owned(),
        text: "wrote 42 buffers".to_owned(),
    }
}

fn misuse<T>(result: Result<T, StoreError>) -> bool {
    matches!(result, Err(StoreError::Misuse { .. }))
}

#[test]
fn counters_come_back_as_they_were_with_the_visit_that_made_them() {
    let (lab, mut store) = opened();
    store.begin_visit("one", CellId(1), 3).unwrap();
    store.append("one", &slice(1, 3, 0)).unwrap();
    for server in [2, 0, 1] {
        store.add_counters("one", &counters(1, 3, server)).unwrap();
    }
    // Another connection sees none before the visit is complete.
    let other = Store::open(lab.path()).unwrap();
    assert!(other.counters("one").unwrap().is_empty());
    store.commit_visit("one", CellId(1), 3).unwrap();
    let expected = [counters(1, 3, 2), counters(1, 3, 0), counters(1, 3, 1)];
    assert_eq!(other.counters("one").unwrap(), expected);
    assert!(other.counters("two").unwrap().is_empty());
}

#[test]
fn a_visit_repeated_after_an_abandoned_one_has_its_counters_once() {
    let (_lab, mut store) = opened();
    store.begin_visit("one", CellId(0), 0).unwrap();
    store.add_counters("one", &counters(0, 0, 0)).unwrap();
    store.add_samples("one", &[sample(7)]).unwrap();
    store
        .add_marks("one", &[mark(7, Some(ServerId(0)))])
        .unwrap();
    store.abandon_visit().unwrap();
    assert!(store.counters("one").unwrap().is_empty());
    assert!(store.samples("one").unwrap().is_empty());
    assert!(store.marks("one").unwrap().is_empty());
    // Between the two nothing may be left for it: that would be counted with the visit to come.
    assert!(misuse(store.add_counters("one", &counters(0, 0, 0))));
    store.begin_visit("one", CellId(0), 0).unwrap();
    store.add_counters("one", &counters(0, 0, 0)).unwrap();
    assert!(misuse(store.add_counters("one", &counters(0, 0, 0))));
    assert!(misuse(store.add_counters("one", &counters(1, 0, 0))));
    assert!(misuse(store.add_counters("two", &counters(0, 0, 0))));
    store.commit_visit("one", CellId(0), 0).unwrap();
    assert!(misuse(store.add_counters("one", &counters(0, 0, 0))));
    store.add_counters("one", &counters(0, 0, 1)).unwrap();
    let servers: Vec<ServerId> = store
        .counters("one")
        .unwrap()
        .iter()
        .map(|counters| counters.server)
        .collect();
    assert_eq!(servers, [ServerId(0), ServerId(1)]);
}

#[test]
fn what_json_or_sqlite_cannot_hold_is_refused_and_the_visit_goes_on() {
    let (_lab, mut store) = opened();
    store.begin_visit("one", CellId(0), 0).unwrap();
    for value in [f64::NAN, f64::INFINITY] {
        let mut bad = counters(0, 0, 0);
        bad.values.insert("io_reads".to_owned(), value);
        assert!(misuse(store.add_counters("one", &bad)));
        let bad = Sample {
            values: bad.values,
            ..sample(2)
        };
        assert!(misuse(store.add_samples("one", &[sample(1), bad])));
    }
    let mut large = counters(0, 0, 0);
    large.operations = u64::MAX;
    assert!(misuse(store.add_counters("one", &large)));
    // The first of the two must not stay behind.
    assert!(misuse(
        store.add_samples("one", &[sample(1), sample(u64::MAX)])
    ));
    assert!(misuse(
        store.add_marks("one", &[mark(1, None), mark(u64::MAX, None)])
    ));
    store.append("one", &slice(0, 0, 0)).unwrap();
    store.commit_visit("one", CellId(0), 0).unwrap();
    assert_eq!(store.slices("one").unwrap().len(), 1);
    assert!(store.counters("one").unwrap().is_empty());
    assert!(store.samples("one").unwrap().is_empty());
    assert!(store.marks("one").unwrap().is_empty());
}

#[test]
fn samples_are_read_in_order_of_time_whether_in_a_visit_or_not() {
    let (lab, mut store) = opened();
    store.add_samples("one", &[sample(30), sample(40)]).unwrap();
    store.begin_visit("one", CellId(0), 0).unwrap();
    store.add_samples("one", &[sample(20)]).unwrap();
    store.add_samples("one", &[]).unwrap();
    store.commit_visit("one", CellId(0), 0).unwrap();
    let store = Store::open(lab.path()).unwrap();
    let expected = [sample(20), sample(30), sample(40)];
    assert_eq!(store.samples("one").unwrap(), expected);
    assert!(store.samples("two").unwrap().is_empty());
}

#[test]
fn a_mark_read_again_from_a_log_is_stored_once() {
    let (_lab, mut store) = opened();
    let all = [
        mark(5, None),
        mark(5, Some(ServerId(0))),
        mark(5, Some(ServerId(1))),
    ];
    store.add_marks("one", &all).unwrap();
    store.begin_visit("one", CellId(0), 0).unwrap();
    store.add_marks("one", &all).unwrap();
    let other = Mark {
        text: "wrote 43 buffers".to_owned(),
        ..mark(5, None)
    };
    store
        .add_marks(
            "one",
            &[all[1].clone(), other.clone(), mark(4, Some(ServerId(1)))],
        )
        .unwrap();
    store.commit_visit("one", CellId(0), 0).unwrap();
    store.add_marks("two", &all[..1]).unwrap();
    let [first, second, third] = all;
    let expected = [
        mark(4, Some(ServerId(1))),
        first.clone(),
        second,
        third,
        other,
    ];
    assert_eq!(store.marks("one").unwrap(), expected);
    assert_eq!(store.marks("two").unwrap(), [first]);
}

fn withdrawal(cell: Option<CellId>, reason: &str) -> Invalidation {
    Invalidation {
        cell,
        reason: reason.to_owned(),
        at_unix_ms: 1_763_721_780_123,
    }
}

#[test]
fn withdrawals_come_back_in_order_and_nothing_else_changes() {
    let (lab, mut store) = opened();
    let all = [
        withdrawal(Some(CellId(1)), "a backup ran"),
        withdrawal(None, "wrong build"),
        withdrawal(Some(CellId(1)), "a backup ran"),
    ];
    for one in &all {
        store.invalidate("one", one).unwrap();
    }
    let store = Store::open(lab.path()).unwrap();
    assert_eq!(store.invalidations("one").unwrap(), all);
    assert!(store.invalidations("two").unwrap().is_empty());
    assert_eq!(store.runs().unwrap().len(), 2);
}

#[test]
fn a_withdrawal_needs_a_reason_a_known_cell_and_no_open_visit() {
    let (_lab, mut store) = opened();
    assert!(misuse(store.invalidate("one", &withdrawal(None, " \n"))));
    assert!(misuse(
        store.invalidate("one", &withdrawal(Some(CellId(2)), "x"))
    ));
    assert!(matches!(
        store.invalidate("never", &withdrawal(None, "x")),
        Err(StoreError::UnknownRun { .. })
    ));
    store.begin_visit("one", CellId(0), 0).unwrap();
    assert!(misuse(store.invalidate("one", &withdrawal(None, "x"))));
    store.abandon_visit().unwrap();
    assert!(store.invalidations("one").unwrap().is_empty());
}

#[test]
fn records_of_every_kind_refuse_to_be_changed() {
    let (lab, mut store) = opened();
    store.begin_visit("one", CellId(0), 0).unwrap();
    store.add_counters("one", &counters(0, 0, 0)).unwrap();
    store.commit_visit("one", CellId(0), 0).unwrap();
    store.add_samples("one", &[sample(1)]).unwrap();
    store.add_marks("one", &[mark(1, None)]).unwrap();
    store.invalidate("one", &withdrawal(None, "x")).unwrap();
    let raw = Connection::open(lab.path().join(FILE_NAME)).unwrap();
    for table in ["visit_counters", "sample", "mark", "invalidation"] {
        for sql in [
            format!("update {table} set run = 2"),
            format!("delete from {table}"),
        ] {
            let error = raw.execute(&sql, []).unwrap_err();
            assert!(
                error.to_string().contains("records are never"),
                "{sql}: {error}"
            );
        }
    }
}

#[test]
fn values_that_cannot_be_read_are_an_error() {
    let (lab, store) = opened();
    let raw = Connection::open(lab.path().join(FILE_NAME)).unwrap();
    raw.execute_batch(
        "insert into visit_counters (run, block, cell, server, operations, counters)
         values (1, 0, 0, 0, 9, '[]');
         insert into sample (run, at_ns, over_ns, series) values (1, 0, 0, '{\"x\": \"y\"}')",
    )
    .unwrap();
    let damaged = |error: StoreError| matches!(error, StoreError::Damaged { .. });
    assert!(damaged(store.counters("one").unwrap_err()));
    assert!(damaged(store.samples("one").unwrap_err()));
}

/// Written by version 3 of the schema: its steps, and a run with a slice.
#[test]
fn a_lab_of_version_3_opens_and_keeps_its_records() {
    let lab = tempfile::tempdir().unwrap();
    let raw = Connection::open(lab.path().join(FILE_NAME)).unwrap();
    raw.pragma_update(None, "journal_mode", "wal").unwrap();
    raw.pragma_update(None, "application_id", 0x444C_5442)
        .unwrap();
    raw.execute_batch(
        "create table migration (number integer primary key, name text not null, sql text not null, \
         applied_by text not null) strict",
    )
    .unwrap();
    let steps = [
        include_str!("../../src/migrations/0001-first.sql"),
        include_str!("../../src/migrations/0002-neighbours.sql"),
        include_str!("../../src/migrations/0003-placebo-ledger.sql"),
    ];
    for (number, sql) in (1..).zip(steps) {
        raw.execute_batch(sql).unwrap();
        raw.execute(
            "insert into migration values (?1, 'old', ?2, '0.1.0')",
            (number, sql),
        )
        .unwrap();
    }
    let text = serde_json::to_string(&plan()).unwrap();
    raw.execute("insert into run values (1, 'old', ?1, 5, '0.1.0')", [&text])
        .unwrap();
    raw.execute_batch(
        "insert into run_state values (1, 1, 'running', 5);
         insert into visit values (1, 1, 0, 0, 1);
         insert into slice (run, block, cell, round, position, server, connection, started_ns, duration_ns, \
         operations, failed, rows, client_cpu_ns, latency_histogram) \
         values (1, 0, 0, 0, 0, 0, 0, 1, 2, 3, 0, 3, 1, x'')",
    )
    .unwrap();
    drop(raw);
    let mut store = Store::open_existing(lab.path()).unwrap();
    assert_eq!(store.plan("old").unwrap(), plan());
    assert_eq!(store.slices("old").unwrap().len(), 1);
    assert_eq!(store.completed_visits("old").unwrap(), [(0, CellId(0))]);
    assert!(store.counters("old").unwrap().is_empty());
    assert!(store.invalidations("old").unwrap().is_empty());
    store.add_counters("old", &counters(0, 0, 0)).unwrap();
    store
        .invalidate("old", &withdrawal(None, "too old"))
        .unwrap();
    drop(store);
    let store = Store::open(lab.path()).unwrap();
    assert_eq!(store.counters("old").unwrap(), [counters(0, 0, 0)]);
    assert_eq!(store.invalidations("old").unwrap().len(), 1);
}
