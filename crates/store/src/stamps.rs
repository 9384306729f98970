//! Whether anything was stored since somebody last looked.

use crate::error::StoreError;
use crate::store::Store;
use deltabench_model::plan::Plan;

/// A run with a text that differs whenever something more is stored of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunStamp {
    pub run: String,
    pub stamp: String,
}

/// Numbers of rows only rise. The rows that an archived run loses are in the file whose hash it then has.
const SELECT: &str = "select r.name, r.id || ' ' || \
    (select max(id) from run_state where run = r.id) || ' ' || \
    (select count(*) from visit where run = r.id) || ' ' || \
    coalesce(d.at, 0) || ' ' || coalesce(f.at, 0) || ' ' || coalesce(g.at, 0) || ' ' || \
    coalesce(i.at, 0) || ' ' || coalesce(c.at, 0) || ' ' || coalesce(p.at, 0) || ' ' || \
    coalesce(n.uid, ''), a.sha256 from run r \
    left join (select run, max(id) at from record group by run) d on d.run = r.id \
    left join (select run, max(id) at from fact group by run) f on f.run = r.id \
    left join (select run, max(id) at from finding group by run) g on g.run = r.id \
    left join (select run, max(id) at from invalidation group by run) i on i.run = r.id \
    left join (select run, max(id) at from instruction_count group by run) c on c.run = r.id \
    left join (select run, max(id) at from placebo_result group by run) p on p.run = r.id \
    left join occasion n on n.id = (select max(id) from occasion where run = r.id) \
    left join archived a on a.state = 'archived' and \
        a.id = (select max(id) from archived where run = r.id) \
    order by r.started_unix_ms, r.id";

impl Store {
    /// A number that changes when another process has written to the file. Where a copy is read that is the
    /// lab's own file: [`Store::renew`] then gets what was written.
    ///
    /// Errors: `Sqlite`.
    pub fn data_version(&self) -> Result<i64, StoreError> {
        if let Some(copy) = &self.copy {
            return Ok(copy.version());
        }
        let found: Vec<i64> = self.collect("pragma data_version", [], |row| row.get(0))?;
        Ok(found.into_iter().next().unwrap_or_default())
    }

    /// All runs with their stamps, oldest first.
    ///
    /// Errors: `Sqlite`.
    pub fn stamps(&self) -> Result<Vec<RunStamp>, StoreError> {
        let rows: Vec<(String, String, Option<String>)> = self.collect(SELECT, [], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })?;
        let stamped = |(run, stamp, sealed): (String, String, Option<String>)| RunStamp {
            run,
            stamp: stamp + &self.seal_stamp(sealed.as_deref()),
        };
        Ok(rows.into_iter().map(stamped).collect())
    }

    /// Blocks in which all of a plan was measured, and visits; where blocks are passes, good records.
    ///
    /// Errors: `UnknownRun`, `Sqlite`.
    pub fn done(&self, run: &str, plan: &Plan) -> Result<(u64, u64), StoreError> {
        self.progress_of(self.run_id(run)?, plan)
    }
}
