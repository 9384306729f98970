//! All cells of all targets, in all their starts: what is the same whatever is counted.

use crate::quota::Quotas;
use deltabench_model::counts::CountRecord;
use deltabench_model::plan::{CellId, Plan, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::profile::Profile;
use deltabench_model::units::count as number;
use deltabench_run::session::{Session, SessionEnd, store_problem};
use deltabench_server::Counter;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// Visits that may wait to be stored.
const QUEUE: usize = 64;

/// The targets of a plan, which can be started under a counter.
pub trait Targets {
    /// A target that was started, as its client on another thread needs it.
    type Started: Sync;

    /// Starts these targets, for the so manyth time from 0, with data that nobody has used; side by side
    /// where they can.
    ///
    /// Errors: those of a start. Some may run: each has to be ended.
    fn start(&mut self, servers: &[ServerId], start: u32) -> Result<Vec<Self::Started>, Problem>;

    /// Ends a target, whatever it does; it need not run any more.
    ///
    /// Errors: what it left behind cannot be removed.
    fn end(&mut self, server: ServerId) -> Result<(), Problem>;

    /// A problem of a target with what it said last.
    fn explained(&self, problem: Problem, server: ServerId) -> Problem;
}

/// Counts all cells of all targets in all their starts, as many targets side by side as there are cores. What
/// was counted is stored cell by cell. `cells` is the client of one target: it counts the cells of a start
/// and tells what came of them. `began` is when the session began, for a plan whose time is limited.
///
/// Errors: those of the targets and of `cells`; what was counted before stays in the store.
pub fn all_starts<T: Targets>(
    session: &mut Session<'_>,
    targets: &mut T,
    (counter, began): (&Counter, Instant),
    cells: impl Fn(&T::Started, &Client<'_>) -> Result<(), Problem> + Sync,
) -> Result<SessionEnd, Problem> {
    let plan = session.plan;
    let counting = plan.observing.counting.unwrap_or_default();
    let seconds = counting
        .seconds
        .map(|seconds| Duration::from_secs(seconds.into()));
    let mut work = Work {
        ends: seconds.map(|seconds| began + seconds),
        quotas: Quotas::of(plan.cells.len()),
        counter,
        done: 0,
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let servers: Vec<ServerId> = ServerId::each().take(plan.servers.len()).collect();
    for start in 0..counting.starts.max(1) {
        // The base comes first, and with it what the others wait for.
        for together in servers.chunks(cores) {
            if session.interrupted.load(Ordering::Relaxed) {
                return Ok(SessionEnd::Interrupted);
            }
            if is_over(work.ends) {
                session.observer.note("the time for counting is up");
                return Ok(SessionEnd::Finished);
            }
            let counted = work.one_start(session, targets, (start, together), &cells);
            end_all(targets, together, counted)?;
        }
    }
    match session.interrupted.load(Ordering::Relaxed) {
        true => Ok(SessionEnd::Interrupted),
        false => Ok(SessionEnd::Finished),
    }
}

/// Ends all of these targets, whatever became of them.
///
/// Errors: what went wrong with counting, because it came first; else the first target that does not end.
fn end_all(
    targets: &mut impl Targets,
    servers: &[ServerId],
    counted: Result<(), Problem>,
) -> Result<(), Problem> {
    let ends: Vec<_> = servers.iter().map(|server| targets.end(*server)).collect();
    counted.and(ends.into_iter().collect())
}

/// What a session counts with.
struct Work<'a> {
    quotas: Quotas,
    counter: &'a Counter,
    /// When no other cell is begun.
    ends: Option<Instant>,
    /// Visits so far.
    done: u64,
}

/// What was counted.
#[derive(Debug)]
pub struct Counted {
    /// One for each window.
    pub records: Vec<CountRecord>,
    /// Where the instructions of all windows went, without those of the marks; in the first start.
    pub profile: Option<Profile>,
}

/// What a target's client says to the thread that stores.
enum Said {
    Counted(Visited),
    Note(String),
}

/// A cell that was counted on a target.
struct Visited {
    server: ServerId,
    cell: CellId,
    counted: Counted,
}

impl Work<'_> {
    /// Starts these targets, each with a client of its own on another core, and counts all cells.
    fn one_start<T: Targets>(
        &mut self,
        session: &mut Session<'_>,
        targets: &mut T,
        (start, together): (u32, &[ServerId]),
        cells: &(impl Fn(&T::Started, &Client<'_>) -> Result<(), Problem> + Sync),
    ) -> Result<(), Problem> {
        let plan = session.plan;
        let names: Vec<String> = together.iter().map(|id| plan.server_name(*id)).collect();
        session.observer.note(&format!(
            "start {} of {} under {}",
            start + 1,
            names.join(" and "),
            self.counter.version
        ));
        let running = targets.start(together, start)?;
        let (interrupted, failed) = (session.interrupted, AtomicBool::new(false));
        let (quotas, ends) = (&self.quotas, self.ends);
        let done = &mut self.done;
        let ended = std::thread::scope(|scope| {
            let (sender, receiver) = sync_channel(QUEUE);
            let clients: Vec<_> = together
                .iter()
                .zip(&running)
                .map(|(server, started)| {
                    let client = Client {
                        plan,
                        server: *server,
                        start,
                        quotas,
                        interrupted,
                        failed: &failed,
                        ends,
                        sender: sender.clone(),
                    };
                    let work = move || client.all_cells(|client| cells(started, client));
                    (*server, scope.spawn(work))
                })
                .collect();
            drop(sender);
            let mut stored = Ok(());
            for said in receiver {
                let visited = match said {
                    Said::Counted(visited) => visited,
                    Said::Note(text) => {
                        session.observer.note(&text);
                        continue;
                    }
                };
                *done += 1;
                if stored.is_ok() {
                    stored = keep(session, &visited, *done);
                    failed.fetch_or(stored.is_err(), Ordering::Relaxed);
                }
            }
            let died = || Err(Problem::new("a counting client ended too early"));
            let ends: Vec<(ServerId, Result<(), Problem>)> = clients
                .into_iter()
                .map(|(server, client)| (server, client.join().unwrap_or_else(|_| died())))
                .collect();
            stored.map(|()| ends)
        })?;
        for (server, end) in ended {
            end.map_err(|problem| targets.explained(problem, server))?;
        }
        Ok(())
    }
}

/// Stores what was counted, and tells how far it has come.
fn keep(session: &mut Session<'_>, visited: &Visited, done: u64) -> Result<(), Problem> {
    let plan = session.plan;
    session
        .store
        .add_counts(session.run, &visited.counted.records)
        .map_err(store_problem)?;
    if let Some(profile) = &visited.counted.profile {
        session
            .store
            .add_count_profile(session.run, (visited.server, visited.cell), profile)
            .map_err(store_problem)?;
    }
    let starts = plan.observing.counting.unwrap_or_default().starts.max(1);
    let planned = number(plan.servers.len()) * number(plan.cells.len()) * u64::from(starts);
    let cell = plan.cell(visited.cell);
    let name = cell.map_or("?", |cell| cell.workload.as_str());
    let each = visited
        .counted
        .records
        .first()
        .map_or(0, |record| record.net() / record.operations.max(1));
    session.observer.note(&format!(
        "{done}/{planned}  {name} on {}: {each} instructions",
        plan.server_name(visited.server)
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

/// The client of one target in one of its starts.
#[derive(Debug)]
pub struct Client<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The target.
    pub server: ServerId,
    /// Which start of it, from 0.
    pub start: u32,
    /// How many operations cells get.
    pub quotas: &'a Quotas,
    /// Set when the user wants to stop.
    pub interrupted: &'a AtomicBool,
    /// Set when any client has failed.
    failed: &'a AtomicBool,
    /// When no other cell is begun, and no operation may go on for long.
    pub ends: Option<Instant>,
    sender: SyncSender<Said>,
}

impl Client<'_> {
    fn all_cells(self, cells: impl Fn(&Self) -> Result<(), Problem>) -> Result<(), Problem> {
        let _panic = TellsPanic(self.failed);
        let end = cells(&self);
        self.failed.fetch_or(end.is_err(), Ordering::Relaxed);
        end
    }

    /// Whether it is this target that decides how many operations cells get.
    pub fn decides(&self) -> bool {
        self.server == self.plan.base()
    }

    /// Whether no other cell is to be begun: the user wants to stop, another client has failed, the time is
    /// up.
    pub fn over(&self) -> bool {
        let told = self.interrupted.load(Ordering::Relaxed) || self.failed.load(Ordering::Relaxed);
        told || is_over(self.ends)
    }

    /// Has the counts of a cell stored; whether to go on.
    pub fn tell(&self, cell: CellId, counted: Counted) -> bool {
        let visited = Visited {
            server: self.server,
            cell,
            counted,
        };
        // Who stores has failed, and says so.
        self.sender.send(Said::Counted(visited)).is_ok()
    }

    /// Has the user told of something in the way, with the name of the target.
    pub fn note(&self, text: &str) {
        let name = self.plan.server_name(self.server);
        // Whoever does not listen any more has failed, and says so.
        let _ = self.sender.send(Said::Note(format!("{name}: {text}")));
    }
}

/// Whether this moment has come.
fn is_over(ends: Option<Instant>) -> bool {
    ends.is_some_and(|ends| Instant::now() >= ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Targets of which one cannot be ended, and those that were.
    struct Stubborn(ServerId, Vec<ServerId>);

    impl Targets for Stubborn {
        type Started = ();

        fn start(&mut self, servers: &[ServerId], _: u32) -> Result<Vec<()>, Problem> {
            Ok(vec![(); servers.len()])
        }

        fn end(&mut self, server: ServerId) -> Result<(), Problem> {
            self.1.push(server);
            match server == self.0 {
                true => Err(Problem::new("cannot remove its directory")),
                false => Ok(()),
            }
        }

        fn explained(&self, problem: Problem, _: ServerId) -> Problem {
            problem
        }
    }

    #[test]
    fn all_targets_are_ended_and_what_stopped_the_count_is_said_before_what_did_not_end() {
        let both = [ServerId(0), ServerId(1)];
        let ended = |counted| {
            let mut targets = Stubborn(both[0], Vec::new());
            let end = end_all(&mut targets, &both, counted);
            assert_eq!(targets.1, both);
            end.unwrap_err().error
        };
        assert_eq!(ended(Ok(())), "cannot remove its directory");
        assert_eq!(
            ended(Err(Problem::new("an operation failed"))),
            "an operation failed"
        );
    }

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
