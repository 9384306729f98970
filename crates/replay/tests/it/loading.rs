//! A database with every kind of object: dumped by pg_dump, loaded by us, and dumped again.

use deltabench_model::endpoint::{Endpoint, Login};
use deltabench_replay::{DumpFile, Loaded, Loading, load, survey};
use deltabench_testkit::{Cluster, installations};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

const EVERY_KIND: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/every-kind.sql");

/// Programs of a server that has pg_dump: the version that the objects are written for, or newer.
fn bin() -> PathBuf {
    let trees = installations();
    let known = trees.iter().map(|tree| tree.bin_dir.clone());
    let installed = ["/usr/lib/postgresql/15/bin"].map(PathBuf::from);
    let found = known
        .chain(installed)
        .find(|bin| bin.join("pg_dump").is_file());
    found.expect("no installation with pg_dump: scripts/install-peers.sh")
}

fn loaded(dump: &Path, cluster: &Cluster) -> Loaded {
    let dump = DumpFile::find(dump).unwrap();
    survey(&dump).unwrap();
    let loading = Loading {
        dump: &dump,
        endpoint: &cluster.endpoint(),
        login: &cluster.login(),
        interrupted: &AtomicBool::new(false),
    };
    load(&loading).unwrap()
}

fn dumped(bin: &Path, cluster: &Cluster, arguments: &[&str]) -> Vec<u8> {
    let Endpoint::Unix { directory, port } = cluster.endpoint() else {
        panic!("a local socket");
    };
    let Login { user, database, .. } = cluster.login();
    let output = Command::new(bin.join("pg_dump"))
        .args([
            "-h",
            directory.to_str().unwrap(),
            "-p",
            &port.to_string(),
            "-U",
            &user,
        ])
        .args(arguments)
        .arg(database)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

/// Lines that may differ between two dumps of the same: keys, drawn anew each time.
fn compared(dump: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(dump).into_owned();
    let keys = |line: &&str| !line.starts_with("\\restrict") && !line.starts_with("\\unrestrict");
    text.lines().filter(keys).map(str::to_owned).collect()
}

#[test]
fn every_kind_of_object_is_dumped_the_same_after_it_was_loaded() {
    let bin = bin();
    let first = Cluster::start(&bin, "", &[]);
    let made = loaded(Path::new(EVERY_KIND), &first);
    assert_eq!(made.failures, []);
    let directory = tempfile::tempdir().unwrap();
    let forms: [&[&str]; 3] = [
        &[],
        &["--inserts"],
        &[
            "--clean",
            "--if-exists",
            "--create",
            "--quote-all-identifiers",
            "--use-set-session-authorization",
        ],
    ];
    for (number, arguments) in forms.iter().enumerate() {
        let path = directory.path().join(format!("{number}.dump"));
        std::fs::write(&path, dumped(&bin, &first, arguments)).unwrap();
        let second = Cluster::start(&bin, "", &[]);
        let loaded = loaded(&path, &second);
        assert_eq!(loaded.failures, [], "{arguments:?}");
        let again = compared(&dumped(&bin, &second, &[]));
        assert_eq!(again.len(), compared(&dumped(&bin, &first, &[])).len());
        let original = compared(&dumped(&bin, &first, &[]));
        let missing: Vec<String> = original
            .into_iter()
            .filter(|line| !again.contains(line))
            .collect();
        assert_eq!(missing, [""; 0], "{arguments:?}");
    }
}

#[test]
fn a_statement_with_more_unknown_roles_than_are_made_is_told_as_refused() {
    let cluster = Cluster::start(&bin(), "", &[]);
    let roles = |from: u32, to: u32| {
        let roles = (from..to).map(|number| format!("r{number}"));
        roles.collect::<Vec<_>>().join(", ")
    };
    let dump = format!(
        "CREATE TABLE t (a int);\nGRANT SELECT ON t TO {};\nGRANT SELECT ON t TO {};\n",
        roles(0, 40),
        roles(100, 160)
    );
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("roles.sql");
    std::fs::write(&path, dump).unwrap();
    let loaded = loaded(&path, &cluster);
    let [refused] = loaded.failures.as_slice() else {
        panic!("the second grant only: {:?}", loaded.failures);
    };
    assert_eq!((refused.line, refused.sqlstate.as_str()), (3, "42704"));
    assert!(refused.what.starts_with("GRANT"), "{refused}");
}
