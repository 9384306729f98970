//! Which settings of RocksDB can be measured, and with what.

use deltabench_model::installation::Engine;
use deltabench_model::plan::{CacheState, CellOrder, DataState, Plan, Transport};
use deltabench_model::problem::Problem;
use deltabench_model::units::{count, to_f64, to_u64};
use deltabench_model::work::rocksdb::{
    BLOCK_CACHE, BlockCache, RocksdbSetup, RocksdbStep, check_option,
};
use deltabench_run::planning::{Request, Selection, ServerWish};

/// Keys at least: fewer are one file, and a step is over before it has begun.
const KEYS_MIN: u64 = 1000;

/// Keys and values of a database at most, bytes.
const BYTES_MAX: u64 = 1 << 44;

/// Bytes of a key: a number of eight, and padding.
const KEY_BYTES: std::ops::RangeInclusive<u32> = 8..=1024;

/// Bytes of a value.
const VALUE_BYTES: std::ops::RangeInclusive<u32> = 8..=(1 << 20);

/// Threads of a step at most.
const THREADS_MAX: u32 = 1024;

/// Seconds of a step at most: a day.
const SECONDS_MAX: u32 = 86_400;

/// Bytes of a block cache at least: each of its shards holds some blocks.
const CACHE_MIN: u64 = 1 << 20;

/// What files take of keys and values, half of which can be compressed away.
const COMPRESSED: f64 = 0.6;

/// Refuses what goes together with RocksDB in no request.
///
/// Errors: sizes and steps that make no chain; workloads, states and rules that have no meaning for it.
pub(crate) fn check_request(setup: &RocksdbSetup, request: &Request) -> Result<(), Problem> {
    check_sizes(setup)?;
    check_steps(&setup.steps)?;
    let none = Selection::Named(Vec::new());
    if request.selection != none || !request.sources.is_empty() {
        return Err(
            Problem::new("RocksDB cannot be measured together with workloads of SQL")
                .hint("measure them in separate runs"),
        );
    }
    if request.cache != CacheState::AsIs {
        return Err(Problem::new("RocksDB keeps caches as its steps leave them")
            .hint("leave out --cache-state; `iobuf` and `iodir` are larger than their caches"));
    }
    let own = request.state == DataState::Fresh
        && request.order == CellOrder::Drawn
        && request.rate.is_none()
        && request.transport == Transport::Socket;
    if !own {
        return Err(
            Problem::new("RocksDB has its own order, and no clients or schedule")
                .detail("each step starts from what earlier steps left, in the same process")
                .hint("leave out state, order, rate and transport"),
        );
    }
    if request.limits.storage.is_some() {
        return Err(Problem::new("the device of RocksDB cannot be limited")
            .detail(
                "the kernel writes back the output of compactions, and the limit does not apply to \
                     that",
            )
            .hint("leave out --storage; --memory makes a database larger than memory"));
    }
    if request.observing.waits_per_second > 0 {
        return Err(Problem::new("waits of RocksDB cannot be sampled")
            .hint("leave out --waits; the library counts stalls of writes"));
    }
    if request.observing.profile.is_some() {
        return Err(
            Problem::new("the time of RocksDB cannot be sampled").hint("leave out --sample")
        );
    }
    if !request.settings.is_empty() {
        return Err(Problem::new("RocksDB has no settings of servers")
            .hint("set options of RocksDB with --option NAME=VALUE"));
    }
    Ok(())
}

/// Refuses a target that cannot be measured as it is wished.
///
/// Errors: an unknown block cache, or one that its version lacks.
pub(crate) fn check_server(wish: &ServerWish) -> Result<(), Problem> {
    let installation = &wish.installation;
    for (name, value) in &wish.settings {
        if name != BLOCK_CACHE {
            check_value(name, value)?;
            continue;
        }
        let cache = BlockCache::from_word(value).ok_or_else(|| {
            Problem::new(format!("there is no block cache `{value}`"))
                .hint("use lru or hyper-clock")
        })?;
        if !cache.is_in(installation.engine, installation.version_num) {
            let since = match installation.engine {
                Engine::DbBench => "db_bench has it from 7.7 on",
                _ => "its C interface came with 8.1",
            };
            return Err(Problem::new(format!(
                "{} has no block cache `{value}`",
                installation.resolved
            ))
            .detail(since)
            .hint("give it the cache lru, or leave it out"));
        }
    }
    Ok(())
}

fn check_value(name: &str, value: &str) -> Result<(), Problem> {
    check_option(name)?;
    if value.is_empty() || value.contains(['\n', '\r', '\0']) {
        return Err(
            Problem::new(format!("`{value}` is not a value of option {name}"))
                .hint("write it as in an option file, for example 33554432"),
        );
    }
    Ok(())
}

fn check_sizes(setup: &RocksdbSetup) -> Result<(), Problem> {
    if setup.keys < KEYS_MIN {
        return Err(Problem::new(format!("{} keys are too few", setup.keys))
            .hint(format!("use at least --keys {KEYS_MIN}; --quick has 200k")));
    }
    if !KEY_BYTES.contains(&setup.key_bytes) || !VALUE_BYTES.contains(&setup.value_bytes) {
        let (key, value) = (setup.key_bytes, setup.value_bytes);
        return Err(Problem::new(format!(
            "keys of {key} and values of {value} bytes are out of range"
        ))
        .hint("keys have 8 to 1024 bytes, values 8 to 1048576"));
    }
    let record = u64::from(setup.key_bytes + setup.value_bytes);
    if setup.keys.saturating_mul(record) > BYTES_MAX {
        return Err(Problem::new("more than 16 TB of keys and values").hint("lower --keys"));
    }
    let threads = &setup.threads;
    if threads.is_empty() || threads.iter().any(|t| !(1..=THREADS_MAX).contains(t)) {
        return Err(Problem::new("every step needs threads, from 1 to 1024")
            .hint("use --threads 1 or --threads 1,4"));
    }
    let mut counts = threads.clone();
    counts.sort_unstable();
    counts.dedup();
    if counts.len() < threads.len() {
        return Err(Problem::new("a number of threads is named twice")
            .hint("leave one of them out of --threads"));
    }
    if !(1..=SECONDS_MAX).contains(&setup.seconds) {
        return Err(
            Problem::new(format!("steps of {} s are out of range", setup.seconds))
                .hint(format!("use --seconds from 1 to {SECONDS_MAX}")),
        );
    }
    if setup.cache_bytes < CACHE_MIN {
        return Err(
            Problem::new("a block cache of less than 1 MB holds nothing")
                .hint("use --cache-size 8MB or more"),
        );
    }
    if setup.background_jobs == 0 {
        return Err(
            Problem::new("without a background job nothing is flushed or compacted")
                .hint("use --background-jobs 2 or more"),
        );
    }
    setup
        .options
        .iter()
        .try_for_each(|(name, value)| check_value(name, value))
}

/// Why a workload that is for data larger than memory is not what its name says, if it is not, on a host with
/// so much memory `available`.
pub fn in_memory(plan: &Plan, available: Option<u64>) -> Option<String> {
    let setup = plan.work.rocksdb()?;
    if !setup.workload.compresses() {
        return None;
    }
    let word = setup.workload.word();
    let files = to_u64(to_f64(setup.raw_bytes()) * COMPRESSED);
    let why = match plan.limits.memory_bytes {
        _ if setup.raw_bytes() <= setup.cache_bytes => format!(
            "all of it fits into the block cache of {} MB",
            setup.cache_bytes >> 20
        ),
        // Files are not kept by the kernel.
        _ if setup.workload.direct() => return None,
        Some(limit) if files < limit => format!(
            "about {} MB of files fit into the {} MB of a target",
            files >> 20,
            limit >> 20
        ),
        Some(_) => return None,
        None => {
            let all = files.saturating_mul(count(plan.servers.len()));
            let free = available.filter(|free| all < *free)?;
            format!(
                "about {} MB of files of all targets fit into the {} MB that are free here",
                all >> 20,
                free >> 20
            )
        }
    };
    Some(format!(
        "{word} is for a database larger than memory, but {why}: little or nothing is read from the \
         device"
    ))
}

/// A chain loads first, once, and comes to something that is measured; its parts stand in the order of
/// [`RocksdbStep::ALL`].
fn check_steps(steps: &[RocksdbStep]) -> Result<(), Problem> {
    if steps.first() != Some(&RocksdbStep::Fillseq) {
        return Err(Problem::new("the first step must be fillseq")
            .detail("every block begins with an empty database")
            .hint("begin --steps with fillseq"));
    }
    let place = |step: &RocksdbStep| RocksdbStep::ALL.iter().position(|other| other == step);
    for pair in steps.windows(2) {
        let [one, next] = pair else { continue };
        if place(next) <= place(one) {
            let all: Vec<&str> = RocksdbStep::ALL.iter().map(|step| step.name()).collect();
            return Err(
                Problem::new(format!("{} cannot come after {}", next.name(), one.name()))
                    .detail(format!("the order is {}", all.join(", ")))
                    .hint("give --steps in that order, each once"),
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{engine, made, refused, rocksdb_plan, rocksdb_request};
    use crate::rocksdb::benchmark::Rocksdb;
    use crate::targets::check_targets;
    use deltabench_model::plan::Stopping;
    use deltabench_model::target::TargetSpec;
    use deltabench_model::work::Work;
    use deltabench_model::work::rocksdb::RocksdbWorkload;
    use deltabench_run::benchmark::Benchmark;
    use deltabench_run::planning::plan;
    use deltabench_workload::Library;

    fn refusal(change: impl FnOnce(&mut Request)) -> String {
        refused(rocksdb_request(), change)
    }

    fn setup(request: &mut Request) -> &mut RocksdbSetup {
        match &mut request.work {
            Work::Rocksdb(setup) => setup,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_makes_no_chain_is_refused_with_a_way_out() {
        use RocksdbStep::{Drain, Fillseq, Overwritesome, Readrandom};
        let library = Library::builtin().unwrap();
        Rocksdb.check(&rocksdb_request(), &library).unwrap();
        assert!(refusal(|r| setup(r).keys = 10).contains("--keys 1000"));
        assert!(refusal(|r| setup(r).keys = u64::MAX).contains("16 TB"));
        assert!(refusal(|r| setup(r).key_bytes = 4).contains("8 to 1024"));
        assert!(refusal(|r| setup(r).threads = vec![1, 0]).contains("--threads"));
        assert!(refusal(|r| setup(r).threads = vec![4, 1, 4]).contains("twice"));
        assert!(refusal(|r| setup(r).seconds = 0).contains("--seconds"));
        assert!(refusal(|r| setup(r).cache_bytes = 5).contains("--cache-size"));
        assert!(refusal(|r| setup(r).background_jobs = 0).contains("--background-jobs"));
        assert!(refusal(|r| setup(r).steps = vec![Readrandom]).contains("fillseq"));
        assert!(refusal(|r| setup(r).steps = Vec::new()).contains("fillseq"));
        let turned = vec![Fillseq, Overwritesome, Drain];
        assert!(refusal(|r| setup(r).steps = turned).contains("drain cannot come after"));
        let twice = vec![Fillseq, Fillseq];
        assert!(refusal(|r| setup(r).steps = twice).contains("fillseq cannot come after"));
        let broken = vec![("a b".to_owned(), "1".to_owned())];
        assert!(refusal(|r| setup(r).options = broken).contains("option of RocksDB"));
    }

    #[test]
    fn what_means_nothing_to_it_is_refused() {
        assert!(refusal(|r| r.selection = Selection::Quick).contains("separate runs"));
        assert!(refusal(|r| r.cache = CacheState::Cold).contains("--cache-state"));
        assert!(refusal(|r| r.rate = Some(10.0)).contains("rate"));
        assert!(refusal(|r| r.observing.waits_per_second = 5).contains("--waits"));
        assert!(refusal(|r| r.settings = vec![("jit".into(), "on".into())]).contains("--option"),);
        assert!(refusal(|r| r.delta = Some(0.9)).contains("--delta"));
        assert!(refusal(|r| r.timing.blocks = 0).contains("zero blocks"));
        assert!(
            refusal(|r| r.stopping = Stopping::Precision { half_width: 0.9 })
                .contains("--precision")
        );
    }

    #[test]
    fn a_database_that_is_to_be_larger_than_memory_and_is_not_is_told() {
        let mut plan = rocksdb_plan(&["a", "a", "b"]);
        let gb = 1 << 30;
        let mut told = |workload, keys, cache, limit, free| {
            let setup = match &mut plan.work {
                Work::Rocksdb(setup) => setup,
                other => panic!("{other:?}"),
            };
            (setup.workload, setup.keys, setup.cache_bytes) = (workload, keys, cache);
            (setup.key_bytes, setup.value_bytes) = (24, 1000);
            plan.limits.memory_bytes = limit;
            in_memory(&plan, free)
        };
        use RocksdbWorkload::{Byos, Iobuf, Iodir};
        // A million of 1024 bytes: about 586 MB of files each.
        let keys = 1_000_000;
        assert_eq!(told(Byos, keys, 2 * gb, None, Some(8 * gb)), None);
        assert!(
            told(Iobuf, keys, gb / 8, None, Some(2 * gb))
                .unwrap()
                .contains("about 1757 MB of files of all targets")
        );
        assert_eq!(told(Iobuf, keys, gb / 8, None, Some(gb)), None);
        assert_eq!(told(Iobuf, keys, gb / 8, None, None), None);
        assert!(told(Iobuf, keys, gb / 8, Some(gb), Some(gb)).is_some());
        assert_eq!(told(Iobuf, keys, gb / 8, Some(gb / 2), Some(8 * gb)), None);
        assert_eq!(told(Iodir, keys, gb / 8, None, Some(8 * gb)), None);
        assert!(
            told(Iodir, keys, gb, None, Some(gb))
                .unwrap()
                .contains("block cache of 1024 MB")
        );
    }

    #[test]
    fn engines_and_servers_are_not_mixed_in_any_direction() {
        let library = Library::builtin().unwrap();
        let (base, other) = (
            engine("rocksdb:6.29.5", 62_905),
            engine("rocksdb:10.2.1", 100_201),
        );
        let made = made(rocksdb_request(), &base, std::slice::from_ref(&other));
        assert_eq!(made.cells.len(), made.work.rocksdb().unwrap().cells().len());
        let mut bench = engine("db_bench:/b", 0);
        bench.installation.engine = Engine::DbBench;
        let mut server = engine("postgres:18", 180_000);
        server.installation.engine = Engine::Postgres;
        for (wrong, said) in [(&bench, "cannot be compared"), (&server, "is not RocksDB")] {
            let refused = plan(
                rocksdb_request(),
                &Rocksdb,
                (&base, std::slice::from_ref(wrong)),
                &library,
            );
            assert!(refused.unwrap_err().to_string().contains(said));
        }
        let spec = |text: &str| text.parse::<TargetSpec>().unwrap();
        let mixed = [spec("postgres:17"), spec("rocksdb:10.2.1")];
        let said = check_targets(&mixed, false).unwrap_err().to_string();
        assert!(said.contains("deltabench rocksdb"), "{said}");
        assert!(
            check_targets(&mixed, true)
                .unwrap_err()
                .to_string()
                .contains("compare")
        );
        check_targets(&mixed[..1], false).unwrap();
        check_targets(&mixed[1..], true).unwrap();
    }

    #[test]
    fn a_cache_that_a_version_surely_lacks_is_refused_and_two_caches_are_two_servers() {
        let library = Library::builtin().unwrap();
        let with = |name: &str, version: u32, cache: &str| {
            let mut wish = engine(name, version);
            wish.settings = vec![(BLOCK_CACHE.to_owned(), cache.to_owned())];
            wish
        };
        let lru = with("rocksdb:10.2.1", 100_201, "lru");
        let clock = with("rocksdb:10.2.1", 100_201, "hyper-clock");
        made(rocksdb_request(), &lru, std::slice::from_ref(&clock));
        let said = |wish: &ServerWish| check_server(wish).unwrap_err().to_string();
        assert!(said(&with("rocksdb:7.10.2", 71_002, "hyper-clock")).contains("8.1"));
        check_server(&with("rocksdb:path:/x.so", 0, "hyper-clock")).unwrap();
        assert!(said(&with("rocksdb:10.2.1", 100_201, "clock")).contains("lru or hyper-clock"));
        let same = plan(
            rocksdb_request(),
            &Rocksdb,
            (&lru, std::slice::from_ref(&lru)),
            &library,
        );
        assert!(same.unwrap_err().to_string().contains("--same-target"));
    }
}
