//! A comparison as a run of eight cells would give it, made by hand.

use deltabench_compare::comparison::{
    CellComparison, Comparison, Difference, GroupSummary, Metric, MetricComparison, PlaceboSummary,
    Ratio, RoundRatio, Verdict, VerdictCounts,
};
use deltabench_model::finding::{Finding, FindingKind, Severity};
use deltabench_model::installation::{Build, Installation, Origin, Setting};
use deltabench_model::plan::{
    Cell, CellId, DataSize, Group, Plan, PlannedServer, Role, ServerId, Timing,
};
use deltabench_report::{ReportContext, ServerFacts};
use serde_json::json;

pub const BLOCKS: u32 = 16;
const ROUNDS: u32 = 28;
const DELTA: f64 = 0.03;

/// Name, group, clients, verdict, reason, base throughput, change of throughput, of CPU, 95 % half-width.
type Row = (
    &'static str,
    Group,
    u32,
    Verdict,
    &'static str,
    f64,
    f64,
    f64,
    f64,
);

const ROWS: [Row; 8] = [
    (
        "point-query",
        Group::Point,
        1,
        Verdict::NoChange,
        "no change beyond ±3 %",
        21_400.0,
        -0.006,
        0.004,
        0.009,
    ),
    (
        "point-query",
        Group::Point,
        4,
        Verdict::NoChange,
        "no change beyond ±3 %",
        48_100.0,
        0.008,
        -0.005,
        0.014,
    ),
    (
        "hot-points",
        Group::Point,
        1,
        Verdict::NoChange,
        "no change beyond ±3 % (measurably slower by 1.2 %)",
        5_230.0,
        -0.012,
        0.013,
        0.006,
    ),
    (
        "range-notcovered-pk",
        Group::Range,
        1,
        Verdict::NoChange,
        "no change beyond ±3 %",
        7_310.0,
        0.003,
        -0.002,
        0.008,
    ),
    (
        "range-covered-si",
        Group::Range,
        1,
        Verdict::Regression,
        "slower by 4.6 % to 6.4 %, beyond ±3 %",
        6_890.0,
        -0.055,
        0.057,
        0.009,
    ),
    (
        "read-only-sum",
        Group::RangeAgg,
        1,
        Verdict::NoChange,
        "no change beyond ±3 %",
        3_020.0,
        0.011,
        -0.012,
        0.012,
    ),
    (
        "update-nonindex",
        Group::Write,
        1,
        Verdict::NoChange,
        "no change beyond ±3 %",
        1_480.0,
        -0.004,
        0.002,
        0.018,
    ),
    (
        "update-index",
        Group::Write,
        4,
        Verdict::Inconclusive,
        "throughput ±4.5 % is too wide for ±3 %; needs about 12 more blocks",
        2_210.0,
        -0.014,
        0.006,
        0.045,
    ),
];

/// Numbers that look random and are the same on every machine: a 32-bit LCG, sum of four uniforms.
pub struct Noise(pub u32);

impl Noise {
    pub fn next(&mut self) -> f64 {
        (0..4).map(|_| self.uniform()).sum::<f64>() * 1.73
    }

    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(self.0 >> 8) / f64::from(1_u32 << 24) - 0.5
    }
}

pub fn ratio(change: f64, half: f64) -> Ratio {
    let centre = change.ln_1p();
    let ends = |half: f64| Some(((centre - half).exp(), (centre + half).exp()));
    Ratio {
        estimate: centre.exp(),
        ci95: ends(half),
        ci90: ends(half * 0.82),
    }
}

fn metric(
    metric: Metric,
    base: f64,
    change: f64,
    half: f64,
    verdict: Option<Verdict>,
    noise: &mut Noise,
) -> MetricComparison {
    // The half-width of 16 blocks is about sd / 2.
    let blocks = (0..BLOCKS)
        .map(|_| change.ln_1p() + 2.0 * half * noise.next() * 0.9)
        .collect();
    MetricComparison {
        metric,
        base,
        candidate: base * (1.0 + change),
        ratio: ratio(change, half),
        typical: metric.quantile().is_none().then(|| ratio(change, half)),
        difference_us: (metric != Metric::Throughput).then_some(Difference {
            estimate: base * change,
            ci95: Some((base * (change - half), base * (change + half))),
        }),
        verdict,
        blocks,
        numbers: (0..BLOCKS).collect(),
        other_blocks: Vec::new(),
        skewness: Default::default(),
        probed: None,
        hours: None,
    }
}

fn cell(id: u32, row: &Row, candidate: u32, noise: &mut Noise) -> CellComparison {
    let (workload, group, clients, verdict, reason, base, change, cpu, half) = row;
    let latency = 1e6 * f64::from(*clients) / base;
    let mut metrics = vec![
        metric(
            Metric::Throughput,
            *base,
            *change,
            *half,
            Some(*verdict),
            noise,
        ),
        metric(
            Metric::ServerCpuPerOperation,
            0.7 * latency,
            *cpu,
            half * 0.5,
            Some(*verdict),
            noise,
        ),
        metric(
            Metric::LatencyP50,
            0.95 * latency,
            -change,
            *half,
            None,
            noise,
        ),
        metric(
            Metric::LatencyP99,
            2.1 * latency,
            -change * 1.3,
            half * 2.0,
            None,
            noise,
        ),
    ];
    // Of time, which is longer where throughput is lower.
    let longer = |change: f64| latency * (1.0 / (1.0 + change) - 1.0);
    metrics[0].difference_us = Some(Difference {
        estimate: longer(*change),
        ci95: Some((longer(change + half), longer(change - half))),
    });
    let levels: Vec<(f64, f64)> =
        std::iter::zip(metrics[0].blocks.clone(), metrics[1].blocks.clone()).collect();
    let series = (0..BLOCKS).zip(levels).flat_map(|(block, (speed, cost))| {
        (0..ROUNDS).map(move |round| (block, round, speed, cost))
    });
    let series = series
        .map(|(block, round, speed, cost)| RoundRatio {
            block,
            round,
            throughput: speed + 0.05 * noise.next(),
            server_cpu: Some(cost + 0.02 * noise.next()),
        })
        .collect();
    CellComparison {
        cell: CellId(id),
        workload: (*workload).to_owned(),
        group: *group,
        clients: *clients,
        candidate: ServerId(candidate),
        candidate_name: if candidate == 1 {
            "placebo".to_owned()
        } else {
            "postgres:18.6".to_owned()
        },
        verdict: *verdict,
        alone: *verdict,
        reason: (*reason).to_owned(),
        delta: DELTA,
        p: None,
        p_holm: None,
        p_bh: None,
        looks: 0,
        decided_at: None,
        detection: None,
        confirmation: None,
        recurrence: None,
        interval_level: 0.95,
        drifting: None,
        interference: Default::default(),
        host_speed: None,
        stalls: None,
        blocks_to_verdict: None,
        minutes_to_verdict: None,
        blocks: BLOCKS,
        rounds: u64::from(BLOCKS * ROUNDS),
        void_rounds: 0,
        metrics,
        rates: Vec::new(),
        latency: None,
        costs: Vec::new(),
        cost_rates: None,
        moved: Vec::new(),
        explanation: None,
        series,
        base_errors: 0,
        candidate_errors: 0,
    }
}

pub fn comparison() -> Comparison {
    let mut noise = Noise(17);
    let mut cells: Vec<CellComparison> = (0..)
        .zip(&ROWS)
        .map(|(id, row)| cell(id, row, 2, &mut noise))
        .collect();
    cells[7].void_rounds = 3;
    cells[7].candidate_errors = 12;
    // CPU cannot be had everywhere.
    cells[6].metrics.remove(1);
    let nothing = |(id, row): (u32, &Row)| {
        let change = 0.006 * noise.next();
        let same = Verdict::NoChange;
        let row = (
            row.0,
            row.1,
            row.2,
            same,
            "no change beyond ±3 %",
            row.5,
            change,
            -change,
            row.8,
        );
        cell(id, &row, 1, &mut noise)
    };
    let placebo_cells = (0..).zip(&ROWS).map(nothing).collect();
    Comparison {
        delta: DELTA,
        stopping: Default::default(),
        gate: Default::default(),
        summaries: summaries(),
        cells,
        placebo_cells,
        placebo: Some(PlaceboSummary {
            throughput: ratio(0.002, 0.011),
            server_cpu: Some(ratio(-0.001, 0.004)),
            flagged: 0,
            cells: 8,
        }),
        counts: VerdictCounts {
            regression: 1,
            improvement: 0,
            no_change: 6,
            inconclusive: 1,
            unfit: 0,
        },
        instructions: None,
        sessions: None,
        host_ok: true,
        unfinished: false,
        findings: vec![
            Finding::new(
                FindingKind::NoHugePages,
                Severity::Note,
                "shared buffers are in 4 KiB pages: expect about twice the spread between restarts",
            ),
            Finding::new(
                FindingKind::CompilerDiffers,
                Severity::Confounder,
                "base was built by gcc (Ubuntu 7.5.0-3ubuntu1~18.04) 7.5.0, \
                 postgres:18.6 by gcc (Debian 12.2.0-14) 12.2.0",
            ),
            Finding::new(
                FindingKind::DefaultsDiffer,
                Severity::Confounder,
                "io_method is new in postgres:18.6 (worker); \
                 effective_io_concurrency defaults to 1 on the base and to 16 on postgres:18.6",
            ),
        ],
    }
}

/// The means of the candidate; one group has a single cell.
fn summaries() -> Vec<GroupSummary> {
    let groups = [
        (Some(Group::Point), 3, -0.004, 0.004),
        (Some(Group::Range), 2, -0.027, 0.027),
        (Some(Group::RangeAgg), 1, 0.011, -0.012),
        (Some(Group::Write), 2, -0.009, 0.006),
        (None, 8, -0.009, 0.009),
    ];
    let summary = |(group, of, change, cpu)| GroupSummary {
        candidate: ServerId(2),
        candidate_name: "postgres:18.6".to_owned(),
        group,
        cells: of,
        of,
        throughput: ratio(change, 0.007),
        server_cpu: Some(ratio(cpu, 0.003)),
    };
    groups.map(summary).to_vec()
}

fn installation(asked: &str, resolved: &str, version_num: u32, sha: &str) -> Installation {
    Installation {
        asked: asked.to_owned(),
        resolved: resolved.to_owned(),
        origin: Origin::Prebuilt,
        bin_dir: format!("/root/.cache/deltabench/{}/bin", resolved.replace(':', "-")).into(),
        version_num,
        version: resolved.replace("postgres:", ""),
        binary_sha256: sha.repeat(8),
        build: None,
        recipe: None,
        remote: None,
        engine: deltabench_model::installation::Engine::Postgres,
    }
}

pub fn plan() -> Plan {
    let base = installation("postgres:17", "postgres:17.11", 170_011, "3f7a91c2");
    let candidate = installation("postgres:18", "postgres:18.6", 180_006, "b05d44e1");
    let server = |role, installation: &Installation| PlannedServer::new(role, installation.clone());
    let cells = ROWS.iter().map(|row| Cell {
        workload: row.0.to_owned(),
        group: row.1,
        clients: row.2,
        writes: row.1 == Group::Write,
        statements_per_operation: 1,
        state: Default::default(),
        rate: None,
        published: Default::default(),
        reconnects: false,
    });
    Plan {
        delta: DELTA,
        settings: vec![
            ("shared_buffers".to_owned(), "512MB".to_owned()),
            ("autovacuum".to_owned(), "off".to_owned()),
        ],
        command: [
            "deltabench",
            "compare",
            "postgres:17",
            "postgres:18",
            "--clients",
            "1,4",
        ]
        .map(str::to_owned)
        .to_vec(),
        ..Plan::plain(
            9_731_004_412_345_678_901,
            vec![
                server(Role::Base, &base),
                server(Role::Placebo, &base),
                server(Role::Candidate, &candidate),
            ],
            cells.collect(),
            (
                DataSize {
                    tables: 1,
                    rows: 1_000_000,
                },
                Timing {
                    blocks: BLOCKS,
                    slice_ms: 50,
                    slice_jitter: 0.2,
                    visit_seconds: 1.5,
                    warmup_seconds: 0.3,
                    connections_per_visit: 2,
                    sustained: false,
                    write_seconds: None,
                    warmup_chosen: false,
                    rotated: false,
                    deadline_seconds: None,
                },
            ),
        )
    }
}

fn setting(name: &str, value: &str, unit: Option<&str>, source: &str) -> Setting {
    Setting {
        name: name.to_owned(),
        value: value.to_owned(),
        unit: unit.map(str::to_owned),
        boot_value: None,
        source: source.to_owned(),
    }
}

fn facts(server: u32, version: &str, compiler: &str, concurrency: &str) -> ServerFacts {
    let mut settings = vec![
        setting("autovacuum", "off", None, "configuration file"),
        setting("effective_io_concurrency", concurrency, None, "default"),
        setting("port", &(6000 + server).to_string(), None, "command line"),
        setting("shared_buffers", "65536", Some("8kB"), "configuration file"),
        setting("work_mem", "4096", Some("kB"), "default"),
    ];
    if version.starts_with("18") {
        settings.push(setting("io_method", "worker", None, "default"));
    }
    let build = Build {
        version_text: format!(
            "PostgreSQL {version} on x86_64-pc-linux-gnu, compiled by {compiler}, 64-bit"
        ),
        compiler: compiler.to_owned(),
        cflags: "-Wall -Wmissing-prototypes -Wpointer-arith -fno-strict-aliasing -fwrapv -O2"
            .to_owned(),
        configure: "'--with-icu' '--with-openssl' '--with-lz4' '--prefix=/usr/local/pg-build'"
            .to_owned(),
    };
    ServerFacts {
        server: ServerId(server),
        build: Some(build),
        settings,
    }
}

pub fn context() -> ReportContext {
    ReportContext {
        sessions: Vec::new(),
        sampled: Vec::new(),
        explained: Vec::new(),
        run: "20251121-1043-7f3a".to_owned(),
        state: "finished".to_owned(),
        started_unix_ms: Some(1_763_721_780_000),
        deltabench_version: "0.1.0".to_owned(),
        host: json!({
            "cpu": "Intel(R) Xeon(R) Processor @ 2.60GHz", "cores": 2, "memory_bytes": 25_189_535_744_u64,
            "kernel": "6.8.0-45-generic", "virtual": true, "pressure": {"cpu_some_avg10": 1.2}
        }),
        conditions: json!({"huge_pages": false, "shared_buffers_mb": 512, "cores": [0, 1]}),
        servers: vec![
            facts(0, "17.11", "gcc (Ubuntu 7.5.0-3ubuntu1~18.04) 7.5.0", "1"),
            facts(1, "17.11", "gcc (Ubuntu 7.5.0-3ubuntu1~18.04) 7.5.0", "1"),
            facts(2, "18.6", "gcc (Debian 12.2.0-14) 12.2.0", "16"),
        ],
        ledger: None,
        warm_up: Vec::new(),
        invalidations: Vec::new(),
        confirmation_withdrawn: Vec::new(),
        delta_chosen: None,
        planned_base: None,
        samples: Vec::new(),
        marks: Vec::new(),
        results: Vec::new(),
        grids: Vec::new(),
        figures: Default::default(),
    }
}
