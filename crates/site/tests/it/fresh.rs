//! A site that is brought up to date has the bytes of one that is made anew, whatever happened meanwhile.

use crate::kept::{STEPS, happen};
use crate::published::files;
use deltabench_model::fact::MachineName;
use deltabench_model::installation::{Installation, Recipe};
use deltabench_model::plan::Role;
use deltabench_site::{Lab, Places, Published, Route, publish};
use deltabench_store::{RunState, Store};
use deltabench_testkit::labs::{self, run_name};
use deltabench_testkit::small_run;
use std::path::{Path, PathBuf};

/// How a lab is published.
#[derive(Clone, Copy)]
struct How {
    shows_hosts: bool,
    places: Places,
}

const PLAIN: How = How {
    shows_hosts: false,
    places: |_| Vec::new(),
};

fn brought_up_to_date(lab: &Path, site: &Path, how: How) -> Published {
    let lab = Lab::open(lab, how.shows_hosts).unwrap();
    publish(&mut lab.with_places(how.places), site, None).unwrap()
}

/// Brings a site up to date, compares it with one that is made anew, and brings it up to date once more.
fn is_as_fresh(lab: &Path, site: &Path, how: How, what: &str) {
    brought_up_to_date(lab, site, how);
    let directory = tempfile::tempdir().unwrap();
    let fresh = directory.path().join("site");
    brought_up_to_date(lab, &fresh, how);
    let (own, fresh) = (files(site), files(&fresh));
    assert!(own.keys().eq(fresh.keys()), "{what}: other files");
    for (path, text) in &own {
        assert!(*text == fresh[path], "{what}: {}", path.display());
    }
    let again = brought_up_to_date(lab, site, how);
    assert_eq!((again.written, again.removed), (0, 0), "{what}");
    // All but the list of files.
    let files = u64::try_from(own.len() - 1).unwrap();
    assert_eq!(again.unchanged, files, "{what}");
}

#[test]
fn after_a_publish_that_was_killed_all_pages_are_looked_at() {
    let (lab, site) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    labs::lab(lab.path(), 4);
    brought_up_to_date(lab.path(), site.path(), PLAIN);
    // It has written pages of the same length, of a list and of a run, and not yet what they follow from.
    let run = format!("run/{}.html", run_name(2));
    let pages = ["runs.html", &run].map(|name| site.path().join(name));
    let known = pages
        .clone()
        .map(|path| std::fs::read_to_string(path).unwrap());
    let other = known.clone().map(|text| text.replacen("html", "HTML", 1));
    let write = || {
        for (path, text) in pages.iter().zip(&other) {
            std::fs::write(path, text).unwrap();
        }
    };
    write();
    brought_up_to_date(lab.path(), site.path(), PLAIN);
    let read = || {
        pages
            .clone()
            .map(|path| std::fs::read_to_string(path).unwrap())
    };
    assert_eq!(
        read(),
        other,
        "nobody looks at what nobody may have written"
    );
    std::fs::write(site.path().join("deltabench-site.unfinished"), "").unwrap();
    is_as_fresh(lab.path(), site.path(), PLAIN, "after it was killed");
    assert_eq!(read(), known);
}

/// A run of two builds of a repository.
fn add_commit(store: &mut Store, name: &str, (hour, commit): (i64, &str)) {
    let mut plan = labs::plan(20);
    let build = |build: &mut Installation, commit: &str| {
        build.asked = format!("git:/src/pg@{commit}+o2");
        build.resolved = format!("git:{commit}");
        build.binary_sha256 = format!("{commit:0<64}");
        build.recipe = Some(Recipe {
            variant: "o2".to_owned(),
            source: commit.to_owned(),
            system: "meson".to_owned(),
            options: Vec::new(),
            cflags: String::new(),
            ldflags: String::new(),
            compiler: String::new(),
            environment: Vec::new(),
        });
    };
    for server in &mut plan.servers {
        match server.role {
            Role::Candidate => build(&mut server.installation, commit),
            _ => build(&mut server.installation, "aaaa"),
        }
    }
    let began = 1_793_600_000_000 + hour * 3_600_000;
    labs::add(store, (name, &plan), began);
    small_run::keep(store, name, [0.9, 1.0, 1.0]);
    store
        .finish_run(name, RunState::Finished, began + 600_000)
        .unwrap();
}

fn commits(in_order: &[&str]) -> Vec<String> {
    in_order.iter().map(|one| (*one).to_owned()).collect()
}

#[test]
fn a_site_has_the_bytes_of_a_fresh_one_whatever_happens_to_the_lab() {
    let directory = tempfile::tempdir().unwrap();
    let (lab, site) = (directory.path().join("lab"), directory.path().join("site"));
    let mut store = labs::lab(&lab, 10);
    let mut runs: Vec<String> = (0..10).map(run_name).collect();
    is_as_fresh(&lab, &site, PLAIN, "new");
    for step in 0..STEPS {
        happen(step, &mut store, &mut runs);
        is_as_fresh(&lab, &site, PLAIN, &format!("step {step}"));
    }
    // A word that stands in lists is the name of a machine from now on.
    let list = std::fs::read_to_string(site.join("changes.html")).unwrap();
    assert!(list.contains(">raised by<"));
    let machine = MachineName("raised".to_owned());
    store
        .add_fact(&run_name(5), (None, None), &machine)
        .unwrap();
    is_as_fresh(&lab, &site, PLAIN, "the name of a machine");
    let list = std::fs::read_to_string(site.join("changes.html")).unwrap();
    assert!(!list.contains("raised") && list.contains(">(host) by<"));
    for text in ["<main>one</main>", "<main>two</main>"] {
        std::fs::write(lab.join("replay-1.html"), text).unwrap();
        is_as_fresh(&lab, &site, PLAIN, text);
    }
    std::fs::remove_file(lab.join("replay-1.html")).unwrap();
    is_as_fresh(&lab, &site, PLAIN, "a replay that is gone");
    let shown = How {
        shows_hosts: true,
        ..PLAIN
    };
    is_as_fresh(&lab, &site, shown, "hosts are shown");
    is_as_fresh(&lab, &site, PLAIN, "hosts are not shown any more");
}

#[test]
fn another_order_of_commits_makes_lists_again() {
    let directory = tempfile::tempdir().unwrap();
    let (lab, site) = (directory.path().join("lab"), directory.path().join("site"));
    let mut store = labs::lab(&lab, 2);
    for (number, hour, commit) in [(0xd001, 1, "bbbb"), (0xd002, 2, "cccc")] {
        add_commit(&mut store, &run_name(number), (hour, commit));
    }
    let orders: [Places; 3] = [
        |_| Vec::new(),
        |_| commits(&["aaaa", "bbbb", "cccc"]),
        |_| commits(&["aaaa", "cccc", "bbbb"]),
    ];
    let mut seen = Vec::new();
    for places in orders {
        is_as_fresh(&lab, &site, How { places, ..PLAIN }, "an order");
        let trends = std::fs::read_to_string(site.join("trends.html")).unwrap();
        let of_cell = files(&site).into_iter();
        let of_cell = of_cell.filter(|(path, _)| path.starts_with("trend"));
        seen.push((trends, of_cell.map(|(_, text)| text).collect::<String>()));
    }
    assert!(seen[0] != seen[1] && seen[1] != seen[2]);
}

#[test]
fn a_list_that_was_cut_off_or_is_gone_is_made_again_and_others_are_not_looked_at() {
    let directory = tempfile::tempdir().unwrap();
    let (lab, site) = (directory.path().join("lab"), directory.path().join("site"));
    drop(labs::lab(&lab, 3));
    is_as_fresh(&lab, &site, PLAIN, "new");
    let list = site.join(PathBuf::from(Route::Runs.file()));
    let text = std::fs::read_to_string(&list).unwrap();
    std::fs::write(&list, &text[..99]).unwrap();
    is_as_fresh(&lab, &site, PLAIN, "cut off");
    std::fs::remove_file(&list).unwrap();
    is_as_fresh(&lab, &site, PLAIN, "gone");
    // Nothing that it follows from has changed, so it is not made: this is what saves time.
    std::fs::write(&list, text.to_uppercase()).unwrap();
    let again = brought_up_to_date(&lab, &site, PLAIN);
    assert_eq!(again.written, 0);
    assert_eq!(std::fs::read_to_string(&list).unwrap(), text.to_uppercase());
}
