//! A candidate without one of its commits: made beside the user's repository, which stays as it is.
//!
//! The commit lives in a repository of ours that reads the user's objects. It is always the same commit for
//! the same question, so a build of it is found again.

use super::git::Repository;
use super::probe::Toolbox;
use crate::cache::Cache;
use crate::files::{failed, make_directory, remove_tree};
use crate::tree::hex;
use deltabench_model::problem::Problem;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// What changes nothing in what a server does: it must not stand in the way of a revert. Every change of the
/// catalogs gives them another version, in the same line.
const LEFT_OUT: [&str; 5] = [
    ".",
    ":(exclude)doc",
    ":(exclude)src/test",
    ":(exclude)src/include/catalog/catversion.h",
    ":(exclude)*.po",
];

/// What is to be undone, by whole names.
#[derive(Debug, Clone, Copy)]
pub struct Revert<'a> {
    /// Where it is undone.
    pub candidate: &'a str,
    pub culprit: &'a str,
}

/// The candidate of a repository without what a commit did, as the directory of a repository and a commit in
/// it; nothing where it does not revert cleanly.
///
/// Errors: no git, no repository, a directory of the cache that cannot be written.
pub fn without(
    directory: &Path,
    revert: &Revert<'_>,
    cache: &Cache,
) -> Result<Option<(PathBuf, String)>, Problem> {
    let git = Toolbox::here()
        .find("git")
        .ok_or_else(|| Problem::new("git is missing").hint("install git"))?;
    let of_user = Repository::open(&git, directory)?;
    let _lock = cache.lock_builds(&mut |_| {})?;
    let name = hex(&Sha256::digest(
        of_user.place().as_os_str().as_encoded_bytes(),
    ));
    let name = name.get(..12).unwrap_or(&name);
    let dir = cache.root().join("reverts").join(name).join(of_user.name());
    let ours = beside(&of_user, &git, &dir)?;
    let work = Work {
        repository: &ours,
        tree: dir.join("deltabench-tree"),
    };
    make_directory(&work.tree)?;
    let made = work.revert(revert);
    remove_tree(&work.tree)?;
    Ok(made?.map(|commit| (dir, commit)))
}

/// A repository of ours with all commits of the user's.
fn beside(of_user: &Repository, git: &Path, dir: &Path) -> Result<Repository, Problem> {
    let cannot = |said: String| {
        Problem::new(format!("cannot make a repository in {}", dir.display())).detail(said)
    };
    make_directory(dir)?;
    let place = dir.display().to_string();
    of_user
        .ask_elsewhere(&["init", "-q", "--bare", &place])
        .map_err(cannot)?;
    let objects = of_user
        .ask(&[
            "rev-parse",
            "--path-format=absolute",
            "--git-path",
            "objects",
        ])
        .map_err(cannot)?;
    for (file, text) in [
        ("objects/info/alternates", objects.trim_end()),
        // Its trees are those of the user's repository, so that a build goes on from a near commit.
        (Repository::STANDS_FOR, &*of_user.place().to_string_lossy()),
    ] {
        let path = dir.join(file);
        std::fs::write(&path, format!("{text}\n"))
            .map_err(|error| failed("write", &path, &error))?;
    }
    Repository::open(git, dir)
}

/// Where a revert is made.
struct Work<'a> {
    repository: &'a Repository,
    /// An empty directory; only the index is written.
    tree: PathBuf,
}

impl Work<'_> {
    fn revert(&self, revert: &Revert<'_>) -> Result<Option<String>, Problem> {
        let Revert { candidate, culprit } = revert;
        let parent = format!("{culprit}^");
        let cannot = |said: String| {
            Problem::new(format!("cannot undo {culprit} in {candidate}")).detail(said)
        };
        let (patch, commit) = (self.tree.join("patch"), self.tree.join("commit"));
        let output = format!("--output={}", patch.display());
        self.git(&["read-tree", "--reset", candidate])
            .map_err(cannot)?;
        let diff = [
            "diff",
            "--binary",
            "--full-index",
            "--no-renames",
            "--no-ext-diff",
            "--no-color",
        ];
        let diff = [&diff[..], &[&output, &parent, culprit, "--"], &LEFT_OUT].concat();
        self.git(&diff).map_err(cannot)?;
        let patch = patch.display().to_string();
        if self
            .git(&["apply", "-R", "--3way", "--cached", &patch])
            .is_err()
        {
            return Ok(None);
        }
        let tree = self.git(&["write-tree"]).map_err(cannot)?;
        let before = self
            .git(&["rev-parse", &format!("{candidate}^{{tree}}")])
            .map_err(cannot)?;
        if tree.trim() == before.trim() {
            return Ok(None);
        }
        let text = format!(
            "tree {}\nparent {candidate}\nauthor deltabench <deltabench@localhost> 0 +0000\ncommitter \
             deltabench <deltabench@localhost> 0 +0000\n\nwithout {culprit}\n",
            tree.trim()
        );
        std::fs::write(&commit, text).map_err(|error| failed("write", &commit, &error))?;
        let commit = commit.display().to_string();
        let made = self
            .git(&["hash-object", "-t", "commit", "-w", &commit])
            .map_err(cannot)?;
        Ok(Some(made.trim().to_owned()))
    }

    fn git(&self, arguments: &[&str]) -> Result<String, String> {
        let index = self.tree.join("index");
        self.repository.run(arguments, Some((&self.tree, &index)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::tests::world::World;

    /// The commits of a world whose `src/a.c` went through these texts.
    fn commits(world: &World, texts: &[&str]) -> Vec<String> {
        let commit = |text: &&str| {
            world.write("src/a.c", text);
            world.commit("plain");
            world.git(&["rev-parse", "HEAD"])
        };
        texts.iter().map(commit).collect()
    }

    #[test]
    fn a_candidate_without_a_commit_is_made_beside_the_repository_and_always_the_same() {
        let world = World::new();
        let top = "#1\n#2\n#3\n#4\n#5\n#6\n#7\n#8\n#9\n";
        let ids = commits(
            &world,
            &[
                top,
                &top.replace('2', "slow"),
                &top.replace('2', "slow").replace('8', "eight"),
            ],
        );
        let before = world.git(&["count-objects", "-v"]);
        let directory = world.path("fake-1.0");
        let revert = Revert {
            candidate: &ids[2],
            culprit: &ids[1],
        };
        let (place, commit) = without(&directory, &revert, &world.cache).unwrap().unwrap();
        let again = without(&directory, &revert, &world.cache).unwrap().unwrap();
        assert_eq!(again, (place.clone(), commit.clone()));
        assert_eq!(world.git(&["count-objects", "-v"]), before);
        let target = format!("git:{}@{commit}+plain", place.display());
        let found = world.resolve(&target).unwrap();
        let made = std::fs::read_to_string(found.bin_dir.join("postgres")).unwrap();
        assert!(made.contains(&top.replace('8', "eight")), "{made}");
        // The tree of the user's repository goes on.
        world.resolve(&world.at_head("plain")).unwrap();
        world.resolve(&target.replace(&commit, &ids[0])).unwrap();
        assert!(!world.said().contains("clean"), "{}", world.said());
    }

    #[test]
    fn what_was_changed_again_does_not_revert() {
        let world = World::new();
        let ids = commits(&world, &["# one\n", "# two\n", "# three\n"]);
        let revert = |candidate: usize| Revert {
            candidate: &ids[candidate],
            culprit: &ids[1],
        };
        let directory = world.path("fake-1.0");
        let of = |candidate| without(&directory, &revert(candidate), &world.cache).unwrap();
        assert_eq!(of(2), None);
        assert!(of(1).is_some());
        assert_eq!(of(0), None, "it is not there");
    }
}
