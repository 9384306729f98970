//! The built-in workloads do what the published ones do, and the language what its guide says.
// The lints' exception for tests stops at helper functions.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod draws;
mod examples;
mod guide;
mod language;
mod library;
mod pgbench;
mod published;
mod variants;

use deltabench_model::plan::DataSize;
use deltabench_workload::executable::{Draws, Executable, Outbox, Slot, Slots};
use deltabench_workload::{Definition, Library};

const SIZE: DataSize = DataSize {
    tables: 8,
    rows: 10_000,
};

/// What was drawn for one statement.
#[derive(Debug, Default, Clone, PartialEq)]
struct Drawn {
    step: usize,
    sql: String,
    numbers: Vec<i64>,
    texts: Vec<Vec<u8>>,
    finished: bool,
}

impl Drawn {
    /// The table that it goes to, from 1, if its name ends in a number.
    fn table(&self) -> Option<u32> {
        let (_, rest) = self.sql.split_once("sbtest")?;
        let end = rest.find(|c: char| !c.is_ascii_digit());
        rest[..end.unwrap_or(rest.len())].parse().ok()
    }

    /// Its SQL with `T` for the table.
    fn anywhere(&self) -> String {
        match self.table() {
            Some(table) => self.sql.replace(&format!("sbtest{table}"), "T"),
            None => self.sql.clone(),
        }
    }
}

impl Slots for Drawn {
    fn set_big_int(&mut self, slot: usize, value: i64) {
        assert!(self.texts[slot].is_empty(), "an integer for a text");
        self.numbers[slot] = value;
    }

    fn text_mut(&mut self, slot: usize) -> &mut [u8] {
        assert!(!self.texts[slot].is_empty(), "a text for an integer");
        &mut self.texts[slot]
    }

    fn finish(&mut self) {
        self.finished = true;
    }
}

/// Collects an operation.
struct Collected<'a>(&'a Executable, Vec<Drawn>);

impl Outbox for Collected<'_> {
    type Slots = Drawn;

    fn step(&mut self, step: usize, statement: usize) -> Option<&mut Drawn> {
        let statement = &self.0.statements[statement];
        let text = |slot: &Slot| match slot {
            Slot::Text(bytes) => vec![0; *bytes],
            Slot::BigInt => vec![],
        };
        self.1.push(Drawn {
            step,
            sql: statement.sql.clone(),
            numbers: vec![i64::MIN; statement.slots.len()],
            texts: statement.slots.iter().map(text).collect(),
            finished: false,
        });
        self.1.last_mut()
    }
}

/// The next operation of one client.
fn operation_of(executable: &Executable, draws: &mut Draws, client: u32) -> Vec<Drawn> {
    let mut collected = Collected(executable, Vec::new());
    let steps = executable.draw(draws, client, &mut collected);
    let drawn = collected.1;
    assert_eq!(
        drawn.iter().map(|one| one.step).collect::<Vec<_>>(),
        steps.collect::<Vec<_>>(),
        "what is drawn is what is sent"
    );
    assert!(drawn.iter().all(|one| one.finished));
    drawn
}

fn operation(executable: &Executable, draws: &mut Draws) -> Vec<Drawn> {
    operation_of(executable, draws, 0)
}

fn definition(name: &str) -> Definition {
    Library::builtin().unwrap().get(name).unwrap().clone()
}

fn executable(name: &str) -> Executable {
    definition(name).compile(&SIZE).unwrap()
}

/// What many operations of a workload with one step draw.
fn many(name: &str, operations: usize) -> Vec<Drawn> {
    let executable = executable(name);
    let mut draws = Draws::new(1, 0);
    (0..operations)
        .map(|_| operation(&executable, &mut draws).remove(0))
        .collect()
}
