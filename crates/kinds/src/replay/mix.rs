//! A mix: many clients that send all statements by their weights, drawn by number and seed, so that all
//! servers get the same ones.

mod drawn;
mod record;

pub use drawn::{Drawn, members};
pub use record::{MixRecord, MixSlice};

use super::visit::{Ended, NOTHING_FITS, VisitEnd};
use deltabench_driver::WireError;
use deltabench_model::plan::{CellId, Plan, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::units::{to_f64, to_u64};
use deltabench_model::work::replay::ReplaySetup;
use deltabench_observe::{CpuMeter, own_affinity, pin_tree};
use deltabench_replay::{ErrorClass, MixedLines, TimedJob, TimedServers, gone, violates, watched};
use deltabench_run::clock::now_ns;
use deltabench_run::schedule::{parameters, turn_order};
use deltabench_run::visit::host_problem;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2Serializer};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// Aim for the length of a slice, seconds.
const SLICE_SECONDS: f64 = 0.25;
/// Slices of a visit on each server at least.
const LEAST_SLICES: u32 = 3;
/// The warm-up goes on until the slowest server has taken so many seconds for a part of it.
const WARM_SECONDS: f64 = 0.1;
/// The longest latency that is told apart, nanoseconds, and its digits.
const LONGEST_NS: u64 = 3_600_000_000_000;
const DIGITS: u8 = 3;
/// The round whose draw is that of the statements.
const OF_STATEMENTS: u32 = u32::MAX;

/// A visit to the mix.
pub struct MixVisit<'a> {
    pub plan: &'a Plan,
    pub setup: &'a ReplaySetup,
    pub jobs: &'a [TimedJob],
    pub servers: &'a TimedServers,
    pub clients: u32,
    pub block: u32,
    pub cell: CellId,
    /// Measured seconds on each server.
    pub seconds: f64,
    pub interrupted: &'a AtomicBool,
}

/// A server in a visit.
struct Side {
    server: ServerId,
    clients: Vec<MixedLines>,
    /// Absent where the host cannot tell.
    meter: Option<CpuMeter>,
    slices: Vec<MixSlice>,
}

/// What a client did in a slice.
struct Tally {
    latencies: Histogram<u64>,
    failed: u64,
    rows: u64,
}

impl MixVisit<'_> {
    /// Measures with free placement: clients and servers share all cores.
    ///
    /// Errors: a server that is gone, a host that does not let us pin.
    pub fn carry_out(&self) -> Result<VisitEnd<MixRecord>, Problem> {
        let members = members(self.setup);
        if members.is_empty() {
            return Ok(VisitEnd::Complete(without_members(self.plan)));
        }
        let own = own_affinity().map_err(host_problem)?;
        for pid in self.servers.pids() {
            pin_tree(pid, &own).map_err(host_problem)?;
        }
        let jobs: Vec<&TimedJob> = members.iter().filter_map(|at| self.jobs.get(*at)).collect();
        let seed = parameters(self.plan, self.block, self.cell, OF_STATEMENTS);
        let drawn = Drawn::of(self.setup, &members, seed);
        let copies = jobs.iter().any(|job| job.writes());
        let measured = self.measure(&jobs, &drawn, copies);
        match measured {
            Ok(sides) => Ok(VisitEnd::Complete(
                sides
                    .into_iter()
                    .map(|side| MixRecord::of(side.slices))
                    .collect(),
            )),
            Err(Ended::Interrupted) => Ok(VisitEnd::Interrupted),
            Err(Ended::Failed(sqlstate, server)) => {
                let failed = MixRecord::failed(sqlstate, server);
                Ok(VisitEnd::Complete(vec![failed; self.plan.servers.len()]))
            }
            Err(Ended::Broken(problem)) => Err(problem),
        }
    }

    fn measure(&self, jobs: &[&TimedJob], drawn: &Drawn, copies: bool) -> Result<Vec<Side>, Ended> {
        if copies {
            let made = self.servers.copy(self.interrupted);
            made.map_err(|problem| Ended::unless_stopped(problem, self.interrupted))?;
        }
        let sides = self.connect(jobs, copies)?;
        let mut sides = self.watched(sides, drawn)?;
        if copies {
            sides.iter_mut().for_each(|side| side.clients.clear());
            let gone = self.servers.drop_copies(self.interrupted);
            gone.map_err(|problem| Ended::unless_stopped(problem, self.interrupted))?;
        }
        Ok(sides)
    }

    /// Shape: in the order of the plan's servers; they connect in a drawn one.
    fn connect(&self, jobs: &[&TimedJob], copies: bool) -> Result<Vec<Side>, Ended> {
        let mut sides = Vec::with_capacity(self.plan.servers.len());
        for server in turn_order(self.plan, self.block, self.cell, OF_STATEMENTS) {
            let mut clients = Vec::new();
            for _ in 0..self.clients {
                let lines = self.servers.connect_mix(server.index(), jobs, copies);
                clients.push(lines.map_err(|error| self.ended(error, server))?);
            }
            let pid = self.servers.pid(server.index());
            let meter = pid.and_then(|pid| self.meter(pid));
            sides.push(Side {
                server,
                clients,
                meter,
                slices: Vec::new(),
            });
        }
        sides.sort_by_key(|side| side.server);
        Ok(sides)
    }

    /// The meter of a server: workers of parallel plans come and go, and only a control group sees them.
    fn meter(&self, pid: u32) -> Option<CpuMeter> {
        let parallel = self
            .setup
            .statements
            .iter()
            .any(|statement| statement.parallel);
        match parallel {
            true => CpuMeter::open_grouped(pid).ok(),
            false => CpuMeter::open(pid).ok(),
        }
    }

    /// Measures; an interruption ends the statements that run.
    fn watched(&self, sides: Vec<Side>, drawn: &Drawn) -> Result<Vec<Side>, Ended> {
        let clients = sides.iter().flat_map(|side| &side.clients);
        let cancels: Vec<_> = clients.flat_map(MixedLines::cancels).collect();
        let measure = |mut sides: Vec<Side>| {
            let end = self.rounds(&mut sides, drawn);
            Ok(end.map(|()| sides))
        };
        let end = || cancels.iter().for_each(|cancel| cancel.send());
        let ends = watched([sides], self.interrupted, measure, end);
        let end = ends.into_iter().next();
        end.unwrap_or_else(|| Ok(Err(Ended::Interrupted)))
            .unwrap_or_else(|problem| Err(Ended::Broken(problem)))
    }

    fn rounds(&self, sides: &mut [Side], drawn: &Drawn) -> Result<(), Ended> {
        let (mut next, each) = self.warm_up(sides, drawn)?;
        let slices = to_u64(self.seconds / SLICE_SECONDS);
        let slices = u32::try_from(slices).unwrap_or(u32::MAX).max(LEAST_SLICES);
        for round in 0..slices {
            let turns = turn_order(self.plan, self.block, self.cell, round);
            for (position, server) in (0..).zip(turns) {
                if let Some(side) = sides.get_mut(server.index()) {
                    let mut slice = self.slice(side, drawn, (next, each))?;
                    (slice.round, slice.position) = (round, position);
                    side.slices.push(slice);
                }
            }
            next += each;
        }
        Ok(())
    }

    /// Executes more and more statements on all servers, and finds how many take the time of a slice on the
    /// slowest.
    ///
    /// Shape: the number of the first statement that follows, and that of those in a slice.
    fn warm_up(&self, sides: &mut [Side], drawn: &Drawn) -> Result<(u64, u64), Ended> {
        let (mut next, mut part) = (0, u64::from(self.clients) * 32);
        loop {
            let mut slowest = 0;
            for server in turn_order(self.plan, self.block, self.cell, OF_STATEMENTS) {
                if let Some(side) = sides.get_mut(server.index()) {
                    slowest = slowest.max(self.slice(side, drawn, (next, part))?.duration_ns);
                }
            }
            next += part;
            let seconds = to_f64(slowest.max(1)) / 1e9;
            if seconds >= WARM_SECONDS {
                let each = to_u64(to_f64(part) * SLICE_SECONDS / seconds);
                return Ok((next, each.max(u64::from(self.clients))));
            }
            part *= 2;
        }
    }

    /// The statements from a number on, so many of them: each client takes the next one when it is free.
    fn slice(
        &self,
        side: &mut Side,
        drawn: &Drawn,
        (from, many): (u64, u64),
    ) -> Result<MixSlice, Ended> {
        if let Some(meter) = &mut side.meter {
            // What cannot be listed has ended: the next statement says so.
            let _ = meter.refresh();
        }
        let before = side.meter.as_mut().map(CpuMeter::read);
        let (started_ns, started) = (now_ns(), Instant::now());
        let next = AtomicU64::new(from);
        let server = side.server;
        let tallies: Vec<Result<Tally, Ended>> = std::thread::scope(|scope| {
            let clients = side.clients.iter_mut();
            let threads: Vec<_> = clients
                .map(|lines| {
                    scope.spawn(|| self.client((lines, server), drawn, (&next, from + many)))
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or(Err(Ended::Interrupted)))
                .collect()
        });
        let duration_ns = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let after = side.meter.as_mut().map(CpuMeter::read);
        let spent = before
            .zip(after)
            .map(|(before, after)| after.since(&before).cpu_ns);
        let mut all = Tally::new()?;
        for tally in tallies {
            all.add(&tally?);
        }
        Ok(MixSlice {
            round: 0,
            position: 0,
            started_ns,
            duration_ns,
            operations: all.latencies.len(),
            failed: all.failed,
            rows: all.rows,
            server_cpu_ns: spent,
            latency_histogram: all.serialized(),
        })
    }

    fn client(
        &self,
        (lines, server): (&mut MixedLines, ServerId),
        drawn: &Drawn,
        (next, end): (&AtomicU64, u64),
    ) -> Result<Tally, Ended> {
        let mut tally = Tally::new()?;
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= end {
                return Ok(tally);
            }
            if self.interrupted.load(Ordering::Relaxed) {
                return Err(Ended::Interrupted);
            }
            let (job, tuple) = drawn.number(number);
            match lines.execute(job, tuple) {
                Ok(executed) => {
                    tally
                        .latencies
                        .saturating_record(executed.duration_ns.max(1));
                    tally.rows += executed.rows;
                }
                // Clients are in each other's way; a slice says how often.
                Err(WireError::Server(error))
                    if ErrorClass::of(&error) == ErrorClass::Conflict
                        || violates(&error.sqlstate) =>
                {
                    tally.failed += 1;
                }
                Err(error) => return Err(self.ended(error, server)),
            }
        }
    }

    fn ended(&self, error: WireError, server: ServerId) -> Ended {
        if self.interrupted.load(Ordering::Relaxed) {
            return Ended::Interrupted;
        }
        let name = self.plan.server_name(server);
        Ended::of(error, server, |error| gone(error, &name, "the mix"))
    }
}

/// What a visit without any statement is on each server: no fault of one of them.
fn without_members(plan: &Plan) -> Vec<MixRecord> {
    vec![MixRecord::failed(NOTHING_FITS.to_owned(), None); plan.servers.len()]
}

impl Tally {
    fn new() -> Result<Self, Ended> {
        let latencies = Histogram::new_with_bounds(1, LONGEST_NS, DIGITS);
        let latencies = latencies.map_err(|error| {
            Ended::Broken(Problem::new("no histogram").detail(error.to_string()))
        })?;
        Ok(Self {
            latencies,
            failed: 0,
            rows: 0,
        })
    }

    fn add(&mut self, other: &Self) {
        // Of equal bounds: nothing that one holds is out of the other's range.
        let _ = self.latencies.add(&other.latencies);
        self.failed += other.failed;
        self.rows += other.rows;
    }

    fn serialized(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        // Into memory: it cannot fail but for its size, and an empty one has no quantiles.
        if V2Serializer::new()
            .serialize(&self.latencies, &mut bytes)
            .is_err()
        {
            bytes.clear();
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mix_that_no_statement_fits_has_no_verdict_and_ends_nothing_else() {
        let plan = deltabench_testkit::small_run::plan();
        let records = without_members(&plan);
        assert_eq!(records.len(), plan.servers.len());
        for record in records {
            assert!(record.failed.is_some() && record.failed_on.is_none());
        }
    }
}
