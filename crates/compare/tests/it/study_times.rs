//! Studies that grow: executions of several times in one table.

use crate::calibration_model::Simulation;
use crate::study_model::*;
use deltabench_compare::comparison::{Comparison, Metric, Ratio, Verdict};
use deltabench_compare::study::{Measured, SpreadOf, Study, StudyRun, ViaColumn, ViaFigure, study};
use deltabench_model::plan::{CellId, Plan};

const DAY: i64 = 86_400_000;

/// Servers a and b, then a, b and c, as executions of two experiments.
fn plans() -> [Plan; 2] {
    let named = |names: &[&str], execution: &str| {
        let plan = plan_of(names, cells(&WORKLOADS[..3], &[1]));
        let mut plan = part(&plan, 1, 1, &[]);
        let part = plan.experiment.as_mut().unwrap();
        (part.execution, part.experiment) = (execution.to_owned(), format!("of {execution}"));
        plan
    };
    [named(&["b"], "spring"), named(&["b", "c"], "autumn")]
}

fn compared(plans: &[Plan; 2]) -> [Comparison; 2] {
    let mut random = Simulation::new(31);
    [0, 1].map(|at| run(&mut random, &plans[at], CALM, equal))
}

fn runs<'a>(plans: &'a [Plan; 2], comparisons: &'a [Comparison; 2]) -> Vec<StudyRun<'a>> {
    let mut runs = of(plans, comparisons);
    for (run, day) in runs.iter_mut().zip([100, 200]) {
        run.began_unix_ms = Some(day * DAY);
    }
    runs
}

/// Names of the columns of the first table.
fn names_of(study: &Study) -> Vec<&str> {
    let columns = study.tables[0].columns.iter();
    columns.map(|one| one.name.as_str()).collect()
}

fn days(study: &Study, column: &str) -> Vec<(i64, String)> {
    let table = &study.tables[0];
    let found = table.columns.iter().find(|one| one.name == column).unwrap();
    let day = |one: &Measured| {
        let execution = one.execution.clone().unwrap();
        (one.began_unix_ms.unwrap() / DAY, execution)
    };
    found.measured.iter().map(day).collect()
}

#[test]
fn columns_of_two_executions_say_when_each_was_measured_and_those_of_one_do_not() {
    let plans = plans();
    let comparisons = compared(&plans);
    let runs = runs(&plans, &comparisons);
    let both = tables_of(&runs);
    assert_eq!(names_of(&both), ["a", "b", "c"]);
    let (spring, autumn) = ((100, "spring".to_owned()), (200, "autumn".to_owned()));
    assert_eq!(days(&both, "b"), [spring, autumn.clone()]);
    assert_eq!(days(&both, "c"), [autumn]);
    let found = |column| figure(&both.tables[0], "point-query", column).repetitions;
    assert_eq!((found("b"), found("c")), (2, 1), "b has two loads");
    let alone = tables_of(&runs[1..]);
    assert!(
        alone.tables[0]
            .columns
            .iter()
            .all(|one| one.measured.is_empty())
    );
    // Other work in the same place is refused.
    let mut plans = plans.clone();
    plans[1].settings.push(("jit".to_owned(), "on".to_owned()));
    let refused = study(&of(&plans, &comparisons)).unwrap_err();
    assert!(refused.detail.unwrap().contains("they differ in settings"));
}

/// What earlier runs say of `d`, in each of three rows.
fn via(server: &str) -> ViaColumn {
    let figure = |(cell, estimate): (u32, f64)| ViaFigure {
        cell: CellId(cell),
        metric: Metric::Throughput,
        ratio: Ratio {
            estimate,
            ci95: Some((estimate / 1.1, estimate * 1.1)),
            ci90: None,
        },
        verdict: Some(Verdict::Inconclusive),
        occasions: 1,
    };
    ViaColumn {
        name: format!("{server} via a (1 occasion)"),
        server: server.to_owned(),
        figures: [(0, 0.8), (1, 1.0), (2, 1.25)].map(figure).to_vec(),
        measured: Vec::new(),
    }
}

#[test]
fn a_column_of_earlier_runs_has_a_mean_and_goes_where_a_run_measured_its_server() {
    let plans = plans();
    let comparisons = compared(&plans);
    let columns = [via("d"), via("c")];
    let mut runs = runs(&plans, &comparisons);
    runs[0].via = &columns;
    let both = tables_of(&runs);
    assert_eq!(names_of(&both), ["a", "d via a (1 occasion)", "b", "c"]);
    let all = both
        .spreads
        .iter()
        .find(|one| one.of == SpreadOf::All)
        .unwrap();
    let mean = all.columns[1].unwrap().geometric.unwrap();
    let (low, high) = mean.ci95.unwrap();
    // As if all rows erred in one direction.
    let is = |found: f64, wanted: f64| (found / wanted - 1.0).abs() < 1e-9;
    assert!(
        is(mean.estimate, 1.0) && is(low, 1.0 / 1.1) && is(high, 1.1),
        "{mean:?}"
    );
    // CPU is not known of it: no column, no mean.
    let cpu = table(&both, "CPU per operation relative to a");
    assert_eq!(cpu.columns.len(), 3);
}
