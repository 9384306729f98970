//! Who works while a server has an operation: only then may its process be stopped between turns.

use deltabench_driver::SliceOutcome;
use deltabench_model::units::to_f64;
use deltabench_observe::MachineCosts;

/// Share of an operation in which the server's process works, or waits for the core, where nothing else works
/// for it: it does not sleep, and other processes do nothing of it.
const WORKS_ALONE: f64 = 0.9;

/// Share of an operation that the client may take for its answer.
const CLIENT_SHARE: f64 = 0.02;

/// Who worked in slices of a server that did not count.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Shares {
    duration_ns: u64,
    /// The server's processes worked, or waited for the core.
    server_ns: u64,
    client_ns: u64,
}

impl Shares {
    pub(super) fn add(&mut self, outcome: &SliceOutcome, costs: &MachineCosts) {
        let server = costs.server;
        // What is not known is not there: then nobody works alone.
        let server_ns = server.map_or(0, |spent| {
            spent.cpu_ns + spent.run_queue_wait_ns.unwrap_or(0)
        });
        self.duration_ns += outcome.duration_ns;
        self.server_ns += server_ns;
        self.client_ns += outcome.client_cpu_ns;
    }

    /// Whether only a process of the server has worked: no client, no sleep, no other process.
    pub(super) fn works_alone(&self) -> bool {
        let duration_ns = to_f64(self.duration_ns);
        self.duration_ns > 0
            && to_f64(self.server_ns) >= WORKS_ALONE * duration_ns
            && to_f64(self.client_ns) <= CLIENT_SHARE * duration_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_that_sleeps_or_sends_a_lot_takes_no_turns() {
        use deltabench_observe::CpuReading;
        let add = |shares: &mut Shares, cpu_ns, waited_ns, client_cpu_ns| {
            let outcome = SliceOutcome {
                duration_ns: 1_000_000_000,
                operations: 1,
                failed: 0,
                rows: 1,
                client_cpu_ns,
                probe_ns: None,
                probing_ns: 0,
                latency_histogram: Vec::new(),
                scripts: Vec::new(),
                errors: Vec::new(),
                void: None,
                void_detail: None,
                schedule_lag_ns: None,
            };
            let server = Some(CpuReading {
                cpu_ns,
                run_queue_wait_ns: waited_ns,
                switches: None,
            });
            let costs = MachineCosts {
                server,
                ..MachineCosts::default()
            };
            shares.add(&outcome, &costs);
        };
        let of = |cpu_ns: u64, waited_ns: Option<u64>, client_cpu_ns: u64| {
            let mut shares = Shares::default();
            add(&mut shares, cpu_ns, waited_ns, client_cpu_ns);
            shares.works_alone()
        };
        assert!(of(990_000_000, None, 1_000_000));
        assert!(of(600_000_000, Some(390_000_000), 1_000_000), "a neighbour");
        assert!(!of(600_000_000, Some(1_000_000), 1_000_000), "it sleeps");
        assert!(!of(940_000_000, None, 50_000_000), "a large answer");
        let mut several = Shares::default();
        assert!(!several.works_alone(), "nothing is known");
        for cpu_ns in [990_000_000, 800_000_000, 990_000_000] {
            add(&mut several, cpu_ns, None, 1_000_000);
        }
        assert!(several.works_alone(), "one slice was disturbed");
    }
}
