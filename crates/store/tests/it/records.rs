use crate::data::plan;
use deltabench_model::plan::{CellId, ServerId};
use deltabench_model::record::Record;
use deltabench_model::slice::VoidReason;
use deltabench_model::work::Work;
use deltabench_model::work::insert::{InsertSetup, InsertStep};
use deltabench_store::{RunState, Store, StoreError};
use deltabench_testkit::{small_insert, small_replay};

fn record(server: ServerId, cell: CellId, operations: u64) -> Record {
    Record {
        kind: "piece".to_owned(),
        server,
        cell,
        block: 2,
        void: None,
        payload: format!("{{\"operations\":{operations},\"wal_bytes\":0.1}}"),
    }
}

#[test]
fn records_come_back_as_they_were_and_the_later_of_two_counts() {
    let lab = tempfile::tempdir().unwrap();
    let mut store = Store::open(lab.path()).unwrap();
    for run in ["one", "two"] {
        store
            .create_run(run, &plan(), RunState::Running, 5)
            .unwrap();
    }
    for one in [
        record(ServerId(0), CellId(0), 10),
        record(ServerId(0), CellId(1), 20),
        record(ServerId(1), CellId(0), 30),
    ] {
        store.add_record("one", &one).unwrap();
    }
    store
        .add_record("one", &record(ServerId(0), CellId(0), 40))
        .unwrap();
    store
        .add_record("two", &record(ServerId(0), CellId(0), 50))
        .unwrap();
    let again = Store::open(lab.path()).unwrap();
    let other = Record {
        kind: "other".to_owned(),
        void: Some(VoidReason::Stalled),
        ..record(ServerId(0), CellId(0), 60)
    };
    store.add_record("one", &other).unwrap();
    let expected = [
        record(ServerId(0), CellId(1), 20),
        record(ServerId(1), CellId(0), 30),
        record(ServerId(0), CellId(0), 40),
        other,
    ];
    assert_eq!(again.records("one").unwrap(), expected);
    assert!(again.slices("one").unwrap().is_empty());
}

#[test]
fn a_pass_is_done_when_all_servers_have_all_of_its_records_good() {
    let lab = tempfile::tempdir().unwrap();
    let mut store = Store::open(lab.path()).unwrap();
    let mut plan = plan();
    plan.work = Work::Insert(InsertSetup {
        write_rows: 250,
        steps: vec![InsertStep::LoadRows],
        ..small_insert()
    });
    store
        .create_run("one", &plan, RunState::Running, 5)
        .unwrap();
    let done = |store: &Store| {
        let summary = store.runs().unwrap().remove(0);
        (summary.blocks_done, summary.visits_done)
    };
    let places: Vec<(ServerId, CellId)> = ServerId::each()
        .zip(&plan.servers)
        .flat_map(|(server, _)| {
            CellId::each()
                .zip(&plan.cells)
                .map(move |(cell, _)| (server, cell))
        })
        .collect();
    let mut count = 0;
    for &(server, cell) in &places {
        assert_eq!(done(&store), (0, count));
        store.add_record("one", &record(server, cell, 1)).unwrap();
        count += 1;
    }
    assert_eq!(done(&store), (1, count));
    let lost = Record {
        void: Some(VoidReason::ServerLost),
        ..record(ServerId(0), CellId(0), 1)
    };
    store.add_record("one", &lost).unwrap();
    assert_eq!(done(&store), (0, count - 1), "the later one counts");
    store
        .add_record("one", &record(ServerId(0), CellId(0), 1))
        .unwrap();
    assert_eq!(done(&store), (1, count));
}

#[test]
fn a_record_does_not_go_into_an_open_visit() {
    let lab = tempfile::tempdir().unwrap();
    let mut store = Store::open(lab.path()).unwrap();
    store
        .create_run("one", &plan(), RunState::Running, 5)
        .unwrap();
    store.begin_visit("one", CellId(0), 0).unwrap();
    let refused = store.add_record("one", &record(ServerId(0), CellId(0), 1));
    assert!(matches!(refused, Err(StoreError::Misuse { .. })));
}

#[test]
fn a_block_of_a_replay_is_done_with_a_statement_that_all_servers_have() {
    let lab = tempfile::tempdir().unwrap();
    let mut store = Store::open(lab.path()).unwrap();
    let mut plan = plan();
    plan.work = Work::Replay(small_replay());
    store
        .create_run("one", &plan, RunState::Running, 5)
        .unwrap();
    let done = |store: &Store| {
        let summary = store.runs().unwrap().remove(0);
        (summary.blocks_done, summary.visits_done)
    };
    let visit = |block: u32, cell: u32, servers: u32| -> Vec<Record> {
        let of = |server| Record {
            block,
            ..record(ServerId(server), CellId(cell), 1)
        };
        (0..servers).map(of).collect()
    };
    // The third is torn by a kill; not every block has every statement.
    for (records, wanted) in [
        (visit(0, 0, 3), (1, 1)),
        (visit(0, 1, 3), (1, 2)),
        (visit(1, 0, 2), (1, 2)),
        (visit(2, 1, 3), (2, 3)),
    ] {
        for record in records {
            store.add_record("one", &record).unwrap();
        }
        assert_eq!(done(&store), wanted);
    }
}
