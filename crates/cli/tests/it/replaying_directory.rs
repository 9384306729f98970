//! `deltabench replay` on copies of a data directory, with real servers.

use crate::lab::{Lab, join, signal, text};
use crate::replaying::{SECRET, answer, prepared, shop};
use crate::replaying_times::name;
use deltabench_capture::{Capture, Kind, Statement};
use deltabench_driver::Client;
use deltabench_model::endpoint::Endpoint;
use deltabench_replay::{DumpFile, Loading, load};
use deltabench_testkit::{Cluster, whole_installation};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// What its own server must not do while it is filled.
const SETTINGS: [&str; 2] = ["max_logical_replication_workers=0", "autovacuum=off"];

/// The data directory of a stopped server: the shop twice updated, with a subscription that would connect to
/// `publisher` as soon as a server starts that runs subscriptions.
fn directory(lab: &Lab, cluster: &mut Cluster, publisher: u16) -> PathBuf {
    let dump = DumpFile::find(&shop(lab)).unwrap();
    let mut login = cluster.login();
    let connect =
        |login: &_| Client::connect(&cluster.endpoint(), login, Duration::from_secs(60)).unwrap();
    let mut client = connect(&login);
    let fast = place(cluster).0.join("fast");
    for sql in [
        "CREATE DATABASE shop",
        "CREATE DATABASE other",
        &format!(
            "COPY (SELECT 1) TO PROGRAM 'cat > /dev/null; mkdir {}'",
            fast.display()
        ),
        &format!("CREATE TABLESPACE fast LOCATION '{}'", fast.display()),
        "CREATE ROLE reporting SUPERUSER LOGIN PASSWORD 'secret-password'",
    ] {
        client.execute(sql).unwrap();
    }
    login.database = "shop".to_owned();
    let loading = Loading {
        dump: &dump,
        endpoint: &cluster.endpoint(),
        login: &login,
        interrupted: &AtomicBool::new(false),
    };
    load(&loading).unwrap();
    let mut client = connect(&login);
    let publisher =
        format!("host=127.0.0.1 port={publisher} user=postgres dbname=shop connect_timeout=2");
    for sql in [
        "CREATE TABLE shop.quick TABLESPACE fast AS SELECT n FROM generate_series(1, 5000) AS n",
        "GRANT SELECT ON shop.quick TO public",
        "UPDATE shop.orders SET status = status + 1",
        "UPDATE shop.orders SET status = status - 1",
        &format!(
            "CREATE SUBSCRIPTION far CONNECTION '{publisher}' PUBLICATION shop WITH (connect = false)"
        ),
        "ALTER SUBSCRIPTION far ENABLE",
        "CREATE FUNCTION shop.log() RETURNS event_trigger LANGUAGE plpgsql AS \
         $$ BEGIN RAISE EXCEPTION 'no definitions'; END $$",
        // Of the first superuser: writes would be left out if it kept all rights.
        "ALTER FUNCTION shop.visit() SECURITY DEFINER",
        "CREATE EVENT TRIGGER log ON ddl_command_start EXECUTE FUNCTION shop.log()",
        "ALTER ROLE ALL SET default_transaction_read_only = on",
    ] {
        client.execute(sql).unwrap();
    }
    drop(client);
    attack(cluster, &lab.path().join("noted"));
    back_up(lab, cluster, &fast);
    let data = cluster.stop();
    // What would harm, or leave this machine; and a setting that makes another plan.
    let settings = "enable_indexscan = off\nenable_bitmapscan = off\nenable_indexonlyscan = off\n\
                    shared_preload_libraries = 'no_such_library'\nlisten_addresses = '*'\n\
                    archive_mode = on\narchive_command = 'false'\n";
    let mut conf = std::fs::read_to_string(data.join("postgresql.conf")).unwrap();
    conf.push_str(settings);
    std::fs::write(data.join("postgresql.conf"), conf).unwrap();
    data
}

/// The directory of a cluster, which has its data and its socket, and the number of the socket.
fn place(cluster: &Cluster) -> (PathBuf, u16) {
    match cluster.endpoint() {
        Endpoint::Unix { directory, port } => (directory, port),
        other => panic!("{other:?} is no local socket"),
    }
}

/// A base backup of the running server, as its owner makes it.
fn back_up(lab: &Lab, cluster: &Cluster, fast: &Path) {
    let (directory, port) = place(cluster);
    let to = lab.path().join("backup");
    let mapping = format!("{}={}", fast.display(), lab.path().join("quick").display());
    let made = Command::new(whole_installation().bin_dir.join("pg_basebackup"))
        .args(["-X", "stream", "-c", "fast", "-U", "postgres", "-D"])
        .arg(&to)
        .args(["-T", &mapping, "-p", &port.to_string(), "-h"])
        .arg(&directory)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", text(&made.stderr));
}

/// A function in database `other` that only reads, of a table whose rows a program writes: it tries to write
/// into the data directory, and notes who it is in `noted`.
fn attack(cluster: &Cluster, noted: &Path) {
    let mut login = cluster.login();
    login.database = "other".to_owned();
    let mut client = Client::connect(&cluster.endpoint(), &login, Duration::from_secs(60)).unwrap();
    let program = format!(
        "touch {}/touched; id -un >> {}; echo row",
        place(cluster).0.join("data").display(),
        noted.display()
    );
    for sql in [
        "SET default_transaction_read_only = off",
        "CREATE EXTENSION file_fdw",
        "CREATE SERVER files FOREIGN DATA WRAPPER file_fdw",
        &format!(
            "CREATE FOREIGN TABLE rows (line text) SERVER files OPTIONS (program '{program}')"
        ),
        "GRANT SELECT ON rows TO public",
        "CREATE FUNCTION innocent() RETURNS bigint STABLE LANGUAGE plpgsql AS \
         $$ BEGIN RETURN (SELECT count(*) FROM rows); END $$",
    ] {
        client.execute(sql).unwrap();
    }
}

/// Files with their sizes and times.
fn files(directory: &Path) -> Vec<(PathBuf, u64, std::time::SystemTime)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let metadata = std::fs::symlink_metadata(&path).unwrap();
        if metadata.is_dir() {
            found.extend(files(&path));
        }
        found.push((path, metadata.len(), metadata.modified().unwrap()));
    }
    found.sort();
    found
}

/// A read, a statement that fails unless the bloat is there, and a write.
fn capture(lab: &Lab) -> PathBuf {
    let customers: Vec<Vec<String>> = (2..34).map(|id: u32| vec![id.to_string()]).collect();
    let bloat = "SELECT 1 / (pg_relation_size('shop.orders') > 1400000)::int";
    let as_superuser = "SELECT 1 / (current_setting('is_superuser') = 'off')::int";
    let capture = Capture {
        statements: vec![
            prepared(
                "by_customer",
                "SELECT id FROM orders WHERE customer_id = $1",
                &customers,
            ),
            prepared("bloat", bloat, &[Vec::new()]),
            Statement {
                role: Some("reporting".to_owned()),
                ..prepared("as_superuser", as_superuser, &[Vec::new()])
            },
            Statement {
                kind: Kind::Write,
                ..prepared(
                    "update",
                    "UPDATE orders SET status = 3 WHERE id = $1",
                    &customers,
                )
            },
        ],
        ..Capture::default()
    };
    let path = lab.path().join("shop.capture");
    capture.write(&path).unwrap();
    path
}

fn refused(output: &Output) -> String {
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    said
}

#[test]
fn copies_of_a_data_directory_keep_its_bloat_and_never_reach_its_publisher() {
    let lab = Lab::new();
    let tree = whole_installation();
    let mut cluster = Cluster::start(&tree.bin_dir, "local replication all trust", &SETTINGS);
    let publisher = TcpListener::bind("127.0.0.1:0").unwrap();
    publisher.set_nonblocking(true).unwrap();
    let data = directory(&lab, &mut cluster, publisher.local_addr().unwrap().port());
    let before = files(&data);
    let target = format!("path:{}", tree.bin_dir.parent().unwrap().display());
    let capture = capture(&lab);
    let source = format!("datadir:{}", data.display());
    let replay = |candidate: &str, more: &[&str]| {
        let capture = capture.to_str().unwrap();
        let all = [
            "replay",
            capture,
            &target,
            candidate,
            "--data",
            &source,
            "--draws",
            "1",
            "--same-target",
        ];
        lab.run(&join(&all, more))
    };
    let output = replay(
        &target,
        &[
            "--blocks", "2", "--budget", "10s", "--mix", "2", "--json", "-",
        ],
    );
    let said = text(&output.stderr);
    // Too little time for a verdict on the workload.
    assert!(matches!(output.status.code(), Some(0 | 3..=5)), "{said}");
    assert!(lab.servers().is_empty() && lab.workspaces().is_empty());
    assert!(
        said.contains("that its server loaded and the copies do not: no_such_library"),
        "{said}"
    );
    assert!(
        publisher.accept().is_err(),
        "a copy connected to the publisher"
    );
    assert_eq!(files(&data), before, "the directory was changed");
    let answer = answer(&output);
    let directory = &answer["data"]["directory"];
    assert_eq!(
        (&directory["database"], &directory["upgraded"]),
        (&"shop".into(), &serde_json::Value::Null)
    );
    assert_eq!(answer["covered"]["statements"], 4);
    for statement in answer["statements"].as_array().unwrap() {
        assert_eq!(statement["verdicts"][0]["errors"], "none", "{statement}");
        assert_ne!(
            statement["verdicts"][0]["results"], "not-executed",
            "{statement}"
        );
    }
    // The planner's settings of the directory are those of its copies.
    let plans = answer["plans"].to_string();
    assert!(
        plans.contains("Seq Scan on orders") && !plans.contains("Index Scan"),
        "{plans}"
    );
    assert!(
        answer["notes"]
            .to_string()
            .contains("1 subscription of the directory")
    );
    // The placebo has a copy of the copy.
    assert!(
        answer["times"]["mix"]["placebo"].is_object(),
        "{}",
        answer["times"]
    );
    assert!(
        !answer.to_string().contains("secret-password") && !answer.to_string().contains(SECRET)
    );

    let elsewhere = refused(&replay(&target, &["--database", "none", "--plans-only"]));
    assert!(
        elsewhere.contains("no database none") && elsewhere.contains("other, postgres, shop"),
        "{elsewhere}"
    );
    let prebuilt = refused(&replay("postgres:18", &["--plans-only"]));
    assert!(
        prebuilt.contains("postgres:18") && prebuilt.contains("has no pg_upgrade"),
        "{prebuilt}"
    );
    std::fs::write(data.join("postmaster.pid"), "1\n").unwrap();
    let running = refused(&replay(&target, &["--plans-only"]));
    assert!(
        running.contains("postmaster.pid is there") && running.contains("hint:"),
        "{running}"
    );
    assert!(lab.servers().is_empty() && !lab.clusters().exists());
}

/// A capture with one statement.
fn single(lab: &Lab, name: &str, sql: &str) -> String {
    let path = lab.path().join(format!("{name}.capture"));
    let capture = Capture {
        statements: vec![Statement {
            rows: None,
            database: None,
            search_path: None,
            ..prepared(name, sql, &[Vec::new()])
        }],
        ..Capture::default()
    };
    capture.write(&path).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Who may do what to whom: one server of a distribution, its directory and a base backup of it.
#[test]
fn copies_cannot_change_their_original_and_a_base_backup_is_recovered_in_its_copy() {
    let lab = Lab::new();
    let tree = whole_installation();
    let mut cluster = Cluster::start(&tree.bin_dir, "local replication all trust", &SETTINGS);
    let noted = lab.path().join("noted");
    std::fs::write(&noted, "").unwrap();
    std::fs::set_permissions(&noted, std::fs::Permissions::from_mode(0o666)).unwrap();
    let data = directory(&lab, &mut cluster, 1);
    let before = files(&data);
    let target = format!("path:{}", tree.bin_dir.parent().unwrap().display());
    let source = |data: &Path| format!("datadir:{}", data.display());
    let arguments = |capture: &str, source: &str, database: &str| {
        let all = [
            "replay",
            capture,
            &target,
            &target,
            "--data",
            source,
            "--database",
            database,
        ];
        let more = ["--plans-only", "--draws", "1", "--same-target"];
        join(&all, &more)
            .into_iter()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let run = |arguments: &[String], more: &[&str]| {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        lab.run(&join(&arguments, more))
    };

    let harmful = arguments(
        &single(&lab, "harmful", "SELECT innocent()"),
        &source(&data),
        "other",
    );
    let output = run(&harmful, &["--json", "-"]);
    let said = text(&output.stderr);
    let is_root = std::fs::metadata(lab.path()).unwrap().uid() == 0;
    if is_root {
        assert!(
            said.contains("servers run as nobody, who cannot change"),
            "{said}"
        );
        let answer = answer(&output);
        assert_eq!(answer["statements"][0]["servers"][1]["rows"], 1, "{answer}");
        let who = std::fs::read_to_string(&noted).unwrap();
        assert!(
            !who.is_empty() && who.lines().all(|one| one == "nobody"),
            "{who}"
        );
        let owner = refused(&run(&harmful, &["--server-user", "postgres"]));
        assert!(
            owner.contains("`postgres` cannot run servers on copies"),
            "{owner}"
        );
    } else {
        let said = refused(&output);
        assert!(
            said.contains("functions of the copies could change"),
            "{said}"
        );
        assert_eq!(std::fs::read_to_string(&noted).unwrap(), "");
    }
    assert_eq!(files(&data), before, "a copy changed the directory");

    let rows = single(
        &lab,
        "rows",
        "SELECT 1 / (count(*) = 5000)::int, (SELECT count(*) FROM shop.orders) FROM shop.quick",
    );
    let backup = lab.path().join("backup");
    let before = (files(&backup), files(&lab.path().join("quick")));
    let of_backup = arguments(&rows, &source(&backup), "shop");
    let dry = run(&of_backup, &["--dry-run"]);
    let said = text(&dry.stdout);
    assert!(
        said.contains("it is a base backup") && said.contains("who can"),
        "{said}"
    );
    let output = run(&of_backup, &["--json", "-"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let answer = answer(&output);
    assert_eq!(
        answer["statements"][0]["verdicts"][0]["results"], "same",
        "{answer}"
    );
    assert!(
        answer["notes"].to_string().contains("recovered a copy"),
        "{answer}"
    );
    assert_eq!((files(&backup), files(&lab.path().join("quick"))), before);

    // Without its log it is not whole.
    for file in std::fs::read_dir(backup.join("pg_wal")).unwrap() {
        let _ = std::fs::remove_file(file.unwrap().path());
    }
    let without = refused(&run(&of_backup, &[]));
    assert!(
        without.contains("cannot recover") && without.contains("-X stream"),
        "{without}"
    );
    assert!(lab.servers().is_empty() && !lab.clusters().exists());

    // A run that is killed in a directory of its own is found by a run in another one.
    let once = lab.path().join("once");
    let of_data = arguments(&rows, &source(&data), "shop");
    let of_data: Vec<&str> = of_data.iter().map(String::as_str).collect();
    let errors = std::fs::File::create(lab.path().join("stderr")).unwrap();
    let mut command = lab.command_in(&once, &of_data);
    let mut child = command
        .stdout(Stdio::null())
        .stderr(errors)
        .spawn()
        .unwrap();
    lab.wait_for(&mut child, "drawing statistics");
    signal(child.id(), "-KILL");
    child.wait().unwrap();
    assert!(once.read_dir().unwrap().count() > 0, "its copies are there");
    let next = refused(&run(&arguments(&rows, &source(&data), "none"), &[]));
    assert!(next.contains("removed"), "{next}");
    assert_eq!(once.read_dir().unwrap().count(), 0);
}

#[test]
fn a_replay_that_goes_on_writes_nothing_into_the_data_directory() {
    let lab = Lab::new();
    let tree = whole_installation();
    let mut cluster = Cluster::start(&tree.bin_dir, "local replication all trust", &SETTINGS);
    let data = directory(&lab, &mut cluster, 1);
    let before = files(&data);
    let target = format!("path:{}", tree.bin_dir.parent().unwrap().display());
    let (capture, source) = (capture(&lab), format!("datadir:{}", data.display()));
    let mut child = lab.start(&[
        "replay",
        capture.to_str().unwrap(),
        &target,
        &target,
        "--data",
        &source,
        "--draws",
        "1",
        "--same-target",
        "--blocks",
        "6",
        "--budget",
        "60s",
    ]);
    lab.wait_for(&mut child, "block 1/6");
    signal(child.id(), "-KILL");
    child.wait().unwrap();
    lab.wait_until_no_servers();
    let name = name(&lab.path().join("lab"));
    let inside = data.join("clusters");
    let output = lab.command_in(&inside, &["resume", &name]).output();
    let said = refused(&output.unwrap());
    assert!(said.contains("is inside the data directory"), "{said}");
    assert_eq!(files(&data), before, "the directory was changed");
}
