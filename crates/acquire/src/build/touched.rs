//! The functions that the commits of a history change: where a search for a culprit looks first.

use super::git::Repository;
use super::probe::Toolbox;
use deltabench_model::problem::Problem;
use std::collections::{BTreeSet, HashMap};
use std::path::Path;

/// The functions that each commit between two changes, by its whole name; along first parents, as
/// [`super::history`]. A commit without any is not in it.
///
/// Errors: no git, no repository, no such commits.
pub fn touched(
    directory: &Path,
    (base, candidate): (&str, &str),
) -> Result<HashMap<String, BTreeSet<String>>, Problem> {
    let git = Toolbox::here()
        .find("git")
        .ok_or_else(|| Problem::new("git is missing").hint("install git"))?;
    let repository = Repository::open(&git, directory)?;
    let said = repository
        .ask(&[
            "log",
            "--first-parent",
            "-m",
            "--patch",
            "--unified=0",
            "--no-renames",
            "--no-ext-diff",
            "--no-textconv",
            "--no-color",
            "--format=%x00%H",
            &format!("{base}..{candidate}"),
            "--",
            "*.c",
            "*.h",
        ])
        .map_err(|said| Problem::new("git does not say what the commits change").detail(said))?;
    Ok(said.split('\0').filter_map(of_commit).collect())
}

/// The name of a commit and what its patch touches.
fn of_commit(text: &str) -> Option<(String, BTreeSet<String>)> {
    let mut lines = text.lines();
    let id = lines.next()?.trim();
    let functions: BTreeSet<String> = lines.filter_map(function).map(str::to_owned).collect();
    (!id.is_empty() && !functions.is_empty()).then(|| (id.to_owned(), functions))
}

/// The function that a line of a patch is about: that above a hunk, or one that is added, changed or removed
/// as a whole. Its name begins a line, as it does all over PostgreSQL.
fn function(line: &str) -> Option<&str> {
    let text = match line.strip_prefix("@@ ") {
        Some(hunk) => hunk.split_once("@@ ")?.1,
        None => line.strip_prefix(['+', '-'])?,
    };
    let (name, _) = text.split_once('(')?;
    // `static int name(` is one line in some files.
    let name = name.rsplit([' ', '*', '\t']).next()?;
    let is_first = text.starts_with(|one: char| one.is_ascii_alphabetic() || one == '_');
    let is_name = |one: char| one.is_ascii_alphanumeric() || one == '_';
    let is_function = is_first && !name.is_empty() && name.chars().all(is_name);
    (is_function && !name.starts_with(|one: char| one.is_ascii_digit())).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::tests::world::World;

    #[test]
    fn a_commit_touches_the_functions_that_its_hunks_are_in_or_add() {
        let world = World::new();
        let old = "int\none(void)\n{\n\treturn 1;\n}\n\nstatic int\ntwo(int a,\n\tint b)\n{\n\treturn a;\n\
                   }\n";
        let commit = |text: &str| {
            world.write("src/a.c", text);
            world.commit("plain");
            world.git(&["rev-parse", "HEAD"])
        };
        let base = commit(old);
        let inside = commit(&old.replace("return a", "return a + b"));
        let more = commit(&format!("{old}\nvoid\nthree(void)\n{{\n}}\n"));
        world.write("README", "two(");
        world.commit("plain");
        let end = world.git(&["rev-parse", "HEAD"]);
        let found = touched(&world.path("fake-1.0"), (&base, &end)).unwrap();
        let of = |id: &str| -> Vec<&str> { found[id].iter().map(String::as_str).collect() };
        assert_eq!(of(&inside), ["two"]);
        assert_eq!(of(&more), ["three", "two"], "it also takes the change back");
        assert!(!found.contains_key(&end));
        assert!(touched(&world.path("fake-1.0"), ("nonsense", &end)).is_err());
    }

    #[test]
    fn only_what_begins_a_line_is_a_function() {
        assert_eq!(
            function("@@ -1,2 +3 @@ LockAcquireExtended(const LOCKTAG *locktag,"),
            Some("LockAcquireExtended")
        );
        assert_eq!(
            function("@@ -1 +1 @@ static inline bool name(int a)"),
            Some("name")
        );
        assert_eq!(function("+Datum *array(int a)"), Some("array"));
        for line in [
            "@@ -1 +1 @@",
            "@@ -1 +1 @@ typedef struct PROC",
            "+\tcall(a);",
            "+#define FOO(a)",
            "--- a/src/x.c (new)",
            "+ * word (see there)",
            "context(a)",
        ] {
            assert_eq!(function(line), None, "{line}");
        }
    }
}
