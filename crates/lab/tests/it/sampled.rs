//! Samples of a run's cells, by runs that sample for it.

use crate::lab_of_r;
use deltabench_lab::{Judged, analyse, sample_name};
use deltabench_model::invalidation::Invalidation;
use deltabench_model::plan::{CellId, Plan, ServerId};
use deltabench_model::record::Record;
use deltabench_model::sampled::{KIND, SampledStacks, Taken};
use deltabench_store::{RunState, Store};
use deltabench_testkit::small_run;

/// Stacks of the run's last cell, which is the first of this one, in all of its blocks.
fn sample(store: &mut Store, run: &str, samples: u64) {
    for block in 0..2 {
        for server in 0..3 {
            let stacks = [(vec![0, 1], samples)].into();
            let names = ["PostgresMain", "ExecScan"];
            let name = |number: u32| names.get(usize::try_from(number).unwrap()).copied();
            let record = Record {
                kind: KIND.to_owned(),
                server: ServerId(server),
                cell: CellId(0),
                block,
                void: None,
                payload: SampledStacks::of(Taken::default(), &stacks, name).payload(),
            };
            store.add_record(run, &record).unwrap();
        }
    }
}

#[test]
fn samples_for_a_run_are_its_own_and_the_latest_count() {
    let (_place, mut store, plan) = lab_of_r();
    assert!(
        analyse("r", &plan, &store)
            .unwrap()
            .context
            .sampled
            .is_empty()
    );
    let mut sampling: Plan = plan.clone();
    sampling.cells.reverse();
    sampling.samples = Some("r".to_owned());
    for (samples, expected) in [(1000, "r-sample"), (5000, "r-sample-2")] {
        let run = sample_name("r", &store.sampling_for("r").unwrap());
        assert_eq!(run, expected);
        store
            .create_run(&run, &sampling, RunState::Running, 3)
            .unwrap();
        small_run::keep(&mut store, &run, [1.0, 1.0, 1.0]);
        sample(&mut store, &run, samples);
        store.finish_run(&run, RunState::Finished, 4).unwrap();
        let judged = Judged::of("r", &plan, &store).unwrap();
        let found = judged.sampled(&store).unwrap();
        let [one] = found.as_slice() else {
            panic!("{found:?}")
        };
        assert_eq!((one.cell, one.candidate), (CellId(2), ServerId(2)));
        assert_eq!(one.time.samples, (2 * samples, 2 * samples));
    }
    // What was withdrawn of them does not count: then the ones before do, or none.
    let samples = |store: &Store| -> Vec<u64> {
        let found = analyse("r", &plan, store).unwrap().context.sampled;
        found.iter().map(|one| one.time.samples.0).collect()
    };
    assert_eq!(samples(&store), [10_000]);
    let withdraw = |store: &mut Store, run: &str, cell: Option<CellId>| {
        let withdrawal = Invalidation {
            cell,
            reason: "a backup ran".to_owned(),
            at_unix_ms: 5,
        };
        store.invalidate(run, &withdrawal).unwrap();
    };
    withdraw(&mut store, "r-sample-2", Some(CellId(1)));
    assert_eq!(samples(&store), [10_000], "another cell");
    withdraw(&mut store, "r-sample-2", Some(CellId(0)));
    assert_eq!(samples(&store), [2_000]);
    withdraw(&mut store, "r-sample", None);
    assert!(samples(&store).is_empty());
}
