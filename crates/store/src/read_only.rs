//! A lab that cannot be written, as on a read-only file system or of somebody else's: a copy of its file is
//! read, brought to the newest schema.

use crate::error::StoreError;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Whether a file was not opened because it, or its directory, cannot be written.
pub fn cannot_be_written(error: &StoreError) -> bool {
    error.is_of_read_only()
}

/// A copy of a lab's file in a directory of its own, which goes with this.
#[derive(Debug)]
pub struct LabCopy(PathBuf);

impl LabCopy {
    /// Copies the file, and what was committed to its write-ahead log since.
    ///
    /// Errors: `Directory`.
    pub fn of(file: &Path) -> Result<Self, StoreError> {
        static COPIES: AtomicU32 = AtomicU32::new(0);
        let nth = COPIES.fetch_add(1, Ordering::Relaxed);
        let name = format!("deltabench-lab-{}-{nth}", std::process::id());
        let place = std::env::temp_dir().join(name);
        let fail = |path: &Path| {
            let path = path.to_owned();
            move |source| StoreError::Directory { path, source }
        };
        // Made here, and so nobody else's: temporary directories are open to all.
        std::fs::create_dir(&place).map_err(fail(&place))?;
        let copy = Self(place);
        let mut log = file.as_os_str().to_owned();
        log.push("-wal");
        for from in [file, Path::new(&log)] {
            if let (true, Some(name)) = (from.is_file(), from.file_name()) {
                let to = copy.0.join(name);
                let copied = std::fs::copy(from, &to);
                // It has got the mode of what could not be written.
                let usable = copied
                    .and_then(|_| std::fs::set_permissions(&to, Permissions::from_mode(0o600)));
                usable.map_err(fail(from))?;
            }
        }
        Ok(copy)
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.0
    }
}

impl Drop for LabCopy {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FILE_NAME, Store};
    use deltabench_model::finding::{Finding, FindingKind, Severity};

    #[test]
    fn a_copy_says_what_the_lab_says_and_takes_nothing_more() {
        let lab = tempfile::tempdir().unwrap();
        let file = crate::migrations::tests::format_1(lab.path());
        let before = std::fs::read(&file).unwrap();
        let mut copy = Store::open_copy(lab.path()).unwrap();
        assert_eq!(copy.path(), file);
        assert_eq!(copy.records("r").unwrap().len(), 2);
        let finding = Finding::new(FindingKind::own("host"), Severity::Note, "no");
        let refused = copy.add_finding("r", &finding).unwrap_err();
        assert!(cannot_be_written(&refused), "{refused}");
        let hint = deltabench_model::problem::Problem::from(refused).hint;
        assert!(hint.unwrap().starts_with("make the lab writable"));
        assert!(copy.again().is_none(), "a copy is not copied again");
        let place = copy.copy.as_ref().unwrap().directory().to_owned();
        assert!(place.is_dir());
        drop(copy);
        assert!(!place.exists());
        assert_eq!(std::fs::read(&file).unwrap(), before);
        assert_eq!(std::fs::read_dir(lab.path()).unwrap().count(), 1);
        assert_eq!(
            Store::open(lab.path()).unwrap().records("r").unwrap().len(),
            2
        );
    }

    #[test]
    fn a_file_that_is_no_store_is_not_taken_for_one_that_cannot_be_written() {
        let lab = tempfile::tempdir().unwrap();
        std::fs::write(lab.path().join(FILE_NAME), "text ".repeat(99)).unwrap();
        assert!(!cannot_be_written(&Store::open(lab.path()).unwrap_err()));
        assert!(matches!(
            Store::open_copy(lab.path()),
            Err(StoreError::Foreign { .. })
        ));
    }
}
