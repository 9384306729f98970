//! One server against the base in one cell.

use crate::comparison::{
    CellComparison, Confirmation, Estimates, Interference, Metric, MetricComparison, RoundRatio,
    Stalls, Verdict,
};
use crate::history::{History, Sample};
use crate::judge::{Judgement, judge};
use crate::latency::Merged;
use crate::levels::Levels;
use crate::pairing::Pairing;
use crate::sample::{BlockValue, Values, compare_metric, ratio};
use crate::stalls::{stalls, waits};
use crate::stopping::{CellProgress, StoppingInput, StoppingState};
use crate::tails;
use crate::thresholds::MIN_BLOCKS;
use crate::words;
use deltabench_model::plan::{Cell, CellId, Plan, ServerId};
use deltabench_model::units::count;
use deltabench_stats::Interval;

/// A comparison before the placebo and the other cells have been asked, with the block values behind it.
pub(crate) struct Side {
    pub(crate) comparison: CellComparison,
    pub(crate) sample: Sample,
}

impl Side {
    pub(crate) fn new(
        input: &StoppingInput<'_>,
        state: StoppingState,
        id: CellId,
        server: ServerId,
    ) -> Option<Self> {
        let (plan, history) = (input.plan, input.history);
        let cell = plan.cell(id)?;
        let all = history.counted(history.visits());
        let pairing = &all.pairing;
        let merged = Merged::new(&pairing.blocks);
        let sample = Sample {
            throughput: history.sample(state.speed_visits.clone()).throughput,
            server_cpu: history.sample(state.cost_visits.clone()).server_cpu,
        };
        let stalls = stalls(&sample.throughput, &merged, input.delta);
        let Decided {
            verdict,
            reason,
            by_stalls,
        } = match pairing.blocks.is_empty() {
            true => Decided::nothing(),
            false => decided(input, &state, cell, &sample, stalls),
        };
        let open = verdict == Verdict::Inconclusive;
        let metrics = metrics(cell, history, &state, &sample, &merged);
        let comparison = CellComparison {
            cell: id,
            workload: cell.workload.clone(),
            group: cell.group,
            clients: cell.clients,
            candidate: server,
            candidate_name: plan.server_name(server),
            verdict,
            alone: verdict,
            reason: noted(with_time(verdict, reason, metrics.first()), &state.note),
            delta: input.delta,
            p: state.p,
            p_holm: None,
            p_bh: None,
            looks: number(state.looks),
            decided_at: state.decided_at.map(number),
            confirmation: confirmation(plan, &state, &sample),
            recurrence: None,
            interval_level: state.levels.printed,
            drifting: None,
            interference: interference(history, &state),
            host_speed: None,
            blocks_to_verdict: state.speed.missing.filter(|_| open).map(number),
            minutes_to_verdict: None,
            blocks: number(pairing.blocks.len()),
            rounds: pairing.rounds(),
            void_rounds: pairing.void_rounds,
            metrics,
            rates: all.rates(),
            latency: merged.curves(),
            costs: Vec::new(),
            cost_rates: None,
            moved: Vec::new(),
            explanation: None,
            series: series(pairing),
            base_errors: pairing.base_errors,
            candidate_errors: pairing.candidate_errors,
            detection: state.detection,
            stalls: stalls.map(|stalls| stalls.named_if(by_stalls)),
        };
        Some(Self { comparison, sample })
    }
}

/// What throughput and CPU per operation say together, with these stalls.
fn decided(
    input: &StoppingInput<'_>,
    state: &StoppingState,
    cell: &Cell,
    sample: &Sample,
    stalls: Option<Stalls>,
) -> Decided {
    let waits = stalls.filter(|stalls| waits(state.speed.verdict, *stalls));
    let typical = waits.map(|stalls| (stalls, typical(sample, input.delta, state.levels)));
    let speed = (&state.speed, typical);
    cell_verdict(cpu_bound(cell), speed, state.cost.as_ref())
}

/// What the typical operation of throughput says.
fn typical(sample: &Sample, delta: f64, levels: Levels) -> JudgedInterval {
    let values = Values::plain(Values::of(&sample.throughput).typical);
    let found = judge(Metric::Throughput, &values, delta, levels, "block");
    (found.verdict, found.gain95)
}

/// `merged` are the latencies of all blocks that count.
fn metrics(
    cell: &Cell,
    history: &History<'_>,
    state: &StoppingState,
    sample: &Sample,
    merged: &Merged,
) -> Vec<MetricComparison> {
    let visits = &state.speed_visits;
    let part = history.counted(visits.end);
    // What counts up to a look may be other rounds than what counts now.
    let same = std::ptr::eq(part, history.counted(history.visits()));
    let own = (!same).then(|| Merged::new(&part.pairing.blocks));
    let latency = |q| {
        let bounds = history.bounds(visits);
        let merged = own.as_ref().unwrap_or(merged);
        bounds.map_or_else(Vec::new, |bounds| merged.quantiles(q, bounds))
    };
    let clients = cell.rate.is_none().then_some(cell.clients);
    // Only what ended the cell was selected by that.
    let plain = Levels {
        early: None,
        ..state.levels
    };
    let judged = |metric, values: &[BlockValue], judgement: Option<&Judgement>| {
        let same = *visits == state.cost_visits;
        let levels = match metric {
            Metric::Throughput => state.levels,
            Metric::ServerCpuPerOperation if same => state.levels,
            _ => plain,
        };
        let comparison = compare_metric(metric, values, clients, levels)?;
        Some(MetricComparison {
            verdict: judgement.map(|judgement| judgement.verdict),
            ..comparison
        })
    };
    let all = history.sample(0..history.visits());
    let metrics = [
        judged(Metric::Throughput, &sample.throughput, Some(&state.speed))
            .map(|found| with_others(found, &all.throughput)),
        judged(
            Metric::ServerCpuPerOperation,
            &sample.server_cpu,
            state.cost.as_ref(),
        )
        .map(|found| with_others(found, &all.server_cpu)),
    ];
    let resolved = own.as_ref().unwrap_or(merged);
    let latencies = Metric::ALL.into_iter().filter_map(|metric| {
        let q = metric.quantile()?;
        // Half of the operations and one in a hundred have always been shown, however few they are.
        let known = resolved.resolve(q);
        let shown = known || matches!(metric, Metric::LatencyP50 | Metric::LatencyP99);
        let found = shown.then(|| judged(metric, &latency(q), None)).flatten()?;
        let judged = known && tails::TAILS.contains(&metric);
        Some(MetricComparison {
            verdict: judged.then(|| tails::verdict(metric, &found, plain)),
            ..found
        })
    });
    metrics.into_iter().flatten().chain(latencies).collect()
}

/// Adds the blocks that a metric does not rest on.
fn with_others(mut found: MetricComparison, all: &[BlockValue]) -> MetricComparison {
    let blocks = all
        .iter()
        .map(|value| value.block)
        .zip(Values::of(all).logs);
    found.other_blocks = blocks
        .filter(|(block, _)| !found.numbers.contains(block))
        .collect();
    found
}

fn series(pairing: &Pairing<'_>) -> Vec<RoundRatio> {
    let rounds = pairing
        .blocks
        .iter()
        .flat_map(|block| block.rounds.iter().map(move |round| (block, round)));
    rounds
        .filter_map(|(block, round)| {
            Some(RoundRatio {
                block: block.block,
                round: round.round,
                throughput: round.throughput()?,
                server_cpu: block.server_cpu(round),
            })
        })
        .collect()
}

/// The disturbed rounds of the visits behind the numbers, and both estimates.
fn interference(history: &History<'_>, state: &StoppingState) -> Interference {
    let visits = history.visits();
    let estimates = |sample: &Sample| {
        Some(Estimates {
            throughput: ratio(&Values::of(&sample.throughput), state.levels)?,
            server_cpu: ratio(&Values::of(&sample.server_cpu), state.levels),
        })
    };
    let both = history.both(state.speed_visits.clone());
    let (with, without) = both.unzip();
    let disturbed_rounds = history.disturbed(visits);
    Interference {
        disturbed_rounds,
        left_out: match history.keeps_disturbed(visits) {
            true => 0,
            false => disturbed_rounds,
        },
        // The flag is about the estimate: what is measured after its blocks says nothing of it.
        contended: history.contended(state.speed_visits.end),
        with_voided: with.as_ref().and_then(estimates),
        without_voided: without.as_ref().and_then(estimates),
    }
}

/// In a run that confirms another: that a cell is measured, which both runs together are then asked about.
fn confirmation(plan: &Plan, state: &StoppingState, sample: &Sample) -> Option<Confirmation> {
    plan.confirms.as_ref()?;
    let measured = sample.throughput.len() >= MIN_BLOCKS;
    (state.progress == CellProgress::Decided && measured).then_some(Confirmation::Open)
}

fn number(value: usize) -> u32 {
    u32::try_from(count(value)).unwrap_or(u32::MAX)
}

/// A reason, with what it ends with.
fn noted(reason: String, note: &Option<String>) -> String {
    match note {
        Some(note) => format!("{reason}; {note}"),
        None => reason,
    }
}

/// The reason of a change, with the time that an operation takes more or less.
pub(crate) fn with_time(
    verdict: Verdict,
    reason: String,
    speed: Option<&MetricComparison>,
) -> String {
    let difference = speed
        .filter(|_| verdict.is_change())
        .and_then(|speed| speed.difference_us);
    difference.map_or(reason.clone(), |difference| {
        format!("{reason}; {}", words::microseconds(&difference))
    })
}

/// The verdict of throughput, unless CPU per operation says otherwise. `typical` is what the typical
/// operation says where throughput changed with stalls: what waits costs no CPU, so CPU is asked about that
/// alone. `bound` if both must tell the same story ([`cpu_bound`]).
pub(crate) fn cell_verdict(
    bound: bool,
    (speed, typical): (&Judgement, Option<(Stalls, JudgedInterval)>),
    cost: Option<&Judgement>,
) -> Decided {
    let denied = |claimed: JudgedInterval| {
        let cost = cost.map(|cost| (cost.verdict, cost.gain95));
        bound && claimed.0.is_change() && cost.is_some_and(|cost| contradicts(claimed, cost))
    };
    let total = (speed.verdict, speed.gain95);
    let claimed = typical.map_or(total, |(_, typical)| typical);
    let stalls = typical.filter(|_| claimed.0 != total.0 || denied(claimed) != denied(total));
    let says = match stalls {
        Some((stalls, _)) => {
            let part = if same_way(claimed, total) {
                "in part "
            } else {
                ""
            };
            let loser = stalls.loser();
            format!("{}, {part}because of stalls of the {loser}", speed.reason)
        }
        None => speed.reason.clone(),
    };
    let found = |verdict, reason| Decided {
        verdict,
        reason,
        by_stalls: stalls.is_some(),
    };
    let Some(cost) = cost else {
        return found(speed.verdict, says);
    };
    let both = format!("{says}; CPU per operation: {}", cost.reason);
    match speed.verdict {
        Verdict::Regression | Verdict::Improvement if denied(claimed) => found(
            Verdict::Inconclusive,
            format!("contradicted by CPU: throughput {both}"),
        ),
        Verdict::Inconclusive if cost.verdict != Verdict::Inconclusive => {
            found(Verdict::Inconclusive, both)
        }
        // As fast, at another price: nobody must have to find that in a column.
        Verdict::NoChange if cost.verdict.is_change() => found(Verdict::NoChange, both),
        _ => found(speed.verdict, says),
    }
}

/// What throughput and CPU per operation say of a cell together.
pub(crate) struct Decided {
    pub(crate) verdict: Verdict,
    pub(crate) reason: String,
    /// Whether stalls have changed what CPU is asked about: the reason names them then.
    pub(crate) by_stalls: bool,
}

impl Decided {
    fn nothing() -> Self {
        Self {
            verdict: Verdict::Inconclusive,
            reason: "nothing measured".to_owned(),
            by_stalls: false,
        }
    }
}

/// Whether throughput and CPU per operation must tell the same story.
///
/// One client has at most one process at work, and a read that finds its pages in memory does not wait.
/// Commits wait for the disk, and several clients wait for each other, so there throughput may move without
/// CPU.
pub(crate) fn cpu_bound(cell: &Cell) -> bool {
    cell.clients == 1 && !cell.writes
}

/// Whether CPU per operation denies what throughput claims: the opposite direction, or no change beyond ±δ.
///
/// "No change" is no denial when it is measurably in the same direction and both intervals overlap: −3.2 %
/// [−3.4, −3.0] and +2.8 % [+2.6, +3.1] are one finding on both sides of a threshold.
///
/// Each with its verdict and its 95 % interval, turned so that below zero is worse.
pub(crate) fn contradicts(speed: JudgedInterval, cost: JudgedInterval) -> bool {
    let opposite = match speed.0 {
        Verdict::Regression => Verdict::Improvement,
        _ => Verdict::Regression,
    };
    if cost.0 != Verdict::NoChange {
        return cost.0 == opposite;
    }
    let (Some(speed), Some(cost)) = (speed.1, cost.1) else {
        return true;
    };
    let same_direction = !cost.contains(0.0) && (cost.low > 0.0) == (speed.low > 0.0);
    let overlap = cost.low <= speed.high && speed.low <= cost.high;
    !(same_direction && overlap)
}

/// Whether the typical operation changed, too, in the direction of the total.
fn same_way(typical: JudgedInterval, total: JudgedInterval) -> bool {
    match (typical.1, total.1) {
        (Some(typical), Some(total)) => {
            !typical.contains(0.0) && (typical.low > 0.0) == (total.low > 0.0)
        }
        _ => typical.0 == total.0,
    }
}

/// A verdict and the interval behind it.
pub(crate) type JudgedInterval = (Verdict, Option<Interval>);
