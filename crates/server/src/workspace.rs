//! The directory of one run's clusters and sockets.
//!
//! ```text
//! PARENT/RUN/            ours, 0711 when servers run as another user, else 0700
//!   owner.json           who we are; locked for as long as we live
//!   huge_pages.json      what was reserved, if anything
//!   cgroups              control groups made for servers, if any
//!   sockets/             the server user's, 0700
//!   clusters/NAME/       ours: server.log, shared_memory; data/ is the server user's, 0700
//! ```

use crate::access::{check_passable, check_reachable};
use crate::failure::failed;
use crate::kernel;
use crate::process::Identity;
use crate::records::what_is_left;
use crate::room::{SOCKETS_OF_A_RUN, check_socket_path};
use crate::tree;
use crate::user::ServerUser;
use deltabench_model::problem::Problem;
use deltabench_proc::host::{boot_id, host_name};
use serde::{Deserialize, Serialize};
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Name of the file that says whose workspace it is.
pub(crate) const OWNER_FILE: &str = "owner.json";
/// Start of the names of workspaces that are being made.
pub(crate) const DRAFT_PREFIX: &str = ".new-";
const OWNER_FORMAT: (&str, u32) = ("deltabench.workspace", 1);

/// Content of the owner file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OwnerRecord {
    pub(crate) format: String,
    pub(crate) version: u32,
    pub(crate) run: String,
    pub(crate) host: String,
    /// Changes with every start of the machine: pids of another boot mean nothing.
    pub(crate) boot_id: String,
    pub(crate) deltabench: Identity,
    pub(crate) server_uid: u32,
}

/// The directory of one run's clusters and sockets. Dropping it removes it, but not before the last
/// cluster in it has been dropped, and not while it lists something that the kernel still has for the run.
pub struct Workspace {
    pub(crate) inner: Arc<Inner>,
}

/// What clusters keep alive.
pub(crate) struct Inner {
    pub(crate) directory: PathBuf,
    pub(crate) user: ServerUser,
    sockets: PathBuf,
    /// Directories above it that were made for it, the innermost first.
    made: Vec<PathBuf>,
    // Held for its lock: the kernel releases it when we end, however we end.
    _owner: File,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Nobody is left to tell; what stays behind is found by the next sweep.
        let _ = self.clear();
        remove_empty(&self.made);
    }
}

impl Workspace {
    /// Where workspaces go unless told otherwise: `/var/tmp/deltabench` when servers run as another
    /// user (who may not be able to reach the lab), else `clusters` in the lab directory.
    pub fn default_parent(user: &ServerUser, lab: &Path) -> PathBuf {
        if user.switched {
            PathBuf::from("/var/tmp/deltabench")
        } else {
            lab.join("clusters")
        }
    }

    /// Checks that runs can have their directories in `parent`, which need not exist yet. Makes nothing.
    ///
    /// Errors: it is no directory of ours that only we can write to; it is not there and cannot be made; the
    /// server user cannot pass through to it; a socket path that would be too long.
    pub fn check_place(parent: &Path, user: &ServerUser) -> Result<(), Problem> {
        check_socket_path(&parent.join(SOCKETS_OF_A_RUN))?;
        let existing = parent
            .ancestors()
            .find(|place| std::fs::symlink_metadata(place).is_ok())
            .unwrap_or(parent);
        if existing == parent {
            check_parent(parent)?;
        } else if !existing.is_dir() {
            return Err(cannot_keep(
                parent,
                &format!("{} is not a directory", existing.display()),
            ));
        } else {
            kernel::may_write(existing)
                .map_err(|error| failed("make a directory in", existing, &error))?;
        }
        check_passable(existing, user, &way_out(user))
    }

    /// Makes the directory of a run and marks it as ours. What it has made above that goes with it, unless
    /// something else is in there.
    ///
    /// Errors: a parent that others can write to or that the server user cannot reach, a socket path
    /// that would be too long, a run of that name that is still there.
    pub fn create(parent: &Path, run: &str, user: &ServerUser) -> Result<Self, Problem> {
        check_name(run)?;
        let mut made = make_parent(parent, user)?;
        let mut workspace = Self::create_in(parent, run, user, made.clone());
        if workspace.is_err() && !parent.exists() {
            // Another run had made the parent, and removed it when it ended.
            made = make_parent(parent, user)?;
            workspace = Self::create_in(parent, run, user, made.clone());
        }
        if workspace.is_err() {
            remove_empty(&made);
        }
        workspace
    }

    fn create_in(
        parent: &Path,
        run: &str,
        user: &ServerUser,
        made: Vec<PathBuf>,
    ) -> Result<Self, Problem> {
        check_parent(parent)?;
        let parent =
            std::fs::canonicalize(parent).map_err(|error| failed("find", parent, &error))?;
        let directory = parent.join(run);
        let sockets = directory.join("sockets");
        check_socket_path(&sockets)?;
        if let Ok(record) = read_owner(&directory) {
            return Err(Problem::new(format!("{} already exists", directory.display()))
                .detail(format!("process {} on {} created it", record.deltabench.pid, record.host))
                .hint("wait for that run to end; if it is gone, the next start clears its directory"));
        }
        let draft = parent.join(format!("{DRAFT_PREFIX}{run}-{}", std::process::id()));
        tree::make_directory(&draft, if user.switched { 0o711 } else { 0o700 }, None)?;
        let furnished = furnish(&draft, run, user)
            .and_then(|owner| check_traversable(&draft, user, &way_out(user)).map(|()| owner))
            .and_then(|owner| {
                std::fs::rename(&draft, &directory)
                    .map_err(|error| failed("make", &directory, &error))?;
                Ok(owner)
            });
        match furnished {
            Ok(owner) => Ok(Self {
                inner: Arc::new(Inner {
                    directory,
                    user: user.clone(),
                    sockets,
                    made,
                    _owner: owner,
                }),
            }),
            Err(problem) => {
                // The first problem is the one to tell.
                let _ = tree::remove_tree(&draft);
                Err(problem)
            }
        }
    }

    /// The workspace itself.
    pub fn directory(&self) -> &Path {
        &self.inner.directory
    }

    /// Whether servers can be started from files in it, so that each start has a new copy of its executable.
    ///
    /// Errors: it is gone.
    pub fn may_execute(&self) -> Result<bool, Problem> {
        let directory = self.directory();
        kernel::may_execute(directory).map_err(|error| failed("look at", directory, &error))
    }

    /// Where all servers of the run have their sockets; only the server user and root can enter.
    pub fn socket_dir(&self) -> &Path {
        &self.inner.sockets
    }

    /// Removes the directory and everything in it.
    ///
    /// Errors: a cluster or a reservation of huge pages still uses it; it lists control groups or huge pages
    /// that could not be given back, which the next sweep tries again; something in it cannot be removed.
    pub fn remove(self) -> Result<(), Problem> {
        match Arc::try_unwrap(self.inner) {
            Ok(inner) => inner.clear(),
            Err(inner) => Err(Problem::new(format!(
                "{} is still in use",
                inner.directory.display()
            ))
            .detail("a cluster or a reservation of huge pages still exists")),
        }
    }
}

impl Inner {
    /// Where servers have their sockets.
    pub(crate) fn sockets(&self) -> &Path {
        &self.sockets
    }

    /// Removes the directory, unless only its records say what the kernel still has for the run.
    fn clear(&self) -> Result<(), Problem> {
        let Some(left) = what_is_left(&self.directory) else {
            return remove_directory(&self.directory);
        };
        Err(Problem::new(format!("{} stays", self.directory.display()))
            .detail(format!("it lists {left} that could not be given back"))
            .hint("the next start of deltabench tries again"))
    }
}

fn check_name(run: &str) -> Result<(), Problem> {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if !run.is_empty() && !run.starts_with('.') && run.chars().all(good) {
        return Ok(());
    }
    Err(
        Problem::new(format!("`{run}` cannot be the name of a run or cluster"))
            .hint("use letters, digits, `-`, `_` and `.`, not starting with a dot"),
    )
}

/// Same rule for clusters.
pub(crate) fn check_cluster_name(name: &str) -> Result<(), Problem> {
    check_name(name)
}

/// Makes the parent of workspaces if it is not there; returns what was made, the innermost first.
fn make_parent(parent: &Path, user: &ServerUser) -> Result<Vec<PathBuf>, Problem> {
    if parent.exists() {
        return Ok(Vec::new());
    }
    let missing = parent.ancestors().take_while(|place| !place.exists());
    let missing: Vec<PathBuf> = missing.map(Path::to_path_buf).collect();
    let made = make_missing(parent, user);
    if made.is_err() {
        remove_empty(&missing);
    }
    made.map(|()| missing)
}

fn make_missing(parent: &Path, user: &ServerUser) -> Result<(), Problem> {
    if let Some(above) = parent.parent() {
        std::fs::create_dir_all(above).map_err(|error| failed("make", above, &error))?;
    }
    let mode = if user.switched { 0o755 } else { 0o700 };
    match DirBuilder::new().mode(mode).create(parent) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(failed("make", parent, &error))
        }
        _ => Ok(()),
    }
}

/// Removes directories that are empty; one that is not stays, with those above it.
fn remove_empty(directories: &[PathBuf]) {
    for directory in directories {
        match std::fs::remove_dir(directory) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                // Another run is in it.
                return;
            }
            _ => {}
        }
    }
}

/// Whoever can write to the parent could plant a workspace there and have us clear it.
pub(crate) fn check_parent(parent: &Path) -> Result<(), Problem> {
    let metadata =
        std::fs::symlink_metadata(parent).map_err(|error| failed("look at", parent, &error))?;
    let facts = if !metadata.is_dir() {
        "it is not a directory".to_owned()
    } else if metadata.uid() != kernel::effective_uid() {
        format!(
            "it belongs to user {}, but deltabench runs as user {}",
            metadata.uid(),
            kernel::effective_uid()
        )
    } else if metadata.mode() & 0o022 != 0 {
        format!(
            "others can write to it (mode {:04o})",
            metadata.mode() & 0o7777
        )
    } else {
        return Ok(());
    };
    Err(cannot_keep(parent, &facts))
}

fn cannot_keep(parent: &Path, why: &str) -> Problem {
    Problem::new(format!("cannot keep clusters in {}", parent.display()))
        .detail(why)
        .hint("name a directory of your own that only you can write to")
}

/// What to do if the server user cannot get to a workspace.
fn way_out(user: &ServerUser) -> String {
    format!(
        "name a directory that `{}` can reach, for example below /var/tmp",
        user.name
    )
}

fn check_traversable(draft: &Path, user: &ServerUser, way_out: &str) -> Result<(), Problem> {
    check_reachable(&draft.join("sockets"), user, way_out)
}

fn furnish(draft: &Path, run: &str, user: &ServerUser) -> Result<File, Problem> {
    let path = draft.join(OWNER_FILE);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)
        .map_err(|error| failed("make", &path, &error))?;
    file.try_lock().map_err(|error| {
        Problem::new(format!("cannot lock {}", path.display())).detail(error.to_string())
    })?;
    let deltabench = Identity::of(std::process::id())
        .ok_or_else(|| Problem::new("cannot read /proc/self/stat"))?;
    let record = OwnerRecord {
        format: OWNER_FORMAT.0.to_owned(),
        version: OWNER_FORMAT.1,
        run: run.to_owned(),
        host: host_name().unwrap_or_default(),
        boot_id: boot_id().unwrap_or_default(),
        deltabench,
        server_uid: user.uid,
    };
    let text = serde_json::to_string_pretty(&record)
        .map_err(|error| Problem::new("cannot describe the workspace").detail(error.to_string()))?;
    file.write_all(text.as_bytes())
        .map_err(|error| failed("write", &path, &error))?;
    tree::make_directory(&draft.join("sockets"), 0o700, user.owner())?;
    tree::make_directory(
        &draft.join("clusters"),
        if user.switched { 0o711 } else { 0o700 },
        None,
    )?;
    Ok(file)
}

/// The owner file of a workspace.
///
/// Errors: in words, without the path.
pub(crate) fn read_owner(directory: &Path) -> Result<OwnerRecord, String> {
    let text =
        std::fs::read_to_string(directory.join(OWNER_FILE)).map_err(|error| error.to_string())?;
    let record: OwnerRecord = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    if (record.format.as_str(), record.version) == OWNER_FORMAT {
        Ok(record)
    } else {
        Err(format!(
            "it was made by another deltabench ({} version {})",
            record.format, record.version
        ))
    }
}

/// Takes over the lock of an owner file; `None` while its maker lives.
pub(crate) fn take_over(directory: &Path) -> Option<File> {
    let path = directory.join(OWNER_FILE);
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NOFOLLOW)
        .open(path)
        .ok()?;
    match file.try_lock() {
        Ok(()) => Some(file),
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => None,
    }
}

/// Removes a workspace, its owner file last: a removal cut short is still found by the next sweep.
pub(crate) fn remove_directory(directory: &Path) -> Result<(), Problem> {
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed("read", directory, &error)),
    };
    for entry in entries
        .flatten()
        .filter(|entry| entry.file_name() != OWNER_FILE)
    {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            tree::remove_tree(&path)?;
        } else {
            std::fs::remove_file(&path).map_err(|error| failed("remove", &path, &error))?;
        }
    }
    tree::remove_tree(directory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn reachable_scratch() -> tempfile::TempDir {
        let scratch = tempfile::tempdir_in("/tmp").unwrap();
        std::fs::set_permissions(scratch.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        scratch
    }

    fn user() -> ServerUser {
        ServerUser::choose(None).unwrap()
    }

    #[test]
    fn a_workspace_is_closed_marked_as_ours_and_gone_after_removal() {
        let scratch = reachable_scratch();
        let user = user();
        let workspace = Workspace::create(scratch.path(), "run-1", &user).unwrap();
        let sockets = std::fs::metadata(workspace.socket_dir()).unwrap();
        assert_eq!((sockets.mode() & 0o777, sockets.uid()), (0o700, user.uid));
        let record = read_owner(workspace.directory()).unwrap();
        assert!(record.deltabench.is_running() && Some(&record.boot_id) == boot_id().as_ref());
        assert!(
            take_over(workspace.directory()).is_none(),
            "the lock is held while we live"
        );
        let directory = workspace.directory().to_path_buf();
        workspace.remove().unwrap();
        assert!(!directory.exists());
    }

    #[test]
    fn a_workspace_stays_while_a_control_group_that_it_lists_is_there() {
        let scratch = reachable_scratch();
        let group = scratch.path().join("deltabench-run-1-c0");
        std::fs::create_dir(&group).unwrap();
        std::fs::write(group.join("cgroup.procs"), "").unwrap();
        let workspace = |run: &str| {
            let made = Workspace::create(scratch.path(), run, &user()).unwrap();
            made.note_cgroups(std::slice::from_ref(&group)).unwrap();
            made
        };
        let removed = workspace("run-1");
        let directory = removed.directory().to_path_buf();
        let problem = removed.remove().unwrap_err();
        assert!(problem.detail.unwrap().contains("control groups"));
        assert!(read_owner(&directory).is_ok() && directory.join("cgroups").exists());
        drop(workspace("run-2"));
        assert!(scratch.path().join("run-2/cgroups").exists());
        let freed = workspace("run-3");
        std::fs::remove_dir_all(&group).unwrap();
        freed.remove().unwrap();
        assert!(!scratch.path().join("run-3").exists());
    }

    #[test]
    fn a_run_cannot_be_made_twice_at_once() {
        let scratch = reachable_scratch();
        let first = Workspace::create(scratch.path(), "run-1", &user()).unwrap();
        let problem = Workspace::create(scratch.path(), "run-1", &user())
            .err()
            .unwrap();
        assert!(
            problem
                .detail
                .unwrap()
                .contains(&std::process::id().to_string())
        );
        drop(first);
        assert_eq!(
            std::fs::read_dir(scratch.path()).unwrap().count(),
            0,
            "drop removes, and no draft is left"
        );
    }

    #[test]
    fn names_cannot_lead_out_of_the_parent() {
        for name in ["", ".", "..", "../x", "a/b", ".hidden", "a b"] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
        check_name("2026-11-21_run.3").unwrap();
    }

    #[test]
    fn a_parent_that_others_can_write_to_is_refused() {
        let scratch = reachable_scratch();
        std::fs::set_permissions(scratch.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        let problem = Workspace::create(scratch.path(), "run", &user())
            .err()
            .unwrap();
        assert!(problem.detail.unwrap().contains("others can write"));
    }

    #[test]
    fn a_parent_too_deep_for_a_socket_is_refused_before_anything_is_made() {
        let scratch = reachable_scratch();
        let deep = scratch.path().join("d".repeat(90));
        let problem = Workspace::create(&deep, "run", &user()).err().unwrap();
        assert!(problem.error.contains("too long"), "{problem}");
        let early = Workspace::check_place(&deep, &user()).unwrap_err();
        assert!(early.error.contains("too long"), "{early}");
        assert!(!deep.exists(), "what a refused run has made is removed");
    }

    #[test]
    fn what_was_made_above_a_workspace_goes_with_it_unless_another_one_is_there() {
        let scratch = reachable_scratch();
        let parent = scratch.path().join("new/parent");
        let first = Workspace::create(&parent, "run-1", &user()).unwrap();
        let second = Workspace::create(&parent, "run-2", &user()).unwrap();
        drop(first);
        assert!(second.directory().is_dir());
        drop(second);
        assert!(parent.is_dir(), "the second run found it there");
        std::fs::remove_dir_all(scratch.path().join("new")).unwrap();
        drop(Workspace::create(&parent, "run-3", &user()).unwrap());
        assert!(!scratch.path().join("new").exists());
        assert!(scratch.path().is_dir(), "it was there before");
    }

    #[test]
    fn a_place_that_cannot_hold_workspaces_is_refused_and_nothing_is_made() {
        let scratch = reachable_scratch();
        let place = |name: &str| scratch.path().join(name);
        let refused = |path: &Path| Workspace::check_place(path, &user()).unwrap_err();
        std::fs::write(place("file"), "").unwrap();
        let file = refused(&place("file"));
        assert!(file.detail.unwrap().contains("not a directory"));
        let below = refused(&place("file/below"));
        assert!(below.detail.unwrap().contains("not a directory"));
        std::fs::create_dir(place("open")).unwrap();
        std::fs::set_permissions(place("open"), std::fs::Permissions::from_mode(0o1777)).unwrap();
        let open = refused(&place("open"));
        assert!(open.detail.unwrap().contains("others can write"));
        Workspace::check_place(&place("new/one"), &user()).unwrap();
        assert!(!place("new").exists());
    }
}
