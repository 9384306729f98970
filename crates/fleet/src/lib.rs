//! On which hosts: one experiment over many exclusive machines.
//!
//! A *unit* is one part of an experiment in one repetition: one run with a lab of its own. A *lane* holds the
//! units that must share a host, in order. An [`engine`] carries lanes to hosts and is asked what became of
//! them; what is true stands in the spool and in the central store, never in the engine.

pub mod engine;
