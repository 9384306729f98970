//! Operations as a person would type them.

use crate::executable::{
    Draws, Executable, Outbox, Piece, Slot, Slots, Statement, step_count, total_weight,
};
use crate::pgbench::{Action, Player, Program, ProgramScript};
use deltabench_model::units::to_f64;

/// One operation of a script, spelled out.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// What the file calls the script, if it does.
    pub script: Option<String>,
    /// Its share of the operations.
    pub share: f64,
    /// Its statements with their parameters, in order.
    pub statements: Vec<String>,
}

impl Executable {
    /// The first operation of each script that a seed draws, for people to read.
    pub fn samples(&self, seed: u64) -> Vec<Sample> {
        if let Some(program) = &self.program {
            return of_program(program, seed);
        }
        let total = to_f64(total_weight(&self.scripts)).max(1.0);
        let sample = |script: &crate::executable::Script| {
            let alone = Executable {
                scripts: vec![script.clone()],
                ..self.clone()
            };
            let mut spelled = Spelled {
                executable: self,
                values: Vec::new(),
            };
            let _ = alone.draw(&mut Draws::new(seed, 0), 0, &mut spelled);
            Sample {
                script: script.name.clone(),
                share: f64::from(script.weight) / total,
                statements: spelled.values.iter().map(Values::spell).collect(),
            }
        };
        self.scripts.iter().map(sample).collect()
    }

    /// The statements of [`Executable::samples`], one script after the other.
    pub fn sample_sql(&self, seed: u64) -> Vec<String> {
        let samples = self.samples(seed).into_iter();
        samples.flat_map(|sample| sample.statements).collect()
    }

    /// SQL statements of one operation, `BEGIN` and `COMMIT` too: the mean over the scripts.
    pub fn statements_per_operation(&self) -> f64 {
        if let Some(program) = &self.program {
            return program.mean_statements();
        }
        let weighted = |script: &crate::executable::Script| {
            f64::from(script.weight) * to_f64(step_count(script))
        };
        let sum: f64 = self.scripts.iter().map(weighted).sum();
        sum / to_f64(total_weight(&self.scripts)).max(1.0)
    }
}

/// The first transaction of each script, up to where it needs what a server answers.
fn of_program(program: &Program, seed: u64) -> Vec<Sample> {
    let weight = |script: &ProgramScript| f64::from(script.weight);
    let total: f64 = program.scripts.iter().map(weight).sum();
    let sample = |(number, script): (usize, &ProgramScript)| {
        let mut statements = Vec::new();
        let mut player = Player::new(program, 0);
        player.begin_script(program, number, &mut Draws::new(seed, 0));
        loop {
            match player.next(program) {
                Ok(Action::Send(_)) => {
                    let mut sql = Vec::new();
                    player.write_sql(program, &mut sql);
                    statements.push(String::from_utf8_lossy(&sql).into_owned());
                }
                Ok(Action::Done) => break,
                Ok(_) => {}
                Err(error) => {
                    statements.push(format!("-- {error}"));
                    break;
                }
            }
        }
        Sample {
            script: Some(script.name.clone()),
            share: weight(script) / total.max(1.0),
            statements,
        }
    };
    program.scripts.iter().enumerate().map(sample).collect()
}

/// Collects the statements of an operation.
struct Spelled<'a> {
    executable: &'a Executable,
    values: Vec<Values>,
}

impl Outbox for Spelled<'_> {
    type Slots = Values;

    fn step(&mut self, _step: usize, statement: usize) -> Option<&mut Values> {
        let statement = self.executable.statements.get(statement)?;
        self.values.push(Values::of(statement));
        self.values.last_mut()
    }
}

/// A statement and its parameters.
struct Values {
    statement: Statement,
    numbers: Vec<i64>,
    texts: Vec<Vec<u8>>,
}

impl Values {
    fn of(statement: &Statement) -> Self {
        let text = |slot: &Slot| match slot {
            Slot::BigInt => Vec::new(),
            Slot::Text(bytes) => vec![b' '; *bytes],
        };
        Self {
            numbers: vec![0; statement.slots.len()],
            texts: statement.slots.iter().map(text).collect(),
            statement: statement.clone(),
        }
    }

    fn spell(&self) -> String {
        let literal = |piece: Piece<'_>| match piece {
            Piece::Text(text) => text.to_owned(),
            Piece::Slot(slot) => match (self.statement.slots.get(slot), self.texts.get(slot)) {
                (Some(Slot::Text(_)), Some(text)) => {
                    format!("'{}'", String::from_utf8_lossy(text))
                }
                // In brackets: `- -1` may be meant, but `--1` would be a comment.
                _ => match self.numbers.get(slot).copied().unwrap_or(0) {
                    number if number < 0 => format!("({number})"),
                    number => number.to_string(),
                },
            },
        };
        self.statement.pieces().into_iter().map(literal).collect()
    }
}

impl Slots for Values {
    fn set_big_int(&mut self, slot: usize, value: i64) {
        if let Some(number) = self.numbers.get_mut(slot) {
            *number = value;
        }
    }

    fn text_mut(&mut self, slot: usize) -> &mut [u8] {
        self.texts.get_mut(slot).map_or(&mut [], Vec::as_mut_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spelling_out_leaves_quotes_alone() {
        let statement =
            Statement::prepared("a=$1 b=$2 c='$1' d=$1", vec![Slot::BigInt, Slot::Text(3)]);
        let mut values = Values::of(&statement);
        values.set_big_int(0, -7);
        values.text_mut(1).copy_from_slice(b"abc");
        assert_eq!(values.spell(), "a=(-7) b='abc' c='$1' d=(-7)");
    }
}
