//! Steps in turns: all servers of a block are there, one works, and the others are frozen meanwhile.
//!
//! Each server has a thread that goes through its pass. It works while it has the baton, and passes it on at
//! the end of a turn and of a step. A step begins when all servers have ended the one before.

use super::baton::Baton;
use super::blocks::{Stage, StageEnd, kept, pass_of};
use super::pass::Pass;
use crate::passes::{PassEnd, PassKind, Place, Turn};
use deltabench_model::plan::ServerId;
use deltabench_model::problem::Problem;
use deltabench_model::work::insert::InsertSetup;
use deltabench_run::schedule::insert_turn_order;
use deltabench_run::session::Session;
use deltabench_run::visit::Address;
use deltabench_server::{FrozenServer, ThawGuard};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// All steps, in turns.
pub(super) struct StepsInTurns<'p> {
    setup: &'p InsertSetup,
    /// Servers that have started and have had no turn yet.
    frozen: Vec<FrozenServer>,
    /// Absent before the first block.
    guard: Option<ThawGuard>,
}

impl<'p> StepsInTurns<'p> {
    pub(super) fn new(setup: &'p InsertSetup) -> Self {
        Self {
            setup,
            frozen: Vec::new(),
            guard: None,
        }
    }
}

impl PassKind for StepsInTurns<'_> {
    const TOGETHER: bool = true;

    fn begin(&mut self, directory: &Path) -> Result<(), Problem> {
        self.guard = Some(ThawGuard::start(directory)?);
        Ok(())
    }

    /// It is frozen before the next one starts.
    fn started(&mut self, server: &Address) -> Result<(), Problem> {
        self.frozen.push(FrozenServer::of(server.own_pid()?)?);
        Ok(())
    }

    /// Afterwards no server is frozen any more.
    fn passes(
        &mut self,
        session: &mut Session<'_>,
        turns: &[Turn<'_>],
        place: &mut Place<'_>,
    ) -> Result<PassEnd, Problem> {
        let setup = self.setup;
        let passes = turns
            .iter()
            .map(|turn| pass_of(session, setup, (*turn, place)));
        let passes: Vec<Pass<'_>> = passes.collect::<Result<_, _>>()?;
        std::thread::scope(|scope| {
            let mut runners = Vec::new();
            let frozen = self.frozen.drain(..);
            for ((turn, pass), frozen) in turns.iter().zip(passes).zip(frozen) {
                let (go, gone) = sync_channel(1);
                let (pass_on, passed) = sync_channel(1);
                let (tell, told) = sync_channel(1);
                let baton = Baton::new(gone, pass_on);
                scope.spawn(move || work(pass, &baton, &tell));
                runners.push(Runner {
                    turn: *turn,
                    go,
                    passed,
                    told,
                    frozen: Some(frozen),
                });
            }
            stages(session, (setup, place), &mut runners)
        })
    }

    /// Servers that had no turn are frozen still.
    fn after(&mut self) -> Result<(), Problem> {
        self.frozen.clear();
        Ok(())
    }
}

/// A server of a block.
struct Runner<'a> {
    turn: Turn<'a>,
    go: SyncSender<()>,
    /// It has passed the baton on; whether at the end of a stage.
    passed: Receiver<bool>,
    told: Receiver<StageEnd>,
    /// Absent while it works.
    frozen: Option<FrozenServer>,
}

impl Runner<'_> {
    /// Lets it work until it passes the baton on: what it has come to, at the end of a stage. Then it is to
    /// be frozen, which fails if it is gone.
    ///
    /// Errors: its thread has ended.
    fn work(&mut self) -> Result<(Option<StageEnd>, Result<FrozenServer, Problem>), Problem> {
        let ended = || Problem::new("the thread of a server ended too early");
        drop(self.frozen.take());
        self.go.send(()).map_err(|_| ended())?;
        let is_over = self.passed.recv().map_err(|_| ended())?;
        let told = is_over.then(|| self.told.recv().map_err(|_| ended()));
        let told = told.transpose()?;
        let address = self.turn.address;
        Ok((told, address.own_pid().and_then(FrozenServer::of)))
    }
}

/// Lets the servers have their turns.
fn stages(
    session: &mut Session<'_>,
    (setup, place): (&InsertSetup, &mut Place<'_>),
    runners: &mut [Runner<'_>],
) -> Result<PassEnd, Problem> {
    let Some(block) = runners.first().map(|runner| runner.turn.block) else {
        return Ok(PassEnd::Complete);
    };
    for stage in Stage::all(setup) {
        let cell = stage.cell();
        stage.announce(session);
        let mut open: Vec<ServerId> = runners.iter().map(|runner| runner.turn.server).collect();
        let mut round = 0;
        while !open.is_empty() {
            for server in insert_turn_order(session.plan, block, cell, round) {
                let mut waiting = runners.iter_mut();
                let Some(runner) = waiting.find(|one| one.turn.server == server) else {
                    continue;
                };
                if !open.contains(&server) {
                    continue;
                }
                let (told, frozen) = runner.work()?;
                if let Some(told) = told {
                    open.retain(|one| *one != server);
                    if let Some(end) = kept(session, (runner.turn, place), setup, told)? {
                        return Ok(end);
                    }
                }
                match frozen {
                    Ok(frozen) => runner.frozen = Some(frozen),
                    Err(problem) => return runner.turn.lost_or(problem, cell),
                }
            }
            round += 1;
        }
    }
    Ok(PassEnd::Complete)
}

/// What the thread of a server does: its pass, while it has the baton.
fn work(mut pass: Pass<'_>, baton: &Baton, tell: &SyncSender<StageEnd>) {
    if !baton.take() {
        return;
    }
    for stage in Stage::all(pass.setup) {
        let end = stage.carry_out(&mut pass, Some(baton));
        if tell.send(end).is_err() || !baton.pass(true) {
            return;
        }
    }
}
