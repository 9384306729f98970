//! Hosts, occasions and series: added with a run, and never changed.

use crate::data::plan;
use deltabench_model::occasion::{HostClass, HostIdentity, Occasion, Series};
use deltabench_model::plan::CellId;
use deltabench_store::{FILE_NAME, RunState, Store};
use rusqlite::Connection;

fn occasion(uid: &str, kernel: &str, at_unix_ms: i64) -> Occasion {
    Occasion {
        host: HostIdentity {
            uid: "machine".to_owned(),
            class: HostClass {
                cores: 2,
                memory_gib: Some(8),
                ..HostClass::default()
            },
            kernel: Some(kernel.to_owned()),
            microcode: None,
        },
        uid: uid.to_owned(),
        boot_id: Some("boot".to_owned()),
        measurement_version: 1,
        at_unix_ms,
    }
}

fn series(key: &str) -> Series {
    Series {
        key: key.to_owned(),
        slug: format!("{key}@1"),
        content: "{}".to_owned(),
    }
}

#[test]
fn a_host_that_did_not_change_has_one_row_and_cells_keep_their_series() {
    let lab = tempfile::tempdir().unwrap();
    let mut store = Store::open(lab.path()).unwrap();
    for run in ["a", "b", "c"] {
        store
            .create_run(run, &plan(), RunState::Running, 1)
            .unwrap();
    }
    assert!(store.occasions("a").unwrap().is_empty() && store.series("a").unwrap().is_empty());
    let (first, resumed, other) = (
        occasion("1", "6.1", 10),
        occasion("2", "6.1", 20),
        occasion("3", "6.2", 30),
    );
    let known = [series("x"), series("y")];
    store.add_occasion("a", &first, &known).unwrap();
    // Resumed by a version with another text of a workload: what was measured stays what it was.
    store.add_occasion("a", &resumed, &[series("z")]).unwrap();
    store.add_occasion("b", &other, &known[1..]).unwrap();
    assert_eq!(store.occasions("a").unwrap(), [first, resumed]);
    assert_eq!(store.occasions("b").unwrap(), [other]);
    assert_eq!(store.series("a").unwrap(), known);
    assert_eq!(store.series("b").unwrap(), known[1..]);
    // A machine that cannot tell which one it is.
    store.add_series("c", &known).unwrap();
    store.add_series("c", &[series("z")]).unwrap();
    assert_eq!(store.series("c").unwrap(), known);
    assert!(store.occasions("c").unwrap().is_empty());
    let raw = Connection::open(lab.path().join(FILE_NAME)).unwrap();
    let hosts: Vec<i64> = raw
        .prepare("select from_unix_ms from host order by id")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(hosts, [10, 30], "another kernel is another host");
    for table in ["host", "occasion", "series", "cell_series"] {
        assert!(raw.execute(&format!("delete from {table}"), []).is_err());
    }
}

#[test]
fn a_run_that_was_begun_without_them_gets_no_host_and_no_series() {
    let lab = tempfile::tempdir().unwrap();
    let mut store = Store::open(lab.path()).unwrap();
    let begun = |store: &mut Store, run: &str, known: bool| {
        store
            .create_run(run, &plan(), RunState::Running, 1)
            .unwrap();
        if known {
            store.add_series(run, &[series("x")]).unwrap();
        }
        store.begin_visit(run, CellId(0), 0).unwrap();
        store.commit_visit(run, CellId(0), 0).unwrap();
        let resumed = occasion("1", "6.1", 20);
        store.add_occasion(run, &resumed, &[series("z")]).unwrap();
        assert!(store.occasions(run).unwrap().is_empty());
        store.series(run).unwrap()
    };
    assert!(begun(&mut store, "before", false).is_empty());
    assert_eq!(begun(&mut store, "unknown host", true), [series("x")]);
}
