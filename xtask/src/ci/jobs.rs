//! Jobs side by side: started in a fixed order, the output of each printed whole when it ends.

use super::again::{self, Again};
use super::machine::{Environment, Missing};
use super::spent::{self, Longest};
use anyhow::{Context, bail};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Commands that follow each other.
pub struct Job {
    pub name: String,
    pub steps: Vec<Command>,
    /// Whether it needs the servers and programs that are being fetched.
    pub waits: bool,
    /// What of it is run once more if it fails.
    pub again: Again,
}

/// Jobs to do, and what became of those that were done.
pub struct Pool {
    state: Mutex<State>,
    changed: Condvar,
    slots: usize,
}

struct State {
    waiting: VecDeque<Job>,
    /// What jobs with servers need; absent while it is being fetched.
    machine: Option<Environment>,
    ended: Ended,
}

/// What became of all jobs.
#[derive(Default)]
pub struct Ended {
    jobs: usize,
    passed: u64,
    ignored: u64,
    failed: Vec<String>,
    /// Jobs that failed, to be looked at once more.
    doubtful: Vec<Failed>,
    /// What failed beside other jobs and passed alone.
    passed_alone: Vec<String>,
    /// What could not be tested here, in words.
    untested: Vec<String>,
    longest: Longest,
}

/// A job that failed, with its environment and what it said.
struct Failed {
    job: Job,
    environment: Environment,
    output: String,
}

/// What a job did.
struct Done {
    success: bool,
    output: String,
    /// Its programs and all that they waited for.
    cpu: Duration,
}

impl Pool {
    /// For these jobs, in the order of starting.
    pub fn new(jobs: Vec<Job>) -> Self {
        // Tests with servers wait more than they compute, so there is one job more than there are CPUs.
        let cpus = std::thread::available_parallelism().map_or(2, usize::from);
        Self {
            state: Mutex::new(State {
                waiting: jobs.into(),
                machine: None,
                ended: Ended::default(),
            }),
            changed: Condvar::new(),
            slots: cpus.saturating_add(1),
        }
    }

    /// Servers and programs are here. Where they could not be had, jobs that wait for them are not done,
    /// which is a failure.
    pub fn ready(&self, found: anyhow::Result<(Environment, Missing)>) {
        let mut state = self.lock();
        match found {
            Ok((mut environment, missing)) => {
                state.ended.untested.extend(missing.in_words());
                environment.extend(missing.environment());
                state.machine = Some(environment);
            }
            Err(error) => {
                state.ended.failed.push(format!("fetch: {error:#}"));
                state.waiting.retain(|job| !job.waits);
                state.machine = Some(Environment::new());
            }
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Does all jobs, and writes what each of them said.
    pub fn run(&self, out: impl Write + Send) -> anyhow::Result<Ended> {
        let out = Mutex::new(out);
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..self.slots)
                .map(|_| scope.spawn(|| self.work(&out)))
                .collect();
            for worker in workers {
                match worker.join() {
                    Ok(done) => done?,
                    Err(_) => bail!("a job could not be done"),
                }
            }
            anyhow::Ok(())
        })?;
        let mut ended = std::mem::take(&mut self.lock().ended);
        ended.look_again(&out)?;
        Ok(ended)
    }

    /// Does jobs until none is left.
    fn work(&self, out: &Mutex<impl Write>) -> anyhow::Result<()> {
        while let Some((mut job, environment)) = self.next() {
            let done = told(&mut job, &environment, out)?;
            let mut state = self.lock();
            state.ended.count(&job.name, &done);
            if !done.success {
                state.ended.doubtful.push(Failed {
                    job,
                    environment,
                    output: done.output,
                });
            }
        }
        Ok(())
    }

    /// The first job that can start, with its environment; waits where all that are left wait.
    fn next(&self) -> Option<(Job, Environment)> {
        let mut state = self.lock();
        loop {
            if state.waiting.is_empty() {
                return None;
            }
            let here = state.machine.clone();
            let can_start = |job: &Job| here.is_some() || !job.waits;
            if let Some(at) = state.waiting.iter().position(can_start) {
                let job = state.waiting.remove(at)?;
                return Some((job, here.unwrap_or_default()));
            }
            let woken = self.changed.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Does a job, and writes what it said and took.
fn told(job: &mut Job, environment: &Environment, out: &Mutex<impl Write>) -> anyhow::Result<Done> {
    let began = Instant::now();
    let done = done(job, environment)?;
    let (seconds, cpu) = (began.elapsed().as_secs(), done.cpu.as_secs());
    let mut out = out.lock().unwrap_or_else(PoisonError::into_inner);
    writeln!(
        out,
        "     Running {}, {seconds} s, {cpu} CPU s\n{}\n",
        job.name,
        done.output.trim_end()
    )?;
    out.flush()?;
    Ok(done)
}

/// Does a job's steps until one fails, and gives all they said.
fn done(job: &mut Job, environment: &Environment) -> anyhow::Result<Done> {
    let mut output = tempfile().context("no place for the output of a job")?;
    let (mut success, mut cpu) = (true, Duration::ZERO);
    for step in &mut job.steps {
        let ended = step
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output.try_clone()?)
            .spawn()
            .and_then(|child| spent::wait(&child));
        let status = ended.map(|(status, used)| {
            cpu = cpu.saturating_add(used);
            status
        });
        success = status.as_ref().is_ok_and(ExitStatus::success);
        match status {
            Ok(_) if success => {}
            Ok(status) => writeln!(output, "{step:?}: {status}")?,
            Err(error) => writeln!(output, "{step:?}: {error}")?,
        }
        if !success {
            break;
        }
    }
    output.rewind()?;
    let mut bytes = Vec::new();
    output.read_to_end(&mut bytes)?;
    Ok(Done {
        success,
        output: String::from_utf8_lossy(&bytes).into_owned(),
        cpu,
    })
}

/// A file without a name. All that write to it write to its end.
fn tempfile() -> std::io::Result<File> {
    let path = std::env::temp_dir().join(format!("xtask-ci-{:?}", std::thread::current().id()));
    let path = path.with_extension(std::process::id().to_string());
    let mut options = std::fs::OpenOptions::new();
    let file = options
        .read(true)
        .append(true)
        .create_new(true)
        .open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

impl Ended {
    /// Looks once more, alone, at what failed. What passes then is told, and is no failure.
    fn look_again(&mut self, out: &Mutex<impl Write>) -> anyhow::Result<()> {
        let doubtful = std::mem::take(&mut self.doubtful);
        let few = again::are_few(
            doubtful
                .iter()
                .map(|failed| (failed.job.again, &*failed.output)),
        );
        for mut failed in doubtful {
            let job = &mut failed.job;
            let name = job.name.clone();
            let tests = again::failed_tests(&failed.output);
            if !few || !job.again.narrow(&mut job.steps, &tests) {
                self.failed.push(name);
                continue;
            }
            job.name = format!("once more, alone: {name}");
            let done = told(job, &failed.environment, out)?;
            self.add_results(&done);
            match done.success {
                true => self.passed_alone.push(again::in_words(&name, &tests)),
                false => self.failed.push(name),
            }
        }
        Ok(())
    }

    /// Adds a job by what it said.
    fn count(&mut self, name: &str, done: &Done) {
        self.jobs = self.jobs.saturating_add(1);
        self.longest.add(again::short(name), &done.output);
        self.add_results(done);
    }

    fn add_results(&mut self, done: &Done) {
        for line in done.output.lines() {
            if line.starts_with("NOT TESTED") {
                self.untested.push(line.to_owned());
            }
            if let Some(result) = line.strip_prefix("test result: ") {
                self.passed = self.passed.saturating_add(counted(result, "passed"));
                self.ignored = self.ignored.saturating_add(counted(result, "ignored"));
            }
        }
    }

    /// Says it in a few lines.
    pub fn print(&self) {
        for line in &self.untested {
            println!("{line}");
        }
        for what in &self.passed_alone {
            println!("FAILED AND THEN PASSED ALONE: {what}");
        }
        for name in &self.failed {
            println!("FAILED: {name}");
        }
        self.longest.print();
        let (jobs, passed, ignored) = (self.jobs, self.passed, self.ignored);
        println!("ci: {passed} tests passed, {ignored} ignored, in {jobs} jobs");
    }

    /// Whether all of it went well.
    pub fn result(&self) -> anyhow::Result<()> {
        match self.failed.len() {
            0 => Ok(()),
            failed => bail!("{failed} of {} jobs failed", self.jobs),
        }
    }
}

/// The number before a word in `ok. 12 passed; 0 failed; 1 ignored`.
fn counted(result: &str, word: &str) -> u64 {
    let mut parts = result.split([';', '.']).map(str::trim);
    let number = parts.find_map(|part| part.strip_suffix(word)?.trim().parse().ok());
    number.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(name: &str, script: &str, waits: bool) -> Job {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]);
        Job {
            name: name.to_owned(),
            steps: vec![shell],
            waits,
            again: Again::Never,
        }
    }

    #[test]
    fn results_of_all_jobs_are_counted_and_one_that_fails_fails_all() {
        let said = "echo 'test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured'";
        let pool = Pool::new(vec![
            job("good", said, false),
            job("bad", "echo 'NOT TESTED: this'; exit 3", false),
            job("good too", said, true),
        ]);
        pool.ready(Ok((Environment::new(), Missing::default())));
        let mut told = Vec::new();
        let ended = pool.run(&mut told).unwrap();
        assert!(
            String::from_utf8(told)
                .unwrap()
                .contains("12 passed; 0 failed")
        );
        assert_eq!((ended.jobs, ended.passed, ended.ignored), (3, 24, 2));
        assert_eq!(ended.failed, ["bad"]);
        assert_eq!(ended.untested, ["NOT TESTED: this"]);
        assert!(ended.result().is_err());
    }

    #[test]
    fn a_job_waits_for_the_servers_and_finds_them_in_its_environment() {
        let pool = Pool::new(vec![
            job("waits", "test \"$SERVERS\" = 'a b'", true),
            job("does not", "test -z \"$SERVERS\"", false),
        ]);
        let (first, environment) = pool.next().unwrap();
        assert_eq!((first.name.as_str(), environment.len()), ("does not", 0));
        let servers = vec![("SERVERS".to_owned(), "a b".to_owned())];
        pool.ready(Ok((servers, Missing::default())));
        let ended = pool.run(std::io::sink()).unwrap();
        assert_eq!((ended.jobs, ended.failed.len()), (1, 0));
    }

    #[test]
    fn without_servers_no_job_that_needs_them_counts_as_passed() {
        let pool = Pool::new(vec![
            job("waits", "true", true),
            job("does not", "true", false),
        ]);
        pool.ready(Err(anyhow::anyhow!("no network")));
        let ended = pool.run(std::io::sink()).unwrap();
        assert_eq!(ended.jobs, 1);
        assert_eq!(ended.failed, ["fetch: no network"]);
    }

    #[test]
    fn a_step_after_one_that_failed_is_not_done() {
        let mut both = job("both", "echo one; exit 1", false);
        both.steps.extend(job("", "echo two", false).steps);
        let done = done(&mut both, &Environment::new()).unwrap();
        let output = done.output;
        assert!(
            !done.success && output.starts_with("one\n") && !output.contains("two"),
            "{output}"
        );
    }

    #[test]
    fn a_test_that_passes_alone_is_told_and_one_that_fails_again_is_a_failure() {
        // As a harness does: with names it runs these only.
        let harness = |name: &str, alone: &str| {
            let script = format!(
                "if [ $# -gt 0 ]; then echo \"test $3 ... $1\"; exit {alone}; fi\n\
                 echo 'test slow ... ok'; echo 'test race::lost ... FAILED <0.9s>'; exit 101"
            );
            let mut of_tests = job(name, &script, false);
            of_tests.steps[0].arg("harness");
            of_tests.again = Again::Tests;
            of_tests
        };
        let pool = Pool::new(vec![
            harness("unlucky (target/it)", "0"),
            harness("wrong", "101"),
        ]);
        let mut told = Vec::new();
        let ended = pool.run(&mut told).unwrap();
        let told = String::from_utf8(told).unwrap();
        assert!(told.contains("test race::lost ... --exact"), "{told}");
        assert_eq!(ended.passed_alone, ["race::lost of unlucky"]);
        assert_eq!((ended.failed, ended.jobs), (vec!["wrong".to_owned()], 2));
    }

    #[test]
    fn many_failures_are_no_bad_luck() {
        let said = "for i in 1 2 3 4; do echo \"test t$i ... FAILED\"; done; exit $((1 - $#))";
        let mut many = job("many", said, false);
        many.steps[0].arg("harness");
        many.again = Again::Tests;
        let ended = Pool::new(vec![many]).run(std::io::sink()).unwrap();
        assert_eq!((ended.failed.len(), ended.passed_alone.len()), (1, 0));
    }
}
