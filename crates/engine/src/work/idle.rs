//! Waiting until a database owes nothing, in the same way on all versions.
//!
//! Source: `waitforcompaction` and `compact0` of `db_bench` (docs/sources/rocksdb-db-bench.md#steps); the C
//! interface has neither in all versions, so properties are looked at instead, and level 0 is emptied by its
//! own trigger.

use crate::library::Database;
use std::time::{Duration, Instant};

/// Time between two looks: short beside the shortest compaction.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// A compaction that is called for and that nobody has started for so long is not going to be: some versions
/// go on calling for one that they cannot pick.
const NOBODY_COMES: Duration = Duration::from_secs(10);

/// Flushes and compactions that run now.
pub fn jobs(database: &Database) -> u64 {
    let number = |name: &str| database.number(name).unwrap_or(0);
    number("rocksdb.num-running-compactions") + number("rocksdb.num-running-flushes")
}

/// Whether one is called for.
fn is_called_for(database: &Database) -> bool {
    let is = |name: &str| database.number(name).unwrap_or(0) > 0;
    is("rocksdb.mem-table-flush-pending") || is("rocksdb.compaction-pending")
}

/// Waits until nothing is left to flush or to compact; how long jobs were seen to run, from the call on.
///
/// Errors: writes in the background have failed, in number.
pub fn wait(database: &Database) -> Result<Duration, String> {
    let waited = until(database, |calls| !calls);
    match database.number("rocksdb.background-errors") {
        Some(errors) if errors > 0 => Err(format!("{errors} flushes or compactions have failed")),
        _ => Ok(waited.until_last_job),
    }
}

/// What became of waiting.
struct Waited {
    /// Whether it was enough, or nobody came.
    enough: bool,
    /// From its start to when the last job was seen.
    until_last_job: Duration,
}

/// Waits until no job runs and `is_enough` agrees, told whether one is called for.
fn until(database: &Database, mut is_enough: impl FnMut(bool) -> bool) -> Waited {
    let began = Instant::now();
    let mut last_job = began;
    let waited = |enough, last_job: Instant| Waited {
        enough,
        until_last_job: last_job - began,
    };
    loop {
        // Asked first: a job that ends calls for others before it is no longer counted.
        let running = jobs(database);
        let calls = is_called_for(database);
        if running > 0 {
            last_job = Instant::now();
        } else if is_enough(calls) {
            return waited(true, last_job);
        } else if last_job.elapsed() > NOBODY_COMES {
            return waited(false, last_job);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Files of level 0 now.
pub fn level_0_files(database: &Database) -> Option<u64> {
    database
        .property("rocksdb.num-files-at-level0")?
        .parse()
        .ok()
}

/// Flushes, moves all of level 0 down and waits until nothing is left to do.
///
/// Errors: the library's words; level 0 stays as it is, as it does where compactions are switched off.
pub fn empty_level_0(database: &Database, trigger: &str, usual: &str) -> Result<(), String> {
    database.flush()?;
    wait(database)?;
    database.set_option(trigger, "1")?;
    let waited = until(database, |_| level_0_files(database) == Some(0));
    database.set_option(trigger, usual)?;
    if !waited.enough {
        let left = level_0_files(database).unwrap_or(0);
        return Err(format!(
            "level 0 keeps its files: {left} are left, and nothing compacts them"
        ));
    }
    wait(database).map(|_| ())
}
