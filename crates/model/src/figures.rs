//! What a kind of benchmark shows of a run beside its verdicts, as plain data for every reader.

use crate::id::{CellId, ServerId};
use crate::table::{Span, Table};

/// All that a report says of a run besides the comparison and the plan, because of the kind of benchmark.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Figures {
    pub terminal: Vec<Block>,
    pub markdown: Vec<Block>,
    pub page: Vec<PageSection>,
    /// Second by second, for the page's script.
    pub series: Vec<StepSeries>,
    /// Fields of the JSON report.
    pub json: Vec<(&'static str, serde_json::Value)>,
    /// Forms of a report that only this kind has: name on the command line, and text.
    pub formats: Vec<(&'static str, String)>,
    /// What was asked for, instead of the rows for servers: name and value.
    pub setup: Vec<(&'static str, String)>,
    /// Whether figures over numbers of clients are shown in text too, and not on the page alone.
    pub grids_in_text: bool,
    /// Cells that are in no mean, with the candidate.
    pub left_out: Vec<(CellId, ServerId)>,
}

/// A section of a page.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PageSection {
    /// Its place on the page.
    pub id: &'static str,
    pub heading: &'static str,
    /// Its name in the way through the page; absent for one that stands among the details.
    pub name: Option<&'static str>,
    pub blocks: Vec<Block>,
}

/// A part of what is shown.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    Heading(String),
    /// A sentence or a few; where it is empty an empty line.
    Text(String),
    /// How what stands there is read.
    Legend(Vec<Span>),
    Table(Table),
    /// Each of them is to be minded.
    Notes(Vec<String>),
    /// What can be opened.
    Fold(Fold),
    /// Where the passes to be drawn are chosen.
    PassChoice,
    /// Where the script draws the series of this place.
    Series(usize),
    /// Values in order, drawn.
    Curves(Curves),
}

/// What can be opened.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Fold {
    pub title: String,
    /// A few words more.
    pub subtitle: String,
    pub class: &'static str,
    /// Whether it is open at first.
    pub open: bool,
    pub blocks: Vec<Block>,
}

/// Values in order, a line for each repetition.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Curves {
    pub title: String,
    /// What is drawn, for who hears the page.
    pub label: String,
    /// The value at the top; at the bottom is 0.
    pub most: f64,
    /// The ends of the scale in words: top, bottom.
    pub scale: (String, String),
    /// Whether these are what others are compared with.
    pub of_base: bool,
    /// What is not known is a gap.
    pub lines: Vec<Vec<Option<f64>>>,
}

/// A step on every server, second by second.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StepSeries {
    pub name: String,
    pub servers: Vec<(ServerId, Vec<PassSeries>)>,
}

/// A pass of a step on a server, second by second.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PassSeries {
    /// The pass, from 0.
    pub pass: u32,
    /// Start, nanoseconds since 1970.
    pub started_ns: u64,
    /// Length in nanoseconds; its last second may be cut short.
    pub duration_ns: u64,
    /// By role, in the order of the script: done in each second, and the slowest response in microseconds.
    pub roles: [Vec<(u64, u64)>; 3],
    /// Start and length of the turns that it was cut into, nanoseconds; none if it was not cut.
    pub turns: Vec<(u64, u64)>,
}

impl PassSeries {
    /// How far the pass was at a moment, nanoseconds. What was written while others had their turns, when the
    /// next turn had hardly begun, stands at its start. Absent before and after the pass.
    pub fn reached(&self, at_ns: u64) -> Option<u64> {
        if self.turns.is_empty() {
            let passed = at_ns.checked_sub(self.started_ns)?;
            return (passed < self.duration_ns).then_some(passed);
        }
        let mut before = 0;
        let mut found = None;
        for (started_ns, duration_ns) in &self.turns {
            match at_ns.checked_sub(*started_ns) {
                Some(passed) => found = Some((before, passed, *duration_ns)),
                None => break,
            }
            before += duration_ns;
        }
        let (before, passed, duration_ns) = found?;
        let is_last = before + duration_ns >= self.duration_ns;
        (passed < duration_ns || !is_last).then_some(before + passed.min(duration_ns))
    }
}
