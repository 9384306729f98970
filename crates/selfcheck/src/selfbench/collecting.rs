//! What the one-second series costs: slices with the sampler and without, in turns on one server.

use super::{ROWS, on_a_server, place, plan};
use crate::MeanRatio;
use deltabench_driver::peer::PeerWork;
use deltabench_driver::{Lane, LaneSpec, SliceRequest};
use deltabench_model::installation::Installation;
use deltabench_model::plan::{Placement, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::units::{seconds, to_f64, to_u64};
use deltabench_observe::{Sampler, own_affinity, pin_self, pin_tree, restore};
use deltabench_proc::Process;
use deltabench_run::fleet::Host;
use deltabench_run::visit::Address;
use std::time::{Duration, Instant};

/// Time between two samples.
const EVERY: Duration = Duration::from_secs(1);

/// Operations of the slices that find out how many make the wanted length.
const PILOT: u64 = 20_000;

/// Throughput of two slices with the same operations, ops/s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CollectingPair {
    pub with: f64,
    pub without: f64,
}

/// What collecting costs.
#[derive(Debug, Clone, PartialEq)]
pub struct CollectingCost {
    /// Pairs of slices, in order.
    pub pairs: Vec<CollectingPair>,
    pub samples: u64,
    /// CPU of the sampler's thread, as a share of one core while it ran.
    pub sampler_share: f64,
}

impl CollectingCost {
    /// Throughput with the sampler / without it.
    pub fn ratio(&self) -> MeanRatio {
        let log = |pair: &CollectingPair| (pair.with / pair.without).ln();
        MeanRatio::of_logs(&self.pairs.iter().map(log).collect::<Vec<f64>>())
    }
}

/// Runs point queries of one client for `pairs` times two slices of so many seconds, with the sampler in
/// every other one; which comes first changes from pair to pair.
///
/// Errors: a server that cannot be had or is lost, a host that cannot be sampled.
pub fn collecting(
    installation: &Installation,
    pairs: u32,
    slice_seconds: f64,
    host: &Host,
    note: &mut dyn FnMut(String),
) -> Result<CollectingCost, Problem> {
    let plan = plan(installation, 1, 1);
    on_a_server(&plan, host, note, |address, _| {
        let own = own_affinity().unwrap_or_default();
        let measured = measured(address, &own, pairs, slice_seconds);
        restore(&own).map_err(|error| host_problem(&error))?;
        measured
    })
}

fn measured(
    address: &Address,
    cores: &[usize],
    pairs: u32,
    slice_seconds: f64,
) -> Result<CollectingCost, Problem> {
    let mut lane = pinned_lane(address, cores)?;
    let mut slice = |operations: u64| {
        let outcome = lane.run_slice(
            0,
            SliceRequest {
                operations,
                seed: 1,
                first_operation: 0,
            },
        );
        match outcome.void {
            None => Ok(to_f64(outcome.operations) / seconds(outcome.duration_ns).max(1e-9)),
            Some(_) => Err(Problem::new("the server was lost")),
        }
    };
    slice(PILOT)?;
    let operations = to_u64(slice(PILOT)? * slice_seconds).max(1);
    let mut cost = CollectingCost {
        pairs: Vec::new(),
        samples: 0,
        sampler_share: 0.0,
    };
    let (mut spent_ns, mut ran) = (0, Duration::ZERO);
    for pair in 0..pairs {
        let mut rates = [0.0; 2];
        let order = if pair % 2 == 0 {
            [true, false]
        } else {
            [false, true]
        };
        for sampled in order {
            let data = Process::of(address.own_pid()?).directory();
            let began = Instant::now();
            let sampler = match sampled {
                true => Some(Sampler::start(&data, EVERY).map_err(|error| host_problem(&error))?),
                false => None,
            };
            if let Some(sampler) = &sampler {
                sampler.set_servers(vec![(ServerId(0), address.own_pid()?)]);
            }
            let rate = slice(operations)?;
            if let Some(sampler) = sampler {
                spent_ns += sampler.cpu_ns();
                ran += began.elapsed();
                cost.samples += deltabench_model::units::count(sampler.stop().len());
            }
            let [with, without] = &mut rates;
            *if sampled { with } else { without } = rate;
        }
        let [with, without] = rates;
        cost.pairs.push(CollectingPair { with, without });
    }
    cost.sampler_share = seconds(spent_ns) / ran.as_secs_f64().max(1e-9);
    Ok(cost)
}

/// One connection; client and server share a core.
fn pinned_lane(address: &Address, cores: &[usize]) -> Result<Lane, Problem> {
    let (client, server) = place(Placement::SameCore, 1, cores);
    pin_tree(address.own_pid()?, &server).map_err(|error| host_problem(&error))?;
    pin_self(&client).map_err(|error| host_problem(&error))?;
    let executable = PeerWork::Point.executable(ROWS);
    let servers = [(address.endpoint.clone(), address.login.clone())];
    Lane::connect(&LaneSpec {
        servers: &servers,
        executable: &executable,
        clients: 1,
        jobs: 1,
        cores: &[],
        op_timeout: Duration::from_secs(30),
        rate: None,
    })
    .map_err(|error| Problem::new("cannot connect").detail(error.to_string()))
}

fn host_problem(error: &dyn std::fmt::Display) -> Problem {
    Problem::new("the host does not allow deltabench to observe or pin a server")
        .detail(error.to_string())
}
