//! On which host a run was measured.

use deltabench_model::fact::{HostFacts, MachineName};
use deltabench_model::occasion::{HostClass, HostIdentity, Occasion};
use deltabench_store::{Store, StoreError};

/// The host of a run: what two runs have in common if their machine was the same and had not changed.
#[derive(Debug, Clone, PartialEq, Eq)]
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

impl RunHost {
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
