//! Runs of studies in a few words: many servers, cells and places, with known truth.

use crate::builder::{as_run, installation, plan, slice};
use crate::calibration_model::Simulation;
use deltabench_compare::analyse;
use deltabench_compare::comparison::Comparison;
use deltabench_compare::study::{Figure, Study, StudyRow, StudyRun, StudyTable, study};
use deltabench_model::plan::{
    Cell, CellId, ExperimentPart, Group, Placement, Plan, PlannedServer, Role, ServerId,
    StorageProfile, WorkloadSource,
};
use deltabench_model::slice::Slice;

pub const WORKLOADS: [(&str, Group); 5] = [
    ("point-query", Group::Point),
    ("hot-points", Group::Point),
    ("range-covered-pk", Group::Range),
    ("read-only-sum", Group::RangeAgg),
    ("update-index", Group::Write),
];

/// Cells of these workloads at these numbers of clients, as experiments plan them.
pub fn cells(workloads: &[(&str, Group)], clients: &[u32]) -> Vec<Cell> {
    let cell = |&(workload, group): &(&str, Group), &clients: &u32| Cell {
        workload: workload.to_owned(),
        group,
        writes: group == Group::Write,
        clients,
        ..crate::builder::cell(clients, false)
    };
    let all = workloads
        .iter()
        .flat_map(|workload| clients.iter().map(move |clients| cell(workload, clients)));
    all.collect()
}

/// Base `a`, its placebo and these candidates.
pub fn servers(candidates: &[&str]) -> Vec<PlannedServer> {
    let server = |role, name: &str| PlannedServer {
        label: Some(name.to_owned()),
        ..PlannedServer::new(role, installation(name))
    };
    [(Role::Base, "a"), (Role::Placebo, "a")]
        .into_iter()
        .chain(candidates.iter().map(|name| (Role::Candidate, *name)))
        .map(|(role, name)| server(role, name))
        .collect()
}

/// A plan of these servers and cells with δ 3 %, outside of experiments.
pub fn plan_of(candidates: &[&str], cells: Vec<Cell>) -> Plan {
    Plan {
        servers: servers(candidates),
        placement_single: Placement::Split,
        ..as_run(plan(cells))
    }
}

/// The same as part of an experiment.
pub fn part(plan: &Plan, part: u32, of: u32, coordinates: &[(&str, &str)]) -> Plan {
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    Plan {
        experiment: Some(ExperimentPart {
            execution: "e1".to_owned(),
            experiment: "demo".to_owned(),
            source: WorkloadSource {
                file: "demo.toml".to_owned(),
                text: String::new(),
            },
            scale: None,
            part,
            of,
            group: None,
            repetition: 1,
            coordinates: coordinates.iter().map(own).collect(),
            left_out: Vec::new(),
        }),
        ..plan.clone()
    }
}

/// Standard deviations on the log scale.
#[derive(Clone, Copy)]
pub struct Noise {
    /// Of a load, for each server and cell: drawn once for each run.
    pub load: f64,
    /// Of a server start, for each server and block: all its cells share it.
    pub restart: f64,
    /// Of the machine's mood in a visit, which all servers share.
    pub visit: f64,
    /// Of a slice.
    pub slice: f64,
}

pub const CALM: Noise = Noise {
    load: 0.0,
    restart: 0.006,
    visit: 0.01,
    slice: 0.005,
};

/// A run of a plan: `law` says operations/s and CPU of an operation in µs for a server in a cell.
pub fn run(
    random: &mut Simulation,
    plan: &Plan,
    noise: Noise,
    law: impl Fn(ServerId, &Cell) -> (f64, f64),
) -> Comparison {
    let ids = || ServerId::each().zip(&plan.servers).map(|(id, _)| id);
    let mut slices: Vec<Slice> = Vec::new();
    let loads: Vec<f64> = (0..plan.servers.len() * plan.cells.len())
        .map(|_| noise.load * random.normal())
        .collect();
    for block in 0..plan.timing.blocks {
        let luck: Vec<f64> = ids().map(|_| noise.restart * random.normal()).collect();
        for (id, cell) in CellId::each().zip(&plan.cells) {
            let mood = noise.visit * random.normal();
            for round in 0..3 {
                for server in ids() {
                    let at = server.index();
                    let load = loads[at * plan.cells.len() + id.index()];
                    let speed = load + luck[at] + mood + noise.slice * random.normal();
                    let (rate, cpu) = law(server, cell);
                    slices.push(Slice {
                        cell: id,
                        // Two of each client in an operation.
                        switches: Some(200_000 * u64::from(cell.clients)),
                        ..slice(
                            server,
                            block,
                            round,
                            rate * speed.exp(),
                            Some(cpu / speed.exp()),
                        )
                    });
                }
            }
        }
    }
    analyse(plan, &slices, Vec::new())
}

/// Runs `r1`, `r2` … of these plans on host `box`.
pub fn of<'a>(plans: &'a [Plan], comparisons: &'a [Comparison]) -> Vec<StudyRun<'a>> {
    const NAMES: [&str; 8] = ["r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8"];
    let all = std::iter::zip(plans, comparisons).zip(NAMES);
    all.map(|((plan, comparison), run)| StudyRun {
        run,
        plan,
        comparison,
        results: &[],
        host: "box",
        withdrawn: &[],
        began_unix_ms: None,
        via: &[],
    })
    .collect()
}

pub fn tables_of(runs: &[StudyRun<'_>]) -> Study {
    study(runs).unwrap()
}

/// The one table whose title begins so.
pub fn table<'s>(study: &'s Study, title: &str) -> &'s StudyTable {
    let found: Vec<&StudyTable> = study
        .tables
        .iter()
        .filter(|table| table.title.starts_with(title))
        .collect();
    let titles: Vec<&str> = study.tables.iter().map(|t| t.title.as_str()).collect();
    assert_eq!(found.len(), 1, "{title}: {titles:#?}");
    found[0]
}

pub fn row<'t>(table: &'t StudyTable, name: &str) -> &'t StudyRow {
    table.rows.iter().find(|row| row.name == name).unwrap()
}

pub fn figure(table: &StudyTable, row_name: &str, column: &str) -> Figure {
    let at = table.columns.iter().position(|c| c.name == column).unwrap();
    row(table, row_name).figures[at].unwrap()
}

/// Without a difference: 1000 operations/s for each client, 10 µs.
pub fn equal(_: ServerId, cell: &Cell) -> (f64, f64) {
    (1000.0 * f64::from(cell.clients), 10.0)
}

/// A part of two on a storage profile with a price.
pub fn on_storage(plan: &Plan, at: u32, name: &str, price: Option<f64>) -> Plan {
    let mut plan = part(plan, at, 2, &[("storage", name)]);
    plan.limits.storage = Some(StorageProfile {
        name: name.to_owned(),
        read_iops: None,
        write_iops: None,
        read_bytes: None,
        write_bytes: None,
        cost_per_month: price,
    });
    plan
}
