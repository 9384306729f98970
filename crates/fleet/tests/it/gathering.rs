//! Gathering many units: the time and the memory that it takes, and that all of it is there.

use deltabench_fleet::gather::{Gathered, gather};
use deltabench_fleet::lanes::{Lane, Lanes, Unit};
use deltabench_fleet::seal::seal;
use deltabench_fleet::spool::{Attempt, End, EndWord, HostName, Owner, Spool};
use deltabench_model::fact::MachineName;
use deltabench_model::plan::{CellId, Plan, ServerId};
use deltabench_model::slice::Slice;
use deltabench_store::{Execution, FILE_NAME, RunState, Store, UnitRow};
use deltabench_testkit::{labs, small_run};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Slices of a unit: three servers, three cells, eight blocks, four rounds.
const SLICES: usize = 288;

/// What acceptance 8 of the design allows for 5,000 units.
const MANY: u32 = 5_000;
const LONGEST: Duration = Duration::from_secs(20 * 60);
const MOST_MEMORY_KIB: u64 = 200 * 1024;

fn unit(number: u32) -> Unit {
    Unit {
        unit: number,
        run: labs::run_name(number),
        plan: labs::plan(number),
        seconds: 60.0,
    }
}

fn lanes(units: u32) -> Lanes {
    let units: Vec<Unit> = (1..=units).map(unit).collect();
    let lane = |unit: &Unit| Lane {
        lane: unit.unit - 1,
        units: vec![unit.unit],
        minutes: 31,
        one_host: false,
    };
    Lanes {
        execution: "many".to_owned(),
        lanes: units.iter().map(lane).collect(),
        units,
        ..Lanes::default()
    }
}

/// What a unit measures.
#[derive(Clone, Copy, PartialEq)]
enum Size {
    /// [`SLICES`] without histograms, to see what each file costs.
    Small,
    /// About as much as a quick run of 8.5 minutes: 5,796 slices with histograms, 4 to 5 MB.
    Quick,
}

/// Slices of a quick run.
fn keep_quick(store: &mut Store, run: &str, seed: u32) {
    let mut drawn = seed;
    let mut next = || {
        // Numbers without order (Numerical Recipes, "quick and dirty"), so that packing has work to do.
        drawn = drawn.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        drawn >> 24
    };
    for block in 0..14 {
        for cell in (0..3).map(CellId) {
            store.begin_visit(run, cell, block).unwrap();
            for round in 0..46 {
                for position in 0..3 {
                    let histogram = (0..478).map(|at| match at % 3 {
                        0 => u8::try_from(next()).unwrap(),
                        _ => 0,
                    });
                    let latency_histogram = histogram.collect();
                    let slice = Slice {
                        server: ServerId(position),
                        cell,
                        block,
                        round,
                        position,
                        started_ns: 1_763_721_780_000_000_000 + u64::from(round),
                        duration_ns: 50_000_000 + u64::from(next()),
                        operations: 1_000,
                        rows: 1_000,
                        latency_histogram,
                        ..small_run::bare_slice()
                    };
                    store.append(run, &slice).unwrap();
                }
            }
            store.commit_visit(run, cell, block).unwrap();
        }
    }
}

/// Seals a lab with one run for each unit, as hosts do.
fn measure(place: &Path, (spool, lanes): (&Spool, &Lanes), size: Size) {
    // Hosts have disks of their own: making all this is no part of gathering.
    let memory = Path::new("/dev/shm");
    let own = match memory.is_dir() {
        true => tempfile::tempdir_in(memory),
        false => tempfile::tempdir_in(place),
    };
    let own = own.unwrap();
    let empty = own.path().join("empty");
    drop(Store::open(&empty).unwrap());
    let local = own.path().join("local");
    for unit in &lanes.units {
        fs::create_dir(&local).unwrap();
        // Making the schema takes longer than all that follows.
        fs::copy(empty.join(FILE_NAME), local.join(FILE_NAME)).unwrap();
        let mut store = Store::open(&local).unwrap();
        let at = 1_793_491_200_000 + i64::from(unit.unit);
        labs::add(&mut store, (&unit.run, &unit.plan), at);
        match size {
            Size::Small => small_run::keep(&mut store, &unit.run, [0.95, 1.0, 1.0]),
            Size::Quick => keep_quick(&mut store, &unit.run, unit.unit),
        }
        let finished = store.finish_run(&unit.run, RunState::Finished, at + 1);
        finished.unwrap();
        let owner = Owner {
            host: HostName {
                uid: format!("host {}", unit.unit % 50),
                node: format!("n{}", unit.unit % 50),
            },
            pid: 1,
            process_start: 1,
            boot_id: None,
            lane: unit.unit - 1,
            at_unix_ms: at,
        };
        let attempt = spool.claim(unit.unit, &owner).unwrap();
        seal(&store, &local, &attempt).unwrap();
        let end = End {
            word: EndWord::Sealed,
            text: String::new(),
            at_unix_ms: at + 2,
        };
        attempt.set_end(&end).unwrap();
        drop(store);
        fs::remove_dir_all(&local).unwrap();
    }
}

/// A lab that has planned all units.
fn planned(lab: &Path, lanes: &Lanes) -> Store {
    let mut store = Store::open(lab).unwrap();
    let runs: Vec<(&str, &Plan)> = { lanes.units.iter() }
        .map(|unit| (unit.run.as_str(), &unit.plan))
        .collect();
    store.create_runs(&runs, RunState::Planned, 1).unwrap();
    let execution = Execution {
        name: lanes.execution.clone(),
        spool: PathBuf::from("/spool"),
        binary_sha256: String::new(),
        started_unix_ms: 1,
    };
    let row = |unit: &Unit| UnitRow {
        unit: unit.unit,
        lane: unit.unit - 1,
        run: unit.run.clone(),
    };
    let rows: Vec<UnitRow> = lanes.units.iter().map(row).collect();
    store.add_execution(&execution, &rows).unwrap();
    store
}

/// The most memory that this process has had since the last call, in KiB.
fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line
        .unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap();
    // 5: the peak is what it is now (proc(5), clear_refs).
    fs::write("/proc/self/clear_refs", "5").unwrap();
    kib
}

/// What gathering has cost.
struct Cost {
    first: Duration,
    again: Duration,
    peak_kib: u64,
    store_bytes: u64,
}

fn gathered(units: u32, size: Size) -> Cost {
    let place = tempfile::tempdir().unwrap();
    let spool = Spool::of(place.path(), "many");
    let lanes = lanes(units);
    spool.create(&lanes).unwrap();
    measure(place.path(), (&spool, &lanes), size);
    let lab = place.path().join("lab");
    let mut store = planned(&lab, &lanes);
    peak_kib();
    let began = Instant::now();
    let taken = gather(&mut store, &lab, (&spool, &lanes), 5).unwrap();
    let first = began.elapsed();
    let peak_kib = peak_kib();
    assert_eq!(taken.units, (1..=units).collect::<Vec<u32>>());
    assert!(taken.beside.is_empty() && taken.refused.is_empty());
    let began = Instant::now();
    let taken = gather(&mut store, &lab, (&spool, &lanes), 6).unwrap();
    let again = began.elapsed();
    assert!(taken.units.is_empty() && taken.beside.is_empty());
    let runs = store.runs().unwrap();
    assert_eq!(runs.len(), usize::try_from(units).unwrap());
    let wanted = match size {
        Size::Small => SLICES,
        Size::Quick => 14 * 3 * 46 * 3,
    };
    for run in runs.iter().step_by(usize::max(1, runs.len() / 20)) {
        let slices = store.slices(&run.run).unwrap().len();
        assert_eq!((run.state, slices), (RunState::Finished, wanted));
    }
    assert_eq!(store.unit_events("many").unwrap().len(), runs.len());
    Cost {
        first,
        again,
        peak_kib,
        store_bytes: fs::metadata(store.path()).unwrap().len(),
    }
}

#[test]
fn many_units_are_gathered_and_the_next_time_costs_nothing() {
    let cost = gathered(25, Size::Small);
    assert!(cost.peak_kib < MOST_MEMORY_KIB, "{} KiB", cost.peak_kib);
}

/// Acceptance 8. In a release build it takes minutes, most of them for making what is gathered:
/// `cargo test --release -p deltabench-fleet --test it five_thousand -- --ignored --nocapture`.
#[test]
#[ignore = "takes minutes"]
fn five_thousand_units_are_gathered_within_twenty_minutes_and_200_mib() {
    let few = MANY / 100;
    for (units, size) in [
        (few, Size::Quick),
        (MANY / 10, Size::Small),
        (MANY, Size::Small),
    ] {
        let cost = gathered(units, size);
        eprintln!(
            "{units} units: {:.1} s, the next time {:.2} s, {} MiB of memory, lab {} MiB",
            cost.first.as_secs_f64(),
            cost.again.as_secs_f64(),
            cost.peak_kib / 1024,
            cost.store_bytes >> 20
        );
        assert!(cost.first < LONGEST, "{:?}", cost.first);
        assert!(cost.peak_kib < MOST_MEMORY_KIB, "{} KiB", cost.peak_kib);
    }
}

/// An execution of two units in one lane, which has to be of one host.
struct OneHost {
    place: tempfile::TempDir,
    lanes: Lanes,
    spool: Spool,
    store: Store,
}

impl OneHost {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let mut lanes = lanes(2);
        lanes.lanes = vec![Lane {
            lane: 0,
            units: vec![1, 2],
            minutes: 31,
            one_host: true,
        }];
        let spool = Spool::of(place.path(), "many");
        spool.create(&lanes).unwrap();
        let store = planned(&place.path().join("lab"), &lanes);
        Self {
            place,
            lanes,
            spool,
            store,
        }
    }

    /// Measures a unit on a host.
    fn measure(&self, node: &str, unit: u32) -> Attempt {
        let local = self.place.path().join(format!("{node}-{unit}"));
        let unit = self.lanes.unit(unit).unwrap();
        let mut own = Store::open(&local).unwrap();
        own.create_run(&unit.run, &unit.plan, RunState::Running, 1)
            .unwrap();
        let machine = MachineName(node.to_owned());
        own.add_fact(&unit.run, (None, None), &machine).unwrap();
        own.finish_run(&unit.run, RunState::Finished, 2).unwrap();
        let owner = Owner {
            host: HostName {
                uid: node.to_owned(),
                node: node.to_owned(),
            },
            pid: 1,
            process_start: 1,
            boot_id: None,
            lane: 0,
            at_unix_ms: 1,
        };
        let attempt = self.spool.claim(unit.unit, &owner).unwrap();
        seal(&own, &local, &attempt).unwrap();
        let end = End {
            word: EndWord::Sealed,
            text: String::new(),
            at_unix_ms: 3,
        };
        attempt.set_end(&end).unwrap();
        attempt
    }

    fn gather(&mut self) -> Gathered {
        let lab = self.place.path().join("lab");
        gather(&mut self.store, &lab, (&self.spool, &self.lanes), 5).unwrap()
    }

    /// The hosts of the runs that count.
    fn hosts(&self) -> Vec<String> {
        let host = |unit: &Unit| {
            let found = self.store.last_fact::<MachineName>(&unit.run, None);
            found.unwrap().map_or_else(String::new, |machine| machine.0)
        };
        self.lanes.units.iter().map(host).collect()
    }
}

#[test]
fn a_cancelled_lane_that_has_to_be_of_one_host_may_go_on_on_another() {
    let mut study = OneHost::new();
    let first = study.measure("a", 1);
    study.spool.cancel().unwrap();
    assert_eq!(study.gather(), Gathered::default());
    assert_eq!(first.sealed().len(), 1, "what is measured stays");
    study.spool.revive().unwrap();
    study.measure("b", 1);
    study.measure("b", 2);
    let taken = study.gather();
    assert_eq!(taken.units, [1, 2]);
    assert_eq!(taken.beside.len(), 1);
    assert_eq!(study.hosts(), ["b", "b"]);
}

#[test]
fn what_was_merged_beside_by_a_killed_process_is_not_taken_for_what_counts() {
    let mut study = OneHost::new();
    let beside = study.measure("a", 1);
    study.measure("b", 1);
    study.measure("b", 2);
    let sealed = beside.sealed().remove(0);
    let content = fs::read(&sealed).unwrap();
    study.gather();
    assert!(beside.is_complete() && beside.gathered().is_none());
    // As a process leaves it that is killed when the store has the file, before the mark.
    let files = fs::read_dir(beside.directory()).unwrap().flatten();
    let is_mark = |name: &str| name.starts_with("beside-");
    let mark = { files }
        .find(|file| is_mark(file.file_name().to_str().unwrap()))
        .unwrap();
    fs::remove_file(mark.path()).unwrap();
    fs::write(&sealed, content).unwrap();
    assert!(study.gather().units.is_empty() && !sealed.exists());
    assert!(beside.is_complete() && beside.gathered().is_none());
}
