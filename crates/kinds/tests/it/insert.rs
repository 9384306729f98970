//! The Insert Benchmark: published figures against values worked out by hand, and the verdicts on them.

use crate::builder::{BASE, CANDIDATE, PLACEBO};
use crate::insert_model::{
    counters, insert_plan, judged, judged_by_slices, length, noisier, noisy, record, records,
    setup, slices, told, usual,
};
use deltabench_compare::comparison::{Comparison, Metric, Verdict};
use deltabench_compare::costs::{Machine, add_costs};
use deltabench_compare::thresholds::MIN_BLOCKS;
use deltabench_kinds::insert::{
    INSERT_METRICS, InsertReport, Quartile, ShareColour, StepFigures, StepRecord,
};
use deltabench_model::plan::{CellId, Plan, ServerId};
use deltabench_model::slice::VoidReason;
use deltabench_model::units::to_f64;
use deltabench_model::work::insert::{InsertRole, InsertStep};

fn figures<'a>(report: &'a InsertReport, server: ServerId, step: &str) -> &'a StepFigures {
    let place = report
        .steps
        .iter()
        .position(|column| column.name == step)
        .unwrap();
    &report.servers[server.index()].steps[place]
}

fn metric(figures: &StepFigures, key: &str) -> Option<f64> {
    let place = INSERT_METRICS.iter().position(|metric| metric.key == key);
    figures.metrics[place.unwrap()]
}

fn near(value: Option<f64>, expected: f64) {
    let value = value.unwrap();
    assert!(
        (value - expected).abs() <= 1e-6 * expected.abs(),
        "{value} is not {expected}"
    );
}

fn verdict(comparison: &Comparison, cell: u32) -> Verdict {
    let found = comparison.cells.iter().find(|one| one.cell == CellId(cell));
    found.unwrap().verdict
}

#[test]
fn throughput_is_in_published_units() {
    let plan = insert_plan(1);
    let (_, report) = told(&plan, &records(1, |_, _, _| 1.0));
    for (place, column) in report.steps.iter().enumerate() {
        let found = report.servers[0].steps[place].throughput.unwrap();
        let expected = usual(column.step);
        assert!(
            (found.mean / expected - 1.0).abs() < 1e-3,
            "{}: {} is not {expected}",
            column.name,
            found.mean
        );
        assert_eq!((found.passes, found.ci95), (1, None));
    }
    let units: Vec<&str> = report.steps.iter().map(|column| column.unit).collect();
    assert_eq!(units[..4], ["rows/s"; 4]);
    assert_eq!(units[4..], ["queries/s"; 2]);
}

#[test]
fn the_metrics_line_of_a_write_step_is_as_published() {
    let plan = insert_plan(1);
    // l.i1: 2 × 80 000 rows at 20 000/s are 8 seconds.
    let (_, report) = told(&plan, &records(1, |_, _, _| 1.0));
    let step = figures(&report, BASE, "l.i1");
    near(metric(step, "ips"), 20_000.0);
    near(metric(step, "qps"), 0.0);
    near(metric(step, "rps"), 100.0);
    near(metric(step, "rmbps"), 1.0);
    near(metric(step, "wps"), 50.0);
    near(metric(step, "wmbps"), 2.0);
    near(metric(step, "rpq"), 100.0 / 20_000.0);
    near(metric(step, "rkbpq"), 1024.0 / 20_000.0);
    near(metric(step, "wpi"), 50.0 / 20_000.0);
    near(metric(step, "wkbpi"), 2048.0 / 20_000.0);
    near(metric(step, "csps"), 1000.0);
    near(metric(step, "cspq"), 0.05);
    // 0.8 of one of four cores; 0.8 s for 20 000 rows.
    near(metric(step, "cpups"), 20.0);
    near(metric(step, "cpupq"), 40.0);
    near(metric(step, "dbgb1"), 2.0);
    near(metric(step, "dbgb2"), 3.0);
    near(metric(step, "rss"), 0.5);
    near(metric(step, "maxop"), 0.0009);
    near(metric(step, "p50"), 20_000.0);
    // 4 s and 0.2 s of CPU for 160 000 rows.
    near(metric(step, "delete_cpu"), 25.0);
    near(metric(step, "insert_cpu"), 1.25);
    assert_eq!(metric(step, "short_deletes"), None);
    assert!(
        report
            .notes
            .iter()
            .any(|note| note.contains("on postgres:18.6 1000.0 against 50.0 µs/row, 20 times")),
        "{:?}",
        report.notes
    );
}

#[test]
fn in_steps_of_queries_reads_are_for_a_query_and_writes_for_a_row() {
    let plan = insert_plan(1);
    let (_, report) = told(&plan, &records(1, |_, _, _| 1.0));
    let step = figures(&report, BASE, "qr100");
    near(metric(step, "ips"), 200.0);
    near(metric(step, "qps"), 12_000.0);
    near(metric(step, "rpq"), 100.0 / 12_000.0);
    near(metric(step, "wpi"), 50.0 / 200.0);
    near(metric(step, "cpupq"), 0.8e6 / 12_000.0);
    near(metric(step, "maxop"), 0.0002);
    near(metric(step, "missed"), 0.0);
    near(metric(step, "process_rkb"), 300.0 / 12_000.0);
    near(metric(step, "process_wkb"), 200.0 / 200.0);
    near(metric(step, "look_ups"), 4.0);
    near(metric(step, "look_up"), 2.5);
    near(metric(step, "look_up_max"), 7.0);
    near(metric(step, "long_transactions"), 2.0);
    near(metric(step, "client_min"), 6_000.0);
    near(metric(step, "client_median"), 6_000.0);
    let index = figures(&report, BASE, "l.x");
    // Its connections make the indexes of all rows: what one of its 100 inserts costs is not known.
    assert_eq!(metric(index, "insert_cpu"), None);
    assert!(index.response.is_empty());
    near(metric(index, "ips"), 1_000_000.0);
    near(metric(index, "cpupq"), 0.8);
    assert_eq!(metric(index, "maxop"), None);
}

#[test]
fn p99_is_the_slow_second_of_all_clients_and_a_second_cut_short_is_none() {
    let plan = insert_plan(1);
    let mut all = records(1, |_, _, _| 1.0);
    let step = all
        .iter_mut()
        .find(|step| step.server == BASE && step.cell == CellId(4));
    let step = step.unwrap();
    step.duration_ns = 100_500_000_000;
    step.seconds.resize(101, step.seconds[0]);
    for (rate, second) in (1..).zip(&mut step.seconds) {
        second.queries = rate;
    }
    step.seconds[100].queries = 0;
    let (_, report) = told(&plan, &all);
    let step = figures(&report, BASE, "qr100");
    // Of 100, 99, … 1 those at places 50 and 99, from 0.
    near(metric(step, "p50"), 50.0);
    near(metric(step, "p99"), 1.0);
}

#[test]
fn response_times_fall_into_published_buckets_and_exact_percentiles() {
    let plan = insert_plan(2);
    let (_, report) = told(&plan, &records(2, |_, _, _| 1.0));
    let roles = &figures(&report, BASE, "qp100").response;
    let words: Vec<InsertRole> = roles.iter().map(|times| times.role).collect();
    assert_eq!(words, InsertRole::ALL);
    // 300 and 900 µs in each pass.
    assert_eq!(roles[0].statements, 4);
    let percent = |role: usize| -> Vec<String> {
        let all = roles[role].percent.iter();
        all.map(|share| format!("{share:.1}")).collect()
    };
    assert_eq!(percent(0)[..3], ["0.0", "100.0", "0.0"]);
    // 2 ms and 5 s.
    assert_eq!(
        percent(1),
        [
            "0.0", "0.0", "50.0", "0.0", "0.0", "0.0", "0.0", "0.0", "50.0", "0.0"
        ]
    );
    assert!((roles[1].max_us / 5e6 - 1.0).abs() < 2e-3);
    assert!((roles[1].percentiles_us[0] / 2e3 - 1.0).abs() < 2e-3);
    assert_eq!(percent(2)[0], "100.0");
    assert_eq!(roles[2].percent.len(), 10);
}

#[test]
fn absolute_values_are_coloured_by_quartile_without_the_placebo() {
    let plan = insert_plan(1);
    let all = records(1, |server, _, _| match server {
        PLACEBO => 3.0,
        CANDIDATE => 0.7,
        _ => 1.0,
    });
    let (_, report) = told(&plan, &all);
    let of = |server| figures(&report, server, "l.i0").quartile;
    assert_eq!(of(BASE), Some(Quartile::Best));
    assert_eq!(of(CANDIDATE), Some(Quartile::Worst));
    assert_eq!(of(PLACEBO), None);
}

#[test]
fn two_passes_cannot_tell() {
    let plan = insert_plan(2);
    let (comparison, report) = told(&plan, &noisy(3, 2, 0.9));
    for cell in &comparison.cells {
        assert_eq!(cell.verdict, Verdict::Inconclusive);
        assert_eq!(cell.blocks, 2);
    }
    let relative = figures(&report, CANDIDATE, "qr100")
        .relative
        .as_ref()
        .unwrap();
    assert!(!relative.quotable);
    assert_eq!(relative.colour, None);
    assert!(relative.reason.contains("needs"), "{}", relative.reason);
    assert!(report.notes[0].starts_with("2 passes measured, but a verdict needs 6"));
}

#[test]
fn six_passes_at_nine_tenths_are_a_regression() {
    let plan = insert_plan(6);
    let (comparison, report) = told(&plan, &noisy(4, 6, 0.9));
    for cell in &comparison.cells {
        assert_eq!(cell.verdict, Verdict::Regression, "{}", cell.workload);
    }
    let relative = figures(&report, CANDIDATE, "l.i2")
        .relative
        .as_ref()
        .unwrap();
    assert!(relative.quotable);
    assert_eq!(relative.colour, Some(ShareColour::Slower));
    assert!((relative.ratio.unwrap().estimate - 0.9).abs() < 0.02);
    assert_eq!(figures(&report, BASE, "l.i2").relative, None);
}

#[test]
fn six_passes_find_five_percent() {
    let (mut found, mut all) = (0, 0);
    for seed in 0..40 {
        let plan = insert_plan(6);
        let comparison = judged_by_slices(&plan, &noisy(seed, 6, 0.95));
        let slower = |cell: &&_| verdict_of(cell) == Verdict::Regression;
        found += comparison.cells.iter().filter(slower).count();
        all += comparison.cells.len();
    }
    assert!(10 * found >= 9 * all, "{found} of {all}");
}

/// Verdicts of all cells with and without the correction for their number, then those of the placebo.
fn verdicts(comparison: &Comparison) -> Vec<(Verdict, Verdict)> {
    let all = comparison.cells.iter().chain(&comparison.placebo_cells);
    all.map(|cell| (cell.verdict, cell.alone)).collect()
}

fn verdict_of(cell: &deltabench_compare::comparison::CellComparison) -> Verdict {
    cell.verdict
}

#[test]
fn equal_servers_are_rarely_called_different_and_the_placebo_neither() {
    let (mut wrong, mut flagged, mut cells, mut any) = (0, 0, 0, 0);
    let runs = 200;
    for seed in 0..runs {
        let plan = insert_plan(6);
        let steps = noisier(1000 + seed, 6, 1.0, 0.04);
        let comparison = judged_by_slices(&plan, &steps);
        if seed == 0 {
            assert_eq!(verdicts(&comparison), verdicts(&judged(&plan, &steps)));
        }
        let different = |cell: &&deltabench_compare::comparison::CellComparison| {
            matches!(cell.verdict, Verdict::Regression | Verdict::Improvement)
        };
        let alone = |cell: &&deltabench_compare::comparison::CellComparison| {
            matches!(cell.alone, Verdict::Regression | Verdict::Improvement)
        };
        let found = comparison.cells.iter().filter(different).count();
        wrong += comparison.cells.iter().filter(alone).count();
        flagged += comparison.placebo_cells.iter().filter(different).count();
        cells += comparison.cells.len();
        any += usize::from(found > 0);
    }
    // 5 % of the cells alone, and of the runs: with three standard deviations of chance.
    assert!(wrong * 1000 <= cells * 69, "{wrong} of {cells} cells");
    assert!(any * 1000 <= 97 * 200, "{any} of {runs} runs");
    assert!(
        flagged * 1000 <= cells * 69,
        "{flagged} of {cells} of the placebo"
    );
}

/// A run in which one server gets this share of a step's background rate.
fn late(server: ServerId, share: impl Fn(u32) -> f64, passes: u32) -> (Plan, Vec<StepRecord>) {
    let mut all = noisy(9, passes, 1.0);
    for step in &mut all {
        if (step.server, step.cell) == (server, CellId(4)) {
            let place = (step.server, step.cell, step.block);
            *step = record(place, InsertStep::Range(100), 30_000.0, share(step.block));
        }
    }
    (insert_plan(passes), all)
}

#[test]
fn a_missed_service_level_takes_the_verdict_and_the_rank() {
    for (server, name) in [(CANDIDATE, "postgres:18.6"), (BASE, "base")] {
        let (plan, all) = late(server, |_| 0.9, 6);
        let (comparison, report) = told(&plan, &all);
        assert_eq!(verdict(&comparison, 4), Verdict::Unfit);
        let reason = &comparison.cells[4].reason;
        let expected =
            format!("SLA missed: {name} inserted 180 of 200 rows/s (90.0 %, needs 95 %)");
        assert_eq!(reason, &expected);
        assert_ne!(verdict(&comparison, 5), Verdict::Unfit);
        let step = figures(&report, server, "qr100");
        assert!(!step.service.unwrap().met);
        assert_eq!(step.quartile, Some(Quartile::Missed));
        let relative = figures(&report, CANDIDATE, "qr100")
            .relative
            .as_ref()
            .unwrap();
        assert!(!relative.quotable);
        // The 2.5 times as many queries are in no mean.
        let range = comparison
            .summaries
            .iter()
            .find(|summary| summary.cells == 0);
        assert!(range.is_none(), "a group without a cell has no mean");
        let total = comparison
            .summaries
            .iter()
            .find(|summary| summary.group.is_none());
        let total = total.unwrap();
        assert_eq!((total.cells, total.of), (5, 6));
        assert!((total.throughput.estimate - 1.0).abs() < 0.02);
    }
}

#[test]
fn exactly_ninety_five_percent_is_kept_and_single_slow_passes_are_told() {
    let (plan, all) = late(CANDIDATE, |_| 0.95, 6);
    let (comparison, _) = told(&plan, &all);
    assert_eq!(verdict(&comparison, 4), Verdict::Improvement);
    let (plan, all) = late(CANDIDATE, |pass| if pass == 2 { 0.9 } else { 1.0 }, 6);
    let (_, report) = told(&plan, &all);
    let service = figures(&report, CANDIDATE, "qr100").service.unwrap();
    assert_eq!(
        (service.met, service.short_passes, service.passes),
        (true, 1, 6)
    );
    let said =
        |note: &String| note.contains("qr100 on postgres:18.6 1 of 6 (slowest 180, needs 190");
    assert!(report.notes.iter().any(said), "{:?}", report.notes);
}

#[test]
fn latency_is_of_operations_and_the_indexes_have_none() {
    let (comparison, _) = told(&insert_plan(6), &noisy(6, 6, 1.0));
    let has = |cell: usize| {
        let mut metrics = comparison.cells[cell].metrics.iter();
        metrics.any(|one| one.metric == Metric::LatencyP99)
    };
    assert!(has(0) && !has(1) && has(2) && has(4));
    assert!(comparison.cells[1].latency.is_none());
    assert!(comparison.cells[1].blocks == 6 && !comparison.cells[1].metrics.is_empty());
}

#[test]
fn a_void_pass_is_in_no_figure_but_is_told() {
    let plan = insert_plan(7);
    let mut all = records(7, |_, _, _| 1.0);
    for step in &mut all {
        if (step.server, step.cell, step.block) == (CANDIDATE, CellId(2), 3) {
            step.void = Some(VoidReason::Stalled);
            step.void_detail = Some("no answer for 60 s".to_owned());
            step.operations = 7;
        }
    }
    let (comparison, report) = told(&plan, &all);
    assert_eq!(comparison.cells[2].blocks, 6);
    assert_eq!(verdict(&comparison, 2), Verdict::NoChange);
    let step = figures(&report, CANDIDATE, "l.i1");
    assert_eq!(step.throughput.unwrap().passes, 6);
    near(step.throughput.map(|spread| spread.mean), 20_000.0);
    assert_eq!(step.passes.len(), 7);
    let said = |note: &String| note.contains("l.i1 on postgres:18.6 pass 4 (stalled: no answer");
    assert!(report.notes.iter().any(said), "{:?}", report.notes);
    assert_eq!(counters(&plan, &all).len(), all.len() - 1);
}

#[test]
fn other_load_is_told_of_and_takes_no_pass_away() {
    let plan = insert_plan(6);
    let mut all = records(6, |_, _, _| 1.0);
    for step in all
        .iter_mut()
        .filter(|step| step.block == 1 && step.cell == CellId(0))
    {
        step.foreign_cpu_ns = Some(step.duration_ns / 2);
    }
    let (comparison, report) = told(&plan, &all);
    assert_eq!(comparison.cells[0].blocks, 6);
    assert_eq!(comparison.cells[0].interference.disturbed_rounds, 0);
    let finding = comparison
        .findings
        .iter()
        .find(|one| one.kind == "disturbed-steps");
    let text = &finding.unwrap().text;
    assert!(text.contains("3 of 108 steps, and none"), "{text}");
    assert!(text.contains("l.i0 on placebo in pass 2"), "{text}");
    assert!(figures(&report, BASE, "l.i0").passes[1].disturbed);
}

#[test]
fn counters_of_steps_become_costs_of_an_operation() {
    let plan = insert_plan(6);
    let all = noisy(5, 6, 1.0);
    let mut comparison = judged(&plan, &all);
    let machines = [Machine::of_client(Some(4)); 3];
    add_costs(
        &mut comparison,
        &plan,
        &slices(&all),
        &counters(&plan, &all),
        &machines,
    );
    let costs = &comparison.cells[2].costs;
    let of = |key: &str| costs.iter().find(|cost| cost.key == key).unwrap();
    // An operation of l.i1 has 50 rows, so 400 of them are a second.
    assert!((of("server_cpu_us_per_op").base / 2000.0 - 1.0).abs() < 0.02);
    assert!((of("context_switches_per_op").base / 2.5 - 1.0).abs() < 0.02);
    assert_eq!(of("server_cpu_us_per_op").blocks, 6);
    let steps = setup().steps.len();
    assert_eq!(comparison.cells.len(), steps);
}

#[test]
fn settings_that_all_servers_have_are_in_no_name() {
    let mut plan = insert_plan(1);
    for server in &mut plan.servers {
        server.settings = vec![("jit".to_owned(), "off".to_owned())];
    }
    let io = ("io_method".to_owned(), "sync".to_owned());
    plan.servers[2].settings.push(io);
    let (_, report) = told(&plan, &records(1, |_, _, _| 1.0));
    let names: Vec<&str> = report.servers.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "postgres:17.5",
            "placebo",
            "postgres:18.6 (io_method = sync)"
        ]
    );
}

#[test]
fn a_run_that_is_not_finished_is_told_as_far_as_it_is() {
    let plan = insert_plan(6);
    let mut all = records(1, |_, _, _| 1.0);
    all.retain(|step| step.server == BASE);
    let (comparison, report) = told(&plan, &all);
    assert!(comparison.cells.iter().all(|cell| cell.blocks == 0));
    assert!(figures(&report, CANDIDATE, "l.i0").throughput.is_none());
    assert!(
        figures(&report, CANDIDATE, "l.i0")
            .metrics
            .iter()
            .all(Option::is_none)
    );
    assert!(length(&all[2]) > 7.9);
    let (_, report) = told(&plan, &[]);
    assert_eq!(report.servers.len(), 3);
    assert_eq!(usize::try_from(report.passes_needed).unwrap(), MIN_BLOCKS);
    assert!(to_f64(u64::from(report.passes_planned)) > 5.0);
}
