//! What follows from a plan about how its servers are compared.

use crate::installation::Engine;
use crate::plan::{Plan, PlannedServer, ServerId};

impl Plan {
    /// The placebo, where candidates are compared with the mean of base and placebo: two copies of one server
    /// say more of it than one. A base that runs already has no copy: both are that one server.
    pub fn second_control(&self) -> Option<ServerId> {
        // Relative to another server, the placebo stays a copy of the planned base.
        let copies = |placebo: &ServerId| self.compared_with(*placebo) == self.base();
        let base = self.server(self.base());
        let ours = base.is_some_and(|base| base.installation.remote.is_none());
        self.placebo()
            .filter(|placebo| self.two_controls && ours && copies(placebo))
    }

    /// Whether where the pages of an executable lie is drawn at each start of a server. Servers that
    /// deltabench does not start and embedded engines keep theirs.
    pub fn draws_executables(&self) -> bool {
        let own = |server: &PlannedServer| {
            let installation = &server.installation;
            installation.remote.is_none() && installation.engine == Engine::Postgres
        };
        self.own_executables && self.servers.iter().any(own)
    }
}
