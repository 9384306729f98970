//! What the user asks to be measured, before it is resolved.

mod build;
mod dsn;
mod named;
mod rocksdb;

pub use build::{BuildSource, BuildSpec};
pub use named::{SourceName, release_tag};
pub use rocksdb::RocksdbVersion;

use crate::installation::{Engine, Origin, Remote};
use crate::problem::{Problem, nearest};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// A release of PostgreSQL: major and, when stated, minor.
///
/// `18.1` is major "18", minor 1; before version 10 the major has two parts: `9.6.24` is major "9.6", minor
/// 24.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Release {
    /// `"18"`, or `"9.6"`.
    pub major: String,
    /// The point release, when stated.
    pub minor: Option<u32>,
}

impl Release {
    /// A number that orders majors: 906 for 9.6, 1000 for 10, 1800 for 18.
    pub fn major_rank(&self) -> u32 {
        let mut parts = self
            .major
            .split('.')
            .map(|part| part.parse::<u32>().unwrap_or(0));
        let first = parts.next().unwrap_or(0);
        first * 100 + parts.next().unwrap_or(0)
    }
}

impl FromStr for Release {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        let bad = || {
            Problem::new(format!("`{text}` is not a PostgreSQL version")).hint(
                "write a major (postgres:18, postgres:9.6), a point release (postgres:17.5, \
                     postgres:9.6.24), or a state of the source (postgres:18beta1, postgres:REL_18_STABLE, \
                     postgres:master)",
            )
        };
        let parts: Vec<&str> = text.split('.').collect();
        let numbers: Vec<u32> = parts
            .iter()
            .map(|part| part.parse::<u32>().map_err(|_| bad()))
            .collect::<Result<_, _>>()?;
        match numbers.as_slice() {
            [9, second] => Ok(Self {
                major: format!("9.{second}"),
                minor: None,
            }),
            [9, second, minor] => Ok(Self {
                major: format!("9.{second}"),
                minor: Some(*minor),
            }),
            [major] if *major >= 10 => Ok(Self {
                major: major.to_string(),
                minor: None,
            }),
            [major, minor] if *major >= 10 => Ok(Self {
                major: major.to_string(),
                minor: Some(*minor),
            }),
            _ => Err(bad()),
        }
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.minor {
            Some(minor) => write!(f, "{}.{minor}", self.major),
            None => f.write_str(&self.major),
        }
    }
}

/// A target as asked for on the command line.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TargetSpec {
    /// `postgres:18` or `postgres:17.5`: a prebuilt server, fetched and cached.
    Prebuilt(Release),
    /// `path:DIR`: an installation tree with `bin/postgres`.
    Path(PathBuf),
    /// `installed:15`: a tree found where distributions put them.
    Installed(Release),
    /// `postgres:17.11+o3`, `src:FILE+o3`, `git:DIR@REF+o3`, `postgres:18beta1`: built from source.
    Built(BuildSpec),
    /// `dsn:postgres://…`: a server that is there already.
    Dsn(Remote),
    /// `rocksdb:10.2.1`: the shared library of that version, fetched and cached.
    Rocksdb(RocksdbVersion),
    /// `rocksdb:path:LIB.so`: a shared library that exports the C interface of RocksDB.
    RocksdbPath(PathBuf),
    /// `db_bench:PATH`: a `db_bench` of the user's, which works by itself.
    DbBench(PathBuf),
}

impl TargetSpec {
    /// What it is.
    pub fn engine(&self) -> Engine {
        match self {
            Self::Rocksdb(_) | Self::RocksdbPath(_) => Engine::Rocksdb,
            Self::DbBench(_) => Engine::DbBench,
            _ => Engine::Postgres,
        }
    }

    /// Where its binaries come from.
    #[must_use]
    pub fn origin(&self) -> Origin {
        match self {
            Self::Prebuilt(_) | Self::Rocksdb(_) => Origin::Prebuilt,
            Self::Path(_) | Self::RocksdbPath(_) | Self::DbBench(_) => Origin::Path,
            Self::Installed(_) => Origin::Installed,
            Self::Built(_) => Origin::Built,
            Self::Dsn(_) => Origin::Remote,
        }
    }

    /// The version as an installation has it, as far as the text says it; 0 where it says nothing.
    #[must_use]
    pub fn version_num(&self) -> u32 {
        let number = |release: &Release| release.major_rank() * 100 + release.minor.unwrap_or(0);
        match self {
            Self::Prebuilt(release) | Self::Installed(release) => number(release),
            Self::Built(build) => match &build.source {
                BuildSource::Release(release) => number(release),
                BuildSource::Named(name) => name.major_rank().unwrap_or(0) * 100,
                _ => 0,
            },
            _ => self.rocksdb_version(),
        }
    }

    /// What all versions of a series are called whose newest one it may be: `18`, `rocksdb:10`.
    #[must_use]
    pub fn series(&self) -> String {
        match self {
            Self::Prebuilt(release) => release.major.clone(),
            Self::Rocksdb(version) => Self::Rocksdb(version.major()).to_string(),
            other => other.to_string(),
        }
    }

    /// The version of RocksDB, as an installation has it, as far as the text says it: 0 for a series, a file
    /// or a server.
    pub fn rocksdb_version(&self) -> u32 {
        match self {
            Self::Rocksdb(version) if !version.is_series() => version.number(),
            _ => 0,
        }
    }
}

impl FromStr for TargetSpec {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        if may_hold_a_password(text, kind, rest) {
            return Err(not_repeated(kind));
        }
        if !text.contains(':') {
            return Err(unknown_kind(text, text));
        }
        match kind {
            "postgres" if !rest.contains('+') => match SourceName::of(rest) {
                Some(name) => Ok(Self::Built(BuildSpec::plain(name))),
                None => Ok(Self::Prebuilt(rest.parse()?)),
            },
            "postgres" | "src" | "git" => Ok(Self::Built(text.parse()?)),
            "dsn" => Ok(Self::Dsn(rest.parse()?)),
            "installed" => Ok(Self::Installed(rest.parse()?)),
            "rocksdb" => match rest.strip_prefix("path:") {
                Some(file) => Ok(Self::RocksdbPath(file_of(text, file)?)),
                None => Ok(Self::Rocksdb(rest.parse()?)),
            },
            "db_bench" => Ok(Self::DbBench(file_of(text, rest)?)),
            "path" if rest.is_empty() => Err(Problem::new("`path:` names no directory")
                .hint("write path:/usr/lib/postgresql/15")),
            "path" => Ok(Self::Path(PathBuf::from(rest))),
            _ => Err(unknown_kind(text, kind)),
        }
    }
}

/// The file that a target names.
fn file_of(text: &str, file: &str) -> Result<PathBuf, Problem> {
    if file.is_empty() {
        return Err(Problem::new(format!("`{text}` names no file"))
            .hint("write rocksdb:path:/opt/lib/librocksdb.so or db_bench:/opt/rocksdb/db_bench"));
    }
    Ok(PathBuf::from(file))
}

/// Whether a text that is no `dsn:` looks like an address, in which a password may be written.
fn may_hold_a_password(text: &str, kind: &str, rest: &str) -> bool {
    let slashes = text.contains("://") || text.starts_with("//") || rest.starts_with("//");
    match kind {
        "dsn" => false,
        // A directory's name may begin with two slashes as well.
        "path" | "src" | "rocksdb" | "db_bench" => slashes && text.contains('@'),
        "git" => slashes,
        _ => slashes || text.contains('@'),
    }
}

/// The refusal of such a text. Nothing of it is repeated.
fn not_repeated(kind: &str) -> Problem {
    let problem = Problem::new("a target looks like the address of a server");
    match kind {
        "path" | "src" | "git" | "rocksdb" | "db_bench" => problem
            .detail("path:, src:, git:, rocksdb:path: and db_bench: take a directory or a file of this host")
            .hint("fetch it first, then write its directory or file"),
        _ => problem
            .detail(
                "name a server that already runs by dsn: and its address, without a password: \
                 deltabench takes it from PGPASSWORD, PGPASSFILE or ~/.pgpass",
            )
            .hint("write dsn:postgres://USER@HOST/DATABASE"),
    }
}

fn unknown_kind(text: &str, kind: &str) -> Problem {
    let problem = Problem::new(format!("unknown target `{text}`")).detail(
        "a target is postgres:VERSION (prebuilt), postgres:VERSION+VARIANT, src:FILE+VARIANT or \
             git:DIR@REF+VARIANT (built from source), path:DIR (a tree with bin/postgres), \
             installed:MAJOR or dsn:postgres://… (a server that already runs); for `deltabench rocksdb` \
             it is rocksdb:VERSION, rocksdb:path:LIB.so or db_bench:PATH",
    );
    if text.parse::<Release>().is_ok() {
        return problem.hint(format!("did you mean postgres:{text}?"));
    }
    let kinds = [
        "postgres",
        "path",
        "installed",
        "src",
        "git",
        "dsn",
        "rocksdb",
        "db_bench",
    ];
    match nearest(kind, kinds) {
        Some(near) => {
            let rest = text.split_once(':').map_or("...", |(_, rest)| rest);
            problem.hint(format!("did you mean {near}:{rest}?"))
        }
        None => problem.hint("`deltabench targets` lists all that are available here"),
    }
}

impl fmt::Display for TargetSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prebuilt(release) => write!(f, "postgres:{release}"),
            Self::Path(path) => write!(f, "path:{}", path.display()),
            Self::Installed(release) => write!(f, "installed:{release}"),
            Self::Built(build) => build.fmt(f),
            Self::Dsn(remote) => write!(f, "dsn:{remote}"),
            Self::Rocksdb(version) => write!(f, "rocksdb:{version}"),
            Self::RocksdbPath(file) => write!(f, "rocksdb:path:{}", file.display()),
            Self::DbBench(file) => write!(f, "db_bench:{}", file.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_parse_and_print_alike() {
        for text in [
            "postgres:18",
            "postgres:17.5",
            "postgres:9.6",
            "postgres:9.6.24",
            "path:/opt/pg",
            "installed:15",
            "postgres:17.11+o3_native_lto",
            "src:/tmp/postgresql-17.11.tar.bz2+def",
            "git:/src/postgres@REL_18_STABLE~3+o2_nofp",
            "postgres:18beta1",
            "postgres:18rc1+o2_nofp",
            "postgres:REL_18_STABLE~3",
            "postgres:master+o3",
            "dsn:postgres://me@db.example:6432/bench?sslmode=verify-full",
            "rocksdb:10.2.1",
            "rocksdb:10.10.1.1",
            "rocksdb:11",
            "rocksdb:path:/opt/lib/librocksdb.so",
            "db_bench:/opt/rocksdb/db_bench",
        ] {
            assert_eq!(text.parse::<TargetSpec>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_target_says_what_it_is_and_which_version_it_asks_for() {
        let said = |text: &str| {
            let target: TargetSpec = text.parse().unwrap();
            (target.engine(), target.rocksdb_version())
        };
        assert_eq!(said("postgres:18"), (Engine::Postgres, 0));
        assert_eq!(said("rocksdb:7.10.2"), (Engine::Rocksdb, 71_002));
        assert_eq!(said("rocksdb:7"), (Engine::Rocksdb, 0), "not known yet");
        assert_eq!(said("db_bench:/opt/db_bench"), (Engine::DbBench, 0));
    }

    #[test]
    fn a_state_of_the_source_without_a_variant_is_built_plainly() {
        let plain: TargetSpec = "postgres:18beta1".parse().unwrap();
        assert_eq!(plain.origin(), Origin::Built);
        assert_eq!(plain.version_num(), 180_000);
        assert_eq!(Ok(plain), "postgres:18beta1+def".parse());
    }

    #[test]
    fn majors_are_ordered_by_rank() {
        let rank = |text: &str| text.parse::<Release>().unwrap().major_rank();
        assert!(rank("9.6.24") < rank("10.23") && rank("10.23") < rank("18"));
    }

    #[test]
    fn bad_targets_name_the_nearest_good_one() {
        let hint = |text: &str| text.parse::<TargetSpec>().unwrap_err().hint.unwrap();
        assert!(hint("postgers:18").contains("postgres:18"));
        assert!(hint("17").contains("postgres:17"));
        assert!(hint("postgres:latest").contains("postgres:18"));
        assert!(hint("rocksdb:latest").contains("rocksdb:10.2.1"));
        assert!(hint("rocksdb:path:").contains("librocksdb.so"));
        assert!(hint("db_bench:").contains("db_bench:/opt"));
        assert!(hint("rocksbd:10.2.1").contains("rocksdb:10.2.1"));
        assert!(hint("mysql:8").contains("deltabench targets"));
        assert!(hint("postgresql:18").contains("postgres:18"));
    }

    #[test]
    fn an_address_without_dsn_is_refused_and_nothing_of_it_is_repeated() {
        for text in [
            "postgres://me:hunter2@h/d",
            "postgresql://me:hunter2@h/d",
            "postgres://h/d?password=hunter2",
            "postgres:me:hunter2@h/d",
            "DSN:postgres://me:hunter2@h/d",
            "dns:postgres://me:hunter2@h/d",
            "installed://me:hunter2@h/d",
            "//me:hunter2@h/d",
            "me:hunter2@h/d",
            "hunter2@h",
        ] {
            let problem = text.parse::<TargetSpec>().unwrap_err();
            assert!(!problem.to_string().contains("hunter2"), "{problem}");
            let hint = problem.hint.unwrap();
            assert!(hint.contains("dsn:postgres://USER@HOST/DATABASE"), "{hint}");
            assert!(problem.detail.unwrap().contains("PGPASSWORD"), "{text}");
        }
        for text in [
            "path:postgres://me:hunter2@h/d",
            "src:https://me:hunter2@h/x.tar.bz2+def",
            "git:https://me:hunter2@h/x@HEAD+def",
        ] {
            let problem = text.parse::<TargetSpec>().unwrap_err();
            assert!(!problem.to_string().contains("hunter2"), "{problem}");
        }
    }

    #[test]
    fn two_slashes_of_a_directory_are_no_address() {
        for text in [
            "path://opt/pg",
            "src://opt/pg.tar+def",
            "git:/a//b@HEAD+def",
        ] {
            assert_eq!(text.parse::<TargetSpec>().unwrap().to_string(), text);
        }
    }
}
