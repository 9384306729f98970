//! How long pages of a large lab take: figures for `docs/guide/history.md`, and no test.
#![allow(clippy::as_conversions, clippy::cast_precision_loss)]

use deltabench_site::{Lab, Route, page, publish};
use deltabench_testkit::labs;
use deltabench_testkit::year::{self, Year, add_night, year};
use std::path::{Path, PathBuf};
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

/// CPU seconds of this process so far: other load makes clocks say too much.
fn cpu_seconds() -> f64 {
    let own = deltabench_proc::Process::of(std::process::id()).stat();
    own.map_or(f64::NAN, |own| {
        let ticks = (own.user_ticks + own.system_ticks) as f64;
        ticks * deltabench_proc::tick_ns() as f64 / 1e9
    })
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

/// The acceptance of the design: pages in 0.3 s, a site in a minute and after a night in 2 s, 1.5 MB at most.
const BIG: Year = Year {
    runs: 10_000,
    nights: 365,
    cells: 32,
};

/// The largest page and the largest file for programs.
fn largest(site: &Path) -> Vec<(PathBuf, usize)> {
    let mut known: Vec<(PathBuf, usize)> = { crate::published::files(site).into_iter() }
        .map(|(path, text)| (path, text.len()))
        .collect();
    known.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    known
}

/// Each page of a year, asked for by somebody who opens the lab.
fn asked(lab: &Path) {
    let host = "0123456789abcdef".to_owned();
    let cell = "query05010000000".to_owned();
    let routes = [
        Route::Home,
        Route::Trends,
        Route::Trend(cell.clone(), host.clone()),
        Route::Changes,
        Route::Compare,
        Route::Runs,
        Route::Versions,
        Route::Version("a".repeat(16)),
        Route::Cells,
        Route::Cell(cell, host.clone()),
        Route::Host(host),
        Route::Search,
        Route::ApiRuns,
        Route::ApiChanges,
    ];
    let began = Instant::now();
    let mut lab = Lab::open(lab, true).unwrap();
    println!("  open {:.2} s", began.elapsed().as_secs_f64());
    for route in routes {
        let began = Instant::now();
        let made = page(&mut lab, &route, false).unwrap();
        let bytes = made.expect("a page").text.len();
        let took = began.elapsed().as_secs_f64();
        println!(
            "  {took:7.3} s {:8.1} kB {}",
            bytes as f64 / 1e3,
            route.path()
        );
    }
}

/// `cargo test --release -p deltabench-site --test it year -- --ignored --nocapture`; `DELTABENCH_RUNS`,
/// `DELTABENCH_NIGHTS` and `DELTABENCH_CELLS` make it smaller.
#[test]
#[ignore = "takes minutes; prints how long pages of a year take"]
fn pages_of_a_year() {
    let number = |name: &str, or: u32| std::env::var(name).map_or(or, |text| text.parse().unwrap());
    let big = Year {
        runs: number("DELTABENCH_RUNS", BIG.runs),
        nights: number("DELTABENCH_NIGHTS", BIG.nights),
        cells: number("DELTABENCH_CELLS", BIG.cells),
    };
    let directory = tempfile::tempdir().unwrap();
    let kept = std::env::var("DELTABENCH_YEAR").ok().map(PathBuf::from);
    let place = kept.unwrap_or_else(|| directory.path().join("lab"));
    if !place.exists() {
        let making = seconds(|| drop(year(&place, big)));
        println!("{big:?} made in {making:.1} s");
    }
    println!("for the first time:");
    asked(&place);
    println!("kept:");
    asked(&place);
    let folder = directory.path().join("site");
    let publish_it = |what: &str| {
        let before = cpu_seconds();
        let took = seconds(|| {
            let mut lab = Lab::open(&place, false).unwrap();
            println!("  {:?}", publish(&mut lab, &folder, None).unwrap());
        });
        let cpu = cpu_seconds() - before;
        println!("publish, {what}: {took:.2} s, {cpu:.2} s of CPU");
    };
    publish_it("everything");
    publish_it("nothing new");
    for (path, bytes) in largest(&folder).into_iter().take(12) {
        println!("  {:8.1} kB {}", bytes as f64 / 1e3, path.display());
    }
    let mut store = deltabench_store::Store::open(&place).unwrap();
    let name = |night: u32| labs::run_name(0xe000 + night);
    // A lab that is kept has those of the last time.
    let first = (0..).find(|night| store.plan(&name(*night)).is_err());
    for night in (first.unwrap()..).take(3) {
        let name = name(night);
        let at = year::after(24 * i64::from(night + 1));
        add_night(&mut store, (&name, big.nights + night), at, big.cells);
        asked(&place);
        publish_it("a night is new");
    }
}
