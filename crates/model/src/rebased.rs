//! A plan relative to another of its servers.

use crate::plan::{Plan, PlannedServer, Role, ServerId};

impl Plan {
    /// The server that another one is compared with: the base, or for a placebo the server that it copies.
    pub fn compared_with(&self, server: ServerId) -> ServerId {
        let copy = self.server(server).filter(|one| one.role == Role::Placebo);
        copy.map_or_else(|| self.base(), |copy| self.original(copy))
    }

    /// The same plan relative to another of its servers. The base becomes a candidate; the placebo stays a
    /// copy of the server that it copies.
    #[must_use]
    pub fn relative_to(&self, base: ServerId) -> Self {
        let mut plan = self.clone();
        for (id, server) in ServerId::each().zip(&mut plan.servers) {
            server.role = match server.role {
                Role::Placebo => Role::Placebo,
                _ if id == base => Role::Base,
                _ => Role::Candidate,
            };
        }
        plan
    }

    /// The server that a placebo copies: the base, unless the plan is relative to another server.
    fn original(&self, copy: &PlannedServer) -> ServerId {
        let is_like = |one: &PlannedServer| {
            let mut same = one.clone();
            same.role = copy.role;
            same == *copy
        };
        let base = self.base();
        let mut servers = ServerId::each().zip(&self.servers);
        match servers.find(|(_, one)| one.role == Role::Candidate && is_like(one)) {
            Some((original, _)) if !self.server(base).is_some_and(is_like) => original,
            _ => base,
        }
    }
}
