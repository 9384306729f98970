//! Against real servers, where `DELTABENCH_TEST_TARGETS` names some.

use crate::PATIENCE;
use deltabench_driver::peer::{Peer, PeerRun, PeerWork, run_peer};
use deltabench_driver::selfbench::{Rival, SelfbenchCell, SelfbenchSpec, selfbench_client};
use deltabench_driver::{Client, Lane, LaneSpec, SliceRequest, TlsFailure, WireError};
use deltabench_model::endpoint::{Endpoint, Login, Tls};
use deltabench_model::plan::Placement;
use deltabench_model::slice::VoidReason;
use deltabench_testkit::{Cluster, not_tested};
use deltabench_workload::executable::{Executable, Slot, Statement, Step, TableChoice, Value};
use std::time::{Duration, Instant};

const ROWS: i64 = 1000;

fn client(cluster: &Cluster) -> Client {
    Client::connect(&cluster.endpoint(), &cluster.login(), PATIENCE).unwrap()
}

fn load(client: &mut Client) {
    client
        .execute("CREATE TABLE t (id int PRIMARY KEY, k int NOT NULL, c text)")
        .unwrap();
    let mut next = 0;
    let rows = client
        .copy_in("COPY t FROM STDIN", &mut |data| {
            for _ in 0..100 {
                next += 1;
                data.extend_from_slice(format!("{next}\t0\t{}\n", "x".repeat(100)).as_bytes());
            }
            next < ROWS
        })
        .unwrap();
    assert_eq!(rows, u64::try_from(ROWS).unwrap());
}

fn one_step(sql: &str, slots: Vec<Slot>, values: Vec<Value>) -> Executable {
    let step = Step {
        statements: vec![0],
        table: TableChoice::Keep,
        values,
    };
    let statement = Statement::prepared(sql, slots);
    Executable::single("one-step", vec![statement], vec![step], 1)
}

fn range() -> Executable {
    let values = vec![Value::Range {
        low: 1,
        high: ROWS - 99,
        add: 99,
    }];
    one_step(
        "SELECT c FROM t WHERE id BETWEEN $1 AND $2",
        vec![Slot::BigInt; 2],
        values,
    )
}

fn update() -> Executable {
    let mut executable = crate::transaction();
    executable.statements[1].sql = "UPDATE t SET k = k + 1 WHERE id = $1".into();
    executable
}

#[test]
fn a_real_server_does_the_operations_it_is_sent() {
    for cluster in Cluster::for_each_target("", &[]) {
        let mut admin = client(&cluster);
        load(&mut admin);
        let servers = [(cluster.endpoint(), cluster.login())];
        for clients in [1, 4] {
            let range = range();
            let spec = LaneSpec {
                servers: &servers,
                executable: &range,
                clients,
                jobs: 1,
                cores: &[],
                op_timeout: PATIENCE,
                rate: None,
            };
            let mut lane = Lane::connect(&spec).unwrap();
            let outcome = lane.run_slice(
                0,
                SliceRequest {
                    operations: 300,
                    seed: 1,
                    first_operation: 0,
                },
            );
            assert_eq!(
                (outcome.operations, outcome.rows, outcome.void),
                (300, 30_000, None)
            );
            assert_eq!(
                lane.backend_pids(0).len(),
                usize::try_from(clients).unwrap()
            );
            let pid = format!(
                "SELECT count(*) FROM pg_stat_activity WHERE pid = {}",
                lane.backend_pids(0)[0]
            );
            assert_eq!(admin.query(&pid).unwrap(), [[Some("1".to_owned())]]);

            admin.execute("UPDATE t SET k = 0").unwrap();
            let update = update();
            let spec = LaneSpec {
                executable: &update,
                ..spec
            };
            let outcome = Lane::connect(&spec).unwrap().run_slice(
                0,
                SliceRequest {
                    operations: 200,
                    seed: 1,
                    first_operation: 0,
                },
            );
            assert_eq!((outcome.operations, outcome.void), (200, None));
            assert_eq!(
                admin.query("SELECT sum(k) FROM t").unwrap(),
                [[Some("200".to_owned())]]
            );
        }
    }
}

#[test]
fn certificates_are_looked_at_as_far_as_that_is_asked_for() {
    let settings = ["listen_addresses=127.0.0.1", "ssl=on"];
    for cluster in Cluster::for_each_target("host all all 127.0.0.1/32 trust", &settings) {
        let Endpoint::Tcp { port, .. } = cluster.tcp_endpoint() else {
            panic!("not on TCP");
        };
        let connect = |host: &str, tls: Tls| {
            let host = host.to_owned();
            let endpoint = Endpoint::Tcp { host, port, tls };
            Client::connect(&endpoint, &cluster.login(), PATIENCE)
        };
        let named = || Some(cluster.certificate());
        for (host, tls) in [
            ("localhost", Tls::VerifyFull(named())),
            ("127.0.0.1", Tls::VerifyCa(named())),
            ("127.0.0.1", Tls::Unverified),
            ("127.0.0.1", Tls::Preferred),
        ] {
            let mut client = connect(host, tls.clone()).unwrap();
            let encrypted = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
            let found = client.query(encrypted).unwrap();
            assert_eq!(found, [[Some("t".to_owned())]], "{tls:?}");
        }
        for (host, tls) in [
            ("127.0.0.1", Tls::VerifyFull(named())),
            ("localhost", Tls::VerifyCa(None)),
        ] {
            let error = connect(host, tls.clone()).unwrap_err();
            let WireError::Tls { failure, .. } = &error else {
                panic!("{tls:?}: {error}");
            };
            // A machine without any roots says so.
            let untrusted = matches!(failure, TlsFailure::Untrusted(_) | TlsFailure::NoRoots(_));
            assert!(untrusted, "{error}");
        }
    }
}

#[test]
fn a_server_without_tls_is_used_without_it_only_where_that_is_enough() {
    let settings = ["listen_addresses=127.0.0.1"];
    for cluster in Cluster::for_each_target("host all all 127.0.0.1/32 trust", &settings) {
        let Endpoint::Tcp { host, port, .. } = cluster.tcp_endpoint() else {
            panic!("not on TCP");
        };
        let connect = |tls: Tls| {
            let host = host.clone();
            let endpoint = Endpoint::Tcp { host, port, tls };
            Client::connect(&endpoint, &cluster.login(), PATIENCE)
        };
        connect(Tls::Preferred).unwrap().query("SELECT 1").unwrap();
        let error = connect(Tls::Unverified).unwrap_err();
        assert!(
            matches!(
                &error,
                WireError::Tls {
                    failure: TlsFailure::NotOffered,
                    ..
                }
            ),
            "{error}"
        );
    }
}

#[test]
fn a_real_server_is_driven_over_tcp_and_tls_as_over_its_socket() {
    let settings = ["listen_addresses=127.0.0.1", "ssl=on"];
    for cluster in Cluster::for_each_target("host all all 127.0.0.1/32 trust", &settings) {
        // COPY with much data both ways through TLS.
        let tls = cluster.tls_endpoint();
        let mut admin = Client::connect(&tls, &cluster.login(), PATIENCE).unwrap();
        load(&mut admin);
        let encrypted = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
        assert_eq!(admin.query(encrypted).unwrap(), [[Some("t".to_owned())]]);
        let servers = [cluster.endpoint(), cluster.tcp_endpoint(), tls]
            .map(|endpoint| (endpoint, cluster.login()));
        let range = range();
        for clients in [1, 4] {
            let spec = LaneSpec {
                servers: &servers,
                executable: &range,
                clients,
                jobs: 1,
                cores: &[],
                op_timeout: PATIENCE,
                rate: None,
            };
            let mut lane = Lane::connect(&spec).unwrap();
            for server in [0, 1, 2] {
                let request = SliceRequest {
                    operations: 300,
                    seed: 1,
                    first_operation: 0,
                };
                let outcome = lane.run_slice(server, request);
                assert_eq!(
                    (outcome.operations, outcome.rows, outcome.void),
                    (300, 30_000, None)
                );
            }
        }
    }
}

#[test]
fn a_real_server_without_tls_is_told_from_one_that_is_not_there() {
    let settings = ["listen_addresses=127.0.0.1"];
    for cluster in Cluster::for_each_target("host all all 127.0.0.1/32 trust", &settings) {
        let refused = Client::connect(&cluster.tls_endpoint(), &cluster.login(), PATIENCE);
        let error = refused.unwrap_err().to_string();
        assert!(
            error.contains("does not support TLS") && error.contains("(TLS)"),
            "{error}"
        );
    }
}

#[test]
fn a_real_server_reports_errors_inside_transactions() {
    for cluster in Cluster::for_each_target("", &[]) {
        let mut admin = client(&cluster);
        load(&mut admin);
        admin
            .execute("ALTER TABLE t ADD CHECK (id > 50 OR k < 1)")
            .unwrap();
        let update = update();
        let servers = [(cluster.endpoint(), cluster.login())];
        for clients in [1, 4] {
            admin.execute("UPDATE t SET k = 0").unwrap();
            let spec = LaneSpec {
                servers: &servers,
                executable: &update,
                clients,
                jobs: 1,
                cores: &[],
                op_timeout: PATIENCE,
                rate: None,
            };
            let outcome = Lane::connect(&spec).unwrap().run_slice(
                0,
                SliceRequest {
                    operations: 400,
                    seed: 3,
                    first_operation: 0,
                },
            );
            let done = outcome.operations.to_string();
            assert_eq!(outcome.void, None);
            assert_eq!(outcome.errors.len(), 1);
            assert_eq!(
                (outcome.errors[0].sqlstate.as_str(), outcome.errors[0].count),
                ("23514", outcome.failed)
            );
            assert!(outcome.failed > 50 && outcome.operations > 50);
            assert_eq!(
                admin.query("SELECT sum(k) FROM t").unwrap(),
                [[Some(done)]],
                "failed ones left no trace"
            );
        }
    }
}

#[test]
fn a_real_server_takes_our_passwords() {
    let hba = "local all clear password\nlocal all hashed md5\nlocal all scram scram-sha-256";
    for cluster in Cluster::for_each_target(hba, &[]) {
        let mut admin = client(&cluster);
        for (user, encryption) in [
            ("clear", "scram-sha-256"),
            ("hashed", "md5"),
            ("scram", "scram-sha-256"),
        ] {
            let make = format!(
                "SET password_encryption = '{encryption}'; CREATE ROLE {user} LOGIN PASSWORD 'sécret'"
            );
            admin.execute(&make).unwrap();
            let login = |password: &str| Login {
                user: user.into(),
                database: "postgres".into(),
                password: Some(password.into()),
                options: vec![("application_name".into(), "deltabench test".into())],
                confirm_path: false,
            };
            let mut good =
                Client::connect(&cluster.endpoint(), &login("sécret"), PATIENCE).unwrap();
            let rows = good
                .query("SELECT current_user, current_setting('application_name'), NULL")
                .unwrap();
            assert_eq!(
                rows,
                [[
                    Some(user.to_owned()),
                    Some("deltabench test".to_owned()),
                    None
                ]]
            );
            let error =
                Client::connect(&cluster.endpoint(), &login("wrong"), PATIENCE).unwrap_err();
            assert_eq!(error.sqlstate(), Some("28P01"), "{error}");
        }
    }
}

#[test]
fn a_real_backend_that_is_terminated_makes_the_slice_void() {
    for cluster in Cluster::for_each_target("", &[]) {
        let mut admin = client(&cluster);
        load(&mut admin);
        let servers = [(cluster.endpoint(), cluster.login())];
        for clients in [1, 4] {
            let range = range();
            let spec = LaneSpec {
                servers: &servers,
                executable: &range,
                clients,
                jobs: 1,
                cores: &[],
                op_timeout: PATIENCE,
                rate: None,
            };
            let mut lane = Lane::connect(&spec).unwrap();
            admin
                .query(&format!(
                    "SELECT pg_terminate_backend({})",
                    lane.backend_pids(0)[0]
                ))
                .unwrap();
            let outcome = lane.run_slice(
                0,
                SliceRequest {
                    operations: 1_000_000,
                    seed: 1,
                    first_operation: 0,
                },
            );
            assert_eq!(outcome.void, Some(VoidReason::ServerLost));
            assert_eq!(outcome.errors[0].sqlstate, "57P01");
            lane.reconnect(0).unwrap();
            assert_eq!(
                lane.run_slice(
                    0,
                    SliceRequest {
                        operations: 10,
                        seed: 1,
                        first_operation: 0,
                    }
                )
                .operations,
                10
            );
        }
    }
}

#[test]
fn a_real_server_does_not_work_on_for_a_slice_that_stalled() {
    for cluster in Cluster::for_each_target("", &[]) {
        let mut admin = client(&cluster);
        let sleep = one_step("SELECT pg_sleep(600 + $1)", vec![Slot::BigInt], {
            vec![Value::Uniform {
                low: 1,
                high: 1,
                count: 1,
            }]
        });
        for clients in [1, 3] {
            let spec = LaneSpec {
                servers: &[(cluster.endpoint(), cluster.login())],
                executable: &sleep,
                clients,
                jobs: 1,
                cores: &[],
                op_timeout: Duration::from_millis(300),
                rate: None,
            };
            let mut lane = Lane::connect(&spec).unwrap();
            let request = SliceRequest {
                operations: 10,
                seed: 1,
                first_operation: 0,
            };
            assert_eq!(lane.run_slice(0, request).void, Some(VoidReason::Stalled));
            let asleep = "SELECT count(*) FROM pg_stat_activity
                WHERE state = 'active' AND query LIKE 'SELECT pg_sleep%'";
            let limit = Instant::now() + PATIENCE;
            while admin.query(asleep).unwrap() != [[Some("0".to_owned())]] {
                assert!(Instant::now() < limit, "it still sleeps");
            }
        }
    }
}

#[test]
fn a_real_copy_that_fails_half_way_says_why_and_leaves_the_client_usable() {
    for cluster in Cluster::for_each_target("", &[]) {
        let mut admin = client(&cluster);
        admin.execute("CREATE TABLE small (id int)").unwrap();
        let mut pieces = 0;
        let error = admin
            .copy_in("COPY small FROM STDIN", &mut |data| {
                pieces += 1;
                let text = if pieces == 3 { "not a number\n" } else { "1\n" };
                data.extend_from_slice(text.repeat(5000).as_bytes());
                pieces < 200
            })
            .unwrap_err();
        assert_eq!(error.sqlstate(), Some("22P02"), "{error}");
        assert_eq!(
            admin.query("SELECT count(*) FROM small").unwrap(),
            [[Some("0".to_owned())]]
        );
        let error = admin
            .copy_in("COPY nowhere FROM STDIN", &mut |_| false)
            .unwrap_err();
        assert_eq!(error.sqlstate(), Some("42P01"));
        assert_eq!(
            admin.query("SELECT 1; SELECT 2").unwrap(),
            [[Some("2".to_owned())]]
        );
    }
}

#[test]
fn installed_peers_do_the_operations_they_are_given() {
    for cluster in Cluster::for_each_target("", &[]) {
        let mut admin = client(&cluster);
        let make = "CREATE SCHEMA bench; SET search_path = bench;
            CREATE TABLE sbtest1 (id int PRIMARY KEY, k int NOT NULL, c char(120), pad char(60));
            INSERT INTO sbtest1 SELECT i, 0, 'c', 'pad' FROM generate_series(1, 1000) i";
        admin.execute(make).unwrap();
        let (endpoint, mut login) = (cluster.endpoint(), cluster.login());
        login.options.push(("search_path".into(), "bench".into()));
        let mut updates = 0;
        for peer in Peer::ALL {
            if peer.program().is_none() {
                not_tested(peer.word(), "it is not installed");
                continue;
            }
            for (work, clients) in PeerWork::ALL
                .into_iter()
                .flat_map(|work| [(work, 1), (work, 4)])
            {
                let run = PeerRun {
                    peer,
                    work,
                    jobs: 1,
                    clients,
                    operations: 400,
                    rows: 1000,
                    affinity: &[0],
                };
                let outcome = run_peer(&run, &endpoint, &login).unwrap();
                assert_eq!(
                    outcome.operations,
                    400 - u64::from(clients),
                    "the start-up run's are subtracted"
                );
                // Not its CPU: what 400 operations cost can be lost in what start-up costs on a busy machine.
                assert!(outcome.duration_ns > 0);
                updates += if work == PeerWork::Update {
                    400 + clients
                } else {
                    0
                };
            }
        }
        let sum = admin
            .query("SELECT coalesce(sum(k), 0) FROM bench.sbtest1")
            .unwrap();
        assert_eq!(sum, [[Some(updates.to_string())]]);
    }
}

#[test]
fn a_selfbench_pairs_every_round() {
    for cluster in Cluster::for_each_target("", &[]) {
        let mut admin = client(&cluster);
        let make =
            "CREATE TABLE sbtest1 (id int PRIMARY KEY, k int NOT NULL, c char(120), pad char(60));
            INSERT INTO sbtest1 SELECT i, 0, 'c', 'pad' FROM generate_series(1, 1000) i";
        admin.execute(make).unwrap();
        let placement = Placement::Free;
        let cells =
            [(PeerWork::Point, 1), (PeerWork::Script, 2)].map(|(work, jobs)| SelfbenchCell {
                work,
                clients: 2,
                jobs,
                placement,
                operations: 1000,
            });
        let spec = SelfbenchSpec {
            endpoint: &cluster.endpoint(),
            login: &cluster.login(),
            rows: 1000,
            peers: &Peer::ALL,
            cells: &cells,
            rounds: 3,
            seed: 1,
        };
        let mut placed = Vec::new();
        let rows = selfbench_client(&spec, &mut |cell| {
            placed.push(*cell);
            Ok(Vec::new())
        });
        let rows = rows.unwrap();
        assert_eq!(placed, cells);
        let installed = Peer::ALL.iter().filter(|peer| peer.program().is_some());
        assert_eq!(
            rows.len(),
            cells.len() * (installed.count() + 1),
            "and the bare system calls, or one thread"
        );
        for row in rows {
            let strange = [(Rival::Bare, 2), (Rival::OneThread, 1)];
            assert!(!strange.contains(&(row.rival, row.cell.jobs)));
            assert_eq!(row.rounds.len(), 3);
            assert!(
                row.rounds
                    .iter()
                    .all(|round| round.own.operations == 1000 && round.rival.operations >= 998)
            );
            assert!(row.rounds.iter().all(|round| round.own.client_cpu_ns > 0));
        }
    }
}
