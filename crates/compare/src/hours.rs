//! Several sessions of a comparison as one result, and what another hour would say.
//!
//! A session is a whole run with a load of its own. Its interval knows restarts, not hours: what moves from
//! hour to hour (neighbours, placement of pages, the host's clock) is one draw for all of its blocks. So the
//! sample of a result over sessions is the session.

mod groups;

use crate::analyse::{counts, trust};
use crate::comparison::{
    BlockRate, CellComparison, Comparison, Difference, Hours, HoursFrom, Interference, Metric,
    MetricComparison, Ratio, Sessions, Stalls, Verdict,
};
use crate::levels::scale;
use crate::loads::{Judged, Loads, around, pooled, ratio};
use crate::multiple::adjust;
use crate::pairing::share_of_placebo;
use crate::placebo::{self, Suspicion};
use crate::side::{cell_verdict, cpu_bound, with_time};
use crate::stalls::waits;
use crate::tails;
use crate::thresholds::{
    ASSUMED_PART, HOUR_APART_MS, HOURS_ASSUMED, HOURS_ASSUMED_DF, HOURS_ASSUMED_UNSTEADY,
    HOURS_OF_CHANGE, HOURS_SWITCH_CPU_US, HOURS_SWITCH_US, LEVEL_DIFFERENT, SESSIONS_OF_A_DAY_MS,
    SPEED_FALSE, SPEED_PART, SWITCHING_MOST, TAIL_DELTA,
};
use deltabench_model::finding::FindingKind;
use deltabench_model::plan::{CellId, Plan};
use deltabench_model::units::{count, index, to_f64};
use deltabench_stats::between::Scatter;
pub use deltabench_stats::repeated::Repeated;
use deltabench_stats::repeated::{BetweenHours, HourBlocks};
use deltabench_stats::skewed::Skewness;
use deltabench_stats::summary::{geometric_mean, mean};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Makes `first` the result of the sessions that count, in their order: those of a fit host, each without
/// what was withdrawn of it. It is one of them, unless it was withdrawn or its host was unfit.
///
/// Per cell, candidate and metric the ratio becomes the mean over sessions with its random-effects interval,
/// and the verdict is that of the rules for a fixed number of blocks on it, with the largest δ of the
/// sessions. [`Hours`] says what each session found and what one in another hour would say. Cells that are
/// unfit by their own work say nothing; the placebos of the others are judged together, as candidates are.
/// Costs, latency curves and what moved are those of the first session that has the cell. Geometric means are
/// over the cells that all sessions have.
///
/// Shape:  a cell that no session has stays as `first` has it; without any session all do. Blocks of a
///         session come after those of the one before it, also where that lacks the cell ([`Sessions`]).
/// Source: [`deltabench_stats::between::mean_between`]; docs/measuring.md#sessions.
pub fn combine(first: &mut Comparison, sessions: &[Comparison], plan: &Plan) {
    if sessions.is_empty() {
        return;
    }
    first.host_ok = true;
    first.findings.clear();
    for finding in sessions.iter().flat_map(|session| &session.findings) {
        // Sessions have a load each, and what those do is in the interval over them.
        if finding.kind == FindingKind::LoadsDiffer {
            continue;
        }
        if first
            .findings
            .iter()
            .all(|known| known.text != finding.text)
        {
            first.findings.push(finding.clone());
        }
    }
    let placebos: Vec<&[CellComparison]> = { sessions.iter() }
        .map(|session| session.placebo_cells.as_slice())
        .collect();
    let off = suspicions(sessions, &placebos, plan);
    let all = numbered(sessions, plan);
    first.sessions = Some(all);
    for cell in &mut first.cells {
        let known = of_cell(cell, sessions.iter().map(|one| one.cells.as_slice()), all);
        let off = off.get(&cell.cell).copied();
        together(cell, &known, off, plan);
    }
    for cell in &mut first.placebo_cells {
        let known = of_cell(cell, placebos.iter().copied(), all);
        together(cell, &known, None, plan);
    }
    adjust(&mut first.cells.iter_mut().collect::<Vec<_>>());
    adjust(&mut first.placebo_cells.iter_mut().collect::<Vec<_>>());
    tails::settle(&mut first.cells);
    tails::settle(&mut first.placebo_cells);
    first.counts = counts(&first.cells);
    first.summaries = groups::groups(&first.summaries, sessions, plan);
    if sessions.iter().any(|session| session.placebo.is_some()) {
        first.placebo = groups::placebo(&first.placebo_cells, sessions);
    }
}

/// What an earlier run found of a comparison in a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct EarlierRun {
    /// Which hour, from 1: what one run found in several cells and of several candidates has one, and so have
    /// runs that follow each other. 0 is that of the run that is judged.
    pub hour: usize,
    /// Block log-ratios.
    pub blocks: Vec<f64>,
}

/// The hour of the run that is judged, among those of [`EarlierRun`].
const THIS_HOUR: usize = 0;

/// What a lab has of a host's earlier runs, for one cell and metric.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Earlier {
    /// The earlier runs of this very comparison.
    pub pair: Vec<EarlierRun>,
    /// The runs of each other comparison of this kind in this cell.
    pub cell: Vec<Vec<EarlierRun>>,
    /// How those of each other cell of the host scattered: the same for all that ask.
    pub others: Vec<Arc<Repeated>>,
    /// Whether hours may move it more: the sides are of two branches or made in different ways, and the host
    /// is a virtual machine, which may be slow for hours.
    pub is_unsteady: bool,
}

impl Earlier {
    /// The standard deviation that is assumed of hours where too little was measured.
    fn assumed(&self) -> f64 {
        match self.is_unsteady {
            true => HOURS_ASSUMED_UNSTEADY,
            false => HOURS_ASSUMED,
        }
    }
}

fn parts(runs: &[EarlierRun]) -> Vec<HourBlocks<'_>> {
    runs.iter().map(EarlierRun::parts).collect()
}

/// Adds to a single session what another hour would say, by what earlier runs of the host scattered, or by
/// what is assumed where there are none ([`HOURS_ASSUMED`], [`HOURS_ASSUMED_UNSTEADY`]).
///
/// Source: docs/measuring.md#sessions.
pub fn foretell(comparison: &mut Comparison, earlier: impl Fn(&CellComparison, Metric) -> Earlier) {
    for cell in &mut comparison.cells {
        let found: Vec<Option<Hours>> = { cell.metrics.iter() }
            .map(|metric| another_hour(cell, metric, &earlier(cell, metric.metric)))
            .collect();
        for (metric, hours) in cell.metrics.iter_mut().zip(found) {
            metric.hours = hours;
        }
    }
}

/// From when to when a session was measured, milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionTimes {
    pub began_ms: i64,
    pub ended_ms: i64,
}

/// Makes what sessions of one evening say of another hour at least as wide as what so many separate runs
/// would, for the candidates in cells that slow hours of a virtual machine may move. Sessions know hours like
/// theirs, and the assumption of slow hours gives way to them as it does to runs.
///
/// Shape:  `times` are those of the sessions behind the comparison, in their order. Sessions that follow each
///         other within 10 minutes are of one hour. Nothing changes where those of a cell span half a day.
/// Source: docs/measuring.md#sessions.
pub fn allow_for_slow_hours(
    comparison: &mut Comparison,
    times: &[SessionTimes],
    is_unsteady: impl Fn(&CellComparison) -> bool,
) {
    let Some(all) = comparison.sessions else {
        return;
    };
    for cell in comparison.cells.iter_mut().filter(|cell| is_unsteady(cell)) {
        let found: Vec<Option<Hours>> = { cell.metrics.iter() }
            .map(|metric| with_slow_hours(cell, metric, (all, times)))
            .collect();
        for (metric, hours) in cell.metrics.iter_mut().zip(found) {
            metric.hours = hours.or(metric.hours.take());
        }
    }
}

fn with_slow_hours(
    cell: &CellComparison,
    metric: &MetricComparison,
    sessions: (Sessions, &[SessionTimes]),
) -> Option<Hours> {
    let known = metric.hours.as_ref()?;
    let is_of_sessions = matches!(known.from, HoursFrom::Sessions(_));
    // Nobody knows what slow hours do to slow quantiles.
    let can_assume = matches!(
        metric.metric,
        Metric::Throughput | Metric::ServerCpuPerOperation
    );
    if !is_of_sessions || !can_assume {
        return None;
    }
    let mut blocks = by_hour(metric, sessions)?.into_iter();
    let first = MetricComparison {
        blocks: blocks.next()?,
        ..metric.clone()
    };
    let earlier = Earlier {
        pair: (THIS_HOUR + 1..)
            .zip(blocks)
            .map(|(hour, blocks)| EarlierRun { hour, blocks })
            .collect(),
        is_unsteady: true,
        ..Earlier::default()
    };
    let slow = another_hour(cell, &first, &earlier)?;
    let another = known.another.outer(&slow.another);
    let p = known.p.max(slow.p);
    let of = (metric.metric, delta_of(metric.metric, cell.delta));
    Some(Hours {
        by_slow_hours: another != known.another,
        verdict: Judged::of_ratio(&another, metric.blocks.len(), of, p).verdict,
        another,
        p,
        next_slow: Some(slow.next),
        ..known.clone()
    })
}

/// The blocks of each hour in which there were sessions, those with one block aside; none if the sessions
/// span half a day.
fn by_hour(
    metric: &MetricComparison,
    (all, times): (Sessions, &[SessionTimes]),
) -> Option<Vec<Vec<f64>>> {
    let mut hours: Vec<Vec<f64>> = Vec::new();
    let (mut first, mut last): (Option<SessionTimes>, Option<SessionTimes>) = (None, None);
    let blocks = std::iter::zip(&metric.numbers, &metric.blocks);
    let blocks = blocks.map(|(block, value)| (*block, *value));
    for (number, blocks) in Sessions::numbered(Some(all), blocks) {
        let of = *times.get(index(u64::from(number)))?;
        let is_near = last.is_some_and(|last| of.began_ms - last.ended_ms < HOUR_APART_MS);
        match hours.last_mut().filter(|_| is_near) {
            Some(hour) => hour.extend(blocks),
            None => hours.push(blocks),
        }
        first = first.or(Some(of));
        last = Some(of);
    }
    let span_ms = last?.began_ms - first?.began_ms;
    let hours = hours.into_iter().filter(|blocks| blocks.len() > 1);
    (span_ms < SESSIONS_OF_A_DAY_MS).then(|| hours.collect())
}

fn another_hour(
    cell: &CellComparison,
    metric: &MetricComparison,
    earlier: &Earlier,
) -> Option<Hours> {
    let pair = earlier.pair.iter().filter(|run| run.blocks.len() > 1);
    let mut pair: Vec<HourBlocks<'_>> = pair.map(EarlierRun::parts).collect();
    pair.push((THIS_HOUR, &metric.blocks));
    let runs: Vec<&[f64]> = pair.iter().map(|(_, blocks)| *blocks).collect();
    let level = cell.interval_level;
    let (found, from) = known(metric.metric, (&pair, &runs), earlier)?;
    // An update may go with the host's speed because it switches more often, and all of it is a share of what
    // the sides differ by: then they are one cause.
    let switching = by_switching(cell, metric);
    let known_cause = switching.max(by_change(metric, earlier));
    let (speed, is_clear) = by_speed(cell, metric.metric);
    let left = given_way(runs.len() - 1);
    let added = left * known_cause.max(speed).powi(2);
    let scatter = found.scatter.and(added, HOURS_ASSUMED_DF);
    // The share of a change widens alone: a large one would be in doubt for ever, and a small one not.
    let by_switches = left * switching.powi(2) > ASSUMED_PART * scatter.between().powi(2);
    // By what it adds to the others.
    let without = found.scatter.variance + left * known_cause.powi(2);
    let is_wider = left * (speed.powi(2) - known_cause.powi(2)) > SPEED_PART * without;
    let by_host_speed = is_clear && speed > known_cause && is_wider;
    let here = &metric.ratio;
    let long_run = scatter.mean_over(&runs).ok()?;
    let next = scatter.next_like(&metric.blocks, &runs).ok()?;
    // Other runs know nothing of the skewness of this one, nor of how little it has measured.
    let another = ratio(next.estimate, Some(&next), level).outer(here);
    let mut long = ratio(long_run.estimate, Some(&long_run), level);
    if runs.len() == 1 {
        long = long.outer(here);
    }
    // It has to differ by both, and in one direction.
    let is_one_way = next.estimate * here.estimate.ln() >= 0.0;
    let own = cell.p_of(metric.metric)?;
    let p = if is_one_way { next.p().max(own) } else { 1.0 };
    let of = (metric.metric, delta_of(metric.metric, cell.delta));
    let blocks = runs.iter().map(|run| run.len()).sum();
    Some(Hours {
        sessions: Vec::new(),
        long_run: long,
        verdict: Judged::of_ratio(&another, blocks, of, p).verdict,
        another,
        from,
        assumed: found.assumed || by_switches || by_host_speed,
        by_host_speed,
        by_slow_hours: false,
        sd: scatter.between(),
        p,
        mean: None,
        next,
        next_slow: None,
        scatter: Some(scatter),
    })
}

/// How the runs of a cell scatter between hours, and what that is known from. `None` for slow quantiles of
/// which nothing was measured, because nobody knows what to assume of them.
fn known(
    metric: Metric,
    (pair, runs): (&[HourBlocks<'_>], &[&[f64]]),
    earlier: &Earlier,
) -> Option<(BetweenHours, HoursFrom)> {
    let own = earlier
        .cell
        .iter()
        .map(|runs| parts(runs))
        .chain([pair.to_vec()]);
    let others = earlier.others.iter().map(|one| &**one);
    let can_assume = matches!(metric, Metric::Throughput | Metric::ServerCpuPerOperation);
    let assumed = can_assume
        .then(|| Scatter::assumed(earlier.assumed(), HOURS_ASSUMED_DF, runs).ok())
        .flatten();
    let found = BetweenHours::learned(&Repeated::of(own), others, assumed)?;
    let from = match runs.len() {
        2.. => HoursFrom::Pair(number(runs.len())),
        _ if found.hours > 0 => HoursFrom::Host(number(found.hours)),
        _ => HoursFrom::Prior,
    };
    Some((found, from))
}

/// By how much hours are assumed to move the log-ratio of a cell because one side makes more context switches
/// for an operation (standard deviation).
///
/// Most of a server's switches wake a process, and what that costs changes from hour to hour. It was seen of
/// one client that waits for each answer, so it is 0 for others. Nor does it move more than a quarter of what
/// the sides differ by.
///
/// Shape:  0 where switches are not known, and for all but throughput and CPU per operation.
/// Source: docs/measuring.md#sessions.
fn by_switching(cell: &CellComparison, metric: &MetricComparison) -> f64 {
    let is_throughput = metric.metric == Metric::Throughput;
    // With a schedule throughput is what was asked for.
    let is_scheduled = is_throughput && metric.difference_us.is_none();
    if cell.clients != 1 || is_scheduled {
        return 0.0;
    }
    let more = |rate: &BlockRate| {
        let (base, candidate) = rate.switches?;
        let (assumed_us, time) = match metric.metric {
            Metric::Throughput => (HOURS_SWITCH_US, (1e6 / rate.base, 1e6 / rate.candidate)),
            Metric::ServerCpuPerOperation => (HOURS_SWITCH_CPU_US, rate.server_cpu_us?),
            _ => return None,
        };
        let time_us = (time.0 * time.1).sqrt();
        (time_us > 0.0).then(|| assumed_us * (candidate - base) / time_us)
    };
    let known: Vec<f64> = cell.rates.iter().filter_map(more).collect();
    let moved = mean(&known).map_or(0.0, f64::abs);
    let most = SWITCHING_MOST * metric.ratio.estimate.ln().abs();
    moved.min(most)
}

/// By how much hours are assumed to move the log-ratio of a cell in proportion to it (standard deviation).
///
/// Shape:  0 where hours are taken to be steady, and for all but throughput and CPU per operation.
/// Source: docs/measuring.md#sessions.
fn by_change(metric: &MetricComparison, earlier: &Earlier) -> f64 {
    match metric.metric {
        Metric::Throughput | Metric::ServerCpuPerOperation if earlier.is_unsteady => {
            HOURS_OF_CHANGE * metric.ratio.estimate.ln().abs()
        }
        _ => 0.0,
    }
}

/// By how much hours are assumed to move the log-ratio of a cell because it goes with the host's speed
/// (standard deviation), and whether fast and slow blocks show by themselves that it does: hours may be as
/// fast as the fast blocks of this run or as slow as its slow ones.
///
/// Shape:  0 where nobody says how fast the host was, or all blocks were about as fast.
/// Source: docs/measuring.md#sessions.
fn by_speed(cell: &CellComparison, metric: Metric) -> (f64, bool) {
    let Some(known) = &cell.host_speed else {
        return (0.0, false);
    };
    let (moves, tested) = match metric {
        Metric::Throughput => (known.throughput_moves, known.throughput),
        Metric::ServerCpuPerOperation => (known.server_cpu_moves, known.server_cpu),
        _ => return (0.0, false),
    };
    (moves, tested.is_some_and(|found| found.p <= SPEED_FALSE))
}

/// What is left of an assumed variance where the same comparison was measured in so many other hours, which
/// say themselves how hours move it.
fn given_way(repeats: usize) -> f64 {
    HOURS_ASSUMED_DF / (HOURS_ASSUMED_DF + to_f64(count(repeats)))
}

impl EarlierRun {
    fn parts(&self) -> HourBlocks<'_> {
        (self.hour, &self.blocks)
    }
}

/// The smallest change of a metric that matters, where that of throughput is `delta`.
fn delta_of(metric: Metric, delta: f64) -> f64 {
    if tails::TAILS.contains(&metric) {
        TAIL_DELTA
    } else {
        delta
    }
}

/// How the blocks of sessions are numbered: a session may have made up for lost visits beyond its plan.
fn numbered(sessions: &[Comparison], plan: &Plan) -> Sessions {
    let cells = sessions
        .iter()
        .flat_map(|one| one.cells.iter().chain(&one.placebo_cells));
    let last = |cell: &CellComparison| {
        let rounds = cell.series.iter().map(|round| round.block);
        let known = rounds.chain(cell.rates.iter().map(|rate| rate.block));
        known.max().map_or(0, |last| last + 1)
    };
    Sessions {
        number: number(sessions.len()),
        blocks: cells.map(last).fold(plan.timing.blocks, u32::max),
    }
}

/// A cell in a session, with the number that the session's first block has among those of all.
type InSession<'a> = (u32, &'a CellComparison);

/// The same cell and server in each session that says something about it.
fn of_cell<'a>(
    cell: &CellComparison,
    sessions: impl Iterator<Item = &'a [CellComparison]>,
    all: Sessions,
) -> Vec<InSession<'a>> {
    let same = |other: &&CellComparison| {
        other.cell == cell.cell && other.candidate == cell.candidate && other.says_something()
    };
    let firsts = (0..).map(|place: u32| place * all.blocks);
    std::iter::zip(firsts, sessions)
        .filter_map(|(first, cells)| Some((first, cells.iter().find(same)?)))
        .collect()
}

/// Cells whose placebos of all sessions together forbid a verdict, as they do in one run.
fn suspicions(
    sessions: &[Comparison],
    placebos: &[&[CellComparison]],
    plan: &Plan,
) -> BTreeMap<CellId, Suspicion> {
    let all = || sessions.iter().flat_map(|session| &session.cells);
    let cells: BTreeSet<CellId> = all().map(|cell| cell.cell).collect();
    let of = |id: &CellId| {
        let known = placebos.iter();
        let known = known.filter_map(|cells| cells.iter().find(|other| other.cell == *id));
        let sessions: Vec<&CellComparison> = known.collect();
        let deltas = all().filter(|cell| cell.cell == *id);
        let delta = deltas.map(|cell| cell.delta).fold(0.0, f64::max);
        loads(Metric::Throughput, &sessions).suspicion(share_of_placebo(plan, *id), delta)
    };
    let found = placebo::among(cells.iter().map(of).collect());
    let known = std::iter::zip(cells, found);
    known
        .filter_map(|(cell, found)| Some((cell, found?)))
        .collect()
}

/// Makes a cell what all of its sessions say together.
fn together(
    cell: &mut CellComparison,
    numbered: &[InSession<'_>],
    off: Option<Suspicion>,
    plan: &Plan,
) {
    let own = match numbered {
        [] => return,
        [one] => {
            *cell = alone(one);
            return;
        }
        [(_, one), ..] => (*one).clone(),
    };
    let sessions: Vec<&CellComparison> = numbered.iter().map(|(_, one)| *one).collect();
    let sessions = sessions.as_slice();
    let delta = sessions.iter().map(|one| one.delta).fold(0.0, f64::max);
    let level = sessions.iter().map(|one| one.interval_level);
    let level = level.fold(LEVEL_DIFFERENT, f64::max);
    let metrics: Vec<MetricComparison> = { Metric::ALL.iter() }
        .filter_map(|&metric| over_sessions(metric, (sessions, numbered), delta, level))
        .collect();
    let found = verdict(
        plan.cell(cell.cell).is_some_and(cpu_bound),
        sessions,
        (delta, level),
    );
    let sum = |of: fn(&CellComparison) -> u64| sessions.iter().map(|one| of(one)).sum::<u64>();
    let blocks = sum(|one| u64::from(one.blocks));
    let together = CellComparison {
        verdict: found.verdict,
        alone: found.verdict,
        reason: with_time(found.verdict, found.reason, metrics.first()),
        delta,
        p: found.p,
        p_holm: None,
        p_bh: None,
        looks: 0,
        decided_at: None,
        detection: None,
        interval_level: level,
        blocks_to_verdict: None,
        minutes_to_verdict: None,
        blocks: u32::try_from(blocks).unwrap_or(u32::MAX),
        rounds: sum(|one| one.rounds),
        void_rounds: sum(|one| one.void_rounds),
        base_errors: sum(|one| one.base_errors),
        candidate_errors: sum(|one| one.candidate_errors),
        metrics,
        interference: disturbed(sessions),
        series: in_a_row(numbered, |one| &one.series, |round| &mut round.block),
        rates: in_a_row(numbered, |one| &one.rates, |rate| &mut rate.block),
        stalls: (found.stalls).or(own.stalls.map(|stalls| stalls.named_if(false))),
        ..own
    };
    *cell = trust(together, off.map(|off| off.why()).as_deref(), true);
}

/// A cell that only one session has, with the numbers that its blocks have among those of all.
fn alone(one: &InSession<'_>) -> CellComparison {
    let (first, cell) = *one;
    let mut metrics = cell.metrics.clone();
    for metric in &mut metrics {
        let others = metric.other_blocks.iter_mut().map(|(block, _)| block);
        metric
            .numbers
            .iter_mut()
            .chain(others)
            .for_each(|block| *block += first);
    }
    CellComparison {
        metrics,
        series: in_a_row(&[*one], |one| &one.series, |round| &mut round.block),
        rates: in_a_row(&[*one], |one| &one.rates, |rate| &mut rate.block),
        ..cell.clone()
    }
}

/// What belongs to blocks, of all sessions: the blocks of a session come after those of the one before it.
fn in_a_row<T: Copy>(
    sessions: &[InSession<'_>],
    list: fn(&CellComparison) -> &Vec<T>,
    block: fn(&mut T) -> &mut u32,
) -> Vec<T> {
    let all = sessions.iter().flat_map(|(first, one)| {
        list(one).iter().map(move |&item| {
            let mut item = item;
            *block(&mut item) += first;
            item
        })
    });
    all.collect()
}

/// The numbers of the blocks behind a metric, likewise.
fn numbers(metric: Metric, sessions: &[InSession<'_>]) -> Vec<u32> {
    let of = |(first, one): &InSession<'_>| {
        let known = one.metric(metric).map_or(&[][..], |found| &found.numbers);
        known
            .iter()
            .map(|block| first + block)
            .collect::<Vec<u32>>()
    };
    sessions.iter().flat_map(of).collect()
}

/// The disturbed rounds of all sessions. Estimates with and without them are of one session each.
fn disturbed(sessions: &[&CellComparison]) -> Interference {
    let of = || sessions.iter().map(|one| &one.interference);
    Interference {
        disturbed_rounds: of().map(|one| one.disturbed_rounds).sum(),
        left_out: of().map(|one| one.left_out).sum(),
        contended: of().any(|one| one.contended),
        with_voided: None,
        without_voided: None,
    }
}

/// What the sessions of a cell say together.
pub(crate) struct Found {
    pub(crate) verdict: Verdict,
    reason: String,
    /// p of throughput.
    pub(crate) p: Option<f64>,
    /// Stalls of the side that lost.
    stalls: Option<Stalls>,
}

/// The rules of one run, on all sessions together; `bound` says whether CPU must tell the same story.
pub(crate) fn verdict(
    bound: bool,
    sessions: &[&CellComparison],
    (delta, level): (f64, f64),
) -> Found {
    let judged = |metric| loads(metric, sessions).judge(metric, delta, level);
    let speed = judged(Metric::Throughput);
    let cost = judged(Metric::ServerCpuPerOperation);
    let typical = typical(sessions, delta);
    let mut stalls = sessions.iter().filter_map(|one| one.stalls);
    let stalls = stalls.find(|stalls| waits(speed.verdict, *stalls));
    let mut said = speed.told(Metric::Throughput, delta);
    // Totals alone do not say "no change".
    let is_equal = typical.is_none_or(|typical| typical.verdict == Verdict::NoChange);
    if said.verdict == Verdict::NoChange && !is_equal {
        said.verdict = Verdict::Inconclusive;
        said.reason += " in total, but the typical operation may differ by more";
    }
    let cost = (cost.p.is_some()).then(|| cost.told(Metric::ServerCpuPerOperation, delta));
    let claimed = stalls.zip(typical.map(|typical| (typical.verdict, typical.gain95)));
    let found = cell_verdict(bound, (&said, claimed), cost.as_ref());
    Found {
        verdict: found.verdict,
        reason: found.reason,
        p: speed.p,
        stalls: stalls.map(|stalls| stalls.named_if(found.by_stalls)),
    }
}

/// What the typical operation of throughput says over the sessions; `None` where no session knows it.
fn typical(sessions: &[&CellComparison], delta: f64) -> Option<Judged> {
    let typical = |one: &&CellComparison| one.metric(Metric::Throughput)?.typical;
    let found = pooled(&sessions.iter().filter_map(typical).collect::<Vec<Ratio>>())?;
    let blocks = loads(Metric::Throughput, sessions).blocks();
    // Nobody asks for its p.
    Some(Judged::of_ratio(
        &found,
        blocks,
        (Metric::Throughput, delta),
        1.0,
    ))
}

fn loads(metric: Metric, sessions: &[&CellComparison]) -> Loads {
    let known = sessions.iter().filter_map(|one| one.metric(metric));
    Loads::new(known.map(|found| found.blocks.clone()))
}

fn over_sessions(
    metric: Metric,
    (sessions, numbered): (&[&CellComparison], &[InSession<'_>]),
    delta: f64,
    level: f64,
) -> Option<MetricComparison> {
    let known: Vec<&MetricComparison> = { sessions.iter() }
        .filter_map(|one| one.metric(metric))
        .collect();
    let absolute = |of: fn(&MetricComparison) -> f64| {
        geometric_mean(&known.iter().map(|one| of(one)).collect::<Vec<_>>())
    };
    let loads = loads(metric, sessions);
    let delta = delta_of(metric, delta);
    let judged = known.iter().any(|one| one.verdict.is_some());
    Some(MetricComparison {
        metric,
        base: absolute(|one| one.base)?,
        candidate: absolute(|one| one.candidate)?,
        ratio: loads.ratio(level)?,
        verdict: judged.then(|| loads.judge(metric, delta, level).verdict),
        blocks: known.iter().flat_map(|one| one.blocks.clone()).collect(),
        numbers: numbers(metric, numbered),
        other_blocks: Vec::new(),
        typical: pooled(
            &{ known.iter() }
                .filter_map(|one| one.typical)
                .collect::<Vec<_>>(),
        ),
        difference_us: difference(&known),
        // Between sessions the interval is that of their means.
        skewness: Skewness::default(),
        probed: None,
        hours: hours(metric, &known, &loads, delta, level),
    })
}

/// The mean of the sessions' differences, with an interval like that of their ratios.
fn difference(known: &[&MetricComparison]) -> Option<Difference> {
    let all: Option<Vec<Difference>> = known.iter().map(|one| one.difference_us).collect();
    let all = all?;
    let values: Vec<f64> = all.iter().map(|one| one.estimate).collect();
    let halves = all.iter().filter_map(|one| one.ci95);
    let halves = halves.map(|(low, high)| (high - low) / 2.0);
    Some(Difference {
        estimate: mean(&values)?,
        ci95: around(&values, halves, LEVEL_DIFFERENT),
    })
}

fn hours(
    metric: Metric,
    known: &[&MetricComparison],
    loads: &Loads,
    delta: f64,
    level: f64,
) -> Option<Hours> {
    let mean = loads.between()?;
    let next = mean.next_group()?;
    let judged = Judged::of((&next, loads.blocks()), metric, delta, level);
    let blocks: Vec<&[f64]> = known.iter().map(|one| one.blocks.as_slice()).collect();
    Some(Hours {
        sessions: known.iter().map(|one| one.ratio).collect(),
        long_run: ratio(mean.estimate, Some(&mean), level),
        another: ratio(next.estimate, Some(&next), level),
        from: HoursFrom::Sessions(number(known.len())),
        assumed: false,
        by_host_speed: false,
        by_slow_hours: false,
        sd: Scatter::pooled(&[blocks]).map_or(0.0, |scatter| scatter.between()),
        verdict: judged.verdict,
        p: next.p_scaled(scale(level)),
        mean: Some(mean),
        next,
        next_slow: None,
        scatter: None,
    })
}

fn number(value: usize) -> u32 {
    u32::try_from(count(value)).unwrap_or(u32::MAX)
}
