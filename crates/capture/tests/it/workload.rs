//! A small workload with everything that is hard to read in a log, and what a capture of it must hold.

use crate::client::Client;
use deltabench_capture::{Capture, Kind, Obstacle, Protocol, Statement, Tuple};
use std::path::Path;

/// The last statement of the workload.
pub const LAST: &str = "select 'the end'";

/// Text with everything that a log writes in another way.
const HARD: &str = "it's $1 = 'x',\n\t\"two\" lines \\ é €, (a)";
const READ: &str = "select id, name from hard\n where id = any($1::int[]) -- of \"today\"\n \
                    and name is distinct from $2";
const WRITE: &str = "insert into hard (id, name, raw, tags) values ($1, $2, $3, $4)";
const FIND: &str = "select name from hard where id = $1";

/// Executes it on a server of a major version.
pub fn execute(directory: &Path, major: u32) {
    let mut client = Client::connect(directory, "postgres", &[]);
    client.simple(b"create table hard (id int, name text, raw bytea, tags text[])");
    client.execute(
        "",
        WRITE,
        &[
            Some(b"7"),
            Some(HARD.as_bytes()),
            Some(b"\\xdead00"),
            Some(b"{\"a'b,c\",NULL}"),
        ],
    );
    client.execute("", WRITE, &[Some(b"8"), None, None, Some(b"{}")]);
    client.execute("", READ, &[Some(b"{7,8}"), None]);
    client.prepare("find", FIND);
    for id in 0..20 {
        client.execute("find", FIND, &[Some(id.to_string().as_bytes())]);
    }
    for id in 0..3 {
        let text =
            format!("SELECT name FROM hard\r\n WHERE id IN ({id}, 2, {id}) AND name <> 'it''s;'");
        client.simple(text.as_bytes());
    }
    client.simple(b"begin; update hard set name = 'x' where id = 7; commit");
    client.simple(b"select 1/0");
    client.simple(b"create temp table scratch (a int)");
    client.simple(b"select a from scratch");
    client.simple(b"set search_path to public, pg_catalog");
    client.simple(b"select now(), max(id) from hard for update");
    client.simple(b"select max(id), now() from hard");
    client.simple(b"savepoint nothing");
    in_latin1(directory);
    apart(directory);
    if major >= 13 {
        cut(directory);
    }
    client.simple(LAST.as_bytes());
}

/// A log has the bytes of each database.
fn in_latin1(directory: &Path) {
    let mut client = Client::connect(directory, "postgres", &[]);
    client.simple(b"create database old encoding 'LATIN1' template template0");
    let mut client = Client::connect(directory, "old", &[("client_encoding", "LATIN1")]);
    client.simple(b"select 'caf\xe9' as word");
}

/// Texts and durations on lines of their own.
fn apart(directory: &Path) {
    let mut client = Client::connect(
        directory,
        "postgres",
        &[(
            "options",
            "-c log_min_duration_statement=-1 -c log_statement=all -c log_duration=on",
        )],
    );
    client.execute("", "select count(*) from hard where id > $1", &[Some(b"3")]);
    client.simple(b"select count(*) from hard");
    client.simple(b"select 2/0");
}

fn cut(directory: &Path) {
    let mut client = Client::connect(
        directory,
        "postgres",
        &[("options", "-c log_parameter_max_length=5")],
    );
    client.execute("", "select $1::text || 'cut'", &[Some(b"0123456789")]);
    client.execute("", "select $1::text || 'cut'", &[Some(b"01234")]);
}

fn only<'a>(capture: &'a Capture, begin: &str, protocol: Protocol) -> &'a Statement {
    let found = capture.statements.iter().filter(|statement| {
        statement.normalised.starts_with(begin) && statement.protocol == protocol
    });
    let found: Vec<&Statement> = found.collect();
    let [statement] = found.as_slice() else {
        panic!("{} of {begin}: {:#?}", found.len(), capture.statements);
    };
    statement
}

fn values(tuple: &Tuple) -> Vec<Option<&str>> {
    tuple.values.iter().map(Option::as_deref).collect()
}

/// What a capture of its log must hold.
pub fn check(capture: &Capture, major: u32) {
    let write = only(capture, "insert into hard", Protocol::Extended);
    assert_eq!(
        (write.kind, write.calls, write.text.as_str()),
        (Kind::Write, 2, WRITE)
    );
    let mut written: Vec<_> = write.tuples.iter().map(values).collect();
    written.sort();
    let first = [
        Some("7"),
        Some(HARD),
        Some("\\xdead00"),
        Some("{\"a'b,c\",NULL}"),
    ];
    assert_eq!(written, [first, [Some("8"), None, None, Some("{}")]]);

    let read = only(capture, "select id, name from hard", Protocol::Extended);
    assert_eq!((read.kind, read.text.as_str()), (Kind::Read, READ));
    assert_eq!(values(&read.tuples[0]), [Some("{7,8}"), None]);
    assert!(read.plan_ms > Some(0.0) && read.total_ms > read.plan_ms);

    let find = only(capture, "select name from hard", Protocol::Prepared);
    assert_eq!((find.calls, find.tuples.len()), (20, 20));
    assert!((find.tuples.iter().map(|tuple| tuple.n).sum::<f64>() - 20.0).abs() < 1e-6);

    let simple = only(capture, "select name from hard", Protocol::Simple);
    assert_eq!((simple.calls, simple.tuples.len()), (3, 3));
    let mut sent: Vec<_> = simple
        .tuples
        .iter()
        .map(|tuple| simple.sent(tuple))
        .collect();
    sent.sort_unstable();
    assert_eq!(
        sent[1],
        "SELECT name FROM hard\r\n WHERE id IN (1, 2, 1) AND name <> 'it''s;'"
    );
    assert_eq!(
        simple.normalised,
        "select name from hard where id in (?) and name <> ?"
    );

    let kind = |begin: &str| only(capture, begin, Protocol::Simple).kind;
    assert_eq!(kind("begin; update hard"), Kind::Transaction);
    assert_eq!(kind("select a from scratch"), Kind::Temporary);
    let now = only(capture, "select max(id), now()", Protocol::Simple);
    assert_eq!(
        (now.kind, now.volatile.as_slice()),
        (Kind::Read, &["now".to_owned()][..])
    );
    assert_eq!(now.search_path.as_deref(), Some("public, pg_catalog"));

    let latin1 = only(capture, "select ? as word", Protocol::Simple);
    assert_eq!(latin1.obstacle(), Some(Obstacle::Broken));
    for (begin, protocol) in [
        ("select count(*) from hard where id > ?", Protocol::Extended),
        ("select count(*) from hard", Protocol::Simple),
    ] {
        let apart = capture
            .statements
            .iter()
            .find(|statement| statement.normalised == begin && statement.protocol == protocol);
        let apart = apart.unwrap();
        assert_eq!((apart.calls, apart.tuples.len()), (1, 1), "{begin}");
        assert!(apart.total_ms > Some(0.0), "{begin}");
    }
    if major >= 13 {
        let cut = only(capture, "select ?::text || ?", Protocol::Extended);
        assert_eq!((cut.calls, cut.unusable.cut, cut.tuples.len()), (2, 1, 1));
    }
    let counted = &capture.header.counted;
    assert_eq!(counted.unreadable, 0, "{:?}", capture.header.unreadable_at);
    assert_eq!(counted.without_duration, 0);
    assert!(counted.not_utf8 >= 1);
    // Two divisions by zero, a lock of an aggregate, and a savepoint outside of a transaction.
    assert_eq!(counted.errors, 4);
}
