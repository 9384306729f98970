//! The published procedure: one server at a time, started once, all tests one after another.

use serde::{Deserialize, Serialize};

/// Seconds of a test that reads, as published.
pub const READ_SECONDS: u32 = 300;
/// Seconds of a test that writes, as published.
pub const WRITE_SECONDS: u32 = 600;

/// Seconds of each test before it counts, as published: the script resets its figures after so many.
pub const WARMUP_SECONDS: u32 = 5;

/// How long the parts of the procedure take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcedureSetup {
    /// Seconds of a test that reads.
    pub read_seconds: u32,
    /// Seconds of a test that writes.
    pub write_seconds: u32,
    /// Least seconds of vacuum, checkpoint and sleep after the writes; absent: as published, by rows.
    pub settle_seconds: Option<u32>,
    /// Seconds of each test before it counts, on the same connections.
    #[serde(default, skip_serializing_if = "none")]
    pub warmup_seconds: u32,
    /// Whether tables have a primary key; else an ordinary index on `id`, as with `usepk = 0` of the
    /// published script.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub primary_key: bool,
}

// What serde calls.

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn none(seconds: &u32) -> bool {
    *seconds == 0
}

fn yes() -> bool {
    true
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_yes(value: &bool) -> bool {
    *value
}
