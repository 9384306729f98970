//! Logs of servers that are started here: every format of every version says the same.

use crate::client::Client;
use crate::recorded::{captured, directory, request};
use crate::workload::{LAST, check, execute};
use deltabench_capture::{Capture, Statement, Weight};
use deltabench_model::endpoint::Endpoint;
use deltabench_model::installation::Installation;
use deltabench_testkit::{Cluster, installations};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

fn major(installation: &Installation) -> u32 {
    installation.version_num / 10_000
}

fn started(installation: &Installation) -> (Cluster, PathBuf) {
    let major = major(installation);
    let formats = if major >= 15 {
        "stderr,csvlog,jsonlog"
    } else {
        "stderr,csvlog"
    };
    let destination = format!("log_destination={formats}");
    let mut settings = vec![
        "logging_collector=on",
        "log_directory=log",
        "log_filename=all.log",
        "log_line_prefix=%m [%p] %q%u@%d ",
        "log_timezone=UTC",
        "lc_messages=C",
        "log_min_duration_statement=0",
        "shared_preload_libraries=pg_stat_statements",
        &destination,
    ];
    if major >= 14 {
        settings.push("compute_query_id=on");
    }
    let cluster = Cluster::start(&installation.bin_dir, "", &settings);
    let Endpoint::Unix { directory, .. } = cluster.endpoint() else {
        panic!("no local socket");
    };
    (cluster, directory)
}

/// Waits until all formats have this statement.
fn logs(directory: &Path, major: u32, last: &str) -> Vec<PathBuf> {
    let formats: &[&str] = if major >= 15 {
        &["log", "csv", "json"]
    } else {
        &["log", "csv"]
    };
    let file = |format: &&str| directory.join(format!("data/log/all.{format}"));
    let files: Vec<PathBuf> = formats.iter().map(file).collect();
    let limit = Instant::now() + Duration::from_secs(60);
    while !files.iter().all(|file| {
        let text = std::fs::read(file).unwrap_or_default();
        text.windows(last.len())
            .any(|window| window == last.as_bytes())
    }) {
        assert!(Instant::now() < limit, "no {last} in {files:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
    files
}

/// What does not differ between formats: text logs have no identifiers.
fn alike(mut capture: Capture) -> Vec<Statement> {
    for statement in &mut capture.statements {
        statement.query_ids.clear();
    }
    capture.statements
}

fn statistics(directory: &Path, to: &Path) {
    let mut client = Client::connect(directory, "postgres", &[]);
    let csv = client.simple(
        b"copy (select s.*, r.rolname, d.datname from pg_stat_statements s left join pg_roles r on r.oid = \
          s.userid left join pg_database d on d.oid = s.dbid) to stdout csv header",
    );
    std::fs::write(to, csv).unwrap();
}

#[test]
fn every_format_of_every_version_has_the_same_statements_and_the_statistics_find_them() {
    let installations = installations();
    std::thread::scope(|scope| {
        for installation in &installations {
            scope.spawn(|| of_installation(installation));
        }
    });
}

fn of_installation(installation: &Installation) {
    let major = major(installation);
    let (cluster, socket) = started(installation);
    Client::connect(&socket, "postgres", &[]).simple(b"create extension pg_stat_statements");
    execute(&socket, major);
    let files = logs(&socket, major, LAST);
    let captures: Vec<Capture> = files.iter().map(|file| captured(&[file])).collect();
    for capture in &captures {
        check(capture, major);
        let (found, text) = (alike(capture.clone()), alike(captures[0].clone()));
        for (one, other) in found.iter().zip(&text) {
            assert_eq!(one, other);
        }
        assert_eq!(found.len(), text.len());
    }
    let scratch = tempfile::tempdir().unwrap();
    let csv = scratch.path().join("statements.csv");
    statistics(&socket, &csv);
    for file in &files {
        weighed(file, &csv);
    }
    if std::env::var_os("DELTABENCH_BLESS").is_some() {
        record(installation, &files);
    }
    of_functions(&socket, major);
    drop(cluster);
}

/// What a function writes into the log is no statement, whatever it looks like.
fn of_functions(socket: &Path, major: u32) {
    let mut client = Client::connect(socket, "postgres", &[]);
    client.simple(b"do $$ begin raise log 'statement: select whispered'; end $$");
    let last = "select 'functions ended'";
    client.simple(last.as_bytes());
    for file in logs(socket, major, last) {
        let text = std::fs::read(&file).unwrap();
        let message = b"LOG:  statement: select whispered";
        let is_text = file.extension().is_some_and(|ending| ending == "log");
        assert!(!is_text || text.windows(message.len()).any(|window| window == message));
        let capture = captured(&[&file]);
        let statements = capture.statements.iter();
        let mut names = statements.map(|statement| &statement.normalised);
        assert!(!names.any(|name| name.contains("whispered")), "{file:?}");
    }
}

/// The prepared statement was executed 20 times, as both say; no statement of the log with values is unknown.
fn weighed(log: &Path, statistics: &Path) {
    let mut request = request(&[log]);
    request.statistics = Some(statistics.to_owned());
    let capture = Capture::of_logs(&request, &mut |_, _| {}).unwrap();
    let find = |statement: &&Statement| statement.text == "select name from hard where id = $1";
    let find = capture.statements.iter().find(find).unwrap();
    assert_eq!((find.weight, find.calls), (Weight::Statistics, 20));
    assert!(find.rows.is_some() && find.total_ms > Some(0.0));
    let unknown = capture
        .statements
        .iter()
        .filter(|statement| statement.obstacle().is_none() && statement.weight == Weight::Log);
    let unknown: Vec<&String> = unknown.map(|statement| &statement.normalised).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

/// Under the major version and the ending of its format.
fn record(installation: &Installation, files: &[PathBuf]) {
    for file in files {
        let ending = file.extension().unwrap().to_str().unwrap();
        let name = format!("{}.{ending}", major(installation));
        std::fs::write(directory().join(name), std::fs::read(file).unwrap()).unwrap();
    }
}
