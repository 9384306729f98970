//! When a pair of servers in a cell is done, by the stopping rule of its plan, and what is said of it then.

use crate::comparison::{Detection, DetectionOutcome, Metric, Verdict};
use crate::history::History;
use crate::judge::{Judgement, gains, judge, waiting};
use crate::levels::{Levels, is_asked_of_cpu, scaled};
use crate::looks::Rules;
use crate::sample::{Values, ratio};
use crate::selected::left_of;
use crate::thresholds::{
    CLEAR_BLOCKS, CLEAR_ERRORS, CONFIRM_BLOCKS, CONFIRM_P, CONFIRM_POWER, GATE_FALSE, MIN_BLOCKS,
    NOTHING_LEFT, OVERSTATED_TOLD, SD_LEVEL, WIDER_TOLD,
};
use crate::words;
use deltabench_model::plan::{Plan, Stopping};
use deltabench_model::units::{count, index, to_f64};
use deltabench_stats::chi_square::sd_at_most;
use deltabench_stats::multiplicity::fisher_of_two;
use deltabench_stats::student::t_quantile;
use deltabench_stats::summary::{mean, sample_sd};
use std::ops::Range;

/// The blocks that a cell of a plan needs for its answer, or all of them if fewer are planned.
pub fn blocks_needed(plan: &Plan) -> u64 {
    count(MIN_BLOCKS).min(u64::from(plan.timing.blocks))
}

/// What a cell still needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellProgress {
    /// More blocks.
    Measuring {
        /// Blocks in which the cell has been visited when it is looked at next.
        next_look: u32,
    },
    /// Fresh blocks for a difference that a look has found; nothing else about it is open.
    Confirming {
        /// Blocks still needed.
        blocks_left: u32,
    },
    /// Nothing: further blocks would not be looked at.
    Decided,
}

impl CellProgress {
    /// What two candidates need together.
    pub(crate) fn and(self, other: Self) -> Self {
        use CellProgress::{Confirming, Decided, Measuring};
        match (self, other) {
            (Measuring { next_look: a }, Measuring { next_look: b }) => Measuring {
                next_look: a.min(b),
            },
            (Confirming { blocks_left: a }, Confirming { blocks_left: b }) => Confirming {
                blocks_left: a.max(b),
            },
            (Decided, other) | (other, Decided) => other,
            (measuring @ Measuring { .. }, _) | (_, measuring) => measuring,
        }
    }
}

/// Where a pair of servers stands in a cell.
pub(crate) struct StoppingState {
    /// What is still to be measured.
    pub(crate) progress: CellProgress,
    pub(crate) looks: usize,
    /// The look that decided, from 1.
    pub(crate) decided_at: Option<usize>,
    pub(crate) detection: Option<Detection>,
    /// p of throughput, valid however often was looked.
    pub(crate) p: Option<f64>,
    pub(crate) speed: Judgement,
    /// What the cell's reason ends with.
    pub(crate) note: Option<String>,
    /// Absent where CPU is not known.
    pub(crate) cost: Option<Judgement>,
    /// Visits behind the numbers of throughput.
    pub(crate) speed_visits: Range<usize>,
    /// Visits behind the numbers of CPU per operation.
    pub(crate) cost_visits: Range<usize>,
    pub(crate) levels: Levels,
}

/// What the stopping rule is applied to: a pair of servers in a cell.
pub(crate) struct StoppingInput<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) history: &'a History<'a>,
    /// δ of the cell, as a share.
    pub(crate) delta: f64,
}

impl StoppingInput<'_> {
    /// The state under the plan's own stopping rule.
    pub(crate) fn state(&self) -> StoppingState {
        match &self.plan.stopping {
            Stopping::Fixed => self.fixed(),
            Stopping::Precision { half_width } => self.precision(*half_width),
            Stopping::Sequential { looks } => Walk::new(self, looks).state(),
        }
    }

    /// The state of a pair that is judged once, on whatever there is.
    pub(crate) fn fixed(&self) -> StoppingState {
        let have = self.history.visits();
        let planned = index(u64::from(self.plan.timing.blocks));
        self.plain(have, have >= planned, planned, Levels::FIXED)
    }

    /// Stops at the first block from [`MIN_BLOCKS`] on at which the intervals of throughput and of CPU per
    /// operation, if half of the blocks have it, are narrow enough. Only the width is looked at, so stopping
    /// biases the estimate hardly: with stalls by a few hundredths of it, as blocks that met few of them look
    /// narrow (docs/measuring.md#looking-more-than-once).
    fn precision(&self, half_width: f64) -> StoppingState {
        let have = self.history.visits();
        let narrow = (MIN_BLOCKS..=have).find_map(|visits| {
            let (speed, cost) = (self.speed(&(0..visits)), self.cost(&(0..visits)));
            let blocks = speed.logs.len();
            let levels = Levels::at_width(blocks);
            let is_narrow = |values: &Values| {
                let width = values.mean()?.interval(levels.printed).half_width();
                Some(width <= half_width.ln_1p())
            };
            let is_asked = is_asked_of_cpu(cost.logs.len(), blocks);
            let wanted = [Some(&speed), is_asked.then_some(&cost)];
            let mut wanted = wanted.into_iter().flatten();
            let all = wanted.all(|values| is_narrow(values) == Some(true));
            (blocks >= MIN_BLOCKS && all).then_some((visits, levels))
        });
        let planned = index(u64::from(self.plan.timing.blocks));
        let next = (have + 1).max(MIN_BLOCKS);
        let done = narrow.is_some() || have >= planned;
        let (visits, levels) = narrow.unwrap_or_else(|| {
            let blocks = self.speed(&(0..have)).logs.len();
            (have, Levels::at_width(blocks))
        });
        let mut state = self.plain(visits, done, next, levels);
        state.p = state.p.map(|p| scaled(p, state.levels.printed));
        state
    }

    /// One judgement on the first `visits` visits.
    fn plain(&self, visits: usize, done: bool, next: usize, levels: Levels) -> StoppingState {
        let (speed, cost) = (self.speed(&(0..visits)), self.cost(&(0..visits)));
        StoppingState {
            progress: if done {
                CellProgress::Decided
            } else {
                CellProgress::Measuring {
                    next_look: number(next),
                }
            },
            looks: 0,
            decided_at: None,
            detection: None,
            p: speed.mean().map(|mean| mean.p()),
            speed: self.judge_speed(&speed, levels),
            note: None,
            cost: self.judge_cost(&cost, levels),
            speed_visits: 0..visits,
            cost_visits: 0..visits,
            levels,
        }
    }

    /// Block values of throughput.
    fn speed(&self, visits: &Range<usize>) -> Values {
        Values::of(&self.history.sample(visits.clone()).throughput)
    }

    /// Block values of CPU per operation.
    fn cost(&self, visits: &Range<usize>) -> Values {
        Values::of(&self.history.sample(visits.clone()).server_cpu)
    }

    pub(crate) fn judge_speed(&self, values: &Values, levels: Levels) -> Judgement {
        let repeat = self.plan.work.repeat();
        judge(Metric::Throughput, values, self.delta, levels, repeat)
    }

    fn judge_cost(&self, values: &Values, levels: Levels) -> Option<Judgement> {
        let known = !values.logs.is_empty();
        let repeat = self.plan.work.repeat();
        known.then(|| {
            judge(
                Metric::ServerCpuPerOperation,
                values,
                self.delta,
                levels,
                repeat,
            )
        })
    }

    /// Comparisons that share the gate's error.
    fn family(&self) -> f64 {
        let cells = self.plan.cells.len() * self.plan.candidates().len();
        to_f64(count(cells.max(1)))
    }
}

/// A walk from look to look.
///
/// Each look judges what was measured up to it, whatever has come since, so that the same data always give
/// the same state. Looks count visits: a visit whose rounds are void has been spent too.
struct Walk<'a> {
    input: &'a StoppingInput<'a>,
    rules: std::sync::Arc<Rules>,
    looks: usize,
    p: Option<f64>,
}

impl<'a> Walk<'a> {
    fn new(input: &'a StoppingInput<'a>, looks: &[u32]) -> Self {
        Self {
            input,
            rules: Rules::of(looks),
            looks: 0,
            p: None,
        }
    }

    fn state(mut self) -> StoppingState {
        let have = self.input.history.visits();
        let looks = self.rules.looks.clone();
        for (look, &at) in looks.iter().enumerate() {
            if have < at {
                return self.wait(at);
            }
            self.looks = look + 1;
            let visits = 0..at;
            let next = looks.get(look + 1).copied();
            let levels = self.levels(look);
            let values = self.input.speed(&visits);
            self.note_p(look, &values);
            let speed = self.input.judge_speed(&values, levels);
            match (speed.verdict, next) {
                (Verdict::NoChange, Some(next)) => return self.equal(speed, &values, at, next),
                (found @ (Verdict::Regression | Verdict::Improvement), Some(_)) => {
                    if let Some(clear) = self.clear(at, found) {
                        return clear;
                    }
                    if self.settles(at, &values) {
                        return self.confirm(look, at, &values);
                    }
                }
                (_, None) => return self.end(speed, &values, at, levels),
                _ => {}
            }
        }
        // A plan without looks has nothing to say yet.
        self.wait(1)
    }

    /// Levels of a look, from 0. What is equal at one before the last ends there.
    fn levels(&self, look: usize) -> Levels {
        let levels = self.rules.levels(look);
        match look + 1 == self.rules.looks.len() {
            true => levels,
            false => levels.ending(self.input.delta),
        }
    }

    fn note_p(&mut self, look: usize, values: &Values) {
        if values.logs.len() >= MIN_BLOCKS
            && let Some(mean) = values.mean()
        {
            let repeated = self.rules.repeated_p(look, mean.p());
            self.p = Some(self.p.map_or(repeated, |before| before.min(repeated)));
        }
    }

    /// Whether a difference found here is worth stopping for: the fresh blocks fit in, would very likely
    /// confirm it at the size found, and both together would hold in the whole family.
    fn settles(&self, at: usize, values: &Values) -> bool {
        let last = self.rules.looks.last().copied().unwrap_or(0);
        let (Some(centre), Some(sd)) = (mean(&values.logs), sample_sd(&values.logs)) else {
            return false;
        };
        // A difference is more easily found where the sd happens to look small.
        let sd = sd_at_most(sd, to_f64(count(values.logs.len())) - 1.0, SD_LEVEL);
        let values = values.times(centre.signum());
        let Some(again) = values.of_blocks(CONFIRM_BLOCKS, sd) else {
            return false;
        };
        let df = to_f64(count(CONFIRM_BLOCKS)) - 1.0;
        let room = t_quantile(CONFIRM_POWER, df) * again.error();
        let together = fisher_of_two(self.p.unwrap_or(1.0), again.p_above());
        at + CONFIRM_BLOCKS <= last
            && again.interval(1.0 - 2.0 * CONFIRM_P).low >= room
            && together * self.input.family() <= GATE_FALSE
    }

    /// Equal. If CPU per operation is still open, it gets the blocks up to the next look, and no more.
    fn equal(self, speed: Judgement, values: &Values, at: usize, next: usize) -> StoppingState {
        let look = self.looks - 1;
        let levels = self.levels(look);
        // What stops early is what happened to look small, so the reason says that it did.
        let when = format!("at look {} of {}", self.looks, self.rules.looks.len());
        let wider = values.mean().map_or(1.0, |mean| {
            levels.interval(&mean).half_width() / mean.interval(levels.printed).half_width()
        });
        let wider = (wider >= WIDER_TOLD)
            .then(|| format!(" (interval {} wider for that)", words::percent(wider - 1.0)));
        let speed = Judgement {
            reason: format!("{}, {when}{}", speed.reason, wider.unwrap_or_default()),
            ..speed
        };
        let (input, rules) = (self.input, std::sync::Arc::clone(&self.rules));
        let cost = input.judge_cost(&input.cost(&(0..at)), levels);
        let open = cost
            .as_ref()
            .is_some_and(|cost| cost.verdict == Verdict::Inconclusive);
        let printed = Levels {
            early: levels.early,
            ..Levels::FIXED
        };
        let mut state = self.decided(speed, 0..at, printed);
        state.cost = cost;
        if open && input.history.visits() < next {
            state.progress = CellProgress::Measuring {
                next_look: number(next),
            };
        } else if open {
            state.cost = input.judge_cost(&input.cost(&(0..next)), rules.levels(look + 1));
            state.cost_visits = 0..next;
            state.looks += 1;
        }
        state
    }

    /// A difference before the last look: fresh blocks decide, and all numbers come from them.
    fn confirm(self, look: usize, at: usize, values: &Values) -> StoppingState {
        let input = self.input;
        let fresh = self.fresh(at, CONFIRM_BLOCKS);
        let slower = gains(Metric::Throughput, values)
            .mean()
            .is_some_and(|gain| gain.centre < 0.0);
        let p = self.p.unwrap_or(1.0);
        let again = input.speed(&fresh);
        let blocks_left = CONFIRM_BLOCKS.saturating_sub(again.logs.len());
        let outcome = if blocks_left > 0 {
            DetectionOutcome::Confirming {
                blocks_left: number(blocks_left),
            }
        } else {
            recurrence(&again, slower)
        };
        let detection = ratio(values, Levels::FIXED).map(|throughput| Detection {
            look: number(look + 1),
            blocks: number(values.logs.len()),
            throughput,
            p,
            outcome,
        });
        let mut state = match outcome {
            DetectionOutcome::Confirming { blocks_left } => {
                let what = format!(
                    "{} at look {}, {} to confirm it",
                    found_word(slower),
                    look + 1,
                    words::more(index(u64::from(blocks_left)), input.plan.work.repeat())
                );
                let mut state = self.waiting(&what, CellProgress::Confirming { blocks_left });
                state.speed.missing = Some(index(u64::from(blocks_left)));
                state
            }
            DetectionOutcome::Recurred { p: p_again }
            | DetectionOutcome::DidNotRecur { p: p_again } => {
                let judged = |levels| input.judge_speed(&again, levels);
                let found = Found {
                    slower,
                    look: look + 1,
                    recurred: matches!(outcome, DetectionOutcome::Recurred { .. }),
                    delta: input.delta,
                };
                let plain = judged(Levels::FIXED);
                let speed = found.again(judged(Levels::FRESH), &plain);
                let mut state = self.decided(speed, fresh, Levels::FIXED);
                state.p = Some(fisher_of_two(p, p_again));
                state
            }
        };
        state.detection = detection;
        state
    }

    /// The visits after a look up to the one that gives the last of so many fresh blocks.
    fn fresh(&self, at: usize, blocks: usize) -> Range<usize> {
        let history = self.input.history;
        let enough = |end: &usize| self.input.speed(&(at..*end)).logs.len() >= blocks;
        let end = (at + blocks..=history.visits()).find(enough);
        at..end.unwrap_or(history.visits())
    }

    /// The state of a difference that is so large after the first fresh blocks that it does not matter that a
    /// look has found it; `None` if it is not, or while these are missing. Whether six would fit in is not
    /// asked: a cell that has ended so stays as it is where the time of the run is up soon after.
    fn clear(&self, at: usize, found: Verdict) -> Option<StoppingState> {
        let input = self.input;
        let first = self.fresh(at, CLEAR_BLOCKS);
        if input.speed(&first).logs.len() < CLEAR_BLOCKS {
            return None;
        }
        let visits = 0..first.end;
        let values = input.speed(&visits);
        let mean = values.mean()?;
        let levels = Levels::EARLY;
        let speed = input.judge_speed(&values, levels);
        if mean.centre.abs() < CLEAR_ERRORS * mean.error() || speed.verdict != found {
            return None;
        }
        let (blocks, repeat) = (values.logs.len(), words::several(input.plan.work.repeat()));
        let when = format!("look {}, clear after {blocks} {repeat}", self.looks);
        let speed = Judgement {
            reason: format!("{} ({when})", speed.reason),
            ..speed
        };
        let mut state = self.decided(speed, visits, levels);
        state.p = Some(scaled(mean.p(), levels.printed));
        Some(state)
    }

    /// The last look: all blocks count.
    fn end(self, speed: Judgement, values: &Values, at: usize, levels: Levels) -> StoppingState {
        let input = self.input;
        let note = overstated(&speed, values, levels);
        let cost = input.judge_cost(&input.cost(&(0..at)), levels);
        let open = speed.verdict == Verdict::Inconclusive;
        let mut state = self.decided(speed, 0..at, Levels::FIXED);
        state.cost = cost;
        state.note = note;
        state.decided_at = state.decided_at.filter(|_| !open);
        state
    }

    /// Nothing decided: the numbers are those of all visits.
    fn wait(self, next: usize) -> StoppingState {
        let what = format!("next look after {next} blocks");
        let have = self.input.history.visits();
        let next_look = number(next);
        let mut state = self.waiting(&what, CellProgress::Measuring { next_look });
        let least = next.saturating_sub(have);
        state.speed.missing = state.speed.missing.map(|missing| missing.max(least));
        state
    }

    fn waiting(self, what: &str, progress: CellProgress) -> StoppingState {
        let input = self.input;
        let all = 0..input.history.visits();
        let speed = waiting(Metric::Throughput, &input.speed(&all), input.delta, what);
        let cost = input.cost(&all);
        let cost = (!cost.logs.is_empty())
            .then(|| waiting(Metric::ServerCpuPerOperation, &cost, input.delta, what));
        let mut state = self.decided(speed, all, Levels::FIXED);
        state.cost = cost;
        state.decided_at = None;
        state.progress = progress;
        state
    }

    fn decided(&self, speed: Judgement, visits: Range<usize>, levels: Levels) -> StoppingState {
        let cost = self.input.cost(&visits);
        StoppingState {
            progress: CellProgress::Decided,
            looks: self.looks,
            decided_at: Some(self.looks),
            detection: None,
            p: self.p,
            speed,
            note: None,
            cost: self.input.judge_cost(&cost, levels),
            speed_visits: visits.clone(),
            cost_visits: visits,
            levels,
        }
    }
}

/// What is added to the reason of a change that the last look has found: no fresh blocks say its size, and a
/// value that had to be so large to be found is too large on average. Nothing where that is little.
fn overstated(speed: &Judgement, values: &Values, levels: Levels) -> Option<String> {
    let mean = values.mean().filter(|_| speed.verdict.is_change())?;
    let left = left_of(&mean, levels.different)?;
    (left.abs() < OVERSTATED_TOLD * mean.centre.abs()).then(|| {
        let left = match left.exp_m1() {
            none if none.abs() < NOTHING_LEFT => "hardly anything is left".to_owned(),
            left => format!("about {}", words::signed(left)),
        };
        format!("found at the last look, where sizes are too large on average: {left} without that")
    })
}

/// What fresh blocks say about a direction that was found.
fn recurrence(values: &Values, slower: bool) -> DetectionOutcome {
    let turned = gains(Metric::Throughput, values).times(if slower { -1.0 } else { 1.0 });
    let p = turned.mean().map_or(1.0, |mean| mean.p_above());
    if p <= CONFIRM_P {
        DetectionOutcome::Recurred { p }
    } else {
        DetectionOutcome::DidNotRecur { p }
    }
}

/// A difference that has been measured again.
struct Found {
    slower: bool,
    /// From 1.
    look: usize,
    recurred: bool,
    delta: f64,
}

impl Found {
    /// The judgement of the fresh blocks, told with what had been found before.
    ///
    /// They confirm, or they show equality, which has a small error of its own here, or
    /// neither. What the plain 90 % interval holds within ±δ is never called different; where the stricter
    /// test does not, it is open.
    fn again(&self, fresh: Judgement, plain: &Judgement) -> Judgement {
        let found = format!("{} at look {}", found_word(self.slower), self.look);
        let open = |reason| Judgement {
            verdict: Verdict::Inconclusive,
            reason,
            ..fresh.clone()
        };
        match fresh.verdict {
            Verdict::NoChange => {
                let again = if self.recurred { "" } else { ", did not recur" };
                Judgement {
                    reason: format!("{}; {found}{again}", fresh.reason),
                    ..fresh
                }
            }
            _ if plain.verdict == Verdict::NoChange => {
                let limit = words::threshold(self.delta);
                Judgement {
                    missing: None,
                    ..open(format!(
                        "{found}; fresh blocks lie within ±{limit}, but are too few to be sure"
                    ))
                }
            }
            _ if self.recurred => Judgement {
                reason: format!("{} (look {}, recurred)", fresh.reason, self.look),
                ..fresh
            },
            _ => open(format!(
                "{found}, did not recur: fresh blocks {}",
                fresh.reason
            )),
        }
    }
}

fn found_word(slower: bool) -> &'static str {
    if slower {
        "found slower"
    } else {
        "found faster"
    }
}

fn number(value: usize) -> u32 {
    u32::try_from(count(value)).unwrap_or(u32::MAX)
}
