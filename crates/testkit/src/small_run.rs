//! A small run: what it planned and what it measured.

use deltabench_model::counter::{Mark, Sample};
use deltabench_model::plan::{CellId, Plan, ServerId, Timing, upgraded};
use deltabench_model::record::Record;
use deltabench_model::slice::{ErrorCount, Slice};
use deltabench_model::units::{to_f64, to_u64};
use deltabench_store::Store;
use serde_json::json;

/// Base, placebo and a candidate; cells `point-query` at 1 and 4 clients and `update-index` at 1. Read from
/// JSON as a store has it, so that what is added to plans later is absent here.
pub fn plan() -> Plan {
    let server = |role: &str, resolved: &str| {
        json!({"role": role, "installation": {
            "asked": resolved, "resolved": resolved, "origin": "path", "bin_dir": "/opt/bin",
            "version_num": 180_006, "version": "18.6", "binary_sha256": "ab", "build": null,
        }})
    };
    let cell = |workload: &str, clients: u32, writes: bool| {
        json!({"workload": workload, "group": if writes { "write" } else { "point" }, "clients": clients,
               "writes": writes, "statements_per_operation": 1})
    };
    let stored = json!({
        "format": "deltabench.plan", "version": 1, "seed": u64::MAX,
        "servers": [
            server("base", "postgres:17.11"),
            server("placebo", "postgres:17.11"),
            server("candidate", "postgres:18.6"),
        ],
        "cells": [
            cell("point-query", 1, false),
            cell("point-query", 4, false),
            cell("update-index", 1, true),
        ],
        "data": {"tables": 1, "rows": 1000},
        "timing": {"blocks": 8, "slice_ms": 50, "slice_jitter": 0.2, "visit_seconds": 1.5,
                   "warmup_seconds": 0.3, "connections_per_visit": 1, "deadline_seconds": null},
        "placement_single": "same-core", "placement_multi": "split", "delta": 0.03, "checksums": true,
        "settings": [], "command": ["deltabench", "compare", "a, \"b\""],
    });
    serde_json::from_value(upgraded(stored)).unwrap()
}

/// So many blocks of visits as short as a test wants them.
pub fn timing(blocks: u32) -> Timing {
    Timing {
        blocks,
        slice_ms: 40,
        slice_jitter: 0.2,
        visit_seconds: 1.0,
        warmup_seconds: 0.3,
        connections_per_visit: 2,
        sustained: false,
        write_seconds: None,
        warmup_chosen: false,
        rotated: false,
        deadline_seconds: None,
    }
}

/// Eight blocks in which the candidate has these shares of the base's throughput, by cell.
pub fn slices(shares: [f64; 3]) -> Vec<Slice> {
    slices_of(&shares)
}

fn slices_of(shares: &[f64]) -> Vec<Slice> {
    let mut slices = Vec::new();
    for block in 0..8_u32 {
        for (cell, share) in (0..).zip(shares.iter().copied()) {
            for round in 0..4 {
                // Something to have an interval from.
                let luck = if block % 2 == 0 { 1.002 } else { 0.998 };
                for (server, speed) in [(0, 1.0), (1, luck), (2, share * luck)] {
                    slices.push(slice((cell, block, round, server), speed));
                }
            }
        }
    }
    if let Some(first) = slices.first_mut() {
        first.failed = 2;
        first.errors.push(ErrorCount {
            sqlstate: "40001".to_owned(),
            count: 2,
            first_message: "could not serialize access".to_owned(),
        });
    }
    slices
}

/// Stores [`slices`] in a run, visit by visit.
pub fn keep(store: &mut Store, run: &str, shares: [f64; 3]) {
    keep_of(store, run, &shares);
}

/// The same of a run of any number of cells.
pub fn keep_of(store: &mut Store, run: &str, shares: &[f64]) {
    keep_slices(store, run, &slices_of(shares));
}

/// By cell what servers 1, 2, … have of the throughput of server 0, and the luck of a server in a block.
pub type Shares<'a> = (&'a [Vec<f64>], &'a dyn Fn(u32, u32) -> f64);

/// Stores a run of any number of cells and servers: eight blocks of four rounds.
pub fn keep_servers(store: &mut Store, run: &str, shares: Shares<'_>) {
    keep_blocks(store, (run, 8), shares);
}

/// The same of any number of blocks.
pub fn keep_blocks(store: &mut Store, (run, blocks): (&str, u32), (shares, luck): Shares<'_>) {
    let mut slices = Vec::new();
    for block in 0..blocks {
        for (cell, shares) in (0..).zip(shares) {
            for round in 0..4 {
                let base = [1.0_f64];
                for (server, share) in (0..).zip(base.iter().chain(shares)) {
                    let speed = share * luck(block, server + 16 * cell);
                    slices.push(slice((cell, block, round, server), speed));
                }
            }
        }
    }
    keep_slices(store, run, &slices);
}

/// Stores slices, each visit's together.
pub fn keep_slices(store: &mut Store, run: &str, all: &[Slice]) {
    let visit = |slice: &Slice| (slice.block, slice.cell);
    for own in all.chunk_by(|one, next| visit(one) == visit(next)) {
        let (block, cell) = visit(&own[0]);
        store.begin_visit(run, cell, block).unwrap();
        for slice in own {
            store.append(run, slice).unwrap();
        }
        store.commit_visit(run, cell, block).unwrap();
    }
}

/// A slice in which nothing was done, for tests that say what was.
pub fn bare_slice() -> Slice {
    Slice {
        server: ServerId(0),
        cell: CellId(0),
        block: 0,
        round: 0,
        position: 0,
        connection: 0,
        started_ns: 0,
        duration_ns: 0,
        operations: 0,
        failed: 0,
        rows: 0,
        server_cpu_ns: None,
        run_queue_wait_ns: None,
        client_cpu_ns: 0,
        foreign_cpu_ns: None,
        steal_ns: None,
        idle_cpu_ns: None,
        background_cpu_ns: None,
        probe_ns: None,
        probing_ns: None,
        switches: None,
        cpu_pressure_ns: None,
        schedule_lag_ns: None,
        latency_histogram: Vec::new(),
        scripts: Vec::new(),
        errors: Vec::new(),
        void: None,
        void_detail: None,
    }
}

fn slice((cell, block, round, server): (u32, u32, u32, u32), speed: f64) -> Slice {
    let operations = 1000;
    Slice {
        server: ServerId(server),
        cell: CellId(cell),
        block,
        round,
        position: server,
        started_ns: 1_763_721_780_000_000_000 + u64::from(block),
        duration_ns: to_u64(1e5 * to_f64(operations) / speed),
        operations,
        rows: operations,
        server_cpu_ns: Some(to_u64(5e4 * to_f64(operations) / speed)),
        foreign_cpu_ns: Some(0),
        steal_ns: Some(0),
        switches: Some(operations),
        ..bare_slice()
    }
}

/// One of each of what a store keeps of a run beside its slices; the mark has the text.
pub fn beside_slices(text: &str) -> (Sample, Mark, Record) {
    let sample = Sample {
        at_ns: 9,
        over_ns: 1,
        values: [("cpu".to_owned(), 0.25)].into(),
    };
    let mark = Mark {
        at_ns: 8,
        server: None,
        kind: "block".to_owned(),
        text: text.to_owned(),
    };
    let record = Record {
        kind: "insert-step".to_owned(),
        server: ServerId(0),
        cell: CellId(1),
        block: 0,
        void: None,
        payload: "{\"n\":1}".to_owned(),
    };
    (sample, mark, record)
}
