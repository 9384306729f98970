//! Whether this host has room for a plan's servers, and for how many of them at once.

use crate::fleet::Host;
use crate::limits;
use crate::load::{DataSet, states, states_read};
use crate::passes::setup as passes;
use crate::rocksdb::outlook;
use crate::site::uses_work;
use deltabench_model::insert::InsertSetup;
use deltabench_model::plan::{DataState, Plan, PlannedServer};
use deltabench_model::problem::Problem;
use deltabench_model::units::{count, to_f64, to_u64};
use deltabench_proc::memory::memory_available;
use deltabench_server::{Normal, check_room, normalise};
use deltabench_workload::Library;

/// How many servers run at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Residence {
    /// All of them, for a whole block.
    Together,
    /// One: they do not fit in memory together, so they are started and stopped in turn.
    Rotated,
}

/// Size of a state's tables against freshly loaded ones.
///
/// Source: the largest of 1.25 (9.6.24), 1.15 (14.24, 17.11, 18.6) after [`crate::aging::WRITE_PHASE`] on a
/// million rows, rounded up.
fn growth(state: DataState) -> f64 {
    match state {
        DataState::Fresh => 1.0,
        DataState::Aged => 1.3,
    }
}

/// What cells that write may add to their tables before they are made anew.
const WRITTEN: f64 = 1.5;

/// Beside its buffers, each server has catalogs, WAL buffers, lock tables and a process for each connection.
const MEMORY_BESIDE: u64 = 96 << 20;

/// Beside the data: catalogs of each database and the log.
const DISK_BESIDE: u64 = 256 << 20;

/// `max_wal_size` of the steady profile.
const WAL_STEADY: u64 = 8 << 30;

/// Most WAL that a server keeps: its `max_wal_size`, which a load or the write phase may exceed a little.
fn wal_max(plan: &Plan) -> u64 {
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
pub(crate) struct Needs {
    /// Shared buffers of a server without a setting of its own.
    pub(crate) shared_buffers_mb: u64,
    /// The most that any server has.
    pub(crate) largest_buffers_mb: u64,
    /// Memory, shared buffers included.
    pub(crate) memory_bytes: u64,
    /// Disk at most.
    pub(crate) disk_bytes: u64,
    /// Disk at most that only one of them takes at a time.
    pub(crate) disk_once_bytes: u64,
}

impl Needs {
    /// What each of the plan's servers takes; `data` bytes are loaded.
    ///
    /// Errors: shared buffers that do not fit under the plan's memory limit.
    pub(crate) fn of(plan: &Plan, data: u64) -> Result<Self, Problem> {
        if let Some(setup) = plan.work.insert() {
            return Self::of_passes(plan, setup);
        }
        if plan.work.is_embedded() {
            return Ok(Self::of_engines(plan));
        }
        let bytes_of = |state: &DataState| to_u64(to_f64(data) * growth(*state));
        let kept: u64 = states(plan).iter().map(bytes_of).sum();
        let read: u64 = states_read(plan).iter().map(bytes_of).sum();
        let written = plan
            .cells
            .iter()
            .filter(|cell| uses_work(plan.order, cell))
            .map(|cell| to_u64(to_f64(bytes_of(&cell.state)) * WRITTEN))
            .max()
            .unwrap_or(0);
        let shared_buffers_mb = limits::shared_buffers_mb(plan, fitting(read + written))?;
        let largest_buffers_mb = largest_buffers_mb(plan, shared_buffers_mb);
        let memory_bytes = (largest_buffers_mb << 20) + MEMORY_BESIDE;
        // Full pages and rows of a load and of what is written, until a checkpoint lets go of them.
        let wal = (kept * 2 + written).min(wal_max(plan));
        Ok(Self {
            shared_buffers_mb,
            largest_buffers_mb,
            // A limited server fills what it may have with page cache.
            memory_bytes: plan.limits.memory_bytes.unwrap_or(memory_bytes),
            disk_bytes: kept + written + wal + DISK_BESIDE,
            disk_once_bytes: 0,
        })
    }

    /// What each target takes for its database of one block.
    fn of_engines(plan: &Plan) -> Self {
        let found = outlook(plan);
        let targets = count(plan.servers.len()).max(1);
        Self {
            shared_buffers_mb: 0,
            largest_buffers_mb: 0,
            memory_bytes: found.memory_bytes / targets,
            disk_bytes: found.disk_bytes / targets,
            disk_once_bytes: 0,
        }
    }

    /// What each server takes for its passes: it has tables and their WAL only while it is its turn, and what
    /// it begins with lies beside it once more.
    fn of_passes(plan: &Plan, setup: &InsertSetup) -> Result<Self, Problem> {
        let data = passes::bytes(setup);
        let shared_buffers_mb = limits::shared_buffers_mb(plan, fitting(data))?;
        let largest_buffers_mb = largest_buffers_mb(plan, shared_buffers_mb);
        // Buffers are not touched before there is something to hold in them.
        let memory_bytes = fitting(data).min(largest_buffers_mb) << 20;
        let wal = passes::wal_bytes(setup).min(wal_max(plan));
        Ok(Self {
            shared_buffers_mb,
            largest_buffers_mb,
            memory_bytes: plan
                .limits
                .memory_bytes
                .unwrap_or(memory_bytes + MEMORY_BESIDE),
            disk_bytes: DISK_BESIDE,
            disk_once_bytes: data.saturating_add(wal),
        })
    }
}

/// The most shared buffers that any server has, MB.
fn largest_buffers_mb(plan: &Plan, shared_buffers_mb: u64) -> u64 {
    let each = plan
        .servers
        .iter()
        .map(|server| limits::shared_buffers_asked(&server.settings).unwrap_or(shared_buffers_mb));
    each.max().unwrap_or(shared_buffers_mb)
}

/// Shared buffers that hold so many bytes, in steps of 64 MB.
fn fitting(bytes: u64) -> u64 {
    // A tenth more, since the bytes are an estimate, and room for what the server needs itself.
    let megabytes = bytes / (1 << 20) * 11 / 10 + 128;
    megabytes.next_multiple_of(64).max(256)
}

/// How many of the plan's servers run at a time on this host.
///
/// Errors: not even one fits into memory, too little disk for the data of all, or a socket path that is too
/// long, with how much is missing; workloads whose tables cannot be loaded together.
pub fn residence(plan: &Plan, host: &Host) -> Result<Residence, Problem> {
    decide(plan, host, &Needs::of(plan, loaded_bytes(plan)?)?)
}

/// Bytes of the tables that every server is loaded with.
pub(crate) fn loaded_bytes(plan: &Plan) -> Result<u64, Problem> {
    if plan.work.is_embedded() {
        return Ok(0);
    }
    let library = Library::of_plan(plan)?;
    DataSet::of(plan, &library)?.bytes(plan)
}

/// As [`residence`], for servers whose needs are known.
pub(crate) fn decide(plan: &Plan, host: &Host, needs: &Needs) -> Result<Residence, Problem> {
    check(plan, host, needs)?;
    Ok(by_memory(plan, needs))
}

/// Servers of a plan that deltabench starts. Those that were there before take nothing here; where theirs is
/// nobody tells us.
fn own_servers(plan: &Plan) -> u64 {
    let own = |server: &&PlannedServer| server.installation.remote.is_none();
    count(plan.servers.iter().filter(own).count())
}

/// Whether there is room for the data of all servers and the memory of those that have to run at a time.
pub(crate) fn check(plan: &Plan, host: &Host, needs: &Needs) -> Result<(), Problem> {
    let servers = own_servers(plan);
    if servers == 0 {
        return Ok(());
    }
    let disk = needs
        .disk_once_bytes
        .saturating_add(servers.saturating_mul(needs.disk_bytes));
    if plan.work.is_embedded() {
        // All of them are there at a time, each working in its turns.
        let memory = servers.saturating_mul(needs.memory_bytes);
        return check_room(&host.workspaces, disk, memory).map_err(|problem| {
            problem.hint("ask for fewer --keys, a smaller --cache-size or fewer targets at a time")
        });
    }
    check_room(&host.workspaces, disk, needs.memory_bytes)
}

/// How many servers run at a time, wherever their data are.
pub(crate) fn by_memory(plan: &Plan, needs: &Needs) -> Residence {
    let servers = own_servers(plan);
    if servers == 0 || plan.work.is_embedded() {
        return Residence::Together;
    }
    if plan.work.has_passes() {
        return Residence::Rotated;
    }
    let all = servers.saturating_mul(needs.memory_bytes);
    match memory_available() {
        Some(available) if all > available => Residence::Rotated,
        _ => Residence::Together,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planning::tests::plan_of;
    use deltabench_model::plan::Cell;
    use deltabench_model::work::Work;

    const MB: u64 = 1 << 20;

    fn needs(cells: &[(bool, DataState)], settings: &[(&str, &str)]) -> Needs {
        let mut plan = plan_of(&["a", "a", "b"], 1);
        let like = plan.cells.remove(0);
        let cell = |(writes, state): &(bool, DataState)| Cell {
            writes: *writes,
            state: *state,
            ..like.clone()
        };
        plan.cells = cells.iter().map(cell).collect();
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        plan.settings = settings.iter().map(owned).collect();
        Needs::of(&plan, 1000 * MB).unwrap()
    }

    #[test]
    fn buffers_hold_what_is_read_and_what_is_written_and_not_what_is_only_kept() {
        let (fresh, aged) = (DataState::Fresh, DataState::Aged);
        let buffers = |cells: &[(bool, DataState)]| needs(cells, &[]).shared_buffers_mb;
        let disk = |cells: &[(bool, DataState)]| needs(cells, &[]).disk_bytes / MB;
        // 1000 * 1.1 + 128, and so on, in steps of 64.
        assert_eq!(buffers(&[(false, fresh); 5]), 1280);
        assert_eq!(buffers(&[(false, aged)]), 1600);
        assert_eq!(buffers(&[(true, fresh), (true, fresh)]), 1792);
        assert_eq!(buffers(&[(false, fresh), (true, aged)]), 3392);
        // Data, as much WAL twice, and what stays beside.
        assert_eq!(disk(&[(false, fresh)]), 1000 + 2000 + 256);
        assert_eq!(disk(&[(false, aged)]), 2300 + 4600 + 256);
        assert_eq!(disk(&[(true, fresh)]), 1000 + 1500 + 3500 + 256);
    }

    #[test]
    fn tables_and_wal_of_a_pass_are_there_once_and_not_on_each_server() {
        let setup = crate::passes::setup::tests::setup();
        let mut plan = plan_of(&["a", "a", "b"], 1);
        plan.work = Work::Insert(setup.clone());
        let needs = Needs::of(&plan, 0).unwrap();
        assert_eq!(needs.disk_bytes, DISK_BESIDE);
        let written = passes::bytes(&setup) + passes::wal_bytes(&setup);
        assert_eq!(needs.disk_once_bytes, written);
    }

    #[test]
    fn buffers_that_were_asked_for_are_taken_as_they_are() {
        let asked = [("shared_buffers", "64MB"), ("shared_buffers", "1GB")];
        let needs = needs(&[(false, DataState::Fresh)], &asked);
        assert_eq!(needs.shared_buffers_mb, 1024);
        assert_eq!(needs.memory_bytes, (1024 + 96) * MB);
    }
}
