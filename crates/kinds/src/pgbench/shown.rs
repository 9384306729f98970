//! pgbench's scripts in a report: what each came to on each server, and pgbench's own form of it.

mod figures;
mod text;

pub use figures::figures;
pub use text::{check_pgbench, pgbench};
