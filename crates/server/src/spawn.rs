//! How `initdb`, `postgres` and workers of engines are started: as the server user, with a small fixed
//! environment, tied to our life.

use crate::failure::failed;
use crate::kernel::{self, CoreSet};
use crate::process::Handle;
use crate::user::ServerUser;
use deltabench_model::problem::Problem;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a file may be open for writing elsewhere before its program is given up, and between two tries.
const BUSY_LIMIT: Duration = Duration::from_secs(10);
const BUSY_INTERVAL: Duration = Duration::from_millis(5);

/// A program to start.
///
/// It gets a process group of its own: Ctrl-C on the terminal is for us, and we end what we started in our
/// order.
pub struct Launch<'a> {
    /// Its file; `/proc/self/exe` is this program itself, even where the user could not reach its file.
    pub program: &'a Path,
    pub arguments: Vec<OsString>,
    pub user: &'a ServerUser,
    /// Working directory; inside the workspace, so that a sweep knows the process from its first moment.
    pub directory: &'a Path,
    /// Takes standard error, and standard output unless that is a pipe; appended.
    pub log: &'a Path,
    /// Cores to run on; absent means all.
    pub cores: Option<&'a [usize]>,
    /// Directories of control groups to start it in.
    pub cgroups: &'a [PathBuf],
    /// Variables beside the fixed ones.
    pub environment: &'a [(String, String)],
    /// What the kernel sends when the calling thread ends.
    pub death_signal: i32,
    /// Whether standard input and output are pipes to us; else there is no input, and output goes to the log.
    pub piped: bool,
}

impl Launch<'_> {
    /// Starts it.
    ///
    /// Errors: the log cannot be written, the program cannot be run, a core does not exist, a control group
    /// does not take it.
    pub fn start(self) -> Result<(Child, Handle), Problem> {
        let cores = self.core_set()?;
        let cgroups = self.open_cgroups()?;
        let log = open_log(self.log)?;
        let output = log
            .try_clone()
            .map_err(|error| failed("write", self.log, &error))?;
        let mut command = Command::new(self.program);
        command
            .args(&self.arguments)
            // Small and always the same: the size of the environment moves the stack, and with it the
            // timing.
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("LC_ALL", "C")
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(self.directory)
            .stderr(log)
            .process_group(0);
        if self.piped {
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
        } else {
            command.stdin(Stdio::null()).stdout(output);
        }
        if self.user.switched {
            command.gid(self.user.gid).uid(self.user.uid);
        }
        let parent = std::process::id();
        let signal = libc::c_ulong::try_from(self.death_signal).unwrap_or(9);
        // SAFETY: runs between fork and exec; makes system calls only, allocates nothing, takes no
        // lock. The user has been changed by then, which would otherwise clear the parent-death signal.
        // Groups judge by who opened their file, and that was us.
        unsafe {
            command.pre_exec(move || {
                for group in &cgroups {
                    kernel::join_cgroup(group)?;
                }
                if let Some(cores) = &cores {
                    cores.apply()?;
                }
                kernel::die_with_parent(signal, parent)
            });
        }
        let spawned = spawn(&mut command);
        let mut child = spawned.map_err(|error| self.not_started(&error))?;
        match Handle::of_child(&child) {
            Some(handle) => Ok((child, handle)),
            None => {
                // Only without a readable /proc. Better no server than one that cannot be watched.
                let _ = child.kill();
                let _ = child.wait();
                Err(Problem::new("cannot watch a process that was just started")
                    .detail("/proc cannot be read"))
            }
        }
    }

    fn not_started(&self, error: &io::Error) -> Problem {
        let mut way_out = format!("check that user `{}` can run it", self.user.name);
        if !self.cgroups.is_empty() {
            way_out.push_str(
                ", and that deltabench may move processes into the control groups of its \
                           limits",
            );
        }
        failed("run", self.program, error).hint(way_out)
    }

    fn open_cgroups(&self) -> Result<Vec<File>, Problem> {
        let open = |group: &PathBuf| {
            let path = group.join("cgroup.procs");
            let opened = OpenOptions::new().write(true).open(&path);
            opened.map_err(|error| failed("write", &path, &error))
        };
        self.cgroups.iter().map(open).collect()
    }

    fn core_set(&self) -> Result<Option<CoreSet>, Problem> {
        match self.cores {
            None => Ok(None),
            Some(cores) => CoreSet::new(cores).map(Some).ok_or_else(|| {
                Problem::new(format!("there are no cores {cores:?} to run a server on"))
            }),
        }
    }
}

/// Starts a program whose file may have been written a moment ago. A process that another thread of ours is
/// starting has our open files until it runs its own program, and the kernel runs no file that somebody may
/// write to.
///
/// Source: execve(2), ETXTBSY.
fn spawn(command: &mut Command) -> io::Result<Child> {
    let until = Instant::now() + BUSY_LIMIT;
    loop {
        match command.spawn() {
            Err(error)
                if error.kind() == io::ErrorKind::ExecutableFileBusy && Instant::now() < until =>
            {
                std::thread::sleep(BUSY_INTERVAL);
            }
            spawned => return spawned,
        }
    }
}

fn open_log(path: &Path) -> Result<File, Problem> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
        .map_err(|error| failed("write", path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn myself() -> ServerUser {
        ServerUser {
            name: "me".into(),
            uid: kernel::effective_uid(),
            gid: kernel::effective_gid(),
            switched: false,
        }
    }

    fn run(script: &str, directory: &Path, cores: Option<&[usize]>) -> String {
        run_until(libc::SIGKILL, script, directory, cores)
    }

    fn run_until(
        death_signal: i32,
        script: &str,
        directory: &Path,
        cores: Option<&[usize]>,
    ) -> String {
        let log = directory.join("log");
        let user = myself();
        let launch = Launch {
            program: Path::new("/bin/sh"),
            arguments: vec!["-c".into(), script.into()],
            user: &user,
            directory,
            log: &log,
            cores,
            cgroups: &[],
            environment: &[],
            death_signal,
            piped: false,
        };
        let (mut child, handle) = launch.start().unwrap();
        assert!(handle.wait(Duration::from_secs(60)));
        child.wait().unwrap();
        std::fs::read_to_string(&log).unwrap()
    }

    #[test]
    fn a_signal_that_we_were_started_to_ignore_ends_it_all_the_same() {
        // As a shell has it for what it starts in the background.
        // SAFETY: a number and a constant; nothing in this process wants the signal.
        unsafe { libc::signal(libc::SIGQUIT, libc::SIG_IGN) };
        let scratch = tempfile::tempdir().unwrap();
        let script = "echo begun; kill -QUIT $$; echo survived";
        let text = run_until(libc::SIGQUIT, script, scratch.path(), None);
        assert_eq!(text, "begun\n");
    }

    #[test]
    fn the_environment_is_small_and_free_of_ours() {
        let scratch = tempfile::tempdir().unwrap();
        let text = run("env", scratch.path(), None);
        let mut names: Vec<&str> = text
            .lines()
            .filter_map(|line| Some(line.split_once('=')?.0))
            .collect();
        // The shell itself adds PWD and the like.
        names.retain(|name| !matches!(*name, "PWD" | "OLDPWD" | "SHLVL" | "_"));
        names.sort_unstable();
        assert_eq!(names, ["LC_ALL", "PATH"]);
    }

    #[test]
    fn cores_asked_for_are_the_cores_it_has() {
        let scratch = tempfile::tempdir().unwrap();
        let text = run(
            "grep Cpus_allowed_list /proc/self/status",
            scratch.path(),
            Some(&[0]),
        );
        assert_eq!(text.split_ascii_whitespace().last(), Some("0"));
    }

    #[test]
    fn a_program_that_another_process_may_still_write_to_is_waited_for() {
        let scratch = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let program = scratch.path().join("sh");
        std::fs::copy("/bin/sh", &program).unwrap();
        let writer = OpenOptions::new().append(true).open(&program).unwrap();
        let mut command = Command::new(&program);
        command.args(["-c", "exit 7"]);
        assert_eq!(
            command.spawn().unwrap_err().kind(),
            io::ErrorKind::ExecutableFileBusy
        );
        let writing = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            drop(writer);
        });
        let status = spawn(&mut command).unwrap().wait().unwrap();
        writing.join().unwrap();
        assert_eq!(status.code(), Some(7));
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let scratch = tempfile::tempdir().unwrap();
        let user = myself();
        let launch = Launch {
            program: Path::new("/no/such/postgres"),
            arguments: Vec::new(),
            user: &user,
            directory: scratch.path(),
            log: &scratch.path().join("log"),
            cores: None,
            cgroups: &[],
            environment: &[],
            death_signal: libc::SIGKILL,
            piped: false,
        };
        assert_eq!(
            launch.start().err().unwrap().error,
            "cannot run /no/such/postgres"
        );
    }

    #[test]
    fn a_group_that_does_not_take_it_keeps_the_program_from_running() {
        let scratch = tempfile::tempdir().unwrap();
        let user = myself();
        let groups = [scratch.path().join("group")];
        let launch = |user| {
            Launch {
                program: Path::new("/bin/sh"),
                arguments: vec!["-c".into(), "echo ran".into()],
                user,
                directory: scratch.path(),
                log: &scratch.path().join("log"),
                cores: None,
                cgroups: &groups,
                environment: &[],
                death_signal: libc::SIGKILL,
                piped: false,
            }
            .start()
        };
        let missing = launch(&user).err().unwrap();
        assert!(missing.error.ends_with("group/cgroup.procs"), "{missing}");
        // Takes the program's "ourselves" as a group would.
        std::fs::create_dir(&groups[0]).unwrap();
        std::fs::write(groups[0].join("cgroup.procs"), "").unwrap();
        let (mut child, handle) = launch(&user).unwrap();
        assert!(handle.wait(Duration::from_secs(60)));
        child.wait().unwrap();
        assert_eq!(
            std::fs::read_to_string(groups[0].join("cgroup.procs")).unwrap(),
            "0"
        );
        std::fs::remove_file(groups[0].join("cgroup.procs")).unwrap();
        std::os::unix::fs::symlink("/dev/full", groups[0].join("cgroup.procs")).unwrap();
        let refused = launch(&user).err().unwrap();
        assert_eq!(refused.error, "cannot run /bin/sh");
        assert!(refused.hint.unwrap().contains("control groups"));
    }

    /// Tells the helper below where to work; unset for everybody else.
    const SCRATCH: &str = "DELTABENCH_TEST_SPAWN_SCRATCH";

    /// Not a test of its own: run by the test below, from a place that the server user cannot enter.
    #[test]
    #[ignore = "run by another test of this module"]
    fn helper() {
        let Some(scratch) = std::env::var_os(SCRATCH).map(PathBuf::from) else {
            eprintln!("nothing to do: {SCRATCH} is not set");
            return;
        };
        let user = ServerUser::choose(None).unwrap();
        let launch = Launch {
            program: Path::new("/proc/self/exe"),
            arguments: vec!["--list".into(), "spawn::".into()],
            user: &user,
            directory: &scratch,
            log: &scratch.join("log"),
            cores: None,
            cgroups: &[],
            environment: &[],
            death_signal: libc::SIGKILL,
            piped: true,
        };
        let (child, _) = launch.start().unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{:?}", output.status);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("spawn::tests::helper: test"), "{text}");
    }

    #[test]
    fn this_program_starts_itself_as_a_user_who_cannot_reach_its_file() {
        let scratch = tempfile::tempdir_in("/tmp").unwrap();
        let mode = |path: &Path, mode: u32| {
            let permissions = std::os::unix::fs::PermissionsExt::from_mode(mode);
            std::fs::set_permissions(path, permissions).unwrap();
        };
        mode(scratch.path(), 0o755);
        let closed = scratch.path().join("closed");
        std::fs::create_dir(&closed).unwrap();
        let program = closed.join("program");
        std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
        mode(&closed, 0o700);
        let output = Command::new(&program)
            .args(["--exact", "spawn::tests::helper", "--ignored"])
            .env(SCRATCH, scratch.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
    }
}
