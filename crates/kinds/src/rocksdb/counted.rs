//! Instructions of a library, counted in its worker.
//!
//! A worker runs under the counter and goes through the chain of steps. What is counted is what the thread of
//! a step does in calls of the library: neither the worker's own code (keys, clocks, latencies) nor the
//! threads for flushes and compactions, whose work falls where time puts it. Before the windows of a step the
//! block cache fills, without being counted, and nothing is left to compact. Steps beside a writer are
//! counted without it: its rate means nothing where an operation takes fifty times as long.

use super::blocks::BlockState;
use super::chain::step_order;
use super::workers::{WorkerContext, home, remove, start_one, stop};
use deltabench_counting::{Client, Counted, OfLibrary, Targets, all_starts, of_library};
use deltabench_engine::{Engine, EngineError, StepOrder, TurnOrder, Turned, counts_dir};
use deltabench_model::counts::CountRecord;
use deltabench_model::installation::Engine as Kind;
use deltabench_model::plan::{CellId, Plan, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::profile::Profile;
use deltabench_model::units::to_f64;
use deltabench_model::work::rocksdb::{RocksdbSetup, RocksdbStep};
use deltabench_run::benchmark::Blocks;
use deltabench_run::session::{Session, SessionEnd};
use deltabench_server::{Counter, counts_file};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Operations of a window: enough that the files of a tree, of which each has its own filter and index, have
/// their share.
const WINDOW: u64 = 1000;

/// Keys that fill the block cache before a step that reads, at most; as many as there are if they are fewer.
const WARM_UP_MOST: u64 = 50_000;

/// Functions that are calls of the library begin so: they are its interface for C.
const INTERFACE: &str = "rocksdb_";

/// What such calls are below in a profile.
const CALLS: &str = "calls of the library";

/// Where a copy of this program is, in a workspace: the counter opens what it counts by its name, as the user
/// that works.
const WORKER: &str = "worker";

/// Number of the turn that fills caches; windows are numbered from 0.
const WARM_UP_TURN: u32 = 1 << 20;

/// Refuses plans whose work is not seen by a counter.
///
/// Errors: what is in the way.
pub fn check_counted(plan: &Plan) -> Result<(), Problem> {
    let of_programs = |kind| kind == Kind::DbBench;
    let mut servers = plan.servers.iter();
    if let Some(server) = servers.find(|server| of_programs(server.installation.engine)) {
        return Err(
            Problem::new(format!("{} cannot be counted", server.installation.asked))
                .detail("db_bench does a whole step at a time, for as long as it takes")
                .hint("count a library, for example rocksdb:10.2.1 or rocksdb:path:LIB.so"),
        );
    }
    Ok(())
}

/// Why the steps of a run that measured them are not counted.
pub fn measured_steps() -> Problem {
    Problem::new("the steps of a measured run cannot be counted")
        .detail("a count goes through the chain by itself, without the writer of some steps")
        .hint("use `deltabench count BASE CANDIDATE --only STEP`, then `deltabench explain last`")
}

/// Counts all steps of a plan on all of its libraries.
///
/// Errors: anything that makes counting impossible; what was counted before stays in the store.
pub fn count<'p>(
    setup: &'p RocksdbSetup,
    session: &mut Session<'p>,
    counter: &Counter,
) -> Result<SessionEnd, Problem> {
    let began = Instant::now();
    let mut state = BlockState::create(setup, session)?;
    let end = state
        .set_up(session)
        .and_then(|()| state.introduce(session))
        .and_then(|batched| match batched {
            Some(batched) => all_steps(session, &state, (batched, counter, began)),
            None => Ok(SessionEnd::Interrupted),
        });
    let taken_down = Box::new(state).take_down();
    let interrupted = session.interrupted.load(Ordering::Relaxed);
    let end = match end {
        // A worker that was told to stop has failed.
        Err(_) if interrupted => SessionEnd::Interrupted,
        end => end?,
    };
    taken_down.map(|()| end)
}

fn all_steps(
    session: &mut Session<'_>,
    state: &BlockState<'_>,
    (batched, counter, began): (bool, &Counter, Instant),
) -> Result<SessionEnd, Problem> {
    let context = state.context(session);
    let worker = own_program(&context)?;
    let context = WorkerContext {
        worker: &worker,
        counter: Some(counter),
        ..context
    };
    let setup = context.setup;
    let mut targets = Libraries { context };
    all_starts(
        session,
        &mut targets,
        (counter, began),
        |library, client| {
            let mut library = library.lock().unwrap_or_else(PoisonError::into_inner);
            library.steps(setup, batched, client)
        },
    )
}

/// A copy of this program.
fn own_program(context: &WorkerContext<'_, '_>) -> Result<PathBuf, Problem> {
    let copy = context.workspace.directory().join(WORKER);
    std::fs::copy(context.worker, &copy).map_err(|error| {
        Problem::new(format!("cannot copy this program to {}", copy.display()))
            .detail(error.to_string())
    })?;
    Ok(copy)
}

/// The libraries of a plan.
struct Libraries<'c, 'i> {
    context: WorkerContext<'c, 'i>,
}

/// A library at work under the counter.
struct Library<'i> {
    engine: Engine<'i>,
    counts: PathBuf,
    /// Marks so far: files are numbered by them, from 1.
    marks: u32,
}

impl<'i> Targets for Libraries<'_, 'i> {
    type Started = Mutex<Library<'i>>;

    fn start(&mut self, servers: &[ServerId], _: u32) -> Result<Vec<Self::Started>, Problem> {
        let context = &self.context;
        let one = |server: &ServerId| {
            let home = home(context.workspace, server.index());
            let started = start_one(context, server.index(), &home);
            let (engine, _) = started.map_err(|stop| stop.problem(context.plan))?;
            Ok(Mutex::new(Library {
                engine,
                counts: counts_dir(&home),
                marks: 0,
            }))
        };
        servers.iter().map(one).collect()
    }

    fn end(&mut self, server: ServerId) -> Result<(), Problem> {
        remove(&home(self.context.workspace, server.index()))
    }

    /// An engine says its last words itself.
    fn explained(&self, problem: Problem, _: ServerId) -> Problem {
        problem
    }
}

impl Library<'_> {
    /// Goes through the chain and counts its cells.
    fn steps(
        &mut self,
        setup: &RocksdbSetup,
        batched: bool,
        client: &Client<'_>,
    ) -> Result<(), Problem> {
        let lost = |error: EngineError| stop(client.server, error).problem(client.plan);
        for (place, link) in setup.chain().iter().enumerate() {
            if client.over() {
                return Ok(());
            }
            let order = StepOrder {
                batched,
                ..step_order(client.plan, 0, place, link)
            };
            let Some(cell) = link.cell else {
                self.engine.prepare(order).map_err(lost)?;
                continue;
            };
            let counted = self.step((setup, order), cell, client)?;
            if !client.tell(cell, counted) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Counts a cell.
    fn step(
        &mut self,
        (setup, order): (&RocksdbSetup, StepOrder),
        cell: CellId,
        client: &Client<'_>,
    ) -> Result<Counted, Problem> {
        let lost = |error: EngineError| stop(client.server, error).problem(client.plan);
        let done = |turned: Turned| match turned.first_error {
            None => Ok(turned.rows),
            Some(words) => Err(Problem::new(format!("{} failed", order.step.name())).detail(words)),
        };
        self.engine.begin(order).map_err(lost)?;
        let warm_up = turn(
            WARM_UP_TURN,
            warm_up(setup, order.step),
            order.step.writes(),
        );
        done(self.engine.turn(warm_up).map_err(lost)?)?;
        let (mut records, mut profile): (_, Option<Profile>) = (Vec::new(), None);
        let windows = client.plan.observing.counting.unwrap_or_default().windows;
        for window in 0..windows.max(1) {
            let counted = self.engine.count(turn(window, WINDOW, false));
            let rows = done(counted.map_err(lost)?)?;
            self.marks += 1;
            let file = counts_file(&self.counts, self.engine.pid(), self.marks);
            let OfLibrary {
                instructions,
                profile: calls,
                of_threads,
            } = of_library(&file, INTERFACE, CALLS)?;
            let calls = calls.of(WINDOW);
            records.push(CountRecord {
                server: client.server,
                cell,
                start: client.start,
                window,
                operations: WINDOW,
                instructions,
                of_marks: 0,
                of_clock: instructions.cast_signed() - calls.total(),
                rows,
                failed: 0,
                beside: Some(to_f64(of_threads) / to_f64(instructions.max(1))),
            });
            if client.start == 0 {
                profile = Some(calls.after(profile.as_ref()));
            }
            // It is megabytes, and there are many.
            let _ = std::fs::remove_file(file);
        }
        self.engine.finish().map_err(lost)?;
        Ok(Counted { records, profile })
    }
}

fn turn(number: u32, operations: u64, settle: bool) -> TurnOrder {
    TurnOrder {
        number,
        operations,
        counted: false,
        settle,
    }
}

/// Operations of a step before its windows.
fn warm_up(setup: &RocksdbSetup, step: RocksdbStep) -> u64 {
    match step.writes() {
        true => WINDOW,
        false => setup.keys.clamp(WINDOW, WARM_UP_MOST),
    }
}
