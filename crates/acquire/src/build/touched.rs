//! The functions that the commits of a history change: where a search for a culprit looks first.

use super::git::Repository;
use super::probe::Toolbox;
use deltabench_model::problem::Problem;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

/// Functions by the file that they are in.
pub type ByFile = BTreeMap<String, BTreeSet<String>>;

/// The functions that each commit between two changes, by its whole name; along first parents, as
/// [`super::history`]. A commit without any is not in it.
///
/// Errors: no git, no repository, no such commits.
pub fn touched(
    directory: &Path,
    (base, candidate): (&str, &str),
) -> Result<HashMap<String, ByFile>, Problem> {
    let said = repository(directory)?
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
            "--src-prefix=a/",
            "--dst-prefix=b/",
            "--format=%x00%H",
            &format!("{base}..{candidate}"),
            "--",
            "*.c",
            "*.h",
        ])
        .map_err(|said| Problem::new("git does not say what the commits change").detail(said))?;
    Ok(said.split('\0').filter_map(of_commit).collect())
}

/// The files that define one of these functions, in any of the commits.
///
/// Errors: no git, no repository, no such commit.
pub fn defined_in(
    directory: &Path,
    commits: &[&str],
    functions: &BTreeSet<String>,
) -> Result<BTreeSet<String>, Problem> {
    let is_name = |name: &&String| name.chars().all(is_of_a_name);
    let names = functions.iter().filter(is_name);
    let names: Vec<&str> = names.map(String::as_str).collect();
    if names.is_empty() {
        return Ok(BTreeSet::new());
    }
    // A definition has its name at the beginning of a line, a declaration has it after the type.
    let pattern = format!("^({})\\(", names.join("|"));
    let mut arguments = vec!["grep", "--no-color", "-l", "-E", "-e", &pattern];
    arguments.extend(commits);
    arguments.extend(["--", "*.c", "*.h"]);
    // Where nothing matches git ends with a failure and says nothing.
    let said = repository(directory)?
        .ask(&arguments)
        .or_else(|said| if said.is_empty() { Ok(said) } else { Err(said) })
        .map_err(|said| Problem::new("git does not say where functions are").detail(said))?;
    let file = |line: &str| line.split_once(':').map(|(_, file)| file.to_owned());
    Ok(said.lines().filter_map(file).collect())
}

fn repository(directory: &Path) -> Result<Repository, Problem> {
    let git = Toolbox::here()
        .find("git")
        .ok_or_else(|| Problem::new("git is missing").hint("install git"))?;
    Repository::open(&git, directory)
}

/// The name of a commit and what its patch touches.
fn of_commit(text: &str) -> Option<(String, ByFile)> {
    let mut lines = text.lines();
    let id = lines.next()?.trim();
    let mut files = ByFile::new();
    let mut file = "";
    for line in lines {
        // Names are not those of a rename, so that both sides are one.
        if let Some((name, _)) = line
            .strip_prefix("diff --git a/")
            .and_then(|two| two.split_once(" b/"))
        {
            file = name;
        } else if let Some(name) = function(line) {
            files
                .entry(file.to_owned())
                .or_default()
                .insert(name.to_owned());
        }
    }
    (!id.is_empty() && !files.is_empty()).then(|| (id.to_owned(), files))
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
    let is_function = is_first && !name.is_empty() && name.chars().all(is_of_a_name);
    (is_function && !name.starts_with(|one: char| one.is_ascii_digit())).then_some(name)
}

fn is_of_a_name(one: char) -> bool {
    one.is_ascii_alphanumeric() || one == '_'
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
        let of = |id: &str| -> Vec<&str> {
            let [(file, functions)] = &found[id].iter().collect::<Vec<_>>()[..] else {
                panic!("{found:?}")
            };
            assert_eq!(*file, "src/a.c");
            functions.iter().map(String::as_str).collect()
        };
        assert_eq!(of(&inside), ["two"]);
        assert_eq!(of(&more), ["three", "two"], "it also takes the change back");
        assert!(!found.contains_key(&end));
        assert!(touched(&world.path("fake-1.0"), ("nonsense", &end)).is_err());
    }

    #[test]
    fn functions_are_in_the_files_that_define_them() {
        let world = World::new();
        world.write(
            "src/a.c",
            "static void one(void);\n\nvoid\none(void)\n{\n}\n",
        );
        world.write("src/b.c", "void\ntwo(void)\n{\n\tone();\n}\n");
        world.write("src/c.h", "extern void one(void);\n");
        world.write("src/one.txt", "one(\n");
        world.commit("plain");
        let head = world.git(&["rev-parse", "HEAD"]);
        let place = world.path("fake-1.0");
        let of = |names: &[&str]| -> Vec<String> {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            defined_in(&place, &[&head], &names)
                .unwrap()
                .into_iter()
                .collect()
        };
        assert_eq!(of(&["one"]), ["src/a.c"]);
        assert_eq!(of(&["two", "one", "[outside]"]), ["src/a.c", "src/b.c"]);
        assert!(of(&["nowhere", "on"]).is_empty());
        assert!(of(&["[outside]"]).is_empty());
        assert!(defined_in(&place, &["nonsense"], &["one".to_owned()].into()).is_err());
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
