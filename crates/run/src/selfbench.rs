//! The driver against the tools it replaces, and what collecting costs, on a server of its own.

mod collecting;

use crate::fleet::{Fleet, Host};
use crate::load::address_for;
use crate::remote::only_own;
use crate::schedule::BlockSchedule;
use crate::visit::Address;
use deltabench_driver::peer::{
    Peer, PeerWork, SelfbenchCell, SelfbenchRow, SelfbenchSpec, selfbench_client,
};
use deltabench_driver::{Lane, LaneSpec, SliceRequest};
use deltabench_model::installation::Installation;
use deltabench_model::plan::{
    Cell, DataSize, Group, PLAN_FORMAT, Placement, Plan, PlannedServer, Role, Timing,
};
use deltabench_model::problem::Problem;
use deltabench_model::units::{seconds, to_f64, to_u64};
use deltabench_model::work::Work;
use deltabench_observe::{own_affinity, pin_tree};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

pub use collecting::{CollectingCost, CollectingPair, collecting};

/// What to measure.
#[derive(Debug, Clone, PartialEq)]
pub struct SelfbenchRequest {
    /// The server to run against.
    pub installation: Installation,
    /// Connections, one row each.
    pub clients: Vec<u32>,
    /// Paired rounds of each row.
    pub rounds: u32,
    /// Seconds of one run of our own client.
    pub seconds: f64,
    /// Rows of the table.
    pub rows: u64,
    /// Seed of order and keys.
    pub seed: u64,
}

/// Runs our client and every peer that is installed, paired round by round.
///
/// Errors: a server that cannot be had, a peer that fails.
pub fn selfbench(
    request: &SelfbenchRequest,
    host: &Host,
    note: &mut dyn FnMut(String),
) -> Result<Vec<SelfbenchRow>, Problem> {
    let cores = own_affinity().unwrap_or_default();
    let clients = request.clients.iter().copied().max().unwrap_or(1);
    let plan = plan(&request.installation, clients, request.rows, request.seed);
    on_a_server(&plan, host, note, |address, note| {
        measure(request, address, &cores, note)
    })
}

/// Loads and starts the plan's only server, and does `work` with it.
fn on_a_server<T, W>(
    plan: &Plan,
    host: &Host,
    note: &mut dyn FnMut(String),
    work: W,
) -> Result<T, Problem>
where
    W: FnOnce(&Address, &mut dyn FnMut(String)) -> Result<T, Problem>,
{
    only_own(plan)?;
    let mut fleet = Fleet::create(plan, "selfbench", host, note)?;
    let done = fleet
        .load(&[], &AtomicBool::new(false), note)
        .and_then(|_| {
            let address = fleet.start_one(&BlockSchedule::of(plan, 0), 0)?;
            let address = match plan.cells.first() {
                Some(cell) => address_for(&address, plan.order, cell),
                None => address,
            };
            work(&address, note)
        });
    let dismantled = fleet.dismantle();
    let done = done?;
    dismantled.map(|()| done)
}

fn measure(
    request: &SelfbenchRequest,
    address: &Address,
    cores: &[usize],
    note: &mut dyn FnMut(String),
) -> Result<Vec<SelfbenchRow>, Problem> {
    let login = &address.login;
    let mut rows = Vec::new();
    for &clients in &request.clients {
        for work in PeerWork::ALL {
            note(format!("{} at {clients} clients", work.word()));
            let placement = if clients == 1 {
                Placement::SameCore
            } else {
                Placement::Split
            };
            let (client_cores, server_cores) = place(placement, cores);
            pin_tree(address.own_pid()?, &server_cores).map_err(|error| {
                Problem::new("the server cannot be pinned").detail(error.to_string())
            })?;
            let operations = operations(request, address, work, clients)?;
            let cell = SelfbenchCell {
                work,
                clients,
                placement,
                operations,
            };
            let spec = SelfbenchSpec {
                endpoint: &address.endpoint,
                login,
                rows: request.rows,
                peers: &Peer::ALL,
                cells: &[cell],
                rounds: request.rounds,
                seed: request.seed,
            };
            rows.extend(selfbench_client(&spec, &mut |_| Ok(client_cores.clone()))?);
        }
    }
    Ok(rows)
}

/// Cores of the client and of the server.
fn place(placement: Placement, cores: &[usize]) -> (Vec<usize>, Vec<usize>) {
    match (placement, cores) {
        (Placement::Split, [client, server @ ..]) if !server.is_empty() => {
            (vec![*client], server.to_vec())
        }
        (_, [first, ..]) => (vec![*first], vec![*first]),
        (_, []) => (Vec::new(), Vec::new()),
    }
}

/// How many operations our own client does in the asked seconds, roughly.
fn operations(
    request: &SelfbenchRequest,
    address: &Address,
    work: PeerWork,
    clients: u32,
) -> Result<u64, Problem> {
    let executable = work.executable(request.rows);
    let servers = [(address.endpoint.clone(), address.login.clone())];
    let mut lane = Lane::connect(&LaneSpec {
        servers: &servers,
        executable: &executable,
        clients,
        op_timeout: Duration::from_secs(30),
        rate: None,
    })
    .map_err(|error| Problem::new("cannot connect").detail(error.to_string()))?;
    let pilot = SliceRequest {
        operations: 4000,
        seed: request.seed,
        first_operation: 0,
    };
    lane.run_slice(0, pilot);
    let outcome = lane.run_slice(0, pilot);
    let rate = to_f64(outcome.operations) / seconds(outcome.duration_ns).max(1e-6);
    Ok(to_u64(rate * request.seconds).max(1000))
}

/// A plan of one server with one read cell, so that a fleet can be made of it.
fn plan(installation: &Installation, clients: u32, rows: u64, seed: u64) -> Plan {
    let cell = Cell {
        workload: "point-query".to_owned(),
        group: Group::Point,
        clients,
        writes: false,
        statements_per_operation: 1,
        state: Default::default(),
        rate: None,
        published: Default::default(),
    };
    Plan {
        format: PLAN_FORMAT.0.to_owned(),
        version: PLAN_FORMAT.1,
        seed,
        servers: vec![PlannedServer::new(Role::Base, installation.clone())],
        cells: vec![cell],
        data: DataSize { tables: 1, rows },
        timing: Timing {
            blocks: 1,
            slice_ms: 40,
            slice_jitter: 0.0,
            visit_seconds: 1.0,
            warmup_seconds: 0.0,
            connections_per_visit: 1,
            deadline_seconds: None,
        },
        placement_single: Placement::SameCore,
        placement_multi: Placement::Split,
        delta: 0.03,
        checksums: Some(true),
        settings: Vec::new(),
        command: Vec::new(),
        stopping: Default::default(),
        gate: Default::default(),
        order: Default::default(),
        transport: Default::default(),
        pins: None,
        workloads: Vec::new(),
        confirms: None,
        limits: deltabench_model::plan::Limits::default(),
        cache: deltabench_model::plan::CacheState::AsIs,
        observing: deltabench_model::plan::Observing::default(),
        experiment: None,
        work: Work::default(),
        delta_from_noise: false,
    }
}
