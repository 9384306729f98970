use crate::data::plan;
use deltabench_model::insert::{
    InsertRole, InsertSecond, InsertSetup, InsertStep, Pacing, RoleTally, StepRecord,
};
use deltabench_model::slice::VoidReason;
use deltabench_model::work::Work;
use deltabench_store::{RunState, Store, StoreError};

fn record(server: u32, cell: u32, operations: u64) -> StepRecord {
    StepRecord {
        server,
        cell,
        block: 2,
        position: 1,
        started_ns: 1_763_721_780_000_000_000,
        duration_ns: 60_000_000_001,
        operations,
        server_cpu_ns: Some(1),
        run_queue_wait_ns: None,
        switches: Some(3),
        client_cpu_ns: 4,
        foreign_cpu_ns: None,
        steal_ns: Some(0),
        cpu_pressure_ns: None,
        roles: vec![RoleTally {
            role: InsertRole::Insert,
            statements: operations,
            rows: operations * 50,
            failed: 1,
            retries: 2,
            latency_histogram: vec![0, 255, 7],
            max_service_ns: 9,
            schedule_lag_ns: Some(5),
            missed: 6,
            errors: Vec::new(),
        }],
        seconds: vec![InsertSecond {
            inserted: 50,
            max_delete_us: 7,
            ..InsertSecond::default()
        }],
        clients: vec![0.1, 1e9],
        values: [("wal_bytes".to_owned(), 0.1)].into(),
        void: None,
        void_detail: None,
    }
}

#[test]
fn steps_come_back_as_they_were_and_the_later_of_two_counts() {
    let lab = tempfile::tempdir().unwrap();
    let mut store = Store::open(lab.path()).unwrap();
    for run in ["one", "two"] {
        store
            .create_run(run, &plan(), RunState::Running, 5)
            .unwrap();
    }
    for step in [record(0, 0, 10), record(0, 1, 20), record(1, 0, 30)] {
        store.add_step("one", &step).unwrap();
    }
    store.add_step("one", &record(0, 0, 40)).unwrap();
    store.add_step("two", &record(0, 0, 50)).unwrap();
    let again = Store::open(lab.path()).unwrap();
    let expected = [record(0, 1, 20), record(1, 0, 30), record(0, 0, 40)];
    assert_eq!(again.steps("one").unwrap(), expected);
    let slices = again.slices("one").unwrap();
    assert_eq!(slices.len(), 3, "steps are slices");
    assert_eq!(slices[2].operations, 40);
    assert_eq!(slices[2].latency_histogram, [0, 255, 7]);
    assert_eq!(slices[2].schedule_lag_ns, Some(5));
}

#[test]
fn a_pass_is_done_when_all_servers_have_all_of_its_steps_good() {
    let lab = tempfile::tempdir().unwrap();
    let mut store = Store::open(lab.path()).unwrap();
    let mut plan = plan();
    plan.work = Work::Insert(InsertSetup {
        clients: 1,
        shared_table: false,
        rows: 1000,
        write_rows: 250,
        query_seconds: 1,
        steps: vec![InsertStep::LoadRows],
        pacing: Pacing::Spread,
        settle_seconds: None,
        long_transaction_seconds: None,
    });
    store
        .create_run("one", &plan, RunState::Running, 5)
        .unwrap();
    let done = |store: &Store| {
        let summary = store.runs().unwrap().remove(0);
        (summary.blocks_done, summary.visits_done)
    };
    let places: Vec<(u32, u32)> = (0..)
        .zip(&plan.servers)
        .flat_map(|(server, _)| (0..).zip(&plan.cells).map(move |(cell, _)| (server, cell)))
        .collect();
    let mut count = 0;
    for &(server, cell) in &places {
        assert_eq!(done(&store), (0, count));
        store.add_step("one", &record(server, cell, 1)).unwrap();
        count += 1;
    }
    assert_eq!(done(&store), (1, count));
    let lost = StepRecord {
        void: Some(VoidReason::ServerLost),
        void_detail: None,
        ..record(0, 0, 1)
    };
    store.add_step("one", &lost).unwrap();
    assert_eq!(done(&store), (0, count - 1), "the later one counts");
    store.add_step("one", &record(0, 0, 1)).unwrap();
    assert_eq!(done(&store), (1, count));
}

#[test]
fn a_step_does_not_go_into_an_open_visit() {
    let lab = tempfile::tempdir().unwrap();
    let mut store = Store::open(lab.path()).unwrap();
    store
        .create_run("one", &plan(), RunState::Running, 5)
        .unwrap();
    store.begin_visit("one", 0, 0).unwrap();
    let refused = store.add_step("one", &record(0, 0, 1));
    assert!(matches!(refused, Err(StoreError::Misuse { .. })));
}
