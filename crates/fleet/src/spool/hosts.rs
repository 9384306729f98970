//! The hosts of an execution: those that lanes have taken, that are admitted, that are avoided.

use super::{Attempt, End, EndWord, HostName, Spool, all_in, make};
use crate::whole_file::{failed, read_json, write, write_json};
use deltabench_model::problem::Problem;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// A host on which so many units in a row fail is broken: a full disk fails every unit.
pub const FAILURES: usize = 3;

/// A host that an execution avoids.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Avoided {
    pub host: HostName,
    pub why: String,
}

/// What is said of a host, and when: a copy of the file would be younger.
#[derive(Serialize)]
struct Said<'a, T> {
    #[serde(flatten)]
    what: &'a T,
    /// Milliseconds since 1970.
    at_unix_ms: i64,
}

impl<'a, T> Said<'a, T> {
    fn now(what: &'a T) -> Self {
        Self {
            what,
            at_unix_ms: unix_ms(SystemTime::now()),
        }
    }
}

#[derive(Deserialize)]
struct SaidAt {
    /// Absent in files of older versions.
    at_unix_ms: Option<i64>,
}

/// When a file of a host was written where that was said, in milliseconds since 1970; 0 without a file.
pub(crate) fn said_at(file: &Path) -> i64 {
    let said = read_json::<SaidAt>(file).and_then(|said| said.at_unix_ms);
    let of_file = || std::fs::metadata(file).and_then(|data| data.modified());
    said.or_else(|| of_file().ok().map(unix_ms)).unwrap_or(0)
}

fn unix_ms(at: SystemTime) -> i64 {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

impl Spool {
    /// Avoids a host from now on.
    ///
    /// Errors: a directory that cannot be written.
    pub fn avoid(&self, avoided: &Avoided) -> Result<(), Problem> {
        make(&self.root.join("avoid"))?;
        write_json(&self.avoid_file(&avoided.host), &Said::now(avoided))
    }

    /// Says that a lane begins on a node.
    ///
    /// Errors: a directory that cannot be written.
    pub fn take(&self, lane: u32, node: &str) -> Result<(), Problem> {
        let place = self.root.join("taken");
        make(&place)?;
        write(
            &place.join(format!("{lane}@{}", node.replace('/', "-"))),
            b"",
        )
    }

    /// The lanes that have begun, with their nodes.
    pub fn taken(&self) -> Vec<(u32, String)> {
        let entries = std::fs::read_dir(self.root.join("taken"));
        let names = { entries.into_iter().flatten().flatten() }.map(|entry| entry.file_name());
        let of_name = |name: &str| {
            let (lane, node) = name.split_once('@')?;
            Some((lane.parse().ok()?, node.to_owned()))
        };
        names.filter_map(|name| of_name(name.to_str()?)).collect()
    }

    /// How the last attempts on a host ended if [`FAILURES`] in a row failed. Those before somebody said that
    /// it is to be used again do not count.
    pub fn is_broken(&self, host: &HostName, units: &[u32]) -> Option<String> {
        let since = self.admitted_since(host);
        let attempts = units.iter().flat_map(|unit| self.attempts(*unit));
        let is_here =
            |attempt: &Attempt| { attempt.owner() }.is_some_and(|owner| owner.host.uid == host.uid);
        let mut ends: Vec<End> = { attempts.filter(is_here) }
            .filter_map(|attempt| attempt.end())
            .filter(|end| end.at_unix_ms > since)
            .filter(|end| matches!(end.word, EndWord::Sealed | EndWord::Failed))
            .collect();
        ends.sort_by_key(|end| end.at_unix_ms);
        let last = ends.last_chunk::<FAILURES>()?;
        let all = last.iter().all(|end| end.word == EndWord::Failed);
        all.then(|| last.last().map(|end| end.text.clone()))
            .flatten()
    }

    /// Says that a host can tell equal things, and need not show it again in this execution.
    ///
    /// Errors: a directory that cannot be written.
    pub fn admit(&self, host: &HostName) -> Result<(), Problem> {
        make(&self.root.join("admitted"))?;
        write_json(&self.admitted_file(host), &Said::now(host))
    }

    /// Whether it has shown that.
    pub fn has_admitted(&self, host: &HostName) -> bool {
        self.admitted_file(host).exists()
    }

    /// Since when that holds, in milliseconds since 1970; 0 if it does not.
    pub(crate) fn admitted_since(&self, host: &HostName) -> i64 {
        said_at(&self.admitted_file(host))
    }

    fn admitted_file(&self, host: &HostName) -> PathBuf {
        let name = host.uid.replace('/', "-");
        self.root.join("admitted").join(format!("{name}.json"))
    }

    /// Avoids a host no more, which is named by its identifier or the engine's name; whether it was avoided.
    /// All nodes of that machine are used again, and it need not show again that it can tell equal things.
    ///
    /// Errors: a file that cannot be removed or written.
    pub fn forgive(&self, host: &str) -> Result<bool, Problem> {
        let all = self.avoided();
        let named = |one: &&Avoided| one.host.uid == host || one.host.node == host;
        let uids: BTreeSet<&str> = { all.iter().filter(named) }
            .map(|one| one.host.uid.as_str())
            .collect();
        for avoided in { all.iter() }.filter(|one| uids.contains(one.host.uid.as_str())) {
            // The list of the fleet itself admits nobody.
            if self.lanes_file().exists() {
                self.admit(&avoided.host)?;
            }
            let file = self.avoid_file(&avoided.host);
            std::fs::remove_file(&file).map_err(|error| failed("remove", &file, &error))?;
        }
        Ok(!uids.is_empty())
    }

    fn avoid_file(&self, host: &HostName) -> PathBuf {
        let name = format!("{}@{}", host.uid, host.node).replace('/', "-");
        self.root.join("avoid").join(format!("{name}.json"))
    }

    /// The hosts that are avoided.
    pub fn avoided(&self) -> Vec<Avoided> {
        all_in(&self.root.join("avoid"))
    }
}
