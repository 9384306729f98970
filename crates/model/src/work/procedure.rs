//! The published procedure: one server at a time, started once, all tests one after another.

use serde::{Deserialize, Serialize};

/// Seconds of a test that reads, as published.
pub const READ_SECONDS: u32 = 300;
/// Seconds of a test that writes, as published.
pub const WRITE_SECONDS: u32 = 600;

/// How long the parts of the procedure take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcedureSetup {
    /// Seconds of a test that reads.
    pub read_seconds: u32,
    /// Seconds of a test that writes.
    pub write_seconds: u32,
    /// Least seconds of vacuum, checkpoint and sleep after the writes; absent: as published, by rows.
    pub settle_seconds: Option<u32>,
}
