//! The directory of an execution that all hosts see: lanes, attempts, heartbeats, sealed files.
//!
//! ```text
//! SHARED/x/EXECUTION/lanes.json             what hosts have to know, written once
//!                    jobs/N.json            what was handed to the engine
//!                    cancelled              no attempt is begun or gone on with any more
//!                    avoid/UID.json         a host that was found unfit
//!                    unit-007/attempt-1/    made by the host that takes the unit; a later attempt ends it
//!                        owner.json  beat.json  end.json  sealed-SHA256.sqlite.gz  gathered-SHA256
//! ```

use crate::lanes::Lanes;
use crate::whole_file::{failed, read_json, write, write_json};
use deltabench_model::problem::Problem;
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// What a file of sealed measurements begins and ends with.
pub(crate) const SEALED: (&str, &str) = ("sealed-", ".sqlite.gz");
/// What marks a sealed file that is in the central store.
const GATHERED: &str = "gathered-";

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

/// What was handed to the engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// The engine's name of it.
    pub job: String,
    /// `lanes` or `gather`.
    pub what: String,
    /// The lanes.
    pub elements: Vec<u32>,
    /// Milliseconds since 1970.
    pub at_unix_ms: i64,
}

/// A host that an execution avoids.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Avoided {
    pub host: HostName,
    pub why: String,
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
        let lanes: Lanes = serde_json::from_slice(&text).map_err(|error| {
            Problem::new(format!("{} cannot be read", file.display())).detail(error.to_string())
        })?;
        lanes.check()
    }

    fn unit_directory(&self, unit: u32) -> PathBuf {
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
                    write_json(&attempt.directory.join("owner.json"), owner)?;
                    return Ok(attempt);
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

    /// Whether a unit is to be left alone: it failed, and would fail again.
    pub fn has_failed(&self, unit: u32) -> bool {
        let end = self.attempts(unit).last().and_then(Attempt::end);
        end.is_some_and(|end| end.word == EndWord::Failed) && !self.again(unit).exists()
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
        let attempts = self.attempts(unit);
        let is_sealed = |one: &Attempt| one.gathered().is_some() || !one.sealed().is_empty();
        attempts.iter().any(is_sealed)
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

    /// Keeps what was handed to the engine.
    ///
    /// Errors: a directory that cannot be written.
    pub fn add_job(&self, job: &Job) -> Result<(), Problem> {
        let number = self.jobs().len() + 1;
        write_json(
            &self.root.join("jobs").join(format!("{number:04}.json")),
            job,
        )
    }

    /// What was handed to the engine, the first first.
    pub fn jobs(&self) -> Vec<Job> {
        all_in(&self.root.join("jobs"))
    }

    /// Avoids a host from now on.
    ///
    /// Errors: a directory that cannot be written.
    pub fn avoid(&self, avoided: &Avoided) -> Result<(), Problem> {
        let name = avoided.host.uid.replace('/', "-");
        write_json(
            &self.root.join("avoid").join(format!("{name}.json")),
            avoided,
        )
    }

    /// The hosts that are avoided.
    pub fn avoided(&self) -> Vec<Avoided> {
        all_in(&self.root.join("avoid"))
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

    /// The hash of its file that was gathered.
    pub fn gathered(&self) -> Option<String> {
        let mark = self
            .files(|name| name.starts_with(GATHERED))
            .into_iter()
            .next()?;
        let name = mark.file_name()?.to_str()?.strip_prefix(GATHERED)?;
        Some(name.to_owned())
    }

    /// Says that its file is in the central store.
    pub(crate) fn set_gathered(&self, sha256: &str) -> Result<(), Problem> {
        write(&self.directory.join(format!("{GATHERED}{sha256}")), b"")
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
fn all_in<T: serde::de::DeserializeOwned>(directory: &Path) -> Vec<T> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
        .collect();
    files.sort();
    files.iter().filter_map(|file| read_json(file)).collect()
}
