//! What can be measured on this machine.

use crate::Sources;
use crate::build::kept;
use crate::cache::Cache;
use crate::prebuilt::{LIST_IS_FRESH, Prebuilt};
use crate::tree;
use crate::versions::{PackageVersion, Product, one_per_release};
use deltabench_model::problem::Problem;
use std::path::{Path, PathBuf};

/// One target that can be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// As the user would write it: `postgres:17.5`, `installed:15`, `rocksdb:10.2.1`.
    pub target: String,
    /// The release, for example `17.5`.
    pub version: String,
    /// What it takes to have it.
    pub availability: Availability,
    /// Version of the package it comes in, for prebuilt ones.
    pub package: Option<String>,
    /// How we know of it.
    pub known_from: KnownFrom,
}

/// What it takes to have a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Availability {
    /// It must be fetched.
    Fetchable,
    /// It was fetched before; the directory with its programs, or the library.
    Cached(PathBuf),
    /// A distribution or the user installed it; the directory with its programs.
    Installed(PathBuf),
    /// It was built from source before; the directory with its programs.
    Built(PathBuf),
}

/// How a target is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KnownFrom {
    /// The list of versions fetched at most a day ago.
    FreshList,
    /// A list fetched longer ago, since no new one could be; the reason.
    OldList(String),
    /// The list that came with deltabench, since no other could be had; the reason.
    BuiltInList(String),
    Disk,
}

/// Everything that can be had: prebuilt servers newest first, then builds from source and installed ones,
/// then libraries of RocksDB newest first.
///
/// Asks the network for each list when there is none of today; without a network (or client) it
/// names an older list, or the
/// one that came with deltabench, and says so in [`Listed::known_from`].
///
/// Errors: this machine has no prebuilt servers; the cache cannot be used.
pub fn list(cache: &Cache, sources: &Sources) -> Result<Vec<Listed>, Problem> {
    let mut rows = packaged(Product::Postgres, cache, sources)?;
    rows.extend(kept::all(cache).into_iter().map(|build| Listed {
        target: build.stamp.label,
        version: build.stamp.server_version,
        availability: Availability::Built(build.dir.join("bin")),
        package: None,
        known_from: KnownFrom::Disk,
    }));
    rows.extend(
        tree::search(Path::new("/"))
            .into_iter()
            .map(|(bin_dir, facts)| Listed {
                target: format!("installed:{}", facts.major()),
                version: facts.version,
                availability: Availability::Installed(bin_dir),
                package: None,
                known_from: KnownFrom::Disk,
            }),
    );
    rows.extend(packaged(Product::Rocksdb, cache, sources)?);
    Ok(rows)
}

/// What comes in packages of one product.
fn packaged(product: Product, cache: &Cache, sources: &Sources) -> Result<Vec<Listed>, Problem> {
    let prebuilt = Prebuilt::new(product, cache, sources)?;
    let (versions, known_from) = prebuilt_versions(&prebuilt, sources.offline)?;
    let cached = prebuilt.cached();
    let mut all = versions;
    let listed: Vec<String> = all.iter().map(|version| version.text.clone()).collect();
    all.extend(
        cached
            .iter()
            .map(|cached| cached.version.clone())
            .filter(|version| !listed.contains(&version.text)),
    );
    let rows = one_per_release(&all).into_iter().map(|version| {
        let here = cached
            .iter()
            .find(|cached| cached.version.release == version.release);
        let known_from = if listed.contains(&version.text) {
            known_from.clone()
        } else {
            KnownFrom::Disk
        };
        Listed {
            target: version.release.target().to_string(),
            version: version.release.to_string(),
            availability: here.map_or(Availability::Fetchable, |cached| {
                Availability::Cached(cached.dir.join(product.place()))
            }),
            package: Some(here.map_or(version.text, |cached| cached.version.text.clone())),
            known_from,
        }
    });
    Ok(rows.collect())
}

fn prebuilt_versions(
    prebuilt: &Prebuilt<'_>,
    offline: bool,
) -> Result<(Vec<PackageVersion>, KnownFrom), Problem> {
    if offline {
        return Ok(prebuilt.kept().map_or_else(
            || {
                (
                    prebuilt.known(),
                    KnownFrom::BuiltInList("offline".to_owned()),
                )
            },
            |versions| (versions, KnownFrom::OldList("offline".to_owned())),
        ));
    }
    match prebuilt.list(LIST_IS_FRESH, &mut |_| {}) {
        Ok(list) => {
            let from = list.stale.map_or(KnownFrom::FreshList, |error| {
                KnownFrom::OldList(error.to_string())
            });
            Ok((list.versions, from))
        }
        Err(error) if error.is_unreachable() => {
            Ok((prebuilt.known(), KnownFrom::BuiltInList(error.to_string())))
        }
        Err(error) => {
            let product = prebuilt.product();
            Err(error.into_problem(product, &format!("the list of {}", product.things())))
        }
    }
}
