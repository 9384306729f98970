//! Which units share a host, and all that a host must know of them: `lanes.json`.

use crate::file::{By, OnLoss};
use crate::fixture::Fixture;
use crate::ship::Shipped;
use deltabench_model::plan::Plan;
use deltabench_model::problem::Problem;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Format of the file.
pub const LANES_FORMAT: (&str, u32) = ("deltabench.lanes", 2);

/// Minutes that every lane may take beside its units: copying, looking at the host.
const ASIDE_MINUTES: u32 = 30;

/// An execution as hosts know it. Nothing is resolved or chosen again there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Lanes {
    pub format: String,
    pub version: u32,
    pub execution: String,
    /// The lab that all is gathered into, on the machine where the execution was started.
    pub lab: PathBuf,
    /// SHA-256 of the deltabench that all units use.
    pub binary_sha256: String,
    /// The fleet file: its name and its text.
    pub fleet: (String, String),
    /// Options of `deltabench fleet lane`: how servers run on the hosts.
    pub options: Vec<String>,
    /// What is measured instead of servers, in tests of the machinery.
    pub fixture: Option<Fixture>,
    /// Trees of servers that hosts may have to copy.
    pub shipped: Vec<Shipped>,
    pub units: Vec<Unit>,
    pub lanes: Vec<Lane>,
}

impl Default for Lanes {
    /// No units and no lanes, in the format of this version.
    fn default() -> Self {
        Self {
            format: LANES_FORMAT.0.to_owned(),
            version: LANES_FORMAT.1,
            execution: String::new(),
            lab: PathBuf::new(),
            binary_sha256: String::new(),
            fleet: (String::new(), String::new()),
            options: Vec::new(),
            fixture: None,
            shipped: Vec::new(),
            units: Vec::new(),
            lanes: Vec::new(),
        }
    }
}

/// What every version of the file begins with.
#[derive(Deserialize)]
struct Head {
    format: String,
    version: u32,
}

/// One part of the experiment in one repetition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Unit {
    /// Its number, from 1, in the order of the execution's runs.
    pub unit: u32,
    pub run: String,
    pub plan: Plan,
    /// Seconds that it is expected to take.
    pub seconds: f64,
}

/// Units that share a host, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lane {
    /// Its number, from 0: the element of the engine's array.
    pub lane: u32,
    pub units: Vec<u32>,
    /// Its time limit.
    pub minutes: u32,
    /// Its units count only if one host has measured all of them.
    pub one_host: bool,
}

impl Lanes {
    /// The unit with this number.
    pub fn unit(&self, number: u32) -> Option<&Unit> {
        self.units.iter().find(|unit| unit.unit == number)
    }

    /// The lane with this number.
    pub fn lane(&self, number: u32) -> Option<&Lane> {
        self.lanes.iter().find(|lane| lane.lane == number)
    }

    /// The lane that a unit is in.
    pub fn lane_of(&self, unit: u32) -> Option<&Lane> {
        self.lanes.iter().find(|lane| lane.units.contains(&unit))
    }

    /// The time limit of all lanes: those of one array have the same.
    pub fn minutes(&self) -> u32 {
        self.lanes
            .iter()
            .map(|lane| lane.minutes)
            .max()
            .unwrap_or(ASIDE_MINUTES)
    }

    /// Reads the file.
    ///
    /// Errors: another format, and what it is instead; a file that is none.
    pub fn read(text: &[u8]) -> Result<Self, Problem> {
        let none =
            |error: serde_json::Error| Problem::new("these are no lanes").detail(error.to_string());
        let head: Head = serde_json::from_slice(text).map_err(none)?;
        if (head.format.as_str(), head.version) != LANES_FORMAT {
            return Err(
                Problem::new(format!("lanes of format {} {}", head.format, head.version))
                    .detail("all hosts of an execution use the deltabench that it was started with")
                    .hint("use that one: it is in `bin` of the shared directory"),
            );
        }
        serde_json::from_slice(text).map_err(none)
    }
}

/// Puts units into lanes. Which lane a host takes is not chosen by us; the order in a lane follows from the
/// seed of the execution's first run.
pub fn lanes(units: &[Unit], (by, on_loss): (By, OnLoss), margin: f64) -> Vec<Lane> {
    let seed = units.first().map_or(0, |unit| unit.plan.seed);
    let mut groups: BTreeMap<u32, Vec<&Unit>> = BTreeMap::new();
    for unit in units {
        let repetition = unit
            .plan
            .experiment
            .as_ref()
            .map_or(1, |part| part.repetition);
        let key = match by {
            By::Repetition => repetition,
            By::Part => unit.unit,
        };
        groups.entry(key).or_default().push(unit);
    }
    let mut lanes = Vec::new();
    for (lane, mut group) in (0_u32..).zip(groups.into_values()) {
        group.sort_by_key(|unit| drawn(seed, lane, unit.unit));
        let seconds: f64 = group.iter().map(|unit| unit.seconds).sum();
        lanes.push(Lane {
            lane,
            units: group.iter().map(|unit| unit.unit).collect(),
            minutes: minutes(seconds * margin),
            one_host: on_loss == OnLoss::Restart && group.len() > 1,
        });
    }
    lanes
}

/// What units are ordered by.
fn drawn(seed: u64, lane: u32, unit: u32) -> [u8; 32] {
    Sha256::digest(format!("{seed} {lane} {unit}")).into()
}

fn minutes(seconds: f64) -> u32 {
    let minutes = deltabench_model::units::to_u64((seconds / 60.0).ceil());
    u32::try_from(minutes)
        .unwrap_or(u32::MAX)
        .saturating_add(ASIDE_MINUTES)
}
