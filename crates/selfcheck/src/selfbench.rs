//! The driver against the tools it replaces, and what collecting costs, on a server of its own.

mod collecting;
mod threads;

use crate::{MeanRatio, server};
use deltabench_driver::peer::{Peer, PeerOutcome, PeerWork};
use deltabench_driver::selfbench::{
    PeerComparison, SelfbenchCell, SelfbenchRound, SelfbenchSpec, selfbench_client,
};
use deltabench_driver::{Lane, LaneSpec, SliceRequest};
use deltabench_kinds::run_half;
use deltabench_model::installation::Installation;
use deltabench_model::plan::{Cell, DataSize, Group, Placement, Plan, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::units::{index, seconds, to_f64, to_u64};
use deltabench_observe::{own_affinity, pin_tree};
use deltabench_run::fleet::{Fleet, Host};
use deltabench_run::load::address_for;
use deltabench_run::planning::MAX_CONNECTIONS;
use deltabench_run::remote::only_own;
use deltabench_run::schedule::BlockSchedule;
use deltabench_run::visit::Address;
use deltabench_stats::summary::mean;
use serde::Serialize;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

pub use collecting::{CollectingCost, CollectingPair, collecting};
pub use threads::{ThreadsRequest, ThreadsRow, check_cores, threads};

/// Rows of the table: 50 MB, all in shared buffers.
pub const ROWS: u64 = 200_000;

/// Name and version of the JSON.
const FORMAT: (&str, u32) = ("deltabench.selfbench", 2);

/// What to measure.
#[derive(Debug, Clone, PartialEq)]
pub struct SelfbenchRequest {
    /// The server to run against.
    pub installation: Installation,
    /// Connections, one row each.
    pub clients: Vec<u32>,
    /// Threads of our client, one row each for the clients that have so many.
    pub jobs: Vec<u32>,
    /// Paired rounds of each row.
    pub rounds: u32,
    /// Seconds of one run of our own client.
    pub seconds: f64,
    /// Seed of order and keys.
    pub seed: u64,
}

impl SelfbenchRequest {
    /// Numbers of clients, each with the numbers of threads that it has work for.
    fn shapes(&self) -> impl Iterator<Item = (u32, u32)> {
        self.clients.iter().flat_map(|&clients| {
            let jobs = self.jobs.iter().copied();
            jobs.filter(move |jobs| *jobs <= clients)
                .map(move |jobs| (clients, jobs))
        })
    }
}

/// Runs our client and every peer that is installed, paired round by round.
///
/// Errors: a server that cannot be had, a peer that fails.
pub fn selfbench(
    request: &SelfbenchRequest,
    host: &Host,
    note: &mut dyn FnMut(String),
) -> Result<Vec<PeerComparison>, Problem> {
    let cores = own_affinity().unwrap_or_default();
    let clients = request.clients.iter().copied().max().unwrap_or(1);
    let plan = plan(&request.installation, clients, request.seed);
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
    let mut fleet = Fleet::create(plan, run_half(&plan.work), "selfbench", host, note)?;
    let done = fleet
        .load(&[], &AtomicBool::new(false), note)
        .and_then(|_| {
            let address = fleet.start_one(&BlockSchedule::of(plan, 0), ServerId(0))?;
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
) -> Result<Vec<PeerComparison>, Problem> {
    let login = &address.login;
    let mut rows = Vec::new();
    for (clients, jobs) in request.shapes() {
        for work in PeerWork::ALL {
            note(format!(
                "{} at {clients} clients, {jobs} threads",
                work.word()
            ));
            let placement = if clients == 1 {
                Placement::SameCore
            } else {
                Placement::Split
            };
            let (client_cores, server_cores) = place(placement, jobs, cores);
            pin_tree(address.own_pid()?, &server_cores).map_err(|error| {
                Problem::new("the server cannot be pinned").detail(error.to_string())
            })?;
            let operations = operations(request, address, work, clients)?;
            let cell = SelfbenchCell {
                work,
                clients,
                jobs,
                placement,
                operations,
            };
            let spec = SelfbenchSpec {
                endpoint: &address.endpoint,
                login,
                rows: ROWS,
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

/// Cores of the client, one for each thread as far as one is left for the server, and of the server.
fn place(placement: Placement, jobs: u32, cores: &[usize]) -> (Vec<usize>, Vec<usize>) {
    match (placement, cores) {
        (Placement::Split, [_, _, ..]) => {
            let most = cores.len() - 1;
            let (client, server) = cores.split_at(index(u64::from(jobs)).clamp(1, most));
            (client.to_vec(), server.to_vec())
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
    let executable = work.executable(ROWS);
    let servers = [(address.endpoint.clone(), address.login.clone())];
    let mut lane = Lane::connect(&LaneSpec {
        servers: &servers,
        executable: &executable,
        clients,
        jobs: 1,
        cores: &[],
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

/// A plan of one server with one read cell.
fn plan(installation: &Installation, clients: u32, seed: u64) -> Plan {
    let cell = Cell {
        workload: "point-query".to_owned(),
        group: Group::Point,
        clients,
        writes: false,
        statements_per_operation: 1,
        state: Default::default(),
        rate: None,
        published: Default::default(),
        reconnects: false,
    };
    let data = DataSize {
        tables: 1,
        rows: ROWS,
    };
    let mut plan = server::plan(installation, vec![cell], data, seed);
    // Two clients are connected at a time, and a peer's connections may still be closing.
    let connections = clients.saturating_mul(3).max(MAX_CONNECTIONS);
    plan.settings = vec![("max_connections".to_owned(), connections.to_string())];
    plan
}

/// What was measured, as it is written.
#[derive(Debug, Serialize)]
pub struct SelfbenchJson {
    format: &'static str,
    version: u32,
    pub target: String,
    /// Paired rounds of each comparison.
    pub rounds: u32,
    /// Our client beside each other, in each way of working.
    pub rows: Vec<PeerJson>,
}

/// Our client beside another.
#[derive(Debug, Serialize)]
pub struct PeerJson {
    pub workload: &'static str,
    pub clients: u32,
    /// Threads of our client.
    pub jobs: u32,
    /// Where client and server ran.
    pub placement: Placement,
    /// The other client.
    pub peer: &'static str,
    /// CPU of our client, microseconds per operation.
    pub client_cpu_us_per_op: f64,
    pub peer_cpu_us_per_op: f64,
    pub client_cpu_ratio: f64,
    pub client_cpu_ci95: Option<[f64; 2]>,
    /// Operations per second, ours / theirs.
    pub throughput_ratio: f64,
    pub throughput_ci95: Option<[f64; 2]>,
}

impl SelfbenchJson {
    /// What came out of a request.
    pub fn of(request: &SelfbenchRequest, measured: &[PeerComparison]) -> Self {
        Self {
            format: FORMAT.0,
            version: FORMAT.1,
            target: request.installation.resolved.clone(),
            rounds: request.rounds,
            rows: measured.iter().map(PeerJson::of).collect(),
        }
    }
}

impl PeerJson {
    fn of(measured: &PeerComparison) -> Self {
        let cpu = |outcome: &PeerOutcome| {
            to_f64(outcome.client_cpu_ns) / 1e3 / to_f64(outcome.operations).max(1.0)
        };
        let rate = |outcome: &PeerOutcome| {
            to_f64(outcome.operations) / to_f64(outcome.duration_ns).max(1.0)
        };
        let each = |value: &dyn Fn(&SelfbenchRound) -> f64| -> Vec<f64> {
            measured.rounds.iter().map(value).collect()
        };
        let of_logs = |value: &dyn Fn(&PeerOutcome) -> f64| {
            MeanRatio::of_logs(&each(&|round| {
                (value(&round.own) / value(&round.rival)).ln()
            }))
        };
        let (client_cpu, throughput) = (of_logs(&cpu), of_logs(&rate));
        Self {
            workload: measured.cell.work.word(),
            clients: measured.cell.clients,
            jobs: measured.cell.jobs,
            placement: measured.cell.placement,
            peer: measured.rival.word(),
            client_cpu_us_per_op: mean(&each(&|round| cpu(&round.own))).unwrap_or_default(),
            peer_cpu_us_per_op: mean(&each(&|round| cpu(&round.rival))).unwrap_or_default(),
            client_cpu_ratio: client_cpu.estimate,
            client_cpu_ci95: client_cpu.ci95,
            throughput_ratio: throughput.estimate,
            throughput_ci95: throughput.ci95,
        }
    }
}
