//! Steps of the Insert Benchmark, made up.

use crate::builder::{BASE, CANDIDATE, PLACEBO, histogram, plan};
use crate::calibration_model::Simulation;
use deltabench_compare::comparison::Comparison;
use deltabench_compare::{Reading, Records, analyse};
use deltabench_kinds::insert::setup::cells;
use deltabench_kinds::insert::{InsertReport, StepRecord, insert_report};
use deltabench_model::counter::VisitCounters;
use deltabench_model::plan::{CellId, Plan, ServerId};
use deltabench_model::record::Record;
use deltabench_model::slice::Slice;
use deltabench_model::units::{seconds, to_f64, to_u64};
use deltabench_model::work::Work;
use deltabench_model::work::insert::{
    InsertRole, InsertSecond, InsertSetup, InsertStep, Pacing, RoleTally,
};
use deltabench_testkit::small_insert;

/// All steps with one rate, two clients.
pub fn setup() -> InsertSetup {
    InsertSetup {
        clients: 2,
        rows: 400_000,
        write_rows: 100_000,
        query_seconds: 20,
        pacing: Pacing::Burst,
        settle_seconds: None,
        ..small_insert()
    }
}

/// The plan of that setup: base, placebo, candidate.
pub fn insert_plan(passes: u32) -> Plan {
    let setup = setup();
    let mut plan = plan(cells(&setup));
    plan.timing.blocks = passes;
    plan.work = Work::Insert(setup);
    plan
}

/// Published throughput of a step on an unchanged server.
pub fn usual(step: InsertStep) -> f64 {
    match step {
        InsertStep::LoadRows => 200_000.0,
        InsertStep::Index => 1_000_000.0,
        InsertStep::WriteMany => 20_000.0,
        InsertStep::WriteFew => 8_000.0,
        InsertStep::Range(_) => 12_000.0,
        InsertStep::Point(_) => 15_000.0,
    }
}

/// A step at a published throughput, with this share of its background rate.
pub fn record(
    (server, cell, pass): (ServerId, CellId, u32),
    step: InsertStep,
    throughput: f64,
    share: f64,
) -> StepRecord {
    let setup = setup();
    let rows = setup.rows_of(step) * u64::from(setup.clients);
    let time = match step.rate() {
        Some(rate) => to_f64(rows) / (share * f64::from(rate * setup.clients)),
        None if step == InsertStep::Index => setup.published_per_operation(step) / throughput,
        None => to_f64(rows) / throughput,
    };
    let queries = to_u64(throughput * time);
    let batches = rows / u64::from(step.batch());
    let mut roles = vec![tally(
        InsertRole::Insert,
        batches,
        rows,
        &[300_000, 900_000],
    )];
    if !matches!(step, InsertStep::LoadRows | InsertStep::Index) {
        roles.push(tally(
            InsertRole::Delete,
            batches,
            rows,
            &[2_000_000, 5_000_000_000],
        ));
    }
    if step.queries() {
        roles.push(tally(
            InsertRole::Query,
            queries,
            10 * queries,
            &[100_000, 200_000],
        ));
    }
    StepRecord {
        server,
        cell,
        block: pass,
        position: server.0,
        started_ns: 1_700_000_000_000_000_000 + u64::from(cell.0) * 60_000_000_000,
        duration_ns: to_u64(time * 1e9),
        operations: match step {
            InsertStep::Index => 1,
            step if step.queries() => queries,
            _ => batches,
        },
        server_cpu_ns: Some(to_u64(0.8 * time * 1e9)),
        run_queue_wait_ns: None,
        switches: Some(to_u64(time * 1000.0)),
        client_cpu_ns: to_u64(0.1 * time * 1e9),
        foreign_cpu_ns: Some(0),
        steal_ns: Some(0),
        cpu_pressure_ns: None,
        roles,
        seconds: every_second(step, time, throughput),
        clients: vec![throughput / 2.0; 2],
        values: values(time),
        turns: Vec::new(),
        void: None,
        void_detail: None,
    }
}

fn tally(role: InsertRole, statements: u64, rows: u64, latencies: &[u64]) -> RoleTally {
    RoleTally {
        role,
        statements,
        rows,
        failed: 0,
        retries: 0,
        latency_histogram: histogram(latencies),
        max_service_ns: latencies.iter().copied().max().unwrap_or(0),
        schedule_lag_ns: None,
        missed: 0,
        errors: Vec::new(),
    }
}

fn every_second(step: InsertStep, time: f64, throughput: f64) -> Vec<InsertSecond> {
    let rate = to_u64(throughput);
    let second = InsertSecond {
        inserted: if step.queries() { 200 } else { rate },
        queries: if step.queries() { rate } else { 0 },
        ..InsertSecond::default()
    };
    (0..to_u64(time.ceil())).map(|_| second).collect()
}

fn values(time: f64) -> std::collections::BTreeMap<String, f64> {
    let gib = 1_073_741_824.0;
    [
        ("device_reads", 100.0 * time),
        ("device_read_bytes", 1_048_576.0 * time),
        ("device_writes", 50.0 * time),
        ("device_write_bytes", 2.0 * 1_048_576.0 * time),
        ("device_read_ns", 2e8 * time),
        ("device_write_ns", 5e7 * time),
        ("database_bytes", 2.0 * gib),
        ("data_dir_bytes", 3.0 * gib),
        ("largest_rss_bytes", 0.5 * gib),
        ("delete_cpu_ns", 4e9),
        ("insert_cpu_ns", 2e8),
        ("checkpoints", 1.0),
        ("process_read_bytes", 1024.0 * 300.0 * time),
        ("process_write_bytes", 1024.0 * 200.0 * time),
        ("look_ups", 4.0),
        ("look_up_ns", 10e6),
        ("look_up_max_ns", 7e6),
        ("long_transactions", 2.0),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into()
}

/// Every step on every server in every pass; `factor` says how fast it is against the usual.
pub fn records(
    passes: u32,
    mut factor: impl FnMut(ServerId, InsertStep, u32) -> f64,
) -> Vec<StepRecord> {
    let mut records = Vec::new();
    for pass in 0..passes {
        for server in [BASE, PLACEBO, CANDIDATE] {
            for (cell, step) in (0..).zip(setup().steps) {
                let throughput = usual(step) * factor(server, step, pass);
                records.push(record((server, CellId(cell), pass), step, throughput, 1.0));
            }
        }
    }
    records
}

/// The same with noise of 1 % in each step.
pub fn noisy(seed: u64, passes: u32, candidate: f64) -> Vec<StepRecord> {
    noisier(seed, passes, candidate, 0.01)
}

/// The same with noise of this size.
pub fn noisier(seed: u64, passes: u32, candidate: f64, noise: f64) -> Vec<StepRecord> {
    let mut random = Simulation::new(seed);
    records(passes, |server, _, _| {
        let change = if server == CANDIDATE { candidate } else { 1.0 };
        change * (noise * random.normal()).exp()
    })
}

/// Steps as slices.
pub fn slices(records: &[StepRecord]) -> Vec<Slice> {
    records.iter().map(StepRecord::slice).collect()
}

/// What some records say beside their slices.
fn reading(plan: &Plan, steps: &[StepRecord]) -> Reading {
    let kept: Vec<Record> = steps.iter().map(|step| step.record().unwrap()).collect();
    let reader = deltabench_kinds::reader(&plan.work);
    let records = Records {
        records: &kept,
        ..Records::default()
    };
    let reading = reader.read(plan, &records).unwrap();
    assert_eq!(reading.slices, slices(steps));
    reading
}

/// What was counted in some records.
pub fn counters(plan: &Plan, steps: &[StepRecord]) -> Vec<VisitCounters> {
    reading(plan, steps).counters
}

/// The comparison of some records.
pub fn judged(plan: &Plan, steps: &[StepRecord]) -> Comparison {
    analyse(plan, &slices(steps), reading(plan, steps))
}

/// The comparison of what the slices of some records say. Verdicts on throughput need no more, so that
/// simulated runs write and read no records.
pub fn judged_by_slices(plan: &Plan, steps: &[StepRecord]) -> Comparison {
    analyse(plan, &slices(steps), Reading::default())
}

/// Comparison and figures of some records, on four cores.
pub fn told(plan: &Plan, records: &[StepRecord]) -> (Comparison, InsertReport) {
    let comparison = judged(plan, records);
    let report = insert_report(plan, records, &comparison, Some(4)).unwrap();
    (comparison, report)
}

/// Length of a step in seconds.
pub fn length(record: &StepRecord) -> f64 {
    seconds(record.duration_ns)
}
