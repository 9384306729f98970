//! What to send: definitions to executable plans; seeded generators.
//!
//! A workload is a TOML file under `workloads/`, compiled into the binary ([`Library`]).
//! [`Definition::compile`] turns it into an [`executable::Executable`] for given table sizes: statements to
//! prepare and how to draw their parameters. [`Sbtest`] is the data that the sysbench workloads run on.
//!
//! What it refuses to do: talk to a server, read a clock, or let a definition contain code. The language
//! has seven kinds of parameter, weights, and no branches, so what a workload sends can be read off its
//! file; the price is that a load whose next statement depends on the last answer must be written as a
//! driver of its own.
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

mod bound;
mod chore;
mod definition;
mod draw;
pub mod executable;
mod expression;
pub mod insert;
mod library;
pub mod orders;
mod permutation;
pub mod pgbench;
mod published;
mod sample;
mod sbtest;
mod section;
mod seed;
mod table;
mod template;
mod varied;
mod zipf;

pub use chore::{Chore, settle_seconds};
pub use definition::Definition;
pub use library::Library;
pub use permutation::Permutation;
pub use published::{PublishedStep, StepLength, WarmUpClients, published_order, write_phase};
pub use sample::Sample;
pub use sbtest::{Inserts, Rows, Sbtest};
pub use seed::{mix, stream};
pub use table::TableDefinition;
pub use zipf::Zipf;
