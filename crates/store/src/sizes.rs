//! What runs take on disk: in the store's file, and in sealed files.

use crate::bulk::FACTS;
use crate::error::StoreError;
use crate::opened::SealedRun;
use crate::runs::RunState;
use crate::store::Store;
use std::collections::BTreeMap;

/// What a run takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSize {
    /// The run.
    pub run: String,
    /// How far it has come.
    pub state: RunState,
    /// When the state was set, milliseconds since 1970.
    pub state_unix_ms: i64,
    /// Its share of the store's file, bytes.
    pub in_store: u64,
    /// The part of that which an archive would move.
    pub movable: u64,
    /// Its sealed file, if it is archived.
    pub sealed: Option<SealedRun>,
}

/// What a lab takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sizes {
    /// Its runs, oldest first.
    pub runs: Vec<RunSize>,
    /// The store's file, bytes.
    pub file: u64,
    /// Bytes of it that are free for new records.
    pub free: u64,
}

/// Shares of runs of one table: by run, what it has of all and what of that can move.
type Weights = BTreeMap<i64, (u64, u64)>;

/// Tables whose rows belong to runs, and whether all of them can move.
pub(crate) const TABLES: [(&str, bool); 15] = [
    ("run_state", false),
    ("visit", false),
    ("fact", false),
    ("finding", false),
    ("placebo_result", false),
    ("invalidation", false),
    ("instruction_count", false),
    ("occasion", false),
    ("cell_series", false),
    ("slice", true),
    ("sample", true),
    ("visit_counters", true),
    ("mark", true),
    ("record", true),
    ("instruction_profile", true),
];

impl Store {
    /// What the runs of this lab take. A table's pages, with those of its indexes, are shared out by the
    /// lengths of the values that runs have in it.
    ///
    /// Errors: `Damaged`, `Sqlite`.
    pub fn sizes(&self) -> Result<Sizes, StoreError> {
        let pages: BTreeMap<String, u64> = self
            .collect(PAGES, [], |row| Ok((row.get(0)?, row.get(1)?)))?
            .into_iter()
            .collect();
        let mut shares = Weights::new();
        let mut share_out = |table: &str, weights: &Weights| {
            let bytes = pages.get(table).copied().unwrap_or_default();
            let all: u64 = weights.values().map(|(all, _)| all).sum();
            for (run, (own, movable)) in weights {
                let (in_store, can_move) = shares.entry(*run).or_default();
                *in_store += portion(bytes, *own, all);
                *can_move += portion(bytes, *movable, all);
            }
        };
        share_out("run", &self.weights(RUNS)?);
        share_out("slice_error", &self.weights(ERRORS)?);
        for (table, moves) in TABLES {
            share_out(table, &self.weights(&self.weighing(table, moves)?)?);
        }
        let mut runs = Vec::new();
        for (id, run) in self.collect(SELECT_RUNS, [], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
        })? {
            let Some(reached) = self.reached(&run)? else {
                continue;
            };
            let (in_store, movable) = shares.get(&id).copied().unwrap_or_default();
            runs.push(RunSize {
                run,
                state: reached.state,
                state_unix_ms: reached.state_unix_ms,
                in_store,
                movable,
                sealed: self.sealed_file(id)?,
            });
        }
        let (file, free) = self.file_bytes()?;
        Ok(Sizes { runs, file, free })
    }

    fn weights(&self, sql: &str) -> Result<Weights, StoreError> {
        let rows: Vec<(i64, u64, u64)> =
            self.collect(sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        let weights = rows
            .into_iter()
            .map(|(run, all, movable)| (run, (all, movable)));
        Ok(weights.collect())
    }

    /// A query for the weights of a table: lengths of all values, and something for each row.
    fn weighing(&self, table: &str, moves: bool) -> Result<String, StoreError> {
        let columns: Vec<String> = self.collect(
            "select 'coalesce(octet_length(' || name || '), 0)' from pragma_table_info(?1)",
            [table],
            |row| row.get(0),
        )?;
        let row = format!("{ROW} + {}", columns.join(" + "));
        let [settings, visits] = FACTS;
        let movable = match (table, moves) {
            ("fact", _) => format!(
                "coalesce(sum(case when kind in ('{settings}', '{visits}') then {row} end), 0)"
            ),
            (_, true) => format!("sum({row})"),
            (_, false) => "0".to_owned(),
        };
        Ok(format!(
            "select run, sum({row}), {movable} from {table} group by run"
        ))
    }
}

/// Bytes that a row takes beside its values, about: its header and its place in a page.
const ROW: u32 = 16;

const SELECT_RUNS: &str = "select id, name from run order by started_unix_ms, id";

const PAGES: &str = "select m.tbl_name, sum(d.pgsize) from dbstat d \
    join sqlite_schema m on m.name = d.name where d.aggregate = true group by m.tbl_name";

const RUNS: &str = "select id, sum(octet_length(plan)), 0 from run group by id";

const ERRORS: &str = "select s.run, sum(16 + octet_length(e.first_message)), \
    sum(16 + octet_length(e.first_message)) from slice_error e join slice s on s.id = e.slice \
    group by s.run";

/// The part of these bytes that belongs to one of all.
fn portion(bytes: u64, own: u64, all: u64) -> u64 {
    let portion = u128::from(bytes) * u128::from(own) / u128::from(all.max(1));
    u64::try_from(portion).unwrap_or(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bulk::BULK;
    use crate::merge::TABLES as MERGED;

    #[test]
    fn every_table_of_a_run_is_weighed_and_what_moves_is_the_bulk() {
        for table in MERGED {
            let listed = TABLES.iter().find(|(name, _)| *name == table);
            let bulk = BULK.iter().any(|part| part.table == table);
            let &(_, moves) = listed.unwrap_or_else(|| panic!("{table} is not weighed"));
            assert_eq!(moves, bulk && table != "fact", "{table}");
        }
    }

    #[test]
    fn a_portion_is_never_more_than_all() {
        assert_eq!(portion(4096, 1, 3), 1365);
        assert_eq!(portion(u64::MAX, 7, 7), u64::MAX);
        assert_eq!(portion(100, 0, 0), 0);
    }
}
