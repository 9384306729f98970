//! Requests and plans for tests.

use crate::run_half;
use deltabench_model::installation::{Engine, Installation};
use deltabench_model::plan::{
    CacheState, Cell, CellOrder, DataSize, DataState, Gate, Limits, Observing, Placement, Plan,
    PlannedServer, Role, Stopping, Transport,
};
use deltabench_model::work::Work;
use deltabench_model::work::rocksdb::{
    RocksdbSetup, RocksdbStep, RocksdbWorkload, WRITER_BYTES_PER_SECOND,
};
use deltabench_run::planning::{Request, Selection, ServerWish, plan};
use deltabench_testkit::installations::installed;
use deltabench_testkit::small_run::timing;
use deltabench_workload::Library;

/// A server as it comes.
pub(crate) fn wish(name: &str) -> ServerWish {
    ServerWish::plain(installed(name))
}

/// The plan of a request with these sides.
pub(crate) fn made(request: Request, base: &ServerWish, candidates: &[ServerWish]) -> Plan {
    let library = Library::builtin().unwrap();
    let kind = run_half(&request.work);
    plan(request, kind, (base, candidates), &library).unwrap()
}

/// Why a request is refused.
pub(crate) fn refusal(change: impl FnOnce(&mut Request)) -> String {
    refused(request(), change)
}

/// Why a request is refused when it is changed so.
pub(crate) fn refused(mut request: Request, change: impl FnOnce(&mut Request)) -> String {
    change(&mut request);
    run_half(&request.work)
        .check(&request, &Library::builtin().unwrap())
        .unwrap_err()
        .to_string()
}

/// A plan with a server for each name and `cells` cells.
pub(crate) fn plan_of(names: &[&str], cells: u32) -> Plan {
    let mut plan = made(request(), &wish("a"), &[wish("b")]);
    let roles = [Role::Base, Role::Placebo]
        .into_iter()
        .chain(std::iter::repeat(Role::Candidate));
    plan.servers = names
        .iter()
        .zip(roles)
        .map(|(name, role)| PlannedServer::new(role, installed(name)))
        .collect();
    plan.cells = (0..cells)
        .map(|number| Cell {
            clients: number + 1,
            ..plan.cells[0].clone()
        })
        .collect();
    plan
}

/// An engine of this name and version.
pub(crate) fn engine(name: &str, version_num: u32) -> ServerWish {
    ServerWish::plain(Installation {
        version_num,
        engine: Engine::Rocksdb,
        ..installed(name)
    })
}

/// A request of RocksDB: 100k keys, steps of 5 s.
pub(crate) fn rocksdb_request() -> Request {
    Request {
        selection: Selection::Named(Vec::new()),
        work: Work::Rocksdb(RocksdbSetup {
            workload: RocksdbWorkload::Byrx,
            keys: 100_000,
            key_bytes: 20,
            value_bytes: 400,
            threads: vec![1],
            seconds: 5,
            writer_bytes_per_second: WRITER_BYTES_PER_SECOND,
            steps: RocksdbStep::published(),
            cache_bytes: 80 << 20,
            background_jobs: 2,
            options: Vec::new(),
        }),
        ..request()
    }
}

/// A plan of RocksDB with an engine for each name.
pub(crate) fn rocksdb_plan(names: &[&str]) -> Plan {
    let (base, candidate) = (engine("a", 100_201), engine("b", 100_201));
    let made = made(rocksdb_request(), &base, &[candidate]);
    let mut servers = plan_of(names, 1).servers;
    for server in &mut servers {
        server.installation = engine(&server.installation.asked, 100_201).installation;
    }
    Plan { servers, ..made }
}

/// A request of all quick workloads.
pub(crate) fn request() -> Request {
    Request {
        same_target: false,
        selection: Selection::Quick,
        sources: Vec::new(),
        state: DataState::Fresh,
        order: CellOrder::Drawn,
        rate: None,
        transport: Transport::Socket,
        pins: None,
        clients: vec![1],
        data: DataSize {
            tables: 1,
            rows: 1000,
        },
        timing: timing(8),
        placement: (Placement::SameCore, Placement::Split),
        jobs: deltabench_run::planning::Jobs::Count(1),
        delta: Some(0.03),
        stopping: Stopping::Fixed,
        gate: Gate::default(),
        checksums: Some(true),
        settings: Vec::new(),
        limits: Limits::default(),
        cache: CacheState::AsIs,
        observing: Observing::default(),
        probes: false,
        work: Work::default(),
        placebo: true,
        seed: 7,
        command: Vec::new(),
    }
}
