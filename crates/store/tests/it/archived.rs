use crate::data::{plan, slice};
use deltabench_model::counter::{Mark, Sample, VisitCounters};
use deltabench_model::fact::Settings;
use deltabench_model::finding::Severity;
use deltabench_model::installation::Setting;
use deltabench_model::invalidation::Invalidation;
use deltabench_model::plan::{CellId, ServerId};
use deltabench_model::record::Record;
use deltabench_model::slice::{ErrorCount, Slice};
use deltabench_store::{FILE_NAME, RunState, Store, StoreError};
use deltabench_testkit::small_run;
use rusqlite::Connection;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A finished run with bulk of every kind.
fn measured(store: &mut Store, run: &str, rounds: u32) {
    store
        .create_run(run, &plan(), RunState::Running, 5)
        .unwrap();
    store.begin_visit(run, CellId(0), 0).unwrap();
    for round in 0..rounds {
        let mut one = slice(0, 0, round);
        one.latency_histogram = run.bytes().cycle().take(3000).collect();
        if round % 7 == 3 {
            one.errors = vec![ErrorCount {
                sqlstate: "40001".to_owned(),
                count: u64::from(round),
                first_message: format!("of {run}"),
            }];
        }
        store.append(run, &one).unwrap();
    }
    let counters = VisitCounters {
        server: ServerId(1),
        cell: CellId(0),
        block: 0,
        operations: 7,
        values: [("wal_bytes".to_owned(), 5.5)].into(),
    };
    store.add_counters(run, &counters).unwrap();
    store.commit_visit(run, CellId(0), 0).unwrap();
    let (sample, mark, record) = small_run::beside_slices(run);
    store.add_samples(run, &[sample]).unwrap();
    store.add_marks(run, &[mark]).unwrap();
    store.add_record(run, &record).unwrap();
    for server in [ServerId(0), ServerId(2)] {
        let setting = Setting {
            name: "work_mem".to_owned(),
            value: format!("{}MB", server.0 + 4),
            unit: None,
            boot_value: None,
            source: "default".to_owned(),
        };
        let fact = Settings(vec![setting]);
        store.add_fact(run, (Some(server), None), &fact).unwrap();
    }
    store.finish_run(run, RunState::Finished, 50).unwrap();
}

/// Everything that moves, as it is read.
#[derive(Debug, PartialEq)]
struct Seen {
    slices: Vec<Slice>,
    samples: Vec<Sample>,
    marks: Vec<Mark>,
    counters: Vec<VisitCounters>,
    records: Vec<Record>,
    settings: Option<Settings>,
    done: (u64, u64),
    findings: usize,
}

fn seen(store: &Store, run: &str) -> Seen {
    Seen {
        slices: store.slices(run).unwrap(),
        samples: store.samples(run).unwrap(),
        marks: store.marks(run).unwrap(),
        counters: store.counters(run).unwrap(),
        records: store.records(run).unwrap(),
        settings: store.last_fact(run, Some(ServerId(2))).unwrap(),
        done: store.done(run, &plan()).unwrap(),
        findings: store.findings(run).unwrap().len(),
    }
}

fn bulk_rows(lab: &Path) -> i64 {
    let raw = Connection::open(lab.join(FILE_NAME)).unwrap();
    let count = |table: &str| -> i64 {
        raw.query_row(&format!("select count(*) from {table}"), [], |row| {
            row.get(0)
        })
        .unwrap()
    };
    let tables = [
        "slice",
        "slice_error",
        "sample",
        "mark",
        "visit_counters",
        "record",
    ];
    let facts: i64 = raw
        .query_row(
            "select count(*) from fact where kind = 'settings'",
            [],
            |row| row.get(0),
        )
        .unwrap();
    tables.into_iter().map(count).sum::<i64>() + facts
}

fn sealed_files(lab: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(lab.join("archive")).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

#[test]
fn an_archived_run_reads_as_before_and_comes_back_as_it_was() {
    let lab = tempfile::tempdir().unwrap();
    let mut store = Store::open(lab.path()).unwrap();
    for run in ["one", "two"] {
        measured(&mut store, run, 200);
    }
    let before = (seen(&store, "one"), seen(&store, "two"));
    assert_eq!(before.0.settings.as_ref().unwrap().0[0].value, "6MB");
    let wanted = store.sealed_bytes("one").unwrap();
    let file = store.archive("one", 99).unwrap();
    assert_eq!(
        (file.bytes, store.archived("one").unwrap()),
        (wanted, Some(file.clone()))
    );
    assert_eq!(before, (seen(&store, "one"), seen(&store, "two")));
    assert_eq!(
        bulk_rows(lab.path()),
        200 + 29 + 1 + 1 + 1 + 1 + 2,
        "those of `two` stay"
    );
    assert!(
        store.give_back().unwrap() > 200 * 3000,
        "the file is shorter"
    );
    // Rows of a new run take the numbers of those that left.
    measured(&mut store, "three", 300);
    let third = seen(&store, "three");
    store.archive("two", 99).unwrap();
    assert_eq!(before, (seen(&store, "one"), seen(&store, "two")));
    for run in ["one", "two"] {
        store.restore(run, 100).unwrap();
        assert_eq!(store.archived(run).unwrap(), None);
    }
    assert_eq!(
        (before.0, before.1, third),
        (
            seen(&store, "one"),
            seen(&store, "two"),
            seen(&store, "three"),
        )
    );
    let check: String = Connection::open(lab.path().join(FILE_NAME))
        .unwrap()
        .query_row("pragma integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(check, "ok");
}

#[test]
fn a_run_that_comes_back_to_its_place_is_sealed_into_the_same_file_again() {
    let lab = tempfile::tempdir().unwrap();
    let mut store = Store::open(lab.path()).unwrap();
    measured(&mut store, "one", 60);
    let first = store.archive("one", 99).unwrap();
    store.restore("one", 100).unwrap();
    let again = store.archive("one", 101).unwrap();
    assert_eq!(
        (first.sha256, sealed_files(lab.path()).len()),
        (again.sha256, 1)
    );
}

#[test]
fn a_sealed_file_is_a_store_by_itself() {
    let lab = tempfile::tempdir().unwrap();
    let mut store = Store::open(lab.path()).unwrap();
    measured(&mut store, "one", 60);
    let before = seen(&store, "one");
    let file = store.archive("one", 99).unwrap();
    let other = tempfile::tempdir().unwrap();
    let packed = std::fs::File::open(&file.path).unwrap();
    let mut plain = std::fs::File::create(other.path().join(FILE_NAME)).unwrap();
    std::io::copy(&mut flate2::read::GzDecoder::new(packed), &mut plain).unwrap();
    let alone = Store::open(other.path()).unwrap();
    assert_eq!(seen(&alone, "one"), before);
    assert_eq!(alone.plan("one").unwrap(), plan());
}

#[test]
fn only_finished_runs_are_archived_and_nothing_is_added_to_them() {
    let lab = tempfile::tempdir().unwrap();
    let mut store = Store::open(lab.path()).unwrap();
    measured(&mut store, "one", 9);
    for state in [RunState::Running, RunState::Interrupted, RunState::Failed] {
        store.finish_run("one", state, 60).unwrap();
        let refused = store.archive("one", 99).unwrap_err();
        assert!(matches!(refused, StoreError::Misuse { .. }), "{refused}");
        assert!(refused.to_string().contains("not finished"), "{refused}");
    }
    assert!(sealed_files(lab.path()).is_empty());
    store.finish_run("one", RunState::Finished, 61).unwrap();
    assert!(
        store
            .restore("one", 98)
            .unwrap_err()
            .to_string()
            .contains("not archived")
    );
    let reason = Invalidation {
        cell: None,
        reason: "a backup ran".to_owned(),
        at_unix_ms: 70,
    };
    store.invalidate("one", &reason).unwrap();
    store.archive("one", 99).unwrap();
    assert!(store.archive("one", 99).is_err(), "for a second time");
    assert_eq!(store.invalidations("one").unwrap(), [reason]);
    store.begin_visit("one", CellId(1), 0).unwrap();
    assert!(store.append("one", &slice(1, 0, 0)).is_err());
    assert!(store.commit_visit("one", CellId(1), 0).is_err());
    store.abandon_visit().unwrap();
    let raw = Connection::open(lab.path().join(FILE_NAME)).unwrap();
    raw.pragma_update(None, "foreign_keys", false).unwrap();
    let run: i64 = { raw.query_row("select id from run", [], |row| row.get(0)) }.unwrap();
    // The values of a row do not matter: a trigger comes first.
    let columns = |table: &str| -> Vec<String> {
        let mut names = raw
            .prepare("select name from pragma_table_info(?1) where pk = 0")
            .unwrap();
        let names = names.query_map([table], |row| row.get(0)).unwrap();
        let all: Vec<String> = names.map(Result::unwrap).collect();
        all
    };
    let add = |table: &str, kind: &str| {
        let columns = columns(table);
        let values = columns.iter().map(|name| match name.as_str() {
            "run" => run.to_string(),
            "kind" => format!("'{kind}'"),
            "latency_histogram" | "profile" => "x''".to_owned(),
            _ => "1".to_owned(),
        });
        let values = values.collect::<Vec<_>>().join(", ");
        let sql = format!(
            "insert into {table} ({}) values ({values})",
            columns.join(", ")
        );
        raw.execute(&sql, [])
            .map(drop)
            .map_err(|error| error.to_string())
    };
    let closed = "the run is archived";
    for table in [
        "slice",
        "sample",
        "visit_counters",
        "mark",
        "record",
        "instruction_profile",
        "visit",
        "run_state",
        "finding",
        "instruction_count",
        "occasion",
    ] {
        assert_eq!(add(table, "x").unwrap_err(), closed, "{table}");
    }
    for (kind, is_open) in [("settings", false), ("warm_up", false), ("host", true)] {
        assert_eq!(add("fact", kind).is_ok(), is_open, "{kind}");
    }
    store.restore("one", 100).unwrap();
    assert!(add("sample", "x").is_ok());
}

#[test]
fn rows_leave_only_with_a_sealed_file_named() {
    let lab = tempfile::tempdir().unwrap();
    let mut store = Store::open(lab.path()).unwrap();
    measured(&mut store, "one", 9);
    measured(&mut store, "two", 9);
    store.archive("one", 99).unwrap();
    store.restore("one", 99).unwrap();
    store.archive("two", 99).unwrap();
    let raw = Connection::open(lab.path().join(FILE_NAME)).unwrap();
    for table in [
        "slice",
        "slice_error",
        "sample",
        "visit_counters",
        "mark",
        "record",
        "fact",
        "archived",
        "visit",
        "run",
        "finding",
    ] {
        let refused = raw.execute(&format!("delete from {table}"), []);
        // None of `finding` is there, and what is not there is not refused.
        assert!(refused.is_err() || table == "finding", "{table}");
        assert!(
            raw.execute(&format!("update {table} set rowid = rowid"), [])
                .is_err()
                || table == "finding"
                || table == "slice_error",
            "{table}"
        );
    }
    let forged = raw.execute(
        "insert into archived values (null, (select id from run where name = 'one'), 'restored', '', 0, 0, \
         0, 0, 0, '')",
        [],
    );
    forged.unwrap();
    assert!(raw.execute("delete from slice", []).is_err());
}

#[test]
fn a_sealed_file_that_is_gone_or_damaged_is_a_finding_and_stops_a_restore() {
    let lab = tempfile::tempdir().unwrap();
    let mut store = Store::open(lab.path()).unwrap();
    measured(&mut store, "one", 60);
    let before = seen(&store, "one");
    let file = store.archive("one", 99).unwrap();
    assert_eq!(store.fault_of_archive("one").unwrap(), None);
    let good = std::fs::read(&file.path).unwrap();
    let mut flipped = good.clone();
    flipped[good.len() / 2] ^= 1;
    let faults: [(Option<&[u8]>, &str); 3] = [
        (None, "it is missing"),
        (Some(&good[..100]), "100 bytes instead of"),
        (Some(&flipped), "not what its name says"),
    ];
    for (content, why) in faults {
        std::fs::remove_file(&file.path).ok();
        if let Some(content) = content {
            std::fs::write(&file.path, content).unwrap();
        }
        let mut store = Store::open(lab.path()).unwrap();
        assert_eq!(store.slices("one").unwrap(), []);
        let found = store.findings("one").unwrap();
        assert_eq!((found.len(), found[0].severity), (1, Severity::Unfit));
        assert!(found[0].text.contains(why), "{}", found[0].text);
        assert!(
            store
                .fault_of_archive("one")
                .unwrap()
                .unwrap()
                .contains(why)
        );
        let refused = store.restore("one", 100).unwrap_err();
        assert!(refused.to_string().contains(why), "{refused}");
        // Once it is back, the same process reads it.
        std::fs::write(&file.path, &good).unwrap();
        assert_eq!(seen(&store, "one"), before);
    }
}

#[test]
fn a_lab_that_cannot_be_written_reads_its_sealed_files() {
    let lab = tempfile::tempdir().unwrap();
    let mut store = Store::open(lab.path()).unwrap();
    measured(&mut store, "one", 60);
    let before = seen(&store, "one");
    store.archive("one", 99).unwrap();
    drop(store);
    let mode = |mode| {
        std::fs::set_permissions(lab.path(), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(0o555);
    // Root writes everywhere: what it opens is the lab itself.
    let opened = Store::open_existing(lab.path()).map(|store| seen(&store, "one"));
    let read = Store::open_to_read(lab.path()).map(|store| seen(&store, "one"));
    mode(0o755);
    assert_eq!(
        (opened.unwrap(), read.unwrap()),
        (before, seen(&Store::open(lab.path()).unwrap(), "one"))
    );
}

const VICTIM: &str = "DELTABENCH_TEST_ARCHIVING_LAB";

/// Archives and restores for as long as it lives, in a process of its own.
#[test]
#[ignore = "started by the test below"]
fn victim() {
    let Some(lab) = std::env::var_os(VICTIM) else {
        return;
    };
    let mut store = Store::open(Path::new(&lab)).unwrap();
    loop {
        for run in ["one", "two"] {
            if store.archived(run).unwrap().is_none() {
                store.archive(run, 99).unwrap();
            }
            store.give_back().unwrap();
        }
        for run in ["one", "two"] {
            store.restore(run, 99).unwrap();
        }
    }
}

#[test]
fn killed_at_any_point_nothing_is_lost_and_it_goes_on() {
    let lab = tempfile::tempdir().unwrap();
    let mut store = Store::open(lab.path()).unwrap();
    for run in ["one", "two"] {
        measured(&mut store, run, 40);
    }
    let before = (seen(&store, "one"), seen(&store, "two"));
    drop(store);
    let mut has_begun = false;
    let early = (0..8).map(|round| 40 + 14 * round);
    // On a busy machine all of these may come before the first file.
    let late = (1..=10).map(|round| 100 << round);
    for (kills, after_ms) in early.chain(late).enumerate() {
        if kills >= 8 && has_begun {
            break;
        }
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "archived::victim", "--ignored"])
            .env(VICTIM, lab.path())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(after_ms));
        child.kill().unwrap();
        child.wait().unwrap();
        let store = Store::open(lab.path()).unwrap();
        assert_eq!(
            (seen(&store, "one"), seen(&store, "two")),
            before,
            "{after_ms}"
        );
        has_begun |=
            store.archived("one").unwrap().is_some() || !sealed_files(lab.path()).is_empty();
    }
    assert!(has_begun, "all kills came before the first file");
    let mut store = Store::open(lab.path()).unwrap();
    for run in ["one", "two"] {
        if store.archived(run).unwrap().is_some() {
            store.restore(run, 99).unwrap();
        }
        store.archive(run, 99).unwrap();
    }
    let is_draft = |path: &PathBuf| path.extension().is_none_or(|ending| ending != "gz");
    assert_eq!(
        sealed_files(lab.path())
            .iter()
            .filter(|path| is_draft(path))
            .count(),
        0
    );
    assert_eq!((seen(&store, "one"), seen(&store, "two")), before);
}

#[test]
fn sizes_add_up_and_say_what_would_move() {
    let lab = tempfile::tempdir().unwrap();
    let mut store = Store::open(lab.path()).unwrap();
    measured(&mut store, "small", 20);
    measured(&mut store, "large", 400);
    let sizes = store.sizes().unwrap();
    let [small, large] = &sizes.runs[..] else {
        panic!("{sizes:?}");
    };
    assert!(large.movable > 10 * small.movable && large.movable <= large.in_store);
    assert!(large.movable > 400 * 3000);
    let shared = sizes.file - small.in_store - large.in_store;
    assert!(
        shared < 512 * 1024,
        "schema, indexes that nothing is in: {shared}"
    );
    store.archive("large", 99).unwrap();
    let free = store.give_back().unwrap();
    assert!(
        free.abs_diff(large.movable) < large.movable / 10,
        "{free} of {large:?}"
    );
    let sizes = store.sizes().unwrap();
    assert_eq!(sizes.runs[1].movable, 0);
    assert_eq!(sizes.runs[1].sealed, store.archived("large").unwrap());
    assert_eq!(sizes.free, 0);
}
