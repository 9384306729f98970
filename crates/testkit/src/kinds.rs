//! Small setups of kinds of benchmark. A test writes over them only what it is about, as in
//! `InsertSetup { clients: 2, ..small_insert() }`, so that a new field stands here alone.

use deltabench_model::replayed::{ReplayedFile, WeightedBy};
use deltabench_model::work::insert::{InsertSetup, InsertStep, Pacing};
use deltabench_model::work::replay::ReplaySetup;

/// One client with the fewest rows, all steps with one rate for a second, and no wait for the tables to
/// settle.
pub fn small_insert() -> InsertSetup {
    InsertSetup {
        clients: 1,
        shared_table: false,
        partitions: 0,
        rows: 1000,
        write_rows: 500,
        query_seconds: 1,
        steps: InsertStep::published(&[100]),
        pacing: Pacing::Spread,
        settle_seconds: Some(0),
        long_transaction_seconds: None,
        turns: 0,
    }
}

/// No statements, no dump and no mix, a minute of measuring, weighted by time.
pub fn small_replay() -> ReplaySetup {
    ReplaySetup {
        capture: ReplayedFile {
            path: "q.sql".to_owned(),
            sha256: None,
        },
        data: None,
        weighted_by: WeightedBy::Time,
        budget_seconds: 60.0,
        impact: 0.001,
        settings: Vec::new(),
        mix: None,
        data_sets: Vec::new(),
        directory_database: None,
        made_up: false,
        functions_allowed: false,
        sent_sha256: None,
        clock: None,
        timeout_seconds: 60,
        statements: Vec::new(),
    }
}
