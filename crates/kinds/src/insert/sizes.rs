//! How large a server's tables and files are at the end of a step.

use deltabench_model::units::to_f64;
use deltabench_run::admin::{connect, query};
use deltabench_run::visit::Address;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Sizes of tables without and with their indexes, and rows that are dead, of all tables of the schema.
const TABLES: &str = "select coalesce(sum(pg_catalog.pg_table_size(relid)), 0), \
     coalesce(sum(pg_catalog.pg_indexes_size(relid)), 0), coalesce(sum(n_dead_tup), 0), \
     pg_catalog.pg_database_size(pg_catalog.current_database()) from pg_catalog.pg_stat_user_tables";

/// What [`TABLES`] answers.
const KEYS: [&str; 4] = ["table_bytes", "index_bytes", "dead_rows", "database_bytes"];

/// Where a server keeps its WAL, new and old.
const WAL: [&str; 2] = ["pg_wal", "pg_xlog"];

/// Longest wait for an answer.
const WITHIN: Duration = Duration::from_secs(60);

/// Sizes by key; what cannot be told is absent.
pub(super) fn sizes(address: &Address, data_dir: &Path) -> BTreeMap<String, f64> {
    let mut sizes = tables(address).unwrap_or_default();
    let wal: u64 = WAL.iter().map(|name| bytes(&data_dir.join(name))).sum();
    sizes.insert("wal_dir_bytes".to_owned(), to_f64(wal));
    sizes.insert("data_dir_bytes".to_owned(), to_f64(bytes(data_dir)));
    sizes
}

fn tables(address: &Address) -> Option<BTreeMap<String, f64>> {
    let mut client = connect(&address.endpoint, &address.login).ok()?;
    client.set_timeout(Some(WITHIN)).ok()?;
    let row = query(&mut client, TABLES).ok()?.into_iter().next()?;
    let value = |(key, value): (&str, Option<String>)| Some((key.to_owned(), value?.parse().ok()?));
    Some(KEYS.into_iter().zip(row).filter_map(value).collect())
}

/// Lengths of all files below a directory, or of a file; what goes meanwhile counts for nothing.
fn bytes(path: &Path) -> u64 {
    let Ok(facts) = std::fs::symlink_metadata(path) else {
        return 0;
    };
    if !facts.is_dir() {
        return facts.len();
    }
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| bytes(&entry.path())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_added_up_and_what_is_not_there_is_nothing() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("pg_wal")).unwrap();
        std::fs::write(dir.path().join("pg_wal/1"), [0; 100]).unwrap();
        std::fs::write(dir.path().join("base"), [0; 11]).unwrap();
        assert_eq!(bytes(dir.path()), 111);
        assert_eq!(bytes(&dir.path().join("pg_wal")), 100);
        assert_eq!(bytes(&dir.path().join("pg_xlog")), 0);
    }
}
