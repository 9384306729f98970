//! Where and when a run was measured, and what its cells are: what makes runs comparable over months.

use crate::fact::HostFacts;
use serde::{Deserialize, Serialize};

/// Rises when slices of the same plan would come out otherwise than before: a change of how deltabench
/// measures, not of what it reads out of it.
pub const MEASUREMENT_VERSION: u32 = 4;

const GIB: u64 = 1 << 30;

/// What a machine is, by facts that survive a restart. Never a calibration, and never a name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HostClass {
    /// Model name of its first core.
    pub cpu_model: Option<String>,
    pub cores: u64,
    /// Main memory, rounded to whole GiB: the kernel keeps a few MiB more or less for itself.
    pub memory_gib: Option<u64>,
    pub virtual_machine: Option<bool>,
}

impl HostClass {
    /// The class of a host with these facts.
    pub fn of(facts: &HostFacts) -> Self {
        Self {
            cpu_model: facts.cpu_model.clone(),
            cores: facts.online_cores,
            memory_gib: facts.memory_bytes.map(|bytes| (bytes + GIB / 2) / GIB),
            virtual_machine: facts.virtual_machine,
        }
    }
}

/// A machine as long as nothing about it changed: with another kernel or microcode it is another host of the
/// same `uid`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostIdentity {
    /// Random, from a file of the machine.
    pub uid: String,
    pub class: HostClass,
    /// Release of the kernel.
    pub kernel: Option<String>,
    /// Revision of the processor's microcode.
    pub microcode: Option<String>,
}

/// A run on a host at a time. A run that was resumed has several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occasion {
    pub host: HostIdentity,
    /// Random; the same run in a copied lab has the same.
    pub uid: String,
    /// This start of the kernel.
    pub boot_id: Option<String>,
    /// [`MEASUREMENT_VERSION`] of the program that measured.
    pub measurement_version: u32,
    /// When it began, milliseconds since 1970.
    pub at_unix_ms: i64,
}

/// The identity of a cell over runs, by content.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Series {
    /// SHA-256 of `content`, lower-case hex.
    pub key: String,
    /// How people call it: `point-query@1`.
    pub slug: String,
    /// What two runs must have in common for their cells to be the same: canonical JSON.
    pub content: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_what_survives_a_restart() {
        let facts = |memory_bytes, kernel: &str| HostFacts {
            cpu_model: Some("AMD EPYC".to_owned()),
            online_cores: 2,
            memory_bytes: Some(memory_bytes),
            virtual_machine: Some(true),
            kernel: Some(kernel.to_owned()),
            load_1min: Some(3.0),
            ..HostFacts::default()
        };
        let class = HostClass::of(&facts(8_322_000_000, "6.1"));
        assert_eq!(class, HostClass::of(&facts(8_318_000_000, "6.2")));
        assert_ne!(class, HostClass::of(&facts(17_000_000_000, "6.1")));
        let wanted = HostClass {
            cpu_model: Some("AMD EPYC".to_owned()),
            cores: 2,
            memory_gib: Some(8),
            virtual_machine: Some(true),
        };
        assert_eq!(class, wanted);
    }
}
