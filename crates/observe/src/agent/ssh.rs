//! How the far side is started: over ssh, without a terminal, a password or a port.

use super::lines::Lines;
use deltabench_model::problem::Problem;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What ssh and the far side may say on stderr; only the end of it is kept. Bytes.
const ERRORS_KEPT: usize = 4096;

/// How long a program whose pipes are closed may take to end.
const ENDS_WITHIN: Duration = Duration::from_secs(2);

/// Programs by which an agent is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Programs {
    /// `ssh`, or what stands for it.
    pub ssh: OsString,
    /// deltabench on the far side, as its shell finds it.
    pub deltabench: String,
}

impl Default for Programs {
    fn default() -> Self {
        Self {
            ssh: "ssh".into(),
            deltabench: "deltabench".to_owned(),
        }
    }
}

impl Programs {
    /// Those of the environment: `DELTABENCH_SSH`, `DELTABENCH_AGENT_PROGRAM`.
    pub fn from_environment() -> Self {
        let usual = Self::default();
        Self {
            ssh: std::env::var_os("DELTABENCH_SSH").unwrap_or(usual.ssh),
            deltabench: std::env::var("DELTABENCH_AGENT_PROGRAM").unwrap_or(usual.deltabench),
        }
    }

    /// Starts the far side on a host: its input, its output, and the ssh between.
    pub(super) fn start(&self, host: &str) -> Result<(File, Lines, Session), Problem> {
        let mut command = Command::new(&self.ssh);
        command
            // No question can be answered, and nothing but the one command is wanted.
            .args(["-o", "BatchMode=yes", "-o", "ConnectTimeout=10"])
            .args(["-o", "ClearAllForwardings=yes", "-a", "-x", "-T"])
            .arg(host)
            .arg(format!("{} agent", self.deltabench))
            // An interrupt is for us: what runs is ended in order, and until then it is measured.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| {
            Problem::new(format!("cannot start {}", self.ssh.display()))
                .detail(error.to_string())
                .hint(
                    "install the ssh client (openssh-client), name it with DELTABENCH_SSH, or leave \
                     agent= out of the target",
                )
        })?;
        let pipes = child
            .stdin
            .take()
            .zip(child.stdout.take())
            .zip(child.stderr.take());
        let Some(((input, output), errors)) = pipes else {
            return Err(Problem::new("ssh has no pipes"));
        };
        let session = Session {
            errors: Errors::of(errors),
            host: host.to_owned(),
            programs: self.clone(),
            child,
        };
        let input = File::from(OwnedFd::from(input));
        Ok((input, Lines::new(output), session))
    }
}

/// A running ssh. It ends with its pipes.
#[derive(Debug)]
pub(super) struct Session {
    child: Child,
    errors: Errors,
    host: String,
    programs: Programs,
}

impl Session {
    /// Why it ended before it should have, as far as it tells. The pipes must be closed.
    pub(super) fn autopsy(&mut self) -> Problem {
        let code = self.end();
        explained(&self.host, &self.programs, code, &self.errors.finish())
    }

    /// Ends it; its exit code, if it ended by itself.
    fn end(&mut self) -> Option<i32> {
        let until = Instant::now() + ENDS_WITHIN;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return status.code(),
                Ok(None) if Instant::now() < until => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                _ => break,
            }
        }
        // It may have ended in this moment; either way it is waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
        None
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.end();
        self.errors.finish();
    }
}

/// The end of what a program writes to stderr.
#[derive(Debug)]
struct Errors {
    kept: Arc<Mutex<Vec<u8>>>,
    thread: Option<JoinHandle<()>>,
}

impl Errors {
    fn of(mut from: ChildStderr) -> Self {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let keeping = Arc::clone(&kept);
        let keep = move || {
            let mut chunk = [0_u8; 1024];
            while let Ok(read @ 1..) = from.read(&mut chunk) {
                let mut kept = keeping.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend_from_slice(chunk.get(..read).unwrap_or_default());
                let surplus = kept.len().saturating_sub(ERRORS_KEPT);
                kept.drain(..surplus);
            }
        };
        let builder = std::thread::Builder::new().name("agent-stderr".to_owned());
        Self {
            kept,
            // Without a thread there is no text, and a program that says very much is stopped.
            thread: builder.spawn(keep).ok(),
        }
    }

    /// All of it. The program must have ended; a child of its own that keeps the pipe open is not waited for.
    fn finish(&mut self) -> String {
        let until = Instant::now() + ENDS_WITHIN;
        if let Some(thread) = self.thread.take() {
            while !thread.is_finished() && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&kept).trim().to_owned()
    }
}

/// The exit code of ssh when the connection itself failed. Source: ssh(1).
const SSH_FAILED: i32 = 255;

/// The exit code of a shell that does not find a program, or may not run it. Source: POSIX, 2.8.2.
const NOT_FOUND: [i32; 2] = [126, 127];

/// What ssh's own messages mean; the first that fits.
const SAID: [(&str, &str, &str); 7] = [
    (
        "could not resolve hostname",
        "no such host",
        "check the name after agent=ssh:, or give it a Host entry in ~/.ssh/config",
    ),
    (
        "host key verification failed",
        "its host key is not known",
        "log in once by hand and accept the key: ssh {host} true",
    ),
    (
        "identification has changed",
        "its host key has changed",
        "find out why, then: ssh-keygen -R {host}",
    ),
    (
        "permission denied",
        "it refuses a login without a password",
        "set up a key that works without a passphrase, or an agent that has it: \
         ssh -o BatchMode=yes {host} true",
    ),
    (
        "connection refused",
        "nothing listens for ssh there",
        "give the port in a Host entry of ~/.ssh/config, and try: ssh {host} true",
    ),
    ("timed out", "it does not answer", "try: ssh {host} true"),
    (
        "no route to host",
        "it cannot be reached",
        "try: ssh {host} true",
    ),
];

fn explained(host: &str, programs: &Programs, code: Option<i32>, said: &str) -> Problem {
    let lower = said.to_lowercase();
    let program = &programs.deltabench;
    let (why, hint) = match code {
        Some(SSH_FAILED) => match SAID.iter().find(|(text, ..)| lower.contains(text)) {
            Some((_, why, hint)) => ((*why).to_owned(), hint.replace("{host}", host)),
            None => (
                "ssh failed".to_owned(),
                format!("try: ssh -o BatchMode=yes {host} true"),
            ),
        },
        Some(code) if NOT_FOUND.contains(&code) => (
            format!("there is no executable {program}"),
            "install the same version of deltabench there, or name it with DELTABENCH_AGENT_PROGRAM"
                .to_owned(),
        ),
        Some(code) => (
            format!("{program} ended there with exit code {code}"),
            format!("try: ssh {host} {program} agent </dev/null"),
        ),
        None => (
            "it stopped answering".to_owned(),
            format!("try: ssh {host} {program} agent </dev/null"),
        ),
    };
    let problem = Problem::new(format!("no agent on {host}: {why}")).hint(hint);
    match said {
        "" => problem,
        said => problem.detail(said),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ssh_says_is_explained_with_the_next_command() {
        for (code, said, error, hint) in [
            (
                255,
                "ssh: Could not resolve hostname db: Name or service not known",
                "no agent on me@db: no such host",
                "~/.ssh/config",
            ),
            (
                255,
                "No ED25519 host key is known for db\nHost key verification failed.",
                "no agent on me@db: its host key is not known",
                "ssh me@db true",
            ),
            (
                255,
                "me@db: Permission denied (publickey,password).",
                "no agent on me@db: it refuses a login without a password",
                "BatchMode=yes me@db true",
            ),
            (
                255,
                "kex_exchange_identification: read: Connection reset by peer",
                "no agent on me@db: ssh failed",
                "ssh -o BatchMode=yes me@db",
            ),
            (
                127,
                "bash: line 1: deltabench: command not found",
                "no agent on me@db: there is no executable deltabench",
                "DELTABENCH_AGENT_PROGRAM",
            ),
            (
                2,
                "error: unrecognized subcommand 'agent'",
                "no agent on me@db: deltabench ended there with exit code 2",
                "ssh me@db deltabench agent",
            ),
        ] {
            let problem = explained("me@db", &Programs::default(), Some(code), said);
            assert_eq!(problem.error, error);
            assert_eq!(problem.detail.as_deref(), Some(said));
            let found = problem.hint.unwrap_or_default();
            assert!(found.contains(hint), "{found}");
        }
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let programs = Programs {
            ssh: "/no/such/ssh".into(),
            ..Programs::default()
        };
        let problem = programs.start("db").err().unwrap();
        assert_eq!(problem.error, "cannot start /no/such/ssh");
        assert!(problem.hint.unwrap().contains("DELTABENCH_SSH"));
    }
}
