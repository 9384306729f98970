//! Costs of an operation: do their intervals hold the truth, what is called moved, and is the explanation
//! right? Seeded visits of servers whose true costs are known.
//!
//! `cargo test -p deltabench-compare costs:: -- --nocapture` prints the figures of docs/measuring.md.

use crate::builder::{BASE, CANDIDATE, PLACEBO, only_cell};
use crate::calibration_model::Simulation;
use crate::costs_model::{World, counter, moved, reads, said, two_cores, updates};
use deltabench_compare::comparison::{CellComparison, Cost, Metric};
use deltabench_compare::words::microseconds;
use deltabench_compare::{Machine, add_costs, analyse};
use deltabench_model::finding::FindingKind;
use deltabench_model::slice::Slice;
use deltabench_model::units::{count, to_f64};

fn cost<'a>(cell: &'a CellComparison, key: &str) -> &'a Cost {
    cell.costs.iter().find(|cost| cost.key == key).unwrap()
}

fn one(world: &World, seed: u64) -> CellComparison {
    let cell = only_cell(&world.compare(&mut Simulation::new(seed))).clone();
    println!("{}", said(&cell));
    cell
}

fn share(hits: usize, of: usize) -> f64 {
    to_f64(count(hits)) / to_f64(count(of))
}

#[test]
fn intervals_hold_the_truth_as_often_as_stated() {
    let world = World {
        cells: 50,
        candidate_cpu_us: (37.08, 12.0),
        ..reads()
    };
    let world = world.change("process_minor_faults", 1.1);
    // (key, true ratio, true difference)
    let truths = [
        ("server_cpu_us_per_op", 49.08 / 48.0, 1.08),
        ("user_cpu_us_per_op", 1.03, 1.08),
        ("system_cpu_us_per_op", 1.0, 0.0),
        ("context_switches_per_op", 1.0, 0.0),
        ("client_cpu_us_per_op", 1.0, 0.0),
        ("run_queue_wait_us_per_op", 1.0, 0.0),
        ("minor_faults_per_op", 1.1, 0.05),
        ("blocks_hit_per_op", 1.0, 0.0),
        ("wal_bytes_per_op", 1.0, 0.0),
        ("server_pss_mb", 1.0, 0.0),
    ];
    let mut simulation = Simulation::new(301);
    let (mut ratios, mut differences, mut all) = (vec![0; 10], vec![0; 10], 0);
    for _ in 0..10 {
        let comparison = world.compare(&mut simulation);
        for cell in &comparison.cells {
            all += 1;
            for (at, (key, ratio, difference)) in truths.into_iter().enumerate() {
                let cost = cost(cell, key);
                let holds = |(low, high): (f64, f64), truth| low <= truth && truth <= high;
                ratios[at] += usize::from(holds(cost.ratio.unwrap().ci95.unwrap(), ratio));
                differences[at] += usize::from(holds(cost.difference.ci95.unwrap(), difference));
            }
        }
    }
    let sum = |hits: &[usize]| share(hits.iter().sum(), 10 * all);
    println!(
        "costs: ratios cover {:.3}, differences {:.3} (of {} each); each {ratios:?} {differences:?} of {all}",
        sum(&ratios),
        sum(&differences),
        10 * all
    );
    for rate in [sum(&ratios), sum(&differences)] {
        assert!((0.93..=0.97).contains(&rate), "{rate}");
    }
    for hits in ratios.iter().chain(&differences) {
        assert!(
            (0.915..=0.985).contains(&share(*hits, all)),
            "{hits} of {all}"
        );
    }
}

#[test]
fn of_equal_servers_in_at_most_five_cells_of_a_hundred_anything_is_called_moved() {
    // Copies of the data differ for good in the second case: the placebo is the measure of that.
    for (seed, cells, runs, copy_sd) in [
        (311, 1, 300, 0.0),
        (312, 12, 50, 0.0),
        (313, 12, 50, 0.01),
        (314, 1, 300, 0.002),
        (315, 1, 300, 0.01),
    ] {
        let mut world = updates();
        world.cells = cells;
        for counter in &mut world.counters {
            counter.copy_sd = if counter.sd > 0.0 { copy_sd } else { 0.0 };
        }
        let mut simulation = Simulation::new(seed);
        let (mut any, mut listed, mut all, mut placebo, mut told) = (0, 0, 0, 0, 0);
        for _ in 0..runs {
            let comparison = world.compare(&mut simulation);
            for (cell, other) in comparison.cells.iter().zip(&comparison.placebo_cells) {
                all += 1;
                any += usize::from(!cell.moved.is_empty());
                listed += cell.moved.len();
                placebo += usize::from(!other.moved.is_empty());
                told += usize::from(cell.explanation.is_some());
            }
        }
        println!(
            "equal servers, {cells} cells, copies off by {copy_sd}: moved in {:.1} % of {all} cells \
             ({listed} costs), placebo {:.1} %, explained {:.1} %",
            100.0 * share(any, all),
            100.0 * share(placebo, all),
            100.0 * share(told, all)
        );
        // One cell has one placebo: it cannot know what copies do.
        if cells > 1 || copy_sd < 0.005 {
            assert!(share(any, all) <= 0.05, "{any} of {all}");
        }
    }
}

#[test]
fn three_percent_of_user_time_are_found() {
    for (seed, blocks, split_sd, least) in [
        (321, 12, 0.005, 0.95),
        (322, 24, 0.01, 0.9),
        (323, 12, 0.01, 0.5),
    ] {
        let world = World {
            blocks,
            cells: 12,
            split_sd,
            cpu_sd: 0.007,
            candidate_cpu_us: (1.03 * 36.0, 12.0),
            ..reads()
        };
        let mut simulation = Simulation::new(seed);
        let (mut user, mut cpu, mut wholly, mut mostly, mut all, mut false_ones) =
            (0, 0, 0, 0, 0, 0);
        for _ in 0..10 {
            for cell in &world.compare(&mut simulation).cells {
                let keys = moved(cell);
                all += 1;
                user += usize::from(keys.contains(&"user_cpu_us_per_op"));
                cpu += usize::from(said(cell).starts_with("CPU +"));
                wholly += usize::from(said(cell).contains("all of it user time"));
                mostly += usize::from(said(cell).contains("most of it user time"));
                assert!(!said(cell).contains("system time +"), "{}", said(cell));
                let true_ones = [
                    "user_cpu_us_per_op",
                    "server_cpu_us_per_op",
                    "machine_cpu_percent_per_op",
                ];
                false_ones += keys.iter().filter(|key| !true_ones.contains(key)).count();
            }
        }
        println!(
            "+3 % user time, {blocks} blocks, split ±{split_sd}: user time listed in {:.0} %, CPU told in \
             {:.0} %, as all user time in {:.0} %, as most in {:.0} % of {all}; false ones {false_ones}",
            100.0 * share(user, all),
            100.0 * share(cpu, all),
            100.0 * share(wholly, all),
            100.0 * share(mostly, all)
        );
        assert!(share(user, all) >= least, "{user} of {all}");
        assert!(share(false_ones, all) < 0.1);
    }
}

#[test]
fn user_time_alone_is_told_with_what_stayed() {
    let world = World {
        candidate_cpu_us: (1.05 * 36.0, 12.0),
        split_sd: 0.002,
        cpu_sd: 0.002,
        speed: 1.0 / 1.018,
        cells: 4,
        ..reads()
    };
    let cell = one_of(&world, 331);
    assert!(said(&cell).starts_with("CPU +3."), "{}", said(&cell));
    assert!(
        said(&cell).contains(" % per operation, all of it user time; same "),
        "{}",
        said(&cell)
    );
    assert!(said(&cell).contains("context switches"), "{}", said(&cell));
    assert!(said(&cell).contains("buffers touched"), "{}", said(&cell));
    assert!(said(&cell).contains("no reads"), "{}", said(&cell));
    assert!(said(&cell).contains("hardly any WAL"), "{}", said(&cell));
    assert_eq!(
        moved(&cell),
        ["user_cpu_us_per_op"],
        "a sum is not told beside its part"
    );
    let text = &cell.moved[0].text;
    assert!(
        text.starts_with("user CPU +5.") || text.starts_with("user CPU +4."),
        "{text}"
    );
    assert!(cell.moved[0].surprise > 3.0 && cell.moved[0].p < 0.01);
}

fn one_of(world: &World, seed: u64) -> CellComparison {
    world.compare(&mut Simulation::new(seed)).cells[0].clone()
}

#[test]
fn system_time_and_both_are_told_apart() {
    let of = |user: f64, system: f64| {
        let world = World {
            candidate_cpu_us: (user, system),
            split_sd: 0.001,
            cpu_sd: 0.001,
            ..reads()
        };
        said(&one(&world, 341)).to_owned()
    };
    assert!(
        of(36.0, 14.0).contains("all of it system time"),
        "{}",
        of(36.0, 14.0)
    );
    assert!(of(37.5, 13.5).contains("about 5"), "{}", of(37.5, 13.5));
    let turned = of(40.0, 11.0);
    assert!(
        turned.contains(": user time +1") && turned.contains("system time -8"),
        "{turned}"
    );
    // Where clock ticks split too coarsely nothing is claimed.
    let coarse = World {
        candidate_cpu_us: (37.5, 12.0),
        split_sd: 0.05,
        cpu_sd: 0.001,
        ..reads()
    };
    let text = said(&one(&coarse, 342)).to_owned();
    assert!(text.contains("not separated"), "{text}");
}

#[test]
fn smaller_page_images_are_explained_by_wal() {
    // wal_compression: the same records and images, each smaller; a little more user time.
    let world = updates()
        .change("wal_bytes", 0.55)
        .change("wal_lsn_bytes", 0.57)
        .change("device_write_bytes", 0.8);
    let cell = one(&world, 351);
    let text = said(&cell);
    assert!(text.contains("WAL -4"), "{text}");
    assert!(
        text.contains(
            "in the same number of records and full-page images: each is smaller, as with wal_compression"
        ),
        "{text}"
    );
    assert!(text.contains("KB written"), "{text}");
    assert!(!text.contains("CPU"), "{text}");
    let keys = moved(&cell);
    assert!(
        keys.contains(&"wal_bytes_per_op") && keys.contains(&"write_kb_per_op"),
        "{keys:?}"
    );
    // More images in as many records.
    let world = updates()
        .change("wal_bytes", 1.6)
        .change("wal_full_pages", 2.0);
    let text = said(&one(&world, 352)).to_owned();
    assert!(
        text.contains("in the same number of records: full-page images +"),
        "{text}"
    );
}

#[test]
fn what_is_the_same_from_two_sources_is_listed_once() {
    let world = updates()
        .change("wal_bytes", 0.6)
        .change("wal_lsn_bytes", 0.6);
    let cell = one(&world, 353);
    let keys = moved(&cell);
    assert!(keys.contains(&"wal_bytes_per_op"), "{keys:?}");
    assert!(!keys.contains(&"wal_lsn_bytes_per_op"), "{keys:?}");
}

/// A run of which only the candidate times its reads.
fn timed(world: &World, seed: u64) -> CellComparison {
    let plan = world.plan();
    let (slices, mut counters) = world.run(&mut Simulation::new(seed));
    for counted in counters
        .iter_mut()
        .filter(|counted| counted.server == CANDIDATE)
    {
        let ns = 3000.0 * to_f64(counted.operations);
        counted
            .values
            .insert("database_block_read_ns".to_owned(), ns);
    }
    let mut comparison = analyse(&plan, &slices, Vec::new());
    add_costs(&mut comparison, &plan, &slices, &counters, &[]);
    only_cell(&comparison).clone()
}

#[test]
fn clock_reads_around_block_reads_are_explained_by_track_io_timing() {
    // Reads from the operating system's cache; only the candidate times them.
    let mut world = World {
        candidate_cpu_us: (38.0, 12.8),
        split_sd: 0.002,
        cpu_sd: 0.002,
        ..reads()
    };
    for counter in &mut world.counters {
        if counter.key == "database_blocks_read" {
            (counter.per_operation, counter.sd) = (2.0, 0.002);
        }
    }
    let cell = timed(&world, 361);
    let text = said(&cell);
    assert!(text.starts_with("CPU +"), "{text}");
    assert!(
        text.contains("only the candidate times its reads (track_io_timing)"),
        "{text}"
    );
    assert!(
        text.contains("same") && text.contains("buffers touched"),
        "{text}"
    );
    let keys: Vec<&str> = cell.costs.iter().map(|cost| cost.key.as_str()).collect();
    assert!(
        !keys.contains(&"block_read_us_per_op"),
        "one side does not have it"
    );
    assert!(
        !keys.contains(&"machine_cpu_percent_per_op"),
        "cores are not known"
    );
    // Where the clock is cheap nothing moves, and it is told all the same.
    world.candidate_cpu_us = world.cpu_us;
    let cheap = timed(&world, 362);
    assert_eq!(
        said(&cheap),
        "only the candidate times its reads (track_io_timing)"
    );
}

#[test]
fn more_buffers_and_rows_are_explained_by_another_plan() {
    let world = World {
        candidate_cpu_us: (46.0, 12.0),
        speed: 0.9,
        split_sd: 0.002,
        ..reads()
    };
    let other_plan = world
        .clone()
        .change("database_blocks_hit", 1.5)
        .change("database_rows_fetched", 2.0);
    let text = said(&one(&other_plan, 371)).to_owned();
    assert!(text.contains("all of it user time"), "{text}");
    assert!(
        text.contains("buffer hits +50.") || text.contains("buffer hits +49."),
        "{text}"
    );
    assert!(
        text.contains("rows fetched through indexes +100.0 %, as with another plan"),
        "{text}"
    );
    let bloat = world.change("database_blocks_hit", 1.5);
    let text = said(&one(&bloat, 372)).to_owned();
    assert!(text.contains("for the same scans and rows"), "{text}");
}

#[test]
fn what_sessions_look_up_is_not_called_moved_where_operations_are_few() {
    let world = World {
        blocks: 8,
        ..reads()
    };
    // As 14.24 and 18.6 in a visit of nine `scan`s, but for the index scans.
    let moved_in = |operations: u64, clients: u32, sessions: f64| -> Vec<String> {
        let mut plan = world.plan();
        plan.cells[0].clients = clients;
        let (slices, mut counters) = world.run(&mut Simulation::new(373));
        for visit in &mut counters {
            let new = visit.server == CANDIDATE;
            let own = |one: f64, other: f64| sessions * if new { other } else { one };
            let all = to_f64(operations);
            let done = |each: f64| all * if new { 2.0 * each } else { each };
            visit.operations = operations;
            visit.values = [
                ("database_rows_fetched", own(715.0, 939.0)),
                ("database_blocks_read", own(64.0, 82.0)),
                ("database_transactions", all + own(7.0, 8.0)),
                ("database_rows_returned", done(1000.0)),
                ("tables_index_scans", done(1.0)),
                ("io_extends", own(1.0, 20.0)),
            ]
            .map(|(key, value)| (key.to_owned(), value))
            .into();
        }
        let mut comparison = analyse(&plan, &slices, Vec::new());
        let machines = two_cores(&plan);
        add_costs(&mut comparison, &plan, &slices, &counters, &machines);
        let found = moved(only_cell(&comparison));
        let mut keys: Vec<String> = found.into_iter().map(str::to_owned).collect();
        keys.sort();
        keys
    };
    let done = [
        "index_scans_per_op",
        "io_extends_per_op",
        "rows_returned_per_op",
    ];
    assert_eq!(moved_in(9, 1, 1.0), done);
    assert_eq!(
        moved_in(9000, 1, 1.0),
        done,
        "of many operations they are nothing"
    );
    assert_eq!(
        moved_in(9, 4, 4.0),
        done,
        "each client has sessions of its own"
    );
    let of_one = moved_in(9, 1, 4.0);
    assert!(
        of_one.iter().any(|key| key == "rows_fetched_per_op"),
        "one client has no sessions for that: {of_one:?}"
    );
}

#[test]
fn lost_time_without_cpu_is_looked_for_in_waits() {
    let slower = World {
        speed: 0.8,
        clients: 4,
        run_queue_us: (3.0, 63.0),
        cpu_sd: 0.002,
        ..reads()
    };
    // Four clients at 10000/s: 400 us, and 500 us at 0.8 of that.
    let cell = one(&slower, 381);
    let text = said(&cell).to_owned();
    // The same difference as the cell's row, which is against both copies of the base.
    let of_row = cell.metric(Metric::Throughput).unwrap().difference_us;
    let of_row = microseconds(&of_row.unwrap());
    let (number, _) = of_row.split_once(" µs/op").unwrap();
    assert!(
        text.contains(&format!("of {number} us per operation")),
        "{of_row}: {text}"
    );
    assert!(
        text.contains("with the same CPU per operation (±"),
        "{text}"
    );
    assert!(
        text.contains("us per operation, +6") || text.contains("us per operation, +5"),
        "{text}"
    );
    assert!(text.contains("us are run-queue wait"), "{text}");
    let dearer = World {
        candidate_cpu_us: (38.0, 12.0),
        ..slower.clone()
    };
    let text = said(&one(&dearer, 384)).to_owned();
    assert!(text.starts_with("CPU +"), "{text}");
    assert!(text.contains("more than CPU explains; of +"), "{text}");
    let unknown = World {
        run_queue_us: (3.0, 3.0),
        ..slower.clone()
    };
    let text = said(&one(&unknown, 382)).to_owned();
    assert!(text.contains("the counters do not show where +"), "{text}");
    let mut waits = World {
        run_queue_us: (3.0, 3.0),
        ..slower
    };
    for (key, ns, change) in [
        ("wait_ns", 50_000.0, 2.8),
        ("wait:LWLock:WALWrite", 40_000.0, 3.25),
    ] {
        waits.counters.push(counter(key, ns, 0.02));
        waits = waits.change(key, change);
    }
    let cell = one(&waits, 383);
    let text = said(&cell);
    assert!(text.contains("us are wait for LWLock:WALWrite"), "{text}");
    let keys = moved(&cell);
    assert!(
        !keys.contains(&"wait_us_per_op"),
        "the event says more than the sum: {keys:?}"
    );
}

#[test]
fn a_wait_that_one_side_never_has_is_zero_there_and_what_was_not_sampled_is_absent() {
    let mut world = reads();
    world.counters.push(counter("wait_ns", 2000.0, 0.1));
    let plan = world.plan();
    let (slices, mut counters) = world.run(&mut Simulation::new(391));
    for counted in counters
        .iter_mut()
        .filter(|counted| counted.server == CANDIDATE)
    {
        let ns = 5000.0 * to_f64(counted.operations);
        counted.values.insert("wait:IO:DataFileRead".to_owned(), ns);
    }
    for counted in counters.iter_mut().filter(|counted| counted.block == 3) {
        counted.values.remove("wait_ns");
        counted.values.remove("wait:IO:DataFileRead");
        counted
            .values
            .insert("process_minor_faults".to_owned(), -5.0);
    }
    let mut comparison = analyse(&plan, &slices, Vec::new());
    add_costs(
        &mut comparison,
        &plan,
        &slices,
        &counters,
        &two_cores(&plan),
    );
    let cell = only_cell(&comparison);
    let wait = cost(cell, "wait:IO:DataFileRead");
    assert_eq!((wait.base, wait.ratio, wait.blocks), (0.0, None, 11));
    assert!((wait.candidate - 5.0).abs() < 1e-9);
    let found = cell
        .moved
        .iter()
        .find(|moved| moved.key == "wait:IO:DataFileRead")
        .unwrap();
    assert_eq!(
        found.text,
        "wait for IO:DataFileRead from 0 to 5 us/op [+5, +5]"
    );
    assert!(
        found.surprise.is_infinite(),
        "the placebo never waits for it"
    );
    assert_eq!(
        cost(cell, "minor_faults_per_op").blocks,
        11,
        "nonsense is left out"
    );
    let reads = cost(cell, "reads_per_op");
    assert_eq!(reads.difference.ci95, Some((0.0, 0.0)));
    assert_eq!((reads.difference.estimate, reads.ratio), (0.0, None));
}

#[test]
fn costs_are_over_what_they_were_counted_over() {
    let world = reads();
    let mut plan = world.plan();
    plan.cells[0].published.per_operation = 16.0;
    let (mut slices, mut counters) = world.run(&mut Simulation::new(401));
    for slice in &mut slices {
        slice.switches = Some(3 * slice.operations);
        slice.server_cpu_ns = Some(40_000 * slice.operations);
        slice.client_cpu_ns = 20_000 * slice.operations;
        slice.foreign_cpu_ns = Some(3_000 * slice.operations);
        slice.idle_cpu_ns = Some(1_000 * slice.operations);
        slice.run_queue_wait_ns = None;
        // Seconds that are long enough that nothing counts as disturbed.
        slice.duration_ns = 200_000 * slice.operations;
    }
    for counted in &mut counters {
        // 6 slices of 100 000 operations: one read in each tenth operation.
        counted.values.insert("device_reads".to_owned(), 60_000.0);
        counted
            .values
            .insert("device_read_bytes".to_owned(), 60_000.0 * 8192.0);
    }
    let mut comparison = analyse(&plan, &slices, Vec::new());
    add_costs(
        &mut comparison,
        &plan,
        &slices,
        &counters,
        &two_cores(&plan),
    );
    let cell = only_cell(&comparison);
    for (key, value) in [
        ("context_switches_per_op", 3.0),
        ("server_cpu_us_per_op", 40.0),
        ("client_cpu_us_per_op", 20.0),
        ("reads_per_op", 0.1),
        ("read_kb_per_op", 0.8),
        // 64 us of two cores over 16 units: 100 * 64e-6 / 2 / 16.
        ("machine_cpu_percent_per_op", 0.0002),
    ] {
        let cost = cost(cell, key);
        assert!(
            (cost.base / value - 1.0).abs() < 1e-9,
            "{key}: {}",
            cost.base
        );
        assert!((cost.candidate / value - 1.0).abs() < 1e-9, "{key}");
        assert!((cost.ratio.unwrap().estimate - 1.0).abs() < 1e-9, "{key}");
    }
    let (base, candidate) = cell.cost_rates.unwrap();
    assert!((base / 5000.0 - 1.0).abs() < 1e-9 && (candidate / 5000.0 - 1.0).abs() < 1e-9);
    let keys: Vec<&str> = cell.costs.iter().map(|cost| cost.key.as_str()).collect();
    assert!(
        !keys.contains(&"run_queue_wait_us_per_op"),
        "absent is absent"
    );
    assert!(!keys.contains(&"throughput"), "judged, and not told twice");
    let order: Vec<Option<usize>> = keys
        .iter()
        .map(|key| {
            deltabench_model::metric::METRICS
                .iter()
                .position(|m| m.key == *key)
        })
        .collect();
    assert!(order.is_sorted(), "the registry's order");
    assert!(!comparison.placebo_cells[0].costs.is_empty());
}

#[test]
fn cpu_of_processes_that_come_and_go_is_told_where_it_matters() {
    for (short, told) in [(0.1, false), (2.4, true)] {
        let mut world = reads();
        let used = counter("process_short_ns", 1e3 * short, 0.02);
        world.counters.push(used);
        let comparison = world.compare(&mut Simulation::new(402));
        let found =
            { comparison.findings.iter() }.find(|one| one.kind == FindingKind::ShortLivedCpu);
        assert_eq!(found.is_some(), told, "{found:?}");
        let cost = cost(only_cell(&comparison), "short_lived_cpu_us_per_op");
        assert!((cost.candidate / short - 1.0).abs() < 0.03, "{cost:?}");
        let Some(found) = found else { continue };
        println!("{}", found.text);
        assert!(
            found.text.contains("5.0 % of it on the base"),
            "{}",
            found.text
        );
    }
}

#[test]
fn void_and_disturbed_rounds_do_not_cost() {
    let world = reads();
    let plan = world.plan();
    let (mut slices, counters) = world.run(&mut Simulation::new(411));
    for slice in &mut slices {
        slice.switches = Some(2 * slice.operations);
    }
    let clean = slices.clone();
    for slice in slices.iter_mut().filter(|slice| slice.round == 1) {
        // Half of the round was stolen, and it shows.
        slice.steal_ns = Some(slice.duration_ns / 2);
        slice.switches = Some(50 * slice.operations);
    }
    for slice in slices
        .iter_mut()
        .filter(|slice| slice.round == 2 && slice.server == BASE)
    {
        slice.void = Some(deltabench_model::slice::VoidReason::Stalled);
        slice.switches = Some(90 * slice.operations);
    }
    let of = |slices: &[deltabench_model::slice::Slice]| {
        let mut comparison = analyse(&plan, slices, Vec::new());
        add_costs(&mut comparison, &plan, slices, &counters, &two_cores(&plan));
        cost(only_cell(&comparison), "context_switches_per_op").clone()
    };
    assert!((of(&clean).base - 2.0).abs() < 1e-9);
    assert!((of(&slices).base - 2.0).abs() < 1e-9);
}

#[test]
fn a_machine_is_busy_with_its_own_work_and_as_large_as_it_is() {
    let world = reads();
    let plan = world.plan();
    let (mut slices, _) = world.run(&mut Simulation::new(431));
    for slice in &mut slices {
        slice.server_cpu_ns = Some(40_000 * slice.operations);
        slice.client_cpu_ns = 20_000 * slice.operations;
        slice.foreign_cpu_ns = Some(3_000 * slice.operations);
        slice.idle_cpu_ns = Some(1_000 * slice.operations);
        slice.duration_ns = 200_000 * slice.operations;
    }
    let busy = |machines: &[Machine]| {
        let mut comparison = analyse(&plan, &slices, Vec::new());
        add_costs(&mut comparison, &plan, &slices, &[], machines);
        let costs = &only_cell(&comparison).costs;
        let found = costs
            .iter()
            .find(|cost| cost.key == "machine_cpu_percent_per_op");
        found.map(|cost| (cost.base, cost.candidate))
    };
    let here = Machine::of_client(Some(2));
    let far = |cores| Machine {
        cores,
        holds_client: false,
    };
    // Base and placebo are here: 64 us of two cores; the candidate has no client beside it, and eight.
    let (base, candidate) = busy(&[here, here, far(Some(8))]).unwrap();
    assert!((base / 0.0032 - 1.0).abs() < 1e-9, "{base}");
    assert!((candidate / 0.00055 - 1.0).abs() < 1e-9, "{candidate}");
    assert_eq!(busy(&[here, here, far(None)]), None);
    assert_eq!(busy(&[here, here]), None);
}

#[test]
fn runs_without_counters_have_the_costs_of_their_slices_only() {
    let world = World {
        candidate_cpu_us: (54.0, 12.0),
        speed: 0.8,
        ..reads()
    };
    let (slices, _) = world.run(&mut Simulation::new(421));
    let plan = world.plan();
    let mut comparison = analyse(&plan, &slices, Vec::new());
    add_costs(&mut comparison, &plan, &slices, &[], &two_cores(&plan));
    let cell = only_cell(&comparison);
    assert_eq!(cell.costs.len(), 5, "{:?}", cell.costs);
    assert!(said(cell).starts_with("CPU +"), "{}", said(cell));
    assert!(
        said(cell).contains("per operation; same context switches"),
        "{}",
        said(cell)
    );
    // Too few blocks for a verdict are too few to say that something moved.
    let few: Vec<_> = slices.into_iter().filter(|slice| slice.block < 5).collect();
    let mut comparison = analyse(&plan, &few, Vec::new());
    add_costs(&mut comparison, &plan, &few, &[], &two_cores(&plan));
    let cell = only_cell(&comparison);
    assert!(!cell.costs.is_empty() && cell.moved.is_empty());
    assert_eq!(cell.explanation, None);
    let mut nothing = analyse(&plan, &[], Vec::new());
    add_costs(&mut nothing, &plan, &[], &[], &[]);
    assert!(only_cell(&nothing).costs.is_empty());
}

#[test]
fn the_rate_beside_costs_is_of_both_copies_of_the_base() {
    let world = reads();
    let plan = world.plan();
    let (mut slices, counters) = world.run(&mut Simulation::new(402));
    for slice in &mut slices {
        let us = if slice.server == BASE { 100 } else { 200 };
        slice.duration_ns = 1000 * us * slice.operations;
    }
    let mut comparison = analyse(&plan, &slices, Vec::new());
    let machines = two_cores(&plan);
    add_costs(&mut comparison, &plan, &slices, &counters, &machines);
    let (base, candidate) = only_cell(&comparison).cost_rates.unwrap();
    let placebo = comparison.placebo_cells[0].cost_rates.unwrap();
    let sum = |server| -> f64 {
        let all = slices.iter().filter(|slice| slice.server == server);
        all.map(|slice: &Slice| to_f64(slice.operations)).sum()
    };
    let (one, two) = (sum(BASE), sum(PLACEBO));
    let both = (one + two) / (one * 1e-4 + two * 2e-4);
    let near = |found: f64, wanted: f64| (found / wanted - 1.0).abs() < 1e-9;
    assert!(
        near(base, both) && near(candidate, 5000.0),
        "{base} {candidate}"
    );
    assert!(
        near(placebo.0, 10_000.0) && near(placebo.1, 5000.0),
        "{placebo:?}"
    );
}

#[test]
fn a_move_by_more_than_three_times_has_the_interval_that_was_tested() {
    let mut world = reads();
    world.counters = vec![counter("database_blocks_read", 1.0, 1.5)];
    let world = world.change("database_blocks_read", 0.01);
    let key = "blocks_read_per_op";
    // One where the difference alone is open, since a few blocks read most of it.
    let is_open = |cell: &CellComparison| cost(cell, key).difference.ci95.unwrap().1 > 0.0;
    let mut cells = (403..443).map(|seed| one(&world, seed));
    let cell = cells.find(is_open).unwrap();
    let cost = cost(&cell, key);
    let (least, most) = cost.ratio.unwrap().ci95.unwrap();
    assert!(most < 0.5, "{cost:?}");
    let moved = cell.moved.iter().find(|one| one.key == key).unwrap();
    let ends = moved.text.split_once("/op [×").unwrap().1;
    let (first, second) = ends.trim_end_matches(']').split_once(", ×").unwrap();
    let near = |text: &str, value: f64| (text.parse::<f64>().unwrap() / value - 1.0).abs() < 0.01;
    assert!(near(first, least) && near(second, most), "{}", moved.text);
}
