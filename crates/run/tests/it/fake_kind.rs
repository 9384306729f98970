//! A kind of benchmark whose servers are words: they start, work, are lost and are killed as a test wants, on
//! a clock that moves when they do.

use deltabench_compare::Reader;
use deltabench_model::plan::{Cell, CellId, Plan, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::slice::{Slice, VoidReason};
use deltabench_run::benchmark::{Benchmark, BlockEnd, BlockOrder, Blocks};
use deltabench_run::clock::{Clock, now_ns};
use deltabench_run::events::{BlockProgress, Observer};
use deltabench_run::occupancy::{AtOnce, Needs, Occupancy, PlannedTime};
use deltabench_run::pilot::Pilot;
use deltabench_run::planning::{Request, ServerWish};
use deltabench_run::session::{Loss, RunProgress, Session, SessionEnd, store_problem};
use deltabench_testkit::small_run::bare_slice;
use deltabench_workload::Library;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A moment in the life of servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    Create,
    SetUp,
    Start,
    /// Before the first slice of a visit.
    Visit,
    /// Between two slices.
    Slice,
    /// After the last slice, before the visit is durable.
    Keep,
    /// After it is durable, before anybody notes that.
    Kept,
    Stop,
    Conclude,
    TakeDown,
}

/// What happens to servers, and what has happened.
#[derive(Debug, Default)]
pub struct Life {
    /// Places where a server is lost, whenever one is there.
    pub lost_at: BTreeSet<(u32, CellId)>,
    /// Whether a place that lost its server is measured after the last block, on a server that lives.
    pub postpones: bool,
    /// Phases in which something goes wrong that ends the run.
    pub broken: BTreeSet<Phase>,
    /// The process is killed when it comes to this point, counted from 0 over all of its points.
    pub killed_at: Option<usize>,
    /// The user interrupts at this point.
    pub interrupted_at: Option<(usize, Arc<AtomicBool>)>,
    /// Seconds of a visit.
    pub visit_seconds: f64,
    /// Whether it looks at the time before each visit.
    pub watches_time: bool,
    /// Throughput of the candidate against the base.
    pub ratio: f64,
    /// Points so far.
    pub points: usize,
    /// What happened, without repeats.
    pub told: Vec<String>,
    /// Places that were made up for.
    pub made_up: BTreeSet<(u32, CellId)>,
}

/// The kind, and the clock that its servers live by.
#[derive(Clone)]
pub struct FakeKind {
    pub life: Arc<Mutex<Life>>,
    time: Arc<Mutex<Duration>>,
}

/// What a killed process leaves with: nothing after it is carried out.
pub struct Killed;

impl Clock for FakeKind {
    fn now(&self) -> Duration {
        *self.time.lock().unwrap()
    }
}

impl FakeKind {
    pub fn new(life: Life) -> Self {
        Self {
            life: Arc::new(Mutex::new(life)),
            time: Arc::default(),
        }
    }

    /// Comes to a point: it may be the last one.
    fn point(&self, phase: Phase, what: &str) -> Result<(), Problem> {
        let mut life = self.life.lock().unwrap();
        let point = life.points;
        life.points += 1;
        let told = format!("{phase:?}{what}");
        if life.told.last() != Some(&told) {
            life.told.push(told);
        }
        if let Some((_, flag)) = life.interrupted_at.as_ref().filter(|(at, _)| *at == point) {
            flag.store(true, Ordering::Relaxed);
        }
        let (killed, broken) = (life.killed_at == Some(point), life.broken.contains(&phase));
        drop(life);
        if killed {
            // Unlike a panic, without a word.
            std::panic::resume_unwind(Box::new(Killed));
        }
        match broken {
            true => Err(Problem::new(format!("broken in {phase:?}"))),
            false => Ok(()),
        }
    }

    fn wait(&self, seconds: f64) {
        *self.time.lock().unwrap() += Duration::from_secs_f64(seconds);
    }

    /// Whether the server of a place is lost this time.
    fn loses(&self, place: (u32, CellId)) -> bool {
        let mut life = self.life.lock().unwrap();
        life.lost_at.contains(&place) && (!life.postpones || life.made_up.insert(place))
    }
}

struct Plain;

impl Reader for Plain {}

impl Benchmark for FakeKind {
    fn check(&self, _: &Request, _: &Library) -> Result<(), Problem> {
        Ok(())
    }

    fn check_servers(&self, _: &Request, _: &[&ServerWish]) -> Result<(), Problem> {
        Ok(())
    }

    fn cells(&self, _: &Request, _: &Library) -> Result<Vec<Cell>, Problem> {
        Ok(Vec::new())
    }

    fn needs(&self, _: &Plan) -> Result<Needs, Problem> {
        Ok(Needs {
            shared_buffers_mb: 0,
            largest_buffers_mb: 0,
            memory_bytes: 0,
            disk_bytes: 0,
            disk_once_bytes: 0,
            at_once: AtOnce::AsFits,
        })
    }

    fn time(&self, _: &Plan, _: Occupancy, _: u64) -> Result<PlannedTime, Problem> {
        Ok(PlannedTime {
            set_up: 0.0,
            measuring: 0.0,
        })
    }

    fn reader(&self) -> &'static dyn Reader {
        &Plain
    }

    fn open_cells(&self, plan: &Plan, block: u32, before: &[Slice]) -> Vec<CellId> {
        if !self.life.lock().unwrap().postpones {
            return deltabench_run::benchmark::undecided(plan, before);
        }
        // What is missing of a block comes after the last one, and no look counts it.
        let cells = if block < plan.timing.blocks {
            plan.cells.len()
        } else {
            0
        };
        CellId::each().take(cells).collect()
    }

    fn begin<'a>(&self, _: &mut Session<'a>) -> Result<Box<dyn Blocks + 'a>, Problem> {
        self.point(Phase::Create, "")?;
        Ok(Box::new(FakeBlocks { kind: self.clone() }))
    }
}

struct FakeBlocks {
    kind: FakeKind,
}

/// A slice whose figures depend on its place alone.
fn slice(plan: &Plan, (block, cell): (u32, CellId), server: ServerId, ratio: f64) -> Slice {
    // Blocks differ by less than a percent, or nothing would have an interval.
    let luck = 1.0 + f64::from((7 * block + 3 * server.0 + cell.0) % 5) / 1000.0;
    let rate = if plan.candidates().contains(&server) {
        ratio
    } else {
        1.0
    };
    Slice {
        server,
        cell,
        block,
        position: server.0,
        started_ns: now_ns(),
        duration_ns: deltabench_model::units::to_u64(4e7 * luck / rate),
        operations: 1000,
        rows: 1000,
        ..bare_slice()
    }
}

impl FakeBlocks {
    /// Visits a cell; false if a server was lost there.
    fn visit(
        &self,
        session: &mut Session<'_>,
        (block, cell): (u32, CellId),
        progress: &mut RunProgress,
    ) -> Result<bool, Problem> {
        let kind = &self.kind;
        let (run, place) = (session.run, (block, cell));
        let lost = kind.loses(place);
        kind.point(Phase::Visit, &format!(" {block}.{cell}"))?;
        session
            .store
            .begin_visit(run, cell, block)
            .map_err(store_problem)?;
        let (ratio, seconds) = {
            let life = kind.life.lock().unwrap();
            (life.ratio, life.visit_seconds)
        };
        let mut taken = Vec::new();
        let servers = u32::try_from(session.plan.servers.len()).unwrap();
        for round in 0..5 {
            for server in 0..servers {
                kind.point(Phase::Slice, "")?;
                let mut slice = slice(session.plan, place, ServerId(server), ratio);
                slice.round = round;
                let last = lost && round == 2 && server == 1;
                slice.void = last.then_some(VoidReason::ServerLost);
                session.store.append(run, &slice).map_err(store_problem)?;
                taken.push(slice);
                if last {
                    break;
                }
            }
            if lost && round == 2 {
                break;
            }
        }
        kind.wait(seconds);
        kind.point(Phase::Keep, "")?;
        let postponed = lost && kind.life.lock().unwrap().postpones;
        if session.interrupted.load(Ordering::Relaxed) || postponed {
            session.store.abandon_visit().map_err(store_problem)?;
            return Ok(!lost);
        }
        session
            .store
            .commit_visit(run, cell, block)
            .map_err(store_problem)?;
        kind.point(Phase::Kept, "")?;
        progress.slices.append(&mut taken);
        progress.set_done(block, cell);
        Ok(!lost)
    }
}

impl Blocks for FakeBlocks {
    fn set_up(&mut self, _: &mut Session<'_>) -> Result<(), Problem> {
        self.kind.point(Phase::SetUp, "")
    }

    fn block(
        &mut self,
        session: &mut Session<'_>,
        BlockOrder { block, open }: BlockOrder<'_>,
        progress: &mut RunProgress,
    ) -> Result<BlockEnd, Problem> {
        self.kind.point(Phase::Start, &format!(" {block}"))?;
        let mut end = BlockEnd::GoneThrough;
        let block_began = session.clock.now();
        for &cell in open {
            if progress.is_done(block, cell) {
                continue;
            }
            if self.kind.life.lock().unwrap().watches_time && session.is_overdue(block_began) {
                end = BlockEnd::TimeUp;
                break;
            }
            let began = session.clock.now();
            let lives = self.visit(session, (block, cell), progress)?;
            if session.interrupted.load(Ordering::Relaxed) {
                end = BlockEnd::Interrupted;
                break;
            }
            if !lives {
                let loss = Loss {
                    message: format!("lost at {block}.{cell}"),
                    tail: String::new(),
                    void: "its slice is void",
                    give_up: Problem::new("servers were lost 3 times; giving up"),
                };
                session.count_loss(loss, progress)?;
                if self.kind.life.lock().unwrap().postpones {
                    end = BlockEnd::Postponed;
                }
                break;
            }
            progress.visited((block, cell), began, session.clock);
        }
        self.kind.point(Phase::Stop, "")?;
        Ok(end)
    }

    fn conclude(
        &mut self,
        _: &mut Session<'_>,
        _: &Result<SessionEnd, Problem>,
    ) -> Result<(), Problem> {
        self.kind.point(Phase::Conclude, "")
    }

    fn take_down(self: Box<Self>) -> Result<(), Problem> {
        self.kind.point(Phase::TakeDown, "")
    }
}

/// What a run says of itself.
#[derive(Debug, Default)]
pub struct Heard {
    pub notes: Vec<String>,
    pub blocks: Vec<BlockProgress>,
}

impl Observer for Heard {
    fn note(&mut self, text: &str) {
        self.notes.push(text.to_owned());
    }
    fn visit(&mut self, _: u32, _: u32, _: u32) {}
    fn pilot(&mut self, _: &Pilot) {}
    fn block(&mut self, progress: &BlockProgress) {
        self.blocks.push(progress.clone());
    }
}
