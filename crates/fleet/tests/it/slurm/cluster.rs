//! A real cluster of Slurm on this machine: munged, slurmctld and several slurmd from a scratch directory.

use deltabench_fleet::engine::slurm::Slurm;
use deltabench_proc::{Process, has_ended, process_ids};
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

/// Waits until a question has an answer.
pub fn wait_for<T>(what: &str, seconds: u64, mut ask: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        let waited = start.elapsed();
        assert!(
            waited < Duration::from_secs(seconds),
            "waited for {what}: {waited:?}"
        );
        sleep(Duration::from_millis(200));
    }
}

/// The cluster. It ends with this, also after a panic: daemons by the handles of our own children, jobs by a
/// variable that nothing but this cluster has.
pub struct Cluster {
    scratch: tempfile::TempDir,
    daemons: Mutex<Vec<(String, Child)>>,
}

impl Cluster {
    /// Starts it, with a node for each list of features: `n1`, `n2`, …
    pub fn start(features: &[&str]) -> Self {
        Self::start_with(features, "")
    }

    /// The same with more lines of configuration.
    pub fn start_with(features: &[&str], more: &str) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        // Whoever runs the jobs must get through.
        fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let cluster = Self {
            scratch,
            daemons: Mutex::default(),
        };
        let place = cluster.scratch.path();
        for directory in ["state", "log"] {
            fs::create_dir(place.join(directory)).unwrap();
        }
        let munge = place.join("munge");
        fs::DirBuilder::new().mode(0o700).create(&munge).unwrap();
        fs::write(cluster.conf(), configuration(place, features) + more).unwrap();
        cluster.run(
            "mungekey",
            &[
                "--create",
                &format!("--keyfile={}", munge.join("key").display()),
            ],
        );
        cluster.start_munged(&munge);
        cluster.start_controller();
        for number in 1..=features.len() {
            fs::create_dir(place.join(format!("n{number}"))).unwrap();
            let name = format!("n{number}");
            cluster.spawn(&name, "slurmd", &["-D", "-N", &name]);
        }
        cluster.wait_until_idle(features.len());
        cluster
    }

    fn start_munged(&self, munge: &Path) {
        let option = |name: &str, file: &str| format!("--{name}={}", munge.join(file).display());
        let options = [
            option("key-file", "key"),
            option("socket", "socket"),
            option("pid-file", "pid"),
            option("log-file", "log"),
            option("seed-file", "seed"),
        ];
        let mut words = vec!["--foreground", "--force"];
        words.extend(options.iter().map(String::as_str));
        self.spawn("munged", "munged", &words);
        let socket = munge.join("socket");
        wait_for("munged's socket", 120, || socket.exists().then_some(()));
    }

    pub fn start_controller(&self) {
        self.spawn("slurmctld", "slurmctld", &["-D"]);
    }

    /// Waits until what the controller knows of a running job is on disk; killed before, it would know less.
    ///
    /// It writes some seconds after each change, later on a busy machine. So we make a change and wait for
    /// its file.
    pub fn wait_until_saved(&self, job: &str) {
        let asked = SystemTime::now();
        let changed = format!("JobId={job}");
        self.run("scontrol", &["update", &changed, "Comment=saved"]);
        let file = self.scratch.path().join("state/job_state");
        wait_for("saved states", 120, || {
            let written = fs::metadata(&file).ok()?.modified().ok()?;
            (written > asked).then_some(())
        });
    }

    fn wait_until_idle(&self, nodes: usize) {
        wait_for("idle nodes", 120, || {
            // A node of two partitions has two lines.
            let words = ["--partition=bench", "--noheader", "--Node", "--format=%T"];
            let listed = self.told("sinfo", &words);
            let idle = listed.lines().filter(|state| *state == "idle").count();
            (idle == nodes).then_some(())
        });
    }

    pub fn conf(&self) -> PathBuf {
        self.scratch.path().join("slurm.conf")
    }

    /// An engine for it that asks for hosts with this feature.
    pub fn engine(&self, constraint: &str) -> Slurm {
        Slurm {
            constraint: Some(constraint.to_owned()),
            conf: Some(self.conf()),
            ..Slurm::default()
        }
    }

    /// A directory that all hosts see.
    pub fn directory(&self, name: &str) -> PathBuf {
        let directory = self.scratch.path().join(name);
        fs::create_dir(&directory).unwrap();
        directory
    }

    /// Ends a daemon at once.
    pub fn kill(&self, name: &str) {
        let mut daemons = self.daemons.lock().unwrap();
        let place = daemons.iter().position(|(known, _)| known == name).unwrap();
        let (_, mut daemon) = daemons.remove(place);
        daemon.kill().unwrap();
        daemon.wait().unwrap();
    }

    /// What a command of Slurm prints; nothing if it fails.
    pub fn told(&self, program: &str, words: &[&str]) -> String {
        let output = self.command(program).args(words).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Processes of this cluster's jobs, and their steps.
    pub fn job_processes(&self) -> Vec<u32> {
        let mut processes = self.processes();
        // The controller's own second process.
        processes.retain(|pid| Process::of(*pid).name().as_deref() != Some("slurmscriptd"));
        processes
    }

    /// All processes but the daemons that we started. Each has the configuration in its environment.
    fn processes(&self) -> Vec<u32> {
        let daemons = self.daemons.lock();
        let daemons = daemons.iter().flat_map(|all| all.iter());
        let daemons: Vec<u32> = daemons.map(|(_, child)| child.id()).collect();
        let mut all = processes_with(&self.conf());
        all.retain(|pid| !daemons.contains(pid));
        all
    }

    fn run(&self, program: &str, words: &[&str]) {
        let output = self.command(program).args(words).output().unwrap();
        assert!(output.status.success(), "{program} {words:?}: {output:?}");
    }

    /// A program with nothing of the tests' environment, so that jobs do not find it either.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program_path(program));
        command
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
            .env("SLURM_CONF", self.conf())
            .stdin(Stdio::null());
        command
    }

    fn spawn(&self, name: &str, program: &str, words: &[&str]) {
        let log = self.scratch.path().join("log").join(format!("{name}.out"));
        let log = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(log)
            .unwrap();
        let mut command = self.command(program);
        command
            .args(words)
            .stdout(log.try_clone().unwrap())
            .stderr(log);
        let child = command.spawn().unwrap();
        self.daemons.lock().unwrap().push((name.to_owned(), child));
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let logs = fs::read_dir(self.scratch.path().join("log"));
            for log in logs.into_iter().flatten().flatten() {
                let text = fs::read_to_string(log.path()).unwrap_or_default();
                let lines: Vec<&str> = text.lines().collect();
                let last = lines[lines.len().saturating_sub(60)..].join("\n");
                eprintln!("{}\n{last}", log.path().display());
            }
        }
        let daemons = self.daemons.lock().map(|mut all| std::mem::take(&mut *all));
        for (_, mut daemon) in daemons.into_iter().flatten() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
        // Steps start programs until they have ended themselves.
        for _ in 0..50 {
            let left = self.processes();
            if left.is_empty() {
                break;
            }
            for pid in left {
                // SAFETY: kill takes two numbers. Who has our configuration in its environment is ours.
                unsafe { libc::kill(pid.try_into().unwrap_or(i32::MAX), libc::SIGKILL) };
            }
            sleep(Duration::from_millis(100));
        }
    }
}

/// Processes that have this configuration in their environment.
pub fn processes_with(conf: &Path) -> Vec<u32> {
    let conf = conf.to_string_lossy();
    let mut all = process_ids(Path::new("/proc")).unwrap_or_default();
    all.retain(|pid| Process::of(*pid).has_variable("SLURM_CONF", &conf));
    all
}

/// Ends one process of ours at once.
pub fn kill_process(pid: u32) {
    let number: i32 = pid.try_into().unwrap();
    // SAFETY: kill takes two numbers.
    assert_eq!(unsafe { libc::kill(number, libc::SIGKILL) }, 0);
    wait_for("an end", 120, || has_ended(pid).then_some(()));
}

/// Where a program is; daemons are not on every user's path.
fn program_path(name: &str) -> PathBuf {
    let daemon = Path::new("/usr/sbin").join(name);
    if daemon.exists() { daemon } else { name.into() }
}

/// Numbers of ports that nobody listens on.
fn free_ports(count: usize) -> Vec<u16> {
    let held: Vec<TcpListener> = (0..count)
        .map(|_| TcpListener::bind("127.0.0.1:0").unwrap())
        .collect();
    held.iter()
        .map(|one| one.local_addr().unwrap().port())
        .collect()
}

fn configuration(place: &Path, features: &[&str]) -> String {
    let said = |program: &str, word: &str| {
        let output = Command::new(program).arg(word).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let (host, user) = (said("uname", "-n"), said("id", "-un"));
    let ports = free_ports(features.len() + 2);
    let place = place.display();
    let mut text = format!(
        "ClusterName=lab\n\
         SlurmctldHost={host}(127.0.0.1)\n\
         SlurmUser={user}\n\
         SlurmdUser={user}\n\
         AuthType=auth/munge\n\
         AuthInfo=socket={place}/munge/socket\n\
         SlurmctldPort={}\n\
         SlurmdPort={}\n\
         StateSaveLocation={place}/state\n\
         SlurmdSpoolDir={place}/%n\n\
         SlurmctldPidFile={place}/ctld.pid\n\
         SlurmdPidFile={place}/slurmd-%n.pid\n\
         SlurmctldLogFile={place}/log/ctld.log\n\
         SlurmdLogFile={place}/log/slurmd-%n.log\n\
         SwitchType=switch/none\n\
         MpiDefault=none\n\
         ProctrackType=proctrack/linuxproc\n\
         TaskPlugin=task/none\n\
         JobAcctGatherType=jobacct_gather/none\n\
         AccountingStorageType=accounting_storage/none\n\
         JobCompType=jobcomp/none\n\
         SchedulerType=sched/backfill\n\
         SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1\n\
         SelectType=select/cons_tres\n\
         SelectTypeParameters=CR_Core\n\
         JobRequeue=1\n\
         RequeueExit=75\n\
         KillWait=5\n\
         SlurmdTimeout=10\n\
         MinJobAge=300\n\
         ReturnToService=2\n\
         SlurmdParameters=config_overrides\n",
        ports[0], ports[1]
    );
    for (number, features) in features.iter().enumerate() {
        text.push_str(&format!(
            "NodeName=n{} NodeHostname={host} NodeAddr=127.0.0.1 Port={} CPUs=2 RealMemory=1000 \
             Feature={features} State=UNKNOWN\n",
            number + 1,
            ports[number + 2]
        ));
    }
    text.push_str(
        "PartitionName=bench Nodes=ALL Default=YES MaxTime=INFINITE State=UP \
         OverSubscribe=EXCLUSIVE\n",
    );
    text
}
