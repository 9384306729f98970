//! `deltabench fleet` on a real cluster of Slurm: three nodes on this machine.

#[path = "../../../fleet/tests/it/slurm/cluster.rs"]
#[allow(dead_code)]
mod cluster;

use crate::fleet::STUDY;
use crate::lab::{Lab, text};
use cluster::Cluster;
use deltabench_store::{RunState, Store};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Arrays of one lane, so that two lanes are two arrays; and a partition whose jobs go first.
const MORE: &str = "MaxArraySize=1\n\
    PreemptType=preempt/partition_prio\n\
    PreemptMode=REQUEUE\n\
    PartitionName=first Nodes=ALL MaxTime=INFINITE State=UP OverSubscribe=EXCLUSIVE \
    PriorityTier=10 PreemptMode=OFF\n";

struct Fleet {
    lab: Lab,
    cluster: Cluster,
}

impl Fleet {
    fn new() -> Self {
        let fleet = Self {
            lab: Lab::new(),
            cluster: Cluster::start_with(&["trio,pair", "trio,pair", "trio,alone"], MORE),
        };
        let place = fleet.lab.path();
        fs::write(place.join("study.toml"), STUDY).unwrap();
        fleet.file("shared", "trio", "");
        fs::rename(place.join("shared.toml"), place.join("lab.toml")).unwrap();
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

    /// Writes a fleet file for hosts with a feature.
    fn file(&self, name: &str, constraint: &str, more: &str) {
        let place = self.lab.path();
        let text = format!(
            "format = \"deltabench.fleet\"\nversion = 1\nengine = \"slurm\"\n\
             shared = \"{0}/{name}\"\nlocal = \"{0}/local\"\n{more}\n\
             [slurm]\nconstraint = \"{constraint}\"\n",
            place.display()
        );
        fs::write(place.join(format!("{name}.toml")), text).unwrap();
    }

    /// The spool of the execution that was started last.
    fn last(&self) -> PathBuf {
        let store = Store::open_existing(&self.lab.path().join("lab")).unwrap();
        store.executions().unwrap().pop().unwrap().spool
    }
}

/// How an attempt at the unit 1 ended, and on which node.
fn attempt(spool: &Path, number: u32) -> (Value, Value) {
    let attempt = spool.join(format!("unit-001/attempt-{number}"));
    let end = json(&attempt.join("end.json"))["word"].clone();
    (
        end,
        json(&attempt.join("owner.json"))["host"]["node"].clone(),
    )
}

/// Waits until a unit has done a visit.
fn has_visited(spool: &Path) {
    cluster::wait_for("a visit", 120, || {
        let beat = fs::read(spool.join("unit-001/attempt-1/beat.json")).ok()?;
        let beat: Value = serde_json::from_slice(&beat).ok()?;
        let words = ["measuring", "between blocks"];
        words.contains(&beat["text"].as_str()?).then_some(())
    });
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
    let fleet = Fleet::new();
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
    preempted(&fleet);
    cancelled(&fleet);
    copied(&fleet);
}

/// Jobs of a partition that goes first take the nodes of two lanes. One comes back to its node, because it has
/// no other, and goes on there; the other one begins anew elsewhere.
fn preempted(fleet: &Fleet) {
    let begin = |name: &str, constraint: &str, seed: &str| {
        fleet.file(name, constraint, "");
        let on = format!("{name}.toml");
        let words = ["run", "study.toml", "--on", &on, "--seed", seed, "--detach"];
        let only = ["--only", "repetition=1,rows=2000"];
        let fixture = ["--engine-fixture", "ms=300,blocks=8"];
        let begun = fleet.run(&[&words[..], &only, &fixture].concat());
        assert!(begun.status.success(), "{}", text(&begun.stderr));
        fleet.last()
    };
    // The first one holds its node until the lane has been there again, the second one does not.
    let lanes = [("pair", "7", "sleep 60"), ("alone", "8", "sleep 1")];
    let spools = lanes.map(|(name, seed, _)| begin(name, name, seed));
    let mut others = Vec::new();
    for (spool, (_, _, what)) in spools.iter().zip(lanes) {
        has_visited(spool);
        let node = json(&spool.join("unit-001/attempt-1/owner.json"));
        let at = format!("--nodelist={}", node["host"]["node"].as_str().unwrap());
        let wrap = format!("--wrap={what}");
        let words = ["--parsable", "--partition=first", "--exclusive", &at, &wrap];
        others.push(
            fleet
                .cluster
                .told("sbatch", &[&words[..], &["--output=/dev/null"]].concat()),
        );
    }
    let watch = |spool: &PathBuf| {
        let name = spool.file_name().unwrap().to_str().unwrap();
        let mut command = fleet.command(&["--offline", "fleet", "watch", name]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    for child in spools.each_ref().map(watch) {
        let output = child.wait_with_output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
    }
    fleet.cluster.told("scancel", &[others[0].trim()]);
    let store = Store::open_existing(&fleet.lab.path().join("lab")).unwrap();
    for (spool, on_same_node) in spools.iter().zip([false, true]) {
        let (first, second) = (attempt(spool, 1), attempt(spool, 2));
        assert_eq!(
            (&first.0, &second.0),
            (&"interrupted".into(), &"sealed".into())
        );
        assert_eq!(first.1 == second.1, on_same_node);
        let execution = spool.file_name().unwrap().to_str().unwrap();
        let unit = store.units(execution).unwrap().remove(0);
        let occasions = store.occasions(&unit.run).unwrap().len();
        assert_eq!(occasions, if on_same_node { 2 } else { 1 });
        let visits = store.completed_visits(&unit.run).unwrap().len();
        assert_eq!(store.slices(&unit.run).unwrap().len(), visits * 12);
    }
}

/// One server that really measures; all defaults else.
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
placebo = false
visit_seconds = 0.1
slice_ms = 5
"#;

/// A lane that measures is cancelled: nothing of it runs or lies about, and its lab stays for `resume`.
fn cancelled(fleet: &Fleet) {
    let place = fleet.lab.path();
    fs::write(place.join("real.toml"), REAL).unwrap();
    fleet.file("really", "alone", "check = false\nadmission = false");
    let file = place.join("really.toml");
    // The lock of the machine is not for tests.
    let state = format!(
        "extra = [\"--export=DELTABENCH_STATE={}\"]\n",
        fleet.lab.state().display()
    );
    fs::write(&file, fs::read_to_string(&file).unwrap() + &state).unwrap();
    let clusters = fleet.lab.clusters();
    let mut run = fleet.command(&["fleet", "run", "real.toml", "--on", "really.toml"]);
    run.args(["--detach", "--huge-pages", "off", "--cluster-dir"])
        .arg(&clusters);
    let begun = run.output().unwrap();
    assert!(begun.status.success(), "{}", text(&begun.stderr));
    let spool = fleet.last();
    has_visited(&spool);
    assert!(!fleet.lab.servers().is_empty());
    let output = fleet.run(&["cancel"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let lanes = text(&fleet.run(&["logs"]).stdout);
    assert_eq!(attempt(&spool, 1).0, "cancelled", "{said}{lanes}");
    assert!(fleet.lab.servers().is_empty(), "{lanes}");
    let left = fleet.cluster.job_processes();
    assert!(left.is_empty(), "{left:?}");
    let left = fleet.lab.workspaces();
    assert!(left.is_empty(), "{left:?}{lanes}");
    let lock = fs::File::open(fleet.lab.state().join("host.lock")).unwrap();
    assert!(lock.try_lock().is_ok());
    let name = spool.file_name().unwrap();
    let kept = fs::read_dir(place.join("local").join(name).join("unit-001")).unwrap();
    let kept: Vec<String> = kept
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.starts_with("deltabench.sqlite"))
        .collect();
    assert!(kept.is_empty(), "{kept:?}");
    assert_eq!(fleet.run(&["status"]).status.code(), Some(0));
}

/// Without a shared directory: each node has a home of its own, and the spool is in a directory that the
/// nodes are not told of. A process in the background copies, fetches and reports; it may be killed.
fn copied(fleet: &Fleet) {
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
fn checked(fleet: &Fleet, unfit: &str) {
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
    // With a star where Slurm has not heard of it since.
    assert_eq!(hosts.matches(" idle").count(), 3, "{hosts}");
}
