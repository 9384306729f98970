//! The `db_bench` of the distribution, where it is installed.

use crate::place::Place;
use deltabench_engine::{StepOrder, TurnOrder};
use deltabench_model::installation::Engine as Kind;
use deltabench_model::work::rocksdb::RocksdbStep;
use std::path::Path;

/// Set where no `db_bench` is installed: then nothing is tested here.
const WITHOUT: &str = "DELTABENCH_WITHOUT_DB_BENCH";
/// Where a distribution puts it.
const PROGRAM: &str = "/usr/bin/db_bench";

#[test]
fn a_real_db_bench_goes_through_steps_of_all_kinds() {
    if std::env::var_os(WITHOUT).is_some() {
        // scripts/test says so in its last lines.
        return;
    }
    assert!(
        Path::new(PROGRAM).exists(),
        "there is no {PROGRAM}: install rocksdb-tools, or set {WITHOUT}=1"
    );
    let mut place = Place::new(Path::new(PROGRAM), Kind::DbBench);
    place.setup.options = vec![("max_background_jobs".into(), "3".into())];
    let (mut engine, opened) = place.start().unwrap();
    assert_eq!(opened.cache, "lru");
    assert_eq!(opened.in_force["DBOptions.max_background_jobs"], "3");
    assert_eq!(
        opened.in_force[r#"CFOptions.level0_slowdown_writes_trigger"#],
        "20"
    );
    let mut step = |step: RocksdbStep, threads: u32| {
        let order = StepOrder {
            step,
            threads,
            seed: 7,
            batched: false,
        };
        engine.begin(order).unwrap();
        let turn = TurnOrder {
            number: 0,
            operations: 0,
            counted: false,
            settle: false,
        };
        let turned = engine.turn(turn).unwrap();
        let figures = engine.finish().unwrap();
        assert!(turned.operations > 0 && turned.cpu_ns > 0, "{turned:?}");
        assert!(figures["latency_p99_us"] <= figures["latency_max_us"]);
        assert!(figures["user_cpu_ns"] > 0.0 && figures["largest_rss_bytes"] > 1e6);
        assert!(figures["megabytes_per_second"] > 0.0);
        (turned, figures)
    };
    let (loaded, figures) = step(RocksdbStep::Fillseq, 1);
    assert_eq!(loaded.operations, place.setup.keys);
    assert!(
        (figures["ingest_bytes"] - 20_000.0 * 435.0).abs() < 5.4e6,
        "to two decimals of a gigabyte: {figures:?}"
    );
    let (read, figures) = step(RocksdbStep::Readrandom, 2);
    assert_eq!(read.rows, read.operations, "all keys are there");
    assert!(figures["lsm_bytes"] > 20_000.0 * 400.0);
    let second = 1e9_f64;
    let took = deltabench_model::units::to_f64(read.duration_ns);
    assert!(took > 0.9 * second && took < 20.0 * second, "{took}");
    let (many, _) = step(RocksdbStep::Multireadrandom, 1);
    assert_eq!(many.operations % 10, 0);
    let (_, beside) = step(RocksdbStep::Revrangewhilewriting, 1);
    assert!(beside["ingest_bytes"] > 0.0, "the writer writes");
    let (_, written) = step(RocksdbStep::Overwriteandwait, 2);
    assert!(written["wal_write_bytes"] > 0.0);
    engine.stop().unwrap();
}
