//! The Insert Benchmark on real servers: whole passes, interrupted ones, and a server that is lost.

use crate::lab::{Lab, installations, plan};
use deltabench_kinds::insert::setup::cells;
use deltabench_kinds::insert::{StepRecord, steps};
use deltabench_kinds::run_half;
use deltabench_model::fact::Settled;
use deltabench_model::installation::Installation;
use deltabench_model::plan::{Plan, ServerId};
use deltabench_model::problem::Problem;
use deltabench_model::work::Work;
use deltabench_model::work::insert::{InsertRole, InsertSetup};
use deltabench_run::clock::{Clock, MachineClock};
use deltabench_run::events::{BlockProgress, Observer};
use deltabench_run::pilot::Pilot;
use deltabench_run::schedule::pass_order;
use deltabench_run::session::{Session, SessionEnd};
use deltabench_store::{RunState, Store};
use deltabench_testkit::small_insert;
use deltabench_workload::Library;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

fn small(installations: &[&Installation], blocks: u32) -> Plan {
    let mut plan = plan(installations, Vec::new(), 2000);
    let setup = InsertSetup {
        clients: 2,
        rows: 2000,
        write_rows: 1000,
        settle_seconds: Some(1),
        ..small_insert()
    };
    plan.cells = cells(&setup);
    plan.timing.blocks = blocks;
    plan.work = Work::Insert(setup);
    plan
}

/// Hears of steps, and kills a server after a given number of them.
#[derive(Default)]
struct Ear {
    /// Steps that have ended.
    steps: usize,
    notes: Vec<String>,
    blocks: Vec<BlockProgress>,
    kill_after: Option<(usize, String)>,
    /// Where servers live, to look at the running one after the first step of a pass.
    watched: Option<PathBuf>,
    /// Block, server, and the numbers of its databases.
    databases: Vec<(u32, String, Vec<u64>)>,
}

impl Observer for Ear {
    fn note(&mut self, text: &str) {
        self.notes.push(text.to_owned());
        // `pass 1/2, base: l.i0  …`
        let step = text.strip_prefix("pass ").and_then(|text| {
            let (pass, rest) = text.split_once('/')?;
            let (server, step) = rest.split_once(", ")?.1.split_once(": ")?;
            Some((pass.parse::<u32>().ok()?, server, step))
        });
        if let Some((pass, server, step)) = step {
            self.step(pass - 1, server, step);
        }
    }
    fn visit(&mut self, _: u32, done: u32, planned: u32) {
        assert!(done <= planned);
    }
    fn pilot(&mut self, _: &Pilot) {}
    fn block(&mut self, progress: &BlockProgress) {
        self.blocks.push(progress.clone());
    }
}

impl Ear {
    fn step(&mut self, block: u32, server: &str, step: &str) {
        self.steps += 1;
        if let Some(directory) = self.watched.as_ref().filter(|_| step.starts_with("l.i0 ")) {
            let found = databases_below(directory);
            self.databases.push((block, server.to_owned(), found));
        }
        if let Some((after, directory)) = &self.kill_after
            && self.steps == *after
        {
            kill_server_below(directory);
        }
    }
}

/// Directories of the databases of the server that runs below this directory.
fn databases_below(directory: &Path) -> Vec<u64> {
    let entries = |directory: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    };
    let clusters = entries(directory)
        .into_iter()
        .flat_map(|run| entries(&run.join("clusters")));
    let running = clusters
        .map(|cluster| cluster.join("data"))
        .find(|data| data.join("postmaster.pid").exists())
        .unwrap();
    let mut numbers: Vec<u64> = entries(&running.join("base"))
        .iter()
        .filter_map(|path| path.file_name()?.to_str()?.parse().ok())
        .collect();
    numbers.sort_unstable();
    numbers
}

/// Kills the main process of the server whose data is below this directory.
fn kill_server_below(directory: &str) {
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(cwd) = std::fs::read_link(entry.path().join("cwd")) else {
            continue;
        };
        let main = cwd.join("postmaster.pid");
        let Ok(text) = std::fs::read_to_string(main) else {
            continue;
        };
        let pid = text.lines().next().unwrap_or_default();
        let own = entry.file_name().to_string_lossy() == pid;
        if own && cwd.starts_with(directory) {
            assert!(
                Command::new("kill")
                    .args(["-9", pid])
                    .status()
                    .unwrap()
                    .success()
            );
        }
    }
}

fn go_on(plan: &Plan, lab: &Lab, store: &mut Store, ear: &mut Ear) -> Result<SessionEnd, Problem> {
    let clock = MachineClock::begin();
    Session {
        plan,
        benchmark: run_half(&plan.work),
        run: "r",
        store,
        host: &lab.host,
        library: &Library::builtin().unwrap(),
        pilot: true,
        interrupted: &AtomicBool::new(false),
        observer: ear,
        clock: &clock,
        began: clock.now(),
    }
    .execute()
}

fn store_of(plan: &Plan, directory: &tempfile::TempDir) -> Store {
    let mut store = Store::open(directory.path()).unwrap();
    store.create_run("r", plan, RunState::Running, 0).unwrap();
    store
}

fn steps_of(store: &Store) -> Vec<StepRecord> {
    steps(&store.records("r").unwrap()).unwrap()
}

fn of(steps: &[StepRecord], block: u32, server: ServerId) -> Vec<&StepRecord> {
    let mine = |step: &&StepRecord| (step.block, step.server) == (block, server);
    steps.iter().filter(mine).collect()
}

#[test]
fn every_version_has_its_pass_in_the_drawn_order_and_all_that_a_step_is_about_is_kept() {
    let lab = Lab::new();
    let installations = installations();
    let installed: Vec<&Installation> = installations.iter().collect();
    let plan = small(&installed, 2);
    let directory = tempfile::tempdir().unwrap();
    let mut store = store_of(&plan, &directory);
    let mut ear = Ear {
        watched: Some(lab.host.workspaces.clone()),
        ..Ear::default()
    };
    let end = go_on(&plan, &lab, &mut store, &mut ear);
    assert_eq!(end, Ok(SessionEnd::Finished), "{:?}", ear.notes);
    assert!(lab.is_empty());
    assert_eq!(ear.databases.len(), 2 * installed.len());
    for (block, server, numbers) in &ear.databases {
        // A database that is made anew in a used cluster has a number of its own.
        let first = ear.databases.iter().find(|(_, other, _)| other == server);
        let (.., first) = first.unwrap();
        assert_eq!(
            numbers, first,
            "pass {block} on {server} is on a new cluster"
        );
    }
    let steps = steps_of(&store);
    assert_eq!(steps.len(), 2 * installed.len() * plan.cells.len());
    assert!(store.slices("r").unwrap().is_empty());
    for block in 0..2 {
        let mut seen: Vec<ServerId> = Vec::new();
        for step in steps.iter().filter(|step| step.block == block) {
            if seen.last() != Some(&step.server) {
                seen.push(step.server);
            }
            assert_eq!(step.void, None, "{step:?}");
        }
        assert_eq!(seen, pass_order(&plan, block), "one after another");
    }
    for (server, installation) in (0..).zip(&installed) {
        let pass = of(&steps, 0, ServerId(server));
        let names: Vec<&str> = pass
            .iter()
            .map(|step| plan.cells[step.cell.index()].workload.as_str())
            .collect();
        assert_eq!(names, ["l.i0", "l.x", "l.i1", "l.i2", "qr100", "qp100"]);
        let rows = |nth: usize, role| pass[nth].role(role).map(|tally| tally.rows);
        assert_eq!(rows(0, InsertRole::Insert), Some(4000));
        assert_eq!(rows(2, InsertRole::Insert), Some(1600));
        assert_eq!(rows(2, InsertRole::Delete), Some(1600));
        assert_eq!(rows(4, InsertRole::Insert), Some(200));
        assert!(pass[5].operations > 0 && pass[5].server_cpu_ns > Some(0));
        for (nth, step) in pass.iter().enumerate() {
            let has = |key: &str| {
                let found = step.values.get(key);
                assert!(
                    found.is_some(),
                    "{key} of {nth} on {}",
                    installation.resolved
                );
                *found.unwrap()
            };
            for key in [
                "table_bytes",
                "index_bytes",
                "wal_dir_bytes",
                "largest_rss_bytes",
            ] {
                assert!(
                    has(key) > 0.0,
                    "{key} of step {nth} on {}",
                    installation.resolved
                );
            }
            assert!(has("data_dir_bytes") > has("wal_dir_bytes"));
            for key in [
                "checkpoints",
                "autovacuums",
                "wal_lsn_bytes",
                "insert_cpu_ns",
                "dead_rows",
                "look_ups",
                "look_up_max_ns",
                "long_transactions",
            ] {
                has(key);
            }
            assert!(has("short_deletes").abs() < 0.5);
        }
        assert!(pass[2].values["look_ups"] > 0.0 && pass[2].values["look_up_ns"] > 0.0);
        assert!(pass[2].values["delete_cpu_ns"] > 0.0 && pass[4].values["query_cpu_ns"] > 0.0);
        // Both passes began with an empty database.
        let again = of(&steps, 1, ServerId(server));
        assert_eq!(
            again[0].role(InsertRole::Insert).map(|tally| tally.rows),
            Some(4000)
        );
    }
    let settled = store.facts::<Settled>("r").unwrap();
    assert_eq!(settled.len(), 2 * installed.len());
    let kinds: Vec<String> = store
        .marks("r")
        .unwrap()
        .into_iter()
        .map(|mark| mark.kind)
        .collect();
    assert!(kinds.contains(&"checkpoint".to_owned()), "{kinds:?}");
    assert_eq!(ear.steps, steps.len());
    assert_eq!(ear.blocks.len(), 2);
    assert!(ear.blocks[1].comparison.is_some() && ear.blocks[1].open_cells == 0);
}

#[test]
fn a_server_that_is_killed_loses_its_pass_which_is_made_up_for_after_the_last_block() {
    let lab = Lab::new();
    let installation = &installations()[0];
    let plan = small(&[installation; 2], 1);
    let directory = tempfile::tempdir().unwrap();
    let mut store = store_of(&plan, &directory);
    let mut ear = Ear {
        kill_after: Some((3, lab.host.workspaces.display().to_string())),
        ..Ear::default()
    };
    let end = go_on(&plan, &lab, &mut store, &mut ear);
    assert_eq!(end, Ok(SessionEnd::Finished), "{:?}", ear.notes);
    let steps = steps_of(&store);
    let order = pass_order(&plan, 0);
    for server in order {
        let pass = of(&steps, 0, server);
        assert_eq!(pass.len(), plan.cells.len());
        assert!(pass.iter().all(|step| step.void.is_none()), "{pass:?}");
    }
    let [lost, after] = ear.blocks.as_slice() else {
        panic!("{:?}", ear.blocks);
    };
    assert!(lost.open_cells > 0 && lost.remaining_seconds > 0.0);
    assert_eq!((after.done, after.open_cells), (1, 0));
    let findings = store.findings("r").unwrap();
    assert!(
        findings
            .iter()
            .any(|finding| finding.text.contains("was lost")),
        "{findings:?}"
    );
    assert!(lab.is_empty());
}
