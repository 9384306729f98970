//! Whether the tables come out as `pgbench -i` makes them, read from the catalogs of both.

use deltabench_driver::admin::Client;
use deltabench_driver::crosscheck::pgbench::initialise;
use deltabench_kinds::pgbench::make_tables;
use deltabench_model::endpoint::Login;
use deltabench_model::problem::Problem;
use deltabench_model::work::pgbench::{PartitionMethod, PgbenchTables};
use deltabench_run::admin::{connect, query, run, text};
use deltabench_run::visit::Address;
use deltabench_workload::pgbench::tables;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Databases of the two.
const OWN: &str = "deltabench_tables_own";
const PEER: &str = "deltabench_tables_pgbench";

/// The database that those two are made from.
const MAINTENANCE: &str = "postgres";

/// The schema of both.
const SCHEMA: &str = "public";

/// First version with partitions.
const PARTITIONS_SINCE: u32 = 100_000;

/// First pgbench that can make partitions, and rows on the server.
const OPTIONS_SINCE: u32 = 13;

/// One way to make the tables.
#[derive(Debug, Clone, PartialEq)]
pub struct TablesFound {
    /// What was typed after `pgbench -i`.
    pub arguments: Vec<String>,
    /// Facts that both have: relations, columns, indexes, constraints, rows.
    pub same: u64,
    /// Facts that only ours have.
    pub own_only: Vec<String>,
    /// Facts that only pgbench's have.
    pub peer_only: Vec<String>,
    /// Why they were not made: what the server or this pgbench lacks.
    pub skipped: Option<String>,
}

/// The pgbench that is compared with, and the server.
#[derive(Debug, Clone, Copy)]
pub(super) struct Judge<'a> {
    pub(super) program: &'a Path,
    pub(super) major: u32,
    /// The server's `server_version_num`.
    pub(super) version_num: u32,
}

impl Judge<'_> {
    /// What the server or this pgbench lacks for these tables, if anything.
    fn lacks(&self, wanted: &PgbenchTables) -> Option<String> {
        if let Err(problem) = tables::check(wanted, self.version_num) {
            return Some(problem.error);
        }
        let what = if wanted.partitions > 0 {
            "--partitions"
        } else if wanted.server_side {
            "--init-steps=G"
        } else {
            return None;
        };
        (self.major < OPTIONS_SINCE).then(|| {
            let major = self.major;
            format!("pgbench {major} has no {what}: that came with pgbench {OPTIONS_SINCE}")
        })
    }
}

/// Makes tables in all ways, by both, and compares them.
///
/// Shape:  `None` when `interrupted` was set meanwhile.
/// Errors: a server that refuses what both should be able to make; a pgbench that fails.
pub(super) fn compare_tables(
    address: &Address,
    judge: &Judge<'_>,
    scale: u32,
    interrupted: &AtomicBool,
) -> Result<Option<Vec<TablesFound>>, Problem> {
    let (program, version_num) = (judge.program, judge.version_num);
    let mut found = Vec::new();
    for wanted in ways(scale) {
        if interrupted.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let arguments = arguments(&wanted);
        if let Some(why) = judge.lacks(&wanted) {
            found.push(TablesFound {
                arguments,
                same: 0,
                own_only: Vec::new(),
                peer_only: Vec::new(),
                skipped: Some(why),
            });
            continue;
        }
        let own = made(address, OWN, version_num, |client, _| {
            make_tables(client, &wanted)
        })?;
        let peer = made(address, PEER, version_num, |_, login| {
            initialise(program, &arguments, &address.endpoint, login)
        })?;
        let only = |one: &BTreeSet<String>, other: &BTreeSet<String>| {
            one.difference(other).cloned().collect::<Vec<String>>()
        };
        found.push(TablesFound {
            arguments,
            same: deltabench_model::units::count(own.intersection(&peer).count()),
            own_only: only(&own, &peer),
            peer_only: only(&peer, &own),
            skipped: None,
        });
    }
    Ok(Some(found))
}

/// The ways in which tables can be made.
fn ways(scale: u32) -> Vec<PgbenchTables> {
    let plain = PgbenchTables {
        scale,
        ..PgbenchTables::default()
    };
    vec![
        plain.clone(),
        PgbenchTables {
            server_side: true,
            ..plain.clone()
        },
        PgbenchTables {
            fillfactor: 80,
            foreign_keys: true,
            ..plain.clone()
        },
        PgbenchTables {
            unlogged: true,
            ..plain.clone()
        },
        PgbenchTables {
            partitions: 3,
            foreign_keys: true,
            ..plain.clone()
        },
        PgbenchTables {
            partitions: 3,
            partition_method: PartitionMethod::Hash,
            fillfactor: 90,
            server_side: true,
            ..plain
        },
    ]
}

fn arguments(tables: &PgbenchTables) -> Vec<String> {
    let mut arguments = vec![format!("--scale={}", tables.scale)];
    if tables.fillfactor != 100 {
        arguments.push(format!("--fillfactor={}", tables.fillfactor));
    }
    if tables.foreign_keys {
        arguments.push("--foreign-keys".to_owned());
    }
    if tables.unlogged {
        arguments.push("--unlogged-tables".to_owned());
    }
    if tables.partitions > 0 {
        arguments.push(format!("--partitions={}", tables.partitions));
        arguments.push(format!(
            "--partition-method={}",
            tables.partition_method.word()
        ));
    }
    if tables.server_side {
        let last = if tables.foreign_keys { "f" } else { "" };
        arguments.push(format!("--init-steps=dtGvp{last}"));
    }
    arguments
}

/// The facts about the tables that `make` makes in a new database.
fn made(
    address: &Address,
    database: &str,
    version_num: u32,
    make: impl FnOnce(&mut Client, &Login) -> Result<(), Problem>,
) -> Result<BTreeSet<String>, Problem> {
    let login = |database: &str| Login {
        database: database.to_owned(),
        ..address.login.clone()
    };
    let maintenance = &mut connect(&address.endpoint, &login(MAINTENANCE))?;
    run(maintenance, &format!("DROP DATABASE IF EXISTS {database}"))?;
    run(maintenance, &format!("CREATE DATABASE {database}"))?;
    // An asynchronous commit would leave the visibility map to chance.
    let options = [("search_path", SCHEMA), ("synchronous_commit", "on")];
    let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let login = Login {
        options: options.map(owned).to_vec(),
        ..login(database)
    };
    let facts = {
        let client = &mut connect(&address.endpoint, &login)?;
        make(client, &login).and_then(|()| facts(client, version_num))
    };
    run(maintenance, &format!("DROP DATABASE {database}"))?;
    facts
}

/// What the catalogs say, a sentence each.
///
/// `reltuples` is none of them: it is an estimate, and rows are counted.
fn facts(client: &mut Client, version_num: u32) -> Result<BTreeSet<String>, Problem> {
    let ours = "relnamespace = 'public'::regnamespace";
    let partitions = if version_num >= PARTITIONS_SINCE {
        "coalesce(pg_get_expr(relpartbound, oid), '-') || ' ' || coalesce(pg_get_partkeydef(oid), '-')"
    } else {
        "'- -'"
    };
    let visible = "CASE WHEN relkind = 'r' AND relpages > 0 THEN (relallvisible * 10 >= relpages * 9)::text \
                   ELSE '-' END";
    let asked = [
        format!(
            "SELECT 'relation ' || relname || ' ' || relkind::text || ' ' || relpersistence::text || ' ' || \
             coalesce(array_to_string(reloptions, ','), '-') || ' ' || {partitions} || ' pages ' || \
              relpages || ' visible ' || {visible} \
             FROM pg_class WHERE {ours}"
        ),
        format!(
            "SELECT 'column ' || relname || '.' || attname || ' ' || attnum || ' ' || \
             format_type(atttypid, atttypmod) || ' ' || attnotnull || ' ' || attstorage::text \
             FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid \
             WHERE {ours} AND attnum > 0 AND relkind IN ('r', 'p')"
        ),
        format!(
            "SELECT 'index ' || pg_get_indexdef(indexrelid) FROM pg_index \
             JOIN pg_class ON pg_class.oid = indexrelid WHERE {ours}"
        ),
        "SELECT 'constraint ' || conname || ' on ' || conrelid::regclass || ' ' || \
         pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = 'public'::regnamespace"
            .to_owned(),
    ];
    let mut facts = BTreeSet::new();
    for sql in &asked {
        facts.extend(query(client, sql)?.into_iter().map(text));
    }
    for table in tables::table_names() {
        // Every row with all its columns, whatever their order.
        let sql = format!(
            "SELECT 'content of {table}: ' || count(*) || ' rows, ' || \
             coalesce(sum(hashtext(t::text)), 0) FROM {table} AS t"
        );
        facts.extend(query(client, &sql)?.into_iter().map(text));
    }
    Ok(facts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_pgbench_is_not_asked_for_what_it_lacks() {
        let made = |major: u32, version_num: u32| {
            let judge = Judge {
                program: Path::new("pgbench"),
                major,
                version_num,
            };
            let ways = ways(1);
            let lacking = ways.iter().filter(|way| judge.lacks(way).is_some());
            ways.len() - lacking.count()
        };
        assert_eq!(made(18, 180_000), 6);
        assert_eq!(
            made(12, 120_000),
            3,
            "no partitions, no rows of the server's"
        );
        assert_eq!(made(18, 90_600), 4, "the server has no partitions");
        assert_eq!(made(9, 180_000), 3);
    }
}
