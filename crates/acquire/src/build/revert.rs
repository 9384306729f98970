//! A candidate without one of its commits: made beside the user's repository, which stays as it is.
//!
//! The commit lives in a repository of ours that reads the user's objects. It is always the same commit for
//! the same question, so a build of it is found again.

use super::git::Repository;
use super::history::may_change_server;
use super::probe::Toolbox;
use crate::cache::Cache;
use crate::files::{failed, make_directory, remove_tree};
use crate::tree::hex;
use deltabench_model::problem::Problem;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// Every change of the catalogs gives them another version, in the same line: it must not stand in the way.
const CATALOG_VERSION: &str = "src/include/catalog/catversion.h";

/// What git says of a patch that does not fit, whatever else failed.
const DOES_NOT_FIT: [&str; 4] = [
    "with conflicts",
    "patch does not apply",
    "does not exist in index",
    "already exists in index",
];

/// What is to be undone, by whole names.
#[derive(Debug, Clone, Copy)]
pub struct Revert<'a> {
    /// Where it is undone.
    pub candidate: &'a str,
    pub culprit: &'a str,
}

/// What became of a candidate without a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Undone {
    /// A commit in the repository at a directory.
    Made(PathBuf, String),
    /// Other commits changed the same lines: what git says of them.
    Conflict(String),
    /// The candidate does not have it, or no more.
    Absent,
}

/// The candidate of a repository without what a commit did to files that a server may be made of.
///
/// Errors: no git, no repository, a directory of the cache that cannot be written.
pub fn without(directory: &Path, revert: &Revert<'_>, cache: &Cache) -> Result<Undone, Problem> {
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
    Ok(match made? {
        Reverted::Commit(commit) => Undone::Made(dir, commit),
        Reverted::Conflict(said) => Undone::Conflict(said),
        Reverted::Same => Undone::Absent,
    })
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

/// How a revert ended.
enum Reverted {
    Commit(String),
    Conflict(String),
    /// The tree stays as it was.
    Same,
}

/// Where a revert is made.
struct Work<'a> {
    repository: &'a Repository,
    /// An empty directory; only the index is written.
    tree: PathBuf,
}

impl Work<'_> {
    fn revert(&self, revert: &Revert<'_>) -> Result<Reverted, Problem> {
        let Revert { candidate, culprit } = revert;
        let cannot = |said: String| {
            Problem::new(format!("cannot undo {culprit} in {candidate}")).detail(said)
        };
        let (patch, commit) = (self.tree.join("patch"), self.tree.join("commit"));
        self.git(&["read-tree", "--reset", candidate])
            .map_err(cannot)?;
        if !self.write_patch(culprit, &patch).map_err(cannot)? {
            return Ok(Reverted::Same);
        }
        let patch = patch.display().to_string();
        let apply = ["apply", "-R", "--3way", "--cached", "--whitespace=nowarn"];
        let apply = [&["-c", "apply.ignoreWhitespace=no"], &apply[..], &[&patch]].concat();
        if let Err(said) = self.git(&apply) {
            return match conflict(&said) {
                Some(line) => Ok(Reverted::Conflict(line)),
                None => Err(cannot(said).hint("undoing a commit needs git 2.32 or newer")),
            };
        }
        let tree = self.git(&["write-tree"]).map_err(cannot)?;
        let before = self
            .git(&["rev-parse", &format!("{candidate}^{{tree}}")])
            .map_err(cannot)?;
        if tree.trim() == before.trim() {
            return Ok(Reverted::Same);
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
        Ok(Reverted::Commit(made.trim().to_owned()))
    }

    /// Writes what a commit did to files that a server may be made of, as a patch that no setting of the user
    /// changes; false where it did nothing to them.
    fn write_patch(&self, culprit: &str, patch: &Path) -> Result<bool, String> {
        let parent = format!("{culprit}^");
        let names = ["diff-tree", "-r", "-z", "--name-only", "--no-renames"];
        let names = self.git(&[&names[..], &[&parent, culprit]].concat())?;
        let is_wanted = |path: &&str| {
            !path.is_empty() && *path != CATALOG_VERSION && may_change_server(path, true)
        };
        let paths: Vec<&str> = names.split('\0').filter(is_wanted).collect();
        if paths.is_empty() {
            return Ok(false);
        }
        let output = format!("--output={}", patch.display());
        let diff = [
            "--literal-pathspecs",
            "diff-tree",
            "-r",
            "-p",
            "-U3",
            "--src-prefix=a/",
            "--dst-prefix=b/",
            "--binary",
            "--full-index",
            "--no-renames",
            "--no-ext-diff",
            "--no-textconv",
            "--no-color",
        ];
        let diff = [&diff[..], &[&output, &parent, culprit, "--"], &paths].concat();
        self.git(&diff).map(|_| true)
    }

    fn git(&self, arguments: &[&str]) -> Result<String, String> {
        let index = self.tree.join("index");
        self.repository.run(arguments, Some((&self.tree, &index)))
    }
}

/// The first line that says that a patch does not fit, without git's prefix.
fn conflict(said: &str) -> Option<String> {
    let fits_not = |line: &&str| DOES_NOT_FIT.iter().any(|words| line.contains(words));
    let line = said.lines().find(fits_not)?;
    let line = line.strip_prefix("error: ").unwrap_or(line);
    Some(line.trim_end_matches('.').to_owned())
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
        let made = || without(&directory, &revert, &world.cache).unwrap();
        let Undone::Made(place, commit) = made() else {
            panic!("{:?}", made())
        };
        assert_eq!(made(), Undone::Made(place.clone(), commit.clone()));
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
        let conflict = "Applied patch to 'src/a.c' with conflicts";
        assert_eq!(of(2), Undone::Conflict(conflict.to_owned()));
        assert!(matches!(of(1), Undone::Made(..)));
        assert_eq!(of(0), Undone::Absent, "it is not there");
    }

    #[test]
    fn what_no_server_is_made_of_is_left_and_settings_of_the_user_change_nothing() {
        let world = World::new();
        let change = |texts: [&str; 2]| {
            world.write("src/a.c", texts[0]);
            world.write("src/test/regress/a.sql", texts[1]);
            world.write("src/backend/README", texts[1]);
            world.write("src/tools/pgindent/typedefs.list", texts[1]);
            world.commit("plain");
            world.git(&["rev-parse", "HEAD"])
        };
        change(["# one\n", "one\n"]);
        let culprit = change(["# two\n", "two\n"]);
        let candidate = change(["# two\n", "three\n"]);
        let revert = Revert {
            candidate: &candidate,
            culprit: &culprit,
        };
        let made = || without(&world.path("fake-1.0"), &revert, &world.cache).unwrap();
        let Undone::Made(place, commit) = made() else {
            panic!("{:?}", made())
        };
        for setting in ["diff.noprefix", "diff.mnemonicPrefix"] {
            let dir = format!("--git-dir={}", place.display());
            world.git(&[&dir, "config", setting, "true"]);
            assert_eq!(made(), Undone::Made(place.clone(), commit.clone()));
        }
        let shown = |file: &str| {
            let place = format!("--git-dir={}", place.display());
            world.git(&[&place, "show", &format!("{commit}:{file}")])
        };
        assert_eq!(shown("src/a.c").trim(), "# one");
        assert_eq!(shown("src/backend/README").trim(), "three");
    }

    #[test]
    fn only_a_patch_that_does_not_fit_is_a_conflict() {
        let direct = "error: patch failed: src/a.c:2\nerror: src/a.c: patch does not apply";
        assert_eq!(
            conflict(direct).as_deref(),
            Some("src/a.c: patch does not apply")
        );
        let old = "error: --cached and --3way cannot be used together.";
        assert_eq!(conflict(old), None);
        assert_eq!(conflict("fatal: unable to write new index file"), None);
    }
}
