//! Where do the binaries come from: a target to an installation.
//!
//! [`resolve`] turns what the user asked for ([`TargetSpec`]) into a tree with `bin/postgres`
//! ([`Installation`]): a prebuilt server is fetched through the `mvn` client (or `npm` where there
//! is no Maven),
//! verified, unpacked into a [`Cache`] and found there again without a network; `path:` and
//! `installed:` trees are only looked at. A target with a variant is built from source: a release, an archive
//! or a commit of a repository. RocksDB's libraries come the same way, from the Java package that carries
//! them; a library or `db_bench` of the user's is only looked at.
//!
//! What it refuses: a package whose checksum does not match, an archive that reaches out of its
//! directory, a package whose server is another release than it says (what release a library is its package
//! alone says), a tree without `bin/postgres` and `bin/initdb`, and a library that does not export RocksDB's
//! C interface.
//!
//! Decision and price: packages come through the package clients that users and mirrors already
//! have set up (proxies,
//! certificates, company repositories), not through an HTTP client of ours; the price is 2 to 4
//! seconds of client
//! start per call and a private Maven repository of about 25 MB in the cache. All changes to a
//! cache happen under one
//! lock, because two Maven processes must not share a repository; readers take no lock, as a tree
//! appears by rename. Only a build from source can go again: whoever resolves one holds it until the process
//! ends.
//!
//! ```no_run
//! use deltabench_acquire::{Cache, Sources, resolve};
//!
//! let cache = Cache::open(Cache::default_root())?;
//! let sources = Sources::default();
//! let server = resolve(&"postgres:18".parse()?, &cache, &sources, &mut |line| eprintln!("{line}"))?;
//! println!("{} in {}", server.resolved, server.bin_dir.display());
//! # Ok::<(), deltabench_model::problem::Problem>(())
//! ```

mod address;
mod build;
mod cache;
mod clients;
mod command;
mod elf;
mod files;
mod library;
mod likeness;
mod listing;
mod maven;
mod npm;
mod package_source;
mod platform;
mod prebuilt;
mod stamp;
mod tree;
mod unpack;
mod versions;

pub use build::{
    BuildSystem, ByFile, History, HistoryCommit, NamedSources, OptionSince, Revert, Undone,
    Variant, Variants, build_here, built_names, commits_in_order, defined_in, did_not_compile,
    forget_build, history, hold_build, is_of_machine, touched, unknown_source, without,
};
pub use cache::Cache;
pub use likeness::made_of;
pub use listing::{Availability, KnownFrom, Listed, list};
pub use prebuilt::prefetch;
pub use tree::sha256_of;

use crate::versions::Version;
use deltabench_model::installation::Installation;
use deltabench_model::problem::Problem;
use deltabench_model::target::TargetSpec;
use std::num::NonZeroUsize;

/// Where servers and sources may be fetched from, and how builds are made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sources {
    /// Base address of a Maven repository to take the packages from instead of the client's default one;
    /// `file://` works too. Needs the `mvn` client.
    pub mirror: Option<String>,
    /// Fetch nothing: only what is in the cache or on the disk counts.
    pub offline: bool,
    /// Base address of released sources, for those that the distribution's archive does not have:
    /// `BASE/v17.11/postgresql-17.11.tar.bz2` and its `.sha256`; `https://` or `file://`.
    pub source_mirror: Option<String>,
    /// Where sources are that no package has: `postgres:18beta1`, `postgres:master`.
    pub named: NamedSources,
    /// How many jobs a build runs side by side; absent: as many as there are cores.
    pub jobs: Option<NonZeroUsize>,
    /// The variants that builds may be made with.
    pub variants: Variants,
}

/// Finds or fetches the installation that `spec` asks for.
///
/// `progress` gets a line for each thing that takes time or that the user should know (a fetch, a fallback).
/// [`Installation::build`] stays empty for servers: only a running one knows. RocksDB's files say it
/// themselves.
///
/// Errors: a version that cannot be had (with the nearest that can), a package that cannot be reached or does
/// not match its checksum, a tree without a server.
pub fn resolve(
    spec: &TargetSpec,
    cache: &Cache,
    sources: &Sources,
    progress: &mut dyn FnMut(&str),
) -> Result<Installation, Problem> {
    match spec {
        TargetSpec::Prebuilt(release) => {
            let wanted = Version::Postgres(release.clone());
            prebuilt::resolve(&wanted, cache, sources, progress)
        }
        TargetSpec::Rocksdb(version) => {
            let wanted = Version::Rocksdb(version.clone());
            prebuilt::resolve(&wanted, cache, sources, progress)
        }
        TargetSpec::Path(dir) => tree::at_path(dir),
        TargetSpec::Installed(release) => tree::installed(release),
        TargetSpec::Built(build) => build::resolve(build, cache, sources, progress),
        TargetSpec::RocksdbPath(file) => library::at_path(file),
        TargetSpec::DbBench(file) => library::db_bench(file),
        TargetSpec::Dsn(_) => Err(Problem::new(format!(
            "{spec} already runs; there is nothing to fetch"
        ))),
    }
}

/// Refuses builds that [`resolve`] would refuse, without fetching or building anything: for all targets of a
/// run, before the first of them costs minutes.
///
/// Errors: an unknown variant, a missing tool or library, an archive or repository that is none.
pub fn check(specs: &[TargetSpec], cache: &Cache, sources: &Sources) -> Result<(), Problem> {
    for spec in specs {
        if let TargetSpec::Built(build) = spec {
            build::check(build, cache, sources)?;
        }
    }
    Ok(())
}
