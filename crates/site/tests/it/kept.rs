//! What was kept beside the store changes no page.

use crate::published::{files, published};
use deltabench_compare::comparison::Metric;
use deltabench_lab::trends;
use deltabench_model::finding::{Finding, FindingKind, Severity};
use deltabench_model::invalidation::Invalidation;
use deltabench_model::plan::CellId;
use deltabench_site::{Lab, Route, page, publish};
use deltabench_store::{AnchorChange, DERIVED_NAME, Store, Triage, TriageState};
use deltabench_testkit::labs::{self, run_name};
use std::path::Path;

const HOST: &str = "0123456789abcdef";

/// The pages that show what runs found.
fn routes(runs: &[String]) -> Vec<Route> {
    let cell = |name: &str| Route::Cell(name.to_owned(), HOST.to_owned());
    let mut all = vec![
        Route::Home,
        Route::Runs,
        Route::Trends,
        Route::Changes,
        Route::Trend("point0query01000".to_owned(), HOST.to_owned()),
        Route::Version("a".repeat(16)),
        Route::Pair("18.3".to_owned(), "18.9".to_owned()),
        Route::ApiChanges,
        Route::Feed,
        cell("point0query01000"),
        cell("point0query04000"),
    ];
    all.extend(runs.iter().cloned().map(Route::Run));
    all
}

fn texts(lab: &mut Lab, runs: &[String]) -> Vec<(Route, Option<String>)> {
    let text = |route: Route| {
        let text = page(lab, &route, false).unwrap().map(|page| page.text);
        (route, text)
    };
    routes(runs).into_iter().map(text).collect()
}

fn withdrawn(cell: Option<CellId>) -> Invalidation {
    Invalidation {
        cell,
        reason: "a backup ran".to_owned(),
        at_unix_ms: 5,
    }
}

/// Things that may happen to a lab.
pub const STEPS: usize = 15;

/// What may happen to a lab, in this order.
pub fn happen(step: usize, store: &mut Store, runs: &mut Vec<String>) {
    let name = run_name(0xf000 + u32::try_from(step).unwrap());
    match step {
        // 18.9 again in other hours: changes are confirmed, and more is known of other hours.
        0 | 1 | 7 => {
            let hour = 40 + 2 * u32::try_from(step).unwrap();
            labs::again(store, (&name, 9), hour, 0.95);
            runs.push(name);
        }
        2 => store
            .invalidate(&run_name(9), &withdrawn(Some(CellId(0))))
            .unwrap(),
        3 => store.invalidate(&run_name(3), &withdrawn(None)).unwrap(),
        4 => crate::over_time::annotate(store),
        5 => {
            let unfit = Finding::new(FindingKind::OtherLoad, Severity::Unfit, "somebody compiles");
            store.add_finding(&run_name(0xf001), &unfit).unwrap();
        }
        6 => drop(store.archive(&run_name(0xf000), 9).unwrap()),
        8 => {
            let file = store.archived(&run_name(0xf000)).unwrap().unwrap();
            std::fs::remove_file(file.path).unwrap();
        }
        9 => {
            // A run that was measured before others and came into the lab after them.
            labs::again(store, (&name, 9), 5, 0.97);
            runs.push(name);
        }
        10 => drop(store.archive(&run_name(4), 9).unwrap()),
        11 => drop(store.restore(&run_name(4), 10).unwrap()),
        12 => {
            let identity = |binary: String| format!("{binary:0<64} [] None");
            let change = AnchorChange {
                host: "0123456789abcdef0123".to_owned(),
                before: identity("a".repeat(64)),
                after: identity("0006".to_owned()),
                at_unix_ms: 1_793_500_000_000,
            };
            store.replace_anchor(&change).unwrap();
        }
        13 => {
            let hosts = trends(store, &[Metric::Throughput], &|_| Vec::new()).unwrap();
            let triage = Triage {
                change: hosts[0].changes[0].id.clone(),
                state: TriageState::Explained,
                text: "a new kernel".to_owned(),
                at_unix_ms: 5,
            };
            store.add_triage(&triage).unwrap();
        }
        _ => {
            // A version that nobody had measured, before others in their order.
            labs::again(store, (&name, 15), 3, 0.9);
            runs.push(name);
        }
    }
}

#[test]
fn pages_are_the_same_with_and_without_what_was_kept_whatever_happens_to_the_lab() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let mut store = labs::lab(place, 10);
    let mut runs: Vec<String> = (0..10).map(run_name).collect();
    // One that goes on looking, as a server of pages does.
    let mut watching = Lab::open(place, true).unwrap();
    let mut before = Vec::new();
    for step in 0..STEPS {
        happen(step, &mut store, &mut runs);
        let without = texts(&mut Lab::open_without_kept(place, true).unwrap(), &runs);
        watching.refresh().unwrap();
        let kept = texts(&mut Lab::open(place, true).unwrap(), &runs);
        let watched = if step == 8 {
            // A file beside the store that is gone is seen by who opens the lab.
            kept.clone()
        } else {
            texts(&mut watching, &runs)
        };
        for (at, (route, text)) in without.iter().enumerate() {
            assert_eq!(kept[at].1, *text, "step {step}, {route:?}");
            assert_eq!(watched[at].1, *text, "step {step}, {route:?}, watching");
        }
        // An archived run says what it said before, and one that is restored, too.
        let shows_the_same = [6, 10, 11].contains(&step);
        assert_eq!(without == before, shows_the_same, "what step {step} shows");
        before = without;
    }
    assert!(place.join(DERIVED_NAME).is_file());
}

#[test]
fn a_site_has_the_same_bytes_and_a_lab_that_knows_its_runs_reads_none_of_their_slices() {
    let directory = tempfile::tempdir().unwrap();
    let (place, site) = (directory.path().join("lab"), directory.path().join("site"));
    drop(labs::lab(&place, 6));
    let mut without = Lab::open_without_kept(&place, false).unwrap();
    let plain = directory.path().join("plain");
    publish(&mut without, &plain, None).unwrap();
    assert!(!place.join(DERIVED_NAME).exists(), "nothing is kept");
    published(&place, &site, false);
    published(&place, &directory.path().join("again"), false);
    let expected = files(&plain);
    assert!(expected.len() > 30);
    for copy in [&site, &directory.path().join("again")] {
        assert_eq!(files(copy).len(), expected.len());
        for (path, text) in files(copy) {
            assert!(text == expected[&path], "{}", path.display());
        }
    }
    // What is kept is enough: without their slices the runs would say nothing.
    let lists = |lab: &mut Lab| {
        let of = |route| page(lab, &route, false).unwrap().unwrap().text;
        [Route::Home, Route::Trends, Route::Changes].map(of)
    };
    let before = lists(&mut Lab::open(&place, false).unwrap());
    forget_slices(&place);
    assert_eq!(lists(&mut Lab::open(&place, false).unwrap()), before);
    let judged_anew = lists(&mut Lab::open_without_kept(&place, false).unwrap());
    assert_ne!(judged_anew, before);
}

/// Takes away what runs are judged from, as nothing of deltabench does.
fn forget_slices(lab: &Path) {
    let file = rusqlite::Connection::open(lab.join(deltabench_store::FILE_NAME)).unwrap();
    let sql = "drop trigger slice_no_delete; drop trigger slice_error_no_delete; \
               delete from slice_error; delete from slice";
    file.execute_batch(sql).unwrap();
}
