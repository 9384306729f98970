//! Versions over time: what all runs of a host say of each version and of the steps between them.

mod anchors;
mod known;
mod means;
mod over_time;
mod pairs;
mod watched;

use crate::history::Hour;
use crate::hosts::{HostChange, RunHost};
use crate::pair::branch;
use crate::past::Past;
use crate::past_runs::PastRuns;
pub use anchors::Era;
use deltabench_compare::comparison::Metric;
use deltabench_compare::thresholds::{HOURS_ASSUMED, HOURS_ASSUMED_DF};
use deltabench_model::installation::Installation;
use deltabench_model::occasion::HostClass;
use deltabench_model::plan::{CellId, PlannedServer, ServerId};
use deltabench_model::problem::Problem;
use deltabench_store::Store;
use deltabench_trend::{Assumed, Build, Known, Measured, Network, Run, State, Suspicion};
use known::{JudgedRun, Said};
pub use known::{Judging, KnownRuns};
use means::NightVersions;
pub use means::workload;
pub use over_time::TrendPoint;
pub use pairs::ComparedCell;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use watched::{Keeper, watched};

/// What is assumed of hours, whatever the versions are: trends rest on their own runs soon.
const ASSUMED: Assumed = Assumed {
    sd: HOURS_ASSUMED,
    df: HOURS_ASSUMED_DF,
};

/// Characters of an identifier of a change.
const ID: usize = 8;

/// A build with its settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Version {
    /// What two runs must have in common to have measured it.
    pub identity: String,
    /// As tables call it.
    pub name: String,
    pub installation: Installation,
    /// Versions of one line follow each other.
    pub line: String,
    /// Whether it ran with no settings of its own.
    pub is_plain: bool,
    /// When it was first measured, milliseconds since 1970.
    pub first_ms: i64,
    /// Its place among the commits of its repository; absent for releases, and where nobody knows.
    pub place: Option<usize>,
}

/// A run with a part in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrendRun {
    pub name: String,
    pub began_unix_ms: i64,
    /// Whether a night measured it (`deltabench nightly`).
    pub is_night: bool,
}

/// A cell over all runs that do its work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrendCell {
    /// Key of its series.
    pub key: String,
    /// `point-query@1`, or `geometric mean of 8 cells`.
    pub name: String,
    /// Of a mean the numbers of its cells; none for a cell.
    pub members: Vec<usize>,
}

/// A suspected or confirmed change.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The same whichever runs show it.
    pub id: String,
    pub suspicion: Suspicion,
}

/// A metric on one machine.
#[derive(Debug)]
pub struct HostTrend {
    pub metric: Metric,
    /// The same for all runs of the machine.
    pub machine: String,
    pub class: HostClass,
    /// In the order of versions, line by line.
    pub versions: Vec<Version>,
    /// Oldest first.
    pub runs: Vec<TrendRun>,
    /// By name.
    pub cells: Vec<TrendCell>,
    /// In the order in which they were raised.
    pub changes: Vec<Change>,
    /// Commits whose place in their history nobody knows: they have levels, and no steps.
    pub unplaced: Vec<String>,
    /// When the machine became another host, oldest first.
    pub host_changes: Vec<HostChange>,
    builds: Vec<Build>,
    measured: Vec<Run>,
    /// What these runs say together.
    known: Arc<Known>,
    eras: Vec<Era>,
    /// The names of the runs, once somebody has asked.
    names: OnceLock<BTreeSet<String>>,
}

/// What the runs of each host say of metrics over time, metric by metric, the host of the newest run first.
///
/// Runs count that measured to their end on a fit host, without what was withdrawn; what counts instructions
/// or was measured under another condition on purpose does not. `places` gives the order of commits: their
/// names in the order of their history, for the builds of one repository.
///
/// Errors: the store cannot be read.
pub fn trends(
    store: &Store,
    metrics: &[Metric],
    places: &dyn Fn(&[&Installation]) -> Vec<String>,
) -> Result<Vec<HostTrend>, Problem> {
    let past = PastRuns::read(store)?;
    let mut known = KnownRuns::new(metrics);
    known.judge(past.all().to_vec(), store, Judging::All)?;
    Ok(known.trends(Some(store), places))
}

/// As [`trends`], of some of the runs: what they made suspect is kept nowhere.
pub(crate) fn trends_of(
    runs: Vec<Arc<Past>>,
    store: &Store,
    metrics: &[Metric],
    places: &dyn Fn(&[&Installation]) -> Vec<String>,
) -> Result<Vec<HostTrend>, Problem> {
    let mut known = KnownRuns::new(metrics);
    known.judge(runs, store, Judging::All)?;
    Ok(known.trends(None, places))
}

/// What is found of a host, before versions have an order: numbers of versions are those of finding.
struct Found {
    class: HostClass,
    versions: Vec<Version>,
    numbers: BTreeMap<String, usize>,
    runs: Vec<TrendRun>,
    cells: Vec<TrendCell>,
    cell_numbers: BTreeMap<String, usize>,
    works: BTreeMap<String, usize>,
    nights: NightVersions,
    measured: Vec<Run>,
    hour: Hour,
    /// The hosts that this machine has been, and the number of the last run's.
    hosts: Vec<RunHost>,
    host: usize,
    host_changes: Vec<HostChange>,
    /// As in [`HostTrend`].
    unplaced: Vec<String>,
}

impl Found {
    fn new(class: HostClass) -> Self {
        Self {
            class,
            versions: Vec::new(),
            numbers: BTreeMap::new(),
            runs: Vec::new(),
            cells: Vec::new(),
            cell_numbers: BTreeMap::new(),
            works: BTreeMap::new(),
            nights: NightVersions::default(),
            measured: Vec::new(),
            hour: Hour::default(),
            hosts: Vec::new(),
            host: 0,
            host_changes: Vec::new(),
            unplaced: Vec::new(),
        }
    }

    /// The number of a run's host.
    fn host_of(&mut self, past: &Past) -> usize {
        let known = self.hosts.iter().position(|host| *host == past.brief.host);
        let number = known.unwrap_or(self.hosts.len());
        if known.is_none() {
            self.hosts.push(past.brief.host.clone());
        }
        let before = self.hosts.get(self.host).filter(|_| number != self.host);
        if let Some(before) = before {
            self.host_changes.push(HostChange {
                at_unix_ms: past.began_ms,
                what: past.brief.host.differs_from(before),
            });
        }
        self.host = number;
        number
    }

    /// `metric`: its number.
    fn add(&mut self, past: &Past, judged: &JudgedRun, metric: usize) {
        let mut cells = Vec::new();
        for (cell, known) in CellId::each().zip(&past.brief.cells) {
            let Some(mut measured) = self.measured(cell, &judged.said, past, metric) else {
                continue;
            };
            measured.work = self.work(known.work.clone());
            measured.series = self.series(TrendCell {
                key: known.key.clone(),
                name: known.name.clone(),
                members: Vec::new(),
            });
            cells.push(measured);
        }
        if cells.is_empty() {
            return;
        }
        let is_own_night = past.brief.is_night && self.nights.add(&cells);
        if cells.len() == past.brief.cells.len() {
            cells.extend(self.mean(&cells, is_own_night));
        }
        let host = self.host_of(past);
        cells.iter_mut().for_each(|cell| cell.host = host);
        self.measured.push(Run {
            hour: self.hour.of((past.began_ms, past.ended_ms), i64::MAX),
            began_ms: past.began_ms,
            ended_ms: past.ended_ms,
            cells,
        });
        self.runs.push(TrendRun {
            name: past.name.clone(),
            began_unix_ms: past.began_ms,
            is_night: past.brief.is_night,
        });
    }

    /// The number of a cell, a new one for one that was not met before.
    fn series(&mut self, cell: TrendCell) -> usize {
        let next = self.cells.len();
        let number = *self.cell_numbers.entry(cell.key.clone()).or_insert(next);
        if number == next {
            self.cells.push(cell);
        }
        number
    }

    fn work(&mut self, work: String) -> usize {
        let next = self.works.len();
        *self.works.entry(work).or_insert(next)
    }

    /// What a run found in a cell; `None` if no candidate of it says something.
    fn measured(
        &mut self,
        cell: CellId,
        said: &[Said],
        past: &Past,
        metric: usize,
    ) -> Option<Measured> {
        let server = |id: ServerId| {
            let identity = past.versions().get(id.index())?;
            Some((past.brief.server(id)?, identity.as_str()))
        };
        let base = server(past.brief.base)?;
        let mut candidates: BTreeMap<usize, BTreeMap<u32, f64>> = BTreeMap::new();
        let mut others = candidates.clone();
        let (mut delta, mut times, mut is_sound) = (0.0_f64, 1.0_f64, true);
        let is_remote = |one: &PlannedServer| one.installation.remote.is_some();
        for one in said.iter().filter(|one| one.cell == cell) {
            let Some((planned, identity)) = server(one.candidate) else {
                continue;
            };
            let Some(blocks) = one.values.get(&metric) else {
                continue;
            };
            // What was made slower on purpose is no version, nor is a copy of the base. A server that was
            // there before may be another build tomorrow.
            let is_version = planned.burn_ns.is_none() && identity != base.1;
            if !is_version || is_remote(planned) || is_remote(base.0) {
                continue;
            }
            is_sound &= !one.contended;
            let version = self.number((planned, identity), past.began_ms);
            let first = !candidates.contains_key(&version);
            if first {
                candidates.insert(version, blocks.own.clone());
            }
            if first && !blocks.others.is_empty() {
                others.insert(version, blocks.others.clone());
            }
            delta = delta.max(one.delta);
            times = times.max(0.05 / (1.0 - one.interval_level));
        }
        if candidates.is_empty() {
            return None;
        }
        Some(Measured {
            series: 0,
            host: 0,
            delta,
            base: self.number(base, past.began_ms),
            candidates,
            base_copies: 1 + u32::from(past.brief.has_second_control),
            times,
            is_sound,
            others,
            members: 1,
            work: 0,
        })
    }

    /// The number of a version, a new one for one that was not met before.
    fn number(&mut self, (planned, identity): (&PlannedServer, &str), began_ms: i64) -> usize {
        if let Some(known) = self.numbers.get(identity) {
            return *known;
        }
        let next = self.versions.len();
        self.numbers.insert(identity.to_owned(), next);
        self.versions.push(Version {
            identity: identity.to_owned(),
            name: name(planned),
            line: version_line(planned),
            is_plain: planned.settings.is_empty() && planned.configuration.is_none(),
            installation: planned.installation.clone(),
            first_ms: began_ms,
            place: None,
        });
        next
    }

    /// Tells versions of one name apart, and asks for the places of commits.
    fn place(&mut self, places: &dyn Fn(&[&Installation]) -> Vec<String>) {
        tell_apart(&mut self.versions);
        self.unplaced = place(&mut self.versions, places);
    }

    /// Puts versions into their order and goes through the runs. `store`: beside which to keep what they made
    /// suspect.
    fn trend(mut self, metric: Metric, machine: String, store: Option<&Store>) -> HostTrend {
        let mut order: Vec<usize> = (0..self.versions.len()).collect();
        order.sort_by_cached_key(|at| self.versions.get(*at).map(key_of));
        let mut place_of = vec![0; order.len()];
        for (place, number) in order.iter().enumerate() {
            if let Some(slot) = place_of.get_mut(*number) {
                *slot = place;
            }
        }
        let placed = |number: usize| place_of.get(number).copied().unwrap_or(number);
        for cell in self.measured.iter_mut().flat_map(|run| &mut run.cells) {
            cell.base = placed(cell.base);
            for all in [&mut cell.candidates, &mut cell.others] {
                let known = std::mem::take(all).into_iter();
                *all = known
                    .map(|(number, blocks)| (placed(number), blocks))
                    .collect();
            }
        }
        self.versions.sort_by_cached_key(key_of);
        let builds = builds(&self.versions);
        let keeper = store.map(|store| Keeper {
            store,
            of: format!("{} {machine} {:?}", metric.key(), self.class),
        });
        let watch = watched(&self.measured, builds.clone(), ASSUMED, keeper.as_ref());
        let mut trend = HostTrend {
            metric,
            machine,
            class: self.class,
            versions: self.versions,
            runs: self.runs,
            cells: self.cells,
            changes: Vec::new(),
            unplaced: self.unplaced,
            host_changes: self.host_changes,
            builds,
            known: Arc::new(watch.known(&self.measured)),
            measured: self.measured,
            eras: Vec::new(),
            names: OnceLock::new(),
        };
        let mut numbers: BTreeMap<(usize, usize, usize, bool), usize> = BTreeMap::new();
        for one in watch.suspicions() {
            let number = numbers
                .entry((one.series, one.from, one.to, one.falls))
                .or_default();
            trend.changes.push(Change {
                id: trend.id(one, *number),
                suspicion: one.clone(),
            });
            *number += 1;
        }
        trend
    }
}

impl HostTrend {
    /// The levels of a cell relative to a version, by their numbers; `None` if no run has that version.
    pub fn network(&self, cell: usize, anchor: usize) -> Option<Network> {
        let known = (&*self.known, ASSUMED);
        Network::knowing((cell, anchor), &self.measured, &self.builds, known)
    }

    /// What runs found in a cell, each with its number, oldest first.
    fn measured(&self, cell: usize) -> impl Iterator<Item = (usize, &Measured)> {
        self.known.cells(cell, &self.measured)
    }

    /// Runs that have a cell.
    pub fn runs_of(&self, cell: usize) -> usize {
        let mut runs: Vec<usize> = self.measured(cell).map(|(at, _)| at).collect();
        runs.dedup();
        runs.len()
    }

    /// The version that a night measured last with this base, by its identity, or an anchor that it followed,
    /// and is like `new`: of its line and branch, with nothing but the base or versions like it in the run.
    /// What another command measured with the base is no version of a night.
    pub fn last_beside(
        &self,
        base: &str,
        new: &PlannedServer,
        counts: impl Fn(&Version) -> bool,
    ) -> Option<usize> {
        let line = version_line(new);
        let own = branch(&new.installation);
        let is_like = |at: usize| {
            let known = self.versions.get(at);
            known.is_some_and(|one| one.line == line && branch(&one.installation) == own)
        };
        self.last_of_nights(base, is_like, counts)
    }

    /// The version that a night measured last with this base, whatever it is, but for the base itself.
    pub fn last_beside_any(&self, base: &str) -> Option<usize> {
        self.last_of_nights(base, |_| true, |version| version.identity != base)
    }

    /// The newest version of the newest night with this base that has only versions of a kind, and one that
    /// counts.
    fn last_of_nights(
        &self,
        base: &str,
        is_like: impl Fn(usize) -> bool,
        counts: impl Fn(&Version) -> bool,
    ) -> Option<usize> {
        let anchors = self.chain(base);
        let is_base = |at: usize| {
            self.versions
                .get(at)
                .is_some_and(|one| anchors.contains(&one.identity))
        };
        let newest = |run: &Run| {
            let cells = run.cells.iter().filter(|cell| is_base(cell.base));
            let mut all = cells.flat_map(|cell| cell.candidates.keys().copied());
            let all: Option<Vec<usize>> = all.try_fold(Vec::new(), |mut known, at| {
                known.push(at);
                is_like(at).then_some(known)
            });
            let counts = |at: &usize| self.versions.get(*at).is_some_and(&counts);
            all?.into_iter().filter(counts).max()
        };
        self.own_nights().into_iter().rev().find_map(newest)
    }

    /// The runs of nights without their tries, oldest first.
    fn own_nights(&self) -> Vec<&Run> {
        let nights = self.runs.iter().zip(&self.measured);
        let nights = nights.filter(|(run, _)| run.is_night);
        let mut known = NightVersions::default();
        nights
            .map(|(_, run)| run)
            .filter(|run| known.add(&run.cells))
            .collect()
    }

    /// Whether a run has a part in it.
    pub fn has_run(&self, name: &str) -> bool {
        let names =
            { &self.names }.get_or_init(|| self.runs.iter().map(|run| run.name.clone()).collect());
        names.contains(name)
    }

    /// Whether a run has a step to this version, or from it.
    pub fn has_step(&self, identity: &str) -> bool {
        let cells = self.measured.iter().flat_map(|run| &run.cells);
        let is = |at: usize| {
            self.versions
                .get(at)
                .is_some_and(|one| one.identity == identity)
        };
        cells
            .flat_map(|cell| cell.steps(&self.builds))
            .any(|(from, to)| is(from) || is(to))
    }

    /// The cells that the newest night with this base has measured, by its identity. What was measured in
    /// another way before, or on other data, is left out: no further run can say something of it.
    pub fn series_beside(&self, base: &str) -> BTreeSet<usize> {
        let is_base = |cell: &&Measured| {
            let version = self.versions.get(cell.base);
            version.is_some_and(|one| one.identity == base)
        };
        let of = |run: &Run| -> BTreeSet<usize> {
            let own = run.cells.iter().filter(is_base);
            own.map(|cell| cell.series).collect()
        };
        let mut nights = self.own_nights().into_iter().rev().map(of);
        nights.find(|cells| !cells.is_empty()).unwrap_or_default()
    }

    /// When the newest run ended, milliseconds since 1970.
    pub fn ended_ms(&self) -> Option<i64> {
        self.measured.last().map(|run| run.ended_ms)
    }

    /// Runs of some cells that other load disturbed, and all: those count for levels only. By run and cell.
    pub fn disturbed(&self, is_meant: impl Fn(usize) -> bool) -> (usize, usize) {
        let cells = self.measured.iter().flat_map(|run| &run.cells);
        disturbed(cells.filter(|cell| cell.members == 1 && is_meant(cell.series)))
    }

    /// The same of all cells of these runs.
    pub fn disturbed_of_runs(&self, names: &BTreeSet<String>) -> (usize, usize) {
        let runs = self.runs.iter().zip(&self.measured);
        let own = runs.filter(|(run, _)| names.contains(&run.name));
        let cells = own.flat_map(|(_, run)| &run.cells);
        disturbed(cells.filter(|cell| cell.members == 1))
    }

    /// Whether a confirmed change lies inside of another one, in the same cell and direction.
    pub fn holds_another(&self, change: &Change) -> bool {
        let own = &change.suspicion;
        self.changes.iter().any(|other| {
            let inner = &other.suspicion;
            inner.state == State::Confirmed
                && (inner.series, inner.falls) == (own.series, own.falls)
                && own.from <= inner.from
                && inner.to <= own.to
                && (inner.from, inner.to) != (own.from, own.to)
        })
    }

    /// Of its cell, versions and direction; `number` counts those before it that have the same.
    fn id(&self, one: &Suspicion, number: usize) -> String {
        let version = |at: usize| {
            self.versions
                .get(at)
                .map_or("", |version| &version.identity)
        };
        let cell = self.cells.get(one.series).map_or("", |cell| &cell.key);
        let way = if one.falls { "falls" } else { "rises" };
        let metric = self.metric.key();
        let number = number.to_string();
        let all = [
            &self.machine,
            metric,
            cell,
            version(one.from),
            version(one.to),
            way,
            &number,
        ];
        let all = all.join("\n");
        let hash = format!("{:x}", Sha256::digest(all));
        hash.chars().take(ID).collect()
    }
}

/// What it runs, with the settings of its own, whatever a run called it.
fn name(planned: &PlannedServer) -> String {
    PlannedServer {
        label: None,
        ..planned.clone()
    }
    .name()
}

/// What versions have in common that follow each other: where they come from, how they were built, and what
/// they run with.
pub fn version_line(planned: &PlannedServer) -> String {
    let build = &planned.installation;
    let variant = build.recipe.as_ref().map_or("", |recipe| &recipe.variant);
    let settings = match &planned.configuration {
        Some(used) => used.name.clone(),
        None => format!("{:?}", planned.settings),
    };
    format!("{:?} {:?} {variant} {settings}", build.engine, build.origin)
}

/// The order: line by line, in it by version and commit, and what nothing tells apart by when it was met.
fn key_of(version: &Version) -> (String, u32, Option<usize>, i64, String) {
    let number = version.installation.version_num;
    let Version {
        line,
        place,
        first_ms,
        identity,
        ..
    } = version;
    (line.clone(), number, *place, *first_ms, identity.clone())
}

/// Asks for the places of commits. A commit that has none is a line by itself, without steps; returns the
/// names of these.
fn place(
    versions: &mut [Version],
    places: &dyn Fn(&[&Installation]) -> Vec<String>,
) -> Vec<String> {
    let is_commit = |build: &Installation| build.asked.starts_with("git:");
    let built: Vec<&Installation> = { versions.iter() }
        .map(|version| &version.installation)
        .filter(|build| is_commit(build))
        .collect();
    let known = places(&built);
    let mut lost = Vec::new();
    for version in versions {
        let build = &version.installation;
        let source = build.recipe.as_ref().map(|recipe| &recipe.source);
        version.place = source.and_then(|source| known.iter().position(|id| id == source));
        if is_commit(build) && version.place.is_none() {
            version.line = format!("{} {}", version.line, version.identity);
            lost.push(version.name.clone());
        }
    }
    lost
}

/// Gives versions of one name their hashes.
fn tell_apart(versions: &mut [Version]) {
    let mut counted: BTreeMap<String, usize> = BTreeMap::new();
    for version in versions.iter() {
        *counted.entry(version.name.clone()).or_default() += 1;
    }
    for version in versions {
        let hash = version.installation.binary_sha256.get(..8);
        if let (Some(2..), Some(hash)) = (counted.get(&version.name), hash) {
            version.name = format!("{} {hash}", version.name);
        }
    }
}

fn builds(versions: &[Version]) -> Vec<Build> {
    let mut lines: BTreeMap<&str, usize> = BTreeMap::new();
    let build = |version: &'_ Version, line| Build {
        line,
        branch: branch(&version.installation),
    };
    let mut builds = Vec::new();
    for version in versions {
        let next = lines.len();
        let line = *lines.entry(&version.line).or_insert(next);
        builds.push(build(version, line));
    }
    builds
}

/// Those that other load disturbed, and all.
fn disturbed<'a>(cells: impl Iterator<Item = &'a Measured>) -> (usize, usize) {
    let count =
        |(disturbed, all), cell: &Measured| (disturbed + usize::from(!cell.is_sound), all + 1);
    cells.fold((0, 0), count)
}
