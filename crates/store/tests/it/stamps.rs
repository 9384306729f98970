use deltabench_model::invalidation::Invalidation;
use deltabench_store::{RunState, Store};
use deltabench_testkit::small_run;

#[test]
fn a_stamp_changes_with_what_is_stored_of_its_run_alone() {
    let lab = tempfile::tempdir().unwrap();
    let mut store = Store::open(lab.path()).unwrap();
    let plan = small_run::plan();
    for (run, at) in [("a", 1), ("b", 2)] {
        store.create_run(run, &plan, RunState::Running, at).unwrap();
    }
    let stamps = |store: &Store| -> Vec<String> {
        let all = store.stamps().unwrap().into_iter();
        all.map(|one| one.stamp).collect()
    };
    let mut before = stamps(&store);
    small_run::keep(&mut store, "a", [1.0; 3]);
    let withdrawal = Invalidation {
        cell: None,
        reason: "a backup ran".to_owned(),
        at_unix_ms: 5,
    };
    for step in 0..2 {
        let after = stamps(&store);
        assert_ne!(after[0], before[0], "step {step}");
        assert_eq!(after[1], before[1], "step {step}");
        before = after;
        store.invalidate("a", &withdrawal).unwrap();
    }
    assert_eq!(store.done("a", &plan).unwrap(), (8, 24));
}

#[test]
fn who_reads_alone_sees_what_others_write_and_cannot_write() {
    let lab = tempfile::tempdir().unwrap();
    let mut store = Store::open(lab.path()).unwrap();
    let mut reader = Store::open_to_read(lab.path()).unwrap();
    let before = reader.data_version().unwrap();
    let plan = small_run::plan();
    store.create_run("a", &plan, RunState::Running, 1).unwrap();
    assert_ne!(reader.data_version().unwrap(), before);
    assert_eq!(reader.stamps().unwrap().len(), 1);
    let refused = reader.create_run("b", &plan, RunState::Running, 2);
    assert!(refused.is_err(), "written");
}
