//! A workload as its file says it.

mod reading;

use crate::document::Document;
use crate::executable::{Executable, Slot, Statement, Step, Value};
use crate::expression::Expression;
use crate::sbtest;
use crate::template::Template;
use deltabench_model::plan::{DataSize, Group};
use deltabench_model::problem::Problem;
use deltabench_model::units::index;
use std::collections::HashSet;

/// A workload, read and checked, for tables of any size.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// Unique name, for example `point-query`.
    pub name: String,
    /// Family for the report.
    pub group: Group,
    /// The label published studies print beside the name, for example `100`.
    pub label: String,
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
    parameters: Vec<Parameter>,
    steps: Vec<StepDefinition>,
}

#[derive(Debug, Clone, PartialEq)]
struct Parameter {
    name: String,
    kind: Kind,
    line: u64,
}

#[derive(Debug, Clone, PartialEq)]
enum Kind {
    Uniform {
        low: Bound,
        high: Bound,
        count: Option<u32>,
    },
    Consecutive {
        start: Bound,
        count: u32,
    },
    Range {
        low: Bound,
        high: Bound,
        add: Bound,
    },
    Digits {
        groups: u32,
        width: u32,
    },
}

/// An expression and its line.
#[derive(Debug, Clone, PartialEq)]
struct Bound {
    expression: Expression,
    line: u64,
}

#[derive(Debug, Clone, PartialEq)]
struct StepDefinition {
    template: Template,
    repeat: u32,
    draws_table: bool,
    line: u64,
}

impl Definition {
    /// Reads one definition file; `file` is how problems call it.
    ///
    /// Errors: whatever is wrong with it, with file, line, key and, for a misspelt word, the nearest known
    /// one.
    pub fn parse(file: &str, text: &str) -> Result<Self, Problem> {
        reading::definition(Document { file, text })
    }

    /// The definition as it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// SQL statements of one operation; `BEGIN` and `COMMIT` count, as in published studies.
    #[must_use]
    pub fn statements_per_operation(&self) -> u32 {
        self.steps.iter().map(|step| step.repeat).sum()
    }

    /// The workload made ready for tables of this size. Tables are named without a schema (`sbtest1`): the
    /// connection's `search_path` says which copy is meant.
    ///
    /// Errors: a size without rows or tables, or one for which a parameter has no possible value.
    pub fn compile(&self, size: &DataSize) -> Result<Executable, Problem> {
        let rows = sbtest::checked_rows(size)?;
        let values = self
            .parameters
            .iter()
            .map(|p| self.value(p, rows))
            .collect::<Result<Vec<_>, _>>()?;
        let mut statements: Vec<Statement> = Vec::new();
        let mut steps = Vec::new();
        for definition in &self.steps {
            let drawn: Vec<Value> = definition
                .template
                .parameters
                .iter()
                .filter_map(|&place| values.get(place).cloned())
                .collect();
            let slots: Vec<Slot> = drawn.iter().flat_map(slots).collect();
            let tables = if definition.template.has_table {
                size.tables
            } else {
                1
            };
            let mut places = Vec::new();
            for table in 1..=tables {
                let sql = definition.template.sql(&sbtest::table_name(table));
                let statement = Statement {
                    sql,
                    slots: slots.clone(),
                };
                places.push(place_of(&mut statements, statement));
            }
            for repetition in 0..definition.repeat {
                steps.push(Step {
                    statements: places.clone(),
                    draws_table: definition.draws_table && repetition == 0,
                    values: drawn.clone(),
                });
            }
        }
        Ok(Executable {
            name: self.name.clone(),
            statements,
            steps,
            tables: size.tables,
        })
    }

    fn value(&self, parameter: &Parameter, rows: i64) -> Result<Value, Problem> {
        let of = |bound: &Bound| {
            bound.expression.value(rows).map_err(|why| {
                let name = &parameter.name;
                Problem::new(format!(
                    "{}:{}: parameter `{name}`: the expression {why}",
                    self.file, bound.line
                ))
                .detail(format!("rows = {rows}"))
            })
        };
        let between = |low: &Bound, high: &Bound| {
            let (least, most) = (of(low)?, of(high)?);
            if least > most {
                let name = &parameter.name;
                let place = format!("{}:{}", self.file, low.line);
                return Err(Problem::new(format!(
                    "{place}: parameter `{name}`: low {least} is above high {most}"
                ))
                .detail(format!("rows = {rows}")));
            }
            Ok((least, most))
        };
        Ok(match &parameter.kind {
            Kind::Uniform { low, high, count } => {
                let (low, high) = between(low, high)?;
                Value::Uniform {
                    low,
                    high,
                    count: count.unwrap_or(1),
                }
            }
            Kind::Consecutive { start, count } => Value::Consecutive {
                start: of(start)?,
                count: *count,
            },
            Kind::Range { low, high, add } => {
                let (low, high) = between(low, high)?;
                Value::Range {
                    low,
                    high,
                    add: of(add)?,
                }
            }
            Kind::Digits { groups, width } => Value::Digits {
                groups: *groups,
                width: *width,
            },
        })
    }

    /// What only the whole shows: parameters never used, transactions left open, writes that are not
    /// declared.
    fn check_use(&self) -> Result<(), Problem> {
        let used: HashSet<usize> = self
            .steps
            .iter()
            .flat_map(|step| step.template.parameters.clone())
            .collect();
        for (place, parameter) in self.parameters.iter().enumerate() {
            if !used.contains(&place) {
                let name = &parameter.name;
                return Err(self.problem_at(
                    parameter.line,
                    format!("parameter `{name}` is not used by any step"),
                ));
            }
        }
        let mut open = None;
        for (number, step) in (1..).zip(&self.steps) {
            let sql = step.template.sql("");
            let verb = sql
                .split_whitespace()
                .next()
                .unwrap_or_default()
                .to_ascii_uppercase();
            let problem = |what: &str| {
                Err(self.problem_at(step.line, format!("step {number} is {verb}, but {what}")))
            };
            match verb.as_str() {
                "BEGIN" | "START" if open.is_some() || step.repeat > 1 => {
                    return problem("a transaction is open");
                }
                "BEGIN" | "START" => open = Some((number, step.line)),
                "COMMIT" | "END" | "ROLLBACK" if open.is_none() || step.repeat > 1 => {
                    return problem("no transaction is open");
                }
                "COMMIT" | "END" | "ROLLBACK" => open = None,
                "INSERT" | "UPDATE" | "DELETE" | "MERGE" | "TRUNCATE" if !self.writes => {
                    return problem("`writes` is false");
                }
                _ => {}
            }
        }
        match open {
            Some((number, line)) => Err(self
                .problem_at(
                    line,
                    format!("the transaction of step {number} is not closed"),
                )
                .hint("add a step with COMMIT")),
            None => Ok(()),
        }
    }

    fn problem_at(&self, line: u64, what: String) -> Problem {
        Problem::new(format!("{}:{line}: {what}", self.file))
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
        _ => Slot::BigInt,
    };
    vec![slot; value.slots()]
}

#[cfg(test)]
mod tests {
    use super::reading::tests::{GOOD, refused};
    use super::*;

    fn size(tables: u32, rows: u64) -> DataSize {
        DataSize { tables, rows }
    }

    #[test]
    fn a_definition_compiles_for_its_tables() {
        let executable = Definition::parse("x.toml", GOOD)
            .unwrap()
            .compile(&size(2, 50))
            .unwrap();
        let sql: Vec<&str> = executable
            .statements
            .iter()
            .map(|statement| statement.sql.as_str())
            .collect();
        assert_eq!(
            sql,
            [
                "SELECT c FROM sbtest1 WHERE id=$1",
                "SELECT c FROM sbtest2 WHERE id=$1"
            ]
        );
        assert_eq!(
            executable.steps,
            [Step {
                statements: vec![0, 1],
                draws_table: true,
                values: vec![Value::Uniform {
                    low: 1,
                    high: 50,
                    count: 1
                }],
            }]
        );
    }

    #[test]
    fn tables_are_drawn_before_they_are_kept() {
        let keep = "repeat = 1\ntable = \"keep\"\nsql =";
        assert!(refused("sql =", keep).contains("x.toml:17: step 1: no table to keep"));
        assert!(refused("sql =", "table = \"kepe\"\nsql =").contains("did you mean \"keep\"?"));
        let begin = "sql = \"SELECT :id\"\ntable = \"draw\"";
        let problem = refused("sql = \"SELECT c FROM {table} WHERE id=:id\"", begin);
        assert!(
            problem.contains("x.toml:17: step 1: `table` is set"),
            "{problem}"
        );
        let two = format!(
            "{GOOD}[[step]]\nsql = \"SELECT k FROM {{table}}\"\ntable = \"keep\"\nrepeat = 2\n"
        );
        let executable = Definition::parse("x.toml", &two)
            .unwrap()
            .compile(&size(3, 9))
            .unwrap();
        assert_eq!(
            executable
                .steps
                .iter()
                .map(|step| step.draws_table)
                .collect::<Vec<_>>(),
            [true, false, false]
        );
    }

    #[test]
    fn a_repeated_step_draws_one_table_for_all_its_repetitions() {
        let repeated = GOOD.replacen("sql =", "repeat = 3\nsql =", 1);
        let definition = Definition::parse("x.toml", &repeated).unwrap();
        assert_eq!(definition.statements_per_operation(), 3);
        let steps = definition.compile(&size(3, 9)).unwrap().steps;
        assert_eq!(
            steps
                .iter()
                .map(|step| step.draws_table)
                .collect::<Vec<_>>(),
            [true, false, false]
        );
    }

    #[test]
    fn sizes_that_leave_no_value_are_refused_when_compiling() {
        let definition =
            |low: &str| Definition::parse("x.toml", &GOOD.replacen("low = 1", low, 1)).unwrap();
        let problem = |low: &str, rows| {
            definition(low)
                .compile(&size(1, rows))
                .unwrap_err()
                .to_string()
        };
        let found = problem("low = 100", 99);
        assert!(
            found.contains("x.toml:12: parameter `id`: low 100 is above high 99"),
            "{found}"
        );
        assert!(definition("low = 100").compile(&size(1, 100)).is_ok());
        let found = problem("low = \"1 / (rows - 5)\"", 5);
        assert!(
            found.contains("x.toml:12: parameter `id`: the expression divides by zero"),
            "{found}"
        );
        assert!(problem("low = 1", 0).contains("tables without rows"));
    }
}
