//! A lab that is looked at for a long time, while others write to it.

use deltabench_site::{Lab, Route, page};
use deltabench_store::{FILE_NAME, RunState, Store};
use deltabench_testkit::labs::{self, run_name};
use rusqlite::Connection;
use std::path::Path;

/// The text of a page, looked at now.
fn text(lab: &mut Lab, route: &Route) -> String {
    lab.refresh().unwrap();
    page(lab, route, false).unwrap().unwrap().text
}

/// As an older version leaves a lab: without the newest step of the schema.
fn make_older(lab: &Path) {
    let raw = Connection::open(lab.join(FILE_NAME)).unwrap();
    raw.execute_batch(
        "delete from migration where number = 19;
         alter table slice drop column probe_ns;
         alter table slice drop column probing_ns;",
    )
    .unwrap();
}

#[test]
fn a_lab_of_which_a_copy_is_read_shows_runs_that_come_later() {
    let directory = tempfile::tempdir().unwrap();
    drop(labs::lab(directory.path(), 1));
    make_older(directory.path());
    let mut lab = Lab::open(directory.path(), true).unwrap();
    assert!(text(&mut lab, &Route::Runs).contains(&run_name(0)));
    // A newer version measures in it.
    let mut store = Store::open(directory.path()).unwrap();
    let run = "20261201-000000-aaaa";
    labs::add(&mut store, (run, &labs::plan(0)), 1_796_083_200_000);
    store
        .finish_run(run, RunState::Finished, 1_796_083_300_000)
        .unwrap();
    assert!(text(&mut lab, &Route::Runs).contains(run));
}

#[test]
fn a_lab_that_cannot_be_read_once_still_shows_what_was_read_before() {
    let directory = tempfile::tempdir().unwrap();
    drop(labs::lab(directory.path(), 2));
    let mut lab = Lab::open(directory.path(), false).unwrap();
    let before = text(&mut lab, &Route::Runs);
    let raw = Connection::open(directory.path().join(FILE_NAME)).unwrap();
    raw.execute_batch(
        "insert into run (name, plan, started_unix_ms, written_by)
             select 'later', json_set(plan, '$.work.kind', 'future'), started_unix_ms + 1, '9'
             from run order by id desc limit 1;
         insert into run_state (run, state, at_unix_ms)
             select max(id), 'finished', 2 from run;",
    )
    .unwrap();
    for _ in 0..2 {
        let problem = lab.refresh().unwrap_err();
        assert!(problem.to_string().contains("future"), "{problem}");
        let shown = page(&mut lab, &Route::Runs, false).unwrap().unwrap();
        assert_eq!(shown.text, before);
        let run = page(&mut lab, &Route::Run(run_name(0)), false).unwrap();
        assert!(run.is_some());
    }
}

#[test]
fn pages_of_replays_are_shown_as_they_are_now() {
    let directory = tempfile::tempdir().unwrap();
    drop(labs::lab(directory.path(), 1));
    let mut lab = Lab::open(directory.path(), true).unwrap();
    let lists = [Route::Home, Route::Search];
    for route in &lists {
        assert!(!text(&mut lab, route).contains("replay-1"));
    }
    let stored = Route::Stored("replay-1".to_owned());
    let file = directory.path().join("replay-1.html");
    for words in ["the first", "the second"] {
        std::fs::write(&file, format!("<main>{words}</main>")).unwrap();
        for route in &lists {
            assert!(text(&mut lab, route).contains("replay-1"));
        }
        assert!(text(&mut lab, &stored).contains(words));
    }
    std::fs::remove_file(&file).unwrap();
    for route in &lists {
        assert!(!text(&mut lab, route).contains("replay-1"));
    }
    assert!(page(&mut lab, &stored, false).unwrap().is_none());
}
