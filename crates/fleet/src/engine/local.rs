//! This machine as the only host: one lane after another in a process group that outlives its submitter.
//!
//! A job is a directory with a script; what became of its elements is in files there.

use super::{After, Engine, JobState, Node, Seen, Submission};
use crate::host_lock::is_process;
use crate::whole_file::failed;
use deltabench_model::problem::Problem;
use std::ffi::OsStr;
use std::fmt::Write;
use std::fs::{self, File, TryLockError};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The file of a job that its script has locked while it is there.
const ALIVE: &str = "alive";

/// This machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Local {
    /// Where jobs are kept.
    directory: PathBuf,
}

impl Local {
    /// An engine that keeps its jobs in this directory.
    pub fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    fn job(&self, job: &str) -> PathBuf {
        self.directory.join(job)
    }

    /// Makes the directory of the next job.
    fn next(&self) -> Result<(String, PathBuf), Problem> {
        for number in 1_u32.. {
            let job = format!("job-{number}");
            let directory = self.job(&job);
            let made =
                fs::create_dir_all(&self.directory).and_then(|()| fs::create_dir(&directory));
            match made {
                Ok(()) => return Ok((job, directory)),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed("make", &directory, &error)),
            }
        }
        Err(Problem::new("no number is left for a job"))
    }
}

impl Engine for Local {
    fn submit(&self, submission: &Submission) -> Result<String, Problem> {
        let (job, directory) = self.next()?;
        let (before, needs) = match &submission.after {
            Some(After::Success(jobs)) => (jobs.as_slice(), true),
            Some(After::End(jobs)) => (jobs.as_slice(), false),
            None => (&[][..], false),
        };
        let before: Vec<PathBuf> = before.iter().map(|job| self.job(job)).collect();
        let script = script(submission, &directory, &before, needs);
        let file = directory.join("script");
        let elements: Vec<String> = submission
            .elements
            .iter()
            .map(ToString::to_string)
            .collect();
        // Held from before the job has a name until its script ends: who has it is there, however slow.
        let alive = File::create(directory.join(ALIVE)).and_then(|file| file.lock().map(|()| file));
        let alive = alive.map_err(|error| failed("lock", &directory, &error))?;
        let written = fs::write(&file, script)
            .and_then(|()| fs::write(directory.join("elements"), elements.join("\n")))
            .and_then(|()| fs::write(directory.join("name"), &submission.name));
        written.map_err(|error| failed("write", &file, &error))?;
        let output = File::create(directory.join("output"));
        let output = output.map_err(|error| failed("write", &directory, &error))?;
        let errors = output
            .try_clone()
            .map_err(|error| failed("write", &directory, &error))?;
        Command::new("/bin/sh")
            .arg(&file)
            // The lock goes with it.
            .stdin(alive)
            .stdout(output)
            .stderr(errors)
            .process_group(0)
            .spawn()
            .map_err(|error| failed("start", &file, &error))?;
        Ok(job)
    }

    fn find(&self, name: &str, _from: u32) -> Result<Option<String>, Problem> {
        let jobs = fs::read_dir(&self.directory)
            .into_iter()
            .flatten()
            .flatten();
        let is_it = |job: &fs::DirEntry| {
            fs::read_to_string(job.path().join("name")).is_ok_and(|found| found == name)
        };
        let mut found = jobs.filter(is_it);
        Ok(found
            .next()
            .and_then(|job| job.file_name().into_string().ok()))
    }

    fn look(&self, jobs: &[String]) -> Result<Vec<Seen>, Problem> {
        let mut seen = Vec::new();
        for job in jobs {
            let directory = self.job(job);
            let elements = fs::read_to_string(directory.join("elements")).unwrap_or_default();
            for element in elements.lines().filter_map(|line| line.parse().ok()) {
                seen.push(Seen {
                    job: job.clone(),
                    element,
                    state: state(&directory, element),
                });
            }
        }
        Ok(seen)
    }

    fn cancel(&self, job: &str, element: Option<u32>) -> Result<(), Problem> {
        let directory = self.job(job);
        let elements = fs::read_to_string(directory.join("elements")).unwrap_or_default();
        let numbers = elements.lines().filter_map(|line| line.parse::<u32>().ok());
        let numbers: Vec<u32> = numbers
            .filter(|number| element.is_none_or(|element| element == *number))
            .collect();
        // All marks first: when a lane ends, the script looks for that of the next one. After it has begun a
        // lane and written its number it looks again, so one of both sees the other.
        for number in &numbers {
            let mark = directory.join(format!("cancelled-{number}"));
            fs::write(&mark, "").map_err(|error| failed("write", &mark, &error))?;
        }
        for number in numbers {
            if let Some(pid) = running(&directory, &format!("lane-{number}")) {
                terminate(pid);
            }
        }
        Ok(())
    }

    fn nodes(&self) -> Result<Vec<Node>, Problem> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let memory = deltabench_proc::memory::memory_available().unwrap_or(0) >> 20;
        Ok(vec![Node {
            name: node(),
            state: "local".to_owned(),
            reason: String::new(),
            features: Vec::new(),
            cores: u32::try_from(cores).unwrap_or(u32::MAX),
            memory_mib: memory,
        }])
    }
}

/// What this machine is called.
pub fn node() -> String {
    deltabench_proc::host::host_name().unwrap_or_else(|| "local".to_owned())
}

/// Asks a process to end.
pub fn terminate(pid: u32) {
    let mut kill = Command::new("/bin/sh");
    kill.arg("-c").arg(format!("kill -TERM {pid}"));
    // One that has ended meanwhile is what is wanted.
    kill.stderr(Stdio::null()).status().ok();
}

/// The script of a job: its elements in turn. It keeps its own number and those of its lanes, each with the
/// start of the process, because numbers come again.
fn script(submission: &Submission, directory: &Path, before: &[PathBuf], needs: bool) -> String {
    let here = quoted(directory.as_os_str());
    let command: Vec<String> = submission.command.iter().map(|word| quoted(word)).collect();
    let command = command.join(" ");
    let log = quoted(submission.directory.as_os_str());
    let mut script = format!(
        "# {}\nstart() {{ sed 's/^.*) //' \"/proc/$1/stat\" | cut -d' ' -f20; }}\ncd {here} || exit 1\n\
         echo $$ $(start $$) > script.new && mv script.new script-process\n",
        submission.name.replace('\n', " ")
    );
    for job in before {
        let job = quoted(job.as_os_str());
        // An earlier script that is gone will not end any more; while it is there it has the lock.
        writeln!(
            script,
            "while [ ! -e {job}/done ] && ! flock -s -n {job}/{ALIVE} true; do sleep 0.2; done"
        )
        .ok();
        if needs {
            writeln!(script, "grep -qv '^0$' {job}/ended-* && exit 1").ok();
        }
    }
    for element in &submission.elements {
        writeln!(
            script,
            "if [ ! -e cancelled-{element} ]; then\n  {command} {element} \
             > {log}/{name}-{element}.txt 2>&1 < /dev/null &\n  \
             echo $! $(start $!) > lane.new && mv lane.new lane-{element}\n  \
             [ ! -e cancelled-{element} ] || kill -TERM $! 2>/dev/null\n  \
             wait $!; echo $? > ended.new && mv ended.new ended-{element}\nfi",
            name = log_name(directory)
        )
        .ok();
    }
    script.push_str("touch done\n");
    script
}

/// The name of the job, which the files of its output begin with.
fn log_name(directory: &Path) -> String {
    let name = directory.file_name().and_then(OsStr::to_str);
    name.unwrap_or("job").to_owned()
}

/// A word for the shell.
fn quoted(word: &OsStr) -> String {
    format!("'{}'", word.to_string_lossy().replace('\'', "'\\''"))
}

/// The process in a file of number and start, if it still runs.
fn running(directory: &Path, file: &str) -> Option<u32> {
    let text = fs::read_to_string(directory.join(file)).ok()?;
    let (pid, start) = text.trim().split_once(' ')?;
    let (pid, start) = (pid.parse().ok()?, start.parse().ok()?);
    is_process(pid, start).then_some(pid)
}

/// Whether the script of a job runs, or is about to: it holds a lock from before it starts.
fn has_script(directory: &Path) -> bool {
    let file = File::open(directory.join(ALIVE));
    file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

fn state(directory: &Path, element: u32) -> JobState {
    // Asked first: what had ended when these were gone is written by now.
    let runs = running(directory, &format!("lane-{element}")).is_some();
    let has_script = has_script(directory);
    if let Ok(code) = fs::read_to_string(directory.join(format!("ended-{element}"))) {
        return JobState::Ended {
            how: "ended".to_owned(),
            code: code.trim().parse().ok(),
        };
    }
    let is_cancelled = directory.join(format!("cancelled-{element}")).exists();
    let gone = |how: &str| JobState::Ended {
        how: how.to_owned(),
        code: None,
    };
    match (runs, is_cancelled, has_script) {
        (true, ..) => JobState::Running(node()),
        (_, true, _) => gone("cancelled"),
        (_, _, true) => JobState::Waiting("its turn comes later".to_owned()),
        _ => gone("lost"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host_lock::start_of;
    use std::ffi::OsString;
    use std::time::{Duration, Instant};

    fn submission(place: &Path, words: &str) -> Submission {
        let command = ["/bin/sh", "-c", words, "sh"].map(OsString::from).to_vec();
        Submission {
            name: "test".to_owned(),
            command,
            elements: vec![0, 1],
            from: 0,
            at_once: None,
            minutes: 1,
            avoid: Vec::new(),
            only: None,
            after: None,
            directory: place.to_owned(),
            copied: None,
            held: None,
        }
    }

    fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
        let began = Instant::now();
        while !is_so() {
            assert!(began.elapsed() < Duration::from_secs(60), "{what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    #[test]
    fn lanes_run_one_after_another_and_their_ends_are_known() {
        let place = tempfile::tempdir().unwrap();
        let local = Local::new(place.path().join("jobs"));
        let job = local
            .submit(&submission(place.path(), "echo it is $1; exit $1"))
            .unwrap();
        let after = Submission {
            elements: vec![7],
            after: Some(After::End(vec![job.clone()])),
            ..submission(place.path(), "exit 0")
        };
        let second = local.submit(&after).unwrap();
        let ended = |job: &str| local.look(&[job.to_owned()]).unwrap();
        wait_for("all end", || {
            let all = [ended(&second), ended(&job)].concat();
            all.iter()
                .all(|one| matches!(one.state, JobState::Ended { code: Some(_), .. }))
        });
        let codes: Vec<Option<i32>> = ended(&job)
            .into_iter()
            .map(|one| match one.state {
                JobState::Ended { code, .. } => code,
                _ => None,
            })
            .collect();
        assert_eq!(codes, [Some(0), Some(1)]);
        let log = fs::read_to_string(place.path().join(format!("{job}-1.txt"))).unwrap();
        assert_eq!(log, "it is 1\n");
    }

    #[test]
    fn a_job_is_there_before_its_script_has_said_anything() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("jobs/job-1");
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("elements"), "3").unwrap();
        fs::write(directory.join("name"), "slow").unwrap();
        let local = Local::new(place.path().join("jobs"));
        let look = || local.look(&["job-1".to_owned()]).unwrap().remove(0).state;
        // However long the shell takes to start.
        let alive = File::create(directory.join(ALIVE)).unwrap();
        alive.lock().unwrap();
        assert!(matches!(look(), JobState::Waiting(_)));
        drop(alive);
        assert!(matches!(look(), JobState::Ended { code: None, .. }));
        fs::write(directory.join("ended-3"), "75\n").unwrap();
        assert!(matches!(look(), JobState::Ended { code: Some(75), .. }));
        assert_eq!(local.find("slow", 0).unwrap().as_deref(), Some("job-1"));
        assert_eq!(local.find("other", 0).unwrap(), None);
    }

    #[test]
    fn a_cancelled_job_leaves_no_process() {
        let place = tempfile::tempdir().unwrap();
        let local = Local::new(place.path().join("jobs"));
        let job = local
            .submit(&submission(place.path(), "exec sleep 60"))
            .unwrap();
        let directory = local.job(&job);
        wait_for("the first begins", || {
            running(&directory, "lane-0").is_some()
        });
        let lane = running(&directory, "lane-0").unwrap();
        let script = running(&directory, "script-process").unwrap();
        local.cancel(&job, None).unwrap();
        wait_for("both are gone", || {
            start_of(lane).or(start_of(script)).is_none()
        });
        let states = local.look(&[job]).unwrap();
        assert!(
            states
                .iter()
                .all(|one| matches!(one.state, JobState::Ended { .. }))
        );
    }
}
