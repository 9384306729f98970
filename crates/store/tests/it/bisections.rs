//! Bisections: stored as asked, appended to, and found by their names.

use crate::data::plan;
use deltabench_model::bisection::{
    Asked, BISECTION_FORMAT, BisectedBy, Bisection, FailedStep, Happened, Look, Outcome, Point,
    Question,
};
use deltabench_store::{Found, RunState, Store, StoreError};
use rusqlite::Connection;

fn question() -> Question {
    let point = |name: &str| Point {
        target: format!("postgres:{name}"),
        name: name.to_owned(),
        date: None,
        subject: None,
        may_differ: true,
    };
    Question {
        format: BISECTION_FORMAT.0.to_owned(),
        version: BISECTION_FORMAT.1,
        points: ["17.0", "17.1", "17.2", "17.3"].map(point).to_vec(),
        base_alone: None,
        plan: plan(),
    }
}

fn look(point: usize, outcome: Outcome) -> Happened {
    Happened::Look(Look {
        point,
        outcome,
        made_of: None,
        acquire_seconds: 1.5,
        count_seconds: 2.0,
        built: false,
    })
}

fn counted(instructions: f64) -> Outcome {
    Outcome::Counted {
        run: "bisect-a-1".to_owned(),
        instructions,
        base: 1000.0,
        span: Some(0.000_01),
    }
}

fn happened() -> Vec<Happened> {
    vec![
        Happened::Asked(Asked {
            min: 0.005,
            culprits: 3,
            skip: vec![1],
            keep_builds: 20,
            budget_seconds: None,
            count_only: false,
            blocks: 14,
            metric: BisectedBy::Cpu,
            cpu_of_run: Some(1.02),
        }),
        Happened::Building { point: 2 },
        look(0, counted(1000.0)),
        look(3, counted(1100.0)),
        look(2, Outcome::Same { point: 3 }),
        look(
            1,
            Outcome::Skipped {
                step: FailedStep::Build,
                why: "make failed".to_owned(),
            },
        ),
    ]
}

#[test]
fn a_bisection_is_read_as_it_was_told_and_its_looks_answer_for_each_other() {
    let lab = tempfile::tempdir().unwrap();
    let mut store = Store::open(lab.path()).unwrap();
    store.create_bisection("bisect-a", &question(), 1).unwrap();
    for one in happened() {
        store.add_to_bisection("bisect-a", &one, 2).unwrap();
    }
    drop(store);
    let store = Store::open_existing(lab.path()).unwrap();
    let found: Bisection = store.bisection("bisect-a").unwrap();
    assert_eq!(found.question, question());
    assert_eq!(found.happened, happened());
    assert_eq!(found.asked().unwrap().skip, [1]);
    assert_eq!(found.built(), [2], "though that build may have been killed");
    let percent = |point| {
        found
            .ratio(point)
            .map(|ratio| format!("{:.0}", ratio * 100.0))
    };
    let ratios: Vec<String> = (0..4)
        .map(|point| percent(point).unwrap_or_default())
        .collect();
    assert_eq!(ratios, ["100", "", "110", "110"]);
    assert_eq!(store.bisections().unwrap(), ["bisect-a"]);
}

#[test]
fn the_newest_of_runs_and_bisections_is_the_last_and_looks_answer_to_their_full_names() {
    let lab = tempfile::tempdir().unwrap();
    let mut store = Store::open(lab.path()).unwrap();
    let mut look = plan();
    look.bisects = Some("bisect-a".to_owned());
    store
        .create_run("r", &plan(), RunState::Running, 1)
        .unwrap();
    store.create_bisection("bisect-a", &question(), 2).unwrap();
    store
        .create_run("bisect-a-1", &look, RunState::Running, 3)
        .unwrap();
    let bisection = Found::Bisection("bisect-a".to_owned());
    assert_eq!(store.find_any("last").unwrap(), bisection);
    assert_eq!(store.find_any("bis").unwrap(), bisection);
    assert_eq!(store.find_any("bisect-a").unwrap(), bisection);
    assert_eq!(
        store.find_any("bisect-a-1").unwrap(),
        Found::Run("bisect-a-1".to_owned())
    );
    // The last run is still the one that the bisection is about.
    assert_eq!(store.find("last").unwrap(), "r");
    let refused = store.find("bisect-a").unwrap_err();
    assert!(refused.error.contains("is a bisection"), "{refused}");
    store
        .create_run("s", &plan(), RunState::Running, 4)
        .unwrap();
    assert_eq!(store.find_any("last").unwrap(), Found::Run("s".to_owned()));
}

#[test]
fn a_name_that_is_taken_or_unknown_and_a_newer_format_are_refused() {
    let lab = tempfile::tempdir().unwrap();
    let mut store = Store::open(lab.path()).unwrap();
    store.create_bisection("bisect-a", &question(), 1).unwrap();
    let taken = store.create_bisection("bisect-a", &question(), 2);
    assert!(matches!(taken, Err(StoreError::Taken { .. })), "{taken:?}");
    let unknown = store.add_to_bisection("bisect-b", &happened().remove(0), 2);
    assert!(
        matches!(unknown, Err(StoreError::UnknownRun { .. })),
        "{unknown:?}"
    );
    let newer = Question {
        version: BISECTION_FORMAT.1 + 1,
        ..question()
    };
    store.create_bisection("bisect-c", &newer, 3).unwrap();
    let found = store.bisection("bisect-c");
    assert!(matches!(found, Err(StoreError::Newer { .. })), "{found:?}");
    let raw = Connection::open(lab.path().join(deltabench_store::FILE_NAME)).unwrap();
    assert!(raw.execute("delete from bisection", []).is_err());
    assert!(
        raw.execute("update bisection_event set at_unix_ms = 1", [])
            .is_ok(),
        "there is none"
    );
    drop(raw);
    store
        .add_to_bisection("bisect-a", &happened().remove(0), 2)
        .unwrap();
    let raw = Connection::open(lab.path().join(deltabench_store::FILE_NAME)).unwrap();
    assert!(
        raw.execute("update bisection_event set at_unix_ms = 1", [])
            .is_err()
    );
}
