//! What each step does, and that it does the same on all versions.

use crate::lab::{KEYS, Worker, has_hyper_clock, libraries, one_thread, opening, setup};
use deltabench_engine::{StepOrder, Turned};
use deltabench_model::plan::Group;
use deltabench_model::units::to_f64;
use deltabench_model::work::rocksdb::{BlockCache, RocksdbStep, RocksdbWorkload, SEEK_NEXTS};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;

fn latencies(turned: &Turned) -> Histogram<u64> {
    let mut bytes = turned.latency_histogram.as_slice();
    Deserializer::new().deserialize(&mut bytes).unwrap()
}

/// A counted turn and two that are not, by two threads where the step can have them.
fn measure(worker: &mut Worker, step: RocksdbStep, operations: u64) {
    worker.begin(StepOrder {
        threads: if step.single() { 1 } else { 2 },
        ..one_thread(step)
    });
    for number in 0..3 {
        let turned = worker.turn(number, operations, number == 0);
        let what = format!("{} turn {number}: {turned:?}", step.name());
        assert_eq!(turned.operations, operations, "{what}");
        assert_eq!(latencies(&turned).len(), operations, "{what}");
        assert!(turned.duration_ns > 0 && turned.cpu_ns > 0, "{what}");
        match step.group() {
            Group::Point => assert_eq!(turned.rows, operations, "all keys are found: {what}"),
            Group::Range => {
                let most = operations * u64::from(SEEK_NEXTS);
                let last_keys = most / 100;
                assert!((most - last_keys..=most).contains(&turned.rows), "{what}");
            }
            _ => assert_eq!(turned.rows, 0, "{what}"),
        }
        // Puts into vectors, as a load does them, are nothing that the library counts.
        let is_counted = number == 0 && step != RocksdbStep::Fillseq;
        assert_eq!(turned.counted.is_empty(), !is_counted, "{what}");
    }
    let figures = worker.finish();
    let figure = |name: &str| {
        *figures
            .get(name)
            .unwrap_or_else(|| panic!("{name}: {figures:?}"))
    };
    assert!(figure("active_ns") > 0.0 && figure("user_cpu_ns") + figure("system_cpu_ns") > 0.0);
    assert!(figure("largest_rss_bytes") > 1e6 && figure("lsm_bytes") > 0.0);
    if step.group() != Group::Write {
        let blocks = figure("block_cache_hits") + figure("block_cache_misses");
        assert!(blocks > to_f64(operations), "{} {figures:?}", step.name());
    }
    let waits = step == RocksdbStep::Overwriteandwait;
    assert_eq!(figures.contains_key("drain_ns"), waits, "{figures:?}");
    let writes = step.group() == Group::Write;
    assert_eq!(figures.contains_key("finish_cpu_ns"), writes, "{figures:?}");
    let gets = matches!(
        step,
        RocksdbStep::Readrandom | RocksdbStep::Readwhilewriting
    );
    assert_eq!(figures.contains_key("memtable_hits"), gets, "{figures:?}");
}

#[test]
fn every_step_goes_on_every_library() {
    for library in libraries() {
        let mut worker = Worker::open(&library, setup());
        for step in RocksdbStep::ALL {
            match step {
                RocksdbStep::FlushMtL0 => {
                    let figures = worker.prepare(step);
                    assert_eq!(figures.get("l0_files"), Some(&0.0), "{figures:?}");
                    assert!(figures["flush_bytes"] > 0.0, "{figures:?}");
                }
                step if !step.is_measured() => {
                    worker.prepare(step);
                }
                // More than two memtables, so that there is something to wait for.
                RocksdbStep::Overwriteandwait => measure(&mut worker, step, 30_000),
                step => measure(&mut worker, step, 2000),
            }
        }
        assert!(worker.close().success(), "{}", library.display());
    }
}

#[test]
fn all_keys_are_there_after_a_load_however_its_turns_went() {
    for library in libraries() {
        let mut worker = Worker::open(&library, setup());
        worker.begin(one_thread(RocksdbStep::Fillseq));
        assert_eq!(worker.turn(0, 5000, true).operations, 5000);
        assert_eq!(worker.turn(1, 7000, false).operations, 7000);
        let figures = worker.finish();
        // What went in is told as a rate over an uptime of tenths of seconds: too coarse here.
        assert!(figures["flush_bytes"] > 7000.0 * 400.0, "{figures:?}");
        assert_eq!(figures.get("wal_write_bytes"), Some(&0.0), "{figures:?}");
        let found = worker.counted(RocksdbStep::Multireadrandom, 10 * KEYS);
        assert_eq!(found.rows, 10 * KEYS, "{}", library.display());

        let mut worker = Worker::open(&library, setup());
        worker.begin(one_thread(RocksdbStep::Fillseq));
        let turned = worker.turn(0, KEYS + 1, false);
        assert_eq!(turned.operations, KEYS, "there are no more keys");
        assert_eq!(worker.turn(1, 1, false).operations, 0);
        worker.finish();
        assert_eq!(worker.counted(RocksdbStep::Readrandom, KEYS).rows, KEYS);
    }
}

#[test]
fn the_same_seed_does_the_same_work_on_all_versions() {
    let work = |cache: BlockCache, library: &std::path::Path| {
        let mut worker = Worker::start();
        let mut order = opening(library, setup());
        order.cache = cache;
        worker.opened(order);
        worker.prepare(RocksdbStep::Fillseq);
        worker.prepare(RocksdbStep::FlushMtL0);
        let steps = [
            RocksdbStep::Readrandom,
            RocksdbStep::Fwdrange,
            RocksdbStep::Multireadrandom,
        ];
        steps.map(|step| {
            let turned = worker.counted(step, 5000);
            let count = |name: &str| turned.counted.get(name).copied().unwrap_or(0);
            // A look-up of many keys in one go asks for the filter once: that is what it is for.
            let hits = match step {
                RocksdbStep::Multireadrandom => 0,
                _ => count("block_cache_hit_count"),
            };
            let misses = count("block_read_count");
            (step.name(), turned.operations, turned.rows, hits, misses)
        })
    };
    let libraries = libraries();
    let expected = work(BlockCache::Lru, libraries.first().unwrap());
    assert!(expected[0].3 > 0 && expected[0].4 > 0, "{expected:?}");
    for library in &libraries {
        assert_eq!(
            work(BlockCache::Lru, library),
            expected,
            "{}",
            library.display()
        );
        if has_hyper_clock(library) {
            assert_eq!(
                work(BlockCache::HyperClock, library),
                expected,
                "{}",
                library.display()
            );
        }
    }
}

#[test]
fn another_turn_or_seed_has_other_keys() {
    let library = libraries().pop().unwrap();
    let mut worker = Worker::loaded(&library, setup());
    let mut comparisons = |seed, number| {
        worker.begin(StepOrder {
            seed,
            ..one_thread(RocksdbStep::Readrandom)
        });
        // The blocks are in the cache after the first of them: what differs is the keys.
        let turned = worker.turn(number, 3000, true);
        worker.finish();
        turned.counted["user_key_comparison_count"]
    };
    let first = comparisons(1, 1);
    assert_eq!(comparisons(1, 1), first);
    assert_ne!(comparisons(1, 2), first);
    assert_ne!(comparisons(2, 1), first);
}

#[test]
fn a_writer_beside_readers_writes_and_is_not_counted() {
    let library = libraries().pop().unwrap();
    let mut worker = Worker::loaded(&library, setup());
    worker.begin(one_thread(RocksdbStep::Readwhilewriting));
    let mut written = 0;
    for number in 0..500 {
        let turned = worker.turn(number, 500, false);
        assert_eq!(turned.operations, 500);
        written += turned.writer_operations;
        if written > 50 {
            break;
        }
    }
    let figures = worker.finish();
    assert!(written > 50, "{written}");
    assert!(
        figures["process_written_bytes"] > to_f64(written) * 400.0,
        "{figures:?}"
    );

    let silent = deltabench_model::work::rocksdb::RocksdbSetup {
        writer_bytes_per_second: 0,
        ..setup()
    };
    let mut worker = Worker::loaded(&library, silent);
    worker.begin(one_thread(RocksdbStep::Readwhilewriting));
    assert_eq!(worker.turn(0, 20_000, false).writer_operations, 0);
}

#[test]
fn values_are_compressed_to_about_half_where_they_are_compressed() {
    for library in libraries() {
        let size = |workload| {
            let mut setup = setup();
            setup.workload = workload;
            let raw = to_f64(setup.raw_bytes());
            let mut worker = Worker::open(&library, setup);
            let figures = worker.prepare(RocksdbStep::Fillseq);
            figures["lsm_bytes"] / raw
        };
        let (plain, compressed) = (size(RocksdbWorkload::Byrx), size(RocksdbWorkload::Iobuf));
        assert!((1.0..1.1).contains(&plain), "{plain}");
        assert!((0.45..0.75).contains(&compressed), "{compressed}");
    }
}
