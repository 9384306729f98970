//! What is stored beside the slices while blocks run: counters, the one-second series, marks from logs.

use super::{Session, store_problem};
use crate::clock::now_ns;
use crate::facts::Sources;
use crate::fleet::Fleet;
use crate::schedule::BlockSchedule;
use crate::site::{SCHEMA, WORK};
use crate::visit::Address;
use deltabench_model::counter::{Mark, VisitCounters};
use deltabench_model::plan::{Plan, PlannedServer, ServerId};
use deltabench_model::problem::Problem;
use deltabench_observe::{MachineSources, Postmaster, Series, SliceMeters, log_marks};
use std::path::Path;
use std::time::Duration;

/// Time between two samples of the series.
const EVERY: Duration = Duration::from_secs(1);

/// Starts the series where the plan wants it and the host can tell.
pub fn series(plan: &Plan, directory: &Path) -> Option<Series> {
    if !plan.observing.counters {
        return None;
    }
    Series::start(directory, EVERY).ok()
}

/// The main processes that the series watches, in the plan's order. That of several servers, which are
/// schemas of one, stands with the first of them.
pub fn postmasters(addresses: &[Address]) -> Vec<(ServerId, Postmaster)> {
    let numbered: Vec<(ServerId, &Address)> = ServerId::each().zip(addresses).collect();
    postmasters_of(&numbered)
}

/// The same of some servers, with their numbers.
pub fn postmasters_of(addresses: &[(ServerId, &Address)]) -> Vec<(ServerId, Postmaster)> {
    let mut all: Vec<(ServerId, Postmaster)> = Vec::new();
    for &(server, address) in addresses {
        if !all
            .iter()
            .any(|(_, known)| known.is_same(&address.postmaster))
        {
            all.push((server, address.postmaster.clone()));
        }
    }
    all
}

/// Whether a mark is about the tables of the Insert Benchmark, or the whole server: every pass has a new
/// database, whose catalogs are vacuumed, too.
fn is_of_passes(mark: &Mark) -> bool {
    mark.kind == "checkpoint" || mark.text.starts_with(&format!("{WORK}.{SCHEMA}."))
}

impl Session<'_> {
    /// Stores, once a session, where the figures of the host come from.
    ///
    /// Errors: a host that does not tell what processes use; a store that cannot be written.
    pub fn record_sources(&mut self) -> Result<(), Problem> {
        let meters = SliceMeters::open(&[]).map_err(|error| {
            Problem::new("the CPU time of servers cannot be read on this host")
                .detail(error.to_string())
        })?;
        let sources = vec![MachineSources {
            host: None,
            short_lived: false,
            sources: meters.sources(),
        }];
        self.fact(None, &Sources(sources))
    }

    /// Stores that a block starts.
    pub fn mark_block(&mut self, text: String) -> Result<(), Problem> {
        let mark = Mark {
            at_ns: now_ns(),
            server: None,
            kind: "block".to_owned(),
            text,
        };
        self.store
            .add_marks(self.run, &[mark])
            .map_err(store_problem)
    }

    /// Stores what these servers wrote into their logs since then, where anything is collected.
    pub fn keep_marks(
        &mut self,
        began_ns: u64,
        schedule: &BlockSchedule,
        servers: &[ServerId],
        fleet: &Fleet<'_>,
    ) -> Result<(), Problem> {
        if !self.plan.observing.counters {
            return Ok(());
        }
        let marks: Vec<Mark> = servers
            .iter()
            .flat_map(|&server| log_marks::marks(server, &fleet.log(schedule, server)))
            .filter(|mark| mark.at_ns >= began_ns)
            .filter(|mark| !self.plan.work.has_passes() || is_of_passes(mark))
            .collect();
        self.store
            .add_marks(self.run, &marks)
            .map_err(store_problem)
    }

    /// Stores what a visit counted, and the series so far, with the visit.
    pub fn keep_observed(
        &mut self,
        counters: &[VisitCounters],
        series: Option<&mut Series>,
    ) -> Result<(), Problem> {
        for counted in counters {
            self.store
                .add_counters(self.run, counted)
                .map_err(store_problem)?;
        }
        let mut samples = series.map(Series::drain).unwrap_or_default();
        let own = |server: &PlannedServer| server.installation.remote.is_none();
        if !self.plan.servers.iter().any(own) {
            // This machine's device has nobody's data on it.
            for sample in &mut samples {
                let of_here = |key: &str| key.starts_with("device_") && !key.contains('@');
                sample.values.retain(|key, _| !of_here(key));
            }
        }
        self.store
            .add_samples(self.run, &samples)
            .map_err(store_problem)
    }
}
