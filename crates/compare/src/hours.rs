//! Several sessions of a comparison as one result, and what another hour would say.
//!
//! A session is a whole run with a load of its own. Its interval knows restarts, not hours: what moves from
//! hour to hour (neighbours, placement of pages, the host's clock) is one draw for all of its blocks. So the
//! sample of a result over sessions is the session.

use crate::analyse::counts;
use crate::comparison::{
    CellComparison, Comparison, Difference, GroupSummary, Hours, HoursFrom, Interference, Metric,
    MetricComparison, PlaceboSummary, Ratio, Verdict,
};
use crate::judge::told;
use crate::multiple::adjust;
use crate::placebo::{self, Suspicion};
use crate::side::{contradicts, waits};
use crate::study::{Judged, Loads, pooled, ratio};
use crate::tails;
use crate::thresholds::{LEVEL_DIFFERENT, TAIL_DELTA};
use deltabench_model::plan::{CellId, Plan};
use deltabench_model::units::{count, to_u64};
use deltabench_stats::between::Scatter;
use deltabench_stats::student::t_interval;
use deltabench_stats::summary::{geometric_mean, mean};
use std::collections::{BTreeMap, BTreeSet};

/// Makes `first` the result of the sessions that count, in their order: those of a fit host, each without
/// what was withdrawn of it. It is one of them, unless it was withdrawn or its host was unfit.
///
/// Per cell, candidate and metric the ratio becomes the mean over sessions with its random-effects interval,
/// and the verdict is that of the rules for a fixed number of blocks on it, with the largest δ of the
/// sessions. [`Hours`] says what each session found and what one in another hour would say. Cells that are
/// unfit by their own work say nothing; the placebos of the others are judged together, as candidates are.
/// Costs, latency curves and what moved are those of the first session that has the cell.
///
/// Shape:  a cell that no session has stays as `first` has it; without any session all do.
/// Source: [`deltabench_stats::between::mean_between`]; docs/measuring.md#sessions.
pub fn combine(first: &mut Comparison, sessions: &[Comparison], plan: &Plan) {
    if sessions.is_empty() {
        return;
    }
    first.host_ok = true;
    first.findings.clear();
    for finding in sessions.iter().flat_map(|session| &session.findings) {
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
    let off = suspicions(first, &placebos);
    for cell in &mut first.cells {
        let known = of_cell(cell, sessions.iter().map(|one| one.cells.as_slice()));
        let off = off.get(&cell.cell).copied();
        together(cell, &known, off, plan);
    }
    for cell in &mut first.placebo_cells {
        let known = of_cell(cell, placebos.iter().copied());
        together(cell, &known, None, plan);
    }
    adjust(&mut first.cells.iter_mut().collect::<Vec<_>>());
    adjust(&mut first.placebo_cells.iter_mut().collect::<Vec<_>>());
    tails::settle(&mut first.cells);
    tails::settle(&mut first.placebo_cells);
    first.counts = counts(&first.cells);
    for summary in &mut first.summaries {
        *summary = of_group(summary, sessions);
    }
    first.placebo = first.placebo.as_ref().map(|one| {
        let flagged = first.placebo_cells.iter();
        let flagged = flagged.filter(|cell| cell.verdict.is_change());
        of_placebos(one, number(flagged.count()), sessions)
    });
}

/// Adds to a single session what another hour would say, by what earlier runs scattered.
///
/// Shape:  `earlier` gives for a cell and metric the block log-ratios of each run, by the comparison that the
///         runs repeated; a comparison of a single run says nothing.
pub fn foretell(
    comparison: &mut Comparison,
    earlier: impl Fn(&CellComparison, Metric) -> Vec<Vec<Vec<f64>>>,
) {
    for cell in &mut comparison.cells {
        let found: Vec<Option<Hours>> = { cell.metrics.iter() }
            .map(|metric| {
                let sets = earlier(cell, metric.metric);
                let sets = sets
                    .iter()
                    .map(|set| set.iter().map(Vec::as_slice).collect());
                let scatter = Scatter::pooled(&sets.collect::<Vec<Vec<&[f64]>>>())?;
                let pairs = u32::try_from(to_u64(scatter.df)).unwrap_or(u32::MAX);
                let next = scatter.next_group(&metric.blocks).ok()?;
                let another = ratio(metric.ratio.estimate.ln(), Some(&next), cell.interval_level);
                // Earlier runs know nothing of the skewness of this one.
                let another = another.outer(&metric.ratio);
                let p = next.p().max(cell.p_of(metric.metric)?);
                let of = (metric.metric, delta_of(metric.metric, cell.delta));
                let judged = Judged::of_ratio(&another, metric.blocks.len(), of, p);
                Some(Hours {
                    sessions: Vec::new(),
                    another,
                    from: HoursFrom::EarlierPairs(pairs),
                    sd: scatter.between(),
                    verdict: judged.verdict,
                    p,
                    mean: None,
                    next,
                })
            })
            .collect();
        for (metric, hours) in cell.metrics.iter_mut().zip(found) {
            metric.hours = hours;
        }
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

/// The same cell and server in each session that says something about it.
fn of_cell<'a>(
    cell: &CellComparison,
    sessions: impl Iterator<Item = &'a [CellComparison]>,
) -> Vec<&'a CellComparison> {
    let same = |other: &&CellComparison| {
        other.cell == cell.cell && other.candidate == cell.candidate && other.says_something()
    };
    sessions
        .filter_map(|cells| cells.iter().find(same))
        .collect()
}

/// Cells whose placebos of all sessions together forbid a verdict, as they do in one run.
fn suspicions(first: &Comparison, placebos: &[&[CellComparison]]) -> BTreeMap<CellId, Suspicion> {
    let cells: BTreeSet<CellId> = first.cells.iter().map(|cell| cell.cell).collect();
    let of = |id: &CellId| {
        let known = placebos.iter();
        let known = known.filter_map(|cells| cells.iter().find(|other| other.cell == *id));
        let sessions: Vec<&CellComparison> = known.collect();
        let deltas = first.cells.iter().filter(|cell| cell.cell == *id);
        let delta = deltas.map(|cell| cell.delta).fold(0.0, f64::max);
        loads(Metric::Throughput, &sessions).suspicion(delta)
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
    sessions: &[&CellComparison],
    off: Option<Suspicion>,
    plan: &Plan,
) {
    let own = match sessions {
        [] => return,
        [one] => {
            *cell = (*one).clone();
            return;
        }
        [one, ..] => (*one).clone(),
    };
    let delta = sessions.iter().map(|one| one.delta).fold(0.0, f64::max);
    let level = sessions.iter().map(|one| one.interval_level);
    let level = level.fold(LEVEL_DIFFERENT, f64::max);
    let metrics: Vec<MetricComparison> = { Metric::ALL.iter() }
        .filter_map(|&metric| over_sessions(metric, sessions, delta, level))
        .collect();
    let (verdict, reason, p) = verdict(cell.cell, sessions, (delta, level), off, plan);
    let sum = |of: fn(&CellComparison) -> u64| sessions.iter().map(|one| of(one)).sum::<u64>();
    let blocks = sum(|one| u64::from(one.blocks));
    *cell = CellComparison {
        verdict,
        alone: verdict,
        reason,
        delta,
        p,
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
        series: in_a_row(sessions, plan, |one| &one.series, |round| &mut round.block),
        rates: in_a_row(sessions, plan, |one| &one.rates, |rate| &mut rate.block),
        ..own
    };
}

/// What belongs to blocks, of all sessions: the blocks of a session come after those of the one before it.
fn in_a_row<T: Copy>(
    sessions: &[&CellComparison],
    plan: &Plan,
    list: fn(&CellComparison) -> &Vec<T>,
    block: fn(&mut T) -> &mut u32,
) -> Vec<T> {
    let firsts = (0..).map(|number: u32| number * plan.timing.blocks);
    let all = std::iter::zip(firsts, sessions).flat_map(|(first, one)| {
        list(one).iter().map(move |&item| {
            let mut item = item;
            *block(&mut item) += first;
            item
        })
    });
    all.collect()
}

/// The disturbed rounds of all sessions. Estimates with and without them are of one session each.
fn disturbed(sessions: &[&CellComparison]) -> Interference {
    let of = || sessions.iter().map(|one| &one.interference);
    Interference {
        disturbed_rounds: of().map(|one| one.disturbed_rounds).sum(),
        contended: of().any(|one| one.contended),
        with_voided: None,
        without_voided: None,
    }
}

/// The verdict of all sessions together, its reason, and the p of throughput.
fn verdict(
    id: CellId,
    sessions: &[&CellComparison],
    (delta, level): (f64, f64),
    off: Option<Suspicion>,
    plan: &Plan,
) -> (Verdict, String, Option<f64>) {
    let judged = |wanted| {
        let loads = loads(wanted, sessions);
        loads.judge(wanted, delta, level)
    };
    let speed = judged(Metric::Throughput);
    let cost = judged(Metric::ServerCpuPerOperation);
    let planned = plan.cell(id);
    let typical = typical(sessions, delta, level);
    let mut stalls = sessions.iter().filter_map(|one| one.stalls);
    let stalls = stalls.find(|stalls| waits(speed.verdict, *stalls));
    // What waits costs no CPU, as in one run.
    let claimed = if stalls.is_some() {
        typical
    } else {
        Some(speed)
    };
    let denied = |claimed: Judged| {
        claimed.verdict.is_change()
            && contradicts(
                (claimed.verdict, claimed.gain95),
                (cost.verdict, cost.gain95),
            )
    };
    let denied = planned.is_some_and(crate::side::cpu_bound)
        && cost.p.is_some()
        && claimed.is_some_and(denied);
    let says = told(Metric::Throughput, speed.verdict, speed.gain95, delta);
    let says = match (stalls, typical) {
        (Some(stalls), Some(typical)) if typical.verdict != speed.verdict => {
            format!("{says}, by stalls of the {}", stalls.loser())
        }
        _ => says,
    };
    let is_equal = typical.is_none_or(|typical| typical.verdict == Verdict::NoChange);
    let (found, reason) = match (speed.verdict, denied, off) {
        (Verdict::Inconclusive, _, _) => (Verdict::Inconclusive, says),
        // Totals alone do not say "no change", as in one run.
        (Verdict::NoChange, _, None) if !is_equal => (
            Verdict::Inconclusive,
            format!("{says} in all, but the typical operation may be off by more"),
        ),
        (_, true, _) => (
            Verdict::Inconclusive,
            format!("contradicted by CPU: throughput {says}"),
        ),
        (_, _, Some(off)) => (
            Verdict::Unfit,
            format!("{}; not trusted: {says}", off.why()),
        ),
        (found, ..) => (found, says),
    };
    (found, reason, speed.p)
}

/// What the typical operation of throughput says over the sessions; `None` where no session knows it.
fn typical(sessions: &[&CellComparison], delta: f64, level: f64) -> Option<Judged> {
    let typical = |one: &&CellComparison| one.metric(Metric::Throughput)?.typical;
    let known: Vec<Ratio> = sessions.iter().filter_map(typical).collect();
    let each = known.iter().map(|ratio| vec![ratio.estimate.ln()]);
    let found = Loads::new(each).between();
    let blocks = loads(Metric::Throughput, sessions).blocks();
    let judged = |found| Judged::of((&found, blocks), Metric::Throughput, delta, level);
    (!known.is_empty()).then(|| found.map_or_else(Judged::default, judged))
}

fn loads(metric: Metric, sessions: &[&CellComparison]) -> Loads {
    let known = sessions.iter().filter_map(|one| one.metric(metric));
    Loads::new(known.map(|found| found.blocks.clone()))
}

fn over_sessions(
    metric: Metric,
    sessions: &[&CellComparison],
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
        typical: pooled(
            &{ known.iter() }
                .filter_map(|one| one.typical)
                .collect::<Vec<_>>(),
        ),
        difference_us: difference(&known),
        // Between sessions the interval is that of their means.
        skewness: 0.0,
        hours: hours(metric, &known, &loads, delta, level),
    })
}

/// The mean of the sessions' differences, with Student's interval over them.
fn difference(known: &[&MetricComparison]) -> Option<Difference> {
    let all: Option<Vec<f64>> = { known.iter() }
        .map(|one| Some(one.difference_us?.estimate))
        .collect();
    let all = all?;
    Some(Difference {
        estimate: mean(&all)?,
        ci95: t_interval(&all, LEVEL_DIFFERENT)
            .ok()
            .map(|ends| (ends.low, ends.high)),
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
        another: ratio(next.estimate, Some(&next), level),
        from: HoursFrom::Sessions(number(known.len())),
        sd: Scatter::pooled(&[blocks]).map_or(0.0, |scatter| scatter.between()),
        verdict: judged.verdict,
        p: next.p(),
        mean: Some(mean),
        next,
    })
}

fn of_group(first: &GroupSummary, sessions: &[Comparison]) -> GroupSummary {
    let same =
        |other: &&GroupSummary| other.group == first.group && other.candidate == first.candidate;
    let known: Vec<&GroupSummary> = { sessions.iter() }
        .filter_map(|session| session.summaries.iter().find(same))
        .collect();
    let speed: Vec<Ratio> = known.iter().map(|one| one.throughput).collect();
    let cost: Vec<Ratio> = known.iter().filter_map(|one| one.server_cpu).collect();
    GroupSummary {
        throughput: pooled(&speed).unwrap_or(first.throughput),
        server_cpu: pooled(&cost).or(first.server_cpu),
        ..first.clone()
    }
}

fn of_placebos(first: &PlaceboSummary, flagged: u32, sessions: &[Comparison]) -> PlaceboSummary {
    let known: Vec<&PlaceboSummary> = { sessions.iter() }
        .filter_map(|session| session.placebo.as_ref())
        .collect();
    let speed: Vec<Ratio> = known.iter().map(|one| one.throughput).collect();
    let cost: Vec<Ratio> = known.iter().filter_map(|one| one.server_cpu).collect();
    PlaceboSummary {
        throughput: pooled(&speed).unwrap_or(first.throughput),
        server_cpu: pooled(&cost).or(first.server_cpu),
        flagged,
        ..first.clone()
    }
}

fn number(value: usize) -> u32 {
    u32::try_from(count(value)).unwrap_or(u32::MAX)
}
