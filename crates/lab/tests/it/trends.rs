//! Versions over all runs of a machine.

use deltabench_compare::comparison::{Metric, Verdict};
use deltabench_lab::{HostTrend, Judged, Judging, KnownRuns, PastRuns, series_of, trends};
use deltabench_model::finding::{Finding, FindingKind, Severity};
use deltabench_model::installation::{Installation, Origin, Recipe};
use deltabench_model::invalidation::Invalidation;
use deltabench_model::occasion::{HostClass, HostIdentity, Occasion};
use deltabench_model::plan::{CellId, Plan, Role, ServerId, Stopping};
use deltabench_model::slice::Slice;
use deltabench_store::{AnchorChange, RunState, Store};
use deltabench_testkit::small_run;
use deltabench_trend::{End, State, Way};
use std::collections::BTreeSet;

const MINUTE: i64 = 60_000;

struct Lab {
    store: Store,
    _place: tempfile::TempDir,
}

/// A plan of 17.`from` against 17.`to`.
fn plan(from: u32, to: u32) -> Plan {
    let mut plan = small_run::plan();
    for (server, minor) in plan.servers.iter_mut().zip([from, from, to]) {
        let build = &mut server.installation;
        build.origin = Origin::Prebuilt;
        build.version_num = 170_000 + minor;
        build.resolved = format!("postgres:17.{minor}");
        build.binary_sha256 = format!("{minor:04}");
    }
    plan
}

/// The same, measured by a night.
fn night(from: u32, to: u32) -> Plan {
    let words = [
        "deltabench",
        "--lab",
        "compare",
        "nightly",
        "--anchor",
        "x",
        "y",
    ];
    Plan {
        command: words.map(str::to_owned).to_vec(),
        ..plan(from, to)
    }
}

fn occasion(uid: &str, kernel: &str) -> Occasion {
    Occasion {
        host: HostIdentity {
            uid: uid.to_owned(),
            class: HostClass {
                cores: 2,
                virtual_machine: Some(true),
                ..HostClass::default()
            },
            kernel: Some(kernel.to_owned()),
            microcode: None,
        },
        uid: format!("run on {uid}"),
        boot_id: None,
        measurement_version: 1,
        at_unix_ms: 0,
    }
}

impl Lab {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let store = Store::open(place.path()).unwrap();
        Self {
            store,
            _place: place,
        }
    }

    /// A run of five minutes from this minute on, on host `a`.
    fn run(&mut self, name: &str, plan: &Plan, minute: i64, share: f64) {
        self.run_on(name, plan, minute, share, &occasion("a", "6.1"));
    }

    fn run_on(&mut self, name: &str, plan: &Plan, minute: i64, share: f64, on: &Occasion) {
        let store = &mut self.store;
        store
            .create_run(name, plan, RunState::Running, minute * MINUTE)
            .unwrap();
        let series = series_of(plan, |name| Some(name.to_owned()));
        store.add_occasion(name, on, &series).unwrap();
        small_run::keep(store, name, [share, 1.0, 1.0]);
        let end = (minute + 5) * MINUTE;
        store.finish_run(name, RunState::Finished, end).unwrap();
    }

    /// A run whose report does not trust the first cell, because the placebo is slower there, too.
    fn with_a_placebo_that_is_off(&mut self, name: &str, plan: &Plan, minute: i64) {
        let store = &mut self.store;
        let (begun, ended) = (minute * MINUTE, (minute + 5) * MINUTE);
        store
            .create_run(name, plan, RunState::Running, begun)
            .unwrap();
        let series = series_of(plan, |name| Some(name.to_owned()));
        store
            .add_occasion(name, &occasion("a", "6.1"), &series)
            .unwrap();
        let all = small_run::slices([0.9, 1.0, 1.0]);
        let visit = |slice: &Slice| (slice.block, slice.cell);
        for own in all.chunk_by(|one, next| visit(one) == visit(next)) {
            let (block, cell) = visit(&own[0]);
            store.begin_visit(name, cell, block).unwrap();
            for slice in own {
                let mut slice = slice.clone();
                if (slice.server, cell) == (ServerId(1), CellId(0)) {
                    slice.duration_ns += slice.duration_ns / 9;
                }
                store.append(name, &slice).unwrap();
            }
            store.commit_visit(name, cell, block).unwrap();
        }
        store.finish_run(name, RunState::Finished, ended).unwrap();
        let judged = Judged::of(name, plan, store).unwrap().into_comparison();
        assert_eq!(judged.cells[0].verdict, Verdict::Unfit);
        assert!(judged.host_ok);
    }

    fn trends(&self) -> Vec<HostTrend> {
        trends(&self.store, &[Metric::Throughput], &|_| Vec::new()).unwrap()
    }

    /// State of each change on the first host, with the names of its versions.
    fn changes(&self) -> Vec<(String, State)> {
        let hosts = self.trends();
        let Some(host) = hosts.first() else {
            return Vec::new();
        };
        let name = |at: usize| host.versions[at].name.replace("postgres:", "");
        let all = host.changes.iter().map(|change| &change.suspicion);
        all.map(|one| (format!("{} {}", name(one.from), name(one.to)), one.state))
            .collect()
    }
}

fn told(pairs: &[(&str, State)]) -> Vec<(String, State)> {
    pairs
        .iter()
        .map(|(ends, state)| ((*ends).to_owned(), *state))
        .collect()
}

#[test]
fn a_later_run_confirms_what_one_has_found() {
    let mut lab = Lab::new();
    lab.run("r1", &plan(2, 6), 0, 0.9);
    assert_eq!(lab.changes(), told(&[("17.2 17.6", State::Suspected)]));
    let id = lab.trends()[0].changes[0].id.clone();
    // It began four minutes after the end of the other one.
    lab.run("r2", &plan(2, 6), 9, 0.9);
    assert_eq!(lab.changes(), told(&[("17.2 17.6", State::Suspected)]));
    lab.run("r3", &plan(2, 6), 60, 0.92);
    assert_eq!(lab.changes(), told(&[("17.2 17.6", State::Confirmed)]));
    let host = &lab.trends()[0];
    let change = &host.changes[0];
    assert_eq!(change.id, id, "a change keeps its name");
    let found = change.suspicion.found.unwrap().change;
    assert!(
        (found.value - 0.92_f64.ln()).abs() < 0.002,
        "that of the try: {found:?}"
    );
    let level = host
        .network(change.suspicion.series, 0)
        .unwrap()
        .level(1)
        .unwrap();
    assert_eq!(level.runs, 2, "r2 has the luck of r1");
}

/// Base, placebo, the version of the night before and the new one, with what the new one has of the base's
/// throughput in three cells.
fn of_three(lab: &mut Lab, name: &str, minute: i64, (blocks, new): (u32, [f64; 3])) {
    let mut plan = night(2, 6);
    let mut before = plan.servers[2].clone();
    before.installation = plan_of(5);
    plan.servers.insert(2, before);
    plan.timing.blocks = 14;
    plan.stopping = Stopping::Sequential {
        looks: vec![6, 10, 14],
    };
    let store = &mut lab.store;
    store
        .create_run(name, &plan, RunState::Running, minute * MINUTE)
        .unwrap();
    let series = series_of(&plan, |name| Some(name.to_owned()));
    store
        .add_occasion(name, &occasion("a", "6.1"), &series)
        .unwrap();
    let shares = new.map(|new| vec![1.0, 1.0, new]);
    // The seventh and the eighth block are apart: no difference is clear after them, and it takes all six.
    let luck = |block: u32, server: u32| match (block, server, (block + server) % 3) {
        (6, 3, _) => 1.06,
        (7, 3, _) => 0.94,
        (_, _, 0) => 1.002,
        (_, _, 1) => 0.998,
        _ => 1.0,
    };
    small_run::keep_blocks(store, (name, blocks), (&shares, &luck));
    let end = (minute + 5) * MINUTE;
    store.finish_run(name, RunState::Finished, end).unwrap();
}

fn plan_of(minor: u32) -> Installation {
    plan(minor, minor).servers[0].installation.clone()
}

#[test]
fn a_step_is_seen_although_a_look_gave_the_version_before_its_answer() {
    let mut lab = Lab::new();
    of_three(&mut lab, "r1", 0, (12, [0.9, 1.0, 1.0]));
    let found = lab.changes();
    assert_eq!(found, told(&[("17.5 17.6", State::Suspected)]));
    let judged = Judged::of("r1", &lab.store.plan("r1").unwrap(), &lab.store).unwrap();
    let cells = judged.into_comparison().cells;
    let blocks = |candidate: u32| {
        let mut own = cells.iter().filter(|cell| cell.cell == CellId(0));
        let cell = own
            .find(|cell| cell.candidate == ServerId(candidate))
            .unwrap();
        (cell.verdict, cell.metrics[0].numbers.clone())
    };
    assert_eq!(blocks(2), (Verdict::NoChange, (0..6).collect()));
    assert_eq!(blocks(3), (Verdict::Regression, (6..12).collect()));
}

#[test]
fn the_cells_of_a_night_have_a_mean() {
    let mut lab = Lab::new();
    of_three(&mut lab, "r1", 0, (12, [0.93, 0.92, 0.94]));
    let host = lab.trends().remove(0);
    let names: Vec<&str> = host.cells.iter().map(|cell| cell.name.as_str()).collect();
    let cells = ["point-query@1", "point-query@4", "update-index@1"];
    assert_eq!(names[..3], cells);
    assert_eq!(names[3], "geometric mean of 3 cells");
    assert_eq!(host.cells[3].members, [0, 1, 2]);
    assert_eq!(host.single_cells().collect::<Vec<_>>(), [0, 1, 2]);
    let workloads = ["point-query", "update-index"].map(str::to_owned);
    assert_eq!(host.workloads(3), BTreeSet::from(workloads));
    let level = |version| host.network(3, 0).unwrap().level(version).unwrap().change;
    let mean = (0.93_f64.ln() + 0.92_f64.ln() + 0.94_f64.ln()) / 3.0;
    assert!((level(2).value - mean).abs() < 0.002 && level(1).value.abs() < 0.002);
    let series: Vec<usize> = { host.changes.iter() }
        .map(|one| one.suspicion.series)
        .collect();
    assert_eq!(series, [0, 1, 2, 3]);
    // A comparison of the same cells counts for it, and has none by itself.
    let mut alone = Lab::new();
    alone.run("c1", &plan(5, 6), 0, 0.93);
    assert_eq!(alone.trends()[0].cells.len(), 3);
    lab.run("c1", &plan(5, 6), 60, 0.93);
    assert_eq!(lab.trends()[0].runs_of(3), 2);
}

#[test]
fn a_night_that_lacks_a_cell_has_no_mean() {
    let mut lab = Lab::new();
    let mut plan = night(2, 6);
    let mut further = plan.cells[0].clone();
    further.clients = 8;
    plan.cells.push(further);
    let store = &mut lab.store;
    store.create_run("r1", &plan, RunState::Running, 0).unwrap();
    let series = series_of(&plan, |name| Some(name.to_owned()));
    store
        .add_occasion("r1", &occasion("a", "6.1"), &series)
        .unwrap();
    small_run::keep_of(store, "r1", &[0.99; 4]);
    store
        .finish_run("r1", RunState::Finished, 5 * MINUTE)
        .unwrap();
    let cells = |lab: &Lab| -> Vec<String> {
        let host = lab.trends().remove(0);
        host.cells.into_iter().map(|cell| cell.name).collect()
    };
    let whole = cells(&lab);
    assert_eq!(whole[4], "geometric mean of 4 cells");
    let withdrawn = Invalidation {
        cell: Some(CellId(1)),
        reason: "a backup ran".to_owned(),
        at_unix_ms: 5,
    };
    lab.store.invalidate("r1", &withdrawn).unwrap();
    let left = ["point-query@1", "update-index@1", "point-query@8"];
    assert_eq!(cells(&lab), left, "three would be enough for another mean");
}

#[test]
fn a_night_tries_what_is_measured_today() {
    let mut lab = Lab::new();
    let old = night(2, 6);
    lab.run("r1", &old, 0, 0.9);
    let other = |to: u32, rows: u64| {
        let mut other = night(2, to);
        other.data.rows += rows;
        other
    };
    let beside = |lab: &Lab| {
        let host = lab.trends().remove(0);
        let base = { host.versions.iter() }.find(|version| version.name == "postgres:17.2");
        host.series_beside(&base.unwrap().identity)
    };
    assert_eq!(beside(&lab), BTreeSet::from([0, 1, 2, 3]));
    lab.run("r2", &other(7, 1), 60, 1.0);
    assert_eq!(beside(&lab), BTreeSet::from([4, 5, 6, 7]), "other data");
    // What has no version of its own is a try, and makes no mean of what it measures.
    lab.run("try", &other(7, 2), 120, 1.0);
    assert_eq!(lab.trends()[0].cells.len(), 11);
}

#[test]
fn unfit_and_withdrawn_runs_and_those_on_purpose_neither_raise_nor_confirm() {
    let mut lab = Lab::new();
    lab.run("r1", &plan(2, 6), 0, 0.9);
    lab.run("unfit", &plan(2, 6), 60, 0.9);
    let unfit = Finding::new(FindingKind::OtherLoad, Severity::Unfit, "somebody compiles");
    lab.store.add_finding("unfit", &unfit).unwrap();
    lab.run("whole", &plan(2, 6), 120, 0.9);
    lab.run("cell", &plan(2, 6), 180, 0.9);
    lab.with_a_placebo_that_is_off("placebo", &plan(2, 6), 210);
    let withdrawn = |cell| Invalidation {
        cell,
        reason: "a backup ran".to_owned(),
        at_unix_ms: 5,
    };
    lab.store.invalidate("whole", &withdrawn(None)).unwrap();
    let cell = withdrawn(Some(CellId(0)));
    lab.store.invalidate("cell", &cell).unwrap();
    let mut slowed = plan(2, 2);
    slowed.servers[2].burn_ns = Some(500);
    lab.run("slowed", &slowed, 240, 0.9);
    assert_eq!(lab.changes(), told(&[("17.2 17.6", State::Suspected)]));
    assert_eq!(lab.trends()[0].versions.len(), 2);
    // The one that raised it is withdrawn: what is left is the first to have found it.
    lab.run("r2", &plan(2, 6), 300, 0.9);
    assert_eq!(lab.changes(), told(&[("17.2 17.6", State::Confirmed)]));
    lab.store.invalidate("r1", &withdrawn(None)).unwrap();
    assert_eq!(lab.changes(), told(&[("17.2 17.6", State::Suspected)]));
}

#[test]
fn machines_are_apart_and_kernels_of_one_are_together() {
    let mut lab = Lab::new();
    lab.run_on("a1", &plan(2, 6), 0, 0.9, &occasion("a", "6.1"));
    lab.run_on("b1", &plan(2, 6), 60, 0.9, &occasion("b", "6.1"));
    let hosts = lab.trends();
    let names: Vec<&str> = hosts.iter().map(|host| host.machine.as_str()).collect();
    assert_eq!(names, ["b", "a"], "that of the newest run first");
    assert!(hosts.iter().all(|host| host.changes.len() == 1));
    lab.run_on("a2", &plan(2, 6), 120, 0.9, &occasion("a", "6.2"));
    assert_eq!(lab.changes(), told(&[("17.2 17.6", State::Confirmed)]));
    lab.run_on("a3", &plan(2, 6), 180, 0.9, &occasion("a", "6.1"));
    let host = lab.trends().remove(0);
    let changed: Vec<(i64, &str)> = { host.host_changes.iter() }
        .map(|one| (one.at_unix_ms / MINUTE, one.what.as_str()))
        .collect();
    let wanted = [(120, "kernel 6.1 to 6.2"), (180, "kernel 6.2 to 6.1")];
    assert_eq!(changed, wanted);
}

/// A build of a commit.
fn commit(build: &mut Installation, id: &str) {
    build.origin = Origin::Built;
    build.asked = "git:/src/pg@master+o2".to_owned();
    build.resolved = format!("pg@{id}+o2");
    build.binary_sha256 = id.to_owned();
    build.version_num = 190_000;
    build.recipe = Some(Recipe {
        variant: "o2".to_owned(),
        source: id.to_owned(),
        system: "meson".to_owned(),
        options: Vec::new(),
        cflags: String::new(),
        ldflags: String::new(),
        compiler: String::new(),
        environment: Vec::new(),
    });
}

#[test]
fn commits_have_the_order_of_their_history_or_the_answer_says_that_it_is_not_known() {
    let mut lab = Lab::new();
    // The older commit is measured later, as in a bisection.
    for (run, minute, ids) in [("r1", 0, ["c1", "c3"]), ("r2", 60, ["c3", "c2"])] {
        let mut plan = plan(0, 0);
        for (server, id) in plan.servers.iter_mut().zip([ids[0], ids[0], ids[1]]) {
            commit(&mut server.installation, id);
        }
        lab.run(run, &plan, minute, 1.0);
    }
    let names = |host: &HostTrend| -> Vec<String> {
        host.versions.iter().map(|one| one.name.clone()).collect()
    };
    let known = |_: &[&Installation]| ["c0", "c1", "c2", "c3"].map(str::to_owned).to_vec();
    let hosts = trends(&lab.store, &[Metric::Throughput], &known).unwrap();
    assert_eq!(names(&hosts[0]), ["pg@c1+o2", "pg@c2+o2", "pg@c3+o2"]);
    assert!(hosts[0].unplaced.is_empty());
    let lost = lab.trends().remove(0);
    assert_eq!(lost.unplaced.len(), 3);
    let lines: BTreeSet<&str> = lost.versions.iter().map(|one| one.line.as_str()).collect();
    assert_eq!(lines.len(), 3, "no steps between commits without a place");
}

#[test]
fn the_version_of_the_night_before_is_the_last_of_its_line_beside_the_anchor() {
    let mut lab = Lab::new();
    lab.run("n1", &night(0, 8), 0, 1.0);
    lab.run("n2", &night(0, 6), 60, 1.0);
    lab.run("other", &night(2, 9), 120, 1.0);
    // A try of the anchor and an old version.
    lab.run("try", &night(0, 8), 150, 1.0);
    // Somebody looks at another version, with the same anchor.
    lab.run("by hand", &plan(0, 5), 180, 1.0);
    let host = &lab.trends()[0];
    let anchor = &host.versions[0].identity;
    let new = plan(9, 9).servers.remove(2);
    // A night with another anchor is one, although the first anchor has measured its version.
    lab.run("n3", &night(2, 6), 240, 1.0);
    let later = &lab.trends()[0];
    let other = { later.versions.iter() }.find(|version| version.name == "postgres:17.2");
    let beside = later.last_beside(&other.unwrap().identity, &new, |_| true);
    assert_eq!(later.versions[beside.unwrap()].name, "postgres:17.6");
    let name = |at: Option<usize>| at.map(|at| host.versions[at].name.clone());
    let last = host.last_beside(anchor, &new, |_| true);
    assert_eq!(name(last).as_deref(), Some("postgres:17.6"));
    let other = host.last_beside(anchor, &new, |one| Some(&one.name) != name(last).as_ref());
    assert_eq!(name(other).as_deref(), Some("postgres:17.8"));
    let mut branch = new.clone();
    branch.installation.version_num = 180_001;
    assert!(host.last_beside(anchor, &branch, |_| true).is_none());
    let any = host.last_beside_any(anchor);
    assert_eq!(name(any).as_deref(), Some("postgres:17.6"));
    assert!(host.last_beside_any("another").is_none());
    let mut settings = new;
    settings.settings.push(("jit".to_owned(), "on".to_owned()));
    assert!(host.last_beside(anchor, &settings, |_| true).is_none());
    assert_eq!(host.ended_ms(), Some(185 * MINUTE));
    // Three cells and their mean.
    assert_eq!(host.series_beside(anchor).len(), 4);
    assert_eq!(host.disturbed(|_| true), (0, 15));
    assert!(host.has_step(anchor) && !host.has_step("another"));
}

#[test]
fn two_branches_on_a_virtual_machine_are_compared_with_more_room_for_other_hours() {
    let error = |branch: u32| {
        let mut lab = Lab::new();
        let mut plan = plan(0, 3);
        for server in &mut plan.servers {
            if server.role == Role::Candidate {
                server.installation.version_num += (branch - 17) * 10_000;
            }
        }
        lab.run("r1", &plan, 0, 0.9);
        let host = &lab.trends()[0];
        let [from, to] = [0, 1].map(|version| End { version, run: None });
        let cells = host.compare(from, to);
        assert!(cells[0].pair.assumed);
        cells[0].pair.found.error
    };
    let (near, far) = (error(17), error(18));
    assert!(far > 1.4 * near, "{near} {far}");
}

#[test]
fn any_two_versions_are_compared_through_what_connects_them() {
    let mut lab = Lab::new();
    lab.run("r1", &plan(0, 3), 0, 0.9);
    lab.run("r2", &plan(0, 5), 60, 1.0);
    lab.run("r3", &plan(8, 9), 120, 1.0);
    let host = &lab.trends()[0];
    let at = |minor: u32| {
        let name = format!("postgres:17.{minor}");
        let version = host
            .versions
            .iter()
            .position(|one| one.name == name)
            .unwrap();
        End { version, run: None }
    };
    let cells = host.compare(at(5), at(3));
    assert_eq!(cells.len(), 3);
    assert_eq!(cells[0].verdict, Verdict::Regression, "the surest first");
    assert_eq!(cells[0].pair.way, Way::Through(vec![at(0).version]));
    assert!((cells[0].pair.found.value - 0.9_f64.ln()).abs() < 0.005);
    assert_eq!(host.compare(at(3), at(5))[0].verdict, Verdict::Improvement);
    assert!(
        host.compare(at(3), at(9)).is_empty(),
        "nothing connects them"
    );
    assert_eq!(host.cells_of(at(3)).len(), 3);
    assert!(host.met().contains(&(at(0).version, at(3).version)));
}

#[test]
fn what_is_known_of_runs_is_kept_and_withdrawals_are_seen() {
    let mut lab = Lab::new();
    lab.run("r1", &plan(2, 6), 0, 0.9);
    let mut known = KnownRuns::new(&[Metric::Throughput]);
    let read = |known: &mut KnownRuns, store: &Store, goes_on: bool| {
        let past = PastRuns::read(store).unwrap();
        known
            .read(&past, store, Judging::While(&|| goes_on))
            .unwrap()
    };
    assert_eq!(
        read(&mut known, &lab.store, false),
        1,
        "it must not judge yet"
    );
    assert!(known.trends(None, &|_| Vec::new()).is_empty());
    assert_eq!(read(&mut known, &lab.store, true), 0);
    assert_eq!(known.trends(None, &|_| Vec::new())[0].changes.len(), 1);
    // Nothing new: nothing to judge.
    assert_eq!(read(&mut known, &lab.store, false), 0);
    let withdrawn = Invalidation {
        cell: None,
        reason: "a backup ran".to_owned(),
        at_unix_ms: 5,
    };
    lab.store.invalidate("r1", &withdrawn).unwrap();
    assert_eq!(
        read(&mut known, &lab.store, false),
        1,
        "it is another one now"
    );
    assert_eq!(read(&mut known, &lab.store, true), 0);
    assert!(known.trends(None, &|_| Vec::new()).is_empty());
}

#[test]
fn levels_stay_relative_to_the_first_anchor_of_a_chain() {
    let mut lab = Lab::new();
    lab.run("n1", &night(0, 6), 0, 1.0);
    lab.run("both", &plan(0, 2), 60, 1.0);
    for night in 0..3 {
        lab.run(
            &format!("later{night}"),
            &plan(2, 7 + night),
            120 + 60 * i64::from(night),
            1.0,
        );
    }
    let base = |host: &HostTrend| host.versions[host.usual_base(0).unwrap()].name.clone();
    let host = lab.trends().remove(0);
    assert_eq!(base(&host), "postgres:17.2", "most runs have it");
    let identity = |minor: u32| {
        let name = format!("postgres:17.{minor}");
        let mut all = host.versions.iter();
        all.find(|one| one.name == name).unwrap().identity.clone()
    };
    let follows = |host: &str| AnchorChange {
        host: host.to_owned(),
        before: identity(0),
        after: identity(2),
        at_unix_ms: 1,
    };
    lab.store
        .replace_anchor(&follows("another machine"))
        .unwrap();
    assert_eq!(base(&lab.trends()[0]), "postgres:17.2");
    lab.store.replace_anchor(&follows("a")).unwrap();
    let host = lab.trends().remove(0);
    assert_eq!(base(&host), "postgres:17.0");
    // The night before is found across the two.
    let new = plan(9, 6).servers.remove(2);
    let last = host.last_beside(&identity(2), &new, |one| one.name == "postgres:17.6");
    assert_eq!(
        last.map(|at| host.versions[at].name.as_str()),
        Some("postgres:17.6")
    );
}

#[test]
fn only_the_command_itself_makes_a_night() {
    let is_night = |line: &str| {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        deltabench_lab::is_night(&words)
    };
    assert!(is_night(
        "deltabench --lab compare --offline nightly --anchor a b -- --quick"
    ));
    assert!(!is_night("deltabench --lab nightly compare a b"));
    assert!(!is_night("deltabench compare nightly b"));
    assert!(!is_night("deltabench"));
}
