//! Where a source tree is while it is built.
//!
//! An archive is unpacked, built and removed; the place is always the same, so that ccache knows the files
//! again. A repository has one tree for each recipe, which stays: another commit is laid out in it, and
//! `make` does what differs. Such a tree counts only while it says which commit it was built from; that is
//! taken back before it is touched and said again after it was built, so that a killed build is followed by a
//! clean one.

use super::archive::Archive;
use super::git::Commit;
use crate::cache::Cache;
use crate::files::{failed, make_directory, read_json, remove_tree, write_whole};
use deltabench_model::problem::Problem;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

const FORMAT: &str = "deltabench.tree";

/// What is to be built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    Archive(Archive),
    Commit(Commit),
}

impl Source {
    /// What names its content: the checksum of an archive, the whole name of a commit.
    pub fn id(&self) -> &str {
        match self {
            Self::Archive(archive) => &archive.sha256,
            Self::Commit(commit) => &commit.id,
        }
    }

    /// Where it is, for the user.
    pub fn place(&self) -> String {
        match self {
            Self::Archive(archive) => archive.file.display().to_string(),
            Self::Commit(commit) => commit.label(),
        }
    }
}

/// How a tree was brought to what is to be built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    /// It is empty but for the source; the reason.
    Clean(String),
    /// It is built and configured from that commit, and files have changed since.
    Built { from: String, changed: usize },
}

impl State {
    /// As the log and the stamp say it.
    pub fn words(&self) -> String {
        match self {
            Self::Clean(why) => format!("clean ({why})"),
            Self::Built { from, changed } => {
                let from = from.get(..10).unwrap_or(from);
                format!("incremental, from {from} ({changed} files differ)")
            }
        }
    }
}

/// What a tree that stays says of itself; version 1 of the format.
#[derive(Serialize, Deserialize)]
struct TreeStamp {
    format: String,
    version: u32,
    revision: u32,
    commit: String,
}

/// A directory with a source tree in it.
pub(super) struct Workplace<'a> {
    /// What is to be built.
    source: &'a Source,
    /// The directory of ours.
    dir: PathBuf,
    /// Whether the tree stays for the next commit.
    stays: bool,
}

impl<'a> Workplace<'a> {
    /// The place for one source; `recipe_key` says how it is built, whatever the source; the tree of a commit
    /// stays if `stays`.
    pub fn new(cache: &Cache, source: &'a Source, recipe_key: &str, stays: bool) -> Self {
        let (dir, stays) = match source {
            Source::Commit(_) if stays => (cache.root().join("trees").join(recipe_key), true),
            _ => (cache.in_progress("build"), false),
        };
        Self { source, dir, stays }
    }

    /// The source tree.
    pub fn tree(&self) -> PathBuf {
        self.dir.join("source")
    }

    fn index(&self) -> PathBuf {
        self.dir.join("index")
    }

    fn standing(&self) -> PathBuf {
        self.dir.join("built.json")
    }

    /// Brings the source into the tree, onto what is built there if that can be.
    pub fn prepare(&self) -> Result<State, Problem> {
        let kept: Option<TreeStamp> = read_json(&self.standing());
        let kept = kept.filter(|kept| kept.format == FORMAT && kept.version == 1);
        self.take_back()?;
        let (Source::Commit(commit), true) = (self.source, self.stays) else {
            return self.clean("deltabench unpacks an archive again");
        };
        let Some(kept) = kept else {
            return self.clean("there is no tree of an earlier commit");
        };
        let Some(changed) = commit.changed_since(&kept.commit) else {
            return self.clean("the commit of the tree is no longer in the repository");
        };
        if let Some(path) = changed.iter().find(|path| is_configuring(path)) {
            return self.clean(&format!(
                "{path} differs, and the tree was configured with it"
            ));
        }
        if commit.lay_out(&self.tree(), &self.index()).is_err() {
            return self.clean("the commit cannot be checked out over the earlier one");
        }
        self.drop_objects(&changed)?;
        Ok(State::Built {
            from: kept.commit,
            changed: changed.len(),
        })
    }

    /// Removes everything and brings the source anew.
    pub fn clean(&self, why: &str) -> Result<State, Problem> {
        remove_tree(&self.dir)?;
        make_directory(&self.tree())?;
        match self.source {
            Source::Archive(archive) => archive.unpack(&self.tree())?,
            Source::Commit(commit) => commit.lay_out(&self.tree(), &self.index())?,
        }
        Ok(State::Clean(why.to_owned()))
    }

    /// The tree is built: it stays as it is for the next commit, or goes.
    pub fn finished(&self) -> Result<(), Problem> {
        match (self.source, self.stays) {
            (Source::Commit(commit), true) => write_whole(
                &self.standing(),
                &TreeStamp {
                    format: FORMAT.to_owned(),
                    version: 1,
                    revision: 0,
                    commit: commit.id.clone(),
                },
            ),
            _ => remove_tree(&self.dir),
        }
    }

    fn take_back(&self) -> Result<(), Problem> {
        match std::fs::remove_file(self.standing()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(failed("remove", &self.standing(), &error))
            }
            _ => Ok(()),
        }
    }

    /// A Makefile gives flags to the objects beside it, and `make` does not look whether they changed.
    fn drop_objects(&self, changed: &[String]) -> Result<(), Problem> {
        let makefiles = changed.iter().map(Path::new);
        let makefiles =
            makefiles.filter(|path| path.file_name().is_some_and(|name| name == "Makefile"));
        for dir in makefiles.filter_map(Path::parent) {
            let dir = self.tree().join(dir);
            for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
                let path = entry.path();
                if path
                    .extension()
                    .is_some_and(|end| end == "o" || end == "bc")
                {
                    std::fs::remove_file(&path).map_err(|error| failed("remove", &path, &error))?;
                }
            }
        }
        Ok(())
    }
}

/// Whether a file is one that the tree was configured with, or that all Makefiles include.
///
/// `meson.build` is not: `configure` never reads one.
fn is_configuring(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    matches!(
        name,
        "configure"
            | "configure.ac"
            | "aclocal.m4"
            | "Makefile.shlib"
            | "Makefile.port"
            | "common.mk"
    ) || name.ends_with(".in")
        || name.starts_with("Makefile.global")
        || ["config/", "src/template/", "src/makefiles/"]
            .iter()
            .any(|dir| path.starts_with(dir))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_configures_makes_a_clean_build_necessary() {
        for path in [
            "configure",
            "configure.ac",
            "src/include/pg_config.h.in",
            "src/Makefile.global.in",
            "GNUmakefile.in",
            "config/c-compiler.m4",
            "src/template/linux",
            "src/Makefile.shlib",
            "src/backend/common.mk",
        ] {
            assert!(is_configuring(path), "{path}");
        }
        for path in [
            "src/backend/Makefile",
            "meson.build",
            "src/backend/main/main.c",
            "src/include/c.h",
        ] {
            assert!(!is_configuring(path), "{path}");
        }
    }
}
