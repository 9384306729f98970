//! A visit to servers that are there one at a time, because they do not fit into memory together or because
//! each is to work without a break.
//!
//! Every server is started for a part of the visit's rounds and stopped again, in the visit's rotation, three
//! times over. The rounds of two servers then lie seconds apart, not milliseconds: drift of the machine is
//! not cancelled as well as with slices in turn, and the interval over blocks shows it. A sustained visit
//! starts every server once, for all of its rounds.

use super::connected::{Connected, SliceWork};
use super::{Address, Sink, Visit, VisitEnd, VisitReport, host_problem};
use deltabench_model::plan::ServerId;
use deltabench_model::problem::Problem;
use deltabench_observe::{own_affinity, restore};
use std::sync::atomic::Ordering;

/// Times that every server is started in one visit.
pub const TURNS: u32 = 3;

/// Warm-up of a server that was started a moment ago, in times of the asked one.
const START_WARMUP: f64 = 2.0;

/// Whoever starts and stops the servers.
pub trait Rotation {
    /// Starts a server for the visit's cell; `fresh` if nothing of this visit may have touched its tables.
    ///
    /// Errors: a server that does not start.
    fn start(&mut self, server: ServerId, fresh: bool) -> Result<Address, Problem>;
    /// Stops it; `last` if it is not started again in this visit.
    ///
    /// Errors: a server that did not stop cleanly.
    fn stop(&mut self, server: ServerId, last: bool) -> Result<(), Problem>;
}

impl Visit<'_> {
    /// As [`Visit::carry_out`], with servers that are started for their turns only.
    ///
    /// Errors: as there, and those of `rotation`.
    pub fn carry_out_rotated(
        &self,
        rotation: &mut dyn Rotation,
        sink: Sink<'_>,
    ) -> Result<VisitReport, Problem> {
        let own_cores = own_affinity().map_err(host_problem)?;
        let core_speed = self.core_speed();
        let end = self.pin_client().and_then(|()| self.turns(rotation, sink));
        restore(&own_cores).map_err(host_problem)?;
        Ok(VisitReport {
            end: end?,
            warm_up: None,
            counters: Vec::new(),
            core_speed,
            profiles: Vec::new(),
        })
    }

    fn turns(&self, rotation: &mut dyn Rotation, sink: Sink<'_>) -> Result<VisitEnd, Problem> {
        let base = self.plan.base();
        let address = rotation.start(base, true)?;
        self.pin_server(&address)?;
        let calibrated = Connected::open(self, vec![(base, address)], 0, 0)?.calibrate();
        rotation.stop(base, false)?;
        let work = match calibrated {
            Ok(work) => work,
            Err((server, reason)) => return Ok(VisitEnd::Lost(server, reason)),
        };
        let mut done = 0;
        let turns = self.turns_of_a_server();
        for turn in 0..turns {
            let mut done_after = done;
            for &server in &self.schedule.rotation {
                if self.interrupted.load(Ordering::Relaxed) {
                    return Ok(VisitEnd::Interrupted);
                }
                let address = rotation.start(server, turn == 0)?;
                self.pin_server(&address)?;
                let ended = self.turn((server, address), turn, work, done, sink)?;
                rotation.stop(server, turn + 1 == turns)?;
                match ended {
                    Ok(after) => done_after = after,
                    Err(end) => return Ok(end),
                }
            }
            done = done_after;
        }
        Ok(VisitEnd::Complete)
    }

    fn start_warmup(&self) -> f64 {
        match self.plan.timing.warmup_chosen {
            true => 1.0,
            false => START_WARMUP,
        }
    }

    fn turns_of_a_server(&self) -> u32 {
        if self.plan.timing.sustained { 1 } else { TURNS }
    }

    /// One server's part of the rounds; the operations it has done by then.
    fn turn(
        &self,
        server: (ServerId, Address),
        turn: u32,
        work: SliceWork,
        done: u64,
        sink: Sink<'_>,
    ) -> Result<Result<u64, VisitEnd>, Problem> {
        let (rounds, turns) = (self.rounds(work.seconds), self.turns_of_a_server());
        let mut connected = Connected::open(self, vec![server], turn, done)?;
        if !self.is_cold()
            && let Err((server, reason)) = connected.warm_for(work, self.start_warmup())
        {
            return Ok(Err(VisitEnd::Lost(server, reason)));
        }
        for round in (0..rounds).filter(|round| round * turns / rounds == turn) {
            if self.interrupted.load(Ordering::Relaxed) {
                return Ok(Err(VisitEnd::Interrupted));
            }
            if let Some((server, reason)) = connected.round(round, work, sink)? {
                return Ok(Err(VisitEnd::Lost(server, reason)));
            }
        }
        Ok(Ok(connected.done()))
    }
}
