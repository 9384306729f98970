//! The generated pages in `docs/reference`: written, or compared with what the program says today.

use anyhow::{Context, bail};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Where the pages are, from the root.
const DIRECTORY: &str = "docs/reference";

/// Pages by file name.
type Pages = BTreeMap<String, String>;

/// Writes the pages; with `check` fails instead where one differs.
pub fn generate(root: &Path, only_check: bool) -> anyhow::Result<()> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["run", "--quiet", "--package", "deltabench", "--"]);
    let wanted = pages(root, cargo)?;
    if only_check {
        return compare(root, &wanted);
    }
    let directory = root.join(DIRECTORY);
    fs::create_dir_all(&directory)
        .with_context(|| format!("cannot make {}", directory.display()))?;
    for name in stale(&wanted, &found(&directory)?) {
        let path = directory.join(&name);
        match wanted.get(&name) {
            Some(text) => fs::write(&path, text),
            None => fs::remove_file(&path),
        }
        .with_context(|| format!("cannot write {}", path.display()))?;
        println!("gen: wrote {DIRECTORY}/{name}");
    }
    Ok(())
}

/// Fails where a page is not what this binary says.
pub fn check(root: &Path, program: &Path) -> anyhow::Result<()> {
    compare(root, &pages(root, Command::new(program))?)
}

fn compare(root: &Path, wanted: &Pages) -> anyhow::Result<()> {
    let stale = stale(wanted, &found(&root.join(DIRECTORY))?);
    if !stale.is_empty() {
        bail!(
            "stale in {DIRECTORY}: {}; `cargo xtask gen` writes them",
            stale.join(", ")
        );
    }
    println!("gen: {} pages in {DIRECTORY} are up to date", wanted.len());
    Ok(())
}

/// The pages as the program makes them from its own arguments and registries.
fn pages(root: &Path, mut program: Command) -> anyhow::Result<Pages> {
    let output = program
        .arg("reference")
        .current_dir(root)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start deltabench")?;
    if !output.status.success() {
        bail!("`deltabench reference` failed");
    }
    serde_json::from_slice(&output.stdout).context("what `deltabench reference` printed")
}

/// The pages in the directory; nothing if it is not there. Other files, as the schemas, are written by hand.
fn found(directory: &Path) -> anyhow::Result<Pages> {
    let mut found = Pages::new();
    let unreadable = || format!("cannot read {}", directory.display());
    if !directory.is_dir() {
        return Ok(found);
    }
    for entry in fs::read_dir(directory).with_context(unreadable)? {
        let entry = entry.with_context(unreadable)?;
        if entry.path().extension().is_none_or(|ending| ending != "md") {
            continue;
        }
        let text = fs::read_to_string(entry.path()).with_context(unreadable)?;
        found.insert(entry.file_name().to_string_lossy().into_owned(), text);
    }
    Ok(found)
}

/// Names of pages that are missing, differ or should not be there.
fn stale(wanted: &Pages, found: &Pages) -> Vec<String> {
    let differs = wanted
        .iter()
        .filter(|(name, text)| found.get(*name) != Some(text));
    let left = found.iter().filter(|(name, _)| !wanted.contains_key(*name));
    differs.chain(left).map(|(name, _)| name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(all: &[(&str, &str)]) -> Pages {
        all.iter()
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
            .collect()
    }

    #[test]
    fn a_page_is_stale_when_it_is_missing_differs_or_is_no_longer_made() {
        let wanted = pages(&[("a.md", "x"), ("b.md", "y"), ("c.md", "z")]);
        let found = pages(&[("a.md", "x"), ("b.md", "old"), ("d.md", "left")]);
        assert_eq!(stale(&wanted, &found), ["b.md", "c.md", "d.md"]);
        assert!(stale(&wanted, &wanted).is_empty());
    }

    #[test]
    fn pages_are_read_back_from_their_directory() {
        let directory = std::env::temp_dir().join(format!("xtask-gen-{}", std::process::id()));
        assert!(found(&directory).unwrap().is_empty());
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join("a.md"), "x").unwrap();
        let read = found(&directory);
        fs::remove_dir_all(&directory).unwrap();
        assert_eq!(read.unwrap(), pages(&[("a.md", "x")]));
    }
}
