//! The sealed files that a store has opened, and reading rows from them or from the store itself.

use crate::error::StoreError;
use crate::sealed_run;
use rusqlite::Connection;
use std::cell::RefCell;
use std::path::{Path, PathBuf};

/// Sealed files that are kept open, the newest: an analysis reads those of a run and of the runs that belong
/// to it again and again.
const KEPT: usize = 4;

/// The sealed file of an archived run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedRun {
    /// The file.
    pub path: PathBuf,
    /// SHA-256 of it, lower-case hex.
    pub sha256: String,
    /// Its size.
    pub bytes: u64,
    /// Rows of the store that it holds.
    pub rows: u64,
    /// Blocks and visits that the run had done, as a list says them.
    pub(crate) done: (u64, u64),
}

/// The sealed files that were opened.
#[derive(Debug, Default)]
pub(crate) struct OpenedFiles(RefCell<Vec<(String, Result<Connection, String>)>>);

impl OpenedFiles {
    /// Reads with the file; nothing where it cannot be read, which [`Store::findings`] says.
    pub(crate) fn read<T: Default>(
        &self,
        file: &SealedRun,
        read: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut opened = self.0.borrow_mut();
        // One that could not be read may have been put back since, and one that was read may be gone.
        let is_there = sealed_run::fault_at_sight(&file.path, file.bytes).is_none();
        opened.retain(|(sha256, content)| *sha256 != file.sha256 || (content.is_ok() && is_there));
        if !opened.iter().any(|(sha256, _)| *sha256 == file.sha256) {
            let content = sealed_run::open(&file.path, &file.sha256, file.bytes);
            opened.push((file.sha256.clone(), content));
            let old = opened.len().saturating_sub(KEPT);
            opened.drain(..old);
        }
        let mut found = opened.iter().filter(|(sha256, _)| *sha256 == file.sha256);
        match found.next() {
            Some((_, Ok(content))) => read(content),
            _ => Ok(T::default()),
        }
    }

    /// Why a file is of no use, as far as that is known without reading it again.
    pub(crate) fn fault(&self, file: &SealedRun) -> Option<String> {
        let opened = self.0.borrow();
        let mut found = opened.iter().filter(|(sha256, _)| *sha256 == file.sha256);
        match found.next() {
            Some((_, Ok(_))) => sealed_run::fault_at_sight(&file.path, file.bytes),
            Some((_, Err(why))) => Some(why.clone()),
            None => sealed_run::fault_at_sight(&file.path, file.bytes),
        }
    }
}

/// The rows of a query, of one file or another.
pub(crate) fn collect_from<T>(
    connection: &Connection,
    path: &Path,
    sql: &str,
    values: impl rusqlite::Params,
    read: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<T>, StoreError> {
    let fail = |source| StoreError::sqlite(path, "read", source);
    let mut statement = connection.prepare_cached(sql).map_err(fail)?;
    let rows = statement.query_map(values, read).map_err(fail)?;
    rows.collect::<rusqlite::Result<Vec<T>>>().map_err(fail)
}
