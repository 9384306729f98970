//! A mix of pgbench's scripts as a workload.

use super::{Definition, Rate};
use crate::executable::{Executable, Script};
use crate::pgbench::Program;
use deltabench_model::plan::Group;
use deltabench_model::problem::Problem;
use deltabench_model::work::pgbench::{PgbenchMix, PgbenchSetup};

/// The workload that a mix is.
///
/// Shape: its own tables are none, because a plan says which of pgbench's tables there are.
pub(super) fn definition(setup: &PgbenchSetup, mix: &PgbenchMix) -> Result<Definition, Problem> {
    let program = Program::parse(setup, mix)?;
    let writes = program.writes();
    let names = mix.scripts.iter().map(|script| script.source.file.as_str());
    let names = names.collect::<Vec<_>>().join(", ");
    let (file, text) = match mix.scripts.as_slice() {
        [only] => (only.source.file.clone(), only.source.text.clone()),
        several => {
            let headed = several.iter().map(|script| {
                let head = format!("-- {} @{}", script.source.file, script.weight);
                format!("{head}\n{}\n", script.source.text.trim_end())
            });
            (mix.name.clone(), headed.collect::<Vec<_>>().join("\n"))
        }
    };
    Ok(Definition {
        name: mix.name.clone(),
        group: if writes { Group::Write } else { Group::Point },
        label: String::new(),
        published: None,
        differs: None,
        writes,
        quick: false,
        description: format!("pgbench's {names}, {} mode", setup.mode.word()),
        source: "pgbench of PostgreSQL 18".to_owned(),
        notes: Vec::new(),
        file,
        text,
        pre: false,
        state: None,
        rate: Rate::Transactions,
        slice_operations: None,
        reconnects: setup.reconnects,
        varied: Vec::new(),
        parameters: Vec::new(),
        scripts: Vec::new(),
        tables: Some(Vec::new()),
        before: Vec::new(),
        after: Vec::new(),
        program: Some(program),
    })
}

/// The workload made ready: scripts without steps, and the program.
pub(super) fn executable(name: &str, program: &Program) -> Executable {
    let script = |script: &crate::pgbench::ProgramScript| {
        Script::new(Some(script.name.clone()), script.weight, 0, &[])
    };
    let mut executable = Executable::single(name, Vec::new(), Vec::new(), 1);
    executable.scripts = program.scripts.iter().map(script).collect();
    executable.reconnects = program.reconnects;
    executable.program = Some(program.clone());
    executable
}
