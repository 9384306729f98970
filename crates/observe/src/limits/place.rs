//! Where limited groups can be made: the hierarchy of a controller, and a group in it that is ours to divide.

use deltabench_model::problem::Problem;
use deltabench_proc::cgroup::{CgroupKind, cgroup_dirs, controllers, members, mount_options};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// How a host gives us a group to divide.
pub(super) const SCOPE_HINT: &str = "run deltabench as root, or in its own group: systemd-run --user \
    --scope -p Delegate=yes deltabench ..., or add --limits-optional to run without the missing \
    limits";

/// Start of the names of all groups made here.
const PREFIX: &str = "deltabench-";

/// The group that we move into ourselves. Letters of a run's name never make this one: those have digits.
const OWN_LEAF: &str = "deltabench-self";

/// A controller that limits are set with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Controller {
    /// Memory with its page cache.
    Memory,
    /// Block devices.
    Io,
}

impl Controller {
    /// Its name in a version of the interface.
    fn name(self, kind: CgroupKind) -> &'static str {
        match (self, kind) {
            (Self::Memory, _) => "memory",
            (Self::Io, CgroupKind::V1) => "blkio",
            (Self::Io, CgroupKind::V2) => "io",
        }
    }
}

/// A group whose children can be limited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) kind: CgroupKind,
    pub(super) parent: PathBuf,
    /// Whether huge pages count as memory.
    pub(super) counts_huge_pages: bool,
}

impl Place {
    /// The directory of a server's group.
    pub(super) fn group(&self, name: &str) -> PathBuf {
        let keep = |c: char| {
            if c.is_ascii_alphanumeric() || "-_.".contains(c) {
                c
            } else {
                '_'
            }
        };
        let name: String = name.chars().map(keep).collect();
        self.parent.join(format!("{PREFIX}{name}"))
    }
}

/// A place for each controller: version 1 where it is mounted, else version 2, where all share one.
pub(super) fn find(
    root: &Path,
    wanted: &[Controller],
) -> Result<Vec<(Controller, Place)>, Problem> {
    let mut places = Vec::new();
    let mut unified = Vec::new();
    for &controller in wanted {
        let dirs = cgroup_dirs(root, CgroupKind::V1, controller.name(CgroupKind::V1));
        match dirs.into_iter().next() {
            Some(parent) => places.push((
                controller,
                Place {
                    kind: CgroupKind::V1,
                    parent,
                    counts_huge_pages: false,
                },
            )),
            None => unified.push(controller),
        }
    }
    if !unified.is_empty() {
        let place = in_unified(root, &unified)?;
        places.extend(unified.iter().map(|other| (*other, place.clone())));
    }
    Ok(places)
}

fn in_unified(root: &Path, wanted: &[Controller]) -> Result<Place, Problem> {
    let mut dirs = cgroup_dirs(root, CgroupKind::V2, "");
    // Once divided we sit in a leaf of our own; the group to divide is the one above.
    let is_leaf = |dir: &PathBuf| dir.file_name().is_some_and(|name| name == OWN_LEAF);
    let divided = dirs.len() > 1 && dirs.first().is_some_and(is_leaf);
    if divided {
        dirs.remove(0);
    }
    let Some(own) = dirs.first() else {
        return Err(
            Problem::new("this host has no control groups to limit servers with")
                .detail("neither version 1 nor version 2 is mounted")
                .hint("mount /sys/fs/cgroup, or add --limits-optional to run without limits"),
        );
    };
    let options = mount_options(root).unwrap_or_default();
    let place = |parent: &Path| Place {
        kind: CgroupKind::V2,
        parent: parent.to_owned(),
        counts_huge_pages: options
            .split(',')
            .any(|word| word == "memory_hugetlb_accounting"),
    };
    if enabled(own, wanted) {
        return Ok(place(own));
    }
    if listed(own, "cgroup.controllers", wanted) && (divided || is_alone(own)) {
        divide(own, wanted)?;
        return Ok(place(own));
    }
    // Beside us, below the nearest group that gives these controllers to its children.
    let above = dirs.iter().skip(1).find(|dir| enabled(dir, wanted));
    above.map(|dir| place(dir)).ok_or_else(|| {
        let names: Vec<&str> = wanted
            .iter()
            .map(|other| other.name(CgroupKind::V2))
            .collect();
        let has = fs::read_to_string(own.join("cgroup.controllers")).unwrap_or_default();
        Problem::new("this host does not allow limits on servers")
            .detail(format!(
                "servers need {} below deltabench's control group {}, but that group has `{}` and \
                 other processes, and no group above it passes them on",
                names.join(" and "),
                own.display(),
                has.trim()
            ))
            .hint(SCOPE_HINT)
    })
}

/// Whether a version 2 group gives these controllers to its children.
pub(super) fn enabled(dir: &Path, wanted: &[Controller]) -> bool {
    listed(dir, "cgroup.subtree_control", wanted)
}

fn listed(dir: &Path, file: &str, wanted: &[Controller]) -> bool {
    let names = controllers(dir, file);
    wanted
        .iter()
        .all(|other| names.contains(other.name(CgroupKind::V2)))
}

fn is_alone(dir: &Path) -> bool {
    members(dir).is_ok_and(|inside| inside == BTreeSet::from([std::process::id()]))
}

/// Moves us into a child of our group, so that the group may have limited children.
///
/// Source: cgroup-v2.rst, "No Internal Process Constraint".
fn divide(own: &Path, wanted: &[Controller]) -> Result<(), Problem> {
    let leaf = own.join(OWN_LEAF);
    if !leaf.is_dir() {
        fs::create_dir(&leaf).map_err(|error| super::refused("make", &leaf, &error))?;
    }
    let put = |path: PathBuf, text: &str| {
        super::knobs::put(&path, text).map_err(|error| super::refused("write", &path, &error))
    };
    put(leaf.join("cgroup.procs"), &std::process::id().to_string())?;
    let words: Vec<String> = wanted
        .iter()
        .map(|other| format!("+{}", other.name(CgroupKind::V2)))
        .collect();
    put(own.join("cgroup.subtree_control"), &words.join(" "))
}
