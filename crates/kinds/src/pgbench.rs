//! Scripts of pgbench.

pub mod shown;
