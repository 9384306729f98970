//! The runs that have ended as planned, without their plans: what an analysis over all of them goes through.

use crate::error::StoreError;
use crate::sealed_run::path_of;
use crate::store::Store;
use std::collections::BTreeSet;
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

/// Finished runs of which no night has said what they found, as far as nights record that.
const SELECT_UNTOLD: &str = "select r.name from run r \
    join run_state s on s.id = (select max(id) from run_state where run = r.id) \
    where s.state = 'finished' and s.id > (select max(run_state) from told_since) \
    and not exists (select 1 from fact f where f.run = r.id and f.kind = 'night')";

impl Store {
    /// The finished runs of which no night has said what they found, by name. Runs that had ended before
    /// nights recorded that are not among them.
    ///
    /// Errors: `Sqlite`.
    pub fn untold(&self) -> Result<BTreeSet<String>, StoreError> {
        let all: Vec<String> = self.collect(SELECT_UNTOLD, [], |row| row.get(0))?;
        Ok(all.into_iter().collect())
    }

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FILE_NAME;
    use crate::migrations::MIGRATIONS;
    use crate::runs::RunState;
    use deltabench_model::fact::ToldByNight;
    use rusqlite::Connection;

    /// Takes the step back that says from when on nights record what they told.
    fn as_before(lab: &std::path::Path) {
        let raw = Connection::open(lab.join(FILE_NAME)).unwrap();
        assert_eq!(MIGRATIONS[17].1, "told-nights");
        raw.execute_batch(
            "drop table told_since; alter table slice drop column probe_ns; \
             alter table slice drop column probing_ns; delete from migration where number >= 18",
        )
        .unwrap();
    }

    fn untold(store: &Store) -> Vec<String> {
        store.untold().unwrap().into_iter().collect()
    }

    #[test]
    fn what_ended_before_nights_recorded_what_they_told_is_not_told_again() {
        let lab = tempfile::tempdir().unwrap();
        let mut store = Store::open(lab.path()).unwrap();
        let plan = deltabench_testkit::small_run::plan();
        let run = |store: &mut Store, name: &str, state| {
            store.create_run(name, &plan, RunState::Running, 1).unwrap();
            store.finish_run(name, state, 2).unwrap();
        };
        run(&mut store, "told by an older version", RunState::Finished);
        run(&mut store, "resumed later", RunState::Interrupted);
        drop(store);
        as_before(lab.path());
        let mut store = Store::open(lab.path()).unwrap();
        assert!(untold(&store).is_empty());
        { store.finish_run("resumed later", RunState::Finished, 3) }.unwrap();
        run(&mut store, "killed", RunState::Finished);
        run(&mut store, "told", RunState::Finished);
        let told = ToldByNight(9);
        store.add_fact("told", (None, None), &told).unwrap();
        assert_eq!(untold(&store), ["killed", "resumed later"]);
        // In a lab where nights record it already, all that ended since the first such night counts.
        drop(store);
        as_before(lab.path());
        let mut store = Store::open(lab.path()).unwrap();
        assert!(untold(&store).is_empty());
        run(&mut store, "killed again", RunState::Finished);
        drop(store);
        as_before(lab.path());
        assert_eq!(untold(&Store::open(lab.path()).unwrap()), ["killed again"]);
    }
}
