//! Handing lanes to the engine.

use crate::arguments::conditions::{HugePagesWord, Servers};
use crate::clock::now;
use crate::config::Config;
use crate::failure::Failure;
use clap::ValueEnum;
use deltabench_fleet::engine::local::Local;
use deltabench_fleet::engine::slurm::Slurm;
use deltabench_fleet::engine::{After, Engine, JobState, Seen, Submission};
use deltabench_fleet::file::{EngineWord, FleetFile};
use deltabench_fleet::lanes::Lanes;
use deltabench_fleet::ship::short;
use deltabench_fleet::spool::{Avoided, Job, Spool};
use deltabench_model::problem::Problem;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What jobs are for.
const LANES: &str = "lanes";
const GATHER: &str = "gather";
/// Minutes that gathering may take.
const GATHER_MINUTES: u32 = 60;

/// Hands in the lanes of an execution.
pub struct Submitter<'a> {
    file: &'a FleetFile,
    spool: &'a Spool,
    lanes: &'a Lanes,
    engine: Box<dyn Engine>,
}

/// The engine of a fleet file.
pub fn engine(file: &FleetFile) -> Box<dyn Engine> {
    match file.engine {
        EngineWord::Local => Box::new(Local::new(file.shared.join("jobs"))),
        EngineWord::Slurm => Box::new(Slurm {
            partition: file.slurm.partition.clone(),
            constraint: file.slurm.constraint.clone(),
            extra: file.slurm.extra.clone(),
            ..Slurm::default()
        }),
    }
}

impl<'a> Submitter<'a> {
    pub fn new(file: &'a FleetFile, spool: &'a Spool, lanes: &'a Lanes) -> Self {
        Self {
            file,
            spool,
            lanes,
            engine: engine(file),
        }
    }

    /// Which engine it is.
    pub fn engine_word(&self) -> EngineWord {
        self.file.engine
    }

    /// Keeps how servers run on the hosts, for every time that lanes are handed in.
    pub fn keep_options(&self, servers: &Servers, config: &Config) -> Result<(), Failure> {
        let words: Vec<String> = options(self.file, servers, config)
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        let file = self.options_file();
        std::fs::write(&file, words.join("\n")).map_err(|error| {
            Failure::Failed(
                Problem::new(format!("cannot write {}", file.display())).detail(error.to_string()),
            )
        })
    }

    fn options_file(&self) -> PathBuf {
        self.spool.root().join("options")
    }

    /// Hands in these lanes, and after them the job that gathers.
    ///
    /// Errors: those of the engine.
    pub fn submit(&self, elements: &[u32]) -> Result<(), Failure> {
        let words = std::fs::read_to_string(self.options_file()).unwrap_or_default();
        let options: Vec<OsString> = words.lines().map(OsString::from).collect();
        let lanes = lanes_job(self.file, self.spool, self.lanes, (elements, &options));
        let job = self.hand_in(LANES, &lanes)?;
        let gather = gather_job(self.file, self.spool, self.lanes, &job);
        self.hand_in(GATHER, &gather)?;
        Ok(())
    }

    fn hand_in(&self, what: &str, submission: &Submission) -> Result<String, Failure> {
        let job = self.engine.submit(submission).map_err(Failure::Failed)?;
        let kept = Job {
            job: job.clone(),
            what: what.to_owned(),
            elements: submission.elements.clone(),
            at_unix_ms: now().1,
        };
        self.spool.add_job(&kept).map_err(Failure::Failed)?;
        Ok(job)
    }

    /// What the engine knows of the lanes.
    ///
    /// Errors: those of the engine.
    pub fn look(&self) -> Result<Vec<Seen>, Failure> {
        let jobs = self.jobs_of(LANES);
        self.engine.look(&jobs).map_err(Failure::Failed)
    }

    /// Lanes that wait or run, by the engine.
    ///
    /// Errors: those of the engine.
    pub fn alive(&self) -> Result<Vec<Seen>, Failure> {
        let mut seen = self.look()?;
        seen.retain(|one| !matches!(one.state, JobState::Ended { .. }));
        Ok(seen)
    }

    /// Lets a lane that waits for its turn to come back begin at once.
    ///
    /// Errors: those of the engine.
    pub fn hasten(&self, seen: &Seen) -> Result<(), Failure> {
        self.engine
            .hasten(&seen.job, seen.element)
            .map_err(Failure::Failed)
    }

    /// Ends a lane.
    ///
    /// Errors: those of the engine.
    pub fn end(&self, seen: &Seen) -> Result<(), Failure> {
        self.engine
            .cancel(&seen.job, Some(seen.element))
            .map_err(Failure::Failed)
    }

    /// Ends all jobs.
    ///
    /// Errors: those of the engine.
    pub fn cancel(&self) -> Result<(), Failure> {
        for what in [GATHER, LANES] {
            for job in self.jobs_of(what) {
                self.engine.cancel(&job, None).map_err(Failure::Failed)?;
            }
        }
        Ok(())
    }

    fn jobs_of(&self, what: &str) -> Vec<String> {
        let jobs = self.spool.jobs().into_iter();
        jobs.filter(|job| job.what == what)
            .map(|job| job.job)
            .collect()
    }
}

/// Options of `fleet lane`, one a word: how servers run.
pub fn options(file: &FleetFile, servers: &Servers, config: &Config) -> Vec<OsString> {
    let mut words: Vec<OsString> = Vec::new();
    if file.engine == EngineWord::Local {
        // Another host has its own.
        words.extend(["--cache".into(), config.cache.clone().into_os_string()]);
    }
    if let Some(user) = &servers.server_user {
        words.extend(["--server-user".into(), user.into()]);
    }
    if let Some(directory) = &servers.cluster_dir {
        words.extend(["--cluster-dir".into(), directory.clone().into_os_string()]);
    }
    let word = HugePagesWord::to_possible_value(&servers.huge_pages);
    if let Some(word) = word {
        words.extend(["--huge-pages".into(), word.get_name().into()]);
    }
    words
}

/// The program that was shipped.
fn program(file: &FleetFile, lanes: &Lanes) -> PathBuf {
    let name = format!("deltabench-{}", short(&lanes.binary_sha256));
    file.shared.join("bin").join(name)
}

fn command(program: &Path, words: &[&str], options: &[OsString], spool: &Spool) -> Vec<OsString> {
    let mut command: Vec<OsString> = vec![program.as_os_str().to_owned(), "--offline".into()];
    command.extend(words.iter().map(OsString::from));
    command.extend(options.iter().cloned());
    command.push(spool.lanes_file().into_os_string());
    command
}

/// The job of lanes.
pub fn lanes_job(
    file: &FleetFile,
    spool: &Spool,
    lanes: &Lanes,
    (elements, options): (&[u32], &[OsString]),
) -> Submission {
    let mut avoid: Vec<String> = spool
        .avoided()
        .into_iter()
        .map(|one| one.host.node)
        .collect();
    avoid.extend(drained(file).into_iter().map(|one| one.host.node));
    avoid.sort();
    avoid.dedup();
    Submission {
        name: format!("dlb-{}", lanes.execution),
        command: command(&program(file, lanes), &["fleet", "lane"], options, spool),
        elements: elements.to_vec(),
        at_once: file.hosts,
        minutes: lanes.minutes(),
        avoid,
        after: None,
        directory: spool.log_directory(),
    }
}

/// The job that gathers after another one, however that ended.
pub fn gather_job(file: &FleetFile, spool: &Spool, lanes: &Lanes, after: &str) -> Submission {
    Submission {
        name: format!("dlb-{}-gather", lanes.execution),
        command: command(&program(file, lanes), &["fleet", "after"], &[], spool),
        elements: vec![0],
        at_once: None,
        minutes: GATHER_MINUTES,
        avoid: Vec::new(),
        after: Some(After::End(vec![after.to_owned()])),
        directory: spool.log_directory(),
    }
}

/// Hosts that are avoided in all executions of a fleet file.
pub fn drained(file: &FleetFile) -> Vec<Avoided> {
    Spool::at(&file.shared).avoided()
}
