//! Runs of a study that belong to other runs.

use crate::calibration_model::Simulation;
use crate::study_model::*;
use deltabench_compare::comparison::Comparison;
use deltabench_compare::study::{grids_of, study};
use deltabench_model::plan::{Cell, SensitivityPart, ServerId, SessionPart, Varied};

#[test]
fn runs_that_belong_to_another_are_no_repetitions_and_are_named() {
    let plan = plan_of(&["b"], cells(&WORKLOADS[..2], &[1]));
    let mut plans = vec![plan; 7];
    let whole = || "r1".to_owned();
    let session = |number| SessionPart {
        first: whole(),
        number,
        of: 2,
        gap_seconds: 0.0,
    };
    plans[0].session = Some(session(1));
    plans[1].session = Some(session(2));
    plans[2].confirms = Some(whole());
    plans[3].samples = Some(whole());
    plans[4].counts = Some(whole());
    plans[5].sensitivity = Some(SensitivityPart {
        of: whole(),
        varied: Varied::Tcp,
    });
    let mut random = Simulation::new(16);
    let comparisons: Vec<Comparison> = { plans.iter() }
        .map(|plan| run(&mut random, plan, CALM, equal))
        .collect();
    let runs = of(&plans, &comparisons);
    let all = tables_of(&runs);
    let told = "left out: r2, r3, r4, r5, r6, which belong to other runs; the first of several sessions \
                stands for all of them";
    assert!(all.notes.iter().any(|note| note == told), "{:?}", all.notes);
    let alone = tables_of(&[runs[0], runs[6]]);
    assert_eq!((&all.tables, &all.grids), (&alone.tables, &alone.grids));
    let named = |one: usize| tables_of(&[runs[0], runs[one]]).notes.join(" ");
    let told = "left out: r4, which belongs to another run";
    assert!(
        named(3).contains(told) && !named(3).contains("sessions"),
        "{}",
        named(3)
    );
    // The first session is not among them.
    assert!(
        !tables_of(&[runs[1], runs[6]])
            .notes
            .join(" ")
            .contains("stands")
    );
    let problem = study(&[runs[2], runs[3]]).unwrap_err();
    assert_eq!(
        problem.detail.as_deref(),
        Some("r3 belongs to r1\nr4 belongs to r1")
    );
    // Each on its own has its grids.
    for run in runs {
        grids_of(run).unwrap();
    }
}

#[test]
fn groups_of_servers_are_columns_of_one_table_and_no_repetitions() {
    let group = |candidates: &[&str], number| {
        let plan = plan_of(candidates, cells(&WORKLOADS[..2], &[1]));
        let mut plan = part(&plan, 1, 1, &[]);
        plan.experiment.as_mut().unwrap().group = Some((number, 3));
        plan
    };
    let plans = [group(&["b", "c"], 1), group(&["d"], 2), group(&["e"], 3)];
    let mut random = Simulation::new(19);
    let law = |server: ServerId, cell: &Cell| {
        let (rate, cpu) = equal(server, cell);
        // Of each group the first candidate is faster.
        let share = if server.index() == 2 { 1.1 } else { 1.0 };
        (share * rate, cpu / share)
    };
    let comparisons: Vec<Comparison> = { plans.iter() }
        .map(|plan| run(&mut random, plan, CALM, law))
        .collect();
    let mut runs = of(&plans, &comparisons);
    let all = tables_of(&runs);
    let throughput = table(&all, "throughput relative to a");
    let names: Vec<&str> = { throughput.columns.iter() }
        .map(|column| column.name.as_str())
        .collect();
    assert_eq!(names, ["a", "b", "c", "d", "e"]);
    for (name, truth) in [("b", 1.1), ("c", 1.0), ("d", 1.1), ("e", 1.1)] {
        let figure = figure(throughput, "point-query", name);
        assert!((figure.ratio.estimate - truth).abs() < 0.02, "{name}");
        assert_eq!(figure.repetitions, 1, "{name}");
    }
    let notes = all.notes.join("\n");
    assert!(notes.contains("measured in 3 groups"), "{notes}");
    assert!(notes.contains("comes from one load of the data"), "{notes}");
    assert!(
        !notes.contains("missing") && !notes.contains("differs from"),
        "{notes}"
    );
    // In any order, and each is missed.
    runs.reverse();
    assert_eq!(tables_of(&runs), all);
    let notes = tables_of(&runs[..2]).notes.join("\n");
    let told = "missing: 1 of 3 groups of servers of part 1 of e1: 1";
    assert!(notes.contains(told), "{notes}");
}
