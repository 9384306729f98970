//! What else happened meanwhile: CPU of each server, cores, the host.
//!
//! Reads `/proc`, `/sys` and cgroups; changes nothing but the affinity of processes that it is told to pin,
//! cgroups that it made itself, our own place among them, and what the page cache holds of directories that
//! it is told to drop. It starts no process but the ssh of an [`agent`], stops none, and judges no
//! measurement.
//!
//! What is read between slices ([`SliceMeters`]) keeps its files open and its memory
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
pub mod agent;
mod busy;
mod cgroup;
mod check;
mod core_speed;
mod device;
mod disk;
mod error;
mod host_clock;
mod host_facts;
mod host_identity;
mod host_sample;
mod limits;
pub mod log_marks;
mod meter;
mod meters;
mod page_cache;
mod perf;
mod perf_event;
mod postmaster;
mod pressure;
pub mod profile;
mod sampler;
mod sampling;
mod series;
mod server_counters;
pub mod server_stats;
mod slice_meters;
pub mod unwind;

pub use affinity::{own_affinity, pin_self, pin_tree, restore};
pub use busy::BusySource;
pub use cgroup::{ServerCgroup, remove_left_over_cgroups};
pub use check::{Check, Outcome, host_findings, preflight};
pub use core_speed::core_speed;
pub use deltabench_proc::block::DeviceCosts;
pub use deltabench_proc::cgroup::CgroupKind;
pub use device::DeviceClock;
pub use disk::{DiskFacts, Fsync};
pub use error::ObserveError;
pub use host_clock::{HostClock, HostReading, foreign_cpu_ns};
pub use host_facts::{machine_name, read_host};
pub use host_identity::{host_identity, occasion};
pub use host_sample::{HostSample, Neighbour};
pub use limits::{
    AppliedLimits, AppliedMemory, AppliedStorage, LimitPlan, LimitReading, ServerLimits, try_limits,
};
pub use meter::{Changes, CpuMeter, CpuReading, CpuSource, sees_short_lived};
pub use meters::{MachineCosts, MachineSources, Metered, Meters};
pub use page_cache::{CachedFiles, DroppedPages, cached_files, drop_pages};
pub use perf::{PerfCounters, PerfScope};
pub use postmaster::{Counters, Postmaster};
pub use pressure::PressureClock;
pub use sampler::Sampler;
pub use series::Series;
pub use server_counters::ServerCounters;
pub use slice_meters::{MeterSources, SliceCosts, SliceMeters};
