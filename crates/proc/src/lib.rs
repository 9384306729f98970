//! What does the kernel say? Every reader of `/proc`, `/sys` and control groups.
//!
//! It reads; it changes nothing and judges nothing. Parsers take text or bytes, so that tests feed them what
//! real kernels wrote; readers of files stand thinly above them. What is read between slices goes through
//! [`KernelFile`], which stays open and allocates nothing.
//!
//! ```
//! let own = deltabench_proc::Process::of(std::process::id());
//! assert!(own.stat().is_some_and(|stat| !stat.has_ended()));
//! ```

pub mod block;
pub mod cgroup;
pub mod cpu;
mod error;
mod file;
pub mod host;
pub mod kernel;
pub mod locks;
mod maps;
pub mod memory;
pub mod mounts;
pub mod network;
pub mod pressure;
mod process;
mod stat;
mod tree;
mod units;
pub mod writeback;

pub use error::ProcError;
pub use file::{KernelFile, WholeFile, field, number, number_in, numbers, program, word_in};
pub use maps::CodeMapping;
pub use process::{Io, Process, has_ended, process_ids, resident_pages, thread_dir, threads};
pub use stat::Stat;
pub use tree::process_tree;
pub use units::{page_bytes, tick_ns};
