//! `deltabench replay` on servers that already run, with roles that could do harm.

use crate::lab::{Lab, join, text};
use crate::replaying::{SECRET, answer, holding, prepared};
use deltabench_capture::Capture;
use deltabench_driver::Client;
use deltabench_model::endpoint::Endpoint;
use deltabench_testkit::{Cluster, installations};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

/// Nothing may show or store it.
const PASSWORD: &str = "sesame-of-the-replayer";

/// Tables, a function that changes them, and a role that may only read them, but for one.
const SETUP: &str = "
    CREATE SCHEMA shop;
    CREATE TABLE shop.orders (id int PRIMARY KEY, customer_id int, total numeric);
    INSERT INTO shop.orders SELECT n, n % 50, n FROM generate_series(1, 20000) n;
    CREATE INDEX orders_customer ON shop.orders (customer_id);
    CREATE TABLE shop.visits (n int);
    INSERT INTO shop.visits VALUES (0);
    ANALYZE;
    CREATE FUNCTION shop.visit() RETURNS int LANGUAGE sql SECURITY DEFINER AS
      'UPDATE shop.visits SET n = n + 1 RETURNING n';
    CREATE ROLE replayer LOGIN PASSWORD 'sesame-of-the-replayer';
    GRANT USAGE ON SCHEMA shop TO replayer;
    GRANT SELECT ON ALL TABLES IN SCHEMA shop TO replayer;
    GRANT UPDATE ON shop.visits TO replayer;
    CREATE ROLE signaller LOGIN IN ROLE pg_signal_backend;
    CREATE ROLE friends NOLOGIN IN ROLE signaller;
    CREATE ROLE friend LOGIN IN ROLE friends NOINHERIT;
    CREATE ROLE stranger LOGIN NOINHERIT;
    GRANT postgres TO stranger;
    CREATE ROLE replicator LOGIN REPLICATION;
    CREATE ROLE runner LOGIN IN ROLE pg_execute_server_program;
    CREATE ROLE writer LOGIN IN ROLE pg_write_server_files;
    CREATE ROLE reader LOGIN IN ROLE pg_read_server_files;";

/// Two servers with the same tables.
fn servers() -> [Cluster; 2] {
    let trees = installations();
    // The roles of the servers' files came with 11.
    let mut new_enough = trees.iter().filter(|tree| tree.version_num >= 110_000);
    let first = new_enough.next().unwrap();
    let last = new_enough.next_back().unwrap_or(first);
    let servers = [first, last]
        .map(|tree| Cluster::start(&tree.bin_dir, "local all replayer md5", &["autovacuum=off"]));
    for server in &servers {
        execute(server, SETUP);
    }
    servers
}

fn client(server: &Cluster) -> Client {
    client_of(server, "postgres")
}

fn client_of(server: &Cluster, database: &str) -> Client {
    let limit = Duration::from_secs(60);
    let mut login = server.login();
    database.clone_into(&mut login.database);
    Client::connect(&server.endpoint(), &login, limit).unwrap()
}

fn execute(server: &Cluster, sql: &str) {
    client(server).execute(sql).unwrap();
}

fn dsn(server: &Cluster, user: &str) -> String {
    let Endpoint::Unix { directory, port } = server.endpoint() else {
        panic!("a local socket");
    };
    format!(
        "dsn:postgres://{user}@:{port}/postgres?host={}",
        directory.display()
    )
}

/// A read with a secret value, one that calls a function that writes, and a write.
fn capture(lab: &Lab) -> PathBuf {
    let customers: Vec<Vec<String>> = (0..20).map(|number| vec![number.to_string()]).collect();
    let sql = "SELECT sum(total) FROM orders WHERE customer_id = $1";
    let mut by_customer = prepared("by_customer", sql, &customers);
    by_customer.tuples[0].values[0] = Some("7".to_owned());
    let secret = [vec![SECRET.to_owned()]];
    let named = prepared(
        "named",
        "SELECT count(*) FROM orders WHERE total::text = $1",
        &secret,
    );
    let visit = prepared("visit", "SELECT visit()", &[Vec::new()]);
    let capture = Capture {
        statements: vec![by_customer, named, visit],
        ..Capture::default()
    };
    let path = lab.path().join("shop.capture");
    capture.write(&path).unwrap();
    path
}

/// What nobody may change: tables, their rows, statistics, settings.
fn state(server: &Cluster) -> Vec<Vec<Option<String>>> {
    let sql =
        "SELECT (SELECT string_agg(c.oid::text || c.relname, ',' ORDER BY c.oid) FROM pg_class c),
        (SELECT n::text FROM shop.visits),
        (SELECT string_agg(setting, ',' ORDER BY name) FROM pg_settings),
        (SELECT string_agg(relname || coalesce(last_analyze::text, ''), ',' ORDER BY relid)
           FROM pg_stat_user_tables)";
    client(server).query(sql).unwrap()
}

fn replay(lab: &Lab, arguments: &[&str]) -> Output {
    let mut command = lab.command(&join(&["replay"], arguments));
    command.env("PGPASSWORD", PASSWORD).output().unwrap()
}

#[test]
fn a_role_that_may_do_harm_is_refused_whichever_way_it_may() {
    let (lab, [old, new]) = (Lab::new(), servers());
    let capture = capture(&lab);
    let capture = capture.to_str().unwrap();
    let careful = dsn(&old, "replayer");
    for (user, power) in [
        ("postgres", "postgres (superuser)"),
        ("stranger", "postgres (superuser)"),
        ("signaller", "pg_signal_backend"),
        ("friend", "pg_signal_backend"),
        ("replicator", "replicator (replication)"),
        ("runner", "pg_execute_server_program"),
        ("writer", "pg_write_server_files"),
        ("reader", "pg_read_server_files"),
    ] {
        // On the candidate too: the base alone would be fine.
        let output = replay(&lab, &[capture, &careful, &dsn(&new, user), "--plans-only"]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{user}: {said}");
        assert!(said.contains("this role may do too much"), "{user}: {said}");
        assert!(
            said.contains(power) && said.contains("hint: use a role that may only read"),
            "{said}"
        );
        assert!(lab.workspaces().is_empty());
    }
}

#[test]
fn plans_and_results_of_two_servers_as_they_are_change_nothing_there() {
    let (lab, [old, new]) = (Lab::new(), servers());
    execute(
        &new,
        "DROP INDEX shop.orders_customer; DELETE FROM shop.orders WHERE id > 9000; ANALYZE",
    );
    execute(&new, "CREATE TABLE shop.more (a int)");
    execute(&new, "ALTER SYSTEM SET work_mem = '9MB'");
    execute(&new, "ALTER ROLE replayer SET search_path = shop");
    client(&new).query("SELECT pg_reload_conf()").unwrap();
    let before = [state(&old), state(&new)];
    let path = capture(&lab);
    let (base, candidate) = (dsn(&old, "replayer"), dsn(&new, "replayer"));
    let targets = [path.to_str().unwrap(), &base, &candidate];
    let dry = replay(&lab, &join(&targets, &["--dry-run"]));
    let shown = text(&dry.stdout);
    assert!(
        shown.contains("servers that already run, and nothing else"),
        "{shown}"
    );
    assert!(shown.contains("database postgres, as replayer"), "{shown}");
    assert!(
        shown.contains("nothing is created, changed, analysed or restarted"),
        "{shown}"
    );
    assert!(shown.contains("blocks with new connections"), "{shown}");
    let output = replay(&lab, &join(&targets, &["--plans-only", "--json", "-"]));
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let answer = answer(&output);
    let differences = answer["differences"].to_string();
    for wanted in [
        "lacks shop.orders_customer",
        "shop.more",
        "shop.orders 20000",
        "work_mem",
        "search_path \\\"$user\\\", public → shop",
    ] {
        assert!(differences.contains(wanted), "{wanted}: {differences}");
    }
    assert!(
        answer.get("data").is_none() && answer["draws"] == 1,
        "{answer}"
    );
    let statement = |id: &str| {
        let mut all = answer["statements"].as_array().unwrap().iter();
        all.find(|one| one["id"] == id).unwrap()["verdicts"][0].clone()
    };
    assert_eq!(statement("by_customer")["plans"], "changed", "{answer}");
    assert_eq!(statement("by_customer")["results"], "results-differ");
    let visit = statement("visit");
    assert_eq!(visit["results"], "not-executed");
    assert!(
        visit["causes"].to_string().contains("volatile function"),
        "{visit}"
    );
    let notes = answer["notes"].to_string();
    assert!(notes.contains("it may change 1 tables"), "{notes}");
    assert!(
        notes.contains("statements of shop_owner are replayed by replayer"),
        "{notes}"
    );
    assert_eq!([state(&old), state(&new)], before);
    for secret in [PASSWORD, SECRET] {
        assert_eq!(
            holding(&lab.path().join("lab"), secret),
            [""; 0].map(PathBuf::from)
        );
        assert!(!said.contains(secret) && !text(&output.stdout).contains(secret));
    }
    execute(&new, "CREATE DATABASE other");
    let other = candidate.replace("/postgres?", "/other?");
    execute(&new, "GRANT CONNECT ON DATABASE other TO replayer");
    let mut there = client_of(&new, "other");
    there.execute("CREATE TABLE unknown (a int)").unwrap();
    let refused = replay(&lab, &[targets[0], &base, &other, "--plans-only"]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    assert!(text(&refused.stderr).contains("no table in common"));
    there.execute("DROP TABLE unknown").unwrap();
    let refused = replay(&lab, &[targets[0], &other, &base, "--plans-only"]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    assert!(text(&refused.stderr).contains("database of the base has no table"));
}

/// Six blocks in 20 s.
fn timed<'a>(capture: &'a Path, targets: [&'a str; 2]) -> [&'a str; 7] {
    let [base, candidate] = targets;
    let capture = capture.to_str().unwrap();
    [capture, base, candidate, "--blocks", "6", "--budget", "20s"]
}

#[test]
fn times_of_servers_as_they_are_have_a_placebo_and_no_restart_and_resume() {
    let (lab, [old, new]) = (Lab::new(), servers());
    execute(&new, "DROP INDEX shop.orders_customer");
    let before = [state(&old), state(&new)];
    let pids = [old.pid(), new.pid()];
    let path = capture(&lab);
    let (base, candidate) = (dsn(&old, "replayer"), dsn(&new, "replayer"));
    let arguments = timed(&path, [&base, &candidate]);
    let output = replay(&lab, &join(&arguments, &["--json", "-"]));
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let answer = answer(&output);
    let times = &answer["times"];
    assert_eq!(times["blocks"], 6, "{times}");
    assert!(
        times["placebo"]["ratio"]["estimate"].as_f64().unwrap() < 1.5,
        "{times}"
    );
    assert!(
        times["notes"].to_string().contains("not-restarted"),
        "{times}"
    );
    let mut statements = answer["statements"].as_array().unwrap().iter();
    let slower = statements.find(|one| one["id"] == "by_customer").unwrap();
    assert_eq!(
        slower["verdicts"][0]["time"]["verdict"], "slower",
        "{slower}"
    );
    assert_eq!([state(&old), state(&new)], before);
    assert_eq!([old.pid(), new.pid()], pids);
    for secret in [PASSWORD, SECRET] {
        assert_eq!(
            holding(&lab.path().join("lab"), secret),
            [""; 0].map(PathBuf::from)
        );
    }
    let again = lab.run(&["report", "last"]);
    assert_eq!(again.status.code(), Some(1), "{}", text(&again.stderr));
    assert!(text(&again.stdout).contains("in each all connections are new"));
    // A second one is killed and goes on.
    let second = Lab::new();
    let path = capture(&second);
    let arguments = timed(&path, [&base, &candidate]);
    let errors = std::fs::File::create(second.path().join("stderr")).unwrap();
    let mut command = second.command(&join(&["replay"], &arguments));
    let mut child = command
        .env("PGPASSWORD", PASSWORD)
        .stderr(errors)
        .spawn()
        .unwrap();
    second.wait_for(&mut child, "block 1/6");
    child.kill().unwrap();
    child.wait().unwrap();
    let resume = || {
        let mut resume = second.command(&["resume", "last", "--json", "-"]);
        resume.env("PGPASSWORD", PASSWORD).output().unwrap()
    };
    let mut beside = client_of(&new, "template1");
    for sql in [
        "ALTER DATABASE postgres RENAME TO first",
        "CREATE DATABASE postgres TEMPLATE first",
    ] {
        beside.execute(sql).unwrap();
    }
    let refused = resume();
    let said = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("has another data set now"), "{said}");
    for sql in [
        "DROP DATABASE postgres",
        "ALTER DATABASE first RENAME TO postgres",
    ] {
        beside.execute(sql).unwrap();
    }
    let whole = resume();
    let said = text(&whole.stderr);
    assert!(said.contains("visits of servers are done"), "{said}");
    assert_eq!(
        crate::replaying::answer(&whole)["times"]["blocks"],
        6,
        "{said}"
    );
}
