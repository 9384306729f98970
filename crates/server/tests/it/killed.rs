//! A deltabench that is killed: its servers go with it, and the next start clears the rest.

use crate::huge_pages::{pages, turn};
use crate::lab::{
    Lab, any_installation, control_group, is_running, processes_in, shared_memory_of, slot,
};
use crate::query::value;
use deltabench_server::{Cluster, ClusterSpec, HugePages, ServerUser, Slot, Workspace, sweep};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Tells the helper below where to work; unset for everybody else.
const PARENT: &str = "DELTABENCH_TEST_KILLED_PARENT";
/// Set: the helper's server is not tied to the helper's life.
const LOOSE: &str = "DELTABENCH_TEST_KILLED_LOOSE";

/// Not a test of its own: run in a second process by the tests here, which kill it.
#[test]
#[ignore = "run by the other tests of this module"]
fn helper() {
    let Some(parent) = std::env::var_os(PARENT).map(PathBuf::from) else {
        eprintln!("nothing to do: {PARENT} is not set");
        return;
    };
    let user = ServerUser::choose(None).unwrap();
    let workspace = Workspace::create(&parent, "killed", &user).unwrap();
    let reserved = user
        .switched
        .then(|| HugePages::reserve(&[1 << 20], &workspace).unwrap());
    let group = control_group(&format!("deltabench-killed-{}", std::process::id()));
    let groups: Vec<PathBuf> = group.into_iter().collect();
    workspace.note_cgroups(&groups).unwrap();
    let installation = any_installation();
    let settings = crate::lab::small_settings(installation.version_num);
    let spec = ClusterSpec {
        installation: &installation,
        checksums: None,
        settings: &settings,
    };
    let mut cluster = Cluster::create(
        &workspace,
        "c0",
        &spec,
        &parent.with_file_name("cache"),
        &user,
    )
    .unwrap();
    let grouped = Slot {
        cgroups: groups.clone(),
        ..slot(5500)
    };
    let mut pid = cluster.start(&grouped, &[]).unwrap().postmaster_pid;
    if std::env::var_os(LOOSE).is_some() {
        cluster.stop().unwrap();
        // As the cluster starts it, but without the tie to our life: a kernel or a parent that broke
        // the tie.
        let mut command = Command::new(installation.bin_dir.join("postgres"));
        command
            .arg("-D")
            .arg(cluster.data_dir())
            .current_dir("/")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if user.switched {
            command.uid(user.uid).gid(user.gid);
        }
        pid = command.spawn().unwrap().id();
        let lock_file = cluster.data_dir().join("postmaster.pid");
        wait_until("the loose server runs", || {
            std::fs::read_to_string(&lock_file).is_ok_and(|text| text.lines().count() >= 7)
        });
    }
    println!(
        "\nready {pid} {} {}",
        reserved.as_ref().map_or(0, HugePages::added),
        groups
            .first()
            .map_or("-".to_owned(), |group| group.display().to_string())
    );
    // Killed here.
    std::thread::sleep(Duration::from_secs(600));
}

struct Helper {
    process: Child,
    postmaster: u32,
    pages: u64,
    group: Option<PathBuf>,
}

impl Helper {
    fn start(lab: &Lab, loose: bool) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "killed::helper", "--ignored", "--nocapture"])
            .env(PARENT, lab.parent());
        if loose {
            command.env(LOOSE, "1");
        }
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap())
            .lines()
            .map_while(Result::ok);
        let Some(ready) = lines.find_map(|line| line.strip_prefix("ready ").map(str::to_owned))
        else {
            panic!("the helper failed: {:?}", process.wait());
        };
        let mut numbers = ready.split(' ');
        let postmaster = numbers.next().unwrap().parse().unwrap();
        let pages = numbers.next().unwrap().parse().unwrap();
        let group = numbers.next().filter(|path| *path != "-");
        Self {
            process,
            postmaster,
            pages,
            group: group.map(PathBuf::from),
        }
    }

    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "not within a minute: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn servers_of_a_killed_deltabench_end_and_a_sweep_removes_the_rest() {
    let _turn = turn();
    let lab = Lab::new();
    let mut helper = Helper::start(&lab, false);
    let workspace = lab.parent().join("killed");
    assert!(sweep(&lab.parent()).is_empty(), "its maker lives");
    assert!(is_running(helper.postmaster) && workspace.exists());
    if let Some(group) = &helper.group {
        let inside = std::fs::read_to_string(group.join("cgroup.procs")).unwrap();
        let children = inside.lines().count();
        assert!(
            children > 1
                && inside
                    .lines()
                    .any(|pid| pid == helper.postmaster.to_string())
        );
    }
    helper.kill();
    wait_until("the kernel's signal ends the server", || {
        !is_running(helper.postmaster)
    });
    assert_eq!(shared_memory_of(helper.postmaster), 0);
    // Counted right around the sweep: another deltabench on this machine may add and give back its own.
    let before = pages();
    let done = sweep(&lab.parent()).join("\n");
    let after = pages();
    assert!(
        done.contains("removed") && done.contains("run killed"),
        "{done}"
    );
    assert_eq!(
        done.contains("huge pages back"),
        lab.user.switched,
        "{done}"
    );
    assert!(!workspace.exists());
    assert_eq!(
        done.contains("control groups"),
        helper.group.is_some(),
        "{done}"
    );
    assert!(helper.group.is_none_or(|group| !group.exists()));
    assert_eq!(after, before - helper.pages);
    assert!(sweep(&lab.parent()).is_empty());
}

#[test]
fn a_sweep_stops_the_stale_server_and_nobody_else_s() {
    let _turn = turn();
    let (lab, elsewhere) = (Lab::new(), Lab::new());
    let installation = any_installation();
    // One in the same parent, of a deltabench that lives, and one somewhere else.
    let (mut neighbour, mut foreign) = (
        lab.cluster("c0", &installation),
        elsewhere.cluster("c0", &installation),
    );
    let neighbour_at = neighbour.start(&slot(5500), &[]).unwrap().endpoint.clone();
    let foreign_at = foreign.start(&slot(5500), &[]).unwrap().endpoint.clone();
    let mut helper = Helper::start(&lab, true);
    helper.kill();
    assert!(
        is_running(helper.postmaster),
        "this one is not tied to its maker"
    );
    let done = sweep(&lab.parent()).join("\n");
    assert!(
        done.contains("stopped") && done.contains("removed"),
        "{done}"
    );
    assert!(!is_running(helper.postmaster) && !lab.parent().join("killed").exists());
    assert_eq!(shared_memory_of(helper.postmaster), 0);
    for (cluster, endpoint) in [(&mut neighbour, neighbour_at), (&mut foreign, foreign_at)] {
        assert!(cluster.is_alive());
        assert_eq!(value(&endpoint, "select 1"), "1");
        cluster.stop().unwrap();
    }
    assert!(processes_in(lab.scratch.path()).is_empty());
}
