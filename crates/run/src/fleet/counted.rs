//! Servers that run under a counter of instructions, each start on a copy of its data of its own.

use super::Fleet;
use crate::admin::{connect, query, text};
use crate::load::{self, DataSet, Making, uses_work};
use crate::site::{MAINTENANCE, Site, login, tables_of};
use deltabench_model::endpoint::{Endpoint, Login};
use deltabench_model::plan::{Cell, Plan, ServerId};
use deltabench_model::problem::Problem;
use deltabench_server::{Catalogue, Counter, Slot};
use std::path::PathBuf;

/// First port of servers under a counter.
const COUNTING_PORT: u16 = 5600;

/// What says how a server reads.
const IO_METHOD: &str = "io_method";

/// First version that can read through other processes.
const IO_METHOD_SINCE: u32 = 180_000;

/// First version whose processes say what they are, and how to ask for the one that writes WAL.
const BACKEND_TYPE_SINCE: u32 = 100_000;
const WAL_WRITER: &str = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'";

/// First version that makes an index in several processes.
const PARALLEL_INDEXES_SINCE: u32 = 110_000;

/// First version that compiles expressions.
const JIT_SINCE: u32 = 110_000;

/// A running server under a counter, as its client on another thread needs it. It is the fleet that stops it.
#[derive(Debug, Clone)]
pub struct CountedServer<'a> {
    /// Which server of the plan.
    pub server: ServerId,
    /// Its main process.
    pub postmaster_pid: u32,
    /// Where its processes write what they counted.
    pub counts: PathBuf,
    plan: &'a Plan,
    tables: DataSet,
    site: Site,
    version_num: u32,
}

impl<'a> Fleet<'a> {
    /// Launches a server under a counter, on its data as loaded; [`Fleet::counted`] waits for it.
    ///
    /// Must be called on a thread that outlives the server.
    ///
    /// Errors: those of [`deltabench_server::Cluster::launch`]; a plan that counts nothing, for which no data
    /// were kept.
    pub fn launch_counted(&mut self, server: ServerId, counter: &Counter) -> Result<(), Problem> {
        let place = server.index();
        self.restore_place(place)?;
        self.untouched.remove(&place);
        let installation = &self.planned(place)?.installation;
        let version_num = installation.version_num;
        let mut counting = under_a_counter(version_num);
        // Commits of the development of 18 may be older than this setting.
        if version_num >= IO_METHOD_SINCE && !Catalogue::of(installation)?.has(IO_METHOD)? {
            counting.retain(|(name, _)| name != IO_METHOD);
        }
        let mut settings = self.asked_settings(place).to_vec();
        settings.extend(counting);
        let mut environment = Vec::new();
        if let Some(burn) = &self.burn {
            environment = burn.environment(self.planned(place)?.burn_ns.unwrap_or(0));
        }
        let slot = Slot {
            port: COUNTING_PORT + u16::try_from(place).unwrap_or(0),
            environment,
            counter: Some(counter.clone()),
            ..Slot::default()
        };
        self.cluster(place)?.launch(&slot, &settings)
    }

    /// Waits until a server that was launched under a counter accepts connections.
    ///
    /// Errors: those of [`deltabench_server::Cluster::wait_until_ready`].
    pub fn counted(&mut self, server: ServerId) -> Result<CountedServer<'a>, Problem> {
        let place = server.index();
        let version_num = self.planned(place)?.installation.version_num;
        let cluster = self.cluster(place)?;
        let postmaster_pid = cluster.wait_until_ready()?.postmaster_pid;
        let counts = cluster.counts_dir();
        Ok(CountedServer {
            server,
            postmaster_pid,
            counts,
            plan: self.plan,
            tables: self.tables.clone(),
            site: self.site(place, place)?,
            version_num,
        })
    }

    /// Stops a server at once; its data are not wanted any more.
    ///
    /// Errors: there is no such server.
    pub fn abandon(&mut self, server: ServerId) -> Result<(), Problem> {
        self.cluster(server.index())?.abandon();
        Ok(())
    }

    /// A problem with the end of a server's log.
    #[must_use]
    pub fn explained(&self, problem: Problem, server: ServerId) -> Problem {
        self.with_log(problem, server.index())
    }
}

impl CountedServer<'_> {
    /// Brings the tables that cells read where they are kept into shared buffers.
    ///
    /// Errors: whatever the server answered.
    pub fn warm(&self) -> Result<(), Problem> {
        load::prewarm_read(&self.site, self.plan, &self.tables)
    }

    /// The process that writes WAL for others, as far as the server says which one it is (from 10).
    ///
    /// Errors: whatever the server answered.
    pub fn wal_writer(&self) -> Result<Option<u32>, Problem> {
        if self.version_num < BACKEND_TYPE_SINCE {
            return Ok(None);
        }
        let mut client = connect(&self.site.endpoint, &login(MAINTENANCE))?;
        let rows = query(&mut client, WAL_WRITER)?;
        Ok(rows
            .into_iter()
            .next()
            .and_then(|row| text(row).parse().ok()))
    }

    /// Makes ready what a cell needs, and says where its clients connect: one that writes gets tables that
    /// nobody has written to.
    ///
    /// Errors: whatever the server answered.
    pub fn prepare(&self, cell: &Cell) -> Result<(Endpoint, Login), Problem> {
        if uses_work(self.plan.order, cell) {
            let what = (self.plan, &self.tables);
            load::renew(
                &self.site,
                what,
                cell.state,
                (self.version_num, Making::Synced),
            )?;
        }
        let login = self.site.home.login(tables_of(self.plan.order, cell));
        Ok((self.site.endpoint.clone(), login))
    }
}

/// Settings without which work would be done where it is not counted, or that a counter cannot bear.
fn under_a_counter(version_num: u32) -> Vec<(String, String)> {
    let all: [(&str, &str, u32); 6] = [
        ("huge_pages", "off", 0),
        // The kernel's part is not counted, and tables for a cell that writes are there in a fraction of the
        // time. A commit that waits is counted without the call of `fdatasync`.
        ("fsync", "off", 0),
        // A statement is one process.
        ("max_parallel_workers_per_gather", "0", 0),
        (
            "max_parallel_maintenance_workers",
            "0",
            PARALLEL_INDEXES_SINCE,
        ),
        ("jit", "off", JIT_SINCE),
        // Workers would read for the backend.
        (IO_METHOD, "sync", IO_METHOD_SINCE),
    ];
    let known = all.iter().filter(|(.., since)| version_num >= *since);
    known
        .map(|(name, value, _)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_get_the_settings_of_counting_that_they_know() {
        let names = |version| -> Vec<String> {
            let settings = under_a_counter(version).into_iter();
            settings.map(|(name, _)| name).collect()
        };
        assert_eq!(
            names(90_624),
            ["huge_pages", "fsync", "max_parallel_workers_per_gather"]
        );
        assert_eq!(names(170_011).last().unwrap(), "jit");
        assert_eq!(names(180_006).last().unwrap(), "io_method");
    }
}
