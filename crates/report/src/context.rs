//! What a report says besides the comparison and the plan.

use deltabench_model::installation::{Build, Setting};
use deltabench_model::plan::{Plan, PlannedServer, ServerId};
use deltabench_model::units::index;

/// Facts recorded with the run, for the report's provenance.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReportContext {
    /// The run's name.
    pub run: String,
    /// How far the run has come: `finished`, `interrupted`, …
    pub state: String,
    /// Start, milliseconds since 1970; absent when not known.
    pub started_unix_ms: Option<i64>,
    /// Version of deltabench that makes the report.
    pub deltabench_version: String,
    /// The host as observed, any JSON; null when not known.
    pub host: serde_json::Value,
    /// What the run could get: huge pages, shared buffers and the like, any JSON; null when not known.
    pub conditions: serde_json::Value,
    /// What each started server said of itself.
    pub servers: Vec<ServerFacts>,
}

/// What one started server said of itself.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerFacts {
    /// Which server.
    pub server: ServerId,
    /// How it was compiled.
    pub build: Option<Build>,
    /// Its settings as read back.
    pub settings: Vec<Setting>,
}

impl ReportContext {
    /// How a server was compiled: from the running server, else from the plan.
    pub(crate) fn build<'a>(&'a self, plan: &'a Plan, id: ServerId) -> Option<&'a Build> {
        let told = self.facts(id).and_then(|facts| facts.build.as_ref());
        told.or_else(|| planned(plan, id).and_then(|server| server.installation.build.as_ref()))
    }

    pub(crate) fn facts(&self, id: ServerId) -> Option<&ServerFacts> {
        self.servers.iter().find(|facts| facts.server == id)
    }
}

pub(crate) fn planned(plan: &Plan, id: ServerId) -> Option<&PlannedServer> {
    plan.servers.get(index(u64::from(id)))
}

/// The resolved target of a server, for sentences.
pub(crate) fn resolved(plan: &Plan, id: ServerId) -> String {
    planned(plan, id).map_or_else(
        || "unknown".to_owned(),
        |server| server.installation.resolved.clone(),
    )
}
