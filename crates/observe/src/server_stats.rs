//! The server's own statistics: what to ask a version, and what the answers mean.
//!
//! Nothing is sent from here. Whoever reads sends each of [`stat_queries`] to the cell's database and hands
//! the row to [`fold`]; two such readings, before a visit's connections are opened and after they are closed,
//! make its counters with [`moved`].
//!
//! A backend reports what it did when it ends, and else at most once a second, so a reading is complete when
//! the backends' processes have ended. Up to 14 they report to a process, the statistics collector, which
//! writes a file when a reader asks for one, and a reader is content with one that is half a second old:
//! readings of a server must lie [`readings_apart`]. A report is a datagram up to 14; on an overloaded host
//! one can be lost.
//!
//! What the reading itself costs the server is in the difference once, because a session reports when it
//! ends, after it has read: 5 (9.6) to 7 (18) transactions and 830 to 1300 buffers found, most of them in
//! catalogs.
//!
//! Source: monitoring-stats.html of each version; src/backend/postmaster/pgstat.c (up to 14,
//! `PGSTAT_STAT_INTERVAL`), src/backend/utils/activity/pgstat.c (from 15, `PGSTAT_MIN_INTERVAL`).

use deltabench_model::metric::{Basis, METRICS};
use std::collections::BTreeMap;
use std::time::Duration;

/// One statement and what its columns are.
#[derive(Debug, Clone, PartialEq)]
pub struct StatQuery {
    /// A statement that answers with one row, columns in the order of `keys`. NULL is what this server does
    /// not count.
    pub sql: String,
    /// Key of the counter of each column, and what its value is multiplied by.
    pub keys: &'static [(&'static str, f64)],
}

/// Milliseconds to nanoseconds.
const MS: f64 = 1e6;

/// The statistics of a server of this version, about the database that it is asked in.
///
/// Shape: `version_num` as the server counts: 90624, 180006. Source: see the module.
pub fn stat_queries(version_num: u32) -> Vec<StatQuery> {
    let mut queries = vec![database(), tables(), wal_position(version_num)];
    if version_num >= 140_000 {
        queries.push(wal());
    }
    if version_num >= 160_000 {
        queries.push(io(version_num));
    }
    queries.push(checkpoints(version_num));
    queries
}

/// Two readings of a server of this version must lie at least so far apart, or the later one may show what
/// the earlier one showed: half a second up to 14, with a margin for clocks that are read in between.
/// Whoever reads counts, autovacuum too.
///
/// Shape: `version_num` as the server counts.
pub fn readings_apart(version_num: u32) -> Duration {
    if version_num >= 150_000 {
        Duration::ZERO
    } else {
        Duration::from_millis(550)
    }
}

/// Adds the row that answered `query` to `into`. NULL, and what is no number, stays absent.
pub fn fold(query: &StatQuery, row: &[Option<String>], into: &mut BTreeMap<String, f64>) {
    for ((key, scale), value) in query.keys.iter().zip(row) {
        let number = value.as_ref().and_then(|text| text.parse::<f64>().ok());
        if let Some(number) = number.filter(|number| number.is_finite()) {
            into.insert((*key).to_owned(), number * scale);
        }
    }
}

/// How far each counter moved between two readings; a size keeps its later value. A counter that went down
/// was reset in between and is absent.
pub fn moved(
    before: &BTreeMap<String, f64>,
    after: &BTreeMap<String, f64>,
) -> BTreeMap<String, f64> {
    after
        .iter()
        .filter_map(|(key, &now)| {
            let value = if is_gauge(key) {
                now
            } else {
                now - before.get(key)?
            };
            (value >= 0.0).then(|| (key.clone(), value))
        })
        .collect()
}

fn is_gauge(key: &str) -> bool {
    METRICS
        .iter()
        .any(|metric| metric.counter == key && metric.basis == Basis::Gauge)
}

fn query(sql: &str, keys: &'static [(&'static str, f64)]) -> StatQuery {
    StatQuery {
        sql: sql.to_owned(),
        keys,
    }
}

fn database() -> StatQuery {
    // Without track_io_timing the times are zeros that mean nothing.
    query(
        "select blks_hit, blks_read, \
         case when timed then blk_read_time end, case when timed then blk_write_time end, \
         xact_commit + xact_rollback, tup_returned, tup_fetched, temp_bytes, \
         pg_catalog.pg_database_size(datid) \
         from pg_catalog.pg_stat_database, \
         (select pg_catalog.current_setting('track_io_timing')::bool as timed) as setting \
         where datname = pg_catalog.current_database()",
        &[
            ("database_blocks_hit", 1.0),
            ("database_blocks_read", 1.0),
            ("database_block_read_ns", MS),
            ("database_block_write_ns", MS),
            ("database_transactions", 1.0),
            ("database_rows_returned", 1.0),
            ("database_rows_fetched", 1.0),
            ("database_temp_bytes", 1.0),
            ("database_bytes", 1.0),
        ],
    )
}

fn tables() -> StatQuery {
    // A table without indexes has no count of index scans.
    query(
        "select coalesce(sum(n_tup_upd), 0), coalesce(sum(n_tup_hot_upd), 0), \
         coalesce(sum(seq_scan), 0), coalesce(sum(idx_scan), 0) \
         from pg_catalog.pg_stat_user_tables",
        &[
            ("tables_updates", 1.0),
            ("tables_hot_updates", 1.0),
            ("tables_seq_scans", 1.0),
            ("tables_index_scans", 1.0),
        ],
    )
}

fn wal_position(version_num: u32) -> StatQuery {
    // A standby inserts nothing and refuses to say where.
    let sql = if version_num >= 100_000 {
        "select case when not pg_catalog.pg_is_in_recovery() then \
         pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_insert_lsn(), '0/0') end"
    } else {
        "select case when not pg_catalog.pg_is_in_recovery() then \
         pg_catalog.pg_xlog_location_diff(pg_catalog.pg_current_xlog_insert_location(), '0/0') end"
    };
    query(sql, &[("wal_lsn_bytes", 1.0)])
}

fn wal() -> StatQuery {
    query(
        "select wal_bytes, wal_records, wal_fpi from pg_catalog.pg_stat_wal",
        &[
            ("wal_bytes", 1.0),
            ("wal_records", 1.0),
            ("wal_full_pages", 1.0),
        ],
    )
}

/// 16 and 17 count blocks; 18 counts calls, which take up to 16 blocks each, and bytes beside them. Blocks
/// are what all three can tell.
fn io(version_num: u32) -> StatQuery {
    let sql = if version_num >= 180_000 {
        "select trunc(sum(read_bytes) / size), trunc(sum(write_bytes) / size), \
         trunc(sum(extend_bytes) / size), sum(evictions) from pg_catalog.pg_stat_io, \
         (select pg_catalog.current_setting('block_size')::numeric as size) as setting \
         where object = 'relation' group by size"
    } else {
        "select sum(reads), sum(writes), sum(extends), sum(evictions) \
         from pg_catalog.pg_stat_io where object = 'relation'"
    };
    query(
        sql,
        &[
            ("io_reads", 1.0),
            ("io_writes", 1.0),
            ("io_extends", 1.0),
            ("io_evictions", 1.0),
        ],
    )
}

fn checkpoints(version_num: u32) -> StatQuery {
    if version_num >= 170_000 {
        return query(
            "select c.buffers_written, b.buffers_clean \
             from pg_catalog.pg_stat_checkpointer as c, pg_catalog.pg_stat_bgwriter as b",
            &[("checkpoint_buffers", 1.0), ("bgwriter_buffers", 1.0)],
        );
    }
    query(
        "select buffers_checkpoint, buffers_clean, buffers_backend from pg_catalog.pg_stat_bgwriter",
        &[
            ("checkpoint_buffers", 1.0),
            ("bgwriter_buffers", 1.0),
            ("backend_buffers", 1.0),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(pairs: &[(&str, f64)]) -> BTreeMap<String, f64> {
        pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), *value))
            .collect()
    }

    #[test]
    fn every_key_is_a_counter_of_the_registry_and_asked_once() {
        for version in [90_624, 140_024, 150_000, 160_000, 170_011, 180_006] {
            let mut keys: Vec<&str> = stat_queries(version)
                .iter()
                .flat_map(|query| query.keys.iter().map(|(key, _)| *key))
                .collect();
            for key in &keys {
                assert!(METRICS.iter().any(|metric| metric.counter == *key), "{key}");
            }
            let all = keys.len();
            keys.sort_unstable();
            keys.dedup();
            assert_eq!(keys.len(), all);
        }
    }

    #[test]
    fn versions_are_asked_for_what_they_have() {
        let asked = |version: u32, key: &str| {
            stat_queries(version)
                .iter()
                .any(|query| query.keys.iter().any(|(known, _)| *known == key))
        };
        for (key, from, to) in [
            ("database_blocks_hit", 90_600, 180_006),
            ("wal_lsn_bytes", 90_600, 180_006),
            ("checkpoint_buffers", 90_600, 180_006),
            ("backend_buffers", 90_600, 160_014),
            ("wal_bytes", 140_000, 180_006),
            ("io_reads", 160_000, 180_006),
        ] {
            for version in [
                90_600, 100_000, 130_000, 140_000, 150_000, 160_000, 160_014, 170_000, 180_006,
            ] {
                assert_eq!(
                    asked(version, key),
                    (from..=to).contains(&version),
                    "{key} {version}"
                );
            }
        }
    }

    #[test]
    fn null_is_absent_and_milliseconds_become_nanoseconds() {
        let mut found = BTreeMap::new();
        let text = |value: &str| Some(value.to_owned());
        let mut row = vec![text("5"), text("0"), text("1.25"), None];
        row.extend([text("NaN"), text("x")]);
        fold(&database(), &row, &mut found);
        let expected = [
            ("database_blocks_hit", 5.0),
            ("database_blocks_read", 0.0),
            ("database_block_read_ns", 1_250_000.0),
        ];
        assert_eq!(found, values(&expected));
    }

    #[test]
    fn counters_are_subtracted_sizes_are_kept_and_resets_are_absent() {
        let before = values(&[
            ("database_blocks_hit", 10.0),
            ("database_bytes", 9000.0),
            ("wal_bytes", 100.0),
            ("io_reads", 7.0),
        ]);
        let after = values(&[
            ("database_blocks_hit", 25.0),
            ("database_bytes", 8000.0),
            ("wal_bytes", 40.0),
            ("io_reads", 7.0),
            ("io_writes", 3.0),
        ]);
        let expected = values(&[
            ("database_blocks_hit", 15.0),
            ("database_bytes", 8000.0),
            ("io_reads", 0.0),
        ]);
        assert_eq!(moved(&before, &after), expected);
    }

    #[test]
    fn old_servers_need_a_pause_and_new_ones_none() {
        assert!(readings_apart(140_024) > Duration::from_millis(500));
        assert_eq!(readings_apart(150_000), Duration::ZERO);
    }
}
