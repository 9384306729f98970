//! `deltabench replay` on copies of a data directory, with real servers.

use crate::lab::{Lab, join, text};
use crate::replaying::{SECRET, answer, prepared, shop};
use deltabench_capture::{Capture, Kind, Statement};
use deltabench_driver::Client;
use deltabench_replay::{DumpFile, Loading, load};
use deltabench_testkit::{Cluster, whole_installation};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Output;
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
        |login: &_| Client::connect(&cluster.endpoint(), login, Duration::from_secs(20)).unwrap();
    let mut client = connect(&login);
    for sql in [
        "CREATE DATABASE shop",
        "CREATE DATABASE other",
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
    let mut cluster = Cluster::start(&tree.bin_dir, "", &SETTINGS);
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
            "replay", capture, &target, candidate, "--data", &source, "--draws", "1",
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
    assert!(lab.servers().is_empty() && lab.workspaces().is_empty());
}
