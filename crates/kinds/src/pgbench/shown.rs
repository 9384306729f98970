//! pgbench's scripts in a report: what each came to on each server, and pgbench's own form of it.

mod figures;
mod text;

use crate::shown::Form;
pub use figures::figures;
pub use text::pgbench;
pub(crate) use text::{ScriptResult, script_rows};

/// As the program prints it.
pub const FORM: Form = Form {
    name: "pgbench",
    about: "What pgbench prints at the end of a run, for each server and cell",
    check: text::check_pgbench,
    with_progress: Some(|plan, results, seconds| pgbench(plan, results, Some(seconds))),
};
