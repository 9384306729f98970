//! The smallest kind of benchmark, which `docs/guide/add-a-benchmark.md` walks through: how many `SELECT 1`
//! does a server answer in a second? Everything that is special about it is in this file.

use crate::lab::{Lab, cell, installations, plan};
use deltabench_compare::{Reader, analyse};
use deltabench_driver::admin::Client;
use deltabench_model::endpoint::Login;
use deltabench_model::plan::{Cell, CellId, DataState, Plan, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::slice::Slice;
use deltabench_model::work::Work;
use deltabench_run::benchmark::{Benchmark, BlockEnd, BlockOrder, Blocks};
use deltabench_run::clock::{Clock, MachineClock, now_ns};
use deltabench_run::events::{BlockProgress, Observer};
use deltabench_run::occupancy::{Needs, Occupancy, PlannedTime};
use deltabench_run::pilot::Pilot;
use deltabench_run::planning::{self, Request, ServerWish};
use deltabench_run::schedule::{BlockSchedule, turn_order};
use deltabench_run::session::{RunProgress, Session, SessionEnd, store_problem};
use deltabench_store::{RunState, Store};
use deltabench_testkit::Cluster;
use deltabench_testkit::small_run::bare_slice;
use deltabench_workload::Library;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Statements of a slice.
const PINGS: u64 = 50;

/// Rounds of a visit.
const ROUNDS: u32 = 5;

/// `SELECT 1`, again and again.
struct Ping;

/// Slices say everything.
struct PingReader;

impl Reader for PingReader {}

impl Benchmark for Ping {
    fn check(&self, request: &Request, _: &Library) -> Result<(), Problem> {
        planning::check_shape(request)?;
        planning::check_load(request)
    }

    fn check_servers(&self, request: &Request, wishes: &[&ServerWish]) -> Result<(), Problem> {
        let mut wishes = wishes.iter();
        wishes.try_for_each(|wish| planning::check_server(request, self, wish))
    }

    fn cells(&self, _: &Request, _: &Library) -> Result<Vec<Cell>, Problem> {
        Ok(vec![cell("ping", false, DataState::Fresh)])
    }

    fn needs(&self, plan: &Plan) -> Result<Needs, Problem> {
        Needs::holding(plan, 0)
    }

    fn time(&self, plan: &Plan, _: Occupancy, _: u64) -> Result<PlannedTime, Problem> {
        Ok(PlannedTime {
            set_up: 0.0,
            measuring: f64::from(plan.timing.blocks),
        })
    }

    fn reader(&self) -> &'static dyn Reader {
        &PingReader
    }

    fn begin<'a>(&self, _: &mut Session<'a>) -> Result<Box<dyn Blocks + 'a>, Problem> {
        Ok(Box::new(PingBlocks))
    }
}

/// Nothing outlives a block: each has servers of its own.
struct PingBlocks;

impl Blocks for PingBlocks {
    fn set_up(&mut self, session: &mut Session<'_>) -> Result<(), Problem> {
        session.record_sources()
    }

    fn block(
        &mut self,
        session: &mut Session<'_>,
        BlockOrder { block, open }: BlockOrder<'_>,
        progress: &mut RunProgress,
    ) -> Result<BlockEnd, Problem> {
        let servers = start_all(session.plan, block);
        for &cell in open {
            if progress.is_done(block, cell) {
                continue;
            }
            if session.interrupted.load(Ordering::Relaxed) {
                return Ok(BlockEnd::Interrupted);
            }
            let began = session.clock.now();
            visit(session, (block, cell), &servers, progress)?;
            progress.visited((block, cell), began, session.clock);
            session.observer.visit(block, cell.0 + 1, 1);
        }
        Ok(BlockEnd::GoneThrough)
    }

    fn take_down(self: Box<Self>) -> Result<(), Problem> {
        Ok(())
    }
}

/// A server for each of the plan, started in the block's order.
fn start_all(plan: &Plan, block: u32) -> Vec<Cluster> {
    let mut servers: Vec<(usize, Cluster)> = BlockSchedule::of(plan, block)
        .start_order
        .into_iter()
        .map(|place| {
            let installation = &plan.servers[place].installation;
            (place, Cluster::start(&installation.bin_dir, "", &[]))
        })
        .collect();
    servers.sort_by_key(|(place, _)| *place);
    servers.into_iter().map(|(_, server)| server).collect()
}

/// One visit: in each round a slice of every server, in an order that is drawn.
fn visit(
    session: &mut Session<'_>,
    (block, cell): (u32, CellId),
    servers: &[Cluster],
    progress: &mut RunProgress,
) -> Result<(), Problem> {
    let (plan, run) = (session.plan, session.run);
    let mut clients: Vec<Client> = servers.iter().map(connect).collect();
    session
        .store
        .begin_visit(run, cell, block)
        .map_err(store_problem)?;
    for round in 0..ROUNDS {
        for (position, server) in (0..).zip(turn_order(plan, block, cell, round)) {
            let client = &mut clients[server.index()];
            let mut slice = slice((block, cell, server), client);
            (slice.round, slice.position) = (round, position);
            session.store.append(run, &slice).map_err(store_problem)?;
            progress.slices.push(slice);
        }
    }
    session
        .store
        .commit_visit(run, cell, block)
        .map_err(store_problem)
}

fn connect(server: &Cluster) -> Client {
    let login = Login {
        user: "postgres".to_owned(),
        database: "postgres".to_owned(),
        password: None,
        options: Vec::new(),
        confirm_path: false,
    };
    Client::connect(&server.endpoint(), &login, Duration::from_secs(60)).unwrap()
}

fn slice((block, cell, server): (u32, CellId, ServerId), client: &mut Client) -> Slice {
    let (started_ns, started) = (now_ns(), Instant::now());
    for _ in 0..PINGS {
        client.query("SELECT 1").unwrap();
    }
    Slice {
        server,
        cell,
        block,
        started_ns,
        duration_ns: u64::try_from(started.elapsed().as_nanos()).unwrap(),
        operations: PINGS,
        rows: PINGS,
        ..bare_slice()
    }
}

/// Interrupts after a block.
struct Ear<'a>(Vec<BlockProgress>, Option<&'a AtomicBool>);

impl Observer for Ear<'_> {
    fn note(&mut self, _: &str) {}
    fn visit(&mut self, _: u32, _: u32, _: u32) {}
    fn pilot(&mut self, _: &Pilot) {}
    fn block(&mut self, progress: &BlockProgress) {
        self.0.push(progress.clone());
        if let Some(flag) = self.1 {
            flag.store(true, Ordering::Relaxed);
        }
    }
}

#[test]
fn a_kind_in_one_file_is_measured_interrupted_gone_on_with_and_compared() {
    let lab = Lab::new();
    let installation = &installations()[0];
    let cells = vec![cell("ping", false, DataState::Fresh)];
    let mut plan = plan(&[installation; 3], cells, 1000);
    (plan.timing.blocks, plan.work) = (2, Work::default());
    let directory = tempfile::tempdir().unwrap();
    let mut store = Store::open(directory.path()).unwrap();
    store.create_run("r", &plan, RunState::Running, 0).unwrap();
    let stop = AtomicBool::new(false);
    let clock = MachineClock::begin();
    let library = Library::builtin().unwrap();
    let mut ends = Vec::new();
    for flag in [Some(&stop), None] {
        let mut ear = Ear(Vec::new(), flag);
        stop.store(false, Ordering::Relaxed);
        let mut session = Session {
            plan: &plan,
            benchmark: &Ping,
            run: "r",
            store: &mut store,
            host: &lab.host,
            library: &library,
            pilot: false,
            interrupted: &stop,
            observer: &mut ear,
            clock: &clock,
            began: clock.now(),
        };
        ends.push((session.execute().unwrap(), ear.0.len()));
    }
    assert_eq!(
        ends,
        [(SessionEnd::Interrupted, 1), (SessionEnd::Finished, 1)]
    );
    let slices = store.slices("r").unwrap();
    assert_eq!(slices.len(), 2 * 3 * usize::try_from(ROUNDS).unwrap());
    let comparison = analyse(&plan, &slices, Vec::new());
    assert_eq!(comparison.cells[0].blocks, 2);
}
