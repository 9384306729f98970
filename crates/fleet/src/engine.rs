//! What carries lanes to hosts: four verbs, whatever the scheduler is.

pub mod local;
pub mod slurm;

use deltabench_model::problem::Problem;
use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// An array of equal jobs, an element each lane.
#[derive(Debug, Clone)]
pub struct Submission {
    /// Its name in the engine's lists, by which [`Engine::find`] finds it: no other has it.
    pub name: String,
    /// The program and its arguments; the element's number follows as the last argument.
    pub command: Vec<OsString>,
    /// Numbers of the elements.
    pub elements: Vec<u32>,
    /// The lowest number that this array may have. An engine whose arrays end at a limit counts from here.
    pub from: u32,
    /// How many may run at once; absent: as many as there are hosts.
    pub at_once: Option<u32>,
    /// Time limit of an element, in minutes.
    pub minutes: u32,
    /// Nodes that it must not run on: those that were found unfit, or that we drained.
    pub avoid: Vec<String>,
    /// The only node that it may run on; absent: any.
    pub only: Option<String>,
    /// Jobs that must have ended before this one starts.
    pub after: Option<After>,
    /// Where the output of each element and the script go: a directory that all hosts see.
    pub directory: PathBuf,
    /// The elements wait on their host until what they need has been copied there. Paths in the command are
    /// then those below the home of the execution there, and the output goes there, too.
    pub copied: Option<Copied>,
    /// Locked for as long as a command of the scheduler hands it in, also where who started that is killed.
    pub held: Option<Arc<File>>,
}

/// A job whose hosts see no directory of ours.
#[derive(Debug, Clone)]
pub struct Copied {
    /// Directory on a disk of each host.
    pub local: PathBuf,
    pub execution: String,
    /// How long an element waits for what it needs, in seconds.
    pub patience_seconds: u32,
}

/// What a job waits for.
#[derive(Debug, Clone)]
pub enum After {
    /// All of these ended well.
    Success(Vec<String>),
    /// All of these ended, however that was.
    End(Vec<String>),
}

/// What an engine knows of an element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// The job, as [`Engine::submit`] named it.
    pub job: String,
    /// The element's number.
    pub element: u32,
    /// Where it is.
    pub state: JobState,
}

impl Seen {
    /// Whether it waits or runs.
    pub fn is_alive(&self) -> bool {
        !matches!(self.state, JobState::Ended { .. })
    }
}

/// How much an engine takes; absent: as much as there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// Elements of an array.
    pub array: Option<u32>,
    /// Jobs at a time; each element is one.
    pub jobs: Option<u32>,
}

/// Where an element is. One that the engine has forgotten is not listed at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobState {
    /// It waits, with the engine's reason.
    Waiting(String),
    /// It runs on this node.
    Running(String),
    /// It ended; the engine's word for how, and its exit code if that is known.
    Ended { how: String, code: Option<i32> },
}

/// A host as the engine knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The engine's name of it.
    pub name: String,
    /// The engine's word for its state: idle, allocated, drained, …
    pub state: String,
    /// Why it is drained or down; empty otherwise.
    pub reason: String,
    /// What it is, as users ask for it in a constraint.
    pub features: Vec<String>,
    /// Its cores.
    pub cores: u32,
    /// Its memory in MiB.
    pub memory_mib: u64,
}

/// What carries lanes to hosts.
///
/// Errors of all verbs: the engine cannot be asked, or refuses, with its own words.
pub trait Engine {
    /// Hands in an array; returns the engine's name of it.
    fn submit(&self, submission: &Submission) -> Result<String, Problem>;

    /// The job of this name, if one was handed in: the command that did it may have been killed before it
    /// could say so. `from` is that of its submission.
    fn find(&self, name: &str, from: u32) -> Result<Option<String>, Problem>;

    /// How much it takes.
    fn limits(&self) -> Result<Limits, Problem> {
        Ok(Limits::default())
    }

    /// How long after a submitter was killed its job may still appear.
    fn settles_in(&self) -> Duration {
        Duration::ZERO
    }

    /// What it knows of the elements of these jobs.
    fn look(&self, jobs: &[String]) -> Result<Vec<Seen>, Problem>;

    /// Ends an element, or the whole job. One that has ended is no error.
    fn cancel(&self, job: &str, element: Option<u32>) -> Result<(), Problem>;

    /// The hosts.
    fn nodes(&self) -> Result<Vec<Node>, Problem>;

    /// Whether a host is what the fleet file asks for, as far as its features tell.
    fn suits(&self, _node: &Node) -> bool {
        true
    }

    /// Takes no more jobs to this host, with the reason for whoever looks after it. What runs there goes on.
    fn drain(&self, node: &str, reason: &str) -> Result<(), Problem> {
        Err(
            Problem::new("this engine cannot take a host out of service")
                .detail(format!("host {node}, because: {reason}")),
        )
    }

    /// Takes jobs to this host again, if it was drained with this reason: what others drained stays so.
    fn undrain(&self, _node: &str, _reason: &str) -> Result<(), Problem> {
        Ok(())
    }

    /// Keeps each element of a job that waits away from the hosts that `away` names for it, and from no
    /// others.
    fn avoid(&self, _job: &str, _away: &dyn Fn(u32) -> Vec<String>) -> Result<(), Problem> {
        Ok(())
    }

    /// Puts an element that runs where it must not back into the queue, for another host than these. The
    /// element itself asks. Whether this engine has other hosts.
    fn elsewhere(&self, _job: &str, _element: u32, _nodes: &[String]) -> Result<bool, Problem> {
        Ok(false)
    }

    /// Lets an element that waits after a lost host or exit code 75 start at once. One that does not wait is
    /// no error.
    fn hasten(&self, _job: &str, _element: u32) -> Result<(), Problem> {
        Ok(())
    }

    /// What [`Engine::submit`] would run, line by line, for people to read.
    fn preview(&self, _submission: &Submission) -> Vec<String> {
        Vec::new()
    }
}
