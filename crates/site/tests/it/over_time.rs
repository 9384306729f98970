//! Any two versions, changes and trends.

use crate::published::{files, published, without_links};
use deltabench_model::occasion::{Occasion, Series};
use deltabench_model::units::to_f64;
use deltabench_site::web::Door;
use deltabench_site::{Lab, Route, page};
use deltabench_store::{Annotation, AnnotationKind, RunState, Store};
use deltabench_testkit::labs::{self, run_name};
use deltabench_testkit::small_run;
use std::path::Path;

const HOST: &str = "0123456789abcdef";

/// Notes beside a version and a moment.
pub fn annotate(store: &mut Store) {
    let note = |text: &str| Annotation {
        kind: AnnotationKind::Environment,
        text: text.to_owned(),
        version: None,
        at_unix_ms: None,
        host: None,
        cell: None,
        said_unix_ms: 1,
    };
    let version = Some("18.4".to_owned());
    let all = [
        Annotation {
            version,
            ..note("LTO on")
        },
        Annotation {
            at_unix_ms: Some(1_793_500_000_000),
            cell: Some("point-query@1".to_owned()),
            ..note("a new kernel")
        },
    ];
    for one in &all {
        store.annotate(one).unwrap();
    }
}

/// Twelve runs of 17.11 against 18.0 to 18.11, of which 18.9 is 5 % slower in a cell, and again is.
fn lab(directory: &Path) -> Store {
    let mut store = labs::lab(directory, 12);
    labs::again(&mut store, (&run_name(0xffff), 9), 40, 0.95);
    annotate(&mut store);
    store
}

/// The text of a page, as it is served.
fn shown(lab: &Path, route: &Route) -> String {
    let mut lab = Lab::open(lab, true).unwrap();
    page(&mut lab, route, false).unwrap().expect("a page").text
}

fn compared(lab: &Path, base: &str, with: &str) -> String {
    shown(lab, &Route::Pair(base.to_owned(), with.to_owned()))
}

/// What a reader sees of a page, without marks and with single blanks.
fn read(text: &str) -> String {
    let body = text.split_once("<main>").unwrap().1;
    let body = body.split("<script>").next().unwrap();
    let parts = body.split('<').filter_map(|part| part.split_once('>'));
    let words: Vec<&str> = parts
        .flat_map(|(_, text)| text.split_whitespace())
        .collect();
    words.join(" ")
}

#[test]
fn any_two_versions_are_compared_and_the_page_says_through_what() {
    let directory = tempfile::tempdir().unwrap();
    drop(lab(directory.path()));
    let direct = read(&compared(
        directory.path(),
        "postgres:17.11",
        "postgres:18.9",
    ));
    assert!(
        direct.contains("postgres:18.9 relative to postgres:17.11"),
        "{direct}"
    );
    assert!(
        direct.contains("1 slower , 0 faster , 2 no change , 0 inconclusive"),
        "{direct}"
    );
    assert!(
        direct.contains("in part assumed") && direct.contains("by 0.9 %. What the report"),
        "{direct}"
    );
    assert!(
        direct.contains("side by side: 20261101-000000-ffff"),
        "{direct}"
    );
    // The surest difference comes first.
    let rows = direct.split_once("known from").unwrap().1;
    assert!(
        rows.trim_start()
            .starts_with("point-query@1 ▼ slower ±3 % -5.0 %"),
        "{rows}"
    );
    // No run has both of these.
    let through = read(&compared(directory.path(), "18.3", "18.9"));
    assert!(through.contains("through postgres:17.11 ("), "{through}");
    assert!(through.contains("▼ slower"), "{through}");
    assert!(!through.contains("What cannot be compared"), "{through}");
}

#[test]
fn runs_are_compared_alone_and_what_is_asked_wrongly_is_said() {
    let directory = tempfile::tempdir().unwrap();
    drop(lab(directory.path()));
    let (one, other) = (run_name(9), run_name(10));
    let alone = read(&compared(
        directory.path(),
        &format!("{one}:0"),
        &format!("{one}:2"),
    ));
    assert!(alone.contains(&format!("this hour: {one}")), "{alone}");
    let two = read(&compared(
        directory.path(),
        &one,
        &format!("{other}:postgres:18.10"),
    ));
    assert!(two.contains("two runs, through postgres:17.11"), "{two}");
    assert!(two.contains("▲ faster"), "{two}");
    let wrong = read(&compared(
        directory.path(),
        "postgres:99",
        &format!("{one}:7"),
    ));
    assert!(
        wrong.contains("No run of this lab has a version “postgres:99”."),
        "{wrong}"
    );
    assert!(wrong.contains("0 is postgres:17.11, 1 is"), "{wrong}");
    let same = read(&compared(directory.path(), "18.3", "postgres:18.3"));
    assert!(same.contains("Both ends are the same build"), "{same}");
}

#[test]
fn what_cannot_be_compared_is_said_with_its_reason() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = lab(directory.path());
    let mut add =
        |name: &str, number: u32, hour: u32, change: &dyn Fn(&mut Occasion, &mut [Series])| {
            let at = 1_793_491_200_000 + i64::from(hour) * 3_600_000;
            let plan = labs::plan(number);
            labs::add_as(&mut store, (name, &plan), at, change);
            small_run::keep(&mut store, name, [1.0, 1.0, 1.0]);
            store
                .finish_run(name, RunState::Finished, at + 1000)
                .unwrap();
        };
    // 18.20 on another machine, and 18.21 in cells that are other work.
    add("other-host", 20, 50, &|occasion, _| {
        occasion.host.uid = "fedcba9876543210".to_owned()
    });
    add("other-work", 21, 51, &|_, series| {
        for one in series {
            one.key = one.key.replace("00000000", "11111111");
            one.content = r#"{"workload":"x","measurement":3}"#.to_owned();
        }
    });
    drop(store);
    let host = read(&compared(directory.path(), "18.3", "18.20"));
    assert!(
        host.contains("No runs of one host connect these two"),
        "{host}"
    );
    assert!(
        host.contains("measured postgres:18.20 alone: runs of two hosts"),
        "{host}"
    );
    let work = read(&compared(directory.path(), "18.3", "18.21"));
    let wanted = "point-query@1 is other work at each end: it differs in the way in which deltabench \
                  measures (its measurement version), workload.";
    assert!(work.contains(wanted), "{work}");
}

#[test]
fn a_run_that_is_withdrawn_leaves_the_comparison_and_the_page_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = lab(directory.path());
    let withdrawal = deltabench_model::invalidation::Invalidation {
        cell: None,
        reason: "a backup ran".to_owned(),
        at_unix_ms: 5,
    };
    store.invalidate(&run_name(3), &withdrawal).unwrap();
    drop(store);
    let page = read(&compared(directory.path(), "17.11", "18.3"));
    assert!(page.contains("No runs of one host connect"), "{page}");
    assert!(
        page.contains("1 run left out (withdrawn): 20261101-000000-0003"),
        "{page}"
    );
}

#[test]
fn changes_and_trends_show_both_ends_what_confirmed_them_and_notes() {
    let directory = tempfile::tempdir().unwrap();
    drop(lab(directory.path()));
    let mut lab = Lab::open(directory.path(), true).unwrap();
    let mut text = |route: Route| page(&mut lab, &route, false).unwrap().expect("a page").text;
    let list = text(Route::Changes);
    assert!(
        read(&list).contains("2 changes confirmed, 0 suspected"),
        "{}",
        read(&list)
    );
    let json: serde_json::Value = serde_json::from_str(&text(Route::ApiChanges)).unwrap();
    let told = json["changes"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["way"] == "slower");
    let told = told.unwrap();
    assert_eq!(told["state"], "confirmed");
    assert!(
        (told["ratio"].as_f64().unwrap() - 0.95).abs() < 0.002,
        "{told}"
    );
    let id = told["id"].as_str().unwrap();
    assert!(list.contains(&format!("href=\"/change/{id}\"")));
    let change = read(&text(Route::Change(id.to_owned())));
    assert!(
        change.contains("point-query@1 slower, postgres:17.11 → postgres:18.9"),
        "{change}"
    );
    assert!(change.contains("confirmed : throughput -5.0 %"), "{change}");
    assert!(
        change.contains("Measured again by 20261101-000000-ffff"),
        "{change}"
    );
    let grid = text(Route::Trends);
    assert_eq!(grid.matches("<svg").count(), 6, "three cells, two metrics");
    let cell = Route::Trend("point0query01000".to_owned(), HOST.to_owned());
    let trend = text(cell.clone());
    let words = read(&trend);
    assert!(
        words.contains("1 environment 18.4: LTO on") && words.contains("a new kernel"),
        "{words}"
    );
    assert!(words.contains("confirmed slower"), "{words}");
    assert!(words.contains("for all versions alike"), "{words}");
    assert!(trend.contains("<polygon") && trend.contains("by-time"));
    let feed = text(Route::Feed);
    assert!(
        feed.contains(&format!("urn:deltabench:change:{id}")),
        "{feed}"
    );
    // Another cell has the note of the version, and not that of the cell.
    let other = read(&text(Route::Trend(
        "point0query04000".to_owned(),
        HOST.to_owned(),
    )));
    assert!(
        other.contains("LTO on") && !other.contains("a new kernel"),
        "{other}"
    );
    assert_eq!(
        page(&mut lab, &Route::Change("none".to_owned()), false).unwrap(),
        None
    );
}

#[test]
fn a_version_that_is_twice_as_fast_has_charts_whose_axes_can_be() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = labs::lab(directory.path(), 3);
    labs::again(&mut store, (&run_name(0xffff), 2), 40, 2.2);
    drop(store);
    let (cell, host) = ("point0query01000".to_owned(), HOST.to_owned());
    for wanted in [
        Route::Trend(cell.clone(), host.clone()),
        Route::Cell(cell, host),
    ] {
        let text = shown(directory.path(), &wanted);
        assert!(text.contains("<svg") && text.contains("+120"), "{text}");
        assert!(!text.contains("NaN"), "{text}");
        assert!(text.contains(">-100.0 %</text>"), "{text}");
    }
}

/// What a visitor may choose is there only where pages are served.
fn without_choice(text: &str) -> String {
    match text.split_once("<div class=\"choose\">") {
        Some((before, after)) => format!("{before}{}", after.split_once("</div>").unwrap().1),
        None => text.to_owned(),
    }
}

#[test]
fn pages_over_time_are_the_same_published_and_served_and_all_links_lead_somewhere() {
    let directory = tempfile::tempdir().unwrap();
    let (place, site) = (directory.path().join("lab"), directory.path().join("site"));
    drop(lab(&place));
    let first = published(&place, &site, true);
    let files = files(&site);
    let mut lab = Lab::open(&place, true).unwrap();
    let (mut same, mut links) = (0, 0);
    let folders = [
        "compare/",
        "change/",
        "trend/",
        "changes.html",
        "trends.html",
    ];
    for (path, text) in &files {
        let name = path.to_str().unwrap();
        if !folders.iter().any(|folder| name.starts_with(folder)) {
            continue;
        }
        assert!(text.len() < 400_000, "{name} has {} bytes", text.len());
        let own = name.strip_suffix(".html").unwrap();
        let route = match own.strip_prefix("compare/") {
            Some(ends) => {
                let (base, with) = ends.split_once('.').unwrap();
                Route::Pair(base.to_owned(), with.to_owned())
            }
            None => Route::of_path(&format!("/{own}")).unwrap(),
        };
        let served = page(&mut lab, &route, false).unwrap().expect("a page").text;
        assert_eq!(
            without_choice(&without_links(&served)),
            without_links(text),
            "{name}"
        );
        same += 1;
        for link in text.split(" href=\"").skip(1) {
            let target = link.split_once('"').unwrap().0;
            let to = site.join(path).parent().unwrap().join(target);
            assert!(to.is_file(), "{name} -> {target}");
            links += 1;
        }
    }
    assert!(same > 25 && links > 500, "{same} pages, {links} links");
    let again = published(&place, &site, true);
    assert_eq!((again.written, again.unchanged), (0, first.written));
}

#[test]
fn a_server_answers_a_comparison_by_its_query() {
    let directory = tempfile::tempdir().unwrap();
    drop(lab(directory.path()));
    let at = crate::served::served(directory.path(), Door::own());
    let answer = crate::served::got(
        at,
        "/compare?base=postgres%3A17.11&with=postgres:18.9&show=told",
        "",
    );
    assert!(
        answer.contains("postgres:18.9 relative to postgres:17.11"),
        "{answer}"
    );
    let choose = crate::served::got(at, "/compare", "");
    assert!(choose.contains("<select name=\"base\""), "{choose}");
    let strange = crate::served::got(at, "/compare?base=%3Cscript%3E&with=../../x", "");
    assert!(
        strange.contains("&lt;script&gt;") && !strange.contains("<script>alert"),
        "{strange}"
    );
}

/// How long the pages of a larger lab take; prints it. `DELTABENCH_RUNS=1000 cargo test -p deltabench-site
/// --test it -- --nocapture larger`.
#[test]
fn pages_of_a_larger_lab_take_a_moment() {
    let runs = std::env::var("DELTABENCH_RUNS").map_or(60, |text| text.parse().unwrap());
    let directory = tempfile::tempdir().unwrap();
    drop(labs::lab(directory.path(), runs));
    let mut lab = Lab::open(directory.path(), true).unwrap();
    let cell = Route::Trend("point0query01000".to_owned(), HOST.to_owned());
    let pair = Route::Pair("18.3".to_owned(), "18.9".to_owned());
    for route in [Route::Trends, cell, Route::Changes, pair] {
        let began = std::time::Instant::now();
        let made = page(&mut lab, &route, false).unwrap().expect("a page");
        let bytes = to_f64(deltabench_model::units::count(made.text.len()));
        println!("{route:?}: {:?}, {:.0} KB", began.elapsed(), bytes / 1e3);
        assert!(bytes < 1.5e6);
    }
}

#[test]
fn while_a_run_is_measured_what_was_known_before_is_shown() {
    let directory = tempfile::tempdir().unwrap();
    let store = lab(directory.path());
    let mut known = Lab::open(directory.path(), true).unwrap();
    let before = page(&mut known, &Route::Changes, false)
        .unwrap()
        .expect("a page");
    let lock = store.lock_run("r").unwrap();
    known.refresh().unwrap();
    let during = page(&mut known, &Route::Changes, false)
        .unwrap()
        .expect("a page");
    assert_eq!(before.text, during.text);
    // Who has not looked before is asked to come again.
    let mut new = Lab::open(directory.path(), true).unwrap();
    let waits = page(&mut new, &Route::Changes, false)
        .unwrap()
        .expect("a page");
    assert!(
        waits.waits && read(&waits.text).contains("after the run"),
        "{}",
        read(&waits.text)
    );
    let pair = Route::Pair("18.3".to_owned(), "18.9".to_owned());
    assert!(page(&mut new, &pair, false).unwrap().expect("a page").waits);
    drop(lock);
    new.refresh().unwrap();
    assert!(
        !page(&mut new, &Route::Changes, false)
            .unwrap()
            .expect("a page")
            .waits
    );
}
