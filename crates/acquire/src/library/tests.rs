//! Libraries and programs made on the spot.

use super::*;
use crate::unpack::package::{OPENS, shared_library};
use std::os::unix::fs::PermissionsExt;

fn put(dir: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let file = dir.join(name);
    std::fs::write(&file, bytes).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    file
}

fn script(dir: &Path, name: &str, body: &str) -> PathBuf {
    put(dir, name, format!("#!/bin/sh\n{body}\n").as_bytes())
}

#[test]
fn a_library_s_version_is_read_where_builds_leave_it_or_is_not_known() {
    let dir = tempfile::tempdir().unwrap();
    let tagged = format!("{OPENS} const char tag[] = \"rocksdb_build_git_tag:v8.1.1\";");
    let untagged = format!("{OPENS} const char tag[] = \"rocksdb_build_git_tag:\";");
    for (source, name, version, number) in [
        (&tagged, "librocksdb.so", "8.1.1", 80_101),
        (&tagged, "librocksdb.so.7.8.3", "8.1.1", 80_101),
        (&untagged, "librocksdb.so.7.8.3", "7.8.3", 70_803),
        (&untagged, "librocksdb.so.7.8", "7.8", 70_800),
        (
            &untagged,
            "librocksdbjni-10.10.1.1-linux64.so",
            "10.10.1.1",
            101_001,
        ),
        (&untagged, "librocksdb2.so", "", 0),
    ] {
        let file = put(dir.path(), name, &shared_library(source));
        let found = at_path(&file).unwrap();
        assert_eq!(
            (found.version.as_str(), found.version_num),
            (version, number),
            "{name}"
        );
        assert_eq!(
            (found.engine, found.origin),
            (Engine::Rocksdb, Origin::Path)
        );
        assert_eq!(found.bin_dir, file.canonicalize().unwrap());
        assert_eq!(found.asked, format!("rocksdb:path:{}", file.display()));
        assert_eq!(found.binary_sha256, sha256_of(&file).unwrap());
    }
}

#[test]
fn a_link_is_followed_and_its_name_tells_the_version_where_the_file_s_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let real = put(dir.path(), "mine", &shared_library(OPENS));
    let link = dir.path().join("librocksdb.so.9.9.3");
    std::os::unix::fs::symlink("mine", &link).unwrap();
    let found = at_path(&link).unwrap();
    assert_eq!(found.version, "9.9.3");
    assert_eq!(found.bin_dir, real.canonicalize().unwrap());
    assert!(found.resolved.ends_with("/mine"), "{}", found.resolved);
}

#[test]
fn a_library_says_compiler_and_compression_as_far_as_it_knows_them() {
    let dir = tempfile::tempdir().unwrap();
    let source = format!(
        "{OPENS} int LZ4_compress_default(void); int deflateInit_(void) {{ return 0; }}
         int sum(void) {{ return LZ4_compress_default(); }}"
    );
    let build = at_path(&put(dir.path(), "a.so", &shared_library(&source)))
        .unwrap()
        .build
        .unwrap();
    // One of them is defined, the other wanted from another library.
    assert_eq!(build.configure, "compression: zlib, lz4");
    assert_eq!(
        (build.version_text.as_str(), build.cflags.as_str()),
        ("RocksDB", "")
    );
    let compiler = std::process::Command::new("cc")
        .arg("-dumpversion")
        .output()
        .unwrap();
    let compiler = String::from_utf8(compiler.stdout).unwrap();
    assert!(
        build.compiler.contains(compiler.trim()),
        "{}",
        build.compiler
    );
    let plain = at_path(&put(dir.path(), "b.so", &shared_library(OPENS))).unwrap();
    assert_eq!(plain.build.unwrap().configure, "");
}

#[test]
fn what_is_no_library_of_rocksdb_is_refused_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |file: &Path| {
        let problem = at_path(file).unwrap_err();
        assert!(
            problem.error.contains("no library of RocksDB at"),
            "{problem}"
        );
        problem.detail.unwrap()
    };
    assert!(refused(&dir.path().join("absent.so")).contains("No such file"));
    assert!(refused(&script(dir.path(), "x.so", "exit 0")).contains("not a 64-bit ELF file"));
    assert!(refused(dir.path()).contains("cannot read"));
    let other = put(dir.path(), "y.so", &shared_library("int other;"));
    assert!(refused(&other).contains("does not export rocksdb_open"));
    // Wanted from somewhere else is not exported.
    let wants = "void *rocksdb_open(void); void *f(void) { return rocksdb_open(); }";
    let wants = put(dir.path(), "z.so", &shared_library(wants));
    assert!(refused(&wants).contains("does not export rocksdb_open"));
}

#[test]
fn a_db_bench_tells_its_version_or_is_known_by_its_help() {
    let dir = tempfile::tempdir().unwrap();
    let told = script(dir.path(), "db_bench", "echo 'db_bench version 7.8.3'");
    let found = db_bench(&told).unwrap();
    assert_eq!(
        (found.version.as_str(), found.version_num),
        ("7.8.3", 70_803)
    );
    assert_eq!(
        (found.engine, found.origin),
        (Engine::DbBench, Origin::Path)
    );
    assert_eq!(found.asked, format!("db_bench:{}", told.display()));
    assert_eq!(found.build, None, "a script was not compiled");
    // gflags ends --help with 1.
    let helps = "[ \"$1\" = --help ] && { echo '  fillseq -- write'; exit 1; }; echo db_bench";
    let found = db_bench(&script(dir.path(), "db_bench-9.1.0", helps)).unwrap();
    assert_eq!(found.version, "9.1.0");
    let found = db_bench(&script(dir.path(), "bench", helps)).unwrap();
    assert_eq!((found.version.as_str(), found.version_num), ("", 0));
}

#[test]
fn what_is_no_db_bench_is_refused_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |file: &Path| db_bench(file).unwrap_err().detail.unwrap();
    assert!(refused(&dir.path().join("absent")).contains("No such file"));
    assert!(refused(&script(dir.path(), "other", "echo 'ls (GNU) 9'")).contains("`ls (GNU) 9`"));
    let lost = "echo 'librocksdb.so.9: cannot open shared object file' >&2; exit 127";
    let lost = refused(&script(dir.path(), "lost", lost));
    assert!(
        lost.contains("127") && lost.contains("librocksdb.so.9"),
        "{lost}"
    );
    let plain = put(dir.path(), "plain", b"");
    std::fs::set_permissions(&plain, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert!(refused(&plain).contains("not executable"));
    assert!(refused(dir.path()).contains("is not a file"));
}
