//! What deltabench and a worker say to each other: one JSON object a line, an answer to each order.
//!
//! The worker measures itself: clocks are read where the work is done, so that no pipe is part of a figure.

use deltabench_model::work::rocksdb::{BlockCache, RocksdbSetup, RocksdbStep, StepFigures};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What a worker is told to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Load the library and make an empty database. The first order; [`Answer::Opened`].
    Open(Box<OpenOrder>),
    /// Carry a step out that is not measured; [`Answer::Prepared`].
    Prepare(StepOrder),
    /// Get ready for a measured step; [`Answer::Ready`].
    Begin(StepOrder),
    /// Do some of the step that was begun; [`Answer::Turned`].
    Turn(TurnOrder),
    /// The same in front of a counter of instructions, which writes down what it counted;
    /// [`Answer::Turned`].
    Count(TurnOrder),
    /// End the step that was begun, waiting where it waits; [`Answer::Finished`].
    Finish,
    /// Close the database and end; [`Answer::Closed`].
    Close,
}

/// How to open a database.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenOrder {
    pub library: PathBuf,
    /// Directory of the database; made here, and empty.
    pub directory: PathBuf,
    /// Sizes and common options.
    pub setup: RocksdbSetup,
    pub cache: BlockCache,
    /// Options of this target, by their names in option files; they win over those of the setup.
    pub options: Vec<(String, String)>,
}

/// A step to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepOrder {
    pub step: RocksdbStep,
    pub threads: u32,
    /// Seed of its keys: the same for all targets of a block.
    pub seed: u64,
    /// Whether a look-up of many keys lets them share reads of files; a library that cannot
    /// ([`Opened::batches`]) looks them up one by one all the same.
    pub batched: bool,
}

/// Some work of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnOrder {
    /// Which turn; its keys are a function of the step's seed, this and the thread.
    pub number: u32,
    /// Operations of all threads together. Where a step loads, they go on from where the turn before ended.
    pub operations: u64,
    /// Whether the library counts what it does (its performance context), which costs time: never in a turn
    /// that is measured.
    pub counted: bool,
    /// Whether all that is owed after it is worked off before it is answered, in time that is none of it:
    /// the library delays writers by a clock that goes on while they are frozen, so that nobody is to be
    /// frozen with a debt before a turn of writes that is measured.
    pub settle: bool,
}

/// What a worker answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    Opened(Box<Opened>),
    /// A step that is not measured is done.
    Prepared {
        /// How long it took, nanoseconds.
        duration_ns: u64,
        figures: StepFigures,
    },
    /// A step can be measured.
    Ready,
    Turned(Box<Turned>),
    Finished(StepFigures),
    Closed,
    /// The order could not be carried out; the library's own words. The worker goes on listening.
    Failed(String),
}

/// What a library says of itself, and what it took.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Opened {
    /// Options that this version does not know and that were left out, with its own words.
    pub left_out: Vec<(String, String)>,
    /// The cache that was made, in words: `lru`, `hyper-clock (sized by itself)`, `hyper-clock (entries of
    /// 8192 bytes)`.
    pub cache: String,
    /// What it says of itself that makes its figures doubtful, in its own words: a build with assertions.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Whether keys of one look-up can share reads of files.
    #[serde(default)]
    pub batches: bool,
    /// All options in force, from the file that the library wrote beside the database: by `SECTION.name`.
    pub in_force: BTreeMap<String, String>,
}

/// One turn: one slice.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Turned {
    /// Operations that succeeded, of all threads; the writer beside readers is not in it.
    pub operations: u64,
    /// Operations that the library refused.
    pub failed: u64,
    /// Keys found or gone over.
    pub rows: u64,
    /// First operation to the end of the last thread's last one, nanoseconds.
    pub duration_ns: u64,
    /// CPU of the whole process in that time, nanoseconds.
    pub cpu_ns: u64,
    /// Time its threads waited for a core in it, nanoseconds; absent where the kernel keeps none.
    pub run_queue_wait_ns: Option<u64>,
    /// Puts of the writer beside the readers.
    pub writer_operations: u64,
    /// Latency of each operation, nanoseconds: a serialized hdrhistogram (V2).
    pub latency_histogram: Vec<u8>,
    /// What the library counted, for a turn that was counted: by the names of its performance context, and
    /// `found_in_memtables` for gets: keys that were found and for which no block was looked at.
    pub counted: BTreeMap<String, u64>,
    /// The first refusal, in the library's words.
    pub first_error: Option<String>,
}
