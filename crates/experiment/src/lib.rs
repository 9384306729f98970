//! What does a study vary, and what does it hold?
//!
//! Turns the text of an experiment file into plain data: the servers (products of targets, configurations and
//! settings), the parts (products of data size, memory, storage and repetitions: a run each), workloads,
//! pgbench, the Insert Benchmark or RocksDB, clients, measurement. It reads no file, knows no server and
//! resolves nothing: that a configuration, a workload, a script, a storage profile or a build exists is for
//! those to say who have them. Everything else is refused here, with file, line and key.
//!
//! ```
//! use deltabench_experiment::{Experiment, STARTER};
//!
//! let experiment = Experiment::read("starter.toml", STARTER, Some("tiny"))?;
//! let names: Vec<String> = experiment.servers().iter().map(|server| server.name()).collect();
//! assert_eq!(names, ["postgres:17", "postgres:18"]);
//! assert_eq!(experiment.parts().len(), 1);
//! # Ok::<(), deltabench_model::problem::Problem>(())
//! ```

mod configured;
mod excludes;
mod experiment;
mod keys;
pub mod kinds;
mod measurement;
mod only;
mod own;
mod part;
mod pattern;
mod scale;
mod server;
mod settings;
mod syntax;
mod workloads;

pub use experiment::{Experiment, FORMAT};
pub use keys::known_keys;
pub use measurement::{Checksums, Measurement, Procedure};
pub use own::{BuildSystem, OwnBuild, OwnConfiguration};
pub use part::{DEFAULT_ROWS, Part, REPETITIONS_MAX};
pub use pattern::matches;
pub use server::{STEADY, Server, labels};
pub use workloads::{Chosen, Variant, Workloads};

/// A commented file to start from: every key of the format, explained.
pub const STARTER: &str = include_str!("starter.toml");
