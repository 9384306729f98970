//! How long a block takes and what it needs, said before it is begun.

use super::chain::{rounds_of, tried_seconds};
use deltabench_model::plan::Plan;
use deltabench_model::units::{count, to_f64, to_u64};
use deltabench_model::work::rocksdb::{RocksdbSetup, RocksdbStep};

// Rates of one target are assumed: about half of what two cores did with nothing else to do.

/// Keys loaded in order in a second, without a write-ahead log.
const LOADED_PER_SECOND: f64 = 300_000.0;

/// Random keys overwritten in a second.
const OVERWRITTEN_PER_SECOND: f64 = 60_000.0;

/// Bytes of keys and values that are moved down the tree in a second.
const COMPACTED_PER_SECOND: f64 = 60.0 * 1_048_576.0;

/// Seconds of a new process, an empty database and its end.
const START_SECONDS: f64 = 0.5;

/// Seconds that `waitforcompaction` of a `db_bench` takes with nothing to wait for: it sleeps first.
const SLEEP_SECONDS: f64 = 5.0;

/// Turns that find the work of a turn, and the one that is counted, against one that is measured.
const CALIBRATION_TURNS: f64 = 5.0;

/// Turns that find the work of a step that writes: two of the wanted length, and those that come before.
const WRITE_TRIES: f64 = 2.5;

/// Room that a database takes against its keys and values: files that compactions have read are kept until
/// what they wrote is in place, and overwritten keys until then.
const SPACE: f64 = 2.5;

/// Beside them: write-ahead log and files being written.
const DISK_BESIDE: u64 = 256 << 20;

/// Memtables at most: eight of 16 MB.
///
/// Source: docs/sources/rocksdb-db-bench.md#flags, `max_write_buffer_number`, `write_buffer_size`.
const MEMTABLES: u64 = 8 * (16 << 20);

/// What a process has beside cache and memtables: open files with their indexes and filters, threads.
const MEMORY_BESIDE: u64 = 64 << 20;

/// What a plan takes, all targets together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RocksdbOutlook {
    /// Seconds of one block, about.
    pub seconds_per_block: f64,
    /// Disk at most, bytes: that of one block, since databases go at its end.
    pub disk_bytes: u64,
    /// Memory at most, bytes, without the page cache.
    pub memory_bytes: u64,
}

/// What `plan` takes, about; nothing for a plan without RocksDB.
pub fn outlook(plan: &Plan) -> RocksdbOutlook {
    let Some(setup) = plan.work.rocksdb() else {
        return RocksdbOutlook {
            seconds_per_block: 0.0,
            disk_bytes: 0,
            memory_bytes: 0,
        };
    };
    let targets = count(plan.servers.len());
    let chain: f64 = setup
        .chain()
        .iter()
        .map(|link| step_seconds(plan, setup, link.step))
        .sum();
    // A cache is not touched before there is something to hold in it.
    let cache = setup.cache_bytes.min(setup.raw_bytes().saturating_mul(2));
    let own = cache + MEMTABLES + MEMORY_BESIDE;
    // With a limit, memory is filled with page cache up to it.
    let memory = plan.limits.memory_bytes.unwrap_or(own);
    let disk = to_u64(to_f64(setup.raw_bytes()) * SPACE) + DISK_BESIDE;
    RocksdbOutlook {
        seconds_per_block: to_f64(targets) * (chain + START_SECONDS),
        disk_bytes: targets.saturating_mul(disk),
        memory_bytes: targets.saturating_mul(memory),
    }
}

/// Seconds of a step on one target.
fn step_seconds(plan: &Plan, setup: &RocksdbSetup, step: RocksdbStep) -> f64 {
    let tried = tried_seconds(plan, setup, step);
    let timed = match (plan.has_whole_steps(), step.writes()) {
        (true, _) => f64::from(setup.seconds),
        (false, true) => f64::from(setup.seconds) + WRITE_TRIES * tried,
        (false, false) => {
            let turns = f64::from(rounds_of(plan, setup, step, tried)) + CALIBRATION_TURNS;
            turns * tried + plan.timing.warmup_seconds
        }
    };
    let alone = match plan.has_whole_steps() {
        true => START_SECONDS + SLEEP_SECONDS * waits(step),
        false => 0.0,
    };
    alone + work_seconds(step, setup, timed)
}

/// How often the published command line of a step waits for compactions.
fn waits(step: RocksdbStep) -> f64 {
    match step {
        RocksdbStep::Drain | RocksdbStep::Overwriteandwait => 1.0,
        RocksdbStep::FlushMtL0 => 2.0,
        _ => 0.0,
    }
}

/// Seconds of the work of a step, of which so many are `timed`.
fn work_seconds(step: RocksdbStep, setup: &RocksdbSetup, timed: f64) -> f64 {
    let keys = to_f64(setup.keys);
    let raw = to_f64(setup.raw_bytes());
    match step {
        RocksdbStep::Fillseq => keys / LOADED_PER_SECOND,
        RocksdbStep::Drain => raw / COMPACTED_PER_SECOND / 2.0,
        RocksdbStep::Overwritesome => keys / 10.0 / OVERWRITTEN_PER_SECOND,
        RocksdbStep::FlushMtL0 => raw / COMPACTED_PER_SECOND / 2.0,
        // Writes owe about their own time, which is waited for after each try and at the end.
        RocksdbStep::Overwriteandwait => 2.0 * timed,
        _ => timed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::rocksdb_plan;
    use deltabench_model::work::Work;

    fn setup_of(plan: &mut Plan) -> &mut RocksdbSetup {
        match &mut plan.work {
            Work::Rocksdb(setup) => setup,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn time_and_room_grow_with_targets_keys_and_seconds() {
        let plan = rocksdb_plan(&["a", "a", "b"]);
        let three = outlook(&plan);
        let six = outlook(&rocksdb_plan(&["a", "a", "b", "c", "d", "e"]));
        assert!((six.seconds_per_block / three.seconds_per_block - 2.0).abs() < 1e-9);
        assert_eq!(six.disk_bytes, 2 * three.disk_bytes);
        let mut longer = plan.clone();
        setup_of(&mut longer).seconds *= 2;
        // Three steps that read take 5 s more, the one that writes 5 s and half as much to find its work,
        // with as long a wait.
        let more = outlook(&longer).seconds_per_block - three.seconds_per_block;
        assert!((more - 3.0 * (15.0 + 15.0)).abs() < 1.0, "{more}");
        let mut larger = plan.clone();
        setup_of(&mut larger).keys *= 10;
        assert!(outlook(&larger).disk_bytes > three.disk_bytes);
        let mut limited = plan;
        limited.limits.memory_bytes = Some(1 << 30);
        assert_eq!(outlook(&limited).memory_bytes, 3 << 30);
    }
}
