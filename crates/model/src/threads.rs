//! How many threads the client has.

use serde::{Deserialize, Serialize};

/// Threads of the client in the cells of a plan: one for so many clients, and no more than `most`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientThreads {
    pub most: u32,
    /// Clients of a thread, before there is another; at least 1.
    pub clients_each: u32,
}

impl Default for ClientThreads {
    /// One, as in plans of versions before 24 November 2026.
    fn default() -> Self {
        Self {
            most: 1,
            clients_each: 1,
        }
    }
}

impl ClientThreads {
    /// Those of a cell with so many clients.
    pub fn of(self, clients: u32) -> u32 {
        let wanted = clients.div_ceil(self.clients_each.max(1));
        wanted.min(self.most).max(1)
    }

    /// Whether all cells have one.
    #[allow(clippy::trivially_copy_pass_by_ref)] // serde passes a reference
    pub fn is_one(&self) -> bool {
        self.most <= 1
    }
}
