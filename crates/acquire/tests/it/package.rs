//! Packages made by tests: a shell script that says a version takes the server's place, and a few empty
//! functions that of RocksDB's library.

use liblzma::write::XzEncoder;
use std::io::Write;
use std::process::Command;
use tar::{Builder, EntryType, Header};

/// One entry of an archive: kind, name, content or link target, mode.
pub(crate) struct Entry<'a>(pub EntryType, pub &'a str, pub &'a str, pub u32);

/// A tar archive; names are written as they are, good or evil.
pub(crate) fn tar(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for Entry(kind, name, content, mode) in entries {
        let mut header = Header::new_gnu();
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(*kind);
        header.set_mode(*mode);
        let linked = matches!(kind, EntryType::Symlink | EntryType::Link);
        if linked {
            header.as_old_mut().linkname[..content.len()].copy_from_slice(content.as_bytes());
        }
        let data = if linked { "" } else { *content };
        header.set_size(u64::try_from(data.len()).unwrap());
        header.set_cksum();
        builder.append(&header, data.as_bytes()).unwrap();
    }
    builder.into_inner().unwrap()
}

/// A jar with these entries in its `.txz`.
pub(crate) fn jar_of(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut packed = XzEncoder::new(Vec::new(), 0);
    packed.write_all(&tar(entries)).unwrap();
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    zip.start_file("META-INF/MANIFEST.MF", options).unwrap();
    zip.start_file("postgres-linux-x86_64.txz", options)
        .unwrap();
    zip.write_all(&packed.finish().unwrap()).unwrap();
    zip.finish().unwrap().into_inner()
}

/// A jar with a server that says it is `version`.
pub(crate) fn server_jar(version: &str) -> Vec<u8> {
    let server = format!("#!/bin/sh\necho 'postgres (PostgreSQL) {version}'\n");
    jar_of(&[
        Entry(EntryType::Directory, "bin/", "", 0o700),
        Entry(EntryType::Regular, "bin/postgres", &server, 0o700),
        Entry(EntryType::Regular, "bin/initdb", "#!/bin/sh\n", 0o755),
        Entry(EntryType::Regular, "lib/libpq.so.5.17", "elf", 0o600),
        Entry(EntryType::Symlink, "lib/libpq.so", "libpq.so.5.17", 0o777),
    ])
}

/// What a whole library of RocksDB has at least.
pub(crate) const OPENS: &str = "void *rocksdb_open(void) { return 0; }";

/// A shared library made of this C source.
pub(crate) fn shared_library(source: &str) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("x.c"), source).unwrap();
    let made = Command::new("cc")
        .args(["-shared", "-fPIC", "-nostdlib", "-o", "x.so", "x.c"])
        .current_dir(dir.path())
        .status()
        .unwrap();
    assert!(made.success());
    std::fs::read(dir.path().join("x.so")).unwrap()
}

/// A jar as RocksDB's are: a library for each kind of machine, among classes.
pub(crate) fn library_jar(library: &[u8]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    for (name, content) in [
        ("META-INF/MANIFEST.MF", &b""[..]),
        ("librocksdbjni-linux64.so", library),
        ("librocksdbjni-linux-aarch64.so", library),
        ("librocksdbjni-osx-x86_64.jnilib", b"another machine's"),
    ] {
        zip.start_file(name, options).unwrap();
        zip.write_all(content).unwrap();
    }
    zip.finish().unwrap().into_inner()
}
