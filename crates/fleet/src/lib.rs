//! On which hosts: one experiment over many exclusive machines.
//!
//! A *unit* is one part of an experiment in one repetition: one run with a lab of its own. A *lane* holds the
//! units that must share a host, in order. An [`engine`] carries lanes to hosts and is asked what became of
//! them; what is true stands in the spool and in the central store, never in the engine.

pub mod carry;
pub mod engine;
pub mod file;
pub mod fixture;
pub mod full;
pub mod gather;
pub mod host_lock;
pub mod lanes;
pub mod look;
pub mod seal;
pub mod ship;
pub mod spool;
pub mod spread;
pub mod state;
mod tree;
mod whole_file;
