//! A text of the user's as a script of its own.

use deltabench_model::plan::WorkloadSource;
use deltabench_model::problem::Problem;
use deltabench_model::work::pgbench::{PgbenchMix, PgbenchScript, PgbenchSetup, QueryMode};
use deltabench_workload::pgbench::{Player, Program};

/// A text as a script that is sent in this mode, with the variables of a setup.
pub(super) fn program(
    setup: &PgbenchSetup,
    source: &WorkloadSource,
    mode: QueryMode,
) -> Result<(Program, Player), Problem> {
    let plain = PgbenchSetup {
        mode,
        ..setup.clone()
    };
    let mix = PgbenchMix {
        name: source.file.clone(),
        scripts: vec![PgbenchScript {
            source: source.clone(),
            weight: 1,
        }],
    };
    let program = Program::parse(&plain, &mix)?;
    let player = Player::new(&program, 0);
    Ok((program, player))
}
