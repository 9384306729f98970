//! Hosts that see no shared directory: files go in by `sbcast`, and steps of `srun` say what is there.
//!
//! Source: srun(1), sbcast(1) of Slurm 22.05. `sbcast --jobid` writes into a job of ours that runs, from any
//! machine with Slurm's commands. A step with `--overlap` runs beside the script of such a job.

use super::ask::{cannot_start, refusal};
use super::listing::{self, Running};
use super::{EXCLUDE, Slurm, array};
use deltabench_model::problem::Problem;
use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

/// How long a step may take, in seconds: a large file over a slow network. A host that hangs ends here.
const STEP_SECONDS: u32 = 1800;
/// How long it may take to end after TERM, in seconds.
const END_SECONDS: u32 = 10;
/// How long a step of its own waits for a host that is busy, in seconds.
const BUSY_SECONDS: u32 = 10;
/// Limit of time of a job for a step, in minutes.
const JOB_MINUTES: u32 = 30;

/// Where a step runs.
#[derive(Debug, Clone, Copy)]
pub enum Place<'a> {
    /// Beside the script of a job that runs.
    Beside(&'a Running),
    /// On this node, in a job of its own. A node that is busy refuses.
    On(&'a str),
}

impl Slurm {
    /// The elements of these jobs that run.
    ///
    /// Errors: the controller does not answer.
    pub fn running(&self, jobs: &[String]) -> Result<Vec<Running>, Problem> {
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        let wanted = format!("--jobs={}", array::ids(jobs));
        let mut arguments = listing::RUNNING.to_vec();
        arguments.push(&wanted);
        let listed = match self.ask("squeue", &arguments) {
            Err(problem) if super::ask::is_of_unknown_job(&problem) => return Ok(Vec::new()),
            listed => listing::running(&listed?)?,
        };
        let ours = |one: Running| {
            let (job, array) = array::with_id(jobs, &one.job)?;
            Some(Running {
                job: job.clone(),
                element: array.element(one.element),
                ..one
            })
        };
        Ok(listed.into_iter().filter_map(ours).collect())
    }

    /// Runs a shell script on a node, with these arguments; what it prints goes into a file.
    ///
    /// Errors: the node cannot be reached or is busy; the script fails, with what it said.
    pub fn step(
        &self,
        place: Place<'_>,
        (script, arguments): (&str, &[OsString]),
        output: &File,
    ) -> Result<(), Problem> {
        let mut words = self.place_words(place);
        words.extend(["/bin/sh", "-c", script, "sh"].map(OsString::from));
        words.extend_from_slice(arguments);
        self.srun(&words, output)
    }

    /// Copies a program to a node and runs it there, in a job of its own; the copy is removed.
    ///
    /// Errors: the node cannot be reached or is busy; the program fails, with what it said.
    pub fn run_copy(
        &self,
        node: &str,
        (program, to): (&Path, &Path),
        arguments: &[OsString],
        output: &File,
    ) -> Result<(), Problem> {
        let mut words = self.place_words(Place::On(node));
        words.push("--send-libs=no".into());
        let mut bcast = OsString::from("--bcast=");
        bcast.push(to);
        words.push(bcast);
        words.push(program.into());
        words.extend_from_slice(arguments);
        self.srun(&words, output)
    }

    fn place_words(&self, place: Place<'_>) -> Vec<OsString> {
        let mut words: Vec<String> = ["--nodes=1", "--ntasks=1", "--export=NIL", "--input=none"]
            .map(str::to_owned)
            .to_vec();
        words.extend(["--chdir=/", "--quiet", "--mpi=none"].map(str::to_owned));
        match place {
            Place::Beside(running) => {
                words.push("--overlap".to_owned());
                words.push(format!("--jobid={}", running.id));
            }
            Place::On(node) => {
                words.push(format!("--nodelist={node}"));
                words.push(format!("--immediate={BUSY_SECONDS}"));
                words.push(format!("--time={JOB_MINUTES}"));
                words.push("--job-name=dlb-copy".to_owned());
                { self.partition.iter() }.for_each(|one| words.push(format!("--partition={one}")));
                let extra = self.extra.iter().filter(|word| !word.starts_with(EXCLUDE));
                words.extend(extra.cloned());
            }
        }
        words.into_iter().map(OsString::from).collect()
    }

    fn srun(&self, words: &[OsString], output: &File) -> Result<(), Problem> {
        let mut command = self.bounded("srun");
        // Of a job in which somebody calls us.
        for (name, _) in std::env::vars_os() {
            let own = name.as_encoded_bytes();
            if own.starts_with(b"SRUN_") || own.starts_with(b"SLURM_") && own != b"SLURM_CONF" {
                command.env_remove(&name);
            }
        }
        let output = output.try_clone();
        let output = output.map_err(|error| cannot_start("srun", &error))?;
        command.args(words).stdout(Stdio::from(output));
        ended("srun", command)
    }

    /// Copies a file to the node of a job that runs. The directory is there.
    ///
    /// Errors: the node cannot be reached; its disk is full.
    pub fn broadcast(&self, running: &Running, file: &Path, to: &Path) -> Result<(), Problem> {
        let mut command = self.bounded("sbcast");
        command
            .arg("--force")
            .arg(format!("--jobid={}", running.id));
        command.arg(file).arg(to).stdout(Stdio::null());
        ended("sbcast", command)
    }

    fn bounded(&self, program: &str) -> Command {
        let mut command = self.command("timeout");
        command.arg(format!("--kill-after={END_SECONDS}"));
        command.arg(STEP_SECONDS.to_string()).arg(program);
        command
    }
}

fn ended(program: &str, mut command: Command) -> Result<(), Problem> {
    command.stdin(Stdio::null()).stderr(Stdio::piped());
    let output = { command.spawn() }.and_then(std::process::Child::wait_with_output);
    let output = output.map_err(|error| cannot_start(program, &error))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    match said.trim() {
        "" => Err(Problem::new(format!("{program} failed")).detail(output.status.to_string())),
        said => Err(refusal(program, said)),
    }
}
