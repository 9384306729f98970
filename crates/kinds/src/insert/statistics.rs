//! The server's own counters before and after a step.

use deltabench_model::units::{count, to_f64};
use deltabench_observe::server_stats::{StatQuery, moved, readings_apart, stat_queries};
use deltabench_proc::has_ended;
use deltabench_run::admin::{connect, query, text};
use deltabench_run::visit::{Address, statistics};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Backends that have been told to end are waited for at most this long: a backend reports what it did when
/// it ends.
const GONE_WITHIN: Duration = Duration::from_secs(2);

/// Longest wait for an answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// How often they are looked for.
const LOOK: Duration = Duration::from_millis(5);

/// How often tables were vacuumed and analysed by nobody's order.
const RUNS: &str = "select coalesce(sum(autovacuum_count), 0), coalesce(sum(autoanalyze_count), 0) \
                    from pg_catalog.pg_stat_user_tables";

/// Whether a server logs its checkpoints: that counts those that have ended, on every version. The counters
/// before 18 have only those that were begun or asked for.
const LOGGED: &str = "select pg_catalog.current_setting('log_checkpoints')";

/// What stands in the log when a checkpoint has ended.
const ENDED: &str = "LOG:  checkpoint complete: ";

/// A first reading.
pub(super) struct Statistics {
    at: Instant,
    version_num: u32,
    queries: Vec<StatQuery>,
    before: BTreeMap<String, f64>,
    /// The log and its length, if checkpoints are in it.
    log: Option<(PathBuf, u64)>,
}

impl Statistics {
    /// Reads a server with this log before its clients connect; absent if it does not tell.
    pub(super) fn before(address: &Address, version_num: u32, log: &Path) -> Option<Self> {
        let mut queries = stat_queries(version_num);
        queries.push(StatQuery {
            sql: RUNS.to_owned(),
            keys: &[("autovacuums", 1.0), ("autoanalyzes", 1.0)],
        });
        Some(Self {
            before: statistics(address, &queries)?,
            at: Instant::now(),
            version_num,
            queries,
            log: logs_checkpoints(address).then(|| (log.to_owned(), length(log))),
        })
    }

    /// How far each counter has moved by the time that these backends have ended, as they have been told to.
    pub(super) fn moved(&self, address: &Address, backends: &[u32]) -> BTreeMap<String, f64> {
        let until = Instant::now() + GONE_WITHIN;
        while Instant::now() < until && !backends.iter().all(|pid| has_ended(*pid)) {
            std::thread::sleep(LOOK);
        }
        // Two readings too close to each other show the same on old versions.
        let next = self.at + readings_apart(self.version_num);
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
        let after = statistics(address, &self.queries).unwrap_or_default();
        let mut values = moved(&self.before, &after);
        if let Some((log, from)) = &self.log {
            values.insert("checkpoints".to_owned(), ended_since(log, *from));
        }
        values
    }
}

fn logs_checkpoints(address: &Address) -> bool {
    let asked = connect(&address.endpoint, &address.login).and_then(|mut client| {
        // A server that does not answer is found out by what is asked next.
        let _ = client.set_timeout(Some(ANSWER_WITHIN));
        query(&mut client, LOGGED)
    });
    asked.is_ok_and(|rows| rows.into_iter().next().map(text).as_deref() == Some("on"))
}

fn length(log: &Path) -> u64 {
    std::fs::metadata(log).map_or(0, |facts| facts.len())
}

/// Checkpoints that have ended since a log was so long.
fn ended_since(log: &Path, from: u64) -> f64 {
    let mut written = Vec::new();
    let read = File::open(log).and_then(|mut file| {
        file.seek(SeekFrom::Start(from))?;
        file.read_to_end(&mut written)
    });
    let text = String::from_utf8_lossy(&written);
    match read {
        Ok(_) => to_f64(count(text.matches(ENDED).count())),
        Err(_) => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoints_are_counted_when_they_have_ended() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        let at = "2026-11-21 17:17:42.258 UTC [1] LOG:  checkpoint";
        let begun = format!("{at} complete: wrote 3 buffers\n{at} starting: time\n");
        std::fs::write(&log, &begun).unwrap();
        let from = length(&log);
        assert!(ended_since(&log, from).abs() < 1e-9, "one is under way");
        let later = format!("{begun}{at} complete: wrote 5 buffers\n{at} starting: wal\n");
        std::fs::write(&log, later).unwrap();
        assert!((ended_since(&log, from) - 1.0).abs() < 1e-9);
    }
}
