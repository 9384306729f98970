//! A workload as its file says it.

mod checks;
mod parameter;
mod pgbench;
mod reading;
mod script;

use crate::chore::Chore;
use crate::executable::{Executable, Script, Slot, Statement, Step, TableChoice, Value};
use crate::expression::Sizes;
use crate::pgbench::Program;
use crate::sample::Sample;
use crate::sbtest;
use crate::table::TableDefinition;
use deltabench_document::Document;
use deltabench_model::plan::{DataSize, DataState, Group, PublishedRate};
use deltabench_model::problem::Problem;
use deltabench_model::units::{index, to_f64, to_u64};
use deltabench_model::work::pgbench::{PgbenchMix, PgbenchSetup};
use parameter::Parameter;
use script::{ScriptDefinition, StepDefinition};

/// A workload, read and checked, for tables of any size.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// Unique name, for example `point-query`.
    pub name: String,
    /// Family for the report.
    pub group: Group,
    /// What tells it from others of the same kind, for example the rows of a range; empty if nothing does.
    pub label: String,
    /// The row of published tables that this is or stands in for, for example `random-points range=100`.
    pub published: Option<String>,
    /// What it does otherwise than the published test; absent if nothing.
    pub differs: Option<String>,
    /// Whether it changes data.
    pub writes: bool,
    /// Whether it belongs to the few that stand for the rest when minutes count.
    pub quick: bool,
    /// What one operation does, in a sentence or two.
    pub description: String,
    /// Where its semantics come from.
    pub source: String,
    /// What would surprise a reader of published results.
    pub notes: Vec<String>,
    file: String,
    text: String,
    /// Whether there is a variant for freshly loaded tables under the name with `.pre`.
    pre: bool,
    state: Option<DataState>,
    rate: Rate,
    slice_operations: Option<u64>,
    reconnects: bool,
    varied: Vec<(String, i64)>,
    parameters: Vec<Parameter>,
    scripts: Vec<ScriptDefinition>,
    tables: Option<Vec<TableDefinition>>,
    before: Vec<Chore>,
    after: Vec<Chore>,
    program: Option<Program>,
}

/// What published studies count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rate {
    Statements,
    /// Rows of a table for each operation, in thousands, of one client.
    RowsOfOneClient,
    Transactions,
}

impl Definition {
    /// Reads one definition file; `file` is how problems call it.
    ///
    /// Errors: whatever is wrong with it, with file, line, key and, for a misspelt word, the nearest known
    /// one.
    pub fn parse(file: &str, text: &str) -> Result<Self, Problem> {
        reading::definition(Document { file, text })
    }

    /// A mix of pgbench's scripts.
    ///
    /// Errors: as [`Program::parse`].
    pub fn of_pgbench(setup: &PgbenchSetup, mix: &PgbenchMix) -> Result<Self, Problem> {
        pgbench::definition(setup, mix)
    }

    /// The definition as it was written; of a mix, its scripts.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The file it was read from, as problems call it.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The sizes that can be asked for with other values, as [`crate::Library::variant`] takes them, and what
    /// they are; in the order of the file.
    pub fn varied(&self) -> &[(String, i64)] {
        &self.varied
    }

    /// The state of the tables it must start from; absent: whatever the user chooses.
    pub fn state(&self) -> Option<DataState> {
        self.state
    }

    /// The user's own tables; absent: the tables of sysbench.
    pub fn tables(&self) -> Option<&[TableDefinition]> {
        self.tables.as_deref()
    }

    /// Whether it is a mix of pgbench's scripts, which run on pgbench's tables and the user's own.
    #[must_use]
    pub fn is_script(&self) -> bool {
        self.program.is_some()
    }

    /// The names of its tables, without a schema.
    pub fn table_names(&self, size: &DataSize) -> Vec<String> {
        match &self.tables {
            Some(own) => own.iter().map(|table| table.name.clone()).collect(),
            None => (1..=size.tables).map(sbtest::table_name).collect(),
        }
    }

    /// What is done before each visit, in order.
    pub fn before(&self) -> &[Chore] {
        &self.before
    }

    /// What is done after each visit, in order.
    pub fn after(&self) -> &[Chore] {
        &self.after
    }

    /// SQL statements of one operation; `BEGIN` and `COMMIT` count, as in published studies.
    ///
    /// Shape: of a mix, the nearest whole number to the mean.
    pub fn statements_per_operation(&self) -> u32 {
        u32::try_from(to_u64(self.mean_statements())).unwrap_or(u32::MAX)
    }

    fn mean_statements(&self) -> f64 {
        if let Some(program) = &self.program {
            return program.mean_statements();
        }
        let weight = |script: &ScriptDefinition| f64::from(script.weight);
        let all: f64 = self.scripts.iter().map(weight).sum();
        let sum: f64 = self
            .scripts
            .iter()
            .map(|script| weight(script) * f64::from(script.statements()))
            .sum();
        sum / all.max(1.0)
    }

    /// How published studies count it.
    ///
    /// Units: throughput of all clients in operations per second times `per_operation` is the published
    /// figure.
    pub fn published_rate(&self, size: &DataSize, clients: u32) -> PublishedRate {
        match self.rate {
            Rate::Statements => PublishedRate {
                per_operation: self.mean_statements(),
                ..PublishedRate::default()
            },
            Rate::Transactions => PublishedRate {
                per_operation: 1.0,
                unit: "transactions/s".to_owned(),
            },
            Rate::RowsOfOneClient => PublishedRate {
                per_operation: to_f64(size.rows) / 1000.0 / f64::from(clients.max(1)),
                unit: "krows/s".to_owned(),
            },
        }
    }

    /// One operation of each script with real parameters, for people to read.
    ///
    /// Errors: as [`Definition::compile`].
    pub fn sample(&self, size: &DataSize, seed: u64) -> Result<Vec<Sample>, Problem> {
        Ok(self.compile(size)?.samples(seed))
    }

    /// Whether each operation opens a connection and closes it again.
    #[must_use]
    pub fn reconnects(&self) -> bool {
        self.reconnects
    }

    /// The variant for freshly loaded tables, if there is one.
    pub(crate) fn pre(&self) -> Option<Self> {
        self.pre.then(|| Self {
            name: format!("{}{PRE}", self.name),
            quick: false,
            pre: false,
            state: Some(DataState::Fresh),
            published: self.published.as_ref().map(|row| pre_row(row)),
            ..self.clone()
        })
    }

    /// The workload made ready for tables of this size; a mix of pgbench's scripts knows its own. Tables are
    /// named without a schema (`sbtest1`): the connection's `search_path` says which copy is meant.
    ///
    /// Errors: a size without rows or tables, or one for which a parameter has no possible value.
    pub fn compile(&self, size: &DataSize) -> Result<Executable, Problem> {
        if let Some(program) = &self.program {
            return Ok(pgbench::executable(&self.name, program));
        }
        let sizes = Sizes {
            rows: sbtest::checked_rows(size)?,
            tables: i64::from(size.tables),
        };
        let values = (0..)
            .zip(&self.parameters)
            .map(|(number, parameter)| self.value(number, parameter, sizes))
            .collect::<Result<Vec<_>, _>>()?;
        let mut executable = Executable::single(&self.name, Vec::new(), Vec::new(), size.tables);
        executable.scripts.clear();
        executable.slice_operations = self.slice_operations;
        executable.reconnects = self.reconnects;
        for definition in &self.scripts {
            let start = executable.steps.len();
            for step in &definition.steps {
                add_step(&mut executable, step, &values);
            }
            let steps = executable.steps.get(start..).unwrap_or(&[]);
            let (name, weight) = (definition.name.clone(), definition.weight);
            let script = Script::new(name, weight, start, steps);
            let limit = self.operations_max(definition, &values, script.takes_turns, size.tables);
            executable.operations_max = [executable.operations_max, limit]
                .into_iter()
                .flatten()
                .min();
            executable.scripts.push(script);
        }
        Ok(executable)
    }

    /// Operations until a sequence that must not start again has given all its values.
    fn operations_max(
        &self,
        script: &ScriptDefinition,
        values: &[Value],
        takes_turns: bool,
        tables: u32,
    ) -> Option<u64> {
        let turns = if takes_turns { u64::from(tables) } else { 1 };
        let used = script
            .steps
            .iter()
            .flat_map(|step| &step.template.parameters);
        let limits = used.filter_map(|&place| {
            let stops = self.parameters.get(place)?.stops();
            match values.get(place)? {
                Value::Sequence(sequence) if stops => Some(sequence.count.saturating_mul(turns)),
                _ => None,
            }
        });
        limits.min()
    }

    fn problem_at(&self, line: u64, what: String) -> Problem {
        Problem::new(format!("{}:{line}: {what}", self.file))
    }
}

/// What the name of a test on freshly loaded tables ends with.
const PRE: &str = ".pre";

/// The row of a test on freshly loaded tables.
fn pre_row(row: &str) -> String {
    match row.split_once(' ') {
        Some((test, label)) => format!("{test}{PRE} {label}"),
        None => format!("{row}{PRE}"),
    }
}

fn add_step(executable: &mut Executable, definition: &StepDefinition, values: &[Value]) {
    let template = &definition.template;
    let drawn: Vec<Value> = template
        .parameters
        .iter()
        .filter_map(|&place| values.get(place).cloned())
        .collect();
    let slots: Vec<Slot> = drawn.iter().flat_map(slots).collect();
    let tables = if template.has_table {
        executable.tables
    } else {
        1
    };
    let mut places = Vec::new();
    for table in 1..=tables {
        let statement = Statement {
            sql: template.sql(&sbtest::table_name(table)),
            slots: slots.clone(),
            prepared: definition.prepared,
        };
        places.push(place_of(&mut executable.statements, statement));
    }
    for repetition in 0..definition.repeat {
        let table = if repetition == 0 {
            definition.table
        } else {
            TableChoice::Keep
        };
        executable.steps.push(Step {
            statements: places.clone(),
            table,
            values: drawn.clone(),
        });
    }
}

fn place_of(statements: &mut Vec<Statement>, statement: Statement) -> usize {
    statements
        .iter()
        .position(|known| *known == statement)
        .unwrap_or_else(|| {
            statements.push(statement);
            statements.len() - 1
        })
}

fn slots(value: &Value) -> Vec<Slot> {
    let slot = match value {
        Value::Digits { groups, width } => Slot::Text(index(u64::from(groups * (width + 1) - 1))),
        Value::Letters { length } => Slot::Text(index(u64::from(*length))),
        Value::Shared { value, .. } => return slots(value),
        _ => Slot::BigInt,
    };
    vec![slot; value.slots()]
}

#[cfg(test)]
mod tests;
