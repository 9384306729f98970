//! What is on the servers.

use crate::lab::{Lab, ask, cell, executables, installations, plan, value};
use deltabench_driver::{Lane, LaneSpec, SliceRequest};
use deltabench_model::plan::{Cell, CellId, CellOrder, DataState, Plan, ServerId, WorkloadSource};
use deltabench_proc::mounts::{mount_of, mounts};
use deltabench_run::fleet::Fleet;
use deltabench_run::load::address_for;
use deltabench_run::readback::{ServerReadback, data_findings};
use deltabench_run::schedule::BlockSchedule;
use deltabench_run::visit::Address;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

static GO_ON: AtomicBool = AtomicBool::new(false);

/// Hash of all rows of both tables and of the size of every relation.
const CHECKSUM: &str = "SELECT md5(string_agg(t, ',')) FROM (\
    SELECT sbtest1::text t FROM sbtest1 UNION ALL SELECT sbtest2::text FROM sbtest2 ORDER BY 1) AS rows";
const ROWS: &str = "SELECT (SELECT count(*) FROM sbtest1) + (SELECT count(*) FROM sbtest2)";
const BYTES: &str = "SELECT sum(pg_relation_size(oid)) FROM pg_class \
    WHERE relnamespace = 'deltabench'::regnamespace";

fn loaded<'a>(plan: &'a Plan, lab: &Lab, run: &str) -> Fleet<'a> {
    let mut fleet = lab.fleet(plan, run).unwrap();
    let readbacks = fleet.load(&executables(plan), &GO_ON, &mut |_| {}).unwrap();
    assert_eq!(readbacks.unwrap().len(), plan.servers.len());
    fleet
}

/// Sends operations of a cell's workload.
fn send(plan: &Plan, address: &Address, cell: &Cell, operations: u64) {
    let place = plan.cells.iter().position(|other| other == cell).unwrap();
    let address = address_for(address, plan.order, cell);
    let mut lane = Lane::connect(&LaneSpec {
        servers: &[(address.endpoint, address.login)],
        executable: &executables(plan)[place],
        clients: 1,
        jobs: 1,
        cores: &[],
        op_timeout: Duration::from_secs(60),
        rate: None,
    })
    .unwrap();
    let outcome = lane.run_slice(
        0,
        SliceRequest {
            operations,
            seed: 5,
            first_operation: 0,
        },
    );
    assert_eq!((outcome.operations, outcome.void), (operations, None));
}

#[test]
fn settings_of_a_server_stay_with_it_whichever_cluster_it_is_given() {
    let lab = Lab::new();
    let installation = installations().pop().unwrap();
    let read = cell("point-query", false, DataState::Fresh);
    let mut plan = plan(&[&installation; 3], vec![read.clone()], 1000);
    plan.servers[2].settings = vec![("work_mem".to_owned(), "8MB".to_owned())];
    let mut fleet = lab.fleet(&plan, "own-settings").unwrap();
    let stop = AtomicBool::new(false);
    fleet.load(&[], &stop, &mut |_| {}).unwrap().unwrap();
    let mut clusters = std::collections::HashSet::new();
    for block in 0..6 {
        let schedule = BlockSchedule::of(&plan, block);
        clusters.insert(schedule.slots.clone());
        let memories: Vec<String> = fleet
            .start(&schedule)
            .unwrap()
            .iter()
            .map(|address| value(&plan, address, &read, "SHOW work_mem"))
            .collect();
        assert_eq!(memories, ["4MB", "4MB", "8MB"], "block {block}");
        fleet.stop().unwrap();
    }
    assert!(clusters.len() > 1, "clusters are exchanged");
    fleet.dismantle().unwrap();
}

#[test]
fn a_renewed_database_is_the_one_that_was_loaded_whatever_was_written() {
    let lab = Lab::new();
    for (number, installation) in installations().iter().enumerate() {
        let read = cell("point-query", false, DataState::Fresh);
        let write = cell("write-only", true, DataState::Fresh);
        let plan = plan(&[installation], vec![read.clone(), write.clone()], 2000);
        let mut fleet = loaded(&plan, &lab, &format!("renewed-{number}"));
        let schedule = BlockSchedule::of(&plan, 0);
        let address = fleet.start(&schedule).unwrap().remove(0);
        let as_loaded = [CHECKSUM, BYTES].map(|sql| value(&plan, &address, &read, sql));
        assert!(
            !fleet.warm(&schedule, ServerId(0), &write).unwrap(),
            "nothing to warm yet"
        );
        for _ in 0..2 {
            fleet.renew(&schedule, ServerId(0), &write).unwrap();
            let renewed = [CHECKSUM, BYTES].map(|sql| value(&plan, &address, &write, sql));
            assert_eq!(renewed, as_loaded, "{}", installation.resolved);
            send(&plan, &address, &write, 500);
            assert_ne!(value(&plan, &address, &write, CHECKSUM), as_loaded[0]);
            assert_eq!(value(&plan, &address, &write, ROWS), "4000");
            assert_eq!(value(&plan, &address, &read, CHECKSUM), as_loaded[0]);
        }
        fleet.dismantle().unwrap();
    }
    assert!(lab.is_empty());
}

#[test]
fn a_renewal_leaves_nothing_to_be_written() {
    let lab = Lab::new();
    for (number, installation) in installations().iter().enumerate() {
        let write = cell("update-index", true, DataState::Fresh);
        let plan = plan(&[installation], vec![write.clone()], 20_000);
        let mut fleet = loaded(&plan, &lab, &format!("clean-{number}"));
        let schedule = BlockSchedule::of(&plan, 0);
        let address = fleet.start(&schedule).unwrap().remove(0);
        let base = [ServerId(0)];
        // The second visit to the cell is known to be short.
        for visit in 0..2 {
            fleet
                .renew_all(&schedule, &base, (CellId(0), &write))
                .unwrap();
            assert_eq!(value(&plan, &address, &write, "SHOW fsync"), "on");
            ask(
                &plan,
                &address,
                &write,
                "CREATE EXTENSION pg_buffercache SCHEMA public",
            );
            let of_tables = "FROM public.pg_buffercache b JOIN pg_class c \
                ON b.relfilenode = pg_relation_filenode(c.oid) \
                WHERE c.relnamespace = 'deltabench'::regnamespace AND b.relforknumber = 0";
            let count = |what: &str| -> u64 {
                let sql = format!("SELECT count(*) {of_tables} {what}");
                value(&plan, &address, &write, &sql).parse().unwrap()
            };
            assert_eq!(count("AND b.isdirty"), 0, "{}", installation.resolved);
            let pages = "SELECT sum(relpages) FROM pg_class WHERE relkind IN ('r', 'i') \
                AND relnamespace = 'deltabench'::regnamespace";
            let pages: u64 = value(&plan, &address, &write, pages).parse().unwrap();
            assert!(
                count("") >= pages,
                "all of {pages} pages are in shared buffers"
            );
            send(&plan, &address, &write, 2000);
            assert!(count("AND b.isdirty") > 100);
            fleet.forget_cached(&schedule, &base).unwrap();
            let others = cell("point-query", false, DataState::Fresh);
            let there = "SELECT count(*) FROM pg_database WHERE datname = 'deltabench_work'";
            let left = value(&plan, &address, &others, there);
            let directory = mount_of(&mounts(Path::new("/")), fleet.directory()).unwrap();
            let cached = visit == 1 && ["ext4", "xfs"].contains(&directory.kind.as_str());
            let expected = if cached { "0" } else { "1" };
            assert_eq!(left, expected, "{visit} {}", directory.kind);
            // Each making is a file copy of the server, and one without the disk is told by its log.
            let log = fleet.log(&schedule, ServerId(0));
            let off = log.contains("parameter \"fsync\" changed to \"off\"");
            assert_eq!(off, cached, "{log}");
        }
        fleet.dismantle().unwrap();
    }
}

#[test]
fn aged_tables_have_the_same_rows_on_all_versions_and_their_copies() {
    let lab = Lab::new();
    let all = installations();
    let (first, last) = (&all[0], &all[all.len() - 1]);
    let aged = cell("range-covered-si", false, DataState::Aged);
    let fresh = cell("point-query", false, DataState::Fresh);
    let write = cell("update-index", true, DataState::Aged);
    let cells = vec![aged.clone(), fresh.clone(), write.clone()];
    let plan = plan(&[first, first, last], cells, 5000);
    let mut notes = Vec::new();
    let mut fleet = lab.fleet(&plan, "aged").unwrap();
    let readbacks = fleet
        .load(&executables(&plan), &GO_ON, &mut |note| notes.push(note))
        .unwrap()
        .unwrap();
    assert!(
        notes.iter().all(|note| note.starts_with("loading ")),
        "{notes:?}"
    );
    let copies: Vec<Option<usize>> = readbacks.iter().map(|server| server.copy_of).collect();
    let alone = first.bin_dir == last.bin_dir;
    assert_eq!(copies, [None, Some(0), alone.then_some(0)]);
    for readback in &readbacks {
        let rows: Vec<u64> = readback.sizes.iter().map(|size| size.rows).collect();
        assert_eq!(rows, [10_000, 10_000]);
        assert!(readback.sizes[1].relation_bytes > readback.sizes[0].relation_bytes);
        assert_eq!(readback.relation_bytes, readback.sizes[0].relation_bytes);
        let aging = readback.aging.as_ref().unwrap();
        assert_eq!(aging.steps.len(), 8);
        assert_eq!(aging.steps[1].operations, 1000);
        assert_eq!(readback.plans.len(), 3);
        assert!(readback.plans[0][0].contains("Index Only Scan"));
        assert!(readback.plans[2][0].contains("Update on sbtest"));
    }
    let has = |kind: &str, readbacks: &[ServerReadback]| {
        let findings = data_findings(&plan, readbacks);
        findings.iter().any(|finding| finding.kind == kind)
    };
    assert!(!has("rows-differ", &readbacks));
    // Two builds have a load each, and two servers of one build share it.
    let mut shared = readbacks.clone();
    shared[2].copy_of = Some(0);
    assert!(has("loads-differ", &readbacks) != alone && !has("loads-differ", &shared));
    let mut lost = readbacks.clone();
    lost[2].sizes[1].rows -= 1;
    assert!(has("rows-differ", &lost));
    let schedule = BlockSchedule::of(&plan, 0);
    let addresses = fleet.start(&schedule).unwrap();
    let of = |cell: &Cell| -> Vec<String> {
        let checksum = |address| value(&plan, address, cell, CHECKSUM);
        addresses.iter().map(checksum).collect()
    };
    let (old, new) = (of(&aged), of(&fresh));
    assert!(old.iter().all(|sum| *sum == old[0]) && new.iter().all(|sum| *sum == new[0]));
    assert_ne!(old[0], new[0]);
    fleet.renew(&schedule, ServerId(2), &write).unwrap();
    assert_eq!(value(&plan, &addresses[2], &write, CHECKSUM), old[0]);
    fleet.dismantle().unwrap();
    assert!(lab.is_empty());
}

#[test]
fn in_the_published_order_reads_see_what_writes_left() {
    let lab = Lab::new();
    let installation = &installations()[0];
    let read = cell("point-query", false, DataState::Fresh);
    let write = cell("delete", true, DataState::Fresh);
    let mut plan = plan(&[installation], vec![write.clone(), read.clone()], 2000);
    plan.order = CellOrder::Published;
    let mut fleet = loaded(&plan, &lab, "published");
    let schedule = BlockSchedule::of(&plan, 0);
    let address = fleet.start(&schedule).unwrap().remove(0);
    fleet.renew(&schedule, ServerId(0), &write).unwrap();
    send(&plan, &address, &write, 100);
    let left: u64 = value(&plan, &address, &read, ROWS).parse().unwrap();
    assert!((3900..4000).contains(&left), "{left}");
    fleet.dismantle().unwrap();
}

const OWN_TABLES: &str = r#"
format = "deltabench.workload"
version = 1

name = "orders"
group = "write"
label = "1"
writes = true
description = "An order changes."
source = "a test"

[[table]]
name = "orders"
create = "CREATE TABLE {table} (id integer, total bigint NOT NULL)"
rows = "rows * 2"
fill = "INSERT INTO {table} SELECT i, hashint4(i) FROM generate_series(1, {rows}) AS i"
indexes = ["ALTER TABLE {table} ADD PRIMARY KEY (id)"]

[[before]]
sql = "UPDATE {table} SET total = 0"

[[before]]
run = "vacuum"

[[after]]
sql = "CREATE TABLE seen AS SELECT count(*) FROM {table}"

[parameter.id]
kind = "uniform"
low = 1
high = "rows * 2"

[[step]]
sql = "UPDATE orders SET total = total + 1 WHERE id=:id"
"#;

#[test]
fn a_user_s_tables_are_loaded_beside_those_of_sysbench_and_chores_are_done() {
    let lab = Lab::new();
    let installation = &installations()[0];
    let read = cell("point-query", false, DataState::Fresh);
    let own = cell("orders", true, DataState::Fresh);
    let mut plan = plan(&[installation], vec![read, own.clone()], 500);
    plan.workloads.push(WorkloadSource {
        file: "orders.toml".to_owned(),
        text: OWN_TABLES.to_owned(),
    });
    let mut fleet = loaded(&plan, &lab, "own");
    let schedule = BlockSchedule::of(&plan, 0);
    let address = fleet.start(&schedule).unwrap().remove(0);
    fleet.renew(&schedule, ServerId(0), &own).unwrap();
    let orders = "SELECT count(*) || ' ' || count(DISTINCT total) FROM orders";
    assert_eq!(value(&plan, &address, &own, orders), "1000 1000");
    fleet
        .before_visit(&schedule, &[ServerId(0)], &own, &GO_ON)
        .unwrap();
    assert_eq!(value(&plan, &address, &own, orders), "1000 1");
    send(&plan, &address, &own, 200);
    assert_eq!(
        value(&plan, &address, &own, "SELECT sum(total) FROM orders"),
        "200"
    );
    fleet
        .after_visit(&schedule, &[ServerId(0)], &own, &GO_ON)
        .unwrap();
    assert_eq!(
        value(&plan, &address, &own, "SELECT count FROM seen"),
        "1000"
    );
    fleet.dismantle().unwrap();
}

#[test]
fn an_interrupted_load_ends_without_a_result_and_leaves_nothing() {
    let lab = Lab::new();
    let installation = &installations()[0];
    let cells = vec![cell("point-query", false, DataState::Aged)];
    let plan = plan(&[installation], cells, 1000);
    let mut fleet = lab.fleet(&plan, "interrupted").unwrap();
    let stop = AtomicBool::new(true);
    let readbacks = fleet.load(&executables(&plan), &stop, &mut |_| {}).unwrap();
    assert_eq!(readbacks, None);
    fleet.dismantle().unwrap();
    assert!(lab.is_empty());
}
