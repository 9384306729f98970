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
use deltabench_fleet::engine::{After, Copied, Engine, Limits, Node, Seen, Submission};
use deltabench_fleet::file::{Copying, EngineWord, FleetFile};
use deltabench_fleet::lanes::Lanes;
use deltabench_fleet::ship::short;
use deltabench_fleet::spool::{Avoided, Job, Spool, job_name};
use deltabench_fleet::spread::nodes_to_keep_away;
use deltabench_model::problem::Problem;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// What jobs are for.
pub const LANES: &str = "lanes";
const GATHER: &str = "gather";
/// How often to look whether another command still hands in, or a job appears.
const PAUSE: Duration = Duration::from_millis(300);
/// How long a lane waits on its host for copies, in seconds; then the host is free, and the lane comes back.
const PATIENCE_SECONDS: u32 = 600;
/// Minutes that gathering may take.
const GATHER_MINUTES: u32 = 60;

/// An execution: its fleet, its spool, its lanes.
pub type Whole<'a> = (&'a FleetFile, &'a Spool, &'a Lanes);

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

/// How much the engine of a fleet file takes, if it says so at once.
///
/// Errors: those of the engine.
pub fn limits_at_once(file: &FleetFile) -> Result<Limits, Problem> {
    match file.engine {
        EngineWord::Local => engine(file).limits(),
        EngineWord::Slurm => Slurm {
            patience: Duration::ZERO,
            ..slurm(file)
        }
        .limits(),
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
    pub fn execution(&self) -> Whole<'a> {
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
        self.spool.forget_outcome();
        let most = self.engine.limits().map_err(Failure::Failed)?.array;
        let mut before = None;
        for array in arrays(elements, most) {
            let mut job = lanes_job(self.execution(), self.spool.next_job(), &array);
            // Of two arrays at once each would have as many lanes as `hosts` says.
            let is_first = before.is_none();
            job.after = before.filter(|_| self.file.hosts.is_some());
            let name = self.hand_in(LANES, job);
            let name = name.map_err(|failure| match is_first {
                true => failure,
                false => rest_is_left(failure, &self.lanes.execution),
            })?;
            before = Some(After::End(vec![name]));
        }
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
        let gather = { jobs.iter() }.rposition(|job| job.what == GATHER && !job.given_up);
        // Lanes that were handed in before another one have it.
        let new = jobs.iter().skip(gather.map_or(0, |gather| gather + 1));
        let after: Vec<String> = { new.filter(|job| job.what == LANES) }
            .filter_map(|job| job.job.clone())
            .collect();
        if !after.is_empty() {
            let gather = gather_job(self.execution(), self.spool.next_job(), &after);
            self.hand_in(GATHER, gather)?;
        }
        Ok(())
    }

    /// Says what is to be handed in, hands it in, and says how the engine calls it. A command that is killed
    /// between leaves a job without a name of the engine, which [`Submitter::jobs`] finds.
    fn hand_in(&self, what: &str, mut submission: Submission) -> Result<String, Failure> {
        let elements = (submission.from, submission.elements.as_slice());
        let intended = self.spool.intend(what, elements, now().1);
        let mut job = intended.map_err(Failure::Failed)?;
        submission.held.clone_from(&self.alone.borrow());
        let name = match self.engine.submit(&submission) {
            Ok(name) => name,
            // Nobody answered: it may be there.
            Err(problem) if problem.of_machine => return Err(Failure::Failed(problem)),
            Err(problem) => {
                job.given_up = true;
                self.spool.set_job(&job).map_err(Failure::Failed)?;
                return Err(Failure::Failed(problem));
            }
        };
        job.job = Some(name.clone());
        self.spool.set_job(&job).map_err(Failure::Failed)?;
        Ok(name)
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
            let found = self.engine.find(&job.name, job.from);
            if let Some(found) = found.map_err(Failure::Failed)? {
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
        seen.retain(Seen::is_alive);
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

/// An array was refused after others had been taken.
fn rest_is_left(failure: Failure, execution: &str) -> Failure {
    let hint = format!(
        "the lanes before these are handed in; `deltabench fleet resume {execution}` hands in the rest"
    );
    match failure {
        // Of an engine that does not answer nobody knows what it has taken.
        Failure::Failed(problem) if !problem.of_machine => Failure::Failed(problem.hint(hint)),
        other => other,
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

/// The lanes of an array, and the lowest lane that it may have.
pub type LanesOfArray = (u32, Vec<u32>);

/// Lanes in as many arrays as the engine needs for them.
pub fn arrays(lanes: &[u32], most: Option<u32>) -> Vec<LanesOfArray> {
    let Some(most) = most.filter(|most| *most > 0) else {
        return vec![(0, lanes.to_vec())];
    };
    let mut arrays: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for lane in lanes {
        arrays.entry(lane - lane % most).or_default().push(*lane);
    }
    arrays.into_iter().collect()
}

/// Refuses an execution that the engine cannot hold, before anything of it is stored or shipped.
///
/// Errors: more lanes than jobs.
pub fn check_limits(limits: Limits, lanes: &Lanes) -> Result<(), Failure> {
    // And the one that gathers, or fetches.
    let needed = lanes.lanes.len().saturating_add(1);
    let holds = |jobs: u32| usize::try_from(jobs).is_ok_and(|jobs| needed <= jobs);
    match limits.jobs {
        Some(jobs) if !holds(jobs) => Err(Failure::Refused(
            Problem::new(format!(
                "{} lanes are more jobs than Slurm holds",
                lanes.lanes.len()
            ))
            .detail(format!(
                "MaxJobCount is {jobs} in its slurm.conf; each lane is a job, and one more gathers or fetches"
            ))
            .hint(
                "by = \"repetition\" in [lanes] of the fleet file makes fewer lanes; --only and \
                 --repetitions make a smaller execution",
            ),
        )),
        _ => Ok(()),
    }
}

/// The job of the lanes of an array, and its number in the execution.
pub fn lanes_job(
    (file, spool, lanes): Whole<'_>,
    number: u32,
    (from, elements): &LanesOfArray,
) -> Submission {
    let program = program(file, lanes);
    Submission {
        name: job_name(&lanes.execution, number, LANES),
        command: command((file, &program), &["fleet", "lane"], &lanes.options, spool),
        elements: elements.clone(),
        from: *from,
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

/// The job that gathers after others, however these ended.
pub fn gather_job((file, spool, lanes): Whole<'_>, number: u32, after: &[String]) -> Submission {
    let program = program(file, lanes);
    Submission {
        name: job_name(&lanes.execution, number, GATHER),
        command: command((file, &program), &["fleet", "after"], &[], spool),
        elements: vec![0],
        from: 0,
        at_once: None,
        minutes: GATHER_MINUTES,
        avoid: Vec::new(),
        only: None,
        after: Some(After::End(after.to_vec())),
        directory: spool.log_directory(),
        copied: None,
        held: None,
    }
}

/// Hosts that are avoided in all executions of a fleet file.
pub fn drained(file: &FleetFile) -> Vec<Avoided> {
    Spool::at(&file.shared).avoided()
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_fleet::lanes::Lane;

    fn execution(lanes: u32) -> Lanes {
        let lane = |lane| Lane {
            lane,
            units: Vec::new(),
            minutes: 31,
            one_host: false,
        };
        Lanes {
            lanes: (0..lanes).map(lane).collect(),
            ..Lanes::default()
        }
    }

    #[test]
    fn lanes_are_divided_where_an_array_ends() {
        let all: Vec<u32> = (0..7).collect();
        assert_eq!(arrays(&all, None), [(0, all.clone())]);
        assert_eq!(arrays(&all, Some(7)), [(0, all.clone())]);
        let three = [(0, vec![0, 1, 2]), (3, vec![3, 4, 5]), (6, vec![6])];
        assert_eq!(arrays(&all, Some(3)), three);
        // Those that are handed in again.
        assert_eq!(arrays(&[5, 1], Some(3)), [(0, vec![1]), (3, vec![5])]);
    }

    #[test]
    fn more_lanes_than_jobs_are_refused() {
        let limits = |jobs| Limits {
            array: Some(2),
            jobs,
        };
        let check = |jobs| check_limits(limits(jobs), &execution(5));
        assert!(check(None).is_ok() && check(Some(6)).is_ok());
        let refused = check(Some(5)).unwrap_err();
        assert!(matches!(refused, Failure::Refused(_)));
        assert_eq!(
            refused.problem().error,
            "5 lanes are more jobs than Slurm holds"
        );
    }
}
