//! Small setups of kinds of benchmark. A test writes over them only what it is about, as in
//! `InsertSetup { clients: 2, ..small_insert() }`, so that a new field stands here alone.

use deltabench_model::work::insert::{InsertSetup, InsertStep, Pacing};

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
