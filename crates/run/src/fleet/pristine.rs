//! Data directories as they were before anything was measured, for plans whose passes, or counted starts,
//! begin with one.

use super::{Fleet, no_such_server, place_of};
use crate::schedule::BlockSchedule;
use deltabench_model::plan::ServerId;
use deltabench_model::problem::Problem;
use deltabench_server::{Cluster, ClusterSpec};
use std::path::PathBuf;

/// What nobody writes to: a cluster that is never started, with the data of the servers of an installation.
pub(super) struct Pristine {
    /// Place of the first server with the installation.
    leader: usize,
    cluster: Cluster,
}

impl Fleet<'_> {
    /// Makes a cluster that will keep the data of the installation of the server in `place`, if the plan's
    /// passes or counted starts begin with such data and there is none for that installation yet.
    pub(super) fn add_pristine(
        &mut self,
        place: usize,
        spec: &ClusterSpec<'_>,
        host: &super::Host,
    ) -> Result<(), Problem> {
        let kept = self.plan.work.has_passes() || self.plan.observing.counting.is_some();
        if kept && self.leader(place) == place {
            let name = format!("pristine{place}");
            let cluster = Cluster::without_data(&self.workspace, &name, spec, &host.user)?;
            self.pristine.push(Pristine {
                leader: place,
                cluster,
            });
        }
        Ok(())
    }

    /// Keeps the data of all servers as they are now, stopped. Where passes begin with it, all servers get
    /// copies: the one that was loaded, too.
    pub(super) fn keep_pristine(&mut self) -> Result<(), Problem> {
        let Self {
            pristine, members, ..
        } = self;
        for kept in pristine {
            let super::Member::Own(leader) = members.get(kept.leader).ok_or_else(no_such_server)?
            else {
                return Err(no_such_server());
            };
            kept.cluster.copy_data(leader)?;
        }
        if self.pristine.is_empty() {
            return Ok(());
        }
        let places = 0..self.members.len();
        if self.plan.work.has_passes() {
            places
                .clone()
                .try_for_each(|place| self.restore_place(place))?;
        }
        self.untouched = places.collect();
        Ok(())
    }

    /// Replaces the data directory of a stopped server with what it was before anything was measured, if it
    /// has been started since: no tables, no WAL and no files of passes before. All of it is on disk when
    /// this returns.
    ///
    /// Errors: it runs, a full disk; the plan is of a kind for which nothing was kept.
    pub fn restore(&mut self, schedule: &BlockSchedule, server: ServerId) -> Result<(), Problem> {
        self.restore_place(place_of(schedule, server))
    }

    pub(super) fn restore_place(&mut self, place: usize) -> Result<(), Problem> {
        // Copies cost more than they seem to: ext4 makes files slowly for a minute after others were removed.
        if self.untouched.contains(&place) {
            return Ok(());
        }
        let leader = self.leader(place);
        let Self {
            pristine, members, ..
        } = self;
        let kept = pristine.iter().find(|kept| kept.leader == leader);
        match (kept, members.get_mut(place)) {
            (Some(kept), Some(super::Member::Own(cluster))) => cluster.copy_data(&kept.cluster)?,
            _ => return Err(no_such_server()),
        }
        self.limits.mark_strange(place);
        Ok(())
    }

    /// The log of the cluster that plays `server` in a block.
    ///
    /// Errors: there is none: the server was there before.
    pub fn log_path(&self, schedule: &BlockSchedule, server: ServerId) -> Result<PathBuf, Problem> {
        let own = self.own(place_of(schedule, server));
        own.map(Cluster::log_path).ok_or_else(no_such_server)
    }
}
