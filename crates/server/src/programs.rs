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
use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Directory of a cluster that has the tree of its programs.
const PROGRAMS: &str = "programs";
/// What the servers of all versions are called.
const SERVER: &str = "postgres";

/// The server's file for the next start of the cluster in `cluster`: a new copy, among links to the rest of
/// its installation, which it finds by its own place. Nobody runs it.
///
/// Shape:  `None` where files of that directory may not be executed, or `bin_dir` has nothing above it.
/// Errors: a full disk, a file that cannot be read.
pub(crate) fn renew(cluster: &Path, bin_dir: &Path) -> Result<Option<PathBuf>, Problem> {
    let (Some(root), Some(bin)) = (bin_dir.parent(), bin_dir.file_name()) else {
        return Ok(None);
    };
    let may = kernel::may_execute(cluster);
    if !may.map_err(|error| failed("look at", cluster, &error))? {
        return Ok(None);
    }
    let own = cluster.join(PROGRAMS);
    let own_bin = own.join(bin);
    if !own.exists() {
        tree::make_directory(&own, 0o755, None)?;
        link_all(root, &own, bin)?;
        tree::make_directory(&own_bin, 0o755, None)?;
        link_all(bin_dir, &own_bin, OsStr::new(SERVER))?;
    }
    let server = own_bin.join(SERVER);
    copy(&bin_dir.join(SERVER), &server)?;
    Ok(Some(server))
}

/// Links to all entries of a directory but one.
fn link_all(from: &Path, to: &Path, but: &OsStr) -> Result<(), Problem> {
    let entries = fs::read_dir(from).map_err(|error| failed("read", from, &error))?;
    for entry in entries {
        let name = entry
            .map_err(|error| failed("read", from, &error))?
            .file_name();
        if name != but {
            let link = to.join(&name);
            symlink(from.join(&name), &link).map_err(|error| failed("make", &link, &error))?;
        }
    }
    Ok(())
}

/// Puts a copy of a program in the place of an earlier one. The earlier one is given up only after that:
/// else the kernel would give its pages to the new one.
fn copy(program: &Path, to: &Path) -> Result<(), Problem> {
    let draft = to.with_extension("new");
    let write = || -> io::Result<()> {
        let mut from = File::open(program)?;
        let mut copy = File::create(&draft)?;
        io::copy(&mut from, &mut copy)?;
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
    fn each_start_has_a_new_file_among_links_to_the_rest() {
        let place = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let tree = place.path().join("18.1");
        for directory in ["bin", "lib", "share/timezone"] {
            fs::create_dir_all(tree.join(directory)).unwrap();
        }
        fs::write(tree.join("bin/postgres"), "server").unwrap();
        fs::write(tree.join("bin/initdb"), "initdb").unwrap();
        fs::write(tree.join("share/timezone/UTC"), "UTC").unwrap();
        let cluster = place.path().join("c0");
        fs::create_dir(&cluster).unwrap();

        let first = renew(&cluster, &tree.join("bin")).unwrap().unwrap();
        assert_eq!(fs::read_to_string(&first).unwrap(), "server");
        assert_eq!(fs::metadata(&first).unwrap().mode() & 0o777, 0o755);
        // Kept open, or the second could have its number.
        let open = File::open(&first).unwrap();
        let again = renew(&cluster, &tree.join("bin")).unwrap().unwrap();
        assert_eq!(first, again);
        let inode = |metadata: fs::Metadata| metadata.ino();
        assert_ne!(
            inode(open.metadata().unwrap()),
            inode(fs::metadata(&again).unwrap())
        );
        let beside = |name: &str| again.parent().unwrap().join(name);
        assert_eq!(fs::read_to_string(beside("initdb")).unwrap(), "initdb");
        let zone = fs::read_to_string(beside("../share/timezone/UTC"));
        assert_eq!(zone.unwrap(), "UTC");
        // Nothing of the installation is touched when the cluster goes.
        tree::remove_tree(&cluster).unwrap();
        assert_eq!(
            fs::read_to_string(tree.join("bin/initdb")).unwrap(),
            "initdb"
        );
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let place = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        fs::create_dir(place.path().join("bin")).unwrap();
        let cluster = place.path().join("c0");
        fs::create_dir(&cluster).unwrap();
        let problem = renew(&cluster, &place.path().join("bin")).unwrap_err();
        assert!(problem.error.contains("postgres"), "{problem:?}");
    }
}
