//! What a worker refuses, in whose words, and how it ends.

use crate::lab::{KEYS, Worker, has_hyper_clock, libraries, one_thread, opening, setup};
use deltabench_engine::{Answer, Order, TurnOrder};
use deltabench_model::work::rocksdb::{BlockCache, RocksdbStep, RocksdbWorkload};
use std::path::Path;

fn options(all: &[(&str, &str)]) -> Vec<(String, String)> {
    all.iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

#[test]
fn options_of_users_are_refused_in_the_librarys_words() {
    for library in libraries() {
        let mut worker = Worker::start();
        for (name, value, word) in [
            ("write_bufer_size", "1", "write_bufer_size"),
            ("write_buffer_size", "much", "write_buffer_size"),
            ("block_size", "{", "block_size"),
            (
                "block_based_table_factory.no_such_thing",
                "1",
                "no_such_thing",
            ),
        ] {
            let mut order = opening(&library, setup());
            order.options = options(&[(name, value)]);
            let words = worker.try_open(order).unwrap_err();
            let told = words.contains(&format!("option {name}={value}: ")) && words.contains(word);
            assert!(told, "{}: {words}", library.display());
        }
        worker.opened(opening(&library, setup()));
    }
}

#[test]
fn options_of_the_target_win_over_those_of_the_setup_and_those_over_the_published_ones() {
    for library in libraries() {
        let mut order = opening(&library, setup());
        order.setup.workload = RocksdbWorkload::Iobuf;
        order.setup.options = options(&[
            ("write_buffer_size", "4194304"),
            ("level0_file_num_compaction_trigger", "6"),
            ("compression", "kZSTD"),
            ("block_size", "4096"),
        ]);
        order.options = options(&[
            ("write_buffer_size", "8388608"),
            ("block_based_table_factory.block_restart_interval", "8"),
        ]);
        let mut worker = Worker::start();
        let opened = worker.opened(order);
        let force = |name: &str| opened.in_force.get(name).map_or("", String::as_str);
        assert_eq!(force("CFOptions.write_buffer_size"), "8388608");
        assert_eq!(force("CFOptions.level0_file_num_compaction_trigger"), "6");
        assert_eq!(force("CFOptions.target_file_size_base"), "16777216");
        assert_eq!(force("DBOptions.max_background_jobs"), "2");
        assert_eq!(force("TableOptions/BlockBasedTable.block_size"), "4096");
        assert_eq!(
            force("TableOptions/BlockBasedTable.block_restart_interval"),
            "8"
        );
        let levels = force("CFOptions.compression_per_level");
        assert!(
            levels.starts_with("kNoCompression:kNoCompression:kNoCompression:kZSTD"),
            "{levels}"
        );
        assert_eq!(levels.split(':').count(), 8, "{levels}");
    }
}

#[test]
fn what_is_published_is_in_force_and_what_is_not_known_is_told() {
    for library in libraries() {
        let mut order = opening(&library, setup());
        order.setup.workload = RocksdbWorkload::Iodir;
        let mut worker = Worker::start();
        let opened = worker.opened(order);
        let left_out = |name: &str| opened.left_out.iter().any(|(left, _)| left == name);
        for (name, value) in [
            ("DBOptions.max_open_files", "-1"),
            ("DBOptions.use_direct_reads", "true"),
            ("DBOptions.use_direct_io_for_flush_and_compaction", "true"),
            ("DBOptions.bytes_per_sync", "0"),
            ("DBOptions.enable_pipelined_write", "true"),
            ("CFOptions.num_levels", "8"),
            ("CFOptions.level_compaction_dynamic_level_bytes", "true"),
            ("CFOptions.level0_stop_writes_trigger", "30"),
            ("TableOptions/BlockBasedTable.block_size", "8192"),
            (
                "TableOptions/BlockBasedTable.cache_index_and_filter_blocks",
                "true",
            ),
            (
                "TableOptions/BlockBasedTable.prepopulate_block_cache",
                "kFlushOnly",
            ),
        ] {
            let (_, short) = name.split_once('.').unwrap();
            let in_force = opened.in_force.get(name).map(String::as_str);
            let told = left_out(short) && in_force.is_none();
            assert!(
                in_force == Some(value) || told,
                "{name}: {in_force:?} {:?}",
                opened.left_out
            );
        }
        assert_eq!(opened.cache, "lru");
    }
}

#[test]
fn a_hyper_clock_cache_is_made_where_there_is_one_and_refused_where_not() {
    for library in libraries() {
        let mut order = opening(&library, setup());
        order.cache = BlockCache::HyperClock;
        let answer = Worker::start().try_open(order);
        if has_hyper_clock(&library) {
            let opened = answer.unwrap();
            assert!(
                opened.cache.starts_with("hyper-clock ("),
                "{}",
                opened.cache
            );
        } else {
            let words = answer.unwrap_err();
            assert!(words.contains("no HyperClock cache"), "{words}");
        }
    }
}

#[test]
fn what_is_no_library_is_refused_and_the_worker_goes_on() {
    let mut worker = Worker::start();
    let words = worker
        .try_open(opening(Path::new("/nowhere.so"), setup()))
        .unwrap_err();
    assert!(words.contains("/nowhere.so"), "{words}");
    let words = worker
        .try_open(opening(Path::new("libc.so.6"), setup()))
        .unwrap_err();
    assert!(words.contains("not a known RocksDB"), "{words}");
    let mut keyless = setup();
    keyless.keys = 0;
    let library = libraries().pop().unwrap();
    assert!(worker.try_open(opening(&library, keyless)).is_err());
    worker.opened(opening(&library, setup()));
    assert!(worker.close().success());
}

#[test]
fn orders_out_of_their_order_are_refused_and_the_worker_goes_on() {
    let failed = |answer: Answer| match answer {
        Answer::Failed(words) => words,
        other => panic!("{other:?}"),
    };
    let turn = Order::Turn(TurnOrder {
        number: 0,
        operations: 1,
        counted: false,
        settle: false,
    });
    let mut worker = Worker::start();
    assert_eq!(failed(worker.ask(&turn)), "no database is open");
    let library = libraries().pop().unwrap();
    worker.opened(opening(&library, setup()));
    assert_eq!(failed(worker.ask(&turn)), "no step was started");
    assert_eq!(failed(worker.ask(&Order::Finish)), "no step was started");
    let reads = one_thread(RocksdbStep::Readrandom);
    assert!(failed(worker.ask(&Order::Prepare(reads))).contains("readrandom"));
    let drain = Order::Begin(one_thread(RocksdbStep::Drain));
    assert!(failed(worker.ask(&drain)).contains("drain is prepared"));
    worker.begin(reads);
    let begun_twice = Order::Begin(one_thread(RocksdbStep::Fwdrange));
    assert_eq!(
        failed(worker.ask(&begun_twice)),
        "readrandom is not finished"
    );
    assert_eq!(worker.turn(0, 10, false).rows, 0, "nothing is loaded");
    worker.finish();
    let opened_twice = Order::Open(Box::new(opening(&library, setup())));
    assert_eq!(failed(worker.ask(&opened_twice)), "a database is open");
    assert!(worker.close().success());
}

#[test]
fn compactions_that_never_come_are_told() {
    let library = libraries().pop().unwrap();
    let mut order = opening(&library, setup());
    order.options = options(&[("disable_auto_compactions", "true")]);
    let mut worker = Worker::start();
    worker.opened(order);
    worker.prepare(RocksdbStep::Fillseq);
    let flush = Order::Prepare(one_thread(RocksdbStep::FlushMtL0));
    match worker.ask(&flush) {
        Answer::Failed(words) => assert!(words.contains("level 0"), "{words}"),
        other => panic!("{other:?}"),
    }
    assert!(worker.close().success());
}

#[test]
fn a_load_that_is_refused_a_key_is_told_and_is_no_smaller_database() {
    for library in libraries() {
        let mut order = opening(&library, setup());
        order.options = options(&[("write_buffer_size", "65536")]);
        let mut worker = Worker::start();
        worker.opened(order);
        worker.begin(one_thread(RocksdbStep::Fillseq));
        worker.lose_files();
        let turn = Order::Turn(TurnOrder {
            number: 0,
            operations: KEYS,
            counted: false,
            settle: false,
        });
        match worker.ask(&turn) {
            Answer::Failed(words) => assert!(words.contains("No such file"), "{words}"),
            other => panic!("{}: {other:?}", library.display()),
        }
    }
}

#[test]
fn a_worker_ends_well_when_its_orders_end_even_within_a_step() {
    for library in libraries() {
        let mut worker = Worker::open(&library, setup());
        worker.begin(one_thread(RocksdbStep::Fillseq));
        worker.turn(0, 10, false);
        assert!(worker.leave().success(), "{}", library.display());
    }
    assert!(Worker::start().leave().success());
    let mut worker = Worker::start();
    assert_eq!(worker.say("no order"), None);
    assert!(!worker.leave().success());
}
