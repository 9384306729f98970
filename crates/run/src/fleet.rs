//! The run's servers: made, loaded, started for a block with swapped slots, stopped.

use crate::load;
use crate::planning::max_connections;
use crate::schedule::BlockSchedule;
use crate::visit::Address;
use deltabench_driver::admin::Client;
use deltabench_model::endpoint::Login;
use deltabench_model::installation::{Build, Setting};
use deltabench_model::plan::{Plan, PlannedServer};
use deltabench_model::problem::Problem;
use deltabench_model::units::{count, index};
use deltabench_server::{
    Cluster, ClusterSpec, HugePages, ServerUser, Slot, Workspace, base_settings, check_room, unmet,
};
use deltabench_workload::executable::Executable;
use std::path::PathBuf;
use std::time::Duration;

/// Limit for one set-up connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

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

/// What one server is, read back from it.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerReadback {
    /// How it was compiled.
    pub build: Build,
    /// All settings.
    pub settings: Vec<Setting>,
    /// Bytes of its tables and indexes after loading.
    pub relation_bytes: u64,
    /// For each cell of the plan, the shapes of its statements' plans.
    pub plans: Vec<Vec<String>>,
}

/// All clusters of a run.
pub struct Fleet<'a> {
    plan: &'a Plan,
    // Order matters on drop: clusters stop before their pages are given back and their directory goes.
    clusters: Vec<Cluster>,
    huge_pages: Option<HugePages>,
    workspace: Workspace,
    settings: Vec<Vec<(String, String)>>,
    shared_buffers_mb: u64,
}

impl<'a> Fleet<'a> {
    /// Makes an empty cluster for every server of the plan; `note` hears what the user should know.
    ///
    /// Errors: too little disk or memory, a bad directory, huge pages insisted on and refused, initdb
    /// failing.
    pub fn create(
        plan: &'a Plan,
        run: &str,
        host: &Host,
        note: &mut dyn FnMut(String),
    ) -> Result<Self, Problem> {
        let shared_buffers_mb = shared_buffers_mb(plan);
        check_fit(plan, host)?;
        let workspace = Workspace::create(&host.workspaces, run, &host.user)?;
        let huge_pages = reserve(plan, host, shared_buffers_mb, &workspace, note)?;
        let connections = max_connections(&plan.settings)?;
        let mut clusters = Vec::new();
        let mut settings = Vec::new();
        for (number, server) in plan.servers.iter().enumerate() {
            let version = server.installation.version_num;
            let base = base_settings(
                version,
                shared_buffers_mb,
                connections,
                huge_pages.is_some(),
            );
            if !base.dropped.is_empty() {
                note(format!(
                    "{}: has no {}",
                    server.installation.resolved,
                    base.dropped.join(", ")
                ));
            }
            let mut all = base.settings;
            all.extend(plan.settings.iter().cloned());
            let spec = ClusterSpec {
                installation: &server.installation,
                checksums: plan.checksums,
                settings: &all,
            };
            clusters.push(Cluster::create(
                &workspace,
                &format!("c{number}"),
                &spec,
                &host.cache,
                &host.user,
            )?);
            settings.push(all);
        }
        Ok(Self {
            plan,
            clusters,
            huge_pages,
            workspace,
            settings,
            shared_buffers_mb,
        })
    }

    /// Whether the servers have huge pages.
    #[must_use]
    pub fn has_huge_pages(&self) -> bool {
        self.huge_pages.is_some()
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

    /// Starts one cluster, loads it, reads back what it is, stops it and keeps its state for the blocks.
    ///
    /// Errors: with the tail of the server's log.
    pub fn load(
        &mut self,
        place: usize,
        executables: &[Executable],
    ) -> Result<ServerReadback, Problem> {
        let name = self.planned(place)?.installation.resolved.clone();
        let settings = self.asked_settings(place).to_vec();
        let plan = self.plan;
        self.refill_huge_pages()?;
        let cluster = self.cluster(place)?;
        let slot = Slot {
            port: 5500,
            affinity: None,
        };
        cluster.start(&slot, &settings)?;
        let loaded = load_and_read(cluster, plan, executables);
        let readback = loaded.map_err(|problem| with_log(problem, cluster))?;
        let failures = unmet(&settings, &readback.settings);
        if !failures.is_empty() {
            return Err(Problem::new(format!("{name} did not take every setting"))
                .detail(failures.join("\n")));
        }
        cluster.stop()?;
        if plan.cells.iter().any(|cell| cell.writes) {
            cluster.save()?;
        }
        Ok(readback)
    }

    /// Starts all servers as the block's schedule says, on restored state if any cell writes, and warms their
    /// caches.
    ///
    /// Errors: with the tail of the log of the server that failed. Returns the addresses in the plan's order.
    pub fn start(&mut self, schedule: &BlockSchedule) -> Result<Vec<Address>, Problem> {
        self.refill_huge_pages()?;
        let writes = self.plan.cells.iter().any(|cell| cell.writes);
        let mut addresses: Vec<Option<Address>> = vec![None; self.plan.servers.len()];
        for &server in &schedule.start_order {
            let place = schedule.slots.get(server).copied().unwrap_or(server);
            let port = schedule.ports.get(server).copied().unwrap_or(5500);
            let settings = self.asked_settings(server).to_vec();
            let cluster = self.cluster(place)?;
            if writes {
                cluster.restore()?;
            }
            cluster.start(
                &Slot {
                    port,
                    affinity: None,
                },
                &settings,
            )?;
            let address = address(cluster)?;
            let warmed = admin(cluster).and_then(|mut client| load::prewarm(&mut client));
            warmed.map_err(|problem| with_log(problem, cluster))?;
            if let Some(entry) = addresses.get_mut(server) {
                *entry = Some(address);
            }
        }
        addresses
            .into_iter()
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| Problem::new("a block's schedule left a server out"))
    }

    fn refill_huge_pages(&mut self) -> Result<(), Problem> {
        let Some(pages) = &mut self.huge_pages else {
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
        let results: Vec<Result<(), Problem>> =
            self.clusters.iter_mut().map(Cluster::stop).collect();
        results.into_iter().collect()
    }

    /// The last lines of the log of the cluster that plays `server` in a block.
    #[must_use]
    pub fn log_tail(&self, schedule: &BlockSchedule, server: u32) -> String {
        let place = schedule
            .slots
            .get(index(u64::from(server)))
            .copied()
            .unwrap_or_default();
        self.clusters
            .get(place)
            .map_or(String::new(), |cluster| cluster.log_tail(20))
    }

    /// Stops everything, gives huge pages back and removes the directories.
    ///
    /// Errors: what could not be stopped or removed.
    pub fn dismantle(mut self) -> Result<(), Problem> {
        let stopped = self.stop();
        drop(std::mem::take(&mut self.clusters));
        drop(self.huge_pages.take());
        self.workspace.remove().and(stopped)
    }

    fn planned(&self, place: usize) -> Result<&PlannedServer, Problem> {
        self.plan
            .servers
            .get(place)
            .ok_or_else(|| Problem::new("the plan has no such server"))
    }

    fn cluster(&mut self, place: usize) -> Result<&mut Cluster, Problem> {
        self.clusters
            .get_mut(place)
            .ok_or_else(|| Problem::new("the plan has no such server"))
    }
}

fn load_and_read(
    cluster: &Cluster,
    plan: &Plan,
    executables: &[Executable],
) -> Result<ServerReadback, Problem> {
    let mut client = admin(cluster)?;
    load::load(&mut client, plan)?;
    let mut plans = Vec::new();
    for (cell, executable) in plan.cells.iter().zip(executables) {
        plans.push(load::plans(
            &mut client,
            executable,
            &load::schema_of(cell),
        )?);
    }
    Ok(ServerReadback {
        build: load::build(&mut client)?,
        settings: load::settings(&mut client)?,
        relation_bytes: load::relation_bytes(&mut client)?,
        plans,
    })
}

/// How deltabench logs in to servers of its own.
#[must_use]
pub fn login(search_path: Option<&str>) -> Login {
    Login {
        user: "deltabench".to_owned(),
        database: "postgres".to_owned(),
        password: None,
        options: search_path
            .map(|schema| ("search_path".to_owned(), schema.to_owned()))
            .into_iter()
            .collect(),
    }
}

fn admin(cluster: &Cluster) -> Result<Client, Problem> {
    let address = address(cluster)?;
    Client::connect(&address.endpoint, &address.login, CONNECT_TIMEOUT).map_err(|error| {
        Problem::new("cannot connect to a server that was just started").detail(error.to_string())
    })
}

fn address(cluster: &Cluster) -> Result<Address, Problem> {
    match (cluster.endpoint(), cluster.postmaster_pid()) {
        (Some(endpoint), Some(postmaster_pid)) => Ok(Address {
            endpoint,
            login: login(None),
            postmaster_pid,
        }),
        _ => Err(Problem::new("a server is not running")),
    }
}

fn with_log(problem: Problem, cluster: &Cluster) -> Problem {
    let detail = problem.detail.clone().unwrap_or_default();
    problem.detail(format!(
        "{detail}\nend of the server's log:\n{}",
        cluster.log_tail(20)
    ))
}

/// Shared buffers for all data twice over (updates leave dead rows), in steps of 64 MB.
fn shared_buffers_mb(plan: &Plan) -> u64 {
    let asked = plan
        .settings
        .iter()
        .rev()
        .find(|(name, _)| name == "shared_buffers");
    if let Some(megabytes) = asked.and_then(|(_, value)| deltabench_server::megabytes(value)) {
        return megabytes;
    }
    let data_mb = load::data_bytes(plan) / (1 << 20);
    (data_mb * 3 / 2 + 128).next_multiple_of(64).max(256)
}

/// Refuses a plan that this host has no room for.
///
/// Errors: how much disk or memory is missing, or a socket path that is too long.
pub fn check_fit(plan: &Plan, host: &Host) -> Result<(), Problem> {
    let shared_buffers_mb = shared_buffers_mb(plan);
    let servers = count(plan.servers.len());
    let data = load::data_bytes(plan);
    let copies = if plan.cells.iter().any(|cell| cell.writes) {
        2
    } else {
        1
    };
    // Beside the data: WAL of the load (about its size again, recycled) and 64 MB of catalogs for each
    // cluster.
    let disk = servers * (data * copies + data + (256 << 20));
    let memory = servers * ((shared_buffers_mb << 20) + (96 << 20));
    check_room(&host.workspaces, disk, memory)
}

fn reserve(
    plan: &Plan,
    host: &Host,
    shared_buffers_mb: u64,
    workspace: &Workspace,
    note: &mut dyn FnMut(String),
) -> Result<Option<HugePages>, Problem> {
    if host.huge_pages == HugePagesWish::Off {
        return Ok(None);
    }
    let bytes = vec![shared_buffers_mb << 20; plan.servers.len()];
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
