//! Definitions as they compile.

use super::reading::tests::{GOOD, refused};
use super::*;
use crate::executable::TableChoice;

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
            table: TableChoice::Draw,
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
            .map(|step| step.table == TableChoice::Draw)
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
            .map(|step| step.table == TableChoice::Draw)
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
