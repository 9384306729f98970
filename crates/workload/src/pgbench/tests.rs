//! Whole scripts: expressions against results of pgbench itself, every refusal, distributions.

use super::value::Value;
use super::{Action, Player, Program, ScriptError};
use crate::executable::Draws;
use deltabench_model::plan::WorkloadSource;
use deltabench_model::problem::Problem;
use deltabench_model::work::pgbench::{
    PgbenchMix, PgbenchScript, PgbenchSetup, PgbenchTables, QueryMode,
};

mod drawing;
mod playing;
mod properties;
mod recorded;
mod refusals;

fn setup(mode: QueryMode, variables: &[(&str, &str)]) -> PgbenchSetup {
    let own = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
    PgbenchSetup {
        tables: PgbenchTables {
            scale: 10,
            ..PgbenchTables::default()
        },
        mixes: Vec::new(),
        mode,
        variables: variables.iter().map(own).collect(),
        max_tries: 1,
        shared_names: false,
        reconnects: false,
        latency_limit_ms: None,
        writes: false,
    }
}

fn mix(scripts: &[(&str, u32)]) -> PgbenchMix {
    let script = |(number, &(text, weight)): (usize, &(&str, u32))| PgbenchScript {
        source: WorkloadSource {
            file: match number {
                0 => "f.sql".to_owned(),
                more => format!("f{more}.sql"),
            },
            text: text.to_owned(),
        },
        weight,
    };
    PgbenchMix {
        name: "mix".to_owned(),
        scripts: scripts.iter().enumerate().map(script).collect(),
    }
}

fn parse(mode: QueryMode, script: &str) -> Result<Program, Problem> {
    Program::parse(&setup(mode, &[]), &mix(&[(script, 1)]))
}

fn sent(player: &Player, program: &Program) -> String {
    let mut out = Vec::new();
    player.write_sql(program, &mut out);
    String::from_utf8(out).unwrap()
}

/// Statements of a transaction without answers, with values in them.
fn played(program: &Program, seed: u64) -> Result<Vec<String>, ScriptError> {
    let mut player = Player::new(program, 0);
    player.begin(program, &mut Draws::new(seed, 0));
    rest(&mut player, program)
}

fn rest(player: &mut Player, program: &Program) -> Result<Vec<String>, ScriptError> {
    let mut all = Vec::new();
    loop {
        match player.next(program)? {
            Action::Send(_) => all.push(sent(player, program)),
            Action::Done => return Ok(all),
            _ => {}
        }
    }
}

mod expressions {
    use super::*;

    /// What the recorded runs of pgbench were given.
    const GIVEN: [(&str, &str); 7] = [
        ("var", "42"),
        ("int", "7"),
        ("dbl", "1.25"),
        ("yes", "yes"),
        ("nul", "null"),
        ("txt", "hello"),
        ("default_seed", "5432"),
    ];

    fn value(expression: &str) -> Result<Value, String> {
        // With variables that change nothing is computed beforehand.
        for changes in ["", "\\set var :var\n\\set int :int\n\\set dbl :dbl\n"] {
            let script = format!("{changes}\\set x {expression}");
            let program = Program::parse(&setup(QueryMode::Simple, &GIVEN), &mix(&[(&script, 1)]));
            let program = program.map_err(|problem| problem.error)?;
            let mut player = Player::new(&program, 0);
            player.begin(&program, &mut Draws::new(1, 0));
            player.next(&program).map_err(|error| error.to_string())?;
            if !changes.is_empty() {
                return player.value(&program, "x");
            }
        }
        unreachable!()
    }

    fn said(value: Value) -> String {
        let mut text = Vec::new();
        value.write(&mut text);
        let text = String::from_utf8(text).unwrap();
        match value {
            Value::Null => "null".to_owned(),
            Value::Boolean(_) => format!("boolean {text}"),
            Value::Integer(_) => format!("int {text}"),
            Value::Double(_) => format!("double {text}"),
        }
    }

    #[test]
    fn expressions_come_to_what_pgbench_says() {
        let recorded = include_str!("../../tests/data/pgbench/18.6/expressions.txt");
        let mut wrong = Vec::new();
        let mut compared = 0;
        for line in recorded.lines().filter(|line| !line.starts_with('#')) {
            let (expression, expected) = line.split_once('\t').unwrap();
            let ours = value(expression);
            let agrees = match (&ours, expected.strip_prefix("error ")) {
                (Ok(value), None) => said(*value) == expected,
                (Err(error), Some(expected)) => {
                    let what = expected.trim_start_matches("f.sql:2: ");
                    error.contains(what.trim_end_matches(" in command \"set\""))
                }
                _ => false,
            };
            if !agrees {
                wrong.push(format!("{expression}: pgbench {expected}, ours {ours:?}"));
            }
            compared += 1;
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(compared > 300, "{compared}");
    }
}
