//! Builds that this process uses: no other deltabench removes them from a shared cache before it ends.
//!
//! Whoever got a build holds a shared lock on its stamp, and removing one takes the only lock. The kernel
//! releases locks when a process ends, however it ends.

use crate::files::failed;
use deltabench_model::problem::Problem;
use std::collections::BTreeMap;
use std::fs::{File, Metadata, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Open stamps, with their locks. One for the process: caches are opened and dropped between the moment when
/// a build is found and its measurement.
static HELD: Mutex<BTreeMap<PathBuf, File>> = Mutex::new(BTreeMap::new());

/// Holds a build until this process ends, or removes it; false if its stamp is gone.
///
/// Waits while another process removes it. On a file system without locks nothing is held.
pub(super) fn hold(stamp: &Path) -> Result<bool, Problem> {
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let file = match File::open(stamp) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(failed("open", stamp, &error)),
        };
        if file.lock_shared().is_err() {
            return Ok(true);
        }
        // Whoever was waited for may have removed it, and another one may have built it again.
        if is_at(&file, stamp) {
            held.insert(stamp.to_owned(), file);
            return Ok(true);
        }
    }
}

/// Whether a path still leads to this open file.
fn is_at(file: &File, path: &Path) -> bool {
    let place =
        |found: std::io::Result<Metadata>| found.map(|found| (found.dev(), found.ino())).ok();
    let open = place(file.metadata());
    open.is_some() && open == place(std::fs::metadata(path))
}

/// Does `remove` while no other process uses a build; false, and nothing is done, if one does.
pub(super) fn alone(
    stamp: &Path,
    remove: impl FnOnce() -> Result<(), Problem>,
) -> Result<bool, Problem> {
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    let own = held.remove(stamp);
    let was_held = own.is_some();
    if let Some(own) = own {
        // It would be in the way, and closing it is not enough: a process that another thread is starting has
        // it open until it runs its own program.
        own.unlock()
            .map_err(|error| failed("unlock", stamp, &error))?;
    }
    let file = File::open(stamp).map_err(|error| failed("open", stamp, &error))?;
    match file.try_lock() {
        Ok(()) => remove().map(|()| true),
        Err(TryLockError::WouldBlock) => {
            if was_held && file.lock_shared().is_ok() {
                held.insert(stamp.to_owned(), file);
            }
            Ok(false)
        }
        Err(TryLockError::Error(error)) => Err(failed("lock", stamp, &error)),
    }
}
