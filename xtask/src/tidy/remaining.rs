//! Lists of files that do not keep a rule yet. They may only shrink.

use super::Breach;
use anyhow::Context;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The files that are known to break a rule, and those that do.
pub struct List<'a> {
    /// The list in the repository: a path for each line.
    pub path: &'a Path,
    /// The files that break the rule, with what is to be said of each.
    pub found: BTreeMap<PathBuf, String>,
}

impl List<'_> {
    /// Breaches that are not on the list, and lines of it that are not needed any more. With `shrink` those
    /// are taken out instead.
    pub fn check(&self, root: &Path, shrink: bool) -> anyhow::Result<Vec<Breach>> {
        let file = root.join(self.path);
        let text =
            fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        if shrink {
            fs::write(&file, self.shrunk(&text))
                .with_context(|| format!("cannot write {}", file.display()))?;
        }
        let breaches = self.compare(&text).into_iter();
        Ok(breaches
            .filter(|breach| !shrink || breach.path != self.path)
            .collect())
    }

    fn compare(&self, text: &str) -> Vec<Breach> {
        let listed: BTreeSet<&Path> = text.lines().map(Path::new).collect();
        let new = self
            .found
            .iter()
            .filter(|(path, _)| !listed.contains(path.as_path()));
        let new = new.map(|(path, text)| Breach::new(path, 0, text));
        let kept = (1..)
            .zip(text.lines())
            .filter(|(_, line)| !self.found.contains_key(Path::new(line)));
        let kept = kept.map(|(number, line)| {
            let text = format!(
                "{line} keeps the rule now, or has moved: take it out (cargo xtask tidy --shrink)"
            );
            Breach::new(self.path, number, text)
        });
        new.chain(kept).collect()
    }

    fn shrunk(&self, text: &str) -> String {
        let lines = text
            .lines()
            .filter(|line| self.found.contains_key(Path::new(line)));
        lines.map(|line| format!("{line}\n")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_may_only_shrink() {
        let found = ["a.rs", "b.rs"].map(|name| (PathBuf::from(name), "breaks it".to_owned()));
        let list = List {
            path: Path::new("list.txt"),
            found: BTreeMap::from(found),
        };
        let told = |text: &str| {
            let breaches = list.compare(text).into_iter();
            breaches
                .map(|breach| (breach.path, breach.line))
                .collect::<Vec<_>>()
        };
        assert!(told("a.rs\nb.rs\n").is_empty());
        assert_eq!(told("a.rs\n"), [("b.rs".into(), 0)]);
        assert_eq!(told("a.rs\nb.rs\nc.rs\n"), [("list.txt".into(), 3)]);
        assert_eq!(list.shrunk("c.rs\na.rs\n"), "a.rs\n");
    }
}
