//! Numbers that say which one of a list is meant. Each list has a type of its own, so none is mixed up.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A type of ids: what it says, its name.
macro_rules! id {
    ($(#[$doc:meta])+ $Id:ident) => {
        $(#[$doc])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $Id(pub u32);

        impl $Id {
            /// The id of what stands at a place of the list, from 0.
            pub fn at(place: usize) -> Self {
                Self(u32::try_from(place).unwrap_or(u32::MAX))
            }

            /// All ids in order, to zip with a list or to take its length of.
            pub fn each() -> impl Iterator<Item = Self> + Clone {
                (0..).map(Self)
            }

            /// The place in the list, from 0.
            pub fn index(self) -> usize {
                crate::units::index(u64::from(self.0))
            }
        }

        impl fmt::Display for $Id {
            fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(to)
            }
        }
    };
}

id!(
    /// A server in [`Plan::servers`](crate::plan::Plan::servers).
    ServerId
);
id!(
    /// A cell in [`Plan::cells`](crate::plan::Plan::cells).
    CellId
);
id!(
    /// A call path in [`Profile::nodes`](crate::profile::Profile::nodes).
    NodeId
);

impl NodeId {
    /// The path that all others start from.
    pub const ROOT: Self = Self(0);
}
