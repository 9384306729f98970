//! Sessions of a run, and what the host's earlier runs say of another hour.

use deltabench_compare::comparison::{Confirmation, HoursFrom, Metric, Verdict};
use deltabench_lab::{
    Analysed, analyse, analyse_this_hour, confirmation_name, sensitivity_name, series_of,
    session_name,
};
use deltabench_model::fact::MachineName;
use deltabench_model::finding::{Finding, FindingKind, Severity};
use deltabench_model::invalidation::Invalidation;
use deltabench_model::occasion::{HostClass, HostIdentity, Occasion};
use deltabench_model::plan::{CellId, Plan, Role, SensitivityPart, SessionPart, Varied};
use deltabench_report::{Format, JsonVersion, TerminalOptions, render};
use deltabench_store::{RunState, Store};
use deltabench_testkit::small_run;
use serde_json::Value;

const MINUTE: i64 = 60_000;

struct Lab {
    store: Store,
    _place: tempfile::TempDir,
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

    /// A run of five minutes that began at this minute; shares of the base's throughput by cell.
    fn measured(&mut self, run: &str, plan: &Plan, minute: i64, shares: [f64; 3]) {
        self.measured_on(run, plan, minute, shares, None);
    }

    /// The same on a host that identified itself.
    fn measured_on(
        &mut self,
        run: &str,
        plan: &Plan,
        minute: i64,
        shares: [f64; 3],
        on: Option<&Occasion>,
    ) {
        let store = &mut self.store;
        let known = store.runs().unwrap().iter().any(|one| one.run == run);
        if !known {
            let begun = minute * MINUTE;
            store
                .create_run(run, plan, RunState::Running, begun)
                .unwrap();
        } else {
            store
                .finish_run(run, RunState::Running, minute * MINUTE)
                .unwrap();
        }
        let machine = MachineName("here".to_owned());
        store.add_fact(run, (None, None), &machine).unwrap();
        if let Some(on) = on {
            let series = series_of(plan, |name| Some(name.to_owned()));
            store.add_occasion(run, on, &series).unwrap();
        }
        small_run::keep(store, run, shares);
        let end = (minute + 5) * MINUTE;
        store.finish_run(run, RunState::Finished, end).unwrap();
    }

    fn analysed(&self, run: &str) -> Analysed {
        let plan = self.store.plan(run).unwrap();
        analyse(run, &plan, &self.store).unwrap()
    }
}

fn plan() -> Plan {
    let mut plan = small_run::plan();
    // The fixture's servers share a hash.
    plan.servers[2].installation.binary_sha256 = "cd".to_owned();
    plan
}

/// The plan of this one of three sessions.
fn session(number: u32) -> Plan {
    let mut plan = plan();
    plan.session = Some(SessionPart {
        first: "r".to_owned(),
        number,
        of: 3,
        gap_seconds: 0.0,
    });
    plan
}

fn withdrawal(cell: Option<CellId>) -> Invalidation {
    Invalidation {
        cell,
        reason: "a backup ran".to_owned(),
        at_unix_ms: 5,
    }
}

fn shown(analysed: &Analysed, format: Format) -> String {
    let Analysed {
        plan,
        comparison,
        context,
        ..
    } = analysed;
    let options = TerminalOptions {
        width: 400,
        colour: false,
        verbose: true,
    };
    render(format, comparison, plan, context, options)
}

fn another(analysed: &Analysed, cell: usize) -> Option<HoursFrom> {
    let speed = analysed.comparison.cells[cell].metric(Metric::Throughput);
    speed.unwrap().hours.as_ref().map(|hours| hours.from)
}

#[test]
fn more_is_assumed_of_hours_on_a_virtual_machine_for_versions_of_two_branches() {
    let mut lab = Lab::new();
    let mut sd = |run: &str, number: u32, virtual_machine: Option<bool>| {
        let mut plan = plan();
        plan.servers
            .iter_mut()
            .for_each(|server| server.installation.version_num = 180_006);
        plan.servers[2].installation.version_num = number;
        let mut on = at("6.1", 1);
        on.uid = run.to_owned();
        on.host.uid = run.to_owned();
        on.host.class.virtual_machine = virtual_machine;
        lab.measured_on(run, &plan, 0, [0.8, 1.0, 0.90], Some(&on));
        let analysed = lab.analysed(run);
        let cell = &analysed.comparison.cells[0];
        let speed = cell.metric(Metric::Throughput).unwrap();
        (speed.hours.as_ref().unwrap().sd, speed.ratio.estimate.ln())
    };
    for (run, number, on) in [
        ("near", 180_005, Some(true)),
        ("physical", 170_011, Some(false)),
        ("unknown", 170_011, None),
    ] {
        let (found, _) = sd(run, number, on);
        assert!((found - 0.005).abs() < 1e-9, "{run}: {found}");
    }
    let (found, change) = sd("unsteady", 170_011, Some(true));
    assert!(change < -0.1, "{change}");
    assert!(
        (found - 0.009_f64.hypot(0.05 * change)).abs() < 1e-9,
        "{found}"
    );
}

#[test]
fn sessions_of_an_evening_on_a_virtual_machine_allow_for_slow_hours() {
    let mut lab = Lab::new();
    let mut two = |first: &str, hours: i64, virtual_machine: bool| {
        let mut plans = [1, 2].map(session);
        for server in plans.iter_mut().flat_map(|plan| &mut plan.servers) {
            server.installation.version_num = 180_006;
        }
        for plan in &mut plans {
            plan.servers[2].installation.version_num = 170_011;
            first.clone_into(&mut plan.session.as_mut().unwrap().first);
        }
        let names = [1, 2].map(|number| session_name(first, number));
        let runs = [(names[0].as_str(), &plans[0]), (&names[1], &plans[1])];
        lab.store.create_runs(&runs, RunState::Planned, 1).unwrap();
        let mut on = at("6.1", 1);
        on.uid = first.to_owned();
        on.host.uid = first.to_owned();
        on.host.class.virtual_machine = Some(virtual_machine);
        for ((name, plan), minute) in runs.iter().zip([0, 60 * hours]) {
            lab.measured_on(name, plan, minute, [0.95, 1.0, 0.90], Some(&on));
        }
        let analysed = lab.analysed(first);
        let speed = analysed.comparison.cells[0].metric(Metric::Throughput);
        let hours = speed.unwrap().hours.clone().unwrap();
        assert_eq!((hours.from, hours.assumed), (HoursFrom::Sessions(2), false));
        let (low, high) = hours.another.ci95.unwrap();
        let json = shown(&analysed, Format::Json(JsonVersion::Two));
        let json: Value = serde_json::from_str(&json).unwrap();
        let told = &json["cells"][0]["metrics"]["throughput"]["another_hour"]["slow_hours"];
        let is_wider = told.as_bool().unwrap_or(false);
        assert_eq!(is_wider, hours.by_slow_hours);
        (is_wider, high / low, shown(&analysed, Format::Text))
    };
    let (is_wider, width, text) = two("evening", 1, true);
    assert!(is_wider && width > 1.04, "{width}");
    let said =
        "within 1.0 h: \"another hour\" allows for slow hours of a virtual machine, as separate";
    assert!(text.contains(said), "{text}");
    for (run, hours, on) in [("physical", 1, false), ("day", 13, true)] {
        let (is_wider, narrow, text) = two(run, hours, on);
        assert!(!is_wider && narrow < width, "{run}: {narrow} {width}");
        assert!(!text.contains("slow hours"), "{run}: {text}");
    }
}

#[test]
fn finished_sessions_are_one_result_and_others_do_not_count_yet() {
    let mut lab = Lab::new();
    let plans = [1, 2, 3].map(session);
    let names: Vec<String> = (1..=3).map(|number| session_name("r", number)).collect();
    assert_eq!(names, ["r", "r-s2", "r-s3"]);
    let runs: Vec<(&str, &Plan)> = names.iter().map(String::as_str).zip(&plans).collect();
    lab.store.create_runs(&runs, RunState::Planned, 1).unwrap();
    lab.measured("r", &plans[0], 0, [0.95, 1.0, 0.90]);
    let alone = lab.analysed("r");
    assert_eq!(another(&alone, 0), Some(HoursFrom::Prior));
    let states = |analysed: &Analysed| -> Vec<(bool, bool)> {
        let lines = analysed.context.sessions.iter();
        lines
            .map(|line| (line.counts, line.began_unix_ms.is_some()))
            .collect()
    };
    assert_eq!(
        states(&alone),
        [(true, true), (false, false), (false, false)]
    );
    lab.measured("r-s2", &plans[1], 60, [0.951, 1.0, 1.05]);
    let two = lab.analysed("r");
    assert_eq!(another(&two, 0), Some(HoursFrom::Sessions(2)));
    assert_eq!(two.comparison.cells[0].blocks, 16);
    assert_eq!(two.comparison.cells[2].verdict, Verdict::Inconclusive);
    // A part of another run answers to its full name only.
    assert_eq!(lab.store.find("last").unwrap(), "r");
    assert_eq!(lab.store.find("r").unwrap(), "r");
    let second = lab.analysed("r-s2");
    assert_eq!(
        another(&second, 0),
        Some(HoursFrom::Pair(2)),
        "beside the first"
    );
    let text = shown(&second, Format::Text);
    assert!(
        text.contains("8 of 8 blocks") && !text.contains("sessions"),
        "{text}"
    );
    let text = shown(&two, Format::Text);
    for said in [
        "2 of 3 sessions are finished",
        " over 2 sessions; another hour: [",
        "sessions started 1970-01-01T00:00:00, 1970-01-01T01:00:00 UTC, within 1.0 h: \"another hour\"",
        "16 of 24 blocks",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    assert!(!text.contains("minutes apart"), "{text}");
    let json: Value = serde_json::from_str(&shown(&two, Format::Json(JsonVersion::Two))).unwrap();
    let counts = |at: usize| json["sessions"][at]["counts"].as_bool();
    assert_eq!(
        [0, 1, 2, 3].map(counts),
        [Some(true), Some(true), Some(false), None]
    );
    lab.store.invalidate("r-s2", &withdrawal(None)).unwrap();
    let left = lab.analysed("r");
    assert_eq!(another(&left, 0), Some(HoursFrom::Prior));
    assert_eq!(states(&left), [(true, true), (false, true), (false, false)]);
    let why = &left.context.sessions[1].left_out;
    assert_eq!(why, &["withdrawn: a backup ran"]);
    let text = shown(&left, Format::Text);
    let said = "session r-s2 does not count: withdrawn: a backup ran";
    assert!(
        text.contains(said) && !text.contains("sessions begun"),
        "{text}"
    );
}

#[test]
fn sessions_that_count_and_are_near_each_other_say_little_of_another_hour() {
    let mut lab = Lab::new();
    for (number, minute) in [(1, 0), (2, 60), (3, 66)] {
        let run = session_name("r", number);
        lab.measured(&run, &session(number), minute, [0.95, 1.0, 0.9]);
    }
    let near = "sessions are less than 10 minutes apart";
    assert!(shown(&lab.analysed("r"), Format::Text).contains(near));
    lab.store
        .invalidate("r-s3", &withdrawal(Some(CellId(0))))
        .unwrap();
    let text = shown(&lab.analysed("r"), Format::Text);
    let said = "session r-s3 counts in part: point-query@1 withdrawn: a backup ran";
    assert!(text.contains(said) && text.contains(near), "{text}");
    lab.store.invalidate("r-s3", &withdrawal(None)).unwrap();
    let text = shown(&lab.analysed("r"), Format::Text);
    assert!(!text.contains(near) && !text.contains("T01:06"), "{text}");
}

#[test]
fn a_first_session_that_is_withdrawn_or_unfit_is_stood_for_by_the_others() {
    let mut lab = Lab::new();
    for number in 1..=3_u32 {
        let share = if number == 1 { 0.5 } else { 0.95 };
        let minute = 60 * i64::from(number);
        let run = session_name("r", number);
        lab.measured(&run, &session(number), minute, [share, 1.0, 0.9]);
    }
    let ratio = |lab: &Lab, cell: usize| {
        let found = lab.analysed("r");
        let cell = found.comparison.cells[cell].clone();
        let speed = cell.metric(Metric::Throughput).unwrap().ratio.estimate;
        (speed, cell.blocks, cell.verdict)
    };
    assert!(ratio(&lab, 0).0 < 0.8);
    // One cell of it.
    let first = Some(CellId(0));
    lab.store.invalidate("r", &withdrawal(first)).unwrap();
    let (speed, blocks, verdict) = ratio(&lab, 0);
    assert!((speed - 0.95).abs() < 1e-3, "{speed}");
    assert_eq!((blocks, verdict), (16, Verdict::Regression));
    assert_eq!(ratio(&lab, 1).1, 24);
    let found = lab.analysed("r").context;
    assert!(found.invalidations.is_empty() && found.sessions[0].counts);
    assert_eq!(
        found.sessions[0].left_out,
        ["point-query@1 withdrawn: a backup ran"]
    );
    // All of it, and a cell that nobody else has either.
    lab.store.invalidate("r", &withdrawal(None)).unwrap();
    for other in ["r-s2", "r-s3"] {
        lab.store
            .invalidate(other, &withdrawal(Some(CellId(2))))
            .unwrap();
    }
    assert_eq!(ratio(&lab, 1).1, 16);
    assert_eq!(ratio(&lab, 2).2, Verdict::Unfit);
    let found = lab.analysed("r").context;
    let cells: Vec<_> = found.invalidations.iter().map(|one| one.cell).collect();
    assert_eq!(cells, [Some(CellId(2))]);
    assert!(!found.sessions[0].counts);
    // An unfit host in one of the two that are left.
    let unfit = Finding::new(FindingKind::OtherLoad, Severity::Unfit, "somebody compiles");
    lab.store.add_finding("r-s2", &unfit).unwrap();
    let found = lab.analysed("r");
    assert_eq!(found.comparison.cells[1].blocks, 8);
    assert!(found.comparison.host_ok);
    let unfit = |finding: &Finding| finding.severity == Severity::Unfit;
    assert!(!found.comparison.findings.iter().any(unfit));
    let second = &found.context.sessions[1];
    assert!(!second.counts);
    assert_eq!(second.left_out[0], "unfit host: somebody compiles");
}

#[test]
fn earlier_runs_of_the_host_in_other_hours_tell_of_another_one() {
    let mut lab = Lab::new();
    let plan = plan();
    lab.measured("a", &plan, 0, [0.95, 1.0, 0.96]);
    lab.measured("b", &plan, 60, [0.96, 1.0, 0.99]);
    // In the hour of the one before: its luck is the same.
    lab.measured("c", &plan, 66, [0.90, 1.0, 0.90]);
    let mut other = plan.clone();
    other.data.rows *= 2;
    lab.measured("larger", &other, 120, [0.5, 1.0, 0.9]);
    lab.measured("now", &plan, 180, [0.95, 1.0, 0.97]);
    lab.measured("later", &plan, 240, [0.80, 1.0, 0.97]);
    let now = lab.analysed("now");
    let without = analyse_this_hour("now", &plan, &lab.store).unwrap();
    assert_eq!(another(&without, 0), None);
    assert_eq!(another(&now, 0), Some(HoursFrom::Pair(3)));
    let speed = now.comparison.cells[2].metric(Metric::Throughput).unwrap();
    let hours = speed.hours.clone().unwrap();
    // The mean of 0.96, 0.99 and 0.97; 1.5 % is their sd.
    let mean = hours.long_run.estimate;
    assert!((mean - 0.9733).abs() < 1e-3, "{mean}");
    assert!((0.008..0.016).contains(&hours.sd), "{}", hours.sd);
    let text = shown(&now, Format::Text);
    assert!(text.contains(" over 3 runs; another hour: ["), "{text}");
    assert_eq!(another(&lab.analysed("later"), 0), Some(HoursFrom::Pair(4)));
    assert_eq!(another(&lab.analysed("a"), 0), Some(HoursFrom::Prior));
    assert_eq!(another(&lab.analysed("b"), 0), Some(HoursFrom::Pair(2)));
    assert_eq!(
        another(&lab.analysed("c"), 0),
        Some(HoursFrom::Pair(2)),
        "b is in the same hour"
    );
    assert_eq!(
        another(&lab.analysed("larger"), 0),
        Some(HoursFrom::Host(1)),
        "three cells were measured twice"
    );
    let mut same = plan.clone();
    same.servers[2] = same.servers[0].clone();
    same.servers[2].role = Role::Candidate;
    lab.measured("same", &same, 300, [1.0, 1.0, 1.0]);
    let own = lab.analysed("same");
    assert_eq!(
        another(&own, 0),
        Some(HoursFrom::Prior),
        "equal builds move less"
    );
    let text = shown(&own, Format::Text);
    for said in [
        "] (assumed)",
        "another hour: assumed, because",
        "differ by about 0.5 %",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
}

/// This machine with that kernel, and how a run is measured.
fn at(kernel: &str, measurement_version: u32) -> Occasion {
    Occasion {
        host: HostIdentity {
            uid: "machine".to_owned(),
            class: HostClass::default(),
            kernel: Some(kernel.to_owned()),
            microcode: None,
        },
        uid: "run".to_owned(),
        boot_id: None,
        measurement_version,
        at_unix_ms: 0,
    }
}

#[test]
fn another_kernel_is_another_host_and_a_withdrawn_run_says_nothing() {
    let mut lab = Lab::new();
    let plan = plan();
    for (run, minute, kernel) in [
        ("a", 0, "6.1"),
        ("b", 60, "6.1"),
        ("c", 120, "6.2"),
        ("d", 180, "6.1"),
    ] {
        let on = at(kernel, 1);
        lab.measured_on(run, &plan, minute, [0.95, 1.0, 0.96], Some(&on));
    }
    assert_eq!(another(&lab.analysed("b"), 0), Some(HoursFrom::Pair(2)));
    assert_eq!(another(&lab.analysed("c"), 0), Some(HoursFrom::Prior));
    assert_eq!(another(&lab.analysed("d"), 0), Some(HoursFrom::Pair(3)));
    lab.store
        .invalidate("a", &withdrawal(Some(CellId(0))))
        .unwrap();
    let found = lab.analysed("d");
    assert_eq!(
        [0, 1].map(|cell| another(&found, cell)),
        [2, 3].map(|of| Some(HoursFrom::Pair(of)))
    );
    // What only says that it is the same machine by name is another one.
    lab.measured("old", &plan, 240, [0.95, 1.0, 0.96]);
    assert_eq!(another(&lab.analysed("old"), 0), Some(HoursFrom::Prior));
    // Resumed after the kernel had changed: it belongs to neither.
    lab.store.add_occasion("d", &at("6.2", 1), &[]).unwrap();
    assert_eq!(another(&lab.analysed("d"), 0), Some(HoursFrom::Prior));
}

#[test]
fn runs_that_were_measured_in_another_way_are_no_repetitions() {
    let mut lab = Lab::new();
    let plan = plan();
    for (run, minute, version) in [("a", 0, 1), ("b", 60, 2), ("c", 120, 1), ("d", 180, 2)] {
        let on = at("6.1", version);
        lab.measured_on(run, &plan, minute, [0.95, 1.0, 0.96], Some(&on));
    }
    assert_eq!(another(&lab.analysed("b"), 0), Some(HoursFrom::Prior));
    assert_eq!(another(&lab.analysed("c"), 0), Some(HoursFrom::Pair(2)));
    assert_eq!(another(&lab.analysed("d"), 0), Some(HoursFrom::Pair(2)));
    lab.store.add_occasion("d", &at("6.1", 1), &[]).unwrap();
    assert_eq!(another(&lab.analysed("d"), 0), Some(HoursFrom::Prior));
}

#[test]
fn a_build_is_known_by_its_binary_and_what_was_made_slower_is_no_version() {
    let mut lab = Lab::new();
    let mut plan = plan();
    lab.measured("a", &plan, 0, [0.95, 1.0, 0.96]);
    plan.servers[2].installation.resolved = "path:/srv/moved".to_owned();
    lab.measured("b", &plan, 60, [0.95, 1.0, 0.96]);
    assert_eq!(another(&lab.analysed("b"), 0), Some(HoursFrom::Pair(2)));
    let mut lab = Lab::new();
    let mut slower = plan.clone();
    slower.servers[2] = slower.servers[0].clone();
    slower.servers[2].role = Role::Candidate;
    slower.servers[2].burn_ns = Some(500);
    for (run, minute) in [("a", 0), ("b", 60), ("c", 120)] {
        lab.measured(run, &slower, minute, [0.95, 1.0, 0.96]);
    }
    lab.measured("now", &plan, 180, [0.95, 1.0, 0.96]);
    assert_eq!(another(&lab.analysed("now"), 0), Some(HoursFrom::Prior));
}

#[test]
fn a_cell_with_other_rows_is_another_one() {
    let mut lab = Lab::new();
    let plan = plan();
    let mut larger = plan.clone();
    larger.data.rows *= 2;
    for (run, minute) in [("a", 0), ("b", 60)] {
        lab.measured(run, &larger, minute, [0.95, 1.0, 0.96]);
        for cell in [CellId(1), CellId(2)] {
            lab.store.invalidate(run, &withdrawal(Some(cell))).unwrap();
        }
    }
    // One other cell is too few to know how cells of this host scatter.
    lab.measured("now", &plan, 120, [0.95, 1.0, 0.96]);
    let now = lab.analysed("now");
    assert_eq!(another(&now, 0), Some(HoursFrom::Prior));
    let text = shown(&now, Format::Text);
    for (said, is) in [
        ("measured too little like it again", true),
        ("earlier pair", false),
    ] {
        assert_eq!(text.contains(said), is, "{said}: {text}");
    }
    lab.measured("larger", &larger, 180, [0.95, 1.0, 0.96]);
    let mixed = lab.analysed("larger");
    let from = [0, 1].map(|cell| another(&mixed, cell));
    assert_eq!(from, [Some(HoursFrom::Pair(3)), Some(HoursFrom::Prior)]);
    let text = shown(&mixed, Format::Text);
    let said = "over 3 runs; another hour: [";
    assert!(
        text.contains(said) && text.contains("] (in part assumed)"),
        "{text}"
    );
    assert!(
        text.contains("another hour: in part assumed, because"),
        "{text}"
    );
    let json: Value = serde_json::from_str(&shown(&mixed, Format::Json(JsonVersion::Two))).unwrap();
    assert_eq!(json["another_hour"], "prior", "what is known least");
    let hours = &json["cells"][0]["metrics"]["throughput"]["another_hour"];
    assert_eq!(
        (&hours["from"], &hours["assumed"]),
        (&"pair".into(), &true.into())
    );
}

#[test]
fn relative_to_another_base_nobody_asks_other_runs_and_the_report_says_so() {
    let mut lab = Lab::new();
    let plan = plan();
    lab.measured("a", &plan, 0, [0.95, 1.0, 0.96]);
    lab.measured("b", &plan, 60, [0.95, 1.0, 0.96]);
    let turned = plan.relative_to(plan.candidates()[0]);
    let found = analyse("b", &turned, &lab.store).unwrap();
    let text = shown(&found, Format::Text);
    let said = "another hour: not told, because other runs are only asked about the planned base";
    assert!(
        text.contains(said) && !text.contains("earlier pair"),
        "{text}"
    );
}

#[test]
fn runs_whose_executables_had_one_place_tell_nothing_of_runs_that_draw_it() {
    let mut lab = Lab::new();
    let old = plan();
    let mut plan = old.clone();
    plan.own_executables = true;
    assert!(plan.draws_executables() && !old.draws_executables());
    lab.measured("a", &old, 0, [0.95, 1.0, 0.96]);
    lab.measured("b", &old, 60, [0.96, 1.0, 0.99]);
    lab.measured("now", &plan, 120, [0.95, 1.0, 0.97]);
    assert_eq!(another(&lab.analysed("now"), 0), Some(HoursFrom::Prior));
    lab.measured("old", &old, 180, [0.95, 1.0, 0.97]);
    assert_eq!(another(&lab.analysed("old"), 0), Some(HoursFrom::Pair(3)));
}

#[test]
fn another_condition_and_samples_are_no_repetitions_and_a_confirmation_is() {
    let mut lab = Lab::new();
    let plan = plan();
    lab.measured("r", &plan, 0, [0.95, 1.0, 0.96]);
    let mut other = plan.clone();
    other.sensitivity = Some(SensitivityPart {
        of: "r".to_owned(),
        varied: Varied::OwnCore,
    });
    lab.measured("r-own-core", &other, 60, [0.7, 1.0, 0.96]);
    let mut sampling = plan.clone();
    sampling.samples = Some("r".to_owned());
    lab.measured("r-sample", &sampling, 120, [0.8, 1.0, 0.96]);
    lab.measured("now", &plan, 180, [0.95, 1.0, 0.97]);
    assert_eq!(another(&lab.analysed("now"), 0), Some(HoursFrom::Pair(2)));
    let mut again = plan.clone();
    again.confirms = Some("now".to_owned());
    let confirming = confirmation_name("now", &[]);
    lab.measured(&confirming, &again, 240, [0.95, 1.0, 0.97]);
    let second = another(&lab.analysed(&confirming), 0);
    assert_eq!(
        second,
        Some(HoursFrom::Pair(2)),
        "not with the run that it confirms"
    );
    lab.measured("then", &plan, 300, [0.95, 1.0, 0.97]);
    assert_eq!(another(&lab.analysed("then"), 0), Some(HoursFrom::Pair(4)));
}

#[test]
fn a_confirmation_says_how_much_later_it_was() {
    let mut lab = Lab::new();
    let mut plan = plan();
    lab.measured("r", &plan, 0, [0.96, 1.0, 0.96]);
    plan.confirms = Some("r".to_owned());
    lab.measured(&confirmation_name("r", &[]), &plan, 125, [0.96, 1.0, 1.0]);
    let cells = lab.analysed("r").comparison.cells;
    assert_eq!(cells[0].confirmation, Some(Confirmation::Recurred));
    assert_eq!(cells[2].confirmation, Some(Confirmation::DidNotRecur));
    let later = cells[0].recurrence.as_ref().unwrap().seconds_later.unwrap();
    assert!((later - 7200.0).abs() < 1.0, "{later}");
    let second = lab.analysed("r-confirm").comparison;
    assert!(second.cells.iter().all(|cell| cell.confirmation.is_none()));
}

#[test]
fn after_a_withdrawn_confirmation_the_next_one_counts_and_both_are_named() {
    let mut lab = Lab::new();
    let mut plan = plan();
    lab.measured("r", &plan, 0, [0.96, 1.0, 0.96]);
    plan.confirms = Some("r".to_owned());
    lab.measured("r-confirm", &plan, 60, [1.0, 1.0, 1.0]);
    lab.store
        .invalidate("r-confirm", &withdrawal(None))
        .unwrap();
    let withdrawn = lab.analysed("r");
    assert_eq!(withdrawn.comparison.cells[0].confirmation, None);

    let known = lab.store.confirming("r").unwrap();
    let next = confirmation_name("r", &known);
    assert_eq!(next, "r-confirm-2");
    lab.measured(&next, &plan, 125, [0.96, 1.0, 1.0]);
    let found = lab.analysed("r");
    let said: Vec<_> = found
        .comparison
        .cells
        .iter()
        .map(|cell| cell.confirmation)
        .collect();
    assert_eq!(said[0], Some(Confirmation::Recurred));
    assert_eq!(said[2], Some(Confirmation::DidNotRecur));
    let told = &found.context.confirmation_withdrawn;
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].run, "r-confirm");
}

#[test]
fn a_changed_cell_under_other_conditions_says_what_its_ratio_depends_on() {
    let mut lab = Lab::new();
    let plan = plan();
    lab.measured("r", &plan, 200, [0.7, 1.0, 0.9]);
    assert!(lab.analysed("r").context.figures.json.is_empty());
    for (varied, minute, share) in [(Varied::OwnCore, 210, 0.93), (Varied::Tcp, 220, 0.7)] {
        let mut other = plan.clone();
        other.sensitivity = Some(SensitivityPart {
            of: "r".to_owned(),
            varied,
        });
        let name = sensitivity_name("r", varied);
        lab.measured(&name, &other, minute, [share, 1.0, 0.9]);
    }
    assert_eq!(lab.store.find("last").unwrap(), "r", "they belong to it");
    let depends = |lab: &Lab, at: usize| {
        let figures = lab.analysed("r").context.figures;
        let (_, value) = &figures.json[0];
        let condition = &value[0]["conditions"][at];
        (
            condition["depends"].clone(),
            condition["depends_as_assumed"].clone(),
        )
    };
    let assumed = (Value::Null, Value::Bool(true));
    assert_eq!(depends(&lab, 0), assumed, "two loads cannot tell");
    assert_eq!(depends(&lab, 1), (Value::Bool(false), Value::Null));
    // What another hour does to the ratio, by earlier runs: little, and then more than this.
    lab.measured("e1", &plan, 0, [0.71, 1.0, 0.9]);
    lab.measured("e2", &plan, 40, [0.705, 1.0, 0.9]);
    lab.measured("e3", &plan, 80, [0.7, 1.0, 0.9]);
    assert_eq!(depends(&lab, 0), assumed, "in part assumed");
    lab.measured("e4", &plan, 120, [0.705, 1.0, 0.9]);
    let figures = lab.analysed("r").context.figures;
    let (name, value) = &figures.json[0];
    assert_eq!(*name, "sensitivity");
    let first = &value[0]["conditions"];
    let of = |at: usize| (first[at]["varied"].clone(), first[at]["depends"].clone());
    assert_eq!(of(0), ("own-core".into(), true.into()));
    assert_eq!(of(1), ("tcp".into(), false.into()));
    assert_eq!(first[0]["run"], "r-own-core");
    let against = first[0]["against"].as_f64().unwrap();
    assert!((against - 0.93 / 0.7).abs() < 1e-3, "{against}");
    let shown = [
        figures.terminal.len(),
        figures.markdown.len(),
        figures.page.len(),
    ];
    assert_eq!(shown, [2, 2, 1]);
    lab.measured("e5", &plan, 160, [0.95, 1.0, 0.9]);
    assert_eq!(depends(&lab, 0).0, false, "hours differ by as much");
}
