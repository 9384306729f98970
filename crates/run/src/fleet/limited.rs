//! Limits and caches of a fleet's servers.

use super::{Fleet, no_such_server, place_of};
use crate::limits::cached;
use crate::schedule::BlockSchedule;
use crate::visit::Address;
use deltabench_model::finding::Finding;
use deltabench_model::plan::{CacheState, Cell, ServerId};
use deltabench_model::problem::Problem;
use deltabench_observe::{AppliedLimits, CachedFiles, LimitReading};

impl Fleet<'_> {
    /// Brings the caches of a running server into the state that the plan wants before a visit to `cell`,
    /// after [`Fleet::renew`]. For [`CacheState::Cold`] the server is restarted; then its new address is
    /// returned, and earlier connections and process ids mean nothing any more. Afterwards nobody may send
    /// it anything that is not measured.
    ///
    /// Errors: it did not stop cleanly or does not start again, pages that cannot be dropped; with the tail
    /// of its log.
    pub fn prepare_caches(
        &mut self,
        schedule: &BlockSchedule,
        server: ServerId,
        cell: &Cell,
    ) -> Result<Option<Address>, Problem> {
        match self.plan.cache {
            CacheState::AsIs => Ok(None),
            CacheState::Cold => self.cool(schedule, server).map(Some),
            CacheState::Prewarmed => self.warm(schedule, server, cell).map(|_| None),
        }
    }

    /// Restarts a server with the pages of its data dropped from the page cache in between.
    fn cool(&mut self, schedule: &BlockSchedule, server: ServerId) -> Result<Address, Problem> {
        self.stop_one(schedule, server)?;
        // Starting drops the pages, as it does for each start of such a plan.
        self.start_one(schedule, server)
    }

    /// How much of a server's data directory the page cache holds right now.
    ///
    /// Errors: a file that cannot be looked into.
    pub fn cached(
        &self,
        schedule: &BlockSchedule,
        server: ServerId,
    ) -> Result<CachedFiles, Problem> {
        let cluster = self.own(place_of(schedule, server));
        cached(&cluster.ok_or_else(no_such_server)?.data_dir())
    }

    /// The limits of the servers as the kernel holds them, by data directory; empty without limits. All are
    /// alike but for the names of their groups.
    pub fn applied_limits(&self) -> Vec<AppliedLimits> {
        self.limits.applied()
    }

    /// What is to be known about limits and caches so far.
    pub fn limit_findings(&self) -> &[Finding] {
        self.limits.findings()
    }

    /// That the kernel killed processes of a server for its memory limit, in words; absent where it did not.
    pub fn killed_by_limit(&self, schedule: &BlockSchedule, server: ServerId) -> Option<String> {
        let killed = self.limit_reading(schedule, server)?.killed?;
        (killed > 0).then(|| {
            format!(
                "; the kernel killed {killed} of its processes since the run began because they needed more \
                 than the memory limit"
            )
        })
    }

    /// What the groups of a limited server have counted so far; absent without limits.
    pub fn limit_reading(
        &self,
        schedule: &BlockSchedule,
        server: ServerId,
    ) -> Option<LimitReading> {
        self.limits.read(place_of(schedule, server))
    }
}
