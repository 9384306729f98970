//! Sessions of a run, and what the host's earlier runs say of another hour.

use deltabench_compare::comparison::{Confirmation, HoursFrom, Metric, Verdict};
use deltabench_lab::{
    Analysed, analyse, analyse_this_hour, confirmation_name, sensitivity_name, session_name,
};
use deltabench_model::fact::MachineName;
use deltabench_model::finding::{Finding, FindingKind, Severity};
use deltabench_model::invalidation::Invalidation;
use deltabench_model::plan::{CellId, Plan, SensitivityPart, SessionPart, Varied};
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
fn finished_sessions_are_one_result_and_others_do_not_count_yet() {
    let mut lab = Lab::new();
    let plans = [1, 2, 3].map(session);
    let names: Vec<String> = (1..=3).map(|number| session_name("r", number)).collect();
    assert_eq!(names, ["r", "r-s2", "r-s3"]);
    let runs: Vec<(&str, &Plan)> = names.iter().map(String::as_str).zip(&plans).collect();
    lab.store.create_runs(&runs, RunState::Planned, 1).unwrap();
    lab.measured("r", &plans[0], 0, [0.95, 1.0, 0.90]);
    let alone = lab.analysed("r");
    assert_eq!(another(&alone, 0), None);
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
    assert_eq!(another(&second, 0), None, "one session by itself");
    let text = shown(&second, Format::Text);
    assert!(
        text.contains("8 of 8 blocks") && !text.contains("sessions"),
        "{text}"
    );
    let text = shown(&two, Format::Text);
    for said in [
        "2 of 3 sessions are finished",
        " over 2 sessions; another hour: [",
        "sessions started 1970-01-01T00:00:00, 1970-01-01T01:00:00 UTC",
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
    assert_eq!(another(&left, 0), None);
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
fn earlier_pairs_of_the_host_in_other_hours_tell_of_another_one() {
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
    assert_eq!(another(&now, 0), Some(HoursFrom::EarlierPairs(1)));
    let cell = |at: usize| {
        let speed = now.comparison.cells[at].metric(Metric::Throughput).unwrap();
        (speed.ratio, speed.hours.clone().unwrap())
    };
    let (ratio, hours) = cell(2);
    // 3 % apart, so a sd of 0.022; √2 · 12.7 times that.
    let half = (hours.another.ci95.unwrap().1 / ratio.estimate).ln();
    assert!((0.35..0.45).contains(&half), "{half}");
    assert_eq!(
        another(&lab.analysed("later"), 0),
        Some(HoursFrom::EarlierPairs(2))
    );
    assert_eq!(another(&lab.analysed("b"), 0), None, "one run is no pair");
    assert_eq!(
        another(&lab.analysed("larger"), 0),
        Some(HoursFrom::EarlierPairs(1))
    );
    let mut same = plan.clone();
    same.servers[2] = same.servers[0].clone();
    same.servers[2].role = deltabench_model::plan::Role::Candidate;
    lab.measured("same", &same, 300, [1.0, 1.0, 1.0]);
    assert_eq!(
        another(&lab.analysed("same"), 0),
        None,
        "equal builds move less"
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
    assert_eq!(another(&lab.analysed("now"), 0), None);
    lab.measured("old", &old, 180, [0.95, 1.0, 0.97]);
    assert_eq!(
        another(&lab.analysed("old"), 0),
        Some(HoursFrom::EarlierPairs(1))
    );
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
    assert_eq!(another(&lab.analysed("now"), 0), None, "one run is no pair");
    let mut again = plan.clone();
    again.confirms = Some("r".to_owned());
    lab.measured(&confirmation_name("r", &[]), &again, 240, [0.95, 1.0, 0.97]);
    lab.measured("then", &plan, 300, [0.95, 1.0, 0.97]);
    assert_eq!(
        another(&lab.analysed("then"), 0),
        Some(HoursFrom::EarlierPairs(2))
    );
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
        value[0]["conditions"][at]["depends"].clone()
    };
    assert_eq!(depends(&lab, 0), Value::Null, "two loads cannot tell");
    // What another hour does to the ratio, by earlier pairs of runs: little, and then more than this.
    lab.measured("e1", &plan, 0, [0.71, 1.0, 0.9]);
    lab.measured("e2", &plan, 60, [0.705, 1.0, 0.9]);
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
    lab.measured("e3", &plan, 120, [0.95, 1.0, 0.9]);
    assert_eq!(depends(&lab, 0), false, "hours differ by as much");
}
