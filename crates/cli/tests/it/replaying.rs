//! `deltabench replay` on real servers, with the shop of `examples/replay`.

use crate::lab::{Lab, join, signal, text};
use crate::schema::breaches;
use deltabench_capture::{
    Capture, Fingerprint, Kind, Protocol, Statement, Tuple, Unusable, Weight, tokens,
};
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A value that nothing may show.
pub const SECRET: &str = "secret-customer-77";

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples/replay")
        .join(name)
}

/// The dump of the shop in a lab.
pub fn shop(lab: &Lab) -> PathBuf {
    let made = Command::new(example("make-shop"))
        .arg("8000")
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", text(&made.stderr));
    let path = lab.path().join("shop.dump");
    std::fs::write(&path, &made.stdout).unwrap();
    path
}

/// A prepared statement with these values.
pub fn prepared(id: &str, sql: &str, values: &[Vec<String>]) -> Statement {
    let tuple = |values: &Vec<String>| Tuple {
        text: None,
        values: values.iter().cloned().map(Some).collect(),
        ms: Some(1.0),
        n: 1.0,
    };
    Statement {
        id: id.to_owned(),
        name: None,
        normalised: Fingerprint::of(&tokens(sql).tokens).normalised,
        text: sql.to_owned(),
        protocol: Protocol::Prepared,
        role: Some("shop_owner".to_owned()),
        database: Some("shop".to_owned()),
        search_path: Some("shop, public".to_owned()),
        kind: Kind::Read,
        calls: 100,
        total_ms: Some(500.0),
        plan_ms: None,
        rows: Some(1.0),
        weight: Weight::Log,
        volatile: Vec::new(),
        query_ids: Vec::new(),
        errors: 0,
        unusable: Unusable::default(),
        tuples: values.iter().map(tuple).collect(),
    }
}

/// What no server takes, a function that tells what it gets, and settings that would stop our own statements.
const REFUSED: &str = "
ALTER DATABASE shop SET default_transaction_read_only = on;
ALTER DATABASE shop SET statement_timeout = 1;
ALTER ROLE shop_owner IN DATABASE shop SET work_mem = '77MB';
CREATE EXTENSION postgres_fdw WITH SCHEMA shop;
CREATE SERVER far FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '/nowhere');
CREATE TABLE shop.parts (id int) PARTITION BY LIST (id);
CREATE FOREIGN TABLE shop.far_part PARTITION OF shop.parts FOR VALUES IN (1) SERVER far;
CREATE FUNCTION shop.log() RETURNS event_trigger LANGUAGE plpgsql AS
  $$ BEGIN RAISE EXCEPTION 'no definitions'; END $$;
CREATE FUNCTION shop.gone() RETURNS int LANGUAGE c AS '$libdir/no_such_library', 'gone';
CREATE FUNCTION shop.tell(text) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
  $$ BEGIN RAISE EXCEPTION 'not %', $1 USING ERRCODE = '22023'; END $$;
CREATE EVENT TRIGGER log ON ddl_command_start EXECUTE PROCEDURE shop.log();
";

/// The statements of the example with times, and some with values as a log has them.
fn capture(lab: &Lab) -> PathBuf {
    let mut capture = Capture::open(&example("shop.sql")).unwrap();
    for statement in &mut capture.statements {
        statement.total_ms = Some(10.0);
    }
    // Customer 1 has half of the orders.
    let customer = |number: u32| match number {
        0..60 => vec![(number + 2).to_string(), "2026-01-01".to_owned()],
        _ => vec!["1".to_owned(), "2026-03-15".to_owned()],
    };
    let customers: Vec<Vec<String>> = (0..64).map(customer).collect();
    let sql = "SELECT total FROM orders WHERE customer_id = $1 AND at > $2";
    capture
        .statements
        .push(prepared("by_customer", sql, &customers));
    let names = [vec![SECRET.to_owned()], vec!["Customer 3".to_owned()]];
    let sql = "SELECT id FROM customers WHERE name = $1 OR city = 'secret-customer-77'";
    capture.statements.push(prepared("by_name", sql, &names));
    let bad = [vec![SECRET.to_owned()]];
    let sql = "SELECT name FROM customers WHERE id = $1::text::int";
    capture.statements.push(prepared("bad_value", sql, &bad));
    let sql = "SELECT shop.tell($1)";
    capture.statements.push(prepared("told", sql, &bad));
    let sql = "SELECT 1 / (current_setting('work_mem') = '77MB')::int";
    capture
        .statements
        .push(prepared("own_memory", sql, &[Vec::new()]));
    let path = [vec![format!("$.a ? (@ == \"{SECRET}\" x)")]];
    let sql = "SELECT $1::text::jsonpath";
    capture.statements.push(prepared("bad_path", sql, &path));
    let path = lab.path().join("shop.capture");
    capture.write(&path).unwrap();
    path
}

pub fn answer(output: &Output) -> Value {
    let schema = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/replay.schema.json"
    );
    let schema: Value = serde_json::from_slice(&std::fs::read(schema).unwrap()).unwrap();
    let said = text(&output.stderr);
    let answer: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
    assert_eq!(breaches(&schema, &answer), [""; 0]);
    answer
}

/// Names of statements whose verdict has a word.
fn with(answer: &Value, field: &str, word: &str) -> Vec<String> {
    let statements = answer["statements"].as_array().unwrap().iter();
    let found = statements.filter(|statement| statement["verdicts"][0][field] == word);
    let name = |statement: &Value| {
        let name = statement["name"].as_str().or(statement["id"].as_str());
        name.unwrap().to_owned()
    };
    let mut names: Vec<String> = found.map(name).collect();
    names.sort();
    names
}

/// Everything in a directory and below that holds these bytes.
pub fn holding(directory: &Path, bytes: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(holding(&path, bytes));
        } else if String::from_utf8_lossy(&std::fs::read(&path).unwrap()).contains(bytes) {
            found.push(path);
        }
    }
    found
}

#[test]
fn what_was_planted_is_found_and_nothing_else_and_no_value_leaves() {
    let lab = Lab::new();
    let (dump, capture) = (shop(&lab), capture(&lab));
    let mut more = std::fs::OpenOptions::new()
        .append(true)
        .open(&dump)
        .unwrap();
    more.write_all(REFUSED.as_bytes()).unwrap();
    let arguments = [
        "replay",
        capture.to_str().unwrap(),
        "postgres:14",
        "postgres:18",
        "--data",
        dump.to_str().unwrap(),
        "--plans-only",
        "--candidate-set",
        "cpu_index_tuple_cost=0.1",
    ];
    let output = lab.run(&join(&arguments, &["--json", "-"]));
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(lab.servers().is_empty() && lab.workspaces().is_empty());
    assert!(
        said.contains("transaction_timeout"),
        "14 does not know it: {said}"
    );
    let answer = answer(&output);
    assert_eq!(with(&answer, "errors", "new"), ["junk", "monitoring"]);
    let on_both = ["bad_path", "bad_value", "told"];
    assert_eq!(with(&answer, "errors", "both"), on_both);
    let gone = &answer["load_failures"][0];
    assert_eq!(gone["what"], "CREATE FUNCTION shop.gone");
    assert_eq!(
        (&gone["sqlstate"], &gone["servers"]),
        (&json!("58P01"), &json!([0, 1]))
    );
    let notes = answer["notes"].to_string();
    assert!(
        notes.contains("network: the dump has postgres_fdw"),
        "{notes}"
    );
    assert!(
        notes.contains("the databases here have the locale C"),
        "{notes}"
    );
    assert!(
        notes.contains("not-analysed: postgres:14") && notes.contains("shop.parts"),
        "{notes}"
    );
    let (covered, of) = (
        &answer["covered"],
        answer["statements"].as_array().unwrap().len(),
    );
    assert_eq!(
        covered["statements"],
        of - on_both.len(),
        "what failed is not covered"
    );
    assert_eq!(with(&answer, "results", "results-differ"), ["version"]);
    assert_eq!(with(&answer, "results", "rows-differ"), [""; 0]);
    let unexecuted = [
        "bad_path",
        "bad_value",
        "junk",
        "monitoring",
        "new_order",
        "pick",
        "ship",
        "told",
        "visit",
    ];
    assert_eq!(with(&answer, "results", "not-executed"), unexecuted);
    let statements = answer["statements"].as_array().unwrap();
    let by_customer = statements
        .iter()
        .find(|one| one["id"] == "by_customer")
        .unwrap();
    let verdict = &by_customer["verdicts"][0];
    assert_eq!(verdict["plans"], "changed");
    assert_eq!(by_customer["tuples"], 64);
    assert_eq!(verdict["changed"], 4, "those of customer 1: {verdict}");
    let planted = ["above_average", "by_customer", "recent"];
    assert_eq!(with(&answer, "plans", "changed"), planted);
    assert_eq!(with(&answer, "plans", "unstable-base"), [""; 0]);
    assert_eq!(with(&answer, "results", "order-differs"), [""; 0]);
    let html = std::fs::read_dir(lab.path().join("lab")).unwrap();
    let html = html
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|e| e == "html"));
    assert!(
        std::fs::read_to_string(html.unwrap())
            .unwrap()
            .contains("Seq Scan on orders")
    );
    // The capture and the dump are the user's; nothing else has a value.
    assert_eq!(
        holding(&lab.path().join("lab"), SECRET),
        [""; 0].map(PathBuf::from)
    );
    assert!(!said.contains(SECRET) && !text(&output.stdout).contains(SECRET));
    assert_eq!(
        failure(&answer, "bad_value"),
        "22P02 invalid input syntax for type integer: \"?\""
    );
    let told = "22023 (message left out: a function may have written values into it)";
    assert_eq!(failure(&answer, "told"), told);
    assert!(failure(&answer, "bad_path").starts_with("42601 syntax error"));
}

fn failure(answer: &Value, id: &str) -> String {
    let statements = answer["statements"].as_array().unwrap();
    let bad = statements.iter().find(|one| one["id"] == id).unwrap();
    let failure = &bad["servers"][1]["failures"][0];
    format!(
        "{} {}",
        failure["sqlstate"].as_str().unwrap(),
        failure["message"].as_str().unwrap()
    )
}

#[test]
fn a_server_against_itself_has_no_finding_and_its_report_is_printed_again() {
    let lab = Lab::new();
    let dump = shop(&lab);
    let shop = example("shop.sql");
    let output = lab.run(&[
        "replay",
        shop.to_str().unwrap(),
        "postgres:18",
        "postgres:18",
        "--data",
        dump.to_str().unwrap(),
        "--plans-only",
        "--draws",
        "1",
        "--allow-functions",
        "--same-target",
        "--clock",
        "2026-10-29 02:00+02",
    ]);
    let (shown, said) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{said}");
    let words: Vec<&str> = shown.split_whitespace().collect();
    let words = words.join(" ");
    let nothing = "0 statements fail, 0 have another plan, 0 return something else, 2 fail on both";
    assert!(words.contains(nothing), "{shown}");
    assert!(!words.contains("not executed: visit"), "{shown}");
    let name = said.split(':').next().unwrap().to_owned();
    // The dump ends the day before.
    let clock = "clock: on all servers it begins at 2026-10-29T00:00:00 UTC at each start";
    assert!(words.contains(clock), "{shown}");
    let json = lab.path().join("lab").join(format!("{name}.json"));
    let json: Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    let statements = json["statements"].as_array().unwrap();
    let recent = statements
        .iter()
        .find(|one| one["name"] == "recent")
        .unwrap();
    let rows = [0, 1].map(|server| recent["servers"][server]["rows"].as_u64().unwrap());
    assert!(
        rows[0] > 10 && rows[0] == rows[1],
        "of the last day: {recent}"
    );
    let again = lab.run(&["report", &name]);
    assert_eq!(text(&again.stdout), shown, "{}", text(&again.stderr));
    let page = lab.run(&["report", &name, "--format", "html"]);
    assert!(text(&page.stdout).starts_with("<!DOCTYPE html>"));
    assert_eq!(
        lab.run(&["report", &name, "--format", "csv"]).status.code(),
        Some(2)
    );
}

#[test]
fn a_replay_that_is_stopped_or_killed_leaves_nothing() {
    let lab = Lab::new();
    let dump = lab.path().join("slow.dump");
    std::fs::write(&dump, "CREATE TABLE t (a int);\nSELECT pg_sleep(600);\n").unwrap();
    let queries = lab.path().join("q.sql");
    std::fs::write(&queries, "SELECT a FROM t;").unwrap();
    let arguments = [
        "replay",
        queries.to_str().unwrap(),
        "postgres:17",
        "postgres:18",
        "--data",
        dump.to_str().unwrap(),
        "--plans-only",
    ];
    let mut child = lab.start(&arguments);
    lab.wait_for(&mut child, "loading");
    assert!(!lab.servers().is_empty());
    signal(child.id(), "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let said = std::fs::read_to_string(lab.path().join("stderr")).unwrap();
    let ended = "interrupted; the servers have ended, and their data are removed";
    assert!(said.contains(ended), "{said}");
    assert!(lab.servers().is_empty() && lab.workspaces().is_empty());
    let nap = "CREATE FUNCTION nap() RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT 1 FROM pg_sleep(600)';";
    std::fs::write(lab.path().join("nap.dump"), nap).unwrap();
    std::fs::write(lab.path().join("nap.sql"), "SELECT nap();").unwrap();
    let paths = ["nap.sql", "nap.dump"].map(|name| lab.path().join(name));
    let [statements, data] = paths.each_ref().map(|path| path.to_str().unwrap());
    let mut asking = arguments;
    (asking[1], asking[5]) = (statements, data);
    let mut child = lab.start(&join(&asking, &["--timeout", "100000s"]));
    lab.wait_for(&mut child, "every statement is explained");
    signal(child.id(), "-INT");
    let begun = std::time::Instant::now();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(
        begun.elapsed().as_secs() < 300,
        "before it would end itself"
    );
    assert!(lab.servers().is_empty() && lab.workspaces().is_empty());
    let mut child = lab.start(&arguments);
    lab.wait_for(&mut child, "loading");
    child.kill().unwrap();
    child.wait().unwrap();
    lab.wait_until_no_servers();
    std::fs::write(&dump, "CREATE EXTENSION nosuch;\n").unwrap();
    let said = text(&lab.run(&arguments).stderr);
    assert!(said.contains("removed "), "the killed one is swept: {said}");
    assert!(lab.servers().is_empty() && lab.workspaces().is_empty());
}

#[test]
fn what_cannot_be_replayed_is_refused_before_a_server_starts() {
    let lab = Lab::new();
    let dump = shop(&lab);
    let shop = example("shop.sql");
    let whole = std::fs::read_to_string(&dump).unwrap();
    let file = |name: &str, content: &[u8]| {
        let path = lab.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let half = whole.get(..whole.len() / 2).unwrap();
    let cases = [
        (file("cut.dump", half.as_bytes()), "the dump is cut"),
        (file("bz.dump", b"BZh91AY&SY"), "bunzip2"),
        (file("empty.dump", b"-- nothing\n"), "no statement"),
        (
            file("meta.dump", b"select 1;\n\\i other.sql\n"),
            "psql's command `\\i`",
        ),
        (
            file("program.dump", b"COPY t FROM PROGRAM 'id';\n"),
            "not FROM stdin",
        ),
        (
            file("sjis.dump", b"SET client_encoding = 'SJIS';\nselect 1;\n"),
            "SJIS",
        ),
        (file("utf16.dump", b"\xff\xfes\0e\0"), "UTF-16"),
        (
            file("server.log", b"2026-11-26 UTC [7] LOG:  started; ready\n"),
            "line 1 begins no statement of SQL",
        ),
        ("nowhere.dump".to_owned(), "cannot read nowhere.dump"),
    ];
    let shop = shop.to_str().unwrap();
    let refused = |arguments: &[&str], wanted: &str| {
        let output = lab.run(&join(&["replay", shop], arguments));
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(
            said.contains(wanted) && said.contains("hint:"),
            "{wanted}: {said}"
        );
        assert!(!lab.path().join("lab").exists() && lab.workspaces().is_empty());
    };
    for (path, wanted) in &cases {
        refused(
            &["postgres:17", "postgres:18", "--plans-only", "--data", path],
            wanted,
        );
    }
    let dump = dump.to_str().unwrap();
    refused(
        &["postgres:17", "postgres:18", "--no-execute", "--data", dump],
        "add --plans-only",
    );
    refused(
        &["postgres:18", "postgres:18", "--plans-only", "--data", dump],
        "add --same-target",
    );
    refused(
        &[
            "postgres:17",
            "postgres:18",
            "--budget",
            "soon",
            "--data",
            dump,
        ],
        "--budget 15m",
    );
    let dsn = "dsn:postgres://me@localhost/shop";
    refused(
        &["postgres:17", dsn, "--plans-only", "--data", dump],
        "with another data set",
    );
    refused(
        &["postgres:17", "postgres:18", "--plans-only"],
        "name the dump with --data",
    );
    let with_agent = "dsn:postgres://me@localhost/shop?agent=ssh:localhost";
    for (option, arguments) in [
        ("--data", vec![dsn, dsn, "--data", dump]),
        ("--set", vec![dsn, dsn, "--set", "work_mem=1MB"]),
        (
            "--candidate-set",
            vec![dsn, dsn, "--candidate-set", "work_mem=1MB"],
        ),
        ("--config", vec![dsn, dsn, "--candidate-config", "default"]),
        ("--checksums", vec![dsn, dsn, "--checksums", "on"]),
        ("--draws", vec![dsn, dsn, "--draws", "3"]),
        ("agent=", vec![dsn, with_agent]),
    ] {
        let message = format!("{option} does not apply to servers that already run");
        refused(&arguments, &message);
    }
    refused(
        &[
            "postgres:17",
            "postgres:18",
            "--plans-only",
            "--timeout",
            "soon",
            "--data",
            dump,
        ],
        "--timeout 60s",
    );
    let dry = lab.run(&[
        "replay",
        shop,
        "postgres:17",
        "postgres:18",
        "--plans-only",
        "--dry-run",
        "--data",
        dump,
    ]);
    let shown = text(&dry.stdout);
    assert_eq!(dry.status.code(), Some(0), "{}", text(&dry.stderr));
    assert!(
        shown.contains("explain, may execute  order_by_id"),
        "{shown}"
    );
    assert!(shown.contains("explain, may execute  ship"), "{shown}");
    assert!(shown.contains("writes and locks: on a new copy"), "{shown}");
    let only = [
        "replay",
        shop,
        "postgres:17",
        "postgres:18",
        "--plans-only",
        "--dry-run",
        "--writes",
        "explain",
        "--data",
        dump,
    ];
    let shown_only = text(&lab.run(&only).stdout);
    assert!(
        shown_only.contains("explain               ship"),
        "{shown_only}"
    );
    assert!(!shown_only.contains("on a new copy"), "{shown_only}");
    assert!(!shown.contains("4711"), "no value: {shown}");
    assert!(!lab.path().join("lab").exists() && lab.workspaces().is_empty());
}

#[test]
fn a_dry_run_says_what_would_be_executed_and_what_only_a_server_can_say() {
    let lab = Lab::new();
    let (dump, queries) = (lab.path().join("t.dump"), lab.path().join("q.sql"));
    std::fs::write(&dump, "CREATE TABLE t (a int);\n").unwrap();
    let text_of =
        "-- name: sleeps\nSELECT pg_sleep(1), a FROM t;\n-- name: reads\nSELECT a FROM t;\n";
    std::fs::write(&queries, text_of).unwrap();
    let arguments = [
        "replay",
        queries.to_str().unwrap(),
        "postgres:17",
        "postgres:18",
        "--plans-only",
        "--dry-run",
        "--data",
        dump.to_str().unwrap(),
    ];
    let shown = |more: &[&str]| {
        let output = lab.run(&join(&arguments, more));
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let careful = shown(&[]);
    for wanted in [
        "explain               sleeps",
        "not executed for 1 of 1: it calls pg_sleep",
        "explain, may execute  reads",
        "every server explains it",
        "no foreign table and no system catalog, and it calls no volatile function",
    ] {
        assert!(careful.contains(wanted), "{wanted}: {careful}");
    }
    let bold = shown(&["--allow-functions"]);
    assert!(bold.contains("not executed for 1 of 1: it calls pg_sleep"));
    assert!(
        bold.contains("no system catalog") && !bold.contains("volatile"),
        "{bold}"
    );
    let explained = shown(&["--no-execute"]);
    assert!(!explained.contains("execute"), "{explained}");
}

#[test]
fn extensions_that_a_server_lacks_are_named_before_anything_is_loaded() {
    let lab = Lab::new();
    let dump = lab.path().join("e.dump");
    let text_of =
        "CREATE EXTENSION IF NOT EXISTS nosuch SCHEMA public;\nCREATE EXTENSION \"other-one\";\n";
    std::fs::write(&dump, text_of).unwrap();
    let queries = lab.path().join("q.sql");
    std::fs::write(&queries, "SELECT 1 FROM pg_class;").unwrap();
    let output = lab.run(&[
        "replay",
        queries.to_str().unwrap(),
        "postgres:17",
        "postgres:18",
        "--data",
        dump.to_str().unwrap(),
        "--plans-only",
    ]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(!said.contains("loading"), "{said}");
    assert_eq!(
        said.matches("has no nosuch, other-one").count(),
        2,
        "{said}"
    );
    assert!(lab.servers().is_empty() && lab.workspaces().is_empty());
}

/// Statements and roles that could do harm, on tables with row security.
const HARMFUL_DUMP: &str = "
CREATE ROLE boss SUPERUSER LOGIN;
CREATE TABLE notes (id int, owner text, text text);
INSERT INTO notes VALUES (1, 'reader', 'a'), (2, 'other', 'b'), (3, 'other', 'c');
ALTER TABLE notes OWNER TO boss;
ALTER TABLE notes ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON notes TO reader USING (owner = current_user);
GRANT SELECT ON notes TO reader;
CREATE FUNCTION wipe() RETURNS bigint LANGUAGE sql SECURITY DEFINER AS
  $$ DELETE FROM notes; SELECT count(*) FROM notes; $$;
ALTER FUNCTION wipe() OWNER TO boss;
CREATE VIEW wiping AS SELECT wipe();
CREATE VIEW wiping_too AS SELECT * FROM wiping;
GRANT SELECT ON wiping_too TO reader;
";

#[test]
fn statements_run_as_the_captured_role_which_is_no_superuser_and_change_nothing() {
    let lab = Lab::new();
    let dump = lab.path().join("harm.dump");
    std::fs::write(&dump, HARMFUL_DUMP).unwrap();
    let of = |id: &str, role: &str, sql: &str| Statement {
        role: Some(role.to_owned()),
        search_path: Some("public".to_owned()),
        ..prepared(id, sql, &[Vec::new()])
    };
    let capture = Capture {
        statements: vec![
            of("as_reader", "reader", "SELECT id FROM notes"),
            of("as_boss", "boss", "SELECT id FROM notes"),
            of("as_nobody", "gone", "SELECT id FROM notes"),
            of("calls", "reader", "SELECT wipe()"),
            of("views", "reader", "SELECT * FROM wiping_too"),
            of("super", "boss", "SELECT rolpassword FROM pg_authid"),
            of(
                "ends",
                "boss",
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity",
            ),
        ],
        ..Capture::default()
    };
    let path = lab.path().join("harm.capture");
    capture.write(&path).unwrap();
    let arguments = [
        "replay",
        path.to_str().unwrap(),
        "postgres:14",
        "postgres:18",
        "--data",
        dump.to_str().unwrap(),
        "--plans-only",
        "--draws",
        "1",
        "--json",
        "-",
    ];
    let run = |code: i32, more: &[&str]| {
        let output = lab.run(&join(&arguments, more));
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert_eq!(said.contains("NOT COMPARED: 3 of 7"), code == 3, "{said}");
        answer(&output)
    };
    let rows = |answer: &Value, id: &str| {
        let statements = answer["statements"].as_array().unwrap();
        let found = statements.iter().find(|one| one["id"] == id).unwrap();
        found["servers"][1]["rows"].as_u64()
    };
    let careful = run(0, &[]);
    assert_eq!(rows(&careful, "as_reader"), Some(1), "row security holds");
    assert_eq!(rows(&careful, "as_boss"), Some(3), "the owner's");
    assert_eq!(rows(&careful, "as_nobody"), Some(3));
    let unexecuted = ["calls", "ends", "super", "views"];
    assert_eq!(with(&careful, "results", "not-executed"), unexecuted);
    assert_eq!(
        with(&careful, "errors", "both"),
        ["super"],
        "it is no superuser"
    );
    assert!(
        careful["notes"][0]
            .as_str()
            .unwrap()
            .contains("role-missing: the dump has no gone")
    );
    // More than a fifth fails on both servers, which is no answer on them.
    let bold = run(3, &["--allow-functions"]);
    assert_eq!(with(&bold, "errors", "both"), ["calls", "super", "views"]);
    assert_eq!(with(&bold, "results", "not-executed"), unexecuted);
    let statements = bold["statements"].as_array().unwrap();
    let calls = statements.iter().find(|one| one["id"] == "calls").unwrap();
    assert_eq!(
        calls["servers"][1]["failures"][0]["sqlstate"], "25006",
        "read only"
    );
}

/// Statements that each version prints in its own way.
const PRINTED: &str = "
-- name: syntax
SELECT id FROM t WHERE extract(year FROM at AT TIME ZONE 'UTC') = 2026 AND substring(name FROM 1 FOR 2) = 'ab'
  AND trim(name) = 'x' AND position('a' IN name) > 0 AND overlay(name PLACING 'x' FROM 1) = 'y';
-- name: subplan
SELECT id FROM t WHERE id > (SELECT max(id) / 2 FROM t) AND id NOT IN (SELECT id + 1 FROM t);
-- name: sorted
SELECT count(*) FROM t WHERE id IN (1, 2, 3) AND name LIKE 'a%' GROUP BY date_trunc('day', at) ORDER BY 1;
-- name: window
SELECT * FROM (SELECT id, row_number() OVER (ORDER BY id) AS n FROM t) s WHERE n < 3;
";

#[test]
fn plans_that_only_print_differently_are_the_same_from_9_6_to_18() {
    let lab = Lab::new();
    let (dump, queries) = (lab.path().join("t.dump"), lab.path().join("q.sql"));
    let rows = "CREATE TABLE t (id int, at timestamptz, name text);
        INSERT INTO t SELECT n, '2026-01-01', n FROM generate_series(1, 500) n;";
    std::fs::write(&dump, rows).unwrap();
    std::fs::write(&queries, PRINTED).unwrap();
    let servers = ["postgres:17", "postgres:9.6", "postgres:18"];
    let mut arguments = vec!["replay", queries.to_str().unwrap()];
    arguments.extend(servers);
    let dump = ["--plans-only", "--data", dump.to_str().unwrap()];
    arguments.extend(dump);
    let output = lab.run(&join(&arguments, &["--json", "-", "--draws", "1"]));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let answer = answer(&output);
    assert_eq!(answer["covered"]["statements"], 4);
    // 9.6 reads the window to its end.
    for (candidate, changed) in [(0, &["window"][..]), (1, &[])] {
        let statements = answer["statements"].as_array().unwrap().iter();
        let other = statements.filter(|one| one["verdicts"][candidate]["plans"] != "same");
        let names: Vec<&str> = other.map(|one| one["name"].as_str().unwrap()).collect();
        assert_eq!(names, changed, "{}", answer["plans"]);
    }
}
