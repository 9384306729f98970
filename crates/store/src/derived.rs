//! What was computed from runs, kept so that it is computed once: a file of its own beside the store.
//!
//! No record is in it, and it may be deleted at any time. Each value names what it was made from, so one that
//! does not fit any more is not used. A file that cannot be opened, read or written makes things slower and
//! nothing else.

use rusqlite::{Connection, ErrorCode};
use std::cell::{Cell, OnceCell};
use std::path::Path;
use std::time::Duration;

/// Name of the file in the lab directory.
pub const DERIVED_NAME: &str = "history.sqlite";

/// What SQLite calls the kind of the file: "DLTH".
pub(crate) const APPLICATION_ID: i64 = 0x444C_5448;
/// Its format. A file of another one is emptied, because everything in it can be computed again.
const FORMAT: i64 = 1;
/// How long to wait for another process. Nobody keeps the file for longer than a value takes to write.
const BUSY: Duration = Duration::from_millis(500);
/// In KiB: rows of one analysis are next to each other and read once.
const CACHE_KIB: i64 = 8_192;

const CREATE: &str = "create table if not exists kept (what text not null, run text not null, \
    made_from text not null, value text not null, primary key (what, run))";

/// The file, opened when it is needed first.
#[derive(Debug, Default)]
pub(crate) struct Derived {
    file: OnceCell<Option<Connection>>,
    /// Whether it has failed once. Then it is left alone, because each further try may wait.
    pub(crate) is_broken: Cell<bool>,
}

impl Derived {
    pub(crate) fn file(&self, lab: &Path) -> Option<&Connection> {
        if self.is_broken.get() {
            return None;
        }
        let file = self.file.get_or_init(|| open(&lab.join(DERIVED_NAME)));
        file.as_ref()
    }

    /// The result, or none of a file that is not used any more.
    pub(crate) fn done<T>(&self, result: rusqlite::Result<T>) -> Option<T> {
        if result.is_err() {
            self.is_broken.set(true);
        }
        result.ok()
    }
}

/// Opens the file, created again if it is damaged; `None` where it cannot be used.
fn open(path: &Path) -> Option<Connection> {
    match prepared(path) {
        Ok(file) => file,
        Err(error) if is_damaged(&error) => {
            for ending in ["", "-wal", "-shm"] {
                let mut name = path.as_os_str().to_owned();
                name.push(ending);
                let _ = std::fs::remove_file(name);
            }
            prepared(path).ok().flatten()
        }
        Err(_) => None,
    }
}

fn is_damaged(error: &rusqlite::Error) -> bool {
    let damaged = [ErrorCode::NotADatabase, ErrorCode::DatabaseCorrupt];
    error
        .sqlite_error_code()
        .is_some_and(|code| damaged.contains(&code))
}

/// `None` for a file of somebody else, and of a version that is newer.
fn prepared(path: &Path) -> rusqlite::Result<Option<Connection>> {
    let file = Connection::open(path)?;
    file.busy_timeout(BUSY)?;
    let number = |name: &str| file.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let tables: i64 = file.query_row("select count(*) from sqlite_master", [], |row| row.get(0))?;
    let (id, format) = (number("application_id")?, number("user_version")?);
    if (tables > 0 && id != APPLICATION_ID) || format > FORMAT {
        return Ok(None);
    }
    // What is lost with the power is computed again; the file stays whole.
    file.query_row("pragma journal_mode = wal", [], |_| Ok(()))?;
    file.pragma_update(None, "synchronous", "normal")?;
    file.pragma_update(None, "cache_size", -CACHE_KIB)?;
    if format < FORMAT {
        file.execute_batch("drop table if exists kept")?;
        file.pragma_update(None, "application_id", APPLICATION_ID)?;
        file.pragma_update(None, "user_version", FORMAT)?;
    }
    file.execute_batch(CREATE)?;
    Ok(Some(file))
}
