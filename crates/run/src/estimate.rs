//! What a plan will take: said before anything is started.

use crate::fleet::Host;
use crate::load::{DataSet, uses_work};
use crate::passes::outlook;
use crate::residence::{Needs, Residence, by_memory, check, loaded_bytes};
use crate::rocksdb;
use deltabench_model::plan::{CellOrder, DataState, Plan, PlannedServer};
use deltabench_model::problem::Problem;
use deltabench_model::units::{count, to_f64};
use deltabench_workload::Library;
use std::collections::BTreeSet;
use std::time::Duration;

/// Rows that one server takes in a second, indexes and vacuum included: what was left of the time to a first
/// table of 32 cells (docs/measuring.md) when its block is taken off. Rough, as all of this is.
const ROWS_PER_SECOND: f64 = 50_000.0;

/// The write phase of the aged state against the load: assumed.
const AGING: f64 = 2.0;

/// Rows a second when a server's tables are made anew from their template.
///
/// Source: 0.9 s for 1M rows ([`crate::load::renew`]), and its connections and checkpoint.
const RENEWED_PER_SECOND: f64 = 800_000.0;

/// Seconds of a server's start, warm-up reads and stop: assumed.
const RESTART_SECONDS: f64 = 0.7;

/// Turns that a visit gives each server where they run one at a time.
const TURNS: usize = 3;

/// Seconds that a visit takes on each server beside warm-up and measuring, for connections, counters
/// and chores: assumed.
const VISIT_SECONDS: f64 = 0.1;

/// What a plan will take on this host, about.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// Servers, the placebo included.
    pub servers: u64,
    /// How many of them run at a time.
    pub residence: Residence,
    /// Memory of the servers that run at a time, bytes.
    pub memory_bytes: u64,
    /// Disk of all that deltabench starts, at most, bytes.
    pub disk_bytes: u64,
    /// Loading and copying.
    pub set_up: Duration,
    /// Measuring at most: looks may end cells before. One block at least, however little time is allowed.
    pub measuring: Duration,
    /// What this host lacks for it, if anything: too little memory or disk.
    pub lacks: Option<Problem>,
}

/// What `plan` will take on `host`.
///
/// Errors: workloads whose tables cannot be loaded together, shared buffers that a limit leaves no room for.
pub fn estimate(plan: &Plan, host: &Host) -> Result<Estimate, Problem> {
    let rows = match plan.work.rocksdb() {
        Some(_) => 0.0,
        None => to_f64(DataSet::of(plan, &Library::of_plan(plan)?)?.rows(plan)),
    };
    let needs = Needs::of(plan, loaded_bytes(plan)?)?;
    let residence = by_memory(plan, &needs);
    let servers = count(plan.servers.len());
    let is_own = |server: &&PlannedServer| server.installation.remote.is_none();
    let own = count(plan.servers.iter().filter(is_own).count());
    let at_once = match residence {
        Residence::Together => own,
        Residence::Rotated => 1,
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // A database of RocksDB is loaded in its block, and that is measured.
    let set_up = match plan.work.rocksdb() {
        Some(_) => 0.0,
        None => set_up_seconds(plan, rows, count(cores).min(at_once.max(1))),
    };
    let blocks = f64::from(plan.timing.blocks);
    let measuring = match plan.work.insert() {
        Some(setup) => blocks * to_f64(servers) * outlook::pass_seconds(setup),
        None if plan.work.is_embedded() => blocks * rocksdb::outlook(plan).seconds_per_block,
        None => measuring_seconds(plan, rows, residence),
    };
    let allowed = plan.timing.deadline_seconds.unwrap_or(f64::INFINITY);
    Ok(Estimate {
        servers,
        residence,
        memory_bytes: at_once.saturating_mul(needs.memory_bytes),
        disk_bytes: needs.disk_once_bytes + own.saturating_mul(needs.disk_bytes),
        set_up: Duration::from_secs_f64(set_up),
        measuring: Duration::from_secs_f64(within(measuring, plan, allowed - set_up)),
        lacks: check(plan, host, &needs).err(),
    })
}

/// Seconds of measuring in the time that is left for it: a block is never cut, and there is always one.
fn within(measuring: f64, plan: &Plan, left: f64) -> f64 {
    let block = measuring / f64::from(plan.timing.blocks.max(1));
    measuring.min(left.max(block))
}

fn set_up_seconds(plan: &Plan, rows: f64, at_once: u64) -> f64 {
    let installations: BTreeSet<_> = plan
        .servers
        .iter()
        .map(|server| &server.installation.bin_dir)
        .collect();
    let aged = plan.cells.iter().any(|cell| cell.state == DataState::Aged);
    let each = rows / ROWS_PER_SECOND * if aged { 1.0 + AGING } else { 1.0 };
    let loads = count(installations.len()).div_ceil(at_once.max(1));
    let copies = to_f64(count(plan.servers.len() - installations.len()));
    to_f64(loads) * each + copies * rows / RENEWED_PER_SECOND + 10.0
}

fn measuring_seconds(plan: &Plan, rows: f64, residence: Residence) -> f64 {
    let servers = to_f64(count(plan.servers.len()));
    let renewal = rows / RENEWED_PER_SECOND;
    // In the published order one renewal at the start of a block is for all cells.
    let renewed = match plan.order {
        CellOrder::Published if residence == Residence::Together => 1,
        _ => {
            let uses = plan.cells.iter().filter(|cell| uses_work(plan.order, cell));
            uses.count()
        }
    };
    // Servers that are there one at a time are started for each turn of a visit.
    let starts = match residence {
        Residence::Together => 1,
        Residence::Rotated => plan.cells.len() * TURNS,
    };
    let visit = plan.timing.visit_seconds + plan.timing.warmup_seconds + VISIT_SECONDS;
    let block = to_f64(count(plan.cells.len())) * visit
        + to_f64(count(renewed)) * renewal
        + to_f64(count(starts)) * RESTART_SECONDS;
    f64::from(plan.timing.blocks) * servers * block
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planning::tests::plan_of;

    fn rows(plan: &Plan) -> f64 {
        to_f64(plan.data.rows) * f64::from(plan.data.tables)
    }

    #[test]
    fn time_grows_with_servers_cells_and_blocks_and_writes_take_longer() {
        let together = |plan: &Plan| measuring_seconds(plan, rows(plan), Residence::Together);
        let seconds = |names: &[&str], cells: u32| together(&plan_of(names, cells));
        let three = seconds(&["a", "a", "b"], 2);
        assert!((seconds(&["a", "a", "b", "c", "d", "e"], 2) / three - 2.0).abs() < 1e-9);
        assert!(seconds(&["a", "a", "b"], 4) > 1.5 * three);
        let mut plan = plan_of(&["a", "a", "b"], 2);
        plan.timing.blocks *= 2;
        assert!((together(&plan) / three - 2.0).abs() < 1e-9);
        assert!(measuring_seconds(&plan, rows(&plan), Residence::Rotated) > 1.2 * together(&plan));
        plan.cells[0].writes = true;
        plan.data.rows = 10_000_000;
        assert!(together(&plan) > 3.0 * three);
        let drawn = together(&plan);
        plan.cells[1].writes = true;
        plan.order = CellOrder::Published;
        assert!((together(&plan) - drawn).abs() < 1e-9);
    }

    #[test]
    fn a_budget_cuts_the_time_but_not_the_first_block() {
        let mut plan = plan_of(&["a", "a", "b"], 1);
        plan.timing.blocks = 4;
        assert!((within(400.0, &plan, f64::INFINITY) - 400.0).abs() < 1e-9);
        assert!((within(400.0, &plan, 250.0) - 250.0).abs() < 1e-9);
        assert!((within(400.0, &plan, -5.0) - 100.0).abs() < 1e-9);
    }

    #[test]
    fn an_installation_is_loaded_once_and_copied() {
        let mut plan = plan_of(&["a", "a", "b"], 1);
        plan.data.rows = 1_000_000;
        let two = set_up_seconds(&plan, rows(&plan), 2);
        assert!((20.0..40.0).contains(&two), "{two}");
        assert!(set_up_seconds(&plan, rows(&plan), 1) > two + 15.0);
    }
}
