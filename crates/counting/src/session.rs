//! All cells on all servers, in all their starts.

use crate::asleep::Standing;
use crate::quota::Quotas;
use crate::visit::{Counted, Visit};
use deltabench_model::plan::{CellId, Plan, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::units::count as number;
use deltabench_run::executables::compile;
use deltabench_run::fleet::{CountedServer, Fleet};
use deltabench_run::session::{Session, SessionEnd, store_problem};
use deltabench_server::Counter;
use deltabench_workload::executable::Executable;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// Visits that may wait to be stored.
const QUEUE: usize = 64;

/// Loads the plan's servers, counts all its cells on each of them, and takes them down again. What was
/// counted is stored cell by cell.
///
/// Errors: anything that makes counting impossible; what was counted before stays in the store.
pub fn count(session: &mut Session<'_>, counter: &Counter) -> Result<SessionEnd, Problem> {
    let began = Instant::now();
    let executables = compile(session.plan, session.library)?;
    let (mut fleet, facts) = session.fleet()?;
    let end = session
        .load(&mut fleet, &executables, &facts)
        .and_then(|()| {
            let counting = session.plan.observing.counting.unwrap_or_default();
            let seconds = counting
                .seconds
                .map(|seconds| Duration::from_secs(seconds.into()));
            let mut work = Work {
                ends: seconds.map(|seconds| began + seconds),
                quotas: Quotas::of(session.plan.cells.len()),
                executables: &executables,
                counter,
                done: 0,
            };
            work.all_starts(session, &mut fleet)
        });
    let taken_down = fleet.dismantle();
    let end = end?;
    taken_down.map(|()| end)
}

/// What a session counts with.
struct Work<'a> {
    quotas: Quotas,
    executables: &'a [Executable],
    counter: &'a Counter,
    /// When no other cell is begun.
    ends: Option<Instant>,
    /// Visits so far.
    done: u64,
}

/// What a server's client says to the thread that stores.
struct Said {
    server: ServerId,
    cell: CellId,
    counted: Counted,
}

impl Work<'_> {
    fn all_starts<'a>(
        &mut self,
        session: &mut Session<'a>,
        fleet: &mut Fleet<'a>,
    ) -> Result<SessionEnd, Problem> {
        let plan = session.plan;
        let starts = plan.observing.counting.unwrap_or_default().starts.max(1);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let servers: Vec<ServerId> = ServerId::each().take(plan.servers.len()).collect();
        for start in 0..starts {
            // The base comes first, and with it what the others wait for.
            for together in servers.chunks(cores) {
                if session.interrupted.load(Ordering::Relaxed) {
                    return Ok(SessionEnd::Interrupted);
                }
                if is_over(self.ends) {
                    session.observer.note("the time for counting is up");
                    return Ok(SessionEnd::Finished);
                }
                let counted = self.one_start(session, fleet, start, together);
                for server in together {
                    fleet.abandon(*server)?;
                }
                counted?;
            }
        }
        match session.interrupted.load(Ordering::Relaxed) {
            true => Ok(SessionEnd::Interrupted),
            false => Ok(SessionEnd::Finished),
        }
    }

    /// Starts these servers, each with a client of its own on another core, and counts all cells.
    fn one_start<'a>(
        &mut self,
        session: &mut Session<'a>,
        fleet: &mut Fleet<'a>,
        start: u32,
        together: &[ServerId],
    ) -> Result<(), Problem> {
        let plan = session.plan;
        let names: Vec<String> = together.iter().map(|id| plan.server_name(*id)).collect();
        session.observer.note(&format!(
            "start {} of {} under {}",
            start + 1,
            names.join(" and "),
            self.counter.version
        ));
        // Call paths are kept of the first start.
        let counter = match start {
            0 => self.counter.clone(),
            _ => self.counter.shallow(),
        };
        let mut running = Vec::new();
        for server in together {
            running.push(fleet.start_counted(*server, &counter)?);
        }
        let (interrupted, failed) = (session.interrupted, AtomicBool::new(false));
        let (quotas, executables, ends) = (&self.quotas, self.executables, self.ends);
        let done = &mut self.done;
        let ended = std::thread::scope(|scope| {
            let (sender, receiver) = sync_channel(QUEUE);
            let clients: Vec<_> = running
                .iter()
                .map(|server| {
                    let client = Client {
                        plan,
                        server,
                        start,
                        executables,
                        quotas,
                        interrupted,
                        failed: &failed,
                        ends,
                        sender: sender.clone(),
                    };
                    (server.server, scope.spawn(move || client.all_cells()))
                })
                .collect();
            drop(sender);
            let mut stored = Ok(());
            for said in receiver {
                *done += 1;
                if stored.is_ok() {
                    stored = keep(session, &said, *done);
                    failed.fetch_or(stored.is_err(), Ordering::Relaxed);
                }
            }
            let died = || Err(Problem::new("a counting client ended before its time"));
            let ends: Vec<(ServerId, Result<(), Problem>)> = clients
                .into_iter()
                .map(|(server, client)| (server, client.join().unwrap_or_else(|_| died())))
                .collect();
            stored.map(|()| ends)
        })?;
        for (server, end) in ended {
            end.map_err(|problem| fleet.explained(problem, server))?;
        }
        Ok(())
    }
}

/// Stores what was counted, and tells how far it has come.
fn keep(session: &mut Session<'_>, said: &Said, done: u64) -> Result<(), Problem> {
    let plan = session.plan;
    session
        .store
        .add_counts(session.run, &said.counted.records)
        .map_err(store_problem)?;
    if let Some(profile) = &said.counted.profile {
        session
            .store
            .add_count_profile(session.run, (said.server, said.cell), profile)
            .map_err(store_problem)?;
    }
    let starts = plan.observing.counting.unwrap_or_default().starts.max(1);
    let planned = number(plan.servers.len()) * number(plan.cells.len()) * u64::from(starts);
    let cell = plan.cell(said.cell);
    let name = cell.map_or("?", |cell| cell.workload.as_str());
    let each = said
        .counted
        .records
        .first()
        .map_or(0, |record| record.net() / record.operations.max(1));
    session.observer.note(&format!(
        "{done}/{planned}  {name} on {}: {each} instructions",
        plan.server_name(said.server)
    ));
    Ok(())
}

/// Tells of a panic of its thread: others would wait for that one for ever.
struct TellsPanic<'a>(&'a AtomicBool);

impl Drop for TellsPanic<'_> {
    fn drop(&mut self) {
        let Self(failed) = self;
        failed.fetch_or(std::thread::panicking(), Ordering::Relaxed);
    }
}

/// The client of one server in one of its starts.
struct Client<'a> {
    plan: &'a Plan,
    server: &'a CountedServer<'a>,
    start: u32,
    executables: &'a [Executable],
    quotas: &'a Quotas,
    interrupted: &'a AtomicBool,
    /// Set when any client has failed.
    failed: &'a AtomicBool,
    /// When no other cell is begun.
    ends: Option<Instant>,
    sender: SyncSender<Said>,
}

impl Client<'_> {
    fn all_cells(self) -> Result<(), Problem> {
        let _panic = TellsPanic(self.failed);
        let end = self.cells();
        self.failed.fetch_or(end.is_err(), Ordering::Relaxed);
        end
    }

    fn cells(&self) -> Result<(), Problem> {
        let standing = Standing::of(self.server.postmaster_pid);
        self.server.warm()?;
        let wal_writer = match self.plan.cells.iter().any(|cell| cell.writes) {
            true => self.server.wal_writer()?,
            false => None,
        };
        let cells = CellId::each().zip(&self.plan.cells).zip(self.executables);
        for (cell, executable) in cells {
            if self.over() {
                return Ok(());
            }
            let visit = Visit {
                plan: self.plan,
                server: self.server,
                standing: &standing,
                wal_writer: wal_writer.filter(|_| cell.1.writes),
                start: self.start,
                cell,
                executable,
                quotas: self.quotas,
                decides: self.server.server == self.plan.base(),
                ends: self.ends,
            };
            let Some(counted) = visit.count(|| self.over())? else {
                return Ok(());
            };
            let said = Said {
                server: self.server.server,
                cell: cell.0,
                counted,
            };
            // Who stores has failed, and says so.
            if self.sender.send(said).is_err() {
                return Ok(());
            }
        }
        Ok(())
    }

    fn over(&self) -> bool {
        let told = self.interrupted.load(Ordering::Relaxed) || self.failed.load(Ordering::Relaxed);
        told || is_over(self.ends)
    }
}

/// Whether this moment has come.
fn is_over(ends: Option<Instant>) -> bool {
    ends.is_some_and(|ends| Instant::now() >= ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_told_and_an_end_is_not() {
        let failed = AtomicBool::new(false);
        let ended = |panics: bool| {
            let failed = &failed;
            std::thread::scope(|scope| {
                let client = scope.spawn(move || {
                    let _panic = TellsPanic(failed);
                    assert!(!panics, "meant");
                });
                client.join().is_ok()
            })
        };
        assert!(ended(false) && !failed.load(Ordering::Relaxed));
        assert!(!ended(true) && failed.load(Ordering::Relaxed));
    }
}
