//! The directory of an execution that all hosts see: lanes, attempts, heartbeats, sealed files.
//!
//! ```text
//! SHARED/x/EXECUTION/lanes.json             what hosts have to know, written once
//!                    jobs/N.json            what is, or was to be, handed to the engine
//!                    handing.lock           who hands lanes in has it locked
//!                    watching.lock          who watches in the background has it locked
//!                    cancelled              no attempt is begun or gone on with any more
//!                    avoid/UID@NODE.json    a host that was found unfit; a machine may have several nodes
//!                    taken/LANE@NODE        a node on which a lane has begun
//!                    copied/NODE.json       a node that sees no spool and has got copies
//!                    outcome.json           how it ended; absent while lanes wait or run
//!                    admitted/UID.json      a host on which a server was as fast as itself
//!                    unit-007/attempt-1/    made by the host that takes the unit; a later attempt ends it
//!                        owner.json  beat.json  end.json  sealed-SHA256.sqlite.gz  gathered-SHA256
//!                        damaged-…          a sealed file that is not what its name says
//! ```

mod hosts;
mod outcome;

pub(crate) use hosts::said_at;
pub use hosts::{Avoided, FAILURES};
pub use outcome::{Outcome, Stopped};

use crate::host_lock::is_process;
use crate::lanes::{Lane, Lanes};
use crate::whole_file::{failed, read_json, remove, sweep, write, write_json};
use deltabench_model::problem::Problem;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// What a file of sealed measurements begins and ends with.
pub(crate) const SEALED: (&str, &str) = ("sealed-", ".sqlite.gz");
/// What marks a sealed file that is in the central store.
const GATHERED: &str = "gathered-";
/// What marks one that is there as a run of its own, beside the one that counts.
const BESIDE: &str = "beside-";
/// What a file begins with while it is packed.
pub(crate) const PACKING: &str = "sealing-";

/// How often a unit goes elsewhere because its host was unfit.
const ELSEWHERE: usize = 1;

/// A host, as attempts name it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostName {
    /// Random, from a file of the machine.
    pub uid: String,
    /// How the engine calls it.
    pub node: String,
}

/// Who makes an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    pub host: HostName,
    pub pid: u32,
    /// Clock ticks after the start of the kernel at which the process began.
    pub process_start: u64,
    pub boot_id: Option<String>,
    pub lane: u32,
    /// Milliseconds since 1970.
    pub at_unix_ms: i64,
}

/// A sign of life, written between visits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Beat {
    /// Milliseconds since 1970.
    pub at_unix_ms: i64,
    /// Blocks done.
    pub blocks: u32,
    /// Most blocks of a cell.
    pub of: u32,
    /// What is done from now on.
    pub text: String,
    /// Seconds until the next one at most, by what was planned.
    pub allowance_seconds: f64,
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EndWord {
    Sealed,
    /// It goes on on the same host.
    Interrupted,
    /// A later attempt is there.
    Superseded,
    /// The host is.
    Unfit,
    Failed,
    Cancelled,
}

impl EndWord {
    /// The word stored and printed.
    pub fn word(self) -> &'static str {
        match self {
            Self::Sealed => "sealed",
            Self::Interrupted => "interrupted",
            Self::Superseded => "superseded",
            Self::Unfit => "unfit",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// The end of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    pub word: EndWord,
    /// Why, in words.
    pub text: String,
    /// Milliseconds since 1970.
    pub at_unix_ms: i64,
}

/// What is handed to the engine. It is written before that, so that a job is found again whose submitter was
/// killed before it could write what the engine had answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Its number in the execution, from 1.
    pub number: u32,
    /// Its name in the engine's lists; no other job has it.
    pub name: String,
    /// The engine's name of it; absent until the engine has answered.
    pub job: Option<String>,
    /// Nobody handed it in: the submitter was killed before.
    pub given_up: bool,
    /// `lanes` or `gather`.
    pub what: String,
    /// The lanes.
    pub elements: Vec<u32>,
    /// The lowest lane that its array may have.
    #[serde(default)]
    pub from: u32,
    /// Milliseconds since 1970.
    pub at_unix_ms: i64,
}

/// What a job is called in the engine's lists.
pub fn job_name(execution: &str, number: u32, what: &str) -> String {
    format!("dlb-{execution}-{number}-{what}")
}

impl Job {
    /// Whether it is known what became of it.
    pub fn is_settled(&self) -> bool {
        self.job.is_some() || self.given_up
    }
}

/// The directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spool {
    root: PathBuf,
}

/// A try of a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    pub unit: u32,
    /// Its number, from 1.
    pub number: u32,
    directory: PathBuf,
}

impl Spool {
    /// The spools of all executions in a shared directory, by name.
    pub fn all(shared: &Path) -> Vec<Self> {
        let entries = std::fs::read_dir(shared.join("x"));
        let spools = entries.into_iter().flatten().flatten();
        let mut all: Vec<Self> = spools.map(|entry| Self::at(&entry.path())).collect();
        all.retain(|spool| spool.lanes_file().exists());
        all.sort_by(|one, other| one.root.cmp(&other.root));
        all
    }

    /// The spool of an execution in a shared directory.
    pub fn of(shared: &Path, execution: &str) -> Self {
        Self {
            root: shared.join("x").join(execution),
        }
    }

    /// The spool in this directory.
    pub fn at(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
        }
    }

    /// Its directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The directory that the spool is in, beside programs and servers.
    pub fn shared(&self) -> Option<&Path> {
        self.root.parent()?.parent()
    }

    /// The file with the lanes.
    pub fn lanes_file(&self) -> PathBuf {
        self.root.join("lanes.json")
    }

    /// Makes the directory and writes the lanes.
    ///
    /// Errors: a directory that is there already, or cannot be written.
    pub fn create(&self, lanes: &Lanes) -> Result<(), Problem> {
        if let Some(all) = self.root.parent() {
            make(all)?;
        }
        // One of two executions with one name would get the other's lanes.
        match std::fs::create_dir(&self.root) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                return Err(
                    Problem::new(format!("{} already exists", self.root.display()))
                        .detail("an execution with this name has begun in the same second")
                        .hint("give the command again"),
                );
            }
            made => made.map_err(|error| failed("make", &self.root, &error))?,
        }
        for directory in ["jobs", "avoid", "log"] {
            make(&self.root.join(directory))?;
        }
        for unit in &lanes.units {
            make(&self.unit_directory(unit.unit))?;
        }
        write_json(&self.lanes_file(), lanes)
    }

    /// The lanes.
    ///
    /// Errors: a file that is not there, or is none.
    pub fn lanes(&self) -> Result<Lanes, Problem> {
        let file = self.lanes_file();
        let text = std::fs::read(&file).map_err(|error| failed("read", &file, &error))?;
        Lanes::read(&text).map_err(|problem| {
            let why = problem.detail.unwrap_or_default();
            let told = Problem::new(format!("{} cannot be read", file.display()))
                .detail(format!("{}: {why}", problem.error));
            match problem.hint {
                Some(hint) => told.hint(hint),
                None => told,
            }
        })
    }

    pub(crate) fn unit_directory(&self, unit: u32) -> PathBuf {
        self.root.join(format!("unit-{unit:03}"))
    }

    /// The attempts at a unit, the first first.
    pub fn attempts(&self, unit: u32) -> Vec<Attempt> {
        let directory = self.unit_directory(unit);
        let names = std::fs::read_dir(&directory)
            .into_iter()
            .flatten()
            .flatten();
        let number = |name: &str| name.strip_prefix("attempt-")?.parse().ok();
        let mut numbers: Vec<u32> = names
            .filter_map(|entry| number(entry.file_name().to_str()?))
            .collect();
        numbers.sort_unstable();
        let attempt = |number| Attempt {
            unit,
            number,
            directory: directory.join(format!("attempt-{number}")),
        };
        numbers.into_iter().map(attempt).collect()
    }

    /// Takes a unit: the first number that is free. Of two hosts that try at once each gets its own, and the
    /// one with the lower number stops.
    ///
    /// Errors: a directory that cannot be written.
    pub fn claim(&self, unit: u32, owner: &Owner) -> Result<Attempt, Problem> {
        let last = self
            .attempts(unit)
            .last()
            .map_or(0, |attempt| attempt.number);
        for number in last + 1.. {
            let directory = self.unit_directory(unit).join(format!("attempt-{number}"));
            match std::fs::create_dir(&directory) {
                Ok(()) => {
                    std::fs::remove_file(self.again(unit)).ok();
                    let attempt = Attempt {
                        unit,
                        number,
                        directory,
                    };
                    let owned = write_json(&attempt.directory.join("owner.json"), owner);
                    if owned.is_err() {
                        // An attempt that nobody makes would be waited for.
                        remove(&attempt.directory);
                    }
                    return owned.map(|()| attempt);
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed("make", &directory, &error)),
            }
        }
        Err(Problem::new(format!(
            "no number is left for an attempt at unit {unit}"
        )))
    }

    /// Whether a later attempt at the same unit is there.
    pub fn is_superseded(&self, attempt: &Attempt) -> bool {
        let last = self
            .attempts(attempt.unit)
            .last()
            .map_or(0, |last| last.number);
        last > attempt.number
    }

    /// Whether a unit is to be left alone: it failed, and would fail again; or several hosts were unfit.
    pub fn has_failed(&self, unit: u32) -> bool {
        let attempts = self.attempts(unit);
        let word = |attempt: &Attempt| attempt.end().map(|end| end.word);
        // Those before somebody said that the host is to be used again do not count.
        let is_unfit = |attempt: &&Attempt| {
            let end = attempt.end().filter(|end| end.word == EndWord::Unfit);
            let host = attempt.owner().map(|owner| owner.host);
            let since = host.map_or(0, |host| self.admitted_since(&host));
            end.is_some_and(|end| end.at_unix_ms >= since)
        };
        // One that has not ended, or was killed, says nothing.
        let is_over = match attempts.last().and_then(word) {
            Some(EndWord::Failed) => true,
            Some(EndWord::Unfit) => attempts.iter().filter(is_unfit).count() > ELSEWHERE,
            _ => false,
        };
        is_over && !self.again(unit).exists()
    }

    /// Removes what is left of packing measurements, where whoever packed is gone: attempts that have an end,
    /// and those of processes of this host that do not run any more.
    pub fn sweep(&self, unit: u32, host_uid: &str) {
        for attempt in self.attempts(unit) {
            let is_gone = |owner: Owner| {
                owner.host.uid == host_uid && !is_process(owner.pid, owner.process_start)
            };
            let is_left = |name: &str| name.starts_with(PACKING);
            if attempt.end().is_some() || attempt.owner().is_some_and(is_gone) {
                attempt.files(is_left).iter().for_each(|file| remove(file));
            } else {
                sweep(&attempt.directory, is_left);
            }
        }
    }

    /// Says that a unit that failed is to be tried again.
    ///
    /// Errors: a directory that cannot be written.
    pub fn try_again(&self, unit: u32) -> Result<(), Problem> {
        write(&self.again(unit), b"")
    }

    fn again(&self, unit: u32) -> PathBuf {
        self.unit_directory(unit).join("again")
    }

    /// Whether a unit has measurements that are complete.
    pub fn is_sealed(&self, unit: u32) -> bool {
        self.attempts(unit).iter().any(Attempt::is_complete)
    }

    /// Whether a unit needs no more measuring on a host. If its lane has to be of one host it counts only
    /// there, until another host has all of the lane.
    pub fn is_done(&self, unit: u32, lane: &Lane, host_uid: &str) -> bool {
        match lane.one_host {
            false => self.is_sealed(unit),
            true => self.hosts_of(unit).contains(host_uid) || self.whole_on(lane).is_some(),
        }
    }

    /// The host that has measured all units of a lane but those that failed for good.
    pub fn whole_on(&self, lane: &Lane) -> Option<String> {
        let units = lane.units.iter();
        let mut each = units
            .filter(|unit| self.is_sealed(**unit) || !self.has_failed(**unit))
            .map(|unit| self.hosts_of(*unit));
        let first = each.next()?;
        let all = each.fold(first, |all, hosts| &all & &hosts);
        all.into_iter().next()
    }

    /// The identifiers of hosts that have measured a unit completely.
    fn hosts_of(&self, unit: u32) -> BTreeSet<String> {
        let attempts = self.attempts(unit).into_iter();
        let complete = attempts.filter(Attempt::is_complete);
        complete
            .filter_map(|attempt| Some(attempt.owner()?.host.uid))
            .collect()
    }

    /// Says that nothing more of the execution is to be measured.
    ///
    /// Errors: a directory that cannot be written.
    pub fn cancel(&self) -> Result<(), Problem> {
        write(&self.root.join("cancelled"), b"")
    }

    /// Takes a cancellation back.
    ///
    /// Errors: a file that cannot be removed.
    pub fn revive(&self) -> Result<(), Problem> {
        let file = self.root.join("cancelled");
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(failed("remove", &file, &error))
            }
            _ => Ok(()),
        }
    }

    /// Whether it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.root.join("cancelled").exists()
    }

    /// Where the engine writes the output of lanes.
    pub fn log_directory(&self) -> PathBuf {
        self.root.join("log")
    }

    /// Takes the right to hand lanes in, for as long as the file is open; `None` if somebody else has it.
    ///
    /// Errors: a directory that cannot be written, or has no locks.
    pub fn hand_in_alone(&self) -> Result<Option<File>, Problem> {
        self.alone("handing.lock")
    }

    /// Takes the right to watch in the background, for as long as the file is open; `None` if somebody else
    /// has it.
    ///
    /// Errors: a directory that cannot be written, or has no locks.
    pub fn watch_alone(&self) -> Result<Option<File>, Problem> {
        self.alone("watching.lock")
    }

    fn alone(&self, name: &str) -> Result<Option<File>, Problem> {
        let path = self.root.join(name);
        let file = File::create(&path).map_err(|error| failed("make", &path, &error))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(failed("lock", &path, &error)),
        }
    }

    /// The number of the next job that is handed in.
    pub fn next_job(&self) -> u32 {
        self.jobs().last().map_or(0, |job| job.number) + 1
    }

    /// Says what is to be handed to the engine now; its name follows from the execution's.
    ///
    /// Errors: a directory that cannot be written.
    pub fn intend(
        &self,
        what: &str,
        (from, elements): (u32, &[u32]),
        at_unix_ms: i64,
    ) -> Result<Job, Problem> {
        let number = self.next_job();
        let job = Job {
            number,
            name: job_name(&self.execution(), number, what),
            job: None,
            given_up: false,
            what: what.to_owned(),
            elements: elements.to_vec(),
            from,
            at_unix_ms,
        };
        self.set_job(&job)?;
        Ok(job)
    }

    /// Says what became of a job that was to be handed in.
    ///
    /// Errors: a directory that cannot be written.
    pub fn set_job(&self, job: &Job) -> Result<(), Problem> {
        let file = format!("{:04}.json", job.number);
        write_json(&self.root.join("jobs").join(file), job)
    }

    /// The name of the execution.
    pub fn execution(&self) -> String {
        let name = self.root.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// What was handed to the engine or was to be, the first first.
    pub fn jobs(&self) -> Vec<Job> {
        all_in(&self.root.join("jobs"))
    }
}

impl Attempt {
    /// Its directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Who makes it; `None` for a moment after it was claimed.
    pub fn owner(&self) -> Option<Owner> {
        read_json(&self.directory.join("owner.json"))
    }

    /// Its last sign of life.
    pub fn beat(&self) -> Option<Beat> {
        read_json(&self.directory.join("beat.json"))
    }

    /// Gives a sign of life.
    ///
    /// Errors: a directory that cannot be written.
    pub fn set_beat(&self, beat: &Beat) -> Result<(), Problem> {
        write_json(&self.directory.join("beat.json"), beat)
    }

    /// How it ended, if it did.
    pub fn end(&self) -> Option<End> {
        read_json(&self.directory.join("end.json"))
    }

    /// Ends it.
    ///
    /// Errors: a directory that cannot be written.
    pub fn set_end(&self, end: &End) -> Result<(), Problem> {
        write_json(&self.directory.join("end.json"), end)
    }

    /// Its sealed files that are not gathered yet.
    pub fn sealed(&self) -> Vec<PathBuf> {
        let is_sealed = |name: &str| name.starts_with(SEALED.0) && name.ends_with(SEALED.1);
        self.files(is_sealed)
    }

    /// Whether it has measurements that are complete.
    pub fn is_complete(&self) -> bool {
        let is_beside = |name: &str| name.starts_with(BESIDE);
        self.gathered().is_some() || !self.sealed().is_empty() || !self.files(is_beside).is_empty()
    }

    /// The hash of its file that was gathered and counts.
    pub fn gathered(&self) -> Option<String> {
        let mark = self
            .files(|name| name.starts_with(GATHERED))
            .into_iter()
            .next()?;
        let name = mark.file_name()?.to_str()?.strip_prefix(GATHERED)?;
        Some(name.to_owned())
    }

    /// The hashes of all its files, gathered or not.
    pub(crate) fn hashes(&self) -> Vec<String> {
        let of_mark = |name: &str| {
            let mark = name
                .strip_prefix(GATHERED)
                .or_else(|| name.strip_prefix(BESIDE));
            let sealed = || name.strip_prefix(SEALED.0)?.strip_suffix(SEALED.1);
            mark.or_else(sealed).map(str::to_owned)
        };
        let files = self.files(|name| of_mark(name).is_some()).into_iter();
        files
            .filter_map(|file| of_mark(file.file_name()?.to_str()?))
            .collect()
    }

    /// Says that its file is in the central store, and whether beside the one that counts.
    pub(crate) fn set_gathered(&self, sha256: &str, beside: bool) -> Result<(), Problem> {
        let word = if beside { BESIDE } else { GATHERED };
        write(&self.directory.join(format!("{word}{sha256}")), b"")
    }

    /// Puts a sealed file aside that is not what its name says; the unit is then measured again.
    ///
    /// Errors: a directory that cannot be written.
    pub fn put_aside(&self, sealed: &Path) -> Result<PathBuf, Problem> {
        let name = sealed.file_name().unwrap_or_default().to_string_lossy();
        let aside = self.directory.join(format!("damaged-{name}"));
        std::fs::rename(sealed, &aside).map_err(|error| failed("rename", sealed, &error))?;
        Ok(aside)
    }

    fn files(&self, wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&self.directory)
            .into_iter()
            .flatten()
            .flatten();
        let mut files: Vec<PathBuf> = entries
            .filter(|entry| entry.file_name().to_str().is_some_and(&wanted))
            .map(|entry| entry.path())
            .collect();
        files.sort();
        files
    }
}

fn make(directory: &Path) -> Result<(), Problem> {
    std::fs::create_dir_all(directory).map_err(|error| failed("make", directory, &error))
}

/// The values in the files of a directory, by name.
pub(crate) fn all_in<T: serde::de::DeserializeOwned>(directory: &Path) -> Vec<T> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
        .collect();
    files.sort();
    files.iter().filter_map(|file| read_json(file)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lanes() -> Lanes {
        Lanes {
            execution: "study".to_owned(),
            options: vec!["--huge-pages".to_owned(), "off".to_owned()],
            ..Lanes::default()
        }
    }

    fn owner(uid: &str, pid: u32, process_start: u64) -> Owner {
        Owner {
            host: HostName {
                uid: uid.to_owned(),
                node: format!("node {uid}"),
            },
            pid,
            process_start,
            boot_id: None,
            lane: 0,
            at_unix_ms: 0,
        }
    }

    fn spool(place: &Path) -> Spool {
        let spool = Spool::of(place, "study");
        spool.create(&lanes()).unwrap();
        make(&spool.unit_directory(1)).unwrap();
        spool
    }

    #[test]
    fn of_two_executions_of_a_name_one_is_refused_and_its_lanes_are_not_touched() {
        let place = tempfile::tempdir().unwrap();
        let spool = spool(place.path());
        let mut others = lanes();
        others.options.clear();
        let refused = spool.create(&others).unwrap_err();
        assert!(
            refused.error.ends_with("x/study already exists"),
            "{refused}"
        );
        assert_eq!(spool.lanes().unwrap(), lanes());
        std::fs::write(
            spool.lanes_file(),
            r#"{"format": "deltabench.lanes", "version": 1}"#,
        )
        .unwrap();
        let older = spool.lanes().unwrap_err();
        assert!(
            older
                .detail
                .unwrap()
                .contains("lanes of format deltabench.lanes 1")
        );
    }

    #[test]
    fn one_hands_in_at_a_time_and_a_job_without_an_answer_is_known_as_one() {
        let place = tempfile::tempdir().unwrap();
        let spool = spool(place.path());
        let alone = spool.hand_in_alone().unwrap().unwrap();
        assert!(spool.hand_in_alone().unwrap().is_none());
        drop(alone);
        assert!(spool.hand_in_alone().unwrap().is_some());
        let mut first = spool.intend("lanes", (0, &[0, 1]), 5).unwrap();
        assert_eq!(first.name, "dlb-study-1-lanes");
        assert!(!spool.jobs()[0].is_settled());
        first.job = Some("17".to_owned());
        spool.set_job(&first).unwrap();
        let second = spool.intend("gather", (0, &[0]), 6).unwrap();
        assert_eq!(spool.jobs(), [first, second]);
    }

    #[test]
    fn what_a_killed_process_left_of_packing_goes_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let spool = spool(place.path());
        let (pid, start) = crate::host_lock::own_process();
        let alive = spool.claim(1, &owner("here", pid, start)).unwrap();
        let dead = spool.claim(1, &owner("here", pid, start + 1)).unwrap();
        let elsewhere = spool.claim(1, &owner("there", pid, start + 1)).unwrap();
        for attempt in [&alive, &dead, &elsewhere] {
            std::fs::write(attempt.directory.join("sealing-7"), "").unwrap();
        }
        spool.sweep(1, "here");
        let left = |attempt: &Attempt| attempt.directory.join("sealing-7").exists();
        assert_eq!(
            [left(&alive), left(&dead), left(&elsewhere)],
            [true, false, true]
        );
        assert!(dead.owner().is_some());
        let end = End {
            word: EndWord::Failed,
            text: String::new(),
            at_unix_ms: 0,
        };
        elsewhere.set_end(&end).unwrap();
        spool.sweep(1, "here");
        assert!(!left(&elsewhere) && left(&alive));
    }

    #[test]
    fn a_machine_with_two_nodes_is_avoided_by_both_and_forgiven_by_either() {
        let place = tempfile::tempdir().unwrap();
        let spool = spool(place.path());
        for node in ["n1", "n2"] {
            let (uid, node) = ("u".to_owned(), node.to_owned());
            let host = HostName { uid, node };
            let why = "cold".to_owned();
            spool.avoid(&Avoided { host, why }).unwrap();
        }
        let nodes = spool.avoided().into_iter().map(|one| one.host.node);
        assert_eq!(nodes.collect::<Vec<_>>(), ["n1", "n2"]);
        assert!(spool.forgive("n2").unwrap());
        assert_eq!(spool.avoided(), []);
    }

    #[test]
    fn a_host_is_forgiven_by_either_name_and_units_go_elsewhere_once() {
        let place = tempfile::tempdir().unwrap();
        let spool = spool(place.path());
        for name in ["u/1", "u2"] {
            let host = owner(name, 0, 0).host;
            let why = "cold".to_owned();
            spool.avoid(&Avoided { host, why }).unwrap();
        }
        assert!(spool.forgive("node u/1").unwrap() && !spool.forgive("u/1").unwrap());
        assert_eq!(spool.avoided().len(), 1);
        let admitted = |name: &str| spool.has_admitted(&owner(name, 0, 0).host);
        assert!(admitted("u/1") && !admitted("u2"), "undone is overruled");
        for expected in [false, true] {
            let attempt = spool.claim(1, &owner("a", 1, 1)).unwrap();
            let end = End {
                word: EndWord::Unfit,
                text: String::new(),
                at_unix_ms: 0,
            };
            attempt.set_end(&end).unwrap();
            assert_eq!(spool.has_failed(1), expected);
        }
        // Somebody has mended that host: what it found before does not count.
        let host = owner("a", 1, 1).host;
        let why = "full".to_owned();
        spool.avoid(&Avoided { host, why }).unwrap();
        assert!(spool.forgive("a").unwrap() && !spool.has_failed(1));
        std::fs::remove_file(spool.root().join("admitted/a.json")).unwrap();
        assert!(spool.has_failed(1));
        spool.try_again(1).unwrap();
        assert!(!spool.has_failed(1));
        // The attempt that this asked for has not ended, and goes on when it was killed.
        spool.claim(1, &owner("a", 1, 1)).unwrap();
        assert!(!spool.has_failed(1));
    }
}
