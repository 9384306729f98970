//! Which cells a report says were measured in turns.

use crate::builder::*;
use deltabench_compare::{analyse, took_turns};
use deltabench_model::finding::FindingKind;
use deltabench_model::plan::ServerId;
use deltabench_model::slice::Slice;

/// One operation of 900 ms on each server in each round; a server starts so many nanoseconds after the one
/// before it, and a round after the other.
fn operations(apart_ns: u64, rounds_apart_ns: u64) -> Vec<Slice> {
    let servers = [BASE, PLACEBO, CANDIDATE];
    let rounds = (0..8).flat_map(|block| [0, 1].map(|round| (block, round)));
    let places = rounds.flat_map(|place| servers.map(|server| (server, place)));
    let one = |(server, (block, round)): (ServerId, (u32, u32))| Slice {
        operations: 1,
        duration_ns: 900_000_000,
        started_ns: 60_000_000_000 * u64::from(1 + block)
            + rounds_apart_ns * u64::from(round)
            + apart_ns * u64::from(server.0),
        ..slice(server, block, round, 1.1, None)
    };
    places.map(one).collect()
}

#[test]
fn a_cell_is_named_whose_long_operations_began_together() {
    let said = |clients: u32, slices: &[Slice]| {
        let comparison = analyse(&plan(vec![cell(clients, false)]), slices, Vec::new());
        let mut findings = comparison.findings.into_iter();
        findings.find(|finding| finding.kind == FindingKind::Turns)
    };
    let together = operations(0, 2_700_000_000);
    let text = said(1, &together).unwrap().text;
    assert!(
        text.starts_with("point-query at 1 client: operations are long"),
        "{text}"
    );
    assert!(text.contains("in turns of 50 ms"), "{text}");
    assert_eq!(said(4, &together), None, "several clients take no turns");
    let after = operations(900_000_000, 2_700_000_000);
    assert_eq!(said(1, &after), None, "one after another");
    assert_eq!(took_turns(&after), Some(false));
    let of_one: Vec<Slice> = { together.iter() }
        .filter(|slice| slice.server == BASE)
        .cloned()
        .collect();
    assert_eq!(took_turns(&of_one), None, "of one server nobody can tell");
    assert_eq!(
        said(1, &operations(0, 0)),
        None,
        "rounds do not begin together"
    );
}
