//! The plan that samples where the time of a finished run's cells goes.

use crate::estimate::planned_time;
use crate::occupancy::{Machine, Occupancy, PlannedTime};
use crate::session::benchmark::Benchmark;
use deltabench_model::plan::{
    CacheState, CellId, Gate, Observing, Plan, PlannedServer, ProfilePlan, Stopping,
};
use deltabench_model::problem::Problem;
use deltabench_model::units::{count, to_f64, to_u64};
use deltabench_workload::mix;
use std::ops::RangeInclusive;

/// Blocks of such a run, as many as its time allows: intervals are over restarts.
const BLOCKS: RangeInclusive<u32> = 2..=8;

/// Measured seconds of each visit: they say what CPU an operation takes without samples.
const VISIT_SECONDS: f64 = 1.0;

/// Fewer sampled seconds of a visit than this are not worth a restart.
const LEAST_SECONDS: f64 = 0.5;

/// Makes the seed of such a run another one than that of its run.
const SAMPLES_SEED: u64 = 0x5a_3b_1e;

/// What is asked of it.
#[derive(Debug, Clone, Copy)]
pub struct SamplesWish {
    /// Samples a second and core.
    pub rate: u32,
    /// Seconds of measuring for each cell.
    pub cell_seconds: f64,
    /// Whether kernels are sampled that are known to hang.
    pub forced: bool,
}

/// The plan that samples the time of those cells of a run, under the run's own conditions.
///
/// Errors: work or servers that cannot be sampled; a time that is too short, with one that would do.
pub fn samples(
    run: &str,
    plan: &Plan,
    cells: &[CellId],
    wish: SamplesWish,
    benchmark: &dyn Benchmark,
) -> Result<Plan, Problem> {
    // Others cannot be sampled.
    let time =
        |plan: &Plan| planned_time(plan, benchmark, Occupancy::Together, Machine::here().cores);
    planned((run, plan), cells, wish, &time)
}

fn planned(
    (run, plan): (&str, &Plan),
    cells: &[CellId],
    wish: SamplesWish,
    time: &dyn Fn(&Plan) -> Result<PlannedTime, Problem>,
) -> Result<Plan, Problem> {
    check(plan)?;
    let mut again = plan.clone();
    again.cells = cells
        .iter()
        .filter_map(|id| plan.cell(*id).cloned())
        .collect();
    again.seed = mix(plan.seed, &[SAMPLES_SEED]) >> 11;
    again.timing.visit_seconds = VISIT_SECONDS;
    again.timing.write_seconds = None;
    again.timing.deadline_seconds = None;
    again.stopping = Stopping::Fixed;
    again.gate = Gate::default();
    again.confirms = None;
    again.session = None;
    again.sensitivity = None;
    again.experiment = None;
    again.samples = Some(run.to_owned());
    again.observing = Observing {
        counters: false,
        ..Observing::default()
    };
    let allowed = wish.cell_seconds * to_f64(count(again.cells.len()));
    let visits = to_f64(count(again.cells.len() * again.servers.len()));
    let mut shortest = f64::INFINITY;
    for blocks in BLOCKS.rev() {
        again.timing.blocks = blocks;
        let visits = visits * f64::from(blocks);
        let measuring = time(&again)?.measuring;
        let seconds = (allowed - measuring) / visits;
        if seconds >= LEAST_SECONDS {
            again.observing.profile = Some(ProfilePlan {
                rate: wish.rate,
                milliseconds: u32::try_from(to_u64(seconds * 1e3)).unwrap_or(u32::MAX),
                forced: wish.forced,
            });
            return Ok(again);
        }
        shortest = measuring + LEAST_SECONDS * visits;
    }
    let needed = (shortest / to_f64(count(cells.len()))).ceil();
    Err(Problem::new("the time for samples is too short")
        .detail("two restarts are the least, each with half a second of samples of every server")
        .hint(format!("allow about --budget {needed:.0}s")))
}

/// Refuses runs whose servers cannot be sampled.
fn check(plan: &Plan) -> Result<(), Problem> {
    let elsewhere = |server: &&PlannedServer| server.installation.remote.is_some();
    if let Some(server) = plan.servers.iter().find(elsewhere) {
        let name = &server.installation.resolved;
        return Err(
            Problem::new(format!("the time of {name} cannot be sampled"))
                .detail(
                    "samples are taken on cores of this machine, of servers that deltabench starts",
                )
                .hint("leave out --sample"),
        );
    }
    if plan.work.is_embedded() || plan.work.has_passes() {
        return Err(Problem::new(format!(
            "the time of {} cannot be sampled",
            plan.work.title()
        ))
        .detail("samples are taken in separate slices, between two measured ones")
        .hint("leave out --sample"));
    }
    if plan.cache == CacheState::Cold {
        return Err(Problem::new("time from cold caches cannot be sampled")
            .detail("samples are taken after the measured slices, when caches are warm")
            .hint("leave out --sample"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planning::tests::plan_of;

    /// Each visit takes its time and a second on each server.
    fn time(plan: &Plan) -> Result<PlannedTime, Problem> {
        let visits = to_f64(count(plan.cells.len() * plan.servers.len()));
        Ok(PlannedTime {
            set_up: 10.0,
            measuring: f64::from(plan.timing.blocks) * visits * (plan.timing.visit_seconds + 1.0),
        })
    }

    fn wish(cell_seconds: f64) -> SamplesWish {
        SamplesWish {
            rate: 499,
            cell_seconds,
            forced: false,
        }
    }

    #[test]
    fn a_budget_buys_restarts_first_and_then_samples() {
        let plan = plan_of(&["a", "a", "b"], 3);
        let planned = |seconds| planned(("r", &plan), &[CellId(2)], wish(seconds), &time);
        let of = |plan: &Plan| (plan.timing.blocks, plan.observing.profile.unwrap());
        let long = planned(180.0).unwrap();
        let (blocks, profile) = of(&long);
        assert_eq!((blocks, profile.rate), (8, 499));
        // 24 visits of 7.5 s, two of them beside the samples.
        assert_eq!(profile.milliseconds, 5500);
        assert_eq!(long.cells, [plan.cells[2].clone()]);
        assert_eq!(long.samples.as_deref(), Some("r"));
        assert_ne!(long.seed, plan.seed);
        let short = planned(40.0).unwrap();
        let (fewer, profile) = of(&short);
        assert_eq!((fewer, profile.milliseconds), (5, 667));
        let refused = planned(14.0).unwrap_err();
        assert_eq!(refused.hint.unwrap(), "allow about --budget 15s");
    }

    #[test]
    fn cold_caches_have_no_time_to_sample() {
        let mut plan = plan_of(&["a", "a", "b"], 1);
        plan.cache = CacheState::Cold;
        let refused = planned(("r", &plan), &[CellId(0)], wish(180.0), &time);
        assert!(refused.unwrap_err().error.contains("cold"));
    }
}
