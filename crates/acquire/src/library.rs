//! RocksDB in a file: the shared library, or somebody's `db_bench`.
//!
//! The C interface does not tell the library's version, so that of a user's own library is read where builds
//! leave it: in our stamp beside the file, in the file's name, or in the tag of the source that is compiled
//! in.

use crate::command;
use crate::elf::Elf;
use crate::stamp::Stamp;
use crate::tree::{executable, sha256_of};
use deltabench_model::installation::{Build, Engine, Installation, Origin};
use deltabench_model::problem::Problem;
use deltabench_model::target::{RocksdbVersion, TargetSpec};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The function that says that the C interface is there.
const OPEN: &str = "rocksdb_open";
/// Label of the source's tag in a library that was made in a checkout.
const TAG: &str = "rocksdb_build_git_tag:";
/// A `db_bench` tells its version at once; whatever takes longer is something else.
const LONGEST_ANSWER: Duration = Duration::from_secs(10);

/// Compression libraries, and how the name of a function begins that is only mentioned where they are used.
const COMPRESSION: [(&str, &str); 5] = [
    ("snappy", "_ZN6snappy11RawCompress"),
    ("zlib", "deflateInit"),
    ("bzip2", "BZ2_bzCompress"),
    ("lz4", "LZ4_compress"),
    ("zstd", "ZSTD_compress"),
];

/// Checks a library that was just unpacked, and reads how it was made.
///
/// Errors: it is no library for this machine, or without the C interface.
pub(crate) fn packaged(file: &Path, version: &RocksdbVersion) -> Result<Build, Problem> {
    let refused = |why: String| {
        Problem::new(format!(
            "RocksDB {version} cannot be measured: its package has no library that deltabench can load"
        ))
        .detail(why)
        .hint("deltabench kept nothing; use a newer version: `deltabench targets` lists them")
    };
    let elf = library(file).map_err(refused)?;
    Ok(build(&elf, &version.to_string()))
}

/// The library that the user named.
///
/// Errors: no such file, no library for this machine, or without the C interface.
pub(crate) fn at_path(file: &Path) -> Result<Installation, Problem> {
    let refused = |why: String| {
        Problem::new(format!("no library of RocksDB at {}", file.display()))
            .detail(why)
            .hint("name a shared library with RocksDB's C interface, for example librocksdb.so")
    };
    let real = file
        .canonicalize()
        .map_err(|error| refused(format!("cannot open {}: {error}", file.display())))?;
    let elf = library(&real).map_err(refused)?;
    let sha256 = sha256_of(&real)?;
    let version = stamped(&real, &sha256)
        .or_else(|| compiled_in(&elf))
        .or_else(|| in_name(&real))
        .or_else(|| in_name(file));
    Ok(installation(
        &TargetSpec::RocksdbPath(file.to_owned()),
        &TargetSpec::RocksdbPath(real.clone()),
        Engine::Rocksdb,
        real,
        version.as_ref(),
        sha256,
        Some(&elf),
    ))
}

/// The `db_bench` that the user named.
///
/// Errors: no such program, one that cannot be run, or one that is no `db_bench`.
pub(crate) fn db_bench(file: &Path) -> Result<Installation, Problem> {
    let refused = |why: String| {
        Problem::new(format!("no db_bench at {}", file.display()))
            .detail(why)
            .hint("name the program itself: db_bench:/opt/rocksdb/db_bench")
    };
    let real = file
        .canonicalize()
        .map_err(|error| refused(format!("cannot open {}: {error}", file.display())))?;
    executable(&real).map_err(refused)?;
    let ask = |question: &str| {
        let mut command = Command::new(&real);
        command.arg(question);
        command::answer(&mut command, LONGEST_ANSWER)
            .map_err(|error| refused(format!("{} {question}: {error}", real.display())))
    };
    let said = ask("--version")?;
    // A program that was built without a version in it says only its name.
    if version_said(&said).is_none() && !ask("--help")?.contains("fillseq") {
        let first = said.lines().next().unwrap_or_default();
        return Err(refused(format!(
            "its --version says `{first}`, and its --help does not list fillseq"
        )));
    }
    // Not every db_bench is a compiled file: a script may start one with an environment of its own.
    let bytes = read(&real).map_err(refused)?;
    let elf = Elf::read(&bytes).ok();
    let version = version_said(&said)
        .or_else(|| elf.as_ref().and_then(compiled_in))
        .or_else(|| in_name(&real));
    let sha256 = sha256_of(&real)?;
    Ok(installation(
        &TargetSpec::DbBench(file.to_owned()),
        &TargetSpec::DbBench(real.clone()),
        Engine::DbBench,
        real,
        version.as_ref(),
        sha256,
        elf.as_ref(),
    ))
}

fn installation(
    asked: &TargetSpec,
    resolved: &TargetSpec,
    engine: Engine,
    file: PathBuf,
    version: Option<&RocksdbVersion>,
    sha256: String,
    elf: Option<&Elf>,
) -> Installation {
    let text = version.map(ToString::to_string).unwrap_or_default();
    Installation {
        asked: asked.to_string(),
        resolved: resolved.to_string(),
        origin: Origin::Path,
        bin_dir: file,
        version_num: version.map_or(0, RocksdbVersion::number),
        build: elf.map(|elf| build(elf, &text)),
        version: text,
        binary_sha256: sha256,
        recipe: None,
        remote: None,
        engine,
    }
}

fn read(file: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(file).map_err(|error| format!("cannot read {}: {error}", file.display()))
}

/// Reads a library that exports the C interface.
fn library(file: &Path) -> Result<Elf, String> {
    let elf = Elf::read(&read(file)?).map_err(|error| format!("{} is {error}", file.display()))?;
    if !elf.exported.contains(OPEN) {
        return Err(format!(
            "no C interface: {} does not export {OPEN}",
            file.display()
        ));
    }
    Ok(elf)
}

/// What is known of how it was made; what is not known is empty.
fn build(elf: &Elf, version: &str) -> Build {
    let found: Vec<&str> = COMPRESSION
        .iter()
        .filter(|(_, start)| elf.mentioned.iter().any(|name| name.starts_with(start)))
        .map(|(library, _)| *library)
        .collect();
    Build {
        version_text: format!("RocksDB {version}").trim_end().to_owned(),
        compiler: elf.compilers.join("; "),
        cflags: String::new(),
        configure: match found.as_slice() {
            [] => String::new(),
            found => format!("compression: {}", found.join(", ")),
        },
    }
}

/// The version in our stamp, if the file beside it is the one that the stamp is about.
fn stamped(file: &Path, sha256: &str) -> Option<RocksdbVersion> {
    let stamp = Stamp::beside(file.parent()?)?;
    if stamp.binary_sha256 != sha256 {
        return None;
    }
    stamp.server_version.parse().ok()
}

/// The version in the tag of the source: `v10.2.1`.
fn compiled_in(elf: &Elf) -> Option<RocksdbVersion> {
    let tag = elf.labelled(TAG)?;
    let version: RocksdbVersion = tag.trim().strip_prefix('v')?.parse().ok()?;
    (!version.is_series()).then_some(version)
}

/// The version in a file's name: `librocksdb.so.7.8.3`, `rocksdbjni-10.2.1-linux64.so`.
fn in_name(file: &Path) -> Option<RocksdbVersion> {
    let name = file.file_name()?.to_str()?;
    name.split(|one: char| one != '.' && !one.is_ascii_digit())
        .map(|part| part.trim_matches('.'))
        .filter(|part| part.contains('.'))
        .find_map(|part| part.parse().ok())
}

/// The version in what `db_bench --version` prints: `db_bench version 7.8.3`.
fn version_said(said: &str) -> Option<RocksdbVersion> {
    let (_, rest) = said.split_once("version ")?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests;
