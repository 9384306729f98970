//! Rounds in which something else kept a server off its core.
//!
//! Where client and server share a core, a server that was ready to run, on a core that neither it nor the
//! client had, was kept off it by something else. That does not look at what the server needed. Yet a server
//! may wait behind a process of its own while it also sleeps. So the rule holds only as long as it meets all
//! servers alike.
//!
//! Rounds of a slow core are no such rounds: leaving them out made intervals wider (docs/decisions/0057).

use crate::thresholds::{FOREIGN_SHARE, KEPT_OFF_UNLIKE, PREEMPTED_SHARE};
use deltabench_model::finding::{Finding, FindingKind, Severity};
use deltabench_model::plan::ServerId;
use deltabench_model::slice::Slice;
use deltabench_model::units::to_f64;
use deltabench_stats::binomial::symmetry_p;
use deltabench_stats::summary::mean;
use std::collections::{BTreeMap, BTreeSet};

/// The slices of a cell by (block, round): one of each server.
pub(crate) type Rounds<'a> = BTreeMap<(u32, u32), Vec<&'a Slice>>;

/// Whether the kernel tells how long servers wait for a core. The first good slice says it for all.
pub(crate) fn knows_waits(rounds: &Rounds<'_>) -> bool {
    let good = |slice: &&&Slice| slice.void.is_none();
    let first = rounds.values().flatten().find(good);
    first.is_some_and(|slice| slice.run_queue_wait_ns.is_some())
}

/// The rounds of a cell, as (block, round), in which a server was kept off its core.
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
        let hit: BTreeSet<(u32, ServerId)> =
            taken.map(|(round, slice)| (*round, slice.server)).collect();
        for (_, server) in &hit {
            *met.entry(*server).or_default() += 1;
        }
        if alike(&met) {
            found.extend(hit.iter().map(|(round, _)| (block, *round)));
        }
    }
    found
}

/// Whether no server was met clearly more often than another.
fn alike(met: &BTreeMap<ServerId, u64>) -> bool {
    let (least, most) = (met.values().min(), met.values().max());
    let pair = least.zip(most);
    pair.is_none_or(|(least, most)| symmetry_p(*least, *most) >= KEPT_OFF_UNLIKE)
}

/// Whether a server that could run waited while neither it nor the client had the core.
fn is_preempted(slice: &Slice) -> bool {
    let (Some(server), Some(waited)) = (slice.server_cpu_ns, slice.run_queue_wait_ns) else {
        return false;
    };
    // A server also waits while the client works, or probes the core: that is no loss.
    let busy = slice
        .client_cpu_ns
        .saturating_add(slice.probing_ns.unwrap_or(0));
    let waited = waited.saturating_sub(busy);
    let worked = server.saturating_add(slice.client_cpu_ns);
    let taken = waited.min(slice.duration_ns.saturating_sub(worked));
    to_f64(taken) > PREEMPTED_SHARE * to_f64(slice.duration_ns)
}

/// What to say of other processes that were busy while cells ran in which their CPU alone disturbs nothing;
/// `cells`: the rounds of these. `None` where they used little.
pub(crate) fn neighbours<'a>(cells: impl Iterator<Item = &'a Rounds<'a>>) -> Option<Finding> {
    let mut blocks: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for (&(block, _), slices) in cells.filter(|rounds| knows_waits(rounds)).flatten() {
        for slice in slices {
            let Some(foreign) = slice.foreign_cpu_ns else {
                continue;
            };
            let (busy, time) = blocks.entry(block).or_default();
            *busy = busy.saturating_add(foreign);
            *time = time.saturating_add(slice.whole_ns());
        }
    }
    let known = blocks.values().filter(|(_, time)| *time > 0);
    let cores = known.map(|(busy, time)| to_f64(*busy) / to_f64(*time));
    let cores: Vec<f64> = cores.collect();
    let usual = mean(&cores).filter(|usual| *usual > FOREIGN_SHARE)?;
    let least = cores.iter().copied().fold(f64::INFINITY, f64::min);
    let most = cores.iter().copied().fold(0.0, f64::max);
    let text = format!(
        "while cells of one client ran, other processes used {usual:.2} cores on average, {least:.2} to \
         {most:.2} from block to block. What they do on other cores disturbs no round, but servers share \
         caches, memory and the processor's clock with them"
    );
    Some(Finding::new(FindingKind::Neighbours, Severity::Note, text))
}
