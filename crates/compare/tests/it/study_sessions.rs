//! Runs of several sessions in studies: a session is a load of its own.

use crate::builder::{Blocks, PLACEBO, around, candidate, cell, metric, only_cell, plan, slices};
use crate::calibration_model::Simulation;
use crate::study_model::*;
use deltabench_compare::comparison::{Comparison, Metric, Ratio, Verdict};
use deltabench_compare::impact::ServerTimes;
use deltabench_compare::{analyse, combine, exit_code};
use deltabench_model::exit;
use deltabench_model::plan::{Cell, Plan, ServerId, SessionPart, Stopping};

/// A plan of so many sessions.
fn in_sessions(mut plan: Plan, of: u32) -> Plan {
    plan.stopping = Stopping::Fixed;
    plan.session = Some(SessionPart {
        first: "r1".to_owned(),
        number: 1,
        of,
        gap_seconds: 0.0,
    });
    plan
}

fn together(all: &[Comparison], plan: &Plan) -> Comparison {
    let mut first = all[0].clone();
    combine(&mut first, all, plan);
    first
}

/// Sessions in which the candidate has these speeds.
fn sessions(plan: &Plan, random: &mut Simulation, speeds: &[f64]) -> Comparison {
    let session = |speed: &f64| {
        run(random, plan, CALM, |server: ServerId, cell: &Cell| {
            let (rate, cpu) = equal(server, cell);
            let share = if server.index() == 2 { *speed } else { 1.0 };
            (share * rate, cpu / share)
        })
    };
    let all: Vec<Comparison> = speeds.iter().map(session).collect();
    together(&all, plan)
}

fn half_width(ratio: &Ratio) -> f64 {
    let (low, high) = ratio.ci95.unwrap();
    (high / low).ln() / 2.0
}

#[test]
fn the_intervals_of_a_study_hold_between_sessions() {
    let base = in_sessions(plan_of(&["b"], cells(&WORKLOADS[..2], &[4])), 4);
    let plans = [
        on_storage(&base, 1, "x", None),
        on_storage(&base, 2, "y", None),
    ];
    let mut random = Simulation::new(5);
    let comparisons = [
        sessions(&plans[0], &mut random, &[0.90, 0.95, 1.02, 0.96]),
        sessions(&plans[1], &mut random, &[0.99, 0.93, 1.06, 0.97]),
    ];
    let study = tables_of(&of(&plans, &comparisons));
    let ratios = study.tables.iter().find(|table| table.of_ratios).unwrap();
    for row in &ratios.rows {
        let found = row.figures[1].unwrap();
        // Four sessions on either side that scatter by some 5 %.
        assert!(
            half_width(&found.ratio) > 0.07,
            "{}: {:?}",
            row.name,
            found.ratio
        );
        assert_eq!(found.repetitions, 4);
    }
    let own = comparisons[0]
        .summaries
        .iter()
        .find(|one| one.group.is_none());
    let own = own.unwrap().throughput;
    let spread = study
        .spreads
        .iter()
        .find(|one| one.table.starts_with("throughput"))
        .unwrap();
    let spread = spread.columns[1].as_ref().unwrap().geometric.unwrap();
    assert!(
        (half_width(&spread) / half_width(&own) - 1.0).abs() < 0.05,
        "{spread:?} {own:?}"
    );
    let notes = study.notes.join("; ");
    assert!(
        !notes.contains("every figure comes from one load"),
        "{notes}"
    );
    // A host's sample is the session, too.
    let found = metric(&comparisons[0].cells[0], Metric::Throughput);
    assert_eq!(found.sample(comparisons[0].sessions).len(), 4);
    assert_eq!(found.sample(None).len(), found.blocks.len());
}

/// Candidates are compared with both copies of the base, so half of what these are apart is in their ratio.
#[test]
fn a_placebo_is_as_far_off_over_sessions_as_in_one() {
    let mut plan = plan(vec![cell(4, false)]);
    plan.stopping = Stopping::Fixed;
    let measured = |off: f64| {
        let (placebo, ours) = (around(off, 0.001, 8), around(0.95, 0.001, 8));
        let sides = [
            Blocks {
                server: PLACEBO,
                rates: &placebo,
                costs: &[1.0; 8],
            },
            candidate(&ours, &[1.05; 8]),
        ];
        slices(8, &sides)
    };
    let session = |plan: &Plan, off: f64| analyse(plan, &measured(off), Vec::new());
    for (two_controls, verdict, code) in [
        (true, Verdict::Regression, exit::REGRESSION),
        (false, Verdict::Unfit, exit::UNFIT),
    ] {
        plan.two_controls = two_controls;
        let all = [1.0120, 1.0125, 1.0115, 1.0121].map(|off| session(&plan, off));
        for one in &all {
            assert_eq!(only_cell(one).verdict, verdict);
        }
        // The whole workload of a replay is judged like a cell.
        let times = ServerTimes::of(&plan, &measured(1.012), PLACEBO);
        let whole = times.whole(&[1.0], plan.delta).unwrap();
        assert_eq!(whole.off, !two_controls);
        let together = together(&all, &plan);
        assert_eq!(only_cell(&together).verdict, verdict);
        assert_eq!(exit_code(&together), code);
    }
}

/// What was withdrawn of a session, or lost in it, leaves the blocks of the others where they are.
#[test]
fn blocks_of_a_session_keep_their_numbers_where_another_lacks_the_cell() {
    let plan = in_sessions(plan_of(&["b"], cells(&WORKLOADS[..1], &[4, 8])), 3);
    let mut random = Simulation::new(7);
    // The host is slower in later sessions.
    let mut all: Vec<Comparison> = [1.0, 0.5, 0.25]
        .map(|host| {
            run(&mut random, &plan, CALM, |server, cell| {
                let (rate, cpu) = equal(server, cell);
                (host * rate, cpu)
            })
        })
        .to_vec();
    let whole = all[0].clone();
    let scaled = |all: &[Comparison]| {
        let mut first = whole.clone();
        combine(&mut first, all, &plan);
        let comparisons = [first];
        let plans = [plan.clone()];
        let study = tables_of(&of(&plans, &comparisons));
        let mut tables = study.tables.iter();
        let table = tables.find(|table| table.title.contains("relative to 4 clients"));
        table.unwrap().rows[0].figures[1].unwrap().ratio.estimate
    };
    assert!((scaled(&all) - 2.0).abs() < 0.05, "{}", scaled(&all));
    let gone = all[1].cells[0].cell;
    all[1].cells.retain(|one| one.cell != gone);
    all[1].placebo_cells.retain(|one| one.cell != gone);
    assert!((scaled(&all) - 2.0).abs() < 0.05, "{}", scaled(&all));
    // In one session alone, too.
    all[0].cells.retain(|one| one.cell != gone);
    all[0].placebo_cells.retain(|one| one.cell != gone);
    assert!((scaled(&all) - 2.0).abs() < 0.05, "{}", scaled(&all));
}
