//! What else happened meanwhile: CPU of each server, cores, the host.
//!
//! Reads `/proc`, `/sys` and cgroups; changes nothing but the affinity of processes that it is told to pin
//! and cgroups that it made itself. It never starts or stops a process and judges no measurement.
//!
//! What is read between slices ([`CpuMeter::read`], [`HostClock::read`]) keeps its files open and its memory
//! allocated, so that it costs microseconds. The price: the set of processes is fixed at
//! [`CpuMeter::refresh`]; a process that is born and dies between two refreshes is not seen by the
//! `schedstat` source (it shows as foreign CPU). The cgroup sources see it. See
//! `docs/decisions/0002-schedstat-as-cpu-source.md`.
//!
//! ```
//! use deltabench_observe::CpuMeter;
//!
//! let mut meter = CpuMeter::open(std::process::id())?;
//! let before = meter.read();
//! let spent = meter.read().since(&before);
//! assert!(spent.cpu_ns < 1_000_000_000);
//! # Ok::<(), deltabench_observe::ObserveError>(())
//! ```

mod affinity;
mod cgroup;
mod error;
mod finding;
mod host_clock;
mod host_facts;
mod meter;
mod process;
mod reader;

pub use affinity::{own_affinity, pin_self, pin_tree, restore};
pub use cgroup::{CgroupKind, ServerCgroup};
pub use error::ObserveError;
pub use finding::host_findings;
pub use host_clock::{HostClock, HostReading, foreign_cpu_ns};
pub use host_facts::HostFacts;
pub use meter::{Changes, CpuMeter, CpuReading, CpuSource};
pub use process::process_tree;
