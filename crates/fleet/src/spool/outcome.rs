//! How an execution ended, for whoever looks later: who watched may have been nobody.

use super::Spool;
use crate::whole_file::{read_json, remove, write_json};
use deltabench_model::problem::Problem;
use serde::{Deserialize, Serialize};

/// The file, beside the lanes.
const FILE: &str = "outcome.json";

/// The end of an execution: no lane waits or runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The exit code of the command that saw it.
    pub code: u8,
    /// Units that are not in the lab.
    pub missing: u32,
    /// Lanes that stopped because they could not write.
    pub stopped: Vec<Stopped>,
    /// Milliseconds since 1970.
    pub at_unix_ms: i64,
}

/// A lane that could not write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stopped {
    pub lane: u32,
    /// Where it ran last, as the engine calls it; absent where nobody knows.
    pub node: Option<String>,
}

impl Spool {
    /// Says how it ended.
    ///
    /// Errors: a directory that cannot be written.
    pub fn set_outcome(&self, outcome: &Outcome) -> Result<(), Problem> {
        write_json(&self.root.join(FILE), outcome)
    }

    /// How it ended; `None` as long as lanes wait or run, or nobody has looked since.
    pub fn outcome(&self) -> Option<Outcome> {
        read_json(&self.root.join(FILE))
    }

    /// Says that it goes on.
    pub fn forget_outcome(&self) {
        remove(&self.root.join(FILE));
    }
}
