//! A lab that cannot be written, as on a read-only file system or of somebody else's: a copy of its file is
//! read, brought to the newest schema.

use crate::error::StoreError;
use rusqlite::{Connection, OpenFlags};
use std::ffi::OsStr;
use std::fs::{DirBuilder, File, Permissions, TryLockError};
use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long to wait for another process that is writing to the same lab.
pub const BUSY: Duration = Duration::from_secs(30);

/// Names of copies: this, the process that made it, and a random number of [`DIGITS`] digits. No user calls
/// a lab like that, so that copies of processes that are gone may be removed.
const PREFIX: &str = "deltabench-copy-of-lab-";
/// Hexadecimal digits of a random number.
const DIGITS: usize = 16;

/// How often something is tried that another process may prevent.
const TRIES: u32 = 5;

/// A copy is kept at least for this many times what it took to make: copying takes no more than a twentieth
/// of a core that may measure.
const REST: u32 = 20;

/// Whether a file was not opened because it, or its directory, cannot be written.
pub fn cannot_be_written(error: &StoreError) -> bool {
    error.is_of_read_only()
}

/// A connection that changes nothing.
pub fn read_only(file: &Path) -> rusqlite::Result<Connection> {
    // A connection is only ever used by one thread at a time.
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file, flags)?;
    connection.busy_timeout(BUSY)?;
    Ok(connection)
}

/// What changes of a file when somebody writes to it: its number, size and time. `None` for one that is not
/// there or is empty, because whoever reads a lab may leave an empty log behind.
type Written = Option<(u64, u64, i64, i64)>;

fn written(file: &Path) -> Written {
    let data = file.metadata().ok().filter(|data| data.len() > 0)?;
    Some((data.ino(), data.len(), data.mtime(), data.mtime_nsec()))
}

/// A copy of a lab's file in a directory of its own, which goes with this.
#[derive(Debug)]
pub struct LabCopy {
    place: Place,
    /// The file that was copied, its write-ahead log, and what both were before.
    from: [PathBuf; 2],
    before: [Written; 2],
    made: Instant,
    took: Duration,
}

impl LabCopy {
    /// Copies the file, and what was committed to its write-ahead log since.
    ///
    /// Errors: `Directory`.
    pub fn of(file: &Path) -> Result<Self, StoreError> {
        let began = Instant::now();
        let place = Place::new()?;
        place.sweep();
        let mut log = file.as_os_str().to_owned();
        log.push("-wal");
        let from = [file.to_owned(), PathBuf::from(log)];
        let before = copy_all(&from, &place.path)?;
        Ok(Self {
            place,
            from,
            before,
            made: Instant::now(),
            took: began.elapsed(),
        })
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.place.path
    }

    /// Whether somebody has written to the lab since.
    pub fn is_outdated(&self) -> bool {
        self.now() != self.before
    }

    /// Whether it is so old that another one may be made.
    pub fn has_rested(&self) -> bool {
        self.made.elapsed() >= self.took * REST
    }

    /// A number for what is read and for what could be: it changes with both.
    pub fn version(&self) -> i64 {
        let mut hash = DefaultHasher::new();
        (self.before, self.now()).hash(&mut hash);
        hash.finish().cast_signed()
    }

    fn now(&self) -> [Written; 2] {
        self.from.each_ref().map(|file| written(file))
    }
}

/// Copies a file and its log so that they belong together; returns what they were before.
fn copy_all(from: &[PathBuf; 2], to: &Path) -> Result<[Written; 2], StoreError> {
    let [file, log] = from;
    let fail = |path: &Path| {
        let path = path.to_owned();
        move |source| StoreError::Directory { path, source }
    };
    // As long as somebody reads, what is in the log stays there: nobody moves more of it into the file than
    // the reader sees.
    let reader = reader(file);
    for _ in 0..TRIES {
        let before = from.each_ref().map(|file| written(file));
        // The file last: closing it ends the reader's lock on it, because locks are the process's (fcntl(2)).
        match copy(log, to) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(fail(log)(error)),
            _ => {}
        }
        copy(file, to).map_err(fail(file))?;
        // Without a reader, nobody may have moved anything meanwhile.
        let [is, _] = before;
        if reader.is_some() || written(file) == is {
            return Ok(before);
        }
    }
    Err(fail(file)(io::Error::other(
        "another process writes to it all the time",
    )))
}

/// Somebody who reads a file until this is dropped; `None` where it cannot be opened.
fn reader(file: &Path) -> Option<Connection> {
    let reader = read_only(file).ok()?;
    let begun = reader.execute_batch("begin; select count(*) from sqlite_schema");
    begun.is_ok().then_some(reader)
}

/// Copies a file into a directory, in place of an earlier copy.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let to = to.join(from.file_name().unwrap_or_default());
    match std::fs::remove_file(&to) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    std::fs::copy(from, &to)?;
    // It has got the mode of what could not be written.
    std::fs::set_permissions(&to, Permissions::from_mode(0o600))
}

/// A directory for a copy, which is removed with it.
#[derive(Debug)]
struct Place {
    path: PathBuf,
    /// Locked as long as the process lives, where directories can be locked.
    lock: File,
}

impl Place {
    /// Made here, and so nobody else's: temporary directories are open to all.
    fn new() -> Result<Self, StoreError> {
        let mut last = io::Error::other("no name is free");
        let mut path = std::env::temp_dir();
        for _ in 0..TRIES {
            let drawn = RandomState::new().build_hasher().finish();
            let name = format!("{PREFIX}{}-{drawn:0DIGITS$x}", std::process::id());
            path = std::env::temp_dir().join(name);
            match made(&path) {
                Ok(Some(lock)) => return Ok(Self { path, lock }),
                // Another process has removed it, because it was not locked yet.
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
                Err(source) => return Err(StoreError::Directory { path, source }),
            }
        }
        Err(StoreError::Directory { path, source: last })
    }

    /// Removes the copies of this user that processes left which were killed.
    fn sweep(&self) {
        let own = self.path.metadata().map(|data| data.uid()).ok();
        let all = std::fs::read_dir(std::env::temp_dir())
            .into_iter()
            .flatten()
            .flatten();
        for left in all.filter(|one| is_name_of_copy(&one.file_name())) {
            // Not through a link.
            let data = left.metadata().ok().filter(std::fs::Metadata::is_dir);
            if data.map(|data| data.uid()) != own {
                continue;
            }
            let lock = File::open(left.path());
            if lock.is_ok_and(|lock| lock.try_lock().is_ok() && is_at(&lock, &left.path())) {
                let _ = std::fs::remove_dir_all(left.path());
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
        // Closing it unlocks it too; this only makes it explicit.
        let _ = self.lock.unlock();
    }
}

/// Makes a directory and locks it; `None` if it is gone.
fn made(path: &Path) -> io::Result<Option<File>> {
    DirBuilder::new().mode(0o700).create(path)?;
    let Ok(lock) = File::open(path) else {
        return Ok(None);
    };
    let is_ours = match lock.try_lock() {
        Ok(()) => is_at(&lock, path),
        Err(TryLockError::WouldBlock) => false,
        // Directories cannot be locked here, and so nobody removes it.
        Err(TryLockError::Error(_)) => true,
    };
    Ok(is_ours.then_some(lock))
}

/// Whether a directory still has the name by which it was opened.
fn is_at(opened: &File, path: &Path) -> bool {
    let number = |data: io::Result<std::fs::Metadata>| data.map(|data| data.ino()).ok();
    number(opened.metadata()) == number(path.symlink_metadata())
}

fn is_name_of_copy(name: &OsStr) -> bool {
    let parts = { name.to_str() }
        .and_then(|name| name.strip_prefix(PREFIX))
        .and_then(|rest| rest.split_once('-'));
    parts.is_some_and(|(process, drawn)| {
        process.parse::<u32>().is_ok()
            && drawn.len() == DIGITS
            && drawn.bytes().all(|digit| digit.is_ascii_hexdigit())
    })
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

    /// A lab with an older schema that somebody keeps open, with a log, as labs have one.
    fn older(lab: &Path) -> Connection {
        let file = crate::migrations::tests::format_1(lab);
        let raw = Connection::open(file).unwrap();
        raw.query_row("pragma journal_mode = wal", [], |_| Ok(()))
            .unwrap();
        raw
    }

    fn add_run(raw: &Connection, id: u32) {
        let run = "insert into run values (?1, ?2, '{}', 0, '0')";
        raw.execute(run, (id, format!("run {id}"))).unwrap();
    }

    fn has(store: &Store, id: u32) -> bool {
        store.run_id(&format!("run {id}")).is_ok()
    }

    /// Until a copy is so old that another one is made.
    fn renew(store: &mut Store) {
        let rested = |store: &Store| store.copy.as_ref().is_none_or(LabCopy::has_rested);
        while !rested(store) {
            std::thread::yield_now();
        }
        store.renew().unwrap();
    }

    #[test]
    fn a_copy_hears_of_what_is_written_to_its_lab_and_is_then_made_again() {
        let lab = tempfile::tempdir().unwrap();
        let raw = older(lab.path());
        let mut seen = Store::open_to_read(lab.path()).unwrap();
        let (version, place) = (
            seen.data_version().unwrap(),
            seen.copy.as_ref().unwrap().directory().to_owned(),
        );
        renew(&mut seen);
        assert_eq!(seen.data_version().unwrap(), version);
        assert!(place.is_dir(), "nothing is new, and nothing was copied");
        add_run(&raw, 7);
        assert_ne!(seen.data_version().unwrap(), version);
        renew(&mut seen);
        assert!(has(&seen, 7) && !place.exists());
        // Another version takes the lab over: then its own file is read.
        let version = seen.data_version().unwrap();
        let mut night = Store::open(lab.path()).unwrap();
        let plan = deltabench_testkit::small_run::plan();
        { night.create_run("new", &plan, crate::RunState::Running, 1) }.unwrap();
        assert_ne!(seen.data_version().unwrap(), version);
        seen.renew().unwrap();
        assert!(seen.reached("new").unwrap().is_some());
        assert!(seen.copy.is_none());
    }

    #[test]
    fn what_is_copied_belongs_together_whatever_is_written_meanwhile() {
        let lab = tempfile::tempdir().unwrap();
        let raw = older(lab.path());
        add_run(&raw, 7);
        let file = lab.path().join(FILE_NAME);
        let log = lab.path().join(format!("{FILE_NAME}-wal"));
        let to = tempfile::tempdir().unwrap();
        let reads = reader(&file).unwrap();
        copy(&log, to.path()).unwrap();
        for id in 10..20 {
            // Pages that the log did not have.
            let step = "insert into step values (?1, 3, 0, 1, 2, printf('%.20000c', '{'))";
            raw.execute(step, [id]).unwrap();
            // Moves the log into the file, as far as no reader is in the way.
            raw.query_row("pragma wal_checkpoint", [], |_| Ok(()))
                .unwrap();
        }
        copy(&file, to.path()).unwrap();
        drop(reads);
        let copied = Connection::open(to.path().join(FILE_NAME)).unwrap();
        let said = copied.query_row("pragma integrity_check", [], |row| row.get::<_, String>(0));
        assert_eq!(said.unwrap(), "ok");
        let has_run = copied.query_row("select 1 from run where id = 7", [], |_| Ok(()));
        has_run.unwrap();
    }

    #[test]
    fn copies_that_a_killed_process_left_go_and_nothing_else() {
        let place = Place::new().unwrap();
        let temp = std::env::temp_dir();
        let made = |name: &str| {
            let path = temp.join(name);
            std::fs::create_dir(&path).unwrap();
            path
        };
        let process = std::process::id();
        let left = made(&format!("{PREFIX}{process}-00000000000000ff"));
        // Somebody's own, by whatever name.
        let others = [
            made(&format!("{PREFIX}{process}-ff")),
            made(&format!("{PREFIX}mine-{process}")),
            made(&format!("deltabench-lab-{process}-1")),
        ];
        let alive = Place::new().unwrap();
        place.sweep();
        let is_there = others.iter().all(|path| path.is_dir());
        others
            .iter()
            .for_each(|path| std::fs::remove_dir(path).unwrap());
        assert!(is_there && alive.path.is_dir() && place.path.is_dir());
        assert!(!left.exists());
        let mode = alive.path.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }
}
