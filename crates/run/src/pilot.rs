//! How long an answer will take: base and placebo alone, for half a minute.
//!
//! A pilot is a few short restart blocks of the run's own servers on a cell or two. From the spread of its
//! blocks and what they took follows a table of minutes for each precision. That spread and the seconds of a
//! block are kept as a fact; its slices are not, and never enter a verdict.

use crate::executables::compile;
use crate::fleet::{Fleet, Host};
use crate::load::address_for;
use crate::schedule::{BlockSchedule, VisitSchedule};
use crate::session::benchmark::Benchmark;
use crate::site::uses_work;
use crate::visit::{Address, Visit, VisitEnd};
use deltabench_compare::comparison::Metric;
use deltabench_compare::forecast::{Forecast, forecast};
use deltabench_compare::thresholds::SECOND_CONTROL_SD;
use deltabench_compare::{analyse, block_sd};
use deltabench_model::plan::{Cell, CellId, Observing, Plan, Role, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::slice::Slice;
use deltabench_model::units::{count, to_f64};
use deltabench_observe::own_affinity;
use deltabench_workload::Library;
use deltabench_workload::executable::Executable;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Restart blocks of a pilot.
const BLOCKS: u32 = 6;

/// Blocks from this number on are a pilot's: their draws never meet those of measured ones.
const FIRST_BLOCK: u32 = 1 << 20;

/// Measured seconds of a pilot's visit, for each server.
const VISIT_SECONDS: f64 = 0.5;

/// Warm-up of a pilot's visit at most, seconds: as long as one under a limit on memory has without a word.
const WARMUP_SECONDS: f64 = 5.0;

/// What a pilot found.
#[derive(Debug, Clone, PartialEq)]
pub struct Pilot {
    /// Names of the cells it measured.
    pub workloads: Vec<String>,
    /// Standard deviation between blocks of the log-ratio placebo / base: throughput, and CPU per operation
    /// where known; of the noisier cell.
    pub sd: (f64, Option<f64>),
    /// Seconds that a block of the whole plan will take.
    pub seconds_per_block: f64,
    /// Minutes for each precision.
    pub forecast: Forecast,
}

/// What a pilot needs.
pub struct PilotSpec<'a, 'f, 'p> {
    /// The plan of the run.
    pub plan: &'a Plan,
    /// Its servers, loaded and stopped.
    pub fleet: &'f mut Fleet<'p>,
    /// Its workloads, compiled.
    pub executables: &'a [Executable],
    pub cores: &'a [usize],
    /// Set when the user wants to stop.
    pub interrupted: &'a AtomicBool,
    /// Seconds of this run that are gone already.
    pub spent_seconds: f64,
}

/// Measures base and placebo for half a minute; `None` when interrupted, or when a server was lost.
///
/// Errors: servers that do not start.
pub fn pilot(spec: PilotSpec<'_, '_, '_>) -> Result<Option<Pilot>, Problem> {
    let mut pilot = Piloting {
        plan: pilot_plan(spec.plan),
        spec,
        slices: Vec::new(),
        restart_seconds: 0.0,
        visit_seconds: 0.0,
        visits: 0,
    };
    for block in FIRST_BLOCK..FIRST_BLOCK + BLOCKS {
        if !pilot.block(block)? {
            return Ok(None);
        }
    }
    Ok(pilot.judge())
}

/// A pilot without a run: makes and loads servers for it, and takes them down again.
///
/// `plan` needs a base and a placebo; candidates are loaded too, and not measured. `None` when interrupted,
/// or when a server was lost.
///
/// Errors: servers that cannot be had here.
pub fn standalone(
    plan: &Plan,
    benchmark: &dyn Benchmark,
    run: &str,
    host: &Host,
    interrupted: &AtomicBool,
    note: &mut dyn FnMut(String),
) -> Result<Option<Pilot>, Problem> {
    let library = Library::of_plan(plan)?;
    let executables = compile(plan, &library)?;
    let began = Instant::now();
    let mut fleet = Fleet::create(plan, benchmark, run, host, note)?;
    let found = match fleet.load(&executables, interrupted, note) {
        Ok(None) => Ok(None),
        Err(problem) => Err(problem),
        Ok(Some(_)) => pilot(PilotSpec {
            plan,
            fleet: &mut fleet,
            executables: &executables,
            cores: &own_affinity().unwrap_or_default(),
            interrupted,
            spent_seconds: began.elapsed().as_secs_f64(),
        }),
    };
    let dismantled = fleet.dismantle();
    let found = found?;
    dismantled.map(|()| found)
}

/// The run's plan with only base and placebo, and short visits.
fn pilot_plan(plan: &Plan) -> Plan {
    let mut pilot = plan.clone();
    pilot
        .servers
        .retain(|server| server.role != Role::Candidate);
    pilot.timing.visit_seconds = plan.timing.visit_seconds.min(VISIT_SECONDS);
    pilot.timing.write_seconds = None;
    pilot.timing.warmup_seconds = plan.timing.warmup_seconds.min(WARMUP_SECONDS);
    pilot.timing.connections_per_visit = 1;
    // Nobody would read them.
    pilot.observing = Observing {
        counters: false,
        waits_per_second: 0,
        profile: None,
        counting: None,
        counted_after: None,
        sensitivity: false,
        confirmed_after: None,
    };
    pilot
}

/// The first cell that reads and the first that writes.
fn chosen(plan: &Plan) -> Vec<(CellId, &Cell)> {
    let first = |writes: bool| {
        CellId::each()
            .zip(&plan.cells)
            .find(|(_, cell)| cell.writes == writes)
    };
    [first(false), first(true)].into_iter().flatten().collect()
}

/// A pilot under way, and what it has taken.
struct Piloting<'a, 'f, 'p> {
    plan: Plan,
    spec: PilotSpec<'a, 'f, 'p>,
    slices: Vec<Slice>,
    restart_seconds: f64,
    visit_seconds: f64,
    visits: u32,
}

impl Piloting<'_, '_, '_> {
    /// Whether the block went through.
    fn block(&mut self, block: u32) -> Result<bool, Problem> {
        let schedule = BlockSchedule::of(self.spec.plan, block);
        let started = Instant::now();
        let mut addresses = Vec::new();
        for server in ServerId::each().take(self.plan.servers.len()) {
            addresses.push(self.spec.fleet.start_one(&schedule, server)?);
        }
        self.restart_seconds += started.elapsed().as_secs_f64();
        let mut went_through = true;
        let plan = self.plan.clone();
        for (id, cell) in chosen(&plan) {
            let started = Instant::now();
            went_through &= self.visit(&schedule, block, id, cell, &addresses)?;
            self.visit_seconds += started.elapsed().as_secs_f64();
            self.visits += 1;
        }
        let stopping = Instant::now();
        self.spec.fleet.stop()?;
        self.restart_seconds += stopping.elapsed().as_secs_f64();
        Ok(went_through && !self.spec.interrupted.load(Ordering::Relaxed))
    }

    fn visit(
        &mut self,
        block_schedule: &BlockSchedule,
        block: u32,
        id: CellId,
        cell: &Cell,
        addresses: &[Address],
    ) -> Result<bool, Problem> {
        let Some(executable) = self.spec.executables.get(id.index()) else {
            return Ok(true);
        };
        let all: Vec<_> = ServerId::each().take(self.plan.servers.len()).collect();
        if uses_work(self.plan.order, cell) {
            self.spec
                .fleet
                .renew_all(block_schedule, &all, (id, cell))?;
        }
        let servers: Vec<Address> = addresses
            .iter()
            .map(|address| address_for(address, self.plan.order, cell))
            .collect();
        let schedule = VisitSchedule::of(&self.plan, block, id, cell, self.spec.cores);
        let visit = Visit {
            plan: &self.plan,
            block,
            cell_id: id,
            cell,
            executable,
            servers: &servers,
            schedule: &schedule,
            scouted: None,
            interrupted: self.spec.interrupted,
        };
        let slices = &mut self.slices;
        let mut sink = |slice: &Slice| {
            slices.push(slice.clone());
            Ok(())
        };
        let report = visit.carry_out(&mut sink, &mut None)?;
        let complete = report.end == VisitEnd::Complete;
        if complete {
            self.spec.fleet.forget_cached(block_schedule, &all)?;
        }
        Ok(complete)
    }

    fn judge(&self) -> Option<Pilot> {
        let comparison = analyse(&self.plan, &self.slices, Vec::new());
        let widest = |metric: Metric| {
            comparison
                .placebo_cells
                .iter()
                .filter_map(|cell| block_sd(cell, metric))
                .reduce(f64::max)
                // What the answer is about is a candidate.
                .map(|sd| match self.spec.plan.second_control() {
                    Some(_) => sd * SECOND_CONTROL_SD,
                    None => sd,
                })
        };
        let throughput = widest(Metric::Throughput)?;
        let cpu = widest(Metric::ServerCpuPerOperation);
        let seconds_per_block = self.block_seconds();
        Some(Pilot {
            workloads: chosen(&self.plan)
                .into_iter()
                .map(|(_, cell)| cell.workload.clone())
                .collect(),
            sd: (throughput, cpu),
            seconds_per_block,
            forecast: forecast(
                Some(throughput),
                cpu,
                BLOCKS,
                seconds_per_block,
                self.spec.spent_seconds,
            ),
        })
    }

    /// Seconds of a block of the whole plan: every server restarted, every cell visited on all of them.
    fn block_seconds(&self) -> f64 {
        let (ours, all) = (
            to_f64(count(self.plan.servers.len())),
            to_f64(count(self.spec.plan.servers.len())),
        );
        let restart = self.restart_seconds / f64::from(BLOCKS) / ours;
        let visit = self.visit_seconds / f64::from(self.visits.max(1)) / ours;
        let (ours, whole) = (&self.plan.timing, &self.spec.plan.timing);
        let warmer = whole.warmup_seconds - ours.warmup_seconds;
        let cells = self.spec.plan.cells.iter();
        let cells = cells.map(|cell| visit + whole.visit_of(cell) - ours.visit_seconds + warmer);
        all * (restart + cells.sum::<f64>())
    }
}
