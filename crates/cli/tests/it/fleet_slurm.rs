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
use std::path::Path;
use std::process::Output;

struct Fleet {
    lab: Lab,
    cluster: Cluster,
}

impl Fleet {
    fn new() -> Self {
        let fleet = Self {
            lab: Lab::new(),
            cluster: Cluster::start(&["trio", "trio", "trio"]),
        };
        let place = fleet.lab.path();
        fs::write(place.join("study.toml"), STUDY).unwrap();
        let file = format!(
            "format = \"deltabench.fleet\"\nversion = 1\nengine = \"slurm\"\nshared = \"{0}/shared\"\n\
             local = \"{0}/local\"\n[slurm]\nconstraint = \"trio\"\n",
            place.display()
        );
        fs::write(place.join("lab.toml"), file).unwrap();
        fleet
    }

    fn run(&self, words: &[&str]) -> Output {
        let mut command = self.lab.command(&[&["--offline", "fleet"], words].concat());
        command.env("SLURM_CONF", self.cluster.conf());
        command.output().unwrap()
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
    // The job that gathers ended well, although there is a regression.
    let name = format!("--name=dlb-{}-2-gather", execution.name);
    cluster::wait_for("the job that gathers", 30, || {
        let told = fleet.cluster.told(
            "squeue",
            &["--noheader", "--states=all", &name, "--format=%T"],
        );
        (told == "COMPLETED\n").then_some(())
    });
    // As a command leaves it that was killed before it had Slurm's answer.
    let file = execution.spool.join("jobs/0001.json");
    let mut job = json(&file);
    let known = job["job"].take();
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
