//! Whether all blocks were equally fast, and whether a difference goes with that.
//!
//! A neighbour on the same physical core, or one that fills the shared cache, makes every server of a block
//! slower alike. Steal does not show it, and turns take it out of the ratio - unless one version suffers more
//! than the other. Then the ratio is that of the hours in which it was measured, and a report has to say so.

use crate::comparison::{CellComparison, Dependence, HostSpeed, Ratio, Verdict};
use crate::history::Sample;
use crate::levels::Levels;
use crate::sample::{BlockValue, Values, ratio};
use crate::thresholds::{
    MEMORY_RANGE, MIN_BLOCKS, SPEED_FALSE, SPEED_RANGE, SPEED_RELEVANCE, SPEED_SIDE, log_delta,
};
use crate::words;
use deltabench_model::finding::{Finding, FindingKind, Severity};
use deltabench_model::plan::{Plan, PlannedServer, ServerId};
use deltabench_stats::line::slope;
use deltabench_stats::multiplicity::holm;
use deltabench_stats::serial::welch_of_series;
use deltabench_stats::summary::{mean, median};
use std::collections::BTreeMap;

/// Servers whose pace says how fast the host was for a pair: all but the two, so that no noise is on both
/// sides of the question. None where a server is elsewhere: then there is no one host.
pub(crate) fn witnesses(plan: &Plan, base: ServerId, candidate: ServerId) -> Vec<ServerId> {
    let elsewhere = |server: &PlannedServer| server.installation.remote.is_some();
    if plan.servers.iter().any(elsewhere) {
        return Vec::new();
    }
    let all = ServerId::each().zip(&plan.servers).map(|(id, _)| id);
    all.filter(|&id| id != base && id != candidate).collect()
}

/// How fast the host was for a pair of servers; `None` with too few blocks, or nobody to tell.
///
/// Shape: `paces` are ln of time per operation by block, a map for each witness. Blocks count in which all of
///        them have one.
pub(crate) fn host_speed(paces: &[BTreeMap<u32, f64>], sample: &Sample) -> Option<HostSpeed> {
    let pace = |block: u32| {
        let of: Option<Vec<f64>> = paces.iter().map(|one| one.get(&block).copied()).collect();
        mean(&of?)
    };
    let known: Vec<(u32, f64)> = sample
        .throughput
        .iter()
        .filter_map(|value| Some((value.block, pace(value.block)?)))
        .collect();
    let logs: Vec<f64> = known.iter().map(|(_, pace)| *pace).collect();
    let (fast, slow) = ends(&logs)?;
    let blocks: Vec<(u32, f64)> = known
        .iter()
        .map(|(block, pace)| (*block, pace - fast))
        .collect();
    let range = slow - fast;
    let (speed, cost) = (
        without_witness(&sample.throughput),
        without_witness(&sample.server_cpu),
    );
    Some(HostSpeed {
        slowdown: range.exp(),
        throughput: dependence(&blocks, range, &speed),
        server_cpu: dependence(&blocks, range, &cost),
        throughput_moves: moves(&blocks, range, &speed),
        server_cpu_moves: moves(&blocks, range, &cost),
        blocks: blocks
            .iter()
            .map(|(block, slower)| (*block, slower.exp()))
            .collect(),
    })
}

/// The values against the base alone: a second control is one of the witnesses, and its noise would be on
/// both sides of the question. What both copies of the base are apart over all blocks is kept, so that fast
/// and slow blocks have the ratio of the run between them.
fn without_witness(values: &[BlockValue]) -> Vec<BlockValue> {
    let apart = values
        .iter()
        .map(|value| value.one_control - value.log_ratio);
    let apart = mean(&apart.collect::<Vec<f64>>()).unwrap_or(0.0);
    let alone = |value: &BlockValue| BlockValue {
        log_ratio: value.one_control - apart,
        ..*value
    };
    values.iter().map(alone).collect()
}

/// The ratio in fast and in slow blocks, on either side of the middle between `range`'s ends; absent where
/// they were about equally fast, or where one or two blocks alone would say it.
///
/// Source: Welch's test, as a neighbour that slows blocks also makes them differ more from each other; and
///         blocks in a row may be alike. A line through the blocks would need equal variances: with luck 3
///         times as large in 3 of 12 blocks its p is below 5 % in 17 % of all cells without any dependence
///         (simulated).
fn dependence(blocks: &[(u32, f64)], range: f64, values: &[BlockValue]) -> Option<Dependence> {
    let is_slow = |value: &BlockValue| Some(slower(blocks, value)? > range / 2.0);
    let known = values
        .iter()
        .filter_map(|value| Some((is_slow(value)?, *value)));
    let known: Vec<(bool, BlockValue)> = known.collect();
    let side = |wanted: bool| {
        let of_side = known.iter().filter(|(slow, _)| *slow == wanted);
        Values::of(&of_side.map(|(_, value)| *value).collect::<Vec<_>>())
    };
    let (fast, slow) = (side(false), side(true));
    if range < SPEED_RANGE.ln() || fast.logs.len().min(slow.logs.len()) < SPEED_SIDE {
        return None;
    }
    let logs = known.iter().map(|(slow, value)| (*slow, value.log_ratio));
    let found = welch_of_series(&logs.collect::<Vec<_>>()).ok()?;
    Some(Dependence {
        p: found.p,
        correlation: found.correlation,
        fast: ratio(&fast, Levels::FIXED)?,
        slow: ratio(&slow, Levels::FIXED)?,
    })
}

/// How much slower than the fast blocks a value's block was: ln of time per operation.
fn slower(blocks: &[(u32, f64)], value: &BlockValue) -> Option<f64> {
    let found = blocks.iter().find(|(block, _)| *block == value.block);
    found.map(|(_, slower)| *slower)
}

/// How far hours move a log-ratio that are as fast as the fast blocks of this run or as slow as its slow ones
/// (standard deviation); 0 where blocks were about equally fast.
///
/// Source: two speeds that are as likely have half of what they are apart, `range`, as standard deviation;
///         docs/decisions/0063-another-hour-may-be-as-fast-as-a-fast-block.md.
fn moves(blocks: &[(u32, f64)], range: f64, values: &[BlockValue]) -> f64 {
    let points = values
        .iter()
        .filter_map(|value| Some((slower(blocks, value)?, value.log_ratio)));
    let points: Vec<(f64, f64)> = points.collect();
    if range < SPEED_RANGE.ln() || points.len() < MIN_BLOCKS {
        return 0.0;
    }
    slope(&points).map_or(0.0, |slope| slope.beyond_chance() * range / 2.0)
}

/// What to say of a run's blocks: that they were not equally fast, and in which cells the difference went
/// with it.
pub(crate) fn findings(plan: &Plan, cells: &[CellComparison]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = changed(cells).into_iter().collect();
    let all: Vec<Tested<'_>> = cells.iter().flat_map(tests).collect();
    let p: Vec<f64> = all.iter().map(|tested| tested.found.p).collect();
    let of = p.len();
    let told = std::iter::zip(all, holm(&p)).filter(|(tested, p)| {
        let found = tested.found;
        let moved = (found.slow.estimate / found.fast.estimate).ln().abs();
        *p <= SPEED_FALSE && moved >= SPEED_RELEVANCE * log_delta(tested.cell.delta)
    });
    findings.extend(told.map(|(tested, p)| tested.finding(plan, p, of)));
    findings
}

/// A metric of a cell that is tested.
struct Tested<'a> {
    cell: &'a CellComparison,
    slowdown: f64,
    /// `throughput` or `CPU per operation`.
    what: &'static str,
    found: &'a Dependence,
}

fn tests(cell: &CellComparison) -> Vec<Tested<'_>> {
    let speed = cell.host_speed.as_ref();
    let Some(speed) = speed.filter(|_| cell.verdict != Verdict::Unfit) else {
        return Vec::new();
    };
    let both = [
        ("throughput", &speed.throughput),
        ("CPU per operation", &speed.server_cpu),
    ];
    both.into_iter()
        .filter_map(|(what, found)| {
            Some(Tested {
                cell,
                slowdown: speed.slowdown,
                what,
                found: found.as_ref()?,
            })
        })
        .collect()
}

impl Tested<'_> {
    fn finding(&self, plan: &Plan, p: f64, of: usize) -> Finding {
        let text = format!(
            "{} at {}, {}: the difference goes with the speed of the host: {} {} in its fast blocks \
             and {} in its slow ones, where an operation took {:.2} times as long ({} among {of}, with \
             a correlation of {:.2} from block to block); the run's figure is the mean over these \
             speeds",
            self.cell.workload,
            words::workers(plan, self.cell.clients),
            self.cell.candidate_name,
            self.what,
            words_of(&self.found.fast),
            words_of(&self.found.slow),
            self.slowdown,
            words::p(p),
            self.found.correlation,
        );
        Finding::new(FindingKind::GoesWithHostSpeed, Severity::Confounder, text)
    }
}

/// That the blocks were not equally fast, where half of the cells saw that.
fn changed(cells: &[CellComparison]) -> Option<Finding> {
    let speeds = cells.iter().filter_map(|cell| cell.host_speed.as_ref());
    let slowdowns: Vec<f64> = speeds.map(|speed| speed.slowdown).collect();
    let typical = median(&slowdowns)?;
    let most = slowdowns.iter().copied().fold(1.0, f64::max);
    (typical >= SPEED_RANGE).then(|| {
        let text = format!(
            "the speed of the host changed between blocks: an operation took up to {most:.2} times as \
             long in one block as in another, on all servers (in half of the cells {typical:.2} times \
             or more); this changes absolute figures, and ratios much less"
        );
        Finding::new(FindingKind::HostSpeed, Severity::Note, text)
    })
}

/// What looks at the servers' cores, one before each visit, say of the machine.
///
/// Shape: times of a step of arithmetic and of a random access to 64 MB, nanoseconds, in any order.
pub fn core_speeds(arithmetic_ns: &[f64], memory_ns: &[f64]) -> Option<Finding> {
    let (fast, slow) = ends(arithmetic_ns)?;
    let (near, far) = ends(memory_ns)?;
    let core = "the clock or the core changed, or another guest or hardware thread used the core";
    let memory = "others used the shared cache or the memory's bandwidth";
    let why = match (slow / fast >= SPEED_RANGE, far / near >= MEMORY_RANGE) {
        (false, false) => return None,
        (true, false) => core.to_owned(),
        (false, true) => memory.to_owned(),
        (true, true) => format!("{core}, and {memory}"),
    };
    let text = format!(
        "without load from deltabench, the same arithmetic took {fast:.2} to {slow:.2} ns a step and a \
         random access to 64 MB {near:.0} to {far:.0} ns: {why}; steal does not show that"
    );
    Some(Finding::new(FindingKind::CoreSpeed, Severity::Note, text))
}

/// The second smallest and the second largest, as one odd block or look is nobody; of more than 40 values
/// those at 5 and 95 %. `None` of fewer than six.
fn ends(values: &[f64]) -> Option<(f64, f64)> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    (sorted.len() >= MIN_BLOCKS).then_some(())?;
    let place = (sorted.len() / 20).max(1);
    Some((*sorted.get(place)?, *sorted.iter().rev().nth(place)?))
}

/// `-0.3 % [-0.6, +0.1]`.
fn words_of(ratio: &Ratio) -> String {
    let change = words::signed(ratio.estimate - 1.0);
    let ends = ratio.ci95.map(|ends| format!(" {}", words::ends(ends)));
    format!("{change}{}", ends.unwrap_or_default())
}
