//! How long and how often a plan measures.

use crate::cell::Cell;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// Seconds that a visit may be asked to take. The least is half of a slice: it measures nothing well, but
/// tests of commands can be short. In more than an hour the host changes.
pub const VISIT_SECONDS: RangeInclusive<f64> = 0.01..=3600.0;

/// Blocks that may be asked for. Intervals are as narrow as a host allows long before.
pub const BLOCKS: RangeInclusive<u32> = 1..=10_000;

/// Milliseconds that a slice may be asked to take. Of longer ones few fit into a visit.
pub const SLICE_MS: RangeInclusive<u32> = 1..=60_000;

/// Durations and counts that shape the measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    pub blocks: u32,
    /// Aim for the length of one slice, ms. The work of a slice is fixed from it at the start of each visit.
    pub slice_ms: u32,
    /// Random part of a slice's length, as a share: 0.2 means ±20 %.
    pub slice_jitter: f64,
    /// Measured seconds of one visit, for each server.
    pub visit_seconds: f64,
    /// The same of a visit to a cell that writes; absent: as of the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_seconds: Option<f64>,
    /// Discarded seconds at the start of a visit, for each server.
    pub warmup_seconds: f64,
    /// Whether the user chose the warm-up: it lasts so long, steady or not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub warmup_chosen: bool,
    /// Reconnects inside a visit: its rounds are divided over this many connections in turn.
    pub connections_per_visit: u32,
    /// Whether a visit is one pass on each server, one server after another: nothing is stopped or made anew
    /// in it, so checkpoints, vacuum and growth are part of what is measured.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sustained: bool,
    /// Whether servers run one at a time, each for its turns of a visit, however much memory there is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rotated: bool,
    /// Begin no block that would end past this many seconds of measuring; absent means run all blocks.
    pub deadline_seconds: Option<f64>,
}

impl Timing {
    /// Measured seconds of a visit to a cell, for each server.
    #[must_use]
    pub fn visit_of(&self, cell: &Cell) -> f64 {
        match self.write_seconds {
            Some(seconds) if cell.writes => seconds,
            _ => self.visit_seconds,
        }
    }
}
