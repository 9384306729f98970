//! Before the first block of servers: made, loaded, recorded, and piloted.

use super::Session;
use crate::facts::PilotFacts;
use crate::fleet::Fleet;
use crate::occupancy::Occupancy;
use crate::pilot::{Pilot, PilotSpec, pilot};
use deltabench_model::fact::HostFacts;
use deltabench_model::plan::{CacheState, Plan, Stopping};
use deltabench_model::problem::Problem;
use deltabench_observe::{own_affinity, read_host};
use deltabench_workload::executable::Executable;
use std::sync::atomic::Ordering;

/// A run that ends within so many seconds has no pilot: its own first block says how long blocks take.
const SHORT_SECONDS: f64 = 600.0;

fn is_short(plan: &Plan) -> bool {
    let ends = plan.timing.deadline_seconds;
    let asks_how_long = matches!(plan.stopping, Stopping::Precision { .. });
    ends.is_some_and(|seconds| seconds <= SHORT_SECONDS) && !asks_how_long
}

impl<'a> Session<'a> {
    /// The plan's servers, empty, and what the host was before.
    ///
    /// Errors: what this host does not give.
    pub fn fleet(&mut self) -> Result<(Fleet<'a>, HostFacts), Problem> {
        let facts = read_host();
        let mut notes = Vec::new();
        let fleet = Fleet::create(
            self.plan,
            self.benchmark,
            self.run,
            self.host,
            &mut |text| notes.push(text),
        )?;
        for note in &notes {
            self.observer.note(note);
        }
        Ok((fleet, facts))
    }
}

impl Session<'_> {
    /// Loads all servers, stores what they are, and tells how long an answer will take; as far as nobody
    /// interrupts. `executables` are those of the plan's cells.
    ///
    /// Errors: anything that makes measuring impossible.
    pub fn load(
        &mut self,
        fleet: &mut Fleet<'_>,
        executables: &[Executable],
        host: &HostFacts,
    ) -> Result<(), Problem> {
        let observer = &mut *self.observer;
        let loaded = fleet.load(executables, self.interrupted, &mut |text| {
            observer.note(&text);
        })?;
        if let Some(readbacks) = loaded {
            self.record(fleet, &readbacks, host)?;
        }
        self.pilot(fleet, executables)
    }

    /// Says, and stores, how long an answer will take.
    fn pilot(&mut self, fleet: &mut Fleet<'_>, executables: &[Executable]) -> Result<(), Problem> {
        // A pilot's servers stay up: it could say nothing about servers that are rotated, or cooled down.
        let restarted =
            fleet.occupancy() == Occupancy::Rotated || self.plan.cache == CacheState::Cold;
        if !self.pilot || self.interrupted.load(Ordering::Relaxed) {
            return Ok(());
        }
        let short = is_short(self.plan);
        if restarted && !short {
            self.observer.note(
                "no pilot: each server starts only for its turns, but a pilot needs servers that keep \
                 running",
            );
        }
        if restarted || short {
            // Then the first block says how long blocks take.
            self.pilot = false;
            return Ok(());
        }
        self.observer.note("pilot: base and placebo alone");
        let found = pilot(PilotSpec {
            plan: self.plan,
            fleet,
            executables,
            cores: &own_affinity().unwrap_or_default(),
            interrupted: self.interrupted,
            spent_seconds: self.clock.since(self.began),
        })?;
        let Some(found) = found else {
            return Ok(());
        };
        self.observer.pilot(&found);
        if let Some(text) = self.time_allowed(&found) {
            self.observer.note(&text);
        }
        let facts = PilotFacts {
            workloads: found.workloads,
            sd_throughput: found.sd.0,
            sd_server_cpu: found.sd.1,
            seconds_per_block: found.seconds_per_block,
        };
        self.fact(None, &facts)
    }

    /// What the time allowed buys, and what it does not.
    fn time_allowed(&self, found: &Pilot) -> Option<String> {
        let timing = &self.plan.timing;
        let minutes = timing.deadline_seconds? / 60.0;
        if let Stopping::Precision { half_width } = &self.plan.stopping {
            return found.forecast.unfit(*half_width, minutes);
        }
        let whole = f64::from(timing.blocks) * found.seconds_per_block / 60.0;
        Some(match found.forecast.half_width_in(minutes) {
            // Then the plan's blocks end the run, and the rows above say what they take.
            Some(_) if whole < minutes => return None,
            None => format!("{minutes:.0} min are too short for six blocks of this plan"),
            Some(half) => format!(
                "{minutes:.0} min give about ±{:.1} % of throughput on these in half of all runs",
                100.0 * half
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::is_short;
    use crate::planning::tests::plan_of;
    use deltabench_model::plan::Stopping;

    #[test]
    fn a_run_of_ten_minutes_has_no_pilot_unless_it_asks_how_long_a_width_takes() {
        let mut plan = plan_of(&["a", "a", "b"], 1);
        assert!(!is_short(&plan), "no time is set");
        plan.timing.deadline_seconds = Some(600.0);
        assert!(is_short(&plan));
        plan.timing.deadline_seconds = Some(601.0);
        assert!(!is_short(&plan));
        plan.timing.deadline_seconds = Some(60.0);
        plan.stopping = Stopping::Precision { half_width: 0.01 };
        assert!(!is_short(&plan));
    }
}
