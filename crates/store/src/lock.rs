//! One measuring process per lab.

use crate::error::StoreError;
use crate::store::Store;
use deltabench_model::problem::Problem;
use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

/// Name of the lock file in the lab directory.
pub const LOCK_NAME: &str = "run.lock";

/// The runs whose last state is `running`, that of the newest state first.
const SELECT_RUNNING: &str = "select r.name from run r \
    join (select run, max(id) at from run_state group by run) e on e.run = r.id \
    join run_state s on s.id = e.at and s.state = 'running' \
    order by s.at_unix_ms desc, r.id desc";

/// Held while a run is measured; ends with the process, however that dies.
#[derive(Debug)]
pub struct RunLock {
    file: File,
    path: PathBuf,
}

impl RunLock {
    /// The lock file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for RunLock {
    fn drop(&mut self) {
        // Closing the file unlocks it too; this only makes it explicit and early.
        let _ = self.file.unlock();
    }
}

impl Store {
    /// Takes the lab for measuring `run`. Two runs at once would disturb each other, so it is the lab's.
    ///
    /// Errors: a problem that names the run and process holding it.
    pub fn lock_run(&self, run: &str) -> Result<RunLock, Problem> {
        self.try_lock_run(run)?
    }

    /// The run that took the lab last, by what the lock's file says, whether or not it still has it.
    pub fn lock_holder(&self) -> Option<String> {
        let text = std::fs::read_to_string(self.lab.join(LOCK_NAME)).ok()?;
        let name = text.strip_prefix("run ")?.split(',').next()?;
        Some(name.trim().to_owned())
    }

    /// The run that is measured now, if somebody has this lab's lock. A run that was killed stays `running`
    /// in the store, and nobody has the lock for it.
    ///
    /// Errors: `Sqlite`.
    pub fn measured(&self, is_locked: bool) -> Result<Option<String>, StoreError> {
        if !is_locked {
            return Ok(None);
        }
        let holder = self.lock_holder().unwrap_or_default();
        let running: Vec<String> = self.collect(SELECT_RUNNING, [], |row| row.get(0))?;
        // Parts of an experiment and further sessions are measured under the lock of the first one.
        let own = running.iter().find(|run| **run == holder);
        Ok(own.or(running.first()).cloned())
    }

    /// As [`Store::lock_run`], with the problem of a lab that is busy apart from others.
    ///
    /// Errors: the lock's file cannot be opened or written.
    pub fn try_lock_run(&self, run: &str) -> Result<Result<RunLock, Problem>, Problem> {
        let path = self.lab.join(LOCK_NAME);
        let fail = |source| {
            Problem::from(StoreError::Directory {
                path: path.clone(),
                source,
            })
        };
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(fail)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                // Only words for the message: an unreadable file is the same as an empty one.
                let _ = file.read_to_string(&mut holder);
                return Ok(Err(held(run, &path, holder.trim())));
            }
            Err(TryLockError::Error(source)) => return Err(fail(source)),
        }
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "run {run}, process {}", std::process::id()))
            .map_err(fail)?;
        Ok(Ok(RunLock { file, path }))
    }
}

fn held(run: &str, path: &Path, holder: &str) -> Problem {
    let holder = if holder.is_empty() {
        "another deltabench process"
    } else {
        holder
    };
    Problem::new(format!("cannot measure run {run}: this lab is busy"))
        .detail(format!("{} is held by {holder}", path.display()))
        .hint("wait for it to end, or use another lab with --lab DIR")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RunState;

    #[test]
    fn a_run_without_the_lock_has_stopped() {
        let place = tempfile::tempdir().unwrap();
        let mut store = Store::open(place.path()).unwrap();
        let plan = deltabench_testkit::small_run::plan();
        for (at, run) in (1..).zip(["killed", "live", "finished"]) {
            store.create_run(run, &plan, RunState::Running, at).unwrap();
        }
        store.finish_run("finished", RunState::Finished, 9).unwrap();
        let words = |is_locked: bool| {
            let measured = store.measured(is_locked).unwrap();
            let runs = store.runs().unwrap().into_iter();
            let word = |run: crate::RunSummary| {
                run.state
                    .word_if(measured.as_deref() == Some(run.run.as_str()))
            };
            runs.map(word).collect::<Vec<_>>()
        };
        assert_eq!(words(false), ["stopped", "stopped", "finished"]);
        let lock = store.lock_run("killed").unwrap();
        assert_eq!(words(true), ["running", "stopped", "finished"]);
        drop(lock);
        // Under the lock of the first part of an experiment the newest run is the one.
        let lock = store.lock_run("first part").unwrap();
        assert_eq!(words(true), ["stopped", "running", "finished"]);
        drop(lock);
    }

    #[test]
    fn a_lab_is_held_by_one_run_until_its_lock_is_dropped() {
        let lab = tempfile::tempdir().unwrap();
        let store = Store::open(lab.path()).unwrap();
        let first = store.lock_run("one").unwrap();
        let second = Store::open(lab.path())
            .unwrap()
            .lock_run("two")
            .unwrap_err();
        assert!(second.error.contains("run two"), "{second}");
        let me = format!("run one, process {}", std::process::id());
        assert!(second.detail.unwrap().ends_with(&me));
        assert_eq!(store.lock_holder().unwrap(), "one");
        drop(first);
        assert!(store.lock_run("two").is_ok());
    }
}
