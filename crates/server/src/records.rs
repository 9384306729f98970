//! Files of a workspace that list what the kernel has set up for its run.
//!
//! Nothing else says where that is, or how much: a workspace stays until all of it is given back.

use std::path::{Path, PathBuf};

/// Lists control groups, one directory a line.
pub(crate) const CGROUPS_FILE: &str = "cgroups";
/// Says how many huge pages were added; removed when they are given back.
pub(crate) const HUGE_PAGES_FILE: &str = "huge_pages.json";
/// Start of the names of groups that deltabench makes.
const PREFIX: &str = "deltabench-";

/// The control groups that a workspace lists and that are still there.
pub(crate) fn groups_left(workspace: &Path) -> Vec<PathBuf> {
    let listed = std::fs::read_to_string(workspace.join(CGROUPS_FILE)).unwrap_or_default();
    let groups = listed.lines().map(PathBuf::from);
    groups.filter(|path| is_ours(path)).collect()
}

/// A group that is there and has a name of ours. An ordinary directory with the file in it cannot be removed
/// as a group is.
pub(crate) fn is_ours(path: &Path) -> bool {
    let named = path
        .file_name()
        .and_then(|name| name.to_str())
        .is_some_and(|name| name.starts_with(PREFIX));
    named && path.is_absolute() && path.join("cgroup.procs").is_file()
}

/// What a workspace lists that has not been given back, in words; nothing if all of it has.
pub(crate) fn what_is_left(workspace: &Path) -> Option<&'static str> {
    let groups = !groups_left(workspace).is_empty();
    let pages = workspace.join(HUGE_PAGES_FILE).exists();
    match (groups, pages) {
        (true, true) => Some("control groups and huge pages"),
        (true, false) => Some("control groups"),
        (false, true) => Some("huge pages"),
        (false, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_what_is_listed_and_there() {
        let scratch = tempfile::tempdir().unwrap();
        let group = scratch.path().join("deltabench-run-c0");
        let listed = format!("{}\n/no/such/deltabench-run-c1", group.display());
        std::fs::write(scratch.path().join(CGROUPS_FILE), listed).unwrap();
        let left = || what_is_left(scratch.path());
        assert_eq!(left(), None);
        std::fs::create_dir(&group).unwrap();
        std::fs::write(group.join("cgroup.procs"), "").unwrap();
        assert_eq!(left(), Some("control groups"));
        std::fs::write(scratch.path().join(HUGE_PAGES_FILE), "{}").unwrap();
        assert_eq!(left(), Some("control groups and huge pages"));
        std::fs::remove_dir_all(&group).unwrap();
        assert_eq!(left(), Some("huge pages"));
    }
}
