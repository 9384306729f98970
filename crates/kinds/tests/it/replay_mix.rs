//! The mix of a replay, made up: what all statements at once are said to do.

use crate::builder::{BASE, CANDIDATE, PLACEBO};
use crate::replay::{replay_plan, replayed, told, visits};
use deltabench_kinds::replay::{MixRecord, MixSlice, NO_MEMBERS, PlanWish, plan as planned};
use deltabench_model::plan::{Cell, CellId, Plan};
use deltabench_model::record::Record;
use deltabench_model::replayed::TimeVerdict;
use deltabench_model::units::to_u64;
use deltabench_model::work::Work;
use deltabench_model::work::replay::TimedWrite;
use hdrhistogram::serialization::{Serializer, V2Serializer};

/// Visits to a mix of two clients in ten blocks: the candidate takes so many times as long.
fn mixes(plan: &Plan, slower: f64) -> Vec<Record> {
    let cell = CellId(u32::try_from(plan.cells.len() - 1).unwrap());
    let mut histogram = hdrhistogram::Histogram::<u64>::new(3).unwrap();
    histogram.record_n(1_000_000, 1000).unwrap();
    let mut latencies = Vec::new();
    V2Serializer::new()
        .serialize(&histogram, &mut latencies)
        .unwrap();
    let mut records = Vec::new();
    for block in 0..plan.timing.blocks {
        for server in [BASE, PLACEBO, CANDIDATE] {
            let longer = if server == CANDIDATE { slower } else { 1.0 };
            let luck = 1.0 + 0.002 * f64::from((block * 7 + server.0 * 3) % 5);
            let slice = |round: u32| MixSlice {
                round,
                position: server.0,
                started_ns: 1,
                duration_ns: to_u64(2.5e8 * longer * luck),
                operations: 1000,
                failed: if server == PLACEBO { 3 } else { 1 },
                rows: 7,
                server_cpu_ns: Some(to_u64(1e8 * longer * luck)),
                latency_histogram: latencies.clone(),
            };
            let visit = MixRecord::of((0..4).map(slice).collect());
            records.push(visit.record((block, cell, server)).unwrap());
        }
    }
    records
}

/// A plan of statements and a mix.
fn mixed_plan() -> Plan {
    let mut plan = replay_plan(&[0.5, 0.5]);
    let mix = Cell {
        workload: "mix".to_owned(),
        clients: 2,
        ..plan.cells[0].clone()
    };
    plan.cells.push(mix);
    if let Work::Replay(setup) = &mut plan.work {
        setup.mix = Some(2);
        // A copy takes it once only: it is not in the mix.
        setup.statements[1].write = Some(TimedWrite { once: true });
    }
    plan
}

#[test]
fn a_mix_has_throughput_cpu_and_a_verdict_beside_those_of_its_statements() {
    let plan = mixed_plan();
    let mut records = visits(&plan, &|_, _| 1.0, (0.004, 3));
    records.retain(|record| record.cell.index() < 2);
    records.extend(mixes(&plan, 1.25));
    let told = told(&plan, &records);
    let times = told.times.as_ref().unwrap();
    let mix = times.mix.as_ref().unwrap();
    assert_eq!((mix.clients, mix.statements, mix.of), (2, 1, 2));
    assert!((mix.share_of_calls - 0.5).abs() < 1e-9);
    let [time] = mix.candidates.as_slice() else {
        panic!("one candidate: {mix:?}");
    };
    assert_eq!(
        (time.server, time.verdict, time.blocks),
        (Some(1), TimeVerdict::Slower, 10)
    );
    assert!((time.throughput.estimate - 0.8).abs() < 0.01, "{time:?}");
    assert!((time.base_per_second - 4000.0).abs() < 50.0, "{time:?}");
    assert!((time.cpu.unwrap().estimate - 1.25).abs() < 0.01, "{time:?}");
    assert!(time.p99.is_some());
    // Of both copies of the base.
    assert!((time.base_failed - 4.0 / 2004.0).abs() < 1e-9 && time.failed < 0.001);
    let placebo = mix.placebo.as_ref().unwrap();
    assert!(placebo.server.is_none() && (placebo.throughput.estimate - 1.0).abs() < 0.01);
    // It has no part in the time of the workload.
    assert!(
        (times.workload[0].ratio.estimate - 1.0).abs() < 0.01,
        "{times:?}"
    );
    assert_eq!(times.statements, 2);
    assert!(told.has_slower());
}

#[test]
fn a_mix_that_fails_on_a_candidate_has_no_verdict_and_is_told() {
    let plan = mixed_plan();
    let mut records = visits(&plan, &|_, _| 1.0, (0.004, 3));
    records.retain(|record| record.cell.index() < 2);
    let cell = CellId(2);
    for server in [BASE, PLACEBO, CANDIDATE] {
        let failed = MixRecord::failed("22012".to_owned(), Some(CANDIDATE));
        records.push(failed.record((0, cell, server)).unwrap());
    }
    let told = told(&plan, &records);
    let times = told.times.unwrap();
    assert!(times.mix.is_none());
    assert_eq!(times.failed_on_candidates, 1);
    let note = times
        .notes
        .iter()
        .find(|note| note.contains("no verdict for mix"));
    assert!(
        note.is_some_and(|note| note.contains("22012")),
        "{:?}",
        times.notes
    );
}

#[test]
fn a_mix_that_no_statement_fits_is_not_planned_and_has_no_verdict_in_plans_that_have_it() {
    let mut mixed = mixed_plan();
    let wish = |plan: &Plan| {
        planned(PlanWish {
            seed: 1,
            servers: Vec::new(),
            replayed: &replayed(plan),
            setup: plan.work.replay().unwrap().clone(),
            blocks: 2,
            delta: None,
            checksums: None,
            command: Vec::new(),
        })
    };
    let found = wish(&mixed);
    assert_eq!(found.cells.len(), 3);
    assert_eq!(found.work.replay().unwrap().mix, Some(2));
    if let Work::Replay(setup) = &mut mixed.work {
        // It does other work on the candidate.
        setup.statements[0].unfit = vec![(2, "it returns another number of rows".to_owned())];
    }
    let found = wish(&mixed);
    assert_eq!(found.cells.len(), 2);
    assert_eq!(found.work.replay().unwrap().mix, None);
    let mut records = visits(&mixed, &|_, _| 1.0, (0.004, 3));
    records.retain(|record| record.cell.index() < 2);
    for server in [BASE, PLACEBO, CANDIDATE] {
        let failed = MixRecord::failed("nothing-fits".to_owned(), None);
        records.push(failed.record((0, CellId(2), server)).unwrap());
    }
    let times = told(&mixed, &records).times.unwrap();
    assert_eq!(times.failed_on_candidates, 0);
    let wanted = format!("no verdict for mix: {NO_MEMBERS}");
    assert!(times.notes.contains(&wanted), "{:?}", times.notes);
}
