//! `--sample` on real servers.

use crate::lab::{Lab, join, text};
use deltabench_model::sampled::{KIND, SampledStacks};
use deltabench_observe::profile::may_sample;
use deltabench_store::Store;
use deltabench_testkit::not_tested;
use std::collections::{BTreeMap, BTreeSet};

const RUN: [&str; 15] = [
    "compare",
    "postgres:18",
    "postgres:18",
    "--same-target",
    "--only",
    "point-query",
    "--rows",
    "2000",
    "--visit-seconds",
    "0.3",
    "--slice-ms",
    "10",
    "--no-pilot",
    "--huge-pages",
    "off",
];

#[test]
fn every_server_is_sampled_in_every_block_and_no_sampled_slice_counts() {
    if let Err(refused) = may_sample(false) {
        not_tested("--sample", refused);
        return;
    }
    let lab = Lab::new();
    let output = lab.run(&join(&RUN, &["--blocks", "2", "--fixed", "--sample"]));
    let said = text(&output.stderr);
    assert!([0, 1, 3].contains(&output.status.code().unwrap()), "{said}");
    let store = Store::open(&lab.path().join("lab")).unwrap();
    let run = store.find("last").unwrap();
    let samples = store.records(&run).unwrap();
    let places: BTreeSet<_> = samples
        .iter()
        .filter(|record| record.kind == KIND)
        .map(|record| (record.block, record.server))
        .collect();
    assert_eq!(places.len(), 2 * 3, "{said}");
    for record in &samples {
        let stacks = SampledStacks::from_payload(&record.payload).unwrap();
        assert_eq!(stacks.samples() > 0, !stacks.functions.is_empty());
    }
    assert_eq!(store.completed_visits(&run).unwrap().len(), 2);
    let mut rounds: BTreeMap<_, Vec<u32>> = BTreeMap::new();
    for slice in store.slices(&run).unwrap() {
        let place = (slice.block, slice.server);
        rounds.entry(place).or_default().push(slice.round);
    }
    assert_eq!(rounds.keys().copied().collect::<BTreeSet<_>>(), places);
    for rounds in rounds.values_mut() {
        rounds.sort_unstable();
        let expected: Vec<u32> = (0..).take(rounds.len()).collect();
        assert_eq!(*rounds, expected);
        assert!((5..=60).contains(&rounds.len()), "{}", rounds.len());
    }
}
