//! How long a pass takes, said before it is begun.

use deltabench_model::units::to_f64;
use deltabench_model::work::insert::{InsertSetup, InsertStep};

// Rates of all clients together are assumed: between what two cores did while other programs wanted them
// (load average 9: 24,000 to 48,000 rows, 90,000 to 200,000 indexed, 6600 to 11,000 and 3400 to 4600 written)
// and what the CPU time that it took allows.

/// Rows inserted in a second while there are no secondary indexes.
const LOADED_PER_SECOND: f64 = 50_000.0;

/// Rows that are put into three indexes in a second.
const INDEXED_PER_SECOND: f64 = 200_000.0;

/// Rows inserted and deleted in a second, 50 in a statement.
const WRITTEN_MANY_PER_SECOND: f64 = 12_000.0;

/// Rows inserted and deleted in a second, 5 in a statement.
const WRITTEN_FEW_PER_SECOND: f64 = 6_000.0;

/// Seconds of a new data directory, start, empty tables, sizes after each step, and stop.
const RESTART_SECONDS: f64 = 5.0;

/// Seconds of one pass on one server, if background rates are kept.
pub fn pass_seconds(setup: &InsertSetup) -> f64 {
    let clients = f64::from(setup.clients);
    let step = |step: &InsertStep| {
        let rows = to_f64(setup.rows_of(*step)) * clients;
        match step {
            InsertStep::LoadRows => rows / LOADED_PER_SECOND,
            InsertStep::Index => to_f64(setup.loaded_rows()) / INDEXED_PER_SECOND,
            InsertStep::WriteMany => rows / WRITTEN_MANY_PER_SECOND,
            InsertStep::WriteFew => rows / WRITTEN_FEW_PER_SECOND,
            InsertStep::Range(_) | InsertStep::Point(_) => f64::from(setup.query_seconds),
        }
    };
    let settles = setup.steps.iter().any(|step| step.queries());
    let settling = if settles {
        to_f64(setup.settle_seconds())
    } else {
        0.0
    };
    setup.steps.iter().map(step).sum::<f64>() + settling + RESTART_SECONDS
}

#[cfg(test)]
mod tests {
    use super::super::setup::tests::setup;
    use super::*;

    #[test]
    fn time_grows_with_steps() {
        let setup = setup();
        let seconds = pass_seconds(&setup);
        // Four steps of queries of 10 s, one to settle, five beside, and some thousand rows.
        assert!((46.0..56.0).contains(&seconds), "{seconds}");
        let mut short = setup.clone();
        short.steps.truncate(4);
        assert!(pass_seconds(&short) < seconds - 40.0);
    }
}
