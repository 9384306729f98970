//! The directory on a disk of a host in which its lanes measure.

use crate::arguments::conditions::Servers;
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

/// How servers run on this host. Sockets of a lab this deep would have a path that is too long, so clusters
/// of users are directly in the directory of lanes. Those of root have a place of their own.
pub fn servers_on(local: &Path, asked: &Servers) -> Servers {
    servers_of(deltabench_proc::host::our_user(), local, asked)
}

fn servers_of(user: Option<u32>, local: &Path, asked: &Servers) -> Servers {
    let named = asked.cluster_dir.clone();
    Servers {
        server_user: asked.server_user.clone(),
        cluster_dir: named.or_else(|| (user != Some(0)).then(|| local.join("c"))),
        huge_pages: asked.huge_pages,
    }
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
    use crate::arguments::conditions::HugePagesWord;

    /// As an ordinary user every unit failed: "the path of the servers' sockets is too long".
    #[test]
    fn clusters_of_users_are_where_the_paths_of_sockets_are_short() {
        let asked = |cluster_dir| Servers {
            server_user: None,
            cluster_dir,
            huge_pages: HugePagesWord::Try,
        };
        let local = Path::new("/var/tmp/deltabench-fleet-1234567890");
        let of = |user, named| servers_of(Some(user), local, &asked(named)).cluster_dir;
        let users = of(3000, None).unwrap();
        // 107 bytes are the most.
        let socket = "a-study-20261127-032819-5627-12/sockets/.s.PGSQL.65535";
        assert!(users.join(socket).as_os_str().len() <= 107);
        assert_eq!(of(0, None), None);
        let named = Some(PathBuf::from("/x"));
        assert_eq!(of(3000, named.clone()), named);
    }

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
