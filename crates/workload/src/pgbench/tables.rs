//! The tables that `pgbench -i` makes: the text of its statements and rows, as pgbench of PostgreSQL 18 has
//! them.
//!
//! The order is pgbench's: [`drop_sql`], [`create_sql`]; in one transaction the rows,
//! which are [`CopyRows`] of each of [`LOADED`] after its [`PgbenchTable::copy_sql`], or [`server_side_sql`];
//! then [`vacuum_sql`], [`primary_keys_sql`], [`foreign_keys_sql`].
//!
//! Source: what pgbench of PostgreSQL 18 sends; the tests hold it.

use deltabench_model::problem::Problem;
use deltabench_model::work::pgbench::{PartitionMethod, PgbenchTables};
use std::io::Write;

/// Rows of `pgbench_accounts` for each unit of scale.
pub const ACCOUNTS: u64 = 100_000;
/// Largest scale: the number of accounts must fit where it is counted.
pub const SCALE_MAX: u32 = 90_000;
/// Rows of `pgbench_tellers` for each unit of scale.
pub const TELLERS: u64 = 10;
/// The scale from which account numbers are `bigint`.
const BIGINT_SCALE: u32 = 20_000;

/// One of the tables that rows are loaded into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PgbenchTable {
    Branches,
    Tellers,
    Accounts,
}

/// The tables that rows are loaded into, in pgbench's order.
pub const LOADED: [PgbenchTable; 3] = [
    PgbenchTable::Branches,
    PgbenchTable::Tellers,
    PgbenchTable::Accounts,
];

impl PgbenchTable {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Branches => "pgbench_branches",
            Self::Tellers => "pgbench_tellers",
            Self::Accounts => "pgbench_accounts",
        }
    }

    /// Its rows at a scale.
    pub fn rows(self, scale: u32) -> u64 {
        let each = match self {
            Self::Branches => 1,
            Self::Tellers => TELLERS,
            Self::Accounts => ACCOUNTS,
        };
        each * u64::from(scale)
    }

    /// The statement that takes its rows: with `freeze` from PostgreSQL 14 on, except into partitions.
    pub fn copy_sql(self, tables: &PgbenchTables, version_num: u32) -> String {
        let partitioned = self == Self::Accounts && tables.partitions > 0;
        let freeze = if version_num >= 140_000 && !partitioned {
            " with (freeze on)"
        } else {
            ""
        };
        format!("copy {} from stdin{freeze}", self.name())
    }
}

/// The names of all tables, without a schema. A partition is no table of its own here.
pub fn table_names() -> [&'static str; 4] {
    [
        "pgbench_accounts",
        "pgbench_branches",
        "pgbench_history",
        "pgbench_tellers",
    ]
}

/// The first version that can have a primary key on a partitioned table, and partitions by hash.
const PARTITIONS_FROM: u32 = 110_000;
/// The first version in which a foreign key can point to a partitioned table.
const PARTITION_KEYS_FROM: u32 = 120_000;

/// Whether a server of that version can have these tables.
///
/// Shape: `version_num` as `server_version_num` has it, 90624 for 9.6.24.
/// Errors: what the version lacks, by name; a fillfactor that cannot be.
pub fn check(tables: &PgbenchTables, version_num: u32) -> Result<(), Problem> {
    if !(10..=100).contains(&tables.fillfactor) {
        let what = format!("fillfactor {} is not from 10 to 100", tables.fillfactor);
        return Err(Problem::new(what));
    }
    if tables.partitions == 0 {
        return Ok(());
    }
    let lacks = |what: &str, from: u32| {
        Err(
            Problem::new(format!("{what} needs PostgreSQL {}", from / 10_000))
                .detail(format!("the server is {}", version_name(version_num))),
        )
    };
    if version_num < PARTITIONS_FROM {
        return lacks(
            "a partitioned pgbench_accounts with its primary key",
            PARTITIONS_FROM,
        );
    }
    if tables.foreign_keys && version_num < PARTITION_KEYS_FROM {
        let what = "a foreign key to a partitioned pgbench_accounts";
        return lacks(what, PARTITION_KEYS_FROM);
    }
    Ok(())
}

/// `9.6.24` or `18.6`.
fn version_name(version_num: u32) -> String {
    let (major, minor) = (version_num / 10_000, version_num % 10_000);
    if major < 10 {
        format!("{major}.{}.{}", minor / 100, minor % 100)
    } else {
        format!("{major}.{minor}")
    }
}

/// The statement that removes tables that are there; one for all, because of foreign keys.
pub fn drop_sql() -> &'static str {
    "drop table if exists pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers"
}

/// The statements that make the tables, without keys.
///
/// Shape: as in pgbench, `unlogged` with partitions is for the partitions alone.
/// Errors: as [`check`].
pub fn create_sql(tables: &PgbenchTables, version_num: u32) -> Result<Vec<String>, Problem> {
    check(tables, version_num)?;
    let account = if tables.scale >= BIGINT_SCALE {
        "bigint"
    } else {
        "int"
    };
    let partitioned = tables.partitions > 0;
    let unlogged = |whether: bool| if whether { " unlogged" } else { "" };
    let head = format!("create{} table", unlogged(tables.unlogged && !partitioned));
    let fillfactor = format!(" with (fillfactor={})", tables.fillfactor);
    let of_accounts = if partitioned {
        format!(" partition by {} (aid)", tables.partition_method.word())
    } else {
        fillfactor.clone()
    };
    let mut statements = vec![
        format!(
            "{head} pgbench_history(tid int,bid int,aid {account},delta int,\
             mtime timestamp,filler char(22))"
        ),
        format!(
            "{head} pgbench_tellers(tid int not null,bid int,tbalance int,filler char(84)){fillfactor}"
        ),
        format!(
            "{head} pgbench_accounts(aid {account} not null,bid int,abalance int,\
             filler char(84)){of_accounts}"
        ),
        format!(
            "{head} pgbench_branches(bid int not null,bbalance int,filler char(88)){fillfactor}"
        ),
    ];
    let head = format!("create{} table", unlogged(tables.unlogged));
    for partition in 1..=tables.partitions {
        let values = partition_values(tables, partition);
        statements.push(format!(
            "{head} pgbench_accounts_{partition} partition of pgbench_accounts \
             for values {values}{fillfactor}"
        ));
    }
    Ok(statements)
}

/// What a partition, from 1, holds. The first and last range are open.
fn partition_values(tables: &PgbenchTables, partition: u32) -> String {
    let partitions = tables.partitions;
    match tables.partition_method {
        PartitionMethod::Hash => {
            format!("with (modulus {partitions}, remainder {})", partition - 1)
        }
        PartitionMethod::Range => {
            let size = PgbenchTable::Accounts
                .rows(tables.scale)
                .div_ceil(u64::from(partitions));
            let end = |partition: u32| u64::from(partition) * size + 1;
            let from = match partition {
                1 => "minvalue".to_owned(),
                _ => end(partition - 1).to_string(),
            };
            let to = if partition == partitions {
                "maxvalue".to_owned()
            } else {
                end(partition).to_string()
            };
            format!("from ({from}) to ({to})")
        }
    }
}

/// Rows of a table in COPY's text format, some at a time.
#[derive(Debug, Clone)]
pub struct CopyRows {
    table: PgbenchTable,
    /// The row before the next.
    done: u64,
    end: u64,
}

impl CopyRows {
    /// All rows of a table at a scale.
    pub fn new(table: PgbenchTable, scale: u32) -> Self {
        Self {
            table,
            done: 0,
            end: table.rows(scale),
        }
    }

    /// Appends the next rows, at most so many; false when there was none left.
    pub fn fill(&mut self, rows: u64, out: &mut Vec<u8>) -> bool {
        let end = self.end.min(self.done.saturating_add(rows));
        let some = self.done < end;
        for before in self.done..end {
            // Into a Vec nothing can fail to be written.
            let _ = match self.table {
                PgbenchTable::Branches => writeln!(out, "{}\t0\t\\N", before + 1),
                PgbenchTable::Tellers => {
                    writeln!(out, "{}\t{}\t0\t\\N", before + 1, before / TELLERS + 1)
                }
                // The filler is an empty text, which the column's type pads with blanks.
                PgbenchTable::Accounts => {
                    writeln!(out, "{}\t{}\t0\t", before + 1, before / ACCOUNTS + 1)
                }
            };
        }
        self.done = end;
        some
    }
}

/// The statements by which the server makes the rows itself.
pub fn server_side_sql(tables: &PgbenchTables) -> Vec<String> {
    let rows = |table: PgbenchTable| table.rows(tables.scale);
    vec![
        format!(
            "insert into pgbench_branches(bid,bbalance) select bid, 0 from generate_series(1, {}) as bid",
            rows(PgbenchTable::Branches)
        ),
        format!(
            "insert into pgbench_tellers(tid,bid,tbalance) \
             select tid, (tid - 1) / {TELLERS} + 1, 0 from generate_series(1, {}) as tid",
            rows(PgbenchTable::Tellers)
        ),
        format!(
            "insert into pgbench_accounts(aid,bid,abalance,filler) \
             select aid, (aid - 1) / {ACCOUNTS} + 1, 0, '' from generate_series(1, {}) as aid",
            rows(PgbenchTable::Accounts)
        ),
    ]
}

/// The statements that vacuum and analyze; outside of a transaction.
pub fn vacuum_sql() -> Vec<String> {
    ["branches", "tellers", "accounts", "history"]
        .map(|table| format!("vacuum analyze pgbench_{table}"))
        .into()
}

/// The statements that make primary keys.
pub fn primary_keys_sql() -> Vec<String> {
    [("branches", "bid"), ("tellers", "tid"), ("accounts", "aid")]
        .map(|(table, key)| format!("alter table pgbench_{table} add primary key ({key})"))
        .into()
}

/// The statements that make foreign keys; none if the tables have none.
pub fn foreign_keys_sql(tables: &PgbenchTables) -> Vec<String> {
    if !tables.foreign_keys {
        return Vec::new();
    }
    [
        ("tellers", "bid", "branches"),
        ("accounts", "bid", "branches"),
        ("history", "bid", "branches"),
        ("history", "tid", "tellers"),
        ("history", "aid", "accounts"),
    ]
    .map(|(table, key, other)| {
        format!(
            "alter table pgbench_{table} add constraint pgbench_{table}_{key}_fkey \
             foreign key ({key}) references pgbench_{other}"
        )
    })
    .into()
}

/// Bytes of a page, and what a page keeps for itself.
const PAGE: (u64, u64) = (8192, 24);
/// Bytes of a row with its line pointer: 97 bytes of data and header each padded to 8.
const ACCOUNT_ROW: u64 = 132;
const TELLER_ROW: u64 = 44;
const BRANCH_ROW: u64 = 36;
/// Bytes of an entry of a primary key with its line pointer, and how full its pages are made, percent.
const ENTRY: (u64, u64) = (20, 90);

/// About how large tables and indexes are when they have been made, bytes; history is empty then.
pub fn estimate_bytes(tables: &PgbenchTables) -> u64 {
    let pages = |rows: u64, bytes: u64, fill: u64| {
        let each = ((PAGE.0 - PAGE.1) * fill / 100 / bytes).max(1);
        rows.div_ceil(each)
    };
    let fill = u64::from(tables.fillfactor);
    let all = LOADED.map(|table| {
        let bytes = match table {
            PgbenchTable::Branches => BRANCH_ROW,
            PgbenchTable::Tellers => TELLER_ROW,
            PgbenchTable::Accounts => ACCOUNT_ROW,
        };
        let rows = table.rows(tables.scale);
        // An index has a page that describes it.
        pages(rows, bytes, fill) + pages(rows, ENTRY.0, ENTRY.1) + 1
    });
    all.iter().sum::<u64>() * PAGE.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables() -> PgbenchTables {
        PgbenchTables::default()
    }

    #[test]
    fn tables_are_made_as_pgbench_makes_them() {
        let statements = create_sql(&tables(), 180_006).unwrap();
        assert_eq!(
            statements,
            [
                "create table pgbench_history(tid int,bid int,aid int,delta int,\
                 mtime timestamp,filler char(22))",
                "create table pgbench_tellers(tid int not null,bid int,tbalance int,filler char(84)) \
                 with (fillfactor=100)",
                "create table pgbench_accounts(aid int not null,bid int,abalance int,filler char(84)) \
                 with (fillfactor=100)",
                "create table pgbench_branches(bid int not null,bbalance int,filler char(88)) \
                 with (fillfactor=100)",
            ]
        );
        let large = PgbenchTables {
            scale: 20_000,
            unlogged: true,
            fillfactor: 80,
            ..tables()
        };
        let statements = create_sql(&large, 180_006).unwrap();
        assert!(
            statements
                .iter()
                .all(|sql| sql.starts_with("create unlogged table "))
        );
        assert!(statements[0].contains("aid bigint,"), "{}", statements[0]);
        assert!(statements[2].contains("aid bigint not null") && statements[2].ends_with("=80)"));
    }

    #[test]
    fn partitions_cover_all_numbers() {
        let partitioned = PgbenchTables {
            partitions: 3,
            unlogged: true,
            ..tables()
        };
        let statements = create_sql(&partitioned, 180_006).unwrap();
        assert!(statements[2].ends_with(" partition by range (aid)"));
        assert!(
            statements[..4]
                .iter()
                .all(|sql| sql.starts_with("create table "))
        );
        assert_eq!(
            statements[4..],
            [
                "create unlogged table pgbench_accounts_1 partition of pgbench_accounts \
                 for values from (minvalue) to (33335) with (fillfactor=100)",
                "create unlogged table pgbench_accounts_2 partition of pgbench_accounts \
                 for values from (33335) to (66669) with (fillfactor=100)",
                "create unlogged table pgbench_accounts_3 partition of pgbench_accounts \
                 for values from (66669) to (maxvalue) with (fillfactor=100)",
            ]
        );
        let hashed = PgbenchTables {
            partitions: 2,
            partition_method: PartitionMethod::Hash,
            ..tables()
        };
        let statements = create_sql(&hashed, 110_000).unwrap();
        assert!(statements[5].contains("for values with (modulus 2, remainder 1)"));
        assert!(
            !PgbenchTable::Accounts
                .copy_sql(&hashed, 180_006)
                .contains("freeze")
        );
    }

    #[test]
    fn what_a_version_lacks_is_refused_by_name() {
        let partitioned = PgbenchTables {
            partitions: 1,
            ..tables()
        };
        let problem = create_sql(&partitioned, 90_624).unwrap_err().to_string();
        assert!(
            problem.contains("needs PostgreSQL 11") && problem.contains("9.6.24"),
            "{problem}"
        );
        assert!(check(&partitioned, 110_000).is_ok());
        let keys = PgbenchTables {
            foreign_keys: true,
            ..partitioned
        };
        let problem = check(&keys, 110_022).unwrap_err().to_string();
        assert!(
            problem.contains("needs PostgreSQL 12") && problem.contains("11.22"),
            "{problem}"
        );
        let loose = PgbenchTables {
            fillfactor: 9,
            ..tables()
        };
        assert!(check(&loose, 180_006).is_err());
        assert!(check(&tables(), 90_624).is_ok());
    }

    #[test]
    fn rows_come_in_pieces_and_are_all_there() {
        let all = |table: PgbenchTable, scale: u32, rows: u64| {
            let mut out = Vec::new();
            let mut copy = CopyRows::new(table, scale);
            while copy.fill(rows, &mut out) {}
            String::from_utf8(out).unwrap()
        };
        assert_eq!(all(PgbenchTable::Branches, 2, 1), "1\t0\t\\N\n2\t0\t\\N\n");
        let tellers = all(PgbenchTable::Tellers, 2, 7);
        assert_eq!(tellers.lines().count(), 20);
        assert!(tellers.starts_with("1\t1\t0\t\\N\n") && tellers.ends_with("\n20\t2\t0\t\\N\n"));
        let accounts = all(PgbenchTable::Accounts, 2, 30_000);
        assert_eq!(accounts.lines().count(), 200_000);
        assert_eq!(accounts.lines().nth(100_000), Some("100001\t2\t0\t"));
        assert_eq!(accounts, all(PgbenchTable::Accounts, 2, 1_000_000));
    }

    #[test]
    fn freezing_is_for_new_servers() {
        let copy = |version| PgbenchTable::Accounts.copy_sql(&tables(), version);
        assert_eq!(copy(130_000), "copy pgbench_accounts from stdin");
        assert_eq!(
            copy(140_000),
            "copy pgbench_accounts from stdin with (freeze on)"
        );
    }

    #[test]
    fn the_estimate_is_near_what_a_server_says() {
        // pg_total_relation_size of scale 10 on PostgreSQL 18, all tables: about 157 MB.
        let ten = PgbenchTables {
            scale: 10,
            ..tables()
        };
        let megabytes = estimate_bytes(&ten) / 1_000_000;
        assert!((150..165).contains(&megabytes), "{megabytes}");
        assert!(foreign_keys_sql(&ten).is_empty());
    }
}
