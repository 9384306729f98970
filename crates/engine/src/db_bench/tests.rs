//! A shell script plays `db_bench`.

use crate::protocol::{StepOrder, TurnOrder};
use crate::spec::EngineError;
use crate::testing::Bench;
use deltabench_model::work::rocksdb::{BlockCache, RocksdbStep};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Knows the flags in `FLAGS`; makes its database of ten keys; does `STEP` otherwise.
const BENCH: &str = r#"
    for argument in "$@"; do
        case "$argument" in
        --help) for flag in FLAGS; do echo "    -$flag (what it is) type: string default: x"; done
            echo "      	waitforcompaction - pause until compaction is (probably) done"; exit 1 ;;
        --db=*) db="${argument#--db=}" ;;
        --num=*) num="${argument#--num=}" ;;
        --benchmarks=*) benchmarks="${argument#--benchmarks=}" ;;
        esac
    done
    mkdir -p "$db"
    if [ "$num" = 10 ]; then
        echo "WARNING: Assertions are enabled; benchmarks unnecessarily slow" >&2
        printf '[DBOptions]\n  max_background_jobs=2\n' > "$db/OPTIONS-000007"
        exit 0
    fi
    echo "ARGUMENTS $*"
    STEP
"#;

const FLAGS: &str = "benchmarks db num use_existing_db key_size value_size seed threads duration writes \
    reverse_iterator seek_nexts benchmark_write_rate_limit disable_wal memtablerep cache_size \
    write_buffer_size compression_type cache_type batch_size";

const RESULT: &str = r#"
    echo "${benchmarks%%,*} :      29.435 micros/op 67784 ops/sec 2.006 seconds 135998 operations;" \
        "  27.2 MB/s (100 of 200 found)"
    printf '%s\n' "Microseconds per write:" "Count: 135998 Average: 29.4630  StdDev: 449.56" \
        "Min: 3  Median: 5.9399  Max: 28797" \
        "Percentiles: P50: 5.94 P75: 8.29 P99: 18.46 P99.9: 8031.37 P99.99: 18228.69"
    echo "Flush(GB): cumulative 1.000, interval 0.023"
    head -c 5000 /dev/zero > "$db/000001.sst"
"#;

fn bench(step: &str) -> Bench {
    Bench::db_bench(&BENCH.replace("FLAGS", FLAGS).replace("STEP", step))
}

fn order(step: RocksdbStep, threads: u32) -> StepOrder {
    StepOrder {
        step,
        threads,
        seed: 7,
        batched: false,
    }
}

fn turn(counted: bool) -> TurnOrder {
    TurnOrder {
        number: 0,
        operations: 5,
        counted,
        settle: false,
    }
}

#[test]
fn a_step_is_one_turn_with_what_the_result_line_and_the_kernel_say() {
    let bench = bench(RESULT);
    let (mut engine, opened) = bench.start().unwrap();
    assert_eq!(
        opened.warnings,
        ["Assertions are enabled; benchmarks unnecessarily slow"]
    );
    assert_eq!(opened.in_force["DBOptions.max_background_jobs"], "2");
    assert!(opened.left_out.iter().any(|(name, _)| name == "bloom_bits"));
    assert!(!opened.left_out.iter().any(|(name, _)| name == "seed"));
    assert!(!bench.directory().join("probe").exists());
    engine
        .begin(order(RocksdbStep::Overwriteandwait, 4))
        .unwrap();
    assert_eq!(engine.turn(turn(true)).unwrap().operations, 0);
    let turned = engine.turn(turn(false)).unwrap();
    // Half of them were found, says one of its threads.
    assert_eq!((turned.operations, turned.rows), (135_998, 67_999));
    let per_second = 135_998.0 / (deltabench_model::units::to_f64(turned.duration_ns) / 1e9);
    assert!((per_second - 67_784.0).abs() < 0.01, "{per_second}");
    assert!(turned.latency_histogram.is_empty());
    assert!(engine.turn(turn(false)).is_err());
    let figures = engine.finish().unwrap();
    let wanted = [
        ("latency_p50_us", 5.94),
        ("latency_p99_us", 18.46),
        ("latency_p99_9_us", 8031.37),
        ("latency_p99_99_us", 18_228.69),
        ("latency_max_us", 28_797.0),
        ("megabytes_per_second", 27.2),
        ("flush_bytes", 1_073_741_824.0),
        ("lsm_bytes", 5000.0),
        ("blob_bytes", 0.0),
    ];
    for (key, value) in wanted {
        assert!((figures[key] - value).abs() < 1e-6, "{key}: {figures:?}");
    }
    assert!(figures["largest_rss_bytes"] > 100_000.0);
    assert!(figures["active_ns"] > 0.0 && !figures.contains_key("stalls"));
    engine.stop().unwrap();
}

/// The arguments of a step as the script got them.
fn told(bench: &Bench, step: RocksdbStep, threads: u32) -> Vec<String> {
    let (mut engine, _) = bench.start().unwrap();
    if step.is_measured() {
        engine.begin(order(step, threads)).unwrap();
        engine.turn(turn(false)).unwrap();
    } else {
        engine.prepare(order(step, threads)).unwrap();
    }
    std::fs::remove_dir_all(bench.directory()).unwrap();
    let log = std::fs::read_to_string(bench.spec().log).unwrap();
    let line = log.lines().rfind(|line| line.starts_with("ARGUMENTS"));
    line.unwrap()
        .split(' ')
        .skip(1)
        .map(str::to_owned)
        .collect()
}

#[test]
fn steps_have_the_published_flags_and_a_target_its_own_options() {
    let mut bench = bench(RESULT);
    bench.options = vec![("write_buffer_size".into(), "1048576".into())];
    let cases: [(RocksdbStep, &[&str]); 6] = [
        (
            RocksdbStep::Fillseq,
            &[
                "--benchmarks=fillseq,stats",
                "--use_existing_db=0",
                "--disable_wal=1",
                "--memtablerep=vector",
                "--num=1000",
                "--seed=3",
            ],
        ),
        (
            RocksdbStep::Drain,
            &["--benchmarks=waitforcompaction,stats"],
        ),
        (
            RocksdbStep::Overwritesome,
            &["--benchmarks=overwrite,stats", "--writes=50", "--threads=2"],
        ),
        // Neither flush nor compact0 is in its help.
        (
            RocksdbStep::FlushMtL0,
            &["--benchmarks=levelstats,waitforcompaction,waitforcompaction,levelstats,stats"],
        ),
        (
            RocksdbStep::Revrangewhilewriting,
            &[
                "--benchmarks=seekrandomwhilewriting,stats",
                "--reverse_iterator=1",
                "--seek_nexts=10",
                "--benchmark_write_rate_limit=2097152",
                "--duration=1",
            ],
        ),
        (
            RocksdbStep::Overwriteandwait,
            &[
                "--benchmarks=overwrite,waitforcompaction,stats",
                "--duration=1",
                "--cache_type=lru_cache",
                "--write_buffer_size=1048576",
            ],
        ),
    ];
    for (step, wanted) in cases {
        let arguments = told(&bench, step, 2);
        for flag in wanted {
            assert!(arguments.iter().any(|a| a == flag), "{flag}: {arguments:?}");
        }
        let duration = arguments.iter().any(|a| a.starts_with("--duration"));
        assert_eq!(duration, wanted.contains(&"--duration=1"), "{step:?}");
        assert!(!arguments.iter().any(|a| a.contains("bloom_bits")));
    }
}

#[test]
fn a_result_is_understood_with_and_without_its_operations() {
    let new = "readrandom   :  3.345 micros/op 298934 ops/sec 2.006 seconds 599660 operations;  \
        125.7 MB/s (9 of 9 found)";
    let old = "readrandom   :       3.345 micros/op 298934 ops/sec;  125.7 MB/s (9 of 9 found)\n\
        Microseconds per read:\nCount: 599660 Average: 3.3";
    let [new, old] = [new, old].map(|text| super::output::outcome(text, "readrandom", 1).unwrap());
    assert_eq!(
        (new.operations, new.found, new.megabytes_per_second),
        (599_660, 599_660, Some(125.7))
    );
    assert_eq!(old, new);
    assert_eq!(
        super::output::outcome("readrandom : nothing", "readrandom", 1),
        None
    );
    assert_eq!(
        super::output::version("db_bench version 6.29.5\n"),
        Some(62_905)
    );
    assert_eq!(super::output::version("db_bench\n"), None);
}

#[test]
fn options_without_a_flag_and_those_that_would_change_a_step_are_refused() {
    for (name, words) in [
        ("enable_blob_filez", "no flag --enable_blob_filez"),
        ("duration", "would change what a step is"),
    ] {
        let mut bench = bench(RESULT);
        bench.options = vec![(name.into(), "1".into())];
        let refused = bench.start().err().unwrap();
        assert!(
            matches!(&refused, EngineError::Failed(told) if told.contains(words)),
            "{refused:?}"
        );
    }
}

#[test]
fn the_cache_is_what_the_version_has() {
    let mut bench = bench(RESULT);
    bench.cache = BlockCache::HyperClock;
    let (_, opened) = bench.start().unwrap();
    assert_eq!(opened.cache, "hyper-clock (entries of 8192 bytes)");
    std::fs::remove_dir_all(bench.directory()).unwrap();
    let arguments = told(&bench, RocksdbStep::Readrandom, 1);
    assert!(arguments.contains(&"--cache_type=hyper_clock_cache".to_owned()));
    let without = FLAGS.replace("cache_type", "");
    let mut old = Bench::db_bench(&BENCH.replace("FLAGS", &without).replace("STEP", RESULT));
    old.cache = BlockCache::HyperClock;
    let refused = old.start().err().unwrap();
    assert!(
        refused.to_string().contains("no hyper-clock cache"),
        "{refused}"
    );
}

#[test]
fn crashes_and_refusals_are_told_apart_and_the_next_step_works() {
    let crash = "echo 'assertion failed: x > 0' >&2; kill -ABRT $$";
    let script = format!(
        "case \"$benchmarks\" in readrandom*) {crash} ;; \
        seekrandom,*) echo 'open error: IO error'; exit 1 ;; esac\n{RESULT}"
    );
    let bench = bench(&script);
    let (mut engine, _) = bench.start().unwrap();
    engine.begin(order(RocksdbStep::Readrandom, 1)).unwrap();
    let lost = engine.turn(turn(false)).unwrap_err();
    assert!(
        matches!(&lost, EngineError::Lost(words)
            if words.contains("signal 6 (abort) in readrandom: ") && words.ends_with("x > 0")),
        "{lost:?}"
    );
    engine.begin(order(RocksdbStep::Fwdrange, 1)).unwrap();
    let refused = engine.turn(turn(false)).unwrap_err();
    assert!(
        matches!(&refused, EngineError::Failed(words)
            if words.contains("exit status 1 in fwdrange") && words.ends_with("IO error")),
        "{refused:?}"
    );
    engine.begin(order(RocksdbStep::Fillseq, 1)).unwrap();
    assert_eq!(engine.turn(turn(false)).unwrap().operations, 135_998);
}

#[test]
fn a_result_that_is_missing_is_no_result_of_nothing() {
    let bench = bench("echo 'what benchmark?'");
    let (mut engine, _) = bench.start().unwrap();
    engine.begin(order(RocksdbStep::Fillseq, 1)).unwrap();
    let error = engine.turn(turn(false)).unwrap_err().to_string();
    assert!(error.contains("reported no result of fillseq"), "{error}");
}

#[test]
fn a_program_without_the_flags_of_a_db_bench_is_refused() {
    let other = Bench::db_bench("echo 'usage: program FILE'; exit 2");
    let refused = other.start().err().unwrap().to_string();
    assert!(
        refused.contains("does not print the flags of a db_bench: usage: program FILE"),
        "{refused}"
    );
}

#[test]
fn an_end_that_the_user_wants_ends_it_with_all_that_it_started() {
    let bench = bench("sleep 1234 & echo child $!; sleep 1234");
    let (mut engine, _) = bench.start().unwrap();
    engine.begin(order(RocksdbStep::Fillseq, 1)).unwrap();
    let said = || std::fs::read_to_string(bench.spec().log).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !said().contains("child ") {
                std::thread::sleep(Duration::from_millis(10));
            }
            bench.interrupted.store(true, Ordering::Relaxed);
        });
        assert_eq!(engine.turn(turn(false)), Err(EngineError::Interrupted));
    });
    let log = said();
    let child = log.lines().find_map(|line| line.strip_prefix("child "));
    // Not ours to reap: init may take its time.
    let child: u32 = child.unwrap().parse().unwrap();
    assert!(deltabench_proc::has_ended(child));
}

#[test]
fn a_step_that_does_not_end_in_time_is_a_stall_with_its_last_words() {
    let bench = bench("echo 'waitforcompaction: started'; sleep 1234");
    let spec = bench.spec();
    spec.user.make_directory(spec.directory).unwrap();
    let (engine, _) = super::DbBench::start(spec).unwrap();
    let arguments = [format!("--db={}", engine.database().display())];
    let limit = Duration::from_millis(500);
    let stalled = engine.command.run(&arguments, limit, "drain").err();
    assert!(
        matches!(&stalled, Some(EngineError::Stalled(words))
            if words.contains("did not end drain") && words.ends_with("started")),
        "{stalled:?}"
    );
}
