//! A step that is cut into turns.

use std::fmt;

/// How a step is cut into turns.
///
/// At the end of a turn all clients have inserted and deleted the same number of batches, and no statement is
/// under way. No time passes for the step between two turns: what is due is due later by as much.
pub struct Turns<'a> {
    /// Batches of each client in a turn.
    pub batches: u64,
    /// Hears of the end of every turn but the last, and returns when the next one may begin; false ends the
    /// step as an interruption does.
    pub between: &'a mut dyn FnMut(&TurnFigures) -> bool,
}

impl fmt::Debug for Turns<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "turns of {} batches", self.batches)
    }
}

/// What a step has come to at the end of a turn, all turns before included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TurnFigures {
    /// First send to last answer, nanoseconds, without the time between turns.
    pub ended_ns: u64,
    /// Statements that succeeded, by role.
    pub statements: [u64; 3],
    /// CPU of the client's threads, nanoseconds.
    pub client_cpu_ns: u64,
}
