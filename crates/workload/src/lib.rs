//! What to send: definitions to executable plans; seeded generators.
//!
//! A workload is a TOML file under `workloads/`, compiled into the binary ([`Library`]).
//! [`Definition::compile`] turns it into an [`executable::Executable`] for given table sizes: statements to
//! prepare and how to draw their parameters. [`Sbtest`] is the data that the sysbench workloads run on.
//!
//! What it refuses to do: talk to a server, read a clock, or let a definition contain code. The language
//! has four kinds of parameter and no branches, so what a workload sends can be read off its file; the
//! price is that a load that needs a decision per operation must be written as a driver of its own.
//!
//! Every random number comes from [`stream`], whose output for a seed is fixed by published algorithms and
//! not by the version of a library: the same seed sends the same operations to every server, today and
//! after an upgrade.
//!
//! ```
//! use deltabench_model::plan::DataSize;
//! use deltabench_workload::Library;
//!
//! let library = Library::builtin()?;
//! let executable = library.get("read-only-sum")?.compile(&DataSize { tables: 1, rows: 1000 })?;
//! let sql = executable.sample_sql(1);
//! assert_eq!(sql.len(), 13);
//! assert_eq!(sql[0], "BEGIN");
//! # Ok::<(), deltabench_model::problem::Problem>(())
//! ```

mod definition;
mod document;
mod draw;
pub mod executable;
mod expression;
mod library;
mod sbtest;
mod seed;
mod template;

pub use definition::Definition;
pub use library::Library;
pub use sbtest::{Rows, Sbtest};
pub use seed::{mix, stream};
