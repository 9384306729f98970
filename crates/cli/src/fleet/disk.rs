//! The directory on a disk of a host in which its lanes measure.

use std::fs::{DirBuilder, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Where labs of units are on a host.
pub fn local_directory(named: Option<&Path>) -> PathBuf {
    let user = deltabench_proc::host::our_user().unwrap_or(0);
    named.map_or_else(
        || PathBuf::from(format!("/var/tmp/deltabench-fleet-{user}")),
        Path::to_owned,
    )
}

/// Makes it. In a directory that everybody writes, somebody may have taken its name: it has to be ours, and
/// others can write nothing in it.
///
/// Errors: why labs cannot be there.
pub fn make_local(place: &Path, in_public: bool) -> Result<(), String> {
    let cannot = |error: std::io::Error| format!("cannot write {}: {error}", place.display());
    if !in_public {
        return std::fs::create_dir_all(place).map_err(cannot);
    }
    let us = deltabench_proc::host::our_user();
    // Servers that root starts run as another user, from copies in it.
    let mode = if us == Some(0) { 0o711 } else { 0o700 };
    match DirBuilder::new().mode(mode).create(place) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(cannot(error)),
        _ => {}
    }
    let found = std::fs::symlink_metadata(place).map_err(cannot)?;
    if !found.is_dir() || Some(found.uid()) != us {
        return Err(format!(
            "{} belongs to somebody else or is a link: see who made it, or set `local` in the fleet file",
            place.display()
        ));
    }
    std::fs::set_permissions(place, Permissions::from_mode(mode)).map_err(cannot)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labs_are_in_a_directory_of_ours_and_not_behind_a_link() {
        let public = tempfile::tempdir().unwrap();
        let place = public.path().join("deltabench-fleet-7");
        std::fs::create_dir(&place).unwrap();
        std::fs::set_permissions(&place, Permissions::from_mode(0o777)).unwrap();
        make_local(&place, true).unwrap();
        let mode = std::fs::metadata(&place).unwrap().permissions().mode();
        assert_eq!(mode & 0o066, 0, "{mode:o}");
        let link = public.path().join("link");
        std::os::unix::fs::symlink(&place, &link).unwrap();
        let why = make_local(&link, true).unwrap_err();
        assert!(why.contains("is a link"), "{why}");
        // Whoever names a place may name a link.
        make_local(&link, false).unwrap();
        // Only root can give directories away; others have those of root.
        let theirs = match std::os::unix::fs::chown(&place, Some(12_345), None) {
            Ok(()) => place,
            Err(_) => PathBuf::from("/usr"),
        };
        assert!(make_local(&theirs, true).is_err());
    }
}
