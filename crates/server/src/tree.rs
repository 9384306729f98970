//! Directory trees: made with an owner, copied, measured.

use crate::failure::failed;
use crate::kernel;
use deltabench_model::problem::Problem;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::Path;

/// User and group id.
pub(crate) type Owner = (u32, u32);

/// Makes a directory with exactly this mode, whatever the umask; it must not exist yet.
pub(crate) fn make_directory(path: &Path, mode: u32, owner: Option<Owner>) -> Result<(), Problem> {
    let make = || -> io::Result<()> {
        DirBuilder::new().mode(0o700).create(path)?;
        let directory = File::open(path)?;
        if let Some((uid, gid)) = owner {
            fchown(&directory, Some(uid), Some(gid))?;
        }
        directory.set_permissions(std::fs::Permissions::from_mode(mode))
    };
    make().map_err(|error| failed("make", path, &error))
}

/// Copies a stopped data directory to `to`, which must not exist: files 0600, directories 0700, sharing
/// blocks where the file system can.
///
/// Errors: anything in it that is neither file nor directory: a link may lead to data that the copy
/// would share.
pub(crate) fn copy_tree(from: &Path, to: &Path, owner: Option<Owner>) -> Result<(), Problem> {
    copy_tree_while(from, to, owner, &|| Ok(()))
}

/// The same, asking before each file whether to go on.
///
/// Errors: as [`copy_tree`]; what `go_on` says.
pub(crate) fn copy_tree_while(
    from: &Path,
    to: &Path,
    owner: Option<Owner>,
    go_on: &dyn Fn() -> Result<(), Problem>,
) -> Result<(), Problem> {
    make_directory(to, 0o700, owner)?;
    let entries = std::fs::read_dir(from).map_err(|error| failed("read", from, &error))?;
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| failed("read", from, &error))?;
        names.push(entry.file_name());
    }
    // Always the same order, so that copies are laid out alike on disk.
    names.sort();
    for name in names {
        let (source, target) = (from.join(&name), to.join(&name));
        let kind = std::fs::symlink_metadata(&source)
            .map_err(|error| failed("look at", &source, &error))?
            .file_type();
        go_on()?;
        if kind.is_dir() {
            copy_tree_while(&source, &target, owner, go_on)?;
        } else if kind.is_file() {
            copy_file(&source, &target, owner)?;
        } else {
            return Err(Problem::new(format!("cannot copy {}", source.display()))
                .detail("it is neither a file nor a directory, and a copy would share it"));
        }
    }
    Ok(())
}

fn copy_file(from: &Path, to: &Path, owner: Option<Owner>) -> Result<(), Problem> {
    let mut source = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW)
        .open(from)
        .map_err(|error| failed("read", from, &error))?;
    let mut target = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(to)
        .map_err(|error| failed("make", to, &error))?;
    let copied =
        kernel::reflink(&source, &target).or_else(|_| io::copy(&mut source, &mut target).map(drop));
    let owned = copied.and_then(|()| match owner {
        Some((uid, gid)) => fchown(&target, Some(uid), Some(gid)),
        None => Ok(()),
    });
    owned.map_err(|error| failed("write", to, &error))
}

/// Writes a small file in one step: readers see the old or the new content.
pub(crate) fn write_file(path: &Path, content: &str, owner: Option<Owner>) -> Result<(), Problem> {
    let draft = path.with_extension("new");
    let write = || -> io::Result<()> {
        match std::fs::remove_file(&draft) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&draft)?;
        io::Write::write_all(&mut file, content.as_bytes())?;
        if let Some((uid, gid)) = owner {
            fchown(&file, Some(uid), Some(gid))?;
        }
        std::fs::rename(&draft, path)
    };
    write().map_err(|error| failed("write", path, &error))
}

/// Removes a tree; one that is not there is fine.
pub(crate) fn remove_tree(path: &Path) -> Result<(), Problem> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(failed("remove", path, &error))
        }
        _ => Ok(()),
    }
}

/// Bytes of disk that a tree takes; files that vanish meanwhile count nothing.
pub(crate) fn bytes_on_disk(path: &Path) -> u64 {
    let Ok(metadata) = std::fs::symlink_metadata(path) else {
        return 0;
    };
    // st_blocks counts 512 bytes whatever the file system's block size (stat(2)).
    let own = metadata.blocks() * 512;
    if !metadata.is_dir() {
        return own;
    }
    let Ok(entries) = std::fs::read_dir(path) else {
        return own;
    };
    own + entries
        .flatten()
        .map(|entry| bytes_on_disk(&entry.path()))
        .sum::<u64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_the_same_bytes_and_closed_modes() {
        let scratch = tempfile::tempdir().unwrap();
        let from = scratch.path().join("from");
        std::fs::create_dir_all(from.join("base/1")).unwrap();
        std::fs::write(from.join("base/1/112"), vec![7_u8; 100_000]).unwrap();
        std::fs::write(from.join("PG_VERSION"), "18\n").unwrap();
        let to = scratch.path().join("to");
        copy_tree(&from, &to, None).unwrap();
        assert_eq!(
            std::fs::read(to.join("base/1/112")).unwrap(),
            vec![7_u8; 100_000]
        );
        assert_eq!(
            std::fs::read_to_string(to.join("PG_VERSION")).unwrap(),
            "18\n"
        );
        let mode = |path: &str| std::fs::metadata(to.join(path)).unwrap().mode() & 0o777;
        assert_eq!(
            (mode(""), mode("base/1"), mode("base/1/112")),
            (0o700, 0o700, 0o600)
        );
        assert!(bytes_on_disk(&to) >= 100_000);
    }

    #[test]
    fn a_link_in_a_data_directory_is_refused() {
        let scratch = tempfile::tempdir().unwrap();
        let from = scratch.path().join("from");
        std::fs::create_dir(&from).unwrap();
        std::os::unix::fs::symlink("/etc", from.join("pg_wal")).unwrap();
        let problem = copy_tree(&from, &scratch.path().join("to"), None).unwrap_err();
        assert!(problem.error.contains("pg_wal"));
    }

    #[test]
    fn an_existing_target_is_never_written_into() {
        let scratch = tempfile::tempdir().unwrap();
        let from = scratch.path().join("from");
        std::fs::create_dir(&from).unwrap();
        assert!(copy_tree(&from, scratch.path(), None).is_err());
    }

    #[test]
    fn a_file_is_replaced_whole() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("deltabench.conf");
        write_file(&path, "a long first version", None).unwrap();
        write_file(&path, "short", None).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "short");
        assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 1);
    }
}
