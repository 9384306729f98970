//! One initialised data directory with its server.

mod adopted;

use crate::counter::{COUNTS, Counter};
use crate::failure::failed;
use crate::kernel;
use crate::log;
use crate::network::Network;
use crate::probe::{Answer, command, probe};
use crate::process::Handle;
use crate::remnants::{SharedMemory, end_servers};
use crate::spawn::Launch;
use crate::template::{SETTINGS_FILE, Template};
use crate::tree;
use crate::user::ServerUser;
use crate::workspace::{Inner, Workspace, check_cluster_name};
use crate::{check_settings, configuration, preload, programs};
use deltabench_model::endpoint::Endpoint;
use deltabench_model::installation::Installation;
use deltabench_model::plan::Transport;
use deltabench_model::problem::Problem;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Limit for a server to accept connections.
const START_LIMIT: Duration = Duration::from_secs(60);
/// How often a starting server is looked at.
const START_INTERVAL: Duration = Duration::from_millis(5);
/// Fast shutdown, immediate shutdown, force. A fast shutdown writes a checkpoint of all that is dirty.
const STOP_STEPS: &[(i32, Duration)] = &[
    (libc::SIGINT, Duration::from_secs(120)),
    (libc::SIGQUIT, Duration::from_secs(15)),
    (libc::SIGKILL, Duration::from_secs(15)),
];
/// When nobody wants the data any more.
const ABANDON_STEPS: &[(i32, Duration)] = &[
    (libc::SIGQUIT, Duration::from_secs(15)),
    (libc::SIGKILL, Duration::from_secs(15)),
];

/// What a cluster is made from.
#[derive(Debug, Clone, Copy)]
pub struct ClusterSpec<'a> {
    /// The server to run.
    pub installation: &'a Installation,
    /// Data checksums; absent means the version's own default.
    pub checksums: Option<bool>,
    /// Settings of every start.
    pub settings: &'a [(String, String)],
}

/// Where a server runs during one start.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Slot {
    /// Number in the socket's name; servers of one workspace need different ones. A server that listens on
    /// the network has a free port of the system's choice instead, and that is in the name.
    pub port: u16,
    /// What it listens on beside its local socket: nothing, or the loopback address.
    pub listen: Transport,
    /// Cores that the server and its backends run on; absent means all.
    pub affinity: Option<Vec<usize>>,
    /// Directories of control groups that it is in from before its first instruction.
    pub cgroups: Vec<PathBuf>,
    /// Variables of the server's environment beside `PATH` and `LC_ALL`: those of a
    /// [`Burn`](crate::Burn) or a [`Clock`](crate::Clock), or none.
    pub environment: Vec<(String, String)>,
    /// What counts its instructions, if anything does.
    pub counter: Option<Counter>,
    /// Whether it runs a copy of its executable that is new at this start.
    pub own_executable: bool,
}

/// A server that accepts connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    /// Process id of the postmaster.
    pub postmaster_pid: u32,
    /// Its local socket.
    pub endpoint: Endpoint,
    /// Where it listens on the loopback address, if it was asked to.
    pub network: Option<Network>,
    /// From the start of the process to the first accepted connection.
    pub start_took: Duration,
}

/// One initialised data directory with its server. Dropping it stops the server at once and without a
/// checkpoint.
pub struct Cluster {
    name: String,
    directory: PathBuf,
    installation: Installation,
    settings: Vec<(String, String)>,
    user: ServerUser,
    // Keeps the workspace's directory alive until the server is gone.
    workspace: Arc<Inner>,
    server: Option<Server>,
    /// Whether the data directory was left by a clean shutdown, and so is fit to be copied.
    clean: bool,
    /// Where the log of the latest start begins.
    log_start: u64,
}

/// A program with its arguments and variables.
type Started = (PathBuf, Vec<OsString>, Vec<(String, String)>);

struct Server {
    child: Child,
    handle: Handle,
    running: Running,
    /// The variables that it was started with.
    environment: Vec<(String, String)>,
    /// When it was.
    started: Instant,
}

impl Cluster {
    /// Makes a data directory from the installation's template, which is made first if the cache has
    /// none.
    ///
    /// Errors: those of [`Template::obtain`], a name that is taken, a full disk.
    pub fn create(
        workspace: &Workspace,
        name: &str,
        spec: &ClusterSpec<'_>,
        cache_root: &Path,
        user: &ServerUser,
    ) -> Result<Self, Problem> {
        let cluster = Self::without_data(workspace, name, spec, user)?;
        let template = Template::obtain(spec.installation, spec.checksums, cache_root, workspace)?;
        tree::copy_tree(template.directory(), &cluster.data_dir(), user.owner())?;
        Ok(cluster)
    }

    /// Makes the directory of a cluster that gets its data from another one, with [`Cluster::copy_data`].
    ///
    /// Errors: a name that is taken or means nothing, another user than the workspace's, a full disk.
    pub fn without_data(
        workspace: &Workspace,
        name: &str,
        spec: &ClusterSpec<'_>,
        user: &ServerUser,
    ) -> Result<Self, Problem> {
        check_cluster_name(name)?;
        check_settings(spec.settings)?;
        if workspace.inner.user != *user {
            return Err(Problem::new(format!(
                "cluster {name} and its workspace belong to different users"
            )));
        }
        let directory = workspace.inner.directory.join("clusters").join(name);
        tree::make_directory(&directory, if user.switched { 0o711 } else { 0o700 }, None)?;
        Ok(Self {
            name: name.to_owned(),
            directory,
            installation: spec.installation.clone(),
            settings: spec.settings.to_vec(),
            user: user.clone(),
            workspace: Arc::clone(&workspace.inner),
            server: None,
            clean: true,
            log_start: 0,
        })
    }

    /// Starts the server with the cluster's settings and these (which win), and waits until it accepts
    /// connections.
    ///
    /// Must be called on a thread that outlives the server: the kernel stops the server when that
    /// thread ends.
    ///
    /// Errors: a setting that the server does not know or take, a server that ends or is not ready
    /// within 60 s; with the tail of its log. No process is left behind.
    pub fn start(
        &mut self,
        slot: &Slot,
        settings: &[(String, String)],
    ) -> Result<&Running, Problem> {
        self.launch(slot, settings)?;
        self.wait_until_ready()
    }

    /// Starts the server as [`Cluster::start`] does and returns at once: others can be launched before
    /// [`Cluster::wait_until_ready`].
    ///
    /// Must be called on a thread that outlives the server.
    ///
    /// Errors: a setting that no server takes, a program that cannot be started. No process is left behind.
    pub fn launch(&mut self, slot: &Slot, settings: &[(String, String)]) -> Result<(), Problem> {
        if self.is_alive() {
            return Err(Problem::new(format!(
                "cluster {} is already running",
                self.name
            )));
        }
        check_settings(settings)?;
        let all = [self.settings.as_slice(), settings].concat();
        let owner = self.user.owner();
        let network = Network::prepare(slot.listen, &self.data_dir(), owner)?;
        let port = network.as_ref().map_or(slot.port, Network::port);
        let listen = network.as_ref().map_or(&[][..], Network::settings);
        let text = configuration::render(&all, self.workspace.sockets(), port, listen);
        tree::write_file(
            &self.data_dir().join(SETTINGS_FILE),
            &text,
            self.user.owner(),
        )?;
        self.log_start = log::length(&self.log_path());
        let (program, arguments, environment) = self.program(slot)?;
        let started = Instant::now();
        let launch = Launch {
            program: &program,
            arguments,
            user: &self.user,
            directory: &self.directory,
            log: &self.log_path(),
            cores: slot.affinity.as_deref(),
            cgroups: &slot.cgroups,
            environment: &environment,
            death_signal: libc::SIGQUIT,
            piped: false,
        };
        let (child, handle) = launch.start()?;
        self.clean = false;
        let running = Running {
            postmaster_pid: child.id(),
            endpoint: Endpoint::Unix {
                directory: self.workspace.sockets().to_path_buf(),
                port,
            },
            network,
            start_took: Duration::ZERO,
        };
        // Kept from here on, so that every way out stops and reaps it.
        self.server = Some(Server {
            child,
            handle,
            running,
            environment,
            started,
        });
        Ok(())
    }

    /// Waits until the server that was launched accepts connections.
    ///
    /// Errors: none was launched, a setting that the server does not know or take, a server that ends or is
    /// not ready within 60 s; with the tail of its log. No process is left behind.
    pub fn wait_until_ready(&mut self) -> Result<&Running, Problem> {
        let Some(mut server) = self.server.take() else {
            return Err(Problem::new(format!("{} was not launched", self.title())));
        };
        let ready = self
            .answers(&mut server)
            .and_then(|()| self.set_password(&server.running))
            .and_then(|()| {
                preload::check_preloaded(&server.environment, server.running.postmaster_pid)
            });
        if let Err(problem) = ready {
            self.end(server, ABANDON_STEPS);
            return Err(problem);
        }
        server.running.start_took = server.started.elapsed();
        SharedMemory::note(&self.directory, server.running.postmaster_pid);
        Ok(&self.server.insert(server).running)
    }

    /// Stops the server: fast shutdown, waited for; by force if it will not go. Nothing to do if it is
    /// not running.
    ///
    /// Errors: it did not end cleanly, or had ended on its own before; with the tail of its log. It is
    /// gone in any case.
    pub fn stop(&mut self) -> Result<(), Problem> {
        let Some(mut server) = self.server.take() else {
            return Ok(());
        };
        let died = matches!(server.child.try_wait(), Ok(Some(_)));
        let status = self.end(server, STOP_STEPS);
        self.clean = !died && status.is_some_and(|status| status.success());
        if self.clean {
            return Ok(());
        }
        let how = status.map_or_else(
            || "it could not be reaped".to_owned(),
            |status| status.to_string(),
        );
        let what = if died {
            "ended on its own"
        } else {
            "did not stop cleanly"
        };
        Err(self.with_tail(Problem::new(format!("{} {what} ({how})", self.title()))))
    }

    /// What is started, with its arguments and environment: the server, a copy of it, or its counter.
    fn program(&self, slot: &Slot) -> Result<Started, Problem> {
        let mut server = self.installation.bin_dir.join("postgres");
        if slot.own_executable {
            let copy = programs::renew(&self.directory, &server)?;
            server = copy.unwrap_or(server);
        }
        let own = vec!["-D".into(), self.data_dir().into()];
        let Some(counter) = &slot.counter else {
            return Ok((server, own, slot.environment.clone()));
        };
        let counts = self.counts_dir();
        tree::remove_tree(&counts)?;
        tree::make_directory(&counts, 0o700, self.user.owner())?;
        let arguments = counter.arguments(&counts, &server, own);
        let environment = Counter::environment(&counts, &slot.environment)?;
        Ok((counter.program().to_path_buf(), arguments, environment))
    }

    /// Stops the server at once: its data are not wanted any more, and not fit to be copied.
    pub fn abandon(&mut self) {
        if let Some(server) = self.server.take() {
            self.end(server, ABANDON_STEPS);
            self.clean = false;
        }
    }

    /// Replaces the data directory with a copy of that of another cluster of the same installation, all of
    /// it on disk when this returns, so that no write-back of it runs into a measurement. Blocks are shared
    /// where the file system can.
    ///
    /// Errors: one of the servers is running or `from` did not stop cleanly; other binaries or checksums; a
    /// full disk.
    pub fn copy_data(&mut self, from: &Self) -> Result<(), Problem> {
        self.check_stopped("replace the data of")?;
        from.check_at_rest()?;
        if self.installation.binary_sha256 != from.installation.binary_sha256 {
            return Err(Problem::new(format!(
                "cannot copy cluster {} to {}",
                from.name, self.name
            ))
            .detail("their servers are different builds"));
        }
        let data = self.data_dir();
        tree::remove_tree(&data)?;
        tree::copy_tree(&from.data_dir(), &data, self.user.owner())?;
        kernel::sync_file_system(&data).map_err(|error| failed("sync", &data, &error))?;
        self.clean = true;
        Ok(())
    }

    /// Where the server listens; absent while it is not running.
    pub fn endpoint(&self) -> Option<Endpoint> {
        self.running().map(|running| running.endpoint.clone())
    }

    /// The server as it was last started; absent while it is not running. A server that died since is
    /// still here until [`Cluster::stop`].
    pub fn running(&self) -> Option<&Running> {
        self.server.as_ref().map(|server| &server.running)
    }

    /// Process id of the postmaster; absent while it is not running.
    pub fn postmaster_pid(&self) -> Option<u32> {
        self.running().map(|running| running.postmaster_pid)
    }

    /// Whether the server runs right now.
    pub fn is_alive(&mut self) -> bool {
        self.server
            .as_mut()
            .is_some_and(|server| matches!(server.child.try_wait(), Ok(None)))
    }

    /// The last lines that the server logged since its latest start.
    pub fn log_tail(&self, lines: usize) -> String {
        log::last_lines(&log::since(&self.log_path(), self.log_start), lines)
    }

    /// The log of all starts. It goes with the workspace: copy it to keep it.
    pub fn log_path(&self) -> PathBuf {
        self.directory.join("server.log")
    }

    /// The data directory.
    pub fn data_dir(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// Where a server under a counter writes what it counted; made anew at each such start.
    #[must_use]
    pub fn counts_dir(&self) -> PathBuf {
        self.directory.join(COUNTS)
    }

    /// Disk space of data directory, log and copied programs, in bytes.
    pub fn bytes_on_disk(&self) -> u64 {
        tree::bytes_on_disk(&self.directory)
    }

    fn title(&self) -> String {
        format!("{} (cluster {})", self.installation.resolved, self.name)
    }

    fn check_stopped(&self, action: &str) -> Result<(), Problem> {
        if self.server.is_some() {
            return Err(Problem::new(format!(
                "cannot {action} cluster {} while its server runs",
                self.name
            )));
        }
        Ok(())
    }

    /// Errors: its server runs, or did not stop cleanly.
    fn check_at_rest(&self) -> Result<(), Problem> {
        self.check_stopped("copy")?;
        if self.clean {
            return Ok(());
        }
        Err(
            Problem::new(format!("cannot copy cluster {}", self.name)).detail(
                "its server did not stop cleanly, so its data would have to be recovered first",
            ),
        )
    }

    fn with_tail(&self, problem: Problem) -> Problem {
        let tail = self.log_tail(log::SHOWN_LINES);
        let known = problem
            .detail
            .clone()
            .map(|detail| format!("{detail}\n"))
            .unwrap_or_default();
        problem.detail(format!("{known}end of its log:\n{tail}"))
    }

    /// Waits until a server accepts connections on its local socket.
    fn answers(&self, server: &mut Server) -> Result<(), Problem> {
        let socket = PathBuf::from(server.running.endpoint.to_string());
        let deadline = Instant::now() + START_LIMIT;
        loop {
            if server.handle.wait(START_INTERVAL) {
                return Err(self.start_failure(server));
            }
            // Before its own lock file says so, the socket may be another server's.
            if self.says_ready() {
                match probe(&socket) {
                    Answer::Ready => return Ok(()),
                    Answer::NotYet => {}
                    Answer::Refused(sqlstate, message) => {
                        let problem =
                            Problem::new(format!("{} does not accept connections", self.title()));
                        return Err(self.with_tail(
                            problem.detail(format!("{message} (SQLSTATE {sqlstate})")),
                        ));
                    }
                }
            }
            if Instant::now() >= deadline {
                let seconds = START_LIMIT.as_secs();
                return Err(self.with_tail(Problem::new(format!(
                    "{} did not accept connections within {seconds} s",
                    self.title()
                ))));
            }
        }
    }

    fn set_password(&self, running: &Running) -> Result<(), Problem> {
        let Some(network) = &running.network else {
            return Ok(());
        };
        let socket = running.endpoint.to_string();
        command(Path::new(&socket), &network.set_password()).map_err(|error| {
            self.with_tail(
                Problem::new(format!("{} does not accept a password", self.title()))
                    .detail(error.to_string()),
            )
        })
    }

    /// Whether `postmaster.pid` is this server's and says that it can be connected to.
    ///
    /// Source: miscadmin.h: line 5 is the socket directory, written with the socket; from 10 on line 8
    /// is the status.
    fn says_ready(&self) -> bool {
        let Ok(text) = std::fs::read_to_string(self.data_dir().join("postmaster.pid")) else {
            return false;
        };
        if self.installation.version_num >= 100_000 {
            text.lines()
                .nth(7)
                .is_some_and(|status| status.trim() == "ready")
        } else {
            text.lines()
                .nth(4)
                .is_some_and(|sockets| !sockets.trim().is_empty())
        }
    }

    fn start_failure(&self, server: &mut Server) -> Problem {
        let written = log::since(&self.log_path(), self.log_start);
        let problem = log::explain(&written, &self.installation.resolved).unwrap_or_else(|| {
            let how = server
                .child
                .wait()
                .map_or_else(|error| error.to_string(), |status| status.to_string());
            Problem::new(format!(
                "{} ended while it was starting ({how})",
                self.title()
            ))
        });
        self.with_tail(problem)
    }

    /// Goes through the steps until the server has ended, reaps it and clears what it left in the system.
    fn end(&self, mut server: Server, steps: &[(i32, Duration)]) -> Option<ExitStatus> {
        let memory = SharedMemory::of(&self.directory);
        for (signal, limit) in steps {
            if server.handle.wait(Duration::ZERO) {
                break;
            }
            // If it cannot be sent, the next step or the recount below tells.
            let _ = server.handle.signal(*signal);
            if server.handle.wait(*limit) {
                break;
            }
        }
        let status = server.child.try_wait().ok().flatten();
        if status.is_none_or(|status| !status.success()) {
            // Backends outlive a postmaster that was killed, if only for a moment.
            end_servers(&self.directory, self.user.uid);
            memory.release(self.user.uid);
            // A killed server leaves its lock file; its pid may be somebody else's at the next start.
            let _ = std::fs::remove_file(self.data_dir().join("postmaster.pid"));
        }
        status
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.abandon();
    }
}
