//! Columns that earlier runs stand for.

use deltabench_compare::comparison::{Metric, Verdict};
use deltabench_compare::study::ViaFigure;
use deltabench_lab::{Reused, reused, series_of, through};
use deltabench_model::fact::Settings;
use deltabench_model::installation::{Origin, Setting};
use deltabench_model::occasion::{HostClass, HostIdentity, Occasion};
use deltabench_model::plan::{CellId, Plan, ServerId};
use deltabench_store::{RunState, Store};
use deltabench_testkit::small_run;

const MINUTE: i64 = 60_000;

/// A plan of 17.`from` against another version.
fn plan(from: u32, to: (u32, u32)) -> Plan {
    let mut plan = small_run::plan();
    let versions = [(17, from), (17, from), to];
    for (server, (major, minor)) in plan.servers.iter_mut().zip(versions) {
        let build = &mut server.installation;
        build.origin = Origin::Prebuilt;
        build.version_num = major * 10_000 + minor;
        build.resolved = format!("postgres:{major}.{minor}");
        build.binary_sha256 = format!("{major}{minor:04}");
    }
    plan
}

struct Lab {
    store: Store,
    _place: tempfile::TempDir,
}

/// Where and how a run is measured.
#[derive(Clone, Copy)]
struct Measured {
    machine: &'static str,
    way: u32,
    /// `work_mem` of the base as read back.
    work_mem: &'static str,
}

const HERE: Measured = Measured {
    machine: "a",
    way: 2,
    work_mem: "4MB",
};

impl Lab {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let store = Store::open(place.path()).unwrap();
        Self {
            store,
            _place: place,
        }
    }

    /// A run of five minutes from this minute on.
    fn run(&mut self, name: &str, plan: &Plan, minute: i64, share: f64, measured: Measured) {
        let store = &mut self.store;
        let began = minute * MINUTE;
        store
            .create_run(name, plan, RunState::Running, began)
            .unwrap();
        let occasion = Occasion {
            host: HostIdentity {
                uid: measured.machine.to_owned(),
                class: HostClass::default(),
                kernel: None,
                microcode: None,
            },
            uid: format!("run {name}"),
            boot_id: None,
            measurement_version: measured.way,
            at_unix_ms: began,
        };
        let series = series_of(plan, |name| Some(name.to_owned()));
        store.add_occasion(name, &occasion, &series).unwrap();
        let setting = |name: &str, value: &str| Setting {
            name: name.to_owned(),
            value: value.to_owned(),
            unit: None,
            boot_value: None,
            source: "default".to_owned(),
        };
        // The port is another one in each run.
        let port = minute.to_string();
        let settings = vec![
            setting("port", &port),
            setting("work_mem", measured.work_mem),
        ];
        let of_base = (Some(ServerId(0)), None);
        store.add_fact(name, of_base, &Settings(settings)).unwrap();
        small_run::keep(store, name, [share, 1.0, 1.0]);
        let ended = (minute + 5) * MINUTE;
        store.finish_run(name, RunState::Finished, ended).unwrap();
    }

    /// What a run of 17.2 against 17.9 has beside it that extends this one.
    fn extended(&mut self, extends: &str, change: impl FnOnce(&mut Plan)) -> Reused {
        let mut plan = plan(2, (17, 9));
        plan.extends = Some(extends.to_owned());
        change(&mut plan);
        self.run("x", &plan, 1000, 1.02, HERE);
        reused("x", &plan, &self.store).unwrap()
    }
}

fn throughput(reused: &Reused, column: usize) -> ViaFigure {
    let figures = reused.columns[column].figures.iter();
    let mut of_first = figures.filter(|one| one.cell == CellId(0));
    *of_first
        .find(|one| one.metric == Metric::Throughput)
        .unwrap()
}

#[test]
fn earlier_runs_stand_for_a_version_beside_the_same_anchor() {
    let mut lab = Lab::new();
    lab.run("a1", &plan(2, (17, 6)), 0, 0.90, HERE);
    lab.run("a2", &plan(2, (17, 6)), 60, 0.91, HERE);
    lab.run("a3", &plan(2, (17, 6)), 120, 0.89, HERE);
    // It ends later than the run that asks: nothing of it counts.
    lab.run("later", &plan(2, (17, 6)), 5000, 0.5, HERE);
    let reused = lab.extended("a1", |_| {});
    assert_eq!(reused.columns.len(), 1, "{:?}", reused.notes);
    assert_eq!(
        reused.columns[0].name,
        "postgres:17.6 via 17.2 (3 occasions)"
    );
    let figure = throughput(&reused, 0);
    let (low, high) = figure.ratio.ci95.unwrap();
    assert!((figure.ratio.estimate - 0.90).abs() < 0.002, "{figure:?}");
    assert!(
        low < 0.89 && high > 0.91,
        "one more run may say that: {figure:?}"
    );
    assert_eq!(
        (figure.verdict, figure.occasions),
        (Some(Verdict::Regression), 3)
    );
    assert!(reused.notes[0].contains("were not measured in this execution"));
}

#[test]
fn one_occasion_of_a_distant_version_is_shown_and_not_judged() {
    let mut lab = Lab::new();
    lab.run("a1", &plan(2, (18, 1)), 0, 0.5, HERE);
    let reused = lab.extended("a1", |_| {});
    assert_eq!(
        reused.columns[0].name,
        "postgres:18.1 via 17.2 (1 occasion)"
    );
    assert_eq!(throughput(&reused, 0).verdict, None);
    let mut lab = Lab::new();
    lab.run("a1", &plan(2, (18, 1)), 0, 0.5, HERE);
    lab.run("a2", &plan(2, (18, 1)), 60, 0.5, HERE);
    let reused = lab.extended("a1", |_| {});
    assert_eq!(throughput(&reused, 0).verdict, Some(Verdict::Regression));
}

#[test]
fn what_is_not_equal_is_not_used_and_says_what_differs() {
    let other = |change: &dyn Fn(&mut Measured)| {
        let mut other = HERE;
        change(&mut other);
        other
    };
    let cases = [
        (other(&|at| at.machine = "b"), "measured on another host"),
        (
            other(&|at| at.way = 1),
            "measured in another way (version 1, now 2)",
        ),
        (
            other(&|at| at.work_mem = "64MB"),
            "settings of the anchor were others: work_mem",
        ),
    ];
    for (measured, why) in cases {
        let mut lab = Lab::new();
        lab.run("a1", &plan(2, (17, 6)), 0, 0.9, measured);
        let reused = lab.extended("a1", |_| {});
        assert!(reused.columns.is_empty());
        let wanted = format!("postgres:17.6 of a1 is not shown: it was {why}");
        let wanted = wanted.replace("it was settings", "settings");
        assert_eq!(reused.notes, [wanted]);
    }
    let mut lab = Lab::new();
    lab.run("a1", &plan(2, (17, 6)), 0, 0.9, HERE);
    let reused = lab.extended("a1", |plan| plan.data.rows = 77);
    assert!(
        reused.notes[0].ends_with("point-query@1 is another cell now: `data` differs"),
        "{reused:?}"
    );
    let mut lab = Lab::new();
    lab.run("a1", &plan(3, (17, 6)), 0, 0.9, HERE);
    let reused = lab.extended("a1", |_| {});
    assert!(
        reused.notes[0].ends_with("beside another build of the anchor"),
        "{reused:?}"
    );
}

#[test]
fn a_server_that_both_have_leads_to_those_of_a_run_without_the_base() {
    let mut lab = Lab::new();
    let (first, second) = (plan(2, (17, 6)), plan(6, (17, 8)));
    lab.run("old", &first, 0, 0.90, HERE);
    lab.run("new", &second, 100, 0.95, HERE);
    lab.run("far", &plan(7, (17, 9)), 200, 1.0, HERE);
    // It ends later than what is named.
    lab.run("later", &plan(6, (17, 8)), 5000, 0.5, HERE);
    let until = 400 * MINUTE;
    let of = |lab: &Lab, run: &str, plan: &Plan| {
        through(("old", &first), (run, plan), until, &lab.store).unwrap()
    };
    let found = of(&lab, "new", &second).unwrap();
    let names: Vec<&str> = found.columns.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["postgres:17.8 via 17.6 (1 occasion)"]);
    assert_eq!(found.columns[0].server, "postgres:17.8");
    let began: Vec<Option<i64>> = { found.columns[0].measured.iter() }
        .map(|one| one.began_unix_ms)
        .collect();
    assert_eq!(began, [Some(100 * MINUTE)]);
    let figure = throughput(&found, 0);
    assert!(
        (figure.ratio.estimate - 0.90 * 0.95).abs() < 0.002,
        "{figure:?}"
    );
    let (low, high) = figure.ratio.ci95.unwrap();
    let direct = throughput(&lab.extended("old", |_| {}), 0)
        .ratio
        .ci95
        .unwrap();
    let width = |(low, high): (f64, f64)| (high / low).ln();
    assert!(
        width((low, high)) > width(direct),
        "two steps are less sure than one"
    );
    let nothing = of(&lab, "far", &plan(7, (17, 9))).unwrap_err();
    assert!(nothing.contains("no server that both have"), "{nothing}");
    let mut other = plan(2, (17, 9));
    other.data.rows = 77;
    lab.run("sizes", &other, 300, 1.0, HERE);
    let differs = of(&lab, "sizes", &other).unwrap_err();
    assert!(
        differs.ends_with("is another cell now: `data` differs"),
        "{differs}"
    );
    let elsewhere = Measured {
        machine: "b",
        ..HERE
    };
    lab.run("elsewhere", &second, 350, 1.0, elsewhere);
    let host = of(&lab, "elsewhere", &second).unwrap_err();
    assert_eq!(host, "it was measured on another host");
}

#[test]
fn an_extension_can_be_extended_and_a_run_that_extends_nothing_has_no_such_columns() {
    let mut lab = Lab::new();
    lab.run("a1", &plan(2, (17, 6)), 0, 0.9, HERE);
    let mut middle = plan(2, (17, 7));
    middle.extends = Some("a1".to_owned());
    lab.run("m", &middle, 100, 0.95, HERE);
    let reused_by = lab.extended("m", |_| {});
    let names: Vec<&str> = reused_by
        .columns
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    let wanted = [
        "postgres:17.6 via 17.2 (1 occasion)",
        "postgres:17.7 via 17.2 (1 occasion)",
    ];
    assert_eq!(names, wanted);
    let alone = reused("a1", &plan(2, (17, 6)), &lab.store).unwrap();
    assert_eq!(alone, Reused::default());
}
