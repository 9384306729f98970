//! Tables of cells that write, in the page cache only.
//!
//! A copy that is synced takes most of its time for the disk. It is dropped a few seconds later, and then
//! the kernel forgets pages that it has not written yet. So a copy is not synced where nothing will write
//! it before it is dropped: no checkpoint, and not the kernel by itself.

use crate::admin::{query, run, text};
use deltabench_driver::admin::Client;
use deltabench_model::plan::{CacheState, Cell, CellId, CellOrder, Limits, Plan};
use deltabench_model::problem::Problem;
use deltabench_model::units::{count, to_f64};
use deltabench_proc::mounts::Mount;
use deltabench_proc::writeback::Writeback;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How many times as long as asked a visit may warm up, new connections included.
const WARMED_FOR: f64 = 4.5;

/// Seconds of a visit beside its slices, with the time that making the tables takes.
const BESIDE_SECONDS: f64 = 3.0;

/// What tables may have grown by at the end of a visit, and have by ageing.
const GROWN: u64 = 2;

/// File systems that allocate space for pages when they write them: syncing the WAL does not sync others.
const DELAYING: [&str; 2] = ["ext4", "xfs"];

/// A server has its new setting within this time.
const RELOADED_WITHIN: Duration = Duration::from_secs(20);

/// How often it is asked.
const LOOK: Duration = Duration::from_millis(1);

/// How tables are made for a cell that writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Making {
    /// They are on disk before the visit.
    Synced,
    /// They are in the page cache, and no disk sees them.
    Cached,
}

/// How a plan's servers make tables for a cell that take so many bytes when loaded, all at the same time.
///
/// Only as the steady profile has it: no checkpoint comes in a visit, and nothing is limited.
pub fn making(plan: &Plan, cell: &Cell, bytes: u64, kernel: Option<Writeback>) -> Making {
    let Some(kernel) = kernel else {
        return Making::Synced;
    };
    let timing = &plan.timing;
    let plain = plan.order == CellOrder::Drawn
        && cell.rate.is_none()
        && plan.cache == CacheState::AsIs
        && plan.limits == Limits::default()
        && plan.observing.profile.is_none()
        && !timing.sustained
        && !timing.rotated;
    let steady = plan.servers.iter().all(|server| {
        let asked = plan.settings.iter().chain(&server.settings);
        server.installation.remote.is_none()
            && server.configuration.is_none()
            && !asked.into_iter().any(|(name, _)| moves_checkpoints(name))
    });
    let servers = count(plan.servers.len());
    let each = timing.visit_of(cell) + WARMED_FOR * timing.warmup_seconds;
    let seconds = BESIDE_SECONDS + to_f64(servers) * each;
    let fits = bytes.saturating_mul(GROWN * servers) <= kernel.background_bytes;
    if plain && steady && fits && seconds <= kernel.expires.as_secs_f64() / 2.0 {
        Making::Cached
    } else {
        Making::Synced
    }
}

/// Whether a file system writes no page of another file when the WAL is synced.
pub(crate) fn delays(mount: &Mount) -> bool {
    let at_once = |option: &str| ["nodelalloc", "data=journal"].contains(&option);
    DELAYING.contains(&mount.kind.as_str()) && !mount.options.split(',').any(at_once)
}

/// Which visits to cells that write were short, and whose tables are in the page cache only.
#[derive(Debug, Default)]
pub(crate) struct ShortVisits {
    /// The longest visit to each cell, from before its tables were made.
    longest: BTreeMap<CellId, Duration>,
    /// The visit under way, since when, and how its tables were made.
    now: Option<(CellId, Instant, Making)>,
}

impl ShortVisits {
    /// A visit begins, for which tables could be made so; how they are to be made. On disk if no visit to the
    /// cell has shown yet that it is short.
    pub(crate) fn begin(
        &mut self,
        cell: CellId,
        making: Making,
        kernel: Option<Writeback>,
    ) -> Making {
        let longest = self.longest.get(&cell).zip(kernel);
        let short = longest.is_some_and(|(longest, kernel)| *longest <= kernel.expires / 2);
        let making = if short { making } else { Making::Synced };
        self.now = Some((cell, Instant::now(), making));
        making
    }

    /// A visit went through; whether its tables are in the page cache only.
    pub(crate) fn end(&mut self) -> bool {
        let Some((cell, began, making)) = self.now.take() else {
            return false;
        };
        let longest = self.longest.entry(cell).or_default();
        *longest = began.elapsed().max(*longest);
        making == Making::Cached
    }
}

fn moves_checkpoints(setting: &str) -> bool {
    let setting = setting.to_ascii_lowercase();
    ["checkpoint_", "max_wal_size", "fsync"]
        .iter()
        .any(|start| setting.starts_with(start))
}

/// Does work on a server of ours that does not wait for the disk meanwhile.
///
/// Errors: those of the work; a server that does not take the setting.
pub(super) fn unsynced(
    client: &mut Client,
    work: impl FnOnce(&mut Client) -> Result<(), Problem>,
) -> Result<(), Problem> {
    let before = fsync(client)?;
    run(client, "ALTER SYSTEM SET fsync = off")?;
    reloaded(client, "off")?;
    let done = work(client);
    run(client, "ALTER SYSTEM RESET fsync")?;
    reloaded(client, &before).and(done)
}

fn fsync(client: &mut Client) -> Result<String, Problem> {
    let rows = query(client, "SHOW fsync")?;
    Ok(rows.into_iter().next().map(text).unwrap_or_default())
}

/// Waits until a server has read its settings again: new sessions have what this one has.
fn reloaded(client: &mut Client, fsync_is: &str) -> Result<(), Problem> {
    run(client, "SELECT pg_reload_conf()")?;
    let until = Instant::now() + RELOADED_WITHIN;
    while fsync(client)? != fsync_is {
        if Instant::now() > until {
            return Err(Problem::new("a server does not read its settings again")
                .detail(format!("fsync is not {fsync_is} after {RELOADED_WITHIN:?}")));
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planning::tests::plan_of;

    const MB: u64 = 1 << 20;

    fn made(change: impl FnOnce(&mut Plan), megabytes: u64) -> Making {
        let mut plan = plan_of(&["a", "a", "b"], 1);
        plan.timing.visit_seconds = 0.6;
        plan.timing.warmup_seconds = 0.24;
        change(&mut plan);
        let kernel = Writeback {
            background_bytes: 2000 * MB,
            expires: Duration::from_secs(30),
        };
        let cell = plan.cells.first().unwrap();
        making(&plan, cell, megabytes * MB, Some(kernel))
    }

    #[test]
    fn tables_stay_in_the_page_cache_where_nothing_writes_them_before_they_are_dropped() {
        assert_eq!(made(|_| (), 300), Making::Cached);
        assert_eq!(
            made(|_| (), 340),
            Making::Synced,
            "more than the kernel keeps"
        );
        let long = |plan: &mut Plan| plan.timing.visit_seconds = 5.0;
        assert_eq!(
            made(long, 300),
            Making::Synced,
            "longer than the kernel waits"
        );
        let asked = |plan: &mut Plan| plan.settings.push(("Max_wal_size".into(), "1GB".into()));
        assert_eq!(made(asked, 300), Making::Synced, "a checkpoint may come");
        let own = |plan: &mut Plan| {
            let setting = ("checkpoint_timeout".into(), "30s".into());
            plan.servers.last_mut().unwrap().settings.push(setting);
        };
        assert_eq!(made(own, 300), Making::Synced, "on one server");
        let paced = |plan: &mut Plan| plan.cells.iter_mut().for_each(|cell| cell.rate = Some(9.0));
        assert_eq!(
            made(paced, 300),
            Making::Synced,
            "slices with a schedule are long"
        );
        let other = |plan: &mut Plan| plan.settings.push(("work_mem".into(), "1GB".into()));
        assert_eq!(made(other, 300), Making::Cached);
        for change in [
            |plan: &mut Plan| plan.order = CellOrder::Published,
            |plan: &mut Plan| plan.cache = CacheState::Cold,
            |plan: &mut Plan| plan.cache = CacheState::Prewarmed,
            |plan: &mut Plan| plan.limits.memory_bytes = Some(300 * MB),
            |plan: &mut Plan| plan.timing.sustained = true,
            |plan: &mut Plan| plan.timing.rotated = true,
        ] {
            assert_eq!(made(change, 300), Making::Synced);
        }
        let plan = plan_of(&["a", "a", "b"], 1);
        let cell = plan.cells.first().unwrap();
        assert_eq!(making(&plan, cell, 0, None), Making::Synced, "nobody knows");
    }

    #[test]
    fn only_file_systems_that_are_known_to_delay_are_trusted() {
        let of = |kind: &str, options: &str| {
            delays(&Mount {
                kind: kind.to_owned(),
                source: "/dev/sda1".to_owned(),
                options: options.to_owned(),
            })
        };
        assert!(of("ext4", "rw,discard") && of("xfs", "rw"));
        assert!(!of("zfs", "rw") && !of("btrfs", "rw") && !of("overlay", "rw"));
        assert!(!of("ext4", "rw,nodelalloc") && !of("ext4", "rw,data=journal"));
    }

    #[test]
    fn a_cell_is_trusted_after_a_visit_that_was_short() {
        let kernel = Writeback {
            background_bytes: MB,
            expires: Duration::from_secs(30),
        };
        let (one, other) = (CellId(1), CellId(2));
        let mut cached = ShortVisits::default();
        let begin =
            |cached: &mut ShortVisits, cell| cached.begin(cell, Making::Cached, Some(kernel));
        assert!(!cached.end(), "none is under way");
        assert_eq!(begin(&mut cached, one), Making::Synced, "nobody knows");
        assert!(!cached.end());
        assert_eq!(begin(&mut cached, one), Making::Cached);
        assert!(cached.end());
        assert!(!cached.end(), "told once");
        assert_eq!(begin(&mut cached, other), Making::Synced);
        cached.longest.insert(one, Duration::from_secs(16));
        assert_eq!(begin(&mut cached, one), Making::Synced, "it took too long");
        let no = cached.begin(other, Making::Synced, Some(kernel));
        assert_eq!(no, Making::Synced);
    }
}
