//! Servers that were there before: a role that may make schemas in one database, a password, TLS.

use crate::lab::{Lab, cell, connect, executables, installations, plan};
use deltabench_compare::analyse;
use deltabench_compare::comparison::Metric;
use deltabench_driver::Client;
use deltabench_kinds::run_half;
use deltabench_model::endpoint::Endpoint;
use deltabench_model::finding::Finding;
use deltabench_model::installation::{Installation, Origin, Remote};
use deltabench_model::plan::{Cell, CellId, CellOrder, DataState, Plan, ServerId, WorkloadSource};
use deltabench_model::problem::Problem;
use deltabench_model::slice::Slice;
use deltabench_run::clock::{Clock, MachineClock};
use deltabench_run::events::{BlockProgress, Observer};
use deltabench_run::fleet::Fleet;
use deltabench_run::load::address_for;
use deltabench_run::pilot::Pilot;
use deltabench_run::remote;
use deltabench_run::schedule::BlockSchedule;
use deltabench_run::session::{Session, SessionEnd};
use deltabench_run::visit::Address;
use deltabench_store::{RunState, Store};
use deltabench_testkit::Cluster;
use deltabench_workload::Library;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

static GO_ON: AtomicBool = AtomicBool::new(false);
const BASE: ServerId = ServerId(0);
/// Nothing else in a store or in a text can look like it.
const PASSWORD: &str = "hunter2:with\\odd characters";

/// Tells the helper below which server to work on; unset for everybody else.
const TARGET: &str = "DELTABENCH_TEST_REMOTE_TARGET";

/// The password file of this process, made once: who connects reads it each time.
fn password_file() -> &'static PathBuf {
    static FILE: OnceLock<PathBuf> = OnceLock::new();
    FILE.get_or_init(|| {
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("run-pgpass");
        // What an earlier process wrote is of no use.
        let _ = std::fs::remove_file(&file);
        // SAFETY: std's own lock is held against readers of the environment in Rust, and the C library reads
        // none of these variables.
        unsafe {
            std::env::set_var("PGPASSFILE", &file);
            std::env::remove_var("PGPASSWORD");
        }
        file
    })
}

/// A line of the password file.
fn add_password(port: u16, user: &str, password: &str) {
    static WRITING: Mutex<()> = Mutex::new(());
    let _one = WRITING.lock().unwrap();
    let escaped = password.replace('\\', "\\\\").replace(':', "\\:");
    let mut file = std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(password_file())
        .unwrap();
    writeln!(file, "*:{port}:shop:{user}:{escaped}").unwrap();
}

/// Somebody's server, with a database `shop` that has a table in use.
pub struct Theirs {
    pub cluster: Cluster,
    pub port: u16,
}

impl Theirs {
    pub fn start(installation: &Installation) -> Self {
        let settings = [
            "listen_addresses=127.0.0.1",
            "ssl=on",
            "max_connections=30",
            "autovacuum=off",
        ];
        let hba = "local all all trust\nhostssl all all 127.0.0.1/32 md5";
        let settings: Vec<&str> = match installation.version_num {
            // Its md5 lines then ask for SCRAM-SHA-256.
            100_000.. => [&settings[..], &["password_encryption=scram-sha-256"]].concat(),
            _ => settings.to_vec(),
        };
        let cluster = Cluster::start(&installation.bin_dir, hba, &settings);
        let Endpoint::Tcp { port, .. } = cluster.tcp_endpoint() else {
            panic!("not on TCP");
        };
        let theirs = Self { cluster, port };
        let mut admin = theirs.admin("postgres");
        let quoted = PASSWORD.replace('\'', "''");
        for sql in [
            &format!(
                "SET standard_conforming_strings = on; CREATE ROLE bench LOGIN PASSWORD '{quoted}'"
            ),
            "CREATE DATABASE shop",
            "GRANT CREATE ON DATABASE shop TO bench",
        ] {
            admin.execute(sql).unwrap();
        }
        for sql in [
            "CREATE SCHEMA sales",
            "CREATE TABLE sales.orders AS SELECT i, md5(i::text) AS t \
             FROM generate_series(1, 1000) AS i",
            "CREATE TABLE public.sbtest1 AS SELECT 1 AS id",
        ] {
            theirs.admin("shop").execute(sql).unwrap();
        }
        add_password(port, "bench", PASSWORD);
        theirs
    }

    pub fn restart(&mut self) {
        self.cluster.restart();
    }

    pub fn admin(&self, database: &str) -> Client {
        let mut login = self.cluster.login();
        login.database = database.to_owned();
        Client::connect(&self.cluster.endpoint(), &login, Duration::from_secs(60)).unwrap()
    }

    pub fn value(&self, sql: &str) -> String {
        let mut rows = self.admin("shop").query(sql).unwrap();
        rows.swap_remove(0).swap_remove(0).unwrap_or_default()
    }

    fn target(&self, host: &str, user: &str, rest: &str) -> Remote {
        format!("postgres://{user}@{host}:{}/{rest}", self.port)
            .parse()
            .unwrap()
    }

    pub fn remote(&self) -> Remote {
        let file = self.cluster.certificate();
        let trust = format!("shop?sslmode=verify-full&sslrootcert={}", file.display());
        self.target("localhost", "bench", &trust)
    }

    pub fn installation(&self) -> Installation {
        remote::installation(&self.remote()).unwrap()
    }

    /// Schemas of ours that are there.
    pub fn ours(&self) -> Vec<String> {
        let sql = "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'deltabench%' ORDER BY 1";
        let rows = self.admin("shop").query(sql).unwrap();
        rows.into_iter().flatten().flatten().collect()
    }

    /// Everything of others: rows of their tables, and all of the catalog's relations.
    fn others(&self) -> String {
        self.value(
            "SELECT md5((SELECT string_agg(o::text, ',' ORDER BY i) FROM sales.orders AS o) \
             || (SELECT string_agg(s::text, ',') FROM public.sbtest1 AS s) \
             || (SELECT string_agg(concat_ws(' ', oid, relname, relnamespace, relfilenode, relacl), \
                 ',' ORDER BY oid) FROM pg_class WHERE relnamespace NOT IN ('pg_catalog'::regnamespace, \
                 'pg_toast'::regnamespace)) \
             || (SELECT string_agg(concat_ws(' ', oid, nspname, nspowner, nspacl), ',' ORDER BY oid) \
                 FROM pg_namespace) \
             || (SELECT string_agg(concat_ws(' ', oid, datname, datacl), ',' ORDER BY oid) FROM pg_database) \
             || (SELECT string_agg(concat_ws(' ', name, setting), ',' ORDER BY name) FROM pg_settings \
                 WHERE source NOT IN ('client', 'session')))",
        )
    }
}

/// Keeps what a run says, and does something after each of its blocks.
#[derive(Default)]
pub struct Notes<'a>(pub Vec<String>, pub Option<&'a mut dyn FnMut(u32)>);

impl Observer for Notes<'_> {
    fn note(&mut self, text: &str) {
        self.0.push(text.to_owned());
    }
    fn visit(&mut self, _: u32, _: u32, _: u32) {}
    fn pilot(&mut self, _: &Pilot) {}
    fn block(&mut self, progress: &BlockProgress) {
        if let Some(after) = &mut self.1 {
            after(progress.done);
        }
    }
}

/// What a whole run left in its store.
struct Ran {
    slices: Vec<Slice>,
    findings: Vec<Finding>,
    notes: Vec<String>,
    counters: Vec<deltabench_model::counter::VisitCounters>,
    /// All bytes of the store's files.
    bytes: Vec<u8>,
}

/// Carries out a plan to its end; what it left is in the store.
pub fn carry_out(
    plan: &Plan,
    lab: &Lab,
    run: &str,
    store: &mut Store,
    notes: &mut Notes<'_>,
) -> Result<(), Problem> {
    store.create_run(run, plan, RunState::Running, 0).unwrap();
    let library = Library::builtin().unwrap().with_sources(&plan.workloads)?;
    let clock = MachineClock::begin();
    let end = Session {
        benchmark: run_half(&plan.work),
        clock: &clock,
        began: clock.now(),
        plan,
        run,
        store,
        host: &lab.host,
        library: &library,
        pilot: run == "two",
        interrupted: &GO_ON,
        observer: notes,
    }
    .execute()?;
    assert_eq!(end, SessionEnd::Finished);
    Ok(())
}

fn whole_run(plan: &Plan, lab: &Lab, run: &str) -> Result<Ran, Problem> {
    let directory = tempfile::tempdir().unwrap();
    let mut store = Store::open(directory.path()).unwrap();
    let mut notes = Notes::default();
    carry_out(plan, lab, run, &mut store, &mut notes)?;
    let slices = store.slices(run).unwrap();
    let findings = store.findings(run).unwrap();
    let counters = store.counters(run).unwrap();
    drop(store);
    let files = std::fs::read_dir(directory.path()).unwrap().flatten();
    let bytes = files
        .filter_map(|entry| std::fs::read(entry.path()).ok())
        .flatten()
        .collect();
    Ok(Ran {
        slices,
        findings,
        notes: notes.0,
        counters,
        bytes,
    })
}

pub fn cells() -> Vec<Cell> {
    vec![
        cell("point-query", false, DataState::Fresh),
        cell("update-index", true, DataState::Fresh),
    ]
}

pub fn short(installations: &[&Installation], cells: Vec<Cell>) -> Plan {
    let mut plan = plan(installations, cells, 1000);
    plan.timing.blocks = 2;
    plan.timing.visit_seconds = 0.3;
    plan.timing.warmup_seconds = 0.1;
    plan.timing.slice_ms = 20;
    plan
}

fn has(bytes: &[u8], wanted: &str) -> bool {
    bytes
        .windows(wanted.len())
        .any(|window| window == wanted.as_bytes())
}

fn kinds(findings: &[Finding]) -> Vec<&str> {
    findings.iter().map(|finding| finding.kind.word()).collect()
}

#[test]
fn a_run_on_one_such_server_measures_and_leaves_everything_else_as_it_was() {
    for (number, installation) in installations().iter().enumerate() {
        let theirs = Theirs::start(installation);
        let before = theirs.others();
        let target = theirs.installation();
        assert_eq!(target.origin, Origin::Remote);
        assert_eq!(target.version_num, installation.version_num);
        assert!(
            target.resolved.starts_with("postgres:"),
            "{}",
            target.resolved
        );
        assert!(
            target
                .build
                .as_ref()
                .unwrap()
                .version_text
                .starts_with("PostgreSQL ")
        );
        let mut plan = short(&[&target; 3], cells());
        plan.servers[2].settings = vec![("work_mem".to_owned(), "8MB".to_owned())];
        plan.observing.waits_per_second = 20;
        let lab = Lab::new();
        let ran = whole_run(&plan, &lab, &format!("alone-{number}")).unwrap();
        assert_eq!(theirs.ours(), Vec::<String>::new());
        assert_eq!(theirs.others(), before, "{}", installation.resolved);
        assert!(lab.is_empty());
        for server in 0..3 {
            let mine = |slice: &&Slice| slice.server == ServerId(server) && slice.void.is_none();
            assert!(ran.slices.iter().filter(mine).count() >= 4 * 5);
        }
        for slice in &ran.slices {
            assert_eq!(slice.server_cpu_ns, None, "nobody has seen it");
            assert_eq!((slice.foreign_cpu_ns, slice.idle_cpu_ns), (None, None));
            assert_eq!(slice.failed, 0);
        }
        // Of the counters only those of our own tables: every update is one of this server's operations.
        let writes = ran.counters.iter().filter(|one| one.cell == CellId(1));
        // On a busy machine no sample may fall into a visit.
        let mut sampled = writes.clone().map(|one| one.values.contains_key("wait_ns"));
        assert!(sampled.any(|known| known));
        for counted in writes {
            let keys: Vec<&str> = counted.values.keys().map(String::as_str).collect();
            let seen_from_here = |key: &&str| key.starts_with("tables_") || key.starts_with("wait");
            assert!(keys.iter().all(seen_from_here), "{keys:?}");
            let operations = deltabench_model::units::to_f64(counted.operations);
            assert_eq!(counted.values.get("tables_updates"), Some(&operations));
        }
        let kinds = kinds(&ran.findings);
        for kind in [
            "remote-not-restarted",
            "remote-left-as-it-is",
            "remote-cpu-unknown",
        ] {
            assert!(kinds.contains(&kind), "{kinds:?}");
        }
        assert!(!kinds.contains(&"network-differs") && !kinds.contains(&"no-huge-pages"));
        let text = format!("{:?} {:?} {plan:?}", ran.notes, ran.findings);
        for secret in [PASSWORD, "hunter2"] {
            assert!(!has(&ran.bytes, secret) && !text.contains(secret));
        }
        assert!(
            has(&ran.bytes, "bench@localhost"),
            "the store was looked at"
        );
    }
}

#[test]
fn such_a_server_can_be_compared_with_one_of_our_own() {
    let all = installations();
    let (old, new) = (all.first().unwrap(), all.last().unwrap());
    let theirs = Theirs::start(new);
    let before = theirs.others();
    let target = theirs.installation();
    let plan = short(&[old, old, &target], cells());
    let lab = Lab::new();
    let ran = whole_run(&plan, &lab, "mixed").unwrap();
    assert_eq!(theirs.ours(), Vec::<String>::new());
    assert_eq!(theirs.others(), before);
    assert!(lab.is_empty());
    for slice in ran.slices.iter().filter(|slice| slice.void.is_none()) {
        assert_eq!(slice.server_cpu_ns.is_some(), slice.server != ServerId(2));
    }
    let kinds = kinds(&ran.findings);
    for kind in ["remote-not-restarted", "network-differs", "build-unknown"] {
        assert!(kinds.contains(&kind), "{kinds:?}");
    }
}

#[test]
fn two_such_servers_can_be_compared_with_each_other() {
    let all = installations();
    let servers = [all.first().unwrap(), all.last().unwrap()].map(Theirs::start);
    let [base, candidate] = [servers[0].installation(), servers[1].installation()];
    let mut plan = short(&[&base, &base, &candidate], cells());
    plan.order = CellOrder::Drawn;
    let ran = whole_run(&plan, &Lab::new(), "two").unwrap();
    for theirs in &servers {
        assert_eq!(theirs.ours(), Vec::<String>::new());
    }
    let sent = |server: u32| -> u64 {
        let mine = |slice: &&Slice| slice.server == ServerId(server);
        let mine = ran.slices.iter().filter(mine);
        mine.map(|slice| slice.operations).sum()
    };
    assert!(sent(0) > 0 && sent(0) == sent(1) && sent(1) == sent(2));
    let confounder = ran
        .findings
        .iter()
        .find(|f| f.kind == "remote-not-restarted");
    assert!(
        confounder
            .unwrap()
            .text
            .contains(&servers[1].port.to_string())
    );
    let comparison = analyse(&plan, &ran.slices, Vec::new());
    assert_eq!(comparison.cells.len(), 2);
    for compared in comparison.cells.iter().chain(&comparison.placebo_cells) {
        let known: Vec<Metric> = compared.metrics.iter().map(|value| value.metric).collect();
        assert!(known.contains(&Metric::Throughput), "{known:?}");
        assert!(!known.contains(&Metric::ServerCpuPerOperation), "{known:?}");
    }
}

#[test]
fn schemas_are_exchanged_settings_stay_and_a_lost_guard_is_replaced() {
    let theirs = Theirs::start(installations().last().unwrap());
    let target = theirs.installation();
    let read = cell("point-query", false, DataState::Fresh);
    let mut plan = plan(&[&target; 3], vec![read.clone()], 1000);
    plan.servers[2].settings = vec![("work_mem".to_owned(), "8MB".to_owned())];
    let lab = Lab::new();
    let mut fleet = loaded(&plan, &lab, "exchanged");
    let locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted";
    let mut places = std::collections::HashSet::new();
    for block in 0..6 {
        let guard = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                     WHERE application_name = 'deltabench'";
        assert_eq!(theirs.value(guard), "1", "block {block}");
        let addresses = fleet.start(&BlockSchedule::of(&plan, block)).unwrap();
        assert_eq!(theirs.value(locks), "3");
        let of = |sql: &str| -> Vec<String> {
            let ask = |address| ask(&plan, address, &read, sql);
            addresses.iter().map(ask).collect()
        };
        assert_eq!(of("SHOW work_mem"), ["4MB", "4MB", "8MB"]);
        assert_eq!(of("SELECT count(*) FROM sbtest1"), ["1000"; 3]);
        places.insert(of("SELECT current_schema"));
        fleet.stop().unwrap();
    }
    assert!(places.len() > 1, "schemas are exchanged");
    assert_eq!(fleet.restart_findings(), []);
    // The server goes away for good.
    let schedule = BlockSchedule::of(&plan, 7);
    drop(theirs);
    let gone = fleet.start(&schedule).unwrap_err();
    assert!(gone.error.contains("cannot reach"), "{gone}");
    let left = fleet.dismantle().unwrap_err();
    assert!(
        left.to_string().contains("deltabench_exchanged_0"),
        "{left}"
    );
    assert!(lab.is_empty());
}

pub fn loaded<'a>(plan: &'a Plan, lab: &Lab, run: &str) -> Fleet<'a> {
    let mut fleet = lab.fleet(plan, run).unwrap();
    let readbacks = fleet.load(&executables(plan), &GO_ON, &mut |_| {}).unwrap();
    assert_eq!(readbacks.unwrap().len(), plan.servers.len());
    fleet
}

fn ask(plan: &Plan, address: &Address, cell: &Cell, sql: &str) -> String {
    let address = address_for(address, plan.order, cell);
    let mut rows = connect(&address, &address.login).query(sql).unwrap();
    rows.swap_remove(0).swap_remove(0).unwrap_or_default()
}

const OWN_TABLE: &str = r#"
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
create = "CREATE TABLE {table} (total bigint NOT NULL, id serial)"
rows = "rows * 2"
fill = "INSERT INTO {table} SELECT hashint4(i) FROM generate_series(1, {rows}) AS i"
indexes = ["ALTER TABLE {table} ADD PRIMARY KEY (id)"]

[[before]]
run = "checkpoint"

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
fn copies_and_renewed_tables_are_the_rows_that_were_loaded_where_they_lay() {
    const ROWS: &str =
        "SELECT md5(string_agg(ctid::text || t::text, ',' ORDER BY ctid)) FROM sbtest1 AS t";
    const OWN: &str =
        "SELECT md5(string_agg(ctid::text || t::text, ',' ORDER BY ctid)) FROM orders AS t";
    const NEXT: &str = "SELECT nextval('orders_id_seq') || ' ' || nextval('sbtest2_id_seq')";
    for (number, installation) in installations().iter().enumerate() {
        let theirs = Theirs::start(installation);
        let target = theirs.installation();
        let read = cell("point-query", false, DataState::Fresh);
        let write = cell("orders", true, DataState::Fresh);
        let mut plan = plan(&[&target; 2], vec![read.clone(), write.clone()], 3000);
        plan.workloads.push(WorkloadSource {
            file: "orders.toml".to_owned(),
            text: OWN_TABLE.to_owned(),
        });
        let lab = Lab::new();
        let mut fleet = loaded(&plan, &lab, &format!("copies-{number}"));
        let schedule = BlockSchedule::of(&plan, 0);
        let addresses = fleet.start(&schedule).unwrap();
        let [one, other] = addresses.as_slice() else {
            panic!("two servers");
        };
        for sql in [ROWS, OWN] {
            assert_eq!(ask(&plan, one, &read, sql), ask(&plan, other, &read, sql));
        }
        assert!(
            !fleet.warm(&schedule, BASE, &write).unwrap(),
            "nothing to warm yet"
        );
        for _ in 0..2 {
            fleet.renew(&schedule, BASE, &write).unwrap();
            for sql in [ROWS, OWN] {
                assert_eq!(ask(&plan, one, &write, sql), ask(&plan, one, &read, sql));
            }
            assert_eq!(ask(&plan, one, &write, NEXT), "6001 3001");
            fleet
                .before_visit(&schedule, &[BASE], &write, &GO_ON)
                .unwrap();
            ask(
                &plan,
                one,
                &write,
                "UPDATE orders SET total = 0 RETURNING 1",
            );
            fleet
                .after_visit(&schedule, &[BASE], &write, &GO_ON)
                .unwrap();
            assert_eq!(ask(&plan, one, &write, "SELECT count FROM seen"), "6000");
            let none = "SELECT count(*) FROM orders WHERE total = 0";
            assert_eq!(ask(&plan, one, &read, none), "0");
        }
        assert!(fleet.warm(&schedule, BASE, &write).unwrap());
        fleet.stop().unwrap();
        assert_eq!(theirs.ours().len(), 3);
        fleet.dismantle().unwrap();
        assert_eq!(theirs.ours(), Vec::<String>::new());
    }
}

/// Not a test of its own: run in a second process by the test below, which kills it.
#[test]
#[ignore = "run by another test of this module"]
fn helper() {
    let Ok(target) = std::env::var(TARGET) else {
        eprintln!("nothing to do: {TARGET} is not set");
        return;
    };
    let target = remote::installation(&target.parse().unwrap()).unwrap();
    let write = cell("update-index", true, DataState::Fresh);
    let plan = plan(&[&target; 2], vec![write.clone()], 1000);
    let lab = Lab::new();
    let mut fleet = loaded(&plan, &lab, "killed");
    let schedule = BlockSchedule::of(&plan, 0);
    fleet.start(&schedule).unwrap();
    fleet.renew(&schedule, BASE, &write).unwrap();
    let scratch = lab.host.workspaces.parent().unwrap();
    println!("\nready {}", scratch.display());
    // Killed here.
    std::thread::sleep(Duration::from_secs(600));
}

#[test]
fn what_a_killed_run_has_left_is_swept_by_the_next_and_nothing_else_is() {
    let theirs = Theirs::start(installations().last().unwrap());
    let not_ours = [
        "CREATE SCHEMA deltabench_shop_0",
        "CREATE SCHEMA deltabench_alien_0",
        "COMMENT ON SCHEMA deltabench_alien_0 IS 'deltabench'",
        "GRANT bench TO postgres",
        "ALTER SCHEMA deltabench_alien_0 OWNER TO bench",
    ];
    for sql in not_ours {
        theirs.admin("shop").execute(sql).unwrap();
    }
    let before = theirs.others();
    let mut helper = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "remote::helper", "--ignored", "--nocapture"])
        .env(TARGET, theirs.remote().to_string())
        .env("PGPASSFILE", password_file())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(helper.stdout.take().unwrap()).lines();
    let mut lines = lines.map_while(Result::ok);
    let scratch = lines.find_map(|line| line.strip_prefix("ready ").map(PathBuf::from));
    let made = theirs.ours();
    assert_eq!(made.len(), 2 + 3, "{made:?}");
    let target = theirs.installation();
    let plan = plan(&[&target; 2], cells(), 1000);
    let lab = Lab::new();
    let create = |run: &str| {
        let mut notes = Vec::new();
        let fleet = Fleet::create(&plan, run_half(&plan.work), run, &lab.host, &mut |note| {
            notes.push(note)
        });
        fleet.and_then(Fleet::dismantle).map(|()| notes)
    };
    create("meanwhile").unwrap();
    assert_eq!(theirs.ours(), made, "a run that lives is left alone");
    let taken = create("killed").unwrap_err();
    assert!(taken.error.contains("in use"), "{taken}");
    helper.kill().unwrap();
    helper.wait().unwrap();
    std::fs::remove_dir_all(scratch.unwrap()).unwrap();
    // The server notices a moment after the kernel has closed the connection.
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    let mut notes = Vec::new();
    while theirs.ours().len() > 2 && std::time::Instant::now() < deadline {
        notes = create("killed").unwrap_or_default();
    }
    assert_eq!(theirs.ours(), ["deltabench_alien_0", "deltabench_shop_0"]);
    assert!(
        notes.iter().any(|note| note.contains("was killed")),
        "{notes:?}"
    );
    assert_eq!(theirs.others(), before);
}

#[test]
fn a_schema_that_is_not_ours_is_neither_used_nor_dropped() {
    let theirs = Theirs::start(installations().last().unwrap());
    theirs
        .admin("shop")
        .execute(
            "CREATE SCHEMA deltabench_mine_1; CREATE TABLE deltabench_mine_1.t AS SELECT 1 AS a",
        )
        .unwrap();
    let target = theirs.installation();
    let plan = plan(&[&target; 2], cells(), 1000);
    let lab = Lab::new();
    let refused = lab.fleet(&plan, "mine").err().unwrap();
    assert!(
        refused.error.contains("deltabench_mine_1 already exists"),
        "{refused}"
    );
    assert_eq!(
        theirs.ours(),
        ["deltabench_mine_1"],
        "what was made before is gone"
    );
    assert_eq!(
        theirs.value("SELECT count(*) FROM deltabench_mine_1.t"),
        "1"
    );
    assert!(lab.is_empty());
    // Somebody has a view on our tables: dropping them would take it away.
    let mut fleet = lab.fleet(&plan, "seen").unwrap();
    fleet
        .load(&executables(&plan), &GO_ON, &mut |_| {})
        .unwrap();
    let view = "CREATE VIEW sales.v AS SELECT count(*) FROM deltabench_seen_0.sbtest1";
    theirs.admin("shop").execute(view).unwrap();
    let kept = fleet.dismantle().unwrap_err();
    assert!(kept.to_string().contains("1 views"), "{kept}");
    assert_eq!(theirs.ours(), ["deltabench_mine_1", "deltabench_seen_0"]);
    theirs.admin("shop").execute("DROP VIEW sales.v").unwrap();
    lab.fleet(&plan, "after").unwrap().dismantle().unwrap();
    assert_eq!(
        theirs.ours(),
        ["deltabench_mine_1"],
        "swept when it could be"
    );
}

#[test]
fn what_is_wrong_with_a_target_is_said_before_anything_is_made() {
    let theirs = Theirs::start(installations().last().unwrap());
    let mut admin = theirs.admin("shop");
    for sql in [
        "CREATE ROLE wrong LOGIN PASSWORD 'right'",
        "CREATE ROLE nobody LOGIN PASSWORD 'some'",
        "CREATE ROLE reader LOGIN PASSWORD 'reads'",
        "CREATE ROLE narrow LOGIN PASSWORD 'narrow' CONNECTION LIMIT 9",
        "GRANT CREATE ON DATABASE shop TO narrow",
    ] {
        admin.execute(sql).unwrap();
    }
    for (user, password) in [
        ("wrong", "hunter3"),
        ("reader", "reads"),
        ("narrow", "narrow"),
    ] {
        add_password(theirs.port, user, password);
    }
    let certificate = theirs.cluster.certificate();
    let full = format!(
        "shop?sslmode=verify-full&sslrootcert={}",
        certificate.display()
    );
    let of = |host: &str, user: &str, rest: &str| {
        let found = remote::installation(&theirs.target(host, user, rest));
        let text = found.unwrap_err().to_string();
        assert!(!text.contains("hunter"), "{text}");
        text
    };
    for (host, user, rest, said) in [
        (
            "localhost",
            "wrong",
            full.as_str(),
            "rejects the password of user wrong",
        ),
        (
            "localhost",
            "nobody",
            &full,
            "asks for the password of user nobody",
        ),
        (
            "localhost",
            "reader",
            &full,
            "may not create a schema in database shop",
        ),
        ("127.0.0.1", "bench", &full, "is not trusted"),
        (
            "localhost",
            "bench",
            "shop?sslmode=disable",
            "rejects user bench",
        ),
        (
            "localhost",
            "bench",
            "shop?sslmode=verify-full&sslrootcert=/no/file",
            "/no/file",
        ),
    ] {
        let text = of(host, user, rest);
        assert!(text.contains(said), "{said}: {text}");
        assert!(text.contains("hint: "), "{text}");
    }
    add_password_for_all(theirs.port);
    let missing = of("localhost", "bench", &full.replace("shop", "nowhere"));
    assert!(missing.contains("has no database nowhere"), "{missing}");
    let nobody = "postgres://bench@127.0.0.1:1/shop".parse().unwrap();
    let nobody = remote::installation(&nobody).unwrap_err();
    assert!(nobody.error.contains("cannot reach"), "{nobody}");
    // Right, and then not any more.
    let target = theirs.installation();
    let mut plan = plan(&[&target; 2], cells(), 1000);
    assert_eq!(remote::check(&plan), Ok(()));
    plan.settings = vec![("shared_buffers".to_owned(), "64MB".to_owned())];
    let refused = remote::check(&plan).unwrap_err();
    assert!(refused.to_string().contains("shared_buffers"), "{refused}");
    plan.settings.clear();
    plan.cells[0].clients = 20;
    let crowded = remote::check(&plan).unwrap_err();
    assert!(crowded.error.contains("connections left"), "{crowded}");
    plan.cells[0].clients = 4;
    assert_eq!(remote::check(&plan), Ok(()));
    let narrow = remote::installation(&theirs.target("localhost", "narrow", &full)).unwrap();
    for server in &mut plan.servers {
        server.installation = narrow.clone();
    }
    let crowded = remote::check(&plan).unwrap_err();
    assert!(
        crowded.to_string().contains("the role may have 9"),
        "{crowded}"
    );
    admin
        .execute("REVOKE CREATE ON DATABASE shop FROM bench")
        .unwrap();
    for server in &mut plan.servers {
        server.installation = target.clone();
    }
    let lab = Lab::new();
    let refused = lab.fleet(&plan, "revoked").err().unwrap();
    assert!(refused.error.contains("create a schema"), "{refused}");
    assert!(theirs.ours().is_empty() && !lab.host.workspaces.exists());
}

/// A line for any database of a server.
fn add_password_for_all(port: u16) {
    let mut file = std::fs::OpenOptions::new()
        .append(true)
        .open(password_file())
        .unwrap();
    let escaped = PASSWORD.replace('\\', "\\\\").replace(':', "\\:");
    writeln!(file, "*:{port}:*:bench:{escaped}").unwrap();
}
