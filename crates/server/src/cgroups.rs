//! Control groups that a run has made for its servers, noted so that a sweep finds them after a kill.

use crate::records::{CGROUPS_FILE, groups_left, is_ours};
use crate::tree;
use crate::workspace::Workspace;
use deltabench_model::problem::Problem;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a group may still be busy.
const EMPTY_LIMIT: Duration = Duration::from_secs(2);

impl Workspace {
    /// Notes the control groups that are about to be made for servers of this run. To be called once, with
    /// all of them, before the first is made.
    ///
    /// Errors: the note cannot be written.
    pub fn note_cgroups(&self, directories: &[PathBuf]) -> Result<(), Problem> {
        let lines: Vec<String> = directories
            .iter()
            .map(|directory| directory.display().to_string())
            .collect();
        tree::write_file(
            &self.inner.directory.join(CGROUPS_FILE),
            &lines.join("\n"),
            None,
        )
    }
}

/// Removes the control groups that a killed deltabench had made according to its workspace; what was done,
/// and what could not be, in words.
pub(crate) fn remove_stale(directory: &Path) -> Vec<String> {
    let mut said = Vec::new();
    let mut removed = 0;
    for group in groups_left(directory) {
        // What meters of CPU had made below it.
        for inner in std::fs::read_dir(&group).into_iter().flatten().flatten() {
            if is_ours(&inner.path()) {
                // If it stays, so does the group, and that is told.
                let _ = std::fs::remove_dir(inner.path());
            }
        }
        match removed_in_time(&group) {
            Ok(()) => removed += 1,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => said.push(format!("could not remove {}: {error}", group.display())),
        }
    }
    if removed > 0 {
        said.push(format!("removed {removed} control groups"));
    }
    said
}

/// Removes a group; one whose last process is on its way out is busy for a moment.
fn removed_in_time(group: &Path) -> std::io::Result<()> {
    let deadline = Instant::now() + EMPTY_LIMIT;
    loop {
        match std::fs::remove_dir(group) {
            Err(error) if error.kind() == ErrorKind::ResourceBusy && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(5));
            }
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_groups_that_are_listed_and_named_like_ours_are_gone_for() {
        let scratch = tempfile::tempdir().unwrap();
        let groups = ["deltabench-run-c0", "system.slice", "deltabench-empty"];
        for group in groups {
            std::fs::create_dir(scratch.path().join(group)).unwrap();
        }
        for group in &groups[..2] {
            std::fs::write(scratch.path().join(group).join("cgroup.procs"), "").unwrap();
        }
        let lines = groups.map(|group| scratch.path().join(group).display().to_string());
        std::fs::write(scratch.path().join(CGROUPS_FILE), lines.join("\n")).unwrap();
        let said = remove_stale(scratch.path()).join("\n");
        // Ordinary directories all: one is tried, and stays because it has a file in it.
        assert!(said.contains("could not remove") && said.contains("deltabench-run-c0"));
        assert!(
            !said.contains("system.slice") && !said.contains("removed"),
            "{said}"
        );
        assert!(
            groups
                .iter()
                .all(|group| scratch.path().join(group).exists())
        );
        assert!(remove_stale(Path::new("/no/such/workspace")).is_empty());
    }
}
