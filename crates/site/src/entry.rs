//! A run as lists show it: what its plan and its state say, without an analysis.

use crate::digest::{KEY, digest};
use crate::secret::withheld;
use deltabench_lab::{ANALYSIS, RunHost, series_of_run, store_problem, version_key};
use deltabench_model::fact::MachineName;
use deltabench_model::occasion::HostClass;
use deltabench_model::plan::{CellId, Plan, PlannedServer, Role, ServerId};
use deltabench_model::problem::Problem;
use deltabench_report::words;
use deltabench_store::{Kept, RunState, Store};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The name under which entries are kept beside the store.
const ENTRY: &str = "entry";

/// The kind of a run that counts instructions.
pub(crate) const COUNT: &str = "count";

/// A run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) name: String,
    /// Differs whenever more is stored of the run.
    pub(crate) stamp: String,
    pub(crate) state: RunState,
    pub(crate) started_unix_ms: i64,
    pub(crate) state_unix_ms: i64,
    pub(crate) kind: String,
    pub(crate) servers: Vec<Server>,
    pub(crate) cells: Vec<Cell>,
    pub(crate) execution: Option<String>,
    /// What it belongs to, if to anything: what it does for it, and its name.
    pub(crate) belongs: Option<(String, String)>,
    pub(crate) host: Option<Host>,
    /// Why it was withdrawn as a whole.
    pub(crate) withdrawn: Option<String>,
    /// Whether cells of it were withdrawn.
    pub(crate) partly_withdrawn: bool,
    pub(crate) blocks_done: u64,
    pub(crate) blocks_planned: u32,
    pub(crate) visits_done: u64,
    /// Whether it is a replay, which has a page of its own.
    pub(crate) is_replay: bool,
    /// Cores that it was given by hand.
    pub(crate) cores: Vec<usize>,
    /// What its report says of one base and its candidates is the same as another run's with this text.
    pub(crate) comparison: String,
    /// What a published page says instead of these words: names of its machine, places and people.
    pub(crate) withheld: Vec<(String, String)>,
}

/// A server of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Server {
    pub(crate) id: ServerId,
    pub(crate) role: Role,
    /// Its label, or what it runs with its settings.
    pub(crate) name: String,
    pub(crate) version: Version,
    /// Its build with its settings: what two runs must have in common to have measured the same.
    pub(crate) identity: String,
}

/// A build.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Version {
    /// Of the executable's hash, or of what a server that deltabench did not start is called.
    pub(crate) key: String,
    pub(crate) target: String,
    /// `18.6`.
    pub(crate) number: String,
    /// SHA-256 of the executable; empty where it is not known.
    pub(crate) sha256: String,
}

/// A cell of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Cell {
    pub(crate) id: CellId,
    /// `point-query@1`.
    pub(crate) name: String,
    /// Key of its series.
    pub(crate) key: String,
}

/// The host of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Host {
    /// The same for a machine through updates of its kernel.
    pub(crate) key: String,
    /// What the machine calls itself; absent where that was not stored.
    pub(crate) machine: Option<String>,
    pub(crate) class: HostClass,
    pub(crate) kernel: Option<String>,
    pub(crate) microcode: Option<String>,
}

impl Entry {
    /// All that were kept beside the store.
    pub(crate) fn all_kept(store: &Store) -> BTreeMap<String, Kept> {
        store.all_kept(ENTRY)
    }

    /// A run, from what was kept of it if that fits.
    ///
    /// Errors: the store cannot be read.
    pub(crate) fn of(
        name: &str,
        stamp: &str,
        kept: Option<&Kept>,
        store: &Store,
    ) -> Result<Self, Problem> {
        let made_from = format!("{} {stamp}", *MADE_BY);
        let fits = kept.filter(|kept| kept.made_from == made_from);
        if let Some(entry) = fits.and_then(|kept| serde_json::from_str(&kept.value).ok()) {
            return Ok(entry);
        }
        let entry = Self::read(name, stamp, store)?;
        // A run under way is another one after its next visit, and nothing may disturb it.
        let is_kept = entry.state != RunState::Running;
        if let (true, Ok(value)) = (is_kept, serde_json::to_string(&entry)) {
            store.keep(ENTRY, name, &Kept { made_from, value });
        }
        Ok(entry)
    }

    fn read(name: &str, stamp: &str, store: &Store) -> Result<Self, Problem> {
        let plan = store.plan(name).map_err(store_problem)?;
        let cells = cells(name, &plan, store)?;
        let read = || {
            let reached = store.reached(name)?;
            let (blocks_done, visits_done) = store.done(name, &plan)?;
            let withdrawn = store.invalidations(name)?;
            let whole = withdrawn.iter().rev().find(|one| one.cell.is_none());
            Ok(Self {
                name: name.to_owned(),
                stamp: stamp.to_owned(),
                state: reached.map_or(RunState::Planned, |reached| reached.state),
                started_unix_ms: reached.map_or(0, |reached| reached.started_unix_ms),
                state_unix_ms: reached.map_or(0, |reached| reached.state_unix_ms),
                kind: kind(&plan),
                servers: servers(&plan),
                cells,
                execution: plan.experiment.as_ref().map(|part| part.execution.clone()),
                belongs: belongs(&plan),
                host: host(name, store)?,
                withheld: withheld(&plan, store.last_fact(name, None)?),
                withdrawn: whole.map(|one| one.reason.clone()),
                partly_withdrawn: withdrawn.iter().any(|one| one.cell.is_some()),
                blocks_done,
                blocks_planned: plan.timing.blocks,
                visits_done,
                is_replay: plan.work.replay().is_some(),
                cores: plan.pins.as_ref().map_or_else(Vec::new, |pins| {
                    pins.server.iter().chain(&pins.client).copied().collect()
                }),
                comparison: comparison(&plan),
            })
        };
        read().map_err(store_problem)
    }

    /// Its base.
    pub(crate) fn base(&self) -> Option<&Server> {
        self.servers.iter().find(|server| server.role == Role::Base)
    }

    /// Its candidates.
    pub(crate) fn candidates(&self) -> impl Iterator<Item = &Server> {
        let all = self.servers.iter();
        all.filter(|server| server.role == Role::Candidate)
    }

    /// A server by its id.
    pub(crate) fn server(&self, id: u32) -> Option<&Server> {
        self.servers.iter().find(|server| server.id.0 == id)
    }

    /// A cell by its id.
    pub(crate) fn cell(&self, id: u32) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.id.0 == id)
    }

    /// `postgres:17.11 vs postgres:18.6`, or the base alone.
    pub(crate) fn sides(&self) -> String {
        let base = self.base().map_or("", |server| server.name.as_str());
        let names: Vec<&str> = self
            .candidates()
            .map(|server| server.name.as_str())
            .collect();
        match names.as_slice() {
            [] => base.to_owned(),
            [one] => format!("{base} vs {one}"),
            [one, two] => format!("{base} vs {one}, {two}"),
            [one, rest @ ..] => {
                let more = words::plural(deltabench_model::units::count(rest.len()), "other");
                format!("{base} vs {one} and {more}")
            }
        }
    }

    /// Whether what it found is a result of its own: measured to its end, not withdrawn, and no part of what
    /// another run says.
    pub(crate) fn stands_alone(&self) -> bool {
        self.state == RunState::Finished && self.withdrawn.is_none() && self.belongs.is_none()
    }
}

/// The code that makes an entry. Once: a lab has thousands.
static MADE_BY: LazyLock<String> = LazyLock::new(|| {
    let here = [include_str!("entry.rs"), include_str!("secret.rs")];
    format!("{ANALYSIS} {}", digest(&here.concat()))
});

fn cells(name: &str, plan: &Plan, store: &Store) -> Result<Vec<Cell>, Problem> {
    let series = series_of_run(name, plan, store)?;
    let all = CellId::each().zip(series);
    let cell = |(id, series): (CellId, deltabench_model::occasion::Series)| Cell {
        id,
        name: series.slug,
        key: series.key.chars().take(KEY).collect(),
    };
    Ok(all.map(cell).collect())
}

fn servers(plan: &Plan) -> Vec<Server> {
    let server = |(id, planned): (ServerId, &PlannedServer)| {
        let build = &planned.installation;
        let key = match build.binary_sha256.as_str() {
            "" => digest(&build.resolved),
            hash => hash.chars().take(KEY).collect(),
        };
        Server {
            id,
            role: planned.role,
            name: planned.name(),
            version: Version {
                key,
                target: build.resolved.clone(),
                number: build.version.clone(),
                sha256: build.binary_sha256.clone(),
            },
            identity: version_key(planned),
        }
    };
    ServerId::each().zip(&plan.servers).map(server).collect()
}

/// What kind of work a run does, in a word of the plan.
fn kind(plan: &Plan) -> String {
    if plan.observing.counting.is_some() {
        return COUNT.to_owned();
    }
    let work = serde_json::to_value(&plan.work).unwrap_or_default();
    let kind = work.get("kind").and_then(|kind| kind.as_str());
    kind.unwrap_or_default().to_owned()
}

fn belongs(plan: &Plan) -> Option<(String, String)> {
    let session = plan.session.as_ref().filter(|part| part.number > 1);
    let all = [
        ("measures again", plan.confirms.clone()),
        ("counts for", plan.counts.clone()),
        ("belongs to the bisection", plan.bisects.clone()),
        ("samples for", plan.samples.clone()),
        (
            "measures under another condition",
            plan.sensitivity.as_ref().map(|part| part.of.clone()),
        ),
        ("is a session of", session.map(|part| part.first.clone())),
    ];
    all.into_iter()
        .find_map(|(what, of)| Some((what.to_owned(), of?)))
}

fn host(name: &str, store: &Store) -> Result<Option<Host>, deltabench_store::StoreError> {
    let machine: Option<MachineName> = store.last_fact(name, None)?;
    let machine = machine.map(|MachineName(name)| name);
    Ok(RunHost::of(name, store)?.map(|host| match host {
        RunHost::Identified { host, .. } => Host {
            key: host.uid.chars().take(KEY).collect(),
            machine,
            class: host.class,
            kernel: host.kernel,
            microcode: host.microcode,
        },
        RunHost::Stored {
            machine,
            class,
            kernel,
        } => Host {
            key: digest(&format!("{machine} {class:?}")),
            machine: Some(machine),
            class,
            kernel,
            microcode: None,
        },
    }))
}

/// What is compared with what, by content.
fn comparison(plan: &Plan) -> String {
    let sides = plan
        .servers
        .iter()
        .filter(|server| server.role != Role::Placebo);
    let all: Vec<String> = sides.map(version_key).collect();
    digest(&all.join("\n"))
}
