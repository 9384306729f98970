//! What servers that were there before, and whoever sits before them, could make of a run.

use crate::lab::installations;
use crate::lab::{Lab, cell, executables, plan};
use crate::remote::{Notes, Theirs, carry_out, cells, loaded, short};
use deltabench_driver::{Lane, LaneSpec, WireError};
use deltabench_model::endpoint::Endpoint;
use deltabench_model::installation::Remote;
use deltabench_model::plan::{DataState, ServerId};
use deltabench_run::load::address_for;
use deltabench_run::remote;
use deltabench_run::schedule::BlockSchedule;
use deltabench_store::Store;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A pooler that ignores `search_path` in start-up messages from when it is told to.
struct Pooler {
    port: u16,
    forgets: Arc<AtomicBool>,
}

impl Pooler {
    fn before(theirs: &Theirs) -> Self {
        let Endpoint::Unix { directory, port } = theirs.cluster.endpoint() else {
            panic!("not on a local socket");
        };
        let socket = directory.join(format!(".s.PGSQL.{port}"));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let pooler = Self {
            port: listener.local_addr().unwrap().port(),
            forgets: Arc::default(),
        };
        let forgets = Arc::clone(&pooler.forgets);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let (socket, forgets) = (socket.clone(), forgets.load(Ordering::SeqCst));
                std::thread::spawn(move || pass_on(client, &socket, forgets));
            }
        });
        pooler
    }

    fn remote(&self) -> Remote {
        let target = format!(
            "postgres://bench@127.0.0.1:{}/shop?sslmode=disable",
            self.port
        );
        target.parse().unwrap()
    }
}

fn pass_on(mut client: TcpStream, socket: &PathBuf, forgets: bool) -> Option<()> {
    let mut length = [0; 4];
    client.read_exact(&mut length).ok()?;
    let mut body = vec![0; usize::try_from(u32::from_be_bytes(length)).ok()? - 4];
    client.read_exact(&mut body).ok()?;
    if forgets {
        let texts: Vec<&[u8]> = body[4..].split(|byte| *byte == 0).collect();
        let pairs = texts.chunks_exact(2).filter(|pair| !pair[0].is_empty());
        let kept: Vec<u8> = pairs
            .filter(|pair| pair[0] != b"search_path")
            .flat_map(|pair| [pair[0], b"\0", pair[1], b"\0"].concat())
            .collect();
        body = [&body[..4], &kept, b"\0"].concat();
    }
    let mut server = UnixStream::connect(socket).ok()?;
    let length = u32::try_from(body.len() + 4).ok()?;
    server
        .write_all(&[&length.to_be_bytes()[..], &body].concat())
        .ok()?;
    let (mut from, mut to) = (server.try_clone().ok()?, client.try_clone().ok()?);
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Both);
    });
    let _ = std::io::copy(&mut client, &mut server);
    let _ = server.shutdown(Shutdown::Both);
    Some(())
}

#[test]
fn a_server_that_does_not_get_search_path_is_refused_on_every_connection() {
    let theirs = Theirs::start(installations().last().unwrap());
    let pooler = Pooler::before(&theirs);
    let target = remote::installation(&pooler.remote()).unwrap();
    let read = cell("point-query", false, DataState::Fresh);
    let plan = plan(&[&target; 2], vec![read.clone()], 1000);
    let lab = Lab::new();
    let mut fleet = loaded(&plan, &lab, "forgotten");
    let schedule = BlockSchedule::of(&plan, 0);
    let addresses = fleet.start(&schedule).unwrap();
    let servers: Vec<_> = addresses
        .iter()
        .map(|address| address_for(address, plan.order, &read))
        .map(|address| (address.endpoint, address.login))
        .collect();
    let executables = executables(&plan);
    let clients = || {
        Lane::connect(&LaneSpec {
            servers: &servers,
            executable: &executables[0],
            clients: 2,
            jobs: 1,
            cores: &[],
            op_timeout: Duration::from_secs(60),
            rate: None,
        })
    };
    drop(clients().unwrap());
    pooler.forgets.store(true, Ordering::SeqCst);
    // Of clients: `public.sbtest1` is somebody's.
    let Err(WireError::At { error, .. }) = clients() else {
        panic!("clients work on tables of others");
    };
    assert!(matches!(*error, WireError::SearchPath { .. }), "{error}");
    // Of set-up work.
    let refused = fleet
        .renew(&schedule, ServerId(0), &cells()[1])
        .unwrap_err();
    let told = "does not accept search_path at log-in";
    assert!(refused.error.contains(told), "{refused}");
    // Before anything is made.
    let refused = remote::installation(&pooler.remote()).unwrap_err();
    assert_eq!(refused.error, format!("127.0.0.1:{} {told}", pooler.port));
    let (detail, hint) = (refused.detail.unwrap(), refused.hint.unwrap());
    assert!(detail.contains("\"$user\", public"), "{detail}");
    assert!(hint.contains("pooler"), "{hint}");
    pooler.forgets.store(false, Ordering::SeqCst);
    fleet.dismantle().unwrap();
    assert_eq!(theirs.ours(), Vec::<String>::new());
}

#[test]
fn only_the_extension_s_prewarm_is_called() {
    let theirs = Theirs::start(installations().last().unwrap());
    let trap = |schema: &str| {
        format!(
            "CREATE FUNCTION {schema}.pg_prewarm(regclass) RETURNS bigint LANGUAGE plpgsql \
             AS $$BEGIN RAISE EXCEPTION 'somebody else''s function was called'; END$$"
        )
    };
    let mut admin = theirs.admin("shop");
    for sql in [
        "CREATE SCHEMA aaa".to_owned(),
        "GRANT USAGE ON SCHEMA aaa TO public".to_owned(),
        trap("aaa"),
    ] {
        admin.execute(&sql).unwrap();
    }
    let target = theirs.installation();
    let plan = short(&[&target; 2], cells());
    let ran = |run: &str| {
        let directory = tempfile::tempdir().unwrap();
        let mut store = Store::open(directory.path()).unwrap();
        let lab = Lab::new();
        carry_out(&plan, &lab, run, &mut store, &mut Notes::default()).unwrap();
        let findings = store.findings(run).unwrap();
        let found = |kind: &str| findings.iter().find(|finding| finding.kind == kind);
        found("remote-left-as-it-is").unwrap().text.clone()
    };
    let without = ran("without");
    for sql in [
        "CREATE SCHEMA ext".to_owned(),
        "GRANT USAGE ON SCHEMA ext TO public".to_owned(),
        "CREATE EXTENSION pg_prewarm SCHEMA ext".to_owned(),
        trap("ext"),
    ] {
        admin.execute(&sql).unwrap();
    }
    assert_ne!(ran("with"), without, "the real one is found");
}

#[test]
fn secrets_in_settings_are_not_read_back() {
    let theirs = Theirs::start(installations().last().unwrap());
    for sql in [
        "GRANT pg_read_all_settings TO bench",
        "ALTER ROLE bench SET session_preload_libraries = 'plpgsql'",
        "ALTER ROLE bench SET plpgsql.print_strict_params = on",
        "ALTER SYSTEM SET primary_conninfo = 'host=x password=sesame-2'",
        "ALTER SYSTEM SET archive_cleanup_command = 'clean --key sesame-3'",
        "ALTER SYSTEM SET work_mem = '5MB'",
        "SELECT pg_reload_conf()",
    ] {
        theirs.admin("shop").execute(sql).unwrap();
    }
    let shown = "SELECT count(*) FROM pg_settings WHERE setting LIKE '%sesame%'";
    let deadline = Instant::now() + Duration::from_secs(60);
    while theirs.value(shown) != "2" && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(50));
    }
    let target = theirs.installation();
    let extension = "plpgsql.print_strict_params";
    let mut plan = plan(&[&target; 2], cells(), 1000);
    plan.servers[1].settings = vec![(extension.to_owned(), "on".to_owned())];
    let lab = Lab::new();
    let mut fleet = lab.fleet(&plan, "secrets").unwrap();
    let never = AtomicBool::new(false);
    let readbacks = fleet.load(&executables(&plan), &never, &mut |_| {});
    let readbacks = readbacks.unwrap().unwrap();
    let value = |server: usize, name: &str| {
        let mut settings = readbacks[server].settings.iter();
        settings.find(|one| one.name == name).unwrap().value.clone()
    };
    for name in [extension, "primary_conninfo", "archive_cleanup_command"] {
        assert_eq!(value(0, name), "(not kept)", "{name}");
    }
    assert_eq!(value(0, "work_mem"), "5120");
    assert_eq!(value(0, "recovery_end_command"), "", "nobody has set it");
    assert_eq!(value(1, extension), "on", "asked for");
    assert!(!format!("{readbacks:?}").contains("sesame"));
    fleet.dismantle().unwrap();
}

/// What a workload may make beside its tables.
const BESIDE: &str = "SET ROLE bench; SET search_path = deltabench_own_0; \
    CREATE VIEW v AS SELECT * FROM sbtest1; CREATE TYPE mood AS ENUM ('glad'); \
    CREATE MATERIALIZED VIEW m AS SELECT 1 AS a; CREATE TYPE pair AS (a int, b mood); \
    CREATE FUNCTION f(sbtest1) RETURNS int LANGUAGE sql AS 'SELECT 1'; \
    CREATE FUNCTION g() RETURNS int LANGUAGE sql AS 'SELECT 1'; \
    CREATE TABLE a (id int PRIMARY KEY DEFAULT g(), m mood); \
    CREATE TABLE \"B c\" (id int PRIMARY KEY REFERENCES a, s serial); \
    ALTER TABLE a ADD FOREIGN KEY (id) REFERENCES \"B c\"; CREATE SEQUENCE loose";

/// What others may make of our tables, and how it is undone.
const OTHERS: [(&str, &str); 3] = [
    (
        "CREATE FUNCTION sales.f(deltabench_kept_0.sbtest1) RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "DROP FUNCTION sales.f(deltabench_kept_0.sbtest1)",
    ),
    (
        "ALTER TABLE sales.orders ADD COLUMN theirs deltabench_kept_0.sbtest1",
        "ALTER TABLE sales.orders DROP COLUMN theirs",
    ),
    (
        "CREATE SEQUENCE deltabench_kept_0.s; ALTER SEQUENCE deltabench_kept_0.s OWNER TO bench; \
         ALTER TABLE sales.orders ALTER COLUMN i SET DEFAULT nextval('deltabench_kept_0.s')",
        "ALTER TABLE sales.orders ALTER COLUMN i DROP DEFAULT; DROP SEQUENCE deltabench_kept_0.s",
    ),
];

#[test]
fn what_others_have_made_of_our_tables_outlives_them_and_is_told() {
    for installation in installations() {
        let theirs = Theirs::start(&installation);
        let target = theirs.installation();
        let plan = plan(&[&target; 2], cells(), 1000);
        let lab = Lab::new();
        let fleet = loaded(&plan, &lab, "own");
        theirs.admin("shop").execute(BESIDE).unwrap();
        fleet.dismantle().unwrap();
        assert_eq!(theirs.ours(), Vec::<String>::new());
        for (make, undo) in OTHERS {
            let fleet = loaded(&plan, &lab, "kept");
            theirs.admin("shop").execute(make).unwrap();
            let kept = fleet.dismantle().unwrap_err();
            let told = "deltabench_kept_0 was not dropped";
            assert!(kept.error.contains(told), "{make}: {kept}");
            let detail = kept.detail.unwrap();
            assert!(
                detail.contains("orders") || detail.contains("function sales.f"),
                "{detail}"
            );
            assert_eq!(theirs.ours(), ["deltabench_kept_0"], "{make}");
            // Fails if it is not there any more.
            theirs.admin("shop").execute(undo).unwrap();
            let after = lab.fleet(&plan, "after").unwrap();
            after.dismantle().unwrap();
            assert_eq!(theirs.ours(), Vec::<String>::new(), "swept: {make}");
        }
    }
}
