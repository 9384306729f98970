//! One measured link of the chain: all targets begin a step, have turns of it, and end it.

use super::host::HostMeters;
use super::workers::{Stop, Workers};
use deltabench_compare::each_is_steady;
use deltabench_engine::{FINISH_CPU_NS, StepOrder, TurnOrder, Turned};
use deltabench_model::counter::VisitCounters;
use deltabench_model::fact::WarmUp;
use deltabench_model::plan::{CellId, Plan, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::slice::{ErrorCount, Slice, VoidReason};
use deltabench_model::units::{count, seconds, to_f64, to_u64};
use deltabench_model::work::rocksdb::{ChainLink, RocksdbSetup, RocksdbStep, StepFigures};
use deltabench_run::schedule::{jittered, step_seed, turn_order};
use deltabench_run::visit::{Cause, FIRST_WARMUP_ROUND, ROUNDS_MIN, Sink, VisitEnd, VisitReport};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Share of a step that writes in which its work is found, and the most seconds of that.
const WRITES_TRIED: (f64, f64) = (0.2, 30.0);

/// Operations of each thread in a turn: while the first and the last of them are under way, fewer threads
/// than asked for are at work.
const OPERATIONS_OF_THREAD: u64 = 10;

/// The same where so many would make a turn longer than [`LONG_TURN_SECONDS`].
const OPERATIONS_OF_THREAD_MIN: u64 = 3;

/// A turn is longer than this only where it could not be shorter.
const LONG_TURN_SECONDS: f64 = 1.0;

/// Most steps in which the work of a turn is found.
const ATTEMPTS: u32 = 24;

/// Warm-up takes at most this many times what was asked for.
const WARMUP_STRETCH: u32 = 4;

/// Number of the turn that is counted, and of the first of the warm-up.
const COUNTED_TURN: u32 = FIRST_WARMUP_ROUND + 100;

/// What a refusal is called where a server would give a SQLSTATE, which has five characters.
const REFUSED: &str = "error";

/// How many rounds a step has whose turns take so many seconds.
///
/// A step that writes has one. What a library lets writers do is a rate by the clock, which goes on while a
/// target is frozen: of many turns each would begin with credit that no running database has.
pub(super) fn rounds_of(
    plan: &Plan,
    setup: &RocksdbSetup,
    step: RocksdbStep,
    turn_seconds: f64,
) -> u32 {
    if plan.has_whole_steps() || step.writes() {
        return 1;
    }
    let rounds = to_u64(f64::from(setup.seconds) / turn_seconds.max(1e-3));
    u32::try_from(rounds.max(ROUNDS_MIN)).unwrap_or(u32::MAX)
}

/// Seconds of the turns in which the work of a step is found.
pub(super) fn tried_seconds(plan: &Plan, setup: &RocksdbSetup, step: RocksdbStep) -> f64 {
    let slice = f64::from(plan.timing.slice_ms) / 1e3;
    if !step.writes() {
        return slice;
    }
    let (share, most) = WRITES_TRIED;
    (f64::from(setup.seconds) * share).clamp(slice, most.max(slice))
}

/// The order for a step of a block: the same for every target.
pub(crate) fn step_order(plan: &Plan, block: u32, place: usize, link: &ChainLink) -> StepOrder {
    StepOrder {
        step: link.step,
        threads: link.threads,
        seed: step_seed(plan, block, count(place)),
        // Known when all of them are open.
        batched: false,
    }
}

/// A visit to a cell of the chain.
pub(crate) struct StepVisit<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) setup: &'a RocksdbSetup,
    pub(crate) block: u32,
    pub(crate) cell: CellId,
    /// What every target is told.
    pub(crate) order: StepOrder,
}

/// The work of one turn.
#[derive(Debug, Clone, Copy)]
struct TurnWork {
    operations: u64,
    /// Seconds that the base takes for them, about.
    seconds: f64,
}

/// Least operations of a turn; one takes `each` seconds of wall time.
fn least_operations(threads: u64, each: f64) -> u64 {
    let affordable = to_u64((LONG_TURN_SECONDS / each.max(1e-9)).floor());
    affordable.clamp(
        threads * OPERATIONS_OF_THREAD_MIN,
        threads * OPERATIONS_OF_THREAD,
    )
}

impl StepVisit<'_> {
    /// Carries the visit out and hands every measured slice to `sink`.
    ///
    /// Errors: a host that does not tell what it does, a sink that fails.
    pub(crate) fn carry_out(
        &self,
        workers: &mut Workers<'_>,
        sink: Sink<'_>,
    ) -> Result<VisitReport, Problem> {
        let mut visiting = Visiting {
            visit: self,
            host: HostMeters::open(workers.pids())?,
            workers,
            operations: vec![0; self.plan.servers.len()],
        };
        let mut report = VisitReport {
            end: VisitEnd::Complete,
            warm_up: None,
            counters: Vec::new(),
            core_speed: None,
            profiles: Vec::new(),
        };
        report.end = match visiting.measure(sink, &mut report) {
            Ok(()) => VisitEnd::Complete,
            Err(Stop::Interrupted) => VisitEnd::Interrupted,
            Err(Stop::Lost(server, cause)) => {
                // The others have not all come to the end of the step.
                report.counters.clear();
                VisitEnd::Lost(server, cause)
            }
            Err(Stop::Problem(problem)) => return Err(problem),
        };
        Ok(report)
    }

    fn slice_seconds(&self) -> f64 {
        f64::from(self.plan.timing.slice_ms) / 1e3
    }

    /// Operations of each target in a round.
    fn operations(&self, round: u32, work: Option<TurnWork>) -> u64 {
        match work {
            Some(work) if self.order.step.writes() => {
                let each = work.seconds / to_f64(work.operations.max(1));
                let all = to_u64(f64::from(self.setup.seconds) / each.max(1e-9));
                all.max(work.operations)
            }
            Some(work) => jittered(self.plan, self.block, self.cell, round, work.operations),
            None if self.order.step == RocksdbStep::Fillseq => self.setup.keys,
            // A program that works by itself has its time.
            None => 0,
        }
    }
}

/// A visit under way.
struct Visiting<'a, 'v, 'i> {
    visit: &'a StepVisit<'v>,
    workers: &'a mut Workers<'i>,
    host: HostMeters,
    /// Operations of each target since it began the step.
    operations: Vec<u64>,
}

impl Visiting<'_, '_, '_> {
    fn measure(&mut self, sink: Sink<'_>, report: &mut VisitReport) -> Result<(), Stop> {
        let visit = self.visit;
        let (plan, step) = (visit.plan, visit.order.step);
        let order = StepOrder {
            batched: self.workers.batch(),
            ..visit.order
        };
        for server in self.order(FIRST_WARMUP_ROUND) {
            self.workers.begin(server, order)?;
        }
        let mut work = None;
        if step != RocksdbStep::Fillseq && !plan.has_whole_steps() {
            let found = self.calibrate()?;
            if !step.writes() {
                report.warm_up = self.warm_up(found)?;
            }
            // What the library counts costs time, so it counts in a turn that is not measured; caches are
            // as warm then as in those that are.
            let short = visit.slice_seconds() / found.seconds;
            let counted = to_u64(to_f64(found.operations) * short.min(1.0)).max(1);
            self.untimed_round(counted, COUNTED_TURN, true)?;
            work = Some(found);
        }
        if step.writes() {
            let operations = visit.operations(0, work);
            return self.write(operations, sink, &mut report.counters);
        }
        let turn_seconds = work.map_or(visit.slice_seconds(), |work| work.seconds);
        let rounds = rounds_of(plan, visit.setup, step, turn_seconds);
        for round in 0..rounds {
            self.round(round, visit.operations(round, work), sink)?;
        }
        for server in self.order(FIRST_WARMUP_ROUND - 1) {
            let values = self.workers.finish(server)?;
            report.counters.push(self.counters(server, values));
        }
        Ok(())
    }

    /// The one slice of each target in a step that writes, and the end of the step.
    ///
    /// A target works off what it owes before the next one writes. That costs CPU for what it wrote, which
    /// is that of its slice; throughput is that of writing alone, as published.
    fn write(
        &mut self,
        operations: u64,
        sink: Sink<'_>,
        counters: &mut Vec<VisitCounters>,
    ) -> Result<(), Stop> {
        let turn = TurnOrder {
            number: 0,
            operations,
            counted: false,
            settle: false,
        };
        for (position, server) in (0..).zip(self.order(turn.number)) {
            let (mut slice, mut lost) = self.slice(server, position, turn)?;
            if lost.is_none() {
                match self.workers.finish(server) {
                    Ok(values) => {
                        slice.server_cpu_ns = with_end(slice.server_cpu_ns, &values);
                        counters.push(self.counters(server, values));
                    }
                    Err(Stop::Lost(_, cause)) => {
                        slice.server_cpu_ns = None;
                        slice.void = Some(cause.reason.clone());
                        lost = Some(cause);
                    }
                    Err(stop) => return Err(stop),
                }
            }
            sink(&slice)?;
            if let Some(cause) = lost {
                return Err(Stop::Lost(server, cause));
            }
        }
        Ok(())
    }

    /// The targets in the order in which they have their turns in a round.
    fn order(&self, round: u32) -> Vec<ServerId> {
        turn_order(self.visit.plan, self.visit.block, self.visit.cell, round)
    }

    fn counters(&self, server: ServerId, values: StepFigures) -> VisitCounters {
        let done = self.operations.get(server.index()).copied();
        VisitCounters {
            server,
            cell: self.visit.cell,
            block: self.visit.block,
            operations: done.unwrap_or(0),
            values,
        }
    }

    /// Finds how many operations make a turn of the wanted length on the base.
    ///
    /// Every target does the same work here too, so that their databases stay equal.
    fn calibrate(&mut self) -> Result<TurnWork, Stop> {
        let StepVisit {
            plan, setup, order, ..
        } = *self.visit;
        let wanted = tried_seconds(plan, setup, order.step);
        let threads = u64::from(order.threads);
        let mut operations = threads;
        for attempt in 0..ATTEMPTS {
            let mut taken = self.base_seconds(operations, attempt)?;
            if taken >= wanted / 3.0 {
                let again = self.base_seconds(operations, ATTEMPTS + attempt)?;
                taken = match order.step.writes() {
                    // The second is slower where the first has left debt, which belongs to it.
                    true => f64::midpoint(taken, again),
                    // A pause of the machine must not be taken for the speed of the base.
                    false => taken.min(again),
                };
            }
            let each = taken / to_f64(operations);
            let fit = to_u64(wanted / each.max(1e-9)).max(least_operations(threads, each));
            if taken >= wanted / 3.0 || attempt + 1 == ATTEMPTS {
                return Ok(TurnWork {
                    operations: fit,
                    seconds: wanted.max(each * to_f64(fit)),
                });
            }
            operations = fit.clamp(operations * 2, operations * 8);
        }
        Ok(TurnWork {
            operations,
            seconds: wanted,
        })
    }

    /// Seconds that the base takes for so many operations, which all targets do.
    fn base_seconds(&mut self, operations: u64, attempt: u32) -> Result<f64, Stop> {
        let base = self.visit.plan.base();
        let taken = self.untimed_round(operations, FIRST_WARMUP_ROUND + attempt, false)?;
        let of_base = taken.iter().find(|(server, _)| *server == base);
        Ok(of_base.map_or(0.0, |(_, seconds)| *seconds))
    }

    /// Turns that do not count until every target is steady or the limit is reached; equally many for all.
    fn warm_up(&mut self, work: TurnWork) -> Result<Option<WarmUp>, Stop> {
        let asked = self.visit.plan.timing.warmup_seconds / work.seconds;
        let least = u32::try_from(to_u64(asked.ceil())).unwrap_or(u32::MAX);
        if least == 0 {
            return Ok(None);
        }
        let delta = self.visit.plan.delta;
        let mut curves: Vec<Vec<f64>> = vec![Vec::new(); self.visit.plan.servers.len()];
        let mut steady = false;
        for round in 0..least.saturating_mul(WARMUP_STRETCH) {
            let number = COUNTED_TURN + 1 + round;
            for (server, taken) in self.untimed_round(work.operations, number, false)? {
                if let Some(curve) = curves.get_mut(server.index()) {
                    curve.push(1e6 * taken / to_f64(work.operations));
                }
            }
            steady = round + 1 >= least && each_is_steady(&curves, delta);
            if steady {
                break;
            }
        }
        Ok(Some(WarmUp {
            steady,
            us_per_operation: curves,
        }))
    }

    /// A turn of each target that is not recorded; its seconds.
    fn untimed_round(
        &mut self,
        operations: u64,
        number: u32,
        counted: bool,
    ) -> Result<Vec<(ServerId, f64)>, Stop> {
        let turn = TurnOrder {
            number,
            operations,
            counted,
            // No target is frozen with writers delayed.
            settle: self.visit.order.step.writes(),
        };
        let mut taken = Vec::new();
        for server in self.order(number) {
            let turned = self.turn(server, turn)?;
            if let Some(cause) = nothing_done(&turned) {
                return Err(Stop::Lost(server, cause));
            }
            taken.push((server, seconds(turned.duration_ns)));
        }
        Ok(taken)
    }

    fn turn(&mut self, server: ServerId, turn: TurnOrder) -> Result<Turned, Stop> {
        let turned = self.workers.turn(server, turn)?;
        if let Some(done) = self.operations.get_mut(server.index()) {
            *done += turned.operations;
        }
        Ok(turned)
    }

    /// One slice of each target.
    fn round(&mut self, round: u32, operations: u64, sink: Sink<'_>) -> Result<(), Stop> {
        let turn = TurnOrder {
            number: round,
            operations,
            counted: false,
            settle: false,
        };
        for (position, server) in (0..).zip(self.order(round)) {
            let (slice, lost) = self.slice(server, position, turn)?;
            sink(&slice)?;
            if let Some(cause) = lost {
                return Err(Stop::Lost(server, cause));
            }
        }
        Ok(())
    }

    /// A slice, and why its target was lost in it, if it was.
    fn slice(
        &mut self,
        server: ServerId,
        position: u32,
        turn: TurnOrder,
    ) -> Result<(Slice, Option<Cause>), Stop> {
        let started = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let began = Instant::now();
        self.host.start();
        let (turned, lost) = match self.turn(server, turn) {
            Ok(turned) => {
                let nothing = nothing_done(&turned);
                (turned, nothing)
            }
            Err(Stop::Lost(_, cause)) => {
                let nanos = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
                let turned = Turned {
                    duration_ns: nanos,
                    ..Turned::default()
                };
                (turned, Some(cause))
            }
            Err(stop) => return Err(stop),
        };
        let costs = self.host.end(server.index(), turned.cpu_ns);
        let void = lost.as_ref().map(|cause| cause.reason.clone());
        let told = void.is_none();
        let slice = Slice {
            server,
            cell: self.visit.cell,
            block: self.visit.block,
            round: turn.number,
            position,
            connection: 0,
            started_ns: u64::try_from(started.as_nanos()).unwrap_or(u64::MAX),
            duration_ns: turned.duration_ns,
            operations: turned.operations,
            failed: turned.failed,
            rows: turned.rows,
            server_cpu_ns: told.then_some(turned.cpu_ns),
            run_queue_wait_ns: turned.run_queue_wait_ns,
            client_cpu_ns: 0,
            foreign_cpu_ns: Some(costs.foreign_cpu_ns),
            steal_ns: Some(costs.steal_ns),
            idle_cpu_ns: costs.idle_cpu_ns,
            background_cpu_ns: None,
            probe_ns: None,
            probing_ns: None,
            switches: None,
            cpu_pressure_ns: costs.cpu_pressure_ns,
            schedule_lag_ns: None,
            errors: errors(&turned),
            latency_histogram: turned.latency_histogram,
            scripts: Vec::new(),
            void,
            void_detail: lost.as_ref().and_then(|cause| cause.detail.clone()),
        };
        Ok((slice, lost))
    }
}

/// CPU of a turn with that of the end of its step, where that is told apart.
fn with_end(cpu_ns: Option<u64>, values: &StepFigures) -> Option<u64> {
    let end = values.get(FINISH_CPU_NS).copied().map_or(0, to_u64);
    cpu_ns.map(|cpu_ns| cpu_ns + end)
}

/// Why a turn says nothing of its target, if nothing in it succeeded.
fn nothing_done(turned: &Turned) -> Option<Cause> {
    (turned.operations == 0 && turned.failed > 0).then(|| Cause {
        reason: VoidReason::NothingDone,
        detail: turned.first_error.clone(),
    })
}

fn errors(turned: &Turned) -> Vec<ErrorCount> {
    let error = |message: &String| ErrorCount {
        sqlstate: REFUSED.to_owned(),
        count: turned.failed,
        first_message: message.clone(),
    };
    turned.first_error.iter().map(error).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::rocksdb_plan;
    use deltabench_model::installation::Engine;

    #[test]
    fn reads_have_rounds_for_their_seconds_and_writes_have_one_for_all_of_them() {
        use RocksdbStep::{Fillseq, Overwriteandwait, Readrandom};
        let mut plan = rocksdb_plan(&["a", "a", "b"]);
        let setup = plan.work.rocksdb().cloned().unwrap();
        let rounds = |plan: &Plan, step, turn| rounds_of(plan, &setup, step, turn);
        assert_eq!(rounds(&plan, Readrandom, 0.25), 20);
        assert_eq!(rounds(&plan, Readrandom, 3.0), 5);
        assert_eq!(rounds(&plan, Fillseq, 0.25), 1);
        assert_eq!(rounds(&plan, Overwriteandwait, 0.25), 1);
        let tried = |seconds, step| {
            let setup = RocksdbSetup {
                seconds,
                ..setup.clone()
            };
            tried_seconds(&plan, &setup, step)
        };
        assert!((tried(5, Readrandom) - 0.04).abs() < 1e-9);
        assert!((tried(5, Overwriteandwait) - 1.0).abs() < 1e-9);
        assert!((tried(1800, Overwriteandwait) - 30.0).abs() < 1e-9);
        for server in &mut plan.servers {
            server.installation.engine = Engine::DbBench;
        }
        assert_eq!(rounds(&plan, Readrandom, 0.25), 1);
    }

    #[test]
    fn the_turn_of_a_step_that_writes_is_its_seconds_at_the_rate_that_was_found() {
        let plan = rocksdb_plan(&["a", "b"]);
        let setup = plan.work.rocksdb().cloned().unwrap();
        let operations = |step, work| {
            let order = StepOrder {
                step,
                threads: 1,
                seed: 1,
                batched: false,
            };
            let visit = StepVisit {
                plan: &plan,
                setup: &setup,
                block: 0,
                cell: CellId(0),
                order,
            };
            visit.operations(0, work)
        };
        let work = Some(TurnWork {
            operations: 1000,
            seconds: 0.5,
        });
        assert_eq!(operations(RocksdbStep::Overwriteandwait, work), 10_000);
        assert!((800..=1200).contains(&operations(RocksdbStep::Readrandom, work)));
        assert_eq!(operations(RocksdbStep::Fillseq, None), setup.keys);
        assert_eq!(operations(RocksdbStep::Readrandom, None), 0);
    }

    #[test]
    fn a_version_that_puts_compactions_off_pays_for_them() {
        let values = StepFigures::from([(FINISH_CPU_NS.to_owned(), 5e9)]);
        assert_eq!(with_end(Some(2_000_000_000), &values), Some(7_000_000_000));
        // A program of its own has counted them already.
        assert_eq!(with_end(Some(2), &StepFigures::new()), Some(2));
        assert_eq!(with_end(None, &values), None);
    }

    #[test]
    fn every_thread_has_work_in_a_turn_but_a_turn_is_not_made_long_for_it() {
        assert_eq!(least_operations(4, 2e-6), 40);
        assert_eq!(least_operations(64, 0.01), 192);
    }

    #[test]
    fn a_turn_in_which_all_is_refused_is_void_with_the_words_of_the_library() {
        let refused = Turned {
            failed: 7,
            first_error: Some("IO error: No space left on device".to_owned()),
            ..Turned::default()
        };
        let cause = nothing_done(&refused).unwrap();
        assert_eq!(cause.reason, VoidReason::NothingDone);
        assert!(cause.detail.unwrap().contains("No space"));
        assert_eq!(errors(&refused)[0].count, 7);
        let some = Turned {
            operations: 1,
            ..refused
        };
        assert_eq!(nothing_done(&some), None);
    }
}
