//! Rounds that other load disturbed.
//!
//! The rule looks at steal, foreign CPU and idle servers of a whole round, never at what was measured in it,
//! so that leaving a round out cannot prefer an outcome.

use crate::thresholds::{FOREIGN_FLOOR_NS, FOREIGN_SHARE, IDLE_FLOOR_NS, IDLE_SHARE, STEAL_SHARE};
use deltabench_model::slice::Slice;
use deltabench_model::units::to_f64;

/// Whether a round is disturbed, from the slices of all its servers.
///
/// What was not recorded disturbs nothing. Shares are of the duration of those slices that recorded it.
pub fn disturbed<'a>(round: impl Iterator<Item = &'a Slice> + Clone) -> bool {
    let span = |of: fn(&Slice) -> Option<u64>| {
        let known = round
            .clone()
            .filter_map(|slice| Some((of(slice)?, slice.duration_ns)));
        known.fold((0_u64, 0_u64), |(sum, time), (ns, duration)| {
            (sum.saturating_add(ns), time.saturating_add(duration))
        })
    };
    let above = |(ns, duration): (u64, u64), share: f64| to_f64(ns) > share * to_f64(duration);
    let (foreign, time) = span(|slice| slice.foreign_cpu_ns);
    let idle = span(|slice| slice.idle_cpu_ns);
    above(span(|slice| slice.steal_ns), STEAL_SHARE)
        || above(
            (foreign.saturating_sub(FOREIGN_FLOOR_NS), time),
            FOREIGN_SHARE,
        )
        || (idle.0 > IDLE_FLOOR_NS && above(idle, IDLE_SHARE))
}
