//! The tables of studies: what they hold, what they refuse, and whether their intervals hold.

use crate::builder::{CANDIDATE, metric};
use crate::calibration_model::Simulation;
use crate::study_model::*;
use deltabench_compare::comparison::{Comparison, Metric, Verdict};
use deltabench_compare::study::{Axis, SpreadOf, StudyRun, study};
use deltabench_model::invalidation::Invalidation;
use deltabench_model::plan::{Cell, CellId, Group, Placement, Plan, ServerId};
use deltabench_stats::student::{t_interval, welch};
use deltabench_stats::summary::{mean, sample_sd};

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * (1.0 + a.abs())
}

/// 1000 operations/s for each client, candidate `i` 5·i % slower than the base; 10 µs.
fn slower(server: ServerId, cell: &Cell) -> (f64, f64) {
    let candidate = f64::from(server.0.saturating_sub(1));
    let speed = 1.0 - 0.05 * candidate;
    (1000.0 * f64::from(cell.clients) * speed, 10.0 / speed)
}

#[test]
fn one_run_with_many_servers_gives_the_published_table_with_the_runs_own_figures() {
    let plan = plan_of(&["b", "c"], cells(&WORKLOADS, &[1]));
    let comparison = run(&mut Simulation::new(1), &plan, CALM, slower);
    let plans = [plan];
    let comparisons = [comparison];
    let study = tables_of(&of(&plans, &comparisons));
    assert_eq!(study.name, "r1");
    let titles: Vec<&str> = study.tables.iter().map(|t| t.title.as_str()).collect();
    assert_eq!(
        titles,
        [
            "throughput relative to a, 1 client",
            "CPU per operation relative to a, 1 client"
        ]
    );
    let speed = &study.tables[0];
    let names: Vec<&str> = speed.columns.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(
        (speed.axis, speed.base, names),
        (Axis::Servers, 0, vec!["a", "b", "c"])
    );
    assert_eq!(speed.coordinates, [("clients".to_owned(), "1".to_owned())]);
    let rows: Vec<&str> = speed.rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(rows, WORKLOADS.map(|(name, _)| name));
    for cell in &comparisons[0].cells {
        for (table, which) in study
            .tables
            .iter()
            .zip([Metric::Throughput, Metric::ServerCpuPerOperation])
        {
            let found = figure(table, &cell.workload, &cell.candidate_name);
            let own = metric(cell, which);
            assert_eq!(found.ratio, own.ratio);
            assert!(near(found.absolute, own.candidate));
            let verdict = match which {
                Metric::Throughput => Some(cell.verdict),
                _ => own.verdict,
            };
            assert_eq!((found.verdict, found.repetitions), (verdict, 1));
        }
    }
    let base = figure(speed, "point-query", "a");
    assert!(near(base.ratio.estimate, 1.0) && base.ratio.ci95.is_none());
    assert!((base.absolute / 1000.0).ln().abs() < 0.02 && base.verdict.is_none());
    assert_eq!(
        figure(speed, "hot-points", "c").verdict,
        Some(Verdict::Regression)
    );
    assert!(study.notes.iter().any(|note| note.contains("one load")));
}

#[test]
fn spreads_are_the_published_sums_and_the_geometric_mean_is_the_runs() {
    let plan = plan_of(&["b", "c"], cells(&WORKLOADS, &[4]));
    let comparison = run(&mut Simulation::new(2), &plan, CALM, slower);
    let (plans, comparisons) = ([plan], [comparison]);
    let study = tables_of(&of(&plans, &comparisons));
    let sums: Vec<SpreadOf> = study.spreads.iter().map(|spread| spread.of).collect();
    assert_eq!(sums, [SpreadOf::EACH, SpreadOf::EACH].concat());
    for spread in &study.spreads {
        let table = table(&study, &spread.table);
        let values: Vec<f64> = table
            .rows
            .iter()
            .filter(|row| spread.of.has(row.group))
            .map(|row| row.figures[1].unwrap().ratio.estimate)
            .collect();
        let found = spread.columns[1].unwrap();
        assert_eq!(usize::try_from(found.count).unwrap(), values.len());
        assert!(near(found.average, mean(&values).unwrap()));
        assert_eq!(found.stddev, sample_sd(&values));
        assert!(found.min <= found.median && found.median <= found.max);
        let base = spread.columns[0].unwrap();
        assert!(near(base.average, 1.0) && near(base.max, 1.0));
        let geometric = found.geometric.unwrap();
        let group = match spread.of {
            SpreadOf::Group(group) => Some(group),
            SpreadOf::All => None,
            // A run sums up each of the two groups alone.
            SpreadOf::Ranges => continue,
        };
        let own = |summary: &&deltabench_compare::comparison::GroupSummary| {
            summary.group == group && summary.candidate_name == "b"
        };
        let summary = comparisons[0].summaries.iter().find(own).unwrap();
        let expected = match table.metric {
            Metric::Throughput => summary.throughput,
            _ => summary.server_cpu.unwrap(),
        };
        let (low, high) = expected.ci95.unwrap();
        let (a, b) = geometric.ci95.unwrap();
        assert!(near(geometric.estimate, expected.estimate) && near(a, low) && near(b, high));
    }
}

/// Repetitions with these comparisons, of one plan.
fn repetitions(
    seed: u64,
    number: usize,
    noise: Noise,
    candidates: &[&str],
) -> (Vec<Plan>, Vec<Comparison>) {
    let plan = plan_of(candidates, cells(&WORKLOADS[..2], &[4]));
    let mut random = Simulation::new(seed);
    let comparisons = (0..number)
        .map(|_| run(&mut random, &plan, noise, slower))
        .collect();
    (vec![plan; number], comparisons)
}

#[test]
fn repetitions_are_pooled_over_loads() {
    let noise = Noise { load: 0.02, ..CALM };
    let (plans, comparisons) = repetitions(3, 5, noise, &["b"]);
    let study = tables_of(&of(&plans, &comparisons));
    for (at, (workload, _)) in WORKLOADS[..2].iter().enumerate() {
        let means: Vec<f64> = comparisons
            .iter()
            .map(|one| mean(&metric(&one.cells[at], Metric::Throughput).blocks).unwrap())
            .collect();
        let expected = t_interval(&means, 0.95).unwrap();
        let found = figure(&study.tables[0], workload, "b");
        let (low, high) = found.ratio.ci95.unwrap();
        assert!(near(found.ratio.estimate.ln(), mean(&means).unwrap()));
        assert!(near(low.ln(), expected.low) && near(high.ln(), expected.high));
        assert_eq!(found.repetitions, 5);
        // Each run alone is surer of itself than it can be.
        let (low, high) = metric(&comparisons[0].cells[at], Metric::Throughput)
            .ratio
            .ci95
            .unwrap();
        assert!((high / low).ln() < expected.high - expected.low);
    }
    let notes = &study.tables[0].notes;
    assert!(
        notes[0].starts_with("each figure comes from 5 loads of the data"),
        "{notes:?}"
    );
    assert!(!study.notes.iter().any(|note| note.contains("one load")));
    let all = study
        .spreads
        .iter()
        .find(|s| s.of == SpreadOf::All)
        .unwrap();
    let spread = all.columns[1].unwrap();
    let geometric = spread.geometric.unwrap();
    assert!(near(
        geometric.estimate.ln(),
        (figure(&study.tables[0], "point-query", "b")
            .ratio
            .estimate
            .ln()
            + figure(&study.tables[0], "hot-points", "b")
                .ratio
                .estimate
                .ln())
            / 2.0
    ));
    assert!(geometric.ci95.is_some());
}

#[test]
fn what_loads_say_together_is_judged_by_their_common_interval_among_all_of_them() {
    // Without luck of a load: three runs of −5 % are a regression together, equal ones are equal.
    let (plans, comparisons) = repetitions(4, 3, CALM, &["b", "c"]);
    let study = tables_of(&of(&plans, &comparisons));
    let found = figure(&study.tables[0], "point-query", "c");
    assert_eq!(found.verdict, Some(Verdict::Regression));
    let same = plan_of(&["b"], cells(&WORKLOADS[..2], &[4]));
    let mut random = Simulation::new(5);
    let comparisons: Vec<Comparison> = (0..3)
        .map(|_| run(&mut random, &same, CALM, equal))
        .collect();
    let plans = vec![same; 3];
    let study = tables_of(&of(&plans, &comparisons));
    let found = figure(&study.tables[0], "point-query", "b");
    assert_eq!(found.verdict, Some(Verdict::NoChange));
    // With a luck of 6 % each run sees its own load clearly, and together they do not know.
    let (mut alone, mut together) = (0, 0);
    for seed in 6..16 {
        let (plans, comparisons) = repetitions(seed, 3, Noise { load: 0.06, ..CALM }, &["b"]);
        let cells = comparisons.iter().flat_map(|one| &one.cells);
        let known = cells.filter(|cell| cell.verdict != Verdict::Inconclusive);
        alone += known.count();
        let study = tables_of(&of(&plans, &comparisons));
        for (workload, _) in &WORKLOADS[..2] {
            let found = figure(&study.tables[0], workload, "b");
            let changes = [Verdict::Regression, Verdict::Improvement].map(Some);
            together += usize::from(changes.contains(&found.verdict));
        }
    }
    assert!(
        alone > 10 && together <= 3,
        "{alone} of 60, {together} of 20"
    );
}

#[test]
fn pooled_verdicts_are_corrected_for_their_number() {
    // Two loads that agree to a tenth: p of t with one degree of freedom is 6 %·0.1…; alone below 5 %.
    let plan = plan_of(&["b"], cells(&WORKLOADS, &[4]));
    let law = |by: f64| {
        move |server: ServerId, cell: &Cell| {
            let hit = server == CANDIDATE && cell.workload == "point-query";
            (1000.0 * if hit { 1.0 - by } else { 1.0 }, 10.0)
        }
    };
    let still = Noise {
        restart: 0.0005,
        visit: 0.0,
        slice: 0.0005,
        load: 0.0,
    };
    let mut random = Simulation::new(7);
    let comparisons = [0.09, 0.1].map(|by| run(&mut random, &plan, still, law(by)));
    let plans = [plan.clone(), plan];
    let study = tables_of(&of(&plans, &comparisons));
    let found = figure(&study.tables[0], "point-query", "b");
    assert!(found.ratio.ci95.unwrap().1 < 1.0, "alone it is different");
    assert_eq!(found.verdict, Some(Verdict::Inconclusive));
    let notes = study.tables[0].notes.join("\n");
    assert!(notes.contains("1 of them is different alone"), "{notes}");
}

#[test]
fn a_withdrawn_repetition_is_left_out_and_a_withdrawn_figure_says_so() {
    let (plans, comparisons) = repetitions(8, 3, CALM, &["b"]);
    let cell = [withdrawal(Some(CellId(0)))];
    let mut runs = of(&plans, &comparisons);
    runs[1].withdrawn = &cell;
    let study = tables_of(&runs);
    let found = figure(&study.tables[0], "point-query", "b");
    assert_eq!(found.repetitions, 2);
    assert_ne!(found.verdict, Some(Verdict::Unfit));
    assert_eq!(figure(&study.tables[0], "hot-points", "b").repetitions, 3);
    // A geometric mean is of the same runs for every row.
    let all = study
        .spreads
        .iter()
        .find(|s| s.of == SpreadOf::All)
        .unwrap();
    assert!(all.columns[1].unwrap().geometric.is_none());
    for run in &mut runs {
        run.withdrawn = &cell;
    }
    let study = tables_of(&runs);
    for table in &study.tables {
        let found = figure(table, "point-query", "b");
        assert_eq!(found.verdict, Some(Verdict::Unfit));
        assert_ne!(
            figure(table, "hot-points", "b").verdict,
            Some(Verdict::Unfit)
        );
    }
    let all = study
        .spreads
        .iter()
        .find(|s| s.of == SpreadOf::All)
        .unwrap();
    assert_eq!(all.columns[1].unwrap().count, 1);
    let notes = study.tables[0].notes.join("\n");
    assert!(
        notes.contains("1 of 2 figures is unfit or withdrawn"),
        "{notes}"
    );
    // The same of a single run, and of a whole one.
    let whole = [withdrawal(None)];
    runs.truncate(1);
    runs[0].withdrawn = &whole;
    let study = tables_of(&runs);
    assert_eq!(study.notes[0], "withdrawn: r1 (wrong machine)");
    for (workload, _) in &WORKLOADS[..2] {
        let found = figure(&study.tables[1], workload, "b");
        assert_eq!(found.verdict, Some(Verdict::Unfit));
    }
}

fn withdrawal(cell: Option<CellId>) -> Invalidation {
    Invalidation {
        cell,
        reason: "wrong machine".to_owned(),
        at_unix_ms: 0,
    }
}

#[test]
fn a_load_whose_placebo_is_off_stays_in_and_placebos_together_judge_the_whole() {
    let (plans, mut comparisons) = repetitions(19, 3, CALM, &["b"]);
    let slower = figure(
        &tables_of(&of(&plans, &comparisons)).tables[0],
        "point-query",
        "b",
    );
    assert_eq!(slower.verdict, Some(Verdict::Regression));
    comparisons[1].cells[0].verdict = Verdict::Unfit;
    let same = figure(
        &tables_of(&of(&plans, &comparisons)).tables[0],
        "point-query",
        "b",
    );
    assert_eq!(same, slower);
    // Off by 4 % in each of them: it cannot be the luck of a load.
    for comparison in &mut comparisons {
        let metrics = &mut comparison.placebo_cells[0].metrics;
        for block in metrics.iter_mut().flat_map(|metric| &mut metric.blocks) {
            *block += 0.04;
        }
    }
    let off = figure(
        &tables_of(&of(&plans, &comparisons)).tables[0],
        "point-query",
        "b",
    );
    assert_eq!(off.verdict, Some(Verdict::Unfit));
    assert_eq!(off.ratio, slower.ratio);
}

#[test]
fn one_placebo_among_many_cells_is_off_by_chance() {
    let verdict = |cells: Vec<Cell>| {
        let plan = plan_of(&["b"], cells);
        let mut random = Simulation::new(19);
        let mut loads: Vec<Comparison> = (0..3)
            .map(|_| run(&mut random, &plan, CALM, slower))
            .collect();
        // With two degrees of freedom p = 0.008: enough for a single cell, and not for ten.
        for (load, off) in loads.iter_mut().zip([-1.0, 0.0, 1.0]) {
            let metrics = &mut load.placebo_cells[0].metrics;
            for block in metrics.iter_mut().flat_map(|metric| &mut metric.blocks) {
                *block = 0.04 + off * 0.04 * 3.0_f64.sqrt() / 11.1;
            }
        }
        let plans = vec![plan; 3];
        let tables = tables_of(&of(&plans, &loads)).tables;
        let found = [0, 1].map(|table| figure(&tables[table], "point-query", "b").verdict);
        found.map(Option::unwrap)
    };
    assert_eq!(verdict(cells(&WORKLOADS[..1], &[4])), [Verdict::Unfit; 2]);
    let many = verdict(cells(&WORKLOADS, &[4, 8]));
    assert_eq!(many, [Verdict::Regression; 2]);
}

#[test]
fn scaleup_pairs_both_client_counts_by_block() {
    let law = |server: ServerId, cell: &Cell| {
        let clients = f64::from(cell.clients);
        let speed = if server == CANDIDATE { 0.9 } else { 1.0 };
        (1000.0 * speed * clients.powf(0.8), 10.0 * clients.powf(0.1))
    };
    let plan = plan_of(&["b"], cells(&WORKLOADS, &[4, 1, 2]));
    let comparison = run(&mut Simulation::new(9), &plan, CALM, law);
    let (plans, comparisons) = ([plan], [comparison]);
    let study = tables_of(&of(&plans, &comparisons));
    for server in ["a", "b"] {
        let table = table(
            &study,
            &format!("throughput of {server} relative to 1 client"),
        );
        let names: Vec<&str> = table.columns.iter().map(|c| c.name.as_str()).collect();
        assert_eq!((table.axis, names), (Axis::Clients, vec!["1", "2", "4"]));
        for (clients, name) in [(2.0_f64, "2"), (4.0, "4")] {
            let found = figure(table, "read-only-sum", name);
            assert!((found.ratio.estimate / clients.powf(0.8)).ln().abs() < 0.02);
            assert!(near(
                found.efficiency.unwrap(),
                found.ratio.estimate / clients
            ));
            let cpu = found.cpu.unwrap();
            assert!((cpu.estimate / clients.powf(0.1)).ln().abs() < 0.03);
            assert!(near(found.switches.unwrap().estimate, clients));
        }
        let one = figure(table, "read-only-sum", "1");
        assert!(near(one.ratio.estimate, 1.0) && near(one.efficiency.unwrap(), 1.0));
        let notes = table.notes.join("\n");
        assert!(notes.contains("different visits"));
        assert!(notes.contains("the client side is on its own core at every number of clients"));
    }
    // As earlier versions placed one client: no line joins it with the others.
    let mixed = Plan {
        placement_single: Placement::SameCore,
        ..plans[0].clone()
    };
    let mixed = tables_of(&of(&[mixed], &comparisons));
    let of_clients = mixed
        .tables
        .iter()
        .filter(|table| table.axis == Axis::Clients);
    let titles: Vec<&str> = of_clients
        .clone()
        .map(|table| table.title.as_str())
        .collect();
    let relative = ["a", "b"].map(|server| format!("throughput of {server} relative to 2 clients"));
    assert_eq!(titles, relative);
    let note = "at 1 client the client side is on the server's core, at the others on its own core";
    for table in of_clients {
        assert!(table.notes.iter().any(|text| text.starts_with(note)));
    }
    // By hand, of the candidate.
    let of = |clients: u32| {
        let mut cells = comparisons[0].cells.iter();
        let cell = cells.find(|cell| cell.workload == "hot-points" && cell.clients == clients);
        &cell.unwrap().rates
    };
    let logs: Vec<f64> = std::iter::zip(of(1), of(4))
        .map(|(one, four)| (four.candidate / one.candidate).ln())
        .collect();
    let expected = t_interval(&logs, 0.95).unwrap();
    let found = figure(
        table(&study, "throughput of b relative to 1"),
        "hot-points",
        "4",
    );
    assert!(near(found.ratio.ci95.unwrap().0.ln(), expected.low));
}

#[test]
fn scaleup_uses_only_blocks_that_both_cells_have() {
    let plan = plan_of(&["b"], cells(&WORKLOADS[..1], &[1, 2]));
    let mut comparison = run(&mut Simulation::new(10), &plan, CALM, equal);
    let keep = |block: u32, cell: CellId| {
        if cell == CellId(0) {
            block < 5
        } else {
            block > 2
        }
    };
    for side in comparison
        .cells
        .iter_mut()
        .chain(&mut comparison.placebo_cells)
    {
        let cell = side.cell;
        side.rates.retain(|rate| keep(rate.block, cell));
    }
    let (plans, mut comparisons) = ([plan], [comparison]);
    let study = tables_of(&of(&plans, &comparisons));
    let rates = |cell: usize| &comparisons[0].cells[cell].rates;
    let logs: Vec<f64> = [3, 4]
        .map(|block| {
            let at = |cell: usize| rates(cell).iter().find(|r| r.block == block).unwrap().base;
            (at(1) / at(0)).ln()
        })
        .to_vec();
    let found = figure(
        table(&study, "throughput of a relative to 1"),
        "point-query",
        "2",
    );
    assert!(near(found.ratio.estimate.ln(), mean(&logs).unwrap()));
    // With no block in common there is no figure, and without figures no table.
    for side in comparisons[0]
        .cells
        .iter_mut()
        .chain(&mut comparisons[0].placebo_cells)
    {
        let cell = side.cell;
        side.rates.retain(|rate| {
            if cell == CellId(0) {
                rate.block < 4
            } else {
                rate.block > 3
            }
        });
    }
    let study = tables_of(&of(&plans, &comparisons));
    assert!(study.tables.iter().all(|table| table.axis != Axis::Clients));
}

#[test]
fn one_server_alone_scales_by_the_rates_beside_its_placebo() {
    let plan = plan_of(&[], cells(&WORKLOADS, &[1, 8]));
    let comparison = run(&mut Simulation::new(11), &plan, CALM, equal);
    assert!(comparison.cells.is_empty());
    let (plans, comparisons) = ([plan], [comparison]);
    let study = tables_of(&of(&plans, &comparisons));
    assert_eq!(study.tables.len(), 1);
    let found = figure(&study.tables[0], "update-index", "8");
    let (low, high) = found.ratio.ci95.unwrap();
    assert!(low < 8.0 && 8.0 < high && found.cpu.is_some());
}

#[test]
fn storage_is_compared_between_runs_with_welch_and_by_ratios_of_ratios() {
    let plan = plan_of(&["b"], cells(&WORKLOADS[..2], &[1]));
    let plans = [
        on_storage(&plan, 1, "slow", Some(100.0)),
        on_storage(&plan, 2, "fast", Some(400.0)),
    ];
    let law = |base: f64, candidate: f64| {
        move |server: ServerId, _: &Cell| (if server == CANDIDATE { candidate } else { base }, 10.0)
    };
    let mut random = Simulation::new(12);
    let comparisons = [
        run(&mut random, &plans[0], CALM, law(1000.0, 900.0)),
        run(&mut random, &plans[1], CALM, law(3000.0, 3300.0)),
    ];
    // Parts in any order.
    let mut runs = of(&plans, &comparisons);
    runs.reverse();
    let study = tables_of(&runs);
    assert_eq!(study.name, "demo");
    let speed = table(&study, "throughput of b relative to storage slow, 1 client");
    let names: Vec<_> = speed
        .columns
        .iter()
        .map(|c| (c.name.as_str(), c.cost_per_month))
        .collect();
    assert_eq!(names, [("slow", Some(100.0)), ("fast", Some(400.0))]);
    assert_eq!(
        (speed.axis, speed.axis_name.as_str()),
        (Axis::Part, "storage")
    );
    let logs = |at: usize| -> Vec<f64> {
        let rates = comparisons[at].cells[0].rates.iter();
        rates.map(|rate| rate.candidate.ln()).collect()
    };
    let expected = welch(&logs(0), &logs(1), 0.95).unwrap();
    let found = figure(speed, "point-query", "fast");
    let (low, high) = found.ratio.ci95.unwrap();
    assert!(near(low.ln(), expected.interval.low) && near(high.ln(), expected.interval.high));
    assert!(near(found.per_cost.unwrap(), found.absolute / 400.0));
    assert!(speed.notes.join("\n").contains("one load"));
    let cross = table(
        &study,
        "throughput of b relative to a, over that at storage slow",
    );
    let found = figure(cross, "point-query", "fast");
    let truth: f64 = 1.1 / 0.9;
    let (low, high) = found.ratio.ci95.unwrap();
    assert!(cross.of_ratios && low < truth && truth < high, "{found:?}");
    let relative = found.relative.unwrap();
    assert_eq!(
        relative,
        metric(&comparisons[1].cells[0], Metric::Throughput).ratio
    );
    assert!((relative.estimate - 1.1).abs() < 0.02 && found.per_cost.is_none());
    let titles: std::collections::BTreeSet<&str> =
        study.tables.iter().map(|t| t.title.as_str()).collect();
    assert_eq!(titles.len(), study.tables.len(), "{titles:?}");
    assert!(titles.contains("throughput relative to a, 1 client, storage fast"));
}

#[test]
fn hosts_merge_as_ratios_of_ratios_with_the_confounding_said() {
    let plan = plan_of(&["b"], cells(&WORKLOADS[..2], &[1]));
    let plan = part(&plan, 1, 1, &[]);
    let mut random = Simulation::new(13);
    let law = |machine: f64| {
        move |server: ServerId, _: &Cell| {
            let speed = if server == CANDIDATE { 0.9 } else { 1.0 };
            (1000.0 * machine * speed, 10.0)
        }
    };
    let small = run(&mut random, &plan, CALM, law(1.0));
    let large = run(&mut random, &plan, CALM, law(5.0));
    let mut other = plan.clone();
    other
        .settings
        .push(("work_mem".to_owned(), "64MB".to_owned()));
    other.timing.visit_seconds += 1.0;
    other.seed = 99;
    let of = |run, plan, comparison, host| StudyRun {
        run,
        plan,
        comparison,
        results: &[],
        host,
        withdrawn: &[],
        began_unix_ms: None,
        via: &[],
    };
    let runs = [
        of("z1", &plan, &small, "small"),
        of("z2", &other, &large, "large"),
    ];
    let study = tables_of(&runs);
    let cross = table(
        &study,
        "throughput of b relative to a, over that at host small",
    );
    assert_eq!(cross.axis, Axis::Host);
    let found = figure(cross, "point-query", "large");
    let (low, high) = found.ratio.ci95.unwrap();
    assert!(low < 1.0 && 1.0 < high, "the same change on both");
    let speed = table(&study, "throughput of a relative to host small");
    assert!((figure(speed, "point-query", "large").ratio.estimate - 5.0).abs() < 0.2);
    assert!(speed.notes[0].starts_with("confounded"));
    let servers = table(&study, "throughput relative to a, 1 client, host large");
    assert!(
        servers
            .coordinates
            .contains(&("host".to_owned(), "large".to_owned()))
    );
    let notes = study.notes.join("\n");
    assert!(
        notes.contains("z2 differs from z1 in settings, timing"),
        "{notes}"
    );
    assert!(notes.contains("only ratios of ratios"), "{notes}");
}

#[test]
fn what_is_no_study_is_refused() {
    let refused = |runs: &[StudyRun<'_>]| study(runs).unwrap_err().to_string();
    assert!(refused(&[]).contains("no runs"));
    let (plans, comparisons) = repetitions(14, 2, CALM, &["b"]);
    let runs = of(&plans, &comparisons);
    assert!(refused(&[runs[0], runs[0]]).contains("run r1 is given twice"));
    let changed = |change: &dyn Fn(&mut Plan)| {
        let mut plans = plans.clone();
        change(&mut plans[1]);
        study(&of(&plans, &comparisons)).map_err(|problem| problem.to_string())
    };
    let problem = changed(&|plan| plan.servers[0].label = Some("x".to_owned())).unwrap_err();
    assert!(problem.contains("different bases") && problem.contains("r2: x"));
    // The same work of another experiment is a repetition.
    assert!(changed(&|plan| *plan = part(plan, 1, 1, &[])).is_ok());
    let problem = changed(&|plan| {
        plan.settings.push(("jit".to_owned(), "on".to_owned()));
        plan.servers[2].installation.binary_sha256 = "other".to_owned();
    });
    assert!(
        problem
            .unwrap_err()
            .contains("they differ in settings, build of b")
    );
    assert!(changed(&|plan| plan.seed = 7).is_ok());
    // Another size is no repetition but another place.
    let study = changed(&|plan| plan.data.rows = 50).unwrap();
    assert_eq!(
        table(&study, "throughput of a relative to rows 1000").columns[1].name,
        "50"
    );
}

#[test]
fn what_is_missing_is_said() {
    let plan = plan_of(&["b"], cells(&WORKLOADS[..2], &[1]));
    let mut random = Simulation::new(15);
    let mut plans = vec![
        part(&plan, 1, 4, &[("rows", "10")]),
        part(&plan, 4, 4, &[("rows", "20")]),
        part(&plan, 1, 4, &[("rows", "10")]),
    ];
    plans[2].confirms = Some("r1".to_owned());
    // One candidate more in the second, and a cell that was never reached.
    plans[1].servers.push(servers(&["b", "c"]).pop().unwrap());
    plans[1].cells.push(cells(&WORKLOADS[3..4], &[1]).remove(0));
    plans.push(part(&plan, 3, 4, &[("rows", "15")]));
    let comparisons: Vec<Comparison> = plans
        .iter()
        .map(|plan| {
            if plan.experiment.as_ref().unwrap().part == 3 {
                return deltabench_compare::analyse(plan, &[], Vec::new());
            }
            let mut comparison = run(&mut random, plan, CALM, equal);
            let sides = comparison.cells.iter_mut();
            for side in sides.chain(&mut comparison.placebo_cells) {
                if side.cell == CellId(2) {
                    side.blocks = 0;
                    side.rates.clear();
                    side.metrics.clear();
                }
            }
            comparison
        })
        .collect();
    let study = tables_of(&of(&plans, &comparisons));
    let notes = study.notes.join("\n");
    assert!(notes.contains("missing: 1 of 4 parts: 2"), "{notes}");
    assert!(notes.contains("left out: r3"), "{notes}");
    assert!(notes.contains("nothing is measured yet in r4"), "{notes}");
    assert!(
        notes.contains("r2: nothing measured in 1 of 3 cells"),
        "{notes}"
    );
    let second = table(&study, "throughput relative to a, 1 client, rows 20");
    assert_eq!(second.columns.len(), 3);
    assert_eq!(second.rows.len(), 2, "what was not measured has no row");
    let across = table(&study, "throughput of a relative to rows 10");
    assert_eq!(across.columns[1].name, "20");
    assert_eq!(across.columns.len(), 2);
    assert!(
        study
            .tables
            .iter()
            .all(|t| !t.title.contains("of c relative to rows"))
    );
}

#[test]
fn servers_of_the_same_name_and_rows_of_the_same_workload_stay_apart() {
    let mut plan = plan_of(&["a", "b"], cells(&WORKLOADS[..1], &[1, 1]));
    plan.cells[1].state = deltabench_model::plan::DataState::Aged;
    let comparison = run(&mut Simulation::new(16), &plan, CALM, equal);
    let (plans, comparisons) = ([plan], [comparison]);
    let study = tables_of(&of(&plans, &comparisons));
    let table = &study.tables[0];
    let names: Vec<&str> = table.columns.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["a", "a (2)", "b"]);
    let rows: Vec<&str> = table.rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(rows, ["point-query", "point-query, aged"]);
}

#[test]
fn a_pooled_regression_that_cpu_denies_is_inconclusive() {
    let plan = plan_of(&["b"], cells(&WORKLOADS[..2], &[1]));
    let law = |server: ServerId, _: &Cell| (if server == CANDIDATE { 900.0 } else { 1000.0 }, 10.0);
    let mut random = Simulation::new(17);
    let comparisons: Vec<Comparison> = (0..3).map(|_| run(&mut random, &plan, CALM, law)).collect();
    let plans = vec![plan; 3];
    let study = tables_of(&of(&plans, &comparisons));
    let found = figure(&study.tables[0], "point-query", "b");
    assert!(found.ratio.ci95.unwrap().1 < 1.0);
    assert_eq!(found.verdict, Some(Verdict::Inconclusive));
}

#[test]
fn a_large_study_is_made_at_once() {
    let names: Vec<String> = (0..14).map(|at| format!("s{at}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let workloads: Vec<(String, Group)> = (0..42)
        .map(|at| (format!("w{at}"), WORKLOADS[at % 5].1))
        .collect();
    let workloads: Vec<(&str, Group)> = workloads.iter().map(|(n, g)| (n.as_str(), *g)).collect();
    let mut plan = plan_of(&names, cells(&workloads, &[1, 4, 16]));
    plan.timing.blocks = 6;
    let comparison = run(&mut Simulation::new(18), &plan, CALM, equal);
    let (plans, comparisons) = (vec![plan; 2], vec![comparison; 2]);
    let started = std::time::Instant::now();
    let study = tables_of(&of(&plans, &comparisons));
    println!("15 servers × 126 cells × 2 runs: {:?}", started.elapsed());
    assert_eq!(study.tables.len(), 3 * 2 + 15);
    assert!(study.tables.iter().all(|table| table.rows.len() == 42));
    assert_eq!(study.spreads.len(), 6 * 6);
}

#[test]
fn a_study_before_its_first_block_has_notes_and_no_tables() {
    let plan = part(&plan_of(&["b"], cells(&WORKLOADS, &[1, 4])), 1, 2, &[]);
    let comparison = deltabench_compare::analyse(&plan, &[], Vec::new());
    let (plans, comparisons) = ([plan], [comparison]);
    let study = tables_of(&of(&plans, &comparisons));
    assert_eq!((study.name.as_str(), study.tables.len()), ("demo", 0));
    assert_eq!(study.notes[1], "nothing is measured yet in r1");
}

#[test]
fn the_same_runs_in_any_order_give_the_same_study() {
    let plan = plan_of(&["b"], cells(&WORKLOADS[..2], &[1, 4]));
    let plans: Vec<Plan> = [("1", "x"), ("2", "x"), ("1", "y"), ("2", "y")]
        .iter()
        .zip(1..)
        .map(|((rows, storage), at)| part(&plan, at, 4, &[("rows", rows), ("storage", storage)]))
        .collect();
    let mut random = Simulation::new(20);
    let comparisons: Vec<Comparison> = plans
        .iter()
        .map(|plan| run(&mut random, plan, CALM, slower))
        .collect();
    let mut runs = of(&plans, &comparisons);
    let study = tables_of(&runs);
    runs.rotate_left(3);
    runs.swap(0, 2);
    assert_eq!(tables_of(&runs), study);
    // Four places of 2 × 2 servers tables and 2 scaleups; four lines of 2 × (2 + 1) tables.
    assert_eq!(study.tables.len(), 4 * (4 + 2) + 4 * 6);
    let held = table(
        &study,
        "throughput of b relative to rows 1, 4 clients, storage y",
    );
    assert!(
        held.coordinates
            .contains(&("storage".to_owned(), "y".to_owned()))
    );
}
