//! A workload made ready for the driver: statements and how to draw their parameters.
//!
//! One *operation* is all [`Step`]s of one [`Script`] in order, one round trip each. What is drawn comes
//! from [`Draws`], a function of the seed and of the operation's number, so the same seed gives the same
//! operations on every server, whatever its speed and whichever thread sends them.

use crate::permutation::Permutation;
use crate::pgbench::Program;
use crate::seed::{Random, stream};
use crate::zipf::Zipf;
use deltabench_model::units::count;
use std::ops::Range;

/// A workload for given table sizes.
#[derive(Debug, Clone, PartialEq)]
pub struct Executable {
    pub name: String,
    /// Every statement that any step can send; the prepared ones are prepared once per connection.
    pub statements: Vec<Statement>,
    /// The steps of all scripts, one script after the other.
    pub steps: Vec<Step>,
    /// What an operation can be; one of them is drawn for each.
    pub scripts: Vec<Script>,
    /// Number of tables that a step chooses from.
    pub tables: u32,
    /// How many operations there are before a sequence that must not repeat would; absent: any number.
    pub operations_max: Option<u64>,
    /// Operations of one slice, if the workload fixes them.
    pub slice_operations: Option<u64>,
    /// Whether each operation has a connection of its own, opened before it and closed after it.
    pub reconnects: bool,
    /// What is carried out in the place of steps, if it is a mix of pgbench's scripts.
    pub program: Option<Program>,
}

impl Executable {
    /// A workload of one script.
    pub fn single(
        name: &str,
        statements: Vec<Statement>,
        steps: Vec<Step>,
        tables: u32,
    ) -> Executable {
        let script = Script::new(None, 1, 0, &steps);
        Executable {
            name: name.to_owned(),
            statements,
            steps,
            scripts: vec![script],
            tables,
            operations_max: None,
            slice_operations: None,
            reconnects: false,
            program: None,
        }
    }
}

/// One of the things that an operation can be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// What the file calls it, if it does.
    pub name: Option<String>,
    /// How often it is drawn, relative to the others.
    pub weight: u32,
    /// Its part of [`Executable::steps`].
    pub steps: Range<usize>,
    /// Whether parameters are shared between its steps.
    pub(crate) shares: bool,
    /// Whether its tables take turns.
    pub(crate) takes_turns: bool,
}

impl Script {
    /// A script of `steps`, which begin at `start` of all steps.
    pub(crate) fn new(name: Option<String>, weight: u32, start: usize, steps: &[Step]) -> Self {
        let shares = |step: &Step| {
            let shared = |value: &Value| matches!(value, Value::Shared { .. });
            step.values.iter().any(shared)
        };
        Self {
            name,
            weight,
            steps: start..start + steps.len(),
            shares: steps.iter().any(shares),
            takes_turns: steps.iter().any(|step| step.table == TableChoice::Turn),
        }
    }
}

/// A statement with `$1 …` placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    pub sql: String,
    /// Type of each placeholder, in order.
    pub slots: Vec<Slot>,
    /// Whether it is prepared once and then executed, or sent as text with its parameters spelled out.
    pub prepared: bool,
}

impl Statement {
    /// A statement that is prepared once per connection.
    pub fn prepared(sql: impl Into<String>, slots: Vec<Slot>) -> Self {
        Self {
            sql: sql.into(),
            slots,
            prepared: true,
        }
    }

    /// The text between the placeholders, and the placeholders; what stands between quotes is text.
    pub fn pieces(&self) -> Vec<Piece<'_>> {
        let mut pieces = Vec::new();
        let mut quote = None;
        let (mut start, mut skip) = (0, 0);
        for (at, letter) in self.sql.char_indices() {
            match (letter, quote) {
                _ if at < skip => {}
                ('\'' | '"', None) => quote = Some(letter),
                (_, Some(open)) if letter == open => quote = None,
                ('$', None) => {
                    let after = self.sql.get(at + 1..).unwrap_or_default();
                    let digits = after
                        .find(|c: char| !c.is_ascii_digit())
                        .unwrap_or(after.len());
                    let number = after
                        .get(..digits)
                        .and_then(|digits| digits.parse::<usize>().ok());
                    let Some(slot) = number.and_then(|number| number.checked_sub(1)) else {
                        continue;
                    };
                    pieces.push(Piece::Text(self.sql.get(start..at).unwrap_or_default()));
                    pieces.push(Piece::Slot(slot));
                    start = at + 1 + digits;
                    skip = start;
                }
                _ => {}
            }
        }
        pieces.push(Piece::Text(self.sql.get(start..).unwrap_or_default()));
        pieces.retain(|piece| *piece != Piece::Text(""));
        pieces
    }
}

/// Part of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// SQL as it is.
    Text(&'a str),
    /// The value of this slot, from 0.
    Slot(usize),
}

/// Type and width of a placeholder; every value of a slot has the same width, so a Bind message is a
/// template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// `bigint` (OID 20), eight bytes, binary format. What sysbench binds for every integer.
    BigInt,
    /// `varchar` (OID 1043) of exactly this many bytes: letters, digits and `-`.
    Text(usize),
}

/// One round trip of an operation.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Candidates among [`Executable::statements`]: one for each table, or a single one.
    pub statements: Vec<usize>,
    /// Which table it goes to.
    pub table: TableChoice,
    /// How the placeholders are filled, in order.
    pub values: Vec<Value>,
}

/// How a step comes to its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableChoice {
    /// Drawn, uniformly.
    Draw,
    /// The one of the step before.
    Keep,
    /// Always the same for one client: its number modulo the number of tables.
    Client,
    /// One after the other: the number of the operation modulo the number of tables.
    Turn,
}

/// How some consecutive placeholders are filled.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// `count` independent uniform integers in `low..=high`.
    Uniform {
        low: i64,
        high: i64,
        /// Placeholders filled.
        count: u32,
    },
    /// `count` independent integers from `low` on, the nearer to `low` the more often.
    Zipf {
        /// Most frequent value: rank 1.
        low: i64,
        rank: Zipf,
        /// Placeholders filled.
        count: u32,
    },
    /// The value of a sequence that belongs to this operation, by its number.
    Sequence(Sequence),
    /// `start, start+1, …`: the same on every operation.
    Consecutive {
        start: i64,
        /// Placeholders filled.
        count: u32,
    },
    /// A uniform integer x in `low..=high` and then `x + add`: two placeholders.
    Range {
        /// Smallest start.
        low: i64,
        /// Largest start.
        high: i64,
        /// Distance of the end from the start.
        add: i64,
    },
    /// Groups of random digits joined by `-`, as sysbench writes `c` and `pad`: one text placeholder.
    Digits { groups: u32, width: u32 },
    /// Random lower-case letters: one text placeholder.
    Letters { length: u32 },
    /// Another value, with the same draw wherever it stands in an operation.
    Shared {
        /// Tells the shared values of a workload apart.
        number: u32,
        value: Box<Value>,
    },
}

/// Values that come one after the other, each once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sequence {
    /// The smallest value.
    pub low: i64,
    /// How many values there are; after them it starts again.
    pub count: u64,
    /// Their order, unless they ascend.
    pub order: Option<Permutation>,
}

impl Sequence {
    /// The value with this number, from 0.
    #[inline]
    pub fn value(&self, number: u64) -> i64 {
        let number = if number < self.count {
            number
        } else {
            number.checked_rem(self.count).unwrap_or(0)
        };
        let place = match &self.order {
            Some(permutation) => permutation.place(number),
            None => number,
        };
        self.low.wrapping_add(place.cast_signed())
    }
}

/// What the operations of a slice are drawn from: each a function of the seed and of its number, so it does
/// not matter in which order, and by how many threads, they are drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draws {
    seed: u64,
    /// Operations of this cell before the slice.
    first_operation: u64,
    /// The next operation of the slice, from 0.
    number: u64,
}

impl Draws {
    /// The draws of a seed; `first_operation` operations of this cell came before.
    pub fn new(seed: u64, first_operation: u64) -> Self {
        Self {
            seed,
            first_operation,
            number: 0,
        }
    }

    /// Goes on with the operation of this number in the slice, from 0.
    #[inline]
    pub fn go_to(&mut self, number: u64) {
        self.number = number;
    }

    /// The random numbers of the next operation, and its number among all of the cell.
    #[inline]
    pub(crate) fn next(&mut self) -> (Random, u64) {
        let number = self.number;
        self.number = number.wrapping_add(1);
        let position = self.first_operation.wrapping_add(number);
        (stream(self.seed, &[number]), position)
    }
}

/// Where the drawn parameters of one statement go; the driver's Bind template implements it.
pub trait Slots {
    /// Sets placeholder `slot` (from 0) to an integer.
    fn set_big_int(&mut self, slot: usize, value: i64);
    /// The bytes of text placeholder `slot`, to be overwritten in full.
    fn text_mut(&mut self, slot: usize) -> &mut [u8];
    /// All placeholders have been filled.
    fn finish(&mut self) {}
}

/// Where the drawn operation goes.
pub trait Outbox {
    /// The placeholders of one statement.
    type Slots: Slots;
    /// Says that `step` (an index into [`Executable::steps`]) will send `statement` (an index into
    /// [`Executable::statements`]), and asks where its parameters go; without a place none are drawn.
    fn step(&mut self, step: usize, statement: usize) -> Option<&mut Self::Slots>;
}

impl Value {
    /// Number of placeholders it fills.
    pub fn slots(&self) -> usize {
        match self {
            Self::Uniform { count, .. }
            | Self::Zipf { count, .. }
            | Self::Consecutive { count, .. } => deltabench_model::units::index(u64::from(*count)),
            Self::Range { .. } => 2,
            Self::Sequence(_) | Self::Digits { .. } | Self::Letters { .. } => 1,
            Self::Shared { value, .. } => value.slots(),
        }
    }
}

/// Weights of scripts added up.
pub(crate) fn total_weight(scripts: &[Script]) -> u64 {
    scripts.iter().map(|script| u64::from(script.weight)).sum()
}

/// Number of steps of a script.
pub(crate) fn step_count(script: &Script) -> u64 {
    count(script.steps.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_in_quotes_are_text() {
        let statement = Statement::prepared("a=$1 b='$2' c=\"$1\" d=$12 e=$ f='''$3'", vec![]);
        assert_eq!(
            statement.pieces(),
            [
                Piece::Text("a="),
                Piece::Slot(0),
                Piece::Text(" b='$2' c=\"$1\" d="),
                Piece::Slot(11),
                Piece::Text(" e=$ f='''$3'"),
            ]
        );
        assert_eq!(Statement::prepared("$1", vec![]).pieces(), [Piece::Slot(0)]);
    }

    #[test]
    fn a_sequence_without_order_ascends_and_starts_again() {
        let sequence = Sequence {
            low: -1,
            count: 3,
            order: None,
        };
        let values: Vec<i64> = (0..7).map(|number| sequence.value(number)).collect();
        assert_eq!(values, [-1, 0, 1, -1, 0, 1, -1]);
    }
}
