//! How long pages of a large lab take: figures for `docs/guide/history.md`, and no test.

use deltabench_site::{Lab, Route, page, publish};
use deltabench_testkit::labs;
use std::path::Path;
use std::time::Instant;

/// Runs, unless `DELTABENCH_RUNS` says how many.
const RUNS: u32 = 1000;
/// Cells of each: those of a night.
const CELLS: u32 = 8;

fn seconds(what: impl FnOnce()) -> f64 {
    let began = Instant::now();
    what();
    began.elapsed().as_secs_f64()
}

fn opened(lab: &Path, kept: bool) -> Lab {
    match kept {
        true => Lab::open(lab, true).unwrap(),
        false => Lab::open_without_kept(lab, true).unwrap(),
    }
}

/// Opening a lab, and its first pages.
fn pages(lab: &Path, kept: bool) {
    let began = Instant::now();
    let mut lab = opened(lab, kept);
    let opening = began.elapsed().as_secs_f64();
    let mut took = |route: Route| seconds(|| drop(page(&mut lab, &route, false).unwrap().unwrap()));
    let host = "0123456789abcdef".to_owned();
    let (home, trends) = (took(Route::Home), took(Route::Trends));
    let trend = took(Route::Trend("query00010000000".to_owned(), host));
    println!("  open {opening:.2} s, / {home:.3} s, /trends {trends:.3} s, /trend {trend:.3} s");
}

fn site(lab: &Path, site: &Path, kept: bool) -> f64 {
    seconds(|| {
        let mut lab = opened(lab, kept);
        let done = publish(&mut lab, site, None).unwrap();
        println!("  {done:?}");
    })
}

/// `DELTABENCH_RUNS=1000 cargo test --release -p deltabench-site --test it large -- --ignored --nocapture`
#[test]
#[ignore = "takes minutes; prints how long pages of a large lab take"]
fn pages_of_a_large_lab() {
    let runs = std::env::var("DELTABENCH_RUNS").ok();
    let runs = runs.and_then(|text| text.parse().ok()).unwrap_or(RUNS);
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("lab");
    let making = seconds(|| drop(labs::wide_lab(&place, (runs, CELLS))));
    println!("{runs} runs made in {making:.1} s");
    println!("nothing kept:");
    pages(&place, false);
    println!("for the first time:");
    pages(&place, true);
    println!("kept:");
    pages(&place, true);
    let (plain, kept) = (
        directory.path().join("plain"),
        directory.path().join("kept"),
    );
    let first = site(&place, &plain, false);
    let with = site(&place, &kept, true);
    println!("publish: {first:.1} s with nothing kept, {with:.1} s with what was kept");
    let mut store = deltabench_store::Store::open(&place).unwrap();
    let night = |number: u32| labs::run_name(0xe000 + number);
    for number in 0..3_u32 {
        let hour = runs + 24 * (number + 1);
        labs::add_wide(&mut store, (&night(number), 9), hour, (CELLS, 0.95));
        let without = site(&place, &plain, false);
        let with = site(&place, &kept, true);
        println!(
            "publish with one new run: {without:.2} s with nothing kept, {with:.2} s with what was \
             kept, {:.2} of it",
            with / without
        );
    }
}
