//! Visits of a replay, made up, with a known truth: what statements and the whole workload are said to take.

use crate::builder::{BASE, CANDIDATE, PLACEBO, plan};
use crate::judged;
use deltabench_compare::Records;
use deltabench_kinds::replay::{
    PlanWish, SliceTimes, TupleTimes, VisitRecord, add_times, plan as planned,
};
use deltabench_kinds::run_half;
use deltabench_model::plan::{Cell, CellId, DataState, Group, Plan, PublishedRate};
use deltabench_model::record::Record;
use deltabench_model::replayed::{
    Covered, ErrorVerdict, OldPlan, PlanCause, PlanVerdict, REPLAYED_FORMAT, ReplayVerdict,
    Replayed, ReplayedData, ReplayedFile, ReplayedStatement, ResultVerdict, StatementTime,
    TimeVerdict, WeightedBy,
};
use deltabench_model::units::to_u64;
use deltabench_model::work::Work;
use deltabench_model::work::replay::{ReplaySetup, TimedStatement, TimedTuple};
use deltabench_testkit::small_replay;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Time of a tuple on the candidate, relative to the base: by statement and tuple.
pub type Truth<'a> = &'a dyn Fn(u32, u32) -> f64;

/// A fast tuple for 99 executions, a slow one for each of them.
fn statement(place: u32, share: f64) -> TimedStatement {
    let tuple = |place: u32, weight: f64| TimedTuple {
        place,
        weight,
        changed: if place == 1 {
            vec![CANDIDATE.0]
        } else {
            Vec::new()
        },
        slowest_seconds: None,
    };
    TimedStatement {
        id: format!("s{place}"),
        place,
        share: Some(share),
        calls: 100,
        tuples: vec![tuple(0, 99.0), tuple(1, 1.0)],
        write: None,
        parallel: false,
        old_plans: Vec::new(),
        unfit: Vec::new(),
    }
}

pub fn replay_plan(shares: &[f64]) -> Plan {
    let statements: Vec<TimedStatement> = (0..)
        .zip(shares)
        .map(|(place, share)| statement(place, *share))
        .collect();
    let cell = |statement: &TimedStatement| Cell {
        workload: statement.id.clone(),
        group: Group::Range,
        clients: 1,
        writes: false,
        statements_per_operation: 1,
        state: DataState::Fresh,
        rate: None,
        published: PublishedRate::default(),
        reconnects: false,
    };
    let mut plan = plan(statements.iter().map(cell).collect());
    plan.timing.blocks = 10;
    let setup = small_replay();
    plan.work = Work::Replay(ReplaySetup {
        data: Some(setup.capture.clone()),
        statements,
        ..setup
    });
    plan.two_controls = as_planned(&plan).two_controls;
    plan
}

/// The plan that a replay of the user makes of these servers and statements.
fn as_planned(plan: &Plan) -> Plan {
    let servers = [BASE, CANDIDATE].map(|server| plan.server(server).unwrap());
    planned(PlanWish {
        seed: 1,
        servers: servers
            .map(|server| (&server.installation, &[][..]))
            .to_vec(),
        replayed: &replayed(plan),
        setup: plan.work.replay().unwrap().clone(),
        blocks: 10,
        delta: None,
        checksums: None,
        command: Vec::new(),
    })
}

/// Visits of all statements in ten blocks; restarts scatter by this share.
pub fn visits(plan: &Plan, truth: Truth<'_>, (scatter, seed): (f64, u64)) -> Vec<Record> {
    visits_with_luck(plan, truth, (scatter, 0.0, seed))
}

/// The same, and all statements of a server share the luck of its start.
fn visits_with_luck(
    plan: &Plan,
    truth: Truth<'_>,
    (scatter, shared, seed): (f64, f64, u64),
) -> Vec<Record> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    // Twelve uniform values: nearly normal, with a variance of 1.
    let mut noise = move || (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0;
    let mut records = Vec::new();
    for block in 0..plan.timing.blocks {
        let starts = [0; 3].map(|_| if shared > 0.0 { shared * noise() } else { 0.0 });
        for cell in CellId::each().take(plan.cells.len()) {
            for server in [BASE, PLACEBO, CANDIDATE] {
                let luck = (scatter * noise() + starts[server.index()]).exp();
                let tuple = |place: u32, base: f64| {
                    let changed = if server == CANDIDATE {
                        truth(cell.0, place)
                    } else {
                        1.0
                    };
                    let typical_ns = base * changed * luck;
                    TupleTimes {
                        place,
                        executions: 50,
                        total_ns: to_u64(50.0 * typical_ns),
                        typical_ns,
                    }
                };
                let visit = VisitRecord {
                    // The slow one takes as long as all the fast ones together.
                    tuples: vec![tuple(0, 1e5), tuple(1, 99e5)],
                    slices: vec![SliceTimes {
                        started_ns: 1,
                        duration_ns: 1,
                        executions: 100,
                    }],
                    rows: 3,
                    old_plan: None,
                    failed: None,
                    failed_on: None,
                };
                records.push(visit.record((block, cell, server)).unwrap());
            }
        }
    }
    records
}

pub fn replayed(plan: &Plan) -> Replayed {
    let verdict = || ReplayVerdict {
        server: 1,
        errors: ErrorVerdict::None,
        plans: PlanVerdict::Same,
        changed: 0,
        changed_share: 0.0,
        changes: Vec::new(),
        results: ResultVerdict::Same,
        differing: 0,
        causes: Vec::new(),
        time: None,
        old_plan: None,
    };
    let statement = |cell: &Cell| ReplayedStatement {
        id: cell.workload.clone(),
        name: None,
        text: "select ?".to_owned(),
        kind: "read".to_owned(),
        calls: 100,
        share: None,
        tuples: 2,
        made_up: None,
        write: None,
        servers: Vec::new(),
        verdicts: vec![verdict()],
    };
    let statements: Vec<_> = plan.cells.iter().map(statement).collect();
    Replayed {
        format: REPLAYED_FORMAT.0.to_owned(),
        version: REPLAYED_FORMAT.1,
        name: "r".to_owned(),
        capture: ReplayedFile {
            path: "x".to_owned(),
            sha256: None,
        },
        data: Some(ReplayedData {
            path: "x".to_owned(),
            sha256: String::new(),
            bytes: 0,
            dumped_from: None,
            directory: None,
        }),
        servers: Vec::new(),
        draws: 1,
        differences: Vec::new(),
        clock: None,
        executed: true,
        covered: Covered {
            statements: 0,
            of: 0,
            tuples: 0,
            share: None,
            weighted_by: WeightedBy::Time,
        },
        load_failures: Vec::new(),
        statements,
        plans: Vec::new(),
        left_out: Vec::new(),
        notes: Vec::new(),
        times: None,
    }
}

/// What is said of these records.
pub fn told(plan: &Plan, records: &[Record]) -> Replayed {
    told_of(replayed(plan), plan, records)
}

/// The same of a replay whose plans are known.
fn told_of(mut replayed: Replayed, plan: &Plan, records: &[Record]) -> Replayed {
    let all = Records {
        records,
        ..Records::default()
    };
    let slices = run_half(&plan.work)
        .reader()
        .read(plan, &all)
        .unwrap()
        .slices;
    let comparison = judged(
        plan,
        &Records {
            slices: &slices,
            ..all
        },
    );
    add_times(&mut replayed, plan, records, &comparison).unwrap();
    replayed
}

fn time(replayed: &Replayed, statement: usize) -> &StatementTime {
    replayed.statements[statement].verdicts[0]
        .time
        .as_ref()
        .unwrap()
}

#[test]
fn one_value_that_became_slower_counts_by_its_executions_and_has_a_line_of_its_own() {
    let plan = replay_plan(&[0.4, 0.6]);
    let slower = |statement: u32, tuple: u32| match (statement, tuple) {
        (0, 1) => 3.0,
        _ => 1.0,
    };
    let told = told(&plan, &visits(&plan, &slower, (0.005, 1)));
    let (changed, same) = (time(&told, 0), time(&told, 1));
    // Half of the statement's time takes three times as long.
    assert_eq!(changed.verdict, TimeVerdict::Slower);
    assert!((changed.ratio.estimate - 2.0).abs() < 0.02, "{changed:?}");
    assert!(changed.ratio.low.unwrap() < 2.0 && changed.ratio.high.unwrap() > 2.0);
    assert!((changed.impact.unwrap().estimate - 0.4).abs() < 0.01);
    assert!((changed.base_ms - 0.198).abs() < 0.002, "{changed:?}");
    let parts = changed.parts.unwrap();
    assert!((parts.changed - 3.0).abs() < 0.03 && (parts.same - 1.0).abs() < 0.01);
    assert_eq!(parts.changed_tuples, 1);
    assert_eq!(same.verdict, TimeVerdict::NoChange);
    let times = told.times.as_ref().unwrap();
    let whole = &times.workload[0];
    assert_eq!(
        (whole.server, whole.verdict),
        (Some(1), TimeVerdict::Slower)
    );
    assert!(
        (whole.ratio.estimate - 1.4).abs() < 0.01,
        "0.4 x 2 + 0.6: {whole:?}"
    );
    let placebo = times.placebo.as_ref().unwrap();
    assert!(placebo.ratio.low.unwrap() < 1.0 && placebo.ratio.high.unwrap() > 1.0);
    assert_eq!((times.share, times.statements), (Some(1.0), 2));
}

#[test]
fn a_statement_without_weight_is_closed_and_others_go_on_and_the_whole_stays_right() {
    let plan = replay_plan(&[0.9, 0.001]);
    let slower = |statement: u32, _: u32| if statement == 1 { 1.5 } else { 1.02 };
    let records = visits(&plan, &slower, (0.005, 2));
    let all = Records {
        records: &records,
        ..Records::default()
    };
    let kind = run_half(&plan.work);
    let slices = kind.reader().read(&plan, &all).unwrap().slices;
    let open = |block: u32| {
        let before = slices.partition_point(|slice| slice.block < block);
        kind.open_cells(&plan, block, &slices[..before])
    };
    let both = [CellId(0), CellId(1)];
    assert_eq!(
        (open(0), open(2)),
        (both.to_vec(), both.to_vec()),
        "two blocks say nothing"
    );
    // In one of three blocks.
    let later: Vec<u32> = (3..10).filter(|block| open(*block) == both).collect();
    assert!(
        later.len() >= 2 && later.windows(2).all(|two| two[1] - two[0] == 3),
        "{later:?}"
    );
    assert!((3..10).all(|block| later.contains(&block) || open(block) == [CellId(0)]));
    assert_eq!(open(10), []);
    let measured = |record: &&Record| open(record.block).contains(&record.cell);
    let kept: Vec<Record> = records.iter().filter(measured).cloned().collect();
    let told = told(&plan, &kept);
    assert_eq!(time(&told, 1).verdict, TimeVerdict::DoesNotMatter);
    assert_eq!(
        time(&told, 1).blocks,
        3 + u32::try_from(later.len()).unwrap()
    );
    let whole = told.times.unwrap().workload[0].ratio;
    let truth = (0.9 * 1.02 + 0.001 * 1.5) / 0.901;
    assert!((whole.estimate - truth).abs() < 0.01, "{whole:?}");
    assert!(
        whole.low.unwrap() < truth && truth < whole.high.unwrap(),
        "{whole:?}"
    );
}

#[test]
fn what_makes_everything_slower_is_found_alike_in_all_statements_and_in_the_whole() {
    let shares = [0.1; 10];
    let mut plan = replay_plan(&shares);
    (plan.delta, plan.delta_from_noise) = (0.02, false);
    let records = visits(&plan, &|_, _| 1.03, (0.002, 5));
    let told = told(&plan, &records);
    for statement in 0..shares.len() {
        let time = time(&told, statement);
        let (low, high) = (time.ratio.low.unwrap(), time.ratio.high.unwrap());
        assert!((time.ratio.estimate - 1.03).abs() < 0.01, "{time:?}");
        assert!(low > 1.0 && low < 1.03 && high > 1.03, "{time:?}");
        assert_eq!(time.verdict, TimeVerdict::Slower);
    }
    let whole = &told.times.unwrap().workload[0];
    assert!((whole.ratio.estimate - 1.03).abs() < 0.005, "{whole:?}");
}

#[test]
fn equal_servers_are_called_different_no_more_often_than_stated() {
    let plan = replay_plan(&[0.1; 10]);
    let (mut statements, mut workloads) = (0, 0);
    for seed in 0..100 {
        let told = told(&plan, &visits(&plan, &|_, _| 1.0, (0.02, seed)));
        let runs = told.has_slower();
        let faster = (0..10).any(|one| time(&told, one).verdict == TimeVerdict::Faster);
        statements += u32::from(runs || faster);
        let whole = told.times.unwrap().workload[0].ratio;
        workloads += u32::from(whole.low.unwrap() > 1.0 || whole.high.unwrap() < 1.0);
    }
    // Five in a hundred are expected of each; twelve and more come once in 250 such tests.
    assert!(
        statements < 12 && workloads < 12,
        "{statements} {workloads}"
    );
}

#[test]
fn a_replay_is_planned_with_two_copies_of_the_base_to_compare_with() {
    let mut plan = replay_plan(&[0.5, 0.5]);
    assert_eq!(as_planned(&plan).second_control(), Some(PLACEBO));
    // A figure of the copy counts as much as one of the base.
    (plan.delta, plan.delta_from_noise) = (0.02, false);
    let mut records = visits(&plan, &|_, _| 1.0, (0.0, 3));
    for record in records.iter_mut().filter(|record| record.server == PLACEBO) {
        let mut visit = VisitRecord::read(record).unwrap().unwrap();
        let tuples = visit.tuples.iter_mut();
        tuples.for_each(|tuple| tuple.typical_ns *= 1.21);
        *record = visit
            .record((record.block, record.cell, record.server))
            .unwrap();
    }
    let told = told(&plan, &records);
    let one = time(&told, 0);
    assert!((one.ratio.estimate - 1.0 / 1.1).abs() < 1e-4, "{one:?}");
    let slower = one.base_ms / one.candidate_ms;
    assert!((slower - 1.1).abs() < 0.01, "{one:?}");
    let whole = told.times.unwrap().workload[0].ratio;
    assert!((whole.estimate - 1.0 / 1.1).abs() < 1e-4, "{whole:?}");
}

#[test]
fn what_statements_add_comes_to_what_the_workload_takes_and_what_is_not_in_it_adds_nothing() {
    let mut plan = replay_plan(&[0.5, 0.3, 0.2]);
    if let Work::Replay(setup) = &mut plan.work {
        setup.weighted_by = WeightedBy::Calls;
        let why = "it returns another number of rows".to_owned();
        setup.statements[2].unfit = vec![(CANDIDATE.0, why)];
    }
    let slower = |statement: u32, _: u32| match statement {
        0 => 2.0,
        1 => 1.1,
        _ => 9.0,
    };
    let told = told(&plan, &visits(&plan, &slower, (0.003, 4)));
    let adds = |statement: usize| time(&told, statement).impact.map(|one| one.estimate);
    let whole = told.times.as_ref().unwrap().workload[0].ratio.estimate - 1.0;
    let both = adds(0).unwrap() + adds(1).unwrap();
    assert!((both - whole).abs() < 1e-9, "{both} {whole}");
    assert!(
        (whole - (0.5 * 1.0 + 0.3 * 0.1) / 0.8).abs() < 0.01,
        "{whole}"
    );
    assert_eq!(adds(2), None);
}

#[test]
fn statements_and_workload_are_compared_with_both_copies_of_the_base_and_intervals_hold() {
    let plan = replay_plan(&[0.1; 10]);
    let mut old = plan.clone();
    old.two_controls = false;
    let (mut held, mut held_whole, runs) = (0_u32, 0_u32, 60_u32);
    // Squares of how far each estimate is off, with two controls and with one.
    let (mut two, mut one) = (0.0, 0.0);
    for seed in 0..runs {
        let records = visits(&plan, &|_, _| 1.03, (0.02, u64::from(seed)));
        let (told, before) = (told(&plan, &records), told(&old, &records));
        for statement in 0..10 {
            let ratio = time(&told, statement).ratio;
            held += u32::from((ratio.low.unwrap()..ratio.high.unwrap()).contains(&1.03));
            two += (ratio.estimate / 1.03).ln().powi(2);
            one += (time(&before, statement).ratio.estimate / 1.03)
                .ln()
                .powi(2);
        }
        let whole = told.times.unwrap().workload[0].ratio;
        held_whole += u32::from((whole.low.unwrap()..whole.high.unwrap()).contains(&1.03));
    }
    let narrower: f64 = (two / one).sqrt();
    println!("errors {narrower:.3} of one control's; {held} of 600 and {held_whole} of 60 hold");
    // The root of 1.5 / 2.
    assert!((narrower - 0.866).abs() < 0.04, "{narrower}");
    // 570 and 57 are expected.
    assert!(held > 550 && held_whole > 50, "{held} {held_whole}");
}

#[test]
fn the_whole_allows_for_luck_that_statements_share_though_most_have_few_blocks() {
    // One statement has a sixth of the time; the others matter too little to be measured to the end.
    let mut shares = [0.017; 50];
    shares[0] = 0.15;
    let mut plan = replay_plan(&shares);
    if let Work::Replay(setup) = &mut plan.work {
        setup.impact = 0.01;
    }
    let kind = run_half(&plan.work);
    let (mut held, mut widths, mut visited) = (0_u32, Vec::new(), 0_usize);
    let runs = 100;
    for seed in 0..runs {
        let records = visits_with_luck(&plan, &|_, _| 1.02, (0.03, 0.015, seed));
        let mut kept: Vec<Record> = Vec::new();
        for block in 0..plan.timing.blocks {
            let all = Records {
                records: &kept,
                ..Records::default()
            };
            let before = kind.reader().read(&plan, &all).unwrap().slices;
            let open = kind.open_cells(&plan, block, &before);
            let now = |record: &&Record| record.block == block && open.contains(&record.cell);
            kept.extend(records.iter().filter(now).cloned());
        }
        visited += kept.len() / 3;
        let whole = told(&plan, &kept).times.unwrap().workload[0].ratio;
        let (low, high) = (whole.low.unwrap(), whole.high.unwrap());
        held += u32::from((low..high).contains(&1.02));
        widths.push(high - low);
    }
    widths.sort_by(f64::total_cmp);
    println!(
        "{held} of {runs} hold; median width {:.4}; {} visits of 500",
        widths[widths.len() / 2],
        visited / 100
    );
    assert!(visited / 100 < 300, "{visited}");
    // 95 are expected; 88 and fewer come once in 300 such tests.
    assert!(held > 88, "{held}");
}

#[test]
fn what_failed_or_is_other_work_has_no_verdict_and_no_part_in_the_whole() {
    let mut plan = replay_plan(&[0.5, 0.3, 0.2]);
    if let Work::Replay(setup) = &mut plan.work {
        let why = "it returns another number of rows".to_owned();
        setup.statements[1].unfit.push((CANDIDATE.0, why));
    }
    let slower = |statement: u32, _: u32| if statement == 1 { 5.0 } else { 1.0 };
    let mut records = visits(&plan, &slower, (0.002, 3));
    records.retain(|record| record.cell != CellId(2));
    let failed = VisitRecord {
        failed: Some("57014".to_owned()),
        ..VisitRecord::default()
    };
    for server in [BASE, PLACEBO, CANDIDATE] {
        records.push(failed.record((0, CellId(2), server)).unwrap());
    }
    let told = told(&plan, &records);
    assert_eq!(time(&told, 0).verdict, TimeVerdict::NoChange);
    let other = time(&told, 1);
    assert_eq!(other.verdict, TimeVerdict::Unfit);
    assert!(other.why.as_ref().unwrap().contains("number of rows"));
    let times = told.times.as_ref().unwrap();
    assert_eq!(times.share, Some(0.5));
    assert_eq!(times.workload[0].verdict, TimeVerdict::NoChange);
    assert!(
        times
            .notes
            .iter()
            .any(|note| note.contains("s2: it failed with 57014"))
    );
}

#[test]
fn what_fails_on_the_candidate_in_one_block_has_no_verdict_from_the_others() {
    let plan = replay_plan(&[0.5, 0.5]);
    let mut records = visits(&plan, &|_, _| 1.0, (0.005, 3));
    let all = Records {
        records: &records,
        ..Records::default()
    };
    let before = told(&plan, all.records);
    assert_eq!(before.times.unwrap().failed_on_candidates, 0);
    let failed = VisitRecord {
        failed: Some("57014".to_owned()),
        failed_on: Some(CANDIDATE),
        ..VisitRecord::default()
    };
    for record in &mut records {
        if (record.block, record.cell) == (4, CellId(1)) {
            *record = failed.record((4, CellId(1), record.server)).unwrap();
        }
    }
    let told = told(&plan, &records);
    let one = time(&told, 1);
    assert_eq!(one.verdict, TimeVerdict::Unfit);
    assert!(one.why.as_ref().unwrap().contains("57014"), "{one:?}");
    let times = told.times.as_ref().unwrap();
    assert_eq!((times.failed_on_candidates, times.share), (1, Some(0.5)));
    assert!(times.notes[0].contains("in 1 block"), "{:?}", times.notes);
}

#[test]
fn a_conflict_with_other_work_costs_a_block_and_another_one_or_too_little_memory_the_verdict() {
    let plan = replay_plan(&[0.5, 0.5]);
    let failed_in = |blocks: std::ops::Range<u32>, sqlstate: &str| {
        let mut records = visits(&plan, &|_, _| 1.0, (0.005, 3));
        let failed = VisitRecord {
            failed: Some(sqlstate.to_owned()),
            ..VisitRecord::default()
        };
        for record in &mut records {
            if record.cell == CellId(1) && blocks.contains(&record.block) {
                *record = failed
                    .record((record.block, CellId(1), record.server))
                    .unwrap();
            }
        }
        told(&plan, &records)
    };
    let one_block = failed_in(3..4, "40001");
    let one = time(&one_block, 1);
    assert_eq!((one.verdict, one.blocks), (TimeVerdict::NoChange, 9));
    let times = one_block.times.as_ref().unwrap();
    assert_eq!((times.failed_on_candidates, times.share), (0, Some(1.0)));
    let note = "s1: it failed with 40001 while it was timed, in 1 block, because of other work";
    assert!(times.notes[0].starts_with(note), "{:?}", times.notes);
    for final_one in [failed_in(3..5, "40001"), failed_in(3..4, "53200")] {
        assert_eq!(time(&final_one, 1).verdict, TimeVerdict::Unfit);
        assert_eq!(final_one.times.as_ref().unwrap().share, Some(0.5));
    }
}

#[test]
fn what_no_block_had_time_for_is_named_with_what_it_takes() {
    let mut plan = replay_plan(&[0.5, 0.5]);
    if let Work::Replay(setup) = &mut plan.work {
        setup.statements[1].tuples[0].slowest_seconds = Some(31.0);
    }
    let mut records = visits(&plan, &|_, _| 1.0, (0.005, 5));
    records.retain(|record| record.cell == CellId(0));
    let notes = |records: &[Record]| told(&plan, records).times.unwrap().notes;
    let found = notes(&records);
    assert!(
        found[0].starts_with("no time for s1: an execution takes 31.0 s"),
        "{found:?}"
    );
    // In the first block it may still come.
    records.retain(|record| record.block == 0);
    assert!(notes(&records).iter().all(|note| !note.contains("s1")));
}

#[test]
fn a_statement_of_which_the_capture_has_no_weight_may_matter() {
    let mut plan = replay_plan(&[0.9, 0.1]);
    if let Work::Replay(setup) = &mut plan.work {
        setup.statements[1].share = None;
    }
    let records = visits(
        &plan,
        &|cell, _| if cell == 1 { 50.0 } else { 1.0 },
        (0.005, 4),
    );
    let all = Records {
        records: &records,
        ..Records::default()
    };
    let kind = run_half(&plan.work);
    let slices = kind.reader().read(&plan, &all).unwrap().slices;
    assert_eq!(kind.open_cells(&plan, 5, &slices), [CellId(0), CellId(1)]);
    assert_eq!(time(&told(&plan, &records), 1).verdict, TimeVerdict::Slower);
}

#[test]
fn a_visit_that_a_kill_tore_is_in_no_ratio_and_moves_no_other_block() {
    let mut plan = replay_plan(&[0.5, 0.5]);
    plan.timing.blocks = 4;
    let cell = CellId(0);
    let mut records = visits(&plan, &|_, _| 1.0, (0.0, 3));
    for record in &mut records {
        // Each block is slower than the one before, on all servers.
        let slower = f64::from(1 << record.block);
        let mut visit = VisitRecord::read(record).unwrap().unwrap();
        let times = visit.tuples.iter_mut();
        times.for_each(|tuple| tuple.typical_ns *= slower);
        let mut old = visit.clone();
        old.tuples.iter_mut().for_each(|tuple| {
            tuple.typical_ns *= if record.block == 1 { 7.0 } else { 2.0 };
        });
        if record.server == CANDIDATE && record.cell == cell {
            visit.old_plan = Some(Box::new(old));
        }
        *record = visit
            .record((record.block, record.cell, record.server))
            .unwrap();
    }
    let ratio = |records: &[Record]| {
        let mut replayed = replayed(&plan);
        replayed.statements[0].verdicts[0].old_plan = Some(OldPlan {
            settings: Vec::new(),
            tried: 1,
            ratio: None,
            cause: PlanCause::Open,
        });
        let told = told_of(replayed, &plan, records);
        let old = told.statements[0].verdicts[0].old_plan.as_ref().unwrap();
        old.ratio.unwrap().estimate
    };
    let all = ratio(&records);
    assert!((all - (8.0_f64 * 7.0).powf(0.25)).abs() < 1e-6, "{all}");
    for kept in [BASE, CANDIDATE] {
        let torn =
            |record: &&Record| (record.block, record.cell) != (1, cell) || record.server == kept;
        let torn: Vec<Record> = records.iter().filter(torn).cloned().collect();
        let found = ratio(&torn);
        assert!((found - 2.0).abs() < 1e-6, "{kept:?}: {found}");
    }
}
