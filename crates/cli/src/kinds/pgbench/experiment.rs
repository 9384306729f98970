//! `[pgbench]` of an experiment, as a request has it.

use super::scripts::{built_in, of_file};
use crate::request::source;
use deltabench_experiment::kinds::{Pgbench, ScaleFactor, ScriptMix, ScriptName};
use deltabench_experiment::{Experiment, Part};
use deltabench_model::plan::DataSize;
use deltabench_model::problem::Problem;
use deltabench_model::units::{to_f64, to_u64};
use deltabench_model::work::Work;
use deltabench_model::work::pgbench::{PgbenchMix, PgbenchScript, PgbenchSetup, PgbenchTables};
use deltabench_observe::read_host;
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
        scale: factor(scale, memory_bytes, &own.tables)?,
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

/// The scale factor of a scale on a server with so much memory (absent: that of the machine).
///
/// Errors: a machine whose memory cannot be read.
fn factor(
    scale: ScaleFactor,
    memory_bytes: Option<u64>,
    tables: &PgbenchTables,
) -> Result<u32, Problem> {
    let times = match scale {
        ScaleFactor::Factor(factor) => return Ok(factor),
        share => share.times_memory().unwrap_or(1.0),
    };
    let machine = || read_host().memory_bytes;
    let memory = memory_bytes.or_else(machine).ok_or_else(|| {
        Problem::new(format!("cannot tell how much {scale} is"))
            .detail("deltabench cannot read how much memory this machine has")
            .hint("write a number as `scale`, or give [limits] a `memory`")
    })?;
    Ok(of_bytes(times * to_f64(memory), tables))
}

/// The scale at which the tables with their indexes are nearest to so many bytes.
fn of_bytes(bytes: f64, tables: &PgbenchTables) -> u32 {
    let measured = PgbenchTables {
        scale: SCALE_MEASURED,
        ..tables.clone()
    };
    let unit = to_f64(estimate_bytes(&measured).max(1)) / f64::from(SCALE_MEASURED);
    let scale = to_u64(bytes / unit).clamp(1, u64::from(SCALE_MAX));
    u32::try_from(scale).unwrap_or(SCALE_MAX)
}

/// The coordinates of a part, with the scale factor after the word of the file. Not where memory is an axis
/// too: there the word is what parts have in common.
pub fn coordinates(part: &Part, setup: Option<&PgbenchSetup>) -> Vec<(String, String)> {
    let by_memory = part.coordinates.iter().any(|(axis, _)| axis == "memory");
    let told = |(axis, value): &(String, String)| match setup {
        Some(setup) if axis == "scale" && !by_memory && part.scale.times_memory().is_some() => {
            (axis.clone(), format!("{value} ({})", setup.tables.scale))
        }
        _ => (axis.clone(), value.clone()),
    };
    part.coordinates.iter().map(told).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GB: u64 = 1 << 30;

    fn study(rest: &str) -> Experiment {
        let text = format!(
            "format = \"deltabench.experiment\"\nversion = 1\nname = \"x\"\n\
             servers = [{{ target = \"postgres:18\", configuration = \"cx10a\" }}]\n{rest}"
        );
        Experiment::read("x.toml", &text, None).unwrap()
    }

    #[test]
    fn half_and_twice_the_memory_are_tables_of_that_size() {
        let tables = PgbenchTables::default();
        let scale = |scale| factor(scale, Some(8 * GB), &tables).unwrap();
        assert_eq!(scale(ScaleFactor::Factor(7)), 7);
        let (half, twice) = (
            scale(ScaleFactor::HalfMemory),
            scale(ScaleFactor::TwiceMemory),
        );
        for (scale, share) in [(half, 0.5), (twice, 2.0)] {
            let bytes = estimate_bytes(&PgbenchTables {
                scale,
                ..tables.clone()
            });
            let of = to_f64(bytes) / to_f64(8 * GB);
            assert!((of / share - 1.0).abs() < 0.01, "{scale}: {of}");
        }
        // pgbench's manual: about 15 MB a unit.
        assert!((230..=300).contains(&half), "{half}");
        assert_eq!(of_bytes(0.0, &tables), 1);
        assert_eq!(of_bytes(f64::INFINITY, &tables), SCALE_MAX);
    }

    #[test]
    fn a_word_for_a_scale_is_told_with_its_number_unless_memory_varies_too() {
        let setup = |scale| PgbenchSetup {
            tables: PgbenchTables {
                scale,
                ..PgbenchTables::default()
            },
            mixes: Vec::new(),
            mode: deltabench_model::work::pgbench::QueryMode::Simple,
            variables: Vec::new(),
            max_tries: 1,
            latency_limit_ms: None,
            writes: false,
        };
        let told = |rest: &str| {
            let parts = study(rest).parts();
            let last = parts.last().unwrap();
            coordinates(last, Some(&setup(99))).pop().unwrap().1
        };
        let scale = "[pgbench]\nscale = [10, \"half-memory\"]\n";
        assert_eq!(told(scale), "half-memory (99)");
        assert_eq!(told("[pgbench]\nscale = [\"half-memory\", 20]\n"), "20");
        let memory = "[limits]\nmemory = [\"1GB\", \"2GB\"]\n";
        assert_eq!(told(&format!("{memory}{scale}")), "half-memory");
    }
}
