//! Results that were withdrawn.

use crate::id::CellId;
use serde::{Deserialize, Serialize};

/// A run, or a cell of it, that somebody withdrew. Nothing is deleted: every report from then on says so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invalidation {
    /// The cell; absent for the whole run.
    pub cell: Option<CellId>,
    /// Why, in the words of who did it.
    pub reason: String,
    /// When, milliseconds since 1970.
    pub at_unix_ms: i64,
}
