//! The run's servers: made, loaded, started for a block with swapped slots, stopped.

mod limited;

use crate::admin::{connect, run};
use crate::aging;
use crate::limits::{FleetLimits, Possible};
use crate::load::{self, DataSet};
use crate::planning::max_connections;
use crate::readback::read_back;
use crate::residence::{Needs, Residence, decide};
use crate::schedule::BlockSchedule;
use crate::visit::Address;
use deltabench_model::endpoint::Endpoint;
use deltabench_model::plan::{CacheState, Cell, DataState, Plan, PlannedServer, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::units::index;
use deltabench_server::{
    Burn, Cluster, ClusterSpec, HugePages, ServerUser, Slot, Workspace, base_settings, unmet,
};
use deltabench_workload::executable::Executable;
use deltabench_workload::{Chore, Library};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub use crate::readback::ServerReadback;

/// First port of the servers while they are loaded.
const LOADING_PORT: u16 = 5400;

/// Variable that moves the stack of a server: it is not looked at by anybody.
const PADDING: &str = "DELTABENCH_PADDING";

/// Lines of a server's log that a problem shows.
const LOG_LINES: usize = 20;

/// How often a pause looks for an interruption.
const PAUSE: Duration = Duration::from_millis(50);

/// Whether servers get huge pages for their shared buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HugePagesWish {
    /// Where the machine gives them.
    Try,
    /// Or the run is refused.
    On,
    /// Never.
    Off,
}

/// Where the servers of a run live.
#[derive(Debug, Clone)]
pub struct Host {
    /// Directory in which the run's workspace is made.
    pub workspaces: PathBuf,
    /// Cache of initialised data directories.
    pub cache: PathBuf,
    /// Who runs the servers.
    pub user: ServerUser,
    /// Huge pages.
    pub huge_pages: HugePagesWish,
}

/// All clusters of a run.
pub struct Fleet<'a> {
    plan: &'a Plan,
    // Order matters on drop: clusters stop before their groups are removed, their pages are given back and
    // their directory goes.
    clusters: Vec<Cluster>,
    limits: FleetLimits,
    huge_pages: Option<HugePages>,
    workspace: Workspace,
    settings: Vec<Vec<(String, String)>>,
    shared_buffers_mb: u64,
    residence: Residence,
    burn: Option<Burn>,
    library: Library,
    tables: DataSet,
}

impl<'a> Fleet<'a> {
    /// Makes an empty cluster for every server of the plan; `note` hears what the user should know.
    ///
    /// Errors: too little disk or memory, limits that this host does not allow, a bad directory, huge pages
    /// insisted on and refused, initdb failing, a known slowdown asked for and no C compiler.
    pub fn create(
        plan: &'a Plan,
        run: &str,
        host: &Host,
        note: &mut dyn FnMut(String),
    ) -> Result<Self, Problem> {
        let library = Library::builtin()?.with_sources(&plan.workloads)?;
        let tables = DataSet::of(plan, &library)?;
        let needs = Needs::of(plan, tables.bytes(plan)?)?;
        let residence = decide(plan, host, &needs)?;
        let shared_buffers_mb = needs.shared_buffers_mb;
        let possible = Possible::find(plan, host)?;
        let workspace = Workspace::create(&host.workspaces, run, &host.user)?;
        let at_once = match residence {
            Residence::Together => plan.servers.len(),
            Residence::Rotated => 1,
        };
        let huge_pages = reserve(at_once, host, needs.largest_buffers_mb, &workspace, note)?;
        let huge_bytes = huge_pages.as_ref().map_or(0, |_| shared_buffers_mb << 20);
        let limits = possible.create(plan, run, huge_bytes, &workspace)?;
        let slowed = plan.servers.iter().any(|server| server.burn_ns.is_some());
        let burn = slowed
            .then(|| Burn::build(workspace.directory()))
            .transpose()?;
        let mut fleet = Self {
            plan,
            clusters: Vec::new(),
            limits,
            huge_pages,
            workspace,
            settings: Vec::new(),
            shared_buffers_mb,
            residence,
            burn,
            library,
            tables,
        };
        for (place, server) in plan.servers.iter().enumerate() {
            fleet.add(place, server, host, note)?;
        }
        Ok(fleet)
    }

    fn add(
        &mut self,
        place: usize,
        server: &PlannedServer,
        host: &Host,
        note: &mut dyn FnMut(String),
    ) -> Result<(), Problem> {
        let base = base_settings(
            server.installation.version_num,
            self.shared_buffers_mb,
            max_connections(&self.plan.settings)?,
            self.huge_pages.is_some(),
        );
        if !base.dropped.is_empty() {
            note(format!(
                "{}: has no {}",
                server.installation.resolved,
                base.dropped.join(", ")
            ));
        }
        let mut all = base.settings;
        all.extend(self.plan.settings.iter().cloned());
        let spec = ClusterSpec {
            installation: &server.installation,
            checksums: self.plan.checksums,
            settings: &all,
        };
        let name = format!("c{place}");
        let cluster = Cluster::create(&self.workspace, &name, &spec, &host.cache, &host.user)?;
        self.clusters.push(cluster);
        // Not in the cluster's: clusters are exchanged between the servers of an installation, and these are
        // the server's own.
        all.extend(server.settings.iter().cloned());
        self.settings.push(all);
        Ok(())
    }

    /// Whether the servers have huge pages.
    #[must_use]
    pub fn has_huge_pages(&self) -> bool {
        self.huge_pages.is_some()
    }

    /// Whether all servers run at a time or one.
    #[must_use]
    pub fn residence(&self) -> Residence {
        self.residence
    }

    /// `shared_buffers` of every server, MB.
    #[must_use]
    pub fn shared_buffers_mb(&self) -> u64 {
        self.shared_buffers_mb
    }

    /// Settings that the server in `place` was started with.
    #[must_use]
    pub fn asked_settings(&self, place: usize) -> &[(String, String)] {
        self.settings.get(place).map_or(&[], Vec::as_slice)
    }

    /// Loads every server and reads back what it is; all are stopped again when this returns.
    ///
    /// Each installation is loaded once, and aged once if a cell asks for it; installations at the same
    /// time, as far as there are cores and memory. Other servers of an installation get a copy of the data
    /// directory: byte-identical data, so that between base and placebo no placement of rows differs.
    ///
    /// Shape:  in the plan's order; `None` when `interrupted` was set meanwhile. `executables` are those of
    ///         the plan's cells, in order.
    /// Errors: with the tail of the server's log.
    pub fn load(
        &mut self,
        executables: &[Executable],
        interrupted: &AtomicBool,
        note: &mut dyn FnMut(String),
    ) -> Result<Option<Vec<ServerReadback>>, Problem> {
        let leaders: Vec<usize> = (0..self.clusters.len())
            .filter(|place| self.leader(*place) == *place)
            .collect();
        let at_once = match self.residence {
            Residence::Together => std::thread::available_parallelism().map_or(1, usize::from),
            Residence::Rotated => 1,
        };
        let mut readbacks: Vec<Option<ServerReadback>> = vec![None; self.clusters.len()];
        for chunk in leaders.chunks(at_once) {
            note(format!("loading {}", self.names(chunk)));
            for (place, readback) in self.load_at_once(chunk, executables, interrupted)? {
                if let Some(entry) = readbacks.get_mut(place) {
                    *entry = readback;
                }
            }
            if interrupted.load(Ordering::Relaxed) {
                return Ok(None);
            }
        }
        for place in 0..self.clusters.len() {
            let leader = self.leader(place);
            let aging = match readbacks.get(leader) {
                Some(Some(readback)) => readback.aging.clone(),
                _ => None,
            };
            if leader != place {
                self.copy(leader, place)?;
                let readback = self.read_copy(place, executables)?;
                if let Some(entry) = readbacks.get_mut(place) {
                    *entry = Some(ServerReadback {
                        aging,
                        copy_of: Some(leader),
                        ..readback
                    });
                }
            }
        }
        self.check_settings(&readbacks)?;
        Ok(readbacks.into_iter().collect())
    }

    /// The first server with the same installation.
    fn leader(&self, place: usize) -> usize {
        let bin_dir = |server: &PlannedServer| server.installation.bin_dir.clone();
        let ours = self.plan.servers.get(place).map(bin_dir);
        let mut servers = self.plan.servers.iter();
        let first = servers.position(|server| Some(bin_dir(server)) == ours);
        first.unwrap_or(place)
    }

    fn names(&self, places: &[usize]) -> String {
        let name = |place: &usize| {
            self.plan
                .servers
                .get(*place)
                .map(|s| s.installation.resolved.as_str())
        };
        places
            .iter()
            .filter_map(name)
            .collect::<Vec<_>>()
            .join(" and ")
    }

    /// Loads these servers at the same time, each with a thread of its own, and stops them.
    fn load_at_once(
        &mut self,
        places: &[usize],
        executables: &[Executable],
        interrupted: &AtomicBool,
    ) -> Result<Vec<(usize, Option<ServerReadback>)>, Problem> {
        let (plan, tables) = (self.plan, self.tables.clone());
        // Here and not in the threads: a server ends with the thread that started it.
        for &place in places {
            self.start_to_load(place)?;
        }
        let mut addresses = Vec::new();
        for &place in places {
            let server = self.planned(place)?;
            let version_num = server.installation.version_num;
            let (endpoint, pid) = self.local(place)?;
            addresses.push((place, endpoint, pid, version_num));
        }
        let loaded = std::thread::scope(|scope| {
            let loading = Loading {
                plan,
                tables: &tables,
                executables,
                interrupted,
            };
            let loaders: Vec<_> = addresses
                .iter()
                .map(|(place, endpoint, pid, version_num)| {
                    let load = move || loading.one(endpoint, *pid, *version_num);
                    (*place, scope.spawn(load))
                })
                .collect();
            let died = || Err(Problem::new("a loading thread ended before its time"));
            loaders
                .into_iter()
                .map(|(place, loader)| (place, loader.join().unwrap_or_else(|_| died())))
                .collect::<Vec<_>>()
        });
        let mut readbacks = Vec::new();
        for (place, result) in loaded {
            let readback = result.map_err(|problem| self.with_log(problem, place))?;
            self.cluster(place)?.stop()?;
            readbacks.push((place, readback));
        }
        Ok(readbacks)
    }

    fn copy(&mut self, from: usize, to: usize) -> Result<(), Problem> {
        // A leader comes before its copies.
        match self.clusters.split_at_mut_checked(to) {
            Some((before, [target, ..])) if from < to => match before.get(from) {
                Some(source) => target.copy_data(source),
                None => Err(no_such_server()),
            },
            _ => Err(no_such_server()),
        }
    }

    fn read_copy(
        &mut self,
        place: usize,
        executables: &[Executable],
    ) -> Result<ServerReadback, Problem> {
        let plan = self.plan;
        self.start_to_load(place)?;
        let (endpoint, _) = self.local(place)?;
        let readback = read_back(&endpoint, plan, executables)
            .map_err(|problem| self.with_log(problem, place))?;
        self.cluster(place)?.stop()?;
        Ok(readback)
    }

    fn check_settings(&self, readbacks: &[Option<ServerReadback>]) -> Result<(), Problem> {
        for (place, readback) in readbacks.iter().enumerate() {
            let Some(readback) = readback else { continue };
            let failures = unmet(self.asked_settings(place), &readback.settings);
            if !failures.is_empty() {
                let name = &self.planned(place)?.installation.resolved;
                return Err(Problem::new(format!("{name} did not take every setting"))
                    .detail(failures.join("\n")));
            }
        }
        Ok(())
    }

    fn start_to_load(&mut self, place: usize) -> Result<(), Problem> {
        let settings = self.asked_settings(place).to_vec();
        let slot = Slot {
            port: LOADING_PORT + u16::try_from(place).unwrap_or(0),
            ..Slot::default()
        };
        self.refill_huge_pages()?;
        // In nobody's groups: the pages that loading brings in count for us, and are dropped later.
        self.limits.mark_strange(place);
        self.cluster(place)?.start(&slot, &settings).map(drop)
    }

    /// Starts all servers as the block's schedule says and warms the tables that cells read where they are
    /// kept; those of cells that write come with [`Fleet::renew`]. For [`Residence::Together`].
    ///
    /// Shape:  addresses in the plan's order; see [`load::address_for`].
    /// Errors: with the tail of the log of the server that failed.
    pub fn start(&mut self, schedule: &BlockSchedule) -> Result<Vec<Address>, Problem> {
        let mut addresses: Vec<Option<Address>> = vec![None; self.plan.servers.len()];
        for &server in &schedule.start_order {
            let id = ServerId::try_from(server).unwrap_or(ServerId::MAX);
            let address = self.start_one(schedule, id)?;
            if let Some(entry) = addresses.get_mut(server) {
                *entry = Some(address);
            }
        }
        addresses
            .into_iter()
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| Problem::new("a block's schedule left a server out"))
    }

    /// Starts one server as the block's schedule says, in the groups of its limits, and warms the tables that
    /// cells read where they are kept, unless the plan wants cold caches. Its `deltabench_work` is as it was
    /// left, and cold: [`Fleet::renew`] it, or [`Fleet::warm`] it to go on with it.
    ///
    /// Errors: with the tail of the server's log.
    pub fn start_one(
        &mut self,
        schedule: &BlockSchedule,
        server: ServerId,
    ) -> Result<Address, Problem> {
        let (plan, place) = (self.plan, place_of(schedule, server));
        self.refill_huge_pages()?;
        let settings = self.asked_settings(index(u64::from(server))).to_vec();
        let slot = self.slot(schedule, server);
        let data = self.cluster(place)?.data_dir();
        self.limits.before_start(place, &data)?;
        let started = self.cluster(place)?.start(&slot, &settings).map(drop);
        started.map_err(|problem| self.limits.explain(place, problem))?;
        if plan.cache != CacheState::Cold {
            let (endpoint, _) = self.local(place)?;
            self.limits
                .unhindered(place, || load::prewarm_read(&endpoint, plan))
                .map_err(|problem| self.with_log(problem, place))?;
        }
        self.address(place)
    }

    /// Stops one server; nothing to do if it is not running.
    ///
    /// Errors: it had ended on its own or did not stop cleanly; it is gone in any case.
    pub fn stop_one(&mut self, schedule: &BlockSchedule, server: ServerId) -> Result<(), Problem> {
        let place = place_of(schedule, server);
        // The checkpoint of a shutdown is not measured.
        let Self {
            limits, clusters, ..
        } = self;
        let cluster = clusters.get_mut(place).ok_or_else(no_such_server)?;
        limits.unhindered(place, || cluster.stop())
    }

    /// Gives a running server's `deltabench_work` tables nobody has written to, in the state that `cell`
    /// starts from, and warms them. No client may be connected to that server.
    ///
    /// When this returns, nothing is left to be written: no dirty buffers but a handful, a checkpoint a
    /// moment ago, all files synced.
    ///
    /// Errors: whatever the server answered, with the tail of its log.
    pub fn renew(
        &mut self,
        schedule: &BlockSchedule,
        server: ServerId,
        cell: &Cell,
    ) -> Result<(), Problem> {
        let place = place_of(schedule, server);
        let version_num = self.planned(place)?.installation.version_num;
        let (endpoint, _) = self.local(place)?;
        self.limits
            .unhindered(place, || load::renew(&endpoint, cell.state, version_num))
            .map_err(|problem| self.with_log(problem, place))
    }

    /// Brings the tables of a cell into a running server's shared buffers; false if they are yet to be made
    /// by [`Fleet::renew`].
    ///
    /// Errors: whatever the server answered, with the tail of its log.
    pub fn warm(
        &mut self,
        schedule: &BlockSchedule,
        server: ServerId,
        cell: &Cell,
    ) -> Result<bool, Problem> {
        let place = place_of(schedule, server);
        let (endpoint, _) = self.local(place)?;
        self.limits
            .unhindered(place, || {
                load::prewarm_for(&endpoint, self.plan.order, cell)
            })
            .map_err(|problem| self.with_log(problem, place))
    }

    /// Does on these running servers what the definition of a cell's workload asks for before each visit;
    /// nothing if it asks for nothing. Pauses are made once for all of them.
    ///
    /// Errors: whatever a server answered, with the tail of its log.
    pub fn before_visit(
        &mut self,
        schedule: &BlockSchedule,
        servers: &[ServerId],
        cell: &Cell,
        interrupted: &AtomicBool,
    ) -> Result<(), Problem> {
        let chores = self.library.get(&cell.workload)?.before().to_vec();
        self.run_admin(schedule, servers, cell, &chores, interrupted)
    }

    /// As [`Fleet::before_visit`], for what is asked for after each visit.
    ///
    /// Errors: whatever a server answered, with the tail of its log.
    pub fn after_visit(
        &mut self,
        schedule: &BlockSchedule,
        servers: &[ServerId],
        cell: &Cell,
        interrupted: &AtomicBool,
    ) -> Result<(), Problem> {
        let chores = self.library.get(&cell.workload)?.after().to_vec();
        self.run_admin(schedule, servers, cell, &chores, interrupted)
    }

    /// Does chores on the tables of a cell's workload, in the database that the cell uses, each on all of
    /// these running servers before the next.
    ///
    /// A chore that takes a time is over when all servers are quiet, and at the latest after that time; a
    /// plain pause is waited out.
    ///
    /// Errors: whatever a server answered, with the tail of its log.
    pub fn run_admin(
        &mut self,
        schedule: &BlockSchedule,
        servers: &[ServerId],
        cell: &Cell,
        chores: &[Chore],
        interrupted: &AtomicBool,
    ) -> Result<(), Problem> {
        let tables = self
            .library
            .get(&cell.workload)?
            .table_names(&self.plan.data);
        let login = load::login_of(self.plan.order, cell);
        for chore in chores {
            let deadline = Instant::now() + Duration::from_secs(chore.seconds(&self.plan.data));
            let mut pids = Vec::new();
            for &server in servers {
                let place = place_of(schedule, server);
                let version_num = self.planned(place)?.installation.version_num;
                let (endpoint, pid) = self.local(place)?;
                let done = connect(&endpoint, &login).and_then(|mut client| {
                    let statements = match chore {
                        Chore::Settle => load::settle_sql(version_num, &tables),
                        _ => chore.statements(&tables),
                    };
                    statements.iter().try_for_each(|sql| run(&mut client, sql))
                });
                done.map_err(|problem| self.with_log(problem, place))?;
                pids.push(pid);
            }
            for pid in pids.into_iter().filter(|_| *chore == Chore::Settle) {
                let left = deadline.saturating_duration_since(Instant::now());
                aging::wait_until_quiet(pid, left, interrupted)?;
            }
            while matches!(chore, Chore::Wait(_))
                && Instant::now() < deadline
                && !interrupted.load(Ordering::Relaxed)
            {
                std::thread::sleep(PAUSE);
            }
        }
        Ok(())
    }

    fn slot(&self, schedule: &BlockSchedule, server: ServerId) -> Slot {
        let number = index(u64::from(server));
        let mut environment = Vec::new();
        if let Some(burn) = &self.burn {
            let burn_ns = self.plan.servers.get(number).and_then(|s| s.burn_ns);
            environment = burn.environment(burn_ns.unwrap_or(0));
        }
        if let Some(bytes) = schedule.padding.get(number).filter(|bytes| **bytes > 0) {
            environment.push((PADDING.to_owned(), "x".repeat(*bytes)));
        }
        Slot {
            port: schedule.ports.get(number).copied().unwrap_or(LOADING_PORT),
            listen: self.plan.transport,
            affinity: None,
            cgroups: self
                .limits
                .of(place_of(schedule, server))
                .map(|limits| limits.groups().to_vec())
                .unwrap_or_default(),
            environment,
        }
    }

    fn refill_huge_pages(&mut self) -> Result<(), Problem> {
        // Pages that a server of ours has taken are not missing.
        let idle = self
            .clusters
            .iter()
            .all(|cluster| cluster.running().is_none());
        let Some(pages) = self.huge_pages.as_mut().filter(|_| idle) else {
            return Ok(());
        };
        pages.refill().map_err(|why| {
            Problem::new("another program took huge pages that this run needs")
                .detail(why)
                .hint("end it and run `deltabench resume`, or use --huge-pages off in a new run")
        })
    }

    /// Stops every server.
    ///
    /// Errors: the first server that had ended on its own or did not stop cleanly; all are gone in any case.
    pub fn stop(&mut self) -> Result<(), Problem> {
        let limits = &self.limits;
        let stop =
            |(place, cluster): (usize, &mut Cluster)| limits.unhindered(place, || cluster.stop());
        let clusters = self.clusters.iter_mut().enumerate();
        let results: Vec<Result<(), Problem>> = clusters.map(stop).collect();
        results.into_iter().collect()
    }

    /// The directory that holds all data directories.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.workspace.directory()
    }

    /// The log of the cluster that plays `server` in a block, from all blocks so far; empty if there is none.
    #[must_use]
    pub fn log(&self, schedule: &BlockSchedule, server: ServerId) -> String {
        self.clusters
            .get(place_of(schedule, server))
            .and_then(|cluster| std::fs::read(cluster.log_path()).ok())
            .map_or(String::new(), |bytes| {
                String::from_utf8_lossy(&bytes).into_owned()
            })
    }

    /// The last lines of the log of the cluster that plays `server` in a block.
    #[must_use]
    pub fn log_tail(&self, schedule: &BlockSchedule, server: ServerId) -> String {
        self.clusters
            .get(place_of(schedule, server))
            .map_or(String::new(), |cluster| cluster.log_tail(LOG_LINES))
    }

    /// Stops everything, gives huge pages back and removes control groups and directories.
    ///
    /// Errors: what could not be stopped or removed.
    pub fn dismantle(mut self) -> Result<(), Problem> {
        let stopped = self.stop();
        drop(std::mem::take(&mut self.clusters));
        drop(self.huge_pages.take());
        // Before the workspace, which says where they are.
        let ungrouped = self.limits.remove();
        self.workspace.remove().and(ungrouped).and(stopped)
    }

    fn planned(&self, place: usize) -> Result<&PlannedServer, Problem> {
        self.plan.servers.get(place).ok_or_else(no_such_server)
    }

    fn cluster(&mut self, place: usize) -> Result<&mut Cluster, Problem> {
        self.clusters.get_mut(place).ok_or_else(no_such_server)
    }

    /// Local socket and main process of a running server, for set-up work.
    fn local(&self, place: usize) -> Result<(Endpoint, u32), Problem> {
        let cluster = self.clusters.get(place).ok_or_else(no_such_server)?;
        let running = cluster.running();
        let running = running.ok_or_else(|| Problem::new("a server is not running"))?;
        Ok((running.endpoint.clone(), running.postmaster_pid))
    }

    /// Where the clients of a running server reach it.
    fn address(&self, place: usize) -> Result<Address, Problem> {
        let (endpoint, postmaster_pid) = self.local(place)?;
        let network = self
            .clusters
            .get(place)
            .and_then(|cluster| cluster.running()?.network.as_ref());
        let mut login = load::login(load::database_of(DataState::Fresh));
        login.password = network.map(|network| network.password.clone());
        Ok(Address {
            endpoint: network.map_or(endpoint, |network| network.endpoint.clone()),
            login,
            postmaster_pid,
        })
    }

    fn with_log(&self, problem: Problem, place: usize) -> Problem {
        let detail = problem.detail.clone().unwrap_or_default();
        let tail = self
            .clusters
            .get(place)
            .map_or(String::new(), |cluster| cluster.log_tail(LOG_LINES));
        let problem = problem.detail(format!("{detail}\nend of the server's log:\n{tail}"));
        self.limits.explain(place, problem)
    }
}

fn no_such_server() -> Problem {
    Problem::new("the plan has no such server")
}

/// The cluster that plays `server` in a block.
fn place_of(schedule: &BlockSchedule, server: ServerId) -> usize {
    let number = index(u64::from(server));
    schedule.slots.get(number).copied().unwrap_or(number)
}

/// What is loaded on every server.
#[derive(Clone, Copy)]
struct Loading<'a> {
    plan: &'a Plan,
    tables: &'a DataSet,
    executables: &'a [Executable],
    interrupted: &'a AtomicBool,
}

impl Loading<'_> {
    /// All that is to be done to one server before the blocks; `None` when interrupted.
    fn one(
        self,
        endpoint: &Endpoint,
        pid: u32,
        version_num: u32,
    ) -> Result<Option<ServerReadback>, Problem> {
        let plan = self.plan;
        load::load_fresh(endpoint, plan, self.tables)?;
        if self.interrupted.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let mut aging = None;
        if load::states(plan).contains(&DataState::Aged) {
            let report = aging::age(endpoint, pid, version_num, plan, self.interrupted)?;
            if report.is_none() {
                return Ok(None);
            }
            aging = report;
        }
        let readback = read_back(endpoint, plan, self.executables)?;
        Ok(Some(ServerReadback { aging, ..readback }))
    }
}

/// Asks for huge pages for so many servers at a time.
fn reserve(
    servers: usize,
    host: &Host,
    shared_buffers_mb: u64,
    workspace: &Workspace,
    note: &mut dyn FnMut(String),
) -> Result<Option<HugePages>, Problem> {
    if host.huge_pages == HugePagesWish::Off {
        return Ok(None);
    }
    let bytes = vec![shared_buffers_mb << 20; servers];
    match HugePages::reserve(&bytes, workspace) {
        Ok(pages) => Ok(Some(pages)),
        Err(why) if host.huge_pages == HugePagesWish::On => {
            Err(Problem::new("huge pages cannot be had")
                .detail(why)
                .hint("use --huge-pages try or off"))
        }
        Err(why) => {
            note(format!("no huge pages: {why}"));
            Ok(None)
        }
    }
}
