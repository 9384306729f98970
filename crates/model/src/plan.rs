//! What a run is going to do, decided before it starts and stored first.
//!
//! The plan with its seed fixes every order, key and draw of the run; a killed run continues from the same
//! plan.

use crate::installation::Installation;
use serde::{Deserialize, Serialize};

/// Name and version of the stored plan.
pub const PLAN_FORMAT: (&str, u32) = ("deltabench.plan", 1);

/// What a server is in the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The side that others are compared with.
    Base,
    /// A second copy of the base, treated like a candidate, so that the run measures its own false alarms.
    Placebo,
    /// A side whose change is in question.
    Candidate,
}

/// Index of a server in [`Plan::servers`].
pub type ServerId = u32;
/// Index of a cell in [`Plan::cells`].
pub type CellId = u32;

/// One server of the run: a role and the installation it runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedServer {
    /// Its place in the comparison.
    pub role: Role,
    /// What it runs.
    pub installation: Installation,
}

/// The family a workload is reported with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    /// Point look-ups.
    Point,
    /// Ranges without aggregation.
    Range,
    /// Ranges with aggregation, sorting or several statements.
    RangeAgg,
    /// Anything that writes.
    Write,
}

impl Group {
    /// The word used in files and tables.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Point => "point",
            Self::Range => "range",
            Self::RangeAgg => "range-agg",
            Self::Write => "write",
        }
    }
}

/// A workload step at a number of clients: one row of the result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Name of the workload, for example `point-query`.
    pub workload: String,
    /// Family for the report.
    pub group: Group,
    /// Concurrent connections for each server.
    pub clients: u32,
    /// Whether it changes data: such cells have tables of their own, restored before each block.
    pub writes: bool,
    /// SQL statements per operation, transaction control included, as published studies count them.
    pub statements_per_operation: u32,
}

/// Which cores do what during a visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// Client and server share one core, drawn at random for each visit. Best for one client (driver.md 0.5).
    SameCore,
    /// The client has one core, the servers all others.
    Split,
    /// Nothing is pinned.
    Free,
}

/// Durations and counts that shape the measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// Restart blocks.
    pub blocks: u32,
    /// Aim for the length of one slice, ms. The work of a slice is fixed from it at the start of each visit.
    pub slice_ms: u32,
    /// Random part of a slice's length, as a share: 0.2 means ±20 %.
    pub slice_jitter: f64,
    /// Measured seconds of one visit, for each server.
    pub visit_seconds: f64,
    /// Discarded seconds at the start of a visit, for each server.
    pub warmup_seconds: f64,
    /// Reconnects inside a visit: its rounds are divided over this many connections in turn.
    pub connections_per_visit: u32,
    /// Stop after the block that ends past this many seconds of measuring; absent means run all blocks.
    pub deadline_seconds: Option<f64>,
}

/// The data every server is loaded with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataSize {
    /// Number of tables.
    pub tables: u32,
    /// Rows of each table.
    pub rows: u64,
}

/// All that a run is going to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Always [`PLAN_FORMAT`]`.0`.
    pub format: String,
    /// Always [`PLAN_FORMAT`]`.1` when written by this version.
    pub version: u32,
    /// The one seed from which every order, key and draw comes.
    pub seed: u64,
    /// Base, placebo and candidates, in that order.
    pub servers: Vec<PlannedServer>,
    /// What is measured.
    pub cells: Vec<Cell>,
    /// Data set.
    pub data: DataSize,
    /// Measurement shape.
    pub timing: Timing,
    /// Placement of client and server for cells with one client, and for cells with more.
    pub placement_single: Placement,
    /// Placement for cells with more than one client.
    pub placement_multi: Placement,
    /// The smallest change that matters, as a share: 0.03 is 3 %.
    pub delta: f64,
    /// Whether data checksums are on (`Some`) or left to each version's own default (`None`).
    pub checksums: Option<bool>,
    /// Settings asked for on every server, in order; later ones win.
    pub settings: Vec<(String, String)>,
    /// The command line, for the report.
    pub command: Vec<String>,
}

impl Plan {
    /// Index of the base server.
    #[must_use]
    pub fn base(&self) -> ServerId {
        self.find(Role::Base).unwrap_or(0)
    }

    /// Index of the placebo server, if the run has one.
    #[must_use]
    pub fn placebo(&self) -> Option<ServerId> {
        self.find(Role::Placebo)
    }

    /// Indices of the candidates, in the order asked for.
    #[must_use]
    pub fn candidates(&self) -> Vec<ServerId> {
        (0..)
            .zip(&self.servers)
            .filter(|(_, s)| s.role == Role::Candidate)
            .map(|(id, _)| id)
            .collect()
    }

    /// The name of a server in tables and files: `base`, `placebo` or the candidate's resolved target.
    #[must_use]
    pub fn server_name(&self, id: ServerId) -> String {
        match self.servers.get(crate::units::index(u64::from(id))) {
            Some(s) if s.role == Role::Candidate => s.installation.resolved.clone(),
            Some(s) if s.role == Role::Placebo => "placebo".to_owned(),
            _ => "base".to_owned(),
        }
    }

    /// Placement of a cell.
    #[must_use]
    pub fn placement(&self, cell: &Cell) -> Placement {
        if cell.clients == 1 {
            self.placement_single
        } else {
            self.placement_multi
        }
    }

    fn find(&self, role: Role) -> Option<ServerId> {
        (0..)
            .zip(&self.servers)
            .find(|(_, s)| s.role == role)
            .map(|(id, _)| id)
    }
}
