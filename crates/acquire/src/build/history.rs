//! The commits between two of a repository: what a search for a culprit goes through.

use super::git::Repository;
use super::probe::Toolbox;
use deltabench_model::problem::Problem;
use std::collections::HashSet;
use std::path::Path;

/// A commit of a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryCommit {
    /// The whole name.
    pub id: String,
    /// When it was committed: `2024-09-21`.
    pub date: String,
    /// The first line of its message.
    pub subject: String,
    /// Whether it touches a file that the server may be made of. Without one the server is that of the commit
    /// before.
    pub may_change_server: bool,
}

/// The commits of a branch from a base to a candidate, along first parents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct History {
    /// The base, or the newest commit that both have, then every later one in order; the candidate is last.
    pub commits: Vec<HistoryCommit>,
    /// If the base is on another branch: its name, and how many commits it has that the candidate lacks.
    pub base_alone: Option<(String, u64)>,
}

/// Reads the history between two commits, tags or branches of the repository at `directory`. With
/// `extensions` the server loads some, and commits of contrib may change it.
///
/// Errors: no git, no repository, no such commit; a candidate that is not newer, or has nothing in common
/// with the base.
pub fn history(
    directory: &Path,
    (base, candidate): (&str, &str),
    extensions: bool,
) -> Result<History, Problem> {
    let git = Toolbox::here().find("git").ok_or_else(no_git)?;
    let repository = Repository::open(&git, directory)?;
    let of = |name: &str| repository.commit(name);
    let (base_id, candidate_id) = (of(base)?, of(candidate)?);
    let refused = |error: String| {
        Problem::new(format!("no history from {base} to {candidate}")).detail(error)
    };
    let range = format!("{base_id}..{candidate_id}");
    let said = repository
        .ask(&[
            "log",
            "--first-parent",
            "-m",
            "--reverse",
            "--no-renames",
            "--name-only",
            "--format=%x00%H%x1f%P%x1f%cs%x1f%s",
            &range,
        ])
        .map_err(refused)?;
    let entries: Vec<Entry<'_>> = said.split('\0').filter_map(Entry::read).collect();
    let Some(first) = entries.first() else {
        return Err(
            Problem::new(format!("{candidate} has no commit that {base} lacks"))
                .detail("the candidate must be newer than the base, on its branch or another one")
                .hint(format!("write {candidate}..{base} to search the other way")),
        );
    };
    if first.parent.is_empty() {
        return Err(refused(
            "they have no commit in common, or the clone is shallow".to_owned(),
        ));
    }
    let start = repository
        .ask(&["log", "-1", "--format=%H%x1f%P%x1f%cs%x1f%s", first.parent])
        .map_err(refused)?;
    let start = Entry::read(&start)
        .ok_or_else(|| refused(format!("git does not show {}", first.parent)))?;
    let base_alone = match start.id == base_id {
        true => None,
        false => {
            let alone =
                repository.ask(&["rev-list", "--count", &format!("{candidate_id}..{base_id}")]);
            let alone = alone.map_err(refused)?;
            Some((base_id, alone.trim().parse().unwrap_or(0)))
        }
    };
    let commits = std::iter::once(&start).chain(&entries);
    Ok(History {
        commits: commits.map(|entry| entry.commit(extensions)).collect(),
        base_alone,
    })
}

/// These commits of the repository at `directory` in the order of its history: one that another one builds on
/// comes before it. Those that it does not have are left out.
///
/// Errors: no git, no repository.
pub fn commits_in_order(directory: &Path, ids: &[&str]) -> Result<Vec<String>, Problem> {
    let git = Toolbox::here().find("git").ok_or_else(no_git)?;
    let repository = Repository::open(&git, directory)?;
    let mut arguments = vec!["rev-list", "--topo-order", "--reverse", "--ignore-missing"];
    arguments.extend(ids);
    let said = repository.ask(&arguments).map_err(|error| {
        Problem::new(format!("no history in {}", directory.display())).detail(error)
    })?;
    let asked: HashSet<&str> = ids.iter().copied().collect();
    let ours = said.lines().filter(|line| asked.contains(line));
    Ok(ours.map(str::to_owned).collect())
}

fn no_git() -> Problem {
    Problem::new("git is missing")
        .detail("the history of a repository is read with it")
        .hint("install git")
}

/// A commit as git tells of it.
struct Entry<'a> {
    id: &'a str,
    parent: &'a str,
    date: &'a str,
    subject: &'a str,
    paths: Vec<&'a str>,
}

impl<'a> Entry<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let mut lines = text.lines();
        let mut fields = lines.next()?.splitn(4, '\u{1f}');
        let (id, parents) = (fields.next()?, fields.next()?);
        Some(Self {
            id,
            parent: parents.split(' ').next().unwrap_or_default(),
            date: fields.next()?,
            subject: fields.next()?,
            paths: lines.filter(|line| !line.is_empty()).collect(),
        })
    }

    fn commit(&self, extensions: bool) -> HistoryCommit {
        HistoryCommit {
            id: self.id.to_owned(),
            date: self.date.to_owned(),
            subject: self.subject.to_owned(),
            may_change_server: {
                let mut paths = self.paths.iter();
                paths.any(|path| may_change_server(path, extensions))
            },
        }
    }
}

/// Whether a file may be part of what a server is made of, of which `extensions` are a part if it loads any.
/// In doubt it is.
pub(super) fn may_change_server(path: &str, extensions: bool) -> bool {
    const ELSEWHERE: [&str; 14] = [
        "doc/",
        "src/test/",
        "src/tutorial/",
        "src/interfaces/",
        "src/pl/plperl/",
        "src/pl/plpython/",
        "src/pl/tcl/",
        "src/tools/pgindent/",
        "src/tools/ci/",
        "src/tools/pginclude/",
        "src/tools/valgrind.supp",
        "src/fe_utils/",
        ".cirrus",
        ".github/",
    ];
    // These make the cluster that a server runs on.
    const OF_SERVER: [&str; 2] = ["src/bin/initdb/", "src/bin/pg_ctl/"];
    let name = path.rsplit('/').next().unwrap_or(path);
    let (stem, ending) = name.rsplit_once('.').unwrap_or((name, ""));
    // Texts of the backend, `errcodes.txt`, make code.
    let is_text = matches!(ending, "po" | "sgml" | "md")
        || matches!(
            stem,
            "README" | "COPYRIGHT" | "HISTORY" | "typedefs" | "nls"
        )
        || name.starts_with(".git")
        || name == ".editorconfig";
    let elsewhere = ELSEWHERE.iter().any(|place| path.starts_with(place));
    let of_client =
        path.starts_with("src/bin/") && !OF_SERVER.iter().any(|own| path.starts_with(own));
    let of_extension = path.starts_with("contrib/") && !extensions;
    !(is_text || elsewhere || of_client || of_extension)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// A repository with a file for each word, and the paths that a commit writes.
    struct Scratch(tempfile::TempDir);

    impl Scratch {
        fn new() -> Self {
            let scratch = Self(tempfile::tempdir().unwrap());
            scratch.git(&["init", "-q", "-b", "master"]);
            scratch
        }

        fn git(&self, words: &[&str]) -> String {
            let output = Command::new("git")
                .arg("-C")
                .arg(self.0.path())
                .args(["-c", "user.name=x", "-c", "user.email=x@example"])
                .args(words)
                .output()
                .unwrap();
            assert!(output.status.success(), "{output:?}");
            String::from_utf8(output.stdout).unwrap().trim().to_owned()
        }

        fn commit(&self, path: &str, text: &str) -> String {
            let file = self.0.path().join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
            self.git(&["add", "-A"]);
            self.git(&["commit", "-q", "-m", &format!("{path}: {text}\n\nmore")]);
            self.git(&["rev-parse", "HEAD"])
        }
    }

    fn subjects(history: &History) -> Vec<(&str, bool)> {
        let commits = history.commits.iter();
        let told = |one: &'_ HistoryCommit| one.may_change_server;
        commits
            .map(|one| (one.subject.as_str(), told(one)))
            .collect()
    }

    #[test]
    fn commits_come_in_order_with_what_may_change_the_server() {
        let scratch = Scratch::new();
        let base = scratch.commit("src/backend/a.c", "1");
        scratch.commit("doc/src/sgml/a.sgml", "2");
        let last = scratch.commit("src/include/a.h", "3");
        scratch.git(&["tag", "newest"]);
        let found = history(scratch.0.path(), (&base[..10], "newest"), false).unwrap();
        assert_eq!(found.base_alone, None);
        assert_eq!(found.commits[0].id, base);
        assert_eq!(found.commits[2].id, last);
        assert_eq!(found.commits[2].date.len(), 10);
        assert_eq!(
            subjects(&found)[1..],
            [
                ("doc/src/sgml/a.sgml: 2", false),
                ("src/include/a.h: 3", true)
            ]
        );
    }

    #[test]
    fn commits_have_the_order_of_their_history_whatever_was_asked_first() {
        let scratch = Scratch::new();
        let first = scratch.commit("src/backend/a.c", "1");
        let middle = scratch.commit("src/backend/a.c", "2");
        let last = scratch.commit("src/backend/a.c", "3");
        let gone = "0123456789012345678901234567890123456789";
        let found = commits_in_order(scratch.0.path(), &[&last, gone, &first, &middle]);
        assert_eq!(found.unwrap(), [first, middle, last]);
        assert!(
            commits_in_order(scratch.0.path(), &[gone])
                .unwrap()
                .is_empty()
        );
        assert!(commits_in_order(Path::new("/none"), &[gone]).is_err());
    }

    #[test]
    fn a_base_of_another_branch_is_replaced_by_what_both_have() {
        let scratch = Scratch::new();
        let common = scratch.commit("src/backend/a.c", "1");
        scratch.git(&["checkout", "-q", "-b", "stable"]);
        scratch.commit("src/backend/a.c", "back-patch");
        let stable = scratch.commit("src/backend/b.c", "back-patch");
        scratch.git(&["checkout", "-q", "master"]);
        scratch.commit("src/backend/a.c", "2");
        let found = history(scratch.0.path(), ("stable", "master"), false).unwrap();
        assert_eq!(found.commits[0].id, common);
        assert_eq!(found.base_alone, Some((stable, 2)));
        assert_eq!(found.commits.len(), 2);
    }

    #[test]
    fn a_merge_is_one_commit_with_all_that_it_brings() {
        let scratch = Scratch::new();
        let base = scratch.commit("src/backend/a.c", "1");
        scratch.git(&["checkout", "-q", "-b", "side"]);
        scratch.commit("src/backend/b.c", "1");
        scratch.git(&["checkout", "-q", "master"]);
        scratch.commit("README", "1");
        scratch.git(&["merge", "-q", "--no-ff", "-m", "merge of side", "side"]);
        let found = history(scratch.0.path(), (&base, "HEAD"), false).unwrap();
        assert_eq!(
            subjects(&found)[1..],
            [("README: 1", false), ("merge of side", true)]
        );
    }

    #[test]
    fn a_candidate_that_is_older_and_one_without_anything_in_common_are_refused() {
        let scratch = Scratch::new();
        let base = scratch.commit("a", "1");
        let newer = scratch.commit("a", "2");
        let refused =
            |one: &str, other: &str| history(scratch.0.path(), (one, other), false).unwrap_err();
        assert!(refused(&newer, &base).hint.unwrap().contains(".."));
        assert!(refused(&base, &base).error.contains("has no commit"));
        scratch.git(&["checkout", "-q", "--orphan", "island"]);
        let island = scratch.commit("b", "1");
        assert!(
            refused(&base, &island)
                .detail
                .unwrap()
                .contains("in common")
        );
        assert!(
            refused("nonsense", &base)
                .error
                .contains("no commit `nonsense`")
        );
    }

    #[test]
    fn only_what_the_server_cannot_be_made_of_is_passed_over() {
        for path in [
            "doc/src/sgml/ref/a.sgml",
            "src/backend/po/de.po",
            "src/backend/access/nbtree/README",
            "src/backend/lib/README.md",
            "src/test/regress/sql/a.sql",
            "contrib/amcheck/a.c",
            "src/bin/psql/describe.c",
            "src/interfaces/libpq/fe-exec.c",
            ".git-blame-ignore-revs",
            "src/tools/pgindent/typedefs.list",
        ] {
            assert!(!may_change_server(path, false), "{path}");
        }
        for path in [
            "src/backend/a.c",
            "src/backend/utils/errcodes.txt",
            "src/include/catalog/pg_proc.dat",
            "src/common/a.c",
            "src/port/a.c",
            "src/bin/initdb/initdb.c",
            "src/pl/plpgsql/src/pl_exec.c",
            "src/timezone/data/x",
            "configure",
            "src/Makefile.global.in",
            "meson.build",
            "src/tools/gen_keywordlist.pl",
            "config/c-compiler.m4",
        ] {
            assert!(may_change_server(path, false), "{path}");
        }
        assert!(
            may_change_server("contrib/amcheck/a.c", true),
            "it may be loaded"
        );
        assert!(!may_change_server("contrib/amcheck/README", true));
    }
}
