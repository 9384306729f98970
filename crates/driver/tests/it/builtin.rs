//! Every built-in workload on real servers, where `DELTABENCH_TEST_TARGETS` names some.

use crate::PATIENCE;
use deltabench_driver::{Client, Lane, LaneSpec, SliceRequest};
use deltabench_model::plan::DataSize;
use deltabench_model::slice::VoidReason;
use deltabench_testkit::Cluster;
use deltabench_workload::{Library, Sbtest};

const SIZE: DataSize = DataSize {
    tables: 2,
    rows: 500,
};

fn load(client: &mut Client) {
    let data = Sbtest::new(SIZE, 1);
    client.execute("DROP SCHEMA IF EXISTS s CASCADE").unwrap();
    client.execute("CREATE SCHEMA s").unwrap();
    for table in 1..=SIZE.tables {
        for sql in data.create_sql("s", table) {
            client.execute(&sql).unwrap();
        }
        let mut rows = data.rows(table);
        let copy = data.copy_sql("s", table);
        client
            .copy_in(&copy, &mut |buffer| rows.fill(buffer))
            .unwrap();
        for sql in data.index_sql("s", table) {
            client.query(&sql).unwrap();
        }
    }
}

fn rows_left(client: &mut Client) -> u64 {
    let sql = "SELECT (SELECT count(*) FROM s.sbtest1) + (SELECT count(*) FROM s.sbtest2)";
    let rows = client.query(sql).unwrap();
    rows[0][0].as_deref().unwrap().parse().unwrap()
}

#[test]
fn a_real_server_takes_every_builtin_workload() {
    for cluster in Cluster::for_each_target("", &[]) {
        let mut admin = Client::connect(&cluster.endpoint(), &cluster.login(), PATIENCE).unwrap();
        let mut login = cluster.login();
        login.options = vec![("search_path".into(), "s".into())];
        let servers = [(cluster.endpoint(), login)];
        // Tables that nobody has written to serve the next workload too.
        let mut are_fresh = false;
        for definition in Library::builtin().unwrap().all() {
            let name = &definition.name;
            for clients in [1, 3] {
                if !are_fresh {
                    load(&mut admin);
                }
                are_fresh = !definition.writes;
                let executable = definition.compile(&SIZE).unwrap();
                let spec = LaneSpec {
                    servers: &servers,
                    executable: &executable,
                    clients,
                    jobs: 1,
                    cores: &[],
                    op_timeout: PATIENCE,
                    rate: None,
                };
                let mut lane = Lane::connect(&spec).unwrap();
                let request = SliceRequest {
                    operations: 40,
                    seed: 9,
                    first_operation: 0,
                };
                let outcome = lane.run_slice(0, request);
                assert_eq!(outcome.void, None, "{name}: {:?}", outcome.void_detail);
                // Two of three clients may delete and put back the same row at once.
                let collisions = outcome.errors.iter().filter(|e| e.sqlstate == "23505");
                let collided = collisions.map(|error| error.count).sum::<u64>();
                assert_eq!(
                    outcome.operations + collided,
                    40,
                    "{name}: {:?}",
                    outcome.errors
                );
                assert!(clients > 1 || collided == 0);
                let left = rows_left(&mut admin);
                match name.as_str() {
                    "insert" => assert_eq!(left, 1040),
                    "delete-existing" => assert_eq!(left, 960),
                    "delete" => assert!((960..1000).contains(&left)),
                    _ => assert_eq!(left, 1000, "{name}"),
                }
                match name.trim_end_matches(".pre") {
                    "point-query" => assert_eq!(outcome.rows, 40),
                    "hot-points" => assert_eq!(outcome.rows, 4000),
                    "read-only-count" => assert_eq!(outcome.rows, 40),
                    "scan" | "insert" | "delete" | "update-zipf" => assert_eq!(outcome.rows, 0),
                    _ => {}
                }
            }
        }
    }
}

#[test]
fn a_sequence_that_is_used_up_ends_the_workload_clearly() {
    for cluster in Cluster::for_each_target("", &[]) {
        let mut admin = Client::connect(&cluster.endpoint(), &cluster.login(), PATIENCE).unwrap();
        load(&mut admin);
        let mut login = cluster.login();
        login.options = vec![("search_path".into(), "s".into())];
        let library = Library::builtin().unwrap();
        let executable = library
            .get("delete-existing")
            .unwrap()
            .compile(&SIZE)
            .unwrap();
        let mut lane = Lane::connect(&LaneSpec {
            servers: &[(cluster.endpoint(), login)],
            executable: &executable,
            clients: 2,
            jobs: 1,
            cores: &[],
            op_timeout: PATIENCE,
            rate: None,
        })
        .unwrap();
        let mut first_operation = 0;
        for (seed, operations) in [(1, 600), (2, 400)] {
            let request = SliceRequest {
                operations,
                seed,
                first_operation,
            };
            assert_eq!(lane.run_slice(0, request).void, None);
            first_operation += operations;
            assert_eq!(rows_left(&mut admin), 1000 - first_operation);
        }
        let outcome = lane.run_slice(
            0,
            SliceRequest {
                operations: 1,
                seed: 3,
                first_operation,
            },
        );
        assert_eq!(outcome.void, Some(VoidReason::NothingDone));
        let detail = outcome.void_detail.unwrap();
        assert_eq!(
            detail,
            "delete-existing ends after 1000 operations: a sequence is used up"
        );
        assert!(lane.is_usable(0));
    }
}
