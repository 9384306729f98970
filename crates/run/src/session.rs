//! A run from its plan to its last slice; also the rest of a run that was killed.

mod blocks;
mod client;
mod observed;
mod passes;
mod record;
mod rocksdb;

use crate::events::Observer;
use crate::fleet::{Fleet, Host};
use crate::pilot::{Pilot, PilotSpec, pilot};
use crate::residence::Residence;
pub use blocks::TIME_UP;
use blocks::{Course, Measuring};
use deltabench_model::insert::InsertSetup;
use deltabench_model::plan::{CacheState, Plan, Stopping};
use deltabench_model::problem::Problem;
use deltabench_observe::{HostFacts, Series, own_affinity};
use deltabench_store::Store;
use deltabench_workload::Library;
use deltabench_workload::executable::Executable;
use passes::Passing;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// After this many lost servers in one session the run ends.
const LOSSES_MAX: u32 = 3;

/// How a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionEnd {
    /// Every block is done, or the deadline came after one.
    Finished,
    /// The user stopped it; `resume` goes on.
    Interrupted,
}

/// One session of a run: all of it, or what was left.
pub struct Session<'a> {
    /// The plan, as stored.
    pub plan: &'a Plan,
    /// The run's name.
    pub run: &'a str,
    /// Where slices go.
    pub store: &'a mut Store,
    /// Where servers live.
    pub host: &'a Host,
    /// The workload definitions.
    pub library: &'a Library,
    /// Whether to find out first how long an answer will take.
    pub pilot: bool,
    /// Set when the user wants to stop.
    pub interrupted: &'a AtomicBool,
    /// Who hears about progress.
    pub observer: &'a mut dyn Observer,
}

impl Session<'_> {
    /// Sets servers up, measures all blocks that are not done, and takes everything down again.
    ///
    /// Errors: anything that makes measuring impossible; what was measured before stays in the store.
    pub fn execute(&mut self) -> Result<SessionEnd, Problem> {
        let began = Instant::now();
        if let Some(setup) = self.plan.work.rocksdb() {
            return self.rocksdb(setup, began);
        }
        let executables = compile(self.plan, self.library)?;
        let done = self
            .store
            .completed_visits(self.run)
            .map_err(store_problem)?;
        let slices = self.store.slices(self.run).map_err(store_problem)?;
        let facts = HostFacts::read();
        let mut notes = Vec::new();
        let mut fleet =
            Fleet::create(self.plan, self.run, self.host, &mut |text| notes.push(text))?;
        for note in &notes {
            self.observer.note(note);
        }
        let end = self
            .set_up(&mut fleet, &executables, &facts)
            .and_then(|()| self.pilot(&mut fleet, &executables, began))
            .and_then(|()| {
                let series = observed::series(self.plan, fleet.directory());
                if let Some(setup) = self.plan.work.insert() {
                    return self.insert_benchmark(setup, &mut fleet, series, began);
                }
                let mut measuring = Measuring {
                    fleet: &mut fleet,
                    series,
                    executables,
                    cores: own_affinity().unwrap_or_default(),
                    course: Course::new(done, slices, began),
                    cpu_source_known: false,
                };
                let end = self.blocks(&mut measuring, Self::block);
                self.record_late_findings(measuring.fleet)?;
                let end = end?;
                self.record_client_limits(&measuring.course.slices)?;
                Ok(end)
            });
        let dismantled = fleet.dismantle();
        let end = end?;
        dismantled.map(|()| end)
    }

    /// Measures all passes of the Insert Benchmark that are not complete.
    fn insert_benchmark(
        &mut self,
        setup: &InsertSetup,
        fleet: &mut Fleet<'_>,
        series: Option<Series>,
        began: Instant,
    ) -> Result<SessionEnd, Problem> {
        let mut passing = Passing::new(setup, fleet, series, began);
        let end = self.passes(&mut passing);
        self.record_late_findings(passing.fleet)?;
        let end = end?;
        let slices = self.store.slices(self.run).map_err(store_problem)?;
        self.record_client_limits(&slices)?;
        Ok(end)
    }

    /// Loads all servers and stores what they are, unless interrupted.
    fn set_up(
        &mut self,
        fleet: &mut Fleet<'_>,
        executables: &[Executable],
        host: &HostFacts,
    ) -> Result<(), Problem> {
        let observer = &mut *self.observer;
        let loaded = fleet.load(executables, self.interrupted, &mut |text| {
            observer.note(&text);
        })?;
        match loaded {
            Some(readbacks) => self.record(fleet, &readbacks, host),
            None => Ok(()),
        }
    }

    /// Tells, and stores, how long an answer will take.
    fn pilot(
        &mut self,
        fleet: &mut Fleet<'_>,
        executables: &[Executable],
        began: Instant,
    ) -> Result<(), Problem> {
        // A pilot's servers stay up: it could say nothing about servers that are rotated, or cooled down.
        let restarted =
            fleet.residence() == Residence::Rotated || self.plan.cache == CacheState::Cold;
        if !self.pilot || self.interrupted.load(Ordering::Relaxed) {
            return Ok(());
        }
        if restarted {
            self.observer.note(
                "no pilot: servers are started for each of their turns, and a pilot's stay up",
            );
            return Ok(());
        }
        self.observer.note("pilot: base and placebo alone");
        let found = pilot(PilotSpec {
            plan: self.plan,
            fleet,
            executables,
            cores: &own_affinity().unwrap_or_default(),
            interrupted: self.interrupted,
            spent_seconds: began.elapsed().as_secs_f64(),
        })?;
        let Some(found) = found else {
            return Ok(());
        };
        self.observer.pilot(&found);
        if let Some(text) = self.time_allowed(&found) {
            self.observer.note(&text);
        }
        self.fact(
            None,
            "pilot",
            &serde_json::json!({
                "workloads": found.workloads,
                "sd_throughput": found.sd.0,
                "sd_server_cpu": found.sd.1,
                "seconds_per_block": found.seconds_per_block,
            }),
        )
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
            None => format!("{minutes:.0} min are too few for six blocks of this plan"),
            Some(half) => format!(
                "{minutes:.0} min buy about ±{:.1} % of throughput on these, in half of all runs",
                100.0 * half
            ),
        })
    }

    fn fact(
        &mut self,
        server: Option<u32>,
        kind: &str,
        value: &serde_json::Value,
    ) -> Result<(), Problem> {
        self.store
            .add_facts(self.run, server, None, kind, &value.to_string())
            .map_err(store_problem)
    }
}

/// The workloads of all cells, compiled for the plan's data.
///
/// Errors: a workload that is not there, or cannot be compiled.
pub fn compile(plan: &Plan, library: &Library) -> Result<Vec<Executable>, Problem> {
    if plan.work.has_passes() {
        // Its steps are no workloads of the library.
        return Ok(Vec::new());
    }
    plan.cells
        .iter()
        .map(|cell| library.get(&cell.workload)?.compile(&plan.data))
        .collect()
}

fn store_problem(error: impl std::fmt::Display) -> Problem {
    Problem::new("the results could not be stored")
        .detail(error.to_string())
        .hint("what was committed is safe; free some disk and run `deltabench resume`")
}
