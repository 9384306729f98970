//! What is asked for: servers, statements, a dump.

use crate::clock::ClockWish;
use crate::consent::Consent;
use crate::dump::{DumpFile, Survey};
use deltabench_capture::{Capture, Kind, Statement};
use deltabench_model::endpoint::{Endpoint, Login};
use deltabench_model::installation::Installation;
use deltabench_server::{DataDirectory, ServerUser};
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// A server of a replay as it was asked for.
#[derive(Debug, Clone)]
pub struct Wish {
    pub installation: Installation,
    /// The user's settings, in order: later ones win.
    pub settings: Vec<(String, String)>,
    /// The settings that reports name: those that were asked for one by one.
    pub named_settings: Vec<(String, String)>,
    /// Where a server listens that somebody else runs, and how to log in; absent: it is started here.
    pub theirs: Option<(Endpoint, Login)>,
}

/// Where the tables are from.
#[derive(Debug, Clone, Copy)]
pub enum Data<'a> {
    /// Servers of our own load it.
    Dump {
        file: &'a DumpFile,
        survey: &'a Survey,
    },
    /// Servers of our own have a copy of a data directory.
    Directory(DirectoryData<'a>),
    /// Servers of somebody else have them.
    AsIs,
}

/// A data directory that is copied.
#[derive(Debug, Clone, Copy)]
pub struct DirectoryData<'a> {
    pub directory: &'a DataDirectory,
    /// The database that is replayed on; absent: that of the capture, or the only one.
    pub database: Option<&'a str>,
}

impl<'a> Data<'a> {
    /// The dump that is loaded.
    pub fn dump(self) -> Option<(&'a DumpFile, &'a Survey)> {
        match self {
            Self::Dump { file, survey } => Some((file, survey)),
            Self::Directory(_) | Self::AsIs => None,
        }
    }

    /// The data directory that is copied.
    pub fn directory(self) -> Option<DirectoryData<'a>> {
        match self {
            Self::Directory(data) => Some(data),
            Self::Dump { .. } | Self::AsIs => None,
        }
    }

    /// Whether servers of our own have the tables.
    pub fn is_ours(self) -> bool {
        !matches!(self, Self::AsIs)
    }
}

/// What a replay does.
#[derive(Debug)]
pub struct Request<'a> {
    pub name: &'a str,
    /// The base first, then the candidates.
    pub servers: Vec<Wish>,
    pub capture: &'a Capture,
    /// The path of the capture, for the report.
    pub capture_path: &'a Path,
    /// Of the capture's file; absent for a directory.
    pub capture_sha256: Option<String>,
    pub data: Data<'a>,
    /// Whether values are made up for statements of which the capture has none.
    pub make_up: bool,
    /// How often each server draws statistics; servers of somebody else draw none.
    pub draws: u32,
    pub consent: Consent,
    /// Whether times are measured: with a copy of the base.
    pub timed: bool,
    /// Bytes of a database that is still copied for writes.
    pub copy_limit: u64,
    /// Clients of the mix, if one is wanted.
    pub mix: Option<u32>,
    /// The time of day of servers of our own.
    pub clock: ClockWish,
    /// Whether settings are looked for that bring the plans of the base back on candidates.
    pub why: bool,
    /// Limit of a statement, seconds.
    pub timeout_seconds: u32,
    /// Data checksums; absent: each version's own default.
    pub checksums: Option<bool>,
    /// Where servers live.
    pub workspaces: &'a Path,
    /// Where templates of data directories are kept.
    pub cache: &'a Path,
    pub user: &'a ServerUser,
    /// Set when the user wants to stop.
    pub interrupted: &'a AtomicBool,
}

/// Of each byte of rows in the dump so many on disk: tables, indexes, write-ahead log.
const GROWTH: u64 = 3;
/// And so many for a copy that writes change: tables and indexes.
const COPIED: u64 = 2;
/// An empty data directory with its log.
const EMPTY_BYTES: u64 = 200 << 20;

impl Request<'_> {
    /// How often statistics are drawn, with those that are there.
    pub fn draws(&self) -> u32 {
        match self.data.is_ours() {
            true => self.draws,
            false => 1,
        }
    }

    /// Disk that all servers need together, bytes: an estimate.
    pub fn disk_bytes(&self) -> u64 {
        let (data, copied) = match self.data {
            Data::Dump { survey, .. } => (
                survey.data_bytes.saturating_mul(GROWTH),
                survey.data_bytes.saturating_mul(COPIED),
            ),
            // Of a cluster with several databases only one is copied for writes.
            Data::Directory(data) => {
                let bytes = data.directory.bytes();
                (bytes, bytes.min(self.copy_limit))
            }
            Data::AsIs => return 0,
        };
        let may_write = |statement: &Statement| matches!(statement.kind, Kind::Write | Kind::Lock);
        let writes = self.consent.writes && self.capture.statements.iter().any(may_write);
        let copy = if writes && copied <= self.copy_limit {
            copied
        } else {
            0
        };
        let each = data.saturating_add(copy).saturating_add(EMPTY_BYTES);
        let servers = self.servers.len() + usize::from(self.timed);
        each.saturating_mul(deltabench_model::units::count(servers))
    }
}
