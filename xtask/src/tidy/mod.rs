//! The house rules that no compiler checks. See CONTRIBUTING.md for the list.

mod arrows;
mod circles;
mod citations;
mod code;
mod kinds;
mod manifest;
mod text;
mod words;

use anyhow::{Context, bail};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// Directories that hold no source of ours.
const SKIPPED: [&str; 3] = [".git", "deltabench-lab", "node_modules"];

/// One breach of a rule.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Breach {
    path: PathBuf,
    /// Line from 1; 0 is the whole file.
    line: usize,
    text: String,
}

impl Breach {
    fn new(path: &Path, line: usize, text: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line,
            text: text.into(),
        }
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path.display(), self.text),
            line => write!(f, "{}:{line}: {}", self.path.display(), self.text),
        }
    }
}

/// Checks every rule on the whole repository, prints all breaches and fails if there are any.
pub fn tidy(root: &Path) -> anyhow::Result<()> {
    let mut breaches = arrows::check(root)?;
    let files = text_files(root)?;
    let exists = |path: &Path| root.join(path).exists();
    let shelf = citations::Shelf::new(&files, &exists);
    for (path, text) in &files {
        breaches.extend(check_file(path, text));
        breaches.extend(shelf.check(path, text));
    }
    let named = kinds::find(&files).into_iter().chain(circles::find(&files));
    breaches.extend(named.map(|(path, text)| Breach::new(&path, 0, &text)));
    breaches.sort();
    for breach in &breaches {
        eprintln!("{breach}");
    }
    if !breaches.is_empty() {
        bail!(
            "{} breaches of the house rules (CONTRIBUTING.md)",
            breaches.len()
        );
    }
    println!("tidy: {} files keep the house rules", files.len());
    Ok(())
}

/// All rules that look at one file.
fn check_file(path: &Path, text: &str) -> Vec<Breach> {
    let mut breaches = text::check(path, text);
    if path.extension().is_some_and(|extension| extension == "rs") {
        breaches.extend(code::check(path, text));
    }
    if path.file_name().is_some_and(|name| name == "Cargo.toml") {
        breaches.extend(manifest::check(path, text));
    }
    breaches.extend(words::check(path, text));
    breaches
}

/// Every text file below `root`, by its path from there. Build directories and files that are not UTF-8 are
/// left out.
fn text_files(root: &Path) -> anyhow::Result<Vec<(PathBuf, String)>> {
    let mut files = Vec::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        let unreadable = || format!("cannot read {}", directory.display());
        for entry in fs::read_dir(&directory).with_context(unreadable)? {
            let entry = entry.with_context(unreadable)?;
            let (path, kind) = (entry.path(), entry.file_type().with_context(unreadable)?);
            let name = entry.file_name().to_string_lossy().into_owned();
            let built = directory == root && name.starts_with("target");
            if kind.is_dir() && !built && !SKIPPED.contains(&name.as_str()) {
                directories.push(path);
            } else if kind.is_file() {
                let bytes =
                    fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
                let relative = path.strip_prefix(root).unwrap_or(&path).to_owned();
                files.extend(String::from_utf8(bytes).ok().map(|text| (relative, text)));
            }
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_below_the_root_but_not_in_build_directories() {
        let root = std::env::temp_dir().join(format!("xtask-tidy-{}", std::process::id()));
        for name in [
            "target/a.rs",
            "target-x/a.rs",
            ".git/a",
            "src/target/b.rs",
            ".ci/run",
            "src/c.rs",
        ] {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "text\n").unwrap();
        }
        fs::write(root.join("src/image"), [0xff, 0xfe, 0]).unwrap();
        let names: Vec<PathBuf> = text_files(&root)
            .unwrap()
            .into_iter()
            .map(|(path, _)| path)
            .collect();
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(
            names,
            [".ci/run", "src/c.rs", "src/target/b.rs"].map(PathBuf::from)
        );
    }

    #[test]
    fn each_kind_of_file_meets_its_rules() {
        let all = |path: &str, text: &str| check_file(Path::new(path), text).len();
        assert_eq!(all("src/a.rs", "fn broken( {\n"), 1);
        assert_eq!(all("crates/x/Cargo.toml", "[package]\nname = \"x\"\n"), 1);
        assert_eq!(all("docs/a.md", "no title\n"), 1);
        assert_eq!(all("notes.txt", "no title\n"), 0);
    }

    #[test]
    fn a_breach_prints_as_editors_expect_it() {
        assert_eq!(
            Breach::new(Path::new("a/b.rs"), 3, "too long").to_string(),
            "a/b.rs:3: too long"
        );
        assert_eq!(
            Breach::new(Path::new("a/b.rs"), 0, "too long").to_string(),
            "a/b.rs: too long"
        );
    }
}
