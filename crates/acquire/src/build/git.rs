//! Commits of a repository: read without writing to it, laid out in trees of ours.

use super::archive::{Contents, PARSER, VERSION_FILES};
use crate::command;
use deltabench_model::problem::{Problem, nearest};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A commit of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Commit {
    repository: Repository,
    /// The whole name.
    pub id: String,
    pub contents: Contents,
}

/// A repository, read only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Repository {
    git: PathBuf,
    git_dir: PathBuf,
    /// As the user calls it: the directory's name.
    name: String,
}

impl Commit {
    /// Finds the commit that `reference` means now.
    ///
    /// Errors: no repository, no such commit, no source tree of PostgreSQL in it.
    pub fn find(git: &Path, directory: &Path, reference: &str) -> Result<Self, Problem> {
        let repository = Repository::open(git, directory)?;
        let id = repository.commit(reference)?;
        let show = |path: &str| {
            repository
                .ask(&["cat-file", "blob", &format!("{id}:{path}")])
                .ok()
        };
        let [configure, meson] = VERSION_FILES.map(show);
        let has_parser = show(PARSER).is_some();
        let contents =
            Contents::read(configure.as_deref(), meson.as_deref(), has_parser).map_err(|why| {
                if repository.is_partial() {
                    return repository.lacking(reference);
                }
                Problem::new(format!(
                    "{reference} of {} is not a source of PostgreSQL",
                    directory.display()
                ))
                .detail(why)
            })?;
        Ok(Self {
            repository,
            id,
            contents,
        })
    }

    /// `NAME@abc1234def`.
    pub fn label(&self) -> String {
        let short = self.id.get(..10).unwrap_or(&self.id);
        format!("{}@{short}", self.repository.name)
    }

    /// What names the repository among others on this machine: the user's, for one of ours beside it.
    pub fn repository(&self) -> PathBuf {
        let place = self.repository.git_dir.join(Repository::STANDS_FOR);
        match std::fs::read_to_string(place) {
            Ok(text) => PathBuf::from(text.trim_end()),
            Err(_) => self.repository.git_dir.clone(),
        }
    }

    /// Makes `tree` hold this commit. Files that do not differ from what `index` says is there keep their
    /// times.
    pub fn lay_out(&self, tree: &Path, index: &Path) -> Result<(), Problem> {
        self.repository
            .run(
                &["read-tree", "--reset", "-u", &self.id],
                Some((tree, index)),
            )
            .map(drop)
            .map_err(|said| {
                if self.repository.is_partial() {
                    return self.repository.lacking(&self.id).detail(said);
                }
                Problem::new(format!(
                    "cannot check out {} in {}",
                    self.label(),
                    tree.display()
                ))
                .detail(said)
            })
    }

    /// Paths that differ between this commit and `other`; `None` when they cannot be compared.
    pub fn changed_since(&self, other: &str) -> Option<Vec<String>> {
        let said = self
            .repository
            .ask(&[
                "diff-tree",
                "-r",
                "--name-only",
                "--no-renames",
                other,
                &self.id,
            ])
            .ok()?;
        Some(said.lines().map(str::to_owned).collect())
    }
}

impl Repository {
    /// The file in which a repository of ours says whose commits it has.
    pub const STANDS_FOR: &str = "deltabench-stands-for";

    /// Its directory with the objects.
    pub fn place(&self) -> &Path {
        &self.git_dir
    }

    /// As the user calls it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What git says to these arguments where no repository is meant.
    pub fn ask_elsewhere(&self, arguments: &[&str]) -> Result<String, String> {
        let nowhere = Self {
            git_dir: PathBuf::new(),
            ..self.clone()
        };
        nowhere.ask(arguments)
    }

    /// The repository at a directory.
    pub fn open(git: &Path, directory: &Path) -> Result<Self, Problem> {
        let none = |why: String| {
            Problem::new(format!("no git repository at {}", directory.display()))
                .detail(why)
                .hint("write git:DIR@REF+VARIANT with the directory of a clone of PostgreSQL's repository")
        };
        let real = directory
            .canonicalize()
            .map_err(|error| none(error.to_string()))?;
        let probe = Self {
            git: git.to_owned(),
            git_dir: PathBuf::new(),
            name: String::new(),
        };
        let at = real.to_string_lossy().into_owned();
        let git_dir = probe
            .ask(&["-C", &at, "rev-parse", "--absolute-git-dir"])
            .map_err(&none)?;
        let name = real.file_name().unwrap_or_default().to_string_lossy();
        let name = name.strip_suffix(".git").unwrap_or(&name);
        // A bare `.git` is called as the directory it is in.
        let above = real.parent().and_then(Path::file_name).unwrap_or_default();
        let name = match name {
            "" => above.to_string_lossy().into_owned(),
            name => name.to_owned(),
        };
        Ok(Self {
            git_dir: PathBuf::from(git_dir.trim_end()),
            name,
            ..probe
        })
    }

    /// The whole name of the commit that `reference` means now.
    pub fn commit(&self, reference: &str) -> Result<String, Problem> {
        let wanted = format!("{reference}^{{commit}}");
        if let Ok(id) = self.ask(&[
            "rev-parse",
            "--verify",
            "--quiet",
            "--end-of-options",
            &wanted,
        ]) {
            return Ok(id.trim().to_owned());
        }
        let problem = Problem::new(format!(
            "no commit `{reference}` in {}",
            self.git_dir.display()
        ));
        let named = self
            .ask(&["for-each-ref", "--format=%(refname:short)"])
            .unwrap_or_default();
        Err(match nearest(reference, named.lines()) {
            Some(near) => problem.hint(format!("did you mean {near}?")),
            None => problem.hint(
                "name a tag, branch or commit of this clone; `git fetch --tags` fetches new ones",
            ),
        })
    }

    /// Whether it was cloned with a filter, so that it may lack files until git fetches them.
    fn is_partial(&self) -> bool {
        self.ask(&[
            "config",
            "--get-regexp",
            r"^remote\..*\.partialclonefilter$",
        ])
        .is_ok()
    }

    fn lacking(&self, reference: &str) -> Problem {
        let place = self.git_dir.display();
        Problem::new(format!("{place} does not contain all files of {reference}"))
            .detail(
                "it was cloned with --filter, and deltabench fetches nothing into your repository",
            )
            .hint("use a full clone: `git clone` without --filter")
    }

    /// What git says to these arguments.
    pub fn ask(&self, arguments: &[&str]) -> Result<String, String> {
        self.run(arguments, None)
    }

    /// Runs git on the repository; `tree` is a work tree of ours and its index.
    pub fn run(&self, arguments: &[&str], tree: Option<(&Path, &Path)>) -> Result<String, String> {
        let mut command = Command::new(&self.git);
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_git_s(name)) {
            command.env_remove(name);
        }
        // The user named this repository, and its build scripts are run anyway: whose it is says nothing. Its
        // hooks are not for trees of ours.
        command.args(["-c", "safe.directory=*", "-c", "core.hooksPath=/dev/null"]);
        command.args([
            "-c",
            "core.fsmonitor=false",
            "-c",
            "advice.detachedHead=false",
        ]);
        // A tree of ours is whole and as it was committed, whatever the user's checkout is; a split index
        // would put its larger part into the user's directory.
        for setting in ["sparseCheckout", "splitIndex", "autocrlf"] {
            command.arg("-c").arg(format!("core.{setting}=false"));
        }
        // Nor does a clone that lacks objects get more by itself; older gits know only the last of these.
        command
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_ALLOW_PROTOCOL", "none");
        command.env("GIT_OPTIONAL_LOCKS", "0").env("LC_ALL", "C");
        if !self.git_dir.as_os_str().is_empty() {
            command.env("GIT_DIR", &self.git_dir);
        }
        if let Some((tree, index)) = tree {
            command
                .current_dir(tree)
                .env("GIT_WORK_TREE", tree)
                .env("GIT_INDEX_FILE", index);
        }
        let output = command::output(command.args(arguments)).map_err(|error| error.to_string())?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
    }
}

/// Variables that point git elsewhere, as they are set inside its hooks.
fn is_git_s(name: &OsString) -> bool {
    name.to_str().is_some_and(|name| {
        name.starts_with("GIT_") && !name.starts_with("GIT_CONFIG") && name != "GIT_SSL_CAINFO"
    })
}
