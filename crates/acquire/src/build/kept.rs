//! Finished builds in the cache.
//!
//! A build is `built/NAME-KEY/`: the installed tree, its log and its stamp. It counts only with its stamp,
//! which is written last, before the tree gets its name.

use super::held;
use crate::cache::Cache;
use crate::files::{failed, make_directory, read_json, remove_tree, write_whole};
use crate::tree;
use deltabench_model::installation::{Installation, Origin, Recipe};
use deltabench_model::problem::Problem;
use serde::{Deserialize, Serialize};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const STAMP: &str = "deltabench-build.json";
const FORMAT: &str = "deltabench.build";
const PARTIAL: &str = ".partial-";

/// What is written beside a build when it is whole; version 1 of the format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamp {
    format: String,
    version: u32,
    revision: u32,
    /// Everything that it depends on, as a checksum.
    pub key: String,
    /// What was asked of this machine, as a checksum: without what was found here.
    pub wish: String,
    /// `postgres:17.11+o3`.
    pub label: String,
    /// What it was made of and how.
    pub recipe: Recipe,
    /// The CPU it was made for, if only for that.
    pub cpu: Option<String>,
    /// How it came about: `clean`, or from which commit.
    pub how: String,
    /// What was left out.
    pub notes: Vec<String>,
    /// What `pg_config --configure` says.
    pub configured: String,
    /// Seconds it took.
    pub seconds: u64,
    /// The server's own version, `17.11`.
    pub server_version: String,
    pub server_version_num: u32,
    /// SHA-256 of `bin/postgres`.
    pub binary_sha256: String,
    binary_bytes: u64,
}

/// What is known of a build before its binaries are looked at.
#[derive(Debug, Clone)]
pub(super) struct Made {
    pub key: String,
    pub wish: String,
    pub label: String,
    pub recipe: Recipe,
    pub cpu: Option<String>,
    pub how: String,
    pub notes: Vec<String>,
    pub configured: String,
    pub seconds: u64,
}

/// A whole build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Build {
    pub dir: PathBuf,
    /// What is known of it.
    pub stamp: Stamp,
}

impl Build {
    /// As an installation for whoever asked for it.
    pub fn installation(&self, asked: String) -> Installation {
        let stamp = self.stamp.clone();
        Installation {
            asked,
            resolved: stamp.label,
            origin: Origin::Built,
            bin_dir: self.dir.join("bin"),
            version_num: stamp.server_version_num,
            version: stamp.server_version,
            binary_sha256: stamp.binary_sha256,
            build: None,
            recipe: Some(stamp.recipe),
            remote: None,
            engine: deltabench_model::installation::Engine::Postgres,
        }
    }
}

/// Directory of the build with that name and key.
pub(super) fn dir_of(cache: &Cache, name: &str, key: &str) -> PathBuf {
    cache.built().join(format!("{name}-{}", short(key)))
}

/// The first letters of a key: enough to tell the builds of one machine apart.
pub(super) fn short(key: &str) -> &str {
    key.get(..12).unwrap_or(key)
}

/// All whole builds, in order of their names. Needs no lock.
pub(crate) fn all(cache: &Cache) -> Vec<Build> {
    let entries = std::fs::read_dir(cache.built())
        .into_iter()
        .flatten()
        .flatten();
    let mut builds: Vec<Build> = entries.filter_map(|entry| at(&entry.path())).collect();
    builds.sort_by(|a, b| a.dir.cmp(&b.dir));
    builds
}

/// Holds a build, so that no other deltabench removes it while this process runs; false if it is gone.
pub(super) fn hold(build: &Build) -> Result<bool, Problem> {
    held::hold(&build.dir.join(STAMP))
}

/// Removes a build from the cache; the next use of it builds it again. What is no build stays. False if
/// another deltabench uses it.
pub(super) fn forget(cache: &Cache, bin_dir: &Path) -> Result<bool, Problem> {
    match bin_dir.parent() {
        Some(dir) if dir.parent() == Some(&cache.built()) && at(dir).is_some() => {
            held::alone(&dir.join(STAMP), || remove_tree(dir))
        }
        _ => Ok(true),
    }
}

/// The build in a directory, if it is whole.
pub(super) fn at(dir: &Path) -> Option<Build> {
    if dir.file_name()?.to_str()?.starts_with(PARTIAL) {
        return None;
    }
    let stamp: Stamp = read_json(&dir.join(STAMP))?;
    let whole = stamp.format == FORMAT
        && stamp.version == 1
        && tree::lacking(&dir.join("bin")).is_none()
        && dir
            .join("bin/postgres")
            .metadata()
            .is_ok_and(|found| found.len() == stamp.binary_bytes);
    whole.then(|| Build {
        dir: dir.to_owned(),
        stamp,
    })
}

/// An empty directory for a tree that is being made. What killed builds left is removed: the lock is ours.
pub(super) fn partial(cache: &Cache) -> Result<PathBuf, Problem> {
    let entries = std::fs::read_dir(cache.built())
        .into_iter()
        .flatten()
        .flatten();
    for entry in entries {
        if entry.file_name().to_string_lossy().starts_with(PARTIAL) {
            remove_tree(&entry.path())?;
        }
    }
    let partial = cache
        .built()
        .join(format!("{PARTIAL}{}", std::process::id()));
    make_directory(&partial)?;
    Ok(partial)
}

/// Gives a finished tree its stamp, then its name.
pub(super) fn keep(partial: &Path, dir: &Path, made: Made) -> Result<Build, Problem> {
    let binary = partial.join("bin/postgres");
    let size = binary
        .metadata()
        .map_err(|error| failed("read", &binary, &error))?
        .len();
    let facts = tree::facts(&partial.join("bin"))?;
    let stamp = Stamp {
        format: FORMAT.to_owned(),
        version: 1,
        revision: 0,
        key: made.key,
        wish: made.wish,
        label: made.label,
        recipe: made.recipe,
        cpu: made.cpu,
        how: made.how,
        notes: made.notes,
        configured: made.configured,
        seconds: made.seconds,
        server_version: facts.version,
        server_version_num: facts.version_num,
        binary_sha256: tree::sha256_of(&binary)?,
        binary_bytes: size,
    };
    readable(partial)?;
    write_whole(&partial.join(STAMP), &stamp)?;
    // Without a stamp, what is there now is half-made by something other than us, or damaged.
    remove_tree(dir)?;
    std::fs::rename(partial, dir).map_err(|error| failed("rename", partial, &error))?;
    at(dir).ok_or_else(|| {
        Problem::new(format!(
            "the build in {} is incomplete although it is new",
            dir.display()
        ))
        .hint("does something else clean up this directory?")
    })
}

/// Lets the server user, who is another one, read and run everything below `dir`.
fn readable(dir: &Path) -> Result<(), Problem> {
    let mut left = vec![dir.to_owned()];
    while let Some(place) = left.pop() {
        let broken = |error: std::io::Error| failed("read", &place, &error);
        let found = place.symlink_metadata().map_err(broken)?;
        if found.is_symlink() {
            continue;
        }
        let mode = found.permissions().mode();
        let runs = if found.is_dir() || mode & 0o100 != 0 {
            0o111
        } else {
            0
        };
        std::fs::set_permissions(&place, Permissions::from_mode(mode | 0o444 | runs))
            .map_err(broken)?;
        if found.is_dir() {
            for entry in std::fs::read_dir(&place).map_err(broken)? {
                left.push(entry.map_err(broken)?.path());
            }
        }
    }
    Ok(())
}
