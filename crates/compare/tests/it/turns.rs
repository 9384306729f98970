//! Which cells a report says were measured in turns.

use crate::builder::*;
use deltabench_compare::analyse;
use deltabench_model::finding::FindingKind;
use deltabench_model::plan::ServerId;
use deltabench_model::slice::Slice;

/// One operation of so many milliseconds on each server in each block; a server starts so many nanoseconds
/// after the one before it.
fn operations(millis: u64, apart_ns: u64) -> Vec<Slice> {
    let servers = [BASE, PLACEBO, CANDIDATE];
    let places = (0..8).flat_map(|block| servers.map(|server| (server, block)));
    let one = |(server, block): (ServerId, u32)| Slice {
        operations: 1,
        duration_ns: millis * 1_000_000,
        started_ns: 1_000_000_000 * (1 + u64::from(block)) + u64::from(server.0) * apart_ns,
        ..slice(server, block, 0, 1.1, None)
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
    let text = said(1, &operations(900, 0)).unwrap().text;
    assert!(
        text.starts_with("point-query at 1 client: an operation takes longer"),
        "{text}"
    );
    assert!(text.contains("in turns of 50 ms"), "{text}");
    assert_eq!(said(1, &operations(900, 1)), None, "one after another");
    assert_eq!(
        said(4, &operations(900, 0)),
        None,
        "several clients take no turns"
    );
    assert_eq!(
        said(1, &operations(20, 0)),
        None,
        "fixtures with one start for a block"
    );
}
