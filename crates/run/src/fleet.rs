//! The run's servers: made, loaded, started for a block with swapped slots, stopped.

mod background;
mod counted;
mod limited;
mod loading;
mod member;
mod pristine;

use self::member::Member;
use self::pristine::Pristine;
use crate::admin::run;
use crate::aging;
use crate::limits::{FleetLimits, Possible, takes_huge_pages};
use crate::load::{self, DataSet, Making, ShortVisits};
use crate::occupancy::{Occupancy, decide};
use crate::planning::max_connections;
use crate::remote::{self, Agents, RemoteServer};
use crate::schedule::BlockSchedule;
use crate::session::benchmark::Benchmark;
use crate::site::{Home, tables_of};
use crate::visit::Address;
use deltabench_model::plan::{CacheState, Cell, Plan, PlannedServer, ServerId};
use deltabench_model::problem::Problem;
use deltabench_observe::drop_pages;
use deltabench_server::{
    Burn, Cluster, ClusterSpec, HugePages, Slot, Template, Workspace, base_settings, settings_under,
};
use deltabench_workload::{Chore, Library};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub use self::background::Background;
pub use self::counted::CountedServer;
pub use crate::host::{Host, HugePagesWish};
pub use crate::readback::ServerReadback;

/// First port of the servers while they are loaded.
const LOADING_PORT: u16 = 5400;

/// Variable that moves the stack of a server: it is not looked at by anybody.
const PADDING: &str = "DELTABENCH_PADDING";

/// Lines of a server's log that a problem shows.
const LOG_LINES: usize = 20;

/// How often a pause, or set-up work, looks for an interruption.
const PAUSE: Duration = Duration::from_millis(50);

/// All servers of a run: clusters of its own, and schemas on servers that were there before.
pub struct Fleet<'a> {
    plan: &'a Plan,
    // Order matters on drop: clusters stop before their groups are removed, their pages are given back and
    // their directory goes.
    members: Vec<Member>,
    /// The data that passes begin with; empty where no plan asks for it.
    pristine: Vec<Pristine>,
    /// Places of servers that have not been started since their data were kept.
    untouched: BTreeSet<usize>,
    remotes: Vec<RemoteServer>,
    agents: Agents,
    limits: FleetLimits,
    huge_pages: Option<HugePages>,
    workspace: Workspace,
    settings: Vec<Vec<(String, String)>>,
    shared_buffers_mb: u64,
    occupancy: Occupancy,
    burn: Option<Burn>,
    library: Library,
    tables: DataSet,
    short_visits: Mutex<ShortVisits>,
}

impl<'a> Fleet<'a> {
    /// Makes an empty cluster for every server of the plan, or a schema on one that was there before; `note`
    /// hears what the user should know.
    ///
    /// Errors: too little disk or memory, limits that this host does not allow, a bad directory, huge pages
    /// insisted on and refused, initdb failing, a known slowdown asked for and no C compiler; those of
    /// [`remote::check`].
    pub fn create(
        plan: &'a Plan,
        benchmark: &dyn Benchmark,
        run: &str,
        host: &Host,
        note: &mut dyn FnMut(String),
    ) -> Result<Self, Problem> {
        // Its agents are started below, for the whole run.
        remote::check_servers(plan)?;
        let library = Library::of_plan(plan)?;
        let tables = DataSet::of(plan, &library, benchmark.own_tables(plan)?)?;
        let needs = benchmark.needs(plan)?;
        let occupancy = decide(plan, host, &needs)?;
        let shared_buffers_mb = needs.shared_buffers_mb;
        let possible = Possible::find(plan, host)?;
        let workspace = Workspace::create(&host.workspaces, run, &host.user)?;
        let at_once = match occupancy {
            Occupancy::Together => takers_of_huge_pages(plan),
            Occupancy::Rotated => takers_of_huge_pages(plan).min(1),
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
            members: Vec::new(),
            pristine: Vec::new(),
            untouched: BTreeSet::new(),
            remotes: Vec::new(),
            agents: Agents::default(),
            limits,
            huge_pages,
            workspace,
            settings: Vec::new(),
            shared_buffers_mb,
            occupancy,
            burn,
            library,
            tables,
            short_visits: Mutex::default(),
        };
        fleet.make_templates(host)?;
        for (place, server) in plan.servers.iter().enumerate() {
            match &server.installation.remote {
                Some(found) => fleet.add_remote(place, found, run, note)?,
                None => fleet.add(place, server, host, note)?,
            }
        }
        Ok(fleet)
    }

    /// Makes the templates that the cache lacks, those of different installations at the same time.
    fn make_templates(&self, host: &Host) -> Result<(), Problem> {
        let (plan, workspace) = (self.plan, &self.workspace);
        let servers = plan.servers.iter().enumerate();
        let own = servers.filter(|(place, server)| {
            server.installation.remote.is_none() && self.leader(*place) == *place
        });
        std::thread::scope(|scope| {
            let make = |server: &'a PlannedServer| {
                let installation = &server.installation;
                Template::obtain(installation, plan.checksums, &host.cache, workspace).map(drop)
            };
            let making: Vec<_> = own
                .map(|(_, server)| scope.spawn(move || make(server)))
                .collect();
            let died = |_| Err(Problem::new("a thread that runs initdb ended too early"));
            making
                .into_iter()
                .try_for_each(|thread| thread.join().unwrap_or_else(died))
        })
    }

    fn add(
        &mut self,
        place: usize,
        server: &PlannedServer,
        host: &Host,
        note: &mut dyn FnMut(String),
    ) -> Result<(), Problem> {
        let mut all = self.settings_below(server, note)?;
        all.extend(self.plan.settings.iter().cloned());
        // No settings: clusters are exchanged between the servers of an installation, and one of these may
        // run a named configuration while another has the steady profile. Each start brings its own.
        let spec = ClusterSpec {
            installation: &server.installation,
            checksums: self.plan.checksums,
            settings: &[],
        };
        let name = format!("c{place}");
        let cluster = Cluster::create(&self.workspace, &name, &spec, &host.cache, &host.user)?;
        self.members.push(Member::Own(Box::new(cluster)));
        self.add_pristine(place, &spec, host)?;
        all.extend(server.settings.iter().cloned());
        self.settings.push(all);
        Ok(())
    }

    /// What a server starts from, under the plan's settings and its own: the steady profile, or no more than
    /// is needed where a named configuration is in its place.
    fn settings_below(
        &self,
        server: &PlannedServer,
        note: &mut dyn FnMut(String),
    ) -> Result<Vec<(String, String)>, Problem> {
        let connections = max_connections(&self.plan.settings)?;
        let huge_pages = self.huge_pages.is_some();
        if server.configuration.is_some() {
            return Ok(settings_under(
                &[],
                self.shared_buffers_mb,
                connections,
                huge_pages,
            ));
        }
        let base = base_settings(
            server.installation.version_num,
            self.shared_buffers_mb,
            connections,
            huge_pages,
        );
        if !base.dropped.is_empty() {
            note(format!(
                "{}: has no {}",
                server.installation.resolved,
                base.dropped.join(", ")
            ));
        }
        Ok(base.settings)
    }

    /// Whether the servers have huge pages.
    pub fn has_huge_pages(&self) -> bool {
        self.huge_pages.is_some()
    }

    /// Whether each start of a server of ours has a new copy of its executable.
    ///
    /// Errors: the workspace is gone.
    pub fn has_own_programs(&self) -> Result<bool, Problem> {
        self.workspace.may_execute()
    }

    /// Whether all servers run at a time or one.
    pub fn occupancy(&self) -> Occupancy {
        self.occupancy
    }

    /// `shared_buffers` of every server, MB.
    pub fn shared_buffers_mb(&self) -> u64 {
        self.shared_buffers_mb
    }

    /// Settings that the server in `place` was started with.
    pub fn asked_settings(&self, place: usize) -> &[(String, String)] {
        self.settings.get(place).map_or(&[], Vec::as_slice)
    }

    /// Starts all servers as the block's schedule says and warms the tables that cells read where they are
    /// kept; those of cells that write come with [`Fleet::renew`]. For [`Occupancy::Together`].
    ///
    /// Shape:  addresses in the plan's order; see [`load::address_for`].
    /// Errors: with the tail of the log of the server that failed.
    pub fn start(&mut self, schedule: &BlockSchedule) -> Result<Vec<Address>, Problem> {
        let mut addresses: Vec<Option<Address>> = vec![None; self.plan.servers.len()];
        for &server in &schedule.start_order {
            let id = ServerId::at(server);
            let address = self.start_one(schedule, id)?;
            if let Some(entry) = addresses.get_mut(server) {
                *entry = Some(address);
            }
        }
        addresses
            .into_iter()
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| Problem::new("the schedule of a block lacks a server"))
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
        let number = server.index();
        self.bring_up(schedule, server, place)?;
        if plan.cache != CacheState::Cold {
            let site = self.site(place, number)?;
            self.limits
                .unhindered(place, || load::prewarm_read(&site, plan, &self.tables))
                .map_err(|problem| self.with_log(problem, place))?;
        }
        self.address(place, number)
    }

    /// Starts a cluster, or looks whether a server that was there before still is.
    fn bring_up(
        &mut self,
        schedule: &BlockSchedule,
        server: ServerId,
        place: usize,
    ) -> Result<(), Problem> {
        if let Some(remote) = self.remote_mut(place) {
            return remote.look_after();
        }
        self.refill_huge_pages()?;
        self.untouched.remove(&place);
        let settings = self.asked_settings(server.index()).to_vec();
        let slot = self.slot(schedule, server);
        let data = self.cluster(place)?.data_dir();
        self.limits.before_start(place, &data)?;
        let started = self.cluster(place)?.start(&slot, &settings).map(drop);
        started.map_err(|problem| self.limits.explain(place, problem))
    }

    /// Stops one server; nothing to do if it is not running, or not ours to stop.
    ///
    /// Errors: it had ended on its own or did not stop cleanly; it is gone in any case.
    pub fn stop_one(&mut self, schedule: &BlockSchedule, server: ServerId) -> Result<(), Problem> {
        let place = place_of(schedule, server);
        // The checkpoint of a shutdown is not measured.
        let Self {
            limits, members, ..
        } = self;
        let member = members.get_mut(place).ok_or_else(no_such_server)?;
        limits.unhindered(place, || member.stop())
    }

    /// Drops the pages of a stopped server's files from the page cache; nothing to do for a server that was
    /// there before.
    ///
    /// Errors: a file that cannot be written back or looked into.
    pub fn drop_pages(
        &mut self,
        schedule: &BlockSchedule,
        server: ServerId,
    ) -> Result<(), Problem> {
        let place = place_of(schedule, server);
        if self.remote_mut(place).is_some() {
            return Ok(());
        }
        let data = self.cluster(place)?.data_dir();
        drop_pages(&data).map(drop).map_err(|error| {
            Problem::new("the pages of a stopped server cannot be dropped")
                .detail(error.to_string())
        })
    }

    /// Gives cells that write tables on a running server that nobody has written to, in the state that `cell`
    /// starts from, and warms them. No client may be connected to that server.
    ///
    /// When this returns, nothing is left to be written by a server of ours: no dirty buffers but a handful,
    /// a checkpoint a moment ago, all files synced.
    ///
    /// Errors: whatever the server answered, with the tail of its log.
    pub fn renew(
        &self,
        schedule: &BlockSchedule,
        server: ServerId,
        cell: &Cell,
    ) -> Result<(), Problem> {
        self.renew_as(schedule, server, (cell, Making::Synced))
    }

    fn renew_as(
        &self,
        schedule: &BlockSchedule,
        server: ServerId,
        (cell, making): (&Cell, Making),
    ) -> Result<(), Problem> {
        let place = place_of(schedule, server);
        let version_num = self.planned(place)?.installation.version_num;
        let site = self.site(place, server.index())?;
        let what = (self.plan, &self.tables);
        self.limits
            .unhindered(place, || {
                load::renew(&site, what, cell.state, (version_num, making))
            })
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
        let site = self.site(place, server.index())?;
        self.limits
            .unhindered(place, || load::prewarm_for(&site, self.plan.order, cell))
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

    /// What must hold of the tables that a cell has used on a running server and does not: the server, or the
    /// workload, has lost something.
    ///
    /// Errors: whatever the server answered, with the tail of its log.
    pub fn broken(
        &self,
        schedule: &BlockSchedule,
        server: ServerId,
        cell: &Cell,
    ) -> Result<Vec<String>, Problem> {
        let place = place_of(schedule, server);
        let site = self.site(place, server.index())?;
        let mut client = site.open(tables_of(self.plan.order, cell))?;
        let broken = self.tables.broken(&mut client);
        broken.map_err(|problem| self.with_log(problem, place))
    }

    /// Does chores on the tables of a cell's workload, in the database that the cell uses, each on all of
    /// these running servers before the next.
    ///
    /// A chore that takes a time is over when all servers are quiet, and at the latest after that time, which
    /// is waited out if one of them cannot be looked at; a plain pause is waited out. Checkpoints are not
    /// asked of servers that were there before.
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
        let used = tables_of(self.plan.order, cell);
        for chore in chores {
            let deadline = Instant::now() + Duration::from_secs(chore.seconds(&self.plan.data));
            let mut pids = Vec::new();
            for &server in servers {
                let place = place_of(schedule, server);
                let version_num = self.planned(place)?.installation.version_num;
                let site = self.site(place, server.index())?;
                let own = site.home == Home::Databases;
                let done = site.open(used).and_then(|mut client| {
                    let statements = match chore {
                        Chore::Settle => load::settle_sql(version_num, &tables, own),
                        Chore::Checkpoint if !own => Vec::new(),
                        _ => chore.statements(&tables),
                    };
                    statements.iter().try_for_each(|sql| run(&mut client, sql))
                });
                done.map_err(|problem| self.with_log(problem, place))?;
                pids.push(self.postmaster_pid(place)?);
            }
            let settles = *chore == Chore::Settle;
            for pid in pids.iter().flatten().filter(|_| settles) {
                let left = deadline.saturating_duration_since(Instant::now());
                aging::wait_until_quiet(*pid, left, interrupted)?;
            }
            let waits = matches!(chore, Chore::Wait(_)) || (settles && pids.contains(&None));
            while waits && Instant::now() < deadline && !interrupted.load(Ordering::Relaxed) {
                std::thread::sleep(PAUSE);
            }
        }
        Ok(())
    }

    fn slot(&self, schedule: &BlockSchedule, server: ServerId) -> Slot {
        let number = server.index();
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
            counter: None,
            own_executable: self.plan.own_executables,
        }
    }

    fn refill_huge_pages(&mut self) -> Result<(), Problem> {
        // Pages that a server of ours has taken are not missing.
        let idle = self.members.iter().all(|member| !member.is_running());
        let Some(pages) = self.huge_pages.as_mut().filter(|_| idle) else {
            return Ok(());
        };
        pages.refill().map_err(|why| {
            Problem::new("another program took huge pages that this run needs")
                .detail(why)
                .hint("stop it and run `deltabench resume`, or use --huge-pages off in a new run")
        })
    }

    /// Stops every server of ours.
    ///
    /// Errors: the first server that had ended on its own or did not stop cleanly; all are gone in any case.
    pub fn stop(&mut self) -> Result<(), Problem> {
        let limits = &self.limits;
        let stop =
            |(place, member): (usize, &mut Member)| limits.unhindered(place, || member.stop());
        let members = self.members.iter_mut().enumerate();
        let results: Vec<Result<(), Problem>> = members.map(stop).collect();
        results.into_iter().collect()
    }

    /// Removes the tables of cells that write from a running server, and their files.
    ///
    /// Errors: whatever the server answered, with the tail of its log.
    pub fn clear(&self, schedule: &BlockSchedule, server: ServerId) -> Result<(), Problem> {
        let place = place_of(schedule, server);
        let site = self.site(place, server.index())?;
        self.limits
            .unhindered(place, || load::clear(&site))
            .map_err(|problem| self.with_log(problem, place))
    }

    /// The data directory of the cluster that plays `server` in a block.
    ///
    /// Errors: there is none: the server was there before.
    pub fn data_dir(&self, schedule: &BlockSchedule, server: ServerId) -> Result<PathBuf, Problem> {
        let own = self.own(place_of(schedule, server));
        own.map(Cluster::data_dir).ok_or_else(no_such_server)
    }

    /// The directory that holds all data directories.
    pub fn directory(&self) -> &Path {
        self.workspace.directory()
    }

    /// The log of the cluster that plays `server` in a block, from all blocks so far; empty if there is none.
    pub fn log(&self, schedule: &BlockSchedule, server: ServerId) -> String {
        self.own(place_of(schedule, server))
            .and_then(|cluster| std::fs::read(cluster.log_path()).ok())
            .map_or(String::new(), |bytes| {
                String::from_utf8_lossy(&bytes).into_owned()
            })
    }

    /// The last lines of the log of the cluster that plays `server` in a block; empty if there is none.
    pub fn log_tail(&self, schedule: &BlockSchedule, server: ServerId) -> String {
        self.own(place_of(schedule, server))
            .map_or(String::new(), |cluster| cluster.log_tail(LOG_LINES))
    }

    /// Stops everything, gives huge pages back and removes control groups, directories and schemas.
    ///
    /// Errors: what could not be stopped or removed.
    pub fn dismantle(mut self) -> Result<(), Problem> {
        let stopped = self.stop();
        drop(std::mem::take(&mut self.members));
        drop(std::mem::take(&mut self.pristine));
        let dropped: Vec<Result<(), Problem>> = self
            .remotes
            .iter_mut()
            .map(RemoteServer::dismantle)
            .collect();
        drop(self.huge_pages.take());
        // Before the workspace, which says where they are, and stays if they do.
        let ungrouped = self.limits.remove();
        let removed = ungrouped.and(self.workspace.remove()).and(stopped);
        removed.and(dropped.into_iter().collect())
    }

    fn planned(&self, place: usize) -> Result<&PlannedServer, Problem> {
        self.plan.servers.get(place).ok_or_else(no_such_server)
    }

    fn with_log(&self, problem: Problem, place: usize) -> Problem {
        let Some(cluster) = self.own(place) else {
            return problem;
        };
        let detail = problem.detail.clone().unwrap_or_default();
        let tail = cluster.log_tail(LOG_LINES);
        let problem = problem.detail(format!("{detail}\nend of the server's log:\n{tail}"));
        self.limits.explain(place, problem)
    }
}

fn no_such_server() -> Problem {
    Problem::new("the plan has no such server")
}

/// The cluster that plays `server` in a block.
fn place_of(schedule: &BlockSchedule, server: ServerId) -> usize {
    let number = server.index();
    schedule.slots.get(number).copied().unwrap_or(number)
}

/// How many of a plan's servers would take huge pages: those that deltabench starts and that are not told to
/// do without. Pages change no count of instructions, so a run that counts leaves them to others.
fn takers_of_huge_pages(plan: &Plan) -> usize {
    if plan.observing.counting.is_some() {
        return 0;
    }
    let mut servers: Vec<&PlannedServer> = plan.servers.iter().collect();
    servers.retain(|server| takes_huge_pages(plan, server));
    servers.len()
}

/// Asks for huge pages for so many servers at a time.
fn reserve(
    servers: usize,
    host: &Host,
    shared_buffers_mb: u64,
    workspace: &Workspace,
    note: &mut dyn FnMut(String),
) -> Result<Option<HugePages>, Problem> {
    if servers == 0 && host.huge_pages == HugePagesWish::On {
        return Err(Problem::new("huge pages are not available")
            .detail(
                "no server of this run uses them: it already ran, the run counts instructions, or it has \
                 huge_pages = off",
            )
            .hint("leave out --huge-pages on"));
    }
    if servers == 0 || host.huge_pages == HugePagesWish::Off {
        return Ok(None);
    }
    let bytes = vec![shared_buffers_mb << 20; servers];
    match HugePages::reserve(&bytes, workspace) {
        Ok(pages) => Ok(Some(pages)),
        Err(why) if host.huge_pages == HugePagesWish::On => {
            Err(Problem::new("huge pages are not available")
                .detail(why)
                .hint("use --huge-pages try or off"))
        }
        Err(why) => {
            note(format!("no huge pages: {why}"));
            Ok(None)
        }
    }
}
