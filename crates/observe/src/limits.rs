//! Cgroups that limit what a server may use of memory and of its device.
//!
//! Version 1 and version 2 of the kernel's interface, each controller wherever it is. Groups are made below
//! or beside our own, under names that begin with `deltabench-`; no other group's limits are changed.
//!
//! What differs: version 1 holds back reads, direct writes and what a server syncs itself, but not the pages
//! that the kernel writes back for it; version 2 holds back those too where memory and io are both
//! controlled. Huge pages are counted by neither, unless a version 2 hierarchy is mounted with
//! `memory_hugetlb_accounting`.
//!
//! Source: Documentation/admin-guide/cgroup-v1/{memory,blkio-controller}.rst and
//! Documentation/admin-guide/cgroup-v2.rst of Linux 6.18.

mod device;
mod knobs;
mod place;

use deltabench_model::plan::{Limits, StorageProfile};
use deltabench_model::problem::Problem;
use deltabench_proc::cgroup::CgroupKind;
use device::BlockDevice;
use place::{Controller, Place};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long the kernel has to take the last ended process out of a group.
const EMPTY_LIMIT: Duration = Duration::from_secs(2);

/// What was set for a server, read back from the kernel.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct AppliedLimits {
    /// Directories of its control groups.
    pub groups: Vec<PathBuf>,
    /// Its memory; absent: no limit.
    pub memory: Option<AppliedMemory>,
    /// Its device; absent: no limit.
    pub storage: Option<AppliedStorage>,
}

/// A memory limit as the kernel has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliedMemory {
    pub interface: CgroupKind,
    pub asked_bytes: u64,
    /// Part of it in huge pages, which the kernel does not count, bytes.
    pub beside_bytes: u64,
    /// The limit that the kernel holds for the rest: page cache, 4 KiB pages of shared buffers, processes.
    pub limit_bytes: u64,
    /// Whether swap is closed to the server; absent where the kernel does not count swap by group.
    pub swap_closed: Option<bool>,
}

/// Limits of a device as the kernel has them; absent fields are no limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliedStorage {
    pub interface: CgroupKind,
    pub profile: String,
    /// The device, `major:minor`.
    pub device: String,
    /// Its name, for example `vda`.
    pub device_name: String,
    /// Reads per second.
    pub read_iops: Option<u64>,
    /// Writes per second.
    pub write_iops: Option<u64>,
    /// Bytes read per second.
    pub read_bytes: Option<u64>,
    /// Bytes written per second.
    pub write_bytes: Option<u64>,
    /// Whether pages that the kernel writes back for the server count.
    pub written_back_counts: bool,
}

/// What a limited server has done so far; absent where the kernel does not tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LimitReading {
    /// Memory counted against the limit, bytes.
    pub memory_bytes: Option<u64>,
    pub page_cache_bytes: Option<u64>,
    /// How often memory had to be taken back because of the limit.
    pub limit_hits: Option<u64>,
    /// Processes that the kernel has killed because of the limit.
    pub killed: Option<u64>,
    /// Reads that reached the limited device.
    pub reads: Option<u64>,
    pub writes: Option<u64>,
    pub read_bytes: Option<u64>,
    /// Bytes written.
    pub write_bytes: Option<u64>,
}

/// Where and how this host can set some limits; nothing is made yet.
#[derive(Debug, Clone)]
pub struct LimitPlan {
    memory: Option<(Place, u64)>,
    storage: Option<(Place, BlockDevice, StorageProfile)>,
}

impl LimitPlan {
    /// Finds out how the limits can be set for servers whose data is in `directory`, which need not exist
    /// yet.
    ///
    /// In a version 2 hierarchy where our group holds nobody but us, we move into a group below it: only
    /// then may it have limited children.
    ///
    /// Errors: what this host does not allow, and how it would.
    pub fn find(limits: &Limits, directory: &Path) -> Result<Self, Problem> {
        Self::find_below(Path::new("/"), limits, directory)
    }

    fn find_below(root: &Path, limits: &Limits, directory: &Path) -> Result<Self, Problem> {
        let storage = limits.storage.as_ref();
        let device = storage
            .map(|_| device::of_directory(root, directory))
            .transpose()?;
        let wanted = [
            limits.memory_bytes.map(|_| Controller::Memory),
            storage.map(|_| Controller::Io),
        ];
        let wanted: Vec<Controller> = wanted.into_iter().flatten().collect();
        let places = place::find(root, &wanted)?;
        let place_of = |controller| {
            let found = places.iter().find(|(other, _)| *other == controller);
            found.map(|(_, place)| place.clone())
        };
        Ok(Self {
            memory: place_of(Controller::Memory).zip(limits.memory_bytes),
            storage: place_of(Controller::Io)
                .zip(device.zip(storage.cloned()))
                .map(|(place, (device, profile))| (place, device, profile)),
        })
    }

    /// The directories that [`LimitPlan::create`] will make, to be noted before it does.
    pub fn directories(&self, name: &str) -> Vec<PathBuf> {
        let memory = self.memory.iter().map(|(place, _)| place);
        let storage = self.storage.iter().map(|(place, ..)| place);
        let mut all: Vec<PathBuf> = memory
            .chain(storage)
            .map(|place| place.group(name))
            .collect();
        // Version 2 has one for all controllers.
        all.dedup();
        all
    }

    /// Makes the groups of one server, with their limits; nobody is in them yet.
    ///
    /// Shape:  `huge_bytes` of the server's shared memory will be in huge pages; where the kernel does not
    ///         count those, the rest gets that much less.
    /// Errors: the kernel refuses, or holds another limit than it was told; nothing is left behind.
    pub fn create(&self, name: &str, huge_bytes: u64) -> Result<ServerLimits, Problem> {
        let mut made = ServerLimits {
            applied: AppliedLimits::default(),
            storage: None,
            memory: None,
        };
        for directory in self.directories(name) {
            make_group(&directory)?;
            made.applied.groups.push(directory);
        }
        if let Some((place, bytes)) = &self.memory {
            let group = place.group(name);
            let beside = if place.counts_huge_pages {
                0
            } else {
                huge_bytes
            };
            let applied = knobs::set_memory(place.kind, &group, *bytes, beside)?;
            made.memory = Some((place.kind, group));
            made.applied.memory = Some(applied);
        }
        if let Some((place, device, profile)) = &self.storage {
            let group = place.group(name);
            let both = place.kind == CgroupKind::V2
                && place::enabled(&place.parent, &[Controller::Memory, Controller::Io]);
            knobs::set_storage(place.kind, &group, device, profile)?;
            let applied = knobs::read_storage(place.kind, &group, device, &profile.name, both)?;
            knobs::check_storage(profile, &applied)?;
            made.storage = Some((place.kind, group, device.clone(), profile.clone()));
            made.applied.storage = Some(applied);
        }
        Ok(made)
    }
}

/// The groups of one server. Dropping it removes them; by then its processes must have ended.
#[derive(Debug)]
pub struct ServerLimits {
    applied: AppliedLimits,
    memory: Option<(CgroupKind, PathBuf)>,
    storage: Option<(CgroupKind, PathBuf, BlockDevice, StorageProfile)>,
}

impl ServerLimits {
    /// The groups that the server's first process has to be in; its children follow it.
    pub fn groups(&self) -> &[PathBuf] {
        &self.applied.groups
    }

    /// What is set.
    pub fn applied(&self) -> &AppliedLimits {
        &self.applied
    }

    /// Takes the device's limits away for work that is not measured.
    ///
    /// Errors: the kernel refuses.
    pub fn lift_storage(&self) -> Result<(), Problem> {
        let Some((kind, group, device, profile)) = &self.storage else {
            return Ok(());
        };
        let none = StorageProfile {
            name: profile.name.clone(),
            read_iops: None,
            write_iops: None,
            read_bytes: None,
            write_bytes: None,
            cost_per_month: None,
        };
        knobs::set_storage(*kind, group, device, &none)
    }

    /// Sets the device's limits again.
    ///
    /// Errors: the kernel refuses.
    pub fn restore_storage(&self) -> Result<(), Problem> {
        match &self.storage {
            Some((kind, group, device, profile)) => {
                knobs::set_storage(*kind, group, device, profile)
            }
            None => Ok(()),
        }
    }

    /// What the server has done so far.
    pub fn read(&self) -> LimitReading {
        let mut reading = LimitReading::default();
        if let Some((kind, group)) = &self.memory {
            knobs::read_memory(*kind, group, &mut reading);
        }
        if let Some((kind, group, device, _)) = &self.storage {
            knobs::read_traffic(*kind, group, device, &mut reading);
        }
        reading
    }

    /// Removes the groups.
    ///
    /// Errors: there are still processes in one of them.
    pub fn remove(mut self) -> Result<(), Problem> {
        self.clear()
    }

    fn clear(&mut self) -> Result<(), Problem> {
        let groups = std::mem::take(&mut self.applied.groups);
        let removed: Vec<Result<(), Problem>> =
            groups.iter().map(|group| remove_group(group)).collect();
        removed.into_iter().collect()
    }
}

impl Drop for ServerLimits {
    fn drop(&mut self) {
        // Nobody is left to tell; the next sweep finds what stays.
        let _ = self.clear();
    }
}

/// Tries the limits out on groups that are removed again; no process is put into them.
///
/// Errors: what this host does not allow, and how it would.
pub fn try_limits(limits: &Limits, directory: &Path) -> Result<AppliedLimits, Problem> {
    let plan = LimitPlan::find(limits, directory)?;
    let made = plan.create(&format!("check-{}", std::process::id()), 0)?;
    let applied = made.applied().clone();
    made.remove().map(|()| applied)
}

fn make_group(directory: &Path) -> Result<(), Problem> {
    match fs::create_dir(directory) {
        Ok(()) => Ok(()),
        // Left by a killed run of the same name.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let procs = fs::read_to_string(directory.join("cgroup.procs")).unwrap_or_default();
            if procs.trim().is_empty() {
                return Ok(());
            }
            Err(
                Problem::new("there are processes in a cgroup that a server needs")
                    .detail(format!("{}: {}", directory.display(), procs.trim()))
                    .hint("end them, or give the run another name"),
            )
        }
        Err(error) => Err(refused("make", directory, &error)),
    }
}

fn remove_group(directory: &Path) -> Result<(), Problem> {
    let deadline = Instant::now() + EMPTY_LIMIT;
    loop {
        match fs::remove_dir(directory) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            // A process that has just been reaped may still be on its way out.
            Err(error) if error.kind() == ErrorKind::ResourceBusy && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(error) => return Err(refused("remove", directory, &error)),
        }
    }
}

/// What a user is told when the kernel does not let us have a limit.
fn refused(action: &'static str, path: &Path, error: &std::io::Error) -> Problem {
    let problem = Problem::new("this host does not allow limits on servers").detail(format!(
        "cannot {action} {}: {}",
        path.display(),
        error.to_string().to_lowercase()
    ));
    match error.kind() {
        ErrorKind::PermissionDenied => problem.hint(place::SCOPE_HINT),
        ErrorKind::ReadOnlyFilesystem => problem.hint(
            "give the container writable cgroups, run outside of it, or add --limits-optional to run \
             without the missing limits",
        ),
        _ => problem.hint("add --limits-optional to run without the missing limits; the report says so"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A host whose hierarchies are ordinary directories.
    struct Host(tempfile::TempDir);

    impl Host {
        fn new(mounts: &str, membership: &str) -> Self {
            let host = Self(tempfile::tempdir().unwrap());
            host.file("proc/self/mounts", mounts);
            host.file("proc/self/cgroup", membership);
            host
        }

        fn path(&self, path: &str) -> PathBuf {
            self.0.path().join(path)
        }

        fn file(&self, path: &str, text: &str) {
            let path = self.path(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn text(&self, path: &str) -> String {
            fs::read_to_string(self.path(path)).unwrap()
        }

        /// The device of the directory that tests run in, made in the fake `/sys`.
        fn device(&self, directory: &Path) -> String {
            use std::os::unix::fs::MetadataExt;
            let dev = fs::metadata(directory).unwrap().dev();
            let number = format!("{}:{}", libc::major(dev), libc::minor(dev));
            self.file(
                &format!("sys/dev/block/{number}/dev"),
                &format!("{number}\n"),
            );
            number
        }

        fn find(&self, limits: &Limits, directory: &Path) -> Result<LimitPlan, Problem> {
            LimitPlan::find_below(self.0.path(), limits, directory)
        }
    }

    const V2_MOUNTS: &str = "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid,nodev,noexec,relatime 0 0\n";
    const SCOPE: &str = "sys/fs/cgroup/user.slice/run-1.scope";

    fn memory(bytes: u64) -> Limits {
        Limits {
            memory_bytes: Some(bytes),
            ..Limits::default()
        }
    }

    fn both() -> Limits {
        Limits {
            storage: Some(StorageProfile {
                name: "nas".to_owned(),
                read_iops: Some(2000),
                write_iops: None,
                read_bytes: Some(1 << 20),
                write_bytes: None,
                cost_per_month: None,
            }),
            ..memory(512 << 20)
        }
    }

    fn delegated(controllers: &str) -> Host {
        let host = Host::new(V2_MOUNTS, "0::/user.slice/run-1.scope\n");
        host.file(&format!("{SCOPE}/cgroup.controllers"), controllers);
        host.file(&format!("{SCOPE}/cgroup.subtree_control"), "");
        host.file(
            &format!("{SCOPE}/cgroup.procs"),
            &format!("{}\n", std::process::id()),
        );
        host.file(&format!("{SCOPE}/deltabench-self/cgroup.procs"), "");
        host
    }

    #[test]
    fn in_version_2_we_leave_our_scope_to_the_servers_and_all_limits_are_in_one_group() {
        let host = delegated("cpu io memory pids\n");
        let device = host.device(host.0.path());
        let plan = host.find(&both(), host.0.path()).unwrap();
        let own = std::process::id().to_string();
        assert_eq!(
            host.text(&format!("{SCOPE}/deltabench-self/cgroup.procs")),
            own
        );
        assert_eq!(
            host.text(&format!("{SCOPE}/cgroup.subtree_control")),
            "+memory +io"
        );
        // The kernel's list after it has been told.
        host.file(&format!("{SCOPE}/cgroup.subtree_control"), "io memory\n");
        let group = format!("{SCOPE}/deltabench-r-c0");
        assert_eq!(
            plan.directories("r/c0"),
            [host.path(SCOPE).join("deltabench-r_c0")]
        );
        assert_eq!(plan.directories("r-c0"), [host.path(&group)]);
        for file in ["memory.max", "memory.swap.max", "io.max", "cgroup.procs"] {
            host.file(&format!("{group}/{file}"), "");
        }
        let made = plan.create("r-c0", 100 << 20).unwrap();
        assert_eq!(
            host.text(&format!("{group}/memory.max")),
            (412 << 20).to_string()
        );
        assert_eq!(host.text(&format!("{group}/memory.swap.max")), "0");
        assert_eq!(
            host.text(&format!("{group}/io.max")),
            format!("{device} riops=2000 wiops=max rbps=1048576 wbps=max")
        );
        let memory = made.applied().memory.clone().unwrap();
        assert_eq!(
            (memory.asked_bytes, memory.limit_bytes),
            (512 << 20, 412 << 20)
        );
        assert_eq!(memory.swap_closed, Some(true));
        let storage = made.applied().storage.clone().unwrap();
        assert!(storage.written_back_counts && storage.read_iops == Some(2000));
        assert_eq!((storage.write_iops, storage.device), (None, device.clone()));
        made.lift_storage().unwrap();
        assert!(host.text(&format!("{group}/io.max")).contains("riops=max"));
        host.file(
            &format!("{group}/io.stat"),
            &format!("{device} rbytes=81920 wbytes=0 rios=10 wios=0 dbytes=0 dios=0\n"),
        );
        host.file(
            &format!("{group}/memory.events"),
            "low 0\nmax 7\noom 1\noom_kill 1\n",
        );
        let reading = made.read();
        assert_eq!((reading.reads, reading.read_bytes), (Some(10), Some(81920)));
        assert_eq!((reading.limit_hits, reading.killed), (Some(7), Some(1)));
        assert_eq!(reading.page_cache_bytes, None);
        assert!(
            made.remove().is_err(),
            "an ordinary directory with files stays"
        );
    }

    #[test]
    fn huge_pages_stay_inside_the_limit_where_the_kernel_counts_them() {
        let host = delegated("memory\n");
        host.file(
            "proc/self/mounts",
            "cgroup2 /sys/fs/cgroup cgroup2 rw,memory_hugetlb_accounting 0 0\n",
        );
        let plan = host.find(&memory(512 << 20), host.0.path()).unwrap();
        host.file(&format!("{SCOPE}/deltabench-x/memory.max"), "");
        let made = plan.create("x", 100 << 20).unwrap();
        let applied = made.applied().memory.clone().unwrap();
        assert_eq!((applied.beside_bytes, applied.limit_bytes), (0, 512 << 20));
        assert_eq!(applied.swap_closed, None);
    }

    #[test]
    fn a_shared_group_is_not_divided_but_a_group_above_may_take_the_servers() {
        let host = delegated("io memory\n");
        host.file(&format!("{SCOPE}/cgroup.procs"), "1\n2\n");
        let problem = host.find(&memory(512 << 20), host.0.path()).unwrap_err();
        assert!(problem.detail.unwrap().contains("and other processes"));
        assert!(problem.hint.unwrap().contains("systemd-run"));
        assert_eq!(host.text(&format!("{SCOPE}/cgroup.subtree_control")), "");
        host.file(
            "sys/fs/cgroup/user.slice/cgroup.subtree_control",
            "memory pids\n",
        );
        let plan = host.find(&memory(512 << 20), host.0.path()).unwrap();
        assert_eq!(
            plan.directories("x"),
            [host.path("sys/fs/cgroup/user.slice/deltabench-x")]
        );
        // Memory is passed on there, io is not.
        host.device(host.0.path());
        assert!(host.find(&both(), host.0.path()).is_err());
    }

    #[test]
    fn in_version_1_each_controller_has_its_group_and_missing_files_are_refused() {
        let host = Host::new(
            "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n\
             cgroup /sys/fs/cgroup/blkio cgroup rw,blkio 0 0\n\
             cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n",
            "4:memory:/job\n7:blkio:/\n0::/\n",
        );
        let device = host.device(host.0.path());
        let (memory, blkio) = (
            "sys/fs/cgroup/memory/job/deltabench-x",
            "sys/fs/cgroup/blkio/deltabench-x",
        );
        fs::create_dir_all(host.path("sys/fs/cgroup/memory/job")).unwrap();
        fs::create_dir_all(host.path("sys/fs/cgroup/blkio")).unwrap();
        let plan = host.find(&both(), host.0.path()).unwrap();
        assert_eq!(plan.directories("x"), [host.path(memory), host.path(blkio)]);
        let refused = plan.create("x", 0).unwrap_err();
        assert!(refused.detail.unwrap().contains("memory.limit_in_bytes"));
        assert!(!host.path(memory).exists(), "nothing is left behind");
        for file in ["limit_in_bytes", "memsw.limit_in_bytes"] {
            host.file(&format!("{memory}/memory.{file}"), "");
        }
        for file in ["read_iops", "write_iops", "read_bps", "write_bps"] {
            host.file(&format!("{blkio}/blkio.throttle.{file}_device"), "");
        }
        plan.create("x", 64 << 20).unwrap();
        assert_eq!(
            host.text(&format!("{memory}/memory.memsw.limit_in_bytes")),
            (448 << 20).to_string()
        );
        assert_eq!(
            host.text(&format!("{blkio}/blkio.throttle.read_iops_device")),
            format!("{device} 2000")
        );
    }

    #[test]
    fn a_group_with_processes_in_it_is_nobody_s_to_take() {
        let host = delegated("memory\n");
        let plan = host.find(&memory(512 << 20), host.0.path()).unwrap();
        host.file(&format!("{SCOPE}/deltabench-x/cgroup.procs"), "4711\n");
        let refused = plan.create("x", 0).unwrap_err();
        assert!(refused.detail.unwrap().ends_with("4711"));
    }

    #[test]
    fn a_host_without_control_groups_says_so() {
        let host = Host::new("", "");
        let problem = host.find(&memory(512 << 20), host.0.path()).unwrap_err();
        assert!(problem.error.contains("no control groups"), "{problem}");
        assert!(problem.hint.unwrap().contains("--limits-optional"));
    }

    #[test]
    fn limits_of_this_host_are_held_as_asked_or_refused_with_a_way_out() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR"));
        match try_limits(&both(), directory) {
            Ok(applied) => {
                assert_eq!(applied.memory.unwrap().limit_bytes, 512 << 20);
                assert_eq!(applied.storage.unwrap().read_iops, Some(2000));
            }
            Err(problem) => assert!(problem.hint.is_some(), "{problem}"),
        }
    }
}
