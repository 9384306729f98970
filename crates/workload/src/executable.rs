//! A workload made ready for the driver: prepared statements and how to draw their parameters.
//!
//! One *operation* is all [`Step`]s in order, one round trip each. The parameters of an operation come from
//! one stream of random numbers, so the same seed gives the same operations on every server, whatever its
//! speed.

use rand_xoshiro::Xoshiro256PlusPlus;

/// The generator of all parameter streams; its output for a seed is fixed by its specification.
pub type Random = Xoshiro256PlusPlus;

/// A workload for given table sizes.
#[derive(Debug, Clone, PartialEq)]
pub struct Executable {
    /// Name of the workload.
    pub name: String,
    /// Every statement that any step can send; prepared once per connection, in this order.
    pub statements: Vec<Statement>,
    /// The steps of one operation.
    pub steps: Vec<Step>,
    /// Number of tables that a step with `draws_table` draws from.
    pub tables: u32,
}

/// A statement with `$1 …` placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// SQL text.
    pub sql: String,
    /// Type of each placeholder, in order.
    pub slots: Vec<Slot>,
}

/// Type and width of a placeholder; every value of a slot has the same width, so a Bind message is a
/// template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// `bigint` (OID 20), eight bytes, binary format. What sysbench binds for every integer.
    BigInt,
    /// `varchar` (OID 1043) of exactly this many bytes.
    Text(usize),
}

/// One round trip of an operation.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Candidates among [`Executable::statements`]: one for each table, or a single one.
    pub statements: Vec<usize>,
    /// Whether this step draws a new table; otherwise it uses the last one drawn.
    pub draws_table: bool,
    /// How the placeholders are filled, in order.
    pub values: Vec<Value>,
}

/// How some consecutive placeholders are filled.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// `count` independent uniform integers in `low..=high`.
    Uniform {
        /// Smallest value.
        low: i64,
        /// Largest value.
        high: i64,
        /// Placeholders filled.
        count: u32,
    },
    /// `start, start+1, …`: the same on every operation.
    Consecutive {
        /// First value.
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
    Digits {
        /// Number of groups.
        groups: u32,
        /// Digits in each.
        width: u32,
    },
}

/// Where drawn parameters go; the driver's Bind template implements it.
pub trait Slots {
    /// Sets placeholder `slot` (from 0) to an integer.
    fn set_big_int(&mut self, slot: usize, value: i64);
    /// The bytes of text placeholder `slot`, to be overwritten in full.
    fn text_mut(&mut self, slot: usize) -> &mut [u8];
}
