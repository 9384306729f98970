//! The server's own counters before and after a step.

use crate::visit::{Address, statistics};
use deltabench_observe::server_stats::{StatQuery, moved, readings_apart, stat_queries};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Backends that have been told to end are waited for at most this long: a backend reports what it did when
/// it ends.
const GONE_WITHIN: Duration = Duration::from_secs(2);

/// How often they are looked for.
const LOOK: Duration = Duration::from_millis(5);

/// How often tables were vacuumed and analysed by nobody's order.
const RUNS: &str = "select coalesce(sum(autovacuum_count), 0), coalesce(sum(autoanalyze_count), 0) \
                    from pg_catalog.pg_stat_user_tables";

/// Checkpoints so far, from 17 on and before.
const CHECKPOINTS: [&str; 2] = [
    "select num_timed + num_requested from pg_catalog.pg_stat_checkpointer",
    "select checkpoints_timed + checkpoints_req from pg_catalog.pg_stat_bgwriter",
];

/// A first reading.
pub(super) struct Statistics {
    at: Instant,
    version_num: u32,
    queries: Vec<StatQuery>,
    before: BTreeMap<String, f64>,
}

impl Statistics {
    /// Reads a server before its clients connect; absent if it does not tell.
    pub(super) fn before(address: &Address, version_num: u32) -> Option<Self> {
        let mut queries = stat_queries(version_num);
        let [new, old] = CHECKPOINTS;
        let checkpoints = if version_num >= 170_000 { new } else { old };
        queries.push(StatQuery {
            sql: RUNS.to_owned(),
            keys: &[("autovacuums", 1.0), ("autoanalyzes", 1.0)],
        });
        queries.push(StatQuery {
            sql: checkpoints.to_owned(),
            keys: &[("checkpoints", 1.0)],
        });
        Some(Self {
            before: statistics(address, &queries)?,
            at: Instant::now(),
            version_num,
            queries,
        })
    }

    /// How far each counter has moved by the time that these backends have ended, as they have been told to.
    pub(super) fn moved(&self, address: &Address, backends: &[u32]) -> BTreeMap<String, f64> {
        let until = Instant::now() + GONE_WITHIN;
        while Instant::now() < until && backends.iter().any(|pid| is_there(*pid)) {
            std::thread::sleep(LOOK);
        }
        // Two readings too close to each other show the same on old versions.
        let next = self.at + readings_apart(self.version_num);
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
        let after = statistics(address, &self.queries).unwrap_or_default();
        moved(&self.before, &after)
    }
}

fn is_there(pid: u32) -> bool {
    std::path::Path::new(&format!("/proc/{pid}")).exists()
}
