//! Taking in what another host measured: a finished copy of its store, by content.

use crate::error::StoreError;
use crate::store::Store;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};
use std::path::Path;

/// Tables of which each row belongs to a run, and to nothing else.
pub(crate) const TABLES: [&str; 13] = [
    "run_state",
    "visit",
    "slice",
    "fact",
    "finding",
    "placebo_result",
    "visit_counters",
    "sample",
    "mark",
    "invalidation",
    "record",
    "instruction_count",
    "instruction_profile",
];

/// Where the plan of a run names the run that it belongs to.
const OWNERS: [&str; 4] = ["$.counts", "$.samples", "$.confirms", "$.sensitivity.of"];

/// A store that another host has finished, unpacked.
#[derive(Debug, Clone, Copy)]
pub struct Sealed<'a> {
    /// The directory with its file: a copy of our own, which is brought to the newest schema.
    pub lab: &'a Path,
    /// SHA-256 of the file as it was sealed, lower-case hex.
    pub sha256: &'a str,
    /// Its size as it was sealed.
    pub bytes: u64,
    /// What it is an attempt at.
    pub execution: &'a str,
    pub unit: u32,
    pub attempt: u32,
    /// The run of that unit.
    pub run: &'a str,
    /// Now, milliseconds since 1970.
    pub at_unix_ms: i64,
}

/// What came of merging.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merged {
    /// All of it was here already.
    Already,
    /// The planned run has its measurements now.
    Filled,
    /// The planned run had measurements of another attempt: this one is a run of its own, by this name.
    Beside(String),
}

impl Store {
    /// Writes a finished copy of this store, whatever its log still holds, into a file that must not exist.
    ///
    /// Errors: `Full`, `Sqlite`.
    pub fn copy_to(&self, file: &Path) -> Result<(), StoreError> {
        let fail = |source| StoreError::sqlite(&self.path, "copy", source);
        self.connection
            .execute("vacuum into ?1", [file.display().to_string()])
            .map(drop)
            .map_err(fail)
    }

    /// Takes in a sealed store, in one transaction: all of it or nothing. Merging it again changes nothing.
    ///
    /// Errors: `Newer`, `Foreign`, `Damaged` or `UnknownRun` of the sealed file; `Full`, `Sqlite`.
    pub fn merge(&mut self, sealed: Sealed<'_>) -> Result<Merged, StoreError> {
        let source = Store::open_existing(sealed.lab)?;
        source.check_whole(sealed.run)?;
        let file = source.path.clone();
        drop(source);
        let path = self.path.clone();
        let fail = |source| StoreError::sqlite(&path, "merge into", source);
        self.connection
            .execute("attach ?1 as sealed", [file.display().to_string()])
            .map_err(fail)?;
        let merged = merge_attached(&mut self.connection, sealed).map_err(fail);
        let detached = self.connection.execute_batch("detach sealed");
        let merged = merged?;
        detached.map_err(fail)?;
        Ok(merged)
    }

    /// Whether it can be read and the run has all that it was to have.
    fn check_whole(&self, run: &str) -> Result<(), StoreError> {
        let said: Vec<String> = self.collect("pragma quick_check(1)", [], |row| row.get(0))?;
        if said != ["ok"] {
            return Err(self.damaged(said.join("; ")));
        }
        self.plan(run)?;
        if let Some(archived) = self.archived_runs()?.first() {
            return Err(self.damaged(format!("run {archived} is archived in its own lab")));
        }
        match self.reached(run)? {
            Some(reached) if reached.state == crate::RunState::Finished => Ok(()),
            _ => Err(self.damaged(format!("run {run} is not finished"))),
        }
    }
}

fn merge_attached(connection: &mut Connection, sealed: Sealed<'_>) -> rusqlite::Result<Merged> {
    let step = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let known: bool = step.query_row(
        "select exists (select 1 from main.archive where sha256 = ?1)",
        [sealed.sha256],
        |row| row.get(0),
    )?;
    if known {
        return Ok(Merged::Already);
    }
    // The same measurements in another file: sealed again, or packed by another version.
    let same: Option<String> = step
        .query_row(
            "select r.name from main.run r join main.occasion o on o.run = r.id \
             where o.uid in (select uid from sealed.occasion) order by r.name <> ?1 limit 1",
            [sealed.run],
            |row| row.get(0),
        )
        .optional()?;
    let (merged, name) = match same {
        Some(name) => (Merged::Already, name),
        None => rows(&step, sealed.run)?,
    };
    let values = (
        sealed.sha256,
        sealed.execution,
        sealed.unit,
        sealed.attempt,
        name,
        i64::try_from(sealed.bytes).unwrap_or(i64::MAX),
        sealed.at_unix_ms,
    );
    step.execute(
        "insert into main.archive (sha256, unit, attempt, name, bytes, at_unix_ms) \
         select ?1, u.id, ?4, ?5, ?6, ?7 from unit u join execution e on e.id = u.execution \
         where e.name = ?2 and u.unit = ?3",
        values,
    )?;
    step.commit()?;
    Ok(merged)
}

/// Copies all rows of all runs; says which run here is that of the unit.
fn rows(step: &Transaction<'_>, run: &str) -> rusqlite::Result<(Merged, String)> {
    step.execute_batch(
        "create temp table if not exists merging (src integer primary key, dst integer not null); \
         delete from temp.merging",
    )?;
    let filled = fill(step, run)?;
    let names: Vec<(i64, String)> = step
        .prepare("select id, name from sealed.run order by id")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    // All runs of a file get the same ending, so that those which belong together are still seen to.
    let ending = ending(step, &names, filled.then_some(run))?;
    for (id, name) in &names {
        if filled && name == run {
            continue;
        }
        add_run(step, *id, &format!("{name}{ending}"), &ending)?;
    }
    for table in TABLES {
        let columns: String = step.query_row(
            "select group_concat(name, ', ') from pragma_table_info(?1) where name not in ('id', 'run')",
            [table],
            |row| row.get(0),
        )?;
        let own: String = columns
            .split(", ")
            .map(|column| format!("v.{column}"))
            .collect::<Vec<_>>()
            .join(", ");
        step.execute_batch(&format!(
            "insert into main.{table} (run, {columns}) select m.dst, {own} from sealed.{table} v \
             join temp.merging m on m.src = v.run order by v.id"
        ))?;
    }
    step.execute_batch(OTHER_TABLES)?;
    let name = format!("{run}{ending}");
    Ok(match filled {
        true => (Merged::Filled, run.to_owned()),
        false => (Merged::Beside(name.clone()), name),
    })
}

/// Errors of slices, hosts and series have keys of their own here.
const OTHER_TABLES: &str = "
insert into main.slice_error (slice, ordinal, sqlstate, count, first_message)
    select d.id, e.ordinal, e.sqlstate, e.count, e.first_message from sealed.slice_error e
    join sealed.slice v on v.id = e.slice join temp.merging m on m.src = v.run
    join main.slice d on d.run = m.dst and d.block = v.block and d.cell = v.cell
        and d.round = v.round and d.position = v.position;
insert into main.host (uid, class, kernel, microcode, from_unix_ms)
    select h.uid, h.class, h.kernel, h.microcode, h.from_unix_ms from sealed.host h
    where not exists (select 1 from main.host k where k.uid = h.uid and k.class = h.class
        and k.kernel is h.kernel and k.microcode is h.microcode) order by h.id;
insert into main.occasion (run, host, uid, boot_id, measurement_version, at_unix_ms)
    select m.dst, (select min(k.id) from main.host k where k.uid = h.uid and k.class = h.class
        and k.kernel is h.kernel and k.microcode is h.microcode),
        o.uid, o.boot_id, o.measurement_version, o.at_unix_ms
    from sealed.occasion o join sealed.host h on h.id = o.host
    join temp.merging m on m.src = o.run order by o.id;
insert or ignore into main.series (key, slug, content)
    select key, slug, content from sealed.series order by id;
insert or ignore into main.cell_series (run, cell, series)
    select m.dst, c.cell, d.id from sealed.cell_series c join temp.merging m on m.src = c.run
    join sealed.series s on s.id = c.series join main.series d on d.key = s.key order by c.cell;
";

/// Whether the planned run of this name takes the measurements: it has none yet.
fn fill(step: &Transaction<'_>, run: &str) -> rusqlite::Result<bool> {
    let changed = step.execute(
        "insert into temp.merging (src, dst) select s.id, r.id from sealed.run s \
         join main.run r on r.name = s.name where s.name = ?1 \
         and not exists (select 1 from main.run_state t where t.run = r.id and t.state <> 'planned')",
        [run],
    )?;
    Ok(changed > 0)
}

/// Nothing, or the first of `~2`, `~3`, … with which all these names are free here.
fn ending(
    step: &Transaction<'_>,
    names: &[(i64, String)],
    filled: Option<&str>,
) -> rusqlite::Result<String> {
    let mut is_taken = step.prepare("select exists (select 1 from main.run where name = ?1)")?;
    let mut number = 1_u32;
    loop {
        let ending = match number {
            1 => String::new(),
            number => format!("~{number}"),
        };
        let mut free = true;
        for (_, name) in names {
            if filled != Some(name) {
                let name = format!("{name}{ending}");
                free &= !is_taken.query_row([name], |row| row.get::<_, bool>(0))?;
            }
        }
        if free {
            return Ok(ending);
        }
        number += 1;
    }
}

/// A run by this name. One with an ending is no part of the execution any more, and what belongs to another
/// run says how that is called here.
fn add_run(step: &Transaction<'_>, id: i64, name: &str, ending: &str) -> rusqlite::Result<()> {
    let mut plan: String =
        step.query_row("select plan from sealed.run where id = ?1", [id], |row| {
            row.get(0)
        })?;
    if !ending.is_empty() {
        plan = step.query_row("select json_remove(?1, '$.experiment')", [&plan], |row| {
            row.get(0)
        })?;
        for owner in OWNERS {
            plan = step.query_row(
                "select case when ?1 ->> ?2 is null then ?1 \
                 else json_set(?1, ?2, (?1 ->> ?2) || ?3) end",
                (&plan, owner, ending),
                |row| row.get(0),
            )?;
        }
    }
    step.execute(
        "insert into main.run (name, plan, started_unix_ms, written_by) \
         select ?2, ?3, started_unix_ms, written_by from sealed.run where id = ?1",
        (id, name, plan),
    )?;
    let here = step.last_insert_rowid();
    step.execute(
        "insert into temp.merging (src, dst) values (?1, ?2)",
        (id, here),
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_that_belongs_to_a_run_is_merged() {
        let lab = tempfile::tempdir().unwrap();
        let store = Store::open(lab.path()).unwrap();
        let tables: Vec<String> = store
            .collect(
                "select m.name from sqlite_schema m, pragma_table_info(m.name) c \
                 where m.type = 'table' and c.name = 'run' order by m.name",
                [],
                |row| row.get(0),
            )
            .unwrap();
        let mut merged: Vec<&str> = TABLES
            .into_iter()
            .chain(["occasion", "cell_series"])
            // A file in which a run is archived is not merged.
            .chain(["archived"])
            .collect();
        merged.sort_unstable();
        assert_eq!(tables, merged, "a new table must be merged too");
    }
}
