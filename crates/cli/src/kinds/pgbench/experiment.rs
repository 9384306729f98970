//! `[pgbench]` of an experiment, as a request has it.

use super::scripts::{built_in, of_file};
use crate::kinds::factor::{Growth, factor};
use crate::request::source;
use deltabench_experiment::kinds::{Pgbench, ScaleFactor, ScriptMix, ScriptName};
use deltabench_experiment::{Experiment, Part};
use deltabench_model::plan::DataSize;
use deltabench_model::problem::Problem;
use deltabench_model::units::to_f64;
use deltabench_model::work::Work;
use deltabench_model::work::pgbench::{PgbenchMix, PgbenchScript, PgbenchSetup, PgbenchTables};
use deltabench_run::planning::Request;
use deltabench_workload::pgbench::tables::{ACCOUNTS, SCALE_MAX, estimate_bytes};
use std::path::Path;

/// Tables whose size per unit of scale no longer depends on what each of them needs at least.
const SCALE_MEASURED: u32 = 1000;

/// Gives a request what the file says of pgbench, if it does. `directory` is that of the file.
///
/// Errors: scripts that are not there, a scale that depends on memory that is not known.
pub fn apply(
    experiment: &Experiment,
    part: &Part,
    directory: &Path,
    request: &mut Request,
) -> Result<(), Problem> {
    let Some(own) = &experiment.kinds.pgbench else {
        return Ok(());
    };
    // Mode, variables and tables are those of one set of scripts.
    if let Some(script) = request.work.script_sources().next() {
        let what = format!(
            "{} is a script in `files` of [workloads], beside [pgbench]",
            script.file
        );
        return Err(Problem::new(what)
            .detail("all scripts of a run are sent alike, on the tables of [pgbench]")
            .hint("write it into `scripts` of [pgbench]"));
    }
    let setup = setup(own, part.scale, request.limits.memory_bytes, directory)?;
    if experiment.workloads.is_empty() {
        request.data = DataSize {
            tables: 1,
            rows: u64::from(setup.tables.scale) * ACCOUNTS,
        };
    }
    request.work = Work::scripts(Some(setup));
    Ok(())
}

fn setup(
    own: &Pgbench,
    scale: ScaleFactor,
    memory_bytes: Option<u64>,
    directory: &Path,
) -> Result<PgbenchSetup, Problem> {
    let init = own.init.as_ref().map(|file| source(&directory.join(file)));
    let tables = PgbenchTables {
        scale: factor(scale, memory_bytes, growth(&own.tables))?,
        init: init.transpose()?,
        ..own.tables.clone()
    };
    let mixes = own.mixes.iter().map(|mix| of_scripts(mix, directory));
    Ok(PgbenchSetup {
        tables,
        mixes: mixes.collect::<Result<_, _>>()?,
        mode: own.mode,
        variables: own.variables.clone(),
        max_tries: own.max_tries,
        shared_names: false,
        reconnects: own.reconnects,
        latency_limit_ms: own.latency_limit_ms,
        writes: own.writes,
    })
}

fn of_scripts(mix: &ScriptMix, directory: &Path) -> Result<PgbenchMix, Problem> {
    let read = |script: &ScriptName| of_script(script, directory);
    let read: Vec<(String, PgbenchScript)> =
        mix.scripts.iter().map(read).collect::<Result<_, _>>()?;
    let (names, scripts): (Vec<String>, Vec<PgbenchScript>) = read.into_iter().unzip();
    let name = mix.name.clone().or(names.into_iter().next());
    Ok(PgbenchMix {
        name: name.ok_or_else(|| Problem::new("a mix has no scripts"))?,
        scripts,
    })
}

/// What its workload is called if it is alone, and the script.
fn of_script(script: &ScriptName, directory: &Path) -> Result<(String, PgbenchScript), Problem> {
    if script.is_file() {
        of_file(&directory.join(&script.name), script.weight)
    } else {
        built_in(&script.name, script.weight)
    }
}

/// How pgbench's tables grow with their scale.
fn growth(tables: &PgbenchTables) -> Growth {
    let measured = PgbenchTables {
        scale: SCALE_MEASURED,
        ..tables.clone()
    };
    Growth {
        unit_bytes: to_f64(estimate_bytes(&measured).max(1)) / f64::from(SCALE_MEASURED),
        most: SCALE_MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_experiment::kinds::ScaleFactor;

    #[test]
    fn a_script_of_workloads_beside_those_of_pgbench_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("my.sql"), "SELECT 1;").unwrap();
        let request = |files: &str| {
            let text = format!(
                "format = \"deltabench.experiment\"\nversion = 1\nname = \"x\"\n\
                 servers = [{{ target = \"postgres:17\" }}, {{ target = \"postgres:18\" }}]\n\
                 [workloads]\nonly = [\"scan\"]\n{files}\n[pgbench]\nscripts = [\"select\"]\n"
            );
            let study = Experiment::read("x.toml", &text, None).unwrap();
            let library = deltabench_workload::Library::builtin().unwrap();
            let parts = study.parts();
            crate::kinds::request_of(&study, &parts[0], 7, directory.path(), &library)
        };
        assert_eq!(request("").unwrap().work.script_sources().count(), 1);
        let refused = request("files = [\"my.sql\"]").unwrap_err();
        assert!(refused.error.contains("my.sql is a script in `files`"));
        assert!(refused.hint.unwrap().contains("`scripts` of [pgbench]"));
    }

    #[test]
    fn half_the_memory_is_tables_of_that_size() {
        let tables = PgbenchTables::default();
        let memory = 8 << 30;
        let half = factor(ScaleFactor::HalfMemory, Some(memory), growth(&tables)).unwrap();
        let bytes = estimate_bytes(&PgbenchTables {
            scale: half,
            ..tables
        });
        let share = to_f64(bytes) / to_f64(memory);
        assert!((share / 0.5 - 1.0).abs() < 0.01, "{half}: {share}");
        // pgbench's manual: about 15 MB a unit.
        assert!((230..=300).contains(&half), "{half}");
    }
}
