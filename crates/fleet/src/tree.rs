//! Trees of files that travel: one hash for all that is in them, and copies that are whole or not there.

use crate::whole_file::{failed, left_over, remove, sha256, sync_directory_of};
use deltabench_model::problem::Problem;
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The bits of a mode that travel.
const MODE: u32 = 0o777;

/// SHA-256 over a tree, lower-case hex: relative paths in order, each with its kind, its mode, and its
/// content or where it leads to. Times and owners are not in it.
///
/// Errors: a file that cannot be read; one that is no file, directory or link.
pub(crate) fn hash(tree: &Path) -> Result<String, Problem> {
    let mut paths = Vec::new();
    list(tree, tree, &mut paths).map_err(|error| failed("read", tree, &error))?;
    paths.sort();
    let mut hash = Sha256::new();
    for path in paths {
        let place = tree.join(&path);
        let fail = |error: io::Error| failed("read", &place, &error);
        let data = fs::symlink_metadata(&place).map_err(fail)?;
        let mode = data.permissions().mode() & MODE;
        let (kind, mode, content) = if data.is_symlink() {
            let to = fs::read_link(&place).map_err(fail)?;
            ("link", 0, to.as_os_str().as_bytes().to_vec())
        } else if data.is_dir() {
            ("directory", mode, Vec::new())
        } else if data.is_file() {
            ("file", mode, sha256(&place)?.into_bytes())
        } else {
            return Err(Problem::new(format!("{} cannot travel", place.display()))
                .detail("it is no file, directory or link"));
        };
        // Lengths first: what follows cannot be taken for something else.
        let path = path.as_os_str().as_bytes();
        hash.update(format!(
            "{kind} {mode:o} {} {}\n",
            path.len(),
            content.len()
        ));
        hash.update(path);
        hash.update(content);
    }
    Ok(format!("{:x}", hash.finalize()))
}

fn list(tree: &Path, directory: &Path, paths: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            list(tree, &path, paths)?;
        }
        if let Ok(within) = path.strip_prefix(tree) {
            paths.push(within.to_owned());
        }
    }
    Ok(())
}

/// Makes `to` a copy of the tree with this hash, unless it is one: beside, made durable, then moved to its
/// place. What is there instead is replaced.
///
/// Errors: a tree that has another hash; a directory that cannot be written.
pub(crate) fn copied(from: &Path, to: &Path, wanted: &str) -> Result<(), Problem> {
    if to.exists() && hash(to)? == wanted {
        return Ok(());
    }
    let beside = to.with_extension(format!("new-{}", std::process::id()));
    remove(&beside);
    let fail = |error: io::Error| failed("copy to", to, &error);
    copy(from, &beside).map_err(|error| left_over("copy to", (to, &beside), &error))?;
    let found = hash(&beside)?;
    if found != wanted {
        remove(&beside);
        return Err(
            Problem::new(format!("{} is not what was shipped", from.display()))
                .detail(format!(
                    "SHA-256 over the tree is {found}, shipped was {wanted}"
                ))
                .hint("remove it, then give `deltabench fleet run` again"),
        );
    }
    if to.exists() && hash(to)? != wanted {
        remove(to);
    }
    let moved = fs::rename(&beside, to).and_then(|()| sync_directory_of(to));
    match moved {
        // Another process was quicker.
        Err(_) if to.exists() && hash(to)? == wanted => remove(&beside),
        moved => moved.map_err(fail)?,
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy(&source, &target)?;
            fs::set_permissions(&target, entry.metadata()?.permissions())?;
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(&source)?, &target)?;
        } else {
            fs::copy(&source, &target)?;
            File::open(&target)?.sync_all()?;
        }
    }
    File::open(to)?.sync_all()
}

/// The bytes of the files in a tree.
pub(crate) fn bytes_of(tree: &Path) -> u64 {
    let entries = fs::read_dir(tree).into_iter().flatten().flatten();
    let size = |entry: fs::DirEntry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => bytes_of(&entry.path()),
        Ok(kind) if kind.is_file() => entry.metadata().map_or(0, |data| data.len()),
        _ => 0,
    };
    entries.map(size).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(place: &Path) -> PathBuf {
        let tree = place.join("tree");
        fs::create_dir_all(tree.join("bin")).unwrap();
        fs::create_dir_all(tree.join("lib")).unwrap();
        fs::write(tree.join("bin/postgres"), "program").unwrap();
        fs::write(tree.join("lib/libpq.so.5"), "library").unwrap();
        std::os::unix::fs::symlink("libpq.so.5", tree.join("lib/libpq.so")).unwrap();
        tree
    }

    #[test]
    fn all_that_is_in_a_tree_is_in_its_hash() {
        let place = tempfile::tempdir().unwrap();
        let tree = tree(place.path());
        let before = hash(&tree).unwrap();
        let library = tree.join("lib/libpq.so.5");
        let mode = |bits| fs::set_permissions(&library, fs::Permissions::from_mode(bits)).unwrap();
        mode(0o755);
        let executable = hash(&tree).unwrap();
        mode(0o644);
        assert_eq!(hash(&tree).unwrap(), before);
        fs::write(&library, "another").unwrap();
        let content = hash(&tree).unwrap();
        fs::rename(&library, tree.join("lib/libpq.so.6")).unwrap();
        let renamed = hash(&tree).unwrap();
        fs::remove_file(tree.join("lib/libpq.so")).unwrap();
        let without = hash(&tree).unwrap();
        let mut all = vec![before, executable, content, renamed, without];
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 5);
    }

    #[test]
    fn a_copy_is_checked_and_one_that_was_changed_is_made_again() {
        let place = tempfile::tempdir().unwrap();
        let from = tree(place.path());
        let wanted = hash(&from).unwrap();
        let to = place.path().join("copy");
        copied(&from, &to, &wanted).unwrap();
        assert_eq!(hash(&to).unwrap(), wanted);
        fs::write(to.join("lib/libpq.so.5"), "damaged").unwrap();
        copied(&from, &to, &wanted).unwrap();
        assert_eq!(hash(&to).unwrap(), wanted);
        // What arrives is another tree: nothing is left of it.
        fs::write(from.join("lib/libpq.so.5"), "another").unwrap();
        let other = place.path().join("other");
        let problem = copied(&from, &other, &wanted).unwrap_err();
        assert!(
            problem.error.contains("is not what was shipped"),
            "{problem}"
        );
        let names = fs::read_dir(place.path()).unwrap().count();
        assert_eq!((names, other.exists()), (2, false));
    }
}
