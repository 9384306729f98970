//! Whether rows are visible to everybody, so that index-only scans are index-only.

use crate::admin::{query, run};
use deltabench_driver::admin::Client;
use deltabench_model::problem::Problem;

/// An asynchronous commit cannot be hinted before its WAL is on disk, and VACUUM would leave pages that hold
/// such rows out of the visibility map: half of the index-only scans then visit the heap, on some servers.
///
/// Errors: whatever the server answered.
pub fn durable(client: &mut Client) -> Result<(), Problem> {
    run(client, "SET synchronous_commit = on")
}

/// Share of a table's pages that must be in the visibility map after loading.
///
/// Not 1: from version 16 COPY extends a table by many pages at once and leaves the last ones unused.
const VISIBLE_SHARE_MIN: f64 = 0.9;

/// Makes sure that index-only scans will be index-only, on every server alike.
pub(crate) fn check_visibility(client: &mut Client, schema: &str) -> Result<(), Problem> {
    let sql = format!(
        "SELECT relname, relpages, relallvisible FROM pg_class \
         WHERE relnamespace = '{schema}'::regnamespace AND relkind = 'r'"
    );
    for row in query(client, &sql)? {
        let [Some(table), Some(pages), Some(visible)] = row.as_slice() else {
            continue;
        };
        if pages == "0" {
            continue;
        }
        let share =
            visible.parse::<f64>().unwrap_or(0.0) / pages.parse::<f64>().unwrap_or(1.0).max(1.0);
        if share < VISIBLE_SHARE_MIN {
            return Err(Problem::new(format!("VACUUM did not finish {table}"))
                .detail(format!(
                    "{visible} of {pages} pages are in the visibility map"
                ))
                .hint("something holds an old transaction open on this server"));
        }
    }
    Ok(())
}
