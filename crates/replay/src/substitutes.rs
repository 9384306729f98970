//! Values that stand in for those that a capture lacks.

use deltabench_capture::{Capture, Statement, Tuple};
use std::collections::BTreeMap;
use std::fmt;

/// Values that were made up, and why some could not be. They are secrets: `Debug` shows none.
#[derive(Default)]
pub struct MadeUp {
    /// By statement.
    tuples: BTreeMap<String, Vec<Tuple>>,
    /// Reasons by statement.
    why_not: BTreeMap<String, String>,
}

impl fmt::Debug for MadeUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MadeUp")
            .field("statements", &self.tuples.len())
            .finish_non_exhaustive()
    }
}

/// The statements of a capture for which values may be made up. A redacted capture gets none: its own values
/// are made up in another way.
pub fn wanting(capture: &Capture) -> impl Iterator<Item = &Statement> {
    let statements = capture.statements.iter();
    statements.filter(|statement| !capture.header.redacted && statement.lacks_values())
}

impl MadeUp {
    /// Takes in the values of a statement, or why it has none.
    pub fn add(&mut self, statement: &Statement, made: Result<Vec<Tuple>, String>) {
        let id = statement.id.clone();
        match made {
            Ok(tuples) => drop(self.tuples.insert(id, tuples)),
            Err(why) => drop(self.why_not.insert(id, why)),
        }
    }

    /// Tuples of a statement; absent if none were made up.
    pub fn tuples(&self, statement: &Statement) -> Option<&[Tuple]> {
        self.tuples.get(&statement.id).map(Vec::as_slice)
    }

    /// Why a statement has none.
    pub fn why_not(&self, statement: &Statement) -> Option<&str> {
        self.why_not.get(&statement.id).map(String::as_str)
    }
}
