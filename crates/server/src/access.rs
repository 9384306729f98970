//! Can the servers' user get at a path at all? Asked before anything starts, because PostgreSQL's own
//! words for it ("could not locate a valid installation") do not say which directory is in the way.

use crate::failure::failed;
use crate::user::ServerUser;
use deltabench_model::problem::Problem;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const READ: u32 = 4;
const WRITE: u32 = 2;
const EXECUTE: u32 = 1;
/// In a directory with this bit only owners rename and remove what is there.
const STICKY: u32 = 0o1000;

/// Checks that `user` can pass through every directory of `path` and read it (a directory) or run it (a
/// file).
///
/// Shape: mode bits of owner, group and others only; access control lists are not read.
/// Errors: the first component that is in the way.
pub(crate) fn check_reachable(
    path: &Path,
    user: &ServerUser,
    way_out: &str,
) -> Result<(), Problem> {
    check_path(path, user, READ | EXECUTE, way_out)
}

/// Checks that `user` can pass through every directory of `path`, a directory.
///
/// Shape:  as [`check_reachable`].
/// Errors: the first component that is in the way.
pub(crate) fn check_passable(path: &Path, user: &ServerUser, way_out: &str) -> Result<(), Problem> {
    check_path(path, user, EXECUTE, way_out)
}

fn check_path(path: &Path, user: &ServerUser, last: u32, way_out: &str) -> Result<(), Problem> {
    let path = std::fs::canonicalize(path).map_err(|error| failed("find", path, &error))?;
    let mut components: Vec<PathBuf> = path.ancestors().map(Path::to_path_buf).collect();
    components.reverse();
    for component in &components {
        let metadata =
            std::fs::metadata(component).map_err(|error| failed("look at", component, &error))?;
        let wanted = if *component == path { last } else { EXECUTE };
        let mode = metadata.mode();
        if !allows(mode, metadata.uid(), metadata.gid(), user, wanted) {
            return Err(Problem::new(format!(
                "user `{}` cannot access {}",
                user.name,
                path.display()
            ))
            .detail(format!(
                "{} has mode {:04o} and belongs to user {} group {}",
                component.display(),
                mode & 0o7777,
                metadata.uid(),
                metadata.gid()
            ))
            .hint(way_out));
        }
    }
    Ok(())
}

/// The first of `path` and the directories above it that `user` may write to, or that belongs to `user`, who
/// may then allow it.
///
/// Shape: mode bits only, as [`check_reachable`]; what cannot be looked at is passed over.
pub(crate) fn changeable(path: &Path, user: &ServerUser) -> Option<PathBuf> {
    let mut places = path.ancestors();
    let may = |place: &&Path| {
        let Ok(metadata) = std::fs::metadata(place) else {
            return false;
        };
        let facts = (metadata.mode(), metadata.uid(), metadata.gid());
        may_change(facts, user, *place == path)
    };
    places.find(may).map(Path::to_path_buf)
}

/// Whether `user` may change a file or directory of this mode, owner and group. Of a directory above (`is_it`
/// is false) only names matter, which the sticky bit protects.
fn may_change((mode, owner, group): (u32, u32, u32), user: &ServerUser, is_it: bool) -> bool {
    let protected = !is_it && mode & STICKY != 0;
    owner == user.uid || (!protected && allows(mode, owner, group, user, WRITE))
}

fn allows(mode: u32, owner: u32, group: u32, user: &ServerUser, wanted: u32) -> bool {
    let shift = if owner == user.uid {
        6
    } else if group == user.gid {
        3
    } else {
        0
    };
    (mode >> shift) & wanted == wanted
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn stranger() -> ServerUser {
        ServerUser {
            name: "stranger".into(),
            uid: 64_001,
            gid: 64_002,
            switched: true,
        }
    }

    #[test]
    fn only_the_first_matching_class_of_mode_bits_counts() {
        let user = stranger();
        for (mode, owner, group, wanted, allowed) in [
            (0o700, 64_001, 0, READ | EXECUTE, true),
            (0o077, 64_001, 0, EXECUTE, false),
            (0o050, 0, 64_002, READ | EXECUTE, true),
            (0o705, 0, 64_002, EXECUTE, false),
            (0o711, 0, 0, EXECUTE, true),
            (0o711, 0, 0, READ | EXECUTE, false),
        ] {
            assert_eq!(
                allows(mode, owner, group, &user, wanted),
                allowed,
                "{mode:o} {owner} {group}"
            );
        }
    }

    #[test]
    fn who_owns_a_place_or_may_write_there_can_change_it() {
        let user = stranger();
        for (mode, owner, group, is_it, may) in [
            (0o500, 64_001, 0, true, true),
            (0o755, 64_001, 0, false, true),
            (0o700, 0, 64_002, true, false),
            (0o750, 0, 64_002, true, false),
            (0o770, 0, 64_002, true, true),
            (0o777, 0, 0, false, true),
            // The temporary directory of everybody is no way to change what others have there.
            (0o1777, 0, 0, false, false),
            (0o1777, 0, 0, true, true),
        ] {
            let found = may_change((mode, owner, group), &user, is_it);
            assert_eq!(found, may, "{mode:o} {owner} {group} {is_it}");
        }
        let scratch = tempfile::tempdir().unwrap();
        assert_eq!(changeable(scratch.path(), &user), None);
        std::fs::set_permissions(scratch.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        let inner = scratch.path().join("inner");
        std::fs::create_dir(&inner).unwrap();
        assert_eq!(changeable(&inner, &user).as_deref(), Some(scratch.path()));
    }

    #[test]
    fn the_directory_in_the_way_is_named() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
        let inner = directory.path().join("inner");
        std::fs::create_dir(&inner).unwrap();
        let problem = check_reachable(&inner, &stranger(), "move it").unwrap_err();
        let detail = problem.detail.unwrap();
        assert!(
            detail.contains("mode 0700") && !detail.contains("inner"),
            "{detail}"
        );
        assert_eq!(problem.hint.as_deref(), Some("move it"));
    }
}
