use deltabench_model::invalidation::Invalidation;
use deltabench_site::{Lab, Published, Route, page, publish};
use deltabench_store::Store;
use deltabench_testkit::labs::{self, run_name};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

pub fn published(lab: &Path, site: &Path, shows_hosts: bool) -> Published {
    let mut lab = Lab::open(lab, shows_hosts).unwrap();
    publish(&mut lab, site, None).unwrap()
}

/// All files of a site by their paths in it.
pub fn files(site: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![site.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let text = std::fs::read_to_string(&path).unwrap();
                found.insert(path.strip_prefix(site).unwrap().to_owned(), text);
            }
        }
    }
    found
}

/// Values of links, blanked.
pub fn without_links(text: &str) -> String {
    let names = [" href=\"", " action=\"", " src=\""];
    names.into_iter().fold(text.to_owned(), |text, name| {
        let mut parts = text.split(name);
        let mut kept = parts.next().unwrap().to_owned();
        for part in parts {
            kept.push_str(part.split_once('"').unwrap().1);
        }
        kept
    })
}

#[test]
fn reports_share_one_script_published_and_served() {
    let directory = tempfile::tempdir().unwrap();
    drop(labs::lab(directory.path(), 2));
    let mut lab = Lab::open(directory.path(), true).unwrap();
    let site = directory.path().join("site");
    publish(&mut lab, &site, None).unwrap();
    let files = files(&site);
    let script = &files[Path::new("report.js")];
    let served = page(&mut lab, &Route::Script, false).unwrap().unwrap();
    assert_eq!(served.kind.media_type(), "text/javascript; charset=utf-8");
    assert_eq!((script, script.len() > 100_000), (&served.text, true));
    let report = &files[&PathBuf::from(Route::Run(run_name(1)).file())];
    assert!(report.contains("<script src=\"../report.js?"));
    assert!(report.contains("script-src 'self' file:;") && !report.contains(&script[..1000]));
}

#[test]
fn a_page_is_the_same_published_and_served_but_for_its_links() {
    let directory = tempfile::tempdir().unwrap();
    drop(labs::lab(directory.path(), 3));
    let mut to_publish = Lab::open(directory.path(), true).unwrap();
    let mut to_serve = Lab::open(directory.path(), true).unwrap();
    let run = run_name(1);
    let routes = [
        Route::Home,
        Route::Runs,
        Route::Run(run.clone()),
        Route::Versions,
        Route::Version("a".repeat(16)),
        Route::Cells,
        Route::Cell("point0query01000".to_owned(), "0123456789abcdef".to_owned()),
        Route::Hosts,
        Route::Host("0123456789abcdef".to_owned()),
        Route::Search,
        Route::Feed,
        Route::ApiRuns,
        Route::ApiRun(run),
    ];
    for route in routes {
        let file = page(&mut to_publish, &route, true)
            .unwrap()
            .expect("a page");
        let answer = page(&mut to_serve, &route, false).unwrap().expect("a page");
        assert_eq!(
            without_links(&file.text),
            without_links(&answer.text),
            "{route:?}"
        );
        assert!(
            file.text.len() < 1_500_000,
            "{route:?} has {} bytes",
            file.text.len()
        );
    }
}

#[test]
fn every_link_of_a_site_leads_to_a_file_of_it() {
    let directory = tempfile::tempdir().unwrap();
    drop(labs::lab(&directory.path().join("lab"), 3));
    let site = directory.path().join("site");
    published(&directory.path().join("lab"), &site, false);
    let files = files(&site);
    let mut followed = 0;
    for (path, text) in files
        .iter()
        .filter(|(path, _)| path.extension().is_some_and(|end| end == "html"))
    {
        for link in text.split(" href=\"").skip(1) {
            let target = link.split_once('"').unwrap().0;
            if target.starts_with('#') || target.contains("://") {
                continue;
            }
            let to = site.join(path).parent().unwrap().join(target);
            assert!(to.is_file(), "{} -> {target}", path.display());
            followed += 1;
        }
    }
    assert!(followed > 100, "{followed}");
}

#[test]
fn nothing_in_a_site_names_hosts_paths_or_commands_unless_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let lab = directory.path().join("lab");
    drop(labs::lab(&lab, 2));
    let secrets = [
        "secret-host",
        "/home/somebody",
        "secret-option",
        lab.to_str().unwrap(),
    ];
    let (site, open) = (directory.path().join("site"), directory.path().join("open"));
    published(&lab, &site, false);
    for (path, text) in files(&site) {
        for secret in secrets {
            assert!(!text.contains(secret), "{secret} in {}", path.display());
        }
    }
    published(&lab, &open, true);
    let all: String = files(&open).into_values().collect();
    for secret in ["secret-host", "secret-option"] {
        assert!(
            all.contains(secret),
            "{secret} is nowhere although asked for"
        );
    }
}

#[test]
fn what_did_not_change_is_not_touched() {
    let directory = tempfile::tempdir().unwrap();
    let (lab, site) = (directory.path().join("lab"), directory.path().join("site"));
    let mut store = labs::lab(&lab, 2);
    let first = published(&lab, &site, false);
    assert_eq!((first.unchanged, first.removed), (0, 0));
    let old = SystemTime::UNIX_EPOCH;
    for path in files(&site).keys() {
        let file = std::fs::File::options()
            .append(true)
            .open(site.join(path))
            .unwrap();
        file.set_modified(old).unwrap();
    }
    let touched = || -> Vec<String> {
        let all = files(&site).into_keys();
        let changed = all.filter(|path| {
            std::fs::metadata(site.join(path))
                .unwrap()
                .modified()
                .unwrap()
                != old
        });
        changed.map(|path| path.display().to_string()).collect()
    };
    let again = published(&lab, &site, false);
    assert_eq!((again.written, again.unchanged), (0, first.written));
    assert_eq!(touched(), Vec::<String>::new());
    withdraw(&mut store, &run_name(1));
    published(&lab, &site, false);
    let changed = touched();
    for wanted in [format!("run/{}.html", run_name(1)), "index.html".to_owned()] {
        assert!(changed.contains(&wanted), "{wanted} not in {changed:?}");
    }
    let home = std::fs::read_to_string(site.join("index.html")).unwrap();
    assert!(home.contains("withdrawn") && home.contains("a backup ran"));
}

fn withdraw(store: &mut Store, run: &str) {
    let withdrawal = Invalidation {
        cell: None,
        reason: "a backup ran".to_owned(),
        at_unix_ms: 5,
    };
    store.invalidate(run, &withdrawal).unwrap();
}

#[test]
fn pages_of_what_is_gone_are_removed_and_files_of_others_stay() {
    let directory = tempfile::tempdir().unwrap();
    let site = directory.path().join("site");
    drop(labs::lab(&directory.path().join("two"), 2));
    drop(labs::lab(&directory.path().join("one"), 1));
    published(&directory.path().join("two"), &site, false);
    std::fs::write(site.join("CNAME"), "mine").unwrap();
    let json = format!("api/v1/run/{}.json", run_name(1));
    std::fs::write(site.join(&json), "changed by hand").unwrap();
    let done = published(&directory.path().join("one"), &site, false);
    assert!(done.removed >= 1, "{done:?}");
    assert!(
        !site
            .join("run")
            .join(format!("{}.html", run_name(1)))
            .exists()
    );
    assert!(site.join("CNAME").exists() && site.join(&json).exists());
}

#[test]
fn a_folder_of_somebody_else_is_refused_and_stays_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let (lab, site) = (directory.path().join("lab"), directory.path().join("site"));
    drop(labs::lab(&lab, 1));
    std::fs::create_dir(&site).unwrap();
    std::fs::write(site.join("index.html"), "mine").unwrap();
    let mut opened = Lab::open(&lab, false).unwrap();
    let refused = publish(&mut opened, &site, None).unwrap_err();
    assert!(
        refused.error.contains("is not a site of deltabench"),
        "{refused}"
    );
    assert_eq!(files(&site).into_values().collect::<Vec<_>>(), ["mine"]);
    let refused = publish(&mut opened, &directory.path().join("new"), Some("none")).unwrap_err();
    assert!(refused.error.contains("no execution none"), "{refused}");
    assert!(!directory.path().join("new").exists());
}

#[test]
fn a_lab_that_is_measured_is_not_published() {
    let directory = tempfile::tempdir().unwrap();
    let lab = directory.path().join("lab");
    let store = labs::lab(&lab, 1);
    let lock = store.lock_run("r").unwrap();
    let mut opened = Lab::open(&lab, false).unwrap();
    let site = directory.path().join("site");
    let refused = publish(&mut opened, &site, None).unwrap_err();
    assert!(refused.detail.unwrap().contains("r is measured now"));
    let run = Route::Run(run_name(0));
    let report = page(&mut opened, &run, false).unwrap().expect("a page");
    assert!(report.later && report.text.contains("after the run"));
    drop(lock);
    opened.refresh().unwrap();
    let report = page(&mut opened, &run, false).unwrap().expect("a page");
    assert!(!report.later && report.text.contains("What the verdicts rest on"));
}

/// Not a check: writes what `scripts/test-web` opens.
#[test]
fn pages_for_browsers_can_be_written() {
    let Ok(pages) = std::env::var("DELTABENCH_PAGES") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let mut store = labs::lab(directory.path(), 30);
    withdraw(&mut store, &run_name(7));
    // 18.9 was slower in run 9.
    labs::again(&mut store, (&run_name(0xffff), 9), 40, 0.95);
    crate::over_time::annotate(&mut store);
    published(directory.path(), &Path::new(&pages).join("lab"), true);
    let run = "20261201-000000-aaaa";
    labs::add(&mut store, (run, &labs::plan(0)), 1_796_083_200_000);
    // Without it the run counts as killed.
    let _lock = store.lock_run(run).unwrap();
    let mut lab = Lab::open(directory.path(), true).unwrap();
    let live = page(&mut lab, &Route::Live(run.to_owned()), false)
        .unwrap()
        .expect("a page");
    std::fs::write(Path::new(&pages).join("live.html"), live.text).unwrap();
}
