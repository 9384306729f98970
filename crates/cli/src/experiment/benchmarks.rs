//! `[pgbench]`, `[insert]` and `[rocksdb]` of an experiment, as a request has them.

use crate::pgbench::scripts::{built_in, of_file};
use crate::request::source;
use crate::rocksdb::{KEY_BYTES, SLICE_MS, warmup};
use deltabench_compare::looks;
use deltabench_experiment::{
    Experiment, Insert, Part, Pgbench, PgbenchScale, Rocksdb, ScriptMix, ScriptName,
};
use deltabench_model::insert::{InsertSetup, InsertStep};
use deltabench_model::pgbench::{PgbenchMix, PgbenchScript, PgbenchSetup, PgbenchTables};
use deltabench_model::plan::{DataSize, Placement, Stopping, Timing};
use deltabench_model::problem::Problem;
use deltabench_model::rocksdb::{RocksdbSetup, RocksdbStep};
use deltabench_model::units::{to_f64, to_u64};
use deltabench_model::work::Work;
use deltabench_observe::read_host;
use deltabench_run::planning::{Request, Selection};
use deltabench_workload::pgbench::tables::{ACCOUNTS, SCALE_MAX, estimate_bytes};
use std::path::Path;

/// Passes of a file that does not say how many: as many as a verdict needs.
const PASSES: u32 = 6;

/// Tables whose size per unit of scale no longer depends on what each of them needs at least.
const SCALE_MEASURED: u32 = 1000;

/// Blocks of RocksDB in a file that does not say how many: as the command has it.
const ROCKSDB_BLOCKS: u32 = 8;

/// Gives the request what the file says of pgbench, the Insert Benchmark and RocksDB. `directory` is that of
/// the file.
///
/// Errors: scripts that are not there, a scale that depends on memory that is not known.
pub fn benchmarks(
    experiment: &Experiment,
    part: &Part,
    directory: &Path,
    request: &mut Request,
) -> Result<(), Problem> {
    if let Some(own) = &experiment.pgbench {
        let setup = pgbench(own, part.scale, request.limits.memory_bytes, directory)?;
        if experiment.workloads.is_empty() {
            request.data = DataSize {
                tables: 1,
                rows: u64::from(setup.tables.scale) * ACCOUNTS,
            };
        }
        request.work = Work::scripts(Some(setup));
    }
    if let Some(own) = &experiment.insert {
        let setup = insert(experiment, own, part.rows);
        request.data = DataSize {
            tables: setup.tables(),
            rows: setup.loaded_rows() / u64::from(setup.tables().max(1)),
        };
        request.timing = Timing {
            blocks: experiment.measurement.blocks.unwrap_or(PASSES),
            visit_seconds: f64::from(setup.query_seconds),
            warmup_seconds: 0.0,
            connections_per_visit: 1,
            ..request.timing.clone()
        };
        if experiment.measurement.placement.is_none() {
            // As published: more connections work at a time than there are clients.
            request.placement = (Placement::Free, Placement::Free);
        }
        request.stopping = Stopping::Fixed;
        request.placebo = own.placebo;
        request.work = Work::Insert(setup);
    }
    if let Some(own) = &experiment.rocksdb {
        of_rocksdb(experiment, own, part.rows, request);
    }
    Ok(())
}

fn pgbench(
    own: &Pgbench,
    scale: PgbenchScale,
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

/// The scale factor that a scale comes to on a server with so much memory (absent: the machine's).
///
/// Errors: a machine that does not tell its memory.
fn factor(
    scale: PgbenchScale,
    memory_bytes: Option<u64>,
    tables: &PgbenchTables,
) -> Result<u32, Problem> {
    let times = match scale {
        PgbenchScale::Factor(factor) => return Ok(factor),
        share => share.times_memory().unwrap_or(1.0),
    };
    let machine = || read_host().memory_bytes;
    let memory = memory_bytes.or_else(machine).ok_or_else(|| {
        Problem::new(format!("how much {scale} is cannot be told"))
            .detail("this machine does not tell how much memory it has")
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

fn insert(experiment: &Experiment, own: &Insert, rows: u64) -> InsertSetup {
    InsertSetup {
        clients: own.clients,
        shared_table: own.shared_table,
        rows,
        write_rows: own.write_rows,
        query_seconds: own.query_seconds,
        steps: needed(&own.steps, |step| experiment.wants_workload(&step.name())),
        pacing: own.pacing,
        settle_seconds: own.settle_seconds,
        long_transaction_seconds: own.long_transaction_seconds,
    }
}

fn of_rocksdb(experiment: &Experiment, own: &Rocksdb, keys: u64, request: &mut Request) {
    let setup = rocksdb(experiment, own, keys);
    let measurement = &experiment.measurement;
    request.clients.clone_from(&setup.threads);
    request.data = DataSize {
        tables: 1,
        rows: keys,
    };
    request.timing = Timing {
        blocks: measurement.blocks.unwrap_or(ROCKSDB_BLOCKS),
        slice_ms: measurement.slice_ms.unwrap_or(SLICE_MS),
        visit_seconds: f64::from(setup.seconds),
        warmup_seconds: warmup(setup.seconds),
        connections_per_visit: 1,
        ..request.timing.clone()
    };
    request.selection = Selection::Named(Vec::new());
    request.placement = (Placement::Free, Placement::Free);
    request.checksums = None;
    if let Stopping::Sequential { looks: all } = &mut request.stopping {
        *all = looks(request.timing.blocks);
    }
    request.placebo = own.placebo;
    request.work = Work::Rocksdb(setup);
}

fn rocksdb(experiment: &Experiment, own: &Rocksdb, keys: u64) -> RocksdbSetup {
    let setup = RocksdbSetup {
        workload: own.workload,
        keys,
        key_bytes: KEY_BYTES,
        value_bytes: own.value_bytes,
        threads: experiment.workloads.clients.clone(),
        seconds: own.seconds,
        writer_bytes_per_second: own.writer_bytes_per_second,
        steps: needed_of_chain(&own.steps, |step| experiment.wants_workload(step.name())),
        cache_bytes: 0,
        background_jobs: own.background_jobs,
        options: own.options.clone(),
    };
    RocksdbSetup {
        cache_bytes: own.cache_bytes.unwrap_or_else(|| setup.usual_cache_bytes()),
        ..setup
    }
}

/// The steps that are wanted, and those before them that make or change the database.
fn needed_of_chain(
    steps: &[RocksdbStep],
    wanted: impl Fn(&RocksdbStep) -> bool,
) -> Vec<RocksdbStep> {
    let Some(last) = steps.iter().rposition(&wanted) else {
        return steps.to_vec();
    };
    // The writer beside readers changes the database, too.
    let makes = |step: &RocksdbStep| step.writes() || step.beside_a_writer() || !step.is_measured();
    let up_to = steps.iter().take(last + 1);
    let kept = up_to.filter(|step| makes(step) || wanted(step));
    kept.copied().collect()
}

/// The steps that are wanted, and those before them that make or change the tables.
fn needed(steps: &[InsertStep], wanted: impl Fn(&InsertStep) -> bool) -> Vec<InsertStep> {
    let Some(last) = steps.iter().rposition(&wanted) else {
        return steps.to_vec();
    };
    let up_to = steps.iter().take(last + 1);
    let kept = up_to.filter(|step| !step.queries() || wanted(step));
    kept.copied().collect()
}

/// Where a part stands, with the scale factor beside the word that it comes from. Not where memory is an axis
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
        assert_eq!(scale(PgbenchScale::Factor(7)), 7);
        let (half, twice) = (
            scale(PgbenchScale::HalfMemory),
            scale(PgbenchScale::TwiceMemory),
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
            mode: deltabench_model::pgbench::QueryMode::Simple,
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

    const ROCKSDB: &str = "format = \"deltabench.experiment\"\nversion = 1\nname = \"x\"\n\
                           servers = [{ target = [\"rocksdb:6.29.5\", \"rocksdb:10.2.1\"] }]\n";

    fn rocksdb_study(rest: &str) -> Experiment {
        Experiment::read("x.toml", &format!("{ROCKSDB}{rest}"), None).unwrap()
    }

    #[test]
    fn picked_steps_of_rocksdb_keep_those_that_make_their_database() {
        let study = rocksdb_study("[rocksdb]\n");
        let picked = |only: &str| {
            let study = study.only(&[only.to_owned()]).unwrap();
            let setup = rocksdb(&study, study.rocksdb.as_ref().unwrap(), 1000);
            let names: Vec<&str> = setup.steps.iter().map(|step| step.name()).collect();
            names.join(" ")
        };
        assert_eq!(picked("fillseq"), "fillseq");
        assert_eq!(
            picked("readwhilewriting"),
            "fillseq drain overwritesome flush_mt_l0 revrangewhilewriting fwdrangewhilewriting \
             readwhilewriting"
        );
        let all = RocksdbStep::published();
        let all: Vec<&str> = all.into_iter().map(RocksdbStep::name).collect();
        assert_eq!(picked("*"), all.join(" "));
    }

    #[test]
    fn what_a_file_says_of_rocksdb_is_what_is_asked_for() {
        let study = rocksdb_study(
            "[rocksdb]\nworkload = \"iodir\"\nkeys = [10_000, 20_000]\nthreads = [1, 4]\nseconds = 10\n\
             background_jobs = 4\noptions = { write_buffer_size = 4194304 }\nplacebo = false\n\
             [measurement]\nblocks = 7\nslice_ms = 50\n",
        );
        let library = deltabench_workload::Library::builtin().unwrap();
        let parts = study.parts();
        let request =
            crate::experiment::request::request_of(&study, &parts[1], 7, Path::new(""), &library);
        let request = request.unwrap();
        let setup = request.work.rocksdb().unwrap();
        assert_eq!(
            (setup.keys, request.data.rows, parts.len()),
            (20_000, 20_000, 2)
        );
        assert_eq!(setup.threads, [1, 4]);
        assert_eq!((setup.seconds, setup.background_jobs), (10, 4));
        assert_eq!(
            setup.cache_bytes,
            8 << 20,
            "an eighth of 8.4 MB, at least 8 MB"
        );
        assert_eq!(setup.writer_bytes_per_second, 2 << 20);
        assert_eq!(
            setup.options,
            [("write_buffer_size".to_owned(), "4194304".to_owned())]
        );
        assert_eq!((request.timing.blocks, request.timing.slice_ms), (7, 50));
        assert!((request.timing.warmup_seconds - 2.0).abs() < 1e-9);
        assert!(!request.placebo && request.checksums.is_none());
        assert_eq!(
            parts[1].coordinates,
            [("keys".to_owned(), "20000".to_owned())]
        );
    }

    #[test]
    fn picked_steps_keep_those_that_make_their_tables() {
        let study = study("[insert]\nrates = [100, 500]\n");
        let picked = |only: &str| {
            let study = study.only(&[only.to_owned()]).unwrap();
            let setup = insert(&study, study.insert.as_ref().unwrap(), 1000);
            let names: Vec<String> = setup.steps.iter().map(|step| step.name()).collect();
            names.join(" ")
        };
        assert_eq!(picked("l.i1"), "l.i0 l.x l.i1");
        assert_eq!(picked("qp*"), "l.i0 l.x l.i1 l.i2 qp100 qp500");
        assert_eq!(picked("qr100"), "l.i0 l.x l.i1 l.i2 qr100");
        assert_eq!(picked("*"), "l.i0 l.x l.i1 l.i2 qr100 qp100 qr500 qp500");
    }
}
