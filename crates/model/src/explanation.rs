//! Where a difference went: both profiles as one tree, and the lines that say most of it.

use crate::id::{CellId, NodeId, ServerId};

/// A cell of a run, explained.
#[derive(Debug, Clone, PartialEq)]
pub struct ExplainedCell {
    pub cell: CellId,
    /// The candidate; the other side is the base.
    pub candidate: ServerId,
    /// Where the difference went.
    pub explanation: Explanation,
    /// What weakens it, in words.
    pub notes: Vec<String>,
}

/// Instructions of a cell on the base and on a candidate, explained.
///
/// Shape: the first frame is the root and a frame comes after its parent; every instruction is in one frame.
/// Units: all figures are of `operations` operations together; divide by that for one of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// How many operations the figures are of.
    pub operations: u64,
    /// Both sides by call path.
    pub frames: Vec<Frame>,
    /// What accounts for most of the difference, largest first. No two share an instruction.
    pub lines: Vec<Line>,
    pub functions: FunctionCounts,
}

/// A function on a call path, with what it took on either side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The path that calls it; the root's is the root.
    pub parent: NodeId,
    /// Its name, without what the compiler appended.
    pub name: String,
    /// What the base calls the function that it took the place of.
    pub was: Option<String>,
    /// File name of the program or library that holds it; empty where that is not known.
    pub object: String,
    /// On which sides a function of that name is called at all, on whatever path.
    pub known: Known,
    pub base: Taken,
    pub candidate: Taken,
}

/// On which sides a function is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    Both,
    Base,
    Candidate,
}

/// What a function took on a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Taken {
    pub own: i64,
    /// With those of what it calls.
    pub all: i64,
    /// How often it was called.
    pub calls: i64,
}

/// A part of the difference that one place accounts for.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// What kind of place it is.
    pub place: Place,
    /// The path from below the root down to the function; the function alone where it is meant everywhere.
    pub names: Vec<String>,
    /// New and vanished functions that it was split into or put together from; they are in the figures.
    pub with: Vec<String>,
    /// The frames that are meant, each with all below it for a path, without for the others.
    pub frames: Vec<NodeId>,
    /// Instructions on the base, without those of other lines.
    pub base: i64,
    /// Instructions on the candidate, likewise.
    pub candidate: i64,
    pub base_calls: i64,
    pub candidate_calls: i64,
    /// Sampled time of its function on all paths: by itself where that is what the line speaks of, else with
    /// what it calls. Absent where it was not sampled, or too seldom.
    pub time: Option<TimeChange>,
    /// Larger parts of it, further down. They are in the figures above.
    pub inner: Vec<Self>,
}

/// Sampled time of a place, in nanoseconds per operation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimeChange {
    pub base_ns: f64,
    pub candidate_ns: f64,
    /// Lower end of the interval of the difference.
    pub low_ns: f64,
    /// Upper end.
    pub high_ns: f64,
}

/// What sampled time says of a difference that was counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agreement {
    /// The interval is on the count's side of zero.
    Agrees,
    /// It holds zero: the samples are too few.
    NotShown,
    /// It is on the other side.
    Against,
}

impl Agreement {
    /// The word in files, and in reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::NotShown => "not shown",
            Self::Against => "against",
        }
    }
}

/// What kind of place a line speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A path, with all that is called there.
    Path,
    /// What the function at the end of a path does itself.
    Itself,
    /// A function on all its paths, with what it was split into or put together from.
    Everywhere,
    /// The same with all that it calls; calls are those from outside of it.
    EverywhereWithCalls,
}

/// How many functions differ in their own instructions, over all paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FunctionCounts {
    /// Functions of both sides.
    pub all: u64,
    pub differ: u64,
    /// Those of them that differ by less than one instruction in an operation.
    pub slightly: u64,
}

impl Explanation {
    /// Instructions of both sides.
    pub fn total(&self) -> (i64, i64) {
        let root = self.frames.first();
        root.map_or((0, 0), |root| (root.base.all, root.candidate.all))
    }

    /// What the lines come to, of the difference of both sides: 1.0 is all of it. Absent if both are equal.
    pub fn accounted(&self) -> Option<f64> {
        let (base, candidate) = self.total();
        let told: i64 = self.lines.iter().map(Line::difference).sum();
        (base != candidate).then(|| {
            crate::units::signed_to_f64(told) / crate::units::signed_to_f64(candidate - base)
        })
    }
}

impl Frame {
    /// Instructions that the candidate takes more, here and below.
    pub fn difference(&self) -> i64 {
        self.candidate.all - self.base.all
    }
}

impl Line {
    /// Instructions that the candidate takes more.
    pub fn difference(&self) -> i64 {
        self.candidate - self.base
    }

    /// What time says of it; absent where that was not sampled.
    pub fn agreement(&self) -> Option<Agreement> {
        let time = self.time?;
        let (above, below) = (time.low_ns > 0.0, time.high_ns < 0.0);
        let more = self.difference() > 0;
        Some(match (above, below) {
            (false, false) => Agreement::NotShown,
            (above, _) if above == more => Agreement::Agrees,
            _ => Agreement::Against,
        })
    }

    /// Looks for the time of its function among those that were sampled, by itself and with what they call.
    pub fn find_time(&mut self, own: &Times<'_>, inclusive: &Times<'_>) {
        let times = match self.place {
            Place::Itself | Place::Everywhere => own,
            Place::Path | Place::EverywhereWithCalls => inclusive,
        };
        self.time = self.names.last().and_then(times);
        for inner in &mut self.inner {
            inner.find_time(own, inclusive);
        }
    }
}

/// Sampled time by the name of a function.
pub type Times<'a> = dyn Fn(&String) -> Option<TimeChange> + 'a;
