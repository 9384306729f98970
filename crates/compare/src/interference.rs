//! Rounds that other load disturbed.
//!
//! The rule looks at steal, foreign CPU and idle servers of whole rounds, never at what was measured in them,
//! so that leaving a round out cannot prefer an outcome.

use crate::thresholds::{
    DISTURBED_WINDOW_NS, FOREIGN_FLOOR_NS, FOREIGN_SHARE, IDLE_FLOOR_NS, IDLE_SHARE,
    ROUNDS_TOGETHER, STEAL_SHARE,
};
use crate::witness::Rounds;
use deltabench_model::slice::Slice;
use deltabench_model::units::{index, to_f64, to_u64};
use deltabench_stats::summary::median;
use std::collections::BTreeSet;

/// What CPU of processes that are not ours says of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Foreign {
    /// It disturbs from a share of a core on.
    Disturbs,
    /// Nothing: where it keeps a server off its core, what that waits for the core shows it. On other cores
    /// it hinders all servers alike on average (docs/decisions/0057).
    SeenInWaits,
}

/// The rounds of a cell that other load disturbed, by block and round.
///
/// Clocks of the host count in ticks. So rounds that are shorter than [`DISTURBED_WINDOW_NS`] are judged with
/// their neighbours of the same connections, as few together as are that long, by the median of these rounds,
/// and [`ROUNDS_TOGETHER`] at most. What is left at the end belongs to the last of them.
pub(crate) fn disturbed_rounds(rounds: &Rounds<'_>, foreign: Foreign) -> BTreeSet<(u32, u32)> {
    let all: Vec<(&(u32, u32), &Vec<&Slice>)> = rounds.iter().collect();
    let of = |(at, slices): &(&(u32, u32), &Vec<&Slice>)| {
        let first = slices.first().map(|slice| slice.connection);
        (at.0, first)
    };
    let sets = all.chunk_by(|one, other| of(one) == of(other));
    let windows = sets.flat_map(|set| {
        let lengths: Vec<f64> = { set.iter() }
            .map(|(_, slices)| to_f64(slices.iter().map(|slice| slice.duration_ns).sum()))
            .collect();
        let together = median(&lengths).map_or(1, rounds_together);
        (0..(set.len() / together).max(1)).map(move |at| {
            let end = (at + 1) * together;
            let is_last = end + together > set.len();
            let end = if is_last { set.len() } else { end };
            set.get(at * together..end).unwrap_or_default()
        })
    });
    let found = windows.filter(|window| {
        let slices = window.iter().flat_map(|(_, slices)| slices.iter().copied());
        is_disturbed(slices, foreign)
    });
    found
        .flat_map(|window| window.iter().map(|(at, _)| **at))
        .collect()
}

/// How many rounds that typically last so many nanoseconds are judged together.
fn rounds_together(typical_ns: f64) -> usize {
    if typical_ns <= 0.0 {
        return 1;
    }
    let needed = (to_f64(DISTURBED_WINDOW_NS) / typical_ns).ceil();
    index(to_u64(needed)).clamp(1, ROUNDS_TOGETHER)
}

/// Whether other load disturbed a time, from all slices in it.
///
/// What was not recorded disturbs nothing. Shares are of the duration of those slices that recorded it.
pub fn disturbed<'a>(all: impl Iterator<Item = &'a Slice> + Clone) -> bool {
    is_disturbed(all, Foreign::Disturbs)
}

fn is_disturbed<'a>(all: impl Iterator<Item = &'a Slice> + Clone, rule: Foreign) -> bool {
    let span = |of: fn(&Slice) -> Option<u64>| {
        let known = all
            .clone()
            .filter_map(|slice| Some((of(slice)?, slice.whole_ns())));
        known.fold((0_u64, 0_u64), |(sum, time), (ns, duration)| {
            (sum.saturating_add(ns), time.saturating_add(duration))
        })
    };
    let above = |(ns, duration): (u64, u64), share: f64| to_f64(ns) > share * to_f64(duration);
    let (foreign, time) = span(|slice| slice.foreign_cpu_ns);
    let idle = span(|slice| slice.idle_cpu_ns);
    above(span(|slice| slice.steal_ns), STEAL_SHARE)
        || (rule == Foreign::Disturbs
            && above(
                (foreign.saturating_sub(FOREIGN_FLOOR_NS), time),
                FOREIGN_SHARE,
            ))
        || (idle.0 > IDLE_FLOOR_NS && above(idle, IDLE_SHARE))
}
