//! Runs Slurm's commands, again where nobody answers.

use super::Slurm;
use deltabench_model::problem::Problem;
use std::ffi::OsStr;
use std::fs::File;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Between two tries. The commands themselves wait for an answer, 10 s unless configured.
const PAUSE: Duration = Duration::from_secs(1);

/// What commands say when the controller is away, starts, or hands over to its backup.
const AWAY: [&str; 8] = [
    "Unable to contact slurm controller",
    "Socket timed out",
    "Connection refused",
    "Connection timed out",
    "Zero Bytes were transmitted or received",
    "ommunication connection failure",
    "Transport endpoint is not connected",
    "standby mode",
];

/// What they say of jobs that are forgotten, have ended, or no longer wait.
const UNKNOWN: [&str; 5] = [
    "Invalid job id specified",
    "Job has already finished",
    "already completing or completed",
    "no longer pending execution",
    "Job/step already completing",
];

/// Variables with which users set defaults for the commands. They would override the script, and change the
/// form of lists.
const OVERRIDES: [&str; 6] = [
    "SBATCH_", "SBCAST_", "SQUEUE_", "SINFO_", "SCANCEL_", "SACCT_",
];

/// Whether a refusal is about a job that is forgotten, has ended or no longer waits.
pub(super) fn is_of_unknown_job(problem: &Problem) -> bool {
    let said = problem.detail.as_deref().unwrap_or_default();
    UNKNOWN.iter().any(|words| said.contains(words))
}

impl Slurm {
    /// What a command that changes nothing twice prints. While the controller is away it is asked again.
    pub(super) fn ask<A: AsRef<OsStr>>(
        &self,
        program: &str,
        arguments: &[A],
    ) -> Result<String, Problem> {
        self.again_while_away(|| self.ask_once(program, arguments))
    }

    /// The job that `sbatch` names. Before it is asked again, `taken` looks for the job.
    pub(super) fn submit_once(
        &self,
        program: &str,
        arguments: &[&OsStr],
        held: Option<&File>,
        taken: &dyn Fn() -> Result<Option<String>, Problem>,
    ) -> Result<String, Problem> {
        let mut first = true;
        self.again_while_away(|| {
            if !std::mem::take(&mut first) {
                // Within one patience; who is away for longer ends it.
                if let Some(job) = taken()? {
                    return Ok(job);
                }
            }
            let printed = self.ask_with(program, arguments, held)?;
            // `JOB` or `JOB;CLUSTER`.
            let job = printed.trim().split(';').next().unwrap_or_default();
            match job.parse::<u64>() {
                Ok(_) => Ok(job.to_owned()),
                Err(_) => Err(Problem::new("sbatch did not name the job").detail(printed)),
            }
        })
    }

    fn again_while_away<T>(
        &self,
        mut ask: impl FnMut() -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        let start = Instant::now();
        loop {
            match ask() {
                Err(problem) if problem.of_machine && start.elapsed() < self.patience => {
                    sleep(PAUSE);
                }
                Err(problem) if problem.of_machine => {
                    return Err(problem.hint(
                        "jobs that run go on without the controller; see why slurmctld does not \
                         answer, then give the command again",
                    ));
                }
                answer => return answer,
            }
        }
    }

    /// A command without what users have set for it.
    pub(super) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("LC_ALL", "C");
        if let Some(conf) = &self.conf {
            command.env("SLURM_CONF", conf);
        }
        for (name, _) in std::env::vars_os() {
            let overrides = |prefix: &&str| name.as_encoded_bytes().starts_with(prefix.as_bytes());
            if OVERRIDES.iter().any(overrides) {
                command.env_remove(&name);
            }
        }
        command
    }

    /// What a command prints. A problem is `of_machine` if nobody answered.
    pub(super) fn ask_once<A: AsRef<OsStr>>(
        &self,
        program: &str,
        arguments: &[A],
    ) -> Result<String, Problem> {
        self.ask_with(program, arguments, None)
    }

    /// The same; the command has a file open, and so its lock, until it ends.
    fn ask_with<A: AsRef<OsStr>>(
        &self,
        program: &str,
        arguments: &[A],
        held: Option<&File>,
    ) -> Result<String, Problem> {
        let held = held.map(File::try_clone).transpose().map_err(|error| {
            Problem::new(format!("cannot start {program}")).detail(error.to_string())
        })?;
        let mut command = self.command(program);
        command
            .args(arguments)
            .stdin(held.map_or_else(Stdio::null, Stdio::from));
        let output = command
            .output()
            .map_err(|error| cannot_start(program, &error))?;
        let printed = String::from_utf8_lossy(&output.stdout);
        if output.status.success() {
            return Ok(printed.into_owned());
        }
        Err(refusal(program, &String::from_utf8_lossy(&output.stderr)))
    }
}

pub(super) fn cannot_start(program: &str, error: &std::io::Error) -> Problem {
    Problem::new(format!("cannot start {program}"))
        .detail(error.to_string())
        .hint("install Slurm's commands (Debian: apt-get install slurm-client munge)")
}

/// A refusal in the command's own words.
pub(super) fn refusal(program: &str, said: &str) -> Problem {
    if AWAY.iter().any(|words| said.contains(words)) {
        return Problem::new("Slurm's controller does not answer")
            .detail(format!("{program}: {}", said.trim()))
            .of_machine();
    }
    let problem = Problem::new(format!("Slurm refuses {program}")).detail(said.trim());
    let hints = [
        (
            "temporarily unavailable",
            "Slurm may hold as many jobs as MaxJobCount allows, ended ones until MinJobAge: \
             `deltabench fleet resume` hands lanes in later",
        ),
        ("array", "scontrol show config | grep MaxArraySize"),
        ("feature", "deltabench fleet hosts"),
        ("node", "deltabench fleet hosts"),
        ("artition", "sinfo"),
        (
            "user id",
            "ask an operator of the cluster, or run it as SlurmUser",
        ),
    ];
    let hint = hints.iter().find(|(words, _)| said.contains(words));
    match hint {
        Some((_, hint)) => problem.hint(*hint),
        None => problem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_hands_in_keeps_the_lock_open() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let seen = |held| {
            let words = ["/proc/self/fd/0"];
            let said = Slurm::default().ask_with("readlink", &words, held).unwrap();
            said.trim().to_owned()
        };
        assert_eq!(seen(Some(file.as_file())), file.path().to_string_lossy());
        assert_eq!(seen(None), "/dev/null");
    }

    #[test]
    fn a_controller_that_is_away_is_told_from_one_that_refuses() {
        let away = refusal(
            "sbatch",
            "sbatch: error: Batch job submission failed: Unable to contact slurm controller \
             (connect failure)\n",
        );
        assert!(away.of_machine, "{away}");
        let refused = refusal(
            "sbatch",
            "sbatch: error: Batch job submission failed: Invalid feature specification\n",
        );
        assert!(!refused.of_machine && !is_of_unknown_job(&refused));
        assert_eq!(refused.hint.as_deref(), Some("deltabench fleet hosts"));
        let full = refusal(
            "sbatch",
            "sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying\n\
             sbatch: error: Batch job submission failed: Resource temporarily unavailable\n",
        );
        assert!(!full.of_machine && full.hint.unwrap().contains("MaxJobCount"));
        let forgotten = refusal(
            "squeue",
            "slurm_load_jobs error: Invalid job id specified\n",
        );
        assert!(is_of_unknown_job(&forgotten), "{forgotten}");
    }

    fn slurm(patience_ms: u64) -> Slurm {
        Slurm {
            patience: Duration::from_millis(patience_ms),
            ..Slurm::default()
        }
    }

    fn away() -> Problem {
        refusal(
            "sbatch",
            "Unable to contact slurm controller (connect failure)",
        )
    }

    #[test]
    fn a_controller_that_stays_away_is_told_after_a_bounded_time() {
        let mut asked = 0;
        let told = slurm(0).again_while_away(|| {
            asked += 1;
            Err::<(), _>(away())
        });
        assert_eq!(asked, 1);
        assert!(told.unwrap_err().hint.unwrap().contains("go on"));
    }

    #[test]
    fn a_controller_that_comes_back_is_no_problem() {
        let mut asked = 0;
        let told = slurm(60_000).again_while_away(|| {
            asked += 1;
            if asked == 1 { Err(away()) } else { Ok(asked) }
        });
        assert_eq!(told.unwrap(), 2);
    }
}
