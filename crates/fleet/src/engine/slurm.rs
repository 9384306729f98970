//! Slurm: `sbatch`, `squeue`, `scancel`, `sinfo`, `scontrol` and, where it has accounting, `sacct`.
//!
//! Source: manual pages of Slurm 22.05. An element is known by its array's job and its number, never by its
//! own job id: it gets one when it starts, and the last element has that of the array.

mod ask;
mod listing;
mod script;

use super::{Engine, JobState, Node, Seen, Submission};
use deltabench_model::problem::Problem;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a controller that does not answer is asked again.
const PATIENCE: Duration = Duration::from_secs(120);

/// How long a controller may take to list what a killed `sbatch` has handed in.
const SETTLING: Duration = Duration::from_secs(20);

/// A cluster of Slurm, seen from a machine that has its commands.
#[derive(Debug, Clone)]
pub struct Slurm {
    /// The partition; absent: the cluster's default one.
    pub partition: Option<String>,
    /// Features that a host must have, in Slurm's words: `epyc&nvme`.
    pub constraint: Option<String>,
    /// More options for `sbatch`, each as it stands on a command line: `--account=perf`.
    pub extra: Vec<String>,
    /// The configuration; absent: what `SLURM_CONF` says, else Slurm's own place.
    pub conf: Option<PathBuf>,
    /// How long a controller that does not answer is asked again.
    pub patience: Duration,
}

impl Default for Slurm {
    fn default() -> Self {
        Self {
            partition: None,
            constraint: None,
            extra: Vec::new(),
            conf: None,
            patience: PATIENCE,
        }
    }
}

impl Engine for Slurm {
    fn submit(&self, submission: &Submission) -> Result<String, Problem> {
        let path = self.write_script(submission)?;
        let comment = script::comment(&path);
        // A controller may take a job and be away before it says so.
        let taken = || {
            let listed = self.ask("squeue", &listing::BY_COMMENT)?;
            Ok(listing::with_text(&listed, &comment))
        };
        let words = ["--parsable".as_ref(), path.as_os_str()];
        match self.submit_once("sbatch", &words, submission.held.as_deref(), &taken) {
            Ok(job) => Ok(job),
            Err(problem) => {
                // Where nobody answered the job may exist, and its script is what people look at.
                if !problem.of_machine {
                    let _ = std::fs::remove_file(&path);
                }
                Err(with_avoided(problem, &submission.avoid))
            }
        }
    }

    fn find(&self, name: &str) -> Result<Option<String>, Problem> {
        let wanted = format!("--name={name}");
        let mut arguments = listing::BY_NAME.to_vec();
        arguments.push(&wanted);
        let listed = self.ask("squeue", &arguments)?;
        if let Some(job) = listing::with_text(&listed, name) {
            return Ok(Some(job));
        }
        // What the controller has forgotten has ended; without accounting nobody knows more.
        let mut arguments = listing::SACCT_BY_NAME.to_vec();
        arguments.push(&wanted);
        let listed = self.ask_once("sacct", &arguments).unwrap_or_default();
        let job = listing::with_text(&listed, name);
        Ok(job.and_then(|job| Some(job.split('_').next()?.to_owned())))
    }

    fn settles_in(&self) -> Duration {
        SETTLING
    }

    fn look(&self, jobs: &[String]) -> Result<Vec<Seen>, Problem> {
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        let wanted = format!("--jobs={}", jobs.join(","));
        let mut arguments = listing::SQUEUE.to_vec();
        arguments.push(&wanted);
        let listed = match self.ask("squeue", &arguments) {
            // One job alone that it has forgotten.
            Err(problem) if ask::is_of_unknown_job(&problem) => String::new(),
            listed => listed?,
        };
        let mut seen = listing::elements(&listed)?;
        seen.retain(|one| jobs.contains(&one.job));
        let forgotten = |job: &&String| !seen.iter().any(|one| one.job == **job);
        let forgotten: Vec<&str> = jobs.iter().filter(forgotten).map(String::as_str).collect();
        if !forgotten.is_empty() {
            seen.extend(self.accounted(&forgotten));
        }
        Ok(seen)
    }

    fn cancel(&self, job: &str, element: Option<u32>) -> Result<(), Problem> {
        let name = element.map_or_else(|| job.to_owned(), |element| format!("{job}_{element}"));
        let ended = self.ask("scancel", &[name.as_str()]);
        unless_ended(ended)
    }

    fn nodes(&self) -> Result<Vec<Node>, Problem> {
        let partition = self.partition.as_ref();
        let partition = partition.map(|partition| format!("--partition={partition}"));
        let mut arguments = listing::SINFO.to_vec();
        arguments.extend(partition.as_deref());
        listing::nodes(&self.ask("sinfo", &arguments)?)
    }

    fn drain(&self, node: &str, reason: &str) -> Result<(), Problem> {
        // Slurm would take `ALL` and `n[1-9]`.
        let nodes = self.nodes()?;
        if !nodes.iter().any(|known| known.name == node) {
            let names: Vec<&str> = nodes.iter().map(|known| known.name.as_str()).collect();
            return Err(Problem::new(format!("no host {node}"))
                .detail(format!("hosts: {}", names.join(", ")))
                .hint("deltabench fleet hosts"));
        }
        let (name, why) = (format!("NodeName={node}"), format!("Reason={reason}"));
        self.ask("scontrol", &["update", &name, "State=DRAIN", &why])
            .map(drop)
    }

    fn undrain(&self, node: &str, reason: &str) -> Result<(), Problem> {
        let is_drained = |known: &Node| {
            known.name == node && known.state.starts_with("drain") && known.reason == reason
        };
        if !self.nodes()?.iter().any(is_drained) {
            return Ok(());
        }
        let name = format!("NodeName={node}");
        self.ask("scontrol", &["update", &name, "State=RESUME"])
            .map(drop)
    }

    fn avoid(&self, job: &str, nodes: &[String]) -> Result<(), Problem> {
        let seen = self.look(&[job.to_owned()])?.into_iter();
        let waiting = seen.filter(|one| matches!(one.state, JobState::Waiting(_)));
        let waiting: Vec<u32> = waiting.map(|one| one.element).collect();
        match waiting.is_empty() {
            true => Ok(()),
            false => self.exclude(job, &waiting, nodes),
        }
    }

    fn elsewhere(&self, job: &str, element: u32, nodes: &[String]) -> Result<bool, Problem> {
        // Only what waits can be kept away from hosts. From the first command on Slurm ends this element.
        let name = format!("{job}_{element}");
        self.ask("scontrol", &["requeue", &name])?;
        let excluded = self.exclude(job, &[element], nodes);
        if excluded.is_err() {
            // It would come back here, again and again.
            self.cancel(job, Some(element))?;
        }
        excluded.map(|()| true)
    }

    fn hasten(&self, job: &str, element: u32) -> Result<(), Problem> {
        // The reason need not be `BeginTime`: of two reasons Slurm shows one.
        let waits = |one: &Seen| {
            let waits = matches!(one.state, JobState::Waiting(_));
            one.job == job && one.element == element && waits
        };
        if !self.look(&[job.to_owned()])?.iter().any(waits) {
            return Ok(());
        }
        let name = format!("JobId={job}_{element}");
        unless_ended(self.ask("scontrol", &["update", &name, "StartTime=now"]))
    }

    fn preview(&self, submission: &Submission) -> Vec<String> {
        let path = script::path(submission, 1);
        match script::text(self, submission, &path) {
            Ok(text) => {
                let text = String::from_utf8_lossy(&text).into_owned();
                let mut lines = vec![format!("sbatch --parsable {}", path.display())];
                lines.extend(text.lines().map(str::to_owned));
                lines
            }
            Err(problem) => problem.to_string().lines().map(str::to_owned).collect(),
        }
    }
}

impl Slurm {
    fn exclude(&self, job: &str, elements: &[u32], nodes: &[String]) -> Result<(), Problem> {
        let name = format!("JobId={job}_[{}]", script::ranges(elements));
        let nodes = format!("ExcNodeList={}", nodes.join(","));
        // From within an element that ends now every process of it gets TERM, and KILL only after KillWait.
        let words = [
            "-c",
            "trap '' TERM; exec scontrol update \"$@\"",
            "scontrol",
        ];
        let words: Vec<&str> = words.into_iter().chain([name.as_str(), &nodes]).collect();
        unless_ended(self.ask("/bin/sh", &words))
    }

    /// Writes the script under a name that is free.
    fn write_script(&self, submission: &Submission) -> Result<PathBuf, Problem> {
        let cannot = |path: &Path, error: std::io::Error| {
            Problem::new(format!("cannot write {}", path.display()))
                .detail(error.to_string())
                .caused_by(&error)
        };
        for number in 1..=u32::MAX {
            let path = script::path(submission, number);
            let text = script::text(self, submission, &path)?;
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(mut file) => {
                    let written = file.write_all(&text).and_then(|()| file.sync_all());
                    written.map_err(|error| cannot(&path, error))?;
                    return Ok(path);
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(cannot(&path, error)),
            }
        }
        Err(Problem::new("no name is free for a script"))
    }

    /// What the accounting knows of jobs that the controller has forgotten: nothing where there is none.
    fn accounted(&self, jobs: &[&str]) -> Vec<Seen> {
        let wanted = format!("--jobs={}", jobs.join(","));
        let mut arguments = listing::SACCT.to_vec();
        arguments.push(&wanted);
        let listed = self.ask_once("sacct", &arguments).ok();
        let seen = listed.and_then(|listed| listing::accounted(&listed).ok());
        let mut seen = seen.unwrap_or_default();
        seen.retain(|one| jobs.contains(&one.job.as_str()));
        seen
    }
}

/// Slurm does not say that only avoided hosts are left.
fn with_avoided(mut problem: Problem, avoided: &[String]) -> Problem {
    if let ([_, ..], Some(detail)) = (avoided, &mut problem.detail) {
        detail.push_str(&format!("\navoided hosts: {}", avoided.join(", ")));
    }
    problem
}

/// Something that has ended, or is about to, cannot be changed; that is no error.
fn unless_ended(answer: Result<String, Problem>) -> Result<(), Problem> {
    match answer {
        Err(problem) if !ask::is_of_unknown_job(&problem) => Err(problem),
        _ => Ok(()),
    }
}
