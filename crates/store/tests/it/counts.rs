//! Instructions counted.

use crate::data;
use deltabench_model::counts::CountRecord;
use deltabench_model::plan::{CellId, ServerId};
use deltabench_model::profile::Grower;
use deltabench_model::profile::NodeId;
use deltabench_store::{RunState, Store};

fn count(cell: u32, server: u32, window: u32) -> CountRecord {
    CountRecord {
        server: ServerId(server),
        cell: CellId(cell),
        start: 0,
        window,
        operations: 400,
        instructions: 18_000_000,
        of_marks: 226_000,
        of_clock: 9_700,
        rows: 400,
        failed: 0,
        beside: (window == 0).then_some(0.001),
    }
}

#[test]
fn counts_and_profiles_come_back_as_they_were_stored() {
    let lab = tempfile::tempdir().unwrap();
    let mut store = Store::open(lab.path()).unwrap();
    let plan = data::plan();
    store.create_run("r", &plan, RunState::Running, 0).unwrap();
    assert_eq!(store.counts("r").unwrap(), []);
    let counts = [count(1, 1, 0), count(1, 1, 1)];
    store.add_counts("r", &counts).unwrap();
    store.add_counts("r", &[count(0, 0, 0)]).unwrap();
    let found = store.counts("r").unwrap();
    assert_eq!(found, [count(0, 0, 0), counts[0], counts[1]]);
    assert_eq!(found[1].net(), 17_764_300);
    let mut grower = Grower::new("PostgresMain");
    let node = grower.child(NodeId(0), "exec_bind_message", "postgres");
    grower.take(node, 12, 3);
    let profile = grower.grown();
    store
        .add_count_profile("r", (ServerId(1), CellId(0)), &profile)
        .unwrap();
    assert_eq!(
        store.count_profile("r", (ServerId(1), CellId(0))).unwrap(),
        Some(profile)
    );
    assert_eq!(
        store.count_profile("r", (ServerId(0), CellId(0))).unwrap(),
        None
    );
}
