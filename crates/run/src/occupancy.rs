//! Whether this host has room for a plan's servers, and for how many of them at once.

use crate::host::Host;
use crate::limits;
use deltabench_model::plan::{Plan, PlannedServer};
use deltabench_model::problem::Problem;
use deltabench_model::units::{count, to_u64};
use deltabench_proc::memory::memory_available;
use deltabench_server::{Normal, check_room, normalise};

/// How many servers run at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Occupancy {
    /// All of them, for a whole block.
    Together,
    /// One: they do not fit in memory together, so they are started and stopped in turn.
    Rotated,
}

/// A machine, as far as the room and the time of a plan depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    pub cores: u64,
    /// Memory that servers may have, bytes; absent: nobody knows.
    pub memory_bytes: Option<u64>,
    /// Disk that servers may have, bytes; absent: nobody knows.
    pub disk_bytes: Option<u64>,
}

impl Machine {
    /// This one.
    #[must_use]
    pub fn here() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            cores: count(cores),
            memory_bytes: memory_available(),
            disk_bytes: None,
        }
    }

    /// Refuses what has no room there.
    pub(crate) fn check(&self, plan: &Plan, needs: &Needs) -> Result<(), Problem> {
        let (disk, memory) = room(plan, needs);
        for (what, needed, there) in [
            ("disk", disk, self.disk_bytes),
            ("memory", memory, self.memory_bytes),
        ] {
            if let Some(there) = there.filter(|there| *there < needed) {
                return Err(
                    Problem::new(format!("such a machine has not enough {what}"))
                        .detail(format!(
                            "the servers need about {} MB, and it has {} MB",
                            needed >> 20,
                            there >> 20
                        ))
                        .hint("describe a larger machine, or pick less with --only"),
                );
            }
        }
        Ok(())
    }
}

/// How many servers a kind of benchmark runs at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtOnce {
    /// All if they fit into memory together, else one.
    AsFits,
    /// One, however much memory there is.
    One,
    /// All; what that is refused with has this hint.
    All(&'static str),
}

/// Beside its buffers, each server has catalogs, WAL buffers, lock tables and a process for each connection.
pub const MEMORY_BESIDE: u64 = 96 << 20;

/// Beside the data: catalogs of each database and the log.
pub const DISK_BESIDE: u64 = 256 << 20;

/// `max_wal_size` of the steady profile.
const WAL_STEADY: u64 = 8 << 30;

/// Most WAL that a server keeps: its `max_wal_size`, which a load or the write phase may exceed a little.
pub fn wal_max(plan: &Plan) -> u64 {
    let asked = |settings: &[(String, String)]| {
        let mut found = settings.iter().rev();
        let (_, value) = found.find(|(name, _)| name == "max_wal_size")?;
        match normalise(value, Some("MB")) {
            Normal::Bytes(bytes) => Some(to_u64(bytes)),
            _ => None,
        }
    };
    let of_all = asked(&plan.settings).unwrap_or(WAL_STEADY);
    let own = plan
        .servers
        .iter()
        .filter_map(|server| asked(&server.settings));
    own.fold(of_all, u64::max) / 8 * 9
}

/// What one server of a plan takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    /// Shared buffers of a server without a setting of its own.
    pub shared_buffers_mb: u64,
    /// The most that any server has.
    pub largest_buffers_mb: u64,
    /// Memory, shared buffers included.
    pub memory_bytes: u64,
    /// Disk at most.
    pub disk_bytes: u64,
    /// Disk at most that only one of them takes at a time.
    pub disk_once_bytes: u64,
    /// How many of them run at a time.
    pub at_once: AtOnce,
}

impl Needs {
    /// What each server takes whose shared buffers hold so many bytes of tables, without disk: more than one
    /// runs at a time where they fit.
    ///
    /// Errors: shared buffers that do not fit under the plan's memory limit.
    pub fn holding(plan: &Plan, bytes: u64) -> Result<Self, Problem> {
        let shared_buffers_mb = limits::shared_buffers_mb(plan, fitting_mb(bytes))?;
        let of = |server: &PlannedServer| limits::shared_buffers_asked(&server.settings);
        let each = plan.servers.iter();
        let each = each.map(|server| of(server).unwrap_or(shared_buffers_mb));
        let largest_buffers_mb = each.max().unwrap_or(shared_buffers_mb);
        let memory_bytes = (largest_buffers_mb << 20) + MEMORY_BESIDE;
        Ok(Self {
            shared_buffers_mb,
            largest_buffers_mb,
            // A limited server fills what it may have with page cache.
            memory_bytes: plan.limits.memory_bytes.unwrap_or(memory_bytes),
            disk_bytes: DISK_BESIDE,
            disk_once_bytes: 0,
            at_once: AtOnce::AsFits,
        })
    }
}

/// How long a plan takes, about, whatever time is allowed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlannedTime {
    /// Seconds of loading and copying.
    pub set_up: f64,
    /// Seconds of measuring all blocks.
    pub measuring: f64,
}

/// Shared buffers that hold so many bytes, in steps of 64 MB.
pub fn fitting_mb(bytes: u64) -> u64 {
    // A tenth more, since the bytes are an estimate, and room for what the server needs itself.
    let megabytes = bytes / (1 << 20) * 11 / 10 + 128;
    megabytes.next_multiple_of(64).max(256)
}

/// How many of the plan's servers run at a time on this host, whose needs are known.
pub(crate) fn decide(plan: &Plan, host: &Host, needs: &Needs) -> Result<Occupancy, Problem> {
    check(plan, host, needs)?;
    Ok(by_memory(plan, needs, memory_available()))
}

/// Disk at most, and memory at least, bytes: of all servers, and of those that have to run at a time.
fn room(plan: &Plan, needs: &Needs) -> (u64, u64) {
    let servers = own_servers(plan);
    let disk = servers.saturating_mul(needs.disk_bytes);
    let disk = disk.saturating_add(needs.disk_once_bytes);
    match (servers, needs.at_once) {
        (0, _) => (0, 0),
        (_, AtOnce::All(_)) => (disk, servers.saturating_mul(needs.memory_bytes)),
        _ => (disk, needs.memory_bytes),
    }
}

/// Servers of a plan that deltabench starts. Those that were there before take nothing here; where theirs is
/// nobody tells us.
pub(crate) fn own_servers(plan: &Plan) -> u64 {
    let own = |server: &&PlannedServer| server.installation.remote.is_none();
    count(plan.servers.iter().filter(own).count())
}

/// Whether there is room for the data of all servers and the memory of those that have to run at a time.
pub(crate) fn check(plan: &Plan, host: &Host, needs: &Needs) -> Result<(), Problem> {
    if own_servers(plan) == 0 {
        return Ok(());
    }
    let (disk, memory) = room(plan, needs);
    let checked = check_room(&host.workspaces, disk, memory);
    match needs.at_once {
        AtOnce::All(hint) => checked.map_err(|problem| problem.hint(hint)),
        _ => checked,
    }
}

/// How many servers run at a time where so much memory is available, wherever their data are.
pub(crate) fn by_memory(plan: &Plan, needs: &Needs, available: Option<u64>) -> Occupancy {
    let servers = own_servers(plan);
    let all = servers.saturating_mul(needs.memory_bytes);
    match (needs.at_once, available) {
        _ if servers == 0 => Occupancy::Together,
        (AtOnce::One, _) => Occupancy::Rotated,
        (AtOnce::AsFits, Some(available)) if all > available => Occupancy::Rotated,
        _ => Occupancy::Together,
    }
}
