//! Experiments on many hosts, with units that stand for measurements. Hosts are names: `DELTABENCH_NODE`.

mod full;
mod hosts;
mod slurm_says;

use crate::lab::{Lab, TINY, text};
use deltabench_store::{FILE_NAME, RunState, Store};
use rusqlite::Connection;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Two sizes, twice: four units in two lanes. Nothing is fetched for it.
pub const STUDY: &str = r#"
format = "deltabench.experiment"
version = 1
name = "study"

[[servers]]
target = "postgres:17"

[[servers]]
target = "postgres:18"

[workloads]
only = ["point-query"]
clients = [1]

[data]
rows = [2000, 3000]

[measurement]
blocks = 3
fixed = true
repetitions = 2
seed = 7
"#;

struct Fleet {
    lab: Lab,
}

impl Fleet {
    fn new() -> Self {
        let lab = Lab::new();
        let place = lab.path();
        fs::write(place.join("study.toml"), STUDY).unwrap();
        let file = format!(
            "format = \"deltabench.fleet\"\nversion = 1\nengine = \"local\"\nshared = \"{0}/shared\"\n\
             local = \"{0}/local\"\n[lanes]\nwait_minutes = 0\n",
            place.display()
        );
        fs::write(place.join("lab.toml"), file).unwrap();
        Self { lab }
    }

    fn on(&self, node: &str, words: &[&str]) -> Command {
        let mut command = self.lab.command(&[&["--offline", "fleet"], words].concat());
        command.env("DELTABENCH_NODE", node);
        command
    }

    fn run(&self, node: &str, fixture: &str, more: &[&str]) -> Output {
        let words = [
            "run",
            "study.toml",
            "--on",
            "lab.toml",
            "--engine-fixture",
            fixture,
        ];
        self.on(node, &[&words, more].concat()).output().unwrap()
    }

    fn start(&self, node: &str, words: &[&str]) -> Child {
        let mut command = self.on(node, words);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap()
    }

    fn store(&self) -> Store {
        Store::open_existing(&self.lab.path().join("lab")).unwrap()
    }

    fn spool(&self) -> PathBuf {
        self.store().executions().unwrap().pop().unwrap().spool
    }

    fn spool_name(&self) -> String {
        self.store().executions().unwrap().pop().unwrap().name
    }

    fn attempt(&self, unit: u32, attempt: u32) -> PathBuf {
        self.spool()
            .join(format!("unit-{unit:03}/attempt-{attempt}"))
    }

    fn word(&self, unit: u32, attempt: u32) -> Option<String> {
        let end = json(&self.attempt(unit, attempt).join("end.json"))?;
        Some(end["word"].as_str().unwrap().to_owned())
    }

    /// The process of an attempt, once it has done a block.
    fn in_the_middle(&self, unit: u32) -> u32 {
        wait_for("a block", || {
            let beat = json(&self.attempt(unit, 1).join("beat.json"))?;
            (beat["text"] == "measuring").then_some(())
        });
        let owner = json(&self.attempt(unit, 1).join("owner.json")).unwrap();
        owner["pid"].as_u64().unwrap().try_into().unwrap()
    }

    /// The unit that the first lane begins with, and the other one.
    fn first_lane(&self) -> (u32, u32) {
        let lanes = json(&self.spool().join("lanes.json")).unwrap();
        let unit = |at: usize| lanes["lanes"][0]["units"][at].as_u64().unwrap();
        (unit(0).try_into().unwrap(), unit(1).try_into().unwrap())
    }

    /// Runs, with visits, slices and occasions of each.
    fn measured(&self) -> Vec<(String, RunState, usize, usize, usize)> {
        let store = self.store();
        let each = store.runs().unwrap().into_iter().map(|run| {
            let name = run.run.as_str();
            let visits = store.completed_visits(name).unwrap().len();
            let slices = store.slices(name).unwrap().len();
            let occasions = store.occasions(name).unwrap().len();
            (run.run.clone(), run.state, visits, slices, occasions)
        });
        each.collect()
    }

    fn assert_whole(&self) {
        let measured = self.measured();
        assert_eq!(measured.len(), 4);
        for (run, state, visits, slices, _) in measured {
            // Three servers, four rounds.
            assert_eq!((state, slices), (RunState::Finished, visits * 12), "{run}");
        }
    }
}

fn json(file: &Path) -> Option<Value> {
    serde_json::from_slice(&fs::read(file).ok()?).ok()
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> Option<()>) {
    let began = Instant::now();
    while is_so().is_none() {
        assert!(began.elapsed() < Duration::from_secs(120), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn signal(pid: u32, word: &str) {
    let status = Command::new("kill").arg(word).arg(pid.to_string()).status();
    assert!(status.unwrap().success());
}

fn is_gone(pid: u32) -> Option<()> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    (stat.is_empty() || stat.contains(") Z")).then_some(())
}

/// What a lab has measured, whatever numbers its rows have.
fn content(lab: &Path) -> Vec<String> {
    let raw = Connection::open(lab.join(FILE_NAME)).unwrap();
    let mut lines = Vec::new();
    for table in [
        "slice",
        "visit",
        "fact",
        "run_state",
        "occasion",
        "cell_series",
    ] {
        let sql = format!("select r.name, t.* from {table} t join run r on r.id = t.run");
        let mut statement = raw.prepare(&sql).unwrap();
        let names: Vec<String> = statement
            .column_names()
            .iter()
            .map(|name| (*name).to_owned())
            .collect();
        let mut rows = statement.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let own = |name: &&String| !["id", "run", "host", "series"].contains(&name.as_str());
            let values = names.iter().filter(own).map(|name| {
                let value: rusqlite::types::Value = row.get(name.as_str()).unwrap();
                format!("{value:?}")
            });
            lines.push(format!("{table} {}", values.collect::<Vec<_>>().join(" ")));
        }
    }
    lines.sort();
    lines
}

#[test]
fn an_execution_is_measured_gathered_and_reported_as_on_one_machine() {
    let fleet = Fleet::new();
    let output = fleet.run("a", "ms=5", &[]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        text(&output.stdout).contains("2 slower"),
        "{}",
        text(&output.stdout)
    );
    fleet.assert_whole();
    // The same slices in a lab of one machine have the same tables, to the digit.
    let (from, lab) = (fleet.store(), fleet.lab.path().join("one"));
    let mut one = Store::open(&lab).unwrap();
    let runs = from.runs().unwrap();
    for (at, run) in (0..).zip(&runs) {
        let plan = from.plan(&run.run).unwrap();
        one.create_run(&run.run, &plan, RunState::Running, at)
            .unwrap();
        let slices = from.slices(&run.run).unwrap();
        for visit in slices.chunk_by(|one, two| (one.block, one.cell) == (two.block, two.cell)) {
            one.begin_visit(&run.run, visit[0].cell, visit[0].block)
                .unwrap();
            for slice in visit {
                one.append(&run.run, slice).unwrap();
            }
            one.commit_visit(&run.run, visit[0].cell, visit[0].block)
                .unwrap();
        }
        one.finish_run(&run.run, RunState::Finished, at).unwrap();
    }
    drop(one);
    let report = |lab: &Path| -> Value {
        let mut command = Command::new(env!("CARGO_BIN_EXE_deltabench"));
        let name = runs[0].execution.clone().unwrap();
        command
            .args(["report", &name, "--format", "json", "--lab"])
            .arg(lab);
        serde_json::from_slice(&command.output().unwrap().stdout).unwrap()
    };
    let tables = report(&lab)["tables"].clone();
    assert!(tables.as_array().is_some_and(|tables| !tables.is_empty()));
    assert_eq!(report(&fleet.lab.path().join("lab"))["tables"], tables);
    for name in ["last", &runs[0].run] {
        let resumed = fleet.lab.run(&["resume", name]);
        assert_eq!(resumed.status.code(), Some(2), "{name}");
        assert!(text(&resumed.stderr).contains("measured by a fleet"));
    }
    // And `deltabench run` would plan the same.
    let words = ["--offline", "run", "study.toml", "--dry-run"];
    let dry = fleet.lab.run(&words);
    assert!(
        text(&dry.stdout).contains("4 of 4, rows 3000, repetition 2"),
        "{}",
        text(&dry.stdout)
    );
}

#[test]
fn gathering_may_be_killed_and_repeated_and_bad_files_are_refused_by_name() {
    let fleet = Fleet::new();
    fleet.run("a", "ms=1", &[]);
    let (lab, spool) = (fleet.lab.path().join("lab"), fleet.spool());
    // The job that gathers if nobody watches may end later. It must not take what is put back below.
    wait_for("the job that gathers", || {
        let logs = fs::read_dir(spool.join("log")).unwrap().flatten();
        let mut said = logs.map(|log| fs::read_to_string(log.path()).unwrap_or_default());
        said.any(|said| said.contains("would end with"))
            .then_some(())
    });
    let whole = content(&lab);
    let from = fleet.store();
    let (execution, units) = {
        let execution = from.executions().unwrap().pop().unwrap();
        let units = from.units(&execution.name).unwrap();
        (execution, units)
    };
    // Back to the moment when all was sealed and nothing gathered.
    let again = fleet.lab.path().join("again");
    let mut store = Store::open(&again).unwrap();
    for unit in &units {
        let plan = from.plan(&unit.run).unwrap();
        let planned = from.reached(&unit.run).unwrap().unwrap().started_unix_ms;
        store
            .create_run(&unit.run, &plan, RunState::Planned, planned)
            .unwrap();
    }
    store.add_execution(&execution, &units).unwrap();
    drop(store);
    let put_back = || {
        for unit in 1..=4 {
            let attempt = fleet.attempt(unit, 1);
            for entry in fs::read_dir(&attempt).unwrap().flatten() {
                let name = entry.file_name().into_string().unwrap();
                let Some(hash) = name.strip_prefix("gathered-") else {
                    continue;
                };
                let sealed = attempt.join(format!("sealed-{hash}.sqlite.gz"));
                fs::copy(lab.join(format!("archive/{hash}.sqlite.gz")), sealed).unwrap();
                fs::remove_file(entry.path()).unwrap();
            }
        }
    };
    put_back();
    let gather = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_deltabench"));
        command.args(["fleet", "gather", "--lab"]).arg(&again);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        command
    };
    for try_number in 0..20_u64 {
        let mut child = gather().spawn().unwrap();
        // 0 to 76 ms, in no order.
        std::thread::sleep(Duration::from_millis(try_number * 28 % 80));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    for _ in 0..3 {
        assert!(gather().status().unwrap().success());
        assert_eq!(content(&again), whole);
        put_back();
    }
    // A damaged file, one of somebody else's, one of a later version: each by its name, and the rest goes on.
    let bad = fleet
        .attempt(1, 1)
        .join(format!("sealed-{}.sqlite.gz", "0".repeat(64)));
    fs::write(&bad, "no archive").unwrap();
    let newer = fleet.lab.path().join("newer");
    drop(Store::open(&newer).unwrap());
    let raw = Connection::open(newer.join(FILE_NAME)).unwrap();
    raw.execute("insert into migration values (999, 'future', 'x', '9')", [])
        .unwrap();
    raw.execute_batch("pragma wal_checkpoint(truncate)")
        .unwrap();
    drop(raw);
    let newer = sealed(
        &fs::read(newer.join(FILE_NAME)).unwrap(),
        &fleet.attempt(2, 1),
    );
    let foreign = sealed(b"a text file ".repeat(200).as_slice(), &fleet.attempt(3, 1));
    let output = gather().output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{said}");
    for (file, why) in [
        (&bad, "damaged"),
        (&newer, "newer deltabench"),
        (&foreign, "not a deltabench"),
    ] {
        let name = file.file_name().unwrap().to_str().unwrap();
        assert!(said.contains(name) && said.contains(why), "{name}: {said}");
        assert!(file.exists());
    }
    assert_eq!(content(&again), whole);
    assert!(
        spool
            .join("unit-004/attempt-1")
            .join(format!("gathered-{}", hash_of(&fleet, 4)))
            .exists()
    );
}

fn hash_of(fleet: &Fleet, unit: u32) -> String {
    let names = fs::read_dir(fleet.attempt(unit, 1)).unwrap().flatten();
    let mut names = names.map(|entry| entry.file_name().into_string().unwrap());
    let found = names.find_map(|name| name.strip_prefix("gathered-").map(str::to_owned));
    found.unwrap()
}

/// Packs bytes as a sealed file whose name is right.
fn sealed(bytes: &[u8], attempt: &Path) -> PathBuf {
    let plain = attempt.join("plain");
    fs::write(&plain, bytes).unwrap();
    let packed = Command::new("gzip")
        .args(["-n", "-c"])
        .arg(&plain)
        .output()
        .unwrap()
        .stdout;
    fs::write(&plain, &packed).unwrap();
    let hash = deltabench_acquire::sha256_of(&plain).unwrap();
    let sealed = attempt.join(format!("sealed-{hash}.sqlite.gz"));
    fs::rename(&plain, &sealed).unwrap();
    sealed
}

#[test]
fn killed_in_the_middle_it_goes_on_on_the_same_host_and_begins_anew_on_another() {
    for (second, occasions) in [("a", 2), ("b", 1)] {
        let fleet = Fleet::new();
        let begun = fleet.run("a", "ms=150,blocks=4", &["--detach"]);
        assert!(begun.status.success(), "{}", text(&begun.stderr));
        let (first, _) = fleet.first_lane();
        let lane = fleet.in_the_middle(first);
        let script = fs::read_to_string(fleet.lab.path().join("shared/jobs/job-1/script-process"));
        let script: u32 = script.unwrap().split(' ').next().unwrap().parse().unwrap();
        signal(script, "-KILL");
        signal(lane, "-KILL");
        wait_for("the lane is gone", || is_gone(lane));
        let output = fleet.on(second, &["resume"]).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
        fleet.assert_whole();
        assert_eq!(fleet.word(first, 2).as_deref(), Some("sealed"));
        let said = text(&output.stdout);
        assert!(said.contains("measured on "), "{said}");
        // The other host had all units that the first had not finished.
        assert!(!said.contains("a claim on hosts"), "{said}");
        let own = fleet.measured();
        let resumed: Vec<usize> = own
            .iter()
            .map(|run| run.4)
            .filter(|many| *many > 1)
            .collect();
        let expected: &[usize] = if occasions == 2 { &[2] } else { &[] };
        assert_eq!(resumed, expected, "on {second}");
    }
}

#[test]
fn an_attempt_that_lost_its_place_stops_and_nothing_is_measured_twice() {
    let fleet = Fleet::new();
    fleet.run("a", "ms=200,blocks=6", &["--detach"]);
    let (first, _) = fleet.first_lane();
    // What a scheduler does that believes the host lost. The lane there goes on when its place is taken,
    // however long that took.
    let lost = fleet.in_the_middle(first);
    signal(lost, "-STOP");
    let lanes = fleet.spool().join("lanes.json");
    let mut elsewhere = fleet.on("b", &["lane", lanes.to_str().unwrap(), "0"]);
    let elsewhere = elsewhere.stderr(Stdio::piped()).spawn().unwrap();
    wait_for("another attempt", || {
        json(&fleet.attempt(first, 2).join("owner.json")).map(drop)
    });
    signal(lost, "-CONT");
    let elsewhere = elsewhere.wait_with_output().unwrap();
    assert_eq!(
        elsewhere.status.code(),
        Some(0),
        "{}",
        text(&elsewhere.stderr)
    );
    assert_eq!(fleet.word(first, 1).as_deref(), Some("superseded"));
    assert_eq!(fleet.word(first, 2).as_deref(), Some("sealed"));
    let output = fleet.on("a", &["watch"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("superseded"));
    fleet.assert_whole();
}

#[test]
fn one_lane_at_a_time_on_a_host_and_a_cancelled_execution_leaves_nothing_running() {
    let fleet = Fleet::new();
    fleet.run("a", "ms=200,blocks=50", &["--detach"]);
    let (first, _) = fleet.first_lane();
    let lane = fleet.in_the_middle(first);
    let lanes = fleet.spool().join("lanes.json");
    let refused = fleet
        .on("a", &["lane", lanes.to_str().unwrap(), "1"])
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(75));
    let held = format!("process {lane}");
    assert!(
        text(&refused.stderr).contains(&held),
        "{}",
        text(&refused.stderr)
    );
    let mut watching = fleet.start("a", &["watch"]);
    let output = fleet.on("a", &["cancel"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    wait_for("the lane is gone", || is_gone(lane));
    assert_eq!(fleet.word(first, 1).as_deref(), Some("cancelled"));
    assert_eq!(
        watching.wait().unwrap().code(),
        Some(5),
        "nothing is measured"
    );
    assert!(
        fleet
            .measured()
            .iter()
            .all(|run| run.1 == RunState::Planned)
    );
}

#[test]
fn a_time_limit_ends_with_75_and_a_unit_that_fails_is_not_tried_again() {
    let fleet = Fleet::new();
    // Both lanes may want the host at once, after the first was handed in again.
    let file = fleet.lab.path().join("lab.toml");
    let patient = fs::read_to_string(&file).unwrap();
    let patient = patient.replace("wait_minutes = 0", "wait_minutes = 1");
    fs::write(&file, patient).unwrap();
    fleet.run("a", "ms=150,blocks=4,fail=4", &["--detach"]);
    let (first, _) = fleet.first_lane();
    signal(fleet.in_the_middle(first), "-USR1");
    wait_for("its end", || fleet.word(first, 1).map(drop));
    assert_eq!(fleet.word(first, 1).as_deref(), Some("interrupted"));
    let code = fleet.lab.path().join("shared/jobs/job-1/ended-0");
    wait_for("its code", || {
        fs::read_to_string(&code)
            .ok()
            .filter(|code| code == "75\n")
            .map(drop)
    });
    let output = fleet.on("a", &["resume"]).output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(
        said.contains("unit 4 is failed: this unit fails, as was asked"),
        "{said}"
    );
    assert!(!fleet.attempt(4, 2).exists());
    let again = fleet.on("a", &["resume", "last", "4"]).output().unwrap();
    assert_eq!(again.status.code(), Some(5));
    assert_eq!(
        fleet.word(4, 2).as_deref(),
        Some("failed"),
        "only if it is named"
    );
}

#[test]
fn a_lane_that_has_to_be_of_one_host_is_measured_again_elsewhere() {
    let fleet = Fleet::new();
    let file = fleet.lab.path().join("lab.toml");
    let asked = fs::read_to_string(&file).unwrap() + "on_loss = \"restart\"\n";
    fs::write(&file, asked).unwrap();
    // The second lane begins with unit 4.
    let output = fleet.run("a", "ms=1,unfit=3", &[]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert_eq!(fleet.word(4, 1).as_deref(), Some("sealed"));
    assert!(
        said.contains("unit 4 is sealed"),
        "not in the lab yet: {said}"
    );
    let other = fleet.on("b", &["resume"]).output().unwrap();
    assert_eq!(other.status.code(), Some(1), "{}", text(&other.stderr));
    let report = text(&other.stdout);
    assert!(!report.contains("had to change its host"), "{report}");
    let store = fleet.store();
    let hosts: Vec<String> = store
        .units(&fleet.spool_name())
        .unwrap()
        .iter()
        .map(|unit| store.occasions(&unit.run).unwrap().remove(0).host.uid)
        .collect();
    assert_eq!(hosts, ["a", "a", "b", "b"]);
    // What the first host had measured is kept, and is no part of the execution.
    assert_eq!(fleet.measured().len(), 5);
    let unit = store.units(&fleet.spool_name()).unwrap()[3].run.clone();
    let first = store.plan(&format!("{unit}~2")).unwrap();
    assert!(first.experiment.is_none());
}

/// As a command leaves it that is killed when the engine has its jobs and the answers are not written.
fn forget_answers(fleet: &Fleet) {
    for entry in fs::read_dir(fleet.spool().join("jobs")).unwrap().flatten() {
        let mut job = json(&entry.path()).unwrap();
        job["job"] = Value::Null;
        fs::write(entry.path(), job.to_string()).unwrap();
    }
}

#[test]
fn jobs_of_a_killed_submitter_are_found_by_their_names_and_not_handed_in_again() {
    let fleet = Fleet::new();
    fleet.run("a", "ms=100,blocks=3", &["--detach"]);
    forget_answers(&fleet);
    // Killed before the job that gathers.
    let gather = fleet.spool().join("jobs/0002.json");
    let mut intended = json(&gather).unwrap();
    intended["name"] = "dlb-nobody-has-it".into();
    fs::write(&gather, intended.to_string()).unwrap();
    let both: Vec<Child> = (0..2)
        .map(|_| {
            let mut command = fleet.on("a", &["resume"]);
            command.stdout(Stdio::null()).stderr(Stdio::piped());
            command.spawn().unwrap()
        })
        .collect();
    let said: Vec<String> = both
        .into_iter()
        .map(|child| {
            let output = child.wait_with_output().unwrap();
            assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
            text(&output.stderr)
        })
        .collect();
    let count = |words: &str| said.iter().filter(|said| said.contains(words)).count();
    assert_eq!(count("found job job-1"), 1, "{said:?}");
    assert_eq!(count("no lane has to be handed in"), 2, "{said:?}");
    let jobs = fs::read_dir(fleet.lab.path().join("shared/jobs")).unwrap();
    // The lanes, the job that gathers, and that one again in place of the one that was not found.
    assert_eq!(jobs.count(), 3);
    let numbers: Vec<bool> = (1..=3)
        .map(|number| {
            let job = json(&fleet.spool().join(format!("jobs/{number:04}.json"))).unwrap();
            job["given_up"].as_bool().unwrap()
        })
        .collect();
    assert_eq!(numbers, [false, true, false]);
    for unit in 1..=4 {
        assert!(!fleet.attempt(unit, 2).exists(), "unit {unit}");
    }
    fleet.assert_whole();
}

#[test]
fn a_damaged_file_is_kept_aside_and_its_unit_measured_again() {
    let fleet = Fleet::new();
    fleet.run("a", "ms=1,unfit=3", &[]);
    // Sealed and not gathered yet: the disk lost a byte of one.
    let hash = hash_of(&fleet, 1);
    let attempt = fleet.attempt(1, 1);
    fs::remove_file(attempt.join(format!("gathered-{hash}"))).unwrap();
    let sealed = attempt.join(format!("sealed-{hash}.sqlite.gz"));
    fs::write(&sealed, "damaged").unwrap();
    let watched = fleet.on("a", &["watch"]).output().unwrap();
    let said = text(&watched.stderr);
    assert_eq!(watched.status.code(), Some(5), "{said}");
    assert!(
        said.contains("is damaged") && said.contains("measures that unit again"),
        "{said}"
    );
    assert!(sealed.exists());
    // The run has its measurements already: the second attempt is complete, too, and stands beside.
    let output = fleet.on("b", &["resume"]).output().unwrap();
    let said = text(&output.stderr);
    assert!(
        attempt
            .join(format!("damaged-sealed-{hash}.sqlite.gz"))
            .exists(),
        "{said}"
    );
    assert_eq!(fleet.word(1, 2).as_deref(), Some("sealed"), "{said}");
    let run = fleet.store().units(&fleet.spool_name()).unwrap()[0]
        .run
        .clone();
    let second = fleet.store().plan(&format!("{run}~2")).unwrap();
    assert!(
        second.experiment.is_none(),
        "it is no part of the execution"
    );
    assert_eq!(fleet.measured().len(), 5);
}

#[test]
fn what_another_lab_has_taken_in_is_not_done_for_this_one() {
    let fleet = Fleet::new();
    fleet.run("a", "ms=1", &[]);
    let from = fleet.store();
    let execution = from.executions().unwrap().pop().unwrap();
    let units = from.units(&execution.name).unwrap();
    let second = fleet.lab.path().join("second");
    let mut store = Store::open(&second).unwrap();
    for unit in &units {
        let plan = from.plan(&unit.run).unwrap();
        store
            .create_run(&unit.run, &plan, RunState::Planned, 0)
            .unwrap();
    }
    store.add_execution(&execution, &units).unwrap();
    drop(store);
    let mut command = Command::new(env!("CARGO_BIN_EXE_deltabench"));
    command.args(["fleet", "watch", "--lab"]).arg(&second);
    let output = command.output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{said}");
    let why = "unit 1 is sealed: another lab has taken it in, and this one has not";
    assert!(said.contains(why), "{said}");
    // The job that gathers may run on a host where the path of the lab is no lab, or another one.
    let lab = fleet.lab.path().join("lab");
    let spool = execution.spool.join("lanes.json");
    for other in [None, Some(())] {
        if other.is_some() {
            drop(Store::open(&lab).unwrap());
        } else {
            drop(fs::rename(&lab, fleet.lab.path().join("away")));
        }
        let after = fleet.on("b", &["after", spool.to_str().unwrap(), "0"]);
        let output = { after }.output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(
            said.contains("this host does not see the lab of study-"),
            "{said}"
        );
        assert_eq!(lab.exists(), other.is_some());
    }
}

#[test]
fn what_the_shared_directory_does_not_take_stays_on_the_host_and_is_sealed_later() {
    let fleet = Fleet::new();
    fleet.run("a", "ms=150,blocks=3", &["--detach"]);
    let (first, _) = fleet.first_lane();
    fleet.in_the_middle(first);
    // Not even root can write where nothing is.
    let attempt = fleet.attempt(first, 1);
    let away = fleet.lab.path().join("away");
    fs::rename(attempt.parent().unwrap(), &away).unwrap();
    let code = fleet.lab.path().join("shared/jobs/job-1/ended-0");
    wait_for("its code", || fs::read_to_string(&code).ok().map(drop));
    assert_eq!(fs::read_to_string(&code).unwrap(), "73\n");
    fs::rename(&away, attempt.parent().unwrap()).unwrap();
    // The other lane goes on.
    let watched = fleet.on("a", &["watch"]).output().unwrap();
    assert_eq!(watched.status.code(), Some(5));
    let output = fleet.on("a", &["resume"]).output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_eq!(fleet.word(first, 2).as_deref(), Some("sealed"));
    // One occasion: nothing was measured a second time.
    assert!(fleet.measured().iter().all(|run| run.4 == 1));
    fleet.assert_whole();
}

#[test]
fn who_watches_in_the_background_goes_on_when_what_was_in_the_way_is_gone() {
    let fleet = Fleet::new();
    fleet.run("a", "ms=20", &["--detach"]);
    // As on a full disk: the lab takes nothing.
    let in_the_way = fleet.lab.path().join("lab/gather.lock");
    fs::create_dir(&in_the_way).unwrap();
    let begun = fleet.on("a", &["watch", "--detach"]).output().unwrap();
    assert_eq!(begun.status.code(), Some(0), "{}", text(&begun.stderr));
    let log = fleet.spool().join("log/watch.txt");
    let said = || fs::read_to_string(&log).unwrap_or_default();
    wait_for("its word", || {
        said().contains("it is tried again").then_some(())
    });
    fs::remove_dir(&in_the_way).unwrap();
    wait_for("its report", || said().contains("2 slower").then_some(()));
    fleet.assert_whole();
}

#[test]
fn while_a_lane_has_the_machine_nothing_else_measures_there() {
    let lab = Lab::new();
    fs::create_dir_all(lab.state()).unwrap();
    let lane = fs::File::create(lab.state().join("host.lock")).unwrap();
    lane.lock().unwrap();
    let compare = ["compare", "postgres:18", "postgres:18", "--same-target"];
    let output = lab.run(&[&compare[..], &TINY].concat());
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("a fleet measures on this host"), "{said}");
    let store = Store::open_existing(&lab.path().join("lab")).unwrap();
    assert!(store.runs().unwrap().is_empty(), "nothing was begun");
}
