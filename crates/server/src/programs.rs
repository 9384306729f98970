//! A server's own copy of its executable, new at each start.
//!
//! The kernel keeps an executable's pages where it read them once: over restarts, loads of data and whole
//! runs. Where they lie moves the time of an operation by some percent (docs/measuring.md#placement), so two
//! equal trees can differ for hours, and no number of restarts shows it. A start from a new file has new
//! pages. So the restart, which is the unit of the statistics, draws this luck as well, and intervals contain
//! it. It is also the same for all: base and placebo share no page that the candidate does not share.

use crate::failure::failed;
use crate::kernel;
use crate::tree;
use deltabench_model::problem::Problem;
use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Directory of a cluster that has the tree of its programs.
const PROGRAMS: &str = "programs";

/// Directories above that of the program whose names a server may know: Debian's `lib/postgresql/18/bin` and
/// `share/postgresql/18` have four and `usr` in common.
const ABOVE: usize = 4;

/// What a server may look for above its own tree. Nobody has to be allowed to list those directories, and
/// some have thousands of entries.
const FURTHER: [&str; 5] = ["share", "lib", "lib64", "etc", "include"];

/// The server's file for the next start of the cluster in `cluster`: a new copy of `server`, among links to
/// what lies around it. PostgreSQL finds its other files by the end of its own path, so the copy's is the
/// same. Nobody runs it.
///
/// Shape:  `None` where files of that directory may not be executed, or nothing is above the server's.
/// Errors: a full disk, a file that cannot be read.
pub(crate) fn renew(cluster: &Path, server: &Path) -> Result<Option<PathBuf>, Problem> {
    let may = kernel::may_execute(cluster);
    if !may.map_err(|error| failed("look at", cluster, &error))? {
        return Ok(None);
    }
    // It resolves links to its file itself, and finds the others from there.
    let server = fs::canonicalize(server).map_err(|error| failed("read", server, &error))?;
    let above: Vec<&Path> = server.ancestors().skip(1).take(ABOVE + 1).collect();
    let (Some(bin), Some(root)) = (above.first(), above.last()) else {
        return Ok(None);
    };
    let place = |directory: &Path, below: &Path| below.join(part(directory, root));
    let programs = cluster.join(PROGRAMS);
    if !programs.exists() {
        // Whole, or not there.
        let draft = cluster.join(format!("{PROGRAMS}.new"));
        tree::remove_tree(&draft)?;
        for directory in above.iter().rev() {
            tree::make_directory(&place(directory, &draft), 0o755, None)?;
        }
        // Its own tree is right above `bin`.
        for directory in above.iter().skip(1).take(1) {
            link_all(directory, &place(directory, &draft))?;
        }
        for directory in above.iter().skip(2) {
            let known = FURTHER.iter().filter(|name| directory.join(name).exists());
            for name in known {
                link(&directory.join(name), &place(directory, &draft).join(name))?;
            }
        }
        fs::rename(&draft, &programs).map_err(|error| failed("make", &programs, &error))?;
    }
    let own = place(bin, &programs).join(server.file_name().unwrap_or_default());
    copy(&server, &own)?;
    Ok(Some(own))
}

/// A path below a directory.
fn part<'a>(path: &'a Path, root: &Path) -> &'a Path {
    path.strip_prefix(root).unwrap_or(path)
}

/// Links to all entries of a directory that are not there.
fn link_all(from: &Path, to: &Path) -> Result<(), Problem> {
    let entries = fs::read_dir(from).map_err(|error| failed("read", from, &error))?;
    for entry in entries {
        let name = entry
            .map_err(|error| failed("read", from, &error))?
            .file_name();
        link(&from.join(&name), &to.join(&name))?;
    }
    Ok(())
}

/// Links to what is there, where nothing has the name yet.
fn link(to: &Path, name: &Path) -> Result<(), Problem> {
    match symlink(to, name) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(failed("make", name, &error))
        }
        _ => Ok(()),
    }
}

/// Puts a copy of a program in the place of an earlier one, which is removed only after that: else the kernel
/// could use its pages for the new one.
///
/// The bytes are written. XFS and btrfs would share those of the installed file with `io::copy`: then the
/// server reads its code from the disk after each start, within its own limits of memory and storage.
fn copy(program: &Path, to: &Path) -> Result<(), Problem> {
    let draft = to.with_extension("new");
    let write = || -> io::Result<()> {
        let bytes = fs::read(program)?;
        let mut copy = File::create(&draft)?;
        copy.write_all(&bytes)?;
        copy.set_permissions(Permissions::from_mode(0o755))?;
        // Nothing of it is written back while others are measured.
        copy.sync_data()?;
        drop(copy);
        fs::rename(&draft, to)
    };
    write().map_err(|error| failed("write", to, &error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn each_start_has_a_new_file_that_finds_the_rest_by_the_end_of_its_path() {
        let place = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        // As Debian's packages have it.
        let usr = place.path().join("usr");
        let bin = usr.join("lib/postgresql/15/bin");
        for directory in [
            "lib/postgresql/15/bin",
            "lib/postgresql/15/lib",
            "share/postgresql/15",
        ] {
            fs::create_dir_all(usr.join(directory)).unwrap();
        }
        fs::write(bin.join("postgres"), "server").unwrap();
        fs::write(usr.join("lib/postgresql/15/lib/plpgsql.so"), "library").unwrap();
        fs::write(usr.join("share/postgresql/15/UTC"), "zone").unwrap();
        symlink(bin.join("postgres"), place.path().join("postmaster")).unwrap();
        // Of directories above the server's own, only what it may look for.
        fs::write(usr.join("lib/other"), "").unwrap();
        let cluster = place.path().join("c0");
        fs::create_dir(&cluster).unwrap();

        let first = renew(&cluster, &place.path().join("postmaster"))
            .unwrap()
            .unwrap();
        assert!(
            first.ends_with("programs/lib/postgresql/15/bin/postgres"),
            "{first:?}"
        );
        assert_eq!(fs::read_to_string(&first).unwrap(), "server");
        assert_eq!(fs::metadata(&first).unwrap().mode() & 0o777, 0o755);
        // Kept open, or the second could have its number.
        let open = File::open(&first).unwrap();
        let again = renew(&cluster, &bin.join("postgres")).unwrap().unwrap();
        assert_eq!(first, again);
        let inode = |metadata: fs::Metadata| metadata.ino();
        assert_ne!(
            inode(open.metadata().unwrap()),
            inode(fs::metadata(&again).unwrap())
        );
        let beside = |name: &str| fs::read_to_string(again.parent().unwrap().join(name)).unwrap();
        assert_eq!(beside("../lib/plpgsql.so"), "library");
        assert_eq!(beside("../../../../share/postgresql/15/UTC"), "zone");
        let lib = again.ancestors().nth(4).unwrap();
        assert!(lib.ends_with("programs/lib") && !lib.join("other").exists());
        // Nothing of the installation is touched when the cluster goes.
        tree::remove_tree(&cluster).unwrap();
        assert_eq!(fs::read_to_string(bin.join("postgres")).unwrap(), "server");
        assert!(usr.join("share/postgresql/15/UTC").exists());
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let place = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let cluster = place.path().join("c0");
        fs::create_dir(&cluster).unwrap();
        let problem = renew(&cluster, &place.path().join("bin/postgres")).unwrap_err();
        assert!(problem.error.contains("bin/postgres"), "{problem:?}");
    }
}
