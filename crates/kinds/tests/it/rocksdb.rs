//! Runs of RocksDB: stalls, findings, caches, published figures.

use crate::builder::{BASE, CANDIDATE, histogram, installation, metric, only_cell, plan, slice};
use crate::calibration_model::Simulation;
use deltabench_compare::Records;
use deltabench_compare::comparison::{Comparison, Metric, Verdict};
use deltabench_kinds::rocksdb::fairness::{EngineFacts, fairness};
use deltabench_kinds::rocksdb::{RocksdbReport, rocksdb_report};
use deltabench_model::counter::VisitCounters;
use deltabench_model::finding::{Finding, Severity};
use deltabench_model::installation::{Build, Engine, Installation, Setting};
use deltabench_model::plan::{CellId, Plan, PlannedServer, Role, ServerId};
use deltabench_model::slice::{Slice, VoidReason};
use deltabench_model::units::to_u64;
use deltabench_model::work::Work;
use deltabench_model::work::rocksdb::{
    BLOCK_CACHE, BlockCache, RocksdbSetup, RocksdbStep, RocksdbWorkload, WRITER_BYTES_PER_SECOND,
};

/// A plan of these steps, by these numbers of threads.
fn rocksdb(steps: &[RocksdbStep], threads: &[u32]) -> Plan {
    let setup = RocksdbSetup {
        workload: RocksdbWorkload::Byrx,
        keys: 100_000,
        key_bytes: 20,
        value_bytes: 400,
        threads: threads.to_vec(),
        seconds: 1,
        writer_bytes_per_second: WRITER_BYTES_PER_SECOND,
        steps: steps.to_vec(),
        cache_bytes: 1 << 26,
        background_jobs: 2,
        options: Vec::new(),
    };
    let mut plan = plan(setup.cells());
    for server in &mut plan.servers {
        server.installation.engine = Engine::Rocksdb;
    }
    plan.work = Work::Rocksdb(setup);
    plan
}

fn analyse(plan: &Plan, slices: &[Slice], counters: &[VisitCounters]) -> Comparison {
    let records = Records {
        slices,
        counters,
        ..Records::default()
    };
    crate::judged(plan, &records)
}

/// A slice of 100 ms and so many more.
fn stalled(server: ServerId, block: u32, stall_ms: f64) -> Slice {
    let mut slice = slice(server, block, 0, 1e6, None);
    slice.duration_ns = to_u64(1e6 * (100.0 + stall_ms));
    slice
}

/// Counters of a visit, for a thousand operations.
fn visit(server: ServerId, cell: CellId, block: u32, values: &[(&str, f64)]) -> VisitCounters {
    VisitCounters {
        server,
        cell,
        block,
        operations: 1000,
        values: values
            .iter()
            .map(|(key, value)| ((*key).to_owned(), *value))
            .collect(),
    }
}

#[test]
fn stalls_raise_no_more_alarms_than_stated() {
    let plan = rocksdb(&[RocksdbStep::Overwriteandwait], &[1]);
    let mut simulation = Simulation::new(10);
    let runs = 400;
    let mut alarms = 0;
    for _ in 0..runs {
        let mut slices = Vec::new();
        for block in 0..8 {
            for server in [BASE, CANDIDATE] {
                // A step has ten moments in which it may stall, for a time with a tail of power 2.5.
                let mut stall_ms = 0.0;
                for _ in 0..10 {
                    let tail = (1.0 - simulation.uniform()).powf(-0.4);
                    if simulation.uniform() < 0.25 {
                        stall_ms += 5.0 * tail;
                    }
                }
                let noise = 100.0 * (0.02 * simulation.normal()).exp_m1();
                slices.push(stalled(server, block, stall_ms + noise.max(-50.0)));
            }
        }
        let comparison = analyse(&plan, &slices, &[]);
        let (low, high) = metric(only_cell(&comparison), Metric::Throughput)
            .ratio
            .ci95
            .unwrap();
        alarms += u32::from(low > 1.0 || high < 1.0);
    }
    // 5 % of 400 are 20; 31 and more are one time in a hundred.
    assert!((8..=31).contains(&alarms), "{alarms} of {runs}");
}

/// Turns of 100 ms in eight blocks; in 12 of 100 something of the tree's own takes this share more.
fn with_bursts(simulation: &mut Simulation, base: f64, candidate: f64) -> Vec<Slice> {
    let mut slices = Vec::new();
    for block in 0..8 {
        for round in 0..20 {
            for (server, more) in [(BASE, base), (CANDIDATE, candidate)] {
                let burst = if simulation.uniform() < 0.12 {
                    more
                } else {
                    0.0
                };
                let rate = 1e6 / (1.0 + burst) * (0.01 * simulation.normal()).exp();
                slices.push(slice(
                    server,
                    block,
                    round,
                    rate,
                    Some(10.0 * (1.0 + burst)),
                ));
            }
        }
    }
    slices
}

fn estimate(plan: &Plan, slices: &[Slice], of: Metric) -> f64 {
    let comparison = analyse(plan, slices, &[]);
    metric(only_cell(&comparison), of).ratio.estimate
}

#[test]
fn flushes_beside_readers_are_in_the_estimate() {
    let plan = rocksdb(&[RocksdbStep::Readwhilewriting], &[1]);
    let mut simulation = Simulation::new(11);
    let (mut pooled, mut cost, mut skewed) = (0.0, 0.0, 0.0);
    let runs = 60;
    for _ in 0..runs {
        let slices = with_bursts(&mut simulation, 0.2, 1.0);
        pooled += estimate(&plan, &slices, Metric::Throughput).ln();
        let comparison = analyse(&plan, &slices, &[]);
        let skewness = metric(only_cell(&comparison), Metric::Throughput).skewness;
        skewed += skewness.below() + skewness.above();
        cost += estimate(&plan, &slices, Metric::ServerCpuPerOperation).ln();
    }
    let mean = |sum: f64| (sum / f64::from(runs)).exp();
    let truth = (1.0 + 0.12 * 0.2) / (1.0 + 0.12 * 1.0);
    let (pooled, cost) = (mean(pooled), mean(cost));
    assert!((pooled / truth - 1.0).abs() < 0.01, "{pooled}, not {truth}");
    assert!((cost * truth - 1.0).abs() < 0.01, "{cost}, not 1 / {truth}");
    // Bursts that cost the candidate more are rare and on its side.
    let skewed = skewed / f64::from(runs);
    assert!(skewed < -0.05, "{skewed}");
}

#[test]
fn flushes_beside_readers_raise_no_more_alarms_than_stated() {
    let plan = rocksdb(&[RocksdbStep::Fwdrangewhilewriting], &[1]);
    let mut simulation = Simulation::new(12);
    let runs = 400;
    let mut alarms = 0;
    for _ in 0..runs {
        let slices = with_bursts(&mut simulation, 1.0, 1.0);
        let comparison = analyse(&plan, &slices, &[]);
        let (low, high) = metric(only_cell(&comparison), Metric::Throughput)
            .ratio
            .ci95
            .unwrap();
        alarms += u32::from(low > 1.0 || high < 1.0);
    }
    // As above.
    assert!((8..=31).contains(&alarms), "{alarms} of {runs}");
}

#[test]
fn the_table_of_throughput_divides_to_that_of_ratios() {
    let plan = rocksdb(&[RocksdbStep::Readwhilewriting], &[1]);
    let mut slices = Vec::new();
    for block in 0..6 {
        for round in 0..10 {
            let slow = if round == 9 { 0.5 } else { 1.0 };
            slices.push(slice(BASE, block, round, 1000.0 * slow, None));
            slices.push(slice(CANDIDATE, block, round, 900.0, None));
        }
    }
    let told = |slices: &[Slice]| {
        let comparison = analyse(&plan, slices, &[]);
        let report = rocksdb_report(&plan, slices, &[], &comparison).unwrap();
        let of = |server: usize| report.targets[server].steps[0].clone();
        let (base, candidate) = (of(0), of(2));
        let ratio = candidate.relative.unwrap().ratio.estimate;
        (
            base.throughput.unwrap(),
            candidate.throughput.unwrap(),
            ratio,
        )
    };
    let (base, candidate, ratio) = told(&slices);
    assert!((candidate / base - ratio).abs() < 1e-9);
    assert!(
        (base - 10.0 / (9.0 / 1000.0 + 1.0 / 500.0)).abs() < 2.0,
        "{base}"
    );
    // Other load in the base's slow turns: they are left out of both sides and both tables.
    for slice in slices.iter_mut().filter(|slice| slice.round == 9) {
        if slice.server == BASE {
            slice.steal_ns = Some(slice.duration_ns / 2);
        }
    }
    let (base, candidate, ratio) = told(&slices);
    assert!((base - 1000.0).abs() < 2.0, "{base}");
    assert!((candidate / base - ratio).abs() < 1e-9);
    assert!((ratio - 0.9).abs() < 2e-3, "{ratio}");
}

#[test]
fn one_slice_is_a_block_where_a_turn_is_a_whole_step() {
    let mut plan = rocksdb(&[RocksdbStep::Readrandom], &[1]);
    let slices: Vec<Slice> = (0..8)
        .flat_map(|block| {
            [
                slice(BASE, block, 0, 1000.0 + f64::from(block), None),
                slice(CANDIDATE, block, 0, 800.0 + f64::from(block % 3), None),
            ]
        })
        .collect();
    let blocks = |plan: &Plan| only_cell(&analyse(plan, &slices, &[])).blocks;
    let writes = rocksdb(&[RocksdbStep::Fillseq], &[1]);
    assert_eq!(blocks(&writes), 8, "what writes is a whole step");
    assert_eq!(
        blocks(&plan),
        0,
        "a round is not enough for a slice of 100 ms"
    );
    for server in &mut plan.servers {
        server.installation.engine = Engine::DbBench;
    }
    let comparison = analyse(&plan, &slices, &[]);
    assert_eq!(only_cell(&comparison).blocks, 8);
    assert_eq!(only_cell(&comparison).verdict, Verdict::Regression);
}

fn kinds(findings: &[Finding]) -> Vec<(&str, Severity)> {
    let all = findings.iter();
    all.map(|finding| (finding.kind.word(), finding.severity))
        .collect()
}

#[test]
fn a_disturbed_whole_step_is_told_and_kept() {
    let mut plan = rocksdb(&[RocksdbStep::Readrandom], &[1]);
    plan.servers[0].installation.engine = Engine::DbBench;
    let mut slices: Vec<Slice> = (0..6)
        .flat_map(|block| [BASE, CANDIDATE].map(|server| slice(server, block, 0, 1000.0, None)))
        .collect();
    slices[3].steal_ns = Some(slices[3].duration_ns / 10);
    let comparison = analyse(&plan, &slices, &[]);
    assert_eq!(only_cell(&comparison).blocks, 6);
    assert_eq!(
        kinds(&comparison.findings),
        [("disturbed-steps", Severity::Note)]
    );
    let text = &comparison.findings[0].text;
    assert!(
        text.contains("readrandom at 1 thread on postgres:18.6 in block 2"),
        "{text}"
    );
}

#[test]
fn other_blocks_for_the_same_keys_are_other_work_where_nothing_is_written() {
    let steps = [RocksdbStep::Readrandom, RocksdbStep::Readwhilewriting];
    let plan = rocksdb(&steps, &[1]);
    let touched = |server, cell, hits, misses| {
        (0..6).map(move |block| {
            let values = [("block_cache_hits", hits), ("block_cache_misses", misses)];
            visit(server, cell, block, &values)
        })
    };
    let counters = |hits, misses| -> Vec<VisitCounters> {
        (0..2)
            .flat_map(|cell| {
                touched(BASE, CellId(cell), 2000.0, 1000.0).chain(touched(
                    CANDIDATE,
                    CellId(cell),
                    hits,
                    misses,
                ))
            })
            .collect()
    };
    let found = |counters: &[VisitCounters]| analyse(&plan, &[], counters).findings;
    let findings = found(&counters(2990.0, 10.0));
    assert_eq!(kinds(&findings), [("other-work", Severity::Confounder)]);
    assert!(
        findings[0].text.ends_with(
            "readrandom at 1 thread: of 3.00 not in the cache 1.00 in base, 0.01 in postgres:18.6 \
             (-33.0 % of all)"
        ),
        "{}",
        findings[0].text
    );
    let mut others = plan.clone();
    for server in &mut others.servers {
        if server.role == Role::Candidate {
            let cache = (BLOCK_CACHE.to_owned(), "hyper-clock".to_owned());
            server.settings.push(cache);
        }
    }
    let other = |counters: &[VisitCounters]| analyse(&others, &[], counters).findings;
    assert!(
        other(&counters(2990.0, 10.0)).is_empty(),
        "misses that became hits are what another cache is for"
    );
    let (few, more) = (counters(2010.0, 1000.0), counters(1990.0, 1010.0));
    assert!(
        found(&few).is_empty() && found(&more).is_empty(),
        "within the tolerance"
    );
    let findings = found(&counters(3300.0, 10.0));
    assert_eq!(kinds(&findings), [("other-work", Severity::Confounder)]);
    assert!(
        findings[0]
            .text
            .ends_with("readrandom at 1 thread: 3.00 in base, 3.31 in postgres:18.6 (+10.3 %)"),
        "{}",
        findings[0].text
    );
}

#[test]
fn trees_of_another_shape_are_told_where_they_are_read() {
    let steps = [
        RocksdbStep::Fwdrangewhilewriting,
        RocksdbStep::Overwriteandwait,
    ];
    let plan = rocksdb(&steps, &[1]);
    let mut counters = Vec::new();
    for cell in 0..2 {
        for block in 0..6 {
            let of = |bytes, files| [("lsm_bytes", bytes), ("l0_files", files)];
            counters.push(visit(BASE, CellId(cell), block, &of(1e8, 0.0)));
            counters.push(visit(CANDIDATE, CellId(cell), block, &of(1.2e8, 3.0)));
        }
    }
    let findings = analyse(&plan, &[], &counters).findings;
    assert_eq!(
        kinds(&findings),
        [("lsm-shape-differs", Severity::Confounder)]
    );
    assert!(
        findings[0].text.ends_with(
            "fwdrangewhilewriting at 1 thread: 95.4 MiB in base, 114.4 MiB in postgres:18.6 (+20.0 %), \
             0.0 files in level 0 of base, 3.0 of postgres:18.6"
        ),
        "{}",
        findings[0].text
    );
}

fn library(version: &str, compiler: &str, libraries: &str) -> Installation {
    let mut library = installation(&format!("rocksdb:{version}"));
    library.engine = Engine::Rocksdb;
    library.build = Some(Build {
        version_text: version.to_owned(),
        compiler: compiler.to_owned(),
        cflags: String::new(),
        configure: format!("compression: {libraries}"),
    });
    library
}

fn option(name: &str, value: &str) -> Setting {
    Setting {
        name: name.to_owned(),
        value: value.to_owned(),
        unit: None,
        boot_value: None,
        source: "default".to_owned(),
    }
}

fn facts<'a>(
    name: &str,
    installation: &'a Installation,
    settings: &'a [Setting],
    cache: &'a str,
) -> EngineFacts<'a> {
    EngineFacts {
        name: name.to_owned(),
        installation,
        settings,
        asked: &[],
        left_out: &[],
        cache,
        wanted: BlockCache::Lru,
    }
}

#[test]
fn a_library_against_itself_differs_in_nothing() {
    let one = library("10.2.1", "gcc 7.3.1", "snappy, lz4");
    let options = [option("DBOptions.max_open_files", "-1")];
    let side = |name| facts(name, &one, &options, "lru");
    let findings = fairness(&side("base"), &side("placebo"));
    assert_eq!(kinds(&findings), [("same-binary", Severity::Note)]);
}

#[test]
fn compilers_libraries_and_options_that_nobody_asked_for_are_told() {
    let old = library("6.29.5", "gcc 7.3.1", "snappy, lz4, zlib");
    let new = library("11.0.0", "gcc 13.3.0", "snappy, lz4");
    let before = [
        option("Version.rocksdb_version", "6.29.5"),
        option("TableOptions/BlockBasedTable.format_version", "5"),
        option("DBOptions.max_open_files", "-1"),
        option(
            "TableOptions/BlockBasedTable.filter_policy",
            "rocksdb.BuiltinBloomFilter",
        ),
        option("DBOptions.stats_dump_period_sec", "600"),
        option("CFOptions.memtable_factory", "SkipListFactory"),
        option("CFOptions.compression_opts", "{level=32767;strategy=0;}"),
        option("CFOptions.write_buffer_size", "1000"),
    ];
    let after = [
        option("Version.rocksdb_version", "11.0.0"),
        option("TableOptions/BlockBasedTable.format_version", "6"),
        option("DBOptions.max_open_files", "-1.0"),
        option(
            "TableOptions/BlockBasedTable.filter_policy",
            "bloomfilter:10:false",
        ),
        option("DBOptions.stats_dump_period_sec", "0"),
        option(
            "CFOptions.memtable_factory",
            "{id=SkipListFactory;lookahead=0;}",
        ),
        option(
            "CFOptions.compression_opts",
            "{level=32767;strategy=1;checksum=false;}",
        ),
        option("CFOptions.write_buffer_size", "2000"),
    ];
    let asked = [("write_buffer_size".to_owned(), "2000".to_owned())];
    let left_out = [("new_option".to_owned(), "unknown option".to_owned())];
    let base = EngineFacts {
        left_out: &left_out,
        ..facts("base", &old, &before, "lru")
    };
    let candidate = EngineFacts {
        asked: &asked,
        ..facts("rocksdb:11.0.0", &new, &after, "lru")
    };
    let findings = fairness(&base, &candidate);
    assert_eq!(
        kinds(&findings),
        [
            ("compiler-differs", Severity::Confounder),
            ("compression-differs", Severity::Note),
            ("options-left-out", Severity::Confounder),
            ("options-differ", Severity::Confounder),
            ("options-differ-harmless", Severity::Note),
            ("options-only-in-candidate", Severity::Note),
        ]
    );
    let text = |kind: &str| text(&findings, kind);
    assert_eq!(
        text("options-differ"),
        "options differ that you did not set: compression_opts.strategy 0 in base, 1 in \
         rocksdb:11.0.0; format_version 5 in base, 6 in rocksdb:11.0.0"
    );
    assert_eq!(
        text("options-only-in-candidate"),
        "options only in rocksdb:11.0.0: compression_opts.checksum; memtable_factory.lookahead"
    );
    assert!(text("options-left-out").starts_with("base does not know these options"));
}

fn text(findings: &[Finding], kind: &str) -> String {
    let found = findings.iter().find(|finding| finding.kind == kind);
    found.unwrap().text.clone()
}

#[test]
fn of_options_that_one_version_has_eight_are_named() {
    let old = library("6.29.5", "gcc", "lz4");
    let new = library("10.2.1", "gcc", "lz4");
    let before = [option("DBOptions.max_open_files", "-1")];
    let names = (1..=11).map(|number| option(&format!("DBOptions.new_{number:02}"), "0"));
    let after: Vec<Setting> = names.chain(before.clone()).collect();
    let base = facts("base", &old, &before, "lru");
    let candidate = facts("rocksdb:10.2.1", &new, &after, "lru");
    assert_eq!(
        text(&fairness(&base, &candidate), "options-only-in-candidate"),
        "options only in rocksdb:10.2.1: new_01; new_02; new_03; new_04; new_05; new_06; new_07; \
         new_08 and 3 more"
    );
}

#[test]
fn a_cache_that_is_not_the_one_asked_for_is_a_confounder() {
    let one = library("8.0.0", "gcc", "lz4");
    let two = library("9.0.0", "gcc", "lz4");
    let clock = |installation, cache| EngineFacts {
        wanted: BlockCache::HyperClock,
        ..facts("rocksdb", installation, &[], cache)
    };
    let kind = |one: EngineFacts<'_>, two: EngineFacts<'_>| -> Vec<String> {
        let all = fairness(&one, &two).into_iter();
        all.map(|finding| finding.kind.to_string()).collect()
    };
    let automatic = "hyper-clock (sized by itself)";
    assert_eq!(
        kind(clock(&one, "lru"), clock(&two, automatic)),
        ["block-cache-not-as-asked"]
    );
    assert_eq!(
        kind(
            clock(&one, "hyper-clock (entries of 8192 bytes)"),
            clock(&two, automatic)
        ),
        ["block-cache-differs"]
    );
    assert!(
        kind(facts("base", &one, &[], "lru"), clock(&two, automatic)).is_empty(),
        "another cache was asked for"
    );
}

/// LRU is the base; candidates are the same library with HyperClock, and another one.
fn caches() -> Plan {
    let mut plan = rocksdb(&[RocksdbStep::Readrandom], &[1, 4]);
    let server = |role, name: &str, cache: &str| {
        let mut server = PlannedServer::new(role, installation(name));
        server.installation.engine = Engine::Rocksdb;
        server.settings = vec![(BLOCK_CACHE.to_owned(), cache.to_owned())];
        server
    };
    plan.servers = vec![
        server(Role::Base, "rocksdb:9.0.0", "lru"),
        server(Role::Placebo, "rocksdb:9.0.0", "lru"),
        server(Role::Candidate, "rocksdb:9.0.0", "hyper-clock"),
        server(Role::Candidate, "rocksdb:10.2.1", "hyper-clock"),
        server(Role::Candidate, "rocksdb:10.2.1", "lru"),
    ];
    plan
}

#[test]
fn caches_are_compared_where_nothing_else_differs() {
    let plan = caches();
    let rates = [1000.0, 1000.0, 1100.0, 1500.0, 1200.0];
    let mut slices = Vec::new();
    for block in 0..6 {
        for round in 0..5 {
            for (server, rate) in (0..).zip(rates) {
                let luck = 1.0 + 0.001 * f64::from((block + server) % 3);
                slices.push(slice(ServerId(server), block, round, rate * luck, None));
            }
        }
    }
    let comparison = analyse(&plan, &slices, &[]);
    let report = rocksdb_report(&plan, &slices, &[], &comparison).unwrap();
    let told: Vec<(&str, u32, u32)> = report
        .caches
        .iter()
        .map(|pair| (pair.name.as_str(), pair.lru.0, pair.hyper_clock.0))
        .collect();
    assert_eq!(told, [("9.0.0", 0, 2), ("10.2.1", 4, 3)]);
    for (pair, expected) in report.caches.iter().zip([1.1, 1.25]) {
        let ratio = pair.ratios[0].unwrap();
        assert!((ratio.estimate - expected).abs() < 1e-6, "{ratio:?}");
        assert!(ratio.ci95.is_some());
        assert_eq!(pair.ratios[1], None, "nobody measured four threads");
    }
    let mut wider = comparison.clone();
    for cell in &mut wider.cells {
        cell.interval_level = 0.975;
    }
    let wide = rocksdb_report(&plan, &slices, &[], &wider).unwrap();
    let ci95 = |report: &RocksdbReport| report.caches[0].ratios[0].unwrap().ci95.unwrap();
    assert!(
        ci95(&wide).0 < ci95(&report).0,
        "as wide as those of the cells"
    );
    let relative = report.targets[1].steps[0].relative.unwrap();
    assert!((relative.ratio.estimate - 1.0).abs() < 1e-6);
    assert_eq!(report.targets[0].steps[0].relative, None);
}

#[test]
fn published_figures_are_made_as_db_bench_makes_them() {
    let plan = rocksdb(&[RocksdbStep::Overwriteandwait], &[2]);
    let mut slices = Vec::new();
    for round in 0..5 {
        let mut one = slice(BASE, 0, round, 50_000.0, None);
        one.latency_histogram = histogram(&[10_000, 20_000, 30_000]);
        one.started_ns = 7;
        slices.push(one);
    }
    slices[4].void = Some(VoidReason::ServerLost);
    let gigabyte = 1_073_741_824.0;
    let counters = [visit(
        BASE,
        CellId(0),
        0,
        &[
            ("compaction_write_bytes", 4.0 * gigabyte),
            ("flush_bytes", gigabyte),
            ("ingest_bytes", 2.0 * gigabyte),
            ("active_ns", 16e9),
            ("stall_ns", 4e9),
        ],
    )];
    let comparison = analyse(&plan, &slices, &counters);
    let report = rocksdb_report(&plan, &slices, &counters, &comparison).unwrap();
    let block = &report.targets[0].steps[0].blocks[0];
    let near = |found: Option<f64>, expected: f64| {
        let found = found.unwrap();
        assert!(
            (found - expected).abs() < 1e-3 * expected,
            "{found}, not {expected}"
        );
    };
    near(block.throughput(), 50_000.0);
    near(block.us_per_operation(), 40.0);
    near(block.megabytes_per_second(), 50_000.0 * 420.0 / 1_048_576.0);
    near(block.published_write_amplification(), 2.5);
    near(block.write_amplification(), 2.0);
    near(block.compaction_megabytes_per_second(), 256.0);
    near(block.stalled_share(), 0.25);
    near(block.latency.map(|latency| latency.max), 30.0);
    near(block.latency.map(|latency| latency.p50), 20.0);
    assert_eq!((block.operations, block.turns.len()), (400_000, 5));
    assert_eq!((block.turns[4], block.started_ns), (None, 7));
    assert_eq!(block.figure("lsm_bytes"), None);
    assert!(report.targets[2].steps[0].blocks.is_empty());
}

#[test]
fn a_plan_without_rocksdb_has_no_such_report() {
    let plan = plan(Vec::new());
    let comparison = analyse(&plan, &[], &[]);
    assert_eq!(rocksdb_report(&plan, &[], &[], &comparison), None);
}
