//! How long it takes to analyse a large run.

use deltabench_lab::{Analysed, Judged};
use deltabench_model::counter::VisitCounters;
use deltabench_model::plan::{Cell, CellId, Plan, ServerId};
use deltabench_model::slice::Slice;
use deltabench_model::units::{count, to_u64};
use deltabench_store::{RunState, Store};
use deltabench_testkit::small_run::plan;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2Serializer};
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::time::Instant;

const CELLS: u32 = 100;
const BLOCKS: u32 = 24;
/// 0.74 s of visit in slices of 20 ms.
const ROUNDS: u32 = 37;

fn large_plan() -> Plan {
    let mut plan = plan();
    let first = plan.cells[0].clone();
    let cell = |number: u32| Cell {
        workload: format!("point-query-{number}"),
        clients: 1,
        ..first.clone()
    };
    plan.cells = (0..CELLS).map(cell).collect();
    plan.timing.blocks = BLOCKS;
    plan
}

/// Latencies of a slice, about as many and as spread as those of a point query.
fn histograms(random: &mut Xoshiro256PlusPlus) -> Vec<Vec<u8>> {
    let histogram = |_| {
        let mut histogram = Histogram::<u64>::new(3).unwrap();
        for _ in 0..280 {
            let tail: f64 = random.random();
            histogram
                .record(to_u64(18_000.0 + 4_000.0 / (1.0001 - tail)))
                .unwrap();
        }
        let mut bytes = Vec::new();
        V2Serializer::new()
            .serialize(&histogram, &mut bytes)
            .unwrap();
        bytes
    };
    (0..64).map(histogram).collect()
}

fn fill(store: &mut Store, plan: &Plan) {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(11);
    let histograms = histograms(&mut random);
    let mut slice = deltabench_testkit::small_run::slices([1.0; 3])[1].clone();
    store
        .create_run("large", plan, RunState::Finished, 5)
        .unwrap();
    for block in 0..BLOCKS {
        for cell in 0..CELLS {
            store.begin_visit("large", CellId(cell), block).unwrap();
            for round in 0..ROUNDS {
                for server in 0..3 {
                    let luck = 1.0 + 0.02 * random.random::<f64>();
                    let histogram = random.random_range(0..histograms.len());
                    slice = Slice {
                        cell: CellId(cell),
                        block,
                        round,
                        server: ServerId(server),
                        position: server,
                        duration_ns: to_u64(4e7 * luck),
                        operations: 280,
                        server_cpu_ns: Some(to_u64(3e7 * luck)),
                        latency_histogram: histograms[histogram].clone(),
                        ..slice
                    };
                    store.append("large", &slice).unwrap();
                }
            }
            for server in 0..3 {
                let values = (0..30).map(|number| {
                    let value = 1e4 * (1.0 + 0.05 * random.random::<f64>());
                    (format!("counter_{number}"), value)
                });
                let counters = VisitCounters {
                    server: ServerId(server),
                    cell: CellId(cell),
                    block,
                    operations: 280 * u64::from(ROUNDS),
                    values: values.collect(),
                };
                store.add_counters("large", &counters).unwrap();
            }
            store.commit_visit("large", CellId(cell), block).unwrap();
        }
    }
}

/// The figure of the issue on the house: `cargo test --release -p deltabench-lab -- --ignored --nocapture`.
#[test]
#[ignore = "takes a minute to make its run; prints how long the analysis takes"]
fn a_hundred_cells_of_24_blocks_are_analysed_in_seconds() {
    let place = tempfile::tempdir().unwrap();
    let mut store = Store::open(place.path()).unwrap();
    let plan = large_plan();
    fill(&mut store, &plan);
    for _ in 0..3 {
        let began = Instant::now();
        let slices = store.slices("large").unwrap();
        let read = began.elapsed();
        drop(slices);
        let began = Instant::now();
        let judged = Judged::of("large", &plan, &store).unwrap();
        let judging = began.elapsed();
        let analysed = Analysed::of(judged, None, &store).unwrap();
        assert_eq!(count(analysed.comparison.cells.len()), u64::from(CELLS));
        println!(
            "{} slices: read in {:.2} s, read and judged in {:.2} s, analysed in {:.2} s",
            CELLS * BLOCKS * ROUNDS * 3,
            read.as_secs_f64(),
            judging.as_secs_f64(),
            began.elapsed().as_secs_f64(),
        );
    }
}
