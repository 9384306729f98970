//! A run of pgbench's scripts, from slices as a driver would give them.

use crate::fixture;
use deltabench_compare::absolute::results;
use deltabench_compare::analyse;
use deltabench_compare::comparison::Comparison;
use deltabench_compare::study::{StudyRun, grids_of};
use deltabench_kinds::pgbench::shown::figures;
use deltabench_model::plan::{
    Cell, CellId, Group, Placement, Plan, Role, ServerId, WorkloadSource,
};
use deltabench_model::slice::{ScriptTally, Slice};
use deltabench_model::units::{to_f64, to_u64};
use deltabench_model::work::Work;
use deltabench_model::work::pgbench::{
    PgbenchMix, PgbenchScript, PgbenchSetup, PgbenchTables, QueryMode,
};
use deltabench_report::ReportContext;
use deltabench_testkit::small_run::bare_slice;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2Serializer};

pub const CLIENTS: [u32; 14] = [1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32];

fn script(file: &str, weight: u32) -> PgbenchScript {
    PgbenchScript {
        source: WorkloadSource {
            file: file.to_owned(),
            text: String::new(),
        },
        weight,
    }
}

/// Select only, and a mix of a script of one's own with a built-in one.
pub fn setup() -> PgbenchSetup {
    PgbenchSetup {
        tables: PgbenchTables {
            scale: 2,
            partitions: 4,
            ..PgbenchTables::default()
        },
        mixes: vec![
            PgbenchMix {
                name: "pgbench-select-only".to_owned(),
                scripts: vec![script("<builtin: select only>", 1)],
            },
            PgbenchMix {
                name: "mix".to_owned(),
                scripts: vec![script("own.sql", 3), script("<builtin: simple update>", 1)],
            },
        ],
        mode: QueryMode::Prepared,
        variables: Vec::new(),
        max_tries: 1,
        shared_names: false,
        reconnects: false,
        latency_limit_ms: None,
        writes: false,
    }
}

/// A plan of both mixes at these numbers of clients.
pub fn plan(clients: &[u32]) -> Plan {
    let setup = setup();
    let mut plan = fixture::plan();
    let cell = |workload: &str, clients: &u32| Cell {
        workload: workload.to_owned(),
        group: if workload == "mix" {
            Group::Write
        } else {
            Group::Point
        },
        clients: *clients,
        writes: workload == "mix",
        ..plan.cells[0].clone()
    };
    plan.cells = setup
        .mixes
        .iter()
        .flat_map(|mix| {
            clients
                .iter()
                .map(|clients| cell(&mix.name, clients))
                .collect::<Vec<_>>()
        })
        .collect();
    plan.timing.blocks = 8;
    plan.placement_single = Placement::Split;
    plan.work = Work::scripts(Some(setup));
    plan
}

/// Linear to 4, flat to 16, then a loss of 12 % until 32.
fn law(clients: f64) -> f64 {
    if clients <= 4.0 {
        10_000.0 * clients
    } else if clients <= 16.0 {
        40_000.0
    } else {
        40_000.0 * (clients / 16.0).powf(0.88_f64.log2())
    }
}

/// Eight blocks of four rounds; the candidate is 5 % slower.
pub fn slices(plan: &Plan) -> Vec<Slice> {
    let mut noise = fixture::Noise(3);
    let mut slices = Vec::new();
    let mut now = 1_763_721_780_000_000_000;
    let setup = plan.work.pgbench().unwrap();
    for block in 0..plan.timing.blocks {
        let luck: Vec<f64> = plan.servers.iter().map(|_| 0.003 * noise.next()).collect();
        for (id, cell) in CellId::each().zip(&plan.cells) {
            let mix = setup.mixes.iter().find(|mix| mix.name == cell.workload);
            let scripts = mix.map_or(1, |mix| u32::try_from(mix.scripts.len()).unwrap());
            for round in 0..4 {
                for (server, planned) in ServerId::each().zip(&plan.servers) {
                    let slow = if planned.role == Role::Candidate {
                        0.95
                    } else {
                        1.0
                    };
                    let luck = luck[server.index()];
                    let clients = f64::from(cell.clients);
                    let rate = slow * law(clients) * (luck + 0.004 * noise.next()).exp()
                        / f64::from(scripts);
                    let duration_ns = 250_000_000;
                    let operations = to_u64(rate * 0.25);
                    let latency_ns = clients / rate * 1e9;
                    slices.push(Slice {
                        cell: id,
                        server,
                        block,
                        round,
                        started_ns: now,
                        duration_ns,
                        operations,
                        latency_histogram: histogram(latency_ns, operations),
                        scripts: tallies(scripts, operations, latency_ns / 1e3),
                        ..bare_slice()
                    });
                    now += duration_ns;
                }
            }
        }
    }
    slices
}

/// Nine of ten operations at 0.9 of the mean, one at 1.9.
fn histogram(mean_ns: f64, operations: u64) -> Vec<u8> {
    let mut histogram = Histogram::<u64>::new(3).unwrap();
    let slow = operations / 10;
    histogram
        .record_n(to_u64(0.9 * mean_ns), operations - slow)
        .unwrap();
    histogram.record_n(to_u64(1.9 * mean_ns), slow).unwrap();
    let mut bytes = Vec::new();
    V2Serializer::new()
        .serialize(&histogram, &mut bytes)
        .unwrap();
    bytes
}

/// Of two scripts the first gets three of four transactions.
fn tallies(scripts: u32, operations: u64, mean_us: f64) -> Vec<ScriptTally> {
    let first = if scripts == 1 {
        operations
    } else {
        3 * operations / 4
    };
    let tally = |script: u32| {
        let own = if script == 0 {
            first
        } else {
            operations - first
        };
        ScriptTally {
            script,
            operations: own,
            serialization_failures: 0,
            deadlock_failures: 0,
            other_failures: 0,
            retried: 0,
            retries: 0,
            skipped: 0,
            late: 0,
            latency_sum_us: mean_us * to_f64(own),
            latency_square_sum_us2: 1.09 * mean_us.powi(2) * to_f64(own),
        }
    };
    (0..scripts).map(tally).collect()
}

/// What the slices of a plan come to.
pub fn analysed(plan: &Plan, slices: &[Slice]) -> (Comparison, ReportContext) {
    let comparison = analyse(plan, slices, Vec::new());
    let mut context = fixture::context();
    context.results = results(slices);
    if plan.work.pgbench().is_some() {
        context.figures = figures(plan, &context.results);
    }
    context.grids = grids_of(StudyRun {
        run: "r1",
        plan,
        comparison: &comparison,
        results: &context.results,
        host: "box",
        withdrawn: &[],
        began_unix_ms: None,
        via: &[],
    })
    .unwrap();
    (comparison, context)
}
