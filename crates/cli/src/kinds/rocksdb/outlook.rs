//! What a run takes, said before it begins.

use crate::amounts::{size, span, thousands};
use crate::kinds::outlook::{few, room, sides, without_placebo};
use deltabench_compare::thresholds::MIN_BLOCKS;
use deltabench_kinds::rocksdb::{in_memory, outlook};
use deltabench_model::plan::Plan;
use deltabench_model::units::{count, to_f64};
use deltabench_model::work::rocksdb::{BLOCK_CACHE, BlockCache, RocksdbSetup};
use deltabench_observe::read_host;

/// Lines about what is going to be done, how long it takes and what room it needs.
pub fn tell(plan: &Plan) -> Vec<String> {
    let Some(setup) = plan.work.rocksdb() else {
        return Vec::new();
    };
    let found = outlook(plan);
    let blocks = plan.timing.blocks;
    let mut lines = vec![
        format!("RocksDB, {}: {}", setup.workload.word(), sides(plan)),
        format!("  steps    {}", steps(setup)),
        format!(
            "  data     {} keys of {} and values of {} bytes: {}; block cache {} ({}), {} background jobs",
            thousands(setup.keys),
            setup.key_bytes,
            setup.value_bytes,
            size(setup.raw_bytes()),
            size(setup.cache_bytes),
            caches(plan),
            setup.background_jobs
        ),
        format!(
            "  blocks   at most {blocks}, of about {} for all {} targets; new processes and databases each",
            span(found.seconds_per_block),
            plan.servers.len()
        ),
        format!(
            "  time     at most about {}",
            span(time(plan, found.seconds_per_block))
        ),
        room(found.disk_bytes, found.memory_bytes),
    ];
    lines.extend(notes(plan, found.seconds_per_block));
    lines
}

/// Seconds of all blocks, or of those that fit.
fn time(plan: &Plan, block: f64) -> f64 {
    let all = block * f64::from(plan.timing.blocks);
    let allowed = plan.timing.deadline_seconds.unwrap_or(f64::INFINITY);
    all.min(allowed.max(block))
}

fn notes(plan: &Plan, block: f64) -> Vec<String> {
    let free = read_host().memory_available_bytes;
    let small = in_memory(plan, free).map(|text| format!("  note     {text}"));
    let mut notes: Vec<String> = small.into_iter().collect();
    notes.extend(few(plan, "blocks"));
    let fitting = |allowed: f64| allowed < block * to_f64(count(MIN_BLOCKS));
    if let Some(allowed) = plan
        .timing
        .deadline_seconds
        .filter(|allowed| fitting(*allowed))
    {
        notes.push(format!(
            "  note     --budget is {}, and the {MIN_BLOCKS} blocks of a verdict take about {}",
            span(allowed),
            span(block * to_f64(count(MIN_BLOCKS)))
        ));
    }
    notes.extend(without_placebo(plan));
    notes
}

fn steps(setup: &RocksdbSetup) -> String {
    let names: Vec<&str> = setup.steps.iter().map(|step| step.name()).collect();
    let threads: Vec<String> = setup.threads.iter().map(ToString::to_string).collect();
    let word = match setup.threads.as_slice() {
        [1] => "thread",
        _ => "threads",
    };
    format!(
        "{}; {} s each, {} {word}",
        names.join(" "),
        setup.seconds,
        threads.join(" and ")
    )
}

/// The caches of all targets, each once.
fn caches(plan: &Plan) -> String {
    let mut words: Vec<&str> = Vec::new();
    for server in &plan.servers {
        let cache = server.settings.iter().find(|(name, _)| name == BLOCK_CACHE);
        let word = cache.map_or(BlockCache::Lru.word(), |(_, word)| word);
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words.join(" and ")
}
