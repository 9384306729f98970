//! What a kind of benchmark records of a whole piece of work, in a form that whoever keeps it need not know.

use crate::id::{CellId, ServerId};
use crate::slice::VoidReason;

/// A whole piece of work on one server, measured at a stretch. Raw: written once, never edited.
///
/// The same piece may be recorded again, when what it was part of was cut short: the later one counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// What the payload is, for example `insert-step`: a word of the kind that wrote it.
    pub kind: String,
    pub server: ServerId,
    pub cell: CellId,
    /// Block, from 0.
    pub block: u32,
    /// Why it does not count; absent for a good one.
    pub void: Option<VoidReason>,
    /// The rest, JSON: type and codec are the kind's.
    pub payload: String,
}
