//! A lab that is looked at: what is read of it, and what was read before.

use crate::builds::{Known, builds, with_settings};
use crate::entry::{Entry, Version};
use crate::outcome::Outcome;
use crate::route::Route;
use crate::stamps::Stamps;
use crate::withhold::Secrets;
use crate::written::Page;
use deltabench_compare::comparison::{Comparison, Metric};
use deltabench_lab::{
    Analysed, HostTrend, Judging, KnownRuns, PastRuns, analyse_among, store_problem,
};
use deltabench_model::installation::Installation;
use deltabench_model::plan::Plan;
use deltabench_model::problem::Problem;
use deltabench_report::ReportContext;
use deltabench_store::{Kept, LOCK_NAME, RunState, Store};
use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes of pages that are kept at most.
const KEPT_BYTES: usize = 64 << 20;

/// The name under which outcomes are kept beside the store.
const OUTCOMES: &str = "outcomes";

/// What the file of a replay's page begins with.
const REPLAY: &str = "replay-";

/// What is shown over time, in this order.
pub(crate) const METRICS: [Metric; 2] = [Metric::Throughput, Metric::ServerCpuPerOperation];

/// The order of commits: their names in the order of their history, for the builds of one repository.
pub type Places = fn(&[&Installation]) -> Vec<String>;

/// Whether somebody measures in a lab.
pub(crate) fn is_locked(store: &Store) -> bool {
    deltabench_proc::locks::is_locked(&store.lab().join(LOCK_NAME))
}

/// What a run found, in the order of its report.
pub(crate) type Found = Arc<Vec<Outcome>>;

/// What some runs found, of those that are known, and how many are not known yet.
type FoundOf<'a> = (Vec<(&'a Entry, Found)>, usize);

/// What pages need of an analysis.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) plan: Plan,
    pub(crate) comparison: Comparison,
    pub(crate) context: ReportContext,
}

/// Which runs have to do with each other, by their places.
#[derive(Debug, Default)]
struct Relations {
    /// Those that belong to a run, by its name.
    belonging: BTreeMap<String, Vec<usize>>,
    /// Those that belong to none, by what they compare.
    comparing: BTreeMap<String, Vec<usize>>,
}

impl Relations {
    fn of(entries: &[Entry]) -> Self {
        let mut all = Self::default();
        for (at, entry) in entries.iter().enumerate() {
            let (map, key) = match &entry.belongs {
                Some((_, of)) => (&mut all.belonging, of),
                None => (&mut all.comparing, &entry.comparison),
            };
            map.entry(key.clone()).or_default().push(at);
        }
        all
    }
}

/// A lab, its runs, and what their analyses said. Nothing in it is written.
#[derive(Debug)]
pub struct Lab {
    pub(crate) store: Store,
    /// Whether pages show names of hosts, paths, command lines and addresses.
    pub(crate) shows_hosts: bool,
    /// All runs, oldest first.
    pub(crate) entries: Arc<Vec<Entry>>,
    /// The places of runs in `entries`, by name and by name as a part of a path.
    index: HashMap<String, usize>,
    /// Those of all runs, where `entries` may be a part.
    stamps: Stamps,
    relations: Relations,
    version: i64,
    /// The builds, each with the places of its runs in `entries`, once somebody has asked for them.
    versions: OnceCell<Vec<(Version, Vec<usize>)>>,
    /// The same with their settings, by identity.
    servers: OnceCell<BTreeMap<String, Known>>,
    /// What runs found, by run, with the stamp of what it was read from.
    outcomes: HashMap<String, (String, Found)>,
    pages: BTreeMap<Route, Page>,
    kept_bytes: usize,
    /// The run that is measured now.
    pub(crate) measured: Option<String>,
    /// The names of bisections and replays that have a page in the lab, newest first.
    pub(crate) stored: Vec<String>,
    pub(crate) secrets: Secrets,
    /// When no further analysis may begin, where somebody waits for a page.
    until: Option<Instant>,
    /// Whether it shows a part of the runs alone.
    pub(crate) is_part: bool,
    /// The newest analysis, with its run: a page and the JSON of one run are often made together.
    newest: Option<(String, Arc<Read>)>,
    /// The finished runs, with the version of the store that they were read from.
    past: (Option<i64>, Arc<PastRuns>),
    known: KnownRuns,
    /// What all runs say over time, with the version of the store that it was read from.
    trends: Option<(i64, Arc<Vec<HostTrend>>)>,
    places: Places,
}

impl Lab {
    /// Opens a lab to look at it.
    ///
    /// Errors: no lab there, or one that cannot be read.
    pub fn open(directory: &Path, shows_hosts: bool) -> Result<Self, Problem> {
        Self::of(Store::open_to_read(directory)?, shows_hosts)
    }

    /// The same, computed from the records alone: what was kept beside the store is not used, and nothing is
    /// kept.
    ///
    /// Errors: as [`Lab::open`].
    pub fn open_without_kept(directory: &Path, shows_hosts: bool) -> Result<Self, Problem> {
        Self::of(Store::open_to_read(directory)?.without_kept(), shows_hosts)
    }

    fn of(store: Store, shows_hosts: bool) -> Result<Self, Problem> {
        let mut lab = Self::unread(store, shows_hosts);
        lab.read()?;
        lab.measured = lab.measured_now()?;
        lab.stored = lab.stored_now()?;
        Ok(lab)
    }

    fn unread(store: Store, shows_hosts: bool) -> Self {
        Self {
            store,
            shows_hosts,
            entries: Arc::default(),
            index: HashMap::new(),
            stamps: Stamps::default(),
            relations: Relations::default(),
            versions: OnceCell::new(),
            servers: OnceCell::new(),
            version: 0,
            outcomes: HashMap::new(),
            pages: BTreeMap::new(),
            kept_bytes: 0,
            measured: None,
            stored: Vec::new(),
            secrets: Secrets::default(),
            until: None,
            is_part: false,
            newest: None,
            past: (None, Arc::default()),
            known: KnownRuns::new(&METRICS),
            trends: None,
            places: |_| Vec::new(),
        }
    }

    /// The same lab as it was read, for a thread that makes pages beside this one; `None` where nobody can
    /// read the store a second time.
    ///
    /// Errors: the store cannot be read.
    pub(crate) fn again(&mut self) -> Result<Option<Self>, Problem> {
        let Some(store) = self.store.again() else {
            return Ok(None);
        };
        // Read before, so that nobody reads it twice.
        if !self.must_wait() {
            self.read_past()?;
        }
        let mut again = Self {
            version: self.version,
            entries: Arc::clone(&self.entries),
            stamps: self.stamps.clone(),
            outcomes: self.outcomes.clone(),
            measured: self.measured.clone(),
            stored: self.stored.clone(),
            secrets: self.secrets.clone(),
            is_part: self.is_part,
            past: self.past.clone(),
            trends: self.trends.clone(),
            places: self.places,
            ..Self::unread(store, self.shows_hosts)
        };
        again.index();
        Ok(Some(again))
    }

    /// Takes what another thread found in the same lab.
    pub(crate) fn know(&mut self, other: &mut Self) {
        self.outcomes.extend(other.outcomes.drain());
    }

    /// Knows what another thread knows of the same lab.
    pub(crate) fn know_as(&mut self, other: &Self) {
        self.outcomes.clone_from(&other.outcomes);
        self.trends.clone_from(&other.trends);
    }

    /// The same lab, with somebody who knows the order of commits.
    #[must_use]
    pub fn with_places(self, places: Places) -> Self {
        Self { places, ..self }
    }

    /// Looks again, if somebody has written to the lab since.
    ///
    /// Errors: the store cannot be read. What was read before is still there then.
    pub fn refresh(&mut self) -> Result<(), Problem> {
        self.store.renew().map_err(store_problem)?;
        if self.store.data_version().map_err(store_problem)? != self.version {
            self.read()?;
        }
        let (measured, stored) = (self.measured_now()?, self.stored_now()?);
        if (&measured, &stored) != (&self.measured, &self.stored) {
            (self.measured, self.stored) = (measured, stored);
            self.forget_pages();
        }
        Ok(())
    }

    fn read(&mut self) -> Result<(), Problem> {
        // Asked for first: what is stored meanwhile is read the next time.
        let version = self.store.data_version().map_err(store_problem)?;
        let known: BTreeMap<&str, &Entry> = { self.entries.iter() }
            .map(|entry| (entry.name.as_str(), entry))
            .collect();
        let mut entries = Vec::with_capacity(known.len());
        // The first look is at all of them, later ones at a few.
        let kept = match known.is_empty() {
            true => Entry::all_kept(&self.store),
            false => BTreeMap::new(),
        };
        for stamp in self.store.stamps().map_err(store_problem)? {
            let before = known.get(stamp.run.as_str());
            entries.push(match before.filter(|entry| entry.stamp == stamp.stamp) {
                Some(entry) => (*entry).clone(),
                None => {
                    let kept = kept.get(&stamp.run);
                    Entry::of(&stamp.run, &stamp.stamp, kept, &self.store)?
                }
            });
        }
        if !self.shows_hosts {
            let secrets = Secrets::of(&entries, &self.store)?;
            // Runs of a lab have a few names between them.
            let mut known: BTreeMap<String, String> = BTreeMap::new();
            let mut clean = |text: &mut String| match known.get(text.as_str()) {
                Some(clean) => text.clone_from(clean),
                None => {
                    let clean = secrets.clean(text);
                    known.insert(std::mem::replace(text, clean.clone()), clean);
                }
            };
            for server in entries.iter_mut().flat_map(|entry| &mut entry.servers) {
                clean(&mut server.name);
                clean(&mut server.version.target);
            }
            self.secrets = secrets;
        }
        // Nothing fails any more: a lab that was read in part would look empty.
        self.version = version;
        self.entries = Arc::new(entries);
        self.index();
        self.stamps = Stamps::of(&self.entries);
        self.newest = None;
        self.forget_pages();
        Ok(())
    }

    /// Finds these runs by their names from now on.
    pub(crate) fn index(&mut self) {
        self.index.clear();
        for (at, entry) in self.entries.iter().enumerate() {
            // A name comes before a part of a path that reads like it.
            self.index.insert(entry.name.clone(), at);
        }
        for (at, entry) in self.entries.iter().enumerate() {
            let part = crate::route::segment(&entry.name);
            self.index.entry(part).or_insert(at);
        }
        self.relations = Relations::of(&self.entries);
        self.versions.take();
        self.servers.take();
    }

    /// The builds in the order of their targets, each with the places of its runs, newest first.
    pub(crate) fn versions(&self) -> &[(Version, Vec<usize>)] {
        self.versions.get_or_init(|| builds(&self.entries))
    }

    /// The runs that belong to one, oldest first.
    pub(crate) fn belonging_to(&self, name: &str) -> impl Iterator<Item = &Entry> {
        let places = self.relations.belonging.get(name).into_iter().flatten();
        places.filter_map(|at| self.entries.get(*at))
    }

    /// The versions with their settings, by identity.
    pub(crate) fn measured_servers(&self) -> &BTreeMap<String, Known> {
        self.servers.get_or_init(|| with_settings(&self.entries))
    }

    /// The newest of the other runs that belong to none and compare the same versions, at most so many, and
    /// how many there are.
    pub(crate) fn same_versions(&self, entry: &Entry, most: usize) -> (Vec<&Entry>, usize) {
        let places = self.relations.comparing.get(&entry.comparison);
        let places = places.map_or(&[][..], Vec::as_slice);
        let all = places.iter().rev().filter_map(|at| self.entries.get(*at));
        let newest = all.filter(|other| other.name != entry.name).take(most);
        let own = usize::from(entry.belongs.is_none());
        (newest.collect(), places.len().saturating_sub(own))
    }

    /// Reads the finished runs, unless they are known.
    fn read_past(&mut self) -> Result<(), Problem> {
        if self.past.0 != Some(self.version) {
            Arc::make_mut(&mut self.past.1).refresh(&self.store)?;
            self.past.0 = Some(self.version);
        }
        Ok(())
    }

    /// What all runs say over time, metric by metric; or of how many runs that is not known yet. While a run
    /// is measured nothing is read for it: what was known before it is shown.
    ///
    /// Errors: the store cannot be read.
    pub(crate) fn trends(&mut self) -> Result<Result<Arc<Vec<HostTrend>>, usize>, Problem> {
        let waits = self.must_wait();
        let is_good = |(version, _): &&(i64, _)| waits || *version == self.version;
        if let Some((_, trends)) = self.trends.as_ref().filter(is_good) {
            return Ok(Ok(Arc::clone(trends)));
        }
        if waits {
            return Ok(Err(self.entries.len()));
        }
        let until = self.until;
        let goes_on = || until.is_none_or(|until| Instant::now() <= until);
        let judging = match until {
            Some(_) => Judging::While(&goes_on),
            None => Judging::All,
        };
        self.read_past()?;
        let left = self.known.read(&self.past.1, &self.store, judging)?;
        if left > 0 {
            return Ok(Err(left));
        }
        let trends = Arc::new(self.known.trends(Some(&self.store), &self.places));
        self.trends = Some((self.version, Arc::clone(&trends)));
        Ok(Ok(trends))
    }

    /// The same for a page of the whole lab: none for a part of it, nor while runs are left, and how many
    /// are.
    ///
    /// Errors: the store cannot be read.
    pub(crate) fn trends_so_far(&mut self) -> Result<(Arc<Vec<HostTrend>>, usize), Problem> {
        if self.is_part {
            return Ok((Arc::default(), 0));
        }
        let found = self.trends()?;
        Ok(found.map_or_else(|left| (Arc::default(), left), |hosts| (hosts, 0)))
    }

    /// The order of versions where it is not in the lab alone: who knows a repository gives it.
    ///
    /// Errors: the store cannot be read.
    pub(crate) fn order_of_commits(&mut self) -> Result<Vec<String>, Problem> {
        self.read_past()?;
        if self.is_part || !self.past.1.has_commits() {
            return Ok(Vec::new());
        }
        let hosts = self.trends()?.unwrap_or_default();
        let versions = hosts.iter().flat_map(|host| &host.versions);
        Ok(versions
            .map(|version| format!("{} {:?}", version.identity, version.place))
            .collect())
    }

    /// The run that is measured now. Nothing is locked to find out, so that no run is refused for it.
    fn measured_now(&self) -> Result<Option<String>, Problem> {
        let is_locked = is_locked(&self.store);
        let run = self.store.measured(is_locked).map_err(store_problem)?;
        // Somebody has the lock, and has not begun.
        let somebody = || {
            self.store
                .lock_holder()
                .unwrap_or_else(|| "a run".to_owned())
        };
        Ok(run.or_else(|| is_locked.then(somebody)))
    }

    /// Bisections are in the store; replays have only their files.
    fn stored_now(&self) -> Result<Vec<String>, Problem> {
        let mut names: Vec<String> = self.store.bisections().map_err(store_problem)?;
        names.retain(|name| self.directory().join(format!("{name}.html")).is_file());
        let files = std::fs::read_dir(self.directory())
            .into_iter()
            .flatten()
            .flatten();
        let pages = files.filter_map(|file| {
            let name = file.file_name().into_string().ok()?;
            let name = name.strip_suffix(".html")?;
            name.starts_with(REPLAY).then(|| name.to_owned())
        });
        names.extend(pages);
        names.sort();
        names.reverse();
        Ok(names)
    }

    /// The state of a run in a word, as `deltabench list` has it.
    pub(crate) fn state_word(&self, entry: &Entry) -> &'static str {
        let is_measured = self.measured.as_ref() == Some(&entry.name);
        entry.state.word_if(is_measured)
    }

    /// A run by its name, as it is or as part of a path.
    pub(crate) fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.get(self.place(name)?)
    }

    /// The place of a run in `entries`.
    pub(crate) fn place(&self, name: &str) -> Option<usize> {
        self.index.get(name).copied()
    }

    /// Lets analyses for lists begin for this long: what is missing then comes with the next look.
    pub(crate) fn allow(&mut self, time: Duration) {
        self.until = Some(Instant::now() + time);
    }

    /// Whether analyses have to wait for the end of a run.
    pub(crate) fn must_wait(&self) -> bool {
        self.measured.is_some()
    }

    /// The cores of a run that is measured now, if it was given cores by hand: others are drawn for each
    /// visit, and may be any.
    pub(crate) fn measured_cores(&self) -> Vec<usize> {
        let entry = self.measured.as_deref().and_then(|name| self.entry(name));
        entry.map_or_else(Vec::new, |entry| entry.cores.clone())
    }

    /// What a run depends on: its own records, runs that belong to it, and those that ended before it did.
    pub(crate) fn stamp_of(&self, entry: &Entry) -> &str {
        self.stamps.of_run(&entry.name)
    }

    /// What these runs found, of those that are known, and how many are not known yet.
    ///
    /// Errors: the store cannot be read.
    pub(crate) fn outcomes_of<'a>(
        &mut self,
        runs: impl Iterator<Item = &'a Entry>,
    ) -> Result<FoundOf<'a>, Problem> {
        let (mut all, mut missing) = (Vec::new(), 0);
        for entry in runs {
            match self.outcomes(&entry.name)? {
                Some(found) => all.push((entry, found)),
                None => missing += 1,
            }
        }
        Ok((all, missing))
    }

    /// What a run found, from an analysis unless that is known; `None` while a measured run must not be
    /// disturbed.
    ///
    /// Errors: the store cannot be read.
    pub(crate) fn outcomes(&mut self, name: &str) -> Result<Option<Found>, Problem> {
        let Some(entry) = self.entry(name) else {
            return Ok(None);
        };
        let stamp = self.stamp_of(entry);
        let known = self.outcomes.get(&entry.name);
        if let Some((_, found)) = known.filter(|(of, _)| of == stamp) {
            return Ok(Some(Arc::clone(found)));
        }
        let (name, stamp) = (entry.name.clone(), stamp.to_owned());
        if let Some(found) = self.kept_outcomes(&name, &stamp) {
            let found = Arc::new(found);
            self.outcomes.insert(name, (stamp, Arc::clone(&found)));
            return Ok(Some(found));
        }
        if self.must_wait() || self.until.is_some_and(|until| Instant::now() > until) {
            return Ok(None);
        }
        // Only measured runs have something to compare.
        if entry.state == RunState::Planned || entry.is_replay && entry.visits_done == 0 {
            return Ok(Some(Arc::default()));
        }
        self.analysed(&name)?;
        Ok({ self.outcomes.get(&name) }.map(|(_, found)| Arc::clone(found)))
    }

    /// Reads what was kept of what all runs found, at once: lists ask for nearly all of them.
    pub(crate) fn read_outcomes(&mut self) {
        for (name, kept) in self.store.all_kept(OUTCOMES) {
            let stamp = self.stamps.of_run(&name);
            let is_known = self.outcomes.get(&name).is_some_and(|(of, _)| of == stamp);
            if is_known || kept.made_from != stamp {
                continue;
            }
            if let Ok(found) = serde_json::from_str(&kept.value) {
                let stamp = stamp.to_owned();
                self.outcomes.insert(name, (stamp, Arc::new(found)));
            }
        }
    }

    /// What was kept beside the store of what a run found.
    fn kept_outcomes(&self, name: &str, stamp: &str) -> Option<Vec<Outcome>> {
        serde_json::from_str(&self.store.kept(OUTCOMES, name, stamp)?).ok()
    }

    /// Analyses a run, and keeps what it found.
    ///
    /// Errors: the store cannot be read.
    pub(crate) fn analysed(&mut self, name: &str) -> Result<Arc<Read>, Problem> {
        if let Some((_, read)) = self.newest.as_ref().filter(|(of, _)| of == name) {
            return Ok(Arc::clone(read));
        }
        let plan = self.store.plan(name).map_err(store_problem)?;
        self.read_past()?;
        let Analysed {
            plan,
            comparison,
            context,
            ..
        } = analyse_among(name, &plan, &self.store, &self.past.1)?;
        let read = Arc::new(Read {
            plan,
            comparison,
            context,
        });
        let found = Outcome::all(&read.comparison, &read.context.invalidations);
        let stamp = self.stamps.of_run(name).to_owned();
        if let Ok(value) = serde_json::to_string(&found) {
            let made_from = stamp.clone();
            self.store.keep(OUTCOMES, name, &Kept { made_from, value });
        }
        self.outcomes
            .insert(name.to_owned(), (stamp, Arc::new(found)));
        self.newest = Some((name.to_owned(), Arc::clone(&read)));
        Ok(read)
    }

    /// A page that was made before and still holds.
    pub(crate) fn kept(&self, route: &Route) -> Option<Page> {
        self.pages.get(route).cloned()
    }

    /// Keeps a page for whoever asks for it next.
    pub(crate) fn keep(&mut self, route: &Route, page: &Page) {
        self.kept_bytes += page.text.len();
        if self.kept_bytes > KEPT_BYTES {
            self.forget_pages();
            self.kept_bytes = page.text.len();
        }
        self.pages.insert(route.clone(), page.clone());
    }

    fn forget_pages(&mut self) {
        self.pages.clear();
        self.kept_bytes = 0;
    }

    /// The lab's directory.
    pub fn directory(&self) -> &Path {
        self.store.lab()
    }
}
