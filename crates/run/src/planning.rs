//! From what was asked to a plan, or a refusal before anything starts.

mod confirmation;

use crate::passes::setup;
use crate::pgbench;
use crate::remote::same_server;
use crate::rocksdb;
use deltabench_model::installation::Installation;
use deltabench_model::plan::{
    CacheState, Cell, CellId, CellOrder, ConfigurationUse, DataSize, DataState, Gate, Group,
    Limits, Observing, PLAN_FORMAT, Pins, Placement, Plan, PlannedServer, Role, Stopping, Timing,
    Transport, WorkloadSource,
};
use deltabench_model::problem::Problem;
use deltabench_model::units::index;
use deltabench_model::work::Work;
use deltabench_server::check_settings;
use deltabench_workload::{Definition, Library, PublishedStep, published_order};

pub use confirmation::confirmation;

/// What a user asks of `deltabench compare` besides the targets.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Whether comparing a target with itself is meant.
    pub same_target: bool,
    /// Which workloads.
    pub selection: Selection,
    /// The user's own workloads; measured beside the selection.
    pub sources: Vec<WorkloadSource>,
    /// State of the tables, but for workloads that fix their own.
    pub state: DataState,
    /// Order of the cells in a block.
    pub order: CellOrder,
    /// Scheduled operations per second of an open loop.
    pub rate: Option<f64>,
    /// How the client reaches the servers.
    pub transport: Transport,
    /// Cores given by hand.
    pub pins: Option<Pins>,
    /// Client counts.
    pub clients: Vec<u32>,
    /// Data set.
    pub data: DataSize,
    /// Shape of the measurement.
    pub timing: Timing,
    /// Placement for one client and for several.
    pub placement: (Placement, Placement),
    /// Smallest change that matters, as a share; absent: each cell gets one from its placebo's noise.
    pub delta: Option<f64>,
    /// When a cell has been measured enough.
    pub stopping: Stopping,
    /// What the exit code answers.
    pub gate: Gate,
    /// Data checksums on every server, or each version's default.
    pub checksums: Option<bool>,
    /// Settings for every server.
    pub settings: Vec<(String, String)>,
    /// What each server may use of the machine.
    pub limits: Limits,
    /// What caches hold when a visit starts.
    pub cache: CacheState,
    /// What is collected beside the slices.
    pub observing: Observing,
    /// The kind of benchmark; scripts of pgbench are measured besides the selection.
    pub work: Work,
    /// Whether the base has a placebo beside it. Without one a run does not see its own false alarms.
    pub placebo: bool,
    /// Seed of every draw.
    pub seed: u64,
    /// Command line, for the report.
    pub command: Vec<String>,
}

/// Which workloads are measured.
#[derive(Debug, Clone, PartialEq)]
pub enum Selection {
    /// The few that stand for the rest.
    Quick,
    /// All of the published studies.
    All,
    /// These.
    Named(Vec<String>),
}

/// δ of a request that names none: no cell is asked for more than its noise allows, and none for less than
/// this.
const DELTA_WIDEST: f64 = 0.05;

/// Connections that stay free for set-up work beside the clients.
const SPARE_CONNECTIONS: u32 = 10;

/// `max_connections` of every server unless a setting says otherwise.
pub const MAX_CONNECTIONS: u32 = 100;

/// A server as it was asked for: base or candidate.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerWish {
    /// What it runs.
    pub installation: Installation,
    /// What tables call it; absent: what it runs with its settings.
    pub label: Option<String>,
    /// The named configuration it runs with; its settings are the first of `settings`.
    pub configuration: Option<ConfigurationUse>,
    /// Settings of its own, in order.
    pub settings: Vec<(String, String)>,
    /// Where it stands on the axes of an experiment.
    pub coordinates: Vec<(String, String)>,
}

impl ServerWish {
    /// A server as it comes.
    #[must_use]
    pub fn plain(installation: Installation) -> Self {
        Self {
            installation,
            label: None,
            configuration: None,
            settings: Vec::new(),
            coordinates: Vec::new(),
        }
    }

    /// Whether comparing the two is comparing a server with itself.
    fn is_same(&self, other: &Self) -> bool {
        let (one, two) = (&self.installation, &other.installation);
        same_server(one, two)
            && self.settings == other.settings
            && self.configuration_name() == other.configuration_name()
    }

    fn configuration_name(&self) -> Option<&str> {
        self.configuration.as_ref().map(|used| used.name.as_str())
    }

    fn planned(&self, role: Role) -> PlannedServer {
        PlannedServer {
            settings: self.settings.clone(),
            label: self.label.clone(),
            configuration: self.configuration.clone(),
            coordinates: self.coordinates.clone(),
            ..PlannedServer::new(role, self.installation.clone())
        }
    }
}

/// Turns a request and its resolved targets into a plan.
///
/// Errors: a refusal for anything that cannot be measured as asked.
pub fn plan(
    request: Request,
    base: &ServerWish,
    candidates: &[ServerWish],
    library: &Library,
) -> Result<Plan, Problem> {
    check(&request, library)?;
    let wishes: Vec<&ServerWish> = std::iter::once(base).chain(candidates).collect();
    rocksdb::check_wishes(&wishes, request.work.is_embedded())?;
    for wish in wishes {
        if request.work.is_embedded() {
            rocksdb::check_server(wish)?;
            continue;
        }
        check_settings(&wish.settings)?;
        // A remote's own limit is asked of it.
        if wish.installation.remote.is_none() {
            check_connections(&request, &wish.settings)?;
        }
        if request.work.has_passes() {
            setup::check_server(&wish.installation)?;
        }
        if let Some(setup) = request.work.pgbench() {
            pgbench::check_server(setup, &wish.installation)?;
        }
    }
    check_servers(request.same_target, base, candidates)?;
    let cells = cells(&request, library)?;
    let mut servers = vec![base.planned(Role::Base)];
    servers.extend(request.placebo.then(|| base.planned(Role::Placebo)));
    servers.extend(candidates.iter().map(|wish| wish.planned(Role::Candidate)));
    Ok(Plan {
        format: PLAN_FORMAT.0.to_owned(),
        version: PLAN_FORMAT.1,
        seed: request.seed,
        servers,
        cells,
        data: request.data,
        timing: request.timing,
        placement_single: request.placement.0,
        placement_multi: request.placement.1,
        delta: request.delta.unwrap_or(DELTA_WIDEST),
        delta_from_noise: request.delta.is_none(),
        checksums: request.checksums,
        settings: request.settings,
        command: request.command,
        stopping: request.stopping,
        gate: request.gate,
        order: request.order,
        transport: request.transport,
        pins: request.pins,
        workloads: request.sources,
        confirms: None,
        limits: request.limits,
        cache: request.cache,
        observing: request.observing,
        experiment: None,
        work: request.work,
    })
}

/// Refuses what is wrong with a request whatever its targets are: to be called before anything is downloaded.
///
/// Errors: too little or too much data, impossible counts, unknown workloads.
pub fn check(request: &Request, library: &Library) -> Result<(), Problem> {
    if let Some(insert) = request.work.insert() {
        setup::check_request(insert, request)?;
    }
    check_shape(request)?;
    if let Some(setup) = request.work.rocksdb() {
        return rocksdb::check_request(setup, request);
    }
    cells(request, library)?;
    if let Some(setup) = request.work.pgbench() {
        pgbench::check(setup, request.order)?;
    }
    check_settings(&request.settings)?;
    if request.data.rows < 200 || request.data.tables == 0 {
        let DataSize { tables, rows } = request.data;
        return Err(
            Problem::new(format!("{tables} tables of {rows} rows are too few"))
                .detail("the workloads look up 100 rows at a time")
                .hint("use at least --tables 1 --rows 200; the default is fit for a comparison"),
        );
    }
    if request.data.rows * u64::from(request.data.tables) > 10_000_000_000 {
        return Err(Problem::new("more than 10 billion rows").hint("lower --rows or --tables"));
    }
    check_clients(request)
}

/// Refuses blocks, slices, shares and rates that mean nothing.
fn check_shape(request: &Request) -> Result<(), Problem> {
    check_shares(request)?;
    if request.timing.blocks == 0 || request.timing.slice_ms == 0 {
        return Err(
            Problem::new("zero blocks or slices of zero length measure nothing")
                .hint("use --blocks 6 or more for a verdict"),
        );
    }
    Ok(())
}

/// Refuses shares and rates that mean nothing.
fn check_shares(request: &Request) -> Result<(), Problem> {
    let precision = match &request.stopping {
        Stopping::Precision { half_width } => Some(*half_width),
        _ => None,
    };
    let shares = [
        ("δ", "--delta", request.delta),
        ("margin", "--not-worse-than", request.gate.not_worse_than),
        ("precision", "--precision", precision),
    ];
    for (what, option, share) in shares {
        if let Some(share) = share.filter(|share| !(0.001..=0.5).contains(share)) {
            return Err(
                Problem::new(format!("a {what} of {} % is out of range", share * 100.0))
                    .hint(format!("use {option} between 0.1% and 50%")),
            );
        }
    }
    if let Some(rate) = request.rate.filter(|rate| !(0.1..=10e6).contains(rate)) {
        return Err(
            Problem::new(format!("a rate of {rate} per second is out of range"))
                .hint("use --rate between 0.1 and 10000000 operations per second"),
        );
    }
    Ok(())
}

fn check_servers(
    same_target: bool,
    base: &ServerWish,
    candidates: &[ServerWish],
) -> Result<(), Problem> {
    let mut seen = vec![base];
    for candidate in candidates {
        let same = seen.iter().find(|other| other.is_same(candidate));
        if let Some(same) = same.filter(|_| !same_target) {
            let (same, other) = (&same.installation, &candidate.installation);
            return Err(Problem::new(format!(
                "{} and {} are the same server",
                same.asked, other.asked
            ))
            .detail(if same.remote.is_some() {
                format!("both are {}", same.resolved)
            } else {
                let place = same.bin_dir.display();
                format!(
                    "both are {} in {place}, with the same settings",
                    same.resolved
                )
            })
            .hint("to compare a server with itself on purpose (an A/A run), add --same-target"));
        }
        seen.push(candidate);
    }
    Ok(())
}

fn check_clients(request: &Request) -> Result<(), Problem> {
    if request.clients.is_empty() {
        return Err(Problem::new("no client count given").hint("use --clients 1 or --clients 1,4"));
    }
    if request.clients.contains(&0) {
        return Err(
            Problem::new("zero clients send no load").hint("use --clients 1 or --clients 1,4")
        );
    }
    max_connections(&request.settings).map(drop)
}

/// Refuses more clients than a server of ours lets in; `own` are settings of its own.
///
/// Errors: how many there may be.
pub fn check_connections(request: &Request, own: &[(String, String)]) -> Result<(), Problem> {
    let settings: Vec<(String, String)> = request.settings.iter().chain(own).cloned().collect();
    let limit = max_connections(&settings)?;
    let clients = request.clients.iter().copied().max().unwrap_or(0);
    let most = request.work.insert().map_or(clients, setup::connections);
    if most + SPARE_CONNECTIONS <= limit {
        return Ok(());
    }
    Err(Problem::new(format!(
        "{clients} clients do not fit under max_connections = {limit}"
    ))
    .detail(format!(
        "they make {most} connections, and {SPARE_CONNECTIONS} stay free for set-up work"
    ))
    .hint(format!(
        "use fewer clients, or --set max_connections={}",
        most + SPARE_CONNECTIONS
    )))
}

/// `max_connections` after the asked settings.
///
/// Errors: a value that is not a number.
pub fn max_connections(settings: &[(String, String)]) -> Result<u32, Problem> {
    match settings
        .iter()
        .rev()
        .find(|(name, _)| name == "max_connections")
    {
        None => Ok(MAX_CONNECTIONS),
        Some((_, value)) => value
            .parse()
            .map_err(|_| Problem::new(format!("max_connections = `{value}` is not a number"))),
    }
}

fn cells(request: &Request, library: &Library) -> Result<Vec<Cell>, Problem> {
    if let Some(insert) = request.work.insert() {
        return Ok(setup::cells(insert));
    }
    if let Some(setup) = request.work.rocksdb() {
        return Ok(setup.cells());
    }
    let mut cells: Vec<Cell> = Vec::new();
    for name in workload_names(request, library)? {
        for &clients in &request.clients {
            let cell = cell(&name, clients, request, library)?;
            if cells.contains(&cell) {
                let what = format!("{} at {clients} clients is asked for twice", cell.workload);
                return Err(Problem::new(what).hint("leave one of them out"));
            }
            cells.push(cell);
        }
    }
    Ok(cells)
}

/// The workloads of a request, in report order or, if asked for, in the published one.
///
/// Errors: workloads that are not there.
pub fn workload_names(request: &Request, library: &Library) -> Result<Vec<String>, Problem> {
    if let Some(insert) = request.work.insert() {
        return Ok(insert.steps.iter().map(|step| step.name()).collect());
    }
    if let Some(setup) = request.work.rocksdb() {
        let measured = setup.steps.iter().filter(|step| step.is_measured());
        return Ok(measured.map(|step| step.name().to_owned()).collect());
    }
    let name = |definition: &&Definition| definition.name.clone();
    let published = request.order == CellOrder::Published;
    let mut names: Vec<String> = match &request.selection {
        Selection::All if published => published_names(|_| true),
        Selection::Named(asked) if published => {
            published_names(|name| asked.iter().any(|other| other == name))
        }
        Selection::Quick => library.quick().iter().map(name).collect(),
        Selection::All => library.sysbench().iter().map(name).collect(),
        Selection::Named(names) => names.clone(),
    };
    for source in &request.sources {
        names.push(Definition::parse(&source.file, &source.text)?.name);
    }
    if let Some(setup) = request.work.pgbench() {
        names.extend(setup.mixes.iter().map(|mix| mix.name.clone()));
    }
    if let (Selection::Named(asked), true) = (&request.selection, published)
        && let Some(other) = asked.iter().find(|name| !names.contains(name))
    {
        library.get(other)?;
        return Err(
            Problem::new(format!("{other} has no place in the published order"))
                .hint("measure it without --order published"),
        );
    }
    if names.is_empty() {
        return Err(Problem::new("no workload to measure").hint("use --only NAME or --quick"));
    }
    Ok(names)
}

/// The measured workloads of the published order that are wanted.
fn published_names(wanted: impl Fn(&str) -> bool) -> Vec<String> {
    published_order()
        .iter()
        .filter_map(|step| step.measured())
        .filter(|name| wanted(name))
        .map(str::to_owned)
        .collect()
}

/// Whether the published order vacuums and checkpoints between the plan's previous cell and this one.
pub(crate) fn settles_before(plan: &Plan, cell: CellId) -> bool {
    let place = |id: CellId| {
        let cell = plan.cells.get(index(u64::from(id)))?;
        published_order()
            .iter()
            .position(|step| step.measured() == Some(&cell.workload))
    };
    let (Some(before), Some(this)) = (cell.checked_sub(1).and_then(place), place(cell)) else {
        return false;
    };
    published_order()
        .iter()
        .take(this)
        .skip(before)
        .any(|step| *step == PublishedStep::PostWrite)
}

fn cell(name: &str, clients: u32, request: &Request, library: &Library) -> Result<Cell, Problem> {
    let definition = library.get(name)?;
    let mix = request.work.pgbench().filter(|setup| setup.has(name));
    let told_to_write = mix.is_some_and(|setup| setup.writes);
    // The write phase of the aged state is on the tables of sysbench.
    let state = mix.map(|_| DataState::Fresh).or(definition.state());
    Ok(Cell {
        workload: name.to_owned(),
        group: match told_to_write {
            true => Group::Write,
            false => definition.group,
        },
        clients,
        writes: definition.writes || told_to_write,
        statements_per_operation: definition.statements_per_operation(),
        state: state.unwrap_or(request.state),
        rate: request.rate,
        published: definition.published_rate(&request.data, clients),
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use deltabench_model::installation::Origin;

    pub(crate) fn installation(name: &str) -> Installation {
        Installation {
            asked: name.to_owned(),
            resolved: name.to_owned(),
            origin: Origin::Path,
            bin_dir: format!("/opt/{name}/bin").into(),
            version_num: 170_005,
            version: "17.5".to_owned(),
            binary_sha256: format!("sha-{name}"),
            build: None,
            recipe: None,
            remote: None,
            engine: deltabench_model::installation::Engine::Postgres,
        }
    }

    fn wish(name: &str) -> ServerWish {
        ServerWish::plain(installation(name))
    }

    pub(crate) fn timing() -> Timing {
        Timing {
            blocks: 8,
            slice_ms: 40,
            slice_jitter: 0.2,
            visit_seconds: 1.0,
            warmup_seconds: 0.3,
            connections_per_visit: 2,
            deadline_seconds: None,
        }
    }

    /// A plan with a server for each name and `cells` cells.
    pub(crate) fn plan_of(names: &[&str], cells: u32) -> Plan {
        let library = Library::builtin().unwrap();
        let mut plan = plan(request(), &wish("a"), &[wish("b")], &library).unwrap();
        let roles = [Role::Base, Role::Placebo]
            .into_iter()
            .chain(std::iter::repeat(Role::Candidate));
        plan.servers = names
            .iter()
            .zip(roles)
            .map(|(name, role)| PlannedServer::new(role, installation(name)))
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
            engine: deltabench_model::installation::Engine::Rocksdb,
            ..installation(name)
        })
    }

    /// A request of RocksDB: 100k keys, steps of 5 s.
    pub(crate) fn rocksdb_request() -> Request {
        Request {
            selection: Selection::Named(Vec::new()),
            work: Work::Rocksdb(deltabench_model::rocksdb::RocksdbSetup {
                workload: deltabench_model::rocksdb::RocksdbWorkload::Byrx,
                keys: 100_000,
                key_bytes: 20,
                value_bytes: 400,
                threads: vec![1],
                seconds: 5,
                writer_bytes_per_second: deltabench_model::rocksdb::WRITER_BYTES_PER_SECOND,
                steps: deltabench_model::rocksdb::RocksdbStep::published(),
                cache_bytes: 80 << 20,
                background_jobs: 2,
                options: Vec::new(),
            }),
            ..request()
        }
    }

    /// A plan of RocksDB with an engine for each name.
    pub(crate) fn rocksdb_plan(names: &[&str]) -> Plan {
        let library = Library::builtin().unwrap();
        let (base, candidate) = (engine("a", 100_201), engine("b", 100_201));
        let made = plan(rocksdb_request(), &base, &[candidate], &library).unwrap();
        let mut servers = plan_of(names, 1).servers;
        for server in &mut servers {
            server.installation = engine(&server.installation.asked, 100_201).installation;
        }
        Plan { servers, ..made }
    }

    fn request() -> Request {
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
            timing: timing(),
            placement: (Placement::SameCore, Placement::Split),
            delta: Some(0.03),
            stopping: Stopping::Fixed,
            gate: Gate::default(),
            checksums: Some(true),
            settings: Vec::new(),
            limits: Limits::default(),
            cache: CacheState::AsIs,
            observing: Observing::default(),
            work: Work::default(),
            placebo: true,
            seed: 7,
            command: Vec::new(),
        }
    }

    fn refusal(change: impl FnOnce(&mut Request)) -> String {
        let mut request = request();
        change(&mut request);
        check(&request, &Library::builtin().unwrap())
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn a_plan_has_base_placebo_and_candidates_and_a_cell_for_each_quick_workload() {
        let library = Library::builtin().unwrap();
        let plan = plan(request(), &wish("a"), &[wish("b")], &library).unwrap();
        let roles: Vec<Role> = plan.servers.iter().map(|server| server.role).collect();
        assert_eq!(roles, [Role::Base, Role::Placebo, Role::Candidate]);
        assert_eq!(plan.cells.len(), 8);
    }

    #[test]
    fn what_cannot_be_measured_is_refused_with_a_way_out() {
        assert!(refusal(|r| r.data.rows = 0).contains("--rows"));
        assert!(refusal(|r| r.clients = vec![0]).contains("zero clients"));
        let many = Request {
            clients: vec![1000],
            ..request()
        };
        let refused = plan(many, &wish("a"), &[wish("b")], &Library::builtin().unwrap());
        assert!(
            refused
                .unwrap_err()
                .to_string()
                .contains("max_connections=1010")
        );
        assert!(
            refusal(|r| r.selection = Selection::Named(vec!["point-qurey".into()]))
                .contains("point-query")
        );
        assert!(refusal(|r| r.clients = vec![1, 1]).contains("twice"));
        assert!(refusal(|r| r.delta = Some(0.0)).contains("--delta"));
        assert!(refusal(|r| r.rate = Some(-1.0)).contains("--rate"));
    }

    #[test]
    fn the_published_order_is_kept_and_settles_after_its_write_phase() {
        let library = Library::builtin().unwrap();
        let request = Request {
            order: CellOrder::Published,
            selection: Selection::Named(
                ["scan", "read-write-100", "update-index"]
                    .map(str::to_owned)
                    .to_vec(),
            ),
            ..request()
        };
        let plan = plan(request, &wish("a"), &[wish("b")], &library).unwrap();
        let names: Vec<&str> = plan.cells.iter().map(|cell| &*cell.workload).collect();
        assert_eq!(names, ["update-index", "read-write-100", "scan"]);
        let settles: Vec<bool> = (0..3).map(|cell| settles_before(&plan, cell)).collect();
        assert_eq!(settles, [false, false, true]);
        let unknown = refusal(|r| {
            r.order = CellOrder::Published;
            r.selection = Selection::Named(vec!["delete-existing".into()]);
        });
        assert!(unknown.contains("published order"), "{unknown}");
    }

    #[test]
    fn the_same_server_on_both_sides_is_refused_unless_said() {
        let (library, base) = (Library::builtin().unwrap(), wish("a"));
        let refused = plan(request(), &base, std::slice::from_ref(&base), &library).unwrap_err();
        assert!(refused.to_string().contains("--same-target"));
        let jit = ServerWish {
            settings: vec![("jit".to_owned(), "on".to_owned())],
            ..base.clone()
        };
        plan(request(), &base, std::slice::from_ref(&jit), &library).unwrap();
        assert!(plan(request(), &base, &[jit.clone(), jit], &library).is_err());
        let said = Request {
            same_target: true,
            ..request()
        };
        assert!(plan(said, &base, std::slice::from_ref(&base), &library).is_ok());
    }
}
