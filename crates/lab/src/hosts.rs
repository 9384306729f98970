//! On which host a run was measured.

use deltabench_model::fact::{HostFacts, MachineName};
use deltabench_model::occasion::{HostClass, HostIdentity, Occasion};
use deltabench_store::{Store, StoreError};
use serde::{Deserialize, Serialize};

/// The host of a run: what two runs have in common if their machine was the same and had not changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunHost {
    /// As the machine identified itself, to a program that measured in this way
    /// ([`deltabench_model::occasion::MEASUREMENT_VERSION`]).
    Identified { host: HostIdentity, measured: u32 },
    /// Of a run of a version before: what it stored of its machine. Two machines may share that.
    Stored {
        machine: String,
        class: HostClass,
        kernel: Option<String>,
    },
}

/// When a machine became another host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostChange {
    /// Start of the first run on it, milliseconds since 1970.
    pub at_unix_ms: i64,
    /// What is another one: `kernel 6.1 to 6.19`.
    pub what: String,
}

impl RunHost {
    /// What is another one than on a host of this machine before.
    pub(crate) fn differs_from(&self, before: &Self) -> String {
        let word = |known: &Option<String>| known.clone().unwrap_or_else(|| "unknown".to_owned());
        let of = |host: &Self| match host {
            Self::Identified { host, measured } => (
                word(&host.kernel),
                word(&host.microcode),
                measured.to_string(),
            ),
            Self::Stored { kernel, .. } => (word(kernel), word(&None), "unknown".to_owned()),
        };
        let (old, new) = (of(before), of(self));
        let all = [
            ("kernel", old.0, new.0),
            ("microcode", old.1, new.1),
            ("deltabench's way of measuring, version", old.2, new.2),
        ];
        let other = all.into_iter().filter(|(_, old, new)| old != new);
        let other: Vec<String> = other
            .map(|(name, old, new)| format!("{name} {old} to {new}"))
            .collect();
        other.join(", ")
    }

    /// The machine, whatever kernel it runs: two hosts of one key are one machine at different times.
    pub fn machine(&self) -> String {
        match self {
            Self::Identified { host, .. } => host.uid.clone(),
            Self::Stored { machine, class, .. } => format!("{machine} {class:?}"),
        }
    }

    /// What kind of machine it is.
    pub fn class(&self) -> &HostClass {
        match self {
            Self::Identified { host, .. } => &host.class,
            Self::Stored { class, .. } => class,
        }
    }

    /// The host of a run; `None` if it is not known, or the run was resumed on another one or in another way.
    ///
    /// Errors: the store cannot be read.
    pub fn of(run: &str, store: &Store) -> Result<Option<Self>, StoreError> {
        let of = |one: Occasion| Self::Identified {
            host: one.host,
            measured: one.measurement_version,
        };
        let mut hosts = store.occasions(run)?.into_iter().map(of);
        if let Some(first) = hosts.next() {
            let same = hosts.all(|host| host == first);
            return Ok(same.then_some(first));
        }
        let Some(MachineName(machine)) = store.last_fact(run, None)? else {
            return Ok(None);
        };
        let facts: HostFacts = store.last_fact(run, None)?.unwrap_or_default();
        Ok(Some(Self::Stored {
            machine,
            class: HostClass::of(&facts),
            kernel: facts.kernel,
        }))
    }
}
