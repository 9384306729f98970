//! What follows from a plan about how its servers are compared.

use crate::installation::Engine;
use crate::plan::{CacheState, Cell, Limits, Placement, Plan, PlannedServer, ServerId};

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

    /// Whether the client of a cell shares the server's core and is always busy or served by it.
    pub fn shares_core(&self, cell: &Cell) -> bool {
        let remote = self.servers.iter();
        let remote = remote.filter(|server| server.installation.remote.is_some());
        self.placement(cell) == Placement::SameCore
            && cell.clients == 1
            && cell.rate.is_none()
            && self.pins.is_none()
            && remote.count() == 0
    }

    /// Whether the client of a cell measures the core that it shares with its server, between operations.
    /// Not where the rounds of a visit differ in kind: caches fill, or a visit is one long slice.
    pub fn probes_core(&self, cell: &Cell) -> bool {
        self.probes
            && self.shares_core(cell)
            && self.cache != CacheState::Cold
            && !self.timing.sustained
            && !self.work.comes_in_bursts(&cell.workload)
    }

    /// Whether servers may have long operations of a cell under way at the same time and work in turns. Only
    /// where an operation has one process of the server to work for it, which is stopped between its turns,
    /// changes nothing, and has no limit of time that goes on meanwhile.
    pub fn interleaves(&self, cell: &Cell) -> bool {
        let plain = self.servers.iter().all(|server| {
            let asked = self.settings.iter().chain(&server.settings);
            server.configuration.is_none()
                && !asked
                    .into_iter()
                    .any(|(name, _)| goes_on_between_turns(name))
        });
        plain
            && self.shares_core(cell)
            && !cell.writes
            && !cell.reconnects
            && self.cache != CacheState::Cold
            && self.limits == Limits::default()
            && !self.timing.sustained
            && !self.work.comes_in_bursts(&cell.workload)
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

/// Whether a setting may give an operation other processes to work for it, or a limit of time.
fn goes_on_between_turns(setting: &str) -> bool {
    let setting = setting.to_ascii_lowercase();
    setting.contains("parallel") || setting.contains("io_") || setting.ends_with("_timeout")
}
