//! A visit to a statement: connections, a warm-up that finds the work of a slice, rounds.
//!
//! The slowest server decides how much work there is, so that one that became far slower takes no more time.

use super::budget::passes;
use super::record::{SliceTimes, TupleTimes, VisitRecord};
use super::rounds::Rounds;
use super::turn::{Part, parts_of_turn, turn};
use deltabench_compare::thresholds::TRIM;
use deltabench_driver::WireError;
use deltabench_driver::tuples::{Executed, Tuples};
use deltabench_model::plan::{Cell, CellId, Plan, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::units::{count, to_f64};
use deltabench_model::work::replay::{TimedStatement, TimedWrite};
use deltabench_observe::{own_affinity, pin_self, pin_tree, restore};
use deltabench_replay::{ErrorClass, TimedJob, TimedServers, gone, violates, watched};
use deltabench_run::clock::now_ns;
use deltabench_run::schedule::{VisitSchedule, parameters, turn_order};
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
/// Of what a copy takes only once, one part in so many is executed first and does not count: caches are cold.
const COLD_PART: usize = 4;
/// Slices of a pass over the tuples that a copy takes only once.
const SLICES_OF_PASS: usize = 4;
const SLICES_OF_PASS_U32: u32 = 4;
/// What a visit fails with in which constraints refused other executions on one server than on the base. No
/// server said this, so it stands for no SQLSTATE and for no side.
pub const UNEQUAL: &str = "unequal";
/// What a visit fails with in which a write changed another number of rows on a candidate than on the base.
pub const ROWS_DIFFER: &str = "rows-differ";
/// The same where the base's copy differs, too: the statement itself does other work each time.
pub const ROWS_VARY: &str = "rows-vary";
/// What a visit to a mix fails with that no statement fits, as in plans of older versions.
pub const NOTHING_FITS: &str = "nothing-fits";
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
pub enum VisitEnd<R> {
    /// A record for each server, in their order.
    Complete(Vec<R>),
    Interrupted,
}

/// Why a visit does not go on.
pub enum Ended {
    Interrupted,
    /// The SQLSTATE of an error; where, unless it says nothing of that server.
    Failed(String, Option<ServerId>),
    Broken(Problem),
}

/// What is known of a server in a visit.
struct Side {
    server: ServerId,
    /// The same server with the plans of the base, in another session.
    old_plan: Option<Box<Self>>,
    /// Absent when nothing more is executed.
    line: Option<Tuples>,
    /// By tuple: means of the rounds.
    means: Vec<Vec<f64>>,
    executions: Vec<u64>,
    totals: Vec<u64>,
    slices: Vec<SliceTimes>,
    rows: u64,
    /// By tuple: how often a constraint refused it; those executions do not count.
    refused: Vec<u64>,
    /// What was executed last.
    latest: Option<Warm>,
    /// Of each tuple of the warm-up the last one.
    warm_up: Vec<Warm>,
}

impl Visit<'_> {
    /// Measures on the cores that the schedule draws, and gives all back.
    ///
    /// Errors: a server that is gone, a host that does not let us pin.
    pub fn carry_out(&self, cell: &Cell) -> Result<VisitEnd<VisitRecord>, Problem> {
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

    fn measure(&self, rotation: &[ServerId]) -> Result<VisitEnd<VisitRecord>, Problem> {
        let order = self.drawn();
        let measured = match self.statement.write {
            Some(TimedWrite { once: true }) => self.on_copies(rotation, &order),
            Some(_) => self.copy().and_then(|()| self.on_tables(rotation, &order)),
            None => self.on_tables(rotation, &order),
        };
        let measured = measured.and_then(|sides| self.without_copies(sides));
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
            let mut side = Side::new(*server, line, self.statement.tuples.len());
            side.old_plan = self.with_old_plan(*server, order)?.map(Box::new);
            sides.push(side);
        }
        sides.sort_by_key(|side| side.server);
        Ok(sides)
    }

    /// A session of a candidate in which it has the plans of the base, if settings do that.
    fn with_old_plan(&self, server: ServerId, order: &[usize]) -> Result<Option<Side>, Ended> {
        let mut known = self.statement.old_plans.iter();
        let Some(old) = known.find(|old| old.server == server.0) else {
            return Ok(None);
        };
        let settings = &old.settings;
        let line = self
            .servers
            .connect_with(server.index(), self.job, order, settings);
        let line = line.map_err(|error| self.ended(error, server))?;
        Ok(Some(Side::new(server, line, self.statement.tuples.len())))
    }

    /// Measures what can be executed again and again.
    fn on_tables(&self, rotation: &[ServerId], order: &[usize]) -> Result<Vec<Side>, Ended> {
        let sides = self.connect(rotation, order)?;
        let sides = self.watched(sides, |sides| self.rounds(sides, order))?;
        same_refused(&sides)?;
        self.same_rows(&sides)?;
        Ok(sides)
    }

    /// Measures what a copy takes only once, on as many copies as the visit has time for.
    fn on_copies(&self, rotation: &[ServerId], order: &[usize]) -> Result<Vec<Side>, Ended> {
        let began = Instant::now();
        let servers = to_f64(count(self.plan.servers.len()));
        let mut all: Vec<Side> = Vec::new();
        for copy in 0.. {
            self.copy()?;
            let mut sides = self.connect(rotation, order)?;
            // What was measured before is kept on the new connections.
            for (side, before) in sides.iter_mut().zip(all) {
                side.take_over(before);
            }
            all = self.watched(sides, |sides| self.pass(sides, (order, copy)))?;
            same_refused(&all)?;
            self.same_rows(&all)?;
            // Nobody may be connected to a copy that goes.
            all.iter_mut().for_each(|side| side.line = None);
            if began.elapsed().as_secs_f64() > servers * self.seconds {
                break;
            }
        }
        Ok(all)
    }

    /// Executes every tuple once on all servers, in slices that take turns. The first ones of many find cold
    /// caches, and do not count.
    fn pass(&self, sides: &mut [Side], (order, copy): (&[usize], u32)) -> Result<(), Ended> {
        let (cold, counted) = order.split_at(order.len() / COLD_PART);
        for server in turn_order(self.plan, self.block, self.cell, OF_TUPLES) {
            if let Some(side) = sides.get_mut(server.index()) {
                for tuple in cold {
                    self.execute(side, *tuple)?;
                }
            }
        }
        let slice = counted.len().div_ceil(SLICES_OF_PASS).max(1);
        for (round, tuples) in (0..).zip(counted.chunks(slice)) {
            let round = copy
                .saturating_mul(SLICES_OF_PASS_U32)
                .saturating_add(round);
            for server in turn_order(self.plan, self.block, self.cell, round) {
                if let Some(side) = sides.get_mut(server.index()) {
                    self.slice(side, tuples)?;
                }
            }
        }
        Ok(())
    }

    /// Refuses a visit in which a write changed another number of rows on one server than on the base: all
    /// have executed the same.
    fn same_rows(&self, sides: &[Side]) -> Result<(), Ended> {
        let rows: Vec<u64> = sides.iter().map(|side| side.rows).collect();
        let differs = differing(&rows).filter(|_| self.statement.write.is_some());
        differs.map_or(Ok(()), |why| Err(Ended::Failed(why.to_owned(), None)))
    }

    /// Makes the copies that a write changes anew.
    fn copy(&self) -> Result<(), Ended> {
        let made = self.servers.copy(self.interrupted);
        made.map_err(|problem| Ended::unless_stopped(problem, self.interrupted))
    }

    /// Ends the connections' work on copies, which go; what was measured stays.
    fn without_copies(&self, mut sides: Vec<Side>) -> Result<Vec<Side>, Ended> {
        if self.statement.write.is_some() {
            sides.iter_mut().for_each(|side| side.line = None);
            let gone = self.servers.drop_copies(self.interrupted);
            gone.map_err(|problem| Ended::unless_stopped(problem, self.interrupted))?;
        }
        Ok(sides)
    }

    /// Measures; an interruption ends the statement that runs.
    fn watched(
        &self,
        sides: Vec<Side>,
        what: impl Fn(&mut [Side]) -> Result<(), Ended> + Sync,
    ) -> Result<Vec<Side>, Ended> {
        let old_plans = sides.iter().filter_map(|side| side.old_plan.as_deref());
        let lines = sides.iter().chain(old_plans);
        let lines = lines.filter_map(|side| side.line.as_ref());
        let cancels: Vec<_> = lines.map(Tuples::cancel).collect();
        let measure = |mut sides: Vec<Side>| {
            let end = what(&mut sides);
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
        let executions = executions.sum::<u64>() * parts_of_turn(self.statement);
        let given = self.seconds * to_f64(executions);
        for round in 0.. {
            let elapsed = began.elapsed().as_secs_f64();
            if rounds.may_end(round, elapsed, given) || elapsed > STRETCH * given {
                break;
            }
            let seed = parameters(self.plan, self.block, self.cell, round);
            let drawn = rounds.slice(round, seed);
            let tuples: Vec<usize> = drawn
                .iter()
                .filter_map(|place| Some(warm.get(*place)?.0))
                .collect();
            for server in turn_order(self.plan, self.block, self.cell, round) {
                if let Some(side) = sides.get_mut(server.index()) {
                    self.turn(side, &tuples, round, |side| self.slice(side, &tuples))?;
                }
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
                side.keep_latest();
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
                self.turn(side, &[tuple], self.block, |side| self.latest(side, tuple))?;
                let latest = side.latest.as_ref();
                slowest = slowest.max(latest.map_or(0, |warm| warm.slowest_ns));
            }
        }
        Ok(slowest)
    }

    /// Executes a tuple of the warm-up in a session.
    fn latest(&self, side: &mut Side, tuple: usize) -> Result<(), Ended> {
        let mut warm = Warm::new(tuple);
        for _ in 0..passes(self.plan, side.server) {
            if let Some(executed) = self.execute(side, tuple)? {
                warm.add(&executed);
            }
        }
        side.latest = Some(warm);
        Ok(())
    }

    /// Does something in the turn of a server with these tuples, and the same with the plans of the base if
    /// the server has a session for that.
    fn turn(
        &self,
        side: &mut Side,
        tuples: &[usize],
        round: u32,
        what: impl Fn(&mut Side) -> Result<(), Ended>,
    ) -> Result<(), Ended> {
        let mut old = side.old_plan.take();
        let has_old_plan = old.as_ref().is_some_and(|old| old.line.is_some());
        for part in turn(self.statement, has_old_plan, round) {
            match (part, &mut old) {
                (Part::Own, _) => what(side)?,
                (Part::OldPlan, Some(old)) => self.aside(old, &what)?,
                (Part::OldPlan, None) | (Part::Beside, _) => self.beside(side, tuples)?,
            }
        }
        side.old_plan = old;
        Ok(())
    }

    /// Executes tuples as a slice does, and counts nothing of it.
    fn beside(&self, side: &mut Side, tuples: &[usize]) -> Result<(), Ended> {
        let passes = passes(self.plan, side.server);
        let mut all = (0..passes).flat_map(|_| tuples);
        all.try_for_each(|tuple| self.execute(side, *tuple).map(drop))
    }

    /// Does something with the old plan, which says nothing of the statement: what fails there ends only
    /// that.
    fn aside(
        &self,
        old: &mut Side,
        what: impl FnOnce(&mut Side) -> Result<(), Ended>,
    ) -> Result<(), Ended> {
        match what(old) {
            Err(Ended::Failed(..)) => {
                let tuples = self.statement.tuples.len();
                old.line = None;
                old.means = vec![Vec::new(); tuples];
                old.latest = None;
                old.warm_up.clear();
                Ok(())
            }
            done => done,
        }
    }

    fn slice(&self, side: &mut Side, tuples: &[usize]) -> Result<(), Ended> {
        let (started_ns, started) = (now_ns(), Instant::now());
        let mut sums = vec![(0_u64, 0_u64); self.statement.tuples.len()];
        let passes = passes(self.plan, side.server);
        let mut done = 0;
        for tuple in (0..passes).flat_map(|_| tuples) {
            let Some(executed) = self.execute(side, *tuple)? else {
                continue;
            };
            done += 1;
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
            executions: done,
        });
        side.add(&sums);
        Ok(())
    }

    /// Executes a tuple; nothing if a constraint refuses what it writes, because of what others wrote.
    fn execute(&self, side: &mut Side, tuple: usize) -> Result<Option<Executed>, Ended> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(Ended::Interrupted);
        }
        let Some(line) = side.line.as_mut() else {
            return Ok(None);
        };
        match line.execute(tuple) {
            Ok(executed) => Ok(Some(executed)),
            Err(WireError::Server(error))
                if self.statement.write.is_some() && violates(&error.sqlstate) =>
            {
                if let Some(refused) = side.refused.get_mut(tuple) {
                    *refused += 1;
                }
                Ok(None)
            }
            Err(error) => Err(self.ended(error, side.server)),
        }
    }

    /// Why a visit does not go on after an error of a server.
    fn ended(&self, error: WireError, server: ServerId) -> Ended {
        // Its statement was cancelled.
        if self.interrupted.load(Ordering::Relaxed) {
            return Ended::Interrupted;
        }
        let name = self.plan.server_name(server);
        Ended::of(error, server, |error| {
            gone(error, &name, &self.statement.id)
        })
    }
}

impl Ended {
    /// After a problem that the user may have caused, who wants to stop.
    pub fn unless_stopped(problem: Problem, interrupted: &AtomicBool) -> Self {
        match interrupted.load(Ordering::Relaxed) {
            true => Self::Interrupted,
            false => Self::Broken(problem),
        }
    }

    /// After an error of a server; `gone` tells of one that is of no use any more.
    pub fn of(error: WireError, server: ServerId, gone: impl Fn(&WireError) -> Problem) -> Self {
        match error {
            WireError::Server(error) => match ErrorClass::of(&error) {
                ErrorClass::Statement | ErrorClass::TooLong => {
                    Self::Failed(error.sqlstate, Some(server))
                }
                ErrorClass::Resources | ErrorClass::Conflict => Self::Failed(error.sqlstate, None),
                ErrorClass::DiskFull | ErrorClass::Useless => {
                    Self::Broken(gone(&WireError::Server(error)))
                }
            },
            error => Self::Broken(gone(&error)),
        }
    }
}

/// How the rows of the base, its copy and the candidates differ; absent if they do not.
fn differing(rows: &[u64]) -> Option<&'static str> {
    let (base, others) = rows.split_first()?;
    let (placebo, candidates) = others.split_first()?;
    match (placebo == base, candidates.iter().all(|rows| rows == base)) {
        (true, true) => None,
        (true, false) => Some(ROWS_DIFFER),
        (false, _) => Some(ROWS_VARY),
    }
}

/// Refuses a visit in which constraints refused other executions on one server than on the base.
fn same_refused(sides: &[Side]) -> Result<(), Ended> {
    let base = sides.first().map(|side| &side.refused);
    let other = sides.iter().find(|side| Some(&side.refused) != base);
    other.map_or(Ok(()), |_| Err(Ended::Failed(UNEQUAL.to_owned(), None)))
}

/// A tuple of the warm-up on a server.
#[derive(Debug)]
struct Warm {
    tuple: usize,
    times: SliceTimes,
    slowest_ns: u64,
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
            slowest_ns: 0,
            rows: 0,
        }
    }

    fn add(&mut self, executed: &Executed) {
        self.slowest_ns = self.slowest_ns.max(executed.duration_ns);
        self.times.executions += 1;
        self.times.duration_ns += executed.duration_ns;
        self.rows += executed.rows;
    }
}

impl Side {
    fn new(server: ServerId, line: Tuples, tuples: usize) -> Self {
        Self {
            server,
            old_plan: None,
            line: Some(line),
            refused: vec![0; tuples],
            means: vec![Vec::new(); tuples],
            executions: vec![0; tuples],
            totals: vec![0; tuples],
            slices: Vec::new(),
            rows: 0,
            latest: None,
            warm_up: Vec::new(),
        }
    }

    /// Goes on where the connection to an earlier copy ended.
    fn take_over(&mut self, before: Self) {
        *self = Self {
            line: self.line.take(),
            ..before
        };
    }

    /// What was executed last is the warm-up of its tuple.
    fn keep_latest(&mut self) {
        self.warm_up.extend(self.latest.take());
        if let Some(old) = &mut self.old_plan {
            old.keep_latest();
        }
    }

    /// Takes in the warm-up, with a slice for each tuple.
    fn count_warm_up(&mut self) {
        if let Some(old) = &mut self.old_plan {
            old.count_warm_up();
        }
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
            old_plan: self
                .old_plan
                .as_ref()
                .map(|old| Box::new(old.record(statement))),
            failed: None,
            failed_on: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_candidate_are_those_of_the_base_or_a_finding() {
        assert_eq!(differing(&[7, 7, 7, 7]), None);
        assert_eq!(differing(&[7, 7, 7, 8]), Some(ROWS_DIFFER));
        assert_eq!(differing(&[7, 7, 6]), Some(ROWS_DIFFER));
        assert_eq!(differing(&[7, 8, 7]), Some(ROWS_VARY));
        assert_eq!(differing(&[7]), None);
    }
}
