//! The loop over all blocks, without servers: what is measured, in which order, and what is left when servers
//! are lost, time is up, or the process is killed.

use crate::fake_kind::{FakeKind, Heard, Killed, Life, Phase};
use crate::lab::{Lab, cell, plan};
use deltabench_model::fact::TimeUp;
use deltabench_model::installation::{Engine, Installation, Origin};
use deltabench_model::plan::{CellId, DataState, Plan, ServerId, Stopping};
use deltabench_model::problem::Problem;
use deltabench_run::clock::Clock;
use deltabench_run::session::{Session, SessionEnd};
use deltabench_store::{RunState, Store};
use deltabench_workload::Library;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn installation(name: &str) -> Installation {
    Installation {
        asked: name.to_owned(),
        resolved: name.to_owned(),
        origin: Origin::Path,
        bin_dir: name.into(),
        version_num: 180_000,
        version: "18".to_owned(),
        binary_sha256: name.to_owned(),
        build: None,
        recipe: None,
        remote: None,
        engine: Engine::Postgres,
    }
}

/// A plan of so many cells and blocks, which end early if `looks` are given.
fn plan_of(cells: u32, blocks: u32, looks: &[u32]) -> Plan {
    let (a, b) = (installation("a"), installation("b"));
    let like = cell("point-query", false, DataState::Fresh);
    let cells = (1..=cells).map(|clients| deltabench_model::plan::Cell {
        clients,
        ..like.clone()
    });
    let mut plan = plan(&[&a, &a, &b], cells.collect(), 1000);
    plan.timing.blocks = blocks;
    plan.stopping = match looks {
        [] => Stopping::Fixed,
        looks => Stopping::Sequential {
            looks: looks.to_vec(),
        },
    };
    plan
}

fn life(ratio: f64) -> Life {
    Life {
        visit_seconds: 5.0,
        ratio,
        ..Life::default()
    }
}

/// How a session ended.
#[derive(Debug, PartialEq)]
enum End {
    Of(Result<SessionEnd, Problem>),
    Killed,
}

const FINISHED: End = End::Of(Ok(SessionEnd::Finished));

/// A run in a store of its own, which outlives its sessions.
struct Run {
    plan: Plan,
    lab: Lab,
    directory: tempfile::TempDir,
    stop: Arc<AtomicBool>,
    heard: Heard,
}

impl Run {
    fn new(plan: Plan) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut store = Store::open(directory.path()).unwrap();
        store.create_run("r", &plan, RunState::Running, 0).unwrap();
        Self {
            plan,
            lab: Lab::new(),
            directory,
            stop: Arc::default(),
            heard: Heard::default(),
        }
    }

    fn session(&mut self, kind: &FakeKind) -> End {
        let mut store = open(self.directory.path());
        let library = Library::builtin().unwrap();
        let mut session = Session {
            plan: &self.plan,
            benchmark: kind,
            run: "r",
            store: &mut store,
            host: &self.lab.host,
            library: &library,
            pilot: false,
            interrupted: &self.stop,
            observer: &mut self.heard,
            clock: kind,
            began: kind.now(),
        };
        match catch_unwind(AssertUnwindSafe(|| session.execute())) {
            Ok(end) => End::Of(end),
            Err(why) if why.is::<Killed>() => End::Killed,
            Err(why) => std::panic::resume_unwind(why),
        }
    }

    /// Everything that is measured: places with the figures of their slices, in order.
    fn measured(&self) -> Vec<(u32, CellId, u32, ServerId, u64, bool)> {
        let slices = open(self.directory.path()).slices("r").unwrap();
        slices
            .iter()
            .map(|slice| {
                let (round, void) = (slice.round, slice.void.is_some());
                (
                    slice.block,
                    slice.cell,
                    round,
                    slice.server,
                    slice.duration_ns,
                    void,
                )
            })
            .collect()
    }

    fn visits(&self) -> BTreeSet<(u32, CellId)> {
        let visits = open(self.directory.path()).completed_visits("r").unwrap();
        let once: BTreeSet<_> = visits.iter().copied().collect();
        assert_eq!(once.len(), visits.len(), "no visit is stored twice");
        once
    }

    /// The blocks after which its time was up.
    fn time_up(&self) -> Vec<u32> {
        let facts = open(self.directory.path()).facts::<TimeUp>("r").unwrap();
        facts.into_iter().map(|recorded| recorded.fact.0).collect()
    }
}

fn open(directory: &Path) -> Store {
    Store::open(directory).unwrap()
}

#[test]
fn phases_come_in_their_order_and_every_open_cell_of_every_block_once() {
    let mut run = Run::new(plan_of(2, 2, &[]));
    let kind = FakeKind::new(life(1.0));
    assert_eq!(run.session(&kind), FINISHED);
    let told = kind.life.lock().unwrap().told.clone();
    let block = |block| {
        let visit = |cell| {
            let visit = format!("Visit {block}.{cell}");
            [visit, "Slice".into(), "Keep".into(), "Kept".into()]
        };
        let start = [format!("Start {block}")];
        let visits = [visit(0), visit(1)].concat();
        [start.to_vec(), visits, vec!["Stop".to_owned()]].concat()
    };
    let around = |words: [&str; 2]| words.map(str::to_owned).to_vec();
    let wanted = [
        around(["Create", "SetUp"]),
        block(0),
        block(1),
        around(["Conclude", "TakeDown"]),
    ];
    assert_eq!(told, wanted.concat());
    assert_eq!(run.visits().len(), 4);
    let [first, last] = run.heard.blocks.as_slice() else {
        panic!("{:?}", run.heard.blocks);
    };
    assert_eq!((first.done, first.open_cells), (1, 2));
    assert!((first.remaining_seconds - 10.0).abs() < 1e-6, "{first:?}");
    assert_eq!((last.done, last.open_cells), (2, 0));
    assert!(last.comparison.is_some() && last.remaining_seconds.abs() < 1e-9);
}

#[test]
fn what_breaks_in_any_phase_ends_the_run_and_everything_is_taken_down() {
    use Phase::{Conclude, Create, Keep, Kept, SetUp, Slice, Start, Stop, TakeDown, Visit};
    for phase in [
        Create, SetUp, Start, Visit, Slice, Keep, Kept, Stop, Conclude, TakeDown,
    ] {
        let mut run = Run::new(plan_of(2, 2, &[]));
        let kind = FakeKind::new(Life {
            broken: [phase].into(),
            ..life(1.0)
        });
        let End::Of(Err(problem)) = run.session(&kind) else {
            panic!("{phase:?} goes on");
        };
        assert!(problem.error.contains(&format!("{phase:?}")), "{problem}");
        let told = kind.life.lock().unwrap().told.clone();
        let down = told.last().is_some_and(|last| last == "TakeDown");
        assert_eq!(down, phase != Create, "{told:?}");
        let again = FakeKind::new(life(1.0));
        assert_eq!(run.session(&again), FINISHED, "{phase:?}");
        assert_eq!(run.visits().len(), 4, "{phase:?}");
    }
}

#[test]
fn a_lost_server_costs_the_rest_of_its_visit_and_the_third_one_ends_the_run() {
    let mut run = Run::new(plan_of(2, 4, &[]));
    let kind = FakeKind::new(Life {
        lost_at: [(0, CellId(1)), (1, CellId(0))].into(),
        ..life(1.0)
    });
    assert_eq!(run.session(&kind), FINISHED);
    assert_eq!(run.visits().len(), 8, "what was measured before it counts");
    let of = |place: (u32, CellId)| {
        let measured = run.measured().into_iter();
        measured.filter(|slice| (slice.0, slice.1) == place).count()
    };
    assert_eq!(
        (of((0, CellId(0))), of((0, CellId(1))), of((1, CellId(1)))),
        (15, 8, 15)
    );
    let findings = open(run.directory.path()).findings("r").unwrap();
    let lost = findings.iter().filter(|found| found.kind == "server-lost");
    assert_eq!(lost.count(), 2);
    let mut run = Run::new(plan_of(1, 4, &[]));
    let kind = FakeKind::new(Life {
        lost_at: (0..4).map(|block| (block, CellId(0))).collect(),
        ..life(1.0)
    });
    let End::Of(Err(problem)) = run.session(&kind) else {
        panic!("three losses are too many");
    };
    assert!(problem.error.contains("lost 3 times"), "{problem}");
    assert_eq!(run.visits().len(), 3, "it is kept");
}

#[test]
fn what_is_postponed_is_measured_after_the_last_block() {
    let mut run = Run::new(plan_of(1, 3, &[]));
    let kind = FakeKind::new(Life {
        lost_at: [(0, CellId(0)), (1, CellId(0))].into(),
        postpones: true,
        ..life(1.0)
    });
    assert_eq!(run.session(&kind), FINISHED);
    let told = kind.life.lock().unwrap().told.clone();
    let starts: Vec<&str> = told
        .iter()
        .filter_map(|word| word.strip_prefix("Start "))
        .collect();
    assert_eq!(starts, ["0", "1", "2", "0", "1"]);
    assert!(run.measured().iter().all(|slice| !slice.5));
    assert_eq!(run.visits().len(), 3);
    let left: Vec<(u32, u32)> = run
        .heard
        .blocks
        .iter()
        .map(|block| (block.done, block.open_cells))
        .collect();
    assert_eq!(left, [(1, 1), (2, 1), (3, 1), (3, 1), (3, 0)]);
}

/// All places of the first blocks of two cells.
fn places_of(blocks: u32) -> BTreeSet<(u32, CellId)> {
    (0..blocks)
        .flat_map(|block| [(block, CellId(0)), (block, CellId(1))])
        .collect()
}

#[test]
fn no_block_is_begun_that_would_end_past_the_deadline_and_one_always_is() {
    // A block takes 10 s.
    for (deadline, blocks) in [(1.0, 1), (25.0, 2), (30.0, 3)] {
        let mut plan = plan_of(2, 8, &[]);
        plan.timing.deadline_seconds = Some(deadline);
        let mut run = Run::new(plan);
        assert_eq!(run.session(&FakeKind::new(life(1.0))), FINISHED);
        assert_eq!(run.visits(), places_of(blocks), "{deadline} s");
        assert_eq!(run.time_up(), [blocks]);
        assert_eq!(run.heard.notes.last().unwrap(), "the time is up");
    }
    let mut plan = plan_of(2, 3, &[]);
    plan.timing.deadline_seconds = Some(31.0);
    let mut run = Run::new(plan);
    assert_eq!(run.session(&FakeKind::new(life(1.0))), FINISHED);
    assert!(run.time_up().is_empty(), "it was enough");
}

#[test]
fn a_block_that_takes_longer_than_all_the_time_ends_in_its_middle() {
    // Three visits of 5 s, in 8 s.
    let mut plan = plan_of(3, 8, &[]);
    plan.timing.deadline_seconds = Some(8.0);
    let mut run = Run::new(plan);
    let watchful = Life {
        watches_time: true,
        ..life(1.0)
    };
    assert_eq!(run.session(&FakeKind::new(watchful)), FINISHED);
    let measured: BTreeSet<(u32, CellId)> = [(0, CellId(0)), (0, CellId(1))].into();
    assert_eq!(run.visits(), measured);
    assert_eq!(run.time_up(), [0]);
    let note = run.heard.notes.last().unwrap();
    assert!(note.contains("in the middle of block 1"), "{note}");
}

#[test]
fn a_look_that_decides_every_cell_ends_the_run() {
    // What is equal is so at the first look; what differs by that much is clear after two fresh blocks.
    for (ratio, blocks) in [(1.0, 6), (0.8, 8)] {
        let mut run = Run::new(plan_of(2, 24, &[6, 12, 24]));
        assert_eq!(run.session(&FakeKind::new(life(ratio))), FINISHED);
        assert_eq!(run.visits().len(), 2 * blocks, "{ratio}");
        assert_eq!(run.heard.blocks.last().unwrap().open_cells, 0);
        assert_eq!(run.session(&FakeKind::new(life(ratio))), FINISHED);
        assert_eq!(run.visits().len(), 2 * blocks, "nothing is left to be done");
    }
}

#[test]
fn an_interrupted_visit_is_forgotten_and_done_again() {
    for at in 0..60 {
        let mut run = Run::new(plan_of(2, 2, &[]));
        let kind = FakeKind::new(Life {
            interrupted_at: Some((at, Arc::clone(&run.stop))),
            ..life(1.0)
        });
        let end = run.session(&kind);
        let visits = run.visits();
        if end == End::Of(Ok(SessionEnd::Interrupted)) {
            assert!(visits.len() < 4, "at {at}");
        } else {
            assert_eq!((end, visits.len()), (FINISHED, 4), "at {at}");
        }
        run.stop.store(false, Ordering::Relaxed);
        assert_eq!(run.session(&FakeKind::new(life(1.0))), FINISHED);
        assert_eq!(run.visits().len(), 4, "at {at}");
    }
}

fn places(cells: u32, blocks: u32) -> impl Strategy<Value = BTreeSet<(u32, CellId)>> {
    proptest::collection::btree_set((0..blocks, (0..cells).prop_map(CellId)), 0..=2)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// A run that is killed at any points and gone on with measures the same as one that is not.
    #[test]
    fn killed_runs_measure_what_others_do(
        lost_at in places(2, 7),
        postpones in any::<bool>(),
        stops_early in any::<bool>(),
        ratio in prop_oneof![Just(1.0), Just(0.8), Just(0.97)],
        cuts in proptest::collection::vec(0_usize..260, 0..6),
    ) {
        let looks: &[u32] = if stops_early { &[6, 7] } else { &[] };
        let lives = || Life { lost_at: lost_at.clone(), postpones, ..life(ratio) };
        let mut whole = Run::new(plan_of(2, 7, looks));
        prop_assert_eq!(whole.session(&FakeKind::new(lives())), FINISHED);
        let mut cut = Run::new(plan_of(2, 7, looks));
        for at in cuts {
            let kind = FakeKind::new(Life { killed_at: Some(at), ..lives() });
            cut.session(&kind);
        }
        prop_assert_eq!(cut.session(&FakeKind::new(lives())), FINISHED);
        prop_assert_eq!(whole.visits(), cut.visits());
        let mut measured = cut.measured();
        let mut wanted = whole.measured();
        measured.sort_unstable();
        wanted.sort_unstable();
        prop_assert_eq!(measured, wanted);
    }
}

#[test]
fn a_run_that_is_killed_at_every_single_point_measures_the_same() {
    let lives = || Life {
        lost_at: [(1, CellId(0))].into(),
        ..life(1.0)
    };
    let mut whole = Run::new(plan_of(2, 2, &[]));
    let kind = FakeKind::new(lives());
    assert_eq!(whole.session(&kind), FINISHED);
    let points = kind.life.lock().unwrap().points;
    for at in 0..points {
        let mut cut = Run::new(plan_of(2, 2, &[]));
        let kind = FakeKind::new(Life {
            killed_at: Some(at),
            ..lives()
        });
        assert_eq!(cut.session(&kind), End::Killed, "at {at}");
        assert_eq!(cut.session(&FakeKind::new(lives())), FINISHED, "at {at}");
        assert_eq!(cut.measured(), whole.measured(), "at {at}");
    }
}
