//! Instructions counted: exact numbers of work, without time.

use crate::id::{CellId, ServerId};
use serde::{Deserialize, Serialize};

/// How instructions are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counting {
    /// Starts of each server, each on the data as loaded.
    pub starts: u32,
    /// Windows of operations that are counted in each cell of a start.
    pub windows: u32,
    /// Begin no cell after so many seconds, set-up included; absent: all cells are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u32>,
}

/// The cells of a run whose instructions are counted once it is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CountedAfter {
    /// Those that changed, as far as a short time allows.
    Changed,
    All,
}

impl Default for Counting {
    /// Two starts, so that what differs between them is seen, and two windows with keys of their own.
    fn default() -> Self {
        Self {
            starts: 2,
            windows: 2,
            seconds: None,
        }
    }
}

/// What one backend did between two marks: a window of operations, all of one cell.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CountRecord {
    /// Whose.
    pub server: ServerId,
    /// Of which cell.
    pub cell: CellId,
    /// In which start of the server, from 0.
    pub start: u32,
    /// Which window of the cell, from 0; those with the same number have the same operations everywhere.
    pub window: u32,
    /// Operations done.
    pub operations: u64,
    /// User instructions between the marks, those of the marks included.
    pub instructions: u64,
    /// User instructions of the marks alone, from an empty window.
    pub of_marks: u64,
    /// User instructions that are left out: what the clock called for and no operation did, and what the
    /// allocator took above its price. Below 0 where that fell into the empty window, or the price is higher.
    pub of_clock: i64,
    /// Rows that came back.
    pub rows: u64,
    /// Operations that ended with an error.
    pub failed: u64,
    /// CPU of the server's other processes meanwhile over that of the backend; absent where it cannot be
    /// told.
    pub beside: Option<f64>,
}

impl CountRecord {
    /// User instructions of the operations alone.
    #[must_use]
    pub fn net(&self) -> u64 {
        let without_marks = self.instructions.saturating_sub(self.of_marks);
        without_marks.saturating_add_signed(self.of_clock.saturating_neg())
    }
}
