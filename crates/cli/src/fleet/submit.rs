//! Handing lanes to the engine.

use super::disk::local_directory;
use crate::arguments::conditions::{HugePagesWord, Servers};
use crate::clock::now;
use crate::config::Config;
use crate::console::say;
use crate::failure::Failure;
use clap::ValueEnum;
use deltabench_fleet::engine::local::Local;
use deltabench_fleet::engine::slurm::Slurm;
use deltabench_fleet::engine::{After, Copied, Engine, JobState, Node, Seen, Submission};
use deltabench_fleet::file::{Copying, EngineWord, FleetFile};
use deltabench_fleet::lanes::Lanes;
use deltabench_fleet::ship::short;
use deltabench_fleet::spool::{Avoided, Job, Spool};
use deltabench_fleet::spread::nodes_to_keep_away;
use deltabench_model::problem::Problem;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// What jobs are for.
const LANES: &str = "lanes";
const GATHER: &str = "gather";
/// How often to look whether another command still hands in, or a job appears.
const PAUSE: Duration = Duration::from_millis(300);
/// How long a lane waits on its host for copies, in seconds; then the host is free, and the lane comes back.
const PATIENCE_SECONDS: u32 = 600;
/// Minutes that gathering may take.
const GATHER_MINUTES: u32 = 60;

/// Hands in the lanes of an execution.
pub struct Submitter<'a> {
    file: &'a FleetFile,
    spool: &'a Spool,
    lanes: &'a Lanes,
    engine: Box<dyn Engine>,
    /// Held by who hands in: of two commands only one does.
    alone: RefCell<Option<Arc<File>>>,
}

/// The engine of a fleet file.
pub fn engine(file: &FleetFile) -> Box<dyn Engine> {
    match file.engine {
        EngineWord::Local => Box::new(Local::new(file.shared.join("jobs"))),
        EngineWord::Slurm => Box::new(slurm(file)),
    }
}

/// The cluster of a fleet file.
pub fn slurm(file: &FleetFile) -> Slurm {
    Slurm {
        partition: file.slurm.partition.clone(),
        constraint: file.slurm.constraint.clone(),
        extra: file.slurm.extra.clone(),
        ..Slurm::default()
    }
}

impl<'a> Submitter<'a> {
    pub fn new(file: &'a FleetFile, spool: &'a Spool, lanes: &'a Lanes) -> Self {
        Self {
            file,
            spool,
            lanes,
            engine: engine(file),
            alone: RefCell::default(),
        }
    }

    /// Takes the right to hand lanes in, until the submitter is gone or [`Submitter::done`]; waits while
    /// another command has it.
    ///
    /// Errors: a spool that cannot be written.
    pub fn begin(&self) -> Result<(), Failure> {
        let mut told = false;
        while self.alone.borrow().is_none() {
            let lock = self.spool.hand_in_alone().map_err(Failure::Failed)?;
            if lock.is_none() {
                if !told {
                    say("waiting for another command that hands in lanes of this execution");
                    told = true;
                }
                std::thread::sleep(PAUSE);
            }
            *self.alone.borrow_mut() = lock.map(Arc::new);
        }
        Ok(())
    }

    /// Lets others hand in.
    pub fn done(&self) {
        self.alone.borrow_mut().take();
    }

    /// The execution and its fleet.
    pub fn execution(&self) -> (&'a FleetFile, &'a Spool, &'a Lanes) {
        (self.file, self.spool, self.lanes)
    }

    /// Puts a lane back into the queue that cannot begin on its host, for another one.
    ///
    /// Errors: those of the engine.
    pub fn elsewhere(&self, seen: &Seen) -> Result<(), Failure> {
        let away = Away::of(self.file, self.spool, self.engine.as_ref());
        let away = away
            .map_err(Failure::Failed)?
            .for_lane(self.lanes, seen.element);
        { self.engine.elsewhere(&seen.job, seen.element, &away) }
            .map(drop)
            .map_err(Failure::Failed)
    }

    /// Which engine it is.
    pub fn engine_word(&self) -> EngineWord {
        self.file.engine
    }

    /// Hands in these lanes, and after them the job that gathers.
    ///
    /// Errors: those of the engine.
    pub fn submit(&self, elements: &[u32]) -> Result<(), Failure> {
        self.begin()?;
        let lanes = lanes_job(self.file, self.spool, self.lanes, elements);
        self.hand_in(LANES, lanes)?;
        self.gather_after()?;
        self.done();
        Ok(())
    }

    /// Hands in the job that gathers after the last lanes, unless it is there: the command that handed these
    /// in may have been killed before.
    ///
    /// Errors: those of the engine.
    pub fn gather_after(&self) -> Result<(), Failure> {
        // Where hosts do not see the lab, who watches gathers.
        if self.file.copy == Copying::Sbcast {
            return Ok(());
        }
        self.begin()?;
        let jobs = self.jobs()?;
        let place = |what: &str| {
            jobs.iter()
                .rposition(|job| job.what == what && !job.given_up)
        };
        let lanes = place(LANES).filter(|lanes| place(GATHER).is_none_or(|gather| gather < *lanes));
        let after = lanes.and_then(|lanes| jobs.get(lanes)?.job.clone());
        if let Some(after) = after {
            let gather = gather_job(self.file, self.spool, self.lanes, &after);
            self.hand_in(GATHER, gather)?;
        }
        Ok(())
    }

    /// Says what is to be handed in, hands it in, and says how the engine calls it. A command that is killed
    /// between leaves a job without a name of the engine, which [`Submitter::jobs`] finds.
    fn hand_in(&self, what: &str, mut submission: Submission) -> Result<(), Failure> {
        let intended = self.spool.intend(what, &submission.elements, now().1);
        let mut job = intended.map_err(Failure::Failed)?;
        submission.name.clone_from(&job.name);
        submission.held.clone_from(&self.alone.borrow());
        match self.engine.submit(&submission) {
            Ok(name) => job.job = Some(name),
            // Nobody answered: it may be there.
            Err(problem) if problem.of_machine => return Err(Failure::Failed(problem)),
            Err(problem) => {
                job.given_up = true;
                self.spool.set_job(&job).map_err(Failure::Failed)?;
                return Err(Failure::Failed(problem));
            }
        }
        self.spool.set_job(&job).map_err(Failure::Failed)
    }

    /// What was handed in. Jobs of which no answer was written are looked for by their names.
    fn jobs(&self) -> Result<Vec<Job>, Failure> {
        let jobs = self.spool.jobs();
        if jobs.iter().all(Job::is_settled) {
            return Ok(jobs);
        }
        // Who hands in just now has not written it yet.
        let was_alone = self.alone.borrow().is_some();
        self.begin()?;
        for job in self.spool.jobs().iter().filter(|job| !job.is_settled()) {
            self.settle(job.clone())?;
        }
        if !was_alone {
            self.done();
        }
        Ok(self.spool.jobs())
    }

    fn settle(&self, mut job: Job) -> Result<(), Failure> {
        loop {
            if let Some(found) = self.engine.find(&job.name).map_err(Failure::Failed)? {
                say(&format!(
                    "found job {found} ({}), which a command that was killed had handed in",
                    job.name
                ));
                job.job = Some(found);
                break;
            }
            let age = u64::try_from(now().1.saturating_sub(job.at_unix_ms)).unwrap_or(0);
            if Duration::from_millis(age) >= self.engine.settles_in() {
                job.given_up = true;
                break;
            }
            std::thread::sleep(PAUSE);
        }
        self.spool.set_job(&job).map_err(Failure::Failed)
    }

    /// Keeps lanes that wait away from hosts that are avoided, or have a repetition of them.
    ///
    /// Errors: those of the engine.
    pub fn avoid(&self) -> Result<(), Failure> {
        let away = Away::of(self.file, self.spool, self.engine.as_ref());
        let away = away.map_err(Failure::Failed)?;
        for job in self.jobs_of(LANES)? {
            let away = |lane| away.for_lane(self.lanes, lane);
            self.engine.avoid(&job, &away).map_err(Failure::Failed)?;
        }
        Ok(())
    }

    /// Whether every host is avoided that is what the fleet file asks for.
    ///
    /// Errors: those of the engine.
    pub fn no_host_is_left(&self) -> Result<bool, Failure> {
        let avoided = avoided_nodes(self.file, self.spool);
        let mut nodes = self.engine.nodes().map_err(Failure::Failed)?;
        nodes.retain(|node| self.engine.suits(node));
        Ok(nodes.iter().all(|node| avoided.contains(&node.name)))
    }

    /// What the engine knows of the lanes.
    ///
    /// Errors: those of the engine.
    pub fn look(&self) -> Result<Vec<Seen>, Failure> {
        let jobs = self.jobs_of(LANES)?;
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
            for job in self.jobs_of(what)? {
                self.engine.cancel(&job, None).map_err(Failure::Failed)?;
            }
        }
        Ok(())
    }

    fn jobs_of(&self, what: &str) -> Result<Vec<String>, Failure> {
        let jobs = self.jobs()?.into_iter();
        Ok(jobs
            .filter(|job| job.what == what)
            .filter_map(|job| job.job)
            .collect())
    }
}

/// Options of `fleet lane`, one a word: how servers run.
pub fn options(file: &FleetFile, servers: &Servers, config: &Config) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut add = |name: &str, value: String| words.extend([name.to_owned(), value]);
    if file.engine == EngineWord::Local {
        // Another host has its own.
        add("--cache", config.cache.display().to_string());
    } else if file.copy == Copying::Sbcast {
        // Below the home of the execution, so that it goes with it.
        add("--cache", "cache".to_owned());
    }
    if let Some(user) = &servers.server_user {
        add("--server-user", user.clone());
    }
    if let Some(directory) = &servers.cluster_dir {
        add("--cluster-dir", directory.display().to_string());
    }
    let word = HugePagesWord::to_possible_value(&servers.huge_pages);
    if let Some(word) = word {
        add("--huge-pages", word.get_name().to_owned());
    }
    words
}

/// The program that was shipped.
fn program(file: &FleetFile, lanes: &Lanes) -> PathBuf {
    let name = format!("deltabench-{}", short(&lanes.binary_sha256));
    seen_from_hosts(file, file.shared.join("bin").join(name))
}

/// A path of the shared directory as hosts see it: those that get copies see it below their own directory.
fn seen_from_hosts(file: &FleetFile, path: PathBuf) -> PathBuf {
    match file.copy {
        Copying::Shared => path,
        Copying::Sbcast => path
            .strip_prefix(&file.shared)
            .map_or(path.clone(), Path::to_owned),
    }
}

fn command(
    (file, program): (&FleetFile, &Path),
    words: &[&str],
    options: &[String],
    spool: &Spool,
) -> Vec<OsString> {
    let mut command: Vec<OsString> = vec![program.as_os_str().to_owned(), "--offline".into()];
    command.extend(words.iter().map(OsString::from));
    command.extend(options.iter().map(OsString::from));
    command.push(seen_from_hosts(file, spool.lanes_file()).into_os_string());
    command
}

/// The engine's names of the hosts that an execution avoids.
pub fn avoided_nodes(file: &FleetFile, spool: &Spool) -> Vec<String> {
    let all = spool.avoided().into_iter().chain(drained(file));
    let nodes: BTreeSet<String> = all.map(|one| one.host.node).collect();
    nodes.into_iter().collect()
}

/// Which hosts lanes keep away from.
pub struct Away {
    avoided: Vec<String>,
    /// The hosts that lanes may get, where repetitions are to be on different ones.
    usable: Option<Vec<String>>,
    taken: Vec<(u32, String)>,
}

impl Away {
    /// As it is now.
    ///
    /// Errors: those of the engine.
    pub fn of(file: &FleetFile, spool: &Spool, engine: &dyn Engine) -> Result<Self, Problem> {
        let avoided = avoided_nodes(file, spool);
        let mut usable = None;
        if file.spread {
            let mut nodes = engine.nodes()?;
            nodes.retain(|node| out_of_service(node).is_none() && engine.suits(node));
            let names = nodes.into_iter().map(|node| node.name);
            usable = Some(names.filter(|name| !avoided.contains(name)).collect());
        }
        Ok(Self {
            avoided,
            usable,
            taken: spool.taken(),
        })
    }

    /// Those that a lane keeps away from.
    pub fn for_lane(&self, lanes: &Lanes, lane: u32) -> Vec<String> {
        let mut away = self.avoided.clone();
        if let Some(usable) = &self.usable {
            away.extend(nodes_to_keep_away(lanes, lane, usable, &self.taken));
        }
        away.sort();
        away.dedup();
        away
    }
}

/// Why the engine gives a host no jobs.
pub fn out_of_service(node: &Node) -> Option<String> {
    let states = ["drain", "down", "fail", "maint", "unknown", "power"];
    let is_out = states.iter().any(|state| node.state.starts_with(state));
    is_out.then(|| {
        format!("{}: {}", node.state, node.reason)
            .trim_end_matches(": ")
            .to_owned()
    })
}

/// The job of lanes. Its name is that of the first time that any are handed in.
pub fn lanes_job(file: &FleetFile, spool: &Spool, lanes: &Lanes, elements: &[u32]) -> Submission {
    let program = program(file, lanes);
    Submission {
        name: format!("dlb-{}-1-{LANES}", lanes.execution),
        command: command((file, &program), &["fleet", "lane"], &lanes.options, spool),
        elements: elements.to_vec(),
        at_once: file.hosts,
        minutes: lanes.minutes(),
        avoid: avoided_nodes(file, spool),
        only: None,
        after: None,
        directory: spool.log_directory(),
        copied: (file.copy == Copying::Sbcast).then(|| Copied {
            local: local_directory(file.local.as_deref()),
            execution: lanes.execution.clone(),
            patience_seconds: PATIENCE_SECONDS,
        }),
        held: None,
    }
}

/// The job that gathers after another one, however that ended.
pub fn gather_job(file: &FleetFile, spool: &Spool, lanes: &Lanes, after: &str) -> Submission {
    let program = program(file, lanes);
    Submission {
        name: format!("dlb-{}-2-{GATHER}", lanes.execution),
        command: command((file, &program), &["fleet", "after"], &[], spool),
        elements: vec![0],
        at_once: None,
        minutes: GATHER_MINUTES,
        avoid: Vec::new(),
        only: None,
        after: Some(After::End(vec![after.to_owned()])),
        directory: spool.log_directory(),
        copied: None,
        held: None,
    }
}

/// Hosts that are avoided in all executions of a fleet file.
pub fn drained(file: &FleetFile) -> Vec<Avoided> {
    Spool::at(&file.shared).avoided()
}
