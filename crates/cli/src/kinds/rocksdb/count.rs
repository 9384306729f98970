//! `deltabench count` of RocksDB: its steps, counted in the worker of each library.

use super::targets::{Sides, specs};
use super::{KEY_BYTES, named_step, options};
use crate::arguments::conditions::{Checksums, Conditions};
use crate::arguments::count::Count;
use crate::config::Config;
use crate::failure::Failure;
use crate::host::{check_fits, swept_host};
use crate::kinds::rocksdb::arguments::BlockCacheWord;
use crate::output::Destinations;
use crate::ready::Ready;
use crate::request::first_given;
use crate::targets::resolve;
use deltabench_kinds::run_half;
use deltabench_model::problem::Problem;
use deltabench_model::work::Work;
use deltabench_model::work::rocksdb::{
    BACKGROUND_JOBS, RocksdbSetup, RocksdbStep, RocksdbWorkload, STEP_SECONDS, VALUE_BYTES,
};
use deltabench_run::planning::{self, Request, Selection};
use deltabench_workload::Library;

/// Fewest keys: windows load some of them, and all others are for the steps after it.
const KEYS_MIN: u64 = 10_000;

/// Block caches have so many times the data, and at least so many bytes: none of their 64 shards gets full,
/// and no block leaves one. Which shard a block is in is drawn at random in each start.
const CACHE: (u64, u64) = (8, 64 << 20);

/// Whether a count is one of libraries, by its base.
pub fn is_meant(arguments: &Count) -> bool {
    let base = &arguments.base;
    base.starts_with("rocksdb:") || base.starts_with("db_bench:")
}

/// A count of libraries that can be carried out here; `request` has what all counts have in common.
pub fn ready(arguments: &Count, request: Request, config: &Config) -> Result<Ready, Failure> {
    let request = of_steps(arguments, request).map_err(Failure::Refused)?;
    let conditions = &arguments.conditions;
    let specs = specs(&arguments.base, &arguments.candidates).map_err(Failure::Refused)?;
    let sides = Sides {
        specs: &specs,
        caches: &[BlockCacheWord::Lru],
        own: options(&conditions.candidate_settings, "--candidate-set")
            .map_err(Failure::Refused)?,
    };
    sides.check().map_err(Failure::Refused)?;
    let destinations = Destinations::check(&conditions.output, config).map_err(Failure::Refused)?;
    let library = Library::builtin().map_err(Failure::Failed)?;
    let kind = run_half(&request.work);
    kind.check(&request, &library).map_err(Failure::Refused)?;
    let host = swept_host(&conditions.servers, config)?;
    let found = resolve(&specs, config).map_err(Failure::Refused)?;
    let (base, candidates) = sides.wishes(&found).map_err(Failure::Refused)?;
    let plan =
        planning::plan(request, kind, (&base, &candidates), &library).map_err(Failure::Refused)?;
    check_fits(&plan, &host).map_err(Failure::Refused)?;
    Ok(Ready::made(plan, host, library, destinations))
}

/// The request with the steps that are counted.
///
/// Errors: what has no meaning for a library; steps that are not there, too few keys.
fn of_steps(arguments: &Count, request: Request) -> Result<Request, Problem> {
    check(arguments)?;
    let setup = RocksdbSetup {
        workload: RocksdbWorkload::default(),
        keys: arguments.rows,
        key_bytes: KEY_BYTES,
        value_bytes: VALUE_BYTES,
        threads: vec![1],
        seconds: STEP_SECONDS,
        // A rate needs a clock.
        writer_bytes_per_second: 0,
        steps: steps(&arguments.only)?,
        cache_bytes: 0,
        background_jobs: BACKGROUND_JOBS,
        options: options(&arguments.conditions.settings, "--set")?,
    };
    Ok(Request {
        selection: Selection::Named(Vec::new()),
        checksums: None,
        settings: Vec::new(),
        work: Work::Rocksdb(RocksdbSetup {
            cache_bytes: (CACHE.0 * setup.raw_bytes()).max(CACHE.1),
            ..setup
        }),
        ..request
    })
}

/// The steps that are wanted, with all that bring the database into their states.
fn steps(only: &[String]) -> Result<Vec<RocksdbStep>, Problem> {
    if only.is_empty() {
        return Ok(RocksdbStep::ALL.to_vec());
    }
    let wanted: Vec<RocksdbStep> = only.iter().map(named_step).collect::<Result<_, _>>()?;
    if let Some(step) = wanted.iter().find(|step| !step.is_measured()) {
        return Err(Problem::new(format!("{} is not counted", step.name()))
            .detail("it only brings the database into a state")
            .hint("name a step after it, for example readwhilewriting"));
    }
    let makes = |step: &RocksdbStep| !step.is_measured() || *step == RocksdbStep::Fillseq;
    let wanted = |step: &RocksdbStep| wanted.contains(step);
    Ok(crate::kinds::chain::needed(
        &RocksdbStep::ALL,
        wanted,
        makes,
    ))
}

fn check(arguments: &Count) -> Result<(), Problem> {
    if let Some(option) = of_servers_only(arguments) {
        return Err(Problem::new(format!("{option} is for servers"))
            .detail("a library has no clients, configurations and workloads of SQL")
            .hint(
                "leave it out; --only names steps, --rows says how many keys, --set is an option",
            ));
    }
    if arguments.rows < KEYS_MIN {
        return Err(Problem::new(format!("{} keys are too few", arguments.rows))
            .hint(format!("use at least --rows {KEYS_MIN}")));
    }
    Ok(())
}

/// The first option given that has a meaning for servers only.
fn of_servers_only(arguments: &Count) -> Option<&'static str> {
    let Conditions {
        configuration,
        candidate_configuration,
        checksums,
        ..
    } = &arguments.conditions;
    first_given(&[
        (arguments.all, "--all"),
        (arguments.insert, "--insert"),
        (!arguments.workloads.is_empty(), "-f"),
        (arguments.tables != 1, "--tables"),
        (configuration.is_some(), "--config"),
        (candidate_configuration.is_some(), "--candidate-config"),
        (*checksums != Checksums::On, "--checksums"),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_counted_with_those_that_make_its_database() {
        let names = |only: &[&str]| {
            let only: Vec<String> = only.iter().map(|name| (*name).to_owned()).collect();
            steps(&only).map(|steps| {
                let names: Vec<&str> = steps.into_iter().map(RocksdbStep::name).collect();
                names.join(" ")
            })
        };
        assert_eq!(names(&["readrandom"]).unwrap(), "fillseq drain readrandom");
        assert_eq!(
            names(&["readwhilewriting", "fillseq"]).unwrap(),
            "fillseq drain overwritesome flush_mt_l0 readwhilewriting"
        );
        assert_eq!(
            names(&[]).unwrap().split(' ').count(),
            RocksdbStep::ALL.len()
        );
        let refused = names(&["drain"]).unwrap_err();
        assert!(refused.detail.unwrap().contains("state"));
        let refused = names(&["point-query"]).unwrap_err();
        assert!(refused.detail.unwrap().contains("readrandom"));
    }
}
