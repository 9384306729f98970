//! A run of the Insert Benchmark, made by rule: all ten steps, seven passes, no chance.

use crate::fixture;
use crate::full::Full;
use deltabench_compare::{Records, analyse};
use deltabench_kinds::insert::StepRecord;
use deltabench_kinds::insert::shown::figures;
use deltabench_kinds::insert::{InsertReport, Settled, insert_report};
use deltabench_kinds::reader;
use deltabench_model::counter::Mark;
use deltabench_model::plan::{CellId, Plan, ServerId};
use deltabench_model::units::{to_f64, to_u64};
use deltabench_model::work::Work;
use deltabench_model::work::insert::{
    InsertRole, InsertSecond, InsertSetup, InsertStep, Pacing, RoleTally,
};
use deltabench_testkit::small_insert;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2Serializer};
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};

const START: u64 = 1_763_721_780_000_000_000;

pub fn setup() -> InsertSetup {
    InsertSetup {
        clients: 2,
        rows: 400_000,
        write_rows: 200_000,
        query_seconds: 60,
        steps: InsertStep::published(&[100, 500, 1000]),
        pacing: Pacing::Burst,
        settle_seconds: None,
        ..small_insert()
    }
}

fn plan(passes: u32) -> Plan {
    let setup = setup();
    let mut plan = fixture::plan();
    plan.cells = deltabench_kinds::insert::setup::cells(&setup);
    plan.timing.blocks = passes;
    plan.stopping = Default::default();
    plan.work = Work::Insert(setup);
    plan
}

/// A change of this size in every pass, larger and smaller by turns.
fn wave(server: ServerId, cell: CellId, pass: u32) -> f64 {
    let turn = (server.0 * 7 + cell.0 * 3 + pass * 5) % 11;
    0.012 * (f64::from(turn) / 10.0 - 0.5)
}

fn usual(step: InsertStep) -> f64 {
    match step {
        InsertStep::LoadRows => 210_000.0,
        InsertStep::Index => 940_000.0,
        InsertStep::WriteMany => 24_000.0,
        InsertStep::WriteFew => 9_100.0,
        InsertStep::Range(rate) => 13_000.0 - f64::from(rate),
        InsertStep::Point(rate) => 15_500.0 - f64::from(rate),
    }
}

/// The candidate loads as fast, writes 8 % slower, and reads 6 % faster, but does not keep up 1000 rows/s.
fn effect(server: ServerId, step: InsertStep) -> f64 {
    match step {
        _ if server != ServerId(2) => 1.0,
        InsertStep::LoadRows | InsertStep::Index => 1.0,
        InsertStep::WriteMany | InsertStep::WriteFew => 0.92,
        InsertStep::Range(_) => 1.06,
        InsertStep::Point(_) => 1.0,
    }
}

fn record(server: ServerId, cell: CellId, pass: u32, step: InsertStep) -> StepRecord {
    let setup = setup();
    let throughput = usual(step) * effect(server, step) * wave(server, cell, pass).exp();
    let rows = setup.rows_of(step) * u64::from(setup.clients);
    let share = if server == ServerId(2) && step.rate() == Some(1000) {
        0.93
    } else {
        1.0
    };
    let time = match step.rate() {
        Some(rate) => to_f64(rows) / (share * f64::from(rate * setup.clients)),
        None if step == InsertStep::Index => setup.published_per_operation(step) / throughput,
        None => to_f64(rows) / throughput,
    };
    let batches = rows / u64::from(step.batch());
    let queries = to_u64(throughput * time);
    let mut roles = vec![tally(InsertRole::Insert, batches, rows, 700)];
    if !matches!(step, InsertStep::LoadRows | InsertStep::Index) {
        roles.push(tally(InsertRole::Delete, batches, rows, 2900));
    }
    if step.queries() {
        roles.push(tally(InsertRole::Query, queries, 10 * queries, 90));
    }
    StepRecord {
        server,
        cell,
        block: pass,
        position: (server.0 + pass) % 3,
        started_ns: START
            + u64::from(pass * 30 + cell.0 * 3) * 60_000_000_000
            + u64::from(server.0),
        duration_ns: to_u64(time * 1e9),
        operations: match step {
            InsertStep::Index => 1,
            step if step.queries() => queries,
            _ => batches,
        },
        server_cpu_ns: Some(to_u64(1.3 * time * 1e9)),
        run_queue_wait_ns: None,
        switches: Some(to_u64(time * 5200.0)),
        client_cpu_ns: to_u64(0.1 * time * 1e9),
        foreign_cpu_ns: Some(0),
        steal_ns: Some(0),
        cpu_pressure_ns: None,
        roles,
        seconds: (0..to_u64(time.ceil()))
            .map(|second| every(step, second, throughput))
            .collect(),
        clients: vec![throughput / 2.0; 2],
        values: values(step, time),
        turns: Vec::new(),
        void: None,
        void_detail: None,
    }
}

fn every(step: InsertStep, second: u64, throughput: f64) -> InsertSecond {
    let stall = if second % 23 == 11 { 0.4 } else { 1.0 };
    let rate = to_u64(throughput * stall * (1.0 + 0.02 * to_f64(second * 7 % 5)));
    let slow = if stall < 1.0 { 30 } else { 1 };
    let inserted = step.rate().map_or(rate, |rate| 2 * u64::from(rate));
    let deletes = !matches!(step, InsertStep::LoadRows | InsertStep::Index);
    InsertSecond {
        inserted,
        deleted: if deletes { inserted } else { 0 },
        queries: if step.queries() { rate } else { 0 },
        max_insert_us: slow * (1500 + second * 13 % 400),
        max_delete_us: if deletes {
            slow * (4200 + second * 31 % 900)
        } else {
            0
        },
        max_query_us: if step.queries() { slow * 240 } else { 0 },
    }
}

/// Serialized histograms, by their statements and microseconds.
type Encoded = HashMap<(u64, u64), Vec<u8>>;

/// A serialized histogram of so many statements. All tests here ask for the same ones.
fn histogram(statements: u64, us: u64) -> Vec<u8> {
    static MADE: LazyLock<Mutex<Encoded>> = LazyLock::new(Mutex::default);
    if let Some(made) = MADE.lock().unwrap().get(&(statements, us)) {
        return made.clone();
    }
    let mut histogram = Histogram::<u64>::new(3).unwrap();
    for (times, share) in [(1, 900), (2, 80), (5, 15), (40, 4), (900, 1)] {
        histogram
            .record_n(times * us * 1000, statements * share / 1000 + 1)
            .unwrap();
    }
    let mut bytes = Vec::new();
    V2Serializer::new()
        .serialize(&histogram, &mut bytes)
        .unwrap();
    MADE.lock().unwrap().insert((statements, us), bytes.clone());
    bytes
}

fn tally(role: InsertRole, statements: u64, rows: u64, us: u64) -> RoleTally {
    RoleTally {
        role,
        statements,
        rows,
        failed: 0,
        retries: 0,
        latency_histogram: histogram(statements, us),
        max_service_ns: 890 * us * 1000,
        schedule_lag_ns: None,
        missed: 0,
        errors: Vec::new(),
    }
}

fn values(step: InsertStep, time: f64) -> std::collections::BTreeMap<String, f64> {
    let mib = 1_048_576.0;
    let deletes = if step == InsertStep::LoadRows || step == InsertStep::Index {
        0.0
    } else {
        1.0
    };
    let mut values: std::collections::BTreeMap<String, f64> = [
        ("device_reads", 12.0 * time),
        ("device_read_bytes", 0.2 * mib * time),
        ("device_writes", 310.0 * time),
        ("device_write_bytes", 14.0 * mib * time),
        ("database_bytes", 190.0 * mib),
        ("data_dir_bytes", 1_300.0 * mib),
        ("largest_rss_bytes", 410.0 * mib),
        ("table_bytes", 80.0 * mib),
        ("index_bytes", 110.0 * mib),
        ("wal_dir_bytes", 1024.0 * mib),
        ("dead_rows", 12_000.0 * deletes),
        ("insert_cpu_ns", 0.4e9 * time),
        ("checkpoints", 1.0),
        ("autovacuums", 2.0 * deletes),
        ("autoanalyzes", 1.0),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into();
    if deletes > 0.0 {
        values.insert("delete_cpu_ns".to_owned(), 2.9e9 * time);
        values.insert("short_deletes".to_owned(), 0.0);
    }
    values
}

/// All steps of so many passes, with a checkpoint and an autovacuum in each step.
pub fn insert_run(passes: u32) -> Full {
    changed(passes, |_, _| {})
}

/// The same, with a change before it is shown.
pub fn changed(passes: u32, change: impl Fn(&mut Plan, &mut InsertReport)) -> Full {
    let mut plan = plan(passes);
    let mut records = Vec::new();
    for pass in 0..passes {
        for server in 0..3 {
            for (cell, step) in (0..).zip(setup().steps) {
                records.push(record(ServerId(server), CellId(cell), pass, step));
            }
        }
    }
    let slices: Vec<_> = records.iter().map(StepRecord::slice).collect();
    let kept: Vec<_> = records.iter().map(|step| step.record().unwrap()).collect();
    let read = Records {
        slices: &slices,
        records: &kept,
        ..Records::default()
    };
    let comparison = analyse(
        &plan,
        &slices,
        reader(&plan.work).read(&plan, &read).unwrap(),
    );
    let mut context = fixture::context();
    let mut report = insert_report(&plan, &records, &comparison, Some(4)).unwrap();
    let settled = |(server, pass): (ServerId, u32)| Settled {
        server,
        pass,
        vacuum_seconds: 1.5 + f64::from(server.0),
        checkpoint_seconds: 0.4 + 0.2 * f64::from(pass % 2),
        seconds: 60.0,
    };
    let all =
        (0..passes).flat_map(|pass| ServerId::each().take(3).map(move |server| (server, pass)));
    report.settled = all.map(settled).collect();
    change(&mut plan, &mut report);
    context.figures = figures(&plan, &report);
    let mark = |record: &StepRecord, kind: &str, share: u64| Mark {
        at_ns: record.started_ns + record.duration_ns / 10 * share,
        server: Some(record.server),
        kind: kind.to_owned(),
        text: String::new(),
    };
    context.marks = records
        .iter()
        .flat_map(|record| {
            let share = 3 + u64::from(record.server.0);
            [
                mark(record, "checkpoint", share),
                mark(record, "autovacuum", share + 2),
            ]
        })
        .collect();
    Full {
        comparison,
        plan,
        context,
    }
}
