//! `deltabench fleet` on a real cluster of Slurm: four nodes on this machine.

#[path = "../../../fleet/tests/it/slurm/cluster.rs"]
#[allow(dead_code)]
mod cluster;

use crate::fleet::STUDY;
use crate::lab::{Lab, text};
use cluster::Cluster;
use deltabench_model::finding::{Finding, FindingKind};
use deltabench_store::{RunState, Store};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Three nodes for one experiment, one for another.
const NODES: [&str; 4] = ["trio", "trio", "trio", "alone"];

/// Arrays of one lane, so that two lanes are two arrays; a partition whose jobs go first; fewer jobs than
/// somebody asks for; and Slurm's own time for servers to end.
const MORE: &str = "KillWait=30\n\
    MaxArraySize=1\n\
    MaxJobCount=90\n\
    PreemptType=preempt/partition_prio\n\
    PreemptMode=REQUEUE\n\
    PartitionName=first Nodes=ALL MaxTime=INFINITE State=UP OverSubscribe=EXCLUSIVE \
    PriorityTier=10 PreemptMode=OFF\n";

struct Fleet<'a> {
    lab: Lab,
    cluster: &'a Cluster,
}

impl<'a> Fleet<'a> {
    /// A lab of its own, with a fleet file for the hosts with a feature.
    fn new(cluster: &'a Cluster, constraint: &str, more: &str) -> Self {
        let fleet = Self {
            lab: Lab::new(),
            cluster,
        };
        let place = fleet.lab.path();
        fs::write(place.join("study.toml"), STUDY).unwrap();
        let file = format!(
            "format = \"deltabench.fleet\"\nversion = 1\nengine = \"slurm\"\nshared = \"{0}/shared\"\n\
             local = \"{0}/local\"\n{more}[slurm]\nconstraint = \"{constraint}\"\n",
            place.display()
        );
        fs::write(place.join("lab.toml"), file).unwrap();
        fleet
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.lab.command(words);
        command.env("SLURM_CONF", self.cluster.conf());
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        let words = [&["--offline", "fleet"], words].concat();
        self.command(&words).output().unwrap()
    }

    /// The spool of the execution that was started last.
    fn spool(&self) -> PathBuf {
        let store = Store::open_existing(&self.lab.path().join("lab")).unwrap();
        store.executions().unwrap().pop().unwrap().spool
    }
}

fn json(file: &Path) -> Value {
    serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
}

#[test]
fn an_experiment_goes_over_a_cluster_and_leaves_an_unfit_host() {
    // scripts/test says so in its last lines.
    if std::env::var_os("DELTABENCH_WITHOUT_SLURM").is_some() {
        return;
    }
    let cluster = Cluster::start_with(&NODES, MORE);
    std::thread::scope(|scope| {
        scope.spawn(|| a_lane_that_measures_is_preempted_goes_on_and_is_cancelled(&cluster));
        spread_over_three_nodes(&cluster);
    });
}

fn spread_over_three_nodes(cluster: &Cluster) {
    let fleet = Fleet::new(cluster, "trio", "");
    // More than Slurm holds: nothing is shipped.
    let many = [
        "run",
        "study.toml",
        "--on",
        "lab.toml",
        "--repetitions",
        "90",
    ];
    let refused = fleet.run(&[&many[..], &["--engine-fixture", "ms=1"]].concat());
    let said = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(
        said.contains("MaxJobCount is 90 in its slurm.conf"),
        "{said}"
    );
    assert!(!fleet.lab.path().join("shared").exists());
    // The host that meets unit 3 first is unfit: its lane goes elsewhere by itself.
    let words = [
        "run",
        "study.toml",
        "--on",
        "lab.toml",
        "--engine-fixture",
        "ms=50,unfit=3",
    ];
    let output = fleet.run(&words);
    let said = text(&output.stderr);
    let lanes = text(&fleet.run(&["logs"]).stdout);
    assert_eq!(output.status.code(), Some(1), "{said}{lanes}");
    assert!(text(&output.stdout).contains("2 slower"), "{said}{lanes}");
    let store = Store::open_existing(&fleet.lab.path().join("lab")).unwrap();
    let runs = store.runs().unwrap();
    assert_eq!(runs.len(), 4);
    for run in &runs {
        let slices = store.slices(&run.run).unwrap().len();
        let visits = store.completed_visits(&run.run).unwrap().len();
        assert_eq!((run.state, slices), (RunState::Finished, visits * 12));
    }
    let execution = store.executions().unwrap().pop().unwrap();
    let attempt = |number: u32| execution.spool.join(format!("unit-003/attempt-{number}"));
    assert_eq!(json(&attempt(1).join("end.json"))["word"], "unfit");
    assert_eq!(json(&attempt(2).join("end.json"))["word"], "sealed");
    let node = |number: u32| json(&attempt(number).join("owner.json"))["host"]["node"].clone();
    let unfit = node(1);
    assert_ne!(unfit, node(2));
    assert!(!attempt(3).exists());
    // The job that gathers ended well, although there is a regression. It came after both arrays.
    let name = format!("--name=dlb-{}-3-gather", execution.name);
    cluster::wait_for("the job that gathers", 30, || {
        let told = fleet.cluster.told(
            "squeue",
            &["--noheader", "--states=all", &name, "--format=%T"],
        );
        (told == "COMPLETED\n").then_some(())
    });
    // As a command leaves it that was killed before it had Slurm's answer.
    let file = execution.spool.join("jobs/0002.json");
    let mut job = json(&file);
    let known = job["job"].take();
    assert!(known.as_str().unwrap().ends_with("+1"), "{known}");
    fs::write(&file, job.to_string()).unwrap();
    let watched = fleet.run(&["watch"]);
    assert_eq!(watched.status.code(), Some(1));
    let found = format!("found job {} (dlb-", known.as_str().unwrap());
    assert!(
        text(&watched.stderr).contains(&found),
        "{}",
        text(&watched.stderr)
    );
    assert_eq!(json(&file)["job"], known);
    checked(&fleet, unfit.as_str().unwrap());
    copied(&fleet);
}

/// One server that really measures, in short visits.
const REAL: &str = r#"
format = "deltabench.experiment"
version = 1
name = "real"

[[servers]]
target = "postgres:18"

[workloads]
only = ["point-query"]
clients = [1, 2]

[data]
rows = 2000

[measurement]
blocks = 90
fixed = true
visit_seconds = 0.1
slice_ms = 5
"#;

/// Waits until an attempt at the only unit has done a visit.
fn has_visited(spool: &Path, attempt: u32) {
    let beat = spool.join(format!("unit-001/attempt-{attempt}/beat.json"));
    cluster::wait_for("a visit", 120, || {
        let beat: Value = serde_json::from_slice(&fs::read(&beat).ok()?).ok()?;
        let words = ["measuring", "between blocks"];
        words.contains(&beat["text"].as_str()?).then_some(())
    });
}

/// A job of a partition that goes first takes the node of a lane with real servers. The lane comes back to
/// its only node and goes on there. Then it is cancelled: nothing of it runs or lies about, its lab stays.
fn a_lane_that_measures_is_preempted_goes_on_and_is_cancelled(cluster: &Cluster) {
    let fleet = Fleet::new(cluster, "alone", "check = false\nadmission = false\n");
    let place = fleet.lab.path();
    fs::write(place.join("study.toml"), REAL).unwrap();
    let file = place.join("lab.toml");
    // The lock of the machine is not for tests.
    let state = fleet.lab.state();
    let extra = format!(
        "extra = [\"--export=DELTABENCH_STATE={}\"]\n",
        state.display()
    );
    fs::write(&file, fs::read_to_string(&file).unwrap() + &extra).unwrap();
    let clusters = fleet.lab.clusters();
    let mut run = fleet.command(&["fleet", "run", "study.toml", "--on", "lab.toml", "--detach"]);
    run.args(["--huge-pages", "off", "--cluster-dir"])
        .arg(&clusters);
    let begun = run.output().unwrap();
    assert!(begun.status.success(), "{}", text(&begun.stderr));
    let spool = fleet.spool();
    has_visited(&spool, 1);
    assert!(!fleet.lab.servers().is_empty());
    // A lane that waits for its node again is held back for two minutes, unless somebody watches.
    let mut watching = fleet.command(&["--offline", "fleet", "watch"]);
    watching.stdout(Stdio::null()).stderr(Stdio::piped());
    let watching = watching.spawn().unwrap();
    let words = [
        "--parsable",
        "--partition=first",
        "--exclusive",
        "--nodelist=n4",
    ];
    let other = ["--output=/dev/null", "--wrap=sleep 1"];
    let other = cluster.told("sbatch", &[&words[..], &other].concat());
    assert!(!other.is_empty());
    has_visited(&spool, 2);
    let output = fleet.run(&["cancel"]);
    let (said, lanes) = (text(&output.stderr), text(&fleet.run(&["logs"]).stdout));
    assert_eq!(output.status.code(), Some(0), "{said}{lanes}");
    let watched = watching.wait_with_output().unwrap();
    assert_eq!(
        watched.status.code(),
        Some(5),
        "{}{lanes}",
        text(&watched.stderr)
    );
    for (attempt, word) in [(1, "interrupted"), (2, "cancelled")] {
        let place = spool.join(format!("unit-001/attempt-{attempt}"));
        let end = place.join("end.json");
        assert!(end.exists(), "{attempt}: {lanes}");
        assert_eq!(json(&end)["word"], word, "{lanes}");
        assert_eq!(json(&place.join("owner.json"))["host"]["node"], "n4");
    }
    assert!(!spool.join("unit-001/attempt-3").exists());
    assert!(fleet.lab.servers().is_empty(), "{lanes}");
    let left = fleet.lab.workspaces();
    assert!(left.is_empty(), "{left:?}{lanes}");
    let lock = fs::File::open(state.join("host.lock")).unwrap();
    assert!(lock.try_lock().is_ok());
    // What it measured is there once, from two occasions.
    let unit = place
        .join("local")
        .join(spool.file_name().unwrap())
        .join("unit-001");
    let store = Store::open_existing(&unit).unwrap();
    let run = store.runs().unwrap().remove(0);
    assert_eq!(run.state, RunState::Interrupted);
    assert_eq!(store.occasions(&run.run).unwrap().len(), 2);
    // TERM goes to the servers, too; that is no loss of a server.
    let lost = |one: &Finding| one.kind == FindingKind::ServerLost;
    assert!(
        !store.findings(&run.run).unwrap().iter().any(lost),
        "{lanes}"
    );
    let slices = store.slices(&run.run).unwrap();
    assert!(slices.iter().all(|slice| slice.void.is_none()), "{lanes}");
    assert!(store.completed_visits(&run.run).unwrap().len() >= 2);
}

/// Without a shared directory: each node has a home of its own, and the spool is in a directory that the
/// nodes are not told of. A process in the background copies, fetches and reports; it may be killed.
fn copied(fleet: &Fleet<'_>) {
    let place = fleet.lab.path();
    let disk = place.join("disk");
    let file = format!(
        "format = \"deltabench.fleet\"\nversion = 1\nengine = \"slurm\"\ncopy = \"sbcast\"\n\
         spool = \"{0}/spool\"\nlocal = \"{1}\"\n[slurm]\nconstraint = \"trio\"\n",
        place.display(),
        disk.display()
    );
    fs::write(place.join("copied.toml"), file).unwrap();
    let words = |more: &'static str| {
        let on = [
            "run",
            "study.toml",
            "--on",
            "copied.toml",
            "--engine-fixture",
        ];
        [&on[..], &["ms=50,unfit=3", more]].concat()
    };
    let dry = text(&fleet.run(&words("--dry-run")).stdout);
    assert!(
        dry.contains("copies these to each host that takes a lane"),
        "{dry}"
    );
    assert!(!dry.contains("-gather"), "{dry}");
    let begun = fleet.run(&words("--detach"));
    let told = text(&begun.stderr);
    assert_eq!(begun.status.code(), Some(0), "{told}");
    let store = Store::open_existing(&place.join("lab")).unwrap();
    let spool = store.executions().unwrap().pop().unwrap().spool;
    let log = || fs::read_to_string(spool.join("log/watch.txt")).unwrap_or_default();
    cluster::wait_for("copies", 60, || log().contains(": copied ").then_some(()));
    let pid = told.rsplit_once("process ").unwrap().1.split(' ').next();
    cluster::kill_process(pid.unwrap().parse().unwrap());
    // What does it next goes on, and is alone.
    for expected in [" in the background, and writes ", " already: "] {
        let told = text(&fleet.run(&["watch", "--detach"]).stderr);
        assert!(told.contains(expected), "{told}");
    }
    cluster::wait_for("the report", 90, || {
        let lock = fs::File::open(spool.join("watching.lock")).unwrap();
        lock.try_lock_shared().ok()
    });
    let said = log();
    let lanes = text(&fleet.run(&["logs"]).stdout);
    assert!(said.contains("2 slower"), "{said}{lanes}");
    assert!(
        said.contains("host n") && said.contains("is avoided: as was asked"),
        "{said}"
    );
    assert!(said.contains(": copied "), "{said}");
    let nodes = |unit: u32| -> Vec<Value> {
        let owner =
            |attempt: u32| spool.join(format!("unit-{unit:03}/attempt-{attempt}/owner.json"));
        let files = (1..=2).map(owner).filter(|file| file.exists());
        files
            .map(|file| json(&file)["host"]["node"].clone())
            .collect()
    };
    let of_unfit = nodes(3);
    assert!(
        of_unfit.len() == 2 && of_unfit[0] != of_unfit[1],
        "{of_unfit:?}"
    );
    // All is fetched, so nothing is left of it on any node.
    let left: Vec<_> = fs::read_dir(&disk).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}{said}");
    assert!(!said.contains(" stays"), "{said}");
    let again = fleet.run(&["gather"]);
    assert_eq!(text(&again.stdout).matches(" gathered ").count(), 4);
    assert_eq!(again.status.code(), Some(0), "{}", text(&again.stderr));
}

/// Every node answers, and a node sees what is wrong with the shared directory.
fn checked(fleet: &Fleet<'_>, unfit: &str) {
    let drained = fleet.run(&["drain", unfit, "noisy", "--on", "lab.toml"]);
    assert!(drained.status.success(), "{}", text(&drained.stderr));
    let spoiled = fleet.lab.path().join("shared/servers/0123456789ab");
    fs::create_dir_all(&spoiled).unwrap();
    fs::write(spoiled.join("postgres"), "another").unwrap();
    let check = fleet.run(&["check", "--on", "lab.toml"]);
    let table = text(&check.stdout);
    assert_eq!(
        check.status.code(),
        Some(4),
        "{table}{}",
        text(&check.stderr)
    );
    assert!(
        text(&check.stderr).contains("2 of 2 hosts are unfit"),
        "{table}"
    );
    let left_out = format!("{unfit:<16} not asked  drained by us: noisy");
    assert!(table.contains(&left_out), "{table}");
    let seen = "sees another server in servers/0123456789ab than was shipped";
    assert_eq!(table.matches(seen).count(), 2, "{table}");
    assert_eq!(table.matches("one machine with n").count(), 2, "{table}");
    assert!(!table.contains("another deltabench"), "{table}");
    let undone = fleet.run(&["drain", unfit, "--undo", "--on", "lab.toml"]);
    assert!(undone.status.success(), "{}", text(&undone.stderr));
    let hosts = text(&fleet.run(&["hosts", "--on", "lab.toml"]).stdout);
    let is_idle = |line: &&str| line.contains(" trio") && line.contains(" idle");
    // With a star where Slurm has not heard of it since.
    assert_eq!(hosts.lines().filter(is_idle).count(), 3, "{hosts}");
}
