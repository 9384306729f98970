//! Rounds in which the core was slow or taken, as the client saw it.
//!
//! Where client and server share a core, the client's own work is a clock of that core: it is the same for
//! every operation, and no server can do it faster or slower. A neighbour on the other hardware thread makes
//! server and client slower alike, and neither steal nor foreign CPU show it. So a slice whose client took
//! clearly more CPU for each operation than it usually does in this visit was measured on a slow core. And a
//! server that was ready to run, on a core that neither it nor the client had, was kept off it by something
//! else.
//!
//! Neither rule looks at what the server needed. A server that sleeps or waits for the disk leaves the
//! client's work as it is. Yet waits might cost the client something, and a server may be kept off the core
//! by a process of its own while it also sleeps. So both rules hold only as long as they meet all servers
//! alike.

use crate::thresholds::{CLIENT_SLOW, CLIENT_SLOW_UNLIKE, MIN_ROUNDS, PREEMPTED_SHARE};
use deltabench_model::plan::{Cell, Placement, Plan, ServerId};
use deltabench_model::slice::Slice;
use deltabench_model::units::to_f64;
use deltabench_stats::binomial::symmetry_p;
use deltabench_stats::summary::median;
use std::collections::{BTreeMap, BTreeSet};

/// The slices of a cell by (block, round): one of each server.
pub(crate) type Rounds<'a> = BTreeMap<(u32, u32), Vec<&'a Slice>>;

/// Whether the client of a cell shares the server's core and is always busy or served by it.
pub(crate) fn shares_core(plan: &Plan, cell: &Cell) -> bool {
    let remote = plan.servers.iter();
    let remote = remote.filter(|server| server.installation.remote.is_some());
    plan.placement(cell) == Placement::SameCore
        && cell.clients == 1
        && cell.rate.is_none()
        && plan.pins.is_none()
        && remote.count() == 0
}

/// The rounds of a cell, as (block, round), whose core was slow or taken.
///
/// What a block says depends on this block and earlier ones only, so that measuring on changes nothing.
pub(crate) fn hindered(rounds: &Rounds<'_>) -> BTreeSet<(u32, u32)> {
    let mut blocks: BTreeMap<u32, Vec<(u32, &Slice)>> = BTreeMap::new();
    for (&(block, round), slices) in rounds {
        let of_block = blocks.entry(block).or_default();
        of_block.extend(slices.iter().map(|slice| (round, *slice)));
    }
    let mut met: BTreeMap<ServerId, u64> = BTreeMap::new();
    let mut found = BTreeSet::new();
    for (block, slices) in blocks {
        for (_, slice) in &slices {
            met.entry(slice.server).or_default();
        }
        let counted = slices.iter().filter(|(_, slice)| slice.void.is_none());
        let taken = counted.filter(|(_, slice)| is_preempted(slice));
        let taken = taken.map(|(round, slice)| (*round, slice.server));
        let hit: BTreeSet<(u32, ServerId)> = slow(&slices).into_iter().chain(taken).collect();
        for (_, server) in &hit {
            *met.entry(*server).or_default() += 1;
        }
        if alike(&met) {
            found.extend(hit.iter().map(|(round, _)| (block, *round)));
        }
    }
    found
}

/// The slices of a block in which the client needed more CPU than usual there, as (round, server).
fn slow(slices: &[(u32, &Slice)]) -> Vec<(u32, ServerId)> {
    let cost = |slice: &Slice| {
        let known = slice.client_cpu_ns > 0 && slice.operations > 0 && slice.void.is_none();
        known.then(|| to_f64(slice.client_cpu_ns) / to_f64(slice.operations))
    };
    let mut servers: BTreeMap<ServerId, Vec<(u32, f64)>> = BTreeMap::new();
    for (round, slice) in slices {
        let costs = servers.entry(slice.server).or_default();
        costs.extend(cost(slice).map(|cost| (*round, cost)));
    }
    let above = |(server, costs): (ServerId, Vec<(u32, f64)>)| {
        let all: Vec<f64> = costs.iter().map(|(_, cost)| *cost).collect();
        let usual = median(&all).filter(|_| all.len() >= MIN_ROUNDS);
        let limit = usual.map_or(f64::INFINITY, |usual| usual * (1.0 + CLIENT_SLOW));
        let slow = costs.into_iter().filter(move |(_, cost)| *cost > limit);
        slow.map(move |(round, _)| (round, server))
    };
    servers.into_iter().flat_map(above).collect()
}

/// Whether no server was met clearly more often than another.
fn alike(met: &BTreeMap<ServerId, u64>) -> bool {
    let (least, most) = (met.values().min(), met.values().max());
    let pair = least.zip(most);
    pair.is_none_or(|(least, most)| symmetry_p(*least, *most) >= CLIENT_SLOW_UNLIKE)
}

/// Whether a server that could run waited while neither it nor the client had the core.
fn is_preempted(slice: &Slice) -> bool {
    let (Some(server), Some(waited)) = (slice.server_cpu_ns, slice.run_queue_wait_ns) else {
        return false;
    };
    // A server also waits while the client works: that is no loss.
    let waited = waited.saturating_sub(slice.client_cpu_ns);
    let worked = server.saturating_add(slice.client_cpu_ns);
    let taken = waited.min(slice.duration_ns.saturating_sub(worked));
    to_f64(taken) > PREEMPTED_SHARE * to_f64(slice.duration_ns)
}
