//! A process and all its descendants.

use crate::error::ProcError;
use crate::process::{PROC, Process, has_ended, process_ids, thread_dir, threads};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// How often the children of a process are listed until two lists agree: the kernel may leave out children of
/// a list while others of it end (proc_pid_children(5)).
const LISTINGS: usize = 5;

/// A process and all its descendants, the process itself first.
///
/// Errors: `Gone` if the process does not exist or only waits to be reaped; `File` if `/proc` cannot be read.
/// Source: `/proc/PID/task/TID/children` where the kernel has it, else the parent ids in `/proc/*/stat`.
pub fn process_tree(root: u32) -> Result<Vec<u32>, ProcError> {
    if has_ended(root) {
        return Err(ProcError::Gone { pid: root });
    }
    let mut parents = None;
    let mut tree = vec![root];
    let mut seen = BTreeSet::from([root]);
    let mut next = 0;
    while let Some(&pid) = tree.get(next) {
        next += 1;
        let children = match settled_children(pid) {
            Ok(Some(children)) => children,
            Ok(None) => {
                let table = match parents.take() {
                    Some(table) => table,
                    None => children_by_parent(Path::new(PROC))?,
                };
                let children = table.get(&pid).cloned().unwrap_or_default();
                parents = Some(table);
                children
            }
            Err(ProcError::Gone { .. }) if pid != root => continue,
            Err(error) => return Err(error),
        };
        tree.extend(children.into_iter().filter(|child| seen.insert(*child)));
    }
    Ok(tree)
}

/// `None` where the kernel keeps no `children` files.
fn settled_children(pid: u32) -> Result<Option<BTreeSet<u32>>, ProcError> {
    let Some(mut last) = listed_children(pid)? else {
        return Ok(None);
    };
    for _ in 1..LISTINGS {
        let Some(again) = listed_children(pid)? else {
            return Ok(None);
        };
        if again == last {
            break;
        }
        last.extend(again);
    }
    Ok(Some(last))
}

fn listed_children(pid: u32) -> Result<Option<BTreeSet<u32>>, ProcError> {
    let mut children = BTreeSet::new();
    for tid in threads(pid)? {
        let dir = thread_dir(pid, tid);
        match fs::read_to_string(dir.join("children")) {
            Ok(list) => children.extend(
                list.split_ascii_whitespace()
                    .filter_map(|id| id.parse::<u32>().ok()),
            ),
            Err(_) if !dir.exists() => {}
            Err(_) => return Ok(None),
        }
    }
    Ok(Some(children))
}

fn children_by_parent(proc: &Path) -> Result<BTreeMap<u32, BTreeSet<u32>>, ProcError> {
    let ids = process_ids(proc).map_err(|source| ProcError::file("read", proc, source))?;
    let mut table: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for pid in ids {
        // A process that ended since the directory was listed has no parent worth knowing.
        if let Some(stat) = Process::below(proc, pid).stat() {
            table.entry(stat.parent).or_default().insert(pid);
        }
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};

    /// A shell with two sleeping children. Ended and reaped on drop.
    struct Family(Child);

    impl Family {
        fn start() -> Self {
            let script = "sleep 60 & sleep 60 & echo ready; wait";
            let mut shell = Command::new("sh")
                .args(["-c", script])
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut line = [0_u8; 6];
            std::io::Read::read_exact(shell.stdout.as_mut().unwrap(), &mut line).unwrap();
            Self(shell)
        }
    }

    impl Drop for Family {
        fn drop(&mut self) {
            for pid in process_tree(self.0.id()).unwrap_or_default() {
                // SAFETY: plain system call; the ids are children of a shell that this test started.
                unsafe { libc::kill(libc::pid_t::try_from(pid).unwrap(), libc::SIGKILL) };
            }
            self.0.wait().unwrap();
        }
    }

    #[test]
    fn a_tree_is_the_process_and_all_its_children() {
        let family = Family::start();
        let tree = process_tree(family.0.id()).unwrap();
        assert_eq!(tree.first(), Some(&family.0.id()));
        assert_eq!(tree.len(), 3);
    }

    #[test]
    fn both_ways_to_find_children_agree() {
        let family = Family::start();
        let pid = family.0.id();
        let scanned = children_by_parent(Path::new(PROC))
            .unwrap()
            .remove(&pid)
            .unwrap();
        assert_eq!(scanned.len(), 2);
        if let Some(listed) = settled_children(pid).unwrap() {
            assert_eq!(listed, scanned);
        }
    }

    #[test]
    fn a_process_that_ended_is_gone_even_before_it_is_reaped() {
        let mut child = Command::new("true").stdout(Stdio::piped()).spawn().unwrap();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while process_tree(child.id()).is_ok() {
            assert!(
                std::time::Instant::now() < deadline,
                "a zombie counts as alive"
            );
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        child.wait().unwrap();
        assert!(
            matches!(process_tree(child.id()), Err(ProcError::Gone { pid }) if pid == child.id())
        );
    }
}
