//! Long operations on several servers, in turns: each works for a moment, and is stopped while others do.
//!
//! On a machine whose speed changes within a tenth of a second two operations of a second meet two machines.
//! In turns of the length of a slice they meet the same one.

use super::claims::Claims;
use super::single::{Alone, Single, Stage};
use super::turns::Turns;
use super::{Lane, Link, Work};
use crate::connection::Connection;
use crate::scan::{Loss, Progress};
use crate::slice::{Clock, SliceOutcome, SliceRequest, Tally};
use crate::sys;
use deltabench_workload::executable::Draws;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// What is done at the ends of a turn.
pub trait Stops {
    /// The turn of a server begins: what was stopped of it goes on.
    fn go_on(&mut self, server: usize);

    /// The turn of a server is over, and it has not answered: when this returns, it does nothing. Returns
    /// from when on.
    fn stop(&mut self, server: usize) -> Instant;

    /// After both, with the CPU of the client in the turn, nanoseconds.
    fn over(&mut self, server: usize, client_cpu_ns: u64);
}

impl Lane {
    /// Does exactly `request.operations` operations on each of these servers, in turns of this length. For
    /// lanes with one client that keeps its connection, in a closed loop.
    ///
    /// Durations and latencies leave out the time of others. A large answer that comes when a turn ends is
    /// received in the next one.
    ///
    /// Shape: outcomes in the order of `servers`, each of which is named once.
    pub fn run_interleaved(
        &mut self,
        servers: &[usize],
        request: SliceRequest,
        length: Duration,
        stops: &mut dyn Stops,
    ) -> Vec<SliceOutcome> {
        let refused: Vec<Option<SliceOutcome>> = servers
            .iter()
            .map(|server| self.refused(*server, request))
            .collect();
        let able = servers.iter().zip(&refused);
        let able: Vec<usize> = able
            .filter(|(_, refused)| refused.is_none())
            .map(|(server, _)| *server)
            .collect();
        let mut ends = self.take_turns(&able, request, length, stops).into_iter();
        refused
            .into_iter()
            .filter_map(|refused| refused.or_else(|| ends.next()))
            .collect()
    }

    /// The same on servers that can be used.
    fn take_turns(
        &mut self,
        servers: &[usize],
        request: SliceRequest,
        length: Duration,
        stops: &mut dyn Stops,
    ) -> Vec<SliceOutcome> {
        let (Some(empty), Some(pulse)) = (self.histograms.first(), self.watchdog.pulses().first())
        else {
            return Vec::new();
        };
        let mut histograms = vec![empty.0.clone(); servers.len()];
        let program = self.executable.program.as_ref();
        let tally = |histogram| Tally::new(histogram, program);
        let mut tallies: Vec<Tally<'_>> = histograms.iter_mut().map(tally).collect();
        let mut policies: Vec<Turns> = servers.iter().map(|_| Turns::settled()).collect();
        let claims = Claims::new(request.operations);
        let mut links = in_order(&mut self.links, servers);
        let all = links.iter().flat_map(|link| link.sockets.iter().cloned());
        self.watchdog.arm(&all.collect(), Vec::new());
        let mut partners: Vec<Partner<'_, '_, '_>> = Vec::new();
        let states = tallies.iter_mut().zip(&mut policies);
        for ((server, link), (tally, turns)) in servers.iter().zip(&mut links).zip(states) {
            let work = Work {
                executable: &self.executable,
                claims: &claims,
                draws: Draws::new(request.seed, request.first_operation),
                rate: None,
                limit: self.op_timeout,
                pulse,
            };
            let alone = Alone {
                turns,
                before_send: None,
                probe: None,
            };
            let single = Single::new(work, alone, tally);
            partners.extend(
                link.connections_mut().next().map(|connection| {
                    Partner::new(*server, connection, single, request.operations)
                }),
            );
        }
        let ends = in_turns(partners, length, stops);
        let cut_off = self.watchdog.disarm();
        let mut outcomes = Vec::new();
        for (((end, cpu_ns), tally), link) in ends.into_iter().zip(tallies).zip(links) {
            let end = match end {
                Err(_) if cut_off => Err(Loss::Stalled),
                end => end,
            };
            let mut outcome = SliceOutcome {
                client_cpu_ns: cpu_ns,
                ..tally.outcome(end)
            };
            link.conclude(&mut outcome);
            outcomes.push(outcome);
        }
        for (outcome, histogram) in outcomes.iter_mut().zip(&histograms) {
            outcome.latency_histogram = super::serialized(&mut self.serializer, histogram);
        }
        outcomes
    }
}

/// Gives all of them turns until each is through; how each ended, and CPU of the client for it, nanoseconds.
fn in_turns(
    mut partners: Vec<Partner<'_, '_, '_>>,
    length: Duration,
    stops: &mut dyn Stops,
) -> Vec<(Result<(), Loss>, u64)> {
    while partners.iter().any(|partner| partner.end.is_none()) {
        for partner in partners.iter_mut().filter(|partner| partner.end.is_none()) {
            partner.turn(length, stops);
        }
    }
    let end = |partner: Partner<'_, '_, '_>| (partner.end.unwrap_or(Ok(())), partner.cpu_ns);
    partners.into_iter().map(end).collect()
}

/// The links to these servers, in this order.
fn in_order<'l>(links: &'l mut [Link], servers: &[usize]) -> Vec<&'l mut Link> {
    let place = |server: usize| servers.iter().position(|other| *other == server);
    let named = links.iter_mut().enumerate();
    let mut found: Vec<(usize, &mut Link)> = named
        .filter_map(|(server, link)| Some((place(server)?, link)))
        .collect();
    found.sort_by_key(|(place, _)| *place);
    found.into_iter().map(|(_, link)| link).collect()
}

/// A server's slice among others.
struct Partner<'a, 't, 'h> {
    server: usize,
    connection: &'a mut Connection,
    single: Single<'a, 't, 'h>,
    /// Operations that are not begun yet.
    left: u64,
    /// Where the latest operation is; absent before the first.
    stage: Option<Stage>,
    /// When its latest turn was over.
    stopped: Option<Instant>,
    /// CPU of the client in its turns.
    cpu_ns: u64,
    end: Option<Result<(), Loss>>,
}

impl<'a, 't, 'h> Partner<'a, 't, 'h> {
    fn new(
        server: usize,
        connection: &'a mut Connection,
        single: Single<'a, 't, 'h>,
        operations: u64,
    ) -> Self {
        Self {
            server,
            connection,
            single,
            left: operations,
            stage: None,
            stopped: None,
            cpu_ns: 0,
            end: None,
        }
    }

    /// Works for a turn, or until all is done.
    fn turn(&mut self, length: Duration, stops: &mut dyn Stops) {
        stops.go_on(self.server);
        let (began, cpu_before_ns) = (Instant::now(), sys::thread_cpu_ns());
        let tally = &mut *self.single.tally;
        tally.clock = match self.stopped.take() {
            Some(stopped) => tally
                .clock
                .without(began.saturating_duration_since(stopped)),
            None => Clock::start(),
        };
        match self.work(began + length) {
            Ok(true) => {
                self.single.tally.end();
                self.end = Some(Ok(()));
            }
            Ok(false) => {
                self.stopped = Some(stops.stop(self.server));
            }
            Err(loss) => {
                self.single.tally.end();
                self.end = Some(Err(loss));
            }
        }
        let spent_ns = sys::thread_cpu_ns().saturating_sub(cpu_before_ns);
        self.cpu_ns += spent_ns;
        stops.over(self.server, spent_ns);
    }

    /// Works until then; whether all is done.
    fn work(&mut self, until: Instant) -> Result<bool, Loss> {
        self.single.beat();
        loop {
            let waits = matches!(self.stage, Some(Stage::Waits));
            if waits && !self.await_answer(until)? {
                return Ok(false);
            }
            self.stage = Some(match (waits, self.left) {
                (true, _) => self.single.answered(self.connection, 1)?,
                (false, 0) => return Ok(true),
                (false, _) => self.begin()?,
            });
        }
    }

    /// Begins the next operation.
    fn begin(&mut self) -> Result<Stage, Loss> {
        self.left -= 1;
        let Single { work, tally, .. } = &mut self.single;
        let started_ns = tally.clock.now();
        self.connection.draw(work.executable, &mut work.draws);
        tally.begun(self.connection.script());
        self.single.begin(self.connection, started_ns)
    }

    /// Waits for an answer until then; whether it is there.
    fn await_answer(&mut self, until: Instant) -> Result<bool, Loss> {
        loop {
            let rest = until.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                return match self.single.age() > self.single.work.limit {
                    true => Err(Loss::Stalled),
                    false => Ok(false),
                };
            }
            let socket = self.connection.socket().as_fd();
            let there = sys::wait_for_input_within(socket, rest)
                .map_err(|error| Loss::Closed(format!("waiting: {error}")))?;
            if there && self.connection.receive()? == Progress::Ready {
                return Ok(true);
            }
        }
    }
}
