//! `deltabench rocksdb`: versions and block caches of RocksDB, with the steps of `db_bench` in turns.

pub mod arguments;
pub mod count;
pub mod experiment;
mod outlook;
mod sizes;
mod targets;

use self::arguments::{ChainArguments, Exactness, RocksdbArguments};
use crate::arguments::conditions::{AS_IS, CacheWord, HugePagesWord, LimitArguments, Servers};
use crate::arguments::global::words;
use crate::arguments::shape::Ending;
use crate::clock::seed_from_clock;
use crate::config::Config;
use crate::failure::Failure;
use crate::host::{self, check_fits, swept_host};
use crate::kinds::outlook::show;
use crate::limits::limits;
use crate::output::Destinations;
use crate::ready::{Ready, asked_of_gate, check_compared};
use crate::request::{gate, percent, stopping, time};
use crate::targets::{known_or_named, resolve};
use deltabench_document::amounts::whole_number;
use deltabench_kinds::run_half;
use deltabench_model::plan::{
    CellOrder, DataSize, DataState, Observing, Placement, Timing, Transport,
};
use deltabench_model::problem::{Problem, nearest};
use deltabench_model::work::Work;
use deltabench_model::work::rocksdb::{RocksdbSetup, RocksdbStep, RocksdbWorkload, check_option};
use deltabench_run::planning::{self, Jobs, Request, Selection};
use deltabench_workload::Library;
use sizes::Preset;

use targets::{Sides, specs};

/// Bytes of a key, as published.
pub const KEY_BYTES: u32 = 20;

/// Measures, or says what it would take.
pub fn rocksdb(arguments: &RocksdbArguments, config: &Config) -> Result<u8, Failure> {
    let request = request(arguments).map_err(Failure::Refused)?;
    let specs = specs(&arguments.base, &arguments.candidates).map_err(Failure::Refused)?;
    let sides = Sides {
        specs: &specs,
        caches: &arguments.work.block_cache,
        own: options(&arguments.work.candidate_options, "--candidate-option")
            .map_err(Failure::Refused)?,
    };
    sides.check().map_err(Failure::Refused)?;
    let [worse, _, _, gate] = asked_of_gate(&request.gate);
    let asked = [worse, gate, (request.same_target, "--same-target")];
    let is_alone = specs.len() < 2 && sides.caches.len() < 2;
    check_compared(is_alone, &asked).map_err(Failure::Refused)?;
    let destinations = Destinations::check(&arguments.output, config).map_err(Failure::Refused)?;
    let library = Library::builtin().map_err(Failure::Failed)?;
    let kind = run_half(&request.work);
    kind.check(&request, &library).map_err(Failure::Refused)?;
    let databases = &arguments.databases;
    let servers = Servers {
        server_user: databases.server_user.clone(),
        cluster_dir: databases.cluster_dir.clone(),
        huge_pages: HugePagesWord::Off,
    };
    let dry = arguments.exactness.dry_run;
    let (host, found) = if dry {
        // Nothing is fetched: of a version its number says enough.
        let host = host::host(&servers, config).map_err(Failure::Refused)?;
        (
            host,
            specs
                .iter()
                .map(|spec| known_or_named(spec, config))
                .collect(),
        )
    } else {
        let host = swept_host(&servers, config)?;
        (host, resolve(&specs, config).map_err(Failure::Refused)?)
    };
    let (base, candidates) = sides.wishes(&found).map_err(Failure::Refused)?;
    // A version may have only one of the caches.
    check_compared(candidates.is_empty(), &asked).map_err(Failure::Refused)?;
    let plan =
        planning::plan(request, kind, (&base, &candidates), &library).map_err(Failure::Refused)?;
    let told = outlook::tell(&plan);
    show(&told, dry)?;
    check_fits(&plan, &host).map_err(Failure::Refused)?;
    if dry {
        return Ok(0);
    }
    let ready = Ready::made(plan, host, library, destinations);
    ready.measure(false, config)
}

/// The sizes that were asked for.
///
/// Errors: a size, step or option that cannot be read.
fn setup(work: &ChainArguments) -> Result<RocksdbSetup, Problem> {
    let preset = Preset::of(work.quick, work.published);
    let keys = match &work.keys {
        None => preset.keys,
        Some(text) => whole_number(text).ok_or_else(|| {
            Problem::new(format!("`{text}` is not a number of keys"))
                .hint("write for example --keys 200k, 20M or 4000000")
        })?,
    };
    let workload = RocksdbWorkload::from(work.workload);
    if work.published.is_some() && work.keys.is_none() && workload.compresses() {
        let word = workload.word();
        return Err(
            Problem::new(format!("the published sizes do not suit {word}"))
                .detail("their keys fit into memory, but it needs a database larger than memory")
                .hint(format!(
                    "choose a number of keys, for example --workload {word} --keys 800M"
                )),
        );
    }
    let setup = RocksdbSetup {
        workload,
        keys,
        key_bytes: KEY_BYTES,
        value_bytes: work.value_bytes,
        threads: match work.threads.as_slice() {
            [] => vec![preset.threads],
            threads => threads.to_vec(),
        },
        seconds: work.seconds.unwrap_or(preset.seconds),
        writer_bytes_per_second: size(&work.writer_rate, "--writer-rate")?,
        steps: steps(work)?,
        cache_bytes: 0,
        background_jobs: work.background_jobs.unwrap_or(preset.background_jobs),
        options: options(&work.options, "--option")?,
    };
    let cache_bytes = match &work.cache_size {
        Some(text) => size(text, "--cache-size")?,
        None => match (preset.cache_bytes, workload) {
            (None, _) | (Some(_), RocksdbWorkload::Iobuf | RocksdbWorkload::Iodir) => {
                setup.usual_cache_bytes()
            }
            (Some(_), RocksdbWorkload::Byos) => sizes::PUBLISHED_SMALL_CACHE,
            (Some(bytes), _) => bytes,
        },
    };
    Ok(RocksdbSetup {
        cache_bytes,
        ..setup
    })
}

fn size(text: &str, option: &str) -> Result<u64, Problem> {
    deltabench_document::amounts::bytes(text).ok_or_else(|| {
        Problem::new(format!("`{text}` is not an amount of bytes"))
            .hint(format!("write for example {option} 2MB or 1GB"))
    })
}

fn steps(work: &ChainArguments) -> Result<Vec<RocksdbStep>, Problem> {
    if work.all_steps {
        return Ok(RocksdbStep::ALL.to_vec());
    }
    if work.steps.is_empty() {
        return Ok(RocksdbStep::published());
    }
    work.steps.iter().map(named_step).collect()
}

/// The step of that name.
///
/// Errors: there is none, with those that are there.
fn named_step(name: &String) -> Result<RocksdbStep, Problem> {
    RocksdbStep::from_name(name.trim()).ok_or_else(|| {
        let known = RocksdbStep::ALL.map(RocksdbStep::name);
        let problem = Problem::new(format!("there is no step `{name}`"))
            .detail(format!("steps are {}", known.join(", ")));
        match nearest(name, known) {
            Some(other) => problem.hint(format!("did you mean {other}?")),
            None => problem,
        }
    })
}

/// `NAME=VALUE` each.
fn options(texts: &[String], option: &str) -> Result<Vec<(String, String)>, Problem> {
    let read = |text: &String| match text.split_once('=') {
        Some((name, value)) if !value.trim().is_empty() => {
            check_option(name.trim())?;
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err(Problem::new(format!("`{text}` is not an option"))
            .hint(format!("write {option} write_buffer_size=33554432"))),
    };
    texts.iter().map(read).collect()
}

/// Seconds for a block cache to fill in before a step that reads: a fifth of its time, within bounds.
pub fn warmup(seconds: u32) -> f64 {
    (f64::from(seconds) / 5.0).clamp(0.3, 30.0)
}

fn ending(exactness: &Exactness) -> Ending {
    Ending {
        fixed: exactness.fixed,
        precision: exactness.precision.clone(),
        budget: exactness.budget.clone(),
        no_pilot: true,
        confirm: false,
        gate: exactness.gate,
        not_worse_than: exactness.not_worse_than.clone(),
        gate_on: Vec::new(),
        on_inconclusive: exactness.on_inconclusive,
    }
}

fn request(arguments: &RocksdbArguments) -> Result<Request, Problem> {
    let (work, exactness) = (&arguments.work, &arguments.exactness);
    let setup = setup(work)?;
    let preset = Preset::of(work.quick, work.published);
    let blocks = exactness.blocks.unwrap_or(preset.blocks);
    let ending = ending(exactness);
    let databases = &arguments.databases;
    let (limits, cache) = limits(&LimitArguments {
        memory: databases.memory.clone(),
        storage: AS_IS.to_owned(),
        cache_state: CacheWord::AsIs,
        limits_optional: databases.limits_optional,
    })?;
    Ok(Request {
        same_target: exactness.same_target,
        selection: Selection::Named(Vec::new()),
        sources: Vec::new(),
        state: DataState::Fresh,
        order: CellOrder::Drawn,
        rate: None,
        transport: Transport::Socket,
        pins: None,
        clients: setup.threads.clone(),
        data: DataSize {
            tables: 1,
            rows: setup.keys,
        },
        timing: Timing {
            blocks,
            slice_ms: exactness.slice_ms.unwrap_or(preset.slice_ms),
            slice_jitter: 0.2,
            visit_seconds: f64::from(setup.seconds),
            warmup_seconds: warmup(setup.seconds),
            connections_per_visit: 1,
            sustained: false,
            write_seconds: None,
            warmup_chosen: false,
            rotated: false,
            deadline_seconds: exactness.budget.as_deref().map(time).transpose()?,
        },
        placement: (Placement::Free, Placement::Free),
        jobs: Jobs::Count(1),
        delta: exactness.delta.as_deref().map(percent).transpose()?,
        stopping: stopping(&ending, blocks)?,
        gate: gate(&ending)?,
        checksums: None,
        settings: Vec::new(),
        limits,
        cache,
        observing: Observing::default(),
        probes: false,
        work: Work::Rocksdb(setup),
        placebo: !exactness.no_placebo,
        seed: exactness.seed.unwrap_or_else(seed_from_clock),
        command: words(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use deltabench_model::plan::Stopping;

    #[derive(Debug, Parser)]
    struct Alone {
        /// Its options
        #[command(flatten)]
        arguments: RocksdbArguments,
    }

    fn asked(options: &str) -> Result<Request, Problem> {
        let words = ["rocksdb", "6.29.5", "10.2.1"];
        let words = words.into_iter().chain(options.split_whitespace());
        request(&Alone::try_parse_from(words).unwrap().arguments)
    }

    fn setup(options: &str) -> RocksdbSetup {
        asked(options).unwrap().work.rocksdb().cloned().unwrap()
    }

    #[test]
    fn what_is_usual_is_a_million_keys_and_the_published_steps_with_all_data_in_the_cache() {
        let request = asked("").unwrap();
        let setup = request.work.rocksdb().unwrap();
        assert_eq!(setup.steps, RocksdbStep::published());
        assert_eq!((setup.keys, setup.seconds), (1_000_000, 5));
        assert_eq!(setup.threads, [1]);
        assert_eq!(setup.cache_bytes, 2 * 420_000_000);
        assert_eq!((request.timing.blocks, request.timing.slice_ms), (8, 100));
        assert!(request.placebo && matches!(request.stopping, Stopping::Sequential { .. }));
        assert_eq!(request.data.rows, 1_000_000);
    }

    #[test]
    fn options_are_read_as_people_write_them() {
        let all = setup(
            "--quick --workload iodir --keys 20k --value-bytes 100 --threads 1,4 --seconds 3 \
             --writer-rate 1MB --all-steps --cache-size 64MB --background-jobs 3 \
             --option write_buffer_size=4194304 --option block_size=4096",
        );
        assert_eq!(all.workload, RocksdbWorkload::Iodir);
        assert_eq!((all.keys, all.value_bytes, all.seconds), (20_000, 100, 3));
        assert_eq!(all.threads, [1, 4]);
        assert_eq!(all.writer_bytes_per_second, 1 << 20);
        assert_eq!(all.steps, RocksdbStep::ALL);
        assert_eq!((all.cache_bytes, all.background_jobs), (64 << 20, 3));
        let names: Vec<&str> = all.options.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["write_buffer_size", "block_size"]);
        let some = setup("--steps fillseq,drain,readrandom").steps;
        let names: Vec<&str> = some.into_iter().map(RocksdbStep::name).collect();
        assert_eq!(names, ["fillseq", "drain", "readrandom"]);
    }

    #[test]
    fn published_sizes_are_those_of_the_study() {
        let of = |options: &str| {
            let setup = setup(options);
            let (cache, jobs) = (setup.cache_bytes >> 30, setup.background_jobs);
            (
                setup.keys / 1_000_000,
                setup.threads,
                cache,
                jobs,
                setup.seconds,
            )
        };
        assert_eq!(of("--published small"), (20, vec![1], 20, 4, 1800));
        assert_eq!(of("--published large-24"), (40, vec![16], 48, 12, 1800));
        assert_eq!(of("--published large-32"), (50, vec![24], 90, 8, 1800));
        assert_eq!(of("--published small --workload byos").2, 1);
        let large = of("--published small --workload iobuf --keys 800M");
        assert_eq!((large.0, large.2, large.3), (800, 39, 4), "an eighth");
        assert_eq!(of("--published small --keys 1M --threads 2").0, 1);
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_what_to_write() {
        for (options, what) in [
            ("--keys many", "--keys 200k"),
            ("--cache-size 64", "--cache-size 2MB"),
            ("--writer-rate fast", "--writer-rate 2MB"),
            ("--steps fillsek", "did you mean fillseq?"),
            ("--option ttl", "--option write_buffer_size=33554432"),
            ("--option block_cache=lru", "--block-cache"),
            ("--option wal_dir=/x", "leave out wal_dir"),
            ("--published small --workload iodir", "--keys 800M"),
            ("--memory 1MB", "--memory 80MB"),
            ("--budget 10", "--budget 15m"),
        ] {
            let problem = asked(options).unwrap_err();
            let hint = problem.hint.clone().unwrap_or_default();
            assert!(hint.contains(what), "{options}: {problem}");
        }
    }
}
