//! Lanes on hosts that see no directory of ours: what they need is copied to them, and what they measured is
//! fetched. The spool of the machine that does this is the whole one; that of a host is a part of it, in the
//! home of the execution there:
//!
//! ```text
//! LOCAL/EXECUTION@NODE/go-JOB.RESTARTS       all that the element needs is here
//!                      in/                   what arrives, until it is checked
//!                      bin/  servers/        as in the shared directory
//!                      x/EXECUTION/          a part of the spool, made again before each lane
//!                      EXECUTION/unit-007/   the lab of a unit
//!                      log/                  the output of lanes
//! ```
//!
//! Nothing is asked of a host while it measures.

mod arrival;
mod scripts;

use crate::engine::slurm::{Place, Running, Slurm};
use crate::full::is_full;
use crate::lanes::Lanes;
use crate::ship::short;
use crate::spool::{Spool, all_in};
use crate::whole_file::{failed, left_over, remove, sha256, write_json};
use deltabench_model::problem::Problem;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read, pipe};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Bytes that a host needs for each byte that arrives: the file, what is in it, and room to measure.
const ROOM: u64 = 4;

/// Where the copies of an execution are on a node.
pub fn home(local: &Path, execution: &str, node: &str) -> PathBuf {
    local.join(format!("{execution}@{node}"))
}

/// What a node has got, and whether all that it measured is here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Visit {
    pub node: String,
    /// The lane that it was for.
    pub lane: u32,
    /// The start of the element.
    pub token: String,
    pub is_fetched: bool,
}

/// Why an element that runs did not get what it needs.
#[derive(Debug)]
pub enum Unmet {
    /// Its host does not take it: its disk is full.
    Unfit(Problem),
    /// Something else, or something here: it may pass.
    Other(Problem),
}

impl Unmet {
    /// What the host has said. Of the disk here a problem says "cannot write".
    fn of_host(problem: Problem) -> Self {
        match is_full(&problem) && !problem.error.starts_with("cannot ") {
            true => Self::Unfit(problem),
            false => Self::Other(problem),
        }
    }
}

impl From<Problem> for Unmet {
    fn from(problem: Problem) -> Self {
        Self::Other(problem)
    }
}

/// What came of meeting an element that runs.
#[derive(Debug, PartialEq, Eq)]
pub enum Met {
    /// Its script has not begun.
    Early,
    /// It has all that it needs.
    Before,
    /// It got so many bytes.
    Copied(u64),
}

/// A file that hosts need, and where it belongs there.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Parcel {
    /// `bin/deltabench-…` or `servers/…`.
    name: String,
    file: PathBuf,
    sha256: String,
    bytes: u64,
}

/// Copies and fetches for an execution.
#[derive(Debug)]
pub struct Carrier<'a> {
    slurm: Slurm,
    spool: &'a Spool,
    lanes: &'a Lanes,
    local: PathBuf,
    shared: PathBuf,
}

impl<'a> Carrier<'a> {
    /// For an execution whose programs are in the directory `shared` here; `local` is the directory of hosts.
    pub fn new(
        slurm: Slurm,
        (spool, lanes): (&'a Spool, &'a Lanes),
        (shared, local): (PathBuf, PathBuf),
    ) -> Self {
        Self {
            slurm,
            spool,
            lanes,
            local,
            shared,
        }
    }

    /// The home of the execution on a node.
    pub fn home(&self, node: &str) -> PathBuf {
        home(&self.local, &self.lanes.execution, node)
    }

    /// The nodes that have copies, or may have.
    pub fn visits(&self) -> Vec<Visit> {
        all_in(&self.visits_directory())
    }

    fn visits_directory(&self) -> PathBuf {
        self.spool.root().join("copied")
    }

    fn visit_file(&self, node: &str) -> PathBuf {
        let name = node.replace('/', "-");
        self.visits_directory().join(format!("{name}.json"))
    }

    fn set_visit(&self, visit: &Visit) -> Result<(), Problem> {
        let place = self.visits_directory();
        fs::create_dir_all(&place).map_err(|error| failed("make", &place, &error))?;
        write_json(&self.visit_file(&visit.node), visit)
    }

    /// The elements of these jobs that run.
    ///
    /// Errors: the controller does not answer.
    pub fn running(&self, jobs: &[String]) -> Result<Vec<Running>, Problem> {
        self.slurm.running(jobs)
    }

    /// Copies what an element that runs still needs. What an earlier lane left there is fetched before.
    ///
    /// Errors: the host cannot be reached; its disk is full; a file arrived damaged.
    pub fn meet(&self, running: &Running) -> Result<Met, Unmet> {
        let _alone = self.alone()?;
        let known = self
            .visits()
            .into_iter()
            .find(|one| one.node == running.node);
        if known
            .as_ref()
            .is_some_and(|one| one.token == running.token())
        {
            return Ok(Met::Before);
        }
        let home = self.home(&running.node);
        let place = Place::Beside(running);
        let mut words = vec![home.clone().into_os_string(), running.token().into()];
        let parcels = parcels(self.lanes, &self.shared)?;
        for parcel in &parcels {
            words.extend([parcel.name.clone().into(), parcel.sha256.clone().into()]);
        }
        let said = self.said(place, (scripts::ASK, &words));
        let said = said.map_err(Unmet::of_host)?;
        let mut lines = said.lines();
        let has: Vec<&str> = match lines.next() {
            Some("waits") => lines
                .clone()
                .filter_map(|line| line.strip_prefix("has "))
                .collect(),
            // Who copied was killed before it could note that.
            Some("begun") => {
                self.set_visit(&visit(running, running.token()))?;
                return Ok(Met::Before);
            }
            Some(line) if line.starts_with("cannot ") => {
                let refused = Problem::new(format!("{} takes no copies", running.node));
                return Err(Unmet::Unfit(refused.detail(said.trim())));
            }
            _ => return Ok(Met::Early),
        };
        if known.is_some_and(|one| !one.is_fetched) {
            self.fetched(&running.node, Place::Beside(running))?;
        }
        // Before anything else is there: it is removed later, and what is measured is not forgotten.
        self.set_visit(&visit(running, String::new()))?;
        let missing = { parcels.iter() }.filter(|parcel| !has.contains(&parcel.name.as_str()));
        let part = self.part_of_spool()?;
        let all: Vec<&Parcel> = missing.chain([&part]).collect();
        let bytes = all.iter().map(|parcel| parcel.bytes).sum();
        let delivered = enough_room(lines, bytes, &running.node)
            .map_err(Unmet::Unfit)
            .and_then(|()| self.deliver(running, &home, &all));
        remove(&part.file);
        delivered.map(|()| Met::Copied(bytes))
    }

    /// Sends files, has them checked and unpacked there, and lets the element begin.
    fn deliver(&self, running: &Running, home: &Path, all: &[&Parcel]) -> Result<(), Unmet> {
        let mut words = vec![
            home.as_os_str().to_owned(),
            running.token().into(),
            self.lanes.execution.clone().into(),
        ];
        for parcel in all {
            let name = Path::new(&parcel.name).file_name().unwrap_or_default();
            let to = home.join("in").join(name);
            let sent = self.slurm.broadcast(running, &parcel.file, &to);
            sent.map_err(Unmet::of_host)?;
            words.extend([parcel.name.clone().into(), parcel.sha256.clone().into()]);
        }
        self.spool.take(running.element, &running.node)?;
        let unpacked = self.said(Place::Beside(running), (scripts::UNPACK, &words));
        unpacked.map_err(Unmet::of_host)?;
        let told = self.set_visit(&visit(running, running.token()));
        told.map_err(Unmet::Other)
    }

    /// Fetches what a node has measured, its output and how its attempts ended, in a job of its own there;
    /// returns how many sealed files are new.
    ///
    /// Errors: the host cannot be reached or is busy; a file arrived damaged. All of it may be repeated.
    pub fn fetch(&self, node: &str) -> Result<u32, Problem> {
        let _alone = self.alone()?;
        self.fetched(node, Place::On(node))
    }

    fn fetched(&self, node: &str, place: Place<'_>) -> Result<u32, Problem> {
        let arriving = self
            .spool
            .root()
            .join(format!("arriving-{}", node.replace('/', "-")));
        remove(&arriving);
        let made = fs::create_dir_all(&arriving);
        made.map_err(|error| failed("make", &arriving, &error))?;
        let taken = self.arrived(node, place, &arriving);
        remove(&arriving);
        let taken = taken?;
        let known = self.visits().into_iter().find(|one| one.node == node);
        if let Some(visit) = known {
            self.set_visit(&Visit {
                is_fetched: true,
                ..visit
            })?;
        }
        Ok(taken)
    }

    /// What is sent arrives in this directory, and is taken if it is whole.
    fn arrived(&self, node: &str, place: Place<'_>, arriving: &Path) -> Result<u32, Problem> {
        let file = arriving.join("parcel");
        let output = File::create(&file).map_err(|error| failed("write", &file, &error))?;
        let mut words = vec![
            self.home(node).into_os_string(),
            self.lanes.execution.clone().into(),
        ];
        words.extend(self.known_files().into_iter().map(OsString::from));
        self.slurm
            .step(place, (scripts::COLLECT, &words), &output)?;
        arrival::take((self.spool, self.lanes), node, arriving)
    }

    /// What `tar` leaves out there, because it is here.
    fn known_files(&self) -> Vec<String> {
        let units = self.lanes.units.iter();
        let attempts = units.flat_map(|unit| self.spool.attempts(unit.unit));
        let hashes = attempts.flat_map(|attempt| attempt.hashes());
        hashes
            .map(|hash| format!("--exclude=sealed-{hash}.sqlite.gz"))
            .collect()
    }

    /// Removes all copies from a node, which is idle.
    ///
    /// Errors: the host cannot be reached or is busy.
    pub fn clean(&self, node: &str) -> Result<(), Problem> {
        let _alone = self.alone()?;
        let words = [self.home(node).into_os_string()];
        self.said(Place::On(node), (scripts::CLEAN, &words))?;
        remove(&self.visit_file(node));
        Ok(())
    }

    /// One command copies and fetches at a time. What one left that was killed meanwhile goes.
    fn alone(&self) -> Result<File, Problem> {
        let path = self.spool.root().join("copying.lock");
        let locked = File::create(&path).and_then(|file| file.lock().map(|()| file));
        let locked = locked.map_err(|error| failed("lock", &path, &error))?;
        arrival::sweep(self.spool);
        Ok(locked)
    }

    fn said(&self, place: Place<'_>, script: (&str, &[OsString])) -> Result<String, Problem> {
        // Not through a file: a disk that is full here would look like one there. It is a few lines.
        let (mut output, input) =
            pipe().map_err(|error| failed("ask", self.spool.root(), &error))?;
        let input = File::from(OwnedFd::from(input));
        self.slurm.step(place, script, &input)?;
        drop(input);
        let mut said = String::new();
        let read = output.read_to_string(&mut said);
        read.map_err(|error| failed("ask", self.spool.root(), &error))?;
        Ok(said)
    }

    /// The lanes, and of each attempt who made it and how it ended: a lane measures what is left.
    fn part_of_spool(&self) -> Result<Parcel, Problem> {
        let place = self.spool.root().join(".leaving");
        remove(&place);
        arrival::part(
            (self.spool, self.lanes),
            &place.join("x").join(&self.lanes.execution),
        )?;
        let file = place.with_extension("tar");
        let packed = tar(Command::new("tar")
            .arg("-C")
            .arg(&place)
            .arg("-cf")
            .arg(&file)
            .arg("x"));
        remove(&place);
        packed?;
        parcel("spool".to_owned(), file)
    }
}

/// A node that gets copies for an element. What it measured before has been fetched.
fn visit(running: &Running, token: String) -> Visit {
    Visit {
        node: running.node.clone(),
        lane: running.element,
        token,
        is_fetched: false,
    }
}

/// A full disk would end the lane later, with less to say.
fn enough_room<'a>(
    mut said: impl Iterator<Item = &'a str>,
    bytes: u64,
    node: &str,
) -> Result<(), Problem> {
    let free = said.find_map(|line| line.strip_prefix("free "));
    let kib: Option<u64> = free.and_then(|kib| kib.trim().parse().ok());
    let needed = bytes.saturating_mul(ROOM) / 1024;
    match kib {
        Some(kib) if kib < needed => Err(Problem::new(format!("the disk of {node} is full"))
            .detail(format!("{kib} KiB are free, {needed} KiB are needed"))
            .hint("remove what is old there, or set `local` in the fleet file")),
        _ => Ok(()),
    }
}

/// What hosts need, packed beside the programs once.
///
/// Errors: a program or a server that cannot be read or packed.
fn parcels(lanes: &Lanes, shared: &Path) -> Result<Vec<Parcel>, Problem> {
    let name = format!("bin/deltabench-{}", short(&lanes.binary_sha256));
    let file = shared.join(&name);
    let mut parcels = vec![Parcel {
        bytes: bytes_of(&file)?,
        // Its host checks it.
        sha256: lanes.binary_sha256.clone(),
        name,
        file,
    }];
    for sent in &lanes.shipped {
        let key = short(&sent.tree_sha256);
        let packed = shared.join("parcels").join(format!("{key}.tgz"));
        if !packed.exists() {
            pack(&shared.join("servers").join(key), &packed)?;
        }
        let parcel = parcel(format!("servers/{key}"), packed)?;
        if !parcels.contains(&parcel) {
            parcels.push(parcel);
        }
    }
    Ok(parcels)
}

fn pack(tree: &Path, packed: &Path) -> Result<(), Problem> {
    let beside = packed.with_extension(format!("new-{}", std::process::id()));
    if let Some(place) = packed.parent() {
        fs::create_dir_all(place).map_err(|error| failed("make", place, &error))?;
    }
    let mut command = Command::new("tar");
    command
        .arg("-C")
        .arg(tree)
        .arg("-czf")
        .arg(&beside)
        .arg(".");
    tar(&mut command).inspect_err(|_| remove(&beside))?;
    fs::rename(&beside, packed).map_err(|error| left_over("write", (packed, &beside), &error))
}

fn parcel(name: String, file: PathBuf) -> Result<Parcel, Problem> {
    Ok(Parcel {
        name,
        sha256: sha256(&file)?,
        bytes: bytes_of(&file)?,
        file,
    })
}

fn bytes_of(file: &Path) -> Result<u64, Problem> {
    let data = fs::metadata(file).map_err(|error| failed("read", file, &error))?;
    Ok(data.len())
}

/// Runs `tar`.
fn tar(command: &mut Command) -> Result<(), Problem> {
    let output = command.output().map_err(|error| {
        Problem::new("cannot start tar")
            .detail(error.to_string())
            .hint("install it (Debian: apt-get install tar)")
    })?;
    if output.status.success() {
        return Ok(());
    }
    Err(Problem::new("tar failed").detail(String::from_utf8_lossy(&output.stderr).trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_the_hosts_only_if_the_host_says_so() {
        let host = Problem::new("Slurm refuses sbcast")
            .detail("sbcast: error: REQUEST_FILE_BCAST(n1): No space left on device");
        let here = Problem::new("cannot write /home/me/spool").detail("No space left on device");
        let other =
            Problem::new("Slurm refuses srun").detail("srun: error: Required node not available");
        let is_full = |problem| matches!(Unmet::of_host(problem), Unmet::Unfit(_));
        assert_eq!([host, here, other].map(is_full), [true, false, false]);
    }
}
