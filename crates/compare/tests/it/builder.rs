//! Plans and slices in a few words.

use deltabench_compare::comparison::{CellComparison, Comparison, Metric, MetricComparison};
use deltabench_model::counts::CountRecord;
use deltabench_model::installation::{Installation, Origin};
use deltabench_model::plan::{
    Cell, CellId, DataSize, Group, Plan, PlannedServer, Role, ServerId, Timing,
};
use deltabench_model::slice::Slice;
use deltabench_model::units::{to_f64, to_u64};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2Serializer};
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};

pub const BASE: ServerId = ServerId(0);
pub const PLACEBO: ServerId = ServerId(1);
pub const CANDIDATE: ServerId = ServerId(2);

pub fn installation(resolved: &str) -> Installation {
    Installation {
        asked: resolved.to_owned(),
        resolved: resolved.to_owned(),
        origin: Origin::Path,
        bin_dir: "/opt/bin".into(),
        version_num: 180_000,
        version: "18.0".to_owned(),
        binary_sha256: format!("hash of {resolved}"),
        build: None,
        recipe: None,
        remote: None,
        engine: deltabench_model::installation::Engine::Postgres,
    }
}

pub fn cell(clients: u32, writes: bool) -> Cell {
    let group = if writes { Group::Write } else { Group::Point };
    Cell {
        workload: "point-query".to_owned(),
        group,
        clients,
        writes,
        statements_per_operation: 1,
        state: Default::default(),
        rate: None,
        published: Default::default(),
        reconnects: false,
    }
}

/// Base, placebo and one candidate; δ is 3 %.
pub fn plan(cells: Vec<Cell>) -> Plan {
    let server = |role, name| PlannedServer::new(role, installation(name));
    Plan {
        checksums: Some(false),
        ..Plan::plain(
            1,
            vec![
                server(Role::Base, "postgres:17.5"),
                server(Role::Placebo, "postgres:17.5"),
                server(Role::Candidate, "postgres:18.6"),
            ],
            cells,
            (
                DataSize {
                    tables: 1,
                    rows: 1000,
                },
                Timing {
                    blocks: 8,
                    slice_ms: 50,
                    slice_jitter: 0.2,
                    visit_seconds: 3.0,
                    warmup_seconds: 1.0,
                    connections_per_visit: 1,
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

/// The same, compared as every run compares: candidates with both copies of the base.
pub fn as_run(mut plan: Plan) -> Plan {
    plan.two_controls = true;
    plan
}

/// A slice of cell 0: so many operations a second, each for so many microseconds of CPU.
pub fn slice(server: ServerId, block: u32, round: u32, rate: f64, cpu_us: Option<f64>) -> Slice {
    let operations = 100_000;
    Slice {
        server,
        cell: CellId(0),
        block,
        round,
        position: server.0,
        connection: 0,
        started_ns: 0,
        duration_ns: to_u64(1e9 * to_f64(operations) / rate),
        operations,
        failed: 0,
        rows: operations,
        server_cpu_ns: cpu_us.map(|us| to_u64(us * 1e3 * to_f64(operations))),
        run_queue_wait_ns: None,
        client_cpu_ns: 0,
        foreign_cpu_ns: None,
        steal_ns: None,
        latency_histogram: Vec::new(),
        scripts: Vec::new(),
        errors: Vec::new(),
        void: None,
        void_detail: None,
        idle_cpu_ns: None,
        background_cpu_ns: None,
        probe_ns: None,
        probing_ns: None,
        switches: None,
        cpu_pressure_ns: None,
        schedule_lag_ns: None,
    }
}

/// Histograms that are kept: those that simulated runs ask for again and again are few.
const KEPT: usize = 64;

/// A serialized histogram of these latencies, nanoseconds.
pub fn histogram(latencies: &[u64]) -> Vec<u8> {
    static MADE: LazyLock<Mutex<HashMap<Vec<u64>, Vec<u8>>>> = LazyLock::new(Mutex::default);
    if let Some(made) = MADE.lock().unwrap().get(latencies) {
        return made.clone();
    }
    let bytes = serialized(latencies);
    let mut made = MADE.lock().unwrap();
    if made.len() < KEPT {
        made.insert(latencies.to_vec(), bytes.clone());
    }
    bytes
}

fn serialized(latencies: &[u64]) -> Vec<u8> {
    // As large as it must be from the start: growing is most of what simulated runs would do.
    let most = latencies.iter().copied().max().unwrap_or(2).max(2);
    let mut histogram = Histogram::<u64>::new_with_max(most, 3).unwrap();
    for &latency in latencies {
        histogram.record(latency).unwrap();
    }
    let mut bytes = Vec::new();
    V2Serializer::new()
        .serialize(&histogram, &mut bytes)
        .unwrap();
    bytes
}

/// Each server's block values, as ratios to 1000 operations/s and 10 µs: `rates[b]` is the throughput in
/// block b.
pub struct Blocks<'a> {
    pub server: ServerId,
    pub rates: &'a [f64],
    pub costs: &'a [f64],
}

/// Four equal rounds for each block; the base runs at 1000/s and 10 µs everywhere.
pub fn slices(blocks: u32, sides: &[Blocks<'_>]) -> Vec<Slice> {
    let mut slices = Vec::new();
    for block in 0..blocks {
        for round in 0..4 {
            slices.push(slice(BASE, block, round, 1000.0, Some(10.0)));
            for side in sides {
                let at = |values: &[f64]| values.get(usize::try_from(block).unwrap()).copied();
                let cost = at(side.costs).map(|cost| 10.0 * cost);
                if let Some(rate) = at(side.rates) {
                    slices.push(slice(side.server, block, round, 1000.0 * rate, cost));
                }
            }
        }
    }
    slices
}

/// The candidate alone.
pub fn candidate<'a>(rates: &'a [f64], costs: &'a [f64]) -> Blocks<'a> {
    Blocks {
        server: CANDIDATE,
        rates,
        costs,
    }
}

/// `n` values that scatter around `centre` by ±`spread`, with exactly that mean of logarithms.
pub fn around(centre: f64, spread: f64, n: usize) -> Vec<f64> {
    assert!(n.is_multiple_of(2), "pairs keep the mean");
    (0..n)
        .map(|i| centre * (if i % 2 == 0 { spread } else { -spread }).exp())
        .collect()
}

pub fn only_cell(comparison: &Comparison) -> &CellComparison {
    assert_eq!(comparison.cells.len(), 1);
    &comparison.cells[0]
}

pub fn metric(cell: &CellComparison, metric: Metric) -> &MetricComparison {
    cell.metrics
        .iter()
        .find(|found| found.metric == metric)
        .unwrap()
}

/// Slices of eight blocks, of cells in which the candidate has these values.
pub fn slices_of_cells(cells: &[Vec<f64>]) -> Vec<Slice> {
    let of = |(cell, rates): (u32, &Vec<f64>)| {
        let slices = slices(8, &[candidate(rates, &[])]);
        slices.into_iter().map(move |slice| Slice {
            cell: CellId(cell),
            ..slice
        })
    };
    (0..).zip(cells).flat_map(of).collect()
}

/// Counts of two starts of a server, 0.01 % apart.
pub fn starts(server: ServerId, cell: u32, per_op: f64) -> [CountRecord; 2] {
    [(0, 0.999_95), (1, 1.000_05)].map(|(start, share)| CountRecord {
        server,
        cell: CellId(cell),
        start,
        window: 0,
        operations: 1000,
        instructions: to_u64(per_op * share * 1000.0),
        of_marks: 0,
        of_clock: 0,
        rows: 1000,
        failed: 0,
        beside: None,
    })
}

/// How many runs a simulation takes: so many, or what DELTABENCH_RUNS says.
pub fn runs(few: u64) -> u64 {
    let asked = std::env::var("DELTABENCH_RUNS").ok();
    asked.and_then(|runs| runs.parse().ok()).unwrap_or(few)
}
