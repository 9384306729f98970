//! Absolute numbers from slices, and the grids of studies made of them.

use crate::builder::{cell, histogram, metric, plan, slice};
use crate::calibration_model::Simulation;
use crate::study_model::{CALM, WORKLOADS, cells, equal, figure, of, plan_of, run, tables_of};
use deltabench_compare::absolute::{CellResult, is_shown, mean_and_stddev, progress, results};
use deltabench_compare::comparison::{Comparison, Metric, Verdict};
use deltabench_compare::segments::Slope;
use deltabench_compare::study::{Axis, Grid, StudyRun, grids_of, study};
use deltabench_model::plan::{
    Cell, CellId, Pins, Placement, Plan, SensitivityPart, ServerId, SessionPart, Varied,
};
use deltabench_model::slice::{ScriptTally, Slice, VoidReason};
use deltabench_model::units::to_f64;

fn tally(script: u32, latencies_us: &[f64]) -> ScriptTally {
    ScriptTally {
        script,
        operations: u64::try_from(latencies_us.len()).unwrap(),
        serialization_failures: 1,
        deadlock_failures: 0,
        other_failures: 0,
        retried: 2,
        retries: 3,
        skipped: 4,
        late: 5,
        latency_sum_us: latencies_us.iter().sum(),
        latency_square_sum_us2: latencies_us.iter().map(|us| us * us).sum(),
    }
}

/// A slice of half a second with these latencies, all of one script.
fn half_second(server: ServerId, block: u32, round: u32, latencies_us: &[u64]) -> Slice {
    let of = |us: &u64| us * 1000;
    let as_f64: Vec<f64> = latencies_us.iter().map(|us| to_f64(*us)).collect();
    Slice {
        started_ns: u64::from(10 * block + round) * 1_000_000_000,
        duration_ns: 500_000_000,
        operations: u64::try_from(latencies_us.len()).unwrap(),
        failed: 1,
        latency_histogram: histogram(&latencies_us.iter().map(of).collect::<Vec<_>>()),
        scripts: vec![tally(0, &as_f64)],
        ..slice(server, block, round, 1.0, None)
    }
}

#[test]
fn counts_latency_and_scripts_are_sums_over_slices() {
    let slices = [
        half_second(ServerId(0), 0, 0, &[100, 200]),
        half_second(ServerId(0), 0, 1, &[300]),
        half_second(ServerId(0), 1, 0, &[400, 1000]),
        half_second(ServerId(2), 0, 0, &[700]),
    ];
    let found = results(&slices);
    assert_eq!(found.len(), 2);
    let base = &found[0];
    assert_eq!((base.cell, base.server), (CellId(0), ServerId(0)));
    assert_eq!((base.total.operations, base.total.failed), (5, 3));
    assert!((base.total.seconds - 1.5).abs() < 1e-9);
    assert!((base.total.per_second().unwrap() - 5.0 / 1.5).abs() < 1e-9);
    let latency = base.total.latency.unwrap();
    assert!((latency.average_us - 400.0).abs() < 1.0);
    // Deviations of 300, 200, 100, 0 and 600 from 400.
    assert!((latency.stddev_us - 100_000.0_f64.sqrt()).abs() < 1.0);
    assert!((latency.p50_us - 300.0).abs() < 1.0);
    assert!((latency.p99_us - 1000.0).abs() < 1.0);
    assert_eq!(
        base.blocks
            .iter()
            .map(|(block, _)| *block)
            .collect::<Vec<_>>(),
        [0, 1]
    );
    assert!((base.blocks[1].1.latency.unwrap().average_us - 700.0).abs() < 1.0);
    let script = &base.scripts[0];
    assert_eq!((script.operations, script.serialization_failures), (5, 3));
    assert_eq!(
        (script.retried, script.retries, script.skipped, script.late),
        (6, 9, 12, 15)
    );
    assert!((script.latency_sum_us - 2000.0).abs() < 1e-9);
}

#[test]
fn void_slices_do_not_count_and_a_repeated_place_counts_once() {
    let mut void = half_second(ServerId(0), 0, 1, &[9000]);
    void.void = Some(VoidReason::Stalled);
    let slices = [
        half_second(ServerId(0), 0, 0, &[1, 2, 3]),
        void,
        half_second(ServerId(0), 0, 0, &[100, 200]),
    ];
    let found = results(&slices);
    assert_eq!(
        found[0].total.operations, 2,
        "the later slice of a place counts"
    );
    assert_eq!(found[0].series.len(), 1);
    assert_eq!(
        results(&slices[1..2]),
        [],
        "nothing but a void slice is no result"
    );
}

#[test]
fn a_histogram_that_cannot_be_read_leaves_counts_and_no_latency() {
    let mut broken = half_second(ServerId(0), 0, 1, &[100]);
    broken.latency_histogram = vec![1, 2, 3];
    let found = results(&[half_second(ServerId(0), 0, 0, &[100]), broken]);
    assert_eq!(found[0].total.operations, 2);
    assert_eq!(found[0].total.latency, None);
}

#[test]
fn intervals_of_progress_add_up_and_are_at_least_as_long_as_asked() {
    let slices: Vec<Slice> = (0..7)
        .map(|round| half_second(ServerId(0), 0, round, &[100, 300]))
        .collect();
    let series = &results(&slices)[0].series;
    let all = progress(series, 1.0);
    let at: Vec<f64> = all.iter().map(|one| one.at_seconds).collect();
    assert_eq!(at, [1.0, 2.0, 3.0, 3.5]);
    assert_eq!(all.iter().map(|one| one.operations).sum::<u64>(), 14);
    assert_eq!(all.iter().map(|one| one.retries).sum::<u64>(), 21);
    assert_eq!(
        (all[0].average_us, all[0].stddev_us),
        (Some(200.0), Some(100.0))
    );
    assert_eq!(progress(series, 1e9).len(), 1);
    assert_eq!(progress(&[], 1.0), []);
}

#[test]
fn nothing_has_no_mean_and_rounding_no_negative_variance() {
    assert_eq!(mean_and_stddev(0, 0.0, 0.0), None);
    let (mean, deviation) = mean_and_stddev(3, 0.3, 0.03 - 1e-18).unwrap();
    assert!((mean - 0.1).abs() < 1e-12 && deviation < 1e-6);
}

#[test]
fn absolute_numbers_are_shown_where_clients_vary_or_scripts_run() {
    assert!(!is_shown(&plan(vec![cell(1, false)])));
    assert!(is_shown(&plan(vec![cell(1, false), cell(4, false)])));
}

const CLIENTS: [u32; 6] = [1, 2, 4, 8, 16, 32];

/// Linear to 4, then flat; server 2 is 8 % slower, server 3 as fast as the base.
fn law(server: ServerId, cell: &Cell) -> (f64, f64) {
    let slow = if server == ServerId(2) { 0.92 } else { 1.0 };
    let rate = slow * 1000.0 * f64::from(cell.clients.min(4));
    (rate, 10.0 / slow)
}

fn measured(plan: &Plan, seed: u64) -> Comparison {
    run(&mut Simulation::new(seed), plan, CALM, law)
}

fn one<'a>(
    plan: &'a Plan,
    comparison: &'a Comparison,
    run: &'a str,
    host: &'a str,
) -> StudyRun<'a> {
    StudyRun {
        run,
        plan,
        comparison,
        results: &[],
        host,
        withdrawn: &[],
        began_unix_ms: None,
        via: &[],
    }
}

fn grid<'g>(grids: &'g [Grid], title: &str) -> &'g Grid {
    grids
        .iter()
        .find(|grid| grid.title == title)
        .unwrap_or_else(|| {
            panic!(
                "{title}: {:?}",
                grids.iter().map(|grid| &grid.title).collect::<Vec<_>>()
            )
        })
}

#[test]
fn a_grid_has_absolute_figures_verdicts_and_segments() {
    let plan = plan_of(&["b", "c"], cells(&WORKLOADS[..2], &CLIENTS));
    let comparison = measured(&plan, 3);
    let grids = grids_of(one(&plan, &comparison, "r1", "box")).unwrap();
    assert_eq!(grids.len(), 2);
    let grid = grid(&grids, "point-query by clients");
    assert_eq!(grid.clients, CLIENTS);
    let names: Vec<&str> = grid
        .columns
        .iter()
        .map(|column| column.name.as_str())
        .collect();
    assert_eq!(names, ["a", "b", "c"]);
    for (at, &clients) in CLIENTS.iter().enumerate() {
        let truth = 1000.0 * f64::from(clients.min(4));
        let points: Vec<_> = grid
            .columns
            .iter()
            .map(|column| column.points[at].unwrap())
            .collect();
        let (low, high) = points[0].throughput.ci95.unwrap();
        assert!(
            low < high && (low / truth - 1.0).abs() < 0.05,
            "{low} {high}"
        );
        assert_eq!(points[0].relative, None, "the first column is the base");
        assert_eq!(points[1].verdict, Some(Verdict::Regression));
        assert_eq!(points[2].verdict, Some(Verdict::NoChange));
        assert!((points[1].relative.unwrap().estimate - 0.92).abs() < 0.02);
        assert_eq!(
            points[1].average_us, None,
            "latencies come from results alone"
        );
    }
    for column in &grid.columns {
        let slopes: Vec<(Slope, u32)> = column
            .segments
            .iter()
            .map(|one| (one.slope, one.to))
            .collect();
        assert_eq!(slopes, [(Slope::Linear, 4), (Slope::Flat, 32)]);
    }
    assert!(grid.apart.is_empty() && grid.placement.is_some());
}

#[test]
fn segments_never_mix_placements() {
    let mut plan = plan_of(&["b"], cells(&WORKLOADS[..1], &CLIENTS));
    plan.placement_single = Placement::SameCore;
    let comparison = measured(&plan, 3);
    let grids = grids_of(one(&plan, &comparison, "r1", "box")).unwrap();
    let grid = grid(&grids, "point-query by clients");
    assert_eq!(grid.apart, [1]);
    assert!(grid.columns[0].points[0].is_some());
    let from: Vec<u32> = grid.columns[0]
        .segments
        .iter()
        .map(|one| one.from)
        .collect();
    assert_eq!(from.first(), Some(&CLIENTS[1]));
    let text = grid.placement.clone().unwrap();
    assert!(
        text.contains("no segment and no scaleup connects them"),
        "{text}"
    );
    // Named cores place all of them alike.
    plan.pins = Some(Pins {
        server: vec![0],
        client: vec![1],
    });
    let grids = grids_of(one(&plan, &comparison, "r1", "box")).unwrap();
    assert_eq!((grids[0].apart.len(), &grids[0].placement), (0, &None));
}

#[test]
fn one_number_of_clients_makes_no_grid() {
    let plan = plan_of(&["b"], cells(&WORKLOADS[..1], &[4]));
    let comparison = measured(&plan, 3);
    assert_eq!(grids_of(one(&plan, &comparison, "r1", "box")).unwrap(), []);
}

#[test]
fn machines_are_columns_of_grids_of_their_own() {
    let plan = plan_of(&["b"], cells(&WORKLOADS[..1], &[1, 4]));
    let comparison = measured(&plan, 3);
    let fast = run(&mut Simulation::new(4), &plan, CALM, |server, cell| {
        let (rate, cpu) = law(server, cell);
        (1.5 * rate, cpu)
    });
    let runs = [
        one(&plan, &comparison, "r1", "xeon"),
        one(&plan, &fast, "r2", "epyc"),
    ];
    let study = study(&runs).unwrap();
    assert_eq!(
        study.grids.len(),
        2 + 2,
        "servers on each host, hosts for each server"
    );
    let hosts = grid(&study.grids, "point-query by clients and host, b");
    assert_eq!(hosts.axis, Axis::Host);
    let names: Vec<&str> = hosts
        .columns
        .iter()
        .map(|column| column.name.as_str())
        .collect();
    assert_eq!(names, ["xeon", "epyc"]);
    let point = hosts.columns[1].points[1].unwrap();
    assert!((point.relative.unwrap().estimate - 1.5).abs() < 0.05);
    assert_eq!(point.verdict, None, "different runs are not judged");
}

#[test]
fn withdrawn_points_are_unfit_and_in_no_segment() {
    let plan = plan_of(&["b"], cells(&WORKLOADS[..1], &CLIENTS));
    let comparison = run(&mut Simulation::new(3), &plan, CALM, equal);
    let withdrawn = [deltabench_model::invalidation::Invalidation {
        cell: Some(CellId(2)),
        reason: "another job ran".to_owned(),
        at_unix_ms: 0,
    }];
    let run = StudyRun {
        withdrawn: &withdrawn,
        began_unix_ms: None,
        via: &[],
        ..one(&plan, &comparison, "r1", "box")
    };
    let grids = grids_of(run).unwrap();
    for column in &grids[0].columns {
        assert_eq!(column.points[2].unwrap().verdict, Some(Verdict::Unfit));
        let slopes: Vec<Slope> = column.segments.iter().map(|one| one.slope).collect();
        assert_eq!(slopes, [Slope::Linear]);
    }
}

#[test]
fn a_server_alone_has_a_grid_from_what_it_did() {
    let mut plan = plan_of(&[], cells(&WORKLOADS[..1], &[1, 4]));
    plan.servers.truncate(1);
    let slices: Vec<Slice> = (0..8)
        .flat_map(|block| {
            (0..2).map(move |cell| Slice {
                cell: CellId(cell),
                ..half_second(ServerId(0), block, 0, &[1000; 500])
            })
        })
        .collect();
    let found = results(&slices);
    let comparison = deltabench_compare::analyse(&plan, &slices, Vec::new());
    let run = StudyRun {
        results: &found,
        ..one(&plan, &comparison, "r1", "box")
    };
    let grids = grids_of(run).unwrap();
    let point = grids[0].columns[0].points[1].unwrap();
    assert!((point.throughput.estimate - 1000.0).abs() < 1e-6);
    assert!((point.average_us.unwrap().estimate - 1000.0).abs() < 1.0);
}

#[test]
fn what_belongs_to_another_run_is_no_repetition_of_it() {
    let plan = plan_of(&["b"], cells(&WORKLOADS[..2], &[4]));
    let mut random = Simulation::new(29);
    let comparisons = [0; 3].map(|_| run(&mut random, &plan, CALM, equal));
    let mut plans = vec![plan; 3];
    plans[1].session = Some(SessionPart {
        first: "r1".to_owned(),
        number: 2,
        of: 2,
        gap_seconds: 0.0,
    });
    plans[2].sensitivity = Some(SensitivityPart {
        of: "r1".to_owned(),
        varied: Varied::Tcp,
    });
    let runs = of(&plans, &comparisons);
    let study = tables_of(&runs);
    let found = figure(&study.tables[0], "point-query", "b");
    assert_eq!(found.repetitions, 1);
    let own = metric(&comparisons[0].cells[0], Metric::Throughput);
    assert_eq!(found.ratio, own.ratio);
    // Each has a report of its own all the same.
    for run in runs {
        assert!(grids_of(run).is_ok(), "{}", run.run);
    }
}

#[test]
fn latencies_of_a_grid_are_of_both_copies_of_the_base_where_its_throughput_is() {
    let mut plan = plan_of(&["b"], cells(&WORKLOADS[..1], &[1, 2]));
    let comparison = measured(&plan, 5);
    let of_cell = |cell: u32| {
        let latencies = [100, 400, 300].into_iter().enumerate();
        latencies.flat_map(move |(server, us)| {
            (0..6).map(move |block| Slice {
                cell: CellId(cell),
                ..half_second(ServerId(u32::try_from(server).unwrap()), block, 0, &[us])
            })
        })
    };
    let slices: Vec<Slice> = (0..2).flat_map(of_cell).collect();
    let results: Vec<CellResult> = results(&slices);
    let median = |plan: &Plan, column: usize| {
        let run = StudyRun {
            results: &results,
            ..one(plan, &comparison, "r1", "box")
        };
        let grids = grids_of(run).unwrap();
        let point = grid(&grids, "point-query by clients").columns[column].points[0].unwrap();
        point.p50_us.unwrap().estimate
    };
    let near = |found: f64, wanted: f64| assert!((found / wanted - 1.0).abs() < 2e-3, "{found}");
    near(median(&plan, 0), 200.0);
    near(median(&plan, 1), 300.0);
    plan.two_controls = false;
    near(median(&plan, 0), 100.0);
    near(median(&plan, 1), 300.0);
}
