//! What workloads take: room on the host, and time.

use deltabench_model::plan::{CacheState, Cell, CellOrder, DataState, Plan};
use deltabench_model::problem::Problem;
use deltabench_model::units::{count, index, to_f64, to_u64};
use deltabench_proc::writeback::Writeback;
use deltabench_run::load::{DataSet, Making, making, states, states_read, uses_work};
use deltabench_run::occupancy::{AtOnce, DISK_BESIDE, Needs, Occupancy, PlannedTime, wal_max};
use deltabench_run::visit::{ROUNDS_MIN, TURNS};
use std::collections::BTreeSet;

/// Size of a state's tables against freshly loaded ones.
///
/// Source: the largest of 1.25 (9.6.24), 1.15 (14.24, 17.11, 18.6) after
/// [`deltabench_run::aging::WRITE_PHASE`] on a million rows, rounded up.
fn growth(state: DataState) -> f64 {
    match state {
        DataState::Fresh => 1.0,
        DataState::Aged => 1.3,
    }
}

/// What cells that write may add to their tables before they are made anew.
const WRITTEN: f64 = 1.5;

/// Rows that one server takes in a second, indexes and vacuum included: what was left of the time to a first
/// table of 32 cells (docs/error-rates.md#on-real-servers) when its block is taken off. Rough, as all of this
/// is.
const ROWS_PER_SECOND: f64 = 50_000.0;

/// The write phase of the aged state against the load: assumed.
const AGING: f64 = 2.0;

/// Rows a second when a server's tables are made anew from their template.
///
/// Source: 3.1 s for 1M rows on three servers, two at a time (docs/decisions/0059).
const RENEWED_PER_SECOND: f64 = 650_000.0;

/// The same on each core where no disk sees them.
///
/// Source: 1.3 s for 1M rows on three servers, all at the same time on two cores (docs/decisions/0066).
const CACHED_PER_SECOND: f64 = 1_150_000.0;

/// Seconds of a server's start, warm-up reads and stop: assumed.
const RESTART_SECONDS: f64 = 0.7;

/// Bytes a second in which a server that has started reads its tables again: an NVMe disk. Assumed; a slower
/// disk takes longer.
const WARMED_PER_SECOND: f64 = 1e9;

/// Seconds that a visit takes on each server beside warm-up and measuring, for connections, their own
/// warm-up, counters and chores: 0.5 s for three servers of 22 cells that read, on two cores.
const VISIT_SECONDS: f64 = 0.16;

/// How many times as long as asked visits warm up until all servers are steady.
///
/// Source: 1.24, the mean of 96 visits of README's command that warmed up for 10 rounds at least. Not
/// measured under limits and with longer slices.
const WARMED_FOR: f64 = 1.25;

/// Bytes that tables grow by in a second without a break: more than was seen of any server here (order entry
/// by functions, two cores: 4 MB, WAL included).
const GROWN_PER_SECOND: f64 = 8e6;

/// Turns that a visit gives each server where they run one at a time.
fn turns(plan: &Plan) -> usize {
    if plan.timing.sustained {
        1
    } else {
        index(u64::from(TURNS))
    }
}

/// What the tables of a pass grow by.
fn grown(plan: &Plan) -> u64 {
    to_u64(plan.timing.visit_seconds * GROWN_PER_SECOND)
}

/// What each of the plan's servers takes that is loaded with so many bytes.
///
/// Errors: shared buffers that do not fit under the plan's memory limit.
pub(crate) fn needs_of(plan: &Plan, data: u64) -> Result<Needs, Problem> {
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
    // Full pages and rows of a load and of what is written, until a checkpoint lets go of them.
    let wal = (kept * 2 + written).min(wal_max(plan));
    let (written, wal) = match plan.timing.sustained {
        // Segments are kept from pass to pass, as far as the settings of checkpoints go.
        true => (
            written + grown(plan),
            (wal + grown(plan) * u64::from(plan.timing.blocks)).min(wal_max(plan)),
        ),
        false => (written, wal),
    };
    Ok(Needs {
        disk_bytes: kept + written + wal + DISK_BESIDE,
        at_once: match plan.timing.sustained || plan.timing.rotated {
            true => AtOnce::One,
            false => AtOnce::AsFits,
        },
        ..Needs::holding(plan, read + written)?
    })
}

/// How long a plan takes, about, whose servers have these tables.
pub(crate) fn time_of(plan: &Plan, tables: &DataSet, held: Occupancy, at_once: u64) -> PlannedTime {
    let rows = to_f64(tables.rows(plan));
    let renewal = renewal_seconds(plan, tables, held, at_once);
    PlannedTime {
        set_up: set_up_seconds(plan, rows, at_once),
        measuring: measuring_seconds(plan, renewal, held) + warming_seconds(plan, tables, held),
    }
}

/// Seconds in which the tables of a cell that writes are made anew, for each server.
fn renewal_seconds(plan: &Plan, tables: &DataSet, held: Occupancy, at_once: u64) -> f64 {
    let servers = count(plan.servers.len());
    let bytes = tables.bytes(plan).unwrap_or(u64::MAX);
    let mut written = plan.cells.iter().filter(|cell| cell.writes);
    let making = written
        .next()
        .map(|cell| making(plan, cell, bytes, Writeback::read()));
    let (turns, rate) = match (held, making) {
        (Occupancy::Rotated, _) => (to_f64(servers), RENEWED_PER_SECOND),
        // All at the same time share the cores.
        (Occupancy::Together, Some(Making::Cached)) => (
            to_f64(servers) / to_f64(at_once.clamp(1, servers)),
            CACHED_PER_SECOND,
        ),
        // As many at a time as there are cores.
        (Occupancy::Together, _) => (to_f64(servers.div_ceil(at_once.max(1))), RENEWED_PER_SECOND),
    };
    turns / to_f64(servers) * to_f64(tables.rows(plan)) / rate
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

/// Seconds in which servers that run one at a time read their tables, each time that one has started: what
/// another server has read meanwhile takes the place of its pages.
fn warming_seconds(plan: &Plan, tables: &DataSet, held: Occupancy) -> f64 {
    if held == Occupancy::Together || plan.cache == CacheState::Cold {
        return 0.0;
    }
    let bytes = to_f64(tables.bytes(plan).unwrap_or(0));
    let read: f64 = states_read(plan)
        .iter()
        .map(|state| bytes * growth(*state))
        .sum();
    let turns = turns(plan);
    let of_cell = |cell: &Cell| match uses_work(plan.order, cell) {
        // The first time they are made anew.
        true => read + bytes * growth(cell.state) * to_f64(count(turns - 1)) / to_f64(count(turns)),
        false => read,
    };
    let block: f64 = plan.cells.iter().map(of_cell).sum::<f64>() * to_f64(count(turns));
    let servers = to_f64(count(plan.servers.len()));
    f64::from(plan.timing.blocks) * servers * block / WARMED_PER_SECOND
}

fn measuring_seconds(plan: &Plan, renewal: f64, held: Occupancy) -> f64 {
    let servers = to_f64(count(plan.servers.len()));
    // In the published order one renewal at the start of a block is for all cells.
    let renewed = match plan.order {
        CellOrder::Published if held == Occupancy::Together => 1,
        _ => {
            let uses = plan.cells.iter().filter(|cell| uses_work(plan.order, cell));
            uses.count()
        }
    };
    // Servers that are there one at a time are started for each turn of a visit.
    let starts = match held {
        Occupancy::Together => 1,
        Occupancy::Rotated => plan.cells.len() * turns(plan),
    };
    let sampled = plan
        .observing
        .profile
        .map_or(0, |profile| profile.milliseconds);
    // A warm-up that was chosen is that of each turn.
    let warmups = match held {
        Occupancy::Rotated if plan.timing.warmup_chosen => count(turns(plan)),
        _ => 1,
    };
    let watched = match (held, plan.timing.warmup_chosen) {
        (Occupancy::Together, false) => WARMED_FOR,
        _ => 1.0,
    };
    let beside = to_f64(warmups) * watched * plan.timing.warmup_seconds
        + VISIT_SECONDS
        + f64::from(sampled) / 1e3;
    // However long its slices are, a visit has so many; a pass is as long as it was asked to be.
    let least = match plan.timing.sustained {
        true => 0.0,
        false => to_f64(ROUNDS_MIN) * f64::from(plan.timing.slice_ms) / 1e3,
    };
    let visits = plan
        .cells
        .iter()
        .map(|cell| plan.timing.visit_of(cell).max(least) + beside);
    let block = visits.sum::<f64>()
        + to_f64(count(renewed)) * renewal
        + to_f64(count(starts)) * RESTART_SECONDS;
    f64::from(plan.timing.blocks) * servers * block
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::plan_of;

    const MB: u64 = 1 << 20;

    fn rows(plan: &Plan) -> f64 {
        to_f64(plan.data.rows) * f64::from(plan.data.tables)
    }

    /// On one core.
    fn renewal(plan: &Plan, held: Occupancy) -> f64 {
        let library = deltabench_workload::Library::builtin().unwrap();
        let tables = DataSet::of(plan, &library, None).unwrap();
        renewal_seconds(plan, &tables, held, 1)
    }

    #[test]
    fn time_grows_with_servers_cells_and_blocks_and_writes_take_longer() {
        let of = |plan: &Plan, held| measuring_seconds(plan, renewal(plan, held), held);
        let together = |plan: &Plan| of(plan, Occupancy::Together);
        let seconds = |names: &[&str], cells: u32| together(&plan_of(names, cells));
        let three = seconds(&["a", "a", "b"], 2);
        assert!((seconds(&["a", "a", "b", "c", "d", "e"], 2) / three - 2.0).abs() < 1e-9);
        assert!(seconds(&["a", "a", "b"], 4) > 1.5 * three);
        let mut plan = plan_of(&["a", "a", "b"], 2);
        plan.timing.blocks *= 2;
        assert!((together(&plan) / three - 2.0).abs() < 1e-9);
        assert!(of(&plan, Occupancy::Rotated) > 1.2 * together(&plan));
        plan.cells[0].writes = true;
        plan.data.rows = 10_000_000;
        assert!(together(&plan) > 3.0 * three);
        let drawn = together(&plan);
        plan.cells[1].writes = true;
        plan.order = CellOrder::Published;
        assert!((together(&plan) - drawn).abs() < 1e-9);
    }

    #[test]
    fn visits_to_cells_that_write_have_a_length_of_their_own() {
        let mut plan = plan_of(&["a", "a", "b"], 2);
        plan.cells[0].writes = true;
        let whole = |plan: &Plan| measuring_seconds(plan, 0.5, Occupancy::Together);
        let before = whole(&plan);
        plan.timing.write_seconds = Some(plan.timing.visit_seconds + 10.0);
        let more = f64::from(plan.timing.blocks) * 3.0 * 10.0;
        assert!((whole(&plan) - before - more).abs() < 1e-9);
    }

    #[test]
    fn a_visit_has_a_least_number_of_slices_however_long_they_are() {
        let mut plan = plan_of(&["a", "a", "b"], 1);
        let whole = |plan: &Plan| measuring_seconds(plan, 0.5, Occupancy::Together);
        let before = whole(&plan);
        plan.timing.slice_ms = 60_000;
        let more = 300.0 - plan.timing.visit_seconds;
        let visits = f64::from(plan.timing.blocks) * 3.0;
        assert!((whole(&plan) - before - visits * more).abs() < 1e-6);
    }

    #[test]
    fn servers_that_run_one_at_a_time_read_their_tables_at_each_start() {
        let mut plan = plan_of(&["a", "a", "b"], 2);
        plan.data.rows = 50_000_000;
        let library = deltabench_workload::Library::builtin().unwrap();
        let tables = DataSet::of(&plan, &library, None).unwrap();
        assert!(warming_seconds(&plan, &tables, Occupancy::Together).abs() < 1e-9);
        // Two cells, three servers, three starts in each block, 13 GB at 1 GB a second.
        let block =
            warming_seconds(&plan, &tables, Occupancy::Rotated) / f64::from(plan.timing.blocks);
        assert!((200.0..280.0).contains(&block), "{block}");
    }

    #[test]
    fn clients_that_reconnect_have_a_thread_each() {
        let mut plan = plan_of(&["a", "b"], 1);
        plan.cells[0].clients = 4;
        assert_eq!(plan.threads(&plan.cells[0]), 1);
        plan.cells[0].reconnects = true;
        assert_eq!(plan.threads(&plan.cells[0]), 4);
    }

    #[test]
    fn an_installation_is_loaded_once_and_copied() {
        let mut plan = plan_of(&["a", "a", "b"], 1);
        plan.data.rows = 1_000_000;
        let two = set_up_seconds(&plan, rows(&plan), 2);
        assert!((20.0..40.0).contains(&two), "{two}");
        assert!(set_up_seconds(&plan, rows(&plan), 1) > two + 15.0);
    }

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
        needs_of(&plan, 1000 * MB).unwrap()
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
    fn passes_without_a_break_keep_what_they_write_and_run_alone() {
        let mut plan = plan_of(&["a", "a", "b"], 1);
        plan.cells[0].writes = true;
        plan.timing.visit_seconds = 100.0;
        plan.timing.blocks = 6;
        let in_turn = needs_of(&plan, 100 * MB).unwrap();
        plan.timing.sustained = true;
        let passes = needs_of(&plan, 100 * MB).unwrap();
        assert_eq!(
            (in_turn.at_once, passes.at_once),
            (AtOnce::AsFits, AtOnce::One)
        );
        // 800 MB of tables, and six times as much WAL.
        let more = (passes.disk_bytes - in_turn.disk_bytes) / 1_000_000;
        assert!((5_590..=5_610).contains(&more), "{more}");
    }

    #[test]
    fn each_server_is_first_as_often_as_the_others_in_passes() {
        use deltabench_model::plan::CellId;
        use deltabench_run::schedule::VisitSchedule;
        let mut plan = plan_of(&["a", "a", "b"], 1);
        plan.timing.sustained = true;
        let first = |block| {
            let cell = &plan.cells[0];
            VisitSchedule::of(&plan, block, CellId(0), cell, &[]).rotation[0]
        };
        for group in 0..8 {
            let all: BTreeSet<_> = (3 * group..3 * group + 3).map(first).collect();
            assert_eq!(all.len(), 3, "blocks of group {group}");
        }
    }

    #[test]
    fn buffers_that_were_asked_for_are_taken_as_they_are() {
        let asked = [("shared_buffers", "64MB"), ("shared_buffers", "1GB")];
        let needs = needs(&[(false, DataState::Fresh)], &asked);
        assert_eq!(needs.shared_buffers_mb, 1024);
        assert_eq!(needs.memory_bytes, (1024 + 96) * MB);
    }
}
