//! Real servers: what their statistics and the kernel say about known work.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use deltabench_driver::admin::Client;
use deltabench_observe::ServerCounters;
use deltabench_observe::server_stats::{fold, moved, readings_apart, stat_queries};
use deltabench_proc::process_tree;
use deltabench_testkit::Cluster;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

fn connect(cluster: &Cluster) -> Client {
    let limit = Duration::from_secs(60);
    Client::connect(&cluster.endpoint(), &cluster.login(), limit).unwrap()
}

fn first(client: &mut Client, sql: &str) -> Vec<Option<String>> {
    client.query(sql).unwrap().swap_remove(0)
}

/// Waits until all backends but the resident processes have ended.
fn settle(cluster: &Cluster, resident: &[u32]) {
    let deadline = Instant::now() + Duration::from_secs(60);
    let there = || process_tree(cluster.pid()).unwrap();
    while there().iter().any(|pid| !resident.contains(pid)) {
        assert!(Instant::now() < deadline, "sessions stay");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn reading(cluster: &Cluster, version: u32) -> BTreeMap<String, f64> {
    let mut client = connect(cluster);
    let mut values = BTreeMap::new();
    for query in stat_queries(version) {
        let row = first(&mut client, &query.sql);
        assert_eq!(row.len(), query.keys.len(), "{}", query.sql);
        fold(&query, &row, &mut values);
    }
    values
}

#[test]
fn known_work_is_what_the_statistics_say() {
    for cluster in Cluster::for_each_target("", &["autovacuum=off", "track_io_timing=on"]) {
        let mut client = connect(&cluster);
        let version = first(&mut client, "show server_version_num")[0].clone();
        let version: u32 = version.unwrap().parse().unwrap();
        for sql in [
            "create table t (a int primary key, b int)",
            "insert into t select i, i from generate_series(1, 1000) as i",
        ] {
            client.execute(sql).unwrap();
        }
        let mut resident = process_tree(cluster.pid()).unwrap();
        resident.retain(|&pid| pid != client.backend_pid());
        drop(client);
        settle(&cluster, &resident);
        let before = reading(&cluster, version);
        settle(&cluster, &resident);
        let mut client = connect(&cluster);
        let mut counters = ServerCounters::open(cluster.pid()).unwrap();
        for row in 1..=100 {
            let update = format!("update t set b = b + 1 where a = {row}");
            client.execute(&update).unwrap();
        }
        for _ in 0..20 {
            client.query("select sum(b) from t").unwrap();
        }
        let kernel = counters.read();
        drop(client);
        settle(&cluster, &resident);
        std::thread::sleep(readings_apart(version));
        check(version, &moved(&before, &reading(&cluster, version)));
        let switches =
            kernel["process_voluntary_switches"] + kernel["process_involuntary_switches"];
        assert!(switches >= 100.0, "{kernel:?}");
        assert!(kernel["process_minor_faults"] >= 1.0, "{kernel:?}");
        let tree = process_tree(cluster.pid()).unwrap();
        assert!(tree.len() > 3, "{tree:?}");
        let memory = counters.finish()["memory_pss_bytes"];
        assert!(memory > 1e6, "{memory}");
    }
}

fn check(version: u32, work: &BTreeMap<String, f64>) {
    let at = |key: &str| work.get(key).copied();
    let exactly = |key: &str, value: f64| {
        assert!((work[key] - value).abs() < 0.5, "{version} {key}: {work:?}");
    };
    exactly("tables_updates", 100.0);
    exactly("tables_seq_scans", 20.0);
    assert!(
        at("tables_index_scans") >= Some(100.0),
        "{version} {work:?}"
    );
    // The session that reads takes some.
    let transactions = work["database_transactions"];
    assert!((120.0..140.0).contains(&transactions), "{version} {work:?}");
    assert!(
        at("database_rows_returned") >= Some(20_000.0),
        "{version} {work:?}"
    );
    assert!(at("database_block_read_ns").is_some(), "{version} {work:?}");
    assert!(at("database_bytes") > Some(1e6), "{version} {work:?}");
    assert!(at("wal_lsn_bytes") > Some(1000.0), "{version} {work:?}");
    let has = |key: &str, since: u32| {
        assert_eq!(
            at(key).is_some(),
            version >= since,
            "{version} {key}: {work:?}"
        );
    };
    has("wal_records", 140_000);
    has("io_evictions", 160_000);
    assert_eq!(at("backend_buffers").is_some(), version < 170_000);
    if version >= 140_000 {
        assert!(at("wal_records") >= Some(200.0), "{version} {work:?}");
        // Page heads are in the position and in no record.
        let (counted, position) = (work["wal_bytes"], work["wal_lsn_bytes"]);
        assert!(
            (0.8..1.25).contains(&(counted / position)),
            "{version} {work:?}"
        );
    }
}
