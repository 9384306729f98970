//! A visit to a statement: connections, a warm-up that finds the work of a slice, rounds.
//!
//! The slowest server decides how much work there is, so that one that became far slower takes no more time.

use super::budget::passes;
use super::record::{SliceTimes, TupleTimes, VisitRecord};
use super::rounds::Rounds;
use deltabench_compare::thresholds::TRIM;
use deltabench_driver::WireError;
use deltabench_driver::tuples::{Executed, Tuples};
use deltabench_model::plan::{Cell, CellId, Plan, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::units::{count, to_f64};
use deltabench_model::work::replay::TimedStatement;
use deltabench_observe::{own_affinity, pin_self, pin_tree, restore};
use deltabench_replay::{ErrorClass, TimedJob, TimedServers, gone, watched};
use deltabench_run::schedule::{VisitSchedule, parameters, turn_order};
use deltabench_run::session::now_ns;
use deltabench_run::visit::host_problem;
use deltabench_stats::summary::trimmed_mean;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// A tuple that is faster is executed twice before its time is taken: the first finds cold caches.
const COLD_NS: u64 = 100_000_000;
/// The warm-up takes no further tuples after this share of a visit.
const WARM_UP: f64 = 0.25;
/// A visit ends after so many times what it was meant to take.
const STRETCH: f64 = 3.0;
/// The round whose draw is that of the tuples themselves.
const OF_TUPLES: u32 = u32::MAX;

/// A visit that is to be made.
pub struct Visit<'a> {
    pub plan: &'a Plan,
    pub statement: &'a TimedStatement,
    pub job: &'a TimedJob,
    pub servers: &'a TimedServers,
    pub block: u32,
    pub cell: CellId,
    /// Measured seconds on each server, of the slowest one.
    pub seconds: f64,
    pub interrupted: &'a AtomicBool,
}

/// How a visit ended.
pub enum VisitEnd {
    /// A record for each server, in their order.
    Complete(Vec<VisitRecord>),
    Interrupted,
}

/// Why a visit does not go on.
enum Ended {
    Interrupted,
    /// The SQLSTATE of an error; where, unless it says nothing of that server.
    Failed(String, Option<ServerId>),
    Broken(Problem),
}

/// What is known of a server in a visit.
struct Side {
    server: ServerId,
    line: Tuples,
    /// By tuple: means of the rounds.
    means: Vec<Vec<f64>>,
    executions: Vec<u64>,
    totals: Vec<u64>,
    slices: Vec<SliceTimes>,
    rows: u64,
    /// What was executed last.
    latest: Option<Warm>,
    /// Of each tuple of the warm-up the last one.
    warm_up: Vec<Warm>,
}

impl Visit<'_> {
    /// Measures on the cores that the schedule draws, and gives all back.
    ///
    /// Errors: a server that is gone, a host that does not let us pin.
    pub fn carry_out(&self, cell: &Cell) -> Result<VisitEnd, Problem> {
        let own = own_affinity().map_err(host_problem)?;
        let schedule = VisitSchedule::of(self.plan, self.block, self.cell, cell, &own);
        // Workers of a parallel plan need cores of their own.
        let pins = !self.statement.parallel && !schedule.server_cores.is_empty();
        let (servers, client) = match pins {
            true => (&schedule.server_cores, &schedule.client_cores),
            false => (&own, &own),
        };
        // The servers stay there: the next visit puts them where it wants them.
        let pinned = self.pin_servers(servers);
        let pinned = pinned.and_then(|()| pin_self(client).map_err(host_problem));
        let end = pinned.and_then(|()| self.measure(&schedule.rotation));
        let restored = restore(&own).map_err(host_problem);
        end.and_then(|end| restored.map(|()| end))
    }

    fn pin_servers(&self, cores: &[usize]) -> Result<(), Problem> {
        let mut pids = self.servers.pids().into_iter();
        pids.try_for_each(|pid| pin_tree(pid, cores).map(drop).map_err(host_problem))
    }

    fn measure(&self, rotation: &[ServerId]) -> Result<VisitEnd, Problem> {
        let order = self.drawn();
        let measured = self
            .connect(rotation, &order)
            .and_then(|sides| self.watched(sides, &order));
        match measured {
            Ok(sides) => {
                let records = sides.iter().map(|side| side.record(self.statement));
                Ok(VisitEnd::Complete(records.collect()))
            }
            Err(Ended::Interrupted) => Ok(VisitEnd::Interrupted),
            Err(Ended::Failed(sqlstate, server)) => {
                let failed = VisitRecord {
                    failed: Some(sqlstate),
                    failed_on: server,
                    ..VisitRecord::default()
                };
                Ok(VisitEnd::Complete(vec![failed; rotation.len()]))
            }
            Err(Ended::Broken(problem)) => Err(problem),
        }
    }

    /// The order in which tuples are planned and measured: the same on all servers.
    fn drawn(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.statement.tuples.len()).collect();
        let seed = parameters(self.plan, self.block, self.cell, OF_TUPLES);
        order.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(seed));
        order
    }

    /// Shape: in the order of the plan's servers; they connect in that of the rotation.
    fn connect(&self, rotation: &[ServerId], order: &[usize]) -> Result<Vec<Side>, Ended> {
        let mut sides = Vec::with_capacity(rotation.len());
        for server in rotation {
            let line = self.servers.connect(server.index(), self.job, order);
            let line = line.map_err(|error| self.ended(error, *server))?;
            sides.push(Side::new(*server, line, self.statement.tuples.len()));
        }
        sides.sort_by_key(|side| side.server);
        Ok(sides)
    }

    /// Measures; an interruption ends the statement that runs.
    fn watched(&self, sides: Vec<Side>, order: &[usize]) -> Result<Vec<Side>, Ended> {
        let cancels: Vec<_> = sides.iter().map(|side| side.line.cancel()).collect();
        let measure = |mut sides: Vec<Side>| {
            let end = self.rounds(&mut sides, order);
            Ok(end.map(|()| sides))
        };
        let end = || cancels.iter().for_each(|cancel| cancel.send());
        let ends = watched([sides], self.interrupted, measure, end);
        let end = ends.into_iter().next();
        end.unwrap_or_else(|| Ok(Err(Ended::Interrupted)))
            .unwrap_or_else(|problem| Err(Ended::Broken(problem)))
    }

    fn rounds(&self, sides: &mut [Side], order: &[usize]) -> Result<(), Ended> {
        let warm = self.warm_up(sides, order)?;
        let pass: f64 = warm.iter().map(|(_, time)| time).sum();
        if pass > self.seconds * 1e9 {
            // There is no time for more: what the warm-up executed last is the visit.
            sides.iter_mut().for_each(Side::count_warm_up);
            return Ok(());
        }
        let times: Vec<f64> = warm.iter().map(|(_, time)| *time).collect();
        let rounds = Rounds::of(&times, self.seconds, self.plan.timing.slice_ms);
        let began = Instant::now();
        let executions = sides.iter().map(|side| passes(self.plan, side.server));
        let allowed = STRETCH * self.seconds * to_f64(executions.sum::<u64>());
        for round in 0..rounds.rounds {
            let seed = parameters(self.plan, self.block, self.cell, round);
            let drawn = rounds.slice(round, seed);
            let tuples: Vec<usize> = drawn
                .iter()
                .filter_map(|place| Some(warm.get(*place)?.0))
                .collect();
            for server in turn_order(self.plan, self.block, self.cell, round) {
                if let Some(side) = sides.get_mut(server.index()) {
                    self.slice(side, &tuples)?;
                }
            }
            if began.elapsed().as_secs_f64() > allowed {
                break;
            }
        }
        Ok(())
    }

    /// Executes every tuple that this block measures on all servers, until caches are warm.
    ///
    /// Shape: the tuples, drawn, as many as take a part of the visit and one at least; what each took on the
    ///        server that is slowest with it, nanoseconds.
    fn warm_up(&self, sides: &mut [Side], order: &[usize]) -> Result<Vec<(usize, f64)>, Ended> {
        let turns = turn_order(self.plan, self.block, self.cell, OF_TUPLES);
        let mut warm = Vec::new();
        let mut spent = 0.0;
        for tuple in order {
            let mut slowest = self.warm(sides, &turns, *tuple)?;
            if slowest < COLD_NS {
                slowest = self.warm(sides, &turns, *tuple)?;
            }
            for side in &mut *sides {
                side.warm_up.extend(side.latest.take());
            }
            warm.push((*tuple, to_f64(slowest)));
            spent += to_f64(slowest);
            if spent > WARM_UP * self.seconds * 1e9 {
                break;
            }
        }
        Ok(warm)
    }

    /// Executes a tuple on all servers; what the slowest took, nanoseconds.
    fn warm(&self, sides: &mut [Side], turns: &[ServerId], tuple: usize) -> Result<u64, Ended> {
        let mut slowest = 0;
        for server in turns {
            if let Some(side) = sides.get_mut(server.index()) {
                let mut warm = Warm::new(tuple);
                for _ in 0..passes(self.plan, *server) {
                    let executed = self.execute(side, tuple)?;
                    slowest = slowest.max(executed.duration_ns);
                    warm.add(&executed);
                }
                side.latest = Some(warm);
            }
        }
        Ok(slowest)
    }

    fn slice(&self, side: &mut Side, tuples: &[usize]) -> Result<(), Ended> {
        let (started_ns, started) = (now_ns(), Instant::now());
        let mut sums = vec![(0_u64, 0_u64); self.statement.tuples.len()];
        let passes = passes(self.plan, side.server);
        for tuple in (0..passes).flat_map(|_| tuples) {
            let executed = self.execute(side, *tuple)?;
            side.rows += executed.rows;
            if let Some((executions, total)) = sums.get_mut(*tuple) {
                *executions += 1;
                *total += executed.duration_ns;
            }
        }
        let duration_ns = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        side.slices.push(SliceTimes {
            started_ns,
            duration_ns,
            executions: count(tuples.len()) * passes,
        });
        side.add(&sums);
        Ok(())
    }

    fn execute(&self, side: &mut Side, tuple: usize) -> Result<Executed, Ended> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(Ended::Interrupted);
        }
        let executed = side.line.execute(tuple);
        executed.map_err(|error| self.ended(error, side.server))
    }

    /// Why a visit does not go on after an error of a server.
    fn ended(&self, error: WireError, server: ServerId) -> Ended {
        // Its statement was cancelled.
        if self.interrupted.load(Ordering::Relaxed) {
            return Ended::Interrupted;
        }
        let broken = |error: &WireError| {
            let name = self.plan.server_name(server);
            Ended::Broken(gone(error, &name, &self.statement.id))
        };
        match error {
            WireError::Server(error) => match ErrorClass::of(&error) {
                ErrorClass::Statement | ErrorClass::TooLong => {
                    Ended::Failed(error.sqlstate, Some(server))
                }
                ErrorClass::Resources | ErrorClass::Conflict => Ended::Failed(error.sqlstate, None),
                ErrorClass::DiskFull | ErrorClass::Useless => broken(&WireError::Server(error)),
            },
            error => broken(&error),
        }
    }
}

/// A tuple of the warm-up on a server.
#[derive(Debug)]
struct Warm {
    tuple: usize,
    times: SliceTimes,
    rows: u64,
}

impl Warm {
    fn new(tuple: usize) -> Self {
        Self {
            tuple,
            times: SliceTimes {
                started_ns: now_ns(),
                duration_ns: 0,
                executions: 0,
            },
            rows: 0,
        }
    }

    fn add(&mut self, executed: &Executed) {
        self.times.executions += 1;
        self.times.duration_ns += executed.duration_ns;
        self.rows += executed.rows;
    }
}

impl Side {
    fn new(server: ServerId, line: Tuples, tuples: usize) -> Self {
        Self {
            server,
            line,
            means: vec![Vec::new(); tuples],
            executions: vec![0; tuples],
            totals: vec![0; tuples],
            slices: Vec::new(),
            rows: 0,
            latest: None,
            warm_up: Vec::new(),
        }
    }

    /// Takes in the warm-up, with a slice for each tuple.
    fn count_warm_up(&mut self) {
        for warm in std::mem::take(&mut self.warm_up) {
            let mut sums = vec![(0, 0); self.means.len()];
            if let Some(sum) = sums.get_mut(warm.tuple) {
                *sum = (warm.times.executions, warm.times.duration_ns);
            }
            self.rows += warm.rows;
            self.slices.push(warm.times);
            self.add(&sums);
        }
    }

    /// Takes in a slice: executions and nanoseconds of each tuple.
    fn add(&mut self, sums: &[(u64, u64)]) {
        let known = self
            .means
            .iter_mut()
            .zip(&mut self.executions)
            .zip(&mut self.totals);
        for (((means, executions), total), (new, time)) in known.zip(sums) {
            if *new > 0 {
                means.push(to_f64(*time) / to_f64(*new));
                *executions += new;
                *total += time;
            }
        }
    }

    fn record(&self, statement: &TimedStatement) -> VisitRecord {
        let sums = self.executions.iter().zip(&self.totals).zip(&self.means);
        let tuple = |(tuple, ((executions, total_ns), means)): (&_, ((&u64, &u64), &Vec<f64>))| {
            let tuple: &deltabench_model::work::replay::TimedTuple = tuple;
            Some(TupleTimes {
                place: tuple.place,
                executions: *executions,
                total_ns: *total_ns,
                typical_ns: trimmed_mean(means, TRIM)?,
            })
        };
        VisitRecord {
            tuples: statement
                .tuples
                .iter()
                .zip(sums)
                .filter_map(tuple)
                .collect(),
            slices: self.slices.clone(),
            rows: self.rows,
            failed: None,
            failed_on: None,
        }
    }
}
