//! A run of RocksDB, made by rule and by a seed: two versions, each with both caches, six blocks.

use crate::fixture;
use crate::full::Full;
use deltabench_compare::absolute::results;
use deltabench_compare::costs::Machine;
use deltabench_compare::study::{StudyRun, grids_of};
use deltabench_compare::{Records, add_costs, analyse};
use deltabench_kinds::reader;
use deltabench_kinds::rocksdb::fairness::{EngineFacts, fairness};
use deltabench_kinds::rocksdb::shown::figures;
use deltabench_kinds::rocksdb::{RocksdbReport, rocksdb_report};
use deltabench_model::counter::VisitCounters;
use deltabench_model::finding::Finding;
use deltabench_model::installation::{Build, Engine, Installation, Origin, Setting};
use deltabench_model::plan::{CellId, Plan, PlannedServer, Role, ServerId};
use deltabench_model::slice::Slice;
use deltabench_model::units::{to_f64, to_u64};
use deltabench_model::work::Work;
use deltabench_model::work::rocksdb::{
    BLOCK_CACHE, BlockCache, RocksdbSetup, RocksdbStep, RocksdbWorkload, WRITER_BYTES_PER_SECOND,
};
use deltabench_report::ServerFacts;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2Serializer};
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const START: u64 = 1_763_721_780_000_000_000;
const ROUNDS: u32 = 10;

fn setup() -> RocksdbSetup {
    RocksdbSetup {
        workload: RocksdbWorkload::Byrx,
        keys: 1_000_000,
        key_bytes: 20,
        value_bytes: 400,
        threads: vec![1, 4],
        seconds: 2,
        writer_bytes_per_second: WRITER_BYTES_PER_SECOND,
        steps: RocksdbStep::published(),
        cache_bytes: 1 << 30,
        background_jobs: 2,
        options: vec![("write_buffer_size".to_owned(), "16777216".to_owned())],
    }
}

/// 6.29.5 was built by an older compiler than 11.0.0 here, so that there is something to say.
fn library(version: &str) -> Installation {
    let new = version.starts_with("11");
    Installation {
        asked: format!("rocksdb:{version}"),
        resolved: format!("rocksdb:{version}"),
        origin: Origin::Prebuilt,
        bin_dir: format!("/var/cache/deltabench/rocksdb/{version}/librocksdbjni-linux64.so").into(),
        version_num: if new { 110_000 } else { 100_201 },
        version: version.to_owned(),
        binary_sha256: if new { "b".repeat(64) } else { "a".repeat(64) },
        build: Some(Build {
            version_text: version.to_owned(),
            compiler: if new {
                "GCC: (GNU) 13.3.0"
            } else {
                "GCC: (GNU) 7.3.1"
            }
            .to_owned(),
            cflags: String::new(),
            configure: "compression: snappy, zlib, bzip2, lz4, zstd".to_owned(),
        }),
        recipe: None,
        remote: None,
        engine: Engine::Rocksdb,
    }
}

fn plan(blocks: u32) -> Plan {
    let setup = setup();
    let mut plan = fixture::plan();
    plan.cells = setup.cells();
    let server = |role, version: &str, cache: BlockCache| {
        let mut server = PlannedServer::new(role, library(version));
        server.settings = vec![(BLOCK_CACHE.to_owned(), cache.word().to_owned())];
        server
    };
    plan.servers = vec![
        server(Role::Base, "10.2.1", BlockCache::Lru),
        server(Role::Placebo, "10.2.1", BlockCache::Lru),
        server(Role::Candidate, "10.2.1", BlockCache::HyperClock),
        server(Role::Candidate, "11.0.0", BlockCache::Lru),
        server(Role::Candidate, "11.0.0", BlockCache::HyperClock),
    ];
    plan.timing.blocks = blocks;
    plan.timing.slice_ms = 200;
    plan.stopping = Default::default();
    plan.settings = Vec::new();
    plan.command = ["deltabench", "rocksdb", "rocksdb:10.2.1", "rocksdb:11.0.0"]
        .map(str::to_owned)
        .to_vec();
    plan.data.tables = 1;
    plan.data.rows = setup.keys;
    plan.work = Work::Rocksdb(setup);
    plan
}

/// Operations per second of the base.
fn usual(step: RocksdbStep, threads: u32) -> f64 {
    let alone = match step {
        RocksdbStep::Fillseq => 620_000.0,
        RocksdbStep::Readwhilewriting => 190_000.0,
        RocksdbStep::Overwriteandwait => 98_000.0,
        _ => 61_000.0,
    };
    alone * f64::from(threads).powf(0.7)
}

/// HyperClock reads faster with four threads; 11.0.0 overwrites 7 % slower.
fn effect(server: ServerId, step: RocksdbStep, threads: u32) -> f64 {
    let cache = match server {
        ServerId(2) | ServerId(4) if step.beside_a_writer() && threads > 1 => 1.12,
        _ => 1.0,
    };
    let version = match step {
        RocksdbStep::Overwriteandwait if server > ServerId(2) => 0.93,
        _ => 1.0,
    };
    cache * version
}

struct Made {
    random: Xoshiro256PlusPlus,
    slices: Vec<Slice>,
    counters: Vec<VisitCounters>,
}

impl Made {
    /// About -1 to 1.
    fn wave(&mut self) -> f64 {
        (0..4).map(|_| self.random.random::<f64>() - 0.5).sum()
    }

    fn visit(
        &mut self,
        (server, cell, block): (ServerId, CellId, u32),
        step: RocksdbStep,
        threads: u32,
    ) {
        let luck = 0.008 * self.wave();
        let mut all = 0;
        // What writes is one turn.
        let (rounds, seconds) = match step.writes() {
            true => (1, 2.0),
            false => (ROUNDS, 0.2),
        };
        for round in 0..rounds {
            let rate = usual(step, threads)
                * effect(server, step, threads)
                * (luck + 0.01 * self.wave()).exp();
            let operations = to_u64(seconds * usual(step, threads));
            let stalled = if step.writes() {
                0.04 + 0.02 * self.wave()
            } else {
                0.0
            };
            let seconds = to_f64(operations) / rate + stalled;
            all += operations;
            self.slices.push(Slice {
                server,
                cell,
                block,
                round,
                position: (server.0 + round) % 5,
                connection: 0,
                started_ns: START
                    + u64::from(block * 900 + cell.0 * 60 + round * 2) * 1_000_000_000
                    + u64::from(server.0),
                duration_ns: to_u64(seconds * 1e9),
                operations,
                failed: 0,
                rows: if step.group() == deltabench_model::plan::Group::Range {
                    11 * operations
                } else {
                    operations
                },
                server_cpu_ns: Some(to_u64(
                    1.05e9 * f64::from(threads) * to_f64(operations) / rate,
                )),
                run_queue_wait_ns: None,
                client_cpu_ns: 0,
                foreign_cpu_ns: Some(0),
                steal_ns: Some(0),
                idle_cpu_ns: Some(0),
                background_cpu_ns: None,
                probe_ns: None,
                probing_ns: None,
                switches: None,
                cpu_pressure_ns: None,
                schedule_lag_ns: None,
                latency_histogram: histogram(1e9 * f64::from(threads) / rate, operations),
                scripts: Vec::new(),
                errors: Vec::new(),
                void: None,
                void_detail: None,
            });
        }
        let values = self.figures(server, step, all);
        self.counters.push(VisitCounters {
            server,
            cell,
            block,
            operations: all,
            values,
        });
    }

    fn figures(
        &mut self,
        server: ServerId,
        step: RocksdbStep,
        operations: u64,
    ) -> std::collections::BTreeMap<String, f64> {
        let mib = 1_048_576.0;
        let put = match (step.writes(), step.beside_a_writer()) {
            (true, _) => 420.0 * to_f64(operations),
            (false, true) => 4.0 * mib,
            _ => 0.0,
        };
        let noise = 1.0 + 0.01 * self.wave();
        let more = if server > ServerId(2) { 1.15 } else { 1.0 };
        let compacted = noise * more * 2.4 * put;
        let stall_ns = if step == RocksdbStep::Overwriteandwait {
            1.6e8
        } else {
            0.0
        };
        let mut all = vec![
            ("compaction_write_bytes", compacted),
            ("compaction_read_bytes", 1.1 * compacted),
            ("compaction_ns", 4.0 * compacted),
            ("compaction_cpu_ns", 3.6 * compacted),
            ("flush_bytes", put),
            ("ingest_bytes", put),
            ("wal_write_bytes", put),
            ("stall_ns", stall_ns * noise),
            ("stalls", 2.0),
            ("active_ns", 2.4e9),
            ("user_cpu_ns", 2.1e9 * noise),
            ("system_cpu_ns", 0.2e9 * noise),
            ("process_written_bytes", compacted + 2.0 * put),
            ("process_read_bytes", 0.0),
            ("lsm_bytes", 260.0 * mib * noise),
            ("blob_bytes", 0.0),
            ("l0_files", 1.0),
            ("largest_rss_bytes", 700.0 * mib),
            ("block_cache_bytes", 300.0 * mib),
        ];
        if step == RocksdbStep::Overwriteandwait {
            all.push(("drain_ns", 0.6e9 * noise));
        }
        if !step.writes() {
            let operations = to_f64(operations);
            all.extend([
                ("block_cache_hits", 2.02 * operations),
                ("block_cache_misses", 0.001 * operations),
                ("key_comparisons", 31.0 * operations),
            ]);
        }
        let all = all.into_iter();
        all.map(|(key, value)| (key.to_owned(), value)).collect()
    }
}

fn histogram(mean_ns: f64, operations: u64) -> Vec<u8> {
    let mut histogram = Histogram::<u64>::new(3).unwrap();
    for (times, share) in [(0.9, 900), (1.6, 80), (3.0, 15), (20.0, 5)] {
        histogram
            .record_n(to_u64(times * mean_ns), operations * share / 1000)
            .unwrap();
    }
    let mut bytes = Vec::new();
    V2Serializer::new()
        .serialize(&histogram, &mut bytes)
        .unwrap();
    bytes
}

fn options(server: ServerId) -> Vec<Setting> {
    let format = if server > ServerId(2) { "7" } else { "6" };
    [
        ("DBOptions.max_background_jobs", "2"),
        ("CFOptions.write_buffer_size", "16777216"),
        ("TableOptions/BlockBasedTable.format_version", format),
    ]
    .map(|(name, value)| Setting {
        name: name.to_owned(),
        value: value.to_owned(),
        unit: None,
        boot_value: None,
        source: if name.ends_with("size") {
            "asked"
        } else {
            "default"
        }
        .to_owned(),
    })
    .to_vec()
}

fn fairness_of(plan: &Plan) -> Vec<Finding> {
    let settings: Vec<Vec<Setting>> = ServerId::each().take(5).map(options).collect();
    let facts = |id: ServerId| {
        let server = &plan.servers[id.index()];
        let cache = server.settings[0].1.as_str();
        EngineFacts {
            name: plan.server_name(id),
            installation: &server.installation,
            settings: &settings[id.index()],
            asked: &server.settings,
            left_out: &[],
            cache,
            wanted: BlockCache::from_word(cache).unwrap(),
        }
    };
    let candidates = plan.candidates().into_iter();
    candidates
        .flat_map(|id| fairness(&facts(plan.base()), &facts(id)))
        .collect()
}

/// All steps of so many blocks.
pub fn rocksdb_run(blocks: u32) -> Full {
    changed(blocks, |_| {})
}

/// The same, with a change before it is shown.
pub fn changed(blocks: u32, change: impl Fn(&mut RocksdbReport)) -> Full {
    let plan = plan(blocks);
    let mut made = Made {
        random: Xoshiro256PlusPlus::seed_from_u64(10),
        slices: Vec::new(),
        counters: Vec::new(),
    };
    for block in 0..blocks {
        for link in plan.work.rocksdb().unwrap().chain() {
            let Some(cell) = link.cell else { continue };
            for server in 0..5 {
                made.visit((ServerId(server), cell, block), link.step, link.threads);
            }
        }
    }
    let (slices, counters) = (made.slices, made.counters);
    let read = Records {
        slices: &slices,
        findings: &fairness_of(&plan),
        counters: &counters,
        ..Records::default()
    };
    let mut comparison = analyse(
        &plan,
        &slices,
        reader(&plan.work).read(&plan, &read).unwrap(),
    );
    let machines = [Machine::of_client(Some(2)); 5];
    add_costs(&mut comparison, &plan, &slices, &counters, &machines);
    let mut context = fixture::context();
    context.conditions = serde_json::json!({"limits": [], "cache": "as-is"});
    context.servers = (0..5)
        .map(|server| ServerFacts {
            server: ServerId(server),
            build: None,
            settings: options(ServerId(server)),
        })
        .collect();
    let mut report = rocksdb_report(&plan, &slices, &counters, &comparison).unwrap();
    change(&mut report);
    context.figures = figures(&context.run, &plan, &report);
    context.results = results(&slices);
    context.grids = grids_of(StudyRun {
        run: "r1",
        plan: &plan,
        comparison: &comparison,
        results: &context.results,
        host: "box",
        withdrawn: &[],
        began_unix_ms: None,
        via: &[],
    })
    .unwrap();
    Full {
        comparison,
        plan,
        context,
    }
}
