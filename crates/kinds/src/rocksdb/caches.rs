//! HyperClock against LRU.

use super::column::StepColumn;
use deltabench_compare::Pairs;
use deltabench_compare::comparison::{Comparison, Ratio};
use deltabench_model::plan::{Plan, PlannedServer, Role, ServerId};
use deltabench_model::slice::Slice;
use deltabench_model::work::rocksdb::{BLOCK_CACHE, BlockCache};

/// Two targets that differ in their block cache alone.
#[derive(Debug, Clone, PartialEq)]
pub struct CachePair {
    /// What both run in short, with the options that both have.
    pub name: String,
    pub lru: ServerId,
    pub hyper_clock: ServerId,
    /// Throughput of HyperClock over LRU with the intervals over blocks at the level of the step's cells, by
    /// step as [`super::RocksdbReport::steps`]; absent where a side has nothing.
    pub ratios: Vec<Option<Ratio>>,
}

/// Every such pair, in the plan's order; the placebo is in none.
pub(super) fn pairs(
    plan: &Plan,
    slices: &[Slice],
    steps: &[StepColumn],
    comparison: &Comparison,
) -> Vec<CachePair> {
    let all = || {
        let servers = ServerId::each().zip(&plan.servers);
        servers.filter(|(_, server)| server.role != Role::Placebo)
    };
    let has = |server: &PlannedServer, cache: BlockCache| cache_of(server) == cache;
    let mut known = None;
    let mut pairs = Vec::new();
    for (lru, one) in all().filter(|(_, server)| has(server, BlockCache::Lru)) {
        for (hyper_clock, other) in all().filter(|(_, server)| has(server, BlockCache::HyperClock))
        {
            if !alike(one, other) {
                continue;
            }
            let rounds = known.get_or_insert_with(|| Pairs::new(plan, slices));
            pairs.push(CachePair {
                name: shared_name(one),
                lru,
                hyper_clock,
                ratios: steps
                    .iter()
                    .map(|step| {
                        let level = level(comparison, step);
                        rounds.throughput(step.cell, (lru, hyper_clock), level)
                    })
                    .collect(),
            });
        }
    }
    pairs
}

/// The level at which the cells of a step are printed: caches are not told more surely than those.
fn level(comparison: &Comparison, step: &StepColumn) -> f64 {
    let cells = comparison.cells.iter();
    let here = cells.filter(|cell| cell.cell == step.cell);
    let printed = here.map(|cell| cell.interval_level);
    printed.fold(0.0, f64::max)
}

/// The cache that a server was asked to have.
pub(super) fn cache_of(server: &PlannedServer) -> BlockCache {
    let asked = server
        .settings
        .iter()
        .rev()
        .find(|(name, _)| name == BLOCK_CACHE);
    asked
        .and_then(|(_, word)| BlockCache::from_word(word))
        .unwrap_or_default()
}

/// Whether nothing but the cache tells them apart.
fn alike(one: &PlannedServer, other: &PlannedServer) -> bool {
    let rest = |server: &PlannedServer| -> Vec<(String, String)> {
        let settings = server.settings.iter();
        settings
            .filter(|(name, _)| name != BLOCK_CACHE)
            .cloned()
            .collect()
    };
    one.installation.resolved == other.installation.resolved
        && one.installation.binary_sha256 == other.installation.binary_sha256
        && rest(one) == rest(other)
}

fn shared_name(server: &PlannedServer) -> String {
    let mut shared = server.clone();
    shared.label = None;
    shared.settings.retain(|(name, _)| name != BLOCK_CACHE);
    let name = shared.name();
    let short = name.strip_prefix("rocksdb:").map(str::to_owned);
    short.unwrap_or(name)
}
