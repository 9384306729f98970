//! What a host says of itself before anything is measured on it: `deltabench fleet check`.

use crate::host_lock;
use crate::ship::short;
use crate::tree;
use crate::whole_file::{failed, read_json, write, write_json};
use deltabench_model::problem::Problem;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Milliseconds by which clocks may differ: signs of life and times of runs are read on other hosts.
const CLOCKS_MS: i64 = 5_000;

/// What a host says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Look {
    /// The engine's name of it.
    pub node: String,
    /// The same on two nodes that are one machine.
    pub boot_id: Option<String>,
    /// SHA-256 of the deltabench that looked, lower-case hex.
    pub binary_sha256: String,
    /// How far this clock is ahead of that of the shared directory, in milliseconds.
    pub ahead_ms: i64,
    /// Why nothing can be measured there, each in a few words.
    pub unfit: Vec<String>,
    /// What makes measurements worse there, each in a few words.
    pub warnings: Vec<String>,
}

/// A node, and what it said or why it did not.
pub type Answer = (String, Result<Look, String>);

/// A host in the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub node: String,
    /// Why nothing can be measured there; empty on a host that is fit.
    pub unfit: Vec<String>,
    pub warnings: Vec<String>,
}

impl Look {
    /// Puts it where [`Look::read`] finds it: a directory that all hosts see.
    ///
    /// Errors: one that cannot be written.
    pub fn write(&self, directory: &Path) -> Result<(), Problem> {
        write_json(&file(directory, &self.node), self)
    }

    /// What a host has said so far.
    pub fn read(directory: &Path, node: &str) -> Option<Self> {
        read_json(&file(directory, node))
    }
}

fn file(directory: &Path, node: &str) -> PathBuf {
    directory.join(format!("{}.json", node.replace('/', "-")))
}

/// How far our clock is ahead of that of a directory, in milliseconds, by the time of a file that is written
/// now. The file stays until it is written again.
///
/// Errors: a directory that cannot be written.
pub fn ahead_ms(
    directory: &Path,
    name: &str,
    now_unix_ms: &dyn Fn() -> i64,
) -> Result<i64, Problem> {
    let path = directory.join(format!("{name}.clock"));
    let before = now_unix_ms();
    write(&path, b"")?;
    let data = std::fs::metadata(&path).and_then(|data| data.modified());
    let modified = data.map_err(|error| failed("read", &path, &error))?;
    let since = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
    let written = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
    // It was written between both: whatever that took is no difference of clocks.
    let after = now_unix_ms();
    Ok(if written < before {
        before - written
    } else {
        after.min(written) - written
    })
}

/// Shared trees of servers whose content is not what their names say, as this host sees them.
///
/// Errors: a tree that cannot be read.
pub fn spoiled_servers(shared: &Path) -> Result<Vec<String>, Problem> {
    let mut spoiled = Vec::new();
    for entry in std::fs::read_dir(shared.join("servers"))
        .into_iter()
        .flatten()
        .flatten()
    {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.contains('.') && short(&tree::hash(&entry.path())?) != name {
            spoiled.push(name);
        }
    }
    spoiled.sort();
    Ok(spoiled)
}

/// Who holds the lock of this host, in words; `None` if nobody does. The file is not made.
///
/// Errors: something else is in its place.
pub fn who_measures() -> Result<Option<String>, Problem> {
    let path = host_lock::path();
    if std::fs::symlink_metadata(&path).is_err() {
        return Ok(None);
    }
    Ok(match host_lock::beside_others(&path)? {
        Some(Err(Some(holder))) => Some(holder.to_string()),
        Some(Err(None)) => Some("another measurement".to_owned()),
        Some(Ok(_)) | None => None,
    })
}

/// The table. `own` is what the machine says that asked; hosts without an answer come with the reason.
pub fn rows(own: (&str, i64), answers: &[Answer]) -> Vec<Row> {
    answers
        .iter()
        .map(|(node, answer)| match answer {
            Err(why) => Row {
                node: node.clone(),
                unfit: vec![format!("no answer: {why}")],
                warnings: Vec::new(),
            },
            Ok(look) => row(own, look, answers),
        })
        .collect()
}

fn row((program, ahead_ms): (&str, i64), look: &Look, all: &[Answer]) -> Row {
    let mut unfit = look.unfit.clone();
    if look.binary_sha256 != program {
        unfit.push("it runs another deltabench than was shipped".to_owned());
    }
    let clocks = look.ahead_ms.saturating_sub(ahead_ms);
    if clocks.saturating_abs() > CLOCKS_MS {
        unfit.push(format!(
            "its clock is {} s {}",
            clocks.saturating_abs() / 1000,
            match clocks < 0 {
                true => "slow",
                false => "fast",
            }
        ));
    }
    let mut warnings = look.warnings.clone();
    let same = all.iter().filter_map(|(_, answer)| answer.as_ref().ok());
    let same: Vec<&str> = same
        .filter(|other| other.node != look.node && other.boot_id == look.boot_id)
        .filter(|_| look.boot_id.is_some())
        .map(|other| other.node.as_str())
        .collect();
    if !same.is_empty() {
        warnings.push(format!(
            "it is one machine with {}: their lanes take turns",
            same.join(", ")
        ));
    }
    Row {
        node: look.node.clone(),
        unfit,
        warnings,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(node: &str, boot: &str) -> Look {
        Look {
            node: node.to_owned(),
            boot_id: Some(boot.to_owned()),
            binary_sha256: "abc".to_owned(),
            ahead_ms: 0,
            unfit: Vec::new(),
            warnings: Vec::new(),
        }
    }

    #[test]
    fn each_host_has_a_row_and_what_is_wrong_with_it() {
        let place = tempfile::tempdir().unwrap();
        let mut slow = look("n2", "2");
        slow.ahead_ms = -7_200;
        let mut other = look("n3", "3");
        other.binary_sha256 = "abd".to_owned();
        slow.write(place.path()).unwrap();
        assert_eq!(Look::read(place.path(), "n2"), Some(slow.clone()));
        assert_eq!(Look::read(place.path(), "n1"), None);
        let mut answers: Vec<Answer> = [look("n1", "1"), slow, other, look("n4", "1")]
            .into_iter()
            .map(|look| (look.node.clone(), Ok(look)))
            .collect();
        answers.push(("n5".to_owned(), Err("it waits".to_owned())));
        let rows = rows(("abc", 100), &answers);
        let unfit: Vec<String> = rows.iter().map(|row| row.unfit.join("; ")).collect();
        let expected = [
            "",
            "its clock is 7 s slow",
            "it runs another deltabench than was shipped",
            "",
            "no answer: it waits",
        ];
        assert_eq!(unfit, expected);
        assert_eq!(
            rows[3].warnings,
            ["it is one machine with n1: their lanes take turns"]
        );
        assert!(rows[1].warnings.is_empty());
    }

    #[test]
    fn a_clock_is_compared_with_that_of_the_directory() {
        let place = tempfile::tempdir().unwrap();
        let now = || i64::try_from(UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap();
        assert!(ahead_ms(place.path(), "n1", &now).unwrap().abs() < 1_000);
        let fast = ahead_ms(place.path(), "n1", &|| now() + 60_000).unwrap();
        assert!((59_000..=60_500).contains(&fast), "{fast}");
        let slow = ahead_ms(place.path(), "n1", &|| now() - 60_000).unwrap();
        assert!((-60_500..=-59_000).contains(&slow), "{slow}");
    }

    #[test]
    fn a_shared_server_that_was_changed_is_named() {
        let place = tempfile::tempdir().unwrap();
        let tree = place.path().join("servers/tree");
        std::fs::create_dir_all(&tree).unwrap();
        std::fs::write(tree.join("postgres"), "program").unwrap();
        let name = short(&tree::hash(&tree).unwrap()).to_owned();
        let kept = tree.with_file_name(&name);
        std::fs::rename(&tree, &kept).unwrap();
        assert!(spoiled_servers(place.path()).unwrap().is_empty());
        std::fs::write(kept.join("postgres"), "another").unwrap();
        assert_eq!(spoiled_servers(place.path()).unwrap(), [name]);
    }
}
