//! Slices to rows and back.

use crate::error::StoreError;
use crate::opened::collect_from;
use crate::store::Store;
use deltabench_model::plan::{CellId, ServerId};
use deltabench_model::slice::{ErrorCount, Slice};
use rusqlite::Row;

pub(crate) const INSERT_SLICE: &str = "insert into slice (run, block, cell, round, position, server, \
    connection, started_ns, duration_ns, operations, failed, rows, server_cpu_ns, run_queue_wait_ns, \
    client_cpu_ns, foreign_cpu_ns, steal_ns, latency_histogram, void, idle_cpu_ns, switches, \
    cpu_pressure_ns, schedule_lag_ns, scripts, void_detail, background_cpu_ns, probe_ns, probing_ns) \
    values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, \
    ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28)";

pub(crate) const INSERT_ERROR: &str = "insert into slice_error (slice, ordinal, sqlstate, count, \
    first_message) values (?1, ?2, ?3, ?4, ?5)";

const SELECT_SLICES: &str = "select id, block, cell, round, position, server, connection, started_ns, \
    duration_ns, operations, failed, rows, server_cpu_ns, run_queue_wait_ns, client_cpu_ns, \
    foreign_cpu_ns, steal_ns, latency_histogram, void, idle_cpu_ns, switches, cpu_pressure_ns, \
    schedule_lag_ns, scripts, void_detail, background_cpu_ns, probe_ns, probing_ns from slice not indexed \
    where run = ?1 and id between ?2 and ?3 order by id";

const SELECT_ERRORS: &str = "select slice, sqlstate, count, first_message from slice_error \
    where slice between ?2 and ?3 \
    and exists (select 1 from slice where id = slice_error.slice and run = ?1) \
    order by slice, ordinal";

/// Slices of a run stand together, so they are read as they lie between the first and the last of them. By
/// the index of the run they would have to be looked up one by one and then sorted.
const SELECT_BOUNDS: &str =
    "select coalesce(min(id), 0), coalesce(max(id), 0) from slice where run = ?1";

impl Store {
    /// All slices of a run, in the order they were measured. Those of a visit that never ended are not
    /// there, nor what a kind made of its records ([`Store::records`]).
    ///
    /// Errors: `Damaged` for a value this version cannot read, `UnknownRun`, `Sqlite`.
    pub fn slices(&self, name: &str) -> Result<Vec<Slice>, StoreError> {
        let run = self.run_id(name)?;
        let bounds = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let (rows, errors): (Vec<_>, Vec<(i64, ErrorCount)>) =
            self.with_bulk(run, |from, path| {
                let bounds = collect_from(from, path, SELECT_BOUNDS, [run], bounds)?;
                let (first, last): (i64, i64) = bounds.first().copied().unwrap_or_default();
                let place = (run, first, last);
                let rows = collect_from(from, path, SELECT_SLICES, place, read_slice)?;
                Ok((
                    rows,
                    collect_from(from, path, SELECT_ERRORS, place, read_error)?,
                ))
            })?;
        let mut errors = errors.into_iter().peekable();
        let mut slices = Vec::with_capacity(rows.len());
        for (id, mut slice, void, scripts) in rows {
            if let Some(text) = scripts {
                slice.scripts = serde_json::from_str(&text)
                    .map_err(|error| self.damaged(format!("scripts of slice {id}: {error}")))?;
            }
            slice.void = self.void_reason(void, || format!("slice {id}"))?;
            while let Some((_, error)) = errors.next_if(|(owner, _)| *owner == id) {
                slice.errors.push(error);
            }
            slices.push(slice);
        }
        Ok(slices)
    }
}

fn read_error(row: &Row<'_>) -> rusqlite::Result<(i64, ErrorCount)> {
    let error = ErrorCount {
        sqlstate: row.get(1)?,
        count: row.get(2)?,
        first_message: row.get(3)?,
    };
    Ok((row.get(0)?, error))
}

fn read_slice(row: &Row<'_>) -> rusqlite::Result<(i64, Slice, Option<String>, Option<String>)> {
    let slice = Slice {
        block: row.get(1)?,
        cell: CellId(row.get(2)?),
        round: row.get(3)?,
        position: row.get(4)?,
        server: ServerId(row.get(5)?),
        connection: row.get(6)?,
        started_ns: row.get(7)?,
        duration_ns: row.get(8)?,
        operations: row.get(9)?,
        failed: row.get(10)?,
        rows: row.get(11)?,
        server_cpu_ns: row.get(12)?,
        run_queue_wait_ns: row.get(13)?,
        client_cpu_ns: row.get(14)?,
        foreign_cpu_ns: row.get(15)?,
        steal_ns: row.get(16)?,
        latency_histogram: row.get(17)?,
        scripts: Vec::new(),
        idle_cpu_ns: row.get(19)?,
        switches: row.get(20)?,
        cpu_pressure_ns: row.get(21)?,
        schedule_lag_ns: row.get(22)?,
        errors: Vec::new(),
        void: None,
        void_detail: row.get(24)?,
        background_cpu_ns: row.get(25)?,
        probe_ns: row.get(26)?,
        probing_ns: row.get(27)?,
    };
    Ok((row.get(0)?, slice, row.get(18)?, row.get(23)?))
}
