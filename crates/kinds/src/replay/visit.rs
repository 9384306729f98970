//! A visit to a statement: connections, a warm-up that finds the work of a slice, rounds.

use super::record::{SliceTimes, TupleTimes, VisitRecord};
use super::rounds::Rounds;
use deltabench_compare::thresholds::TRIM;
use deltabench_driver::WireError;
use deltabench_driver::tuples::{Executed, Tuples, Way};
use deltabench_model::plan::{Cell, CellId, Plan, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::units::{count, to_f64};
use deltabench_model::work::replay::TimedStatement;
use deltabench_observe::{own_affinity, pin_self, pin_tree, restore};
use deltabench_replay::{TimedJob, TimedServers};
use deltabench_run::schedule::{VisitSchedule, parameters, turn_order};
use deltabench_run::session::now_ns;
use deltabench_run::visit::host_problem;
use deltabench_stats::summary::trimmed_mean;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Executions after which the plan cache of a session has decided.
///
/// Source: plancache.c, `choose_custom_plan`: five custom plans, then the generic one is compared with them.
const UNTIL_CACHED: u64 = 6;
/// A tuple that is faster is executed twice before its time is taken: the first finds cold caches.
const COLD_NS: u64 = 100_000_000;
/// A visit ends after so many times what it was meant to take: a candidate may be far slower.
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
    /// Measured seconds on each server.
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
    /// The SQLSTATE of an error, and where.
    Failed(String, ServerId),
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
        let pinned = match pins {
            true => self
                .pin_servers(&schedule.server_cores)
                .and_then(|()| pin_self(&schedule.client_cores).map_err(host_problem)),
            false => Ok(()),
        };
        let end = pinned.and_then(|()| self.measure(&schedule.rotation));
        if pins {
            restore(&own).map_err(host_problem)?;
            self.pin_servers(&own)?;
        }
        end
    }

    fn pin_servers(&self, cores: &[usize]) -> Result<(), Problem> {
        let mut pids = self.servers.pids().into_iter();
        pids.try_for_each(|pid| pin_tree(pid, cores).map(drop).map_err(host_problem))
    }

    fn measure(&self, rotation: &[ServerId]) -> Result<VisitEnd, Problem> {
        let mut sides: Vec<Option<Side>> = rotation.iter().map(|_| None).collect();
        for server in rotation {
            let line = self.servers.connect(server.index(), self.job)?;
            if let Some(side) = sides.get_mut(server.index()) {
                *side = Some(Side::new(*server, line, self.statement.tuples.len()));
            }
        }
        let mut sides: Vec<Side> = sides.into_iter().flatten().collect();
        match self.rounds(&mut sides) {
            Ok(()) => Ok(VisitEnd::Complete(
                sides
                    .iter()
                    .map(|side| side.record(self.statement))
                    .collect(),
            )),
            Err(Ended::Interrupted) => Ok(VisitEnd::Interrupted),
            Err(Ended::Failed(sqlstate, server)) => {
                let failed = VisitRecord {
                    failed: Some(sqlstate),
                    failed_on: Some(server),
                    ..VisitRecord::default()
                };
                Ok(VisitEnd::Complete(vec![failed; sides.len()]))
            }
            Err(Ended::Broken(problem)) => Err(problem),
        }
    }

    fn rounds(&self, sides: &mut [Side]) -> Result<(), Ended> {
        let (chosen, times) = self.warm_up(sides)?;
        let rounds = Rounds::of(&times, self.seconds);
        let began = Instant::now();
        let allowed = STRETCH * self.seconds * to_f64(count(sides.len()));
        for round in 0..rounds.rounds {
            let seed = parameters(self.plan, self.block, self.cell, round);
            let drawn = rounds.slice(round, seed);
            let tuples: Vec<usize> = drawn
                .iter()
                .filter_map(|place| chosen.get(*place).copied())
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

    /// Executes every tuple that this block measures on all servers, until caches are warm and plan caches
    /// have decided.
    ///
    /// Shape: the tuples, drawn, as many as take a quarter of the visit on the base and one at least; what
    ///        each took there, nanoseconds.
    fn warm_up(&self, sides: &mut [Side]) -> Result<(Vec<usize>, Vec<f64>), Ended> {
        let mut order: Vec<usize> = (0..self.statement.tuples.len()).collect();
        let seed = parameters(self.plan, self.block, self.cell, OF_TUPLES);
        order.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(seed));
        let (mut chosen, mut times) = (Vec::new(), Vec::new());
        let Some((base, others)) = sides.split_first_mut() else {
            return Ok((chosen, times));
        };
        let mut spent = 0.0;
        for tuple in order {
            let time = self.warm(base, tuple)?;
            chosen.push(tuple);
            times.push(time);
            spent += time;
            if spent > self.seconds * 1e9 / 4.0 {
                break;
            }
        }
        for side in others.iter_mut() {
            for tuple in &chosen {
                self.warm(side, *tuple)?;
            }
        }
        if self.job.way() == Way::Prepared {
            for side in sides {
                for tuple in chosen.iter().cycle().take(self.missing(chosen.len())) {
                    self.execute(side, *tuple)?;
                }
            }
        }
        Ok((chosen, times))
    }

    /// Executions that a plan cache still needs after a warm-up with so many tuples.
    fn missing(&self, tuples: usize) -> usize {
        usize::try_from(UNTIL_CACHED)
            .unwrap_or(usize::MAX)
            .saturating_sub(tuples)
    }

    /// What a tuple takes, nanoseconds.
    fn warm(&self, side: &mut Side, tuple: usize) -> Result<f64, Ended> {
        let first = self.execute(side, tuple)?.duration_ns;
        let time = match first < COLD_NS {
            true => self.execute(side, tuple)?.duration_ns,
            false => first,
        };
        Ok(to_f64(time))
    }

    fn slice(&self, side: &mut Side, tuples: &[usize]) -> Result<(), Ended> {
        let (started_ns, started) = (now_ns(), Instant::now());
        let mut sums = vec![(0_u64, 0_u64); self.statement.tuples.len()];
        for tuple in tuples {
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
            executions: count(tuples.len()),
        });
        side.add(&sums);
        Ok(())
    }

    fn execute(&self, side: &mut Side, tuple: usize) -> Result<Executed, Ended> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(Ended::Interrupted);
        }
        let server = side.server;
        side.line.execute(tuple).map_err(|error| match error {
            WireError::Server(error) if !error.is_fatal() => Ended::Failed(error.sqlstate, server),
            error => Ended::Broken(error.problem("a server of the replay is gone")),
        })
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
