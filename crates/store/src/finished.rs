//! The runs that have ended as planned, without their plans: what an analysis over all of them goes through.

use crate::error::StoreError;
use crate::sealed_run::path_of;
use crate::store::Store;
use std::os::unix::fs::MetadataExt;

/// A finished run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedRun {
    pub run: String,
    /// When it was first measured, milliseconds since 1970; absent for one that was only planned.
    pub began_unix_ms: Option<i64>,
    pub ended_unix_ms: i64,
    /// Differs if anything was stored that a judgement of this run by itself rests on. What people withdrew
    /// of it and what other runs say is not in it.
    pub stamp: String,
}

/// Numbers of rows only rise, and names are given once in a lab. In another lab of the same place the key of
/// the occasion is another.
const SELECT: &str = "select r.name, b.at, s.at_unix_ms, \
    r.id || ' ' || r.started_unix_ms || ' ' || length(r.plan) || ' ' || coalesce(o.uid, '') || ' ' || \
    coalesce(v.visits, 0) || ' ' || coalesce(d.at, 0) || ' ' || coalesce(f.at, 0) || ' ' || \
    coalesce(g.at, 0), a.sha256 \
    from run r \
    join (select run, max(id) at from run_state group by run) e on e.run = r.id \
    join run_state s on s.id = e.at and s.state = 'finished' \
    left join (select run, min(at_unix_ms) at from run_state where state = 'running' group by run) b \
        on b.run = r.id \
    left join (select run, max(id) at from occasion group by run) n on n.run = r.id \
    left join occasion o on o.id = n.at \
    left join (select run, count(*) visits from visit group by run) v on v.run = r.id \
    left join (select run, max(id) at from record group by run) d on d.run = r.id \
    left join (select run, max(id) at from fact group by run) f on f.run = r.id \
    left join (select run, max(id) at from finding group by run) g on g.run = r.id \
    left join (select run, max(id) at from archived group by run) m on m.run = r.id \
    left join archived a on a.id = m.at and a.state = 'archived' \
    order by s.at_unix_ms, r.name";

impl Store {
    /// The finished runs, in the order in which they ended.
    ///
    /// Errors: `Sqlite`.
    pub fn finished(&self) -> Result<Vec<FinishedRun>, StoreError> {
        let rows: Vec<(FinishedRun, Option<String>)> = self.collect(SELECT, [], |row| {
            let run = FinishedRun {
                run: row.get(0)?,
                began_unix_ms: row.get(1)?,
                ended_unix_ms: row.get(2)?,
                stamp: row.get(3)?,
            };
            Ok((run, row.get(4)?))
        })?;
        let stamped = |(mut run, sealed): (FinishedRun, Option<String>)| {
            run.stamp.push_str(&self.seal_stamp(sealed.as_deref()));
            run
        };
        Ok(rows.into_iter().map(stamped).collect())
    }

    /// Which sealed file holds the bulk of a run, and whether that is the file which was there before; empty
    /// where the bulk is in the store.
    pub(crate) fn seal_stamp(&self, sha256: Option<&str>) -> String {
        let Some(sha256) = sha256 else {
            return String::new();
        };
        match std::fs::metadata(path_of(&self.lab, sha256)) {
            Ok(found) => format!(
                " {sha256} {} {} {}",
                found.len(),
                found.mtime(),
                found.mtime_nsec()
            ),
            Err(_) => format!(" {sha256} gone"),
        }
    }
}
