//! A place to try servers in, and the servers to try.

use deltabench_model::installation::Installation;
use deltabench_server::{Cluster, ClusterSpec, ServerUser, Slot, Workspace, base_settings};
pub use deltabench_testkit::installations;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A directory that the server user can reach, with a workspace and a cache in it.
pub struct Lab {
    // Removed in this order.
    pub workspace: Option<Workspace>,
    pub user: ServerUser,
    pub scratch: tempfile::TempDir,
}

impl Lab {
    pub fn new() -> Self {
        let scratch = tempfile::Builder::new()
            .prefix("server-")
            .tempdir()
            .unwrap();
        std::fs::set_permissions(scratch.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let user = ServerUser::choose(None).unwrap();
        let mut lab = Self {
            workspace: None,
            user,
            scratch,
        };
        lab.workspace = Some(Workspace::create(&lab.parent(), "run", &lab.user).unwrap());
        lab
    }

    pub fn parent(&self) -> PathBuf {
        self.scratch.path().join("w")
    }

    pub fn workspace(&self) -> &Workspace {
        self.workspace.as_ref().unwrap()
    }

    pub fn cluster(&self, name: &str, installation: &Installation) -> Cluster {
        self.cluster_with(name, installation, None)
    }

    pub fn cluster_with(
        &self,
        name: &str,
        installation: &Installation,
        checksums: Option<bool>,
    ) -> Cluster {
        let settings = small_settings(installation.version_num);
        let spec = ClusterSpec {
            installation,
            checksums,
            settings: &settings,
        };
        Cluster::create(self.workspace(), name, &spec, &cache(), &self.user).unwrap()
    }
}

/// Templates kept between tests and runs, as a user's are: making one costs a second, and its key holds
/// all it is made from. Tests of the making have a cache of their own.
pub fn cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("server-cache")
}

pub fn small_settings(version_num: u32) -> Vec<(String, String)> {
    // 11 wants more connections than 10 senders of WAL and 3 reserved ones, its defaults.
    base_settings(version_num, 16, 16, false).settings
}

pub fn slot(port: u16) -> Slot {
    Slot {
        port,
        ..Slot::default()
    }
}

/// Any one server, for tests that do not depend on the version.
pub fn any_installation() -> Installation {
    installations().pop().unwrap()
}

/// Pids of all processes whose working directory is inside `directory`.
pub fn processes_in(directory: &Path) -> Vec<u32> {
    let directory = std::fs::canonicalize(directory).unwrap();
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| {
            std::fs::read_link(format!("/proc/{pid}/cwd"))
                .is_ok_and(|cwd| cwd.starts_with(&directory))
        })
        .collect()
}

/// Whether a process exists and is more than unreaped remains.
pub fn is_running(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// Ids of the System V segments on this machine with the pid of their maker.
pub fn shared_memory_of(pid: u32) -> usize {
    let table = std::fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    let maker = |line: &str| {
        line.split_ascii_whitespace()
            .nth(4)
            .and_then(|field| field.parse::<u32>().ok())
    };
    table
        .lines()
        .skip(1)
        .filter(|line| maker(line) == Some(pid))
        .count()
}

/// All files below a directory with their content, by relative path.
pub fn contents(directory: &Path) -> std::collections::BTreeMap<PathBuf, Vec<u8>> {
    let mut all = std::collections::BTreeMap::new();
    let mut waiting = vec![directory.to_path_buf()];
    while let Some(next) = waiting.pop() {
        for entry in std::fs::read_dir(&next).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                waiting.push(path);
            } else {
                let name = path.strip_prefix(directory).unwrap().to_path_buf();
                all.insert(name, std::fs::read(&path).unwrap());
            }
        }
    }
    all
}

/// A new control group of this process's, in a hierarchy that accounts CPU only; `None` where we may not.
pub fn control_group(name: &str) -> Option<PathBuf> {
    let text = |path: &str| std::fs::read_to_string(path).unwrap();
    let mounts = text("/proc/self/mounts");
    let mount = mounts.lines().find_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (place, kind, options) = (words.next()?, words.next()?, words.next()?);
        let fits = kind == "cgroup" && options.split(',').any(|word| word == "cpuacct");
        fits.then(|| PathBuf::from(place))
    })?;
    let membership = text("/proc/self/cgroup");
    let own = membership.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let controllers = parts.next()?;
        controllers
            .split(',')
            .any(|word| word == "cpuacct")
            .then(|| parts.next())?
    })?;
    let group = mount.join(own.trim_start_matches('/')).join(name);
    match std::fs::create_dir(&group) {
        Ok(()) => Some(group),
        Err(error) => {
            eprintln!("without a control group: {}: {error}", group.display());
            None
        }
    }
}
